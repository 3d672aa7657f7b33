/* running_prod.h -- running products of one float type. Template: define TOKEN (f32, f64) and TYPE.
** Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)

/* Whether elements are so near to 1 that a product of eight of them stays in 2^-480 .. 2^480. */
LM_LANE bool FN(is_near)(int64_t n, const TYPE *x) {
    int64_t far = 0;
    for (int64_t k = 0; k < n; k++) {
        uint64_t magnitude = lm_bits_f64((double)x[k]) & 0x7fffffffffffffffu;
        far |= magnitude - ((uint64_t)(1023 - 60) << 52) > (uint64_t)120 << 52;
    }
    return !far;
}

LM_LANE lm_product FN(times)(lm_product p, TYPE x) {
    double m = p.m * (double)x;
    if (lm_product_fits(m) || lm_product_stays(p.m)) return (lm_product){m, p.e};
    return lm_product_join(p, (lm_product){(double)x, 0});
}

/* Eight at a time where they are near 1. What is before them has an exponent of its own, which three
** factors make up; past 2^2100 all is infinite or 0. */
static void FN(prod_row)(int64_t n, const char *x, char *y, const void *start, void *own) {
    const TYPE *from = (const TYPE *)(const void *)x;
    TYPE *to = (TYPE *)(void *)y;
    lm_product before, p, *carry = own;
    memcpy(&before, start, sizeof before);
    p = *carry;
    for (int64_t i = 0; i < n;) {
        int64_t end = i + 8 < n ? i + 8 : n;
        lm_product both = lm_product_join(before, p);
        if (end - i == 8 && FN(is_near)(8, from + i)) {
            lm_d8 r = lm_d8_products(FN(lm_d8_load)(from + i));
            lm_d8 v = lm_d8_mul(r, lm_d8_splat(both.m));
            if (both.e > 2100 || both.e < -2100) {
                v = lm_d8_mul(v, lm_d8_splat(both.e > 0 ? LM_INF_F64 : 0));
            } else if (both.e != 0) {
                int64_t third = both.e / 3, rest = both.e - 2 * third;
                v = lm_d8_mul(v, lm_d8_splat(power(third)));
                v = lm_d8_mul(v, lm_d8_splat(power(third)));
                v = lm_d8_mul(v, lm_d8_splat(power(rest)));
            }
            if (to) FN(lm_d8_store)(to + i, v);
            p = lm_product_join(p, (lm_product){LM_LAST8(r), 0});
            i = end;
            continue;
        }
        for (; i < end; i++) {
            p = FN(times)(p, from[i]);
            if (to) to[i] = (TYPE)lm_product_value(lm_product_join(before, p));
        }
    }
    *carry = p;
}

/* One row of any elements. */
static void FN(prod_any)(int64_t n, const TYPE *x, TYPE *y, double *m, int64_t *e) {
    for (int64_t j = 0; j < n; j++) {
        lm_product p = FN(times)((lm_product){m[j], e[j]}, x[j]);
        m[j] = p.m;
        e[j] = p.e;
        y[j] = (TYPE)lm_product_value(p);
    }
}

/* One of elements near 1 while exponents differ from 0: each product is split anew. */
static void FN(prod_far)(int64_t n, const TYPE *x, TYPE *y, double *restrict m,
                         int64_t *restrict e) {
    for (int64_t j = 0; j < n; j++) {
        double p = m[j] * (double)x[j];
        uint64_t bits = lm_bits_f64(p), magnitude = bits & 0x7fffffffffffffffu;
        bool stays = (magnitude == 0) | (magnitude >= (uint64_t)0x7ff << 52);
        int64_t k = stays ? 0 : (int64_t)(magnitude >> 52) - 1023;
        uint64_t near = (bits & 0x800fffffffffffffu) | (uint64_t)1023 << 52;
        p = stays ? p : lm_float_f64(near);
        k += e[j];
        m[j] = p;
        e[j] = k;
        bool beyond = (k > 1100) | (k < -1100);
        double end = k > 0 ? LM_INF_F64 : 0, half = power((beyond ? 0 : k) >> 1);
        double rest = power((beyond ? 0 : k) - ((beyond ? 0 : k) >> 1));
        y[j] = (TYPE)(stays ? p : p * (beyond ? end : half) * rest);
    }
}

static void FN(prod_columns)(int64_t rows, int64_t n, const char *x, int64_t sx, char *y,
                             int64_t sy, double *m, int64_t *e) {
    for (int64_t i = 0; i < rows; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy);
        int64_t far = 0;
        for (int64_t j = 0; j < n; j++) {
            double p = m[j] * (double)from[j];
            bool leaves = !lm_product_fits(p);
            far |= e[j] | ((int64_t)leaves & (int64_t)lm_product_fits(m[j]));
        }
        if (far && FN(is_near)(n, from)) {
            FN(prod_far)(n, from, to, m, e);
        } else if (far) {
            FN(prod_any)(n, from, to, m, e);
        } else {
            for (int64_t j = 0; j < n; j++) {
                m[j] *= (double)from[j];
                to[j] = (TYPE)m[j];
            }
        }
    }
}

#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
