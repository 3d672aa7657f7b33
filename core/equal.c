/* equal.c -- comparisons of whole tensors that give one boolean. Layer: core. */
#include <string.h>

#include "tensor.h"

/* *value = whether all of the mask holds. */
static luma_status all_hold(luma_state *S, bool *value, const luma_tensor *mask) {
    luma_tensor all = LUMA_NEW;
    luma_scalar v;
    LM_TRY(luma_all(S, &all, mask, 0, NULL, false));
    luma_status status = lm_item(S, &all, &v);
    luma_release(S, &all);
    if (status == LUMA_OK) *value = v.u.i != 0;
    return status;
}

luma_status luma_equal(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y) {
    const luma_tensor *both[] = {x, y};
    lm_device *device;
    luma_tensor mask = LUMA_NEW;
    LM_TRY(lm_same_device(S, both, 2, &device));
    if (x->storage && y->storage && !lm_layout_same_shape(&x->layout, &y->layout)) {
        *value = false;
        return LUMA_OK;
    }
    LM_TRY(luma_eq(S, &mask, x, y));
    luma_status status = all_hold(S, value, &mask);
    luma_release(S, &mask);
    return status;
}

/* ---- allclose: |x - y| <= atol + rtol |y|, in float64 ---- */

enum { X, Y, DIFFERENCE, ERROR, SIZE, ALLOWED, NEAR, FINITE, CLOSE, SAME, EITHER, NTEMPS };

static luma_status as_double(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    if (x->storage) return lm_cast(S, out, x, LUMA_FLOAT64);
    return luma_full(S, out, 0, NULL, x->number, LUMA_FLOAT64, "cpu");
}

static luma_status mask_close(luma_state *S, luma_tensor *t, const luma_tensor *x,
                              const luma_tensor *y, double rtol, double atol) {
    luma_scalar scale = {.kind = LUMA_IS_FLOAT, .u.d = rtol};
    luma_scalar shift = {.kind = LUMA_IS_FLOAT, .u.d = atol};
    LM_TRY(as_double(S, &t[X], x));
    LM_TRY(as_double(S, &t[Y], y));
    LM_TRY(luma_sub(S, &t[DIFFERENCE], &t[X], &t[Y]));
    LM_TRY(luma_abs(S, &t[ERROR], &t[DIFFERENCE]));
    LM_TRY(luma_abs(S, &t[SIZE], &t[Y]));
    LM_TRY(luma_affine(S, &t[ALLOWED], &t[SIZE], scale, shift));
    LM_TRY(luma_le(S, &t[NEAR], &t[ERROR], &t[ALLOWED]));
    /* Of a finite x and an infinite y both sides are infinite. */
    LM_TRY(luma_isfinite(S, &t[FINITE], &t[ERROR]));
    LM_TRY(luma_logical_and(S, &t[CLOSE], &t[NEAR], &t[FINITE]));
    LM_TRY(luma_eq(S, &t[SAME], x, y));
    return luma_logical_or(S, &t[EITHER], &t[CLOSE], &t[SAME]);
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

luma_status luma_allclose(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y,
                          double rtol, double atol, bool equal_nan) {
    luma_tensor t[NTEMPS];
    if (!(rtol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%g: not negative expected", rtol);
    if (!(atol >= 0)) return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "%g: not negative expected", atol);
    memset(t, 0, sizeof t);
    luma_status status = mask_close(S, t, x, y, rtol, atol);
    if (status == LUMA_OK && equal_nan) status = accept_nan(S, &t[EITHER], &t[X], &t[Y]);
    if (status == LUMA_OK) status = all_hold(S, value, &t[EITHER]);
    for (int i = 0; i < NTEMPS; i++)
        luma_release(S, &t[i]);
    return status;
}
