/* math_f64.h -- the transcendental words of float64, for C and CUDA; the twin of math_f32.h, whose
** remarks hold here too. No conversion between integers and doubles is used, since few levels have
** it for vectors. Layer: kernels.
**
** Coefficients: fitted with sollya 8, fpminimax(f, monomials, double, interval) in the weight of
** the result; those of G and H with remez, then rounded. "Error" is that of the polynomial alone;
** "ulp" is the largest error of the word seen over random arguments (spec/c/math_test.c). */
#ifndef lm_math_f64_h
#define lm_math_f64_h

#include "bits.h"

#define LM_INF_F64 lm_float_f64(0x7ff0000000000000u)
#define LM_NAN_F64 lm_float_f64(0x7ff8000000000000u)
/* Adding it rounds |x| < 2^51 to a whole number, which then stands in the low bits. */
#define LM_ROUNDER_F64 0x1.8p52
/* ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact. */
#define LM_LN2_HI_F64 0x1.62e42fefp-1
#define LM_LN2_LO_F64 0x1.473de6af278edp-34

/* (e^r - 1 - r) / r^2 for |r| <= 0.3467. Error of e^r 2^-57.8. */
LM_FN double lm_exp_tail_f64(double r) {
    double p = 0x1.ad935b5f9cc9dp-26;
    p = lm_fma_f64(p, r, 0x1.28ae0d19fac0ep-22);
    p = lm_fma_f64(p, r, 0x1.71df18c1ca421p-19);
    p = lm_fma_f64(p, r, 0x1.a019994fb0d89p-16);
    p = lm_fma_f64(p, r, 0x1.a01a012ff8c89p-13);
    p = lm_fma_f64(p, r, 0x1.6c16c1847b872p-10);
    p = lm_fma_f64(p, r, 0x1.1111111126b2ep-7);
    p = lm_fma_f64(p, r, 0x1.55555555506afp-5);
    p = lm_fma_f64(p, r, 0x1.55555555554fep-3);
    p = lm_fma_f64(p, r, 0x1.000000000000ap-1);
    return p;
}

/* e^r for |r| <= 0.3467. */
LM_FN double lm_exp_near_0_f64(double r) {
    return lm_fma_f64(lm_fma_f64(lm_exp_tail_f64(r), r, 1.0), r, 1.0);
}

/* x - n (first part of ln 2), with n nearest to x / ln 2, |x| < 2^20: n stands in the low bits of
** *t, and as a double in *k. The second part is the caller's to subtract. */
LM_FN double lm_exp_reduce_f64(double x, double *t, double *k) {
    *t = lm_fma_f64(x, 0x1.71547652b82fep+0, LM_ROUNDER_F64);
    *k = *t - LM_ROUNDER_F64;
    return lm_fma_f64(-*k, LM_LN2_HI_F64, x);
}

/* x * 2^n, n in the low bits of t, |n| <= 1022, for normal x and result. */
LM_FN double lm_scale_normal_f64(double x, double t) {
    return lm_float_f64(lm_bits_f64(x) + (lm_bits_f64(t) << 52));
}

/* x * 2^n for -2044 <= n <= 2046, n = k in the low bits of t; rounded once, if at all, where x *
** 2^(n/2) is a normal float. */
LM_FN double lm_scale_f64(double x, double t, double k) {
    uint64_t half = lm_bits_f64(lm_fma_f64(k, 0.5, LM_ROUNDER_F64));
    double a = lm_float_f64((half + 1023) << 52);
    double b = lm_float_f64((lm_bits_f64(t) - half + 1023) << 52);
    return x * a * b;
}

/* e^x. ulp 0.9. */
LM_FN double lm_exp_f64(double x) {
    double t, k;
    double c = x > 710.0 ? 710.0 : x; /* beyond: infinity and 0 all the same; NaN stays */
    c = c < -746.0 ? -746.0 : c;
    double r = lm_exp_reduce_f64(c, &t, &k);
    r = lm_fma_f64(-k, LM_LN2_LO_F64, r);
    return lm_scale_f64(lm_exp_near_0_f64(r), t, k);
}

/* x = 2^k m, 2/3 <= m < 4/3, for normal x > 0; k is a whole number. */
LM_FN double lm_split_normal_f64(double x, double *k) {
    uint64_t e = (lm_bits_f64(x) - 0x3fe5555555555555u + 0x4000000000000000u) >> 52; /* k + 1024 */
    *k = lm_float_f64(0x4330000000000000u | e) - (0x1p52 + 1024);
    return lm_float_f64(lm_bits_f64(x) - (e << 52) + 0x4000000000000000u);
}

