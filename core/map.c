/* map.c -- elementwise rows: which dtype, which shape, which device; then the device's map slot.
** Layer: core. */
#include <math.h>
#include <string.h>

#include "map.h"

/* What a call comes to before memory is asked for. */
typedef struct {
    lm_op op;
    int nin, ndim;
    int64_t shape[LUMA_MAX_DIMS];
    luma_dtype dtype;  /* in which the inputs meet */
    luma_dtype result; /* of the output */
    lm_device *device;
    bool flat; /* every tensor is contiguous and has the result's shape */
} plan;

/* ---- dtypes ---- */

static luma_dtype raised(const luma_state *S, luma_dtype dtype, luma_scalar number) {
    int kind = number.kind == LUMA_IS_FLOAT ? LM_KIND_FLOAT
               : number.kind == LUMA_IS_INT ? LM_KIND_INT
                                            : LM_KIND_BOOL;
    if (kind <= lm_dtypes[dtype].kind) return dtype;
    return kind == LM_KIND_FLOAT ? S->default_dtype : LUMA_INT64;
}

/* Tensors meet by the promotion table; numbers raise the kind only. The mask of a TERNARY row stays
** out. Without any tensor numbers are default floats. */
static luma_dtype meet(const luma_state *S, lm_op op, int nin, const luma_tensor *const *ins,
                       const luma_scalar *params) {
    bool any = false;
    luma_dtype dtype = S->default_dtype;
    int first = lm_ops[op].row == LM_ROW_TERNARY;
    for (int i = first; i < nin; i++) {
        if (!ins[i]->storage) continue;
        dtype = any ? lm_dtype_promote(dtype, ins[i]->dtype) : ins[i]->dtype;
        any = true;
    }
    for (int i = first; i < nin; i++) {
        if (lm_is_number(ins[i]) && !(lm_map_is_shift(op) && i == 1))
            dtype = raised(S, dtype, ins[i]->number);
    }
    if (op == LM_OP_affine) {
        for (int i = 0; i < 2; i++)
            dtype = raised(S, dtype, params[i]);
    }
    return dtype;
}

static luma_status row_dtype(luma_state *S, lm_op op, luma_dtype met, luma_dtype *out) {
    int kind = lm_dtypes[met].kind;
    switch (lm_ops[op].takes) {
    case LM_TAKES_FLOATS:
        *out = kind == LM_KIND_FLOAT ? met : S->default_dtype;
        return LUMA_OK;
    case LM_TAKES_NUMBERS:
        *out = kind == LM_KIND_BOOL ? LUMA_INT64 : met;
        return LUMA_OK;
    case LM_TAKES_INTS:
        if (kind != LM_KIND_INT)
            return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: integers expected", lm_dtypes[met].name);
        break;
    case LM_TAKES_BITS:
        if (kind == LM_KIND_FLOAT)
            return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: bool or integers expected",
                           lm_dtypes[met].name);
        break;
    default:
        break;
    }
    *out = met;
    return LUMA_OK;
}

luma_dtype lm_map_result(lm_op op, luma_dtype dtype) {
    return lm_ops[op].row == LM_ROW_COMPARE || lm_ops[op].row == LM_ROW_TEST ? LUMA_BOOL : dtype;
}

static luma_status check_mask(luma_state *S, lm_op op, const luma_tensor *mask) {
    if (lm_ops[op].row != LM_ROW_TERNARY || (mask->storage && mask->dtype == LUMA_BOOL))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a bool mask expected",
                   mask->storage ? lm_dtypes[mask->dtype].name : "a number");
}

luma_status lm_map_dtype(luma_state *S, lm_op op, int nin, const luma_tensor *const *ins,
                         const luma_scalar *params, luma_dtype *dtype) {
    LM_TRY(check_mask(S, op, ins[0]));
    return row_dtype(S, op, meet(S, op, nin, ins, params), dtype);
}

/* ---- shapes ---- */

