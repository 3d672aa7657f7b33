/* index.c -- indexing by tensors: dtypes, shapes, who copies what. Everything becomes one walk over
** a plain tensor, with index tensors that say where in another one each of its elements lies; the
** device's index slot does the moving. Layer: core. */
#include "index.h"

#include <string.h>

#include "index_walk.h"

luma_status lm_index_fail_at(luma_state *S, int argument, int ndim, const int64_t *shape,
                             int64_t at, int64_t value, int64_t size) {
    int64_t place[LUMA_MAX_DIMS];
    lm_place_at(place, ndim, shape, at);
    lm_text text;
    const char *hint = S->index_base == 1 && value == 0
                           ? " (positions count from 1: add 1 to labels made by NumPy)"
                           : "";
    return lm_fail(S, LUMA_ERR_INDEX, argument, "index %lld%s%s is out of range for size %lld%s",
                   (long long)value, ndim ? " at position " : "",
                   ndim ? lm_place_text(S, &text, ndim, place) : "", (long long)size, hint);
}

luma_status lm_index_fail(luma_state *S, const lm_index_part *part, int64_t at, int64_t value) {
    const luma_layout *index = &part->index.layout;
    return lm_index_fail_at(S, part->argument, index->ndim, index->shape, at, value, part->size);
}

luma_status lm_index_check(luma_state *S, int argument, const luma_tensor *index, int64_t size) {
    const int64_t *v = (const int64_t *)(const void *)lm_data(index);
    int64_t n = luma_numel(index);
    for (int64_t i = 0; i < n; i++) {
        if (v[i] >= S->index_base && v[i] - S->index_base < size) continue;
        return lm_index_fail_at(S, argument, index->layout.ndim, index->layout.shape, i, v[i],
                                size);
    }
    return LUMA_OK;
}

/* ---- inputs ----------------------------------------------------------------------------------*/

luma_status lm_index_adopt(luma_state *S, luma_tensor *own, const luma_tensor *x, lm_device *device,
                           luma_dtype dtype) {
    if (lm_device_of(x) == device && x->dtype == dtype) {
        luma_share(own, x);
        return LUMA_OK;
    }
    LM_TRY(lm_tensor_new(S, own, device, dtype, x->layout.ndim, x->layout.shape));
    luma_status status = lm_copy(S, own, x);
    if (status != LUMA_OK) luma_release(S, own);
    return status;
}

luma_status lm_index_place_check(luma_state *S, int argument, const luma_tensor *t,
                                 const luma_tensor *x) {
    if (!t->storage || lm_device_of(t) == lm_device_of(x) ||
        (t->layout.ndim == 0 && lm_device_of(t) == lm_cpu(S)))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DEVICE, argument, "a tensor on %s, where the other is on %s",
                   lm_device_of(t)->name, lm_device_of(x)->name);
}

luma_status lm_index_tensor_check(luma_state *S, int argument, const luma_tensor *index,
                                  const luma_tensor *x) {
    if (!index->storage)
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "the index is a number: a tensor expected");
    if (index->dtype == LUMA_BOOL)
        return lm_fail(S, LUMA_ERR_DTYPE, argument,
                       "the index is bool: an integer dtype expected (a mask selects with "
                       "masked_select)");
    if (!lm_dtype_is_int(index->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, argument,
                       "the index is %s: an integer dtype expected, such as int64",
                       lm_dtypes[index->dtype].name);
    LM_TRY(lm_index_place_check(S, argument, index, x));
    return lm_tensor_check(S, argument, index, false);
}

/* ---- the walk --------------------------------------------------------------------------------*/

void lm_index_walk_open(const luma_state *S, lm_index *w, lm_op op, lm_index_kind kind, int ndim,
                        const int64_t *shape) {
    *w = (lm_index){.op = op, .kind = kind, .index_base = S->index_base, .ndim = ndim};
    memcpy(w->shape, shape, (size_t)ndim * sizeof *shape);
}

lm_index_part *lm_index_walk_part(lm_index *w, int argument, const luma_tensor *index, int first,
                                  int ndim, int64_t size, int64_t step) {
    lm_index_part *p = &w->parts[w->n++];
    *p = (lm_index_part){.index = *index,
                         .size = size,
                         .step = step,
                         .divisor = 1,
                         .modulus = size,
                         .argument = argument};
    const luma_layout *x = &index->layout;
    for (int d = 0; d < x->ndim; d++)
        p->stride[first + ndim - x->ndim + d] = x->shape[d] == 1 ? 0 : x->stride[d];
    return p;
}

