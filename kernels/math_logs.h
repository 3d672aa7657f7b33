/* math_logs.h -- exponentials and logarithms beside exp and log, and the tangent, of float32 and
** float64, from the parts of math_f32.h and math_f64.h, whose remarks hold here too. Layer: kernels. */
#ifndef lm_math_logs_h
#define lm_math_logs_h

#include "math_f32.h"
#include "math_f64.h"

/* ---- float32 ---- */

/* (e^x - 1) 2^shift, shift 0 or -1, which may hold what e^x - 1 does not. ulp 1.8. x = n ln 2 + r:
** (e^r - 1 + (1 - 2^-n)) 2^n. The sign is that of x. */
LM_FN float lm_expm1_shifted_f32(float x, int32_t shift) {
    int32_t n;
    float c = x > 90.0f ? 90.0f : x; /* beyond: infinity and -1 all the same; NaN stays */
    c = c < -20.0f ? -20.0f : c;
    float r = lm_exp_reduce_f32(c, &n);
    float e = lm_fma_f32(r * r, lm_exp_tail_f32(r), r);
    int32_t few = n > 30 ? 30 : n;
    float one = 1.0f - lm_float_f32((uint32_t)(127 - few) << 23);
    return lm_copysign_f32(lm_scale_f32(e + one, n + shift), x);
}
LM_FN float lm_expm1_f32(float x) {
    return lm_expm1_shifted_f32(x, 0);
}

/* 2^x. ulp 0.9. */
LM_FN float lm_exp2_f32(float x) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -151.0f ? -151.0f : c;
    float t = c + LM_ROUNDER_F32, g = c - (t - LM_ROUNDER_F32);
    int32_t n = (int32_t)(lm_bits_f32(t) - lm_bits_f32(LM_ROUNDER_F32));
    return lm_scale_f32(lm_exp_near_0_f32(g * 0x1.62e43p-1f), n);
}

/* log(1 + x). ulp 1.5. 1 + x = u + c; what u lost is added to f, scaled. */
LM_FN float lm_log1p_f32(float x) {
    float u = 1.0f + x, b = u - x, c = (x - (u - b)) + (1.0f - b);
    float k, f = lm_split_f32(u, &k);
    float scale = lm_float_f32(lm_bits_f32(f + 1.0f) - lm_bits_f32(u) + 0x3f800000u);
    f += x > 0x1p30f ? 0.0f : c * scale;
    float y = lm_copysign_f32(lm_log_joined_f32(k, f), x);
    return lm_log_of_f32(u, y);
}

/* (k two + log(1 + f) base), both constants in two parts, k times the first of two being exact. */
LM_FN float lm_log_in_base_f32(float x, float two, float two_low, float base, float base_low) {
    float k, f = lm_split_f32(x, &k);
    float p = f * base;
    float low = lm_fma_exact_f32(f, base, -p) + lm_fma_f32(f, base_low, lm_log_tail_f32(f) * base);
    float high = k * two, sum = high + p;
    low = (p - (sum - high)) + lm_fma_f32(k, two_low, low);
    return lm_log_of_f32(x, sum + low);
}
LM_FN float lm_log2_f32(float x) { /* ulp 1.1 */
    return lm_log_in_base_f32(x, 1.0f, 0.0f, 0x1.715476p+0f, 0x1.4ae0cp-26f);
}
LM_FN float lm_log10_f32(float x) { /* ulp 1.1 */
    return lm_log_in_base_f32(x, 0x1.344p-2f, 0x1.3509f8p-18f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f);
}

/* Tangent. ulp 2.9. Fast and complete as the sine. */
LM_FN float lm_tan_joined_f32(float r, uint32_t quarter, float x) {
    float y = lm_sin_quarter_f32(r, quarter) / lm_sin_quarter_f32(r, quarter + 1);
    return lm_float_f32(lm_bits_f32(y) ^ (lm_bits_f32(x) & 0x80000000u));
}
LM_FN float lm_tan_fast_f32(float x) {
    uint32_t quarter;
    float r = lm_angle_fast_f32(lm_abs_f32(x), &quarter);
    return lm_tan_joined_f32(r, quarter, x);
}
LM_FN float lm_tan_f32(float x) {
    uint32_t quarter;
    if (lm_angle_is_small_f32(x)) return lm_tan_fast_f32(x);
    if (lm_abs_f32(x) == LM_INF_F32) return LM_NAN_F32;
    float r = lm_angle_huge_f32(lm_abs_f32(x), &quarter);
    return lm_tan_joined_f32(r, quarter, x);
}

