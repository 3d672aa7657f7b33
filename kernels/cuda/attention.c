/* attention.c -- the attention slot: one block for each tile of queries. Layer: kernels/cuda. */
#include "lines.h"

static const lm_kernel attention[LUMA_NDTYPES] = {LM_FLOATS(LM_KERNEL_OF, attention)};

#define MOST_BLOCKS 65535

static void set_operand(lm_args_attention *a, int k, const luma_tensor *x) {
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    int n = x->layout.ndim;
    a->data[k] = lm_data(x);
    a->row[k] = x->layout.stride[n - 2] * size;
    a->column[k] = x->layout.stride[n - 1] * size;
    for (int d = 0; d < n - 2; d++)
        a->batch_step[k][d] = x->layout.stride[d] * size;
}

luma_status lm_cuda_attention(luma_state *S, lm_device *d, const lm_attention *x) {
    lm_cuda *c = lm_cuda_of(d);
    int n = x->q.layout.ndim;
    const int64_t *q = x->q.layout.shape + n - 2, *v = x->v.layout.shape + n - 2;
    lm_args_attention a = {.queries = q[0],
                           .keys = v[0],
                           .e = (int32_t)q[1],
                           .ev = (int32_t)v[1],
                           .tiles = lm_ceil_div(q[0], LM_ATTENTION_TILE),
                           .causal = x->causal,
                           .masked = !x->mask.storage             ? LM_MASK_NONE
                                     : x->mask.dtype == LUMA_BOOL ? LM_MASK_BOOL
                                                                  : LM_MASK_ADDS,
                           .scale = x->scale};
    set_operand(&a, LM_ATTENTION_Q, &x->q);
    set_operand(&a, LM_ATTENTION_K, &x->k);
    set_operand(&a, LM_ATTENTION_V, &x->v);
    set_operand(&a, LM_ATTENTION_OUT, &x->out);
    if (x->mask.storage) set_operand(&a, LM_ATTENTION_MASK, &x->mask);
    const int64_t *steps[LM_ATTENTION_OPERANDS];
    for (int k = 0; k < LM_ATTENTION_OPERANDS; k++)
        steps[k] = a.batch_step[k];
    lm_walk_set(&a.batch, n - 2, x->q.layout.shape, LM_ATTENTION_OPERANDS, steps);
    int64_t widest = lm_max(q[1], v[1]), size = x->q.dtype == LUMA_FLOAT64 ? 8 : 4;
    int64_t shared = LM_ATTENTION_TILE * (q[1] + 1 + widest + 1 + LM_ATTENTION_TILE + 1) * size;
    int64_t blocks = lm_min(a.batch.n * a.tiles, MOST_BLOCKS);
    lm_shape shape = {{(unsigned)blocks, 1, 1}, LM_ATTENTION_THREADS, (unsigned)shared};
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_launch(S, c, attention[x->q.dtype], shape, &a);
    lm_cuda_leave(c);
    return status;
}
