/* scan.c -- cumsum, softmax, log_softmax: dtype and dim; then the device's scan slot.
** Layer: core. */
#include "tensor.h"

static luma_status scan(luma_state *S, lm_op op, luma_tensor *out, const luma_tensor *x,
                        int64_t dim, luma_dtype integers) {
    lm_result r;
    lm_scan call = {.op = op};
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor expected");
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &call.dim));
    luma_dtype dtype = lm_dtype_is_float(x->dtype) ? x->dtype : integers;
    lm_device *d = lm_device_of(x);
    LM_TRY(lm_result_open(S, &r, out, d, dtype, x->layout.ndim, x->layout.shape, &x, 1, 0));
    call.x = *x;
    call.out = r.work;
    return lm_result_close(S, &r, LM_SLOT(S, d, scan, lm_ops[op].name, x->dtype, &call));
}

luma_status luma_cumsum(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_OP_cumsum, out, x, dim, LUMA_INT64);
}

luma_status luma_softmax(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_OP_softmax, out, x, dim, S->default_dtype);
}

luma_status luma_log_softmax(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return scan(S, LM_OP_log_softmax, out, x, dim, S->default_dtype);
}
