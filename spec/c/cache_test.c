/* cache_test.c -- the caching allocator over devices made up here: PyTorch's figures by hand, then
** a random run against a plain model that keeps every block in one list. Uses core only. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define KB ((size_t)1024)
#define MB (KB * 1024)

static long checks, failures;

static void check(bool ok, int line, const char *what) {
    checks++;
    if (ok) return;
    failures++;
    printf("line %d: %s\n", line, what);
}
#define CHECK(condition) check((condition), __LINE__, #condition)

static void same(int64_t got, int64_t expected, int line, const char *what) {
    checks++;
    if (got == expected) return;
    failures++;
    printf("line %d: %s is %lld, not %lld\n", line, what, (long long)got, (long long)expected);
}
#define SAME(value, expected) same((int64_t)(value), (int64_t)(expected), __LINE__, #value)

/* ---- made-up devices ------------------------------------------------------------------------- */

typedef struct {
    size_t capacity, used;
    int64_t allocs, frees, refusals;
    uintptr_t next; /* addresses of the one whose memory nobody may touch */
    char *last;     /* result of the last allocation */
    size_t last_size;
    char *given[64]; /* results of the last frees, as many as fit */
    int ngiven;
} raw;

static void *raw_take(lm_device *d, size_t nbytes) {
    raw *r = d->ctx;
    if (nbytes > r->capacity - r->used) {
        r->refusals++;
        return NULL;
    }
    r->used += nbytes;
    r->allocs++;
    if (strcmp(d->ops->kind, "cpu") == 0) {
        r->last = aligned_alloc(64, nbytes);
    } else {
        r->last = (char *)r->next;
        r->next += nbytes + MB;
    }
    r->last_size = nbytes;
    return r->last;
}

static void raw_give(lm_device *d, void *p, size_t nbytes) {
    raw *r = d->ctx;
    r->used -= nbytes;
    r->frees++;
    if (r->ngiven < 64) r->given[r->ngiven++] = p;
    if (strcmp(d->ops->kind, "cpu") == 0) free(p);
}

static const lm_device_ops host_ops = {.kind = "cpu", .raw_alloc = raw_take, .raw_free = raw_give};
static const lm_device_ops other_ops = {
    .kind = "other", .raw_alloc = raw_take, .raw_free = raw_give};

typedef struct {
    luma_state *S;
    lm_device *d;
    lm_cache *c;
    raw r;
} world;

static void world_open(world *w, const lm_device_ops *ops, size_t capacity) {
    memset(w, 0, sizeof *w);
    w->r.capacity = capacity;
    w->r.next = (uintptr_t)1 << 30;
    w->S = luma_open();
    if (!w->S || lm_device_register(w->S, ops, ops->kind, 0, &w->r)) exit(2);
    w->d = w->S->devices[0];
    w->c = w->d->cache;
}

static void world_close(world *w) {
    luma_close(w->S);
    SAME(w->r.used, 0);
    SAME(w->r.allocs, w->r.frees);
}

static lm_storage *take(world *w, size_t n) {
    lm_storage *st = lm_cache_storage(w->d, n);
    if (st) {
        SAME(st->refs, 1);
        SAME(st->nbytes, n);
        CHECK(st->device == w->d && !st->foreign);
        if (w->c && strcmp(w->d->ops->kind, "cpu") == 0) {
            SAME((size_t)st->data % 64, 0);
            if (n) memset(st->data, 1, n);
        }
    }
    return st;
}

static lm_cache_figures figures(const world *w) {
    lm_cache_figures f;
    lm_cache_stats(w->c, &f);
    return f;
}

static void stat_is(lm_cache_stat s, int line, const char *what, int64_t current, int64_t peak,
                    int64_t allocated, int64_t freed) {
    same(s.current, current, line, what);
    same(s.peak, peak, line, what);
    same(s.allocated, allocated, line, what);
    same(s.freed, freed, line, what);
}
#define STAT(stat, ...) stat_is((stat), __LINE__, #stat, __VA_ARGS__)

