/* memory.c -- what a script sees of the memory of devices: figures, a map of the blocks, limits, and a
** function that hears of allocations. Layer: bindings. */
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "cache.h"

/* Addresses wrap into negative integers beyond 2^63; devices have none there. */
static void set_address(lua_State *L, const char *key, uintptr_t address) {
    lm_set_integer(L, key, (int64_t)address);
}

/* Calls f for the device that argument arg names, or for all where there is none. */
static int for_devices(lua_State *L, const char *name, int arg, void (*f)(lm_cache *)) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), name);
    if (!lua_isnoneornil(L, arg)) {
        f(lm_arg_device(&k, arg)->cache);
        return 0;
    }
    for (int i = 0; i < k.c->S->ndevices; i++)
        f(k.c->S->devices[i]->cache);
    return 0;
}

/* ---- figures ---- */

/* Bytes, but for storages, segments, retries and ooms, which are counts. */
static int memory(lua_State *L) {
    lm_call k;
    lm_cache_figures f;
    lm_call_open(&k, L, lm_enter(L), "memory");
    lm_cache_stats(lm_arg_device(&k, 1)->cache, &f);
    lua_createtable(L, 0, 18);
#define FIGURE(name, stat)                                                                         \
    lm_set_integer(L, name, f.stat[LM_POOL_ALL].current);                                          \
    lm_set_integer(L, "peak_" name, f.stat[LM_POOL_ALL].peak);
    FIGURE("allocated", allocated_bytes)
    FIGURE("reserved", reserved_bytes)
    FIGURE("active", active_bytes)
    FIGURE("inactive_split", inactive_split_bytes)
    FIGURE("requested", requested_bytes)
    FIGURE("storages", allocation)
    FIGURE("segments", segment)
#undef FIGURE
    lm_set_integer(L, "largest_free", f.largest_free);
    lm_set_integer(L, "limit", f.limit);
    lm_set_integer(L, "retries", f.num_alloc_retries);
    lm_set_integer(L, "ooms", f.num_ooms);
    return 1;
}

static void set_stat(lua_State *L, const char *key, const lm_cache_stat *s) {
    lua_createtable(L, 0, 4);
    lm_set_integer(L, "current", s->current);
    lm_set_integer(L, "peak", s->peak);
    lm_set_integer(L, "allocated", s->allocated);
    lm_set_integer(L, "freed", s->freed);
    lua_setfield(L, -2, key);
}

/* {all =, small =, large = {allocation = {current =, peak =, allocated =, freed =}, ...}, ...} */
static int memory_stats(lua_State *L) {
    static const char *const pools[] = {
        [LM_POOL_ALL] = "all", [LM_POOL_SMALL] = "small", [LM_POOL_LARGE] = "large"};
    lm_call k;
    lm_cache_figures f;
    lm_call_open(&k, L, lm_enter(L), "memory_stats");
    lm_cache_stats(lm_arg_device(&k, 1)->cache, &f);
    lua_createtable(L, 0, LM_POOLS + 2);
    for (int pool = 0; pool < LM_POOLS; pool++) {
        lua_createtable(L, 0, 9);
#define STAT(name) set_stat(L, #name, &f.name[pool]);
        LM_CACHE_STATS(STAT)
#undef STAT
        lua_setfield(L, -2, pools[pool]);
    }
    lm_set_integer(L, "retries", f.num_alloc_retries);
    lm_set_integer(L, "ooms", f.num_ooms);
    return 1;
}

static int cache_info(lua_State *L) {
    lm_call k;
    lm_cache_figures f;
    size_t unused, total;
    lm_call_open(&k, L, lm_enter(L), "cache_info");
    lm_device *d = lm_arg_device(&k, 1);
    lm_cache_stats(d->cache, &f);
    lua_createtable(L, 0, 4);
    lm_set_integer(L, "free_cached",
                   f.reserved_bytes[LM_POOL_ALL].current - f.active_bytes[LM_POOL_ALL].current);
    lm_set_integer(L, "largest_block", f.largest_free);
    if (!d->ops->memory_info || !d->ops->memory_info(d, &unused, &total)) return 1;
    lm_set_integer(L, "device_free", (int64_t)unused);
    lm_set_integer(L, "device_total", (int64_t)total);
    return 1;
}

static int reset_peak(lua_State *L) {
    return for_devices(L, "reset_peak", 1, lm_cache_reset_peak);
}

static int reset_accumulated(lua_State *L) {
    return for_devices(L, "reset_accumulated", 1, lm_cache_reset_accumulated);
}

/* ---- a map of the blocks ---- */

