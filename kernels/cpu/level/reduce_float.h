/* reduce_float.h -- sums, products and sums of exponentials of one float type. Template: define
** TOKEN (f32, f64), TYPE and EXP_WORD. Everything adds in double. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)
#define LOAD FN(lm_d8_load)

/* Sum of the terms of n elements: 32 lanes, folded every 2048 elements so that no lane adds many.
 */
LM_LANE double FN(total)(const TYPE *x, int64_t n, double param, term8 term, term1 single) {
    lm_d8 p = lm_d8_splat(param);
    double total = 0, rest = 0;
    while (n >= 32) {
        int64_t block = n < 2048 ? n & ~INT64_C(31) : 2048;
        lm_d8 a = term(LOAD(x), p), b = term(LOAD(x + 8), p);
        lm_d8 c = term(LOAD(x + 16), p), d = term(LOAD(x + 24), p);
        for (int64_t i = 32; i < block; i += 32) {
            a = lm_d8_add(a, term(LOAD(x + i), p));
            b = lm_d8_add(b, term(LOAD(x + i + 8), p));
            c = lm_d8_add(c, term(LOAD(x + i + 16), p));
            d = lm_d8_add(d, term(LOAD(x + i + 24), p));
        }
        total += lm_d8_sum(lm_d8_add(lm_d8_add(a, b), lm_d8_add(c, d)));
        x += block;
        n -= block;
    }
    if (n >= 8) {
        lm_d8 a = term(LOAD(x), p);
        for (n -= 8, x += 8; n >= 8; n -= 8, x += 8)
            a = lm_d8_add(a, term(LOAD(x), p));
        total += lm_d8_sum(a);
    }
    for (int64_t i = 0; i < n; i++)
        rest += single((double)x[i], param);
    return total + rest;
}

LM_LANE void FN(total_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                            term8 term, term1 single) {
    double *value = f->value;
    const double *param = f->param ? f->param : value;
    for (int64_t i = 0; i < m; i++) {
        int64_t k = i * f->step;
        value[k] += FN(total)((const TYPE *)(const void *)(x + i * sx), n, param[k], term, single);
    }
}

/* Eight rows at a time, so that the running values are read and written once for eight. */
LM_LANE void FN(total_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                               term8 term, term1 single) {
    double *restrict value = f->value;
    const double *param = f->param ? f->param : value;
    for (int64_t i = 0; i + 8 <= m; i += 8, x += 8 * sx) {
        const TYPE *row[8];
        int64_t j = 0;
        for (int r = 0; r < 8; r++)
            row[r] = (const TYPE *)(const void *)(x + r * sx);
        for (; j + 8 <= n; j += 8) {
            lm_d8 p = lm_d8_load_f64(param + j), t[8];
            for (int r = 0; r < 8; r++)
                t[r] = term(LOAD(row[r] + j), p);
            lm_d8 a = lm_d8_add(lm_d8_add(t[0], t[1]), lm_d8_add(t[2], t[3]));
            lm_d8 b = lm_d8_add(lm_d8_add(t[4], t[5]), lm_d8_add(t[6], t[7]));
            lm_d8_store_f64(value + j, lm_d8_add(lm_d8_load_f64(value + j), lm_d8_add(a, b)));
        }
        for (; j < n; j++) {
            double p = param[j], t[8];
            for (int r = 0; r < 8; r++)
                t[r] = single((double)row[r][j], p);
            value[j] += ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
        }
    }
    for (int64_t i = 0; i < m % 8; i++, x += sx) {
        const TYPE *row = (const TYPE *)(const void *)x;
        for (int64_t j = 0; j < n; j++)
            value[j] += single((double)row[j], param[j]);
    }
}

static void FN(sum_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(total_rows)(m, n, x, sx, f, same8, same1);
}

static void FN(exact_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(total_columns)(m, n, x, sx, f, same8, same1);
}

static void FN(squares_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(total_rows)(m, n, x, sx, f, square8, square1);
}

static void FN(squares_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(total_columns)(m, n, x, sx, f, square8, square1);
}

#define SUM_ROWS(name)                                                                             \
    static void FN(name##_rows)(int64_t m, int64_t n, const char *x, int64_t sx,                   \
                                const lm_fold *f) {                                                \
        FN(total_rows)(m, n, x, sx, f, name##8, name##1);                                          \
    }
SUM_ROWS(number)
SUM_ROWS(is_number)
SUM_ROWS(magnitude)
#undef SUM_ROWS

static double FN(product)(const TYPE *x, int64_t n) {
    lm_d8 a = lm_d8_splat(1);
    double rest = 1;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        a = lm_d8_mul(a, LOAD(x + i));
    for (; i < n; i++)
        rest *= (double)x[i];
    return lm_d8_product(a) * rest;
}

static void FN(prod_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    double *value = f->value;
    for (int64_t i = 0; i < m; i++)
        value[i * f->step] *= FN(product)((const TYPE *)(const void *)(x + i * sx), n);
}

static void FN(prod_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    double *restrict value = f->value;
    for (int64_t i = 0; i < m; i++) {
        const TYPE *row = (const TYPE *)(const void *)(x + i * sx);
        for (int64_t j = 0; j < n; j++)
            value[j] *= (double)row[j];
    }
}

/* Exponentials of many short rows in one loop, whose vectors each alone would not fill. */
#define BLOCK 1024
static void FN(exps_short_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    TYPE e[BLOCK];
    double *value = f->value;
    int64_t tall = BLOCK / n;
    for (int64_t i = 0; i < m; i += tall) {
        int64_t rows = m - i < tall ? m - i : tall;
        for (int64_t r = 0; r < rows; r++) {
            const TYPE *row = (const TYPE *)(const void *)(x + (i + r) * sx);
            TYPE shift = (TYPE)f->param[(i + r) * f->step];
            for (int64_t j = 0; j < n; j++)
                e[r * n + j] = row[j] - shift;
        }
        for (int64_t j = 0; j < rows * n; j++)
            e[j] = FN(lm_exp_below)(e[j]);
        for (int64_t r = 0; r < rows; r++)
            value[(i + r) * f->step] += FN(lm_sum)(e + r * n, n);
    }
}

static void FN(exps_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    TYPE e[BLOCK];
    double *value = f->value;
    if (n == 0) return;
    if (n < 64) {
        FN(exps_short_rows)(m, n, x, sx, f);
        return;
    }
    for (int64_t i = 0; i < m; i++) {
        const TYPE *row = (const TYPE *)(const void *)(x + i * sx);
        TYPE shift = (TYPE)f->param[i * f->step];
        for (int64_t k = 0; k < n; k += BLOCK) {
            int64_t width = n - k < BLOCK ? n - k : BLOCK;
            for (int64_t j = 0; j < width; j++)
                e[j] = FN(lm_exp_below)(row[k + j] - shift);
            value[i * f->step] += FN(lm_sum)(e, width);
        }
    }
}

static void FN(exps_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    TYPE shift[LM_FOLD_WIDTH], e[LM_FOLD_WIDTH];
    double *restrict value = f->value;
    for (int64_t j = 0; j < n; j++)
        shift[j] = (TYPE)f->param[j];
    for (int64_t i = 0; i < m; i++) {
        const TYPE *row = (const TYPE *)(const void *)(x + i * sx);
        for (int64_t j = 0; j < n; j++)
            e[j] = FN(lm_exp_below)(row[j] - shift[j]);
        for (int64_t j = 0; j < n; j++)
            value[j] += (double)e[j];
    }
}

#undef BLOCK
#undef LOAD
#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
