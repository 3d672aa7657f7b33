/* view.c -- the rows that share the storage of x: each checks its arguments, then asks layout.c for
** the new layout. Layer: core. */
#include "view.h"

#include <limits.h>
#include <string.h>

luma_status lm_view_finish(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_layout *layout) {
    if (!out->storage) return lm_tensor_view(S, out, x, layout);
    luma_tensor view = LUMA_NEW;
    LM_TRY(lm_tensor_view(S, &view, x, layout));
    lm_result r;
    luma_status status = lm_result_open(S, &r, out, lm_device_of(x), x->dtype, layout->ndim,
                                        layout->shape, NULL, 0, 0);
    if (status == LUMA_OK) status = lm_result_close(S, &r, lm_copy(S, &r.work, &view));
    luma_release(S, &view);
    return status;
}

/* Dims and positions are quoted as the caller wrote them. */
static long long quoted(const luma_state *S, int64_t position) {
    return (long long)(position < 0 ? position : lm_pos(S, position));
}

static luma_status dim_missing(luma_state *S, int argument, int64_t dim, const luma_layout *x) {
    lm_text t;
    return lm_fail(S, LUMA_ERR_INDEX, argument, "dim %lld is out of range: %s has %d dim%s",
                   quoted(S, dim), lm_layout_text(&t, x), x->ndim, x->ndim == 1 ? "" : "s");
}

/* As lm_dim, but a 0-d tensor has none. */
static luma_status real_dim(luma_state *S, int argument, int64_t dim, const luma_tensor *x,
                            int *out) {
    int ndim = x->layout.ndim;
    if (dim < -ndim || dim >= ndim) return dim_missing(S, argument, dim, &x->layout);
    *out = (int)(dim < 0 ? dim + ndim : dim);
    return LUMA_OK;
}

static luma_status too_many_dims(luma_state *S, int argument, int n) {
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%d dims: a tensor has at most %d", n,
                   LUMA_MAX_DIMS);
}

static luma_status out_of_range(luma_state *S, int argument, int64_t position, const luma_layout *x,
                                int d) {
    lm_text t;
    return lm_fail(S, LUMA_ERR_INDEX, argument,
                   "position %lld is out of range: dim %lld of %s has size %lld",
                   quoted(S, position), (long long)lm_pos(S, d), lm_layout_text(&t, x),
                   (long long)x->shape[d]);
}

/* ---- another shape ---------------------------------------------------------------------------*/

luma_status lm_view_infer(luma_state *S, int argument, const luma_layout *x, int d, int n,
                          const int64_t *wanted, int64_t *shape) {
    lm_text from, to;
    int64_t have = d < 0 ? lm_layout_numel(x) : x->shape[d], known;
    int free = -1;
    if (n > LUMA_MAX_DIMS) return too_many_dims(S, argument, n);
    for (int k = 0; k < n; k++) {
        shape[k] = wanted[k];
        if (wanted[k] >= 0) continue;
        if (wanted[k] != -1) {
            return lm_fail(S, LUMA_ERR_SHAPE, argument, "size %lld in %s is negative",
                           (long long)wanted[k], lm_shape_text(&to, n, wanted));
        }
        if (free >= 0) {
            return lm_fail(S, LUMA_ERR_SHAPE, argument, "two sizes of %s are -1",
                           lm_shape_text(&to, n, wanted));
        }
        shape[free = k] = 1;
    }
    bool fits = lm_numel_fits(n, shape, LUMA_BOOL, &known);
    if (fits && free >= 0 && known > 0 && have % known == 0) {
        shape[free] = have / known;
        known = have;
    } else if (fits && free >= 0 && known == 0 && have == 0) {
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s to %s: the size -1 could be any",
                       lm_layout_text(&from, x), lm_shape_text(&to, n, wanted));
    }
    if (!fits || known != have) {
        lm_shape_text(&to, n, wanted);
        if (d >= 0) {
            return lm_fail(S, LUMA_ERR_SHAPE, argument,
                           "%s does not split dim %lld of %s: its size is %lld", to.text,
                           (long long)lm_pos(S, d), lm_layout_text(&from, x), (long long)have);
        }
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s to %s: the number of elements differs",
                       lm_layout_text(&from, x), to.text);
    }
    return LUMA_OK;
}

