/* join.c -- tensors put together, repeated, moved around, framed: every result is made of
** assignments to parts of it, which copy.c turns into block copies where layouts allow. Layer:
** core. */
#include <string.h>

#include "resize.h"
#include "tensor.h"

/* A view for one assignment; owns nothing. */
static luma_tensor part(const luma_tensor *x, int d, int64_t start, int64_t length) {
    luma_tensor out = *x;
    out.layout = lm_layout_slice(&x->layout, d, start, length, 1);
    return out;
}

/* ---- cat and stack ---------------------------------------------------------------------------*/

/* Where the list as a whole shall go. */
typedef struct {
    lm_device *device;
    luma_dtype dtype;
    const luma_tensor *spoiler; /* an item that shares elements with a live out, or the first */
} join;

static luma_status join_check(luma_state *S, join *j, const luma_tensor *out, int n,
                              const luma_tensor *xs) {
    if (n < 1) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "an empty list");
    for (int k = 0; k < n; k++) {
        if (xs[k].storage) continue;
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "item %lld is a number", (long long)lm_pos(S, k));
    }
    j->device = lm_device_of(&xs[0]);
    j->dtype = xs[0].dtype;
    j->spoiler = &xs[0];
    for (int k = 1; k < n; k++) {
        if (lm_device_of(&xs[k]) != j->device) {
            return lm_fail(S, LUMA_ERR_DEVICE, 1, "item %lld is on %s, item %lld on %s",
                           (long long)lm_pos(S, 0), j->device->name, (long long)lm_pos(S, k),
                           lm_device_of(&xs[k])->name);
        }
        j->dtype = lm_dtype_promote(j->dtype, xs[k].dtype);
        if (xs[k].storage == out->storage && lm_layout_may_overlap(&xs[k].layout, &out->layout)) {
            j->spoiler = &xs[k];
        }
    }
    return LUMA_OK;
}

static luma_status cat_mismatch(luma_state *S, const luma_layout *a, const luma_layout *b, int d) {
    lm_text ta, tb;
    long long dim = (long long)lm_pos(S, d);
    if (a->ndim != b->ndim) {
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s and %s along dim %lld: %d and %d dims",
                       lm_layout_text(&ta, a), lm_layout_text(&tb, b), dim, a->ndim, b->ndim);
    }
    for (int k = 0; k < a->ndim; k++) {
        if (k == d || a->shape[k] == b->shape[k]) continue;
        return lm_fail(S, LUMA_ERR_SHAPE, 1,
                       "%s and %s along dim %lld: sizes %lld and %lld of dim %lld differ",
                       lm_layout_text(&ta, a), lm_layout_text(&tb, b), dim, (long long)a->shape[k],
                       (long long)b->shape[k], (long long)lm_pos(S, k));
    }
    return LUMA_OK;
}

static luma_status cat_fill(luma_state *S, const luma_tensor *work, int n, const luma_tensor *xs,
                            int d) {
    int64_t start = 0;
    for (int k = 0; k < n; k++) {
        int64_t size = xs[k].layout.shape[d];
        luma_tensor dst = part(work, d, start, size);
        LM_TRY(lm_copy(S, &dst, &xs[k]));
        start += size;
    }
    return LUMA_OK;
}

luma_status luma_cat(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs, int64_t dim) {
    join j;
    lm_result r;
    int d = 0;
    LM_TRY(join_check(S, &j, out, n, xs));
    luma_layout all = xs[0].layout;
    if (all.ndim == 0) {
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "0-d tensors have no dim to join along: use stack");
    }
    LM_TRY(lm_dim(S, 2, dim, all.ndim, &d));
    for (int k = 1; k < n; k++) {
        LM_TRY(cat_mismatch(S, &xs[0].layout, &xs[k].layout, d));
        if (!lm_add_fits(all.shape[d], xs[k].layout.shape[d], &all.shape[d])) {
            return lm_fail(S, LUMA_ERR_MEMORY, 1, "the result is too large");
        }
    }
    LM_TRY(lm_result_open(S, &r, out, j.device, j.dtype, all.ndim, all.shape, &j.spoiler, 1, 0));
    return lm_result_close(S, &r, cat_fill(S, &r.work, n, xs, d));
}

