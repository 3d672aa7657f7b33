/* normalize.c -- the normalize slot: statistics of lines in double, then one pass that writes.
** Short lines go several at a time, few and long ones in pieces. Layer: kernels/cpu. */
#include <math.h>
#include <string.h>

#include "block.h"
#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define BLOCK 4096       /* elements that are read, or gathered, at a time */
#define WIDTH 64         /* lines that go together at most */
#define FEW_LINES 8      /* fewer lines than this, and */
#define PIECE 65536      /* at least twice so many elements: lines are cut into pieces */
#define TASK_GRAIN 16384 /* elements of the smallest task */

typedef enum { ALL, SUMS, SQUARES, RESULT } phase;

typedef struct {
    luma_state *S;
    lm_normalize_kind kind;
    double eps;
    luma_dtype stored, dtype; /* of x and out; of the kernels */
    int64_t size, dsize;      /* bytes of either */
    bool direct;              /* the kernels read and write in place */
    const char *x, *w, *b;
    char *y;
    int nlines; /* dims of lines, outermost first; steps in elements */
    int64_t shape[LUMA_MAX_DIMS], x_step[LUMA_MAX_DIMS], y_step[LUMA_MAX_DIMS];
    int64_t w_step[LUMA_MAX_DIMS];
    int64_t lines, n;                 /* n: elements of a line: */
    int64_t run, x_run, y_run, w_run; /* runs side by side, and the steps between them */
    int64_t w_along;                  /* 0 or 1 */
    int64_t width, strips_per_run, strips;
    int64_t pieces, piece;
    phase phase;            /* of lines in pieces: */
    double *sums, *squares; /* [line][piece]; sums become means, squares scales, in piece 0 */
    bool stopped;           /* by the interrupt flag; atomic */
} job;

/* Some lines that lie at one distance, first elements. */
typedef struct {
    int64_t first, width;
    const char *x, *w, *b;
    char *y;
    double mean[WIDTH], scale[WIDTH];
} strip;

typedef struct {
    _Alignas(64) char in[BLOCK * 8], out[BLOCK * 8];
} buffers;

static bool stop(job *j) {
    if (lm_interrupted(j->S)) __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&j->stopped, __ATOMIC_RELAXED);
}

/* ---- walking ---- */

static void set_strip(const job *j, int64_t i, strip *s) {
    int inner = j->nlines - 1;
    int64_t outer = i / j->strips_per_run, at = i % j->strips_per_run * j->width;
    int64_t x = at * j->x_step[inner], y = at * j->y_step[inner], w = at * j->w_step[inner];
    s->first = outer * j->shape[inner] + at;
    s->width = lm_min(j->width, j->shape[inner] - at);
    for (int d = inner - 1; d >= 0; d--) {
        int64_t index = outer % j->shape[d];
        outer /= j->shape[d];
        x += index * j->x_step[d];
        y += index * j->y_step[d];
        w += index * j->w_step[d];
    }
    s->x = j->x + x * j->size;
    s->y = j->y + y * j->size;
    s->w = j->w ? j->w + w * j->dsize : NULL;
    s->b = j->b ? j->b + w * j->dsize : NULL;
}

/* Elements `at` to at + n - 1 of the lines of a strip, in one run: where they are for the kernels.
** Those of lines that fit a buffer stay in it. */
typedef struct {
    int64_t at, n;
    int64_t x, y, w; /* offsets in elements from the first of the line */
    const char *from;
    int64_t step; /* bytes between lines */
} chunk;

static bool next_chunk(job *j, chunk *c, int64_t to) {
    c->at += c->n;
    if (c->at >= to || stop(j)) return false;
    int64_t run = c->at / j->run, in = c->at - run * j->run;
    c->n = lm_min(lm_min(j->run - in, BLOCK / j->width), to - c->at);
    c->x = run * j->x_run + in;
    c->y = run * j->y_run + in;
    c->w = run * j->w_run + in * j->w_along;
    return true;
}

static void load(const job *j, const strip *s, chunk *c, char *buffer, bool first) {
    int64_t step = j->x_step[j->nlines - 1] * j->size;
    c->from = s->x + c->x * j->size;
    c->step = step;
    if (j->direct) return;
    bool held = j->n * j->width <= BLOCK;
    char *to = buffer + (held && s->width == 1 ? c->at * j->dsize : 0);
    if (first || !held)
        lm_block_gather(j->stored, j->dtype, s->width, step, c->n, j->size, c->from, to);
    c->from = to;
    c->step = c->n * j->dsize;
}

