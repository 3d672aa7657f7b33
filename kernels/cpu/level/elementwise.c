/* elementwise.c -- kernels of the elementwise rows of ops.def for every compute type; built once
** per level. Layer: kernels/cpu/level. */
#include "bits.h"
#include "cpu/level.h"
#include "cpu/vector.h"

/* Rows that never stream (cpu/map.c). */
LM_FN bool lm_is_guarded(lm_op op) {
    return op == LM_OP_floor_div || op == LM_OP_trunc_div || op == LM_OP_remainder ||
           op == LM_OP_fmod || op == LM_OP_pow || op == LM_OP_lshift || op == LM_OP_rshift;
}

/* Rows whose word of float32 is that of float64 rounded (math_rare.h). */
LM_FN bool lm_is_wide(lm_op op) {
    return op == LM_OP_asin || op == LM_OP_acos || op == LM_OP_atan || op == LM_OP_cbrt ||
           op == LM_OP_lgamma || op == LM_OP_digamma || op == LM_OP_erfc || op == LM_OP_erfinv ||
           op == LM_OP_sinc || op == LM_OP_atan2;
}
#define WIDE 256 /* elements */
typedef void lm_wide_unary(int64_t n, double *r, const double *x, double p0, double p1,
                           bool stream);
typedef void lm_wide_binary(int64_t n, double *r, const double *x, const double *y, bool stream);
static __attribute__((noinline)) void lm_unary_by_f64(int64_t n, float *r, const float *x,
                                                      lm_wide_unary *line) {
    double a[WIDE], b[WIDE];
    for (int64_t i = 0; i < n; i += WIDE) {
        int64_t m = n - i < WIDE ? n - i : WIDE;
#pragma omp simd
        for (int64_t k = 0; k < m; k++)
            a[k] = (double)x[i + k];
        line(m, b, a, 0, 0, false);
#pragma omp simd
        for (int64_t k = 0; k < m; k++)
            r[i + k] = (float)b[k];
    }
}
static __attribute__((noinline)) void lm_binary_by_f64(int64_t n, float *r, const float *x,
                                                       const float *y, lm_wide_binary *line) {
    double a[WIDE], b[WIDE], c[WIDE];
    for (int64_t i = 0; i < n; i += WIDE) {
        int64_t m = n - i < WIDE ? n - i : WIDE;
#pragma omp simd
        for (int64_t k = 0; k < m; k++) {
            a[k] = (double)x[i + k];
            b[k] = (double)y[i + k];
        }
        line(m, c, a, b, false);
#pragma omp simd
        for (int64_t k = 0; k < m; k++)
            r[i + k] = (float)c[k];
    }
}

#define LM_T b8
#include "elementwise_type.h"
#define LM_T u8
#include "elementwise_type.h"
#define LM_T i8
#include "elementwise_type.h"
#define LM_T i16
#include "elementwise_type.h"
#define LM_T i32
#include "elementwise_type.h"
#define LM_T u32
#include "elementwise_type.h"
#define LM_T i64
#include "elementwise_type.h"
#define LM_T f64
#include "elementwise_type.h"
#define LM_T f32 /* after f64, whose lines serve it too */
#define LM_ROWS_BY_F64
#include "elementwise_type.h"

/* The table: for each row the types of its dtypes column. */
#define ENTRY(name, token, ENUM, ...) [LUMA_##ENUM] = lm_##name##_map_##token,
#define FLOATS(name) LM_WIDE_FLOATS(ENTRY, name)
#define INTS(name) LM_INTS(ENTRY, name)
#define NUMBERS(name) INTS(name) FLOATS(name)
#define BITS(name) LM_BOOLS(ENTRY, name) INTS(name)
#define ALL(name) LM_BOOLS(ENTRY, name) NUMBERS(name)
#define ROW(name, dtypes, ...) [LM_OP_##name] = {dtypes(name)},
#define GUARD(_, token, ENUM, ...) [LUMA_##ENUM] = {lm_find_zero_##token, lm_find_negative_##token},

extern const lm_elementwise_kernels LM_TABLE(elementwise);
const lm_elementwise_kernels LM_TABLE(elementwise) = {
    .map =
        {
#define UNARY ROW
#define UNARY_P ROW
#define TEST ROW
#define BINARY ROW
#define COMPARE ROW
#define TERNARY ROW
#define LM_ROWS_ALONE
#include "ops.def"
        },
    .guard = {LM_INTS(GUARD, _)},
};
