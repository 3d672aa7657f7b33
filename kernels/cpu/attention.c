/* attention.c -- the attention slot: one task is a tile of queries that meets the keys block by
** block with a running softmax (Milakov and Gimelshein, Online normalizer calculation for softmax,
** 2018; Dao et al., FlashAttention, 2022). Scores lie transposed, keys down and queries across: the
** product's loops then read keys and values as they lie. Few queries are rows, for the loops that
** read many rows once. Layer: kernels/cpu. */
#include <math.h>
#include <string.h>

#include "block.h"
#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define BLOCK 16384   /* elements of a block of keys or of values */
#define MOST_KEYS 256 /* keys of a block */
#define LEAST_KEYS 16
#define FEW 8     /* queries that are rows */
#define STREAMS 4 /* keys or values that the loops for few rows read side by side */
#define MOST_HEAD (INT32_MAX / 8)
#define TASK_FLOPS 1000000 /* what a thread is woken for */

/* Rows of q, k, v, out or mask; strides in bytes. */
typedef struct {
    const char *data;
    int64_t row, column, size;
    luma_dtype dtype;
    const int64_t *stride; /* of the batch dims, elements */
} side;

typedef struct {
    luma_state *S;
    const lm_gemm *g;
    luma_dtype dtype; /* of the sums */
    int64_t size;     /* its bytes */
    int64_t tile;     /* queries of a tile, which lie side by side in a row of LM_ATTENTION_BYTES */
    side q, k, v, out, mask;
    bool masked, causal;
    double scale;
    int nbatch;
    const int64_t *batch;
    int64_t batches, queries, keys, e, ev;
    int64_t tiles, block; /* of a batch; keys of a block */
    char *rooms;          /* of each thread: */
    int64_t slot_bytes, scores_at, sums_at, load_at, mask_at;
    bool few; /* all queries are one tile of rows */
    lm_slots slots;
    bool stopped; /* by the interrupt flag; atomic */
} job;

/* What a tile keeps while it meets the keys. */
typedef struct {
    char *queries, *scores, *sums, *load, *mask;
    int64_t first, width;
    _Alignas(64) char greatest[LM_ATTENTION_BYTES], factor[LM_ATTENTION_BYTES];
    double sum[LM_ATTENTION_BYTES / 4], factors[FEW]; /* factors: of few queries */
} state;

static bool stop(job *j) {
    if (lm_interrupted(j->S)) __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&j->stopped, __ATOMIC_RELAXED);
}

/* ---- blocks ---- */

/* Rows `first` on of a matrix for the product's loops: as they lie, or read into buffer. */
typedef struct {
    const char *data;
    int64_t row, column; /* elements */
} matrix;

static matrix load(const job *j, const side *s, const char *data, int64_t first, int64_t rows,
                   int64_t columns, char *buffer) {
    const char *x = data + first * s->row;
    if (s->dtype == j->dtype) return (matrix){x, s->row / s->size, s->column / s->size};
    lm_block_gather(s->dtype, j->dtype, rows, s->row, columns, s->column, x, buffer);
    return (matrix){buffer, columns, 1};
}

/* Queries times scale, transposed: (e, tile). */
static void load_queries(const job *j, state *t, const char *q) {
    memset(t->queries, 0, (size_t)(j->e * LM_ATTENTION_BYTES));
    for (int64_t at = 0, run; at < j->e; at += run) {
        run = lm_min(j->e - at, BLOCK / j->tile);
        side columns = j->q;
        columns.data = q + at * j->q.column;
        matrix m = load(j, &columns, columns.data, t->first, t->width, run, t->load);
        j->g->pack(t->width, j->tile, run, m.data, m.row, m.column,
                   t->queries + at * LM_ATTENTION_BYTES);
    }
    if (j->dtype == LUMA_FLOAT64) {
        double *x = (double *)(void *)t->queries;
        for (int64_t i = 0; i < j->e * j->tile; i++)
            x[i] *= j->scale;
    } else {
        float *x = (float *)(void *)t->queries, scale = (float)j->scale;
        for (int64_t i = 0; i < j->e * j->tile; i++)
            x[i] *= scale;
    }
}

