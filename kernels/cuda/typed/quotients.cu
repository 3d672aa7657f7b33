/* quotients.cu -- quotients, remainders and powers of two tensors. */
#define LM_MAP_GUARDED
#define LM_MAP_WORDS 4
#define LM_MAP_quotients MAP_KERNEL
#include "cuda/map.h"
