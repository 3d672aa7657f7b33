/* index.c -- indexing on the CPU: index values are checked, turned into places block by block, and
** the level's kernels move or join the rows. Layer: kernels/cpu. */
#include "index.h"

#include <string.h>

#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define BLOCK 512             /* places at a time */
#define POLL (64 << 10)       /* bytes between looks at the interrupt flag, about */
#define SHARE (32 << 10)      /* bytes of traffic that are worth a thread */
#define PAST (12 << 20)       /* bytes of rows that are written past the caches */
#define LONG_ROW 512          /* bytes of such a row at least, */
#define SHORT_ROW 256         /* or where it is made of whole */
#define LINE 64               /* lines of the caches, in bytes */
#define FLAG_BLOCK (32 << 10) /* elements of a mask that are counted and listed as one */

/* ---- the plan --------------------------------------------------------------------------------*/

/* A walked dim: its size, and steps in bytes. */
typedef struct {
    int64_t n, plain, indexed;
    int64_t index[LUMA_MAX_DIMS]; /* of the index of each part */
} axis;

typedef struct {
    luma_state *S;
    const lm_index *w;
    int64_t size; /* bytes of an element */
    /* The last axis is a row, for which no index moves; the one before runs over places. */
    int n;
    axis axes[LUMA_MAX_DIMS + 2];
    int split; /* the axis that threads share */
    char *plain, *indexed;
    const char *index[LUMA_MAX_DIMS];
    int stopped; /* atomic: INTERRUPTED or WRONG */
} job;
enum { INTERRUPTED = 1, WRONG = 2 };

/* Appends an axis to n others, as part of the last one where both are walked as one. */
static int append(axis *axes, int n, const axis *a, int parts) {
    if (a->n == 1) return n;
    axis *last = &axes[n - 1];
    bool joined = n > 0 && last->plain == a->plain * a->n && last->indexed == a->indexed * a->n;
    for (int p = 0; p < parts && joined; p++)
        joined = last->index[p] == a->index[p] * a->n;
    if (!joined) {
        axes[n] = *a;
        return n + 1;
    }
    int64_t size = last->n * a->n;
    *last = *a;
    last->n = size;
    return n;
}

static bool is_fixed(const axis *a, int parts) {
    for (int p = 0; p < parts; p++)
        if (a->index[p] != 0) return false;
    return true;
}

static void plan(job *j) {
    const lm_index *w = j->w;
    for (int d = 0; d < w->ndim; d++) {
        axis a = {.n = w->shape[d],
                  .plain = w->plain.layout.stride[d] * j->size,
                  .indexed = w->indexed.layout.stride[d] * j->size};
        for (int p = 0; p < w->n; p++)
            a.index[p] = w->parts[p].stride[d] * (int64_t)lm_dtype_size(w->parts[p].index.dtype);
        j->n = append(j->axes, j->n, &a, w->n);
    }
    const axis one = {.n = 1};
    bool row = j->n > 0 && is_fixed(&j->axes[j->n - 1], w->n);
    /* A few places in many short rows: better few long rows. The order of duplicates stays. */
    if (!row && j->n > 1 && j->axes[j->n - 1].n <= 8 && j->axes[j->n - 2].n > 64 &&
        is_fixed(&j->axes[j->n - 2], w->n)) {
        axis a = j->axes[j->n - 1];
        j->axes[j->n - 1] = j->axes[j->n - 2];
        j->axes[j->n - 2] = a;
        row = true;
    }
    if (!row) j->axes[j->n++] = one;
    if (j->n == 1) {
        j->axes[1] = j->axes[0];
        j->axes[0] = one;
        j->n = 2;
    }
}

/* ---- the walk --------------------------------------------------------------------------------*/

/* Whether rows of so many bytes, side by side, are written past the caches: there are so many that
** nobody will find them there, and they are long or share no line of the caches with others. */
static bool reads_past(const job *j, int64_t bytes) {
    int64_t lines = bytes | j->axes[j->n - 2].plain | (int64_t)((uintptr_t)j->plain % LINE);
    if (bytes < (lines % LINE == 0 ? SHORT_ROW : LONG_ROW)) return false;
    return luma_numel(&j->w->plain) >= PAST / j->size;
}

