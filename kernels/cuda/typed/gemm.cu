/* gemm.cu -- matrix products of one dtype in any layout: negative strides, stride 0 and
** overlapping rows too. Blocks of TILE x TILE sums pass k in steps through shared memory; a thread
** holds EACH x EACH sums, in float32, double or unsigned words that wrap. */
#include "cuda/sums.h"

#define KIND LM_OF(LM_STORED_, LM_D)
#if KIND

#define ZERO RESULT(0)
enum { TILE = 64, STEP = 16, EACH = 4, WIDTH = TILE + 4 };

/* One operand as lines of k values: rows of a or columns of b. What a thread brings of a tile are
** EACH values: value j is q + j * next_q of line + j * next_line. */
typedef struct {
    const LM_S *at;
    int64_t jump, advance; /* elements from value to value, from step to step */
    int32_t line, q, next_line, next_q, lines;
} feed;

/* Neighbouring threads read neighbours in memory: along the lines where those are close. */
LM_FN feed feed_of(const void *data, int64_t first, int64_t lines, int64_t from, int64_t line,
                   int64_t step, int32_t along) {
    feed f;
    int32_t t = (int32_t)threadIdx.x;
    f.next_line = along ? TILE / EACH : 0;
    f.next_q = along ? 0 : STEP / EACH;
    f.line = along ? t / STEP : t % TILE;
    f.q = along ? t % STEP : t / TILE;
    f.lines = (int32_t)(lines - first < TILE ? lines - first : (int64_t)TILE);
    f.at = (const LM_S *)data + (first + f.line) * line + (from + f.q) * step;
    f.jump = f.next_line * line + f.next_q * step;
    f.advance = STEP * step;
    return f;
}

/* left: how many values of k there are from this step on. */
LM_FN void bring(feed *f, int32_t left, LM_S *v) {
    for (int32_t j = 0; j < EACH; j++) {
        int there = f->line + j * f->next_line < f->lines && f->q + j * f->next_q < left;
        v[j] = there ? f->at[j * f->jump] : ZERO;
    }
    f->at += f->advance;
}

LM_FN void put(const feed *f, const LM_S *v, SUM (*tile)[WIDTH]) {
    for (int32_t j = 0; j < EACH; j++)
        tile[f->q + j * f->next_q][f->line + j * f->next_line] = (SUM)LM_LOAD(v[j]);
}

LM_FN void add_products(SUM (*sum)[EACH], SUM (*x)[WIDTH], SUM (*y)[WIDTH]) {
    int32_t row = (int32_t)threadIdx.x / 16 * EACH, column = (int32_t)threadIdx.x % 16 * EACH;
    for (int32_t q = 0; q < STEP; q++) {
        SUM u[EACH], v[EACH];
        for (int32_t i = 0; i < EACH; i++) {
            u[i] = x[q][row + i];
            v[i] = y[q][column + i];
        }
        for (int32_t i = 0; i < EACH; i++) {
            for (int32_t j = 0; j < EACH; j++)
                sum[i][j] = ADD_PRODUCT(u[i], v[j], sum[i][j]);
        }
    }
}

/* What one block does at a time: one tile of one product, over one piece of k. */
typedef struct {
    int64_t row, column, piece, batch;
} job;

LM_FN job job_of(int64_t number, int64_t tiles_m, int64_t tiles_n, int64_t pieces) {
    job w;
    int64_t rest = number / tiles_n;
    w.column = (number - rest * tiles_n) * TILE;
    number = rest / tiles_m;
    w.row = (rest - number * tiles_m) * TILE;
    w.batch = number / pieces;
    w.piece = number - w.batch * pieces;
    return w;
}

LM_TYPED(gemm) {
    __shared__ __align__(16) SUM x[2][STEP][WIDTH];
    __shared__ __align__(16) SUM y[2][STEP][WIDTH];
    int32_t row = (int32_t)threadIdx.x / 16 * EACH, column = (int32_t)threadIdx.x % 16 * EACH;
    for (int64_t number = blockIdx.x; number < a.jobs; number += gridDim.x) {
        job w = job_of(number, a.tiles_m, a.tiles_n, a.pieces);
        int64_t from = w.piece * a.piece, at_a, at_b, at_c;
        int32_t left = (int32_t)(a.k - from < a.piece ? a.k - from : a.piece);
        LM_OFFSET(a.batch, w.batch, a.a_batch, at_a);
        LM_OFFSET(a.batch, w.batch, a.b_batch, at_b);
        LM_OFFSET(a.batch, w.batch, a.c_batch, at_c);
        feed fa = feed_of((const char *)a.a + at_a, w.row, a.m, from, a.a_row, a.a_column,
                          a.a_along);
        feed fb = feed_of((const char *)a.b + at_b, w.column, a.n, from, a.b_column, a.b_row,
                          a.b_along);
        SUM sum[EACH][EACH];
        for (int32_t i = 0; i < EACH; i++) {
            for (int32_t j = 0; j < EACH; j++)
                sum[i][j] = 0;
        }
        LM_S va[EACH], vb[EACH];
        bring(&fa, left, va);
        bring(&fb, left, vb);
        put(&fa, va, x[0]);
        put(&fb, vb, y[0]);
        __syncthreads();
        for (int32_t now = 0; left > 0; now = 1 - now) {
            left -= STEP;
            if (left > 0) {
                bring(&fa, left, va);
                bring(&fb, left, vb);
            }
            if (row < fa.lines) add_products(sum, x[now], y[now]);
            if (left > 0) {
                put(&fa, va, x[1 - now]);
                put(&fb, vb, y[1 - now]);
            }
            __syncthreads();
        }
        for (int32_t i = 0; i < EACH; i++) {
            for (int32_t j = 0; j < EACH; j++) {
                if (row + i >= fa.lines || column + j >= fb.lines) continue;
                int64_t r = w.row + row + i, c = w.column + column + j;
                if (a.sums) {
                    SUM *to = (SUM *)a.sums + (w.piece * a.batch.n + w.batch) * a.m * a.n;
                    to[r * a.n + c] = sum[i][j];
                } else {
                    LM_S *to = (LM_S *)((char *)a.c + at_c);
                    to[r * a.c_row + c * a.c_column] = RESULT(sum[i][j]);
                }
            }
        }
    }
}

/* The pieces of each sum, in their order. */
LM_TYPED(gemm_sum) {
    const SUM *sums = (const SUM *)a.sums;
    LM_EACH(i, a.walk.n) {
        SUM sum = sums[i];
        for (int64_t piece = 1; piece < a.pieces; piece++)
            sum += sums[piece * a.walk.n + i];
        int64_t at;
        LM_OFFSET(a.walk, i, a.c_stride, at);
        *(LM_S *)((char *)a.c + at) = RESULT(sum);
    }
}

#endif
