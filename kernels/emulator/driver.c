/* driver.c -- the functions of libcuda that are no streams and no modules: initialisation, devices,
** contexts, memory. Layer: kernels. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

static bool initialised, forked, closing;

/* The calling thread's stack of contexts. */
enum { MOST_CONTEXTS = 64 };
static _Thread_local struct {
    CUcontext stack[MOST_CONTEXTS];
    int depth;
} current;

CUcontext lm_emu_current(void) {
    return current.depth > 0 ? current.stack[current.depth - 1] : NULL;
}

bool lm_emu_works(void) {
    return !closing && !forked;
}

/* What a call that has to fail gives: what a driver could say there. */
static CUresult injected_error(const char *function) {
    if (strncmp(function, "cuMemAlloc", 10) == 0 || strstr(function, "Create") ||
        strcmp(function, "cuModuleLoadDataEx") == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (strcmp(function, "cuInit") == 0) return CUDA_ERROR_NO_DEVICE;
    if (strcmp(function, "cuLaunchKernel") == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return CUDA_ERROR_UNKNOWN;
}

/* documented: NOT_INITIALIZED before cuInit, DEINITIALIZED while the process ends, INVALID_CONTEXT
** without a current context, CONTEXT_IS_DESTROYED when the primary context was released, and every
** call gives the error of work that failed before. measured: NOT_INITIALIZED in a forked child */
CUresult lm_emu_enter(const char *function, lm_emu_needs needs) {
    if (closing) return CUDA_ERROR_DEINITIALIZED;
    if (forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (lm_emu_injected(function)) return injected_error(function);
    if (needs == LM_EMU_ANY_TIME) return CUDA_SUCCESS;
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs == LM_EMU_INITIALISED) return CUDA_SUCCESS;
    CUcontext c = lm_emu_current();
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->references) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    lm_emu_active = c->device;
    return c->error;
}

/* ---- initialisation ---- */

static void after_fork(void) {
    forked = true;
    lm_emu_lock_forked();
}

__attribute__((destructor)) static void at_exit(void) {
    if (initialised && !forked) lm_emu_modules_cover();
    closing = true;
}

/* documented: flags are 0; may be called again */
CUresult cuInit(unsigned flags) {
    LM_EMU_ENTER(LM_EMU_ANY_TIME);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (!initialised) {
        if (!lm_emu_config_read() || !lm_emu_memory_open()) return CUDA_ERROR_UNKNOWN;
        pthread_atfork(NULL, NULL, after_fork);
        initialised = true;
    }
    return lm_emu_cfg.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* documented: the driver of a toolkit knows its PTX version and those before */
CUresult cuDriverGetVersion(int *version) {
    static const struct {
        int ptx, driver;
    } known[] = {{60, 9000},  {61, 9010},  {62, 9020},  {63, 10000}, {64, 10010},
                 {65, 10020}, {70, 11000}, {71, 11010}, {72, 11020}, {73, 11030},
                 {74, 11040}, {75, 11050}, {76, 11060}, {77, 11070}, {78, 11080},
                 {80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
                 {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}};
    LM_EMU_ENTER(LM_EMU_ANY_TIME);
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    int ptx = initialised ? lm_emu_cfg.ptx : 90;
    *version = known[0].driver;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].ptx <= ptx) *version = known[i].driver;
    return CUDA_SUCCESS;
}

/* documented: both need no initialisation; INVALID_VALUE for an unknown error */
CUresult cuGetErrorName(CUresult error, const char **name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    switch (error) {
#define ERROR_NAME(_, symbol, value)                                                               \
    case value:                                                                                    \
        *name = #symbol;                                                                           \
        return CUDA_SUCCESS;
        LM_CUDA_ERRORS(ERROR_NAME, _)
#undef ERROR_NAME
    default:
        *name = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static const char *error_text(CUresult error) {
    switch (error) {
    case CUDA_SUCCESS:
        return "no error";
    case CUDA_ERROR_INVALID_VALUE:
        return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "out of memory";
    case CUDA_ERROR_NO_DEVICE:
        return "no CUDA device (LUMA_EMU_DEVICES=0)";
    case CUDA_ERROR_NOT_INITIALIZED:
        return forked ? "not initialised in a forked child" : "not initialised";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "the PTX version is newer than this driver";
    case CUDA_ERROR_NOT_SUPPORTED:
        return "not in the emulator";
    default:
        return NULL;
    }
}

/* What spoilt a context is said with the report that did it. */
CUresult cuGetErrorString(CUresult error, const char **text) {
    LM_EMU_LOCKED;
    static char with_report[600];
    const char *name;
    CUresult known = cuGetErrorName(error, &name);
    if (known || !text) return CUDA_ERROR_INVALID_VALUE;
    *text = error_text(error);
    if (*text) return CUDA_SUCCESS;
    CUcontext c = lm_emu_current();
    bool spoilt = c && c->error && c->error == error;
    snprintf(with_report, sizeof with_report, "%s%s%s", name, spoilt ? ": " : "",
             spoilt ? luma_emu_last_report() : "");
    *text = with_report;
    return CUDA_SUCCESS;
}

/* ---- devices ---- */

CUresult cuDeviceGetCount(int *count) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = lm_emu_cfg.devices;
    return CUDA_SUCCESS;
}

static bool is_device(CUdevice device) {
    return device >= 0 && device < lm_emu_cfg.devices;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!name || length < 1) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "luma emulated device %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *nbytes, CUdevice device) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!nbytes) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *nbytes = lm_emu_cfg.memory;
    return CUDA_SUCCESS;
}

/* documented: the largest opt-in shared memory of a block by compute capability */
int lm_emu_optin_shared(void) {
    int cc = lm_emu_cfg.cc, kb = 96;
    if (cc >= 120)
        kb = 99;
    else if (cc >= 90)
        kb = 227;
    else if (cc == 80 || cc == 87)
        kb = 163;
    else if (cc >= 86)
        kb = 99;
    else if (cc >= 75)
        kb = 64;
    return kb * 1024;
}

/* documented limits; clocks and sizes of no consequence are those of a small device */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    const struct {
        CUdevice_attribute attribute;
        int value;
    } known[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, lm_emu_optin_shared()},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, lm_emu_cfg.cc / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, lm_emu_cfg.cc % 10},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = lm_emu_context(device);
    c->references++;
    *context = c;
    return CUDA_SUCCESS;
}

