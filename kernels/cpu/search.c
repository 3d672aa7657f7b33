/* search.c -- places of values in sorted rows. Layer: kernels/cpu. */
#include <float.h>

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define GRAIN 1024   /* values of a task */
#define ABREAST 8    /* searches that wait for memory together; they take the same steps */
#define EVEN_LEAST 8 /* elements that are looked at whether they lie evenly, */
#define EVEN_TIMES 4 /* for so many times as many values */

typedef struct {
    const lm_search *s;
    luma_state *S;
    const char *sorted, *values;
    int64_t *out;
    int stopped; /* atomic */
} job;

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* m values in one row of n > 0; e OP v: element e comes before the place of v. Sums, not branches:
** those would be guessed wrong half of the time. NaN is the greatest, which OP says of elements; of
** values it is said afterwards. */
#define SEARCH(name, T, OP, right)                                                                 \
    static int64_t name##_numbers(int64_t n, const T *sorted) {                                    \
        while (n > 0 && sorted[n - 1] != sorted[n - 1])                                            \
            n--;                                                                                   \
        return n;                                                                                  \
    }                                                                                              \
    static void name(int64_t n, const T *sorted, int64_t m, const T *values, int64_t *out,         \
                     int64_t base) {                                                               \
        int64_t numbers = right ? n : -1;                                                          \
        for (int64_t i = 0; i < m; i += ABREAST) {                                                 \
            int64_t count = m - i < ABREAST ? m - i : ABREAST;                                     \
            const T *at[ABREAST];                                                                  \
            T v[ABREAST];                                                                          \
            UNROLL for (int64_t k = 0; k < ABREAST; k++) {                                         \
                v[k] = values[i + (k < count ? k : 0)];                                            \
                at[k] = sorted;                                                                    \
            }                                                                                      \
            for (int64_t left = n; left > 1; left -= left / 2) {                                   \
                int64_t half = left / 2;                                                           \
                UNROLL for (int64_t k = 0; k < ABREAST; k++) at[k] +=                              \
                    half & -(int64_t)(at[k][half - 1] OP v[k]);                                    \
            }                                                                                      \
            for (int64_t k = 0; k < count; k++) {                                                  \
                int64_t place = at[k] - sorted + (*at[k] OP v[k]);                                 \
                if (v[k] != v[k]) {                                                                \
                    if (numbers < 0) numbers = name##_numbers(n, sorted);                          \
                    place = numbers;                                                               \
                }                                                                                  \
                out[i + k] = place + base;                                                         \
            }                                                                                      \
        }                                                                                          \
    }
/* The same where elements lie evenly: the place is guessed, and found beside the guess; NaN comes last. */
#define SEARCH_EVEN(name, T, OP)                                                                   \
    static void name##_even(int64_t n, const T *sorted, double per_step, int64_t m,                \
                            const T *values, int64_t *out, int64_t base) {                         \
        const double first = (double)sorted[0];                                                    \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const T v = values[i];                                                                 \
            double guess = ((double)v - first) * per_step + 1;                                     \
            int64_t place = guess < (double)n ? guess > 0 ? (int64_t)guess : 0 : n;                \
            while (v == v && place > 0 && !(sorted[place - 1] OP v))                               \
                place--;                                                                           \
            while (place < n && sorted[place] OP v)                                                \
                place++;                                                                           \
            out[i] = place + base;                                                                 \
        }                                                                                          \
    }
/* Elements to a step of one, where none is further than that from its place among even ones; else 0. */
#define EVEN(token, T)                                                                             \
    static double even_##token(int64_t n, const T *sorted) {                                       \
        double first = (double)sorted[0], range = (double)sorted[n - 1] - first;                   \
        double per_step = (double)(n - 1) / range;                                                 \
        if (!(range > 0 && range <= DBL_MAX && per_step <= DBL_MAX)) return 0;                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double off = ((double)sorted[i] - first) * per_step - (double)i;                       \
            bool falls = i > 0 && sorted[i] < sorted[i - 1]; /* no order that anyone promises */   \
            if (falls || !(off >= -1 && off <= 1)) return 0;                                       \
        }                                                                                          \
        return per_step;                                                                           \
    }
#define BOTH(_, token, ENUM, name, T, ...)                                                         \
    SEARCH(search_left_##token, T, <, false)                                                       \
    SEARCH(search_right_##token, T, <=, true)                                                      \
    SEARCH_EVEN(search_left_##token, T, <) SEARCH_EVEN(search_right_##token, T, <=) EVEN(token, T)
LM_COMPUTE(BOTH, _)

static void search(const job *j, int64_t n, const char *sorted, int64_t m, const char *values,
                   int64_t *out) {
    const lm_search *s = j->s;
    switch (s->values.dtype) {
#define CASE(_, token, ENUM, name, T, ...)                                                         \
    case LUMA_##ENUM: {                                                                            \
        const T *in = (const T *)(const void *)sorted, *of = (const T *)(const void *)values;      \
        double even = n >= EVEN_LEAST && m / EVEN_TIMES >= n ? even_##token(n, in) : 0;            \
        if (even > 0)                                                                              \
            (s->right ? search_right_##token##_even                                                \
                      : search_left_##token##_even)(n, in, even, m, of, out, s->index_base);       \
        else                                                                                       \
            (s->right ? search_right_##token : search_left_##token)(n, in, m, of, out,             \
                                                                    s->index_base);                \
        break;                                                                                     \
    }
        LM_COMPUTE(CASE, _)
#undef CASE
    default:
        break;
    }
}

static void run(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    const lm_search *s = j->s;
    int64_t size = (int64_t)lm_dtype_size(s->values.dtype);
    while (lo < hi) {
        int64_t row = lo / s->m, end = lm_min(lm_min(hi, (row + 1) * s->m), lo + 16 * GRAIN);
        if (lm_interrupted(j->S)) __atomic_store_n(&j->stopped, 1, __ATOMIC_RELAXED);
        if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED)) return;
        search(j, s->n, j->sorted + row * s->n * size, end - lo, j->values + lo * size,
               j->out + lo);
        lo = end;
    }
}

luma_status lm_cpu_search(luma_state *S, lm_device *d, const lm_search *s) {
    (void)d;
    job j = {.s = s,
             .S = S,
             .sorted = lm_data(&s->sorted),
             .values = lm_data(&s->values),
             .out = (int64_t *)(void *)lm_data(&s->out)};
    lm_parallel(S->threads, s->rows * s->m, GRAIN, run, &j);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
