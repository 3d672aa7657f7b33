/* luma_lua.h -- the Lua module for C programs that hold a lua_State. Layer: bindings. */
#ifndef luma_lua_h
#define luma_lua_h

#include <lua.h>

#include "luma.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pushes the module table; makes no globals. */
LUMA_API int luaopen_luma(lua_State *L);

/* A tensor operation of L's module stops with the error "interrupted" soon after *flag becomes
** other than 0, and sets it back to 0: one interrupt is one error. NULL: no flag. L must have opened
** the module; the flag outlives L or is replaced by NULL. */
LUMA_API void luma_lua_set_interrupt(lua_State *L, volatile int *flag);

#ifdef __cplusplus
}
#endif
#endif
