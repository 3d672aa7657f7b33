/* index.c -- indexing by tensors: dtypes, shapes, who copies what. Everything becomes one walk over
 *a
 ** plain tensor, with index tensors that say where in another one each of its elements lies; the
 ** device's index slot does the moving. Layer: core. */
#include "index.h"

#include <string.h>

#include "tensor.h"

static const char *shape_of(lm_text *buffer, const luma_tensor *x) {
    return lm_shape_text(buffer, x->layout.ndim, x->layout.shape);
}

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

/* x on the device in dtype: shared where it is that already. Release it. */
static luma_status adopt(luma_state *S, luma_tensor *own, const luma_tensor *x, lm_device *device,
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

/* t is where x is; a 0-d CPU tensor goes anywhere. */
static luma_status check_place(luma_state *S, int argument, const luma_tensor *t,
                               const luma_tensor *x) {
    if (!t->storage || lm_device_of(t) == lm_device_of(x) ||
        (t->layout.ndim == 0 && lm_device_of(t) == lm_cpu(S)))
        return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DEVICE, argument, "a tensor on %s, where the other is on %s",
                   lm_device_of(t)->name, lm_device_of(x)->name);
}

static luma_status check_index(luma_state *S, int argument, const luma_tensor *index,
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
    LM_TRY(check_place(S, argument, index, x));
    return lm_tensor_check(S, argument, index, false);
}

/* ---- the walk --------------------------------------------------------------------------------*/

static void walk_open(const luma_state *S, lm_index *w, lm_op op, lm_index_kind kind, int ndim,
                      const int64_t *shape) {
    *w = (lm_index){.op = op, .kind = kind, .index_base = S->index_base, .ndim = ndim};
    memcpy(w->shape, shape, (size_t)ndim * sizeof *shape);
}

/* One more index, which has the walked dims first .. first + ndim - 1 to itself and broadcasts over
** them; its values are positions along a dim of `size` whose stride is `step`. */
static lm_index_part *walk_index(lm_index *w, int argument, const luma_tensor *index, int first,
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

static luma_status walk(luma_state *S, const lm_index *w) {
    lm_device *device = lm_device_of(&w->indexed);
    return LM_SLOT(S, device, index, "indexing", w->indexed.dtype, w);
}

/* x as a tensor over the walked shape that does not move along dim. */
static luma_tensor fixed_along(const luma_tensor *x, const lm_index *w, int dim) {
    luma_tensor t = *x;
    memcpy(t.layout.shape, w->shape, sizeof w->shape);
    t.layout.stride[dim] = 0;
    return t;
}

/* ---- reading ---------------------------------------------------------------------------------*/

/* Runs a read walk of x that has everything but plain into *out, of ndim dims (0: the walk has one). An
** index may lead to any element of x, so out is apart from all of it. */
static luma_status read_into(luma_state *S, luma_tensor *out, const luma_tensor *x, lm_index *w,
                             int ndim) {
    const luma_tensor *inputs[LUMA_MAX_DIMS + 1] = {x};
    for (int i = 0; i < w->n; i++)
        inputs[i + 1] = &w->parts[i].index;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(&w->indexed), w->indexed.dtype, ndim, w->shape,
                          inputs, w->n + 1, 0));
    w->plain = lm_at_least_1d(&r.work);
    w->fresh = r.owned;
    return lm_result_close(S, &r, walk(S, w));
}

