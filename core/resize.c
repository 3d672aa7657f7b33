/* resize.c -- images and volumes in other sizes: interpolation dim by dim, and channels laid out over
** pixels. Layer: core. */
#include "resize.h"

#include <math.h>
#include <string.h>

#include "compose.h"
#include "fused.h"

/* ---- pixel_shuffle ---------------------------------------------------------------------------*/

/* x (..., c, h, w) as the batch that its outer dims make, with the dims of an image behind. */
typedef struct {
    int64_t batch, c, h, w;
    luma_tensor split; /* 6 dims; owned */
} pixels;

static luma_status open_pixels(luma_state *S, pixels *p, const luma_tensor *x, int64_t r) {
    lm_text text;
    int n = x->layout.ndim;
    LM_TRY(lm_tensor_live(S, 1, x));
    const int64_t *shape = x->layout.shape;
    if (n < 3)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: at least 3 dims expected, as in (n, c, h, w)",
                       lm_shape_text(&text, n, shape));
    if (r < 1)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "a factor of %lld: at least 1 expected",
                       (long long)r);
    p->batch = 1;
    for (int d = 0; d < n - 3; d++)
        p->batch *= shape[d];
    p->c = shape[n - 3];
    p->h = shape[n - 2];
    p->w = shape[n - 1];
    return LUMA_OK;
}

/* Copies p->split, its dims in another order, to the result of that shape; releases it. */
static luma_status close_pixels(luma_state *S, pixels *p, luma_tensor *out, const luma_tensor *x,
                                const int64_t image[3], const int order[6]) {
    lm_result r;
    int n = x->layout.ndim;
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, x->layout.shape, sizeof shape);
    memcpy(shape + n - 3, image, 3 * sizeof *shape);
    luma_status status = lm_result_open(S, &r, out, lm_device_of(x), x->dtype, n, shape, &x, 1,
                                        LM_RESULT_CONTIGUOUS);
    if (status == LUMA_OK) {
        luma_tensor dst = r.work, src = p->split;
        src.layout = lm_layout_permute(&p->split.layout, order);
        dst.layout = lm_layout_contiguous(6, src.layout.shape);
        dst.layout.offset = r.work.layout.offset;
        status = lm_result_close(S, &r, lm_copy(S, &dst, &src));
    }
    luma_release(S, &p->split);
    return status;
}

luma_status luma_pixel_shuffle(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t r) {
    pixels p = {.split = LUMA_NEW};
    lm_text text;
    int64_t h, w;
    LM_TRY(open_pixels(S, &p, x, r));
    if (r > INT32_MAX || p.c % (r * r) != 0)
        return lm_fail(
            S, LUMA_ERR_SHAPE, 2, "%s has %lld channels: a multiple of %lld times %lld expected",
            lm_layout_text(&text, &x->layout), (long long)p.c, (long long)r, (long long)r);
    if (!lm_mul_fits(p.h, r, &h) || !lm_mul_fits(p.w, r, &w))
        return lm_fail(S, LUMA_ERR_MEMORY, 2, "the result is too large");
    LM_TRY(luma_reshape(S, &p.split, x, 6, (int64_t[]){p.batch, p.c / (r * r), r, r, p.h, p.w}));
    return close_pixels(S, &p, out, x, (int64_t[]){p.c / (r * r), h, w}, (int[]){0, 1, 4, 2, 5, 3});
}

luma_status luma_pixel_unshuffle(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t r) {
    pixels p = {.split = LUMA_NEW};
    lm_text text;
    int64_t c;
    LM_TRY(open_pixels(S, &p, x, r));
    if (p.h % r != 0 || p.w % r != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s: height and width are no multiples of %lld",
                       lm_layout_text(&text, &x->layout), (long long)r);
    /* r is at most a size, but where that is 0 */
    if (!lm_mul_fits(p.c, r, &c) || !lm_mul_fits(c, r, &c))
        return lm_fail(S, LUMA_ERR_MEMORY, 2, "the result is too large");
    LM_TRY(luma_reshape(S, &p.split, x, 6, (int64_t[]){p.batch, p.c, p.h / r, r, p.w / r, r}));
    return close_pixels(S, &p, out, x, (int64_t[]){c, p.h / r, p.w / r}, (int[]){0, 1, 3, 5, 2, 4});
}