luma_status luma_view(luma_state *S, luma_tensor *out, const luma_tensor *x, int ndim,
                      const int64_t *shape) {
    int64_t full[LUMA_MAX_DIMS];
    LM_TRY(lm_view_infer(S, 2, &x->layout, -1, ndim, shape, full));
    bool ok;
    luma_layout layout = lm_layout_view(&x->layout, ndim, full, &ok);
    if (!ok) {
        lm_text from, to;
        return lm_fail(S, LUMA_ERR_SHAPE, 2,
                       "%s to %s: the strides do not allow it; reshape copies where it must",
                       lm_layout_text(&from, &x->layout), lm_shape_text(&to, ndim, full));
    }
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_unflatten(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                           int n, const int64_t *shape) {
    int d = 0;
    int64_t full[LUMA_MAX_DIMS];
    LM_TRY(real_dim(S, 2, dim, x, &d));
    if (n == 0) return lm_fail(S, LUMA_ERR_SHAPE, 3, "a list of at least one size expected");
    LM_TRY(lm_view_infer(S, 3, &x->layout, d, n, shape, full));
    if (x->layout.ndim - 1 + n > LUMA_MAX_DIMS) return too_many_dims(S, 3, x->layout.ndim - 1 + n);
    luma_layout layout = lm_layout_remove(&x->layout, d);
    int64_t stride = x->layout.stride[d];
    for (int k = n - 1; k >= 0; k--) {
        layout = lm_layout_insert(&layout, d, full[k], stride);
        if (full[k] > 1 && x->layout.shape[d] > 0) stride *= full[k];
    }
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_squeeze(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                         const int64_t *dims) {
    uint32_t mask;
    LM_TRY(lm_dims_mask(S, 2, n, dims, x->layout.ndim, &mask));
    luma_layout layout = x->layout;
    for (int d = x->layout.ndim - 1; d >= 0; d--) {
        if ((mask >> d & 1) && x->layout.shape[d] == 1) layout = lm_layout_remove(&layout, d);
    }
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_unsqueeze(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim) {
    int n = x->layout.ndim + 1;
    if (n > LUMA_MAX_DIMS) return too_many_dims(S, 1, n);
    if (dim < -n || dim >= n) return dim_missing(S, 2, dim, &x->layout);
    luma_layout layout = lm_layout_insert(&x->layout, (int)(dim < 0 ? dim + n : dim), 1, 1);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_expand(luma_state *S, luma_tensor *out, const luma_tensor *x, int ndim,
                        const int64_t *shape) {
    lm_text from, to;
    int64_t full[LUMA_MAX_DIMS], numel;
    int added = ndim - x->layout.ndim;
    if (ndim > LUMA_MAX_DIMS) return too_many_dims(S, 2, ndim);
    if (added < 0) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s to %s: fewer dims",
                       lm_layout_text(&from, &x->layout), lm_shape_text(&to, ndim, shape));
    }
    for (int d = 0; d < ndim; d++) {
        int64_t have = d < added ? 1 : x->layout.shape[d - added];
        full[d] = shape[d] == -1 && d >= added ? have : shape[d];
        if (full[d] < 0) {
            return lm_fail(S, LUMA_ERR_SHAPE, 2, "size %lld in %s is negative", (long long)full[d],
                           lm_shape_text(&to, ndim, shape));
        }
        if (full[d] != have && have != 1) {
            return lm_fail(S, LUMA_ERR_SHAPE, 2,
                           "%s does not expand to %s: sizes %lld and %lld differ",
                           lm_layout_text(&from, &x->layout), lm_shape_text(&to, ndim, shape),
                           (long long)have, (long long)full[d]);
        }
    }
    if (!lm_numel_fits(ndim, full, x->dtype, &numel)) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s is too big", lm_shape_text(&to, ndim, full));
    }
    luma_layout layout = lm_layout_expand(&x->layout, ndim, full);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_as_strided(luma_state *S, luma_tensor *out, const luma_tensor *x, int ndim,
                            const int64_t *shape, const int64_t *stride, int64_t offset) {
    lm_text t;
    int64_t numel, first, last;
    luma_layout layout = {.ndim = ndim, .offset = offset};
    LM_TRY(lm_tensor_live(S, 1, x));
    int64_t elements = (int64_t)(x->storage->nbytes / lm_dtype_size(x->dtype));
    if (ndim > LUMA_MAX_DIMS) return too_many_dims(S, 2, ndim);
    for (int d = 0; d < ndim; d++) {
        layout.shape[d] = shape[d];
        layout.stride[d] = stride[d];
        if (shape[d] < 0) {
            return lm_fail(S, LUMA_ERR_SHAPE, 2, "size %lld in %s is negative", (long long)shape[d],
                           lm_shape_text(&t, ndim, shape));
        }
    }
    if (!lm_numel_fits(ndim, shape, x->dtype, &numel)) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s is too big", lm_shape_text(&t, ndim, shape));
    }
    /* Of no elements only the offset counts. */
    if (numel == 0) layout = lm_layout_contiguous(ndim, shape);
    layout.offset = offset;
    bool touches = lm_layout_extent(&layout, &first, &last);
    if (touches ? first < 0 || last >= elements : offset < 0 || offset > elements) {
        return lm_fail(S, LUMA_ERR_INDEX, 3,
                       "%s from offset %lld does not lie within the %lld elements of the storage",
                       lm_shape_text(&t, ndim, shape), (long long)offset, (long long)elements);
    }
    return lm_view_finish(S, out, x, &layout);
}

luma_status lm_view_as_strided_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                   const lm_arg *shape, const lm_arg *stride,
                                   const lm_arg *offset) {
    if (shape->n != stride->n) {
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%d sizes, but %d strides", shape->n, stride->n);
    }
    return luma_as_strided(S, out, x, shape->n, shape->list, stride->list,
                           offset->given ? offset->i : x->layout.offset);
}

