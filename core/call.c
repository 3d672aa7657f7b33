/* call.c -- operations by name for C programs: luma_call reads arguments by the signature of a row.
** Layer: core. */
#include <string.h>

#include "op.h"
#include "tensor.h"

/* What one call holds. Weak numbers become tensors that own nothing. */
typedef struct {
    luma_state *S;
    const lm_op_info *info;
    const char *signature;
    int nparams;
    lm_param params[LM_MAX_PARAMS];
    lm_arg args[LM_MAX_PARAMS];
    luma_tensor weak[LM_MAX_PARAMS];
} call;

bool luma_describe(int i, luma_op *out) {
    if (i < 0 || i >= LM_NOPS) return false;
    const lm_op_info *info = &lm_ops[i];
    *out = (luma_op){.name = info->name,
                     .signature = lm_op_parameters((lm_op)i),
                     .formula = info->formula,
                     .doc = info->doc,
                     .callable = lm_op_parameters((lm_op)i)[0] != '\0',
                     .in_place = info->row != LM_ROW_MAKE && lm_op_has_inplace((lm_op)i)};
    return true;
}

/* The row called name, or, with *in_place, name without a final underscore. */
static luma_status find(luma_state *S, const char *name, lm_op *op, bool *in_place) {
    size_t length = name ? strlen(name) : 0;
    *in_place = length > 1 && name[length - 1] == '_';
    if (*in_place) length--;
    for (int i = 0; length > 0 && i < LM_NOPS; i++) {
        if (strncmp(lm_ops[i].name, name, length) != 0 || lm_ops[i].name[length] != '\0') continue;
        *op = (lm_op)i;
        if (lm_op_parameters(*op)[0] == '\0')
            return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s is not called by name", lm_ops[i].name);
        if (*in_place && !lm_op_has_inplace(*op))
            return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s has no in-place form", lm_ops[i].name);
        return LUMA_OK;
    }
    return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "no operation '%.60s'", name ? name : "(null)");
}

/* ---- reading arguments ---- */

static luma_status bad(call *c, int p, const char *expected, const luma_arg *a) {
    static const char *const kinds[] = {"nothing",  "a tensor", "tensors",
                                        "a number", "a list",   "a text"};
    return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: %s expected, got %s", c->params[p].name,
                   expected, (unsigned)a->kind <= LUMA_ARG_TEXT ? kinds[a->kind] : "rubbish");
}

static bool is_live(const luma_tensor *x) {
    return x && x->storage;
}

static luma_status read_tensors(call *c, int p, const luma_arg *a) {
    if (a->kind != LUMA_ARG_TENSORS) return bad(c, p, "tensors", a);
    if (a->n < 0 || (a->n > 0 && !a->tensors))
        return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: %d tensors", c->params[p].name, a->n);
    for (int i = 0; i < a->n; i++) {
        if (!is_live(&a->tensors[i]))
            return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: number %lld is no live tensor",
                           c->params[p].name, (long long)lm_pos(c->S, i));
    }
    c->args[p].n = a->n;
    c->args[p].tensors = a->tensors;
    return LUMA_OK;
}

static luma_status read_operand(call *c, int p, const luma_arg *a) {
    bool weak = c->params[p].type == LM_TYPE_OPERAND;
    const char *expected = weak ? "a tensor or a number" : "a tensor";
    if (weak && a->kind == LUMA_ARG_NUMBER) {
        c->weak[p] = (luma_tensor){.number = a->number};
        c->args[p].tensor = &c->weak[p];
        return LUMA_OK;
    }
    if (a->kind != LUMA_ARG_TENSOR) return bad(c, p, expected, a);
    if (!is_live(a->tensors) && !(weak && a->tensors && lm_is_number(a->tensors)))
        return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: a live tensor expected",
                       c->params[p].name);
    c->args[p].tensor = a->tensors;
    return LUMA_OK;
}

