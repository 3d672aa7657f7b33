/* pooling.c -- the pooling slot: rows of results, made of whole rows of x where these are long enough,
** else window by window. Layer: kernels/cpu. */
#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define NARROW 4       /* results of a row that are made window by window */
#define REACH 512      /* columns of the widest window that rows are made of */
#define MOST_ROWS 1024 /* rows of such a window */
#define GRAIN 16384    /* elements that are worth a task */
#define POLL 16        /* rows between looks at the interrupt flag */
#define WIDTH LM_POOL_WIDTH

typedef struct {
    luma_state *S;
    const lm_pooling *p;
    const lm_pool_kernels *k;
    const lm_cast_kernels *casts;
    luma_dtype dtype, compute;
    int64_t size, compute_size; /* bytes of an element */
    int64_t x[5], y[5], at[5];  /* bytes from place to place; at: 0 where not wanted */
    char *x_data, *y_data, *at_data;
    int64_t most; /* results of a tile; 0: window by window */
    bool x_direct, y_direct;
    bool stopped; /* atomic */
} job;

/* One row of results: of n, c, d, h. */
typedef struct {
    const char *x; /* the plane */
    char *y, *at;
    lm_span span[2];
} row;

/* The place (n, c, d, h) of row i, and that of the one after. */
static void place_row(const job *j, int64_t i, int64_t place[4]) {
    for (int d = 3; d >= 0; d--) {
        place[d] = i % j->p->out.layout.shape[d];
        i /= j->p->out.layout.shape[d];
    }
}
static void next_place(const job *j, int64_t place[4]) {
    for (int d = 3; d >= 0 && ++place[d] == j->p->out.layout.shape[d]; d--)
        place[d] = 0;
}

static row row_at(const job *j, const int64_t place[4]) {
    const lm_window *w = j->p->window;
    row r = {.x = j->x_data + place[0] * j->x[0] + place[1] * j->x[1],
             .y = j->y_data,
             .at = j->at_data,
             .span = {lm_window_at(&w[0], place[2]), lm_window_at(&w[1], place[3])}};
    for (int d = 0; d < 4; d++)
        r.y += place[d] * j->y[d];
    for (int d = 0; d < 4 && r.at; d++)
        r.at += place[d] * j->at[d];
    return r;
}

/* What an average divides by; 0: what there are along the columns has still to be counted. */
static double count_rows(const job *j, const row *r) {
    const lm_span *s = r->span;
    return j->p->padded ? (double)s[0].padded * (double)s[1].padded
                        : (double)s[0].n * (double)s[1].n;
}

/* ---- window by window ------------------------------------------------------------------------*/

static void run_windows(const job *j, const row *r) {
    const lm_pooling *p = j->p;
    const lm_window *w = p->window;
    lm_pool_window v = {.n = {r->span[0].n, r->span[1].n}};
    int64_t first = 0, size = 1;
    for (int k = 2; k >= 0; k--) {
        v.step[k] = w[k].dilation * j->x[2 + k];
        v.place[k] = w[k].dilation * size;
        if (k < 2) first += r->span[k].first * size;
        size *= w[k].in;
    }
    const char *x = r->x + r->span[0].first * j->x[2] + r->span[1].first * j->x[3];
    for (int64_t i = 0; i < w[2].out; i++) {
        lm_span s = lm_window_at(&w[2], i);
        const char *from = x + s.first * j->x[4];
        char *y = r->y + i * j->y[4];
        v.n[2] = s.n;
        if (p->op == LM_POOL_MAX) {
            int64_t place = j->k->window_max[j->dtype](from, &v, y);
            if (j->at_data)
                *(int64_t *)(void *)(r->at + i * j->at[4]) =
                    first + s.first + place + p->index_base;
        } else {
            double count = count_rows(j, r) * (double)(p->padded ? s.padded : s.n);
            if (p->divisor) count = (double)p->divisor;
            double mean = j->k->window_sum[j->dtype](from, &v) / count;
            j->casts->cast[LUMA_FLOAT64][j->dtype](1, (const char *)&mean, 0, y, 0);
        }
    }
}

/* ---- row by row ------------------------------------------------------------------------------*/

