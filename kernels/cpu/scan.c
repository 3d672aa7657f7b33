/* scan.c -- the scan slot: dims merge into lines along the scanned dim, lines into strips. What is
** joined, and in which order, depends on sizes and strides alone. Layer: kernels/cpu. */
#include "scan.h"

#include "block.h"
#include "pool.h"
#include "tensor.h"

#define BLOCK_IN_PLACE 4096 /* elements of a block that is not gathered */
#define STRIP 131072        /* elements of a strip of columns that is read again from cache */
#define LEAST_STRIP 64      /* columns of it at least */
#define FEW_STRIPS 8        /* fewer strips than this: lines are cut into */
#define PIECE 65536         /* elements */
#define TASK_GRAIN 16384    /* elements of the smallest task */

/* ---- dims ---- */

/* Outermost first by the steps of x; those that repeat elements before all. */
static bool goes_before(const lm_scan_dim *a, const lm_scan_dim *b) {
    return b->x != 0 && (a->x == 0 || lm_abs(a->x) > lm_abs(b->x));
}

static void insert_dim(lm_lines *l, lm_scan_dim d) {
    int at = l->nothers++;
    if (d.x < 0) {
        l->x += (d.size - 1) * d.x;
        l->y += (d.size - 1) * d.y;
        if (l->places) l->places += (d.size - 1) * d.places;
        d.x = -d.x;
        d.y = -d.y;
        d.places = -d.places;
    }
    for (; at > 0 && goes_before(&d, &l->others[at - 1]); at--)
        l->others[at] = l->others[at - 1];
    l->others[at] = d;
}

static void merge_dims(lm_lines *l) {
    int n = 0;
    for (int i = 0; i < l->nothers; i++) {
        lm_scan_dim d = l->others[i], *o = n ? &l->others[n - 1] : NULL;
        if (o && o->x == d.size * d.x && o->y == d.size * d.y && o->places == d.size * d.places) {
            d.size *= o->size;
            *o = d;
        } else {
            l->others[n++] = d;
        }
    }
    if (n == 0) l->others[n++] = (lm_scan_dim){.size = 1};
    l->nothers = n;
}

static void plan_dims(lm_lines *l, const lm_scan *s) {
    int64_t sx = (int64_t)lm_dtype_size(s->x.dtype), sy = (int64_t)lm_dtype_size(s->out.dtype);
    l->along = (lm_scan_dim){.size = 1};
    l->lines = 1;
    l->nothers = 0;
    for (int d = 0; d < s->x.layout.ndim; d++) {
        lm_scan_dim dim = {s->x.layout.shape[d], s->x.layout.stride[d] * sx,
                           s->out.layout.stride[d] * sy, 0};
        if (l->places) dim.places = s->positions.layout.stride[d] * (int64_t)sizeof(int64_t);
        if (d == s->dim) {
            l->along = dim;
        } else {
            l->lines *= dim.size;
            if (dim.size > 1) insert_dim(l, dim);
        }
    }
    merge_dims(l);
}

/* ---- cutting ---- */

/* Columns of a strip: few enough that several passes find it in cache, and that there are tasks. */
static int64_t strip_columns(int64_t n, int64_t columns, int64_t most, int passes) {
    int64_t fits = passes > 1 ? STRIP / n : lm_ceil_div(columns, FEW_STRIPS);
    return lm_min(lm_min(fits > LEAST_STRIP ? fits : LEAST_STRIP, most), columns);
}

static int64_t threads_of(const luma_state *S) {
    const int64_t threads = lm_pool_threads();
    return S->threads > 0 ? lm_min(threads, S->threads) : threads;
}

static void count_strips(lm_lines *l, int64_t room) {
    const lm_scan_dim *k = &l->others[l->nothers - 1];
    if (l->by_columns) l->block = room / l->width;
    l->strips_per_run = lm_ceil_div(k->size, l->width);
    l->strips = l->lines / k->size * l->strips_per_run;
}

