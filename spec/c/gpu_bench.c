/* gpu_bench.c -- what a CUDA device does when it is asked directly, for scripts/dev/gpu-check: copies
** by the driver, products by cuBLAS, launches, allocations. Prints lines "name value", in seconds.
** usage: luma_gpu_bench [tiny] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cuda.h"

static luma_state *S;
static lm_cuda *c;
static const lm_driver *driver;

static void must(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s: %d %s\n", what, result, luma_message(S));
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_stream(void) {
    must(driver->cuStreamSynchronize(c->stream), "cuStreamSynchronize");
}

/* Seconds of one call: the best of five batches that take some 20 ms each. */
static double measure(void (*call)(void *), void *argument) {
    call(argument);
    wait_stream();
    double start = now();
    call(argument);
    wait_stream();
    double once = now() - start, best = once;
    int batch = once > 0.02 ? 1 : 1 + (int)(0.02 / once);
    if (batch > 500) batch = 500;
    for (int i = 0; i < 5; i++) {
        start = now();
        for (int j = 0; j < batch; j++)
            call(argument);
        wait_stream();
        double each = (now() - start) / batch;
        if (each < best) best = each;
    }
    return best;
}

/* ---- copies ---- */

typedef struct {
    CUdeviceptr to, from;
    void *host;
    size_t nbytes;
} block;

static void copy_inside(void *argument) {
    const block *b = argument;
    must(driver->cuMemcpyDtoDAsync_v2(b->to, b->from, b->nbytes, c->stream), "cuMemcpyDtoDAsync");
}
static void copy_up(void *argument) {
    const block *b = argument;
    must(driver->cuMemcpyHtoDAsync_v2(b->to, b->host, b->nbytes, c->stream), "cuMemcpyHtoDAsync");
}
static void copy_down(void *argument) {
    const block *b = argument;
    must(driver->cuMemcpyDtoHAsync_v2(b->host, b->to, b->nbytes, c->stream), "cuMemcpyDtoHAsync");
}

static void copies(size_t nbytes) {
    block b = {0, 0, NULL, nbytes};
    must(driver->cuMemAlloc_v2(&b.to, nbytes), "cuMemAlloc");
    must(driver->cuMemAlloc_v2(&b.from, nbytes), "cuMemAlloc");
    must(driver->cuMemAllocHost_v2(&b.host, nbytes), "cuMemAllocHost");
    memset(b.host, 1, nbytes);
    copy_up(&b);
    must(driver->cuMemcpyHtoDAsync_v2(b.from, b.host, nbytes, c->stream), "cuMemcpyHtoDAsync");
    printf("copy_bytes %zu\n", nbytes);
    printf("copy %.9f\n", measure(copy_inside, &b));
    printf("upload %.9f\n", measure(copy_up, &b));
    printf("download %.9f\n", measure(copy_down, &b));
    driver->cuMemFree_v2(b.to);
    driver->cuMemFree_v2(b.from);
    driver->cuMemFreeHost(b.host);
}

/* ---- launches and allocations ---- */

static void launch(void *argument) {
    lm_shape shape = {.grid = {1, 1, 1}, .block = 32, .shared = 0};
    must((int)LM_LAUNCH(S, c, fill_4, shape, argument), "launch");
}

static void allocate(void *argument) {
    CUdeviceptr p;
    (void)argument;
    must(driver->cuMemAlloc_v2(&p, (size_t)8 << 20), "cuMemAlloc");
    must(driver->cuMemFree_v2(p), "cuMemFree");
}

static void costs(void) {
    CUdeviceptr p;
    must(driver->cuMemAlloc_v2(&p, 1024), "cuMemAlloc");
    lm_args_fill a = {.y = (void *)(uintptr_t)p, .stride = {4}, .element = 0};
    const int64_t shape[] = {32}, *strides[] = {a.stride};
    lm_walk_set(&a.walk, 1, shape, 1, strides);
    printf("launch %.9f\n", measure(launch, &a));
    printf("allocate %.9f\n", measure(allocate, NULL));
    driver->cuMemFree_v2(p);
}

/* ---- products ---- */

typedef struct {
    const lm_cublas *api;
    cublasHandle_t handle;
    cudaDataType type;
    cublasComputeType_t compute;
    const void *one, *zero;
    int n;
    const void *a;
    void *c;
} product;

static void multiply(void *argument) {
    const product *p = argument;
    int n = p->n;
    must(p->api->cublasGemmStridedBatchedEx(p->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, p->one,
                                            p->a, p->type, n, 0, p->a, p->type, n, 0, p->zero, p->c,
                                            p->type, n, 0, 1, p->compute, CUBLAS_GEMM_DEFAULT),
         "cublasGemmStridedBatchedEx");
}

/* Random numbers, as the products of scripts have them: what a device can do depends on them. */
static luma_tensor draw(int n, luma_dtype dtype) {
    luma_tensor x = LUMA_NEW;
    const int64_t shape[] = {n, n};
    must((int)luma_empty(S, &x, 2, shape, dtype, "cuda:0"), "luma_empty");
    must((int)luma_rand(S, &x), "luma_rand");
    return x;
}

static void products(const int *sizes, int nsizes) {
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    static const struct {
        luma_dtype dtype;
        cudaDataType type;
        cublasComputeType_t compute;
    } kinds[] = {{LUMA_FLOAT32, CUDA_R_32F, CUBLAS_COMPUTE_32F},
                 {LUMA_FLOAT16, CUDA_R_16F, CUBLAS_COMPUTE_32F},
                 {LUMA_BFLOAT16, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
                 {LUMA_FLOAT64, CUDA_R_64F, CUBLAS_COMPUTE_64F}};
    const char *why;
    product p = {.api = lm_cublas_open(&why)};
    if (!p.api) {
        fprintf(stderr, "%s\n", why);
        return;
    }
    must(p.api->cublasCreate_v2(&p.handle), "cublasCreate");
    must(p.api->cublasSetStream_v2(p.handle, c->stream), "cublasSetStream");
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        bool wide = kinds[k].dtype == LUMA_FLOAT64;
        p.type = kinds[k].type;
        p.compute = kinds[k].compute;
        p.one = wide ? (const void *)&one64 : &one;
        p.zero = wide ? (const void *)&zero64 : &zero;
        for (int i = 0; i < nsizes; i++) {
            luma_tensor x = draw(sizes[i], kinds[k].dtype), y = draw(sizes[i], kinds[k].dtype);
            p.n = sizes[i];
            p.a = lm_data(&x);
            p.c = lm_data(&y);
            printf("matmul_%s_%d %.9f\n", luma_dtype_name(kinds[k].dtype), sizes[i],
                   measure(multiply, &p));
            luma_release(S, &x);
            luma_release(S, &y);
        }
    }
    p.api->cublasDestroy_v2(p.handle);
}

int main(int count, char **arguments) {
    static const int sizes[] = {1024, 4096, 8192}, tiny_sizes[] = {32};
    bool tiny = count > 1 && strcmp(arguments[1], "tiny") == 0;
    lm_device *d;
    S = luma_open();
    if (!S) return 1;
    must((int)lm_cuda_register(S), "lm_cuda_register");
    must((int)lm_device_find(S, "cuda:0", &d), "lm_device_find");
    c = lm_cuda_of(d);
    driver = c->driver;
    must((int)lm_cuda_enter(S, c), "lm_cuda_enter");
    copies(tiny ? 4096 : (size_t)512 << 20);
    costs();
    products(tiny ? tiny_sizes : sizes, tiny ? 1 : 3);
    lm_cuda_leave(c);
    luma_close(S);
    return 0;
}
