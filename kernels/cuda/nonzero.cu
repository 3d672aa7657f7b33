/* nonzero.cu -- how many bytes are not 0, and where: counted in tiles, then listed in order. */
#include "cuda/block.h"

#define ROUND (LM_BLOCK * 16) /* bytes that a block takes at a time */
#define ROUNDS 4
#define TILE (ROUND * ROUNDS)

/* The 16 bytes from i on that lie before n, the others 0. */
LM_FN uint4 load_16(const uint8_t *x, int64_t i, int64_t n) {
    uint4 v = {0, 0, 0, 0};
    if (i + 16 <= n && ((uint64_t)(x + i) & 15) == 0) return *(const uint4 *)(const void *)(x + i);
    for (int k = 0; k < 4; k++) {
        if (i + k < n) v.x |= (uint32_t)x[i + k] << 8 * k;
        if (i + k + 4 < n) v.y |= (uint32_t)x[i + k + 4] << 8 * k;
        if (i + k + 8 < n) v.z |= (uint32_t)x[i + k + 8] << 8 * k;
        if (i + k + 12 < n) v.w |= (uint32_t)x[i + k + 12] << 8 * k;
    }
    return v;
}

/* The highest bit of each byte that is not 0. */
LM_FN uint32_t set_bytes(uint32_t v) {
    return (v | ((v & 0x7f7f7f7fu) + 0x7f7f7f7fu)) & 0x80808080u;
}
LM_FN int count_16(uint4 v) {
    return __popc(set_bytes(v.x)) + __popc(set_bytes(v.y)) + __popc(set_bytes(v.z)) +
           __popc(set_bytes(v.w));
}

LM_KERNEL(nonzero_count) {
    __shared__ uint64_t sums[LM_WARPS + 1];
    int64_t start = blockIdx.x * (int64_t)TILE;
    int count = 0;
    for (int r = 0; r < ROUNDS; r++)
        count += count_16(load_16(a.x, start + r * ROUND + threadIdx.x * 16, a.n));
    (void)lm_block_before((uint64_t)count, sums);
    if (threadIdx.x == 0) a.counts[blockIdx.x] = (int64_t)sums[LM_WARPS];
}

/* One block: counts become sums of those before. */
LM_KERNEL(nonzero_scan) {
    __shared__ uint64_t sums[LM_WARPS + 1];
    uint64_t total = 0;
    for (int64_t start = 0; start < a.tiles; start += LM_BLOCK * 4) {
        uint64_t v[4], sum = 0;
        int64_t mine = start + threadIdx.x * 4;
        for (int k = 0; k < 4; k++) {
            v[k] = mine + k < a.tiles ? (uint64_t)a.counts[mine + k] : 0;
            sum += v[k];
        }
        uint64_t before = total + lm_block_before(sum, sums);
        for (int k = 0; k < 4; k++) {
            if (mine + k < a.tiles) a.counts[mine + k] = (int64_t)before;
            before += v[k];
        }
        total += sums[LM_WARPS];
        __syncthreads();
    }
    if (threadIdx.x == 0) *a.total = (int64_t)total;
}

/* Row number i of the positions: where element `at` of x lies. */
LM_FN void put_position(const lm_args_nonzero *a, int64_t *row, int64_t at) {
    for (int d = a->ndim - 1; d >= 0; d--) {
        int64_t q = 0, r = at;
        if (d > 0 && a->walk.wide) {
            q = at / a->walk.wide_size[d];
            r = at - q * a->walk.wide_size[d];
        } else if (d > 0) {
            const lm_divisor *size = &a->walk.size[d];
            q = lm_divide((uint32_t)at, size->multiplier, size->shift);
            r = at - q * size->divisor;
        }
        row[d] = r + a->index_base;
        at = q;
    }
}

LM_KERNEL(nonzero_list) {
    __shared__ uint64_t sums[LM_WARPS + 1];
    __shared__ uint16_t found[ROUND];
    int64_t start = blockIdx.x * (int64_t)TILE, before = a.counts[blockIdx.x];
    for (int r = 0; r < ROUNDS && start < a.n; r++, start += ROUND) {
        uint4 v = load_16(a.x, start + threadIdx.x * 16, a.n);
        int place = (int)lm_block_before((uint64_t)count_16(v), sums);
        for (int k = 0; k < 16; k++) {
            uint32_t word = k < 4 ? v.x : k < 8 ? v.y : k < 12 ? v.z : v.w;
            if ((word >> k % 4 * 8 & 255) != 0)
                found[place++] = (uint16_t)(threadIdx.x * 16 + (unsigned)k);
        }
        __syncthreads();
        int count = (int)sums[LM_WARPS];
        for (int k = (int)threadIdx.x; k < count; k += LM_BLOCK)
            put_position(&a, a.positions + (before + k) * a.ndim, start + found[k]);
        before += count;
        __syncthreads();
    }
}
