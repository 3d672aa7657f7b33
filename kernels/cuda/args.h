/* args.h -- the one parameter of every CUDA kernel, by family; shared by host and device. Plain
** structs of fixed-size members, so that both sides lay them out alike. C, C++ and CUDA.
** Layer: kernels. */
#ifndef lm_cuda_args_h
#define lm_cuda_args_h

#include "bits.h"
#include "window.h"

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
/* Whether index_sum joins elements of a stored dtype, 4 or 8 where atomic sums of that size are its too. */
#define LM_SUMS_b8 0
#define LM_SUMS_u8 1
#define LM_SUMS_i8 1
#define LM_SUMS_i16 1
#define LM_SUMS_i32 4
#define LM_SUMS_u32 4
#define LM_SUMS_i64 8
#define LM_SUMS_f8 0
#define LM_SUMS_f16 0
#define LM_SUMS_bf16 0
#define LM_SUMS_f32 1
#define LM_SUMS_f64 1
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
    int32_t lock; /* of the threads that write */
    /* int64_t in the type of CUDA's atomics. position: 0-based, row-major in the shape walked */
    unsigned long long position, value, size;
} lm_fault;

/* ---- elementwise rows and casts (map.h) ---- */

#define LM_MAP_OPERANDS 4 /* the result and up to three inputs */
typedef struct {
    void *p;                      /* NULL: the number */
    int64_t stride[LM_WALK_DIMS]; /* bytes, along the dims of the walk */
    uint64_t number;              /* in the low bits, of the compute type */
    int32_t single;               /* one element serves a whole group */
    int32_t step;                 /* bytes from element to element of the rest */
} lm_map_operand;
/* Operand 0 is written. The walk goes over groups of elements side by side, where `grouped`; then
** the rest follows, in one line. Else over elements. */
typedef struct {
    lm_walk walk;
    int64_t n; /* elements in all */
    int32_t grouped;
    int32_t guard; /* lm_guard: what operand 2 must not be */
    int32_t op;    /* of a fault */
    int32_t unused;
    lm_map_operand operand[LM_MAP_OPERANDS];
    double d[2]; /* numbers of UNARY_P rows, in both forms */
    int64_t i[2];
    lm_fault *fault;
} lm_args_map;

/* ---- pooling (pooling.cu) ---- */

/* One thread for each of the results that the walk goes over: (n, c, d, h, w), none of its dims merged.
** Strides in bytes. */
typedef struct {
    lm_walk walk;
    const void *x;
    void *y;
    int64_t *at; /* NULL: not wanted */
    int64_t x_stride[5], y_stride[LM_WALK_DIMS], at_stride[LM_WALK_DIMS];
    lm_window window[3];
    int64_t divisor; /* 0: what there are */
    int64_t index_base;
    int32_t padded, unused;
} lm_args_pooling;

/* ---- random numbers (random.cu) ---- */

/* n numbers side by side from word `offset` on, by blocks of four words. */
typedef struct {
    void *y;
    const uint32_t *given; /* words from that of the first block on; NULL: made here */
    int64_t n, blocks;
    uint64_t seed, offset;
    int64_t lo;     /* of whole numbers */
    uint64_t range; /* how many there are; 0: 2^64 */
    int32_t wider;  /* by one from element to element */
    int32_t skip;   /* words of a block before the first word of an element */
    int32_t lead;   /* elements that the first block has before the first one */
    int32_t whole;  /* what a block gives can be written as one */
    int32_t bits;   /* that a uniform number keeps of its word */
    int32_t unused;
} lm_args_random;

/* ---- copies (copy.cu, fill.cu) ---- */

/* Elements of 1, 2, 4, 8 or 16 bytes from x to y; strides in bytes. */
typedef struct {
    lm_walk walk;
    const void *x;
    void *y;
    int64_t x_stride[LM_WALK_DIMS], y_stride[LM_WALK_DIMS];
} lm_args_copy;

/* The same where x and y run side by side along different dims, p and q: the walk goes over tiles of
** LM_TURN by LM_TURN elements, which begin at p_stride and q_stride elements from 0. */
#define LM_TURN 32
typedef struct {
    lm_walk walk;
    const void *x;
    void *y;
    int64_t x_stride[LM_WALK_DIMS], y_stride[LM_WALK_DIMS];
    int64_t p_stride[LM_WALK_DIMS], q_stride[LM_WALK_DIMS];
    int64_t np, nq;         /* sizes of the two dims */
    int64_t xp, xq, yp, yq; /* strides along them, bytes */
} lm_args_turn;

