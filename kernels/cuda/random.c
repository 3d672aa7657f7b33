/* random.c -- the random slot of CUDA. Layer: kernels/cuda. */
#include "cuda.h"

#define BLOCK 256

/* Kernels of a kind of numbers by dtype, plus one. */
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_uniform_##token + 1,
static const uint16_t uniform[LUMA_NDTYPES] = {LM_FLOATS(KERNEL_OF, _)};
#undef KERNEL_OF
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_normal_##token + 1,
static const uint16_t normal[LUMA_NDTYPES] = {LM_FLOATS(KERNEL_OF, _)};
#undef KERNEL_OF
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_integer_##token + 1,
static const uint16_t integer[LUMA_NDTYPES] = {LM_DTYPES(KERNEL_OF, _)};
#undef KERNEL_OF

luma_status lm_cuda_random(luma_state *S, lm_device *d, const lm_random *r) {
    lm_cuda *c = lm_cuda_of(d);
    const uint16_t *kernels = r->kind == LM_RANDOM_UNIFORM  ? uniform
                              : r->kind == LM_RANDOM_NORMAL ? normal
                                                            : integer;
    lm_kernel kernel = (lm_kernel)(kernels[r->out.dtype] - 1);
    uint64_t words = (uint64_t)r->words;
    lm_args_random a = {.y = lm_data(&r->out), .n = luma_numel(&r->out)};
    if (a.n == 0) return LUMA_OK;
    a.seed = r->seed;
    a.offset = r->offset;
    a.blocks = (int64_t)((r->offset % 4 + (uint64_t)(a.n - 1) * words) / 4) + 1;
    a.skip = (int32_t)(r->offset % words);
    a.lead = (int32_t)(r->offset % 4 / words);
    a.bits = r->bits;
    a.wider = r->kind == LM_RANDOM_UP_TO;
    a.lo = r->lo;
    a.range = (uint64_t)r->hi - (uint64_t)r->lo + 1;
    size_t group = lm_dtype_size(r->out.dtype) * (size_t)(4 / words);
    a.whole = a.lead == 0 && (uintptr_t)a.y % group == 0;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_launch(S, c, kernel, lm_cuda_shape(c, a.blocks, 1, BLOCK), &a);
    lm_cuda_leave(c);
    return status;
}
