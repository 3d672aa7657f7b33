/* lanes.h -- eight doubles as one value at every level: sums add in one order, whatever the width
** of a vector. Layer: kernels/cpu. */
#ifndef lm_lanes_h
#define lm_lanes_h

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define LM_LANE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define LM_D8_WIDTH 8
#elif defined(__AVX__)
#define LM_D8_WIDTH 4
#else
#define LM_D8_WIDTH 2
#endif
#define LM_D8_PARTS (8 / LM_D8_WIDTH)

typedef double lm_vf64 __attribute__((vector_size(8 * LM_D8_WIDTH)));
typedef float lm_vf32 __attribute__((vector_size(4 * LM_D8_WIDTH)));
typedef double lm_v4f64 __attribute__((vector_size(32)));
typedef struct {
    lm_vf64 part[LM_D8_PARTS];
} lm_d8;

LM_LANE lm_d8 lm_d8_splat(double x) {
    lm_d8 r;
    for (int p = 0; p < LM_D8_PARTS; p++)
        r.part[p] = (lm_vf64){0} + x;
    return r;
}

LM_LANE lm_d8 lm_d8_load_f64(const double *x) {
    lm_d8 r;
    for (int p = 0; p < LM_D8_PARTS; p++)
        memcpy(&r.part[p], x + p * LM_D8_WIDTH, sizeof r.part[p]);
    return r;
}

/* gcc takes __builtin_convertvector apart into halves; the instructions are named where known. */
LM_LANE lm_vf64 lm_widen(const float *x) {
#if defined(__AVX512F__)
    return (lm_vf64)_mm512_cvtps_pd(_mm256_loadu_ps(x));
#elif defined(__AVX__)
    return (lm_vf64)_mm256_cvtps_pd(_mm_loadu_ps(x));
#elif defined(__SSE2__)
    double pair;
    memcpy(&pair, x, sizeof pair);
    return (lm_vf64)_mm_cvtps_pd(_mm_castpd_ps(_mm_set_sd(pair)));
#else
    lm_vf32 v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, lm_vf64);
#endif
}

LM_LANE void lm_narrow(float *y, lm_vf64 a) {
#if defined(__AVX512F__)
    _mm256_storeu_ps(y, _mm512_cvtpd_ps((__m512d)a));
#elif defined(__AVX__)
    _mm_storeu_ps(y, _mm256_cvtpd_ps((__m256d)a));
#elif defined(__SSE2__)
    double pair = _mm_cvtsd_f64(_mm_castps_pd(_mm_cvtpd_ps((__m128d)a)));
    memcpy(y, &pair, sizeof pair);
#else
    lm_vf32 v = __builtin_convertvector(a, lm_vf32);
    memcpy(y, &v, sizeof v);
#endif
}

LM_LANE lm_d8 lm_d8_load_f32(const float *x) {
    lm_d8 r;
    for (int p = 0; p < LM_D8_PARTS; p++)
        r.part[p] = lm_widen(x + p * LM_D8_WIDTH);
    return r;
}

LM_LANE void lm_d8_store_f64(double *y, lm_d8 a) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        memcpy(y + p * LM_D8_WIDTH, &a.part[p], sizeof a.part[p]);
}

LM_LANE void lm_d8_store_f32(float *y, lm_d8 a) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        lm_narrow(y + p * LM_D8_WIDTH, a.part[p]);
}

LM_LANE lm_d8 lm_d8_add(lm_d8 a, lm_d8 b) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        a.part[p] += b.part[p];
    return a;
}

LM_LANE lm_d8 lm_d8_sub(lm_d8 a, lm_d8 b) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        a.part[p] -= b.part[p];
    return a;
}

LM_LANE lm_d8 lm_d8_mul(lm_d8 a, lm_d8 b) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        a.part[p] *= b.part[p];
    return a;
}

/* The lanes folded in halves: k with k + 4, then k + 2, then k + 1. */
#if LM_D8_WIDTH == 8
#define LM_D8_HALVES(a, OP)                                                                        \
    (__builtin_shufflevector((a).part[0], (a).part[0], 0, 1, 2, 3)                                 \
         OP __builtin_shufflevector((a).part[0], (a).part[0], 4, 5, 6, 7))
#elif LM_D8_WIDTH == 4
#define LM_D8_HALVES(a, OP) ((a).part[0] OP(a).part[1])
#endif
#if LM_D8_WIDTH == 2
#define LM_D8_FOLD(a, OP)                                                                          \
    lm_vf64 v = ((a).part[0] OP(a).part[2])OP((a).part[1] OP(a).part[3]);                          \
    return v[0] OP v[1]
#else
#define LM_D8_FOLD(a, OP)                                                                          \
    lm_v4f64 v = LM_D8_HALVES(a, OP);                                                              \
    return (v[0] OP v[2])OP(v[1] OP v[3])
#endif

LM_LANE double lm_d8_sum(lm_d8 a) {
    LM_D8_FOLD(a, +);
}

LM_LANE double lm_d8_product(lm_d8 a) {
    LM_D8_FOLD(a, *);
}

#endif
