/* attention.c -- scaled_dot_product_attention: shapes and errors; the device's attention slot, or
** products and softmax over some queries at a time. Layer: core. */
#include <math.h>
#include <string.h>

#include "compose.h"

#define CHUNK (INT64_C(1) << 24) /* scores that a composition holds at a time */

enum { Q, K, V, MASK, OPERANDS };
static const char *const names[] = {"query", "key", "value", "attn_mask"};

/* Operands with their batch dims side by side, and the result before heads are split. */
typedef struct {
    luma_tensor x[OPERANDS]; /* no references of their own */
    luma_dtype dtype;
    int64_t l, s, e, ev;
    int64_t groups; /* query heads to a head of keys; 1: they are not split */
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
} plan;

/* ---- arguments ---- */

static int64_t size_of(const luma_tensor *x, int from_end) {
    return x->layout.shape[x->layout.ndim - from_end];
}

static luma_status check_operand(luma_state *S, int i, const luma_tensor *x, const luma_tensor *q) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, i + 1, x, false));
    LM_TRY(lm_tensor_beside(S, i + 1, x, q, "query"));
    if (x->layout.ndim < 2 && i != MASK)
        return lm_fail(S, LUMA_ERR_SHAPE, i + 1, "%s: at least 2 dims expected",
                       lm_layout_text(&text, &x->layout));
    if (!lm_dtype_is_float(x->dtype) && !(i == MASK && x->dtype == LUMA_BOOL))
        return lm_fail(S, LUMA_ERR_DTYPE, i + 1, "%s: %s expected", lm_dtypes[x->dtype].name,
                       i == MASK ? "bool or a float dtype" : "a float dtype");
    return LUMA_OK;
}

/* Names both shapes. */
static luma_status mismatch(luma_state *S, int i, const luma_tensor *x, int k, const luma_tensor *y,
                            const char *what) {
    lm_text tx, ty;
    return lm_fail(S, LUMA_ERR_SHAPE, i + 1, "%s is %s, %s %s: %s", names[i],
                   lm_layout_text(&tx, &x->layout), names[k], lm_layout_text(&ty, &y->layout),
                   what);
}

/* Heads (dim -3) of queries are split by those of keys and values, which repeat along the new dim. */
static luma_status split_heads(luma_state *S, plan *p) {
    luma_tensor *q = &p->x[Q], *k = &p->x[K], *v = &p->x[V];
    lm_text text;
    for (int i = Q; i <= V; i++) {
        if (p->x[i].layout.ndim < 3 || p->x[i].layout.ndim == LUMA_MAX_DIMS)
            return lm_fail(S, LUMA_ERR_SHAPE, i + 1, "%s: with enable_gqa 3 to %d dims expected",
                           lm_layout_text(&text, &p->x[i].layout), LUMA_MAX_DIMS - 1);
    }
    int64_t heads = size_of(q, 3), shared = size_of(k, 3);
    if (size_of(v, 3) != shared) return mismatch(S, V, v, K, k, "their heads differ in number");
    if (shared == 0 ? heads > 0 : heads % shared != 0)
        return mismatch(S, K, k, Q, q, "its heads do not divide those of query");
    p->groups = shared > 0 ? heads / shared : 1;
    return LUMA_OK;
}

/* Dim -3 of x as (heads / groups, groups), or repeated groups times: one dim more. */
static void split_dim(luma_layout *x, int64_t groups, bool repeated) {
    int d = x->ndim - 3;
    int64_t size = x->shape[d], stride = x->stride[d];
    if (repeated || size == 1) {
        *x = lm_layout_insert(x, d + 1, repeated ? groups : 1, 0);
        return;
    }
    *x = lm_layout_insert(x, d + 1, groups, stride);
    x->shape[d] = size / groups;
    x->stride[d] = stride * groups;
}

static luma_status broadcast(luma_state *S, plan *p, const luma_tensor *mask) {
    luma_tensor *x = p->x;
    int64_t *shape = p->shape;
    int n = x[Q].layout.ndim - 2;
    memcpy(shape, x[Q].layout.shape, (size_t)n * sizeof *shape);
    for (int i = K; i <= V; i++) {
        int64_t met[LUMA_MAX_DIMS];
        int m;
        if (lm_shape_broadcast(S, n, shape, x[i].layout.ndim - 2, x[i].layout.shape, &m, met) !=
            LUMA_OK)
            return mismatch(S, i, &x[i], Q, &x[Q],
                            "the batch dims do not broadcast (heads: enable_gqa)");
        n = m;
        memcpy(shape, met, (size_t)n * sizeof *shape);
    }
    p->ndim = n + 2;
    const int64_t last[OPERANDS][2] = {{p->l, p->e}, {p->s, p->e}, {p->s, p->ev}, {p->l, p->s}};
    for (int i = Q; i < (mask ? OPERANDS : MASK); i++) {
        memcpy(shape + n, last[i], sizeof last[i]);
        if (i == MASK && !lm_shape_fits(x[i].layout.ndim, x[i].layout.shape, p->ndim, shape)) {
            lm_text got, want;
            return lm_fail(S, LUMA_ERR_SHAPE, MASK + 1, "%s does not broadcast to the scores, %s",
                           lm_layout_text(&got, &x[i].layout),
                           lm_shape_text(&want, p->ndim, shape));
        }
        x[i].layout = lm_layout_expand(&x[i].layout, p->ndim, shape);
    }
    return LUMA_OK;
}

