/* logs.cu -- exponentials and logarithms beside exp and log, hyperbolic functions, what is made of them. */
#define LM_MAP_WORDS 1
#define LM_MAP_logs MAP_KERNEL
#include "cuda/map.h"
