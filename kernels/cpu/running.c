/* running.c -- running products, extremes with their positions and logarithms of sums of exponentials
** along a dim. A long line is cut into pieces, each of which starts from what is before it; a
** product and a sum are those of the pieces so far and of the piece, whoever works on them.
** Layer: kernels/cpu. */
#include <math.h>

#include "pool.h"
#include "product.h"
#include "scan.h"

typedef union {
    lm_product product; /* of floats */
    int64_t i;          /* product of integers */
    double exps[2];     /* the greatest, the sum of exponentials below it */
    struct {
        char best[8]; /* an element */
        int64_t at;   /* its position, negative where there is none */
    } extreme;
} state;

/* Of the columns of a strip: first and second halves of states. */
typedef struct {
    _Alignas(64) double first[LM_SCAN_WIDTH];
    int64_t second[LM_SCAN_WIDTH];
    double sum[LM_SCAN_WIDTH];
} columns;

typedef struct {
    lm_lines l;
    lm_scan_kind kind;
    int index_base;
    state *starts; /* [piece][line] */
    bool totals;   /* only the totals of pieces are wanted */
} job;

typedef struct {
    _Alignas(64) char in[LM_SCAN_BLOCK * 8], out[LM_SCAN_BLOCK * 8], places[LM_SCAN_BLOCK * 8];
} buffers;

static state nothing(const job *j) {
    state s = {.exps = {-(double)INFINITY, 0}};
    if (j->kind == LM_SCAN_PROD && j->l.dtype == LUMA_INT64)
        s.i = 1;
    else if (j->kind == LM_SCAN_PROD)
        s.product = (lm_product){1, 0};
    else if (j->kind != LM_SCAN_LOGSUMEXP)
        s.extreme.at = -1;
    return s;
}

static void run_row(const job *j, int64_t n, const char *x, char *y, char *places, int64_t at,
                    const state *start, state *own) {
    const lm_running_kernels *k = lm_level_now()->running;
    luma_dtype dtype = j->l.dtype;
    if (j->kind == LM_SCAN_PROD)
        k->prod_row[dtype](n, x, y, start, own);
    else if (j->kind == LM_SCAN_LOGSUMEXP)
        k->logsumexp_row(n, x, y, start, own);
    else
        k->extreme_row[j->kind == LM_SCAN_MIN][dtype](n, x, y, (int64_t *)(void *)places,
                                                      at + j->index_base, own->extreme.best,
                                                      &own->extreme.at);
}

static void run_columns(const job *j, const lm_scan_block *a, const char *x, int64_t sy, char *y,
                        int64_t sp, char *places, int64_t at, columns *c) {
    const lm_running_kernels *k = lm_level_now()->running;
    luma_dtype dtype = j->l.dtype;
    if (j->kind == LM_SCAN_PROD)
        k->prod_columns[dtype](a->rows, a->columns, x, a->step, y, sy, c->first, c->second);
    else if (j->kind == LM_SCAN_LOGSUMEXP)
        k->logsumexp_columns(a->rows, a->columns, x, a->step, y, sy, c->first, c->sum);
    else
        k->extreme_columns[j->kind == LM_SCAN_MIN][dtype](a->rows, a->columns, x, a->step, y, sy,
                                                          places, sp, at + j->index_base, c->first,
                                                          c->second);
}

/* Elements [at, at + n) of the lines of a strip; rows have states, columns c. */
static void run_block(job *j, const lm_scan_strip *s, int64_t at, int64_t n, const state *starts,
                      state *own, columns *c) {
    lm_lines *l = &j->l;
    buffers t;
    lm_scan_block a, b, p = {0};
    const char *x = lm_lines_load(l, s, at, n, t.in, &a);
    char *y = lm_lines_target(l, s, at, n, t.out, &b);
    char *places = l->places ? lm_lines_places(l, s, at, n, t.places, &p) : NULL;
    if (l->by_columns) {
        run_columns(j, &a, x, b.step, y, p.step, places, at, c);
    } else {
        for (int64_t i = 0; i < a.rows; i++)
            run_row(j, a.columns, x + i * a.step, j->totals ? NULL : y + i * b.step,
                    j->totals || !places ? NULL : places + i * p.step, at, &starts[i], &own[i]);
    }
    if (j->totals) return;
    lm_lines_store(l, s, at, n, t.out);
    if (places) lm_lines_store_places(l, s, at, n, t.places);
}

static void run(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, const state *starts,
                state *own, columns *c) {
    for (int64_t at = lo; at < hi && !lm_lines_stop(&j->l); at += j->l.block)
        run_block(j, s, at, lm_min(hi - at, j->l.block), starts, own, c);
}

static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    int64_t n = j->l.along.size;
    columns c;
    state starts[LM_SCAN_WIDTH], own[LM_SCAN_WIDTH], none = nothing(j);
    for (int64_t i = lo; i < hi; i++) {
        lm_scan_strip s = lm_lines_strip(&j->l, i);
        for (int64_t k = 0; k < s.width && !j->l.by_columns; k++)
            starts[k] = own[k] = none;
        for (int64_t k = 0; k < s.width && j->l.by_columns; k++) {
            c.first[k] = j->kind == LM_SCAN_PROD ? 1 : -(double)INFINITY;
            c.second[k] = j->l.dtype == LUMA_INT64 ? 1 : 0;
            if (j->l.places) c.second[k] = -1;
            c.sum[k] = 0;
        }
        run(j, &s, 0, n, starts, own, &c);
    }
}

