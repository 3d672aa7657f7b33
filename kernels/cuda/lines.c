/* lines.c -- dims in the order of memory, and lines shared out over lanes, blocks and chunks.
** Layer: kernels/cuda. */
#include "lines.h"

#define THREADS 8u     /* log2 of the threads of a block */
#define WARP 5u        /* log2 of a warp */
#define SECTOR 5       /* log2 of the bytes that memory hands out together */
#define WARP_LINE 8192 /* elements that are not too long for a warp, where there are many lines */
#define LEAST_CHUNK 16 /* elements of a lane in a chunk */
#define CHUNK_STEP 64  /* chunks are multiples of it, so that vectors stay aligned */
#define MOST_CHUNKS 65535
#define ROUNDS 8 /* times that the blocks of a launch fill the device, at most */

/* ---- dims ---- */

void lm_dims_add(lm_dims *dims, lm_dim_of dim) {
    if (dim.size != 1) dims->dim[dims->n++] = dim;
}

/* Those that repeat elements stand before all. */
static bool goes_before(const lm_dim_of *a, const lm_dim_of *b) {
    int64_t x = a->stride[0], y = b->stride[0];
    return y != 0 && (x == 0 || lm_abs(x) > lm_abs(y));
}

void lm_dims_sort(lm_dims *dims, char *at[LM_DIMS_OPERANDS]) {
    for (int i = 0; i < dims->n; i++) {
        lm_dim_of d = dims->dim[i];
        int to = i;
        for (int k = LM_DIMS_OPERANDS - 1; k >= 0 && d.stride[0] < 0 && d.size > 0; k--) {
            if (at[k]) at[k] += (d.size - 1) * d.stride[k];
            d.stride[k] = -d.stride[k];
        }
        for (; to > 0 && goes_before(&d, &dims->dim[to - 1]); to--)
            dims->dim[to] = dims->dim[to - 1];
        dims->dim[to] = d;
    }
}

static bool as_one(const lm_dim_of *outer, const lm_dim_of *inner) {
    for (int k = 0; k < LM_DIMS_OPERANDS; k++)
        if (outer->stride[k] != inner->size * inner->stride[k]) return false;
    return true;
}

void lm_dims_merge(lm_dims *dims) {
    int n = 0;
    for (int i = 0; i < dims->n; i++) {
        lm_dim_of d = dims->dim[i];
        if (n > 0 && as_one(&dims->dim[n - 1], &d)) d.size *= dims->dim[--n].size;
        dims->dim[n++] = d;
    }
    dims->n = n;
}

int64_t lm_dims_beside(const lm_dims *kept, const lm_dims *along) {
    if (kept->n == 0) return 0;
    const lm_dim_of *k = &kept->dim[kept->n - 1];
    if (along->n == 0) return k->size;
    int64_t step = lm_abs(along->dim[along->n - 1].stride[0]);
    return k->stride[0] != 0 && step > k->stride[0] ? k->size : 0;
}

void lm_dims_walk(const lm_dims *dims, lm_walk *walk, int n, int64_t *const *strides) {
    int64_t shape[LUMA_MAX_DIMS];
    const int64_t *read[LM_DIMS_OPERANDS];
    for (int d = 0; d < dims->n; d++)
        shape[d] = dims->dim[d].size;
    for (int k = 0; k < n; k++) {
        for (int d = 0; d < dims->n; d++)
            strides[k][d] = dims->dim[d].stride[k];
        read[k] = strides[k];
    }
    lm_walk_set(walk, dims->n, shape, n, read);
}

/* ---- lines ---- */

/* The least k with 2^k >= n. */
static uint32_t log2_of(int64_t n) {
    uint32_t k = 0;
    while (k < 62 && (INT64_C(1) << k) < n)
        k++;
    return k;
}

static int64_t resident_blocks(const lm_cuda *c) {
    return lm_clamp((int64_t)c->multiprocessors * (c->threads_per_multiprocessor >> THREADS), 1,
                    MOST_CHUNKS);
}

/* Threads side by side work on lines side by side. */
static lm_lanes across_lines(const lm_cut_wish *w) {
    uint32_t size = log2_of((int64_t)w->size), least = SECTOR - size;
    uint32_t most = size < 2 ? WARP + 2 - size : WARP, apart = log2_of(w->beside);
    if (apart > most) apart = most;
    while (apart < THREADS && w->each << (THREADS - 1 - apart) >= w->length)
        apart++;
    while (apart > least && w->held << (THREADS - apart) < w->length && w->held > 0)
        apart--;
    return (lm_lanes){THREADS - apart, apart};
}

/* Threads side by side work on elements side by side: few, a warp or the block. */
static lm_lanes along_lines(const lm_cuda *c, const lm_cut_wish *w) {
    uint32_t lanes = log2_of(lm_ceil_div(w->length, w->each));
    if (lanes <= WARP) return (lm_lanes){lanes, 0};
    bool many = w->lines >> (THREADS - WARP) >= resident_blocks(c);
    int64_t warp = w->held > 0 ? w->held << WARP : many ? WARP_LINE : w->each << (WARP + 1);
    return (lm_lanes){w->length <= warp ? WARP : THREADS, 0};
}

static lm_shape shape_of(const lm_cuda *c, int64_t lines, lm_lanes group, int64_t chunks) {
    int64_t blocks = lm_ceil_div(lines, INT64_C(1) << (THREADS - group.lanes));
    blocks = lm_clamp(blocks, 0, ROUNDS * resident_blocks(c));
    return (lm_shape){{(unsigned)blocks, (unsigned)chunks, 1}, 1u << THREADS, 0};
}

lm_cut lm_cut_lines(const lm_cuda *c, const lm_cut_wish *w) {
    lm_cut cut = {.chunk = w->length, .chunks = 1};
    cut.group = w->beside > 0 ? across_lines(w) : along_lines(c, w);
    int64_t blocks =
        lm_clamp(lm_ceil_div(w->lines, INT64_C(1) << (THREADS - cut.group.lanes)), 1, INT64_MAX);
    int64_t least = (int64_t)LEAST_CHUNK << cut.group.lanes;
    int64_t chunks =
        lm_clamp(resident_blocks(c) / blocks, 1, lm_clamp(w->length / least, 1, INT64_MAX));
    if (w->most > 0) chunks = lm_clamp(lm_ceil_div(w->length, w->most), chunks, MOST_CHUNKS);
    if (chunks > 1) {
        cut.chunk = lm_ceil_div(lm_ceil_div(w->length, chunks), CHUNK_STEP) * CHUNK_STEP;
        cut.chunks = lm_ceil_div(w->length, cut.chunk);
    }
    cut.shape = shape_of(c, w->lines, cut.group, cut.chunks);
    return cut;
}

lm_cut lm_cut_joins(const lm_cuda *c, int64_t lines, int64_t length) {
    uint32_t lanes = log2_of(length);
    lm_cut cut = {.chunk = length, .chunks = 1};
    cut.group.lanes = lanes <= WARP + 1 ? (lanes < WARP ? lanes : WARP) : THREADS;
    cut.shape = shape_of(c, lines, cut.group, 1);
    return cut;
}
