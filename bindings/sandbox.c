/* sandbox.c -- Lua's globals for scripts that nobody vouches for, and where their text goes. What can
** last in C looks at the limits; what a limit raises is caught by nobody. Layer: bindings. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lualib.h>

#include "binding.h"

#define MAX_MOVED 10000000      /* entries that one call of table's functions walks */
#define MAX_REPEATED (1u << 28) /* bytes of string.rep */
#define MAX_FORMATTED 250       /* values of string.format */
#define MAX_DATE 1000           /* bytes of the format of os.date */
#define NEXT_CHECK 16           /* calls of next from one look at the limits to the next */

/* Every function here has ctx as its first upvalue; the second is Lua's own of that name. */
static lm_ctx *ctx_of(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* Goes on as Lua's function, in the same call, so that its errors read as ever. */
static int go_on(lua_State *L) {
    return lua_tocfunction(L, lua_upvalueindex(2))(L);
}

static int checked(lua_State *L) {
    lm_limits_check(L, ctx_of(L));
    return go_on(L);
}

/* ---- text ------------------------------------------------------------------------------------ */

void lm_text_put(const lm_ctx *c, luma_lua_text kind, const char *text, size_t n) {
    if (c->text) c->text(c->text_ctx, kind, text, n);
}

static int print(lua_State *L) {
    int n = lua_gettop(L);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (int i = 1; i <= n; i++) {
        if (i > 1) luaL_addchar(&b, '\t');
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, '\n');
    luaL_pushresult(&b);
    size_t size;
    const char *text = lua_tolstring(L, -1, &size);
    lm_text_put(ctx_of(L), LUMA_LUA_PRINT, text, size);
    return 0;
}

void lm_push_print(lua_State *L, lm_ctx *c) {
    lua_pushlightuserdata(L, c);
    lua_pushcclosure(L, print, 1);
}

/* (file, text...) */
static int log_text(lua_State *L) {
    for (int i = 2; i <= lua_gettop(L); i++) {
        size_t n;
        const char *text = luaL_checklstring(L, i, &n);
        lm_text_put(ctx_of(L), LUMA_LUA_LOG, text, n);
    }
    return 0;
}

void lm_push_io(lua_State *L, lm_ctx *c) {
    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, 1);
    lua_pushlightuserdata(L, c);
    lua_pushcclosure(L, log_text, 1);
    lua_setfield(L, -2, "write");
    lua_setfield(L, -2, "stderr");
}

/* Lua gives a warning in pieces. What begins with @ is for Lua's own switch. */
static void take_warning(void *ud, const char *text, int more) {
    lm_ctx *c = ud;
    size_t n = strlen(text), room = sizeof c->warning - c->nwarning;
    if (n > room) n = room;
    memcpy(c->warning + c->nwarning, text, n);
    c->nwarning += n;
    if (more) return;
    if (c->warning[0] != '@' || c->nwarning == 0)
        lm_text_put(c, LUMA_LUA_WARNING, c->warning, c->nwarning);
    c->nwarning = 0;
}

void luma_lua_set_text(lua_State *L, luma_lua_text_fn *f, void *ctx) {
    lm_ctx *c = lm_ctx_find(L);
    if (!c || !c->S) luaL_error(L, "the luma module is not open");
    c->text = f;
    c->text_ctx = ctx;
    c->nwarning = 0;
    lua_setwarnf(L, take_warning, c);
}

static int denied(lua_State *L) {
    return luaL_error(L, "%s is switched off by the host", lua_tostring(L, lua_upvalueindex(1)));
}

void lm_push_denied(lua_State *L, const char *name) {
    lua_pushstring(L, name);
    lua_pushcclosure(L, denied, 1);
}

/* ---- calls that catch errors ----------------------------------------------------------------- */

/* k: results that were there before the call. */
static int end_pcall(lua_State *L, int status, lua_KContext k) {
    if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - (int)k;
    if (lm_limits_passed(ctx_of(L))) return lm_limits_end(L, ctx_of(L));
    lua_pushboolean(L, 0);
    lua_pushvalue(L, -2);
    return 2;
}

static int protected_call(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, end_pcall);
    return end_pcall(L, status, 0);
}