luma_status luma_index_select(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                              const luma_tensor *index) {
    int d;
    lm_text text;
    LM_TRY(check_index(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    if (index->layout.ndim > 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: one dim expected",
                       shape_of(&text, index));
    luma_tensor own, wide = lm_at_least_1d(x);
    LM_TRY(adopt(S, &own, index, lm_device_of(x), index->dtype));
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, wide.layout.shape, sizeof shape);
    shape[d] = luma_numel(index);
    lm_index w;
    walk_open(S, &w, LM_OP_index_select, LM_INDEX_READ, wide.layout.ndim, shape);
    walk_index(&w, 3, &own, d, 1, wide.layout.shape[d], wide.layout.stride[d]);
    w.indexed = fixed_along(&wide, &w, d);
    int ndim = x->layout.ndim ? x->layout.ndim : index->layout.ndim;
    luma_status status = read_into(S, out, x, &w, ndim);
    luma_release(S, &own);
    return status;
}

/* index has the dims of x and, but along dim, fits into it; so for src, along dim too. */
static luma_status check_sizes(luma_state *S, int argument, const luma_tensor *index,
                               const luma_tensor *x, const char *name, int but) {
    lm_text a, b;
    if (index->layout.ndim != x->layout.ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, argument,
                       "the index is %s, %s is %s: the same number of dims expected",
                       shape_of(&a, index), name, shape_of(&b, x));
    for (int d = 0; d < x->layout.ndim; d++) {
        if (d != but && index->layout.shape[d] > x->layout.shape[d])
            return lm_fail(S, LUMA_ERR_SHAPE, argument,
                           "the index is %s, larger than %s %s along dim %lld", shape_of(&a, index),
                           name, shape_of(&b, x), (long long)lm_pos(S, d));
    }
    return LUMA_OK;
}

luma_status luma_gather(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                        const luma_tensor *index) {
    int d;
    LM_TRY(check_index(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(check_sizes(S, 3, index, x, "x", d));
    luma_tensor own, wide = lm_at_least_1d(x);
    LM_TRY(adopt(S, &own, index, lm_device_of(x), index->dtype));
    luma_tensor positions = lm_at_least_1d(&own);
    lm_index w;
    walk_open(S, &w, LM_OP_gather, LM_INDEX_READ, wide.layout.ndim, positions.layout.shape);
    lm_index_part *p =
        walk_index(&w, 3, &own, 0, index->layout.ndim, wide.layout.shape[d], wide.layout.stride[d]);
    memcpy(p->stride, positions.layout.stride, sizeof p->stride);
    w.indexed = fixed_along(&wide, &w, d);
    luma_status status = read_into(S, out, x, &w, x->layout.ndim);
    luma_release(S, &own);
    return status;
}

/* Elements of x at flat positions, in the shape of index, which is on x's device. */
static luma_status read_flat(luma_state *S, luma_tensor *out, const luma_tensor *x, int argument,
                             const luma_tensor *index) {
    luma_tensor positions = lm_at_least_1d(index);
    lm_index w;
    walk_open(S, &w, LM_OP_take, LM_INDEX_READ, positions.layout.ndim, positions.layout.shape);
    int64_t numel = luma_numel(x), divisor = 1;
    bool flat = luma_is_contiguous(x) || numel == 0;
    for (int d = flat ? 0 : x->layout.ndim - 1; d >= 0; d--) {
        int64_t step = flat ? 1 : x->layout.stride[d];
        lm_index_part *p = walk_index(&w, argument, index, 0, index->layout.ndim, numel, step);
        p->known = w.n > 1;
        if (flat) break;
        p->divisor = divisor;
        p->modulus = x->layout.shape[d];
        divisor *= p->modulus;
    }
    w.indexed = *x;
    w.indexed.layout = lm_layout_contiguous(w.ndim, w.shape);
    memset(w.indexed.layout.stride, 0, sizeof w.indexed.layout.stride);
    w.indexed.layout.offset = x->layout.offset;
    return read_into(S, out, x, &w, index->layout.ndim);
}

luma_status luma_take(luma_state *S, luma_tensor *out, const luma_tensor *x,
                      const luma_tensor *index) {
    luma_tensor own;
    LM_TRY(check_index(S, 2, index, x));
    LM_TRY(lm_tensor_check(S, 1, x, false));
    LM_TRY(adopt(S, &own, index, lm_device_of(x), index->dtype));
    luma_status status = read_flat(S, out, x, 2, &own);
    luma_release(S, &own);
    return status;
}

/* ---- masks -----------------------------------------------------------------------------------*/

/* Positions (count, ndim) of what holds in the contiguous bool tensor mask. */
static luma_status positions_of(luma_state *S, luma_tensor *out, const luma_tensor *mask) {
    lm_device *device = lm_device_of(mask);
    int64_t count;
    LM_TRY(LM_SLOT(S, device, count_nonzero, "nonzero", LUMA_BOOL, mask, &count));
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, device, LUMA_INT64, 2, (int64_t[]){count, mask->layout.ndim},
                          &mask, 1, LM_RESULT_CONTIGUOUS));
    return lm_result_close(
        S, &r, LM_SLOT(S, device, nonzero, "nonzero", LUMA_BOOL, &r.work, mask, S->index_base));
}

/* x != 0, contiguous. */
static luma_status as_mask(luma_state *S, luma_tensor *mask, const luma_tensor *x) {
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
    LM_TRY(as_mask(S, &mask, x));
    luma_status status = positions_of(S, out, &mask);
    luma_release(S, &mask);
    return status;
}

luma_status luma_masked_select(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const luma_tensor *mask) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_tensor_live(S, 2, mask));
    if (mask->dtype != LUMA_BOOL)
        return lm_fail(S, LUMA_ERR_DTYPE, 2, "the mask is %s: bool expected",
                       lm_dtypes[mask->dtype].name);
    LM_TRY(check_place(S, 2, mask, x));
    int ndim;
    int64_t shape[LUMA_MAX_DIMS], numel;
    LM_TRY(lm_shape_broadcast(S, x->layout.ndim, x->layout.shape, mask->layout.ndim,
                              mask->layout.shape, &ndim, shape));
    if (!lm_numel_fits(ndim, shape, LUMA_INT64, &numel))
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "the shape of x and mask together is too large");
    luma_tensor wide_mask = *mask, wide = *x, flat, own = LUMA_NEW, positions = LUMA_NEW;
    wide_mask.layout = lm_layout_expand(&mask->layout, ndim, shape);
    wide.layout = lm_layout_expand(&x->layout, ndim, shape);
    LM_TRY(adopt(S, &own, &wide_mask, lm_device_of(x), LUMA_BOOL));
    luma_status status = as_mask(S, &flat, &own);
    luma_release(S, &own);
    LM_TRY(status);
    int64_t offset = flat.layout.offset;
    flat.layout = lm_layout_contiguous(1, &numel);
    flat.layout.offset = offset;
    status = positions_of(S, &positions, &flat);
    luma_release(S, &flat);
    LM_TRY(status);
    positions.layout = lm_layout_remove(&positions.layout, 1);
    status = read_flat(S, out, &wide, 1, &positions);
    luma_release(S, &positions);
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------*/

