/* ops.c -- the rows of the registry as Lua functions and methods: one C function reads the
** arguments that a row's signature names, calls the row, and pushes what it gives. Layer:
** bindings. */
#include <string.h>

#include "binding.h"
#include "index.h"
#include "view.h"

/* What the function's own upvalue says: the row, and whether it writes into its first argument. */
#define INPLACE (1 << 16)

typedef struct {
    lm_call k;
    lm_op op;
    const lm_op_info *info;
    const lm_param *params;
    int nparams;
    int where[LM_MAX_PARAMS]; /* argument of each parameter; 0: absent */
    int options;              /* argument of the options table; 0: none */
    int tensors;              /* argument of a list of tensors; 0: none */
    int list;                 /* the parameter that it is */
    bool loose;               /* they stand as arguments, from that one on, without a list */
    luma_tensor *joined;      /* room for that list: */
    luma_tensor few[4];
    const luma_tensor *out[LM_MAX_OUTS];
    lm_arg args[LM_MAX_PARAMS];
    luma_tensor weak[LM_MAX_PARAMS];
    int nouts;
    bool value;
} call;

/* ---- reading arguments ---- */

/* Order of dims: the one shape-like parameter that holds dims. */
static bool holds_dims(const lm_param *p) {
    return p->type == LM_TYPE_DIMS || (p->type == LM_TYPE_SHAPE && strcmp(p->name, "dims") == 0);
}

/* The tensor whose device a list goes to: x, or the one behind a list that stands first; NULL: that is
** the default device. *size: what the values of the list are checked against; -1: the row knows. */
static const luma_tensor *mate_of(call *c, int arg, int64_t *size) {
    lm_call *k = &c->k;
    const luma_tensor *x = arg > 1 ? c->args[0].tensor : NULL;
    for (int i = 2; i <= k->top && !x; i++)
        x = lm_box_test(k->L, i);
    *size = -1;
    if (!x) return NULL;
    lm_check_live(k, arg > 1 ? 1 : 2, x);
    int64_t n = x->layout.ndim;
    if (arg == 1) {
        if (n > 0) *size = x->layout.shape[0];
        return x;
    }
    if (c->op == LM_OP_take) *size = luma_numel(x);
    if (c->op == LM_OP_take_along_dim) return x;
    for (int p = 1; p < c->nparams && n > 0; p++) {
        if (c->params[p].type != LM_TYPE_DIM) continue;
        int64_t d = c->args[p].i < 0 ? c->args[p].i + n : c->args[p].i;
        *size = d < 0 || d >= n ? INT64_MAX : x->layout.shape[d]; /* the row says what is wrong */
    }
    return x;
}

/* A list goes to a device, its values checked first: a device finds mistakes much later. */
static luma_tensor *upload_list(call *c, luma_tensor *list, int arg) {
    lm_call *k = &c->k;
    luma_state *S = k->c->S;
    int64_t size;
    const luma_tensor *x = mate_of(c, arg, &size);
    const char *device = x ? luma_device(x) : luma_default_device(S);
    if (strcmp(device, lm_cpu(S)->name) == 0) return list;
    luma_status status = size < 0 ? LUMA_OK : lm_index_check(S, arg, list, size);
    if (status != LUMA_OK) lm_raise(k, status);
    int idx = lua_gettop(k->L);
    luma_tensor *moved = lm_move_push(k, idx, idx, LUMA_INT64, device);
    luma_release(S, list); /* nobody else has it */
    return moved;
}

static void read_index(call *c, lm_arg *a, int arg, int idx) {
    lua_State *L = c->k.L;
    luma_tensor *x = lm_box_test(L, idx);
    if (!x) {
        if (!lua_istable(L, idx)) lm_bad_type(&c->k, arg, idx, "index tensor or list");
        lm_call_apart(&c->k);
        x = upload_list(c, lm_table_read(&c->k, arg, idx, LUMA_INT64), arg);
    }
    lm_check_live(&c->k, arg, x);
    a->tensor = x;
}

