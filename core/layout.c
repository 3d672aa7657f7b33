/* layout.c -- views as arithmetic on shape, strides and offset; nothing here touches memory.
** Layer: core. */
#include "layout.h"

luma_layout lm_layout_contiguous(int ndim, const int64_t *shape) {
    luma_layout out = {.ndim = ndim};
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        out.shape[d] = shape[d];
        out.stride[d] = stride;
        if (shape[d] > 1) stride *= shape[d];
    }
    return out;
}

bool lm_layout_is_contiguous(const luma_layout *x) {
    int64_t expected = 1;
    bool dense = true;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->shape[d] == 0) return true;
        if (x->shape[d] == 1) continue;
        if (x->stride[d] != expected) dense = false;
        expected *= x->shape[d];
    }
    return dense;
}

int64_t lm_layout_numel(const luma_layout *x) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++)
        n *= x->shape[d];
    return n;
}

bool lm_layout_same_shape(const luma_layout *a, const luma_layout *b) {
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] != b->shape[d]) return false;
    }
    return true;
}

/* Adds what a dim contributes below and above the offset; saturates, so that a layout whose
** extent leaves int64 fails every comparison with a storage. */
static void extent_add(int64_t size, int64_t stride, int64_t *first, int64_t *last) {
    int64_t reach;
    if (!lm_mul_fits(size - 1, stride, &reach)) reach = stride < 0 ? INT64_MIN : INT64_MAX;
    if (reach < 0) {
        if (!lm_add_fits(*first, reach, first)) *first = INT64_MIN;
    } else {
        if (!lm_add_fits(*last, reach, last)) *last = INT64_MAX;
    }
}

const char *lm_layout_text(lm_text *buffer, const luma_layout *x) {
    return lm_shape_text(buffer, x->ndim, x->shape);
}

bool lm_layout_extent(const luma_layout *x, int64_t *first, int64_t *last) {
    *first = *last = x->offset;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 0) return false;
        extent_add(x->shape[d], x->stride[d], first, last);
    }
    return true;
}

/* Collects the dims of size > 1, smallest step first. Returns their number. */
static int sorted_steps(const luma_layout *x, int64_t *size, int64_t *step) {
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 1) continue;
        int at = n++;
        int64_t s = lm_abs(x->stride[d]);
        for (; at > 0 && step[at - 1] > s; at--) {
            step[at] = step[at - 1];
            size[at] = size[at - 1];
        }
        step[at] = s;
        size[at] = x->shape[d];
    }
    return n;
}

bool lm_layout_overlaps_itself(const luma_layout *x) {
    int64_t size[LUMA_MAX_DIMS], step[LUMA_MAX_DIMS];
    if (lm_layout_numel(x) == 0) return false;
    int n = sorted_steps(x, size, step);
    int64_t reach = 0; /* of all smaller dims together */
    for (int d = 0; d < n; d++) {
        if (step[d] <= reach) return true;
        reach += step[d] * (size[d] - 1);
    }
    return false;
}

static int64_t modulo(int64_t a, int64_t m) {
    int64_t r = a % m;
    return r < 0 ? r + m : r;
}

/* Where x lies between two multiples of `period`: its dims that are no multiples of it span
** [*start, *start + *span], *start in 0..period-1. false when that span wraps onto itself. */
static bool residues(const luma_layout *x, int64_t period, int64_t *start, int64_t *span) {
    int64_t first = 0, last = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->stride[d] % period != 0) extent_add(x->shape[d], x->stride[d], &first, &last);
    }
    if (first <= -period || last >= period || last - first >= period) return false;
    *start = modulo(x->offset + first, period);
    *span = last - first;
    return true;
}

