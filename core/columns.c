/* columns.c -- what taps meet, as columns: im2col and col2im, and convolutions as matrix products of
** such columns in chunks. Layer: core. */
#include <string.h>

#include "conv.h"

#define CHUNK (64 << 20) /* bytes of columns at a time */

/* ---- windows -------------------------------------------------------------------------------- */

/* `count` positions from `first` on of the last three dims of x (5 dims), which reads as 0 outside:
** a view, or a copy where it reaches outside. Release it. */
static luma_status surround(luma_state *S, luma_tensor *own, const luma_tensor *x,
                            const int64_t *first, const int64_t *count) {
    luma_tensor from = *x, to;
    int64_t shape[5] = {x->layout.shape[0], x->layout.shape[1], count[0], count[1], count[2]};
    bool whole = true, none = false;
    for (int d = 0; d < 3; d++)
        whole = whole && first[d] >= 0 && first[d] <= x->layout.shape[d + 2] - count[d];
    luma_share(own, x);
    for (int d = 0; d < 3 && whole; d++)
        own->layout = lm_layout_slice(&own->layout, d + 2, first[d], count[d], 1);
    if (whole) return LUMA_OK;
    luma_release(S, own);
    LM_TRY(lm_tensor_new(S, own, lm_device_of(x), x->dtype, 5, shape));
    to = *own;
    for (int d = 0; d < 3; d++) {
        const int64_t lo = lm_max(first[d], 0);
        const int64_t hi = lm_min(first[d] + count[d], x->layout.shape[d + 2]);
        none = none || hi <= lo;
        if (none) continue;
        from.layout = lm_layout_slice(&from.layout, d + 2, lo, hi - lo, 1);
        to.layout = lm_layout_slice(&to.layout, d + 2, lo - first[d], hi - lo, 1);
    }
    luma_status status = lm_fill(S, own, (luma_scalar){.kind = LUMA_IS_INT});
    if (status == LUMA_OK && !none) status = lm_copy(S, &to, &from);
    if (status != LUMA_OK) luma_release(S, own);
    return status;
}

/* The windows of a tensor that surround made, (n, c, kd, kh, kw, d, h, w): of so many positions
** from `from` on, the first of them over batches. */
static luma_layout windows(const luma_tensor *x, const lm_conv *v, const int64_t *kernel,
                           const int64_t *from, const int64_t *count) {
    luma_layout l = {.ndim = 8, .offset = x->layout.offset};
    l.shape[0] = count[0];
    l.shape[1] = x->layout.shape[1];
    l.stride[0] = x->layout.stride[0];
    l.stride[1] = x->layout.stride[1];
    l.offset += from[0] * x->layout.stride[0];
    for (int d = 0; d < 3; d++) {
        const int64_t step = x->layout.stride[d + 2];
        l.shape[2 + d] = kernel[d];
        l.stride[2 + d] = kernel[d] > 1 ? v->dilation[d] * step : 0;
        l.shape[5 + d] = count[d + 1];
        l.stride[5 + d] = count[d + 1] > 1 ? v->stride[d] * step : 0;
        l.offset += from[d + 1] > 0 ? from[d + 1] * v->stride[d] * step : 0;
    }
    return l;
}

/* Where the windows of `out` positions begin in x and how far they reach. */
static luma_status span(luma_state *S, const lm_conv *v, const int64_t *kernel, const int64_t *out,
                        int64_t *first, int64_t *count) {
    for (int d = 0; d < 3; d++) {
        const int64_t steps = lm_max(out[d] - 1, 0), taps = lm_max(kernel[d] - 1, 0);
        first[d] = -v->before[d];
        int64_t far, reach;
        if (!lm_mul_fits(steps, v->stride[d], &far) || !lm_mul_fits(taps, v->dilation[d], &reach) ||
            !lm_add_fits(far, reach + 1, &count[d]))
            return lm_fail(S, LUMA_ERR_MEMORY, 0, "the windows of a convolution reach too far");
    }
    return LUMA_OK;
}

/* ---- convolution as products ----------------------------------------------------------------- */

