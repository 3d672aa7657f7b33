/* blend.c -- elementwise operations that are compositions of rows: blends of tensors, replaced and
** rounded values, gates; and rows of elements repeated, turned or put together. Small floats are
** computed in float32. Formulas are those of PyTorch. Layer: core. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compose.h"
#include "memory.h"

static luma_tensor weak(luma_scalar v) {
    luma_tensor t = luma_number(0);
    t.number = v;
    return t;
}

static luma_dtype wide(luma_dtype dtype) {
    return (luma_dtype)lm_dtypes[dtype].compute;
}

/* Tensors, not numbers, that broadcast together on one device. */
static luma_status check(luma_state *S, const luma_tensor *const *xs, int n) {
    lm_device *device;
    int ndim = 0;
    int64_t shape[LUMA_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        if (!xs[i]->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "a tensor expected");
    }
    LM_TRY(lm_same_device(S, xs, n, &device));
    for (int i = 0; i < n; i++)
        LM_TRY(lm_shape_broadcast(S, ndim, shape, xs[i]->layout.ndim, xs[i]->layout.shape, &ndim,
                                  shape));
    return LUMA_OK;
}

/* What the composition computes in, of values that shall have the dtype `result`. */
static luma_tensor *as(lm_scope *s, const luma_tensor *x, luma_dtype result) {
    return lm_temp_cast(s, x, wide(result));
}

/* r, a temporary in the wide dtype, as the result. */
static luma_status give(lm_scope *s, luma_tensor *out, luma_tensor *r, luma_dtype result) {
    LM_DO(s, lm_cast(s->S, out, r, result));
    return lm_scope_close(s);
}

/* ---- blends ----------------------------------------------------------------------------------*/

static luma_status add_scaled(luma_state *S, luma_tensor *out, const luma_tensor *const *xs,
                              luma_scalar value, bool quotient) {
    LM_TRY(check(S, xs, 3));
    luma_dtype result =
        lm_dtype_promote(lm_dtype_promote(xs[0]->dtype, xs[1]->dtype), xs[2]->dtype);
    bool real = lm_dtype_is_float(result);
    if (quotient) result = lm_dtype_floating(S, result);
    if (!real && !quotient && value.kind == LUMA_IS_FLOAT)
        return lm_fail(S, LUMA_ERR_DTYPE, 4, "%g: a whole number expected for %s", value.u.d,
                       lm_dtypes[result].name);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *x = as(&s, xs[0], result), *a = as(&s, xs[1], result), *b = as(&s, xs[2], result);
    luma_tensor *m = lm_temp(&s), *r = lm_temp(&s), factor = weak(value);
    bool one = value.kind == LUMA_IS_FLOAT ? value.u.d == 1 : value.u.i == 1;
    luma_tensor *scaled = a;
    if (!one) {
        scaled = lm_temp(&s);
        LM_DO(&s, luma_mul(S, scaled, a, &factor));
    }
    LM_DO(&s, (quotient ? luma_div : luma_mul)(S, m, scaled, b));
    LM_DO(&s, luma_add(S, r, x, m));
    return give(&s, out, r, result);
}

luma_status luma_addcmul(luma_state *S, luma_tensor *out, const luma_tensor *x,
                         const luma_tensor *a, const luma_tensor *b, luma_scalar value) {
    return add_scaled(S, out, (const luma_tensor *[]){x, a, b}, value, false);
}

luma_status luma_addcdiv(luma_state *S, luma_tensor *out, const luma_tensor *x,
                         const luma_tensor *a, const luma_tensor *b, luma_scalar value) {
    return add_scaled(S, out, (const luma_tensor *[]){x, a, b}, value, true);
}

/* Of the two forms the one that is exact at the nearer end. */
static void lerp_by_tensor(lm_scope *s, luma_tensor *r, const luma_tensor *x,
                           const luma_tensor *end, const luma_tensor *w, luma_tensor *d) {
    luma_state *S = s->S;
    luma_tensor *from = lm_temp(s), *back = lm_temp(s), *rest = lm_temp(s), *low = lm_temp(s);
    luma_tensor half = luma_number(0.5);
    LM_DO(s, luma_mul(S, from, d, w));
    LM_DO(s, luma_add(S, from, x, from));
    LM_DO(s, luma_affine(S, rest, w, luma_number(-1).number, luma_number(1).number));
    LM_DO(s, luma_mul(S, back, d, rest));
    LM_DO(s, luma_sub(S, back, end, back));
    LM_DO(s, luma_lt(S, low, w, &half));
    LM_DO(s, luma_where(S, r, low, from, back));
}

