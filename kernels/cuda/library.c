/* library.c -- opens CUDA's libraries by name and keeps them; the one table of the process.
** Layer: kernels/cuda. */
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"

bool lm_driver_forked;

typedef struct {
    const char *name;
    bool need;
    size_t at; /* of the pointer in its table */
} entry;

#define ENTRY(table, need, result, name, parameters) {#name, need, offsetof(table, name)},
static const entry driver_entries[] = {LM_CUDA_API(ENTRY, lm_driver){NULL, false, 0}};
static const entry cublas_entries[] = {LM_CUBLAS_API(ENTRY, lm_cublas){NULL, false, 0}};
static const entry curand_entries[] = {LM_CURAND_API(ENTRY, lm_curand){NULL, false, 0}};
static const entry nvrtc_entries[] = {LM_NVRTC_API(ENTRY, lm_nvrtc){NULL, false, 0}};
static const entry emulator_entries[] = {{"luma_emu_block", false, offsetof(lm_driver, emu_block)},
                                         {"luma_emu_counts", true, offsetof(lm_driver, emu_counts)},
                                         {"luma_emu_fail", false, offsetof(lm_driver, emu_fail)},
                                         {NULL, false, 0}};
#undef ENTRY

typedef struct {
    const char *title;    /* "CUDA driver" */
    const char *variable; /* of the environment, names another file */
    const entry *entries;
    void *table;
    bool tried, open;
    void *handle; /* of dlopen; NULL: the emulator inside the library */
    char *why;
} library;

static lm_driver driver;
static lm_cublas cublas;
static lm_curand curand;
static lm_nvrtc nvrtc;
static library driver_library = {.title = "CUDA driver",
                                 .variable = "LUMA_LIBCUDA",
                                 .entries = driver_entries,
                                 .table = &driver};
static library cublas_library = {
    .title = "cuBLAS", .variable = "LUMA_LIBCUBLAS", .entries = cublas_entries, .table = &cublas};
static library curand_library = {
    .title = "cuRAND", .variable = "LUMA_LIBCURAND", .entries = curand_entries, .table = &curand};
static library nvrtc_library = {
    .title = "NVRTC", .variable = "LUMA_LIBNVRTC", .entries = nvrtc_entries, .table = &nvrtc};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- why not ---- */

typedef struct {
    char text[900];
    size_t used;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, list);
    va_end(list);
    w->used += n > 0 ? (size_t)n : 0;
    if (w->used >= sizeof w->text) w->used = sizeof w->text - 1;
}

/* Readers of other threads may hold the text before: it stays. */
static void set_why(library *l, const char *title, const words *w) {
    char text[1024];
    snprintf(text, sizeof text, "no %s (%s)", title, w->text);
    if (l->why && strcmp(l->why, text) == 0) return;
    l->why = strdup(text);
}

/* ---- opening ---- */

static void *symbol(const library *l, const char *name) {
    return l->handle ? dlsym(l->handle, name) : lm_emulator_symbol(name);
}

/* Fills the table; the first name that is needed and not there, or NULL. */
static const char *fill(const library *l, const entry *entries) {
    for (const entry *e = entries; e->name; e++) {
        void *p = symbol(l, e->name);
        if (!p && e->need) return e->name;
        memcpy((char *)l->table + e->at, &p, sizeof p);
    }
    return NULL;
}

/* Opens one file and takes its functions. */
static bool take(library *l, const char *before, const char *file, words *w) {
    l->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) {
        const char *problem = dlerror();
        size_t skip = strlen(file);
        if (!problem) problem = "cannot be opened";
        if (strncmp(problem, file, skip) == 0 && strncmp(problem + skip, ": ", 2) == 0)
            problem += skip + 2;
        say(w, "%s%s: %s", before, file, problem);
        return false;
    }
    const char *missing = fill(l, l->entries);
    if (!missing) return true;
    say(w, "%s%s: has no %s", before, file, missing);
    dlclose(l->handle);
    l->handle = NULL;
    return false;
}