/* ---- PyTorch's figures, worked out by hand ----------------------------------------------------
 */

static void test_small_pool(void) {
    world w;
    world_open(&w, &other_ops, 1024 * MB);
    lm_storage *a = take(&w, 100), *b = take(&w, 1000), *z = take(&w, 0);
    lm_cache_figures f = figures(&w);
    STAT(f.allocation[LM_POOL_SMALL], 3, 3, 3, 0);
    STAT(f.active[LM_POOL_ALL], 3, 3, 3, 0);
    STAT(f.allocation[LM_POOL_LARGE], 0, 0, 0, 0);
    STAT(f.allocated_bytes[LM_POOL_ALL], 2048, 2048, 2048, 0);
    STAT(f.active_bytes[LM_POOL_SMALL], 2048, 2048, 2048, 0);
    STAT(f.requested_bytes[LM_POOL_SMALL], 1100, 1100, 1100, 0);
    STAT(f.segment[LM_POOL_SMALL], 1, 1, 1, 0);
    STAT(f.reserved_bytes[LM_POOL_ALL], 2 * (int64_t)MB, 2 * (int64_t)MB, 2 * (int64_t)MB, 0);
    /* One free part, made by the first split (2 MB - 512) and shrunk by 1024 and 512. */
    int64_t rest = 2 * (int64_t)MB - 512;
    STAT(f.inactive_split[LM_POOL_SMALL], 1, 1, 1, 0);
    STAT(f.inactive_split_bytes[LM_POOL_SMALL], rest - 1536, rest, rest, 1536);
    SAME(f.largest_free, rest - 1536);
    CHECK(b->data == a->data + 512 && z->data == b->data + 1024);

    char *hole = b->data;
    lm_cache_release(b);
    f = figures(&w);
    STAT(f.inactive_split[LM_POOL_ALL], 2, 2, 2, 0);
    STAT(f.inactive_split_bytes[LM_POOL_ALL], rest - 512, rest, rest + 1024, 1536);
    STAT(f.allocation[LM_POOL_ALL], 2, 3, 3, 1);
    STAT(f.requested_bytes[LM_POOL_ALL], 100, 1100, 1100, 1000);
    b = take(&w, 513); /* exactly the hole: one inactive part less, nothing split */
    CHECK(b->data == hole);
    f = figures(&w);
    STAT(f.inactive_split[LM_POOL_ALL], 1, 2, 2, 1);
    STAT(f.inactive_split_bytes[LM_POOL_ALL], rest - 1536, rest, rest + 1024, 2560);

    lm_cache_release(b);
    lm_cache_release(a); /* joins the hole of b: the net is bytes only */
    f = figures(&w);
    STAT(f.inactive_split[LM_POOL_ALL], 2, 2, 3, 1);
    lm_cache_release(z); /* joins both sides: the segment is whole */
    f = figures(&w);
    STAT(f.inactive_split[LM_POOL_ALL], 0, 2, 3, 3);
    SAME(f.inactive_split_bytes[LM_POOL_ALL].current, 0);
    SAME(f.largest_free, 2 * MB);
    SAME(f.reserved_bytes[LM_POOL_ALL].current, 2 * MB);
    lm_cache_reset_peak(w.c);
    lm_cache_reset_accumulated(w.c);
    f = figures(&w);
    STAT(f.segment[LM_POOL_ALL], 1, 1, 0, 0);
    STAT(f.allocation[LM_POOL_ALL], 0, 0, 0, 0);
    lm_cache_empty(w.c);
    f = figures(&w);
    STAT(f.segment[LM_POOL_ALL], 0, 1, 0, 1);
    SAME(w.r.used, 0);
    world_close(&w);
}

