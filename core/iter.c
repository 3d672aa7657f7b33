/* iter.c -- the n-dimensional loops: planning, blocks, threads. Layer: core.
**
** A planned map is cut into blocks of rows (second last dim) by cols (last dim). Mostly a block is
** one piece of one row. Where an operand walks rows and columns in the other order, a block is a
** tile, and the operand is packed: copied row-major into a buffer in the first-level cache, so that
** each cache line is fetched once. Where rows are short, several make a block, and operands that do
** not walk them as one are packed. Kernels then run over lines: pieces whose elements stand side by
** side, or repeat one element; what does not, or has another dtype, passes through a buffer. */
#include "iter.h"

#include <string.h>

#include "pool.h"

#define GRAIN 32768             /* bytes of work that pay for another thread */
#define PIECE 65536             /* bytes of work between polls of the interrupt flag, */
#define PIECE_ALONE (4 * PIECE) /* and where there is nobody to share it with */
#define SHORT_ROW 64            /* elements; shorter rows are grouped */
#define FEW 128                 /* elements that are not worth grouping */
#define FAR 64                  /* bytes: every element on a cache line of its own */
#define SCATTERED 16            /* elements that a kernel may walk with strides of any kind */
#define STREAM_FROM (16 << 20)  /* bytes of operand 0 */
#define BUFFER (LM_TILE_ROWS * LM_TILE_BYTES)

_Static_assert(BUFFER >= LM_CAST_BLOCK * 8, "a buffer holds a block of the widest elements");

/* ---- planning ---- */

