/* iter.c -- the n-dimensional loops: planning, blocks, threads. Layer: core.
**
** A planned map is cut into blocks of rows (second last dim) by cols (last dim). Mostly a block is
** one piece of one row. Where an operand walks rows and columns in the other order, a block is a
** tile, and the operand is packed: copied row-major into a buffer in the first-level cache, so that
** each cache line is fetched once. Where rows are short, several make a block and operands that do
** not walk them as one are packed. Casts then work on contiguous pieces of up to LM_BLOCK. */
#include "iter.h"

#include <stdlib.h>

#include "pool.h"

#define GRAIN 32768    /* bytes of work that pay for another thread */
#define PIECE 65536    /* bytes of work between polls of the interrupt flag */
#define TILE_SIDE 64   /* at most, both ways */
#define SHORT_ROW 64   /* shorter ones are grouped */
#define FAR_STRIDE 64  /* bytes: every element on a cache line of its own */
#define ELEMENT_SIZE 8 /* of the widest dtype */

/* ---- planning ---- */

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Whether dim a belongs outside dim b: the first operand that moves along both decides. */
static bool is_outer(const lm_map *m, int a, int b) {
    for (int k = 0; k < m->noperands; k++) {
        int64_t x = distance(m->operand[k].stride[a]), y = distance(m->operand[k].stride[b]);
        if (x == 0 || y == 0 || x == y) continue;
        return x > y;
    }
    return false;
}

static void copy_dim(lm_map *m, int to, int from) {
    m->shape[to] = m->shape[from];
    for (int k = 0; k < m->noperands; k++)
        m->operand[k].stride[to] = m->operand[k].stride[from];
}

static void swap_dims(lm_map *m, int a, int b) {
    int64_t t = m->shape[a];
    m->shape[a] = m->shape[b];
    m->shape[b] = t;
    for (int k = 0; k < m->noperands; k++) {
        int64_t *s = m->operand[k].stride;
        t = s[a];
        s[a] = s[b];
        s[b] = t;
    }
}

static void turn_round(lm_map *m, int d) {
    for (int k = 0; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k];
        if (o->data) o->data += o->stride[d] * (m->shape[d] - 1);
        o->stride[d] = -o->stride[d];
    }
}

static bool mergeable(const lm_map *m, int outer, int inner) {
    for (int k = 0; k < m->noperands; k++) {
        const int64_t *s = m->operand[k].stride;
        if (s[outer] != s[inner] * m->shape[inner]) return false;
    }
    return true;
}

void lm_iter_plan(lm_map *m) {
    if (m->planned) return;
    int n = 0;
    for (int d = 0; d < m->ndim; d++) {
        if (m->shape[d] == 0) {
            m->ndim = 1;
            m->shape[0] = 0;
            return;
        }
        if (m->shape[d] == 1) continue;
        if (n != d) copy_dim(m, n, d);
        if (m->operand[0].stride[n] < 0) turn_round(m, n);
        n++;
    }
    for (int i = 1; i < n; i++) {
        for (int d = i; d > 0 && is_outer(m, d, d - 1); d--)
            swap_dims(m, d, d - 1);
    }
    int last = 0;
    for (int d = 1; d < n; d++) {
        if (mergeable(m, last, d)) {
            int64_t rows = m->shape[last];
            copy_dim(m, last, d);
            m->shape[last] *= rows;
        } else if (++last != d) {
            copy_dim(m, last, d);
        }
    }
    m->ndim = n == 0 ? 0 : last + 1;
}

/* ---- running ---- */

/* What the threads of one run share. */
typedef struct {
    const lm_map *m;
    lm_map_fn *fn;
    const lm_cast_kernels *casts;
    const luma_state *S;
    int noperands, nouter; /* dims before the last two */
    int64_t height, width; /* sizes of the last two dims */
    int64_t rows, cols;    /* of a block */
    int64_t down, across;  /* blocks along them */
    bool packed[LM_ITER_MAX];
    bool cast[LM_ITER_MAX];
    char *data[LM_ITER_MAX];
    int64_t row_stride[LM_ITER_MAX], col_stride[LM_ITER_MAX], size[LM_ITER_MAX];
    int stopped; /* atomic */
} iter_run;

/* The buffers of one thread. */
typedef struct {
    _Alignas(64) char pack[LM_ITER_MAX][LM_TILE];
    _Alignas(64) char cast[LM_ITER_MAX][LM_BLOCK * ELEMENT_SIZE];
    const char *source[LM_ITER_MAX]; /* what pack holds, */
    int64_t rows, cols;              /* in this shape */
} buffers;

