/* contract.c -- sums of products over labelled dims, as matrix products of views: dims are put in the
** order that lets them merge; a tensor is copied only where they do not. Layer: core. */
#include "contract.h"

#include <string.h>

typedef uint64_t labels; /* a set: bit l for label l */
#define BIT(l) ((labels)1 << (l))

/* A tensor whose dims, none of size 1, have different labels. */
typedef struct {
    luma_tensor x;
    bool owned;
    int8_t label[LUMA_MAX_DIMS];
    labels all;
} factor;

/* Labels in an order: those of two factors and a result at most. */
#define LM_ORDER (3 * LUMA_MAX_DIMS)
typedef struct {
    int n;
    int8_t label[LM_ORDER];
} order;

/* Dims that are walked as one. */
typedef struct {
    bool merges;
    int64_t size, stride;
} group;

/* ---- factors ---------------------------------------------------------------------------------*/

static void drop(luma_state *S, factor *f) {
    if (f->owned) luma_release(S, &f->x);
    f->owned = false;
}

static void replace(luma_state *S, factor *f, const luma_tensor *x) {
    drop(S, f);
    f->x = *x;
    f->owned = true;
}

static int dim_of(const factor *f, int label) {
    int d = 0;
    while (f->label[d] != label)
        d++;
    return d;
}

static void add_dim(factor *f, int label, int64_t size, int64_t stride) {
    luma_layout *l = &f->x.layout;
    f->label[l->ndim] = (int8_t)label;
    f->all |= BIT(label);
    l->shape[l->ndim] = size;
    l->stride[l->ndim++] = stride;
}

/* x without dims of size 1, equal labels as the diagonal of their dims. */
static void set_factor(factor *f, const luma_tensor *x, const int8_t *label) {
    *f = (factor){.x = *x};
    f->x.layout.ndim = 0;
    for (int d = 0; d < x->layout.ndim; d++) {
        int64_t size = x->layout.shape[d], stride = x->layout.stride[d];
        if (size == 1) continue;
        if (f->all & BIT(label[d]))
            f->x.layout.stride[dim_of(f, label[d])] += stride;
        else
            add_dim(f, label[d], size, stride);
    }
}

/* The dims of f that are among `chosen`. */
static order order_of(const factor *f, labels chosen) {
    order o = {.n = 0};
    for (int d = 0; d < f->x.layout.ndim; d++)
        if (chosen & BIT(f->label[d])) o.label[o.n++] = f->label[d];
    return o;
}

/* The same, long strides first. */
static order by_stride(const factor *f, labels chosen) {
    order o = order_of(f, chosen);
    const int64_t *stride = f->x.layout.stride;
    for (int i = 1; i < o.n; i++) {
        int8_t label = o.label[i];
        int at = i;
        int64_t step = lm_abs(stride[dim_of(f, label)]);
        for (; at > 0 && lm_abs(stride[dim_of(f, o.label[at - 1])]) < step; at--)
            o.label[at] = o.label[at - 1];
        o.label[at] = label;
    }
    return o;
}

static order joined(order a, order b, order c) {
    for (int i = 0; i < b.n; i++)
        a.label[a.n++] = b.label[i];
    for (int i = 0; i < c.n; i++)
        a.label[a.n++] = c.label[i];
    return a;
}

static group group_of(const factor *f, const order *o) {
    group g = {true, 1, 0};
    for (int i = o->n - 1; i >= 0; i--) {
        int d = dim_of(f, o->label[i]);
        int64_t size = f->x.layout.shape[d], stride = f->x.layout.stride[d];
        if (i == o->n - 1)
            g.stride = stride;
        else if (stride != g.size * g.stride)
            g.merges = false;
        g.size *= size;
    }
    return g;
}

/* x with the dims of an order, which may lack some of its own and repeats it along others. */
static luma_tensor seen(const factor *f, const order *o, const int64_t *size) {
    luma_tensor x = f->x;
    x.layout.ndim = o->n;
    for (int i = 0; i < o->n; i++) {
        bool has = f->all >> o->label[i] & 1;
        x.layout.shape[i] = size[o->label[i]];
        x.layout.stride[i] = has ? f->x.layout.stride[dim_of(f, o->label[i])] : 0;
    }
    return x;
}

