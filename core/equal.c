/* equal.c -- comparisons of whole tensors that give one boolean. Large tensors are taken in parts:
** masks stay small, and the first difference ends the search. Layer: core. */
#include <string.h>

#include "compose.h"

#define PART (1 << 18) /* elements compared at once */

/* mask = where x and y agree; new. */
typedef luma_status agree_fn(luma_state *S, luma_tensor *mask, const luma_tensor *x,
                             const luma_tensor *y, const void *rule);

static luma_status all_hold(luma_state *S, bool *value, const luma_tensor *mask) {
    luma_tensor all = LUMA_NEW;
    luma_scalar v;
    LM_TRY(luma_all(S, &all, mask, 0, NULL, false));
    luma_status status = lm_item(S, &all, &v);
    luma_release(S, &all);
    if (status == LUMA_OK) *value = v.u.i != 0;
    return status;
}

/* x and y have one shape. */
static luma_status agree_everywhere(luma_state *S, bool *value, const luma_tensor *x,
                                    const luma_tensor *y, agree_fn *agree, const void *rule) {
    const luma_layout *l = &x->layout;
    int longest = 0;
    for (int d = 1; d < l->ndim; d++) {
        if (l->shape[d] > l->shape[longest]) longest = d;
    }
    if (lm_layout_numel(l) <= PART) {
        luma_tensor mask = LUMA_NEW;
        LM_TRY(agree(S, &mask, x, y, rule));
        luma_status status = all_hold(S, value, &mask);
        luma_release(S, &mask);
        return status;
    }
    int64_t half = l->shape[longest] / 2;
    for (int part = 0; part < 2; part++) {
        int64_t start = part ? half : 0, length = part ? l->shape[longest] - half : half;
        luma_tensor a = *x, b = *y; /* borrowed */
        a.layout = lm_layout_slice(&x->layout, longest, start, length, 1);
        b.layout = lm_layout_slice(&y->layout, longest, start, length, 1);
        LM_TRY(agree_everywhere(S, value, &a, &b, agree, rule));
        if (!*value) return LUMA_OK;
    }
    return LUMA_OK;
}

/* ---- equal ---- */

/* Where integers i of int64 are the floats f: f is whole, in range, and its integer is i. */
static luma_status same_wide(luma_state *S, luma_tensor *mask, const luma_tensor *i,
                             const luma_tensor *f) {
    enum { WHOLE, BACK, FLOAT, NEAR, EXACT, BELOW, NTEMPS };
    luma_tensor t[NTEMPS] = {{0}}, limit = luma_number(0x1p63);
    luma_status status = lm_cast(S, &t[WHOLE], f, LUMA_INT64); /* saturates */
    if (status == LUMA_OK) status = lm_cast(S, &t[FLOAT], f, LUMA_FLOAT64);
    if (status == LUMA_OK) status = lm_cast(S, &t[BACK], &t[WHOLE], LUMA_FLOAT64);
    if (status == LUMA_OK) status = luma_eq(S, &t[NEAR], i, &t[WHOLE]);
    if (status == LUMA_OK) status = luma_eq(S, &t[EXACT], &t[BACK], &t[FLOAT]);
    if (status == LUMA_OK) status = luma_lt(S, &t[BELOW], &t[FLOAT], &limit);
    if (status == LUMA_OK) status = luma_logical_and(S, mask, &t[NEAR], &t[EXACT]);
    if (status == LUMA_OK) status = luma_logical_and(S, mask, mask, &t[BELOW]);
    if (status != LUMA_OK) luma_release(S, mask);
    for (int k = 0; k < NTEMPS; k++)
        luma_release(S, &t[k]);
    return status;
}

/* eq promotes, and an integer may lose its last digits as a float; here every digit counts. */
static luma_status same(luma_state *S, luma_tensor *mask, const luma_tensor *x,
                        const luma_tensor *y, const void *rule) {
    (void)rule;
    bool real = lm_dtype_is_float(x->dtype);
    if (real == lm_dtype_is_float(y->dtype)) return luma_eq(S, mask, x, y);
    if (x->dtype == LUMA_INT64 || y->dtype == LUMA_INT64)
        return same_wide(S, mask, real ? y : x, real ? x : y);
    luma_tensor a = LUMA_NEW, b = LUMA_NEW;
    luma_status status = lm_cast(S, &a, x, LUMA_FLOAT64);
    if (status == LUMA_OK) status = lm_cast(S, &b, y, LUMA_FLOAT64);
    if (status == LUMA_OK) status = luma_eq(S, mask, &a, &b);
    luma_release(S, &a);
    luma_release(S, &b);
    return status;
}

luma_status luma_equal(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y) {
    const luma_tensor *both[] = {x, y};
    lm_device *device;
    LM_TRY(lm_same_device(S, both, 2, &device));
    for (int i = 0; i < 2; i++) {
        if (!both[i]->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "a tensor expected");
    }
    if (!lm_layout_same_shape(&x->layout, &y->layout)) {
        *value = false;
        return LUMA_OK;
    }
    return agree_everywhere(S, value, x, y, same, NULL);
}

/* ---- allclose ---- */

typedef struct {
    luma_scalar rtol, atol;
    bool equal_nan;
} tolerance;

