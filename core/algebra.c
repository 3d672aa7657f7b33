/* algebra.c -- products of vectors, matrices and tensors that are made of matmul and elementwise
** operations. Layer: core. */
#include "algebra.h"

#include <string.h>

#include "compose.h"
#include "contract.h"

/* A tensor of numbers of ndim dims (-1: any). */
static luma_status check_operand(luma_state *S, const luma_tensor *x, int argument, int ndim,
                                 const char *what) {
    lm_text t;
    LM_TRY(lm_tensor_live(S, argument, x));
    LM_TRY(lm_tensor_not_bool(S, argument, x, "products"));
    if (ndim >= 0 && x->layout.ndim != ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s: a %s (%d dim%s) expected",
                       lm_layout_text(&t, &x->layout), what, ndim, ndim == 1 ? "" : "s");
    return lm_tensor_check(S, argument, x, false);
}

static luma_status check_sizes(luma_state *S, const luma_tensor *a, int da, const luma_tensor *b,
                               int db, int argument, const char *what) {
    lm_text ta, tb;
    long long x = (long long)a->layout.shape[da], y = (long long)b->layout.shape[db];
    if (x == y) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s by %s: %s sizes %lld and %lld differ",
                   lm_layout_text(&ta, &a->layout), lm_layout_text(&tb, &b->layout), what, x, y);
}

/* x seen in another layout; owns nothing. */
static luma_tensor seen(const luma_tensor *x, luma_layout layout) {
    luma_tensor view = *x;
    view.layout = layout;
    return view;
}

/* ---- sums over pairs of dims -----------------------------------------------------------------*/

/* Dims of a and b, 0-based: those of one number meet. */
static luma_status contract_dims(luma_state *S, luma_tensor *out, const luma_tensor *a,
                                 const luma_tensor *b, int n, const int *da, const int *db) {
    lm_labelled xs[2] = {{.x = a}, {.x = b}};
    int8_t result[2 * LUMA_MAX_DIMS];
    int nresult = 0;
    memset(xs[0].label, -1, sizeof xs[0].label);
    memset(xs[1].label, -1, sizeof xs[1].label);
    for (int i = 0; i < n; i++)
        xs[0].label[da[i]] = xs[1].label[db[i]] = (int8_t)i;
    for (int k = 0, next = n; k < 2; k++) {
        for (int d = 0; d < xs[k].x->layout.ndim; d++) {
            if (xs[k].label[d] >= 0) continue;
            xs[k].label[d] = result[nresult++] = (int8_t)next++;
        }
    }
    if (nresult > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "the result has %d dims: at most %d", nresult,
                       LUMA_MAX_DIMS);
    return lm_contract(S, out, 2, xs, nresult, result);
}

luma_status luma_tensordot(luma_state *S, luma_tensor *out, const luma_tensor *a,
                           const luma_tensor *b, int n, const int64_t *dims_a,
                           const int64_t *dims_b) {
    int da[LUMA_MAX_DIMS], db[LUMA_MAX_DIMS];
    uint32_t unused;
    LM_TRY(check_operand(S, a, 1, -1, ""));
    LM_TRY(check_operand(S, b, 2, -1, ""));
    if (n < 0 || n > a->layout.ndim || n > b->layout.ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%d dims of tensors that have %d and %d", n,
                       a->layout.ndim, b->layout.ndim);
    if (n > 0) LM_TRY(lm_dims_mask(S, 3, n, dims_a, a->layout.ndim, &unused));
    if (n > 0) LM_TRY(lm_dims_mask(S, 4, n, dims_b, b->layout.ndim, &unused));
    for (int i = 0; i < n; i++) {
        LM_TRY(lm_dim(S, 3, dims_a[i], a->layout.ndim, &da[i]));
        LM_TRY(lm_dim(S, 4, dims_b[i], b->layout.ndim, &db[i]));
        LM_TRY(check_sizes(S, a, da[i], b, db[i], 3, "the"));
    }
    return contract_dims(S, out, a, b, n, da, db);
}

