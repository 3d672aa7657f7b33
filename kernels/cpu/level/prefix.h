/* prefix.h -- running results of eight lanes: within pairs, then fours, then all, in one order at every
** level. Layer: kernels/cpu/level. */
#ifndef lm_prefix_h
#define lm_prefix_h

#include "lanes.h"

typedef uint64_t lm_vu64 __attribute__((vector_size(8 * LM_D8_WIDTH)));
typedef struct {
    lm_vu64 part[LM_D8_PARTS];
} lm_u8;

LM_LANE lm_u8 lm_u8_load(const uint64_t *x) {
    lm_u8 r;
    memcpy(&r, x, sizeof r);
    return r;
}

/* y = x plus one number. */
LM_LANE void lm_u8_store_above(uint64_t *y, lm_u8 x, uint64_t more) {
    for (int p = 0; p < LM_D8_PARTS; p++)
        x.part[p] += more;
    memcpy(y, &x, sizeof x);
}

/* name(a): a[0], a[0] OP a[1], ... where OP has the identity ONE. */
#if LM_D8_WIDTH == 8
#define LM_PREFIX(name, T8, V, T, OP, ONE)                                                         \
    LM_LANE T8 name(T8 a) {                                                                        \
        V v = a.part[0], one = (V){0} + (T)(ONE);                                                  \
        v = v OP __builtin_shufflevector(v, one, 8, 0, 8, 2, 8, 4, 8, 6);                          \
        v = v OP __builtin_shufflevector(v, one, 8, 8, 1, 1, 8, 8, 5, 5);                          \
        a.part[0] = v OP __builtin_shufflevector(v, one, 8, 8, 8, 8, 3, 3, 3, 3);                  \
        return a;                                                                                  \
    }
#elif LM_D8_WIDTH == 4
#define LM_PREFIX(name, T8, V, T, OP, ONE)                                                         \
    LM_LANE T8 name(T8 a) {                                                                        \
        V one = (V){0} + (T)(ONE);                                                                 \
        for (int p = 0; p < 2; p++) {                                                              \
            V v = a.part[p];                                                                       \
            v = v OP __builtin_shufflevector(v, one, 4, 0, 4, 2);                                  \
            a.part[p] = v OP __builtin_shufflevector(v, one, 4, 4, 1, 1);                          \
        }                                                                                          \
        a.part[1] = a.part[1] OP a.part[0][3];                                                     \
        return a;                                                                                  \
    }
#else
#define LM_PREFIX(name, T8, V, T, OP, ONE)                                                         \
    LM_LANE T8 name(T8 a) {                                                                        \
        for (int p = 0; p < 4; p++)                                                                \
            a.part[p] = a.part[p] OP(V){(T)(ONE), a.part[p][0]};                                   \
        a.part[1] = a.part[1] OP a.part[0][1];                                                     \
        a.part[3] = a.part[3] OP a.part[2][1];                                                     \
        T half = a.part[1][1];                                                                     \
        a.part[2] = a.part[2] OP half;                                                             \
        a.part[3] = a.part[3] OP half;                                                             \
        return a;                                                                                  \
    }
#endif
LM_PREFIX(lm_d8_sums, lm_d8, lm_vf64, double, +, 0)
LM_PREFIX(lm_d8_products, lm_d8, lm_vf64, double, *, 1)
LM_PREFIX(lm_u8_sums, lm_u8, lm_vu64, uint64_t, +, 0)

#define LM_LAST8(a) (a).part[LM_D8_PARTS - 1][LM_D8_WIDTH - 1]

#endif
