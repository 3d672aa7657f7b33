/* keys.h -- numbers as integers of the same width in the same order: -0 below 0, a NaN beyond the
** infinity of its sign. Layer: kernels/cpu. */
#ifndef lm_keys_h
#define lm_keys_h

#include <stdint.h>
#include <string.h>

#define LM_KEY_INF_f32 0x7f800000
#define LM_KEY_INF_f64 0x7ff0000000000000

static inline int32_t lm_key_f32(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static inline int64_t lm_key_f64(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* Back again; whatever lies beyond the infinities is the one quiet NaN. */
static inline float lm_unkey_f32(int32_t key) {
    float x;
    int32_t bits = key ^ ((key >> 31) & INT32_MAX);
    if (key > LM_KEY_INF_f32 || key < ~LM_KEY_INF_f32) bits = 0x7fc00000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double lm_unkey_f64(int64_t key) {
    double x;
    int64_t bits = key ^ ((key >> 63) & INT64_MAX);
    if (key > LM_KEY_INF_f64 || key < ~LM_KEY_INF_f64) bits = 0x7ff8000000000000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
