/* index_write.c -- writing along one dim at the positions of an index tensor: what is written, added or
** otherwise joined, and into what. Layer: core. */
#include <string.h>

#include "index.h"
#include "index_walk.h"

luma_status lm_index_source(luma_state *S, luma_tensor *own, int argument, const luma_tensor *src,
                            const luma_tensor *x, luma_dtype dtype) {
    if (lm_is_number(src)) {
        LM_TRY(lm_number_check(S, argument, src->number, x->dtype));
        LM_TRY(lm_tensor_new(S, own, lm_device_of(x), dtype, 0, NULL));
        luma_status status = lm_fill(S, own, src->number);
        if (status != LUMA_OK) luma_release(S, own);
        return status;
    }
    return lm_index_adopt(S, own, src, lm_device_of(x), dtype);
}

luma_status lm_index_kind_check(luma_state *S, int argument, const luma_tensor *src,
                                const luma_tensor *x) {
    if (!src->storage || lm_dtypes[src->dtype].kind <= lm_dtypes[x->dtype].kind) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, argument, "%s values do not go into %s: cast them first",
                   lm_dtypes[src->dtype].name, lm_dtypes[x->dtype].name);
}

luma_status lm_index_keep_apart(luma_state *S, luma_tensor *t, const luma_tensor *x) {
    if (t->storage != x->storage || !lm_layout_may_overlap(&t->layout, &x->layout)) return LUMA_OK;
    luma_tensor apart = LUMA_NEW;
    LM_TRY(luma_clone(S, &apart, t));
    luma_release(S, t);
    *t = apart;
    return LUMA_OK;
}

luma_status lm_index_write_copy(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                lm_index_write *write, void *context) {
    if (out->storage && lm_tensor_is_same(out, x)) {
        LM_TRY(lm_tensor_check(S, 0, out, true));
        luma_status status = write(S, out, context);
        out->storage->version++;
        return status;
    }
    /* against itself a live out counts as overlapped */
    const luma_tensor *self = out;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                          &self, out->storage ? 1 : 0, 0));
    luma_status status = lm_copy(S, &r.work, x);
    if (status == LUMA_OK) status = write(S, &r.work, context);
    return lm_result_close(S, &r, status);
}

luma_dtype lm_index_sum_dtype(const luma_tensor *x) {
    return lm_dtype_is_float(x->dtype) ? (luma_dtype)lm_dtypes[x->dtype].compute : x->dtype;
}

/* ---- a walk along one dim --------------------------------------------------------------------*/

/* What happens at the places. */
typedef struct {
    lm_op op;
    lm_index_kind kind;
    bool alone; /* what was there before does not count */
    bool mean;
} deed;

typedef struct {
    const deed *how;
    lm_index *w; /* lacks only `indexed` and the step of its index */
    int dim;
    const luma_tensor *out; /* what a failure leaves as it was */
} job;

static luma_dtype walk_dtype(const deed *how, const luma_tensor *x) {
    return how->kind == LM_INDEX_WRITE ? x->dtype : lm_index_sum_dtype(x);
}

/* The walk over x, along dim. */
static lm_index aimed(const job *j, const luma_tensor *x) {
    lm_index aim = *j->w;
    luma_tensor wide = lm_at_least_1d(x);
    aim.indexed = lm_index_fixed_along(&wide, j->w, j->dim);
    aim.fresh = x->storage != j->out->storage;
    aim.parts[0].size = aim.parts[0].modulus = wide.layout.shape[j->dim];
    aim.parts[0].step = wide.layout.stride[j->dim];
    return aim;
}

/* The same walk with one number in place of what is written, of x's dtype. */
static luma_status walk_number(luma_state *S, const job *j, const luma_tensor *x,
                               lm_index_kind kind, int64_t number) {
    luma_tensor one;
    lm_index w = aimed(j, x);
    LM_TRY(lm_tensor_new(S, &one, lm_device_of(x), x->dtype, 0, NULL));
    luma_status status = lm_fill(S, &one, luma_integer(number).number);
    w.kind = kind;
    w.plain = one;
    w.plain.layout = lm_layout_expand(&one.layout, w.ndim, w.shape);
    if (status == LUMA_OK) status = lm_index_walk_run(S, &w);
    luma_release(S, &one);
    return status;
}

/* Before the walk: places that are not to count become what changes nothing. */
static luma_status clear_places(luma_state *S, const job *j, const luma_tensor *x) {
    if (j->how->kind == LM_INDEX_ADD) return walk_number(S, j, x, LM_INDEX_WRITE, 0);
    if (j->how->kind == LM_INDEX_MUL) return walk_number(S, j, x, LM_INDEX_WRITE, 1);
    lm_index w = aimed(j, x);
    w.kind = LM_INDEX_WRITE;
    return lm_index_walk_run(S, &w);
}

