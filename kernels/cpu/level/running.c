/* running.c -- running products, extremes and logarithms of sums of exponentials, over rows and
** columns of a block; one table per level. Layer: kernels/cpu/level. */
#include <math.h>

#include "cpu/level.h"
#include "exps.h"
#include "prefix.h"
#include "product.h"

/* ---- products ---- */

static void prod_row_i64(int64_t n, const char *x, char *y, const void *start, void *own) {
    const uint64_t *from = (const uint64_t *)(const void *)x, *first = start;
    uint64_t *to = (uint64_t *)(void *)y, *carry = own, p = *carry, before = *first;
    for (int64_t i = 0; i < n; i++) {
        p *= from[i];
        if (to) to[i] = before * p;
    }
    *carry = p;
}

static void prod_columns_i64(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                             double *real, int64_t *whole) {
    (void)real;
    for (int64_t i = 0; i < m; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)(x + i * sx);
        uint64_t *to = (uint64_t *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++) {
            uint64_t p = (uint64_t)whole[j] * from[j];
            whole[j] = (int64_t)p;
            to[j] = p;
        }
    }
}

/* 2^e for -1022 <= e <= 1023. */
LM_LANE double power(int64_t e) {
    return lm_float_f64((uint64_t)(e + 1023) << 52);
}

#define TOKEN f32
#define TYPE float
#include "running_prod.h"
#define TOKEN f64
#define TYPE double
#include "running_prod.h"

/* ---- extremes ---- */

#define TOKEN b8
#define TYPE uint8_t
#include "running_max.h"
#define TOKEN u8
#define TYPE uint8_t
#include "running_max.h"
#define TOKEN i8
#define TYPE int8_t
#include "running_max.h"
#define TOKEN i16
#define TYPE int16_t
#include "running_max.h"
#define TOKEN i32
#define TYPE int32_t
#include "running_max.h"
#define TOKEN u32
#define TYPE uint32_t
#include "running_max.h"
#define TOKEN i64
#define TYPE int64_t
#include "running_max.h"
#define TOKEN f32
#define TYPE float
#define REAL
#include "running_max.h"
#define TOKEN f64
#define TYPE double
#define REAL
#include "running_max.h"

/* ---- logarithms of sums of exponentials ---- */

/* The sum of exponentials is sum * e^greatest: from there to what it is with x. NaN is the greatest
** and stays; -inf adds nothing. */
LM_LANE void add_exp(double *greatest, double *sum, double x) {
    double m = x > *greatest || x != x ? x : *greatest;
    double old = m == *greatest ? 0 : *greatest - m, more = m == x ? 0 : x - m;
    double e = lm_exp_below_f64(more);
    *sum = *sum * lm_exp_below_f64(old) + (x == -LM_INF_F64 ? 0 : e);
    *greatest = m;
}

LM_LANE double log_of(double greatest, double sum) {
    double log = lm_log_f64(sum);
    return greatest - greatest != 0 ? greatest : greatest + log;
}

enum { TILE = 256 };

/* The greatest of n elements, which are at least as great as m; NaN if there is one. */
static double greatest_of(int64_t n, const double *x, double m) {
    int64_t nans = 0;
    for (int64_t i = 0; i < n; i++) {
        m = x[i] > m ? x[i] : m;
        nans += x[i] != x[i];
    }
    return nans ? LM_NAN_F64 : m;
}

/* n elements that are not far above what is summed up already: exponentials of all below one
** number, then running sums. before: the sum of lines before these, in the same unit. */
static void tile(int64_t n, const double *x, double *y, double greatest, double before,
                 double *sum) {
    double e[TILE], s = *sum;
    for (int64_t i = 0; i < n; i++)
        e[i] = lm_exp_below_f64(x[i] - greatest);
    for (int64_t i = 0; i < n; i++) {
        s += e[i];
        e[i] = before + s;
    }
    *sum = s;
    if (!y) return;
    for (int64_t i = 0; i < n; i++)
        y[i] = greatest + lm_log_f64(e[i]);
}

/* start: greatest and sum of what is before; own: of this line so far. */
static void logsumexp_row(int64_t n, const char *x, char *y, const void *start, void *own) {
    const double *from = (const double *)(const void *)x, *before = start;
    double *to = (double *)(void *)y, *state = own;
    for (int64_t at = 0; at < n; at += TILE) {
        int64_t count = n - at < TILE ? n - at : TILE;
        const double *v = from + at;
        double *w = to ? to + at : NULL;
        double base = state[1] == 0 ? v[0] : state[0];
        double m = greatest_of(count, v, base);
        double c = before[1] == 0 ? -LM_INF_F64 : before[0] - m;
        if (m - base <= 600 && c <= 600) {
            double shift = state[1] == 0 ? 0 : lm_exp_below_f64(state[0] - m);
            state[1] *= shift;
            state[0] = m;
            c = before[1] == 0 ? 0 : before[1] * exp(c);
            tile(count, v, w, m, c, &state[1]);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            add_exp(&state[0], &state[1], v[i]);
            if (!w) continue;
            double both = before[0], sum = before[1];
            double top = state[0] > both || state[0] != state[0] ? state[0] : both;
            sum = top == both ? sum : sum * lm_exp_below_f64(both - top);
            sum += top == state[0] ? state[1] : state[1] * lm_exp_below_f64(state[0] - top);
            w[i] = log_of(top, sum);
        }
    }
}

static void logsumexp_columns(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                              double *greatest, double *sum) {
    for (int64_t i = 0; i < m; i++) {
        const double *from = (const double *)(const void *)(x + i * sx);
        double *to = (double *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++)
            add_exp(&greatest[j], &sum[j], from[j]);
        for (int64_t j = 0; j < n; j++)
            to[j] = log_of(greatest[j], sum[j]);
    }
}

#define NUMBERS(name)                                                                              \
    { [LUMA_INT64] = name##_i64, [LUMA_FLOAT32] = name##_f32, [LUMA_FLOAT64] = name##_f64 }
#define ENTRY(name, token, ENUM, ...) [LUMA_##ENUM] = name##_##token,
#define ALL(name)                                                                                  \
    { LM_COMPUTE(ENTRY, name) }

extern const lm_running_kernels LM_TABLE(running);
const lm_running_kernels LM_TABLE(running) = {
    .prod_row = NUMBERS(prod_row),
    .prod_columns = NUMBERS(prod_columns),
    .extreme_row = {ALL(cummax_row), ALL(cummin_row)},
    .extreme_columns = {ALL(cummax_columns), ALL(cummin_columns)},
    .logsumexp_row = logsumexp_row,
    .logsumexp_columns = logsumexp_columns,
};
