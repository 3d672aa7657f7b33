/* fill.cu -- every element of a view becomes one. */
#include "cuda/kernel.h"

#define FILL(bytes, T)                                                                             \
    LM_KERNEL(fill_##bytes) {                                                                      \
        LM_EACH(i, a.walk.n) {                                                                     \
            int64_t at;                                                                            \
            LM_OFFSET(a.walk, i, a.stride, at);                                                    \
            *(T *)((char *)a.y + at) = (T)a.element;                                               \
        }                                                                                          \
    }
FILL(1, uint8_t)
FILL(2, uint16_t)
FILL(4, uint32_t)
FILL(8, uint64_t)
