/* conv.c -- convolutions: dtypes, shapes and errors; the device's conv slot computes. Every form is
** brought to three spatial dims; a transposed one is a convolution for each phase of its strides.
** Layer: core. */
#include "conv.h"

#include <string.h>

enum { X = 1, W, BIAS }; /* arguments */
static const lm_conv_places plain_places = {W, 4, 5, 6, 7, 0};
static const lm_conv_places transposed_places = {W, 4, 5, 8, 7, 6};

typedef lm_conv_plan plan;

/* ---- arguments ------------------------------------------------------------------------------ */

luma_status lm_conv_sizes(const lm_conv_plan *p, int argument, const char *name, int count,
                          const int64_t *list, int64_t least, int64_t *sizes) {
    if (count != 1 && count != p->n)
        return lm_fail(p->S, LUMA_ERR_ARGUMENT, argument, "%s has %d entries: 1 or %d expected",
                       name, count, p->n);
    for (int i = 0; i < p->n; i++) {
        const int64_t size = list[count == 1 ? 0 : i];
        if (size < least)
            return lm_fail(p->S, LUMA_ERR_ARGUMENT, argument, "%s is %lld: at least %lld expected",
                           name, (long long)size, (long long)least);
        sizes[3 - p->n + i] = size;
    }
    return LUMA_OK;
}

/* The same of an option, which may be absent. */
static luma_status read_option(const plan *p, int argument, const char *name, int count,
                               const int64_t *list, int64_t least, int64_t *sizes) {
    return count > 0 ? lm_conv_sizes(p, argument, name, count, list, least, sizes) : LUMA_OK;
}

/* The same, or before and after of each. */
static luma_status read_padding(plan *p, int count, const int64_t *list) {
    int64_t both[6];
    if (count != 2 * p->n) {
        if (count > 1 && count != p->n)
            return lm_fail(p->S, LUMA_ERR_ARGUMENT, p->at->padding,
                           p->n == 1
                               ? "padding has %d entries: %d or %d (before and after) expected"
                               : "padding has %d entries: 1, %d or %d (before and after of "
                                 "each dim) expected",
                           count, p->n, 2 * p->n);
        LM_TRY(read_option(p, p->at->padding, "padding", count, list, 0, p->before));
        memcpy(p->after, p->before, sizeof p->after);
        return LUMA_OK;
    }
    for (int i = 0; i < p->n; i++) {
        both[i] = list[2 * i];
        both[3 + i] = list[2 * i + 1];
    }
    LM_TRY(read_option(p, p->at->padding, "padding", p->n, both, 0, p->before));
    return read_option(p, p->at->padding, "padding", p->n, both + 3, 0, p->after);
}

luma_status lm_conv_read(lm_conv_plan *p, const luma_conv_options *o) {
    for (int d = 0; d < 3; d++) {
        p->in[d] = p->kernel[d] = p->out[d] = p->stride[d] = p->dilation[d] = 1;
        p->before[d] = p->after[d] = p->more[d] = 0;
    }
    p->groups = o ? o->groups : 1;
    if (!o) return LUMA_OK;
    LM_TRY(read_option(p, p->at->stride, "stride", o->nstride, o->stride, 1, p->stride));
    LM_TRY(read_option(p, p->at->dilation, "dilation", o->ndilation, o->dilation, 1, p->dilation));
    if (p->transposed)
        LM_TRY(read_option(p, p->at->output_padding, "output_padding", o->noutput_padding,
                           o->output_padding, 0, p->more));
    if (p->groups < 1)
        return lm_fail(p->S, LUMA_ERR_ARGUMENT, p->at->groups,
                       "groups is %lld: at least 1 expected", (long long)p->groups);
    if (o->same) return LUMA_OK; /* once sizes are known */
    return read_padding(p, o->npadding, o->padding);
}

static luma_status check_operand(luma_state *S, int argument, const luma_tensor *x) {
    LM_TRY(lm_tensor_live(S, argument, x));
    return lm_tensor_not_bool(S, argument, x, "convolution");
}

