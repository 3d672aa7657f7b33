/* fused.c -- programs of elementwise rows: they are kept as rows, and for every run become steps over
** registers of known dtypes, as the rows would compute one after the other. What a device does not
** run so, and what is an error, goes row by row. Layer: core. */
#include "fused.h"

#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "memory.h"

/* ---- programs ---- */

luma_status luma_program_new(luma_state *S, luma_program **out, int ninputs) {
    if (ninputs < 0 || ninputs > LM_FUSED_VALUES / 2)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "%d inputs: at most %d", ninputs,
                       LM_FUSED_VALUES / 2);
    luma_program *p = lm_memory_resize(S, NULL, sizeof *p);
    if (!p) return LUMA_ERR_MEMORY;
    p->ninputs = p->nvalues = ninputs;
    p->nodes = NULL;
    p->room = 0;
    p->settled = false;
    p->passes = 0;
    p->failed = LM_NOPS;
    p->work = NULL;
    *out = p;
    return LUMA_OK;
}

void luma_program_free(luma_program *p) {
    if (!p) return;
    if (!p->settled) {
        free(p->work);
        free(p->nodes);
    }
    free(p);
}

static bool same_number(luma_scalar a, luma_scalar b) {
    return a.kind == b.kind && memcmp(&a.u, &b.u, sizeof a.u) == 0;
}

static bool same_node(const lm_fused_node *a, const lm_fused_node *b) {
    if (a->op != b->op || a->real != b->real || a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (a->in[i] != b->in[i]) return false;
    return same_number(a->number, b->number);
}

/* A value that is there already is not made again. */
static luma_status add(luma_state *S, luma_program *p, const lm_fused_node *node, int *value) {
    for (int v = p->ninputs; v < p->nvalues; v++) {
        if (!same_node(&p->nodes[v - p->ninputs], node)) continue;
        *value = v;
        return LUMA_OK;
    }
    if (p->nvalues == LM_FUSED_VALUES)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "a program has at most %d values", LM_FUSED_VALUES);
    if (p->nvalues - p->ninputs == p->room) {
        int room = p->room + p->room / 2 + 4;
        lm_fused_node *more = lm_memory_resize(S, p->nodes, (size_t)room * sizeof *more);
        if (!more) return LUMA_ERR_MEMORY;
        p->nodes = more;
        p->room = room;
    }
    free(p->work); /* is too small now */
    p->work = NULL;
    *value = p->nvalues++;
    p->nodes[*value - p->ninputs] = *node;
    return LUMA_OK;
}

luma_status luma_program_number(luma_state *S, luma_program *p, luma_scalar number, int *value) {
    lm_fused_node node = {.op = LM_NOPS, .number = number};
    if (number.kind == LUMA_NOT_A_NUMBER)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "a number expected");
    return add(S, p, &node, value);
}

luma_status lm_fused_add(luma_state *S, luma_program *p, lm_op op, bool real, int n, const int *in,
                         int *value) {
    lm_fused_node node = {.op = op, .real = real, .n = n};
    int nin = lm_op_inputs(op), most = lm_ops[op].row == LM_ROW_UNARY_P ? 3 : nin;
    if (nin == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%s is no elementwise operation", lm_ops[op].name);
    if (n < nin || n > most)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%d arguments of %s, which takes %d", n,
                       lm_ops[op].name, most);
    for (int i = 0; i < n; i++) {
        if (in[i] >= p->nvalues || in[i] < (i < nin ? 0 : -1))
            return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "%d is no value of the program", in[i]);
        node.in[i] = in[i];
    }
    return add(S, p, &node, value);
}

luma_status luma_program_row(luma_state *S, luma_program *p, const char *name, int n, const int *in,
                             int *value) {
    for (int op = 0; op < LM_NOPS; op++) {
        if (strcmp(lm_ops[op].name, name) == 0)
            return lm_fused_add(S, p, (lm_op)op, false, n, in, value);
    }
    return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "there is no operation '%s'", name);
}

/* ---- steps ---- */

typedef struct {
    luma_tensor t; /* with a storage, whichever: a tensor of this dtype; else the number */
    bool needed;
    int form[LUMA_NDTYPES]; /* the register that holds it in a dtype; -1: none */
} value;

typedef struct {
    luma_state *S;
    luma_program *p;
    lm_device *device;
    int ninputs; /* tensors that are used: registers before the steps */
    int nsteps;
    bool guarded;
    value *values; /* two more than the program has: what ^ makes float, and a square */
    lm_fused_step *steps;
} lowering;

