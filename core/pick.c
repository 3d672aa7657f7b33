/* pick.c -- indexing with masks and index tensors: brought to one index along one dim, which
** index_select and index_copy know. Layer: core. */
#include "pick.h"

#include <string.h>

/* Masks are turned into the positions where they hold. */
typedef struct {
    int n; /* index tensors */
    int dims[LUMA_MAX_DIMS];
    luma_tensor index[LUMA_MAX_DIMS];
    int nshape; /* the shape in which they meet */
    int64_t shape[LUMA_MAX_DIMS];
    luma_tensor flat;   /* their combination, one dim */
    int at;             /* the dim of `merged` that it picks along */
    luma_layout order;  /* x with the picked dims side by side from `at` on */
    luma_layout merged; /* the shape of x with the picked dims made one; strides not set */
    int nresult;
    int64_t result[LUMA_MAX_DIMS];
} plan;

static void plan_close(luma_state *S, plan *p) {
    for (int i = 0; i < p->n; i++)
        luma_release(S, &p->index[i]);
    luma_release(S, &p->flat);
}

static luma_status add_mask(luma_state *S, plan *p, const luma_tensor *x, const lm_pick *pick) {
    const luma_tensor *mask = pick->tensor;
    int k = mask->layout.ndim;
    lm_text a, b;
    bool fits =
        pick->dim + k <= x->layout.ndim && memcmp(mask->layout.shape, x->layout.shape + pick->dim,
                                                  (size_t)k * sizeof *mask->layout.shape) == 0;
    if (!fits)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "a mask of %s does not fit dim %lld of %s",
                       lm_shape_text(&a, k, mask->layout.shape), (long long)lm_pos(S, pick->dim),
                       lm_shape_text(&b, x->layout.ndim, x->layout.shape));
    luma_tensor positions = LUMA_NEW;
    LM_TRY(luma_nonzero(S, &positions, mask));
    luma_status status = LUMA_OK;
    for (int j = 0; j < k && status == LUMA_OK; j++) {
        p->dims[p->n] = pick->dim + j;
        status = luma_select(S, &p->index[p->n], &positions, 1, j);
        if (status == LUMA_OK) p->n++;
    }
    luma_release(S, &positions);
    return status;
}

static luma_status add_index(luma_state *S, plan *p, const lm_pick *pick) {
    if (!lm_dtype_is_int(pick->tensor->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 0, "the index is %s: integers or a bool mask expected",
                       luma_dtype_name(pick->tensor->dtype));
    p->dims[p->n] = pick->dim;
    luma_share(&p->index[p->n++], pick->tensor);
    return LUMA_OK;
}

static luma_status broadcast_all(luma_state *S, plan *p) {
    p->nshape = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t shape[LUMA_MAX_DIMS];
        int n;
        const luma_layout *x = &p->index[i].layout;
        LM_TRY(lm_shape_broadcast(S, p->nshape, p->shape, x->ndim, x->shape, &n, shape));
        p->nshape = n;
        memcpy(p->shape, shape, (size_t)n * sizeof *shape);
    }
    return LUMA_OK;
}

/* Orders the dims of x, and says what merged and result look like. */
static luma_status order_dims(luma_state *S, plan *p, const luma_tensor *x) {
    const luma_layout *l = &x->layout;
    int order[LUMA_MAX_DIMS], n = 0;
    bool neighbours = p->dims[p->n - 1] - p->dims[0] == p->n - 1;
    p->at = neighbours ? p->dims[0] : 0;
    uint32_t picked = 0;
    for (int i = 0; i < p->n; i++)
        picked |= 1u << p->dims[i];
    for (int d = 0; d <= l->ndim; d++) {
        for (int i = 0; n == p->at && i < p->n; i++)
            order[n + i] = p->dims[i];
        if (n == p->at) n += p->n;
        if (d < l->ndim && !(picked >> d & 1)) order[n++] = d;
    }
    p->order = lm_layout_permute(l, order);
    p->nresult = l->ndim - p->n + p->nshape;
    if (p->nresult > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "the result has %d dims: at most %d", p->nresult,
                       LUMA_MAX_DIMS);
    p->merged.ndim = l->ndim - p->n + 1;
    int64_t size = 1;
    for (int i = 0; i < p->n; i++)
        size *= p->order.shape[p->at + i];
    for (int d = 0, r = 0; d < p->merged.ndim; d++) {
        int from = d < p->at ? d : d + p->n - 1;
        p->merged.shape[d] = d == p->at ? size : p->order.shape[from];
        if (d == p->at) {
            memcpy(p->result + r, p->shape, (size_t)p->nshape * sizeof *p->shape);
            r += p->nshape;
        } else {
            p->result[r++] = p->merged.shape[d];
        }
    }
    return LUMA_OK;
}

