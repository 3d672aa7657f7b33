/* radix_narrow.cu -- keys of up to 32 bits, positions of 32. */
#define KEY unsigned
#define POSITION unsigned
#define ITEMS 16
#define RADIX(name) name##_narrow
#include "cuda/radix.h"
