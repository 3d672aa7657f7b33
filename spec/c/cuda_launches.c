/* cuda_launches.c -- prints the host's launch table, one kernel a line: module, kernel, size and
** alignment of its parameter. scripts/dev/ptxcheck compares it with the PTX. */
#include <stdalign.h>
#include <stdio.h>

#include "cuda/cuda.h"

int main(void) {
#define KERNEL(module, name, args)                                                                 \
    printf("%s %s %zu %zu\n", #module, #name, sizeof(args), alignof(args));
#include "cuda/kernels.def"
#undef KERNEL
    return 0;
}
