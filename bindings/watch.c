/* watch.c -- operations as they are called, for luma.profile and logs: a hook of Lua's on calls and
** returns sees every function of the module and tells a function of lua/luma/profile.lua what ran, on
** what, which way and for how long. While nobody watches nothing is there that could cost. Layer:
** bindings. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "binding.h"
#include "cpu/cpu.h"
#include "cuda/info.h"

#define MOST 8 /* tensors of an operation that are looked at */

typedef struct {
    int n;
    char text[240];
} text;

struct lm_watch {
    bool on;
    /* The hook that ours stands for and calls, with its mask: a debugger's, or none. */
    lua_Hook hook;
    int mask;
    /* The operation that runs, the outermost of the module's functions; L NULL: none. */
    lua_State *L;
    const void *frame; /* its call, as Lua knows it */
    const char *name;  /* interned: the table of names or the code that calls holds it */
    text shapes, dtypes, where;
    bool mixed; /* several dtypes */
    int64_t nbytes;
    const char *device;
    int n;
    const luma_tensor *boxes[MOST];
    const lm_storage *storages[MOST]; /* compared, never looked into */
    luma_dtype dtype;
    int64_t copies[4];
    int ndevices;
    lm_cuda_counts counts[LM_MAX_DEVICES];
    double begin;
};

static const char names_key, teller_key, memory_key;

/* ---- text ---- */

static void clear(text *t) {
    t->n = 0;
    t->text[0] = '\0';
}

static void append(text *t, const char *s) {
    size_t room = sizeof t->text - (size_t)t->n - 1, n = strlen(s);
    if (n > room) n = room;
    memcpy(t->text + t->n, s, n);
    t->n += (int)n;
    t->text[t->n] = '\0';
}

static void append_word(text *t, const char *s) {
    if (t->n > 0) append(t, ", ");
    append(t, s);
}

static void append_shape(text *t, const luma_tensor *x) {
    char size[32];
    if (t->n > 0) append(t, " ");
    if (x->layout.ndim == 0) append(t, "0-d");
    for (int d = 0; d < x->layout.ndim; d++) {
        snprintf(size, sizeof size, d ? "x%lld" : "%lld", (long long)x->layout.shape[d]);
        append(t, size);
    }
}

/* ---- what an operation has ---- */

static void add_tensor(lm_watch *w, const luma_tensor *x) {
    append_shape(&w->shapes, x);
    if (w->dtypes.n > 0) append(&w->dtypes, " ");
    append(&w->dtypes, luma_dtype_name(x->dtype));
    w->mixed = w->mixed || (w->n > 0 && x->dtype != w->dtype);
    w->dtype = x->dtype;
    w->nbytes += luma_numel(x) * (int64_t)lm_dtypes[x->dtype].size;
    w->device = lm_device_of(x)->name;
    if (w->n < MOST) {
        w->boxes[w->n] = x;
        w->storages[w->n] = x->storage;
    }
    w->n++;
}

/* The tensor at the top, or those of the list there. */
static void add_value(lua_State *L, lm_watch *w) {
    int idx = lua_gettop(L);
    const luma_tensor *x = lm_box_test(L, idx);
    if (x && x->storage) add_tensor(w, x);
    if (!lua_istable(L, idx)) return;
    for (int i = 1; i <= MOST && lua_rawgeti(L, idx, i) != LUA_TNIL; i++) {
        x = lm_box_test(L, -1);
        if (x && x->storage) add_tensor(w, x);
        lua_settop(L, idx);
    }
    lua_settop(L, idx);
}

static void add_values(lua_State *L, lua_Debug *ar, lm_watch *w) {
    for (int i = 0; i < ar->ntransfer && i < MOST; i++) {
        if (!lua_getlocal(L, ar, ar->ftransfer + i)) return;
        add_value(L, w);
        lua_pop(L, 1);
    }
}

