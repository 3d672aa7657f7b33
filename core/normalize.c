/* normalize.c -- normalisations: which elements make a line, statistics that run, errors; then the
** device's normalize slot. Layer: core. */
#include <math.h>
#include <string.h>

#include "compose.h"

/* What the slot is to do: lines are the last `along` dims of x in this shape. */
typedef struct {
    lm_normalize_kind kind;
    double eps;
    int ndim, along;
    int64_t shape[LUMA_MAX_DIMS];
    int64_t step[LUMA_MAX_DIMS];      /* of weight and bias, row-major, along the dims */
    const luma_tensor *weight, *bias; /* NULL: none */
} plan;

/* ---- arguments ---- */

/* Number `argument` of the call: x, weight and so on; NULL where it is absent. */
static luma_status check_numbers(luma_state *S, int argument, const luma_tensor *x,
                                 const luma_tensor *like) {
    if (!x) return LUMA_OK;
    LM_TRY(lm_tensor_check(S, argument, x, false));
    return lm_tensor_beside(S, argument, x, like, "x");
}

static luma_status check_eps(luma_state *S, double eps) {
    if (eps >= 0 && eps < HUGE_VAL) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "eps is %g: 0 or a positive number expected", eps);
}

static luma_status check_shape(luma_state *S, int argument, const luma_tensor *x, int ndim,
                               const int64_t *shape) {
    lm_text got, want;
    if (!x || (x->layout.ndim == ndim &&
               memcmp(x->layout.shape, shape, (size_t)ndim * sizeof *shape) == 0))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s, where %s is expected",
                   lm_layout_text(&got, &x->layout), lm_shape_text(&want, ndim, shape));
}

/* weight and bias are arguments `first` and first + 1 of this shape. */
static luma_status check_affine(luma_state *S, int first, const luma_tensor *x,
                                const luma_tensor *weight, const luma_tensor *bias, int ndim,
                                const int64_t *shape) {
    LM_TRY(check_numbers(S, first, weight, x));
    LM_TRY(check_numbers(S, first + 1, bias, x));
    LM_TRY(check_shape(S, first, weight, ndim, shape));
    return check_shape(S, first + 1, bias, ndim, shape);
}

/* (batch, channels, all others) of x. */
static luma_status find_channels(luma_state *S, const luma_tensor *x, int64_t shape[3]) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    if (x->layout.ndim < 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: at least 2 dims (batch, channels) expected",
                       lm_layout_text(&text, &x->layout));
    shape[0] = x->layout.shape[0];
    shape[1] = x->layout.shape[1];
    shape[2] = 1;
    for (int d = 2; d < x->layout.ndim; d++)
        shape[2] *= x->layout.shape[d];
    return LUMA_OK;
}

/* ---- the slot ---- */

/* One along dim where two walk as one. */
static void merge_along(plan *p, luma_layout *x) {
    int d = p->ndim - 2;
    bool affine = p->weight || p->bias;
    if (p->along < 2) return;
    int64_t outer = x->shape[d], inner = x->shape[d + 1];
    if (inner == 1) {
        *x = lm_layout_remove(x, d + 1);
    } else if (outer == 1) {
        *x = lm_layout_remove(x, d);
        p->step[d] = p->step[d + 1];
    } else if (x->stride[d] == inner * x->stride[d + 1] &&
               (!affine || p->step[d] == inner * p->step[d + 1])) {
        *x = lm_layout_remove(x, d);
        x->shape[d] = outer * inner;
        p->step[d] = p->step[d + 1];
    } else {
        return;
    }
    p->along = 1;
    p->ndim--;
}

/* x in the plan's shape, its lines side by side. */
static luma_status lay_out(lm_scope *s, const luma_tensor *x, plan *p, luma_tensor *lines) {
    bool ok;
    plan before = *p;
    *lines = *x;
    lines->layout = lm_layout_view(&x->layout, p->ndim, p->shape, &ok);
    if (ok) {
        merge_along(p, &lines->layout);
        int last = p->ndim - 1;
        if (lines->layout.stride[last] == 1 || lines->layout.shape[last] == 1) return LUMA_OK;
    }
    *p = before;
    luma_tensor *copy = lm_temp(s);
    LM_TRY(luma_force_contiguous(s->S, copy, x));
    *lines = *copy;
    lines->layout = lm_layout_view(&copy->layout, p->ndim, p->shape, &ok);
    merge_along(p, &lines->layout);
    return LUMA_OK;
}

