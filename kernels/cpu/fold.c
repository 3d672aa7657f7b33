/* fold.c -- running values and the walk over reduced dims: blocks of rows or columns, gathered and
** cast where x is not laid out for the kernels. Layer: kernels/cpu. */
#include "fold.h"

#include <string.h>

#include "block.h"
#include "keys.h"

#define GATHERED 1024 /* elements of a gathered block: 8 KB at most */
#define LEAF 32768    /* elements, or */
#define LEAF_ROWS 512 /* rows, of a block between two looks at the interrupt flag */
#define WIDE 256      /* columns into which several short rows are taken together */
#define CASCADE 64    /* sums of blocks that add up before they move on */

/* ---- values ---- */

static bool is_sum(lm_fold_op op) {
    return op == LM_FOLD_SUM || op == LM_FOLD_SQUARES || op == LM_FOLD_EXPS;
}

static bool is_arg(lm_fold_op op) {
    return op == LM_FOLD_ARGMAX || op == LM_FOLD_ARGMIN;
}

static bool is_max(lm_fold_op op) {
    return op == LM_FOLD_MAX || op == LM_FOLD_ARGMAX;
}

size_t lm_fold_size(lm_fold_op op, luma_dtype dtype) {
    return is_sum(op) || op == LM_FOLD_PROD ? 8 : lm_dtype_size(dtype);
}

/* X(dtype, integer type of its keys, least, greatest) */
#define KEYS(X)                                                                                    \
    X(BOOL, uint8_t, 0, UINT8_MAX)                                                                 \
    X(UINT8, uint8_t, 0, UINT8_MAX)                                                                \
    X(INT8, int8_t, INT8_MIN, INT8_MAX)                                                            \
    X(INT16, int16_t, INT16_MIN, INT16_MAX)                                                        \
    X(INT32, int32_t, INT32_MIN, INT32_MAX)                                                        \
    X(UINT32, uint32_t, 0, UINT32_MAX)                                                             \
    X(INT64, int64_t, INT64_MIN, INT64_MAX)                                                        \
    X(FLOAT32, int32_t, INT32_MIN, INT32_MAX)                                                      \
    X(FLOAT64, int64_t, INT64_MIN, INT64_MAX)

static void start_keys(luma_dtype dtype, int64_t n, void *value, bool max) {
    switch (dtype) {
#define START(ENUM, K, least, greatest)                                                            \
    case LUMA_##ENUM:                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((K *)value)[i] = (K)(max ? least : greatest);                                         \
        break;
        KEYS(START)
#undef START
    default:
        break;
    }
}

void lm_fold_start(lm_fold_op op, luma_dtype dtype, int64_t n, void *value, int64_t *position) {
    double one = 1.0;
    int64_t whole = 1;
    if (is_sum(op)) {
        memset(value, 0, (size_t)n * 8); /* 0.0 and 0 */
    } else if (op == LM_FOLD_PROD) {
        for (int64_t i = 0; i < n; i++)
            memcpy((char *)value + 8 * i, dtype == LUMA_INT64 ? (void *)&whole : (void *)&one, 8);
    } else if (is_arg(op)) {
        for (int64_t i = 0; i < n; i++)
            position[i] = -1;
    } else {
        start_keys(dtype, n, value, is_max(op));
    }
}

static void merge_keys(luma_dtype dtype, int64_t n, void *value, const void *from, bool max) {
    switch (dtype) {
#define MERGE(ENUM, K, least, greatest)                                                            \
    case LUMA_##ENUM: {                                                                            \
        K *a = value;                                                                              \
        const K *b = from;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            a[i] = (max ? b[i] > a[i] : b[i] < a[i]) ? b[i] : a[i];                                \
        break;                                                                                     \
    }
        KEYS(MERGE)
#undef MERGE
    default:
        break;
    }
}

