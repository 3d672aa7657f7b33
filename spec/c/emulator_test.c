/* emulator_test.c -- the emulated device catches mistakes: kernels and host code that are right
** raise no alarm in any order, and each planted mistake is caught as the table says. Built once per
** flavour (FLAVOUR_fast, FLAVOUR_race, FLAVOUR_asan), each of which fills its columns. */
#include "emulator_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

functions cu;
CUcontext context;
CUstream stream;
CUmodule module;

/* ---- words ---- */

static void find(const char *name, void *function) {
    void *p = lm_emulator_symbol(name);
    if (!p) {
        printf("no function %s\n", name);
        exit(1);
    }
    memcpy(function, &p, sizeof p);
}

static void find_functions(void) {
#define FIND(_, need, result, name, parameters) find(#name, &cu.name);
    LM_CUDA_API(FIND, _)
    LM_CUBLAS_API(FIND, _)
    LM_CURAND_API(FIND, _)
    LM_NVRTC_API(FIND, _)
#undef FIND
    find("luma_emu_block", &cu.block);
    find("luma_emu_fail", &cu.fail);
    find("luma_emu_counts", &cu.counts);
    find("luma_emu_last_report", &cu.last_report);
}

void wrong(void) {
    exit(ENDS_WRONG);
}

void must(int status) {
    if (status == 0) return;
    fprintf(stderr, "status %d\n", status);
    exit(ENDS_CODE);
}

void open_device(void) {
    CUdevice device;
    must(cu.cuInit(0));
    must(cu.cuDeviceGet(&device, 0));
    must(cu.cuDevicePrimaryCtxRetain(&context, device));
    must(cu.cuCtxPushCurrent_v2(context));
    must(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cu.cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_75\n", 0, NULL, NULL));
}

void wait_stream(void) {
    must(cu.cuStreamSynchronize(stream));
}

CUdeviceptr device_new(size_t n) {
    CUdeviceptr p;
    must(cu.cuMemAlloc_v2(&p, n * sizeof(float)));
    return p;
}

CUdeviceptr device_series(size_t n) {
    CUdeviceptr p = device_new(n);
    float *host = malloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)i;
    must(cu.cuMemcpyHtoDAsync_v2(p, host, n * sizeof *host, stream));
    wait_stream();
    free(host);
    return p;
}

void download(float *to, CUdeviceptr from, size_t n) {
    must(cu.cuMemcpyDtoHAsync_v2(to, from, n * sizeof *to, stream));
    wait_stream();
}

float *address(CUdeviceptr p) {
    return (float *)(uintptr_t)p;
}

CUresult launch(const char *kernel, launch_shape shape, bug_args args) {
    CUfunction f;
    must(cu.cuModuleGetFunction(&f, module, kernel));
    void *parameters[] = {&args};
    return cu.cuLaunchKernel(f, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared,
                             shape.stream ? shape.stream : stream, parameters, NULL);
}

/* ---- children ---- */

/* The child's standard error, as much as is of interest. */
static char said[65536];

static void set_variables(const char *variables) {
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", variables);
    for (char *p = strtok_r(copy, " ", &rest); p; p = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(p, '=');
        *value = 0;
        setenv(p, value + 1, 1);
    }
}

