/* create.h -- for rows that make tensors of random numbers. Layer: core. */
#ifndef lm_create_h
#define lm_create_h

#include "luma.h"

typedef luma_status lm_draw_fn(luma_state *S, luma_tensor *x);
/* dtype LUMA_NDTYPES and device NULL: the defaults, or those of x. */
luma_status lm_create_drawn(luma_state *S, luma_tensor *out, lm_draw_fn *draw, int ndim,
                            const int64_t *shape, luma_dtype dtype, const char *device);
luma_status lm_create_drawn_like(luma_state *S, luma_tensor *out, lm_draw_fn *draw,
                                 const luma_tensor *x, luma_dtype dtype, const char *device);
luma_status lm_create_drawn_int(luma_state *S, luma_tensor *out, int64_t lo, int64_t hi, int ndim,
                                const int64_t *shape, luma_dtype dtype, const char *device);

#endif
