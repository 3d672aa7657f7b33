/* index.h -- what devices share of indexing. Layer: core. */
#ifndef lm_index_h
#define lm_index_h

#include "device.h"

/* The error for the value of a part's index at a position counted in row-major order. */
luma_status lm_index_fail(luma_state *S, const lm_index *w, const lm_index_part *part, int64_t at,
                          int64_t value);

#endif
