/* loss.c -- losses: compositions of other operations, which run in float32 for what is narrower and
** in float64 for what is that. Formulas are those of PyTorch's torch.nn.functional. Layer: core. */
#include <math.h>
#include <string.h>

#include "compose.h"
#include "fused.h"
#include "index.h"

#define MAP1(s, op, x)                                                                             \
    LM_DO(s, lm_map_inplace((s)->S, LM_OP_##op, x, 1, (const luma_tensor *[]){x}, NULL))
#define MAP2(s, op, x, y)                                                                          \
    LM_DO(s, lm_map_inplace((s)->S, LM_OP_##op, x, 2, (const luma_tensor *[]){x, y}, NULL))

static luma_scalar real(double v) {
    return luma_number(v).number;
}

/* x = x * mul + add. */
static void affine(lm_scope *s, luma_tensor *x, double mul, double add) {
    luma_scalar p[2] = {real(mul), real(add)};
    LM_DO(s, lm_map_inplace(s->S, LM_OP_affine, x, 1, (const luma_tensor *[]){x}, p));
}
static void masked(lm_scope *s, luma_tensor *x, const luma_tensor *mask, const luma_tensor *value) {
    LM_DO(s, luma_masked_fill(s->S, x, x, mask, value));
}

/* ---- what losses share -----------------------------------------------------------------------*/

enum { INPUT = 1, TARGET = 2 }; /* arguments */

/* One loss on its way. */
typedef struct {
    lm_scope s;
    luma_tensor *out;
    luma_dtype result, compute;
    luma_reduction reduction;
    int reduction_argument;
    luma_program *rows; /* what runs in one pass; NULL: nothing yet */
} loss;

static luma_status check_reduction(luma_state *S, int argument, luma_reduction reduction,
                                   luma_reduction last) {
    if ((unsigned)reduction <= (unsigned)last) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "no reduction has the number %d",
                   (int)reduction);
}

static void loss_open(luma_state *S, loss *l, luma_tensor *out, luma_dtype met,
                      luma_reduction reduction) {
    lm_scope_open(&l->s, S);
    l->out = out;
    l->result = lm_dtype_floating(S, met);
    l->compute = lm_dtype_accumulator(l->result);
    l->reduction = reduction;
    l->rows = NULL;
}

/* x in the dtype of the computation: not to be written. */
static luma_tensor *as_computed(loss *l, const luma_tensor *x) {
    return lm_temp_cast(&l->s, x, l->compute);
}

/* A copy of x in that dtype, of its shape: to be written. */
static luma_tensor *as_own(loss *l, const luma_tensor *x) {
    luma_tensor *t = lm_temp(&l->s);
    if (l->s.status != LUMA_OK) return t;
    LM_DO(&l->s,
          lm_tensor_new(l->s.S, t, lm_device_of(x), l->compute, x->layout.ndim, x->layout.shape));
    LM_DO(&l->s, lm_copy(l->s.S, t, x));
    return t;
}

/* From the losses of all places, and the number that a mean divides by (NULL: that of the places). */
static luma_status loss_close(loss *l, luma_tensor *each, const luma_tensor *count) {
    lm_scope *s = &l->s;
    luma_tensor *y = each, *sum = lm_temp(s), *mean = lm_temp(s);
    if (l->reduction == LUMA_REDUCTION_SUM || (l->reduction == LUMA_REDUCTION_MEAN && count)) {
        LM_DO(s, luma_sum(s->S, sum, each, 0, NULL, false));
        y = sum;
    } else if (l->reduction == LUMA_REDUCTION_MEAN) {
        LM_DO(s, luma_mean(s->S, mean, each, 0, NULL, false));
        y = mean;
    }
    if (l->reduction == LUMA_REDUCTION_MEAN && count) {
        LM_DO(s, luma_div(s->S, mean, sum, count));
        y = mean;
    }
    LM_DO(s, lm_cast(s->S, l->out, y, l->result));
    luma_program_free(l->rows);
    return lm_scope_close(s);
}

/* ---- rows in one pass ----*/

enum { NONE = -1 }; /* no second or third argument of a row */

static void rows_open(loss *l, int ninputs) {
    LM_DO(&l->s, luma_program_new(l->s.S, &l->rows, ninputs));
}

/* Number of the value of a row, or of a number: values 0, 1, ... are the inputs. */
static int row(loss *l, lm_op op, int a, int b, int c) {
    int value = 0, n = c != NONE ? 3 : b != NONE ? 2 : 1;
    LM_DO(&l->s, lm_fused_add(l->s.S, l->rows, op, false, n, (const int[]){a, b, c}, &value));
    return value;
}

static int constant(loss *l, double v) {
    int value = 0;
    LM_DO(&l->s, luma_program_number(l->s.S, l->rows, real(v), &value));
    return value;
}

static int affine_row(loss *l, int a, double mul, double add) {
    int by = constant(l, mul), more = constant(l, add);
    return row(l, LM_OP_affine, a, by, more);
}

/* The value, in a tensor of its own. */
static luma_tensor *rows_run(loss *l, int value, const luma_tensor *const *inputs) {
    luma_tensor *y = lm_temp(&l->s);
    LM_DO(&l->s, lm_fused_run(l->s.S, y, l->rows, value, inputs, NULL));
    return y;
}

/* y is a tensor whose shape broadcasts to that of x. */
static luma_status check_fits(luma_state *S, int argument, const char *name, const luma_tensor *y,
                              const luma_tensor *x) {
    lm_text a, b;
    LM_TRY(lm_tensor_live(S, argument, y));
    if (lm_shape_fits(y->layout.ndim, y->layout.shape, x->layout.ndim, x->layout.shape))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument,
                   "%s is %s, which does not broadcast to %s, the input", name,
                   lm_layout_text(&a, &y->layout), lm_layout_text(&b, &x->layout));
}

/* y is where x is; a 0-d CPU tensor may be anywhere. */
static luma_status check_place(luma_state *S, int argument, const char *name, const luma_tensor *y,
                               const luma_tensor *x) {
    if (lm_device_of(y) == lm_device_of(x)) return LUMA_OK;
    if (y->layout.ndim == 0 && lm_device_of(y) == lm_cpu(S)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DEVICE, argument, "%s is on %s, the input on %s", name,
                   lm_device_of(y)->name, lm_device_of(x)->name);
}

/* A loss of each element of x (any shape) with that of y: y and the weights (NULL: there are none)
** broadcast to x. */
static luma_status pair_open(luma_state *S, loss *l, luma_tensor *out, const luma_tensor *x,
                             const luma_tensor *y, luma_reduction reduction, int argument,
                             luma_reduction last) {
    LM_TRY(lm_tensor_live(S, INPUT, x));
    LM_TRY(check_fits(S, TARGET, "the target", y, x));
    LM_TRY(check_place(S, TARGET, "the target", y, x));
    LM_TRY(check_reduction(S, argument, reduction, last));
    loss_open(S, l, out, lm_dtype_promote(x->dtype, y->dtype), reduction);
    return LUMA_OK;
}

static luma_status check_weight(luma_state *S, int argument, const char *name,
                                const luma_tensor *weight, const luma_tensor *x) {
    if (!weight) return LUMA_OK;
    LM_TRY(check_fits(S, argument, name, weight, x));
    return check_place(S, argument, name, weight, x);
}

/* ---- differences -----------------------------------------------------------------------------*/

/* The value of f of x - y, in a tensor of its own. */
static luma_tensor *of_difference(loss *l, const luma_tensor *x, const luma_tensor *y, lm_op f) {
    const luma_tensor *both[] = {as_computed(l, x), as_computed(l, y)};
    rows_open(l, 2);
    return rows_run(l, row(l, f, row(l, LM_OP_sub, 0, 1, NONE), NONE, NONE), both);
}

luma_status luma_mse_loss(luma_state *S, luma_tensor *out, const luma_tensor *x,
                          const luma_tensor *target, luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 3, LUMA_REDUCTION_NONE));
    return loss_close(&l, of_difference(&l, x, target, LM_OP_square), NULL);
}

