/* box.c -- the userdata that holds a tensor, the context of a Lua state, and what C programs may
** do with both. Layer: bindings. */
#include <string.h>

#include "binding.h"

static const char ctx_key, meta_key;

static uintptr_t magic_of(const lm_box *box) {
    return (uintptr_t)box ^ (uintptr_t)UINT64_C(0x6c756d61746e7372);
}

static lm_box *test(lua_State *L, int idx) {
    lm_box *box = lua_touserdata(L, idx);
    if (box && lua_rawlen(L, idx) == sizeof *box && box->magic == magic_of(box)) return box;
    return NULL;
}

/* The metatable follows at once: nothing may collect in between. */
static luma_tensor *box_push(lua_State *L, lm_ctx *c) {
    lm_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->magic = magic_of(box);
    box->ctx = c;
    box->t.storage = NULL;
    box->t.number.kind = LUMA_NOT_A_NUMBER;
    c->boxes++;
    c->S->fresh += LM_BOX_COST;
    return &box->t;
}

luma_tensor *lm_box_new(lua_State *L, lm_ctx *c) {
    luma_tensor *t = box_push(L, c);
    lua_pushvalue(L, LM_UP_META);
    lua_setmetatable(L, -2);
    return t;
}

luma_tensor *lm_box_test(lua_State *L, int idx) {
    lm_box *box = test(L, idx);
    return box ? &box->t : NULL;
}

static void release(lm_box *box) {
    lm_storage *st = box->t.storage;
    box->t.storage = NULL;
    lm_storage_release(st);
}

int lm_box_free(lua_State *L) {
    lm_box *box = test(L, 1);
    luaL_argexpected(L, box != NULL, 1, "tensor");
    release(box);
    return 0;
}

/* __gc, which only the collector can call: the argument is a box. */
static int collect(lua_State *L) {
    lm_box *box = lua_touserdata(L, 1);
    if (!box || box->magic != magic_of(box)) return 0;
    box->ctx->boxes--;
    release(box);
    return 0;
}

/* ---- the context ---- */

/* Finalizers run newest first: the tensors that a script made are gone by now. Those made by
** finalizers during the close are not; their memory goes with the caches. */
static int ctx_close(lua_State *L) {
    lm_ctx *c = lua_touserdata(L, 1);
    lm_alloc_restore(c);
    lm_events_close(c);
    luma_close(c->S);
    c->S = NULL;
    lm_limits_close(c);
    return 0;
}

/* lua.c's Ctrl-C sets a hook and nothing else: a hook that was not there when the operation began
** is taken for one. */
static bool interrupted(void *ctx) {
    const lm_ctx *c = ctx;
    if (c->limits && lm_limits_passed(c)) return true;
    if (c->flag) return *c->flag != 0;
    return lua_gethookmask(c->main) != c->hookmask;
}

static luma_status no_more_devices(luma_state *S) {
    return lm_fail(S, LUMA_ERR_DEVICE, 0, "CUDA is switched off by the host");
}

static int read_params(int op, lm_param *params) {
    return lm_ops[op].row == LM_ROW_MAKE ? 0 : lm_signature_parse(lm_ops[op].signature, params);
}

const lm_param *lm_ctx_params(const lm_ctx *c, lm_op op, int *n) {
    *n = c->first_param[op + 1] - c->first_param[op];
    return &c->params[c->first_param[op]];
}

static void ctx_open(lua_State *L, unsigned flags) {
    lm_param params[LM_MAX_PARAMS];
    size_t nparams = 0;
    for (int op = 0; op < LM_NOPS; op++)
        nparams += (size_t)read_params(op, params);
    lm_ctx *c = lua_newuserdatauv(L, sizeof *c + nparams * sizeof *c->params, 0);
    memset(c, 0, sizeof *c);
    for (int op = 0; op < LM_NOPS; op++) {
        int first = c->first_param[op];
        c->first_param[op + 1] = (uint16_t)(first + read_params(op, &c->params[first]));
    }
    c->flags = flags;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, ctx_close);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    char message[256];
    c->S =
        luma_open_with(flags & LUMA_LUA_NO_CUDA ? LUMA_OPEN_NO_CUDA : 0, message, sizeof message);
    if (!c->S) luaL_error(L, "%s", message);
    if (flags & LUMA_LUA_NO_CUDA) c->S->more_devices = no_more_devices;
    c->S->threads = flags & LUMA_LUA_NO_THREADS ? 1 : 0;
    luma_set_index_base(c->S, 1);
    c->S->poll = interrupted;
    c->S->poll_ctx = c;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    c->main = lua_tothread(L, -1);
    lua_pop(L, 1);
    lm_gc_open(L, c);
}

lm_ctx *lm_ctx_find(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &ctx_key);
    lm_ctx *c = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return c;
}

lm_ctx *lm_box_open(lua_State *L, unsigned flags) {
    lm_ctx *c = lm_ctx_find(L);
    if (c && (flags & ~c->flags))
        luaL_error(L, "the luma module is open already, with less switched off");
    if (!c) {
        ctx_open(L, flags);
        c = lua_touserdata(L, -1);
        lua_createtable(L, 0, 32);
        lua_pushcfunction(L, collect);
        lua_setfield(L, -2, "__gc");
        lua_pushliteral(L, "tensor");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &ctx_key);
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
    return c;
}

void lm_push_function(lua_State *L, lua_CFunction f, int nown) {
    lua_pushlightuserdata(L, lm_ctx_find(L));
    lua_insert(L, -nown - 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
    lua_insert(L, -nown - 1);
    lua_pushcclosure(L, f, nown + 2);
}

void lm_register(lua_State *L, int idx, const luaL_Reg *functions) {
    for (; functions->name; functions++) {
        lm_push_function(L, functions->func, 0);
        lua_setfield(L, idx, functions->name);
    }
}

/* ---- for C programs ---- */

static lm_ctx *ctx_of(lua_State *L) {
    lm_ctx *c = lm_ctx_find(L);
    if (!c || !c->S) luaL_error(L, "the luma module is not open");
    return c;
}

luma_state *luma_lua_state(lua_State *L) {
    return ctx_of(L)->S;
}

void luma_lua_set_interrupt(lua_State *L, volatile int *flag) {
    ctx_of(L)->flag = flag;
}

luma_tensor *luma_test(lua_State *L, int idx) {
    return lm_box_test(L, idx);
}

luma_tensor *luma_check(lua_State *L, int arg) {
    luma_tensor *x = lm_box_test(L, arg);
    if (!x) luaL_typeerror(L, arg, "tensor");
    if (!x->storage) luaL_argerror(L, arg, "the tensor was released");
    return x;
}

luma_tensor *luma_push(lua_State *L) {
    luma_tensor *t = box_push(L, ctx_of(L));
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
    lua_setmetatable(L, -2);
    return t;
}

void luma_push_tensor(lua_State *L, luma_tensor *x) {
    *luma_push(L) = *x;
    *x = LUMA_NEW;
}
