/* launch_test.c -- an operation on a CUDA device queues its launch and nothing else: once warm it
** takes nothing from the system's allocator and waits for nothing. On the emulated device with its
** kernels stubbed; the linker sends every allocation of luma through the counters below. */
#include <stdio.h>
#include <stdlib.h>

#include <lauxlib.h>
#include <lualib.h>

#include "check.h"
#include "luma_lua.h"

/* ---- the allocator, as luma sees it ---- */

void *__real_malloc(size_t nbytes);
void *__real_calloc(size_t n, size_t nbytes);
void *__real_realloc(void *p, size_t nbytes);
void *__real_aligned_alloc(size_t alignment, size_t nbytes);
void *__wrap_malloc(size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes);
void *__wrap_realloc(void *p, size_t nbytes);
void *__wrap_aligned_alloc(size_t alignment, size_t nbytes);

static long taken;

void *__wrap_malloc(size_t nbytes) {
    taken++;
    return __real_malloc(nbytes);
}

void *__wrap_calloc(size_t n, size_t nbytes) {
    taken++;
    return __real_calloc(n, nbytes);
}

void *__wrap_realloc(void *p, size_t nbytes) {
    taken++;
    return __real_realloc(p, nbytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t nbytes) {
    taken++;
    return __real_aligned_alloc(alignment, nbytes);
}

/* Lua's own memory does not count. */
static void *lua_memory(void *ctx, void *p, size_t before, size_t nbytes) {
    (void)ctx;
    (void)before;
    if (nbytes > 0) return __real_realloc(p, nbytes);
    free(p);
    return NULL;
}

/* ---- one operation many times ---- */

static int taken_so_far(lua_State *L) {
    lua_pushinteger(L, taken);
    return 1;
}

static const char *const script =
    "local on = {device = 'cuda:0'}\n"
    "local a, b = luma.zeros({4}, on), luma.zeros({4}, on)\n"
    "local m, w = luma.zeros({3, 3}, on), luma.zeros({3, 3}, {device = 'cuda:0', dtype = "
    "'int32'})\n"
    "local out = {out = luma.zeros({4}, on)}\n"
    "local tasks = {\n"
    "  function() return a + b end,\n"
    "  function() return a * 2 end,\n"
    "  function() luma.exp(a, out) end,\n"
    "  function() return m + m:t() end,\n"
    "  function() return a:sum() end,\n"
    "  function() a:mul_(b) end,\n"
    "  function() return a:to('float64') end,\n"
    "  function() return m:matmul(m) end,\n"
    "  function() return m:t():matmul(m:flip(1)) end,\n"
    "  function() return w:matmul(w) end,\n"
    "}\n"
    "local function free(x) if x then x:free() end end\n"
    "for i, f in ipairs(tasks) do\n"
    "  for _ = 1, 100 do free(f()) end\n"
    "  local took, was = allocations(), luma.cuda.stats()\n"
    "  for _ = 1, 5000 do free(f()) end\n"
    "  local now = luma.cuda.stats()\n"
    "  local why = ('task %d: %d allocations, %d synchronisations, %d copies'):format(i,\n"
    "    allocations() - took, now.synchronisations - was.synchronisations, now.copies - "
    "was.copies)\n"
    "  assert(allocations() == took and now.synchronisations == was.synchronisations, why)\n"
    "  assert(now.copies == was.copies, why)\n"
    "  local queued = now.launches - was.launches + now.products_blas - was.products_blas\n"
    "  assert(queued >= 5000, why)\n"
    "end\n";

int main(void) {
    setenv("LUMA_CUDA", "emulate", 1);
    setenv("LUMA_EMU_STUB", "1", 1);
    unsetenv("LUMA_LIBCUDA");
    unsetenv("LUMA_LIBCUBLAS");
    lua_State *L = lua_newstate(lua_memory, NULL);
    if (!L) return 1;
    luaL_openlibs(L);
    luaL_requiref(L, "luma", luaopen_luma, 0);
    lua_setglobal(L, "luma");
    lua_register(L, "allocations", taken_so_far);
    bool fine = luaL_dostring(L, script) == LUA_OK;
    if (!fine) printf("%s\n", lua_tostring(L, -1));
    CHECK(fine);
    CHECK(taken > 0);
    lua_close(L);
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
