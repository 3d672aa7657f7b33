/* host.c -- a program that runs scripts it does not trust: each has a sandbox with limits, draws into a
** frame buffer of the host's that it sees as a tensor, without a copy, and is called for every frame.
** C11, and C++ (host.cpp). Usage: host [--frames N] [--show] script.lua...
**
** A script defines draw(frame, time), where frame is a uint8 tensor (height, width, 3). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "luma_lua.h"

enum { WIDTH = 64, HEIGHT = 32, CHANNELS = 3 };

/* Of each script: its memory with all tensors, and what one frame may take. */
static const size_t MEMORY = 64u << 20;
static const int64_t INSTRUCTIONS = 20000000;
static const double SECONDS = 0.25;

/* What the host and the tensor share. The buffer lives until both have released it. */
typedef struct buffer {
    int owners;
    uint8_t pixels[HEIGHT][WIDTH][CHANNELS];
} buffer;

static void release_buffer(void *ctx) {
    buffer *b = (buffer *)ctx;
    if (--b->owners == 0) free(b);
}

/* ---- the script's side ----------------------------------------------------------------------- */

/* A function of the host's that scripts may call: button(name) is true while it is pressed. Functions
** like this one get what a script hands them, of any type: luaL_check... raises an error for the
** script, which never leaves its sandbox. */
static int button(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_pushboolean(L, strcmp(name, "fire") == 0);
    return 1;
}

/* Where the output of scripts goes. It is text of theirs: this host shows it as it is, but no more
** than a line's worth at a time. */
static void hear(void *ctx, luma_lua_text kind, const char *text, size_t n) {
    static const char *const names[] = {"says", "warns", "logs"};
    if (n > 0 && text[n - 1] == '\n') n--;
    printf("  %s %s: %.*s\n", (const char *)ctx, names[kind], n < 200 ? (int)n : 200, text);
}

/* Runs protected: what it calls may raise a Lua error, of memory if nothing else. Argument: the
** buffer. Leaves the frame as a global. */
static int set_up(lua_State *L) {
    buffer *b = (buffer *)lua_touserdata(L, 1);
    const int64_t shape[3] = {HEIGHT, WIDTH, CHANNELS};
    lua_register(L, "button", button);
    luma_tensor *frame = luma_push(L); /* Lua owns it: no error from here on leaks it */
    b->owners++;
    if (luma_wrap(luma_lua_state(L), frame, b->pixels, sizeof b->pixels, 3, shape, LUMA_UINT8,
                  release_buffer, b) != LUMA_OK) {
        b->owners--; /* the deleter is not called for what was not wrapped */
        return luaL_error(L, "%s", luma_message(luma_lua_state(L)));
    }
    lua_setglobal(L, "frame");
    return 0;
}

/* draw(frame, time), looked up with what the script may have put in the place of globals. Runs inside
** luma_lua_call. */
static int call_draw(lua_State *L) {
    lua_pushglobaltable(L);
    if (lua_getfield(L, -1, "draw") != LUA_TFUNCTION)
        return luaL_error(L, "there is no function draw");
    lua_getfield(L, -2, "frame");
    lua_pushvalue(L, 1);
    lua_call(L, 2, 0);
    return 0;
}

/* ---- the host's side ------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *n) {
    FILE *file = fopen(path, "rb");
    char *text = (char *)malloc(1 << 20);
    if (file && text) *n = fread(text, 1, 1 << 20, file);
    if (file) fclose(file);
    if (file && text) return text;
    free(text);
    return NULL;
}

/* The message of a failed call, which is on top of the stack; always a string. */
static bool failed(lua_State *L, const char *path) {
    static const char *const ends[] = {"an error", "too many instructions", "too much time",
                                       "the host"};
    printf("%s: stopped by %s: %s\n", path, ends[luma_lua_ended(L)], lua_tostring(L, -1));
    lua_pop(L, 1);
    return false;
}

static bool start(lua_State *L, const char *path, buffer *b) {
    size_t n = 0;
    char *text = read_file(path, &n);
    if (!text) {
        printf("%s: cannot be read\n", path);
        return false;
    }
    luma_lua_set_text(L, hear, (void *)path);
    lua_pushcfunction(L, set_up);
    lua_pushlightuserdata(L, b);
    bool good = luma_lua_call(L, 1, 0) == LUA_OK &&
                luma_lua_load(L, text, n, "=script") == LUA_OK && luma_lua_call(L, 0, 0) == LUA_OK;
    free(text);
    return good || failed(L, path);
}

static void show(const buffer *b) {
    static const char shades[] = " .:-=+*#%@";
    for (int y = 0; y < HEIGHT; y += 2) {
        for (int x = 0; x < WIDTH; x++) {
            const uint8_t *p = b->pixels[y][x];
            putchar(shades[(p[0] + p[1] + p[2]) * 9 / (3 * 255)]);
        }
        putchar('\n');
    }
}

static unsigned long sum_of(const buffer *b) {
    const uint8_t *p = &b->pixels[0][0][0];
    unsigned long sum = 0;
    for (size_t i = 0; i < sizeof b->pixels; i++)
        sum += p[i];
    return sum;
}

/* True when every frame was drawn. */
static bool run_script(const char *path, int frames, bool shown) {
    luma_lua_limits limits = {MEMORY, INSTRUCTIONS, SECONDS, NULL, NULL};
    lua_State *L = luma_lua_sandbox(LUMA_LUA_CLOSED, &limits);
    buffer *b = (buffer *)calloc(1, sizeof *b);
    bool good = false;
    if (L && b) {
        b->owners = 1;
        good = start(L, path, b);
        for (int i = 0; i < frames && good; i++) {
            lua_pushcfunction(L, call_draw);
            lua_pushnumber(L, i / 60.0);
            good = luma_lua_call(L, 1, 0) == LUA_OK || failed(L, path);
        }
    }
    if (good) printf("%s: %d frames, sum %lu\n", path, frames, sum_of(b));
    if (good && shown) show(b);
    if (L) lua_close(L);
    if (b) release_buffer(b);
    return good;
}

int main(int argc, char **argv) {
    int frames = 60, i = 1;
    bool shown = false, good = true;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--show") == 0)
            shown = true;
        else if (strcmp(argv[i], "--frames") == 0 && i + 1 < argc)
            frames = atoi(argv[++i]);
    }
    if (i >= argc) {
        fprintf(stderr, "usage: host [--frames N] [--show] script.lua...\n");
        return 2;
    }
    /* one script's end is not another's */
    for (; i < argc; i++)
        good = run_script(argv[i], frames, shown) && good;
    return good ? 0 : 1;
}