/* Whether dim a belongs outside dim b: the first operand that moves along both decides. */
static bool is_outer(const lm_map *m, int a, int b) {
    for (int k = 0; k < m->noperands; k++) {
        int64_t x = lm_abs(m->operand[k].stride[a]), y = lm_abs(m->operand[k].stride[b]);
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
    const lm_copy_kernels *copies;
    const luma_state *S;
    int noperands, nouter; /* dims before the last two */
    int64_t height, width; /* sizes of the last two dims */
    int64_t rows, cols;    /* of a block */
    int64_t down, across;  /* blocks along them */
    bool plain;            /* lines go to the kernel as they are */
    bool packed[LM_ITER_MAX];
    char *data[LM_ITER_MAX];
    int64_t row_stride[LM_ITER_MAX], col_stride[LM_ITER_MAX], size[LM_ITER_MAX];
    int stopped; /* atomic */
} iter_run;

/* The buffers of one thread, one of each kind per operand. */
typedef struct {
    _Alignas(64) char pack[LM_ITER_MAX][BUFFER];
    _Alignas(64) char cast[LM_ITER_MAX][LM_CAST_BLOCK * 8];
    _Alignas(64) char tile[BUFFER];
    const char *source[LM_ITER_MAX]; /* what pack holds, */
    int64_t rows, cols;              /* in this shape */
} buffers;

static lm_cast_fn *mover(const iter_run *r, int k) {
    return r->copies->move[__builtin_ctzll((unsigned long long)r->size[k])];
}

/* rows x cols elements that lie column by column, or nearly so, to a row-major buffer. */
static void pack_columns(const iter_run *r, int k, const char *place, buffers *b, int64_t rows,
                         int64_t cols) {
    lm_cast_fn *move = mover(r, k);
    int64_t size = r->size[k];
    if (rows <= LM_TILE_BYTES / size && cols <= LM_TILE_ROWS) {
        for (int64_t i = 0; i < cols; i++)
            move(rows, place + i * r->col_stride[k], r->row_stride[k], b->tile + i * LM_TILE_BYTES,
                 size);
        r->copies->transpose[__builtin_ctzll((unsigned long long)size)](
            cols, rows, b->tile, b->pack[k], cols * size, false);
    } else {
        for (int64_t i = 0; i < cols; i++)
            move(rows, place + i * r->col_stride[k], r->row_stride[k], b->pack[k] + i * size,
                 cols * size);
    }
}

/* Between a strided place and the row-major buffer of operand k, along the longer dim. */
static void pack(const iter_run *r, int k, char *place, buffers *b, int64_t rows, int64_t cols,
                 bool back) {
    lm_cast_fn *move = mover(r, k);
    int64_t size = r->size[k], rs = r->row_stride[k], cs = r->col_stride[k];
    bool by_columns = rows > cols;
    int64_t runs = by_columns ? cols : rows, n = by_columns ? rows : cols;
    int64_t place_run = by_columns ? cs : rs, place_step = by_columns ? rs : cs;
    int64_t buffer_run = by_columns ? size : cols * size;
    int64_t buffer_step = by_columns ? cols * size : size;
    char *buffer = b->pack[k];
    for (int64_t i = 0; i < runs; i++, place += place_run, buffer += buffer_run) {
        if (back)
            move(n, buffer, buffer_step, place, place_step);
        else
            move(n, place, place_step, buffer, buffer_step);
    }
}

/* n elements of every operand in one line, cast and side by side as the kernel wants them. */
static void run_line(const iter_run *r, buffers *b, int64_t n, char *const *p, const int64_t *s) {
    char *q[LM_ITER_MAX];
    int64_t t[LM_ITER_MAX];
    const lm_operand *o = r->m->operand;
    for (int k = 1; k < r->noperands; k++) {
        q[k] = p[k];
        t[k] = s[k];
        if (t[k] != 0 && t[k] != r->size[k]) {
            mover(r, k)(n, q[k], t[k], b->pack[k], r->size[k]);
            q[k] = b->pack[k];
            t[k] = r->size[k];
        }
        if (o[k].dtype != o[k].kernel) {
            lm_cast_fn *cast = r->casts->cast[o[k].dtype][o[k].kernel];
            int64_t size = (int64_t)lm_dtype_size(o[k].kernel);
            cast(t[k] ? n : 1, q[k], r->size[k], b->cast[k], size);
            q[k] = b->cast[k];
            t[k] = t[k] ? size : 0;
        }
    }
    bool cast = o[0].dtype != o[0].kernel, scattered = s[0] != 0 && s[0] != r->size[0];
    q[0] = cast ? b->cast[0] : scattered ? b->pack[0] : p[0];
    t[0] = s[0] == 0 ? 0 : (int64_t)lm_dtype_size(o[0].kernel);
    r->fn(n, q, t, &r->m->params);
    if (cast) {
        char *to = scattered ? b->pack[0] : p[0];
        r->casts->cast[o[0].kernel][o[0].dtype](n, q[0], t[0], to, r->size[0]);
    }
    if (scattered) mover(r, 0)(n, b->pack[0], r->size[0], p[0], s[0]);
}

/* A block whose first elements are at `at`. */
static void run_block(const iter_run *r, buffers *b, char *const *at, int64_t rows, int64_t cols) {
    char *p[LM_ITER_MAX];
    int64_t rs[LM_ITER_MAX], cs[LM_ITER_MAX];
    bool line = true;
    for (int k = 0; k < r->noperands; k++) {
        p[k] = at[k];
        rs[k] = r->row_stride[k];
        cs[k] = r->col_stride[k];
        if (r->packed[k]) {
            bool held = b->source[k] == at[k] && b->rows == rows && b->cols == cols;
            if (k > 0 && !held && lm_abs(rs[k]) < lm_abs(cs[k]))
                pack_columns(r, k, at[k], b, rows, cols);
            else if (k > 0 && !held)
                pack(r, k, at[k], b, rows, cols, false);
            b->source[k] = at[k];
            p[k] = b->pack[k];
            cs[k] = r->size[k];
            rs[k] = cols * cs[k];
        }
        if (rs[k] != cols * cs[k]) line = false;
    }
    b->rows = rows;
    b->cols = cols;
    /* one line in pieces that buffers hold, or row by row */
    int64_t total = rows * cols, n = line && rows > 1 ? LM_CAST_BLOCK : cols;
    for (int64_t i = 0; i < total; i += n) {
        run_line(r, b, total - i < n ? total - i : n, p, cs);
        for (int k = 0; k < r->noperands; k++)
            p[k] += line ? n * cs[k] : rs[k];
    }
    if (r->packed[0]) pack(r, 0, at[0], b, rows, cols, true);
}

static void run_plain_block(const iter_run *r, char **at, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        r->fn(cols, at, r->col_stride, &r->m->params);
        for (int k = 0; k < r->noperands; k++)
            at[k] += r->row_stride[k];
    }
}

