/* level.h -- the CPU's instruction set levels. Every file of cpu/level/ is compiled once per level
** with everything static but one const table, LM_TABLE(family); cpu/level.c lists the tables and
** picks a level once. Layer: kernels/cpu. */
#ifndef lm_level_h
#define lm_level_h

#include "iter.h"

#define LM_PASTE_(a, b) a##_##b
#define LM_PASTE(a, b) LM_PASTE_(a, b)
#define LM_TABLE(family) LM_PASTE(lm_##family, LM_LEVEL)

/* cpu/level/elementwise.c: NULL where the row has no kernel for the dtype. Only compute dtypes.
** guard: of integer dtypes, [0] looks for zeros and [1] for negative elements of operand 1. */
typedef struct {
    lm_map_fn *map[LM_NROWS][LUMA_NDTYPES];
    lm_map_fn *guard[LUMA_NDTYPES][2];
} lm_elementwise_kernels;

/* cpu/level/cast.c, copy.c: lm_cast_kernels, lm_copy_kernels, declared in core/iter.h. */

/* cpu/level/index.c: rows at places. Row i is at plain + i * step and at indexed + at[i]; in it the
** elements are row->plain and row->indexed bytes apart. Rows go in order, which duplicates show. */
typedef struct {
    int64_t length, plain, indexed;
} lm_index_row;
typedef void lm_index_fn(int64_t n, const int64_t *at, char *plain, int64_t step, char *indexed,
                         const lm_index_row *row);
#define LM_INDEX_SIZES 7
typedef struct {
    lm_index_fn *read[LM_INDEX_SIZES], *write[LM_INDEX_SIZES]; /* elements of 1 << k bytes */
    lm_index_fn *read_block, *write_block; /* rows of row->length bytes side by side; */
    lm_index_fn *read_past;                /* past the caches */
    /* ADD, MUL, MAX, MIN of integers, float32, float64; bool has the last two */
    lm_index_fn *join[4][LUMA_NDTYPES];
    /* whether base <= v[i] < base + size for all */
    bool (*valid)(int64_t n, const int64_t *v, int64_t base, int64_t size);
    /* at[i] += (v[i] - base) * step; false where valid is, and at is spent */
    bool (*place)(int64_t n, const int64_t *v, int64_t base, int64_t size, int64_t step,
                  int64_t *at);
    /* how many bytes are not 0; find: also where, in ascending order, into at[n] */
    int64_t (*count)(int64_t n, const uint8_t *x);
    int64_t (*find)(int64_t n, const uint8_t *x, int64_t *at);
} lm_index_kernels;

/* cpu/level/reduce.c: foldings of a block into running values, one per result.
**   SUM      float64 of floats, int64 (wrapping) of bool and integers
**   PROD     float64 of floats, int64 of int64
**   SQUARES  float64: (x - param)^2
**   EXPS     float64: exp(x - param)
**   MAX MIN  keys (keys.h) of floats, values of the rest; NaN wins
**   ARGMAX ARGMIN  the value as it is, and its position; -1: none yet. The first of equals wins. */
typedef enum {
    LM_FOLD_SUM,
    LM_FOLD_PROD,
    LM_FOLD_SQUARES,
    LM_FOLD_EXPS,
    LM_FOLD_MAX,
    LM_FOLD_MIN,
    LM_FOLD_ARGMAX,
    LM_FOLD_ARGMIN,
    LM_NFOLDS
} lm_fold_op;

/* What elements become before they are folded, after the cast to the kernels' dtype: a float one but
** for SAME. */
typedef enum {
    LM_TERM_SAME,
    LM_TERM_NAN_IS_0,
    LM_TERM_NUMBERS,   /* 0 of NaN, else 1 */
    LM_TERM_MAGNITUDE, /* |x| */
    LM_TERM_POWER      /* |x| to the power `power`, of float64 */
} lm_term;

#define LM_FOLD_WIDTH 512 /* columns of a block at most */
typedef struct {
    void *value;
    int64_t *position;
    const double *param;
    int64_t at;   /* position of the block's first element */
    int64_t step; /* rows: 1: every row has its own result; 0: all go into the first */
} lm_fold;