luma_status lm_algebra_tensordot(luma_state *S, luma_tensor *out, const luma_tensor *a,
                                 const luma_tensor *b, const lm_arg *dims, const lm_arg *other) {
    int64_t da[LUMA_MAX_DIMS], db[LUMA_MAX_DIMS], count = dims->given && dims->n > 0 ? 0 : 2;
    LM_TRY(lm_tensor_live(S, 1, a));
    LM_TRY(lm_tensor_live(S, 2, b));
    const int most = a->layout.ndim < b->layout.ndim ? a->layout.ndim : b->layout.ndim;
    if (other->given) {
        if (dims->n != other->n)
            return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "%d dims of a and %d of b", dims->n, other->n);
        if (dims->n > most)
            return lm_fail(S, LUMA_ERR_SHAPE, 3, "%d dims of tensors that have %d and %d", dims->n,
                           a->layout.ndim, b->layout.ndim);
        for (int i = 0; i < dims->n; i++) {
            da[i] = dims->list[i];
            if (da[i] >= 0) da[i] -= S->index_base;
            if (da[i] < 0 && dims->list[i] >= 0)
                return lm_fail(S, LUMA_ERR_INDEX, 3, "0 is no dim: dims count from 1");
        }
        return luma_tensordot(S, out, a, b, dims->n, da, other->list);
    }
    if (dims->n > 1)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3,
                       "a number of dims, or those of a and of b expected");
    if (dims->n == 1) count = dims->list[0];
    if (count < 0 || count > most)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "%lld dims of tensors that have %d and %d",
                       (long long)count, a->layout.ndim, b->layout.ndim);
    for (int i = 0; i < count; i++) {
        da[i] = a->layout.ndim - count + i;
        db[i] = i;
    }
    return luma_tensordot(S, out, a, b, (int)count, da, db);
}

luma_status luma_inner(luma_state *S, luma_tensor *out, const luma_tensor *a,
                       const luma_tensor *b) {
    LM_TRY(check_operand(S, a, 1, -1, ""));
    LM_TRY(check_operand(S, b, 2, -1, ""));
    int da = a->layout.ndim - 1, db = b->layout.ndim - 1;
    if (da < 0 || db < 0) return luma_mul(S, out, a, b);
    LM_TRY(check_sizes(S, a, da, b, db, 2, "last"));
    return contract_dims(S, out, a, b, 1, &da, &db);
}

luma_status luma_outer(luma_state *S, luma_tensor *out, const luma_tensor *v,
                       const luma_tensor *w) {
    LM_TRY(check_operand(S, v, 1, 1, "vector"));
    LM_TRY(check_operand(S, w, 2, 1, "vector"));
    luma_tensor column = seen(v, lm_layout_insert(&v->layout, 1, 1, 0));
    return luma_mul(S, out, &column, w);
}

/* ---- kron, cross -----------------------------------------------------------------------------*/

/* Dims of size 1 in front, so that a has ndim of them. */
static luma_tensor in_front(const luma_tensor *x, int ndim) {
    luma_tensor view = *x;
    while (view.layout.ndim < ndim)
        view.layout = lm_layout_insert(&view.layout, 0, 1, 0);
    return view;
}

/* Dims of a and b side by side: (a0, b0, a1, b1, ...), but those of size 1; a repeats along those of
** b. false: they are too many. */
static bool side_by_side(const luma_tensor *a, const luma_tensor *b, luma_tensor *x, luma_tensor *y,
                         luma_tensor *to) {
    luma_layout *l[3] = {&x->layout, &y->layout, &to->layout};
    const luma_layout whole = to->layout;
    *x = *a;
    *y = *b;
    for (int k = 0; k < 3; k++)
        l[k]->ndim = 0;
    for (int d = 0; d < whole.ndim; d++) {
        int64_t size[2] = {a->layout.shape[d], b->layout.shape[d]};
        for (int k = 0; k < 2; k++) {
            int64_t stride[3] = {k == 0 ? a->layout.stride[d] : 0, k == 1 ? b->layout.stride[d] : 0,
                                 whole.stride[d] * (k == 0 ? size[1] : 1)};
            if (size[k] == 1) continue;
            if (to->layout.ndim == LUMA_MAX_DIMS) return false;
            for (int i = 0; i < 3; i++) {
                l[i]->shape[l[i]->ndim] = size[k];
                l[i]->stride[l[i]->ndim++] = stride[i];
            }
        }
    }
    return true;
}

