/* words.h -- the words that rows of ops.def are made of, for one compute type. Template: define
** LM_T as a token (b8 u8 i8 i16 i32 u32 i64 f32 f64) and include; the words then mean that type
** until the next inclusion. C, C++ and CUDA. Layer: kernels.
**
** All words are total. Integers wrap in two's complement; MIN // -1 = MIN, MIN % -1 = 0; division
** by zero gives 0, for the launcher has refused it before. A shift by the width or more gives 0, or
** the sign of a signed number moved right; the launcher refuses negative counts. */
#include <math.h>

#include "math_f32.h"
#include "math_f64.h"
#include "math_logs.h"
#include "math_rare.h"
#include "scalar.h"

#ifndef lm_words_h
#define lm_words_h

#define LM_NAME_(name, token) lm_##name##_##token
#define LM_NAME__(name, token) LM_NAME_(name, token)
#define LM_NAME(name) LM_NAME__(name, LM_T)

#define LM_C LM_NAME(c) /* the C type of LM_T */
#define K(v) ((LM_C)(v))
#define P(i) p##i

#define NEG(a) LM_NAME(neg)(a)
#define ABS(a) LM_NAME(abs)(a)
#define SIGN(a) LM_NAME(sign)(a)
#define ADD(a, b) LM_NAME(add)(a, b)
#define SUB(a, b) LM_NAME(sub)(a, b)
#define MUL(a, b) LM_NAME(mul)(a, b)
#define DIV(a, b) LM_NAME(div)(a, b)
#define FMA(a, b, c) LM_NAME(fused)(a, b, c)
#define FLOOR(a) LM_NAME(floor)(a)
#define CEIL(a) LM_NAME(ceil)(a)
#define ROUND(a) LM_NAME(round)(a)
#define TRUNC(a) LM_NAME(trunc)(a)
#define MAX(a, b) LM_NAME(max)(a, b)
#define MIN(a, b) LM_NAME(min)(a, b)
#define FLOORDIV(a, b) LM_NAME(floordiv)(a, b)
#define TRUNCDIV(a, b) LM_NAME(truncdiv)(a, b)
#define REMAINDER(a, b) LM_NAME(remainder)(a, b)
#define FMOD(a, b) LM_NAME(fmod)(a, b)
#define POW(a, b) LM_NAME(pow)(a, b)
#define NOT(a) LM_NAME(not )(a)
#define AND(a, b) LM_NAME (and)(a, b)
#define OR(a, b) LM_NAME(or)(a, b)
#define XOR(a, b) LM_NAME (xor)(a, b)
#define LSHIFT(a, b) LM_NAME(lshift)(a, b)
#define RSHIFT(a, b) LM_NAME(rshift)(a, b)
#define EQ(a, b) ((uint8_t)((a) == (b)))
#define NE(a, b) ((uint8_t)((a) != (b)))
#define LT(a, b) ((uint8_t)((a) < (b)))
#define LE(a, b) ((uint8_t)((a) <= (b)))
#define ISNAN(a) LM_NAME(isnan)(a)
#define ISINF(a) LM_NAME(isinf)(a)
#define ISFINITE(a) LM_NAME(isfinite)(a)
#define SELECT(mask, a, b) ((mask) ? (a) : (b))
#define SQRT(a) LM_NAME(sqrt)(a)
#define EXP(a) LM_NAME(exp)(a)
#define LOG(a) LM_NAME(log)(a)
#define SIN(a) LM_NAME(sin)(a)
#define COS(a) LM_NAME(cos)(a)
#define TANH(a) LM_NAME(tanh)(a)
#define ERF(a) LM_NAME(erf)(a)
#define GELU(a) LM_NAME(gelu)(a)
#define EXP2(a) LM_NAME(exp2)(a)
#define EXPM1(a) LM_NAME(expm1)(a)
#define LOG1P(a) LM_NAME(log1p)(a)
#define LOG2(a) LM_NAME(log2)(a)
#define LOG10(a) LM_NAME(log10)(a)
#define SINH(a) LM_NAME(sinh)(a)
#define COSH(a) LM_NAME(cosh)(a)
#define TAN(a) LM_NAME(tan)(a)
#define ASIN(a) LM_NAME(asin)(a)
#define ACOS(a) LM_NAME(acos)(a)
#define ATAN(a) LM_NAME(atan)(a)
#define ASINH(a) LM_NAME(asinh)(a)
#define ACOSH(a) LM_NAME(acosh)(a)
#define ATANH(a) LM_NAME(atanh)(a)
#define CBRT(a) LM_NAME(cbrt)(a)
#define LGAMMA(a) LM_NAME(lgamma)(a)
#define DIGAMMA(a) LM_NAME(digamma)(a)
#define ERFC(a) LM_NAME(erfc)(a)
#define ERFINV(a) LM_NAME(erfinv)(a)
#define LOGIT(a) LM_NAME(logit)(a)
#define SINC(a) LM_NAME(sinc)(a)
#define MISH(a) LM_NAME(mish)(a)
#define LOGSIGMOID(a) LM_NAME(logsigmoid)(a)
#define GELU_TANH(a) LM_NAME(gelu_tanh)(a)
#define SOFTPLUS(a, beta, threshold) LM_NAME(softplus)(a, beta, threshold)
#define ATAN2(a, b) LM_NAME(atan2)(a, b)
#define HYPOT(a, b) LM_NAME(hypot)(a, b)
#define LOGADDEXP(a, b) LM_NAME(logaddexp)(a, b)
#define COPYSIGN(a, b) LM_NAME(copysign)(a, b)
#define POSITIVE(a, yes, no) ((a) > 0 ? (yes) : (no)) /* the second for NaN */
#define GCD(a, b) LM_NAME(gcd)(a, b)
#define LCM(a, b) LM_NAME(lcm)(a, b)
#define POPCOUNT(a) LM_NAME(popcount)(a)

