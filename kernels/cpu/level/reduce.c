/* reduce.c -- foldings of rows and columns of a block, one table per level. Floats add in fixed
** lanes of double, so every level gives the same bits. Layer: kernels/cpu/level. */
#include <math.h>
#include <stdbool.h>

#include "cpu/keys.h"
#include "cpu/level.h"
#include "cpu/vector.h"
#include "exps.h"
#include "lanes.h"

/* A term of a sum, eight at a time and single. */
typedef lm_d8 (*term8)(lm_d8 x, lm_d8 param);
typedef double (*term1)(double x, double param);

LM_LANE lm_d8 same8(lm_d8 x, lm_d8 param) {
    (void)param;
    return x;
}

LM_LANE double same1(double x, double param) {
    (void)param;
    return x;
}

LM_LANE lm_d8 square8(lm_d8 x, lm_d8 param) {
    lm_d8 d = lm_d8_sub(x, param);
    return lm_d8_mul(d, d);
}

LM_LANE double square1(double x, double param) {
    double d = x - param;
    return d * d;
}

typedef int64_t vi64 __attribute__((vector_size(8 * LM_D8_WIDTH)));

LM_LANE lm_d8 number8(lm_d8 x, lm_d8 param) {
    (void)param;
    for (int p = 0; p < LM_D8_PARTS; p++)
        x.part[p] = (lm_vf64)((vi64)x.part[p] & (vi64)(x.part[p] == x.part[p]));
    return x;
}

LM_LANE double number1(double x, double param) {
    (void)param;
    return x == x ? x : 0;
}

LM_LANE lm_d8 is_number8(lm_d8 x, lm_d8 param) {
    const lm_vf64 one = (lm_vf64){0} + 1;
    (void)param;
    for (int p = 0; p < LM_D8_PARTS; p++)
        x.part[p] = (lm_vf64)((vi64)one & (vi64)(x.part[p] == x.part[p]));
    return x;
}

LM_LANE double is_number1(double x, double param) {
    (void)param;
    return x == x ? 1 : 0;
}

LM_LANE lm_d8 magnitude8(lm_d8 x, lm_d8 param) {
    (void)param;
    for (int p = 0; p < LM_D8_PARTS; p++)
        x.part[p] = (lm_vf64)((vi64)x.part[p] & INT64_MAX);
    return x;
}

LM_LANE double magnitude1(double x, double param) {
    (void)param;
    return fabs(x);
}

#define TOKEN f32
#define TYPE float
#include "reduce_float.h"

#define TOKEN f64
#define TYPE double
#include "reduce_float.h"

/* ---- terms ---- */

#define TERMS(token, T, ABS)                                                                       \
    static void terms_##token(lm_term term, int64_t n, const char *from, char *to) {               \
        const T *x = (const T *)(const void *)from;                                                \
        T *y = (T *)(void *)to;                                                                    \
        if (term == LM_TERM_NAN_IS_0) {                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i] == x[i] ? x[i] : 0;                                                    \
        } else if (term == LM_TERM_NUMBERS) {                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i] == x[i] ? 1 : 0;                                                       \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = ABS(x[i]);                                                                  \
        }                                                                                          \
    }
TERMS(f32, float, fabsf)
TERMS(f64, double, fabs)

/* ---- columns of float32 ---- */

/* Widening every float32 to double would take longer than reading it. So columns add in float32,
** and what an addition rounds off adds up beside it: t - s is what arrived of x, exactly while s is
** not the smaller one. Sums start at some 64 times their elements to keep it so. */
#define ADD_ROW(row)                                                                               \
    do {                                                                                           \
        float v = (row)[j], t = s + v;                                                             \
        float arrived = UNEVEN(t, s);                                                              \
        lost += UNEVEN(v, arrived);                                                                \
        s = t;                                                                                     \
    } while (0)
/* a - b; by the multiplier where there is one, as adders are all busy. */
#if LM_HAS_FMA
#define UNEVEN(a, b) __builtin_fmaf(a, one, -(b))
#else
#define UNEVEN(a, b) ((a) - (b))
#endif

