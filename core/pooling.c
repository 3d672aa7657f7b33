/* pooling.c -- greatest and average values of windows: shapes and dtypes; then the device's pooling
** slot. Windows that cover everything are reductions. Layer: core. */
#include "pooling.h"

#include <string.h>

#include "compose.h"

#define MOST INT32_MAX /* of a kernel, a stride, a padding, a dilation: products of two fit */

/* ---- windows ---------------------------------------------------------------------------------*/

enum { KERNEL = 2, STRIDE = 3, PADDING = 4, DILATION = 5 }; /* arguments */

/* x (c, d1, ...) or (n, c, d1, ...), and the result. */
typedef struct {
    int dims; /* spatial */
    lm_window window[3];
    int64_t shape[LUMA_MAX_DIMS];
    bool whole; /* one window, which covers all elements and no padding */
} plan;

static luma_status open_plan(luma_state *S, plan *p, const luma_tensor *x, int dims) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    const luma_layout *l = &x->layout;
    int batch = l->ndim - dims;
    if (dims < 1 || dims > 3 || (batch != 1 && batch != 2))
        return lm_fail(S, LUMA_ERR_SHAPE, 1,
                       "%s: %d or %d dims expected, channels and %d more, perhaps a batch",
                       lm_layout_text(&text, l), dims + 1, dims + 2, dims);
    p->dims = dims;
    memcpy(p->shape, l->shape, sizeof p->shape);
    for (int k = 0; k < 3; k++)
        p->window[k] = (lm_window){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    for (int k = 0; k < dims; k++) {
        int64_t in = l->shape[batch + k];
        if (in == 0)
            return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements along dim %lld",
                           lm_layout_text(&text, l), (long long)lm_pos(S, batch + k));
        p->window[3 - dims + k].in = in;
    }
    return LUMA_OK;
}

/* Number k of a list that has one for each dim or one for all, or none: then `otherwise`. */
static luma_status entry(luma_state *S, int argument, const char *what, int n, const int64_t *list,
                         int dims, int k, int64_t least, int64_t otherwise, int64_t *out) {
    if (n == 0) {
        *out = otherwise;
        return LUMA_OK;
    }
    if (n != 1 && n != dims)
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "%d numbers for %d dim%s", n, dims,
                       dims == 1 ? "" : "s");
    *out = list[n == 1 ? 0 : k];
    if (*out >= least && *out <= MOST) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "%s %lld: %lld to %lld expected", what,
                   (long long)*out, (long long)least, (long long)MOST);
}

/* The number of windows, as PyTorch's pooling_output_shape: with ceil_mode the last one may reach
** outside, but begins inside or in the padding before. */
static int64_t count_windows(const lm_window *w, bool ceil_mode) {
    int64_t room = w->in + 2 * w->padding - w->dilation * (w->kernel - 1) - 1;
    if (ceil_mode) room += w->stride - 1;
    if (room < 0) return 0;
    int64_t last = room / w->stride;
    return ceil_mode && last * w->stride >= w->in + w->padding ? last : last + 1;
}

/* Every window has an element: padding alone has no greatest one and no average. Those that begin
** inside have. */
static luma_status check_windows(luma_state *S, const lm_window *w, int dim) {
    for (int64_t i = 0; i < w->out && i * w->stride < w->padding; i++) {
        if (lm_window_at(w, i).n > 0) continue;
        return lm_fail(S, LUMA_ERR_SHAPE, KERNEL,
                       "window %lld along dim %lld holds nothing but padding",
                       (long long)lm_pos(S, i), (long long)lm_pos(S, dim));
    }
    return LUMA_OK;
}

static luma_status read_window(luma_state *S, plan *p, const luma_pool *pool, int k) {
    lm_window *w = &p->window[3 - p->dims + k];
    if (pool->nkernel == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, KERNEL, "0 numbers");
    LM_TRY(
        entry(S, KERNEL, "a kernel of", pool->nkernel, pool->kernel, p->dims, k, 1, 1, &w->kernel));
    LM_TRY(entry(S, STRIDE, "a stride of", pool->nstride, pool->stride, p->dims, k, 1, w->kernel,
                 &w->stride));
    LM_TRY(entry(S, PADDING, "a padding of", pool->npadding, pool->padding, p->dims, k, 0, 0,
                 &w->padding));
    LM_TRY(entry(S, DILATION, "a dilation of", pool->ndilation, pool->dilation, p->dims, k, 1, 1,
                 &w->dilation));
    if (w->padding > w->kernel / 2)
        return lm_fail(S, LUMA_ERR_ARGUMENT, PADDING,
                       "a padding of %lld for a kernel of %lld: at most half of it expected",
                       (long long)w->padding, (long long)w->kernel);
    if (w->in > INT64_MAX / 4)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "dims of %lld elements are too long",
                       (long long)w->in);
    return LUMA_OK;
}

