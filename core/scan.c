/* scan.c -- running sums and such, softmax, log_softmax: dtype and dim; then the device's scan slot.
** Layer: core. */
#include "tensor.h"

static luma_status scan(luma_state *S, lm_scan_kind kind, const char *name, luma_tensor *out,
                        const luma_tensor *x, int64_t dim, luma_dtype integers) {
    lm_result r;
    lm_scan call = {.kind = kind};
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor expected");
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &call.dim));
    luma_dtype dtype = lm_dtype_is_float(x->dtype) ? x->dtype : integers;
    lm_device *d = lm_device_of(x);
    LM_TRY(lm_result_open(S, &r, out, d, dtype, x->layout.ndim, x->layout.shape, &x, 1, 0));
    call.x = *x;
    call.out = r.work;
    return lm_result_close(S, &r, LM_SLOT(S, d, scan, name, x->dtype, &call));
}

luma_status luma_cumsum(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_SCAN_SUM, "cumsum", out, x, dim, LUMA_INT64);
}

luma_status luma_cumprod(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_SCAN_PROD, "cumprod", out, x, dim, LUMA_INT64);
}

luma_status luma_logcumsumexp(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_SCAN_LOGSUMEXP, "logcumsumexp", out, x, dim, S->default_dtype);
}

luma_status luma_softmax(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_SCAN_SOFTMAX, "softmax", out, x, dim, S->default_dtype);
}

luma_status luma_log_softmax(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_SCAN_LOG_SOFTMAX, "log_softmax", out, x, dim, S->default_dtype);
}

static luma_status extremes(luma_state *S, lm_scan_kind kind, const char *name, luma_tensor outs[2],
                            const luma_tensor *x, int64_t dim) {
    lm_pair p;
    lm_scan call = {.kind = kind, .index_base = S->index_base};
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &call.dim));
    LM_TRY(lm_pair_open(S, &p, outs, x, x->layout.ndim, x->layout.shape));
    call.x = *x;
    call.out = p.values.work;
    call.positions = p.positions.work;
    return lm_pair_close(S, &p, LM_SLOT(S, lm_device_of(x), scan, name, x->dtype, &call));
}

luma_status luma_cummax(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim) {
    return extremes(S, LM_SCAN_MAX, "cummax", outs, x, dim);
}

luma_status luma_cummin(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim) {
    return extremes(S, LM_SCAN_MIN, "cummin", outs, x, dim);
}
