/* luma_ops.h -- the operations of the public C API; part of luma.h, which includes it where its
** conventions and types are known. */
#ifndef luma_ops_h
#define luma_ops_h

#include "luma_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations: the rows of ops.def -------------------------------------------------------- */

/* Elementwise and reductions; shapes broadcast, dtypes promote. What each computes: ops.def.
** Reductions: n dims (0: all), keepdim leaves them with size 1. */
#define LUMA_ROW1(name, ...)                                                                       \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x);
#define LUMA_ROW2(name, ...)                                                                       \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,        \
                                     const luma_tensor *y);
#define UNARY LUMA_ROW1
#define TEST LUMA_ROW1
#define BINARY LUMA_ROW2
#define COMPARE LUMA_ROW2
#define UNARY_P(name, ...)                                                                         \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,        \
                                     luma_scalar p, luma_scalar q);
#define TERNARY(name, ...)                                                                         \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,        \
                                     const luma_tensor *y, const luma_tensor *z);
#define REDUCE(name, ...)                                                                          \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x, int n, \
                                     const int64_t *dims, bool keepdim);
#include "ops.def"
#undef LUMA_ROW1
#undef LUMA_ROW2

/* var and std with a correction other than 1. */
LUMA_API luma_status luma_var_correction(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                         int n, const int64_t *dims, bool keepdim,
                                         double correction);
LUMA_API luma_status luma_std_correction(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                         int n, const int64_t *dims, bool keepdim,
                                         double correction);
/* (sum of |x|^p)^(1 / p) over n dims (0: all), added up in double; p = 0 counts what is not zero, inf
** and -inf give the greatest and the least |x|. Floats keep their dtype. Of no elements an error
** where p is negative or inf. luma_norm: p = 2. */
LUMA_API luma_status luma_norm_p(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                 const int64_t *dims, bool keepdim, double p);
/* Two results: outs[0] variance or standard deviation, outs[1] mean; or least and greatest. */
LUMA_API luma_status luma_var_mean(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                                   const int64_t *dims, bool keepdim, double correction);
LUMA_API luma_status luma_std_mean(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                                   const int64_t *dims, bool keepdim, double correction);
LUMA_API luma_status luma_aminmax(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int n,
                                  const int64_t *dims, bool keepdim);
/* Sum of the diagonal of a matrix (m,n). */
LUMA_API luma_status luma_trace(luma_state *S, luma_tensor *out, const luma_tensor *x);

/* Views: *out shares x's storage. */
#define LUMA_VIEW(name, ...)                                                                       \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, const luma_tensor *x,        \
                                     __VA_ARGS__)
LUMA_VIEW(view, int ndim, const int64_t *shape);
LUMA_VIEW(squeeze, int n, const int64_t *dims); /* n = 0: every dim of size 1 */
LUMA_VIEW(unsqueeze, int64_t dim);
LUMA_VIEW(transpose, int64_t dim1, int64_t dim2);
LUMA_API luma_status luma_t(luma_state *S, luma_tensor *out, const luma_tensor *x);
LUMA_VIEW(permute, int n, const int64_t *dims);
LUMA_VIEW(movedim, int n, const int64_t *source, int m, const int64_t *destination);
LUMA_VIEW(select, int64_t dim, int64_t index);
LUMA_VIEW(narrow, int64_t dim, int64_t start, int64_t length);
/* first, first + step, ... `length` elements. */
LUMA_VIEW(slice, int64_t dim, int64_t first, int64_t length, int64_t step);
LUMA_VIEW(expand, int ndim, const int64_t *shape);
LUMA_VIEW(diagonal, int64_t offset, int64_t dim1, int64_t dim2);
LUMA_VIEW(unfold, int64_t dim, int64_t size, int64_t step);
LUMA_VIEW(flip, int n, const int64_t *dims);
LUMA_VIEW(as_strided, int ndim, const int64_t *shape, const int64_t *stride, int64_t offset);
LUMA_VIEW(unflatten, int64_t dim, int n, const int64_t *shape);
LUMA_API luma_status luma_detach(luma_state *S, luma_tensor *out, const luma_tensor *x);
/* Lists: luma_close_list releases. */
typedef struct luma_list {
    int n;
    luma_tensor *items;
} luma_list;
LUMA_API void luma_close_list(luma_state *S, luma_list *list);
LUMA_API luma_status luma_split(luma_state *S, luma_list *out, const luma_tensor *x, int n,
                                const int64_t *sizes, int64_t dim);
