/* unique.c -- different values, or slices along a dim: how often each occurs and which of them every
** element is. Made of sort, comparisons with neighbours and running sums; or of counts. Layer: core. */
#include "compose.h"
#include "order.h"

luma_status lm_run_starts(luma_state *S, luma_tensor *out, const luma_tensor *x, int dim) {
    int64_t n = x->layout.shape[dim];
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *starts = lm_temp(&s), *tail = lm_temp(&s), *a = lm_temp(&s), *b = lm_temp(&s);
    luma_tensor *differs = lm_temp(&s), *nan = lm_temp(&s), *also = lm_temp(&s);
    luma_tensor *both = lm_temp(&s);
    LM_DO(&s,
          lm_tensor_new(S, starts, lm_device_of(x), LUMA_BOOL, x->layout.ndim, x->layout.shape));
    LM_DO(&s, lm_fill(S, starts, (luma_scalar){.kind = LUMA_IS_BOOL, .u.i = 1}));
    if (n > 1) {
        LM_DO(&s, luma_narrow(S, tail, starts, dim, 1, n - 1));
        LM_DO(&s, luma_narrow(S, a, x, dim, 0, n - 1));
        LM_DO(&s, luma_narrow(S, b, x, dim, 1, n - 1));
        if (lm_dtype_is_float(x->dtype)) {
            LM_DO(&s, luma_ne(S, differs, a, b));
            LM_DO(&s, luma_isnan(S, nan, a));
            LM_DO(&s, luma_isnan(S, also, b));
            LM_DO(&s, luma_bitwise_and(S, both, nan, also));
            LM_DO(&s, luma_gt(S, tail, differs, both));
        } else {
            LM_DO(&s, luma_ne(S, tail, a, b));
        }
    }
    LM_DO(&s, lm_give(&s, out, starts));
    return lm_scope_close(&s);
}

/* Rows of m, (n, width), in lexicographic order: stable sorts from the last column to the first. */
static luma_status order_rows(luma_state *S, luma_tensor *order, const luma_tensor *m) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *column = lm_temp(&s), *now = lm_temp(&s), *place = lm_temp(&s);
    luma_tensor *next = lm_temp(&s);
    int64_t width = m->layout.shape[1];
    LM_DO(&s, luma_select(S, column, m, 1, width - 1));
    LM_DO(&s, luma_argsort(S, order, column, 0, false));
    for (int64_t c = width - 2; c >= 0 && s.status == LUMA_OK; c--) {
        lm_temp_drop(&s, column);
        LM_DO(&s, luma_select(S, column, m, 1, c));
        LM_DO(&s, luma_index_select(S, now, column, 0, order));
        LM_DO(&s, luma_argsort(S, place, now, 0, false));
        LM_DO(&s, luma_index_select(S, next, order, 0, place));
        luma_release(S, order);
        *order = *next;
        *next = LUMA_NEW;
        lm_temp_drop(&s, now);
        lm_temp_drop(&s, place);
    }
    if (s.status != LUMA_OK) luma_release(S, order);
    return lm_scope_close(&s);
}

/* What is compared: elements, or slices along a dim as rows. */
typedef struct {
    luma_tensor rows;   /* (n) or (n, width), in the order of x */
    luma_tensor order;  /* of rows; LUMA_NEW: as they are */
    luma_tensor starts; /* bool, of n: a row differs from the one before it in the order */
} groups;

static void release_groups(luma_state *S, groups *g) {
    luma_release(S, &g->rows);
    luma_release(S, &g->order);
    luma_release(S, &g->starts);
}

static luma_status make_rows(luma_state *S, groups *g, const luma_tensor *x, bool has_dim,
                             int dim) {
    int64_t shape[2] = {-1, 1}, from = dim, to = 0;
    if (!has_dim) return luma_reshape(S, &g->rows, x, 1, shape);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *first = lm_temp(&s);
    shape[0] = x->layout.shape[dim];
    for (int d = 0; d < x->layout.ndim; d++)
        if (d != dim) shape[1] *= x->layout.shape[d];
    LM_DO(&s, luma_movedim(S, first, x, 1, &from, 1, &to));
    LM_DO(&s, luma_reshape(S, &g->rows, first, 2, shape));
    return lm_scope_close(&s);
}

