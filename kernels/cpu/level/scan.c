/* scan.c -- running sums, and exponentials with their sums, over rows and columns of a block; one
** table per level. Floats add in double, in one order at every level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "exps.h"
#include "prefix.h"

#define TOKEN f32
#define TYPE float
#include "scan_float.h"

#define TOKEN f64
#define TYPE double
#include "scan_float.h"

LM_LANE void running_i64(int64_t n, const uint64_t *x, uint64_t *y, uint64_t *sum, uint64_t *total,
                         bool stores) {
    uint64_t s = *sum, start = s;
    int64_t i = 0;
#if LM_D8_WIDTH == 8 /* in shorter vectors, not faster than one by one */
    for (; i + 8 <= n; i += 8) {
        lm_u8 r = lm_u8_sums(lm_u8_load(x + i));
        if (stores) lm_u8_store_above(y + i, r, s);
        s += LM_LAST8(r);
    }
#endif
    for (; i < n; i++) {
        s += x[i];
        if (stores) y[i] = s;
    }
    *sum = s;
    *total += s - start;
}

static void cumsum_rows_i64(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                            void *sum, void *total) {
    uint64_t ignored = 0, *sums = sum, *totals = total;
    for (int64_t i = 0; i < m; i++) {
        const uint64_t *from = (const uint64_t *)(const void *)(x + i * sx);
        uint64_t *own = totals ? &totals[i] : &ignored;
        if (y)
            running_i64(n, from, (uint64_t *)(void *)(y + i * sy), &sums[i], own, true);
        else
            running_i64(n, from, NULL, &sums[i], own, false);
    }
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
    .cumsum_rows = NUMBERS(cumsum_rows),
    .cumsum_columns = NUMBERS(cumsum_columns),
    .exps = {FLOATS(exps_rows), FLOATS(exps_columns)},
    .scale = {FLOATS(scale_rows), FLOATS(scale_columns)},
    .shift = {FLOATS(shift_rows), FLOATS(shift_columns)},
};
