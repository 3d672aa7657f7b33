/* scan.c -- running sums and such, softmax, log_softmax: dtype and dim; then the device's scan slot.
** Layer: core. */
#include "compose.h"

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

/* ---- differences ---- */

/* One element less along dim (none stays none). */
static luma_status step(luma_state *S, luma_tensor *out, const luma_tensor *x, int dim) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *above = lm_temp(&s), *below = lm_temp(&s);
    int64_t n = x->layout.shape[dim];
    LM_DO(&s, luma_narrow(S, above, x, dim, n > 0 ? 1 : 0, n > 0 ? n - 1 : 0));
    LM_DO(&s, luma_narrow(S, below, x, dim, 0, n > 0 ? n - 1 : 0));
    LM_DO(&s,
          x->dtype == LUMA_BOOL ? luma_ne(S, out, above, below) : luma_sub(S, out, above, below));
    return lm_scope_close(&s);
}

static luma_status check_beside(luma_state *S, int argument, const luma_tensor *x, int dim,
                                const luma_tensor *beside) {
    if (!beside) return LUMA_OK;
    LM_TRY(lm_tensor_live(S, argument, beside));
    const luma_layout *a = &x->layout, *b = &beside->layout;
    bool fits = b->ndim == a->ndim;
    for (int d = 0; d < a->ndim && fits; d++)
        fits = d == dim || a->shape[d] == b->shape[d];
    if (fits) return LUMA_OK;
    lm_text text, other;
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s beside %s: sizes differ in more than dim %lld",
                   lm_layout_text(&text, b), lm_layout_text(&other, a), (long long)lm_pos(S, dim));
}

luma_status luma_diff(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t n, int64_t dim,
                      const luma_tensor *prepend, const luma_tensor *append) {
    int d;
    LM_TRY(lm_tensor_live(S, 1, x));
    if (x->layout.ndim == 0) return lm_fail(S, LUMA_ERR_SHAPE, 1, "a 0-d tensor has no neighbours");
    if (n < 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "n is %lld: 0 or more expected", (long long)n);
    LM_TRY(lm_dim(S, 3, dim, x->layout.ndim, &d));
    LM_TRY(check_beside(S, 4, x, d, prepend));
    LM_TRY(check_beside(S, 5, x, d, append));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *now = lm_temp(&s), *next = lm_temp(&s);
    luma_tensor list[3];
    int count = 0;
    if (prepend) list[count++] = *prepend;
    list[count++] = *x;
    if (append) list[count++] = *append;
    LM_DO(&s, count > 1 ? luma_cat(S, now, count, list, d) : lm_tensor_view(S, now, x, &x->layout));
    if (n == 0) {
        LM_DO(&s, luma_clone(S, out, now));
        return lm_scope_close(&s);
    }
    for (; n > 1 && s.status == LUMA_OK && now->layout.shape[d] > 0; n--) {
        LM_DO(&s, step(S, next, now, d));
        lm_temp_drop(&s, now);
        *now = *next;
        *next = LUMA_NEW;
    }
    LM_DO(&s, step(S, out, now, d));
    return lm_scope_close(&s);
}