#define STEPS_OF_ROW 12 /* at most: of a cube, twice a row of four conversions; one of ^ */

static bool is_tensor(const value *v) {
    return v->t.storage != NULL;
}

static void forget_forms(value *v) {
    for (int d = 0; d < LUMA_NDTYPES; d++)
        v->form[d] = -1;
}

static lm_fused_step *next_step(lowering *w, lm_op op, luma_dtype compute, luma_dtype dtype,
                                int n) {
    lm_fused_step *step = &w->steps[w->nsteps++];
    step->op = op;
    step->compute = compute;
    step->dtype = dtype;
    step->n = n;
    step->guard = LM_GUARD_NONE;
    return step;
}

static int last_register(const lowering *w) {
    return w->ninputs + w->nsteps - 1;
}

/* The register that holds a tensor in a dtype. */
static int form(lowering *w, value *v, luma_dtype dtype) {
    if (v->form[dtype] < 0) {
        next_step(w, LM_NOPS, v->t.dtype, dtype, 1)->in[0] = v->form[v->t.dtype];
        v->form[dtype] = last_register(w);
    }
    return v->form[dtype];
}

static bool is_real(const luma_tensor *x) {
    return x->storage ? lm_dtype_is_float(x->dtype) : x->number.kind == LUMA_IS_FLOAT;
}

/* ^ of two that are no floats: one of them becomes float, as in the operator of Lua. */
static void make_real(lowering *w, value *ins[2], value *number) {
    for (int i = 0; i < 2; i++) {
        if (ins[i]->t.number.kind != LUMA_IS_INT || is_tensor(ins[i])) continue;
        *number = *ins[i];
        number->t.number.kind = LUMA_IS_FLOAT;
        number->t.number.u.d = (double)ins[i]->t.number.u.i;
        ins[i] = number;
        return;
    }
    if (!is_tensor(ins[0])) return;
    value *made = &w->values[w->p->nvalues];
    luma_dtype dtype = w->S->default_dtype;
    int held = form(w, ins[0], dtype);
    made->t = ins[0]->t;
    made->t.dtype = dtype;
    forget_forms(made);
    made->form[dtype] = held;
    ins[0] = made;
}

/* A number of a row in a register; an error where it does not fit. */
static luma_status put_number(lowering *w, const lm_fused_node *node, int i, luma_scalar v,
                              luma_dtype dtype, luma_dtype kernel, int *held) {
    lm_fused_step *step = next_step(w, LM_NOPS, kernel, kernel, 0);
    memset(step->element, 0, sizeof step->element);
    *held = last_register(w);
    return lm_map_encode(w->S, v, dtype, kernel, i + 1, lm_map_is_shift(node->op) && i == 1,
                         step->element);
}

static bool refuses(const lowering *w, lm_guard guard, int held) {
    const lm_fused_step *step = &w->steps[held - w->ninputs];
    luma_scalar v = lm_cpu(w->S)->ops->decode(step->dtype, step->element);
    return guard == LM_GUARD_ZERO ? v.u.i == 0 : v.u.i < 0;
}

static luma_status put_operand(lowering *w, const lm_fused_node *node, int i, value *in,
                               luma_dtype dtype, luma_dtype kernel, lm_guard *guard, int *held) {
    if (lm_meets_rounded(&in->t, dtype)) {
        int rounded = form(w, in, dtype);
        next_step(w, LM_NOPS, dtype, kernel, 1)->in[0] = rounded;
        *held = last_register(w);
        return LUMA_OK;
    }
    if (is_tensor(in)) {
        *held = form(w, in, kernel);
        return LUMA_OK;
    }
    LM_TRY(put_number(w, node, i, in->t.number, dtype, kernel, held));
    if (i != 1 || *guard == LM_GUARD_NONE) return LUMA_OK;
    if (refuses(w, *guard, *held)) return lm_guard_fail(w->S, node->op, *guard, 0, NULL);
    *guard = LM_GUARD_NONE;
    return LUMA_OK;
}

static void set_value(value *v, const luma_tensor *like, luma_dtype dtype, int held) {
    v->t.storage = like->storage;
    v->t.dtype = dtype;
    forget_forms(v);
    v->form[dtype] = held;
}

