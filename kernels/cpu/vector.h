/* vector.h -- the widest vector of the level a file is built for, as rows of 16-byte lanes, and
** stores that pass the cache by. For files of cpu/level/ only. Layer: kernels/cpu. */
#ifndef lm_vector_h
#define lm_vector_h

#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__)
#include <immintrin.h>
#define LM_LANES 4
#elif defined(__AVX2__)
#include <immintrin.h>
#define LM_LANES 2
#else
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#define LM_LANES 1
#endif
#define LM_VECTOR (16 * LM_LANES) /* bytes */

typedef uint8_t lm_lane __attribute__((vector_size(16)));
typedef uint8_t lm_v8 __attribute__((vector_size(LM_VECTOR)));
typedef uint16_t lm_v16 __attribute__((vector_size(LM_VECTOR)));
typedef uint32_t lm_v32 __attribute__((vector_size(LM_VECTOR)));
typedef uint64_t lm_v64 __attribute__((vector_size(LM_VECTOR)));

static inline lm_v8 lm_vector_load(const char *p) {
    lm_v8 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void lm_vector_store(char *p, lm_v8 v) {
    memcpy(p, &v, sizeof v);
}

/* p is aligned to LM_VECTOR. Before other threads read, lm_stream_end. */
static inline void lm_vector_stream(char *p, lm_v8 v) {
#if LM_LANES == 4
    _mm512_stream_si512((__m512i *)(void *)p, (__m512i)v);
#elif LM_LANES == 2
    _mm256_stream_si256((__m256i *)(void *)p, (__m256i)v);
#elif defined(__SSE2__)
    _mm_stream_si128((__m128i *)(void *)p, (__m128i)v);
#else
    lm_vector_store(p, v);
#endif
}

static inline void lm_stream_end(void) {
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* Bytes from y to the next multiple of LM_VECTOR. */
static inline size_t lm_to_vector(const char *y) {
    return (size_t)(-(uintptr_t)y % LM_VECTOR);
}

/* memcpy past the cache, but for its ends where y is not aligned; lm_stream_end as above. */
static inline void lm_stream_copy(size_t nbytes, const char *x, char *y) {
    size_t at = lm_to_vector(y);
    if (at > nbytes) at = nbytes;
    if (at) memcpy(y, x, at);
    for (; nbytes - at >= 4 * LM_VECTOR; at += 4 * LM_VECTOR) {
        lm_v8 v[4];
        for (int k = 0; k < 4; k++)
            v[k] = lm_vector_load(x + at + k * LM_VECTOR);
        for (int k = 0; k < 4; k++)
            lm_vector_stream(y + at + k * LM_VECTOR, v[k]);
    }
    for (; nbytes - at >= LM_VECTOR; at += LM_VECTOR)
        lm_vector_stream(y + at, lm_vector_load(x + at));
    if (at < nbytes) memcpy(y + at, x + at, nbytes - at);
}

/* Which of 64 numbers are equal to v: bit k for x[k]. */
static inline uint64_t lm_equal64_f32(const float *x, float v) {
    uint64_t bits = 0;
#if LM_LANES == 4
    for (int k = 0; k < 64; k += 16)
        bits |= (uint64_t)_mm512_cmpeq_ps_mask(_mm512_loadu_ps(x + k), _mm512_set1_ps(v)) << k;
#elif LM_LANES == 2
    for (int k = 0; k < 64; k += 8) {
        __m256 same = _mm256_cmp_ps(_mm256_loadu_ps(x + k), _mm256_set1_ps(v), _CMP_EQ_OQ);
        bits |= (uint64_t)(unsigned)_mm256_movemask_ps(same) << k;
    }
#elif defined(__SSE2__)
    for (int k = 0; k < 64; k += 4) {
        __m128 same = _mm_cmpeq_ps(_mm_loadu_ps(x + k), _mm_set1_ps(v));
        bits |= (uint64_t)(unsigned)_mm_movemask_ps(same) << k;
    }
#else
    for (int k = 0; k < 64; k++)
        bits |= (uint64_t)(x[k] == v) << k;
#endif
    return bits;
}

/* The products of the low halves of the elements. */
static inline lm_v64 lm_vector_mul_low(lm_v64 a, lm_v64 b) {
#if LM_LANES == 4
    return (lm_v64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif LM_LANES == 2
    return (lm_v64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (lm_v64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

/* 16 bytes from each of LM_LANES places that are `step` bytes apart, one lane each. */
static inline lm_v8 lm_vector_gather_lanes(const char *p, int64_t step) {
#if LM_LANES == 4
    __m128i a, b, c, d;
    memcpy(&a, p, 16);
    memcpy(&b, p + step, 16);
    memcpy(&c, p + 2 * step, 16);
    memcpy(&d, p + 3 * step, 16);
    __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    __m256i cd = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return (lm_v8)_mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
#elif LM_LANES == 2
    __m128i a, b;
    memcpy(&a, p, 16);
    memcpy(&b, p + step, 16);
    return (lm_v8)_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
#else
    (void)step;
    return lm_vector_load(p);
#endif
}

/* Per 16-byte lane, the elements of a and b by turns: of the lower (lo) or upper (hi) half. */
#define LM_ZIP1(lane, n, k) lane + (k), (n) + lane + (k)
#define LM_ZIP2(lane, n, k) LM_ZIP1(lane, n, k), LM_ZIP1(lane, n, k + 1)
#define LM_ZIP4(lane, n, k) LM_ZIP2(lane, n, k), LM_ZIP2(lane, n, k + 2)
#define LM_ZIP8(lane, n, k) LM_ZIP4(lane, n, k), LM_ZIP4(lane, n, k + 4)
#if LM_LANES == 4
#define LM_PER_LANE(zip, e, k)                                                                     \
    zip(0, 4 * e, k), zip(e, 4 * e, k), zip(2 * e, 4 * e, k), zip(3 * e, 4 * e, k)
#elif LM_LANES == 2
#define LM_PER_LANE(zip, e, k) zip(0, 2 * e, k), zip(e, 2 * e, k)
#else
#define LM_PER_LANE(zip, e, k) zip(0, e, k)
#endif

/* size: bytes of an element, a constant. */
static inline __attribute__((always_inline)) void lm_vector_zip(lm_v8 a, lm_v8 b, int size,
                                                                lm_v8 *lo, lm_v8 *hi) {
    if (size == 1) {
        *lo = __builtin_shufflevector(a, b, LM_PER_LANE(LM_ZIP8, 16, 0));
        *hi = __builtin_shufflevector(a, b, LM_PER_LANE(LM_ZIP8, 16, 8));
    } else if (size == 2) {
        lm_v16 x = (lm_v16)a, y = (lm_v16)b;
        *lo = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP4, 8, 0));
        *hi = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP4, 8, 4));
    } else if (size == 4) {
        lm_v32 x = (lm_v32)a, y = (lm_v32)b;
        *lo = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP2, 4, 0));
        *hi = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP2, 4, 2));
    } else {
        lm_v64 x = (lm_v64)a, y = (lm_v64)b;
        *lo = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP1, 2, 0));
        *hi = (lm_v8)__builtin_shufflevector(x, y, LM_PER_LANE(LM_ZIP1, 2, 1));
    }
}

#endif
