/* rope.c -- rotary embedding: shapes and errors; the device's rope slot. Layer: core. */
#include <string.h>

#include "compose.h"

static luma_status check_table(luma_state *S, int argument, const luma_tensor *table,
                               const luma_tensor *x) {
    LM_TRY(lm_tensor_check(S, argument, table, false));
    LM_TRY(lm_tensor_beside(S, argument, table, x, "x"));
    if (!lm_dtype_is_float(table->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "%s: a float dtype expected",
                       lm_dtypes[table->dtype].name);
    return LUMA_OK;
}

static luma_status check_x(luma_state *S, const luma_tensor *x, int least) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    int n = x->layout.ndim;
    if (!lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a float dtype expected",
                       lm_dtypes[x->dtype].name);
    if (n < least)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: at least %d dims expected",
                       lm_shape_text(&text, n, x->layout.shape), least);
    if (x->layout.shape[n - 1] % 2 != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: an even last size expected",
                       lm_shape_text(&text, n, x->layout.shape));
    return LUMA_OK;
}

/* A table in dtype, repeated over the pairs of x. */
static luma_status lay_out_table(lm_scope *s, int argument, const luma_tensor *table,
                                 luma_dtype dtype, const luma_tensor *x, bool heads,
                                 luma_tensor *out) {
    luma_state *S = s->S;
    lm_text got, want;
    luma_layout seen = table->layout;
    int64_t shape[LUMA_MAX_DIMS];
    int n = x->layout.ndim;
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[n - 1] /= 2;
    bool fits = seen.ndim >= 2 && seen.ndim < LUMA_MAX_DIMS;
    if (fits && heads) seen = lm_layout_insert(&seen, seen.ndim - 1, 1, 0);
    fits = fits && seen.shape[seen.ndim - 1] == shape[n - 1] &&
           lm_shape_fits(seen.ndim, seen.shape, n, shape);
    if (!fits)
        return lm_fail(
            S, LUMA_ERR_SHAPE, argument, "%s, where %s, or what broadcasts to it, is expected",
            lm_layout_text(&got, &table->layout),
            lm_shape_text(&want, 2, (int64_t[]){shape[heads ? n - 3 : n - 2], shape[n - 1]}));
    luma_tensor *cast = lm_temp(s), *whole = lm_temp(s);
    LM_TRY(lm_cast(S, cast, table, dtype));
    LM_TRY(luma_contiguous(S, whole, cast));
    *out = *whole;
    if (heads) out->layout = lm_layout_insert(&out->layout, out->layout.ndim - 1, 1, 0);
    out->layout = lm_layout_expand(&out->layout, n, shape);
    return LUMA_OK;
}

luma_status luma_rope(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *cos,
                      const luma_tensor *sin, luma_rope_layout layout) {
    bool heads = layout == LUMA_ROPE_THD;
    lm_scope s;
    lm_result r;
    lm_rope call = {.interleaved = layout == LUMA_ROPE_INTERLEAVED};
    LM_TRY(check_x(S, x, heads ? 3 : 2));
    LM_TRY(check_table(S, 2, cos, x));
    LM_TRY(check_table(S, 3, sin, x));
    if (!lm_layout_same_shape(&cos->layout, &sin->layout)) {
        lm_text a, b;
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%s, where the cosines are %s",
                       lm_layout_text(&a, &sin->layout), lm_layout_text(&b, &cos->layout));
    }
    luma_dtype dtype = lm_dtype_accumulator(x->dtype);
    lm_scope_open(&s, S);
    luma_status status = lay_out_table(&s, 2, cos, dtype, x, heads, &call.cos);
    if (status == LUMA_OK) status = lay_out_table(&s, 3, sin, dtype, x, heads, &call.sin);
    if (status == LUMA_OK)
        status =
            lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                           (const luma_tensor *[]){x, cos, sin}, 3, LM_RESULT_CONTIGUOUS);
    if (status == LUMA_OK) {
        call.x = *x;
        call.out = r.work;
        if (luma_numel(x) > 0) status = LM_SLOT(S, lm_device_of(x), rope, "rope", x->dtype, &call);
        status = lm_result_close(S, &r, status);
    }
    lm_scope_close(&s);
    return status;
}