static luma_status shape_of(luma_state *S, plan *p, const luma_tensor *const *ins) {
    const luma_tensor *first = NULL;
    p->flat = true;
    p->ndim = 0;
    for (int i = 0; i < p->nin; i++) {
        const luma_tensor *x = ins[i];
        if (!x->storage && !lm_is_number(x))
            return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "a tensor or a number expected");
        if (!x->storage) continue;
        if (!first) {
            first = x;
            p->ndim = x->layout.ndim;
            memcpy(p->shape, x->layout.shape, (size_t)p->ndim * sizeof *p->shape);
        } else if (!lm_layout_same_shape(&x->layout, &first->layout)) {
            p->flat = false;
            int64_t shape[LUMA_MAX_DIMS];
            int ndim;
            luma_status status = lm_shape_broadcast(S, p->ndim, p->shape, x->layout.ndim,
                                                    x->layout.shape, &ndim, shape);
            if (status != LUMA_OK) {
                S->argument = i + 1;
                return status;
            }
            p->ndim = ndim;
            memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
        }
        if (p->flat && !lm_layout_is_contiguous(&x->layout)) p->flat = false;
    }
    return LUMA_OK;
}

static luma_status make_plan(luma_state *S, plan *p, lm_op op, int nin,
                             const luma_tensor *const *ins, const luma_scalar *params) {
    p->op = op;
    p->nin = nin;
    LM_TRY(check_mask(S, op, ins[0]));
    LM_TRY(lm_same_device(S, ins, nin, &p->device));
    LM_TRY(lm_map_dtype(S, op, nin, ins, params, &p->dtype));
    p->result = lm_map_result(op, p->dtype);
    LM_TRY(shape_of(S, p, ins));
    if (!lm_supports(p->device, op, p->dtype))
        return lm_unsupported(S, p->device, lm_ops[op].name, p->dtype);
    return LUMA_OK;
}

/* ---- numbers ---- */

luma_status lm_map_encode(luma_state *S, luma_scalar v, luma_dtype dtype, luma_dtype kernel,
                          int argument, bool exempt, void *element) {
    const lm_device_ops *cpu = lm_cpu(S)->ops;
    const lm_dtype_info *info = &lm_dtypes[dtype];
    if (v.kind != LUMA_IS_FLOAT && info->kind == LM_KIND_INT) {
        int64_t i = v.u.i;
        if (exempt) i = i > 127 ? 127 : i < -1 ? -1 : i; /* any count past the width is alike */
        if (i < info->imin || i > info->imax)
            return lm_fail(S, LUMA_ERR_DTYPE, argument, "%lld does not fit into %s", (long long)i,
                           info->name);
        v.u.i = i;
    }
    cpu->encode(dtype, v, element);
    if (dtype != kernel) cpu->encode(kernel, cpu->decode(dtype, element), element);
    return LUMA_OK;
}

static void set_param(lm_params *p, int i, luma_scalar v) {
    p->d[i] = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
    p->i[i] = v.kind == LUMA_IS_FLOAT ? 0 : v.u.i;
}

/* Bounds of clamp over integers: absent or out of range ones do not bound. */
static luma_status clamp_bound(luma_state *S, luma_scalar v, luma_dtype dtype, int i,
                               lm_params *out) {
    const lm_dtype_info *info = &lm_dtypes[dtype];
    int64_t bound = i ? info->imax : info->imin;
    if (v.kind == LUMA_IS_FLOAT) {
        if (v.u.d != v.u.d || (isfinite(v.u.d) && floor(v.u.d) != v.u.d))
            return lm_fail(S, LUMA_ERR_DTYPE, 2 + i, "%g: a whole number expected for %s", v.u.d,
                           info->name);
        if (v.u.d >= 0x1p63)
            v = (luma_scalar){LUMA_IS_INT, {INT64_MAX}};
        else if (v.u.d <= -0x1p63)
            v = (luma_scalar){LUMA_IS_INT, {INT64_MIN}};
        else
            v = (luma_scalar){LUMA_IS_INT, {(int64_t)v.u.d}};
    }
    if (v.kind != LUMA_NOT_A_NUMBER) bound = v.u.i;
    if (bound < info->imin) bound = info->imin;
    if (bound > info->imax) bound = info->imax;
    out->i[i] = bound;
    return LUMA_OK;
}

/* What number i of a row is where none is given; those of clamp are set apart. */
static luma_scalar default_param(lm_op op, int i) {
    double d = 0;
    if (op == LM_OP_elu || op == LM_OP_celu) d = 1;
    if (op == LM_OP_leaky_relu) d = 0.01;
    if (op == LM_OP_hardtanh) d = i ? 1 : -1;
    if (op == LM_OP_softplus) d = i ? 20 : 1;
    return (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = d};
}

