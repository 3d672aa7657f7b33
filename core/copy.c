/* copy.c -- all that moves elements from one place to another: assignment, fill, casts, contiguous,
** host memory. Which way a copy goes is decided here and counted; devices do the moving.
** Layer: core. */
#include <math.h>

#include "tensor.h"
#include "view.h"

/* ---- one device ------------------------------------------------------------------------------*/

static void set_operand(lm_map *m, int k, const luma_tensor *x) {
    lm_operand *o = &m->operand[k];
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    o->data = lm_data(x);
    o->dtype = o->kernel = x->dtype;
    for (int d = 0; d < m->ndim; d++)
        o->stride[d] = x->layout.stride[d] * size;
}

static void get_operand(const lm_map *m, int k, luma_tensor *x) {
    const lm_operand *o = &m->operand[k];
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    x->layout = (luma_layout){.ndim = m->ndim, .offset = (o->data - x->storage->data) / size};
    for (int d = 0; d < m->ndim; d++) {
        x->layout.shape[d] = m->shape[d];
        x->layout.stride[d] = o->stride[d] / size;
    }
}

/* Rewrites the layouts of tensors of one shape to the fewest dims that walk the same elements. */
static void simplify(luma_tensor *const *xs, int n) {
    bool flat = true;
    for (int k = 0; k < n; k++)
        flat = flat && luma_is_contiguous(xs[k]);
    if (flat) { /* what lm_iter_plan would find, sooner */
        int64_t numel = luma_numel(xs[0]);
        for (int k = 0; k < n; k++) {
            xs[k]->layout.ndim = 1;
            xs[k]->layout.shape[0] = numel;
            xs[k]->layout.stride[0] = 1;
        }
        return;
    }
    lm_map m;
    m.noperands = n;
    m.planned = false;
    m.ndim = xs[0]->layout.ndim;
    for (int d = 0; d < m.ndim; d++)
        m.shape[d] = xs[0]->layout.shape[d];
    for (int k = 0; k < n; k++)
        set_operand(&m, k, xs[k]);
    lm_iter_plan(&m);
    for (int k = 0; k < n; k++)
        get_operand(&m, k, xs[k]);
}

static void count_path(luma_state *S, const luma_tensor *dst, const luma_tensor *src) {
    const luma_layout *d = &dst->layout, *s = &src->layout;
    if (dst->dtype != src->dtype) return; /* a conversion */
    bool rows = d->ndim == 0 || (d->stride[d->ndim - 1] == 1 && s->stride[d->ndim - 1] == 1);
    if (rows && d->ndim <= 1) {
        S->copies.memcpy++;
    } else if (rows) {
        S->copies.copy2d++;
    } else {
        S->copies.strided++;
    }
}

/* Same shape, same device, not empty, no overlap. */
static luma_status move(luma_state *S, const luma_tensor *dst, const luma_tensor *src) {
    luma_tensor d = *dst, s = *src;
    simplify((luma_tensor *const[]){&d, &s}, 2);
    count_path(S, &d, &s);
    lm_device *device = lm_device_of(dst);
    return LM_SLOT(S, device, copy, "copy", dst->dtype, &d, &s);
}

/* A contiguous copy of x in dtype, never shared. */
static luma_status duplicate(luma_state *S, luma_tensor *out, const luma_tensor *x,
                             luma_dtype dtype) {
    luma_tensor made = LUMA_NEW;
    LM_TRY(lm_tensor_new(S, &made, lm_device_of(x), dtype, x->layout.ndim, x->layout.shape));
    luma_status status = luma_numel(x) > 0 ? move(S, &made, x) : LUMA_OK;
    if (status == LUMA_OK) {
        *out = made;
    } else {
        luma_release(S, &made);
    }
    return status;
}

static bool same_elements(const luma_layout *a, const luma_layout *b) {
    if (a->offset != b->offset) return false;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] != 1 && a->stride[d] != b->stride[d]) return false;
    }
    return true;
}

static luma_status copy_here(luma_state *S, const luma_tensor *dst, const luma_tensor *src) {
    if (dst->storage != src->storage || !lm_layout_may_overlap(&dst->layout, &src->layout)) {
        return move(S, dst, src);
    }
    if (dst->dtype == src->dtype && same_elements(&dst->layout, &src->layout)) return LUMA_OK;
    luma_tensor before = LUMA_NEW;
    LM_TRY(duplicate(S, &before, src, src->dtype));
    luma_status status = move(S, dst, &before);
    luma_release(S, &before);
    return status;
}

/* ---- two devices -----------------------------------------------------------------------------*/