luma_status luma_detach(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    return lm_view_finish(S, out, x, &x->layout);
}

/* ---- another order of dims -------------------------------------------------------------------*/

luma_status luma_transpose(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim1,
                           int64_t dim2) {
    int d1 = 0, d2 = 0;
    LM_TRY(lm_dim(S, 2, dim1, x->layout.ndim, &d1));
    LM_TRY(lm_dim(S, 3, dim2, x->layout.ndim, &d2));
    luma_layout layout = lm_layout_transpose(&x->layout, d1, d2);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_t(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    if (x->layout.ndim > 2) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: a matrix, a vector or a 0-d tensor expected",
                       lm_layout_text(&t, &x->layout));
    }
    luma_layout layout = x->layout.ndim == 2 ? lm_layout_transpose(&x->layout, 0, 1) : x->layout;
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_permute(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                         const int64_t *dims) {
    lm_text t;
    uint32_t mask;
    int order[LUMA_MAX_DIMS];
    if (n != x->layout.ndim) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%d dims to order %s, which has %d", n,
                       lm_layout_text(&t, &x->layout), x->layout.ndim);
    }
    LM_TRY(lm_dims_mask(S, 2, n, dims, n, &mask));
    for (int k = 0; k < n; k++)
        order[k] = (int)(dims[k] < 0 ? dims[k] + n : dims[k]);
    luma_layout layout = lm_layout_permute(&x->layout, order);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_movedim(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                         const int64_t *source, int m, const int64_t *destination) {
    int ndim = x->layout.ndim, order[LUMA_MAX_DIMS];
    uint32_t from = 0, to = 0;
    if (n != m) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%d dims cannot move to %d places", n, m);
    }
    if (n > 0) {
        LM_TRY(lm_dims_mask(S, 2, n, source, ndim, &from));
        LM_TRY(lm_dims_mask(S, 3, n, destination, ndim, &to));
    }
    if (ndim == 0) return luma_detach(S, out, x);
    for (int k = 0; k < n; k++) {
        int64_t place = destination[k] < 0 ? destination[k] + ndim : destination[k];
        order[place] = (int)(source[k] < 0 ? source[k] + ndim : source[k]);
    }
    for (int d = 0, rest = 0; d < ndim; d++) {
        if (to >> d & 1) continue;
        while (from >> rest & 1)
            rest++;
        order[d] = rest++;
    }
    luma_layout layout = lm_layout_permute(&x->layout, order);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_flip(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                      const int64_t *dims) {
    uint32_t mask;
    LM_TRY(lm_dims_mask(S, 2, n, dims, x->layout.ndim, &mask));
    luma_layout layout = x->layout;
    for (int d = 0; d < layout.ndim; d++) {
        if (mask >> d & 1) {
            layout = lm_layout_slice(&layout, d, layout.shape[d] - 1, layout.shape[d], -1);
        }
    }
    return lm_view_finish(S, out, x, &layout);
}