luma_status lm_map_params(luma_state *S, lm_op op, luma_dtype dtype, const luma_scalar *params,
                          lm_params *out) {
    bool real = lm_dtype_is_float(dtype);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 2; i++) {
        luma_scalar v = params[i];
        if (op == LM_OP_clamp && !real) {
            LM_TRY(clamp_bound(S, v, dtype, i, out));
            continue;
        }
        if (op == LM_OP_clamp && v.kind == LUMA_NOT_A_NUMBER)
            v = (luma_scalar){.kind = LUMA_IS_FLOAT,
                              .u.d = i ? (double)INFINITY : -(double)INFINITY};
        union {
            int64_t i;
            double d;
        } element = {0};
        /* numbers of rows that only floats have are not rounded to small ones */
        luma_dtype held =
            lm_ops[op].takes == LM_TAKES_FLOATS ? (luma_dtype)lm_dtypes[dtype].compute : dtype;
        if (v.kind == LUMA_NOT_A_NUMBER && op != LM_OP_affine) v = default_param(op, i);
        LM_TRY(lm_map_encode(S, v, held, held, 2 + i, false, &element));
        set_param(out, i, lm_cpu(S)->ops->decode(held, &element));
    }
    return LUMA_OK;
}

/* ---- comparing integers with numbers, exactly ---- */

static lm_op mirrored(lm_op op) {
    switch (op) {
    case LM_OP_lt:
        return LM_OP_gt;
    case LM_OP_le:
        return LM_OP_ge;
    case LM_OP_gt:
        return LM_OP_lt;
    case LM_OP_ge:
        return LM_OP_le;
    default:
        return op;
    }
}

/* x op v for integers x of lo..hi. */
static lm_exact compare_exactly(lm_op op, luma_scalar v, int64_t lo, int64_t hi) {
    bool below, above, whole = true;
    int64_t c = v.u.i;
    if (v.kind == LUMA_IS_FLOAT) {
        if (v.u.d != v.u.d) return (lm_exact){.constant = true, .c = op == LM_OP_ne};
        double f = floor(v.u.d);
        whole = f == v.u.d;
        below = f < -0x1p63;
        above = f >= 0x1p63;
        c = below || above ? 0 : (int64_t)f;
        below = below || (!above && c < lo);
        above = above || (!below && c > hi);
    } else {
        below = c < lo;
        above = c > hi;
    }
    bool less = op == LM_OP_lt || op == LM_OP_le;
    bool constant = below || above || (!whole && (op == LM_OP_eq || op == LM_OP_ne));
    if (constant) {
        bool answer = op == LM_OP_ne || (op != LM_OP_eq && (above ? less : !less));
        return (lm_exact){.constant = true, .c = answer};
    }
    if (!whole) op = less ? LM_OP_le : LM_OP_gt;
    return (lm_exact){.op = op, .c = c};
}

static bool is_comparison(lm_op op) {
    return op == LM_OP_eq || op == LM_OP_ne || op == LM_OP_lt || op == LM_OP_le || op == LM_OP_gt ||
           op == LM_OP_ge;
}

/* ---- running ---- */

void lm_map_operand(lm_map *m, int k, const luma_tensor *x, luma_dtype kernel) {
    lm_operand *o = &m->operand[k];
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    o->data = lm_data(x);
    o->dtype = x->dtype;
    o->kernel = kernel;
    if (m->planned) {
        o->stride[0] = size;
        return;
    }
    luma_layout e = lm_layout_expand(&x->layout, m->ndim, m->shape);
    for (int d = 0; d < m->ndim; d++)
        o->stride[d] = e.stride[d] * size;
}

/* A tensor of one element elsewhere acts as a number. */
static luma_status set_value(luma_state *S, lm_map *m, int k, const luma_tensor *x, const plan *p,
                             luma_dtype kernel) {
    lm_operand *o = &m->operand[k];
    luma_scalar v = x->number;
    if (x->storage) LM_TRY(lm_item(S, x, &v));
    o->data = NULL;
    o->dtype = o->kernel = kernel;
    memset(o->stride, 0, sizeof o->stride);
    memset(&o->value, 0, sizeof o->value);
    luma_dtype dtype = kernel == LUMA_BOOL ? LUMA_BOOL : p->dtype;
    return lm_map_encode(S, v, dtype, kernel, k, lm_map_is_shift(p->op) && k == 2, &o->value);
}