/* How many terms each place has, at least 1. */
static luma_status count_terms(luma_state *S, luma_tensor *count, const job *j,
                               const luma_tensor *x) {
    const luma_scalar least = luma_integer(1).number, none = {.kind = LUMA_NOT_A_NUMBER};
    LM_TRY(lm_tensor_new(S, count, lm_device_of(x), LUMA_INT64, x->layout.ndim, x->layout.shape));
    LM_TRY(lm_fill(S, count, luma_integer(j->how->alone ? 0 : 1).number));
    LM_TRY(walk_number(S, j, count, LM_INDEX_ADD, 1));
    if (!j->how->alone) return LUMA_OK;
    return lm_map_inplace(S, LM_OP_clamp, count, 1, (const luma_tensor *[]){count},
                          (const luma_scalar[]){least, none});
}

static luma_status walk_sum(luma_state *S, const job *j, luma_tensor *sum, luma_tensor *count) {
    if (j->how->mean) LM_TRY(count_terms(S, count, j, sum));
    if (j->how->alone) LM_TRY(clear_places(S, j, sum));
    lm_index w = aimed(j, sum);
    LM_TRY(lm_index_walk_run(S, &w));
    if (!j->how->mean) return LUMA_OK;
    return lm_map_inplace(S, lm_dtype_is_float(sum->dtype) ? LM_OP_div : LM_OP_floor_div, sum, 2,
                          (const luma_tensor *[]){sum, count}, NULL);
}

/* Runs the walk on target, whose dtype may be one that no sum runs in. */
static luma_status write_target(luma_state *S, luma_tensor *target, void *context) {
    const job *j = context;
    luma_tensor sum, count = LUMA_NEW;
    LM_TRY(lm_index_adopt(S, &sum, target, lm_device_of(target), j->w->plain.dtype));
    luma_status status = LUMA_OK;
    /* a failure between two steps leaves x as it was */
    if (target == j->out && (j->how->alone || j->how->mean))
        status = lm_index_keep_apart(S, &sum, target);
    if (status == LUMA_OK) status = walk_sum(S, j, &sum, &count);
    luma_release(S, &count);
    if (status == LUMA_OK && sum.storage != target->storage) status = lm_copy(S, target, &sum);
    luma_release(S, &sum);
    return status;
}

/* Runs a walk whose plain elements are those of own_src, and its index is own. */
static luma_status run(luma_state *S, luma_tensor *out, const luma_tensor *x, const deed *how,
                       lm_index *w, int dim) {
    job j = {.how = how, .w = w, .dim = dim, .out = out};
    return lm_index_write_copy(S, out, x, write_target, &j);
}

/* The source and the index of a write into x, where the walk finds them, apart from out. */
typedef struct {
    luma_tensor src, index;
} sources;

static void close_sources(luma_state *S, sources *from) {
    luma_release(S, &from->index);
    luma_release(S, &from->src);
}

static luma_status open_sources(luma_state *S, sources *from, const luma_tensor *out,
                                const deed *how, const luma_tensor *x, const luma_tensor *index,
                                const luma_tensor *src) {
    LM_TRY(lm_index_place_check(S, 4, src, x));
    LM_TRY(lm_index_kind_check(S, 4, src, x));
    from->index = LUMA_NEW;
    LM_TRY(lm_index_source(S, &from->src, 4, src, x, walk_dtype(how, x)));
    luma_status status = lm_index_adopt(S, &from->index, index, lm_device_of(x), index->dtype);
    if (out->storage && status == LUMA_OK) status = lm_index_keep_apart(S, &from->src, out);
    if (out->storage && status == LUMA_OK) status = lm_index_keep_apart(S, &from->index, out);
    if (status != LUMA_OK) close_sources(S, from);
    return status;
}