/* The line of the script: the innermost that is not in luma's own files. */
static void find_line(lua_State *L, text *where) {
    lua_Debug ar;
    char line[32];
    clear(where);
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0 || strncmp(ar.source, "=luma/", 6) == 0) continue;
        snprintf(line, sizeof line, ":%d", ar.currentline);
        append(where, ar.short_src);
        append(where, line);
        return;
    }
}

/* Waits for the devices, so that times are those of the work. False: with an error of that work. */
static bool wait(lm_ctx *c) {
    for (int i = 1; i < c->S->ndevices; i++) {
        lm_device *d = c->S->devices[i];
        if (d->ops->synchronize(c->S, d) != LUMA_OK) return false;
    }
    return true;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the way that was taken ---- */

static void read_copies(const luma_state *S, int64_t copies[4]) {
    copies[0] = S->copies.shared;
    copies[1] = S->copies.memcpy;
    copies[2] = S->copies.copy2d;
    copies[3] = S->copies.strided;
}

static void append_times(text *t, const char *way, int64_t n) {
    char times[32];
    if (n <= 0) return;
    append_word(t, way);
    snprintf(times, sizeof times, " x %lld", (long long)n);
    if (n > 1) append(t, times);
}

/* Whether the results are views of what was given. */
static bool gave_view(const lm_watch *w, int ngiven) {
    for (int i = ngiven; i < w->n && i < MOST; i++) {
        for (int j = 0; j < ngiven && j < MOST; j++) {
            if (w->storages[i] == w->storages[j]) return w->boxes[i] != w->boxes[j];
        }
    }
    return false;
}

/* Copies by their path, kernels and calls of the driver; else a view, or kernels of the CPU. */
static void find_path(lm_ctx *c, const lm_watch *w, int ngiven, text *path) {
    static const char *const ways[4] = {"shared", "memcpy", "copy2d", "strided"};
    int64_t copies[4];
    clear(path);
    read_copies(c->S, copies);
    for (int i = 0; i < 4; i++)
        append_times(path, ways[i], copies[i] - w->copies[i]);
    for (int i = 1; i < c->S->ndevices; i++) {
        lm_cuda_counts now, zero = {0};
        const lm_cuda_counts *then = i < w->ndevices ? &w->counts[i] : &zero;
        lm_cuda_count_calls(c->S->devices[i], &now);
        append_times(path, "cublas", now.products_blas - then->products_blas);
        append_times(path, "kernel", now.launches - then->launches);
        append_times(path, "transfer", now.copies - then->copies);
    }
    if (path->n > 0) return;
    append(path, gave_view(w, ngiven)                         ? "view"
                 : w->device && strcmp(w->device, "cpu") != 0 ? "driver"
                                                              : lm_level_now()->name);
}

/* ---- the operation begins and ends ---- */

static void begin(lua_State *L, lua_Debug *ar, lm_ctx *c, const char *name) {
    lm_watch *w = c->watch;
    clear(&w->shapes);
    clear(&w->dtypes);
    w->mixed = false;
    w->nbytes = 0;
    w->device = NULL;
    w->n = 0;
    w->name = name;
    add_values(L, ar, w);
    find_line(L, &w->where);
    if (!wait(c)) /* of an operation before; for the copy see lm_raise */
        luaL_error(L, "%s", lua_pushstring(L, luma_message(c->S)));
    read_copies(c->S, w->copies);
    w->ndevices = c->S->ndevices;
    for (int i = 1; i < w->ndevices; i++)
        lm_cuda_count_calls(c->S->devices[i], &w->counts[i]);
    w->frame = ar->i_ci;
    w->L = L;
    w->begin = seconds();
}

static void tell(lua_State *L, const lm_watch *w, const char *path, double took, bool failed) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &teller_key);
    lua_pushstring(L, w->name);
    lua_pushstring(L, path);
    lua_pushstring(L, w->shapes.text);
    lua_pushstring(L, w->mixed || w->n == 0 ? w->dtypes.text : luma_dtype_name(w->dtype));
    lua_pushstring(L, w->device ? w->device : "");
    lua_pushinteger(L, w->nbytes);
    lua_pushnumber(L, took);
    lua_pushstring(L, w->where.text);
    lua_pushboolean(L, failed);
    lua_call(L, 9, 0);
}