static void test_large_pool(void) {
    world w;
    world_open(&w, &other_ops, 1024 * MB);
    lm_storage *a = take(&w, MB), *b = take(&w, MB + 1), *c = take(&w, 20 * MB + 1);
    lm_cache_figures f = figures(&w);
    SAME(f.allocation[LM_POOL_SMALL].current, 1); /* 1 MB is small, one byte more is not */
    SAME(f.allocation[LM_POOL_LARGE].current, 2);
    SAME(f.reserved_bytes[LM_POOL_SMALL].current, 2 * MB);
    SAME(f.reserved_bytes[LM_POOL_LARGE].current, 20 * MB + 22 * MB);
    SAME(f.allocated_bytes[LM_POOL_LARGE].current, 21 * MB + 1024);
    SAME(f.inactive_split[LM_POOL_LARGE].current, 2); /* 22 - 20 MB leaves more than 1 MB */
    lm_storage *d = take(&w, 12 * MB), *e = take(&w, 21 * MB);
    f = figures(&w);
    SAME(f.segment[LM_POOL_LARGE].current, 3); /* d fits behind b */
    CHECK(d->data == b->data + MB + 512);
    SAME(f.inactive_split[LM_POOL_LARGE].current, 2); /* 22 - 21 MB is not more than 1 MB */
    SAME(f.allocated_bytes[LM_POOL_LARGE].current, 21 * MB + 1024 + 12 * MB + 22 * MB);
    SAME(f.requested_bytes[LM_POOL_LARGE].current, 21 * MB + 2 + 33 * MB);
    lm_storage *all[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++)
        lm_cache_release(all[i]);
    f = figures(&w);
    SAME(f.inactive_split[LM_POOL_ALL].current, 0);
    SAME(f.largest_free, 22 * MB);
    world_close(&w);
}

static void test_best_fit(void) {
    world w;
    world_open(&w, &other_ops, 1024 * MB);
    size_t sizes[] = {8 * KB, 3 * KB, 6 * KB, 5 * KB, 16 * KB};
    lm_storage *holes[5], *walls[5];
    char *at[5];
    for (int i = 0; i < 5; i++) {
        holes[i] = take(&w, sizes[i]);
        walls[i] = take(&w, 512);
        at[i] = holes[i]->data;
    }
    for (int i = 0; i < 5; i++)
        lm_cache_release(holes[i]);
    lm_storage *a = take(&w, 4 * KB), *b = take(&w, 6 * KB), *c = take(&w, 6 * KB + 1);
    CHECK(a->data == at[3] && b->data == at[2] && c->data == at[0]);
    lm_storage *d = take(&w, KB); /* the rest of a, exactly */
    CHECK(d->data == at[3] + 4 * KB);
    lm_storage *all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        lm_cache_release(all[i]);
    for (int i = 0; i < 5; i++)
        lm_cache_release(walls[i]);
    SAME(figures(&w).inactive_split[LM_POOL_ALL].current, 0);
    world_close(&w);
}

static void test_retry_and_failure(void) {
    world w;
    world_open(&w, &other_ops, 50 * MB);
    lm_storage *a = take(&w, 5 * MB), *b = take(&w, 22 * MB);
    lm_cache_release(b);
    lm_storage *c = take(&w, 30 * MB); /* 20 + 22 are reserved: only without the 22 it fits */
    CHECK(c != NULL);
    lm_cache_figures f = figures(&w);
    SAME(f.num_alloc_retries, 1);
    SAME(f.num_ooms, 0);
    SAME(f.reserved_bytes[LM_POOL_ALL].current, 50 * MB);
    CHECK(take(&w, 16 * MB) == NULL);
    CHECK(take(&w, SIZE_MAX) == NULL && take(&w, (size_t)1 << 62) == NULL);
    f = figures(&w);
    SAME(f.num_ooms, 3);
    SAME(f.num_alloc_retries, 2);
    STAT(f.allocation[LM_POOL_ALL], 2, 2, 3, 1);
    SAME(lm_cache_fail(w.S, w.d, 16 * MB), LUMA_ERR_MEMORY);
    const char *text = "out of memory on other: tried to allocate 16.00 MiB; 35.00 MiB in use, "
                       "15.00 MiB free, 50.00 MiB reserved";
    CHECK(strcmp(luma_message(w.S), text) == 0);
    SAME(luma_error_argument(w.S), 0);
    lm_cache_release(a);
    lm_cache_release(c);
    lm_cache_reset_accumulated(w.c);
    f = figures(&w);
    SAME(f.num_ooms + f.num_alloc_retries, 0);
    world_close(&w);
}

