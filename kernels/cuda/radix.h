/* radix.h -- long rows, sorted by a radix sort from the lowest digit of 8 bits, and the selection
** of the first k of a row from the highest; template, included by radix_*.cu: KEY and POSITION are
** unsigned types, ITEMS the elements of a thread, RADIX(name) the name of a kernel.
** Layer: kernels/cuda.
**
** A tile is what a block of 256 threads handles. A digit that is one and the same in a whole row is
** passed over, which is known on the device only: so each kernel finds out for itself which of the
** two buffers of a row is the one to read. */
#include "cuda/block.h"
#include "cuda/sort.h"

#define BLOCK LM_BLOCK
#define WARPS LM_WARPS
#define TILE (BLOCK * ITEMS)

/* The tile of this block: a row, and its elements from `start` to below `end`. */
typedef struct {
    int64_t row, tile, start, end;
} radix_tile;
LM_FN radix_tile tile_of(unsigned block, int64_t tiles, int64_t n) {
    radix_tile t;
    t.row = block / (unsigned)tiles;
    t.tile = block % (unsigned)tiles;
    t.start = t.tile * TILE;
    t.end = t.start + TILE < n ? t.start + TILE : n;
    return t;
}

LM_FN unsigned digit_of(KEY key, int shift) {
    return (unsigned)(key >> shift) & 255;
}

/* Digits below `shift` that differ in a row: so many passes have run before. */
LM_FN int passes_below(uint64_t varies, int shift) {
    int passes = 0;
    for (int s = 0; s < shift; s += 8)
        passes += (varies >> s & 255) != 0;
    return passes;
}

/* ---- keys --------------------------------------------------------------------------------------*/

LM_KERNEL(RADIX(radix_make)) {
    radix_tile t = tile_of(blockIdx.x, a.radix.tiles, a.radix.n);
    int64_t at;
    LM_OFFSET(a.sort.walk, a.sort.first + t.row, a.sort.x_row, at);
    const char *x = (const char *)a.sort.x + at;
    KEY *keys = (KEY *)a.radix.keys[0] + t.row * a.radix.n;
    KEY first = (KEY)sort_key(a.sort.dtype, x, a.sort.flip), differ = 0;
    for (int64_t i = t.start + threadIdx.x; i < t.end; i += BLOCK) {
        KEY key = (KEY)sort_key(a.sort.dtype, x + i * a.sort.x_step, a.sort.flip);
        keys[i] = key;
        differ |= key ^ first;
    }
    for (int d = 16; d > 0; d /= 2)
        differ |= __shfl_xor_sync(LM_ALL_LANES, differ, d);
    if (threadIdx.x % 32 == 0 && differ != 0)
        atomicOr(&a.radix.varies[t.row], (unsigned long long)differ);
}

/* ---- a pass ------------------------------------------------------------------------------------*/

LM_KERNEL(RADIX(radix_count)) {
    __shared__ unsigned count[256];
    radix_tile t = tile_of(blockIdx.x, a.tiles, a.n);
    uint64_t varies = a.varies[t.row];
    if ((varies >> a.shift & 255) == 0) return;
    const KEY *keys = (const KEY *)a.keys[passes_below(varies, a.shift) % 2] + t.row * a.n;
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = t.start + threadIdx.x; i < t.end; i += BLOCK)
        atomicAdd(&count[digit_of(keys[i], a.shift)], 1u);
    __syncthreads();
    ((POSITION *)a.counts)[(t.row * 256 + threadIdx.x) * a.tiles + t.tile] = count[threadIdx.x];
}

/* A warp or a block for each line of counts, of which a row has a.lines: they become sums of those
** before. */
LM_KERNEL(RADIX(radix_scan)) {
    __shared__ uint64_t sums[WARPS + 1];
    int lanes = a.scan_blocks ? BLOCK : 32, lane = (int)threadIdx.x % lanes;
    int64_t line = a.scan_blocks ? blockIdx.x : blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
    if (line >= a.rows * a.lines) return;
    if (a.lines == 256 && (a.varies[line / 256] >> a.shift & 255) == 0) return;
    POSITION *counts = (POSITION *)a.counts + line * a.tiles, total = 0;
    for (int64_t start = lane * 4; start - lane * 4 < a.tiles; start += lanes * 4) {
        POSITION v[4];
        uint64_t sum = 0, before, all;
        LM_UNROLL
        for (int i = 0; i < 4; i++) {
            v[i] = start + i < a.tiles ? counts[start + i] : 0;
            sum += v[i];
        }
        if (a.scan_blocks) {
            before = lm_block_before(sum, sums);
            all = sums[WARPS];
            __syncthreads();
        } else {
            before = lm_warp_before(sum, &all);
        }
        before += total;
        LM_UNROLL
        for (int i = 0; i < 4; i++) {
            if (start + i < a.tiles) counts[start + i] = (POSITION)before;
            before += v[i];
        }
        total += (POSITION)all;
    }
    if (lane == 0) ((POSITION *)a.totals)[line] = total;
}