typedef struct {
    luma_state *S;
    lm_device *d;
    const lm_conv *v;
    luma_tensor x, w;          /* surrounded; (groups, filters, k) */
    luma_tensor columns, sums; /* scratch for a box, LUMA_NEW until one needs it */
    luma_dtype sum;            /* of sums: where a bias is to come, that of the accumulator */
    int64_t groups, channels, filters, taps;
    int64_t kernel[3], out[4]; /* out: batch and positions */
} work;

/* A tensor in scratch memory that was made before, or a new one. */
static luma_status scratch(work *k, luma_tensor *own, luma_dtype dtype, int ndim,
                           const int64_t *shape) {
    if (!own->storage) return lm_tensor_new(k->S, own, k->d, dtype, ndim, shape);
    own->layout = lm_layout_contiguous(ndim, shape); /* later boxes are no bigger */
    return LUMA_OK;
}

static luma_status add_bias(work *k, luma_tensor *y) {
    luma_tensor b = k->v->bias;
    if (!b.storage) return LUMA_OK;
    for (int d = 0; d < 3; d++)
        b.layout = lm_layout_insert(&b.layout, d + 1, 1, 0);
    return lm_map_inplace(k->S, LM_OP_add, y, 2, (const luma_tensor *[]){y, &b}, NULL);
}

/* Positions from `from` on: windows as columns, unless they can be read as they lie; the product and
** the bias; its way into out, which rounds, unless it could be written there. */
static luma_status multiply_box(work *k, const int64_t *from, const int64_t *count) {
    const lm_conv *v = k->v;
    const int64_t length = count[1] * count[2] * count[3];
    const int64_t columns[] = {count[0], k->groups, k->channels * k->taps, length};
    const int64_t sums[] = {count[0], k->groups, k->filters, length};
    luma_tensor b = k->x, y = v->out, a = k->w, c;
    bool ok;
    b.layout = windows(&k->x, v, k->kernel, from, count);
    luma_layout flat = lm_layout_view(&b.layout, 4, columns, &ok);
    if (!ok) {
        luma_tensor whole;
        LM_TRY(scratch(k, &k->columns, b.dtype, 8, b.layout.shape));
        whole = k->columns;
        LM_TRY(lm_copy(k->S, &whole, &b));
        b = whole;
        flat = lm_layout_contiguous(4, columns);
    }
    b.layout = flat;
    for (int d = 0; d < 4; d++)
        y.layout = lm_layout_slice(&y.layout, d == 0 ? 0 : d + 1, from[d], count[d], 1);
    c = y;
    c.layout = lm_layout_view(&y.layout, 4, sums, &ok);
    const bool direct = ok && k->sum == y.dtype;
    if (!direct) {
        LM_TRY(scratch(k, &k->sums, k->sum, 4, sums));
        c = k->sums;
    }
    a.layout = lm_layout_insert(&a.layout, 0, count[0], 0);
    LM_TRY(LM_SLOT(k->S, k->d, matmul, "a convolution", c.dtype, &c, &a, &b));
    if (direct) return add_bias(k, &y);
    c.layout = lm_layout_contiguous(5, y.layout.shape);
    LM_TRY(add_bias(k, &c));
    return lm_copy(k->S, &y, &c);
}

/* All boxes of positions, of which each has columns of CHUNK bytes at most if it can. */
static luma_status multiply_boxes(work *k) {
    int64_t box[4], from[4], count[4];
    double bytes = (double)lm_dtype_size(k->x.dtype) * (double)k->groups * (double)k->channels *
                   (double)lm_max(k->taps, 1);
    for (int d = 0; d < 4; d++)
        bytes *= (double)(box[d] = k->out[d]);
    for (int d = 0; d < 4; d++) {
        while (bytes > CHUNK && box[d] > 1) {
            bytes /= (double)box[d];
            box[d] = (box[d] + 1) / 2;
            bytes *= (double)box[d];
        }
    }
    for (from[0] = 0; from[0] < k->out[0]; from[0] += box[0]) {
        for (from[1] = 0; from[1] < k->out[1]; from[1] += box[1]) {
            for (from[2] = 0; from[2] < k->out[2]; from[2] += box[2]) {
                for (from[3] = 0; from[3] < k->out[3]; from[3] += box[3]) {
                    for (int d = 0; d < 4; d++)
                        count[d] = lm_min(box[d], k->out[d] - from[d]);
                    if (lm_interrupted(k->S)) return lm_fail_interrupted(k->S);
                    LM_TRY(multiply_box(k, from, count));
                }
            }
        }
    }
    return LUMA_OK;
}

