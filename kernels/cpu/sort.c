/* sort.c -- sort and topk on the CPU. A row becomes words of key and position. Short rows are
** merged, long ones go through a radix sort from the lowest digit; where few are wanted a selection
** from the highest digit comes first. Layer: kernels/cpu. */
#include <string.h>

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define MERGE_MAX 200    /* words up to which merging beats the radix sort */
#define LONG_DIGITS 4096 /* words from which digits of 11 bits beat those of 8 */
#define MAX_BITS 11
#define PIECE (16 << 10)    /* words between looks at the interrupt flag */
#define PARALLEL (64 << 10) /* words of a row that several threads sort together */

typedef struct {
    luma_state *S;
    const lm_sort *s;
    const lm_sort_words *k;
    int64_t n, rows;
    int chunks;  /* parts of a row that are counted and spread side by side */
    size_t each; /* bytes of scratch for one row */
    int slices;  /* rows that are under way at once, each with scratch of its own */
    char *scratch;
    int stopped; /* atomic */
} job;

static bool stop(job *j) {
    if (lm_interrupted(j->S)) __atomic_store_n(&j->stopped, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&j->stopped, __ATOMIC_RELAXED);
}

/* One row under way. */
typedef struct {
    job *j;
    const char *x;
    int64_t sx;
    char *words, *other; /* n words each; sorting swaps them */
    int64_t *tables;     /* 1 << MAX_BITS counts for each chunk */
    int64_t n;           /* words that count */
    int64_t from;        /* the first of them that is wanted, once they are in order */
    int shift, bits;
} row;

/* Where part number i of n things in `parts` starts. */
static int64_t part_start(int64_t n, int64_t parts, int64_t i) {
    return n / parts * i + n % parts * i / parts;
}

static int64_t chunk_start(const row *r, int64_t c) {
    return part_start(r->n, r->j->chunks, c);
}

/* fn(r, lo, hi) for every chunk, number by number. */
static void each_chunk(row *r, void (*fn)(void *, int64_t, int64_t)) {
    if (r->j->chunks > 1)
        lm_parallel(r->j->S->threads, r->j->chunks, 1, fn, r);
    else
        fn(r, 0, 1);
}

/* ---- radix sort ------------------------------------------------------------------------------*/

static void make_chunks(void *ctx, int64_t lo, int64_t hi) {
    row *r = ctx;
    const lm_sort *s = r->j->s;
    const lm_sort_words *k = r->j->k;
    int64_t end = chunk_start(r, hi);
    for (int64_t i = chunk_start(r, lo); i < end && !stop(r->j); i += PIECE)
        k->make[s->x.dtype](end - i < PIECE ? end - i : PIECE, r->x + i * r->sx, r->sx,
                            s->descending, i, r->words + i * (int64_t)k->size);
}

static void count_chunks(void *ctx, int64_t lo, int64_t hi) {
    row *r = ctx;
    const lm_sort_words *k = r->j->k;
    for (int64_t c = lo; c < hi; c++) {
        int64_t *counts = r->tables + (c << r->bits), end = chunk_start(r, c + 1);
        memset(counts, 0, sizeof *counts << r->bits);
        for (int64_t i = chunk_start(r, c); i < end && !stop(r->j); i += PIECE)
            k->count(end - i < PIECE ? end - i : PIECE, r->words + i * (int64_t)k->size, r->shift,
                     r->bits, counts);
    }
}

static void spread_chunks(void *ctx, int64_t lo, int64_t hi) {
    row *r = ctx;
    const lm_sort_words *k = r->j->k;
    for (int64_t c = lo; c < hi; c++) {
        int64_t *next = r->tables + (c << r->bits), end = chunk_start(r, c + 1);
        for (int64_t i = chunk_start(r, c); i < end && !stop(r->j); i += PIECE)
            k->spread(end - i < PIECE ? end - i : PIECE, r->words + i * (int64_t)k->size, r->shift,
                      r->bits, next, r->other);
    }
}

