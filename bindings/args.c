/* args.c -- reading arguments of Lua: types, ranges, options, and what is said when they are wrong.
** Strings are never numbers here. Layer: bindings. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "binding.h"

void lm_call_open(lm_call *k, lua_State *L, lm_ctx *c, const char *name) {
    k->L = L;
    k->c = c;
    k->name = name;
    k->top = lua_gettop(L);
    k->option = NULL;
    k->used = 0;
    luaL_checkstack(L, 60, "too many arguments");
}

/* ---- errors ---- */

/* Raises with the message on top. */
LM_NORETURN static void bad_argument(lm_call *k, int arg) {
    lua_State *L = k->L;
    lua_Debug ar;
    const char *message = lua_tostring(L, -1);
    if (k->option) message = lua_pushfstring(L, "option '%s': %s", k->option, message);
    bool method =
        lua_getstack(L, 0, &ar) && lua_getinfo(L, "n", &ar) && strcmp(ar.namewhat, "method") == 0;
    if (method && --arg == 0) {
        luaL_error(L, "calling '%s' on bad self (%s)", k->name, message);
    }
    luaL_error(L, "bad argument #%d to '%s' (%s)", arg, k->name, message);
    for (;;) { /* luaL_error does not return */
    }
}

void lm_bad(lm_call *k, int arg, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lua_pushvfstring(k->L, format, args);
    va_end(args);
    bad_argument(k, arg);
}

const char *lm_brief(lua_State *L, const char *text) {
    enum { MOST = 60 };
    char quoted[MOST + 4];
    size_t n = strlen(text), end = n < MOST ? n : MOST;
    while (end < n && end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) /* whole characters */
        end--;
    for (size_t i = 0; i < end; i++)
        quoted[i] = iscntrl((unsigned char)text[i]) ? ' ' : text[i];
    memcpy(quoted + end, end < n ? "..." : "", end < n ? 4 : 1);
    return lua_pushstring(L, quoted);
}

void lm_bad_type(lm_call *k, int arg, int idx, const char *expected) {
    lua_State *L = k->L;
    const char *got = luaL_typename(L, idx);
    if (lua_isnoneornil(L, idx) && idx > k->top) got = "no value";
    if ((lua_type(L, idx) == LUA_TUSERDATA || lua_type(L, idx) == LUA_TTABLE) &&
        luaL_getmetafield(L, idx, "__name") == LUA_TSTRING)
        got = lua_tostring(L, -1);
    lm_bad(k, arg, "%s expected, got %s", expected, got);
}

void lm_raise(lm_call *k, luma_status status) {
    luma_state *S = k->c->S;
    k->option = NULL;
    if (status == LUMA_ERR_INTERRUPTED) {
        lm_limits_check(k->L, k->c);
        if (k->c->flag) *k->c->flag = 0;
        luaL_error(k->L, "interrupted");
    }
    if (S->argument > 0) lm_bad(k, S->argument, "%s", S->message);
    /* copied first: luaL_error asks for memory, so finalizers may run, whose failures take its place */
    luaL_error(k->L, "%s: %s", k->name, lua_pushstring(k->L, S->message));
    for (;;) { /* luaL_error does not return */
    }
}

void lm_check_live(lm_call *k, int arg, const luma_tensor *x) {
    if (!x->storage && x->number.kind == LUMA_NOT_A_NUMBER)
        lm_bad(k, arg, "the tensor was released");
}

/* ---- tensors and numbers ---- */

luma_tensor *lm_arg_tensor(lm_call *k, int arg, int idx) {
    luma_tensor *x = lm_box_test(k->L, idx);
    if (!x) lm_bad_type(k, arg, idx, "tensor");
    lm_check_live(k, arg, x);
    return x;
}

bool lm_is_scalar(lua_State *L, int idx) {
    int type = lua_type(L, idx);
    return type == LUA_TNUMBER || type == LUA_TBOOLEAN;
}

