/* prompt.c -- reading, running and printing line by line. A chunk goes on over as many lines as it
** needs; the value of an expression is printed; `?name` asks for help. Layer: repl. */
#include "prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "interrupt.h"
#include "luma.h"
#include "run.h"

typedef enum { LINE_READ, LINE_INTERRUPTED, LINE_END } line_status;

static bool at_terminal;

static const char *prompt_text(lua_State *L, bool first) {
    const char *text = NULL;
    if (lua_getglobal(L, first ? "_PROMPT" : "_PROMPT2") != LUA_TNIL)
        text = luaL_tolstring(L, -1, NULL);
    else
        text = lua_pushstring(L, first ? "> " : ">> ");
    lua_remove(L, -2);
    return text;
}

/* Pushes one line without its newline. */
static line_status read_line(lua_State *L, bool first) {
    interrupt_clear();
    if (at_terminal) {
        fputs(prompt_text(L, first), stdout);
        fflush(stdout);
        lua_pop(L, 1);
    }
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    int c;
    while ((c = getc(stdin)) != EOF && c != '\n')
        luaL_addchar(&buffer, (char)c);
    bool failed = c == EOF && ferror(stdin);
    luaL_pushresult(&buffer);
    if (failed && errno == EINTR) {
        clearerr(stdin);
        lua_pop(L, 1);
        fputc('\n', stdout);
        return LINE_INTERRUPTED;
    }
    if (c == EOF && lua_rawlen(L, -1) == 0) {
        lua_pop(L, 1);
        return LINE_END;
    }
    return LINE_READ;
}

/* Whether the message on top says that the chunk only lacks more text. */
static bool is_incomplete(lua_State *L, int status) {
    static const char mark[] = "<eof>";
    size_t length;
    const char *message = lua_tolstring(L, -1, &length);
    return status == LUA_ERRSYNTAX && length >= sizeof mark - 1 &&
           strcmp(message + length - (sizeof mark - 1), mark) == 0;
}

/* Replaces the text on top by its function, or by the message. */
static int load_text(lua_State *L, bool *incomplete) {
    size_t length;
    lua_pushliteral(L, "return ");
    lua_pushvalue(L, -2);
    lua_concat(L, 2);
    const char *text = lua_tolstring(L, -1, &length);
    int status = luaL_loadbuffer(L, text, length, "=stdin");
    *incomplete = is_incomplete(L, status);
    if (status != LUA_OK) {
        lua_pop(L, 1);
        text = lua_tolstring(L, -2, &length);
        status = luaL_loadbuffer(L, text, length, "=stdin");
        *incomplete = status != LUA_OK && (*incomplete || is_incomplete(L, status));
    }
    lua_replace(L, -3);
    lua_pop(L, 1);
    return status;
}

/* Pushes a function of the luma module, whatever the global is now. */
static void push_luma(lua_State *L, const char *name) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "luma");
    lua_getfield(L, -1, name);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

/* Replaces "?name", all there is on the stack, by the call that returns the help. */
static void push_help_call(lua_State *L) {
    const char *name = lua_tostring(L, 1) + 1;
    name += strspn(name, " \t");
    size_t length = strcspn(name, " \t\r");
    push_luma(L, "help");
    if (length > 0)
        lua_pushlstring(L, name, length);
    else
        lua_pushnil(L);
    lua_remove(L, 1);
}

/* Leaves a function, and perhaps its argument, on the empty stack; or an error message. */
static line_status read_chunk(lua_State *L, int *status) {
    line_status line = read_line(L, true);
    if (line != LINE_READ) return line;
    if (lua_tostring(L, -1)[0] == '?') {
        push_help_call(L);
        return line;
    }
    for (;;) {
        bool incomplete;
        lua_pushvalue(L, -1);
        *status = load_text(L, &incomplete);
        line = incomplete ? read_line(L, false) : LINE_END;
        if (line == LINE_INTERRUPTED) return line;
        if (line == LINE_END) break;
        lua_remove(L, -2);
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
        lua_concat(L, 3);
    }
    lua_remove(L, -2);
    return LINE_READ;
}

/* Replaces a table that does not say how it prints by text of what is in it. */
static void show_table(lua_State *L, int i) {
    if (!lua_istable(L, i)) return;
    if (luaL_getmetafield(L, i, "__tostring") != LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    push_luma(L, "show");
    lua_pushvalue(L, i);
    if (run_report(L, run_call(L, 1, 1)) == LUA_OK) lua_replace(L, i);
}

static void print_results(lua_State *L) {
    int n = lua_gettop(L);
    if (n == 0) return;
    luaL_checkstack(L, LUA_MINSTACK, "too many results to print");
    for (int i = 1; i <= n; i++)
        show_table(L, i);
    lua_getglobal(L, "print");
    lua_insert(L, 1);
    run_report(L, run_call(L, n, 0));
}

void prompt_loop(lua_State *L) {
    const char *program = run_program;
    run_program = NULL;
    at_terminal = isatty(STDIN_FILENO) != 0;
    if (at_terminal)
        printf("luma %s (%s)   ?name explains an operation, Ctrl-D ends\n", LUMA_VERSION,
               LUA_RELEASE);
    for (;;) {
        int status = LUA_OK;
        lua_settop(L, 0);
        line_status line = read_chunk(L, &status);
        if (line == LINE_END) break;
        if (line == LINE_INTERRUPTED) continue;
        if (status == LUA_OK) status = run_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        if (status == LUA_OK)
            print_results(L);
        else
            run_report(L, status);
        fflush(stdout);
    }
    lua_settop(L, 0);
    if (at_terminal) fputc('\n', stdout);
    run_program = program;
}
