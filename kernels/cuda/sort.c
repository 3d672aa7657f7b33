/* sort.c -- sort and topk on CUDA. Short rows are sorted by a warp or a block each; long ones by a
** radix sort from the lowest digit, in batches of rows; where few of a long row are wanted, a
** selection from the highest digit comes first. Layer: kernels/cuda. */
#include <string.h>

#include "passes.h"

#define WARP_MAX 32
#define BLOCK_MAX 2048            /* elements of a row that a block sorts in shared memory */
#define BATCH ((size_t)256 << 20) /* bytes of scratch memory from which on rows wait */
#define GRID_MAX (1 << 30)

typedef struct {
    luma_state *S;
    lm_cuda *c;
    lm_args_sort args;
    int64_t rows; /* all of them; args.rows are those of a batch */
    int bits;     /* of a key */
} job;

/* ---- the plan --------------------------------------------------------------------------------*/

/* The walk over rows: dims but the sorted one, merged where all tensors step through two as one. */
static void walk_rows(lm_args_sort *a, const lm_sort *s) {
    const luma_tensor *t[] = {&s->x, &s->values, &s->positions};
    int64_t *strides[] = {a->x_row, a->values_row, a->positions_row}, shape[LUMA_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < s->x.layout.ndim; d++) {
        int64_t n = s->x.layout.shape[d], step[3] = {0};
        if (d == s->dim || n == 1) continue;
        bool joined = ndim > 0;
        for (int k = 0; k < 3; k++) {
            if (t[k]->storage)
                step[k] = t[k]->layout.stride[d] * (int64_t)lm_dtype_size(t[k]->dtype);
            joined = joined && strides[k][ndim - 1] == step[k] * n;
        }
        if (!joined) shape[ndim++] = 1;
        shape[ndim - 1] *= n;
        for (int k = 0; k < 3; k++)
            strides[k][ndim - 1] = step[k];
    }
    lm_walk_set(&a->walk, ndim, shape, 3,
                (const int64_t *const[]){strides[0], strides[1], strides[2]});
}

static void *place(const luma_tensor *t, int dim, int64_t *step) {
    if (!t->storage) return NULL;
    *step = t->layout.stride[dim] * (int64_t)lm_dtype_size(t->dtype);
    return lm_data(t);
}

static void plan(job *j, const lm_sort *s) {
    lm_args_sort *a = &j->args;
    size_t size = lm_dtype_size(s->x.dtype);
    *a = (lm_args_sort){.n = s->x.layout.shape[s->dim],
                        .k = s->from + s->k,
                        .from = s->from,
                        .flip = s->descending ? UINT64_MAX >> (64 - 8 * size) : 0,
                        .dtype = (int32_t)s->x.dtype,
                        .log = __builtin_ctzll(size),
                        .index_base = s->index_base};
    walk_rows(a, s);
    a->x = place(&s->x, s->dim, &a->x_step);
    a->values = place(&s->values, s->dim, &a->values_step);
    a->positions = place(&s->positions, s->dim, &a->positions_step);
    j->bits = 8 * (int)size;
    j->rows = luma_numel(&s->x) / a->n;
}

/* ---- short rows ------------------------------------------------------------------------------*/

static int32_t power_of_two(int64_t n) {
    int32_t width = 1;
    while (width < n)
        width *= 2;
    return width;
}

/* rows->rows rows of rows->n from number rows->first on. narrow: in keys of 32 bits. */
static luma_status sort_batch(const job *j, const lm_args_sort *rows, bool narrow) {
    lm_args_sort a = *rows;
    bool warps = a.n <= WARP_MAX && !a.keys;
    a.width = power_of_two(a.n);
    if (!warps && a.width < 64) a.width = 64;
    lm_shape shape = {.grid = {(unsigned)a.rows, 1, 1}, .block = 256};
    if (warps) {
        shape.grid.x = (unsigned)((a.rows * a.width + 255) / 256);
        return narrow ? LM_LAUNCH(j->S, j->c, sort_warp_narrow, shape, &a)
                      : LM_LAUNCH(j->S, j->c, sort_warp_wide, shape, &a);
    }
    shape.block = (unsigned)lm_min(a.width / 2, 512);
    shape.shared = (unsigned)a.width * (narrow ? 8 : 16);
    return narrow ? LM_LAUNCH(j->S, j->c, sort_block_narrow, shape, &a)
                  : LM_LAUNCH(j->S, j->c, sort_block_wide, shape, &a);
}

