/* conv.c -- the conv slot of the CPU. Output positions are columns, taken in boxes; what a box meets
** of some channels of x is staged once, as elements of the sums, with zeros around, so that every
** tap finds its columns side by side; the loops of level/gemm.c multiply from there. Boxes and
** threads never change the order of a sum. Layer: kernels/cpu. */
#include <string.h>

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define DIMS 4      /* n, depth, height, width */
#define BLOCK_K 448 /* values of a sum that are staged together */
#define SUMS 262144 /* of a box at most, where it has more columns than */
#define FEW_COLUMNS 64
#define COLUMNS 320 /* of a box; where few rows meet them */
#define MANY_COLUMNS 4096
#define FEW_ROWS 4
#define STAGE 786432      /* bytes of sheets that hold whole pieces of x */
#define JOB_FLOPS 1000000 /* what a thread is woken for */

/* out (groups, m, columns) = w (groups, m, k) x staged (groups, k, columns); k = channels * taps */
typedef struct {
    luma_state *S;
    const lm_gemm *g;
    int64_t size; /* bytes of the accumulator type */
    int64_t groups, m, channels, taps, k;
    /* of the dims: positions of out, of x, taps, how far a position and a tap move in x */
    int64_t out[DIMS], in[DIMS], kernel[DIMS], stride[DIMS], dilation[DIMS], before[DIMS];
    const char *x;
    char *y;
    int64_t x_stride[DIMS], x_channel; /* bytes */
    int64_t y_stride[DIMS], y_channel;
    lm_cast_fn *read, *write; /* elements of x to the accumulator type; sums to elements of out */
    /* x is of the accumulator type; so is out, its lines side by side; a box of sums can stand in it */
    bool x_ready, y_ready, direct;
    const char *weights; /* panels of `width` rows, by group and block */
    const char *bias;    /* (groups, m) of the accumulator type, or NULL */
    int64_t width;
    /* A block: `block` channels, or one piece of the taps of one channel. */
    int64_t block, pieces, piece;
    /* A sheet: the elements that one tap meets; in `whole` form all taps of one phase: those that
    ** are a multiple of the stride apart. sheets: per dim. */
    bool whole;
    int64_t sheets[DIMS], sheet_bytes, nsheets;
    int32_t *at; /* of each k of a block: where its columns begin, elements */
    int64_t box[DIMS], tiles[DIMS], pitch[DIMS], ntiles;
    int64_t piece_m, pieces_m;
    char *rooms;
    lm_slots slots;
    int64_t slot_bytes, stage_bytes, ldc;
    bool stop; /* the interrupt flag was seen; atomic */
} plan;

static bool stopped(plan *p) {
    if (lm_interrupted(p->S)) __atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&p->stop, __ATOMIC_RELAXED);
}

/* ---- staging -------------------------------------------------------------------------------- */

/* A box on its way: where it begins and how much of it there is. */
typedef struct {
    int64_t from[DIMS], count[DIMS], group;
} tile;

/* How far a tap, or a sheet in whole form, is from the first. */
static int64_t shift_of(const plan *p, int d, int64_t sheet) {
    return p->whole ? sheet * p->dilation[d] % p->stride[d] : sheet * p->dilation[d];
}

/* Positions along d that a sheet holds for so many columns. */
static int64_t extent(const plan *p, int d, int64_t count) {
    return p->whole ? count + (p->kernel[d] - 1) * p->dilation[d] / p->stride[d] : count;
}

/* Of `count` positions the first of which is `first` in x, the next each `step` further: those
** that x has, [*lo, *hi). */
static void inside(int64_t first, int64_t step, int64_t count, int64_t size, int64_t *lo,
                   int64_t *hi) {
    *lo = first < 0 ? lm_min(lm_ceil_div(-first, step), count) : 0;
    *hi = first >= size ? 0 : lm_min(lm_ceil_div(size - first, step), count);
    if (*hi < *lo) *hi = *lo;
}

