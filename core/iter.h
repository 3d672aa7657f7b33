/* iter.h -- the only n-dimensional loops of luma: broadcasts, merges dims, orders loops for
** locality, splits over threads, converts dtypes block by block. Kernels see one dimension.
** Layer: core. */
#ifndef lm_iter_h
#define lm_iter_h

#include "row.h"
#include "state.h"

#define LM_ITER_MAX 10     /* operands */
#define LM_CAST_BLOCK 1024 /* elements of a cast block; such a block of each operand fits L1 */

/* One operand. Operand 0 is written, the others are read. */
typedef struct {
    char *data;                    /* first element; NULL: `value` holds it */
    luma_dtype dtype;              /* as stored */
    luma_dtype kernel;             /* as the kernel sees it; the iterator casts where they differ */
    int64_t stride[LUMA_MAX_DIMS]; /* bytes; 0 where broadcast */
    union {
        int64_t i;
        double d;
        float f;
        char bytes[8];
    } value; /* one element of dtype `kernel`, for weak numbers */
} lm_operand;

/* Numbers of UNARY_P rows, in both forms. */
typedef struct {
    double d[2];
    int64_t i[2];
    int *found; /* of guards: set to 1 (atomically) when an element is what they look for */
    /* Given to lm_iter_run: large results may pass the caches by. Given to a kernel: this line may;
    ** it is side by side and begins at a multiple of 64 bytes. */
    bool stream;
    const void *program; /* of the CPU's fused slot */
} lm_params;

/* A kernel walks one dimension: n elements of every operand, p[k] += s[k] (bytes) each. */
typedef void lm_map_fn(int64_t n, char *const *p, const int64_t *s, const lm_params *params);
/* Converts n elements; strides in bytes. */
typedef void lm_cast_fn(int64_t n, const char *x, int64_t sx, char *y, int64_t sy);
/* [from][to], every pair; the diagonal copies. */
typedef struct {
    lm_cast_fn *const *cast[LUMA_NDTYPES];
} lm_cast_kernels;

/* Entry k moves elements of 1 << k bytes, 16 at most. */
#define LM_COPY_SIZES 5
#define LM_TILE_ROWS 64
#define LM_TILE_BYTES 256
#define LM_FILL_PERIOD 64 /* bytes; a multiple of every vector and element */
typedef struct {
    lm_cast_fn *move[LM_COPY_SIZES];
    /* y[j][i] = x[i][j] for m <= LM_TILE_ROWS rows and n columns of x. x is a whole buffer of
    ** LM_TILE_ROWS rows of LM_TILE_BYTES, of which only m by n elements need be set; rows of y are
    ** sy bytes apart. stream: past the cache; y and sy are then multiples of 64. */
    void (*transpose[LM_COPY_SIZES])(int64_t m, int64_t n, const char *x, char *y, int64_t sy,
                                     bool stream);
    void (*stream)(size_t nbytes, const char *x, char *y);
    /* pattern repeats every LM_FILL_PERIOD bytes. past: past the cache. */
    void (*fill)(size_t nbytes, const char *pattern, char *y, bool past);
} lm_copy_kernels;

typedef struct {
    lm_op op;
    luma_dtype compute; /* the kernel's row is table[op][compute] */
    int noperands;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
    lm_operand operand[LM_ITER_MAX];
    lm_params params;
    bool planned; /* already one contiguous dim: lm_iter_plan has nothing to do */
} lm_map;

/* Drops dims of size 1, turns dims round that operand 0 walks backward, orders dims by the strides
** of operand 0, then of the others (outermost first), merges neighbours that all operands walk as
** one. The set of element tuples stays. */
void lm_iter_plan(lm_map *m);
/* Runs a planned map on the CPU; kernels get n >= 1. cost: rough work per element in bytes of
** traffic, which decides how many threads help. Polls the interrupt flag. An operand 0 without data
** is never written: for kernels that only look. */
luma_status lm_iter_run(luma_state *S, lm_map *m, lm_map_fn *fn, const lm_cast_kernels *casts,
                        const lm_copy_kernels *copies, int64_t cost);

#endif
