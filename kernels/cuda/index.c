/* index.c -- indexing on CUDA. The walk is merged, then one kernel moves its elements; what is
** written twice is sorted out before: the last writer of each place is found through a table, sums
** of floats and other joins run over writers sorted by place. Layer: kernels/cuda. */
#include <string.h>

#include "passes.h"

/* A walked dim: its size, and steps in bytes, of numbers of places and writers, and of positions in
** index tensors. */
typedef struct {
    int64_t n, plain, indexed, number, writer;
    int64_t index[LUMA_MAX_DIMS], position[LUMA_MAX_DIMS];
    bool moves; /* an index does along it, or nothing else does in `indexed` */
} axis;

typedef struct {
    luma_state *S;
    lm_cuda *c;
    const lm_index *w;
    int64_t size; /* bytes of an element */
    int n;
    axis axes[LUMA_MAX_DIMS];
    int64_t writers, places; /* how many; those along dims that move */
    int64_t unit;            /* bytes of what a kernel moves at a time */
    lm_fault *faults[LUMA_MAX_DIMS];
} job;

/* ---- the plan --------------------------------------------------------------------------------*/

/* Steps in row-major order of an index tensor along the walked dims. Its dims with a step in memory
** are, in order, those of the walk that have one; along others all values are the same. */
static void set_positions(axis *axes, int ndim, const lm_index_part *part, int p) {
    const luma_layout *x = &part->index.layout;
    int64_t step = 1;
    int d = ndim - 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        if (x->shape[i] > 1 && x->stride[i] != 0) {
            while (axes[d].index[p] == 0)
                d--;
            axes[d--].position[p] = step;
        }
        step *= x->shape[i];
    }
}

/* Numbers places by the dims that both move and have a step, then by index; writers by all that
** move. */
static void number(job *j) {
    j->places = j->writers = 1;
    for (int p = 0; p < j->w->n; p++)
        j->places *= j->w->parts[p].modulus;
    for (int d = j->n - 1; d >= 0; d--) {
        axis *a = &j->axes[d];
        if (!a->moves) continue;
        a->writer = j->writers;
        j->writers *= a->n;
        if (a->indexed == 0) continue;
        a->number = j->places;
        j->places *= a->n;
    }
}

static bool is_joined(const axis *a, const axis *b, int parts) {
    int64_t n = b->n;
    bool same = a->moves == b->moves && a->plain == b->plain * n && a->indexed == b->indexed * n &&
                a->number == b->number * n && a->writer == b->writer * n;
    for (int p = 0; p < parts && same; p++)
        same = a->index[p] == b->index[p] * n && a->position[p] == b->position[p] * n;
    return same;
}

/* Neighbours that are walked as one become one; returns how many are left. */
static int merge(axis *axes, int n, int parts) {
    int kept = 0;
    for (int d = 0; d < n; d++) {
        axis a = axes[d];
        if (kept > 0 && is_joined(&axes[kept - 1], &a, parts)) {
            a.n *= axes[kept - 1].n;
            axes[kept - 1] = a;
        } else {
            axes[kept++] = a;
        }
    }
    return kept;
}

static void plan(job *j) {
    const lm_index *w = j->w;
    for (int d = 0; d < w->ndim; d++) {
        axis a = {.n = w->shape[d],
                  .plain = w->plain.layout.stride[d] * j->size,
                  .indexed = w->indexed.layout.stride[d] * j->size,
                  .moves = w->indexed.layout.stride[d] == 0};
        for (int p = 0; p < w->n; p++) {
            a.index[p] = w->parts[p].stride[d] * (int64_t)lm_dtype_size(w->parts[p].index.dtype);
            a.moves = a.moves || a.index[p] != 0;
        }
        if (a.n != 1) j->axes[j->n++] = a;
    }
    for (int p = 0; p < w->n; p++)
        set_positions(j->axes, j->n, &w->parts[p], p);
    if (w->kind != LM_INDEX_READ) number(j);
    j->n = merge(j->axes, j->n, w->n);
}

/* ---- arguments -------------------------------------------------------------------------------*/

/* Where kernels note what is wrong with the indices; each part once. */
static void watch(job *j) {
    for (int p = 0; p < j->w->n; p++) {
        const lm_index_part *part = &j->w->parts[p];
        if (!part->known)
            j->faults[p] =
                lm_cuda_watch(j->c, j->w->op, part->index.layout.ndim, part->index.layout.shape);
    }
}