LUMA_API luma_status luma_chunk(luma_state *S, luma_list *out, const luma_tensor *x, int64_t n,
                                int64_t dim);
LUMA_API luma_status luma_unbind(luma_state *S, luma_list *out, const luma_tensor *x, int64_t dim);
/* n vectors of sizes n1, n2, ... as n views of shape (n1, n2, ...); xy: (n2, n1, ...). */
LUMA_API luma_status luma_meshgrid(luma_state *S, luma_list *out, int n, const luma_tensor *xs,
                                   bool xy);

/* Copies and joins. reshape, flatten, contiguous share where they can. */
LUMA_VIEW(reshape, int ndim, const int64_t *shape); /* one size may be -1 */
LUMA_VIEW(flatten, int64_t first, int64_t last);
LUMA_API luma_status luma_contiguous(luma_state *S, luma_tensor *out, const luma_tensor *x);
LUMA_API luma_status luma_force_contiguous(luma_state *S, luma_tensor *out, const luma_tensor *x);
LUMA_API luma_status luma_clone(luma_state *S, luma_tensor *out, const luma_tensor *x);
LUMA_API luma_status luma_cat(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs,
                              int64_t dim);
LUMA_API luma_status luma_stack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs,
                                int64_t dim);
LUMA_VIEW(tile, int n, const int64_t *reps);
/* Elements on and below (above) a diagonal, 0 elsewhere; diag: a vector as a diagonal, or that of a
** matrix. diagonal 0 is the main one, 1 the one above it. */
LUMA_VIEW(tril, int64_t diagonal);
LUMA_VIEW(triu, int64_t diagonal);
LUMA_VIEW(diag, int64_t diagonal);
LUMA_VIEW(roll, int n, const int64_t *shifts, int m, const int64_t *dims);
/* widths: before and after of the last dim, of the one before it, ...; negative ones cut. pad_border
** repeats elements of x instead of a value. Reflections leave out the edge, so that widths are below
** the size; circular ones are at most the size; a border needs an element. */
typedef enum { LUMA_BORDER_REFLECT, LUMA_BORDER_REPLICATE, LUMA_BORDER_CIRCULAR } luma_border;
LUMA_VIEW(pad, int n, const int64_t *widths, luma_scalar value);
LUMA_VIEW(pad_border, int n, const int64_t *widths, luma_border border);
LUMA_VIEW(masked_fill, const luma_tensor *mask, const luma_tensor *value);
/* x with src written along dim from start; src broadcasts to what it covers. */
LUMA_VIEW(slice_set, const luma_tensor *src, int64_t dim, int64_t start);
LUMA_VIEW(to_dtype, luma_dtype dtype);    /* shares when x has it */
LUMA_VIEW(to_device, const char *device); /* shares when x is there; NULL: the default one */
/* dst[...] = src, broadcast and cast; dst[...] = value. */
LUMA_API luma_status luma_copy(luma_state *S, luma_tensor *dst, const luma_tensor *src);
LUMA_API luma_status luma_fill(luma_state *S, luma_tensor *dst, luma_scalar value);

