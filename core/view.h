/* view.h -- what the view rows share: ranges, and adapters for rows whose arguments may be absent.
** Layer: core. */
#ifndef lm_view_h
#define lm_view_h

#include "op.h"
#include "tensor.h"

/* A 1-based caller's 0 as the end of an empty range; 0-based it would read as "the last". */
#define LM_BEFORE_FIRST INT64_MIN

/* *out becomes the view of x with this layout; a live *out takes a copy of its elements. */
luma_status lm_view_finish(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_layout *layout);

/* The range first..last (inclusive, NULL: from or to the end that the step runs to) of dim d of x
** as a start and a length. Nothing is clamped; last = first - 1 is the empty range; another range
** against its step is an error. Errors name `argument`. */
luma_status lm_view_range(luma_state *S, int argument, const luma_layout *x, int d,
                          const int64_t *first, const int64_t *last, int64_t step, int64_t *start,
                          int64_t *length);

/* Fills in the one -1 of a shape that shall hold the elements of x (or, d >= 0, of its dim d).
** Checks sizes, count and number of dims. */
luma_status lm_view_infer(luma_state *S, int argument, const luma_layout *x, int d, int n,
                          const int64_t *wanted, int64_t *shape);

luma_status lm_view_slice_arg(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                              const lm_arg *first, const lm_arg *last, const lm_arg *step);
luma_status lm_view_diagonal_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 const lm_arg *offset, const lm_arg *dim1, const lm_arg *dim2);
luma_status lm_view_as_strided_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                   const lm_arg *shape, const lm_arg *stride, const lm_arg *offset);

#endif
