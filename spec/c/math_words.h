/* math_words.h -- the words under test, as loops of one instruction set level. */
#ifndef math_words_h
#define math_words_h

#include <stdint.h>

/* X(name, bound in ulp for float32, for float64, largest |x| taken, for float64, hash of the bits
** that levels with fused multiply-add give for the default inputs, for float64). The fast words
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
    X(cos_fast, 2.5, 2.5, 0x1p17, 0x1p24, 0x63ae87de45edd549, 0xfa6ef51dcb07622d)
#define BINARY_WORDS(X) X(pow, 2.0, 2.0, HUGE_VAL, HUGE_VAL, 0xe9707108237abe53, 0x966197d8539f9690)

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