/* Scores of keys that come after a query are -inf; block: the number of the first key. */
static void hide_later(const job *j, const state *t, int64_t block, int64_t keys) {
    for (int64_t i = lm_max(0, t->first + 1 - block); i < keys; i++) {
        char *row = t->scores + i * LM_ATTENTION_BYTES;
        int64_t n = lm_min(block + i - t->first, j->tile);
        if (j->dtype == LUMA_FLOAT64) {
            for (int64_t k = 0; k < n; k++)
                ((double *)(void *)row)[k] = -HUGE_VAL;
        } else {
            for (int64_t k = 0; k < n; k++)
                ((float *)(void *)row)[k] = -HUGE_VALF;
        }
    }
}

static void hide_masked(const job *j, const state *t, const char *mask, int64_t block,
                        int64_t keys) {
    const side *m = &j->mask;
    bool adds = m->dtype != LUMA_BOOL;
    const char *x = mask + t->first * m->row + block * m->column;
    char *to = t->mask;
    if (t->width == j->tile) {
        lm_block_gather(m->dtype, j->dtype, keys, m->column, t->width, m->row, x, to);
    } else { /* what lies between rows of a narrow tile changes nothing */
        memset(to, 0, (size_t)(keys * LM_ATTENTION_BYTES));
        for (int64_t i = 0; i < keys; i++)
            lm_block_gather(m->dtype, j->dtype, 1, 0, t->width, m->row, x + i * m->column,
                            to + i * LM_ATTENTION_BYTES);
    }
    lm_level_now()->attention->hide[j->dtype](keys * j->tile, t->scores, to, adds);
}

/* ---- tiles ---- */

static void start(const job *j, state *t) {
    memset(t->sums, 0, (size_t)(j->ev * LM_ATTENTION_BYTES));
    for (int64_t i = 0; i < j->tile; i++) {
        t->sum[i] = 0;
        if (j->dtype == LUMA_FLOAT64)
            ((double *)(void *)t->greatest)[i] = -HUGE_VAL;
        else
            ((float *)(void *)t->greatest)[i] = -HUGE_VALF;
    }
}

static void meet_keys(const job *j, state *t, const char *k, const char *v, const char *mask,
                      int64_t block, int64_t keys) {
    const lm_attention_kernels *kernels = lm_level_now()->attention;
    matrix m = load(j, &j->k, k, block, keys, j->e, t->load);
    if (t->width < j->tile) memset(t->scores, 0, (size_t)(keys * LM_ATTENTION_BYTES));
    j->g->small(keys, t->width, j->e, m.data, m.row, m.column, t->queries, j->tile, t->scores,
                j->tile, false);
    if (j->masked) hide_masked(j, t, mask, block, keys);
    if (j->causal && block + keys - 1 > t->first) hide_later(j, t, block, keys);
    kernels->soften[j->dtype](keys, t->scores, t->greatest, t->sum, t->factor);
    if (block > 0) kernels->rescale[j->dtype](j->ev, t->sums, t->factor);
    m = load(j, &j->v, v, block, keys, j->ev, t->load);
    j->g->small(j->ev, t->width, keys, m.data, m.column, m.row, t->scores, j->tile, t->sums,
                j->tile, true);
}