/* The kernel for the rows, and how it takes them. */
typedef struct {
    lm_index_fn *fn;
    lm_index_row row;
    int64_t each, block; /* bytes of a row; rows at a time */
} kernel;

static lm_index_fn *choose_fn(const job *j, lm_index_row *row) {
    const lm_index_kernels *k = lm_level_now()->index;
    const axis *a = &j->axes[j->n - 1];
    *row = (lm_index_row){.length = a->n, .plain = a->plain, .indexed = a->indexed};
    if (j->w->kind >= LM_INDEX_ADD) return k->join[j->w->kind - LM_INDEX_ADD][j->w->plain.dtype];
    bool read = j->w->kind == LM_INDEX_READ;
    int64_t bytes = a->n * j->size;
    bool dense = a->n == 1 || (a->plain == j->size && a->indexed == j->size);
    bool past = read && dense && reads_past(j, bytes);
    bool word = dense && !past && bytes < 1 << LM_INDEX_SIZES && (bytes & (bytes - 1)) == 0;
    if (dense && !word) {
        row->length = bytes;
        return past ? k->read_past : read ? k->read_block : k->write_block;
    }
    if (word) row->length = 1;
    int log = __builtin_ctzll((uint64_t)(word ? bytes : j->size));
    return read ? k->read[log] : k->write[log];
}

static kernel choose(const job *j) {
    kernel k = {.each = j->axes[j->n - 1].n * j->size};
    k.fn = choose_fn(j, &k.row);
    k.block = lm_clamp(POLL / k.each, 1, BLOCK);
    return k;
}

/* n values of an index as int64: where they are, or in v. */
static const int64_t *load(int64_t n, luma_dtype dtype, const char *x, int64_t step, int64_t *v) {
    if (dtype == LUMA_INT64 && step == sizeof *v) return (const int64_t *)(const void *)x;
    lm_level_now()->cast->cast[dtype][LUMA_INT64](n, x, step, (char *)v, sizeof *v);
    return v;
}

/* n places along the axis of places from number lo on; the pointers in index are those of its
** first. false: an index that was not checked before is out of range. */
static bool find_places(const job *j, const char *const *index, int64_t lo, int64_t n,
                        int64_t *at) {
    const lm_index_kernels *k = lm_level_now()->index;
    const axis *a = &j->axes[j->n - 2];
    int64_t memory[BLOCK], base = j->w->index_base;
    if (a->indexed == 0) memset(at, 0, (size_t)n * sizeof *at);
    for (int64_t i = 0; i < n && a->indexed != 0; i++)
        at[i] = (lo + i) * a->indexed;
    for (int p = 0; p < j->w->n; p++) {
        const lm_index_part *part = &j->w->parts[p];
        const int64_t *v =
            load(n, part->index.dtype, index[p] + lo * a->index[p], a->index[p], memory);
        if (part->divisor == 1 && part->modulus == part->size) {
            if (!k->place(n, v, base, part->size, part->step * j->size, at)) return false;
        } else {
            if (!k->valid(n, v, base, part->size)) return false;
            for (int64_t i = 0; i < n; i++)
                memory[i] = (v[i] - base) / part->divisor % part->modulus;
            k->place(n, memory, 0, part->modulus, part->step * j->size, at);
        }
    }
    return true;
}

static bool stop(job *shared) {
    if (lm_interrupted(shared->S))
        __atomic_store_n(&shared->stopped, INTERRUPTED, __ATOMIC_RELAXED);
    return __atomic_load_n(&shared->stopped, __ATOMIC_RELAXED);
}