static void test_limit(void) {
    world w;
    world_open(&w, &other_ops, 1024 * MB);
    lm_cache_set_limit(w.c, 30 * MB);
    lm_storage *a = take(&w, 9 * MB), *b = take(&w, 9 * MB);
    CHECK(a && b);
    CHECK(take(&w, 12 * MB) == NULL);
    lm_storage *c = take(&w, 9 * MB + MB / 2); /* no 20 MB any more: a segment just as large */
    CHECK(c != NULL);
    SAME(figures(&w).reserved_bytes[LM_POOL_ALL].current, 29 * MB + MB / 2);
    SAME(figures(&w).limit, 30 * MB);
    lm_cache_fail(w.S, w.d, 700);
    CHECK(strstr(luma_message(w.S), "tried to allocate 700 bytes;") != NULL);
    CHECK(strstr(luma_message(w.S), " reserved, limit 30.00 MiB") != NULL);
    lm_cache_release(c);
    lm_cache_set_limit(w.c, 25 * MB); /* gives back what is free */
    SAME(figures(&w).reserved_bytes[LM_POOL_ALL].current, 20 * MB);
    lm_cache_set_limit(w.c, 0);
    c = take(&w, 100 * MB);
    CHECK(c != NULL);
    lm_cache_release(a);
    lm_cache_release(b);
    lm_cache_release(c);
    world_close(&w);
}

/* ---- what the CPU does otherwise --------------------------------------------------------------
 */

static void test_tiny(void) {
    world w;
    world_open(&w, &host_ops, 1024 * MB);
    lm_storage *st[3000];
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i % 1025;
        st[i] = take(&w, n);
        if (n) memset(st[i]->data, (int)(i % 251), n);
    }
    lm_cache_figures f = figures(&w);
    SAME(f.allocation[LM_POOL_SMALL].current, 3000);
    int64_t rounded = 0, asked = 0;
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i % 1025;
        asked += (int64_t)n;
        rounded += n ? ((int64_t)n + 63) / 64 * 64 : 64;
        bool good = true;
        for (size_t k = 0; k < n; k++)
            good = good && st[i]->data[k] == (char)(i % 251);
        CHECK(good);
    }
    SAME(f.allocated_bytes[LM_POOL_ALL].current, rounded);
    SAME(f.requested_bytes[LM_POOL_ALL].current, asked);
    for (size_t i = 0; i < 3000; i++)
        lm_cache_release(st[i * 7 % 3000]);
    f = figures(&w);
    STAT(f.allocation[LM_POOL_ALL], 0, 3000, 3000, 3000);
    STAT(f.allocated_bytes[LM_POOL_SMALL], 0, rounded, rounded, rounded);
    lm_storage *a = take(&w, 16);
    char *where = a->data;
    lm_cache_release(a);
    a = take(&w, 64); /* the one freed last comes first */
    CHECK(a->data == where);
    lm_cache_release(a);
    lm_cache_empty(w.c);
    SAME(w.r.used, 0);
    world_close(&w);
}

