/* emulator_bugs.h -- the one parameter of the kernels in emulator_bugs.cu. */
#ifndef emulator_bugs_h
#define emulator_bugs_h

#include <stdint.h>

typedef struct {
    uint64_t n;
    float *x, *y;
    unsigned *count;
} bug_args;

#endif