/* ---- interpolate -----------------------------------------------------------------------------*/

#define FIRST 2                                    /* spatial dims follow batch and channels */
#define AT_ONCE 131072                             /* elements that are blended at once */
enum { SIZE = 2, SCALE = 3, MODE = 4, ALIGN = 5 }; /* arguments */

/* One spatial dim. */
typedef struct {
    int64_t in, out;
    double scale; /* 0: that of the sizes */
    bool align;   /* the corners of both lie upon each other */
} axis;

/* The element under number i of the result. */
static int64_t nearest(const axis *a, int64_t i) {
    int64_t product;
    if (a->scale == 0 && lm_mul_fits(i, a->in, &product)) return product / a->out;
    double ratio = a->scale != 0 ? 1 / a->scale : (double)a->in / (double)a->out;
    double at = a->scale != 0 ? (double)i / a->scale : (double)i * ratio;
    return at < (double)a->in ? (int64_t)at : a->in - 1;
}

/* Where number i of the result lies among the elements: PyTorch's area_pixel_compute_source_index. */
static double place(const axis *a, int64_t i) {
    if (a->align) return a->out > 1 ? (double)i * (double)(a->in - 1) / (double)(a->out - 1) : 0.0;
    double at = (double)i + 0.5;
    at = a->scale != 0 ? at / a->scale : at * (double)a->in / (double)a->out;
    return at > 0.5 ? at - 0.5 : 0.0;
}

/* What one dim takes: of each element of the result the two it lies between and their weights, or
** only the nearest. */
typedef struct {
    luma_tensor at[2], weight[2];
} taps;

static void close_taps(luma_state *S, taps *t) {
    for (int k = 0; k < 2; k++) {
        luma_release(S, &t->at[k]);
        luma_release(S, &t->weight[k]);
    }
}

static void set_weight(luma_tensor *weight, int64_t i, double w) {
    char *p = lm_data(weight);
    if (weight->dtype == LUMA_FLOAT64)
        ((double *)(void *)p)[i] = w;
    else
        ((float *)(void *)p)[i] = (float)w;
}

static void fill_taps(const luma_state *S, taps *t, const axis *a, bool linear) {
    int64_t *first = (int64_t *)(void *)lm_data(&t->at[0]), *second = NULL;
    if (linear) second = (int64_t *)(void *)lm_data(&t->at[1]);
    for (int64_t i = 0; i < a->out; i++) {
        if (!linear) {
            first[i] = lm_pos(S, nearest(a, i));
            continue;
        }
        double at = place(a, i);
        int64_t below = at < (double)(a->in - 1) ? (int64_t)at : a->in - 1;
        double w = lm_min(below + 1, a->in - 1) > below ? at - (double)below : 0.0;
        first[i] = lm_pos(S, below);
        second[i] = lm_pos(S, lm_min(below + 1, a->in - 1));
        set_weight(&t->weight[0], i, 1 - w);
        set_weight(&t->weight[1], i, w);
    }
}

