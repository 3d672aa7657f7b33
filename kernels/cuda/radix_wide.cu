/* radix_wide.cu -- keys of 64 bits, positions of 64. */
#define KEY unsigned long long
#define POSITION unsigned long long
#define ITEMS 8
#define RADIX(name) name##_wide
#include "cuda/radix.h"
