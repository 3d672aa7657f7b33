/* luma_lua.h -- the Lua module for C programs that hold a lua_State. Layer: bindings. */
#ifndef luma_lua_h
#define luma_lua_h

#ifdef __cplusplus
extern "C" {
#endif

#include <lua.h>

#include "luma.h"

/* Pushes the module table; makes no globals. */
LUMA_API int luaopen_luma(lua_State *L);

/* A tensor operation of L's module stops with the error "interrupted" soon after *flag becomes
** other than 0, and sets it back to 0: one interrupt is one error. NULL: no flag. L must have
** opened the module; the flag outlives L or is replaced by NULL. */
LUMA_API void luma_lua_set_interrupt(lua_State *L, volatile int *flag);

/* The core's state behind L's module, for calls of luma.h. Positions count from 1 in it. */
LUMA_API luma_state *luma_lua_state(lua_State *L);
/* The tensor at idx, which the Lua value goes on owning: luma_share takes a reference of one's own,
** else it is good as long as the value is. NULL when it is none. A released one has no storage. */
LUMA_API luma_tensor *luma_test(lua_State *L, int idx);
/* The same, where anything else is an argument error. */
LUMA_API luma_tensor *luma_check(lua_State *L, int arg);
/* Pushes a tensor value that is LUMA_NEW: compute into it, so that no error path leaks. Lua owns what
** is computed, with luma_lua_state(L), and releases it. */
LUMA_API luma_tensor *luma_push(lua_State *L);
/* Pushes x, a tensor of luma_lua_state(L): Lua owns it from then on, and LUMA_NEW is left behind. An
** error of memory, which Lua raises, leaves x as it was. */
LUMA_API void luma_push_tensor(lua_State *L, luma_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