static luma_status stack_fill(luma_state *S, const luma_tensor *work, int n, const luma_tensor *xs,
                              int d) {
    for (int k = 0; k < n; k++) {
        luma_tensor dst = *work;
        dst.layout = lm_layout_select(&work->layout, d, k);
        LM_TRY(lm_copy(S, &dst, &xs[k]));
    }
    return LUMA_OK;
}

luma_status luma_stack(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs, int64_t dim) {
    join j;
    lm_result r;
    LM_TRY(join_check(S, &j, out, n, xs));
    int ndim = xs[0].layout.ndim + 1;
    if (ndim > LUMA_MAX_DIMS) {
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: a tensor has at most %d", ndim,
                       LUMA_MAX_DIMS);
    }
    if (dim < -ndim || dim >= ndim) {
        return lm_fail(S, LUMA_ERR_INDEX, 2, "dim %lld is out of range: the result has %d dim%s",
                       (long long)(dim < 0 ? dim : lm_pos(S, dim)), ndim, ndim == 1 ? "" : "s");
    }
    int d = (int)(dim < 0 ? dim + ndim : dim);
    for (int k = 1; k < n; k++) {
        lm_text a, b;
        if (lm_layout_same_shape(&xs[0].layout, &xs[k].layout)) continue;
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s and %s along a new dim %lld: the shapes differ",
                       lm_layout_text(&a, &xs[0].layout), lm_layout_text(&b, &xs[k].layout),
                       (long long)lm_pos(S, d));
    }
    luma_layout all = lm_layout_insert(&xs[0].layout, d, n, 0);
    LM_TRY(lm_result_open(S, &r, out, j.device, j.dtype, all.ndim, all.shape, &j.spoiler, 1, 0));
    return lm_result_close(S, &r, stack_fill(S, &r.work, n, xs, d));
}

/* ---- tile ------------------------------------------------------------------------------------*/

/* Copies x to the first corner of work, then doubles what is there along one dim after another. */
static luma_status tile_fill(luma_state *S, const luma_tensor *work, const luma_tensor *x) {
    luma_tensor done = *work;
    int added = work->layout.ndim - x->layout.ndim;
    for (int d = 0; d < work->layout.ndim; d++) {
        done = part(&done, d, 0, d < added ? 1 : x->layout.shape[d - added]);
    }
    LM_TRY(lm_copy(S, &done, x));
    for (int d = work->layout.ndim - 1; d >= 0; d--) {
        int64_t size = work->layout.shape[d];
        luma_tensor whole = done;
        whole.layout.shape[d] = size;
        whole.layout.stride[d] = work->layout.stride[d];
        for (int64_t have = done.layout.shape[d]; have < size;) {
            int64_t more = have < size - have ? have : size - have;
            luma_tensor dst = part(&whole, d, have, more), src = part(&whole, d, 0, more);
            LM_TRY(lm_copy(S, &dst, &src));
            have += more;
        }
        done = whole;
    }
    return LUMA_OK;
}

luma_status luma_tile(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                      const int64_t *reps) {
    lm_result r;
    lm_text t;
    int64_t shape[LUMA_MAX_DIMS] = {0};
    int added = n - x->layout.ndim;
    LM_TRY(lm_tensor_live(S, 1, x));
    if (added < 0 || n > LUMA_MAX_DIMS) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%d repetitions for %s: %d to %d expected", n,
                       lm_layout_text(&t, &x->layout), x->layout.ndim, LUMA_MAX_DIMS);
    }
    bool empty = false;
    for (int d = 0; d < n; d++) {
        if (reps[d] < 0) {
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%lld repetitions", (long long)reps[d]);
        }
        if (!lm_mul_fits(reps[d], d < added ? 1 : x->layout.shape[d - added], &shape[d])) {
            return lm_fail(S, LUMA_ERR_MEMORY, 2, "the result is too large");
        }
        empty = empty || shape[d] == 0;
    }
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, n, shape, &x, 1, 0));
    return lm_result_close(S, &r, empty ? LUMA_OK : tile_fill(S, &r.work, x));
}