/* Runs a case; its exit status, or 128 + the signal that ended it. */
static int run_child(void (*run)(void), const char *variables) {
    int ends[2];
    fflush(stdout);
    if (pipe(ends)) exit(1);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        set_variables(variables);
        run();
        exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    char unread[256];
    for (;;) {
        bool room = n < sizeof said - 1;
        ssize_t got = read(ends[0], room ? said + n : unread, room ? sizeof said - 1 - n : 256);
        if (got <= 0) break;
        if (room) n += (size_t)got;
    }
    said[n] = 0;
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool child_passes(const char *name, void (*run)(void), const char *variables, bool reports) {
    int status = run_child(run, variables);
    if (status == 0 && (strstr(said, "emulated device [") != NULL) == reports) return true;
    printf("%s with %s: ends with %d\n%s", name, *variables ? variables : "no variables", status,
           said);
    return false;
}

/* What became of a mistake: the kind of the first report, asan, ubsan, wrong (an ordinary test
** would notice), code (a call gave an error), died, or miss. */
static const char *outcome(int status) {
    static char kind[40];
    const char *mark = "emulated device [", *report = strstr(said, mark);
    if (report) {
        report += strlen(mark);
        snprintf(kind, sizeof kind, "%.*s", (int)strcspn(report, "]"), report);
        return kind;
    }
    if (strstr(said, "AddressSanitizer: ")) return "asan";
    if (strstr(said, "runtime error: ")) return "ubsan";
    if (status == ENDS_WRONG) return "wrong";
    if (status == ENDS_CODE) return "code";
    return status == 0 ? "miss" : "died";
}

/* ---- what is right ---- */

static void check_floats(CUdeviceptr p, size_t n, float (*expected)(size_t i)) {
    float *host = malloc(n * sizeof *host);
    download(host, p, n);
    for (size_t i = 0; i < n; i++) {
        if (host[i] == expected(i)) continue;
        fprintf(stderr, "[%zu] is %g, not %g\n", i, (double)host[i], (double)expected(i));
        wrong();
    }
    free(host);
}

static float next_of_64(size_t i) {
    return (float)((i / 64) * 64 + (i + 1) % 64);
}
static float sum_of_256(size_t i) {
    return (float)(i * 256 * 256 + 255 * 128 + 256);
}
static float sum_of_64(size_t i) {
    return (float)(i + 63 * 32);
}
static float running_sum(size_t i) {
    return (float)(i * (i + 1) / 2);
}
static float sum_of_512(size_t i) {
    return (float)(i + 513 * 256);
}
static float alone(size_t i) {
    return (float)(i - i + 1);
}
static float in_volume(size_t i) {
    return (float)(i % 6 + 10 * (i / 6 % 6) + 100 * (i / 36));
}
static float swapped(size_t i) {
    return (float)(i % 4 == 0 ? i + 3 : i % 4 == 3 ? i - 3 : i);
}
/* lanes 0, 3, ... meet on their own: 11 in full warps, 2 in that of 8 lanes; 24 in all */
static float uneven(size_t i) {
    static const int lanes[] = {11, 11, 2};
    if (i == 7) return 0;
    bool third = i % 3 == 0;
    float v = third ? 2.0f * (float)lanes[i / 32] : (float)i;
    return v + 24.0f + (i < 32 ? 100.0f : 0.0f);
}

static void right_kernels(void) {
    CUdeviceptr x = device_series(1024), y = device_new(1024), z = device_series(513),
                count = device_new(1);
    bug_args a = {.n = 64, .x = address(x), .y = address(y)};
    must(launch("rotate", (launch_shape){16, 64, 0, 0}, a));
    check_floats(y, 1024, next_of_64);
    must(launch("sum_twice", (launch_shape){4, 256, 0, 0}, a));
    check_floats(y, 4, sum_of_256);
    must(launch("scan_block", (launch_shape){1, 256, 0, 0}, a));
    check_floats(y, 256, running_sum);
    must(launch("sum_dynamic", (launch_shape){1, 64, 256, 0}, a));
    check_floats(y, 1, sum_of_64);
    must(launch("match_lanes", (launch_shape){2, 64, 0, 0}, a));
    check_floats(y, 128, alone);
    must(cu.cuMemsetD32Async(y, 0, 1024, stream));
    must(launch("sum_atomic", (launch_shape){2, 32, 0, 0}, a));
    check_floats(y, 1, sum_of_64);
    must(cu.cuMemsetD32Async(y, 0, 1024, stream));
    must(launch("uneven_warp", (launch_shape){1, 72, 0, 0}, a));
    check_floats(y, 72, uneven);
    must(cu.cuMemsetD32Async(count, 0, 1, stream));
    bug_args last = {.x = address(x), .y = address(z), .count = (unsigned *)address(count)};
    must(launch("sum_last_block", (launch_shape){8, 64, 0, 0}, last));
    check_floats(z, 1, sum_of_512);
}

static void right_shapes(void) {
    CUfunction f;
    CUdeviceptr x = device_series(64), y = device_new(216);
    bug_args a = {.n = 16, .x = address(x), .y = address(y)};
    void *parameters[] = {&a};
    must(cu.cuModuleGetFunction(&f, module, "volume"));
    must(cu.cuLaunchKernel(f, 3, 2, 1, 2, 3, 6, 0, stream, parameters, NULL));
    check_floats(y, 216, in_volume);
    must(launch("vectors", (launch_shape){1, 32, 0, 0}, a));
    check_floats(y, 64, swapped);
    unsigned char text[64];
    must(launch("bytes", (launch_shape){1, 64, 0, 0}, a));
    must(cu.cuMemcpyDtoHAsync_v2(text, y, 64, stream));
    wait_stream();
    for (int i = 0; i < 64; i++)
        if (text[i] != 63 - i) wrong();
}

static bool same_words(const float *y, int t) {
    int lane = t % 32, warp = t - lane;
    const int expected[] = {
        warp + 3,
        warp + lane / 8 * 8 + 3,
        lane < 3 ? t : t - 3,
        lane % 16 < 3 ? t : t - 3,
        lane + 5 > 31 ? t : t + 5,
        lane % 8 + 5 > 7 ? t : t + 5,
        t ^ 9,
        lane % 8 < 4 ? t : t - 4, /* a later segment gives nothing, an earlier one does */
        0,
        1 + 0 + 4 * 9,
        t < 32 ? 1 : 2,
        __builtin_popcount((unsigned)t) + 10 * __builtin_ffs(t) +
            1000 * (t ? __builtin_clz((unsigned)t) : 32),
    };
    for (int i = 0; i < 12; i++)
        if (i != 8 && y[i] != (float)expected[i]) return false;
    return y[8] == (float)warp + 31.5f;
}

/* Each word of the kernels' vocabulary; old values of atomic operations in any order. */
static void right_words(void) {
    static const unsigned start[12] = {0, 100, 1000, 0, ~0u};
    static float y[64][16];
    unsigned count[12];
    int seen[64] = {0}, swapped_in = 0, tens = 0;
    CUdeviceptr out = device_new(64 * 16), counts = device_new(12);
    must(cu.cuMemcpyHtoDAsync_v2(counts, start, sizeof start, stream));
    must(launch("words", (launch_shape){1, 64, 0, 0},
                (bug_args){.y = address(out), .count = (unsigned *)address(counts)}));
    download(&y[0][0], out, 64 * 16);
    must(cu.cuMemcpyDtoHAsync_v2(count, counts, sizeof count, stream));
    wait_stream();
    for (int t = 0; t < 64; t++) {
        if (!same_words(y[t], t)) wrong();
        swapped_in += (int)y[t][13];
        tens += (int)y[t][12];
        seen[(int)y[t][15]]++;
    }
    for (int t = 0; t < 64; t++)
        if (seen[t] != 1) wrong();
    /* of the exclusive or, bits 0 and 1 are turned three times, the others twice */
    if (count[0] != 63 || count[1] != 2 || count[2] != 936 || count[3] != ~0u || count[4] != 0 ||
        count[5] != 3 || count[6] != 4 || count[10] != 64 || swapped_in != 1 || tens != 6 * 45 + 6)
        wrong();
}

/* A copy in one stream, what needs it in another, an event between them. */
static void right_streams(void) {
    static const float source[4] = {1, 2, 3, 4};
    float result[4];
    CUstream other;
    CUevent event;
    CUdeviceptr x = device_new(4), y = device_new(4);
    must(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cu.cuMemcpyHtoDAsync_v2(x, source, 16, stream));
    must(cu.cuEventRecord(event, stream));
    must(cu.cuStreamWaitEvent(other, event, 0));
    must(launch("add_one", (launch_shape){1, 32, 0, other},
                (bug_args){.n = 4, .x = address(x), .y = address(y)}));
    must(cu.cuMemcpyDtoHAsync_v2(result, y, 16, other));
    must(cu.cuStreamSynchronize(other));
    for (int i = 0; i < 4; i++)
        if (result[i] != source[i] + 1) wrong();
    must(cu.cuMemFree_v2(x));
    must(cu.cuMemFree_v2(y));
}

/* C (5 x 7, rows) = A (5 x 3) B (3 x 7) as cuBLAS wants it: C' = B' A'. */
static void multiply(int ldb, int lda, int ldc, const void *one) {
    static const float zero = 0;
    float c[35];
    CUdeviceptr a = device_series(15), b = device_series(21), out = device_new(35);
    cublasHandle_t handle;
    must(cu.cublasCreate_v2(&handle));
    must(cu.cublasSetStream_v2(handle, stream));
    must(cu.cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 7, 5, 3, one, address(b),
                                       CUDA_R_32F, ldb, 0, address(a), CUDA_R_32F, lda, 0, &zero,
                                       address(out), CUDA_R_32F, ldc, 0, 1, CUBLAS_COMPUTE_32F,
                                       CUBLAS_GEMM_DEFAULT));
    download(c, out, 35);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 7; j++) {
            float sum = 0;
            for (int l = 0; l < 3; l++)
                sum += (float)(i * 3 + l) * (float)(l * 7 + j);
            if (c[i * 7 + j] != sum) wrong();
        }
    }
    must(cu.cublasDestroy_v2(handle));
}