/* ---- statistics ---- */

static void fold(job *j, const strip *s, int64_t lo, int64_t hi, buffers *t, lm_fold_op op,
                 const double *center, double *value, bool first) {
    lm_fold_fn *fn = lm_level_now()->reduce->rows[op][j->dtype];
    lm_fold f = {.value = value, .param = center, .step = 1};
    memset(value, 0, (size_t)s->width * sizeof *value);
    for (chunk c = {.at = lo}; next_chunk(j, &c, hi);) {
        load(j, s, &c, t->in, first);
        fn(s->width, c.n, c.from, c.step, &f);
    }
}

static double scale_of(const job *j, double squares) {
    return 1 / sqrt(squares / (double)j->n + j->eps);
}

static void find_statistics(job *j, strip *s, buffers *t) {
    bool rms = j->kind == LM_NORMALIZE_RMS;
    for (int64_t i = 0; i < s->width; i++) {
        s->mean[i] = 0;
        s->scale[i] = 1;
    }
    if (j->kind == LM_NORMALIZE_AFFINE) return;
    if (!rms) fold(j, s, 0, j->n, t, LM_FOLD_SUM, NULL, s->mean, true);
    for (int64_t i = 0; i < s->width; i++)
        s->mean[i] /= (double)j->n;
    fold(j, s, 0, j->n, t, LM_FOLD_SQUARES, s->mean, s->scale, rms);
    for (int64_t i = 0; i < s->width; i++)
        s->scale[i] = scale_of(j, s->scale[i]);
}

/* ---- results ---- */

static void write_result(job *j, const strip *s, int64_t lo, int64_t hi, buffers *t, bool first) {
    lm_normal l = {.mean = s->mean,
                   .scale = s->scale,
                   .row = j->w_step[j->nlines - 1],
                   .step = s->w || s->b ? j->w_along : 0};
    int64_t step = j->y_step[j->nlines - 1] * j->size;
    for (chunk c = {.at = lo}; next_chunk(j, &c, hi);) {
        char *y = s->y + c.y * j->size;
        load(j, s, &c, t->in, first);
        l.weight = s->w ? s->w + c.w * j->dsize : NULL;
        l.bias = s->b ? s->b + c.w * j->dsize : NULL;
        lm_level_now()->normalize->apply[j->dtype](s->width, c.n, c.from, c.step,
                                                   j->direct ? y : t->out,
                                                   j->direct ? step : c.n * j->dsize, &l);
        if (!j->direct)
            lm_block_scatter(j->dtype, j->stored, s->width, step, c.n, j->size, t->out, y);
    }
}

static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    buffers t;
    strip s;
    for (int64_t i = lo; i < hi && !stop(j); i++) {
        set_strip(j, i, &s);
        find_statistics(j, &s, &t);
        write_result(j, &s, 0, j->n, &t, j->kind == LM_NORMALIZE_AFFINE);
    }
}

/* ---- lines in pieces ---- */

/* Task i: piece i % pieces of line i / pieces. */
static void run_pieces(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    buffers t;
    strip s;
    for (int64_t i = lo; i < hi && !stop(j); i++) {
        int64_t line = i / j->pieces, from = i % j->pieces * j->piece;
        int64_t to = lm_min(from + j->piece, j->n);
        double *mean = j->sums + line * j->pieces;
        set_strip(j, line, &s);
        if (j->phase == SUMS) {
            fold(j, &s, from, to, &t, LM_FOLD_SUM, NULL, j->sums + i, true);
        } else if (j->phase == SQUARES) {
            fold(j, &s, from, to, &t, LM_FOLD_SQUARES, mean, j->squares + i, true);
        } else {
            s.mean[0] = *mean;
            s.scale[0] = j->squares[line * j->pieces];
            write_result(j, &s, from, to, &t, true);
        }
    }
}

/* Into the first piece of every line. */
static void unite_pieces(job *j) {
    double *all = j->phase == SUMS ? j->sums : j->squares;
    for (int64_t i = 0; i < j->lines; i++) {
        double *line = all + i * j->pieces, sum = 0;
        for (int64_t k = 0; k < j->pieces; k++)
            sum += line[k];
        *line = j->phase == SUMS ? sum / (double)j->n : scale_of(j, sum);
    }
}

