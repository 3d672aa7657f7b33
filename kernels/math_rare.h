/* math_rare.h -- words of which nobody needs millions a second: inverse angles, cube root, hypotenuse,
** gamma functions, what belongs to erf. Of float64; those of float32 go through them, and are right to
** 0.51 ulp but where their result is the difference of others. Layer: kernels.
**
** Coefficients: of atan, asin and sin(pi x) fitted with sollya 8, fpminimax(f, monomials, double,
** interval); the others interpolated at Chebyshev nodes in 200 bits (mpmath 1.3). "Error" and "ulp":
** as in math_f64.h. */
#ifndef lm_math_rare_h
#define lm_math_rare_h

#include "math_logs.h"

#define LM_PI_F64 0x1.921fb54442d18p+1
#define LM_PI_LOW_F64 0x1.1a62633145c07p-53

/* The angle of the point (x, y), with the special cases of C's atan2. ulp 2.1. With the greater of
** |x|, |y| divided into the other, or their difference by their sum where the angle is near pi/4, t is
** at most tan(pi/8), and atan t an odd polynomial (error 2^-57). */
LM_FN double lm_atan2_f64(double y, double x) {
    double ay = lm_abs_f64(y), ax = lm_abs_f64(x);
    int up = ay == LM_INF_F64, aside = ax == LM_INF_F64, ends = up & aside;
    ay = ends ? 1.0 : ay;
    ax = (ends | ((ay == 0.0) & (ax == 0.0))) ? 1.0 : ax;
    double most = ay > ax ? ay : ax;
    double scale = most > 0x1p1000 ? 0x1p-60 : 1.0;
    scale = most < 0x1p-960 ? 0x1p60 : scale;
    ay *= scale;
    ax *= scale;
    int low = ay <= 0x1.a827999fcef34p-2 * ax, middle = ay <= 0x1.3504f333f9de6p+1 * ax;
    double top = middle ? ay - ax : -ax, bottom = middle ? ay + ax : ay;
    top = low ? ay : top;
    bottom = low ? ax : bottom;
    double t = top / bottom, s = t * t;
    double p = -0x1.3b21d360aac11p-6;
    p = lm_fma_f64(p, s, 0x1.41cdfbe4e4308p-5);
    p = lm_fma_f64(p, s, -0x1.a0c27446fb9d1p-5);
    p = lm_fma_f64(p, s, 0x1.dfeef0f391b8dp-5);
    p = lm_fma_f64(p, s, -0x1.10fb06839628p-4);
    p = lm_fma_f64(p, s, 0x1.3b126e8a10f5ep-4);
    p = lm_fma_f64(p, s, -0x1.745d0bbbb593cp-4);
    p = lm_fma_f64(p, s, 0x1.c71c718992864p-4);
    p = lm_fma_f64(p, s, -0x1.249249243ee06p-3);
    p = lm_fma_f64(p, s, 0x1.9999999999445p-3);
    p = lm_fma_f64(p, s, -0x1.5555555555555p-2);
    double core = lm_fma_f64(t * s, p, t);
    int left = (int)(lm_bits_f64(x) >> 63);
    double middle_base = left ? 0x1.2d97c7f3321d2p+1 : 0x1.921fb54442d18p-1;
    double middle_low = left ? 0x1.a79394c9e8a0ap-54 : 0x1.1a62633145c07p-55;
    double base = middle ? middle_base : 0x1.921fb54442d18p+0;
    double rest = middle ? middle_low : 0x1.1a62633145c07p-54;
    base = low ? (left ? LM_PI_F64 : 0.0) : base;
    rest = low ? (left ? LM_PI_LOW_F64 : 0.0) : rest;
    double angle = base + ((left ? -core : core) + rest);
    return ((x != x) | (y != y)) ? LM_NAN_F64 : lm_copysign_f64(angle, y);
}