/* What is written, in dtype and on the device of x; a number becomes a 0-d tensor. */
static luma_status source(luma_state *S, luma_tensor *own, int argument, const luma_tensor *src,
                          const luma_tensor *x, luma_dtype dtype) {
    if (lm_is_number(src)) {
        LM_TRY(lm_number_check(S, argument, src->number, x->dtype));
        LM_TRY(lm_tensor_new(S, own, lm_device_of(x), dtype, 0, NULL));
        luma_status status = lm_fill(S, own, src->number);
        if (status != LUMA_OK) luma_release(S, own);
        return status;
    }
    return adopt(S, own, src, lm_device_of(x), dtype);
}

/* As in all operations that keep the dtype of x, what goes into it has no higher kind. */
static luma_status check_kind(luma_state *S, const luma_tensor *src, const luma_tensor *x) {
    if (!src->storage || lm_dtypes[src->dtype].kind <= lm_dtypes[x->dtype].kind) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, 4, "%s values do not go into %s: cast them first",
                   lm_dtypes[src->dtype].name, lm_dtypes[x->dtype].name);
}

static bool is_same(const luma_tensor *a, const luma_tensor *b) {
    size_t n = (size_t)a->layout.ndim * sizeof *a->layout.shape;
    return a->storage == b->storage && a->dtype == b->dtype && a->layout.ndim == b->layout.ndim &&
           a->layout.offset == b->layout.offset &&
           memcmp(a->layout.shape, b->layout.shape, n) == 0 &&
           memcmp(a->layout.stride, b->layout.stride, n) == 0;
}