static luma_status kron(luma_state *S, const luma_tensor *to, const luma_tensor *a,
                        const luma_tensor *b) {
    luma_tensor x, y, view = *to;
    if (side_by_side(a, b, &x, &y, &view)) return luma_mul(S, &view, &x, &y);
    /* row by row of the first dim, then */
    const int64_t n = b->layout.shape[0];
    x = seen(a, lm_layout_remove(&a->layout, 0));
    y = seen(b, lm_layout_remove(&b->layout, 0));
    for (int64_t i = 0; i < to->layout.shape[0]; i++) {
        x.layout.offset = a->layout.offset + i / n * a->layout.stride[0];
        y.layout.offset = b->layout.offset + i % n * b->layout.stride[0];
        view = seen(to, lm_layout_select(&to->layout, 0, i));
        LM_TRY(kron(S, &view, &x, &y));
    }
    return LUMA_OK;
}

luma_status luma_kron(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *b) {
    int64_t shape[LUMA_MAX_DIMS];
    lm_text ta, tb;
    lm_result r;
    lm_device *device;
    LM_TRY(check_operand(S, a, 1, -1, ""));
    LM_TRY(check_operand(S, b, 2, -1, ""));
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){a, b}, 2, &device));
    const int ndim = a->layout.ndim > b->layout.ndim ? a->layout.ndim : b->layout.ndim;
    luma_tensor x = in_front(a, ndim), y = in_front(b, ndim);
    for (int d = 0; d < ndim; d++) {
        if (__builtin_mul_overflow(x.layout.shape[d], y.layout.shape[d], &shape[d]))
            return lm_fail(S, LUMA_ERR_MEMORY, 0, "%s by %s: the result is too large",
                           lm_layout_text(&ta, &a->layout), lm_layout_text(&tb, &b->layout));
    }
    LM_TRY(lm_result_open(S, &r, out, device, lm_dtype_promote(a->dtype, b->dtype), ndim, shape,
                          (const luma_tensor *[]){a, b}, 2, 0));
    bool empty = luma_numel(&r.work) == 0;
    luma_status status = lm_result_close(S, &r, empty ? LUMA_OK : kron(S, &r.work, &x, &y));
    if (status != LUMA_OK) S->argument = 0;
    return status;
}

static luma_status find_cross_dim(luma_state *S, bool has_dim, int64_t dim, int ndim,
                                  const int64_t *shape, int *d) {
    lm_text t;
    if (has_dim) {
        LM_TRY(lm_dim(S, 3, dim, ndim, d));
        if (ndim > 0 && shape[*d] == 3) return LUMA_OK;
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "dim %lld of %s has not size 3",
                       (long long)lm_pos(S, *d), lm_shape_text(&t, ndim, shape));
    }
    for (*d = 0; *d < ndim; ++*d)
        if (shape[*d] == 3) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s has no dim of size 3", lm_shape_text(&t, ndim, shape));
}

/* out[i] = a[j] b[k] - a[k] b[j] with j, k after i, along dim d. */
static luma_status cross(luma_state *S, const luma_tensor *to, const luma_tensor *a,
                         const luma_tensor *b, int d) {
    for (int i = 0; i < 3; i++) {
        lm_scope s;
        lm_scope_open(&s, S);
        luma_tensor *one = lm_temp(&s), *other = lm_temp(&s);
        int j = (i + 1) % 3, k = (i + 2) % 3;
        luma_tensor aj = seen(a, lm_layout_select(&a->layout, d, j));
        luma_tensor ak = seen(a, lm_layout_select(&a->layout, d, k));
        luma_tensor bj = seen(b, lm_layout_select(&b->layout, d, j));
        luma_tensor bk = seen(b, lm_layout_select(&b->layout, d, k));
        luma_tensor y = seen(to, lm_layout_select(&to->layout, d, i));
        LM_DO(&s, luma_mul(S, one, &aj, &bk));
        LM_DO(&s, luma_mul(S, other, &ak, &bj));
        LM_DO(&s, luma_sub(S, &y, one, other));
        LM_TRY(lm_scope_close(&s));
    }
    return LUMA_OK;
}

