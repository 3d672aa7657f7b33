/* attention.cu -- attention of one float dtype: a block takes a tile of queries past the keys, tile
** by tile, with a running softmax. float32 and less are computed in float32, float64 in double. */
#include "cuda/kernel.h"
#include "cuda/real.h"

#if LM_OF(LM_STORED_, LM_D) == 3
#define LM_T LM_REAL
#include "words.h"

enum {
    TILE = LM_ATTENTION_TILE,
    SHARE = LM_ATTENTION_THREADS / TILE,                     /* threads of a query */
    KEYS = TILE / SHARE,                                     /* scores of a thread */
    WIDE = LM_ATTENTION_HEAD / (int)sizeof(lm_real) / SHARE, /* sums of a thread */
    LINE = TILE + 1
};
#define LEAST ((lm_real)-INFINITY)

/* n rows of a matrix from row `first` on, as rows of width + 1; rows of zeros beyond the last. */
LM_FN void bring(lm_real *to, const char *x, int64_t row, int64_t column, int64_t first,
                 int64_t rows, int32_t width, lm_real scale) {
    for (int32_t r = (int32_t)threadIdx.x / 32; r < TILE; r += LM_ATTENTION_THREADS / 32) {
        bool there = first + r < rows;
        const char *from = x + (first + r) * row;
        for (int32_t c = (int32_t)threadIdx.x % 32; c < width; c += 32) {
            lm_real v = 0;
            if (there) v = (lm_real)LM_LOAD(*(const LM_S *)(const void *)(from + c * column));
            to[r * (width + 1) + c] = v * scale;
        }
    }
}

/* The score of query i and key j as the mask and their order leave it. */
LM_FN lm_real seen(const lm_args_attention *a, const char *mask, int64_t i, int64_t j, lm_real v) {
    if (j >= a->keys || (a->causal && j > i)) return LEAST;
    if (a->masked == LM_MASK_NONE || i >= a->queries) return v;
    const char *at = mask + i * a->row[LM_ATTENTION_MASK] + j * a->column[LM_ATTENTION_MASK];
    if (a->masked == LM_MASK_BOOL) return *(const uint8_t *)at ? v : LEAST;
    return v + *(const lm_real *)(const void *)at;
}

/* Of all threads of a query. */
LM_FN lm_real greatest_of(lm_real v) {
    for (uint32_t d = 1; d < SHARE; d *= 2) {
        lm_real other = __shfl_xor_sync(LM_ALL_LANES, v, d);
        v = v > other ? v : other;
    }
    return v;
}
LM_FN lm_real sum_of(lm_real v) {
    for (uint32_t d = 1; d < SHARE; d *= 2)
        v += __shfl_xor_sync(LM_ALL_LANES, v, d);
    return v;
}

LM_FN const char *batch_of(const lm_args_attention *a, int64_t batch, int k) {
    int64_t offset;
    LM_OFFSET(a->batch, batch, a->batch_step[k], offset);
    return (const char *)a->data[k] + offset;
}

LM_TYPED(attention) {
    LM_DYNAMIC_SHARED(lm_real, shared);
    const int32_t e = a.e, ev = a.ev, widest = e > ev ? e : ev;
    lm_real *queries = shared, *block = queries + TILE * (e + 1), *p = block + TILE * (widest + 1);
    const int32_t r = (int32_t)threadIdx.x / SHARE, share = (int32_t)threadIdx.x % SHARE;
    for (int64_t job = blockIdx.x; job < a.batch.n * a.tiles; job += gridDim.x) {
        const int64_t batch = job / a.tiles, first = job % a.tiles * TILE, query = first + r;
        const char *k = batch_of(&a, batch, LM_ATTENTION_K),
                   *v = batch_of(&a, batch, LM_ATTENTION_V);
        const char *mask = a.masked ? batch_of(&a, batch, LM_ATTENTION_MASK) : k;
        lm_real sums[WIDE], greatest = LEAST;
        double all = 0;
        LM_UNROLL
        for (int32_t c = 0; c < WIDE; c++)
            sums[c] = 0;
        int64_t keys = a.keys;
        if (a.causal && first + TILE < keys) keys = first + TILE;
        __syncthreads();
        bring(queries, batch_of(&a, batch, LM_ATTENTION_Q), a.row[LM_ATTENTION_Q],
              a.column[LM_ATTENTION_Q], first, a.queries, e, (lm_real)a.scale);
        for (int64_t from = 0; from < keys; from += TILE) {
            lm_real score[KEYS], before = greatest, part = 0;
            __syncthreads();
            bring(block, k, a.row[LM_ATTENTION_K], a.column[LM_ATTENTION_K], from, a.keys, e, 1);
            __syncthreads();
            LM_UNROLL
            for (int32_t j = 0; j < KEYS; j++)
                score[j] = 0;
            for (int32_t c = 0; c < e; c++) {
                lm_real x = queries[r * (e + 1) + c];
                LM_UNROLL
                for (int32_t j = 0; j < KEYS; j++)
                    score[j] = FMA(x, block[(share + j * SHARE) * (e + 1) + c], score[j]);
            }
            LM_UNROLL
            for (int32_t j = 0; j < KEYS; j++) {
                score[j] = seen(&a, mask, query, from + share + j * SHARE, score[j]);
                greatest = greatest > score[j] ? greatest : score[j];
            }
            greatest = greatest_of(greatest);
            lm_real shift = greatest == LEAST ? 0 : greatest, factor = EXP(before - shift);
            LM_UNROLL
            for (int32_t j = 0; j < KEYS; j++) {
                score[j] = EXP(score[j] - shift);
                part += score[j];
                p[r * LINE + share + j * SHARE] = score[j];
            }
            all = all * (double)factor + (double)sum_of(part);
            __syncthreads();
            bring(block, v, a.row[LM_ATTENTION_V], a.column[LM_ATTENTION_V], from, a.keys, ev, 1);
            __syncthreads();
            LM_UNROLL
            for (int32_t c = 0; c < WIDE; c++)
                sums[c] *= factor;
            for (int32_t j = 0; j < TILE; j++) {
                lm_real x = p[r * LINE + j];
                LM_UNROLL
                for (int32_t c = 0; c < WIDE; c++)
                    if (share + c * SHARE < ev)
                        sums[c] = FMA(x, block[j * (ev + 1) + share + c * SHARE], sums[c]);
            }
        }
        if (query >= a.queries) continue;
        char *y = (char *)(uintptr_t)batch_of(&a, batch, LM_ATTENTION_OUT);
        y += query * a.row[LM_ATTENTION_OUT];
        lm_real last = (lm_real)(1.0 / all);
        LM_UNROLL
        for (int32_t c = 0; c < WIDE; c++)
            if (share + c * SHARE < ev)
                *(LM_S *)(void *)(y + (share + c * SHARE) * a.column[LM_ATTENTION_OUT]) =
                    LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(sums[c] * last);
    }
}
#endif