luma_status luma_lerp(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *end,
                      const luma_tensor *weight) {
    const luma_tensor *xs[] = {x, end, weight};
    bool number = lm_is_number(weight);
    LM_TRY(check(S, xs, number ? 2 : 3));
    luma_dtype result = lm_dtype_promote(x->dtype, end->dtype);
    if (!number) result = lm_dtype_promote(result, weight->dtype);
    result = lm_dtype_floating(S, result);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *a = as(&s, x, result), *b = as(&s, end, result);
    luma_tensor *d = lm_temp(&s), *m = lm_temp(&s), *r = lm_temp(&s);
    LM_DO(&s, luma_sub(S, d, b, a));
    if (number) {
        luma_scalar v = weight->number;
        double w = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
        luma_tensor factor = luma_number(w < 0.5 ? w : 1 - w);
        LM_DO(&s, luma_mul(S, m, d, &factor));
        LM_DO(&s,
              w < 0.5 ? luma_add(S, r, a, m) : luma_sub(S, r, b, m)); /* exact at the nearer end */
    } else {
        lerp_by_tensor(&s, r, a, b, as(&s, weight, result), d);
    }
    return give(&s, out, r, result);
}

/* ---- values replaced and rounded -------------------------------------------------------------*/

static double greatest(luma_dtype dtype) {
    switch (dtype) {
    case LUMA_FLOAT8_E4M3:
        return 448;
    case LUMA_FLOAT16:
        return 65504;
    case LUMA_BFLOAT16:
        return 0x1.FEp127;
    case LUMA_FLOAT32:
        return (double)FLT_MAX;
    default:
        return DBL_MAX;
    }
}

luma_status luma_nan_to_num(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_scalar *nan, const luma_scalar *above,
                            const luma_scalar *below) {
    LM_TRY(check(S, &x, 1));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *r = lm_temp(&s);
    if (!lm_dtype_is_float(x->dtype)) {
        LM_DO(&s, luma_clone(S, r, x));
        LM_DO(&s, lm_give(&s, out, r));
        return lm_scope_close(&s);
    }
    double most = greatest(x->dtype);
    luma_tensor *mask = lm_temp(&s),
                ends[2] = {luma_number((double)INFINITY), luma_number(-(double)INFINITY)};
    luma_tensor zero = nan ? weak(*nan) : luma_number(0);
    LM_DO(&s, luma_isnan(S, mask, x));
    if (!above && !below) {
        LM_DO(&s, luma_clamp(S, r, x, luma_number(-most).number, luma_number(most).number));
        LM_DO(&s, luma_masked_fill(S, r, r, mask, &zero));
    } else {
        LM_DO(&s, luma_masked_fill(S, r, x, mask, &zero));
        for (int i = 0; i < 2; i++) {
            const luma_scalar *given = i ? below : above;
            luma_tensor value = given ? weak(*given) : luma_number(i ? -most : most);
            lm_temp_drop(&s, mask);
            LM_DO(&s, luma_eq(S, mask, x, &ends[i]));
            LM_DO(&s, luma_masked_fill(S, r, r, mask, &value));
        }
    }
    LM_DO(&s, lm_give(&s, out, r));
    return lm_scope_close(&s);
}

luma_status luma_round_decimals(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                int64_t decimals) {
    LM_TRY(check(S, &x, 1));
    if (decimals < -400 || decimals > 400)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld decimals: -400 to 400 expected",
                       (long long)decimals);
    if (decimals == 0 || (!lm_dtype_is_float(x->dtype) && decimals > 0))
        return luma_round(S, out, x);
    if (!lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s has no digits to round: float expected",
                       lm_dtypes[x->dtype].name);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *w = as(&s, x, x->dtype), *r = lm_temp(&s), *y = lm_temp(&s);
    luma_tensor power = luma_number(pow(10, fabs((double)decimals)));
    LM_DO(&s, (decimals > 0 ? luma_mul : luma_div)(S, r, w, &power));
    LM_DO(&s, luma_round(S, r, r));
    LM_DO(&s, (decimals > 0 ? luma_div : luma_mul)(S, y, r, &power));
    return give(&s, out, y, x->dtype);
}