/* The handler runs when the error has left: inside, in a hook, it could not be stopped. */
static int end_xpcall(lua_State *L, int status, lua_KContext k) {
    if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - (int)k;
    if (lm_limits_passed(ctx_of(L))) return lm_limits_end(L, ctx_of(L));
    lua_pushvalue(L, 2);
    lua_insert(L, -2);
    lua_pcall(L, 1, 1, 0);
    if (lm_limits_passed(ctx_of(L))) return lm_limits_end(L, ctx_of(L));
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int protected_call_with(lua_State *L) {
    int n = lua_gettop(L);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_pushboolean(L, 1);
    lua_pushvalue(L, 1);
    lua_rotate(L, 3, 2);
    int status = lua_pcallk(L, n - 2, LUA_MULTRET, 0, 2, end_xpcall);
    return end_xpcall(L, status, 2);
}

/* ---- coroutines ------------------------------------------------------------------------------ */

static lua_State *check_coroutine(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co, 1, "coroutine");
    return co;
}

enum { FAILED_HERE = -1, ENDED = -2 };

/* The number of results on top of L; or FAILED_HERE with the error there, or ENDED by a limit. */
static int resume(lua_State *L, lua_State *co, int narg) {
    lm_ctx *c = ctx_of(L);
    if (lm_limits_buried(co)) {
        lua_pushliteral(L, "cannot resume dead coroutine");
        return FAILED_HERE;
    }
    if (!lua_checkstack(co, narg)) {
        lua_pushliteral(L, "too many arguments to resume");
        return FAILED_HERE;
    }
    lua_xmove(L, co, narg);
    int n = 0;
    lua_State *before = lm_limits_enter(c, co);
    int status = lua_resume(co, L, narg, &n);
    lm_limits_enter(c, before);
    if (lm_limits_passed(c)) {
        if (lua_status(co) != LUA_OK) lm_limits_bury(co);
        return ENDED;
    }
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return FAILED_HERE;
    }
    if (!lua_checkstack(L, n + 1)) {
        lua_pop(co, n);
        lua_pushliteral(L, "too many results to resume");
        return FAILED_HERE;
    }
    lua_xmove(co, L, n);
    return n;
}

static int coroutine_resume(lua_State *L) {
    lua_State *co = check_coroutine(L);
    int n = resume(L, co, lua_gettop(L) - 1);
    if (n == ENDED) return lm_limits_end(L, ctx_of(L));
    lua_pushboolean(L, n >= 0);
    if (n < 0) n = 1;
    lua_insert(L, -(n + 1));
    return n + 1;
}

/* A new thread costs Lua about as much as these, and may end before its hook comes. */
static int coroutine_create(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lm_limits_charge(ctx_of(L), 1000);
    lm_limits_check(L, ctx_of(L));
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

typedef enum { DEAD, SUSPENDED, BUSY } state_of_coroutine;
static state_of_coroutine state_of(lua_State *L, lua_State *co) {
    lua_Debug ar;
    if (L == co) return BUSY;
    if (lua_status(co) == LUA_YIELD) return SUSPENDED;
    if (lua_status(co) != LUA_OK) return DEAD;
    if (lua_getstack(co, 0, &ar)) return BUSY;
    return lua_gettop(co) == 0 ? DEAD : SUSPENDED;
}

/* Closes the variables of co, which is not busy; the error of one of them is left on top of L. */
static bool close_variables(lua_State *L, lua_State *co) {
    lm_ctx *c = ctx_of(L);
    if (lm_limits_buried(co)) {
        lua_pushliteral(L, "a limit has ended the coroutine");
        return false;
    }
    lua_State *before = lm_limits_enter(c, co);
    int status = lua_resetthread(co);
    lm_limits_enter(c, before);
    if (status != LUA_OK && lm_limits_passed(c)) lm_limits_bury(co);
    lm_limits_check(L, c);
    if (status == LUA_OK) return true;
    lua_xmove(co, L, 1);
    return false;
}

static int coroutine_close(lua_State *L) {
    lua_State *co = check_coroutine(L);
    if (state_of(L, co) == BUSY) return luaL_error(L, "cannot close a running coroutine");
    bool good = close_variables(L, co);
    lua_pushboolean(L, good);
    if (good) return 1;
    lua_insert(L, -2);
    return 2;
}

/* Upvalue 2: the coroutine. */
static int wrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(2));
    int n = resume(L, co, lua_gettop(L));
    if (n >= 0) return n;
    if (n == ENDED) return lm_limits_end(L, ctx_of(L));
    if (lua_status(co) > LUA_YIELD) { /* an error of its own: its variables may replace it */
        lua_pop(L, 1);
        if (close_variables(L, co)) lua_pushnil(L);
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutine_wrap(lua_State *L) {
    coroutine_create(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, -2);
    lua_pushcclosure(L, wrapped, 2);
    return 1;
}

/* ---- load ------------------------------------------------------------------------------------ */

#define PIECE 1024  /* bytes that the compiler, which has no hook, is given at a time */
#define READ_SLOT 5 /* of the stack: the text that is being read */

typedef struct {
    lm_ctx *c;
    const char *text;
    size_t left;
    bool called; /* pieces come from the function at argument 1 */
} reader;

static const char *read_piece(lua_State *L, void *ud, size_t *n) {
    reader *r = ud;
    lm_limits_check(L, r->c);
    if (r->left == 0 && r->called) {
        luaL_checkstack(L, 2, "too many nested functions");
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "reader function must return a string");
        lua_replace(L, READ_SLOT);
        r->text = lua_isnil(L, READ_SLOT) ? NULL : lua_tolstring(L, READ_SLOT, &r->left);
    }
    const char *text = r->text;
    *n = r->left < PIECE ? r->left : PIECE;
    r->text += *n;
    r->left -= *n;
    return *n ? text : NULL;
}

