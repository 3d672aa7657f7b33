/* pooling.c -- the pooling slot: a thread for each result. Layer: kernels/cuda. */
#include "lines.h"

static const lm_kernel greatest[LUMA_NDTYPES] = LM_KERNELS_OF(pool_max);
#define AVERAGE_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_pool_avg_##token,
static const lm_kernel averages[LUMA_NDTYPES] = {LM_FLOATS(AVERAGE_OF, _)};

#define BLOCK 256

static void set_strides(int64_t *strides, const luma_tensor *x) {
    for (int d = 0; d < 5; d++)
        strides[d] = x->layout.stride[d] * (int64_t)lm_dtype_size(x->dtype);
}

luma_status lm_cuda_pooling(luma_state *S, lm_device *d, const lm_pooling *p) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_pooling a = {.x = lm_data(&p->x),
                         .y = lm_data(&p->out),
                         .divisor = p->divisor,
                         .index_base = p->index_base,
                         .padded = p->padded};
    set_strides(a.x_stride, &p->x);
    set_strides(a.y_stride, &p->out);
    if (p->positions.storage) {
        a.at = (int64_t *)(void *)lm_data(&p->positions);
        set_strides(a.at_stride, &p->positions);
    }
    for (int k = 0; k < 3; k++)
        a.window[k] = p->window[k];
    lm_walk_set(&a.walk, 5, p->out.layout.shape, 2, (const int64_t *[]){a.y_stride, a.at_stride});
    lm_kernel kernel = p->op == LM_POOL_MAX ? greatest[p->x.dtype] : averages[p->x.dtype];
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_launch(S, c, kernel, lm_cuda_shape(c, a.walk.n, 1, BLOCK), &a);
    lm_cuda_leave(c);
    return status;
}
