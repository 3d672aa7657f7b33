/* device.h -- a backend's whole duty: one table of slots per device kind. core calls nothing else
** of a device; a NULL slot means "unsupported" and is the answer of supports. Layer: core. */
#ifndef lm_device_h
#define lm_device_h

#include "iter.h"
#include "layout.h"
#include "storage.h"
#include "window.h"

typedef struct lm_cache lm_cache;
struct lm_fused;

/* A reduction. out has the rank of x with size 1 at the reduced dims (kept); positions likewise for
** max and min with positions (storage NULL: not wanted); of var and std it is the mean. x is any view. */
typedef struct {
    lm_op op;          /* a REDUCE row, max or min */
    uint32_t dims;     /* bit d: dim d of x is reduced */
    double correction; /* of var and std; of norm its p */
    luma_tensor out, positions, x;
} lm_reduce;

/* Results along a dim that take from every element before them. positions: of LM_SCAN_MAX and MIN,
** int64, the first of equals. */
typedef enum {
    LM_SCAN_SUM,
    LM_SCAN_SOFTMAX,
    LM_SCAN_LOG_SOFTMAX,
    LM_SCAN_PROD,
    LM_SCAN_MAX,
    LM_SCAN_MIN,
    LM_SCAN_LOGSUMEXP
} lm_scan_kind;
typedef struct {
    lm_scan_kind kind;
    int dim;
    int index_base;
    luma_tensor out, positions, x;
} lm_scan;

/* Lines made of the last `along` dims (1 or 2) of x: the mean is taken off (not of rms), then they
** are divided by the root of their mean square + eps; LM_NORMALIZE_AFFINE leaves them. Then y * weight
** + bias. x and out have one shape, of floats of one dtype; out is contiguous, the last dim of x
** has stride 1 or size 1; there are elements. weight and bias (storage NULL: none) have the shape
** and the same strides, 0 or 1 along the last dim, of float64 if x has it, else of float32. */
typedef enum { LM_NORMALIZE_LAYER, LM_NORMALIZE_RMS, LM_NORMALIZE_AFFINE } lm_normalize_kind;
typedef struct {
    lm_normalize_kind kind;
    int along;
    double eps;
    luma_tensor out, x, weight, bias;
} lm_normalize;

/* Pairs (a, b) along the last dim of x, halves of it or neighbours, become (a cos - b sin, a sin +
** b cos). out is contiguous; cos and sin have the shape of the pairs and one layout, the last dim
** with stride 1, of float64 if x has it, else of float32. */
typedef struct {
    bool interleaved;
    luma_tensor out, x, cos, sin;
} lm_rope;

/* out (..., l, ev) = softmax(q (..., l, e) k (..., s, e)^T * scale + mask) v (..., s, ev): one rank,
** batch dims expanded, any strides, floats of one dtype; s >= 1, there are results. mask (..., l, s):
** storage NULL: none; bool: -inf where false; else added, float64 if q is, else float32. causal:
** query i sees keys 0 .. i. A query that sees none gets NaN. */
typedef struct {
    bool causal;
    double scale;
    luma_tensor out, q, k, v, mask;
} lm_attention;

/* Elements at places that index tensors decide. shape is walked in row-major order; duplicates are
** written or added in that order too. Every index is checked before the first write
** (lm_index_fail); what is written overlaps nothing that is read. */
typedef enum {
    LM_INDEX_READ,  /* plain = indexed */
    LM_INDEX_WRITE, /* indexed = plain */
    LM_INDEX_ADD,   /* indexed += plain; wraps integers, not for bool and 8- or 16-bit floats */
    LM_INDEX_MUL,   /* indexed *= plain; likewise */
    LM_INDEX_MAX,   /* the greater of indexed and plain, NaN first; not for 8- or 16-bit floats */
    LM_INDEX_MIN    /* the lesser; likewise */
} lm_index_kind;
/* A value v of index, index_base <= v < index_base + size, moves the place in `indexed` by
** (v - index_base) / divisor % modulus * step elements. */
typedef struct {
    luma_tensor index; /* any integer dtype, any view */
    /* of index along the walked dims, elements; 0 where it repeats */
    int64_t stride[LUMA_MAX_DIMS];
    int64_t size, step, divisor, modulus;
    int argument; /* of the operation, for the message */
    bool known;   /* the same index and size as in the part before */
} lm_index_part;
typedef struct {
    lm_op op; /* for messages of later; LM_NOPS: none */
    lm_index_kind kind;
    int index_base;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
    luma_tensor plain; /* its layout has the shape */
    /* Same dtype. Stride 0 in the dims where only indices decide; in the others different positions
    ** are different elements. */
    luma_tensor indexed;
    /* What is written is of no use after a failure: indices may be checked on the way. */
    bool fresh;
    int n;
    lm_index_part parts[LUMA_MAX_DIMS];
} lm_index;