/* ---- parts -----------------------------------------------------------------------------------*/

luma_status luma_select(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                        int64_t index) {
    int d = 0;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    int64_t size = x->layout.shape[d];
    if (index < -size || index >= size) return out_of_range(S, 3, index, &x->layout, d);
    luma_layout layout = lm_layout_select(&x->layout, d, index < 0 ? index + size : index);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_narrow(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                        int64_t start, int64_t length) {
    int d = 0;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    int64_t size = x->layout.shape[d];
    if (start < -size || start > size) return out_of_range(S, 3, start, &x->layout, d);
    int64_t from = start < 0 ? start + size : start;
    if (length < 0 || length > size - from) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_INDEX, 4,
                       "length %lld from position %lld is out of range: dim %lld of %s has size "
                       "%lld",
                       (long long)length, quoted(S, start), (long long)lm_pos(S, d),
                       lm_layout_text(&t, &x->layout), (long long)size);
    }
    luma_layout layout = lm_layout_slice(&x->layout, d, from, length, 1);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_slice(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                       int64_t first, int64_t length, int64_t step) {
    int d = 0;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    int64_t size = x->layout.shape[d], last;
    if (step == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 5, "step is zero");
    if (length < 0) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "length %lld is negative", (long long)length);
    }
    if (first < -size || first > size || (first == size && length > 0)) {
        return out_of_range(S, 3, first, &x->layout, d);
    }
    int64_t from = first < 0 ? first + size : first;
    if (length > 0 && (!lm_mul_fits(length - 1, step, &last) || !lm_add_fits(from, last, &last) ||
                       last < 0 || last >= size)) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_INDEX, 4,
                       "%lld positions from %lld by %lld are out of range: dim %lld of %s has size "
                       "%lld",
                       (long long)length, quoted(S, first), (long long)step,
                       (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout), (long long)size);
    }
    luma_layout layout = lm_layout_slice(&x->layout, d, from, length, step);
    return lm_view_finish(S, out, x, &layout);
}

static int64_t absolute(int64_t position, int64_t size) {
    if (position == LM_BEFORE_FIRST) return -1;
    return position < 0 ? position + size : position;
}

luma_status lm_view_range(luma_state *S, int argument, const luma_layout *x, int d,
                          const int64_t *first, const int64_t *last, int64_t step, int64_t *start,
                          int64_t *length) {
    int64_t size = x->shape[d];
    if (step == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "step is zero");
    *start = 0;
    *length = 0;
    if (size == 0 && !first && !last) return LUMA_OK;
    int64_t a = first ? absolute(*first, size) : step > 0 ? 0 : size - 1;
    int64_t b = last ? absolute(*last, size) : step > 0 ? size - 1 : 0;
    if (step > 0 && b == a - 1 && a >= 0 && a <= size) {
        *start = a;
        return LUMA_OK;
    }
    if (a < 0 || a >= size) return out_of_range(S, argument, first ? *first : a, x, d);
    if (b < 0 || b >= size) {
        if (last && *last == LM_BEFORE_FIRST) {
            lm_text t;
            return lm_fail(S, LUMA_ERR_INDEX, argument,
                           "position %lld is out of range: dim %lld of %s has size %lld",
                           (long long)S->index_base - 1, (long long)lm_pos(S, d),
                           lm_layout_text(&t, x), (long long)size);
        }
        return out_of_range(S, argument, last ? *last : b, x, d);
    }
    if (step > 0 ? b < a : b > a) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument,
                       "the range %lld to %lld runs against its step %lld", (long long)lm_pos(S, a),
                       (long long)lm_pos(S, b), (long long)step);
    }
    *start = a;
    /* Unsigned, since the least int64 has no opposite. */
    *length = 1 + (int64_t)(step > 0 ? (uint64_t)(b - a) / (uint64_t)step
                                     : (uint64_t)(a - b) / (0 - (uint64_t)step));
    return LUMA_OK;
}

