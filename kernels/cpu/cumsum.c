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
} job;

/* Elements [lo, hi) of the lines of a strip; sums hold what is before them and take what is added,
** own (may be NULL: not wanted) what is added alone. totals: nothing else is wanted. */
static void run(job *j, const lm_scan_strip *s, int64_t lo, int64_t hi, sum *sums, sum *own,
                bool totals) {
    lm_lines *l = &j->l;
    const lm_scan_kernels *kernels = lm_level_now()->scan;
    _Alignas(64) char in[LM_SCAN_BLOCK * 8], out[LM_SCAN_BLOCK * 8];
    lm_scan_block a, b;
    for (int64_t at = lo; at < hi && !lm_lines_stop(l); at += l->block) {
        int64_t n = hi - at < l->block ? hi - at : l->block;
        const char *x = lm_lines_load(l, s, at, n, in, &a);
        char *y = lm_lines_target(l, s, at, n, out, &b);
        if (l->by_columns) {
            kernels->cumsum_columns[l->dtype](a.rows, a.columns, x, a.step, y, b.step, sums);
        } else {
            kernels->cumsum_rows[l->dtype](a.rows, a.columns, x, a.step, totals ? NULL : y, b.step,
                                           sums, own);
        }
        if (!totals) lm_lines_store(l, s, at, n, out);
    }
}

static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    for (int64_t i = lo; i < hi; i++) {
        sum sums[LM_SCAN_WIDTH] = {{0}};
        lm_scan_strip s = lm_lines_strip(&j->l, i);
        run(j, &s, 0, j->l.along.size, sums, NULL, false);
    }
}

/* ---- long lines ---- */

static lm_scan_state nothing(const void *ctx) {
    (void)ctx;
    return (lm_scan_state){.i = 0}; /* and 0.0 */
}

static void run_piece(void *ctx, const lm_scan_strip *s, int64_t lo, int64_t hi,
                      const lm_scan_state *before, lm_scan_state *own, bool totals) {
    sum sums = {.i = before->i}, added = {0};
    run(ctx, s, lo, hi, &sums, &added, totals);
    own->i = added.i;
}

static void join(const void *ctx, lm_scan_state *before, const lm_scan_state *own) {
    const job *j = ctx;
    if (j->l.dtype == LUMA_INT64)
        before->i = (int64_t)((uint64_t)before->i + (uint64_t)own->i);
    else
        before->d += own->d;
}

luma_status lm_cpu_cumsum(luma_state *S, const lm_scan *s) {
    static const lm_scan_of sums = {nothing, run_piece, join};
    job j;
    luma_dtype dtype = s->x.dtype;
    if (!lm_dtype_is_float(dtype))
        dtype = LUMA_INT64;
    else if (dtype != LUMA_FLOAT32)
        dtype = LUMA_FLOAT64;
    lm_lines_plan(&j.l, S, s, dtype, 1);
    if (dtype == LUMA_FLOAT32 && !(j.l.x_direct && j.l.y_direct)) /* no need to round twice */
        lm_lines_plan(&j.l, S, s, LUMA_FLOAT64, 1);
    if (j.l.pieces > 1 && !j.l.by_columns)
        LM_TRY(lm_lines_run_long(&j.l, &sums, &j));
    else
        lm_parallel(S->threads, j.l.strips, lm_lines_grain(&j.l), run_strips, &j);
    return j.l.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