/* weight or bias as the slot wants it: side by side in dtype, then along the lines. */
static luma_status lay_out_affine(lm_scope *s, const luma_tensor *x, luma_dtype dtype,
                                  const plan *p, const luma_layout *lines, luma_tensor *out) {
    *out = LUMA_NEW;
    if (!x) return LUMA_OK;
    luma_tensor *cast = lm_temp(s), *whole = lm_temp(s);
    LM_TRY(lm_cast(s->S, cast, x, dtype));
    LM_TRY(luma_contiguous(s->S, whole, cast));
    *out = *whole;
    int64_t offset = whole->layout.offset;
    out->layout = *lines;
    out->layout.offset = offset;
    memcpy(out->layout.stride, p->step, (size_t)p->ndim * sizeof *p->step);
    return LUMA_OK;
}

static luma_status fill_result(lm_scope *s, luma_tensor *out, const luma_tensor *x, plan *p) {
    luma_state *S = s->S;
    lm_device *d = lm_device_of(x);
    luma_tensor wide = *x, *to = out;
    bool whole = !lm_dtype_is_float(x->dtype);
    if (luma_numel(x) == 0) return LUMA_OK;
    if (whole) {
        luma_tensor *cast = lm_temp(s);
        LM_TRY(lm_cast(S, cast, x, LUMA_FLOAT64));
        wide = *cast;
        to = lm_temp(s);
        LM_TRY(lm_tensor_new(S, to, d, LUMA_FLOAT64, x->layout.ndim, x->layout.shape));
    }
    bool ok;
    lm_normalize call = {.kind = p->kind, .eps = p->eps};
    luma_dtype affine = lm_dtype_accumulator(wide.dtype);
    LM_TRY(lay_out(s, &wide, p, &call.x));
    LM_TRY(lay_out_affine(s, p->weight, affine, p, &call.x.layout, &call.weight));
    LM_TRY(lay_out_affine(s, p->bias, affine, p, &call.x.layout, &call.bias));
    call.along = p->along;
    call.out = *to;
    call.out.layout = lm_layout_view(&to->layout, p->ndim, call.x.layout.shape, &ok);
    LM_TRY(LM_SLOT(S, d, normalize, "normalisation", wide.dtype, &call));
    return whole ? lm_copy(S, out, to) : LUMA_OK;
}

static luma_status normalize(luma_state *S, luma_tensor *out, const luma_tensor *x, plan *p) {
    lm_result r;
    lm_scope s;
    const luma_tensor *inputs[3] = {x};
    int n = 1;
    if (p->weight) inputs[n++] = p->weight;
    if (p->bias) inputs[n++] = p->bias;
    luma_dtype dtype = lm_dtype_floating(S, x->dtype);
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), dtype, x->layout.ndim, x->layout.shape,
                          inputs, n, LM_RESULT_CONTIGUOUS));
    lm_scope_open(&s, S);
    LM_DO(&s, fill_result(&s, &r.work, x, p));
    return lm_result_close(S, &r, lm_scope_close(&s));
}

/* ---- layers ---- */