/* Whether bytes need no stop on the host. */
static bool is_direct(luma_state *S, const lm_device *from, const lm_device *to) {
    return from == lm_cpu(S) || to == lm_cpu(S) || (from->ops == to->ops && from->ops->send);
}

/* The bytes of a contiguous tensor to a contiguous one of the same dtype and size elsewhere, where
** the way is direct. */
static luma_status transfer(luma_state *S, const luma_tensor *dst, const luma_tensor *src) {
    size_t nbytes = (size_t)luma_numel(src) * lm_dtype_size(src->dtype);
    lm_device *from = lm_device_of(src), *to = lm_device_of(dst);
    char *into = lm_data(dst), *out_of = lm_data(src);
    if (from != lm_cpu(S) && to != lm_cpu(S))
        return from->ops->send(S, from, out_of, to, into, nbytes);
    if (from != lm_cpu(S))
        return LM_SLOT(S, from, download, "copy", src->dtype, into, out_of, nbytes);
    return LM_SLOT(S, to, upload, "copy", src->dtype, into, out_of, nbytes);
}

/* x, contiguous and in dtype, where it is. */
static luma_status flatten(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           luma_dtype dtype) {
    if (x->dtype != dtype || !luma_is_contiguous(x)) return duplicate(S, out, x, dtype);
    luma_share(out, x);
    return LUMA_OK;
}

/* x, contiguous and in dtype, on `device`. */
static luma_status bring(luma_state *S, luma_tensor *out, const luma_tensor *x, lm_device *device,
                         luma_dtype dtype) {
    luma_tensor flat = LUMA_NEW, moved = LUMA_NEW;
    LM_TRY(flatten(S, &flat, x, dtype));
    lm_device *stop = is_direct(S, lm_device_of(x), device) ? device : lm_cpu(S);
    luma_status status = lm_tensor_new(S, &moved, stop, dtype, x->layout.ndim, x->layout.shape);
    if (status == LUMA_OK) status = transfer(S, &moved, &flat);
    luma_release(S, &flat);
    if (status == LUMA_OK && stop != device) {
        luma_tensor host = moved;
        moved = LUMA_NEW;
        status = bring(S, &moved, &host, device, dtype);
        luma_release(S, &host);
    }
    if (status == LUMA_OK) {
        *out = moved;
    } else {
        luma_release(S, &moved);
    }
    return status;
}

/* The elements travel in the smaller of the two dtypes. */
static luma_status copy_across(luma_state *S, const luma_tensor *dst, const luma_tensor *src) {
    luma_tensor flat = LUMA_NEW, here = LUMA_NEW;
    bool grows = lm_dtype_size(src->dtype) < lm_dtype_size(dst->dtype);
    if (!grows && is_direct(S, lm_device_of(src), lm_device_of(dst)) && luma_is_contiguous(dst) &&
        lm_layout_same_shape(&dst->layout, &src->layout)) {
        LM_TRY(flatten(S, &flat, src, dst->dtype));
        luma_status sent = transfer(S, dst, &flat);
        luma_release(S, &flat);
        return sent;
    }
    LM_TRY(bring(S, &here, src, lm_device_of(dst), grows ? src->dtype : dst->dtype));
    luma_tensor wide = here;
    wide.layout = lm_layout_expand(&here.layout, dst->layout.ndim, dst->layout.shape);
    luma_status status = move(S, dst, &wide);
    luma_release(S, &here);
    return status;
}

/* ---- assignment ------------------------------------------------------------------------------*/

/* Leading dims of size 1 of src need no counterpart. */
static luma_status fit(luma_state *S, const luma_tensor *dst, const luma_tensor *src,
                       luma_tensor *out) {
    luma_layout s = src->layout;
    while (s.ndim > dst->layout.ndim && s.shape[0] == 1)
        s = lm_layout_remove(&s, 0);
    int added = dst->layout.ndim - s.ndim;
    bool fits = added >= 0;
    for (int d = 0; d < s.ndim && fits; d++) {
        fits = s.shape[d] == 1 || s.shape[d] == dst->layout.shape[d + added];
    }
    if (!fits) {
        lm_text from, to;
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s does not broadcast to %s",
                       lm_layout_text(&from, &src->layout), lm_layout_text(&to, &dst->layout));
    }
    *out = *src;
    out->layout = s;
    return LUMA_OK;
}

