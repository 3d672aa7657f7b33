/* sort.h -- what kernels that sort share: keys of elements, and how results leave.
** Layer: kernels/cuda. */
#ifndef lm_cuda_sort_h
#define lm_cuda_sort_h

#include "cuda/kernel.h"
#include "dtype.h"
#include "order.h"

/* The key of the element at p, turned round by `flip`. */
LM_FN uint64_t sort_key(int dtype, const char *p, uint64_t flip) {
    switch (dtype) {
#define SORT_KEY(_, token, ENUM, Bits, ...)                                                        \
    case LUMA_##ENUM:                                                                              \
        return lm_order_##token(*(const Bits *)(const void *)p) ^ flip;
        LM_ORDERS(SORT_KEY, _)
#undef SORT_KEY
    }
    return 0;
}

/* One element of 1 << log bytes. */
LM_FN void sort_move(int log, const char *x, char *y) {
    switch (log) {
    case 0:
        *(uint8_t *)(void *)y = *(const uint8_t *)(const void *)x;
        break;
    case 1:
        *(uint16_t *)(void *)y = *(const uint16_t *)(const void *)x;
        break;
    case 2:
        *(uint32_t *)(void *)y = *(const uint32_t *)(const void *)x;
        break;
    default:
        *(uint64_t *)(void *)y = *(const uint64_t *)(const void *)x;
        break;
    }
}

/* Where a row lies, and element `at` of it as number `j` of its order. */
typedef struct {
    const char *x;
    char *values, *positions;
} sort_row;
#define SORT_ROW(a, number, out)                                                                   \
    do {                                                                                           \
        int64_t row_ = (a).first + (number), at_;                                                  \
        LM_OFFSET((a).walk, row_, (a).x_row, at_);                                                 \
        (out).x = (const char *)(a).x + at_;                                                       \
        (out).values = (out).positions = 0;                                                        \
        if ((a).values) {                                                                          \
            LM_OFFSET((a).walk, row_, (a).values_row, at_);                                        \
            (out).values = (char *)(a).values + at_;                                               \
        }                                                                                          \
        if ((a).positions) {                                                                       \
            LM_OFFSET((a).walk, row_, (a).positions_row, at_);                                     \
            (out).positions = (char *)(a).positions + at_;                                         \
        }                                                                                          \
    } while (0)
#define SORT_GIVE(a, row, j, at)                                                                   \
    do {                                                                                           \
        int64_t to_ = (j) - (a).from;                                                              \
        if (to_ < 0) break;                                                                        \
        if ((row).values)                                                                          \
            sort_move((a).log, (row).x + (at) * (a).x_step, (row).values + to_ * (a).values_step); \
        if ((row).positions)                                                                       \
            *(int64_t *)(void *)((row).positions + to_ * (a).positions_step) =                     \
                (at) + (a).index_base;                                                             \
    } while (0)

/* Entry i of positions of 4 or 8 bytes. */
#define SORT_AT(at, wide, i)                                                                       \
    ((wide) ? (int64_t)((const uint64_t *)(at))[i] : (int64_t)((const uint32_t *)(at))[i])

#endif
