/* order.c -- what stands at a place of the order along a dim: kthvalue, median, mode, quantile.
** Made of sorted lines. Layer: core. */
#include <math.h>

#include "compose.h"
#include "order.h"

/* ---- a dim and the shape without it ---- */

typedef struct {
    luma_tensor x; /* at least one dim, no reference of its own */
    int dim;
    int64_t n;
    int ndim; /* of the result */
    int64_t shape[LUMA_MAX_DIMS];
    bool keepdim;
} line;

static luma_status line_of(luma_state *S, line *l, const luma_tensor *x, int argument, int64_t dim,
                           bool keepdim) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dim(S, argument, dim, x->layout.ndim, &l->dim));
    l->x = lm_at_least_1d(x);
    l->n = l->x.layout.shape[l->dim];
    l->keepdim = keepdim;
    l->ndim = 0;
    for (int d = 0; d < x->layout.ndim; d++) {
        if (d != l->dim || keepdim) l->shape[l->ndim++] = d == l->dim ? 1 : x->layout.shape[d];
    }
    return LUMA_OK;
}

static luma_status no_elements(luma_state *S, const line *l) {
    lm_text text;
    return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements along dim %lld",
                   lm_layout_text(&text, &l->x.layout), (long long)lm_pos(S, l->dim));
}

/* dst, a result, from a tensor with size 1 along the dim. */
static luma_status put(luma_state *S, const line *l, luma_tensor *dst, const luma_tensor *from) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *view = lm_temp(&s);
    LM_DO(&s, luma_reshape(S, view, from, l->ndim, l->shape));
    LM_DO(&s, lm_copy(S, dst, view));
    return lm_scope_close(&s);
}

static luma_status put_pair(luma_state *S, const line *l, lm_pair *p, lm_scope *s,
                            const luma_tensor *values, const luma_tensor *positions) {
    LM_DO(s, put(S, l, &p->values.work, values));
    LM_DO(s, put(S, l, &p->positions.work, positions));
    return lm_pair_close(S, p, lm_scope_close(s));
}

/* Both results from sorted lines, which are released, at the positions `at`. */
static luma_status put_sorted(luma_state *S, const line *l, lm_pair *p, lm_scope *s,
                              luma_tensor sorted[2], const luma_tensor *at) {
    luma_tensor *value = lm_temp(s), *place = lm_temp(s);
    LM_DO(s, luma_gather(S, value, &sorted[0], l->dim, at));
    LM_DO(s, luma_gather(S, place, &sorted[1], l->dim, at));
    luma_status status = put_pair(S, l, p, s, value, place);
    luma_release(S, &sorted[0]);
    luma_release(S, &sorted[1]);
    return status;
}

static luma_scalar whole(int64_t i) {
    return (luma_scalar){.kind = LUMA_IS_INT, .u.i = i};
}

/* ---- kthvalue ---- */

static luma_status kth(luma_state *S, luma_tensor outs[2], const line *l, const luma_tensor *x,
                       int64_t k) {
    lm_pair p;
    luma_tensor one[2] = {LUMA_NEW, LUMA_NEW};
    LM_TRY(lm_pair_open(S, &p, outs, x, l->ndim, l->shape));
    lm_scope s;
    lm_scope_open(&s, S);
    LM_DO(&s, lm_sort_place(S, one, &l->x, l->dim, k - 1));
    luma_status status = put_pair(S, l, &p, &s, &one[0], &one[1]);
    luma_release(S, &one[0]);
    luma_release(S, &one[1]);
    return status;
}

luma_status luma_kthvalue(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t k,
                          int64_t dim, bool keepdim) {
    line l;
    LM_TRY(line_of(S, &l, x, 3, dim, keepdim));
    if (l.n == 0) return no_elements(S, &l);
    if (k < 1 || k > l.n)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "k is %lld: 1 to %lld, the size of dim %lld, expected", (long long)k,
                       (long long)l.n, (long long)lm_pos(S, l.dim));
    return kth(S, outs, &l, x, k);
}

/* ---- median ---- */

