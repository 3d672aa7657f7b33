/* create.c -- tensors of numbers in order, matrices with a diagonal, tensors like others. Layer: core. */
#include "create.h"

#include <math.h>

#include "tensor.h"

static const luma_scalar zero = {.kind = LUMA_IS_INT, .u.i = 0};
static const luma_scalar one = {.kind = LUMA_IS_INT, .u.i = 1};

luma_status luma_zeros(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                       luma_dtype dtype, const char *device) {
    LM_TRY(lm_dtype_or(S, 3, S->default_dtype, &dtype));
    return luma_full(S, out, ndim, shape, zero, dtype, device);
}

luma_status luma_ones(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                      luma_dtype dtype, const char *device) {
    LM_TRY(lm_dtype_or(S, 3, S->default_dtype, &dtype));
    return luma_full(S, out, ndim, shape, one, dtype, device);
}

luma_status luma_empty_like(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_dtype dtype,
                            const char *device) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dtype_or(S, 2, x->dtype, &dtype));
    return luma_empty(S, out, x->layout.ndim, x->layout.shape, dtype,
                      device ? device : lm_device_of(x)->name);
}

luma_status luma_full_like(luma_state *S, luma_tensor *out, const luma_tensor *x, luma_scalar value,
                           luma_dtype dtype, const char *device) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dtype_or(S, 3, x->dtype, &dtype));
    return luma_full(S, out, x->layout.ndim, x->layout.shape, value, dtype,
                     device ? device : lm_device_of(x)->name);
}

/* ---- numbers in order ---- */

/* A result of n elements that the host computes, one by one. */
typedef struct {
    lm_result r;
    luma_tensor host; /* contiguous, on the CPU: r.work itself, or what is copied into it */
    bool copied;
} series;

static luma_status open_series(luma_state *S, series *s, luma_tensor *out, int64_t n,
                               luma_dtype dtype, const char *device) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    LM_TRY(lm_result_open(S, &s->r, out, d, dtype, 1, &n, NULL, 0, LM_RESULT_CONTIGUOUS));
    s->copied = d != lm_cpu(S);
    if (!s->copied) {
        s->host = s->r.work;
        return LUMA_OK;
    }
    luma_status status = lm_tensor_new(S, &s->host, lm_cpu(S), dtype, 1, &n);
    return status == LUMA_OK ? LUMA_OK : lm_result_close(S, &s->r, status);
}

static luma_status close_series(luma_state *S, series *s, luma_status status) {
    if (s->copied) {
        if (status == LUMA_OK) status = lm_copy(S, &s->r.work, &s->host);
        luma_release(S, &s->host);
    }
    return lm_result_close(S, &s->r, status);
}

typedef luma_scalar series_fn(const void *ctx, int64_t i);

static luma_status run_series(luma_state *S, luma_tensor *out, int64_t n, luma_dtype dtype,
                              const char *device, series_fn *at, const void *ctx) {
    series s;
    luma_status status = LUMA_OK;
    LM_TRY(open_series(S, &s, out, n, dtype, device));
    char *next = lm_data(&s.host);
    for (int64_t i = 0; i < n && status == LUMA_OK; i++, next += lm_dtype_size(dtype)) {
        if (i % 8192 == 0 && lm_interrupted(S)) status = lm_fail_interrupted(S);
        lm_cpu(S)->ops->encode(dtype, at(ctx, i), next);
    }
    return close_series(S, &s, status);
}

typedef struct {
    luma_scalar first, last, step;
    bool whole; /* all three are integers */
    int64_t n;
} progression;

static double real(luma_scalar v) {
    return v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
}

/* first + i * step, rounded once. */
static luma_scalar progression_at(const void *ctx, int64_t i) {
    const progression *p = ctx;
    if (p->whole) {
        uint64_t v = (uint64_t)p->first.u.i + (uint64_t)i * (uint64_t)p->step.u.i;
        return (luma_scalar){.kind = LUMA_IS_INT, .u.i = (int64_t)v};
    }
    double v = fma((double)i, real(p->step), real(p->first));
    return (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = v};
}

