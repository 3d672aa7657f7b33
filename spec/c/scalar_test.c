/* scalar_test.c -- the conversions of kernels/scalar.h: every code of the small floats there and
** back, roundings from float, double and int64 against long double, ties and their neighbours
** included, floats to integers at the edges of every range. Exit 1 where one is wrong. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "scalar.h"

#define DRAWS 400000

static int failures;

static void expect(const char *what, long double x, double got, double want) {
    bool same = got == want ? signbit(got) == signbit(want) : got != got && want != want;
    if (same || failures++ > 20) return;
    printf("%s of %La: %a, expected %a\n", what, x, got, want);
}

static uint64_t draw(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* The nearest of the numbers with `bits` significant bits, the even one of two; below 2^least they
** are 2^(least - bits + 1) apart. */
static double nearest(long double x, int bits, int least, double most, bool saturates) {
    if (x != x || x == 0) return (double)x;
    if (isinf(x)) return copysign(saturates ? most : (double)INFINITY, (double)x);
    int e = ilogbl(x) < least ? least : ilogbl(x);
    long double r = ldexpl(rintl(ldexpl(x, bits - 1 - e)), e - bits + 1);
    if (fabsl(r) > (long double)most)
        return copysign(saturates ? most : (double)INFINITY, (double)x);
    return r == 0 ? copysign(0.0, (double)x) : (double)r;
}
static double nearest_f16(long double x) {
    return nearest(x, 11, -14, 65504, false);
}
static double nearest_bf16(long double x) {
    return nearest(x, 8, -126, 0x1.fep127, false);
}
static double nearest_f8(long double x) {
    return nearest(x, 4, -6, 448, true);
}

#define CHECK_SMALL(from, x)                                                                       \
    expect("float16 from " #from, (long double)(x), (double)lm_load_f16(lm_to_f16_##from(x)),      \
           nearest_f16((long double)(x)));                                                         \
    expect("bfloat16 from " #from, (long double)(x), (double)lm_load_bf16(lm_to_bf16_##from(x)),   \
           nearest_bf16((long double)(x)));                                                        \
    expect("float8 from " #from, (long double)(x), (double)lm_load_f8(lm_to_f8_##from(x)),         \
           nearest_f8((long double)(x)))

/* ---- codes ---- */

static void check_codes(void) {
    for (uint32_t i = 0; i < 0x10000; i++) {
        lm_f16 h = {(uint16_t)i}, h2 = lm_store_f16(lm_load_f16(h));
        bool nan = (i & 0x7fffu) > 0x7c00u;
        expect("code of float16", i, h2.bits, nan ? i | 0x200u : i);
        lm_bf16 b = {(uint16_t)i}, b2 = lm_store_bf16(lm_load_bf16(b));
        nan = (i & 0x7fffu) > 0x7f80u;
        expect("code of bfloat16", i, b2.bits, nan ? i | 0x40u : i);
    }
    for (uint32_t i = 0; i < 0x100; i++) {
        lm_f8 q = {(uint8_t)i};
        uint32_t e = i >> 3 & 15, m = i & 7;
        double value = e ? ldexp(1 + m / 8.0, (int)e - 7) : ldexp(m, -9);
        if ((i & 0x7f) == 0x7f) value = (double)NAN;
        expect("value of float8", i, (double)lm_load_f8(q), i & 0x80 ? -value : value);
        expect("code of float8", i, lm_store_f8(lm_load_f8(q)).bits, i);
    }
}

/* ---- roundings ---- */

/* Halfway between neighbours of a small float, or next to it. */
static double near_tie(uint64_t u) {
    lm_f16 h[2] = {{(uint16_t)u}, {(uint16_t)(u + 1)}};
    lm_bf16 b[2] = {{(uint16_t)u}, {(uint16_t)(u + 1)}};
    lm_f8 q[2] = {{(uint8_t)u}, {(uint8_t)(u + 1)}};
    double x, y;
    switch (u >> 20 & 3) {
    case 0:
        x = (double)lm_load_f16(h[0]), y = (double)lm_load_f16(h[1]);
        break;
    case 1:
        x = (double)lm_load_f8(q[0]), y = (double)lm_load_f8(q[1]);
        break;
    default:
        x = (double)lm_load_bf16(b[0]), y = (double)lm_load_bf16(b[1]);
        break;
    }
    double tie = x / 2 + y / 2;
    return u >> 22 & 1 ? tie : nextafter(tie, u >> 23 & 1 ? (double)INFINITY : -(double)INFINITY);
}

