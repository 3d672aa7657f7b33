/* device.c -- the CUDA devices of a state: registering, opening, contexts, raw memory, errors of the
** driver. Layer: kernels/cuda. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas.h"
#include "cuda/ptx.h"

#define LEAST_CAPABILITY 75 /* of the PTX */

/* ---- errors ---- */

/* Errors after which every call in the context fails, until the process ends. */
static bool spoils(CUresult result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case 214: /* uncorrectable ECC error */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
        return true;
    default:
        return false;
    }
}

static void describe(const lm_cuda *c, CUresult result, const char *what, char *text, size_t size) {
    const char *name = NULL, *words = NULL;
    char number[16];
    snprintf(number, sizeof number, "error %d", result);
    if (c->driver->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = number;
    if (c->driver->cuGetErrorString(result, &words) != CUDA_SUCCESS || !words)
        words = "unknown error";
    snprintf(text, size, "%s: %s: %s (%s)", c->name, what, words, name);
}

luma_status lm_cuda_check(luma_state *S, lm_cuda *c, CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return LUMA_OK;
    char text[sizeof c->lost];
    describe(c, result, what, text, sizeof text);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return lm_fail(S, LUMA_ERR_MEMORY, 0, "%s", text);
    if (spoils(result)) {
        memcpy(c->lost, text, sizeof text);
        return lm_fail(S, LUMA_ERR_DEVICE, 0,
                       "%s; no tensor of %s can be used any more: start the process anew", text,
                       c->name);
    }
    return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", text);
}

/* ---- opening and closing ---- */

static void close_parts(lm_cuda *c) {
    const lm_driver *driver = c->driver;
    lm_staging_close(c);
    lm_cuda_memory_close(c);
    if (c->faults) driver->cuMemFree_v2(c->faults);
    if (c->event) driver->cuEventDestroy_v2(c->event);
    if (c->stream) driver->cuStreamDestroy_v2(c->stream);
    c->faults = 0;
    c->event = NULL;
    c->stream = NULL;
}

static luma_status open_parts(luma_state *S, lm_cuda *c) {
    const lm_driver *driver = c->driver;
    size_t nbytes = LM_FAULTS * sizeof(lm_fault);
    LM_TRY(lm_cuda_check(S, c, driver->cuStreamCreate(&c->stream, CU_STREAM_NON_BLOCKING),
                         "cuStreamCreate"));
    LM_TRY(lm_cuda_check(S, c, driver->cuEventCreate(&c->event, CU_EVENT_DISABLE_TIMING),
                         "cuEventCreate"));
    LM_TRY(lm_cuda_check(S, c, driver->cuMemAlloc_v2(&c->faults, nbytes), "cuMemAlloc"));
    LM_TRY(lm_cuda_check(S, c, driver->cuMemsetD8Async(c->faults, 0, nbytes, c->stream),
                         "cuMemsetD8Async"));
    LM_TRY(lm_staging_open(S, c));
    lm_cuda_memory_open(c);
    return LUMA_OK;
}

/* Whether nothing can be asked of the device any more, and why. */
static bool is_unusable(const lm_cuda *c, char *why, size_t size) {
    if (lm_driver_forked)
        snprintf(why, size, "%s cannot be used after a fork: CUDA belongs to the parent process",
                 c->name);
    else if (c->lost[0])
        snprintf(why, size, "%s cannot be used any more since an earlier error: %s", c->name,
                 c->lost);
    return lm_driver_forked || c->lost[0];
}

bool lm_cuda_suits(const lm_cuda *c, char *why, size_t size) {
    if (is_unusable(c, why, size)) return false;
    if (c->capability < LEAST_CAPABILITY) {
        snprintf(why, size, "%s has compute capability %d.%d: at least %d.%d is needed", c->name,
                 c->capability / 10, c->capability % 10, LEAST_CAPABILITY / 10,
                 LEAST_CAPABILITY % 10);
        return false;
    }
    if (lm_ptx_embedded() || c->driver->emulated) return true;
    snprintf(
        why, size,
        "%s: this build has no kernels for CUDA devices: build luma with -DLUMA_CUDA_PTX=ON, for "
        "which nvcc is needed",
        c->name);
    return false;
}

static luma_status make_ready(luma_state *S, lm_cuda *c) {
    char why[200];
    if (!lm_cuda_suits(c, why, sizeof why)) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", why);
    LM_TRY(lm_modules_open(S, c, &c->modules));
    LM_TRY(lm_cuda_check(S, c, c->driver->cuCtxPushCurrent_v2(c->context), "cuCtxPushCurrent"));
    luma_status status = open_parts(S, c);
    if (status != LUMA_OK) close_parts(c);
    c->ready = status == LUMA_OK;
    c->driver->cuCtxPopCurrent_v2(NULL);
    return status;
}

luma_status lm_cuda_enter(luma_state *S, lm_cuda *c) {
    if (c->entered > 0) {
        c->entered++;
        return LUMA_OK;
    }
    char why[sizeof c->lost + 80];
    if (is_unusable(c, why, sizeof why)) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", why);
    if (!c->ready) LM_TRY(make_ready(S, c));
    CUresult result = c->driver->cuCtxPushCurrent_v2(c->context);
    if (result != CUDA_SUCCESS) return lm_cuda_check(S, c, result, "cuCtxPushCurrent");
    c->entered = 1;
    return LUMA_OK;
}

/* Nothing can be done about a failure: the context of the caller may be ours from then on. */
void lm_cuda_leave(lm_cuda *c) {
    if (--c->entered > 0) return;
    if (c->watches > LM_WATCHES - LM_WATCHES_SPARE) lm_cuda_turn_watches(c);
    c->driver->cuCtxPopCurrent_v2(NULL);
}

bool lm_cuda_usable(const lm_cuda *c) {
    return !lm_driver_forked && !c->lost[0] && c->ready;
}

bool lm_cuda_push(lm_cuda *c) {
    if (!lm_cuda_usable(c)) return false;
    return c->driver->cuCtxPushCurrent_v2(c->context) == CUDA_SUCCESS ||
           c->driver->cuCtxPushCurrent_v2(c->context) == CUDA_SUCCESS;
}

/* For closing, where nothing was entered and nobody hears of errors. */
static bool enter_quietly(lm_cuda *c) {
    if (!lm_cuda_push(c)) return false;
    c->entered = 1;
    return true;
}

static luma_status open_device(luma_state *S, lm_device *d) {
    lm_cuda *c = lm_cuda_of(d);
    LM_TRY(lm_cuda_enter(S, c));
    lm_cuda_leave(c);
    return LUMA_OK;
}

static void close_device(lm_device *d) {
    lm_cuda *c = lm_cuda_of(d);
    if (enter_quietly(c)) {
        c->driver->cuStreamSynchronize(c->stream);
        close_parts(c);
        lm_cuda_leave(c);
    }
    free(c->staging);
    free(c);
}

static void settle_device(lm_device *d) {
    lm_cuda *c = lm_cuda_of(d);
    bool usable = enter_quietly(c);
    lm_blas_close(c, usable);
    lm_cuda_fused_close(c, usable);
    lm_cuda_random_close(c, usable);
    if (usable) lm_cuda_leave(c);
}

static void trim_device(lm_device *d, bool short_of) {
    lm_blas_trim(lm_cuda_of(d), short_of);
}

/* ---- raw memory ---- */

/* The cache of one device may be at work while calls in the context of another go on. */
static void *raw_alloc(lm_device *d, size_t nbytes) {
    lm_cuda *c = lm_cuda_of(d);
    CUdeviceptr p = 0;
    c->has_problem = is_unusable(c, c->problem, sizeof c->problem);
    if (c->has_problem) return NULL;
    const char *what = "cuCtxPushCurrent";
    CUresult result = c->driver->cuCtxPushCurrent_v2(c->context);
    if (result == CUDA_SUCCESS) {
        what = "cuMemAlloc";
        result = c->driver->cuMemAlloc_v2(&p, nbytes);
        c->driver->cuCtxPopCurrent_v2(NULL);
    }
    c->has_problem = result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY;
    if (c->has_problem) describe(c, result, what, c->problem, sizeof c->problem);
    return result == CUDA_SUCCESS ? (void *)(uintptr_t)p : NULL;
}

static void raw_free(lm_device *d, void *p, size_t nbytes) {
    (void)nbytes;
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return;
    /* Once more, since a failure may be that of work before, which the call gives too. */
    if (c->driver->cuMemFree_v2((CUdeviceptr)(uintptr_t)p) != CUDA_SUCCESS)
        c->driver->cuMemFree_v2((CUdeviceptr)(uintptr_t)p);
    c->driver->cuCtxPopCurrent_v2(NULL);
}

static const char *raw_problem(lm_device *d) {
    const lm_cuda *c = lm_cuda_of(d);
    return c->has_problem ? c->problem : NULL;
}

/* ---- registering ---- */

static luma_status ask(luma_state *S, lm_cuda *c, CUdevice_attribute attribute, int *value) {
    return lm_cuda_check(S, c, c->driver->cuDeviceGetAttribute(value, attribute, c->handle),
                         "cuDeviceGetAttribute");
}

static luma_status look_at(luma_state *S, lm_cuda *c) {
    int major, minor, l2;
    LM_TRY(lm_cuda_check(S, c, c->driver->cuDeviceGet(&c->handle, c->ordinal), "cuDeviceGet"));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &c->multiprocessors));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
               &c->threads_per_multiprocessor));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &c->shared_per_block));
    LM_TRY(ask(S, c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2));
    c->capability = major * 10 + minor;
    c->l2_bytes = l2;
    return LUMA_OK;
}