/* All places of one turn of the outer axes. *left: bytes until the next look at the flag. at: of BLOCK
** places, of this turn where they are found. */
static bool run_places(const job *j, job *shared, const kernel *k, char *plain, char *indexed,
                       const char *const *index, int64_t *at, bool found, int64_t *left) {
    const axis *a = &j->axes[j->n - 2];
    for (int64_t lo = 0; lo < a->n; lo += k->block) {
        int64_t n = lm_min(a->n - lo, k->block);
        if (!found && !find_places(j, index, lo, n, at)) {
            __atomic_store_n(&shared->stopped, WRONG, __ATOMIC_RELAXED);
            return false;
        }
        k->fn(n, at, plain + lo * a->plain, a->plain, indexed, &k->row);
        *left -= n * k->each;
        if (*left > 0) continue;
        *left = POLL;
        if (stop(shared)) return false;
    }
    return true;
}

/* Whether all turns of the outer axes have the same places, which are few. */
static bool same_places(const job *j, int64_t block) {
    for (int d = 0; d < j->n - 2; d++)
        if (!is_fixed(&j->axes[d], j->w->n)) return false;
    return j->axes[j->n - 2].n <= block;
}

static void run(const job *j, job *shared) {
    kernel k = choose(j);
    int outer = j->n - 2;
    int64_t turns = 1, at[LUMA_MAX_DIMS + 2] = {0}, left = POLL, places[BLOCK];
    bool same = same_places(j, k.block);
    for (int d = 0; d < outer; d++)
        turns *= j->axes[d].n;
    for (int64_t t = 0; t < turns; t++) {
        char *plain = j->plain, *indexed = j->indexed;
        const char *index[LUMA_MAX_DIMS];
        memcpy(index, j->index, sizeof index);
        for (int d = 0; d < outer; d++) {
            plain += at[d] * j->axes[d].plain;
            indexed += at[d] * j->axes[d].indexed;
            for (int p = 0; p < j->w->n; p++)
                index[p] += at[d] * j->axes[d].index[p];
        }
        if (!run_places(j, shared, &k, plain, indexed, index, places, same && t > 0, &left)) return;
        for (int d = outer - 1; d >= 0 && ++at[d] == j->axes[d].n; d--)
            at[d] = 0;
    }
}

static void run_part(void *ctx, int64_t lo, int64_t hi) {
    job *shared = ctx, own = *shared;
    axis *a = &own.axes[own.split];
    a->n = hi - lo;
    own.plain += lo * a->plain;
    own.indexed += lo * a->indexed;
    for (int p = 0; p < own.w->n; p++)
        own.index[p] += lo * a->index[p];
    run(&own, shared);
}

/* The axis to share among threads. Writers share one along which no two elements can have the same
** place; readers any, the outermost that is long enough. */
static int choose_split(const job *j) {
    int best = 0;
    int64_t enough = 4 * (int64_t)lm_pool_threads(), most = 1;
    for (int d = 0; d < j->n && most < enough; d++) {
        bool free = j->w->kind == LM_INDEX_READ || j->axes[d].indexed != 0;
        if (!free || j->axes[d].n <= most) continue;
        best = d;
        most = j->axes[d].n;
    }
    return most > 1 ? best : -1;
}

/* ---- the check -------------------------------------------------------------------------------*/

typedef struct {
    const luma_state *S;
    const lm_index *w;
    const lm_index_part *part;
    const char *data;
    int n;
    axis axes[LUMA_MAX_DIMS];
    int64_t first; /* atomic: the lowest position, in row-major order, of a wrong value */
    int stopped;   /* atomic: interrupted */
} check;

static const char *index_element(const check *c, int64_t at) {
    const char *p = c->data;
    for (int d = c->n - 1; d >= 0; d--) {
        p += at % c->axes[d].n * c->axes[d].index[0];
        at /= c->axes[d].n;
    }
    return p;
}

