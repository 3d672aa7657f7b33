/* math.cu -- rows of one tensor that only floats have: roots, exponentials, angles. */
#define LM_MAP_WORDS 1
#define LM_MAP_math MAP_KERNEL
#include "cuda/map.h"