static luma_status make_plan(luma_state *S, plan *p, const luma_tensor *q, const luma_tensor *k,
                             const luma_tensor *v, const luma_tensor *mask, bool grouped) {
    const luma_tensor *x[OPERANDS] = {q, k, v, mask};
    for (int i = Q; i < (mask ? OPERANDS : MASK); i++) {
        LM_TRY(check_operand(S, i, x[i], q));
        p->x[i] = *x[i];
    }
    p->l = size_of(q, 2);
    p->e = size_of(q, 1);
    p->s = size_of(k, 2);
    p->ev = size_of(v, 1);
    p->groups = 1;
    if (size_of(k, 1) != p->e) return mismatch(S, K, k, Q, q, "their last sizes differ");
    if (size_of(v, 2) != p->s) return mismatch(S, V, v, K, k, "they are not as many");
    p->dtype = lm_dtype_promote(lm_dtype_promote(q->dtype, k->dtype), v->dtype);
    if (grouped) {
        LM_TRY(split_heads(S, p));
        luma_layout *m = &p->x[MASK].layout;
        split_dim(&p->x[Q].layout, p->groups, false);
        split_dim(&p->x[K].layout, p->groups, true);
        split_dim(&p->x[V].layout, p->groups, true);
        if (mask && m->ndim >= 3) {
            if (m->ndim == LUMA_MAX_DIMS ||
                (m->shape[m->ndim - 3] != 1 && m->shape[m->ndim - 3] != size_of(q, 3)))
                return mismatch(S, MASK, mask, Q, q, "their heads differ in number");
            split_dim(m, p->groups, false);
        }
    }
    return broadcast(S, p, mask);
}

/* The shape that the caller sees: heads as one dim. */
static int visible_shape(const plan *p, bool grouped, int64_t *shape) {
    int n = p->ndim;
    memcpy(shape, p->shape, sizeof p->shape);
    shape[n - 2] = p->l;
    shape[n - 1] = p->ev;
    if (!grouped) return n;
    shape[n - 4] *= shape[n - 3];
    shape[n - 3] = p->l;
    shape[n - 2] = p->ev;
    return n - 1;
}

/* ---- composition ---- */

/* Queries lo .. hi - 1 of a tensor whose dim -2 is theirs. */
static luma_tensor queries_of(const luma_tensor *x, int64_t lo, int64_t hi) {
    luma_tensor t = *x;
    if (x->storage) t.layout = lm_layout_slice(&x->layout, x->layout.ndim - 2, lo, hi - lo, 1);
    return t;
}

static void hide_later(lm_scope *s, luma_tensor *seen, const luma_tensor *scores, int64_t first) {
    luma_state *S = s->S;
    luma_tensor *ones = lm_temp(s);
    int n = scores->layout.ndim;
    LM_DO(s,
          lm_tensor_new(S, ones, lm_device_of(scores), LUMA_BOOL, 2, scores->layout.shape + n - 2));
    LM_DO(s, lm_fill(S, ones, luma_boolean(true).number));
    LM_DO(s, luma_tril(S, seen, ones, first));
}

/* Products, in the dtype of the operands but float32 at least. */
static luma_status compose_some(luma_state *S, const lm_attention *a, int64_t lo, int64_t hi) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor q = queries_of(&a->q, lo, hi), out = queries_of(&a->out, lo, hi), k = a->k;
    luma_tensor mask = queries_of(&a->mask, lo, hi), scale = luma_number(a->scale);
    luma_tensor least = luma_number(-HUGE_VAL);
    luma_dtype wide = lm_dtype_accumulator(a->q.dtype);
    luma_tensor *many = lm_temp_cast(&s, &q, wide), *scaled = lm_temp(&s), *scores = lm_temp(&s);
    luma_tensor *p = lm_temp(&s), *y = lm_temp(&s);
    int n = k.layout.ndim;
    k.layout = lm_layout_transpose(&k.layout, n - 2, n - 1);
    LM_DO(&s, luma_mul(S, scaled, many, &scale));
    LM_DO(&s, luma_matmul(S, scores, scaled, &k));
    if (mask.storage && mask.dtype == LUMA_BOOL && s.status == LUMA_OK)
        LM_DO(&s, luma_where(S, scores, &mask, scores, &least));
    else if (mask.storage && s.status == LUMA_OK)
        LM_DO(&s, luma_add(S, scores, scores, &mask));
    if (a->causal && s.status == LUMA_OK) {
        luma_tensor *seen = lm_temp(&s);
        hide_later(&s, seen, scores, lo);
        LM_DO(&s, luma_where(S, scores, seen, scores, &least));
    }
    LM_DO(&s, luma_softmax(S, p, scores, -1));
    luma_tensor *values = lm_temp_cast(&s, &a->v, wide);
    LM_DO(&s, luma_matmul(S, y, p, values));
    LM_DO(&s, lm_copy(S, &out, y));
    return lm_scope_close(&s);
}