/* ---- long lines ---- */

/* What is before the next piece, of what is before this one and this one's own. */
static void join(const job *j, state *before, const state *own) {
    if (j->kind == LM_SCAN_PROD && j->l.dtype == LUMA_INT64) {
        before->i = (int64_t)((uint64_t)before->i * (uint64_t)own->i);
    } else if (j->kind == LM_SCAN_PROD) {
        before->product = lm_product_join(before->product, own->product);
    } else if (j->kind != LM_SCAN_LOGSUMEXP) {
        *before = *own; /* it began as *before */
    } else {
        double a = before->exps[0], b = own->exps[0], top = b > a || b != b ? b : a;
        double sum =
            before->exps[1] == 0 || a == top ? before->exps[1] : before->exps[1] * exp(a - top);
        sum += own->exps[1] == 0 || b == top ? own->exps[1] : own->exps[1] * exp(b - top);
        before->exps[0] = top;
        before->exps[1] = sum;
    }
}

/* Extremes go on from those before, everything else from nothing. */
static state own_of(const job *j, const state *before) {
    return j->l.places ? *before : nothing(j);
}

static void run_pieces(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    int64_t n = j->l.along.size;
    state none = nothing(j);
    for (int64_t i = lo; i < hi; i++) {
        lm_scan_strip s = lm_lines_strip(&j->l, i % j->l.strips);
        int64_t from = i / j->l.strips * j->l.piece, to = lm_min(from + j->l.piece, n);
        const state *before = j->totals ? &none : &j->starts[i];
        state own = own_of(j, before);
        run(j, &s, from, to, before, &own, NULL);
        if (j->totals) j->starts[i] = own;
    }
}

static bool beats(const job *j, const char *a, const char *b) {
    lm_device *cpu = lm_cpu(j->l.S);
    luma_scalar v = cpu->ops->decode(j->l.dtype, a), w = cpu->ops->decode(j->l.dtype, b);
    if (lm_dtype_is_float(j->l.dtype)) {
        if (v.u.d != v.u.d || w.u.d != w.u.d) return w.u.d == w.u.d;
        return j->kind == LM_SCAN_MIN ? v.u.d < w.u.d : v.u.d > w.u.d;
    }
    return j->kind == LM_SCAN_MIN ? v.u.i < w.u.i : v.u.i > w.u.i;
}

/* From the totals of all pieces to what is before them. */
static void place_starts(job *j) {
    for (int64_t k = 0; k < j->l.strips; k++) {
        state before = nothing(j);
        for (int64_t p = 0; p < j->l.pieces; p++) {
            state *at = &j->starts[p * j->l.strips + k], total = *at;
            *at = before;
            if (!j->l.places || before.extreme.at < 0 ||
                beats(j, total.extreme.best, before.extreme.best))
                join(j, &before, &total);
        }
    }
}

/* On one thread each piece tells its total on the way. */
static void run_lines(job *j) {
    int64_t n = j->l.along.size;
    for (int64_t k = 0; k < j->l.strips; k++) {
        lm_scan_strip s = lm_lines_strip(&j->l, k);
        state before = nothing(j);
        for (int64_t from = 0; from < n; from += j->l.piece) {
            state own = own_of(j, &before);
            run(j, &s, from, lm_min(from + j->l.piece, n), &before, &own, NULL);
            join(j, &before, &own);
        }
    }
}

static luma_status run_long(job *j, luma_state *S) {
    lm_storage *scratch;
    int64_t tasks = j->l.strips * j->l.pieces;
    if (lm_pool_threads() == 1) {
        run_lines(j);
        return LUMA_OK;
    }
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)tasks * sizeof *j->starts, &scratch));
    j->starts = (state *)(void *)scratch->data;
    j->totals = true;
    lm_parallel(S->threads, tasks, 1, run_pieces, j);
    j->totals = false;
    if (!j->l.stopped) {
        place_starts(j);
        lm_parallel(S->threads, tasks, 1, run_pieces, j);
    }
    lm_storage_release(scratch);
    return LUMA_OK;
}

static luma_dtype kernel_dtype(const lm_scan *s) {
    luma_dtype dtype = s->x.dtype;
    if (s->kind == LM_SCAN_LOGSUMEXP) return LUMA_FLOAT64;
    if (s->kind != LM_SCAN_PROD) return (luma_dtype)lm_dtypes[dtype].compute;
    if (!lm_dtype_is_float(dtype)) return LUMA_INT64;
    return dtype == LUMA_FLOAT32 ? LUMA_FLOAT32 : LUMA_FLOAT64;
}

luma_status lm_cpu_running(luma_state *S, const lm_scan *s) {
    job j = {.kind = s->kind, .index_base = s->index_base};
    luma_dtype dtype = kernel_dtype(s);
    lm_lines_plan(&j.l, S, s, dtype, 1);
    if (s->kind == LM_SCAN_PROD && dtype == LUMA_FLOAT32 && !(j.l.x_direct && j.l.y_direct))
        lm_lines_plan(&j.l, S, s, LUMA_FLOAT64, 1); /* no need to round twice */
    if (j.l.pieces > 1 && !j.l.by_columns)
        LM_TRY(run_long(&j, S));
    else
        lm_parallel(S->threads, j.l.strips, lm_lines_grain(&j.l), run_strips, &j);
    return j.l.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