LM_FN double lm_atan_f64(double x) {
    return lm_atan2_f64(x, 1.0);
}

/* asin(b) = b + b s P(s), s = b^2 <= 1/4. Error 2^-55. */
LM_FN double lm_asin_tail_f64(double b, double s) {
    double p = 0x1.d14ec2a151e14p-6;
    p = lm_fma_f64(p, s, -0x1.6a9bf3e35a13cp-7);
    p = lm_fma_f64(p, s, 0x1.09cd5f1cf19e5p-6);
    p = lm_fma_f64(p, s, 0x1.fb41503eb1d2fp-8);
    p = lm_fma_f64(p, s, 0x1.859067cc3b509p-7);
    p = lm_fma_f64(p, s, 0x1.c863c930d79edp-7);
    p = lm_fma_f64(p, s, 0x1.1c59dc9879352p-6);
    p = lm_fma_f64(p, s, 0x1.6e8b22b1a5097p-6);
    p = lm_fma_f64(p, s, 0x1.f1c71fd904adp-6);
    p = lm_fma_f64(p, s, 0x1.6db6db67c1797p-5);
    p = lm_fma_f64(p, s, 0x1.333333333746dp-4);
    p = lm_fma_f64(p, s, 0x1.555555555554ep-3);
    return p * s * b;
}

/* Inverse sine. ulp 2.0. Above 1/2 pi/2 - 2 asin(b), b^2 = (1 - |x|) / 2. */
LM_FN double lm_asin_f64(double x) {
    double a = lm_abs_f64(x);
    int low = a < 0.5;
    double s = low ? a * a : 0.5 - 0.5 * a;
    double b = low ? a : sqrt(s);
    double tail = lm_asin_tail_f64(b, s);
    double big = 0x1.921fb54442d18p+0 - (2.0 * b + (2.0 * tail - 0x1.1a62633145c07p-54));
    return lm_copysign_f64(low ? b + tail : big, x);
}

/* Inverse cosine. ulp 1.4. */
LM_FN double lm_acos_f64(double x) {
    double a = lm_abs_f64(x);
    int low = a < 0.5;
    double s = low ? a * a : 0.5 - 0.5 * a;
    double b = low ? x : sqrt(s);
    double tail = lm_asin_tail_f64(b, s);
    double small = 0x1.921fb54442d18p+0 - (b + (tail - 0x1.1a62633145c07p-54));
    double right = 2.0 * (b + tail);
    double left = LM_PI_F64 - (right - LM_PI_LOW_F64);
    double big = x < 0.0 ? left : right;
    return low ? small : big;
}

/* Cube root. ulp 0.7. A polynomial to 9 bits, Halley's step to 27, Newton's to all. */
LM_FN double lm_cbrt_f64(double x) {
    double a = lm_abs_f64(x), k;
    double m = lm_split_f64(a, &k);
    double t = lm_fma_f64(k, 0x1.5555555555555p-2, LM_ROUNDER_F64), third = t - LM_ROUNDER_F64;
    double rest = k - 3.0 * third; /* -1, 0 or 1 */
    double scale = rest > 0.0 ? 2.0 : 1.0;
    m *= rest < 0.0 ? 0.5 : scale;
    double y = -0x1.8da2d9d031a4p-6;
    y = lm_fma_f64(y, m, 0x1.6f78d4ad89d02p-3);
    y = lm_fma_f64(y, m, -0x1.0bad6e138bb0fp-1);
    y = lm_fma_f64(y, m, 0x1.de67f56abdf7cp-1);
    y = lm_fma_f64(y, m, 0x1.bd5f7b3a25215p-2);
    double cube = y * y * y;
    y = y * (cube + 2.0 * m) / (2.0 * cube + m);
    double q = y * y, lost = lm_fma_exact_f64(y, y, -q);
    double off = lm_fma_exact_f64(q, y, -m) + lost * y;
    y = lm_scale_normal_f64(y - off / (3.0 * q), t);
    return ((a == 0.0) | !(a < LM_INF_F64)) ? x : lm_copysign_f64(y, x);
}