luma_status lm_index_walk_run(luma_state *S, const lm_index *w) {
    lm_device *device = lm_device_of(&w->indexed);
    return LM_SLOT(S, device, index, "indexing", w->indexed.dtype, w);
}

luma_tensor lm_index_fixed_along(const luma_tensor *x, const lm_index *w, int dim) {
    luma_tensor t = *x;
    memcpy(t.layout.shape, w->shape, sizeof w->shape);
    t.layout.stride[dim] = 0;
    return t;
}

/* ---- reading ---------------------------------------------------------------------------------*/

luma_status lm_index_read_into(luma_state *S, luma_tensor *out, const luma_tensor *x, lm_index *w,
                               int ndim) {
    const luma_tensor *inputs[LUMA_MAX_DIMS + 1] = {x};
    for (int i = 0; i < w->n; i++)
        inputs[i + 1] = &w->parts[i].index;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(&w->indexed), w->indexed.dtype, ndim, w->shape,
                          inputs, w->n + 1, 0));
    w->plain = lm_at_least_1d(&r.work);
    w->fresh = r.owned;
    return lm_result_close(S, &r, lm_index_walk_run(S, w));
}

luma_status luma_index_select(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                              const luma_tensor *index) {
    int d;
    lm_text text;
    LM_TRY(lm_index_tensor_check(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    if (index->layout.ndim > 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: one dim expected",
                       lm_layout_text(&text, &index->layout));
    luma_tensor own, wide = lm_at_least_1d(x);
    LM_TRY(lm_index_adopt(S, &own, index, lm_device_of(x), index->dtype));
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, wide.layout.shape, sizeof shape);
    shape[d] = luma_numel(index);
    lm_index w;
    lm_index_walk_open(S, &w, LM_OP_index_select, LM_INDEX_READ, wide.layout.ndim, shape);
    lm_index_walk_part(&w, 3, &own, d, 1, wide.layout.shape[d], wide.layout.stride[d]);
    w.indexed = lm_index_fixed_along(&wide, &w, d);
    int ndim = x->layout.ndim ? x->layout.ndim : index->layout.ndim;
    luma_status status = lm_index_read_into(S, out, x, &w, ndim);
    luma_release(S, &own);
    return status;
}

/* index has the dims of x and, but along dim, fits into it; so for src, along dim too. */
luma_status lm_index_sizes_check(luma_state *S, int argument, const luma_tensor *index,
                                 const luma_tensor *x, const char *name, int but) {
    lm_text a, b;
    if (index->layout.ndim != x->layout.ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, argument,
                       "the index is %s, %s is %s: the same number of dims expected",
                       lm_layout_text(&a, &index->layout), name, lm_layout_text(&b, &x->layout));
    for (int d = 0; d < x->layout.ndim; d++) {
        if (d != but && index->layout.shape[d] > x->layout.shape[d])
            return lm_fail(S, LUMA_ERR_SHAPE, argument,
                           "the index is %s, larger than %s %s along dim %lld",
                           lm_layout_text(&a, &index->layout), name, lm_layout_text(&b, &x->layout),
                           (long long)lm_pos(S, d));
    }
    return LUMA_OK;
}

/* index and x have the same number of dims, and index fits in x but along dim d. */
static luma_status gather(luma_state *S, luma_tensor *out, lm_op op, int argument,
                          const luma_tensor *x, int d, const luma_tensor *index) {
    luma_tensor own, wide = lm_at_least_1d(x);
    LM_TRY(lm_index_adopt(S, &own, index, lm_device_of(x), index->dtype));
    luma_tensor positions = lm_at_least_1d(&own);
    lm_index w;
    lm_index_walk_open(S, &w, op, LM_INDEX_READ, wide.layout.ndim, positions.layout.shape);
    lm_index_part *p = lm_index_walk_part(&w, argument, &own, 0, index->layout.ndim,
                                          wide.layout.shape[d], wide.layout.stride[d]);
    memcpy(p->stride, positions.layout.stride, sizeof p->stride);
    w.indexed = lm_index_fixed_along(&wide, &w, d);
    luma_status status = lm_index_read_into(S, out, x, &w, x->layout.ndim);
    luma_release(S, &own);
    return status;
}

luma_status luma_gather(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                        const luma_tensor *index) {
    int d;
    LM_TRY(lm_index_tensor_check(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(lm_index_sizes_check(S, 3, index, x, "x", d));
    return gather(S, out, LM_OP_gather, 3, x, d, index);
}

static luma_status take_flat(luma_state *S, luma_tensor *out, const luma_tensor *x,
                             const luma_tensor *index);

luma_status luma_take_along_dim(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                const luma_tensor *index, bool has_dim, int64_t dim) {
    int d, ndim = x->layout.ndim, n;
    lm_text a, b;
    int64_t shape[LUMA_MAX_DIMS];
    LM_TRY(lm_index_tensor_check(S, 2, index, x));
    LM_TRY(lm_tensor_check(S, 1, x, false));
    if (!has_dim) return take_flat(S, out, x, index);
    LM_TRY(lm_dim(S, 3, dim, ndim, &d));
    if (index->layout.ndim != ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, 2,
                       "the index is %s, x is %s: the same number of dims expected",
                       lm_layout_text(&a, &index->layout), lm_layout_text(&b, &x->layout));
    if (ndim == 0) return gather(S, out, LM_OP_take_along_dim, 2, x, 0, index);
    luma_tensor from = *x, at = *index;
    from.layout.shape[d] = at.layout.shape[d] = 1;
    if (lm_shape_broadcast(S, ndim, from.layout.shape, ndim, at.layout.shape, &n, shape) != LUMA_OK)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the index is %s, x is %s: they do not broadcast",
                       lm_layout_text(&a, &index->layout), lm_layout_text(&b, &x->layout));
    shape[d] = x->layout.shape[d];
    from.layout = lm_layout_expand(&x->layout, ndim, shape);
    shape[d] = index->layout.shape[d];
    at.layout = lm_layout_expand(&index->layout, ndim, shape);
    return gather(S, out, LM_OP_take_along_dim, 2, &from, d, &at);
}

void lm_index_walk_flat(const luma_state *S, lm_index *w, lm_op op, lm_index_kind kind,
                        const luma_tensor *x, int argument, const luma_tensor *index) {
    luma_tensor positions = lm_at_least_1d(index);
    lm_index_walk_open(S, w, op, kind, positions.layout.ndim, positions.layout.shape);
    int64_t numel = luma_numel(x), divisor = 1;
    bool flat = luma_is_contiguous(x) || numel == 0;
    for (int d = flat ? 0 : x->layout.ndim - 1; d >= 0; d--) {
        int64_t step = flat ? 1 : x->layout.stride[d];
        lm_index_part *p =
            lm_index_walk_part(w, argument, index, 0, index->layout.ndim, numel, step);
        p->known = w->n > 1;
        if (flat) break;
        p->divisor = divisor;
        p->modulus = x->layout.shape[d];
        divisor *= p->modulus;
    }
    w->indexed = *x;
    w->indexed.layout = lm_layout_contiguous(w->ndim, w->shape);
    memset(w->indexed.layout.stride, 0, sizeof w->indexed.layout.stride);
    w->indexed.layout.offset = x->layout.offset;
}

/* Elements of x at flat positions, in the shape of index, which is on x's device. */
static luma_status read_flat(luma_state *S, luma_tensor *out, const luma_tensor *x, int argument,
                             const luma_tensor *index) {
    lm_index w;
    lm_index_walk_flat(S, &w, LM_OP_take, LM_INDEX_READ, x, argument, index);
    return lm_index_read_into(S, out, x, &w, index->layout.ndim);
}

static luma_status take_flat(luma_state *S, luma_tensor *out, const luma_tensor *x,
                             const luma_tensor *index) {
    luma_tensor flat = LUMA_NEW, own = LUMA_NEW;
    LM_TRY(luma_reshape(S, &flat, index, 1, (const int64_t[]){-1}));
    luma_status status = lm_index_adopt(S, &own, &flat, lm_device_of(x), index->dtype);
    if (status == LUMA_OK) status = read_flat(S, out, x, 2, &own);
    luma_release(S, &own);
    luma_release(S, &flat);
    return status;
}

luma_status luma_take(luma_state *S, luma_tensor *out, const luma_tensor *x,
                      const luma_tensor *index) {
    luma_tensor own;
    LM_TRY(lm_index_tensor_check(S, 2, index, x));
    LM_TRY(lm_tensor_check(S, 1, x, false));
    LM_TRY(lm_index_adopt(S, &own, index, lm_device_of(x), index->dtype));
    luma_status status = read_flat(S, out, x, 2, &own);
    luma_release(S, &own);
    return status;
}

/* ---- masks -----------------------------------------------------------------------------------*/

luma_status lm_index_positions(luma_state *S, luma_tensor *out, const luma_tensor *mask) {
    lm_device *device = lm_device_of(mask);
    int64_t count;
    LM_TRY(LM_SLOT(S, device, count_nonzero, "nonzero", LUMA_BOOL, mask, &count));
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, device, LUMA_INT64, 2, (int64_t[]){count, mask->layout.ndim},
                          &mask, 1, LM_RESULT_CONTIGUOUS));
    return lm_result_close(
        S, &r, LM_SLOT(S, device, nonzero, "nonzero", LUMA_BOOL, &r.work, mask, S->index_base));
}

