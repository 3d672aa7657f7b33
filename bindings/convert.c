/* convert.c -- tensors to Lua values and back, to other dtypes and devices, and what they are like.
** Layer: bindings. */
#include <math.h>
#include <string.h>

#include "make.h"

/* ---- numbers and elements ---- */

bool lm_fits(luma_scalar v, luma_dtype dtype) {
    const lm_dtype_info *info = &lm_dtypes[dtype];
    if (info->kind != LM_KIND_INT) return true;
    if (v.kind != LUMA_IS_FLOAT) return v.u.i >= info->imin && v.u.i <= info->imax;
    if (!(v.u.d >= -0x1p63 && v.u.d < 0x1p63) || floor(v.u.d) != v.u.d) return false;
    return (int64_t)v.u.d >= info->imin && (int64_t)v.u.d <= info->imax;
}

void lm_check_fits(lm_call *k, int arg, luma_scalar v, luma_dtype dtype) {
    if (lm_fits(v, dtype)) return;
    lm_push_scalar(k->L, v);
    lm_bad(k, arg, "%s does not fit into %s", luaL_tolstring(k->L, -1, NULL),
           luma_dtype_name(dtype));
}

void lm_push_scalar(lua_State *L, luma_scalar v) {
    if (v.kind == LUMA_IS_BOOL)
        lua_pushboolean(L, v.u.i != 0);
    else if (v.kind == LUMA_IS_INT)
        lua_pushinteger(L, v.u.i);
    else
        lua_pushnumber(L, v.u.d);
}

void lm_push_element(lua_State *L, const luma_state *S, luma_dtype dtype, const char *element) {
    if (dtype == LUMA_FLOAT32) {
        float f;
        memcpy(&f, element, sizeof f);
        lua_pushnumber(L, (lua_Number)f);
    } else if (dtype == LUMA_FLOAT64) {
        double d;
        memcpy(&d, element, sizeof d);
        lua_pushnumber(L, d);
    } else {
        lm_push_scalar(L, S->devices[0]->ops->decode(dtype, element));
    }
}

/* ---- to Lua ---- */

