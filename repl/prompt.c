/* prompt.c -- what the prompt, which is written in Lua (repl/lua/prompt.lua), needs of C: lines from
** a terminal or a file, calls that Ctrl-C and errors end, the history's file. Layer: repl. */
#include "prompt.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "editor.h"
#include "interrupt.h"
#include "lua_files.h"
#include "luma.h"
#include "run.h"

extern const lm_lua_file repl_files[];

static bool at_terminal, editing, environment;

/* ---- lines ---- */

static editor_status read_plain(lua_State *L, const char *prompt) {
    if (at_terminal) {
        fputs(prompt, stdout);
        fflush(stdout);
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
        fputc('\n', stdout);
        return EDITOR_INTERRUPTED;
    }
    return c == EOF && lua_rawlen(L, -1) == 0 ? EDITOR_END : EDITOR_LINE;
}

/* read(prompt): a line; nil and true when Ctrl-C gave it up; nil at the end */
static int host_read(lua_State *L) {
    const char *prompt = luaL_checkstring(L, 1);
    interrupt_clear();
    editor_status status = editing ? editor_read(L, prompt) : read_plain(L, prompt);
    interrupt_clear(); /* a press here gives up the line and nothing else */
    if (status == EDITOR_LINE) return 1;
    lua_pushnil(L);
    lua_pushboolean(L, status == EDITOR_INTERRUPTED);
    return 2;
}

static int host_remember(lua_State *L) {
    const char *line = luaL_checkstring(L, 1);
    if (editing) editor_remember(line);
    return 0;
}

/* ---- calls ---- */

/* call(f, ...): true and the results, or false and the message with a traceback that ends where f
** began */
static int host_call(lua_State *L) {
    int n = lua_gettop(L);
    int status = run_call(L, n - 1, LUA_MULTRET);
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

/* make_folder(path): the folder and those above it; says whether it is there */
static int host_make_folder(lua_State *L) {
    size_t n;
    const char *path = luaL_checklstring(L, 1, &n);
    char *part = lua_newuserdatauv(L, n + 1, 0);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != '\0') continue;
        char c = part[i];
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) return 0;
        part[i] = c;
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* names(folder): the entries; nothing when it cannot be read */
static int host_names(lua_State *L) {
    DIR *folder = opendir(luaL_checkstring(L, 1));
    if (!folder) return 0;
    lua_newtable(L);
    int n = 0;
    for (struct dirent *e; n < 10000 && (e = readdir(folder));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        lua_pushstring(L, e->d_name);
        lua_rawseti(L, -2, ++n);
    }
    closedir(folder);
    return 1;
}

/* exists(path): "file", "folder" or nil */
static int host_exists(lua_State *L) {
    struct stat info;
    if (stat(luaL_checkstring(L, 1), &info) != 0) return 0;
    lua_pushstring(L, S_ISDIR(info.st_mode) ? "folder" : "file");
    return 1;
}

static const lm_lua_file *find_file(const lm_lua_file *f, const char *name) {
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f->name ? f : NULL;
}

/* file(name): the compiled chunk of repl/lua/<name>.lua, or of lua/luma/<name>.lua */
static int host_file(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    const lm_lua_file *f = find_file(repl_files, name);
    if (!f) f = find_file(lm_lua_files, name);
    if (!f) return luaL_error(L, "no file '%s' in the program", name);
    lm_lua_file_push(L, f);
    return 1;
}

/* readline(): the file of the library that edits lines; nil: there is none */
static int host_readline(lua_State *L) {
    lua_pushstring(L, editor_library());
    return 1;
}

/* program(): where this program lies */
static int host_program(lua_State *L) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n < 0) return 0;
    lua_pushlstring(L, path, (size_t)n);
    return 1;
}

/* ---- the loop ---- */

static void push_loaded(lua_State *L, const char *name) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* Pushes what repl/lua/<name>.lua returns, which gets the module and the table of functions above. */
static void open_file(lua_State *L, const char *name, int nresults) {
    static const luaL_Reg functions[] = {
        {"read", host_read},   {"remember", host_remember}, {"call", host_call},
        {"names", host_names}, {"exists", host_exists},     {"make_folder", host_make_folder},
        {"file", host_file},   {"readline", host_readline}, {"program", host_program},
        {NULL, NULL}};
    lua_pushcfunction(L, host_file);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    push_loaded(L, "luma");
    luaL_newlib(L, functions);
    lua_pushboolean(L, at_terminal);
    lua_setfield(L, -2, "terminal");
    lua_pushboolean(L, environment);
    lua_setfield(L, -2, "environment");
    lua_pushliteral(L, "luma " LUMA_VERSION " (" LUA_RELEASE ")");
    lua_setfield(L, -2, "version");
    lua_call(L, 2, nresults);
}

/* Pushes the function step() of prompt.lua. */
static int open_prompt(lua_State *L) {
    lua_settop(L, 0);
    open_file(L, "prompt", 2);
    if (at_terminal) editing = editor_open(L);
    lua_settop(L, 1);
    return 1;
}

void prompt_loop(lua_State *L, bool with_environment) {
    environment = with_environment;
    const char *program = run_program;
    run_program = NULL;
    at_terminal = isatty(STDIN_FILENO) != 0;
    lua_settop(L, 0);
    lua_pushcfunction(L, open_prompt);
    bool more = run_report(L, run_call(L, 0, 1)) == LUA_OK;
    while (more) { /* an error in here is Ctrl-C between a line's end and the next prompt */
        lua_pushvalue(L, 1);
        int status = run_call(L, 0, 1);
        more = status != LUA_OK || lua_toboolean(L, -1);
        run_report(L, status);
        lua_settop(L, 1);
        fflush(stdout);
    }
    lua_settop(L, 0);
    run_program = program;
}

static int check(lua_State *L) {
    const char *what = lua_tostring(L, 1);
    open_file(L, "check", 1);
    lua_getfield(L, -1, what);
    lua_call(L, 0, 1);
    return 1;
}

bool prompt_check(lua_State *L, const char *what) {
    lua_pushcfunction(L, check);
    lua_pushstring(L, what);
    bool good = run_report(L, run_call(L, 1, 1)) == LUA_OK && lua_toboolean(L, -1);
    lua_settop(L, 0);
    return good;
}
