/* nvrtc.h -- CUDA C to PTX at run time. Layer: kernels/cuda. */
#ifndef lm_cuda_nvrtc_h
#define lm_cuda_nvrtc_h

#include "state.h"

/* Compiles source for a compute capability (90), or the newest one below it that NVRTC knows.
** *ptx and *log become text of malloc, which the caller frees; NULL where there is none. The log
** may be long: it is there after a failure too, and not in the message. */
luma_status lm_nvrtc_compile(luma_state *S, int capability, const char *source, int noptions,
                             const char *const *options, char **ptx, char **log);

#endif
