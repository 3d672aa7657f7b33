/* scan.c -- running sums, and exponentials with their sums, over rows and columns of a block; one
** table per level. Floats add in double, in one order at every level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "exps.h"
#include "lanes.h"

/* Running sums of eight: within pairs, then fours, then all. */
#if LM_D8_WIDTH == 8
#define STEP(v, ...) ((v) + __builtin_shufflevector(v, (lm_vf64){0}, __VA_ARGS__))
#elif LM_D8_WIDTH == 4
#define STEP(v, a, b, c, d) ((v) + __builtin_shufflevector(v, (lm_vf64){0}, a, b, c, d))
#endif
LM_LANE lm_d8 running8(lm_d8 a) {
#if LM_D8_WIDTH == 8
    lm_vf64 v = a.part[0];
    v = STEP(v, 8, 0, 8, 2, 8, 4, 8, 6);
    v = STEP(v, 8, 8, 1, 1, 8, 8, 5, 5);
    v = STEP(v, 8, 8, 8, 8, 3, 3, 3, 3);
    a.part[0] = v;
#elif LM_D8_WIDTH == 4
    for (int p = 0; p < 2; p++) {
        lm_vf64 v = a.part[p];
        v = STEP(v, 4, 0, 4, 2);
        a.part[p] = STEP(v, 4, 4, 1, 1);
    }
    a.part[1] += a.part[0][3];
#else
    for (int p = 0; p < 4; p++)
        a.part[p] += (lm_vf64){0, a.part[p][0]};
    a.part[1] += a.part[0][1];
    a.part[3] += a.part[2][1];
    double half = a.part[1][1];
    a.part[2] += half;
    a.part[3] += half;
#endif
    return a;
}

#define TOKEN f32
#define TYPE float
#include "scan_float.h"

#define TOKEN f64
#define TYPE double
#include "scan_float.h"

static void cumsum_row_i64(int64_t n, const char *x, char *y, void *sum, void *total) {
    const uint64_t *from = (const uint64_t *)(const void *)x;
    uint64_t *to = (uint64_t *)(void *)y, *carry = sum, *own = total, start = *carry;
    uint64_t s = start;
    for (int64_t i = 0; i < n; i++) {
        s += from[i];
        if (to) to[i] = s;
    }
    *own += s - start;
    *carry = s;
}

static void cumsum_columns_i64(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                               void *sum) {
    uint64_t *s = sum;
    for (int64_t i = 0; i < m; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)(x + i * sx);
        uint64_t *to = (uint64_t *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++) {
            s[j] += from[j];
            to[j] = s[j];
        }
    }
}

#define FLOATS(name)                                                                               \
    { [LUMA_FLOAT32] = name##_f32, [LUMA_FLOAT64] = name##_f64 }
#define NUMBERS(name)                                                                              \
    { [LUMA_INT64] = name##_i64, [LUMA_FLOAT32] = name##_f32, [LUMA_FLOAT64] = name##_f64 }

extern const lm_scan_kernels LM_TABLE(scan);
const lm_scan_kernels LM_TABLE(scan) = {
    .cumsum_row = NUMBERS(cumsum_row),
    .cumsum_columns = NUMBERS(cumsum_columns),
    .exps = {FLOATS(exps_rows), FLOATS(exps_columns)},
    .scale = {FLOATS(scale_rows), FLOATS(scale_columns)},
    .shift = {FLOATS(shift_rows), FLOATS(shift_columns)},
};