luma_status luma_l1_loss(luma_state *S, luma_tensor *out, const luma_tensor *x,
                         const luma_tensor *target, luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 3, LUMA_REDUCTION_NONE));
    return loss_close(&l, of_difference(&l, x, target, LM_OP_abs), NULL);
}

/* Of d = |x - y| and m = min(d, delta) m (d - m / 2): d^2 / 2 up to delta, then delta (d - delta / 2);
** by a number. */
static luma_tensor *bent(loss *l, const luma_tensor *x, const luma_tensor *y, double delta,
                         double by) {
    const luma_tensor *both[] = {as_computed(l, x), as_computed(l, y)};
    rows_open(l, 2);
    int d = row(l, LM_OP_abs, row(l, LM_OP_sub, 0, 1, NONE), NONE, NONE);
    int m = row(l, LM_OP_clamp, d, NONE, constant(l, delta));
    int rest = row(l, LM_OP_sub, d, affine_row(l, m, 0.5, 0), NONE);
    int value = row(l, LM_OP_mul, rest, m, NONE);
    if (by != 1) value = row(l, LM_OP_div, value, constant(l, by), NONE);
    return rows_run(l, value, both);
}

luma_status luma_huber(luma_state *S, luma_tensor *out, const luma_tensor *x,
                       const luma_tensor *target, double delta, luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 4, LUMA_REDUCTION_NONE));
    if (!(delta > 0))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%g: a positive number expected", delta);
    return loss_close(&l, bent(&l, x, target, delta, 1), NULL);
}

