/* limits.c -- what a call of a script may take: memory of Lua and of tensors together, instructions,
** seconds; and the host's say. A count hook looks after Lua code, the polls of long operations after
** the rest. Layer: bindings. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "binding.h"
#include "cache.h"
#include "nodes.h"

#define STEP 1000 /* instructions from one look to the next, */
#define FEWEST 10 /* fewer once there was a string from LARGE bytes on: reading it is one */
#define LARGE (INT64_C(1) << 20)
#define READ (INT64_C(64) << 20) /* bytes that may be read from one look to the next */

/* Lives until Lua has freed its last byte. */
struct lm_limits {
    luma_lua_limits given;
    lm_budget budget;
    lm_ctx *ctx; /* NULL once the state closes */
    lua_Alloc alloc;
    void *alloc_ud;
    int64_t heap;    /* bytes of Lua's */
    int64_t longest; /* string that there was, if it was large; or as long to read */
    lm_nodes nodes;
    lua_State *running;
    int depth; /* calls under way, one in the other */
    pthread_t thread;
    int64_t instructions; /* spent */
    int64_t deadline;     /* nanoseconds; INT64_MAX: none */
    int end;              /* luma_lua_end; atomic, workers set it */
    bool charged;         /* the allocator is ours */
};

static void hook(lua_State *L, lua_Debug *ar);