/* Copied before anything is pushed: a finalizer may release tensors while tables are made. */
typedef struct {
    lm_cache_part *parts;
    size_t room, n; /* how many fit, how many there are */
} part_list;

static void take_part(void *ctx, const lm_cache_part *part) {
    part_list *list = ctx;
    if (list->n < list->room) list->parts[list->n] = *part;
    list->n++;
}

static void push_segment(lua_State *L, const lm_cache_part *part) {
    lua_createtable(L, 0, 9);
    set_address(L, "address", part->segment);
    lm_set_integer(L, "total_size", (int64_t)part->segment_size);
    lm_set_string(L, "segment_type", part->pool == LM_POOL_SMALL ? "small" : "large");
    set_address(L, "stream", (uintptr_t)part->stream);
}

static void push_block(lua_State *L, const lm_cache_part *part) {
    static const char *const states[] = {[LM_PART_INACTIVE] = "inactive",
                                         [LM_PART_ALLOCATED] = "active_allocated",
                                         [LM_PART_AWAITING_FREE] = "active_awaiting_free"};
    lua_createtable(L, 0, 4);
    set_address(L, "address", part->address);
    lm_set_integer(L, "size", (int64_t)part->size);
    lm_set_integer(L, "requested_size", (int64_t)part->requested);
    lm_set_string(L, "state", states[part->state]);
}

/* Completes the segment on top, whose list of blocks is below it: blocks[from .. to). */
static void push_blocks(lua_State *L, const part_list *list, size_t from, size_t to) {
    int64_t allocated = 0, active = 0, requested = 0;
    lua_createtable(L, (int)(to - from), 0);
    for (size_t i = from; i < to; i++) {
        const lm_cache_part *part = &list->parts[i];
        push_block(L, part);
        lua_rawseti(L, -2, (lua_Integer)(i - from + 1));
        if (part->state == LM_PART_ALLOCATED) allocated += (int64_t)part->size;
        if (part->state != LM_PART_INACTIVE) active += (int64_t)part->size;
        requested += (int64_t)part->requested;
    }
    lua_setfield(L, -2, "blocks");
    lm_set_integer(L, "allocated_size", allocated);
    lm_set_integer(L, "active_size", active);
    lm_set_integer(L, "requested_size", requested);
}

/* The fields are named as in PyTorch's snapshots. */
static int memory_snapshot(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "memory_snapshot");
    const lm_cache *c = lm_arg_device(&k, 1)->cache;
    part_list list = {NULL, 0, 0};
    for (;;) {
        list.n = 0;
        lm_cache_walk(c, take_part, &list);
        if (list.n <= list.room) break;
        list.room = list.n + 16;
        list.parts = lua_newuserdatauv(L, list.room * sizeof *list.parts, 0);
    }
    lua_newtable(L);
    lua_Integer n = 0;
    for (size_t from = 0, to; from < list.n; from = to) {
        const lm_cache_part *first = &list.parts[from];
        for (to = from; to < list.n && list.parts[to].segment == first->segment;)
            to++;
        push_segment(L, first);
        push_blocks(L, &list, from, to);
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* ---- limits ---- */

/* empty_cache([device]): of all of them without one. */
static int empty_cache(lua_State *L) {
    return for_devices(L, "empty_cache", 1, lm_cache_empty);
}

/* A float up to 1 is a share of all the memory that the device has. */
static int64_t share_of(lm_call *k, lm_device *d, double share) {
    size_t unused, total;
    if (!(share > 0)) lm_bad(k, 1, "a share above 0 or a number of bytes expected");
    if (!d->ops->memory_info || !d->ops->memory_info(d, &unused, &total))
        lm_bad(k, 1, "the memory of %s is not known: a number of bytes expected", d->name);
    int64_t n = (int64_t)((double)total * share);
    return n > 0 ? n : 1; /* 0 would be no limit */
}

/* bytes or a share (0 or nil: no limit) [, device] */
static int set_memory_limit(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_memory_limit");
    lm_device *d = lm_arg_device(&k, 2);
    int64_t n = 0;
    if (lua_type(L, 1) == LUA_TNUMBER && !lua_isinteger(L, 1) && lua_tonumber(L, 1) <= 1 &&
        lua_tonumber(L, 1) != 0)
        n = share_of(&k, d, lua_tonumber(L, 1));
    else if (!lua_isnoneornil(L, 1))
        n = lm_arg_integer(&k, 1, 1);
    if (n < 0) lm_bad(&k, 1, "bytes cannot be negative: %I", (LUAI_UACINT)n);
    lm_cache_set_limit(d->cache, (size_t)n);
    return 0;
}

/* ---- a function that hears of allocations ---- */

/* Lua cannot run in the middle of an operation, so events are kept until the next one begins. */
#define EVENTS_MAX 65536
struct lm_events {
    int n, room;
    int64_t lost;
    int done; /* of those that are being told */
    bool telling;
    luma_memory_event *list;
};

static const char callback_key;

static void keep_event(void *ctx, const luma_memory_event *event) {
    lm_ctx *c = ctx;
    lm_events *e = c->events;
    if (e->n == e->room) {
        int room = e->room ? 2 * e->room : 64;
        void *list = NULL;
        if (room <= EVENTS_MAX) list = realloc(e->list, (size_t)room * sizeof *e->list);
        if (!list) {
            e->lost++;
            return;
        }
        e->list = list;
        e->room = room;
    }
    e->list[e->n++] = *event;
    c->nevents = e->telling ? 0 : e->n;
}

static void tell_one(lua_State *L, const luma_memory_event *event) {
    static const char *const names[] = {[LUMA_MEMORY_ALLOC] = "alloc",
                                        [LUMA_MEMORY_FREE] = "free",
                                        [LUMA_MEMORY_FREED] = "freed",
                                        [LUMA_MEMORY_SEGMENT_ALLOC] = "segment_alloc",
                                        [LUMA_MEMORY_SEGMENT_FREE] = "segment_free",
                                        [LUMA_MEMORY_RETRY] = "retry",
                                        [LUMA_MEMORY_OOM] = "oom"};
    lua_rawgetp(L, LUA_REGISTRYINDEX, &callback_key);
    lua_pushstring(L, names[event->kind]);
    lua_pushstring(L, event->device);
    lua_pushinteger(L, (lua_Integer)event->nbytes);
    lua_pushinteger(L, (lua_Integer)event->address);
    lua_call(L, 4, 0);
}

/* Those that are there now; what the function itself causes comes the next time. */
static int tell_all(lua_State *L) {
    lm_ctx *c = lua_touserdata(L, 1);
    lm_events *e = c->events;
    int64_t lost = e->lost;
    e->lost = 0;
    for (int n = e->n; e->done < n && e->done < e->n;) {
        luma_memory_event event = e->list[e->done++];
        tell_one(L, &event);
    }
    if (lost == 0) return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &callback_key);
    lua_pushliteral(L, "lost");
    lua_pushliteral(L, "");
    lua_pushinteger(L, lost);
    lua_call(L, 3, 0);
    return 0;
}

