/* resize.h -- adapters for rows of pad and of resize.c whose arguments may be absent. Layer: core. */
#ifndef lm_resize_h
#define lm_resize_h

#include "op.h"

/* mode: 0 constant, which alone has a value, then those of luma_border. */
luma_status lm_pad_arg(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                       const int64_t *widths, int mode, const lm_arg *value);
/* mode: 0 nearest, 1 linear, 2 bilinear, 3 trilinear. */
luma_status lm_interpolate_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const lm_arg *size, const lm_arg *scale, int mode,
                               bool align_corners);

#endif