/* Of floats: of each line its first NaN, or what stands in the middle. */
static luma_status median_or_nan(luma_state *S, luma_tensor outs[2], const line *l,
                                 const luma_tensor *x) {
    lm_pair p;
    luma_tensor middle[2] = {LUMA_NEW, LUMA_NEW}, undefined = luma_number((double)NAN);
    int64_t d = l->dim;
    LM_TRY(lm_pair_open(S, &p, outs, x, l->ndim, l->shape));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *nan = lm_temp(&s), *some = lm_temp(&s), *first = lm_temp(&s);
    luma_tensor *value = lm_temp(&s), *place = lm_temp(&s);
    LM_DO(&s, luma_isnan(S, nan, &l->x));
    LM_DO(&s, luma_any(S, some, nan, 1, &d, true));
    LM_DO(&s, luma_argmax(S, first, nan, 1, &d, true));
    LM_DO(&s, lm_sort_place(S, middle, &l->x, l->dim, (l->n - 1) / 2));
    LM_DO(&s, luma_where(S, value, some, &undefined, &middle[0]));
    LM_DO(&s, luma_where(S, place, some, first, &middle[1]));
    luma_status status = put_pair(S, l, &p, &s, value, place);
    luma_release(S, &middle[0]);
    luma_release(S, &middle[1]);
    return status;
}

/* Of floats, without the nans: there may be another number of them in each line, and they stand last. */
static luma_status median_of_rest(luma_state *S, luma_tensor outs[2], const line *l,
                                  const luma_tensor *x) {
    lm_pair p;
    luma_tensor sorted[2] = {LUMA_NEW, LUMA_NEW};
    luma_tensor last = luma_integer(l->n - 1), zero = luma_integer(0), two = luma_integer(2);
    luma_tensor base = luma_integer(S->index_base);
    int64_t d = l->dim;
    LM_TRY(lm_pair_open(S, &p, outs, x, l->ndim, l->shape));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *nan = lm_temp(&s), *nans = lm_temp(&s), *most = lm_temp(&s), *n = lm_temp(&s);
    luma_tensor *middle = lm_temp(&s), *at = lm_temp(&s);
    LM_DO(&s, luma_isnan(S, nan, &l->x));
    LM_DO(&s, luma_sum(S, nans, nan, 1, &d, true));
    LM_DO(&s, luma_sub(S, n, &last, nans));
    LM_DO(&s, luma_maximum(S, most, n, &zero));
    LM_DO(&s, luma_floor_div(S, middle, most, &two));
    LM_DO(&s, luma_add(S, at, middle, &base));
    LM_DO(&s, luma_sort(S, sorted, &l->x, d, false));
    return put_sorted(S, l, &p, &s, sorted, at);
}

static luma_status median(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim,
                          bool keepdim, bool ignore) {
    line l;
    LM_TRY(line_of(S, &l, x, 2, dim, keepdim));
    if (l.n == 0) return no_elements(S, &l);
    if (!lm_dtype_is_float(x->dtype)) return kth(S, outs, &l, x, (l.n - 1) / 2 + 1);
    return (ignore ? median_of_rest : median_or_nan)(S, outs, &l, x);
}

/* Of all elements: one 0-d value. */
static luma_status median_of_all(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 bool ignore) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (luma_numel(x) == 0) {
        lm_text text;
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements",
                       lm_layout_text(&text, &x->layout));
    }
    luma_tensor pair[2] = {LUMA_NEW, LUMA_NEW};
    int64_t all = -1;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, 0, NULL, &x, 1, 0));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *flat = lm_temp(&s);
    LM_DO(&s, luma_reshape(S, flat, x, 1, &all));
    LM_DO(&s, median(S, pair, flat, 0, false, ignore));
    LM_DO(&s, lm_copy(S, &r.work, &pair[0]));
    luma_release(S, &pair[0]);
    luma_release(S, &pair[1]);
    return lm_result_close(S, &r, lm_scope_close(&s));
}

luma_status luma_median(luma_state *S, luma_tensor outs[2], const luma_tensor *x, bool has_dim,
                        int64_t dim, bool keepdim) {
    return has_dim ? median(S, outs, x, dim, keepdim, false) : median_of_all(S, outs, x, false);
}

luma_status luma_nanmedian(luma_state *S, luma_tensor outs[2], const luma_tensor *x, bool has_dim,
                           int64_t dim, bool keepdim) {
    return has_dim ? median(S, outs, x, dim, keepdim, true) : median_of_all(S, outs, x, true);
}

/* ---- mode ---- */