static void plan_strips(lm_lines *l, int passes) {
    const lm_scan_dim *k = &l->others[l->nothers - 1];
    int64_t size = (int64_t)lm_dtype_size(l->dtype), n = l->along.size;
    l->by_columns = k->x != 0 && n > 1 && lm_abs(l->along.x) > k->x;
    const lm_scan_dim *inner = l->by_columns ? k : &l->along;
    l->x_direct = l->x_dtype == l->dtype && (inner->x == size || inner->size == 1);
    l->y_direct = l->y_dtype == l->dtype && (inner->y == size || inner->size == 1);
    l->places_direct = inner->places == (int64_t)sizeof(int64_t) || inner->size == 1;
    bool in_place = l->x_direct && l->y_direct && (!l->places || l->places_direct);
    int64_t room = in_place ? BLOCK_IN_PLACE : LM_SCAN_BLOCK;
    const int64_t most = in_place ? LM_SCAN_WIDTH : LM_SCAN_BLOCK / 8;
    if (l->by_columns) {
        l->width = strip_columns(n, k->size, most, passes);
    } else {
        l->block = lm_min(n, room);
        l->width = l->block == n ? lm_min(lm_min(room / n, LM_SCAN_WIDTH), k->size) : 1;
    }
    count_strips(l, room);
    l->pieces = 1;
    l->piece = n;
    if (l->strips < FEW_STRIPS && n * l->width >= 2 * PIECE) {
        l->piece = lm_ceil_div(PIECE / l->width, l->block) * l->block;
        l->pieces = lm_ceil_div(n, l->piece);
    } else if (l->by_columns && passes == 1) { /* long runs of memory: a strip for each thread */
        const int64_t share = lm_ceil_div(k->size, threads_of(l->S));
        l->width = lm_max(l->width, lm_min(lm_ceil_div(share, LEAST_STRIP) * LEAST_STRIP, most));
        l->width = lm_min(l->width, k->size);
        count_strips(l, room);
    }
}

int64_t lm_lines_grain(const lm_lines *l) {
    int64_t work = l->width * lm_min(l->along.size, TASK_GRAIN);
    return work < TASK_GRAIN ? lm_ceil_div(TASK_GRAIN, work > 0 ? work : 1) : 1;
}

void lm_lines_plan(lm_lines *l, luma_state *S, const lm_scan *s, luma_dtype dtype, int passes) {
    l->S = S;
    l->x_dtype = s->x.dtype;
    l->y_dtype = s->out.dtype;
    l->dtype = dtype;
    l->x = lm_data(&s->x);
    l->y = lm_data(&s->out);
    l->places = s->positions.storage ? lm_data(&s->positions) : NULL;
    l->stopped = l->x_direct = l->y_direct = l->places_direct = false;
    plan_dims(l, s);
    l->strips = 0;
    l->width = l->pieces = 1;
    if (l->lines > 0 && l->along.size > 0) plan_strips(l, passes);
}

lm_scan_strip lm_lines_strip(const lm_lines *l, int64_t i) {
    const lm_scan_dim *k = &l->others[l->nothers - 1];
    int64_t run = i / l->strips_per_run, from = i % l->strips_per_run * l->width;
    lm_scan_strip s = {.first = run * k->size + from, .width = lm_min(k->size - from, l->width)};
    s.x = l->x + from * k->x;
    s.y = l->y + from * k->y;
    s.places = l->places ? l->places + from * k->places : NULL;
    for (int d = l->nothers - 2; d >= 0; d--) {
        int64_t index = run % l->others[d].size;
        run /= l->others[d].size;
        s.x += index * l->others[d].x;
        s.y += index * l->others[d].y;
        if (s.places) s.places += index * l->others[d].places;
    }
    return s;
}

bool lm_lines_stop(lm_lines *l) {
    if (lm_interrupted(l->S)) __atomic_store_n(&l->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&l->stopped, __ATOMIC_RELAXED);
}

/* ---- blocks ---- */

/* Rows and columns of a block, and their steps in x or y. */
typedef struct {
    int64_t rows, row_step, columns, column_step;
} shape;

static shape block_shape(const lm_lines *l, int64_t width, int64_t n, bool of_y) {
    const lm_scan_dim *k = &l->others[l->nothers - 1];
    int64_t across = of_y ? k->y : k->x, along = of_y ? l->along.y : l->along.x;
    if (l->by_columns) return (shape){n, along, width, across};
    return (shape){width, across, n, along};
}

const char *lm_lines_load(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                          char *buffer, lm_scan_block *b) {
    shape t = block_shape(l, s->width, n, false);
    const char *x = s->x + at * l->along.x;
    *b = (lm_scan_block){t.rows, t.columns, t.row_step};
    if (l->x_direct) return x;
    lm_block_gather(l->x_dtype, l->dtype, t.rows, t.row_step, t.columns, t.column_step, x, buffer);
    b->step = t.columns * (int64_t)lm_dtype_size(l->dtype);
    return buffer;
}

char *lm_lines_target(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                      char *buffer, lm_scan_block *b) {
    shape t = block_shape(l, s->width, n, true);
    *b = (lm_scan_block){t.rows, t.columns, t.row_step};
    if (l->y_direct) return s->y + at * l->along.y;
    b->step = t.columns * (int64_t)lm_dtype_size(l->dtype);
    return buffer;
}