luma_status lm_index_mask(luma_state *S, luma_tensor *mask, const luma_tensor *x) {
    if (x->dtype == LUMA_BOOL && luma_is_contiguous(x)) {
        luma_share(mask, x);
        return LUMA_OK;
    }
    LM_TRY(lm_tensor_new(S, mask, lm_device_of(x), LUMA_BOOL, x->layout.ndim, x->layout.shape));
    luma_status status = lm_copy(S, mask, x);
    if (status != LUMA_OK) luma_release(S, mask);
    return status;
}

luma_status luma_nonzero(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    luma_tensor mask;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    LM_TRY(lm_index_mask(S, &mask, x));
    luma_status status = lm_index_positions(S, out, &mask);
    luma_release(S, &mask);
    return status;
}

luma_status lm_index_mask_check(luma_state *S, int argument, const luma_tensor *mask,
                                const luma_tensor *x) {
    LM_TRY(lm_tensor_live(S, argument, mask));
    if (mask->dtype != LUMA_BOOL)
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "the mask is %s: bool expected",
                       lm_dtypes[mask->dtype].name);
    return lm_index_place_check(S, argument, mask, x);
}

luma_status lm_index_flat_positions(luma_state *S, luma_tensor *out, const luma_tensor *mask,
                                    lm_device *device, int ndim, const int64_t *shape) {
    luma_tensor wide = *mask, flat, own = LUMA_NEW;
    int64_t numel = 1;
    for (int d = 0; d < ndim; d++)
        numel *= shape[d];
    wide.layout = lm_layout_expand(&mask->layout, ndim, shape);
    LM_TRY(lm_index_adopt(S, &own, &wide, device, LUMA_BOOL));
    luma_status status = lm_index_mask(S, &flat, &own);
    luma_release(S, &own);
    LM_TRY(status);
    int64_t offset = flat.layout.offset;
    flat.layout = lm_layout_contiguous(1, &numel);
    flat.layout.offset = offset;
    status = lm_index_positions(S, out, &flat);
    luma_release(S, &flat);
    if (status == LUMA_OK) out->layout = lm_layout_remove(&out->layout, 1);
    return status;
}

