/* module.c -- modules, functions and launches. PTX is read for its version, its target and its
** entries; what runs is the kernel of that name that the host's compiler made of the same source. A
** kernel that has none there loads, so that its arguments can be checked, and is refused when it is
** launched. Layer: kernels. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

struct CUfunc_st {
    lm_emu_program program;
    lm_emu_kernel foreign; /* what program.kernel is of a kernel that cannot run here */
    CUmodule module;
    int most_threads; /* of a block */
    int most_dynamic; /* bytes of dynamic shared memory */
    struct CUfunc_st *next;
};

struct CUmod_st {
    CUcontext context; /* NULL: unloaded */
    int ptx;
    bool every_kernel; /* no entries, as in a build without nvcc: all kernels are in it */
    CUfunction functions;
    struct CUmod_st *next;
};

static CUmodule modules;

/* ---- PTX ---- */

/* What the caller wants to know of errors. */
typedef struct {
    char *text;
    size_t size;
} error_log;

static error_log find_log(unsigned count, const CUjit_option *options, void **values) {
    error_log log = {NULL, 0};
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.text = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) log.size = (size_t)values[i];
    }
    if (!log.text) log.size = 0;
    return log;
}

#define LOG(log, ...)                                                                              \
    do {                                                                                           \
        if ((log).size > 0) snprintf((log).text, (log).size, __VA_ARGS__);                         \
    } while (0)

/* The bytes of a type: "u64", "f32", "b8". */
static unsigned type_size(const char *type) {
    return isalpha((unsigned char)type[0]) ? (unsigned)strtoul(type + 1, NULL, 10) / 8 : 0;
}

/* A word after a dot; moves *p past it. */
static void read_word(const char **p, char *word, size_t size) {
    size_t n = 0;
    while (isalnum((unsigned char)**p) || **p == '_' || **p == '$') {
        if (n + 1 < size) word[n++] = **p;
        ++*p;
    }
    word[n] = 0;
}

/* ".param .align 8 .b8 name_param_0[216]" up to `end`: its size and alignment. What stands after
** .ptr is about what the pointer points at. */
static void read_parameter(const char *p, const char *end, unsigned *size, unsigned *align) {
    bool pointee = false;
    *size = *align = 0;
    while (p < end) {
        char word[16];
        if (*p == '[') *size *= (unsigned)strtoul(p + 1, NULL, 10);
        if (*p++ != '.') continue;
        read_word(&p, word, sizeof word);
        if (strcmp(word, "ptr") == 0) pointee = true;
        if (strcmp(word, "align") == 0 && !pointee) *align = (unsigned)strtoul(p, NULL, 10);
        if (*size == 0 && type_size(word) > 0) *size = type_size(word);
    }
    if (*align == 0) *align = *size;
}

/* The entry has the one parameter of its host kernel? */
static bool same_signature(const lm_emu_kernel *k, const char *open, const char *close) {
    const char *p = strstr(open, ".param");
    unsigned size = 0, align = 0;
    int count = 0;
    while (p && p < close) {
        const char *end = p + strcspn(p, ",)");
        if (count++ == 0) read_parameter(p + 6, end, &size, &align);
        p = strstr(end, ".param");
    }
    if (count == 1 && size == k->size && align == k->align) return true;
    lm_emu_report(0, "ptx-signature",
                  "%s has %d parameters, the first of size %u align %u; the host's has one of size "
                  "%u align %u",
                  k->name, count, size, align, k->size, k->align);
    return false;
}

/* documented: the directive .maxntid bounds the threads of a block */
static int read_bound(const char *close) {
    const char *body = strchr(close, '{'), *bound = strstr(close, ".maxntid");
    int x, y = 1, z = 1;
    if (!bound || !body || bound > body) return 1024;
    if (sscanf(bound, ".maxntid %d , %d , %d", &x, &y, &z) < 1) return 1024;
    return x * y * z;
}

static CUfunction add_function(CUmodule m, const lm_emu_kernel *k, int most_threads) {
    CUfunction f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->program.kernel = k;
    f->module = m;
    f->most_threads = most_threads;
    f->most_dynamic = 48 * 1024;
    f->next = m->functions;
    m->functions = f;
    return f;
}

static CUfunction add_foreign(CUmodule m, const char *name, int most_threads) {
    CUfunction f = add_function(m, NULL, most_threads);
    if (!f) return NULL;
    f->foreign.name = strdup(name);
    f->program.kernel = &f->foreign;
    return f->foreign.name ? f : NULL;
}

static bool is_foreign(CUfunction f) {
    return f->program.kernel == &f->foreign;
}