/* Windows over three spatial dims. Tensors are (n, c, d, h, w), any views; none is empty, and every
** window has an element. */
typedef enum {
    LM_POOL_MAX, /* of any dtype; NaN is the greatest, of equals the first is taken */
    LM_POOL_AVG  /* of floats, summed in double */
} lm_pool_op;
typedef struct {
    lm_pool_op op;
    int index_base;
    lm_window window[3];
    bool padded;     /* averages count the padding */
    int64_t divisor; /* of sums; 0: the number of elements */
    /* positions: int64, in the plane (d, h, w) in row-major order; storage NULL: not wanted */
    luma_tensor out, positions, x;
} lm_pooling;

typedef struct {
    int dim;
    bool descending;
    int64_t from, k; /* k of each row are wanted, from this place of the order on, counted from 0 */
    int index_base;
    luma_tensor values, positions, x; /* values or positions: storage NULL when not wanted */
} lm_sort;

/* How many elements of a row of `sorted` are below each value of that row, or (right) not above it,
** plus index_base. All contiguous, of one dtype that kernels are written for; NaN is the greatest. */
typedef struct {
    bool right;
    int index_base;
    int64_t rows, n, m;              /* sorted: (rows, n); values and out: (rows, m) */
    luma_tensor out, sorted, values; /* out: int64 */
} lm_search;

typedef enum {
    LM_RANDOM_UNIFORM,
    LM_RANDOM_NORMAL,
    LM_RANDOM_INTEGER, /* lo .. hi */
    LM_RANDOM_UP_TO    /* element i: 0 .. i; what a shuffle needs, of the CPU device only */
} lm_random_kind;
typedef struct lm_random {
    lm_random_kind kind;
    luma_tensor out;       /* contiguous */
    uint64_t seed, offset; /* offset counts 32-bit words */
    int64_t lo, hi;        /* inclusive; 0 and 0 for LM_RANDOM_UP_TO */
    int64_t words;         /* that an element takes */
    int bits;              /* that a uniform number keeps of its word */
} lm_random;

/* out (N, O, D, H, W) of x (N, C, D', H', W') and w (O, C / groups, KD, KH, KW): position o meets tap
** k at position o * stride + k * dilation - before of x, which is 0 outside of it. before may be
** negative, sizes of w may be 0. x, w and bias have any number dtypes that meet in out's; any layouts.
** Reads nothing of out. */
typedef struct {
    luma_tensor out, x, w;
    luma_tensor bias; /* (O); storage NULL: none */
    int64_t stride[3], dilation[3], before[3], groups;
} lm_conv;

/* Quantised blocks (quant.h). All tensors are contiguous and none is empty: blocks uint8 (..., row
** bytes), values float32 (..., row elements). */
typedef enum {
    LM_QUANT_MAKE,  /* blocks = values */
    LM_QUANT_READ,  /* values = blocks */
    LM_QUANT_MATMUL /* out (m, n) = values (m, k) times the transpose of blocks (n, k) */
} lm_quant_kind;
typedef struct {
    lm_quant_kind kind;
    luma_quant_format format;
    luma_tensor blocks, values, out; /* out: float32, of LM_QUANT_MATMUL */
} lm_quant;