static void add_rows(int64_t m, int64_t n, const char *x, int64_t sx, float *restrict sum,
                     float *restrict rest) {
    static const volatile float unit = 1.0f; /* hidden: else the compiler makes it an addition */
    float one = unit;
    (void)one;
    for (; m >= 8; m -= 8, x += 8 * sx) {
        const float *row[8];
        for (int r = 0; r < 8; r++)
            row[r] = (const float *)(const void *)(x + r * sx);
        for (int64_t j = 0; j < n; j++) {
            float s = sum[j], lost = rest[j];
            ADD_ROW(row[0]);
            ADD_ROW(row[1]);
            ADD_ROW(row[2]);
            ADD_ROW(row[3]);
            ADD_ROW(row[4]);
            ADD_ROW(row[5]);
            ADD_ROW(row[6]);
            ADD_ROW(row[7]);
            sum[j] = s;
            rest[j] = lost;
        }
    }
    for (; m > 0; m--, x += sx) {
        const float *row = (const float *)(const void *)x;
        for (int64_t j = 0; j < n; j++) {
            float s = sum[j], lost = rest[j];
            ADD_ROW(row);
            sum[j] = s;
            rest[j] = lost;
        }
    }
}

static void sum_columns_f32(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    if (m < 16) {
        exact_columns_f32(m, n, x, sx, f);
        return;
    }
    float start[LM_FOLD_WIDTH], sum[LM_FOLD_WIDTH], rest[LM_FOLD_WIDTH];
    double *restrict value = f->value;
    const float *a = (const float *)(const void *)x, *b = (const float *)(const void *)(x + sx);
    const float *c = (const float *)(const void *)(x + 2 * sx);
    for (int64_t j = 0; j < n; j++) {
        start[j] = sum[j] = 24.0f * (fabsf(a[j]) + fabsf(b[j]) + fabsf(c[j]));
        rest[j] = 0;
    }
    add_rows(m, n, x, sx, sum, rest);
    bool finite = true;
    for (int64_t j = 0; j < n; j++)
        finite &= sum[j] - sum[j] == 0;
    if (!finite) { /* infinities, NaN, or beyond float32 on the way */
        exact_columns_f32(m, n, x, sx, f);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        value[j] += ((double)sum[j] - (double)start[j]) + (double)rest[j];
}

static void sum_columns_f64(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    exact_columns_f64(m, n, x, sx, f);
}

/* ---- integers ---- */

#define SUMS(token, TYPE, AS_INT)                                                                  \
    static void sum_rows_##token(int64_t m, int64_t n, const char *x, int64_t sx,                  \
                                 const lm_fold *f) {                                               \
        uint64_t *value = f->value;                                                                \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const TYPE *row = (const TYPE *)(const void *)(x + i * sx);                            \
            uint64_t total = 0;                                                                    \
            for (int64_t j = 0; j < n; j++)                                                        \
                total += (uint64_t)(int64_t)AS_INT(row[j]);                                        \
            value[i * f->step] += total;                                                           \
        }                                                                                          \
    }                                                                                              \
    static void sum_columns_##token(int64_t m, int64_t n, const char *x, int64_t sx,               \
                                    const lm_fold *f) {                                            \
        uint64_t *restrict value = f->value;                                                       \
        for (int64_t i = 0; i < m; i++) {                                                          \
            const TYPE *row = (const TYPE *)(const void *)(x + i * sx);                            \
            for (int64_t j = 0; j < n; j++)                                                        \
                value[j] += (uint64_t)(int64_t)AS_INT(row[j]);                                     \
        }                                                                                          \
    }
#define IS_TRUE(x) ((x) != 0)
#define IDENTITY(x) (x)
#define SUMS_ROW(_, token, ENUM, name, TYPE, ...) SUMS(token, TYPE, IDENTITY)
LM_INTS(SUMS_ROW, _)
SUMS(b8, uint8_t, IS_TRUE)