/* From `files` in turn, up to NULL, or only from the one that the environment names. */
static bool take_any(library *l, const char *const *files, words *w) {
    const char *named = getenv(l->variable);
    if (named && *named) {
        char before[32];
        snprintf(before, sizeof before, "%s=", l->variable);
        return take(l, before, named, w);
    }
    for (; *files; files++)
        if (take(l, w->used ? "; " : "", *files, w)) return true;
    return false;
}

static bool is_named(const library *l) {
    const char *named = getenv(l->variable);
    return named && *named;
}

/* The rest of the libraries follow the driver's kind: an emulated device has none of NVIDIA's. */
static bool open_library(library *l, const char *const *files, const char **why) {
    const lm_driver *d = lm_driver_open(NULL);
    pthread_mutex_lock(&lock);
    if (!l->tried) {
        words w = {.used = 0};
        const char *missing = NULL;
        if (d && d->emulated && !is_named(l)) {
            l->handle = driver_library.handle;
            missing = fill(l, l->entries);
            l->open = !missing;
            if (missing) say(&w, "the emulated device has no %s", missing);
        } else {
            l->open = take_any(l, files, &w);
        }
        l->tried = true;
        if (!l->open) set_why(l, l->title, &w);
    }
    if (why) *why = l->open ? NULL : l->why ? l->why : "not enough memory";
    pthread_mutex_unlock(&lock);
    return l->open;
}

/* ---- the driver ---- */

static void after_fork(void) {
    lm_driver_forked = true;
}

static bool take_driver(words *w) {
    static const char *const files[] = {"libcuda.so.1", "libcuda.so", NULL};
    library *l = &driver_library;
    const char *mode = getenv("LUMA_CUDA");
    if (!mode || !*mode) mode = "auto";
    bool off = strcmp(mode, "off") == 0, emulate = strcmp(mode, "emulate") == 0;
    if (!off && !emulate && strcmp(mode, "auto") != 0) {
        say(w, "LUMA_CUDA=%.40s: auto, off or emulate expected", mode);
        return false;
    }
    if (off) {
        say(w, "LUMA_CUDA=off");
        return false;
    }
    if (!emulate || is_named(l)) return take_any(l, files, w);
    l->handle = NULL;
    const char *missing = fill(l, l->entries), *problem = lm_emulator_problem();
    if (problem) say(w, "the emulated device: %s", problem);
    if (missing && !problem) say(w, "the emulated device has no %s", missing);
    return !missing;
}

/* A driver that is there may come to work later: cuInit is tried at each need. */
static bool start_driver(words *w) {
    static bool watching;
    if (!watching) watching = pthread_atfork(NULL, NULL, after_fork) == 0;
    CUresult result = driver.cuInit(0);
    const char *call = "cuInit";
    if (result == CUDA_SUCCESS) {
        call = "cuDriverGetVersion";
        result = driver.cuDriverGetVersion(&driver.version);
    }
    if (result == CUDA_SUCCESS) return true;
    if (result == CUDA_ERROR_STUB_LIBRARY) {
        say(w, "libcuda is the toolkit's stub, made for linking only");
        return false;
    }
    const char *name = NULL, *text = NULL;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "unknown error";
    if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) text = name;
    say(w, "%s: %s (%s, %d)", call, text, name, result);
    return false;
}

/* Under the lock. */
static void find_driver(library *l) {
    words w = {.used = 0};
    if (l->tried) return;
    l->open = take_driver(&w);
    l->tried = true;
    if (!l->open) set_why(l, l->title, &w);
    if (l->open) driver.emulated = fill(l, emulator_entries) == NULL;
}

bool lm_driver_there(const char **why) {
    library *l = &driver_library;
    pthread_mutex_lock(&lock);
    find_driver(l);
    if (why) *why = l->open ? NULL : l->why ? l->why : "not enough memory";
    pthread_mutex_unlock(&lock);
    return l->open;
}

