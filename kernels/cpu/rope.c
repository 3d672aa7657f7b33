/* rope.c -- the rope slot: rows of pairs turned by their angles. Layer: kernels/cpu. */
#include "block.h"
#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define BLOCK 1024  /* pairs at a time */
#define GRAIN 16384 /* elements of the smallest task */

typedef struct {
    luma_state *S;
    const lm_rope *call;
    luma_dtype stored, dtype;
    int64_t size, dsize; /* bytes of either */
    bool direct;
    int64_t pairs, rows;
    bool stopped; /* by the interrupt flag; atomic */
} job;

/* Where the row begins in x, out and the tables, bytes. */
static void row_at(const job *j, int64_t row, int64_t at[3]) {
    const lm_rope *c = j->call;
    const luma_layout *x = &c->x.layout, *y = &c->out.layout, *t = &c->cos.layout;
    at[0] = at[1] = at[2] = 0;
    for (int d = x->ndim - 2; d >= 0; d--) {
        int64_t index = row % x->shape[d];
        row /= x->shape[d];
        at[0] += index * x->stride[d] * j->size;
        at[1] += index * y->stride[d] * j->size;
        at[2] += index * t->stride[d] * j->dsize;
    }
}

/* Pairs lo on of a row that is not as the kernels want it. */
static void turn_gathered(const job *j, lm_rotate_fn *rotate, const char *x, int64_t step, char *y,
                          const char *cos, const char *sin, int64_t lo, int64_t n) {
    _Alignas(64) char in[2 * BLOCK * 8], out[2 * BLOCK * 8];
    int64_t apart = n * j->dsize, far = j->pairs;
    if (j->call->interleaved) {
        lm_block_gather(j->stored, j->dtype, 1, 0, 2 * n, step, x + 2 * lo * step, in);
        rotate(n, in, in + j->dsize, out, out + j->dsize, cos, sin);
        lm_block_scatter(j->dtype, j->stored, 1, 0, 2 * n, j->size, out, y + 2 * lo * j->size);
    } else {
        lm_block_gather(j->stored, j->dtype, 2, far * step, n, step, x + lo * step, in);
        rotate(n, in, in + apart, out, out + apart, cos, sin);
        lm_block_scatter(j->dtype, j->stored, 2, far * j->size, n, j->size, out, y + lo * j->size);
    }
}

static void run_rows(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    const lm_rope *c = j->call;
    lm_rotate_fn *rotate = lm_level_now()->attention->rotate[c->interleaved][j->dtype];
    int64_t step = c->x.layout.stride[c->x.layout.ndim - 1] * j->size;
    for (int64_t row = lo; row < hi; row++) {
        int64_t at[3], apart = c->interleaved ? j->dsize : j->pairs * j->dsize;
        if (lm_interrupted(j->S)) __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
        if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED)) return;
        row_at(j, row, at);
        const char *x = lm_data(&c->x) + at[0];
        const char *cos = lm_data(&c->cos) + at[2], *sin = lm_data(&c->sin) + at[2];
        char *y = lm_data(&c->out) + at[1];
        if (j->direct) {
            rotate(j->pairs, x, x + apart, y, y + apart, cos, sin);
            continue;
        }
        for (int64_t i = 0; i < j->pairs; i += BLOCK)
            turn_gathered(j, rotate, x, step, y, cos + i * j->dsize, sin + i * j->dsize, i,
                          lm_min(BLOCK, j->pairs - i));
    }
}

luma_status lm_cpu_rope(luma_state *S, lm_device *d, const lm_rope *c) {
    luma_dtype dtype = lm_dtype_accumulator(c->x.dtype);
    int last = c->x.layout.ndim - 1;
    job j = {.S = S,
             .call = c,
             .stored = c->x.dtype,
             .dtype = dtype,
             .size = (int64_t)lm_dtype_size(c->x.dtype),
             .dsize = (int64_t)lm_dtype_size(dtype),
             .direct = c->x.dtype == dtype && c->x.layout.stride[last] == 1,
             .pairs = c->x.layout.shape[last] / 2,
             .rows = 1};
    (void)d;
    for (int k = 0; k < last; k++)
        j.rows *= c->x.layout.shape[k];
    lm_parallel(S->threads, j.rows, lm_ceil_div(GRAIN, 2 * j.pairs), run_rows, &j);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
