/* compare.c -- whole tensors compared: one boolean on the host, made of rows. Layer: core. */
#include "tensor.h"

/* Whether all of x hold; releases x. */
static luma_status all_of(luma_state *S, luma_tensor *x, bool *value) {
    luma_tensor all = LUMA_NEW;
    luma_scalar answer;
    luma_status status = luma_all(S, &all, x, 0, NULL, false);
    if (status == LUMA_OK) status = lm_item(S, &all, &answer);
    if (status == LUMA_OK) *value = answer.u.i != 0;
    luma_release(S, &all);
    luma_release(S, x);
    return status;
}

luma_status luma_equal(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y) {
    luma_tensor same = LUMA_NEW;
    if (!lm_layout_same_shape(&x->layout, &y->layout)) {
        *value = false;
        return LUMA_OK;
    }
    LM_TRY(luma_eq(S, &same, x, y));
    return all_of(S, &same, value);
}

/* close becomes: |x - y| <= atol + rtol |y| where the difference is finite. */
static luma_status within(luma_state *S, luma_tensor *close, const luma_tensor *x,
                          const luma_tensor *y, double rtol, double atol) {
    luma_tensor d = LUMA_NEW, bound = LUMA_NEW, finite = LUMA_NEW;
    luma_scalar r = {.kind = LUMA_IS_FLOAT, .u.d = rtol}, a = {.kind = LUMA_IS_FLOAT, .u.d = atol};
    luma_status status = luma_sub(S, &d, x, y);
    if (status == LUMA_OK) status = luma_abs(S, &d, &d);
    if (status == LUMA_OK) status = luma_abs(S, &bound, y);
    if (status == LUMA_OK) status = luma_affine(S, &bound, &bound, r, a);
    if (status == LUMA_OK) status = luma_le(S, close, &d, &bound);
    if (status == LUMA_OK) status = luma_isfinite(S, &finite, &d);
    if (status == LUMA_OK) status = luma_logical_and(S, close, close, &finite);
    luma_release(S, &finite);
    luma_release(S, &bound);
    luma_release(S, &d);
    return status;
}

/* close also holds where x and y are equal, infinities too, or (if asked) both NaN. */
static luma_status or_equal(luma_state *S, luma_tensor *close, const luma_tensor *x,
                            const luma_tensor *y, bool equal_nan) {
    luma_tensor same = LUMA_NEW, nan = LUMA_NEW;
    luma_status status = luma_eq(S, &same, x, y);
    if (status == LUMA_OK) status = luma_logical_or(S, close, close, &same);
    luma_release(S, &same);
    if (status == LUMA_OK && equal_nan) {
        status = luma_isnan(S, &nan, x);
        if (status == LUMA_OK) status = luma_isnan(S, &same, y);
        luma_tensor both = LUMA_NEW;
        if (status == LUMA_OK) status = luma_logical_and(S, &both, &nan, &same);
        if (status == LUMA_OK) status = luma_logical_or(S, close, close, &both);
        luma_release(S, &both);
    }
    luma_release(S, &nan);
    luma_release(S, &same);
    return status;
}

luma_status luma_allclose(luma_state *S, bool *value, const luma_tensor *x, const luma_tensor *y,
                          double rtol, double atol, bool equal_nan) {
    luma_tensor a = LUMA_NEW, b = LUMA_NEW, close = LUMA_NEW;
    /* float64 holds every other dtype's differences, int64's beyond 2^53 excepted */
    luma_status status = luma_to_dtype(S, &a, x, LUMA_FLOAT64);
    if (status == LUMA_OK && lm_is_number(y))
        status = luma_full(S, &b, 0, NULL, y->number, LUMA_FLOAT64, lm_device_of(x)->name);
    else if (status == LUMA_OK)
        status = luma_to_dtype(S, &b, y, LUMA_FLOAT64);
    if (status == LUMA_OK) status = within(S, &close, &a, &b, rtol, atol);
    if (status == LUMA_OK) status = or_equal(S, &close, &a, &b, equal_nan);
    luma_release(S, &b);
    luma_release(S, &a);
    if (status == LUMA_OK) return all_of(S, &close, value);
    luma_release(S, &close);
    return status;
}
