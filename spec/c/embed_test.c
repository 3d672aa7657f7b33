/* embed_test.c -- luma inside a C program: states side by side, tensors handed over both ways,
** interrupts, memory that fails while the module opens, closing with tensors alive. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "check.h"
#include "luma_lua.h"
#include "told.h"

/* Runs text; true when it raised nothing. The error is left on the stack. */
static bool run(lua_State *L, const char *text) {
    lua_settop(L, 0);
    return luaL_dostring(L, text) == LUA_OK;
}

static bool raises(lua_State *L, const char *text, const char *part) {
    return !run(L, text) && told(L, part);
}

static lua_State *open_state(void) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    luaL_requiref(L, "luma", luaopen_luma, 0);
    lua_setglobal(L, "luma");
    return L;
}

/* ---- tensors both ways ---- */

static void test_handing_over(void) {
    lua_State *L = open_state();
    luma_state *S = luma_lua_state(L);
    int64_t shape[2] = {2, 3};
    luma_tensor *x = luma_push(L);
    CHECK(luma_test(L, -1) == x && x->storage == NULL);
    CHECK(luma_full(S, x, 2, shape, luma_integer(7).number, LUMA_INT32, "cpu") == LUMA_OK);
    lua_setglobal(L, "x");
    CHECK(run(L, "assert(x.dtype == 'int32' and x[2][3] == 7) return x * 2, {}, 5"));
    luma_tensor *y = luma_test(L, 1);
    int32_t data[6] = {0};
    CHECK(y && luma_numel(y) == 6 && luma_read(S, y, data, sizeof data) == LUMA_OK);
    CHECK(data[0] == 14 && data[5] == 14);
    CHECK(luma_test(L, 2) == NULL && luma_test(L, 3) == NULL && luma_test(L, 9) == NULL);
    lua_newuserdatauv(L, 500, 0);
    lua_pushlightuserdata(L, data);
    CHECK(luma_test(L, -1) == NULL && luma_test(L, -2) == NULL);
    CHECK(run(L, "x:free() return x") && luma_test(L, 1)->storage == NULL);
    luma_tensor z = LUMA_NEW;
    CHECK(luma_full(S, &z, 2, shape, luma_integer(3).number, LUMA_INT32, "cpu") == LUMA_OK);
    luma_push_tensor(L, &z);
    CHECK(z.storage == NULL && luma_test(L, -1) != NULL);
    lua_setglobal(L, "z");
    CHECK(run(L, "assert(z:sum():item() == 18)"));
    lua_close(L);
}

static int takes_tensor(lua_State *L) {
    lua_pushinteger(L, luma_numel(luma_check(L, 1)));
    return 1;
}

/* What others hold of a state outlives it, and its limits. */
static void test_outliving(void) {
    luma_lua_limits limits = {.memory = (size_t)64 << 20};
    lua_State *L = open_state();
    struct DLManagedTensor *m = NULL;
    luma_lua_limit(L, &limits);
    CHECK(run(L, "x = luma.range(1, 1 << 16)"));
    lua_getglobal(L, "x");
    CHECK(luma_to_dlpack(luma_lua_state(L), &m, luma_check(L, -1)) == LUMA_OK);
    lua_close(L);
    luma_state *S = luma_open();
    luma_tensor y = LUMA_NEW;
    CHECK(luma_from_dlpack(S, &y, m) == LUMA_OK);
    CHECK(((int64_t *)luma_data(&y))[65535] == 65536);
    luma_release(S, &y);
    luma_close(S);
}

static void test_checking(void) {
    lua_State *L = open_state();
    lua_register(L, "size", takes_tensor);
    CHECK(run(L, "assert(size(luma.zeros(2, 3)) == 6)"));
    CHECK(raises(L, "size(5)", "bad argument #1 to 'size' (tensor expected, got number)"));
    CHECK(raises(L, "size(io.stdout)", "tensor expected"));
    CHECK(raises(L, "local x = luma.zeros(1) x:free() size(x)", "released"));
    lua_close(L);
}

static void test_two_states(void) {
    lua_State *A = open_state(), *B = open_state();
    CHECK(luma_lua_state(A) != luma_lua_state(B));
    CHECK(run(A, "luma.set_default_dtype 'float64' x = luma.rand(3)"));
    CHECK(run(B, "x = luma.ones(3) assert(x.dtype == 'float32')"));
    lua_close(A);
    CHECK(run(B, "assert((x + x):sum():item() == 6)"));
    lua_close(B);
}

