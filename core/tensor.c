/* tensor.c -- tensors as values: making, sharing, releasing, and the one way results are made.
** Layer: core. */
#include "tensor.h"

#include <string.h>

luma_tensor luma_number(double value) {
    return (luma_tensor){.number = {.kind = LUMA_IS_FLOAT, .u.d = value}};
}

luma_tensor luma_integer(int64_t value) {
    return (luma_tensor){.number = {.kind = LUMA_IS_INT, .u.i = value}};
}

luma_tensor luma_boolean(bool value) {
    return (luma_tensor){.number = {.kind = LUMA_IS_BOOL, .u.i = value}};
}

void luma_release(luma_state *S, luma_tensor *x) {
    (void)S;
    lm_storage *st = x->storage;
    *x = LUMA_NEW;
    lm_storage_release(st);
}

void luma_share(luma_tensor *out, const luma_tensor *x) {
    *out = *x;
    if (x->storage) lm_storage_retain(x->storage);
}

int64_t luma_numel(const luma_tensor *x) {
    return lm_layout_numel(&x->layout);
}

const char *luma_device(const luma_tensor *x) {
    return x->storage ? lm_device_of(x)->name : NULL;
}

void *luma_data(const luma_tensor *x) {
    return x->storage ? lm_data(x) : NULL;
}

bool luma_is_contiguous(const luma_tensor *x) {
    return lm_layout_is_contiguous(&x->layout);
}

/* As lm_layout_contiguous, but in place: a copy right after the stores would wait for them. */
static void set_contiguous(luma_layout *out, int ndim, const int64_t *shape) {
    int64_t stride = 1;
    out->ndim = ndim;
    out->offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        out->shape[d] = shape[d];
        out->stride[d] = stride;
        if (shape[d] > 1) stride *= shape[d];
    }
}

luma_status lm_tensor_new(luma_state *S, luma_tensor *out, lm_device *device, luma_dtype dtype,
                          int ndim, const int64_t *shape) {
    int64_t n;
    lm_text text;
    if ((unsigned)ndim > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "%d dims: at most %d", ndim, LUMA_MAX_DIMS);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return lm_fail(S, LUMA_ERR_SHAPE, 0, "negative size in shape %s",
                           lm_shape_text(&text, ndim, shape));
    }
    if (!lm_numel_fits(ndim, shape, dtype, &n))
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "shape %s of %s is too large",
                       lm_shape_text(&text, ndim, shape), lm_dtypes[dtype].name);
    lm_storage *st;
    LM_TRY(lm_storage_new(S, device, (size_t)n * lm_dtypes[dtype].size, &st));
    out->storage = st;
    out->dtype = dtype;
    out->number.kind = LUMA_NOT_A_NUMBER;
    set_contiguous(&out->layout, ndim, shape);
    return LUMA_OK;
}

/* Whether every element of layout lies in nbytes of dtype. */
static bool fits_storage(const luma_layout *layout, luma_dtype dtype, const lm_storage *st) {
    int64_t first, last;
    if (!lm_layout_extent(layout, &first, &last)) return true;
    /* sizes are powers of two, and a division costs as much as the rest of a view */
    return first >= 0 && last < (int64_t)(st->nbytes >> __builtin_ctz(lm_dtypes[dtype].size));
}

luma_status lm_tensor_live(luma_state *S, int argument, const luma_tensor *x) {
    return x->storage ? LUMA_OK : lm_fail(S, LUMA_ERR_ARGUMENT, argument, "a tensor expected");
}

luma_status lm_tensor_check(luma_state *S, int argument, const luma_tensor *x, bool written) {
    LM_TRY(lm_tensor_live(S, argument, x));
    if (!fits_storage(&x->layout, x->dtype, x->storage))
        return lm_fail(S, LUMA_ERR_SHAPE, argument,
                       "the view reaches outside its storage of %lld elements",
                       (long long)(x->storage->nbytes / lm_dtype_size(x->dtype)));
    if (written && lm_layout_overlaps_itself(&x->layout))
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument,
                       "the destination overlaps itself (an expanded or unfolded view): clone it");
    return LUMA_OK;
}

luma_status lm_tensor_not_bool(luma_state *S, int argument, const luma_tensor *x,
                               const char *what) {
    if (x->dtype != LUMA_BOOL) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DTYPE, argument,
                   "bool has no %s: convert it to a number dtype first", what);
}