static const float one_f32 = 1;
static const double one_f64 = 1;

static void right_product(void) {
    multiply(7, 3, 7, &one_f32);
}

static void right(void) {
    open_device();
    for (int i = 0; i < 3; i++) {
        right_kernels();
        right_shapes();
        right_words();
        right_streams();
        right_product();
    }
    lm_emu_figures figures;
    cu.counts(&figures);
    if (figures.reports) wrong();
}

/* ---- mistakes ---- */

static void run_kernel(const char *kernel, launch_shape shape, bug_args a) {
    must(launch(kernel, shape, a));
    wait_stream();
}

static bug_args xy(CUdeviceptr x, CUdeviceptr y, uint64_t n) {
    return (bug_args){.n = n, .x = address(x), .y = address(y)};
}

static void no_barrier(void) {
    CUdeviceptr x = device_series(64), y = device_new(64);
    run_kernel("bug_no_barrier", (launch_shape){1, 64, 0, 0}, xy(x, y, 64));
    check_floats(y, 64, next_of_64);
}

static float sum_of_sums(size_t i) {
    return (float)(i - i + 64 * 63 * 32);
}
static void reuse(void) {
    CUdeviceptr x = device_series(64), y = device_new(64);
    run_kernel("bug_reuse", (launch_shape){1, 64, 0, 0}, xy(x, y, 64));
    check_floats(y, 64, sum_of_sums);
}