luma_scalar lm_to_scalar(lua_State *L, int idx) {
    if (lua_isboolean(L, idx))
        return (luma_scalar){.kind = LUMA_IS_BOOL, .u.i = lua_toboolean(L, idx)};
    if (lua_isinteger(L, idx))
        return (luma_scalar){.kind = LUMA_IS_INT, .u.i = lua_tointeger(L, idx)};
    return (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = lua_tonumber(L, idx)};
}

const luma_tensor *lm_arg_operand(lm_call *k, int arg, int idx, luma_tensor *weak) {
    if (lm_is_scalar(k->L, idx)) {
        weak->storage = NULL;
        weak->number = lm_to_scalar(k->L, idx);
        return weak;
    }
    luma_tensor *x = lm_box_test(k->L, idx);
    if (!x) lm_bad_type(k, arg, idx, "tensor or number");
    lm_check_live(k, arg, x);
    return x;
}

int64_t lm_arg_integer(lm_call *k, int arg, int idx) {
    int exact;
    if (lua_type(k->L, idx) != LUA_TNUMBER) lm_bad_type(k, arg, idx, "integer");
    lua_Integer i = lua_tointegerx(k->L, idx, &exact);
    if (!exact) lm_bad(k, arg, "%f has no integer representation", lua_tonumber(k->L, idx));
    return i;
}

luma_scalar lm_arg_number(lm_call *k, int arg, int idx) {
    if (lua_type(k->L, idx) != LUA_TNUMBER) lm_bad_type(k, arg, idx, "number");
    return lm_to_scalar(k->L, idx);
}

double lm_arg_double(lm_call *k, int arg, int idx) {
    if (lua_type(k->L, idx) != LUA_TNUMBER) lm_bad_type(k, arg, idx, "number");
    return lua_tonumber(k->L, idx);
}

bool lm_arg_boolean(lm_call *k, int arg, int idx) {
    if (!lua_isboolean(k->L, idx)) lm_bad_type(k, arg, idx, "boolean");
    return lua_toboolean(k->L, idx);
}

/* Raises that name is no dtype, with the dtype it may stand for. */
LM_NORETURN static void unknown_dtype(lm_call *k, int arg, const char *name) {
    lm_near near = {name, NULL, 0};
    for (int d = 0; d < LUMA_NDTYPES; d++)
        lm_near_try(&near, lm_dtypes[d].name);
    name = lm_brief(k->L, name);
    if (near.best) lm_bad(k, arg, "unknown dtype '%s'; did you mean '%s'?", name, near.best);
    lm_bad(k, arg, "unknown dtype '%s'", name);
}

luma_dtype lm_arg_dtype(lm_call *k, int arg, int idx) {
    luma_dtype dtype;
    size_t length;
    if (lua_type(k->L, idx) != LUA_TSTRING) lm_bad_type(k, arg, idx, "dtype");
    const char *name = lua_tolstring(k->L, idx, &length);
    if (!lm_dtype_parse(name, length, &dtype)) unknown_dtype(k, arg, name);
    return dtype;
}

const char *lm_arg_text(lm_call *k, int arg, int idx, const char *expected) {
    size_t n;
    if (lua_type(k->L, idx) != LUA_TSTRING) lm_bad_type(k, arg, idx, expected);
    const char *text = lua_tolstring(k->L, idx, &n);
    if (strlen(text) != n) lm_bad(k, arg, "the text contains a zero byte");
    return text;
}

lm_device *lm_arg_device(lm_call *k, int arg) {
    lm_device *d;
    const char *name = lua_isnoneornil(k->L, arg) ? NULL : lm_arg_text(k, arg, arg, "device");
    luma_status status = lm_device_find(k->c->S, name, &d);
    if (status != LUMA_OK) {
        k->c->S->argument = arg;
        lm_raise(k, status);
    }
    return d;
}

/* ---- lists ---- */

