/* blas.c -- the matrix product of cuBLAS: column-major, with the checks of its guide and of every
** extent against its allocation. The numbers are those of a plain loop in the compute type; the
** order of sums is not NVIDIA's. Layer: kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "scalar.h"

enum { MAGIC = 0x626c };
struct cublasContext {
    int magic;
    CUcontext context;
    CUstream stream;
    cublasMath_t mode;
    uint64_t workspace; /* 0: the library's own */
    size_t workspace_bytes;
};

/* documented: less than this may not be enough */
#define LEAST_WORKSPACE (16u << 10)
/* Of its first bytes, which every product overwrites. */
#define USED_WORKSPACE (64u << 10)

/* A failed call of one of these functions. */
#define ENTER_BLAS                                                                                 \
    LM_EMU_LOCKED;                                                                                 \
    do {                                                                                           \
        if (!lm_emu_works()) return CUBLAS_STATUS_NOT_INITIALIZED;                                 \
        if (lm_emu_injected(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED;                      \
    } while (0)

/* documented: NOT_INITIALIZED without a handle. ours: the context of the handle is current */
static cublasStatus_t check_handle(cublasHandle_t h) {
    if (!h || h->magic != MAGIC) return CUBLAS_STATUS_NOT_INITIALIZED;
    lm_emu_active = h->context->device;
    if (h->context == lm_emu_current()) return CUBLAS_STATUS_SUCCESS;
    lm_emu_report(0, "blas-context", "the context of the cuBLAS handle is not current");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    ENTER_BLAS;
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    if (!lm_emu_current()) return CUBLAS_STATUS_NOT_INITIALIZED;
    cublasHandle_t h = calloc(1, sizeof *h);
    if (!h) return CUBLAS_STATUS_ALLOC_FAILED;
    h->magic = MAGIC;
    h->context = lm_emu_current();
    *handle = h;
    lm_emu_count.others++;
    return CUBLAS_STATUS_SUCCESS;
}

/* documented: waits for the device */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    ENTER_BLAS;
    cublasStatus_t status = check_handle(handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    lm_emu_drain_device(handle->context->device);
    handle->magic = 0;
    free(handle);
    lm_emu_count.others--;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    ENTER_BLAS;
    cublasStatus_t status = check_handle(handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!lm_emu_stream_of(stream, handle->context)) return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->workspace = 0; /* documented: as it was created */
    return CUBLAS_STATUS_SUCCESS;
}

/* documented: device memory, aligned to 256 bytes */
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t nbytes) {
    ENTER_BLAS;
    cublasStatus_t status = check_handle(handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    uint64_t p = (uint64_t)(uintptr_t)workspace;
    if (p % 256 || !lm_emu_range(handle->context->device, p, nbytes, "cublasSetWorkspace"))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = p;
    handle->workspace_bytes = nbytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    ENTER_BLAS;
    cublasStatus_t status = check_handle(handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (base < 0 || base > CUBLAS_TF32_TENSOR_OP_MATH) return CUBLAS_STATUS_INVALID_VALUE;
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- a product that waits in its stream ---- */

typedef struct {
    const char *name;
    uint64_t p;
    cudaDataType type;
    bool transposed;
    int rows, columns; /* as it lies in memory, column by column */
    int ld;
    long long stride; /* elements from one batch to the next */
} operand;

typedef enum { SUM_F16, SUM_F32, SUM_TF32, SUM_F64 } sum_kind;
typedef struct {
    operand a, b, c;
    int m, n, k, batch;
    sum_kind sum;
    double alpha, beta;
    uint64_t workspace;
    size_t workspace_bytes;
} product;

static int element_size(cudaDataType type) {
    switch (type) {
    case CUDA_R_64F:
        return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
        return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_8I:
        return 1;
    default:
        return 0;
    }
}

static double load(cudaDataType type, const void *p, long long i) {
    switch (type) {
    case CUDA_R_64F:
        return ((const double *)p)[i];
    case CUDA_R_32F:
        return (double)((const float *)p)[i];
    case CUDA_R_32I:
        return ((const int32_t *)p)[i];
    case CUDA_R_16F:
        return (double)lm_load_f16(((const lm_f16 *)p)[i]);
    case CUDA_R_16BF:
        return (double)lm_load_bf16(((const lm_bf16 *)p)[i]);
    default:
        return ((const int8_t *)p)[i];
    }
}

static void store(cudaDataType type, void *p, long long i, double v) {
    switch (type) {
    case CUDA_R_64F:
        ((double *)p)[i] = v;
        break;
    case CUDA_R_32F:
        ((float *)p)[i] = (float)v;
        break;
    case CUDA_R_32I:
        ((int32_t *)p)[i] = (int32_t)(int64_t)v;
        break;
    case CUDA_R_16F:
        ((lm_f16 *)p)[i] = lm_store_f16((float)v);
        break;
    default:
        ((lm_bf16 *)p)[i] = lm_store_bf16((float)v);
        break;
    }
}

/* Everything that the product reads or writes of the operand is in one allocation. */
static bool check_extent(const operand *x, int batch) {
    char what[160];
    snprintf(what, sizeof what, "%s of the product: %d x %d, ld %d, stride %lld, batch %d", x->name,
             x->rows, x->columns, x->ld, x->stride, batch);
    __extension__ typedef __int128 wide;
    wide last = (wide)x->ld * (x->columns - 1) + x->rows, span = (wide)x->stride * (batch - 1);
    wide low = span < 0 ? span : 0, high = span > 0 ? last + span : last;
    wide nbytes = (high - low) * element_size(x->type);
    uint64_t from = x->p + (uint64_t)(low * element_size(x->type));
    if (nbytes < PTRDIFF_MAX && lm_emu_range(lm_emu_active, from, (size_t)nbytes, what))
        return true;
    lm_emu_fault(CUDA_ERROR_ILLEGAL_ADDRESS);
    return false;
}

static uint64_t column_at(const operand *x, int batch, int column) {
    long long first = x->stride * batch + (long long)x->ld * column;
    return x->p + (uint64_t)(first * element_size(x->type));
}

static void check_columns(const operand *x, int batch, bool read) {
    size_t nbytes = (size_t)x->rows * (size_t)element_size(x->type);
    for (int q = 0; q < batch; q++)
        for (int j = 0; j < x->columns; j++)
            if (read ? !lm_emu_check_written(column_at(x, q, j), nbytes, x->name)
                     : !lm_emu_check_usable(column_at(x, q, j), nbytes, x->name))
                return;
}

/* documented: TF32 keeps 10 bits of the fraction; measured: rounded half away from zero */
static float round_tf32(float x) {
    uint32_t u = lm_bits_f32(x);
    return (u & 0x7f800000u) == 0x7f800000u ? x : lm_float_f32((u + 0x1000u) & 0xffffe000u);
}

/* count vectors of k numbers: rows of op(a) or columns of op(b). `across`: the vectors lie across
** the columns in memory. */
static void pack(double *to, const operand *x, int batch, int count, int k, bool across,
                 sum_kind sum) {
    for (int i = 0; i < count; i++) {
        for (int l = 0; l < k; l++) {
            const void *column = lm_emu_alias(column_at(x, batch, across ? l : i));
            double v = load(x->type, column, across ? i : l);
            *to++ = sum == SUM_TF32 ? (double)round_tf32((float)v) : v;
        }
    }
}

static double dot(const double *a, const double *b, int k, sum_kind sum) {
    double wide = 0;
    float narrow = 0;
    switch (sum) {
    case SUM_F64:
        for (int l = 0; l < k; l++)
            wide += a[l] * b[l];
        return wide;
    case SUM_F16:
        for (int l = 0; l < k; l++)
            narrow = lm_load_f16(lm_store_f16(narrow + (float)a[l] * (float)b[l]));
        return (double)narrow;
    default:
        for (int l = 0; l < k; l++)
            narrow += (float)a[l] * (float)b[l];
        return (double)narrow;
    }
}

/* documented: where beta is 0, c is not read */
static void multiply(const product *g, int batch, const double *a, const double *b) {
    for (int j = 0; j < g->n; j++) {
        uint64_t at = column_at(&g->c, batch, j);
        void *column = lm_emu_alias(at);
        for (int i = 0; i < g->m; i++) {
            double v = g->alpha * dot(a + (size_t)i * (size_t)g->k, b + (size_t)j * (size_t)g->k,
                                      g->k, g->sum);
            if (g->beta != 0) v += g->beta * load(g->c.type, column, i);
            store(g->c.type, column, i, v);
        }
        lm_emu_mark_written(at, (size_t)g->m * (size_t)element_size(g->c.type));
    }
}

/* It must still be there, and nobody else's. */
static bool use_workspace(const product *g) {
    static const char what[] = "workspace of the product";
    size_t used = g->workspace_bytes < USED_WORKSPACE ? g->workspace_bytes : USED_WORKSPACE;
    if (!g->workspace) return true;
    if (!lm_emu_range(lm_emu_active, g->workspace, g->workspace_bytes, what)) {
        lm_emu_fault(CUDA_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    lm_emu_check_usable(g->workspace, used, what);
    memset(lm_emu_alias(g->workspace), 0xA5, used);
    lm_emu_mark_written(g->workspace, used);
    return true;
}

static void run_product(void *blob) {
    const product *g = blob;
    if (!use_workspace(g)) return;
    if (g->k > 0 && (!check_extent(&g->a, g->batch) || !check_extent(&g->b, g->batch))) return;
    if (!check_extent(&g->c, g->batch)) return;
    if (g->k > 0) {
        check_columns(&g->a, g->batch, true);
        check_columns(&g->b, g->batch, true);
    }
    check_columns(&g->c, g->batch, g->beta != 0);
    size_t k = (size_t)g->k, count = ((size_t)g->m + (size_t)g->n) * (k > 0 ? k : 1);
    double *a = malloc(count * sizeof *a), *b = a + (size_t)g->m * k;
    if (!a) {
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "memory", "no memory of the host for a product");
        return;
    }
    for (int q = 0; q < g->batch; q++) {
        pack(a, &g->a, q, g->m, g->k, !g->a.transposed, g->sum);
        pack(b, &g->b, q, g->n, g->k, g->b.transposed, g->sum);
        multiply(g, q, a, b);
    }
    free(a);
}

/* ---- the call ---- */

/* documented: the table of compute types and of the types of A and B, and C */
static bool supported(cublasComputeType_t compute, cudaDataType ab, cudaDataType c) {
    switch (compute) {
    case CUBLAS_COMPUTE_16F:
        return ab == CUDA_R_16F && c == CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
        return ab == CUDA_R_8I && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
        return (c == CUDA_R_32F &&
                (ab == CUDA_R_32F || ab == CUDA_R_16F || ab == CUDA_R_16BF || ab == CUDA_R_8I)) ||
               (c == ab && (ab == CUDA_R_16F || ab == CUDA_R_16BF));
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return ab == CUDA_R_32F && c == CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
        return ab == CUDA_R_64F && c == CUDA_R_64F;
    default:
        return false;
    }
}

/* documented: alpha and beta have the scale type of the compute type; in the default mode they are
** read at the call */
static double read_scale(cublasComputeType_t compute, const void *p) {
    switch (compute) {
    case CUBLAS_COMPUTE_16F:
        return load(CUDA_R_16F, p, 0);
    case CUBLAS_COMPUTE_32I:
        return load(CUDA_R_32I, p, 0);
    case CUBLAS_COMPUTE_64F:
        return load(CUDA_R_64F, p, 0);
    default:
        return load(CUDA_R_32F, p, 0);
    }
}

static sum_kind sum_of(cublasComputeType_t compute, cudaDataType ab, cublasMath_t mode) {
    bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                (compute == CUBLAS_COMPUTE_32F && (mode & 15) == CUBLAS_TF32_TENSOR_OP_MATH);
    if (compute == CUBLAS_COMPUTE_16F) return SUM_F16;
    if (compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_32I) return SUM_F64;
    return tf32 && ab == CUDA_R_32F ? SUM_TF32 : SUM_F32;
}

/* documented: ld is at least the rows that lie in memory, and at least 1 */
static bool possible_ld(const operand *x) {
    return x->ld >= (x->rows > 1 ? x->rows : 1);
}

static bool aligned(const operand *x) {
    return x->p % (unsigned)element_size(x->type) == 0;
}

/* documented: the results of batches that overlap are undefined. Columns may lie between each
** other's. */
static void check_batches(const operand *c, int batch) {
    long long span = (long long)c->ld * (c->columns - 1) + c->rows;
    long long stride = c->stride < 0 ? -c->stride : c->stride;
    bool between = stride >= c->rows && stride <= (c->ld - c->rows) / (batch > 1 ? batch - 1 : 1);
    if (batch > 1 && stride < span && !between)
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "overlap", "batches of C overlap: stride %lld",
                      c->stride);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType Atype, int lda, long long strideA, const void *B,
    cudaDataType Btype, int ldb, long long strideB, const void *beta, void *C, cudaDataType Ctype,
    int ldc, long long strideC, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    ENTER_BLAS;
    cublasStatus_t status = check_handle(handle);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (m < 0 || n < 0 || k < 0 || batch < 0 || !alpha || !beta || algo != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((transa != CUBLAS_OP_N && transa != CUBLAS_OP_T) ||
        (transb != CUBLAS_OP_N && transb != CUBLAS_OP_T))
        return CUBLAS_STATUS_INVALID_VALUE;
    bool ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T;
    product g = {
        .a = {"A", (uint64_t)(uintptr_t)A, Atype, ta, ta ? k : m, ta ? m : k, lda, strideA},
        .b = {"B", (uint64_t)(uintptr_t)B, Btype, tb, tb ? n : k, tb ? k : n, ldb, strideB},
        .c = {"C", (uint64_t)(uintptr_t)C, Ctype, false, m, n, ldc, strideC},
        .m = m,
        .n = n,
        .k = k,
        .batch = batch,
    };
    if (!possible_ld(&g.a) || !possible_ld(&g.b) || !possible_ld(&g.c))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (Atype != Btype || !supported(compute, Atype, Ctype)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
    if (!aligned(&g.a) || !aligned(&g.b) || !aligned(&g.c)) return CUBLAS_STATUS_INVALID_VALUE;
    /* documented for 8-bit integers */
    if (compute == CUBLAS_COMPUTE_32I && (lda % 4 || ldb % 4 || g.a.p % 4 || g.b.p % 4))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    check_batches(&g.c, batch);
    g.alpha = read_scale(compute, alpha);
    g.beta = read_scale(compute, beta);
    g.sum = sum_of(compute, Atype, handle->mode);
    g.workspace = handle->workspace;
    g.workspace_bytes = handle->workspace_bytes;
    if (g.workspace && g.workspace_bytes < LEAST_WORKSPACE) return CUBLAS_STATUS_ALLOC_FAILED;
    if (lm_emu_cfg.stub) return CUBLAS_STATUS_SUCCESS;
    product *blob = malloc(sizeof *blob);
    if (!blob) return CUBLAS_STATUS_ALLOC_FAILED;
    *blob = g;
    return lm_emu_enqueue_call(handle->stream, run_product, blob) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                                  : CUBLAS_STATUS_SUCCESS;
}
