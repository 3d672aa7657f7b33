/* math_f32.h -- the transcendental words of float32, for C and CUDA: no branch, no table but that
** of huge angles, so that a loop over them becomes vectors. Every operation is written out, so the
** levels with a fused multiply-add and CUDA give the same bits. Layer: kernels.
**
** Coefficients: fitted with sollya 8, fpminimax(f, monomials, single, interval) in the weight of
** the result, the first terms held. "Error" is that of the polynomial alone; "ulp" is the largest
** error of the word, at a level with fused multiply-add: of pow over drawn pairs, of the others over
** every float where they vary. spec/c/math_test.c measures a part of them. */
#ifndef lm_math_f32_h
#define lm_math_f32_h

#include "math_f64.h" /* pow goes through double */

#define LM_INF_F32 lm_float_f32(0x7f800000u)
#define LM_NAN_F32 lm_float_f32(0x7fc00000u)
/* Adding it rounds |x| < 2^22 to a whole number, which then stands in the low bits. */
#define LM_ROUNDER_F32 0x1.8p23f
/* ln 2 in two parts; the first has 15 bits, so that its product with an exponent is exact. */
#define LM_LN2_HI_F32 0x1.62e4p-1f
#define LM_LN2_LO_F32 0x1.7f7d1cp-20f
#define LM_LOG2E_F32 0x1.715476p+0f

/* (e^r - 1 - r) / r^2 for |r| <= 0.3467. Error of e^r 2^-28.2. */
LM_FN float lm_exp_tail_f32(float r) {
    float p = 0x1.694cc6p-10f;
    p = lm_fma_f32(p, r, 0x1.123986p-7f);
    p = lm_fma_f32(p, r, 0x1.555a26p-5f);
    p = lm_fma_f32(p, r, 0x1.555492p-3f);
    return lm_fma_f32(p, r, 0x1.fffffap-2f);
}

/* e^r for |r| <= 0.3467. */
LM_FN float lm_exp_near_0_f32(float r) {
    return lm_fma_f32(lm_fma_f32(lm_exp_tail_f32(r), r, 1.0f), r, 1.0f);
}

/* x * 2^n for -252 <= n <= 254; rounded once, if at all, where x * 2^(n/2) is a normal float. */
LM_FN float lm_scale_f32(float x, int32_t n) {
    int32_t half = n >> 1;
    float a = lm_float_f32((uint32_t)(half + 127) << 23);
    float b = lm_float_f32((uint32_t)(n - half + 127) << 23);
    return x * a * b;
}

/* x = n ln 2 + r with n whole, |r| <= 0.3467, for |x| < 2^15. */
LM_FN float lm_exp_reduce_f32(float x, int32_t *n) {
    float t = lm_fma_f32(x, LM_LOG2E_F32, LM_ROUNDER_F32);
    float k = t - LM_ROUNDER_F32;
    *n = (int32_t)(lm_bits_f32(t) - lm_bits_f32(LM_ROUNDER_F32));
    return lm_fma_f32(-k, LM_LN2_LO_F32, lm_fma_f32(-k, LM_LN2_HI_F32, x));
}

/* e^x. ulp 0.9. */
LM_FN float lm_exp_f32(float x) {
    int32_t n;
    float c = x > 89.0f ? 89.0f : x; /* beyond: infinity and 0 all the same; NaN stays */
    c = c < -104.0f ? -104.0f : c;
    float r = lm_exp_reduce_f32(c, &n);
    return lm_scale_f32(lm_exp_near_0_f32(r), n);
}

/* x = 2^k (1 + f), |f| <= 1/3, for finite x > 0; f is the result, k a whole number. */
LM_FN float lm_split_f32(float x, float *k) {
    float scaled = x < 0x1p-126f ? x * 0x1p23f : x;
    int32_t e = (int32_t)(lm_bits_f32(scaled) - 0x3f2aaaabu) >> 23;
    *k = (x < 0x1p-126f ? -23.0f : 0.0f) + (float)e;
    return lm_float_f32(lm_bits_f32(scaled) - ((uint32_t)e << 23)) - 1.0f;
}

