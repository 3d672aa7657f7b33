/* search.c -- places of values in sorted tensors, and counts of what falls where. Layer: core. */
#include <math.h>

#include "compose.h"
#include "order.h"

/* ---- places ---- */

/* Sorted rows and values as the slot wants them; both are released by the scope. */
static luma_status ready(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *cast = lm_temp_cast(&s, x, dtype);
    LM_DO(&s, luma_contiguous(S, out, cast));
    return lm_scope_close(&s);
}

/* What the places are counted for: rows of n sorted elements, m values to a row. */
static luma_status rows_of(luma_state *S, lm_search *call, const luma_tensor *sorted,
                           const luma_tensor *values, int sorted_at, int values_at) {
    const luma_layout *a = &sorted->layout, *b = &values->layout;
    if (a->ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, sorted_at, "a 0-d tensor has no dim to search");
    call->n = a->shape[a->ndim - 1];
    call->rows = 1;
    call->m = lm_layout_numel(b);
    if (a->ndim == 1) return LUMA_OK;
    bool fits = a->ndim == b->ndim;
    for (int d = 0; d < a->ndim - 1 && fits; d++) {
        fits = a->shape[d] == b->shape[d];
        call->rows *= a->shape[d];
    }
    if (fits) {
        call->m = b->shape[b->ndim - 1];
        return LUMA_OK;
    }
    lm_text text, other;
    return lm_fail(S, LUMA_ERR_SHAPE, values_at,
                   "%s in %s: one list to search, or the same sizes but in the last dim",
                   lm_layout_text(&text, b), lm_layout_text(&other, a));
}

/* One dtype in which both are exact, or as two tensors meet. */
static luma_dtype common_dtype(luma_dtype a, luma_dtype b) {
    luma_dtype dtype = lm_dtype_promote(a, b);
    return lm_dtypes[dtype].compute == dtype ? dtype : LUMA_FLOAT32;
}

static luma_status search(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                          const luma_tensor *values, bool right, int sorted_at, int values_at) {
    const luma_tensor *both[] = {sorted, values};
    lm_device *d;
    lm_result r;
    lm_search call = {.right = right, .index_base = S->index_base};
    LM_TRY(lm_tensor_live(S, sorted_at, sorted));
    LM_TRY(lm_tensor_live(S, values_at, values));
    LM_TRY(lm_same_device(S, both, 2, &d));
    LM_TRY(rows_of(S, &call, sorted, values, sorted_at, values_at));
    luma_dtype dtype = common_dtype(sorted->dtype, values->dtype);
    LM_TRY(lm_result_open(S, &r, out, d, LUMA_INT64, values->layout.ndim, values->layout.shape,
                          both, 2, LM_RESULT_CONTIGUOUS));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *there[] = {lm_temp(&s), lm_temp(&s)}, *in = lm_temp(&s), *of = lm_temp(&s);
    LM_DO(&s, luma_to_device(S, there[0], sorted, d->name));
    LM_DO(&s, luma_to_device(S, there[1], values, d->name));
    LM_DO(&s, ready(S, in, there[0], dtype));
    LM_DO(&s, ready(S, of, there[1], dtype));
    call.sorted = *in;
    call.values = *of;
    call.out = r.work;
    if (call.n == 0)
        LM_DO(&s, lm_fill(S, &r.work, (luma_scalar){.kind = LUMA_IS_INT, .u.i = S->index_base}));
    else if (luma_numel(values) > 0)
        LM_DO(&s, LM_SLOT(S, d, search, "search", dtype, &call));
    return lm_result_close(S, &r, lm_scope_close(&s));
}

/* A number among integers, exactly: as the integer above or below which the same elements lie. Of
** what no int64 reaches all or none are below. */
static luma_scalar whole_number(double v, bool *right) {
    luma_scalar whole = {.kind = LUMA_IS_INT};
    double w = *right ? floor(v) : ceil(v);
    if (w != w || w >= 0x1p63) {
        whole.u.i = INT64_MAX;
        *right = true;
    } else if (w < -0x1p63) {
        whole.u.i = INT64_MIN;
        *right = false;
    } else {
        whole.u.i = (int64_t)w;
    }
    return whole;
}

