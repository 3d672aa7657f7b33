/* operators.c -- what + - * / and the other operators of Lua do to tensors. Layer: bindings. */
#include "binding.h"

/* One function for each event, since a row in an upvalue would have to be fetched. */
#define BINARY_EVENT(op)                                                                           \
    static int event_##op(lua_State *L) {                                                          \
        return lm_map_push(L, lm_enter(L), LM_OP_##op, 2);                                         \
    }
BINARY_EVENT(add)
BINARY_EVENT(sub)
BINARY_EVENT(mul)
BINARY_EVENT(div)
BINARY_EVENT(floor_div)
BINARY_EVENT(remainder)
BINARY_EVENT(bitwise_and)
BINARY_EVENT(bitwise_or)
BINARY_EVENT(bitwise_xor)

/* Lua passes the operand of these twice. */
static int event_neg(lua_State *L) {
    return lm_map_push(L, lm_enter(L), LM_OP_neg, 1);
}

static int event_bitwise_not(lua_State *L) {
    return lm_map_push(L, lm_enter(L), LM_OP_bitwise_not, 1);
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
    if (lm_traced_any(L, c, 2)) return lm_traced_power(L, c);
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
    return luaL_error(L, "tensors have no order; use x:lt(y) for a mask or x:item() for a number");
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

void lm_operators_open(lua_State *L, int meta) {
    static const luaL_Reg events[] = {{"__add", event_add},
                                      {"__sub", event_sub},
                                      {"__mul", event_mul},
                                      {"__div", event_div},
                                      {"__idiv", event_floor_div},
                                      {"__mod", event_remainder},
                                      {"__pow", power},
                                      {"__unm", event_neg},
                                      {"__band", event_bitwise_and},
                                      {"__bor", event_bitwise_or},
                                      {"__bxor", event_bitwise_xor},
                                      {"__bnot", event_bitwise_not},
                                      {"__eq", equal},
                                      {"__lt", no_order},
                                      {"__le", no_order},
                                      {"__shl", no_shift},
                                      {"__shr", no_shift},
                                      {"__len", length},
                                      {"__concat", concat},
                                      {"__close", lm_box_free},
                                      {NULL, NULL}};
    lm_register(L, meta, events);
}