/* Results first .. first + n - 1 of a row, and the columns that they are made of. */
typedef struct {
    int64_t first, n, column, columns;
    int64_t places[MOST_ROWS]; /* of the rows of the window, first of the plane */
    int rows;
    _Alignas(64) char loaded[WIDTH * 8];
    _Alignas(64) char value[WIDTH * 8]; /* of max */
    _Alignas(64) char best[WIDTH * 8];
    _Alignas(64) double sum[WIDTH], total[WIDTH], count[WIDTH]; /* of averages */
    _Alignas(64) int32_t code[WIDTH], best_code[WIDTH];
} tile;

/* Calls the kernels for one row of x. */
static void fold_row(const job *j, tile *t, const char *x, bool codes) {
    int32_t code = (int32_t)(t->rows * WIDTH);
    if (!j->x_direct) {
        j->casts->cast[j->dtype][j->compute](t->columns, x, j->x[4], t->loaded, j->compute_size);
        x = t->loaded;
    }
    if (j->p->op == LM_POOL_AVG)
        j->k->sum_rows[j->compute](t->columns, x, t->sum, t->rows == 0);
    else if (t->rows == 0)
        j->k->max[j->compute].first(t->columns, x, t->value, codes ? t->code : NULL, code);
    else
        j->k->max[j->compute].rows(t->columns, x, t->value, codes ? t->code : NULL, code);
}

static void fold_rows(const job *j, tile *t, const row *r, bool codes) {
    const lm_window *w = j->p->window;
    t->rows = 0;
    for (int64_t a = 0; a < r->span[0].n; a++) {
        int64_t d = r->span[0].first + a * w[0].dilation;
        for (int64_t b = 0; b < r->span[1].n; b++) {
            int64_t h = r->span[1].first + b * w[1].dilation;
            fold_row(j, t, r->x + d * j->x[2] + h * j->x[3] + t->column * j->x[4], codes);
            t->places[t->rows++] = (d * w[1].in + h) * w[2].in + t->column;
        }
    }
    for (int32_t i = 0; codes && i < (int32_t)t->columns; i++)
        t->code[i] += i;
}

/* The columns of all windows at once: the first of each, the second, ... */
static void fold_columns(const job *j, tile *t, char *best, bool codes) {
    const lm_window *w = &j->p->window[2];
    int64_t last = t->first + t->n - 1;
    for (int64_t k = 0; k < w->kernel; k++) {
        int64_t shift =
            k * w->dilation - w->padding; /* windows i with 0 <= i * stride + shift < in */
        int64_t from = shift < 0 ? (-shift - 1) / w->stride + 1 : 0;
        int64_t to = shift < w->in ? (w->in - 1 - shift) / w->stride : -1;
        from = lm_max(from, t->first);
        to = lm_min(to, last);
        if (from > to) continue;
        int64_t n = to - from + 1, column = from * w->stride + shift - t->column,
                i = from - t->first;
        if (j->p->op == LM_POOL_AVG)
            j->k->sum_columns(n, w->stride, t->sum + column, t->total + i);
        else
            j->k->max[j->compute].columns(n, w->stride, t->value + column * j->compute_size,
                                          codes ? t->code + column : NULL,
                                          best + i * j->compute_size, t->best_code + i);
    }
}

/* Only the windows at both ends are not whole. */
static void count_columns(const job *j, tile *t, double rows) {
    const lm_pooling *p = j->p;
    const lm_window *w = &p->window[2];
    double whole = p->divisor ? (double)p->divisor : rows * (double)w->kernel;
    for (int64_t i = 0; i < t->n; i++)
        t->count[i] = whole;
    if (p->divisor) return;
    for (int64_t i = t->first; i < t->first + t->n; i++) {
        int64_t start = i * w->stride - w->padding;
        int64_t inside = (w->in - w->kernel + w->padding) / w->stride; /* the last that is whole */
        if (start >= 0 && i < inside) i = lm_min(inside, t->first + t->n - 1);
        lm_span s = lm_window_at(w, i);
        t->count[i - t->first] = rows * (double)(p->padded ? s.padded : s.n);
    }
}

static void store_places(const job *j, const tile *t, char *at) {
    for (int64_t i = 0; i < t->n; i++) {
        int32_t code = t->best_code[i];
        *(int64_t *)(void *)(at + i * j->at[4]) =
            t->places[code / WIDTH] + code % WIDTH + j->p->index_base;
    }
}

