/* threads_test.c -- two Lua states in two OS threads and a forked child compute what one computes
** alone, with coroutines. Also run under the thread sanitizer. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "luma_lua.h"

static const char script[] =
    "local luma = ...\n"
    "luma.manual_seed(5)\n"
    "local a, b = luma.rand(600, 600), luma.randn(600, 600)\n"
    "local products = coroutine.wrap(function()\n"
    "    for i = 1, 5 do coroutine.yield((a * i):matmul(b):sum():item()) end\n"
    "end)\n"
    "local total = 0\n"
    "for i = 1, 5 do\n"
    "    total = total + products() + (a + b / i):exp():sum():item()\n"
    "    local sorted, order = b:sort(1)\n"
    "    total = total + (sorted[i] * order[i]):sum():item()\n"
    "    total = total + b:t():contiguous():cumsum(1):amax():item()\n"
    "end\n"
    "return ('%.17g'):format(total)\n";

typedef struct {
    char text[256];
} answer;

static void *compute(void *out) {
    answer *a = out;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    int status = luaL_loadstring(L, script);
    if (status == LUA_OK) {
        luaL_requiref(L, "luma", luaopen_luma, 0);
        status = lua_pcall(L, 1, 1, 0);
    }
    snprintf(a->text, sizeof a->text, "%s%s",
             status == LUA_OK ? "" : "error: ", lua_tostring(L, -1));
    lua_close(L);
    return NULL;
}

static int failures;

static void check(const char *what, const answer *got, const answer *expected) {
    if (strcmp(got->text, expected->text) == 0) return;
    fprintf(stderr, "%s: %s, not %s\n", what, got->text, expected->text);
    failures++;
}

int main(void) {
    answer alone, together[2];
    compute(&alone);
    if (strncmp(alone.text, "error", 5) == 0) {
        fprintf(stderr, "%s\n", alone.text);
        return 1;
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, compute, &together[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        check("a state in a thread", &together[i], &alone);
    }
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a forked child */
    pid_t child = fork();
    if (child == 0) {
        compute(&together[0]);
        check("a forked child", &together[0], &alone);
        _exit(failures);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) failures++;
#endif
    if (failures == 0) printf("all compute %s\n", alone.text);
    return failures != 0;
}
