/* math_words.h -- the words under test, as loops of one instruction set level.
 */
#ifndef math_words_h
#define math_words_h

#include <stdint.h>

/* X(name, bound in ulp for float32, for float64, largest |x| taken, for
*float64, hash of the bits
** that levels with fused multiply-add give for the default inputs, for
*float64). The fast words
** must give the bits of the complete word, which stands two rows before. */
#define UNARY_WORDS(X)                                                                             \
    X(exp, 1.5, 2.0, HUGE_VAL, HUGE_VAL, 0x3fd0dccf3677efd3, 0xc77f95dddf026d87)                   \
    X(log, 1.5, 2.0, HUGE_VAL, HUGE_VAL, 0xdcc7ee1df7a30837, 0x96b797389f37d1ad)                   \
    X(tanh, 1.5, 2.0, HUGE_VAL, HUGE_VAL, 0x1c724ed28e26b0da, 0xeb1edd03dff3a12f)                  \
    X(erf, 1.5, 2.5, HUGE_VAL, HUGE_VAL, 0x9a1c7aaa396f4d1e, 0x7d7f4ffeb5678475)                   \
    X(gelu, 4.0, 4.0, HUGE_VAL, HUGE_VAL, 0x72ad01010d627ef4, 0x5c20acd4fd50720e)                  \
    X(sin, 2.5, 2.5, HUGE_VAL, HUGE_VAL, 0x1d459e9c414f1e8c, 0xf659817202a7a133)                   \
    X(cos, 2.5, 2.5, HUGE_VAL, HUGE_VAL, 0x3b0b24c4817020ee, 0xab6a4d1b75d4e186)                   \
    X(sin_fast, 2.5, 2.5, 0x1p17, 0x1p24, 0x1c93d89744da8195, 0xa29ab0c3998b62bb)                  \
    X(cos_fast, 2.5, 2.5, 0x1p17, 0x1p24, 0x63ae87de45edd549, 0xfa6ef51dcb07622d)                  \
    X(expm1, 2.0, 2.0, HUGE_VAL, HUGE_VAL, 0x67f0c4a94a106d7f, 0x29242000e32020dc)                 \
    X(log1p, 2.0, 2.0, HUGE_VAL, HUGE_VAL, 0xc2f5d3aadffb0a52, 0x9da42587cbace6dc)                 \
    X(exp2, 1.5, 1.5, HUGE_VAL, HUGE_VAL, 0xd0eb2cd773490826, 0x4b5bb91b4d5a8bd2)                  \
    X(log2, 1.5, 1.5, HUGE_VAL, HUGE_VAL, 0xbdd370f002431de2, 0xf27941338f71b9f2)                  \
    X(log10, 1.5, 1.5, HUGE_VAL, HUGE_VAL, 0x5d4fc1047c5df3ad, 0x27293966838e505b)                 \
    X(sinh, 3.0, 3.0, HUGE_VAL, HUGE_VAL, 0x56c18ec9acb5a0ea, 0xc6b3ee67c0395d65)                  \
    X(cosh, 2.5, 2.5, HUGE_VAL, HUGE_VAL, 0x0f1661291c9dca04, 0xecc7107583c3bdf7)                  \
    X(asin, 1.0, 2.5, HUGE_VAL, HUGE_VAL, 0x22e7382d87cf7e64, 0xfc84be06ac2c950d)                  \
    X(acos, 1.0, 2.5, HUGE_VAL, HUGE_VAL, 0x7b074a18cf7f5dd5, 0x6dd333bec6048b52)                  \
    X(asinh, 3.0, 3.0, HUGE_VAL, HUGE_VAL, 0x811b31529c0b058b, 0xce1a025c61619a50)                 \
    X(acosh, 3.0, 3.0, HUGE_VAL, HUGE_VAL, 0x7a62ff9117b9c8ce, 0x930fc6828586cc4b)                 \
    X(atanh, 3.0, 3.0, HUGE_VAL, HUGE_VAL, 0x99989ca10d521e27, 0xaa1e2520eca1ea5f)                 \
    X(cbrt, 1.0, 1.0, HUGE_VAL, HUGE_VAL, 0x911b8a576243500a, 0xcdc006917b95569e)                  \
    X(erfc, 1.0, 5.0, HUGE_VAL, HUGE_VAL, 0xb082a1309efa7096, 0xf3dbe24900513f3e)                  \
    X(tan, 4.0, 4.0, HUGE_VAL, HUGE_VAL, 0xd8a0c26e5f7d5034, 0x635a25ea4e777e2f)                   \
    X(atan, 1.0, 2.5, HUGE_VAL, HUGE_VAL, 0xaba47718df1b6591, 0x36a56c5ee804cdb0)                  \
    X(tan_fast, 4.0, 4.0, 0x1p17, 0x1p24, 0x86423b932f952ee8, 0xa5adaecd0533d9a1)
#define BINARY_WORDS(X)                                                                            \
    X(pow, 2.0, 2.0, HUGE_VAL, HUGE_VAL, 0xe9707108237abe53, 0x966197d8539f9690)                   \
    X(atan2, 1.0, 2.5, HUGE_VAL, HUGE_VAL, 0x2285bfb838876f4a, 0x98167d0011b0004d)                 \
    X(hypot, 1.0, 1.5, HUGE_VAL, HUGE_VAL, 0x1ee380ee87fadd4d, 0x42d66523a2b722fc)

enum {
#define WORD_ENUM(name, ...) WORD_##name,
    UNARY_WORDS(WORD_ENUM) BINARY_WORDS(WORD_ENUM) WORD_COUNT
#undef WORD_ENUM
};

/* y is read by binary words only. */
typedef void f32_loop(int64_t n, const float *x, const float *y, float *out);
typedef void f64_loop(int64_t n, const double *x, const double *y, double *out);

typedef struct {
    const char *level;
    int has_fma;
    f32_loop *f32[WORD_COUNT];
    f64_loop *f64[WORD_COUNT];
} math_words;

extern const math_words math_words_base, math_words_avx2, math_words_avx512;

#endif
