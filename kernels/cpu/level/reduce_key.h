/* reduce_key.h -- greatest and least of one type. Template: define TOKEN, TYPE, KEY (the integer
** type that is compared), KEY_MIN, KEY_MAX and, for floats, FLOAT. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)

#ifdef FLOAT
#define TO_KEY FN(lm_key)
#define INF FN(LM_KEY_INF)
/* The key of x, NaN of either sign as `nan`. */
LM_LANE KEY FN(canonical)(TYPE x, KEY nan) {
    KEY k = TO_KEY(x);
    return x != x ? nan : k;
}
#else
#define TO_KEY(x) (x)
#endif

LM_LANE KEY FN(greater)(KEY a, KEY b) {
    return a > b ? a : b;
}

LM_LANE KEY FN(lesser)(KEY a, KEY b) {
    return a < b ? a : b;
}

/* Both ends at once: of floats a NaN shows at either end. */
LM_LANE KEY FN(extreme)(const TYPE *x, int64_t n, bool max) {
    KEY hi = KEY_MIN, lo = KEY_MAX;
#ifdef FLOAT
    for (int64_t i = 0; i < n; i++) {
        KEY k = TO_KEY(x[i]);
        hi = k > hi ? k : hi;
        lo = k < lo ? k : lo;
    }
    if (hi > INF || lo < ~INF) return max ? KEY_MAX : KEY_MIN;
#else
    if (max) {
        for (int64_t i = 0; i < n; i++)
            hi = x[i] > hi ? x[i] : hi;
    } else {
        for (int64_t i = 0; i < n; i++)
            lo = x[i] < lo ? x[i] : lo;
    }
#endif
    return max ? hi : lo;
}

LM_LANE void FN(extreme_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                              bool max) {
    KEY *value = f->value;
    if (n == 0) return;
    for (int64_t i = 0; i < m; i++) {
        KEY k = FN(extreme)((const TYPE *)(const void *)(x + i * sx), n, max);
        KEY *v = &value[i * f->step];
        *v = max ? FN(greater)(*v, k) : FN(lesser)(*v, k);
    }
}

LM_LANE void FN(extreme_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                                 KEY (*pick)(KEY, KEY), KEY nan) {
    KEY *restrict value = f->value;
    (void)nan;
#ifdef FLOAT
#define AT(row, j) FN(canonical)(row[j], nan)
#else
#define AT(row, j) row[j]
#endif
    for (; m >= 4; m -= 4, x += 4 * sx) {
        const TYPE *a = (const TYPE *)(const void *)x, *b = (const TYPE *)(const void *)(x + sx);
        const TYPE *c = (const TYPE *)(const void *)(x + 2 * sx);
        const TYPE *d = (const TYPE *)(const void *)(x + 3 * sx);
        for (int64_t j = 0; j < n; j++) {
            KEY k = pick(pick(AT(a, j), AT(b, j)), pick(AT(c, j), AT(d, j)));
            value[j] = pick(value[j], k);
        }
    }
    for (; m > 0; m--, x += sx) {
        const TYPE *row = (const TYPE *)(const void *)x;
        for (int64_t j = 0; j < n; j++)
            value[j] = pick(value[j], AT(row, j));
    }
#undef AT
}

static void FN(max_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(extreme_rows)(m, n, x, sx, f, true);
}

static void FN(min_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(extreme_rows)(m, n, x, sx, f, false);
}

static void FN(max_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(extreme_columns)(m, n, x, sx, f, FN(greater), KEY_MAX);
}

static void FN(min_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(extreme_columns)(m, n, x, sx, f, FN(lesser), KEY_MIN);
}

#undef TO_KEY
#undef INF
#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
#undef KEY
#undef KEY_MIN
#undef KEY_MAX
#undef FLOAT