/* x (m,n): rows sx bytes apart, elements side by side. rows: fold each row; positions count along
** the row. columns: fold each column; positions count the rows; n <= LM_FOLD_WIDTH. */
typedef void lm_fold_fn(int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f);
typedef struct {
    lm_fold_fn *rows[LM_NFOLDS][LUMA_NDTYPES];
    lm_fold_fn *columns[LM_NFOLDS][LUMA_NDTYPES];
    /* n elements side by side, in place or not; float32, float64; POWER as MAGNITUDE */
    void (*terms[LUMA_NDTYPES])(lm_term term, int64_t n, const char *x, char *y);
    /* rows of SUM with that on the way; NULL: not there */
    lm_fold_fn *sums[LM_TERM_POWER][LUMA_NDTYPES];
} lm_reduce_kernels;

/* cpu/level/gemm.c: the loops of the matrix product in one accumulator type. Strides count
** elements. First what meets few rows with many, bound by reading w: four of its rows are read side
** by side, or one. */
typedef struct {
    /* y[i * ldy + j * sy] += x row i . w row j, j < columns: 4 or 1 */
    void (*dots)(int rows, int columns, int64_t k, const void *x, int64_t ldx, const void *w,
                 int64_t sw, void *y, int64_t ldy, int64_t sy);
    /* y row i += the sum over q < streams (4 or 1) of x[i * 4 + q] * w row q, n columns */
    void (*sweep)(int rows, int streams, int64_t n, const void *w, int64_t sw, const void *x,
                  void *y, int64_t ldy);
} lm_gemm_few;
/* One plane, y (m, n), of x (height, width) and 3 x 3 factors: element i, j meets those of x from
** i * step - top, j * step - left on, 0 outside; step: 1 or 2. Strides of rows; elements of a row lie
** side by side. */
typedef struct {
    int64_t m, n, height, width, step, top, left, sx, sy;
    const void *x, *factors, *bias; /* bias: one, or NULL */
    void *y;
} lm_three;
/* add: += instead of = */
typedef struct {
    int mr, nr; /* register tile: rows of a panel of a, columns of a panel of b */
    /* one panel: value p of line i goes to panel[p * width + i]; lines <= width, k values each,
    ** sl from line to line, sk along a line */
    void (*pack)(int64_t lines, int64_t width, int64_t k, const void *x, int64_t sl, int64_t sk,
                 void *panel);
    /* c (m, n) from panels one after the other: a of mr rows, b of nr columns, k values each */
    void (*block)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c,
                  int64_t ldc, bool add);
    /* c (m, n) from a (m, k) of any strides and b (k, n) whose columns lie side by side */
    void (*small)(int64_t m, int64_t n, int64_t k, const void *a, int64_t ra, int64_t ka,
                  const void *b, int64_t kb, void *c, int64_t ldc, bool add);
    /* c (m, n) from a in panels of `width` rows (mr at most) and b (k, n) whose row p begins at
    ** b + at[p] and is read to the end of its last vector; where it does not add, bias (m) is
    ** added unless NULL */
    void (*rows)(int64_t m, int64_t n, int64_t k, const void *a, int64_t width, const void *b,
                 const int32_t *at, void *c, int64_t ldc, bool add, const void *bias);
    /* m rows of n elements, sy apart, of y: those from lo to hi are taken from x, whose rows are sx
    ** and elements `step` apart; the others are 0 */
    void (*lines)(int64_t m, int64_t lo, int64_t hi, int64_t n, const void *x, int64_t sx,
                  int64_t step, void *y, int64_t sy);
    void (*three)(const lm_three *t);
    lm_gemm_few few;
} lm_gemm;
/* float32 (8- and 16-bit floats are read into it), float64, and words that wrap: 32 bits for all
** integers but int64. bf16, f16: few float32 rows, w of 16 bits; f16 NULL where it is no faster. */
typedef struct {
    lm_gemm f32, f64, w32, w64;
    lm_gemm_few bf16, f16;
} lm_gemm_kernels;

