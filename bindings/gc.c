/* gc.c -- when to collect: Lua sees 200 bytes of a tensor whose elements are megabytes. Layer:
** bindings.
**
** Every storage and box adds to S->fresh. Each `stride` of it is worth a young collection: 512 KB where
** that costs little, so that temporaries give back memory that a core still has in its caches; up to
** max(32 MB, live / 4) where a step of the collector is dear (a large heap in incremental mode).
** A storage that would take a device past its limit fails once, softly:
** a full collection follows, limits become max(2 live, live + 64 MB) plus what the Lua heap is
** worth, and the operation is tried again. So the peak stays near twice the live set, whatever
** the mode of the host's collector, which is left alone. A device that is out of memory fails once
** in the same way (S->early), before it waits for streams and gives up its cache. */
#include <stdlib.h>
#include <time.h>

#include "binding.h"
#include "cache.h"

#define MB (INT64_C(1) << 20)
#define LEAST_STRIDE (MB / 2)

static int64_t live_bytes(const lm_ctx *c) {
    int64_t live = c->boxes * LM_BOX_COST;
    for (int i = 0; i < c->S->ndevices; i++)
        live += c->S->devices[i]->live;
    return live;
}

/* A full collection walks the whole Lua heap, so it must be worth as much. */
static int64_t heap_bytes(lua_State *L) {
    return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024;
}

static void set_step(lm_ctx *c) {
    c->S->fresh = 0;
    c->step_at = c->stress ? 0 : c->stride;
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A young collection, or one step in incremental mode. It may take a sixteenth of the time. */
static void step(lua_State *L, lm_ctx *c) {
    int64_t begin = nanoseconds(), passed = begin - c->stepped;
    lua_gc(L, LUA_GCSTEP, 0);
    c->stepped = nanoseconds();
    int64_t spent = c->stepped - begin, most = lm_max(32 * MB, live_bytes(c) / 4);
    if (spent > passed / 16) c->stride *= 2;
    if (spent < passed / 64) c->stride /= 2;
    c->stride = lm_clamp(c->stride, LEAST_STRIDE, most);
}

/* Where the host limits memory, collections come before half of what is left is taken: Lua's own
** collection in need releases no tensors. */
static void set_limits(lua_State *L, lm_ctx *c) {
    int64_t slack = lm_max(64 * MB, heap_bytes(L)), live = live_bytes(c);
    int64_t room = lm_limits_room(c) / 2;
    int64_t most = room < 0 ? 0 : room;
    c->limit = live + lm_min(lm_max(live, slack), most);
    for (int i = 0; i < c->S->ndevices; i++) {
        lm_device *d = c->S->devices[i];
        d->soft_limit = d->live + lm_min(lm_max(d->live, slack), most);
    }
}

void lm_gc_limit(lua_State *L, lm_ctx *c) {
    set_limits(L, c);
}

static void set_limitless(lm_ctx *c) {
    for (int i = 0; i < c->S->ndevices; i++)
        c->S->devices[i]->soft_limit = INT64_MAX;
    c->limit = INT64_MAX;
}

/* Inside a finalizer lua_gc does nothing and says -1; limits then grow without effect. */
static void collect(lua_State *L, lm_ctx *c) {
    lua_gc(L, LUA_GCCOLLECT);
    set_limits(L, c);
    set_step(c);
}

void lm_gc_open(lua_State *L, lm_ctx *c) {
    const char *stress = getenv("LUMA_GCSTRESS");
    c->stress = stress && *stress && *stress != '0';
    c->stride = LEAST_STRIDE;
    c->S->collects = true;
    set_limits(L, c);
    set_step(c);
}

void lm_gc_poll(lua_State *L, lm_ctx *c) {
    if (!lua_gc(L, LUA_GCISRUNNING)) {
        set_step(c);
        return;
    }
    bool was_stopped = c->limit == INT64_MAX;
    /* a device that was registered since the limits were set has none yet */
    if (!was_stopped && c->S->devices[c->S->ndevices - 1]->soft_limit == INT64_MAX)
        set_limits(L, c);
    if (!c->stress && !was_stopped) step(L, c);
    if (c->stress || was_stopped || live_bytes(c) > c->limit)
        collect(L, c);
    else
        set_step(c);
}

bool lm_gc_retry(lua_State *L, lm_ctx *c, int *tried) {
    luma_state *S = c->S;
    bool soft = S->soft;
    int now = soft ? 1 : 2;
    if (*tried & now) return false;
    *tried |= now;
    S->soft = false;
    if (soft && !lua_gc(L, LUA_GCISRUNNING)) {
        set_limitless(c);
        return true;
    }
    collect(L, c);
    /* The second try empties a cache itself where a device runs short again. What else failed has no
    ** such try. */
    S->lifted = true;
    S->again = soft;
    for (int i = 0; i < S->ndevices && !soft && !S->early; i++)
        lm_cache_empty(S->devices[i]->cache);
    S->early = false;
    return true;
}