static void read_dims(call *c, lm_arg *a, int arg) {
    if (a->n == 0) return;
    int64_t *dims = lm_call_ints(&c->k, a->n);
    for (int i = 0; i < a->n; i++)
        dims[i] = lm_arg_dim(&c->k, arg, a->list[i]);
    a->list = dims;
}

static void read_word(call *c, int p, int arg, int idx) {
    lm_call *k = &c->k;
    lm_arg *a = &c->args[p];
    char words[128] = "text";
    bool choice = c->params[p].type == LM_TYPE_CHOICE;
    if (choice) lm_param_choices(&c->params[p], words, sizeof words);
    a->text = lm_arg_text(k, arg, idx, words);
    a->i = choice ? lm_param_choice(&c->params[p], a->text) : 0;
    if (a->i < 0) lm_bad(k, arg, "%s expected, got '%s'", words, lm_brief(k->L, a->text));
}

static void read_padding(call *c, lm_arg *a, int arg, int idx) {
    lm_call *k = &c->k;
    if (lua_type(k->L, idx) != LUA_TSTRING) {
        a->list = lm_arg_list(k, arg, idx, &a->n);
        return;
    }
    a->text = lm_arg_text(k, arg, idx, "text");
    if (strcmp(a->text, "same") != 0 && strcmp(a->text, "valid") != 0)
        lm_bad(k, arg, "\"same\", \"valid\", an integer or a list expected, got '%s'",
               lm_brief(k->L, a->text));
}

/* Parameter p from the value at idx, which belongs to argument arg. */
static void read_value(call *c, int p, int arg, int idx) {
    lm_call *k = &c->k;
    lm_arg *a = &c->args[p];
    a->given = true;
    switch (c->params[p].type) {
    case LM_TYPE_TENSOR:
    case LM_TYPE_MASK:
        a->tensor = lm_arg_tensor(k, arg, idx);
        break;
    case LM_TYPE_OPERAND:
        c->weak[p] = LUMA_NEW;
        a->tensor = lm_arg_operand(k, arg, idx, &c->weak[p]);
        break;
    case LM_TYPE_INDEX:
        read_index(c, a, arg, idx);
        break;
    case LM_TYPE_TENSORS:
        if (!lua_istable(k->L, idx)) lm_bad_type(k, arg, idx, "list of tensors");
        c->tensors = idx;
        c->list = p;
        break;
    case LM_TYPE_DIM:
    case LM_TYPE_NEWDIM:
        a->i = lm_arg_dim(k, arg, lm_arg_integer(k, arg, idx));
        break;
    case LM_TYPE_POSITION:
        a->i = lm_arg_integer(k, arg, idx);
        if (a->i == 0 && strcmp(c->params[p].name, "last") == 0)
            a->i = LM_BEFORE_FIRST;
        else
            a->i = lm_arg_position(k, arg, a->i);
        break;
    case LM_TYPE_INT:
        a->i = lm_arg_integer(k, arg, idx);
        break;
    case LM_TYPE_NUMBER:
        a->number = lm_arg_number(k, arg, idx);
        break;
    case LM_TYPE_BOOL:
        a->i = lm_arg_boolean(k, arg, idx);
        break;
    case LM_TYPE_DIMS:
    case LM_TYPE_SHAPE:
    case LM_TYPE_LIST:
    case LM_TYPE_SIZES:
        a->list = lm_arg_list(k, arg, idx, &a->n);
        if (holds_dims(&c->params[p])) read_dims(c, a, arg);
        break;
    case LM_TYPE_PADDING:
        read_padding(c, a, arg, idx);
        break;
    case LM_TYPE_CHOICE:
    case LM_TYPE_TEXT:
        read_word(c, p, arg, idx);
        break;
    case LM_TYPE_DTYPE: /* MAKE rows have functions of their own */
    case LM_TYPE_DEVICE:
        break;
    }
}