/* Made on the host; `after` dims follow the one that weights broadcast along. */
static luma_status make_taps(luma_state *S, taps *t, const axis *a, int after, luma_dtype dtype,
                             lm_device *device, bool linear) {
    int64_t shape[LUMA_MAX_DIMS] = {a->out, 1, 1, 1, 1, 1, 1, 1};
    for (int k = 0; k < (linear ? 2 : 1); k++) {
        LM_TRY(lm_tensor_new(S, &t->at[k], lm_cpu(S), LUMA_INT64, 1, shape));
        if (linear) LM_TRY(lm_tensor_new(S, &t->weight[k], lm_cpu(S), dtype, 1 + after, shape));
    }
    fill_taps(S, t, a, linear);
    luma_tensor *all[4] = {&t->at[0], &t->at[1], &t->weight[0], &t->weight[1]};
    for (int k = 0; k < 4 && device != lm_cpu(S); k++) {
        luma_tensor there = LUMA_NEW;
        if (!all[k]->storage) continue;
        LM_TRY(luma_to_device(S, &there, all[k], device->name));
        luma_release(S, all[k]);
        *all[k] = there;
    }
    return LUMA_OK;
}

/* y = a * v + b * w, in one pass. */
static luma_status blend(luma_state *S, luma_tensor *y, const luma_tensor *a, const luma_tensor *v,
                         const luma_tensor *b, const luma_tensor *w) {
    luma_program *p;
    int left, right, sum;
    LM_TRY(luma_program_new(S, &p, 4));
    luma_status status = lm_fused_add(S, p, LM_OP_mul, false, 2, (const int[]){0, 1}, &left);
    if (status == LUMA_OK)
        status = lm_fused_add(S, p, LM_OP_mul, false, 2, (const int[]){2, 3}, &right);
    if (status == LUMA_OK)
        status = lm_fused_add(S, p, LM_OP_add, false, 2, (const int[]){left, right}, &sum);
    if (status == LUMA_OK)
        status = lm_fused_run(S, y, p, sum, (const luma_tensor *const[]){a, v, b, w}, NULL);
    luma_program_free(p);
    return status;
}

/* Channels [at[1], at[1] + n[1]) of the elements [at[0], at[0] + n[0]) of the batch. */
static luma_tensor planes_of(const luma_tensor *x, const int64_t at[2], const int64_t n[2]) {
    luma_tensor part = *x;
    for (int d = 0; d < FIRST; d++)
        part.layout = lm_layout_slice(&part.layout, d, at[d], n[d], 1);
    return part;
}

static luma_status between(luma_state *S, luma_tensor *y, const luma_tensor *x, int d,
                           const taps *t) {
    luma_tensor near = LUMA_NEW, far = LUMA_NEW;
    luma_status status = luma_index_select(S, &near, x, d, &t->at[0]);
    if (status == LUMA_OK) status = luma_index_select(S, &far, x, d, &t->at[1]);
    if (status == LUMA_OK) status = blend(S, y, &near, &t->weight[0], &far, &t->weight[1]);
    luma_release(S, &far);
    luma_release(S, &near);
    return status;
}

/* How planes come to another size: dim after dim. */
typedef struct {
    int n, dims[3];
    taps taps[3];
    bool linear;
} steps;

static luma_status resize_planes(luma_state *S, luma_tensor *y, const luma_tensor *x,
                                 const steps *all) {
    luma_tensor now = LUMA_NEW;
    luma_status status = LUMA_OK;
    for (int k = 0; k < all->n && status == LUMA_OK; k++) {
        luma_tensor next = LUMA_NEW, *to = k == all->n - 1 ? y : &next;
        const luma_tensor *from = k == 0 ? x : &now;
        const taps *t = &all->taps[k];
        status = all->linear ? between(S, to, from, all->dims[k], t)
                             : luma_index_select(S, to, from, all->dims[k], &t->at[0]);
        luma_release(S, &now);
        now = next;
    }
    luma_release(S, &now);
    return status;
}

