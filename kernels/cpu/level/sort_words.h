/* sort_words.h -- sorting of one kind of words; template, included by sort.c: WORD is the type,
** KIND its suffix, MAKE(key, at) makes one, KEY(w) orders them, DIGIT(w, shift) is the key moved right,
** AT(w) the position. Layer: kernels/cpu/level. */

#define NAME__(name, kind) name##_##kind
#define NAME_(name, kind) NAME__(name, kind)
#define NAME(name) NAME_(name, KIND)

/* Sorts n <= RUN words of w into y. */
#ifdef __AVX2__
#define RUN 16
/* A word's place is the number of words before it: all against all, as vectors. */
static void NAME(sort_run)(int64_t n, const WORD *w, WORD *y) {
    uint64_t keys[RUN], places[RUN] = {0};
    for (int64_t i = 0; i < RUN; i++)
        keys[i] = i < n ? KEY(w[i]) : UINT64_MAX;
    for (int64_t k = 0; k < RUN; k++) {
        for (int64_t i = 0; i < RUN; i++)
            places[i] += (keys[k] < keys[i]) | ((keys[k] == keys[i]) & (k < i));
    }
    for (int64_t i = 0; i < n; i++)
        y[places[i]] = w[i];
}
#else
#define RUN 8
static void NAME(sort_run)(int64_t n, const WORD *w, WORD *y) {
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        for (; k > 0 && KEY(y[k - 1]) > KEY(w[i]); k--)
            y[k] = y[k - 1];
        y[k] = w[i];
    }
}
#endif

/* a and b, sorted, to y; of equals those of a first. Without branches on the keys. */
static void NAME(join)(int64_t na, const WORD *a, int64_t nb, const WORD *b, WORD *y) {
    const WORD *enda = a + na, *endb = b + nb;
    while (a < enda && b < endb) {
        bool second = KEY(*b) < KEY(*a);
        *y++ = second ? *b : *a;
        a += !second;
        b += second;
    }
    while (a < enda)
        *y++ = *a++;
    while (b < endb)
        *y++ = *b++;
}

/* The same for two runs of n words, from both ends: neither end can run out before half is done. */
static void NAME(join_even)(int64_t n, const WORD *a, const WORD *b, WORD *y) {
    const WORD *lasta = a + n - 1, *lastb = b + n - 1;
    WORD *lasty = y + 2 * n - 1;
    for (int64_t i = 0; i < n; i++) {
        bool second = KEY(*b) < KEY(*a);
        *y++ = second ? *b : *a;
        a += !second;
        b += second;
        bool first = KEY(*lastb) < KEY(*lasta);
        *lasty-- = first ? *lasta : *lastb;
        lasta -= first;
        lastb -= !first;
    }
}

static void NAME(merge)(int64_t n, void *words, void *scratch) {
    WORD *x = words, *y = scratch;
    for (int64_t i = 0; i < n; i += RUN)
        NAME(sort_run)(n - i < RUN ? n - i : RUN, x + i, y + i);
    for (int64_t run = RUN; run < n; run *= 2) {
        WORD *other = x;
        x = y;
        y = other;
        for (int64_t i = 0; i < n; i += 2 * run) {
            if (n - i >= 2 * run) {
                NAME(join_even)(run, x + i, x + i + run, y + i);
            } else {
                int64_t na = n - i < run ? n - i : run;
                NAME(join)(na, x + i, n - i - na, x + i + na, y + i);
            }
        }
    }
    if (y != words) memcpy(words, y, (size_t)n * sizeof *y);
}

static void NAME(count)(int64_t n, const void *words, int shift, int bits, int64_t *counts) {
    const WORD *w = words;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (int64_t i = 0; i < n; i++)
        counts[DIGIT(w[i], shift) & mask]++;
}

static void NAME(spread)(int64_t n, const void *words, int shift, int bits, int64_t *next,
                         void *y) {
    const WORD *w = words;
    WORD *out = y;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (int64_t i = 0; i < n; i++)
        out[next[DIGIT(w[i], shift) & mask]++] = w[i];
}

static int64_t NAME(sift)(int64_t n, void *words, int shift, int bits, uint64_t digit, void *y,
                          int64_t *ny) {
    WORD *w = words, *below = (WORD *)y + *ny;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) { /* without branches on the keys */
        WORD x = w[i];
        uint64_t mine = DIGIT(x, shift) & mask;
        *below = w[kept] = x;
        below += mine < digit;
        kept += mine == digit;
    }
    *ny = below - (WORD *)y;
    return kept;
}

static void NAME(positions)(int64_t n, const void *words, int64_t base, char *y, int64_t sy) {
    const WORD *w = words;
    for (int64_t i = 0; i < n; i++)
        *(int64_t *)(void *)(y + i * sy) = (int64_t)AT(w[i]) + base;
}

INLINE void NAME(values)(size_t size, int64_t n, const void *words, const char *x, int64_t sx,
                         char *y, int64_t sy) {
    const WORD *w = words;
    for (int64_t i = 0; i < n; i++)
        memcpy(y + i * sy, x + (int64_t)AT(w[i]) * sx, size);
}

#define VALUES(size)                                                                               \
    static void NAME(values_##size)(int64_t n, const void *words, const char *x, int64_t sx,       \
                                    char *y, int64_t sy) {                                         \
        NAME(values)(size, n, words, x, sx, y, sy);                                                \
    }
VALUES(1)
VALUES(2)
VALUES(4)
VALUES(8)

INLINE void NAME(make)(uint64_t (*key)(const char *), uint64_t ones, size_t size, int64_t n,
                       const char *x, int64_t sx, bool descending, int64_t first, void *words) {
    WORD *w = words;
    uint64_t flip = descending ? ones : 0;
    if (sx == (int64_t)size) {
        for (int64_t i = 0; i < n; i++)
            w[i] = MAKE(key(x + i * (int64_t)size) ^ flip, (uint64_t)(first + i));
    } else {
        for (int64_t i = 0; i < n; i++)
            w[i] = MAKE(key(x + i * sx) ^ flip, (uint64_t)(first + i));
    }
}

#undef VALUES
#undef RUN
#undef NAME
#undef NAME_
#undef NAME__
#undef WORD
#undef KIND
#undef KEY
#undef DIGIT
#undef AT
#undef MAKE
