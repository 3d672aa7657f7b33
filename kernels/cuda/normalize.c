/* normalize.c -- the normalize slot: lines whole, or in chunks whose sums are joined.
** Layer: kernels/cuda. */
#include "lines.h"

#define EACH 8 /* elements of a lane of lines that are only read for their sums */

#define FLOATS_OF(name)                                                                            \
    { LM_FLOATS(LM_KERNEL_OF, name) }
static const lm_kernel normalize_short[LUMA_NDTYPES] = FLOATS_OF(normalize_short);
static const lm_kernel normalize_sums[LUMA_NDTYPES] = FLOATS_OF(normalize_sums);
static const lm_kernel normalize_apply[LUMA_NDTYPES] = FLOATS_OF(normalize_apply);

static lm_dim_of dim_of(const lm_normalize *n, const luma_layout *w, int d) {
    int64_t size = (int64_t)lm_dtype_size(n->x.dtype), wide = n->x.dtype == LUMA_FLOAT64 ? 8 : 4;
    return (lm_dim_of){n->x.layout.shape[d],
                       {n->x.layout.stride[d] * size, n->out.layout.stride[d] * size,
                        w ? w->stride[d] * wide : 0}};
}

/* All but chunks and group, and what there is to wish for. */
static void set_lines(const lm_normalize *n, lm_args_normalize *a, lm_cut_wish *wish) {
    lm_dims lines = {0}, along = {0};
    const luma_layout *w = n->weight.storage ? &n->weight.layout
                           : n->bias.storage ? &n->bias.layout
                                             : NULL;
    int ndim = n->x.layout.ndim;
    *a = (lm_args_normalize){.x = lm_data(&n->x),
                             .y = lm_data(&n->out),
                             .weight = n->weight.storage ? lm_data(&n->weight) : NULL,
                             .bias = n->bias.storage ? lm_data(&n->bias) : NULL,
                             .eps = n->eps,
                             .centered = n->kind == LM_NORMALIZE_LAYER};
    for (int d = 0; d < ndim; d++)
        lm_dims_add(d < ndim - n->along ? &lines : &along, dim_of(n, w, d));
    lm_dims_merge(&lines);
    lm_dims_merge(&along);
    lm_dims_walk(&lines, &a->lines, 3,
                 (int64_t *[]){a->line_step[0], a->line_step[1], a->line_step[2]});
    lm_dims_walk(&along, &a->along, 3, (int64_t *[]){a->step[0], a->step[1], a->step[2]});
    *wish = (lm_cut_wish){
        .lines = a->lines.n, .length = a->along.n, .each = EACH, .size = lm_dtype_size(n->x.dtype)};
}

static void set_cut(lm_args_normalize *a, const lm_cut *cut) {
    a->group = cut->group;
    a->chunk = cut->chunk;
    a->chunks = cut->chunks;
}

static luma_status run_long(luma_state *S, lm_cuda *c, luma_dtype dtype, lm_args_normalize *a,
                            const lm_cut_wish *wish) {
    lm_storage *parts;
    lm_cut cut = lm_cut_lines(c, wish);
    set_cut(a, &cut);
    LM_TRY(lm_cuda_scratch(S, c, (size_t)(a->lines.n * a->chunks) * 16, &parts));
    a->parts = parts->data;
    luma_status status = lm_cuda_launch(S, c, normalize_sums[dtype], cut.shape, a);
    if (status == LUMA_OK) status = lm_cuda_launch(S, c, normalize_apply[dtype], cut.shape, a);
    lm_storage_release(parts);
    return status;
}

static luma_status run(luma_state *S, lm_cuda *c, const lm_normalize *n, lm_args_normalize *a,
                       lm_cut_wish *wish) {
    luma_dtype dtype = n->x.dtype;
    if (n->kind == LM_NORMALIZE_AFFINE) {
        lm_cut cut = lm_cut_lines(c, wish);
        set_cut(a, &cut);
        return lm_cuda_launch(S, c, normalize_apply[dtype], cut.shape, a);
    }
    wish->held = LM_NORMALIZE_BYTES / (dtype == LUMA_FLOAT64 ? 8 : 4);
    lm_cut cut = lm_cut_lines(c, wish);
    if (a->along.ndim <= 1 && wish->held << cut.group.lanes >= a->along.n) {
        cut.shape.grid.y = 1;
        set_cut(a, &cut);
        a->chunk = a->along.n;
        a->chunks = 1;
        return lm_cuda_launch(S, c, normalize_short[dtype], cut.shape, a);
    }
    wish->held = 0;
    return run_long(S, c, dtype, a, wish);
}

luma_status lm_cuda_normalize(luma_state *S, lm_device *d, const lm_normalize *n) {
    lm_cuda *c = lm_cuda_of(d);
    lm_args_normalize a;
    lm_cut_wish wish;
    set_lines(n, &a, &wish);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = run(S, c, n, &a, &wish);
    lm_cuda_leave(c);
    return status;
}
