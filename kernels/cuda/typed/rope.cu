/* rope.cu -- pairs of one float dtype turned by their angles. */
#include "cuda/kernel.h"
#include "cuda/real.h"

#if LM_OF(LM_STORED_, LM_D) == 3
LM_FN LM_S *element_at(char *y, int64_t offset) {
    return (LM_S *)(void *)(y + offset);
}

LM_TYPED(rope) {
    LM_EACH(i, a.walk.n) {
        int64_t at[3];
#define STEPS(k) a.step[k]
        LM_OFFSETS(a.walk, i, 3, STEPS, at);
#undef STEPS
        const char *x = (const char *)a.x + at[0];
        char *y = (char *)a.y + at[1];
        lm_real u = (lm_real)LM_LOAD(*(const LM_S *)(const void *)x);
        lm_real v = (lm_real)LM_LOAD(*(const LM_S *)(const void *)(x + a.x_apart));
        lm_real c = *(const lm_real *)(const void *)((const char *)a.cos + at[2]);
        lm_real s = *(const lm_real *)(const void *)((const char *)a.sin + at[2]);
        *element_at(y, 0) = LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(u * c - v * s);
        *element_at(y, a.y_apart) = LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(u * s + v * c);
    }
}
#endif
