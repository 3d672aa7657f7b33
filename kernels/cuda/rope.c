/* rope.c -- the rope slot: one thread for each pair. Layer: kernels/cuda. */
#include "lines.h"

#define THREADS 256
#define MOST_BLOCKS 16384

static const lm_kernel rope[LUMA_NDTYPES] = {LM_FLOATS(LM_KERNEL_OF, rope)};

luma_status lm_cuda_rope(luma_state *S, lm_device *d, const lm_rope *r) {
    lm_cuda *c = lm_cuda_of(d);
    int last = r->x.layout.ndim - 1;
    int64_t size = (int64_t)lm_dtype_size(r->x.dtype), wide = r->x.dtype == LUMA_FLOAT64 ? 8 : 4;
    int64_t x_step = r->x.layout.stride[last] * size, pairs = r->x.layout.shape[last] / 2;
    int64_t each = r->interleaved ? 2 : 1;
    lm_dims dims = {0};
    for (int k = 0; k < last; k++)
        lm_dims_add(&dims,
                    (lm_dim_of){r->x.layout.shape[k],
                                {r->x.layout.stride[k] * size, r->out.layout.stride[k] * size,
                                 r->cos.layout.stride[k] * wide}});
    lm_dims_add(&dims, (lm_dim_of){pairs, {each * x_step, each * size, wide}});
    lm_dims_merge(&dims);
    lm_args_rope a = {.x = lm_data(&r->x),
                      .y = lm_data(&r->out),
                      .cos = lm_data(&r->cos),
                      .sin = lm_data(&r->sin),
                      .x_apart = r->interleaved ? x_step : pairs * x_step,
                      .y_apart = r->interleaved ? size : pairs * size};
    lm_dims_walk(&dims, &a.walk, 3, (int64_t *[]){a.step[0], a.step[1], a.step[2]});
    int64_t blocks = lm_min(lm_ceil_div(a.walk.n, THREADS), MOST_BLOCKS);
    lm_shape shape = {{(unsigned)blocks, 1, 1}, THREADS, 0};
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_launch(S, c, rope[r->x.dtype], shape, &a);
    lm_cuda_leave(c);
    return status;
}
