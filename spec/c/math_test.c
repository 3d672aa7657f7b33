/* math_test.c -- measures the transcendental words against the C library at
*twice the precision,
** over a stride through all floats (--stride 1: every float) and over drawn
*doubles; checks special
** values, and that all levels with fused multiply-add give the bits written
*down in math_words.h,
** whatever the compiler. Exit 1 where one of it fails. --speed prints ns per
*element instead. */
#include "math_words.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK 4096
#define DEFAULT_STRIDE 2039
#define DRAWN (40 * BLOCK) /* doubles, and pairs of floats, per word */

/* x Phi(x); what rounding -x / sqrt 2 lost is added, since erfc would magnify
 * it. */
static long double gelul(long double x) {
    long double root = 0x1.6a09e667f3bcc908p-1L, t = -x * root;
    if (fabsl(x) > 1e4L) return x > 0 ? x : -0.0L;
    long double lost = fmal(-x, root, -t) - x * 0x1.65f626cdd52afa7cp-66L;
    long double slope = -1.12837916709551257390L * expl(-t * t);
    return 0.5L * x * (erfcl(t) + lost * slope);
}
static double gelu(double x) {
    return x < -20 ? -0.0 : x * 0.5 * erfc(-x * 0.70710678118654752440);
}
#define sin_fast sin
#define sin_fastl sinl
#define cos_fast cos
#define cos_fastl cosl
#define tan_fast tan
#define tan_fastl tanl

typedef struct {
    const char *name;
    double bound32, bound64, limit32, limit64;
    uint64_t hash32, hash64;
    double (*unary)(double);
    long double (*unaryl)(long double);
    double (*binary)(double, double);
    long double (*binaryl)(long double, long double);
} word;