/* Copies rows x cols elements between a strided place and a row-major buffer, along the dim that is
** nearer in memory, or longer. */
static void pack(const iter_run *r, int k, char *place, char *buffer, int64_t rows, int64_t cols,
                 bool back) {
    luma_dtype dtype = r->m->operand[k].dtype;
    lm_cast_fn *copy = r->casts->cast[dtype][dtype];
    int64_t size = r->size[k], rs = r->row_stride[k], cs = r->col_stride[k];
    bool by_columns = distance(rs) < distance(cs) || rows > cols;
    int64_t runs = by_columns ? cols : rows, n = by_columns ? rows : cols;
    int64_t place_run = by_columns ? cs : rs, place_step = by_columns ? rs : cs;
    int64_t buffer_run = by_columns ? size : cols * size;
    int64_t buffer_step = by_columns ? cols * size : size;
    for (int64_t i = 0; i < runs; i++, place += place_run, buffer += buffer_run) {
        if (back)
            copy(n, buffer, buffer_step, place, place_step);
        else
            copy(n, place, place_step, buffer, buffer_step);
    }
}

/* n elements of every operand in one line, with casts where they are due. */
static void run_line(const iter_run *r, buffers *b, int64_t n, char *const *p, const int64_t *s) {
    char *q[LM_ITER_MAX];
    int64_t t[LM_ITER_MAX];
    const lm_operand *o = r->m->operand;
    for (int k = 0; k < r->noperands; k++) {
        q[k] = p[k];
        t[k] = s[k];
        if (!r->cast[k]) continue;
        q[k] = b->cast[k];
        t[k] = k > 0 && s[k] == 0 ? 0 : (int64_t)lm_dtype_size(o[k].kernel);
        if (k > 0) r->casts->cast[o[k].dtype][o[k].kernel](t[k] ? n : 1, p[k], s[k], q[k], t[k]);
    }
    r->fn(n, q, t, &r->m->params);
    if (r->cast[0]) r->casts->cast[o[0].kernel][o[0].dtype](n, q[0], t[0], p[0], s[0]);
}

/* A block whose first elements are at `at`. */
static void run_block(const iter_run *r, buffers *b, char *const *at, int64_t rows, int64_t cols) {
    char *p[LM_ITER_MAX];
    int64_t rs[LM_ITER_MAX], cs[LM_ITER_MAX];
    bool line = true, casts = false;
    for (int k = 0; k < r->noperands; k++) {
        p[k] = at[k];
        rs[k] = r->row_stride[k];
        cs[k] = r->col_stride[k];
        if (r->packed[k]) {
            if (k > 0 && (b->source[k] != at[k] || b->rows != rows || b->cols != cols))
                pack(r, k, at[k], b->pack[k], rows, cols, false);
            b->source[k] = at[k];
            p[k] = b->pack[k];
            cs[k] = r->size[k];
            rs[k] = cols * cs[k];
        }
        if (rs[k] != cols * cs[k]) line = false;
        if (r->cast[k]) casts = true;
    }
    b->rows = rows;
    b->cols = cols;
    if (rows == 1 || (line && (!casts || rows * cols <= LM_BLOCK))) {
        run_line(r, b, rows * cols, p, cs);
    } else {
        for (int64_t i = 0; i < rows; i++) {
            run_line(r, b, cols, p, cs);
            for (int k = 0; k < r->noperands; k++)
                p[k] += rs[k];
        }
    }
    if (r->packed[0]) pack(r, 0, at[0], b->pack[0], rows, cols, true);
}

/* Blocks lo to hi - 1, counted along rows, then down, then through the outer dims. */
static void run_blocks(void *ctx, int64_t lo, int64_t hi) {
    iter_run *r = ctx;
    const lm_map *m = r->m;
    buffers b;
    for (int k = 0; k < r->noperands; k++)
        b.source[k] = NULL;
    for (int64_t i = lo; i < hi; i++) {
        if (__atomic_load_n(&r->stopped, __ATOMIC_RELAXED)) return;
        if (lm_interrupted(r->S)) {
            __atomic_store_n(&r->stopped, 1, __ATOMIC_RELAXED);
            return;
        }
        int64_t col = i % r->across * r->cols, rest = i / r->across;
        int64_t row = rest % r->down * r->rows;
        char *at[LM_ITER_MAX];
        for (int k = 0; k < r->noperands; k++)
            at[k] = r->data[k] + row * r->row_stride[k] + col * r->col_stride[k];
        rest /= r->down;
        for (int d = r->nouter - 1; d >= 0; d--) {
            int64_t j = rest % m->shape[d];
            rest /= m->shape[d];
            for (int k = 0; k < r->noperands; k++)
                at[k] += j * m->operand[k].stride[d];
        }
        int64_t rows = r->height - row, cols = r->width - col;
        run_block(r, &b, at, rows < r->rows ? rows : r->rows, cols < r->cols ? cols : r->cols);
    }
}