static luma_status read_windows(luma_state *S, plan *p, const luma_tensor *x,
                                const luma_pool *pool) {
    lm_text text;
    int batch = x->layout.ndim - p->dims;
    p->whole = true;
    for (int k = 0; k < p->dims; k++) {
        lm_window *w = &p->window[3 - p->dims + k];
        LM_TRY(read_window(S, p, pool, k));
        w->out = count_windows(w, pool->ceil_mode);
        if (w->out < 1)
            return lm_fail(S, LUMA_ERR_SHAPE, KERNEL,
                           "a kernel of %lld, dilated by %lld, does not fit into dim %lld of %s",
                           (long long)w->kernel, (long long)w->dilation,
                           (long long)lm_pos(S, batch + k), lm_layout_text(&text, &x->layout));
        LM_TRY(check_windows(S, w, batch + k));
        p->shape[batch + k] = w->out;
        p->whole = p->whole && w->out == 1 && w->padding == 0 && w->kernel == w->in &&
                   (w->dilation == 1 || w->in == 1);
    }
    return LUMA_OK;
}

/* Windows of one size are as good as those of a kernel, which devices take faster. */
static luma_status read_sizes(luma_state *S, plan *p, const luma_tensor *x, int n,
                              const int64_t *sizes) {
    int batch = x->layout.ndim - p->dims;
    int64_t most;
    p->whole = true;
    if (n == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "0 sizes");
    for (int k = 0; k < p->dims; k++) {
        lm_window *w = &p->window[3 - p->dims + k];
        LM_TRY(entry(S, 2, "a size of", n, sizes, p->dims, k, 1, 1, &w->out));
        if (!lm_mul_fits(w->in, w->out + 1, &most))
            return lm_fail(S, LUMA_ERR_MEMORY, 2, "the result is too large");
        w->adaptive = w->in % w->out != 0;
        w->kernel = w->stride = lm_max(w->in / w->out, 1);
        p->shape[batch + k] = w->out;
        p->whole = p->whole && w->out == 1;
    }
    return LUMA_OK;
}

/* ---- running ---------------------------------------------------------------------------------*/

/* x as (n, c, d, h, w). */
static luma_tensor five_dims(const luma_tensor *x, int dims) {
    luma_tensor t = *x;
    while (t.layout.ndim - dims < 2)
        t.layout = lm_layout_insert(&t.layout, 0, 1, 0);
    while (t.layout.ndim < 5)
        t.layout = lm_layout_insert(&t.layout, 2, 1, 0);
    return t;
}

static luma_status run(luma_state *S, const plan *p, lm_pooling *call, const luma_tensor *out,
                       const luma_tensor *positions, const luma_tensor *x) {
    lm_device *d = lm_device_of(x);
    if (luma_numel(out) == 0) return LUMA_OK;
    memcpy(call->window, p->window, sizeof call->window);
    call->index_base = S->index_base;
    call->x = five_dims(x, p->dims);
    call->out = five_dims(out, p->dims);
    call->positions = positions ? five_dims(positions, p->dims) : LUMA_NEW;
    return LM_SLOT(S, d, pooling, "pooling", x->dtype, call);
}

/* ---- averages --------------------------------------------------------------------------------*/

/* Averages of integers are those of float64, rounded to the default float dtype. */
static luma_status averages(luma_state *S, luma_tensor *out, const luma_tensor *x, const plan *p,
                            lm_pooling *call) {
    luma_dtype result = lm_dtype_floating(S, x->dtype);
    luma_dtype compute = lm_dtype_is_float(x->dtype) ? x->dtype : LUMA_FLOAT64;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), result, x->layout.ndim, p->shape, &x, 1, 0));
    if (luma_numel(&r.work) == 0) return lm_result_close(S, &r, LUMA_OK);
    if (compute == x->dtype && !p->whole)
        return lm_result_close(S, &r, run(S, p, call, &r.work, NULL, x));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *y = lm_temp(&s);
    if (p->whole) {
        int64_t dims[3] = {-1, -2, -3};
        LM_DO(&s, luma_mean(S, y, x, p->dims, dims, true));
    } else {
        luma_tensor *wide = lm_temp_cast(&s, x, compute);
        LM_DO(&s, lm_tensor_new(S, y, lm_device_of(x), compute, x->layout.ndim, p->shape));
        LM_DO(&s, run(S, p, call, y, NULL, wide));
    }
    LM_DO(&s, lm_copy(S, &r.work, y));
    return lm_result_close(S, &r, lm_scope_close(&s));
}

luma_status luma_avg_pool(luma_state *S, luma_tensor *out, const luma_tensor *x, int dims,
                          const luma_pool *pool) {
    plan p;
    LM_TRY(open_plan(S, &p, x, dims));
    LM_TRY(read_windows(S, &p, x, pool));
    for (int k = 0; k < pool->ndilation; k++) {
        if (pool->dilation[k] != 1)
            return lm_fail(S, LUMA_ERR_ARGUMENT, DILATION, "averages have no dilation");
    }
    lm_pooling call = {
        .op = LM_POOL_AVG, .padded = !pool->exclude_padding, .divisor = pool->divisor_override};
    p.whole = p.whole && pool->divisor_override == 0;
    return averages(S, out, x, &p, &call);
}

