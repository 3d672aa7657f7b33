/* module.c -- luaopen_luma: the module table, made of the registry and of what concerns all
** tensors. Layer: bindings. */
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "lua_files.h"
#include "unpack.h"

/* "Tensor[float32 2x3 cpu]": what tostring says until the Lua files print elements. */
static int brief(lua_State *L) {
    const luma_tensor *x = luma_check(L, 1);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lua_pushfstring(L, "Tensor[%s ", luma_dtype_name(x->dtype));
    luaL_addvalue(&b);
    for (int d = 0; d < x->layout.ndim; d++) {
        lua_pushfstring(L, d ? "x%I" : "%I", (LUAI_UACINT)x->layout.shape[d]);
        luaL_addvalue(&b);
    }
    lua_pushfstring(L, x->layout.ndim ? " %s]" : "%s]", lm_device_of(x)->name);
    luaL_addvalue(&b);
    luaL_pushresult(&b);
    return 1;
}

/* name_cost(what, name): how far apart they are; nothing where nobody means the one by the other. */
static int name_cost(lua_State *L) {
    int cost = lm_near_cost(luaL_checkstring(L, 1), luaL_checkstring(L, 2));
    if (cost == LM_FAR) return 0;
    lua_pushinteger(L, cost);
    return 1;
}

/* A copy of the table at the top, or an empty one for what is not a table, takes its place. */
static void copy_table(lua_State *L) {
    int top = lua_gettop(L);
    lua_newtable(L);
    lua_insert(L, -2);
    lua_pushnil(L);
    while (lua_istable(L, -2) && lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -5);
    }
    lua_settop(L, top);
}

static int set_metatable(lua_State *L) {
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

static int no_variable(lua_State *L) {
    lua_pushnil(L);
    return 1;
}

/* In the globals on top: text goes to the host, the environment is empty. */
static void hide_terminal(lua_State *L, lm_ctx *c) {
    lm_push_print(L, c);
    lua_setfield(L, -2, "print");
    lm_push_io(L, c);
    lua_setfield(L, -2, "io");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, no_variable);
    lua_setfield(L, -2, "getenv");
    lua_setfield(L, -2, "os");
}

/* Functions that the host has switched off, in the table at idx. */
static void deny(lua_State *L, int idx, const char *const *names) {
    for (; *names; names++) {
        lm_push_denied(L, *names);
        lua_setfield(L, idx, *names);
    }
}

static void switch_off(lua_State *L, const lm_ctx *c, int module) {
    static const char *const files[] = {"save", "load", NULL};
    static const char *const pictures[] = {"read_png", "write_png", NULL};
    static const char *const native[] = {"module", NULL};
    static const char *const settings[] = {"set_num_threads",
                                           "set_memory_limit",
                                           "set_memory_callback",
                                           "memory_snapshot",
                                           "fail_after",
                                           "fail_lua_after",
                                           NULL};
    if (c->flags & LUMA_LUA_NO_IO) {
        deny(L, module, files);
        lua_getfield(L, module, "image");
        deny(L, lua_gettop(L), pictures);
        lua_pop(L, 1);
    }
    if (c->flags & LUMA_LUA_NO_NATIVE) {
        lua_getfield(L, module, "cuda");
        deny(L, lua_gettop(L), native);
        lua_pop(L, 1);
    }
    if (c->flags & LUMA_LUA_NO_SETTINGS) deny(L, module, settings);
}

/* Pushes what the library's Lua files have for globals: what the host has as they are opened, and
** no script changes later, except print. A host may have opened none of Lua's own libraries. */
static void push_globals(lua_State *L) {
    static const char *const libraries[] = {"string", "table", "math", "utf8", "io", "os"};
    lua_pushglobaltable(L);
    copy_table(L);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        lua_getfield(L, -1, libraries[i]);
        copy_table(L);
        lua_setfield(L, -2, libraries[i]);
    }
    lua_pushcfunction(L, set_metatable);
    lua_setfield(L, -2, "setmetatable");
    lua_pushnil(L);
    lua_setfield(L, -2, "print");
    lua_newtable(L);
    lua_pushglobaltable(L);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lm_ctx *c = lm_ctx_find(L);
    if (c->flags & LUMA_LUA_NO_IO) hide_terminal(L, c);
}

void lm_lua_file_push(lua_State *L, const lm_lua_file *f) {
    size_t size;
    const char *chunk = lua_pushfstring(L, "=luma/%s.lua", f->name);
    char *text = lm_unpack(f->packed, f->nbytes, &size);
    if (!text) luaL_error(L, "not enough memory");
    int status = luaL_loadbufferx(L, text, size, chunk, "t");
    free(text);
    if (status != LUA_OK) lua_error(L);
    lua_remove(L, -2);
}

/* load(name): the chunk of lua/luma/<name>.lua, compiled. Upvalue 1: its globals. */
static int load_file(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    for (const lm_lua_file *f = lm_lua_files; f->name; f++) {
        if (strcmp(f->name, name) != 0) continue;
        lm_lua_file_push(L, f);
        lua_pushvalue(L, LM_UP_OWN);
        lua_setupvalue(L, -2, 1);
        return 1;
    }
    return luaL_error(L, "no file '%s' in the library", name);
}

static void run_init(lua_State *L, int module, int meta) {
    push_globals(L);
    lm_push_function(L, load_file, 1);
    lua_pushvalue(L, -1);
    lua_pushliteral(L, "init");
    lua_call(L, 1, 1);
    lua_pushvalue(L, module);
    lua_pushvalue(L, meta);
    lua_pushvalue(L, -4);
    lua_call(L, 3, 0);
    lua_pop(L, 1);
}

static int open_module(lua_State *L) {
    unsigned flags = (unsigned)lua_tointeger(L, 1);
    lua_settop(L, 0);
    luaL_checkstack(L, 20, NULL);
    const lm_ctx *c = lm_box_open(L, flags);
    int meta = 1, module = 2, methods = 3;
    lua_newtable(L);
    lua_newtable(L);
    lm_ops_open(L, module, methods);
    lm_construct_open(L, module, methods);
    lm_convert_open(L, module, methods);
    lm_random_open(L, module, methods);
    lm_matrix_open(L, module);
    lm_system_open(L, module);
    lm_memory_open(L, module);
    lm_devices_open(L, module, methods);
    lm_files_open(L, module);
    lm_image_open(L, module);
    lm_dlpack_open(L, module, methods);
    lm_operators_open(L, meta);
    lm_index_open(L, meta, methods);
    lm_fused_open(L, meta, methods);
    lm_registry_open(L, meta);
    lm_define_open(L, meta);
    lm_watch_open(L, meta);
    lm_foreign_open(L, module, meta);
    lm_push_function(L, brief, 0);
    lua_setfield(L, meta, "__tostring");
    /* Scripts cannot reach the metatable; the Lua files add methods through it. */
    lua_pushvalue(L, methods);
    lua_setfield(L, meta, "methods");
    lua_pushcfunction(L, name_cost);
    lua_setfield(L, meta, "name_cost");
    switch_off(L, c, module);
    run_init(L, module, meta);
    lua_settop(L, module);
    return 1;
}

void luma_lua_open(lua_State *L, unsigned flags) {
    luaL_checkversion(L);
    lua_pushcfunction(L, open_module);
    lua_pushinteger(L, (lua_Integer)flags);
    lua_call(L, 1, 1);
}

int luaopen_luma(lua_State *L) {
    luma_lua_open(L, 0);
    return 1;
}
