/* luma.h -- the public C API of the tensor core. C11, usable from C++; no Lua, no CUDA.
**
** Conventions
**   luma_state *S comes first. A call returns a status; the message lives in S (luma_message).
**   Dims and positions are 0-based, negative dims count from the end.
**   Outputs: `luma_tensor *out` is either LUMA_NEW (all zero: the call makes a new tensor) or a
**   live tensor of exactly the right shape, dtype and device, into which the result is written (it
**   may overlap the inputs). On failure *out is as it was.
**   A luma_tensor is a value that owns one reference to its storage: release each with
**   luma_release.
**   Numbers stand for tensors where luma_number/luma_integer/luma_boolean values are passed: they
**   own nothing and are weak in promotion. */
#ifndef luma_h
#define luma_h

#include "luma_base.h"
#include "luma_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LUMA_API __attribute__((visibility("default")))
#else
#define LUMA_API
#endif

#define LUMA_VERSION "0.1.0"
#define LUMA_MAX_DIMS 8

typedef enum {
    LUMA_OK,
    LUMA_ERR_ARGUMENT,    /* a value that makes no sense */
    LUMA_ERR_SHAPE,       /* shapes that do not fit */
    LUMA_ERR_DTYPE,       /* a dtype that the operation does not take */
    LUMA_ERR_DEVICE,      /* tensors on two devices, or a device that is not there */
    LUMA_ERR_INDEX,       /* an index out of range */
    LUMA_ERR_ZERO,        /* integer division by zero */
    LUMA_ERR_MEMORY,      /* out of memory */
    LUMA_ERR_FILE,        /* a file that cannot be read or written, or is malformed */
    LUMA_ERR_INTERRUPTED, /* the interrupt flag was raised */
    LUMA_ERR_UNSUPPORTED  /* no kernel for this operation, dtype and device */
} luma_status;

typedef enum {
    LUMA_BOOL,
    LUMA_UINT8,
    LUMA_INT8,
    LUMA_INT16,
    LUMA_INT32,
    LUMA_UINT32,
    LUMA_INT64,
    LUMA_FLOAT8_E4M3,
    LUMA_FLOAT16,
    LUMA_BFLOAT16,
    LUMA_FLOAT32,
    LUMA_FLOAT64,
    LUMA_NDTYPES
} luma_dtype;

typedef struct luma_state luma_state;
typedef struct lm_storage lm_storage;

/* A plain value. Strides and offset count elements; strides may be negative or zero. */
typedef struct luma_layout {
    int32_t ndim;
    int64_t shape[LUMA_MAX_DIMS];
    int64_t stride[LUMA_MAX_DIMS];
    int64_t offset;
} luma_layout;

/* A number with its kind: what a Lua number or boolean is to an operation. */
typedef enum { LUMA_NOT_A_NUMBER, LUMA_IS_BOOL, LUMA_IS_INT, LUMA_IS_FLOAT } luma_number_kind;
typedef struct luma_scalar {
    luma_number_kind kind;
    union {
        int64_t i; /* LUMA_IS_BOOL (0 or 1), LUMA_IS_INT */
        double d;  /* LUMA_IS_FLOAT */
    } u;
} luma_scalar;

/* A tensor: layout over storage, or (storage NULL, number.kind set) a weak number. */
typedef struct luma_tensor {
    lm_storage *storage;
    luma_dtype dtype;
    luma_scalar number;
    luma_layout layout;
} luma_tensor;

#ifdef __cplusplus
#define LUMA_NEW luma_tensor()
#else
#define LUMA_NEW ((luma_tensor){0})
#endif

LUMA_API luma_tensor luma_number(double value);
LUMA_API luma_tensor luma_integer(int64_t value);
LUMA_API luma_tensor luma_boolean(bool value);

/* ---- state ---------------------------------------------------------------------------------- */

