/* blas.c -- cuBLAS behind the matmul slot: its handle and workspace, and how a product of any sizes
** becomes calls of GemmStridedBatchedEx. Layer: kernels/cuda. */
#include "blas.h"

#include "cache.h"

#include <stdlib.h>
#include <string.h>

/* Workspace as NVIDIA recommends it for compute capability 9 on and for the others; and enough for
** every product to work (documented: 16 KB), for so many of them after memory was short. */
#define WORKSPACE_90 ((size_t)32 << 20)
#define WORKSPACE ((size_t)4 << 20)
#define LEAST_WORKSPACE ((size_t)64 << 10)
#define SPARING 1000
/* Sizes are int in cuBLAS. */
#define MOST ((int64_t)1 << 30)

struct lm_blas {
    const lm_cublas *api;
    cublasHandle_t handle;
    lm_storage *workspace; /* from the cache; NULL: not asked for yet, or given back */
    int sparing;           /* products that do with the least */
    cublasMath_t mode;
    int64_t most; /* of a size or leading dimension in one call */
};

/* ---- layouts -------------------------------------------------------------------------------- */

void lm_product_turn(lm_product *p) {
    lm_product t = *p;
    t.a = p->b, t.b = p->a;
    t.m = p->n, t.n = p->m;
    t.a_row = p->b_column, t.a_column = p->b_row;
    t.b_row = p->a_column, t.b_column = p->a_row;
    t.c_row = p->c_column, t.c_column = p->c_row;
    memcpy(t.a_batch, p->b_batch, sizeof t.a_batch);
    memcpy(t.b_batch, p->a_batch, sizeof t.b_batch);
    *p = t;
}

/* n by m, side by side along n. Where there is one of something, any stride does. */
static bool side_by_side(int64_t n, int64_t stride_n, int64_t m, int64_t stride_m) {
    return (n == 1 || stride_n == 1) && (m == 1 || stride_m >= n);
}

static bool forward(const lm_product *p, const int64_t *stride) {
    for (int d = 0; d < p->nbatch; d++)
        if (stride[d] < 0) return false;
    return true;
}

static bool matrix(int64_t m, int64_t stride_m, int64_t n, int64_t stride_n) {
    return side_by_side(m, stride_m, n, stride_n) || side_by_side(n, stride_n, m, stride_m);
}

bool lm_blas_reads_a(const lm_product *p) {
    return matrix(p->m, p->a_row, p->k, p->a_column) && forward(p, p->a_batch);
}

bool lm_blas_reads_b(const lm_product *p) {
    return matrix(p->k, p->b_row, p->n, p->b_column) && forward(p, p->b_batch);
}