/* Where block i begins: along rows first, then down, then through the outer dims. */
static void place_block(const iter_run *r, int64_t i, int64_t *row, int64_t *col, char **at) {
    *col = i % r->across * r->cols;
    i /= r->across;
    *row = i % r->down * r->rows;
    i /= r->down;
    for (int k = 0; k < r->noperands; k++)
        at[k] = r->data[k] + *row * r->row_stride[k] + *col * r->col_stride[k];
    for (int d = r->nouter - 1; d >= 0; d--) {
        int64_t step = i % r->m->shape[d];
        i /= r->m->shape[d];
        for (int k = 0; k < r->noperands; k++)
            at[k] += step * r->m->operand[k].stride[d];
    }
}

static void run_blocks(void *ctx, int64_t lo, int64_t hi) {
    iter_run *r = ctx;
    buffers b;
    memset(b.source, 0, sizeof b.source);
    for (int64_t i = lo; i < hi; i++) {
        if (__atomic_load_n(&r->stopped, __ATOMIC_RELAXED)) return;
        if (lm_interrupted(r->S)) {
            __atomic_store_n(&r->stopped, 1, __ATOMIC_RELAXED);
            return;
        }
        int64_t row, col;
        char *at[LM_ITER_MAX];
        place_block(r, i, &row, &col, at);
        int64_t rows = r->height - row, cols = r->width - col;
        if (rows > r->rows) rows = r->rows;
        if (cols > r->cols) cols = r->cols;
        if (r->plain)
            run_plain_block(r, at, rows, cols);
        else
            run_block(r, &b, at, rows, cols);
    }
    /* what lines have sent past the caches is there before anybody hears of it */
    if (r->m->params.stream) r->copies->stream(0, b.tile, b.tile);
}

/* ---- choosing blocks ---- */

/* An operand that walks down in small steps and across in large ones. */
static bool is_transposed(const iter_run *r, int k) {
    int64_t rs = lm_abs(r->row_stride[k]), cs = lm_abs(r->col_stride[k]);
    return rs != 0 && rs < cs && cs >= FAR && r->height >= 8 && r->width >= 8;
}

/* Whether kernels take every line as it is: no casts, elements side by side, repeated or few. */
static bool is_plain(const iter_run *r) {
    for (int k = 0; k < r->noperands; k++) {
        const lm_operand *o = &r->m->operand[k];
        int64_t s = r->col_stride[k];
        if (o->dtype != o->kernel) return false;
        if (s != 0 && s != r->size[k] && r->width > SCATTERED) return false;
    }
    return true;
}

static void choose_blocks(iter_run *r, int64_t cost) {
    bool tiles = false, plain = is_plain(r);
    int64_t widest = 1;
    for (int k = 0; k < r->noperands; k++) {
        if (r->size[k] > widest) widest = r->size[k];
        r->packed[k] = k > 0 && is_transposed(r, k);
        if (r->packed[k]) tiles = true;
    }
    if (tiles) {
        r->cols = r->width < LM_TILE_ROWS ? r->width : LM_TILE_ROWS;
        r->rows = LM_TILE_BYTES / widest;
        if (r->rows > LM_TILE_ROWS) r->rows = LM_TILE_ROWS;
        /* a tile that is cast is better one line than many short ones */
        for (int k = 0; k < r->noperands; k++)
            if (!plain && r->row_stride[k] != r->cols * r->col_stride[k]) r->packed[k] = true;
    } else if (r->width < SHORT_ROW && r->height * r->width > FEW) {
        r->cols = r->width;
        r->rows = LM_CAST_BLOCK / r->cols;
        for (int k = 0; k < r->noperands; k++)
            r->packed[k] = r->row_stride[k] != r->width * r->col_stride[k];
    } else {
        bool alone = r->S->threads == 1 || lm_pool_threads() == 1;
        int64_t piece = (alone ? PIECE_ALONE : PIECE) / cost / SHORT_ROW * SHORT_ROW;
        if (piece < SHORT_ROW) piece = SHORT_ROW;
        r->plain = plain;
        r->cols = plain || piece < LM_CAST_BLOCK ? piece : LM_CAST_BLOCK;
        r->rows = r->width < piece ? piece / r->width : 1;
    }
    if (r->rows > r->height) r->rows = r->height;
    if (r->cols > r->width) r->cols = r->width;
    r->down = (r->height + r->rows - 1) / r->rows;
    r->across = (r->width + r->cols - 1) / r->cols;
}