/* The square root of x^2 + y^2, infinite where one of them is. ulp 1.0. */
LM_FN double lm_hypot_f64(double x, double y) {
    double a = lm_abs_f64(x), b = lm_abs_f64(y);
    double most = a > b ? a : b, least = a > b ? b : a;
    double scale = most > 0x1p500 ? 0x1p-600 : 1.0, back = most > 0x1p500 ? 0x1p600 : 1.0;
    scale = most < 0x1p-500 ? 0x1p600 : scale;
    back = most < 0x1p-500 ? 0x1p-600 : back;
    most *= scale;
    least *= scale;
    double h = sqrt(lm_fma_f64(most, most, least * least)) * back;
    h = (x != x || y != y) ? LM_NAN_F64 : h;
    return (a == LM_INF_F64 || b == LM_INF_F64) ? LM_INF_F64 : h;
}
LM_FN float lm_hypot_f32(float x, float y) {
    double a = (double)lm_abs_f32(x), b = (double)lm_abs_f32(y);
    double h = sqrt(lm_fma_f64(a, a, b * b));
    h = (a == LM_INF_F64 || b == LM_INF_F64) ? LM_INF_F64 : h;
    return (float)h;
}

/* sin(pi r) for |r| <= 1/2. Error 2^-55. */
LM_FN double lm_sin_pi_near_0_f64(double r) {
    double s = r * r;
    double p = -0x1.570b25bdd2266p-24;
    p = lm_fma_f64(p, s, 0x1.cb94b1d6f5c8ap-21);
    p = lm_fma_f64(p, s, -0x1.70203cb633645p-16);
    p = lm_fma_f64(p, s, 0x1.e8f5de7a2de06p-12);
    p = lm_fma_f64(p, s, -0x1.e30753634a215p-8);
    p = lm_fma_f64(p, s, 0x1.5078348c276fdp-4);
    p = lm_fma_f64(p, s, -0x1.32d2cce63137dp-1);
    p = lm_fma_f64(p, s, 0x1.466bc6775ab44p1);
    p = lm_fma_f64(p, s, -0x1.4abbce625be53p2);
    return lm_fma_f64(p * s, r, lm_fma_f64(r, LM_PI_F64, r * LM_PI_LOW_F64));
}

/* sin(pi x) / (pi x). ulp 3.4; beyond 2^51 only whole numbers are left, and 0. */
LM_FN double lm_sinc_f64(double x) {
    double a = lm_abs_f64(x);
    double t = a + LM_ROUNDER_F64, r = a - (t - LM_ROUNDER_F64);
    double y = lm_sin_pi_near_0_f64(r);
    y = lm_float_f64(lm_bits_f64(y) ^ lm_bits_f64(t) << 63) / (LM_PI_F64 * a);
    y = a >= 0x1p51 ? 0.0 : y;
    y = a == 0.0 ? 1.0 : y;
    return a < LM_INF_F64 ? y : LM_NAN_F64;
}

/* 1 - erf(x), relatively right for large x. ulp 4.4. Above 0.55 twice the normal distribution
** function at -t, t = x sqrt 2; x^2 in two parts, as for gelu. */
LM_FN double lm_erfc_f64(double x) {
    double t, k;
    double a = lm_abs_f64(x);
    double c = a > 27.25 ? 27.25 : a; /* 0 from there on; NaN stays */
    double z = c * 0x1.6a09e667f3bcdp+0;
    double q = c * c, low = lm_fma_exact_f64(c, c, -q);
    double r = lm_exp_reduce_f64(-q, &t, &k);
    r = r - lm_fma_f64(k, LM_LN2_LO_F64, low);
    double h = lm_normal_tail_f64(z < 0.75 ? 0.75 : z);
    double y = lm_scale_f64(lm_exp_near_0_f64(r) * (2.0 * h / z), t, k);
    double big = x < 0.0 ? 2.0 - y : y;
    return a < 0.55 ? 1.0 - lm_erf_near_0_f64(x) : big;
}