static void run_tile(const job *j, tile *t, const row *r) {
    const lm_window *w = &j->p->window[2];
    int64_t start = t->first * w->stride - w->padding;
    int64_t end = start + (t->n - 1) * w->stride + (w->kernel - 1) * w->dilation + 1;
    bool codes = j->at_data != NULL;
    t->column = lm_max(start, 0);
    t->columns = lm_min(end, w->in) - t->column;
    char *y = r->y + t->first * j->y[4], *best = j->y_direct ? y : t->best;
    fold_rows(j, t, r, codes);
    if (j->p->op == LM_POOL_AVG) {
        for (int64_t i = 0; i < t->n; i++)
            t->total[i] = 0;
        fold_columns(j, t, NULL, false);
        count_columns(j, t, count_rows(j, r));
        j->k->divide[j->compute](t->n, t->total, t->count, best);
    } else {
        j->k->max[j->compute].start(t->n, best, codes ? t->best_code : NULL);
        fold_columns(j, t, best, codes);
        if (codes) store_places(j, t, r->at + t->first * j->at[4]);
    }
    if (!j->y_direct)
        j->casts->cast[j->compute][j->dtype](t->n, t->best, j->compute_size, y, j->y[4]);
}

/* ---- the job ---------------------------------------------------------------------------------*/

static void run_rows(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    tile t;
    int64_t out = j->p->window[2].out, place[4];
    place_row(j, lo, place);
    for (int64_t i = lo; i < hi; i++, next_place(j, place)) {
        if ((i - lo) % POLL == 0 && lm_interrupted(j->S))
            __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
        if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED)) return;
        row r = row_at(j, place);
        if (j->most == 0) {
            run_windows(j, &r);
            continue;
        }
        for (t.first = 0; t.first < out; t.first += j->most) {
            t.n = lm_min(out - t.first, j->most);
            run_tile(j, &t, &r);
        }
    }
}

/* How many results a tile of whole rows has. */
static int64_t tile_of(const lm_pooling *p) {
    const lm_window *w = p->window;
    for (int k = 0; k < 3; k++) {
        if (w[k].adaptive || w[k].kernel > REACH) return 0;
    }
    int64_t reach = (w[2].kernel - 1) * w[2].dilation + 1;
    if (w[2].out < NARROW || reach > REACH || w[0].kernel * w[1].kernel > MOST_ROWS) return 0;
    int64_t n = (WIDTH - reach) / w[2].stride + 1;
    return n < NARROW ? 0 : lm_min(n, WIDTH);
}

static luma_dtype compute_dtype(luma_dtype dtype) {
    if (lm_dtype_is_float(dtype)) return lm_dtype_accumulator(dtype);
    return dtype == LUMA_INT64 || dtype == LUMA_UINT32 ? LUMA_INT64 : LUMA_INT32;
}

luma_status lm_cpu_pooling(luma_state *S, lm_device *d, const lm_pooling *p) {
    (void)d;
    const lm_level *level = lm_level_now();
    job j = {.S = S, .p = p, .k = level->pooling, .casts = level->cast, .dtype = p->x.dtype};
    j.compute = compute_dtype(j.dtype);
    j.size = (int64_t)lm_dtype_size(j.dtype);
    j.compute_size = (int64_t)lm_dtype_size(j.compute);
    j.x_data = lm_data(&p->x);
    j.y_data = lm_data(&p->out);
    if (p->positions.storage) j.at_data = lm_data(&p->positions);
    for (int k = 0; k < 5; k++) {
        j.x[k] = p->x.layout.stride[k] * j.size;
        j.y[k] = p->out.layout.stride[k] * j.size;
        if (j.at_data) j.at[k] = p->positions.layout.stride[k] * 8;
    }
    j.most = tile_of(p);
    j.x_direct = j.dtype == j.compute && (j.x[4] == j.size || p->window[2].in == 1);
    j.y_direct = j.dtype == j.compute && (j.y[4] == j.size || p->window[2].out == 1);
    int64_t outs = luma_numel(&p->out), rows = outs / p->window[2].out;
    double work = (double)p->window[2].out;
    for (int k = 0; k < 3; k++)
        work *= (double)lm_min(p->window[k].kernel, p->window[k].in);
    int64_t grain = work < GRAIN ? (int64_t)(GRAIN / work) : 1;
    lm_parallel(S->threads, rows, grain, run_rows, &j);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