/* Rows that are others with an option: div{rounding = "floor"} is floor_div. */
typedef struct {
    lm_op op;
    const char *option, *words[2];
    lm_op to[2];
} turn;
static const turn turns[] = {
    {LM_OP_div, "rounding", {"floor", "trunc"}, {LM_OP_floor_div, LM_OP_trunc_div}},
    {LM_OP_gelu, "approximate", {"none", "tanh"}, {LM_OP_gelu, LM_OP_gelu_tanh}},
};
static const turn *turn_of(lm_op op) {
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (turns[i].op == op) return &turns[i];
    }
    return NULL;
}
/* Their option; round with decimals is round_decimals, which takes them. */
static const char *own_option(lm_op op) {
    const turn *t = turn_of(op);
    return t ? t->option : op == LM_OP_round ? "decimals" : NULL;
}

/* "sum(x, dims, {keepdim =})": how the operation is called. */
static const char *push_call(call *c) {
    lua_State *L = c->k.L;
    bool options = false;
    lua_pushfstring(L, "%s(%s", c->info->name, c->params[0].name);
    for (int p = 1; p < c->nparams; p++) {
        bool option = c->params[p].option;
        lua_pushfstring(L,
                        option && !options ? ", {%s ="
                        : option           ? ", %s ="
                                           : ", %s",
                        c->params[p].name);
        options = options || option;
        lua_concat(L, 2);
    }
    if (own_option(c->op))
        lua_pushfstring(L, ", {%s =})", own_option(c->op));
    else
        lua_pushstring(L, options ? "})" : ")");
    lua_concat(L, 2);
    return lua_tostring(L, -1);
}

static void too_many(call *c, int arg) {
    const char *option = own_option(c->op);
    for (int p = 0; p < c->nparams && !option; p++) {
        if (c->params[p].option) option = c->params[p].name;
    }
    int type = lua_type(c->k.L, arg);
    if (option && (type == LUA_TBOOLEAN || type == LUA_TSTRING))
        lm_bad(&c->k, arg, "options stand in a table, as in {%s = ...}", option);
    lm_bad(&c->k, arg, "no such argument: %s", push_call(c));
}

/* No other parameter follows but options. */
static bool is_last(const call *c, int p) {
    return p == c->nparams - 1 || c->params[p + 1].option;
}

/* All tensors from argument arg on; returns the argument behind. */
static int gather_tensors(call *c, int p, int arg) {
    int next = arg;
    while (next <= c->k.top && lm_box_test(c->k.L, next))
        next++;
    c->args[p].given = c->loose = true;
    c->args[p].n = next - arg;
    c->tensors = arg;
    c->list = p;
    return next;
}

/* Positional arguments in order; a trailing table that no list-like parameter needs holds options.
 */
static void read_positional(call *c) {
    lua_State *L = c->k.L;
    int arg = 1;
    for (int p = 0; p < c->nparams && !c->params[p].option; p++) {
        const lm_param *param = &c->params[p];
        if (arg == c->k.top && param->optional && lm_is_options(L, arg)) c->options = arg;
        if (c->options || (lua_isnoneornil(L, arg) && param->optional)) {
            arg += c->options ? 0 : 1;
            continue;
        }
        c->where[p] = arg;
        if (param->type == LM_TYPE_TENSORS && lm_box_test(L, arg) && is_last(c, p)) {
            arg = gather_tensors(c, p, arg);
        } else if (param->type == LM_TYPE_SHAPE) {
            c->args[p].given = true;
            c->args[p].list = lm_arg_shape(&c->k, arg, &c->args[p].n, &arg);
            if (holds_dims(param)) read_dims(c, &c->args[p], c->where[p]);
        } else {
            read_value(c, p, arg, arg);
            arg++;
        }
    }
    if (!c->options && arg <= c->k.top && lm_is_options(L, arg)) c->options = arg++;
    int after = c->options ? c->options + 1 : arg;
    if (after <= c->k.top && !lua_isnil(L, after)) too_many(c, after);
}

static void read_out(call *c) {
    lm_call *k = &c->k;
    lua_State *L = k->L;
    int arg = c->options;
    if (!lm_get_option(k, arg, "out")) return;
    int idx = lua_gettop(L);
    if (c->info->gives == LM_GIVES_PAIR && lua_istable(L, idx)) {
        for (int i = 0; i < 2; i++) {
            lua_rawgeti(L, idx, i + 1);
            c->out[i] = lm_arg_tensor(k, arg, lua_gettop(L));
        }
        return;
    }
    c->out[0] = lm_arg_tensor(k, arg, idx);
}