luma_status luma_masked_select(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const luma_tensor *mask) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_index_mask_check(S, 2, mask, x));
    int ndim;
    int64_t shape[LUMA_MAX_DIMS], numel;
    LM_TRY(lm_shape_broadcast(S, x->layout.ndim, x->layout.shape, mask->layout.ndim,
                              mask->layout.shape, &ndim, shape));
    if (!lm_numel_fits(ndim, shape, LUMA_INT64, &numel))
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "the shape of x and mask together is too large");
    luma_tensor wide = *x, positions = LUMA_NEW;
    wide.layout = lm_layout_expand(&x->layout, ndim, shape);
    LM_TRY(lm_index_flat_positions(S, &positions, mask, lm_device_of(x), ndim, shape));
    luma_status status = read_flat(S, out, &wide, 1, &positions);
    luma_release(S, &positions);
    return status;
}

/* ---- labels ----------------------------------------------------------------------------------*/

luma_status lm_index_pick(luma_state *S, luma_tensor *out, lm_op op, int argument,
                          const luma_tensor *x, int dim, const luma_tensor *index) {
    lm_index w;
    luma_tensor own, from = *x;
    LM_TRY(lm_index_adopt(S, &own, index, lm_device_of(x), index->dtype));
    from.layout = lm_layout_remove(&x->layout, dim);
    luma_layout at = lm_at_least_1d(&own).layout;
    lm_index_walk_open(S, &w, op, LM_INDEX_READ, at.ndim, at.shape);
    lm_index_walk_part(&w, argument, &own, 0, own.layout.ndim, x->layout.shape[dim],
                       x->layout.stride[dim]);
    w.indexed = lm_at_least_1d(&from);
    luma_status status = lm_index_read_into(S, out, x, &w, own.layout.ndim);
    luma_release(S, &own);
    return status;
}