/* A state with the CPU, and with the CUDA devices that there are, which are looked for when one is
** first named (LUMA_CUDA=off: none; LUMA_CUDA=emulate: an emulated one). NULL when there is no
** memory, or when LUMA_CPU names a level that the machine lacks. A state serves one thread at a
** time; states are independent. */
LUMA_API luma_state *luma_open(void);
/* The same. message (NULL: not wanted) says in at most `size` bytes why the result is NULL. */
enum { LUMA_OPEN_NO_CUDA = 1 /* the CPU alone */ };
LUMA_API luma_state *luma_open_with(unsigned flags, char *message, size_t size);
LUMA_API void luma_close(luma_state *S); /* tensors must be released before; NULL is nothing */
/* The message of the last failure, "" when there was none. Valid until the next call with S. */
LUMA_API const char *luma_message(const luma_state *S);
/* Which argument of the call was wrong: 1 is the first after outputs; 0 when none is to blame. */
LUMA_API int luma_error_argument(const luma_state *S);
/* Long operations poll *flag and stop with LUMA_ERR_INTERRUPTED while it is not 0. May be NULL. */
LUMA_API void luma_set_interrupt(luma_state *S, volatile int *flag);
/* 0 (the default) or 1: how positions are counted in index tensors and messages. */
LUMA_API void luma_set_index_base(luma_state *S, int base);
/* The dtype of float results of integers; float32 at first. Must be a float dtype. */
LUMA_API luma_status luma_set_default_dtype(luma_state *S, luma_dtype dtype);
LUMA_API luma_dtype luma_default_dtype(const luma_state *S);
/* The device of new tensors for which none is named: the CPU at first. */
LUMA_API luma_status luma_set_default_device(luma_state *S, const char *device);
LUMA_API const char *luma_default_device(const luma_state *S);
/* What "cuda" without a number means: "cuda:0" at first. */
LUMA_API luma_status luma_set_current_device(luma_state *S, const char *device);
LUMA_API void luma_set_num_threads(int n); /* per process; 1 to 256 */
LUMA_API int luma_num_threads(void);

/* ---- tensors -------------------------------------------------------------------------------- */

LUMA_API void luma_release(luma_state *S, luma_tensor *x); /* leaves LUMA_NEW behind */
/* *out shares x's storage with the same layout: one more reference. */
LUMA_API void luma_share(luma_tensor *out, const luma_tensor *x);
LUMA_API int64_t luma_numel(const luma_tensor *x);
/* "cpu", "cuda:0"; NULL of a number or LUMA_NEW. */
LUMA_API const char *luma_device(const luma_tensor *x);
/* The first element, in the memory of x's device; strides tell where the others are. It stays as long
** as a tensor holds the storage. What is written through it on a CUDA device must wait for luma's
** work on that device, which luma_synchronize does. NULL of a number or LUMA_NEW. */
LUMA_API void *luma_data(const luma_tensor *x);
/* Waits for the work that was queued on a device, and returns its first error. */
LUMA_API luma_status luma_synchronize(luma_state *S, const char *device);
LUMA_API bool luma_is_contiguous(const luma_tensor *x);
LUMA_API const char *luma_dtype_name(luma_dtype dtype);
LUMA_API size_t luma_dtype_size(luma_dtype dtype);

/* device: "cpu", "cuda:0", ...; NULL is the default device. Contents are not set. */
LUMA_API luma_status luma_empty(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                                luma_dtype dtype, const char *device);
LUMA_API luma_status luma_full(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                               luma_scalar value, luma_dtype dtype, const char *device);
/* dtype LUMA_NDTYPES: the default float dtype, or, of a range of integers, int64. */
#define LUMA_MAKE(name, ...)                                                                       \
    LUMA_API luma_status luma_##name(luma_state *S, luma_tensor *out, __VA_ARGS__,                 \
                                     luma_dtype dtype, const char *device)
LUMA_MAKE(zeros, int ndim, const int64_t *shape);
LUMA_MAKE(ones, int ndim, const int64_t *shape);
LUMA_MAKE(eye, int64_t n, int64_t m); /* n x m, 1 on the diagonal */
/* first, first + step, ... up to last, which is included; luma_integer(1).number is a scalar. */
LUMA_MAKE(range, luma_scalar first, luma_scalar last, luma_scalar step);
LUMA_MAKE(linspace, double first, double last, int64_t n);              /* both included */
LUMA_MAKE(logspace, double first, double last, int64_t n, double base); /* base to these powers */
/* In the shape of x; dtype LUMA_NDTYPES and device NULL are those of x. */
LUMA_MAKE(empty_like, const luma_tensor *x);
LUMA_MAKE(full_like, const luma_tensor *x, luma_scalar value);
/* Wraps host memory of nbytes without copying; deleter(ctx) runs when the last view is released. */
LUMA_API luma_status luma_wrap(luma_state *S, luma_tensor *out, void *data, size_t nbytes, int ndim,
                               const int64_t *shape, luma_dtype dtype, void (*deleter)(void *),
                               void *ctx);