/* Whether an option's name is that of a parameter that stands before the options: clamp's min, or
** what others call a dim. */
static bool names_parameter(const lm_param *p, const char *key) {
    if (p->option) return false;
    if (strcmp(key, p->name) == 0) return true;
    if (p->type != LM_TYPE_DIM && !holds_dims(p)) return false;
    return strcmp(key, "dim") == 0 || strcmp(key, "dims") == 0 || strcmp(key, "axis") == 0;
}

/* An error if one of the options is of that kind. */
static void refuse_parameters(call *c) {
    lua_State *L = c->k.L;
    for (lua_pushnil(L); lua_next(L, c->options); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        int p = 1;
        while (p < c->nparams && !names_parameter(&c->params[p], key))
            p++;
        if (p >= c->nparams) continue;
        lm_bad(&c->k, c->options, "'%s' stands before the options: %s", key, push_call(c));
    }
}

static void read_options(call *c, bool inplace) {
    lm_call *k = &c->k;
    const char *names[LM_MAX_PARAMS + 2];
    int n = 0;
    bool out = !inplace && c->info->gives != LM_GIVES_VALUE && c->info->gives != LM_GIVES_LIST &&
               c->info->gives != LM_GIVES_TRIPLE;
    if (!c->options) return;
    for (int p = 0; p < c->nparams; p++) {
        if (c->params[p].option) names[n++] = c->params[p].name;
    }
    if (out) names[n++] = "out";
    names[n] = NULL;
    refuse_parameters(c);
    lm_check_options(k, c->options, c->options, names);
    for (int p = 0; p < c->nparams; p++) {
        if (c->params[p].option && lm_get_option(k, c->options, c->params[p].name))
            read_value(c, p, c->options, lua_gettop(k->L));
    }
    if (out) read_out(c);
    k->option = NULL;
}

/* ---- calling ---- */

/* Nothing of Lua runs between this and the call: what it finds stays. */
static void check_live(call *c) {
    lm_call *k = &c->k;
    for (int p = 0; p < c->nparams; p++) {
        int arg = c->params[p].option ? c->options : c->where[p];
        if (c->args[p].tensor) lm_check_live(k, arg, c->args[p].tensor);
    }
    for (int i = 0; i < 2; i++) {
        if (c->out[i]) lm_check_live(k, c->options, c->out[i]);
    }
    if (!c->tensors) return;
    for (int i = 0; i < c->args[c->list].n; i++) {
        if (!c->loose) lua_rawgeti(k->L, c->tensors, i + 1);
        const int idx = c->loose ? c->tensors + i : -1;
        const luma_tensor *x = lm_box_test(k->L, idx);
        if (!x)
            lm_bad(k, c->tensors, "[%d]: tensor expected, got %s", i + 1, luaL_typename(k->L, idx));
        if (!x->storage && c->loose) lm_bad(k, c->tensors + i, "the tensor was released");
        if (!x->storage) lm_bad(k, c->tensors, "[%d]: the tensor was released", i + 1);
        c->joined[i] = *x;
        if (!c->loose) lua_pop(k->L, 1);
    }
}

static void make_room(call *c) {
    if (!c->tensors) return;
    lua_Unsigned n = c->loose ? (lua_Unsigned)c->args[c->list].n : lua_rawlen(c->k.L, c->tensors);
    if (n > (1u << 20)) lm_bad(&c->k, c->tensors, "the list is too long");
    c->joined = c->few;
    if (n > sizeof c->few / sizeof *c->few)
        c->joined = lua_newuserdatauv(c->k.L, (size_t)n * sizeof *c->joined, 0);
    c->args[c->list].n = (int)n;
    c->args[c->list].tensors = c->joined;
}