/* ---- roll ------------------------------------------------------------------------------------*/

/* work[i + shift] = x[i] modulo the sizes; shift[d] in 0..size-1. Each combination of dims that
** wrap or do not is one block. */
static luma_status roll_fill(luma_state *S, const luma_tensor *work, const luma_tensor *x,
                             const int64_t *shift) {
    int n = x->layout.ndim;
    for (uint32_t wraps = 0; wraps < 1u << n; wraps++) {
        luma_tensor dst = *work, src = *x;
        bool any = true;
        for (int d = 0; d < n && any; d++) {
            int64_t size = x->layout.shape[d];
            bool wrap = wraps >> d & 1;
            int64_t length = wrap ? shift[d] : size - shift[d];
            any = length > 0;
            src = part(&src, d, wrap ? size - shift[d] : 0, length);
            dst = part(&dst, d, wrap ? 0 : shift[d], length);
        }
        if (any) LM_TRY(lm_copy(S, &dst, &src));
    }
    return LUMA_OK;
}

/* Without dims the elements move as one list. */
static luma_status roll_flat(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t shift) {
    lm_result r;
    luma_tensor dense = LUMA_NEW;
    LM_TRY(luma_contiguous(S, &dense, x));
    luma_status status = lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim,
                                        x->layout.shape, &x, 1, LM_RESULT_CONTIGUOUS);
    if (status == LUMA_OK) {
        int64_t n = luma_numel(x);
        luma_tensor dst = r.work, src = dense;
        dst.layout = lm_layout_contiguous(1, &n);
        dst.layout.offset = r.work.layout.offset;
        src.layout = lm_layout_contiguous(1, &n);
        src.layout.offset = dense.layout.offset;
        status = lm_result_close(S, &r, roll_fill(S, &dst, &src, &shift));
    }
    luma_release(S, &dense);
    return status;
}

static int64_t wrapped(int64_t shift, int64_t size) {
    if (size == 0) return 0;
    int64_t r = shift % size;
    return r < 0 ? r + size : r;
}

luma_status luma_roll(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                      const int64_t *shifts, int m, const int64_t *dims) {
    lm_result r;
    int64_t shift[LUMA_MAX_DIMS] = {0};
    LM_TRY(lm_tensor_live(S, 1, x));
    if (n != (m == 0 ? 1 : m)) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%d shifts for %d dims", n, m);
    }
    if (m == 0) return roll_flat(S, out, x, wrapped(shifts[0], luma_numel(x)));
    for (int k = 0; k < m; k++) {
        int d = 0;
        LM_TRY(lm_dim(S, 3, dims[k], x->layout.ndim, &d));
        if (x->layout.ndim == 0) continue;
        int64_t size = x->layout.shape[d];
        /* Both terms are below size, so the sum fits. */
        shift[d] = wrapped(shift[d] + wrapped(shifts[k], size), size);
    }
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                          &x, 1, 0));
    return lm_result_close(S, &r, roll_fill(S, &r.work, x, shift));
}

/* ---- pad -------------------------------------------------------------------------------------*/

/* Frames dim after dim, each time only what no other frame covers; then the middle. Negative
** widths cut x. */
static luma_status pad_fill(luma_state *S, const luma_tensor *work, const luma_tensor *x,
                            int64_t (*width)[2], luma_scalar value) {
    luma_tensor dst = *work, src = *x;
    for (int d = 0; d < x->layout.ndim; d++) {
        int64_t before = width[d][0], after = width[d][1], size = dst.layout.shape[d];
        int64_t cut = before < 0 ? -before : 0, lead = before > 0 ? before : 0;
        int64_t trail = after > 0 ? after : 0;
        luma_tensor frame = part(&dst, d, 0, lead);
        LM_TRY(lm_fill(S, &frame, value));
        frame = part(&dst, d, size - trail, trail);
        LM_TRY(lm_fill(S, &frame, value));
        dst = part(&dst, d, lead, size - lead - trail);
        src = part(&src, d, cut, dst.layout.shape[d]);
    }
    return lm_copy(S, &dst, &src);
}