/* The inverse of erf. ulp 6.7. x P(w), w = -log(1 - x^2): below 6.25 and, in sqrt w, below 16 and above
** (errors 2^-51.4, 2^-52.3, 2^-50.8). */
LM_FN double lm_erfinv_f64(double x) {
    double a = lm_abs_f64(x);
    double w = -(lm_log1p_f64(-a) + lm_log1p_f64(a));
    double root = sqrt(w < 6.25 ? 6.25 : w);
    double u = (w > 6.25 ? 6.25 : w) - 3.125;
    double p = -0x1.1d97cd0a28444p-72;
    p = lm_fma_f64(p, u, -0x1.8c612fe6d4cc6p-63);
    p = lm_fma_f64(p, u, 0x1.457b7c7ee27bcp-60);
    p = lm_fma_f64(p, u, 0x1.9a782918c0eefp-57);
    p = lm_fma_f64(p, u, -0x1.299d9e862c5a3p-53);
    p = lm_fma_f64(p, u, 0x1.8fbd6d8bfb534p-56);
    p = lm_fma_f64(p, u, 0x1.da47a520e32a3p-48);
    p = lm_fma_f64(p, u, -0x1.6d477ac908a6ep-45);
    p = lm_fma_f64(p, u, -0x1.6d16abb83554bp-44);
    p = lm_fma_f64(p, u, 0x1.72a472e24d62fp-39);
    p = lm_fma_f64(p, u, -0x1.c89af9a5a861dp-37);
    p = lm_fma_f64(p, u, -0x1.dc58e86640cd4p-35);
    p = lm_fma_f64(p, u, 0x1.20f50c65994a5p-30);
    p = lm_fma_f64(p, u, -0x1.1a9e34ea80b32p-28);
    p = lm_fma_f64(p, u, -0x1.f36ce9a1f1537p-26);
    p = lm_fma_f64(p, u, 0x1.c6b4f5b4485bep-22);
    p = lm_fma_f64(p, u, -0x1.6e8a53d8b2f84p-20);
    p = lm_fma_f64(p, u, -0x1.d1d1f7b799e14p-17);
    p = lm_fma_f64(p, u, 0x1.879c2a20bb963p-13);
    p = lm_fma_f64(p, u, -0x1.84576948514e9p-11);
    p = lm_fma_f64(p, u, -0x1.8b6c33114eae7p-8);
    p = lm_fma_f64(p, u, 0x1.ebd80d9b13e2bp-3);
    p = lm_fma_f64(p, u, 0x1.a755e7c99ae86p+0);
    double v = (root > 4.0 ? 4.0 : root) - 3.25;
    double q = -0x1.a53a301e22b57p-32;
    q = lm_fma_f64(q, v, 0x1.85a326c1cb527p-24);
    q = lm_fma_f64(q, v, -0x1.206ae34abd5a9p-22);
    q = lm_fma_f64(q, v, 0x1.3acdcdc26635cp-26);
    q = lm_fma_f64(q, v, 0x1.918866d43073fp-20);
    q = lm_fma_f64(q, v, -0x1.0d5f12f3cb324p-18);
    q = lm_fma_f64(q, v, 0x1.88e7be48aa51ap-19);
    q = lm_fma_f64(q, v, 0x1.a29a626bd0bb9p-17);
    q = lm_fma_f64(q, v, -0x1.8cf1ea476ca5dp-15);
    q = lm_fma_f64(q, v, 0x1.1e684a09f878bp-14);
    q = lm_fma_f64(q, v, 0x1.932deb51d5effp-16);
    q = lm_fma_f64(q, v, -0x1.7448a8807fc16p-12);
    q = lm_fma_f64(q, v, 0x1.f3cc54ba4185ap-11);
    q = lm_fma_f64(q, v, -0x1.ba924133966efp-10);
    q = lm_fma_f64(q, v, 0x1.468eeca887021p-9);
    q = lm_fma_f64(q, v, -0x1.ebadabb88eb36p-9);
    q = lm_fma_f64(q, v, 0x1.5ffcfe5b6db7ap-8);
    q = lm_fma_f64(q, v, 0x1.0158a6d641d39p+0);
    q = lm_fma_f64(q, v, 0x1.8abcc380d5a48p+1);
    double z = (root > 6.125 ? 6.125 : root) - 5.0625;
    double r = 0x1.47b6f11a812c7p-37;
    r = lm_fma_f64(r, z, -0x1.11a19f8e0c2d0p-32);
    r = lm_fma_f64(r, z, 0x1.34b4bae10e020p-30);
    r = lm_fma_f64(r, z, -0x1.724d14b146259p-29);
    r = lm_fma_f64(r, z, 0x1.681b242dbf4c5p-28);
    r = lm_fma_f64(r, z, -0x1.5b99d516f2d10p-27);
    r = lm_fma_f64(r, z, 0x1.5efddedc1f154p-26);
    r = lm_fma_f64(r, z, -0x1.c285c86523da4p-25);
    r = lm_fma_f64(r, z, 0x1.a3f53c0037babp-23);
    r = lm_fma_f64(r, z, -0x1.dc4cc37bdcebep-21);
    r = lm_fma_f64(r, z, 0x1.142d63afba3e7p-18);
    r = lm_fma_f64(r, z, -0x1.2f0bd33a32020p-16);
    r = lm_fma_f64(r, z, 0x1.260719759b2adp-14);
    r = lm_fma_f64(r, z, -0x1.9cacac3d3101fp-13);
    r = lm_fma_f64(r, z, -0x1.73d5046c07f3fp-13);
    r = lm_fma_f64(r, z, 0x1.02a1c126f26a7p+0);
    r = lm_fma_f64(r, z, 0x1.3a6f678932e7fp+2);
    double y = root < 4.0 ? q : r;
    y = x * (w < 6.25 ? p : y);
    y = a == 1.0 ? lm_copysign_f64(LM_INF_F64, x) : y;
    return a <= 1.0 ? y : LM_NAN_F64;
}

