/* quant.c -- quantised blocks on the CPU: who makes, reads or multiplies which of them.
** Layer: kernels/cpu. */
#include "quant.h"

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define WORTH 16384          /* elements, or products of a few, that a thread is woken for */
#define ROWS_BYTES (1 << 18) /* of rows of x that stay in L2 while rows of w pass */

typedef struct {
    luma_state *S;
    const lm_quant_format_kernels *kernels;
    const lm_quant *q;
    int64_t blocks; /* of a row */
    int64_t bytes;  /* of a row of w */
    int64_t first, m, n;
    int64_t step; /* bytes of a rounded row */
    char *rows;
    volatile bool stop;
} work;

static float *values_of(const luma_tensor *x) {
    return (float *)(void *)lm_data(x);
}

static uint8_t *blocks_of(const luma_tensor *x) {
    return (uint8_t *)lm_data(x);
}

static int64_t last_size(const luma_tensor *x) {
    return x->layout.shape[x->layout.ndim - 1];
}

static bool stopped(work *w) {
    if (!w->stop && lm_interrupted(w->S)) w->stop = true;
    return w->stop;
}

/* Blocks lo to hi - 1 of all. */
static void convert(void *ctx, int64_t lo, int64_t hi) {
    work *w = ctx;
    const lm_quant *q = w->q;
    const int64_t size = w->bytes / w->blocks;
    for (; lo < hi && !stopped(w); lo += WORTH) {
        const int64_t n = lm_min(WORTH, hi - lo);
        float *x = values_of(&q->values) + lo * LM_QUANT_BLOCK;
        uint8_t *b = blocks_of(&q->blocks) + lo * size;
        if (q->kind == LM_QUANT_MAKE)
            w->kernels->make(n, x, b);
        else
            w->kernels->read(n, b, x);
    }
}

static void round_rows(void *ctx, int64_t lo, int64_t hi) {
    work *w = ctx;
    for (; lo < hi; lo++)
        w->kernels->round(w->blocks,
                          values_of(&w->q->values) + (w->first + lo) * w->blocks * LM_QUANT_BLOCK,
                          w->rows + lo * w->step);
}

/* Rows lo to hi - 1 of w meet the rounded ones. */
static void multiply(void *ctx, int64_t lo, int64_t hi) {
    work *w = ctx;
    const int64_t few = lm_max(1, (WORTH << 4) / (w->m * w->blocks * LM_QUANT_BLOCK)) * 4;
    for (; lo < hi && !stopped(w); lo += few)
        w->kernels->dots(w->m, lm_min(few, hi - lo), w->blocks, w->rows, w->step,
                         blocks_of(&w->q->blocks) + lo * w->bytes,
                         values_of(&w->q->out) + w->first * w->n + lo, w->n);
}

/* Rows of x by as many at a time as are to stay close. */
static luma_status matmul(luma_state *S, work *w) {
    const int64_t rows = luma_numel(&w->q->values) / (w->blocks * LM_QUANT_BLOCK);
    w->n = w->q->blocks.layout.shape[0];
    w->step = w->kernels->row_bytes(w->blocks);
    const int64_t most = lm_clamp(ROWS_BYTES / w->step & ~(int64_t)3, 4, rows);
    lm_storage *scratch;
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)(most * w->step), &scratch));
    w->rows = scratch->data;
    for (w->first = 0; w->first < rows && !w->stop; w->first += w->m) {
        w->m = lm_min(most, rows - w->first);
        const int64_t values = w->blocks * LM_QUANT_BLOCK, each = w->m * values / 4;
        lm_parallel(S->threads, w->m, WORTH / values + 1, round_rows, w);
        lm_parallel(S->threads, w->n, (WORTH / each + 1) * 4, multiply, w);
    }
    lm_storage_release(scratch);
    return w->stop ? lm_fail_interrupted(S) : LUMA_OK;
}

luma_status lm_cpu_quant(luma_state *S, lm_device *d, const lm_quant *q) {
    (void)d;
    work w = {.S = S, .q = q, .kernels = &lm_level_now()->quant->format[q->format]};
    w.blocks = last_size(&q->values) / LM_QUANT_BLOCK;
    w.bytes = last_size(&q->blocks);
    if (q->kind == LM_QUANT_MATMUL) return matmul(S, &w);
    lm_parallel(S->threads, luma_numel(&q->values) / LM_QUANT_BLOCK, WORTH / LM_QUANT_BLOCK,
                convert, &w);
    return w.stop ? lm_fail_interrupted(S) : LUMA_OK;
}