void lm_call_apart(lm_call *k) {
    int above = k->top + LM_MAX_PARAMS;
    if (lua_gettop(k->L) < above) lua_settop(k->L, above);
}

int64_t *lm_call_ints(lm_call *k, int n) {
    if (k->used + n > LM_CALL_INTS) {
        lm_call_apart(k);
        return lua_newuserdatauv(k->L, (size_t)n * sizeof(int64_t), 0);
    }
    int64_t *ints = k->ints + k->used;
    k->used += n;
    return ints;
}

/* The integer at position i of the list at idx. */
static int64_t list_integer(lm_call *k, int arg, int idx, int i) {
    lua_State *L = k->L;
    int exact = 0;
    int type = lua_rawgeti(L, idx, i);
    lua_Integer v = type == LUA_TNUMBER ? lua_tointegerx(L, -1, &exact) : 0;
    if (type != LUA_TNUMBER)
        lm_bad(k, arg, "[%d]: integer expected, got %s", i, luaL_typename(L, -1));
    if (!exact) lm_bad(k, arg, "[%d]: %f has no integer representation", i, lua_tonumber(L, -1));
    lua_pop(L, 1);
    return v;
}

int lm_arg_length(lm_call *k, int arg, int idx) {
    lua_State *L = k->L;
    lua_Unsigned n = lua_rawlen(L, idx), count = 0;
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        count++;
        if (!lua_isinteger(L, -2) || (lua_Unsigned)lua_tointeger(L, -2) - 1 >= n) {
            lua_pop(L, 1);
            lm_bad(k, arg, "a list expected, but it has the key %s", luaL_tolstring(L, -1, NULL));
        }
    }
    if (count != n) lm_bad(k, arg, "the list has holes");
    if (n > (1u << 24)) lm_bad(k, arg, "the list is too long");
    return (int)n;
}

static bool is_empty(lua_State *L, int idx) {
    lua_pushnil(L);
    if (!lua_next(L, idx)) return true;
    lua_pop(L, 2);
    return false;
}

const int64_t *lm_arg_list(lm_call *k, int arg, int idx, int *n) {
    if (lua_type(k->L, idx) != LUA_TTABLE) {
        if (lua_type(k->L, idx) != LUA_TNUMBER)
            lm_bad_type(k, arg, idx, "integer or list of integers");
        int64_t *one = lm_call_ints(k, 1);
        *one = lm_arg_integer(k, arg, idx);
        *n = 1;
        return one;
    }
    *n = lm_arg_length(k, arg, idx);
    int64_t *list = lm_call_ints(k, *n);
    for (int i = 0; i < *n; i++)
        list[i] = list_integer(k, arg, idx, i + 1);
    return list;
}

const int64_t *lm_arg_shape(lm_call *k, int arg, int *n, int *next) {
    lua_State *L = k->L;
    if (lua_istable(L, arg) && (!lm_is_options(L, arg) || is_empty(L, arg))) {
        *next = arg + 1;
        return lm_arg_list(k, arg, arg, n);
    }
    *n = 0;
    while (lua_type(L, arg + *n) == LUA_TNUMBER && arg + *n <= k->top)
        ++*n;
    if (*n == 0) lm_bad_type(k, arg, arg, "shape");
    *next = arg + *n;
    int64_t *shape = lm_call_ints(k, *n);
    for (int d = 0; d < *n; d++)
        shape[d] = lm_arg_integer(k, arg + d, arg + d);
    return shape;
}

int64_t lm_arg_dim(lm_call *k, int arg, int64_t dim) {
    if (dim == 0) lm_bad(k, arg, "dim 0: dims count from 1, or from -1 backward");
    return dim > 0 ? dim - 1 : dim;
}

int64_t lm_arg_position(lm_call *k, int arg, int64_t position) {
    if (position == 0) lm_bad(k, arg, "position 0: positions count from 1, or from -1 backward");
    return position > 0 ? position - 1 : position;
}

