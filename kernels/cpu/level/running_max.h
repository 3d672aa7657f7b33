/* running_max.h -- the greatest and the least so far, and where they are, of one type. Template:
** define TOKEN and TYPE, REAL for floats, whose NaN wins. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)
#ifdef REAL
#define BEATS(v, best, least)                                                                      \
    (((least) ? (v) < (best) : (v) > (best)) || ((v) != (v) && (best) == (best)))
#else
#define BEATS(v, best, least) ((least) ? (v) < (best) : (v) > (best))
#endif

/* n values that are all v's, found at place. */
LM_LANE void FN(repeat)(int64_t n, TYPE v, int64_t place, TYPE *y, int64_t *places) {
    for (int64_t j = 0; j < n; j++)
        y[j] = v;
    for (int64_t j = 0; j < n; j++)
        places[j] = place;
}

/* A run of elements at a time, of which seldom one beats the best so far. */
LM_LANE void FN(extreme_row)(int64_t n, const char *x, char *y, int64_t *places, int64_t first,
                             void *best, int64_t *at, bool least) {
    enum { RUN = 32 };
    const TYPE *from = (const TYPE *)(const void *)x;
    TYPE *to = (TYPE *)(void *)y, v;
    int64_t place = *at;
    if (n == 0) return;
    v = *(TYPE *)best;
    if (place < 0) {
        v = from[0];
        place = first;
    }
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t count = n - i < RUN ? n - i : RUN;
        const TYPE *a = from + i;
        unsigned beaten = 0;
        if (count == RUN) {
            for (int64_t j = 0; j < RUN; j++)
                beaten |= (unsigned)(BEATS(a[j], v, least));
        } else {
            beaten = 1;
        }
        if (!beaten) {
            if (to) FN(repeat)(RUN, v, place, to + i, places + i);
            continue;
        }
        for (int64_t j = 0; j < count; j++) {
            if (BEATS(a[j], v, least)) {
                v = a[j];
                place = first + i + j;
            }
            if (!to) continue;
            to[i + j] = v;
            places[i + j] = place;
        }
    }
    *(TYPE *)best = v;
    *at = place;
}

LM_LANE void FN(extreme_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                 int64_t sy, char *places, int64_t sp, int64_t first, void *best,
                                 int64_t *at, bool least) {
    TYPE *v = best;
    if (m > 0 && at[0] < 0) {
        memcpy(v, x, (size_t)n * sizeof *v);
        for (int64_t j = 0; j < n; j++)
            at[j] = first;
    }
    for (int64_t i = 0; i < m; i++) {
        const TYPE *from = (const TYPE *)(const void *)(x + i * sx);
        TYPE *to = (TYPE *)(void *)(y + i * sy);
        int64_t *place = (int64_t *)(void *)(places + i * sp), here = first + i;
        for (int64_t j = 0; j < n; j++)
            at[j] = BEATS(from[j], v[j], least) ? here : at[j];
        for (int64_t j = 0; j < n; j++)
            v[j] = BEATS(from[j], v[j], least) ? from[j] : v[j];
        memcpy(to, v, (size_t)n * sizeof *to);
        memcpy(place, at, (size_t)n * sizeof *place);
    }
}

#define EXTREMES(name, least)                                                                      \
    static void FN(name##_row)(int64_t n, const char *x, char *y, int64_t *places, int64_t first,  \
                               void *best, int64_t *at) {                                          \
        FN(extreme_row)(n, x, y, places, first, best, at, least);                                  \
    }                                                                                              \
    static void FN(name##_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y,       \
                                   int64_t sy, char *places, int64_t sp, int64_t first,            \
                                   void *best, int64_t *at) {                                      \
        FN(extreme_columns)(m, n, x, sx, y, sy, places, sp, first, best, at, least);               \
    }
EXTREMES(cummax, false)
EXTREMES(cummin, true)

#undef EXTREMES
#undef BEATS
#undef REAL
#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