/* log(1 + f) - f for |f| <= 1/3, as f^2 Q(f). Error of the logarithm 2^-30 absolute. */
LM_FN float lm_log_tail_f32(float f) {
    float q = -0x1.115be6p-3f;
    q = lm_fma_f32(q, f, 0x1.21e85cp-3f);
    q = lm_fma_f32(q, f, -0x1.ee8a26p-4f);
    q = lm_fma_f32(q, f, 0x1.1e0db4p-3f);
    q = lm_fma_f32(q, f, -0x1.55ca8p-3f);
    q = lm_fma_f32(q, f, 0x1.99de18p-3f);
    q = lm_fma_f32(q, f, -0x1.fffddcp-3f);
    q = lm_fma_f32(q, f, 0x1.5554e2p-2f);
    q = lm_fma_f32(q, f, -0.5f);
    return q * (f * f);
}

/* k ln 2 + log(1 + f). */
LM_FN float lm_log_joined_f32(float k, float f) {
    float y = lm_fma_f32(k, LM_LN2_LO_F32, lm_log_tail_f32(f)) + f;
    return lm_fma_f32(k, LM_LN2_HI_F32, y);
}

/* y, which is a logarithm of x where 0 < x < infinity, or what it is elsewhere. */
LM_FN float lm_log_of_f32(float x, float y) {
    y = x < LM_INF_F32 ? y : x;
    float out = x == 0.0f ? -LM_INF_F32 : LM_NAN_F32;
    return x > 0.0f ? y : out;
}

/* Natural logarithm. ulp 0.9. */
LM_FN float lm_log_f32(float x) {
    float k, f = lm_split_f32(x, &k);
    return lm_log_of_f32(x, lm_log_joined_f32(k, f));
}

/* Hyperbolic tangent. ulp 1.4. Below 0.625 an odd polynomial (error 2^-27.7), above 1 - 2 / (e^2x
** + 1). */
LM_FN float lm_tanh_f32(float x) {
    int32_t n;
    float a = lm_abs_f32(x);
    float c = a > 9.1f ? 9.1f : a; /* from there on 1; NaN stays */
    float e = lm_exp_near_0_f32(lm_exp_reduce_f32(c + c, &n));
    e = lm_float_f32(lm_bits_f32(e) + ((uint32_t)n << 23));
    float big = 1.0f - 2.0f / (e + 1.0f);
    float s = a * a;
    float p = -0x1.758facp-8f;
    p = lm_fma_f32(p, s, 0x1.5211c4p-6f);
    p = lm_fma_f32(p, s, -0x1.b838ap-5f);
    p = lm_fma_f32(p, s, 0x1.110704p-3f);
    p = lm_fma_f32(p, s, -0x1.555532p-2f);
    float small = lm_fma_f32(p * s, a, a);
    return lm_copysign_f32(a >= 0.625f ? big : small, x);
}

/* Error function. ulp 1.0. Below 0.84 an odd polynomial (error 2^-27.3), above 1 - e^q with q a
** polynomial in |x| - 0.75 (error 2^-28.4 of the result), from 4 on 1. */
LM_FN float lm_erf_f32(float x) {
    int32_t n;
    float a = lm_abs_f32(x);
    float s = a * a;
    float p = -0x1.4ec18ap-11f;
    p = lm_fma_f32(p, s, 0x1.4bd3a6p-8f);
    p = lm_fma_f32(p, s, -0x1.b741e6p-6f);
    p = lm_fma_f32(p, s, 0x1.ce25fep-4f);
    p = lm_fma_f32(p, s, -0x1.812728p-2f);
    p = lm_fma_f32(p, s, 0x1.06eba8p-3f);
    float small = lm_fma_f32(p, a, a);
    float c = (a > 4.0f ? 4.0f : a) - 0.75f; /* NaN stays */
    float q = 0x1.a72d82p-13f;
    q = lm_fma_f32(q, c, -0x1.1f67b8p-9f);
    q = lm_fma_f32(q, c, 0x1.9aa02ep-7f);
    q = lm_fma_f32(q, c, -0x1.b059ep-5f);
    q = lm_fma_f32(q, c, -0x1.9da3e8p-1f);
    q = lm_fma_f32(q, c, -0x1.1ce93ep+1f);
    q = lm_fma_f32(q, c, -0x1.3deb08p+0f);
    float e = lm_exp_near_0_f32(lm_exp_reduce_f32(q, &n));
    float big = 1.0f - lm_float_f32(lm_bits_f32(e) + ((uint32_t)n << 23));
    return lm_copysign_f32(a >= 0.84f ? big : small, x);
}