void lm_lines_store(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                    const char *buffer) {
    if (l->y_direct) return;
    shape t = block_shape(l, s->width, n, true);
    lm_block_scatter(l->dtype, l->y_dtype, t.rows, t.row_step, t.columns, t.column_step, buffer,
                     s->y + at * l->along.y);
}

static shape places_shape(const lm_lines *l, int64_t width, int64_t n) {
    int64_t across = l->others[l->nothers - 1].places, along = l->along.places;
    if (l->by_columns) return (shape){n, along, width, across};
    return (shape){width, across, n, along};
}

char *lm_lines_places(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                      char *buffer, lm_scan_block *b) {
    shape t = places_shape(l, s->width, n);
    *b = (lm_scan_block){t.rows, t.columns, t.row_step};
    if (l->places_direct) return s->places + at * l->along.places;
    b->step = t.columns * (int64_t)sizeof(int64_t);
    return buffer;
}

void lm_lines_store_places(const lm_lines *l, const lm_scan_strip *s, int64_t at, int64_t n,
                           const char *buffer) {
    if (l->places_direct) return;
    shape t = places_shape(l, s->width, n);
    lm_block_scatter(LUMA_INT64, LUMA_INT64, t.rows, t.row_step, t.columns, t.column_step, buffer,
                     s->places + at * l->along.places);
}

/* ---- long lines ---- */

typedef struct {
    lm_lines *l;
    const lm_scan_of *scan;
    void *job;
    int64_t ranges, told;  /* of a line; pieces of it whose totals are wanted before */
    lm_scan_state *totals; /* [line][told] */
} long_job;

static int64_t range_start(const long_job *j, int64_t range) {
    return j->l->pieces * range / j->ranges;
}

static void run_piece(const long_job *j, int64_t line, int64_t piece, const lm_scan_state *before,
                      lm_scan_state *own, bool totals) {
    lm_scan_strip s = lm_lines_strip(j->l, line);
    int64_t from = piece * j->l->piece;
    j->scan->run(j->job, &s, from, lm_min(from + j->l->piece, j->l->along.size), before, own,
                 totals);
}

static void tell_pieces(void *ctx, int64_t lo, int64_t hi) {
    long_job *j = ctx;
    lm_scan_state none = j->scan->nothing(j->job);
    for (int64_t i = lo; i < hi; i++)
        run_piece(j, i / j->told, i % j->told, &none, &j->totals[i], true);
}

static void run_ranges(void *ctx, int64_t lo, int64_t hi) {
    long_job *j = ctx;
    for (int64_t i = lo; i < hi; i++) {
        int64_t line = i / j->ranges, range = i % j->ranges, first = range_start(j, range);
        lm_scan_state before = j->scan->nothing(j->job), own;
        for (int64_t p = 0; p < first; p++)
            j->scan->join(j->job, &before, &j->totals[line * j->told + p]);
        for (int64_t p = first; p < range_start(j, range + 1); p++) {
            run_piece(j, line, p, &before, &own, false);
            j->scan->join(j->job, &before, &own);
        }
    }
}

luma_status lm_lines_run_long(lm_lines *l, const lm_scan_of *scan, void *job) {
    long_job j = {.l = l, .scan = scan, .job = job};
    luma_state *S = l->S;
    lm_storage *scratch = NULL;
    j.ranges = lm_min(threads_of(S), l->pieces);
    j.told = range_start(&j, j.ranges - 1);
    int64_t tasks = l->strips * j.told;
    if (tasks > 0) {
        LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)tasks * sizeof *j.totals, &scratch));
        j.totals = (lm_scan_state *)(void *)scratch->data;
        lm_parallel(S->threads, tasks, 1, tell_pieces, &j);
    }
    if (!l->stopped) lm_parallel(S->threads, l->strips * j.ranges, 1, run_ranges, &j);
    if (scratch) lm_storage_release(scratch);
    return LUMA_OK;
}

luma_status lm_cpu_scan(luma_state *S, lm_device *d, const lm_scan *s) {
    (void)d;
    switch (s->kind) {
    case LM_SCAN_SUM:
        return lm_cpu_cumsum(S, s);
    case LM_SCAN_SOFTMAX:
    case LM_SCAN_LOG_SOFTMAX:
        return lm_cpu_softmax(S, s);
    case LM_SCAN_PROD:
    case LM_SCAN_MAX:
    case LM_SCAN_MIN:
    case LM_SCAN_LOGSUMEXP:
        break;
    }
    return lm_cpu_running(S, s);
}