static luma_status find_groups(luma_state *S, groups *g, const luma_tensor *x, bool has_dim,
                               int dim, bool sorts) {
    int64_t across = 1;
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *sorted = lm_temp(&s), *differs = lm_temp(&s);
    luma_tensor pair[2] = {LUMA_NEW, LUMA_NEW};
    LM_DO(&s, make_rows(S, g, x, has_dim, dim));
    if (s.status != LUMA_OK) return lm_scope_close(&s);
    bool elements = g->rows.layout.ndim == 1;
    /* without rows there may be more columns than anyone can sort by */
    sorts = sorts && (elements || (g->rows.layout.shape[0] > 1 && g->rows.layout.shape[1] > 0));
    if (sorts && elements) {
        LM_DO(&s, luma_sort(S, pair, &g->rows, 0, false));
        *sorted = pair[0];
        g->order = pair[1];
    } else if (sorts) {
        LM_DO(&s, order_rows(S, &g->order, &g->rows));
        LM_DO(&s, luma_index_select(S, sorted, &g->rows, 0, &g->order));
    }
    const luma_tensor *line = sorts ? sorted : &g->rows;
    if (elements) {
        LM_DO(&s, lm_run_starts(S, &g->starts, line, 0));
    } else {
        LM_DO(&s, lm_run_starts(S, differs, line, 0));
        LM_DO(&s, luma_any(S, &g->starts, differs, 1, &across, false));
        if (g->rows.layout.shape[0] > 0 && g->rows.layout.shape[1] == 0) { /* all are alike */
            LM_DO(&s, luma_narrow(S, sorted, &g->starts, 0, 0, 1));
            LM_DO(&s, lm_fill(S, sorted, (luma_scalar){.kind = LUMA_IS_BOOL, .u.i = 1}));
        }
    }
    return lm_scope_close(&s);
}

/* One slice of x for each group, as x has them along dim; or one element. */
static luma_status group_values(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                const groups *g, const luma_tensor *firsts, bool has_dim, int dim) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *places = lm_temp(&s);
    if (g->order.storage) LM_DO(&s, luma_index_select(S, places, &g->order, 0, firsts));
    const luma_tensor *at = g->order.storage ? places : firsts;
    LM_DO(&s, luma_index_select(S, out, has_dim ? x : &g->rows, has_dim ? dim : 0, at));
    return lm_scope_close(&s);
}

/* The group of every row. */
static luma_status group_numbers(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 const groups *g, bool has_dim) {
    luma_tensor off = luma_integer(S->index_base - 1);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *sum = lm_temp(&s), *number = lm_temp(&s), *put = lm_temp(&s);
    LM_DO(&s, luma_cumsum(S, sum, &g->starts, 0));
    LM_DO(&s, luma_add(S, number, sum, &off));
    if (g->order.storage) LM_DO(&s, luma_index_copy(S, put, number, 0, &g->order, number));
    const luma_tensor *all = g->order.storage ? put : number;
    if (has_dim)
        LM_DO(&s, luma_reshape(S, out, all, 1, all->layout.shape));
    else
        LM_DO(&s, luma_reshape(S, out, all, x->layout.ndim, x->layout.shape));
    return lm_scope_close(&s);
}

/* From the first places of groups among n. */
static luma_status group_sizes(luma_state *S, luma_tensor *out, const luma_tensor *firsts,
                               int64_t n) {
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *end = lm_temp(&s);
    int64_t one = 1;
    LM_DO(&s,
          luma_full(S, end, 1, &one, (luma_scalar){.kind = LUMA_IS_INT, .u.i = n + S->index_base},
                    LUMA_INT64, lm_device_of(firsts)->name));
    LM_DO(&s, luma_diff(S, out, firsts, 1, 0, NULL, end));
    return lm_scope_close(&s);
}

/* ---- integers that lie close together: counted instead of sorted ---- */

/* Whether the least and the greatest of x are so near that there is room for each in between. */
static luma_status find_span(luma_state *S, const luma_tensor *x, int64_t *least, int64_t *span) {
    int64_t most = 0, n = luma_numel(x);
    lm_scope s;
    *span = 0;
    if (n == 0 || lm_dtype_is_float(x->dtype)) return LUMA_OK;
    lm_scope_open(&s, S);
    luma_tensor *low = lm_temp(&s), *high = lm_temp(&s);
    LM_DO(&s, luma_amin(S, low, x, 0, NULL, false));
    LM_DO(&s, luma_amax(S, high, x, 0, NULL, false));
    LM_DO(&s, lm_whole_item(S, least, low));
    LM_DO(&s, lm_whole_item(S, &most, high));
    uint64_t apart = (uint64_t)most - (uint64_t)*least;
    if (apart < 1024 || apart < (uint64_t)n) *span = (int64_t)apart + 1;
    return lm_scope_close(&s);
}

