/* reduce.c -- the reduce slot: which kernel, over which lines; where lines are cut into chunks, one
** more kernel that joins them. Layer: kernels/cuda. */
#include "lines.h"

#include <math.h>

#define TWO_PASSES 65536 /* elements of a chunk that is read again from the caches */

/* A folding, and the joining of its chunks. */
typedef struct {
    lm_kernel fold[LUMA_NDTYPES], join[LUMA_NDTYPES];
    int words;       /* of a chunk */
    bool two_passes; /* over each chunk */
} folding;

static const folding sum = {LM_KERNELS_OF(reduce_sum), LM_KERNELS_OF(join_sum), 1, false};
static const folding prod = {LM_KERNELS_OF(reduce_prod), LM_KERNELS_OF(join_prod), 1, false};
static const folding extreme = {LM_KERNELS_OF(reduce_extreme), LM_KERNELS_OF(join_extreme), 1,
                                false};
static const folding truth = {LM_KERNELS_OF(reduce_truth), LM_KERNELS_OF(join_truth), 1, false};
static const folding place = {LM_KERNELS_OF(reduce_place), LM_KERNELS_OF(join_place), 2, false};
static const folding moments = {LM_KERNELS_OF(moments), LM_KERNELS_OF(join_moments), 2, true};
static const folding logsumexp = {LM_KERNELS_OF(logsumexp), LM_KERNELS_OF(join_logsumexp), 2, true};

static const folding norm = {LM_KERNELS_OF(norm), LM_KERNELS_OF(join_norm), 2, false};

/* bool and integers have no NaN. */
static lm_op without_nan(const lm_reduce *r) {
    bool real = lm_dtype_is_float(r->x.dtype);
    return !real && r->op == LM_OP_nansum    ? LM_OP_sum
           : !real && r->op == LM_OP_nanmean ? LM_OP_mean
                                             : r->op;
}

static const folding *choose(lm_op op) {
    switch (op) {
    case LM_OP_count_nonzero:
    case LM_OP_nansum:
    case LM_OP_nanmean:
    case LM_OP_norm:
        return &norm;
    case LM_OP_prod:
        return &prod;
    case LM_OP_amax:
    case LM_OP_amin:
        return &extreme;
    case LM_OP_any:
    case LM_OP_all:
        return &truth;
    case LM_OP_mean:
    case LM_OP_var:
    case LM_OP_std:
        return &moments;
    case LM_OP_logsumexp:
        return &logsumexp;
    case LM_OP_argmax:
    case LM_OP_argmin:
    case LM_OP_max:
    case LM_OP_min:
        return &place;
    default:
        return &sum;
    }
}

static int32_t moment_of(lm_op op, double p) {
    switch (op) {
    case LM_OP_var:
        return LM_VAR;
    case LM_OP_std:
        return LM_STD;
    case LM_OP_count_nonzero:
        return LM_COUNT;
    case LM_OP_nansum:
        return LM_NANSUM;
    case LM_OP_nanmean:
        return LM_NANMEAN;
    case LM_OP_norm:
        if (isinf(p)) return p > 0 ? LM_NORM_MOST : LM_NORM_LEAST;
        return p == 0 ? LM_COUNT : p == 1 ? LM_NORM_1 : p == 2 ? LM_NORM_2 : LM_NORM_P;
    default:
        return LM_MEAN;
    }
}

static void set_operation(luma_state *S, const lm_reduce *r, lm_args_reduce *a) {
    lm_op op = without_nan(r);
    bool positions = op == LM_OP_argmax || op == LM_OP_argmin;
    a->x = lm_data(&r->x);
    a->out = positions ? NULL : lm_data(&r->out);
    a->positions = positions ? lm_data(&r->out) : NULL;
    if (r->positions.storage) a->positions = lm_data(&r->positions);
    a->least = op == LM_OP_amin || op == LM_OP_min || op == LM_OP_argmin || op == LM_OP_all;
    a->op = moment_of(op, r->correction);
    a->out_dtype = (int32_t)r->out.dtype;
    a->index_base = S->index_base;
}

