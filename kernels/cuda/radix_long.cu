/* radix_long.cu -- keys of 64 bits, positions of 32. */
#define KEY unsigned long long
#define POSITION unsigned
#define ITEMS 8
#define RADIX(name) name##_long
#include "cuda/radix.h"