static luma_status number_params(const lowering *w, const lm_fused_node *node,
                                 luma_scalar params[2]) {
    for (int i = 0; i < 2; i++) {
        bool number = lm_ops[node->op].row == LM_ROW_UNARY_P && i + 1 < node->n;
        int in = number ? node->in[i + 1] : -1;
        params[i] = (luma_scalar){.kind = LUMA_NOT_A_NUMBER};
        if (in < 0) continue;
        if (is_tensor(&w->values[in]))
            return lm_fail(w->S, LUMA_ERR_ARGUMENT, i + 2, "a number expected, got a tensor");
        params[i] = w->values[in].t.number;
    }
    return LUMA_OK;
}

/* Row `op` of these inputs becomes steps and the value *out. */
static luma_status put_row(lowering *w, const lm_fused_node *node, lm_op op, int nin, value **ins,
                           value *out) {
    const luma_tensor *tensors[3] = {NULL, NULL, NULL}, *like = NULL;
    luma_scalar params[2];
    luma_dtype dtype;
    int held[3];
    for (int i = 0; i < nin; i++) {
        tensors[i] = &ins[i]->t;
        if (is_tensor(ins[i])) like = tensors[i];
    }
    if (!like) return lm_fail(w->S, LUMA_ERR_ARGUMENT, 1, "tensor expected, got a number");
    LM_TRY(number_params(w, node, params));
    LM_TRY(lm_map_dtype(w->S, op, nin, tensors, params, &dtype));
    if (!lm_supports(w->device, op, dtype))
        return lm_unsupported(w->S, w->device, lm_ops[op].name, dtype);
    luma_dtype compute = (luma_dtype)lm_dtypes[dtype].compute, result = lm_map_result(op, dtype);
    lm_guard guard = lm_dtype_is_float(compute) ? LM_GUARD_NONE : lm_op_guard(op);
    for (int i = 0; i < nin; i++) {
        bool mask = lm_ops[op].row == LM_ROW_TERNARY && i == 0;
        LM_TRY(put_operand(w, node, i, ins[i], mask ? LUMA_BOOL : dtype, mask ? LUMA_BOOL : compute,
                           &guard, &held[i]));
    }
    lm_fused_step *step = next_step(w, op, compute, result == dtype ? compute : result, nin);
    memcpy(step->in, held, sizeof held);
    step->guard = guard;
    if (guard != LM_GUARD_NONE) w->guarded = true;
    if (lm_ops[op].row == LM_ROW_UNARY_P)
        LM_TRY(lm_map_params(w->S, op, dtype, params, &step->params));
    int computed = last_register(w);
    if (step->dtype != result) next_step(w, LM_NOPS, compute, result, 1)->in[0] = computed;
    set_value(out, like, result, last_register(w));
    return LUMA_OK;
}

static luma_status lower_node(lowering *w, const lm_fused_node *node, value *out) {
    value *ins[3] = {NULL, NULL, NULL}, number;
    const luma_tensor *pair[2];
    int nin = lm_op_inputs(node->op);
    lm_op op = node->op;
    bool cube = false;
    lm_exact e;
    for (int i = 0; i < nin; i++)
        ins[i] = &w->values[node->in[i]];
    if (node->real && !is_real(&ins[0]->t) && !is_real(&ins[1]->t)) make_real(w, ins, &number);
    if (nin == 2) {
        pair[0] = &ins[0]->t;
        pair[1] = &ins[1]->t;
    }
    if (nin == 2) op = lm_map_power(op, &nin, pair, &cube);
    if (cube) {
        value *square = &w->values[w->p->nvalues + 1], *two[2] = {square, ins[0]};
        LM_TRY(put_row(w, node, LM_OP_square, 1, ins, square));
        return put_row(w, node, LM_OP_mul, 2, two, out);
    }
    if (nin != 2 || !lm_map_exact(op, pair, &e)) return put_row(w, node, op, nin, ins, out);
    value *x = ins[e.tensor], c = {.t = luma_integer(e.c)};
    if (e.constant || x->t.dtype == LUMA_BOOL) c.t = luma_boolean(e.c != 0);
    if (e.constant) {
        int held;
        LM_TRY(put_number(w, node, 0, c.t.number, LUMA_BOOL, LUMA_BOOL, &held));
        set_value(out, &x->t, LUMA_BOOL, held);
        return LUMA_OK;
    }
    value *two[2] = {x, &c};
    return put_row(w, node, e.op, 2, two, out);
}