/* documented: the last release destroys the context and all that was made in it */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext c = lm_emu_context(device);
    if (!c->references) return CUDA_ERROR_INVALID_CONTEXT;
    if (--c->references > 0) return CUDA_SUCCESS;
    lm_emu_streams_reset(c);
    lm_emu_modules_reset(c);
    lm_emu_memory_reset(device);
    c->error = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!context || !context->references || current.depth == MOST_CONTEXTS)
        return CUDA_ERROR_INVALID_CONTEXT;
    current.stack[current.depth++] = context;
    return CUDA_SUCCESS;
}

/* documented: INVALID_CONTEXT when the stack is empty */
CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (current.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext c = current.stack[--current.depth];
    if (context) *context = c;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    LM_EMU_ENTER(LM_EMU_INITIALISED);
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = lm_emu_current();
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
    *total = lm_emu_cfg.memory;
    *free_bytes = lm_emu_cfg.memory - lm_emu_memory_used(lm_emu_current()->device);
    return CUDA_SUCCESS;
}

/* documented: 0 bytes are an error */
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t nbytes) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!p || nbytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *p = lm_emu_memory_alloc(lm_emu_current()->device, nbytes);
    return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* measured: waits for the work of the device */
CUresult cuMemFree_v2(CUdeviceptr p) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    lm_emu_drain_device(lm_emu_current()->device);
    return lm_emu_memory_free(p);
}

/* Pinned memory of the host; its sizes, to know what is freed too early. */
typedef struct pinned {
    void *p;
    size_t nbytes;
    struct pinned *next;
} pinned;
static pinned *all_pinned;

CUresult cuMemAllocHost_v2(void **p, size_t nbytes) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!p || nbytes == 0) return CUDA_ERROR_INVALID_VALUE;
    pinned *x = malloc(sizeof *x);
    *p = x ? aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096) : NULL;
    if (!*p) {
        free(x);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(*p, 0xff, nbytes);
    *x = (pinned){*p, nbytes, all_pinned};
    all_pinned = x;
    lm_emu_count.pinned++;
    return CUDA_SUCCESS;
}

/* documented: only what cuMemAllocHost gave. ours: no copy that is still to come uses it */
CUresult cuMemFreeHost(void *p) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    pinned **at = &all_pinned, *x;
    while (*at && (*at)->p != p)
        at = &(*at)->next;
    x = *at;
    if (!x) {
        lm_emu_report(0, "bad-free", "cuMemFreeHost(%p): not from cuMemAllocHost", p);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (lm_emu_pending_copy(x->p, x->nbytes)) {
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "pinned-freed",
                      "pinned memory is freed before a copy has used it");
        lm_emu_drain_device(lm_emu_current()->device);
    }
    *at = x->next;
    free(x->p);
    free(x);
    lm_emu_count.pinned--;
    return CUDA_SUCCESS;
}
