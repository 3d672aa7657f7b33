/* nonzero.c -- how many elements of a mask hold, and where, on CUDA. Layer: kernels/cuda. */
#include "passes.h"

#define TILE (16 << 10) /* as in nonzero.cu */

/* Counts of tiles, as sums of those before, and their total, in memory that the caller releases. */
static luma_status count(luma_state *S, lm_cuda *c, const luma_tensor *x, lm_args_nonzero *a,
                         lm_storage **memory) {
    *a = (lm_args_nonzero){.x = (const uint8_t *)lm_data(x), .n = luma_numel(x)};
    a->tiles = (a->n - 1) / TILE + 1;
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(a->tiles + 1) * sizeof *a->counts, memory));
    a->total = (int64_t *)(void *)(*memory)->data;
    a->counts = a->total + 1;
    luma_status status = LM_LAUNCH(
        S, c, nonzero_count, ((lm_shape){.grid = {(unsigned)a->tiles, 1, 1}, .block = 256}), a);
    if (status == LUMA_OK)
        status = LM_LAUNCH(S, c, nonzero_scan, ((lm_shape){.grid = {1, 1, 1}, .block = 256}), a);
    if (status != LUMA_OK) lm_storage_release(*memory);
    return status;
}

luma_status lm_cuda_count_nonzero(luma_state *S, lm_device *d, const luma_tensor *x, int64_t *n) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_nonzero a;
    lm_storage *memory;
    *n = 0;
    if (luma_numel(x) == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = count(S, c, x, &a, &memory);
    if (status == LUMA_OK) {
        status = lm_cuda_download(S, d, n, a.total, sizeof *n);
        lm_storage_release(memory);
    }
    lm_cuda_leave(c);
    return status;
}

luma_status lm_cuda_nonzero(luma_state *S, lm_device *d, luma_tensor *positions,
                            const luma_tensor *x, int index_base) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_nonzero a;
    lm_storage *memory;
    if (luma_numel(positions) == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = count(S, c, x, &a, &memory);
    if (status == LUMA_OK) {
        a.positions = (int64_t *)(void *)lm_data(positions);
        a.ndim = x->layout.ndim;
        a.index_base = index_base;
        lm_walk_set(&a.walk, a.ndim, x->layout.shape, 0, NULL);
        lm_shape shape = {.grid = {(unsigned)a.tiles, 1, 1}, .block = 256};
        status = LM_LAUNCH(S, c, nonzero_list, shape, &a);
        lm_storage_release(memory);
    }
    lm_cuda_leave(c);
    return status;
}