luma_status luma_cross(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *b,
                       bool has_dim, int64_t dim) {
    int ndim, d;
    int64_t shape[LUMA_MAX_DIMS];
    lm_result r;
    lm_device *device;
    LM_TRY(check_operand(S, a, 1, -1, ""));
    LM_TRY(check_operand(S, b, 2, -1, ""));
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){a, b}, 2, &device));
    LM_TRY(lm_shape_broadcast(S, a->layout.ndim, a->layout.shape, b->layout.ndim, b->layout.shape,
                              &ndim, shape));
    LM_TRY(find_cross_dim(S, has_dim, dim, ndim, shape, &d));
    LM_TRY(lm_result_open(S, &r, out, device, lm_dtype_promote(a->dtype, b->dtype), ndim, shape,
                          (const luma_tensor *[]){a, b}, 2, 0));
    luma_tensor x = seen(a, lm_layout_expand(&a->layout, ndim, shape));
    luma_tensor y = seen(b, lm_layout_expand(&b->layout, ndim, shape));
    return lm_result_close(S, &r, cross(S, &r.work, &x, &y, d));
}

/* ---- beta x + alpha a b ----------------------------------------------------------------------*/

/* A product that is added to x: what is known before it is made. */
typedef struct {
    luma_state *S;
    luma_tensor *out;
    const luma_tensor *x;
    luma_scalar beta, alpha;
    luma_dtype product, dtype; /* of the factors, of the result */
    bool in_place;
} sum;

static bool is_number(luma_scalar s, int64_t n) {
    return s.kind == LUMA_IS_FLOAT ? s.u.d == (double)n : s.u.i == n;
}

/* The number as one that does not raise the dtype. */
static luma_status check_factor(const sum *s, int argument, luma_scalar *value) {
    LM_TRY(lm_number_check(s->S, argument, *value, s->dtype));
    if (!lm_dtype_is_float(s->dtype) && value->kind == LUMA_IS_FLOAT)
        *value = (luma_scalar){.kind = LUMA_IS_INT, .u.i = (int64_t)value->u.d};
    return LUMA_OK;
}

static luma_status sum_open(sum *s, luma_state *S, luma_tensor *out, const luma_tensor *x,
                            const luma_tensor *a, const luma_tensor *b, int ndim,
                            const int64_t *shape, luma_scalar beta, luma_scalar alpha) {
    lm_text ta, tb;
    lm_device *device;
    *s = (sum){.S = S, .out = out, .x = x, .beta = beta, .alpha = alpha};
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){x, a, b}, 3, &device));
    s->product = lm_dtype_promote(a->dtype, b->dtype);
    s->dtype = lm_dtype_promote(x->dtype, s->product);
    s->in_place = out->storage && lm_tensor_is_same(out, x);
    if (s->in_place && lm_dtypes[s->product].kind <= lm_dtypes[x->dtype].kind) s->dtype = x->dtype;
    if (s->in_place && s->dtype != x->dtype)
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s does not hold %s results",
                       lm_dtypes[x->dtype].name, lm_dtypes[s->dtype].name);
    if (!lm_shape_fits(x->layout.ndim, x->layout.shape, ndim, shape))
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s does not broadcast to %s",
                       lm_layout_text(&ta, &x->layout), lm_shape_text(&tb, ndim, shape));
    if (s->in_place && x->layout.ndim != ndim)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s in place, the result is %s",
                       lm_layout_text(&ta, &x->layout), lm_shape_text(&tb, ndim, shape));
    LM_TRY(check_factor(s, 4, &s->beta));
    return check_factor(s, 5, &s->alpha);
}

static luma_status add_up(const sum *s, const luma_tensor *x, const luma_tensor *product) {
    if (s->in_place)
        return lm_map_inplace(s->S, LM_OP_add, s->out, 2, (const luma_tensor *[]){x, product},
                              NULL);
    return luma_add(s->S, s->out, x, product);
}