typedef struct lm_device lm_device;
typedef struct {
    const char *kind; /* "cpu", "cuda" */
    /* raw memory under the cache: whole segments. NULL when there is none. */
    void *(*raw_alloc)(lm_device *d, size_t nbytes);
    void (*raw_free)(lm_device *d, void *p, size_t nbytes);
    /* Bytes of the whole device; false when they cannot be known. NULL: never. */
    bool (*memory_info)(lm_device *d, size_t *unused, size_t *total);
    /* Events of a stream of d, for the cache; all NULL where work ends before calls return. record:
    ** behind what the stream was given; waits for it instead and says NULL when it makes none. done
    ** does not wait. */
    void *(*event_record)(lm_device *d, void *stream);
    bool (*event_done)(lm_device *d, void *event);
    void (*event_wait)(lm_device *d, void *event);
    void (*event_free)(lm_device *d, void *event);
    /* bytes between host and device; (cpu: memcpy) */
    luma_status (*upload)(luma_state *S, lm_device *d, void *dst, const void *src, size_t nbytes);
    luma_status (*download)(luma_state *S, lm_device *d, void *dst, const void *src, size_t nbytes);
    /* bytes to another device of this kind; NULL: they go by way of the host */
    luma_status (*send)(luma_state *S, lm_device *d, const void *src, lm_device *to, void *dst,
                        size_t nbytes);
    luma_status (*synchronize)(luma_state *S, lm_device *d);
    /* Makes the device ready; called whenever it is asked for by name. NULL: always ready. */
    luma_status (*open)(luma_state *S, lm_device *d);
    /* Gives up ctx; the cache has returned its memory. NULL: nothing to do. */
    void (*close)(lm_device *d);
    /* Releases the storages that the backend keeps; before the cache closes. (optional) */
    void (*settle)(lm_device *d);
    /* Releases those that it can do without; before the cache is emptied. short_of: for lack of
    ** memory, so that they are not asked for again at once. (optional) */
    void (*trim)(lm_device *d, bool short_of);
    /* Why the last raw_alloc failed, when it was not for lack of memory; else NULL. NULL: never. */
    const char *(*raw_problem)(lm_device *d);
    /* One number as an element of dtype, as casts do (rounds, saturates, wraps), and back. Host
    ** memory; slots of the CPU device only. */
    void (*encode)(luma_dtype dtype, luma_scalar number, void *element);
    luma_scalar (*decode)(luma_dtype dtype, const void *element);
    /* The kernel of an elementwise row in a compute dtype; a slot of the CPU device only. */
    lm_map_fn *(*kernel)(lm_op op, luma_dtype dtype);
    /* Does the row run in this compute dtype? */
    bool (*supports)(lm_device *d, lm_op op, luma_dtype dtype);
    /* families; tensors are on the device, shapes and dtypes already checked by core */
    luma_status (*map)(luma_state *S, lm_device *d, lm_map *m);
    /* Several rows in one pass (fused.h). *done stays false, and nothing is written, where the device
    ** cannot; the status counts otherwise. */
    luma_status (*fused)(luma_state *S, lm_device *d, struct lm_fused *f, bool *done);
    /* dst and src have one shape; any layouts, any dtypes; no overlap. core drops dims of size 1,
    ** orders dims by the strides of dst, merges those that both walk as one, for fill too. */
    luma_status (*copy)(luma_state *S, lm_device *d, const luma_tensor *dst,
                        const luma_tensor *src);
    /* every element of dst becomes *element (dst's dtype, host memory) */
    luma_status (*fill)(luma_state *S, lm_device *d, const luma_tensor *dst, const void *element);
    luma_status (*reduce)(luma_state *S, lm_device *d, const lm_reduce *r);
    luma_status (*scan)(luma_state *S, lm_device *d, const lm_scan *s);
    luma_status (*normalize)(luma_state *S, lm_device *d, const lm_normalize *n);
    luma_status (*attention)(luma_state *S, lm_device *d, const lm_attention *a);
    /* Bytes of a head of q or v, as computed, that attention takes at most; core composes the rest. */
    int64_t attention_head;
    luma_status (*rope)(luma_state *S, lm_device *d, const lm_rope *r);
    luma_status (*sort)(luma_state *S, lm_device *d, const lm_sort *s);
    luma_status (*search)(luma_state *S, lm_device *d, const lm_search *s);
    luma_status (*index)(luma_state *S, lm_device *d, const lm_index *i);
    luma_status (*pooling)(luma_state *S, lm_device *d, const lm_pooling *p);
    /* x: bool, contiguous. count: how many hold. positions: int64 (count, ndim), contiguous */
    luma_status (*count_nonzero)(luma_state *S, lm_device *d, const luma_tensor *x, int64_t *count);
    luma_status (*nonzero)(luma_state *S, lm_device *d, luma_tensor *positions,
                           const luma_tensor *x, int index_base);
    /* out (..., m, n), a (..., m, k), b (..., k, n): same rank, batch dims expanded, any strides;
    ** a and b have any number dtypes that meet in out's (k may be 0: zeros) */
    luma_status (*matmul)(luma_state *S, lm_device *d, const luma_tensor *out, const luma_tensor *a,
                          const luma_tensor *b);
    luma_status (*conv)(luma_state *S, lm_device *d, const lm_conv *v);
    luma_status (*random)(luma_state *S, lm_device *d, const lm_random *r);
    luma_status (*quant)(luma_state *S, lm_device *d, const lm_quant *q);
} lm_device_ops;

