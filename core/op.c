/* op.c -- the registry made of ops.def, signatures, and the call by name. Layer: core. */
#include "op.h"

#include <stdio.h>
#include <string.h>

#include "algebra.h"
#include "conv.h"
#include "create.h"
#include "order.h"
#include "pooling.h"
#include "resize.h"
#include "tensor.h"
#include "view.h"

#define RANGE(lo, hi) lo, hi
/* The tail is the domain (two numbers) and the ulp bound. */
#define ELEMENTWISE(kind, name, dtypes, signature, formula, doc, ...)                              \
    {#name,   LM_ROW_##kind, LM_TAKES_##dtypes, LM_GIVES_TENSOR, LM_RESULT_SAME, signature,        \
     formula, doc,           __VA_ARGS__},
#define UNARY(name, dtypes, formula, domain, ulp, scalar, doc)                                     \
    ELEMENTWISE(UNARY, name, dtypes, "x", formula, doc, domain, ulp)
#define UNARY_P(name, dtypes, params, formula, domain, ulp, scalar, doc)                           \
    ELEMENTWISE(UNARY_P, name, dtypes, "x, " params, formula, doc, domain, ulp)
#define TEST(name, dtypes, formula, scalar, doc)                                                   \
    ELEMENTWISE(TEST, name, dtypes, "x", formula, doc, -9, 9, 0)
#define BINARY(name, dtypes, formula, domain, ulp, scalar, doc)                                    \
    ELEMENTWISE(BINARY, name, dtypes, "x:operand, y:operand", formula, doc, domain, ulp)
#define COMPARE(name, dtypes, formula, scalar, doc)                                                \
    ELEMENTWISE(COMPARE, name, dtypes, "x:operand, y:operand", formula, doc, -9, 9, 0)
#define TERNARY(name, dtypes, formula, scalar, doc)                                                \
    ELEMENTWISE(TERNARY, name, dtypes, "x:mask, y:operand, z:operand", formula, doc, -9, 9, 0)
#define REDUCE(name, dtypes, result, signature, formula, doc)                                      \
    {#name,                                                                                        \
     LM_ROW_REDUCE,                                                                                \
     LM_TAKES_##dtypes,                                                                            \
     LM_GIVES_TENSOR,                                                                              \
     LM_RESULT_##result,                                                                           \
     signature,                                                                                    \
     formula,                                                                                      \
     doc,                                                                                          \
     -9,                                                                                           \
     9,                                                                                            \
     0},
#define PLAIN(kind, name, gives, signature, doc)                                                   \
    {#name,                                                                                        \
     LM_ROW_##kind,                                                                                \
     LM_TAKES_NONE,                                                                                \
     LM_GIVES_##gives,                                                                             \
     LM_RESULT_SAME,                                                                               \
     signature,                                                                                    \
     "",                                                                                           \
     doc,                                                                                          \
     0,                                                                                            \
     0,                                                                                            \
     0},
#define OP(name, returns, signature, call, doc) PLAIN(OP, name, returns, signature, doc)
#define VIEW(name, returns, signature, call, doc) PLAIN(VIEW, name, returns, signature, doc)
#define MAKE(name, returns, signature, parameters, call, doc)                                      \
    PLAIN(MAKE, name, returns, signature, doc)

const lm_op_info lm_ops[LM_NOPS] = {
#include "ops.def"
};

/* ---- signatures ---- */

const char *const lm_type_names[LM_NTYPES] = {
    [LM_TYPE_OPERAND] = "operand",   [LM_TYPE_INDEX] = "index", [LM_TYPE_MASK] = "mask",
    [LM_TYPE_TENSORS] = "tensors",   [LM_TYPE_DIM] = "dim",     [LM_TYPE_NEWDIM] = "newdim",
    [LM_TYPE_DIMS] = "dims",         [LM_TYPE_INT] = "int",     [LM_TYPE_NUMBER] = "number",
    [LM_TYPE_POSITION] = "position", [LM_TYPE_BOOL] = "bool",   [LM_TYPE_SHAPE] = "shape",
    [LM_TYPE_LIST] = "list",         [LM_TYPE_SIZES] = "sizes", [LM_TYPE_DTYPE] = "dtype",
    [LM_TYPE_DEVICE] = "device",     [LM_TYPE_TEXT] = "text",   [LM_TYPE_PADDING] = "padding"};

#define TYPE_ENDS "?,} "

static lm_type type_named(const char *name, size_t length) {
    if (memchr(name, '|', length)) return LM_TYPE_CHOICE;
    for (int type = 0; type < LM_NTYPES; type++) {
        const char *known = lm_type_names[type];
        if (known && strlen(known) == length && memcmp(known, name, length) == 0)
            return (lm_type)type;
    }
    return LM_TYPE_TENSOR;
}