/* An operand that walks down in small steps and across in large ones. */
static bool is_transposed(const iter_run *r, int k) {
    int64_t rs = distance(r->row_stride[k]), cs = distance(r->col_stride[k]);
    return rs != 0 && rs < cs && cs >= FAR_STRIDE && r->height >= 8 && r->width >= 8;
}

static void choose_blocks(iter_run *r, int64_t cost) {
    bool casts = false, tiles = false;
    int64_t widest = 1;
    for (int k = 0; k < r->noperands; k++) {
        if (r->cast[k]) casts = true;
        if (r->size[k] > widest) widest = r->size[k];
        r->packed[k] = is_transposed(r, k);
        if (r->packed[k]) tiles = true;
    }
    if (tiles) {
        r->cols = r->width < TILE_SIDE ? r->width : TILE_SIDE;
        r->rows = LM_TILE / (widest * r->cols);
        if (r->rows > TILE_SIDE) r->rows = TILE_SIDE;
    } else if (r->width < SHORT_ROW && r->height > 1) {
        r->cols = r->width;
        r->rows = LM_BLOCK / r->cols;
        for (int k = 0; k < r->noperands; k++)
            r->packed[k] = r->row_stride[k] != r->width * r->col_stride[k];
    } else {
        r->rows = 1;
        r->cols = PIECE / cost & ~(int64_t)63;
        if (r->cols < SHORT_ROW) r->cols = SHORT_ROW;
        if (casts && r->cols > LM_BLOCK) r->cols = LM_BLOCK;
    }
    if (r->rows > r->height) r->rows = r->height;
    if (r->cols > r->width) r->cols = r->width;
    r->down = (r->height + r->rows - 1) / r->rows;
    r->across = (r->width + r->cols - 1) / r->cols;
}

/* One dim without casts that is too small for threads. */
static bool run_small(lm_map *m, lm_map_fn *fn, int64_t cost) {
    if (m->ndim > 1) return false;
    int64_t n = m->ndim == 0 ? 1 : m->shape[0], s[LM_ITER_MAX];
    char *p[LM_ITER_MAX];
    if (n > GRAIN / cost) return false;
    if (n == 0) return true;
    for (int k = 0; k < m->noperands; k++) {
        const lm_operand *o = &m->operand[k];
        if (o->dtype != o->kernel) return false;
    }
    for (int k = 0; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k];
        p[k] = o->data ? o->data : o->value.bytes;
        s[k] = m->ndim == 0 || !o->data ? 0 : o->stride[0];
    }
    fn(n, p, s, &m->params);
    return true;
}

luma_status lm_iter_run(luma_state *S, lm_map *m, lm_map_fn *fn, const lm_cast_kernels *casts,
                        int64_t cost) {
    if (run_small(m, fn, cost)) return LUMA_OK;
    iter_run r = {.m = m, .fn = fn, .casts = casts, .S = S, .noperands = m->noperands};
    int last = m->ndim - 1;
    int64_t numel = 1;
    for (int d = 0; d < m->ndim; d++)
        numel *= m->shape[d];
    if (numel == 0) return LUMA_OK;
    r.nouter = last < 1 ? 0 : last - 1;
    r.height = last < 1 ? 1 : m->shape[last - 1];
    r.width = last < 0 ? 1 : m->shape[last];
    for (int k = 0; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k];
        r.cast[k] = o->dtype != o->kernel;
        r.data[k] = o->data ? o->data : o->value.bytes;
        r.size[k] = (int64_t)lm_dtype_size(o->dtype);
        r.row_stride[k] = last < 1 ? 0 : o->stride[last - 1];
        r.col_stride[k] = last < 0 ? 0 : o->stride[last];
    }
    choose_blocks(&r, cost);
    int64_t blocks = numel / (r.height * r.width) * r.down * r.across;
    int64_t work = r.rows * r.cols * cost;
    lm_parallel(blocks, (GRAIN + work - 1) / work, run_blocks, &r);
    return r.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
