/* passes.h -- the host's side of the radix sort: its memory and its passes, for sort.c and index.c.
** Layer: kernels/cuda. */
#ifndef lm_cuda_passes_h
#define lm_cuda_passes_h

#include "cuda.h"

/* Keys of 4 bytes and positions of 4; 8 and 4; 8 and 8. */
typedef enum { LM_RADIX_NARROW, LM_RADIX_LONG, LM_RADIX_WIDE } lm_radix_kind;
lm_radix_kind lm_radix_kind_of(const lm_cuda *c, int key_bits, int64_t n);
size_t lm_radix_key_size(lm_radix_kind kind);
size_t lm_radix_at_size(lm_radix_kind kind);
/* Tiles of a row of n. */
int64_t lm_radix_tiles(lm_radix_kind kind, int64_t n);

/* Whether what a sort of n elements takes can be counted in bytes: views may repeat one element more
** often than that. */
luma_status lm_radix_fits(luma_state *S, int64_t n);
/* nbytes from *end on, which moves; aligned, as all are. A NULL base only counts. */
void *lm_carve(char *base, size_t *end, size_t nbytes);
/* For r->n and r->rows sets the rest of r but what a pass decides, in memory from *end on. */
void lm_radix_carve(lm_args_radix *r, lm_radix_kind kind, char *base, size_t *end);
/* n words of 8 bytes become `word`. */
luma_status lm_radix_set(luma_state *S, lm_cuda *c, void *words, int64_t n, uint64_t word);
/* Counts of r become sums of those before. */
luma_status lm_radix_scan(luma_state *S, lm_cuda *c, lm_args_radix *r, lm_radix_kind kind);
/* Sorts keys[0] (and at[0]), of `bits` bits, r->varies being set. */
luma_status lm_radix_run(luma_state *S, lm_cuda *c, const lm_args_radix *r, lm_radix_kind kind,
                         int bits);

#define LM_RADIX_BLOCK 256
/* A kernel of radix.h, in blocks of LM_RADIX_BLOCK threads. */
#define LM_RADIX_LAUNCH(S, c, kind, name, blocks, args)                                            \
    lm_radix_launch((S), (c),                                                                      \
                    (kind) == LM_RADIX_NARROW ? LM_K_##name##_narrow                               \
                    : (kind) == LM_RADIX_LONG ? LM_K_##name##_long                                 \
                                              : LM_K_##name##_wide,                                \
                    (blocks), (const lm_args_of_##name##_narrow *){(args)})
luma_status lm_radix_launch(luma_state *S, lm_cuda *c, lm_kernel kernel, int64_t blocks,
                            const void *args);

#endif