static void host_read(void) {
    volatile float *p = address(device_series(4));
    if (p[1] != 1) wrong();
}

static void host_write(void) {
    volatile float *p = address(device_series(4));
    p[1] = 3;
}

static void write_past(void) {
    CUdeviceptr y = device_series(100);
    run_kernel("bug_write_past", (launch_shape){1, 128, 0, 0}, xy(0, y, 100));
}

static void write_far(void) {
    CUdeviceptr y = device_series(100);
    run_kernel("bug_write_far", (launch_shape){1, 128, 0, 0}, xy(0, y, 100));
}

static float next(size_t i) {
    return (float)(i + 1);
}
static void read_past(void) {
    CUdeviceptr x = device_series(100), y = device_new(100);
    run_kernel("bug_read_past", (launch_shape){1, 128, 0, 0}, xy(x, y, 100));
    check_floats(y, 100, next);
}

static void misaligned(void) {
    CUdeviceptr y = device_series(4);
    run_kernel("bug_misaligned", (launch_shape){1, 1, 0, 0}, xy(0, y, 1));
}

static void freed_kernel(void) {
    CUdeviceptr y = device_series(100);
    must(cu.cuMemFree_v2(y));
    run_kernel("set_one", (launch_shape){1, 128, 0, 0}, xy(0, y, 100));
}

static void freed_copy(void) {
    float host[4];
    CUdeviceptr y = device_series(100);
    must(cu.cuMemFree_v2(y));
    download(host, y, 4);
}

