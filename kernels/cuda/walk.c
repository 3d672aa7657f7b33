/* walk.c -- division by constants and walks for kernels. Layer: kernels/cuda. */
#include "cuda.h"

lm_divisor lm_divisor_of(int64_t divisor) {
    uint32_t d = (uint32_t)divisor;
    uint32_t shift = d > 1 ? 32 - (uint32_t)__builtin_clz(d - 1) : 0; /* 2^shift >= d */
    uint64_t over = (UINT64_C(1) << shift) - d;
    return (lm_divisor){d, (uint32_t)((over << 32) / d + 1), shift};
}

/* The farthest that an operand's offsets go, summed over dims whatever their signs; false when that
** does not fit into 31 bits. */
static bool is_near(int ndim, const int64_t *shape, const int64_t *stride) {
    int64_t far = 0;
    for (int d = 0; d < ndim; d++) {
        int64_t step = stride[d] < 0 ? -stride[d] : stride[d], run;
        if (shape[d] <= 1) continue;
        if (!lm_mul_fits(shape[d] - 1, step, &run) || !lm_add_fits(far, run, &far)) return false;
    }
    return far <= INT32_MAX;
}

void lm_walk_set(lm_walk *w, int ndim, const int64_t *shape, int nstrides,
                 const int64_t *const *strides) {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    bool narrow = n <= INT32_MAX;
    for (int k = 0; k < nstrides && narrow; k++)
        narrow = is_near(ndim, shape, strides[k]);
    w->n = n;
    w->ndim = ndim;
    w->wide = !narrow;
    for (int d = 0; d < LM_WALK_DIMS; d++) {
        int64_t size = d < ndim && shape[d] > 0 ? shape[d] : 1;
        w->wide_size[d] = size;
        w->size[d] = narrow ? lm_divisor_of(size) : (lm_divisor){1, 1, 0};
    }
}