/* The neighbour of x toward y: the bits of floats, but for their sign, count up from 0. */
luma_status luma_nextafter(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_tensor *y) {
    LM_TRY(check(S, (const luma_tensor *[]){x, y}, 2));
    luma_dtype result = lm_dtype_promote(x->dtype, y->dtype);
    result = lm_dtype_floating(S, result);
    size_t size = lm_dtype_size(result);
    luma_dtype bits = size == 1   ? LUMA_INT8
                      : size == 2 ? LUMA_INT16
                      : size == 4 ? LUMA_INT32
                                  : LUMA_INT64;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *a = lm_temp(&s), *b = lm_temp(&s), *above = lm_temp(&s), *positive = lm_temp(&s);
    luma_tensor *away = lm_temp(&s), *step = lm_temp(&s), *next = lm_temp(&s), *least = lm_temp(&s);
    luma_tensor *at_0 = lm_temp(&s), *same = lm_temp(&s), *nan = lm_temp(&s), *r = lm_temp(&s);
    luma_tensor *sum = lm_temp(&s), *q = lm_temp(&s), zero = luma_number(0), of = LUMA_NEW;
    LM_DO(&s, lm_cast(S, a, x, result));
    LM_DO(&s, lm_cast(S, b, y, result));
    LM_DO(&s, luma_gt(S, above, b, a));
    LM_DO(&s, luma_gt(S, positive, a, &zero));
    LM_DO(&s, luma_eq(S, away, above, positive));
    LM_DO(&s, lm_cast(S, step, away, bits));
    LM_DO(&s, luma_affine(S, step, step, luma_integer(2).number, luma_integer(-1).number));
    if (s.status == LUMA_OK) {
        of = *a; /* borrowed */
        of.dtype = bits;
    }
    LM_DO(&s, luma_add(S, next, &of, step));
    if (s.status == LUMA_OK) next->dtype = result;
    /* bits of 1: the least number above 0 */
    LM_DO(&s, lm_tensor_new(S, least, lm_device_of(a), bits, 0, NULL));
    LM_DO(&s, lm_fill(S, least, luma_integer(1).number));
    if (s.status == LUMA_OK) least->dtype = result;
    LM_DO(&s, luma_copysign(S, sum, least, b));
    LM_DO(&s, luma_eq(S, at_0, a, &zero));
    LM_DO(&s, luma_where(S, r, at_0, sum, next));
    lm_temp_drop(&s, sum);
    LM_DO(&s, luma_eq(S, same, a, b));
    LM_DO(&s, luma_where(S, q, same, b, r));
    LM_DO(&s, luma_add(S, sum, a, b));
    LM_DO(&s, luma_ne(S, nan, a, a));
    lm_temp_drop(&s, positive);
    LM_DO(&s, luma_ne(S, positive, b, b));
    LM_DO(&s, luma_logical_or(S, nan, nan, positive));
    lm_temp_drop(&s, r);
    LM_DO(&s, luma_where(S, r, nan, sum, q));
    LM_DO(&s, lm_give(&s, out, r));
    return lm_scope_close(&s);
}

/* ---- gates -----------------------------------------------------------------------------------*/

static luma_status gated(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                         bool swish) {
    int d;
    LM_TRY(check(S, &x, 1));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    if (x->layout.ndim == 0) return lm_fail(S, LUMA_ERR_SHAPE, 1, "a 0-d tensor has no halves");
    int64_t size = x->layout.shape[d];
    lm_text text;
    if (size % 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: an even size of dim %lld expected",
                       lm_layout_text(&text, &x->layout), (long long)lm_pos(S, d));
    luma_dtype result = lm_dtype_floating(S, x->dtype);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *a = lm_temp(&s), *b = lm_temp(&s), *g = lm_temp(&s), *r = lm_temp(&s);
    LM_DO(&s, luma_narrow(S, a, x, d, 0, size / 2));
    LM_DO(&s, luma_narrow(S, b, x, d, size / 2, size / 2));
    luma_tensor *left = as(&s, a, result), *right = as(&s, b, result);
    LM_DO(&s, swish ? luma_silu(S, g, left) : luma_sigmoid(S, g, right));
    LM_DO(&s, luma_mul(S, r, g, swish ? right : left));
    return give(&s, out, r, result);
}

luma_status luma_glu(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return gated(S, out, x, dim, false);
}

luma_status luma_swiglu(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    return gated(S, out, x, dim, true);
}