/* Of each place in sorted lines the first that holds the same, counted from 0. */
static luma_status run_starts(luma_state *S, luma_tensor *out, const line *l,
                              const luma_tensor *sorted, const luma_tensor *places) {
    luma_tensor pair[2] = {LUMA_NEW, LUMA_NEW}, zero = luma_integer(0);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *starts = lm_temp(&s), *marked = lm_temp(&s);
    LM_DO(&s, lm_run_starts(S, starts, sorted, l->dim));
    LM_DO(&s, luma_where(S, marked, starts, places, &zero));
    LM_DO(&s, luma_cummax(S, pair, marked, l->dim));
    LM_DO(&s, lm_give(&s, out, &pair[0]));
    luma_release(S, &pair[0]);
    luma_release(S, &pair[1]);
    return lm_scope_close(&s);
}

luma_status luma_mode(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim,
                      bool keepdim) {
    line l;
    LM_TRY(line_of(S, &l, x, 2, dim, keepdim));
    if (l.n == 0) return no_elements(S, &l);
    lm_pair p;
    luma_tensor sorted[2] = {LUMA_NEW, LUMA_NEW}, base = luma_integer(S->index_base);
    int64_t d = l.dim, shape[LUMA_MAX_DIMS];
    for (int i = 0; i < l.x.layout.ndim; i++)
        shape[i] = i == l.dim ? l.n : 1;
    LM_TRY(lm_pair_open(S, &p, outs, x, l.ndim, l.shape));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *range = lm_temp(&s), *places = lm_temp(&s), *starts = lm_temp(&s);
    luma_tensor *runs = lm_temp(&s), *end = lm_temp(&s), *first = lm_temp(&s), *at = lm_temp(&s);
    LM_DO(&s, luma_sort(S, sorted, &l.x, d, false));
    LM_DO(&s, luma_range(S, range, whole(0), whole(l.n - 1), whole(1), LUMA_INT64,
                         lm_device_of(x)->name));
    LM_DO(&s, luma_view(S, places, range, l.x.layout.ndim, shape));
    LM_DO(&s, run_starts(S, starts, &l, &sorted[0], places));
    /* the first of the longest runs ends where most lie before */
    LM_DO(&s, luma_sub(S, runs, places, starts));
    LM_DO(&s, luma_argmax(S, end, runs, 1, &d, true));
    LM_DO(&s, luma_gather(S, first, starts, d, end));
    LM_DO(&s, luma_add(S, at, first, &base));
    return put_sorted(S, &l, &p, &s, sorted, at);
}

/* ---- quantiles ---- */

/* q on the host, each of 0 .. 1; as one dim along that of l. */
static luma_status read_shares(luma_state *S, luma_tensor *out, const line *l,
                               const luma_tensor *q) {
    int64_t n = 1, shape[LUMA_MAX_DIMS];
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *own = lm_temp(&s), *wide = lm_temp(&s), *flat = lm_temp(&s);
    if (q->storage) n = luma_numel(q);
    LM_DO(&s, lm_tensor_new(S, flat, lm_cpu(S), LUMA_FLOAT64, 1, &n));
    if (!q->storage) {
        LM_DO(&s, lm_fill(S, flat, q->number));
    } else {
        LM_DO(&s, luma_to_device(S, own, q, "cpu"));
        LM_DO(&s, luma_reshape(S, wide, own, 1, &n));
        LM_DO(&s, lm_copy(S, flat, wide));
    }
    for (int64_t i = 0; i < n && s.status == LUMA_OK; i++) {
        double v = ((const double *)(const void *)lm_data(flat))[i];
        if (!(v >= 0 && v <= 1))
            s.status = lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%g at position %lld: 0 to 1 expected", v,
                               (long long)lm_pos(S, i));
    }
    if (s.status == LUMA_OK) {
        luma_tensor *there = lm_temp(&s);
        for (int d = 0; d < l->x.layout.ndim; d++)
            shape[d] = d == l->dim ? n : 1;
        LM_DO(&s, luma_to_device(S, there, flat, lm_device_of(&l->x)->name));
        LM_DO(&s, luma_view(S, out, there, l->x.layout.ndim, shape));
    }
    return lm_scope_close(&s);
}