/* One integer stands for a list of one. */
static luma_status read_list(call *c, int p, const luma_arg *a) {
    lm_arg *out = &c->args[p];
    if (a->kind == LUMA_ARG_NUMBER && a->number.kind == LUMA_IS_INT) {
        out->i = a->number.u.i;
        out->n = 1;
        out->list = &out->i;
        return LUMA_OK;
    }
    if (a->kind != LUMA_ARG_LIST) return bad(c, p, "a list of integers", a);
    if (a->n < 0 || (a->n > 0 && !a->list))
        return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: %d integers", c->params[p].name, a->n);
    out->n = a->n;
    out->list = a->list;
    return LUMA_OK;
}

static luma_status read_text(call *c, int p, const luma_arg *a) {
    luma_dtype dtype;
    if (a->kind != LUMA_ARG_TEXT || !a->text) return bad(c, p, "a text", a);
    c->args[p].text = a->text;
    if (c->params[p].type == LM_TYPE_DEVICE) return LUMA_OK;
    if (!lm_dtype_parse(a->text, strlen(a->text), &dtype))
        return lm_fail(c->S, LUMA_ERR_DTYPE, p + 1, "no dtype '%.40s'", a->text);
    c->args[p].i = dtype;
    return LUMA_OK;
}

/* A text that is no name of a dtype or device. */
static luma_status read_word(call *c, int p, const luma_arg *a) {
    const lm_param *param = &c->params[p];
    char words[128] = "a text";
    int choice = 0;
    if (param->type == LM_TYPE_CHOICE) lm_param_choices(param, words, sizeof words);
    if (a->kind != LUMA_ARG_TEXT || !a->text) return bad(c, p, words, a);
    if (param->type == LM_TYPE_CHOICE) choice = lm_param_choice(param, a->text);
    if (param->type == LM_TYPE_PADDING) {
        if (strcmp(a->text, "same") != 0 && strcmp(a->text, "valid") != 0) choice = -1;
        memcpy(words, "\"same\" or \"valid\"", sizeof "\"same\" or \"valid\"");
    }
    if (choice < 0)
        return lm_fail(c->S, LUMA_ERR_ARGUMENT, p + 1, "%s: %s expected, got '%.40s'", param->name,
                       words, a->text);
    c->args[p].i = choice;
    c->args[p].text = a->text;
    return LUMA_OK;
}

static luma_status read_arg(call *c, int p, const luma_arg *a) {
    lm_arg *out = &c->args[p];
    bool number = a->kind == LUMA_ARG_NUMBER;
    out->given = true;
    switch (c->params[p].type) {
    case LM_TYPE_TENSOR:
    case LM_TYPE_MASK:
    case LM_TYPE_INDEX:
    case LM_TYPE_OPERAND:
        return read_operand(c, p, a);
    case LM_TYPE_TENSORS:
        return read_tensors(c, p, a);
    case LM_TYPE_DIM:
    case LM_TYPE_NEWDIM:
    case LM_TYPE_POSITION:
    case LM_TYPE_INT:
        if (!number || a->number.kind != LUMA_IS_INT) return bad(c, p, "an integer", a);
        out->i = a->number.u.i;
        return LUMA_OK;
    case LM_TYPE_BOOL:
        if (!number || a->number.kind == LUMA_IS_FLOAT) return bad(c, p, "a boolean", a);
        out->i = a->number.u.i != 0;
        return LUMA_OK;
    case LM_TYPE_NUMBER:
        if (!number || a->number.kind == LUMA_NOT_A_NUMBER) return bad(c, p, "a number", a);
        out->number = a->number;
        return LUMA_OK;
    case LM_TYPE_DIMS:
    case LM_TYPE_SHAPE:
    case LM_TYPE_LIST:
    case LM_TYPE_SIZES:
        return read_list(c, p, a);
    case LM_TYPE_PADDING:
        if (a->kind != LUMA_ARG_TEXT) return read_list(c, p, a);
        return read_word(c, p, a);
    case LM_TYPE_CHOICE:
    case LM_TYPE_TEXT:
        return read_word(c, p, a);
    case LM_TYPE_DTYPE:
    case LM_TYPE_DEVICE:
        return read_text(c, p, a);
    }
    return LUMA_OK;
}