static luma_status run_met(luma_state *S, const plan *p, const luma_tensor *work,
                           const luma_tensor *const *ins, const luma_scalar *params) {
    lm_map m;
    m.op = p->op;
    m.compute = (luma_dtype)lm_dtypes[p->dtype].compute;
    m.noperands = p->nin + 1;
    /* a guard names positions, for which it wants the shape */
    bool guarded = !lm_dtype_is_float(p->dtype) && lm_op_guard(p->op) != LM_GUARD_NONE;
    m.planned = p->flat && !guarded && lm_layout_is_contiguous(&work->layout);
    m.ndim = m.planned ? 1 : p->ndim;
    if (m.planned)
        m.shape[0] = luma_numel(work);
    else
        memcpy(m.shape, p->shape, (size_t)p->ndim * sizeof *p->shape);
    lm_map_operand(&m, 0, work, p->result == p->dtype ? m.compute : p->result);
    for (int i = 0; i < p->nin; i++) {
        bool mask = lm_ops[p->op].row == LM_ROW_TERNARY && i == 0;
        luma_dtype kernel = mask ? LUMA_BOOL : m.compute;
        if (ins[i]->storage && lm_device_of(ins[i]) == p->device)
            lm_map_operand(&m, i + 1, ins[i], kernel);
        else
            LM_TRY(set_value(S, &m, i + 1, ins[i], p, kernel));
    }
    if (lm_ops[p->op].row == LM_ROW_UNARY_P)
        LM_TRY(lm_map_params(S, p->op, p->dtype, params, &m.params));
    return LM_SLOT(S, p->device, map, lm_ops[p->op].name, p->dtype, &m);
}

static luma_status run(luma_state *S, const plan *p, const luma_tensor *work,
                       const luma_tensor *const *ins, const luma_scalar *params) {
    luma_tensor rounded[LM_ITER_MAX] = {LUMA_NEW};
    const luma_tensor *met[LM_ITER_MAX];
    luma_status status = LUMA_OK;
    bool any = false;
    for (int i = 0; i < p->nin; i++)
        any = any || lm_meets_rounded(ins[i], p->dtype);
    if (!any) return run_met(S, p, work, ins, params);
    for (int i = 0; i < p->nin && status == LUMA_OK; i++) {
        met[i] = ins[i];
        if (!lm_meets_rounded(ins[i], p->dtype)) continue;
        status = lm_meet(S, &rounded[i], ins[i], p->dtype);
        met[i] = &rounded[i];
    }
    if (status == LUMA_OK) status = run_met(S, p, work, met, params);
    for (int i = 0; i < p->nin; i++)
        luma_release(S, &rounded[i]);
    return status;
}

bool lm_map_exact(lm_op op, const luma_tensor *const *ins, lm_exact *e) {
    if (!is_comparison(op)) return false;
    int number = lm_is_number(ins[0]) ? 0 : 1;
    const luma_tensor *x = ins[1 - number];
    if (!lm_is_number(ins[number]) || !x->storage || lm_dtype_is_float(x->dtype)) return false;
    const lm_dtype_info *info = &lm_dtypes[x->dtype];
    *e = compare_exactly(number == 0 ? mirrored(op) : op, ins[number]->number, info->imin,
                         info->imax);
    e->tensor = 1 - number;
    return true;
}

static luma_status call_exact(luma_state *S, lm_op op, luma_tensor *out,
                              const luma_tensor *const *ins, bool *done) {
    lm_exact e;
    *done = lm_map_exact(op, ins, &e);
    if (!*done) return LUMA_OK;
    const luma_tensor *x = ins[e.tensor];
    if (!e.constant) {
        luma_tensor c = x->dtype == LUMA_BOOL ? luma_boolean(e.c != 0) : luma_integer(e.c);
        const luma_tensor *pair[2] = {x, &c};
        plan p;
        lm_result r;
        LM_TRY(make_plan(S, &p, e.op, 2, pair, NULL));
        LM_TRY(lm_result_open(S, &r, out, p.device, LUMA_BOOL, p.ndim, p.shape, pair, 1,
                              LM_RESULT_ALIGNED));
        return lm_result_close(S, &r, run(S, &p, &r.work, pair, NULL));
    }
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), LUMA_BOOL, x->layout.ndim, x->layout.shape,
                          &x, 1, LM_RESULT_ALIGNED));
    luma_scalar answer = {.kind = LUMA_IS_BOOL, .u.i = e.c};
    return lm_result_close(S, &r, lm_fill(S, &r.work, answer));
}

