/* block.c -- gathering and scattering of blocks by the cast kernels. Layer: kernels/cpu. */
#include "block.h"

void lm_block_gather(luma_dtype from, luma_dtype to, int64_t m, int64_t sm, int64_t n, int64_t sn,
                     const char *x, char *block) {
    lm_cast_fn *cast = lm_level_now()->cast->cast[from][to];
    int64_t size = (int64_t)lm_dtype_size(to);
    if (m == 1 || sm == n * sn) {
        cast(m * n, x, sn, block, size);
    } else if (n >= m) {
        for (int64_t i = 0; i < m; i++)
            cast(n, x + i * sm, sn, block + i * n * size, size);
    } else {
        for (int64_t k = 0; k < n; k++)
            cast(m, x + k * sn, sm, block + k * size, n * size);
    }
}

void lm_block_scatter(luma_dtype from, luma_dtype to, int64_t m, int64_t sm, int64_t n, int64_t sn,
                      const char *block, char *y) {
    lm_cast_fn *cast = lm_level_now()->cast->cast[from][to];
    int64_t size = (int64_t)lm_dtype_size(from);
    if (m == 1 || sm == n * sn) {
        cast(m * n, block, size, y, sn);
    } else if (n >= m) {
        for (int64_t i = 0; i < m; i++)
            cast(n, block + i * n * size, size, y + i * sm, sn);
    } else {
        for (int64_t k = 0; k < n; k++)
            cast(m, block + k * size, n * size, y + k * sn, sm);
    }
}
