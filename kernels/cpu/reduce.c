/* reduce.c -- the reduce slot: how dims merge, which foldings an operation takes, how the work is
** cut (by size alone, so that any number of threads gives the same bits), what becomes of the
** folded values. Layer: kernels/cpu. */
#include <math.h>
#include <string.h>

#include "fold.h"
#include "keys.h"
#include "pool.h"
#include "tensor.h"

#define ROW_STRIP 256    /* results of a strip that is folded by rows, and */
#define ROW_WORK 65536   /* elements of it, about */
#define GATHER_STRIP 128 /* columns of a strip that is gathered */
#define TASK_GRAIN 32768 /* elements of the smallest task */
#define FEW_STRIPS 8     /* fewer strips than this: reduced dims are cut too, for */
#define PIECE 131072     /* elements a task, but */
#define FEW_TASKS 4      /* at least and */
#define MANY_TASKS 128   /* at most so many tasks */

typedef struct {
    lm_walk w;
    const lm_reduce *r;
    lm_folding fold[2]; /* the second, if any, takes a param that comes from the first */
    int folds;
    bool positional;          /* values come with positions */
    int64_t results, reduced; /* results; elements behind each */
    const char *x;
    char *out, *positions;
    int64_t width, strips_per_line, strips;
    /* Where strips are few, each is cut along one reduced dim: partial values per piece. */
    int along;
    int64_t pieces, piece;
    int pass;
    char *values;          /* [piece][result], 8 bytes each */
    int64_t *positions_of; /* [piece][result] */
    double *params;        /* [result] */
} plan;

/* ---- which foldings, in which dtype ---- */

static bool is_float_row(lm_op op) {
    return lm_ops[op].row == LM_ROW_REDUCE && lm_ops[op].result == LM_RESULT_FLOAT;
}

static lm_folding norm_fold(double p) {
    if (p == 0) return (lm_folding){LM_FOLD_SUM, LM_TERM_SAME}; /* of what is not zero */
    if (p == 1) return (lm_folding){LM_FOLD_SUM, LM_TERM_MAGNITUDE};
    if (p == 2) return (lm_folding){LM_FOLD_SQUARES, LM_TERM_SAME};
    if (isinf(p)) return (lm_folding){p > 0 ? LM_FOLD_MAX : LM_FOLD_MIN, LM_TERM_MAGNITUDE};
    return (lm_folding){LM_FOLD_SUM, LM_TERM_POWER};
}

static void choose_folds(plan *p, const lm_reduce *r) {
    bool real = lm_dtype_is_float(r->x.dtype);
    lm_folding *first = &p->fold[0], *second = &p->fold[1];
    p->folds = 1;
    switch (r->op) {
    case LM_OP_prod:
        first->op = LM_FOLD_PROD;
        break;
    case LM_OP_amax:
    case LM_OP_any:
        first->op = LM_FOLD_MAX;
        break;
    case LM_OP_amin:
    case LM_OP_all:
        first->op = LM_FOLD_MIN;
        break;
    case LM_OP_argmax:
    case LM_OP_max:
        first->op = LM_FOLD_ARGMAX;
        break;
    case LM_OP_argmin:
    case LM_OP_min:
        first->op = LM_FOLD_ARGMIN;
        break;
    case LM_OP_logsumexp:
        first->op = LM_FOLD_MAX;
        second->op = LM_FOLD_EXPS;
        p->folds = 2;
        break;
    case LM_OP_var:
    case LM_OP_std:
        first->op = LM_FOLD_SUM;
        second->op = LM_FOLD_SQUARES;
        p->folds = 2;
        break;
    case LM_OP_nanmean:
        first->op = second->op = LM_FOLD_SUM;
        first->term = real ? LM_TERM_NUMBERS : LM_TERM_SAME;
        second->term = real ? LM_TERM_NAN_IS_0 : LM_TERM_SAME;
        p->folds = real ? 2 : 1;
        break;
    case LM_OP_nansum:
        first->op = LM_FOLD_SUM;
        first->term = real ? LM_TERM_NAN_IS_0 : LM_TERM_SAME;
        break;
    case LM_OP_norm:
        *first = norm_fold(r->correction);
        break;
    default: /* sum, mean, count_nonzero */
        first->op = LM_FOLD_SUM;
    }
    p->positional = first->op == LM_FOLD_ARGMAX || first->op == LM_FOLD_ARGMIN;
}

