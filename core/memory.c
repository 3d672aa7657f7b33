/* memory.c -- memory of devices for C programs: allocations without a tensor, streams, limits, events;
** memory of the host, and the message when there is none. Layer: core. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "cache.h"
#include "dlpack.h"

typedef struct {
    char text[32];
} size_text;

static const char *show_size(size_text *buffer, size_t n) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)n / 1024;
    int unit = 0;
    for (; value >= 1024 && unit < 5; unit++)
        value /= 1024;
    if (n < 1024)
        snprintf(buffer->text, sizeof buffer->text, "%d bytes", (int)n);
    else
        snprintf(buffer->text, sizeof buffer->text, "%.2f %s", value, units[unit]);
    return buffer->text;
}

luma_status lm_memory_fail(luma_state *S, lm_device *device, size_t nbytes) {
    const char *problem = lm_cache_problem(device->cache);
    if (problem) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", problem);
    lm_cache_figures f;
    lm_cache_stats(device->cache, &f);
    size_t reserved = (size_t)f.reserved_bytes[LM_POOL_ALL].current;
    size_t used = (size_t)f.active_bytes[LM_POOL_ALL].current, unused = 0, total = 0;
    /* who has a budget is not told of the machine */
    bool known =
        !S->budget && device->ops->memory_info && device->ops->memory_info(device, &unused, &total);
    size_text text[7];
    char whole[96] = "", limit[64] = "";
    if (known)
        snprintf(whole, sizeof whole, "%s total, %s free, ", show_size(&text[0], total),
                 show_size(&text[1], unused));
    if (S->budget)
        snprintf(limit, sizeof limit, ", limit %s with Lua's own",
                 show_size(&text[2], (size_t)S->budget->limit));
    else if (f.limit)
        snprintf(limit, sizeof limit, ", limit %s", show_size(&text[2], (size_t)f.limit));
    return lm_fail(S, LUMA_ERR_MEMORY, 0,
                   "out of memory on %s: tried to allocate %s; %s%s allocated, %s reserved, of "
                   "which %s are unused%s",
                   device->name, show_size(&text[3], nbytes), whole, show_size(&text[4], used),
                   show_size(&text[5], reserved), show_size(&text[6], reserved - used), limit);
}

bool lm_memory_denied(luma_state *S) {
    if (S->fail_after < 0) return false;
    if (S->fail_after > 0) {
        S->fail_after--;
        return false;
    }
    S->failed = true;
    if (!S->fail_forever) S->fail_after = -1;
    return true;
}

void *lm_memory_resize(luma_state *S, void *p, size_t nbytes) {
    void *got = lm_memory_denied(S) ? NULL : realloc(p, nbytes);
    if (!got) lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    return got;
}

/* ---- without tensors ------------------------------------------------------------------------- */

luma_status luma_raw_alloc_with_stream(luma_state *S, const char *device, size_t nbytes,
                                       void *stream, void **p) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    void *got = NULL;
    if (nbytes && !(got = lm_cache_raw_alloc(d->cache, nbytes, stream)))
        return lm_memory_fail(S, d, nbytes);
    *p = got;
    return LUMA_OK;
}

luma_status luma_raw_alloc(luma_state *S, const char *device, size_t nbytes, void **p) {
    return luma_raw_alloc_with_stream(S, device, nbytes, NULL, p);
}

static luma_status invalid_pointer(luma_state *S, const lm_device *d, const void *p) {
    return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "invalid device pointer: %p on %s", (const void *)p,
                   d->name);
}

luma_status luma_raw_delete(luma_state *S, const char *device, void *p) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    if (p && !lm_cache_raw_delete(d->cache, p)) return invalid_pointer(S, d, p);
    return LUMA_OK;
}

luma_status luma_base_allocation(luma_state *S, const char *device, const void *p, void **base,
                                 size_t *nbytes) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    if (!lm_cache_base(d->cache, p, base, nbytes)) return invalid_pointer(S, d, p);
    return LUMA_OK;
}

/* ---- streams, limits, events ----------------------------------------------------------------- */

luma_status luma_record_stream(luma_state *S, const luma_tensor *x, const char *device,
                               void *stream) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor with elements expected");
    if (!lm_cache_record_stream(x->storage, d, stream))
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    return LUMA_OK;
}

luma_status luma_set_memory_limit(luma_state *S, const char *device, size_t nbytes) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    lm_cache_set_limit(d->cache, nbytes);
    return LUMA_OK;
}

luma_status luma_empty_cache(luma_state *S, const char *device) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    if (S->exports) lm_exports_settle(S->exports);
    lm_cache_empty(d->cache);
    return LUMA_OK;
}

void luma_set_memory_callback(luma_state *S, luma_memory_fn *f, void *ctx) {
    S->notify = f;
    S->notify_ctx = ctx;
    for (int i = 0; i < S->ndevices; i++)
        lm_cache_set_notify(S->devices[i]->cache, f, ctx);
}