static void note_first(check *c, int64_t at) {
    int64_t first = __atomic_load_n(&c->first, __ATOMIC_RELAXED);
    while (at < first && !__atomic_compare_exchange_n(&c->first, &first, at, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
}

static void check_part(void *ctx, int64_t lo, int64_t hi) {
    check *c = ctx;
    int64_t memory[BLOCK], base = c->w->index_base, size = c->part->size;
    const axis *last = c->n ? &c->axes[c->n - 1] : NULL;
    while (lo < hi && lo < __atomic_load_n(&c->first, __ATOMIC_RELAXED)) {
        if (lm_interrupted(c->S)) {
            __atomic_store_n(&c->stopped, 1, __ATOMIC_RELAXED);
            return;
        }
        int64_t n = last ? last->n - lo % last->n : 1;
        if (n > hi - lo) n = hi - lo;
        if (n > BLOCK) n = BLOCK;
        const int64_t *v =
            load(n, c->part->index.dtype, index_element(c, lo), last ? last->index[0] : 0, memory);
        if (!lm_level_now()->index->valid(n, v, base, size)) {
            int64_t i = 0;
            while (v[i] >= base && v[i] - base < size)
                i++;
            note_first(c, lo + i);
            return;
        }
        lo += n;
    }
}

static luma_status check_index(luma_state *S, const lm_index *w, const lm_index_part *part) {
    const luma_tensor *x = &part->index;
    int64_t n = luma_numel(x);
    if (n == 0) return LUMA_OK;
    check c = {.S = S, .w = w, .part = part, .data = lm_data(x), .first = INT64_MAX};
    int64_t size = (int64_t)lm_dtype_size(x->dtype);
    for (int d = 0; d < x->layout.ndim; d++) {
        axis a = {.n = x->layout.shape[d], .index = {x->layout.stride[d] * size}};
        c.n = append(c.axes, c.n, &a, 1);
    }
    lm_parallel(S->threads, n, SHARE / size, check_part, &c);
    if (c.stopped) return lm_fail_interrupted(S);
    if (c.first == INT64_MAX) return LUMA_OK;
    int64_t value;
    lm_level_now()->cast->cast[x->dtype][LUMA_INT64](1, index_element(&c, c.first), 0,
                                                     (char *)&value, 0);
    return lm_index_fail(S, part, c.first, value);
}

static luma_status check_all(luma_state *S, const lm_index *w) {
    for (int p = 0; p < w->n; p++)
        if (!w->parts[p].known) LM_TRY(check_index(S, w, &w->parts[p]));
    return LUMA_OK;
}

luma_status lm_cpu_index(luma_state *S, lm_device *d, const lm_index *w) {
    (void)d;
    int64_t numel = luma_numel(&w->plain);
    if (!w->fresh || numel == 0) LM_TRY(check_all(S, w));
    if (numel == 0) return LUMA_OK;
    job j = {.S = S, .w = w, .size = (int64_t)lm_dtype_size(w->plain.dtype)};
    j.plain = lm_data(&w->plain);
    j.indexed = lm_data(&w->indexed);
    for (int p = 0; p < w->n; p++)
        j.index[p] = lm_data(&w->parts[p].index);
    plan(&j);
    j.split = choose_split(&j);
    if (j.split < 0) {
        run(&j, &j);
    } else {
        /* traffic of one step along the axis: elements both ways and, roughly, their indices */
        int64_t steps = j.axes[j.split].n, each = numel / steps * (2 * j.size + 8);
        int64_t grain = SHARE / each + 1;
        if (j.split == j.n - 1) grain = (grain + 63) / 64 * 64; /* lines of one thread each */
        lm_parallel(S->threads, steps, grain, run_part, &j);
    }
    if (j.stopped == WRONG) LM_TRY(check_all(S, w)); /* fails, with the first wrong position */
    return j.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}

/* ---- masks -----------------------------------------------------------------------------------*/

typedef struct {
    luma_state *S;
    const uint8_t *x;
    int64_t n;       /* elements */
    int64_t *counts; /* of each block; then of all before it */
    const luma_layout *layout;
    int64_t *positions;
    int64_t base;
    int stopped; /* atomic */
} mask;

static bool mask_stop(mask *m) {
    if (lm_interrupted(m->S)) __atomic_store_n(&m->stopped, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&m->stopped, __ATOMIC_RELAXED);
}

static int64_t block_end(const mask *m, int64_t block) {
    int64_t end = (block + 1) * FLAG_BLOCK;
    return end < m->n ? end : m->n;
}

static void count_blocks(void *ctx, int64_t lo, int64_t hi) {
    mask *m = ctx;
    const lm_index_kernels *k = lm_level_now()->index;
    for (int64_t b = lo; b < hi && !mask_stop(m); b++)
        m->counts[b] = k->count(block_end(m, b) - b * FLAG_BLOCK, m->x + b * FLAG_BLOCK);
}

/* Positions of the elements lo .. hi - 1 of the mask that hold, to out. */
static void list_block(const mask *m, int64_t lo, int64_t hi, int64_t *out) {
    const lm_index_kernels *k = lm_level_now()->index;
    const luma_layout *x = m->layout;
    int last = x->ndim - 1;
    int64_t place[LUMA_MAX_DIMS], found[BLOCK], rest = lo;
    for (int d = last; d >= 0; d--) {
        place[d] = rest % x->shape[d];
        rest /= x->shape[d];
    }
    while (lo < hi) {
        int64_t n = x->shape[last] - place[last];
        if (n > hi - lo) n = hi - lo;
        if (n > BLOCK) n = BLOCK;
        int64_t count = k->find(n, m->x + lo, found);
        for (int64_t i = 0; i < count; i++) {
            for (int d = 0; d < last; d++)
                *out++ = place[d] + m->base;
            *out++ = place[last] + found[i] + m->base;
        }
        lo += n;
        place[last] += n;
        for (int d = last; d > 0 && place[d] == x->shape[d]; d--) {
            place[d] = 0;
            place[d - 1]++;
        }
    }
}

static void list_blocks(void *ctx, int64_t lo, int64_t hi) {
    mask *m = ctx;
    for (int64_t b = lo; b < hi && !mask_stop(m); b++)
        list_block(m, b * FLAG_BLOCK, block_end(m, b),
                   m->positions + m->counts[b] * m->layout->ndim);
}

/* m->counts, for the caller to release as *memory. */
static luma_status count_all(mask *m, lm_storage **memory) {
    int64_t blocks = (m->n - 1) / FLAG_BLOCK + 1;
    LM_TRY(lm_storage_new(m->S, lm_cpu(m->S), (size_t)blocks * sizeof *m->counts, memory));
    m->counts = (int64_t *)(void *)(*memory)->data;
    lm_parallel(m->S->threads, blocks, 4, count_blocks, m);
    if (!m->stopped) return LUMA_OK;
    lm_storage_release(*memory);
    return lm_fail_interrupted(m->S);
}

luma_status lm_cpu_count_nonzero(luma_state *S, lm_device *d, const luma_tensor *x,
                                 int64_t *count) {
    (void)d;
    lm_storage *memory;
    mask m = {.S = S, .x = (const uint8_t *)lm_data(x), .n = luma_numel(x)};
    *count = 0;
    if (m.n == 0) return LUMA_OK;
    LM_TRY(count_all(&m, &memory));
    for (int64_t b = 0; b * FLAG_BLOCK < m.n; b++)
        *count += m.counts[b];
    lm_storage_release(memory);
    return LUMA_OK;
}

luma_status lm_cpu_nonzero(luma_state *S, lm_device *d, luma_tensor *positions,
                           const luma_tensor *x, int index_base) {
    (void)d;
    lm_storage *memory;
    mask m = {.S = S,
              .x = (const uint8_t *)lm_data(x),
              .n = luma_numel(x),
              .layout = &x->layout,
              .positions = (int64_t *)(void *)lm_data(positions),
              .base = index_base};
    if (luma_numel(positions) == 0) return LUMA_OK;
    LM_TRY(count_all(&m, &memory));
    int64_t before = 0, blocks = (m.n - 1) / FLAG_BLOCK + 1;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t count = m.counts[b];
        m.counts[b] = before;
        before += count;
    }
    lm_parallel(S->threads, blocks, 2, list_blocks, &m);
    lm_storage_release(memory);
    return m.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