static luma_status make(luma_state *S, factor *f, lm_device *d, luma_dtype dtype, const order *o,
                        const int64_t *size) {
    int64_t shape[LM_ORDER];
    luma_tensor x;
    for (int i = 0; i < o->n; i++)
        shape[i] = size[o->label[i]];
    if (o->n > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 0, "a product on the way has %d dims: at most %d", o->n,
                       LUMA_MAX_DIMS);
    LM_TRY(lm_tensor_new(S, &x, d, dtype, o->n, shape));
    *f = (factor){.x = x, .owned = true};
    f->x.layout.ndim = 0;
    for (int i = 0; i < o->n; i++)
        add_dim(f, o->label[i], shape[i], x.layout.stride[i]);
    return LUMA_OK;
}

/* f without gaps in an order of its dims. */
static luma_status pack(luma_state *S, factor *f, const order *o, const int64_t *size) {
    factor packed;
    luma_tensor from = seen(f, o, size);
    LM_TRY(make(S, &packed, lm_device_of(&f->x), f->x.dtype, o, size));
    luma_tensor to = seen(&packed, o, size);
    luma_status status = lm_copy(S, &to, &from);
    if (status != LUMA_OK) {
        drop(S, &packed);
        return status;
    }
    drop(S, f);
    *f = packed;
    return LUMA_OK;
}

/* *out = x summed over the dims from number `kept` on; sums of integers become `dtype`. */
static luma_status sum_last(luma_state *S, luma_tensor *out, const luma_tensor *x, int kept,
                            luma_dtype dtype) {
    int64_t dims[LUMA_MAX_DIMS];
    luma_tensor sums = LUMA_NEW;
    int n = x->layout.ndim - kept;
    for (int i = 0; i < n; i++)
        dims[i] = kept + i;
    if (lm_dtype_is_float(x->dtype)) return luma_sum(S, out, x, n, dims, false);
    LM_TRY(luma_sum(S, &sums, x, n, dims, false));
    luma_status status = out->storage ? lm_copy(S, out, &sums) : lm_cast(S, out, &sums, dtype);
    luma_release(S, &sums);
    return status;
}

/* Sums f over what is not kept. */
static luma_status sum_factor(luma_state *S, factor *f, labels keep, luma_dtype dtype,
                              const int64_t *size) {
    order kept = order_of(f, keep), summed = by_stride(f, ~keep);
    if (summed.n == 0) return LUMA_OK;
    luma_tensor sums = LUMA_NEW;
    order all = joined(kept, summed, (order){.n = 0});
    luma_tensor x = seen(f, &all, size);
    LM_TRY(sum_last(S, &sums, &x, kept.n, dtype));
    replace(S, f, &sums);
    luma_layout layout = f->x.layout;
    f->x.layout.ndim = 0;
    f->all = 0;
    for (int i = 0; i < kept.n; i++)
        add_dim(f, kept.label[i], layout.shape[i], layout.stride[i]);
    return LUMA_OK;
}

/* ---- a product of two ------------------------------------------------------------------------*/

typedef struct {
    luma_state *S;
    const int64_t *size;
    factor *a, *b, *to; /* (batch, m, k), (batch, k, n) and (batch, m, n), in any order of dims */
    order batch, m, n, k;
} product;

/* How often a matrix product is to be run: the size of batch dims, neighbours merged; at most 6. */
typedef struct {
    int n;
    int64_t size[LUMA_MAX_DIMS], stride[3][LUMA_MAX_DIMS];
} batches;

static bool merge_batch(const product *p, batches *b) {
    const factor *fs[3] = {p->to, p->a, p->b};
    b->n = 0;
    for (int i = 0; i < p->batch.n; i++) {
        int64_t size = p->size[p->batch.label[i]], stride[3];
        bool joins = b->n > 0;
        for (int f = 0; f < 3; f++) {
            stride[f] = fs[f]->x.layout.stride[dim_of(fs[f], p->batch.label[i])];
            joins = joins && b->stride[f][b->n - 1] == stride[f] * size;
        }
        if (joins)
            b->size[--b->n] *= size;
        else if (b->n == LUMA_MAX_DIMS - 2)
            return false;
        else
            b->size[b->n] = size;
        for (int f = 0; f < 3; f++)
            b->stride[f][b->n] = stride[f];
        b->n++;
    }
    return true;
}

static luma_tensor matrix(const factor *f, const batches *b, int which, group rows, group columns) {
    luma_tensor x = f->x;
    luma_layout *l = &x.layout;
    l->ndim = b->n + 2;
    for (int i = 0; i < b->n; i++) {
        l->shape[i] = b->size[i];
        l->stride[i] = b->stride[which][i];
    }
    l->shape[b->n] = rows.size;
    l->stride[b->n] = rows.stride;
    l->shape[b->n + 1] = columns.size;
    l->stride[b->n + 1] = columns.stride;
    return x;
}