static int64_t bytes(const luma_tensor *x, int d) {
    return x->layout.stride[d] * (int64_t)lm_dtype_size(x->dtype);
}

/* Positions count the reduced dims in their order, so those stay as they are then. */
static void set_walks(const lm_reduce *r, lm_args_reduce *a, lm_dims *kept, lm_dims *reduced) {
    const luma_tensor *positions = r->positions.storage ? &r->positions : &r->out;
    for (int d = 0; d < r->x.layout.ndim; d++) {
        bool is_reduced = r->dims >> d & 1;
        lm_dim_of dim = {r->x.layout.shape[d], {bytes(&r->x, d)}};
        if (!is_reduced) dim.stride[1] = bytes(&r->out, d);
        if (!is_reduced) dim.stride[2] = bytes(positions, d);
        lm_dims_add(is_reduced ? reduced : kept, dim);
    }
    char *at[] = {lm_data(&r->x), a->out, a->positions};
    lm_dims_sort(kept, at);
    a->out = at[1];
    a->positions = at[2];
    at[1] = at[2] = NULL;
    if (!a->positions || r->op == LM_OP_var || r->op == LM_OP_std) lm_dims_sort(reduced, at);
    a->x = at[0];
    lm_dims_merge(kept);
    lm_dims_merge(reduced);
    lm_dims_walk(kept, &a->kept, 3, (int64_t *[]){a->kept_x, a->kept_out, a->kept_positions});
    lm_dims_walk(reduced, &a->reduced, 1, (int64_t *[]){a->reduced_x});
}

static luma_status launch(luma_state *S, lm_cuda *c, const folding *f, luma_dtype dtype,
                          const lm_cut *cut, lm_args_reduce *a) {
    int64_t cells = a->kept.n * cut->chunks;
    lm_storage *parts;
    a->group = cut->group;
    a->chunk = cut->chunk;
    a->chunks = cut->chunks;
    if (cut->chunks == 1) return lm_cuda_launch(S, c, f->fold[dtype], cut->shape, a);
    LM_TRY(lm_cuda_scratch(S, c, (size_t)cells * 8 * (size_t)f->words, &parts));
    a->parts = parts->data;
    luma_status status = lm_cuda_launch(S, c, f->fold[dtype], cut->shape, a);
    if (status == LUMA_OK) {
        lm_cut joins = lm_cut_joins(c, a->kept.n, cut->chunks);
        a->group = joins.group;
        status = lm_cuda_launch(S, c, f->join[dtype], joins.shape, a);
    }
    lm_storage_release(parts);
    return status;
}

luma_status lm_cuda_reduce(luma_state *S, lm_device *d, const lm_reduce *r) {
    lm_cuda *c = lm_cuda_of(d);
    const folding *f = choose(without_nan(r));
    lm_args_reduce a = {.parts = NULL};
    lm_dims kept = {0}, reduced = {0};
    size_t size = lm_dtype_size(r->x.dtype);
    set_operation(S, r, &a);
    set_walks(r, &a, &kept, &reduced);
    if (a.kept.n == 0) return LUMA_OK;
    a.freedom = (double)a.reduced.n - r->correction;
    if (!(a.freedom > 0)) a.freedom = 0;
    if (r->op == LM_OP_norm) a.freedom = r->correction;
    lm_cut_wish wish = {.lines = a.kept.n,
                        .length = a.reduced.n,
                        .beside = lm_dims_beside(&kept, &reduced),
                        .most = f->two_passes ? TWO_PASSES : 0,
                        .each = 1,
                        .size = size};
    if (wish.beside == 0) wish.each = size < 2 ? 16 : 8;
    a.vectors = wish.beside == 0 && reduced.n == 1 && a.reduced_x[0] == (int64_t)size;
    lm_cut cut = lm_cut_lines(c, &wish);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = launch(S, c, f, r->x.dtype, &cut, &a);
    lm_cuda_leave(c);
    return status;
}
