/* fused.c -- functions of several elementwise operations that run in one pass: luma.fuse and
** luma.kernel. Such a function is traced: it runs once on values that stand for its arguments, and
** what they are put to becomes a program of the core, which then runs instead. Layer: bindings. */

#include <string.h>

#include "binding.h"
#include "fused.h"

#define MOST_ARGUMENTS 64
#define MOST_RESULTS 8

/* The program that tracing makes; a userdata. */
typedef struct {
    luma_program *p;
    bool sealed; /* the function has returned */
    int nresults;
    int results[MOST_RESULTS];
} trace;

/* A value of a trace; a userdata whose user value is the trace. It has no finalizer: a function may
** leave any number of them, and memory that is short frees only what has none. */
typedef struct {
    trace *t;
    int value;
    int ndim; /* of arguments that are tensors, else -1 */
    luma_dtype dtype;
} traced;

/* What luma.fuse gives; a userdata with user values: */
enum { FUNCTION = 1, TRACES, ABOUT, LAST, NVALUES = LAST };
typedef struct {
    int nparams; /* -1: any number */
    bool fixed;  /* one trace serves for all arguments */
    trace *last; /* the one that ran last, for these arguments: (LAST holds it) */
    size_t nkey;
    char key[MOST_ARGUMENTS];
    char name[32];
} fused;

static const char traced_key, fused_key;

/* ---- values that are traced ---- */

static traced *test(lua_State *L, int idx) {
    traced *v = lua_touserdata(L, idx);
    if (!v || lua_rawlen(L, idx) != sizeof *v || !lua_getmetatable(L, idx)) return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traced_key);
    bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is ? v : NULL;
}

bool lm_traced_any(lua_State *L, const lm_ctx *c, int n) {
    for (int i = 1; i <= n && c->traced; i++)
        if (test(L, i)) return true;
    return false;
}

/* Pushes value `value` of the trace at idx. */
static traced *push_traced(lua_State *L, lm_ctx *c, int idx, int value) {
    traced *v = lua_newuserdatauv(L, sizeof *v, 1);
    *v = (traced){.t = lua_touserdata(L, idx), .value = value, .ndim = -1};
    lua_pushvalue(L, idx);
    lua_setiuservalue(L, -2, 1);
    c->traced = true;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traced_key);
    lua_setmetatable(L, -2);
    return v;
}

/* ---- rows in a trace ---- */

/* Pushes the trace of the first argument that has one; an error when it has ended. */
static trace *push_trace(lm_call *k) {
    lua_State *L = k->L;
    int i = 1;
    while (!test(L, i))
        i++;
    lua_getiuservalue(L, i, 1);
    trace *t = lua_touserdata(L, -1);
    if (t->sealed) lm_bad(k, i, "a value of a fused function that has returned");
    return t;
}

/* The number of a value for the argument at idx. */
static int value_at(lm_call *k, trace *t, int arg, int idx, bool tensor) {
    lua_State *L = k->L;
    luma_state *S = k->c->S;
    int value;
    const traced *v = test(L, idx);
    if (v && v->t != t) lm_bad(k, arg, "a value of another fused function");
    if (v) return v->value;
    if (lm_box_test(L, idx))
        lm_bad(k, arg, "a tensor from outside of the fused function: make it an argument");
    if (tensor || !lm_is_scalar(L, idx))
        lm_bad_type(k, arg, idx, tensor ? "tensor" : "tensor or number");
    luma_scalar number = lm_to_scalar(L, idx);
    luma_status status;
    int tried = 0;
    do
        status = luma_program_number(S, t->p, number, &value);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return value;
}

static int push_row(lm_call *k, int idx, trace *t, lm_op op, bool real, int n, const int *in) {
    int value, tried = 0;
    luma_status status;
    do
        status = lm_fused_add(k->c->S, t->p, op, real, n, in, &value);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    k->c->S->argument = 0;
    if (status != LUMA_OK) lm_raise(k, status);
    push_traced(k->L, k->c, idx, value);
    return 1;
}

