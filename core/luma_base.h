/* luma_base.h -- the public C API but for its operations: types, states, tensors, calls by name, files,
** memory. Part of luma.h, whose installed form has it in it. */
#ifndef luma_base_h
#define luma_base_h

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Formats of quantised blocks: GGML's, see luma_quantize_blocks. */
typedef enum { LUMA_Q8_0, LUMA_Q4_0, LUMA_NQUANT } luma_quant_format;

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

/* ---- operations by name ---------------------------------------------------------------------
** For what loops over operations or reads their names: luma_describe lists them, luma_call runs one.
** Parameters are those of its signature, "x, dim:dim?, {keepdim:bool}": in order, those in braces by
** name only. Types: none is a tensor; dtype, device a text; operand a tensor or a number; index a tensor of integers; mask
** one of bool; tensors several; dim, newdim, position, int an integer; number; bool; dims, shape, list,
** sizes, padding a list of integers, or one; text, or a|b (one of these words), and padding too, a text. `?` may be left out. Reductions without dims take all. */
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
** true or false (equal), a tensor to write into; 2 for pairs (sort), 3 for unique, whose results that
** were not asked for stay LUMA_NEW. What is true or false becomes a
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
/* A dtype, as "float32" or "f32", a device, or a word such as a mode. */
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

/* ---- programs of elementwise operations ------------------------------------------------------ */

/* Rows of ops.def that are elementwise, put together once and run in one pass over the inputs, with
** nothing between the rows in memory: x * sigmoid(y) reads x and y and writes the result. Dtypes,
** shapes and bits are those of the rows called one after the other; so are the errors. */
typedef struct luma_program luma_program;
/* Values are numbered: 0 .. ninputs - 1 are the inputs. Free it with luma_program_free. */
LUMA_API luma_status luma_program_new(luma_state *S, luma_program **out, int ninputs);
LUMA_API void luma_program_free(luma_program *p); /* NULL is nothing */
/* *value becomes the number of a value that the program makes: a weak number, */
LUMA_API luma_status luma_program_number(luma_state *S, luma_program *p, luma_scalar number,
                                         int *value);
/* or an elementwise operation over n values; the numbers of clamp and affine are values too, -1
** where they are absent. */
LUMA_API luma_status luma_program_row(luma_state *S, luma_program *p, const char *name, int n,
                                      const int *values, int *value);
/* out: one value, for these inputs: tensors of any dtype and layout that broadcast, or numbers. One
** run of a program at a time. */
LUMA_API luma_status luma_program_run(luma_state *S, luma_tensor *out, luma_program *p, int value,
                                      const luma_tensor *const *inputs);

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
