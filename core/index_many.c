/* index_many.c -- several dims indexed at once, and masks that are written through. Layer: core. */
#include <string.h>

#include "index.h"
#include "index_walk.h"

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
        LM_TRY(lm_index_tensor_check(S, 0, index[d], x));
        LM_TRY(lm_shape_broadcast(S, ix->ndim, ix->shape, index[d]->layout.ndim,
                                  index[d]->layout.shape, &ix->ndim, ix->shape));
        LM_TRY(lm_index_adopt(S, &ix->own[d], index[d], lm_device_of(x), index[d]->dtype));
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
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "%d indices for %s", n,
                       lm_layout_text(&text, &x->layout));
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
    lm_index_walk_open(S, w, LM_NOPS, kind, layout.ndim, layout.shape);
    w->indexed = *x;
    w->indexed.layout = layout;
    for (int d = 0; d < ix->n; d++) {
        if (ix->own[d].storage)
            lm_index_walk_part(w, 0, &ix->own[d], ix->at, ix->ndim, x->layout.shape[d],
                               x->layout.stride[d]);
    }
}

luma_status luma_index_get(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                           const luma_tensor *const *index) {
    indices ix;
    lm_index w;
    LM_TRY(indices_open(S, &ix, x, n, index));
    walk_indices(S, &w, LM_INDEX_READ, x, &ix);
    luma_status status = lm_index_read_into(S, out, x, &w, w.ndim);
    indices_close(S, &ix);
    return status;
}

/* values as a tensor over the walked shape. */
static luma_status spread(luma_state *S, luma_tensor *plain, const luma_tensor *values,
                          const lm_index *w) {
    luma_layout v = values->layout;
    while (v.ndim > w->ndim && v.shape[0] == 1)
        v = lm_layout_remove(&v, 0);
    if (!lm_shape_fits(v.ndim, v.shape, w->ndim, w->shape)) {
        lm_text a, b;
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "%s does not broadcast to %s",
                       lm_layout_text(&a, &values->layout), lm_shape_text(&b, w->ndim, w->shape));
    }
    *plain = *values;
    plain->layout = lm_layout_expand(&v, w->ndim, w->shape);
    return LUMA_OK;
}

/* Writes values into x, or adds them, where several of them meet in float32 if need be. fresh: x is of
** no use after a failure. */
static luma_status put(luma_state *S, luma_tensor *x, indices *ix, const luma_tensor *values,
                       lm_index_kind kind, bool fresh) {
    lm_index w;
    luma_tensor own, sum;
    const luma_dtype dtype = kind == LM_INDEX_ADD ? lm_index_sum_dtype(x) : x->dtype;
    for (int d = 0; d < ix->n; d++) {
        if (ix->own[d].storage) LM_TRY(lm_index_keep_apart(S, &ix->own[d], x));
    }
    LM_TRY(lm_index_source(S, &own, 0, values, x, dtype));
    luma_status status = lm_index_keep_apart(S, &own, x);
    if (status == LUMA_OK) status = lm_index_adopt(S, &sum, x, lm_device_of(x), dtype);
    if (status == LUMA_OK) {
        walk_indices(S, &w, kind, &sum, ix);
        w.fresh = fresh;
        status = spread(S, &w.plain, &own, &w);
        if (status == LUMA_OK) status = lm_index_walk_run(S, &w);
        if (status == LUMA_OK && dtype != x->dtype) status = lm_copy(S, x, &sum);
        luma_release(S, &sum);
    }
    luma_release(S, &own);
    return status;
}

luma_status luma_index_put(luma_state *S, luma_tensor *x, int n, const luma_tensor *const *index,
                           const luma_tensor *values) {
    indices ix;
    LM_TRY(lm_tensor_check(S, 0, x, true));
    LM_TRY(indices_open(S, &ix, x, n, index));
    luma_status status = put(S, x, &ix, values, LM_INDEX_WRITE, false);
    x->storage->version++;
    if (status != LUMA_OK) S->argument = 0;
    indices_close(S, &ix);
    return status;
}

/* ---- index tensors and masks as a list -------------------------------------------------------*/

/* One index for each dim, those of masks made of the positions that hold. */
typedef struct {
    luma_tensor own[LUMA_MAX_DIMS];
    const luma_tensor *index[LUMA_MAX_DIMS];
    int n;
} columns;

static void columns_close(luma_state *S, columns *c) {
    for (int i = 0; i < c->n; i++)
        luma_release(S, &c->own[i]);
}

static luma_status too_many(luma_state *S, int entry, const luma_tensor *x) {
    lm_text text;
    return lm_fail(S, LUMA_ERR_SHAPE, 2, "index %lld is one too many for %s",
                   (long long)lm_pos(S, entry), lm_layout_text(&text, &x->layout));
}

static luma_status add_mask(luma_state *S, columns *c, int entry, const luma_tensor *mask,
                            const luma_tensor *x) {
    lm_text a, b;
    luma_tensor own, flat, positions = LUMA_NEW;
    const int k = mask->layout.ndim, first = c->n;
    LM_TRY(lm_index_place_check(S, 2, mask, x));
    if (first + k > x->layout.ndim) return too_many(S, entry, x);
    if (k == 0 ||
        memcmp(mask->layout.shape, x->layout.shape + first, (size_t)k * sizeof(int64_t)) != 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the mask is %s for %s from dim %lld on",
                       lm_layout_text(&a, &mask->layout), lm_layout_text(&b, &x->layout),
                       (long long)lm_pos(S, first));
    LM_TRY(lm_index_adopt(S, &own, mask, lm_device_of(x), LUMA_BOOL));
    luma_status status = lm_index_mask(S, &flat, &own);
    luma_release(S, &own);
    LM_TRY(status);
    status = lm_index_positions(S, &positions, &flat);
    luma_release(S, &flat);
    for (int i = 0; i < k && status == LUMA_OK; i++) {
        luma_share(&c->own[c->n], &positions);
        c->own[c->n].layout = lm_layout_select(&positions.layout, 1, i);
        c->index[c->n] = &c->own[c->n];
        c->n++;
    }
    luma_release(S, &positions);
    return status;
}