/* The hook of a coroutine that a limit has ended: a mark. */
static void buried(lua_State *L, lua_Debug *ar) {
    (void)ar;
    luaL_error(L, "a limit has ended the coroutine");
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int end_of(const lm_limits *l) {
    return __atomic_load_n(&l->end, __ATOMIC_RELAXED);
}

/* The first limit that is passed is the one that is told. */
static void set_end(lm_limits *l, int end) {
    int none = LUMA_LUA_RAN;
    __atomic_compare_exchange_n(&l->end, &none, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool lm_limits_passed(const lm_ctx *c) {
    lm_limits *l = c->limits;
    if (!l || l->depth == 0) return false;
    if (end_of(l) != LUMA_LUA_RAN) return true;
    if (l->deadline != INT64_MAX && nanoseconds() > l->deadline) set_end(l, LUMA_LUA_SECONDS);
    if (l->given.interrupt && pthread_equal(l->thread, pthread_self()) &&
        l->given.interrupt(l->given.ctx))
        set_end(l, LUMA_LUA_INTERRUPTED);
    return end_of(l) != LUMA_LUA_RAN;
}

static int step_now(const lm_limits *l) {
    if (l->longest == 0) return STEP;
    int64_t n = READ / l->longest;
    return n < FEWEST ? FEWEST : (int)n;
}

/* Soon after what may have lasted. */
static void hook_soon(lm_limits *l) {
    if (l->running && l->depth > 0) lua_sethook(l->running, hook, LUA_MASKCOUNT, FEWEST);
}

lua_State *lm_limits_enter(lm_ctx *c, lua_State *L) {
    lm_limits *l = c->limits;
    if (!l) return NULL;
    lua_State *before = l->running;
    l->running = L;
    /* a coroutine that is older than the limits */
    if (L && lua_gethook(L) != hook && lua_gethook(L) != buried && lua_status(L) <= LUA_YIELD)
        lua_sethook(L, hook, LUA_MASKCOUNT, step_now(l));
    return before;
}

static void push_reason(lua_State *L, const lm_limits *l) {
    if (end_of(l) == LUMA_LUA_SECONDS)
        lua_pushfstring(L, "the time limit of %f s is over", l->given.seconds);
    else if (end_of(l) == LUMA_LUA_INSTRUCTIONS)
        lua_pushfstring(L, "the limit of %I instructions is over",
                        (LUAI_UACINT)l->given.instructions);
    else
        lua_pushliteral(L, "interrupted by the host");
}

/* From here on the hook comes at every instruction, so that no loop around pcall goes on. */
LM_NORETURN static void raise_end(lua_State *L, const lm_limits *l, int level) {
    lua_sethook(L, hook, LUA_MASKCOUNT, 1);
    luaL_where(L, level);
    push_reason(L, l);
    lua_concat(L, 2);
    lua_error(L);
    for (;;) { /* lua_error does not return */
    }
}

void lm_limits_check(lua_State *L, lm_ctx *c) {
    if (lm_limits_passed(c)) raise_end(L, c->limits, 1);
}

void lm_limits_charge(lm_ctx *c, int64_t instructions) {
    lm_limits *l = c->limits;
    if (!l || l->depth == 0 || l->given.instructions <= 0) return;
    l->instructions += instructions;
    if (l->instructions > l->given.instructions) set_end(l, LUMA_LUA_INSTRUCTIONS);
}

static void hook(lua_State *L, lua_Debug *ar) {
    (void)ar;
    lm_ctx *c = lm_ctx_find(L);
    if (!c || !c->limits) return;
    lm_limits *l = c->limits;
    int count = lua_gethookcount(L);
    lm_limits_charge(c, count);
    if (lm_limits_passed(c) && c->sandbox && lua_isyieldable(L)) {
        lua_yield(L, 0);
        return;
    }
    if (lm_limits_passed(c)) raise_end(L, l, 0); /* in a hook, level 0 is the function that ran */
    int step = step_now(l);
    if (count != step) lua_sethook(L, hook, LUA_MASKCOUNT, step);
}

int lm_limits_end(lua_State *L, lm_ctx *c) {
    if (c->sandbox && lua_isyieldable(L)) return lua_yield(L, 0);
    raise_end(L, c->limits, 1);
}

/* Its variables are not closed either: one that an error of the hook has ended keeps its hooks off. */
void lm_limits_bury(lua_State *L) {
    lua_sethook(L, buried, LUA_MASKCOUNT, 1);
}

bool lm_limits_buried(lua_State *L) {
    return lua_gethook(L) == buried;
}

/* ---- memory ---- */

int64_t lm_limits_room(const lm_ctx *c) {
    const lm_limits *l = c->limits;
    return l && l->charged ? l->budget.limit - l->budget.used : INT64_MAX;
}

/* What the cache keeps for tensors to come serves Lua too. */
static bool has_room(lm_limits *l, int64_t more) {
    lm_budget *b = &l->budget;
    if (more <= b->limit - b->used) return true;
    luma_state *S = l->ctx ? l->ctx->S : NULL;
    for (int i = 0; S && i < S->ndevices && more > b->limit - b->used; i++)
        lm_cache_empty(S->devices[i]->cache);
    return more <= b->limit - b->used;
}

/* A hash part that would not be full before the time is over. */
static bool is_too_slow(lm_limits *l, size_t nsize) {
    if (l->depth == 0 || l->deadline == INT64_MAX) return false;
    int64_t chain, cost = lm_nodes_cost(&l->nodes, nsize, &chain);
    /* about 12 ns a node, 1 ns a byte */
    if (chain * 12 > LARGE && chain * 12 > l->longest) l->longest = chain * 12;
    if (cost > 1000000) hook_soon(l);
    if (nanoseconds() + cost <= l->deadline) return false;
    if (cost > 0) set_end(l, LUMA_LUA_SECONDS);
    return cost > 0;
}

static void *charged(void *ud, void *p, size_t osize, size_t nsize) {
    lm_limits *l = ud;
    int64_t more = (int64_t)nsize - (int64_t)(p ? osize : 0);
    if (more >= LARGE && l->ctx && lm_limits_passed(l->ctx)) return NULL;
    if (!p && osize == 0 && is_too_slow(l, nsize)) return NULL;
    if (nsize > INT64_MAX || (more > 0 && !has_room(l, more))) {
        hook_soon(l); /* Lua collects everything before it gives up */
        return NULL;
    }
    void *q = l->alloc(l->alloc_ud, p, osize, nsize);
    if (!q && nsize > 0) return NULL;
    if (more >= LARGE) hook_soon(l);
    if (p) lm_nodes_remove(&l->nodes, p, osize);
    if (!p && osize == 0) lm_nodes_add(&l->nodes, q, nsize);
    /* of a new object Lua says the type in the place of the old size */
    if (!p && osize == LUA_TSTRING && more >= LARGE && more > l->longest) l->longest = more;
    l->heap += more;
    l->budget.used += more;
    if (l->heap == 0) lm_nodes_close(&l->nodes);
    if (l->heap == 0) free(l); /* Lua has freed the state itself, which comes last */
    return q;
}

static void charge_memory(lua_State *L, lm_ctx *c) {
    lm_limits *l = c->limits;
    l->budget.limit = l->given.memory > INT64_MAX ? INT64_MAX : (int64_t)l->given.memory;
    if (l->given.memory == 0) l->budget.limit = INT64_MAX;
    if (l->charged) return;
    lm_alloc_restore(c);
    l->alloc = lua_getallocf(L, &l->alloc_ud);
    l->heap = (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024 + lua_gc(L, LUA_GCCOUNTB);
    l->budget.used = l->heap;
    l->charged = true;
    lua_setallocf(L, charged, l);
    c->S->budget = &l->budget;
    for (int i = 0; i < c->S->ndevices; i++)
        lm_cache_set_budget(c->S->devices[i]->cache, &l->budget);
}

/* The allocator goes on counting, and frees the limits with the last byte. */
void lm_limits_close(lm_ctx *c) {
    lm_limits *l = c->limits;
    if (!l) return;
    l->ctx = NULL;
    l->depth = 0;
    c->limits = NULL;
    if (!l->charged) free(l);
}

/* ---- for hosts ---- */

static lm_ctx *need_ctx(lua_State *L) {
    lm_ctx *c = lm_ctx_find(L);
    if (!c || !c->S) luaL_error(L, "the luma module is not open");
    return c;
}

void luma_lua_limit(lua_State *L, const luma_lua_limits *limits) {
    lm_ctx *c = need_ctx(L);
    if (!c->limits) {
        c->limits = calloc(1, sizeof *c->limits);
        if (!c->limits) luaL_error(L, "not enough memory");
        c->limits->ctx = c;
    }
    c->limits->given = *limits;
    charge_memory(L, c);
    lm_gc_limit(L, c);
    lua_sethook(c->main, hook, LUA_MASKCOUNT, STEP);
    if (L != c->main) lua_sethook(L, hook, LUA_MASKCOUNT, STEP);
}

/* Without calling metamethods: those are the script's. */
static void make_string(lua_State *L) {
    if (lua_type(L, -1) == LUA_TSTRING) return;
    const char *type = luaL_typename(L, -1);
    if (lua_type(L, -1) == LUA_TNUMBER)
        lua_tolstring(L, -1, NULL);
    else
        lua_pushfstring(L, "(error object is a %s value)", type);
}

static int to_message(lua_State *L) {
    make_string(L);
    return 1;
}

static int to_reason(lua_State *L) {
    push_reason(L, lm_ctx_find(L)->limits);
    return 1;
}

static void begin(lua_State *L, lm_limits *l) {
    if (l->depth++ > 0) return;
    l->thread = pthread_self();
    l->running = L;
    l->instructions = 0;
    l->end = LUMA_LUA_RAN;
    double ns = l->given.seconds * 1e9;
    l->deadline = ns > 0 && ns < 9e18 ? nanoseconds() + (int64_t)ns : INT64_MAX;
    lua_sethook(L, hook, LUA_MASKCOUNT, step_now(l));
}

static int finish(lua_State *L, int status) {
    if (status == LUA_OK) return status;
    if (lua_type(L, -1) != LUA_TSTRING) {
        lua_pushcfunction(L, to_message);
        lua_insert(L, -2);
        if (lua_pcall(L, 1, 1, 0) != LUA_OK) status = LUA_ERRMEM;
    }
    return status;
}

int luma_lua_call(lua_State *L, int nargs, int nresults) {
    lm_ctx *c = lm_ctx_find(L);
    lm_limits *l = c ? c->limits : NULL;
    if (l) begin(L, l);
    int status = lua_pcall(L, nargs, nresults, 0);
    if (l && --l->depth == 0) l->running = NULL;
    /* a limit that was passed as the call came to its end: it has ended */
    if (l && l->depth == 0 && status == LUA_OK) l->end = LUMA_LUA_RAN;
    /* memory is refused when time is over; say what it was */
    if (status == LUA_ERRMEM && l && end_of(l) != LUMA_LUA_RAN) {
        lua_pop(L, 1);
        lua_pushcfunction(L, to_reason);
        if (lua_pcall(L, 0, 1, 0) == LUA_OK) status = LUA_ERRRUN;
    }
    return finish(L, status);
}

luma_lua_end luma_lua_ended(lua_State *L) {
    const lm_ctx *c = lm_ctx_find(L);
    return c && c->limits ? (luma_lua_end)end_of(c->limits) : LUMA_LUA_RAN;
}

typedef struct {
    lm_ctx *c;
    const char *text, *name;
    size_t left;
} text_reader;

/* The compiler has no hook: it is fed so little at a time that looking in between is enough. */
static const char *read_text(lua_State *L, void *ud, size_t *n) {
    text_reader *r = ud;
    const char *text = r->text;
    if (r->c) lm_limits_check(L, r->c);
    *n = r->left < 1024 ? r->left : 1024;
    r->text += *n;
    r->left -= *n;
    return *n ? text : NULL;
}

static int compile(lua_State *L) {
    text_reader *r = lua_touserdata(L, 1);
    if (lua_load(L, read_text, r, r->name, "t") != LUA_OK) return lua_error(L);
    return 1;
}

int luma_lua_load(lua_State *L, const char *text, size_t n, const char *name) {
    text_reader r = {lm_ctx_find(L), text, name ? name : "=script", n};
    if (!lua_checkstack(L, 3)) return LUA_ERRMEM;
    lua_pushcfunction(L, compile);
    lua_pushlightuserdata(L, &r);
    return luma_lua_call(L, 1, 1);
}