/* The dtype that kernels see; x passes through cast blocks where it is stored in another. */
static luma_dtype kernel_dtype(const lm_reduce *r, lm_folding folding) {
    luma_dtype dtype = (luma_dtype)lm_dtypes[r->x.dtype].compute;
    lm_op op = r->op;
    lm_fold_op fold = folding.op;
    bool real = lm_dtype_is_float(dtype);
    if (op == LM_OP_all || op == LM_OP_any || op == LM_OP_count_nonzero) return LUMA_BOOL;
    if (op == LM_OP_norm && r->correction == 0) return LUMA_BOOL;
    if (folding.term == LM_TERM_POWER) return LUMA_FLOAT64;
    if (is_float_row(op)) return real ? dtype : LUMA_FLOAT64;
    if (fold == LM_FOLD_PROD) return real ? dtype : LUMA_INT64;
    return dtype;
}

/* ---- dims ---- */

/* Outermost first: dims of long steps, those that repeat elements before all. */
static bool goes_before(const lm_reduce_dim *a, const lm_reduce_dim *b) {
    return b->x != 0 && (a->x == 0 || lm_abs(a->x) > lm_abs(b->x));
}

static void sort_dims(lm_reduce_dim *dims, int n) {
    for (int i = 1; i < n; i++) {
        lm_reduce_dim d = dims[i];
        int at = i;
        for (; at > 0 && goes_before(&d, &dims[at - 1]); at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
    }
}

static int merge_dims(lm_reduce_dim *dims, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        lm_reduce_dim *o = count ? &dims[count - 1] : NULL, d = dims[i];
        if (o && o->x == d.size * d.x && o->out == d.size * d.out &&
            o->positions == d.size * d.positions) {
            d.size *= o->size;
            *o = d;
        } else {
            dims[count++] = d;
        }
    }
    return count;
}

static int64_t bytes(const luma_tensor *x, int d) {
    return x->layout.stride[d] * (int64_t)lm_dtype_size(x->dtype);
}

/* Splits the dims of x into kept and reduced ones, all walked forward. Positions are counted in
** the order of dims, so dims reduced to positions stay as they are. */
static void collect_dims(plan *p) {
    const lm_reduce *r = p->r;
    lm_walk *w = &p->w;
    int64_t weight = 1;
    p->results = p->reduced = 1;
    for (int d = r->x.layout.ndim - 1; d >= 0; d--) {
        bool reduced = r->dims >> d & 1;
        int64_t size = r->x.layout.shape[d];
        lm_reduce_dim dim = {.size = size, .x = bytes(&r->x, d)};
        *(reduced ? &p->reduced : &p->results) *= size;
        if (reduced) {
            dim.positions = p->positional ? weight : 0;
            weight *= size;
        } else {
            dim.out = bytes(&r->out, d);
            dim.positions = r->positions.storage ? bytes(&r->positions, d) : 0;
        }
        if (size == 1) continue;
        if (dim.x < 0 && size > 0 && !(reduced && p->positional)) {
            p->x += (size - 1) * dim.x;
            p->out += (size - 1) * dim.out;
            if (p->positions && !reduced) p->positions += (size - 1) * dim.positions;
            dim.x = -dim.x;
            dim.out = -dim.out;
            dim.positions = -dim.positions;
        }
        if (reduced)
            w->reduced[w->nreduced++] = dim;
        else
            w->kept[w->nkept++] = dim;
    }
}

static void reverse_dims(lm_reduce_dim *dims, int n) {
    for (int i = 0; i < n / 2; i++) {
        lm_reduce_dim d = dims[i];
        dims[i] = dims[n - 1 - i];
        dims[n - 1 - i] = d;
    }
}

static void plan_dims(plan *p) {
    lm_walk *w = &p->w;
    collect_dims(p);
    reverse_dims(w->kept, w->nkept);
    reverse_dims(w->reduced, w->nreduced);
    sort_dims(w->kept, w->nkept);
    if (!p->positional) sort_dims(w->reduced, w->nreduced);
    w->nkept = merge_dims(w->kept, w->nkept);
    w->nreduced = merge_dims(w->reduced, w->nreduced);
}

/* ---- how the work is cut ---- */