/* cpu/level/sort.c: words that stand for elements: a key, in the order of the elements (or the
** opposite), and a position. Narrow words hold a key of up to 32 bits above a position of 32, wide
** ones 64 of each. A digit is `bits` of the key from `shift` on. Equal keys keep their order. */
typedef struct {
    uint64_t key, at;
} lm_sort_wide;
typedef struct {
    size_t size; /* bytes of a word */
    /* words of n elements sx bytes apart, whose positions start at `first` */
    void (*make[LUMA_NDTYPES])(int64_t n, const char *x, int64_t sx, bool descending, int64_t first,
                               void *words);
    /* sorts in place; scratch has room for n words, too */
    void (*merge)(int64_t n, void *words, void *scratch);
    /* counts[digit]++ */
    void (*count)(int64_t n, const void *words, int shift, int bits, int64_t *counts);
    /* y[next[digit]++] = word */
    void (*spread)(int64_t n, const void *words, int shift, int bits, int64_t *next, void *y);
    /* appends words with a lower digit to y, which has *ny; keeps those with this one in words and
    ** returns how many these are */
    int64_t (*sift)(int64_t n, void *words, int shift, int bits, uint64_t digit, void *y,
                    int64_t *ny);
    void (*positions)(int64_t n, const void *words, int64_t base, char *y, int64_t sy);
    /* y[i] = x[position of word i], elements of 1 << k bytes */
    void (*values[4])(int64_t n, const void *words, const char *x, int64_t sx, char *y, int64_t sy);
} lm_sort_words;
typedef struct {
    lm_sort_words narrow, wide;
} lm_sort_kernels;

