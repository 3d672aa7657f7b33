/* cast.c -- conversions between all dtypes; built once per level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "scalar.h"

#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

/* Elements of one size, bits as they are. */
LM_FN void copy(int64_t n, const char *x, int64_t sx, char *y, int64_t sy, size_t size) {
    if (sx == (int64_t)size && sy == (int64_t)size) {
        memmove(y, x, (size_t)n * size);
    } else {
        for (int64_t i = 0; i < n; i++, x += sx, y += sy)
            memcpy(y, x, size);
    }
}

/* float16 by the processor's own conversion, which gives the bits of lm_load_f16 and lm_store_f16;
** contiguous. They return how many elements are done: whole vectors. */
#if defined(__AVX512F__)
static int64_t f16_to_f32(int64_t n, const lm_f16 *x, float *y) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i))));
    return i;
}
static int64_t f32_to_f16(int64_t n, const float *x, lm_f16 *y) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((void *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), 0));
    return i;
}
#elif defined(__F16C__)
static int64_t f16_to_f32(int64_t n, const lm_f16 *x, float *y) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + i))));
    return i;
}
static int64_t f32_to_f16(int64_t n, const float *x, lm_f16 *y) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
    return i;
}
#else
static int64_t f16_to_f32(int64_t n, const lm_f16 *x, float *y) {
    (void)n, (void)x, (void)y;
    return 0;
}
static int64_t f32_to_f16(int64_t n, const float *x, lm_f16 *y) {
    (void)n, (void)x, (void)y;
    return 0;
}
#endif

/* The dtype of a token, as a constant. */
#define ID(_, token, ENUM, ...) lm_id_##token = LUMA_##ENUM,
enum { LM_DTYPES(ID, _) };

/* LM_VIA: the type that LM_FROM computes in. */
#define LM_FROM b8
#define LM_VIA b8
#include "cast_from.h"
#define LM_FROM u8
#define LM_VIA u8
#include "cast_from.h"
#define LM_FROM i8
#define LM_VIA i8
#include "cast_from.h"
#define LM_FROM i16
#define LM_VIA i16
#include "cast_from.h"
#define LM_FROM i32
#define LM_VIA i32
#include "cast_from.h"
#define LM_FROM u32
#define LM_VIA u32
#include "cast_from.h"
#define LM_FROM i64
#define LM_VIA i64
#include "cast_from.h"
#define LM_FROM f8
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f16
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM bf16
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f32
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f64
#define LM_VIA f64
#include "cast_from.h"

#define ROW(_, token, ENUM, ...) [LUMA_##ENUM] = lm_casts_##token,

extern const lm_cast_kernels LM_TABLE(cast);
const lm_cast_kernels LM_TABLE(cast) = {{LM_DTYPES(ROW, _)}};