luma_status luma_embedding(luma_state *S, luma_tensor *out, const luma_tensor *index,
                           const luma_tensor *weight) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, 2, weight, false));
    LM_TRY(lm_index_tensor_check(S, 1, index, weight));
    int n = index->layout.ndim;
    if (weight->layout.ndim != 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the weight is %s: 2 dims expected, rows to choose",
                       lm_layout_text(&text, &weight->layout));
    if (n == LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: the result has one more, at most %d", n,
                       LUMA_MAX_DIMS);
    lm_index w;
    luma_tensor own;
    luma_layout rows = {.ndim = n + 1, .offset = weight->layout.offset};
    memcpy(rows.shape, index->layout.shape, (size_t)n * sizeof *rows.shape);
    rows.shape[n] = weight->layout.shape[1];
    rows.stride[n] = weight->layout.stride[1];
    LM_TRY(lm_index_adopt(S, &own, index, lm_device_of(weight), index->dtype));
    lm_index_walk_open(S, &w, LM_OP_embedding, LM_INDEX_READ, n + 1, rows.shape);
    lm_index_walk_part(&w, 1, &own, 0, n, weight->layout.shape[0], weight->layout.stride[0]);
    w.indexed = *weight;
    w.indexed.layout = rows;
    luma_status status = lm_index_read_into(S, out, weight, &w, n + 1);
    luma_release(S, &own);
    return status;
}

/* How many classes there are for the greatest label of x to be one. */
static luma_status count_classes(luma_state *S, const luma_tensor *x, int64_t *classes) {
    luma_scalar greatest;
    luma_tensor top = LUMA_NEW;
    if (luma_numel(x) == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "no labels tell how many classes there are");
    LM_TRY(luma_amax(S, &top, x, 0, NULL, false));
    luma_status status = luma_item(S, &top, &greatest);
    luma_release(S, &top);
    LM_TRY(status);
    int64_t last = greatest.u.i < S->index_base ? S->index_base - 1 : greatest.u.i;
    *classes = last - S->index_base;
    if (!lm_add_fits(*classes, 1, classes))
        return lm_fail(S, LUMA_ERR_MEMORY, 1, "label %lld: too many classes", (long long)last);
    return LUMA_OK;
}

/* work, all 0, with 1 at the labels of own along its last dim. */
static luma_status set_ones(luma_state *S, luma_tensor *work, const luma_tensor *own) {
    lm_index w;
    luma_tensor one;
    luma_layout at = lm_at_least_1d(own).layout;
    int last = work->layout.ndim - 1;
    LM_TRY(lm_fill(S, work, luma_integer(0).number));
    LM_TRY(lm_tensor_new(S, &one, lm_device_of(work), LUMA_INT64, 0, NULL));
    luma_status status = lm_fill(S, &one, luma_integer(1).number);
    lm_index_walk_open(S, &w, LM_OP_one_hot, LM_INDEX_WRITE, at.ndim, at.shape);
    lm_index_walk_part(&w, 1, own, 0, own->layout.ndim, work->layout.shape[last],
                       work->layout.stride[last]);
    w.plain = one;
    w.plain.layout = lm_layout_expand(&one.layout, w.ndim, w.shape);
    w.indexed = *work;
    w.indexed.layout = lm_layout_remove(&work->layout, last);
    w.indexed = lm_at_least_1d(&w.indexed);
    if (status == LUMA_OK) status = lm_index_walk_run(S, &w);
    luma_release(S, &one);
    return status;
}

luma_status luma_one_hot(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t classes) {
    int n = x->layout.ndim;
    int64_t shape[LUMA_MAX_DIMS];
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_index_tensor_check(S, 1, x, x));
    if (n == LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: the result has one more, at most %d", n,
                       LUMA_MAX_DIMS);
    if (classes < -1 || classes == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld classes: at least 1 expected",
                       (long long)classes);
    if (classes < 0) LM_TRY(count_classes(S, x, &classes));
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[n] = classes;
    /* out counts as overlapped: it is written when all labels are right */
    const luma_tensor *self = out;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), LUMA_INT64, n + 1, shape, &self,
                          out->storage ? 1 : 0, 0));
    return lm_result_close(S, &r, set_ones(S, &r.work, x));
}