static void plan_strips(plan *p) {
    lm_walk *w = &p->w;
    lm_reduce_dim one = {.size = 1};
    const lm_reduce_dim *k = w->nkept ? &w->kept[w->nkept - 1] : &one;
    const lm_reduce_dim *r = w->nreduced ? &w->reduced[w->nreduced - 1] : &one;
    int64_t size = (int64_t)lm_dtype_size(w->dtype);
    w->by_columns = w->nkept > 0 && (w->nreduced == 0 || (k->x != 0 && lm_abs(r->x) > k->x));
    const lm_reduce_dim *inner = w->by_columns ? k : r;
    bool terms = p->fold[0].term != LM_TERM_SAME || p->fold[1].term != LM_TERM_SAME;
    w->direct = !terms && w->stored == w->dtype && (inner->x == size || inner->size == 1);
    int64_t most = LM_STRIP;
    if (!w->by_columns)
        most = lm_clamp(ROW_WORK / lm_clamp(p->reduced, 1, ROW_WORK), 1, ROW_STRIP);
    else if (!w->direct)
        most = GATHER_STRIP;
    p->width = lm_ceil_div(lm_ceil_div(k->size, lm_ceil_div(k->size, most)), 8) * 8;
    p->width = lm_clamp(p->width, 1, most);
    p->strips_per_line = lm_ceil_div(k->size, p->width);
    p->strips = p->strips_per_line * (p->results / k->size);
}

/* Pieces of the longest reduced dim; 1 where strips are many or work is little. */
static void plan_pieces(plan *p) {
    lm_walk *w = &p->w;
    int64_t total = p->results * p->reduced;
    p->pieces = 1;
    for (int d = 1; d < w->nreduced; d++) {
        if (w->reduced[d].size > w->reduced[p->along].size) p->along = d;
    }
    p->piece = w->nreduced ? w->reduced[p->along].size : 1;
    if (p->strips >= FEW_STRIPS || total < PIECE || w->nreduced == 0) return;
    int64_t longest = p->piece, tasks = lm_clamp(total / PIECE, FEW_TASKS, MANY_TASKS);
    p->piece = lm_ceil_div(longest, lm_clamp(lm_ceil_div(tasks, p->strips), 1, longest));
    if (p->piece > 64) p->piece = lm_clamp(lm_ceil_div(p->piece, 64) * 64, 1, longest);
    p->pieces = lm_ceil_div(longest, p->piece);
}

/* ---- from folded values to results ---- */

static double as_double(luma_dtype dtype, const void *keys, int64_t i) {
    if (dtype == LUMA_FLOAT32) return (double)lm_unkey_f32(((const int32_t *)keys)[i]);
    return lm_unkey_f64(((const int64_t *)keys)[i]);
}

/* What the second folding or the end needs of the first: how many are numbers, the mean, or the
** greatest (-inf of no elements). */
static void set_params(const plan *p, int64_t n, const void *values, double *params) {
    for (int64_t i = 0; i < n; i++) {
        if (p->r->op == LM_OP_nanmean) {
            params[i] = ((const double *)values)[i];
        } else if (p->fold[0].op == LM_FOLD_SUM) {
            params[i] = ((const double *)values)[i] / (double)p->reduced;
        } else {
            params[i] = p->reduced > 0 ? as_double(p->w.dtype, values, i) : -(double)INFINITY;
        }
    }
}

/* Keys back to values, any byte of a bool to 0 or 1. */
static void unkey(luma_dtype dtype, int64_t n, void *values) {
    for (int64_t i = 0; i < n && dtype == LUMA_BOOL; i++)
        ((uint8_t *)values)[i] = ((uint8_t *)values)[i] != 0;
    for (int64_t i = 0; i < n && dtype == LUMA_FLOAT32; i++) {
        float x = lm_unkey_f32(((int32_t *)values)[i]);
        memcpy((float *)values + i, &x, sizeof x);
    }
    for (int64_t i = 0; i < n && dtype == LUMA_FLOAT64; i++) {
        double x = lm_unkey_f64(((int64_t *)values)[i]);
        memcpy((double *)values + i, &x, sizeof x);
    }
}