/* Values compare as keys, but for NaNs, all alike, and zeros: a float's key is made to say so. */
static int64_t ranked(luma_dtype dtype, const void *value, int64_t i, bool max) {
    double x;
    switch (dtype) {
    case LUMA_FLOAT32:
        x = (double)((const float *)value)[i];
        break;
    case LUMA_FLOAT64:
        x = ((const double *)value)[i];
        break;
#define RANKED(_, token, ENUM, name, T, ...)                                                       \
    case LUMA_##ENUM:                                                                              \
        return (int64_t)((const T *)value)[i];
        LM_BOOLS(RANKED, _)
        LM_INTS(RANKED, _)
#undef RANKED
    default:
        return 0;
    }
    if (x != x) return max ? INT64_MAX : INT64_MIN;
    return lm_key_f64(x == 0 ? 0.0 : x);
}

static void merge_args(lm_fold_op op, luma_dtype dtype, int64_t n, char *value, int64_t *position,
                       const char *from, const int64_t *from_position) {
    size_t size = lm_dtype_size(dtype);
    bool max = is_max(op);
    for (int64_t i = 0; i < n; i++) {
        if (from_position[i] < 0) continue;
        if (position[i] >= 0) {
            int64_t a = ranked(dtype, value, i, max), b = ranked(dtype, from, i, max);
            bool better = max ? b > a : b < a;
            if (!better && (a != b || from_position[i] > position[i])) continue;
        }
        memcpy(value + (size_t)i * size, from + (size_t)i * size, size);
        position[i] = from_position[i];
    }
}

void lm_fold_merge(lm_fold_op op, luma_dtype dtype, int64_t n, void *value, int64_t *position,
                   const void *from, const int64_t *from_position) {
    bool real = lm_dtype_is_float(dtype);
    double *d = value;
    uint64_t *u = value;
    if (is_arg(op)) {
        merge_args(op, dtype, n, value, position, from, from_position);
    } else if (!is_sum(op) && op != LM_FOLD_PROD) {
        merge_keys(dtype, n, value, from, is_max(op));
    } else if (is_sum(op)) {
        for (int64_t i = 0; i < n && real; i++)
            d[i] += ((const double *)from)[i];
        for (int64_t i = 0; i < n && !real; i++)
            u[i] += ((const uint64_t *)from)[i];
    } else {
        for (int64_t i = 0; i < n && real; i++)
            d[i] *= ((const double *)from)[i];
        for (int64_t i = 0; i < n && !real; i++)
            u[i] *= ((const uint64_t *)from)[i];
    }
}

/* ---- the walk ---- */

/* One strip under way. */
typedef struct {
    lm_walk *w;
    lm_fold_op op;
    lm_term term;
    lm_fold_fn *fn;
    lm_fold_fn *of_terms; /* of rows of x as it is; may be NULL */
    int64_t width;        /* results of the strip */
    lm_strip *s;
    lm_reduce_dim rows; /* nreduced == 2 or more and blocks of reduced rows: that dim */
    bool reduced_rows;
} run;

static bool stop(run *u) {
    if (lm_interrupted(u->w->S)) __atomic_store_n(&u->w->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&u->w->stopped, __ATOMIC_RELAXED);
}

/* value[level] moves into value[level + 1]. */
static void carry(run *u, int level) {
    lm_strip *s = u->s;
    size_t nbytes = (size_t)u->width * 8;
    if (s->depth <= level) {
        memcpy(s->value[level + 1], s->value[level], nbytes);
        s->depth = level + 1;
    } else {
        lm_fold_merge(u->op, u->w->dtype, u->width, s->value[level + 1], NULL, s->value[level],
                      NULL);
    }
    memset(s->value[level], 0, nbytes);
}

/* After each block. Float sums of many blocks stay accurate by adding up in stages. */
static void count_block(run *u) {
    if (!is_sum(u->op) || !lm_dtype_is_float(u->w->dtype)) return;
    int64_t blocks = ++u->s->blocks;
    if (blocks % CASCADE == 0) carry(u, 0);
    if (blocks % (CASCADE * CASCADE) == 0) carry(u, 1);
}

static void collect(run *u) {
    for (int level = u->s->depth; level > 0; level--)
        lm_fold_merge(u->op, u->w->dtype, u->width, u->s->value[0], NULL, u->s->value[level], NULL);
}

