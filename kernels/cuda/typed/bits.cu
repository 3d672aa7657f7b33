/* bits.cu -- rows of two tensors of bits: and, or, shifts. Floats have none. */
#define LM_MAP_GUARDED
#define LM_MAP_WORDS 4
#define LM_MAP_bits MAP_KERNEL
#include "cuda/map.h"