luma_status lm_view_slice_arg(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                              const lm_arg *first, const lm_arg *last, const lm_arg *step) {
    int d = 0;
    int64_t start, length, by = step->given ? step->i : 1;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    if (by == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 5, "step is zero");
    LM_TRY(lm_view_range(S, last->given ? 4 : 3, &x->layout, d, first->given ? &first->i : NULL,
                         last->given ? &last->i : NULL, by, &start, &length));
    luma_layout layout = lm_layout_slice(&x->layout, d, start, length, by);
    return lm_view_finish(S, out, x, &layout);
}

luma_status luma_diagonal(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t offset,
                          int64_t dim1, int64_t dim2) {
    int d1 = 0, d2 = 0;
    lm_text t;
    if (x->layout.ndim < 2) {
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: at least 2 dims expected",
                       lm_layout_text(&t, &x->layout));
    }
    LM_TRY(real_dim(S, 3, dim1, x, &d1));
    LM_TRY(real_dim(S, 4, dim2, x, &d2));
    if (d1 == d2) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "dim %lld twice: a diagonal needs two dims",
                       (long long)lm_pos(S, d1));
    }
    int64_t n1 = x->layout.shape[d1], n2 = x->layout.shape[d2];
    int64_t s1 = x->layout.stride[d1], s2 = x->layout.stride[d2];
    if (offset >= 0) {
        n2 -= offset;
    } else {
        n1 += offset;
    }
    int64_t length = n1 < n2 ? n1 : n2;
    luma_layout layout = lm_layout_remove(&x->layout, d1 > d2 ? d1 : d2);
    layout = lm_layout_remove(&layout, d1 > d2 ? d2 : d1);
    if (length > 0) layout.offset += offset >= 0 ? offset * s2 : -offset * s1;
    layout =
        lm_layout_insert(&layout, layout.ndim, length > 0 ? length : 0, length > 1 ? s1 + s2 : 1);
    return lm_view_finish(S, out, x, &layout);
}

luma_status lm_view_diagonal_arg(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 const lm_arg *offset, const lm_arg *dim1, const lm_arg *dim2) {
    return luma_diagonal(S, out, x, offset->given ? offset->i : 0, dim1->given ? dim1->i : 0,
                         dim2->given ? dim2->i : 1);
}

luma_status luma_unfold(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t dim,
                        int64_t size, int64_t step) {
    int d = 0;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    if (x->layout.ndim == LUMA_MAX_DIMS) return too_many_dims(S, 1, LUMA_MAX_DIMS + 1);
    int64_t n = x->layout.shape[d], stride = x->layout.stride[d];
    if (size < 0 || size > n) {
        lm_text t;
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "windows of %lld: dim %lld of %s has size %lld",
                       (long long)size, (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout),
                       (long long)n);
    }
    if (step <= 0) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "step %lld is not positive", (long long)step);
    }
    luma_layout layout = lm_layout_slice(&x->layout, d, 0, (n - size) / step + 1, step);
    layout = lm_layout_insert(&layout, layout.ndim, size, stride);
    return lm_view_finish(S, out, x, &layout);
}

/* ---- lists -----------------------------------------------------------------------------------*/

/* The storage of a list's own memory stands in front of its items, so that the memory limit and
** the failure hook see it. */
#define LIST_HEAD 64

static luma_status list_open(luma_state *S, luma_list *list, int64_t n, int argument) {
    lm_storage *st;
    int64_t nbytes;
    if (n > INT_MAX || !lm_mul_fits(n, (int64_t)sizeof(luma_tensor), &nbytes)) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "%lld pieces are too many", (long long)n);
    }
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)nbytes + LIST_HEAD, &st));
    *(lm_storage **)(void *)st->data = st;
    list->n = 0;
    list->items = (luma_tensor *)(void *)(st->data + LIST_HEAD);
    return LUMA_OK;
}

void luma_close_list(luma_state *S, luma_list *list) {
    if (!list->items) return;
    for (int k = 0; k < list->n; k++)
        luma_release(S, &list->items[k]);
    lm_storage_release(*(lm_storage **)(void *)((char *)list->items - LIST_HEAD));
    *list = (luma_list){0};
}

static luma_status list_add(luma_state *S, luma_list *list, const luma_tensor *x,
                            const luma_layout *layout) {
    list->items[list->n] = LUMA_NEW;
    luma_status status = lm_tensor_view(S, &list->items[list->n], x, layout);
    if (status == LUMA_OK) {
        list->n++;
    } else {
        luma_close_list(S, list);
    }
    return status;
}

