/* sort.c -- keys that order as the elements do, and the loops that sort words of them; built once
** per level. Layer: kernels/cpu/level. */
#include <string.h>

#include "cpu/level.h"
#include "order.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- keys ---------------------------------------------------------------------------------*/

#define KEY_OF(_, token, ENUM, Bits, ...)                                                          \
    INLINE uint64_t key_##token(const char *p) {                                                   \
        Bits bits;                                                                                 \
        memcpy(&bits, p, sizeof bits);                                                             \
        return lm_order_##token(bits);                                                             \
    }
LM_ORDERS(KEY_OF, _)

/* ---- words --------------------------------------------------------------------------------*/

#define WORD uint64_t
#define KIND narrow
#define KEY(w) (w) /* the position decides between equal keys as their order would */
#define DIGIT(w, shift) ((w) >> 32 >> (shift))
#define AT(w) ((w)&UINT32_MAX)
#define MAKE(key, at) ((key) << 32 | (at))
#include "sort_words.h"

#define WORD lm_sort_wide
#define KIND wide
#define KEY(w) (w).key
#define DIGIT(w, shift) ((w).key >> (shift))
#define AT(w) (w).at
#define MAKE(k, a)                                                                                 \
    (lm_sort_wide) {                                                                               \
        .key = (k), .at = (a)                                                                      \
    }
#include "sort_words.h"

#define ONES(T) (UINT64_MAX >> (64 - 8 * sizeof(T)))
#define MAKE_WORDS(kind, token, ENUM, name, T, ...)                                                \
    static void make_##kind##_##token(int64_t n, const char *x, int64_t sx, bool descending,       \
                                      int64_t first, void *words) {                                \
        make_##kind(key_##token, ONES(T), sizeof(T), n, x, sx, descending, first, words);          \
    }
LM_DTYPES(MAKE_WORDS, narrow)
LM_DTYPES(MAKE_WORDS, wide)

#define MAKE_ENTRY(kind, token, ENUM, ...) [LUMA_##ENUM] = make_##kind##_##token,
#define WORDS(kind, bytes)                                                                         \
    .kind = {.size = bytes,                                                                        \
             .make = {LM_DTYPES(MAKE_ENTRY, kind)},                                                \
             .merge = merge_##kind,                                                                \
             .count = count_##kind,                                                                \
             .spread = spread_##kind,                                                              \
             .sift = sift_##kind,                                                                  \
             .positions = positions_##kind,                                                        \
             .values = {values_1_##kind, values_2_##kind, values_4_##kind, values_8_##kind}}

extern const lm_sort_kernels LM_TABLE(sort);
const lm_sort_kernels LM_TABLE(sort) = {
    WORDS(narrow, sizeof(uint64_t)),
    WORDS(wide, sizeof(lm_sort_wide)),
};