/* ---- one run ---- */

/* Marks what a value is made of; false when that is no tensor at all. */
static bool mark(lowering *w, int wanted) {
    const luma_program *p = w->p;
    bool any = false;
    w->values[wanted].needed = true;
    for (int v = wanted; v >= p->ninputs; v--) {
        const lm_fused_node *node = &p->nodes[v - p->ninputs];
        bool number = w->values[v].t.number.kind != LUMA_NOT_A_NUMBER;
        if (!w->values[v].needed || number) continue;
        for (int i = 0; i < node->n; i++)
            if (node->in[i] >= 0) w->values[node->in[i]].needed = true;
    }
    for (int v = 0; v < p->ninputs; v++)
        any = any || (w->values[v].needed && is_tensor(&w->values[v]));
    return any && w->values[wanted].t.number.kind == LUMA_NOT_A_NUMBER;
}

#define SMALL_WORK 32768 /* bytes, which are kept */

/* Of a run: the values, then the steps. */
static size_t size_of_work(const luma_program *p) {
    size_t nsteps = (size_t)(p->nvalues - p->ninputs) * STEPS_OF_ROW + 1;
    return ((size_t)p->nvalues + 2) * sizeof(value) + nsteps * sizeof(lm_fused_step);
}

static size_t size_of_nodes(const luma_program *p) {
    return (size_t)(p->nvalues - p->ninputs) * sizeof *p->nodes;
}

size_t lm_fused_size(const luma_program *p) {
    size_t work = size_of_work(p);
    return size_of_nodes(p) + (work <= SMALL_WORK ? work : 0);
}

void lm_fused_settle(luma_program *p, void *memory) {
    size_t n = size_of_nodes(p);
    if (n > 0) memcpy(memory, p->nodes, n);
    free(p->nodes);
    free(p->work);
    p->nodes = memory;
    p->work = size_of_work(p) <= SMALL_WORK ? (char *)memory + n : NULL;
    p->settled = true;
}

static luma_status get_room(lowering *w) {
    if (!w->p->work) w->p->work = lm_memory_resize(w->S, NULL, size_of_work(w->p));
    if (!w->p->work) return LUMA_ERR_MEMORY;
    w->values = w->p->work;
    w->steps = (lm_fused_step *)(void *)(w->values + w->p->nvalues + 2);
    return LUMA_OK;
}

static void give_room(luma_program *p) {
    if (size_of_work(p) <= SMALL_WORK) return;
    free(p->work);
    p->work = NULL;
}

static luma_status begin(lowering *w, const luma_tensor *const *inputs, const luma_scalar *numbers,
                         int wanted) {
    const luma_program *p = w->p;
    LM_TRY(get_room(w));
    for (int v = 0; v < p->nvalues; v++) {
        value *to = &w->values[v];
        to->needed = false;
        to->t.storage = NULL;
        to->t.number.kind = LUMA_NOT_A_NUMBER;
        if (v < p->ninputs) {
            to->t.storage = inputs[v]->storage;
            to->t.dtype = inputs[v]->dtype;
            if (!to->t.storage) to->t.number = inputs[v]->number;
        } else if (p->nodes[v - p->ninputs].op == LM_NOPS) {
            to->t.number = p->nodes[v - p->ninputs].number;
        } else if (numbers) {
            to->t.number = numbers[v];
        }
    }
    if (!mark(w, wanted))
        return lm_fail(w->S, LUMA_ERR_ARGUMENT, 0,
                       "none of what the result is made of is a tensor");
    return LUMA_OK;
}

/* Steps for the wanted value, in a register of its dtype that is no input. */
static luma_status lower(lowering *w, int wanted, luma_dtype *dtype) {
    const luma_program *p = w->p;
    int held = 0;
    w->nsteps = 0;
    w->guarded = false;
    for (int v = 0; v < p->ninputs; v++) {
        if (!w->values[v].needed || !is_tensor(&w->values[v])) continue;
        forget_forms(&w->values[v]);
        w->values[v].form[w->values[v].t.dtype] = held++;
    }
    for (int v = p->ninputs; v <= wanted; v++) {
        value *to = &w->values[v];
        if (!to->needed || to->t.number.kind != LUMA_NOT_A_NUMBER) continue;
        LM_TRY(lower_node(w, &p->nodes[v - p->ninputs], to));
    }
    const value *last = &w->values[wanted];
    *dtype = last->t.dtype;
    int from = last->form[*dtype];
    if (from != last_register(w) || from < w->ninputs || w->steps[w->nsteps - 1].n == 0)
        next_step(w, LM_NOPS, *dtype, *dtype, 1)->in[0] = from;
    return LUMA_OK;
}