luma_status luma_smooth_l1(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_tensor *target, double beta, luma_reduction reduction) {
    loss l;
    if (beta == 0) return luma_l1_loss(S, out, x, target, reduction);
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 4, LUMA_REDUCTION_NONE));
    if (!(beta > 0) || isinf(beta))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%g: a number of at least 0 expected", beta);
    return loss_close(&l, bent(&l, x, target, beta, beta), NULL);
}

/* ---- probabilities of two ways ---------------------------------------------------------------*/

luma_status luma_bce(luma_state *S, luma_tensor *out, const luma_tensor *x,
                     const luma_tensor *target, const luma_tensor *weight,
                     luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 4, LUMA_REDUCTION_NONE));
    LM_TRY(check_weight(S, 3, "the weight", weight, x));
    const luma_tensor *both[] = {as_computed(&l, x), as_computed(&l, target)};
    rows_open(&l, 2);
    int least = constant(&l, -100), no = affine_row(&l, 0, -1, 0);
    int log = row(&l, LM_OP_log, 0, NONE, NONE), log1p = row(&l, LM_OP_log1p, no, NONE, NONE);
    int yes = row(&l, LM_OP_mul, row(&l, LM_OP_clamp, log, least, NONE), 1, NONE);
    no = row(&l, LM_OP_mul, row(&l, LM_OP_clamp, log1p, least, NONE), affine_row(&l, 1, -1, 1),
             NONE);
    luma_tensor *each =
        rows_run(&l, affine_row(&l, row(&l, LM_OP_add, yes, no, NONE), -1, 0), both);
    if (weight) MAP2(&l.s, mul, each, weight);
    return loss_close(&l, each, NULL);
}