/* The same for any finite x > 0. */
LM_FN double lm_split_f64(double x, double *k) {
    double m = lm_split_normal_f64(x < 0x1p-1022 ? x * 0x1p54 : x, k);
    *k -= x < 0x1p-1022 ? 54.0 : 0.0;
    return m;
}

/* f - log(1 + f) - k_low (second part of ln 2) for |f| <= 1/3: with s = f / (2 + f), log(1 + f) = 2 s + s R(s^2), error 2^-62.7;
** as 2 s = f - f^2/2 + s f^2/2, the exact f stands apart. */
LM_FN double lm_log_tail_f64(double f, double k_low) {
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 0x1.1b7592879a044p-3;
    p = lm_fma_f64(p, z, 0x1.0dcd50a6c0f45p-3);
    p = lm_fma_f64(p, z, 0x1.3b35a76777095p-3);
    p = lm_fma_f64(p, z, 0x1.745c4b977115fp-3);
    p = lm_fma_f64(p, z, 0x1.c71c748ce6f3fp-3);
    p = lm_fma_f64(p, z, 0x1.24924921e6fe5p-2);
    p = lm_fma_f64(p, z, 0x1.999999999c15bp-2);
    p = lm_fma_f64(p, z, 0x1.555555555554fp-1);
    double h = 0.5 * f * f;
    return h - lm_fma_f64(k_low, LM_LN2_LO_F64, s * lm_fma_f64(p, z, h));
}

/* k ln 2 + log(1 + f). */
LM_FN double lm_log_joined_f64(double k, double f) {
    return lm_fma_f64(k, LM_LN2_HI_F64, f - lm_log_tail_f64(f, k));
}

/* y, which is a logarithm of x where 0 < x < infinity, or what it is elsewhere. */
LM_FN double lm_log_of_f64(double x, double y) {
    y = x < LM_INF_F64 ? y : x;
    double out = x == 0.0 ? -LM_INF_F64 : LM_NAN_F64;
    return x > 0.0 ? y : out;
}

/* Natural logarithm. ulp 0.8. */
LM_FN double lm_log_f64(double x) {
    double k, f = lm_split_f64(x, &k) - 1.0;
    return lm_log_of_f64(x, lm_log_joined_f64(k, f));
}

/* Hyperbolic tangent. ulp 1.2. Below 0.625 an odd polynomial (error 2^-56.4), above 1 - 2 / (e^2x
** + 1). */
LM_FN double lm_tanh_f64(double x) {
    double t, k;
    double a = lm_abs_f64(x);
    double c = a > 19.1 ? 19.1 : a; /* from there on 1; NaN stays */
    double r = lm_exp_reduce_f64(c + c, &t, &k);
    double e = lm_exp_near_0_f64(lm_fma_f64(-k, LM_LN2_LO_F64, r));
    double big = 1.0 - 2.0 / (lm_scale_normal_f64(e, t) + 1.0);
    double s = a * a;
    double p = -0x1.0da4a0f0c3115p-16;
    p = lm_fma_f64(p, s, 0x1.438fb8f5539e3p-14);
    p = lm_fma_f64(p, s, -0x1.df54cb712d866p-13);
    p = lm_fma_f64(p, s, 0x1.3365faf2548adp-11);
    p = lm_fma_f64(p, s, -0x1.7d689f11f3e13p-10);
    p = lm_fma_f64(p, s, 0x1.d6cf279954ce5p-9);
    p = lm_fma_f64(p, s, -0x1.226e1627b6e15p-7);
    p = lm_fma_f64(p, s, 0x1.664f477aa8e77p-6);
    p = lm_fma_f64(p, s, -0x1.ba1ba1b504efap-5);
    p = lm_fma_f64(p, s, 0x1.111111110aca6p-3);
    p = lm_fma_f64(p, s, -0x1.55555555554ffp-2);
    double small = lm_fma_f64(p * s, a, a);
    return lm_copysign_f64(a >= 0.625 ? big : small, x);
}