struct lm_device {
    const lm_device_ops *ops;
    char name[12]; /* "cpu", "cuda:0" */
    int index;
    lm_cache *cache;
    bool cache_busy; /* somebody is in the cache: its owner, so many calls deep, or another state */
    int cache_depth;
    void *stream; /* of the backend, on which all work of the state on this device is queued */
    /* Of devices that watch over memory, NULL otherwise: the block at p begins to live or is dead,
    ** in the order of the stream. */
    void (*on_block)(lm_device *d, void *p, size_t nbytes, bool live, void *stream);
    int64_t live;          /* bytes of storages that live */
    int64_t soft_limit;    /* see luma_state; INT64_MAX: none */
    uint64_t seed, offset; /* random numbers: position in words */
    void *ctx;             /* the backend's own */
};

/* Registered by luma_open, the CPU first. */
luma_status lm_device_register(luma_state *S, const lm_device_ops *ops, const char *name, int index,
                               void *ctx);
void lm_device_close(luma_state *S, lm_device *d);
/* Seeds the generator as luma_manual_seed did last, else from the system's entropy. (rng.c) */
void lm_rng_open(const luma_state *S, lm_device *d);
/* Fills x (int64, on the CPU) with whole numbers 0 .. i for element i, drawn from the generator of
** any device. (rng.c) */
luma_status lm_rng_up_to(luma_state *S, luma_tensor *x, lm_device *generator);
/* "cpu", "cuda" (the current one), "cuda:1"; NULL is the default device. The error says what there
** is. */
luma_status lm_device_find(luma_state *S, const char *name, lm_device **out);

static inline lm_device *lm_cpu(luma_state *S) {
    return S->devices[0];
}

/* Whether the device has a kernel of an elementwise row for elements of this dtype. */
static inline bool lm_supports(lm_device *d, lm_op op, luma_dtype dtype) {
    return d->ops->supports && d->ops->supports(d, op, (luma_dtype)lm_dtypes[dtype].compute);
}
/* The failure of a call whose slot is NULL: "sort of float32 is not supported on cuda:0". */
luma_status lm_unsupported(luma_state *S, const lm_device *d, const char *what, luma_dtype dtype);
/* Calls a slot; where it is NULL, fails as above. */
#define LM_SLOT(S, d, slot, what, dtype, ...)                                                      \
    ((d)->ops->slot ? (d)->ops->slot((S), (d), __VA_ARGS__)                                        \
                    : lm_unsupported((S), (d), (what), (dtype)))

#endif
