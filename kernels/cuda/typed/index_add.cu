/* index_add.cu -- sums into places that index tensors decide, each in the order of its terms. */
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

#elif LM_OF(LM_SUMS_, LM_D) == 1
#define LM_T LM_DT
#include "words.h"

#define AT(array, wide, i)                                                                         \
    ((wide) ? (int64_t)((const uint64_t *)(array))[i] : (int64_t)((const uint32_t *)(array))[i])
#define PLACE(i) AT(a.keys, a.wide_keys, i)
#define WRITER(i) AT(a.at, a.wide_at, i)
#define AHEAD 4 /* terms that are on their way at a time */

/* A thread for each writer and each position of the rest; those of the first writer of a place add
** up what all of them bring. */
LM_TYPED(index_sum) {
    int64_t writers = a.index.walk.n, rest = a.rest.n;
    LM_EACH(e, writers * rest) {
        int64_t q = a.inner ? e / rest : e / writers;
        int64_t r = e - q * (a.inner ? rest : writers), j = a.inner ? q : r;
        if (a.inner) q = r;
        int64_t place = PLACE(j), plain, indexed;
        if ((j > 0 && PLACE(j - 1) == place) || (uint64_t)place == a.nplaces) continue;
        LM_OFFSET(a.rest, q, a.rest_plain, plain);
        LM_OFFSET(a.rest, q, a.rest_indexed, indexed);
        const char *x = (const char *)a.index.plain + plain;
        index_place first = index_find(&a.index, WRITER(j));
        LM_S *y = (LM_S *)(void *)((char *)a.index.indexed + indexed + first.indexed);
        LM_C sum = *y, v[AHEAD];
        for (int more = 1; more;) {
            LM_UNROLL
            for (int k = 0; k < AHEAD; k++) {
                int mine = j + k < writers && PLACE(j + k) == place;
                v[k] = 0;
                if (!mine) continue;
                LM_OFFSET(a.index.walk, WRITER(j + k), a.index.plain_stride, plain);
                v[k] = *(const LM_S *)(const void *)(x + plain);
            }
            LM_UNROLL
            for (int k = 0; k < AHEAD; k++) {
                more = j + k < writers && PLACE(j + k) == place;
                if (more) sum = ADD(sum, v[k]);
            }
            j += AHEAD;
        }
        *y = sum;
    }
}
#endif