/* Of each key of a lane the place among those of its digit in the part of the tile that the warp
** has; count[digit] becomes how many there are. Keys from number `size` on do not count. */
LM_FN void rank_keys(const KEY *key, int shift, int first, int size, unsigned *count, int *rank) {
    unsigned lower = (1u << threadIdx.x % 32) - 1;
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        bool in = first + k * 32 < size;
        unsigned digit = in ? digit_of(key[k], shift) : 256;
        unsigned same = __match_any_sync(LM_ALL_LANES, digit);
        unsigned before = in ? count[digit] : 0;
        rank[k] = (int)before + __popc(same & lower);
        __syncwarp();
        if (in && (same & lower) == 0) count[digit] = before + (unsigned)__popc(same);
        __syncwarp();
    }
}

/* Thread d: counts of digit d become places in the tile, and place[d] what leads from there to the
** place in the row. */
LM_FN void place_digit(const lm_args_radix *a, const radix_tile *t, unsigned (*count)[256],
                       uint64_t *sums, POSITION *place) {
    int digit = (int)threadIdx.x;
    int64_t line = t->row * 256 + digit;
    unsigned all = 0;
    for (int w = 0; w < WARPS; w++) {
        unsigned c = count[w][digit];
        count[w][digit] = all;
        all += c;
    }
    unsigned start = (unsigned)lm_block_before(all, sums);
    POSITION total = a->tiles > 1 ? ((const POSITION *)a->totals)[line] : all;
    __syncthreads();
    POSITION base = (POSITION)lm_block_before(total, sums);
    if (a->tiles > 1) base += ((const POSITION *)a->counts)[line * a->tiles + t->tile];
    for (int w = 0; w < WARPS; w++)
        count[w][digit] += start;
    place[digit] = base - start;
}

/* Elements of a tile go to their places: in the tile first, for those of a digit then lie side by
** side in the row. */
LM_KERNEL(RADIX(radix_scatter)) {
    __shared__ unsigned count[WARPS][256];
    __shared__ uint64_t sums[WARPS + 1];
    __shared__ POSITION place[256];
    __shared__ union {
        KEY key[TILE];
        POSITION at[TILE];
    } moved;
    radix_tile t = tile_of(blockIdx.x, a.tiles, a.n);
    uint64_t varies = a.varies[t.row];
    if ((varies >> a.shift & 255) == 0) return;
    int passes = passes_below(varies, a.shift), side = passes % 2, size = (int)(t.end - t.start);
    const KEY *from_keys = (const KEY *)a.keys[side] + t.row * a.n + t.start;
    const POSITION *from_at = (const POSITION *)a.at[side] + t.row * a.n + t.start;
    KEY *to_keys = (KEY *)a.keys[side ^ 1] + t.row * a.n, key[ITEMS];
    POSITION *to_at = (POSITION *)a.at[side ^ 1] + t.row * a.n, to[ITEMS];
    int warp = (int)threadIdx.x / 32, mine = warp * ITEMS * 32 + (int)threadIdx.x % 32,
        local[ITEMS];
    bool placed = passes > 0 || a.placed;

    for (int w = 0; w < WARPS; w++)
        count[w][threadIdx.x] = 0;
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++)
        key[k] = mine + k * 32 < size ? from_keys[mine + k * 32] : 0;
    __syncthreads();
    rank_keys(key, a.shift, mine, size, count[warp], local);
    __syncthreads();
    place_digit(&a, &t, count, sums, place);
    __syncthreads();
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        if (mine + k * 32 >= size) continue;
        local[k] += (int)count[warp][digit_of(key[k], a.shift)];
        moved.key[local[k]] = key[k];
    }
    __syncthreads();
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        int i = (int)threadIdx.x + k * BLOCK;
        if (i >= size) continue;
        to[k] = place[digit_of(moved.key[i], a.shift)] + (POSITION)i;
        to_keys[to[k]] = moved.key[i];
    }
    __syncthreads();
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        int i = mine + k * 32;
        if (i < size) moved.at[local[k]] = placed ? from_at[i] : (POSITION)(t.start + i);
    }
    __syncthreads();
    LM_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        int i = (int)threadIdx.x + k * BLOCK;
        if (i < size) to_at[to[k]] = moved.at[i];
    }
}

/* The first k of each row, in order. Blocks take BLOCK of them. */
LM_KERNEL(RADIX(radix_give)) {
    unsigned parts = (unsigned)((a.sort.k + BLOCK - 1) / BLOCK);
    int64_t number = blockIdx.x / parts, j = blockIdx.x % parts * (int64_t)BLOCK + threadIdx.x;
    if (j >= a.sort.k) return;
    sort_row row;
    SORT_ROW(a.sort, number, row);
    int passes = passes_below(a.radix.varies[number], a.bits);
    int64_t at = j;
    if (passes > 0 || a.radix.placed)
        at = (int64_t)((const POSITION *)a.radix.at[passes % 2])[number * a.radix.n + j];
    SORT_GIVE(a.sort, row, j, at);
}

/* ---- selection ---------------------------------------------------------------------------------*/