static luma_status too_long(luma_state *S) {
    return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "the range is too long");
}

static luma_status count_whole(luma_state *S, progression *p) {
    int64_t a = p->first.u.i, b = p->last.u.i, s = p->step.u.i;
    p->n = 0;
    if (s > 0 ? a > b : a < b) return LUMA_OK;
    uint64_t span = s > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t n = span / (s > 0 ? (uint64_t)s : 0 - (uint64_t)s);
    if (n >= UINT64_C(1) << 59) return too_long(S);
    p->n = (int64_t)n + 1;
    return LUMA_OK;
}

/* No item passes last: the quotient may be off by one either way. */
static luma_status count_real(luma_state *S, progression *p) {
    double a = real(p->first), b = real(p->last), s = real(p->step);
    if (!isfinite(a) || !isfinite(b) || !isfinite(s))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "finite numbers expected");
    p->n = 0;
    if (s > 0 ? a > b : a < b) return LUMA_OK;
    double n = floor((b - a) / s);
    if (!(n < 0x1p53)) return too_long(S);
#define AT(i) progression_at(p, i).u.d
    p->n = (int64_t)n + 1;
    while (p->n > 0 && (s > 0 ? AT(p->n - 1) > b : AT(p->n - 1) < b))
        p->n--;
    /* Far from zero an item may round to the one before it; such items would not end. */
    while ((s > 0 ? AT(p->n) <= b : AT(p->n) >= b) && AT(p->n) != AT(p->n - 1))
        p->n++;
#undef AT
    return LUMA_OK;
}

luma_status luma_range(luma_state *S, luma_tensor *out, luma_scalar first, luma_scalar last,
                       luma_scalar step, luma_dtype dtype, const char *device) {
    progression p = {.first = first, .last = last, .step = step};
    const luma_scalar *given[] = {&first, &last, &step};
    p.whole = true;
    for (int i = 0; i < 3; i++) {
        if (given[i]->kind != LUMA_IS_INT && given[i]->kind != LUMA_IS_FLOAT)
            return lm_fail(S, LUMA_ERR_ARGUMENT, i + 1, "a number expected");
        p.whole = p.whole && given[i]->kind == LUMA_IS_INT;
    }
    LM_TRY(lm_dtype_or(S, 4, p.whole ? LUMA_INT64 : S->default_dtype, &dtype));
    if (real(step) == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "step is zero");
    LM_TRY(p.whole ? count_whole(S, &p) : count_real(S, &p));
    if (p.n > 0) {
        LM_TRY(lm_number_check(S, 1, progression_at(&p, 0), dtype));
        LM_TRY(lm_number_check(S, 2, progression_at(&p, p.n - 1), dtype));
    }
    if (!p.whole && lm_dtype_is_int(dtype)) LM_TRY(lm_number_check(S, 3, step, LUMA_INT64));
    return run_series(S, out, p.n, dtype, device, progression_at, &p);
}

/* From both ends toward the middle: the last is last. base 0: the numbers themselves. */
typedef struct {
    double first, last, step, base;
    int64_t n;
} spread;

static luma_scalar spread_at(const void *ctx, int64_t i) {
    const spread *s = ctx;
    double v = i < (s->n + 1) / 2 ? fma((double)i, s->step, s->first)
                                  : fma((double)(i - s->n + 1), s->step, s->last);
    return (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = s->base != 0 ? pow(s->base, v) : v};
}