static void test_whole_blocks(void) {
    world w;
    world_open(&w, &host_ops, 1024 * MB);
    lm_storage *a = take(&w, 100 * MB), *wall = take(&w, 100 * MB);
    char *where = a->data;
    lm_cache_release(a);
    lm_storage *b = take(&w, 12 * MB), *c = take(&w, 5 * MB);
    CHECK(b->data != where && c->data != where); /* 100 MB are not cut for less */
    a = take(&w, 80 * MB);
    CHECK(a->data == where); /* at most a quarter too large */
    SAME(figures(&w).allocated_bytes[LM_POOL_ALL].current, 100 * MB + 100 * MB + 17 * MB);
    lm_storage *all[] = {a, b, c, wall};
    for (int i = 0; i < 4; i++)
        lm_cache_release(all[i]);
    world_close(&w);
}

/* Freed memory stays within max(64 MB, in use), and what is kept serves the next round. */
static void test_trim(void) {
    world w;
    world_open(&w, &host_ops, 4096 * MB);
    lm_storage *st[40];
    for (int i = 0; i < 40; i++)
        st[i] = take(&w, 20 * MB);
    for (int i = 0; i < 40; i++) {
        lm_cache_release(st[i]);
        lm_cache_figures f = figures(&w);
        int64_t used = f.allocated_bytes[LM_POOL_ALL].current;
        int64_t kept = f.reserved_bytes[LM_POOL_ALL].current - used;
        CHECK(kept <= (used > 64 * (int64_t)MB ? used : 64 * (int64_t)MB));
        if (i == 9) SAME(kept, 200 * MB); /* no earlier than needed */
    }
    SAME(w.r.used, 60 * MB);
    int64_t allocs = w.r.allocs;
    for (int i = 0; i < 100; i++)
        lm_cache_release(take(&w, 20 * MB));
    SAME(w.r.allocs, allocs);
    /* the one idle for longest goes first */
    lm_storage *a = take(&w, 30 * MB), *b = take(&w, 24 * MB);
    lm_cache_release(a);
    lm_cache_release(b);
    lm_storage *c = take(&w, 24 * MB);
    SAME(w.r.allocs, allocs + 2);
    lm_cache_release(c);
    world_close(&w);
}

/* ---- a random run against a model --------------------------------------------------------------
 */

typedef struct {
    char *p;
    size_t size, asked;
    char *segment;
    int pool;
    bool whole, taken;
    lm_storage *st;
} part;

typedef struct {
    bool host;
    size_t round;
    part parts[8192]; /* by address within a segment */
    int n;
    lm_cache_figures f;
} model;

static void step(lm_cache_stat *s, int64_t now) {
    int64_t change = now - s->current;
    s->current = now;
    if (now > s->peak) s->peak = now;
    *(change > 0 ? &s->allocated : &s->freed) += change > 0 ? change : -change;
}

static bool alone(const model *m, int i) {
    return (i == 0 || m->parts[i - 1].segment != m->parts[i].segment) &&
           (i == m->n - 1 || m->parts[i + 1].segment != m->parts[i].segment);
}

/* Counts everything anew, one event per call of the allocator. */
static void recount(model *m) {
    int64_t now[LM_POOLS][7] = {{0}};
    for (int i = 0; i < m->n; i++) {
        const part *b = &m->parts[i];
        for (int k = 0; k < 2; k++) {
            int64_t *x = now[k ? b->pool : LM_POOL_ALL];
            x[1] += i == 0 || m->parts[i - 1].segment != b->segment;
            x[4] += (int64_t)b->size;
            if (b->taken) {
                x[0]++;
                x[3] += (int64_t)b->size;
                x[6] += (int64_t)b->asked;
            } else if (!alone(m, i)) {
                x[2]++;
                x[5] += (int64_t)b->size;
            }
        }
    }
    for (int pool = 0; pool < LM_POOLS; pool++) {
        step(&m->f.allocation[pool], now[pool][0]);
        step(&m->f.active[pool], now[pool][0]);
        step(&m->f.segment[pool], now[pool][1]);
        step(&m->f.inactive_split[pool], now[pool][2]);
        step(&m->f.allocated_bytes[pool], now[pool][3]);
        step(&m->f.active_bytes[pool], now[pool][3]);
        step(&m->f.reserved_bytes[pool], now[pool][4]);
        step(&m->f.inactive_split_bytes[pool], now[pool][5]);
        step(&m->f.requested_bytes[pool], now[pool][6]);
    }
}