/* Reads the numbers of a row that stand in the options table at idx. */
static void read_options(lm_call *k, trace *t, const lm_param *params, int nparams, int idx,
                         int *in) {
    const char *names[LM_MAX_PARAMS + 1];
    int n = 0;
    for (int p = 0; p < nparams; p++)
        if (params[p].option) names[n++] = params[p].name;
    names[n] = NULL;
    lm_check_options(k, idx, idx, names);
    for (int p = 0; p < nparams && p < 3; p++) {
        if (!params[p].option || !lm_get_option(k, idx, params[p].name)) continue;
        in[p] = value_at(k, t, idx, lua_gettop(k->L), false);
        lua_pop(k->L, 1);
    }
    k->option = NULL;
}

int lm_traced_row(lua_State *L, lm_ctx *c, lm_op op, const char *name, bool inplace) {
    lm_call k;
    lm_call_open(&k, L, c, name);
    int in[3] = {-1, -1, -1}, n = 0, nin = lm_op_inputs(op), arg = 1;
    if (nin == 0) luaL_error(L, "'%s' is not elementwise: a fused function cannot call it", name);
    if (inplace) luaL_error(L, "'%s' writes in place, which a fused function cannot do", name);
    int nparams, top = k.top;
    const lm_param *params = lm_ctx_params(c, op, &nparams);
    trace *t = push_trace(&k);
    int held = lua_gettop(L), options = top > 1 && lm_is_options(L, top) ? top : 0;
    for (; n < nparams && n < 3 && !params[n].option; n++) {
        bool none = arg > top || arg == options || lua_isnil(L, arg);
        if (none && params[n].optional) {
            arg += arg != options;
            continue;
        }
        if (none) lm_bad_type(&k, arg, arg <= top ? arg : top + 100, "tensor or number");
        bool tensor = params[n].type == LM_TYPE_TENSOR || params[n].type == LM_TYPE_MASK;
        in[n] = value_at(&k, t, arg, arg, tensor);
        arg++;
    }
    if (options) read_options(&k, t, params, nparams, options, in);
    if (arg < top + (options == 0)) lm_bad(&k, arg, "no such argument");
    return push_row(&k, held, t, op, false, lm_ops[op].row == LM_ROW_UNARY_P ? 3 : nin, in);
}

int lm_traced_power(lua_State *L, lm_ctx *c) {
    lm_call k;
    lm_call_open(&k, L, c, "pow");
    trace *t = push_trace(&k);
    int held = lua_gettop(L);
    int in[2] = {value_at(&k, t, 1, 1, false), value_at(&k, t, 2, 2, false)};
    return push_row(&k, held, t, LM_OP_pow, true, 2, in);
}

/* ---- what traced values refuse ---- */

#define NOT_KNOWN "values are not known while a function is fused"

static int no_comparison(lua_State *L) {
    return luaL_error(L, NOT_KNOWN ": use x:lt(y), x:eq(y), ... and where(mask, a, b)");
}

static int no_assignment(lua_State *L) {
    return luaL_error(L, "a fused function only computes: it cannot assign elements");
}

static int no_elements(lua_State *L) {
    return luaL_error(L, NOT_KNOWN ", nor their shape: no element can be looked at");
}

static int no_text(lua_State *L) {
    return luaL_error(L, NOT_KNOWN ": they cannot become text");
}

/* Upvalue 1: the methods of tensors. */
static int traced_index(lua_State *L) {
    const traced *v = test(L, 1);
    if (lua_type(L, 2) != LUA_TSTRING) return no_elements(L);
    const char *key = lua_tostring(L, 2);
    bool dtype = strcmp(key, "dtype") == 0;
    if (v && v->ndim >= 0 && dtype) {
        lua_pushstring(L, lm_dtypes[v->dtype].name);
        return 1;
    }
    if (v && v->ndim >= 0 && strcmp(key, "ndim") == 0) {
        lua_pushinteger(L, v->ndim);
        return 1;
    }
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
    return luaL_error(L, NOT_KNOWN ": there is no '%s'", lm_brief(L, key));
}

static int traced_text(lua_State *L) {
    lua_pushliteral(L, "value of a fused function");
    return 1;
}

/* ---- tracing ---- */

static int trace_close(lua_State *L) {
    trace *t = lua_touserdata(L, 1);
    luma_program_free(t->p);
    t->p = NULL;
    return 0;
}

/* Pushes a trace without a program. */
static trace *new_trace(lua_State *L) {
    trace *t = lua_newuserdatauv(L, sizeof *t, 1); /* the memory of its program */
    memset(t, 0, sizeof *t);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, trace_close);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    return t;
}

