/* pooling.c -- the greatest and the sum of windows: row by row of a tile, then column by column, or one
** window at a time; one table per level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "scalar.h"

#define NAME(name) LM_PASTE(name, TOKEN)

#define TOKEN f32
#define TYPE float
#define LEAST (-__builtin_inff())
#define IS_NAN(v) ((v) != (v))
#include "pooling_type.h"

#define TOKEN f64
#define TYPE double
#define LEAST (-__builtin_inf())
#define IS_NAN(v) ((v) != (v))
#include "pooling_type.h"

#define TOKEN i32
#define TYPE int32_t
#define LEAST INT32_MIN
#define IS_NAN(v) ((void)(v), false)
#include "pooling_type.h"

#define TOKEN i64
#define TYPE int64_t
#define LEAST INT64_MIN
#define IS_NAN(v) ((void)(v), false)
#include "pooling_type.h"

/* ---- sums ---- */

LM_FN void sum_columns_by(int64_t n, int64_t step, const double *sum, double *total) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        total[i] += sum[i * step];
}
static void sum_columns(int64_t n, int64_t step, const double *sum, double *total) {
    if (step == 1)
        sum_columns_by(n, 1, sum, total);
    else if (step == 2)
        sum_columns_by(n, 2, sum, total);
    else
        sum_columns_by(n, step, sum, total);
}

#define SUMS(token, T)                                                                             \
    static void sum_rows_##token(int64_t n, const void *x, double *sum, bool first) {              \
        const T *v = x;                                                                            \
        if (first) {                                                                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                sum[i] = (double)v[i];                                                             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            sum[i] += (double)v[i];                                                                \
    }                                                                                              \
    static void divide_##token(int64_t n, const double *total, const double *count, void *y) {     \
        T *r = y;                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            r[i] = (T)(total[i] / count[i]);                                                       \
    }
SUMS(f32, float)
SUMS(f64, double)

/* ---- one window ---- */

#define NAN_BOOL(v) false
#define NAN_INT(v) false
#define NAN_FLOAT(v) ((v) != (v))
/* NaN is the greatest, the first of equals wins. */
#define WINDOW_MAX(_, token, ENUM, name, T, compute, kind, ...)                                    \
    static int64_t window_max_##token(const char *x, const lm_pool_window *w, char *y) {           \
        int64_t place = 0;                                                                         \
        T best = *(const T *)(const void *)x;                                                      \
        for (int64_t a = 0; a < w->n[0]; a++) {                                                    \
            for (int64_t b = 0; b < w->n[1]; b++) {                                                \
                const char *p = x + a * w->step[0] + b * w->step[1];                               \
                for (int64_t c = 0; c < w->n[2]; c++, p += w->step[2]) {                           \
                    T e = *(const T *)(const void *)p;                                             \
                    lm_c_##compute v = lm_load_##token(e), than = lm_load_##token(best);           \
                    if (!(v > than || (NAN_##kind(v) && !NAN_##kind(than)))) continue;             \
                    best = e;                                                                      \
                    place = a * w->place[0] + b * w->place[1] + c * w->place[2];                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        *(T *)(void *)y = best;                                                                    \
        return place;                                                                              \
    }
LM_DTYPES(WINDOW_MAX, _)

#define WINDOW_SUM(_, token, ...)                                                                  \
    static double window_sum_##token(const char *x, const lm_pool_window *w) {                     \
        double sum = 0;                                                                            \
        for (int64_t a = 0; a < w->n[0]; a++) {                                                    \
            for (int64_t b = 0; b < w->n[1]; b++) {                                                \
                const char *p = x + a * w->step[0] + b * w->step[1];                               \
                for (int64_t c = 0; c < w->n[2]; c++, p += w->step[2])                             \
                    sum += (double)lm_load_##token(*(const lm_c_##token *)(const void *)p);        \
            }                                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }
LM_FLOATS(WINDOW_SUM, _)

#define MAX_OF(ENUM, token)                                                                        \
    [LUMA_##ENUM] = {lm_pool_first_##token, lm_pool_rows_##token, lm_pool_start_##token,           \
                     lm_pool_columns_##token}
#define WINDOW_MAX_OF(_, token, ENUM, ...) [LUMA_##ENUM] = window_max_##token,
#define WINDOW_SUM_OF(_, token, ENUM, ...) [LUMA_##ENUM] = window_sum_##token,

const lm_pool_kernels LM_TABLE(pooling) = {
    .max = {MAX_OF(FLOAT32, f32), MAX_OF(FLOAT64, f64), MAX_OF(INT32, i32), MAX_OF(INT64, i64)},
    .sum_rows = {[LUMA_FLOAT32] = sum_rows_f32, [LUMA_FLOAT64] = sum_rows_f64},
    .sum_columns = sum_columns,
    .divide = {[LUMA_FLOAT32] = divide_f32, [LUMA_FLOAT64] = divide_f64},
    .window_max = {LM_DTYPES(WINDOW_MAX_OF, _)},
    .window_sum = {LM_FLOATS(WINDOW_SUM_OF, _)},
};
