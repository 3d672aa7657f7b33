/* softmax.c -- softmax and log_softmax: the greatest of each line, exponentials below it and their
** sum, then a factor or a shift. Layer: kernels/cpu. */
#include <math.h>
#include <string.h>

#include "fold.h"
#include "keys.h"
#include "op.h"
#include "pool.h"
#include "scan.h"

#define BLOCK_BYTES 32768 /* of any block: 4096 elements in place */

/* Of each line of a strip. */
typedef struct {
    _Alignas(64) double greatest[LM_SCAN_WIDTH]; /* keys while it is looked for */
    double sum[LM_SCAN_WIDTH];
    double last[LM_SCAN_WIDTH]; /* the factor, or the logarithm of the sum */
} state;

/* Where blocks are gathered, and exponentials put that are not the result. */
typedef struct {
    _Alignas(64) char in[LM_SCAN_BLOCK * 8], out[BLOCK_BYTES];
} buffers;

typedef enum { GREATEST, SUM, RESULT } pass;

typedef struct {
    lm_lines l;
    bool log;
    /* of lines in pieces: */
    pass pass;
    double *greatest, *sum; /* [piece][line]; piece 0 takes what all have */
} job;

static void find_greatest(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, buffers *t,
                          state *v) {
    lm_lines *l = &j->l;
    const lm_reduce_kernels *kernels = lm_level_now()->reduce;
    lm_fold_fn *fold = (l->by_columns ? kernels->columns : kernels->rows)[LM_FOLD_MAX][l->dtype];
    lm_fold f = {.value = v->greatest, .step = 1};
    lm_scan_block a;
    lm_fold_start(LM_FOLD_MAX, l->dtype, s->width, v->greatest, NULL);
    for (int64_t at = lo; at < hi && !lm_lines_stop(l); at += l->block) {
        const char *x = lm_lines_load(l, s, at, hi - at < l->block ? hi - at : l->block, t->in, &a);
        fold(a.rows, a.columns, x, a.step, &f);
    }
}

/* From keys, in place: those of float32 take half the room and so are read before they go. */
static void set_greatest(const job *j, int64_t n, double *greatest) {
    for (int64_t i = n - 1; i >= 0; i--) {
        int32_t narrow;
        int64_t wide;
        memcpy(&narrow, (char *)greatest + i * 4, sizeof narrow);
        memcpy(&wide, greatest + i, sizeof wide);
        greatest[i] =
            j->l.dtype == LUMA_FLOAT32 ? (double)lm_unkey_f32(narrow) : lm_unkey_f64(wide);
    }
}

/* Exponentials of a block: where softmax writes in place they stay as its result to be scaled. */
static void take_exps(job *j, const lm_scan_strip *s, int64_t at, int64_t n, buffers *t, state *v) {
    lm_lines *l = &j->l;
    lm_scan_block a, b;
    const char *x = lm_lines_load(l, s, at, n, t->in, &a);
    char *y = t->out;
    b.step = a.columns * (int64_t)lm_dtype_size(l->dtype);
    if (!j->log) y = lm_lines_target(l, s, at, n, t->out, &b);
    lm_level_now()->scan->exps[l->by_columns][l->dtype](a.rows, a.columns, x, a.step, y, b.step,
                                                        v->greatest, v->sum);
}

static void add_exps(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, buffers *t, state *v) {
    for (int64_t i = 0; i < s->width; i++)
        v->sum[i] = 0;
    for (int64_t at = lo; at < hi && !lm_lines_stop(&j->l); at += j->l.block)
        take_exps(j, s, at, hi - at < j->l.block ? hi - at : j->l.block, t, v);
}

static void set_last(const job *j, int64_t n, state *v) {
    for (int64_t i = 0; i < n; i++)
        v->last[i] = j->log ? log(v->sum[i]) : 1.0 / v->sum[i];
}

/* ready: the block's exponentials are still where take_exps put them. */
static void finish_block(job *j, const lm_scan_strip *s, int64_t at, int64_t n, buffers *t,
                         state *v, bool ready) {
    lm_lines *l = &j->l;
    const lm_scan_kernels *kernels = lm_level_now()->scan;
    lm_scan_block a, b;
    if (j->log) {
        const char *x = lm_lines_load(l, s, at, n, t->in, &a);
        char *y = lm_lines_target(l, s, at, n, t->out, &b);
        kernels->shift[l->by_columns][l->dtype](a.rows, a.columns, x, a.step, y, b.step,
                                                v->greatest, v->last);
    } else {
        if (!ready) take_exps(j, s, at, n, t, v); /* the sums have served */
        char *y = lm_lines_target(l, s, at, n, t->out, &b);
        kernels->scale[l->by_columns][l->dtype](b.rows, b.columns, y, b.step, v->last);
    }
    lm_lines_store(l, s, at, n, t->out);
}

