/* run.c -- running chunks with a traceback and reporting their errors. Layer: repl. */
#include "run.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "interrupt.h"

const char *run_program = "luma";

static int depth; /* levels of the stack below the call that runs */

static int count_levels(lua_State *L) {
    lua_Debug ar;
    int n = 0;
    while (lua_getstack(L, n, &ar))
        n++;
    return n;
}

/* Cuts the last n lines off the traceback on top; and all of it when only the chunk itself and the C
** function it called would be left, which the message names already. */
static void cut_traceback(lua_State *L, const char *message, int n) {
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    size_t from = strlen(message);
    while (n > 0 && length > from) {
        if (text[--length] == '\n') n--;
    }
    int lines = 0, ours = 0; /* frames and the heading; those of C */
    for (size_t i = from; i + 2 < length; i++) {
        lines += text[i] == '\n';
        ours += strncmp(text + i, "\n\t[C]", 5) == 0;
    }
    lua_pushlstring(L, text, lines - ours > 2 ? length : from);
}

static bool begins(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

/* Leaves out the frames of luma's own Lua files from the traceback on top, which begins behind the
** message: how luma.plot came to raise its error is nothing to a script. */
static void drop_own_frames(lua_State *L, const char *message) {
    const char *text = lua_tostring(L, -1);
    size_t from = strlen(message);
    bool own = false;
    luaL_Buffer b;
    if (begins(message, "luma/")) return; /* an error in them */
    luaL_buffinit(L, &b);
    luaL_addlstring(&b, text, from);
    for (const char *line = text + from, *end; *line; line = end) {
        end = strchr(line + 1, '\n');
        if (!end) end = line + strlen(line);
        bool tail = own && begins(line, "\n\t(...tail calls...)");
        own = begins(line, "\n\tluma/") ||
              (begins(line, "\n\t[C]: in function 'error'") && begins(end, "\n\tluma/"));
        if (!own && !tail) luaL_addlstring(&b, line, (size_t)(end - line));
    }
    luaL_pushresult(&b);
}

/* The message, and what luma.help says of the function that was called and that luma has not. */
static const char *add_help(lua_State *L, const char *message) {
    static const char nil[] = "attempt to call a nil value (field '";
    const char *at = strstr(message, nil);
    if (!at || lua_getfield(L, LUA_REGISTRYINDEX, "luma.missing") != LUA_TSTRING) return message;
    const char *name = lua_tostring(L, -1), *called = at + sizeof nil - 1;
    size_t n = strlen(name);
    if (strncmp(called, name, n) != 0 || strcmp(called + n, "')") != 0) return message;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "luma") != LUA_TTABLE) return message;
    lua_getfield(L, -1, "help");
    lua_pushstring(L, name);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK || lua_type(L, -1) != LUA_TSTRING) return message;
    return lua_pushfstring(L, "%s\n%s", message, lua_tostring(L, -1));
}

static int add_traceback(lua_State *L) {
    const char *message = lua_tostring(L, 1);
    if (!message) {
        if (luaL_callmeta(L, 1, "__tostring") && lua_type(L, -1) == LUA_TSTRING) return 1;
        message = lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    if (run_program) message = add_help(L, message);
    luaL_traceback(L, L, message, 1);
    if (!run_program)
        cut_traceback(L, message, depth);
    else
        drop_own_frames(L, message);
    return 1;
}

int run_call(lua_State *L, int nargs, int nresults) {
    int base = lua_gettop(L) - nargs;
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, base);
    interrupt_clear();
    int outer = depth;
    depth = count_levels(L);
    int status = lua_pcall(L, nargs, nresults, base);
    depth = outer;
    lua_remove(L, base);
    return status;
}

int run_report(lua_State *L, int status) {
    if (status == LUA_OK) return status;
    const char *message = lua_tostring(L, -1);
    if (!message) message = "(error message not a string)";
    fflush(stdout);
    if (run_program) fprintf(stderr, "%s: ", run_program);
    fprintf(stderr, "%s\n", message);
    lua_pop(L, 1);
    return status;
}

int run_file(lua_State *L, const char *name, int nargs) {
    int status = luaL_loadfile(L, name);
    if (status == LUA_OK) {
        lua_insert(L, -(nargs + 1));
        status = run_call(L, nargs, 0);
    }
    return run_report(L, status);
}

int run_string(lua_State *L, const char *text, const char *chunk_name) {
    int status = luaL_loadbuffer(L, text, strlen(text), chunk_name);
    if (status == LUA_OK) status = run_call(L, 0, 0);
    return run_report(L, status);
}