static void prod_rows_i64(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    uint64_t *value = f->value;
    for (int64_t i = 0; i < m; i++) {
        const uint64_t *row = (const uint64_t *)(const void *)(x + i * sx);
        uint64_t product = 1;
        for (int64_t j = 0; j < n; j++)
            product *= row[j];
        value[i * f->step] *= product;
    }
}

static void prod_columns_i64(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    uint64_t *restrict value = f->value;
    for (int64_t i = 0; i < m; i++) {
        const uint64_t *row = (const uint64_t *)(const void *)(x + i * sx);
        for (int64_t j = 0; j < n; j++)
            value[j] *= row[j];
    }
}

/* ---- greatest and least ---- */

#define TOKEN u8
#define TYPE uint8_t
#define KEY uint8_t
#define KEY_MIN 0
#define KEY_MAX UINT8_MAX
#include "reduce_key.h"

#define TOKEN i8
#define TYPE int8_t
#define KEY int8_t
#define KEY_MIN INT8_MIN
#define KEY_MAX INT8_MAX
#include "reduce_key.h"

#define TOKEN i16
#define TYPE int16_t
#define KEY int16_t
#define KEY_MIN INT16_MIN
#define KEY_MAX INT16_MAX
#include "reduce_key.h"

#define TOKEN i32
#define TYPE int32_t
#define KEY int32_t
#define KEY_MIN INT32_MIN
#define KEY_MAX INT32_MAX
#include "reduce_key.h"

#define TOKEN u32
#define TYPE uint32_t
#define KEY uint32_t
#define KEY_MIN 0
#define KEY_MAX UINT32_MAX
#include "reduce_key.h"

#define TOKEN i64
#define TYPE int64_t
#define KEY int64_t
#define KEY_MIN INT64_MIN
#define KEY_MAX INT64_MAX
#include "reduce_key.h"

#define TOKEN f32
#define TYPE float
#define KEY int32_t
#define KEY_MIN INT32_MIN
#define KEY_MAX INT32_MAX
#define FLOAT
#include "reduce_key.h"

#define TOKEN f64
#define TYPE double
#define KEY int64_t
#define KEY_MIN INT64_MIN
#define KEY_MAX INT64_MAX
#define FLOAT
#include "reduce_key.h"

#define TOKEN f32
#define TYPE float
#define INDEX int32_t
#define FROM_KEY lm_unkey_f32
#define IS_NAN(x) ((x) != (x))
#define EQUAL64 lm_equal64_f32
#include "reduce_arg.h"

#define TOKEN f64
#define TYPE double
#define INDEX int64_t
#define FROM_KEY lm_unkey_f64
#define IS_NAN(x) ((x) != (x))
#include "reduce_arg.h"

#define TOKEN u8
#define TYPE uint8_t
#define INDEX int32_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

#define TOKEN i8
#define TYPE int8_t
#define INDEX int32_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

#define TOKEN i16
#define TYPE int16_t
#define INDEX int32_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

#define TOKEN i32
#define TYPE int32_t
#define INDEX int32_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

#define TOKEN u32
#define TYPE uint32_t
#define INDEX int32_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

#define TOKEN i64
#define TYPE int64_t
#define INDEX int64_t
#define FROM_KEY(key) (key)
#define IS_NAN(x) false
#include "reduce_arg.h"

/* Of bool rows the first that holds, or that does not: eight bytes at a time, and no further. */
static int64_t first_truth(const uint8_t *x, int64_t n, bool wanted) {
    const uint64_t ones = 0x0101010101010101u;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, x + i, sizeof w);
        bool there = wanted ? w != 0 : ((w - ones) & ~w & ones << 7) != 0;
        if (there) break;
    }
    while (i < n && (x[i] != 0) != wanted)
        i++;
    return i < n ? i : -1;
}