/* m lines of elements that are not those of the sums. */
static void read_lines(const plan *p, int64_t m, int64_t lo, int64_t hi, int64_t n, const char *x,
                       int64_t sx, int64_t step, char *y, int64_t sy) {
    const int64_t size = p->size;
    for (int64_t i = 0; i < m; i++, x += sx, y += sy) {
        memset(y, 0, (size_t)(lo * size));
        if (hi > lo) p->read(hi - lo, x, step, y + lo * size, size);
        memset(y + hi * size, 0, (size_t)((n - hi) * size));
    }
}

/* One sheet of the channel at x. */
static void stage_sheet(const plan *p, const tile *t, const char *x, const int64_t *sheet,
                        char *y) {
    const int64_t size = p->size;
    int64_t first[DIMS], count[DIMS], lo, hi, top, bottom, at[2];
    for (int d = 0; d < DIMS; d++) {
        first[d] = t->from[d] * p->stride[d] + shift_of(p, d, sheet[d]) - p->before[d];
        count[d] = extent(p, d, t->count[d]);
    }
    const int64_t step = p->stride[3] * p->x_stride[3], next = p->stride[2] * p->x_stride[2];
    const int64_t n = count[3], pitch = p->pitch[2];
    inside(first[3], p->stride[3], n, p->in[3], &lo, &hi);
    inside(first[2], p->stride[2], count[2], p->in[2], &top, &bottom);
    if (lo == hi) bottom = top;
    const int64_t corner = (first[3] + lo * p->stride[3]) * p->x_stride[3] +
                           (first[2] + top * p->stride[2]) * p->x_stride[2];
    for (at[0] = 0; at[0] < count[0]; at[0]++) {
        for (at[1] = 0; at[1] < count[1]; at[1]++) {
            const int64_t batch = first[0] + at[0], depth = first[1] + at[1] * p->stride[1];
            char *to = y + (at[0] * p->pitch[0] + at[1] * p->pitch[1]) * size;
            if (depth < 0 || depth >= p->in[1] || bottom == top) {
                p->g->lines(count[2], 0, 0, n, x, 0, 1, to, pitch);
                continue;
            }
            const char *from = x + batch * p->x_stride[0] + depth * p->x_stride[1] + corner;
            p->g->lines(top, 0, 0, n, x, 0, 1, to, pitch);
            char *middle = to + top * pitch * size;
            if (p->x_ready) {
                p->g->lines(bottom - top, lo, hi, n, from, next / size, step / size, middle, pitch);
            } else {
                read_lines(p, bottom - top, lo, hi, n, from, next, step, middle, pitch * size);
            }
            p->g->lines(count[2] - bottom, 0, 0, n, x, 0, 1, to + bottom * pitch * size, pitch);
        }
    }
}

