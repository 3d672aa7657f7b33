/* elementwise.h -- what the slots of elementwise work share: launching kernels that take lm_args_map,
** and moving elements between views. All of it stands between lm_cuda_enter and lm_cuda_leave.
** Layer: kernels/cuda. */
#ifndef lm_cuda_elementwise_h
#define lm_cuda_elementwise_h

#include "cuda.h"

#define LM_MAP_BLOCK 256 /* threads */

/* Runs a kernel of map_loop.h over the dims of m, whose operands have the dtypes that the kernel
** takes. group: its LM_V. guard: what operand 2 must not be, noted in *fault. */
luma_status lm_cuda_map_run(luma_state *S, lm_cuda *c, lm_kernel kernel, const lm_map *m, int group,
                            lm_fault_code guard, lm_fault *fault);

/* Drops dims of size 1 and merges neighbours that all operands walk as one. Unlike lm_iter_plan it
** leaves the order of elements, and so their positions, as they are. */
void lm_cuda_merge(lm_map *m);

/* The elements of operand 1 to the places of operand 0, converted where dtypes differ. No overlap.
** Plans m anew: only shapes, strides, data and dtypes count. */
luma_status lm_cuda_move(luma_state *S, lm_cuda *c, lm_map *m);

/* n elements of 1, 2, 4 or 8 bytes side by side become `element`. */
luma_status lm_cuda_fill_line(luma_state *S, lm_cuda *c, void *y, int64_t n, size_t size,
                              uint64_t element);

#endif