/* erf(a) for |a| <= 0.84: an odd polynomial. Error 2^-56. */
LM_FN double lm_erf_near_0_f64(double a) {
    double s = a * a;
    double p = 0x1.70e8e51900367p-27;
    p = lm_fma_f64(p, s, -0x1.51872ec5dbfbfp-23);
    p = lm_fma_f64(p, s, 0x1.b8496d0294718p-20);
    p = lm_fma_f64(p, s, -0x1.f4b4346ce5029p-17);
    p = lm_fma_f64(p, s, 0x1.f9a1ba5b31f96p-14);
    p = lm_fma_f64(p, s, -0x1.c02da8df889bbp-11);
    p = lm_fma_f64(p, s, 0x1.565bccd7df693p-8);
    p = lm_fma_f64(p, s, -0x1.b82ce3114e23ap-6);
    p = lm_fma_f64(p, s, 0x1.ce2f21a03f0dbp-4);
    p = lm_fma_f64(p, s, -0x1.812746b03799fp-2);
    p = lm_fma_f64(p, s, 0x1.06eba8214db68p-3);
    return lm_fma_f64(p, a, a);
}

/* Error function. ulp 1.2. Above 0.84 1 - e^(-x^2) G(u) /
** (x + 3), u = (x - 3) / (x + 3) (error of G 2^-52.8), from 5.95 on 1. */
LM_FN double lm_erf_f64(double x) {
    double t, k;
    double a = lm_abs_f64(x);
    double small = lm_erf_near_0_f64(a);
    double c = a > 5.95 ? 5.95 : a; /* NaN stays */
    double w = 1.0 / (c + 3.0), u = (c - 3.0) * w;
    double g = 0x1.2f9b0877d33d9p-20;
    g = lm_fma_f64(g, u, 0x1.62109364c67bp-19);
    g = lm_fma_f64(g, u, -0x1.444a85c18315bp-18);
    g = lm_fma_f64(g, u, -0x1.24edb11fa28e9p-16);
    g = lm_fma_f64(g, u, 0x1.fe44774897dfp-16);
    g = lm_fma_f64(g, u, 0x1.c325dfbd5ac9ap-14);
    g = lm_fma_f64(g, u, -0x1.22396793f075p-12);
    g = lm_fma_f64(g, u, -0x1.1f78e665956c1p-11);
    g = lm_fma_f64(g, u, 0x1.8dae3ad7a5abdp-9);
    g = lm_fma_f64(g, u, -0x1.3dd3e6e907293p-10);
    g = lm_fma_f64(g, u, -0x1.b78993d751769p-6);
    g = lm_fma_f64(g, u, 0x1.e995f11b132edp-4);
    g = lm_fma_f64(g, u, -0x1.3deb21415da9p-2);
    g = lm_fma_f64(g, u, 0x1.2e326945de2c8p-1);
    g = lm_fma_f64(g, u, -0x1.c44c471baa377p-1);
    g = lm_fma_f64(g, u, 0x1.12f21ddd9f5e2p+0);
    double r = lm_exp_reduce_f64(-c * c, &t, &k);
    double e = lm_exp_near_0_f64(lm_fma_f64(-k, LM_LN2_LO_F64, r));
    double big = 1.0 - lm_scale_normal_f64(e, t) * (g * w);
    return lm_copysign_f64(a >= 0.84 ? big : small, x);
}

/* t e^(t^2/2) times the normal distribution function at -t, for 0.75 <= t <= 38.6: a polynomial in
** (t - 5) / (t + 5). Error 2^-54.2. */
LM_FN double lm_normal_tail_f64(double t) {
    double u = (t - 5.0) / (t + 5.0);
    double h = 0x1.65b04da1d9ae6p-29;
    h = lm_fma_f64(h, u, -0x1.9a7ef4a1683eap-26);
    h = lm_fma_f64(h, u, -0x1.2f912d881d163p-26);
    h = lm_fma_f64(h, u, 0x1.d8ca4f32a678cp-23);
    h = lm_fma_f64(h, u, 0x1.cc552df225463p-25);
    h = lm_fma_f64(h, u, -0x1.9d788dc6564d4p-20);
    h = lm_fma_f64(h, u, 0x1.43aecc6350d0bp-21);
    h = lm_fma_f64(h, u, 0x1.5a76ec9bfac99p-17);
    h = lm_fma_f64(h, u, -0x1.157decace150bp-16);
    h = lm_fma_f64(h, u, -0x1.c9bf3aaf94eccp-15);
    h = lm_fma_f64(h, u, 0x1.fd1b904f302bep-13);
    h = lm_fma_f64(h, u, -0x1.09425b52a9eb5p-13);
    h = lm_fma_f64(h, u, -0x1.f0ed1c21d8d87p-10);
    h = lm_fma_f64(h, u, 0x1.23a9b32fb768dp-7);
    h = lm_fma_f64(h, u, -0x1.8bdde01f6da5bp-6);
    h = lm_fma_f64(h, u, 0x1.88d03ff12b2bp-5);
    h = lm_fma_f64(h, u, -0x1.30277951e85e5p-4);
    h = lm_fma_f64(h, u, 0x1.74451e800378cp-4);
    h = lm_fma_f64(h, u, -0x1.5c51455904991p-4);
    h = lm_fma_f64(h, u, 0x1.a9353f7be5c83p-5);
    h = lm_fma_f64(h, u, 0x1.89d3abe1f95aep-2);
    return h;
}