/* Indexing. Index tensors: any integer dtype, values counted from the state's index base. */
LUMA_VIEW(index_select, int64_t dim, const luma_tensor *index);
LUMA_VIEW(gather, int64_t dim, const luma_tensor *index);
LUMA_VIEW(take, const luma_tensor *index);
LUMA_VIEW(masked_select, const luma_tensor *mask);
LUMA_API luma_status luma_nonzero(luma_state *S, luma_tensor *out, const luma_tensor *x);
LUMA_VIEW(scatter, int64_t dim, const luma_tensor *index, const luma_tensor *src);
LUMA_VIEW(scatter_add, int64_t dim, const luma_tensor *index, const luma_tensor *src);
LUMA_VIEW(index_add, int64_t dim, const luma_tensor *index, const luma_tensor *src);
LUMA_VIEW(index_copy, int64_t dim, const luma_tensor *index, const luma_tensor *src);
/* A number or 0-d tensor in all slices at the positions. */
LUMA_VIEW(index_fill, int64_t dim, const luma_tensor *index, const luma_tensor *value);
/* scatter_reduce: as scatter, index_reduce: as index_copy, but all that goes to one place is joined, in
** source order, with what was there (include_self) or without. mean: the sum divided by the number of
** terms, rounded down of integers. bool only has AMAX and AMIN; 8- and 16-bit floats are joined in
** float32 and rounded once. */
typedef enum luma_combine {
    LUMA_COMBINE_SUM,
    LUMA_COMBINE_PROD,
    LUMA_COMBINE_MEAN,
    LUMA_COMBINE_AMAX,
    LUMA_COMBINE_AMIN
} luma_combine;
LUMA_VIEW(scatter_reduce, int64_t dim, const luma_tensor *index, const luma_tensor *src,
          luma_combine combine, bool include_self);
LUMA_VIEW(index_reduce, int64_t dim, const luma_tensor *index, const luma_tensor *src,
          luma_combine combine, bool include_self);
/* For every element of index the one of x at that position along dim; both broadcast along the other
** dims. Without a dim elements at flat positions, as a list. */
LUMA_VIEW(take_along_dim, const luma_tensor *index, bool has_dim, int64_t dim);
/* x where the mask, which broadcasts to x, does not hold; else the elements of source, in order. */
LUMA_VIEW(masked_scatter, const luma_tensor *mask, const luma_tensor *source);
/* x with values at the places of n index tensors, one for each of its first dims; a mask stands for as
** many as it has dims. accumulate: added, in order; else the last of duplicates wins. As luma_index_put,
** but *out is a new tensor, or one to write into, which may be x. */
LUMA_VIEW(index_put_list, int n, const luma_tensor *index, const luma_tensor *values,
          bool accumulate);
/* index of any shape, weight (rows, n): row by row (the shape of index, n), in this order as PyTorch's
** functional form. */
LUMA_API luma_status luma_embedding(luma_state *S, luma_tensor *out, const luma_tensor *index,
                                    const luma_tensor *weight);
/* x: labels; the result has one dim more, of size classes, in which 1 stands at the label and 0
** elsewhere, int64. classes -1: as many as the greatest label needs, which waits for the device. */
LUMA_VIEW(one_hot, int64_t classes);
/* x[index[0], index[1], ...]: one entry for each of the first n dims, NULL for the whole dim. The
** index tensors broadcast together; their dims stand where the indexed dims were when those are side
** by side, else in front. get copies; put writes values (broadcast, cast, or a number) into x, the
** last of duplicates wins. A mask is given by the columns of its luma_nonzero. */
LUMA_API luma_status luma_index_get(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                    const luma_tensor *const *index);
LUMA_API luma_status luma_index_put(luma_state *S, luma_tensor *x, int n,
                                    const luma_tensor *const *index, const luma_tensor *values);

/* Order, scans. Pairs write outs[0] values, outs[1] positions. */
LUMA_API luma_status luma_max(luma_state *S, luma_tensor outs[2], bool has_dim, int64_t dim,
                              bool keepdim, const luma_tensor *x);
LUMA_API luma_status luma_min(luma_state *S, luma_tensor outs[2], bool has_dim, int64_t dim,
                              bool keepdim, const luma_tensor *x);
LUMA_API luma_status luma_sort(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                               int64_t dim, bool descending);
LUMA_VIEW(argsort, int64_t dim, bool descending);
LUMA_API luma_status luma_topk(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t k,
                               int64_t dim, bool largest);