/* A copy of *t when writing to x could change it. */
static luma_status keep_apart(luma_state *S, luma_tensor *t, const luma_tensor *x) {
    if (t->storage != x->storage || !lm_layout_may_overlap(&t->layout, &x->layout)) return LUMA_OK;
    luma_tensor apart = LUMA_NEW;
    LM_TRY(luma_clone(S, &apart, t));
    luma_release(S, t);
    *t = apart;
    return LUMA_OK;
}

/* Runs the walk on target, whose dtype may be one that no sum runs in. */
static luma_status write_target(luma_state *S, lm_index *w, luma_tensor *target, int dim) {
    luma_tensor sum, wide;
    LM_TRY(adopt(S, &sum, target, lm_device_of(target), w->plain.dtype));
    wide = lm_at_least_1d(&sum);
    w->indexed = fixed_along(&wide, w, dim);
    w->parts[0].size = w->parts[0].modulus = wide.layout.shape[dim];
    w->parts[0].step = wide.layout.stride[dim];
    luma_status status = walk(S, w);
    if (status == LUMA_OK && sum.dtype != target->dtype) status = lm_copy(S, target, &sum);
    luma_release(S, &sum);
    return status;
}

/* *out = x with a walk along dim over it, which lacks only `indexed` and the step of its index. An
** out that is x itself is written in place, with src and index kept apart by the caller. */
static luma_status write_copy(luma_state *S, luma_tensor *out, const luma_tensor *x, lm_index *w,
                              int dim) {
    if (out->storage && is_same(out, x)) {
        LM_TRY(lm_tensor_check(S, 0, out, true));
        luma_status status = write_target(S, w, out, dim);
        out->storage->version++;
        return status;
    }
    /* Against itself a live out counts as overlapped: it is written at the end, if all went well.
     */
    const luma_tensor *self = out;
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                          &self, out->storage ? 1 : 0, 0));
    luma_status status = lm_copy(S, &r.work, x);
    if (status == LUMA_OK) status = write_target(S, w, &r.work, dim);
    return lm_result_close(S, &r, status);
}

static luma_status check_sums(luma_state *S, const luma_tensor *x) {
    if (x->dtype != LUMA_BOOL) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, 1, "bool has no sums: numbers expected");
}

/* Sums into 8- and 16-bit floats run in float32, rounded once at the end. */
static luma_dtype sum_dtype(const luma_tensor *x) {
    return lm_dtype_is_float(x->dtype) ? (luma_dtype)lm_dtypes[x->dtype].compute : x->dtype;
}

