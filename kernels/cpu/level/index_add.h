/* index_add.h -- rows added at places, for the compute type LM_T; template, included by index.c.
** Layer: kernels/cpu/level. */
#include "words.h"

static void LM_NAME(index_add)(int64_t n, const int64_t *at, char *plain, int64_t step,
                               char *indexed, const lm_index_row *row) {
    const int64_t size = sizeof(LM_C);
    for (int64_t i = 0; i < n; i++) {
        char *restrict y = indexed + at[i];
        const char *restrict x = plain + i * step;
        if (row->plain == size && row->indexed == size) {
            LM_C *restrict sums = (LM_C *)(void *)y;
            const LM_C *restrict terms = (const LM_C *)(const void *)x;
            for (int64_t k = 0; k < row->length; k++)
                sums[k] = ADD(sums[k], terms[k]);
        } else {
            for (int64_t k = 0; k < row->length; k++) {
                LM_C *sum = (LM_C *)(void *)(y + k * row->indexed);
                *sum = ADD(*sum, *(const LM_C *)(const void *)(x + k * row->plain));
            }
        }
    }
}

#undef LM_T