/* Along dim, each element with those before it. Sums and products of bool and integers are int64,
** of floats double until they are stored; a product keeps an exponent of its own, so that what leaves
** double's range comes back. logcumsumexp gives floats. cummax and cummin keep the dtype; NaN is
** propagated, positions are those of the first of equals. */
LUMA_VIEW(cumsum, int64_t dim);
LUMA_VIEW(cumprod, int64_t dim);
LUMA_VIEW(logcumsumexp, int64_t dim);
LUMA_API luma_status luma_cummax(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                 int64_t dim);
LUMA_API luma_status luma_cummin(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                 int64_t dim);
/* Differences of neighbours along dim, n times over; of bool whether they differ. prepend and append
** (NULL: nothing) are joined to x before. */
LUMA_VIEW(diff, int64_t n, int64_t dim, const luma_tensor *prepend, const luma_tensor *append);
/* What stands at place k (from 1) of the order along dim, and its position, the first of equals that
** are not taken yet. median: the lower one in the middle; NaN where there is one; nanmedian: of the
** rest; without a dim outs[1] stays empty. mode: the least of the most frequent values and the first
** place of it. */
LUMA_API luma_status luma_kthvalue(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                   int64_t k, int64_t dim, bool keepdim);
LUMA_API luma_status luma_median(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                 bool has_dim, int64_t dim, bool keepdim);
LUMA_API luma_status luma_nanmedian(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                    bool has_dim, int64_t dim, bool keepdim);
LUMA_API luma_status luma_mode(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                               int64_t dim, bool keepdim);
/* At q (n - 1) of the sorted n elements along dim, or of all; q: a number, 0-d or a list, whose size
** comes first in the shape; 0 to 1. Between two: interpolation 0 linear, 1 the lower, 2 the higher,
** 3 their mean, 4 the nearer (halves: the even place). NaN where there is one; nanquantile: of the
** rest. */
LUMA_API luma_status luma_quantile(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                   const luma_tensor *q, bool has_dim, int64_t dim, bool keepdim,
                                   int interpolation);
LUMA_API luma_status luma_nanquantile(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                      const luma_tensor *q, bool has_dim, int64_t dim, bool keepdim,
                                      int interpolation);
/* The different elements in order, or slices along dim in lexicographic order; outs[1], if inverse:
** which of them each element (slice) of x is, in the shape of x (of dim); outs[2], if counts: how many
** there are of each. All NaN are one value, of zeros the first stays. consecutive: only what follows
** its like is dropped, in the order of x. */
LUMA_API luma_status luma_unique(luma_state *S, luma_tensor outs[3], const luma_tensor *x,
                                 bool has_dim, int64_t dim, bool inverse, bool counts);
LUMA_API luma_status luma_unique_consecutive(luma_state *S, luma_tensor outs[3],
                                             const luma_tensor *x, bool has_dim, int64_t dim,
                                             bool inverse, bool counts);
/* Where values would go into sorted to keep it in order, from the index base on: before equals, or
** (right) after them. sorted (n), values of any shape or a number; or (..., n) and (..., m). NaN is
** the greatest. bucketize: of x among sorted boundaries (n). */
LUMA_API luma_status luma_searchsorted(luma_state *S, luma_tensor *out, const luma_tensor *sorted,
                                       const luma_tensor *values, bool right);
LUMA_API luma_status luma_bucketize(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                    const luma_tensor *boundaries, bool right);
/* How often each label of x (n), from the index base on, occurs, or the sum of its weights (n; NULL:
** counts), for as many labels as x has, at least minlength. int64, with float weights their dtype. */
LUMA_API luma_status luma_bincount(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                   const luma_tensor *weights, int64_t minlength);
/* Counts of elements in `bins` bins of one width from min to max, both in; of x if both are 0. What
** lies outside, NaN too, counts nowhere. Of x's float dtype, else the default one. */
LUMA_API luma_status luma_histc(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t bins,
                                double min, double max);
LUMA_VIEW(softmax, int64_t dim);
LUMA_VIEW(log_softmax, int64_t dim);

/* Normalisation. Of floats in their own dtype, computed in float32 (float64 of float64), statistics
** in double; of integers in the default float dtype. weight and bias, NULL where there is none, have
** any number dtype; eps >= 0. Errors name argument 1 for x, and so on.
** layer: the last n dims of x, which have this shape, are one line: (x - mean) / sqrt(var + eps) *
** weight + bias (Ba, Kiros and Hinton, 2016), weight and bias in the shape of the line.
** rms: x / sqrt(mean of x^2 + eps) * weight (Zhang and Sennrich, 2019); has_eps false: the machine
** epsilon of the result's dtype.
** group: x (batch, channels, ...), lines of channels / groups channels and all that follow; weight
** and bias (channels) (Wu and He, 2018).
** batch: x (batch, channels, ...), of each channel the statistics of this batch (training), whose
** variance is divided by the number of values and of which there must be 2 or more, or the running
** ones; training moves running_mean and running_var (channels), floats or both NULL, in place by
** running += (batch - running) * momentum, with the unbiased variance (Ioffe and Szegedy, 2015).
** instance: the same by statistics of every instance and channel; running ones move by their mean
** over the batch, and serve instead unless use_input_stats. */
LUMA_VIEW(layer_norm, int n, const int64_t *shape, const luma_tensor *weight,
          const luma_tensor *bias, double eps);
