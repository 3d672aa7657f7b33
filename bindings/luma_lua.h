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

/* Tensor operations of L's module raise an error soon after *flag becomes other than 0, and go on
** doing so while it stays: the host that raised it clears it. NULL: never. L must have opened the
** module. The flag must outlive L or be replaced by NULL. */
LUMA_API void luma_lua_set_interrupt(lua_State *L, volatile int *flag);

#ifdef __cplusplus
}
#endif
#endif