/* Where elements are blended on the CPU, so many planes at a time as its caches hold. */
static luma_status resize_all(luma_state *S, luma_tensor *y, const luma_tensor *x,
                              const steps *all) {
    const int64_t *shape = y->layout.shape;
    int64_t plane = 1, at[2], n[2] = {shape[0], shape[1]};
    for (int k = FIRST; k < y->layout.ndim; k++)
        plane *= shape[k];
    if (all->linear && lm_device_of(x) == lm_cpu(S)) {
        n[1] = lm_clamp(AT_ONCE / plane, 1, shape[1] > 1 ? shape[1] : 1);
        n[0] = lm_clamp(AT_ONCE / plane / n[1], 1, shape[0] > 1 ? shape[0] : 1);
    }
    for (at[0] = 0; at[0] < shape[0]; at[0] += n[0]) {
        for (at[1] = 0; at[1] < shape[1]; at[1] += n[1]) {
            int64_t some[2] = {lm_min(n[0], shape[0] - at[0]), lm_min(n[1], shape[1] - at[1])};
            luma_tensor from = planes_of(x, at, some), to = planes_of(y, at, some);
            LM_TRY(resize_planes(S, &to, &from, all));
        }
    }
    return LUMA_OK;
}

/* Dims that shrink come first, those that grow last, so that there is little between. */
static int next_dim(const axis *axes, int n, uint32_t done) {
    int best = -1;
    for (int d = n - 1; d >= 0; d--) {
        if (done >> d & 1) continue;
        if (best < 0 || (double)axes[d].out * (double)axes[best].in <
                            (double)axes[best].out * (double)axes[d].in)
            best = d;
    }
    return best;
}

/* *x becomes itself in another size. */
static luma_status resize(luma_state *S, luma_tensor *x, const axis *axes, int n, bool linear) {
    steps all = {.linear = linear};
    uint32_t done = 0;
    int64_t shape[LUMA_MAX_DIMS];
    luma_status status = LUMA_OK;
    memcpy(shape, x->layout.shape, sizeof shape);
    for (int k = 0; k < n && status == LUMA_OK; k++) {
        int d = next_dim(axes, n, done);
        done |= 1u << d;
        bool same = axes[d].in == axes[d].out && (axes[d].scale == 0 || axes[d].scale == 1);
        if (same) continue;
        shape[FIRST + d] = axes[d].out;
        all.dims[all.n] = FIRST + d;
        status = make_taps(S, &all.taps[all.n++], &axes[d], n - 1 - d, x->dtype, lm_device_of(x),
                           linear);
    }
    luma_tensor y = LUMA_NEW;
    if (status == LUMA_OK && all.n > 0)
        status = lm_tensor_new(S, &y, lm_device_of(x), x->dtype, x->layout.ndim, shape);
    if (status == LUMA_OK && all.n > 0) status = resize_all(S, &y, x, &all);
    for (int k = 0; k < all.n; k++)
        close_taps(S, &all.taps[k]);
    if (all.n > 0) luma_release(S, status == LUMA_OK ? x : &y);
    if (status == LUMA_OK && all.n > 0) *x = y;
    return status;
}

/* ---- arguments ----*/

static luma_status read_sizes(luma_state *S, axis *axes, const luma_tensor *x, int n,
                              const int64_t *size) {
    int dims = x->layout.ndim - FIRST;
    if (n != dims && n != 1)
        return lm_fail(S, LUMA_ERR_ARGUMENT, SIZE, "%d sizes for %d spatial dim%s", n, dims,
                       dims == 1 ? "" : "s");
    for (int d = 0; d < dims; d++) {
        axes[d].out = size[n == 1 ? 0 : d];
        if (axes[d].out < 1)
            return lm_fail(S, LUMA_ERR_ARGUMENT, SIZE, "size %lld: at least 1 expected",
                           (long long)axes[d].out);
    }
    return LUMA_OK;
}

