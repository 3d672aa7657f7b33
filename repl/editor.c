/* editor.c -- readline by its documented callback interface: signals are looked at between keys, so
** that Ctrl-C gives up the line and a resize redraws it. Layer: repl. */
#include "editor.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "interrupt.h"

#define HISTORY_MOST 5000

typedef int available_fn(void);
typedef char **complete_fn(const char *word, int start, int end);
typedef struct {
    char *line, *timestamp;
    void *data;
} history_entry;

/* X(type, name): what is used of readline, functions and variables by pointer */
#define EDITOR_SYMBOLS(X)                                                                          \
    X(void, (*rl_callback_handler_install)(const char *, void (*)(char *)))                        \
    X(void, (*rl_callback_read_char)(void))                                                        \
    X(void, (*rl_callback_handler_remove)(void))                                                   \
    X(void, (*rl_free_line_state)(void))                                                           \
    X(void, (*rl_resize_terminal)(void))                                                           \
    X(int, (*rl_variable_bind)(const char *, const char *))                                        \
    X(int, (*rl_crlf)(void))                                                                       \
    X(int, (*rl_set_keyboard_input_timeout)(int))                                                  \
    X(available_fn **, rl_input_available_hook)                                                    \
    X(const char **, rl_readline_name)                                                             \
    X(complete_fn **, rl_attempted_completion_function)                                            \
    X(int *, rl_attempted_completion_over)                                                         \
    X(int *, rl_completion_append_character)                                                       \
    X(const char **, rl_completer_word_break_characters)                                           \
    X(char **, rl_line_buffer)                                                                     \
    X(int *, rl_catch_signals)                                                                     \
    X(int *, rl_catch_sigwinch)                                                                    \
    X(void, (*add_history)(const char *))                                                          \
    X(history_entry *, (*history_get)(int))                                                        \
    X(history_entry *, (*remove_history)(int))                                                     \
    X(void, (*stifle_history)(int))                                                                \
    X(int *, history_length)                                                                       \
    X(int *, history_base)

static struct {
#define FIELD(type, name) type name;
    EDITOR_SYMBOLS(FIELD)
#undef FIELD
} rl;

static lua_State *state;
static int completer = LUA_NOREF;
static char *line_read;
static bool line_done;
static volatile sig_atomic_t resized;
static sigset_t held, outside; /* signals held while a line is edited, and those held before */

/* The name in "(*name)(...)" or "name". */
static bool load_symbol(void *library, const char *declarator, void *field, size_t size) {
    char name[64];
    const char *from = declarator + (strncmp(declarator, "(*", 2) == 0 ? 2 : 0);
    size_t n = strcspn(from, ")");
    if (n >= sizeof name) return false;
    memcpy(name, from, n);
    name[n] = '\0';
    void *symbol = dlsym(library, name);
    memcpy(field, &symbol, size);
    return symbol != NULL;
}

static bool open_library(void) {
    static const char *const names[] = {"libreadline.so.8", "libreadline.so.7", "libreadline.so",
                                        NULL};
    void *library = NULL;
    for (int i = 0; names[i] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    bool good = true;
    size_t at = 0;
#define LOAD(type, name)                                                                           \
    good = load_symbol(library, #name, (char *)&rl + at, sizeof(void *)) && good;                  \
    at += sizeof(void *);
    EDITOR_SYMBOLS(LOAD)
#undef LOAD
    return good;
}

const char *editor_library(void) {
    static char name[512];
    Dl_info info;
    const void *symbol = NULL;
    if (!open_library()) return NULL;
    memcpy(&symbol, &rl.add_history, sizeof symbol);
    if (!dladdr(symbol, &info) || !info.dli_fname) return "there";
    snprintf(name, sizeof name, "%s", info.dli_fname);
    return name;
}

static void on_line(char *line) {
    line_read = line;
    line_done = true;
    rl.rl_callback_handler_remove();
}

static void on_resize(int number) {
    (void)number;
    resized = 1;
}

/* ---- completion ---- */

static char *copy_text(const char *text, size_t n) {
    char *copy = malloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

/* The list at index 1 as readline wants it: what all have in common, each of them, NULL; malloc. */
static char **match_list(lua_State *L) {
    int n = (int)lua_rawlen(L, 1);
    char **list = n > 0 ? calloc((size_t)n + 2, sizeof *list) : NULL;
    if (!list) return NULL;
    size_t common = 0;
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, 1, i);
        const char *text = lua_tostring(L, -1);
        if (!text) text = "";
        list[i] = copy_text(text, strlen(text));
        if (!list[i]) break;
        if (i == 1) common = strlen(text);
        size_t k = 0;
        while (k < common && list[1][k] == text[k])
            k++;
        common = k;
        lua_pop(L, 1);
    }
    list[0] = list[1] ? copy_text(list[1], common) : NULL;
    if (list[0] && n == 1) {
        free(list[1]);
        list[1] = NULL;
    }
    return list;
}

/* (line before the cursor, start of the word) -> lightuserdata, or nothing. Runs protected. */
static int complete_protected(lua_State *L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, completer);
    lua_insert(L, 1);
    lua_call(L, 2, 2);
    if (!lua_istable(L, 1)) return 0;
    const char *after = lua_tostring(L, 2);
    *rl.rl_completion_append_character = after ? after[0] : ' ';
    lua_pushlightuserdata(L, match_list(L));
    return 1;
}

