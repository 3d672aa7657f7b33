/* running.c -- running products, extremes with their positions and logarithms of sums of exponentials
** along a dim. In long lines a product and a sum are those of the pieces so far and of the piece.
** Layer: kernels/cpu. */
#include <math.h>

#include "pool.h"
#include "scan.h"

typedef lm_scan_state state;

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
} job;

typedef struct {
    _Alignas(64) char in[LM_SCAN_BLOCK * 8], out[LM_SCAN_BLOCK * 8], places[LM_SCAN_BLOCK * 8];
} buffers;

static state nothing(const void *ctx) {
    const job *j = ctx;
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

/* Elements [at, at + n) of the lines of a strip; rows have states, columns c. totals: nothing else
** is wanted. */
static void run_block(job *j, const lm_scan_strip *s, int64_t at, int64_t n, const state *starts,
                      state *own, columns *c, bool totals) {
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
            run_row(j, a.columns, x + i * a.step, totals ? NULL : y + i * b.step,
                    totals || !places ? NULL : places + i * p.step, at, &starts[i], &own[i]);
    }
    if (totals) return;
    lm_lines_store(l, s, at, n, t.out);
    if (places) lm_lines_store_places(l, s, at, n, t.places);
}

static void run(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, const state *starts,
                state *own, columns *c, bool totals) {
    for (int64_t at = lo; at < hi && !lm_lines_stop(&j->l); at += j->l.block)
        run_block(j, s, at, lm_min(hi - at, j->l.block), starts, own, c, totals);
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
        run(j, &s, 0, n, starts, own, &c, false);
    }
}

/* ---- long lines ---- */

static bool beats(const job *j, const char *a, const char *b) {
    lm_device *cpu = lm_cpu(j->l.S);
    luma_scalar v = cpu->ops->decode(j->l.dtype, a), w = cpu->ops->decode(j->l.dtype, b);
    if (lm_dtype_is_float(j->l.dtype)) {
        if (v.u.d != v.u.d || w.u.d != w.u.d) return w.u.d == w.u.d;
        return j->kind == LM_SCAN_MIN ? v.u.d < w.u.d : v.u.d > w.u.d;
    }
    return j->kind == LM_SCAN_MIN ? v.u.i < w.u.i : v.u.i > w.u.i;
}

static void join_exps(double *before, const double *own) {
    double a = before[0], b = own[0], top = b > a || b != b ? b : a;
    double sum = before[1] == 0 || a == top ? before[1] : before[1] * exp(a - top);
    before[1] = sum + (own[1] == 0 || b == top ? own[1] : own[1] * exp(b - top));
    before[0] = top;
}

static void join(const void *ctx, state *before, const state *own) {
    const job *j = ctx;
    if (j->kind == LM_SCAN_PROD && j->l.dtype == LUMA_INT64)
        before->i = (int64_t)((uint64_t)before->i * (uint64_t)own->i);
    else if (j->kind == LM_SCAN_PROD)
        before->product = lm_product_join(before->product, own->product);
    else if (j->kind == LM_SCAN_LOGSUMEXP)
        join_exps(before->exps, own->exps);
    else if (before->extreme.at < 0 || beats(j, own->extreme.best, before->extreme.best))
        *before = *own;
}

/* Extremes go on from those before, everything else from nothing. */
static void run_piece(void *ctx, const lm_scan_strip *s, int64_t lo, int64_t hi,
                      const state *before, state *own, bool totals) {
    job *j = ctx;
    *own = j->l.places ? *before : nothing(j);
    run(j, s, lo, hi, before, own, NULL, totals);
}

static luma_dtype kernel_dtype(const lm_scan *s) {
    luma_dtype dtype = s->x.dtype;
    if (s->kind == LM_SCAN_LOGSUMEXP) return LUMA_FLOAT64;
    if (s->kind != LM_SCAN_PROD) return (luma_dtype)lm_dtypes[dtype].compute;
    if (!lm_dtype_is_float(dtype)) return LUMA_INT64;
    return dtype == LUMA_FLOAT32 ? LUMA_FLOAT32 : LUMA_FLOAT64;
}

luma_status lm_cpu_running(luma_state *S, const lm_scan *s) {
    static const lm_scan_of scan = {nothing, run_piece, join};
    job j = {.kind = s->kind, .index_base = s->index_base};
    luma_dtype dtype = kernel_dtype(s);
    lm_lines_plan(&j.l, S, s, dtype, 1);
    if (s->kind == LM_SCAN_PROD && dtype == LUMA_FLOAT32 && !(j.l.x_direct && j.l.y_direct))
        lm_lines_plan(&j.l, S, s, LUMA_FLOAT64, 1); /* no need to round twice */
    if (j.l.pieces > 1 && !j.l.by_columns)
        LM_TRY(lm_lines_run_long(&j.l, &scan, &j));
    else
        lm_parallel(S->threads, j.l.strips, lm_lines_grain(&j.l), run_strips, &j);
    return j.l.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
