/* reduce_arg.h -- positions of the greatest and least of one type, with the values. Template:
** define TOKEN, TYPE, INDEX (an integer of its width, 4 bytes at least), FROM_KEY, IS_NAN and, where
** there is one, EQUAL64, and include after reduce_key.h of that token. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)

/* Whether x takes the place of best: NaN is beyond everything, equals never do. */
LM_LANE bool FN(above)(TYPE x, TYPE best) {
    return (x > best) | (IS_NAN(x) & !IS_NAN(best));
}

LM_LANE bool FN(below)(TYPE x, TYPE best) {
    return (x < best) | (IS_NAN(x) & !IS_NAN(best));
}

/* First position of v (or of the first NaN) in a block that has it. */
#define PIECE 256
static int64_t FN(first)(const TYPE *x, int64_t n, TYPE v) {
    bool nan = IS_NAN(v);
    int64_t k = 0;
#ifdef EQUAL64
    for (; !nan && n - k >= 64; k += 64) {
        uint64_t here = EQUAL64(x + k, v);
        if (here) return k + __builtin_ctzll(here);
    }
#endif
    for (; k < n; k += PIECE) {
        int32_t width = n - k < PIECE ? (int32_t)(n - k) : PIECE, at = PIECE;
        for (int32_t i = 0; i < width; i++) {
            TYPE a = x[k + i];
            int32_t here = nan ? (IS_NAN(a) ? i : PIECE) : (a == v ? i : PIECE);
            at = here < at ? here : at;
        }
        if (at < PIECE) return k + at;
    }
    return 0;
}
#undef PIECE

/* The extreme of a block comes first, cheaply; the block is searched for it only if it counts. */
#define BLOCK 2048
LM_LANE void FN(arg_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                          bool max) {
    TYPE *value = f->value;
    for (int64_t i = 0; i < m; i++) {
        const TYPE *row = (const TYPE *)(const void *)(x + i * sx);
        TYPE *v = &value[i * f->step];
        int64_t *p = &f->position[i * f->step];
        for (int64_t k = 0; k < n; k += BLOCK) {
            int64_t width = n - k < BLOCK ? n - k : BLOCK;
            TYPE e = FROM_KEY(FN(extreme)(row + k, width, max));
            if (*p >= 0 && !(max ? FN(above)(e, *v) : FN(below)(e, *v))) continue;
            int64_t at = k + FN(first)(row + k, width, e);
            *v = row[at]; /* of two zeros not the greater one but the first */
            *p = f->at + at;
        }
    }
}
#undef BLOCK

LM_LANE void FN(arg_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f,
                             bool (*beats)(TYPE, TYPE)) {
    INDEX at[LM_FOLD_WIDTH]; /* row; -1: the value stays as it was */
    TYPE *restrict value = f->value;
    const TYPE *row = (const TYPE *)(const void *)x;
    bool none = n > 0 && f->position[0] < 0;
    for (int64_t j = 0; j < n; j++) {
        at[j] = none ? 0 : -1;
        if (none) value[j] = row[j];
    }
    for (INDEX i = 0; i < m; i++) {
        row = (const TYPE *)(const void *)(x + i * sx);
        for (int64_t j = 0; j < n; j++) {
            bool better = beats(row[j], value[j]);
            value[j] = better ? row[j] : value[j];
            at[j] = better ? i : at[j];
        }
    }
    for (int64_t j = 0; j < n; j++)
        f->position[j] = at[j] < 0 ? f->position[j] : f->at + at[j];
}

static void FN(argmax_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(arg_rows)(m, n, x, sx, f, true);
}

static void FN(argmin_rows)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(arg_rows)(m, n, x, sx, f, false);
}

static void FN(argmax_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(arg_columns)(m, n, x, sx, f, FN(above));
}

static void FN(argmin_columns)(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    FN(arg_columns)(m, n, x, sx, f, FN(below));
}

#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
#undef INDEX
#undef FROM_KEY
#undef IS_NAN
#undef EQUAL64
