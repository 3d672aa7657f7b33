/* quant.c -- quantised blocks on CUDA. Rows of x are rounded into scratch memory, as many at a time
** as that may hold. Layer: kernels/cuda. */
#include "quant.h"

#include "cuda.h"
#include "tensor.h"

#define THREADS 256
#define DOTS_THREADS 128
#define WIDE 2 /* as in quant.cu */
#define HIGH 8
#define SCRATCH ((int64_t)64 << 20)

static int64_t last_size(const luma_tensor *x) {
    return x->layout.shape[x->layout.ndim - 1];
}

/* A warp for each of n blocks. */
static lm_shape warps(const lm_cuda *c, int64_t n) {
    return lm_cuda_shape(c, n * 32, 1, THREADS);
}

static luma_status convert(luma_state *S, lm_cuda *c, const lm_quant *q) {
    lm_args_quant a = {.n = luma_numel(&q->values) / LM_QUANT_BLOCK};
    a.x = a.y = (float *)(void *)lm_data(&q->values);
    a.blocks = (uint8_t *)lm_data(&q->blocks);
    const lm_shape shape = warps(c, a.n);
    if (q->kind == LM_QUANT_READ)
        return q->format == LUMA_Q8_0 ? LM_LAUNCH(S, c, quant_read_q8_0, shape, &a)
                                      : LM_LAUNCH(S, c, quant_read_q4_0, shape, &a);
    return q->format == LUMA_Q8_0 ? LM_LAUNCH(S, c, quant_make_q8_0, shape, &a)
                                  : LM_LAUNCH(S, c, quant_make_q4_0, shape, &a);
}

/* a->m rows of x from a->x on. */
static luma_status multiply(luma_state *S, lm_cuda *c, luma_quant_format format,
                            const lm_args_quant *a) {
    const int64_t wide = a->m == 1 ? 1 : WIDE, high = a->m == 1 ? 1 : HIGH;
    lm_args_quant round = *a;
    round.n = a->m * a->blocks_of_row;
    LM_TRY(LM_LAUNCH(S, c, quant_round, warps(c, round.n), &round));
    lm_shape shape = lm_cuda_shape(c, lm_ceil_div(a->n, wide) * 32, 1, DOTS_THREADS);
    shape.grid.y = (unsigned)lm_min(lm_ceil_div(a->m, high), 65535);
    if (format == LUMA_Q8_0)
        return a->m == 1 ? LM_LAUNCH(S, c, quant_row_q8_0, shape, a)
                         : LM_LAUNCH(S, c, quant_rows_q8_0, shape, a);
    return a->m == 1 ? LM_LAUNCH(S, c, quant_row_q4_0, shape, a)
                     : LM_LAUNCH(S, c, quant_rows_q4_0, shape, a);
}

static luma_status matmul(luma_state *S, lm_cuda *c, const lm_quant *q) {
    const int64_t k = last_size(&q->values), blocks = k / LM_QUANT_BLOCK;
    const int64_t rows = luma_numel(&q->values) / k;
    const int64_t row = k + blocks * (int64_t)(sizeof(float) + 2 * sizeof(int32_t));
    const int64_t most = lm_min(rows, lm_max(SCRATCH / row, HIGH) & ~(int64_t)(HIGH - 1));
    lm_args_quant a = {.n = q->blocks.layout.shape[0], .blocks_of_row = blocks};
    lm_storage *scratch;
    luma_status status = LUMA_OK;
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(most * row), &scratch));
    a.blocks = (uint8_t *)lm_data(&q->blocks);
    a.rounded = (int8_t *)scratch->data; /* a multiple of 32 bytes, so that the rest is aligned */
    a.scales = (float *)(void *)(a.rounded + most * k);
    a.eights = (int32_t *)(void *)(a.scales + most * blocks);
    for (int64_t first = 0; first < rows && status == LUMA_OK; first += a.m) {
        a.m = lm_min(most, rows - first);
        a.x = (const float *)(const void *)lm_data(&q->values) + first * k;
        a.y = (float *)(void *)lm_data(&q->out) + first * a.n;
        status = multiply(S, c, q->format, &a);
    }
    lm_storage_release(scratch);
    return status;
}

luma_status lm_cuda_quant(luma_state *S, lm_device *d, const lm_quant *q) {
    lm_cuda *c = lm_cuda_of(d);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = q->kind == LM_QUANT_MATMUL ? matmul(S, c, q) : convert(S, c, q);
    lm_cuda_leave(c);
    return status;
}