/* Raises the failure in S, whose argument is a position in the signature. */
LM_NORETURN static void raise_failure(call *c, luma_status status) {
    luma_state *S = c->k.c->S;
    int p = S->argument - 1;
    if (p >= 0 && p < c->nparams && c->params[p].option && c->args[p].given) {
        c->k.option = c->params[p].name;
        lm_bad(&c->k, c->options, "%s", S->message);
    }
    /* tensors of a last list count on: as arguments where they are some */
    if (c->tensors && p > c->list && is_last(c, c->list))
        S->argument = c->loose ? c->where[c->list] + p - c->list : c->where[c->list];
    else if (p >= 0 && p < c->nparams && c->where[p])
        S->argument = c->where[p];
    lm_raise(&c->k, status);
}

static int most_results(const lm_op_info *info) {
    return info->gives == LM_GIVES_TRIPLE ? 3 : info->gives == LM_GIVES_PAIR ? 2 : 1;
}

/* Boxes come first; the row then computes into them. */
static int push_tensors(call *c) {
    lm_call *k = &c->k;
    lua_State *L = k->L;
    luma_tensor *boxes[LM_MAX_OUTS] = {NULL};
    luma_status status;
    int most = most_results(c->info), tried = 0;
    make_room(c);
    for (int i = 0; i < most; i++)
        if (!c->out[i]) boxes[i] = lm_box_new(L, k->c);
    do {
        luma_tensor outs[LM_MAX_OUTS];
        check_live(c);
        for (int i = 0; i < most; i++) {
            outs[i].storage = NULL; /* as LUMA_NEW; the rest is never looked at */
            outs[i].number.kind = LUMA_NOT_A_NUMBER;
            if (c->out[i]) outs[i] = *c->out[i];
        }
        status = lm_op_call(k->c->S, c->op, outs, &c->nouts, &c->value, c->args);
        for (int i = 0; i < most && status == LUMA_OK; i++)
            if (boxes[i]) *boxes[i] = outs[i];
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status != LUMA_OK) raise_failure(c, status);
    if (c->out[0]) return c->nouts;
    int given = most;
    for (int i = most - 1; i > 0; i--) { /* what was not asked for */
        if (boxes[i]->storage) continue;
        lua_remove(L, i - given);
        given--;
    }
    return given;
}

static int push_value(call *c) {
    luma_status status;
    int tried = 0;
    do {
        check_live(c);
        status = lm_op_call(c->k.c->S, c->op, NULL, &c->nouts, &c->value, c->args);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(c->k.L, c->k.c, &tried));
    if (status != LUMA_OK) raise_failure(c, status);
    lua_pushboolean(c->k.L, c->value);
    return 1;
}

/* The list that a row made is held by a userdata until each tensor has its box. */
static int list_close(lua_State *L) {
    lm_ctx *c = lua_touserdata(L, LM_UP_CTX);
    luma_list *list = lua_touserdata(L, 1);
    if (c->S) luma_close_list(c->S, list);
    return 0;
}

static int push_list(call *c) {
    lua_State *L = c->k.L;
    luma_state *S = c->k.c->S;
    luma_status status;
    int tried = 0;
    luma_list *list = lua_newuserdatauv(L, sizeof *list, 0);
    *list = (luma_list){0, NULL};
    lua_createtable(L, 0, 1);
    lm_push_function(L, list_close, 0);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    do {
        check_live(c);
        status = lm_op_call_list(S, c->op, list, c->args);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c->k.c, &tried));
    if (status != LUMA_OK) raise_failure(c, status);
    lua_createtable(L, list->n, 0);
    for (int i = 0; i < list->n; i++) {
        luma_tensor *t = lm_box_new(L, c->k.c);
        *t = list->items[i];
        list->items[i] = LUMA_NEW;
        lua_rawseti(L, -2, i + 1);
    }
    luma_close_list(S, list);
    return 1;
}