/* load(text or function [, name [, mode [, env]]]), of text alone */
static int load_text(lua_State *L) {
    reader r = {.c = ctx_of(L)};
    const char *name = "=(load)", *mode = luaL_optstring(L, 3, "bt");
    bool has_env = !lua_isnone(L, 4);
    lua_settop(L, READ_SLOT);
    if (lua_type(L, 1) == LUA_TSTRING) {
        r.text = lua_tolstring(L, 1, &r.left);
        name = luaL_optstring(L, 2, r.text);
    } else {
        luaL_checktype(L, 1, LUA_TFUNCTION);
        name = luaL_optstring(L, 2, name);
        r.called = true;
    }
    if (!strchr(mode, 't')) return luaL_error(L, "binary chunks are switched off by the host");
    int status = lua_load(L, read_piece, &r, name, "t");
    lm_limits_check(L, r.c);
    if (status != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 4);
        if (!lua_setupvalue(L, -2, 1)) lua_pop(L, 1);
    }
    return 1;
}

/* ---- the rest of the base library ------------------------------------------------------------ */

/* A look for the next entry may pass any number of empty ones. Upvalue 3: calls. */
static int next_entry(lua_State *L) {
    lua_Integer n = lua_tointeger(L, lua_upvalueindex(3)) + 1;
    if (n == NEXT_CHECK) {
        lm_limits_check(L, ctx_of(L));
        n = 0;
    }
    lua_pushinteger(L, n);
    lua_replace(L, lua_upvalueindex(3));
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_next(L, 1)) return 2;
    lua_pushnil(L);
    return 1;
}

/* Upvalue 2: next. */
static int pairs(lua_State *L) {
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static void open_next(lua_State *L, lm_ctx *c) {
    lua_pushlightuserdata(L, c);
    lua_pushnil(L);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, next_entry, 3);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "next");
    lua_pushlightuserdata(L, c);
    lua_insert(L, -2);
    lua_pushcclosure(L, pairs, 2);
    lua_setfield(L, -2, "pairs");
}

/* To mark tables with weak keys the collector goes through all of them as often as there are, in the
** worst of orders, and nothing can stop it: with 30 MB of them for minutes. So scripts have none. The
** collector knows "__mode" by the address of the one string of that text; with another text in it
** what scripts call "__mode" is a string like any other. */
static int hide_mode(lua_State *L) {
    lua_pushliteral(L, "__mode");
    size_t n;
    char *text = (char *)(uintptr_t)lua_tolstring(L, -1, &n);
    if (getentropy(text, n) != 0) return luaL_error(L, "there is no entropy");
    return 0;
}

