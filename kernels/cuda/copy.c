/* copy.c -- the copy and fill slots of CUDA. Bytes side by side go by the driver's own copy; rows in
** the widest elements that both sides allow; where the sides run along different dims, by tiles that
** are turned; conversions as elementwise work. Layer: kernels/cuda. */
#include "elementwise.h"

#include <string.h>

#define WIDEST 16           /* bytes of an element of copy.cu */
#define WORTH_TILE 8        /* a dim shorter than this is no side of a tile */
#define WORTH_TURNING 65536 /* elements: fewer stay in the caches, whatever the order */
#define SIDE_BY_SIDE 32 /* bytes of a sector of memory: strides below it share what is fetched */

/* ---- plans -----------------------------------------------------------------------------------*/

/* Two views of one shape, innermost dim last; strides in bytes, elements of `size`. */
typedef struct {
    char *y;
    const char *x;
    int64_t size;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS], ys[LUMA_MAX_DIMS], xs[LUMA_MAX_DIMS];
} pair;

static int64_t numel_of(const pair *p) {
    int64_t n = 1;
    for (int d = 0; d < p->ndim; d++)
        n *= p->shape[d];
    return n;
}

static bool is_flat(const pair *p) {
    return p->ndim == 0 || (p->ndim == 1 && p->ys[0] == p->size && p->xs[0] == p->size);
}

/* Elements that lie together on both sides move as one. */
static void widen(pair *p) {
    int q = p->ndim - 1;
    if (q < 0 || p->ys[q] != p->size || p->xs[q] != p->size) return;
    uint64_t bits =
        (uint64_t)(uintptr_t)p->y | (uint64_t)(uintptr_t)p->x | (uint64_t)(p->shape[q] * p->size);
    for (int d = 0; d < q; d++)
        bits |= (uint64_t)p->ys[d] | (uint64_t)p->xs[d];
    int64_t wide = WIDEST;
    while (bits % (uint64_t)wide != 0)
        wide /= 2;
    p->shape[q] = p->shape[q] * p->size / wide;
    p->size = p->ys[q] = p->xs[q] = wide;
    if (p->shape[q] == 1) p->ndim--;
}

/* The dim along which x advances in the smallest steps. */
static int source_dim(const pair *p) {
    int best = p->ndim - 1;
    for (int d = best - 1; d >= 0; d--) {
        if (p->xs[d] != 0 && (p->xs[best] == 0 || lm_abs(p->xs[d]) < lm_abs(p->xs[best]))) best = d;
    }
    return best;
}

static bool wants_tiles(const pair *p) {
    if (p->ndim < 2 || p->size > 8) return false;
    int q = p->ndim - 1, k = source_dim(p);
    return k != q && p->xs[q] != 0 && lm_abs(p->xs[k]) < SIDE_BY_SIDE &&
           lm_abs(p->ys[q]) < SIDE_BY_SIDE && p->shape[k] >= WORTH_TILE &&
           p->shape[q] >= WORTH_TILE;
}

/* ---- kernels ---------------------------------------------------------------------------------*/

static luma_status run_elements(luma_state *S, lm_cuda *c, const pair *p) {
    lm_args_copy a;
    lm_walk_set(&a.walk, p->ndim, p->shape, 2, (const int64_t *const[]){p->ys, p->xs});
    a.x = p->x;
    a.y = p->y;
    for (int d = 0; d < p->ndim; d++) {
        a.x_stride[d] = p->xs[d];
        a.y_stride[d] = p->ys[d];
    }
    lm_shape shape = lm_cuda_shape(c, a.walk.n, 1, LM_MAP_BLOCK);
    switch (p->size) {
    case 1:
        return LM_LAUNCH(S, c, copy_1, shape, &a);
    case 2:
        return LM_LAUNCH(S, c, copy_2, shape, &a);
    case 4:
        return LM_LAUNCH(S, c, copy_4, shape, &a);
    case 8:
        return LM_LAUNCH(S, c, copy_8, shape, &a);
    default:
        return LM_LAUNCH(S, c, copy_16, shape, &a);
    }
}