/* A block of two very short dims would be small: the longest of the outer ones takes its part. */
static void lengthen_rows(lm_map *m) {
    int last = m->ndim - 1, longest = last - 1;
    if (m->ndim < 3 || m->shape[last] >= SHORT_ROW ||
        m->shape[last] * m->shape[last - 1] >= 4 * SHORT_ROW)
        return;
    for (int d = last - 2; d >= 0; d--) {
        if (m->shape[d] > m->shape[longest]) longest = d;
    }
    if (longest != last - 1) swap_dims(m, longest, last - 1);
}

/* Large results pass the caches by, where each line of theirs is whole and nothing reads it. */
static bool wants_stream(const lm_map *m, int64_t numel) {
    const lm_operand *o = &m->operand[0];
    int64_t size = (int64_t)lm_dtype_size(o->dtype);
    if (numel < STREAM_FROM / size || o->dtype != o->kernel || (uintptr_t)o->data % 64)
        return false;
    if (o->stride[m->ndim - 1] != size) return false;
    for (int d = 0; d < m->ndim - 1; d++) {
        if (o->stride[d] % 64) return false;
    }
    for (int k = 1; k < m->noperands; k++) {
        if (m->operand[k].data == o->data) return false;
    }
    return true;
}

/* One dim without casts that is too small for threads. */
static bool run_small(lm_map *m, lm_map_fn *fn, int64_t cost) {
    if (m->ndim > 1) return false;
    int64_t n = m->ndim == 0 ? 1 : m->shape[0], s[LM_ITER_MAX];
    char *p[LM_ITER_MAX];
    if (n > GRAIN / cost) return false;
    if (n == 0) return true;
    for (int k = 0; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k];
        int64_t size = (int64_t)lm_dtype_size(o->kernel);
        if (o->dtype != o->kernel) return false;
        p[k] = o->data ? o->data : o->value.bytes;
        s[k] = m->ndim == 0 || !o->data ? 0 : o->stride[0];
        if (n == 1) s[k] = size;
        if (n > SCATTERED && s[k] != 0 && s[k] != size) return false;
    }
    fn(n, p, s, &m->params);
    return true;
}

luma_status lm_iter_run(luma_state *S, lm_map *m, lm_map_fn *fn, const lm_cast_kernels *casts,
                        const lm_copy_kernels *copies, int64_t cost) {
    bool stream = m->params.stream;
    m->params.stream = false;
    if (run_small(m, fn, cost)) return LUMA_OK;
    int64_t numel = 1;
    for (int d = 0; d < m->ndim; d++)
        numel *= m->shape[d];
    if (numel == 0) return LUMA_OK;
    lengthen_rows(m);
    iter_run r = {.m = m, .fn = fn, .casts = casts, .copies = copies, .S = S};
    int last = m->ndim - 1;
    r.noperands = m->noperands;
    r.nouter = last < 1 ? 0 : last - 1;
    r.height = last < 1 ? 1 : m->shape[last - 1];
    r.width = last < 0 ? 1 : m->shape[last];
    for (int k = 0; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k];
        r.data[k] = o->data ? o->data : o->value.bytes;
        r.size[k] = (int64_t)lm_dtype_size(o->dtype);
        r.row_stride[k] = last < 1 || !o->data ? 0 : o->stride[last - 1];
        r.col_stride[k] = last < 0 || !o->data ? 0 : o->stride[last];
    }
    choose_blocks(&r, cost);
    m->params.stream = stream && last >= 0 && wants_stream(m, numel);
    int64_t blocks = numel / (r.height * r.width) * r.down * r.across;
    int64_t work = r.rows * r.cols * cost;
    lm_parallel(S->threads, blocks, (GRAIN + work - 1) / work, run_blocks, &r);
    return r.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