static luma_status columns_open(luma_state *S, columns *c, const luma_tensor *x, int n,
                                const luma_tensor *xs) {
    luma_status status = LUMA_OK;
    c->n = 0;
    if (n < 1) return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "no index");
    for (int i = 0; i < n && status == LUMA_OK; i++) {
        const luma_tensor *index = &xs[i];
        if (index->storage && index->dtype == LUMA_BOOL) {
            status = add_mask(S, c, i, index, x);
        } else if (c->n == x->layout.ndim) {
            status = too_many(S, i, x);
        } else {
            status = lm_index_tensor_check(S, 2, index, x);
            if (status != LUMA_OK) break;
            luma_share(&c->own[c->n], index);
            c->index[c->n] = &c->own[c->n];
            c->n++;
        }
    }
    if (status != LUMA_OK) columns_close(S, c);
    return status;
}

typedef struct {
    const columns *c;
    const luma_tensor *values;
    lm_index_kind kind;
    const luma_tensor *out;
} deed;

static luma_status put_into(luma_state *S, luma_tensor *x, void *context) {
    const deed *d = context;
    indices ix;
    luma_status status = indices_open(S, &ix, x, d->c->n, d->c->index);
    if (status != LUMA_OK) {
        S->argument = 2;
        return status;
    }
    status = put(S, x, &ix, d->values, d->kind, x != d->out);
    if (status != LUMA_OK && status != LUMA_ERR_MEMORY)
        S->argument = status == LUMA_ERR_INDEX ? 2 : 3;
    indices_close(S, &ix);
    return status;
}

luma_status luma_index_put_list(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                const luma_tensor *index, const luma_tensor *values,
                                bool accumulate) {
    columns c;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    if (accumulate) LM_TRY(lm_tensor_not_bool(S, 1, x, "sums"));
    LM_TRY(lm_index_place_check(S, 3, values, x));
    LM_TRY(lm_index_kind_check(S, 3, values, x));
    LM_TRY(columns_open(S, &c, x, n, index));
    deed d = {&c, values, accumulate ? LM_INDEX_ADD : LM_INDEX_WRITE, out};
    luma_status status = lm_index_write_copy(S, out, x, put_into, &d);
    columns_close(S, &c);
    return status;
}

/* ---- masks that are written through ----------------------------------------------------------*/

typedef struct {
    luma_tensor positions, values; /* as many of each */
} scattered;

static luma_status scatter_into(luma_state *S, luma_tensor *x, void *context) {
    scattered *s = context;
    lm_index w;
    lm_index_walk_flat(S, &w, LM_OP_masked_scatter, LM_INDEX_WRITE, x, 2, &s->positions);
    w.plain = s->values;
    return lm_index_walk_run(S, &w);
}

/* The first n elements of source, in the dtype of x and apart from out. */
static luma_status first_elements(luma_state *S, luma_tensor *values, const luma_tensor *source,
                                  int64_t n, const luma_tensor *x, const luma_tensor *out) {
    luma_tensor flat = LUMA_NEW, few;
    lm_text text;
    if (luma_numel(source) < n)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%s for the %lld places where the mask holds",
                       lm_layout_text(&text, &source->layout), (long long)n);
    LM_TRY(luma_reshape(S, &flat, source, 1, (const int64_t[]){-1}));
    few = flat;
    few.layout.shape[0] = n;
    luma_status status = lm_index_adopt(S, values, &few, lm_device_of(x), x->dtype);
    luma_release(S, &flat);
    if (status != LUMA_OK || !out->storage) return status;
    status = lm_index_keep_apart(S, values, out);
    if (status != LUMA_OK) luma_release(S, values);
    return status;
}

luma_status luma_masked_scatter(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                const luma_tensor *mask, const luma_tensor *source) {
    scattered s = {LUMA_NEW, LUMA_NEW};
    lm_text a, b;
    LM_TRY(lm_tensor_check(S, 1, x, false));
    LM_TRY(lm_index_mask_check(S, 2, mask, x));
    LM_TRY(lm_tensor_check(S, 3, source, false));
    LM_TRY(lm_index_place_check(S, 3, source, x));
    LM_TRY(lm_index_kind_check(S, 3, source, x));
    if (!lm_shape_fits(mask->layout.ndim, mask->layout.shape, x->layout.ndim, x->layout.shape))
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "the mask is %s: it does not broadcast to %s",
                       lm_layout_text(&a, &mask->layout), lm_layout_text(&b, &x->layout));
    LM_TRY(lm_index_flat_positions(S, &s.positions, mask, lm_device_of(x), x->layout.ndim,
                                   x->layout.shape));
    luma_status status = first_elements(S, &s.values, source, s.positions.layout.shape[0], x, out);
    if (status == LUMA_OK) {
        status = lm_index_write_copy(S, out, x, scatter_into, &s);
        luma_release(S, &s.values);
    }
    luma_release(S, &s.positions);
    return status;
}
