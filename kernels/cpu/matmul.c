/* matmul.c -- the matmul slot of the CPU: picks a way by sizes and layouts, cuts the work into jobs
** for the threads, and reads every dtype and stride into what the loops of level/gemm.c take. How
** the work is cut never changes the order of a sum. Layer: kernels/cpu. */
#include <string.h>

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

/* A block of a and the sums it meets stay in L2, a block of b in L3. */
#define BLOCK_K 384
#define BLOCK_M 168
#define BLOCK_N 1024
#define SUMS_M (3 * BLOCK_M) /* rows that are summed apart from c when c cannot hold sums */
#define POLL_N 256           /* columns between two looks at the interrupt flag */
#define ROOM 16384           /* bytes of a buffer on the stack */
#define APART 320            /* bytes that keep rows of sums off the same lines of L1 */
#define FEW 8                /* rows of a skinny product */
#define LONG_ROW 65536       /* values of rows that are read as they lie at a time */
#define LONG_K 32            /* from here on inner products pay */
#define SMALL_M 64           /* rows that are worth no panels */
#define LONG_SUM 16384       /* values of a sum that is cut in pieces, 64 at most, */
#define LONG_PIECES 64
#define LONG_SUMS 16384   /* where there are no more such sums than this */
#define JOB_FLOPS 1000000 /* what a thread is woken for */

typedef enum { WAY_SMALL, WAY_DOTS, WAY_SWEEP, WAY_BLOCKS } way;

/* One operand as lines of k values: rows of a, columns of b. Strides in bytes. */
typedef struct {
    const char *data;
    int64_t line, step; /* from line to line, along a line */
    int64_t batch[LUMA_MAX_DIMS];
    luma_dtype dtype;
    bool native;      /* elements are of the accumulator type */
    lm_cast_fn *read; /* elements to the accumulator type */
} side;

/* c (m, n) = a (m, k) b (k, n) at every position of the batch dims. */
typedef struct {
    luma_state *S;
    const lm_gemm *g;
    int64_t size; /* bytes of the accumulator type */
    int64_t m, n, k;
    side a, b;
    char *c;
    int64_t row, column; /* strides of c, bytes */
    bool direct;         /* c holds sums, its columns side by side */
    lm_cast_fn *write;   /* sums to elements of c */
    int nbatch;
    int64_t batches, batch[LUMA_MAX_DIMS], c_batch[LUMA_MAX_DIMS];
    way way;
    int64_t ra, ka, kb, ldc; /* WAY_SMALL: strides that its loops take, in elements */
    const lm_gemm_few *few;  /* WAY_DOTS, WAY_SWEEP: reads b as it lies; NULL: b is staged */
    int64_t b_size;          /* element of b */
    int64_t piece_m, piece_n, pieces_m, pieces_n; /* a job is one piece of one product */
    /* WAY_BLOCKS: panels of a, of b, sums; a slot for each thread */
    char *rooms;
    lm_slots slots;
    int64_t slot_bytes, b_offset, sums_offset;
    bool stop; /* the interrupt flag was seen; atomic */
} plan;

static bool stopped(plan *p) {
    if (lm_interrupted(p->S)) __atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&p->stop, __ATOMIC_RELAXED);
}

/* ---- reading and writing -------------------------------------------------------------------- */

/* One panel with room for `width` lines: value q of line i to panel[q * width + i]. */
static void pack(const plan *p, const side *s, const char *x, int64_t lines, int64_t width,
                 int64_t k, char *panel) {
    enum { LINES = 16, RUN = 64 };
    const int64_t size = p->size;
    if (s->native) {
        p->g->pack(lines, width, k, x, s->line / size, s->step / size, panel);
        return;
    }
    if (lm_abs(s->line) <= lm_abs(s->step)) {
        for (int64_t q = 0; q < k; q++)
            s->read(lines, x + q * s->step, s->line, panel + q * width * size, size);
        return;
    }
    _Alignas(64) char stage[LINES * RUN * 8];
    for (int64_t q = 0; q < k; q += RUN) {
        const int64_t run = lm_min(RUN, k - q);
        for (int64_t i = 0; i < lines; i += LINES) {
            const int64_t count = lm_min(LINES, lines - i);
            for (int64_t j = 0; j < count; j++)
                s->read(run, x + (i + j) * s->line + q * s->step, s->step, stage + j * run * size,
                        size);
            p->g->pack(count, width, run, stage, run, 1, panel + (q * width + i) * size);
        }
    }
}