static luma_status result_shape(luma_state *S, const luma_tensor *const *xs, int n, int *ndim,
                                int64_t *shape, bool *flat) {
    *ndim = xs[0]->layout.ndim;
    *flat = true;
    memcpy(shape, xs[0]->layout.shape, (size_t)*ndim * sizeof *shape);
    for (int i = 0; i < n; i++) {
        const luma_layout *x = &xs[i]->layout;
        *flat = *flat && lm_layout_is_contiguous(x);
        if (i == 0 || lm_layout_same_shape(x, &xs[0]->layout)) continue;
        *flat = false;
        int64_t met[LUMA_MAX_DIMS];
        int nmet;
        LM_TRY(lm_shape_broadcast(S, *ndim, shape, x->ndim, x->shape, &nmet, met));
        *ndim = nmet;
        memcpy(shape, met, (size_t)nmet * sizeof *shape);
    }
    return LUMA_OK;
}

static void set_map(lm_map *m, const luma_tensor *out, const luma_tensor *const *xs, int n,
                    int ndim, const int64_t *shape, bool flat) {
    m->op = LM_NOPS;
    m->compute = out->dtype;
    m->noperands = n + 1;
    m->planned = flat && lm_layout_is_contiguous(&out->layout);
    m->ndim = m->planned ? 1 : ndim;
    if (m->planned)
        m->shape[0] = luma_numel(out);
    else
        memcpy(m->shape, shape, (size_t)ndim * sizeof *shape);
    memset(&m->params, 0, sizeof m->params);
    lm_map_operand(m, 0, out, out->dtype);
    for (int i = 0; i < n; i++)
        lm_map_operand(m, i + 1, xs[i], xs[i]->dtype);
}

/* In one pass. *done is false, and nothing has happened, where that cannot be: rows then do it, or
** say what is wrong. */
static luma_status run_at_once(lowering *w, luma_tensor *out, const luma_tensor *const *inputs,
                               int wanted, bool *done) {
    const luma_tensor *xs[LM_FUSED_INPUTS];
    luma_state *S = w->S;
    luma_dtype dtype;
    int64_t shape[LUMA_MAX_DIMS];
    int ndim;
    bool flat;
    *done = false;
    w->ninputs = 0;
    for (int v = 0; v < w->p->ninputs; v++) {
        if (!w->values[v].needed || !inputs[v]->storage) continue;
        if (w->ninputs == LM_FUSED_INPUTS) return LUMA_OK;
        xs[w->ninputs++] = inputs[v];
    }
    if (lm_same_device(S, xs, w->ninputs, &w->device) != LUMA_OK || !w->device->ops->fused)
        return LUMA_OK;
    for (int i = 0; i < w->ninputs; i++)
        if (lm_device_of(xs[i]) != w->device) return LUMA_OK; /* 0-d, elsewhere */
    if (lower(w, wanted, &dtype) != LUMA_OK) return LUMA_OK;
    if (result_shape(S, xs, w->ninputs, &ndim, shape, &flat) != LUMA_OK) return LUMA_OK;
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0 && w->guarded) return LUMA_OK; /* rows of fewer dims may have elements */
    lm_result r;
    lm_fused f;
    LM_TRY(lm_result_open(S, &r, out, w->device, dtype, ndim, shape, xs, w->ninputs,
                          w->guarded ? LM_RESULT_APART : LM_RESULT_ALIGNED));
    set_map(&f.map, &r.work, xs, w->ninputs, ndim, shape, flat);
    f.steps = w->steps;
    f.nsteps = w->nsteps;
    f.guarded = w->guarded;
    f.refused = false;
    luma_status status = w->device->ops->fused(S, w->device, &f, done);
    if (*done && !f.refused) {
        w->p->passes++;
        return lm_result_close(S, &r, status);
    }
    *done = false;
    lm_result_close(S, &r, LUMA_ERR_UNSUPPORTED);
    return LUMA_OK;
}

/* ---- row by row ---- */