static luma_status search_number(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                                 luma_scalar number, bool right) {
    luma_dtype dtype = sorted->dtype;
    if (!lm_dtype_is_float(dtype)) dtype = LUMA_INT64;
    if (!lm_dtype_is_float(dtype) && number.kind == LUMA_IS_FLOAT)
        number = whole_number(number.u.d, &right);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *value = lm_temp(&s);
    LM_DO(&s, luma_full(S, value, 0, NULL, number, dtype, lm_device_of(sorted)->name));
    LM_DO(&s, search(S, out, sorted, value, right, 1, 2));
    return lm_scope_close(&s);
}

luma_status luma_searchsorted(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                              const luma_tensor *values, bool right) {
    LM_TRY(lm_tensor_live(S, 1, sorted));
    if (!lm_is_number(values)) return search(S, out, sorted, values, right, 1, 2);
    if (sorted->layout.ndim == 1) return search_number(S, out, sorted, values->number, right);
    return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: one, to search for a number",
                   sorted->layout.ndim);
}

luma_status luma_bucketize(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_tensor *boundaries, bool right) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_tensor_live(S, 2, boundaries));
    if (boundaries->layout.ndim != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%d dims: a list of boundaries expected",
                       boundaries->layout.ndim);
    return search(S, out, boundaries, x, right, 2, 1);
}

/* right and side say the same; both are a mistake unless they agree. */
luma_status lm_searchsorted_arg(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                                const luma_tensor *values, const lm_arg *right,
                                const lm_arg *side) {
    bool after = right->given ? right->i != 0 : side->i == 1;
    if (right->given && side->given && after != (side->i == 1))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "side and right contradict each other");
    return luma_searchsorted(S, out, sorted, values, after);
}

/* ---- counts ---- */

luma_status lm_whole_item(luma_state *S, int64_t *value, const luma_tensor *x) {
    luma_scalar number;
    LM_TRY(lm_item(S, x, &number));
    *value = number.u.i;
    return LUMA_OK;
}

/* The greatest label of x, 0 for none; an error of one below the first. */
static luma_status greatest_label(luma_state *S, const luma_tensor *x, int64_t *most) {
    *most = S->index_base - 1;
    if (luma_numel(x) == 0) return LUMA_OK;
    int64_t least = 0, at = 0;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *high = lm_temp(&s), *low = lm_temp(&s), *place = lm_temp(&s);
    LM_DO(&s, luma_amax(S, high, x, 0, NULL, false));
    LM_DO(&s, luma_amin(S, low, x, 0, NULL, false));
    LM_DO(&s, lm_whole_item(S, most, high));
    LM_DO(&s, lm_whole_item(S, &least, low));
    if (least < S->index_base) {
        LM_DO(&s, luma_argmin(S, place, x, 0, NULL, false));
        LM_DO(&s, lm_whole_item(S, &at, place));
    }
    LM_TRY(lm_scope_close(&s));
    if (least >= S->index_base) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_INDEX, 1, "label %lld at position %lld: labels count from %d%s",
                   (long long)least, (long long)at, S->index_base,
                   S->index_base == 1 && least == 0 ? " (add 1 to labels made by NumPy)" : "");
}

static luma_status check_labels(luma_state *S, const luma_tensor *x, const luma_tensor *weights,
                                int64_t least) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (!lm_dtype_is_int(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: an integer tensor expected",
                       lm_dtypes[x->dtype].name);
    if (x->layout.ndim != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: a list of labels expected", x->layout.ndim);
    if (least < 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "minlength is %lld: 0 or more expected",
                       (long long)least);
    if (!weights) return LUMA_OK;
    LM_TRY(lm_tensor_live(S, 2, weights));
    if (weights->layout.ndim != 1 || weights->layout.shape[0] != x->layout.shape[0])
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "one weight for each of %lld labels expected",
                       (long long)x->layout.shape[0]);
    const luma_tensor *both[] = {x, weights};
    lm_device *d;
    return lm_same_device(S, both, 2, &d);
}

luma_status lm_count_labels(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_tensor *weights, int64_t n) {
    lm_scope s;
    lm_scope_open(&s, S);
    const char *device = lm_device_of(x)->name;
    luma_dtype dtype = weights && lm_dtype_is_float(weights->dtype) ? weights->dtype : LUMA_INT64;
    luma_tensor *sums = lm_temp(&s), *one = lm_temp(&s), *ones = lm_temp(&s);
    luma_scalar none = {.kind = LUMA_IS_INT}, unit = {.kind = LUMA_IS_INT, .u.i = 1};
    LM_DO(&s, luma_full(S, sums, 1, &n, none, dtype, device));
    if (weights) {
        luma_tensor *w = lm_temp_cast(&s, weights, dtype);
        LM_DO(&s, luma_index_add(S, out, sums, 0, x, w));
    } else {
        LM_DO(&s, luma_full(S, one, 0, NULL, unit, dtype, device));
        LM_DO(&s, luma_expand(S, ones, one, 1, x->layout.shape));
        LM_DO(&s, luma_index_add(S, out, sums, 0, x, ones));
    }
    return lm_scope_close(&s);
}

