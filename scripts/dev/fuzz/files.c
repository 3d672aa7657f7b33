/* files.c -- what others may have written, by coverage-guided fuzzing (libFuzzer): .npy, .npz and
** .safetensors files, PNG files, slice strings. LUMA_FUZZ=npy|npz|safetensors|png|slice says which. A file
** that is read must be written and read again as the same. See scripts/dev/fuzz/run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "luma_lua.h"
#include "png.h"

#define MB ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static lua_State *L;
static luma_state *S;
static const char *kind;
static char path[64], again[64];

static void fail(const char *what) {
    fprintf(stderr, "files: %s: %s\n", what, luma_message(S));
    abort();
}

static void remove_files(void) {
    unlink(path);
    unlink(again);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    kind = getenv("LUMA_FUZZ");
    if (!kind) kind = "npy";
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/luma-fuzz-%d.%s", folder, (int)getpid(), kind);
    snprintf(again, sizeof again, "%s/luma-fuzz-%d-again.%s", folder, (int)getpid(), kind);
    atexit(remove_files);
    L = luaL_newstate();
    luaL_openlibs(L);
    luma_lua_open(L, LUMA_LUA_NO_CUDA | LUMA_LUA_NO_THREADS);
    lua_setglobal(L, "luma");
    S = luma_lua_state(L);
    luma_set_memory_limit(S, "cpu", 64 * MB);
    if (luaL_dostring(L,
                      "local x = luma.range(1, 120):reshape(2, 3, 4, 5)\n"
                      "local y = luma.range(1, 7)\n"
                      "return function(s)\n"
                      "    for _, t in ipairs {x, y} do\n"
                      "        local good, v = pcall(function() return t[s] end)\n"
                      "        if good and luma.is_tensor(v) then v:sum() end\n"
                      "        if not good then assert(type(v) == 'string' and #v < 500, v) end\n"
                      "        pcall(function() t:clone()[s] = 1 end)\n"
                      "    end\n"
                      "end") != LUA_OK)
        abort();
    return 0;
}

static void slice(const uint8_t *data, size_t size) {
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        fprintf(stderr, "files: slice: %s\n", lua_tostring(L, -1));
        abort();
    }
}

static void write_input(const uint8_t *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size) abort();
    fclose(f);
}

static void picture(void) {
    static const unsigned formats[] = {LM_PNG_AS_STORED, 0, LM_PNG_ALPHA, LM_PNG_COLOR,
                                       LM_PNG_COLOR | LM_PNG_ALPHA | LM_PNG_BGR};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        luma_tensor x = LUMA_NEW;
        if (lm_png_load(S, &x, path, formats[i]) == LUMA_OK) luma_release(S, &x);
    }
}

/* Two tensors are the same to the bit. */
static void compare(const luma_tensor *x, const luma_tensor *y) {
    size_t n = (size_t)luma_numel(x) * luma_dtype_size(x->dtype);
    char *a = malloc(n + 1), *b = malloc(n + 1);
    if (x->dtype != y->dtype || luma_numel(x) != luma_numel(y) ||
        x->layout.ndim != y->layout.ndim ||
        memcmp(x->layout.shape, y->layout.shape, (size_t)x->layout.ndim * sizeof(int64_t)) != 0)
        fail("another shape or dtype");
    if (!a || !b || luma_read(S, x, a, n) != LUMA_OK || luma_read(S, y, b, n) != LUMA_OK ||
        memcmp(a, b, n) != 0)
        fail("other elements");
    free(a);
    free(b);
}

static void tensors(void) {
    luma_file file = {0}, copy = {0};
    if (luma_load(S, &file, path) != LUMA_OK) {
        if (*luma_message(S) == 0) fail("an error without a message");
        return;
    }
    const char *const *names = (const char *const *)file.names;
    if (luma_save(S, again, file.n, names, file.tensors, file.n % 2 == 0, file.nmetadata,
                  file.metadata) == LUMA_OK) {
        if (luma_load(S, &copy, again) != LUMA_OK) fail("cannot be read again");
        if (copy.n != file.n || copy.nmetadata != file.nmetadata) fail("another number of tensors");
        for (int i = 0; i < file.n; i++)
            for (int j = 0; j < copy.n; j++)
                if (!names || !names[0] || strcmp(names[i], copy.names[j]) == 0)
                    compare(&file.tensors[i], &copy.tensors[j]);
        luma_close_file(S, &copy);
    }
    luma_close_file(S, &file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (strcmp(kind, "slice") == 0) {
        slice(data, size);
        return 0;
    }
    write_input(data, size);
    if (strcmp(kind, "png") == 0)
        picture();
    else
        tensors();
    return 0;
}