luma_status lm_tensor_view(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_layout *layout) {
    luma_tensor view = {.storage = x->storage, .dtype = x->dtype};
    view.layout = *layout;
    LM_TRY(lm_tensor_check(S, 0, &view, false));
    lm_storage_retain(view.storage);
    *out = view;
    return LUMA_OK;
}

/* Whether writing out element by element may spoil an input that is still to be read. */
static bool spoils(const luma_tensor *out, const luma_tensor *x, int flags) {
    if (x->storage != out->storage) return false;
    if ((flags & LM_RESULT_ALIGNED) && x->layout.offset == out->layout.offset &&
        lm_layout_same_shape(&x->layout, &out->layout) &&
        memcmp(x->layout.stride, out->layout.stride,
               (size_t)x->layout.ndim * sizeof *x->layout.stride) == 0)
        return false;
    return lm_layout_may_overlap(&x->layout, &out->layout);
}

static luma_status check_out(luma_state *S, const luma_tensor *out, lm_device *device,
                             luma_dtype dtype, int ndim, const int64_t *shape) {
    lm_text want, got;
    if (!out->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "out is a number");
    if (lm_device_of(out) != device)
        return lm_fail(S, LUMA_ERR_DEVICE, 0, "out is on %s, the result on %s",
                       lm_device_of(out)->name, device->name);
    if (out->dtype != dtype)
        return lm_fail(S, LUMA_ERR_DTYPE, 0, "out is %s, the result is %s",
                       lm_dtypes[out->dtype].name, lm_dtypes[dtype].name);
    if (out->layout.ndim != ndim ||
        (ndim > 0 && memcmp(out->layout.shape, shape, (size_t)ndim * sizeof *shape) != 0))
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "out is %s, the result is %s",
                       lm_layout_text(&got, &out->layout), lm_shape_text(&want, ndim, shape));
    return lm_tensor_check(S, 0, out, true);
}

luma_status lm_result_open(luma_state *S, lm_result *r, luma_tensor *out, lm_device *device,
                           luma_dtype dtype, int ndim, const int64_t *shape,
                           const luma_tensor *const *inputs, int ninputs, int flags) {
    r->out = out;
    r->owned = true;
    if (!out->storage && out->number.kind == LUMA_NOT_A_NUMBER)
        return lm_tensor_new(S, &r->work, device, dtype, ndim, shape);
    LM_TRY(check_out(S, out, device, dtype, ndim, shape));
    bool direct = !(flags & LM_RESULT_CONTIGUOUS) || lm_layout_is_contiguous(&out->layout);
    if (flags & LM_RESULT_APART) direct = false;
    for (int i = 0; i < ninputs && direct; i++) {
        if (inputs[i]->storage && spoils(out, inputs[i], flags)) direct = false;
    }
    if (!direct) return lm_tensor_new(S, &r->work, device, dtype, ndim, shape);
    r->work = *out; /* borrowed */
    r->owned = false;
    return LUMA_OK;
}

luma_status lm_result_close(luma_state *S, lm_result *r, luma_status status) {
    if (!r->owned) {
        if (r->work.storage) r->work.storage->version++;
        return status;
    }
    if (status == LUMA_OK && r->out->storage) {
        status = lm_copy(S, r->out, &r->work);
        luma_release(S, &r->work);
    } else if (status == LUMA_OK) {
        *r->out = r->work;
    } else {
        luma_release(S, &r->work);
    }
    return status;
}

/* Both are opened before either is written, so that a failure leaves both as they were. */
luma_status lm_pair_open_of(luma_state *S, lm_pair *p, luma_tensor outs[2], const luma_tensor *x,
                            luma_dtype first, luma_dtype second, int ndim, const int64_t *shape) {
    lm_device *d = lm_device_of(x);
    if (outs[0].storage && outs[0].storage == outs[1].storage &&
        lm_layout_may_overlap(&outs[0].layout, &outs[1].layout))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "the tensors for the two results overlap");
    p->fresh = !outs[0].storage;
    LM_TRY(lm_result_open(S, &p->values, &outs[0], d, first, ndim, shape, &x, 1, 0));
    luma_status status =
        lm_result_open(S, &p->positions, &outs[1], d, second, ndim, shape, &x, 1, 0);
    return status == LUMA_OK ? LUMA_OK : lm_result_close(S, &p->values, status);
}

luma_status lm_pair_open(luma_state *S, lm_pair *p, luma_tensor outs[2], const luma_tensor *x,
                         int ndim, const int64_t *shape) {
    return lm_pair_open_of(S, p, outs, x, x->dtype, LUMA_INT64, ndim, shape);
}