/* Lines are the last n dims of x, which have this shape. */
static luma_status find_lines(luma_state *S, plan *p, const luma_tensor *x, int n,
                              const int64_t *shape) {
    lm_text got, want;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    int from = x->layout.ndim - n;
    if (n < 1) return lm_fail(S, LUMA_ERR_SHAPE, 2, "the shape of a line has at least 1 dim");
    if (n > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%d dims: at most %d", n, LUMA_MAX_DIMS);
    if (from < 0 || memcmp(x->layout.shape + from, shape, (size_t)n * sizeof *shape) != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s are not the last dims of x, which is %s",
                       lm_shape_text(&want, n, shape), lm_layout_text(&got, &x->layout));
    p->along = 1;
    p->ndim = from + 1;
    memcpy(p->shape, x->layout.shape, sizeof p->shape);
    p->shape[from] = 1;
    for (int d = 0; d < n; d++)
        p->shape[from] *= shape[d];
    p->step[from] = 1;
    return LUMA_OK;
}

luma_status luma_layer_norm(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                            const int64_t *shape, const luma_tensor *weight,
                            const luma_tensor *bias, double eps) {
    plan p = {.kind = LM_NORMALIZE_LAYER, .eps = eps, .weight = weight, .bias = bias};
    LM_TRY(find_lines(S, &p, x, n, shape));
    LM_TRY(check_affine(S, 3, x, weight, bias, n, shape));
    LM_TRY(check_eps(S, eps));
    return normalize(S, out, x, &p);
}

luma_status luma_rms_norm(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                          const int64_t *shape, const luma_tensor *weight, bool has_eps,
                          double eps) {
    plan p = {.kind = LM_NORMALIZE_RMS, .weight = weight};
    LM_TRY(find_lines(S, &p, x, n, shape));
    LM_TRY(check_affine(S, 3, x, weight, NULL, n, shape));
    p.eps = has_eps ? eps : lm_dtypes[lm_dtype_floating(S, x->dtype)].eps;
    LM_TRY(check_eps(S, p.eps));
    return normalize(S, out, x, &p);
}

/* Lines of channels / groups channels each. */
static void set_groups(plan *p, const int64_t channels[3], int64_t groups) {
    p->ndim = 4;
    p->along = 2;
    p->shape[0] = channels[0];
    p->shape[1] = groups;
    p->shape[2] = p->step[1] = channels[1] / groups;
    p->shape[3] = channels[2];
    p->step[2] = 1;
}

luma_status luma_group_norm(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t groups,
                            const luma_tensor *weight, const luma_tensor *bias, double eps) {
    plan p = {.kind = LM_NORMALIZE_LAYER, .eps = eps, .weight = weight, .bias = bias};
    int64_t channels[3];
    LM_TRY(find_channels(S, x, channels));
    if (groups < 1 || channels[1] % groups != 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "%lld groups: the %lld channels of x do not divide into them",
                       (long long)groups, (long long)channels[1]);
    LM_TRY(check_affine(S, 3, x, weight, bias, 1, &channels[1]));
    LM_TRY(check_eps(S, eps));
    set_groups(&p, channels, groups);
    return normalize(S, out, x, &p);
}

/* ---- running statistics ---- */

/* Of batch_norm and instance_norm; arguments 2 and 3. */
typedef struct {
    const luma_tensor *mean, *var; /* NULL: none */
    double momentum;
    luma_tensor *new_mean, *new_var; /* what they become; NULL: they stay */
} running;

static luma_status check_running_one(luma_state *S, int argument, const luma_tensor *x,
                                     const luma_tensor *like, int64_t channels) {
    LM_TRY(check_numbers(S, argument, x, like));
    LM_TRY(check_shape(S, argument, x, 1, &channels));
    if (x && !lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "%s: statistics are floats",
                       lm_dtypes[x->dtype].name);
    return LUMA_OK;
}

static luma_status check_running(luma_state *S, const luma_tensor *x, const running *r,
                                 int64_t channels, bool written) {
    LM_TRY(check_running_one(S, 2, r->mean, x, channels));
    LM_TRY(check_running_one(S, 3, r->var, x, channels));
    if (!r->mean != !r->var)
        return lm_fail(S, LUMA_ERR_ARGUMENT, r->mean ? 3 : 2,
                       "running_mean and running_var go together");
    if (!written) return LUMA_OK;
    if (r->mean) LM_TRY(lm_tensor_check(S, 2, r->mean, true));
    if (r->var) LM_TRY(lm_tensor_check(S, 3, r->var, true));
    if (!(r->momentum >= 0 && r->momentum <= 1))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "momentum is %g: 0 to 1 expected", r->momentum);
    return LUMA_OK;
}

/* running * (1 - momentum) + fresh * momentum, in double. */
static void move_toward(lm_scope *s, luma_tensor *out, const luma_tensor *old,
                        const luma_tensor *fresh, double momentum) {
    luma_state *S = s->S;
    luma_tensor *a = lm_temp(s), *b = lm_temp(s), *sum = lm_temp(s);
    luma_tensor keep = luma_number(1 - momentum), take = luma_number(momentum);
    LM_DO(s, lm_cast(S, a, old, LUMA_FLOAT64));
    LM_DO(s, luma_mul(S, sum, a, &keep));
    LM_DO(s, luma_mul(S, b, fresh, &take));
    LM_DO(s, luma_add(S, out, sum, b));
}

