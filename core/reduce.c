/* reduce.c -- reductions: which dims, which dtype, which errors; then the device's reduce slot.
** Layer: core. */
#include <float.h>
#include <string.h>

#include "tensor.h"

/* Reduced dims, and the result's shape with and without them. */
typedef struct {
    uint32_t mask;
    int64_t reduced, kept; /* number of elements behind one result; number of results */
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
} target;

static luma_status find_target(luma_state *S, target *t, const luma_tensor *x, int argument, int n,
                               const int64_t *dims, bool keepdim) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dims_mask(S, argument, n, dims, x->layout.ndim, &t->mask));
    t->reduced = t->kept = 1;
    t->ndim = 0;
    for (int d = 0; d < x->layout.ndim; d++) {
        int64_t size = x->layout.shape[d];
        bool reduced = t->mask >> d & 1;
        *(reduced ? &t->reduced : &t->kept) *= size;
        if (!reduced || keepdim) t->shape[t->ndim++] = reduced ? 1 : size;
    }
    return LUMA_OK;
}

static bool picks(lm_op op) {
    return op == LM_OP_amax || op == LM_OP_amin || op == LM_OP_argmax || op == LM_OP_argmin ||
           op == LM_OP_max || op == LM_OP_min;
}

/* A greatest or least element must exist where a result does, and what has no start. */
static luma_status check_some(luma_state *S, const luma_tensor *x, const target *t) {
    if (t->reduced > 0 || t->kept == 0) return LUMA_OK;
    const luma_layout *l = &x->layout;
    lm_text text;
    lm_layout_text(&text, l);
    for (int d = 0; d < l->ndim; d++) {
        if ((t->mask >> d & 1) && l->shape[d] == 0 && l->ndim > 1)
            return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements along dim %lld", text.text,
                           (long long)lm_pos(S, d));
    }
    return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements", text.text);
}

static luma_status check_picks(luma_state *S, lm_op op, const luma_tensor *x, const target *t) {
    return picks(op) ? check_some(S, x, t) : LUMA_OK;
}

static luma_dtype result_dtype(const luma_state *S, lm_op op, luma_dtype x) {
    switch (lm_ops[op].result) {
    case LM_RESULT_SUM:
        return lm_dtype_is_float(x) ? x : LUMA_INT64;
    case LM_RESULT_FLOAT:
        return lm_dtype_floating(S, x);
    case LM_RESULT_BOOL:
        return LUMA_BOOL;
    case LM_RESULT_INDEX:
        return LUMA_INT64;
    case LM_RESULT_SAME:
        break;
    }
    return x;
}

/* 1 but for the norm, where it is the p. */
static double usual_correction(lm_op op) {
    return op == LM_OP_norm ? 2 : 1;
}

/* The result as the slot wants it: the rank of x, reduced dims with size 1. */
static luma_tensor kept_view(const luma_tensor *result, const luma_tensor *x, const target *t) {
    luma_tensor view = *result;
    if (result->layout.ndim == x->layout.ndim) return view;
    luma_layout *l = &view.layout;
    l->ndim = x->layout.ndim;
    for (int d = 0, from = 0; d < l->ndim; d++) {
        bool reduced = t->mask >> d & 1;
        l->shape[d] = reduced ? 1 : result->layout.shape[from];
        l->stride[d] = reduced ? 1 : result->layout.stride[from];
        if (!reduced) from++;
    }
    return view;
}

static luma_status call_slot(luma_state *S, const lm_reduce *r) {
    lm_device *d = lm_device_of(&r->x);
    return LM_SLOT(S, d, reduce, lm_ops[r->op].name, r->x.dtype, r);
}

static luma_status reduce(luma_state *S, lm_op op, luma_tensor *out, const luma_tensor *x, int n,
                          const int64_t *dims, bool keepdim, double correction) {
    target t;
    lm_result r;
    LM_TRY(find_target(S, &t, x, op == LM_OP_norm ? 3 : 2, n, dims, keepdim));
    if (picks(op) && lm_ops[op].result == LM_RESULT_INDEX && n > 1)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "one dim expected, %d given", n);
    LM_TRY(check_picks(S, op, x, &t));
    if (op == LM_OP_norm && (correction < 0 || correction > DBL_MAX)) LM_TRY(check_some(S, x, &t));
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), result_dtype(S, op, x->dtype), t.ndim,
                          t.shape, &x, 1, 0));
    lm_reduce call = {.op = op, .dims = t.mask, .correction = correction, .x = *x};
    call.out = kept_view(&r.work, x, &t);
    return lm_result_close(S, &r, call_slot(S, &call));
}