static luma_status run_spread(luma_state *S, luma_tensor *out, spread *s, int argument,
                              luma_dtype dtype, const char *device) {
    int64_t numel;
    LM_TRY(lm_dtype_or(S, argument, S->default_dtype, &dtype));
    if (s->n < 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "a size cannot be negative: %lld", (long long)s->n);
    if (!lm_numel_fits(1, &s->n, dtype, &numel))
        return lm_fail(S, LUMA_ERR_SHAPE, 3, "[%lld] of %s is too large", (long long)s->n,
                       lm_dtypes[dtype].name);
    if (!lm_dtype_is_float(dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "a float dtype expected");
    double gaps = (double)(s->n - 1);
    s->step = s->n > 1 ? s->last / gaps - s->first / gaps : 0;
    return run_series(S, out, s->n, dtype, device, spread_at, s);
}

luma_status luma_linspace(luma_state *S, luma_tensor *out, double first, double last, int64_t n,
                          luma_dtype dtype, const char *device) {
    spread s = {.first = first, .last = last, .n = n};
    return run_spread(S, out, &s, 4, dtype, device);
}

luma_status luma_logspace(luma_state *S, luma_tensor *out, double first, double last, int64_t n,
                          double base, luma_dtype dtype, const char *device) {
    spread s = {.first = first, .last = last, .n = n, .base = base};
    if (base == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 4, "base is zero");
    return run_spread(S, out, &s, 5, dtype, device);
}

/* ---- diagonals ---- */

static luma_status diagonal_of(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               int64_t offset) {
    return luma_diagonal(S, out, x, offset, x->layout.ndim - 2, x->layout.ndim - 1);
}

/* 0, with src on a diagonal, into *work, which is new or nobody reads. */
static luma_status put_diagonal(luma_state *S, luma_tensor *work, int64_t offset,
                                const luma_tensor *src) {
    luma_tensor d = LUMA_NEW;
    LM_TRY(lm_fill(S, work, zero));
    LM_TRY(diagonal_of(S, &d, work, offset));
    luma_status status = src->storage ? lm_copy(S, &d, src) : lm_fill(S, &d, src->number);
    luma_release(S, &d);
    return status;
}

luma_status luma_eye(luma_state *S, luma_tensor *out, int64_t n, int64_t m, luma_dtype dtype,
                     const char *device) {
    const luma_tensor ones = {.number = one};
    const int64_t shape[2] = {n, m};
    lm_device *d;
    lm_result r;
    lm_text text;
    int64_t numel;
    LM_TRY(lm_dtype_or(S, 3, S->default_dtype, &dtype));
    for (int i = 0; i < 2; i++) {
        if (shape[i] < 0)
            return lm_fail(S, LUMA_ERR_SHAPE, i + 1, "a size cannot be negative: %lld",
                           (long long)shape[i]);
    }
    if (!lm_numel_fits(2, shape, dtype, &numel))
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%s of %s is too large",
                       lm_shape_text(&text, 2, shape), lm_dtypes[dtype].name);
    LM_TRY(lm_device_find(S, device, &d));
    LM_TRY(lm_result_open(S, &r, out, d, dtype, 2, shape, NULL, 0, 0));
    return lm_result_close(S, &r, put_diagonal(S, &r.work, 0, &ones));
}

luma_status luma_diag(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t diagonal) {
    int64_t size, numel;
    lm_text text;
    lm_result r;
    if (x->layout.ndim == 2) {
        luma_tensor view = LUMA_NEW;
        LM_TRY(diagonal_of(S, &view, x, diagonal));
        luma_status status = luma_clone(S, out, &view);
        luma_release(S, &view);
        return status;
    }
    if (x->layout.ndim != 1)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "1 or 2 dims expected, got %d", x->layout.ndim);
    if (diagonal == INT64_MIN ||
        !lm_add_fits(x->layout.shape[0], diagonal < 0 ? -diagonal : diagonal, &size))
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "the diagonal is too far");
    const int64_t shape[2] = {size, size};
    if (!lm_numel_fits(2, shape, x->dtype, &numel))
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s of %s is too large",
                       lm_shape_text(&text, 2, shape), lm_dtypes[x->dtype].name);
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), x->dtype, 2, shape, &x, 1, 0));
    return lm_result_close(S, &r, put_diagonal(S, &r.work, diagonal, x));
}

/* ---- triangles ---- */