static void read_results(lm_call *k, trace *t, int first) {
    lua_State *L = k->L;
    int n = lua_gettop(L) - first + 1;
    if (n == 0) luaL_error(L, "%s: the function gives no result", k->name);
    if (n > MOST_RESULTS)
        luaL_error(L, "%s: %d results, at most %d can be", k->name, n, MOST_RESULTS);
    for (int i = 0; i < n; i++) {
        const traced *v = test(L, first + i);
        if (!v || v->t != t)
            luaL_error(L, "%s: result #%d is a %s that does not come of the arguments", k->name,
                       i + 1, luaL_typename(L, first + i));
        t->results[i] = v->value;
    }
    t->nresults = n;
}

/* Pushes the trace of the fused function at index 1 for nargs arguments from `first` on; 0: nothing is
** known of them. */
static trace *push_new_trace(lm_call *k, int first, int nargs) {
    lua_State *L = k->L;
    luaL_checkstack(L, nargs + 10, "too many arguments");
    trace *t = new_trace(L);
    int held = lua_gettop(L);
    luma_status status;
    int tried = 0;
    do
        status = luma_program_new(k->c->S, &t->p, nargs);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    lua_getiuservalue(L, 1, FUNCTION);
    for (int i = 0; i < nargs; i++) {
        const luma_tensor *x = first > 0 ? lm_box_test(L, first + i) : NULL;
        traced *v = push_traced(L, k->c, held, i);
        if (!x) continue;
        v->ndim = x->layout.ndim;
        v->dtype = x->dtype;
    }
    lua_call(L, nargs, LUA_MULTRET);
    read_results(k, t, held + 1);
    t->sealed = true;
    lua_settop(L, held);
    lm_fused_settle(t->p, lua_newuserdatauv(L, lm_fused_size(t->p) + 1, 0));
    lua_setiuservalue(L, held, 1);
    return t;
}

/* ---- calling ---- */

typedef struct {
    lm_call k;
    fused *f;
    trace *t;
    int nargs, options; /* arguments from 2 on; the options' index, 0: none */
    int numbers; /* how many arguments are some: in few, or where they are more, in a userdata */
    luma_tensor *weak, few[4];
    const luma_tensor *inputs[MOST_ARGUMENTS];
    luma_scalar *folded; /* values of the program that are numbers; NULL: none are */
    const luma_tensor *outs[MOST_RESULTS];
} call;

static void read_arguments(call *c) {
    lm_call *k = &c->k;
    lua_State *L = k->L;
    c->nargs = k->top - 1;
    if (k->top > 1 && lm_is_options(L, k->top)) {
        c->options = k->top;
        c->nargs--;
    }
    int wanted = c->f->nparams;
    if (wanted >= 0 && c->nargs != wanted)
        luaL_error(L, "%s takes %d argument%s, got %d", c->f->name, wanted, wanted == 1 ? "" : "s",
                   c->nargs);
    if (c->nargs > MOST_ARGUMENTS)
        luaL_error(L, "%s: %d arguments, at most %d can be", c->f->name, c->nargs, MOST_ARGUMENTS);
    for (int i = 0; i < c->nargs; i++)
        c->numbers += !lm_box_test(L, i + 2);
    if (c->numbers > (int)(sizeof c->few / sizeof *c->few))
        c->weak = lua_newuserdatauv(L, (size_t)c->numbers * sizeof *c->weak, 0);
    luma_tensor *number = c->weak;
    for (int i = 0; i < c->nargs; i++) {
        c->inputs[i] = lm_arg_operand(k, i + 1, i + 2, number);
        number += c->inputs[i] == number;
    }
}

/* The dtypes and ranks of the arguments as text. */
static void make_key(const call *c, char *key) {
    for (int i = 0; i < c->nargs; i++) {
        const luma_tensor *x = c->inputs[i];
        key[i] = (char)(x->storage ? (int)x->dtype * 16 + x->layout.ndim : 9 + (int)x->number.kind);
    }
}