/* Widths by dim, and the shape that they make. */
typedef struct {
    int64_t width[LUMA_MAX_DIMS][2];
    luma_layout all;
} frame;

static luma_status frame_of(luma_state *S, frame *f, const luma_tensor *x, int n,
                            const int64_t *widths) {
    lm_text t;
    LM_TRY(lm_tensor_live(S, 1, x));
    memset(f->width, 0, sizeof f->width);
    f->all = x->layout;
    if (n < 0 || n % 2 != 0 || n / 2 > x->layout.ndim) {
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "%d widths for %s: two for each padded dim", n,
                       lm_layout_text(&t, &x->layout));
    }
    for (int k = 0; k < n / 2; k++) {
        int d = x->layout.ndim - 1 - k;
        int64_t size = x->layout.shape[d], before = widths[2 * k], after = widths[2 * k + 1];
        int64_t left = size;
        f->width[d][0] = before;
        f->width[d][1] = after;
        bool fits = before >= -size && after >= -size;
        if (fits) left += (before < 0 ? before : 0) + (after < 0 ? after : 0);
        if (!fits || left < 0) {
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                           "widths %lld and %lld cut more than dim %lld of %s holds",
                           (long long)before, (long long)after, (long long)lm_pos(S, d),
                           lm_layout_text(&t, &x->layout));
        }
        if (!lm_add_fits(left, before > 0 ? before : 0, &f->all.shape[d]) ||
            !lm_add_fits(f->all.shape[d], after > 0 ? after : 0, &f->all.shape[d])) {
            return lm_fail(S, LUMA_ERR_MEMORY, 2, "the result is too large");
        }
    }
    return LUMA_OK;
}

luma_status luma_pad(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                     const int64_t *widths, luma_scalar value) {
    lm_result r;
    frame f;
    LM_TRY(frame_of(S, &f, x, n, widths));
    LM_TRY(lm_number_check(S, 3, value, x->dtype));
    LM_TRY(
        lm_result_open(S, &r, out, lm_device_of(x), x->dtype, f.all.ndim, f.all.shape, &x, 1, 0));
    return lm_result_close(S, &r, pad_fill(S, &r.work, x, f.width, value));
}

/* ---- pad with elements of x ------------------------------------------------------------------*/

/* Writes the `n` places of dst along d from `at` on, of which `size` in the middle, from `lead` on,
** are written. */
static luma_status border_side(luma_state *S, const luma_tensor *work, int d, int64_t lead,
                               int64_t size, int64_t at, int64_t n, luma_border border) {
    if (n == 0) return LUMA_OK;
    bool after = at > lead;
    int64_t last = lead + size - 1;
    luma_tensor dst = part(work, d, at, n), src = *work;
    if (border == LUMA_BORDER_CIRCULAR) {
        src = part(work, d, after ? lead : last - n + 1, n);
    } else if (border == LUMA_BORDER_REFLECT) {
        src.layout = lm_layout_slice(&work->layout, d, after ? last - 1 : lead + n, n, -1);
    } else {
        src = part(work, d, after ? last : lead, 1);
        src.layout.shape[d] = n;
        src.layout.stride[d] = 0;
    }
    return lm_copy(S, &dst, &src);
}

/* x to the middle; then dim after dim, the last first, each side as wide as what is written. */
static luma_status border_fill(luma_state *S, const luma_tensor *work, const luma_tensor *x,
                               const frame *f, luma_border border) {
    luma_tensor from = *x;
    luma_tensor middle = *work;
    for (int d = 0; d < x->layout.ndim; d++) {
        int64_t lead = lm_max(f->width[d][0], 0), trail = lm_max(f->width[d][1], 0);
        int64_t size = work->layout.shape[d] - lead - trail;
        from = part(&from, d, lm_max(-f->width[d][0], 0), size);
        middle = part(&middle, d, lead, size);
    }
    LM_TRY(lm_copy(S, &middle, &from));
    for (int d = x->layout.ndim - 1; d >= 0; d--) {
        int64_t lead = lm_max(f->width[d][0], 0), trail = lm_max(f->width[d][1], 0);
        int64_t size = middle.layout.shape[d];
        middle.layout.shape[d] = work->layout.shape[d];
        middle.layout.offset -= lead * middle.layout.stride[d];
        LM_TRY(border_side(S, &middle, d, lead, size, 0, lead, border));
        LM_TRY(border_side(S, &middle, d, lead, size, lead + size, trail, border));
    }
    return LUMA_OK;
}