/* m rows of n sums, ld bytes apart, into c. */
static void put(const plan *p, int64_t m, int64_t n, const char *sums, int64_t ld, char *c) {
    for (int64_t i = 0; i < m; i++)
        p->write(n, sums + i * ld, p->size, c + i * p->row, p->column);
}

/* ---- small products: no panels -------------------------------------------------------------- */

static bool b_lies_ready(const plan *p) {
    return p->b.native && (p->b.line == p->size || p->n == 1);
}

/* Operands that the loops cannot read as they lie, and sums that c cannot hold, must fit the stack;
** without panels each row of a is read once for every tile of columns. */
static bool is_small(const plan *p) {
    const int64_t most = ROOM / p->size, m = p->m, n = p->n, k = p->k;
    if (n > most || k > most) return false;
    if (!(p->direct && p->a.native) && (m > most || m * n > most || m * k > most)) return false;
    return k * n <= (b_lies_ready(p) ? 2 * most : most) && (m <= SMALL_M || n <= p->g->nr);
}

static void small_strides(plan *p) {
    p->ra = p->a.native ? p->a.line / p->size : 1;
    p->ka = p->a.native ? p->a.step / p->size : p->m;
    p->kb = b_lies_ready(p) ? p->b.step / p->size : p->n;
    p->ldc = p->direct ? p->row / p->size : p->n;
}

static void small_product(const plan *p, const char *a, const char *b, char *c, int64_t m) {
    _Alignas(64) char a_room[ROOM], b_room[ROOM], sums[ROOM];
    if (!p->a.native) {
        pack(p, &p->a, a, m, p->m, p->k, a_room);
        a = a_room;
    }
    if (!b_lies_ready(p)) {
        pack(p, &p->b, b, p->n, p->n, p->k, b_room);
        b = b_room;
    }
    p->g->small(m, p->n, p->k, a, p->ra, p->ka, b, p->kb, p->direct ? c : sums, p->ldc, false);
    if (!p->direct) put(p, m, p->n, sums, p->n * p->size, c);
}

/* ---- skinny products: few rows of a, so that reading b once is the work ---------------------- */

/* Columns lo.. of y (m, columns) by inner products, k values from `from` on. Four columns a quarter
** of them apart are read side by side: that is what memory delivers fastest. */
static void dots(plan *p, const char *x, int64_t ldx, const char *b, int64_t k, int64_t columns,
                 char *y, int64_t ldy) {
    _Alignas(64) char stage[ROOM];
    const int64_t size = p->size, quarter = columns / 4, run_of = ROOM / 4 / size;
    for (int64_t j = 0; j < columns && !stopped(p); j++) {
        if (j == quarter) j = 4 * quarter; /* the rest one by one */
        if (j == columns) break;
        const int count = j < quarter ? 4 : 1;
        const char *w = b + j * p->b.line;
        const int64_t apart = quarter * p->b.line;
        if (p->few) {
            p->few->dots((int)p->m, count, k, x, ldx, w, apart / p->b_size, y + j * size, ldy,
                         quarter);
            continue;
        }
        for (int64_t from = 0; from < k; from += run_of) {
            const int64_t run = lm_min(run_of, k - from);
            for (int q = 0; q < count; q++)
                p->b.read(run, w + q * apart + from * p->b.step, p->b.step, stage + q * run * size,
                          size);
            p->g->few.dots((int)p->m, count, run, x + from * size, ldx, stage, run, y + j * size,
                           ldy, quarter);
        }
    }
}

