/* sort.c -- sort, argsort, topk: results and checks; the device's sort slot does the work.
** Layer: core. */
#include <string.h>

#include "order.h"

static luma_status run(luma_state *S, const luma_tensor *values, const luma_tensor *positions,
                       const luma_tensor *x, int dim, int64_t from, int64_t k, bool descending) {
    lm_device *device = lm_device_of(x);
    if (luma_numel(x) == 0 || k == 0) return LUMA_OK;
    lm_sort s = {.dim = dim,
                 .descending = descending,
                 .from = from,
                 .k = k,
                 .index_base = S->index_base,
                 .values = lm_at_least_1d(values),
                 .positions = lm_at_least_1d(positions),
                 .x = lm_at_least_1d(x)};
    return LM_SLOT(S, device, sort, "sort", x->dtype, &s);
}

static luma_status sort_pair(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int dim,
                             int64_t from, int64_t k, bool descending) {
    int ndim = x->layout.ndim;
    int64_t shape[LUMA_MAX_DIMS];
    lm_pair p;
    memcpy(shape, x->layout.shape, sizeof shape);
    LM_TRY(lm_tensor_live(S, 1, x));
    if (ndim) shape[dim] = k;
    LM_TRY(lm_pair_open(S, &p, outs, x, ndim, shape));
    return lm_pair_close(S, &p,
                         run(S, &p.values.work, &p.positions.work, x, dim, from, k, descending));
}

luma_status luma_sort(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim,
                      bool descending) {
    int d;
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    int64_t n = x->layout.ndim ? x->layout.shape[d] : 1;
    return sort_pair(S, outs, x, d, 0, n, descending);
}

luma_status luma_topk(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t k,
                      int64_t dim, bool largest) {
    int d;
    LM_TRY(lm_dim(S, 3, dim, x->layout.ndim, &d));
    int64_t n = x->layout.ndim ? x->layout.shape[d] : 1;
    if (k < 0 || k > n)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "k is %lld: 0 to %lld, the size of dim %lld, "
                       "expected",
                       (long long)k, (long long)n, (long long)lm_pos(S, d));
    if (x->layout.ndim == 0 && k == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "k is 0: a 0-d tensor has one element");
    return sort_pair(S, outs, x, d, 0, k, largest);
}

luma_status lm_sort_place(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int dim,
                          int64_t place) {
    return sort_pair(S, outs, x, dim, place, 1, false);
}

luma_status lm_sort_values(luma_state *S, luma_tensor *out, const luma_tensor *x, int dim) {
    lm_result r;
    luma_tensor none = LUMA_NEW;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                          &x, 1, 0));
    int64_t n = x->layout.ndim ? x->layout.shape[dim] : 1;
    return lm_result_close(S, &r, run(S, &r.work, &none, x, dim, 0, n, false));
}

luma_status luma_argsort(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                         bool descending) {
    int d, ndim = x->layout.ndim;
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dim(S, 2, dim, ndim, &d));
    lm_result r;
    LM_TRY(
        lm_result_open(S, &r, out, lm_device_of(x), LUMA_INT64, ndim, x->layout.shape, &x, 1, 0));
    luma_tensor none = LUMA_NEW;
    int64_t n = ndim ? x->layout.shape[d] : 1;
    return lm_result_close(S, &r, run(S, &none, &r.work, x, d, 0, n, descending));
}
