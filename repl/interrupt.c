/* interrupt.c -- Ctrl-C stops Lua code by a hook and tensor operations by the flag that they poll.
** The first press raises one error where the program is, which pcall can catch. A further press
** during the same chunk raises in every frame until the chunk has ended; when none has had an effect
** for a second, as in a C function that never looks, it ends the process. Layer: repl. */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <lauxlib.h>

#include "luma_lua.h"

#define PATIENCE 1.0 /* seconds */

/* Coroutines that are being resumed, innermost first; each frame lives on the C stack of the call
** that resumes. A hook counts for one coroutine only, so the handler sets one on each. */
typedef struct frame {
    lua_State *L;
    struct frame *outer;
    /* the hook that was there before a press: of luma.profile or a debugger */
    lua_Hook hook;
    int mask, count;
} frame;

static frame main_frame;
static frame *volatile innermost = &main_frame;
static volatile int flag;
static volatile sig_atomic_t presses;
static volatile sig_atomic_t unheard; /* a press that no hook and no operation has noticed yet */
static struct timespec unheard_since, last_press;
static pthread_t main_thread;

static void stop_hook(lua_State *L, lua_Debug *ar);

static void set_stop_hook(frame *f) {
    if (lua_gethook(f->L) != stop_hook) {
        f->hook = lua_gethook(f->L);
        f->mask = lua_gethookmask(f->L);
        f->count = lua_gethookcount(f->L);
    }
    lua_sethook(f->L, stop_hook, LUA_MASKCOUNT, 1);
}

static void restore_hook(lua_State *L) {
    frame *f = innermost;
    while (f && f->L != L)
        f = f->outer;
    if (f && lua_gethook(L) == stop_hook) lua_sethook(L, f->hook, f->mask, f->count);
}

static void stop_hook(lua_State *L, lua_Debug *ar) {
    (void)ar;
    bool forced = presses > 1;
    unheard = 0;
    if (!forced) restore_hook(L);
    /* Whoever raised the error first has lowered the flag: one press, one error. */
    if (!forced && !flag) return;
    flag = forced;
    luaL_where(L, 0); /* in a hook, level 0 is the function that was running */
    lua_pushliteral(L, "interrupted");
    lua_concat(L, 2);
    lua_error(L);
}

static double seconds_between(const struct timespec *a, const struct timespec *b) {
    return (double)(b->tv_sec - a->tv_sec) + 1e-9 * (double)(b->tv_nsec - a->tv_nsec);
}

static void on_signal(int number) {
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, number);
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (unheard && flag && seconds_between(&unheard_since, &now) >= PATIENCE) interrupt_exit();
    if (!unheard || !flag) {
        /* heard by a script that went on: this one is of its own, unless the key is hammered */
        if (seconds_between(&last_press, &now) >= PATIENCE) presses = 0;
        unheard_since = now;
    }
    last_press = now;
    unheard = 1;
    presses = presses + 1;
    flag = 1;
    for (frame *f = innermost; f; f = f->outer)
        set_stop_hook(f);
}

void interrupt_clear(void) {
    presses = 0;
    unheard = 0;
    flag = 0;
    restore_hook(main_frame.L);
}

bool interrupt_seen(void) {
    return presses > 0;
}

void interrupt_exit(void) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}

/* Resumes co with the top narg values of L. Returns the number of results, which are on top of L,
** or -1 with the error there. */
static int resume(lua_State *L, lua_State *co, int narg) {
    if (!lua_checkstack(co, narg)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    lua_xmove(L, co, narg);
    frame f = {.L = co, .outer = innermost};
    int nresults = 0;
    innermost = &f;
    int status = lua_resume(co, L, narg, &nresults);
    innermost = f.outer;
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, nresults + 1)) {
        lua_pop(co, nresults);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, nresults);
    return nresults;
}

static int coroutine_resume(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co, 1, "coroutine");
    int n = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, n >= 0);
    if (n < 0) n = 1;
    lua_insert(L, -(n + 1));
    return n + 1;
}

static int wrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int n = resume(L, co, lua_gettop(L));
    if (n >= 0) return n;
    int status = lua_status(co);
    if (status != LUA_OK && status != LUA_YIELD) {
        /* Dead by an error: close what it left open, which may raise another one. */
        status = lua_resetthread(co);
        if (status != LUA_OK) lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutine_wrap(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

void interrupt_install(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"resume", coroutine_resume}, {"wrap", coroutine_wrap}, {NULL, NULL}};
    main_frame.L = L;
    main_thread = pthread_self();
    lua_getglobal(L, "coroutine");
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
    luma_lua_set_interrupt(L, &flag);
    /* Without SA_RESTART: a read at the prompt returns. */
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}