static luma_status register_one(luma_state *S, const lm_driver *driver, int ordinal) {
    lm_cuda *c = calloc(1, sizeof *c);
    if (!c) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    const char *sync = getenv("LUMA_SYNC");
    c->driver = driver;
    c->ordinal = ordinal;
    c->narrow = UINT32_MAX;
    c->sync_always = sync && strcmp(sync, "1") == 0;
    snprintf(c->name, sizeof c->name, "cuda:%d", ordinal);
    luma_status status = look_at(S, c);
    if (status == LUMA_OK) status = lm_device_register(S, &lm_cuda_ops, c->name, ordinal, c);
    if (status == LUMA_OK)
        c->device = S->devices[S->ndevices - 1];
    else
        free(c);
    return status;
}

static bool is_registered(const luma_state *S, int ordinal) {
    for (int i = 0; i < S->ndevices; i++) {
        const lm_device *d = S->devices[i];
        if (d->ops == &lm_cuda_ops && d->index == ordinal) return true;
    }
    return false;
}

luma_status lm_cuda_register(luma_state *S) {
    const char *why;
    const lm_driver *driver = lm_driver_open(&why);
    if (!driver) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", why);
    if (lm_driver_forked)
        return lm_fail(S, LUMA_ERR_DEVICE, 0,
                       "no CUDA device (this process is a fork: CUDA belongs to its parent)");
    int count = 0;
    lm_cuda any = {.driver = driver, .name = "CUDA"};
    LM_TRY(lm_cuda_check(S, &any, driver->cuDeviceGetCount(&count), "cuDeviceGetCount"));
    if (count > LM_MAX_DEVICES - 1) count = LM_MAX_DEVICES - 1;
    if (count == 0) return lm_fail(S, LUMA_ERR_DEVICE, 0, "no CUDA device (the driver has none)");
    for (int i = 0; i < count; i++)
        if (!is_registered(S, i)) LM_TRY(register_one(S, driver, i));
    return LUMA_OK;
}