LUMA_VIEW(rms_norm, int n, const int64_t *shape, const luma_tensor *weight, bool has_eps,
          double eps);
LUMA_VIEW(group_norm, int64_t groups, const luma_tensor *weight, const luma_tensor *bias,
          double eps);
LUMA_VIEW(batch_norm, const luma_tensor *running_mean, const luma_tensor *running_var,
          const luma_tensor *weight, const luma_tensor *bias, bool training, double momentum,
          double eps);
LUMA_VIEW(instance_norm, const luma_tensor *running_mean, const luma_tensor *running_var,
          const luma_tensor *weight, const luma_tensor *bias, bool use_input_stats, double momentum,
          double eps);

/* Attention. query (..., l, e), key (..., s, e), value (..., s, ev) of float dtypes, which promote, to
** (..., l, ev): softmax(query key^T * scale + mask) value (Vaswani et al., 2017), never with all scores
** in memory. Batch dims broadcast. mask (NULL: none) broadcasts to (..., l, s): bool, true where a
** query sees a key, or floats that are added. causal: query i sees keys 0 .. i, besides. has_scale
** false: 1 / sqrt(e). grouped: heads (dim -3) of key and value divide those of query, each of which
** serves as many side by side. A query that sees no key gets NaN; s = 0 gives 0.
** rope: x (..., t, d), pairs of halves (i, i + d/2) or of neighbours (2i, 2i + 1), or x (..., t, h, d)
** in halves, becomes (a cos - b sin, a sin + b cos) (Su et al., RoFormer, 2021); cos and sin of one
** shape (t, d/2), or what broadcasts to the pairs of x (without its dim h).
** dropout: x of a float dtype; each element 0 with chance p, 0 <= p <= 1, the others divided by 1 -
** p; by the generator of the device of x, one float32 draw for each element. */
LUMA_API luma_status luma_scaled_dot_product_attention(luma_state *S, luma_tensor *out,
                                                       const luma_tensor *query,
                                                       const luma_tensor *key,
                                                       const luma_tensor *value,
                                                       const luma_tensor *mask, bool causal,
                                                       bool has_scale, double scale, bool grouped);
typedef enum { LUMA_ROPE_HALF, LUMA_ROPE_INTERLEAVED, LUMA_ROPE_THD } luma_rope_layout;
LUMA_VIEW(rope, const luma_tensor *cos, const luma_tensor *sin, luma_rope_layout layout);
LUMA_VIEW(dropout, double p, bool training);

/* Matrix products: a (..., m, k), b (..., k, n) to (..., m, n). */
LUMA_VIEW(matmul, const luma_tensor *b);
LUMA_VIEW(mm, const luma_tensor *b);
LUMA_VIEW(bmm, const luma_tensor *b);
LUMA_VIEW(mv, const luma_tensor *v);
LUMA_VIEW(dot, const luma_tensor *w);

/* Sums of products by an equation of letters, one for each dim: "ij,jk->ik". Letters that stand in the
** terms and not in the result are summed, a letter twice in one term is a diagonal, "..." dims that
** broadcast; without an arrow the result has the letters that stand once, as in the alphabet. Any number
** of tensors of numbers, which promote; sizes of a letter are equal or 1. Products go from left to
** right, what is summed and stands in one tensor only first; each is one matrix product of views.
** Errors name the letter and its place, from 1. */
LUMA_API luma_status luma_einsum(luma_state *S, luma_tensor *out, const char *equation, int n,
                                 const luma_tensor *xs);