static luma_status run_long(job *j) {
    lm_storage *scratch;
    int64_t cells = j->lines * j->pieces;
    LM_TRY(lm_storage_new(j->S, lm_cpu(j->S), (size_t)cells * 2 * sizeof(double), &scratch));
    j->sums = (double *)(void *)scratch->data;
    j->squares = j->sums + cells;
    for (int64_t i = 0; i < cells; i++) {
        j->sums[i] = 0;
        j->squares[i] = 1;
    }
    j->phase = j->kind == LM_NORMALIZE_AFFINE ? RESULT
               : j->kind == LM_NORMALIZE_RMS  ? SQUARES
                                              : SUMS;
    for (; j->phase <= RESULT && !j->stopped; j->phase++) {
        lm_parallel(j->S->threads, cells, 1, run_pieces, j);
        if (!j->stopped && j->phase < RESULT) unite_pieces(j);
    }
    lm_storage_release(scratch);
    return LUMA_OK;
}

/* ---- the plan ---- */

static void add_line_dim(job *j, int64_t size, int64_t x, int64_t y, int64_t w) {
    int k = j->nlines - 1;
    if (size == 1) return;
    if (k >= 0 && j->x_step[k] == size * x && j->y_step[k] == size * y &&
        j->w_step[k] == size * w) {
        size *= j->shape[k];
    } else {
        k = j->nlines++;
    }
    j->shape[k] = size;
    j->x_step[k] = x;
    j->y_step[k] = y;
    j->w_step[k] = w;
}

static void plan(job *j, const lm_normalize *c) {
    const luma_layout *x = &c->x.layout, *y = &c->out.layout;
    const luma_layout *w = c->weight.storage ? &c->weight.layout
                           : c->bias.storage ? &c->bias.layout
                                             : NULL;
    int last = x->ndim - 1;
    for (int d = 0; d < x->ndim - c->along; d++)
        add_line_dim(j, x->shape[d], x->stride[d], y->stride[d], w ? w->stride[d] : 0);
    if (j->nlines == 0) j->shape[j->nlines++] = 1;
    j->run = j->n = x->shape[last];
    j->w_along = w && x->shape[last] > 1 ? w->stride[last] : 0;
    if (c->along == 2) {
        j->n *= x->shape[last - 1];
        j->x_run = x->stride[last - 1];
        j->y_run = y->stride[last - 1];
        j->w_run = w ? w->stride[last - 1] : 0;
    }
    j->lines = 1;
    for (int d = 0; d < j->nlines; d++)
        j->lines *= j->shape[d];
    int64_t inner = j->shape[j->nlines - 1];
    j->pieces = 1;
    j->piece = j->n;
    j->width = j->run == j->n && j->n < BLOCK ? lm_min(lm_min(BLOCK / j->n, WIDTH), inner) : 1;
    if (j->lines < FEW_LINES && j->n >= 2 * PIECE) {
        j->width = 1;
        j->piece = PIECE;
        j->pieces = lm_ceil_div(j->n, PIECE);
    }
    j->strips_per_run = lm_ceil_div(inner, j->width);
    j->strips = j->lines / inner * j->strips_per_run;
}

luma_status lm_cpu_normalize(luma_state *S, lm_device *d, const lm_normalize *c) {
    luma_dtype dtype = lm_dtype_accumulator(c->x.dtype);
    job j = {.S = S,
             .kind = c->kind,
             .eps = c->eps,
             .stored = c->x.dtype,
             .dtype = dtype,
             .size = (int64_t)lm_dtype_size(c->x.dtype),
             .dsize = (int64_t)lm_dtype_size(dtype),
             .direct = c->x.dtype == dtype,
             .x = lm_data(&c->x),
             .y = lm_data(&c->out),
             .w = c->weight.storage ? lm_data(&c->weight) : NULL,
             .b = c->bias.storage ? lm_data(&c->bias) : NULL};
    (void)d;
    plan(&j, c);
    int64_t work = j.width * j.n;
    if (j.pieces > 1)
        LM_TRY(run_long(&j));
    else
        lm_parallel(S->threads, j.strips, work < TASK_GRAIN ? lm_ceil_div(TASK_GRAIN, work) : 1,
                    run_strips, &j);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