luma_status lm_pair_close(luma_state *S, lm_pair *p, luma_status status) {
    status = lm_result_close(S, &p->values, status);
    luma_status both = lm_result_close(S, &p->positions, status);
    if (status == LUMA_OK && both != LUMA_OK && p->fresh) luma_release(S, p->values.out);
    return both;
}

luma_status lm_same_device(luma_state *S, const luma_tensor *const *xs, int n, lm_device **device) {
    const luma_tensor *first = NULL, *scalar = NULL;
    for (int i = 0; i < n; i++) {
        const luma_tensor *x = xs[i];
        if (!x || !x->storage) continue;
        if (x->layout.ndim == 0 && lm_device_of(x) == lm_cpu(S)) {
            scalar = x;
        } else if (!first) {
            first = x;
        } else if (lm_device_of(x) != lm_device_of(first)) {
            return lm_fail(S, LUMA_ERR_DEVICE, i + 1, "a tensor on %s, where the others are on %s",
                           lm_device_of(x)->name, lm_device_of(first)->name);
        }
    }
    *device = first ? lm_device_of(first) : scalar ? lm_device_of(scalar) : lm_cpu(S);
    return LUMA_OK;
}

bool lm_tensor_is_same(const luma_tensor *a, const luma_tensor *b) {
    size_t n = (size_t)a->layout.ndim * sizeof *a->layout.shape;
    return a->storage == b->storage && a->dtype == b->dtype && a->layout.ndim == b->layout.ndim &&
           a->layout.offset == b->layout.offset &&
           memcmp(a->layout.shape, b->layout.shape, n) == 0 &&
           memcmp(a->layout.stride, b->layout.stride, n) == 0;
}

luma_status lm_tensor_beside(luma_state *S, int argument, const luma_tensor *t,
                             const luma_tensor *x, const char *name) {
    if (lm_device_of(t) == lm_device_of(x)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DEVICE, argument, "a tensor on %s, where %s is on %s",
                   lm_device_of(t)->name, name, lm_device_of(x)->name);
}

luma_status lm_dtype_or(luma_state *S, int argument, luma_dtype otherwise, luma_dtype *dtype) {
    if (*dtype == LUMA_NDTYPES) *dtype = otherwise;
    if ((unsigned)*dtype < LUMA_NDTYPES) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "no dtype has the number %d", (int)*dtype);
}

luma_status luma_empty(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                       luma_dtype dtype, const char *device) {
    lm_device *d;
    LM_TRY(lm_dtype_or(S, 3, S->default_dtype, &dtype));
    LM_TRY(lm_device_find(S, device, &d));
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, d, dtype, ndim, shape, NULL, 0, 0));
    return lm_result_close(S, &r, LUMA_OK);
}

luma_status luma_full(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                      luma_scalar value, luma_dtype dtype, const char *device) {
    lm_device *d;
    LM_TRY(lm_dtype_or(S, 4, S->default_dtype, &dtype));
    LM_TRY(lm_device_find(S, device, &d));
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, d, dtype, ndim, shape, NULL, 0, 0));
    return lm_result_close(S, &r, lm_fill(S, &r.work, value));
}

luma_status luma_wrap(luma_state *S, luma_tensor *out, void *data, size_t nbytes, int ndim,
                      const int64_t *shape, luma_dtype dtype, void (*deleter)(void *), void *ctx) {
    int64_t n;
    lm_text text;
    LM_TRY(lm_dtype_or(S, 5, S->default_dtype, &dtype));
    if (ndim < 0 || ndim > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%d dims: at most %d", ndim, LUMA_MAX_DIMS);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return lm_fail(S, LUMA_ERR_SHAPE, 4, "negative size in shape %s",
                           lm_shape_text(&text, ndim, shape));
    }
    if (!lm_numel_fits(ndim, shape, dtype, &n) || (uint64_t)n * lm_dtype_size(dtype) > nbytes)
        return lm_fail(S, LUMA_ERR_SHAPE, 4, "shape %s of %s does not fit into %zu bytes",
                       lm_shape_text(&text, ndim, shape), lm_dtypes[dtype].name, nbytes);
    if ((uintptr_t)data % lm_dtype_size(dtype) != 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "data is not aligned for %s",
                       lm_dtypes[dtype].name);
    lm_storage *st;
    LM_TRY(lm_storage_wrap(S, lm_cpu(S), data, nbytes, deleter, ctx, &st));
    *out = (luma_tensor){.storage = st, .dtype = dtype};
    out->layout = lm_layout_contiguous(ndim, shape);
    return LUMA_OK;
}