/* May overwrite what a second attempt would read: memory limits are lifted, so that only a device
** without memory makes it fail. */
static int run_inplace(call *c) {
    lm_call *k = &c->k;
    luma_tensor *self = lm_arg_tensor(k, 1, 1);
    luma_status status;
    int tried = 1;
    make_room(c);
    k->c->S->lifted = true;
    do {
        check_live(c);
        status = lm_op_call_inplace(k->c->S, c->op, self, c->args);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) raise_failure(c, status);
    lua_settop(k->L, 1);
    return 1;
}

static void push_out(call *c) {
    lua_State *L = c->k.L;
    lua_pushliteral(L, "out");
    lua_rawget(L, c->options);
    if (c->out[1]) {
        int pair = lua_gettop(L);
        lua_rawgeti(L, pair, 1);
        lua_rawgeti(L, pair, 2);
    } else if (c->nouts == 2) {
        lua_insert(L, -2); /* before the positions, for which no tensor was given */
    }
}

/* ---- rows whose Lua form differs from the registry's ---- */

/* Whether options are given that have it; its value is then on the stack. */
static bool has_option(call *c, const char *name) {
    return lua_istable(c->k.L, c->k.top) && lm_get_option(&c->k, c->k.top, name);
}

static void choose_row(call *c) {
    lua_State *L = c->k.L;
    int idx = c->k.top;
    const turn *t = turn_of(c->op);
    if (t && has_option(c, t->option)) {
        const char *word = lm_arg_text(&c->k, idx, lua_gettop(L), "text");
        int k = 0;
        while (k < 2 && strcmp(word, t->words[k]) != 0)
            k++;
        if (k == 2) lm_bad(&c->k, idx, "\"%s\" or \"%s\" expected", t->words[0], t->words[1]);
        c->op = t->to[k];
        /* a copy of the options without it: the row does not know it */
        lua_newtable(L);
        for (lua_pushnil(L); lua_next(L, idx);) {
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, -4);
        }
        lua_pushnil(L);
        lua_setfield(L, -2, t->option);
        lua_replace(L, idx);
        lua_settop(L, idx);
    } else if (c->op == LM_OP_round && has_option(c, "decimals")) {
        c->op = LM_OP_round_decimals;
        lua_settop(L, idx);
    }
    c->k.option = NULL;
}

/* tensordot takes {dims of a, dims of b} too. */
static void split_dims(call *c) {
    lua_State *L = c->k.L;
    if (!lua_istable(L, 3)) return;
    lua_rawgeti(L, 3, 1);
    lua_rawgeti(L, 3, 2);
    if (!lua_istable(L, -1) || !lua_istable(L, -2) || lua_rawlen(L, 3) != 2) {
        lua_pop(L, 2);
        return;
    }
    lua_insert(L, 4);
    lua_replace(L, 3);
    c->k.top++;
}

static void check_special(call *c) {
    lua_State *L = c->k.L;
    if ((c->op == LM_OP_max || c->op == LM_OP_min) && lm_box_test(L, 2))
        lm_bad(&c->k, 2, "a dim expected, got a tensor: '%s' takes two tensors",
               c->op == LM_OP_max ? "maximum" : "minimum");
    choose_row(c);
    if (c->op == LM_OP_tensordot) split_dims(c);
    if (c->op == LM_OP_norm && lua_type(L, 2) == LUA_TSTRING) {
        const char *word = lm_arg_text(&c->k, 2, 2, "text");
        if (strcmp(word, "fro") != 0)
            lm_bad(&c->k, 2, "a number or \"fro\" (2) expected, got '%s'", lm_brief(L, word));
        lua_pushinteger(L, 2);
        lua_replace(L, 2);
    }
}

/* all and any without dims are booleans. */
static bool gives_boolean(const call *c) {
    if (c->op != LM_OP_all && c->op != LM_OP_any) return false;
    return c->args[1].n == 0 && !c->args[2].given && !c->out[0];
}

static int push_boolean_of(call *c) {
    luma_scalar v = {0};
    push_tensors(c);
    const luma_tensor *all = lm_box_test(c->k.L, -1);
    luma_status status = LM_UNLIMITED(&c->k, luma_item(c->k.c->S, all, &v));
    if (status != LUMA_OK) lm_raise(&c->k, status);
    lua_pushboolean(c->k.L, v.u.i != 0);
    return 1;
}