#define REDUCE(name, ...)                                                                          \
    luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,          \
                            const int64_t *dims, bool keepdim) {                                   \
        return reduce(S, LM_OP_##name, out, x, n, dims, keepdim, usual_correction(LM_OP_##name));  \
    }
#include "ops.def"

luma_status luma_var_correction(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                const int64_t *dims, bool keepdim, double correction) {
    return reduce(S, LM_OP_var, out, x, n, dims, keepdim, correction);
}

luma_status luma_std_correction(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                const int64_t *dims, bool keepdim, double correction) {
    return reduce(S, LM_OP_std, out, x, n, dims, keepdim, correction);
}

luma_status luma_norm_p(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                        const int64_t *dims, bool keepdim, double p) {
    if (p != p) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "p is NaN: a number expected");
    return reduce(S, LM_OP_norm, out, x, n, dims, keepdim, p);
}

/* ---- two results ----------------------------------------------------------------------------*/

static luma_status call_pair(luma_state *S, lm_op op, lm_reduce *call) {
    if (op != LM_OP_aminmax) return call_slot(S, call);
    luma_tensor greatest = call->positions;
    call->op = LM_OP_amin;
    call->positions = LUMA_NEW;
    LM_TRY(call_slot(S, call));
    call->op = LM_OP_amax;
    call->out = greatest;
    return call_slot(S, call);
}

/* Values and, of dtype `second`, positions, means or greatest values. */
static luma_status pair(luma_state *S, lm_op op, luma_tensor outs[2], const luma_tensor *x,
                        const target *t, luma_dtype first, luma_dtype second, double correction) {
    lm_pair p;
    LM_TRY(lm_pair_open_of(S, &p, outs, x, first, second, t->ndim, t->shape));
    lm_reduce call = {.op = op == LM_OP_var_mean   ? LM_OP_var
                            : op == LM_OP_std_mean ? LM_OP_std
                                                   : op,
                      .dims = t->mask,
                      .correction = correction,
                      .x = *x};
    call.out = kept_view(&p.values.work, x, t);
    call.positions = kept_view(&p.positions.work, x, t);
    return lm_pair_close(S, &p, call_pair(S, op, &call));
}

static luma_status pick_pair(luma_state *S, lm_op op, luma_tensor outs[2], int64_t dim,
                             bool keepdim, const luma_tensor *x) {
    target t;
    LM_TRY(find_target(S, &t, x, 2, 1, &dim, keepdim));
    LM_TRY(check_picks(S, op, x, &t));
    return pair(S, op, outs, x, &t, x->dtype, LUMA_INT64, 0);
}

luma_status luma_aminmax(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                         const int64_t *dims, bool keepdim) {
    target t;
    LM_TRY(find_target(S, &t, x, 2, n, dims, keepdim));
    LM_TRY(check_picks(S, LM_OP_amax, x, &t));
    return pair(S, LM_OP_aminmax, outs, x, &t, x->dtype, x->dtype, 0);
}

static luma_status with_mean(luma_state *S, lm_op op, luma_tensor outs[2], const luma_tensor *x,
                             int n, const int64_t *dims, bool keepdim, double correction) {
    target t;
    LM_TRY(find_target(S, &t, x, 2, n, dims, keepdim));
    luma_dtype dtype = result_dtype(S, LM_OP_var, x->dtype);
    return pair(S, op, outs, x, &t, dtype, dtype, correction);
}

luma_status luma_var_mean(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                          const int64_t *dims, bool keepdim, double correction) {
    return with_mean(S, LM_OP_var_mean, outs, x, n, dims, keepdim, correction);
}

luma_status luma_std_mean(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                          const int64_t *dims, bool keepdim, double correction) {
    return with_mean(S, LM_OP_std_mean, outs, x, n, dims, keepdim, correction);
}

luma_status luma_max(luma_state *S, luma_tensor outs[2], bool has_dim, int64_t dim, bool keepdim,
                     const luma_tensor *x) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (has_dim) return pick_pair(S, LM_OP_max, outs, dim, keepdim, x);
    return reduce(S, LM_OP_amax, &outs[0], x, 0, NULL, keepdim, 1.0);
}

luma_status luma_min(luma_state *S, luma_tensor outs[2], bool has_dim, int64_t dim, bool keepdim,
                     const luma_tensor *x) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (has_dim) return pick_pair(S, LM_OP_min, outs, dim, keepdim, x);
    return reduce(S, LM_OP_amin, &outs[0], x, 0, NULL, keepdim, 1.0);
}

/* ---- trace ----------------------------------------------------------------------------------*/

luma_status luma_trace(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    luma_tensor diagonal = LUMA_NEW;
    lm_text text;
    LM_TRY(lm_tensor_live(S, 1, x));
    if (x->layout.ndim != 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: a matrix (2 dims) expected",
                       lm_layout_text(&text, &x->layout));
    LM_TRY(luma_diagonal(S, &diagonal, x, 0, 0, 1));
    luma_status status = luma_sum(S, out, &diagonal, 0, NULL, false);
    luma_release(S, &diagonal);
    return status;
}