/* w as matrices of the groups: a view, or a copy. */
static luma_status weights(work *k, const luma_tensor *w) {
    const int64_t shape[] = {k->groups, k->filters, k->channels * k->taps};
    bool ok;
    const luma_layout view = lm_layout_view(&w->layout, 3, shape, &ok);
    if (ok) {
        luma_share(&k->w, w);
        k->w.layout = view;
        return LUMA_OK;
    }
    LM_TRY(luma_force_contiguous(k->S, &k->w, w));
    k->w.layout = lm_layout_contiguous(3, shape);
    return LUMA_OK;
}

luma_status lm_conv_multiply(luma_state *S, lm_device *d, const lm_conv *v) {
    work k = {.S = S, .d = d, .v = v, .groups = v->groups, .taps = 1};
    int64_t first[3], count[3];
    k.channels = v->w.layout.shape[1];
    k.filters = v->out.layout.shape[1] / v->groups;
    k.out[0] = v->out.layout.shape[0];
    for (int i = 0; i < 3; i++) {
        k.kernel[i] = v->w.layout.shape[i + 2];
        k.out[i + 1] = v->out.layout.shape[i + 2];
        k.taps *= k.kernel[i];
    }
    if (luma_numel(&v->out) == 0) return LUMA_OK;
    LM_TRY(span(S, v, k.kernel, k.out + 1, first, count));
    k.x = k.w = k.columns = k.sums = LUMA_NEW;
    k.sum = v->out.dtype;
    if (v->bias.storage) k.sum = lm_dtype_wide(k.sum);
    luma_status status = surround(S, &k.x, &v->x, first, count);
    if (status == LUMA_OK) status = weights(&k, &v->w);
    if (status == LUMA_OK) status = multiply_boxes(&k);
    luma_release(S, &k.sums);
    luma_release(S, &k.columns);
    luma_release(S, &k.w);
    luma_release(S, &k.x);
    return status;
}

/* ---- im2col, col2im ------------------------------------------------------------------------- */

static const lm_conv_places im2col_places = {2, 3, 4, 5, 0, 0};
static const lm_conv_places col2im_places = {3, 4, 5, 6, 0, 0};

/* Taps and positions in all. */
static luma_status count_windows(lm_conv_plan *p, bool same, int64_t *taps, int64_t *length) {
    *taps = *length = 1;
    for (int d = 0; d < 3; d++) {
        if (d >= 3 - p->n) LM_TRY(lm_conv_size(p, d, same));
        if (!lm_mul_fits(*taps, p->kernel[d], taps) || !lm_mul_fits(*length, p->out[d], length))
            return lm_fail(p->S, LUMA_ERR_SHAPE, p->at->kernel, "the windows are too many");
    }
    return LUMA_OK;
}

static lm_conv conv_of(const lm_conv_plan *p) {
    lm_conv v = {.groups = 1};
    memcpy(v.stride, p->stride, sizeof v.stride);
    memcpy(v.dilation, p->dilation, sizeof v.dilation);
    memcpy(v.before, p->before, sizeof v.before);
    return v;
}

