/* cast.c -- conversions between all dtypes; built once per level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "scalar.h"

#include <string.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

/* A conversion of n elements side by side. */
typedef void line_fn(int64_t n, const char *x, char *y);

/* n elements of `size` bytes. */
LM_FN void move(int64_t n, const char *x, int64_t sx, char *y, int64_t sy, size_t size) {
    for (int64_t i = 0; i < n; i++, x += sx, y += sy)
        memcpy(y, x, size);
}
static void move_any(int64_t n, const char *x, int64_t sx, char *y, int64_t sy, size_t size) {
    switch (size) {
    case 1:
        move(n, x, sx, y, sy, 1);
        break;
    case 2:
        move(n, x, sx, y, sy, 2);
        break;
    case 4:
        move(n, x, sx, y, sy, 4);
        break;
    default:
        move(n, x, sx, y, sy, 8);
    }
}

/* Elements that lie apart go through buffers, so that each conversion is there once. */
#define PIECE 128
static void walk(int64_t n, const char *x, int64_t sx, size_t from, char *y, int64_t sy, size_t to,
                 line_fn *line) {
    const int64_t sf = (int64_t)from, st = (int64_t)to;
    if (n == 1 || (sx == sf && sy == st)) {
        line(n, x, y);
        return;
    }
    uint64_t a[PIECE], b[PIECE];
    for (int64_t i = 0; i < n; i += PIECE, x += PIECE * sx, y += PIECE * sy) {
        int64_t m = n - i < PIECE ? n - i : PIECE;
        if (sx != sf) move_any(m, x, sx, (char *)a, sf, from);
        line(m, sx != sf ? (const char *)a : x, sy != st ? (char *)b : y);
        if (sy != st) move_any(m, (const char *)b, st, y, sy, to);
    }
}

/* The dtype of a token, as a constant. */
#define ID(_, token, ENUM, ...) lm_id_##token = LUMA_##ENUM,
enum { LM_DTYPES(ID, _) };
#define LINE(_, token, ...) static void lm_line_##token##_f32(int64_t, const char *, char *);
LM_DTYPES(LINE, _)
#undef LINE
#define LINE(_, token, ...) static void lm_line_f32_##token(int64_t, const char *, char *);
LM_BOOLS(LINE, _)
LM_INTS(LINE, _)
LM_SMALL_FLOATS(LINE, _)
#undef LINE

/* A small float and another dtype meet in float32, which holds the one exactly and of the other,
** rounded to odd, all that counts. bfloat16 is so near to float32 that short integers need no buffer
** on the way. */
LM_FN bool is_small(int dtype) {
    return dtype == LUMA_FLOAT8_E4M3 || dtype == LUMA_FLOAT16 || dtype == LUMA_BFLOAT16;
}
LM_FN bool is_short(int dtype) {
    return dtype == LUMA_BOOL || dtype == LUMA_UINT8 || dtype == LUMA_INT8 || dtype == LUMA_INT16;
}
LM_FN bool goes_by_f32(int from, int to) {
    if (from == LUMA_BFLOAT16 && is_short(to)) return false;
    if (to == LUMA_BFLOAT16 && is_short(from)) return false;
    return (is_small(from) || is_small(to)) && from != LUMA_FLOAT32 && to != LUMA_FLOAT32;
}
static void by_f32(int64_t n, const char *x, size_t from, line_fn *load, char *y, size_t to,
                   line_fn *store) {
    float t[2 * PIECE];
    for (int64_t i = 0; i < n; i += 2 * PIECE, x += 2 * PIECE * from, y += 2 * PIECE * to) {
        int64_t m = n - i < 2 * PIECE ? n - i : 2 * PIECE;
        load(m, x, (char *)t);
        store(m, (const char *)t, y);
    }
}
#define ODD(from)                                                                                  \
    static void lm_line_odd_##from(int64_t n, const char *x, char *y) {                            \
        const lm_c_##from *a = (const lm_c_##from *)(const void *)x;                               \
        float *b = (float *)(void *)y;                                                             \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) b[i] = lm_odd_##from(a[i]);            \
    }
ODD(i32)
ODD(u32)
ODD(i64)
ODD(f64)
/* exact */
#define lm_line_odd_b8 lm_line_f32_b8
#define lm_line_odd_u8 lm_line_f32_u8
#define lm_line_odd_i8 lm_line_f32_i8
#define lm_line_odd_i16 lm_line_f32_i16
#define lm_line_odd_f8 lm_line_f32_f8
#define lm_line_odd_f16 lm_line_f32_f16
#define lm_line_odd_bf16 lm_line_f32_bf16
#define lm_line_odd_f32 NULL

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
