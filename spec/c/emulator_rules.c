/* emulator_rules.c -- the emulated device answers as the documentation says a device does:
** statuses, contexts, streams, modules, libraries, injected failures. Part of emulator_test. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator_test.h"
#include "random.h"
#include "scalar.h"

static void check(bool ok, int line, const char *what) {
    if (ok) return;
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check((condition), __LINE__, #condition)

static void gives(int got, int expected, int line, const char *what) {
    if (got == expected) return;
    fprintf(stderr, "line %d: %s gives %d, not %d\n", line, what, got, expected);
    exit(1);
}
#define GIVES(call, expected) gives((call), (expected), __LINE__, #call)

static lm_emu_figures figures(void) {
    lm_emu_figures f;
    cu.counts(&f);
    return f;
}

/* ---- initialisation, devices, contexts ---- */

static void begins(void) {
    int n;
    CUdevice d;
    const char *text;
    GIVES(cu.cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    GIVES(cu.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuInit(0), CUDA_SUCCESS);
    GIVES(cu.cuInit(0), CUDA_SUCCESS);
    GIVES(cu.cuDeviceGetCount(&n), CUDA_SUCCESS);
    CHECK(n == 2);
    GIVES(cu.cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
    GIVES(cu.cuDeviceGet(&d, 1), CUDA_SUCCESS);
    GIVES(cu.cuDriverGetVersion(&n), CUDA_SUCCESS);
    CHECK(n == 13000);
    GIVES(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
    CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    GIVES(cu.cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
}

static void no_devices(void) {
    GIVES(cu.cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void bad_variable(void) {
    GIVES(cu.cuInit(0), CUDA_ERROR_UNKNOWN);
}

static void attributes(void) {
    int value;
    size_t nbytes;
    char name[64];
    must(cu.cuInit(0));
    GIVES(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), 0);
    CHECK(value == 8);
    GIVES(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0), 0);
    CHECK(value == 6);
    GIVES(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), 0);
    CHECK(value == 32);
    GIVES(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 9),
          CUDA_ERROR_INVALID_DEVICE);
    GIVES(cu.cuDeviceTotalMem_v2(&nbytes, 0), 0);
    CHECK(nbytes == (size_t)64 << 20);
    GIVES(cu.cuDeviceGetName(name, sizeof name, 0), 0);
    CHECK(strstr(name, "emulated"));
}

static void contexts(void) {
    CUcontext one, again, none;
    must(cu.cuInit(0));
    GIVES(cu.cuCtxPopCurrent_v2(&none), CUDA_ERROR_INVALID_CONTEXT);
    GIVES(cu.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    GIVES(cu.cuCtxPushCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
    GIVES(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    must(cu.cuDevicePrimaryCtxRetain(&one, 0));
    must(cu.cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(one == again);
    GIVES(cu.cuCtxGetCurrent(&none), 0);
    CHECK(!none);
    must(cu.cuCtxPushCurrent_v2(one));
    GIVES(cu.cuCtxSynchronize(), 0);
    CUdeviceptr p;
    must(cu.cuMemAlloc_v2(&p, 16));
    must(cu.cuDevicePrimaryCtxRelease_v2(0));
    GIVES(cu.cuCtxSynchronize(), 0);
    must(cu.cuDevicePrimaryCtxRelease_v2(0));
    GIVES(cu.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(figures().allocations == 0);
    GIVES(cu.cuCtxPopCurrent_v2(&again), 0);
    CHECK(again == one);
}

static void forked_child(void) {
    int status, n;
    open_device();
    pid_t child = fork();
    if (child == 0)
        _exit(cu.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
              cu.cuDeviceGetCount(&n) != CUDA_ERROR_NOT_INITIALIZED);
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    GIVES(cu.cuDeviceGetCount(&n), CUDA_SUCCESS);
}

/* ---- memory ---- */

static void memory(void) {
    CUdeviceptr p, q, all[64];
    size_t left, total, kept;
    void *host;
    open_device();
    GIVES(cu.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    must(cu.cuMemGetInfo_v2(&kept, &total));
    CHECK(total == (size_t)64 << 20 && kept == total);
    must(cu.cuMemAlloc_v2(&p, (size_t)40 << 20));
    must(cu.cuMemGetInfo_v2(&left, &total));
    CHECK(left == (size_t)24 << 20);
    GIVES(cu.cuMemAlloc_v2(&q, (size_t)25 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    must(cu.cuMemFree_v2(p));
    must(cu.cuMemAlloc_v2(&q, (size_t)60 << 20));
    CHECK(q != p && q % 256 == 0);
    must(cu.cuMemFree_v2(q));
    for (int round = 0; round < 200; round++) { /* also past the records that are kept */
        for (int i = 0; i < 64; i++)
            must(cu.cuMemAlloc_v2(&all[i], (size_t)i * 100 + 1));
        for (int i = 0; i < 64; i++)
            must(cu.cuMemFree_v2(all[(i * 7) % 64]));
    }
    must(cu.cuMemGetInfo_v2(&left, &total));
    CHECK(left == kept);
    GIVES(cu.cuMemAllocHost_v2(&host, 0), CUDA_ERROR_INVALID_VALUE);
    must(cu.cuMemAllocHost_v2(&host, 100));
    must(cu.cuMemFreeHost(host));
}

/* More is allocated and freed than there are addresses: they are used again. */
static void addresses_again(void) {
    CUdeviceptr stay, p;
    float one = 1, back = 0;
    open_device();
    stay = device_new(1);
    must(cu.cuMemcpyHtoDAsync_v2(stay, &one, 4, stream));
    wait_stream();
    for (int i = 0; i < 1000; i++) {
        must(cu.cuMemAlloc_v2(&p, (size_t)1 << 20));
        must(cu.cuMemFree_v2(p));
    }
    download(&back, stay, 1);
    CHECK(back == 1);
}

static void two_devices(void) {
    CUcontext other;
    CUdeviceptr here, there;
    CUstream second;
    float back[4], up[4] = {1, 2, 3, 4};
    open_device();
    here = device_new(4);
    must(cu.cuMemcpyHtoDAsync_v2(here, up, 16, stream));
    wait_stream();
    must(cu.cuDevicePrimaryCtxRetain(&other, 1));
    must(cu.cuCtxPushCurrent_v2(other));
    must(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    there = device_new(4);
    must(cu.cuMemcpyPeerAsync(there, other, here, context, 16, second));
    must(cu.cuMemcpyDtoHAsync_v2(back, there, 16, second));
    must(cu.cuStreamSynchronize(second));
    CHECK(memcmp(back, up, 16) == 0);
    must(cu.cuCtxPopCurrent_v2(NULL));
}

static void wrong_device(void) {
    CUcontext other;
    float back[4];
    open_device();
    CUdeviceptr here = device_series(4);
    must(cu.cuDevicePrimaryCtxRetain(&other, 1));
    must(cu.cuCtxPushCurrent_v2(other));
    GIVES(cu.cuMemcpyDtoHAsync_v2(back, here, 16, NULL), CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK(strstr(cu.last_report(), "another context"));
    CHECK(figures().reports == 2);
}

/* ---- streams and events ---- */

static void deferred(void) {
    static const float source[2] = {1, 2};
    CUevent event;
    open_device();
    CUdeviceptr x = device_new(2);
    must(cu.cuEventCreate(&event, 0));
    GIVES(cu.cuEventQuery(event), CUDA_SUCCESS);
    GIVES(cu.cuStreamQuery(stream), CUDA_SUCCESS);
    must(cu.cuMemcpyHtoDAsync_v2(x, source, 8, stream));
    must(cu.cuEventRecord(event, stream));
    GIVES(cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    int polls = 0;
    while (cu.cuEventQuery(event) == CUDA_ERROR_NOT_READY && polls < 10)
        polls++;
    CHECK(polls < 10);
    long before = figures().synchronisations;
    GIVES(cu.cuEventSynchronize(event), CUDA_SUCCESS);
    GIVES(cu.cuStreamSynchronize(NULL), CUDA_SUCCESS);
    CHECK(figures().synchronisations == before + 2);
}

/* A wait means the record before it, also when the event is recorded again elsewhere. */
static void rerecorded(void) {
    static const float one = 1;
    CUstream second, third;
    CUevent event;
    float back = 0;
    open_device();
    CUdeviceptr x = device_new(1);
    must(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    must(cu.cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    must(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cu.cuMemcpyHtoDAsync_v2(x, &one, 4, stream));
    must(cu.cuEventRecord(event, stream));
    must(cu.cuStreamWaitEvent(second, event, 0));
    must(cu.cuEventRecord(event, third));
    must(cu.cuStreamSynchronize(third));
    must(cu.cuMemcpyDtoHAsync_v2(&back, x, 4, second));
    must(cu.cuStreamSynchronize(second));
    CHECK(back == 1);
    must(cu.cuEventDestroy_v2(event));
    must(cu.cuStreamDestroy_v2(second));
    must(cu.cuStreamDestroy_v2(third));
    CHECK(figures().events == 0 && figures().streams == 1);
}

static void null_stream(void) {
    static const float one = 1;
    float back = 0;
    CUstream blocking;
    open_device();
    CUdeviceptr x = device_new(1), y = device_new(1);
    must(cu.cuStreamCreate(&blocking, 0));
    must(cu.cuMemcpyHtoDAsync_v2(x, &one, 4, blocking));
    must(cu.cuMemcpyDtoDAsync_v2(y, x, 4, NULL));
    must(cu.cuMemcpyDtoHAsync_v2(&back, y, 4, blocking));
    must(cu.cuStreamSynchronize(blocking));
    CHECK(back == 1);
}

static void timing(void) {
    CUevent start, end, silent;
    float ms = -1;
    open_device();
    must(cu.cuEventCreate(&start, 0));
    must(cu.cuEventCreate(&end, 0));
    must(cu.cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
    GIVES(cu.cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
    must(cu.cuEventRecord(start, stream));
    must(cu.cuEventRecord(end, stream));
    must(cu.cuEventRecord(silent, stream));
    GIVES(cu.cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
    wait_stream();
    GIVES(cu.cuEventElapsedTime(&ms, start, end), CUDA_SUCCESS);
    CHECK(ms >= 0 && ms < 1000);
    GIVES(cu.cuEventElapsedTime(&ms, start, silent), CUDA_ERROR_INVALID_HANDLE);
}

/* A stream holds so much work and no more; what is parked in it is right. */
static void long_queue(void) {
    float sum = 0;
    open_device();
    CUdeviceptr x = device_series(1), y = device_new(1);
    must(cu.cuMemsetD32Async(y, 0, 1, stream));
    must(cu.cuMemsetD32Async(x, 0x3f800000, 1, stream));
    for (int i = 0; i < 3000; i++)
        must(launch("sum_atomic", (launch_shape){1, 1, 0, 0},
                    (bug_args){.n = 1, .x = address(x), .y = address(y)}));
    download(&sum, y, 1);
    CHECK(sum == 3000);
}

/* Threads of the host share the device; each has its stack of contexts and its stream. */
static void *count_up(void *result) {
    CUfunction f;
    CUdeviceptr x, y;
    CUstream mine;
    must(cu.cuCtxPushCurrent_v2(context));
    must(cu.cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
    must(cu.cuMemAlloc_v2(&x, 256));
    must(cu.cuMemAlloc_v2(&y, 256));
    must(cu.cuMemsetD32Async(x, 0, 64, mine));
    must(cu.cuModuleGetFunction(&f, module, "add_one"));
    for (int i = 0; i < 100; i++) {
        bug_args a = {.n = 64, .x = address(x), .y = address(i % 2 ? x : y)};
        if (i % 2) a.x = address(y);
        void *parameters[] = {&a};
        must(cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, mine, parameters, NULL));
        if (i % 10 == 0) must(cu.cuStreamSynchronize(mine));
    }
    must(cu.cuMemcpyDtoHAsync_v2(result, x, 256, mine));
    must(cu.cuStreamSynchronize(mine));
    return NULL;
}

static void two_threads(void) {
    static float results[2][64];
    pthread_t other;
    open_device();
    pthread_create(&other, NULL, count_up, results[1]);
    count_up(results[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 64; i++)
        CHECK(results[0][i] == 100 && results[1][i] == 100);
}

/* ---- kernels and modules ---- */

static void launches(void) {
    CUfunction f;
    int value;
    size_t offset, size;
    open_device();
    GIVES(cu.cuModuleGetFunction(&f, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    bug_args a = {.n = 1, .y = address(device_new(1))};
    GIVES(launch("set_one", (launch_shape){1, 1024, 0, 0}, a), CUDA_SUCCESS);
    GIVES(launch("set_one", (launch_shape){1, 1025, 0, 0}, a), CUDA_ERROR_INVALID_VALUE);
    GIVES(launch("set_one", (launch_shape){1, 0, 0, 0}, a), CUDA_ERROR_INVALID_VALUE);
    GIVES(launch("set_one", (launch_shape){1, 32, 49153, 0}, a), CUDA_ERROR_INVALID_VALUE);
    must(cu.cuModuleGetFunction(&f, module, "set_one"));
    GIVES(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000),
          CUDA_ERROR_INVALID_VALUE);
    must(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    GIVES(launch("set_one", (launch_shape){1, 32, 49153, 0}, a), CUDA_SUCCESS);
    void *parameters[] = {&a};
    GIVES(cu.cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, stream, parameters, NULL),
          CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, stream, parameters, NULL),
          CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL),
          CUDA_ERROR_INVALID_HANDLE);
    must(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    CHECK(value == 1024);
    must(cu.cuFuncGetParamInfo(f, 0, &offset, &size));
    CHECK(offset == 0 && size == sizeof(bug_args));
    GIVES(cu.cuFuncGetParamInfo(f, 1, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    wait_stream();
    CHECK(figures().launches == 2);
}

static void bad_image(void) {
    CUmodule m;
    char log[200] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    open_device();
    GIVES(cu.cuModuleLoadDataEx(&m, "no PTX", 0, NULL, NULL), CUDA_ERROR_INVALID_IMAGE);
    GIVES(cu.cuModuleLoadDataEx(&m, ".version 7.1\n.target sm_75\n", 2, options, values),
          CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    CHECK(strstr(log, "Unsupported .version 7.1"));
    GIVES(cu.cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_90\n", 2, options, values),
          CUDA_ERROR_NO_BINARY_FOR_GPU);
    GIVES(cu.cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_75\n.entry users_own(", 2, options,
                                values),
          CUDA_ERROR_INVALID_PTX);
    CHECK(strstr(log, "users_own"));
    CUfunction f;
    must(cu.cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_75\n.entry users_own()\n{ret;}", 0,
                               NULL, NULL));
    must(cu.cuModuleGetFunction(&f, m, "users_own"));
    GIVES(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
    must(cu.cuModuleUnload(m));
    int version;
    must(cu.cuDriverGetVersion(&version));
    CHECK(version == 11000);
    CHECK(figures().modules == 1);
}

static void entries(void) {
    CUmodule m;
    CUfunction f;
    int most;
    static const char ptx[] =
        "// text\n.version 7.0\n.target sm_75\n.address_size 64\n\n"
        ".visible .entry add_one(\n\t.param .align 8 .b8 add_one_param_0[32]\n"
        ")\n.maxntid 256, 1, 1\n{\n\tret;\n}\n"
        ".entry set_one(.param .align 8 .b8 p[32]) { ret; }\n";
    open_device();
    must(cu.cuModuleLoadDataEx(&m, ptx, 0, NULL, NULL));
    GIVES(cu.cuModuleGetFunction(&f, m, "rotate"), CUDA_ERROR_NOT_FOUND);
    GIVES(cu.cuModuleGetFunction(&f, m, "set_one"), CUDA_SUCCESS);
    GIVES(cu.cuModuleGetFunction(&f, m, "add_one"), CUDA_SUCCESS);
    must(cu.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    CHECK(most == 256);
    bug_args a = {.n = 0};
    void *parameters[] = {&a};
    GIVES(cu.cuLaunchKernel(f, 1, 1, 1, 257, 1, 1, 0, stream, parameters, NULL),
          CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL), CUDA_SUCCESS);
    must(cu.cuModuleUnload(m));
    CHECK(figures().modules == 1);
}

/* An illegal access spoils the context for good, and the message says why. */
static void sticky(void) {
    const char *text;
    open_device();
    CUdeviceptr y = device_series(4), p;
    GIVES(launch("bug_write_far", (launch_shape){1, 4, 0, 0}, (bug_args){.n = 4, .y = address(y)}),
          CUDA_SUCCESS);
    GIVES(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    GIVES(cu.cuMemAlloc_v2(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    must(cu.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(strstr(text, "bug_write_far"));
    GIVES(cu.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    must(cu.cuDevicePrimaryCtxRetain(&context, 0)); /* a new context is as good as new */
    GIVES(cu.cuMemAlloc_v2(&p, 4), CUDA_SUCCESS);
}

/* ---- libraries ---- */

/* out (2 x 2, columns) = alpha * x y + beta * out, x and y 2 x 2 */
static int product(cublasHandle_t h, cublasComputeType_t compute, cudaDataType ab, CUdeviceptr x,
                   CUdeviceptr y, cudaDataType c, CUdeviceptr out, const void *alpha,
                   const void *beta) {
    return cu.cublasGemmStridedBatchedEx(h, CUBLAS_OP_N, CUBLAS_OP_T, 2, 2, 2, alpha, address(x),
                                         ab, 2, 0, address(y), ab, 2, 0, beta, address(out), c, 2,
                                         0, 1, compute, CUBLAS_GEMM_DEFAULT);
}

static void products(void) {
    float one = 1, two = 2, zero = 0, back[4];
    cublasHandle_t h;
    open_device();
    GIVES(cu.cublasCreate_v2(&h), CUBLAS_STATUS_SUCCESS);
    must(cu.cublasSetStream_v2(h, stream));
    CUdeviceptr x = device_series(4), y = device_series(4), out = device_new(4);
    /* columns (0 1) (2 3); x y^T = (4 6) (6 10); out holds NaN and is not read */
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &one, &zero), 0);
    download(back, out, 4);
    CHECK(back[0] == 4 && back[1] == 6 && back[2] == 6 && back[3] == 10);
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &two, &one), 0);
    download(back, out, 4);
    CHECK(back[0] == 12 && back[3] == 30);
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_64F, x, y, CUDA_R_64F, out, &one, &zero),
          CUBLAS_STATUS_NOT_SUPPORTED);
    GIVES(product(h, CUBLAS_COMPUTE_32I, CUDA_R_8I, x, y, CUDA_R_32I, out, &one, &zero),
          CUBLAS_STATUS_NOT_SUPPORTED); /* ld is no multiple of 4 */
    GIVES(product(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &one, &zero),
          CUBLAS_STATUS_NOT_INITIALIZED);
    GIVES(cu.cublasSetWorkspace_v2(h, address(out) + 1, 4), CUBLAS_STATUS_INVALID_VALUE);
    CUdeviceptr workspace = device_new(1024);
    GIVES(cu.cublasSetWorkspace_v2(h, address(workspace), 4096), 0);
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &one, &zero),
          CUBLAS_STATUS_ALLOC_FAILED);
    workspace = device_new(16 << 10);
    GIVES(cu.cublasSetWorkspace_v2(h, address(workspace), 64 << 10), 0);
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &one, &zero), 0);
    download(back, workspace + 128, 1);
    CHECK(memcmp(back, "\xA5\xA5\xA5\xA5", 4) == 0); /* used */
    must(cu.cublasSetStream_v2(h, stream));          /* the library's own again */
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, y, CUDA_R_32F, out, &one, &zero), 0);
    GIVES(cu.cublasSetMathMode(h, 77), CUBLAS_STATUS_INVALID_VALUE);
    GIVES(cu.cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH), 0);
    GIVES(cu.cublasDestroy_v2(h), 0);
    CHECK(figures().others == 0);
}

/* A product whose workspace was freed spoils the context. */
static void product_workspace(void) {
    float one = 1, zero = 0;
    cublasHandle_t h;
    open_device();
    must(cu.cublasCreate_v2(&h));
    must(cu.cublasSetStream_v2(h, stream));
    CUdeviceptr x = device_series(4), out = device_new(4), workspace = device_new(16 << 10);
    must(cu.cublasSetWorkspace_v2(h, address(workspace), 64 << 10));
    must(cu.cuMemFree_v2(workspace));
    GIVES(product(h, CUBLAS_COMPUTE_32F, CUDA_R_32F, x, x, CUDA_R_32F, out, &one, &zero), 0);
    GIVES(cu.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(strstr(cu.last_report(), "workspace of the product"));
}

/* One column of small numbers in float16: sums in float32 keep what sums in float16 lose. */
static void product_halves(void) {
    enum { K = 4096 };
    static lm_f16 ones[K];
    lm_f16 result[2], one = lm_store_f16(1), zero = {0};
    float one32 = 1, zero32 = 0;
    cublasHandle_t h;
    open_device();
    for (int i = 0; i < K; i++)
        ones[i] = one;
    must(cu.cublasCreate_v2(&h));
    must(cu.cublasSetStream_v2(h, stream));
    CUdeviceptr x = device_new(K / 2), out = device_new(1);
    must(cu.cuMemcpyHtoDAsync_v2(x, ones, sizeof ones, stream));
    for (int narrow = 0; narrow < 2; narrow++) {
        cublasComputeType_t compute = narrow ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F;
        const void *alpha = narrow ? (const void *)&one : &one32;
        const void *beta = narrow ? (const void *)&zero : &zero32;
        GIVES(cu.cublasGemmStridedBatchedEx(h, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, K, alpha, address(x),
                                            CUDA_R_16F, K, 0, address(x), CUDA_R_16F, K, 0, beta,
                                            (lm_f16 *)address(out) + narrow, CUDA_R_16F, 1, 0, 1,
                                            compute, CUBLAS_GEMM_DEFAULT),
              0);
    }
    must(cu.cuMemcpyDtoHAsync_v2(result, out, sizeof result, stream));
    wait_stream();
    CHECK(lm_load_f16(result[0]) == 4096 && lm_load_f16(result[1]) == 2048);
}

/* Batches: a repeated operand (stride 0), the others one after the other. */
static void product_batches(void) {
    static const double one = 1, zero = 0;
    double up[12], back[8];
    cublasHandle_t h;
    open_device();
    for (int i = 0; i < 12; i++)
        up[i] = i;
    must(cu.cublasCreate_v2(&h));
    must(cu.cublasSetStream_v2(h, stream));
    CUdeviceptr x = device_new(24), out = device_new(16);
    must(cu.cuMemcpyHtoDAsync_v2(x, up, sizeof up, stream));
    const double *d = (const double *)(uintptr_t)x;
    GIVES(cu.cublasGemmStridedBatchedEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, d, CUDA_R_64F,
                                        2, 0, d + 4, CUDA_R_64F, 2, 4, &zero,
                                        (double *)(uintptr_t)out, CUDA_R_64F, 2, 4, 2,
                                        CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT),
          0);
    must(cu.cuMemcpyDtoHAsync_v2(back, out, sizeof back, stream));
    wait_stream();
    /* (0 2; 1 3) times (4 6; 5 7) and (8 10; 9 11) */
    static const double expected[] = {10, 19, 14, 27, 18, 35, 22, 43};
    CHECK(memcmp(back, expected, sizeof back) == 0);
}

static void random_words(void) {
    enum { N = 1000 };
    static uint32_t words[N], again[N];
    curandGenerator_t g, host;
    open_device();
    CUdeviceptr p = device_new(N);
    GIVES(cu.curandCreateGenerator(&g, 7), CURAND_STATUS_TYPE_ERROR);
    must(cu.curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    must(cu.curandSetStream(g, stream));
    must(cu.curandSetPseudoRandomGeneratorSeed(g, 42));
    must(cu.curandSetGeneratorOffset(g, 5));
    must(cu.curandGenerate(g, (unsigned *)address(p), 3));
    must(cu.curandGenerate(g, (unsigned *)address(p) + 3, N - 3));
    must(cu.cuMemcpyDtoHAsync_v2(words, p, sizeof words, stream));
    wait_stream();
    for (unsigned i = 0; i < N; i++)
        CHECK(words[i] == lm_random_word(42, 5 + i, 0));
    must(cu.curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    must(cu.curandSetPseudoRandomGeneratorSeed(host, 42));
    must(cu.curandGenerate(host, again, 9));
    /* seen in libcurand with seed 42 */
    CHECK(again[0] == 0x9ceaf053 && again[8] == 0x65fe70a6 && again[5] == words[0]);
    must(cu.curandDestroyGenerator(host));
    must(cu.curandDestroyGenerator(g));
    GIVES(cu.curandGenerate(NULL, again, 1), CURAND_STATUS_NOT_INITIALIZED);
}

static void no_compiler(void) {
    nvrtcProgram program;
    size_t size;
    char log[200];
    GIVES(cu.nvrtcCreateProgram(&program, "text", NULL, 0, NULL, NULL), NVRTC_SUCCESS);
    GIVES(cu.nvrtcCompileProgram(program, 0, NULL), NVRTC_ERROR_COMPILATION);
    must(cu.nvrtcGetProgramLogSize(program, &size));
    CHECK(size <= sizeof log);
    must(cu.nvrtcGetProgramLog(program, log));
    CHECK(strstr(log, "not in the emulator"));
    GIVES(cu.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
}

/* ---- injected failures ---- */

static void injected(void) {
    CUdeviceptr p;
    must(cu.cuInit(0));
    must(cu.cuDevicePrimaryCtxRetain(&context, 0));
    must(cu.cuCtxPushCurrent_v2(context));
    GIVES(cu.cuMemAlloc_v2(&p, 4), CUDA_SUCCESS);
    GIVES(cu.cuMemAlloc_v2(&p, 4), CUDA_ERROR_OUT_OF_MEMORY);
    GIVES(cu.cuMemAlloc_v2(&p, 4), CUDA_SUCCESS);
    cu.fail("any", 2);
    GIVES(cu.cuMemFree_v2(p), CUDA_SUCCESS);
    GIVES(cu.cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
    GIVES(cu.cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK(figures().allocations == 1);
}

/* A program with every call failing in turn: nothing crashes, nothing is left. */
static void use_everything(bool *failed) {
    CUdeviceptr p = 0;
    CUstream s = NULL;
    CUevent e = NULL;
    float host[4] = {1, 2, 3, 4};
    int status = cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    if (!status) status = cu.cuEventCreate(&e, 0);
    if (!status) status = cu.cuMemAlloc_v2(&p, 16);
    if (!status) status = cu.cuMemcpyHtoDAsync_v2(p, host, 16, s);
    if (!status) status = cu.cuEventRecord(e, s);
    if (!status) status = cu.cuStreamSynchronize(s);
    *failed = status != 0;
    cu.fail("any", 0);
    if (p) must(cu.cuMemFree_v2(p));
    if (e) must(cu.cuEventDestroy_v2(e));
    if (s) must(cu.cuStreamDestroy_v2(s));
}

static void each_fails(void) {
    bool failed = true;
    open_device();
    long at = 1;
    for (; failed && at < 100; at++) {
        cu.fail("any", at);
        use_everything(&failed);
        lm_emu_figures f = figures();
        CHECK(f.allocations == 0 && f.events == 0 && f.streams == 1);
    }
    CHECK(at == 8); /* six calls to fail, then none */
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    void (*run)(void);
    const char *variables;
    bool reports; /* on purpose */
} rules[] = {
    {"begins", begins, "LUMA_EMU_DEVICES=2", false},
    {"no_devices", no_devices, "LUMA_EMU_DEVICES=0", false},
    {"bad_variable", bad_variable, "LUMA_EMU_ORDER=sideways", false},
    {"attributes", attributes, "LUMA_EMU_CC=86 LUMA_EMU_MEMORY=64M", false},
    {"contexts", contexts, "", false},
    {"forked_child", forked_child, "", false},
    {"memory", memory, "LUMA_EMU_MEMORY=64M", false},
    {"addresses_again", addresses_again, "LUMA_EMU_MEMORY=2M", false},
    {"two_devices", two_devices, "LUMA_EMU_DEVICES=2", false},
    {"deferred", deferred, "", false},
    {"rerecorded", rerecorded, "", false},
    {"rerecorded", rerecorded, "LUMA_EMU_ORDER=random", false},
    {"null_stream", null_stream, "", false},
    {"timing", timing, "", false},
    {"long_queue", long_queue, "", false},
    {"two_threads", two_threads, "", false},
    {"launches", launches, "", false},
    {"bad_image", bad_image, "LUMA_EMU_PTX=7.0 LUMA_EMU_CC=86", false},
    {"entries", entries, "", false},
    {"products", products, "", false},
    {"product_workspace", product_workspace, "", true},
    {"product_halves", product_halves, "", false},
    {"product_batches", product_batches, "", false},
    {"random_words", random_words, "", false},
    {"no_compiler", no_compiler, "", false},
    {"injected", injected, "LUMA_EMU_FAIL=cuMemAlloc_v2:2", false},
    {"each_fails", each_fails, "", false},
    {"wrong_device", wrong_device, "LUMA_EMU_DEVICES=2", true},
    {"sticky", sticky, "", true},
};

bool rules_hold(void) {
    bool ok = true;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        ok &= child_passes(rules[i].name, rules[i].run, rules[i].variables, rules[i].reports);
    return ok;
}
