/* random.cu -- random numbers of one dtype, those of the CPU bit for bit. A thread makes a block of
** four words and the elements whose first word is in it; their last words may be in the next. */
#include "cuda/kernel.h"
#define LM_T LM_DT
#include "random.h"
#include "words.h"

#define TWO_PI 6.283185307179586476925286766559
#define IS_WIDE_f32 0
#define IS_WIDE_f64 1
#define IS_FLOAT (LM_OF(LM_STORED_, LM_D) == 3)

/* The words from the first one of an element on. */
LM_FN void make_words(const lm_args_random *a, int64_t i, uint32_t *words) {
    uint64_t block = a->offset / 4 + (uint64_t)i;
    if (a->given) {
        LM_UNROLL
        for (int k = 0; k < 4; k++)
            words[k] = a->given[4 * i + k];
        LM_UNROLL
        for (int k = 4; a->skip && k < 8; k++)
            words[k] = a->given[4 * i + k];
    } else {
        lm_random_block(a->seed, block, 0, words);
        if (a->skip) lm_random_block(a->seed, block + 1, 0, words + 4);
    }
    if (a->skip == 0) return;
    LM_NO_UNROLL
    for (int k = 0; k < a->skip; k++) {
        LM_UNROLL
        for (int j = 0; j < 7; j++)
            words[j] = words[j + 1];
    }
}

#if IS_FLOAT
#if LM_OF(IS_WIDE_, LM_DT)
#define UNIFORM_WORDS 2
#define NORMAL_WORDS 4
LM_FN LM_S uniform(const lm_args_random *a, int64_t i, const uint32_t *w) {
    (void)a;
    (void)i;
    return lm_uniform_f64(w[0], w[1]);
}
LM_FN LM_S normal(const lm_args_random *a, int64_t i, const uint32_t *w) {
    (void)a;
    (void)i;
    double radius = lm_sqrt_f64(-2.0 * lm_log_f64(lm_positive_f64(w[0], w[1])));
    return radius * lm_cos_fast_f64(TWO_PI * lm_uniform_f64(w[2], w[3]));
}
#else
#define UNIFORM_WORDS 1
#define NORMAL_WORDS 2
LM_FN LM_S uniform(const lm_args_random *a, int64_t i, const uint32_t *w) {
    (void)i;
    return LM_STORE(lm_uniform_bits(w[0], a->bits));
}
LM_FN LM_S normal(const lm_args_random *a, int64_t i, const uint32_t *w) {
    (void)a;
    (void)i;
    float radius = lm_sqrt_f32(-2.0f * lm_log_f32(lm_positive_f32(w[0])));
    return LM_STORE(radius * lm_cos_fast_f32((float)TWO_PI * lm_uniform_bits(w[1], 24)));
}
#endif
#endif

#define INTEGER_WORDS 2
LM_FN LM_S integer(const lm_args_random *a, int64_t i, const uint32_t *w) {
    uint64_t low = (uint64_t)w[1] << 32 | w[0];
    uint64_t range = a->range + (a->wider ? (uint64_t)i : 0);
    uint64_t v = lm_uniform_below(a->seed, a->offset + 2 * (uint64_t)i, low, range);
    return LM_WITH_D_(LM_OF(lm_to_, LM_D), i64)((int64_t)((uint64_t)a->lo + v));
}

/* `each` elements of a block; element i * each - lead is the first. */
#define RANDOM(name, each)                                                                         \
    typedef struct __align__((each) * sizeof(LM_S)) {                                              \
        LM_S e[each];                                                                              \
    }                                                                                              \
    name##_group;                                                                                  \
    LM_TYPED(name) {                                                                               \
        LM_NO_UNROLL                                                                               \
        LM_EACH(i, a.blocks) {                                                                     \
            uint32_t words[8];                                                                     \
            name##_group g;                                                                        \
            int64_t first = i * (each)-a.lead;                                                     \
            make_words(&a, i, words);                                                              \
            LM_UNROLL                                                                              \
            for (int k = 0; k < (each); k++)                                                       \
                g.e[k] = name(&a, first + k, words + 4 / (each)*k);                                \
            if (a.whole && first + (each) <= a.n) {                                                \
                *(name##_group *)((LM_S *)a.y + first) = g;                                        \
            } else {                                                                               \
                for (int k = 0; k < (each); k++)                                                   \
                    if (first + k >= 0 && first + k < a.n) ((LM_S *)a.y)[first + k] = g.e[k];      \
            }                                                                                      \
        }                                                                                          \
    }
#if IS_FLOAT
RANDOM(uniform, 4 / UNIFORM_WORDS)
RANDOM(normal, 4 / NORMAL_WORDS)
#endif
RANDOM(integer, 4 / INTEGER_WORDS)
