/* matmul.c -- matrix products: shapes, dtypes and errors; the device's matmul slot computes.
** Layer: core. */
#include <string.h>

#include "tensor.h"

/* What a product comes to before memory is asked for. */
typedef struct {
    lm_device *device;
    luma_dtype dtype;
    luma_tensor a, b; /* of one rank, at least 2, batch dims expanded; borrowed */
    int ndim;
    int64_t shape[LUMA_MAX_DIMS]; /* of the result with its matrix dims, even those of vectors */
    bool drop_row, drop_column;   /* a or b is a vector */
} plan;

static luma_status check_operand(luma_state *S, const luma_tensor *x, int argument) {
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "a number: tensors expected");
    LM_TRY(lm_tensor_not_bool(S, argument, x, "matrix product"));
    if (x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "a 0-d tensor: at least 1 dim expected");
    return LUMA_OK;
}

/* Both shapes, then what is wrong with them. */
static luma_status mismatch(luma_state *S, const luma_tensor *a, const luma_tensor *b,
                            const char *what, int64_t x, int64_t y) {
    lm_text ta, tb;
    return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s by %s: %s sizes %lld and %lld differ",
                   lm_layout_text(&ta, &a->layout), lm_layout_text(&tb, &b->layout), what,
                   (long long)x, (long long)y);
}

static luma_status broadcast_batch(luma_state *S, const luma_tensor *a, const luma_tensor *b,
                                   plan *p) {
    lm_text ta, tb;
    luma_layout *x = &p->a.layout, *y = &p->b.layout;
    const int na = x->ndim - 2, nb = y->ndim - 2;
    int n = 0;
    p->ndim = 2;
    p->shape[0] = x->shape[na];
    p->shape[1] = y->shape[nb + 1];
    if (na == 0 && nb == 0) return LUMA_OK;
    if (lm_shape_broadcast(S, na, x->shape, nb, y->shape, &n, p->shape) != LUMA_OK)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s by %s: the batch dims do not broadcast",
                       lm_layout_text(&ta, &a->layout), lm_layout_text(&tb, &b->layout));
    p->ndim = n + 2;
    int64_t shape[LUMA_MAX_DIMS];
    memcpy(shape, p->shape, (size_t)n * sizeof *shape);
    memcpy(shape + n, x->shape + na, 2 * sizeof *shape);
    p->shape[n] = x->shape[na];
    *x = lm_layout_expand(x, p->ndim, shape);
    memcpy(shape + n, y->shape + nb, 2 * sizeof *shape);
    p->shape[n + 1] = y->shape[nb + 1];
    *y = lm_layout_expand(y, p->ndim, shape);
    return LUMA_OK;
}

static luma_status make_plan(luma_state *S, const luma_tensor *a, const luma_tensor *b, plan *p) {
    LM_TRY(check_operand(S, a, 1));
    LM_TRY(check_operand(S, b, 2));
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){a, b}, 2, &p->device));
    p->dtype = lm_dtype_promote(a->dtype, b->dtype);
    p->drop_row = a->layout.ndim == 1;
    p->drop_column = b->layout.ndim == 1;
    p->a = *a;
    p->b = *b;
    if (p->drop_row) p->a.layout = lm_layout_insert(&a->layout, 0, 1, 0);
    if (p->drop_column) p->b.layout = lm_layout_insert(&b->layout, 1, 1, 0);
    const luma_layout *x = &p->a.layout, *y = &p->b.layout;
    const int64_t ka = x->shape[x->ndim - 1], kb = y->shape[y->ndim - 2];
    if (ka != kb) return mismatch(S, a, b, "inner", ka, kb);
    return broadcast_batch(S, a, b, p);
}

/* The shape that the caller sees: without the dim that stands for a vector. */
static int visible_shape(const plan *p, int64_t *shape) {
    int n = p->ndim - 2;
    memcpy(shape, p->shape, (size_t)n * sizeof *shape);
    if (!p->drop_row) shape[n++] = p->shape[p->ndim - 2];
    if (!p->drop_column) shape[n++] = p->shape[p->ndim - 1];
    return n;
}