int lm_signature_parse(const char *s, lm_param *params) {
    int n = 0;
    bool option = false;
    while (*s && n < LM_MAX_PARAMS) {
        if (*s == '{') option = true;
        if (*s == '{' || *s == '}' || *s == ',' || *s == ' ') {
            s++;
            continue;
        }
        lm_param *p = &params[n++];
        memset(p, 0, sizeof *p);
        size_t length = strcspn(s, ":?,} ");
        memcpy(p->name, s, length < sizeof p->name ? length : sizeof p->name - 1);
        s += length;
        if (*s == ':') {
            length = strcspn(++s, TYPE_ENDS);
            p->type = type_named(s, length);
            p->choices = s;
            s += length;
        }
        p->option = option;
        p->optional = option || *s == '?';
        if (*s == '?') s++;
    }
    return n;
}

int lm_param_choice(const lm_param *p, const char *word) {
    const char *s = p->choices;
    for (int i = 0;; i++) {
        size_t length = strcspn(s, "|" TYPE_ENDS);
        if (strlen(word) == length && memcmp(s, word, length) == 0) return i;
        if (s[length] != '|') return -1;
        s += length + 1;
    }
}

const char *lm_param_choices(const lm_param *p, char *buffer, size_t size) {
    const char *s = p->choices;
    size_t n = 0;
    for (bool first = true;; first = false) {
        size_t length = strcspn(s, "|" TYPE_ENDS);
        bool last = s[length] != '|';
        int wrote = snprintf(buffer + n, size - n, "%s\"%.*s\"",
                             first  ? ""
                             : last ? " or "
                                    : ", ",
                             (int)length, s);
        n += wrote > 0 ? (size_t)wrote : 0;
        if (last || n >= size) return buffer;
        s += length + 1;
    }
}

/* ---- calls ---- */

typedef luma_status call_fn(luma_state *S, luma_tensor *outs, luma_list *list, bool *value,
                            const lm_arg *args);

#define A(k) args[k]
#define T(k) args[k].tensor
#define TENSORS(k) args[k].tensors
#define N(k) args[k].n
#define LIST(k) args[k].list
#define I(k) args[k].i
#define I_OR(k, otherwise) (args[k].given ? args[k].i : (otherwise))
#define BOOL(k) (args[k].given && args[k].i != 0)
#define BOOL_OR(k, otherwise) (args[k].given ? args[k].i != 0 : (otherwise))
#define GIVEN(k) args[k].given
#define TEXT(k) args[k].text
#define DTYPE_OR(k, otherwise) (args[k].given ? (luma_dtype)args[k].i : (otherwise))
#define DTYPE(k) DTYPE_OR(k, LUMA_NDTYPES)
#define WHOLE(value) ((luma_scalar){.kind = LUMA_IS_INT, .u.i = (value)})
#define NUM_OR(k, otherwise) (args[k].given ? as_double(args[k].number) : (otherwise))
#define SCALAR_PLACE(k) (args[k].given ? &args[k].number : NULL)
#define SCALAR_OR(k, otherwise)                                                                    \
    (args[k].given ? args[k].number : (luma_scalar){.kind = LUMA_IS_INT, .u.i = (otherwise)})

static inline double as_double(luma_scalar s) {
    return s.kind == LUMA_IS_FLOAT ? s.u.d : (double)s.u.i;
}

#define CALL(name, expression)                                                                     \
    static luma_status call_##name(luma_state *S, luma_tensor *outs, luma_list *list, bool *value, \
                                   const lm_arg *args) {                                           \
        luma_tensor *out = outs;                                                                   \
        (void)S, (void)args, (void)out, (void)outs, (void)list, (void)value;                       \
        return expression;                                                                         \
    }
#define OP(name, returns, signature, call, doc) CALL(name, call)
#define VIEW(name, returns, signature, call, doc) CALL(name, call)
#define MAKE(name, returns, signature, parameters, call, doc) CALL(name, call)
#include "ops.def"

static call_fn *const calls[LM_NOPS] = {
#define OP(name, ...) [LM_OP_##name] = call_##name,
#define VIEW(name, ...) [LM_OP_##name] = call_##name,
#define MAKE(name, ...) [LM_OP_##name] = call_##name,
#include "ops.def"
};

static const char *const parameters_of[LM_NOPS] = {
#define MAKE(name, returns, signature, parameters, call, doc) [LM_OP_##name] = parameters,
#include "ops.def"
};

const char *lm_op_parameters(lm_op op) {
    return parameters_of[op] ? parameters_of[op] : lm_ops[op].signature;
}

static luma_status (*const reductions[LM_NOPS])(luma_state *, luma_tensor *, const luma_tensor *,
                                                int, const int64_t *, bool) = {
#define REDUCE(name, ...) [LM_OP_##name] = luma_##name,
#include "ops.def"
};

/* Parameters of a REDUCE row: x, dims or dim, options in the order of the signature. */
static luma_status call_reduce(luma_state *S, lm_op op, luma_tensor *out, const lm_arg *args) {
    const lm_arg *dims = &args[1];
    bool one = op == LM_OP_argmax || op == LM_OP_argmin;
    int n = one ? dims->given : dims->n;
    const int64_t *list = one ? &dims->i : dims->list;
    if (op == LM_OP_var || op == LM_OP_std) {
        double correction = NUM_OR(2, 1.0);
        return (op == LM_OP_var ? luma_var_correction : luma_std_correction)(S, out, T(0), n, list,
                                                                             BOOL(3), correction);
    }
    if (op == LM_OP_norm)
        return luma_norm_p(S, out, T(0), args[2].n, args[2].list, BOOL(3), NUM_OR(1, 2.0));
    return reductions[op](S, out, T(0), n, list, BOOL(2));
}