static void check_floats(void) {
    for (int i = 0; i < DRAWS; i++) {
        uint64_t u = draw();
        float f = lm_float_f32((uint32_t)u);
        CHECK_SMALL(f32, f);
        double d = i % 2 ? near_tie(u) : lm_float_f64(u);
        CHECK_SMALL(f64, d);
        d = ldexp((double)(int64_t)u, (int)(u % 40) - 70);
        CHECK_SMALL(f64, d);
        f = (float)near_tie(u);
        CHECK_SMALL(f32, f);
    }
}

static void check_integers(void) {
    for (int i = 0; i < DRAWS; i++) {
        uint64_t u = draw();
        int64_t x = (int64_t)u >> u % 63;
        if (i % 2) { /* ties of bfloat16 and their neighbours */
            int e = 9 + (int)(u >> 8 & 0xff) % 53;
            x = ((int64_t)1 << e) + (int64_t)(2 * (u & 7) + 1) * ((int64_t)1 << (e - 8)) +
                (int64_t)(u >> 32 & 3) - 1;
        }
        CHECK_SMALL(i64, x);
        CHECK_SMALL(i32, (int32_t)x);
        CHECK_SMALL(u32, (uint32_t)x);
        CHECK_SMALL(i16, (int16_t)x);
    }
}

/* ---- floats to integers ---- */

static double truncated(long double x, long double least, long double most) {
    if (x != x) return 0;
    x = truncl(x);
    return (double)(x < least ? least : x > most ? most : x) + 0.0;
}

#define CHECK_INT(to, from, x, least, most)                                                        \
    expect(#to " from " #from, (long double)(x), (double)lm_to_##to##_##from(x),                   \
           truncated((long double)(x), least, most))
#define CHECK_INTS(from, x)                                                                        \
    CHECK_INT(u8, from, x, 0, UINT8_MAX);                                                          \
    CHECK_INT(i8, from, x, INT8_MIN, INT8_MAX);                                                    \
    CHECK_INT(i16, from, x, INT16_MIN, INT16_MAX);                                                 \
    CHECK_INT(i32, from, x, INT32_MIN, INT32_MAX);                                                 \
    CHECK_INT(u32, from, x, 0, UINT32_MAX);                                                        \
    CHECK_INT(i64, from, x, INT64_MIN, INT64_MAX)

static void check_to_integers(void) {
    const double edges[] = {0,       0.5,        127,        128,    255,   256,
                            32767,   32768,      0x1p31 - 1, 0x1p31, 65535, 0x1p32 - 1,
                            0x1p32,  0x1p63,     0x1p64,     1e300,  1,     (double)INFINITY,
                            0x1p-99, (double)NAN};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        for (int k = -2; k <= 2; k++) {
            double x = edges[i] + k * 0.5;
            x = k == -2 ? nextafter(edges[i], 0) : k == 2 ? nextafter(edges[i], 1e301) : x;
            CHECK_INTS(f64, x);
            CHECK_INTS(f64, -x);
            float f = (float)x;
            CHECK_INTS(f32, f);
            CHECK_INTS(f32, -f);
        }
    }
    for (int i = 0; i < DRAWS; i++) {
        double x = ldexp((double)(int64_t)draw(), -(int)(draw() % 64));
        CHECK_INTS(f64, x);
        float f = (float)x;
        CHECK_INTS(f32, f);
    }
}

int main(void) {
    check_codes();
    check_floats();
    check_integers();
    check_to_integers();
    if (failures) printf("%d failures\n", failures);
    return failures != 0;
}
