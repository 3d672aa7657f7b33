/* dlpack.c -- x:dlpack() and luma.from_dlpack: tensors to and from other libraries in one memory.
** Layer: bindings. */
#include "dlpack.h"

#include "make.h"

static bool versioned_option(lm_call *k, int arg, bool *given) {
    static const char *const names[] = {"versioned", NULL};
    lm_where o;
    bool versioned = false;
    lm_read_options(k, arg, names, &o);
    *given = lm_get_option(k, o.options, "versioned");
    if (*given) versioned = lm_arg_boolean(k, arg, lua_gettop(k->L));
    k->option = NULL;
    return versioned;
}

/* x:dlpack([{versioned =}]): a light userdata, which whoever takes it deletes. */
static int dlpack(lua_State *L) {
    lm_call k;
    bool given;
    void *handle = NULL;
    luma_status status;
    lm_call_open(&k, L, lm_enter(L), "dlpack");
    lm_arg_tensor(&k, 1, 1);
    if (versioned_option(&k, 2, &given)) {
        struct DLManagedTensorVersioned *m = NULL;
        status = luma_to_dlpack_versioned(k.c->S, &m, lm_arg_tensor(&k, 1, 1));
        handle = m;
    } else {
        struct DLManagedTensor *m = NULL;
        status = luma_to_dlpack(k.c->S, &m, lm_arg_tensor(&k, 1, 1));
        handle = m;
    }
    if (status != LUMA_OK) lm_raise(&k, status);
    lua_pushlightuserdata(L, handle);
    return 1;
}

/* luma.from_dlpack(handle [, {versioned =}]). What luma gave out itself it knows; of other handles it
** can only believe that they are some. */
static int from_dlpack(lua_State *L) {
    lm_call k;
    bool given;
    int tried = 0;
    luma_status status;
    lm_call_open(&k, L, lm_enter(L), "from_dlpack");
    if (lua_type(L, 1) != LUA_TLIGHTUSERDATA) lm_bad_type(&k, 1, 1, "light userdata");
    void *handle = lua_touserdata(L, 1);
    bool versioned = versioned_option(&k, 2, &given);
    luma_tensor *out = lm_box_new(L, k.c);
    do {
        lm_handle kind = lm_exports_find(k.c->S, handle);
        if (kind == LM_HANDLE_SPENT) lm_bad(&k, 1, "the handle was taken already");
        if (kind != LM_HANDLE_FOREIGN) {
            if (given && versioned != (kind == LM_HANDLE_VERSIONED))
                lm_bad(&k, 2, "the handle was made %s versions", versioned ? "without" : "with");
            versioned = kind == LM_HANDLE_VERSIONED;
        }
        status = versioned ? luma_from_dlpack_versioned(k.c->S, out, handle)
                           : luma_from_dlpack(k.c->S, out, handle);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

void lm_dlpack_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {{"from_dlpack", from_dlpack}, {NULL, NULL}};
    static const luaL_Reg each[] = {{"dlpack", dlpack}, {NULL, NULL}};
    if (lm_ctx_find(L)->flags & LUMA_LUA_NO_NATIVE) {
        lm_push_denied(L, "from_dlpack");
        lua_setfield(L, module, "from_dlpack");
        lm_push_denied(L, "dlpack");
        lua_setfield(L, methods, "dlpack");
        return;
    }
    lm_register(L, module, functions);
    lm_register(L, methods, each);
}
