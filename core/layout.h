/* layout.h -- shape, strides and offset as a plain value; pure functions from layout to layout.
** The one contiguity predicate lives here. Layer: core. */
#ifndef lm_layout_h
#define lm_layout_h

#include "state.h"

/* Row-major strides for a shape; offset 0. Sizes must have been checked (lm_numel_fits). */
luma_layout lm_layout_contiguous(int ndim, const int64_t *shape);
/* Row-major without gaps (dims of size 1 do not matter; an empty tensor is contiguous). */
bool lm_layout_is_contiguous(const luma_layout *x);
int64_t lm_layout_numel(const luma_layout *x);
bool lm_layout_same_shape(const luma_layout *a, const luma_layout *b);
const char *lm_layout_text(lm_text *buffer, const luma_layout *x); /* its shape: "[2 x 3]" */
/* First and last element (inclusive) that x touches, counted from the start of the storage.
** false when x is empty. */
bool lm_layout_extent(const luma_layout *x, int64_t *first, int64_t *last);
/* Whether two positions of x may be one element (stride 0, or overlapping windows). Exact for
** sorted-stride layouts, else says true only when it cannot rule it out. */
bool lm_layout_overlaps_itself(const luma_layout *x);
/* Whether x and y, over one storage, may share an element though they are not the same layout. */
bool lm_layout_may_overlap(const luma_layout *x, const luma_layout *y);

/* Shape in which a and b meet; error names both. */
luma_status lm_shape_broadcast(luma_state *S, int na, const int64_t *a, int nb, const int64_t *b,
                               int *n, int64_t *out);
/* Whether a shape broadcasts to another, which stays as it is. */
bool lm_shape_fits(int ndim, const int64_t *shape, int nto, const int64_t *to);
/* x seen in a bigger shape: stride 0 where it repeats. The shape must be broadcastable. */
luma_layout lm_layout_expand(const luma_layout *x, int ndim, const int64_t *shape);
/* A dim in -ndim..ndim-1 to 0..ndim-1; 0-d tensors take dims 0 and -1. Errors name argument. */
luma_status lm_dim(luma_state *S, int argument, int64_t dim, int ndim, int *out);
/* A list of dims to a bit mask; n = 0: all. Repeated dims are an error. */
luma_status lm_dims_mask(luma_state *S, int argument, int n, const int64_t *dims, int ndim,
                         uint32_t *mask);
/* x with another shape over the same elements; *ok false where strides do not allow it. */
luma_layout lm_layout_view(const luma_layout *x, int ndim, const int64_t *shape, bool *ok);

luma_layout lm_layout_transpose(const luma_layout *x, int dim1, int dim2);
luma_layout lm_layout_permute(const luma_layout *x, const int *dims);
luma_layout lm_layout_select(const luma_layout *x, int dim, int64_t index); /* drops dim */
/* length elements from start every step (signed) along dim; in range by the caller's check */
luma_layout lm_layout_slice(const luma_layout *x, int dim, int64_t start, int64_t length,
                            int64_t step);
luma_layout lm_layout_insert(const luma_layout *x, int dim, int64_t size, int64_t stride);
luma_layout lm_layout_remove(const luma_layout *x, int dim);

#endif