static void finish_floats(const plan *p, int64_t n, double *v, const double *params) {
    double count = (double)p->reduced, norm = p->r->correction, freedom = count - norm;
    if (!(freedom > 0)) freedom = 0;
    for (int64_t i = 0; i < n; i++) {
        switch (p->r->op) {
        case LM_OP_mean:
            v[i] /= count;
            break;
        case LM_OP_var:
            v[i] /= freedom;
            break;
        case LM_OP_std:
            v[i] = sqrt(v[i] / freedom);
            break;
        case LM_OP_nanmean:
            v[i] /= p->folds == 2 ? params[i] : count;
            break;
        case LM_OP_norm:
            v[i] = norm == 1 ? v[i] : norm == 2 ? sqrt(v[i]) : pow(v[i], 1 / norm);
            break;
        case LM_OP_logsumexp:
            v[i] = isfinite(params[i]) ? params[i] + log(v[i]) : params[i];
            break;
        default:
            break;
        }
    }
}

static void store_positions(const plan *p, int64_t n, const int64_t *at, char *y, int64_t sy) {
    for (int64_t i = 0; i < n; i++) {
        int64_t position = at[i] + p->w.S->index_base;
        memcpy(y + i * sy, &position, sizeof position);
    }
}

/* Writes n results that lie along the innermost kept dim. values are spent. */
static void finish(const plan *p, int64_t n, void *values, const int64_t *positions,
                   const double *params, char *out, char *out_positions) {
    const lm_walk *w = &p->w;
    lm_reduce_dim one = {.size = 1};
    const lm_reduce_dim *k = w->nkept ? &w->kept[w->nkept - 1] : &one;
    lm_fold_op last = p->fold[p->folds - 1].op;
    luma_dtype from = w->dtype;
    if (p->r->op == LM_OP_argmax || p->r->op == LM_OP_argmin) {
        store_positions(p, n, positions, out, k->out);
        return;
    }
    if (out_positions && p->positional)
        store_positions(p, n, positions, out_positions, k->positions);
    else if (out_positions) /* the means */
        lm_level_now()->cast->cast[LUMA_FLOAT64][p->r->positions.dtype](
            n, (const char *)params, sizeof *params, out_positions, k->positions);
    if (last == LM_FOLD_MAX || last == LM_FOLD_MIN) {
        unkey(from, n, values);
    } else if (last != LM_FOLD_ARGMAX && last != LM_FOLD_ARGMIN) {
        from = lm_dtype_is_float(from) ? LUMA_FLOAT64 : LUMA_INT64;
        if (from == LUMA_FLOAT64) finish_floats(p, n, values, params);
    }
    lm_level_now()->cast->cast[from][p->r->out.dtype](n, values, (int64_t)lm_dtype_size(from), out,
                                                      k->out);
}

/* ---- tasks ---- */

typedef struct {
    int64_t first, width; /* results, as if all were in a row */
    const char *x;
    char *out, *positions;
} place;

static place find_strip(const plan *p, int64_t strip) {
    const lm_walk *w = &p->w;
    int64_t line = strip / p->strips_per_line, from = strip % p->strips_per_line * p->width;
    place at = {.width = 1, .x = p->x, .out = p->out, .positions = p->positions};
    if (w->nkept == 0) return at;
    const lm_reduce_dim *k = &w->kept[w->nkept - 1];
    at.first = line * k->size + from;
    at.width = k->size - from < p->width ? k->size - from : p->width;
    int64_t index = from;
    for (int d = w->nkept - 1; d >= 0; d--) {
        if (d < w->nkept - 1) {
            index = line % w->kept[d].size;
            line /= w->kept[d].size;
        }
        at.x += index * w->kept[d].x;
        at.out += index * w->kept[d].out;
        if (at.positions) at.positions += index * w->kept[d].positions;
    }
    return at;
}

/* The param of a first folding. */
static void clear_params(const plan *p, int64_t n, double *params) {
    if (p->fold[0].op == LM_FOLD_SQUARES) memset(params, 0, (size_t)n * sizeof *params);
}

/* Strips [lo, hi) from start to end. */
static void run_strips(void *ctx, int64_t lo, int64_t hi) {
    plan *p = ctx;
    lm_strip s;
    for (int64_t i = lo; i < hi; i++) {
        place at = find_strip(p, i);
        clear_params(p, at.width, s.param);
        lm_fold_walk(&p->w, p->fold[0], at.x, at.width, &s, p->along, 0, p->piece);
        if (p->folds == 2) {
            set_params(p, at.width, s.value[0], s.param);
            lm_fold_walk(&p->w, p->fold[1], at.x, at.width, &s, p->along, 0, p->piece);
        }
        if (__atomic_load_n(&p->w.stopped, __ATOMIC_RELAXED)) return;
        finish(p, at.width, s.value[0], s.position, s.param, at.out, at.positions);
    }
}