/* fresh: float64 (channels). */
static void plan_running(lm_scope *s, running *r, const luma_tensor *mean,
                         const luma_tensor *unbiased) {
    if (!r->mean) return;
    r->new_mean = lm_temp(s);
    r->new_var = lm_temp(s);
    move_toward(s, r->new_mean, r->mean, mean, r->momentum);
    move_toward(s, r->new_var, r->var, unbiased, r->momentum);
}

/* The result, then the statistics, which are the caller's tensors under other names: all or, but for
** a device that fails between them, none. */
static void finish(lm_scope *s, luma_tensor *out, const luma_tensor *x, plan *p, const running *r) {
    bool fresh = !out->storage;
    LM_DO(s, normalize(s->S, out, x, p));
    if (!r->new_mean || s->status != LUMA_OK) return;
    luma_tensor mean = *r->mean, var = *r->var;
    LM_DO(s, lm_copy(s->S, &mean, r->new_mean));
    LM_DO(s, lm_copy(s->S, &var, r->new_var));
    if (s->status != LUMA_OK && fresh) luma_release(s->S, out);
}

/* Means and variances of x over dims, in float64. The variance is divided by n, unbiased by n - 1
** of the n elements. */
static void find_moments(lm_scope *s, const luma_tensor *x, int ndims, const int64_t *dims,
                         double n, luma_tensor *mean, luma_tensor *var, luma_tensor *unbiased) {
    luma_state *S = s->S;
    luma_tensor *wide = lm_temp(s), *m = lm_temp(s), *v = lm_temp(s);
    luma_tensor factor = luma_number(n / (n - 1));
    bool narrow = lm_dtype_is_float(x->dtype) && x->dtype != LUMA_FLOAT64;
    LM_DO(s, lm_cast(S, wide, x, narrow ? LUMA_FLOAT32 : LUMA_FLOAT64));
    LM_DO(s, luma_mean(S, m, wide, ndims, dims, false));
    LM_DO(s, luma_var_correction(S, v, wide, ndims, dims, false, 0));
    lm_temp_drop(s, wide);
    LM_DO(s, lm_cast(S, mean, m, LUMA_FLOAT64));
    LM_DO(s, lm_cast(S, var, v, LUMA_FLOAT64));
    if (unbiased) LM_DO(s, luma_mul(S, unbiased, var, &factor));
}

/* (x - mean) / sqrt(var + eps) * weight + bias as x * scale + shift, which are float64
** (channels). */
static void find_affine(lm_scope *s, const plan *p, const luma_tensor *mean, const luma_tensor *var,
                        luma_tensor *scale, luma_tensor *shift) {
    luma_state *S = s->S;
    luma_tensor *sum = lm_temp(s), *root = lm_temp(s), *moved = lm_temp(s);
    luma_tensor eps = luma_number(p->eps), zero = luma_number(0);
    LM_DO(s, luma_add(S, sum, var, &eps));
    LM_DO(s, luma_rsqrt(S, p->weight ? root : scale, sum));
    if (p->weight) {
        luma_tensor *w = lm_temp(s);
        LM_DO(s, lm_cast(S, w, p->weight, LUMA_FLOAT64));
        LM_DO(s, luma_mul(S, scale, root, w));
    }
    LM_DO(s, luma_mul(S, moved, mean, scale));
    if (p->bias) {
        luma_tensor *b = lm_temp(s);
        LM_DO(s, lm_cast(S, b, p->bias, LUMA_FLOAT64));
        LM_DO(s, luma_sub(S, shift, b, moved));
    } else {
        LM_DO(s, luma_sub(S, shift, &zero, moved));
    }
}

/* 1 value has no variance; of none there is nothing to say. */
static luma_status check_count(luma_state *S, const luma_tensor *x, int64_t n, int64_t results) {
    lm_text text;
    if (n > 1 || results == 0) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, 1,
                   "%s has %lld value%s for each statistic: 2 or more expected",
                   lm_layout_text(&text, &x->layout), (long long)n, n == 1 ? "" : "s");
}