static bool supports(lm_device *d, lm_op op, luma_dtype dtype) {
    (void)d;
    return lm_ops[op].row > LM_ROW_TERNARY || lm_cuda_has_row(op, dtype);
}

/* A slot that is not named here is NULL: unsupported. */
const lm_device_ops lm_cuda_ops = {
    .kind = "cuda",
    .raw_alloc = raw_alloc,
    .raw_free = raw_free,
    .raw_problem = raw_problem,
    .memory_info = lm_cuda_memory_info,
    .event_record = lm_cuda_event_record,
    .event_done = lm_cuda_event_done,
    .event_wait = lm_cuda_event_wait,
    .event_free = lm_cuda_event_free,
    .open = open_device,
    .close = close_device,
    .settle = settle_device,
    .trim = trim_device,
    .upload = lm_cuda_upload,
    .download = lm_cuda_download,
    .send = lm_cuda_send,
    .synchronize = lm_cuda_synchronize,
    .supports = supports,
    .map = lm_cuda_map,
    .fused = lm_cuda_fused,
    .copy = lm_cuda_copy,
    .fill = lm_cuda_fill,
    .random = lm_cuda_random,
    .quant = lm_cuda_quant,
    .reduce = lm_cuda_reduce,
    .matmul = lm_cuda_matmul,
    .conv = lm_cuda_conv,
    .sort = lm_cuda_sort,
    .index = lm_cuda_index,
    .pooling = lm_cuda_pooling,
    .count_nonzero = lm_cuda_count_nonzero,
    .nonzero = lm_cuda_nonzero,
    .scan = lm_cuda_scan,
    .normalize = lm_cuda_normalize,
    .search = lm_cuda_search,
    .attention = lm_cuda_attention,
    .attention_head = LM_ATTENTION_HEAD,
    .rope = lm_cuda_rope,
};
