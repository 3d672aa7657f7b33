/* sample.c -- permutations, chances and draws by weight, made of uniform numbers of the device and
** of operations. Layer: core. */
#include <math.h>

#include "compose.h"
#include "op.h"

#define POLL 8192 /* steps of a host loop between two looks at the interrupt flag */

/* Ends a call that drew from d, whose generator stood at `offset`: a failure takes the draws back. */
static luma_status finish(lm_scope *s, lm_device *d, uint64_t offset, luma_status status) {
    if (status != LUMA_OK) d->offset = offset;
    s->status = status;
    return lm_scope_close(s);
}

/* ---- permutations ---- */

/* p[i] holds a draw of 0 .. i: element i goes there, and what stood there to the end. */
static luma_status shuffle(luma_state *S, int64_t n, int64_t *p) {
    for (int64_t i = 0; i < n; i++) {
        int64_t j = p[i];
        p[i] = p[j];
        p[j] = i + S->index_base;
        if (i % POLL == 0 && lm_interrupted(S)) return lm_fail_interrupted(S);
    }
    return LUMA_OK;
}

/* Drawn and shuffled on the host, so that a device has only to be written, not waited for. */
static luma_status permute(luma_state *S, luma_tensor *x, lm_scope *s) {
    luma_tensor *host = lm_temp(s);
    int64_t n = x->layout.shape[0];
    LM_TRY(lm_tensor_new(S, host, lm_cpu(S), LUMA_INT64, 1, &n));
    LM_TRY(lm_rng_up_to(S, host, lm_device_of(x)));
    LM_TRY(shuffle(S, n, (int64_t *)(void *)lm_data(host)));
    return lm_copy(S, x, host);
}

luma_status luma_randperm(luma_state *S, luma_tensor *x) {
    const lm_dtype_info *info = &lm_dtypes[x->dtype];
    if (info->kind != LM_KIND_INT)
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: an integer dtype expected", info->name);
    if (x->layout.ndim != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "1 dim expected, got %d", (int)x->layout.ndim);
    int64_t last = x->layout.shape[0] - 1 + S->index_base;
    if (last > info->imax)
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%lld does not fit into %s", (long long)last,
                       info->name);
    lm_device *d = lm_device_of(x);
    uint64_t offset = d->offset;
    lm_scope s;
    lm_scope_open(&s, S);
    return finish(&s, d, offset, permute(S, x, &s));
}

/* ---- chances ---- */

/* The least and the greatest element as numbers; x is a float tensor and not empty. */
static luma_status extremes(luma_state *S, const luma_tensor *x, luma_tensor *t, double *least,
                            double *greatest) {
    luma_scalar v;
    LM_TRY(luma_amin(S, t, x, 0, NULL, false));
    LM_TRY(lm_item(S, t, &v));
    *least = v.u.d;
    LM_TRY(luma_amax(S, t, x, 0, NULL, false));
    LM_TRY(lm_item(S, t, &v));
    *greatest = v.u.d;
    return LUMA_OK;
}

static luma_status chances(luma_state *S, luma_tensor *out, const luma_tensor *p, lm_scope *s) {
    luma_tensor *drawn = lm_temp(s), *mask = lm_temp(s);
    double least = 0, greatest = 0;
    if (luma_numel(p) > 0) LM_TRY(extremes(S, p, lm_temp(s), &least, &greatest));
    /* NaN is both */
    if (!(least >= 0 && greatest <= 1))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "chances lie between 0 and 1, got %g",
                       least >= 0 ? greatest : least);
    LM_TRY(lm_tensor_new(S, drawn, lm_device_of(p), LUMA_FLOAT64, p->layout.ndim, p->layout.shape));
    LM_TRY(luma_rand(S, drawn));
    LM_TRY(luma_lt(S, mask, drawn, p));
    return lm_cast(S, out, mask, p->dtype);
}

