/* scan_float.h -- running sums and exponentials of one float type. Template: define TOKEN (f32,
** f64) and TYPE. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)
#define LOAD FN(lm_d8_load)
#define STORE FN(lm_d8_store)

LM_LANE void FN(running)(int64_t n, const TYPE *x, TYPE *y, double *sum, double *total,
                         bool stores) {
    double carry = *sum, own = *total, s = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        lm_d8 r = lm_d8_sums(LOAD(x + i));
        double last = LM_LAST8(r);
        if (stores) STORE(y + i, lm_d8_add(r, lm_d8_splat(carry)));
        carry += last;
        own += last;
    }
    for (; i < n; i++) {
        s += (double)x[i];
        if (stores) y[i] = (TYPE)(s + carry);
    }
    *sum = carry + s;
    *total = own + s;
}

static void FN(cumsum_rows)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                            void *sum, void *total) {
    double ignored = 0, *sums = sum, *totals = total;
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        double *own = totals ? &totals[i] : &ignored;
        if (y)
            FN(running)(n, from, (TYPE *)(void *)(y + i * sy), &sums[i], own, true);
        else
            FN(running)(n, from, NULL, &sums[i], own, false);
    }
}

static void FN(cumsum_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                               void *sum) {
    double *s = sum;
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy);
        int64_t j = 0;
        for (; j + 8 <= n; j += 8) {
            lm_d8 r = lm_d8_add(lm_d8_load_f64(s + j), LOAD(from + j));
            lm_d8_store_f64(s + j, r);
            STORE(to + j, r);
        }
        for (; j < n; j++) {
            s[j] += (double)from[j];
            to[j] = (TYPE)s[j];
        }
    }
}

/* Long rows one by one; of short ones many in one loop, whose vectors they would not fill, where
** results lie without gaps. */
static void FN(exps_rows)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                          const double *shift, double *sum) {
    bool together = n < 64 && sy == n * (int64_t)sizeof(TYPE);
    TYPE *all = (TYPE *)(void *)y;
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy), c = (TYPE)shift[i];
        if (together) {
            for (int64_t j = 0; j < n; j++)
                to[j] = from[j] - c;
        } else {
            for (int64_t j = 0; j < n; j++)
                to[j] = FN(lm_exp_below)(from[j] - c);
            sum[i] += FN(lm_sum)(to, n);
        }
    }
    if (!together) return;
    for (int64_t j = 0; j < m * n; j++)
        all[j] = FN(lm_exp_below)(all[j]);
    for (int64_t i = 0; i < m; i++)
        sum[i] += FN(lm_sum)(all + i * n, n);
}

/* part += the sum of four rows, added in their own type before they are widened. */
static void FN(add_four)(int64_t n, const char *y, int64_t sy, double *part) {
    const TYPE *a = (const TYPE *)(const void *)y, *b = (const TYPE *)(const void *)(y + sy);
    const TYPE *c = (const TYPE *)(const void *)(y + 2 * sy);
    const TYPE *d = (const TYPE *)(const void *)(y + 3 * sy);
    for (int64_t j = 0; j < n; j++)
        part[j] += (double)((a[j] + b[j]) + (c[j] + d[j]));
}

static void FN(exps_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                             const double *shift, double *restrict sum) {
    TYPE c[LM_FOLD_WIDTH];
    double part[LM_FOLD_WIDTH];
    for (int64_t j = 0; j < n; j++) {
        c[j] = (TYPE)shift[j];
        part[j] = 0;
    }
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++)
            to[j] = FN(lm_exp_below)(from[j] - c[j]);
        if (i % 4 == 3) FN(add_four)(n, y + (i - 3) * sy, sy, part);
    }
    for (int64_t i = m - m % 4; i < m; i++) {
        const TYPE *to = (const TYPE *)(const void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++)
            part[j] += (double)to[j];
    }
    for (int64_t j = 0; j < n; j++)
        sum[j] += part[j];
}

static void FN(scale_rows)(int64_t m, int64_t n, char *y, int64_t sy, const double *factor) {
    for (int64_t i = 0; i < m; i++) {
        TYPE *to = (TYPE *)(void *)(y + i * sy), c = (TYPE)factor[i];
        for (int64_t j = 0; j < n; j++)
            to[j] *= c;
    }
}

static void FN(scale_columns)(int64_t m, int64_t n, char *y, int64_t sy, const double *factor) {
    TYPE c[LM_FOLD_WIDTH];
    for (int64_t j = 0; j < n; j++)
        c[j] = (TYPE)factor[j];
    for (int64_t i = 0; i < m; i++) {
        TYPE *restrict to = (TYPE *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++)
            to[j] *= c[j];
    }
}

static void FN(shift_rows)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                           const double *first, const double *second) {
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *restrict to = (TYPE *)(void *)(y + i * sy);
        TYPE a = (TYPE)first[i], b = (TYPE)second[i];
        for (int64_t j = 0; j < n; j++)
            to[j] = (from[j] - a) - b;
    }
}

static void FN(shift_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                              const double *first, const double *second) {
    TYPE a[LM_FOLD_WIDTH], b[LM_FOLD_WIDTH];
    for (int64_t j = 0; j < n; j++) {
        a[j] = (TYPE)first[j];
        b[j] = (TYPE)second[j];
    }
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *restrict to = (TYPE *)(void *)(y + i * sy);
        for (int64_t j = 0; j < n; j++)
            to[j] = (from[j] - a[j]) - b[j];
    }
}

#undef LOAD
#undef STORE
#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