luma_status lm_copy(luma_state *S, luma_tensor *dst, const luma_tensor *src) {
    luma_tensor s;
    if (lm_is_number(src)) return lm_fill(S, dst, src->number);
    LM_TRY(fit(S, dst, src, &s));
    LM_TRY(lm_tensor_check(S, 1, dst, true));
    LM_TRY(lm_tensor_check(S, 2, src, false));
    if (luma_numel(dst) == 0) return LUMA_OK;
    luma_status status;
    if (lm_device_of(dst) == lm_device_of(&s)) {
        s.layout = lm_layout_expand(&s.layout, dst->layout.ndim, dst->layout.shape);
        status = copy_here(S, dst, &s);
    } else {
        status = copy_across(S, dst, &s);
    }
    dst->storage->version++;
    return status;
}

luma_status luma_copy(luma_state *S, luma_tensor *dst, const luma_tensor *src) {
    return lm_copy(S, dst, src);
}

/* Whether the number is one of dtype's own values, all of which are whole. */
static bool is_member(luma_scalar v, const lm_dtype_info *info) {
    if (v.kind != LUMA_IS_FLOAT) return v.u.i >= info->imin && v.u.i <= info->imax;
    double lo = (double)info->imin, hi = (double)info->imax;
    /* 2^63 - 1 becomes 2^63 as a double, which is one too many. */
    bool below = hi == 0x1p63 ? v.u.d < hi : v.u.d <= hi;
    return v.u.d >= lo && below && v.u.d == floor(v.u.d);
}

luma_status lm_number_check(luma_state *S, int argument, luma_scalar value, luma_dtype dtype) {
    const lm_dtype_info *info = &lm_dtypes[dtype];
    if (value.kind == LUMA_NOT_A_NUMBER) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "a number expected");
    }
    if (info->kind != LM_KIND_INT || is_member(value, info)) return LUMA_OK;
    if (value.kind == LUMA_IS_FLOAT && value.u.d != value.u.d) {
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "nan does not fit into %s", info->name);
    }
    if (value.kind == LUMA_IS_FLOAT) {
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "%.14g does not fit into %s", value.u.d,
                       info->name);
    }
    return lm_fail(S, LUMA_ERR_DTYPE, argument, "%lld does not fit into %s", (long long)value.u.i,
                   info->name);
}

luma_status lm_fill(luma_state *S, luma_tensor *dst, luma_scalar value) {
    _Alignas(8) char element[8];
    LM_TRY(lm_tensor_check(S, 1, dst, true));
    LM_TRY(lm_number_check(S, 2, value, dst->dtype));
    if (luma_numel(dst) == 0) return LUMA_OK;
    lm_cpu(S)->ops->encode(dst->dtype, value, element);
    luma_tensor d = *dst;
    simplify((luma_tensor *const[]){&d}, 1);
    dst->storage->version++;
    lm_device *device = lm_device_of(dst);
    return LM_SLOT(S, device, fill, "fill", d.dtype, &d, element);
}

luma_status luma_fill(luma_state *S, luma_tensor *dst, luma_scalar value) {
    return lm_fill(S, dst, value);
}

/* ---- results ---------------------------------------------------------------------------------*/

/* The elements of x in dtype, copied into *out. */
static luma_status copy_out(luma_state *S, luma_tensor *out, const luma_tensor *x,
                            luma_dtype dtype) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (!out->storage) return duplicate(S, out, x, dtype);
    lm_result r;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), dtype, x->layout.ndim, x->layout.shape, NULL,
                          0, 0));
    return lm_result_close(S, &r, lm_copy(S, &r.work, x));
}

luma_status lm_cast(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype) {
    if (x->dtype == dtype && !out->storage) {
        luma_share(out, x);
        return LUMA_OK;
    }
    return copy_out(S, out, x, dtype);
}

luma_status lm_meet(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype) {
    if (!lm_meets_rounded(x, dtype)) {
        luma_share(out, x);
        return LUMA_OK;
    }
    luma_tensor once = *x;
    for (int d = 0; d < x->layout.ndim; d++) {
        if (x->layout.stride[d] == 0 && x->layout.shape[d] > 1) once.layout.shape[d] = 1;
    }
    LM_TRY(duplicate(S, out, &once, dtype));
    out->layout = lm_layout_expand(&out->layout, x->layout.ndim, x->layout.shape);
    return LUMA_OK;
}

luma_status luma_to_dtype(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if ((unsigned)dtype >= LUMA_NDTYPES) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "no dtype has the number %d", (int)dtype);
    }
    return lm_cast(S, out, x, dtype);
}

luma_status luma_to_device(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const char *device) {
    lm_device *d;
    lm_result r;
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_device_find(S, device, &d));
    if (!out->storage && d == lm_device_of(x)) {
        S->copies.shared++;
        luma_share(out, x);
        return LUMA_OK;
    }
    LM_TRY(lm_result_open(S, &r, out, d, x->dtype, x->layout.ndim, x->layout.shape, NULL, 0, 0));
    return lm_result_close(S, &r, lm_copy(S, &r.work, x));
}

