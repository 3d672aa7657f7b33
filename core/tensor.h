/* tensor.h -- what operations share: tensors from layouts, results, argument checks. Layer: core.
 */
#ifndef lm_tensor_h
#define lm_tensor_h

#include "device.h"
#include "op.h"

static inline lm_device *lm_device_of(const luma_tensor *x) {
    return x->storage->device;
}
static inline bool lm_is_number(const luma_tensor *x) {
    return x->storage == NULL && x->number.kind != LUMA_NOT_A_NUMBER;
}
/* First element of x. */
static inline char *lm_data(const luma_tensor *x) {
    return x->storage->data + x->layout.offset * (int64_t)lm_dtype_size(x->dtype);
}

/* x, where it is 0-d as one dim of size 1: another view, no reference of its own. */
static inline luma_tensor lm_at_least_1d(const luma_tensor *x) {
    luma_tensor t = *x;
    if (t.storage && t.layout.ndim == 0) t.layout = lm_layout_insert(&t.layout, 0, 1, 1);
    return t;
}

/* x where it is a float dtype, else the default one. */
static inline luma_dtype lm_dtype_floating(const luma_state *S, luma_dtype x) {
    return lm_dtype_is_float(x) ? x : S->default_dtype;
}

/* LUMA_NDTYPES becomes `otherwise`; an error of what is no dtype. */
luma_status lm_dtype_or(luma_state *S, int argument, luma_dtype otherwise, luma_dtype *dtype);
/* A new contiguous tensor, contents not set. *out is overwritten on success only. */
luma_status lm_tensor_new(luma_state *S, luma_tensor *out, lm_device *device, luma_dtype dtype,
                          int ndim, const int64_t *shape);
/* *out becomes a view of x with this layout (one more reference); checks the extent. */
luma_status lm_tensor_view(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_layout *layout);

/* An error of what is no tensor but a number or LUMA_NEW. */
luma_status lm_tensor_live(luma_state *S, int argument, const luma_tensor *x);
/* The same, and when x reaches outside its storage or, to be written, overlaps itself. */
luma_status lm_tensor_check(luma_state *S, int argument, const luma_tensor *x, bool written);
/* bool has no such thing: "sums", "products". */
luma_status lm_tensor_not_bool(luma_state *S, int argument, const luma_tensor *x, const char *what);
/* Whether both are the same elements in the same order. */
bool lm_tensor_is_same(const luma_tensor *a, const luma_tensor *b);
/* An error unless t is on the device of x, which messages call `name`. */
luma_status lm_tensor_beside(luma_state *S, int argument, const luma_tensor *t,
                             const luma_tensor *x, const char *name);

/* The one way an operation makes its result. Usage:
**     lm_result r;
**     LM_TRY(lm_result_open(S, &r, out, device, dtype, ndim, shape, inputs, ninputs, flags));
**     status = kernel(..., &r.work, ...);
**     return lm_result_close(S, &r, status);
** open: out LUMA_NEW: r.work is new. Else checks shape, dtype, device and self-overlap of *out;
** r.work is *out itself, or a new tensor when an input overlaps it (copied into *out at close).
** LM_RESULT_ALIGNED: the kernel reads element i of an input only before it writes element i, so an
** input with out's very layout is no obstacle. LM_RESULT_CONTIGUOUS: work must be contiguous.
** LM_RESULT_APART: work is new, for what may fail once it has begun to write. */
#define LM_RESULT_ALIGNED 1
#define LM_RESULT_CONTIGUOUS 2
#define LM_RESULT_APART 4
typedef struct {
    luma_tensor *out;
    luma_tensor work;
    bool owned; /* work is new: moves to out, or is copied and released */
} lm_result;
luma_status lm_result_open(luma_state *S, lm_result *r, luma_tensor *out, lm_device *device,
                           luma_dtype dtype, int ndim, const int64_t *shape,
                           const luma_tensor *const *inputs, int ninputs, int flags);
luma_status lm_result_close(luma_state *S, lm_result *r, luma_status status);

/* The same for values and positions, or others, of one shape: both results or neither. */
typedef struct {
    lm_result values, positions;
    bool fresh; /* values are new */
} lm_pair;
luma_status lm_pair_open(luma_state *S, lm_pair *p, luma_tensor outs[2], const luma_tensor *x,
                         int ndim, const int64_t *shape); /* of x's dtype and int64 */
luma_status lm_pair_open_of(luma_state *S, lm_pair *p, luma_tensor outs[2], const luma_tensor *x,
                            luma_dtype first, luma_dtype second, int ndim, const int64_t *shape);
luma_status lm_pair_close(luma_state *S, lm_pair *p, luma_status status);

/* An error unless all real tensors are on one device (0-d CPU tensors and numbers go anywhere);
** *device is that one. */
luma_status lm_same_device(luma_state *S, const luma_tensor *const *xs, int n, lm_device **device);
/* dst[...] = src, which is broadcast and cast; any layouts; overlap behaves as if src were copied
** first. Checks offset and extent against both storages before a byte moves. (copy.c) */
luma_status lm_copy(luma_state *S, luma_tensor *dst, const luma_tensor *src);
luma_status lm_fill(luma_state *S, luma_tensor *dst, luma_scalar value);
/* An error unless dtype holds the number exactly: integers must; floats round; bool asks whether it
** is zero. (copy.c) */
luma_status lm_number_check(luma_state *S, int argument, luma_scalar value, luma_dtype dtype);
/* The result x in dtype: shared when it already has it. (copy.c) */
luma_status lm_cast(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype);
/* *out is x as it counts where operands meet in dtype: integers that meet small floats are rounded to
** those before anything is computed. Else a share of x, for what kernels compute in loses nothing. A
** dim that x repeats along stays so. (copy.c) */
luma_status lm_meet(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype);
/* Whether lm_meet has anything to do. */
static inline bool lm_meets_rounded(const luma_tensor *x, luma_dtype dtype) {
    return x->storage && lm_dtypes[dtype].compute != dtype && lm_dtype_is_int(x->dtype);
}
/* luma_matmul, but sums of small floats are given as they add up, not rounded. (matmul.c) */
luma_status lm_matmul_wide(luma_state *S, luma_tensor *out, const luma_tensor *a,
                           const luma_tensor *b);
/* The one element of a 0-d or one-element tensor on the host. */
luma_status lm_item(luma_state *S, const luma_tensor *x, luma_scalar *out);
/* Runs an elementwise row; ins may hold weak numbers. (map.c) */
luma_status lm_map_call(luma_state *S, lm_op op, luma_tensor *out, int nin,
                        const luma_tensor *const *ins, const luma_scalar *params);
luma_status lm_map_inplace(luma_state *S, lm_op op, luma_tensor *self, int nin,
                           const luma_tensor *const *ins, const luma_scalar *params);

#endif