static const word words[WORD_COUNT] = {
#define UNARY_WORD(word, b32, b64, l32, l64, h32, h64)                                             \
    [WORD_##word] = {#word, b32, b64, l32, l64, h32, h64, word, word##l, NULL, NULL},
#define BINARY_WORD(word, b32, b64, l32, l64, h32, h64)                                            \
    [WORD_##word] = {#word, b32, b64, l32, l64, h32, h64, NULL, NULL, word, word##l},
    UNARY_WORDS(UNARY_WORD) BINARY_WORDS(BINARY_WORD)};

static const math_words *levels[3];
static int nlevels, failures;

static void find_levels(void) {
    levels[nlevels++] = &math_words_base;
#if defined(MATH_X86_LEVELS)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        levels[nlevels++] = &math_words_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        levels[nlevels++] = &math_words_avx512;
#endif
}

static uint64_t draw(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static double draw_unit(uint64_t *state) {
    return (double)(draw(state) >> 11) * 0x1p-53;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static uint64_t hash_of(uint64_t hash, uint64_t bits) {
    return (hash ^ bits) * 0x100000001b3u;
}

/* Distance in units of the last place of the format at `right`. Wrong kinds are
 * 1e9 ulp. */
static double ulp(long double got, long double right, int digits, int emin, int emax) {
    if (isnan(right) || isnan(got)) return isnan(right) && isnan(got) ? 0 : 1e9;
    if (!signbit(got) != !signbit(right)) return 1e9;
    long double top = ldexpl(1, emax), g = fabsl(got), r = fabsl(right);
    if (r == 0 || isinf(right)) return g == r ? 0 : 1e9;
    g = g > top ? top : g; /* infinity counts as the power of two that it stands for */
    r = r > top ? top : r;
    int e;
    frexpl(r, &e);
    e = e < emin ? emin : e > emax ? emax : e;
    return (double)(fabsl(g - r) / ldexpl(1, e - digits));
}
static double ulp32(float got, double right) {
    return ulp((long double)got, (long double)right, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX_EXP);
}
static double ulp64(double got, long double right) {
    return ulp((long double)got, right, DBL_MANT_DIG, DBL_MIN_EXP, DBL_MAX_EXP);
}

/* Whether the bits are the same; one NaN is as good as another. */
static bool same32(int64_t n, const float *a, const float *b) {
    bool same = true;
    for (int64_t i = 0; i < n; i++)
        same &= memcmp(a + i, b + i, sizeof *a) == 0 || (isnan(a[i]) && isnan(b[i]));
    return same;
}
static bool same64(int64_t n, const double *a, const double *b) {
    bool same = true;
    for (int64_t i = 0; i < n; i++)
        same &= memcmp(a + i, b + i, sizeof *a) == 0 || (isnan(a[i]) && isnan(b[i]));
    return same;
}

/* What one word did over all its inputs, per level. */
typedef struct {
    double worst[3], at[3], at_y[3];
    uint64_t hash;
    int64_t unequal; /* between levels with fused multiply-add, or fast and
                      complete word */
} result;

static void note(result *r, int level, double error, double x, double y) {
    if (error > r->worst[level]) r->worst[level] = error, r->at[level] = x, r->at_y[level] = y;
}

static void run32(int w, result *r, int64_t n, const float *x, const float *y) {
    static float out[3][BLOCK], twin[BLOCK];
    int first = -1;
    for (int l = 0; l < nlevels; l++) {
        levels[l]->f32[w](n, x, y, out[l]);
        if (isfinite(words[w].limit32)) {
            levels[l]->f32[w - 2](n, x, y, twin);
            r->unequal += !same32(n, twin, out[l]);
        }
        bool measured = first < 0 || !levels[l]->has_fma;
        if (!measured) r->unequal += !same32(n, out[first], out[l]);
        if (levels[l]->has_fma && first < 0) first = l;
        for (int64_t i = 0; i < n && measured; i++) {
            double right = words[w].unary ? words[w].unary((double)x[i])
                                          : words[w].binary((double)x[i], (double)y[i]);
            note(r, l, ulp32(out[l][i], right), (double)x[i], (double)y[i]);
        }
    }
    for (int64_t i = 0; i < n && first >= 0; i++) {
        uint32_t bits;
        memcpy(&bits, &out[first][i], sizeof bits);
        r->hash = hash_of(r->hash, isnan(out[first][i]) ? 1 : bits);
    }
}

static void run64(int w, result *r, int64_t n, const double *x, const double *y) {
    static double out[3][BLOCK], twin[BLOCK];
    static long double right[BLOCK];
    int first = -1;
    for (int64_t i = 0; i < n; i++)
        right[i] = words[w].unaryl ? words[w].unaryl((long double)x[i])
                                   : words[w].binaryl((long double)x[i], (long double)y[i]);
    for (int l = 0; l < nlevels; l++) {
        levels[l]->f64[w](n, x, y, out[l]);
        if (isfinite(words[w].limit64)) {
            levels[l]->f64[w - 2](n, x, y, twin);
            r->unequal += !same64(n, twin, out[l]);
        }
        if (levels[l]->has_fma && first >= 0) r->unequal += !same64(n, out[first], out[l]);
        if (levels[l]->has_fma && first < 0) first = l;
        for (int64_t i = 0; i < n; i++)
            note(r, l, ulp64(out[l][i], right[i]), x[i], y[i]);
    }
    for (int64_t i = 0; i < n && first >= 0; i++) {
        uint64_t bits;
        memcpy(&bits, &out[first][i], sizeof bits);
        r->hash = hash_of(r->hash, isnan(out[first][i]) ? 1 : bits);
    }
}

static void report(const char *name, const char *dtype, const result *r, double bound,
                   uint64_t hash) {
    for (int l = 0; l < nlevels; l++) {
        if (l > 0 && r->worst[l] == 0) continue; /* same bits as the level before */
        bool bad = r->worst[l] > bound;
        printf("%-9s %s %-7s %.3f ulp (bound %.1f) at %a %a%s\n", name, dtype, levels[l]->level,
               r->worst[l], bound, r->at[l], r->at_y[l], bad ? "  FAILS" : "");
        failures += bad;
    }
    if (r->unequal) {
        printf("%-9s %s levels differ in %lld blocks  FAILS\n", name, dtype, (long long)r->unequal);
        failures++;
    }
    if (hash && nlevels > 1 && r->hash != hash) {
        printf("%-9s %s bits hash to 0x%016llx, not 0x%016llx  FAILS\n", name, dtype,
               (unsigned long long)r->hash, (unsigned long long)hash);
        failures++;
    }
}

static void sweep32(int w, uint64_t stride) {
    static float x[BLOCK], zero[BLOCK];
    result r = {0};
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        int64_t n = 0;
        for (; n < BLOCK && bits <= UINT32_MAX; bits += stride) {
            float value = float_of((uint32_t)bits);
            if (!(fabs((double)value) > words[w].limit32)) x[n++] = value;
        }
        run32(w, &r, n, x, zero);
    }
    report(words[w].name, "float32", &r, words[w].bound32,
           stride == DEFAULT_STRIDE ? words[w].hash32 : 0);
}

/* Any bits; the range where most words are not constant; all magnitudes; near
 * multiples of pi/2. */
static double draw_double(uint64_t *state, int kind) {
    uint64_t bits = draw(state);
    double sign = bits & 1 ? -1 : 1;
    if (kind == 0) return double_of(bits);
    if (kind == 1) return sign * 8 * draw_unit(state);
    if (kind == 2) return sign * ldexp(1 + draw_unit(state), (int)((bits >> 1) % 80) - 69);
    if (kind == 3) return sign * 750 * draw_unit(state);
    double near = 1.57079632679489661923 * (double)(bits >> (12 + (bits >> 1) % 50));
    return sign * nextafter(near, bits & 2 ? 0 : HUGE_VAL);
}

static void sweep64(int w) {
    static double x[BLOCK], zero[BLOCK];
    uint64_t state = 1;
    result r = {0};
    for (int64_t done = 0; done < DRAWN; done += BLOCK) {
        for (int64_t n = 0; n < BLOCK;) {
            x[n] = draw_double(&state, (int)(n % 5));
            if (!(fabs(x[n]) > words[w].limit64)) n++;
        }
        run64(w, &r, BLOCK, x, zero);
    }
    report(words[w].name, "float64", &r, words[w].bound64, words[w].hash64);
}

/* Any bits; a power within the range of floats; whole exponents; bases near 1.
*The inputs are the
** same with any C library, as the hashes want. */
static void draw_pair(uint64_t *state, int kind, bool is64, double *x, double *y) {
    uint64_t bits = draw(state), more = draw(state);
    double range = is64 ? 1100 : 160, sign = more & 1 ? -1 : 1;
    *x = is64 ? double_of(bits) : (double)float_of((uint32_t)bits);
    *y = is64 ? double_of(more) : (double)float_of((uint32_t)(more >> 32));
    if (kind == 0) return;
    *x = fabs(*x);
    if (kind == 1) *x = 0.5 + draw_unit(state);
    if (kind == 2) *x = 1 + sign * ldexp(draw_unit(state), -(int)(bits % (is64 ? 52 : 23)));
    int e = 0;
    double m = frexp(*x, &e), log2 = *x > 0.5 && *x < 2 ? 1.44 * (*x - 1) : e + 2 * m - 2;
    *y = (2 * draw_unit(state) - 1) * range / log2;
    if (kind == 3) *x *= sign, *y = (double)((int)(more >> 8 & 63) - 32);
}

static void sweep_pairs(int w) {
    static double x64[BLOCK], y64[BLOCK];
    static float x32[BLOCK], y32[BLOCK];
    uint64_t state = 2;
    result r32 = {0}, r64 = {0};
    for (int64_t done = 0; done < DRAWN; done += BLOCK) {
        for (int n = 0; n < BLOCK; n++) {
            draw_pair(&state, n % 5, false, &x64[n], &y64[n]);
            x32[n] = (float)x64[n];
            y32[n] = (float)y64[n];
            draw_pair(&state, n % 5, true, &x64[n], &y64[n]);
        }
        run32(w, &r32, BLOCK, x32, y32);
        run64(w, &r64, BLOCK, x64, y64);
    }
    report(words[w].name, "float32", &r32, words[w].bound32, words[w].hash32);
    report(words[w].name, "float64", &r64, words[w].bound64, words[w].hash64);
}

/* Every special value, and with binary words every pair of them. */
static void specials(int w) {
    static const double values[] = {
        0, -0.0, HUGE_VAL, -HUGE_VAL, (double)NAN, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -2.5, 1e5,
        1e22,
        /* ends of the floats: normal, subnormal, even, whole; 1 and its
         neighbours */
        0x1p-126, -0x1p-126, 0x1.fffffep127, -0x1.fffffep127, 0x1p-149, -0x1p-149, 0x1p23, 0x1p24,
        -0x1.8p23, 0x1.fffffep23, 0x1.fffffep-1, 0x1.000002p0, 0x1p-1022, -0x1p-1022,
        0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 0x1p-1074, -0x1p-1074, 0x1p52, 0x1p53,
        -0x1.8p52, 0x1.fffffffffffffp52, 0x1.fffffffffffffp-1, 0x1.0000000000001p0,
        /* where exp ends */
        88.72283, 88.72284, -103.97208, -103.97209, 709.782712893384, 709.7827128933841,
        -745.1332191019411, -745.1332191019412};
    enum { COUNT = sizeof values / sizeof *values };
    static double x64[COUNT * COUNT], y64[COUNT * COUNT];
    static float x32[COUNT * COUNT], y32[COUNT * COUNT];
    int64_t n = 0;
    for (int i = 0; i < COUNT; i++) {
        if (fabs(values[i]) > words[w].limit32) continue;
        for (int j = 0; j < (words[w].binary ? COUNT : 1); j++, n++) {
            x64[n] = values[i], y64[n] = values[j];
            x32[n] = (float)values[i], y32[n] = (float)values[j];
        }
    }
    result r32 = {0}, r64 = {0};
    run32(w, &r32, n, x32, y32);
    run64(w, &r64, n, x64, y64);
    report(words[w].name, "float32 specials", &r32, words[w].bound32, 0);
    report(words[w].name, "float64 specials", &r64, words[w].bound64, 0);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void speed(void) {
    static float x32[BLOCK], y32[BLOCK], out32[BLOCK];
    static double x64[BLOCK], y64[BLOCK], out64[BLOCK];
    uint64_t state = 3;
    for (int i = 0; i < BLOCK; i++) {
        x64[i] = 0.01 + 4 * draw_unit(&state), y64[i] = 8 * draw_unit(&state) - 4;
        x32[i] = (float)x64[i], y32[i] = (float)y64[i];
    }
    for (int w = 0; w < WORD_COUNT; w++) {
        for (int l = 0; l < nlevels; l++) {
            double best32 = 1, best64 = 1;
            for (int i = 0; i < 200; i++) {
                double t0 = seconds();
                levels[l]->f32[w](BLOCK, x32, y32, out32);
                double t1 = seconds();
                levels[l]->f64[w](BLOCK, x64, y64, out64);
                double t2 = seconds();
                best32 = fmin(best32, t1 - t0), best64 = fmin(best64, t2 - t1);
            }
            printf("%-9s %-7s float32 %6.2f  float64 %6.2f ns\n", words[w].name, levels[l]->level,
                   best32 / BLOCK * 1e9, best64 / BLOCK * 1e9);
        }
    }
}

int main(int argc, char **argv) {
    uint64_t stride = DEFAULT_STRIDE;
    if (argc > 2 && strcmp(argv[1], "--stride") == 0) stride = strtoull(argv[2], NULL, 10);
    if (stride == 0) {
        fprintf(stderr, "usage: luma_math_test [--stride N | --speed]\n");
        return 2;
    }
    find_levels();
    if (argc > 1 && strcmp(argv[1], "--speed") == 0) {
        speed();
        return 0;
    }
    for (int w = 0; w < WORD_COUNT; w++) {
        specials(w);
        if (words[w].binary) {
            sweep_pairs(w);
        } else {
            sweep32(w, stride);
            sweep64(w);
        }
    }
    printf("%s\n", failures ? "FAILED" : "all within their bounds");
    return failures != 0;
}