/* The value whose turn is last to read value v. */
static int last_reader(const lowering *w, int v, int wanted) {
    for (int u = wanted; u > v && u >= w->p->ninputs; u--) {
        const lm_fused_node *node = &w->p->nodes[u - w->p->ninputs];
        for (int i = 0; i < node->n && w->values[u].needed; i++)
            if (node->in[i] == v) return u;
    }
    return v;
}

static luma_status run_node(lowering *w, const lm_fused_node *node, luma_tensor *out) {
    luma_state *S = w->S;
    const luma_tensor *ins[3] = {NULL, NULL, NULL};
    luma_tensor made = LUMA_NEW;
    luma_scalar params[2];
    int nin = lm_op_inputs(node->op);
    bool any = false;
    for (int i = 0; i < nin; i++) {
        ins[i] = &w->values[node->in[i]].t;
        any = any || ins[i]->storage;
    }
    LM_TRY(number_params(w, node, params));
    if (!any) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "tensor expected, got a number");
    if (node->real && !is_real(ins[0]) && !is_real(ins[1])) {
        int i = ins[0]->number.kind == LUMA_IS_INT && !ins[0]->storage ? 0 : 1;
        if (!ins[i]->storage && ins[i]->number.kind == LUMA_IS_INT) {
            made = luma_number((double)ins[i]->number.u.i);
            ins[i] = &made;
        } else if (ins[0]->storage) {
            LM_TRY(lm_cast(S, &made, ins[0], S->default_dtype));
            ins[0] = &made;
        }
    }
    luma_status status = lm_map_call(S, node->op, out, nin, ins, params);
    luma_release(S, &made);
    return status;
}

/* Values are the tensors themselves: inputs, which are borrowed, and what rows have made. */
static luma_status run_rows(lowering *w, luma_tensor *out, const luma_tensor *const *inputs,
                            int wanted) {
    luma_state *S = w->S;
    const luma_program *p = w->p;
    const luma_tensor none = LUMA_NEW;
    luma_status status = LUMA_OK;
    if (wanted < p->ninputs) return luma_clone(S, out, inputs[wanted]);
    for (int v = 0; v <= wanted; v++) {
        luma_tensor *t = &w->values[v].t;
        if (t->number.kind == LUMA_NOT_A_NUMBER) *t = v < p->ninputs ? *inputs[v] : none;
    }
    for (int v = p->ninputs; v <= wanted && status == LUMA_OK; v++) {
        luma_tensor *t = &w->values[v].t;
        if (!w->values[v].needed || t->number.kind != LUMA_NOT_A_NUMBER) continue;
        const lm_fused_node *node = &p->nodes[v - p->ninputs];
        w->p->failed = node->op;
        status = run_node(w, node, v == wanted ? out : t);
        for (int i = 0; i < node->n; i++) {
            int u = node->in[i];
            if (u >= p->ninputs && w->values[u].t.storage && last_reader(w, u, wanted) == v)
                luma_release(S, &w->values[u].t);
        }
    }
    for (int v = p->ninputs; v <= wanted; v++)
        luma_release(S, &w->values[v].t);
    if (status == LUMA_OK) w->p->failed = LM_NOPS;
    return status;
}

luma_status lm_fused_run(luma_state *S, luma_tensor *out, luma_program *p, int wanted,
                         const luma_tensor *const *inputs, const luma_scalar *numbers) {
    lowering w = {.S = S, .p = p};
    bool done = false;
    p->failed = LM_NOPS;
    luma_status status = begin(&w, inputs, numbers, wanted);
    if (status == LUMA_OK) status = run_at_once(&w, out, inputs, wanted, &done);
    if (status == LUMA_OK && !done) status = run_rows(&w, out, inputs, wanted);
    give_room(p);
    return status;
}

luma_status luma_program_run(luma_state *S, luma_tensor *out, luma_program *p, int wanted,
                             const luma_tensor *const *inputs) {
    char message[LM_MESSAGE_SIZE];
    if (wanted < 0 || wanted >= p->nvalues)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%d is no value of the program", wanted);
    for (int i = 0; i < p->ninputs; i++) {
        if (!inputs[i]->storage && !lm_is_number(inputs[i]))
            return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "input %d: a tensor or a number expected", i);
    }
    luma_status status = lm_fused_run(S, out, p, wanted, inputs, NULL);
    if (status == LUMA_OK || p->failed == LM_NOPS) return status;
    memcpy(message, S->message, sizeof message);
    return lm_fail(S, status, 0, "%s: %s", lm_ops[p->failed].name, message);
}