/* x times the normal distribution function of x. ulp 3.1. Relatively right in both tails; -0 at
** -infinity. Below 0.75 the function is 0.5 + x R(x^2) (error 2^-56.7). Above, with t = |x|, t
** times the function at -t is e^(-t^2/2) H(u), u = (t - 5) / (t + 5) (error 2^-54.2); t^2 is kept
** in two parts, since e^ makes its absolute error relative. */
LM_FN double lm_gelu_f64(double x) {
    double t, k;
    double a = lm_abs_f64(x);
    double s = x * x;
    double p = 0x1.10c7b0a023f8ap-29;
    p = lm_fma_f64(p, s, -0x1.5f533cc0a8cbfp-25);
    p = lm_fma_f64(p, s, 0x1.656dcb49ad2eap-21);
    p = lm_fma_f64(p, s, -0x1.3ce84ec049e0bp-17);
    p = lm_fma_f64(p, s, 0x1.e42b085351955p-14);
    p = lm_fma_f64(p, s, -0x1.37403f6088404p-10);
    p = lm_fma_f64(p, s, 0x1.46d042974db2cp-7);
    p = lm_fma_f64(p, s, -0x1.1058377e2ccdcp-4);
    p = lm_fma_f64(p, s, 0x1.9884533d4364fp-2);
    double small = x * lm_fma_f64(p, x, 0.5);
    double c = a > 38.6 ? 38.6 : a; /* below the least double from there on */
    double h = lm_normal_tail_f64(c);
    double q = c * c;
    double low = lm_fma_exact_f64(c, c, -q);
    double r = lm_exp_reduce_f64(-0.5 * q, &t, &k);
    r = r + lm_fma_f64(-0.5, low, -k * LM_LN2_LO_F64);
    double y = lm_scale_f64(lm_exp_near_0_f64(r) * h, t, k);
    double big = x < 0.0 ? -y : x - y;
    return a >= 0.75 ? big : small;
}

/* Angles: as in math_f32.h. lm_sin_fast_f64 and lm_cos_fast_f64 want |x| <= this bound or NaN. */
#define LM_ANGLE_FAST_F64 0x1p24
LM_FN int lm_angle_is_small_f64(double x) {
    return !(lm_abs_f64(x) > LM_ANGLE_FAST_F64);
}

/* sin of r + quarter pi/2, |r| <= 0.786: an odd (error 2^-57.9) or an even (2^-63.9) polynomial. */
LM_FN double lm_sin_quarter_f64(double r, uint64_t quarter) {
    double s = r * r;
    double p = 0x1.5d8d6e1091ee7p-33;
    p = lm_fma_f64(p, s, -0x1.ae5e52092adc8p-26);
    p = lm_fma_f64(p, s, 0x1.71de355c5f14p-19);
    p = lm_fma_f64(p, s, -0x1.a01a019befb93p-13);
    p = lm_fma_f64(p, s, 0x1.111111110f751p-7);
    p = lm_fma_f64(p, s, -0x1.5555555555548p-3);
    double odd = lm_fma_f64(p * s, r, r);
    double q = -0x1.8fa5c165deabcp-37;
    q = lm_fma_f64(q, s, 0x1.1ee9da88f4795p-29);
    q = lm_fma_f64(q, s, -0x1.27e4f7f008783p-22);
    q = lm_fma_f64(q, s, 0x1.a01a019c8d949p-16);
    q = lm_fma_f64(q, s, -0x1.6c16c16c1500cp-10);
    q = lm_fma_f64(q, s, 0x1.555555555554bp-5);
    q = lm_fma_f64(q, s, -0.5);
    double even = lm_fma_f64(q, s, 1.0);
    double y = (quarter & 1) ? even : odd;
    return lm_float_f64(lm_bits_f64(y) ^ (quarter & 2) << 62);
}

