/* index_join.h -- rows added to those at places, or otherwise joined with them, for the compute type
** LM_T; template, included by index.c. Layer: kernels/cpu/level. */
#include "words.h"

#ifndef LM_INDEX_JOIN
#define LM_INDEX_JOIN(NAME, WORD)                                                                  \
    static void NAME(int64_t n, const int64_t *at, char *plain, int64_t step, char *indexed,       \
                     const lm_index_row *row) {                                                    \
        const int64_t size = sizeof(LM_C);                                                         \
        const bool single = row->length == 1; /* the common case */                                \
        for (int64_t i = 0; i < n && single; i++) {                                                \
            LM_C *to = (LM_C *)(void *)(indexed + at[i]);                                          \
            *to = WORD(*to, *(const LM_C *)(const void *)(plain + i * step));                      \
        }                                                                                          \
        for (int64_t i = 0; i < n && !single; i++) {                                               \
            char *restrict y = indexed + at[i];                                                    \
            const char *restrict x = plain + i * step;                                             \
            if (row->plain == size && row->indexed == size) {                                      \
                LM_C *restrict to = (LM_C *)(void *)y;                                             \
                const LM_C *restrict terms = (const LM_C *)(const void *)x;                        \
                for (int64_t k = 0; k < row->length; k++)                                          \
                    to[k] = WORD(to[k], terms[k]);                                                 \
            } else {                                                                               \
                for (int64_t k = 0; k < row->length; k++) {                                        \
                    LM_C *to = (LM_C *)(void *)(y + k * row->indexed);                             \
                    *to = WORD(*to, *(const LM_C *)(const void *)(x + k * row->plain));            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#endif

LM_INDEX_JOIN(LM_NAME(index_add), ADD)
LM_INDEX_JOIN(LM_NAME(index_mul), MUL)
LM_INDEX_JOIN(LM_NAME(index_max), MAX)
LM_INDEX_JOIN(LM_NAME(index_min), MIN)

#undef LM_T
