/* matmul.c -- the matmul slot of CUDA devices: merges batch dims, copies what cannot be read as it
** lies, and gives the product to cuBLAS or, for integers, float8 and where there is no cuBLAS, to
** the kernel of typed/gemm.cu, which reads any layout. Layer: kernels/cuda. */
#include <string.h>

#include "blas.h"

#define TILE 64         /* rows and columns of a block, as in gemm.cu */
#define THREADS 256     /* of a block */
#define FEW 16          /* rows of a skinny product */
#define ENOUGH_JOBS 512 /* blocks that fill a device */
#define SHORT_PIECE 256 /* values of k that are worth a block */
#define LONG_PIECE ((int64_t)1 << 30)

/* Operands as they are multiplied: views of the slot's, or copies in scratch memory. */
typedef struct {
    luma_state *S;
    lm_cuda *c;
    luma_tensor a, b, out;
    lm_storage *scratch[10];
    int nscratch;
} work;

/* ---- copies --------------------------------------------------------------------------------- */

/* A tensor in scratch memory with the shape of x; batch dims that repeat are there once. */
static luma_status make_scratch(work *w, luma_tensor *x, luma_dtype dtype) {
    luma_layout *l = &x->layout;
    luma_layout once = *l;
    int64_t numel;
    for (int d = 0; d < l->ndim - 2; d++)
        if (l->stride[d] == 0) once.shape[d] = 1;
    if (!lm_numel_fits(once.ndim, once.shape, dtype, &numel))
        return lm_fail(w->S, LUMA_ERR_MEMORY, 0, "%s: a copy of an operand is too big",
                       w->c->device->name);
    lm_storage *memory;
    LM_TRY(lm_cuda_scratch(w->S, w->c, (size_t)numel * lm_dtype_size(dtype), &memory));
    w->scratch[w->nscratch++] = memory;
    once = lm_layout_contiguous(once.ndim, once.shape);
    x->storage = memory;
    x->dtype = dtype;
    *l = lm_layout_expand(&once, l->ndim, l->shape);
    return LUMA_OK;
}

/* x becomes a copy of itself that any kernel reads. */
static luma_status bring(work *w, luma_tensor *x, luma_dtype dtype) {
    luma_tensor from = *x;
    LM_TRY(make_scratch(w, x, dtype));
    luma_tensor to = *x;
    for (int d = 0; d < x->layout.ndim - 2; d++) {
        if (to.layout.stride[d] == 0) to.layout.shape[d] = from.layout.shape[d] = 1;
    }
    w->c->products[LM_PRODUCT_COPY]++;
    return lm_copy(w->S, &to, &from);
}

/* Whether every element of `from` is one of `to`. */
static bool holds(luma_dtype to, luma_dtype from) {
    if (lm_dtype_is_float(from) || !lm_dtype_is_float(to) || lm_dtype_size(to) > 2) return true;
    return lm_dtype_size(from) == 1 && lm_dtype_size(to) == 2;
}

/* The dtype that both operands are multiplied in. Wide integers meet small floats in float32, which
** the sums have anyway. */
static luma_dtype meeting_dtype(const luma_tensor *out, const luma_tensor *a,
                                const luma_tensor *b) {
    return holds(out->dtype, a->dtype) && holds(out->dtype, b->dtype) ? out->dtype : LUMA_FLOAT32;
}

/* ---- the product of three tensors ----------------------------------------------------------- */

static int64_t stride(const luma_tensor *x, int d) {
    return x->layout.shape[d] == 1 ? 0 : x->layout.stride[d];
}

/* Batch dims of more than one position; neighbours that all three walk as one are merged. */
static void add_batch(lm_product *p, const work *w, int d) {
    const int64_t count = w->out.layout.shape[d];
    const int64_t a = stride(&w->a, d), b = stride(&w->b, d), c = stride(&w->out, d);
    int t = p->nbatch - 1;
    if (count == 1) return;
    if (t < 0 || p->a_batch[t] != count * a || p->b_batch[t] != count * b ||
        p->c_batch[t] != count * c) {
        t = p->nbatch++;
        p->batch[t] = 1;
    }
    p->batch[t] *= count;
    p->a_batch[t] = a;
    p->b_batch[t] = b;
    p->c_batch[t] = c;
}

static void make_product(lm_product *p, const work *w) {
    const int row = w->out.layout.ndim - 2, column = row + 1;
    p->dtype = w->a.dtype;
    p->c_dtype = w->out.dtype;
    p->a = lm_data(&w->a);
    p->b = lm_data(&w->b);
    p->c = lm_data(&w->out);
    p->m = w->out.layout.shape[row];
    p->n = w->out.layout.shape[column];
    p->k = w->a.layout.shape[column];
    p->a_row = stride(&w->a, row), p->a_column = stride(&w->a, column);
    p->b_row = stride(&w->b, row), p->b_column = stride(&w->b, column);
    p->c_row = stride(&w->out, row), p->c_column = stride(&w->out, column);
    p->nbatch = 0;
    for (int d = 0; d < row; d++)
        add_batch(p, w, d);
}