static luma_status give(const sum *s, const luma_tensor *all) {
    if (!s->in_place) return lm_cast(s->S, s->out, all, s->dtype);
    luma_tensor self = *s->out;
    LM_TRY(lm_copy(s->S, &self, all));
    s->out->storage->version++;
    return LUMA_OK;
}

/* Ends with the product, a temporary of the scope. NaN and infinities of x do not count where beta is
** 0. Small floats are rounded once, in the end. */
static luma_status sum_close(const sum *s, lm_scope *scope, luma_tensor *product) {
    luma_tensor beta = {.number = s->beta}, alpha = {.number = s->alpha};
    luma_tensor *all = product;
    const luma_tensor *x = s->x;
    const bool adds = !is_number(s->beta, 0);
    if (!is_number(s->alpha, 1)) LM_DO(scope, luma_mul(s->S, product, product, &alpha));
    if (adds && !is_number(s->beta, 1)) {
        luma_tensor *scaled = lm_temp(scope);
        x = lm_temp_cast(scope, x, lm_dtype_wide(x->dtype));
        LM_DO(scope, luma_mul(s->S, scaled, x, &beta));
        x = scaled;
    }
    if (adds && s->dtype == lm_dtype_wide(s->dtype)) {
        LM_DO(scope, add_up(s, x, product));
        return lm_scope_close(scope);
    }
    if (adds) {
        all = lm_temp(scope);
        LM_DO(scope, luma_add(s->S, all, x, product));
    }
    LM_DO(scope, give(s, all));
    return lm_scope_close(scope);
}

typedef luma_status multiply(luma_state *S, luma_tensor *out, const luma_tensor *a,
                             const luma_tensor *b);

static luma_status run_sum(const sum *s, multiply *f, const luma_tensor *a, const luma_tensor *b) {
    lm_scope scope;
    lm_scope_open(&scope, s->S);
    luma_tensor *product = lm_temp(&scope);
    LM_DO(&scope, f(s->S, product, a, b));
    return sum_close(s, &scope, product);
}

/* By way of factors in what small floats are computed in; integers that meet those are rounded first. */
static luma_status run_wide_sum(const sum *s, multiply *f, const luma_tensor *a,
                                const luma_tensor *b) {
    const luma_dtype wide = lm_dtype_wide(s->product);
    lm_scope scope;
    lm_scope_open(&scope, s->S);
    luma_tensor *product = lm_temp(&scope);
    const luma_tensor *x = lm_temp_cast(&scope, lm_temp_cast(&scope, a, s->product), wide);
    const luma_tensor *y = lm_temp_cast(&scope, lm_temp_cast(&scope, b, s->product), wide);
    LM_DO(&scope, f(s->S, product, x, y));
    return sum_close(s, &scope, product);
}

luma_status luma_addmm(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *a,
                       const luma_tensor *b, luma_scalar beta, luma_scalar alpha) {
    sum s;
    LM_TRY(check_operand(S, a, 2, 2, "matrix"));
    LM_TRY(check_operand(S, b, 3, 2, "matrix"));
    LM_TRY(check_sizes(S, a, 1, b, 0, 3, "inner"));
    const int64_t shape[2] = {a->layout.shape[0], b->layout.shape[1]};
    LM_TRY(sum_open(&s, S, out, x, a, b, 2, shape, beta, alpha));
    return run_sum(&s, lm_matmul_wide, a, b);
}

luma_status luma_addmv(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *a,
                       const luma_tensor *v, luma_scalar beta, luma_scalar alpha) {
    sum s;
    LM_TRY(check_operand(S, a, 2, 2, "matrix"));
    LM_TRY(check_operand(S, v, 3, 1, "vector"));
    LM_TRY(check_sizes(S, a, 1, v, 0, 3, "inner"));
    LM_TRY(sum_open(&s, S, out, x, a, v, 1, a->layout.shape, beta, alpha));
    return run_sum(&s, lm_matmul_wide, a, v);
}