/* The trace for these arguments stays in the user value LAST. */
static void find_trace(call *c) {
    lua_State *L = c->k.L;
    fused *f = c->f;
    char key[MOST_ARGUMENTS];
    size_t nkey = (size_t)c->nargs;
    int top = lua_gettop(L);
    make_key(c, key);
    if (!f->last || (!f->fixed && (nkey != f->nkey || memcmp(key, f->key, nkey) != 0))) {
        lua_getiuservalue(L, 1, TRACES);
        int traces = lua_gettop(L);
        lua_pushlstring(L, key, nkey);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, traces) == LUA_TNIL) {
            lua_pop(L, 1);
            push_new_trace(&c->k, 2, c->nargs);
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, traces);
        }
        trace *t = lua_touserdata(L, -1);
        lua_setiuservalue(L, 1, LAST);
        f->last = t;
        f->nkey = nkey;
        memcpy(f->key, key, nkey);
        lua_settop(L, top);
    }
    c->t = f->last;
}

/* ---- rows of numbers alone, which are Lua's own arithmetic ---- */

static int arithmetic_of(const lm_fused_node *node) {
    switch (node->op) {
    case LM_OP_add:
        return LUA_OPADD;
    case LM_OP_sub:
        return LUA_OPSUB;
    case LM_OP_mul:
        return LUA_OPMUL;
    case LM_OP_div:
        return LUA_OPDIV;
    case LM_OP_floor_div:
        return LUA_OPIDIV;
    case LM_OP_remainder:
        return LUA_OPMOD;
    case LM_OP_pow:
        return node->real ? LUA_OPPOW : -1;
    case LM_OP_neg:
        return LUA_OPUNM;
    case LM_OP_bitwise_and:
        return LUA_OPBAND;
    case LM_OP_bitwise_or:
        return LUA_OPBOR;
    case LM_OP_bitwise_xor:
        return LUA_OPBXOR;
    case LM_OP_bitwise_not:
        return LUA_OPBNOT;
    default:
        return -1;
    }
}

/* Pushes the boolean of a comparison of the two on top and says true; else pushes nothing. */
static bool push_comparison(lua_State *L, lm_op op) {
    bool swap = op == LM_OP_gt || op == LM_OP_ge;
    int x = swap ? -1 : -2, y = swap ? -2 : -1;
    bool value;
    if (op == LM_OP_eq || op == LM_OP_ne)
        value = lua_compare(L, -2, -1, LUA_OPEQ) == (op == LM_OP_eq);
    else if (op == LM_OP_lt || op == LM_OP_gt)
        value = lua_compare(L, x, y, LUA_OPLT);
    else if (op == LM_OP_le || op == LM_OP_ge)
        value = lua_compare(L, x, y, LUA_OPLE);
    else
        return false;
    lua_pushboolean(L, value);
    return true;
}

static luma_scalar number_of(const call *c, int value) {
    if (value < c->t->p->ninputs)
        return c->inputs[value]->storage ? (luma_scalar){0} : c->inputs[value]->number;
    return c->folded[value];
}

static void fold_node(call *c, const lm_fused_node *node, luma_scalar *out) {
    lua_State *L = c->k.L;
    int top = lua_gettop(L), n = lm_op_inputs(node->op), arithmetic = arithmetic_of(node);
    for (int i = 0; i < n; i++) {
        luma_scalar v = number_of(c, node->in[i]);
        if (v.kind == LUMA_NOT_A_NUMBER) {
            lua_settop(L, top);
            return;
        }
        lm_push_scalar(L, v);
    }
    if (arithmetic >= 0) lua_arith(L, arithmetic);
    if (arithmetic >= 0 || (n == 2 && push_comparison(L, node->op))) *out = lm_to_scalar(L, -1);
    lua_settop(L, top);
}

static void fold_numbers(call *c) {
    const luma_program *p = c->t->p;
    if (!c->numbers) return;
    c->folded = lua_newuserdatauv(c->k.L, (size_t)p->nvalues * sizeof *c->folded, 0);
    memset(c->folded, 0, (size_t)p->nvalues * sizeof *c->folded);
    for (int v = p->ninputs; v < p->nvalues; v++) {
        const lm_fused_node *node = &p->nodes[v - p->ninputs];
        if (node->op == LM_NOPS)
            c->folded[v] = node->number;
        else
            fold_node(c, node, &c->folded[v]);
    }
}

/* ---- running ---- */