/* The walk over n axes. numbers: `indexed` counts places. */
static lm_args_index arguments(const job *j, int n, const axis *axes, bool numbers) {
    const lm_index *w = j->w;
    lm_args_index a = {.plain = lm_data(&w->plain),
                       .indexed = lm_data(&w->indexed),
                       .op = (int32_t)w->op,
                       .n = w->n,
                       .index_base = w->index_base};
    int64_t shape[LUMA_MAX_DIMS], step = 1;
    const int64_t *strides[3 + 2 * LUMA_MAX_DIMS];
    int nstrides = 0;
    for (int p = w->n - 1; p >= 0; p--) {
        const lm_index_part *part = &w->parts[p];
        a.parts[p] = (lm_args_index_part){.data = lm_data(&part->index),
                                          .fault = j->faults[p],
                                          .size = part->size,
                                          .step = numbers ? step : part->step * j->size,
                                          .divisor = part->divisor,
                                          .modulus = part->modulus,
                                          .dtype = (int32_t)part->index.dtype,
                                          .argument = part->argument};
        step *= part->modulus;
        strides[nstrides++] = a.parts[p].stride;
        strides[nstrides++] = a.parts[p].position;
    }
    strides[nstrides++] = a.plain_stride;
    strides[nstrides++] = a.indexed_stride;
    strides[nstrides++] = a.writer_stride;
    for (int d = 0; d < n; d++) {
        shape[d] = axes[d].n;
        a.plain_stride[d] = axes[d].plain;
        a.indexed_stride[d] = numbers ? axes[d].number : axes[d].indexed;
        a.writer_stride[d] = axes[d].writer;
        for (int p = 0; p < w->n; p++) {
            a.parts[p].stride[d] = axes[d].index[p];
            a.parts[p].position[d] = axes[d].position[p];
        }
    }
    lm_walk_set(&a.walk, n, shape, nstrides, strides);
    return a;
}

/* The axes that move, or those that do not. */
static int choose(const job *j, bool moves, axis *axes) {
    int n = 0;
    for (int d = 0; d < j->n; d++)
        if (j->axes[d].moves == moves) axes[n++] = j->axes[d];
    return merge(axes, n, j->w->n);
}

static lm_args_index writer_arguments(const job *j, bool numbers) {
    axis axes[LUMA_MAX_DIMS];
    return arguments(j, choose(j, true, axes), axes, numbers);
}

/* ---- moving ----------------------------------------------------------------------------------*/

/* Rows without gaps move as units of up to 16 bytes, where everything is a multiple of them. */
static void widen(job *j) {
    j->unit = j->size;
    if (j->n == 0) return;
    axis *row = &j->axes[j->n - 1];
    if (row->moves || row->plain != j->size || row->indexed != j->size) return;
    uint64_t bits = (uint64_t)(uintptr_t)lm_data(&j->w->plain) |
                    (uint64_t)(uintptr_t)lm_data(&j->w->indexed) | (uint64_t)(row->n * j->size);
    for (int d = 0; d < j->n - 1; d++)
        bits |= (uint64_t)j->axes[d].plain | (uint64_t)j->axes[d].indexed;
    for (int p = 0; p < j->w->n; p++)
        bits |= (uint64_t)(j->w->parts[p].step * j->size);
    while (j->unit < 16 && (bits & (uint64_t)j->unit) == 0)
        j->unit *= 2;
    row->n = row->n * j->size / j->unit;
    row->plain = row->indexed = j->unit;
}