static void test_opening_twice(void) {
    lua_State *L = open_state();
    CHECK(run(L, "x = luma.ones(2)"));
    lua_pushcfunction(L, luaopen_luma);
    lua_call(L, 0, 1);
    lua_setglobal(L, "again");
    CHECK(run(L, "assert((again.ones(2) + x)[1] == 2)"));
    lua_close(L);
}

/* ---- interrupts ---- */

static void test_interrupt(void) {
    lua_State *L = open_state();
    static volatile int flag;
    luma_lua_set_interrupt(L, &flag);
    CHECK(run(L, "x = luma.ones(300, 300)"));
    flag = 1;
    CHECK(raises(L, "x:matmul(x)", "interrupted"));
    CHECK(flag == 0);
    CHECK(run(L, "assert(x:matmul(x)[1][1] == 300)"));
    flag = 1;
    CHECK(raises(L, "y = luma.ones(1 << 22):exp()", "interrupted"));
    luma_lua_set_interrupt(L, NULL);
    CHECK(run(L, "y = luma.ones(1 << 22):exp()"));
    lua_close(L);
}

/* A hook that was there before is not taken for an interrupt, one that comes is. */
static void nothing(lua_State *L, lua_Debug *ar) {
    (void)L, (void)ar;
}

static void test_hooks(void) {
    lua_State *L = open_state();
    lua_sethook(L, nothing, LUA_MASKCOUNT, 1000);
    CHECK(run(L, "x = luma.ones(300, 300) x:matmul(x)"));
    lua_sethook(L, NULL, 0, 0);
    CHECK(run(L, "x:matmul(x)"));
    lua_close(L);
}

/* ---- memory ---- */

typedef struct {
    long left, live;
} budget;

/* Fails for good once the budget is spent. */
static void *meagre(void *ud, void *p, size_t osize, size_t nsize) {
    budget *b = ud;
    if (nsize == 0) {
        b->live -= p ? 1 : 0;
        free(p);
        return NULL;
    }
    if ((!p || nsize > osize) && b->left-- <= 0) return NULL;
    void *q = realloc(p, nsize);
    b->live += !p && q ? 1 : 0;
    return q;
}

static int open_and_use(lua_State *L) {
    luaL_requiref(L, "luma", luaopen_luma, 0);
    lua_setglobal(L, "luma");
    if (luaL_dostring(L, "local x = luma.tensor {{1, 2}, {3, 4}} return (x + x)[2][2]") != LUA_OK)
        return lua_error(L);
    return 1;
}

/* Opening with room for 0, 1, 2, ... allocations: an error or success, and nothing left behind. */
static void test_opening_without_memory(void) {
    bool done = false;
    long n = 0;
    for (; n < 20000 && !done; n += n < 200 ? 1 : 37) {
        budget b = {100000, 0};
        lua_State *L = lua_newstate(meagre, &b);
        b.left = n;
        lua_pushcfunction(L, open_and_use);
        done = lua_pcall(L, 0, 1, 0) == LUA_OK;
        b.left = 1000000;
        if (done) CHECK(lua_tonumber(L, -1) == 8);
        lua_close(L);
        CHECK(b.live == 0);
    }
    CHECK(done && n > 200);
}

static void test_closing(void) {
    lua_State *L = open_state();
    CHECK(run(L, "live, views = luma.ones(100), {} for i = 1, 9 do views[i] = live['1:' .. i] end "
                 "setmetatable({}, {__gc = function() late = luma.ones(3) + live end})"));
    lua_close(L);
    L = luaL_newstate();
    luaL_openlibs(L);
    CHECK(run(L, "early = setmetatable({}, {__gc = function(o) "
                 "result = {pcall(function() return o.x + 1 end)} "
                 "pcall(function() return luma.zeros(2) end) end})"));
    luaL_requiref(L, "luma", luaopen_luma, 1);
    CHECK(run(L, "early.x = luma.ones(2)"));
    lua_close(L);
}

int main(void) {
    test_handing_over();
    test_outliving();
    test_checking();
    test_two_states();
    test_opening_twice();
    test_interrupt();
    test_hooks();
    test_opening_without_memory();
    test_closing();
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