LM_LANE void truth_rows(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                        bool wanted) {
    for (int64_t i = 0; i < m && n > 0; i++) {
        const uint8_t *row = (const uint8_t *)(x + i * sx);
        uint8_t *v = (uint8_t *)f->value + i * f->step;
        int64_t *p = &f->position[i * f->step];
        if (*p >= 0 && (*v != 0) == wanted) continue;
        int64_t at = first_truth(row, n, wanted);
        if (at < 0 && *p >= 0) continue;
        *v = (uint8_t)(at < 0 ? !wanted : wanted);
        *p = f->at + (at < 0 ? 0 : at);
    }
}

static void argmax_rows_b8(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    truth_rows(m, n, x, sx, f, true);
}

static void argmin_rows_b8(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    truth_rows(m, n, x, sx, f, false);
}

static void argmax_columns_b8(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    argmax_columns_u8(m, n, x, sx, f);
}

static void argmin_columns_b8(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    argmin_columns_u8(m, n, x, sx, f);
}

/* ---- the table ---- */

/* clang-format off */
#define SUM_ENTRY(shape, token, ENUM, ...) [LUMA_##ENUM] = sum_##shape##_##token,
#define MAX_ENTRY(shape, token, ENUM, ...) [LUMA_##ENUM] = max_##shape##_##token,
#define MIN_ENTRY(shape, token, ENUM, ...) [LUMA_##ENUM] = min_##shape##_##token,
#define ARGMAX_ENTRY(shape, token, ENUM, ...) [LUMA_##ENUM] = argmax_##shape##_##token,
#define ARGMIN_ENTRY(shape, token, ENUM, ...) [LUMA_##ENUM] = argmin_##shape##_##token,
#define FLOATS(fold, shape)                                                                        \
    {[LUMA_FLOAT32] = fold##_##shape##_f32, [LUMA_FLOAT64] = fold##_##shape##_f64}
#define ARGS(fold, shape)                                                                          \
    {[LUMA_FLOAT32] = fold##_##shape##_f32, [LUMA_FLOAT64] = fold##_##shape##_f64,                 \
     [LUMA_INT64] = fold##_##shape##_i64}
#define FOLDS(shape)                                                                               \
    {[LM_FOLD_SUM] = {[LUMA_BOOL] = sum_##shape##_b8,                                              \
                      LM_INTS(SUM_ENTRY, shape) LM_WIDE_FLOATS(SUM_ENTRY, shape)},                 \
     [LM_FOLD_PROD] = ARGS(prod, shape),                                                           \
     [LM_FOLD_SQUARES] = FLOATS(squares, shape),                                                   \
     [LM_FOLD_EXPS] = FLOATS(exps, shape),                                                         \
     [LM_FOLD_MAX] = {[LUMA_BOOL] = max_##shape##_u8,                                              \
                      LM_INTS(MAX_ENTRY, shape) LM_WIDE_FLOATS(MAX_ENTRY, shape)},                 \
     [LM_FOLD_MIN] = {[LUMA_BOOL] = min_##shape##_u8,                                              \
                      LM_INTS(MIN_ENTRY, shape) LM_WIDE_FLOATS(MIN_ENTRY, shape)},                 \
     [LM_FOLD_ARGMAX] = {[LUMA_BOOL] = argmax_##shape##_b8,                                        \
                         LM_INTS(ARGMAX_ENTRY, shape) LM_WIDE_FLOATS(ARGMAX_ENTRY, shape)},        \
     [LM_FOLD_ARGMIN] = {[LUMA_BOOL] = argmin_##shape##_b8,                                        \
                         LM_INTS(ARGMIN_ENTRY, shape) LM_WIDE_FLOATS(ARGMIN_ENTRY, shape)}}
/* clang-format on */

extern const lm_reduce_kernels LM_TABLE(reduce);
const lm_reduce_kernels LM_TABLE(reduce) = {
    .rows = FOLDS(rows),
    .columns = FOLDS(columns),
    .terms = {[LUMA_FLOAT32] = terms_f32, [LUMA_FLOAT64] = terms_f64},
    .sums = {[LM_TERM_NAN_IS_0] = FLOATS(number, rows),
             [LM_TERM_NUMBERS] = FLOATS(is_number, rows),
             [LM_TERM_MAGNITUDE] = FLOATS(magnitude, rows)}};