static bool both_merge(const factor *f, const order *rows, const order *columns) {
    return group_of(f, rows).merges && group_of(f, columns).merges;
}

/* The order of what is summed: one in which both factors merge, else one in which one does. */
static order shared_order(const product *p, labels k) {
    order first = by_stride(p->a, k), second = by_stride(p->b, k);
    bool a = group_of(p->a, &first).merges, b = group_of(p->b, &first).merges;
    bool c = group_of(p->a, &second).merges, d = group_of(p->b, &second).merges;
    if (a && b) return first;
    if (c && d) return second;
    bool less = luma_numel(&p->a->x) < luma_numel(&p->b->x); /* copy a, then */
    return d && (!a || less) ? second : first;
}

/* Copies what does not merge. */
static luma_status pack_all(product *p) {
    batches b;
    bool some = !merge_batch(p, &b);
    if (some || !both_merge(p->a, &p->m, &p->k)) {
        order o = joined(p->batch, p->m, p->k);
        LM_TRY(pack(p->S, p->a, &o, p->size));
    }
    if (some || !both_merge(p->b, &p->k, &p->n)) {
        order o = joined(p->batch, p->k, p->n);
        LM_TRY(pack(p->S, p->b, &o, p->size));
    }
    return LUMA_OK;
}

static luma_status run(product *p) {
    batches b;
    LM_TRY(pack_all(p));
    merge_batch(p, &b);
    luma_tensor to = matrix(p->to, &b, 0, group_of(p->to, &p->m), group_of(p->to, &p->n));
    luma_tensor x = matrix(p->a, &b, 1, group_of(p->a, &p->m), group_of(p->a, &p->k));
    luma_tensor y = matrix(p->b, &b, 2, group_of(p->b, &p->k), group_of(p->b, &p->n));
    return luma_matmul(p->S, &to, &x, &y);
}

/* By way of a result without gaps, in the order that suits the factors. */
static luma_status run_apart(product *p) {
    factor apart, *to = p->to;
    p->m = by_stride(p->a, to->all & ~p->b->all);
    p->n = by_stride(p->b, to->all & ~p->a->all);
    order o = joined(p->batch, p->m, p->n), all = order_of(to, to->all);
    LM_TRY(make(p->S, &apart, lm_device_of(&to->x), to->x.dtype, &o, p->size));
    p->to = &apart;
    luma_status status = run(p);
    luma_tensor from = seen(&apart, &all, p->size);
    if (status == LUMA_OK) status = lm_copy(p->S, &to->x, &from);
    drop(p->S, &apart);
    return status;
}

static luma_status as_matrices(luma_state *S, factor *to, factor *a, factor *b,
                               const int64_t *size) {
    batches unused;
    int last = to->x.layout.ndim - 1;
    if (last >= 0 && !(b->all & BIT(to->label[last]))) { /* rows of the result lie side by side */
        factor *swap = a;
        a = b;
        b = swap;
    }
    product p = {.S = S, .size = size, .a = a, .b = b, .to = to};
    p.batch = order_of(to, a->all & b->all);
    p.m = order_of(to, a->all & ~b->all);
    p.n = order_of(to, b->all & ~a->all);
    p.k = shared_order(&p, a->all & b->all & ~to->all);
    if (both_merge(to, &p.m, &p.n) && (p.batch.n <= LUMA_MAX_DIMS - 2 || merge_batch(&p, &unused)))
        return run(&p);
    return run_apart(&p);
}

static int64_t size_of(labels set, const int64_t *size) {
    int64_t n = 1;
    for (int l = 0; l < LM_LABELS; l++)
        if (set >> l & 1) n *= size[l];
    return n;
}

/* Many short sums, each of which is too little for a matrix product. */
#define SHORT 128
static luma_status as_sums(luma_state *S, factor *to, const factor *a, const factor *b,
                           const int64_t *size) {
    order o = joined(order_of(to, to->all), by_stride(a, ~to->all), (order){.n = 0});
    luma_tensor x = seen(a, &o, size), y = seen(b, &o, size), terms = LUMA_NEW;
    LM_TRY(luma_mul(S, &terms, &x, &y));
    luma_status status = sum_last(S, &to->x, &terms, to->x.layout.ndim, to->x.dtype);
    luma_release(S, &terms);
    return status;
}