static void drop_batch(lm_product *p, int d) {
    p->nbatch--;
    for (; d < p->nbatch; d++) {
        p->batch[d] = p->batch[d + 1];
        p->a_batch[d] = p->a_batch[d + 1];
        p->b_batch[d] = p->b_batch[d + 1];
        p->c_batch[d] = p->c_batch[d + 1];
    }
}

/* Matrices that share b and follow each other row by row, in a and in c, are one matrix. */
static bool fold_rows(lm_product *p, int d) {
    const bool one = p->m == 1; /* any stride does */
    if (p->b_batch[d] != 0) return false;
    if (!one && (p->a_batch[d] != p->m * p->a_row || p->c_batch[d] != p->m * p->c_row))
        return false;
    if (one) {
        p->a_row = p->a_batch[d];
        p->c_row = p->c_batch[d];
    }
    p->m *= p->batch[d];
    drop_batch(p, d);
    return true;
}

/* Folds what can be folded; for cuBLAS only as long as it reads what becomes of it. */
static void fold(lm_product *p, bool blas) {
    for (int d = p->nbatch - 1; d >= 0; d--) {
        for (int turn = 0; turn < 2; turn++) {
            lm_product folded = *p;
            if (turn) lm_product_turn(&folded);
            if (!fold_rows(&folded, d)) continue;
            if (turn) lm_product_turn(&folded);
            if (blas && !(lm_blas_reads_a(&folded) && lm_blas_reads_b(&folded) &&
                          lm_blas_writes_c(&folded)))
                continue;
            *p = folded;
            break;
        }
    }
}

/* ---- luma's own kernel ---------------------------------------------------------------------- */

#define GEMM(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_gemm_##token,
#define GEMM_SUM(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_gemm_sum_##token,
static const lm_kernel gemm[LUMA_NDTYPES] = {LM_INTS(GEMM, _) LM_FLOATS(GEMM, _)};
static const lm_kernel gemm_sum[LUMA_NDTYPES] = {LM_INTS(GEMM_SUM, _) LM_FLOATS(GEMM_SUM, _)};
#undef GEMM
#undef GEMM_SUM

static void to_bytes(int64_t *out, const int64_t *strides, int n, int64_t size) {
    for (int d = 0; d < n; d++)
        out[d] = strides[d] * size;
}

/* Few sums of many values are cut along k, by sizes alone: pieces are added in their order. */
static void cut(lm_args_gemm *g) {
    const int64_t tiles = g->tiles_m * g->tiles_n * g->batch.n;
    int64_t want = tiles < ENOUGH_JOBS ? lm_ceil_div(ENOUGH_JOBS, tiles) : 1;
    want = lm_max(lm_min(want, g->k / SHORT_PIECE), lm_ceil_div(g->k, LONG_PIECE));
    g->piece = lm_ceil_div(g->k, lm_max(want, 1));
    g->pieces = lm_ceil_div(g->k, g->piece);
    g->jobs = tiles * g->pieces;
}

static luma_status add_pieces(work *w, const lm_product *p, const lm_args_gemm *g) {
    const int64_t size = (int64_t)lm_dtype_size(p->c_dtype);
    int64_t shape[LUMA_MAX_DIMS];
    lm_args_gemm_sum s;
    const int64_t *const strides[] = {s.c_stride};
    memcpy(shape, p->batch, (size_t)p->nbatch * sizeof *shape);
    shape[p->nbatch] = p->m;
    shape[p->nbatch + 1] = p->n;
    to_bytes(s.c_stride, p->c_batch, p->nbatch, size);
    s.c_stride[p->nbatch] = p->c_row * size;
    s.c_stride[p->nbatch + 1] = p->c_column * size;
    s.sums = g->sums;
    s.c = p->c;
    s.pieces = g->pieces;
    lm_walk_set(&s.walk, p->nbatch + 2, shape, 1, strides);
    return lm_cuda_launch(w->S, w->c, gemm_sum[p->dtype], lm_cuda_shape(w->c, s.walk.n, 1, THREADS),
                          &s);
}

