/* nvrtc.h -- CUDA C to PTX at run time. Layer: kernels/cuda. */
#ifndef lm_cuda_nvrtc_h
#define lm_cuda_nvrtc_h

#include "state.h"

/* The headers of luma that sources of its own may include, by the names under which they are included,
** each a gzip stream; packed NULL: the end. (made by the build) */
typedef struct {
    const char *name;
    const unsigned char *packed;
    size_t nbytes;
} lm_nvrtc_header;
extern const lm_nvrtc_header lm_nvrtc_headers[];

/* Compiles source for a compute capability (90), or the newest one below it that NVRTC knows.
** *ptx and *log become text of malloc, which the caller frees; NULL where there is none. The log
** may be long: it is there after a failure too, and not in the message. */
luma_status lm_nvrtc_compile(luma_state *S, int capability, const char *source, int noptions,
                             const char *const *options, char **ptx, char **log);

/* A source of luma's own, which includes its headers, with the options of its kernels. */
luma_status lm_nvrtc_compile_own(luma_state *S, int capability, const char *source, char **ptx,
                                 char **log);

#endif
