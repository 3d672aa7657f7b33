/* exps.h -- exponentials of what is not above 0, and their sums: for softmax and logsumexp, which
** take the greatest off first. Layer: kernels/cpu/level. */
#ifndef lm_exps_h
#define lm_exps_h

#include "lanes.h"
#include "math_f32.h"
#include "math_f64.h"

/* e^x for x <= 0 or NaN: the bits of lm_exp with fewer steps, as nothing overflows. */
LM_LANE float lm_exp_below_f32(float x) {
    int32_t n;
    float r = lm_exp_reduce_f32(x < -104.0f ? -104.0f : x, &n);
    /* n >= -150: 2^(n + 64) is normal, and the last product alone rounds */
    return lm_exp_near_0_f32(r) * lm_float_f32((uint32_t)(n + 64 + 127) << 23) * 0x1p-64f;
}

LM_LANE double lm_exp_below_f64(double x) {
    double t, k;
    double r = lm_exp_reduce_f64(x < -746.0 ? -746.0 : x, &t, &k);
    r = lm_fma_f64(-k, LM_LN2_LO_F64, r);
    return lm_exp_near_0_f64(r) * lm_float_f64((lm_bits_f64(t) + 512 + 1023) << 52) * 0x1p-512;
}

/* Sum of n elements. Of float32, fours are added before they are widened: an ulp at most, and a
** quarter of the widening. */
LM_LANE double lm_sum_f32(const float *x, int64_t n) {
    double total = 0, rest = 0;
    int64_t i = 0;
    if (n >= 64) {
        lm_d8 a = lm_d8_splat(0), b = a;
        for (; i + 64 <= n; i += 64) {
            float s[16];
            for (int k = 0; k < 16; k++)
                s[k] = (x[i + k] + x[i + 16 + k]) + (x[i + 32 + k] + x[i + 48 + k]);
            a = lm_d8_add(a, lm_d8_load_f32(s));
            b = lm_d8_add(b, lm_d8_load_f32(s + 8));
        }
        total = lm_d8_sum(lm_d8_add(a, b));
    }
    if (i + 8 <= n) {
        lm_d8 a = lm_d8_load_f32(x + i);
        for (i += 8; i + 8 <= n; i += 8)
            a = lm_d8_add(a, lm_d8_load_f32(x + i));
        total += lm_d8_sum(a);
    }
    for (; i < n; i++)
        rest += (double)x[i];
    return total + rest;
}

LM_LANE double lm_sum_f64(const double *x, int64_t n) {
    double total = 0, rest = 0;
    int64_t i = 0;
    if (n >= 16) {
        lm_d8 a = lm_d8_load_f64(x), b = lm_d8_load_f64(x + 8);
        for (i = 16; i + 16 <= n; i += 16) {
            a = lm_d8_add(a, lm_d8_load_f64(x + i));
            b = lm_d8_add(b, lm_d8_load_f64(x + i + 8));
        }
        total = lm_d8_sum(lm_d8_add(a, b));
    }
    for (; i < n; i++)
        rest += x[i];
    return total + rest;
}

#endif