int lm_op_inputs(lm_op op) {
    switch (lm_ops[op].row) {
    case LM_ROW_UNARY:
    case LM_ROW_UNARY_P:
    case LM_ROW_TEST:
        return 1;
    case LM_ROW_BINARY:
    case LM_ROW_COMPARE:
        return 2;
    case LM_ROW_TERNARY:
        return 3;
    default:
        return 0;
    }
}

/* The tensors and number parameters of an elementwise row. */
static int split_args(lm_op op, const lm_arg *args, const luma_tensor *ins[3],
                      luma_scalar params[2]) {
    int nin = lm_op_inputs(op);
    for (int i = 0; i < nin; i++)
        ins[i] = args[i].tensor;
    if (lm_ops[op].row == LM_ROW_UNARY_P) {
        const char *comma = lm_ops[op].signature; /* of elu it has one number, and args no more */
        for (int i = 0; i < 2; i++) {
            comma = comma ? strchr(comma + 1, ',') : NULL;
            params[i] = comma && args[1 + i].given ? args[1 + i].number : (luma_scalar){0};
        }
    }
    return nin;
}

luma_status lm_op_call(luma_state *S, lm_op op, luma_tensor outs[LM_MAX_OUTS], int *nouts,
                       bool *value, const lm_arg *args) {
    const luma_tensor *ins[3];
    luma_scalar params[2];
    *nouts = 1;
    switch (lm_ops[op].row) {
    case LM_ROW_UNARY:
    case LM_ROW_UNARY_P:
    case LM_ROW_TEST:
    case LM_ROW_BINARY:
    case LM_ROW_COMPARE:
    case LM_ROW_TERNARY: {
        int nin = split_args(op, args, ins, params);
        return lm_map_call(S, op, outs, nin, ins, params);
    }
    case LM_ROW_REDUCE:
        return call_reduce(S, op, outs, args);
    case LM_ROW_OP:
    case LM_ROW_MAKE:
    case LM_ROW_VIEW: {
        luma_status status = calls[op](S, outs, NULL, value, args);
        if (lm_ops[op].gives == LM_GIVES_VALUE) *nouts = 0;
        if (lm_ops[op].gives == LM_GIVES_PAIR) *nouts = outs[1].storage ? 2 : 1;
        if (lm_ops[op].gives == LM_GIVES_TRIPLE)
            *nouts = outs[2].storage ? 3 : outs[1].storage ? 2 : 1;
        return status;
    }
    }
    return LUMA_OK;
}

luma_status lm_op_call_list(luma_state *S, lm_op op, luma_list *list, const lm_arg *args) {
    return calls[op](S, NULL, list, NULL, args);
}

lm_guard lm_op_guard(lm_op op) {
    switch (op) {
    case LM_OP_floor_div:
    case LM_OP_trunc_div:
    case LM_OP_remainder:
    case LM_OP_fmod:
        return LM_GUARD_ZERO;
    case LM_OP_pow:
    case LM_OP_lshift:
    case LM_OP_rshift:
        return LM_GUARD_NEGATIVE;
    default:
        return LM_GUARD_NONE;
    }
}

luma_status lm_guard_fail(luma_state *S, lm_op op, lm_guard guard, int ndim, const int64_t *place) {
    lm_text text;
    const char *at = ndim > 0 ? " at " : "";
    const char *where = ndim > 0 ? lm_place_text(S, &text, ndim, place) : "";
    if (guard == LM_GUARD_ZERO)
        return lm_fail(S, LUMA_ERR_ZERO, 2, "attempt to perform '%s'%s%s",
                       op == LM_OP_floor_div   ? "n//0"
                       : op == LM_OP_trunc_div ? "trunc_div(n, 0)"
                       : op == LM_OP_remainder ? "n%0"
                                               : "fmod(n, 0)",
                       at, where);
    return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%s%s%s",
                   op == LM_OP_pow ? "negative power of an integer" : "negative shift count", at,
                   where);
}

bool lm_op_has_inplace(lm_op op) {
    switch (lm_ops[op].row) {
    case LM_ROW_UNARY:
    case LM_ROW_UNARY_P:
    case LM_ROW_BINARY:
        return true;
    default:
        return lm_ops[op].gives == LM_GIVES_TWIN;
    }
}

luma_status lm_op_call_inplace(luma_state *S, lm_op op, luma_tensor *self, const lm_arg *args) {
    const luma_tensor *ins[3];
    luma_scalar params[2];
    if (lm_ops[op].row == LM_ROW_OP) return calls[op](S, self, NULL, NULL, args);
    int nin = split_args(op, args, ins, params);
    return lm_map_inplace(S, op, self, nin, ins, params);
}