static luma_status sort_short(const job *j) {
    lm_args_sort a = j->args;
    for (a.first = 0; a.first < j->rows; a.first += GRID_MAX) {
        a.rows = lm_min(j->rows - a.first, GRID_MAX);
        LM_TRY(sort_batch(j, &a, j->bits <= 32));
    }
    return LUMA_OK;
}

/* ---- long rows -------------------------------------------------------------------------------*/

static int64_t parts(int64_t k) {
    return (k - 1) / LM_RADIX_BLOCK + 1;
}

static luma_status sort_rows(const job *j, const lm_args_radix_rows *a, lm_radix_kind kind) {
    const lm_args_radix *r = &a->radix;
    LM_TRY(lm_radix_set(j->S, j->c, r->varies, r->rows, 0));
    LM_TRY(LM_RADIX_LAUNCH(j->S, j->c, kind, radix_make, r->rows * r->tiles, a));
    LM_TRY(lm_radix_run(j->S, j->c, r, kind, a->bits));
    return LM_RADIX_LAUNCH(j->S, j->c, kind, radix_give, r->rows * parts(a->sort.k), a);
}

/* The first k of each row into select.best_keys and best_at, in the order of the row. */
static luma_status select_rows(const job *j, const lm_args_radix_rows *a, lm_args_select *select,
                               lm_radix_kind kind) {
    const lm_args_radix *r = &a->radix;
    int64_t tiles = r->rows * r->tiles;
    int64_t digits = r->rows * 256 * (int64_t)lm_radix_at_size(kind) / 8;
    LM_TRY(lm_radix_set(j->S, j->c, r->varies, r->rows, 0));
    LM_TRY(lm_radix_set(j->S, j->c, select->chosen, r->rows, 0));
    LM_TRY(lm_radix_set(j->S, j->c, select->wanted, r->rows, (uint64_t)select->k));
    LM_TRY(lm_radix_set(j->S, j->c, select->digits, digits, 0));
    LM_TRY(LM_RADIX_LAUNCH(j->S, j->c, kind, radix_make, tiles, a));
    select->groups = lm_min(r->tiles, 1 + 8 * j->c->multiprocessors / r->rows);
    for (select->shift = a->bits - 8; select->shift >= 0; select->shift -= 8) {
        LM_TRY(LM_RADIX_LAUNCH(j->S, j->c, kind, select_count, r->rows * select->groups, select));
        LM_TRY(LM_RADIX_LAUNCH(j->S, j->c, kind, select_digit, r->rows, select));
    }
    LM_TRY(LM_RADIX_LAUNCH(j->S, j->c, kind, select_tile, tiles, select));
    lm_args_radix counted = *r;
    LM_TRY(lm_radix_scan(j->S, j->c, &counted, kind));
    return LM_RADIX_LAUNCH(j->S, j->c, kind, select_move, tiles, select);
}

/* What is selected, in order: a row of k like any other. */
static luma_status sort_selected(const job *j, const lm_args_radix_rows *a,
                                 const lm_args_select *select, lm_args_radix *best,
                                 lm_radix_kind kind) {
    lm_args_radix_rows rest = *a;
    rest.sort.n = a->sort.k;
    if (a->sort.k <= BLOCK_MAX) {
        rest.sort.keys = select->best_keys;
        rest.sort.at = select->best_at;
        rest.sort.wide = kind == LM_RADIX_WIDE;
        rest.sort.rows = a->radix.rows;
        return sort_batch(j, &rest.sort, kind == LM_RADIX_NARROW);
    }
    rest.radix = *best;
    LM_TRY(lm_radix_set(j->S, j->c, best->varies, best->rows, UINT64_MAX));
    LM_TRY(lm_radix_run(j->S, j->c, best, kind, a->bits));
    return LM_RADIX_LAUNCH(j->S, j->c, kind, radix_give, best->rows * parts(a->sort.k), &rest);
}