/* Elements of sorted lines at whole places, in double. */
static luma_status elements_at(luma_state *S, luma_tensor *out, const line *l,
                               const luma_tensor *sorted, const luma_tensor *places) {
    int64_t shape[LUMA_MAX_DIMS];
    luma_tensor base = luma_integer(S->index_base);
    for (int d = 0; d < sorted->layout.ndim; d++)
        shape[d] = d == l->dim ? places->layout.shape[d] : sorted->layout.shape[d];
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *integers = lm_temp_cast(&s, places, LUMA_INT64);
    luma_tensor *counted = lm_temp(&s), *all = lm_temp(&s), *found = lm_temp(&s);
    LM_DO(&s, luma_add(S, counted, integers, &base));
    LM_DO(&s, luma_expand(S, all, counted, sorted->layout.ndim, shape));
    LM_DO(&s, luma_gather(S, found, sorted, l->dim, all));
    LM_DO(&s, lm_cast(S, out, found, LUMA_FLOAT64));
    return lm_scope_close(&s);
}

/* Between a and b, t of the way; a where they are equal, infinite too. */
static luma_status between(luma_state *S, luma_tensor *out, const luma_tensor *a,
                           const luma_tensor *b, const luma_tensor *t) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *way = lm_temp(&s), *part = lm_temp(&s), *sum = lm_temp(&s), *same = lm_temp(&s);
    LM_DO(&s, luma_sub(S, way, b, a));
    LM_DO(&s, luma_mul(S, part, way, t));
    LM_DO(&s, luma_add(S, sum, a, part));
    LM_DO(&s, luma_eq(S, same, a, b));
    LM_DO(&s, luma_where(S, out, same, a, sum));
    return lm_scope_close(&s);
}

/* The quantiles at fractional places of sorted lines. */
static luma_status at_places(luma_state *S, luma_tensor *out, const line *l,
                             const luma_tensor *sorted, const luma_tensor *place,
                             lm_interpolation how) {
    luma_tensor half = luma_number(0.5);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *low = lm_temp(&s), *high = lm_temp(&s), *t = lm_temp(&s);
    luma_tensor *a = lm_temp(&s), *b = lm_temp(&s);
    if (how == LM_NEAREST) {
        LM_DO(&s, luma_round(S, low, place));
        LM_DO(&s, elements_at(S, out, l, sorted, low));
        return lm_scope_close(&s);
    }
    LM_DO(&s, luma_floor(S, low, place));
    LM_DO(&s, luma_ceil(S, high, place));
    if (how == LM_LOWER || how == LM_HIGHER) {
        LM_DO(&s, elements_at(S, out, l, sorted, how == LM_LOWER ? low : high));
        return lm_scope_close(&s);
    }
    LM_DO(&s, luma_sub(S, t, place, low));
    LM_DO(&s, elements_at(S, a, l, sorted, low));
    LM_DO(&s, elements_at(S, b, l, sorted, high));
    LM_DO(&s, between(S, out, a, b, how == LM_MIDPOINT ? &half : t));
    return lm_scope_close(&s);
}

/* How many places lie between the first element of each line and the last that counts. */
static luma_status spans(luma_state *S, luma_tensor *out, const line *l, bool ignore) {
    luma_tensor last = luma_number((double)(l->n - 1)), zero = luma_number(0);
    int64_t d = l->dim;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *nan = lm_temp(&s), *count = lm_temp(&s), *nans = lm_temp(&s), *span = lm_temp(&s);
    if (ignore) {
        LM_DO(&s, luma_isnan(S, nan, &l->x));
        LM_DO(&s, luma_sum(S, count, nan, 1, &d, true));
        LM_DO(&s, lm_cast(S, nans, count, LUMA_FLOAT64));
        LM_DO(&s, luma_sub(S, span, &last, nans));
        LM_DO(&s, luma_maximum(S, out, span, &zero));
    } else {
        LM_DO(&s, luma_full(S, out, 0, NULL, last.number, LUMA_FLOAT64, lm_device_of(&l->x)->name));
    }
    return lm_scope_close(&s);
}

/* NaN where the last of a sorted line is. */
static luma_status keep_nan(luma_state *S, luma_tensor *out, const line *l,
                            const luma_tensor *sorted, const luma_tensor *x) {
    luma_tensor nan = luma_number((double)NAN);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *last = lm_temp(&s), *is = lm_temp(&s);
    LM_DO(&s, luma_narrow(S, last, sorted, l->dim, l->n - 1, 1));
    LM_DO(&s, luma_isnan(S, is, last));
    LM_DO(&s, luma_where(S, out, is, &nan, x));
    return lm_scope_close(&s);
}