static luma_status as_double(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    if (x->storage) return lm_cast(S, out, x, LUMA_FLOAT64);
    return luma_full(S, out, 0, NULL, x->number, LUMA_FLOAT64, "cpu");
}

/* mask |= both are NaN */
static luma_status accept_nan(luma_state *S, luma_tensor *mask, const luma_tensor *x,
                              const luma_tensor *y) {
    luma_tensor nan[3] = {LUMA_NEW, LUMA_NEW, LUMA_NEW};
    luma_status status = luma_isnan(S, &nan[0], x);
    if (status == LUMA_OK) status = luma_isnan(S, &nan[1], y);
    if (status == LUMA_OK) status = luma_logical_and(S, &nan[2], &nan[0], &nan[1]);
    if (status == LUMA_OK) status = luma_logical_or(S, mask, mask, &nan[2]);
    for (int i = 0; i < 3; i++)
        luma_release(S, &nan[i]);
    return status;
}

enum { DIFFERENCE, ALLOWED, NEAR, FINITE, SAME, NTEMPS };

/* Of x and y in float64; t are temporaries. Infinities agree only when equal: their difference may
** be within an allowance that is infinite itself. */
static luma_status mask_close(luma_state *S, luma_tensor *t, luma_tensor *mask,
                              const luma_tensor *x, const luma_tensor *y, const tolerance *rule) {
    LM_TRY(luma_sub(S, &t[DIFFERENCE], x, y));
    LM_TRY(luma_abs(S, &t[DIFFERENCE], &t[DIFFERENCE]));
    LM_TRY(luma_abs(S, &t[ALLOWED], y));
    LM_TRY(luma_affine(S, &t[ALLOWED], &t[ALLOWED], rule->rtol, rule->atol));
    LM_TRY(luma_le(S, &t[NEAR], &t[DIFFERENCE], &t[ALLOWED]));
    LM_TRY(luma_isfinite(S, &t[FINITE], &t[DIFFERENCE]));
    LM_TRY(luma_logical_and(S, &t[NEAR], &t[NEAR], &t[FINITE]));
    LM_TRY(luma_eq(S, &t[SAME], x, y));
    LM_TRY(luma_logical_or(S, mask, &t[NEAR], &t[SAME]));
    return rule->equal_nan ? accept_nan(S, mask, x, y) : LUMA_OK;
}

static luma_status near(luma_state *S, luma_tensor *mask, const luma_tensor *x,
                        const luma_tensor *y, const void *rule) {
    luma_tensor t[NTEMPS] = {{0}}, a = LUMA_NEW, b = LUMA_NEW;
    luma_status status = as_double(S, &a, x);
    if (status == LUMA_OK) status = as_double(S, &b, y);
    if (status == LUMA_OK) status = mask_close(S, t, mask, &a, &b, rule);
    if (status != LUMA_OK) luma_release(S, mask);
    for (int i = 0; i < NTEMPS; i++)
        luma_release(S, &t[i]);
    luma_release(S, &a);
    luma_release(S, &b);
    return status;
}

luma_status luma_allclose(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y,
                          double rtol, double atol, bool equal_nan) {
    const luma_tensor *both[] = {x, y};
    lm_device *device;
    tolerance rule = {{LUMA_IS_FLOAT, {.d = rtol}}, {LUMA_IS_FLOAT, {.d = atol}}, equal_nan};
    if (!(rtol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%g: not negative expected", rtol);
    if (!(atol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "%g: not negative expected", atol);
    LM_TRY(lm_same_device(S, both, 2, &device));
    luma_tensor a = *x, b = *y; /* borrowed; numbers stay numbers, 0-d tensors elsewhere 0-d */
    if (a.storage && b.storage && lm_device_of(x) == lm_device_of(y)) {
        int ndim;
        int64_t shape[LUMA_MAX_DIMS];
        LM_TRY(lm_shape_broadcast(S, a.layout.ndim, a.layout.shape, b.layout.ndim, b.layout.shape,
                                  &ndim, shape));
        a.layout = lm_layout_expand(&a.layout, ndim, shape);
        b.layout = lm_layout_expand(&b.layout, ndim, shape);
        return agree_everywhere(S, value, &a, &b, near, &rule);
    }
    luma_tensor mask = LUMA_NEW;
    LM_TRY(near(S, &mask, x, y, &rule));
    luma_status status = all_hold(S, value, &mask);
    luma_release(S, &mask);
    return status;
}

luma_status luma_isclose(luma_state *S, luma_tensor *out, const luma_tensor *x,
                         const luma_tensor *y, double rtol, double atol, bool equal_nan) {
    const luma_tensor *both[] = {x, y};
    lm_device *device;
    tolerance rule = {{LUMA_IS_FLOAT, {.d = rtol}}, {LUMA_IS_FLOAT, {.d = atol}}, equal_nan};
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor expected");
    if (!(rtol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%g: not negative expected", rtol);
    if (!(atol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "%g: not negative expected", atol);
    LM_TRY(lm_same_device(S, both, 2, &device));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *mask = lm_temp(&s);
    LM_DO(&s, near(S, mask, x, y, &rule));
    LM_DO(&s, lm_give(&s, out, mask));
    return lm_scope_close(&s);
}
