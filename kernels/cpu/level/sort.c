/* sort.c -- keys that order as the elements do, and the loops that sort words of them; built once
** per level. Layer: kernels/cpu/level. */
#include <string.h>

#include "cpu/level.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- keys: as wide as the element, the greatest for every NaN, one for both zeros ----------*/

INLINE uint64_t key_of_float(uint64_t bits, uint64_t sign, uint64_t greatest) {
    uint64_t magnitude = bits & (sign - 1);
    if (magnitude > greatest) return 2 * sign - 1;
    if (magnitude == 0) return sign;
    return bits & sign ? sign - magnitude : sign + magnitude;
}

#define LOAD(T)                                                                                    \
    T v;                                                                                           \
    memcpy(&v, p, sizeof v)

INLINE uint64_t key_b8(const char *p) {
    return *p != 0;
}
INLINE uint64_t key_u8(const char *p) {
    return (uint8_t)*p;
}
INLINE uint64_t key_i8(const char *p) {
    return (uint8_t)*p ^ 0x80u;
}
INLINE uint64_t key_i16(const char *p) {
    LOAD(uint16_t);
    return v ^ 0x8000u;
}
INLINE uint64_t key_i32(const char *p) {
    LOAD(uint32_t);
    return v ^ 0x80000000u;
}
INLINE uint64_t key_u32(const char *p) {
    LOAD(uint32_t);
    return v;
}
INLINE uint64_t key_i64(const char *p) {
    LOAD(uint64_t);
    return v ^ UINT64_C(1) << 63;
}
INLINE uint64_t key_f8(const char *p) {
    return key_of_float((uint8_t)*p, 0x80, 0x7e);
}
INLINE uint64_t key_f16(const char *p) {
    LOAD(uint16_t);
    return key_of_float(v, 0x8000, 0x7c00);
}
INLINE uint64_t key_bf16(const char *p) {
    LOAD(uint16_t);
    return key_of_float(v, 0x8000, 0x7f80);
}
INLINE uint64_t key_f32(const char *p) {
    LOAD(uint32_t);
    return key_of_float(v, UINT64_C(1) << 31, 0x7f800000);
}
INLINE uint64_t key_f64(const char *p) {
    LOAD(uint64_t);
    return key_of_float(v, UINT64_C(1) << 63, 0x7ff0000000000000);
}

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
