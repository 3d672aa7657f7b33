/* math_words.c -- compiled once per level (LM_LEVEL), as the kernels are. */
#include "math_words.h"
#define LM_T f32
#include "words.h"
#undef LM_T
#define LM_T f64
#include "words.h"

#define UNARY_LOOPS(name, ...)                                                                     \
    static void name##_f32(int64_t n, const float *x, const float *y, float *restrict out) {       \
        (void)y;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = lm_##name##_f32(x[i]);                                                        \
    }                                                                                              \
    static void name##_f64(int64_t n, const double *x, const double *y, double *restrict out) {    \
        (void)y;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = lm_##name##_f64(x[i]);                                                        \
    }
#define BINARY_LOOPS(name, ...)                                                                    \
    static void name##_f32(int64_t n, const float *x, const float *y, float *restrict out) {       \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = lm_##name##_f32(x[i], y[i]);                                                  \
    }                                                                                              \
    static void name##_f64(int64_t n, const double *x, const double *y, double *restrict out) {    \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = lm_##name##_f64(x[i], y[i]);                                                  \
    }

UNARY_WORDS(UNARY_LOOPS)
BINARY_WORDS(BINARY_LOOPS)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define F32_ENTRY(name, ...) [WORD_##name] = name##_f32,
#define F64_ENTRY(name, ...) [WORD_##name] = name##_f64,
const math_words PASTE(math_words_, LM_LEVEL) = {
    .level = TEXT(LM_LEVEL),
    .has_fma = LM_HAS_FMA,
    .f32 = {UNARY_WORDS(F32_ENTRY) BINARY_WORDS(F32_ENTRY)},
    .f64 = {UNARY_WORDS(F64_ENTRY) BINARY_WORDS(F64_ENTRY)},
};