/* Dtypes, devices, numbers of dims. */
static luma_status check_operands(plan *p, const luma_tensor *x, const luma_tensor *w,
                                  const luma_tensor *bias) {
    luma_state *S = p->S;
    lm_text text;
    LM_TRY(check_operand(S, X, x));
    LM_TRY(check_operand(S, W, w));
    if (bias) LM_TRY(check_operand(S, BIAS, bias));
    const luma_tensor *all[] = {x, w, bias};
    LM_TRY(lm_same_device(S, all, bias ? 3 : 2, &p->device));
    for (int i = 0; i < 3; i++) {
        if (all[i] && lm_device_of(all[i]) != p->device)
            return lm_fail(S, LUMA_ERR_DEVICE, i + 1, "a tensor on %s, where others are on %s",
                           lm_device_of(all[i])->name, p->device->name);
    }
    if (x->layout.ndim != p->n + 1 && x->layout.ndim != p->n + 2)
        return lm_fail(S, LUMA_ERR_SHAPE, X,
                       "%s: %d dims (channels first) or %d (a batch) expected",
                       lm_layout_text(&text, &x->layout), p->n + 1, p->n + 2);
    if (w->layout.ndim != p->n + 2)
        return lm_fail(S, LUMA_ERR_SHAPE, W, "%s: %d dims expected",
                       lm_layout_text(&text, &w->layout), p->n + 2);
    p->batched = x->layout.ndim == p->n + 2;
    p->dtype = lm_dtype_promote(x->dtype, w->dtype);
    if (bias) p->dtype = lm_dtype_promote(p->dtype, bias->dtype);
    return LUMA_OK;
}