static void freed_twice(void) {
    CUdeviceptr y = device_series(100);
    must(cu.cuMemFree_v2(y));
    must(cu.cuMemFree_v2(y));
}

static void source_freed(void) {
    CUdeviceptr y = device_new(100);
    float *host = malloc(400);
    for (int i = 0; i < 100; i++)
        host[i] = 1;
    must(cu.cuMemcpyHtoDAsync_v2(y, host, 400, stream));
    free(host);
    wait_stream();
}

static void source_changed(void) {
    CUdeviceptr y = device_new(100);
    float host[100] = {1};
    must(cu.cuMemcpyHtoDAsync_v2(y, host, 400, stream));
    host[99] = 2;
    wait_stream();
}

static void read_early(void) {
    CUdeviceptr x = device_series(4);
    float host[4] = {0};
    must(cu.cuMemcpyDtoHAsync_v2(host, x, 16, stream));
    if (host[2] != 2) wrong();
    wait_stream();
}

static void ld_small(void) {
    multiply(3, 3, 7, &one_f32);
}
static void ld_large(void) {
    multiply(8, 3, 7, &one_f32);
}
static void ldc_large(void) {
    multiply(7, 3, 8, &one_f32);
}
/* read as a float the double 1 is 0 */
static void alpha_type(void) {
    multiply(7, 3, 7, &one_f64);
}

static void ld_plausible(void) {
    static const float zero = 0;
    float c[9];
    CUdeviceptr a = device_series(16), out = device_new(9);
    cublasHandle_t handle;
    must(cu.cublasCreate_v2(&handle));
    must(cu.cublasSetStream_v2(handle, stream));
    /* the rows of a 3 x 3 view begin 4 numbers apart, not 3 */
    must(cu.cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one_f32,
                                       address(a), CUDA_R_32F, 3, 0, address(a), CUDA_R_32F, 3, 0,
                                       &zero, address(out), CUDA_R_32F, 3, 0, 1, CUBLAS_COMPUTE_32F,
                                       CUBLAS_GEMM_DEFAULT));
    download(c, out, 9);
    if (c[0] != 20) wrong(); /* 0 * 0 + 1 * 4 + 2 * 8 */
}

static float from_one(size_t i) {
    return (float)(i + 1);
}
static void unset_memory(void) {
    CUdeviceptr x = device_new(4), y = device_new(4);
    run_kernel("add_one", (launch_shape){1, 32, 0, 0}, xy(x, y, 4));
    check_floats(y, 4, from_one);
}

static void no_event(void) {
    static const float source[4] = {1, 2, 3, 4};
    float result[4];
    CUstream other;
    CUdeviceptr x = device_new(4), y = device_new(4);
    must(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cu.cuMemcpyHtoDAsync_v2(x, source, 16, stream));
    must(launch("add_one", (launch_shape){1, 32, 0, other}, xy(x, y, 4)));
    must(cu.cuMemcpyDtoHAsync_v2(result, y, 16, other));
    must(cu.cuStreamSynchronize(other));
    if (result[1] != 3) wrong();
}

static void partial_warp(void) {
    float sum;
    CUdeviceptr x = device_series(48), y = device_new(1);
    run_kernel("bug_partial_warp", (launch_shape){1, 20, 0, 0}, xy(x, y, 1));
    download(&sum, y, 1);
    if (sum != 190) wrong();
}

static void lane_gone(void) {
    CUdeviceptr x = device_series(32), y = device_series(32);
    run_kernel("bug_lane_gone", (launch_shape){1, 32, 0, 0}, xy(x, y, 1));
}

static void mask(void) {
    CUdeviceptr x = device_series(32), y = device_series(32);
    run_kernel("bug_mask", (launch_shape){1, 32, 0, 0}, xy(x, y, 1));
}

static void diverged(void) {
    CUdeviceptr y = device_series(2);
    run_kernel("bug_diverged", (launch_shape){1, 64, 0, 0}, xy(0, y, 1));
}