luma_status luma_prelu(luma_state *S, luma_tensor *out, const luma_tensor *x,
                       const luma_tensor *weight) {
    const luma_tensor *xs[] = {x, weight};
    LM_TRY(check(S, xs, 1));
    if (!weight->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "a tensor expected");
    lm_device *device;
    LM_TRY(lm_same_device(S, xs, 2, &device));
    int64_t n = luma_numel(weight), channels = x->layout.ndim > 1 ? x->layout.shape[1] : 1;
    if (weight->layout.ndim > 1 || (n != 1 && n != channels))
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%lld weights: 1 or %lld, one a channel, expected",
                       (long long)n, (long long)channels);
    luma_dtype result = lm_dtype_promote(x->dtype, weight->dtype);
    result = lm_dtype_floating(S, result);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *a = as(&s, x, result), *w = as(&s, weight, result);
    luma_tensor *view = lm_temp(&s), *m = lm_temp(&s), *up = lm_temp(&s), *r = lm_temp(&s);
    int64_t shape[LUMA_MAX_DIMS];
    for (int d = 0; d < x->layout.ndim; d++)
        shape[d] = d == 1 ? n : 1;
    luma_tensor zero = luma_number(0);
    LM_DO(&s, luma_reshape(S, view, w, x->layout.ndim, shape));
    LM_DO(&s, luma_mul(S, m, a, view));
    LM_DO(&s, luma_gt(S, up, a, &zero));
    LM_DO(&s, luma_where(S, r, up, a, m));
    return give(&s, out, r, result);
}

/* ---- elements repeated, turned, put together -------------------------------------------------*/

luma_status luma_rot90(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t k, int n,
                       const int64_t *dims) {
    int64_t own[2] = {0, 1};
    int d[2];
    LM_TRY(check(S, &x, 1));
    if (n != 0 && n != 2) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%d dims: two expected", n);
    for (int i = 0; i < 2; i++) {
        LM_TRY(lm_dim(S, n ? 3 : 1, n ? dims[i] : own[i], x->layout.ndim, &d[i]));
        own[i] = d[i];
    }
    if (d[0] == d[1]) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "two different dims expected");
    int64_t turns = ((k % 4) + 4) % 4;
    if (turns == 0) return luma_detach(S, out, x);
    if (turns == 2) return luma_flip(S, out, x, 2, own);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *f = lm_temp(&s);
    LM_DO(&s, luma_flip(S, f, x, 1, &own[turns == 1 ? 1 : 0]));
    LM_DO(&s, luma_transpose(S, out, f, d[0], d[1]));
    return lm_scope_close(&s);
}

/* repeats, one for each of n positions or one for all, as positions on a device: 0 repeats[0] times, 1
** repeats[1] times, ... */
static luma_status positions_of(luma_state *S, luma_tensor *positions, const luma_tensor *repeats,
                                int64_t n, lm_device *device) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *flat = lm_temp(&s), *made = lm_temp(&s);
    LM_DO(&s, lm_tensor_new(S, flat, lm_cpu(S), LUMA_INT64, repeats->layout.ndim,
                            repeats->layout.shape));
    LM_DO(&s, lm_copy(S, flat, repeats));
    if (s.status != LUMA_OK) return lm_scope_close(&s);
    int64_t count = luma_numel(flat), total = 0;
    const int64_t *r = (const int64_t *)(const void *)lm_data(flat);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = r[count == 1 ? 0 : i];
        if (v < 0 || total > INT64_MAX / 16 - v) {
            lm_scope_close(&s);
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld repeats at position %lld: %s",
                           (long long)v, (long long)lm_pos(S, i),
                           v < 0 ? "0 or more expected" : "the result is too large");
        }
        total += v;
    }
    LM_DO(&s, lm_tensor_new(S, made, lm_cpu(S), LUMA_INT64, 1, &total));
    if (s.status == LUMA_OK) {
        int64_t *to = (int64_t *)(void *)lm_data(made);
        for (int64_t i = 0; i < n; i++) {
            for (int64_t k = r[count == 1 ? 0 : i]; k > 0; k--)
                *to++ = i + S->index_base;
        }
    }
    LM_DO(&s, luma_to_device(S, positions, made, device->name));
    return lm_scope_close(&s);
}

