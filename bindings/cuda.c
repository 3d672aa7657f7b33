/* cuda.c -- luma.cuda: which CUDA devices there are, what they are like, waiting for them. Layer:
** bindings. */
#include "cuda/info.h"

#include "make.h"

/* {true}, or false and why. */
static int is_available(lua_State *L) {
    luma_state *S = lm_enter(L)->S;
    bool there = lm_cuda_available(S) == LUMA_OK;
    lua_pushboolean(L, there);
    if (there) return 1;
    lua_pushstring(L, luma_message(S));
    return 2;
}

static const char switched_off[] = "CUDA is switched off by the host";

/* has_driver(): true where there is a driver or an emulated device; it is not started. Else why. */
static int has_driver(lua_State *L) {
    const char *why = switched_off;
    bool there = !(lm_enter(L)->flags & LUMA_LUA_NO_CUDA) && lm_cuda_driver_there(&why);
    lua_pushboolean(L, there);
    if (there) return 1;
    lua_pushstring(L, why);
    return 2;
}

static void push_library(void *ctx, const char *title, const char *file, const char *why,
                         int version) {
    lua_State *L = ctx;
    lua_createtable(L, 0, 5);
    if (version > 0) {
        lua_pushfstring(L, "%d.%d", version / 1000, version % 1000 / 10);
        lua_setfield(L, -2, "cuda");
    }
    lm_set_string(L, "name", title);
    lm_set_string(L, "file", why ? NULL : file);
    lm_set_string(L, "why", why);
    lua_pushboolean(L, !file);
    lua_setfield(L, -2, "emulated");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* libraries(): {name =, file = | why =, emulated =, cuda = "13.0"} of each, and `ptx`: whether it is built in */
static int libraries(lua_State *L) {
    if (lm_enter(L)->flags & LUMA_LUA_NO_CUDA) return luaL_error(L, "%s", switched_off);
    lua_newtable(L);
    lm_cuda_libraries(push_library, L);
    lua_pushboolean(L, lm_cuda_has_ptx());
    lua_setfield(L, -2, "ptx");
    return 1;
}

static int device_count(lua_State *L) {
    lua_pushinteger(L, lm_cuda_count(lm_enter(L)->S));
    return 1;
}

/* The device that argument 1 names, by name or number; the current one where it is absent. */
static lm_device *device_at(lm_call *k) {
    lua_State *L = k->L;
    lm_device *d;
    const char *name = "cuda";
    if (lua_type(L, 1) == LUA_TNUMBER) {
        lm_call_apart(k);
        name = lua_pushfstring(L, "cuda:%I", (LUAI_UACINT)lm_arg_integer(k, 1, 1));
    } else if (!lua_isnoneornil(L, 1)) {
        name = lm_arg_text(k, 1, 1, "device");
    }
    luma_status status = lm_device_find(k->c->S, name, &d);
    if (status != LUMA_OK) {
        k->c->S->argument = lua_isnoneornil(L, 1) ? 0 : 1;
        lm_raise(k, status);
    }
    if (d == lm_cpu(k->c->S)) lm_bad(k, 1, "a CUDA device expected, got 'cpu'");
    return d;
}

static lm_device *open_call(lm_call *k, lua_State *L, const char *name) {
    lm_call_open(k, L, lm_enter(L), name);
    return device_at(k);
}

static void check(lm_call *k, luma_status status) {
    if (status == LUMA_OK) return;
    k->c->S->argument = 0;
    lm_raise(k, status);
}

static int name_of(lua_State *L) {
    lm_call k;
    lm_cuda_facts facts;
    lm_device *d = open_call(&k, L, "name");
    check(&k, lm_cuda_describe(k.c->S, d, &facts));
    lua_pushstring(L, facts.name);
    return 1;
}

/* major, minor */
static int capability(lua_State *L) {
    lm_call k;
    lm_cuda_facts facts;
    lm_device *d = open_call(&k, L, "capability");
    check(&k, lm_cuda_describe(k.c->S, d, &facts));
    lua_pushinteger(L, facts.major);
    lua_pushinteger(L, facts.minor);
    return 2;
}

/* free, total */
static int memory(lua_State *L) {
    lm_call k;
    int64_t have, all;
    lm_device *d = open_call(&k, L, "memory");
    check(&k, lm_cuda_memory(k.c->S, d, &have, &all));
    lua_pushinteger(L, have);
    lua_pushinteger(L, all);
    return 2;
}

static int synchronize(lua_State *L) {
    lm_call k;
    lm_device *d = open_call(&k, L, "synchronize");
    check(&k, d->ops->synchronize(k.c->S, d));
    return 0;
}

static int current(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "current");
    lua_settop(L, 0);
    lua_pushstring(L, device_at(&k)->name);
    return 1;
}