/* x = r + n pi/2 for 0 <= x <= the bound; n in the low bits of *quarter. Each step is exact or
** rounds the result, not the product. */
LM_FN double lm_angle_fast_f64(double x, uint64_t *quarter) {
    double t = lm_fma_f64(x, 0x1.45f306dc9c883p-1, LM_ROUNDER_F64);
    double n = t - LM_ROUNDER_F64;
    *quarter = lm_bits_f64(t);
    double r = lm_fma_exact_f64(-n, 0x1.921fb54442d18p+0, x);
    r = lm_fma_exact_f64(-n, 0x1.1a62633145c07p-54, r);
    return lm_fma_exact_f64(-n, -0x1.f1976b7ed8fbcp-110, r);
}

/* The same for finite x from the bound on. 2 x / pi modulo 4 as a fixed-point number of 128 bits:
** those of x times the 192 bits of 1 / pi that count; the table holds 1 / pi after 64 zeros. */
LM_FN double lm_angle_huge_f64(double x, uint64_t *quarter) {
    LM_LOOKUP uint64_t inverse_pi[20] = {
        0x0000000000000000, 0x517cc1b727220a94, 0xfe13abe8fa9a6ee0, 0x6db14acc9e21c820,
        0xff28b1d5ef5de2b0, 0xdb92371d2126e970, 0x0324977504e8c90e, 0x7f0ef58e5894d39f,
        0x74411afa975da242, 0x74ce38135a2fbf20, 0x9cc8eb1cc1a99cfa, 0x4e422fc5defc941d,
        0x8ffc4bffef02cc07, 0xf79788c5ad05368f, 0xb69b3f6793e584db, 0xa7a31fb34f2ff516,
        0xba93dd63f5f2f8bd, 0x9e839cfbc5294975, 0x35fdafd88fc6ae84, 0x2b0198237e3db5d5};
    uint64_t bits = lm_bits_f64(x);
    uint64_t start = (bits >> 52) - 1012, shift = start & 63;
    const uint64_t *w = inverse_pi + (start >> 6);
    uint64_t m = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    uint64_t a = (w[0] << shift) | (w[1] >> 1 >> (63 - shift));
    uint64_t b = (w[1] << shift) | (w[2] >> 1 >> (63 - shift));
    uint64_t c = (w[2] << shift) | (w[3] >> 1 >> (63 - shift));
    uint64_t low = m * b + lm_mulhi_u64(m, c);
    uint64_t high = m * a + lm_mulhi_u64(m, b) + (low < m * b);
    *quarter = (high + 0x2000000000000000u) >> 62;
    /* the fraction in two doubles: the first 53 bits are exact */
    uint64_t top = (high << 2) | (low >> 62);
    double f = (double)(int64_t)(top & ~(uint64_t)0x7ff);
    double fl = (double)((top << 53) | (low << 2 >> 11)) * 0x1p-53;
    double rl = lm_fma_f64(fl, 0x1.921fb54442d18p-64, f * 0x1.1a62633145c07p-118);
    return lm_fma_exact_f64(f, 0x1.921fb54442d18p-64, rl);
}

/* Sine. ulp 1.45. The sign of x comes last, so that of -0 stays. */
LM_FN double lm_sin_fast_f64(double x) {
    uint64_t quarter;
    double r = lm_angle_fast_f64(lm_abs_f64(x), &quarter);
    double y = lm_sin_quarter_f64(r, quarter);
    return lm_float_f64(lm_bits_f64(y) ^ (lm_bits_f64(x) & 0x8000000000000000u));
}

/* Cosine. ulp 1.45. */
LM_FN double lm_cos_fast_f64(double x) {
    uint64_t quarter;
    double r = lm_angle_fast_f64(lm_abs_f64(x), &quarter);
    return lm_sin_quarter_f64(r, quarter + 1);
}

LM_FN double lm_sin_f64(double x) {
    uint64_t quarter;
    double a = lm_abs_f64(x);
    if (lm_angle_is_small_f64(x)) return lm_sin_fast_f64(x);
    if (a == LM_INF_F64) return LM_NAN_F64;
    double r = lm_angle_huge_f64(a, &quarter);
    double y = lm_sin_quarter_f64(r, quarter);
    return lm_float_f64(lm_bits_f64(y) ^ (lm_bits_f64(x) & 0x8000000000000000u));
}

