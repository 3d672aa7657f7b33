/* bits.h -- what the scalar words stand on: one qualifier for C and CUDA, bit casts, fused
** multiply-add by name, the high half of a product. C, C++ and CUDA. Layer: kernels; includes
** nothing of luma. */
#ifndef lm_bits_h
#define lm_bits_h

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/* LM_FN: a word that melts into the loop that uses it. LM_LOOKUP: a constant array. */
#if defined(__CUDACC__)
#define LM_FN static __device__ __forceinline__
#define LM_LOOKUP static __device__ const
#else
#define LM_FN static inline __attribute__((always_inline))
#define LM_LOOKUP static const
#endif

/* An emulated device has the instruction as a real one has: where the host lacks it, libm serves. */
#if defined(__CUDACC__) || defined(LM_EMULATOR) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define LM_HAS_FMA 1
#else
#define LM_HAS_FMA 0
#endif

LM_FN uint32_t lm_bits_f32(float x) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(x);
#else
    union {
        float value;
        uint32_t bits;
    } u;
    u.value = x;
    return u.bits;
#endif
}

LM_FN float lm_float_f32(uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    union {
        uint32_t bits;
        float value;
    } u;
    u.bits = bits;
    return u.value;
#endif
}

LM_FN uint64_t lm_bits_f64(double x) {
#if defined(__CUDA_ARCH__)
    return (uint64_t)__double_as_longlong(x);
#else
    union {
        double value;
        uint64_t bits;
    } u;
    u.value = x;
    return u.bits;
#endif
}

LM_FN double lm_float_f64(uint64_t bits) {
#if defined(__CUDA_ARCH__)
    return __longlong_as_double((long long)bits);
#else
    union {
        uint64_t bits;
        double value;
    } u;
    u.bits = bits;
    return u.value;
#endif
}

LM_FN float lm_abs_f32(float x) {
    return lm_float_f32(lm_bits_f32(x) & 0x7fffffffu);
}

LM_FN double lm_abs_f64(double x) {
    return lm_float_f64(lm_bits_f64(x) & 0x7fffffffffffffffu);
}

/* |x| with the sign of y. */
LM_FN float lm_copysign_f32(float x, float y) {
    return lm_float_f32((lm_bits_f32(x) & 0x7fffffffu) | (lm_bits_f32(y) & 0x80000000u));
}

LM_FN double lm_copysign_f64(double x, double y) {
    return lm_float_f64((lm_bits_f64(x) & 0x7fffffffffffffffu) |
                        (lm_bits_f64(y) & 0x8000000000000000u));
}

/* a * b + c, rounded once where the machine has the instruction; elsewhere rounded twice. The
** compiler never contracts by itself: this is the only way to a fused operation. */
LM_FN float lm_fma_f32(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#elif LM_HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

LM_FN double lm_fma_f64(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
    return __fma_rn(a, b, c);
#elif LM_HAS_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* a * b + c where the product must not be rounded, on any machine: for reductions and error terms.
** Without the instruction a float goes through double (the sum is then rounded twice). */
LM_FN float lm_fma_exact_f32(float a, float b, float c) {
#if LM_HAS_FMA
    return lm_fma_f32(a, b, c);
#else
    return (float)((double)a * (double)b + (double)c);
#endif
}

/* Without the instruction the product is split (Dekker), which wants |a|, |b| < 2^995; the sum is
** then good to about 2^-100 of the larger term. */
LM_FN double lm_fma_exact_f64(double a, double b, double c) {
#if LM_HAS_FMA
    return lm_fma_f64(a, b, c);
#else
    double ta = a * 0x1.0000002p27, tb = b * 0x1.0000002p27;
    double ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
    double p = a * b, e = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    double s = p + c, z = s - p;
    return s + (((p - (s - z)) + (c - z)) + e);
#endif
}

/* The high 64 bits of a product. */
LM_FN uint64_t lm_mulhi_u64(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
    return __umul64hi(a, b);
#else
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)a * b) >> 64);
#endif
}

#endif