/* ---- the commonest small calls ---- */

#define QUICK_MOST 1024 /* elements */

/* Rows that take floats as they are. */
#define QUICK_FLOATS true
#define QUICK_NUMBERS true
#define QUICK_INTS false
#define QUICK_BITS false
static const bool quick_rows[LM_NOPS] = {
#define UNARY(name, dtypes, ...) [LM_OP_##name] = QUICK_##dtypes,
#define BINARY(name, dtypes, ...) [LM_OP_##name] = QUICK_##dtypes,
#include "ops.def"
};

/* Elements of x and y when both have the strides of one new tensor; else 0. */
static int64_t quick_numel(const luma_layout *x, const luma_layout *y) {
    int64_t n = 1;
    if (x->ndim != y->ndim) return 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->stride[d] != n || y->stride[d] != n || x->shape[d] != y->shape[d]) return 0;
        n *= x->shape[d];
    }
    return n;
}

typedef union {
    float f;
    double d;
} quick_value;

static char *quick_number(quick_value *value, luma_dtype dtype, luma_scalar v) {
    if (dtype == LUMA_FLOAT64)
        value->d = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
    else
        value->f = v.kind == LUMA_IS_FLOAT ? (float)v.u.d : (float)v.u.i;
    return (char *)value;
}

/* A new tensor of UNARY and BINARY rows from dense float32 or float64 tensors of one shape on the
** CPU and numbers: what a plan would come to, without one. False: not such a call. */
static bool quick(luma_state *S, lm_op op, luma_tensor *out, int nin, const luma_tensor *const *ins,
                  luma_status *status) {
    static const lm_params none = {.d = {0}};
    if (!quick_rows[op]) return false;
    const luma_tensor *x = ins[0]->storage ? ins[0] : ins[nin - 1];
    const luma_tensor *y = ins[nin - 1]->storage ? ins[nin - 1] : x;
    if (!x->storage || (x->dtype != LUMA_FLOAT32 && x->dtype != LUMA_FLOAT64) ||
        y->dtype != x->dtype || out->storage || out->number.kind != LUMA_NOT_A_NUMBER)
        return false;
    lm_device *device = lm_cpu(S);
    int64_t n = quick_numel(&x->layout, &y->layout), size = x->dtype == LUMA_FLOAT32 ? 4 : 8;
    if (n < 1 || n > QUICK_MOST || lm_device_of(x) != device || lm_device_of(y) != device)
        return false;
    char *p[3];
    int64_t s[3] = {size, size, size};
    quick_value values[2];
    for (int k = 0; k < nin; k++) {
        if (ins[k]->storage) {
            p[k + 1] = ins[k]->storage->data + ins[k]->layout.offset * size;
        } else if (!lm_is_number(ins[k])) {
            return false;
        } else {
            p[k + 1] = quick_number(&values[k], x->dtype, ins[k]->number);
            s[k + 1] = 0;
        }
    }
    lm_storage *st;
    *status = lm_storage_new(S, device, (size_t)(n * size), &st);
    if (*status != LUMA_OK) return true;
    p[0] = st->data;
    device->ops->kernel(op, x->dtype)(n, p, s, &none);
    out->storage = st;
    out->dtype = x->dtype;
    out->layout.ndim = x->layout.ndim;
    out->layout.offset = 0;
    for (int d = 0; d < x->layout.ndim; d++) {
        out->layout.shape[d] = x->layout.shape[d];
        out->layout.stride[d] = x->layout.stride[d];
    }
    return true;
}

/* ---- powers that are other rows ---- */