/* Tasks [lo, hi): a piece of a strip each; its values are kept for the union. */
static void run_pieces(void *ctx, int64_t lo, int64_t hi) {
    plan *p = ctx;
    lm_strip s;
    lm_folding fold = p->fold[p->pass];
    size_t size = lm_fold_size(fold.op, p->w.dtype);
    int64_t longest = p->w.reduced[p->along].size;
    for (int64_t i = lo; i < hi; i++) {
        int64_t piece = i / p->strips, from = piece * p->piece;
        place at = find_strip(p, i % p->strips);
        size_t n = (size_t)at.width;
        clear_params(p, at.width, s.param);
        if (p->pass == 1) memcpy(s.param, p->params + at.first, n * sizeof *s.param);
        lm_fold_walk(&p->w, fold, at.x, at.width, &s, p->along, from,
                     longest - from < p->piece ? longest : from + p->piece);
        int64_t to = piece * p->results + at.first;
        memcpy(p->values + 8 * piece * p->results + (int64_t)size * at.first, s.value[0], n * size);
        if (p->positional) memcpy(p->positions_of + to, s.position, n * sizeof *s.position);
    }
}

/* Pairwise, in an order that depends on the number of pieces only; piece 0 takes it all. */
static void unite_pieces(plan *p) {
    lm_fold_op op = p->fold[p->pass].op;
    for (int64_t gap = 1; gap < p->pieces; gap *= 2) {
        for (int64_t i = 0; i + gap < p->pieces; i += 2 * gap) {
            int64_t a = i * p->results, b = (i + gap) * p->results;
            lm_fold_merge(op, p->w.dtype, p->results, p->values + 8 * a, p->positions_of + a,
                          p->values + 8 * b, p->positions_of + b);
        }
    }
}

static luma_status run_in_pieces(luma_state *S, lm_device *d, plan *p) {
    lm_storage *scratch;
    int64_t cells = p->pieces * p->results;
    LM_TRY(lm_storage_new(S, d, (size_t)(2 * cells + p->results) * 8, &scratch));
    p->values = scratch->data;
    p->positions_of = (int64_t *)(void *)(scratch->data + 8 * cells);
    p->params = (double *)(void *)(scratch->data + 16 * cells);
    for (p->pass = 0; p->pass < p->folds && !p->w.stopped; p->pass++) {
        lm_parallel(S->threads, p->strips * p->pieces, 1, run_pieces, p);
        if (!p->w.stopped) unite_pieces(p);
        if (p->pass == 0 && p->folds == 2) set_params(p, p->results, p->values, p->params);
    }
    size_t size = lm_fold_size(p->fold[p->folds - 1].op, p->w.dtype);
    for (int64_t i = 0; i < p->strips && !p->w.stopped; i++) {
        place at = find_strip(p, i);
        finish(p, at.width, p->values + size * (size_t)at.first, p->positions_of + at.first,
               p->params + at.first, at.out, at.positions);
    }
    lm_storage_release(scratch);
    return LUMA_OK;
}

luma_status lm_cpu_reduce(luma_state *S, lm_device *d, const lm_reduce *r) {
    plan p = {.r = r, .x = lm_data(&r->x), .out = lm_data(&r->out)};
    p.positions = r->positions.storage ? lm_data(&r->positions) : NULL;
    p.w.S = S;
    choose_folds(&p, r);
    p.w.stored = r->x.dtype;
    p.w.dtype = kernel_dtype(r, p.fold[0]);
    p.w.power = r->correction;
    plan_dims(&p);
    if (p.results == 0) return LUMA_OK;
    plan_strips(&p);
    plan_pieces(&p);
    if (p.pieces > 1) {
        LM_TRY(run_in_pieces(S, d, &p));
    } else {
        int64_t work = p.width * lm_clamp(p.reduced, 1, TASK_GRAIN);
        lm_parallel(S->threads, p.strips, lm_clamp(TASK_GRAIN / work, 1, INT64_MAX), run_strips,
                    &p);
    }
    return p.w.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