static void deadlock(void) {
    CUdeviceptr y = device_series(32);
    run_kernel("bug_deadlock", (launch_shape){1, 32, 0, 0}, xy(0, y, 1));
}

static void plain_sum(void) {
    CUdeviceptr x = device_series(64), y = device_new(1);
    must(cu.cuMemsetD32Async(y, 0, 1, stream));
    run_kernel("bug_plain_sum", (launch_shape){2, 32, 0, 0}, xy(x, y, 64));
    check_floats(y, 1, sum_of_64);
}

static float eight(size_t i) {
    return (float)(i - i + 8);
}
static void no_fence(void) {
    CUdeviceptr x = device_new(8), y = device_new(1), count = device_new(1);
    must(cu.cuMemsetD32Async(count, 0, 1, stream));
    bug_args a = xy(x, y, 8);
    a.count = (unsigned *)address(count);
    run_kernel("bug_no_fence", (launch_shape){8, 32, 0, 0}, a);
    check_floats(y, 1, eight);
}

static void dynamic_past(void) {
    CUdeviceptr y = device_new(64);
    run_kernel("bug_dynamic_past", (launch_shape){1, 63, 252, 0}, xy(0, y, 1));
}

static float ones(size_t i) {
    return (float)(i - i + 1);
}
static void shared_unset(void) {
    CUdeviceptr y = device_new(64);
    run_kernel("bug_shared_unset", (launch_shape){1, 64, 0, 0}, xy(0, y, 1));
    check_floats(y, 64, ones);
}

static void shared_past(void) {
    CUdeviceptr y = device_new(64);
    run_kernel("bug_shared_past", (launch_shape){1, 64, 0, 0}, xy(0, y, 0));
}

static void stack(void) {
    CUdeviceptr y = device_new(1);
    run_kernel("bug_stack", (launch_shape){1, 1, 0, 0}, xy(0, y, 1000));
}

static void host_pointer(void) {
    float *x = calloc(16, sizeof *x);
    CUdeviceptr y = device_new(16);
    run_kernel("add_one", (launch_shape){1, 32, 0, 0}, (bug_args){16, x, address(y), NULL});
    free(x);
}

static void *allocate(void *unused) {
    CUdeviceptr p;
    must(cu.cuMemAlloc_v2(&p, 16));
    return unused;
}
static void no_context(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, NULL);
}

static void empty_grid(void) {
    must(launch("set_one", (launch_shape){0, 32, 0, 0}, xy(0, device_new(1), 0)));
}

