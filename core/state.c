/* state.c -- luma_state: opening, closing, messages. Layer: core. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "device.h"
#include "dlpack.h"
#include "pool.h"

luma_state *lm_state_new(void) {
    luma_state *S = calloc(1, sizeof *S);
    if (!S) return NULL;
    S->default_dtype = LUMA_FLOAT32;
    S->fail_after = -1;
    return S;
}

void luma_close(luma_state *S) {
    if (!S) return;
    if (S->exports) lm_exports_settle(S->exports);
    /* Streams of one device may still use memory of another. */
    for (int i = 0; i < S->ndevices; i++)
        lm_cache_empty(S->devices[i]->cache);
    /* From here on the host is gone, whatever others hold. */
    S->interrupt = NULL;
    S->poll = NULL;
    luma_set_memory_callback(S, NULL, NULL);
    S->budget = NULL;
    for (int i = 0; i < S->ndevices; i++)
        lm_cache_set_budget(S->devices[i]->cache, NULL);
    if (!S->exports || !lm_exports_close(S->exports)) lm_state_free(S);
}

void lm_state_free(luma_state *S) {
    for (int i = 0; i < S->ndevices; i++)
        lm_cache_empty(S->devices[i]->cache);
    for (int i = 0; i < S->ndevices; i++)
        lm_device_close(S, S->devices[i]);
    lm_exports_free(S->exports);
    free(S);
}

const char *luma_message(const luma_state *S) {
    return S->message;
}

int luma_error_argument(const luma_state *S) {
    return S->argument;
}

void luma_set_interrupt(luma_state *S, volatile int *flag) {
    S->interrupt = flag;
}

void luma_set_index_base(luma_state *S, int base) {
    S->index_base = base != 0;
}

luma_status luma_set_default_dtype(luma_state *S, luma_dtype dtype) {
    if ((unsigned)dtype >= LUMA_NDTYPES || !lm_dtype_is_float(dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a float dtype expected", luma_dtype_name(dtype));
    S->default_dtype = dtype;
    return LUMA_OK;
}

luma_dtype luma_default_dtype(const luma_state *S) {
    return S->default_dtype;
}

void luma_set_num_threads(int n) {
    lm_pool_set_threads(n);
}

int luma_num_threads(void) {
    return lm_pool_threads();
}

luma_status lm_fail(luma_state *S, luma_status status, int argument, const char *format, ...) {
    va_list args;
    va_start(args, format);
    /* Through a copy, since an argument may point into the old message. */
    char text[LM_MESSAGE_SIZE];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(S->message, text, sizeof text);
    S->argument = argument;
    return status;
}

luma_status lm_fail_interrupted(luma_state *S) {
    return lm_fail(S, LUMA_ERR_INTERRUPTED, 0, "interrupted!");
}

static const char *list_text(lm_text *buffer, const char *joint, int ndim, const int64_t *list,
                             int64_t base) {
    size_t used = 0, size = sizeof buffer->text;
    used += (size_t)snprintf(buffer->text, size, "[");
    for (int d = 0; d < ndim && d < LUMA_MAX_DIMS; d++)
        used += (size_t)snprintf(buffer->text + used, size - used, "%s%lld", d ? joint : "",
                                 (long long)(list[d] + base));
    snprintf(buffer->text + used, size - used, "]");
    return buffer->text;
}

const char *lm_shape_text(lm_text *buffer, int ndim, const int64_t *shape) {
    return list_text(buffer, " x ", ndim, shape, 0);
}

void lm_place_at(int64_t *place, int ndim, const int64_t *shape, int64_t at) {
    for (int d = ndim - 1; d >= 0; d--) {
        place[d] = at % shape[d];
        at /= shape[d];
    }
}

const char *lm_place_text(const luma_state *S, lm_text *buffer, int ndim, const int64_t *place) {
    return list_text(buffer, ", ", ndim, place, S->index_base);
}

bool lm_numel_fits(int ndim, const int64_t *shape, luma_dtype dtype, int64_t *numel) {
    const int64_t limit = INT64_C(1) << 62;
    int64_t n = 1, largest = (int64_t)lm_dtypes[dtype].size;
    bool empty = false;
    /* Dims of size 0 must not hide a product of the others that strides could not hold. */
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            empty = true;
        else if (!lm_mul_fits(largest, shape[d], &largest) || largest > limit)
            return false;
    }
    for (int d = 0; d < ndim && !empty; d++)
        n *= shape[d];
    *numel = empty ? 0 : n;
    return true;
}