static luma_status check_channels(plan *p, const luma_tensor *x, const luma_tensor *w,
                                  const luma_tensor *bias) {
    luma_state *S = p->S;
    lm_text text;
    const int64_t *ws = w->layout.shape, given = p->transposed ? ws[0] : ws[1];
    p->batch = p->batched ? x->layout.shape[0] : 1;
    p->channels = x->layout.shape[p->batched ? 1 : 0];
    if (p->channels % p->groups != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, X, "%lld channels do not divide into %lld groups",
                       (long long)p->channels, (long long)p->groups);
    const int64_t wanted = p->transposed ? p->channels : p->channels / p->groups;
    if (given != wanted)
        return lm_fail(S, LUMA_ERR_SHAPE, W,
                       "%s: size %lld of dim %lld expected, for %lld channels in %lld group%s",
                       lm_layout_text(&text, &w->layout), (long long)wanted,
                       (long long)lm_pos(S, p->transposed ? 0 : 1), (long long)p->channels,
                       (long long)p->groups, p->groups == 1 ? "" : "s");
    p->filters = p->transposed ? ws[1] : ws[0];
    if (!p->transposed && p->filters % p->groups != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, W, "%s: %lld filters do not divide into %lld groups",
                       lm_layout_text(&text, &w->layout), (long long)p->filters,
                       (long long)p->groups);
    if (p->transposed && !lm_mul_fits(p->filters, p->groups, &p->filters))
        return lm_fail(S, LUMA_ERR_SHAPE, p->at->groups, "%lld groups are too many",
                       (long long)p->groups);
    if (bias && (bias->layout.ndim != 1 || bias->layout.shape[0] != p->filters))
        return lm_fail(S, LUMA_ERR_SHAPE, BIAS, "%s: [%lld] expected, a number for each filter",
                       lm_layout_text(&text, &bias->layout), (long long)p->filters);
    return LUMA_OK;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static luma_status too_big(const plan *p, int d) {
    return lm_fail(p->S, LUMA_ERR_SHAPE, X, "dim %lld of the result would be too big",
                   (long long)lm_pos(p->S, d - 3 + p->n + 1 + p->batched));
}

/* Padding that keeps the size. */
static luma_status keep_size(plan *p, int d, int64_t reach) {
    if (p->stride[d] != 1)
        return lm_fail(p->S, LUMA_ERR_ARGUMENT, p->at->padding,
                       "padding \"same\" goes with stride 1, got %lld", (long long)p->stride[d]);
    p->before[d] = reach / 2;
    p->after[d] = reach - p->before[d];
    return LUMA_OK;
}

static luma_status plain_size(plan *p, int d, int64_t reach, bool same) {
    int64_t padded;
    if (same) LM_TRY(keep_size(p, d, reach));
    if (!lm_add_fits(p->in[d], p->before[d], &padded) || !lm_add_fits(padded, p->after[d], &padded))
        return too_big(p, d);
    if (reach >= padded)
        return lm_fail(p->S, LUMA_ERR_SHAPE, p->at->kernel,
                       "the kernel covers %lld positions of dim %lld, which has %lld with padding",
                       (long long)reach + 1, (long long)lm_pos(p->S, d - 3 + p->n + 1 + p->batched),
                       (long long)padded);
    p->out[d] = (padded - reach - 1) / p->stride[d] + 1;
    return LUMA_OK;
}

static luma_status transposed_size(plan *p, int d, int64_t reach) {
    int64_t size, cut;
    if (p->more[d] >= p->stride[d] && p->more[d] >= p->dilation[d] && p->more[d] > 0)
        return lm_fail(p->S, LUMA_ERR_ARGUMENT, p->at->output_padding,
                       "output_padding is %lld: less than stride or dilation expected",
                       (long long)p->more[d]);
    if (!lm_mul_fits(p->in[d] - 1, p->stride[d], &size) || !lm_add_fits(size, reach, &size) ||
        !lm_add_fits(size, p->more[d] + 1, &size))
        return too_big(p, d);
    if (!lm_add_fits(p->before[d], p->after[d], &cut) || p->in[d] == 0 || cut >= size)
        return lm_fail(p->S, LUMA_ERR_SHAPE, p->in[d] == 0 ? X : p->at->padding,
                       "nothing is left of dim %lld of the result",
                       (long long)lm_pos(p->S, d - 3 + p->n + 1 + p->batched));
    p->out[d] = size - cut;
    return LUMA_OK;
}

luma_status lm_conv_size(lm_conv_plan *p, int d, bool same) {
    int64_t reach;
    if (!lm_mul_fits(p->kernel[d] - 1, p->dilation[d], &reach) || reach == INT64_MAX)
        return too_big(p, d);
    LM_TRY(p->transposed ? transposed_size(p, d, reach) : plain_size(p, d, reach, same));
    if (p->kernel[d] == 1) p->dilation[d] = 1;
    return LUMA_OK;
}

static luma_status find_sizes(plan *p, const luma_tensor *x, const luma_tensor *w, bool same) {
    for (int d = 3 - p->n; d < 3; d++) {
        p->in[d] = x->layout.shape[x->layout.ndim - 3 + d];
        p->kernel[d] = w->layout.shape[w->layout.ndim - 3 + d];
        if (p->kernel[d] == 0)
            return lm_fail(p->S, LUMA_ERR_SHAPE, W, "size 0 of dim %lld: the kernel is empty",
                           (long long)lm_pos(p->S, w->layout.ndim - 3 + d));
        LM_TRY(lm_conv_size(p, d, same));
    }
    return LUMA_OK;
}

static luma_status make_plan(plan *p, const luma_tensor *x, const luma_tensor *w,
                             const luma_tensor *bias, const luma_conv_options *o) {
    p->at = p->transposed ? &transposed_places : &plain_places;
    LM_TRY(check_operands(p, x, w, bias));
    LM_TRY(lm_conv_read(p, o));
    LM_TRY(check_channels(p, x, w, bias));
    return find_sizes(p, x, w, o && o->same);
}

/* ---- running -------------------------------------------------------------------------------- */

luma_tensor lm_conv_spread(const lm_conv_plan *p, const luma_tensor *x, bool batched) {
    luma_tensor y = *x;
    if (!batched) y.layout = lm_layout_insert(&y.layout, 0, 1, 0);
    for (int d = p->n; d < 3; d++)
        y.layout = lm_layout_insert(&y.layout, 2, 1, 0);
    return y;
}

static luma_status run(luma_state *S, lm_device *d, const lm_conv *v) {
    return d->ops->conv ? d->ops->conv(S, d, v) : lm_conv_multiply(S, d, v);
}

static luma_status run_plain(const plan *p, lm_conv *v) {
    memcpy(v->stride, p->stride, sizeof v->stride);
    memcpy(v->dilation, p->dilation, sizeof v->dilation);
    memcpy(v->before, p->before, sizeof v->before);
    return run(p->S, p->device, v);
}

/* Along one dim, positions r, r + stride, ... of the result, which taps first, first + step, ... meet:
** position r + q * stride meets tap k at (r + q * stride + before - k * dilation) / stride. */
typedef struct {
    int64_t r, count;
    int64_t first, step, taps;
    int64_t dilation, before; /* of the convolution with these taps turned round */
} phase;

/* How many of them have taps, and whether all positions have. */
static int64_t count_phases(const plan *p, int d, bool *full) {
    const int64_t apart = p->stride[d] / lm_gcd(p->stride[d], p->dilation[d]);
    *full = *full && apart == p->stride[d] && p->kernel[d] >= apart;
    return lm_min(apart, p->kernel[d]);
}

/* That of tap `first`, the least one; count may be 0. */
static phase phase_of(const plan *p, int d, int64_t first) {
    const int64_t s = p->stride[d];
    phase f = {.first = first, .step = s / lm_gcd(s, p->dilation[d]), .dilation = 1};
    f.r = (first * p->dilation[d] % s - p->before[d] % s + s) % s;
    f.count = f.r < p->out[d] ? (p->out[d] - f.r - 1) / s + 1 : 0;
    f.taps = (p->kernel[d] - 1 - first) / f.step + 1;
    if (f.taps > 1) f.dilation = f.step * p->dilation[d] / s;
    f.before = (f.taps - 1) * f.dilation - (f.r + p->before[d] - first * p->dilation[d]) / s;
    return f;
}

/* One phase: its taps and its positions as views. w: (filters, channels / groups, kernel). */
static luma_status run_phase(const plan *p, const lm_conv *whole, const luma_tensor *w,
                             const phase *f) {
    lm_conv v = *whole;
    v.w = *w;
    for (int d = 0; d < 3; d++) {
        if (f[d].count == 0) return LUMA_OK;
        const int64_t last = f[d].first + (f[d].taps - 1) * f[d].step;
        v.stride[d] = 1;
        v.dilation[d] = f[d].dilation;
        v.before[d] = f[d].before;
        v.out.layout = lm_layout_slice(&v.out.layout, d + 2, f[d].r, f[d].count, p->stride[d]);
        v.w.layout = lm_layout_slice(&v.w.layout, d + 2, last, f[d].taps, -f[d].step);
    }
    return run(p->S, p->device, &v);
}

/* w (channels, filters / groups, kernel) as (filters, channels / groups, kernel), a copy. */
static luma_status turn_weights(const plan *p, luma_tensor *turned, const luma_tensor *w) {
    luma_layout l = w->layout;
    const int64_t c = p->channels / p->groups, f = p->filters / p->groups;
    const int64_t shape[] = {p->groups, f, c, l.shape[2], l.shape[3], l.shape[4]};
    luma_tensor from = *w;
    LM_TRY(lm_tensor_new(p->S, turned, p->device, w->dtype, 6, shape));
    from.layout = lm_layout_insert(&l, 0, p->groups, c * l.stride[0]);
    from.layout.shape[1] = c;
    from.layout = lm_layout_transpose(&from.layout, 1, 2);
    luma_status status = lm_copy(p->S, turned, &from);
    if (status != LUMA_OK) {
        luma_release(p->S, turned);
        return status;
    }
    const int64_t flat[] = {p->filters, c, l.shape[2], l.shape[3], l.shape[4]};
    turned->layout = lm_layout_contiguous(5, flat);
    return LUMA_OK;
}

static luma_status fill_with_bias(const plan *p, const lm_conv *v) {
    luma_tensor y = v->out, b = v->bias;
    if (!b.storage) return lm_fill(p->S, &y, (luma_scalar){.kind = LUMA_IS_INT});
    for (int d = 0; d < 3; d++)
        b.layout = lm_layout_insert(&b.layout, d + 1, 1, 0);
    return lm_copy(p->S, &y, &b);
}

/* Positions that no tap meets are bias or 0; those of each phase with taps follow. */
static luma_status run_transposed(const plan *p, const lm_conv *v) {
    luma_tensor w = LUMA_NEW;
    luma_status status = LUMA_OK;
    bool full = true;
    int64_t phases[3];
    phase f[3];
    for (int d = 0; d < 3; d++)
        phases[d] = count_phases(p, d, &full);
    if (luma_numel(&v->out) == 0) return LUMA_OK;
    if (!full) LM_TRY(fill_with_bias(p, v));
    LM_TRY(turn_weights(p, &w, &v->w));
    for (int64_t i = 0; i < phases[0] && status == LUMA_OK; i++) {
        f[0] = phase_of(p, 0, i);
        for (int64_t j = 0; j < phases[1] && status == LUMA_OK; j++) {
            f[1] = phase_of(p, 1, j);
            for (int64_t k = 0; k < phases[2] && status == LUMA_OK; k++) {
                f[2] = phase_of(p, 2, k);
                status = run_phase(p, v, &w, f);
            }
        }
    }
    luma_release(p->S, &w);
    return status;
}

static luma_status conv(luma_state *S, luma_tensor *out, int n, bool transposed,
                        const luma_tensor *x, const luma_tensor *w, const luma_tensor *bias,
                        const luma_conv_options *o) {
    plan p = {.S = S, .n = n, .transposed = transposed};
    lm_result r;
    if (bias && !bias->storage && bias->number.kind == LUMA_NOT_A_NUMBER) bias = NULL;
    LM_TRY(make_plan(&p, x, w, bias, o));
    int64_t shape[LUMA_MAX_DIMS] = {p.batch, p.filters};
    memcpy(shape + 2, p.out + 3 - n, (size_t)n * sizeof *shape);
    const int skip = p.batched ? 0 : 1;
    const luma_tensor *inputs[] = {x, w, bias};
    LM_TRY(lm_result_open(S, &r, out, p.device, p.dtype, n + 2 - skip, shape + skip, inputs,
                          bias ? 3 : 2, 0));
    lm_conv v = {.groups = p.groups, .bias = LUMA_NEW};
    luma_tensor met[3] = {LUMA_NEW, LUMA_NEW, LUMA_NEW};
    luma_status status = LUMA_OK;
    for (int i = 0; i < 3 && status == LUMA_OK; i++)
        if (inputs[i]) status = lm_meet(S, &met[i], inputs[i], p.dtype);
    if (status == LUMA_OK) {
        v.out = lm_conv_spread(&p, &r.work, p.batched);
        v.x = lm_conv_spread(&p, &met[0], p.batched);
        v.w = lm_conv_spread(&p, &met[1], true);
        v.bias = met[2];
        status = transposed ? run_transposed(&p, &v) : run_plain(&p, &v);
    }
    for (int i = 0; i < 3; i++)
        luma_release(S, &met[i]);
    return lm_result_close(S, &r, status);
}

/* ---- calls ---------------------------------------------------------------------------------- */

#define CONV(n)                                                                                    \
    luma_status luma_conv##n##d(luma_state *S, luma_tensor *out, const luma_tensor *x,             \
                                const luma_tensor *w, const luma_tensor *bias,                     \
                                const luma_conv_options *o) {                                      \
        return conv(S, out, n, false, x, w, bias, o);                                              \
    }                                                                                              \
    luma_status luma_conv_transpose##n##d(luma_state *S, luma_tensor *out, const luma_tensor *x,   \
                                          const luma_tensor *w, const luma_tensor *bias,           \
                                          const luma_conv_options *o) {                            \
        return conv(S, out, n, true, x, w, bias, o);                                               \
    }
