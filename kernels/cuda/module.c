/* module.c -- the modules of every device, loaded at the first launch of one of their kernels and
** kept for the process; launches. Layer: kernels/cuda. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "cuda/ptx.h"

#define PLAIN_SHARED (48u << 10) /* bytes of shared memory that need no opting in */

static const struct {
    const char *module, *name;
    size_t size; /* of the parameter */
} kernels[] = {
#define KERNEL(module, name, args) {#module, #name, sizeof(args)},
#include "cuda/kernels.def"
#undef KERNEL
};

typedef struct {
    CUfunction handle; /* NULL until first used; set last */
    unsigned fixed;    /* bytes of static shared memory */
    unsigned dynamic;  /* bytes of dynamic shared memory that a launch may ask for as it is */
} function;

/* A module goes by the number of its first kernel. */
typedef struct {
    CUmodule handle;
    char *why; /* it can never be loaded */
} module;

struct lm_modules {
    CUcontext context; /* retained until the process ends */
    function functions[LM_NKERNELS];
    module modules[LM_NKERNELS];
};

/* The lock guards all but reading the handle of a function. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lm_modules *tables[LM_MAX_DEVICES];

luma_status lm_modules_open(luma_state *S, lm_cuda *c, lm_modules **out) {
    luma_status status = LUMA_OK;
    pthread_mutex_lock(&lock);
    lm_modules *t = tables[c->ordinal];
    if (!t) {
        t = calloc(1, sizeof *t);
        status =
            t ? lm_cuda_check(S, c, c->driver->cuDevicePrimaryCtxRetain(&t->context, c->handle),
                              "cuDevicePrimaryCtxRetain")
              : lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
        if (status == LUMA_OK)
            tables[c->ordinal] = t;
        else
            free(t);
    }
    if (status == LUMA_OK) {
        *out = t;
        c->context = t->context;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- loading ---- */

/* The newest PTX that a driver knows, as 10 x version; 0 for one that is too old. */
static int ptx_of(int driver) {
    static const struct {
        int driver, ptx;
    } known[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84},
                 {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77},
                 {11060, 76}, {11050, 75}, {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71},
                 {11000, 70}, {10020, 65}, {10010, 64}, {10000, 63}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (driver >= known[i].driver) return known[i].ptx;
    return 0;
}

/* Writes the driver's own version into the line .version; false when that is not lower. The code
** needs nothing newer than 6.3, which the build has checked. */
static bool lower_version(char *text, int driver) {
    char *line = strstr(text, ".version "), version[16];
    int major, minor, newest = ptx_of(driver), end = 0;
    if (!line || sscanf(line, ".version %d.%d%n", &major, &minor, &end) != 2) return false;
    if (newest == 0 || newest >= major * 10 + minor) return false;
    int n = snprintf(version, sizeof version, ".version %d.%d", newest / 10, newest % 10);
    if (n > end) return false;
    memset(line, ' ', (size_t)end);
    memcpy(line, version, (size_t)n);
    return true;
}

typedef struct {
    char text[512];
} load_log;

static CUresult load_text(const lm_cuda *c, const char *text, load_log *log, CUmodule *out) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log->text, (void *)(uintptr_t)sizeof log->text};
    log->text[0] = '\0';
    CUresult result = c->driver->cuModuleLoadDataEx(out, text, 2, options, values);
    log->text[sizeof log->text - 1] = '\0';
    size_t n = strlen(log->text);
    while (n > 0 && (log->text[n - 1] == '\n' || log->text[n - 1] == ' '))
        log->text[--n] = '\0';
    return result;
}