luma_status luma_addr(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *v,
                      const luma_tensor *w, luma_scalar beta, luma_scalar alpha) {
    sum s;
    LM_TRY(check_operand(S, v, 2, 1, "vector"));
    LM_TRY(check_operand(S, w, 3, 1, "vector"));
    const int64_t shape[2] = {v->layout.shape[0], w->layout.shape[0]};
    LM_TRY(sum_open(&s, S, out, x, v, w, 2, shape, beta, alpha));
    return run_wide_sum(&s, luma_outer, v, w);
}

static luma_status check_stacks(luma_state *S, const luma_tensor *a, const luma_tensor *b) {
    LM_TRY(check_operand(S, a, 2, 3, "stack of matrices"));
    LM_TRY(check_operand(S, b, 3, 3, "stack of matrices"));
    LM_TRY(check_sizes(S, a, 0, b, 0, 3, "batch"));
    return check_sizes(S, a, 2, b, 1, 3, "inner");
}

luma_status luma_baddbmm(luma_state *S, luma_tensor *out, const luma_tensor *x,
                         const luma_tensor *a, const luma_tensor *b, luma_scalar beta,
                         luma_scalar alpha) {
    sum s;
    LM_TRY(check_stacks(S, a, b));
    const int64_t shape[3] = {a->layout.shape[0], a->layout.shape[1], b->layout.shape[2]};
    LM_TRY(sum_open(&s, S, out, x, a, b, 3, shape, beta, alpha));
    return run_sum(&s, lm_matmul_wide, a, b);
}

/* The products of two stacks, summed. */
static luma_status sum_products(luma_state *S, luma_tensor *out, const luma_tensor *a,
                                const luma_tensor *b) {
    return contract_dims(S, out, a, b, 2, (const int[]){0, 2}, (const int[]){0, 1});
}

luma_status luma_addbmm(luma_state *S, luma_tensor *out, const luma_tensor *x, const luma_tensor *a,
                        const luma_tensor *b, luma_scalar beta, luma_scalar alpha) {
    sum s;
    LM_TRY(check_stacks(S, a, b));
    const int64_t shape[2] = {a->layout.shape[1], b->layout.shape[2]};
    LM_TRY(sum_open(&s, S, out, x, a, b, 2, shape, beta, alpha));
    return run_wide_sum(&s, sum_products, a, b);
}

/* ---- powers and chains of matrices -----------------------------------------------------------*/

/* *out = x x, or *out = *out x where *out is a tensor. */
static luma_status multiply_by(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    luma_tensor product = LUMA_NEW;
    LM_TRY(luma_matmul(S, &product, out->storage ? out : x, x));
    luma_release(S, out);
    *out = product;
    return LUMA_OK;
}

/* By squares: *power stays LUMA_NEW of n = 0. */
static luma_status raise(luma_state *S, luma_tensor *power, const luma_tensor *a, int64_t n) {
    luma_tensor base, next = LUMA_NEW;
    luma_status status = LUMA_OK;
    luma_share(&base, a);
    for (; n > 0 && status == LUMA_OK; n >>= 1) {
        if ((n & 1) && !power->storage)
            luma_share(power, &base);
        else if (n & 1)
            status = multiply_by(S, power, &base);
        if (n == 1 || status != LUMA_OK) break;
        status = luma_matmul(S, &next, &base, &base);
        if (status != LUMA_OK) break;
        luma_release(S, &base);
        base = next;
        next = LUMA_NEW;
    }
    luma_release(S, &base);
    return status;
}

static luma_status unit_matrices(luma_state *S, luma_tensor *out, const luma_tensor *a) {
    lm_scope s;
    const int64_t n = a->layout.ndim ? a->layout.shape[a->layout.ndim - 1] : 0;
    lm_scope_open(&s, S);
    luma_tensor *eye = lm_temp(&s), *wide = lm_temp(&s), *copy = lm_temp(&s);
    LM_DO(&s, luma_eye(S, eye, n, n, a->dtype, lm_device_of(a)->name));
    LM_DO(&s, luma_expand(S, wide, eye, a->layout.ndim, a->layout.shape));
    LM_DO(&s, luma_force_contiguous(S, copy, wide));
    LM_DO(&s, lm_give(&s, out, copy));
    return lm_scope_close(&s);
}

