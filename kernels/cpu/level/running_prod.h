/* running_prod.h -- running products of one float type. Template: define TOKEN (f32, f64) and TYPE.
** Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)

static void FN(prod_row)(int64_t n, const char *x, char *y, const void *start, void *own) {
    const TYPE *from = (const TYPE *)(const void *)x;
    TYPE *to = (TYPE *)(void *)y;
    lm_product before, p, *carry = own;
    memcpy(&before, start, sizeof before);
    p = *carry;
    bool first = before.m == 1 && before.e == 0;
    for (int64_t i = 0; i < n; i++) {
        double m = p.m * (double)from[i];
        if (lm_product_fits(m))
            p.m = m;
        else
            p = lm_product_join(p, (lm_product){(double)from[i], 0});
        if (!to) continue;
        to[i] = (TYPE)(first && p.e == 0 ? p.m : lm_product_value(lm_product_join(before, p)));
    }
    *carry = p;
}

/* Columns whose products left the range, or are about to. */
static void FN(prod_far)(int64_t n, const TYPE *x, TYPE *y, double *m, int64_t *e) {
    for (int64_t j = 0; j < n; j++) {
        lm_product p = lm_product_join((lm_product){m[j], e[j]}, (lm_product){(double)x[j], 0});
        m[j] = p.m;
        e[j] = p.e;
        y[j] = (TYPE)lm_product_value(p);
    }
}

static void FN(prod_columns)(int64_t rows, int64_t n, const char *x, int64_t sx, char *y,
                             int64_t sy, double *m, int64_t *e) {
    int64_t far = 0;
    for (int64_t j = 0; j < n; j++)
        far |= e[j];
    for (int64_t i = 0; i < rows; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n && !far; j++) {
            double p = m[j] * (double)from[j];
            bool lost = !lm_product_fits(p), plain = lm_product_stays((double)from[j]);
            far |= (int64_t)lost & (int64_t)lm_product_fits(m[j]) & (int64_t)!plain;
        }
        if (far) {
            FN(prod_far)(n, from, to, m, e);
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            m[j] *= (double)from[j];
            to[j] = (TYPE)m[j];
        }
    }
}

#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