/* Rows of few columns without gaps between them are folded several at a time, as one long row. */
static void call_wide(run *u, int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    _Alignas(64) double value[WIDE], param[WIDE];
    luma_dtype dtype = u->w->dtype;
    int64_t times = WIDE / n;
    size_t size = lm_fold_size(u->op, dtype);
    lm_fold g = {.value = value, .param = param, .at = f->at};
    lm_fold_start(u->op, dtype, n * times, value, NULL);
    for (int64_t i = 0; i < times; i++)
        memcpy(param + i * n, f->param, (size_t)n * sizeof *param);
    u->fn(m / times, n * times, x, sx * times, &g);
    for (int64_t i = 0; i < times; i++)
        lm_fold_merge(u->op, dtype, n, f->value, NULL, (char *)value + (size_t)(i * n) * size,
                      NULL);
    u->fn(m % times, n, x + m / times * times * sx, sx, f);
}

static void call(run *u, int64_t m, int64_t n, const char *x, int64_t sx, const lm_fold *f) {
    int64_t size = (int64_t)lm_dtype_size(u->w->dtype);
    if (u->w->by_columns && n <= WIDE / 8 && sx == n * size && m >= 2 * WIDE / n && !is_arg(u->op))
        call_wide(u, m, n, x, sx, f);
    else
        u->fn(m, n, x, sx, f);
}

/* ---- terms ---- */

/* A block of m rows and n columns at x as rows without gaps. */
static void gather_terms(const run *u, int64_t m, int64_t sm, int64_t n, int64_t sn, const char *x,
                         char *block) {
    const lm_walk *w = u->w;
    const lm_reduce_kernels *kernels = lm_level_now()->reduce;
    int64_t size = (int64_t)lm_dtype_size(w->dtype);
    double power = w->power;
    if (u->term == LM_TERM_SAME || w->stored != w->dtype || sn != size) {
        lm_block_gather(w->stored, w->dtype, m, sm, n, sn, x, block);
        if (u->term != LM_TERM_SAME) kernels->terms[w->dtype](u->term, m * n, block, block);
    } else {
        for (int64_t i = 0; i < m; i++)
            kernels->terms[w->dtype](u->term, n, x + i * sm, block + i * n * size);
    }
    if (u->term == LM_TERM_POWER)
        lm_level_now()->elementwise->map[LM_OP_pow][LUMA_FLOAT64](
            m * n, (char *const[]){block, block, (char *)&power}, (const int64_t[]){8, 8, 0},
            &(lm_params){.stream = false});
}

/* Folds a block of m rows and n columns into the results from `first` on. */
static void fold_block(run *u, int64_t m, int64_t sm, int64_t n, int64_t sn, const char *x,
                       int64_t at, int64_t first, int64_t step) {
    const lm_walk *w = u->w;
    int64_t size = (int64_t)lm_fold_size(u->op, w->dtype);
    char *value = (char *)u->s->value[0] + first * size;
    lm_fold f = {value, u->s->position + first, u->s->param + first, at, step};
    if (w->direct) {
        call(u, m, n, x, sm, &f);
        return;
    }
    _Alignas(64) char buffer[GATHERED * 8];
    int64_t wide = lm_min(n, GATHERED), tall = GATHERED / wide;
    bool as_it_is = u->of_terms && sn == (int64_t)lm_dtype_size(w->dtype);
    for (int64_t i = 0; i < m; i += tall) {
        for (int64_t k = 0; k < n; k += wide) {
            int64_t rows = lm_min(m - i, tall), columns = lm_min(n - k, wide);
            int64_t row = w->by_columns ? 0 : i * step;
            lm_fold g = {value + row * size, f.position + row, f.param + row,
                         at + (w->by_columns ? i : k), step};
            if (as_it_is) {
                u->of_terms(rows, columns, x + i * sm + k * sn, sm, &g);
                continue;
            }
            gather_terms(u, rows, sm, columns, sn, x + i * sm + k * sn, buffer);
            call(u, rows, columns, buffer, columns * (int64_t)lm_dtype_size(w->dtype), &g);
        }
    }
}

/* The innermost reduced dim down the columns of the strip. */
static void fold_columns(run *u, const lm_reduce_dim *r, const char *x, int64_t at) {
    const lm_reduce_dim *k = &u->w->kept[u->w->nkept - 1];
    int64_t rows = LEAF / u->width > LEAF_ROWS ? LEAF / u->width : LEAF_ROWS;
    for (int64_t i = 0; i < r->size && !stop(u); i += rows) {
        fold_block(u, lm_min(r->size - i, rows), r->x, u->width, k->x, x + i * r->x,
                   at + i * r->positions, 0, 0);
        count_block(u);
    }
}