/* Interleaved views -- columns of one matrix, odd and even rows -- never meet: seen modulo a
** common period they occupy different places. */
static bool apart_modulo(const luma_layout *x, const luma_layout *y, int64_t period) {
    int64_t sx, nx, sy, ny;
    if (!residues(x, period, &sx, &nx) || !residues(y, period, &sy, &ny)) return false;
    return modulo(sy - sx, period) > nx && modulo(sx - sy, period) > ny;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

bool lm_layout_may_overlap(const luma_layout *x, const luma_layout *y) {
    int64_t x0, x1, y0, y1;
    if (!lm_layout_extent(x, &x0, &x1) || !lm_layout_extent(y, &y0, &y1)) return false;
    if (x1 < y0 || y1 < x0) return false;
    int64_t size[2 * LUMA_MAX_DIMS], step[2 * LUMA_MAX_DIMS];
    int n = sorted_steps(x, size, step);
    n += sorted_steps(y, size + n, step + n);
    int64_t common = 0;
    for (int d = 0; d < n; d++) {
        common = gcd(common, step[d]);
        if (step[d] > 1 && apart_modulo(x, y, step[d])) return false;
    }
    return common <= 1 || !apart_modulo(x, y, common);
}

luma_status lm_shape_broadcast(luma_state *S, int na, const int64_t *a, int nb, const int64_t *b,
                               int *n, int64_t *out) {
    int ndim = na > nb ? na : nb;
    int64_t shape[LUMA_MAX_DIMS];
    for (int k = 1; k <= ndim; k++) {
        int64_t sa = k <= na ? a[na - k] : 1, sb = k <= nb ? b[nb - k] : 1;
        if (sa != sb && sa != 1 && sb != 1) {
            lm_text ta, tb;
            return lm_fail(
                S, LUMA_ERR_SHAPE, 2, "%s and %s do not broadcast: sizes %lld and %lld differ",
                lm_shape_text(&ta, na, a), lm_shape_text(&tb, nb, b), (long long)sa, (long long)sb);
        }
        shape[ndim - k] = sa == 1 ? sb : sa;
    }
    for (int d = 0; d < ndim; d++)
        out[d] = shape[d];
    *n = ndim;
    return LUMA_OK;
}

bool lm_shape_fits(int ndim, const int64_t *shape, int nto, const int64_t *to) {
    for (int k = 1; k <= ndim; k++)
        if (k > nto || (shape[ndim - k] != 1 && shape[ndim - k] != to[nto - k])) return false;
    return true;
}

luma_layout lm_layout_expand(const luma_layout *x, int ndim, const int64_t *shape) {
    luma_layout out = {.ndim = ndim, .offset = x->offset};
    int added = ndim - x->ndim;
    for (int d = 0; d < ndim; d++) {
        out.shape[d] = shape[d];
        if (d >= added && (x->shape[d - added] != 1 || shape[d] == 1)) {
            out.stride[d] = x->stride[d - added];
        }
    }
    return out;
}

luma_status lm_dim(luma_state *S, int argument, int64_t dim, int ndim, int *out) {
    int range = ndim > 0 ? ndim : 1;
    if (dim < -range || dim >= range) {
        return lm_fail(S, LUMA_ERR_INDEX, argument,
                       "dim %lld is out of range: the tensor has %d dim%s",
                       (long long)(dim < 0 ? dim : lm_pos(S, dim)), ndim, ndim == 1 ? "" : "s");
    }
    *out = (int)(dim < 0 ? dim + range : dim);
    return LUMA_OK;
}

luma_status lm_dims_mask(luma_state *S, int argument, int n, const int64_t *dims, int ndim,
                         uint32_t *mask) {
    uint32_t seen = 0, every = (1u << ndim) - 1;
    for (int k = 0; k < n; k++) {
        int d = 0;
        LM_TRY(lm_dim(S, argument, dims[k], ndim, &d));
        if (seen >> d & 1) {
            return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "dim %lld is given twice",
                           (long long)lm_pos(S, d));
        }
        seen |= 1u << d;
    }
    *mask = n == 0 ? every : seen & every;
    return LUMA_OK;
}

/* x without dims of size 1 and with neighbours merged that one stride walks; x is not empty. */
static luma_layout merged(const luma_layout *x) {
    luma_layout out = {.offset = x->offset};
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] == 1) continue;
        int n = out.ndim;
        if (n > 0 && out.stride[n - 1] == x->stride[d] * x->shape[d]) {
            out.shape[n - 1] *= x->shape[d];
            out.stride[n - 1] = x->stride[d];
        } else {
            out.shape[n] = x->shape[d];
            out.stride[n] = x->stride[d];
            out.ndim++;
        }
    }
    return out;
}

luma_layout lm_layout_view(const luma_layout *x, int ndim, const int64_t *shape, bool *ok) {
    luma_layout out = lm_layout_contiguous(ndim, shape);
    out.offset = x->offset;
    *ok = lm_layout_numel(&out) == lm_layout_numel(x);
    if (!*ok || lm_layout_numel(x) == 0) return out;

    luma_layout from = merged(x);
    int d = ndim - 1;
    for (int k = from.ndim - 1; k >= 0; k--) { /* new dims fill up one merged dim after another */
        int64_t filled = 1;
        for (; d >= 0 && filled < from.shape[k]; d--) {
            out.stride[d] = filled * from.stride[k];
            filled *= shape[d];
        }
        if (filled != from.shape[k]) *ok = false;
    }
    return out;
}

luma_layout lm_layout_transpose(const luma_layout *x, int dim1, int dim2) {
    luma_layout out = *x;
    out.shape[dim1] = x->shape[dim2];
    out.shape[dim2] = x->shape[dim1];
    out.stride[dim1] = x->stride[dim2];
    out.stride[dim2] = x->stride[dim1];
    return out;
}

luma_layout lm_layout_permute(const luma_layout *x, const int *dims) {
    luma_layout out = {.ndim = x->ndim, .offset = x->offset};
    for (int d = 0; d < x->ndim; d++) {
        out.shape[d] = x->shape[dims[d]];
        out.stride[d] = x->stride[dims[d]];
    }
    return out;
}

luma_layout lm_layout_select(const luma_layout *x, int dim, int64_t index) {
    luma_layout out = lm_layout_remove(x, dim);
    out.offset += index * x->stride[dim];
    return out;
}

luma_layout lm_layout_slice(const luma_layout *x, int dim, int64_t start, int64_t length,
                            int64_t step) {
    luma_layout out = *x;
    out.shape[dim] = length;
    /* A range of at most one element never steps: its step may be any number. */
    if (length > 1) out.stride[dim] *= step;
    if (length > 0) out.offset += start * x->stride[dim];
    return out;
}

luma_layout lm_layout_insert(const luma_layout *x, int dim, int64_t size, int64_t stride) {
    luma_layout out = {.ndim = x->ndim + 1, .offset = x->offset};
    for (int d = 0; d < out.ndim; d++) {
        int from = d < dim ? d : d - 1;
        out.shape[d] = d == dim ? size : x->shape[from];
        out.stride[d] = d == dim ? stride : x->stride[from];
    }
    return out;
}

luma_layout lm_layout_remove(const luma_layout *x, int dim) {
    luma_layout out = {.ndim = x->ndim - 1, .offset = x->offset};
    for (int d = 0; d < out.ndim; d++) {
        int from = d < dim ? d : d + 1;
        out.shape[d] = x->shape[from];
        out.stride[d] = x->stride[from];
    }
    return out;
}