/* x times the normal distribution function of x. ulp 3.5. Relatively right in both tails; -0 at
** -infinity. Below 0.75 the function is 0.5 + x R(x^2) (error 2^-28). Above, with t = |x|, t times
** the function at -t is e^(-t^2/2) G(u), u = (t - 4) / (t + 4) (error 2^-25.4); t^2 is kept in two
** parts, since e^ makes its absolute error relative. */
LM_FN float lm_gelu_f32(float x) {
    int32_t n;
    float a = lm_abs_f32(x);
    float s = x * x;
    float p = 0x1.a3f0d8p-14f;
    p = lm_fma_f32(p, s, -0x1.34ac48p-10f);
    p = lm_fma_f32(p, s, 0x1.46b776p-7f);
    p = lm_fma_f32(p, s, -0x1.1057ccp-4f);
    p = lm_fma_f32(p, s, 0x1.988452p-2f);
    float small = x * lm_fma_f32(p, x, 0.5f);
    float t = a > 14.6f ? 14.6f : a; /* below the least float from there on */
    float u = (t - 4.0f) / (t + 4.0f);
    float g = 0x1.961fe4p-11f;
    g = lm_fma_f32(g, u, -0x1.f7fb68p-11f);
    g = lm_fma_f32(g, u, -0x1.66d25ap-8f);
    g = lm_fma_f32(g, u, 0x1.b12b14p-6f);
    g = lm_fma_f32(g, u, -0x1.025228p-4f);
    g = lm_fma_f32(g, u, 0x1.9adb32p-4f);
    g = lm_fma_f32(g, u, -0x1.c41d5ep-4f);
    g = lm_fma_f32(g, u, 0x1.2dda0cp-4f);
    g = lm_fma_f32(g, u, 0x1.82b4bcp-2f);
    float h = t * t;
    float low = lm_fma_exact_f32(t, t, -h);
    float r = lm_fma_f32(-0.5f, low, lm_exp_reduce_f32(-0.5f * h, &n));
    float y = lm_scale_f32(lm_exp_near_0_f32(r) * g, n);
    float big = x < 0.0f ? -y : x - y;
    return a >= 0.75f ? big : small;
}

/* Angles. Up to this bound x - n pi/2 is exact enough in three steps; lm_sin_fast_f32 and
** lm_cos_fast_f32 want |x| <= the bound or NaN. Beyond it lies a reduction by integers with a
** table look-up, which no loop should pay for: kernels look at a block of x first and run the fast
** word where no |x| of it is above the bound, else the complete one. Both give the same bits. */
#define LM_ANGLE_FAST_F32 0x1p17f
LM_FN int lm_angle_is_small_f32(float x) {
    return !(lm_abs_f32(x) > LM_ANGLE_FAST_F32);
}