luma_status luma_im2col(luma_state *S, luma_tensor *out, const luma_tensor *x, int nkernel,
                        const int64_t *kernel, const luma_conv_options *o) {
    lm_conv_plan p = {.S = S, .n = nkernel == 3 ? 3 : 2, .at = &im2col_places};
    int64_t taps, length, rows, first[3], count[3];
    luma_tensor own = LUMA_NEW;
    lm_text text;
    lm_result r;
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_conv_read(&p, o));
    LM_TRY(lm_conv_sizes(&p, 2, "kernel_size", nkernel, kernel, 1, p.kernel));
    const int ndim = x->layout.ndim;
    if (ndim != p.n + 1 && ndim != p.n + 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 1,
                       "%s: %d dims (channels first) or %d (a batch) expected",
                       lm_shape_text(&text, ndim, x->layout.shape), p.n + 1, p.n + 2);
    p.batched = ndim == p.n + 2;
    for (int i = 0; i < p.n; i++)
        p.in[3 - p.n + i] = x->layout.shape[ndim - p.n + i];
    LM_TRY(count_windows(&p, o && o->same, &taps, &length));
    const luma_tensor from = lm_conv_spread(&p, x, p.batched);
    if (!lm_mul_fits(from.layout.shape[1], taps, &rows))
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the windows are too many");
    const int64_t shape[] = {from.layout.shape[0], rows, length};
    const int skip = p.batched ? 0 : 1;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, 3 - skip, shape + skip, &x, 1,
                          LM_RESULT_CONTIGUOUS));
    const lm_conv v = conv_of(&p);
    const int64_t zero[4] = {0}, all[4] = {shape[0], p.out[0], p.out[1], p.out[2]};
    luma_status status = span(S, &v, p.kernel, p.out, first, count);
    if (status == LUMA_OK) status = surround(S, &own, &from, first, count);
    if (status == LUMA_OK) {
        luma_tensor to = r.work;
        own.layout = windows(&own, &v, p.kernel, zero, all);
        to.layout = lm_layout_contiguous(8, own.layout.shape);
        to.layout.offset = r.work.layout.offset;
        status = lm_copy(S, &to, &own);
    }
    luma_release(S, &own);
    return lm_result_close(S, &r, status);
}

/* Of the positions of a window's tap those that lie inside: *lo and the number. */
static int64_t inside(const lm_conv_plan *p, int d, int64_t tap, int64_t *lo) {
    const int64_t s = p->stride[d], at = tap * p->dilation[d] - p->before[d];
    *lo = at < 0 ? lm_ceil_div(-at, s) : 0;
    const int64_t hi = at < p->in[d] ? (p->in[d] - at - 1) / s + 1 : 0;
    return lm_max(lm_min(hi, p->out[d]) - *lo, 0);
}

/* y (n, c, size) += columns (n, c, kd, kh, kw, d, h, w), tap after tap. */
static luma_status add_windows(const lm_conv_plan *p, const luma_tensor *y,
                               const luma_tensor *columns) {
    int64_t tap[3];
    for (tap[0] = 0; tap[0] < p->kernel[0]; tap[0]++) {
        for (tap[1] = 0; tap[1] < p->kernel[1]; tap[1]++) {
            for (tap[2] = 0; tap[2] < p->kernel[2]; tap[2]++) {
                luma_tensor to = *y, from = *columns;
                bool none = false;
                for (int d = 2; d >= 0; d--) {
                    int64_t lo;
                    const int64_t n = inside(p, d, tap[d], &lo);
                    none = none || n == 0;
                    if (none) break;
                    const int64_t at = lo * p->stride[d] + tap[d] * p->dilation[d] - p->before[d];
                    to.layout = lm_layout_slice(&to.layout, d + 2, at, n, p->stride[d]);
                    from.layout = lm_layout_slice(&from.layout, d + 5, lo, n, 1);
                }
                for (int d = 0; d < 3 && !none; d++)
                    from.layout = lm_layout_select(&from.layout, 2, tap[d]);
                if (none) continue;
                LM_TRY(lm_map_inplace(p->S, LM_OP_add, &to, 2, (const luma_tensor *[]){&to, &from},
                                      NULL));
            }
        }
    }
    return LUMA_OK;
}

/* Checks the shape of columns; *channels of what comes of them. */
static luma_status check_columns(lm_conv_plan *p, const luma_tensor *columns, int64_t taps,
                                 int64_t length, int64_t *channels) {
    lm_text text;
    const luma_layout *l = &columns->layout;
    const char *shape = lm_layout_text(&text, l);
    if (l->ndim != 2 && l->ndim != 3)
        return lm_fail(p->S, LUMA_ERR_SHAPE, 1, "%s: 2 dims or 3 (a batch) expected", shape);
    p->batched = l->ndim == 3;
    if (l->shape[l->ndim - 1] != length)
        return lm_fail(p->S, LUMA_ERR_SHAPE, 1, "%s: %lld columns expected, one for each window",
                       shape, (long long)length);
    if (l->shape[l->ndim - 2] % taps != 0)
        return lm_fail(p->S, LUMA_ERR_SHAPE, 1,
                       "%s: the rows are no multiple of the %lld positions of a window", shape,
                       (long long)taps);
    *channels = l->shape[l->ndim - 2] / taps;
    return LUMA_OK;
}