/* For the digit at shift: how many keys have which, of those that agree with a.chosen above it. Rows
** have a.groups blocks. */
LM_KERNEL(RADIX(select_count)) {
    __shared__ unsigned count[256];
    radix_tile t = tile_of(blockIdx.x, a.groups, a.n);
    const KEY *keys = (const KEY *)a.keys + t.row * a.n;
    uint64_t chosen = a.chosen[t.row] >> a.shift >> 8;
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t start = t.start; start < a.n; start += a.groups * TILE) {
        int64_t end = start + TILE < a.n ? start + TILE : a.n;
        for (int64_t i = start + threadIdx.x; i < end; i += BLOCK) {
            KEY key = keys[i];
            if ((uint64_t)key >> a.shift >> 8 == chosen)
                atomicAdd(&count[digit_of(key, a.shift)], 1u);
        }
    }
    __syncthreads();
    if (count[threadIdx.x] == 0) return;
    atomicAdd((POSITION *)a.digits + t.row * 256 + threadIdx.x, (POSITION)count[threadIdx.x]);
}

/* A block for each row: the digit in which the last wanted key lies, and how many of those with it
** are wanted. */
LM_KERNEL(RADIX(select_digit)) {
    __shared__ uint64_t sums[WARPS + 1];
    POSITION *digits = (POSITION *)a.digits + blockIdx.x * (int64_t)256;
    POSITION count = digits[threadIdx.x];
    POSITION wanted = (POSITION)a.wanted[blockIdx.x];
    POSITION before = (POSITION)lm_block_before(count, sums);
    digits[threadIdx.x] = 0;
    __syncthreads();
    if (before < wanted && wanted - before <= count) {
        a.chosen[blockIdx.x] |= (unsigned long long)threadIdx.x << a.shift;
        a.wanted[blockIdx.x] = wanted - before;
    }
}

/* Of each tile: how many keys are below the chosen one (line 0 of the row), how many equal (1). */
LM_KERNEL(RADIX(select_tile)) {
    __shared__ unsigned found[2];
    radix_tile t = tile_of(blockIdx.x, a.tiles, a.n);
    const KEY *keys = (const KEY *)a.keys + t.row * a.n;
    KEY chosen = (KEY)a.chosen[t.row];
    unsigned below = 0, equal = 0;
    if (threadIdx.x < 2) found[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t i = t.start + threadIdx.x; i < t.end; i += BLOCK) {
        below += keys[i] < chosen;
        equal += keys[i] == chosen;
    }
    for (int d = 16; d > 0; d /= 2) {
        below += __shfl_xor_sync(LM_ALL_LANES, below, d);
        equal += __shfl_xor_sync(LM_ALL_LANES, equal, d);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&found[0], below);
        atomicAdd(&found[1], equal);
    }
    __syncthreads();
    if (threadIdx.x < 2)
        ((POSITION *)a.counts)[(t.row * 2 + threadIdx.x) * a.tiles + t.tile] = found[threadIdx.x];
}

/* Keys below the chosen one and the first a.wanted equal ones, with their positions, side by side
** in the order of the row. */
LM_KERNEL(RADIX(select_move)) {
    __shared__ unsigned warp_below[WARPS], warp_equal[WARPS];
    radix_tile t = tile_of(blockIdx.x, a.tiles, a.n);
    const KEY *keys = (const KEY *)a.keys + t.row * a.n;
    KEY chosen = (KEY)a.chosen[t.row];
    POSITION wanted = (POSITION)a.wanted[t.row];
    POSITION below = ((const POSITION *)a.counts)[t.row * 2 * a.tiles + t.tile];
    POSITION equal = ((const POSITION *)a.counts)[(t.row * 2 + 1) * a.tiles + t.tile];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    unsigned lower = (1u << lane) - 1;
    for (int64_t start = t.start; start < t.end; start += BLOCK) {
        int64_t i = start + threadIdx.x;
        KEY key = i < t.end ? keys[i] : (KEY)-1;
        unsigned is_below = __ballot_sync(LM_ALL_LANES, i < t.end && key < chosen);
        unsigned is_equal = __ballot_sync(LM_ALL_LANES, i < t.end && key == chosen);
        if (lane == 0) {
            warp_below[warp] = (unsigned)__popc(is_below);
            warp_equal[warp] = (unsigned)__popc(is_equal);
        }
        __syncthreads();
        POSITION before = below + (POSITION)__popc(is_below & lower);
        POSITION same = equal + (POSITION)__popc(is_equal & lower);
        for (int w = 0; w < WARPS; w++) {
            before += w < warp ? warp_below[w] : 0;
            same += w < warp ? warp_equal[w] : 0;
            below += warp_below[w];
            equal += warp_equal[w];
        }
        bool take = (is_below >> lane & 1) != 0 || ((is_equal >> lane & 1) != 0 && same < wanted);
        if (take) {
            int64_t slot = t.row * a.k + (int64_t)(before + (same < wanted ? same : wanted));
            ((KEY *)a.best_keys)[slot] = key;
            ((POSITION *)a.best_at)[slot] = (POSITION)i;
        }
        __syncthreads();
    }
}