static void read_outs(call *c) {
    static const char *const names[] = {"out", NULL};
    lm_call *k = &c->k;
    lua_State *L = k->L;
    if (!c->options) return;
    int arg = c->options - 1, n = c->t->nresults;
    lm_check_options(k, arg, c->options, names);
    if (!lm_get_option(k, c->options, "out")) return;
    int idx = lua_gettop(L);
    if (n > 1 && (!lua_istable(L, idx) || lm_arg_length(k, arg, idx) != n))
        lm_bad(k, arg, "a list of %d tensors expected", n);
    for (int i = 0; i < n; i++) {
        if (n > 1) lua_rawgeti(L, idx, i + 1);
        c->outs[i] = lm_arg_tensor(k, arg, lua_gettop(L));
        if (n > 1) lua_pop(L, 1);
    }
    k->option = NULL;
}

/* Finalizers may have released what was read. */
static void check_live(call *c) {
    for (int i = 0; i < c->nargs; i++)
        lm_check_live(&c->k, i + 1, c->inputs[i]);
    for (int i = 0; i < c->t->nresults && c->outs[i]; i++)
        lm_check_live(&c->k, c->options - 1, c->outs[i]);
}

LM_NORETURN static void raise(call *c, luma_status status) {
    lm_op op = c->t->p->failed;
    if (op != LM_NOPS) c->k.name = lm_ops[op].name;
    lm_raise(&c->k, status);
}

/* Computes result i into the box, or, where it is the only one, into the tensor that was given. */
static void run_result(call *c, int i, luma_tensor *box) {
    lm_call *k = &c->k;
    luma_status status;
    int tried = 0;
    do {
        luma_tensor out = LUMA_NEW;
        check_live(c);
        if (c->outs[0] && c->t->nresults == 1) out = *c->outs[0];
        status = lm_fused_run(k->c->S, &out, c->t->p, c->t->results[i], c->inputs, c->folded);
        if (status == LUMA_OK && box) *box = out;
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) raise(c, status);
}

/* Several results go where they were wanted when all of them are there. */
static void give_results(call *c, luma_tensor *const *boxes) {
    lm_call *k = &c->k;
    for (int i = 0; i < c->t->nresults; i++) {
        const luma_tensor *x = boxes[i], *out = c->outs[i];
        if (x->dtype == out->dtype && lm_layout_same_shape(&x->layout, &out->layout) &&
            lm_device_of(x) == lm_device_of(out))
            continue;
        lm_bad(k, c->options - 1, "out[%d] is not of the dtype, shape and device of the result",
               i + 1);
    }
    for (int i = 0; i < c->t->nresults; i++) {
        luma_tensor out = *c->outs[i];
        luma_status status = LM_UNLIMITED(k, lm_copy(k->c->S, &out, boxes[i]));
        if (status != LUMA_OK) lm_raise(k, status);
    }
}

static int run(call *c) {
    lua_State *L = c->k.L;
    int n = c->t->nresults;
    luma_tensor *boxes[MOST_RESULTS] = {NULL};
    fold_numbers(c);
    read_outs(c);
    if (c->outs[0] && n == 1) {
        run_result(c, 0, NULL);
        lua_pushliteral(L, "out");
        lua_rawget(L, c->options);
        return 1;
    }
    for (int i = 0; i < n; i++)
        boxes[i] = lm_box_new(L, c->k.c);
    for (int i = 0; i < n; i++)
        run_result(c, i, boxes[i]);
    if (!c->outs[0]) return n;
    give_results(c, boxes);
    lua_pushliteral(L, "out");
    lua_rawget(L, c->options);
    int list = lua_gettop(L);
    for (int i = 0; i < n; i++)
        lua_rawgeti(L, list, i + 1);
    return n;
}

/* Within a function that is traced: what the function does becomes part of that. */
static int call_inside(lua_State *L) {
    int top = lua_gettop(L);
    lua_getiuservalue(L, 1, FUNCTION);
    lua_insert(L, 2);
    lua_call(L, top - 1, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

static fused *check_fused(lua_State *L, int idx) {
    fused *f = lua_touserdata(L, idx);
    if (f && lua_getmetatable(L, idx)) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &fused_key);
        bool same = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        if (same) return f;
    }
    return NULL;
}