/* c: with all dims. */
static luma_status multiply(luma_state *S, const plan *p, luma_tensor *c) {
    if (!lm_meets_rounded(&p->a, p->dtype) && !lm_meets_rounded(&p->b, p->dtype))
        return LM_SLOT(S, p->device, matmul, "matmul", p->dtype, c, &p->a, &p->b);
    luma_tensor left = LUMA_NEW, right = LUMA_NEW;
    luma_status status = lm_meet(S, &left, &p->a, p->dtype);
    if (status == LUMA_OK) status = lm_meet(S, &right, &p->b, p->dtype);
    if (status == LUMA_OK)
        status = LM_SLOT(S, p->device, matmul, "matmul", p->dtype, c, &left, &right);
    luma_release(S, &left);
    luma_release(S, &right);
    return status;
}

static luma_status run(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *b,
                       bool wide) {
    plan p;
    lm_result r;
    int64_t shape[LUMA_MAX_DIMS];
    LM_TRY(make_plan(S, a, b, &p));
    const luma_dtype dtype = wide ? lm_dtype_wide(p.dtype) : p.dtype;
    const int ndim = visible_shape(&p, shape);
    LM_TRY(lm_result_open(S, &r, out, p.device, dtype, ndim, shape, (const luma_tensor *[]){a, b},
                          2, 0));
    if (!p.drop_row && !p.drop_column) return lm_result_close(S, &r, multiply(S, &p, &r.work));
    luma_tensor c = r.work;
    if (p.drop_row) c.layout = lm_layout_insert(&c.layout, p.ndim - 2, 1, 0);
    if (p.drop_column) c.layout = lm_layout_insert(&c.layout, p.ndim - 1, 1, 0);
    return lm_result_close(S, &r, multiply(S, &p, &c));
}

luma_status luma_matmul(luma_state *S, luma_tensor *out, const luma_tensor *a,
                        const luma_tensor *b) {
    return run(S, out, a, b, false);
}

luma_status lm_matmul_wide(luma_state *S, luma_tensor *out, const luma_tensor *a,
                           const luma_tensor *b) {
    return run(S, out, a, b, true);
}

/* ---- stricter forms ------------------------------------------------------------------------- */

static luma_status expect_dims(luma_state *S, const luma_tensor *x, int argument, int ndim,
                               const char *what) {
    lm_text text;
    if (!x->storage || x->layout.ndim == ndim) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s: a %s (%d dim%s) expected",
                   lm_layout_text(&text, &x->layout), what, ndim, ndim == 1 ? "" : "s");
}

luma_status luma_mm(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *b) {
    LM_TRY(expect_dims(S, a, 1, 2, "matrix"));
    LM_TRY(expect_dims(S, b, 2, 2, "matrix"));
    return luma_matmul(S, out, a, b);
}

luma_status luma_bmm(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *b) {
    LM_TRY(expect_dims(S, a, 1, 3, "stack of matrices"));
    LM_TRY(expect_dims(S, b, 2, 3, "stack of matrices"));
    if (a->storage && b->storage && a->layout.shape[0] != b->layout.shape[0])
        return mismatch(S, a, b, "batch", a->layout.shape[0], b->layout.shape[0]);
    return luma_matmul(S, out, a, b);
}

luma_status luma_mv(luma_state *S, luma_tensor *out, const luma_tensor *a, const luma_tensor *v) {
    LM_TRY(expect_dims(S, a, 1, 2, "matrix"));
    LM_TRY(expect_dims(S, v, 2, 1, "vector"));
    return luma_matmul(S, out, a, v);
}

luma_status luma_dot(luma_state *S, luma_tensor *out, const luma_tensor *v, const luma_tensor *w) {
    LM_TRY(expect_dims(S, v, 1, 1, "vector"));
    LM_TRY(expect_dims(S, w, 2, 1, "vector"));
    return luma_matmul(S, out, v, w);
}