const lm_driver *lm_driver_open(const char **why) {
    library *l = &driver_library;
    static bool started;
    pthread_mutex_lock(&lock);
    words w = {.used = 0};
    find_driver(l);
    if (l->open && !started && lm_driver_forked) {
        say(&w, "this process is a fork of one that has tried CUDA");
        set_why(l, "CUDA device", &w);
    } else if (l->open && !started) {
        started = start_driver(&w);
        if (!started) set_why(l, "CUDA device", &w);
    }
    if (why) *why = started ? NULL : l->why ? l->why : "not enough memory";
    pthread_mutex_unlock(&lock);
    return started ? &driver : NULL;
}

/* ---- the others ---- */

const lm_cublas *lm_cublas_open(const char **why) {
    /* cuBLAS of a major version wants a driver of that version */
    static const char *const files[] = {"libcublas.so.13",
                                        "/usr/local/cuda/lib64/libcublas.so.13",
                                        "libcublas.so.12",
                                        "/usr/local/cuda/lib64/libcublas.so.12",
                                        "libcublas.so.11",
                                        "/usr/local/cuda/lib64/libcublas.so.11",
                                        NULL};
    const lm_driver *d = lm_driver_open(why);
    if (!d) return NULL;
    int newest = d->version >= 13000 ? 0 : d->version >= 12000 ? 2 : 4;
    return open_library(&cublas_library, files + newest, why) ? &cublas : NULL;
}

const lm_curand *lm_curand_open(const char **why) {
    static const char *const files[] = {"libcurand.so.10", "/usr/local/cuda/lib64/libcurand.so.10",
                                        NULL};
    return open_library(&curand_library, files, why) ? &curand : NULL;
}

const lm_nvrtc *lm_nvrtc_open(const char **why) {
    static const char *const files[] = {"libnvrtc.so.13",
                                        "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so.12",
                                        "libnvrtc.so.11.2",
                                        "/usr/local/cuda/lib64/libnvrtc.so.11.2",
                                        NULL};
    return open_library(&nvrtc_library, files, why) ? &nvrtc : NULL;
}

/* ---- what was found ---- */

/* The file of what dlopen gave, with links followed. */
static void find_file(void *handle, char *file, size_t size) {
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return;
    char *path = realpath(map->l_name, NULL);
    snprintf(file, size, "%s", path ? path : map->l_name);
    free(path);
}

void lm_library_list(lm_library_facts list[LM_NLIBRARIES]) {
    library *const libraries[LM_NLIBRARIES] = {&driver_library, &cublas_library, &curand_library,
                                               &nvrtc_library};
    const char *why[LM_NLIBRARIES];
    lm_driver_there(&why[0]);
    lm_cublas_open(&why[1]);
    lm_curand_open(&why[2]);
    lm_nvrtc_open(&why[3]);
    for (int i = 0; i < LM_NLIBRARIES; i++) {
        list[i] = (lm_library_facts){.title = libraries[i]->title, .why = why[i]};
        if (i == 0 && !why[i]) list[i].version = driver.version;
        if (why[i]) continue;
        list[i].emulated = !libraries[i]->handle || libraries[i]->handle == driver_library.handle;
        list[i].emulated = list[i].emulated && driver.emulated;
        if (libraries[i]->handle)
            find_file(libraries[i]->handle, list[i].file, sizeof list[i].file);
    }
}

/* ---- names of statuses ---- */

typedef struct {
    const char *name;
    int value;
} named;

/* The values of a library are not all statuses. */
static const char *status_name(const named *names, size_t n, const char *prefix, int status) {
    for (size_t i = 0; i < n; i++) {
        if (names[i].value == status && strncmp(names[i].name, prefix, strlen(prefix)) == 0)
            return names[i].name;
    }
    return "an unknown status";
}

#define NAMED(_, name, value) {#name, value},

const char *lm_cublas_status_name(cublasStatus_t status) {
    static const named names[] = {LM_CUBLAS_VALUES(NAMED, _)};
    return status_name(names, sizeof names / sizeof names[0], "CUBLAS_STATUS", (int)status);
}

const char *lm_curand_status_name(curandStatus_t status) {
    static const named names[] = {LM_CURAND_VALUES(NAMED, _)};
    return status_name(names, sizeof names / sizeof names[0], "CURAND_STATUS", (int)status);
}