static void insert(model *m, int at, part b) {
    if (m->n == 8192) exit(3);
    memmove(&m->parts[at + 1], &m->parts[at], (size_t)(m->n - at) * sizeof *m->parts);
    m->parts[at] = b;
    m->n++;
}

static void erase(model *m, int at) {
    m->n--;
    memmove(&m->parts[at], &m->parts[at + 1], (size_t)(m->n - at) * sizeof *m->parts);
}

/* The block that a best fit must have: its size, 0 when nothing fits. */
static size_t model_fit(const model *m, size_t size, int pool, bool whole) {
    size_t best = 0;
    for (int i = 0; i < m->n; i++) {
        const part *b = &m->parts[i];
        if (b->taken || b->pool != pool || b->whole != whole || b->size < size) continue;
        if (best == 0 || b->size < best) best = b->size;
    }
    return whole && best - size > size / 4 ? 0 : best;
}

static void model_take(model *m, world *w, size_t asked) {
    size_t size = asked ? (asked + m->round - 1) / m->round * m->round : m->round;
    int pool = size <= MB ? LM_POOL_SMALL : LM_POOL_LARGE;
    bool whole = m->host && size >= 10 * MB;
    size_t fit = model_fit(m, size, pool, whole);
    int64_t allocs = w->r.allocs;
    lm_storage *st = take(w, asked);
    if (!st) exit(4);
    SAME(w->r.allocs, allocs + (fit == 0));
    if (fit == 0) {
        size_t expected = pool == LM_POOL_SMALL ? 2 * MB
                          : size < 10 * MB      ? 20 * MB
                                                : (size + 2 * MB - 1) / (2 * MB) * (2 * MB);
        SAME(w->r.last_size, expected);
        insert(m, m->n,
               (part){.p = w->r.last,
                      .size = expected,
                      .segment = w->r.last,
                      .pool = pool,
                      .whole = whole});
        fit = expected;
    }
    int at = 0;
    while (at < m->n && (m->parts[at].p != st->data || m->parts[at].taken))
        at++;
    if (at == m->n) exit(5);
    part *b = &m->parts[at];
    SAME(b->size, fit);
    size_t rest = b->size - size;
    if (!whole && (pool == LM_POOL_SMALL ? rest >= (m->host ? 1024u : 512u) : rest > MB)) {
        part r = *b;
        r.p += size;
        r.size = rest;
        b->size = size;
        insert(m, at + 1, r);
    }
    b->taken = true;
    b->asked = asked;
    b->st = st;
}

/* Segments that the allocator gave back by itself: only above the bound, and until it holds. */
static void model_trim(model *m, world *w) {
    for (int i = 0; i <= w->r.ngiven; i++) {
        size_t held = 0, used = 0;
        bool idle = false;
        int found = -1;
        for (int k = 0; k < m->n; k++) {
            held += m->parts[k].size;
            used += m->parts[k].taken ? m->parts[k].size : 0;
            if (m->parts[k].taken || !alone(m, k)) continue;
            idle = true;
            if (i < w->r.ngiven && m->parts[k].p == w->r.given[i]) found = k;
        }
        bool above = held - used > (used > 64 * MB ? used : 64 * MB);
        if (i == w->r.ngiven) {
            CHECK(!m->host || !above || !idle);
        } else {
            CHECK(m->host && above && found >= 0);
            if (found >= 0) erase(m, found);
        }
    }
}

