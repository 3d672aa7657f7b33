/* index.c -- rows to and from places that positions decide: copied as bytes, joined by type; built
** once per level. Layer: kernels/cpu/level. */
#include <string.h>

#include "cpu/level.h"
#include "cpu/vector.h"

#define LM_T u8
#include "index_join.h"
#define LM_T i8
#include "index_join.h"
#define LM_T i16
#include "index_join.h"
#define LM_T i32
#include "index_join.h"
#define LM_T u32
#include "index_join.h"
#define LM_T i64
#include "index_join.h"
#define LM_T f32
#include "index_join.h"
#define LM_T f64
#include "index_join.h"

#define INLINE static inline __attribute__((always_inline))

/* One element a row is the common case and has no inner loop. size is a constant. */
INLINE void read_rows(size_t size, int64_t n, const int64_t *at, char *restrict plain, int64_t step,
                      const char *restrict indexed, const lm_index_row *row) {
    if (row->length == 1) {
        for (int64_t i = 0; i < n; i++)
            memcpy(plain + i * step, indexed + at[i], size);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < row->length; k++)
            memcpy(plain + i * step + k * row->plain, indexed + at[i] + k * row->indexed, size);
    }
}

INLINE void write_rows(size_t size, int64_t n, const int64_t *at, const char *plain, int64_t step,
                       char *indexed, const lm_index_row *row) {
    if (row->length == 1) {
        for (int64_t i = 0; i < n; i++)
            memcpy(indexed + at[i], plain + i * step, size);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < row->length; k++)
            memcpy(indexed + at[i] + k * row->indexed, plain + i * step + k * row->plain, size);
    }
}

#define ARGUMENTS                                                                                  \
    int64_t n, const int64_t *at, char *plain, int64_t step, char *indexed, const lm_index_row *row
#define READ(size)                                                                                 \
    static void read_##size(ARGUMENTS) {                                                           \
        read_rows(size, n, at, plain, step, indexed, row);                                         \
    }
#define WRITE(size)                                                                                \
    static void write_##size(ARGUMENTS) {                                                          \
        write_rows(size, n, at, plain, step, indexed, row);                                        \
    }
#define SIZES(X) X(1) X(2) X(4) X(8) X(16) X(32) X(64)
SIZES(READ)
SIZES(WRITE)

static void read_block(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++)
        memcpy(plain + i * step, indexed + at[i], (size_t)row->length);
}

static void write_block(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++)
        memcpy(indexed + at[i], plain + i * step, (size_t)row->length);
}

static void read_past(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++)
        lm_stream_copy((size_t)row->length, indexed + at[i], plain + i * step);
    lm_stream_end();
}

static bool valid(int64_t n, const int64_t *v, int64_t base, int64_t size) {
    uint64_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint64_t)v[i] - (uint64_t)base >= (uint64_t)size;
    return outside == 0;
}

/* Products of halves are one instruction, of whole numbers several. */
static bool place(int64_t n, const int64_t *v, int64_t base, int64_t size, int64_t step,
                  int64_t *at) {
    uint64_t outside = 0, most = (uint64_t)size, stride = (uint64_t)step;
    int64_t i = 0;
    if (most >> 32 == 0 && stride >> 32 == 0) {
        const int64_t lanes = LM_VECTOR / 8;
        lm_v64 wrong = {0}, from = (lm_v64){0} + (uint64_t)base, by = (lm_v64){0} + stride;
        for (; i + lanes <= n; i += lanes) {
            lm_v64 k, to;
            memcpy(&k, v + i, sizeof k);
            memcpy(&to, at + i, sizeof to);
            k -= from;
            wrong |= (lm_v64)(k >= most);
            to += lm_vector_mul_low(k, by);
            memcpy(at + i, &to, sizeof to);
        }
        for (int k = 0; k < lanes; k++)
            outside |= wrong[k];
    }
    for (; i < n; i++) {
        uint64_t k = (uint64_t)v[i] - (uint64_t)base;
        outside |= k >= most;
        at[i] = (int64_t)((uint64_t)at[i] + k * stride);
    }
    return outside == 0;
}

/* Counts in bytes, 64 side by side, before they could overflow. */
static int64_t count(int64_t n, const uint8_t *x) {
    int64_t total = 0, i = 0;
    while (n - i >= 64) {
        uint8_t lanes[64] = {0};
        for (int rows = 0; rows < 255 && n - i >= 64; rows++, i += 64) {
            for (int k = 0; k < 64; k++)
                lanes[k] = (uint8_t)(lanes[k] + (x[i + k] != 0));
        }
        for (int k = 0; k < 64; k++)
            total += lanes[k];
    }
    for (; i < n; i++)
        total += x[i] != 0;
    return total;
}

/* Without branches: a random mask would miss every other one. */
static int64_t find(int64_t n, const uint8_t *x, int64_t *at) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        at[found] = i;
        found += x[i] != 0;
    }
    return found;
}

#define READ_NAME(size) read_##size,
#define WRITE_NAME(size) write_##size,
#define JOIN_ENTRY(how, token, ENUM, ...) [LUMA_##ENUM] = lm_index_##how##_##token,
#define JOINS(how) LM_INTS(JOIN_ENTRY, how) LM_WIDE_FLOATS(JOIN_ENTRY, how)

extern const lm_index_kernels LM_TABLE(index);
const lm_index_kernels LM_TABLE(index) = {
    .read = {SIZES(READ_NAME)},
    .write = {SIZES(WRITE_NAME)},
    .read_block = read_block,
    .read_past = read_past,
    .write_block = write_block,
    .join = {{JOINS(add)},
             {JOINS(mul)},
             {[LUMA_BOOL] = lm_index_max_u8, JOINS(max)},
             {[LUMA_BOOL] = lm_index_min_u8, JOINS(min)}},
    .valid = valid,
    .place = place,
    .count = count,
    .find = find,
};