static int set_device(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_device");
    if (lua_isnoneornil(L, 1)) lm_bad_type(&k, 1, 1, "device");
    lm_device *d = device_at(&k);
    check(&k, luma_set_current_device(k.c->S, d->name));
    return 0;
}

static int stats(lua_State *L) {
    lm_call k;
    lm_cuda_counts counts;
    lm_device *d = open_call(&k, L, "stats");
    lm_cuda_count_calls(d, &counts);
    lua_createtable(L, 0, 7);
#define FIGURE(name) lm_set_integer(L, #name, counts.name);
    FIGURE(launches)
    FIGURE(synchronisations)
    FIGURE(copies)
    FIGURE(reports)
    FIGURE(products_blas)
    FIGURE(products_own)
    FIGURE(products_copied)
#undef FIGURE
    return 1;
}

/* A switch: sets it where there is an argument; as it is then. */
static int allow(lua_State *L, const char *name, uint32_t bit) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), name);
    uint32_t *bits = &k.c->S->cuda_allow;
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_isboolean(L, 1)) lm_bad_type(&k, 1, 1, "boolean");
        *bits = lua_toboolean(L, 1) ? *bits | bit : *bits & ~bit;
    }
    lua_pushboolean(L, (*bits & bit) != 0);
    return 1;
}

/* The numbers are the same; where there is no cuRAND it cannot be switched on. */
static int use_curand(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "use_curand");
    if (lua_toboolean(L, 1) && lua_isboolean(L, 1)) check(&k, lm_cuda_find_curand(k.c->S));
    return allow(L, "use_curand", LM_USE_CURAND);
}

static int allow_tf32(lua_State *L) {
    return allow(L, "allow_tf32", LM_ALLOW_TF32);
}

static int allow_fp16_accumulate(lua_State *L) {
    return allow(L, "allow_fp16_accumulate", LM_ALLOW_FP16_ACCUMULATE);
}

static int allow_bf16_reduced(lua_State *L) {
    return allow(L, "allow_bf16_reduced", LM_ALLOW_BF16_REDUCED);
}

/* luma.cuda(x, n) is x:cuda(n), which the methods have. */
static int call(lua_State *L) {
    lua_remove(L, 1);
    lua_pushvalue(L, LM_UP_OWN);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

void lm_devices_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {{"is_available", is_available},
                                         {"has_driver", has_driver},
                                         {"libraries", libraries},
                                         {"device_count", device_count},
                                         {"name", name_of},
                                         {"capability", capability},
                                         {"memory", memory},
                                         {"synchronize", synchronize},
                                         {"current", current},
                                         {"set_device", set_device},
                                         {"stats", stats},
                                         {"allow_tf32", allow_tf32},
                                         {"allow_fp16_accumulate", allow_fp16_accumulate},
                                         {"allow_bf16_reduced", allow_bf16_reduced},
                                         {"use_curand", use_curand},
                                         {NULL, NULL}};
    lua_newtable(L);
    lm_register(L, lua_gettop(L), functions);
    lm_cuda_module_open(L, lua_gettop(L));
    lua_createtable(L, 0, 1);
    lua_getfield(L, methods, "cuda");
    lm_push_function(L, call, 1);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    lua_setfield(L, module, "cuda");
}