/* Summed over n pairs of dims of a and b; the result has the other dims of a, then those of b. */
LUMA_VIEW(tensordot, const luma_tensor *b, int n, const int64_t *dims_a, const int64_t *dims_b);
/* Over the last dims of both. */
LUMA_VIEW(inner, const luma_tensor *b);
/* v (m), w (n) to (m,n). */
LUMA_VIEW(outer, const luma_tensor *w);
/* Every element of a times all of b: sizes multiply. Fewer dims get some of size 1 in front. */
LUMA_VIEW(kron, const luma_tensor *b);
/* Of vectors along a dim of size 3, without one the first such; shapes broadcast. */
LUMA_VIEW(cross, const luma_tensor *b, bool has_dim, int64_t dim);
/* beta x + alpha times the product; x broadcasts, and does not count where beta is 0. Integers stay
** integers and take whole numbers. addmm: (m,k) by (k,n); addmv: (m,k) by (k); addr: (m) by (n), outer;
** baddbmm: (b,m,k) by (b,k,n); addbmm: the same, summed over b. An out that is x works in place, in the
** dtype of x. */
LUMA_VIEW(addmm, const luma_tensor *a, const luma_tensor *b, luma_scalar beta, luma_scalar alpha);
LUMA_VIEW(addmv, const luma_tensor *a, const luma_tensor *v, luma_scalar beta, luma_scalar alpha);
LUMA_VIEW(addr, const luma_tensor *v, const luma_tensor *w, luma_scalar beta, luma_scalar alpha);
LUMA_VIEW(baddbmm, const luma_tensor *a, const luma_tensor *b, luma_scalar beta, luma_scalar alpha);
LUMA_VIEW(addbmm, const luma_tensor *a, const luma_tensor *b, luma_scalar beta, luma_scalar alpha);
/* Square matrices (..., m, m) to the power n >= 0, by repeated squares. */
LUMA_VIEW(matrix_power, int64_t n);
/* The product of 1 to 64 matrices in the order of least work. */
LUMA_API luma_status luma_chain_matmul(luma_state *S, luma_tensor *out, int n,
                                       const luma_tensor *xs);

/* Images and volumes (core/resize.c). x (n, c, d1, ...) of 1 to 3 spatial dims in the n sizes, one for
** each or one for all, or (n = 0) in scale_factor times their size. Places are PyTorch's: nearest floor(i
** in / out), linear (i + 0.5) in / out - 0.5 or, with align_corners, i (in - 1) / (out - 1); in / out is
** 1 / scale_factor where that is given. Linear modes take integers to the default float dtype. */
typedef enum { LUMA_RESIZE_NEAREST, LUMA_RESIZE_LINEAR } luma_resize;
LUMA_VIEW(interpolate, int n, const int64_t *size, double scale_factor, luma_resize mode,
          bool align_corners);
LUMA_VIEW(pixel_shuffle, int64_t factor);   /* (..., c r^2, h, w) to (..., c, h r, w r) */
LUMA_VIEW(pixel_unshuffle, int64_t factor); /* and back */

/* Pooling (core/pooling.c) over the last `dims` dims, 1 to 3, of x (c, d1, ...) or (n, c, d1, ...). Lists
** have one number for each dim or one for all, or n is 0. Sizes of results are PyTorch's. Averages of
** integers are of the default float dtype; greatest values have the dtype of x, NaN is the greatest,
** and positions (outs[1], unless they are not wanted) are flat in the plane of x. */
typedef struct luma_pool {
    int nkernel, nstride, npadding, ndilation; /* dilation: of max_pool */
    const int64_t *kernel;
    const int64_t *stride;    /* 0: the kernel */
    const int64_t *padding;   /* on both sides, at most half the kernel; 0: none */
    const int64_t *dilation;  /* 0: none */
    bool ceil_mode;           /* a last window may reach outside */
    bool exclude_padding;     /* averages do not count it */
    int64_t divisor_override; /* of sums; 0: the number of elements */
} luma_pool;
LUMA_VIEW(avg_pool, int dims, const luma_pool *pool);
LUMA_VIEW(adaptive_avg_pool, int dims, int n, const int64_t *size);
LUMA_API luma_status luma_max_pool(luma_state *S, luma_tensor outs[2], const luma_tensor *x,
                                   int dims, const luma_pool *pool, bool positions);
