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

/* Seldom beaten: branches are cheaper than what they skip. */
LM_LANE void FN(extreme_row)(int64_t n, const char *x, char *y, int64_t *places, int64_t first,
                             void *best, int64_t *at, bool least) {
    const TYPE *from = (const TYPE *)(const void *)x;
    TYPE *to = (TYPE *)(void *)y, v;
    int64_t place = *at, i = 0;
    if (n == 0) return;
    v = *(TYPE *)best;
    if (place < 0) {
        v = from[0];
        place = first;
    }
    while (i < n) {
        int64_t run = i;
        while (run < n && !BEATS(from[run], v, least))
            run++;
        if (to) {
            for (int64_t j = i; j < run; j++)
                to[j] = v;
            for (int64_t j = i; j < run; j++)
                places[j] = place;
        }
        if (run < n) {
            v = from[run];
            place = first + run;
            if (to) {
                to[run] = v;
                places[run] = place;
            }
        }
        i = run + 1;
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
