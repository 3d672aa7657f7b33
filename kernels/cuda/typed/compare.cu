/* compare.cu -- comparisons of two tensors, and the choice between two by a mask. */
#define LM_MAP_compare MAP_KERNEL
#include "cuda/map.h"