/* Logarithm of the absolute value of the gamma function. ulp 4.8 for x > 0; for x < 0, where it is the
** difference of two logarithms, as good as the greater of them. lgamma(2 + u) = u P(u), |u| <= 1/2
** (error 2^-53.7), to which others are moved by gamma(x + 1) = x gamma(x); from 10 on Stirling's
** series with P in 1 / x^2 (error 2^-53.5). Below 0 by the reflection formula. */
LM_FN double lm_lgamma_f64(double x) {
    double a = lm_abs_f64(x), product = 1.0;
    double b = a < 10.0 ? a : 2.0; /* moved into [1.5, 2.5] */
#define LM_STEP                                                                                    \
    product *= b > 2.5 ? b - 1.0 : 1.0;                                                            \
    b -= b > 2.5 ? 1.0 : 0.0;
    LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP
#undef LM_STEP
        product = a < 1.5 ? a : product;
    product = a < 0.5 ? a * (a + 1.0) : product;
    double u = a < 1.5 ? a - 1.0 : b - 2.0;
    u = a < 0.5 ? a : u;
    double p = -0x1.1be56b7e101c6p-23;
    p = lm_fma_f64(p, u, 0x1.2b4bb069ee6a9p-22);
    p = lm_fma_f64(p, u, -0x1.d06b46182e294p-22);
    p = lm_fma_f64(p, u, 0x1.edf317afe0c72p-21);
    p = lm_fma_f64(p, u, -0x1.125408d7ee6ebp-19);
    p = lm_fma_f64(p, u, 0x1.2640a5e8ab73ep-18);
    p = lm_fma_f64(p, u, -0x1.3cb5f201754a6p-17);
    p = lm_fma_f64(p, u, 0x1.5806d7786fbc2p-16);
    p = lm_fma_f64(p, u, -0x1.78de85fa0bf74p-15);
    p = lm_fma_f64(p, u, 0x1.a127dd231f4b2p-14);
    p = lm_fma_f64(p, u, -0x1.d3fd4bda4f97bp-13);
    p = lm_fma_f64(p, u, 0x1.0b36af3424c50p-11);
    p = lm_fma_f64(p, u, -0x1.38ac5c2c96006p-10);
    p = lm_fma_f64(p, u, 0x1.7add6eae5b8fdp-9);
    p = lm_fma_f64(p, u, -0x1.e404fc218ecffp-8);
    p = lm_fma_f64(p, u, 0x1.51322ac7d7fd2p-6);
    p = lm_fma_f64(p, u, -0x1.13e001a557607p-4);
    p = lm_fma_f64(p, u, 0x1.4a34cc4a60fa7p-2);
    p = lm_fma_f64(p, u, 0x1.b0ee6072093cep-2);
    int large = a >= 10.0;
    double l = lm_log_f64(large ? a : product);
    double near = lm_fma_f64(u, p, a < 1.5 ? -l : l);
    double inverse = 1.0 / a, v = inverse * inverse - 0.005;
    double q = -0x1.c84007120f1dbp-10;
    q = lm_fma_f64(q, v, 0x1.a17da65d35486p-11);
    q = lm_fma_f64(q, v, -0x1.2f7e38251e44fp-11);
    q = lm_fma_f64(q, v, 0x1.9b7c442cdc0d9p-11);
    q = lm_fma_f64(q, v, -0x1.6b0def40a792cp-9);
    q = lm_fma_f64(q, v, 0x1.5546ca5e8f91cp-4);
    /* 0.5 log(2 pi) - 0.5 */
    double far = lm_fma_f64(a - 0.5, l - 1.0, lm_fma_f64(q, inverse, 0x1.acfe390c97d69p-2));
    far = a < LM_INF_F64 ? far : a;
    double y = large ? far : near;
    double r = a - lm_round_half_f64(a);
    double s = lm_abs_f64(lm_sin_pi_near_0_f64(r)) * a;
    double reflected = s == 0.0 ? LM_INF_F64 : lm_log_f64(LM_PI_F64 / s) - y;
    y = x < -0x1p-60 ? reflected : y; /* nearer to 0 the sign of x does not count */
    y = a == LM_INF_F64 ? a : y;
    return x != x ? x : y;
}

