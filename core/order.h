/* order.h -- what operations of order share. Layer: core. */
#ifndef lm_order_ops_h
#define lm_order_ops_h

#include "op.h"
#include "tensor.h"

typedef enum { LM_LINEAR, LM_LOWER, LM_HIGHER, LM_MIDPOINT, LM_NEAREST } lm_interpolation;

/* Of each line along dim the element at a place of its order, counted from 0, and its position: results
** with size 1 along dim. (sort.c) */
luma_status lm_sort_place(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int dim,
                          int64_t place);
/* sort without positions. (sort.c) */
luma_status lm_sort_values(luma_state *S, luma_tensor *out, const luma_tensor *x, int dim);
/* Along dim: true where an element differs from the one before it, and at the first. All NaN are one
** value. (unique.c) */
luma_status lm_run_starts(luma_state *S, luma_tensor *out, const luma_tensor *x, int dim);
/* How often each of n labels, counted from the index base, occurs in x (integers, one dim), int64; with
** weights (or NULL) their sums. (search.c) */
luma_status lm_count_labels(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_tensor *weights, int64_t n);
/* The one element of x, an integer or bool. (search.c) */
luma_status lm_whole_item(luma_state *S, int64_t *value, const luma_tensor *x);
/* right and side as options say them. (search.c) */
luma_status lm_searchsorted_arg(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                                const luma_tensor *values, const lm_arg *right, const lm_arg *side);

#endif