static luma_status scatter(luma_state *S, luma_tensor *out, lm_op op, lm_index_kind kind,
                           luma_dtype dtype, const luma_tensor *x, int64_t dim,
                           const luma_tensor *index, const luma_tensor *src) {
    int d;
    LM_TRY(check_index(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(check_sizes(S, 3, index, x, "x", d));
    if (src->storage) LM_TRY(check_sizes(S, 3, index, src, "src", -1));
    LM_TRY(check_place(S, 4, src, x));
    LM_TRY(check_kind(S, src, x));
    luma_tensor own_src, own;
    LM_TRY(source(S, &own_src, 4, src, x, dtype));
    luma_status status = adopt(S, &own, index, lm_device_of(x), index->dtype);
    if (status == LUMA_OK) {
        if (out->storage) status = keep_apart(S, &own_src, out);
        if (out->storage && status == LUMA_OK) status = keep_apart(S, &own, out);
        lm_index w;
        luma_tensor positions = lm_at_least_1d(&own);
        walk_open(S, &w, op, kind, positions.layout.ndim, positions.layout.shape);
        walk_index(&w, 3, &own, positions.layout.ndim - own.layout.ndim, own.layout.ndim, 0, 0);
        w.plain = lm_at_least_1d(&own_src);
        if (src->storage)
            memcpy(w.plain.layout.shape, w.shape, sizeof w.shape);
        else
            w.plain.layout = lm_layout_expand(&own_src.layout, w.ndim, w.shape);
        if (status == LUMA_OK) status = write_copy(S, out, x, &w, d);
        luma_release(S, &own);
    }
    luma_release(S, &own_src);
    return status;
}

luma_status luma_scatter(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                         const luma_tensor *index, const luma_tensor *src) {
    return scatter(S, out, LM_OP_scatter, LM_INDEX_WRITE, x->dtype, x, dim, index, src);
}

luma_status luma_scatter_add(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                             const luma_tensor *index, const luma_tensor *src) {
    LM_TRY(check_sums(S, x));
    return scatter(S, out, LM_OP_scatter_add, LM_INDEX_ADD, sum_dtype(x), x, dim, index, src);
}

/* src has the shape of x, but along dim that of the list index. */
static luma_status check_slices(luma_state *S, const luma_tensor *x, int dim,
                                const luma_tensor *index, const luma_tensor *src) {
    lm_text a, b;
    if (index->layout.ndim > 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: one dim expected",
                       shape_of(&a, index));
    if (x->layout.ndim == 0 && luma_numel(index) != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "the index is %s: a 0-d tensor has one position",
                       shape_of(&a, index));
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, x->layout.shape, sizeof shape);
    if (x->layout.ndim) shape[dim] = luma_numel(index);
    if (src->layout.ndim != x->layout.ndim ||
        memcmp(shape, src->layout.shape, (size_t)x->layout.ndim * sizeof *shape) != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 4, "src is %s: %s expected", shape_of(&a, src),
                       lm_shape_text(&b, x->layout.ndim, shape));
    return LUMA_OK;
}

static luma_status slices(luma_state *S, luma_tensor *out, lm_op op, lm_index_kind kind,
                          luma_dtype dtype, const luma_tensor *x, int64_t dim,
                          const luma_tensor *index, const luma_tensor *src) {
    int d;
    LM_TRY(check_index(S, 3, index, x));
    LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    LM_TRY(check_slices(S, x, d, index, src));
    LM_TRY(check_place(S, 4, src, x));
    LM_TRY(check_kind(S, src, x));
    luma_tensor own_src, own;
    LM_TRY(source(S, &own_src, 4, src, x, dtype));
    luma_status status = adopt(S, &own, index, lm_device_of(x), index->dtype);
    if (status == LUMA_OK) {
        if (out->storage) status = keep_apart(S, &own_src, out);
        if (out->storage && status == LUMA_OK) status = keep_apart(S, &own, out);
        lm_index w;
        luma_tensor wide = lm_at_least_1d(&own_src);
        walk_open(S, &w, op, kind, wide.layout.ndim, wide.layout.shape);
        w.plain = wide;
        walk_index(&w, 3, &own, d, 1, 0, 0);
        if (status == LUMA_OK) status = write_copy(S, out, x, &w, d);
        luma_release(S, &own);
    }
    luma_release(S, &own_src);
    return status;
}

luma_status luma_index_add(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                           const luma_tensor *index, const luma_tensor *src) {
    LM_TRY(check_sums(S, x));
    return slices(S, out, LM_OP_index_add, LM_INDEX_ADD, sum_dtype(x), x, dim, index, src);
}

luma_status luma_index_copy(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                            const luma_tensor *index, const luma_tensor *src) {
    return slices(S, out, LM_OP_index_copy, LM_INDEX_WRITE, x->dtype, x, dim, index, src);
}

/* ---- labels ----------------------------------------------------------------------------------*/

luma_status lm_index_pick(luma_state *S, luma_tensor *out, lm_op op, int argument,
                          const luma_tensor *x, int dim, const luma_tensor *index) {
    lm_index w;
    luma_tensor own, from = *x;
    LM_TRY(adopt(S, &own, index, lm_device_of(x), index->dtype));
    from.layout = lm_layout_remove(&x->layout, dim);
    luma_layout at = lm_at_least_1d(&own).layout;
    walk_open(S, &w, op, LM_INDEX_READ, at.ndim, at.shape);
    walk_index(&w, argument, &own, 0, own.layout.ndim, x->layout.shape[dim], x->layout.stride[dim]);
    w.indexed = lm_at_least_1d(&from);
    luma_status status = read_into(S, out, x, &w, own.layout.ndim);
    luma_release(S, &own);
    return status;
}

luma_status luma_embedding(luma_state *S, luma_tensor *out, const luma_tensor *index,
                           const luma_tensor *weight) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, 2, weight, false));
    LM_TRY(check_index(S, 1, index, weight));
    int n = index->layout.ndim;
    if (weight->layout.ndim != 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the weight is %s: 2 dims expected, rows to choose",
                       shape_of(&text, weight));
    if (n == LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: the result has one more, at most %d", n,
                       LUMA_MAX_DIMS);
    lm_index w;
    luma_tensor own;
    luma_layout rows = {.ndim = n + 1, .offset = weight->layout.offset};
    memcpy(rows.shape, index->layout.shape, (size_t)n * sizeof *rows.shape);
    rows.shape[n] = weight->layout.shape[1];
    rows.stride[n] = weight->layout.stride[1];
    LM_TRY(adopt(S, &own, index, lm_device_of(weight), index->dtype));
    walk_open(S, &w, LM_OP_embedding, LM_INDEX_READ, n + 1, rows.shape);
    walk_index(&w, 1, &own, 0, n, weight->layout.shape[0], weight->layout.stride[0]);
    w.indexed = *weight;
    w.indexed.layout = rows;
    luma_status status = read_into(S, out, weight, &w, n + 1);
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
    walk_open(S, &w, LM_OP_one_hot, LM_INDEX_WRITE, at.ndim, at.shape);
    walk_index(&w, 1, own, 0, own->layout.ndim, work->layout.shape[last],
               work->layout.stride[last]);
    w.plain = one;
    w.plain.layout = lm_layout_expand(&one.layout, w.ndim, w.shape);
    w.indexed = *work;
    w.indexed.layout = lm_layout_remove(&work->layout, last);
    w.indexed = lm_at_least_1d(&w.indexed);
    if (status == LUMA_OK) status = walk(S, &w);
    luma_release(S, &one);
    return status;
}