/* DLPack (https://dmlc.github.io/dlpack): tensors to and from other libraries, in one memory; the
** structs are those of its dlpack.h, which a program includes where it looks inside. Memory is that
** of the CPU or of CUDA devices; any strides.
** to: *out holds one reference to x's storage. Whoever takes it calls its deleter, once: in any
** thread, at any time, even after luma_close, which then leaves to the last of them what they use.
** The work that was queued on x's device is done.
** from: takes m, whose deleter is called when the last view of *out (LUMA_NEW before) is released and
** what was queued on its device is done; what others queued there must be done before. On failure m
** is the caller's as it was. A read-only tensor is copied. A tensor that luma gave out comes back as
** it was; one that was taken is LUMA_ERR_ARGUMENT. LUMA_ERR_DTYPE, LUMA_ERR_DEVICE: luma has none like
** it. */
struct DLManagedTensor;
struct DLManagedTensorVersioned; /* of versions 1.x */
LUMA_API luma_status luma_to_dlpack(luma_state *S, struct DLManagedTensor **out,
                                    const luma_tensor *x);
LUMA_API luma_status luma_to_dlpack_versioned(luma_state *S, struct DLManagedTensorVersioned **out,
                                              const luma_tensor *x);
LUMA_API luma_status luma_from_dlpack(luma_state *S, luma_tensor *out, struct DLManagedTensor *m);
LUMA_API luma_status luma_from_dlpack_versioned(luma_state *S, luma_tensor *out,
                                                struct DLManagedTensorVersioned *m);
/* Copies all elements in row-major order to or from host memory of exactly nbytes. */
LUMA_API luma_status luma_read(luma_state *S, const luma_tensor *x, void *data, size_t nbytes);
LUMA_API luma_status luma_write(luma_state *S, luma_tensor *x, const void *data, size_t nbytes);

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
LUMA_VIEW(pad, int n, const int64_t *widths, luma_scalar value);
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
LUMA_VIEW(softmax, int64_t dim);
LUMA_VIEW(log_softmax, int64_t dim);

/* Matrix products: a (..., m, k), b (..., k, n) to (..., m, n). */
LUMA_VIEW(matmul, const luma_tensor *b);
LUMA_VIEW(mm, const luma_tensor *b);
LUMA_VIEW(bmm, const luma_tensor *b);
LUMA_VIEW(mv, const luma_tensor *v);
LUMA_VIEW(dot, const luma_tensor *w);

/* Values on the host. */
LUMA_API luma_status luma_equal(luma_state *S, bool *value, const luma_tensor *x,
                                const luma_tensor *y);
LUMA_API luma_status luma_allclose(luma_state *S, bool *value, const luma_tensor *x,
                                   const luma_tensor *y, double rtol, double atol, bool equal_nan);
LUMA_API luma_status luma_item(luma_state *S, const luma_tensor *x, luma_scalar *value);

/* ---- operations by name ---------------------------------------------------------------------
** For what loops over operations or reads their names: luma_describe lists them, luma_call runs one.
** Parameters are those of its signature, "x, dim:dim?, {keepdim:bool}": in order, those in braces by
** name only. Types: none is a tensor; dtype, device a text; operand a tensor or a number; index a tensor of integers; mask
** one of bool; tensors several; dim, newdim, position, int an integer; number; bool; dims, shape, list,
** sizes a list of integers, or one. `?` may be left out. Reductions without dims take all. */
typedef struct luma_op {
    const char *name, *signature;
    const char *formula, *doc; /* in the terms of Lua; formula may be "" */
    bool callable;             /* by luma_call; else luma_wrap or luma_write does it */
    bool in_place;             /* as name_ too */
} luma_op;
/* The i-th operation, from 0; false past the last. */
LUMA_API bool luma_describe(int i, luma_op *out);

typedef enum {
    LUMA_ARG_ABSENT, /* an optional parameter left out */
    LUMA_ARG_TENSOR,
    LUMA_ARG_TENSORS,
    LUMA_ARG_NUMBER,
    LUMA_ARG_LIST,
    LUMA_ARG_TEXT
} luma_arg_kind;
/* What it points at is the caller's and stays until the call returns. */
typedef struct luma_arg {
    luma_arg_kind kind;
    int n;            /* tensors or integers */
    const char *name; /* of the parameter; NULL: the next in order */
    const luma_tensor *tensors;
    const int64_t *list;
    const char *text;
    luma_scalar number;
} luma_arg;

