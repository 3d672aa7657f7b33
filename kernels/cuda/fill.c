/* fill.c -- contiguous memory filled with one element. Layer: kernels/cuda. */
#include <string.h>

#include "cuda.h"

luma_status lm_cuda_fill(luma_state *S, lm_device *d, const luma_tensor *dst, const void *element) {
    lm_cuda *c = lm_cuda_of(d);
    size_t size = lm_dtype_size(dst->dtype);
    if (!luma_is_contiguous(dst))
        return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "fill of a view is not there on %s", d->name);
    lm_args_fill args = {.y = lm_data(dst), .n = (uint64_t)luma_numel(dst)};
    memcpy(&args.element, element, size);
    lm_shape shape = lm_cuda_shape(c, (int64_t)args.n, 4, 256);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = size == 1   ? LM_LAUNCH(S, c, fill_1, shape, &args)
                         : size == 2 ? LM_LAUNCH(S, c, fill_2, shape, &args)
                         : size == 4 ? LM_LAUNCH(S, c, fill_4, shape, &args)
                                     : LM_LAUNCH(S, c, fill_8, shape, &args);
    lm_cuda_leave(c);
    return status;
}