/* A dim of `size` elements, of which `left` stay, has what the border takes. */
static luma_status border_check(luma_state *S, const luma_tensor *x, int d, const int64_t *width,
                                luma_border border) {
    int64_t size = x->layout.shape[d], wide = lm_max(width[0], width[1]);
    int64_t left = size + lm_min(width[0], 0) + lm_min(width[1], 0);
    lm_text t;
    if (wide <= 0) return LUMA_OK;
    if (border == LUMA_BORDER_REFLECT && wide >= size)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "width %lld reflects more than dim %lld of %s holds: at most %lld",
                       (long long)wide, (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout),
                       (long long)(size > 0 ? size - 1 : 0));
    if (border == LUMA_BORDER_CIRCULAR && wide > left)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "width %lld goes round dim %lld of %s more than once: at most %lld",
                       (long long)wide, (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout),
                       (long long)left);
    if (left == 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "dim %lld of %s has no element to repeat",
                       (long long)lm_pos(S, d), lm_layout_text(&t, &x->layout));
    return LUMA_OK;
}

/* Reflections see the elements that negative widths cut, so that these are cut last. */
static luma_status reflect_and_cut(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                   const int64_t *widths) {
    int64_t grow[2 * LUMA_MAX_DIMS], cut[2 * LUMA_MAX_DIMS];
    luma_tensor whole = LUMA_NEW;
    for (int k = 0; k < n; k++) {
        grow[k] = lm_max(widths[k], 0);
        cut[k] = lm_min(widths[k], 0);
    }
    LM_TRY(luma_pad_border(S, &whole, x, n, grow, LUMA_BORDER_REFLECT));
    luma_status status = luma_pad(S, out, &whole, n, cut, luma_integer(0).number);
    luma_release(S, &whole);
    return status;
}

luma_status luma_pad_border(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                            const int64_t *widths, luma_border border) {
    lm_result r;
    frame f;
    bool cuts = false;
    LM_TRY(frame_of(S, &f, x, n, widths));
    if (border != LUMA_BORDER_REFLECT && border != LUMA_BORDER_REPLICATE &&
        border != LUMA_BORDER_CIRCULAR)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "no border has the number %d", (int)border);
    for (int d = 0; d < x->layout.ndim; d++)
        LM_TRY(border_check(S, x, d, f.width[d], border));
    for (int k = 0; k < n; k++)
        cuts = cuts || widths[k] < 0;
    if (cuts && border == LUMA_BORDER_REFLECT) return reflect_and_cut(S, out, x, n, widths);
    LM_TRY(
        lm_result_open(S, &r, out, lm_device_of(x), x->dtype, f.all.ndim, f.all.shape, &x, 1, 0));
    luma_status status = luma_numel(&r.work) ? border_fill(S, &r.work, x, &f, border) : LUMA_OK;
    return lm_result_close(S, &r, status);
}

luma_status lm_pad_arg(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                       const int64_t *widths, int mode, const lm_arg *value) {
    luma_scalar fill = value->given ? value->number : luma_integer(0).number;
    if (mode > 0 && value->given)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "a value is for mode 'constant'");
    if (mode > 0) return luma_pad_border(S, out, x, n, widths, (luma_border)(mode - 1));
    luma_status status = luma_pad(S, out, x, n, widths, fill);
    if (status != LUMA_OK && S->argument == 3) S->argument = 4;
    return status;
}

/* ---- writes into a copy, or in place ---------------------------------------------------------*/

