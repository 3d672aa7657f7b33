/* scan.c -- the scan slot: lines along one dim, whole or in chunks. Layer: kernels/cuda. */
#include "lines.h"

#define EACH 8        /* elements of a lane of running results */
#define PART_BYTES 16 /* of what a chunk comes to, at most */

static const lm_kernel cumsum[LUMA_NDTYPES] = LM_KERNELS_OF(cumsum);
static const lm_kernel sums[LUMA_NDTYPES] = LM_KERNELS_OF(reduce_sum);
/* By what they are of: a kernel, and that of the chunks before it. */
static const lm_kernel running[][2][LUMA_NDTYPES] = {
    [LM_SCAN_PROD] = {LM_KERNELS_OF(cumprod), LM_KERNELS_OF(cumprod_totals)},
    [LM_SCAN_MAX] = {LM_KERNELS_OF(cummax), LM_KERNELS_OF(cummax_totals)},
    [LM_SCAN_MIN] = {LM_KERNELS_OF(cummax), LM_KERNELS_OF(cummax_totals)},
    [LM_SCAN_LOGSUMEXP] = {LM_KERNELS_OF(logcumsumexp), LM_KERNELS_OF(logcumsumexp_totals)},
};
static const lm_kernel softmax_short[LUMA_NDTYPES] = LM_KERNELS_OF(softmax_short);
static const lm_kernel softmax_sums[LUMA_NDTYPES] = LM_KERNELS_OF(softmax_sums);
static const lm_kernel softmax_apply[LUMA_NDTYPES] = LM_KERNELS_OF(softmax_apply);

static int64_t bytes(const luma_tensor *x, int d) {
    return x->layout.stride[d] * (int64_t)lm_dtype_size(x->dtype);
}

/* All but chunks and group, and what there is to wish for. */
static void set_lines(const lm_scan *s, lm_args_scan *a, lm_cut_wish *wish) {
    lm_dims others = {0}, along = {0};
    bool placed = s->positions.storage != NULL;
    char *at[] = {lm_data(&s->x), lm_data(&s->out), placed ? lm_data(&s->positions) : NULL};
    *a = (lm_args_scan){.n = 1,
                        .log = s->kind == LM_SCAN_LOG_SOFTMAX,
                        .out_dtype = (int32_t)s->out.dtype,
                        .least = s->kind == LM_SCAN_MIN,
                        .index_base = s->index_base};
    for (int d = 0; d < s->x.layout.ndim; d++) {
        lm_dim_of dim = {s->x.layout.shape[d], {bytes(&s->x, d), bytes(&s->out, d), 0}};
        if (placed) dim.stride[2] = bytes(&s->positions, d);
        if (d == s->dim) {
            a->n = dim.size;
            a->x_step = dim.stride[0];
            a->y_step = dim.stride[1];
            a->positions_step = dim.stride[2];
        }
        lm_dims_add(d == s->dim ? &along : &others, dim);
    }
    lm_dims_sort(&others, at);
    lm_dims_merge(&others);
    a->x = at[0];
    a->y = at[1];
    a->positions = at[2];
    lm_dims_walk(&others, &a->lines, 3, (int64_t *[]){a->lines_x, a->lines_y, a->lines_positions});
    *wish = (lm_cut_wish){.lines = a->lines.n,
                          .length = a->n,
                          .beside = lm_dims_beside(&others, &along),
                          .each = EACH,
                          .size = lm_dtype_size(s->x.dtype)};
}

static void set_cut(lm_args_scan *a, const lm_cut *cut) {
    a->group = cut->group;
    a->chunk = cut->chunk;
    a->chunks = cut->chunks;
}

/* ---- cumsum ---- */

/* The total of every chunk, into parts. */
static luma_status add_chunks(luma_state *S, lm_cuda *c, luma_dtype dtype, const lm_args_scan *a,
                              const lm_cut *cut) {
    lm_args_reduce r = {.x = a->x,
                        .parts = a->parts,
                        .chunk = a->chunk,
                        .chunks = a->chunks,
                        .group = a->group,
                        .kept = a->lines};
    r.vectors = a->group.apart == 0 && a->x_step == (int64_t)lm_dtype_size(dtype);
    r.reduced_x[0] = a->x_step;
    lm_walk_set(&r.reduced, 1, &a->n, 1, (const int64_t *[]){r.reduced_x});
    for (int d = 0; d < LM_WALK_DIMS; d++)
        r.kept_x[d] = a->lines_x[d];
    return lm_cuda_launch(S, c, sums[dtype], cut->shape, &r);
}

