/* main.c -- the luma program: Lua's own command line, with the luma module opened, and a prompt.
** Layer: repl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "interrupt.h"
#include "luma_lua.h"
#include "prompt.h"
#include "run.h"

typedef struct {
    bool interactive, version, no_environment, execute, full_version, help;
    bool check; /* luma check: the report instead of a script */
    int script; /* index in argv of the script; argc when there is none */
} options;

static void print_usage(FILE *file) {
    fprintf(file,
            "usage: %s [options] [script [args]]\n"
            "       %s check   a report on this installation\n"
            "  -e stat   run the string 'stat'\n"
            "  -i        enter the prompt after running 'script'\n"
            "  -l mod    require library 'mod' into global 'mod'\n"
            "  -l g=mod  require library 'mod' into global 'g'\n"
            "  -v        show the version; --version: with CPU and CUDA\n"
            "  --help    show this\n"
            "  -E        ignore Lua's environment variables\n"
            "  -W        turn warnings on\n"
            "  --        stop handling options\n"
            "  -         stop handling options and run stdin\n",
            run_program, run_program);
}

static void refuse_option(const char *bad) {
    fprintf(stderr, "%s: ", run_program);
    if (bad[1] == 'e' || bad[1] == 'l')
        fprintf(stderr, "'%s' needs argument\n", bad);
    else
        fprintf(stderr, "unrecognized option '%s'\n", bad);
    print_usage(stderr);
}

/* Reads the options. False: argv[o->script] is wrong. */
static bool read_options(int argc, char **argv, options *o) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
        const char *rest = argv[i] + 2;
        o->script = i;
        switch (argv[i][1]) {
        case '-':
            if (strcmp(rest, "version") == 0) {
                o->full_version = true;
                continue;
            }
            if (strcmp(rest, "help") == 0) {
                o->help = true;
                continue;
            }
            if (*rest != '\0') return false;
            o->script = i + 1;
            return true;
        case 'i':
            o->interactive = true; /* and the version, at a terminal */
            break;
        case 'v':
            o->version = true;
            break;
        case 'E':
            o->no_environment = true;
            break;
        case 'W':
            break;
        case 'e':
            o->execute = true; /* fall through */
        case 'l':
            if (*rest == '\0' && (++i >= argc || argv[i][0] == '-')) return false;
            continue;
        default:
            return false;
        }
        if (*rest != '\0') return false;
    }
    o->script = i;
    o->check = i == argc - 1 && strcmp(argv[i], "check") == 0;
    return true;
}

/* arg: the script at 0, its arguments above, the program and its options below. */
static void push_arg_table(lua_State *L, int argc, char **argv, int script) {
    if (script == argc) script = 0;
    lua_createtable(L, argc - script, script + 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - script);
    }
    lua_setglobal(L, "arg");
}

static int run_init(lua_State *L) {
    const char *name = "=LUA_INIT_5_4";
    const char *init = getenv(name + 1);
    if (!init) {
        name = "=LUA_INIT";
        init = getenv(name + 1);
    }
    if (!init) return LUA_OK;
    return init[0] == '@' ? run_file(L, init + 1, 0) : run_string(L, init, name);
}

/* -l mod, or -l global=mod. */
static int run_require(lua_State *L, const char *text) {
    const char *equals = strchr(text, '=');
    const char *module = equals ? equals + 1 : text;
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    int status = run_call(L, 1, 1);
    if (status == LUA_OK) {
        lua_pushlstring(L, text, equals ? (size_t)(equals - text) : strlen(text));
        lua_insert(L, -2);
        lua_pushglobaltable(L);
        lua_insert(L, -3);
        lua_settable(L, -3);
        lua_pop(L, 1);
    }
    return run_report(L, status);
}

/* -e, -l and -W in their order. */
static int run_options(lua_State *L, char **argv, int n) {
    for (int i = 1; i < n; i++) {
        char option = argv[i][1];
        if (option == 'W') lua_warning(L, "@on", 0);
        if (option != 'e' && option != 'l') continue;
        const char *text = argv[i][2] != '\0' ? argv[i] + 2 : argv[++i];
        int status = option == 'e' ? run_string(L, text, "=(command line)") : run_require(L, text);
        if (status != LUA_OK) return status;
    }
    return LUA_OK;
}

static int run_script(lua_State *L, char **argv) {
    const char *name = argv[0];
    if (strcmp(name, "-") == 0 && strcmp(argv[-1], "--") != 0) name = NULL;
    int nargs = 0;
    luaL_checkstack(L, 2, NULL);
    lua_getglobal(L, "arg");
    if (lua_istable(L, -1)) {
        int n = (int)luaL_len(L, -1);
        luaL_checkstack(L, n + 3, "too many arguments to script");
        for (nargs = 0; nargs < n; nargs++)
            lua_rawgeti(L, -1 - nargs, nargs + 1);
        lua_remove(L, -1 - nargs);
    } else {
        lua_pop(L, 1);
    }
    return run_file(L, name, nargs);
}

static void open_libraries(lua_State *L, const options *o) {
    if (o->no_environment) {
        lua_pushboolean(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
    }
    luaL_openlibs(L);
    luaL_requiref(L, "luma", luaopen_luma, 1);
    lua_pop(L, 1);
    interrupt_install(L);
    lua_gc(L, LUA_GCGEN, 0, 0);
}

/* (argc, argv) to true when all went well. Runs protected. */
static int program(lua_State *L) {
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);
    lua_settop(L, 0);
    options o = {0};
    luaL_checkversion(L);
    if (!read_options(argc, argv, &o)) {
        refuse_option(argv[o.script]);
        return 0;
    }
    if (o.help) {
        print_usage(stdout);
        lua_pushboolean(L, 1);
        return 1;
    }
    if (o.version) printf("luma %s (%s)\n", LUMA_VERSION, LUA_RELEASE);
    open_libraries(L, &o);
    if (o.full_version || o.check) {
        lua_pushboolean(L, prompt_check(L, o.check ? "check" : "version"));
        return 1;
    }
    push_arg_table(L, argc, argv, o.script);
    if (!o.no_environment && run_init(L) != LUA_OK) return 0;
    if (run_options(L, argv, o.script) != LUA_OK) return 0;
    if (o.script < argc && run_script(L, argv + o.script) != LUA_OK) return 0;
    if (o.interactive) {
        prompt_loop(L, !o.no_environment);
    } else if (o.script == argc && !o.execute && !o.version) {
        if (isatty(STDIN_FILENO))
            prompt_loop(L, !o.no_environment);
        else if (run_file(L, NULL, 0) != LUA_OK)
            return 0;
    }
    lua_pushboolean(L, 1);
    return 1;
}

int main(int argc, char **argv) {
    if (argc > 0 && argv[0][0] != '\0') run_program = argv[0];
    lua_State *L = luaL_newstate();
    if (!L) {
        fprintf(stderr, "%s: cannot create a state: not enough memory\n", run_program);
        return EXIT_FAILURE;
    }
    lua_pushcfunction(L, program);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    int status = run_report(L, lua_pcall(L, 2, 1, 0));
    bool good = status == LUA_OK && lua_toboolean(L, -1);
    bool interrupted = !good && interrupt_seen();
    lua_close(L);
    if (interrupted) interrupt_exit();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