static luma_status run_tiles(luma_state *S, lm_cuda *c, const pair *p) {
    lm_args_turn a;
    int q = p->ndim - 1, k = source_dim(p);
    int64_t shape[LUMA_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) {
        int64_t step = d == k || d == q ? LM_TURN : 1;
        shape[d] = (p->shape[d] + step - 1) / step;
        a.x_stride[d] = p->xs[d] * step;
        a.y_stride[d] = p->ys[d] * step;
        a.p_stride[d] = d == k ? LM_TURN : 0;
        a.q_stride[d] = d == q ? LM_TURN : 0;
    }
    lm_walk_set(&a.walk, p->ndim, shape, 4,
                (const int64_t *const[]){a.x_stride, a.y_stride, a.p_stride, a.q_stride});
    a.x = p->x;
    a.y = p->y;
    a.np = p->shape[k];
    a.nq = p->shape[q];
    a.xp = p->xs[k];
    a.xq = p->xs[q];
    a.yp = p->ys[k];
    a.yq = p->ys[q];
    lm_shape grid = lm_cuda_shape(c, a.walk.n * LM_MAP_BLOCK, 1, LM_MAP_BLOCK);
    switch (p->size) {
    case 1:
        return LM_LAUNCH(S, c, turn_1, grid, &a);
    case 2:
        return LM_LAUNCH(S, c, turn_2, grid, &a);
    case 4:
        return LM_LAUNCH(S, c, turn_4, grid, &a);
    default:
        return LM_LAUNCH(S, c, turn_8, grid, &a);
    }
}

static luma_status run_bytes(luma_state *S, lm_cuda *c, const pair *p) {
    c->copies++;
    return lm_cuda_check(
        S, c,
        c->driver->cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)p->y, (CUdeviceptr)(uintptr_t)p->x,
                                        (size_t)(numel_of(p) * p->size), c->stream),
        "cuMemcpyDtoDAsync");
}

/* ---- moving ----------------------------------------------------------------------------------*/

/* The kernels cast_<to>_<from> of one `from` follow each other in the order of luma_dtype. */
static const lm_kernel first_cast[LUMA_NDTYPES] = {
#define FIRST(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_cast_b8_##token,
    LM_DTYPES(FIRST, _)
#undef FIRST
};
#define IN_ORDER(_, token, ENUM, ...)                                                              \
    _Static_assert((int)LM_K_cast_##token##_f32 - (int)LM_K_cast_b8_f32 == LUMA_##ENUM, "order");
LM_DTYPES(IN_ORDER, _)
#undef IN_ORDER

static luma_status run_cast(luma_state *S, lm_cuda *c, const lm_map *m) {
    luma_dtype to = m->operand[0].dtype, from = m->operand[1].dtype;
    int64_t a = (int64_t)lm_dtype_size(to), b = (int64_t)lm_dtype_size(from);
    lm_kernel kernel = (lm_kernel)((int)first_cast[from] + (int)to);
    return lm_cuda_map_run(S, c, kernel, m, (int)(16 / (a > b ? a : b)), LM_FAULT_NONE, NULL);
}

/* Integers that stand for elements of 1, 2, 4, 8 bytes. */
static luma_dtype bits_of(int64_t size) {
    return size == 1 ? LUMA_UINT8 : size == 2 ? LUMA_INT16 : size == 4 ? LUMA_INT32 : LUMA_INT64;
}

static pair pair_of(const lm_map *m) {
    pair p = {.y = m->operand[0].data,
              .x = m->operand[1].data,
              .size = (int64_t)lm_dtype_size(m->operand[0].dtype),
              .ndim = m->ndim};
    for (int d = 0; d < m->ndim; d++) {
        p.shape[d] = m->shape[d];
        p.ys[d] = m->operand[0].stride[d];
        p.xs[d] = m->operand[1].stride[d];
    }
    return p;
}

/* One dtype. */
static luma_status run_copy(luma_state *S, lm_cuda *c, lm_map *m) {
    pair p = pair_of(m);
    int last = p.ndim - 1;
    if (is_flat(&p)) return run_bytes(S, c, &p);
    if (p.xs[last] == 0 && p.ys[last] == p.size) { /* each element some times over */
        m->operand[0].dtype = m->operand[1].dtype = bits_of(p.size);
        return run_cast(S, c, m);
    }
    if (wants_tiles(&p)) return run_tiles(S, c, &p);
    widen(&p);
    return run_elements(S, c, &p);
}

/* Conversion along different dims: turned first, in the dtype of x. */
static luma_status turn_and_cast(luma_state *S, lm_cuda *c, lm_map *m) {
    lm_storage *scratch;
    lm_map turn = *m;
    int64_t n = 1;
    luma_dtype from = m->operand[1].dtype;
    turn.operand[0].dtype = from;
    for (int d = m->ndim - 1; d >= 0; d--) {
        turn.operand[0].stride[d] = n * (int64_t)lm_dtype_size(from);
        n *= m->shape[d];
    }
    LM_TRY(lm_cuda_scratch(S, c, (size_t)n * lm_dtype_size(from), &scratch));
    turn.operand[0].data = scratch->data;
    m->operand[1] = turn.operand[0];
    luma_status status = run_copy(S, c, &turn);
    if (status == LUMA_OK) status = run_cast(S, c, m);
    lm_storage_release(scratch);
    return status;
}

luma_status lm_cuda_move(luma_state *S, lm_cuda *c, lm_map *m) {
    m->noperands = 2;
    lm_iter_plan(m);
    for (int d = 0; d < m->ndim; d++)
        if (m->shape[d] == 0) return LUMA_OK;
    if (m->operand[0].dtype == m->operand[1].dtype) return run_copy(S, c, m);
    pair p = pair_of(m);
    p.size = (int64_t)lm_dtype_size(m->operand[1].dtype);
    if (wants_tiles(&p) && numel_of(&p) >= WORTH_TURNING) return turn_and_cast(S, c, m);
    return run_cast(S, c, m);
}

/* ---- slots -----------------------------------------------------------------------------------*/

static void set_operand(lm_map *m, int k, const luma_tensor *x) {
    lm_operand *o = &m->operand[k];
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    o->data = lm_data(x);
    o->dtype = x->dtype;
    for (int d = 0; d < m->ndim; d++) {
        m->shape[d] = x->layout.shape[d];
        o->stride[d] = x->layout.stride[d] * size;
    }
}

luma_status lm_cuda_copy(luma_state *S, lm_device *d, const luma_tensor *dst,
                         const luma_tensor *src) {
    lm_cuda *c = lm_cuda_of(d);
    lm_map m;
    m.planned = false;
    m.ndim = dst->layout.ndim;
    set_operand(&m, 0, dst);
    set_operand(&m, 1, src);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_move(S, c, &m);
    lm_cuda_leave(c);
    return status;
}

/* Contiguous memory of n elements whose bytes the driver can repeat: one byte, or four. */
static bool fill_by_driver(luma_state *S, lm_cuda *c, void *y, int64_t n, size_t size,
                           uint64_t element, luma_status *status) {
    uint64_t all = element;
    for (size_t bytes = size; bytes < 8; bytes *= 2)
        all |= all << (8 * bytes);
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)y;
    size_t nbytes = (size_t)n * size;
    if (all == (all & 0xff) * UINT64_C(0x0101010101010101))
        *status = lm_cuda_check(
            S, c, c->driver->cuMemsetD8Async(to, (unsigned char)all, nbytes, c->stream),
            "cuMemsetD8Async");
    else if (to % 4 == 0 && nbytes % 4 == 0 && (uint32_t)all == all >> 32)
        *status = lm_cuda_check(
            S, c, c->driver->cuMemsetD32Async(to, (unsigned)all, nbytes / 4, c->stream),
            "cuMemsetD32Async");
    else
        return false;
    return true;
}