/* Every position along d becomes a run: a new dim of that size, which joins its own. */
static luma_status repeat_each(luma_state *S, luma_tensor *out, const luma_tensor *x, int d,
                               int64_t times) {
    int64_t shape[LUMA_MAX_DIMS], numel;
    const int ndim = x->layout.ndim;
    const int64_t n = x->layout.shape[d];
    memcpy(shape, x->layout.shape, sizeof shape);
    if (ndim == LUMA_MAX_DIMS || !lm_mul_fits(n, times, &shape[d]) ||
        !lm_numel_fits(ndim, shape, x->dtype, &numel))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld repeats of %lld positions in %d dim%s",
                       (long long)times, (long long)n, ndim, ndim == 1 ? "" : "s");
    luma_tensor runs = *x;
    runs.layout = lm_layout_insert(&x->layout, d + 1, times, 0);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *made = lm_temp(&s), *r = lm_temp(&s);
    LM_DO(&s, luma_force_contiguous(S, made, &runs));
    LM_DO(&s, luma_reshape(S, r, made, ndim, shape));
    LM_DO(&s, lm_give(&s, out, r));
    return lm_scope_close(&s);
}

static luma_status check_repeats(luma_state *S, const luma_tensor *x, const luma_tensor *repeats,
                                 int64_t n) {
    lm_device *device;
    if (lm_is_number(repeats)) {
        if (repeats->number.kind == LUMA_IS_INT && repeats->number.u.i >= 0) return LUMA_OK;
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "whole numbers, not negative, expected");
    }
    LM_TRY(lm_tensor_check(S, 2, repeats, false));
    if (!lm_dtype_is_int(repeats->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 2, "%s: an integer dtype expected",
                       lm_dtypes[repeats->dtype].name);
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){x, repeats}, 2, &device));
    if (repeats->layout.ndim <= 1 && (luma_numel(repeats) == 1 || luma_numel(repeats) == n))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, 2, "%lld repeats for %lld positions",
                   (long long)luma_numel(repeats), (long long)n);
}

luma_status luma_repeat_interleave(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                   const luma_tensor *repeats, const int64_t *dim) {
    int d = 0;
    LM_TRY(check(S, &x, 1));
    if (dim) LM_TRY(lm_dim(S, 3, *dim, x->layout.ndim, &d));
    if (dim && x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "a 0-d tensor has no positions along a dim");
    const int64_t n = dim ? x->layout.shape[d] : luma_numel(x);
    LM_TRY(check_repeats(S, x, repeats, n));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *flat = lm_temp(&s), *at = lm_temp(&s);
    if (!dim) LM_DO(&s, luma_reshape(S, flat, x, 1, &n));
    const luma_tensor *from = dim ? x : flat;
    if (s.status == LUMA_OK && lm_is_number(repeats)) {
        s.status = repeat_each(S, out, from, d, repeats->number.u.i);
        return lm_scope_close(&s);
    }
    if (s.status == LUMA_OK) s.status = positions_of(S, at, repeats, n, lm_device_of(x));
    LM_DO(&s, luma_index_select(S, out, from, d, at));
    return lm_scope_close(&s);
}

/* The list with one dim each at least, or two (vertical), as PyTorch's atleast_1d and atleast_2d give them. */
static luma_status stacked(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs,
                           bool vertical) {
    if (n < 1) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "an empty list");
    luma_tensor *views = lm_memory_resize(S, NULL, (size_t)n * sizeof *views);
    if (!views) return LUMA_ERR_MEMORY;
    luma_status status = LUMA_OK;
    int most = 0, done = 0;
    const luma_tensor none = LUMA_NEW;
    for (int i = 0; i < n && status == LUMA_OK; i++) {
        int64_t shape[2] = {1, xs[i].storage ? luma_numel(&xs[i]) : 0};
        views[i] = none;
        done = i + 1;
        if (!xs[i].storage)
            status =
                lm_fail(S, LUMA_ERR_ARGUMENT, 1, "item %lld is a number", (long long)lm_pos(S, i));
        else if (vertical && xs[i].layout.ndim < 2)
            status = luma_reshape(S, &views[i], &xs[i], 2, shape);
        else if (xs[i].layout.ndim < 1)
            status = luma_reshape(S, &views[i], &xs[i], 1, shape);
        else
            status = luma_detach(S, &views[i], &xs[i]);
        if (status == LUMA_OK && views[i].layout.ndim > most) most = views[i].layout.ndim;
    }
    if (status == LUMA_OK) status = luma_cat(S, out, n, views, vertical || most < 2 ? 0 : 1);
    for (int i = 0; i < done; i++)
        luma_release(S, &views[i]);
    free(views);
    return status;
}

luma_status luma_hstack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs) {
    return stacked(S, out, n, xs, false);
}

luma_status luma_vstack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs) {
    return stacked(S, out, n, xs, true);
}