/* Sets up `rows` rows in memory at base; returns its bytes. select->k 0: without a selection. */
static size_t carve(const job *j, int64_t rows, lm_radix_kind kind, char *base, lm_args_radix *all,
                    lm_args_select *select, lm_args_radix *best) {
    size_t end = 0, at = lm_radix_at_size(kind), count = (size_t)rows;
    int64_t k = select->k;
    *all = (lm_args_radix){.n = j->args.n, .rows = rows};
    if (k == 0) {
        lm_radix_carve(all, kind, base, &end);
        return end;
    }
    all->tiles = lm_radix_tiles(kind, all->n);
    all->lines = 2;
    all->keys[0] = lm_carve(base, &end, (size_t)(rows * all->n) * lm_radix_key_size(kind));
    all->varies = lm_carve(base, &end, count * sizeof *all->varies);
    all->counts = lm_carve(base, &end, 2 * count * (size_t)all->tiles * at);
    all->totals = lm_carve(base, &end, 2 * count * at);
    *best = (lm_args_radix){.n = k, .rows = rows, .placed = 1};
    if (k > BLOCK_MAX) {
        lm_radix_carve(best, kind, base, &end);
    } else {
        best->keys[0] = lm_carve(base, &end, (size_t)(rows * k) * lm_radix_key_size(kind));
        best->at[0] = lm_carve(base, &end, (size_t)(rows * k) * at);
    }
    *select = (lm_args_select){.keys = all->keys[0],
                               .best_keys = best->keys[0],
                               .best_at = best->at[0],
                               .counts = all->counts,
                               .n = all->n,
                               .k = k,
                               .tiles = all->tiles};
    select->chosen = lm_carve(base, &end, count * sizeof *select->chosen);
    select->wanted = lm_carve(base, &end, count * sizeof *select->wanted);
    select->digits = lm_carve(base, &end, 256 * count * at);
    return end;
}

static luma_status sort_long(const job *j) {
    lm_args_radix_rows a = {.sort = j->args, .bits = j->bits};
    lm_args_select select = {.k = a.sort.k <= a.sort.n / 4 ? a.sort.k : 0};
    lm_args_radix best;
    lm_radix_kind kind = lm_radix_kind_of(j->c, j->bits, a.sort.n);
    lm_storage *memory;
    LM_TRY(lm_radix_fits(j->S, a.sort.n));
    size_t each = carve(j, 1, kind, NULL, &a.radix, &select, &best);
    int64_t rows = lm_min(j->rows, 1 + (int64_t)(BATCH / each));
    size_t nbytes = carve(j, rows, kind, NULL, &a.radix, &select, &best);
    LM_TRY(lm_cuda_scratch(j->S, j->c, nbytes, &memory));
    luma_status status = LUMA_OK;
    for (a.sort.first = 0; a.sort.first < j->rows && status == LUMA_OK; a.sort.first += rows) {
        carve(j, lm_min(rows, j->rows - a.sort.first), kind, memory->data, &a.radix, &select,
              &best);
        if (select.k == 0) {
            status = sort_rows(j, &a, kind);
            continue;
        }
        status = select_rows(j, &a, &select, kind);
        if (status == LUMA_OK) status = sort_selected(j, &a, &select, &best, kind);
    }
    lm_storage_release(memory);
    return status;
}

luma_status lm_cuda_sort(luma_state *S, lm_device *d, const lm_sort *s) {
    job j = {.S = S, .c = lm_cuda_of(d)};
    LM_TRY(lm_cuda_enter(S, j.c));
    plan(&j, s);
    luma_status status = j.args.n <= BLOCK_MAX ? sort_short(&j) : sort_long(&j);
    lm_cuda_leave(j.c);
    return status;
}