/* What has ended without a return has raised an error. */
static void end_failed(lua_State *L, lm_watch *w) {
    w->L = NULL;
    if (w->n > 0) tell(L, w, "", seconds() - w->begin, true);
}

static void end(lua_State *L, lua_Debug *ar, lm_ctx *c) {
    lm_watch *w = c->watch;
    text path;
    int ngiven = w->n;
    bool good = wait(c);
    double took = seconds() - w->begin;
    w->L = NULL;
    if (!good) {
        lua_pushstring(L, luma_message(c->S));
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
        tell(L, w, "", took, true);
        lua_error(L);
    }
    lua_getinfo(L, "r", ar);
    int nshapes = w->shapes.n, ndtypes = w->dtypes.n;
    append(&w->shapes, ngiven > 0 ? " ->" : "->");
    append(&w->dtypes, ngiven > 0 ? " ->" : "->");
    add_values(L, ar, w);
    if (w->n == 0) return; /* no tensor in it */
    if (w->n == ngiven) w->shapes.text[nshapes] = w->dtypes.text[ndtypes] = '\0';
    find_path(c, w, ngiven, &path);
    if (strcmp(path.text, "view") == 0 || strcmp(path.text, "shared") == 0) w->nbytes = 0;
    tell(L, w, path.text, took, false);
}

/* ---- the hook ---- */

/* The name under which the function on top is told of; NULL: it is none of ours, or no operation. */
static const char *name_of(lua_State *L, lua_Debug *ar, lm_ctx *c) {
    int f = lua_gettop(L);
    if (!lua_getupvalue(L, f, 1) || lua_touserdata(L, -1) != c) return NULL;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &names_key);
    lua_pushvalue(L, f);
    lua_rawget(L, -2);
    if (lua_isstring(L, -1)) return lua_tostring(L, -1);
    if (lua_isboolean(L, -1)) return NULL;
    lua_getinfo(L, "n", ar);
    if (strcmp(ar->namewhat, "for iterator") == 0) return "pairs";
    return ar->name ? ar->name : "?";
}

/* x.name and x:name() look names up; "2:3" is an operation. */
static bool looks_up(lua_State *L, lua_Debug *ar, const char *name) {
    bool word = false;
    if (strcmp(name, "index") != 0 || !lua_getlocal(L, ar, 2)) return false;
    if (lua_type(L, -1) == LUA_TSTRING) {
        char letter = lua_tostring(L, -1)[0];
        word =
            letter == '_' || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    }
    lua_pop(L, 1);
    return word;
}

/* Whether the operation that was begun is still under way below the call that is new. */
static bool is_under_way(lua_State *L, const lm_watch *w) {
    lua_Debug ar;
    if (w->L != L) return false;
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        if (ar.i_ci == w->frame) return true;
    }
    return false;
}

static bool install(lua_State *L, lm_watch *w);

/* A coroutine that is about to be resumed is watched too: argument 1, or what coroutine.wrap made. */
static void follow(lua_State *L, lua_Debug *ar, lm_watch *w) {
    int f = lua_gettop(L);
    if (lua_getupvalue(L, f, 1) && lua_isthread(L, -1)) install(lua_tothread(L, -1), w);
    if (ar->ntransfer > 0 && lua_getlocal(L, ar, 1) && lua_isthread(L, -1))
        install(lua_tothread(L, -1), w);
    lua_settop(L, f);
}