static luma_status fill_view(luma_state *S, lm_cuda *c, void *y, int ndim, const int64_t *sizes,
                             const int64_t *strides, size_t size, uint64_t element) {
    lm_args_fill a;
    a.y = y;
    a.element = element;
    for (int d = 0; d < ndim; d++)
        a.stride[d] = strides[d] * (int64_t)size;
    lm_walk_set(&a.walk, ndim, sizes, 1, (const int64_t *const[]){a.stride});
    lm_shape shape = lm_cuda_shape(c, a.walk.n, 1, LM_MAP_BLOCK);
    switch (size) {
    case 1:
        return LM_LAUNCH(S, c, fill_1, shape, &a);
    case 2:
        return LM_LAUNCH(S, c, fill_2, shape, &a);
    case 4:
        return LM_LAUNCH(S, c, fill_4, shape, &a);
    default:
        return LM_LAUNCH(S, c, fill_8, shape, &a);
    }
}

luma_status lm_cuda_fill_line(luma_state *S, lm_cuda *c, void *y, int64_t n, size_t size,
                              uint64_t element) {
    luma_status status;
    if (fill_by_driver(S, c, y, n, size, element, &status)) return status;
    return fill_view(S, c, y, 1, &n, (const int64_t[]){1}, size, element);
}

luma_status lm_cuda_fill(luma_state *S, lm_device *d, const luma_tensor *dst, const void *element) {
    lm_cuda *c = lm_cuda_of(d);
    uint64_t bits = 0;
    memcpy(&bits, element, lm_dtype_size(dst->dtype));
    LM_TRY(lm_cuda_enter(S, c));
    const luma_layout *y = &dst->layout;
    size_t size = lm_dtype_size(dst->dtype);
    luma_status status =
        luma_is_contiguous(dst)
            ? lm_cuda_fill_line(S, c, lm_data(dst), luma_numel(dst), size, bits)
            : fill_view(S, c, lm_data(dst), y->ndim, y->shape, y->stride, size, bits);
    lm_cuda_leave(c);
    return status;
}
