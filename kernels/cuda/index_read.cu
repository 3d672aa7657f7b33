/* index_read.cu -- elements read from places that index tensors decide. */
#include "cuda/places.h"

/* What is read at a wrong index is 0. */
#define READ(bytes, T, ...)                                                                        \
    LM_KERNEL(index_read_##bytes) {                                                                \
        LM_EACH(i, a.walk.n) {                                                                     \
            index_place p = index_find(&a, i);                                                     \
            T v = {__VA_ARGS__};                                                                   \
            if (p.valid) v = *(const T *)(const void *)((const char *)a.indexed + p.indexed);      \
            *(T *)(void *)((char *)a.plain + p.plain) = v;                                         \
        }                                                                                          \
    }
READ(1, uint8_t, 0)
READ(2, uint16_t, 0)
READ(4, uint32_t, 0)
READ(8, uint64_t, 0)
READ(16, uint4, 0, 0, 0, 0)

/* Only notes what is wrong. */
LM_KERNEL(index_check) {
    LM_EACH(i, a.walk.n) {
        (void)index_find(&a, i);
    }
}
