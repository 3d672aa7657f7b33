/* attention_float.h -- the softmax between the two products of attention, of one float type.
** Template: define TOKEN (f32, f64) and TYPE. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)
#define MOST (LM_ATTENTION_BYTES / (int)sizeof(TYPE))

/* The loops run over all columns of a row, used or not, so that their count is a constant. */
static void FN(soften)(int64_t keys, void *scores, void *greatest, double *sum, void *factor) {
    TYPE *restrict g = greatest, *restrict f = factor;
    TYPE best[MOST], part[MOST];
    for (int j = 0; j < MOST; j++)
        best[j] = g[j];
    for (int64_t i = 0; i < keys; i++) {
        const TYPE *row = (const TYPE *)scores + i * MOST;
        for (int j = 0; j < MOST; j++)
            best[j] = best[j] > row[j] ? best[j] : row[j];
    }
    for (int j = 0; j < MOST; j++) {
        TYPE shift = best[j] == -(TYPE)INFINITY ? 0 : best[j];
        f[j] = FN(lm_exp_below)(g[j] - shift);
        g[j] = best[j];
        best[j] = shift;
        part[j] = 0;
    }
    for (int64_t i = 0; i < keys; i++) {
        TYPE *row = (TYPE *)scores + i * MOST;
        for (int j = 0; j < MOST; j++) {
            row[j] = FN(lm_exp_below)(row[j] - best[j]);
            part[j] += row[j];
        }
    }
    for (int j = 0; j < MOST; j++)
        sum[j] = sum[j] * (double)f[j] + (double)part[j];
}

/* The same for rows of n keys, one for each of m queries. */
static void FN(soften_rows)(int64_t m, int64_t n, void *scores, void *greatest, double *sum,
                            double *factor) {
    TYPE *g = greatest;
    for (int64_t i = 0; i < m; i++) {
        TYPE *row = (TYPE *)scores + i * n, lane[16], best = g[i];
        int64_t k = 0;
        for (int j = 0; j < 16; j++)
            lane[j] = best;
        for (; k + 16 <= n; k += 16) {
            for (int j = 0; j < 16; j++)
                lane[j] = lane[j] > row[k + j] ? lane[j] : row[k + j];
        }
        for (; k < n; k++)
            lane[0] = lane[0] > row[k] ? lane[0] : row[k];
        for (int j = 0; j < 16; j++)
            best = best > lane[j] ? best : lane[j];
        TYPE shift = best == -(TYPE)INFINITY ? 0 : best;
        factor[i] = (double)FN(lm_exp_below)(g[i] - shift);
        g[i] = best;
        for (k = 0; k < n; k++)
            row[k] = FN(lm_exp_below)(row[k] - shift);
        sum[i] = sum[i] * factor[i] + FN(lm_sum)(row, n);
    }
}

static void FN(rescale)(int64_t rows, void *sums, const void *factor) {
    const TYPE *f = factor;
    for (int64_t i = 0; i < rows; i++) {
        TYPE *restrict row = (TYPE *)sums + i * MOST;
        for (int j = 0; j < MOST; j++)
            row[j] *= f[j];
    }
}

static void FN(hide)(int64_t n, void *scores, const void *mask, bool adds) {
    const TYPE *m = mask;
    TYPE *restrict s = scores;
    if (adds) {
        for (int64_t i = 0; i < n; i++)
            s[i] += m[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            s[i] = m[i] != 0 ? s[i] : -(TYPE)INFINITY;
    }
}

/* Pairs (a, b) turned by their angles: (a cos - b sin, a sin + b cos). */
static void FN(rotate_halves)(int64_t n, const char *a, const char *b, char *ya, char *yb,
                              const char *cos, const char *sin) {
    const TYPE *p = (const TYPE *)(const void *)a, *q = (const TYPE *)(const void *)b;
    const TYPE *c = (const TYPE *)(const void *)cos, *s = (const TYPE *)(const void *)sin;
    TYPE *restrict y = (TYPE *)(void *)ya, *restrict z = (TYPE *)(void *)yb;
    for (int64_t i = 0; i < n; i++) {
        TYPE u = p[i], v = q[i];
        y[i] = u * c[i] - v * s[i];
        z[i] = u * s[i] + v * c[i];
    }
}

static void FN(rotate_pairs)(int64_t n, const char *a, const char *b, char *ya, char *yb,
                             const char *cos, const char *sin) {
    (void)b;
    (void)yb;
    const TYPE *x = (const TYPE *)(const void *)a;
    const TYPE *c = (const TYPE *)(const void *)cos, *s = (const TYPE *)(const void *)sin;
    TYPE *restrict y = (TYPE *)(void *)ya;
    for (int64_t i = 0; i < n; i++) {
        TYPE u = x[2 * i], v = x[2 * i + 1];
        y[2 * i] = u * c[i] - v * s[i];
        y[2 * i + 1] = u * s[i] + v * c[i];
    }
}

#undef MOST
#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
