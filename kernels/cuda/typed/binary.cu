/* binary.cu -- rows of two tensors whose words are short: sums, products, the greater. */
#define LM_MAP_WORDS 4
#define LM_MAP_binary MAP_KERNEL
#include "cuda/map.h"