luma_status luma_bernoulli(luma_state *S, luma_tensor *out, const luma_tensor *p) {
    if (lm_is_number(p) || !lm_dtype_is_float(p->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a float dtype expected",
                       lm_dtypes[p->dtype].name);
    lm_device *d = lm_device_of(p);
    uint64_t offset = d->offset;
    lm_scope s;
    lm_scope_open(&s, S);
    return finish(&s, d, offset, chances(S, out, p, &s));
}

/* ---- draws by weight ---- */

/* n positions of m by binary search in the running sum of the weights, for each row. u: uniform
** (rows, n); weights (rows, m) become the sums. */
static luma_status search_rows(luma_state *S, int64_t rows, int64_t m, int64_t n, double *weights,
                               const double *u, int64_t *positions) {
    for (int64_t r = 0; r < rows; r++) {
        double *w = weights + r * m, sum = 0;
        int64_t most = 0; /* the last position with a weight, which rounding must not pass */
        for (int64_t j = 0; j < m; j++) {
            if (w[j] > 0) most = j;
            w[j] = sum += w[j];
            if (j % POLL == 0 && lm_interrupted(S)) return lm_fail_interrupted(S);
        }
        for (int64_t i = 0; i < n; i++) {
            double x = u[r * n + i] * sum;
            int64_t low = 0; /* the first of `left` candidates */
            for (int64_t left = most + 1, half; left > 1; left -= half) {
                half = left / 2;
                low += x < w[low + half - 1] ? 0 : half; /* a select: the branch would be a guess */
            }
            positions[r * n + i] = low + S->index_base;
            if (i % POLL == 0 && lm_interrupted(S)) return lm_fail_interrupted(S);
        }
    }
    return LUMA_OK;
}

/* weights: float64, contiguous. */
static luma_status draw_with(luma_state *S, luma_tensor *out, const luma_tensor *weights, int64_t n,
                             lm_scope *s) {
    luma_tensor *u = lm_temp(s), *host_w = lm_temp(s), *host_u = lm_temp(s),
                *positions = lm_temp(s);
    int ndim = weights->layout.ndim;
    int64_t rows = ndim == 2 ? weights->layout.shape[0] : 1, m = weights->layout.shape[ndim - 1];
    int64_t shape[2] = {rows, n};
    const int64_t *result = shape + (ndim == 1);
    lm_device *cpu = lm_cpu(S), *device = lm_device_of(weights);
    LM_TRY(lm_tensor_new(S, u, device, LUMA_FLOAT64, ndim, result));
    LM_TRY(luma_rand(S, u));
    LM_TRY(lm_tensor_new(S, host_w, cpu, LUMA_FLOAT64, ndim, weights->layout.shape));
    LM_TRY(lm_copy(S, host_w, weights)); /* a copy on the CPU too: the sums replace it */
    if (device == cpu) {
        luma_share(host_u, u);
    } else {
        LM_TRY(lm_tensor_new(S, host_u, cpu, LUMA_FLOAT64, ndim, result));
        LM_TRY(lm_copy(S, host_u, u));
    }
    LM_TRY(lm_tensor_new(S, positions, cpu, LUMA_INT64, ndim, result));
    LM_TRY(search_rows(S, rows, m, n, (double *)(void *)lm_data(host_w),
                       (const double *)(void *)lm_data(host_u),
                       (int64_t *)(void *)lm_data(positions)));
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, device, LUMA_INT64, ndim, result, NULL, 0, 0));
    return lm_result_close(S, &r, lm_copy(S, &r.work, positions));
}

/* The n that ring first of m exponential clocks, whose rates are the weights: -log(1 - u) / w. A
** clock of weight 0 never rings (infinity or NaN). */
static luma_status draw_without(luma_state *S, luma_tensor *out, const luma_tensor *weights,
                                int64_t n, lm_scope *s) {
    luma_tensor *u = lm_temp(s), one = luma_number(1);
    luma_tensor outs[2] = {LUMA_NEW, *out};
    LM_TRY(lm_tensor_new(S, u, lm_device_of(weights), LUMA_FLOAT64, weights->layout.ndim,
                         weights->layout.shape));
    LM_TRY(luma_rand(S, u));
    LM_TRY(luma_sub(S, u, &one, u));
    LM_TRY(luma_log(S, u, u));
    LM_TRY(luma_neg(S, u, u));
    LM_TRY(luma_div(S, u, u, weights));
    LM_TRY(luma_topk(S, outs, u, n, -1, false));
    luma_release(S, &outs[0]);
    *out = outs[1];
    return LUMA_OK;
}

