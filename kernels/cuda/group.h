/* group.h -- threads that work on one line together: who they are, and what becomes of their values.
** For kernels that take an lm_lanes. Layer: kernels/cuda. */
#ifndef lm_cuda_group_h
#define lm_cuda_group_h

#include "cuda/kernel.h"

#define LM_GROUP_THREADS 512 /* of a block, at most */

LM_FN uint32_t lm_lane_of(lm_lanes g) {
    return threadIdx.x >> g.apart & ((1u << g.lanes) - 1);
}

/* Which of the block's lines this thread works on. */
LM_FN uint32_t lm_line_of(lm_lanes g) {
    return (threadIdx.x & ((1u << g.apart) - 1)) | threadIdx.x >> (g.apart + g.lanes) << g.apart;
}

/* The lines of the grid, all threads of a block together: base is the block's first line. */
#define LM_EACH_BASE(base, g, lines)                                                               \
    LM_NO_UNROLL                                                                                   \
    for (int64_t base = (int64_t)blockIdx.x * (blockDim.x >> (g).lanes); base < (lines);           \
         base += (int64_t)gridDim.x * (blockDim.x >> (g).lanes))

#define LM_SUM_OF(a, b) ((a) + (b))
#define LM_PRODUCT_OF(a, b) ((a) * (b))
#define LM_GREATER_OF(a, b) ((a) > (b) ? (a) : (b))
#define LM_EITHER_OF(a, b) ((a) | (b))

/* lm_group_<name>: the values of all lanes of a line as one, in all of them, always in the same
** order. For all threads of the block. */
#define LM_GROUP(name, T, JOIN)                                                                    \
    LM_FN T lm_group_##name(T v, lm_lanes g) {                                                     \
        __shared__ T all[LM_GROUP_THREADS];                                                        \
        uint32_t end = g.apart + g.lanes;                                                          \
        LM_NO_UNROLL                                                                               \
        for (uint32_t d = g.apart; d < end && d < 5; d++) {                                        \
            T other = __shfl_xor_sync(LM_ALL_LANES, v, 1u << d);                                   \
            v = JOIN(v, other);                                                                    \
        }                                                                                          \
        if (end <= 5) return v;                                                                    \
        uint32_t step = g.apart < 5 ? 32 : 1u << g.apart, t = threadIdx.x & (step - 1);            \
        __syncthreads();                                                                           \
        all[threadIdx.x] = v;                                                                      \
        __syncthreads();                                                                           \
        v = all[t];                                                                                \
        LM_NO_UNROLL                                                                               \
        for (t += step; t < blockDim.x; t += step)                                                 \
            v = JOIN(v, all[t]);                                                                   \
        return v;                                                                                  \
    }

#endif