LUMA_API luma_status luma_adaptive_max_pool(luma_state *S, luma_tensor outs[2],
                                            const luma_tensor *x, int dims, int n,
                                            const int64_t *size, bool positions);

/* Losses (core/loss.c): of floats in their dtype, of integers in the default float dtype; narrow
** floats are computed in float32. The result is 0-d, or with NONE that of each place; a mean of no
** places is NaN. Where there is no class dim, target and weights (NULL: none) broadcast to x. */
typedef enum {
    LUMA_REDUCTION_MEAN,
    LUMA_REDUCTION_SUM,
    LUMA_REDUCTION_NONE,
    LUMA_REDUCTION_BATCHMEAN /* kl_div: the sum by the size of dim 0 */
} luma_reduction;
LUMA_VIEW(mse_loss, const luma_tensor *target, luma_reduction reduction);
LUMA_VIEW(l1_loss, const luma_tensor *target, luma_reduction reduction);
LUMA_VIEW(huber, const luma_tensor *target, double delta, luma_reduction reduction);
LUMA_VIEW(smooth_l1, const luma_tensor *target, double beta, luma_reduction reduction);
/* x: probabilities, logits, logarithms of probabilities. */
LUMA_VIEW(bce, const luma_tensor *target, const luma_tensor *weight, luma_reduction reduction);
LUMA_VIEW(bce_with_logits, const luma_tensor *target, const luma_tensor *weight,
          const luma_tensor *pos_weight, luma_reduction reduction);
LUMA_VIEW(kl_div, const luma_tensor *target, bool log_target, luma_reduction reduction);
/* x (c) or (n, c, d1, ...) logits (nll_loss: logarithms of probabilities). target: labels () or (n, d1,
** ...) from the index base on, or (cross_entropy) probabilities of the shape of x. weight (c). Labels
** that are *ignore_index (NULL: none) lose nothing and do not count. The mean is by the weights of the
** labels; of probabilities by the number of places. */
LUMA_VIEW(cross_entropy, const luma_tensor *target, const luma_tensor *weight,
          const int64_t *ignore_index, double label_smoothing, luma_reduction reduction);
LUMA_VIEW(nll_loss, const luma_tensor *target, const luma_tensor *weight,
          const int64_t *ignore_index, luma_reduction reduction);
/* Convolutions: x (N, C, size...) or (C, size...) and w (O, C / groups, kernel...) to (N, O, size...) or
** (O, size...), each size (size + before + after - dilation * (kernel - 1) - 1) / stride + 1;
** bias (O), or NULL. Transposed: w (C, O / groups, kernel...), each size
** (size - 1) * stride - before - after + dilation * (kernel - 1) + output_padding + 1. Dtypes promote,
** integers wrap, small floats are summed in float32. */
typedef struct luma_conv_options {
    /* lists of one number for all spatial dims, or one for each; padding also before and after of
    ** each, first dim first. None: 1, and 0 of paddings */
    int nstride, npadding, ndilation, noutput_padding;
    const int64_t *stride, *padding, *dilation, *output_padding;
    bool same;      /* as much padding as keeps sizes; with stride 1, not transposed */
    int64_t groups; /* at least 1 */
} luma_conv_options;
#define LUMA_CONV(name)                                                                            \
    LUMA_VIEW(name, const luma_tensor *w, const luma_tensor *bias, const luma_conv_options *o)
/* o NULL: no list, one group */
LUMA_CONV(conv1d);
LUMA_CONV(conv2d);
LUMA_CONV(conv3d);
LUMA_CONV(conv_transpose1d);
LUMA_CONV(conv_transpose2d);
LUMA_CONV(conv_transpose3d);
#undef LUMA_CONV
/* Windows of x (N, C, size...) or (C, size...) as columns (N, C * taps, windows) or without N, and back:
** sums of all that came from one place. Two spatial dims, or three where kernel (or size) has three
** numbers; groups and output padding count for nothing. */
LUMA_VIEW(im2col, int nkernel, const int64_t *kernel, const luma_conv_options *o);
LUMA_VIEW(col2im, int nsize, const int64_t *size, int nkernel, const int64_t *kernel,
          const luma_conv_options *o);