CONV(1)
CONV(2)
CONV(3)

luma_status lm_conv_arg(luma_state *S, luma_tensor *out, int n, const lm_arg *a) {
    const luma_conv_options o = {.nstride = a[3].n,
                                 .stride = a[3].list,
                                 .npadding = a[4].n,
                                 .padding = a[4].list,
                                 .ndilation = a[5].n,
                                 .dilation = a[5].list,
                                 .same = a[4].text && strcmp(a[4].text, "same") == 0,
                                 .groups = a[6].given ? a[6].i : 1};
    return conv(S, out, n, false, a[0].tensor, a[1].tensor, a[2].given ? a[2].tensor : NULL, &o);
}

luma_status lm_conv_transpose_arg(luma_state *S, luma_tensor *out, int n, const lm_arg *a) {
    const luma_conv_options o = {.nstride = a[3].n,
                                 .stride = a[3].list,
                                 .npadding = a[4].n,
                                 .padding = a[4].list,
                                 .noutput_padding = a[5].n,
                                 .output_padding = a[5].list,
                                 .groups = a[6].given ? a[6].i : 1,
                                 .ndilation = a[7].n,
                                 .dilation = a[7].list};
    return conv(S, out, n, true, a[0].tensor, a[1].tensor, a[2].given ? a[2].tensor : NULL, &o);
}