/* n pieces along d: sizes[k], or `size` each (the last what is left) where sizes is NULL. */
static luma_status pieces(luma_state *S, luma_list *out, const luma_tensor *x, int d, int64_t n,
                          const int64_t *sizes, int64_t size) {
    luma_list list;
    LM_TRY(list_open(S, &list, n, 2));
    int64_t start = 0, end = x->layout.shape[d];
    for (int64_t k = 0; k < n; k++) {
        int64_t length = sizes ? sizes[k] : size;
        if (length > end - start) length = end - start;
        luma_layout layout = lm_layout_slice(&x->layout, d, start, length, 1);
        LM_TRY(list_add(S, &list, x, &layout));
        start += length;
    }
    *out = list;
    return LUMA_OK;
}

luma_status luma_split(luma_state *S, luma_list *out, const luma_tensor *x, int n,
                       const int64_t *sizes, int64_t dim) {
    int d = 0;
    lm_text t;
    LM_TRY(real_dim(S, 3, dim, x, &d));
    int64_t have = x->layout.shape[d], total = 0;
    for (int k = 0; k < n; k++) {
        if (sizes[k] < 0) {
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "size %lld is negative", (long long)sizes[k]);
        }
        if (!lm_add_fits(total, sizes[k], &total)) total = INT64_MAX;
    }
    if (n == 1) {
        if (have == 0) return pieces(S, out, x, d, 1, NULL, 0);
        if (sizes[0] == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "size is zero");
        return pieces(S, out, x, d, (have - 1) / sizes[0] + 1, NULL, sizes[0]);
    }
    if (total != have) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2,
                       "the sizes sum to %lld, but dim %lld of %s has size %lld", (long long)total,
                       (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout), (long long)have);
    }
    return pieces(S, out, x, d, n, sizes, 0);
}

luma_status luma_chunk(luma_state *S, luma_list *out, const luma_tensor *x, int64_t n,
                       int64_t dim) {
    int d = 0;
    LM_TRY(real_dim(S, 3, dim, x, &d));
    if (n <= 0) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld pieces: at least 1 expected", (long long)n);
    }
    int64_t have = x->layout.shape[d];
    if (have == 0) return pieces(S, out, x, d, n, NULL, 0);
    int64_t size = (have - 1) / n + 1;
    return pieces(S, out, x, d, (have - 1) / size + 1, NULL, size);
}

luma_status luma_unbind(luma_state *S, luma_list *out, const luma_tensor *x, int64_t dim) {
    int d = 0;
    luma_list list;
    LM_TRY(real_dim(S, 2, dim, x, &d));
    LM_TRY(list_open(S, &list, x->layout.shape[d], 1));
    for (int64_t k = 0; k < x->layout.shape[d]; k++) {
        luma_layout layout = lm_layout_select(&x->layout, d, k);
        LM_TRY(list_add(S, &list, x, &layout));
    }
    *out = list;
    return LUMA_OK;
}

luma_status luma_meshgrid(luma_state *S, luma_list *out, int n, const luma_tensor *xs, bool xy) {
    luma_list list;
    luma_layout layout = {.ndim = n};
    bool swap = xy && n > 1;
    if (n < 1 || n > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "1 to %d vectors expected, got %d", LUMA_MAX_DIMS,
                       n);
    for (int i = 0; i < n; i++) {
        if (xs[i].layout.ndim > 1)
            return lm_fail(S, LUMA_ERR_SHAPE, 1, "a vector expected, got %d dims",
                           xs[i].layout.ndim);
        layout.shape[swap && i < 2 ? 1 - i : i] = luma_numel(&xs[i]);
    }
    LM_TRY(list_open(S, &list, n, 1));
    for (int i = 0; i < n; i++) {
        memset(layout.stride, 0, sizeof layout.stride);
        layout.offset = xs[i].layout.offset;
        layout.stride[swap && i < 2 ? 1 - i : i] = xs[i].layout.ndim ? xs[i].layout.stride[0] : 0;
        LM_TRY(list_add(S, &list, &xs[i], &layout));
    }
    *out = list;
    return LUMA_OK;
}
