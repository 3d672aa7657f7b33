/* block.h -- what the threads of a block find out together. Blocks have LM_BLOCK threads.
** Layer: kernels/cuda. */
#ifndef lm_cuda_block_h
#define lm_cuda_block_h

#include "cuda/kernel.h"

#define LM_BLOCK 256
#define LM_WARPS (LM_BLOCK / 32)

/* The sum of v over the lower lanes of the warp; *all: over the whole warp. */
LM_FN uint64_t lm_warp_before(uint64_t v, uint64_t *all) {
    int lane = (int)threadIdx.x % 32;
    uint64_t sum = v;
    for (int d = 1; d < 32; d *= 2) {
        uint64_t below = __shfl_up_sync(LM_ALL_LANES, sum, d);
        sum += lane >= d ? below : 0;
    }
    *all = __shfl_sync(LM_ALL_LANES, sum, 31);
    return sum - v;
}

/* The sum of v over the lower threads of the block, and in memory[LM_WARPS] over the whole block.
** `memory` has LM_WARPS + 1 entries; a barrier is needed before it is used again. */
LM_FN uint64_t lm_block_before(uint64_t v, uint64_t *memory) {
    int warp = (int)threadIdx.x / 32;
    uint64_t all, before = lm_warp_before(v, &all);
    if (threadIdx.x % 32 == 0) memory[warp] = all;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t sum = 0;
        for (int w = 0; w < LM_WARPS; w++) {
            uint64_t mine = memory[w];
            memory[w] = sum;
            sum += mine;
        }
        memory[LM_WARPS] = sum;
    }
    __syncthreads();
    return memory[warp] + before;
}

#endif