/* Asks for a row that is read after this one, which short rows would wait for. */
static void expect(const char *x, int64_t n, int64_t stride) {
    if (stride <= 0 || stride > 8) return;
    for (int64_t at = 0; at < n * stride; at += 64)
        __builtin_prefetch(x + at);
}

/* y (m, columns) += x b by rows of b; x as sweep_factors lays it out. */
static void sweep(plan *p, const char *x, const char *b, int64_t k, int64_t columns, char *y,
                  int64_t ldy) {
    _Alignas(64) char stage[ROOM];
    const int64_t size = p->size, quarter = k / 4, apart = quarter * p->b.step;
    for (int64_t r = 0; r < k && !stopped(p); r++) {
        if (r == quarter) r = 4 * quarter; /* the rest one by one */
        if (r == k) break;
        const int count = r < quarter ? 4 : 1;
        const char *w = b + r * p->b.step;
        const char *factors = x + (r < quarter ? r : r - 3 * quarter) * p->m * 4 * size;
        if (p->few) {
            p->few->sweep((int)p->m, count, columns, w, apart / p->b_size, factors, y, ldy);
            continue;
        }
        for (int q = 0; q < count; q++) {
            expect(w + q * apart + p->b.step, columns, p->b.line);
            p->b.read(columns, w + q * apart, p->b.line, stage + q * columns * size, size);
        }
        p->g->few.sweep((int)p->m, count, columns, stage, columns, factors, y, ldy);
    }
}

/* k values of each row of a: [group][row][4] where group g holds values g, g + k/4, g + 2(k/4), g +
** 3(k/4); the last k % 4 values are groups of one. */
static void sweep_factors(const plan *p, const char *a, int64_t k, char *x) {
    const int64_t quarter = k / 4, width = p->m * 4;
    side strided = p->a;
    strided.line = quarter * p->a.step;
    for (int64_t i = 0; i < p->m; i++, a += p->a.line, x += 4 * p->size) {
        pack(p, &strided, a, 4, width, quarter, x);
        pack(p, &strided, a + 4 * strided.line, 1, width, k - 4 * quarter,
             x + quarter * width * p->size);
    }
}

/* Columns lo..hi of one product. Blocks of columns and of k are cut by sizes alone. */
static void skinny_product(plan *p, const char *a, const char *b, char *c, int64_t lo, int64_t hi) {
    _Alignas(64) char x_room[ROOM + 12 * FEW * 8], y[ROOM + FEW * APART];
    const int64_t size = p->size, most = ROOM / size / p->m / 4 * 4;
    const bool by_dots = p->way == WAY_DOTS, x_ready = by_dots && p->a.native && p->a.step == size;
    const int64_t n_block = by_dots || p->few ? most : lm_min(most, ROOM / size / 4);
    const int64_t k_block = x_ready ? LONG_ROW : most;
    for (int64_t j = lo; j < hi && !stopped(p); j += n_block) {
        const int64_t n = lm_min(n_block, hi - j);
        const int64_t ldy = n + APART / size;
        memset(y, 0, (size_t)(p->m * ldy * size));
        for (int64_t q = 0; q < p->k && !stopped(p); q += k_block) {
            const int64_t k = lm_min(k_block, p->k - q);
            const char *aq = a + q * p->a.step, *bq = b + j * p->b.line + q * p->b.step;
            if (x_ready) {
                dots(p, aq, p->a.line / size, bq, k, n, y, ldy);
            } else if (by_dots) {
                for (int64_t i = 0; i < p->m; i++)
                    p->a.read(k, aq + i * p->a.line, p->a.step, x_room + i * k * size, size);
                dots(p, x_room, k, bq, k, n, y, ldy);
            } else {
                sweep_factors(p, aq, k, x_room);
                sweep(p, x_room, bq, k, n, y, ldy);
            }
        }
        put(p, p->m, n, y, ldy * size, c + j * p->column);
    }
}

/* ---- blocks: panels of both operands -------------------------------------------------------- */