/* Rows along the innermost reduced dim, one for each result of the strip. */
static void fold_kept_rows(run *u, const lm_reduce_dim *r, const char *x, int64_t at) {
    int64_t between = u->w->nkept ? u->w->kept[u->w->nkept - 1].x : 0;
    for (int64_t k = 0; k < r->size && !stop(u); k += LEAF) {
        fold_block(u, u->width, between, lm_min(r->size - k, LEAF), r->x, x + k * r->x,
                   at + k * r->positions, 0, 1);
        count_block(u);
    }
}

/* Rows along the innermost reduced dim, as many for each result as the next reduced dim has. */
static void fold_reduced_rows(run *u, const lm_reduce_dim *r, const char *x) {
    int64_t between = u->w->nkept ? u->w->kept[u->w->nkept - 1].x : 0;
    int64_t rows = lm_min(LEAF / r->size + 1, CASCADE); /* they add up one after the other */
    for (int64_t i = 0; i < u->rows.size && !stop(u); i += rows) {
        int64_t m = lm_min(u->rows.size - i, rows);
        for (int64_t j = 0; j < u->width; j++)
            fold_block(u, m, u->rows.x, r->size, r->x, x + i * u->rows.x + j * between, 0, j, 0);
        count_block(u);
    }
}

/* Whether the rows of blocks are better taken along the second reduced dim than along the strip. */
static bool rows_are_reduced(const lm_walk *w, lm_fold_op op) {
    if (w->by_columns || is_arg(op) || w->nreduced < 2) return false;
    const lm_reduce_dim *r = &w->reduced[w->nreduced - 1];
    return r[0].size <= LEAF && (w->nkept == 0 || r[-1].x < w->kept[w->nkept - 1].x);
}

void lm_fold_walk(lm_walk *w, lm_folding f, const char *x, int64_t width, lm_strip *s, int along,
                  int64_t lo, int64_t hi) {
    const lm_reduce_kernels *kernels = lm_level_now()->reduce;
    lm_fold_op op = f.op;
    run u = {.w = w, .op = op, .term = f.term, .width = width, .s = s};
    u.fn = (w->by_columns ? kernels->columns : kernels->rows)[op][w->dtype];
    if (op == LM_FOLD_SUM && !w->by_columns && w->stored == w->dtype && f.term < LM_TERM_POWER)
        u.of_terms = kernels->sums[f.term][w->dtype];
    s->blocks = s->depth = 0;
    lm_fold_start(op, w->dtype, width, s->value[0], s->position);

    lm_reduce_dim dims[LUMA_MAX_DIMS + 1] = {{.size = 1}};
    int n = w->nreduced;
    if (n > 0) memcpy(dims, w->reduced, (size_t)n * sizeof *dims);
    if (n > 0) dims[along].size = hi - lo;
    for (int d = 0; d < n; d++) {
        if (dims[d].size == 0) return;
    }
    int64_t at = n > 0 ? lo * dims[along].positions : 0;
    if (n > 0) x += lo * dims[along].x;
    u.reduced_rows = rows_are_reduced(w, op);
    if (u.reduced_rows) u.rows = dims[n - 2];
    int outer = n - 1 - u.reduced_rows;
    const lm_reduce_dim *inner = &dims[n > 0 ? n - 1 : 0];
    int64_t index[LUMA_MAX_DIMS] = {0};
    for (;;) {
        if (w->by_columns)
            fold_columns(&u, inner, x, at);
        else if (u.reduced_rows)
            fold_reduced_rows(&u, inner, x);
        else
            fold_kept_rows(&u, inner, x, at);
        int d = outer - 1;
        for (; d >= 0; d--) {
            x += dims[d].x;
            at += dims[d].positions;
            if (++index[d] < dims[d].size) break;
            x -= dims[d].size * dims[d].x;
            at -= dims[d].size * dims[d].positions;
            index[d] = 0;
        }
        if (d < 0 || stop(&u)) break;
    }
    collect(&u);
}