static CUresult read_entries(CUmodule m, const char *image, error_log log) {
    for (const char *p = image; (p = strstr(p, ".entry"));) {
        char name[256];
        p += strlen(".entry");
        p += strspn(p, " \t\r\n");
        read_word(&p, name, sizeof name);
        const lm_emu_kernel *k = lm_emu_kernel_find(name);
        p += strspn(p, " \t\r\n");
        const char *open = p, *close = *p == '(' ? strchr(p, ')') : p; /* there may be no list */
        if (!close) {
            LOG(log, "kernel %s has a parameter list without end", name);
            return CUDA_ERROR_INVALID_PTX;
        }
        if (k && !same_signature(k, open, close)) return CUDA_ERROR_INVALID_PTX;
        int bound = read_bound(close);
        if (!(k ? add_function(m, k, bound) : add_foreign(m, name, bound)))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* documented: UNSUPPORTED_PTX_VERSION when .version is newer than the driver, NO_BINARY_FOR_GPU
** when .target is newer than the device; measured: the text of the log, from ptxas */
static CUresult read_header(CUmodule m, const char *image, error_log log) {
    const char *version = strstr(image, ".version"), *target = strstr(image, ".target");
    int major, minor, sm;
    if (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2 || !target ||
        sscanf(target, ".target sm_%d", &sm) != 1) {
        LOG(log, "the image is no PTX");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    m->ptx = major * 10 + minor;
    if (m->ptx > lm_emu_cfg.ptx) {
        LOG(log,
            "ptxas application ptx input, line 1; fatal   : Unsupported .version %d.%d; "
            "current version is '%d.%d'",
            major, minor, lm_emu_cfg.ptx / 10, lm_emu_cfg.ptx % 10);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (sm > lm_emu_cfg.cc) {
        LOG(log, "sm_%d is newer than the device", sm);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return CUDA_SUCCESS;
}

static void free_functions(CUmodule m) {
    for (CUfunction f = m->functions, next; f; f = next) {
        next = f->next;
        free((char *)(uintptr_t)f->foreign.name);
        free(f);
    }
    m->functions = NULL;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!module || !image || (count > 0 && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
    error_log log = find_log(count, options, values);
    CUmodule m = calloc(1, sizeof *m);
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = read_header(m, image, log);
    if (result == CUDA_SUCCESS) result = read_entries(m, image, log);
    if (result != CUDA_SUCCESS) {
        free_functions(m);
        free(m);
        return result;
    }
    m->every_kernel = !m->functions;
    m->context = lm_emu_current();
    m->next = modules;
    modules = m;
    *module = m;
    lm_emu_count.modules++;
    return CUDA_SUCCESS;
}

/* Unloaded modules and their functions stay recognisable; there are few. */
static void unload(CUmodule m) {
    m->context = NULL;
    lm_emu_count.modules--;
}

static CUresult check_module(CUmodule m) {
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    if (m->context == lm_emu_current()) return CUDA_SUCCESS;
    lm_emu_report(0, "module-handle",
                  m->context ? "a module of another context" : "a module that was unloaded");
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule module) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    CUresult result = check_module(module);
    if (result != CUDA_SUCCESS) return result;
    lm_emu_drain_device(module->context->device);
    unload(module);
    return CUDA_SUCCESS;
}

void lm_emu_modules_reset(CUcontext context) {
    for (CUmodule m = modules; m; m = m->next)
        if (m->context == context) unload(m);
}

void lm_emu_modules_cover(void) {
    const char *path = getenv("LUMA_EMU_COVERAGE");
    FILE *file = path && *path ? fopen(path, "a") : NULL;
    if (!file) return;
    for (CUmodule m = modules; m; m = m->next)
        for (CUfunction f = m->functions; f; f = f->next)
            if (f->program.launches > 0) fprintf(file, "%s\n", f->program.kernel->name);
    fclose(file);
}

/* ---- functions ---- */

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_module(module);
    if (result != CUDA_SUCCESS) return result;
    for (CUfunction f = module->functions; f; f = f->next) {
        if (strcmp(f->program.kernel->name, name) == 0) {
            *function = f;
            return CUDA_SUCCESS;
        }
    }
    const lm_emu_kernel *k = module->every_kernel ? lm_emu_kernel_find(name) : NULL;
    if (!k) return CUDA_ERROR_NOT_FOUND;
    *function = add_function(module, k, 1024);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult check_function(CUfunction f) {
    return f ? check_module(f->module) : CUDA_ERROR_INVALID_HANDLE;
}

/* What only a compiler for the device knows is that of a small kernel. */
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    CUresult result = check_function(function);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) return result;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = function->most_threads;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)(function->program.shared_high - function->program.shared_low);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = function->module->ptx;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = lm_emu_cfg.cc;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->most_dynamic;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* documented: the only one that can be set here, up to the opt-in size of the device */
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    CUresult result = check_function(function);
    if (result != CUDA_SUCCESS) return result;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > lm_emu_optin_shared())
        return CUDA_ERROR_INVALID_VALUE;
    function->most_dynamic = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    CUresult result = check_function(function);
    if (result != CUDA_SUCCESS) return result;
    if (!offset || index > 0 || is_foreign(function)) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    if (size) *size = function->program.kernel->size;
    return CUDA_SUCCESS;
}

/* documented limits of grids and blocks; measured: INVALID_VALUE where one is exceeded or 0 */
static bool possible(CUfunction f, lm_emu_dim3 grid, lm_emu_dim3 block) {
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return false;
    if (block.x > 1024 || block.y > 1024 || block.z > 64) return false;
    return block.x * block.y * block.z <= (unsigned)f->most_threads;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    CUresult result = check_function(function);
    if (result != CUDA_SUCCESS) return result;
    lm_emu_dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    if (!possible(function, grid, block) || shared > (unsigned)function->most_dynamic)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_foreign(function)) return CUDA_ERROR_NOT_SUPPORTED;
    if (extra || !parameters || !parameters[0]) return CUDA_ERROR_INVALID_VALUE;
    if (lm_emu_cfg.stub) {
        lm_emu_count.launches++;
        return CUDA_SUCCESS;
    }
    return lm_emu_enqueue_launch(stream, &function->program, parameters[0], grid, block, shared);
}
