/* pooling_type.h -- the greatest of rows and columns of one compute type; template: TOKEN, TYPE, LEAST,
** IS_NAN. Comparisons are joined by & and |, so that there is no branch. Layer: kernels/cpu/level. */

LM_FN bool NAME(lm_pool_greater)(TYPE a, TYPE b) {
    return (a > b) | (IS_NAN(a) & !IS_NAN(b));
}

static void NAME(lm_pool_first)(int64_t n, const void *x, void *value, int32_t *code, int32_t row) {
    const TYPE *v = x;
    TYPE *r = value;
    for (int64_t i = 0; i < n; i++)
        r[i] = v[i];
    for (int64_t i = 0; code && i < n; i++)
        code[i] = row;
}

static void NAME(lm_pool_rows)(int64_t n, const void *x, void *value, int32_t *code, int32_t row) {
    const TYPE *v = x;
    TYPE *r = value;
    if (!code) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = NAME(lm_pool_greater)(v[i], r[i]) ? v[i] : r[i];
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        bool wins = NAME(lm_pool_greater)(v[i], r[i]);
        r[i] = wins ? v[i] : r[i];
        code[i] = wins ? row : code[i];
    }
}

static void NAME(lm_pool_start)(int64_t n, void *best, int32_t *code) {
    TYPE *r = best;
    for (int64_t i = 0; i < n; i++)
        r[i] = LEAST;
    for (int64_t i = 0; code && i < n; i++)
        code[i] = INT32_MAX;
}

LM_FN void NAME(lm_pool_columns_by)(int64_t n, int64_t step, const TYPE *v, const int32_t *code,
                                    TYPE *r, int32_t *best_code) {
    if (!code) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            TYPE a = v[i * step];
            r[i] = NAME(lm_pool_greater)(a, r[i]) ? a : r[i];
        }
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        TYPE a = v[i * step], b = r[i];
        int32_t k = code[i * step], l = best_code[i];
        bool equal = (a == b) | (IS_NAN(a) & IS_NAN(b));
        bool wins = NAME(lm_pool_greater)(a, b) | (equal & (k < l));
        r[i] = wins ? a : b;
        best_code[i] = wins ? k : l;
    }
}

static void NAME(lm_pool_columns)(int64_t n, int64_t step, const void *value, const int32_t *code,
                                  void *best, int32_t *best_code) {
    if (step == 1)
        NAME(lm_pool_columns_by)(n, 1, value, code, best, best_code);
    else if (step == 2)
        NAME(lm_pool_columns_by)(n, 2, value, code, best, best_code);
    else
        NAME(lm_pool_columns_by)(n, step, value, code, best, best_code);
}

#undef TOKEN
#undef TYPE
#undef LEAST
#undef IS_NAN