/* From the totals of chunks to those up to their ends, in place. */
static luma_status add_up_chunks(luma_state *S, lm_cuda *c, luma_dtype dtype,
                                 const lm_args_scan *a) {
    lm_args_scan p = {.x = a->parts, .y = a->parts, .n = a->chunks, .x_step = 8, .y_step = 8};
    lm_cut cut = lm_cut_joins(c, a->lines.n, a->chunks);
    p.lines_x[0] = p.lines_y[0] = a->chunks * 8;
    lm_walk_set(&p.lines, 1, &a->lines.n, 1, (const int64_t *[]){p.lines_x});
    set_cut(&p, &cut);
    dtype = lm_dtype_is_float(dtype) ? LUMA_FLOAT64 : LUMA_INT64;
    return lm_cuda_launch(S, c, cumsum[dtype], cut.shape, &p);
}

static luma_status run_cumsum(luma_state *S, lm_cuda *c, luma_dtype dtype, lm_args_scan *a,
                              const lm_cut_wish *wish) {
    lm_storage *parts;
    lm_cut cut = lm_cut_lines(c, wish);
    set_cut(a, &cut);
    if (cut.chunks == 1) return lm_cuda_launch(S, c, cumsum[dtype], cut.shape, a);
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(a->lines.n * a->chunks) * 8, &parts));
    a->parts = parts->data;
    luma_status status = add_chunks(S, c, dtype, a, &cut);
    if (status == LUMA_OK) status = add_up_chunks(S, c, dtype, a);
    if (status == LUMA_OK) status = lm_cuda_launch(S, c, cumsum[dtype], cut.shape, a);
    lm_storage_release(parts);
    return status;
}

/* ---- other running results ---- */

static luma_status run_running(luma_state *S, lm_cuda *c, const lm_scan *s, lm_args_scan *a,
                               const lm_cut_wish *wish) {
    lm_storage *parts;
    lm_cut cut = lm_cut_lines(c, wish);
    lm_kernel kernel = running[s->kind][0][s->x.dtype], totals = running[s->kind][1][s->x.dtype];
    set_cut(a, &cut);
    if (cut.chunks == 1) return lm_cuda_launch(S, c, kernel, cut.shape, a);
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(a->lines.n * a->chunks) * PART_BYTES, &parts));
    a->parts = parts->data;
    luma_status status = lm_cuda_launch(S, c, totals, cut.shape, a);
    if (status == LUMA_OK) status = lm_cuda_launch(S, c, kernel, cut.shape, a);
    lm_storage_release(parts);
    return status;
}

/* ---- softmax ---- */

static luma_status run_softmax(luma_state *S, lm_cuda *c, luma_dtype dtype, lm_args_scan *a,
                               lm_cut_wish *wish) {
    lm_storage *parts;
    bool narrow = lm_dtype_is_float(dtype) && dtype != LUMA_FLOAT64;
    wish->held = LM_SOFTMAX_BYTES / (narrow ? 4 : 8);
    lm_cut cut = lm_cut_lines(c, wish);
    if (wish->held << cut.group.lanes >= a->n) {
        cut.shape.grid.y = 1;
        set_cut(a, &cut);
        a->chunk = a->n;
        a->chunks = 1;
        return lm_cuda_launch(S, c, softmax_short[dtype], cut.shape, a);
    }
    wish->held = 0;
    cut = lm_cut_lines(c, wish);
    set_cut(a, &cut);
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(a->lines.n * a->chunks) * 16, &parts));
    a->parts = parts->data;
    luma_status status = lm_cuda_launch(S, c, softmax_sums[dtype], cut.shape, a);
    if (status == LUMA_OK) status = lm_cuda_launch(S, c, softmax_apply[dtype], cut.shape, a);
    lm_storage_release(parts);
    return status;
}

luma_status lm_cuda_scan(luma_state *S, lm_device *d, const lm_scan *s) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_scan a;
    lm_cut_wish wish;
    set_lines(s, &a, &wish);
    if (a.n == 0 || a.lines.n == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status;
    if (s->kind == LM_SCAN_SUM)
        status = run_cumsum(S, c, s->x.dtype, &a, &wish);
    else if (s->kind == LM_SCAN_SOFTMAX || s->kind == LM_SCAN_LOG_SOFTMAX)
        status = run_softmax(S, c, s->x.dtype, &a, &wish);
    else
        status = run_running(S, c, s, &a, &wish);
    lm_cuda_leave(c);
    return status;
}