/* Counts to places: all of a digit before the next, in it chunk by chunk. false: every word has the
** same digit. */
static bool place_digits(const row *r) {
    int64_t place = 0, chunks = r->j->chunks;
    for (int64_t digit = 0; digit < (int64_t)1 << r->bits; digit++) {
        int64_t before = place;
        for (int64_t c = 0; c < chunks; c++) {
            int64_t *count = r->tables + (c << r->bits) + digit, n = *count;
            *count = place;
            place += n;
        }
        if (place - before == r->n) return false;
    }
    return true;
}

static void radix_sort(row *r, int key_bits) {
    int bits = r->n < LONG_DIGITS ? 8 : MAX_BITS;
    for (r->shift = 0; r->shift < key_bits && !stop(r->j); r->shift += bits) {
        r->bits = key_bits - r->shift < bits ? key_bits - r->shift : bits;
        each_chunk(r, count_chunks);
        if (!place_digits(r)) continue;
        each_chunk(r, spread_chunks);
        char *words = r->words;
        r->words = r->other;
        r->other = words;
    }
}

static int key_bits(const job *j) {
    return 8 * (int)lm_dtype_size(j->s->x.dtype);
}

static void sort_words(row *r) {
    if (r->n <= MERGE_MAX)
        r->j->k->merge(r->n, r->words, r->other);
    else
        radix_sort(r, key_bits(r->j));
}

/* ---- selection -------------------------------------------------------------------------------*/

/* Leaves the words that come to stand at places r->from .. wanted - 1, not in order, and may leave some
** that stand before. From the highest digit on: of words with another digit than the last wanted one
** those below are in, or out where all of them stand before r->from, those above are out; the rest is
** looked at again. */
static void select_words(row *r, int64_t wanted) {
    const lm_sort_words *k = r->j->k;
    const int64_t size = (int64_t)k->size;
    int64_t n = r->n, taken = 0;
    for (r->shift = key_bits(r->j); r->shift > 0 && n > wanted - taken;) {
        r->bits = r->shift < MAX_BITS ? r->shift : MAX_BITS;
        r->shift -= r->bits;
        memset(r->tables, 0, sizeof *r->tables << r->bits);
        for (int64_t i = 0; i < n; i += PIECE) {
            if (stop(r->j)) return;
            k->count(n - i < PIECE ? n - i : PIECE, r->words + i * size, r->shift, r->bits,
                     r->tables);
        }
        int64_t digit = 0, below = 0, kept = 0, in = taken;
        while (below + r->tables[digit] < wanted - taken)
            below += r->tables[digit++];
        if (r->tables[digit] == n) continue; /* of all words */
        for (int64_t i = 0; i < n; i += PIECE) {
            if (stop(r->j)) return;
            int64_t same = k->sift(n - i < PIECE ? n - i : PIECE, r->words + i * size, r->shift,
                                   r->bits, (uint64_t)digit, r->other, &in);
            memmove(r->words + kept * size, r->words + i * size, (size_t)(same * size));
            kept += same;
        }
        n = kept;
        if (taken + below > r->from) {
            taken = in;
        } else {
            r->from -= taken + below;
            wanted -= taken + below;
            taken = 0;
        }
    }
    /* equal keys, in order of position */
    memcpy(r->other + taken * size, r->words, (size_t)((wanted - taken) * size));
    char *words = r->words;
    r->words = r->other;
    r->other = words;
    r->n = wanted;
}

/* ---- rows ------------------------------------------------------------------------------------*/

/* The first element of a row: dims other than dim, numbered in row-major order. */
static char *row_start(const luma_tensor *x, int dim, int64_t number) {
    int64_t at = 0;
    for (int d = x->layout.ndim - 1; d >= 0; d--) {
        if (d == dim) continue;
        at += number % x->layout.shape[d] * x->layout.stride[d];
        number /= x->layout.shape[d];
    }
    return lm_data(x) + at * (int64_t)lm_dtype_size(x->dtype);
}

typedef struct {
    const row *r;
    char *values, *positions; /* NULL where not wanted */
    int64_t sv, sp;
} result;