static void on_call(lua_State *L, lua_Debug *ar, lm_ctx *c) {
    lm_watch *w = c->watch;
    int top = lua_gettop(L);
    if (w->L == L && w->frame == ar->i_ci) end_failed(L, w); /* its place is taken */
    lua_getinfo(L, "fr", ar);
    if (lua_iscfunction(L, -1)) {
        follow(L, ar, w);
        const char *name = name_of(L, ar, c);
        if (name && !looks_up(L, ar, name) && !(w->L && is_under_way(L, w))) {
            if (w->L) end_failed(L, w);
            lua_settop(L, top);
            begin(L, ar, c, name);
        }
    }
    lua_settop(L, top);
}

static void restore(lua_State *L, const lm_watch *w);

static void hook(lua_State *L, lua_Debug *ar) {
    lm_ctx *c = lm_ctx_find(L);
    lm_watch *w = c ? c->watch : NULL;
    if (!w) return;
    static const int masks[] = {[LUA_HOOKCALL] = LUA_MASKCALL,
                                [LUA_HOOKRET] = LUA_MASKRET,
                                [LUA_HOOKLINE] = LUA_MASKLINE,
                                [LUA_HOOKCOUNT] = LUA_MASKCOUNT,
                                [LUA_HOOKTAILCALL] = LUA_MASKCALL};
    if (w->hook && (w->mask & masks[ar->event])) w->hook(L, ar);
    if (!w->on || !c->S) {
        restore(L, w);
        return;
    }
    luaL_checkstack(L, 20, NULL);
    if (ar->event == LUA_HOOKCALL || ar->event == LUA_HOOKTAILCALL)
        on_call(L, ar, c);
    else if (ar->event == LUA_HOOKRET && w->L == L && w->frame == ar->i_ci)
        end(L, ar, c);
}

/* Hooks L, unless it has a hook that cannot be stood for. */
static bool install(lua_State *L, lm_watch *w) {
    lua_Hook there = lua_gethook(L);
    int mask = lua_gethookmask(L);
    if (there == hook) return true;
    if (there && ((mask & LUA_MASKCOUNT) || (w->hook && w->hook != there))) return false;
    if (there) {
        w->hook = there;
        w->mask = mask;
    }
    lua_sethook(L, hook, (there ? mask : 0) | LUA_MASKCALL | LUA_MASKRET, 0);
    return true;
}

/* Other coroutines do so at their next call. */
static void restore(lua_State *L, const lm_watch *w) {
    if (lua_gethook(L) == hook) lua_sethook(L, w->hook, w->hook ? w->mask : 0, 0);
}

/* ---- for Lua ---- */

/* watch(teller, names): teller(name, path, shapes, dtypes, device, bytes, seconds, line, failed) after
** every operation from now on. names: of functions; false for what is no operation. watch(): no
** more. What was begun and has failed is told of first. */
static int watch(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    if (!c->watch) {
        lm_watch *made = lua_newuserdatauv(L, sizeof *made, 0);
        memset(made, 0, sizeof *made);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &memory_key); /* without memory it is nobody's */
        c->watch = made;
    }
    lm_watch *w = c->watch;
    if (w->on && w->L && !is_under_way(L, w)) end_failed(L, w);
    w->on = !lua_isnoneornil(L, 1);
    if (!w->on) {
        w->L = NULL;
        restore(L, w);
        restore(c->main, w);
        return 0;
    }
    lua_settop(L, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &names_key);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &teller_key);
    if (lua_gethook(L) != hook && lua_gethook(c->main) != hook) w->hook = NULL;
    if (!install(L, w)) {
        w->on = false;
        lua_pushliteral(
            L, "operations cannot be watched: a hook counts instructions, as a host's limits do");
        return lua_error(L);
    }
    install(c->main, w);
    return 0;
}

void lm_watch_open(lua_State *L, int meta) {
    static const luaL_Reg functions[] = {{"watch", watch}, {NULL, NULL}};
    lm_register(L, meta, functions);
}