luma_status luma_one_hot(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t classes) {
    int n = x->layout.ndim;
    int64_t shape[LUMA_MAX_DIMS];
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(check_index(S, 1, x, x));
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

/* ---- several dims at once --------------------------------------------------------------------*/

/* The index tensors of a call, broadcast to `shape`, and where these dims stand in the result. */
typedef struct {
    luma_tensor own[LUMA_MAX_DIMS]; /* LUMA_NEW for a whole dim */
    int n, at, ndim;
    int64_t shape[LUMA_MAX_DIMS];
} indices;

static void indices_close(luma_state *S, indices *ix) {
    for (int d = 0; d < ix->n; d++)
        luma_release(S, &ix->own[d]);
}

static luma_status indices_read(luma_state *S, indices *ix, const luma_tensor *x, int n,
                                const luma_tensor *const *index) {
    int first = -1, last = -1, ndim = x->layout.ndim;
    bool apart = false;
    for (int d = 0; d < n; d++) {
        if (!index[d]) continue;
        LM_TRY(check_index(S, 0, index[d], x));
        LM_TRY(lm_shape_broadcast(S, ix->ndim, ix->shape, index[d]->layout.ndim,
                                  index[d]->layout.shape, &ix->ndim, ix->shape));
        LM_TRY(adopt(S, &ix->own[d], index[d], lm_device_of(x), index[d]->dtype));
        ix->n = d + 1;
        if (first < 0) first = d;
        apart = apart || (last >= 0 && last != d - 1);
        last = d;
        ndim--;
    }
    ix->at = apart || first < 0 ? 0 : first;
    if (ndim + ix->ndim > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "the result has %d dims: at most %d", ndim + ix->ndim,
                       LUMA_MAX_DIMS);
    return LUMA_OK;
}

static luma_status indices_open(luma_state *S, indices *ix, const luma_tensor *x, int n,
                                const luma_tensor *const *index) {
    *ix = (indices){.n = 0};
    lm_text text;
    if (n > x->layout.ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "%d indices for %s", n, shape_of(&text, x));
    luma_status status = indices_read(S, ix, x, n, index);
    if (status != LUMA_OK) {
        S->argument = 0;
        indices_close(S, ix);
    }
    return status;
}

static void walk_indices(luma_state *S, lm_index *w, lm_index_kind kind, const luma_tensor *x,
                         const indices *ix) {
    luma_layout layout = {.ndim = 0, .offset = x->layout.offset};
    for (int d = 0; d <= x->layout.ndim; d++) {
        for (int k = 0; d == ix->at && k < ix->ndim; k++)
            layout.shape[layout.ndim++] = ix->shape[k];
        if (d == x->layout.ndim || (d < ix->n && ix->own[d].storage)) continue;
        layout.shape[layout.ndim] = x->layout.shape[d];
        layout.stride[layout.ndim++] = x->layout.stride[d];
    }
    walk_open(S, w, LM_NOPS, kind, layout.ndim, layout.shape);
    w->indexed = *x;
    w->indexed.layout = layout;
    for (int d = 0; d < ix->n; d++) {
        if (ix->own[d].storage)
            walk_index(w, 0, &ix->own[d], ix->at, ix->ndim, x->layout.shape[d],
                       x->layout.stride[d]);
    }
}

luma_status luma_index_get(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                           const luma_tensor *const *index) {
    indices ix;
    lm_index w;
    LM_TRY(indices_open(S, &ix, x, n, index));
    walk_indices(S, &w, LM_INDEX_READ, x, &ix);
    luma_status status = read_into(S, out, x, &w, w.ndim);
    indices_close(S, &ix);
    return status;
}

/* values as a tensor over the walked shape. */
static luma_status spread(luma_state *S, luma_tensor *plain, const luma_tensor *values,
                          const lm_index *w) {
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
    luma_layout v = values->layout;
    while (v.ndim > w->ndim && v.shape[0] == 1)
        v = lm_layout_remove(&v, 0);
    bool fits =
        lm_shape_broadcast(S, v.ndim, v.shape, w->ndim, w->shape, &ndim, shape) == LUMA_OK &&
        ndim == w->ndim && memcmp(shape, w->shape, (size_t)ndim * sizeof *shape) == 0;
    if (!fits) {
        lm_text a, b;
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "%s does not broadcast to %s", shape_of(&a, values),
                       lm_shape_text(&b, w->ndim, w->shape));
    }
    *plain = *values;
    plain->layout = lm_layout_expand(&v, w->ndim, w->shape);
    return LUMA_OK;
}

static luma_status put(luma_state *S, luma_tensor *x, indices *ix, const luma_tensor *values) {
    lm_index w;
    luma_tensor own;
    for (int d = 0; d < ix->n; d++) {
        if (ix->own[d].storage) LM_TRY(keep_apart(S, &ix->own[d], x));
    }
    walk_indices(S, &w, LM_INDEX_WRITE, x, ix);
    LM_TRY(source(S, &own, 0, values, x, x->dtype));
    luma_status status = keep_apart(S, &own, x);
    if (status == LUMA_OK) status = spread(S, &w.plain, &own, &w);
    if (status == LUMA_OK) {
        status = walk(S, &w);
        x->storage->version++;
    }
    luma_release(S, &own);
    return status;
}

luma_status luma_index_put(luma_state *S, luma_tensor *x, int n, const luma_tensor *const *index,
                           const luma_tensor *values) {
    indices ix;
    LM_TRY(lm_tensor_check(S, 0, x, true));
    LM_TRY(indices_open(S, &ix, x, n, index));
    luma_status status = put(S, x, &ix, values);
    if (status != LUMA_OK) S->argument = 0;
    indices_close(S, &ix);
    return status;
}