/* ---- options ---- */

bool lm_is_options(lua_State *L, int idx) {
    if (!lua_istable(L, idx)) return false;
    bool options = lua_rawgeti(L, idx, 1) == LUA_TNIL;
    lua_pop(L, 1);
    return options;
}

/* "there are a, b", or that there are none. */
static const char *push_names(lua_State *L, const char *const *names) {
    if (!names[0]) return lua_pushliteral(L, "there are none");
    lua_pushfstring(L, "there %s %s", names[1] ? "are" : "is", names[0]);
    for (int i = 1; names[i]; i++) {
        lua_pushfstring(L, ", %s", names[i]);
        lua_concat(L, 2);
    }
    return lua_tostring(L, -1);
}

void lm_check_options(lm_call *k, int arg, int idx, const char *const *names) {
    lua_State *L = k->L;
    if (idx == 0) return;
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            lua_pop(L, 1);
            lm_bad(k, arg, "options have names, but there is the key %s",
                   luaL_tolstring(L, -1, NULL));
        }
        const char *key = lua_tostring(L, -2);
        lm_near near = {key, NULL, 0};
        for (int i = 0; names[i]; i++)
            lm_near_try(&near, names[i]);
        if (near.best && near.cost == 0) continue;
        if (near.best)
            lm_bad(k, arg, "unknown option '%s'; did you mean '%s'?", lm_brief(L, key), near.best);
        lm_bad(k, arg, "unknown option '%s'; %s", lm_brief(L, key), push_names(L, names));
    }
}

bool lm_get_option(lm_call *k, int idx, const char *name) {
    lua_State *L = k->L;
    k->option = name;
    if (idx == 0) return false;
    lua_pushstring(L, name);
    if (lua_rawget(L, idx) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

/* ---- fields of tables ---- */

void lm_set_integer(lua_State *L, const char *key, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

void lm_set_string(lua_State *L, const char *key, const char *value) {
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

/* ---- the nearest name ---- */

#define LONGEST 32

/* Number of letters to insert, drop, change or swap with a neighbour to make b of a; *start: the
** same for the beginning of b that is nearest to a. */
static int distance(const char *a, const char *b, int *start) {
    int la = (int)strlen(a), lb = (int)strlen(b);
    *start = 2 * LONGEST;
    if (la > LONGEST || lb > LONGEST) return 2 * LONGEST;
    int rows[3][LONGEST + 1]; /* of the letters of a: two before, one before, this */
    for (int j = 0; j <= lb; j++)
        rows[1][j] = j;
    int *older = rows[0], *old = rows[1], *row = rows[2];
    for (int i = 1; i <= la; i++) {
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int best = old[j - 1] + (a[i - 1] != b[j - 1]);
            if (old[j] + 1 < best) best = old[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && older[j - 2] + 1 < best) best = older[j - 2] + 1;
            row[j] = best;
        }
        int *free_row = older;
        older = old;
        old = row;
        row = free_row;
    }
    for (int j = 1; j <= lb; j++) {
        if (old[j] < *start) *start = old[j];
    }
    return old[lb];
}

int lm_near_cost(const char *what, const char *name) {
    int n = (int)strlen(what), start;
    int whole = distance(what, name, &start);
    int most = n < 2 ? 0 : n < 6 ? 1 : n / 3;
    int cost = LM_FAR;
    if (whole <= most) cost = 2 * whole;
    if (start <= n / 3 && 2 * start + 1 < cost) cost = 2 * start + 1;
    if (cost == LM_FAR && n > 2 && strstr(name, what)) cost = 3;
    return cost;
}

void lm_near_try(lm_near *near, const char *name) {
    int cost = lm_near_cost(near->what, name);
    if (cost == LM_FAR || (near->best && cost > near->cost)) return;
    if (near->best && cost == near->cost && strcmp(name, near->best) > 0) return;
    near->cost = cost;
    near->best = name;
}