static void finish(const job *j, state *t, char *out) {
    const side *o = &j->out;
    for (int64_t i = 0; i < j->tile; i++) {
        if (j->dtype == LUMA_FLOAT64)
            ((double *)(void *)t->factor)[i] = 1 / t->sum[i];
        else
            ((float *)(void *)t->factor)[i] = (float)(1 / t->sum[i]);
    }
    lm_level_now()->attention->rescale[j->dtype](j->ev, t->sums, t->factor);
    char *y = out + t->first * o->row;
    bool direct = o->dtype == j->dtype && o->column == j->size;
    int64_t rows = LM_TILE_ROWS;
    for (int64_t at = 0; at < j->ev; at += rows, y += rows * o->column) {
        int64_t n = lm_min(j->ev - at, rows);
        const char *x = t->sums + at * LM_ATTENTION_BYTES;
        if (direct) {
            lm_level_now()->copy->transpose[j->size == 8 ? 3 : 2](n, t->width, x, y, o->row, false);
        } else if (t->width == j->tile) {
            lm_block_scatter(j->dtype, o->dtype, n, o->column, t->width, o->row, x, y);
        } else {
            for (int64_t i = 0; i < n; i++)
                lm_block_scatter(j->dtype, o->dtype, 1, 0, t->width, o->row,
                                 x + i * LM_ATTENTION_BYTES, y + i * o->column);
        }
    }
}

/* ---- few queries: rows of scores and of sums ---- */

/* The loops that read rows of this side as they lie; NULL: it is read into the sums' type first. */
static const lm_gemm_few *loops_for(const job *j, const side *s) {
    const lm_gemm_kernels *kernels = lm_level_now()->gemm;
    if (s->column != s->size) return NULL;
    if (s->dtype == j->dtype) return &j->g->few;
    if (s->dtype == LUMA_BFLOAT16) return &kernels->bf16;
    return s->dtype == LUMA_FLOAT16 && kernels->f16.dots ? &kernels->f16 : NULL;
}

/* Rows of a block, and the loops for them. */
static const lm_gemm_few *load_few(const job *j, const side *s, const char *data, int64_t first,
                                   int64_t rows, int64_t columns, char *buffer, matrix *m) {
    const lm_gemm_few *loops = loops_for(j, s);
    const char *x = data + first * s->row;
    *m = (matrix){x, s->row, s->size}; /* here in bytes */
    if (loops) return loops;
    lm_block_gather(s->dtype, j->dtype, rows, s->row, columns, s->column, x, buffer);
    *m = (matrix){buffer, columns * j->size, j->size};
    return &j->g->few;
}

static void score_few(const job *j, state *t, const char *k, int64_t block, int64_t keys) {
    matrix m;
    const lm_gemm_few *loops = load_few(j, &j->k, k, block, keys, j->e, t->load, &m);
    int64_t quarter = keys / STREAMS;
    memset(t->scores, 0, (size_t)(t->width * keys * j->size));
    for (int64_t r = 0; r < keys; r++) {
        if (r == quarter) r = STREAMS * quarter; /* the rest one by one */
        if (r == keys) break;
        loops->dots((int)t->width, r < quarter ? STREAMS : 1, j->e, t->queries, j->e,
                    m.data + r * m.row, quarter * m.row / m.column, t->scores + r * j->size, keys,
                    quarter);
    }
}

/* Scores of one value of k for all queries, as the loops take them. */
static void set_factors(const job *j, const state *t, int64_t r, int streams, int64_t apart,
                        int64_t keys, void *factors) {
    for (int64_t i = 0; i < t->width; i++) {
        for (int q = 0; q < streams; q++) {
            int64_t from = i * keys + r + q * apart, to = i * STREAMS + q;
            if (j->dtype == LUMA_FLOAT64)
                ((double *)factors)[to] = ((const double *)(const void *)t->scores)[from];
            else
                ((float *)factors)[to] = ((const float *)(const void *)t->scores)[from];
        }
    }
}

static void add_few(const job *j, state *t, const char *v, int64_t block, int64_t keys) {
    _Alignas(64) double factors[FEW * STREAMS];
    matrix m;
    const lm_gemm_few *loops = load_few(j, &j->v, v, block, keys, j->ev, t->load, &m);
    int64_t quarter = keys / STREAMS;
    for (int64_t r = 0; r < keys; r++) {
        if (r == quarter) r = STREAMS * quarter;
        if (r == keys) break;
        int streams = r < quarter ? STREAMS : 1;
        set_factors(j, t, r, streams, quarter, keys, factors);
        loops->sweep((int)t->width, streams, j->ev, m.data + r * m.row, quarter * m.row / m.column,
                     factors, t->sums, j->ev);
    }
}