lm_op lm_map_power(lm_op op, int *nin, const luma_tensor *const *ins, bool *cube) {
    *cube = false;
    if (op != LM_OP_pow || !ins[0]->storage || !lm_is_number(ins[1])) return op;
    luma_scalar v = ins[1]->number;
    bool real = lm_dtype_is_float(ins[0]->dtype), whole = v.kind == LUMA_IS_INT;
    double power = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
    if ((!real && !whole) || v.kind == LUMA_IS_BOOL) return op;
    if (power == 1) return LM_OP_mul; /* by that 1 */
    *cube = power == 3;
    if (*cube) return LM_OP_mul;
    lm_op as = power == 2             ? LM_OP_square
               : power == 0.5 && real ? LM_OP_sqrt
               : power == -1 && real  ? LM_OP_recip
                                      : op;
    if (as != op) *nin = 1;
    return as;
}

luma_status lm_map_call(luma_state *S, lm_op op, luma_tensor *out, int nin,
                        const luma_tensor *const *ins, const luma_scalar *params) {
    plan p;
    lm_result r;
    bool done, cube;
    luma_status status;
    op = lm_map_power(op, &nin, ins, &cube);
    if (cube) {
        luma_tensor square = LUMA_NEW;
        LM_TRY(luma_square(S, &square, ins[0]));
        status = luma_mul(S, out, &square, ins[0]);
        luma_release(S, &square);
        return status;
    }
    if (quick(S, op, out, nin, ins, &status)) return status;
    status = call_exact(S, op, out, ins, &done);
    if (done || status != LUMA_OK) return status;
    LM_TRY(make_plan(S, &p, op, nin, ins, params));
    LM_TRY(lm_result_open(S, &r, out, p.device, p.result, p.ndim, p.shape, ins, nin,
                          LM_RESULT_ALIGNED));
    return lm_result_close(S, &r, run(S, &p, &r.work, ins, params));
}

luma_status lm_map_inplace(luma_state *S, lm_op op, luma_tensor *self, int nin,
                           const luma_tensor *const *ins, const luma_scalar *params) {
    plan p;
    lm_result r;
    lm_text a, b;
    bool cube;
    op = lm_map_power(op, &nin, ins, &cube);
    if (cube) {
        luma_tensor square = LUMA_NEW;
        LM_TRY(luma_square(S, &square, ins[0]));
        luma_status status =
            lm_map_inplace(S, LM_OP_mul, self, 2, (const luma_tensor *[]){&square, ins[0]}, NULL);
        luma_release(S, &square);
        return status;
    }
    LM_TRY(make_plan(S, &p, op, nin, ins, params));
    if (lm_dtypes[p.result].kind > lm_dtypes[self->dtype].kind)
        return lm_fail(S, LUMA_ERR_DTYPE, 0, "a %s result cannot be written into %s in place",
                       lm_dtypes[p.result].name, lm_dtypes[self->dtype].name);
    if (p.ndim != self->layout.ndim ||
        memcmp(p.shape, self->layout.shape, (size_t)p.ndim * sizeof *p.shape) != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "a %s result cannot be written into %s in place",
                       lm_shape_text(&a, p.ndim, p.shape), lm_layout_text(&b, &self->layout));
    LM_TRY(lm_result_open(S, &r, self, p.device, self->dtype, p.ndim, p.shape, ins, nin,
                          LM_RESULT_ALIGNED));
    return lm_result_close(S, &r, run(S, &p, &r.work, ins, params));
}

/* ---- the C functions of the rows ---- */

#define ROW1(name, ...)                                                                            \
    luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x) {               \
        return lm_map_call(S, LM_OP_##name, out, 1, &x, NULL);                                     \
    }
#define ROW2(name, ...)                                                                            \
    luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,                 \
                            const luma_tensor *y) {                                                \
        const luma_tensor *ins[] = {x, y};                                                         \
        return lm_map_call(S, LM_OP_##name, out, 2, ins, NULL);                                    \
    }
#define UNARY ROW1
#define TEST ROW1
#define BINARY ROW2
#define COMPARE ROW2
#define UNARY_P(name, ...)                                                                         \
    luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_scalar p,  \
                            luma_scalar q) {                                                       \
        const luma_scalar params[] = {p, q};                                                       \
        return lm_map_call(S, LM_OP_##name, out, 1, &x, params);                                   \
    }
#define TERNARY(name, ...)                                                                         \
    luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,                 \
                            const luma_tensor *y, const luma_tensor *z) {                          \
        const luma_tensor *ins[] = {x, y, z};                                                      \
        return lm_map_call(S, LM_OP_##name, out, 3, ins, NULL);                                    \
    }
#include "ops.def"