#define LAUNCH_SIZED(j, name, a)                                                                   \
    do {                                                                                           \
        lm_shape shape_ = lm_cuda_shape((j)->c, (a)->walk.n, 1, 256);                              \
        switch ((j)->unit) {                                                                       \
        case 1:                                                                                    \
            return LM_LAUNCH((j)->S, (j)->c, name##_1, shape_, (a));                               \
        case 2:                                                                                    \
            return LM_LAUNCH((j)->S, (j)->c, name##_2, shape_, (a));                               \
        case 4:                                                                                    \
            return LM_LAUNCH((j)->S, (j)->c, name##_4, shape_, (a));                               \
        case 8:                                                                                    \
            return LM_LAUNCH((j)->S, (j)->c, name##_8, shape_, (a));                               \
        default:                                                                                   \
            return LM_LAUNCH((j)->S, (j)->c, name##_16, shape_, (a));                              \
        }                                                                                          \
    } while (0)

static luma_status read_all(job *j) {
    widen(j);
    lm_args_index a = arguments(j, j->n, j->axes, false);
    LAUNCH_SIZED(j, index_read, &a);
}

static luma_status write_all(job *j, const lm_args_index *claims) {
    widen(j);
    lm_args_index a = arguments(j, j->n, j->axes, false);
    if (claims) {
        a.slots = claims->slots;
        a.last = claims->last;
        a.wide_writers = claims->wide_writers;
    }
    LAUNCH_SIZED(j, index_write, &a);
}

/* The table of places: one slot for each, if they are not many more than writers, else a hash table
** twice as large as needed. Returns its bytes; a NULL base only counts. */
static size_t carve_claims(const job *j, lm_args_index *a, char *base) {
    size_t end = 0;
    uint64_t writers = (uint64_t)j->writers, places = (uint64_t)j->places;
    bool hashed = places > 4 * writers + (64 << 10);
    a->nslots = places;
    if (hashed) {
        a->nslots = 64;
        while (a->nslots < 2 * writers)
            a->nslots *= 2;
    }
    uint64_t most = (uint64_t)j->c->narrow;
    a->wide_writers = writers >= most || a->nslots >= most;
    size_t size = a->wide_writers ? 8 : 4;
    a->slots = lm_carve(base, &end, writers * size);
    a->last = lm_carve(base, &end, (a->nslots + 1) / 2 * 2 * size);
    if (hashed) a->places = lm_carve(base, &end, a->nslots * sizeof *a->places);
    return end;
}

static luma_status claim(job *j, lm_args_index *a) {
    int64_t words = (int64_t)((a->nslots + 1) / 2) * (a->wide_writers ? 2 : 1);
    LM_TRY(lm_radix_set(j->S, j->c, a->last, words, 0));
    if (a->places) LM_TRY(lm_radix_set(j->S, j->c, a->places, (int64_t)a->nslots, UINT64_MAX));
    lm_shape shape = lm_cuda_shape(j->c, j->writers, 1, 256);
    return a->wide_writers ? LM_LAUNCH(j->S, j->c, index_claim_64, shape, a)
                           : LM_LAUNCH(j->S, j->c, index_claim_32, shape, a);
}

static luma_status write_last(job *j) {
    lm_storage *memory;
    lm_args_index claims = writer_arguments(j, true);
    LM_TRY(lm_cuda_scratch(j->S, j->c, carve_claims(j, &claims, NULL), &memory));
    carve_claims(j, &claims, memory->data);
    luma_status status = claim(j, &claims);
    memset(j->faults, 0, sizeof j->faults); /* noted by now */
    if (status == LUMA_OK) status = write_all(j, &claims);
    lm_storage_release(memory);
    return status;
}

/* ---- adding ----------------------------------------------------------------------------------*/

static luma_status add_atomically(const job *j) {
    lm_args_index a = arguments(j, j->n, j->axes, false);
    lm_shape shape = lm_cuda_shape(j->c, a.walk.n, 1, 256);
    switch (j->w->plain.dtype) {
    case LUMA_INT32:
        return LM_LAUNCH(j->S, j->c, index_add_i32, shape, &a);
    case LUMA_UINT32:
        return LM_LAUNCH(j->S, j->c, index_add_u32, shape, &a);
    default:
        return LM_LAUNCH(j->S, j->c, index_add_i64, shape, &a);
    }
}

static luma_status add_sorted(const job *j, const lm_args_index_add *a) {
    lm_shape shape = lm_cuda_shape(j->c, a->index.walk.n * a->rest.n, 1, 256);
    switch (j->w->plain.dtype) {
    case LUMA_BOOL:
    case LUMA_UINT8:
        return LM_LAUNCH(j->S, j->c, index_sum_u8, shape, a);
    case LUMA_INT8:
        return LM_LAUNCH(j->S, j->c, index_sum_i8, shape, a);
    case LUMA_INT16:
        return LM_LAUNCH(j->S, j->c, index_sum_i16, shape, a);
    case LUMA_INT32:
        return LM_LAUNCH(j->S, j->c, index_sum_i32, shape, a);
    case LUMA_UINT32:
        return LM_LAUNCH(j->S, j->c, index_sum_u32, shape, a);
    case LUMA_INT64:
        return LM_LAUNCH(j->S, j->c, index_sum_i64, shape, a);
    case LUMA_FLOAT32:
        return LM_LAUNCH(j->S, j->c, index_sum_f32, shape, a);
    default:
        return LM_LAUNCH(j->S, j->c, index_sum_f64, shape, a);
    }
}

/* The keys by which writers are sorted, and the walk over the dims where no index moves. */
static lm_args_index_add add_arguments(const job *j) {
    axis axes[LUMA_MAX_DIMS];
    int64_t shape[LUMA_MAX_DIMS];
    lm_args_index_add a = {.index = writer_arguments(j, true), .nplaces = (uint64_t)j->places};
    int n = choose(j, false, axes);
    for (int d = 0; d < n; d++) {
        shape[d] = axes[d].n;
        a.rest_plain[d] = axes[d].plain;
        a.rest_indexed[d] = axes[d].indexed;
    }
    lm_walk_set(&a.rest, n, shape, 2, (const int64_t *const[]){a.rest_plain, a.rest_indexed});
    a.inner = j->n > 0 && !j->axes[j->n - 1].moves;
    a.join = (int32_t)(j->w->kind - LM_INDEX_ADD);
    return a;
}

static luma_status add_in_order(job *j, lm_args_radix *r, lm_radix_kind kind, int bits) {
    lm_args_index_add a = add_arguments(j);
    lm_shape shape = lm_cuda_shape(j->c, j->writers, 1, 256);
    a.keys = r->keys[0];
    LM_TRY(kind == LM_RADIX_NARROW ? LM_LAUNCH(j->S, j->c, index_places_narrow, shape, &a)
                                   : LM_LAUNCH(j->S, j->c, index_places_wide, shape, &a));
    LM_TRY(lm_radix_set(j->S, j->c, r->varies, 1, UINT64_MAX));
    LM_TRY(lm_radix_run(j->S, j->c, r, kind, bits));
    int side = (bits + 7) / 8 % 2;
    memset(j->faults, 0, sizeof j->faults); /* noted by now */
    a.index = writer_arguments(j, false);
    a.keys = r->keys[side];
    a.at = r->at[side];
    a.wide_keys = kind != LM_RADIX_NARROW;
    a.wide_at = kind == LM_RADIX_WIDE;
    return add_sorted(j, &a);
}

static luma_status add_all(job *j) {
    luma_dtype dtype = j->w->plain.dtype;
    if (j->w->kind == LM_INDEX_ADD && !lm_dtype_is_float(dtype) && j->size >= 4)
        return add_atomically(j);
    int bits = 64 - __builtin_clzll((uint64_t)j->places | 1);
    lm_radix_kind kind = lm_radix_kind_of(j->c, bits, j->writers);
    lm_args_radix r = {.n = j->writers, .rows = 1};
    lm_storage *memory;
    size_t nbytes = 0, end = 0;
    LM_TRY(lm_radix_fits(j->S, j->writers));
    lm_radix_carve(&r, kind, NULL, &nbytes);
    LM_TRY(lm_cuda_scratch(j->S, j->c, nbytes, &memory));
    lm_radix_carve(&r, kind, memory->data, &end);
    luma_status status = add_in_order(j, &r, kind, bits);
    lm_storage_release(memory);
    return status;
}

/* ---- the slots -------------------------------------------------------------------------------*/

/* Nothing moves, but indices may be wrong. */
static luma_status check_all(const job *j) {
    for (int p = 0; p < j->w->n; p++) {
        const lm_index_part *part = &j->w->parts[p];
        const luma_layout *x = &part->index.layout;
        if (part->known || luma_numel(&part->index) == 0) continue;
        lm_index alone = *j->w;
        alone.n = 1;
        alone.parts[0] = *part;
        axis axes[LUMA_MAX_DIMS] = {{.n = 0}};
        for (int d = 0; d < x->ndim; d++) {
            axes[d].n = x->shape[d];
            if (x->shape[d] > 1)
                axes[d].index[0] = x->stride[d] * (int64_t)lm_dtype_size(part->index.dtype);
        }
        set_positions(axes, x->ndim, part, 0);
        job one = {.S = j->S, .c = j->c, .w = &alone, .faults = {j->faults[p]}};
        lm_args_index a = arguments(&one, x->ndim, axes, true);
        LM_TRY(LM_LAUNCH(j->S, j->c, index_check, lm_cuda_shape(j->c, a.walk.n, 1, 256), &a));
    }
    return LUMA_OK;
}

static luma_status run(job *j) {
    watch(j);
    if (luma_numel(&j->w->plain) == 0) return check_all(j);
    plan(j);
    switch (j->w->kind) {
    case LM_INDEX_READ:
        return read_all(j);
    case LM_INDEX_WRITE:
        return j->writers == 1 ? write_all(j, NULL) : write_last(j);
    default:
        return add_all(j);
    }
}

luma_status lm_cuda_index(luma_state *S, lm_device *d, const lm_index *w) {
    job j = {.S = S, .c = lm_cuda_of(d), .w = w, .size = (int64_t)lm_dtype_size(w->plain.dtype)};
    LM_TRY(lm_cuda_enter(S, j.c));
    luma_status status = run(&j);
    lm_cuda_leave(j.c);
    return status;
}
