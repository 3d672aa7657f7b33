/* map.h -- what the kernels of elementwise rows and casts in the dtype LM_D are made of. A typed
** file names its family, and so has a kernel for each row of it:
**     #define LM_MAP_math MAP_KERNEL
**     #include "cuda/map.h"
** LM_MAP_GUARDED: integer rows look at operand 2. LM_MAP_WORDS: how many words the loop over a group
** holds, a power of 2; few where they are long. Layer: kernels/cuda. */
#include "cuda/kernel.h"

#define LM_T LM_DT
#include "words.h"

#if defined(LM_MAP_GUARDED) && (LM_KIND == LM_SIGNED || LM_KIND == LM_UNSIGNED)
#define LM_MAP_LOOKS 1
#else
#define LM_MAP_LOOKS 0
#endif

#ifndef LM_MAP_WORDS /* float8 takes many instructions to read and to store */
#define LM_MAP_WORDS (LM_OF(LM_STORED_, LM_D) == 3 && sizeof(LM_S) == 1 ? 4 : 16)
#endif

#if defined(__CUDACC__)
#define LM_MAP_FN LM_FN
#else
#define LM_MAP_FN static __attribute__((noinline, unused))
#endif

/* An element of the compute type as lm_map_operand holds it. */
LM_FN LM_C lm_map_number(uint64_t bits) {
    union {
        uint64_t bits;
        LM_C value;
    } u;
    u.bits = bits;
    return u.value;
}

/* The words of the rows: a mask, two elements, two numbers. */
#define MAP_ARGUMENTS(m, x, y) uint8_t m, LM_C x, LM_C y, LM_C p0, LM_C p1
#define MAP_UNUSED(m, x, y) (void)m, (void)x, (void)y, (void)p0, (void)p1
#define MAP_STRIDE(k) a->operand[k].stride

#ifndef LM_MAP_CASTS
#define LM_R LM_S
#define LM_V (16 / (int)sizeof(LM_S))
#define LM_LOOP(name) name##_same
#include "cuda/map_loop.h"
#undef LM_R
#undef LM_LOOP

#define LM_R uint8_t
#define LM_LOOP(name) name##_test
#include "cuda/map_loop.h"
#undef LM_R
#undef LM_V
#undef LM_LOOP

#if LM_KIND == LM_FLOAT
#define MAP_NUMBER(k) (LM_C) a.d[k]
#else
#define MAP_NUMBER(k) (LM_C) a.i[k]
#endif

#define MAP_ROW(R, RESULT, loop, name, scalar, nin, m, x, y, p0_, p1_)                             \
    LM_FN R LM_NAME(name##_word)(MAP_ARGUMENTS(m, x, y)) {                                         \
        MAP_UNUSED(m, x, y);                                                                       \
        return RESULT(scalar);                                                                     \
    }                                                                                              \
    LM_TYPED(name) {                                                                               \
        loop(&a, nin, p0_, p1_, LM_NAME(name##_word));                                             \
    }
#define MAP_UNARY(name, scalar) MAP_ROW(LM_S, LM_STORE, map_same, name, scalar, 1, m, x, y, 0, 0)
#define MAP_UNARY_P(name, scalar)                                                                  \
    MAP_ROW(LM_S, LM_STORE, map_same, name, scalar, 1, m, x, y, MAP_NUMBER(0), MAP_NUMBER(1))
#define MAP_TEST(name, scalar) MAP_ROW(uint8_t, (uint8_t), map_test, name, scalar, 1, m, x, y, 0, 0)
#define MAP_BINARY(name, scalar) MAP_ROW(LM_S, LM_STORE, map_same, name, scalar, 2, m, x, y, 0, 0)
#define MAP_COMPARE(name, scalar)                                                                  \
    MAP_ROW(uint8_t, (uint8_t), map_test, name, scalar, 2, m, x, y, 0, 0)
#define MAP_TERNARY(name, scalar) MAP_ROW(LM_S, LM_STORE, map_same, name, scalar, 3, x, y, z, 0, 0)
#define MAP_KERNEL(kind, name, scalar) MAP_##kind(name, scalar)

#ifndef LM_MAP_unary
#define LM_MAP_unary(...)
#endif
#ifndef LM_MAP_math
#define LM_MAP_math(...)
#endif
#ifndef LM_MAP_logs
#define LM_MAP_logs(...)
#endif
#ifndef LM_MAP_rare
#define LM_MAP_rare(...)
#endif
#ifndef LM_MAP_activation
#define LM_MAP_activation(...)
#endif
#ifndef LM_MAP_binary
#define LM_MAP_binary(...)
#endif
#ifndef LM_MAP_quotients
#define LM_MAP_quotients(...)
#endif
#ifndef LM_MAP_bits
#define LM_MAP_bits(...)
#endif
#ifndef LM_MAP_compare
#define LM_MAP_compare(...)
#endif
#define ROW_OF_unary LM_MAP_unary
#define ROW_OF_math LM_MAP_math
#define ROW_OF_logs LM_MAP_logs
#define ROW_OF_rare LM_MAP_rare
#define ROW_OF_activation LM_MAP_activation
#define ROW_OF_binary LM_MAP_binary
#define ROW_OF_quotients LM_MAP_quotients
#define ROW_OF_bits LM_MAP_bits
#define ROW_OF_compare LM_MAP_compare
#include "cuda/rows.def"
#endif