/* sin of r + quarter pi/2, |r| <= 0.786: an odd (error 2^-27.9) or an even (2^-33) polynomial. */
LM_FN float lm_sin_quarter_f32(float r, uint32_t quarter) {
    float s = r * r;
    float p = -0x1.9952ecp-13f;
    p = lm_fma_f32(p, s, 0x1.110776p-7f);
    p = lm_fma_f32(p, s, -0x1.555546p-3f);
    float odd = lm_fma_f32(p * s, r, r);
    float q = 0x1.99e8fcp-16f;
    q = lm_fma_f32(q, s, -0x1.6c0c2ap-10f);
    q = lm_fma_f32(q, s, 0x1.55554ap-5f);
    q = lm_fma_f32(q, s, -0.5f);
    float even = lm_fma_f32(q, s, 1.0f);
    float y = (quarter & 1) ? even : odd;
    return lm_float_f32(lm_bits_f32(y) ^ (quarter & 2) << 30);
}

/* x = r + n pi/2 for 0 <= x <= the bound; n in the low bits of *quarter. Each step is exact or
** rounds the result, not the product. */
LM_FN float lm_angle_fast_f32(float x, uint32_t *quarter) {
    float t = lm_fma_f32(x, 0x1.45f306p-1f, LM_ROUNDER_F32);
    float n = t - LM_ROUNDER_F32;
    *quarter = lm_bits_f32(t);
    float r = lm_fma_exact_f32(-n, 0x1.921fb6p+0f, x);
    r = lm_fma_exact_f32(-n, -0x1.777a5cp-25f, r);
    return lm_fma_exact_f32(-n, -0x1.ee59dap-50f, r);
}

/* The same for finite x from the bound on. 2 x / pi modulo 4 as a fixed-point number: the 24 bits
** of x times the 96 bits of 1 / pi that count; the table holds 1 / pi after 8 zeros. */
LM_FN float lm_angle_huge_f32(float x, uint32_t *quarter) {
    LM_LOOKUP uint32_t inverse_pi[8] = {0x00517cc1, 0xb727220a, 0x94fe13ab, 0xe8fa9a6e,
                                        0xe06db14a, 0xcc9e21c8, 0x20ff28b1, 0xd5ef5de2};
    uint32_t bits = lm_bits_f32(x);
    uint32_t start = (bits >> 23) - 143, word = start >> 5, shift = start & 31;
    uint64_t m = (bits & 0x7fffffu) | 0x800000u;
    uint64_t a = ((uint64_t)inverse_pi[word] << 32) | inverse_pi[word + 1];
    uint64_t b = ((uint64_t)inverse_pi[word + 2] << 32) | inverse_pi[word + 3];
    uint64_t high = (a << shift) | ((b >> 32) << shift >> 32);
    uint64_t low = (b << shift) >> 32;
    uint64_t quarters = m * high + (m * low >> 32);
    *quarter = (uint32_t)((quarters + 0x2000000000000000u) >> 62);
    return (float)((double)(int64_t)(quarters << 2) * 0x1.921fb54442d18p-64);
}

/* Sine. ulp 1.55. The sign of x comes last, so that of -0 stays. */
LM_FN float lm_sin_fast_f32(float x) {
    uint32_t quarter;
    float r = lm_angle_fast_f32(lm_abs_f32(x), &quarter);
    float y = lm_sin_quarter_f32(r, quarter);
    return lm_float_f32(lm_bits_f32(y) ^ (lm_bits_f32(x) & 0x80000000u));
}

/* Cosine. ulp 1.55. */
LM_FN float lm_cos_fast_f32(float x) {
    uint32_t quarter;
    float r = lm_angle_fast_f32(lm_abs_f32(x), &quarter);
    return lm_sin_quarter_f32(r, quarter + 1);
}

LM_FN float lm_sin_f32(float x) {
    uint32_t quarter;
    float a = lm_abs_f32(x);
    if (lm_angle_is_small_f32(x)) return lm_sin_fast_f32(x);
    if (a == LM_INF_F32) return LM_NAN_F32;
    float r = lm_angle_huge_f32(a, &quarter);
    float y = lm_sin_quarter_f32(r, quarter);
    return lm_float_f32(lm_bits_f32(y) ^ (lm_bits_f32(x) & 0x80000000u));
}