LM_FN double lm_cos_f64(double x) {
    uint64_t quarter;
    double a = lm_abs_f64(x);
    if (lm_angle_is_small_f64(x)) return lm_cos_fast_f64(x);
    if (a == LM_INF_F64) return LM_NAN_F64;
    double r = lm_angle_huge_f64(a, &quarter);
    return lm_sin_quarter_f64(r, quarter + 1);
}

/* Natural logarithm of finite x > 0 in two parts, error 2^-64 of it. x = 2^k (1 + f), s = f / (2 +
** f) in two parts: log(1 + f) = 2 s + s^3 (2/3 + s^2 Q(s^2)), error 2^-69. */
LM_FN double lm_log_for_pow_f64(double x, double *low) {
    double k, f = lm_split_f64(x, &k) - 1.0;
    double d = 2.0 + f, dl = f - (d - 2.0);
    double s = f / d, sl = (lm_fma_exact_f64(-s, d, f) - s * dl) / d;
    double z = s * s, zl = lm_fma_exact_f64(s, s, -z) + 2.0 * s * sl;
    double p = 0x1.017bae1e1d376p-3;
    p = lm_fma_f64(p, z, 0x1.dad1294ccb4dfp-4);
    p = lm_fma_f64(p, z, 0x1.113a108f0fa14p-3);
    p = lm_fma_f64(p, z, 0x1.3b1298b924919p-3);
    p = lm_fma_f64(p, z, 0x1.745d1bc4529aep-3);
    p = lm_fma_f64(p, z, 0x1.c71c71bc74e2ep-3);
    p = lm_fma_f64(p, z, 0x1.2492492498d52p-2);
    p = lm_fma_f64(p, z, 0x1.9999999999968p-2);
    double q = p * z, c = q + 0x1.5555555555555p-1; /* 2/3 + z Q */
    double cl = q - (c - 0x1.5555555555555p-1) + 0x1.5555555555555p-55;
    double v = s * z, vl = lm_fma_exact_f64(s, z, -v) + (s * zl + sl * z); /* s^3 */
    double w = v * c, wl = lm_fma_exact_f64(v, c, -w) + (v * cl + vl * c);
    double a = k * LM_LN2_HI_F64, b = a + 2.0 * s, bl = 2.0 * s - (b - a);
    double y = b + w, yl = w - (y - b);
    yl += bl + (lm_fma_f64(k, LM_LN2_LO_F64, 2.0 * sl) + wl);
    double high = y + yl;
    *low = yl - (high - y);
    return high;
}

/* x to the power y, with the special cases of C's pow. ulp 1.2; where the power is a double, it is
** that double. */
LM_FN double lm_pow_f64(double x, double y) {
    double t, k, ll;
    double a = lm_abs_f64(x), b = lm_abs_f64(y);
    double l = lm_log_for_pow_f64(a, &ll);
    double v = y > 0x1p66 ? 0x1p66 : y; /* enough for any x but 1; NaN stays */
    v = v < -0x1p66 ? -0x1p66 : v;
    double e = v * l, el = lm_fma_f64(v, ll, lm_fma_exact_f64(v, l, -e));
    double c = e > 710.0 ? 710.0 : e;
    c = c < -746.0 ? -746.0 : c;
    el = lm_abs_f64(e) > 746.0 ? 0.0 : el;
    double rh = lm_exp_reduce_f64(c, &t, &k), lo = lm_fma_f64(-k, LM_LN2_LO_F64, el);
    double r = rh + lo, rl = lo - (r - rh);
    double p = 1.0 + (r + lm_fma_f64(r * r, lm_exp_tail_f64(r), rl));
    double result = lm_scale_f64(p, t, k);
    double end = (y > 0.0) == (a > 1.0) ? LM_INF_F64 : 0.0;
    result = ((a == 0.0) | (a == LM_INF_F64)) ? end : result;
    /* whole: y is a whole number; the low bit of u is that of y below 2^53 */
    double u = b < 0x1p52 ? b + 0x1p52 : b;
    int whole = (b >= 0x1p52) | (u - 0x1p52 == b);
    uint64_t odd = (whole & (b < 0x1p53)) ? lm_bits_f64(u) << 63 : 0;
    result = lm_float_f64(lm_bits_f64(result) ^ (odd & lm_bits_f64(x)));
    int undefined = (x < 0.0) & (x > -LM_INF_F64) & !whole;
    result = (undefined | (x != x) | (y != y)) ? LM_NAN_F64 : result;
    return ((x == 1.0) | (y == 0.0)) ? 1.0 : result;
}

#endif
