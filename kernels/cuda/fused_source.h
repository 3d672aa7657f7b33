/* fused_source.h -- the kernel of a program of elementwise rows as text, and its arguments; for the
** tests, too. Layer: kernels/cuda. */
#ifndef lm_cuda_fused_source_h
#define lm_cuda_fused_source_h

#include "cuda/fused_kernel.h"
#include "fused.h"

/* CUDA C, or C: text of malloc; NULL: no memory. */
char *lm_fused_source(const lm_fused *f);
/* Elements that a thread takes at once where they are side by side. */
int lm_fused_group(const lm_fused *f);
/* The argument of its kernel, for a planned map. */
void lm_fused_arguments(const lm_fused *f, lm_args_fused *a);

#endif
