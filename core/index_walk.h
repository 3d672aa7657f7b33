/* index_walk.h -- what the files of indexing share: checks of arguments, walks and their parts. Layer:
** core. */
#ifndef lm_index_walk_h
#define lm_index_walk_h

#include "tensor.h"

/* x on the device in dtype: shared where it is that already. Release it. */
luma_status lm_index_adopt(luma_state *S, luma_tensor *own, const luma_tensor *x, lm_device *device,
                           luma_dtype dtype);
/* t is where x is; a 0-d CPU tensor goes anywhere. */
luma_status lm_index_place_check(luma_state *S, int argument, const luma_tensor *t,
                                 const luma_tensor *x);
/* index is a tensor of integers, where x is. */
luma_status lm_index_tensor_check(luma_state *S, int argument, const luma_tensor *index,
                                  const luma_tensor *x);
/* index has the dims of x and, but along dim `but`, fits into it. */
luma_status lm_index_sizes_check(luma_state *S, int argument, const luma_tensor *index,
                                 const luma_tensor *x, const char *name, int but);
/* mask is a tensor of bool, where x is. */
luma_status lm_index_mask_check(luma_state *S, int argument, const luma_tensor *mask,
                                const luma_tensor *x);
/* As in all operations that keep the dtype of x, what goes into it has no higher kind. */
luma_status lm_index_kind_check(luma_state *S, int argument, const luma_tensor *src,
                                const luma_tensor *x);
/* Sums into 8- and 16-bit floats run in float32, rounded once at the end. */
luma_dtype lm_index_sum_dtype(const luma_tensor *x);

void lm_index_walk_open(const luma_state *S, lm_index *w, lm_op op, lm_index_kind kind, int ndim,
                        const int64_t *shape);
/* One more index, which has the walked dims first .. first + ndim - 1 to itself and broadcasts over
** them; its values are positions along a dim of `size` whose stride is `step`. */
lm_index_part *lm_index_walk_part(lm_index *w, int argument, const luma_tensor *index, int first,
                                  int ndim, int64_t size, int64_t step);
/* A walk over the elements of x at the flat positions that index holds, on x's device. */
void lm_index_walk_flat(const luma_state *S, lm_index *w, lm_op op, lm_index_kind kind,
                        const luma_tensor *x, int argument, const luma_tensor *index);
luma_status lm_index_walk_run(luma_state *S, const lm_index *w);
/* x as a tensor over the walked shape that does not move along dim. */
luma_tensor lm_index_fixed_along(const luma_tensor *x, const lm_index *w, int dim);
/* Runs a read walk of x that has everything but plain into *out, of ndim dims (0: the walk has one).
** An index may lead to any element of x, so out is apart from all of it. */
luma_status lm_index_read_into(luma_state *S, luma_tensor *out, const luma_tensor *x, lm_index *w,
                               int ndim);

/* x != 0, contiguous. */
luma_status lm_index_mask(luma_state *S, luma_tensor *mask, const luma_tensor *x);
/* Positions (count, ndim) of what holds in the contiguous bool tensor mask. */
luma_status lm_index_positions(luma_state *S, luma_tensor *out, const luma_tensor *mask);
/* Flat positions (count) of what holds of mask, seen in a shape. */
luma_status lm_index_flat_positions(luma_state *S, luma_tensor *out, const luma_tensor *mask,
                                    lm_device *device, int ndim, const int64_t *shape);

/* What is written, in dtype and on the device of x; a number becomes a 0-d tensor. */
luma_status lm_index_source(luma_state *S, luma_tensor *own, int argument, const luma_tensor *src,
                            const luma_tensor *x, luma_dtype dtype);
/* A copy of *t when writing to x could change it. */
luma_status lm_index_keep_apart(luma_state *S, luma_tensor *t, const luma_tensor *x);
/* *out = x, changed by write, which gets what to write into; an out that is x is changed in place, else
** it is written at the end, if all went well. */
typedef luma_status lm_index_write(luma_state *S, luma_tensor *target, void *context);
luma_status lm_index_write_copy(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                lm_index_write *write, void *context);

#endif