static void model_give(model *m, world *w, int at) {
    w->r.ngiven = 0;
    lm_cache_release(m->parts[at].st);
    m->parts[at].taken = false;
    for (int side = 0; side < 2; side++) {
        int left = side ? at : at - 1;
        if (left < 0 || left + 1 >= m->n) continue;
        part *a = &m->parts[left], *b = a + 1;
        if (a->taken || b->taken || a->segment != b->segment) continue;
        a->size += b->size;
        erase(m, left + 1);
        at = left;
    }
    model_trim(m, w);
}

static uint64_t seed = 88172645463325252u;
static size_t draw(size_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed >> 16) % n;
}

static size_t draw_size(bool host) {
    size_t k = draw(100), least = host ? 1025 : 0;
    return k < 50   ? least + draw(8 * KB)
           : k < 80 ? least + draw(MB)
           : k < 97 ? MB + draw(9 * MB)
                    : 10 * MB + draw(30 * MB);
}

static void compare(const model *m, const world *w) {
    lm_cache_figures f = figures(w);
    bool equal = true;
#define EQUAL(name) equal = equal && memcmp(f.name, m->f.name, sizeof f.name) == 0;
    LM_CACHE_STATS(EQUAL)
#undef EQUAL
    CHECK(equal);
    SAME(f.reserved_bytes[LM_POOL_ALL].current, w->r.used);
}

static void stress(const lm_device_ops *ops, int rounds) {
    static model m;
    world w;
    world_open(&w, ops, 64 * 1024 * MB);
    memset(&m, 0, sizeof m);
    m.host = ops == &host_ops;
    m.round = m.host ? 64 : 512;
    for (int i = 0; i < rounds && failures == 0; i++) {
        int at = m.n ? (int)draw((size_t)m.n) : 0;
        bool full =
            figures(&w).allocated_bytes[LM_POOL_ALL].current > (m.host ? 60 : 1000) * (int64_t)MB;
        if (m.n && m.parts[at].taken && (full || draw(2)))
            model_give(&m, &w, at);
        else if (!full)
            model_take(&m, &w, draw_size(m.host));
        recount(&m);
        compare(&m, &w);
    }
    for (int at = 0; at < m.n;)
        if (m.parts[at].taken) {
            model_give(&m, &w, at);
            at = 0;
        } else {
            at++;
        }
    SAME(figures(&w).inactive_split[LM_POOL_ALL].current, 0);
    world_close(&w);
}

/* Storages of the CPU that hold what was written, whatever happens around them. */
static void stress_contents(int rounds) {
    world w;
    world_open(&w, &host_ops, 400 * MB);
    static lm_storage *live[500];
    static unsigned char mark[500];
    for (int i = 0; i < rounds; i++) {
        size_t at = draw(500);
        lm_storage *st = live[at];
        if (st) {
            const unsigned char *p = (const unsigned char *)st->data;
            size_t n = st->nbytes;
            CHECK(n == 0 || (p[0] == mark[at] && memcmp(p, p + 1, n - 1) == 0));
            lm_cache_release(st);
            live[at] = NULL;
        } else {
            st = take(&w, draw(3) ? draw(2000) : draw_size(true) / 4);
            if (st) memset(st->data, mark[at] = (unsigned char)draw(256), st->nbytes);
            live[at] = st;
        }
        if (draw(1000) == 0) lm_cache_empty(w.c);
    }
    for (size_t at = 0; at < 500; at++)
        if (live[at]) lm_cache_release(live[at]);
    SAME(figures(&w).allocated_bytes[LM_POOL_ALL].current, 0);
    lm_cache_empty(w.c);
    SAME(w.r.used, 0);
    world_close(&w);
}

int main(void) {
    test_small_pool();
    test_large_pool();
    test_best_fit();
    test_retry_and_failure();
    test_limit();
    test_tiny();
    test_whole_blocks();
    test_trim();
    stress(&other_ops, 20000);
    stress(&host_ops, 5000);
    stress_contents(20000);
    printf("cache: %ld passed, %ld failed\n", checks - failures, failures);
    return failures != 0;
}
