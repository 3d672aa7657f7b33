/* product.h -- products of floats with an exponent of their own, so that what leaves the range of
** double on the way comes back to it, and a product of parts is that of the whole. C, C++ and CUDA.
** Layer: kernels. */
#ifndef lm_product_h
#define lm_product_h

#include "bits.h"

/* m * 2^e. m is 0, infinite or NaN, or 2^-500 <= |m| <= 2^500; but any number where e is 0 and
** nothing was multiplied yet. */
typedef struct {
    double m;
    int64_t e;
} lm_product;

#define LM_PRODUCT_BITS_LEAST ((uint64_t)(1023 - 500) << 52)
#define LM_PRODUCT_BITS_SPAN ((uint64_t)1000 << 52)

LM_FN int lm_product_fits(double m) {
    uint64_t magnitude = lm_bits_f64(m) & 0x7fffffffffffffffu;
    return magnitude - LM_PRODUCT_BITS_LEAST <= LM_PRODUCT_BITS_SPAN;
}

/* 0, infinite or NaN: what a plain product with anything is right of. */
LM_FN int lm_product_stays(double m) {
    return m - m != 0 || m == 0;
}

/* A finite m that is not 0 as f * 2^e, 1 <= |f| < 2. */
LM_FN double lm_product_split(double m, int64_t *e) {
    if (lm_abs_f64(m) < 0x1p-1022) {
        m *= 0x1p54;
        *e -= 54;
    }
    uint64_t bits = lm_bits_f64(m);
    *e += (int64_t)(bits >> 52 & 0x7ff) - 1023;
    return lm_float_f64((bits & 0x800fffffffffffffu) | (uint64_t)1023 << 52);
}

LM_FN lm_product lm_product_join(lm_product a, lm_product b) {
    lm_product r;
    r.m = a.m * b.m;
    r.e = a.e + b.e;
    if (lm_product_fits(r.m)) return r;
    if (lm_product_stays(a.m) || lm_product_stays(b.m)) return r;
    double f = lm_product_split(a.m, &r.e), g = lm_product_split(b.m, &r.e);
    r.m = f * g;
    return r;
}

/* Rounded to double; once, where that is not the product of two. */
LM_FN double lm_product_value(lm_product p) {
    if (p.e == 0 || lm_product_stays(p.m)) return p.m;
    int64_t e = p.e;
    double f = lm_product_split(p.m, &e);
    if (e > 1023) return f * 0x1p1023 * 2.0;
    if (e >= -1022) return f * lm_float_f64((uint64_t)(e + 1023) << 52);
    if (e >= -1074) return f * lm_float_f64((uint64_t)1 << (e + 1074));
    return e == -1075 ? f * 0.5 * 0x1p-1074 : f * 0.0;
}

#endif