LM_FN float lm_cos_f32(float x) {
    uint32_t quarter;
    float a = lm_abs_f32(x);
    if (lm_angle_is_small_f32(x)) return lm_cos_fast_f32(x);
    if (a == LM_INF_F32) return LM_NAN_F32;
    float r = lm_angle_huge_f32(a, &quarter);
    return lm_sin_quarter_f32(r, quarter + 1);
}

/* log2 a for finite a > 0. a = 2^k (1 + f); error 2^-38.5. */
LM_FN double lm_log2_for_pow_f32(float a) {
    double k, f = lm_split_normal_f64((double)a, &k) - 1.0;
    double p = -0x1.3460dd6fa2bd2p-3;
    p = lm_fma_f64(p, f, 0x1.432bedea0473cp-3);
    p = lm_fma_f64(p, f, -0x1.c9a31c2f0850ep-4);
    p = lm_fma_f64(p, f, 0x1.f9c31b9b030cdp-4);
    p = lm_fma_f64(p, f, -0x1.28fd1d350ad0fp-3);
    p = lm_fma_f64(p, f, 0x1.4986f77a51d34p-3);
    p = lm_fma_f64(p, f, -0x1.71426f41df63ep-3);
    p = lm_fma_f64(p, f, 0x1.a60ad5d066e08p-3);
    p = lm_fma_f64(p, f, -0x1.ec710a3309745p-3);
    p = lm_fma_f64(p, f, 0x1.2776e33d3262bp-2);
    p = lm_fma_f64(p, f, -0x1.715475c3dad11p-2);
    p = lm_fma_f64(p, f, 0x1.ec709d8d68a8bp-2);
    p = lm_fma_f64(p, f, -0x1.71547652ee513p-1);
    p = lm_fma_f64(p, f, 0x1.71547652bc271p0);
    return lm_fma_f64(p, f, k);
}

/* 2^z rounded to float, z clamped to where floats are. Error 2^-28.8. */
LM_FN float lm_exp2_for_pow_f32(double z) {
    double c = z > 130.0 ? 130.0 : z; /* NaN stays */
    c = c < -160.0 ? -160.0 : c;
    double t = c + LM_ROUNDER_F64;
    double g = c - (t - LM_ROUNDER_F64);
    double p = 0x1.4278e5fa9de78p-13;
    p = lm_fma_f64(p, g, 0x1.5f4553ff53f9p-10);
    p = lm_fma_f64(p, g, 0x1.3b2c96c9aa336p-7);
    p = lm_fma_f64(p, g, 0x1.c6aed4f186f34p-5);
    p = lm_fma_f64(p, g, 0x1.ebfbdd2f82f6fp-3);
    p = lm_fma_f64(p, g, 0x1.62e430c7b13a8p-1);
    p = lm_fma_f64(p, g, 1.0);
    return (float)lm_scale_normal_f64(p, t);
}

/* x to the power y, with the special cases of C's pow. ulp 0.6. Through double: a float logarithm
** has too few bits for the product with y. */
LM_FN float lm_pow_f32(float x, float y) {
    float a = lm_abs_f32(x), b = lm_abs_f32(y);
    double l = lm_log2_for_pow_f32(a);
    l = a == 0.0f ? (double)-LM_INF_F32 : l;
    l = a < LM_INF_F32 ? l : (double)a;
    double z = a == 1.0f ? 0.0 : l * (double)y; /* (-1)^infinity is 1 */
    float r = lm_exp2_for_pow_f32(z);
    int32_t i = (int32_t)(b < 0x1p24f ? b : 0.0f); /* from 2^24 on all floats are even */
    int32_t whole = (b >= 0x1p24f) | ((float)i == b);
    uint32_t sign = ((float)i == b ? (uint32_t)i << 31 : 0u) & lm_bits_f32(x);
    r = lm_float_f32(lm_bits_f32(r) ^ sign);
    int32_t undefined = (x < 0.0f) & (x > -LM_INF_F32) & !whole;
    r = (undefined | (y != y)) ? LM_NAN_F32 : r;
    return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : r;
}

#endif