luma_status luma_contiguous(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    LM_TRY(lm_tensor_live(S, 1, x));
    if (out->storage || !luma_is_contiguous(x)) return copy_out(S, out, x, x->dtype);
    S->copies.shared++;
    luma_share(out, x);
    return LUMA_OK;
}

luma_status luma_force_contiguous(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    return copy_out(S, out, x, x->dtype);
}

luma_status luma_clone(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    return copy_out(S, out, x, x->dtype);
}

luma_status luma_reshape(luma_state *S, luma_tensor *out, const luma_tensor *x, int ndim,
                         const int64_t *shape) {
    bool ok;
    int64_t full[LUMA_MAX_DIMS];
    LM_TRY(lm_view_infer(S, 2, &x->layout, -1, ndim, shape, full));
    luma_layout layout = lm_layout_view(&x->layout, ndim, full, &ok);
    if (ok) {
        if (!out->storage) S->copies.shared++;
        return lm_view_finish(S, out, x, &layout);
    }
    luma_tensor dense = LUMA_NEW;
    LM_TRY(duplicate(S, &dense, x, x->dtype));
    layout = lm_layout_contiguous(ndim, full);
    luma_status status = lm_view_finish(S, out, &dense, &layout);
    luma_release(S, &dense);
    return status;
}

luma_status luma_flatten(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t first,
                         int64_t last) {
    int a = 0, b = 0, n = 0, ndim = x->layout.ndim;
    int64_t shape[LUMA_MAX_DIMS];
    LM_TRY(lm_dim(S, 2, first, ndim, &a));
    LM_TRY(lm_dim(S, 3, last, ndim, &b));
    if (a > b) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "dim %lld comes before dim %lld",
                       (long long)lm_pos(S, b), (long long)lm_pos(S, a));
    }
    for (int d = 0; d < a; d++)
        shape[n++] = x->layout.shape[d];
    shape[n++] = 1;
    for (int d = a; d <= b && d < ndim; d++)
        shape[a] *= x->layout.shape[d];
    for (int d = b + 1; d < ndim; d++)
        shape[n++] = x->layout.shape[d];
    return luma_reshape(S, out, x, n, shape);
}

/* ---- the host --------------------------------------------------------------------------------*/

/* Host memory as a tensor for the time of one call: owns nothing. */
static luma_status borrow(luma_state *S, luma_tensor *out, lm_storage *st, const luma_tensor *x,
                          char *data, size_t nbytes) {
    size_t expected = (size_t)luma_numel(x) * lm_dtype_size(x->dtype);
    if (nbytes != expected) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%s of %s is %zu bytes, not %zu",
                       lm_layout_text(&t, &x->layout), lm_dtypes[x->dtype].name, expected, nbytes);
    }
    *st = (lm_storage){.refs = 1, .nbytes = nbytes, .data = data, .device = lm_cpu(S)};
    *out = (luma_tensor){.storage = st, .dtype = x->dtype};
    out->layout = lm_layout_contiguous(x->layout.ndim, x->layout.shape);
    return LUMA_OK;
}

luma_status luma_read(luma_state *S, const luma_tensor *x, void *data, size_t nbytes) {
    lm_storage st;
    luma_tensor host;
    LM_TRY(borrow(S, &host, &st, x, data, nbytes));
    return lm_copy(S, &host, x);
}

luma_status luma_write(luma_state *S, luma_tensor *x, const void *data, size_t nbytes) {
    lm_storage st;
    luma_tensor host;
    LM_TRY(borrow(S, &host, &st, x, (char *)(uintptr_t)data, nbytes)); /* only read */
    return lm_copy(S, x, &host);
}

luma_status lm_item(luma_state *S, const luma_tensor *x, luma_scalar *out) {
    _Alignas(8) char element[8];
    if (luma_numel(x) != 1) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: a tensor of one element expected",
                       lm_layout_text(&t, &x->layout));
    }
    LM_TRY(lm_tensor_check(S, 1, x, false));
    lm_device *device = lm_device_of(x);
    LM_TRY(LM_SLOT(S, device, download, "copy", x->dtype, element, lm_data(x),
                   lm_dtype_size(x->dtype)));
    *out = lm_cpu(S)->ops->decode(x->dtype, element);
    return LUMA_OK;
}

luma_status luma_item(luma_state *S, const luma_tensor *x, luma_scalar *value) {
    return lm_item(S, x, value);
}
