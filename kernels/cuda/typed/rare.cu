/* rare.cu -- inverse angles, gamma functions and others whose words are long. */
#define LM_MAP_WORDS 1
#define LM_MAP_rare MAP_KERNEL
#include "cuda/map.h"