static void other_signature(void) {
    CUmodule m;
    must(cu.cuModuleLoadDataEx(&m,
                               ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry set_one(\n"
                               ".param .align 8 .b8 set_one_param_0[24]\n)\n{ ret; }\n",
                               0, NULL, NULL));
}

static void new_ptx(void) {
    CUmodule m;
    must(cu.cuModuleLoadDataEx(&m, ".version 9.9\n.target sm_75\n", 0, NULL, NULL));
}

static void pinned_early(void) {
    void *p;
    CUdeviceptr y = device_new(4);
    must(cu.cuMemAllocHost_v2(&p, 16));
    must(cu.cuMemcpyHtoDAsync_v2(y, p, 16, stream));
    must(cu.cuMemFreeHost(p));
    wait_stream();
}

/* A caching allocator hands out half of a segment; the kernel goes on into the rest. */
static void past_block(void) {
    CUdeviceptr segment = device_new(256);
    cu.block(segment, 1024, 0, stream);
    cu.block(segment, 512, 1, stream);
    run_kernel("set_one", (launch_shape){1, 128, 0, 0}, xy(0, segment, 130));
}

/* The block is used once more after it was given back, in the order of the stream. */
static void freed_block(void) {
    CUdeviceptr segment = device_new(256);
    cu.block(segment, 1024, 1, stream);
    cu.block(segment, 1024, 0, stream);
    run_kernel("set_one", (launch_shape){1, 128, 0, 0}, xy(0, segment, 100));
}

/* The host fills a block after it was given back. */
static void freed_block_copy(void) {
    CUdeviceptr segment = device_new(256);
    cu.block(segment, 1024, 1, stream);
    cu.block(segment, 1024, 0, stream);
    must(cu.cuMemsetD32Async(segment, 0, 16, stream));
    wait_stream();
}

/* The block is given back in the order of its own stream, while another stream is still to use it. */
static void no_record(void) {
    CUstream other;
    CUdeviceptr segment = device_new(256);
    must(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    cu.block(segment, 1024, 1, stream);
    must(launch("set_one", (launch_shape){1, 128, 0, other}, xy(0, segment, 100)));
    cu.block(segment, 1024, 0, stream);
    wait_stream();
    must(cu.cuStreamSynchronize(other));
}

/* ---- the table ---- */

typedef struct {
    const char *name;
    void (*run)(void);
    const char *forward, *reverse, *random, *warp, *eager, *race, *asan;
} mistake;
#define SAME(function, kind)                                                                       \
    { #function, function, kind, kind, kind, kind, kind, kind, kind }
#define FAST(function, kind, race, asan)                                                           \
    { #function, function, kind, kind, kind, kind, kind, race, asan }

static const mistake mistakes[] = {
    {"no_barrier", no_barrier, "wrong", "wrong", "wrong", "wrong", "wrong", "uninitialised",
     "wrong"},
    {"reuse", reuse, "miss", "wrong", "wrong", "wrong", "miss", "race", "miss"},
    FAST(host_read, "host-access", "host-access", "host-access"),
    FAST(host_write, "host-access", "host-access", "host-access"),
    FAST(write_past, "redzone", "illegal-address", "asan"),
    SAME(write_far, "illegal-address"),
    FAST(read_past, "wrong", "illegal-address", "asan"),
    FAST(misaligned, "miss", "misaligned", "ubsan"),
    FAST(freed_kernel, "illegal-address", "illegal-address", "asan"),
    SAME(freed_copy, "device-range"),
    SAME(freed_twice, "double-free"),
    {"source_freed", source_freed, "upload-source", "upload-source", "upload-source",
     "upload-source", "miss", "upload-source", "asan"},
    {"source_changed", source_changed, "upload-source", "upload-source", "upload-source",
     "upload-source", "miss", "upload-source", "upload-source"},
    {"read_early", read_early, "wrong", "wrong", "wrong", "wrong", "miss", "wrong", "wrong"},
    SAME(ld_small, "code"),
    SAME(ld_large, "device-range"),
    SAME(ldc_large, "device-range"),
    SAME(alpha_type, "wrong"),
    SAME(ld_plausible, "wrong"),
    FAST(unset_memory, "wrong", "uninitialised", "wrong"),
    {"no_event", no_event, "wrong", "wrong", "wrong", "wrong", "miss", "uninitialised", "wrong"},
    SAME(partial_warp, "shuffle-inactive"),
    SAME(lane_gone, "shuffle-inactive"),
    SAME(mask, "warp-mask"),
    SAME(diverged, "barrier-divergence"),
    SAME(deadlock, "deadlock"),
    FAST(plain_sum, "miss", "race", "miss"),
    FAST(no_fence, "miss", "race", "miss"),
    FAST(dynamic_past, "redzone", "illegal-address", "asan"),
    FAST(shared_unset, "wrong", "uninitialised", "wrong"),
    FAST(shared_past, "miss", "miss", "ubsan"),
    SAME(stack, "stack-overflow"),
    FAST(host_pointer, "miss", "host-memory", "miss"),
    SAME(no_context, "code"),
    SAME(empty_grid, "code"),
    SAME(other_signature, "ptx-signature"),
    SAME(new_ptx, "code"),
    {"pinned_early", pinned_early, "pinned-freed", "pinned-freed", "pinned-freed", "pinned-freed",
     "miss", "pinned-freed", "pinned-freed"},
    FAST(past_block, "miss", "freed-block", "asan"),
    FAST(freed_block, "miss", "freed-block", "asan"),
    FAST(freed_block_copy, "miss", "freed-block", "freed-block"),
    FAST(no_record, "miss", "freed-block", "asan"),
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

/* The columns that a flavour fills, and the variables that make them. */
#define COLUMN(name, variables)                                                                    \
    { #name, variables, offsetof(mistake, name) }
static const struct {
    const char *name, *variables;
    size_t offset;
} columns[] = {
#if defined(FLAVOUR_fast)
    COLUMN(forward, "LUMA_EMU_ORDER=forward"), COLUMN(reverse, "LUMA_EMU_ORDER=reverse"),
    COLUMN(random, "LUMA_EMU_ORDER=random"),   COLUMN(warp, "LUMA_EMU_ORDER=warp"),
    COLUMN(eager, "LUMA_EMU_LAZY=0"),
#elif defined(FLAVOUR_race)
    COLUMN(race, "LUMA_EMU_ORDER=forward"),
#else
    COLUMN(asan, "LUMA_EMU_ORDER=forward"),
#endif
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const mistake *running;
static void make_mistake(void) {
    open_device();
    running->run();
}

/* Makes each and shows what became of it, a column for each way to run; * where another was meant. */
static int check_mistakes(void) {
    int failures = 0;
    printf("%-18s", "");
    for (int c = 0; c < COLUMNS; c++)
        printf("%-20s", columns[c].name);
    printf("\n");
    for (int i = 0; i < MISTAKES; i++) {
        running = &mistakes[i];
        printf("%-18s", running->name);
        for (int c = 0; c < COLUMNS; c++) {
            const char *got = outcome(run_child(make_mistake, columns[c].variables)), *expected;
            memcpy(&expected, (const char *)running + columns[c].offset, sizeof expected);
            const bool same = strcmp(got, expected) == 0;
            printf("%-20s", got);
            if (!same) printf("* not %s\n%s", expected, said);
            failures += !same;
        }
        printf("\n");
    }
    return failures;
}

/* Every mistake is caught in some column of some flavour. */
static int check_caught(void) {
    int failures = 0;
    for (int i = 0; i < MISTAKES; i++) {
        const mistake *m = &mistakes[i];
        const char *const all[] = {m->forward, m->reverse, m->random, m->warp,
                                   m->eager,   m->race,    m->asan};
        size_t missed = 0;
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
            missed += strcmp(all[k], "miss") == 0;
        if (missed < sizeof all / sizeof all[0]) continue;
        printf("no flavour catches %s\n", m->name);
        failures++;
    }
    return failures;
}

static int check_right(void) {
    static const char *const orders[] = {
        "LUMA_EMU_ORDER=forward",
        "LUMA_EMU_ORDER=reverse",
        "LUMA_EMU_ORDER=random LUMA_EMU_SEED=1",
        "LUMA_EMU_ORDER=random LUMA_EMU_SEED=2",
        "LUMA_EMU_ORDER=random LUMA_EMU_SEED=3",
        "LUMA_EMU_ORDER=warp LUMA_EMU_SEED=1",
        "LUMA_EMU_ORDER=warp LUMA_EMU_SEED=2",
        "LUMA_EMU_LAZY=0",
        "LUMA_EMU_GUARD=0",
    };
    int failures = 0;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (!child_passes("what is right", right, orders[i], false)) failures++;
    return failures;
}

/* For a look at one: what a mistake says. */
static int show(const char *name) {
    for (int i = 0; i < MISTAKES; i++) {
        running = &mistakes[i];
        if (strcmp(running->name, name) != 0) continue;
        int status = run_child(make_mistake, "");
        printf("%s%s (ends with %d)\n", said, outcome(status), status);
        return 0;
    }
    if (strcmp(name, "right") == 0) return !child_passes(name, right, "", false);
    printf("there is no mistake %s\n", name);
    return 1;
}

int main(int count, char **arguments) {
    find_functions();
    if (count > 1) return show(arguments[1]);
    int failures = check_right() + check_caught() + check_mistakes();
    if (!rules_hold()) failures++;
    printf("%d mistakes in %d columns, %d failures\n", (int)MISTAKES, (int)COLUMNS, failures);
    return failures > 0;
}

#ifdef FLAVOUR_asan
/* faults are the emulator's, leaks of mistakes are of no interest */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:allow_user_segv_handler=1";
}
#endif