/* ---- the combined index ---- */

static luma_status check_range(luma_state *S, const luma_tensor *index, int dim, int64_t size) {
    luma_tensor end = LUMA_NEW;
    luma_scalar v[2] = {{0}};
    if (luma_numel(index) == 0) return LUMA_OK;
    for (int i = 0; i < 2; i++) {
        LM_TRY((i ? luma_amax : luma_amin)(S, &end, index, 0, NULL, false));
        luma_status status = lm_item(S, &end, &v[i]);
        luma_release(S, &end);
        LM_TRY(status);
    }
    int64_t base = S->index_base;
    bool low = v[0].u.i < base;
    if (!low && v[1].u.i < base + size) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_INDEX, 0,
                   "index %lld is out of range: dim %lld has positions %lld to %lld",
                   (long long)v[low ? 0 : 1].u.i, (long long)lm_pos(S, dim), (long long)base,
                   (long long)(base + size - 1));
}

/* *acc = *acc * size + index - base, all int64. */
static luma_status add_digit(luma_state *S, luma_tensor *acc, const luma_tensor *index,
                             int64_t size) {
    luma_tensor wide = LUMA_NEW, digit = LUMA_NEW, sum = LUMA_NEW;
    luma_tensor base = luma_integer(S->index_base), scale = luma_integer(size);
    luma_status status = lm_cast(S, &wide, index, LUMA_INT64);
    if (status == LUMA_OK) status = luma_sub(S, &digit, &wide, &base);
    luma_release(S, &wide);
    if (status == LUMA_OK && acc->storage) {
        status = luma_mul(S, &wide, acc, &scale);
        if (status == LUMA_OK) status = luma_add(S, &sum, &wide, &digit);
        luma_release(S, &wide);
        luma_release(S, &digit);
    } else if (status == LUMA_OK) {
        sum = digit;
    }
    if (status != LUMA_OK) {
        luma_release(S, &digit);
        return status;
    }
    luma_release(S, acc);
    *acc = sum;
    return LUMA_OK;
}

static luma_status combine(luma_state *S, plan *p, luma_tensor *acc) {
    luma_tensor base = luma_integer(S->index_base);
    for (int i = 0; i < p->n; i++) {
        int64_t size = p->order.shape[p->at + i];
        LM_TRY(check_range(S, &p->index[i], p->dims[i], size));
        LM_TRY(add_digit(S, acc, &p->index[i], size));
    }
    luma_tensor sum = LUMA_NEW;
    LM_TRY(luma_add(S, &sum, acc, &base));
    luma_release(S, acc);
    *acc = sum;
    return LUMA_OK;
}

static luma_status flatten(luma_state *S, plan *p) {
    int64_t n = 1;
    for (int d = 0; d < p->nshape; d++)
        n *= p->shape[d];
    if (p->n == 1) return luma_reshape(S, &p->flat, &p->index[0], 1, &n);
    luma_tensor acc = LUMA_NEW;
    luma_status status = combine(S, p, &acc);
    if (status == LUMA_OK) status = luma_reshape(S, &p->flat, &acc, 1, &n);
    luma_release(S, &acc);
    return status;
}

static luma_status plan_open(luma_state *S, plan *p, const luma_tensor *x, int npicks,
                             const lm_pick *picks) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < npicks; i++)
        LM_TRY(picks[i].tensor->dtype == LUMA_BOOL ? add_mask(S, p, x, &picks[i])
                                                   : add_index(S, p, &picks[i]));
    LM_TRY(broadcast_all(S, p));
    LM_TRY(order_dims(S, p, x));
    return flatten(S, p);
}