/* Quantised blocks: 32 elements of a row become a float16 scale d and 32 small integers, in the bytes
** that GGML gives them (ggml-common.h, ggml-quants.c): q8_0 34 bytes, d = amax / 127, an element
** round(x / d); q4_0 18 bytes, d = -v / 8 for the element v of greatest magnitude, an element
** min(15, trunc(x / d + 8.5)), which stands for (q - 8) d. A row of k elements, a multiple of 32, is a
** row of k / 32 blocks of uint8. A block that holds NaN or an infinity, or whose d float16 cannot
** hold, is NaN throughout.
** quantize_blocks: x (..., k) of any float dtype, by way of float32, to uint8 (..., bytes).
** dequantize_blocks: uint8 (..., bytes) to float32 (..., k), exact.
** matmul_blocks: x (..., k) of float32, float16 or bfloat16 by blocks (n, bytes) that stand for
** (n, k): x times their transpose, (..., n) in x's dtype. Rows of x are rounded to 8 bits a block too,
** as q8_0 with a float32 scale; products are sums of integers, scaled and added in float32. Against
** exact arithmetic an element errs by at most the sum over blocks of amax(x) / 254 times the sum of
** |w|, and k / 32 + 8 roundings of float32 of the sum of |x w|. NaN or an infinity in a row of x
** makes its results NaN. */
LUMA_VIEW(quantize_blocks, luma_quant_format format);
LUMA_VIEW(dequantize_blocks, luma_quant_format format);
LUMA_VIEW(matmul_blocks, const luma_tensor *blocks, luma_quant_format format);

/* x + value a b, x + value a / b; of integers the first takes whole numbers only, the second is a
** float. */
LUMA_VIEW(addcmul, const luma_tensor *a, const luma_tensor *b, luma_scalar value);
LUMA_VIEW(addcdiv, const luma_tensor *a, const luma_tensor *b, luma_scalar value);
/* x + weight (end - x), exact at both ends; weight a tensor or a number. A float. */
LUMA_VIEW(lerp, const luma_tensor *end, const luma_tensor *weight);
/* NaN, infinity and -infinity replaced; NULL: by 0, the greatest and the least number of the dtype. */
LUMA_VIEW(nan_to_num, const luma_scalar *nan, const luma_scalar *above, const luma_scalar *below);
/* Rounded to so many digits behind the point, or before it where negative: x 10^decimals rounded,
** divided again. Integers stay, where decimals is negative that is an error. */
LUMA_VIEW(round_decimals, int64_t decimals);
/* The next number of the dtype from x toward y. */
LUMA_VIEW(nextafter, const luma_tensor *y);
/* The halves a, b of x along dim: a sigmoid(b), silu(a) b. Errors: an odd size. */
LUMA_VIEW(glu, int64_t dim);
LUMA_VIEW(swiglu, int64_t dim);
/* x where positive, else weight x; weight () or (1) or (c), one a channel, which is dim 1 of x. */
LUMA_VIEW(prelu, const luma_tensor *weight);
/* A view turned k times by a right angle, from the first of two dims to the second; n 0: dims 0, 1. */
LUMA_VIEW(rot90, int64_t k, int n, const int64_t *dims);
/* Every position of dim (NULL: of all elements in one line) repeats times, a number or an integer
** tensor () or (1) or (size). */
LUMA_VIEW(repeat_interleave, const luma_tensor *repeats, const int64_t *dim);
/* Tensors joined side by side: along dim 1, vectors along dim 0; below each other, vectors as rows. */
LUMA_API luma_status luma_hstack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs);
LUMA_API luma_status luma_vstack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs);
/* bool: |x - y| <= atol + rtol |y|. */
LUMA_VIEW(isclose, const luma_tensor *y, double rtol, double atol, bool equal_nan);

/* Values on the host. */
LUMA_API luma_status luma_equal(luma_state *S, bool *value, const luma_tensor *x,
                                const luma_tensor *y);
LUMA_API luma_status luma_allclose(luma_state *S, bool *value, const luma_tensor *x,
                                   const luma_tensor *y, double rtol, double atol, bool equal_nan);
LUMA_API luma_status luma_item(luma_state *S, const luma_tensor *x, luma_scalar *value);

#ifdef __cplusplus
}
#endif

#endif