/* Every channel by statistics of its own. */
static void set_channels(plan *p, const int64_t channels[3]) {
    p->kind = LM_NORMALIZE_AFFINE;
    p->ndim = 3;
    p->along = 2;
    memcpy(p->shape, channels, 3 * sizeof *channels);
    p->step[1] = 1;
}

luma_status luma_batch_norm(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_tensor *running_mean, const luma_tensor *running_var,
                            const luma_tensor *weight, const luma_tensor *bias, bool training,
                            double momentum, double eps) {
    plan p = {.eps = eps, .weight = weight, .bias = bias};
    running r = {.mean = running_mean, .var = running_var, .momentum = momentum};
    int64_t channels[3], dims[LUMA_MAX_DIMS] = {0};
    lm_scope s;
    LM_TRY(find_channels(S, x, channels));
    LM_TRY(check_running(S, x, &r, channels[1], training));
    LM_TRY(check_affine(S, 4, x, weight, bias, 1, &channels[1]));
    LM_TRY(check_eps(S, eps));
    if (training) LM_TRY(check_count(S, x, channels[0] * channels[2], channels[1]));
    if (!training && !running_mean)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "running statistics expected, or {training = true}");
    for (int d = 2; d < x->layout.ndim; d++)
        dims[d - 1] = d;
    lm_scope_open(&s, S);
    luma_tensor *mean = lm_temp(&s), *var = lm_temp(&s), *unbiased = lm_temp(&s);
    luma_tensor *scale = lm_temp(&s), *shift = lm_temp(&s);
    if (training) {
        find_moments(&s, x, x->layout.ndim - 1, dims, (double)(channels[0] * channels[2]), mean,
                     var, unbiased);
        plan_running(&s, &r, mean, unbiased);
    } else {
        LM_DO(&s, lm_cast(S, mean, running_mean, LUMA_FLOAT64));
        LM_DO(&s, lm_cast(S, var, running_var, LUMA_FLOAT64));
    }
    find_affine(&s, &p, mean, var, scale, shift);
    p.weight = scale;
    p.bias = shift;
    set_channels(&p, channels);
    finish(&s, out, x, &p, &r);
    return lm_scope_close(&s);
}

/* Mean over the batch of the statistics of every instance. */
static void find_instance_moments(lm_scope *s, const luma_tensor *x, int64_t n, luma_tensor *mean,
                                  luma_tensor *unbiased) {
    luma_tensor *each = lm_temp(s), *var = lm_temp(s), *own = lm_temp(s);
    int64_t dims[LUMA_MAX_DIMS], first = 0;
    for (int d = 2; d < x->layout.ndim; d++)
        dims[d - 2] = d;
    find_moments(s, x, x->layout.ndim - 2, dims, (double)n, each, var, own);
    LM_DO(s, luma_mean(s->S, mean, each, 1, &first, false));
    LM_DO(s, luma_mean(s->S, unbiased, own, 1, &first, false));
}

luma_status luma_instance_norm(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const luma_tensor *running_mean, const luma_tensor *running_var,
                               const luma_tensor *weight, const luma_tensor *bias,
                               bool use_input_stats, double momentum, double eps) {
    plan p = {.kind = LM_NORMALIZE_LAYER, .eps = eps, .weight = weight, .bias = bias};
    running r = {.mean = running_mean, .var = running_var, .momentum = momentum};
    int64_t channels[3];
    lm_scope s;
    if (!use_input_stats)
        return luma_batch_norm(S, out, x, running_mean, running_var, weight, bias, false, momentum,
                               eps);
    LM_TRY(find_channels(S, x, channels));
    LM_TRY(check_running(S, x, &r, channels[1], true));
    LM_TRY(check_affine(S, 4, x, weight, bias, 1, &channels[1]));
    LM_TRY(check_eps(S, eps));
    LM_TRY(check_count(S, x, channels[2], channels[0] * channels[1]));
    set_groups(&p, channels, lm_max(channels[1], 1));
    lm_scope_open(&s, S);
    luma_tensor *mean = lm_temp(&s), *unbiased = lm_temp(&s);
    if (running_mean && channels[0] > 0) {
        find_instance_moments(&s, x, channels[2], mean, unbiased);
        plan_running(&s, &r, mean, unbiased);
    }
    finish(&s, out, x, &p, &r);
    return lm_scope_close(&s);
}
