/* block.h -- blocks of a tensor as kernels want them: gathered, cast, and put back.
** Layer: kernels/cpu. */
#ifndef lm_block_h
#define lm_block_h

#include "level.h"

/* (m,n) elements of dtype `from` at x, sm and sn bytes apart, become rows of `to` without gaps. */
void lm_block_gather(luma_dtype from, luma_dtype to, int64_t m, int64_t sm, int64_t n, int64_t sn,
                     const char *x, char *block);
/* The way back. */
void lm_block_scatter(luma_dtype from, luma_dtype to, int64_t m, int64_t sm, int64_t n, int64_t sn,
                      const char *block, char *y);

#endif