bool lm_blas_writes_c(const lm_product *p) {
    return matrix(p->m, p->c_row, p->n, p->c_column) && forward(p, p->c_batch);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* A product as cuBLAS sees it: column by column, c as it lies. */
typedef struct {
    lm_product p;
    cublasOperation_t op_a, op_b;
    int64_t m, n, k; /* of one call */
    int inner;       /* the batch dim that calls take, -1: none */
    cublasComputeType_t sum;
    cudaDataType type, c_type;
    const void *one, *zero; /* in the type of scales */
} calls;

static const double one_f64 = 1, zero_f64 = 0;
static const float one_f32 = 1, zero_f32 = 0;
static const uint16_t one_f16 = 0x3c00, zero_f16 = 0;

/* The dim along which lines of memory follow each other goes one by one where they lie too far
** apart for a leading dimension. */
static void limit(int64_t *piece, int64_t size, int64_t stride, int64_t most) {
    if (size > 1 && stride > most) *piece = 1;
}

static void plan_pieces(calls *w, int64_t most) {
    const lm_product *p = &w->p;
    w->m = lm_min(p->m, most);
    w->n = lm_min(p->n, most);
    w->k = lm_min(p->k, most);
    if (w->op_a == CUBLAS_OP_N) {
        limit(&w->k, p->k, p->a_column, most);
    } else {
        limit(&w->m, p->m, p->a_row, most);
    }
    if (w->op_b == CUBLAS_OP_N) {
        limit(&w->n, p->n, p->b_column, most);
    } else {
        limit(&w->k, p->k, p->b_row, most);
    }
    limit(&w->n, p->n, p->c_column, most);
}

static void plan_calls(calls *w, const lm_product *product, int64_t most) {
    w->p = *product;
    lm_product *p = &w->p;
    if (!side_by_side(p->m, p->c_row, p->n, p->c_column)) lm_product_turn(p);
    w->op_a = side_by_side(p->m, p->a_row, p->k, p->a_column) ? CUBLAS_OP_N : CUBLAS_OP_T;
    w->op_b = side_by_side(p->k, p->b_row, p->n, p->b_column) ? CUBLAS_OP_N : CUBLAS_OP_T;
    plan_pieces(w, most);
    w->inner = -1;
    for (int d = 0; d < p->nbatch; d++)
        if (w->inner < 0 || p->batch[d] > p->batch[w->inner]) w->inner = d;
}

bool lm_blas_adds_to_c(const lm_cuda *c, const lm_product *p) {
    calls w;
    plan_calls(&w, p, c->blas->most);
    return w.k < w.p.k;
}

static cudaDataType type_of(luma_dtype dtype) {
    switch (dtype) {
    case LUMA_FLOAT16:
        return CUDA_R_16F;
    case LUMA_BFLOAT16:
        return CUDA_R_16BF;
    case LUMA_FLOAT64:
        return CUDA_R_64F;
    default:
        return CUDA_R_32F;
    }
}

/* How sums are made, as the switches allow; nothing less than float32 unless they do. */
static cublasMath_t plan_sums(calls *w, uint32_t allowed) {
    const lm_product *p = &w->p;
    w->type = type_of(p->dtype);
    w->c_type = type_of(p->c_dtype);
    w->sum = CUBLAS_COMPUTE_32F;
    w->one = &one_f32;
    w->zero = &zero_f32;
    cublasMath_t mode = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (p->dtype == LUMA_FLOAT64) {
        w->sum = CUBLAS_COMPUTE_64F;
        w->one = &one_f64;
        w->zero = &zero_f64;
    } else if (p->dtype == LUMA_FLOAT32 && (allowed & LM_ALLOW_TF32)) {
        w->sum = CUBLAS_COMPUTE_32F_FAST_TF32;
    } else if (p->dtype == LUMA_BFLOAT16 && (allowed & LM_ALLOW_BF16_REDUCED)) {
        mode = CUBLAS_DEFAULT_MATH;
    } else if (p->dtype == LUMA_FLOAT16 && p->c_dtype == LUMA_FLOAT16 &&
               (allowed & LM_ALLOW_FP16_ACCUMULATE)) {
        w->sum = CUBLAS_COMPUTE_16F;
        w->one = &one_f16;
        w->zero = &zero_f16;
        mode = CUBLAS_DEFAULT_MATH;
    }
    return mode;
}

/* Where one call begins. */
typedef struct {
    const char *a, *b;
    char *c;
    int64_t batch; /* of w->inner, from here on */
} place;

/* rows: how many lie side by side. A single line has no next one. */
static int leading(int64_t rows, int64_t lines, int64_t stride) {
    return (int)(lines > 1 ? stride : rows);
}

static cublasStatus_t call(const lm_blas *blas, const calls *w, place at, int64_t i, int64_t j,
                           int64_t l) {
    const lm_product *p = &w->p;
    const int64_t size = (int64_t)lm_dtype_size(p->dtype);
    const int64_t c_size = (int64_t)lm_dtype_size(p->c_dtype);
    const int64_t m = lm_min(w->m, p->m - i), n = lm_min(w->n, p->n - j),
                  k = lm_min(w->k, p->k - l);
    const int d = w->inner;
    const int lda = w->op_a == CUBLAS_OP_N ? leading(m, k, p->a_column) : leading(k, m, p->a_row);
    const int ldb = w->op_b == CUBLAS_OP_N ? leading(k, n, p->b_column) : leading(n, k, p->b_row);
    return blas->api->cublasGemmStridedBatchedEx(
        blas->handle, w->op_a, w->op_b, (int)m, (int)n, (int)k, w->one,
        at.a + (i * p->a_row + l * p->a_column) * size, w->type, lda, d < 0 ? 0 : p->a_batch[d],
        at.b + (l * p->b_row + j * p->b_column) * size, w->type, ldb, d < 0 ? 0 : p->b_batch[d],
        l > 0 ? w->one : w->zero, at.c + (i * p->c_row + j * p->c_column) * c_size, w->c_type,
        leading(m, n, p->c_column), d < 0 ? 0 : p->c_batch[d], (int)at.batch, w->sum,
        CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t call_pieces(const lm_blas *blas, const calls *w, place at) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int64_t j = 0; j < w->p.n; j += w->n) {
        for (int64_t i = 0; i < w->p.m; i += w->m) {
            for (int64_t l = 0; l < w->p.k; l += w->k) {
                status = call(blas, w, at, i, j, l);
                if (status != CUBLAS_STATUS_SUCCESS) return status;
            }
        }
    }
    return status;
}

/* The batch dims that calls cannot take; position counts them in row-major order. */
static place place_of(const calls *w, int64_t position, int64_t inner) {
    const lm_product *p = &w->p;
    const int64_t size = (int64_t)lm_dtype_size(p->dtype);
    const int64_t c_size = (int64_t)lm_dtype_size(p->c_dtype);
    place at = {p->a, p->b, p->c, 1};
    for (int d = p->nbatch - 1; d >= 0; d--) {
        int64_t i = inner;
        if (d != w->inner) {
            i = position % p->batch[d];
            position /= p->batch[d];
        }
        at.a += i * p->a_batch[d] * size;
        at.b += i * p->b_batch[d] * size;
        at.c += i * p->c_batch[d] * c_size;
    }
    return at;
}

static cublasStatus_t call_batches(const lm_blas *blas, const calls *w) {
    const lm_product *p = &w->p;
    const int64_t batch = w->inner < 0 ? 1 : p->batch[w->inner];
    int64_t outer = 1;
    for (int d = 0; d < p->nbatch; d++)
        outer *= d == w->inner ? 1 : p->batch[d];
    for (int64_t position = 0; position < outer; position++) {
        for (int64_t inner = 0; inner < batch; inner += blas->most) {
            place at = place_of(w, position, inner);
            at.batch = lm_min(blas->most, batch - inner);
            cublasStatus_t status = call_pieces(blas, w, at);
            if (status != CUBLAS_STATUS_SUCCESS) return status;
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- errors --------------------------------------------------------------------------------- */

static luma_status fail(luma_state *S, const lm_cuda *c, cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return LUMA_OK;
    luma_status kind = status == CUBLAS_STATUS_ALLOC_FAILED ? LUMA_ERR_MEMORY : LUMA_ERR_DEVICE;
    return lm_fail(S, kind, 0, "%s: %s: %s", c->device->name, what, lm_cublas_status_name(status));
}

/* ---- the handle ----------------------------------------------------------------------------- */

static luma_status set_up(luma_state *S, lm_cuda *c, lm_blas *blas) {
    const lm_cublas *api = blas->api;
    cublasStatus_t status = api->cublasCreate_v2(&blas->handle);
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        lm_cache_empty(c->device->cache);
        status = api->cublasCreate_v2(&blas->handle);
    }
    LM_TRY(fail(S, c, status, "cublasCreate"));
    return fail(S, c, api->cublasSetStream_v2(blas->handle, c->stream), "cublasSetStream");
}

/* Only where there is room for it, without a limit or a cache being emptied for it. */
static lm_storage *take_if_free(lm_device *d, size_t nbytes) {
    lm_storage *st = lm_cache_storage(d, nbytes, false);
    if (st) d->live += (int64_t)nbytes;
    lm_cache_problem(d->cache);
    return st;
}

static luma_status provide_workspace(luma_state *S, lm_cuda *c) {
    lm_blas *blas = c->blas;
    const size_t whole = c->capability >= 90 ? WORKSPACE_90 : WORKSPACE;
    const size_t have = blas->workspace ? blas->workspace->nbytes : 0;
    if (!blas->api->cublasSetWorkspace_v2) return LUMA_OK;
    if (blas->sparing > 0) blas->sparing--;
    if (have == whole || (have && blas->sparing > 0)) return LUMA_OK;
    lm_storage *st = blas->sparing > 0 ? NULL : take_if_free(c->device, whole);
    if (!st) {
        if (blas->sparing == 0) blas->sparing = SPARING;
        if (have) return LUMA_OK;
        LM_TRY(lm_storage_new(S, c->device, LEAST_WORKSPACE, &st));
    }
    luma_status status =
        fail(S, c, blas->api->cublasSetWorkspace_v2(blas->handle, st->data, st->nbytes),
             "cublasSetWorkspace");
    lm_storage_release(status == LUMA_OK ? blas->workspace : st);
    if (status == LUMA_OK) blas->workspace = st;
    return status;
}

/* The handle still names it: before the next product comes another one. */
void lm_blas_trim(lm_cuda *c, bool short_of) {
    lm_blas *blas = c->blas;
    if (!blas || !blas->workspace) return;
    lm_storage_release(blas->workspace);
    blas->workspace = NULL;
    if (short_of) blas->sparing = SPARING;
}

static void tear_down(lm_blas *blas, bool usable) {
    if (blas->handle && usable) blas->api->cublasDestroy_v2(blas->handle);
    lm_storage_release(blas->workspace);
    free(blas);
}

luma_status lm_blas_open(luma_state *S, lm_cuda *c, luma_dtype dtype, bool *ready) {
    *ready = dtype == LUMA_FLOAT16 || dtype == LUMA_BFLOAT16 || dtype == LUMA_FLOAT32 ||
             dtype == LUMA_FLOAT64;
    if (!*ready || c->blas) return LUMA_OK;
    const lm_cublas *api = lm_cublas_open(NULL);
    *ready = api != NULL;
    if (!api) return LUMA_OK;
    lm_blas *blas = calloc(1, sizeof *blas);
    if (!blas) return lm_fail(S, LUMA_ERR_MEMORY, 0, "%s: cuBLAS: no memory", c->device->name);
    blas->api = api;
    blas->mode = CUBLAS_DEFAULT_MATH;
    blas->most = MOST;
    luma_status status = set_up(S, c, blas);
    if (status == LUMA_OK) {
        c->blas = blas;
    } else {
        tear_down(blas, true);
    }
    return status;
}

void lm_blas_close(lm_cuda *c, bool usable) {
    if (c->blas) tear_down(c->blas, usable);
    c->blas = NULL;
}

void lm_blas_limit(lm_cuda *c, int64_t most) {
    c->blas->most = most;
}

luma_status lm_blas_multiply(luma_state *S, lm_cuda *c, const lm_product *p, bool *done) {
    lm_blas *blas = c->blas;
    calls w;
    LM_TRY(provide_workspace(S, c));
    plan_calls(&w, p, blas->most);
    cublasMath_t mode = plan_sums(&w, S->cuda_allow);
    if (mode != blas->mode) {
        LM_TRY(fail(S, c, blas->api->cublasSetMathMode(blas->handle, mode), "cublasSetMathMode"));
        blas->mode = mode;
    }
    cublasStatus_t status = call_batches(blas, &w);
    *done = status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_ARCH_MISMATCH;
    return *done ? fail(S, c, status, "cublasGemmStridedBatchedEx") : LUMA_OK;
}