static void forget_callback(lm_ctx *c) {
    luma_set_memory_callback(c->S, NULL, NULL);
    c->events->n = c->events->done = 0;
    c->events->lost = 0;
    c->nevents = 0;
}

void lm_events_tell(lua_State *L, lm_ctx *c) {
    lm_events *e = c->events;
    luaL_checkstack(L, 4, "memory callback");
    e->telling = true;
    e->done = 0;
    c->nevents = 0;
    lua_pushcfunction(L, tell_all);
    lua_pushlightuserdata(L, c);
    int status = lua_pcall(L, 1, 0, 0);
    e->telling = false;
    e->n -= e->done;
    memmove(e->list, e->list + e->done, (size_t)e->n * sizeof *e->list);
    c->nevents = e->n;
    if (status == LUA_OK) return;
    forget_callback(c);
    lua_error(L);
}

void lm_events_close(lm_ctx *c) {
    if (!c->events) return;
    forget_callback(c);
    free(c->events->list);
    free(c->events);
    c->events = NULL;
}

/* set_memory_callback(f): f(event, device, bytes, address) from now on; nil: no more. */
static int set_memory_callback(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_memory_callback");
    lm_ctx *c = k.c;
    bool wanted = !lua_isnoneornil(L, 1);
    if (wanted && lua_type(L, 1) != LUA_TFUNCTION) lm_bad_type(&k, 1, 1, "function");
    if (!c->events && !(c->events = calloc(1, sizeof *c->events)))
        return luaL_error(L, "not enough memory");
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &callback_key);
    forget_callback(c);
    if (wanted) luma_set_memory_callback(c->S, keep_event, c);
    return 0;
}

void lm_memory_open(lua_State *L, int module) {
    static const luaL_Reg functions[] = {{"memory", memory},
                                         {"memory_stats", memory_stats},
                                         {"memory_snapshot", memory_snapshot},
                                         {"cache_info", cache_info},
                                         {"reset_peak", reset_peak},
                                         {"reset_accumulated", reset_accumulated},
                                         {"empty_cache", empty_cache},
                                         {"set_memory_limit", set_memory_limit},
                                         {"set_memory_callback", set_memory_callback},
                                         {NULL, NULL}};
    lm_register(L, module, functions);
}