/* Every element of y, of 1, 2, 4 or 8 bytes, becomes `element`; strides in bytes. */
typedef struct {
    lm_walk walk;
    void *y;
    int64_t stride[LM_WALK_DIMS];
    uint64_t element;
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
    void *positions; /* int64, or NULL; of var and std the mean */
    /* Where lines are cut into chunks: per line and chunk a word of 8 bytes, then as many second
    ** words. NULL: results go to out. */
    void *parts;
    int64_t chunk, chunks;
    lm_lanes group;
    int32_t vectors; /* a line lies without gaps */
    int32_t least;   /* the least is wanted, not the greatest; all, not any */
    int32_t op;      /* below */
    int32_t out_dtype;
    int64_t index_base;
    double freedom; /* what squares are divided by; of a norm its p */
    lm_walk kept, reduced;
    int64_t kept_x[LM_WALK_DIMS], kept_out[LM_WALK_DIMS], kept_positions[LM_WALK_DIMS];
    int64_t reduced_x[LM_WALK_DIMS];
} lm_args_reduce;
enum {
    LM_MEAN,
    LM_VAR,
    LM_STD,
    LM_COUNT,
    LM_NANSUM,
    LM_NANMEAN,
    LM_NORM_1,
    LM_NORM_2,
    LM_NORM_P,
    LM_NORM_MOST,
    LM_NORM_LEAST
};

/* ---- sort ---- */

/* Rows of x, `rows` of them from number `first` on, and the first k elements of each in order, of
** which those before number `from` are not given.
** Strides in bytes; those of rows go with the walk over all rows. */
typedef struct {
    const void *x;
    void *values, *positions; /* NULL where not wanted; positions are int64 */
    lm_walk walk;
    int64_t x_row[LM_WALK_DIMS], values_row[LM_WALK_DIMS], positions_row[LM_WALK_DIMS];
    int64_t x_step, values_step, positions_step;
    int64_t n, k, from, first, rows;
    const void *keys, *at; /* unless NULL: keys of n elements of each row, and their positions */
    uint64_t flip;         /* what turns keys round: 0 or all ones */
    int32_t dtype, log, index_base; /* luma_dtype; its bytes are 1 << log */
    int32_t width;                  /* see sort_rows.h */
    int32_t wide;                   /* positions in `at` have 8 bytes, else 4 */
    int32_t unused;
} lm_args_sort;

/* Keys and positions of rows of n, in two buffers each; in tiles, see radix.h. */
typedef struct {
    void *keys[2], *at[2];
    unsigned long long *varies; /* of each row: the bits in which its keys differ */
    void *counts, *totals;      /* of each row: `lines` lines of a count per tile; their sums */
    int64_t n, rows, tiles;
    int32_t lines;
    int32_t shift;       /* of the digit of this pass */
    int32_t placed;      /* at[0] holds the positions; else that of element i is i */
    int32_t scan_blocks; /* a block scans a line, not a warp */
} lm_args_radix;
typedef struct {
    lm_args_sort sort;
    lm_args_radix radix;
    int32_t bits; /* of a key */
    int32_t unused;
} lm_args_radix_rows;

/* The k least keys of each row of n. */
typedef struct {
    const void *keys;
    void *best_keys, *best_at;           /* (rows, k) */
    unsigned long long *chosen, *wanted; /* of each row, see radix.h */
    void *digits;                        /* (rows, 256), 0 at first */
    void *counts;                        /* (rows, 2, tiles) */
    int64_t n, k, tiles, groups;         /* groups: of tiles that one block counts */
    int32_t shift, unused;
} lm_args_select;

/* ---- index ---- */

/* An index tensor, see lm_index_part. */
typedef struct {
    const void *data;
    lm_fault *fault;                      /* NULL: another notes what is wrong with it */
    int64_t stride[LM_WALK_DIMS];         /* bytes */
    int64_t position[LM_WALK_DIMS];       /* row-major in the index tensor */
    int64_t size, step, divisor, modulus; /* step in the unit of `indexed` */
    int32_t dtype, argument;
} lm_args_index_part;
/* Elements at places that index tensors decide. What numbers a place is in bytes, to move elements;
** or counts places, to find those that are the same. `writer` numbers what goes to one place each:
** all positions along dims where no index moves are one writer. */
typedef struct {
    lm_walk walk;
    void *plain, *indexed;
    int64_t plain_stride[LM_WALK_DIMS], indexed_stride[LM_WALK_DIMS], writer_stride[LM_WALK_DIMS];
    /* of writers: the slot of its place, its greatest value if it has none; of slots: the last
    ** writer + 1. In 8 bytes if wide_writers, else in 4. slots NULL: no two writers. */
    void *slots, *last;
    unsigned long long *places; /* of slots: the place, ~0 for none; NULL: slot = place */
    uint64_t nslots;            /* a power of two when there are places */
    int32_t wide_writers;
    int32_t op, n, index_base;
    lm_args_index_part parts[LM_WALK_DIMS];
} lm_args_index;

/* Sums into places, whose writers are sorted by place. index walks over writers; rest over the dims
** where no index moves. */
typedef struct {
    lm_args_index index;
    lm_walk rest;
    int64_t rest_plain[LM_WALK_DIMS], rest_indexed[LM_WALK_DIMS];
    void *keys, *at;            /* of sorted writers: the place and the number */
    int32_t wide_keys, wide_at; /* of 8 bytes, else of 4 */
    int32_t inner;              /* rest runs faster than writers */
    int32_t join;               /* below */
    uint64_t nplaces;           /* the place of writers with a wrong index */
} lm_args_index_add;
enum { LM_JOIN_ADD, LM_JOIN_MUL, LM_JOIN_MAX, LM_JOIN_MIN }; /* as from LM_INDEX_ADD on */