/* sums (m, n), rows ld elements apart, of the lines from a and b on. */
static void block_sums(plan *p, char *slot, const char *a, const char *b, int64_t m, int64_t n,
                       char *sums, int64_t ld) {
    const int64_t size = p->size, mr = p->g->mr, nr = p->g->nr;
    const int64_t k_block = lm_ceil_div(p->k, lm_ceil_div(p->k, BLOCK_K));
    char *a_panels = slot, *b_panels = slot + p->b_offset;
    for (int64_t j = 0; j < n; j += BLOCK_N) {
        const int64_t jn = lm_min(BLOCK_N, n - j);
        for (int64_t q = 0; q < p->k; q += k_block) {
            const int64_t k = lm_min(k_block, p->k - q);
            for (int64_t t = 0; t < jn; t += nr)
                pack(p, &p->b, b + (j + t) * p->b.line + q * p->b.step, lm_min(nr, jn - t), nr, k,
                     b_panels + t * k * size);
            for (int64_t i = 0; i < m; i += BLOCK_M) {
                const int64_t im = lm_min(BLOCK_M, m - i);
                for (int64_t t = 0; t < im; t += mr)
                    pack(p, &p->a, a + (i + t) * p->a.line + q * p->a.step, lm_min(mr, im - t), mr,
                         k, a_panels + t * k * size);
                for (int64_t t = 0; t < jn; t += POLL_N) {
                    if (stopped(p)) return;
                    p->g->block(im, lm_min(POLL_N, jn - t), k, a_panels, b_panels + t * k * size,
                                sums + (i * ld + j + t) * size, ld, q > 0);
                }
            }
        }
    }
}