static luma_status scatter(luma_state *S, luma_tensor *out, const deed *how, const luma_tensor *x,
                           int64_t dim, const luma_tensor *index, const luma_tensor *src) {
    int d;
    LM_TRY(lm_index_tensor_check(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(lm_index_sizes_check(S, 3, index, x, "x", d));
    if (src->storage) LM_TRY(lm_index_sizes_check(S, 3, index, src, "src", -1));
    sources from;
    LM_TRY(open_sources(S, &from, out, how, x, index, src));
    lm_index w;
    luma_tensor positions = lm_at_least_1d(&from.index);
    int added = positions.layout.ndim - from.index.layout.ndim;
    lm_index_walk_open(S, &w, how->op, how->kind, positions.layout.ndim, positions.layout.shape);
    lm_index_walk_part(&w, 3, &from.index, added, from.index.layout.ndim, 0, 0);
    w.plain = lm_at_least_1d(&from.src);
    if (src->storage)
        memcpy(w.plain.layout.shape, w.shape, sizeof w.shape);
    else
        w.plain.layout = lm_layout_expand(&from.src.layout, w.ndim, w.shape);
    luma_status status = run(S, out, x, how, &w, d);
    close_sources(S, &from);
    return status;
}

luma_status luma_scatter(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                         const luma_tensor *index, const luma_tensor *src) {
    return scatter(S, out, &(deed){LM_OP_scatter, LM_INDEX_WRITE, false, false}, x, dim, index,
                   src);
}

luma_status luma_scatter_add(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                             const luma_tensor *index, const luma_tensor *src) {
    LM_TRY(lm_tensor_not_bool(S, 1, x, "sums"));
    return scatter(S, out, &(deed){LM_OP_scatter_add, LM_INDEX_ADD, false, false}, x, dim, index,
                   src);
}

/* src has the shape of x, but along dim that of the list index. */
static luma_status check_slices(luma_state *S, const luma_tensor *x, int dim,
                                const luma_tensor *index, const luma_tensor *src) {
    lm_text a, b;
    if (index->layout.ndim > 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: one dim expected",
                       lm_layout_text(&a, &index->layout));
    if (x->layout.ndim == 0 && luma_numel(index) != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: a 0-d tensor has one position",
                       lm_layout_text(&a, &index->layout));
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, x->layout.shape, sizeof shape);
    if (x->layout.ndim) shape[dim] = luma_numel(index);
    if (src->layout.ndim != x->layout.ndim ||
        memcmp(shape, src->layout.shape, (size_t)x->layout.ndim * sizeof *shape) != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 4, "src is %s: %s expected",
                       lm_layout_text(&a, &src->layout), lm_shape_text(&b, x->layout.ndim, shape));
    return LUMA_OK;
}

static luma_status slices(luma_state *S, luma_tensor *out, const deed *how, const luma_tensor *x,
                          int64_t dim, const luma_tensor *index, const luma_tensor *src) {
    int d;
    LM_TRY(lm_index_tensor_check(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(check_slices(S, x, d, index, src));
    sources from;
    LM_TRY(open_sources(S, &from, out, how, x, index, src));
    lm_index w;
    luma_tensor wide = lm_at_least_1d(&from.src);
    lm_index_walk_open(S, &w, how->op, how->kind, wide.layout.ndim, wide.layout.shape);
    w.plain = wide;
    lm_index_walk_part(&w, 3, &from.index, d, 1, 0, 0);
    luma_status status = run(S, out, x, how, &w, d);
    close_sources(S, &from);
    return status;
}

luma_status luma_index_add(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                           const luma_tensor *index, const luma_tensor *src) {
    LM_TRY(lm_tensor_not_bool(S, 1, x, "sums"));
    return slices(S, out, &(deed){LM_OP_index_add, LM_INDEX_ADD, false, false}, x, dim, index, src);
}

luma_status luma_index_copy(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                            const luma_tensor *index, const luma_tensor *src) {
    return slices(S, out, &(deed){LM_OP_index_copy, LM_INDEX_WRITE, false, false}, x, dim, index,
                  src);
}

luma_status luma_index_fill(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                            const luma_tensor *index, const luma_tensor *value) {
    int64_t shape[LUMA_MAX_DIMS];
    lm_text text;
    int d;
    LM_TRY(lm_index_tensor_check(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    if (value->storage && value->layout.ndim > 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 4, "the value is %s: a number or a 0-d tensor expected",
                       lm_layout_text(&text, &value->layout));
    LM_TRY(lm_index_place_check(S, 4, value, x));
    LM_TRY(lm_index_kind_check(S, 4, value, x));
    luma_tensor src;
    LM_TRY(lm_index_source(S, &src, 4, value, x, x->dtype));
    memcpy(shape, x->layout.shape, sizeof shape);
    if (x->layout.ndim) shape[d] = luma_numel(index);
    luma_tensor wide = src;
    wide.layout = lm_layout_expand(&src.layout, x->layout.ndim, shape);
    const deed how = {LM_OP_index_fill, LM_INDEX_WRITE, false, false};
    luma_status status = slices(S, out, &how, x, dim, index, &wide);
    luma_release(S, &src);
    return status;
}

/* ---- scatter_reduce, index_reduce ------------------------------------------------------------*/

static luma_status choose(luma_state *S, deed *how, lm_op op, const luma_tensor *x,
                          luma_combine combine, bool include_self) {
    static const lm_index_kind kinds[] = {LM_INDEX_ADD, LM_INDEX_MUL, LM_INDEX_ADD, LM_INDEX_MAX,
                                          LM_INDEX_MIN};
    if ((unsigned)combine > LUMA_COMBINE_AMIN)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 5, "no way to reduce");
    *how = (deed){op, kinds[combine], !include_self, combine == LUMA_COMBINE_MEAN};
    return combine < LUMA_COMBINE_AMAX ? lm_tensor_not_bool(S, 1, x, "sums") : LUMA_OK;
}

luma_status luma_scatter_reduce(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                                const luma_tensor *index, const luma_tensor *src,
                                luma_combine combine, bool include_self) {
    deed how;
    LM_TRY(choose(S, &how, LM_OP_scatter_reduce, x, combine, include_self));
    return scatter(S, out, &how, x, dim, index, src);
}

luma_status luma_index_reduce(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                              const luma_tensor *index, const luma_tensor *src,
                              luma_combine combine, bool include_self) {
    deed how;
    LM_TRY(choose(S, &how, LM_OP_index_reduce, x, combine, include_self));
    return slices(S, out, &how, x, dim, index, src);
}
