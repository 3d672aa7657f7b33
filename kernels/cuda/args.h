/* args.h -- the one parameter of every CUDA kernel, by family; shared by host and device. Plain
** structs of fixed-size members, so that both sides lay them out alike. C, C++ and CUDA.
** Layer: kernels. */
#ifndef lm_cuda_args_h
#define lm_cuda_args_h

#include "bits.h"

#define LM_WALK_DIMS 8 /* LUMA_MAX_DIMS, which the host checks */

/* Kinds of the storage dtypes, for #if; as LM_KIND of words.h for compute types. */
#define LM_STORED_b8 0
#define LM_STORED_u8 1
#define LM_STORED_i8 2
#define LM_STORED_i16 2
#define LM_STORED_i32 2
#define LM_STORED_u32 1
#define LM_STORED_i64 2
#define LM_STORED_f8 3
#define LM_STORED_f16 3
#define LM_STORED_bf16 3
#define LM_STORED_f32 3
#define LM_STORED_f64 3
/* The token of the type that a stored dtype is computed in. */
#define LM_COMPUTED_b8 b8
#define LM_COMPUTED_u8 u8
#define LM_COMPUTED_i8 i8
#define LM_COMPUTED_i16 i16
#define LM_COMPUTED_i32 i32
#define LM_COMPUTED_u32 u32
#define LM_COMPUTED_i64 i64
#define LM_COMPUTED_f8 f32
#define LM_COMPUTED_f16 f32
#define LM_COMPUTED_bf16 f32
#define LM_COMPUTED_f32 f32
#define LM_COMPUTED_f64 f64
#define LM_OF_(prefix, token) prefix##token
#define LM_OF(prefix, token) LM_OF_(prefix, token)

/* Division of n < 2^31 by a constant as multiplication and shift: n / divisor =
** (mulhi(n, multiplier) + n) >> shift (Granlund and Montgomery, Division by invariant integers
** using multiplication, 1994). */
typedef struct {
    uint32_t divisor, multiplier, shift;
} lm_divisor;

/* A walk over n elements in row-major order of at most LM_WALK_DIMS dims, the last one fastest.
** Where `wide` is 0, n and every byte offset of every operand lie within +-2^31 and size holds the
** dims as divisors; where it is 1, sizes and offsets are 64 bit. Dims are merged before. */
typedef struct {
    int64_t n;
    int32_t ndim;
    int32_t wide;
    lm_divisor size[LM_WALK_DIMS];
    int64_t wide_size[LM_WALK_DIMS];
} lm_walk;

/* What went wrong at the smallest position of those that a launch counted, in device memory; code 0:
** nothing. The host clears it when it has raised the error. */
typedef enum {
    LM_FAULT_NONE,
    LM_FAULT_ZERO,     /* integer division by zero: position of the element, row-major */
    LM_FAULT_NEGATIVE, /* negative power of an integer or shift count */
    LM_FAULT_INDEX /* an index out of range: position in the index tensor, its value, the size */
} lm_fault_code;
typedef struct {
    int32_t code; /* lm_fault_code */
    int32_t op;   /* lm_op */
    int32_t argument;
    int32_t lock;     /* of the threads that write */
    /* int64_t in the type of CUDA's atomics. position: 0-based, row-major in the shape walked */
    unsigned long long position, value, size;
} lm_fault;

/* Every element of y, contiguous, becomes `element`. bytes of an element: 1, 2, 4, 8. */
typedef struct {
    void *y;
    uint64_t n, element;
} lm_args_fill;

/* c (m, n) = a (m, k) b (k, n) at every position of the batch dims: elements of one dtype in any
** layout. */
typedef struct {
    const void *a, *b;
    void *c, *sums; /* sums, unless NULL: (pieces, batch, m, n) sums instead of c, contiguous */
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column; /* strides in elements */
    /* job = ((batch * pieces + piece) * tiles_m + tile) * tiles_n + tile; a piece is `piece` values
    ** of k, 2^30 at most */
    int64_t jobs, tiles_m, tiles_n, pieces, piece;
    int32_t a_along, b_along; /* values of k lie closer than rows of a, columns of b */
    lm_walk batch;
    int64_t a_batch[LM_WALK_DIMS], b_batch[LM_WALK_DIMS], c_batch[LM_WALK_DIMS]; /* bytes */
} lm_args_gemm;

/* Element i of c, as the walk goes, becomes the sum of what lies walk.n apart from i on. */
typedef struct {
    const void *sums;
    void *c;
    int64_t pieces;
    lm_walk walk;
    int64_t c_stride[LM_WALK_DIMS]; /* bytes */
} lm_args_gemm_sum;

/* How the threads of a block share lines (the elements behind one result, or along one scan): 2^lanes
** threads work on a line, 2^apart threads lie from one to the next. All lanes of a line are in one
** warp, or lanes + apart is the whole block. */
typedef struct {
    uint32_t lanes, apart;
} lm_lanes;

/* A reduction: one line of `reduced` for each place of `kept`. Strides in bytes. */
typedef struct {
    const void *x;
    void *out;       /* of argmax and such: values, or NULL */
    void *positions; /* int64, or NULL */
    /* Where lines are cut into chunks: per line and chunk a word of 8 bytes, then as many second
    ** words. NULL: results go to out. */
    void *parts;
    int64_t chunk, chunks;
    lm_lanes group;
    int32_t vectors; /* a line lies without gaps */
    int32_t least;   /* the least is wanted, not the greatest; all, not any */
    int32_t op;      /* LM_MEAN, LM_VAR or LM_STD */
    int32_t out_dtype;
    int64_t index_base;
    double freedom; /* what squares are divided by */
    lm_walk kept, reduced;
    int64_t kept_x[LM_WALK_DIMS], kept_out[LM_WALK_DIMS], kept_positions[LM_WALK_DIMS];
    int64_t reduced_x[LM_WALK_DIMS];
} lm_args_reduce;
enum { LM_MEAN, LM_VAR, LM_STD };

#endif