static void give_part(void *ctx, int64_t lo, int64_t hi) {
    const result *g = ctx;
    const row *r = g->r;
    const lm_sort_words *k = r->j->k;
    int log = __builtin_ctzll(lm_dtype_size(r->j->s->x.dtype));
    for (int64_t i = lo; i < hi && !stop(r->j); i += PIECE) {
        int64_t n = hi - i < PIECE ? hi - i : PIECE;
        const char *words = r->words + (r->from + i) * (int64_t)k->size;
        if (g->positions)
            k->positions(n, words, r->j->s->index_base, g->positions + i * g->sp, g->sp);
        if (g->values) k->values[log](n, words, r->x, r->sx, g->values + i * g->sv, g->sv);
    }
}

static void give(const row *r, int64_t number) {
    const lm_sort *s = r->j->s;
    result g = {.r = r};
    if (s->values.storage) {
        g.values = row_start(&s->values, s->dim, number);
        g.sv = s->values.layout.stride[s->dim] * (int64_t)lm_dtype_size(s->values.dtype);
    }
    if (s->positions.storage) {
        g.positions = row_start(&s->positions, s->dim, number);
        g.sp = s->positions.layout.stride[s->dim] * (int64_t)sizeof(int64_t);
    }
    if (r->j->chunks > 1)
        lm_parallel(r->j->S->threads, s->k, PIECE, give_part, &g);
    else
        give_part(&g, 0, s->k);
}

static void sort_row(job *j, int64_t number, char *scratch) {
    const lm_sort *s = j->s;
    size_t bytes = (size_t)j->n * j->k->size;
    row r = {.j = j,
             .x = row_start(&s->x, s->dim, number),
             .sx = s->x.layout.stride[s->dim] * (int64_t)lm_dtype_size(s->x.dtype),
             .words = scratch,
             .other = scratch + bytes,
             .tables = (int64_t *)(void *)(scratch + 2 * bytes),
             .n = j->n,
             .from = s->from};
    each_chunk(&r, make_chunks);
    if (j->n > MERGE_MAX && s->k <= j->n / 4) select_words(&r, s->from + s->k);
    sort_words(&r);
    if (!stop(j)) give(&r, number);
}

static void sort_slices(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    for (int64_t slice = lo; slice < hi; slice++) {
        int64_t end = part_start(j->rows, j->slices, slice + 1);
        for (int64_t i = part_start(j->rows, j->slices, slice); i < end && !stop(j); i++)
            sort_row(j, i, j->scratch + (size_t)slice * j->each);
    }
}

/* Either many rows side by side, or one after the other with all threads at work in each. */
static void share_work(job *j) {
    int threads = lm_pool_threads();
    bool inside = j->n >= PARALLEL && j->rows < 4 * threads;
    int64_t slices = inside || j->rows * j->n < PIECE / 2 ? 1 : 2 * threads;
    j->chunks = inside ? threads : 1;
    j->slices = (int)(j->rows < slices ? j->rows : slices);
}

luma_status lm_cpu_sort(luma_state *S, lm_device *d, const lm_sort *s) {
    (void)d;
    job j = {.S = S, .s = s, .n = s->x.layout.shape[s->dim]};
    const lm_sort_kernels *kernels = lm_level_now()->sort;
    bool narrow = lm_dtype_size(s->x.dtype) <= 4 && j.n <= INT64_C(1) << 32;
    j.k = narrow ? &kernels->narrow : &kernels->wide;
    j.rows = luma_numel(&s->x) / j.n;
    share_work(&j);
    size_t tables = j.n > MERGE_MAX ? (size_t)j.chunks * (sizeof(int64_t) << MAX_BITS) : 0;
    int64_t words, all;
    lm_storage *memory;
    if (!lm_mul_fits(j.n, 2 * (int64_t)j.k->size, &words) ||
        !lm_add_fits(words, (int64_t)tables, &words) || !lm_mul_fits(words, j.slices, &all))
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory to sort rows of %lld",
                       (long long)j.n);
    j.each = (size_t)words;
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)all, &memory));
    j.scratch = memory->data;
    if (j.slices > 1) {
        lm_parallel(S->threads, j.slices, 1, sort_slices, &j);
    } else {
        sort_slices(&j, 0, 1);
    }
    lm_storage_release(memory);
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