static luma_status read_scale(luma_state *S, axis *axes, int dims, double scale) {
    if (!(scale > 0) || isinf(scale))
        return lm_fail(S, LUMA_ERR_ARGUMENT, SCALE, "%g: a positive number expected", scale);
    for (int d = 0; d < dims; d++) {
        double out = floor((double)axes[d].in * scale);
        if (out < 1)
            return lm_fail(S, LUMA_ERR_ARGUMENT, SCALE, "%g times size %lld is below 1", scale,
                           (long long)axes[d].in);
        if (out > 0x1p52) return lm_fail(S, LUMA_ERR_MEMORY, SCALE, "the result is too large");
        axes[d].out = (int64_t)out;
        axes[d].scale = scale;
    }
    return LUMA_OK;
}

static luma_status read_axes(luma_state *S, axis *axes, const luma_tensor *x, int n,
                             const int64_t *size, double scale, bool align) {
    lm_text text;
    int dims = x->layout.ndim - FIRST;
    LM_TRY(lm_tensor_live(S, 1, x));
    if (dims < 1 || dims > 3)
        return lm_fail(S, LUMA_ERR_SHAPE, 1,
                       "%s: 3 to 5 dims expected, batch, channels and 1 to 3 more",
                       lm_layout_text(&text, &x->layout));
    for (int d = 0; d < dims; d++) {
        axes[d] = (axis){.in = x->layout.shape[FIRST + d], .align = align};
        if (axes[d].in == 0)
            return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no elements along dim %lld",
                           lm_layout_text(&text, &x->layout), (long long)lm_pos(S, FIRST + d));
    }
    if (n > 0 && scale != 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, SCALE, "size or scale_factor expected, both given");
    if (n <= 0 && scale == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, SIZE, "size or scale_factor expected");
    return n > 0 ? read_sizes(S, axes, x, n, size) : read_scale(S, axes, dims, scale);
}

luma_status luma_interpolate(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                             const int64_t *size, double scale_factor, luma_resize mode,
                             bool align_corners) {
    axis axes[3];
    bool linear = mode == LUMA_RESIZE_LINEAR;
    LM_TRY(read_axes(S, axes, x, n, size, scale_factor, align_corners));
    if (mode != LUMA_RESIZE_NEAREST && mode != LUMA_RESIZE_LINEAR)
        return lm_fail(S, LUMA_ERR_ARGUMENT, MODE, "no mode has the number %d", (int)mode);
    if (align_corners && !linear)
        return lm_fail(S, LUMA_ERR_ARGUMENT, ALIGN, "true is for linear modes");
    int dims = x->layout.ndim - FIRST;
    luma_dtype dtype = lm_dtype_is_float(x->dtype) || !linear ? x->dtype : S->default_dtype;
    luma_dtype compute = !linear || dtype == LUMA_FLOAT64 ? dtype : LUMA_FLOAT32;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *y = lm_temp_cast(&s, x, compute);
    LM_DO(&s, resize(S, y, axes, dims, linear));
    bool same = dtype == compute && y->storage == x->storage;
    LM_DO(&s, same ? luma_clone(S, out, y) : lm_cast(S, out, y, dtype));
    return lm_scope_close(&s);
}

luma_status lm_interpolate_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const lm_arg *size, const lm_arg *scale, int mode,
                               bool align_corners) {
    static const char *const names[] = {"nearest", "linear", "bilinear", "trilinear"};
    int dims = x->layout.ndim - FIRST;
    luma_scalar s = scale->number;
    double factor = !scale->given ? 0.0 : s.kind == LUMA_IS_FLOAT ? s.u.d : (double)s.u.i;
    /* linear is along all there are */
    if (mode > 1 && dims != mode)
        return lm_fail(S, LUMA_ERR_ARGUMENT, MODE, "'%s' is for %d spatial dims, x has %d",
                       names[mode], mode, dims);
    if (scale->given && !(factor > 0))
        return lm_fail(S, LUMA_ERR_ARGUMENT, SCALE, "%g: a positive number expected", factor);
    return luma_interpolate(S, out, x, size->given ? size->n : 0, size->list, factor,
                            mode ? LUMA_RESIZE_LINEAR : LUMA_RESIZE_NEAREST, align_corners);
}
