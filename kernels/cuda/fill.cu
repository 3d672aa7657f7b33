/* fill.cu -- contiguous memory becomes copies of one element. */
#include "cuda/kernel.h"

#define FILL(bytes, T)                                                                             \
    LM_KERNEL(fill_##bytes) {                                                                      \
        T *y = (T *)a.y;                                                                           \
        LM_EACH(i, (int64_t)a.n) y[i] = (T)a.element;                                              \
    }
FILL(1, uint8_t)
FILL(2, uint16_t)
FILL(4, uint32_t)
FILL(8, uint64_t)