/* Runs the operation `name`, or its in-place form `name_`, which writes into the first tensor and has
** no results. outs: room for results, each LUMA_NEW or, but for lists of tensors (split) and what is
** true or false (equal), a tensor to write into; 2 for pairs (sort). What is true or false becomes a
** luma_boolean. *nouts (may be NULL) is their number. Errors of arguments count in the signature. */
LUMA_API luma_status luma_call(luma_state *S, const char *name, int room, luma_tensor *outs,
                               int *nouts, int nargs, const luma_arg *args);

static inline luma_arg luma_arg_absent(void) {
    luma_arg a;
    a.kind = LUMA_ARG_ABSENT;
    a.n = 0;
    a.name = NULL;
    a.tensors = NULL;
    a.list = NULL;
    a.text = NULL;
    a.number.kind = LUMA_NOT_A_NUMBER;
    a.number.u.i = 0;
    return a;
}
static inline luma_arg luma_arg_tensor(const luma_tensor *x) {
    luma_arg a = luma_arg_absent();
    a.kind = LUMA_ARG_TENSOR;
    a.n = 1;
    a.tensors = x;
    return a;
}
static inline luma_arg luma_arg_tensors(int n, const luma_tensor *xs) {
    luma_arg a = luma_arg_tensor(xs);
    a.kind = LUMA_ARG_TENSORS;
    a.n = n;
    return a;
}
static inline luma_arg luma_arg_int(int64_t value) {
    luma_arg a = luma_arg_absent();
    a.kind = LUMA_ARG_NUMBER;
    a.number.kind = LUMA_IS_INT;
    a.number.u.i = value;
    return a;
}
static inline luma_arg luma_arg_bool(bool value) {
    luma_arg a = luma_arg_int(value);
    a.number.kind = LUMA_IS_BOOL;
    return a;
}
static inline luma_arg luma_arg_float(double value) {
    luma_arg a = luma_arg_int(0);
    a.number.kind = LUMA_IS_FLOAT;
    a.number.u.d = value;
    return a;
}
static inline luma_arg luma_arg_list(int n, const int64_t *list) {
    luma_arg a = luma_arg_absent();
    a.kind = LUMA_ARG_LIST;
    a.n = n;
    a.list = list;
    return a;
}
/* A dtype, as "float32" or "f32", or a device. */
static inline luma_arg luma_arg_text(const char *text) {
    luma_arg a = luma_arg_absent();
    a.kind = LUMA_ARG_TEXT;
    a.text = text;
    return a;
}
/* The parameter of this name: luma_arg_named("keepdim", luma_arg_bool(true)). */
static inline luma_arg luma_arg_named(const char *name, luma_arg a) {
    a.name = name;
    return a;
}

/* Files, chosen by the ending of path: .npy (one tensor), .npz and .safetensors (named tensors).
** Everything in a header is checked before memory is asked for; saving writes a temporary file in
** the same folder and renames it, so a failure leaves the old file. Errors: LUMA_ERR_FILE,
** LUMA_ERR_DTYPE (a dtype that the format or luma lacks), LUMA_ERR_MEMORY. */
typedef struct luma_pair {
    const char *key, *value;
} luma_pair;
typedef struct luma_file {
    int n;
    char **names; /* names[0] is NULL for .npy */
    luma_tensor *tensors;
    int nmetadata;
    luma_pair *metadata; /* .safetensors: its __metadata__ */
    lm_storage *memory;  /* holds all of the above */
} luma_file;
/* The tensors come to the default device. */
LUMA_API luma_status luma_load(luma_state *S, luma_file *out, const char *path);
LUMA_API void luma_close_file(luma_state *S, luma_file *file);
/* names may be NULL for .npy. compressed: .npz entries are deflated. */
LUMA_API luma_status luma_save(luma_state *S, const char *path, int n, const char *const *names,
                               const luma_tensor *xs, bool compressed, int nmetadata,
                               const luma_pair *metadata);

/* ---- memory ---------------------------------------------------------------------------------
** Devices are named "cpu", "cuda" or "cuda:1"; NULL is the default device. A stream is the driver's (CUstream);
** NULL is the device's own, on which luma works. */