/* Channels lo..hi of a group; of the taps those from..to, where sheets are taps. */
static void stage(plan *p, const tile *t, int64_t lo, int64_t hi, int64_t from, int64_t to,
                  char *y) {
    for (int64_t c = lo; c < hi; c++) {
        const char *x = p->x + (t->group * p->channels + c) * p->x_channel;
        for (int64_t s = p->whole ? 0 : from; s < (p->whole ? p->nsheets : to); s++) {
            int64_t sheet[DIMS], rest = s;
            if ((s & 63) == 63 && stopped(p)) return;
            for (int d = DIMS - 1; d >= 0; d--) {
                const int64_t quotient = p->sheets[d] == 1 ? rest : rest / p->sheets[d];
                sheet[d] = rest - quotient * p->sheets[d];
                rest = quotient;
            }
            stage_sheet(p, t, x, sheet, y);
            y += p->sheet_bytes;
        }
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Sums of rows into out, line by line. */
static void put(const plan *p, const tile *t, int64_t row, int64_t rows, const char *sums) {
    const int64_t size = p->size, n = t->count[3];
    int64_t at[2];
    for (int64_t i = 0; i < rows; i++, sums += p->ldc * size) {
        char *y = p->y + (t->group * p->m + row + i) * p->y_channel;
        for (int d = 0; d < DIMS; d++)
            y += t->from[d] * p->y_stride[d];
        for (at[0] = 0; at[0] < t->count[0]; at[0]++) {
            for (at[1] = 0; at[1] < t->count[1]; at[1]++) {
                const char *x = sums + (at[0] * p->pitch[0] + at[1] * p->pitch[1]) * size;
                char *to = y + at[0] * p->y_stride[0] + at[1] * p->y_stride[1];
                if (p->y_ready) {
                    p->g->lines(t->count[2], 0, n, n, x, p->pitch[2], 1, to, p->y_stride[2] / size);
                    continue;
                }
                for (int64_t j = 0; j < t->count[2]; j++)
                    p->write(n, x + j * p->pitch[2] * size, size, to + j * p->y_stride[2],
                             p->y_stride[3]);
            }
        }
    }
}

/* Rows `row` and on of a box. */
static void run_tile(plan *p, const tile *t, int64_t row, int64_t rows, char *slot) {
    const int64_t size = p->size, padded = lm_round_up(p->m, p->width);
    char *sums = slot + p->stage_bytes;
    const char *bias = p->bias ? p->bias + (t->group * p->m + row) * size : NULL;
    int64_t columns = 1, ldc = p->ldc;
    for (int d = 0; d < DIMS; d++)
        columns += (t->count[d] - 1) * p->pitch[d];
    if (p->direct) {
        sums = p->y + (t->group * p->m + row) * p->y_channel;
        for (int d = 0; d < DIMS; d++)
            sums += t->from[d] * p->y_stride[d];
        ldc = p->y_channel / size;
    }
    if (p->k == 0)
        p->g->rows(rows, columns, 0, slot, p->width, slot, p->at, sums, ldc, false, bias);
    for (int64_t c = 0; c < p->channels && p->taps > 0; c += p->block) {
        const int64_t end = lm_min(c + p->block, p->channels);
        for (int64_t from = 0; from < p->taps; from += p->piece) {
            const int64_t to = lm_min(from + p->piece, p->taps);
            const int64_t k = (end - c) * (to - from), first = c * p->taps + from;
            if (from == 0 || !p->whole) stage(p, t, c, end, from, to, slot);
            if (stopped(p)) return;
            const char *a = p->weights + (t->group * padded * p->k + padded * first) * size;
            p->g->rows(rows, columns, k, a + row * k * size, p->width, slot,
                       p->at + (p->whole ? from : 0), sums, ldc, first > 0, bias);
        }
    }
    if (!p->direct) put(p, t, row, rows, sums);
}

/* x / y and the rest; divisions by 1 are many and not for free. */
static int64_t split(int64_t x, int64_t y, int64_t *rest) {
    const int64_t quotient = y == 1 ? x : x / y;
    *rest = x - quotient * y;
    return quotient;
}

static void run_jobs(void *ctx, int64_t lo, int64_t hi) {
    plan *p = ctx;
    const int slot = lm_slots_take(&p->slots);
    for (int64_t job = lo; job < hi && !stopped(p); job++) {
        int64_t row, rest = split(job, p->pieces_m, &row);
        row *= p->piece_m;
        tile t = {.group = 0};
        for (int d = DIMS - 1; d >= 0; d--) {
            rest = split(rest, p->tiles[d], &t.from[d]);
            t.from[d] *= p->box[d];
            t.count[d] = lm_min(p->box[d], p->out[d] - t.from[d]);
            if (d == 1) rest = split(rest, p->groups, &t.group); /* groups run inside n */
        }
        run_tile(p, &t, row, lm_min(p->piece_m, p->m - row), p->rooms + slot * p->slot_bytes);
    }
    lm_slots_give(&p->slots, slot);
}

/* Panels of w (groups * m, k) in their blocks. */
typedef struct {
    const plan *p;
    const char *w;
    char *panels;
} packing;
static void pack_panels(void *ctx, int64_t lo, int64_t hi) {
    const packing *q = ctx;
    const plan *p = q->p;
    const int64_t size = p->size, panels = lm_ceil_div(p->m, p->width);
    const int64_t padded = panels * p->width;
    for (int64_t job = lo; job < hi; job++) {
        const int64_t group = job / panels, row = job % panels * p->width;
        const int64_t lines = lm_min(p->width, p->m - row);
        const char *w = q->w + (group * p->m + row) * p->k * size;
        char *y = q->panels + group * padded * p->k * size;
        for (int64_t c = 0; c < p->channels; c += p->block) {
            const int64_t end = lm_min(c + p->block, p->channels);
            for (int64_t from = 0; from < p->taps; from += p->piece) {
                const int64_t first = c * p->taps + from;
                const int64_t k = (end - c) * (lm_min(from + p->piece, p->taps) - from);
                p->g->pack(lines, p->width, k, w + first * size, p->k, 1,
                           y + (padded * first + row * k) * size);
            }
        }
    }
}

/* ---- cutting -------------------------------------------------------------------------------- */

/* Sizes of a box of about so many columns. */
static void set_box(plan *p, int64_t columns) {
    p->ntiles = 1;
    for (int d = DIMS - 1; d >= 0; d--) {
        const int64_t most = lm_max(columns, 1);
        p->box[d] = p->out[d];
        if (p->out[d] > most) {
            p->box[d] = lm_ceil_div(p->out[d], lm_ceil_div(p->out[d], most));
            if (d == DIMS - 1) p->box[d] = lm_min(lm_round_up(p->box[d], p->g->nr), p->out[d]);
        }
        columns = p->box[d] == p->out[d] ? columns / p->out[d] : 1;
        p->tiles[d] = lm_ceil_div(p->out[d], p->box[d]);
        p->ntiles *= p->tiles[d];
    }
}

/* How many zeros at the end of a line of a sheet may be those at the beginning of the next. */
static int64_t shared_zeros(const plan *p, int d) {
    const int64_t count = extent(p, d, p->out[d]);
    int64_t least = count;
    if (p->box[d] != p->out[d]) return 0;
    for (int64_t i = 0; i < p->sheets[d]; i++) {
        int64_t lo, hi;
        inside(shift_of(p, d, i) - p->before[d], p->stride[d], count, p->in[d], &lo, &hi);
        least = lm_min(least, lo == hi ? count : lm_min(lo, count - hi));
    }
    return least;
}

/* Elements of a sheet; INT64_MAX / 16 when there are too many to count. */
static int64_t set_sheets(plan *p, bool whole) {
    int64_t pitch = 1, elements = 1;
    p->whole = whole;
    p->nsheets = 1;
    for (int d = DIMS - 1; d >= 0; d--) {
        p->sheets[d] = p->kernel[d];
        if (whole) {
            const int64_t phases = p->stride[d] / lm_gcd(p->stride[d], p->dilation[d]);
            p->sheets[d] = lm_min(phases, p->kernel[d]);
        }
        p->nsheets *= p->sheets[d];
        const int64_t count = extent(p, d, p->box[d]);
        int64_t grown, next;
        p->pitch[d] = pitch;
        if (!lm_mul_fits(count - 1, pitch, &grown) || !lm_add_fits(elements, grown, &elements) ||
            elements > INT32_MAX)
            return INT64_MAX / 16;
        next = whole ? lm_max(p->box[d], count - shared_zeros(p, d)) : p->box[d];
        pitch *= next;
        if (pitch > INT32_MAX) return INT64_MAX / 16;
    }
    return elements;
}

/* Whole sheets, where they fit and waste less than a sheet for every tap costs. */
static void choose_sheets(plan *p) {
    int64_t elements = set_sheets(p, true), columns = 1, real = 1, stage;
    for (int d = 0; d < DIMS; d++) {
        columns += (p->box[d] - 1) * p->pitch[d];
        real *= p->box[d];
    }
    const double waste = (double)columns / (double)real;
    if (p->taps == 0 || !lm_mul_fits(elements, p->nsheets * p->block * p->size, &stage) ||
        stage > STAGE || waste > 1.05 + 16.0 / (double)p->m)
        elements = set_sheets(p, false);
    p->sheet_bytes = lm_round_up(elements, 16) * p->size;
}

/* Where the columns of each k of a block begin. */
static void set_places(plan *p) {
    const int64_t taps = p->whole ? p->taps : p->piece;
    for (int64_t i = 0; i < p->block * taps; i++) {
        int64_t rest = i % taps, at = 0, sheet = 0, unit = 1;
        if (!p->whole) {
            p->at[i] = (int32_t)(i * (p->sheet_bytes / p->size));
            continue;
        }
        for (int d = DIMS - 1; d >= 0; d--) {
            const int64_t tap = rest % p->kernel[d];
            rest /= p->kernel[d];
            at += tap * p->dilation[d] / p->stride[d] * p->pitch[d];
            sheet += tap % p->sheets[d] * unit;
            unit *= p->sheets[d];
        }
        sheet += i / taps * p->nsheets;
        p->at[i] = (int32_t)(sheet * (p->sheet_bytes / p->size) + at);
    }
}

/* Blocks of k, by sizes of the convolution alone. */
static void set_blocks(plan *p) {
    const int64_t most = lm_max(BLOCK_K / lm_max(p->taps, 1), 1);
    p->pieces = lm_max(lm_ceil_div(p->taps, 2 * BLOCK_K), 1);
    p->piece = lm_ceil_div(lm_max(p->taps, 1), p->pieces);
    p->block = lm_max(lm_ceil_div(p->channels, lm_ceil_div(lm_max(p->channels, 1), most)), 1);
}

static void set_tiles(plan *p, double flops) {
    const int threads = lm_pool_threads();
    int64_t columns = p->m <= FEW_ROWS ? MANY_COLUMNS : COLUMNS;
    columns = lm_max(lm_min(columns, SUMS / p->m), FEW_COLUMNS);
    columns = lm_max(lm_min(columns, STAGE / 2 / p->size / p->block), FEW_COLUMNS);
    set_box(p, columns);
    p->piece_m = p->m;
    p->pieces_m = 1;
    const int64_t jobs = p->groups * p->ntiles;
    int64_t want = lm_ceil_div(2 * threads, jobs);
    if (threads == 1 || jobs >= 2 * threads) want = 1;
    if (flops / JOB_FLOPS < (double)(want * jobs)) want = (int64_t)(flops / JOB_FLOPS) / jobs;
    if (want > 1) p->piece_m = lm_round_up(lm_ceil_div(p->m, want), p->width);
    p->pieces_m = lm_ceil_div(p->m, p->piece_m);
}

/* Whether sums of a box can stand in out as they are computed. */
static bool holds_boxes(const plan *p, bool holds_sums) {
    if (!holds_sums || p->y_channel % p->size != 0) return false;
    for (int d = 0; d < DIMS; d++) {
        if (p->box[d] > 1 && p->y_stride[d] != p->pitch[d] * p->size) return false;
    }
    /* between lines of a box there is nothing */
    int64_t side = 1;
    for (int d = DIMS - 1; d >= 0; d--) {
        if (p->box[d] > 1 && p->pitch[d] != side) return false;
        side *= p->box[d];
    }
    return true;
}

/* ---- sizes and operands ----------------------------------------------------------------------- */

/* In bytes; of dims of one position any stride does. */
static int64_t stride(const luma_tensor *x, int dim) {
    if (x->layout.shape[dim] <= 1) return 0;
    return x->layout.stride[dim] * (int64_t)lm_dtype_size(x->dtype);
}

static bool is_whole(const plan *p, int d) {
    return p->kernel[d] == 1 && p->stride[d] == 1 && p->before[d] == 0 && p->in[d] == p->out[d];
}

/* Dims that are only walked become one with the next, where x and out lie so. */
static void merge_dims(plan *p) {
    for (int d = 1; d < DIMS - 1; d++) {
        if (!is_whole(p, d) || !is_whole(p, d + 1)) continue;
        if (p->in[d] > 1 && p->in[d + 1] > 1 &&
            (p->x_stride[d] != p->in[d + 1] * p->x_stride[d + 1] ||
             p->y_stride[d] != p->out[d + 1] * p->y_stride[d + 1]))
            continue;
        if (p->in[d + 1] == 1) {
            p->x_stride[d + 1] = p->x_stride[d];
            p->y_stride[d + 1] = p->y_stride[d];
        }
        p->in[d + 1] *= p->in[d];
        p->out[d + 1] *= p->out[d];
        p->in[d] = p->out[d] = 1;
    }
}

static void set_dims(plan *p, const lm_conv *v) {
    p->groups = v->groups;
    p->m = v->out.layout.shape[1] / v->groups;
    p->channels = v->w.layout.shape[1];
    p->taps = 1;
    for (int d = 0; d < DIMS; d++) {
        const int dim = d == 0 ? 0 : d + 1;
        p->out[d] = v->out.layout.shape[dim];
        p->in[d] = v->x.layout.shape[dim];
        p->x_stride[d] = stride(&v->x, dim);
        p->y_stride[d] = stride(&v->out, dim);
        p->kernel[d] = d == 0 ? 1 : v->w.layout.shape[dim];
        p->stride[d] = d == 0 || p->out[d] == 1 ? 1 : v->stride[d - 1];
        p->dilation[d] = d == 0 || p->kernel[d] == 1 ? 1 : v->dilation[d - 1];
        p->before[d] = d == 0 ? 0 : v->before[d - 1];
        p->taps *= p->kernel[d];
    }
    merge_dims(p);
    p->k = p->channels * p->taps;
    p->x_channel = stride(&v->x, 1);
    p->y_channel = stride(&v->out, 1);
    p->x = lm_data(&v->x);
    p->y = lm_data(&v->out);
}

/* x, contiguous and of this dtype: itself or a copy. Release it. */
static luma_status bring(luma_state *S, luma_tensor *own, const luma_tensor *x, luma_dtype dtype) {
    if (lm_cpu_same_words(x->dtype, dtype) && lm_layout_is_contiguous(&x->layout)) {
        luma_share(own, x);
        return LUMA_OK;
    }
    LM_TRY(lm_tensor_new(S, own, lm_cpu(S), dtype, x->layout.ndim, x->layout.shape));
    luma_status status = lm_copy(S, own, x);
    if (status != LUMA_OK) luma_release(S, own);
    return status;
}

/* Scratch memory: panels of w, places, a slot for each thread. */
static luma_status run(plan *p, const luma_tensor *w, int64_t jobs, double flops) {
    const int64_t panels = lm_ceil_div(p->m, p->width);
    int64_t weights, places = p->block * (p->whole ? p->taps : p->piece) * 4, total;
    if (!lm_mul_fits(p->groups * panels * p->width, p->k * p->size, &weights) ||
        weights > INT64_MAX / 4)
        return lm_fail(p->S, LUMA_ERR_MEMORY, 0, "cpu: the weights of a convolution are too many");
    weights = lm_round_up(weights, 64);
    places = lm_round_up(places, 64);
    lm_slots_open(&p->slots, p->S->threads, jobs);
    total = weights + places + p->slot_bytes * p->slots.n;
    lm_storage *scratch;
    LM_TRY(lm_storage_new(p->S, lm_cpu(p->S), (size_t)total, &scratch));
    p->weights = scratch->data;
    p->at = (int32_t *)(void *)(scratch->data + weights);
    p->rooms = scratch->data + weights + places;
    set_places(p);
    packing q = {p, lm_data(w), scratch->data};
    const double work = (double)p->width * (double)p->k + 1;
    if (p->k > 0)
        lm_parallel(p->S->threads, p->groups * panels,
                    (int64_t)lm_clamp((int64_t)(1e5 / work) + 1, 1, p->groups * panels),
                    pack_panels, &q);
    const double grain = JOB_FLOPS / (flops / (double)jobs) + 1;
    lm_parallel(p->S->threads, jobs, grain < (double)jobs ? (int64_t)grain : jobs, run_jobs, p);
    lm_storage_release(scratch);
    return p->stop ? lm_fail_interrupted(p->S) : LUMA_OK;
}

/* ---- depthwise, 3 x 3 ------------------------------------------------------------------------ */

#define PIECE 65536 /* elements of a plane that a job takes */

/* Whether planes of x meet planes of out as they lie. */
static bool is_three(const plan *p, bool holds_sums) {
    const int64_t *k = p->kernel, *s = p->stride, *e = p->dilation;
    return p->channels == 1 && k[1] == 1 && k[2] == 3 && k[3] == 3 && s[2] <= 2 && s[3] == s[2] &&
           e[2] == 1 && e[3] == 1 && p->before[1] == 0 && (p->out[1] - 1) * s[1] < p->in[1] &&
           p->x_ready && holds_sums && (p->x_stride[3] == p->size || p->in[3] == 1) &&
           (p->y_stride[3] == p->size || p->out[3] == 1) && lm_abs(p->before[2]) < INT32_MAX &&
           lm_abs(p->before[3]) < INT32_MAX;
}

static int64_t piece_rows(const plan *p) {
    return lm_clamp(PIECE / p->out[3] / 28 * 28, 28, p->out[2] > 28 ? p->out[2] : 28);
}

static void run_planes(void *ctx, int64_t lo, int64_t hi) {
    plan *p = ctx;
    const int64_t rows = piece_rows(p), pieces = lm_ceil_div(p->out[2], rows), size = p->size;
    for (int64_t job = lo; job < hi; job++) {
        int64_t piece, filter, depth, batch;
        if ((job & 15) == 0 && stopped(p)) return;
        int64_t rest = split(job, pieces, &piece);
        rest = split(rest, p->out[1], &depth);
        batch = split(rest, p->groups * p->m, &filter);
        const int64_t from = piece * rows;
        lm_three t = {.m = lm_min(rows, p->out[2] - from),
                      .n = p->out[3],
                      .height = p->in[2],
                      .width = p->in[3],
                      .step = p->stride[2],
                      .top = p->before[2] - from * p->stride[2],
                      .left = p->before[3],
                      .sx = p->x_stride[2] / size,
                      .sy = p->y_stride[2] / size};
        t.x = p->x + batch * p->x_stride[0] + filter / p->m * p->x_channel +
              depth * p->stride[1] * p->x_stride[1];
        t.y = p->y + batch * p->y_stride[0] + filter * p->y_channel + depth * p->y_stride[1] +
              from * p->y_stride[2];
        t.factors = p->weights + filter * 9 * size;
        t.bias = p->bias ? p->bias + filter * size : NULL;
        p->g->three(&t);
    }
}

static luma_status run_three(plan *p, const luma_tensor *w) {
    const int64_t pieces = lm_ceil_div(p->out[2], piece_rows(p));
    const int64_t jobs = p->out[0] * p->out[1] * p->groups * p->m * pieces;
    const double flops = 18.0 * (double)p->out[3] * (double)lm_min(p->out[2], piece_rows(p));
    const double grain = JOB_FLOPS / flops + 1;
    p->weights = lm_data(w);
    lm_parallel(p->S->threads, jobs, grain < (double)jobs ? (int64_t)grain : jobs, run_planes, p);
    return p->stop ? lm_fail_interrupted(p->S) : LUMA_OK;
}

/* ---- the slot ------------------------------------------------------------------------------- */

/* A convolution by 1 x 1 that is a product as it lies: no bias, no padding, no strides. */
static bool is_product(const lm_conv *v, luma_tensor *out, luma_tensor *w, luma_tensor *x) {
    const int64_t *shape = v->out.layout.shape, *kernel = v->w.layout.shape;
    bool same = !v->bias.storage, ok = true;
    for (int d = 0; d < 3; d++)
        same = same && kernel[d + 2] == 1 && v->before[d] == 0 &&
               (v->stride[d] == 1 || shape[d + 2] == 1) && v->x.layout.shape[d + 2] == shape[d + 2];
    if (!same) return false;
    const int64_t m = shape[1] / v->groups, length = shape[2] * shape[3] * shape[4];
    const int64_t outs[] = {shape[0], v->groups, m, length};
    const int64_t ws[] = {v->groups, m, kernel[1]}, xs[] = {shape[0], v->groups, kernel[1], length};
    *out = v->out;
    *w = v->w;
    *x = v->x;
    out->layout = lm_layout_view(&v->out.layout, 4, outs, &ok);
    if (ok) x->layout = lm_layout_view(&v->x.layout, 4, xs, &ok);
    if (ok) w->layout = lm_layout_view(&v->w.layout, 3, ws, &ok);
    if (ok) w->layout = lm_layout_insert(&w->layout, 0, shape[0], 0);
    return ok;
}

luma_status lm_cpu_conv(luma_state *S, lm_device *d, const lm_conv *v) {
    luma_dtype sums;
    plan p = {.S = S, .g = lm_cpu_sums(v->out.dtype, &sums)};
    luma_tensor w = LUMA_NEW, bias = LUMA_NEW;
    if (luma_numel(&v->out) == 0) return LUMA_OK;
    luma_tensor c, a, b;
    if (is_product(v, &c, &a, &b)) return lm_cpu_matmul(S, d, &c, &a, &b);
    set_dims(&p, v);
    p.size = (int64_t)lm_dtype_size(sums);
    p.width = lm_min(p.g->mr, p.m);
    p.x_ready = lm_cpu_same_words(v->x.dtype, sums);
    p.read = lm_level_now()->cast->cast[v->x.dtype][sums];
    p.write = lm_level_now()->cast->cast[sums][v->out.dtype];
    double flops = 2.0 * (double)luma_numel(&v->out) * (double)(p.k + 1);
    set_blocks(&p);
    set_tiles(&p, flops);
    choose_sheets(&p);
    const bool holds = lm_cpu_same_words(v->out.dtype, sums);
    const bool three = is_three(&p, holds);
    p.y_ready = holds && (p.y_stride[3] == p.size || p.out[3] == 1);
    p.direct = holds_boxes(&p, holds);
    int64_t columns = 1;
    for (int i = 0; i < DIMS; i++)
        columns += (p.box[i] - 1) * p.pitch[i];
    p.ldc = lm_round_up(columns, 16) + 16;
    p.stage_bytes = p.whole ? p.block * p.nsheets * p.sheet_bytes
                            : p.block * lm_min(p.piece, p.taps) * p.sheet_bytes;
    p.stage_bytes = lm_round_up(p.stage_bytes + 128, 64);
    p.slot_bytes = p.stage_bytes;
    if (!p.direct) p.slot_bytes += lm_round_up(p.piece_m * p.ldc * p.size, 64);
    LM_TRY(bring(S, &w, &v->w, sums));
    luma_status status = LUMA_OK;
    if (v->bias.storage) {
        status = bring(S, &bias, &v->bias, sums);
        if (status == LUMA_OK) p.bias = lm_data(&bias);
    }
    if (status == LUMA_OK && three) status = run_three(&p, &w);
    if (status == LUMA_OK && !three) status = run(&p, &w, p.groups * p.ntiles * p.pieces_m, flops);
    luma_release(S, &bias);
    luma_release(S, &w);
    return status;
}
