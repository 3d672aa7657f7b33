/* algebra.h -- what the row of tensordot calls. Layer: core. */
#ifndef lm_algebra_h
#define lm_algebra_h

#include "op.h"

/* dims: how many dims, or with `other` those of a; other: those of b. */
luma_status lm_algebra_tensordot(luma_state *S, luma_tensor *out, const luma_tensor *a,
                                 const luma_tensor *b, const lm_arg *dims, const lm_arg *other);

#endif