static void hide_few(const job *j, state *t, const char *mask, int64_t block, int64_t keys) {
    const side *m = &j->mask;
    if (j->masked) {
        lm_block_gather(m->dtype, j->dtype, t->width, m->row, keys, m->column,
                        mask + block * m->column, t->mask);
        lm_level_now()->attention->hide[j->dtype](t->width * keys, t->scores, t->mask,
                                                  m->dtype != LUMA_BOOL);
    }
    for (int64_t i = 0; j->causal && i < t->width; i++) {
        for (int64_t k = lm_max(0, i + 1 - block); k < keys; k++) {
            if (j->dtype == LUMA_FLOAT64)
                ((double *)(void *)t->scores)[i * keys + k] = -HUGE_VAL;
            else
                ((float *)(void *)t->scores)[i * keys + k] = -HUGE_VALF;
        }
    }
}

static void meet_few(const job *j, state *t, const char *k, const char *v, const char *mask,
                     int64_t block, int64_t keys) {
    const lm_level *level = lm_level_now();
    score_few(j, t, k, block, keys);
    hide_few(j, t, mask, block, keys);
    level->attention->soften_rows[j->dtype](t->width, keys, t->scores, t->greatest, t->sum,
                                            t->factors);
    if (block > 0)
        level->scan->scale[0][j->dtype](t->width, j->ev, t->sums, j->ev * j->size, t->factors);
    add_few(j, t, v, block, keys);
}

static void finish_few(const job *j, state *t, char *out) {
    const side *o = &j->out;
    for (int64_t i = 0; i < t->width; i++)
        t->factors[i] = 1 / t->sum[i];
    lm_level_now()->scan->scale[0][j->dtype](t->width, j->ev, t->sums, j->ev * j->size, t->factors);
    lm_block_scatter(j->dtype, o->dtype, t->width, o->row, j->ev, o->column, t->sums, out);
}

/* Queries times scale, as they lie. */
static void load_few_queries(const job *j, state *t, const char *q) {
    double scale[FEW];
    for (int64_t i = 0; i < FEW; i++)
        scale[i] = j->scale;
    lm_block_gather(j->q.dtype, j->dtype, t->width, j->q.row, j->e, j->q.column, q, t->queries);
    lm_level_now()->scan->scale[0][j->dtype](t->width, j->e, t->queries, j->e * j->size, scale);
}

/* Where a batch begins in a side. */
static char *batch_of(const job *j, const side *s, int64_t batch) {
    int64_t at = 0;
    for (int d = j->nbatch - 1; d >= 0; d--) {
        at += batch % j->batch[d] * s->stride[d];
        batch /= j->batch[d];
    }
    return (char *)(uintptr_t)(s->data + at * s->size);
}

static void run_tile(job *j, char *slot, int64_t i) {
    state t = {.queries = slot,
               .scores = slot + j->scores_at,
               .sums = slot + j->sums_at,
               .load = slot + j->load_at,
               .mask = slot + j->mask_at};
    int64_t batch = i / j->tiles, keys = j->keys;
    const char *k = batch_of(j, &j->k, batch), *v = batch_of(j, &j->v, batch);
    const char *mask = j->masked ? batch_of(j, &j->mask, batch) : NULL;
    t.first = i % j->tiles * j->tile;
    t.width = lm_min(j->tile, j->queries - t.first);
    (j->few ? load_few_queries : load_queries)(j, &t, batch_of(j, &j->q, batch));
    start(j, &t);
    if (j->causal) keys = lm_min(keys, t.first + t.width);
    for (int64_t block = 0; block < keys && !stop(j); block += j->block)
        (j->few ? meet_few : meet_keys)(j, &t, k, v, mask, block, lm_min(j->block, keys - block));
    if (!stop(j)) (j->few ? finish_few : finish)(j, &t, batch_of(j, &j->out, batch));
}