/* How many weights above 0 the poorest row has. */
static luma_status count_positive(luma_state *S, const luma_tensor *weights, luma_tensor *t,
                                  luma_tensor *counts, int64_t *least) {
    luma_tensor zero = luma_number(0);
    luma_scalar v;
    int64_t last = weights->layout.ndim - 1;
    *least = INT64_MAX;
    if (weights->layout.ndim == 2 && weights->layout.shape[0] == 0) return LUMA_OK;
    LM_TRY(luma_gt(S, t, weights, &zero));
    LM_TRY(luma_sum(S, counts, t, 1, &last, false));
    luma_release(S, t);
    LM_TRY(luma_amin(S, t, counts, 0, NULL, false));
    LM_TRY(lm_item(S, t, &v));
    *least = v.u.i;
    luma_release(S, t);
    luma_release(S, counts);
    return LUMA_OK;
}

static luma_status draw_by_weight(luma_state *S, luma_tensor *out, const luma_tensor *weights,
                                  int64_t n, bool replacement, lm_scope *s) {
    luma_tensor *cast = lm_temp(s), *w = lm_temp(s), *t = lm_temp(s);
    double least = 0, greatest = 0;
    int64_t positive, needed = replacement ? n > 0 : n;
    LM_TRY(lm_cast(S, cast, weights, LUMA_FLOAT64));
    LM_TRY(luma_contiguous(S, w, cast));
    if (luma_numel(w) > 0) LM_TRY(extremes(S, w, t, &least, &greatest));
    luma_release(S, t);
    if (!(least >= 0 && greatest < (double)INFINITY))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "weights are finite and not negative, got %g",
                       least >= 0 ? greatest : least);
    LM_TRY(count_positive(S, w, t, lm_temp(s), &positive));
    if (positive < needed)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "%lld positive weights, where %lld are needed",
                       (long long)positive, (long long)needed);
    return replacement ? draw_with(S, out, w, n, s) : draw_without(S, out, w, n, s);
}

luma_status luma_multinomial(luma_state *S, luma_tensor *out, const luma_tensor *weights, int64_t n,
                             bool replacement) {
    int64_t all;
    int ndim = weights->layout.ndim;
    if (lm_is_number(weights) || (ndim != 1 && ndim != 2))
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "1 or 2 dims expected, got %d", ndim);
    if (n < 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld draws", (long long)n);
    int64_t shape[2] = {ndim == 2 ? weights->layout.shape[0] : 1, n};
    if (!lm_numel_fits(2, shape, LUMA_INT64, &all))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld draws are too many", (long long)n);
    lm_device *d = lm_device_of(weights);
    uint64_t offset = d->offset;
    lm_scope s;
    lm_scope_open(&s, S);
    return finish(&s, d, offset, draw_by_weight(S, out, weights, n, replacement, &s));
}

/* ---- dropout ---- */

static luma_status drop(luma_state *S, luma_tensor *out, const luma_tensor *x, double p,
                        lm_scope *s) {
    luma_tensor *draws = lm_temp(s), *keep = lm_temp(s), *scaled = lm_temp(s);
    luma_tensor chance = luma_number(p), factor = luma_number(1 / (1 - p)), zero = luma_number(0);
    LM_TRY(lm_tensor_new(S, draws, lm_device_of(x), LUMA_FLOAT32, x->layout.ndim, x->layout.shape));
    LM_TRY(luma_rand(S, draws));
    LM_TRY(luma_ge(S, keep, draws, &chance));
    LM_TRY(luma_mul(S, scaled, x, &factor));
    return luma_where(S, out, keep, scaled, &zero);
}

luma_status luma_dropout(luma_state *S, luma_tensor *out, const luma_tensor *x, double p,
                         bool training) {
    lm_result r;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    if (!lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a float dtype expected",
                       lm_dtypes[x->dtype].name);
    if (!(p >= 0 && p <= 1)) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "p is %g: 0 to 1 expected", p);
    if (!training || p == 0) return luma_clone(S, out, x);
    lm_device *d = lm_device_of(x);
    LM_TRY(lm_result_open(S, &r, out, d, x->dtype, x->layout.ndim, x->layout.shape, &x, 1,
                          LM_RESULT_ALIGNED));
    uint64_t offset = d->offset;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_status status =
        p < 1 ? drop(S, &r.work, x, p, &s) : lm_fill(S, &r.work, luma_number(0).number);
    return finish(&s, d, offset, lm_result_close(S, &r, status));
}