luma_status luma_adaptive_avg_pool(luma_state *S, luma_tensor *out, const luma_tensor *x, int dims,
                                   int n, const int64_t *size) {
    plan p;
    lm_pooling call = {.op = LM_POOL_AVG};
    LM_TRY(open_plan(S, &p, x, dims));
    LM_TRY(read_sizes(S, &p, x, n, size));
    return averages(S, out, x, &p, &call);
}

/* ---- greatest values -------------------------------------------------------------------------*/

/* The greatest of all, of the elements as one row. */
static luma_status of_whole(luma_state *S, const plan *p, const luma_tensor *values,
                            const luma_tensor *positions, const luma_tensor *x) {
    lm_scope s;
    lm_scope_open(&s, S);
    int batch = x->layout.ndim - p->dims;
    luma_tensor *flat = lm_temp(&s), outs[2] = {LUMA_NEW, LUMA_NEW};
    LM_DO(&s, luma_flatten(S, flat, x, batch, -1));
    LM_DO(&s, luma_max(S, outs, true, -1, true, flat));
    for (int k = 0; k < 2 && s.status == LUMA_OK; k++) {
        luma_tensor dst = k ? (positions ? *positions : LUMA_NEW) : *values;
        while (outs[k].layout.ndim < x->layout.ndim)
            outs[k].layout = lm_layout_insert(&outs[k].layout, batch, 1, 0);
        if (dst.storage) LM_DO(&s, lm_copy(S, &dst, &outs[k]));
    }
    luma_release(S, &outs[0]);
    luma_release(S, &outs[1]);
    return lm_scope_close(&s);
}

/* positions: NULL where they are not wanted. */
static luma_status find_greatest(luma_state *S, const plan *p, const luma_tensor *values,
                                 const luma_tensor *positions, const luma_tensor *x) {
    lm_pooling call = {.op = LM_POOL_MAX};
    if (luma_numel(values) == 0) return LUMA_OK;
    return p->whole ? of_whole(S, p, values, positions, x) : run(S, p, &call, values, positions, x);
}

static luma_status greatest(luma_state *S, luma_tensor outs[2], const luma_tensor *x, const plan *p,
                            bool wanted) {
    lm_result r;
    lm_pair both;
    int ndim = x->layout.ndim;
    if (wanted) {
        LM_TRY(lm_pair_open(S, &both, outs, x, ndim, p->shape));
        return lm_pair_close(S, &both,
                             find_greatest(S, p, &both.values.work, &both.positions.work, x));
    }
    LM_TRY(lm_result_open(S, &r, &outs[0], lm_device_of(x), x->dtype, ndim, p->shape, &x, 1, 0));
    return lm_result_close(S, &r, find_greatest(S, p, &r.work, NULL, x));
}

luma_status luma_max_pool(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int dims,
                          const luma_pool *pool, bool positions) {
    plan p;
    LM_TRY(open_plan(S, &p, x, dims));
    LM_TRY(read_windows(S, &p, x, pool));
    return greatest(S, outs, x, &p, positions);
}

luma_status luma_adaptive_max_pool(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                   int dims, int n, const int64_t *size, bool positions) {
    plan p;
    LM_TRY(open_plan(S, &p, x, dims));
    LM_TRY(read_sizes(S, &p, x, n, size));
    return greatest(S, outs, x, &p, positions);
}

/* ---- rows ------------------------------------------------------------------------------------*/

luma_status lm_max_pool_arg(luma_state *S, luma_tensor outs[2], int dims, const lm_arg *a) {
    luma_pool pool = {.nkernel = a[1].n, .kernel = a[1].list, .ceil_mode = a[5].given && a[5].i};
    if (a[2].given) pool.nstride = a[2].n;
    if (a[3].given) pool.npadding = a[3].n;
    if (a[4].given) pool.ndilation = a[4].n;
    pool.stride = a[2].list;
    pool.padding = a[3].list;
    pool.dilation = a[4].list;
    return luma_max_pool(S, outs, a[0].tensor, dims, &pool, !a[6].given || a[6].i);
}

luma_status lm_avg_pool_arg(luma_state *S, luma_tensor *out, int dims, const lm_arg *a) {
    luma_pool pool = {.nkernel = a[1].n,
                      .kernel = a[1].list,
                      .ceil_mode = a[4].given && a[4].i,
                      .exclude_padding = a[5].given && !a[5].i};
    if (a[2].given) pool.nstride = a[2].n;
    if (a[3].given) pool.npadding = a[3].n;
    pool.stride = a[2].list;
    pool.padding = a[3].list;
    if (a[6].given) pool.divisor_override = a[6].i;
    if (a[6].given && a[6].i == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 7, "division by 0");
    return luma_avg_pool(S, out, a[0].tensor, dims, &pool);
}
