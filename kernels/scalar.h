/* scalar.h -- one element at a time: storage to compute type and back for every dtype, and every
** conversion between dtypes, as total functions. C, C++ and CUDA; plain selects, so that loops over
** them become vectors. Layer: kernels.
**
** lm_load_T, lm_store_T     between the bits of T and its compute type
** lm_to_TO_FROM             from the compute type FROM to the storage type TO, rounded once:
**   float to integer truncates, saturates, NaN gives 0; integer to integer wraps; to bool is != 0;
**   to float rounds to nearest even. float16 and bfloat16 overflow to infinity, float8 saturates at
**   +-448; NaN stays NaN (sign and leading payload bits too, quiet, as F16C does). */
#ifndef lm_scalar_h
#define lm_scalar_h

#include "bits.h"
#include "dtype.h"

/* The C type of a token: lm_c_f32 is float. */
#define LM_TYPEDEF(_, token, ENUM, name, T, ...) typedef T lm_c_##token;
LM_DTYPES(LM_TYPEDEF, _)
#undef LM_TYPEDEF

/* ---- the small floats ---- */

LM_FN float lm_load_bf16(lm_bf16 v) {
    return lm_float_f32((uint32_t)v.bits << 16);
}

LM_FN lm_bf16 lm_store_bf16(float x) {
    uint32_t u = lm_bits_f32(x);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    uint32_t nan = (u >> 16) | 0x40u;
    lm_bf16 r;
    r.bits = (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    return r;
}

/* Subnormals go through an integer conversion: float arithmetic on subnormal operands traps into
** microcode on some machines. A GPU has instructions, which differ in the bits of NaN only. */
LM_FN float lm_load_f16(lm_f16 v) {
#if defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(v.bits));
    return x;
#else
    uint32_t sign = (uint32_t)(v.bits & 0x8000u) << 16, a = v.bits & 0x7fffu;
    uint32_t normal = (a << 13) + 0x38000000u;
    uint32_t special = (a << 13) | (a > 0x7c00u ? 0x7fc00000u : 0x7f800000u);
    uint32_t small = lm_bits_f32((float)(int32_t)a * 0x1p-24f);
    uint32_t r = a >= 0x7c00u ? special : normal;
    r = a < 0x400u ? small : r;
    return lm_float_f32(r | sign);
#endif
}

LM_FN lm_f16 lm_store_f16(float x) {
    lm_f16 h;
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
#else
    uint32_t u = lm_bits_f32(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    uint32_t special = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x3ffu) : 0x7c00u;
    /* the last place of 0.5 is 2^-24, that of subnormals; below 2^-26 nothing is left */
    uint32_t tiny = a < 0x32800000u ? 0u : a;
    uint32_t small = lm_bits_f32(lm_float_f32(tiny) + 0.5f) - 0x3f000000u;
    uint32_t r = a >= 0x477ff000u ? special : normal;
    r = a < 0x38800000u ? small : r;
    h.bits = (uint16_t)(r | sign);
#endif
    return h;
}

LM_FN float lm_load_f8(lm_f8 v) {
    uint32_t sign = (uint32_t)(v.bits & 0x80u) << 24, a = v.bits & 0x7fu;
    uint32_t normal = (a << 20) + 0x3c000000u;
    uint32_t small = lm_bits_f32((float)(int32_t)a * 0x1p-9f);
    uint32_t r = a == 0x7fu ? 0x7fc00000u : normal;
    r = a < 8u ? small : r;
    return lm_float_f32(r | sign);
}

LM_FN lm_f8 lm_store_f8(float x) {
    uint32_t u = lm_bits_f32(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    uint32_t held = a > 0x43e00000u ? 0x43e00000u : a; /* 448 */
    uint32_t normal = (held - 0x3c000000u + 0x7ffffu + ((held >> 20) & 1u)) >> 20;
    /* the last place of 2^14 is 2^-9, that of subnormals; below 2^-11 nothing is left */
    uint32_t tiny = held < 0x3a000000u ? 0u : held;
    uint32_t small = lm_bits_f32(lm_float_f32(tiny) + 0x1p14f) - 0x46800000u;
    uint32_t r = a < 0x3c800000u ? small : normal;
    r = a > 0x7f800000u ? 0x7fu : r;
    lm_f8 b;
    b.bits = (uint8_t)(r | sign);
    return b;
}

/* ---- load and store of the others ---- */

#define LM_PLAIN(_, token, ENUM, name, T, ...)                                                     \
    LM_FN T lm_load_##token(T v) {                                                                 \
        return v;                                                                                  \
    }                                                                                              \
    LM_FN T lm_store_##token(T v) {                                                                \
        return v;                                                                                  \
    }
LM_INTS(LM_PLAIN, _)
LM_WIDE_FLOATS(LM_PLAIN, _)
#undef LM_PLAIN

/* Any byte but 0 is true; stores write 0 or 1. */
LM_FN uint8_t lm_load_b8(uint8_t v) {
    return v > 1 ? 1 : v;
}
LM_FN uint8_t lm_store_b8(uint8_t v) {
    return v;
}

/* ---- round to odd: a rounding that a second one to fewer bits does not notice ---- */