/* Of what a and b have alone nothing is summed. */
static luma_status multiply(luma_state *S, factor *to, factor *a, factor *b, const int64_t *size) {
    const labels summed = a->all & b->all & ~to->all, alone = a->all ^ b->all;
    const luma_dtype dtype = to->x.dtype;
    const luma_scalar zero = {.kind = LUMA_IS_INT, .u.i = 0};
    if (summed == 0) {
        order o = order_of(to, to->all);
        luma_tensor x = seen(a, &o, size), y = seen(b, &o, size);
        return luma_mul(S, &to->x, &x, &y);
    }
    if (luma_numel(&to->x) == 0) return LUMA_OK;
    const int64_t length = size_of(summed, size);
    if (length == 0) return lm_fill(S, &to->x, zero);
    if (alone == 0 && to->all != 0 && length < SHORT && a->x.dtype == dtype &&
        b->x.dtype == dtype && (dtype == LUMA_FLOAT32 || dtype == LUMA_FLOAT64))
        return as_sums(S, to, a, b, size);
    return as_matrices(S, to, a, b, size);
}

/* ---- all of them -----------------------------------------------------------------------------*/

typedef struct {
    luma_state *S;
    luma_dtype dtype;
    int n;
    const lm_labelled *xs;
    labels out;
    int64_t size[LM_LABELS];
    int left[LM_LABELS]; /* in how many tensors yet to come a label stands */
    labels later;        /* those that stand in one */
} chain;

/* The next tensor, in the dtype of all where more than two could promote otherwise on the way. */
static luma_status take(chain *c, factor *f, int i) {
    set_factor(f, c->xs[i].x, c->xs[i].label);
    for (int d = 0; d < f->x.layout.ndim; d++)
        if (--c->left[f->label[d]] == 0) c->later &= ~BIT(f->label[d]);
    if (c->n < 3 || f->x.dtype == c->dtype) return LUMA_OK;
    luma_tensor cast = LUMA_NEW;
    order o = order_of(f, f->all);
    luma_tensor x = seen(f, &o, c->size);
    LM_TRY(lm_cast(c->S, &cast, &x, c->dtype));
    replace(c->S, f, &cast);
    return LUMA_OK;
}

/* acc = acc times f, into `to` where those are the last. */
static luma_status step(chain *c, factor *acc, factor *f, factor *to) {
    luma_state *S = c->S;
    const labels keep = c->out | c->later;
    LM_TRY(sum_factor(S, acc, keep | f->all, c->dtype, c->size));
    LM_TRY(sum_factor(S, f, keep | acc->all, c->dtype, c->size));
    if (to) return multiply(S, to, acc, f, c->size);
    factor made;
    lm_device *device;
    LM_TRY(lm_same_device(S, (const luma_tensor *[]){&acc->x, &f->x}, 2, &device));
    order o = joined(order_of(acc, keep & f->all), order_of(acc, keep & ~f->all),
                     order_of(f, keep & ~acc->all));
    LM_TRY(make(S, &made, device, c->dtype, &o, c->size));
    luma_status status = multiply(S, &made, acc, f, c->size);
    if (status != LUMA_OK) {
        drop(S, &made);
        return status;
    }
    drop(S, acc);
    *acc = made;
    return LUMA_OK;
}

static luma_status alone(chain *c, factor *acc, factor *to) {
    order o = joined(order_of(to, to->all), by_stride(acc, ~to->all), (order){.n = 0});
    luma_tensor x = seen(acc, &o, c->size);
    if (o.n == to->x.layout.ndim) return lm_copy(c->S, &to->x, &x);
    return sum_last(c->S, &to->x, &x, to->x.layout.ndim, c->dtype);
}

static luma_status run_chain(chain *c, factor *to) {
    factor acc, f;
    luma_status status = take(c, &acc, 0);
    if (c->n == 1 && status == LUMA_OK) status = alone(c, &acc, to);
    for (int i = 1; i < c->n && status == LUMA_OK; i++) {
        status = take(c, &f, i);
        if (status == LUMA_OK) status = step(c, &acc, &f, i == c->n - 1 ? to : NULL);
        drop(c->S, &f);
    }
    drop(c->S, &acc);
    return status;
}