static int item(lua_State *L) {
    lm_call k;
    luma_scalar v;
    lm_ctx *c = lm_enter(L);
    lm_call_open(&k, L, c, "item");
    luma_status status;
    int tried = 0;
    do {
        status = luma_item(c->S, lm_arg_tensor(&k, 1, 1), &v);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    lm_push_scalar(L, v);
    return 1;
}

/* Pushes x, or a copy that is contiguous and on the CPU. */
static const luma_tensor *host_push(lm_call *k, int arg, int idx) {
    lua_State *L = k->L;
    luma_state *S = k->c->S;
    const luma_tensor *x = lm_arg_tensor(k, arg, idx);
    if (lm_device_of(x) == lm_cpu(S) && luma_is_contiguous(x)) {
        lua_pushvalue(L, idx);
        return x;
    }
    luma_tensor *out = lm_box_new(L, k->c);
    luma_status status;
    int tried = 0;
    do {
        x = lm_arg_tensor(k, arg, idx);
        status = luma_empty(S, out, x->layout.ndim, x->layout.shape, x->dtype, "cpu");
        if (status == LUMA_OK) status = luma_copy(S, out, x);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return out;
}

/* The table of dims d and on; *done elements and *tables tables came before. */
static void push_table(lm_call *k, const luma_tensor *x, int d, int64_t *done, int64_t *tables) {
    lua_State *L = k->L;
    const luma_state *S = k->c->S;
    int64_t n = x->layout.shape[d];
    lm_poll(k, (*tables)++);
    lua_createtable(L, n > (1 << 28) ? 1 << 28 : (int)n, 0);
    for (int64_t i = 1; i <= n; i++) {
        if (d + 1 < x->layout.ndim) {
            push_table(k, x, d + 1, done, tables);
        } else {
            int64_t size = (int64_t)lm_dtype_size(x->dtype);
            lm_push_element(L, S, x->dtype, lm_data(x) + *done * size);
            lm_poll(k, ++*done);
        }
        lua_rawseti(L, -2, i);
    }
}

static int totable(lua_State *L) {
    lm_call k;
    int64_t done = 0, tables = 0;
    lm_ctx *c = lm_enter(L);
    lm_call_open(&k, L, c, "totable");
    const luma_tensor *x = host_push(&k, 1, 1);
    if (x->layout.ndim == 0) {
        lm_push_element(L, c->S, x->dtype, lm_data(x));
        return 1;
    }
    /* A finalizer that runs while tables are made may free x: hold the storage in a box of ours. */
    luma_tensor *box = lm_box_new(L, c);
    lm_check_live(&k, 1, x);
    luma_share(box, x);
    push_table(&k, box, 0, &done, &tables);
    return 1;
}

static int tobytes(lua_State *L) {
    lm_call k;
    luaL_Buffer b;
    lm_ctx *c = lm_enter(L);
    lm_call_open(&k, L, c, "tobytes");
    const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
    size_t n = (size_t)luma_numel(x) * lm_dtype_size(x->dtype);
    char *p = luaL_buffinitsize(L, &b, n);
    luma_status status;
    int tried = 0;
    do {
        status = luma_read(c->S, lm_arg_tensor(&k, 1, 1), p, n);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    luaL_pushresultsize(&b, n);
    return 1;
}

/* ---- to other dtypes and devices ---- */

luma_tensor *lm_cast_push(lm_call *k, int arg, int idx, luma_dtype dtype) {
    luma_tensor *out = lm_box_new(k->L, k->c);
    luma_status status;
    int tried = 0;
    do {
        status = lm_cast(k->c->S, out, lm_arg_tensor(k, arg, idx), dtype);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return out;
}

luma_tensor *lm_move_push(lm_call *k, int arg, int idx, luma_dtype dtype, const char *device) {
    luma_state *S = k->c->S;
    luma_tensor *out = lm_box_new(k->L, k->c);
    luma_status status;
    int tried = 0;
    do {
        const luma_tensor *x = lm_arg_tensor(k, arg, idx);
        luma_tensor t = LUMA_NEW;
        status = luma_empty(S, &t, x->layout.ndim, x->layout.shape, dtype, device);
        if (status == LUMA_OK) status = luma_copy(S, &t, x);
        if (status == LUMA_OK)
            *out = t;
        else
            luma_release(S, &t);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return out;
}

/* arg: the argument that names the device; 0: none does. */
static int move(lua_State *L, lm_call *k, luma_dtype dtype, const char *device, int arg,
                bool copy) {
    const luma_tensor *x = lm_arg_tensor(k, 1, 1);
    lm_device *d = lm_device_of(x);
    if (device && lm_device_find(k->c->S, device, &d) != LUMA_OK) {
        k->c->S->argument = arg;
        lm_raise(k, LUMA_ERR_DEVICE);
    }
    if (dtype == LUMA_NDTYPES) dtype = x->dtype;
    if (!copy && d == lm_device_of(x) && dtype == x->dtype)
        lua_pushvalue(L, 1);
    else
        lm_move_push(k, 1, 1, dtype, d->name);
    return 1;
}

/* x:to(device | dtype | both [, {copy = true}]) */
static int to(lua_State *L) {
    static const char *const names[] = {"copy", NULL};
    lm_call k;
    luma_dtype dtype = LUMA_NDTYPES;
    const char *device = NULL;
    int device_arg = 0;
    bool copy = false;
    lm_call_open(&k, L, lm_enter(L), "to");
    lm_arg_tensor(&k, 1, 1);
    int top = k.top;
    if (top > 1 && lm_is_options(L, top)) {
        lm_check_options(&k, top, top, names);
        if (lm_get_option(&k, top, "copy")) copy = lm_arg_boolean(&k, top, lua_gettop(L));
        k.option = NULL;
        top--;
    }
    if (top == 1 && !copy) lm_bad_type(&k, 2, 2, "dtype or device");
    for (int arg = 2; arg <= top; arg++) {
        size_t length;
        luma_dtype d;
        if (arg > 3) lm_bad(&k, arg, "no such argument");
        if (lua_type(L, arg) != LUA_TSTRING) lm_bad_type(&k, arg, arg, "dtype or device");
        const char *s = lua_tolstring(L, arg, &length);
        if (lm_dtype_parse(s, length, &d)) {
            if (dtype != LUMA_NDTYPES) lm_bad(&k, arg, "two dtypes");
            dtype = d;
        } else if (!device && (strncmp(s, "cpu", 3) == 0 || strncmp(s, "cuda", 4) == 0)) {
            device = lm_arg_text(&k, arg, arg, "device");
            device_arg = arg;
        } else {
            lm_bad(&k, arg, "'%s' is neither a dtype nor a device", lm_brief(L, s));
        }
    }
    return move(L, &k, dtype, device, device_arg, copy);
}

static int cpu(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "cpu");
    return move(L, &k, LUMA_NDTYPES, "cpu", 0, false);
}

static int cuda(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "cuda");
    const char *device = "cuda";
    if (k.top > 1) device = lua_pushfstring(L, "cuda:%I", (LUAI_UACINT)lm_arg_integer(&k, 2, 2));
    return move(L, &k, LUMA_NDTYPES, device, k.top > 1 ? 2 : 0, false);
}

/* ---- writing whole tensors ---- */

static luma_status assign(lm_call *k, const luma_tensor *value) {
    luma_tensor *x = lm_arg_tensor(k, 1, 1);
    lm_check_live(k, 2, value);
    return value->storage ? luma_copy(k->c->S, x, value) : luma_fill(k->c->S, x, value->number);
}

static int assign_and_return(lm_call *k, const luma_tensor *value) {
    luma_status status;
    int tried = 1;
    k->c->S->lifted = true;
    do {
        status = assign(k, value);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    lua_settop(k->L, 1);
    return 1;
}

static int copy_(lua_State *L) {
    lm_call k;
    luma_tensor weak = LUMA_NEW;
    lm_call_open(&k, L, lm_enter(L), "copy_");
    const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
    const luma_tensor *value =
        lua_istable(L, 2) ? lm_table_read(&k, 2, 2, x->dtype) : lm_arg_operand(&k, 2, 2, &weak);
    if (!value->storage) lm_check_fits(&k, 2, value->number, x->dtype);
    return assign_and_return(&k, value);
}

static int fill_(lua_State *L) {
    lm_call k;
    luma_tensor weak = LUMA_NEW;
    lm_call_open(&k, L, lm_enter(L), "fill_");
    const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
    if (!lm_is_scalar(L, 2)) lm_bad_type(&k, 2, 2, "number");
    weak.number = lm_to_scalar(L, 2);
    lm_check_fits(&k, 2, weak.number, x->dtype);
    return assign_and_return(&k, &weak);
}

static int zero_(lua_State *L) {
    lm_call k;
    luma_tensor weak = LUMA_NEW;
    lm_call_open(&k, L, lm_enter(L), "zero_");
    weak.number.kind = LUMA_IS_BOOL;
    return assign_and_return(&k, &weak);
}

/* ---- what a tensor is like ---- */

static int sizes_text(lua_State *L) {
    luaL_Buffer b;
    lua_Integer n = (lua_Integer)lua_rawlen(L, 1);
    luaL_buffinit(L, &b);
    luaL_addchar(&b, '{');
    for (lua_Integer i = 1; i <= n; i++) {
        if (i > 1) luaL_addstring(&b, ", ");
        lua_rawgeti(L, 1, i);
        luaL_tolstring(L, -1, NULL);
        lua_remove(L, -2);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, '}');
    luaL_pushresult(&b);
    return 1;
}

static int sizes_concat(lua_State *L) {
    luaL_tolstring(L, 1, NULL);
    luaL_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

void lm_push_sizes(lua_State *L, int n, const int64_t *sizes) {
    static const char sizes_key = 0;
    lua_createtable(L, n, 0);
    for (int d = 0; d < n; d++) {
        lua_pushinteger(L, sizes[d]);
        lua_rawseti(L, -2, d + 1);
    }
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &sizes_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 3);
        lua_pushcfunction(L, sizes_text);
        lua_setfield(L, -2, "__tostring");
        lua_pushcfunction(L, sizes_concat);
        lua_setfield(L, -2, "__concat");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &sizes_key);
    }
    lua_setmetatable(L, -2);
}

/* One entry of a list of dims, or all of them. */
static int push_dims(lua_State *L, const char *name, bool sizes) {
    lm_call k;
    lm_call_open(&k, L, lua_touserdata(L, LM_UP_CTX), name);
    const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
    int n = x->layout.ndim;
    const int64_t *v = sizes ? x->layout.shape : x->layout.stride;
    if (!lua_isnoneornil(L, 2)) {
        int64_t given = lm_arg_integer(&k, 2, 2), d = lm_arg_dim(&k, 2, given);
        if (d < -n || d >= n)
            lm_bad(&k, 2, "dim %I is out of range: the tensor has %d dim%s", (LUAI_UACINT)given, n,
                   n == 1 ? "" : "s");
        lua_pushinteger(L, v[d < 0 ? d + n : d]);
        return 1;
    }
    lm_push_sizes(L, n, v);
    return 1;
}

static int size(lua_State *L) {
    return push_dims(L, "size", true);
}

static int stride(lua_State *L) {
    return push_dims(L, "stride", false);
}

static int numel(lua_State *L) {
    lua_pushinteger(L, luma_numel(luma_check(L, 1)));
    return 1;
}

static int is_contiguous(lua_State *L) {
    lua_pushboolean(L, luma_is_contiguous(luma_check(L, 1)));
    return 1;
}

static int storage_offset(lua_State *L) {
    lua_pushinteger(L, luma_check(L, 1)->layout.offset);
    return 1;
}

static int itemsize(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)lm_dtype_size(luma_check(L, 1)->dtype));
    return 1;
}

/* Of the elements, whatever the storage holds. */
static int nbytes(lua_State *L) {
    const luma_tensor *x = luma_check(L, 1);
    lua_pushinteger(L, luma_numel(x) * (lua_Integer)lm_dtype_size(x->dtype));
    return 1;
}

static int shares_storage(lua_State *L) {
    lua_pushboolean(L, luma_check(L, 1)->storage == luma_check(L, 2)->storage);
    return 1;
}

void lm_convert_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {{"item", item},
                                         {"totable", totable},
                                         {"tobytes", tobytes},
                                         {"to", to},
                                         {"cpu", cpu},
                                         {"cuda", cuda},
                                         {"copy_", copy_},
                                         {"fill_", fill_},
                                         {"zero_", zero_},
                                         {"size", size},
                                         {"stride", stride},
                                         {"numel", numel},
                                         {"is_contiguous", is_contiguous},
                                         {"storage_offset", storage_offset},
                                         {"itemsize", itemsize},
                                         {"nbytes", nbytes},
                                         {"shares_storage", shares_storage},
                                         {"free", lm_box_free},
                                         {NULL, NULL}};
    lm_register(L, module, functions);
    lm_register(L, methods, functions);
}