/* (1 - t) x + (1 + (p - 1) t) (log(1 + exp(-|x|)) + max(-x, 0)) */
luma_status luma_bce_with_logits(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 const luma_tensor *target, const luma_tensor *weight,
                                 const luma_tensor *pos_weight, luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 5, LUMA_REDUCTION_NONE));
    LM_TRY(check_weight(S, 3, "the weight", weight, x));
    LM_TRY(check_weight(S, 4, "pos_weight", pos_weight, x));
    const luma_tensor *ins[] = {as_computed(&l, x), as_computed(&l, target),
                                pos_weight ? as_computed(&l, pos_weight) : NULL};
    rows_open(&l, pos_weight ? 3 : 2);
    int soft = affine_row(&l, row(&l, LM_OP_abs, 0, NONE, NONE), -1, 0);
    soft = row(&l, LM_OP_log1p, row(&l, LM_OP_exp, soft, NONE, NONE), NONE, NONE);
    int below = row(&l, LM_OP_relu, affine_row(&l, 0, -1, 0), NONE, NONE);
    if (pos_weight) {
        int factor = row(&l, LM_OP_mul, affine_row(&l, 2, 1, -1), 1, NONE);
        factor = affine_row(&l, factor, 1, 1);
        soft = row(&l, LM_OP_mul, soft, factor, NONE);
        below = row(&l, LM_OP_mul, below, factor, NONE);
    }
    /* large parts first, which leave nothing of each other where the loss is small */
    int linear = row(&l, LM_OP_mul, 0, affine_row(&l, 1, -1, 1), NONE);
    linear = row(&l, LM_OP_add, linear, below, NONE);
    luma_tensor *each = rows_run(&l, row(&l, LM_OP_add, soft, linear, NONE), ins);
    if (weight) MAP2(&l.s, mul, each, weight);
    return loss_close(&l, each, NULL);
}

/* t (log t - x), or exp(t) (t - x); 0 where the target is a probability of 0. */
luma_status luma_kl_div(luma_state *S, luma_tensor *out, const luma_tensor *x,
                        const luma_tensor *target, bool log_target, luma_reduction reduction) {
    loss l;
    LM_TRY(pair_open(S, &l, out, x, target, reduction, 4, LUMA_REDUCTION_BATCHMEAN));
    bool batch = reduction == LUMA_REDUCTION_BATCHMEAN;
    if (batch && x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4,
                       "'batchmean' is by the size of the first dim: "
                       "the input is 0-d");
    luma_tensor *p = as_own(&l, target), *never = lm_temp(&l.s), *d = lm_temp(&l.s);
    const luma_tensor *t = as_computed(&l, target), *q = as_computed(&l, x);
    luma_tensor zero = luma_number(0), none = luma_number(log_target ? -(double)INFINITY : 0.0);
    if (log_target) {
        MAP1(&l.s, exp, p);
        LM_DO(&l.s, luma_sub(S, d, t, q));
        MAP2(&l.s, mul, d, p);
    } else {
        MAP1(&l.s, log, p);
        LM_DO(&l.s, luma_sub(S, d, p, q));
        MAP2(&l.s, mul, d, t);
    }
    LM_DO(&l.s, luma_eq(S, never, t, &none));
    masked(&l.s, d, never, &zero);
    luma_tensor count = luma_integer(batch ? x->layout.shape[0] : 0);
    if (batch) l.reduction = LUMA_REDUCTION_MEAN;
    return loss_close(&l, d, batch ? &count : NULL);
}

/* ---- classes ---------------------------------------------------------------------------------*/

enum { WEIGHT = 3, IGNORE = 4, SMOOTHING = 5 };

/* What cross_entropy and nll_loss are called with. x (c) or (n, c, ...). */
typedef struct {
    lm_op op;
    const luma_tensor *x, *target, *weight;
    const int64_t *ignore;
    double smoothing;
    int dim; /* of the classes */
    int64_t classes;
} classes;

static luma_status check_labels(luma_state *S, const classes *c) {
    lm_text a, b, w;
    luma_layout place = lm_layout_remove(&c->x->layout, c->dim);
    if (lm_layout_same_shape(&place, &c->target->layout)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, TARGET, "labels of %s for an input of %s: %s expected",
                   lm_layout_text(&a, &c->target->layout), lm_layout_text(&b, &c->x->layout),
                   lm_layout_text(&w, &place));
}