/* nbytes from the cache of the device that belong to no tensor, to be used in the order of the
** stream. 0 bytes give NULL. Errors: LUMA_ERR_MEMORY after everything was tried, LUMA_ERR_DEVICE. */
LUMA_API luma_status luma_raw_alloc(luma_state *S, const char *device, size_t nbytes, void **p);
LUMA_API luma_status luma_raw_alloc_with_stream(luma_state *S, const char *device, size_t nbytes,
                                                void *stream, void **p);
/* Gives it back; NULL is nothing. LUMA_ERR_ARGUMENT "invalid device pointer" for what is not from
** luma_raw_alloc, or was given back before. */
LUMA_API luma_status luma_raw_delete(luma_state *S, const char *device, void *p);
/* The allocation of the driver that p lies in, as other processes would be given it. p: in a tensor
** or raw allocation that is in use, else LUMA_ERR_ARGUMENT "invalid device pointer". */
LUMA_API luma_status luma_base_allocation(luma_state *S, const char *device, const void *p,
                                          void **base, size_t *nbytes);
/* Work on a stream of a device that is not that of x uses x: when x is released, its memory serves
** nobody else before the work that the stream has been given until then is done. Memory of others, which
** luma_wrap or DLPack brought, is not waited for: its deleter runs at once. */
LUMA_API luma_status luma_record_stream(luma_state *S, const luma_tensor *x, const char *device,
                                        void *stream);
/* Most bytes that the state reserves from the device; 0: no limit. */
LUMA_API luma_status luma_set_memory_limit(luma_state *S, const char *device, size_t nbytes);
/* Waits for what other streams do with released memory and returns what is unused. */
LUMA_API luma_status luma_empty_cache(luma_state *S, const char *device);

typedef enum {
    LUMA_MEMORY_ALLOC,         /* a tensor or raw allocation: bytes as asked for */
    LUMA_MEMORY_FREE,          /* its release */
    LUMA_MEMORY_FREED,         /* no stream uses it any more: at once, or when its events came */
    LUMA_MEMORY_SEGMENT_ALLOC, /* from the driver */
    LUMA_MEMORY_SEGMENT_FREE,
    LUMA_MEMORY_RETRY, /* the driver had none: the cache is emptied */
    LUMA_MEMORY_OOM    /* in vain */
} luma_memory_kind;
typedef struct luma_memory_event {
    luma_memory_kind kind;
    const char *device;
    uintptr_t address;
    size_t nbytes;
    void *stream;
} luma_memory_event;
/* f is called for every event on every device of S, from within the call that causes it; it must
** not call luma with S. NULL: none. One function for each state. */
typedef void luma_memory_fn(void *ctx, const luma_memory_event *event);
LUMA_API void luma_set_memory_callback(luma_state *S, luma_memory_fn *f, void *ctx);

/* Random numbers (Philox 4x32-10 in cuRAND's order): fill x from the device's generator. */
LUMA_API luma_status luma_manual_seed(luma_state *S, uint64_t seed); /* all devices */
LUMA_API luma_status luma_rand(luma_state *S, luma_tensor *x);       /* [0, 1) */
LUMA_API luma_status luma_randn(luma_state *S, luma_tensor *x);      /* mean 0, variance 1 */
LUMA_API luma_status luma_randint(luma_state *S, luma_tensor *x, int64_t lo, int64_t hi);
/* x (n) of an integer dtype becomes the n numbers from the index base on, in random order. */
LUMA_API luma_status luma_randperm(luma_state *S, luma_tensor *x);
/* 1 with the chance that p (float) holds, else 0; in the dtype of p. */
LUMA_API luma_status luma_bernoulli(luma_state *S, luma_tensor *out, const luma_tensor *p);
/* n positions drawn from each row of weights (m) or (rows, m): (n) or (rows, n), int64. Without
** replacement no position comes twice, and a row needs n weights above 0. */
LUMA_API luma_status luma_multinomial(luma_state *S, luma_tensor *out, const luma_tensor *weights,
                                      int64_t n, bool replacement);
LUMA_API luma_status luma_get_rng_state(luma_state *S, const char *device, uint64_t *seed,
                                        uint64_t *offset);
LUMA_API luma_status luma_set_rng_state(luma_state *S, const char *device, uint64_t seed,
                                        uint64_t offset);

#undef LUMA_VIEW
#undef LUMA_MAKE

#ifdef __cplusplus
}
#endif
#endif
