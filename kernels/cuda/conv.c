/* conv.c -- the conv slot of CUDA devices: a kernel for few filters a group, which a matrix product
** would leave idle; for the rest columns and products (core/columns.c). Layer: kernels/cuda. */
#include "conv.h"

#include "cuda.h"

#define THREADS 256
#define FEW 8 /* filters of a group; without groups less */
#define VERY_FEW 2
#define SHORT 256 /* products of a sum, without groups */

#define CONV(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_conv_##token,
static const lm_kernel conv[LUMA_NDTYPES] = {LM_INTS(CONV, _) LM_FLOATS(CONV, _)};
#undef CONV

static void set_strides(int64_t *out, const luma_tensor *x) {
    for (int d = 0; d < x->layout.ndim; d++)
        out[d] =
            x->layout.shape[d] > 1 ? x->layout.stride[d] * (int64_t)lm_dtype_size(x->dtype) : 0;
}

static luma_status launch(luma_state *S, lm_cuda *c, const lm_conv *v, const luma_tensor *x,
                          const luma_tensor *w, const luma_tensor *bias) {
    lm_args_conv a = {.x = lm_data(x), .w = lm_data(w), .y = lm_data(&v->out)};
    int64_t at_bias[1];
    set_strides(a.x_stride, x);
    set_strides(a.w_stride, w);
    set_strides(a.y_stride, &v->out);
    if (bias->storage) {
        set_strides(at_bias, bias);
        a.bias = lm_data(bias);
        a.bias_stride = at_bias[0];
    }
    a.channels = w->layout.shape[1];
    a.filters = v->out.layout.shape[1] / v->groups;
    for (int d = 0; d < 3; d++) {
        a.in[d] = x->layout.shape[d + 2];
        a.kernel[d] = w->layout.shape[d + 2];
        a.stride[d] = v->out.layout.shape[d + 2] > 1 ? v->stride[d] : 0;
        a.dilation[d] = v->dilation[d];
        a.before[d] = v->before[d];
    }
    lm_walk_set(&a.walk, 5, v->out.layout.shape, 0, NULL);
    return lm_cuda_launch(S, c, conv[v->out.dtype], lm_cuda_shape(c, a.walk.n, 1, THREADS), &a);
}

luma_status lm_cuda_conv(luma_state *S, lm_device *d, const lm_conv *v) {
    lm_cuda *c = lm_cuda_of(d);
    if (luma_numel(&v->out) == 0) return LUMA_OK;
    const int64_t filters = v->out.layout.shape[1] / v->groups, k = luma_numel(&v->w) / filters;
    const bool few = v->groups > 1 ? filters <= FEW : filters <= VERY_FEW && k <= SHORT;
    if (!few || luma_numel(&v->x) == 0 || k == 0) return lm_conv_multiply(S, d, v);
    luma_tensor x = LUMA_NEW, w = LUMA_NEW, bias = LUMA_NEW;
    luma_status status = lm_cast(S, &x, &v->x, v->out.dtype);
    if (status == LUMA_OK) status = lm_cast(S, &w, &v->w, v->out.dtype);
    if (status == LUMA_OK && v->bias.storage) status = lm_cast(S, &bias, &v->bias, v->out.dtype);
    if (status == LUMA_OK) status = lm_cuda_enter(S, c);
    if (status == LUMA_OK) {
        status = launch(S, c, v, &x, &w, &bias);
        lm_cuda_leave(c);
    }
    luma_release(S, &bias);
    luma_release(S, &w);
    luma_release(S, &x);
    return status;
}