/* Finalizers run without hooks: no limit would reach one. */
static int set_metatable(lua_State *L) {
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL) return luaL_error(L, "__gc is switched off by the host");
        lua_pop(L, 1);
    }
    return go_on(L);
}

static int collect_garbage(lua_State *L) {
    static const char *const options[] = {"collect", "step", "count", "isrunning", NULL};
    int option = luaL_checkoption(L, 1, "collect", options);
    lm_limits_check(L, ctx_of(L));
    if (option == 2) {
        int k = lua_gc(L, LUA_GCCOUNT), rest = lua_gc(L, LUA_GCCOUNTB);
        lua_pushnumber(L, (lua_Number)k + (lua_Number)rest / 1024);
    } else if (option == 3) {
        lua_pushboolean(L, 1);
    } else {
        lua_gc(L, LUA_GCCOLLECT);
        lua_pushinteger(L, 0);
    }
    return 1;
}

static int require_luma(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    if (strcmp(name, "luma") != 0)
        return luaL_error(L, "module '%s' not found: there is 'luma'", name);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "luma");
    return 1;
}

/* ---- string and table ------------------------------------------------------------------------ */

static int repeat(lua_State *L) {
    size_t n, nsep;
    const char *s = luaL_checklstring(L, 1, &n);
    lua_Integer times = luaL_checkinteger(L, 2);
    const char *sep = luaL_optlstring(L, 3, "", &nsep);
    lm_limits_check(L, ctx_of(L));
    if (times <= 0 || n + nsep == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (n + nsep > MAX_REPEATED || (size_t)times > MAX_REPEATED / (n + nsep))
        return luaL_error(L, "resulting string too large");
    luaL_Buffer b;
    size_t all = (size_t)times * (n + nsep) - nsep;
    char *p = luaL_buffinitsize(L, &b, all);
    for (; times > 0; times--) {
        memcpy(p, s, n);
        p += n;
        if (times > 1) memcpy(p, sep, nsep);
        if (times > 1) p += nsep;
    }
    luaL_pushresultsize(&b, all);
    return 1;
}

static int date(lua_State *L) {
    size_t n;
    luaL_optlstring(L, 1, "", &n);
    luaL_argcheck(L, n <= MAX_DATE, 1, "the format is too long");
    return go_on(L);
}

static int format(lua_State *L) {
    luaL_argcheck(L, lua_gettop(L) <= MAX_FORMATTED + 1, MAX_FORMATTED + 2, "too many values");
    return checked(L);
}

static int64_t length(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    return luaL_len(L, 1);
}

/* first .. last of a list are about to be walked. */
static void check_walk(lua_State *L, int64_t first, int64_t last) {
    int64_t n;
    lm_limits_check(L, ctx_of(L));
    if (last < first) return;
    if (__builtin_sub_overflow(last, first, &n) || n >= MAX_MOVED)
        luaL_error(L, "too many elements: at most %d at a time", MAX_MOVED);
}

static int insert(lua_State *L) {
    if (lua_gettop(L) == 3) check_walk(L, luaL_checkinteger(L, 2), length(L));
    return go_on(L);
}

static int remove_entry(lua_State *L) {
    if (lua_gettop(L) > 1) check_walk(L, luaL_checkinteger(L, 2), length(L));
    return go_on(L);
}

static int move(lua_State *L) {
    check_walk(L, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3));
    return go_on(L);
}

static int concat(lua_State *L) {
    int64_t last = lua_isnoneornil(L, 4) ? length(L) : luaL_checkinteger(L, 4);
    check_walk(L, luaL_optinteger(L, 3, 1), last);
    return go_on(L);
}

/* Upvalue 2: the script's function, or nil. */
static int compare(lua_State *L) {
    lm_limits_check(L, ctx_of(L));
    if (lua_isnil(L, lua_upvalueindex(2))) {
        lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, 2, 1);
    return 1;
}

static int sort(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 2);
    lua_pushcclosure(L, compare, 2);
    return go_on(L);
}

/* ---- the sandbox ----------------------------------------------------------------------------- */

/* In the table on top: each a closure over ctx and what stands there now. */
static void wrap(lua_State *L, lm_ctx *c, const luaL_Reg *functions) {
    for (; functions->name; functions++) {
        lua_pushlightuserdata(L, c);
        lua_getfield(L, -2, functions->name);
        lua_pushcclosure(L, functions->func, 2);
        lua_setfield(L, -2, functions->name);
    }
}