static int param_named(const call *c, const char *name) {
    int p = 0;
    while (p < c->nparams && strcmp(c->params[p].name, name) != 0)
        p++;
    return p;
}

static luma_status read_args(call *c, int nargs, const luma_arg *args) {
    luma_state *S = c->S;
    int next = 0;
    c->nparams = lm_signature_parse(c->signature, c->params);
    memset(c->args, 0, sizeof c->args);
    for (int i = 0; i < nargs; i++) {
        const luma_arg *a = &args[i];
        int p = a->name ? param_named(c, a->name) : next++;
        if (p >= c->nparams || (!a->name && c->params[p].option))
            return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "%s(%s) has no argument %.40s",
                           c->info->name, c->signature, a->name ? a->name : "there");
        if (c->args[p].given)
            return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "%s is given twice", c->params[p].name);
        if (a->kind != LUMA_ARG_ABSENT) LM_TRY(read_arg(c, p, a));
    }
    for (int p = 0; p < c->nparams; p++) {
        if (!c->args[p].given && !c->params[p].optional)
            return lm_fail(S, LUMA_ERR_ARGUMENT, p + 1, "%s(%s): %s is missing", c->info->name,
                           c->signature, c->params[p].name);
    }
    return LUMA_OK;
}

/* ---- calling ---- */

static luma_status no_room(call *c, int need, int room) {
    return lm_fail(c->S, LUMA_ERR_ARGUMENT, 0, "%s: %d results, and room for %d", c->info->name,
                   need, room);
}

static luma_status call_list(call *c, lm_op op, int room, luma_tensor *outs, int *nouts) {
    luma_list list = {0, NULL};
    LM_TRY(lm_op_call_list(c->S, op, &list, c->args));
    luma_status status = LUMA_OK;
    if (list.n > room) status = no_room(c, list.n, room);
    for (int i = 0; i < list.n && status == LUMA_OK; i++) {
        if (outs[i].storage)
            status =
                lm_fail(c->S, LUMA_ERR_ARGUMENT, 0, "%s: results are new tensors", c->info->name);
    }
    for (int i = 0; i < list.n && status == LUMA_OK; i++) {
        outs[i] = list.items[i];
        list.items[i] = LUMA_NEW;
    }
    if (status == LUMA_OK) *nouts = list.n;
    luma_close_list(c->S, &list);
    return status;
}

luma_status luma_call(luma_state *S, const char *name, int room, luma_tensor *outs, int *nouts,
                      int nargs, const luma_arg *args) {
    lm_op op = LM_NOPS;
    bool in_place, value = false;
    int n = 0;
    call c = {.S = S};
    LM_TRY(find(S, name, &op, &in_place));
    c.info = &lm_ops[op];
    c.signature = lm_op_parameters(op);
    LM_TRY(read_args(&c, nargs, args));
    if (in_place) {
        if (c.params[0].type == LM_TYPE_OPERAND && !is_live(c.args[0].tensor))
            return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "%s: a live tensor expected", c.params[0].name);
        luma_tensor self = *c.args[0].tensor;
        LM_TRY(lm_op_call_inplace(S, op, &self, c.args));
    } else if (c.info->gives == LM_GIVES_LIST) {
        LM_TRY(call_list(&c, op, room, outs, &n));
    } else {
        luma_tensor made[LM_MAX_OUTS] = {LUMA_NEW, LUMA_NEW, LUMA_NEW};
        int most = c.info->gives == LM_GIVES_TRIPLE ? 3 : c.info->gives == LM_GIVES_PAIR ? 2 : 1;
        if (room < most) return no_room(&c, most, room);
        if (c.info->gives == LM_GIVES_VALUE && outs[0].storage)
            return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "%s: the result is no tensor", c.info->name);
        memcpy(made, outs, (size_t)most * sizeof *made);
        LM_TRY(lm_op_call(S, op, made, &n, &value, c.args));
        if (c.info->gives == LM_GIVES_VALUE) made[n++] = luma_boolean(value);
        memcpy(outs, made, (size_t)n * sizeof *made);
    }
    if (nouts) *nouts = n;
    return LUMA_OK;
}