static luma_status compose(luma_state *S, const lm_attention *a) {
    int n = a->q.layout.ndim;
    int64_t l = a->q.layout.shape[n - 2], step;
    double each = (double)a->k.layout.shape[n - 2]; /* scores of a query, which may be no int64 */
    for (int d = 0; d < n - 2; d++)
        each *= (double)a->q.layout.shape[d];
    step = lm_clamp((int64_t)((double)CHUNK / each), 1, l);
    for (int64_t lo = 0; lo < l; lo += step)
        LM_TRY(compose_some(S, a, lo, lm_min(lo + step, l)));
    return LUMA_OK;
}

/* ---- the call ---- */

/* x in dtype; what repeats is cast once. */
static luma_status cast_operand(lm_scope *s, luma_tensor *out, const luma_tensor *x,
                                luma_dtype dtype) {
    luma_tensor once = *x, *cast = lm_temp(s);
    for (int d = 0; d < x->layout.ndim; d++)
        if (x->layout.stride[d] == 0) once.layout.shape[d] = lm_min(x->layout.shape[d], 1);
    LM_TRY(lm_cast(s->S, cast, &once, dtype));
    *out = *cast;
    out->layout = lm_layout_expand(&cast->layout, x->layout.ndim, x->layout.shape);
    return LUMA_OK;
}

/* One query of each head: those that share keys are rows of one matrix. */
static void join_groups(lm_attention *a) {
    luma_tensor *x[] = {&a->q, &a->out, &a->mask};
    int n = a->q.layout.ndim;
    for (int i = 0; i < 3; i++)
        if (x[i]->storage) x[i]->layout = lm_layout_transpose(&x[i]->layout, n - 3, n - 2);
    a->k.layout.shape[n - 3] = a->v.layout.shape[n - 3] = 1;
}

static luma_status fill_result(lm_scope *s, luma_tensor *out, plan *p, lm_attention *a) {
    luma_state *S = s->S;
    lm_device *d = lm_device_of(out);
    luma_tensor *to[OPERANDS] = {&a->q, &a->k, &a->v, &a->mask};
    luma_dtype wide = lm_dtype_accumulator(p->dtype);
    if (luma_numel(out) == 0) return LUMA_OK;
    if (p->s == 0) return lm_fill(S, out, luma_number(0).number);
    for (int i = Q; i < OPERANDS; i++) {
        luma_tensor *x = &p->x[i];
        luma_dtype dtype = i == MASK ? wide : p->dtype;
        *to[i] = *x;
        if (!x->storage || x->dtype == dtype || x->dtype == LUMA_BOOL) continue;
        LM_TRY(cast_operand(s, to[i], x, dtype));
    }
    a->out = *out;
    if (a->out.layout.ndim < p->ndim) split_dim(&a->out.layout, p->groups, false);
    if (p->groups > 1 && p->l == 1 && !a->causal) join_groups(a);
    int64_t head = lm_max(p->e, p->ev), size = (int64_t)lm_dtype_size(wide);
    if (d->ops->attention && head <= d->ops->attention_head / size)
        return d->ops->attention(S, d, a);
    return compose(S, a);
}

luma_status luma_scaled_dot_product_attention(luma_state *S, luma_tensor *out,
                                              const luma_tensor *query, const luma_tensor *key,
                                              const luma_tensor *value, const luma_tensor *mask,
                                              bool causal, bool has_scale, double scale,
                                              bool grouped) {
    plan p = {0};
    lm_attention a = {.causal = causal};
    lm_result r;
    lm_scope s;
    int64_t shape[LUMA_MAX_DIMS];
    const luma_tensor *inputs[OPERANDS] = {query, key, value, mask};
    LM_TRY(make_plan(S, &p, query, key, value, mask, grouped));
    a.scale = has_scale ? scale : p.e > 0 ? 1 / sqrt((double)p.e) : 1;
    int n = visible_shape(&p, grouped, shape);
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(query), p.dtype, n, shape, inputs,
                          mask ? OPERANDS : MASK, 0));
    lm_scope_open(&s, S);
    LM_DO(&s, fill_result(&s, &r.work, &p, &a));
    return lm_result_close(S, &r, lm_scope_close(&s));
}