luma_status luma_bincount(luma_state *S, luma_tensor *out, const luma_tensor *x,
                          const luma_tensor *weights, int64_t minlength) {
    int64_t most, n;
    LM_TRY(check_labels(S, x, weights, minlength));
    LM_TRY(greatest_label(S, x, &most));
    if (most - S->index_base >= INT64_MAX - 1) most = INT64_MAX - 2;
    n = most - S->index_base + 1;
    return lm_count_labels(S, out, x, weights, n > minlength ? n : minlength);
}

/* ---- histograms ---- */

/* The range of x where none is given, one wider where it holds one value. */
static luma_status find_range(luma_state *S, const luma_tensor *x, double *min, double *max) {
    if (*min == 0 && *max == 0 && luma_numel(x) > 0) {
        luma_scalar low = {0}, high = {0};
        lm_scope s;
        lm_scope_open(&s, S);
        luma_tensor *wide = lm_temp(&s), *a = lm_temp(&s), *b = lm_temp(&s);
        LM_DO(&s, luma_amin(S, a, x, 0, NULL, false));
        LM_DO(&s, luma_amax(S, b, x, 0, NULL, false));
        LM_DO(&s, lm_cast(S, wide, a, LUMA_FLOAT64));
        LM_DO(&s, lm_item(S, wide, &low));
        lm_temp_drop(&s, wide);
        LM_DO(&s, lm_cast(S, wide, b, LUMA_FLOAT64));
        LM_DO(&s, lm_item(S, wide, &high));
        LM_TRY(lm_scope_close(&s));
        *min = low.u.d;
        *max = high.u.d;
    }
    if (*max - *min - (*max - *min) != 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a range from %g to %g is not finite", *min, *max);
    if (*min == *max) {
        *min -= 1;
        *max += 1;
    }
    return LUMA_OK;
}

/* bins + 1 edges; the last is the number after max, so that max lies in the last bin. */
static luma_status make_edges(luma_state *S, luma_tensor *out, int64_t bins, double min, double max,
                              lm_device *d) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *edges = lm_temp(&s);
    int64_t n = bins + 1;
    LM_DO(&s, lm_tensor_new(S, edges, lm_cpu(S), LUMA_FLOAT64, 1, &n));
    if (s.status == LUMA_OK) {
        double *e = (double *)(void *)lm_data(edges);
        for (int64_t i = 0; i < bins; i++)
            e[i] = min + (max - min) * ((double)i / (double)bins);
        e[bins] = nextafter(max, (double)INFINITY);
    }
    LM_DO(&s, luma_to_device(S, out, edges, d->name));
    return lm_scope_close(&s);
}

luma_status luma_histc(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t bins,
                       double min, double max) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (bins < 1 || bins > INT64_MAX / 16)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld bins: 1 to %lld expected", (long long)bins,
                       (long long)(INT64_MAX / 16));
    if (!(min <= max)) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "min %g is above max %g", min, max);
    LM_TRY(find_range(S, x, &min, &max));
    int64_t all = -1;
    luma_dtype dtype = lm_dtype_floating(S, x->dtype);
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), dtype, 1, &bins, &x, 1, 0));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *edges = lm_temp(&s), *flat = lm_temp(&s), *at = lm_temp(&s);
    luma_tensor *counts = lm_temp(&s), *inner = lm_temp(&s);
    LM_DO(&s, make_edges(S, edges, bins, min, max, lm_device_of(x)));
    luma_tensor *wide = lm_temp_cast(&s, x, LUMA_FLOAT64);
    LM_DO(&s, luma_reshape(S, flat, wide, 1, &all));
    LM_DO(&s, search(S, at, edges, flat, true, 0, 0));
    LM_DO(&s, lm_count_labels(S, counts, at, NULL, bins + 2));
    LM_DO(&s, luma_narrow(S, inner, counts, 0, 1, bins));
    LM_DO(&s, lm_copy(S, &r.work, inner));
    return lm_result_close(S, &r, lm_scope_close(&s));
}