/* Errors that the same text will meet again. */
static bool stays(CUresult result) {
    return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
           result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/* Where the driver is older than the text, once more with the line .version lowered in place. */
static CUresult load_lowered(const lm_cuda *c, char *text, load_log *log, CUmodule *out) {
    CUresult result = load_text(c, text, log, out);
    if ((result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_INVALID_PTX) &&
        lower_version(text, c->driver->version))
        result = load_text(c, text, log, out);
    return result;
}

static luma_status check_load(luma_state *S, lm_cuda *c, CUresult result, const char *name,
                              const load_log *log) {
    char what[600];
    if (result == CUDA_SUCCESS) return LUMA_OK;
    snprintf(what, sizeof what, "cuModuleLoadDataEx of %s%s%s", name, log->text[0] ? ": " : "",
             log->text);
    return lm_cuda_check(S, c, result, what);
}

luma_status lm_cuda_load(luma_state *S, lm_cuda *c, char *text, const char *name, CUmodule *out) {
    load_log log;
    return check_load(S, c, load_lowered(c, text, &log, out), name, &log);
}

static luma_status load(luma_state *S, lm_cuda *c, const char *name, module *m) {
    if (m->handle) return LUMA_OK;
    if (m->why) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", m->why);
    char *text = lm_ptx_text(name), quoted[64];
    if (!text) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    load_log log;
    CUresult result = load_lowered(c, text, &log, &m->handle);
    free(text);
    snprintf(quoted, sizeof quoted, "'%s'", name);
    luma_status status = check_load(S, c, result, quoted, &log);
    if (status != LUMA_OK && stays(result)) m->why = strdup(luma_message(S));
    return status;
}

static luma_status find_function(luma_state *S, lm_cuda *c, lm_kernel kernel, function *f) {
    const lm_driver *driver = c->driver;
    const char *name = kernels[kernel].name;
    lm_kernel first = kernel;
    for (int k = (int)kernel - 1; k >= 0; k--)
        if (strcmp(kernels[k].module, kernels[kernel].module) == 0) first = (lm_kernel)k;
    module *m = &c->modules->modules[first];
    char what[128];
    CUfunction handle;
    int fixed = 0;
    size_t offset, size = kernels[kernel].size;
    LM_TRY(load(S, c, kernels[kernel].module, m));
    snprintf(what, sizeof what, "cuModuleGetFunction of '%s'", name);
    LM_TRY(lm_cuda_check(S, c, driver->cuModuleGetFunction(&handle, m->handle, name), what));
    LM_TRY(lm_cuda_check(
        S, c, driver->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle),
        "cuFuncGetAttribute"));
    if (driver->cuFuncGetParamInfo)
        LM_TRY(lm_cuda_check(S, c, driver->cuFuncGetParamInfo(handle, 0, &offset, &size),
                             "cuFuncGetParamInfo"));
    if (size != kernels[kernel].size)
        return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s: kernel '%s' takes %zu bytes, not %zu", c->name,
                       name, size, kernels[kernel].size);
    f->fixed = (unsigned)fixed;
    f->dynamic = f->fixed < PLAIN_SHARED ? PLAIN_SHARED - f->fixed : 0;
    __atomic_store_n(&f->handle, handle, __ATOMIC_RELEASE);
    return LUMA_OK;
}

/* All shared memory that the device has for a block. */
static luma_status opt_in(luma_state *S, lm_cuda *c, lm_kernel kernel, function *f,
                          unsigned wanted) {
    int most = c->shared_per_block - (int)f->fixed;
    if (most < 0 || wanted > (unsigned)most)
        return lm_fail(S, LUMA_ERR_DEVICE, 0,
                       "%s: kernel '%s' wants %u bytes of shared memory, %d are there", c->name,
                       kernels[kernel].name, wanted, most);
    LM_TRY(lm_cuda_check(S, c,
                         c->driver->cuFuncSetAttribute(
                             f->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
                         "cuFuncSetAttribute"));
    __atomic_store_n(&f->dynamic, (unsigned)most, __ATOMIC_RELEASE);
    return LUMA_OK;
}

static luma_status prepare(luma_state *S, lm_cuda *c, lm_kernel kernel, unsigned shared) {
    function *f = &c->modules->functions[kernel];
    luma_status status = LUMA_OK;
    pthread_mutex_lock(&lock);
    if (!f->handle) status = find_function(S, c, kernel, f);
    if (status == LUMA_OK && shared > f->dynamic) status = opt_in(S, c, kernel, f, shared);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- launching ---- */

luma_status lm_cuda_launch(luma_state *S, lm_cuda *c, lm_kernel kernel, lm_shape shape,
                           const void *args) {
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return LUMA_OK;
    const function *f = &c->modules->functions[kernel];
    if (!__atomic_load_n(&f->handle, __ATOMIC_ACQUIRE) ||
        shape.shared > __atomic_load_n(&f->dynamic, __ATOMIC_ACQUIRE))
        LM_TRY(prepare(S, c, kernel, shape.shared));
    void *parameters[] = {(void *)(uintptr_t)args};
    CUresult result =
        c->driver->cuLaunchKernel(f->handle, shape.grid.x, shape.grid.y, shape.grid.z, shape.block,
                                  1, 1, shape.shared, c->stream, parameters, NULL);
    if (result != CUDA_SUCCESS) {
        char what[128];
        snprintf(what, sizeof what, "cuLaunchKernel of '%s'", kernels[kernel].name);
        return lm_cuda_check(S, c, result, what);
    }
    c->launches++;
    return c->sync_always ? lm_cuda_synchronize(S, c->device) : LUMA_OK;
}

lm_shape lm_cuda_shape(const lm_cuda *c, int64_t n, int each, unsigned block) {
    enum { ROUNDS = 8 };
    int64_t a_block = (int64_t)block * each;
    int64_t blocks = n / a_block + (n % a_block != 0);
    int64_t resident = c->threads_per_multiprocessor / (int)block;
    int64_t most = (int64_t)c->multiprocessors * (resident > 0 ? resident : 1) * ROUNDS;
    unsigned x = (unsigned)(blocks < most ? blocks : most);
    return (lm_shape){.grid = {x, 1, 1}, .block = block, .shared = 0};
}