static void drop(lua_State *L, const char *const *names) {
    for (; *names; names++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *names);
    }
}

static void open_base(lua_State *L, lm_ctx *c) {
    static const char *const outside[] = {"dofile", "loadfile", NULL};
    static const luaL_Reg functions[] = {
        {"print", print},      {"pcall", protected_call},       {"xpcall", protected_call_with},
        {"load", load_text},   {"setmetatable", set_metatable}, {"collectgarbage", collect_garbage},
        {"tonumber", checked}, {"require", require_luma},       {NULL, NULL}};
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    drop(L, outside);
    wrap(L, c, functions);
    open_next(L, c);
    lua_pop(L, 1);
}

static void open_string(lua_State *L, lm_ctx *c) {
    static const char *const outside[] = {"dump", NULL};
    static const luaL_Reg functions[] = {
        {"rep", repeat},      {"format", format}, {"byte", checked},
        {"unpack", checked},  {"upper", checked}, {"lower", checked},
        {"reverse", checked}, {"pack", checked},  {NULL, NULL}};
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    drop(L, outside);
    wrap(L, c, functions);
    lm_pattern_open(L, c);
    /* other strings' methods are nobody's to change */
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1)) {
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

static void open_tables(lua_State *L, lm_ctx *c) {
    static const luaL_Reg functions[] = {
        {"insert", insert}, {"remove", remove_entry}, {"move", move}, {"concat", concat},
        {"sort", sort},     {"unpack", checked},      {NULL, NULL}};
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    wrap(L, c, functions);
    lua_pop(L, 1);
}

static void open_coroutines(lua_State *L, lm_ctx *c) {
    static const luaL_Reg functions[] = {{"create", coroutine_create},
                                         {"wrap", coroutine_wrap},
                                         {"resume", coroutine_resume},
                                         {"close", coroutine_close},
                                         {NULL, NULL}};
    luaL_requiref(L, LUA_COLIBNAME, luaopen_coroutine, 1);
    wrap(L, c, functions);
    lua_pop(L, 1);
}

static void open_others(lua_State *L, lm_ctx *c) {
    static const luaL_Reg functions[] = {
        {"len", checked}, {"offset", checked}, {"codepoint", checked}, {NULL, NULL}};
    static const luaL_Reg clock_functions[] = {{"date", date}, {NULL, NULL}};
    static const char *const outside[] = {"execute", "exit",      "getenv",  "remove",
                                          "rename",  "setlocale", "tmpname", NULL};
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(L, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    wrap(L, c, functions);
    luaL_requiref(L, LUA_OSLIBNAME, luaopen_os, 1);
    drop(L, outside);
    wrap(L, c, clock_functions);
    lua_pop(L, 3);
}

typedef struct {
    unsigned flags;
    const luma_lua_limits *limits;
} request;

static int open_sandbox(lua_State *L) {
    const request *r = lua_touserdata(L, 1);
    lm_box_open(L, r->flags);
    lm_ctx *c = lm_ctx_find(L);
    c->sandbox = true;
    lua_settop(L, 0);
    hide_mode(L);
    open_base(L, c);
    open_string(L, c);
    open_tables(L, c);
    open_coroutines(L, c);
    open_others(L, c);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luma_lua_open(L, r->flags);
    lua_pushvalue(L, -1);
    lua_setglobal(L, "luma");
    lua_setfield(L, -2, "luma");
    luma_lua_set_text(L, NULL, NULL);
    if (r->limits) luma_lua_limit(L, r->limits);
    return 0;
}

static void *allocate(void *ud, void *p, size_t osize, size_t nsize) {
    (void)ud;
    (void)osize;
    if (nsize > 0) return realloc(p, nsize);
    free(p);
    return NULL;
}

lua_State *luma_lua_sandbox(unsigned flags, const luma_lua_limits *limits) {
    lua_State *L = lua_newstate(allocate, NULL);
    if (!L) return NULL;
    request r = {flags, limits};
    lua_pushcfunction(L, open_sandbox);
    lua_pushlightuserdata(L, &r);
    if (lua_pcall(L, 1, 0, 0) == LUA_OK) return L;
    lua_close(L);
    return NULL;
}