/* cpu/level/random.c: elements lo to hi - 1 of r->out, whose data is given. */
struct lm_random;
typedef struct {
    void (*fill)(const struct lm_random *r, char *data, int64_t lo, int64_t hi,
                 const lm_cast_kernels *casts);
} lm_random_kernels;
/* cpu/level/scan.c. cumsum of int64, float32, float64; the rest of the two float types. Rows of x
** and y are sx and sy bytes apart, elements side by side. [0]: along rows, [1]: along columns. */
typedef struct {
    /* y[i] = sum + x[0] + ... + x[i] in each row; its sum and total (double or int64) grow by the sum
    ** of x, each from where it was. y and total may be NULL. */
    void (*cumsum_rows[LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                      int64_t sy, void *sum, void *total);
    void (*cumsum_columns[LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                         int64_t sy, void *sum);
    /* y = exp(x - shift); sum += y. y may be x. */
    void (*exps[2][LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                  int64_t sy, const double *shift, double *sum);
    /* y *= factor */
    void (*scale[2][LUMA_NDTYPES])(int64_t m, int64_t n, char *y, int64_t sy, const double *factor);
    /* y = (x - first) - second */
    void (*shift[2][LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                   int64_t sy, const double *first, const double *second);
} lm_scan_kernels;
/* cpu/level/running.c. Products of int64, float32, float64; extremes of all compute types, [0]: the
** greatest, [1]: the least; logarithms of float64. Rows and columns lie as in lm_scan_kernels. */
typedef struct {
    /* y = start * own * x[0] * ... * x[i]; own takes what is multiplied. start and own are an
    ** lm_product, or an int64_t. y may be NULL. */
    void (*prod_row[LUMA_NDTYPES])(int64_t n, const char *x, char *y, const void *start, void *own);
    /* the products so far: of floats m * 2^e, of int64 e */
    void (*prod_columns[LUMA_NDTYPES])(int64_t rows, int64_t n, const char *x, int64_t sx, char *y,
                                       int64_t sy, double *m, int64_t *e);
    /* best: the best element so far, found at *at; none yet where that is negative. Positions count
    ** from `first` at the block's first element. y and places may both be NULL. */
    void (*extreme_row[2][LUMA_NDTYPES])(int64_t n, const char *x, char *y, int64_t *places,
                                         int64_t first, void *best, int64_t *at);
    void (*extreme_columns[2][LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx,
                                             char *y, int64_t sy, char *places, int64_t sp,
                                             int64_t first, void *best, int64_t *at);
    /* start and own: two doubles, the greatest x and the sum of exponentials below it */
    void (*logsumexp_row)(int64_t n, const char *x, char *y, const void *start, void *own);
    void (*logsumexp_columns)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                              double *greatest, double *sum);
} lm_running_kernels;

/* cpu/level/normalize.c, of the two float types. What m rows get: weight and bias (NULL: none) are
** of the rows' own type; row, step: their strides in elements from row to row, and along a row, 0
** or 1, which is 0 when there are none. */
typedef struct {
    const double *mean, *scale;
    const void *weight, *bias;
    int64_t row, step;
} lm_normal;
typedef struct {
    /* y = (x - mean) * scale * weight + bias, rows of n elements */
    void (*apply[LUMA_NDTYPES])(int64_t m, int64_t n, const char *x, int64_t sx, char *y,
                                int64_t sy, const lm_normal *l);
} lm_normalize_kernels;
/* cpu/level/pooling.c: windows. A code tells where an element of a tile of LM_POOL_WIDTH columns is: its
** row in the window times the width, plus its column. NaN is the greatest. Arrays without a stride lie
** side by side. */
#define LM_POOL_WIDTH 1024
/* Of the compute dtypes float32, float64, int32 and int64. */
typedef struct {
    /* value = x, code = row */
    void (*first)(int64_t n, const void *x, void *value, int32_t *code, int32_t row);
    /* value = the greater one; where x is that, code = row. code NULL: not wanted */
    void (*rows)(int64_t n, const void *x, void *value, int32_t *code, int32_t row);
    /* best = the least there is, before columns */
    void (*start)(int64_t n, void *best, int32_t *code);
    /* best[i] = the greater one of it and value[i * step]; of equals the lower code */
    void (*columns)(int64_t n, int64_t step, const void *value, const int32_t *code, void *best,
                    int32_t *best_code);
} lm_pool_max;
/* One window of the storage dtype: n elements along three dims, steps in bytes and in positions. */
typedef struct {
    int64_t n[3], step[3], place[3];
} lm_pool_window;
typedef struct {
    lm_pool_max max[LUMA_NDTYPES];
    /* of float32 and float64: sum = x or sum + x */
    void (*sum_rows[LUMA_NDTYPES])(int64_t n, const void *x, double *sum, bool first);
    /* total[i] += sum[i * step] */
    void (*sum_columns)(int64_t n, int64_t step, const double *sum, double *total);
    /* y = total / count, rounded once */
    void (*divide[LUMA_NDTYPES])(int64_t n, const double *total, const double *count, void *y);
    /* any dtype: the greatest element goes to y; its position counts from 0 at x */
    int64_t (*window_max[LUMA_NDTYPES])(const char *x, const lm_pool_window *w, char *y);
    double (*window_sum[LUMA_NDTYPES])(const char *x, const lm_pool_window *w); /* of floats */
} lm_pool_kernels;

/* cpu/level/attention.c, of the two float types. Rows have LM_ATTENTION_BYTES: one column for each
** query of a tile; scores are rows of keys. */
#define LM_ATTENTION_BYTES LM_TILE_BYTES
/* n pairs (a, b), cosines and sines of their angles: halves side by side, or pairs (b = a + 1). */
typedef void lm_rotate_fn(int64_t n, const char *a, const char *b, char *ya, char *yb,
                          const char *cos, const char *sin);
typedef struct {
    /* scores become exponentials below the greatest so far, which with sum grows by them; factor:
    ** what sums of before are to be multiplied by */
    void (*soften[LUMA_NDTYPES])(int64_t keys, void *scores, void *greatest, double *sum,
                                 void *factor);
    /* the same of m queries, whose scores of n keys are rows without gaps */
    void (*soften_rows[LUMA_NDTYPES])(int64_t m, int64_t n, void *scores, void *greatest,
                                      double *sum, double *factor);
    void (*rescale[LUMA_NDTYPES])(int64_t rows, void *sums, const void *factor);
    lm_rotate_fn *rotate[2][LUMA_NDTYPES]; /* [1]: pairs */
    /* of n scores; adds: mask is added; else scores are -inf where it is 0 */
    void (*hide[LUMA_NDTYPES])(int64_t n, void *scores, const void *mask, bool adds);
} lm_attention_kernels;

/* cpu/level/quant.c, by format. n counts blocks. */
typedef struct {
    void (*make)(int64_t n, const float *x, uint8_t *y);
    void (*read)(int64_t n, const uint8_t *x, float *y);
    /* bytes of a row of n blocks of x as products want it, a multiple of 64; a row as that, aligned */
    int64_t (*row_bytes)(int64_t n);
    void (*round)(int64_t n, const float *x, char *row);
    /* y[i * ldy + j] = row i of x, `step` bytes apart, times row j of w; rows of `blocks` */
    void (*dots)(int64_t m, int64_t n, int64_t blocks, char *x, int64_t step, const uint8_t *w,
                 float *y, int64_t ldy);
} lm_quant_format_kernels;
typedef struct {
    lm_quant_format_kernels format[LUMA_NQUANT];
} lm_quant_kernels;

/* cpu/level/chain.c: what the rows of a chain do to v, the value so far, and x; from NEG on to v
** alone. */
typedef enum {
    LM_CHAIN_NONE, /* no row of chains; of the first link: v = x */
    LM_CHAIN_ADD,
    LM_CHAIN_SUB,      /* v - x */
    LM_CHAIN_SUB_FROM, /* x - v */
    LM_CHAIN_MUL,
    LM_CHAIN_DIV,      /* v / x */
    LM_CHAIN_DIV_INTO, /* x / v */
    LM_CHAIN_NEG,
    LM_CHAIN_SQUARE,
    LM_CHAIN_SQRT,
    LM_CHAIN_RELU
} lm_chain_word;
typedef struct {
    lm_chain_word word;
    const char *x;  /* side by side, or one vector of equal elements */
    int64_t within; /* bytes from vector to vector of x: the table's `vector`, or 0 */
} lm_link;
#define LM_CHAIN_WIDEST 64 /* the largest `vector` */
typedef struct {
    int64_t bytes, vector; /* of a chunk, and of a vector in it */
    /* of float32 and float64, else NULL: whole chunks; y is written after all of its chunk is read.
    ** stream: past the caches; y is then a multiple of 64. */
    void (*run[LUMA_NDTYPES])(int64_t chunks, int n, const lm_link *links, char *y, bool stream);
} lm_chain_kernels;

/* Every family adds its table type above and a line here. X(table type, name) */
#define LM_FAMILIES(X)                                                                             \
    X(lm_elementwise_kernels, elementwise)                                                         \
    X(lm_cast_kernels, cast)                                                                       \
    X(lm_copy_kernels, copy)                                                                       \
    X(lm_index_kernels, index)                                                                     \
    X(lm_reduce_kernels, reduce)                                                                   \
    X(lm_gemm_kernels, gemm)                                                                       \
    X(lm_sort_kernels, sort)                                                                       \
    X(lm_random_kernels, random)                                                                   \
    X(lm_scan_kernels, scan)                                                                       \
    X(lm_pool_kernels, pooling)                                                                    \
    X(lm_normalize_kernels, normalize)                                                             \
    X(lm_running_kernels, running)                                                                 \
    X(lm_attention_kernels, attention)                                                             \
    X(lm_quant_kernels, quant)                                                                     \
    X(lm_chain_kernels, chain)

/* As CMakeLists.txt builds them; a level that is not the first needs its test in level.c. */
#if defined(__x86_64__)
#define LM_LEVELS(X) X(base) X(avx2) X(avx512)
#else
#define LM_LEVELS(X) X(base)
#endif

typedef struct {
    const char *name; /* "base", "avx2", "avx512" */
#define LM_FIELD(type, name) const type *name;
    LM_FAMILIES(LM_FIELD)
#undef LM_FIELD
} lm_level;

/* The level that runs: the best of this machine, or what LUMA_CPU names. Fixed at the first call;
** NULL when LUMA_CPU names a level that is not there (lm_level_problem then says which are; it is
** NULL otherwise). lm_cpu_register refuses to make a device then, so kernels need not ask. */
const lm_level *lm_level_now(void);
const char *lm_level_problem(void);
/* The levels that this machine runs, as "base, avx2". */
const char *lm_level_list(void);

#endif
