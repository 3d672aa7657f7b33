/* unary.cu -- rows of one tensor whose words are short: signs, whole parts, tests. */
#define LM_MAP_unary MAP_KERNEL
#include "cuda/map.h"
