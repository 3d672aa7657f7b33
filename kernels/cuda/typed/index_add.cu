/* index_add.cu -- sums, products and extremes at places that index tensors decide, each in the order of
** its terms. */
#include "cuda/places.h"

#if LM_OF(LM_SUMS_, LM_D) > 1
/* Integers of 4 and 8 bytes: no order matters. */
#if LM_OF(LM_SUMS_, LM_D) == 8
typedef unsigned long long sum_word;
#else
typedef unsigned sum_word;
#endif
LM_TYPED(index_add) {
    LM_EACH(i, a.walk.n) {
        index_place p = index_find(&a, i);
        if (!p.valid) continue;
        LM_S v = *(const LM_S *)(const void *)((const char *)a.plain + p.plain);
        atomicAdd((sum_word *)(void *)((char *)a.indexed + p.indexed), (sum_word)v);
    }
}

#endif

#if LM_OF(LM_SUMS_, LM_D) > 0
#define LM_T LM_DT
#include "words.h"

LM_FN LM_C join(int how, LM_C a, LM_C b) {
    return how == LM_JOIN_ADD   ? ADD(a, b)
           : how == LM_JOIN_MUL ? MUL(a, b)
           : how == LM_JOIN_MAX ? MAX(a, b)
                                : MIN(a, b);
}

#define AHEAD 4  /* terms that are on their way at a time */
#define ALONE 16 /* terms that a thread adds before its warp helps */

LM_FN int64_t entry(const void *array, int wide, int64_t i) {
    return wide ? (int64_t)((const uint64_t *)array)[i] : (int64_t)((const uint32_t *)array)[i];
}
LM_FN int64_t place_of(const lm_args_index_add *a, int64_t j) {
    return entry(a->keys, a->wide_keys, j);
}
/* Whether sorted writer j is one of the place's, and what it brings, whose element at the rest is
** `plain` bytes from that at 0; else 0. */
LM_FN int term_of(const lm_args_index_add *a, int64_t j, int64_t place, int64_t plain, LM_C *v) {
    *v = 0;
    if (j >= a->index.walk.n || place_of(a, j) != place) return 0;
    int64_t at;
    LM_OFFSET(a->index.walk, entry(a->at, a->wide_at, j), a->index.plain_stride, at);
    *v = *(const LM_S *)(const void *)((const char *)a->index.plain + plain + at);
    return 1;
}

/* A thread for each writer and each position of the rest; those of the first writer of a place add
** up what all of them bring, in order. Where the lanes of a warp have different places, they then
** fetch the rest of a long list together. */
LM_TYPED(index_sum) {
    int64_t writers = a.index.walk.n, rest = a.rest.n, total = writers * rest;
    int64_t alone = a.inner && rest >= 8 ? writers : ALONE;
    int lane = (int)threadIdx.x % 32;
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32;
    for (int64_t e = warp + lane; e - lane < total; e += (int64_t)blockDim.x * gridDim.x) {
        int64_t outer = e / (a.inner ? rest : writers);
        int64_t inner = e - outer * (a.inner ? rest : writers);
        int64_t j = a.inner ? outer : inner, r = a.inner ? inner : outer;
        int64_t place = e < total ? place_of(&a, j) : (int64_t)a.nplaces, plain = 0;
        int more = place != (int64_t)a.nplaces && (j == 0 || place_of(&a, j - 1) != place),
            first = more;
        LM_S *y = 0;
        LM_C sum = 0;
        if (first) {
            int64_t indexed;
            LM_OFFSET(a.rest, r, a.rest_plain, plain);
            LM_OFFSET(a.rest, r, a.rest_indexed, indexed);
            index_place p = index_find(&a.index, entry(a.at, a.wide_at, j));
            y = (LM_S *)(void *)((char *)a.index.indexed + indexed + p.indexed);
            sum = *y;
        }
        for (int64_t end = j + alone; more && j < end; j += AHEAD) {
            LM_C v[AHEAD];
            int mine[AHEAD];
            LM_UNROLL
            for (int k = 0; k < AHEAD; k++)
                mine[k] = term_of(&a, j + k, place, plain, &v[k]);
            LM_UNROLL
            for (int k = 0; k < AHEAD; k++) {
                if (mine[k]) sum = join(a.join, sum, v[k]);
            }
            more = mine[AHEAD - 1];
        }
        for (unsigned left = __ballot_sync(LM_ALL_LANES, more); left != 0; left &= left - 1) {
            int one = __ffs((int)left) - 1;
            int64_t from = __shfl_sync(LM_ALL_LANES, j, one) + lane;
            int64_t its = __shfl_sync(LM_ALL_LANES, place, one);
            int64_t start = __shfl_sync(LM_ALL_LANES, plain, one);
            LM_C both = (LM_C)__shfl_sync(LM_ALL_LANES, sum, one);
            for (int count = 32; count == 32; from += 32) {
                LM_C v;
                int mine = term_of(&a, from, its, start, &v);
                count = __popc(__ballot_sync(LM_ALL_LANES, mine));
                for (int k = 0; k < count; k++)
                    both = join(a.join, both, (LM_C)__shfl_sync(LM_ALL_LANES, v, k));
            }
            if (lane == one) sum = both;
        }
        if (first) *y = sum;
    }
}
#endif