/* kinds of the tokens, for #if */
#define LM_BOOL 0
#define LM_UNSIGNED 1
#define LM_SIGNED 2
#define LM_FLOAT 3
#define LM_KIND_b8 LM_BOOL
#define LM_KIND_u8 LM_UNSIGNED
#define LM_KIND_i8 LM_SIGNED
#define LM_KIND_i16 LM_SIGNED
#define LM_KIND_i32 LM_SIGNED
#define LM_KIND_u32 LM_UNSIGNED
#define LM_KIND_i64 LM_SIGNED
#define LM_KIND_f32 LM_FLOAT
#define LM_KIND_f64 LM_FLOAT
#define LM_KIND_(token) LM_KIND_##token
#define LM_KIND__(token) LM_KIND_(token)
#define LM_KIND LM_KIND__(LM_T)

/* Unsigned types to wrap in: at least 32 bits, so that no product is promoted to a signed int. */
typedef uint32_t lm_wrap_b8, lm_wrap_u8, lm_wrap_i8, lm_wrap_i16, lm_wrap_i32, lm_wrap_u32;
typedef uint64_t lm_wrap_i64;

/* a / b toward zero for b != 0 and no overflow. There is no vector division of integers; a float
** with twice their bits gives the same quotient when it is cut. Most GPUs have hardly any units for
** double, and divide integers in less time. */
LM_FN uint8_t lm_quotient_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(int32_t)((float)a / (float)b);
}
LM_FN int8_t lm_quotient_i8(int8_t a, int8_t b) {
    return (int8_t)(int32_t)((float)a / (float)b);
}
LM_FN int16_t lm_quotient_i16(int16_t a, int16_t b) {
    return (int16_t)(int32_t)((float)a / (float)b);
}
LM_FN int32_t lm_quotient_i32(int32_t a, int32_t b) {
#if defined(__CUDA_ARCH__)
    return a / b;
#else
    return (int32_t)((double)a / (double)b);
#endif
}
LM_FN uint32_t lm_quotient_u32(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return a / b;
#else
    return (uint32_t)((double)a / (double)b);
#endif
}
LM_FN int64_t lm_quotient_i64(int64_t a, int64_t b) {
    return a / b;
}

/* What the C library and the processor give for both floats. */
LM_FN float lm_sqrt_f32(float a) {
    return sqrtf(a);
}
LM_FN double lm_sqrt_f64(double a) {
    return sqrt(a);
}
LM_FN float lm_floor_f32(float a) {
    return floorf(a);
}
LM_FN double lm_floor_f64(double a) {
    return floor(a);
}
LM_FN float lm_ceil_f32(float a) {
    return ceilf(a);
}
LM_FN double lm_ceil_f64(double a) {
    return ceil(a);
}
LM_FN float lm_trunc_f32(float a) {
    return truncf(a);
}
LM_FN double lm_trunc_f64(double a) {
    return trunc(a);
}
LM_FN float lm_round_f32(float a) { /* half to even: the rounding mode is never changed */
    return rintf(a);
}
LM_FN double lm_round_f64(double a) {
    return rint(a);
}
/* Apart, lest a compiler that makes vectors calls it for every element. */
#if defined(__CUDACC__)
#define LM_APART LM_FN
#else
#define LM_APART static __attribute__((noinline, unused))
#endif
LM_APART float lm_fmod_far_f32(float a, float b) {
    return fmodf(a, b);
}
LM_APART double lm_fmod_far_f64(double a, double b) {
    return fmod(a, b);
}

/* Exact, as any fmod. The library goes bit by bit; a quotient that double holds makes it one step,
** which is not to be trusted where x < y, since y may be infinite. */
LM_FN bool lm_fmod_is_near_f32(float a, float b) {
    return (double)lm_abs_f32(a) / (double)lm_abs_f32(b) < 0x1p28;
}
LM_FN float lm_fmod_near_f32(float a, float b) {
    double x = (double)lm_abs_f32(a), y = (double)lm_abs_f32(b), q = x / y;
    /* the quotient of two floats is not within 2^-53 of a whole number unless it is one */
    double r = x - trunc(q) * y;
    return lm_copysign_f32((float)(x < y ? x : r), a);
}
LM_FN bool lm_fmod_is_near_f64(double a, double b) {
    return LM_HAS_FMA && lm_abs_f64(a) / lm_abs_f64(b) < 0x1p53;
}
LM_FN double lm_fmod_near_f64(double a, double b) {
    double x = lm_abs_f64(a), y = lm_abs_f64(b), q = x / y;
    double r = lm_fma_f64(-trunc(q), y, x); /* exact; below 0 where q was rounded up */
    r = r < 0 ? r + y : r;
    return lm_copysign_f64(x < y ? x : r, a);
}

/* Rounded once on every machine. */
LM_FN float lm_fused_f32(float a, float b, float c) {
    return fmaf(a, b, c);
}
LM_FN double lm_fused_f64(double a, double b, double c) {
    return fma(a, b, c);
}

#endif

#if LM_KIND == LM_FLOAT
#include "words_float.h"
#else
#include "words_int.h"
#endif