static luma_status check_target(luma_state *S, const classes *c) {
    lm_text a, b;
    const luma_tensor *t = c->target;
    if (lm_dtype_is_int(t->dtype)) return check_labels(S, c);
    if (c->op == LM_OP_nll_loss || t->dtype == LUMA_BOOL)
        return lm_fail(S, LUMA_ERR_DTYPE, TARGET, "the target is %s: labels of an integer dtype%s",
                       lm_dtypes[t->dtype].name,
                       c->op == LM_OP_nll_loss ? " expected" : " or float probabilities expected");
    if (!lm_layout_same_shape(&c->x->layout, &t->layout))
        return lm_fail(S, LUMA_ERR_SHAPE, TARGET,
                       "%s %s for an input of %s: probabilities of the same shape, or labels of "
                       "an integer dtype expected",
                       lm_dtypes[t->dtype].name, lm_layout_text(&a, &t->layout),
                       lm_layout_text(&b, &c->x->layout));
    if (c->ignore)
        return lm_fail(S, LUMA_ERR_ARGUMENT, IGNORE, "labels are ignored, the target is %s",
                       lm_dtypes[t->dtype].name);
    return LUMA_OK;
}

static luma_status classes_open(luma_state *S, loss *l, luma_tensor *out, classes *c,
                                luma_reduction reduction, int argument) {
    lm_text text;
    LM_TRY(lm_tensor_live(S, INPUT, c->x));
    LM_TRY(lm_tensor_live(S, TARGET, c->target));
    const luma_layout *x = &c->x->layout;
    if (x->ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, INPUT, "a 0-d tensor: a dim of classes expected");
    c->dim = x->ndim > 1;
    c->classes = x->shape[c->dim];
    LM_TRY(check_target(S, c));
    LM_TRY(check_place(S, TARGET, "the target", c->target, c->x));
    if (c->weight) {
        const luma_layout *w = &c->weight->layout;
        if (w->ndim != 1 || w->shape[0] != c->classes)
            return lm_fail(S, LUMA_ERR_SHAPE, WEIGHT,
                           "the weight is %s: one number for each of %lld classes expected",
                           lm_layout_text(&text, w), (long long)c->classes);
        LM_TRY(check_place(S, WEIGHT, "the weight", c->weight, c->x));
    }
    if (!(c->smoothing >= 0 && c->smoothing <= 1))
        return lm_fail(S, LUMA_ERR_ARGUMENT, SMOOTHING, "%g: 0 to 1 expected", c->smoothing);
    LM_TRY(check_reduction(S, argument, reduction, LUMA_REDUCTION_NONE));
    luma_dtype met = c->x->dtype;
    if (lm_dtype_is_float(c->target->dtype)) met = lm_dtype_promote(met, c->target->dtype);
    loss_open(S, l, out, met, reduction);
    return LUMA_OK;
}

/* The logarithms of probabilities. log_softmax: in a tensor of their own. */
static luma_tensor *logs(loss *l, const classes *c) {
    luma_tensor *x = as_computed(l, c->x), *y = lm_temp(&l->s);
    if (c->op == LM_OP_nll_loss) return x;
    LM_DO(&l->s, luma_log_softmax(l->s.S, y, x, c->dim));
    lm_temp_drop(&l->s, x);
    return y;
}

/* The weights of classes, with the dims of x behind them. */
static luma_tensor *spread_weight(loss *l, const classes *c) {
    luma_tensor *w = as_computed(l, c->weight);
    if (l->s.status != LUMA_OK) return w;
    for (int d = c->dim + 1; d < c->x->layout.ndim; d++)
        w->layout = lm_layout_insert(&w->layout, w->layout.ndim, 1, 0);
    return w;
}

/* each = (1 - smoothing) each - smoothing / classes * sum over classes of weight * logs */
static void smooth(loss *l, const classes *c, luma_tensor *each, const luma_tensor *y) {
    lm_scope *s = &l->s;
    luma_tensor *all = lm_temp(s), *sum = lm_temp(s);
    const luma_tensor *terms = y;
    int64_t dim = c->dim;
    if (c->smoothing == 0) return;
    if (c->weight) {
        LM_DO(s, luma_mul(s->S, all, y, spread_weight(l, c)));
        terms = all;
    }
    LM_DO(s, luma_sum(s->S, sum, terms, 1, &dim, false));
    affine(s, sum, -c->smoothing / (double)c->classes, 0);
    affine(s, each, 1 - c->smoothing, 0);
    MAP2(s, add, each, sum);
}