luma_status luma_slice_set(luma_state *S, luma_tensor *out, const luma_tensor *x,
                           const luma_tensor *src, int64_t dim, int64_t start) {
    lm_result r;
    lm_text a, b;
    int d = 0, ndim = x->layout.ndim;
    LM_TRY(lm_dim(S, 3, dim, ndim, &d));
    if (ndim == 0 || src->layout.ndim != ndim) {
        return lm_fail(S, LUMA_ERR_SHAPE, 2,
                       "%s into %s: the same number of dims, at least one, "
                       "expected",
                       lm_layout_text(&a, &src->layout), lm_layout_text(&b, &x->layout));
    }
    int64_t size = x->layout.shape[d], length = src->layout.shape[d];
    int64_t from = start < 0 && start >= -size ? start + size : start;
    if (from < 0 || from > size || length > size - from) {
        return lm_fail(
            S, LUMA_ERR_INDEX, 4, "%s from position %lld of dim %lld on reaches outside %s",
            lm_layout_text(&a, &src->layout), (long long)(start < 0 ? start : lm_pos(S, start)),
            (long long)lm_pos(S, d), lm_layout_text(&b, &x->layout));
    }
    luma_layout target = lm_layout_slice(&x->layout, d, from, length, 1);
    for (int k = 0; k < ndim; k++) {
        if (src->layout.shape[k] == target.shape[k] || src->layout.shape[k] == 1) continue;
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s does not broadcast to %s",
                       lm_layout_text(&a, &src->layout), lm_layout_text(&b, &target));
    }
    const luma_tensor *inputs[] = {x, src};
    lm_device *device;
    LM_TRY(lm_same_device(S, inputs, 2, &device));
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, ndim, x->layout.shape, inputs, 2,
                          LM_RESULT_ALIGNED));
    luma_tensor dst = part(&r.work, d, from, length);
    luma_status status = lm_copy(S, &r.work, x);
    if (status == LUMA_OK) status = lm_copy(S, &dst, src);
    return lm_result_close(S, &r, status);
}

luma_status luma_masked_fill(luma_state *S, luma_tensor *out, const luma_tensor *x,
                             const luma_tensor *mask, const luma_tensor *value) {
    int64_t shape[LUMA_MAX_DIMS];
    int ndim;
    luma_tensor fill = *value;
    if (mask->dtype != LUMA_BOOL) {
        return lm_fail(S, LUMA_ERR_DTYPE, 2, "%s: a bool mask expected",
                       lm_dtypes[mask->dtype].name);
    }
    if (lm_is_number(value)) {
        LM_TRY(lm_number_check(S, 3, value->number, x->dtype));
        /* As an element of x, so that x's dtype is the result's. */
        int kind = lm_dtypes[x->dtype].kind;
        bool real = value->number.kind == LUMA_IS_FLOAT;
        double d = real ? value->number.u.d : (double)value->number.u.i;
        if (kind == LM_KIND_BOOL) fill = luma_boolean(d != 0);
        if (kind == LM_KIND_INT && real) fill = luma_integer((int64_t)d);
    }
    const luma_tensor *inputs[] = {mask, &fill, x};
    lm_device *device;
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){x, mask, value}, 3, &device));
    LM_TRY(lm_shape_broadcast(S, x->layout.ndim, x->layout.shape, mask->layout.ndim,
                              mask->layout.shape, &ndim, shape));
    if (!lm_is_number(value)) {
        LM_TRY(lm_shape_broadcast(S, ndim, shape, value->layout.ndim, value->layout.shape, &ndim,
                                  shape));
    }
    luma_layout all = lm_layout_contiguous(ndim, shape);
    if (!lm_layout_same_shape(&all, &x->layout)) {
        lm_text a, b;
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "mask or value of %s does not broadcast to %s",
                       lm_layout_text(&a, &all), lm_layout_text(&b, &x->layout));
    }
    bool cast = value->storage && value->dtype != x->dtype;
    if (cast) {
        fill = LUMA_NEW;
        LM_TRY(lm_cast(S, &fill, value, x->dtype));
    }
    luma_status status = lm_map_call(S, LM_OP_where, out, 3, inputs, NULL);
    if (cast) luma_release(S, &fill);
    return status;
}
