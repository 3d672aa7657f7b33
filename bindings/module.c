/* module.c -- luaopen_luma: the module table, made of the registry and of what concerns all
** tensors. Layer: bindings. */
#include <string.h>

#include "binding.h"
#include "lua_files.h"

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

/* load(name): the chunk of lua/luma/<name>.lua, compiled. */
static int load_file(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    for (const lm_lua_file *f = lm_lua_files; f->name; f++) {
        if (strcmp(f->name, name) != 0) continue;
        lua_pushfstring(L, "=luma/%s.lua", name);
        if (luaL_loadbufferx(L, (const char *)f->text, f->size, lua_tostring(L, -1), "t") != LUA_OK)
            return lua_error(L);
        return 1;
    }
    return luaL_error(L, "no file '%s' in the library", name);
}

static void run_init(lua_State *L, int module, int meta) {
    lm_push_function(L, load_file, 0);
    lua_pushvalue(L, -1);
    lua_pushliteral(L, "init");
    lua_call(L, 1, 1);
    lua_pushvalue(L, module);
    lua_pushvalue(L, meta);
    lua_pushvalue(L, -4);
    lua_call(L, 3, 0);
    lua_pop(L, 1);
}

int luaopen_luma(lua_State *L) {
    luaL_checkversion(L);
    lua_settop(L, 0);
    luaL_checkstack(L, 20, NULL);
    lm_box_open(L);
    int meta = 1, module = 2, methods = 3;
    lua_newtable(L);
    lua_newtable(L);
    lm_ops_open(L, module, methods);
    lm_construct_open(L, module, methods);
    lm_convert_open(L, module, methods);
    lm_random_open(L, module, methods);
    lm_matrix_open(L, module, methods);
    lm_system_open(L, module);
    lm_memory_open(L, module);
    lm_devices_open(L, module, methods);
    lm_files_open(L, module);
    lm_image_open(L, module);
    lm_operators_open(L, meta);
    lm_index_open(L, meta, methods);
    lm_push_function(L, brief, 0);
    lua_setfield(L, meta, "__tostring");
    /* Scripts cannot reach the metatable; the Lua files add methods through it. */
    lua_pushvalue(L, methods);
    lua_setfield(L, meta, "methods");
    run_init(L, module, meta);
    lua_settop(L, module);
    return 1;
}
