/* activation.cu -- activation functions of networks. */
#define LM_MAP_WORDS 1
#define LM_MAP_activation MAP_KERNEL
#include "cuda/map.h"