/* ---- the function ---- */

static int call_row(lua_State *L, lm_ctx *ctx, lm_op op, const char *name, bool inplace) {
    call c;
    c.op = op;
    lm_call_open(&c.k, L, ctx, name);
    check_special(&c);
    if (lm_traced_any(L, ctx, c.k.top)) return lm_traced_row(L, ctx, c.op, name, inplace);
    c.info = &lm_ops[c.op];
    c.params = lm_ctx_params(ctx, c.op, &c.nparams);
    c.options = c.tensors = c.nouts = 0;
    c.loose = false;
    memset(c.out, 0, sizeof c.out);
    memset(c.where, 0, sizeof c.where);
    memset(c.args, 0, (size_t)c.nparams * sizeof *c.args);
    read_positional(&c);
    read_options(&c, inplace);
    if (inplace) return run_inplace(&c);
    if (c.info->gives == LM_GIVES_VALUE) return push_value(&c);
    if (c.info->gives == LM_GIVES_LIST) return push_list(&c);
    if (gives_boolean(&c)) return push_boolean_of(&c);
    if (op == LM_OP_contiguous && !c.out[0] && luma_is_contiguous(c.args[0].tensor)) {
        ctx->S->copies.shared++;
        lua_settop(L, 1);
        return 1;
    }
    int n = push_tensors(&c);
    if (c.out[0]) push_out(&c);
    return n;
}

static int op_function(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    int own = (int)lua_tointeger(L, LM_UP_OWN);
    lm_op op = (lm_op)(own & ~INPLACE);
    int nin = lm_ops[op].row == LM_ROW_UNARY_P ? 0 : lm_op_inputs(op);
    if (own & INPLACE) return call_row(L, c, op, lua_tostring(L, LM_UP_OWN2), true);
    if (nin && lua_gettop(L) == nin && !lua_istable(L, nin)) return lm_map_push(L, c, op, nin);
    return call_row(L, c, op, lm_ops[op].name, false);
}

/* ---- operations of scripts: luma.define ---- */

#define MOST_SIGNATURE 200
typedef struct {
    lm_op_info info;
    int nparams;
    lm_param params[LM_MAX_PARAMS];
    char name[32], signature[MOST_SIGNATURE + 1];
} defined;

/* The arguments are read as those of a row, for the errors alone. */
static void check_defined(lua_State *L, lm_ctx *ctx, const defined *d) {
    call c;
    lm_call_open(&c.k, L, ctx, d->name);
    c.op = LM_NOPS;
    c.info = &d->info;
    c.params = d->params;
    c.nparams = d->nparams;
    c.options = c.tensors = c.nouts = 0;
    memset(c.out, 0, sizeof c.out);
    memset(c.where, 0, sizeof c.where);
    memset(c.args, 0, (size_t)c.nparams * sizeof *c.args);
    read_positional(&c);
    read_options(&c, false);
}

static int defined_return(lua_State *L, int status, lua_KContext ctx) {
    (void)status;
    (void)ctx;
    return lua_gettop(L);
}

static int defined_function(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    const defined *d = lua_touserdata(L, LM_UP_OWN2);
    int n = lua_gettop(L);
    /* values of a fused function are no tensors yet: what is done to them will check them */
    if (d->nparams >= 0 && !lm_traced_any(L, c, n)) check_defined(L, c, d);
    lua_settop(L, n);
    lua_pushvalue(L, LM_UP_OWN);
    lua_insert(L, 1);
    lua_callk(L, n, LUA_MULTRET, 0, defined_return);
    return defined_return(L, LUA_OK, 0);
}