/* made: values, and what else is asked for, of x whose elements are least .. least + span - 1. */
static luma_status count_all(luma_state *S, luma_tensor *made[3], const luma_tensor *x,
                             int64_t least, int64_t span, bool inverse, bool counts) {
    int64_t all = -1, base = S->index_base;
    luma_tensor down = luma_integer((int64_t)((uint64_t)base - (uint64_t)least));
    luma_tensor up = luma_integer((int64_t)((uint64_t)least - (uint64_t)base));
    luma_tensor zero = luma_integer(0), off = luma_integer(base - 1);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *wide = lm_temp_cast(&s, x, LUMA_INT64), *flat = lm_temp(&s), *labels = lm_temp(&s);
    luma_tensor *often = lm_temp(&s), *there = lm_temp(&s), *places = lm_temp(&s);
    luma_tensor *at = lm_temp(&s), *value = lm_temp(&s);
    LM_DO(&s, luma_reshape(S, flat, wide, 1, &all));
    LM_DO(&s, luma_add(S, labels, flat, &down));
    LM_DO(&s, lm_count_labels(S, often, labels, NULL, span));
    LM_DO(&s, luma_ne(S, there, often, &zero));
    LM_DO(&s, luma_nonzero(S, places, there));
    LM_DO(&s, luma_select(S, at, places, 1, 0));
    LM_DO(&s, luma_add(S, value, at, &up));
    LM_DO(&s, lm_cast(S, made[0], value, x->dtype));
    if (inverse) {
        luma_tensor *sum = lm_temp(&s), *rank = lm_temp(&s), *which = lm_temp(&s);
        LM_DO(&s, luma_cumsum(S, sum, there, 0));
        LM_DO(&s, luma_add(S, rank, sum, &off));
        LM_DO(&s, luma_index_select(S, which, rank, 0, labels));
        LM_DO(&s, luma_reshape(S, made[1], which, x->layout.ndim, x->layout.shape));
    }
    if (counts) LM_DO(&s, luma_index_select(S, made[2], often, 0, at));
    return lm_scope_close(&s);
}

/* ---- results ---- */

/* All results are made before one is given, and tensors to write into come first, so that a failure
** leaves what it can as it was. */
static luma_status give_all(luma_state *S, luma_tensor outs[3], luma_tensor *made[3]) {
    lm_result r[3];
    for (int i = 0; i < 3; i++) {
        const luma_tensor *m = made[i];
        if (m->storage && outs[i].storage)
            LM_TRY(lm_result_open(S, &r[i], &outs[i], lm_device_of(m), m->dtype, m->layout.ndim,
                                  m->layout.shape, NULL, 0, 0));
    }
    for (int i = 0; i < 3; i++)
        if (made[i]->storage && outs[i].storage)
            LM_TRY(lm_result_close(S, &r[i], lm_copy(S, &r[i].work, made[i])));
    for (int i = 0; i < 3; i++) {
        if (!made[i]->storage || outs[i].storage) continue;
        outs[i] = *made[i];
        *made[i] = LUMA_NEW;
    }
    return LUMA_OK;
}

static luma_status sort_all(luma_state *S, luma_tensor *made[3], const luma_tensor *x, bool has_dim,
                            int dim, bool sorts, bool inverse, bool counts) {
    groups g = {.rows = LUMA_NEW, .order = LUMA_NEW, .starts = LUMA_NEW};
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *places = lm_temp(&s), *firsts = lm_temp(&s);
    LM_DO(&s, find_groups(S, &g, x, has_dim, dim, sorts));
    LM_DO(&s, luma_nonzero(S, places, &g.starts));
    LM_DO(&s, luma_select(S, firsts, places, 1, 0));
    LM_DO(&s, group_values(S, made[0], x, &g, firsts, has_dim, dim));
    if (inverse) LM_DO(&s, group_numbers(S, made[1], x, &g, has_dim));
    if (counts) LM_DO(&s, group_sizes(S, made[2], firsts, g.rows.layout.shape[0]));
    release_groups(S, &g);
    return lm_scope_close(&s);
}

static luma_status unique(luma_state *S, luma_tensor outs[3], const luma_tensor *x, bool has_dim,
                          int64_t dim, bool sorts, bool inverse, bool counts) {
    int d = 0;
    int64_t least = 0, span = 0;
    LM_TRY(lm_tensor_live(S, 1, x));
    if (has_dim && x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "a 0-d tensor has no slices");
    if (has_dim) LM_TRY(lm_dim(S, 2, dim, x->layout.ndim, &d));
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *made[] = {lm_temp(&s), lm_temp(&s), lm_temp(&s)};
    if (sorts && !has_dim) LM_DO(&s, find_span(S, x, &least, &span));
    LM_DO(&s, span > 0 ? count_all(S, made, x, least, span, inverse, counts)
                       : sort_all(S, made, x, has_dim, d, sorts, inverse, counts));
    LM_DO(&s, give_all(S, outs, made));
    return lm_scope_close(&s);
}

luma_status luma_unique(luma_state *S, luma_tensor outs[3], const luma_tensor *x, bool has_dim,
                        int64_t dim, bool inverse, bool counts) {
    return unique(S, outs, x, has_dim, dim, true, inverse, counts);
}

luma_status luma_unique_consecutive(luma_state *S, luma_tensor outs[3], const luma_tensor *x,
                                    bool has_dim, int64_t dim, bool inverse, bool counts) {
    return unique(S, outs, x, has_dim, dim, false, inverse, counts);
}
