/* pooling.h -- adapters for the rows of pooling.c. Layer: core. */
#ifndef lm_pooling_h
#define lm_pooling_h

#include "op.h"

/* args: x, kernel_size, stride, padding, dilation, ceil_mode, return_indices. */
luma_status lm_max_pool_arg(luma_state *S, luma_tensor outs[2], int dims, const lm_arg *args);
/* args: x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override. */
luma_status lm_avg_pool_arg(luma_state *S, luma_tensor *out, int dims, const lm_arg *args);

#endif