/* define(name, forward [, signature]): the function, which checks its arguments and calls forward.
** The signature is known to be one. */
static int define(lua_State *L) {
    const char *name = luaL_checkstring(L, 1), *signature = luaL_optstring(L, 3, NULL);
    lua_settop(L, 3);
    defined *d = lua_newuserdatauv(L, sizeof *d, 0);
    memset(d, 0, sizeof *d);
    strncpy(d->name, name, sizeof d->name - 1);
    d->nparams = -1;
    if (signature) {
        strncpy(d->signature, signature, MOST_SIGNATURE);
        d->nparams = lm_signature_parse(d->signature, d->params);
    }
    d->info = (lm_op_info){
        .name = d->name, .row = LM_ROW_OP, .gives = LM_GIVES_VALUE, .signature = d->signature};
    lua_pushvalue(L, 2);
    lua_insert(L, -2);
    lm_push_function(L, defined_function, 2);
    return 1;
}

/* ---- the short way for elementwise rows ---- */

/* The arguments of an elementwise row; errors come from the long way. */
static bool read_operands(lua_State *L, int nin, const luma_tensor **ins, luma_tensor *weak) {
    bool any = false;
    for (int i = 0; i < nin; i++) {
        luma_tensor *x = lm_box_test(L, i + 1);
        if (x) {
            if (!x->storage) return false;
            ins[i] = x;
            any = true;
        } else if (lm_is_scalar(L, i + 1)) {
            weak[i].storage = NULL;
            weak[i].number = lm_to_scalar(L, i + 1);
            ins[i] = &weak[i];
        } else {
            return false;
        }
    }
    return any;
}

static luma_status map(lua_State *L, lm_ctx *c, lm_op op, int nin, luma_tensor *out) {
    const luma_tensor *ins[3];
    luma_tensor weak[3];
    if (read_operands(L, nin, ins, weak)) return lm_map_call(c->S, op, out, nin, ins, NULL);
    lm_call k;
    lm_call_open(&k, L, c, lm_ops[op].name);
    for (int i = 0; i < nin; i++)
        lm_arg_operand(&k, i + 1, i + 1, &weak[i]);
    lm_bad_type(&k, 1, 1, "tensor");
}

int lm_map_push(lua_State *L, lm_ctx *c, lm_op op, int nin) {
    int tried = 0;
    luma_status status;
    if (lm_traced_any(L, c, nin)) {
        lua_settop(L, nin); /* operators may have more */
        return lm_traced_row(L, c, op, lm_ops[op].name, false);
    }
    luma_tensor *out = lm_box_new(L, c);
    do {
        status = map(L, c, op, nin, out);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status == LUMA_OK) return 1;
    lm_call k;
    lm_call_open(&k, L, c, lm_ops[op].name);
    lm_raise(&k, status);
}

/* ---- registration ---- */

/* Under name in both tables. */
static void add(lua_State *L, int module, int methods, const char *name, int own) {
    lua_pushinteger(L, own);
    lua_pushstring(L, name);
    lm_push_function(L, op_function, 2);
    lua_pushvalue(L, -1);
    lua_setfield(L, module, name);
    int n;
    const lm_param *first = lm_ctx_params(lm_ctx_find(L), own & ~INPLACE, &n);
    if (n > 0 && first->type == LM_TYPE_TEXT) /* no method: x would be the text */
        lua_pop(L, 1);
    else
        lua_setfield(L, methods, name);
}

void lm_define_open(lua_State *L, int meta) {
    lm_push_function(L, define, 0);
    lua_setfield(L, meta, "define");
    lua_createtable(L, 0, 4); /* what there is room for */
    lm_set_integer(L, "name", sizeof((defined *)0)->name - 1);
    lm_set_integer(L, "signature", MOST_SIGNATURE);
    lm_set_integer(L, "parameters", LM_MAX_PARAMS);
    lm_set_integer(L, "parameter", sizeof((lm_param *)0)->name - 1);
    lua_setfield(L, meta, "room");
}

void lm_ops_open(lua_State *L, int module, int methods) {
    for (int op = 0; op < LM_NOPS; op++) {
        if (lm_ops[op].row == LM_ROW_MAKE) continue;
        add(L, module, methods, lm_ops[op].name, op);
        if (!lm_op_has_inplace((lm_op)op)) continue;
        const char *twin = lua_pushfstring(L, "%s_", lm_ops[op].name);
        add(L, module, methods, twin, op | INPLACE);
        lua_pop(L, 1);
    }
}