luma_status luma_col2im(luma_state *S, luma_tensor *out, const luma_tensor *columns, int nsize,
                        const int64_t *size, int nkernel, const int64_t *kernel,
                        const luma_conv_options *o) {
    lm_conv_plan p = {.S = S, .n = nsize == 3 || nkernel == 3 ? 3 : 2, .at = &col2im_places};
    int64_t taps, length, channels = 0;
    lm_result r;
    LM_TRY(lm_tensor_live(S, 1, columns));
    LM_TRY(lm_tensor_not_bool(S, 1, columns, "sums"));
    p.batched = columns->layout.ndim == 3;
    LM_TRY(lm_conv_read(&p, o));
    LM_TRY(lm_conv_sizes(&p, 2, "output_size", nsize, size, 0, p.in));
    LM_TRY(lm_conv_sizes(&p, 3, "kernel_size", nkernel, kernel, 1, p.kernel));
    LM_TRY(count_windows(&p, o && o->same, &taps, &length));
    LM_TRY(check_columns(&p, columns, taps, length, &channels));
    const int skip = p.batched ? 0 : 1;
    int64_t shape[5] = {p.batched ? columns->layout.shape[0] : 1, channels};
    memcpy(shape + 2, p.in + 3 - p.n, (size_t)p.n * sizeof *shape);
    lm_device *device = lm_device_of(columns);
    LM_TRY(lm_result_open(S, &r, out, device, columns->dtype, p.n + 2 - skip, shape + skip,
                          &columns, 1, 0));
    /* small floats add up in float32 */
    const luma_dtype sums = lm_dtype_wide(columns->dtype);
    luma_tensor own = LUMA_NEW, to = r.work, from = LUMA_NEW;
    luma_status status = LUMA_OK;
    if (sums != columns->dtype) {
        status = lm_tensor_new(S, &own, device, sums, r.work.layout.ndim, r.work.layout.shape);
        to = own;
    }
    if (status == LUMA_OK) status = lm_fill(S, &to, (luma_scalar){.kind = LUMA_IS_INT});
    if (status == LUMA_OK) status = luma_contiguous(S, &from, columns);
    if (status == LUMA_OK) {
        const luma_tensor y = lm_conv_spread(&p, &to, p.batched);
        const int64_t *k = p.kernel, *n = p.out;
        const int64_t all[] = {shape[0], channels, k[0], k[1], k[2], n[0], n[1], n[2]};
        luma_tensor c = from;
        c.layout = lm_layout_contiguous(8, all);
        c.layout.offset = from.layout.offset;
        status = luma_numel(&y) > 0 ? add_windows(&p, &y, &c) : LUMA_OK;
    }
    if (status == LUMA_OK && own.storage) status = lm_copy(S, &r.work, &own);
    luma_release(S, &from);
    luma_release(S, &own);
    return lm_result_close(S, &r, status);
}

/* stride, padding, dilation */
static luma_conv_options options_of(const lm_arg *a) {
    return (luma_conv_options){.nstride = a[0].n,
                               .stride = a[0].list,
                               .npadding = a[1].n,
                               .padding = a[1].list,
                               .same = a[1].text && strcmp(a[1].text, "same") == 0,
                               .ndilation = a[2].n,
                               .dilation = a[2].list,
                               .groups = 1};
}

luma_status lm_im2col_arg(luma_state *S, luma_tensor *out, const lm_arg *a) {
    const luma_conv_options o = options_of(a + 2);
    return luma_im2col(S, out, a[0].tensor, a[1].n, a[1].list, &o);
}

luma_status lm_col2im_arg(luma_state *S, luma_tensor *out, const lm_arg *a) {
    const luma_conv_options o = options_of(a + 3);
    return luma_col2im(S, out, a[0].tensor, a[1].n, a[1].list, a[2].n, a[2].list, &o);
}