/* The place of each value of a row, (rows, m), among the sorted ones, (rows, n). */
typedef struct {
    const void *sorted, *values;
    int64_t *out;
    int64_t rows, n, m;
    int32_t right, index_base;
} lm_args_search;

/* Quantised blocks (quant.cu). x and y are float32. */
typedef struct {
    const float *x;
    float *y; /* (m, n) of products */
    uint8_t *blocks;
    int64_t n; /* blocks in all; of products the rows of blocks */
    int64_t m; /* rows of x */
    int64_t blocks_of_row;
    int8_t *rounded; /* rows of x */
    float *scales;   /* one for each block of them, */
    int32_t *eights; /* and two sums */
} lm_args_quant;

/* Bytes that are not 0. */
typedef struct {
    const uint8_t *x;
    int64_t *counts, *total; /* of tiles, later of all tiles before; of all */
    int64_t *positions;      /* (total, ndim) */
    int64_t n, tiles;
    lm_walk walk; /* over x, its dims as they are */
    int32_t ndim, index_base;
} lm_args_nonzero;
/* Bytes of a line, as computed, that a lane of softmax_short holds. */
#define LM_SOFTMAX_BYTES 64

/* A scan along lines of n elements. Strides in bytes. */
typedef struct {
    const void *x;
    void *y;
    void *positions; /* int64, of cummax */
    /* Per line and chunk: of cumsum the total up to its end (NULL: lines are whole), of other running
    ** results that of the chunk, see running.h; of softmax the greatest, then as many second words: the
    ** sums of exponentials. */
    void *parts;
    int64_t n, x_step, y_step, positions_step;
    int64_t chunk, chunks;
    lm_lanes group;
    int32_t log; /* log_softmax */
    int32_t out_dtype;
    int32_t least; /* of cummax: the least is wanted */
    int32_t index_base;
    lm_walk lines;
    int64_t lines_x[LM_WALK_DIMS], lines_y[LM_WALK_DIMS], lines_positions[LM_WALK_DIMS];
} lm_args_scan;

/* ---- normalisation ---- */

/* Bytes of a line, as computed, that a lane of normalize_short holds. */
#define LM_NORMALIZE_BYTES 64

/* Lines and the elements along them; steps in bytes, of x, y, and weight and bias. */
typedef struct {
    const void *x;
    void *y;
    const void *weight, *bias; /* NULL: none */
    void *parts;               /* per line and chunk: the sum, then as many sums of squares */
    double eps;
    int64_t chunk, chunks;
    lm_lanes group;
    int32_t centered; /* the mean is taken off */
    int32_t unused;
    lm_walk lines, along;
    int64_t line_step[3][LM_WALK_DIMS], step[3][LM_WALK_DIMS];
} lm_args_normalize;

/* ---- attention ---- */

/* Queries, and keys, that a block of attention works on at a time; its threads; bytes of a head of q
** or v, as computed, at most: they, the scores and a tile of keys or values fit 48 KB. */
#define LM_ATTENTION_TILE 32
#define LM_ATTENTION_THREADS 256
#define LM_ATTENTION_HEAD 512
enum {
    LM_ATTENTION_Q,
    LM_ATTENTION_K,
    LM_ATTENTION_V,
    LM_ATTENTION_OUT,
    LM_ATTENTION_MASK,
    LM_ATTENTION_OPERANDS
};
enum { LM_MASK_NONE, LM_MASK_BOOL, LM_MASK_ADDS };

/* One matrix of every operand for each place of batch. Strides in bytes. */
typedef struct {
    const void *data[LM_ATTENTION_OPERANDS];
    int64_t row[LM_ATTENTION_OPERANDS], column[LM_ATTENTION_OPERANDS];
    int64_t queries, keys, tiles;
    int32_t e, ev;
    int32_t causal, masked;
    double scale;
    lm_walk batch;
    int64_t batch_step[LM_ATTENTION_OPERANDS][LM_WALK_DIMS];
} lm_args_attention;

/* Pairs of x, walked with their tables; steps in bytes, of x, y and the tables. */
typedef struct {
    const void *x, *cos, *sin;
    void *y;
    int64_t x_apart, y_apart; /* bytes between the two of a pair */
    lm_walk walk;
    int64_t step[3][LM_WALK_DIMS];
} lm_args_rope;

/* ---- convolution ---- */

/* y (n, groups * filters, d, h, w) of x (n, groups * channels, size) and w (groups * filters, channels,
** kernel): position o meets tap k at o * stride + k * dilation - before. Steps in bytes; walk: over y. */
typedef struct {
    const void *x, *w, *bias; /* bias: NULL: none */
    void *y;
    lm_walk walk;
    int64_t x_stride[5], w_stride[5], y_stride[5], bias_stride;
    int64_t filters, channels;
    int64_t in[3], kernel[3], stride[3], dilation[3], before[3];
} lm_args_conv;

#endif