static void finish(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, buffers *t, state *v) {
    lm_lines *l = &j->l;
    bool ready = l->y_direct || l->along.size <= l->block;
    for (int64_t at = lo; at < hi && !lm_lines_stop(l); at += l->block)
        finish_block(j, s, at, hi - at < l->block ? hi - at : l->block, t, v, ready);
}

static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    buffers t;
    state v;
    int64_t n = j->l.along.size;
    for (int64_t i = lo; i < hi; i++) {
        lm_scan_strip s = lm_lines_strip(&j->l, i);
        find_greatest(j, &s, 0, n, &t, &v);
        set_greatest(j, s.width, v.greatest);
        add_exps(j, &s, 0, n, &t, &v);
        set_last(j, s.width, &v);
        finish(j, &s, 0, n, &t, &v);
    }
}

/* ---- lines in pieces ---- */

static void run_piece(job *j, const lm_scan_strip *s, int64_t piece, buffers *t, state *v) {
    lm_lines *l = &j->l;
    int64_t from = piece * l->piece, to = from + l->piece, at = piece * l->lines + s->first;
    size_t nbytes = (size_t)s->width * sizeof(double);
    if (to > l->along.size) to = l->along.size;
    if (j->pass == GREATEST) {
        find_greatest(j, s, from, to, t, v);
        set_greatest(j, s->width, v->greatest);
        memcpy(j->greatest + at, v->greatest, nbytes);
        return;
    }
    memcpy(v->greatest, j->greatest + s->first, nbytes);
    if (j->pass == SUM) {
        add_exps(j, s, from, to, t, v);
        memcpy(j->sum + at, v->sum, nbytes);
    } else {
        memcpy(v->sum, j->sum + s->first, nbytes);
        set_last(j, s->width, v);
        finish(j, s, from, to, t, v);
    }
}

/* Task i: piece i / strips of strip i % strips. */
static void run_pieces(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    buffers t;
    state v;
    for (int64_t i = lo; i < hi; i++) {
        lm_scan_strip s = lm_lines_strip(&j->l, i % j->l.strips);
        run_piece(j, &s, i / j->l.strips, &t, &v);
    }
}

static void unite_pieces(job *j) {
    int64_t lines = j->l.lines;
    for (int64_t i = lines; i < lines * j->l.pieces; i++) {
        if (j->pass == GREATEST) {
            double a = j->greatest[i % lines], b = j->greatest[i];
            j->greatest[i % lines] = b > a || b != b ? b : a;
        } else if (j->pass == SUM) {
            j->sum[i % lines] += j->sum[i];
        }
    }
}

static luma_status run_long(job *j, luma_state *S) {
    lm_storage *scratch;
    int64_t cells = j->l.lines * j->l.pieces;
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)cells * 2 * sizeof(double), &scratch));
    j->greatest = (double *)(void *)scratch->data;
    j->sum = j->greatest + cells;
    for (j->pass = GREATEST; j->pass <= RESULT && !j->l.stopped; j->pass++) {
        lm_parallel(S->threads, j->l.strips * j->l.pieces, 1, run_pieces, j);
        if (!j->l.stopped) unite_pieces(j);
    }
    lm_storage_release(scratch);
    return LUMA_OK;
}

luma_status lm_cpu_softmax(luma_state *S, const lm_scan *s) {
    job j = {.log = s->kind == LM_SCAN_LOG_SOFTMAX};
    bool narrow = lm_dtype_is_float(s->x.dtype) && s->x.dtype != LUMA_FLOAT64;
    lm_lines_plan(&j.l, S, s, narrow ? LUMA_FLOAT32 : LUMA_FLOAT64, 3);
    if (j.l.pieces > 1)
        LM_TRY(run_long(&j, S));
    else
        lm_parallel(S->threads, j.l.strips, lm_lines_grain(&j.l), run_strips, &j);
    return j.l.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
