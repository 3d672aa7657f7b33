/* operators.c -- what + - * / and the other operators of Lua do to tensors. Layer: bindings. */
#include "binding.h"

static int binary(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    return lm_map_push(L, c, (lm_op)lua_tointeger(L, LM_UP_OWN), 2);
}

/* Lua passes the operand twice. */
static int unary(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    return lm_map_push(L, c, (lm_op)lua_tointeger(L, LM_UP_OWN), 1);
}

/* Whether the value at idx makes x ^ y a float power by itself. */
static bool is_real(lua_State *L, int idx) {
    const luma_tensor *x = lm_box_test(L, idx);
    return x ? lm_dtype_is_float(x->dtype)
             : lua_type(L, idx) == LUA_TNUMBER && !lua_isinteger(L, idx);
}

/* ^ is always a float power: of two integers, one is made float before. */
static int power(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    if (is_real(L, 1) || is_real(L, 2)) return lm_map_push(L, c, LM_OP_pow, 2);
    int idx = lua_isinteger(L, 1) ? 1 : 2;
    if (lua_isinteger(L, idx)) {
        lua_pushnumber(L, (lua_Number)lua_tointeger(L, idx));
        lua_replace(L, idx);
    } else if (lm_box_test(L, 1)) {
        lm_call k;
        lm_call_open(&k, L, c, "pow");
        lm_cast_push(&k, 1, 1, luma_default_dtype(c->S));
        lua_replace(L, 1);
    }
    return lm_map_push(L, c, LM_OP_pow, 2);
}

/* Lua asks for two userdata that are not the same one. */
static int equal(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    lm_call k;
    lm_call_open(&k, L, c, "equal");
    bool value = false;
    if (lm_box_test(L, 1) && lm_box_test(L, 2)) {
        luma_status status;
        int tried = 0;
        do {
            const luma_tensor *x = lm_arg_tensor(&k, 1, 1), *y = lm_arg_tensor(&k, 2, 2);
            status = luma_equal(c->S, &value, x, y);
        } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
        if (status != LUMA_OK) lm_raise(&k, status);
    }
    lua_pushboolean(L, value);
    return 1;
}

static int no_order(lua_State *L) {
    return luaL_error(L,
                      "tensors are not ordered: lt, le, gt and ge give masks, item gives a number");
}

static int no_shift(lua_State *L) {
    return luaL_error(L, "tensors have no << and >>: use lshift or rshift");
}

static int length(lua_State *L) {
    const luma_tensor *x = luma_check(L, 1);
    if (x->layout.ndim == 0) return luaL_error(L, "a 0-d tensor has no length");
    lua_pushinteger(L, x->layout.shape[0]);
    return 1;
}

static int concat(lua_State *L) {
    if (lm_box_test(L, 1) && lm_box_test(L, 2))
        return luaL_error(L, ".. joins strings: use luma.cat to join tensors");
    for (int i = 1; i <= 2; i++) {
        if (!lm_box_test(L, i) && !lua_isstring(L, i))
            return luaL_error(L, "attempt to concatenate a %s value and a tensor",
                              luaL_typename(L, i));
        luaL_tolstring(L, i, NULL);
    }
    lua_concat(L, 2);
    return 1;
}

static void set_row(lua_State *L, int meta, const char *event, lua_CFunction f, lm_op op) {
    lua_pushinteger(L, op);
    lm_push_function(L, f, 1);
    lua_setfield(L, meta, event);
}

void lm_operators_open(lua_State *L, int meta) {
    static const luaL_Reg others[] = {
        {"__pow", power},         {"__eq", equal},     {"__lt", no_order}, {"__le", no_order},
        {"__shl", no_shift},      {"__shr", no_shift}, {"__len", length},  {"__concat", concat},
        {"__close", lm_box_free}, {NULL, NULL}};
    static const struct {
        const char *event;
        lm_op op;
    } rows[] = {
        {"__add", LM_OP_add},          {"__sub", LM_OP_sub},        {"__mul", LM_OP_mul},
        {"__div", LM_OP_div},          {"__idiv", LM_OP_floor_div}, {"__mod", LM_OP_remainder},
        {"__band", LM_OP_bitwise_and}, {"__bor", LM_OP_bitwise_or}, {"__bxor", LM_OP_bitwise_xor}};
    lm_register(L, meta, others);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        set_row(L, meta, rows[i].event, binary, rows[i].op);
    set_row(L, meta, "__unm", unary, LM_OP_neg);
    set_row(L, meta, "__bnot", unary, LM_OP_bitwise_not);
}
