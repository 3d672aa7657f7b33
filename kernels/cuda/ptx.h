/* ptx.h -- the PTX of the CUDA kernels, which stands compressed in the binary. Layer:
** kernels/cuda. */
#ifndef lm_cuda_ptx_h
#define lm_cuda_ptx_h

#include <stdbool.h>

/* Was PTX built in? Without it kernels run on the emulated device only. */
bool lm_ptx_embedded(void);
/* The text of a module of kernels.def, as nvcc wrote it; memory of malloc that the caller frees.
** NULL when there is no memory or no such module. Without embedded PTX the text is a header without
** entries, which the emulated device takes for a module of all kernels. Any thread. */
char *lm_ptx_text(const char *module);

#endif
