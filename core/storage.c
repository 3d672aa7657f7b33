/* storage.c -- the only owner of bytes: reference counts, foreign memory, small blocks. Layer:
 * core. */
#include "storage.h"

#include <stdlib.h>

#include "cache.h"
#include "device.h"
#include "dlpack.h"
#include "memory.h"

luma_status lm_storage_new(luma_state *S, lm_device *device, size_t nbytes, lm_storage **out) {
    if (S->exports && lm_exports_pending(S->exports)) lm_exports_settle(S->exports);
    if (device->live + (int64_t)nbytes > device->soft_limit && !S->lifted) {
        S->soft = true;
        return lm_memory_fail(S, device, nbytes);
    }
    bool last = !S->collects || (S->lifted && !S->again);
    if (lm_memory_denied(S)) return lm_memory_fail(S, device, nbytes);
    lm_storage *st = lm_cache_storage(device, nbytes, last);
    if (!st) {
        luma_status status = lm_memory_fail(S, device, nbytes);
        S->early = !last && status == LUMA_ERR_MEMORY;
        return status;
    }
    device->live += (int64_t)nbytes;
    S->fresh += (int64_t)nbytes;
    *out = st;
    return LUMA_OK;
}

luma_status lm_storage_wrap(luma_state *S, lm_device *device, void *data, size_t nbytes,
                            void (*deleter)(void *), void *ctx, lm_storage **out) {
    lm_storage *st = lm_memory_resize(S, NULL, sizeof *st);
    if (!st) return LUMA_ERR_MEMORY;
    *st = (lm_storage){.refs = 1,
                       .nbytes = nbytes,
                       .data = data,
                       .device = device,
                       .foreign = true,
                       .deleter = deleter,
                       .ctx = ctx};
    *out = st;
    return LUMA_OK;
}

lm_storage *lm_storage_retain(lm_storage *st) {
    __atomic_add_fetch(&st->refs, 1, __ATOMIC_RELAXED);
    return st;
}

void lm_storage_release(lm_storage *st) {
    if (!st) return;
    /* The only owner needs no read-modify-write. */
    if (__atomic_load_n(&st->refs, __ATOMIC_ACQUIRE) != 1 &&
        __atomic_sub_fetch(&st->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (st->foreign) {
        if (st->deleter) st->deleter(st->ctx);
        free(st);
    } else {
        st->device->live -= (int64_t)st->nbytes;
        lm_cache_release(st);
    }
}