/* ---- reading ---- */

static luma_status get(luma_state *S, luma_tensor *out, const luma_tensor *x, const plan *p) {
    luma_tensor ordered = LUMA_NEW, merged = LUMA_NEW, picked = LUMA_NEW;
    LM_TRY(lm_tensor_view(S, &ordered, x, &p->order));
    luma_status status = luma_reshape(S, &merged, &ordered, p->merged.ndim, p->merged.shape);
    if (status == LUMA_OK) status = luma_index_select(S, &picked, &merged, p->at, &p->flat);
    if (status == LUMA_OK) status = luma_view(S, out, &picked, p->nresult, p->result);
    luma_release(S, &ordered);
    luma_release(S, &merged);
    luma_release(S, &picked);
    return status;
}

luma_status lm_pick_get(luma_state *S, luma_tensor *out, const luma_tensor *x, int npicks,
                        const lm_pick *picks) {
    plan p;
    luma_status status = plan_open(S, &p, x, npicks, picks);
    if (status == LUMA_OK) status = get(S, out, x, &p);
    plan_close(S, &p);
    return status;
}

/* ---- writing ---- */

/* value in the dtype of x, in the shape of what is picked from p->merged. */
static luma_status prepare(luma_state *S, luma_tensor *src, const luma_tensor *x,
                           const luma_tensor *value, const plan *p) {
    luma_tensor cast = LUMA_NEW, wide = LUMA_NEW;
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, p->merged.shape, sizeof shape);
    shape[p->at] = luma_numel(&p->flat);
    luma_status status = value->storage ? lm_cast(S, &cast, value, x->dtype)
                                        : luma_full(S, &cast, 0, NULL, value->number, x->dtype,
                                                    lm_device_of(x)->name);
    if (status == LUMA_OK) status = luma_expand(S, &wide, &cast, p->nresult, p->result);
    if (status == LUMA_OK) status = luma_reshape(S, src, &wide, p->merged.ndim, shape);
    luma_release(S, &cast);
    luma_release(S, &wide);
    return status;
}

/* Where strides do not let the picked dims be one, a copy is changed and written back. */
static luma_status put_through_copy(luma_state *S, luma_tensor *ordered, const plan *p,
                                    const luma_tensor *src) {
    luma_tensor copy = LUMA_NEW, merged = LUMA_NEW;
    LM_TRY(luma_force_contiguous(S, &copy, ordered));
    luma_status status = luma_view(S, &merged, &copy, p->merged.ndim, p->merged.shape);
    if (status == LUMA_OK) status = luma_index_copy(S, &merged, &merged, p->at, &p->flat, src);
    if (status == LUMA_OK) status = lm_copy(S, ordered, &copy);
    luma_release(S, &merged);
    luma_release(S, &copy);
    return status;
}

static luma_status put(luma_state *S, luma_tensor *x, const luma_tensor *value, const plan *p) {
    luma_tensor src = LUMA_NEW, target = LUMA_NEW;
    bool ok;
    luma_layout layout = lm_layout_view(&p->order, p->merged.ndim, p->merged.shape, &ok);
    luma_status status = prepare(S, &src, x, value, p);
    if (status == LUMA_OK) status = lm_tensor_view(S, &target, x, ok ? &layout : &p->order);
    if (status == LUMA_OK)
        status = ok ? luma_index_copy(S, &target, &target, p->at, &p->flat, &src)
                    : put_through_copy(S, &target, p, &src);
    luma_release(S, &src);
    luma_release(S, &target);
    return status;
}

luma_status lm_pick_put(luma_state *S, luma_tensor *x, int npicks, const lm_pick *picks,
                        const luma_tensor *value) {
    plan p;
    luma_status status = plan_open(S, &p, x, npicks, picks);
    if (status == LUMA_OK) status = put(S, x, value, &p);
    plan_close(S, &p);
    return status;
}