static luma_status own_product(work *w, lm_product *p) {
    fold(p, false);
    /* a block has few rows cheaper than few columns, and writes neighbours along them */
    const bool few = p->n < p->m && p->n <= FEW, many = p->m > FEW;
    if (few || (many && p->c_column != 1 && p->c_row == 1)) lm_product_turn(p);
    const int64_t size = (int64_t)lm_dtype_size(p->dtype);
    lm_args_gemm g = {.a = p->a, .b = p->b, .c = p->c, .m = p->m, .n = p->n, .k = p->k};
    g.a_row = p->a_row, g.a_column = p->a_column;
    g.b_row = p->b_row, g.b_column = p->b_column;
    g.c_row = p->c_row, g.c_column = p->c_column;
    g.a_along = p->k > 1 && (p->m == 1 || lm_abs(p->a_column) < lm_abs(p->a_row));
    g.b_along = p->k > 1 && (p->n == 1 || lm_abs(p->b_row) < lm_abs(p->b_column));
    g.tiles_m = lm_ceil_div(p->m, TILE);
    g.tiles_n = lm_ceil_div(p->n, TILE);
    to_bytes(g.a_batch, p->a_batch, p->nbatch, size);
    to_bytes(g.b_batch, p->b_batch, p->nbatch, size);
    to_bytes(g.c_batch, p->c_batch, p->nbatch, size);
    const int64_t *const strides[] = {g.a_batch, g.b_batch, g.c_batch};
    lm_walk_set(&g.batch, p->nbatch, p->batch, 3, strides);
    cut(&g);
    if (g.pieces > 1) {
        const size_t sum = lm_dtype_size(p->dtype) == 8 ? 8 : 4;
        LM_TRY(lm_cuda_scratch(w->S, w->c, (size_t)(g.pieces * g.batch.n * g.m * g.n) * sum,
                               &w->scratch[w->nscratch]));
        g.sums = w->scratch[w->nscratch++]->data;
    }
    const lm_shape shape = {{(unsigned)lm_min(g.jobs, INT32_MAX), 1, 1}, THREADS, 0};
    w->c->products[LM_PRODUCT_OWN]++;
    LM_TRY(lm_cuda_launch(w->S, w->c, gemm[p->dtype], shape, &g));
    return g.pieces > 1 ? add_pieces(w, p, &g) : LUMA_OK;
}

/* ---- the slot ------------------------------------------------------------------------------- */

/* Makes what cuBLAS cannot read or write as it lies. */
static luma_status prepare(work *w, lm_product *p) {
    const luma_dtype dtype = w->a.dtype;
    make_product(p, w);
    if (!lm_blas_reads_a(p)) LM_TRY(bring(w, &w->a, dtype));
    if (!lm_blas_reads_b(p)) LM_TRY(bring(w, &w->b, dtype));
    if (!lm_blas_writes_c(p)) LM_TRY(make_scratch(w, &w->out, w->out.dtype));
    make_product(p, w);
    if (p->c_dtype == dtype && lm_dtype_size(dtype) == 2 && lm_blas_adds_to_c(w->c, p)) {
        LM_TRY(make_scratch(w, &w->out, LUMA_FLOAT32));
        make_product(p, w);
    }
    return LUMA_OK;
}

static luma_status blas_product(work *w, bool *done) {
    lm_product p;
    bool ready;
    *done = false;
    LM_TRY(lm_blas_open(w->S, w->c, w->a.dtype, &ready));
    if (!ready) return LUMA_OK;
    LM_TRY(prepare(w, &p));
    fold(&p, true);
    LM_TRY(lm_blas_multiply(w->S, w->c, &p, done));
    if (*done) w->c->products[LM_PRODUCT_BLAS]++;
    return LUMA_OK;
}

/* All three in the dtype in which the operands meet. */
static luma_status meet_and_multiply(work *w) {
    const luma_dtype dtype = meeting_dtype(&w->out, &w->a, &w->b);
    lm_product p;
    bool done;
    if (w->a.dtype != dtype) LM_TRY(bring(w, &w->a, dtype));
    if (w->b.dtype != dtype) LM_TRY(bring(w, &w->b, dtype));
    if (w->out.dtype != dtype) LM_TRY(make_scratch(w, &w->out, dtype));
    const luma_tensor out = w->out;
    LM_TRY(blas_product(w, &done));
    if (done) return LUMA_OK;
    w->out = out;
    make_product(&p, w);
    return own_product(w, &p);
}

/* Operands of 2 bytes whose sums are wanted in float32: cuBLAS takes them as they are. */
static bool is_mixed(const work *w) {
    return w->out.dtype == LUMA_FLOAT32 && w->a.dtype == w->b.dtype &&
           lm_dtype_is_float(w->a.dtype) && lm_dtype_size(w->a.dtype) == 2;
}

static luma_status run(work *w, const luma_tensor *out) {
    bool done = false;
    if (is_mixed(w)) LM_TRY(blas_product(w, &done));
    if (!done) {
        w->out = *out;
        LM_TRY(meet_and_multiply(w));
    }
    if (w->out.storage == out->storage) return LUMA_OK;
    luma_tensor c = *out;
    w->c->products[LM_PRODUCT_COPY]++;
    return lm_copy(w->S, &c, &w->out);
}

luma_status lm_cuda_matmul(luma_state *S, lm_device *d, const luma_tensor *out,
                           const luma_tensor *a, const luma_tensor *b) {
    work w = {.S = S, .c = lm_cuda_of(d), .a = *a, .b = *b, .out = *out};
    if (luma_numel(out) == 0) return LUMA_OK;
    if (a->layout.shape[a->layout.ndim - 1] == 0)
        return lm_fill(S, &w.out, (luma_scalar){.kind = LUMA_IS_INT});
    LM_TRY(lm_cuda_enter(S, w.c));
    luma_status status = run(&w, out);
    for (int i = 0; i < w.nscratch; i++)
        lm_storage_release(w.scratch[i]);
    lm_cuda_leave(w.c);
    return status;
}
