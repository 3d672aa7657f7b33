/* conv.h -- convolutions as operations call them, and as products for devices without a kernel of
** their own. Layer: core. */
#ifndef lm_conv_h
#define lm_conv_h

#include "op.h"
#include "tensor.h"

/* Places of arguments, which messages name. */
typedef struct {
    int kernel, stride, padding, dilation, groups, output_padding;
} lm_conv_places;

/* What a convolution comes to before memory is asked for: the last n of three dims are those of x, the
** others have size 1. */
typedef struct {
    luma_state *S;
    int n; /* spatial dims of x */
    bool batched, transposed;
    const lm_conv_places *at;
    lm_device *device;
    luma_dtype dtype;
    int64_t batch, channels, filters, groups;
    int64_t in[3], kernel[3], out[3];
    int64_t stride[3], dilation[3], before[3], after[3], more[3];
} lm_conv_plan;
/* Numbers of at least `least` for the last n of three dims: one for all, or one each. Errors name
** argument. */
luma_status lm_conv_sizes(const lm_conv_plan *p, int argument, const char *name, int count,
                          const int64_t *list, int64_t least, int64_t *sizes);
/* Sets everything from stride on, and groups. n and at are set. */
luma_status lm_conv_read(lm_conv_plan *p, const luma_conv_options *o);
/* Positions of the result along dim d; in and kernel are set. */
luma_status lm_conv_size(lm_conv_plan *p, int d, bool same);
/* x with a batch and three spatial dims; the same elements, no reference of its own. */
luma_tensor lm_conv_spread(const lm_conv_plan *p, const luma_tensor *x, bool batched);

/* The rows of ops_more.def: n spatial dims, arguments in the order of the signature. */
luma_status lm_conv_arg(luma_state *S, luma_tensor *out, int n, const lm_arg *args);
luma_status lm_conv_transpose_arg(luma_state *S, luma_tensor *out, int n, const lm_arg *args);
luma_status lm_im2col_arg(luma_state *S, luma_tensor *out, const lm_arg *args);
luma_status lm_col2im_arg(luma_state *S, luma_tensor *out, const lm_arg *args);

/* The conv slot by way of others: what taps meet as columns, in chunks, then matrix products. */
luma_status lm_conv_multiply(luma_state *S, lm_device *d, const lm_conv *v);

#endif