/* ---- float64 ---- */

LM_FN double lm_expm1_shifted_f64(double x, int32_t shift) {
    double t, k;
    double c = x > 711.0 ? 711.0 : x;
    c = c < -40.0 ? -40.0 : c;
    double r = lm_exp_reduce_f64(c, &t, &k);
    r = lm_fma_f64(-k, LM_LN2_LO_F64, r);
    double e = lm_fma_f64(r * r, lm_exp_tail_f64(r), r);
    double few = k > 60.0 ? 60.0 : k;
    double one = 1.0 - lm_scale_normal_f64(1.0, LM_ROUNDER_F64 - few);
    double y = lm_scale_f64(e + one, t + (double)shift, k + (double)shift);
    return lm_copysign_f64(y, x);
}
LM_FN double lm_expm1_f64(double x) {
    return lm_expm1_shifted_f64(x, 0);
}

LM_FN double lm_exp2_f64(double x) {
    double c = x > 1025.0 ? 1025.0 : x;
    c = c < -1076.0 ? -1076.0 : c;
    double t = c + LM_ROUNDER_F64, k = t - LM_ROUNDER_F64, g = c - k;
    return lm_scale_f64(lm_exp_near_0_f64(g * 0x1.62e42fefa39efp-1), t, k);
}

LM_FN double lm_log1p_f64(double x) {
    double u = 1.0 + x, b = u - x, c = (x - (u - b)) + (1.0 - b);
    double k, m = lm_split_f64(u, &k);
    double scale = lm_float_f64(lm_bits_f64(m) - lm_bits_f64(u) + 0x3ff0000000000000u);
    double f = (m - 1.0) + (x > 0x1p60 ? 0.0 : c * scale);
    double y = lm_copysign_f64(lm_log_joined_f64(k, f), x);
    return lm_log_of_f64(u, y);
}

LM_FN double lm_log_in_base_f64(double x, double two, double two_low, double base,
                                double base_low) {
    double k, f = lm_split_f64(x, &k) - 1.0;
    double p = f * base, tail = -lm_log_tail_f64(f, 0.0);
    double low = lm_fma_exact_f64(f, base, -p) + lm_fma_f64(f, base_low, tail * base);
    double high = k * two, sum = high + p;
    low = (p - (sum - high)) + lm_fma_f64(k, two_low, low);
    return lm_log_of_f64(x, sum + low);
}
LM_FN double lm_log2_f64(double x) {
    return lm_log_in_base_f64(x, 1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}
LM_FN double lm_log10_f64(double x) {
    return lm_log_in_base_f64(x, 0x1.34413509f4p-2, 0x1.cff7988f8959bp-41, 0x1.bcb7b1526e50ep-2,
                              0x1.95355baaafad3p-57);
}

LM_FN double lm_tan_joined_f64(double r, uint64_t quarter, double x) {
    double y = lm_sin_quarter_f64(r, quarter) / lm_sin_quarter_f64(r, quarter + 1);
    return lm_float_f64(lm_bits_f64(y) ^ (lm_bits_f64(x) & 0x8000000000000000u));
}
LM_FN double lm_tan_fast_f64(double x) {
    uint64_t quarter;
    double r = lm_angle_fast_f64(lm_abs_f64(x), &quarter);
    return lm_tan_joined_f64(r, quarter, x);
}
LM_FN double lm_tan_f64(double x) {
    uint64_t quarter;
    if (lm_angle_is_small_f64(x)) return lm_tan_fast_f64(x);
    if (lm_abs_f64(x) == LM_INF_F64) return LM_NAN_F64;
    double r = lm_angle_huge_f64(lm_abs_f64(x), &quarter);
    return lm_tan_joined_f64(r, quarter, x);
}

/* Nearest whole number, halves to the even one. */
LM_FN double lm_round_half_f64(double x) {
    double t = lm_abs_f64(x) + 0x1p52, n = t - 0x1p52;
    return lm_abs_f64(x) < 0x1p52 ? lm_copysign_f64(n, x) : x;
}

#endif