/* The derivative of lgamma. ulp 4 for x > 0; else as good as the greater of the two terms of the
** reflection formula. From 1 to 2 (x - root) P(x - 1.5) (error 2^-52.6), to which others are moved by
** digamma(x + 1) = digamma(x) + 1 / x; from 10 on log x - 1 / 2x - P(1 / x^2) / x^2 (error 2^-54). */
LM_FN double lm_digamma_f64(double x) {
    double a = x < 0.0 ? 1.0 - x : x, sum = 0.0;
    double b = a < 10.0 ? a : 1.0;
#define LM_STEP                                                                                    \
    sum += b > 2.0 ? 1.0 / (b - 1.0) : 0.0;                                                        \
    b -= b > 2.0 ? 1.0 : 0.0;
    LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP LM_STEP
#undef LM_STEP
        sum = a < 1.0 ? -1.0 / a : sum;
    b = a < 1.0 ? a + 1.0 : b;
    double u = b - 1.5;
    double p = 0x1.088345f73d8a7p-12;
    p = lm_fma_f64(p, u, -0x1.8cc58112556c6p-12);
    p = lm_fma_f64(p, u, 0x1.effae48161573p-13);
    p = lm_fma_f64(p, u, -0x1.73ff1b7f004e4p-12);
    p = lm_fma_f64(p, u, 0x1.78a77705bb558p-11);
    p = lm_fma_f64(p, u, -0x1.1a824f512c76fp-10);
    p = lm_fma_f64(p, u, 0x1.9870a33254ba1p-10);
    p = lm_fma_f64(p, u, -0x1.326340580e90ap-9);
    p = lm_fma_f64(p, u, 0x1.cd35ac17ad344p-9);
    p = lm_fma_f64(p, u, -0x1.5a16d9f65315cp-8);
    p = lm_fma_f64(p, u, 0x1.03c04453f4083p-7);
    p = lm_fma_f64(p, u, -0x1.8634c5eab0574p-7);
    p = lm_fma_f64(p, u, 0x1.256473e20cb08p-6);
    p = lm_fma_f64(p, u, -0x1.b9f8b4ba2e5f5p-6);
    p = lm_fma_f64(p, u, 0x1.4de9aa0fb5a4fp-5);
    p = lm_fma_f64(p, u, -0x1.fb44201e7cc15p-5);
    p = lm_fma_f64(p, u, 0x1.8512e5904479bp-4);
    p = lm_fma_f64(p, u, -0x1.2feeeb98b0270p-3);
    p = lm_fma_f64(p, u, 0x1.eca189b8e6f1ep-3);
    p = lm_fma_f64(p, u, -0x1.b1cb63005ee5dp-2);
    p = lm_fma_f64(p, u, 0x1.e6f0cbb873616p-1);
    double near = lm_fma_f64((b - 0x1.762d86356be3fp+0) - 0x1.b86a722197829p-54, p, sum);
    double inverse = 1.0 / a, v = inverse * inverse;
    double w = v - 0.005;
    double q = 0x1.1deb63313137fp-4;
    q = lm_fma_f64(q, w, -0x1.345cde3a38d92p-6);
    q = lm_fma_f64(q, w, 0x1.cfdaf9af4386bp-8);
    q = lm_fma_f64(q, w, -0x1.077830905e64dp-8);
    q = lm_fma_f64(q, w, 0x1.000a50330c079p-8);
    q = lm_fma_f64(q, w, -0x1.0fc6c68dda9b3p-7);
    q = lm_fma_f64(q, w, 0x1.5529bf03bd98dp-4);
    double far = lm_log_f64(a) - lm_fma_f64(q, v, 0.5 * inverse);
    double y = a < 10.0 ? near : far;
    y = a < LM_INF_F64 ? y : a;
    /* pi / tan(pi x): a whole number has none */
    double r = x - lm_round_half_f64(x);
    double angle = LM_PI_F64 * lm_sin_pi_near_0_f64(0.5 - lm_abs_f64(r));
    double cotangent = angle / lm_sin_pi_near_0_f64(r);
    y = x < 0.0 ? y - cotangent : y;
    y = ((x < 0.0) & (r == 0.0)) ? LM_NAN_F64 : y;
    y = x == -LM_INF_F64 ? LM_NAN_F64 : y;
    return x == 0.0 ? lm_copysign_f64(LM_INF_F64, -x) : y;
}

#define LM_BY_F64(name)                                                                            \
    LM_FN float lm_##name##_f32(float x) {                                                         \
        return (float)lm_##name##_f64((double)x);                                                  \
    }
LM_BY_F64(atan)
LM_BY_F64(asin)
LM_BY_F64(acos)
LM_BY_F64(cbrt)
LM_BY_F64(sinc)
LM_BY_F64(erfc)
LM_BY_F64(erfinv)
LM_BY_F64(lgamma)
LM_BY_F64(digamma)
#undef LM_BY_F64
LM_FN float lm_atan2_f32(float y, float x) {
    return (float)lm_atan2_f64((double)y, (double)x);
}

#endif