luma_status luma_matrix_power(luma_state *S, luma_tensor *out, const luma_tensor *a, int64_t n) {
    lm_text t;
    const int ndim = a->layout.ndim;
    LM_TRY(check_operand(S, a, 1, -1, ""));
    if (ndim < 2 || a->layout.shape[ndim - 1] != a->layout.shape[ndim - 2])
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s: square matrices expected",
                       lm_layout_text(&t, &a->layout));
    if (n < 0)
        return lm_fail(S, LUMA_ERR_UNSUPPORTED, 2,
                       "%lld: negative powers need an inverse, which is not there yet",
                       (long long)n);
    if (n == 0) return unit_matrices(S, out, a);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *power = lm_temp(&s), *copy = lm_temp(&s);
    LM_DO(&s, raise(S, power, a, n));
    if (n == 1) {
        LM_DO(&s, luma_force_contiguous(S, copy, power));
        power = copy;
    }
    LM_DO(&s, lm_give(&s, out, power));
    return lm_scope_close(&s);
}

/* The order of least work (Cormen and others, Introduction to Algorithms, 15.2): matrices i .. j meet
** behind number cut[i][j]. */
#define CHAIN 64
typedef struct {
    luma_state *S;
    const luma_tensor *xs;
    int8_t cut[CHAIN][CHAIN];
} chain;

static void plan_chain(chain *c, int n) {
    static const double none = 1e300;
    double size[CHAIN + 1], cost[CHAIN][CHAIN];
    for (int i = 0; i < n; i++) {
        size[i] = (double)c->xs[i].layout.shape[0];
        cost[i][i] = 0;
    }
    size[n] = (double)c->xs[n - 1].layout.shape[1];
    for (int length = 1; length < n; length++) {
        for (int i = 0, j = length; j < n; i++, j++) {
            cost[i][j] = none;
            for (int k = i; k < j; k++) {
                double work = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
                if (work >= cost[i][j]) continue;
                cost[i][j] = work;
                c->cut[i][j] = (int8_t)k;
            }
        }
    }
}

static luma_status run_chain(const chain *c, luma_tensor *out, int i, int j) {
    luma_tensor a = LUMA_NEW, b = LUMA_NEW;
    if (i == j) {
        luma_share(out, &c->xs[i]);
        return LUMA_OK;
    }
    const int k = c->cut[i][j];
    luma_status status = run_chain(c, &a, i, k);
    if (status == LUMA_OK) status = run_chain(c, &b, k + 1, j);
    if (status == LUMA_OK) status = luma_matmul(c->S, out, &a, &b);
    luma_release(c->S, &a);
    luma_release(c->S, &b);
    return status;
}

luma_status luma_chain_matmul(luma_state *S, luma_tensor *out, int n, const luma_tensor *xs) {
    chain c = {.S = S, .xs = xs};
    lm_text ta, tb;
    lm_scope s;
    if (n < 1 || n > CHAIN)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "1 to %d matrices expected, got %d", CHAIN, n);
    for (int i = 0; i < n; i++) {
        LM_TRY(check_operand(S, &xs[i], 1 + i, 2, "matrix"));
        if (i > 0 && xs[i - 1].layout.shape[1] != xs[i].layout.shape[0])
            return lm_fail(S, LUMA_ERR_SHAPE, 1 + i, "%s by %s: inner sizes %lld and %lld differ",
                           lm_layout_text(&ta, &xs[i - 1].layout),
                           lm_layout_text(&tb, &xs[i].layout), (long long)xs[i - 1].layout.shape[1],
                           (long long)xs[i].layout.shape[0]);
    }
    plan_chain(&c, n);
    lm_scope_open(&s, S);
    luma_tensor *product = lm_temp(&s), *copy = lm_temp(&s);
    LM_DO(&s, run_chain(&c, product, 0, n - 1));
    if (n == 1) {
        LM_DO(&s, luma_force_contiguous(S, copy, product));
        product = copy;
    }
    LM_DO(&s, lm_give(&s, out, product));
    return lm_scope_close(&s);
}