static void run_tiles(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    int slot = lm_slots_take(&j->slots);
    for (int64_t i = lo; i < hi && !stop(j); i++)
        run_tile(j, j->rooms + slot * j->slot_bytes, i);
    lm_slots_give(&j->slots, slot);
}

/* ---- the plan ---- */

static side side_of(const luma_tensor *x) {
    int n = x->layout.ndim;
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    return (side){lm_data(x),
                  x->layout.stride[n - 2] * size,
                  x->layout.stride[n - 1] * size,
                  size,
                  x->dtype,
                  x->layout.stride};
}

static void plan(job *j, const lm_attention *a) {
    int n = a->q.layout.ndim;
    const int64_t *q = a->q.layout.shape + n - 2, *v = a->v.layout.shape + n - 2;
    j->nbatch = n - 2;
    j->batch = a->q.layout.shape;
    j->batches = 1;
    for (int d = 0; d < j->nbatch; d++)
        j->batches *= j->batch[d];
    j->queries = q[0];
    j->e = q[1];
    j->keys = v[0];
    j->ev = v[1];
    j->tile = LM_ATTENTION_BYTES / j->size;
    j->tiles = lm_ceil_div(j->queries, j->tile);
    j->few = j->queries <= FEW;
    int64_t wide = lm_max(lm_max(j->e, j->ev), 1);
    j->block = lm_min(lm_clamp(BLOCK / wide, LEAST_KEYS, MOST_KEYS), j->keys);
    j->scores_at = j->e * LM_ATTENTION_BYTES;
    j->sums_at = j->scores_at + j->block * LM_ATTENTION_BYTES;
    /* the loops that turn tiles read whole ones */
    j->load_at = j->sums_at + lm_ceil_div(j->ev, LM_TILE_ROWS) * LM_TILE_ROWS * LM_ATTENTION_BYTES;
    /* a block of keys or of values, or of queries */
    j->mask_at = j->load_at + lm_round_up(lm_max(j->block * wide, BLOCK) * j->size, 64);
    j->slot_bytes = j->mask_at + (j->masked ? j->block * LM_ATTENTION_BYTES : 0);
}

luma_status lm_cpu_attention(luma_state *S, lm_device *d, const lm_attention *a) {
    luma_dtype dtype = lm_dtype_accumulator(a->q.dtype);
    const lm_gemm_kernels *gemms = lm_level_now()->gemm;
    job j = {.S = S,
             .g = dtype == LUMA_FLOAT64 ? &gemms->f64 : &gemms->f32,
             .dtype = dtype,
             .size = (int64_t)lm_dtype_size(dtype),
             .q = side_of(&a->q),
             .k = side_of(&a->k),
             .v = side_of(&a->v),
             .out = side_of(&a->out),
             .masked = a->mask.storage != NULL,
             .causal = a->causal,
             .scale = a->scale};
    if (j.masked) j.mask = side_of(&a->mask);
    if (lm_max(a->q.layout.shape[a->q.layout.ndim - 1], a->v.layout.shape[a->v.layout.ndim - 1]) >
        MOST_HEAD)
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "heads of more than %lld elements",
                       (long long)MOST_HEAD);
    plan(&j, a);
    int64_t tasks = j.batches * j.tiles, bytes;
    lm_storage *scratch;
    lm_slots_open(&j.slots, S->threads, tasks);
    if (!lm_mul_fits(j.slot_bytes, j.slots.n, &bytes)) bytes = INT64_MAX;
    LM_TRY(lm_storage_new(S, d, (size_t)bytes, &scratch));
    j.rooms = scratch->data;
    double flops = 4.0 * (double)j.tile * (double)j.keys * (double)lm_max(j.e, 1);
    int64_t grain = flops < TASK_FLOPS ? (int64_t)(TASK_FLOPS / flops) + 1 : 1;
    lm_parallel(S->threads, tasks, grain, run_tiles, &j);
    lm_storage_release(scratch);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