static void set_sizes(chain *c) {
    for (int l = 0; l < LM_LABELS; l++)
        c->size[l] = 1;
    for (int i = 0; i < c->n; i++) {
        factor f;
        set_factor(&f, c->xs[i].x, c->xs[i].label);
        for (int d = 0; d < f.x.layout.ndim; d++) {
            c->size[f.label[d]] = f.x.layout.shape[d];
            c->left[f.label[d]]++;
        }
        c->later |= f.all;
    }
}

/* The inputs of a result: what a live one may share elements with. */
static luma_status open_result(chain *c, lm_result *r, luma_tensor *out, int nout,
                               const int8_t *label) {
    int64_t shape[LUMA_MAX_DIMS];
    lm_device *device = lm_device_of(c->xs[0].x);
    const luma_tensor *inputs[1] = {c->xs[0].x};
    for (int i = 0; i < c->n; i++) {
        const luma_tensor *x = c->xs[i].x;
        lm_device *d;
        LM_TRY(lm_same_device(c->S, (const luma_tensor *[]){x, c->xs[0].x}, 2, &d));
        if (d != lm_cpu(c->S)) device = d;
        if (x->storage == out->storage && lm_layout_may_overlap(&x->layout, &out->layout))
            inputs[0] = x;
    }
    for (int i = 0; i < nout; i++)
        shape[i] = c->size[label[i]];
    return lm_result_open(c->S, r, out, device, c->dtype, nout, shape, inputs, 1, 0);
}

/* ---- the commonest one ------------------------------------------------------------------------*/

/* x itself, or *room: x with its last two dims exchanged. */
static const luma_tensor *turned(const luma_tensor *x, bool turn, luma_tensor *room) {
    if (!turn) return x;
    *room = *x;
    room->layout = lm_layout_transpose(&x->layout, x->layout.ndim - 2, x->layout.ndim - 1);
    return room;
}

luma_status lm_contract_matrices(luma_state *S, luma_tensor *out, const lm_labelled *xs, int nout,
                                 const int8_t *label, bool *done) {
    const int row = nout - 2, column = nout - 1;
    const lm_labelled *a = &xs[0], *b = &xs[1];
    *done = false;
    if (row < 0 || a->x->layout.ndim != nout || b->x->layout.ndim != nout) return LUMA_OK;
    if (a->label[row] != label[row] && a->label[column] != label[row]) {
        const lm_labelled *swap = a;
        a = b;
        b = swap;
    }
    const bool ta = a->label[row] != label[row], tb = b->label[column] != label[column];
    const int inner_a = ta ? row : column, inner_b = tb ? column : row;
    const int8_t summed = a->label[inner_a];
    if (a->label[row + column - inner_a] != label[row] || b->label[inner_b] != summed ||
        b->label[row + column - inner_b] != label[column])
        return LUMA_OK;
    for (int d = 0; d < row; d++)
        if (a->label[d] != label[d] || b->label[d] != label[d]) return LUMA_OK;
    for (int d = 0; d < nout; d++) {
        if (label[d] == summed) return LUMA_OK;
        for (int e = 0; e < d; e++)
            if (label[e] == label[d]) return LUMA_OK;
    }
    luma_tensor x, y;
    const luma_tensor *left = turned(a->x, ta, &x), *right = turned(b->x, tb, &y);
    const int64_t *sa = left->layout.shape, *sb = right->layout.shape;
    for (int d = 0; d < row; d++)
        if (sa[d] != sb[d]) return LUMA_OK;
    if (sa[row] < 2 || sa[column] < 2 || sa[column] != sb[row] || sb[column] < 2) return LUMA_OK;
    *done = true;
    luma_status status = luma_matmul(S, out, left, right);
    if (status != LUMA_OK) S->argument = 0;
    return status;
}

luma_status lm_contract(luma_state *S, luma_tensor *out, int n, const lm_labelled *xs, int nout,
                        const int8_t *label) {
    bool done = false;
    if (n == 2) {
        luma_status status = lm_contract_matrices(S, out, xs, nout, label, &done);
        if (done) return status;
    }
    chain c = {.S = S, .n = n, .xs = xs, .dtype = xs[0].x->dtype};
    lm_result r;
    factor to;
    for (int i = 1; i < n; i++)
        c.dtype = lm_dtype_promote(c.dtype, xs[i].x->dtype);
    set_sizes(&c);
    luma_status status = open_result(&c, &r, out, nout, label);
    if (status == LUMA_OK) {
        set_factor(&to, &r.work, label);
        c.out = to.all;
        status = lm_result_close(S, &r, run_chain(&c, &to));
    }
    if (status != LUMA_OK) S->argument = 0;
    return status;
}
