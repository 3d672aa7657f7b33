/* search.c -- the search slot: a thread for each value. Layer: kernels/cuda. */
#include "lines.h"

#define SEARCH(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_search_##token,
static const lm_kernel kernels[LUMA_NDTYPES] = {LM_COMPUTE(SEARCH, _)};
#undef SEARCH

luma_status lm_cuda_search(luma_state *S, lm_device *d, const lm_search *s) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_search a = {.sorted = lm_data(&s->sorted),
                        .values = lm_data(&s->values),
                        .out = (int64_t *)(void *)lm_data(&s->out),
                        .rows = s->rows,
                        .n = s->n,
                        .m = s->m,
                        .right = s->right,
                        .index_base = s->index_base};
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_launch(S, c, kernels[s->values.dtype],
                                        lm_cuda_shape(c, s->rows * s->m, 1, 256), &a);
    lm_cuda_leave(c);
    return status;
}