/* first, first + 1, ... as int64 in this shape, on the device of x. */
static luma_status count_from(luma_state *S, luma_tensor *out, int ndim, const int64_t *shape,
                              int64_t first, const luma_tensor *x) {
    luma_tensor host = LUMA_NEW;
    LM_TRY(lm_tensor_new(S, &host, lm_cpu(S), LUMA_INT64, ndim, shape));
    int64_t n = luma_numel(&host), *p = (int64_t *)(void *)lm_data(&host);
    for (int64_t i = 0; i < n; i++)
        p[i] = first + i;
    luma_status status = luma_to_device(S, out, &host, lm_device_of(x)->name);
    luma_release(S, &host);
    return status;
}

/* x where column - row <= diagonal (lower) or >= it, 0 elsewhere. */
static luma_status triangle(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t diagonal,
                            bool lower) {
    luma_tensor row = LUMA_NEW, column = LUMA_NEW, mask = LUMA_NEW;
    const luma_tensor none = luma_boolean(false);
    if (x->layout.ndim < 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "at least 2 dims expected, got %d", x->layout.ndim);
    if (luma_numel(x) == 0) return luma_clone(S, out, x); /* whose rows may be any number */
    const int64_t rows[2] = {x->layout.shape[x->layout.ndim - 2], 1};
    int64_t columns = x->layout.shape[x->layout.ndim - 1];
    /* Past every column the answer no longer changes, and sums stay within range. */
    if (diagonal > columns) diagonal = columns;
    if (diagonal < -rows[0] - 1) diagonal = -rows[0] - 1;
    luma_status status = count_from(S, &row, 2, rows, diagonal, x);
    if (status == LUMA_OK) status = count_from(S, &column, 1, &columns, 0, x);
    if (status == LUMA_OK) status = (lower ? luma_le : luma_ge)(S, &mask, &column, &row);
    if (status == LUMA_OK) status = luma_where(S, out, &mask, x, &none);
    luma_release(S, &row);
    luma_release(S, &column);
    luma_release(S, &mask);
    return status;
}

luma_status luma_tril(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t diagonal) {
    return triangle(S, out, x, diagonal, true);
}

luma_status luma_triu(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t diagonal) {
    return triangle(S, out, x, diagonal, false);
}

/* ---- random numbers ---- */

luma_status lm_create_drawn(luma_state *S, luma_tensor *out, lm_draw_fn *draw, int ndim,
                            const int64_t *shape, luma_dtype dtype, const char *device) {
    lm_device *d;
    lm_result r;
    LM_TRY(lm_dtype_or(S, 3, S->default_dtype, &dtype));
    LM_TRY(lm_device_find(S, device, &d));
    LM_TRY(lm_result_open(S, &r, out, d, dtype, ndim, shape, NULL, 0, 0));
    luma_status status = draw(S, &r.work);
    return lm_result_close(S, &r, status);
}

luma_status lm_create_drawn_like(luma_state *S, luma_tensor *out, lm_draw_fn *draw,
                                 const luma_tensor *x, luma_dtype dtype, const char *device) {
    LM_TRY(lm_tensor_live(S, 1, x));
    LM_TRY(lm_dtype_or(S, 2, x->dtype, &dtype));
    return lm_create_drawn(S, out, draw, x->layout.ndim, x->layout.shape, dtype,
                           device ? device : lm_device_of(x)->name);
}

luma_status lm_create_drawn_int(luma_state *S, luma_tensor *out, int64_t lo, int64_t hi, int ndim,
                                const int64_t *shape, luma_dtype dtype, const char *device) {
    lm_device *d;
    lm_result r;
    LM_TRY(lm_dtype_or(S, 4, LUMA_INT64, &dtype));
    LM_TRY(lm_device_find(S, device, &d));
    LM_TRY(lm_result_open(S, &r, out, d, dtype, ndim, shape, NULL, 0, 0));
    luma_status status = luma_randint(S, &r.work, lo, hi);
    return lm_result_close(S, &r, status);
}