/* The neighbour toward zero, with the last bit set if anything was cut off. */
LM_FN float lm_odd_f64(double x) {
    float f = (float)x;
    double back = (double)f;
    uint32_t u = lm_bits_f32(f);
    u -= lm_abs_f64(back) > lm_abs_f64(x) ? 1u : 0u;
    u |= back != x ? 1u : 0u;
    return lm_float_f32(u);
}

LM_FN float lm_odd_i64(int64_t x) {
    /* the low 11 bits become one: 53 are left, which double holds */
    int64_t cut = (x >> 11) | ((x & 0x7ff) != 0);
    int wide = x >= ((int64_t)1 << 52) || x <= -((int64_t)1 << 52);
    double d = (double)(wide ? cut : x);
    return lm_odd_f64(wide ? d * 2048.0 : d);
}

#define lm_odd_b8(x) ((float)(x))
#define lm_odd_u8(x) ((float)(x))
#define lm_odd_i8(x) ((float)(x))
#define lm_odd_i16(x) ((float)(x))
#define lm_odd_i32(x) lm_odd_f64((double)(x))
#define lm_odd_u32(x) lm_odd_f64((double)(x))
#define lm_odd_f32(x) (x)

/* ---- conversions ---- */

/* low and high are what C holds of the range of T, so that (Via) is always defined; past high comes
** top. NaN fails every comparison. */
#define LM_SATURATE(to, from, T, Via, C, low, high, top)                                           \
    LM_FN T lm_to_##to##_##from(C x) {                                                             \
        C t = x > (low) ? x : (low);                                                               \
        t = t < (high) ? t : (high);                                                               \
        T r = (T)(Via)t;                                                                           \
        r = x > (high) ? (T)(top) : r;                                                             \
        return x == x ? r : (T)0;                                                                  \
    }
LM_SATURATE(u8, f32, uint8_t, int32_t, float, 0.0f, 255.0f, UINT8_MAX)
LM_SATURATE(i8, f32, int8_t, int32_t, float, -128.0f, 127.0f, INT8_MAX)
LM_SATURATE(i16, f32, int16_t, int32_t, float, -32768.0f, 32767.0f, INT16_MAX)
LM_SATURATE(i32, f32, int32_t, int32_t, float, -0x1p31f, 0x1.fffffep30f, INT32_MAX)
LM_SATURATE(u32, f32, uint32_t, uint32_t, float, 0.0f, 0x1.fffffep31f, UINT32_MAX)
LM_SATURATE(i64, f32, int64_t, int64_t, float, -0x1p63f, 0x1.fffffep62f, INT64_MAX)
LM_SATURATE(u8, f64, uint8_t, int32_t, double, 0.0, 255.0, UINT8_MAX)
LM_SATURATE(i8, f64, int8_t, int32_t, double, -128.0, 127.0, INT8_MAX)
LM_SATURATE(i16, f64, int16_t, int32_t, double, -32768.0, 32767.0, INT16_MAX)
LM_SATURATE(i32, f64, int32_t, int32_t, double, -0x1p31, 2147483647.0, INT32_MAX)
LM_SATURATE(u32, f64, uint32_t, uint32_t, double, 0.0, 4294967295.0, UINT32_MAX)
LM_SATURATE(i64, f64, int64_t, int64_t, double, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX)
#undef LM_SATURATE

#define LM_FROM_INT(_, from, ENUM, name, C, ...)                                                   \
    LM_FN uint8_t lm_to_u8_##from(C x) {                                                           \
        return (uint8_t)x;                                                                         \
    }                                                                                              \
    LM_FN int8_t lm_to_i8_##from(C x) {                                                            \
        return (int8_t)x;                                                                          \
    }                                                                                              \
    LM_FN int16_t lm_to_i16_##from(C x) {                                                          \
        return (int16_t)x;                                                                         \
    }                                                                                              \
    LM_FN int32_t lm_to_i32_##from(C x) {                                                          \
        return (int32_t)x;                                                                         \
    }                                                                                              \
    LM_FN uint32_t lm_to_u32_##from(C x) {                                                         \
        return (uint32_t)x;                                                                        \
    }                                                                                              \
    LM_FN int64_t lm_to_i64_##from(C x) {                                                          \
        return (int64_t)x;                                                                         \
    }
LM_BOOLS(LM_FROM_INT, _)
LM_INTS(LM_FROM_INT, _)
#undef LM_FROM_INT

#define LM_FROM_ANY(_, from, ENUM, name, C, ...)                                                   \
    LM_FN uint8_t lm_to_b8_##from(C x) {                                                           \
        return x != 0;                                                                             \
    }                                                                                              \
    LM_FN lm_f8 lm_to_f8_##from(C x) {                                                             \
        return lm_store_f8(lm_odd_##from(x));                                                      \
    }                                                                                              \
    LM_FN lm_f16 lm_to_f16_##from(C x) {                                                           \
        return lm_store_f16(lm_odd_##from(x));                                                     \
    }                                                                                              \
    LM_FN lm_bf16 lm_to_bf16_##from(C x) {                                                         \
        return lm_store_bf16(lm_odd_##from(x));                                                    \
    }                                                                                              \
    LM_FN float lm_to_f32_##from(C x) {                                                            \
        return (float)x;                                                                           \
    }                                                                                              \
    LM_FN double lm_to_f64_##from(C x) {                                                           \
        return (double)x;                                                                          \
    }
LM_COMPUTE(LM_FROM_ANY, _)
#undef LM_FROM_ANY

#endif
