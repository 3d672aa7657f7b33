/* cumsum.c -- running sums along a dim: floats in double, bool and integers in int64. A long line is
** cut into pieces, each of which starts from the sums of the pieces before it. Layer: kernels/cpu.
*/
#include "pool.h"
#include "scan.h"

typedef union {
    double d;
    int64_t i;
} sum;

typedef struct {
    lm_lines l;
    sum *starts; /* [piece][line] */
    bool totals; /* only the totals of pieces are wanted */
} job;

/* Elements [lo, hi) of the lines of a strip; sums hold what is before them and take what is added,
** own (may be NULL: not wanted) what is added alone. */
static void run(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, sum *sums, sum *own) {
    lm_lines *l = &j->l;
    const lm_scan_kernels *kernels = lm_level_now()->scan;
    _Alignas(64) char in[LM_SCAN_BLOCK * 8], out[LM_SCAN_BLOCK * 8];
    lm_scan_block a, b;
    sum ignored = {0};
    for (int64_t at = lo; at < hi && !lm_lines_stop(l); at += l->block) {
        int64_t n = hi - at < l->block ? hi - at : l->block;
        const char *x = lm_lines_load(l, s, at, n, in, &a);
        char *y = lm_lines_target(l, s, at, n, out, &b);
        if (l->by_columns) {
            kernels->cumsum_columns[l->dtype](a.rows, a.columns, x, a.step, y, b.step, sums);
        } else {
            for (int64_t i = 0; i < a.rows; i++)
                kernels->cumsum_row[l->dtype](a.columns, x + i * a.step,
                                              j->totals ? NULL : y + i * b.step, &sums[i],
                                              own ? &own[i] : &ignored);
        }
        if (!j->totals) lm_lines_store(l, s, at, n, out);
    }
}

static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    for (int64_t i = lo; i < hi; i++) {
        sum sums[LM_SCAN_WIDTH] = {{0}};
        lm_scan_strip s = lm_lines_strip(&j->l, i);
        run(j, &s, 0, j->l.along.size, sums, NULL);
    }
}

/* ---- long lines ---- */

static void add(const job *j, sum *to, const sum *a, const sum *b) {
    if (j->l.dtype == LUMA_INT64)
        to->i = (int64_t)((uint64_t)a->i + (uint64_t)b->i);
    else
        to->d = a->d + b->d;
}

/* Piece `task / lines` of line `task % lines`: into y, or its total into starts. */
static void run_pieces(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    int64_t n = j->l.along.size;
    for (int64_t i = lo; i < hi; i++) {
        lm_scan_strip s = lm_lines_strip(&j->l, i % j->l.strips);
        int64_t from = i / j->l.strips * j->l.piece, to = from + j->l.piece;
        sum own = {0}, sums = {0};
        if (!j->totals) sums = j->starts[i];
        run(j, &s, from, to < n ? to : n, &sums, &own);
        if (j->totals) j->starts[i] = own;
    }
}

/* From the totals of all pieces to the sums before them. */
static void place_starts(job *j) {
    for (int64_t k = 0; k < j->l.strips; k++) {
        sum before = {0};
        for (int64_t p = 0; p < j->l.pieces; p++) {
            sum *at = &j->starts[p * j->l.strips + k], total = *at;
            *at = before;
            add(j, &before, &before, &total);
        }
    }
}

/* On one thread a second look at x for the totals would cost more than it brings: each piece tells
** its total on the way. The additions are the same. */
static void run_lines(job *j) {
    int64_t n = j->l.along.size;
    for (int64_t k = 0; k < j->l.strips; k++) {
        lm_scan_strip s = lm_lines_strip(&j->l, k);
        sum before = {0};
        for (int64_t from = 0; from < n; from += j->l.piece) {
            sum sums = before, own = {0};
            run(j, &s, from, from + j->l.piece < n ? from + j->l.piece : n, &sums, &own);
            add(j, &before, &before, &own);
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
    j->starts = (sum *)(void *)scratch->data;
    j->totals = true;
    lm_parallel(S->threads, tasks, 1, run_pieces, j);
    j->totals = false;
    place_starts(j);
    lm_parallel(S->threads, tasks, 1, run_pieces, j);
    lm_storage_release(scratch);
    return LUMA_OK;
}

luma_status lm_cpu_cumsum(luma_state *S, const lm_scan *s) {
    job j = {.totals = false};
    luma_dtype dtype = s->x.dtype;
    if (!lm_dtype_is_float(dtype))
        dtype = LUMA_INT64;
    else if (dtype != LUMA_FLOAT32)
        dtype = LUMA_FLOAT64;
    lm_lines_plan(&j.l, S, s, dtype, 1);
    if (dtype == LUMA_FLOAT32 && !(j.l.x_direct && j.l.y_direct)) /* no need to round twice */
        lm_lines_plan(&j.l, S, s, LUMA_FLOAT64, 1);
    if (j.l.pieces > 1 && !j.l.by_columns)
        LM_TRY(run_long(&j, S));
    else
        lm_parallel(S->threads, j.l.strips, lm_lines_grain(&j.l), run_strips, &j);
    return j.l.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