static int fused_call(lua_State *L) {
    call c;
    lm_ctx *ctx = lm_enter(L);
    c.f = check_fused(L, 1);
    luaL_argexpected(L, c.f, 1, "fused function");
    if (lm_traced_any(L, ctx, lua_gettop(L))) return call_inside(L);
    lm_call_open(&c.k, L, ctx, c.f->name);
    c.options = c.numbers = 0;
    c.weak = c.few;
    c.folded = NULL;
    memset(c.outs, 0, sizeof c.outs);
    read_arguments(&c);
    find_trace(&c);
    return run(&c);
}

/* fuse(function, name, about [, parameters]): what can be called. With a number of parameters, the
** function depends on nothing of its arguments, and is traced here. */
static int new_fused(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    const char *name = luaL_checkstring(L, 2);
    int nparams = (int)luaL_optinteger(L, 4, -1);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (nparams > MOST_ARGUMENTS)
        return luaL_error(L, "%d parameters, at most %d can be", nparams, MOST_ARGUMENTS);
    lua_settop(L, 3);
    fused *f = lua_newuserdatauv(L, sizeof *f, NVALUES);
    memset(f, 0, sizeof *f);
    f->nparams = nparams;
    f->fixed = nparams >= 0;
    strncpy(f->name, name, sizeof f->name - 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 4, FUNCTION);
    lua_newtable(L);
    lua_setiuservalue(L, 4, TRACES);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, 4, ABOUT);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fused_key);
    lua_setmetatable(L, 4);
    if (f->fixed) {
        lua_insert(L, 1); /* where calls have it */
        lm_call k;
        lm_call_open(&k, L, c, f->name);
        trace *t = push_new_trace(&k, 0, nparams);
        lua_setiuservalue(L, 1, LAST);
        f->last = t;
        lua_settop(L, 1);
    }
    return 1;
}

/* fused_about(v): what the third argument of fuse was; nothing for what fuse did not make. */
static int about(lua_State *L) {
    if (!check_fused(L, 1)) return 0;
    lua_getiuservalue(L, 1, ABOUT);
    return 1;
}

/* fused_passes(v): how many results the last trace has made in one pass. */
static int passes(lua_State *L) {
    const fused *f = check_fused(L, 1);
    luaL_argexpected(L, f, 1, "fused function");
    lua_pushinteger(L, f->last ? f->last->p->passes : 0);
    return 1;
}

/* is_traced(v) */
static int is_traced(lua_State *L) {
    lua_pushboolean(L, test(L, 1) != NULL);
    return 1;
}

static void open_traced(lua_State *L, int meta, int methods) {
    static const char *const events[] = {"__add",  "__sub",  "__mul", "__div",  "__idiv",
                                         "__mod",  "__pow",  "__unm", "__band", "__bor",
                                         "__bxor", "__bnot", "__shl", "__shr",  NULL};
    static const luaL_Reg refused[] = {{"__eq", no_comparison},       {"__lt", no_comparison},
                                       {"__le", no_comparison},       {"__len", no_elements},
                                       {"__newindex", no_assignment}, {"__call", no_elements},
                                       {"__pairs", no_elements},      {"__concat", no_text},
                                       {"__tostring", traced_text},   {NULL, NULL}};
    lua_createtable(L, 0, 32);
    for (int i = 0; events[i]; i++) {
        lua_getfield(L, meta, events[i]);
        lua_setfield(L, -2, events[i]);
    }
    luaL_setfuncs(L, refused, 0);
    lua_pushvalue(L, methods);
    lua_pushcclosure(L, traced_index, 1);
    lua_setfield(L, -2, "__index");
    lm_set_string(L, "__name", "value of a fused function");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traced_key);
}

void lm_fused_open(lua_State *L, int meta, int methods) {
    open_traced(L, meta, methods);
    lua_createtable(L, 0, 8);
    lm_push_function(L, fused_call, 0);
    lua_setfield(L, -2, "__call");
    lm_set_string(L, "__name", "fused function");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &fused_key);
    lua_setfield(L, meta, "fused_meta");
    lm_push_function(L, new_fused, 0);
    lua_setfield(L, meta, "fuse");
    lua_pushcfunction(L, about);
    lua_setfield(L, meta, "fused_about");
    lua_pushcfunction(L, passes);
    lua_setfield(L, meta, "fused_passes");
    lua_pushcfunction(L, is_traced);
    lua_setfield(L, meta, "is_traced");
}