/* dst from found, whose dim of l holds the places of q: they go first where q is a list. */
static luma_status put_quantiles(luma_state *S, const line *l, luma_tensor *dst,
                                 const luma_tensor *found) {
    int64_t from = l->dim, to = 0;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *first = lm_temp(&s), *shaped = lm_temp(&s);
    LM_DO(&s, luma_movedim(S, first, found, 1, &from, 1, &to));
    LM_DO(&s, luma_reshape(S, shaped, first, dst->layout.ndim, dst->layout.shape));
    LM_DO(&s, lm_copy(S, dst, shaped));
    return lm_scope_close(&s);
}

static luma_status quantile_along(luma_state *S, luma_tensor *dst, const line *l,
                                  const luma_tensor *q, lm_interpolation how, bool ignore) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *share = lm_temp(&s), *sorted = lm_temp(&s), *span = lm_temp(&s);
    luma_tensor *place = lm_temp(&s), *found = lm_temp(&s), *kept = lm_temp(&s);
    s.status = read_shares(S, share, l, q);
    LM_DO(&s, lm_sort_values(S, sorted, &l->x, l->dim));
    LM_DO(&s, spans(S, span, l, ignore));
    LM_DO(&s, luma_mul(S, place, share, span));
    LM_DO(&s, at_places(S, found, l, sorted, place, how));
    if (!ignore) LM_DO(&s, keep_nan(S, kept, l, sorted, found));
    LM_DO(&s, put_quantiles(S, l, dst, ignore ? found : kept));
    return lm_scope_close(&s);
}

static luma_status check_shares(luma_state *S, const luma_tensor *q) {
    if (lm_is_number(q)) return LUMA_OK;
    LM_TRY(lm_tensor_live(S, 2, q));
    if (q->layout.ndim > 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%d dims: a number or a list expected",
                       q->layout.ndim);
    if (lm_dtype_is_float(q->dtype)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, 2, "%s: floats expected", lm_dtypes[q->dtype].name);
}

static luma_status quantile(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_tensor *q, bool has_dim, int64_t dim, bool keepdim,
                            lm_interpolation how, bool ignore) {
    line l;
    lm_result r;
    int64_t all = -1, shape[LUMA_MAX_DIMS + 1];
    int ndim = 0;
    LM_TRY(line_of(S, &l, x, 3, has_dim ? dim : 0, keepdim));
    LM_TRY(check_shares(S, q));
    if ((unsigned)how > LM_NEAREST)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 5, "no interpolation has the number %d", (int)how);
    if (!has_dim) l.ndim = keepdim ? x->layout.ndim : 0;
    bool list = q->storage && q->layout.ndim == 1;
    if (list && l.ndim == LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "the result has more than %d dims", LUMA_MAX_DIMS);
    if (has_dim ? l.n == 0 : luma_numel(x) == 0) return no_elements(S, &l);
    if (list) shape[ndim++] = q->layout.shape[0];
    for (int d = 0; d < l.ndim; d++)
        shape[ndim++] = has_dim ? l.shape[d] : 1;
    luma_dtype dtype = lm_dtype_floating(S, x->dtype);
    const luma_tensor *inputs[] = {x, q};
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), dtype, ndim, shape, inputs, 2, 0));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *floats = lm_temp_cast(&s, &l.x, dtype), *flat = lm_temp(&s);
    if (!has_dim) LM_DO(&s, luma_reshape(S, flat, floats, 1, &all));
    if (s.status == LUMA_OK) {
        l.x = has_dim ? *floats : *flat;
        if (!has_dim) l.dim = 0;
        l.n = l.x.layout.shape[l.dim];
        s.status = quantile_along(S, &r.work, &l, q, how, ignore);
    }
    return lm_result_close(S, &r, lm_scope_close(&s));
}

luma_status luma_quantile(luma_state *S, luma_tensor *out, const luma_tensor *x,
                          const luma_tensor *q, bool has_dim, int64_t dim, bool keepdim,
                          int interpolation) {
    return quantile(S, out, x, q, has_dim, dim, keepdim, (lm_interpolation)interpolation, false);
}

luma_status luma_nanquantile(luma_state *S, luma_tensor *out, const luma_tensor *x,
                             const luma_tensor *q, bool has_dim, int64_t dim, bool keepdim,
                             int interpolation) {
    return quantile(S, out, x, q, has_dim, dim, keepdim, (lm_interpolation)interpolation, true);
}