static char **complete(const char *word, int start, int end) {
    (void)word;
    char **list = NULL;
    lua_State *L = state;
    int top = lua_gettop(L);
    *rl.rl_attempted_completion_over = 1; /* no file names of readline's own */
    if (lua_checkstack(L, LUA_MINSTACK)) {
        lua_pushcfunction(L, complete_protected);
        lua_pushlstring(L, *rl.rl_line_buffer, (size_t)end);
        lua_pushinteger(L, start);
        if (lua_pcall(L, 2, 1, 0) == LUA_OK) list = lua_touserdata(L, -1);
    }
    lua_settop(L, top);
    return list;
}

/* As ppoll of the keys says, 0 once Ctrl-C came. Signals are let in while nothing but this goes on,
** and before a key is read that was typed after Ctrl-C. NULL: no end of patience. */
static int wait_for_key(const struct timespec *patience) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = ppoll(&input, 1, patience, &outside);
    if (ready > 0) {
        sigprocmask(SIG_SETMASK, &outside, NULL);
        sigprocmask(SIG_BLOCK, &held, NULL);
    }
    return interrupt_seen() ? 0 : ready;
}

/* What readline asks before it reads several keys at once. */
static int key_available(void) {
    int microseconds = rl.rl_set_keyboard_input_timeout(0);
    rl.rl_set_keyboard_input_timeout(microseconds);
    struct timespec patience = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    return wait_for_key(&patience) > 0;
}

/* ---- the interface ---- */

bool editor_open(lua_State *L) {
    if (!open_library()) {
        lua_pop(L, 1);
        return false;
    }
    state = L;
    completer = luaL_ref(L, LUA_REGISTRYINDEX);
    *rl.rl_readline_name = "luma";
    *rl.rl_attempted_completion_function = complete;
    /* a name with its dots and colons is one word */
    *rl.rl_completer_word_break_characters = " \t\n\"'`=<>~+-*/%^#&|,;(){}[]";
    *rl.rl_catch_signals = 0;
    *rl.rl_catch_sigwinch = 0;
    *rl.rl_input_available_hook = key_available;
    rl.rl_variable_bind("enable-bracketed-paste", "on");
    rl.stifle_history(HISTORY_MOST);
    struct sigaction action = {.sa_handler = on_resize};
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, NULL);
    return true;
}

static editor_status edit(void) {
    editor_status status = EDITOR_LINE;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGWINCH);
    sigprocmask(SIG_BLOCK, &held, &outside);
    while (!line_done) {
        int ready = wait_for_key(NULL);
        if (ready > 0) {
            rl.rl_callback_read_char();
        } else if (ready < 0 && errno != EINTR) {
            rl.rl_callback_handler_remove();
            break;
        }
        if (resized) {
            resized = 0;
            rl.rl_resize_terminal();
        }
        if (interrupt_seen()) {
            rl.rl_free_line_state();
            rl.rl_crlf();
            rl.rl_callback_handler_remove();
            status = EDITOR_INTERRUPTED;
            break;
        }
    }
    sigprocmask(SIG_SETMASK, &outside, NULL);
    return status;
}

editor_status editor_read(lua_State *L, const char *prompt) {
    fflush(stdout);
    free(line_read); /* there is one after an error of Lua's memory */
    line_read = NULL;
    line_done = false;
    rl.rl_callback_handler_install(prompt, on_line);
    editor_status status = edit();
    if (status == EDITOR_LINE && !line_read) status = EDITOR_END;
    if (status == EDITOR_LINE) lua_pushstring(L, line_read);
    free(line_read);
    line_read = NULL;
    return status;
}

static void free_entry(history_entry *e) {
    if (!e) return;
    free(e->line);
    free(e->timestamp);
    free(e);
}

void editor_remember(const char *line) {
    for (int i = 0; i < *rl.history_length; i++) {
        history_entry *e = rl.history_get(*rl.history_base + i);
        if (!e || strcmp(e->line, line) != 0) continue;
        free_entry(rl.remove_history(i));
        break;
    }
    rl.add_history(line);
}
