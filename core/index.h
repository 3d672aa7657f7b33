/* index.h -- what devices share of indexing. Layer: core. */
#ifndef lm_index_h
#define lm_index_h

#include "device.h"
#include "op.h"

/* The error for the value of a part's index at a position counted in row-major order. */
luma_status lm_index_fail(luma_state *S, const lm_index_part *part, int64_t at, int64_t value);
/* An error unless the values of index, contiguous int64 on the CPU, are positions below size. For
** those known on the host that go to a device, which finds mistakes much later. */
luma_status lm_index_check(luma_state *S, int argument, const luma_tensor *index, int64_t size);

/* The same for a part of which only the argument, the shape of its index tensor and the size are
** known. */
luma_status lm_index_fail_at(luma_state *S, int argument, int ndim, const int64_t *shape,
                             int64_t at, int64_t value, int64_t size);

/* *out: for each place of index the element of x there and, along dim, at its value; index has the
** dims of x but that one, on any device. For operations that this is a step of: what is wrong with a
** value is told of argument. */
luma_status lm_index_pick(luma_state *S, luma_tensor *out, lm_op op, int argument,
                          const luma_tensor *x, int dim, const luma_tensor *index);

#endif
