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

/* ---- what scripts may do -------------------------------------------------------------------- */

/* For luma_lua_open: what is switched off, and is then an error that says so. */
enum {
    LUMA_LUA_NO_IO = 1,   /* files and pictures; text for a terminal goes to the host's function */
    LUMA_LUA_NO_CUDA = 2, /* devices other than the CPU; no driver is looked for */
    LUMA_LUA_NO_THREADS = 4,   /* operations run on the thread that calls them alone */
    LUMA_LUA_NO_NATIVE = 8,    /* kernels of the script's own: luma.cuda.module; DLPack */
    LUMA_LUA_NO_SETTINGS = 16, /* of the process and of memory: threads, limits, maps, failures */
    LUMA_LUA_CLOSED = 31       /* all of it */
};
/* As luaopen_luma. Only the first opening of a lua_State decides: another with flags that the first
** had not is an error. */
LUMA_API void luma_lua_open(lua_State *L, unsigned flags);

/* 0 or NULL: no limit. */
typedef struct luma_lua_limits {
    size_t memory;        /* bytes of Lua's heap and of tensors on all devices, together */
    int64_t instructions; /* of Lua, in one luma_lua_call, to within a thousand */
    double seconds;       /* that one luma_lua_call may last */
    /* Asked by the thread that called, every 1000 instructions and in long operations: true ends the
    ** call. It must not use L. */
    bool (*interrupt)(void *ctx);
    void *ctx;
} luma_lua_limits;
/* Sets limits, or others than before. Memory is charged from here on, with what is there already;
** L keeps its allocator below. The rest holds within luma_lua_call and luma_lua_load, in every
** coroutine made from here on; it needs L's count hook, so no other may be set. What Lua's own
** libraries do in C for long, pcall and finalizers are within reach in sandboxes only. Raises a Lua
** error when there is no memory. */
LUMA_API void luma_lua_limit(lua_State *L, const luma_lua_limits *limits);

/* lua_pcall without a message handler, within the limits: an error is always a string, and one that a
** limit raised is caught by nobody else. A call within a call has what is left to the outer one. */
LUMA_API int luma_lua_call(lua_State *L, int nargs, int nresults);
/* Pushes text, n bytes, as a function, or the error; never a binary chunk. As luaL_loadbuffer. */
LUMA_API int luma_lua_load(lua_State *L, const char *text, size_t n, const char *name);
/* What ended the last luma_lua_call. */
typedef enum {
    LUMA_LUA_RAN, /* none of the below */
    LUMA_LUA_INSTRUCTIONS,
    LUMA_LUA_SECONDS,
    LUMA_LUA_INTERRUPTED /* limits.interrupt */
} luma_lua_end;
LUMA_API luma_lua_end luma_lua_ended(lua_State *L);

/* A state for scripts that nobody vouches for: the globals of Lua but for what reaches outside of it
** (debug, io, os but its clock, package, binary chunks, finalizers), in functions that the limits
** reach; `luma`, opened with the flags; no collector to switch off. What it prints goes to the
** host's function. NULL: no memory. Close it with lua_close. */
LUMA_API lua_State *luma_lua_sandbox(unsigned flags, const luma_lua_limits *limits);

typedef enum {
    LUMA_LUA_PRINT,   /* print, a line with its end */
    LUMA_LUA_WARNING, /* warn and Lua's own warnings, without an end of line */
    LUMA_LUA_LOG      /* what would go to stderr: progress */
} luma_lua_text;
/* Where text goes: of sandboxes, and of modules opened with LUMA_LUA_NO_IO; nowhere with NULL. f must
** not use L. In other states only warnings come to it. */
typedef void luma_lua_text_fn(void *ctx, luma_lua_text kind, const char *text, size_t n);
LUMA_API void luma_lua_set_text(lua_State *L, luma_lua_text_fn *f, void *ctx);

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
