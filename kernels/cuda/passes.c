/* passes.c -- what sorting of long rows and of places has in common on the host.
** Layer: kernels/cuda. */
#include "passes.h"
#include "elementwise.h"

#define ALIGN 256
#define SCAN_BLOCKS 512 /* tiles from which on a block scans their counts */

lm_radix_kind lm_radix_kind_of(const lm_cuda *c, int key_bits, int64_t n) {
    if (n > c->narrow) return LM_RADIX_WIDE;
    return key_bits <= 32 ? LM_RADIX_NARROW : LM_RADIX_LONG;
}

size_t lm_radix_key_size(lm_radix_kind kind) {
    return kind == LM_RADIX_NARROW ? 4 : 8;
}

size_t lm_radix_at_size(lm_radix_kind kind) {
    return kind == LM_RADIX_WIDE ? 8 : 4;
}

/* As radix_*.cu define ITEMS. */
int64_t lm_radix_tiles(lm_radix_kind kind, int64_t n) {
    int64_t tile = LM_RADIX_BLOCK * (kind == LM_RADIX_NARROW ? 16 : 8);
    return (n - 1) / tile + 1;
}

luma_status lm_radix_fits(luma_state *S, int64_t n) {
    const int64_t bytes = 64; /* of an element; keys and positions twice, counts of tiles */
    if (n <= INT64_MAX / bytes) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory to sort %lld elements", (long long)n);
}

void *lm_carve(char *base, size_t *end, size_t nbytes) {
    size_t start = (*end + ALIGN - 1) / ALIGN * ALIGN;
    *end = start + nbytes;
    return base ? base + start : NULL;
}

void lm_radix_carve(lm_args_radix *r, lm_radix_kind kind, char *base, size_t *end) {
    size_t key = lm_radix_key_size(kind), at = lm_radix_at_size(kind);
    size_t n = (size_t)(r->rows * r->n);
    r->tiles = lm_radix_tiles(kind, r->n);
    r->lines = 256;
    for (int i = 0; i < 2; i++) {
        r->keys[i] = lm_carve(base, end, n * key);
        r->at[i] = lm_carve(base, end, n * at);
    }
    r->varies = lm_carve(base, end, (size_t)r->rows * sizeof *r->varies);
    if (r->tiles == 1) return;
    size_t lines = 256 * (size_t)r->rows * at;
    r->counts = lm_carve(base, end, lines * (size_t)r->tiles);
    r->totals = lm_carve(base, end, lines);
}

luma_status lm_radix_set(luma_state *S, lm_cuda *c, void *words, int64_t n, uint64_t word) {
    return lm_cuda_fill_line(S, c, words, n, sizeof word, word);
}

luma_status lm_radix_launch(luma_state *S, lm_cuda *c, lm_kernel kernel, int64_t blocks,
                            const void *args) {
    lm_shape shape = {.grid = {(unsigned)blocks, 1, 1}, .block = LM_RADIX_BLOCK};
    return lm_cuda_launch(S, c, kernel, shape, args);
}

luma_status lm_radix_scan(luma_state *S, lm_cuda *c, lm_args_radix *r, lm_radix_kind kind) {
    int64_t lines = r->rows * r->lines, warps = LM_RADIX_BLOCK / 32;
    r->scan_blocks = r->tiles >= SCAN_BLOCKS;
    return LM_RADIX_LAUNCH(S, c, kind, radix_scan, r->scan_blocks ? lines : (lines - 1) / warps + 1,
                           r);
}

luma_status lm_radix_run(luma_state *S, lm_cuda *c, const lm_args_radix *r, lm_radix_kind kind,
                         int bits) {
    lm_args_radix pass = *r;
    int64_t tiles = r->rows * r->tiles;
    for (pass.shift = 0; pass.shift < bits; pass.shift += 8) {
        if (r->tiles > 1) {
            LM_TRY(LM_RADIX_LAUNCH(S, c, kind, radix_count, tiles, &pass));
            LM_TRY(lm_radix_scan(S, c, &pass, kind));
        }
        LM_TRY(LM_RADIX_LAUNCH(S, c, kind, radix_scatter, tiles, &pass));
    }
    return LUMA_OK;
}