static void block_product(plan *p, char *slot, const char *a, const char *b, char *c, int64_t m,
                          int64_t n) {
    if (p->direct) {
        block_sums(p, slot, a, b, m, n, c, p->row / p->size);
        return;
    }
    char *sums = slot + p->sums_offset;
    for (int64_t j = 0; j < n; j += BLOCK_N) {
        const int64_t jn = lm_min(BLOCK_N, n - j);
        for (int64_t i = 0; i < m && !stopped(p); i += SUMS_M) {
            const int64_t im = lm_min(SUMS_M, m - i);
            block_sums(p, slot, a + i * p->a.line, b + j * p->b.line, im, jn, sums, jn);
            put(p, im, jn, sums, jn * p->size, c + i * p->row + j * p->column);
        }
    }
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void run_piece(plan *p, char *slot, int64_t job) {
    const int64_t pieces = p->pieces_m * p->pieces_n;
    int64_t position = pieces == 1 ? job : job / pieces;
    const char *a = p->a.data, *b = p->b.data;
    char *c = p->c;
    job -= position * pieces;
    for (int d = p->nbatch - 1; d >= 0; d--) {
        const int64_t rest = d > 0 ? position / p->batch[d] : 0;
        const int64_t at = position - rest * p->batch[d];
        a += at * p->a.batch[d];
        b += at * p->b.batch[d];
        c += at * p->c_batch[d];
        position = rest;
    }
    const int64_t j = job % p->pieces_n * p->piece_n, n = lm_min(p->piece_n, p->n - j);
    const int64_t i = job / p->pieces_n * p->piece_m, m = lm_min(p->piece_m, p->m - i);
    a += i * p->a.line;
    c += i * p->row;
    if (p->way == WAY_SMALL) {
        small_product(p, a, b, c, m);
    } else if (p->way == WAY_BLOCKS) {
        block_product(p, slot, a, b + j * p->b.line, c + j * p->column, m, n);
    } else {
        skinny_product(p, a, b, c, j, j + n);
    }
}

static void run_jobs(void *ctx, int64_t lo, int64_t hi) {
    plan *p = ctx;
    const int slot = p->rooms ? lm_slots_take(&p->slots) : 0;
    for (int64_t job = lo; job < hi && !stopped(p); job++)
        run_piece(p, p->rooms ? p->rooms + slot * p->slot_bytes : NULL, job);
    if (p->rooms) lm_slots_give(&p->slots, slot);
}

/* Cuts a product until every thread has a piece that is worth waking it. */
static void cut(plan *p, double flops) {
    const int threads = lm_pool_threads();
    p->piece_m = p->m;
    p->piece_n = p->n;
    p->pieces_m = p->pieces_n = 1;
    if (p->way == WAY_SMALL) {
        p->piece_m = lm_min(p->m, 8 * SMALL_M);
        p->pieces_m = lm_ceil_div(p->m, p->piece_m);
        return;
    }
    if (threads == 1 || p->batches >= 2 * threads) return;
    double worth = flops / JOB_FLOPS;
    int64_t want = p->batches == 1 ? threads : lm_ceil_div(2 * threads, p->batches);
    if (worth < (double)want) want = (int64_t)worth;
    if (p->way != WAY_BLOCKS) {
        p->piece_n = lm_round_up(lm_ceil_div(p->n, want < 1 ? 1 : want), 64);
    } else {
        const int64_t mr = p->g->mr, nr = p->g->nr;
        for (int64_t pieces = 1; pieces < want; pieces *= 2) {
            if (p->piece_m >= p->piece_n && p->piece_m > 2 * mr) {
                p->piece_m = lm_round_up(lm_ceil_div(p->piece_m, 2), mr);
            } else if (p->piece_n > 2 * nr) {
                p->piece_n = lm_round_up(lm_ceil_div(p->piece_n, 2), nr);
            }
        }
        p->pieces_m = lm_ceil_div(p->m, p->piece_m);
    }
    p->pieces_n = lm_ceil_div(p->n, p->piece_n);
}

static luma_status run(plan *p) {
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    lm_storage *scratch = NULL;
    cut(p, flops);
    const int64_t jobs = p->batches * p->pieces_m * p->pieces_n;
    if (p->way == WAY_BLOCKS) {
        const int64_t k = lm_min(p->k, BLOCK_K),
                      n = lm_min(lm_round_up(p->piece_n, p->g->nr), BLOCK_N);
        const int64_t m = lm_min(lm_round_up(p->piece_m, p->g->mr), BLOCK_M);
        p->b_offset = lm_round_up(m * k * p->size, 64);
        p->sums_offset = p->b_offset + lm_round_up(n * k * p->size, 64);
        p->slot_bytes = p->sums_offset;
        if (!p->direct) p->slot_bytes += lm_round_up(lm_min(p->piece_m, SUMS_M) * n * p->size, 64);
        lm_slots_open(&p->slots, p->S->threads, jobs);
        LM_TRY(lm_storage_new(p->S, lm_cpu(p->S), (size_t)(p->slot_bytes * p->slots.n), &scratch));
        p->rooms = scratch->data;
    }
    const double grain = JOB_FLOPS / (flops / (double)(p->pieces_m * p->pieces_n)) + 1;
    lm_parallel(p->S->threads, jobs, grain < (double)jobs ? (int64_t)grain : jobs, run_jobs, p);
    lm_storage_release(scratch);
    return p->stop ? lm_fail_interrupted(p->S) : LUMA_OK;
}

/* ---- the slot ------------------------------------------------------------------------------- */

static void swap_roles(plan *p) {
    const side s = p->a;
    const int64_t size = p->m, stride = p->row;
    p->a = p->b;
    p->b = s;
    p->m = p->n;
    p->n = size;
    p->row = p->column;
    p->column = stride;
}

/* Whether there are loops for b as it lies. */
static void choose_few(plan *p) {
    const lm_gemm_kernels *gemm = lm_level_now()->gemm;
    const int64_t next = p->way == WAY_DOTS ? p->b.step : p->b.line;
    p->b_size = (int64_t)lm_dtype_size(p->b.dtype);
    if (next != p->b_size) return;
    if (p->b.native) p->few = &p->g->few;
    if (p->g != &gemm->f32) return;
    if (p->b.dtype == LUMA_BFLOAT16) p->few = &gemm->bf16;
    if (p->b.dtype == LUMA_FLOAT16 && gemm->f16.dots) p->few = &gemm->f16;
}

static void choose_way(plan *p, bool holds_sums) {
    /* c whose rows lie side by side is the product of the transposes */
    if (p->column != p->size && p->row == p->size) swap_roles(p);
    p->direct = holds_sums && (p->column == p->size || p->n == 1);
    const bool few = lm_min(p->m, p->n) <= FEW, wide = p->m > SMALL_M || p->n > SMALL_M;
    const side *many = p->m <= p->n ? &p->b : &p->a;
    const bool one = p->m == 1 && p->n == 1; /* line strides of one line say nothing */
    const bool by_dots = one || lm_abs(many->step) < lm_abs(many->line);
    if (few && p->k >= LONG_K && (by_dots || wide)) {
        p->way = by_dots ? WAY_DOTS : WAY_SWEEP;
    } else if (is_small(p)) {
        p->way = WAY_SMALL;
        small_strides(p);
    } else {
        p->way = few && !by_dots ? WAY_SWEEP : WAY_BLOCKS;
    }
    if (p->way == WAY_SMALL || p->way == WAY_BLOCKS) return;
    if (p->n < p->m) swap_roles(p);
    choose_few(p);
}

/* A stack of matrices that share the other operand, one after the other in memory, is one matrix:
** `lines` of s and of c, strides s->line and *to, grow by the batch. */
static bool fold(plan *p, side *s, const side *shared, int64_t *lines, int64_t *to) {
    const bool one = *lines == 1; /* any stride does */
    if (shared->batch[0] != 0) return false;
    if (!one && (s->batch[0] != *lines * s->line || p->c_batch[0] != *lines * *to)) return false;
    if (one) {
        s->line = s->batch[0];
        *to = p->c_batch[0];
    }
    *lines *= p->batch[0];
    p->nbatch = 0;
    p->batches = 1;
    return true;
}

/* In bytes. Of dims of one position any stride does, so that theirs may be too big to multiply. */
static int64_t stride(const luma_tensor *x, int dim) {
    if (x->layout.shape[dim] <= 1) return 0;
    return x->layout.stride[dim] * (int64_t)lm_dtype_size(x->dtype);
}

/* Batch dims of more than one position; neighbours that all three walk as one are merged. */
static void plan_batch(plan *p, const luma_tensor *out, const luma_tensor *a,
                       const luma_tensor *b) {
    p->batches = 1;
    for (int d = 0; d < out->layout.ndim - 2; d++) {
        const int64_t count = out->layout.shape[d];
        const int64_t as = stride(a, d), bs = stride(b, d), cs = stride(out, d);
        p->batches *= count;
        if (count == 1) continue;
        int t = p->nbatch - 1;
        if (t < 0 || p->a.batch[t] != count * as || p->b.batch[t] != count * bs ||
            p->c_batch[t] != count * cs) {
            t = p->nbatch++;
            p->batch[t] = 1;
        }
        p->batch[t] *= count;
        p->a.batch[t] = as;
        p->b.batch[t] = bs;
        p->c_batch[t] = cs;
    }
    if (p->nbatch == 1 && !fold(p, &p->a, &p->b, &p->m, &p->row))
        fold(p, &p->b, &p->a, &p->n, &p->column);
}

const lm_gemm *lm_cpu_sums(luma_dtype out, luma_dtype *dtype) {
    const lm_gemm_kernels *gemm = lm_level_now()->gemm;
    switch (out) {
    case LUMA_FLOAT64:
        *dtype = LUMA_FLOAT64;
        return &gemm->f64;
    case LUMA_INT64:
        *dtype = LUMA_INT64;
        return &gemm->w64;
    default:
        *dtype = lm_dtype_is_float(out) ? LUMA_FLOAT32 : LUMA_INT32;
        return lm_dtype_is_float(out) ? &gemm->f32 : &gemm->w32;
    }
}

bool lm_cpu_same_words(luma_dtype x, luma_dtype sums) {
    return x == sums || (x == LUMA_UINT32 && sums == LUMA_INT32);
}

static side plan_side(const luma_tensor *x, int line, int step, luma_dtype sums) {
    return (side){.data = lm_data(x),
                  .line = stride(x, line),
                  .step = stride(x, step),
                  .dtype = x->dtype,
                  .native = lm_cpu_same_words(x->dtype, sums),
                  .read = lm_level_now()->cast->cast[x->dtype][sums]};
}

/* Few but long sums are cut along k, by sizes alone, for the threads to share: pieces of them lie in
** scratch like a batch and are added in their order. */
static luma_status run_long(plan *p, luma_dtype sums) {
    const int64_t count = lm_min(LONG_PIECES, p->k / LONG_SUM), each = lm_ceil_div(p->k, count);
    const int64_t whole = p->k / each, rest = p->k - whole * each, n = p->m * p->n;
    const int32_t one = 1;
    _Alignas(8) char factor[8];
    lm_storage *scratch;
    LM_TRY(lm_storage_new(p->S, lm_cpu(p->S), (size_t)((whole + 1) * n * p->size), &scratch));
    plan part = *p;
    part.c = scratch->data;
    part.row = p->n * p->size;
    part.column = p->size;
    part.write = lm_level_now()->cast->cast[sums][sums];
    part.k = each;
    part.nbatch = 1;
    part.batches = part.batch[0] = whole;
    part.a.batch[0] = each * p->a.step;
    part.b.batch[0] = each * p->b.step;
    part.c_batch[0] = n * p->size;
    plan last = part;
    choose_way(&part, true);
    luma_status status = run(&part);
    if (status == LUMA_OK && rest > 0) {
        last.a.data += whole * last.a.batch[0];
        last.b.data += whole * last.b.batch[0];
        last.c += whole * last.c_batch[0];
        last.k = rest;
        last.nbatch = 0;
        last.batches = 1;
        choose_way(&last, true);
        status = run(&last);
    }
    if (status == LUMA_OK) {
        lm_level_now()->cast->cast[LUMA_INT32][sums](1, (const char *)&one, 0, factor, 0);
        for (int64_t i = 1; i < whole + (rest > 0); i++)
            p->g->few.sweep(1, 1, n, scratch->data + i * n * p->size, 0, factor, scratch->data, 0);
        put(p, p->m, p->n, scratch->data, p->n * p->size, p->c);
    }
    lm_storage_release(scratch);
    return status;
}

luma_status lm_cpu_matmul(luma_state *S, lm_device *d, const luma_tensor *out, const luma_tensor *a,
                          const luma_tensor *b) {
    const int row = out->layout.ndim - 2, column = row + 1;
    luma_dtype sums;
    plan p = {.S = S, .g = lm_cpu_sums(out->dtype, &sums)};
    (void)d;
    p.size = (int64_t)lm_dtype_size(sums);
    p.m = out->layout.shape[row];
    p.n = out->layout.shape[column];
    p.k = a->layout.shape[column];
    p.a = plan_side(a, row, column, sums);
    p.b = plan_side(b, column, row, sums);
    p.c = lm_data(out);
    p.row = stride(out, row);
    p.column = stride(out, column);
    p.write = lm_level_now()->cast->cast[sums][out->dtype];
    plan_batch(&p, out, a, b);
    if (p.m == 0 || p.n == 0 || p.batches == 0) return LUMA_OK;
    if (p.k == 0) {
        luma_tensor zeros = *out;
        return lm_fill(S, &zeros, (luma_scalar){.kind = LUMA_IS_INT});
    }
    if (p.batches == 1 && p.k >= 2 * LONG_SUM && (double)p.m * (double)p.n <= LONG_SUMS)
        return run_long(&p, sums);
    choose_way(&p, lm_cpu_same_words(out->dtype, sums));
    return run(&p);
}