static luma_status of_labels(loss *l, const classes *c) {
    lm_scope *s = &l->s;
    luma_state *S = s->S;
    luma_tensor *ignored = lm_temp(s), *labels = lm_temp(s), *each = lm_temp(s);
    luma_tensor *weights = lm_temp(s), *count = NULL, zero = luma_integer(0);
    const luma_tensor *target = c->target;
    if (c->ignore) {
        luma_tensor label = luma_integer(*c->ignore), first = luma_integer(S->index_base);
        LM_DO(s, luma_eq(S, ignored, target, &label));
        LM_DO(s, luma_masked_fill(S, labels, target, ignored, &first));
        target = labels;
    }
    luma_tensor *y = logs(l, c);
    /* the one step whose failure is the caller's */
    if (s->status == LUMA_OK) s->status = lm_index_pick(S, each, c->op, TARGET, y, c->dim, target);
    affine(s, each, -1, 0);
    if (c->weight) {
        luma_tensor *w = as_computed(l, c->weight);
        LM_DO(s, luma_take(S, weights, w, target)); /* a label that is none was found */
        MAP2(s, mul, each, weights);
        if (c->ignore) masked(s, weights, ignored, &zero);
    } else if (c->ignore) {
        LM_DO(s, luma_logical_not(S, weights, ignored));
    }
    smooth(l, c, each, y);
    if (c->ignore) masked(s, each, ignored, &zero);
    if (c->weight || c->ignore) {
        count = lm_temp(s);
        if (l->reduction == LUMA_REDUCTION_MEAN)
            LM_DO(s, luma_sum(S, count, weights, 0, NULL, false));
    }
    return loss_close(l, each, count);
}

/* -sum over classes of weight * ((1 - smoothing) * target + smoothing / classes) * logs */
static luma_status of_probabilities(loss *l, const classes *c) {
    lm_scope *s = &l->s;
    luma_tensor *y = logs(l, c), *each = lm_temp(s);
    const luma_tensor *t = as_computed(l, c->target);
    int64_t dim = c->dim;
    if (c->smoothing != 0) {
        luma_tensor *own = as_own(l, c->target);
        affine(s, own, 1 - c->smoothing, c->smoothing / (double)c->classes);
        t = own;
    }
    MAP2(s, mul, y, t);
    if (c->weight) MAP2(s, mul, y, spread_weight(l, c));
    LM_DO(s, luma_sum(s->S, each, y, 1, &dim, false));
    affine(s, each, -1, 0);
    return loss_close(l, each, NULL);
}

luma_status luma_cross_entropy(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const luma_tensor *target, const luma_tensor *weight,
                               const int64_t *ignore_index, double label_smoothing,
                               luma_reduction reduction) {
    loss l;
    classes c = {.op = LM_OP_cross_entropy,
                 .x = x,
                 .target = target,
                 .weight = weight,
                 .ignore = ignore_index,
                 .smoothing = label_smoothing};
    LM_TRY(classes_open(S, &l, out, &c, reduction, 6));
    return lm_dtype_is_float(target->dtype) ? of_probabilities(&l, &c) : of_labels(&l, &c);
}

luma_status luma_nll_loss(luma_state *S, luma_tensor *out, const luma_tensor *x,
                          const luma_tensor *target, const luma_tensor *weight,
                          const int64_t *ignore_index, luma_reduction reduction) {
    loss l;
    classes c = {
        .op = LM_OP_nll_loss, .x = x, .target = target, .weight = weight, .ignore = ignore_index};
    LM_TRY(classes_open(S, &l, out, &c, reduction, 5));
    return of_labels(&l, &c);
}
