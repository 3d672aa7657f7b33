/* binary.cu -- rows of two tensors: sums, products, quotients. */
#define LM_MAP_GUARDED
#define LM_MAP_WORDS 4
#define LM_MAP_binary MAP_KERNEL
#include "cuda/map.h"
