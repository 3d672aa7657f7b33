/* cache_test.c -- the caching allocator over devices made up here, whose memory is small and whose
** streams end when the test says so: PyTorch's figures by hand, then random runs against a plain model
** that keeps every block in one list. Uses core only. */
#include "cache.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "memory.h"

#define KB ((size_t)1024)
#define MB (KB * 1024)

static void same(int64_t got, int64_t expected, int line, const char *what) {
    checks++;
    if (got == expected) return;
    failures++;
    printf("line %d: %s is %lld, not %lld\n", line, what, (long long)got, (long long)expected);
}
#define SAME(value, expected) same((int64_t)(value), (int64_t)(expected), __LINE__, #value)

/* ---- made-up devices ------------------------------------------------------------------------- */

#define STREAMS 3
/* Work of a stream: how much it was given, how much of it is done. */
typedef struct {
    int64_t given, done;
} stream;
typedef struct {
    stream *s;
    int64_t at;
} event;
#define LIVE_BLOCKS 8192

typedef struct {
    size_t capacity, used, total; /* total: what memory_info says; 0: capacity */
    int64_t allocs, frees, refusals;
    uintptr_t next; /* addresses of the one whose memory nobody may touch */
    char *last;     /* result of the last allocation */
    size_t last_size;
    char *given[64]; /* results of the last frees, as many as fit */
    int ngiven;
    /* What was asked of the device: A memory given, a refused, F freed, E event recorded, W waited,
    ** q not done, Q done. */
    char log[256];
    stream streams[STREAMS];
    event events[256]; /* s is NULL while unused */
    event ended[256];  /* those given back, in order */
    int nended;
    const char *problem;
    bool no_events;
    /* blocks as on_block told, when it watches */
    struct {
        char *p;
        size_t size;
    } live[LIVE_BLOCKS];
    int nlive;
} raw;

static void say(raw *r, char what) {
    size_t n = strlen(r->log);
    if (n + 1 < sizeof r->log) r->log[n] = what;
}

#define LOG(w, expected)                                                                           \
    do {                                                                                           \
        CHECK(strcmp((w)->r.log, expected) == 0);                                                  \
        if (strcmp((w)->r.log, expected) != 0) printf("  log: %s\n", (w)->r.log);                  \
        memset((w)->r.log, 0, sizeof(w)->r.log);                                                   \
    } while (0)

static void *raw_take(lm_device *d, size_t nbytes) {
    raw *r = d->ctx;
    if (nbytes > r->capacity - r->used) {
        r->refusals++;
        say(r, 'a');
        return NULL;
    }
    if (r->problem) return NULL;
    r->used += nbytes;
    r->allocs++;
    say(r, 'A');
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
    say(r, 'F');
    if (r->ngiven < 64) r->given[r->ngiven++] = p;
    if (strcmp(d->ops->kind, "cpu") == 0) free(p);
}

static bool info(lm_device *d, size_t *unused, size_t *total) {
    const raw *r = d->ctx;
    *unused = r->capacity - r->used;
    *total = r->total ? r->total : r->capacity;
    return true;
}

static const char *problem(lm_device *d) {
    const raw *r = d->ctx;
    return r->problem;
}

static void *event_record(lm_device *d, void *on) {
    raw *r = d->ctx;
    say(r, 'E');
    if (r->no_events) return NULL;
    for (int i = 0; i < 256; i++) {
        event *e = &r->events[i];
        if (e->s) continue;
        e->s = on;
        e->at = ++e->s->given;
        return e;
    }
    exit(6);
}

static bool event_done(lm_device *d, void *e) {
    const event *x = e;
    bool done = x->s->done >= x->at;
    say(d->ctx, done ? 'Q' : 'q');
    return done;
}

static void event_wait(lm_device *d, void *e) {
    event *x = e;
    say(d->ctx, 'W');
    if (x->s->done < x->at) x->s->done = x->at;
}

static void event_free(lm_device *d, void *e) {
    raw *r = d->ctx;
    event *x = e;
    CHECK(x->s && x->s->done >= x->at);
    if (r->nended < 256) r->ended[r->nended++] = *x;
    x->s = NULL;
}

/* Every living block is told once, in memory that is not in another, and ends as it began. */
static void on_block(lm_device *d, void *p, size_t nbytes, bool live, void *on) {
    raw *r = d->ctx;
    char *low = p;
    CHECK(on != NULL && nbytes > 0);
    for (int i = 0; i < r->nlive; i++) {
        char *other = r->live[i].p;
        if (other >= low + nbytes || low >= other + r->live[i].size) continue;
        CHECK(!live && other == low && r->live[i].size == nbytes);
        r->live[i] = r->live[--r->nlive];
        return;
    }
    if (!live) return; /* a new segment */
    if (r->nlive == LIVE_BLOCKS) exit(7);
    r->live[r->nlive].p = low;
    r->live[r->nlive++].size = nbytes;
}

static const lm_device_ops host_ops = {.kind = "cpu", .raw_alloc = raw_take, .raw_free = raw_give};
static const lm_device_ops other_ops = {
    .kind = "other", .raw_alloc = raw_take, .raw_free = raw_give};
static const lm_device_ops stream_ops = {.kind = "gpu",
                                         .raw_alloc = raw_take,
                                         .raw_free = raw_give,
                                         .raw_problem = problem,
                                         .memory_info = info,
                                         .event_record = event_record,
                                         .event_done = event_done,
                                         .event_wait = event_wait,
                                         .event_free = event_free};

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
    w->S = lm_state_new();
    if (!w->S || lm_device_register(w->S, ops, ops->kind, 0, &w->r)) exit(2);
    w->d = w->S->devices[0];
    w->c = w->d->cache;
    if (ops == &stream_ops) {
        w->d->stream = &w->r.streams[0];
        w->d->on_block = on_block;
    }
}

static void world_close(world *w) {
    luma_close(w->S);
    SAME(w->r.used, 0);
    SAME(w->r.allocs, w->r.frees);
}

static lm_storage *take(world *w, size_t n) {
    lm_storage *st = lm_cache_storage(w->d, n, true);
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
    SAME(lm_memory_fail(w.S, w.d, 16 * MB), LUMA_ERR_MEMORY);
    const char *text = "out of memory on other: tried to allocate 16.00 MiB; 35.00 MiB allocated, "
                       "50.00 MiB reserved, of which 15.00 MiB are unused";
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
    lm_memory_fail(w.S, w.d, 700);
    CHECK(strstr(luma_message(w.S), "tried to allocate 700 bytes;") != NULL);
    CHECK(strstr(luma_message(w.S), " unused, limit 30.00 MiB") != NULL);
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

/* ---- streams ----------------------------------------------------------------------------------
 */

static void record(world *w, lm_storage *st, int on) {
    CHECK(lm_cache_record_stream(st, w->d, &w->r.streams[on]));
}

typedef struct {
    int segments, inactive, allocated, awaited;
    size_t bytes, requested;
    uintptr_t segment, end;
} seen;

static void see(void *ctx, const lm_cache_part *part) {
    seen *s = ctx;
    if (part->segment != s->segment) {
        s->segments++;
        s->segment = s->end = part->segment;
    }
    CHECK(part->address == s->end); /* no gaps */
    s->end += part->size;
    CHECK(s->end <= part->segment + part->segment_size && part->requested <= part->size);
    s->bytes += part->size;
    s->requested += part->requested;
    s->inactive += part->state == LM_PART_INACTIVE;
    s->allocated += part->state == LM_PART_ALLOCATED;
    s->awaited += part->state == LM_PART_AWAITING_FREE;
}

/* What the walk shows and what the figures say are the same. */
static seen look(const world *w) {
    seen s = {0};
    lm_cache_figures f = figures(w);
    lm_cache_walk(w->c, see, &s);
    SAME(s.segments, f.segment[LM_POOL_ALL].current);
    SAME(s.bytes, f.reserved_bytes[LM_POOL_ALL].current);
    SAME(s.requested, f.requested_bytes[LM_POOL_ALL].current);
    SAME(s.allocated, f.allocation[LM_POOL_ALL].current);
    SAME(s.allocated + s.awaited, f.active[LM_POOL_ALL].current);
    return s;
}

static void test_streams(void) {
    world w;
    world_open(&w, &stream_ops, 1024 * MB);
    lm_storage *a = take(&w, 1000);
    char *where = a->data;
    lm_cache_release(a); /* used on its own stream only: free at once, nothing asked */
    a = take(&w, 1000);
    CHECK(a->data == where);
    LOG(&w, "A");
    record(&w, a, 0);
    CHECK(lm_cache_record_stream(a, w.d, NULL));
    lm_cache_release(a);
    LOG(&w, "");

    a = take(&w, 1000);
    record(&w, a, 1);
    record(&w, a, 2);
    record(&w, a, 1);
    LOG(&w, "");
    lm_cache_release(a);
    LOG(&w, "EE");
    lm_cache_figures f = figures(&w);
    STAT(f.allocation[LM_POOL_ALL], 0, 1, 3, 3);
    STAT(f.active[LM_POOL_ALL], 1, 1, 3, 2);
    STAT(f.active_bytes[LM_POOL_SMALL], 1024, 1024, 3072, 2048);
    STAT(f.requested_bytes[LM_POOL_ALL], 1000, 1000, 3000, 2000);
    SAME(f.allocated_bytes[LM_POOL_ALL].current, 0);
    SAME(look(&w).awaited, 1);
    lm_storage *b = take(&w, 1000);
    CHECK(b->data == where + 1024);
    LOG(&w, "qq");
    w.r.streams[2].done++;
    lm_storage *c = take(&w, 1000);
    CHECK(c->data == where + 2048);
    LOG(&w, "Qq");
    w.r.streams[1].done++;
    lm_storage *d = take(&w, 1000);
    CHECK(d->data == where);
    LOG(&w, "Q");
    lm_cache_release(c);
    LOG(&w, "");

    /* a stream that is behind does not hold up another */
    record(&w, b, 1);
    record(&w, d, 2);
    lm_cache_release(b);
    lm_cache_release(d);
    w.r.streams[2].done++;
    d = take(&w, 1000);
    CHECK(d->data == where);
    LOG(&w, "EEQq");
    record(&w, d, 2);
    w.r.no_events = true; /* the device waited instead */
    lm_cache_release(d);
    w.r.no_events = false;
    SAME(look(&w).awaited, 1);
    d = take(&w, 1000);
    CHECK(d->data == where);
    lm_cache_release(d);
    LOG(&w, "Eq");
    lm_cache_empty(w.c);
    LOG(&w, "WF");
    SAME(w.r.used, 0);
    SAME(w.r.nlive, 0);
    world_close(&w);
}

/* Streams of another device, and a state that closes while they are at work. */
static void test_two_devices(void) {
    world w;
    static raw second;
    world_open(&w, &stream_ops, 1024 * MB);
    second.capacity = 1024 * MB;
    second.next = (uintptr_t)1 << 40;
    if (lm_device_register(w.S, &stream_ops, "gpu:1", 1, &second)) exit(2);
    lm_device *e = w.S->devices[1];
    e->stream = &second.streams[0];
    lm_storage *a = take(&w, 5000), *b = lm_cache_storage(e, 5000, true);
    CHECK(lm_cache_record_stream(a, e, NULL));
    CHECK(lm_cache_record_stream(b, w.d, NULL));
    lm_cache_release(a);
    lm_cache_release(b);
    CHECK(strcmp(second.log, "AE") == 0);
    LOG(&w, "AE");
    lm_storage *c = take(&w, 5000);
    second.streams[0].done++;
    lm_storage *d = take(&w, 5000);
    CHECK(c->data == (char *)w.r.last + 5120 && d->data == w.r.last);
    CHECK(strcmp(second.log, "AEqQ") == 0);
    CHECK(lm_cache_record_stream(c, e, NULL));
    lm_cache_release(c);
    lm_cache_release(d);
    world_close(&w);
    SAME(second.used, 0);
    CHECK(strcmp(second.log, "AEqQEWF") == 0);
}

/* What is tried when there is no memory, and in which order. */
static void test_ladder(void) {
    world w;
    world_open(&w, &stream_ops, 50 * MB);
    w.r.total = 1024 * MB;
    lm_storage *a = take(&w, 22 * MB), *b = take(&w, 4 * MB), *c = take(&w, 4 * MB);
    record(&w, c, 1);
    lm_cache_release(a);
    lm_cache_release(c);
    LOG(&w, "AAE");
    CHECK(lm_cache_storage(w.d, 18 * MB, false) != NULL); /* free block */
    LOG(&w, "q");
    CHECK(lm_cache_storage(w.d, 13 * MB, false) == NULL); /* driver; no more before a collection */
    LOG(&w, "qa");
    lm_cache_figures f = figures(&w);
    SAME(f.num_alloc_retries + f.num_ooms, 0);
    a = take(&w, 13 * MB); /* what is waited for makes a block free that is large enough */
    CHECK(a && a->data == b->data + 4 * MB);
    LOG(&w, "qaW");
    f = figures(&w);
    SAME(f.num_alloc_retries, 1);
    SAME(f.reserved_bytes[LM_POOL_ALL].current, 42 * MB);
    record(&w, b, 2);
    lm_cache_release(b);
    record(&w, a, 1);
    lm_cache_release(a);
    a = take(&w, 24 * MB); /* and else it makes segments free */
    CHECK(a != NULL);
    LOG(&w, "EEqqaWWFA");
    CHECK(take(&w, 24 * MB) == NULL);
    LOG(&w, "aaa");
    f = figures(&w);
    SAME(f.num_alloc_retries, 3);
    SAME(f.num_ooms, 1);
    SAME(lm_memory_fail(w.S, w.d, 24 * MB), LUMA_ERR_MEMORY);
    const char *text =
        "out of memory on gpu: tried to allocate 24.00 MiB; 1.00 GiB total, 4.00 MiB "
        "free, 42.00 MiB allocated, 46.00 MiB reserved, of which 4.00 MiB are unused";
    CHECK(strcmp(luma_message(w.S), text) == 0);
    w.r.problem = "gpu: it broke";
    CHECK(take(&w, 24 * MB) == NULL && take(&w, 100) == NULL);
    LOG(&w, "a");
    SAME(figures(&w).num_ooms, 1);
    SAME(lm_memory_fail(w.S, w.d, 100), LUMA_ERR_DEVICE);
    CHECK(strcmp(luma_message(w.S), "gpu: it broke") == 0);
    w.r.problem = NULL;
    luma_close(w.S); /* with storages that nobody released */
    SAME(w.r.used, 0);
}

/* Little memory is cut into small segments. */
static void test_small_device(void) {
    world w;
    lm_storage *st[7];
    world_open(&w, &stream_ops, 64 * MB);
    for (int i = 0; i < 7; i++) {
        st[i] = take(&w, 8 * MB + (i == 6 ? 1 : 0));
        CHECK(st[i] != NULL);
        SAME(w.r.last_size, (i == 6 ? 10 : 8) * MB);
    }
    CHECK(take(&w, 6 * MB) != NULL && take(&w, 7 * MB) == NULL);
    SAME(figures(&w).num_ooms, 1);
    luma_close(w.S);
    world_open(&w, &stream_ops, 200 * MB);
    st[0] = take(&w, 2 * MB + MB / 2), st[1] = take(&w, 4 * MB);
    SAME(w.r.used, (6 + 4) * MB);
    lm_cache_release(st[0]);
    lm_cache_release(st[1]);
    world_close(&w);
}

/* lm_storage_new of a host that collects: the early failure comes first, once. */
static void test_early(void) {
    world w;
    lm_storage *a, *b;
    world_open(&w, &stream_ops, 50 * MB);
    SAME(lm_storage_new(w.S, w.d, 22 * MB, &a), LUMA_OK);
    lm_storage_release(a);
    SAME(lm_storage_new(w.S, w.d, 30 * MB, &a), LUMA_OK); /* nobody collects: all is tried */
    LOG(&w, "AaFA");
    lm_storage_release(a);
    w.S->collects = true;
    SAME(lm_storage_new(w.S, w.d, 40 * MB, &a), LUMA_ERR_MEMORY);
    CHECK(w.S->early && !w.S->soft);
    LOG(&w, "a");
    w.S->lifted = w.S->again = true;
    SAME(lm_storage_new(w.S, w.d, 40 * MB, &a), LUMA_ERR_MEMORY);
    CHECK(w.S->early);
    LOG(&w, "a");
    w.S->again = false;
    SAME(lm_storage_new(w.S, w.d, 40 * MB, &a), LUMA_OK);
    LOG(&w, "aFA");
    SAME(lm_storage_new(w.S, w.d, 12 * MB, &b), LUMA_ERR_MEMORY);
    CHECK(!w.S->early);
    SAME(w.d->live, 40 * MB);
    lm_storage_release(a);
    world_close(&w);
}

static void test_raw(void) {
    world w;
    static void *p[3000];
    void *q = &w, *base;
    size_t size;
    world_open(&w, &stream_ops, 200 * MB);
    SAME(luma_raw_alloc(w.S, "gpu", 0, &q), LUMA_OK);
    CHECK(q == NULL);
    SAME(luma_raw_delete(w.S, "gpu", NULL), LUMA_OK);
    SAME(w.r.allocs, 0);
    for (int i = 0; i < 3000; i++)
        SAME(luma_raw_alloc_with_stream(w.S, "gpu", (size_t)i % 7 * 300 + 1,
                                        i % 3 ? &w.r.streams[i % 3] : NULL, &p[i]),
             LUMA_OK);
    SAME(figures(&w).allocation[LM_POOL_SMALL].current, 3000);
    look(&w);
    CHECK(luma_base_allocation(w.S, "gpu", p[2001], &base, &size) == LUMA_OK);
    SAME(size, 2 * MB);
    CHECK((char *)p[2001] >= (char *)base && (char *)p[2001] < (char *)base + size);
    CHECK(lm_cache_base(w.c, (char *)p[0] + 100, &base, &size) && base == p[0]);
    SAME(luma_raw_delete(w.S, "gpu", (char *)p[5] + 256), LUMA_ERR_ARGUMENT);
    CHECK(strstr(luma_message(w.S), "invalid device pointer: ") == luma_message(w.S));
    SAME(luma_raw_delete(w.S, "none", p[5]), LUMA_ERR_DEVICE);
    lm_storage *st = take(&w, 5000); /* a storage is none of them, but has a base */
    SAME(luma_raw_delete(w.S, "gpu", st->data), LUMA_ERR_ARGUMENT);
    SAME(luma_base_allocation(w.S, "gpu", st->data, &base, &size), LUMA_OK);
    lm_cache_release(st);
    SAME(luma_base_allocation(w.S, "gpu", st->data, &base, &size), LUMA_ERR_ARGUMENT);
    for (int i = 0; i < 3000; i++)
        SAME(luma_raw_delete(w.S, "gpu", p[i * 7 % 3000]), LUMA_OK);
    SAME(luma_raw_delete(w.S, "gpu", p[5]), LUMA_ERR_ARGUMENT);
    SAME(luma_base_allocation(w.S, "gpu", p[5], &base, &size), LUMA_ERR_ARGUMENT);
    SAME(figures(&w).inactive_split[LM_POOL_ALL].current, 0);
    SAME(w.r.nlive, 0);
    /* a block of one stream serves no other */
    int64_t allocs = w.r.allocs;
    SAME(luma_raw_alloc_with_stream(w.S, "gpu", 3 * MB, &w.r.streams[1], &p[0]), LUMA_OK);
    SAME(luma_raw_delete(w.S, "gpu", p[0]), LUMA_OK);
    SAME(luma_raw_alloc_with_stream(w.S, "gpu", 3 * MB, &w.r.streams[2], &p[1]), LUMA_OK);
    SAME(w.r.allocs, allocs + 2);
    SAME(luma_raw_alloc(w.S, "gpu", 300 * MB, &q), LUMA_ERR_MEMORY);
    CHECK(q == NULL);
    SAME(luma_raw_delete(w.S, "gpu", p[1]), LUMA_OK);
    world_close(&w);
}

/* Without a cache every block is a segment of its own, which goes when it does. */
static void test_direct(void) {
    world w;
    world_open(&w, &stream_ops, 1024 * MB);
    lm_cache_set_direct(w.c);
    lm_storage *a = take(&w, 1001), *b = take(&w, 0), *c = take(&w, 21 * MB + 1);
    SAME(w.r.used, 1001 + 1 + 21 * MB + 1);
    lm_cache_figures f = figures(&w);
    SAME(f.segment[LM_POOL_ALL].current, 3);
    SAME(f.inactive_split[LM_POOL_ALL].peak, 0);
    SAME(f.allocated_bytes[LM_POOL_ALL].current, w.r.used);
    look(&w);
    record(&w, a, 1);
    lm_cache_release(a);
    lm_cache_release(b);
    LOG(&w, "AAAEF");
    w.r.streams[1].done++;
    a = take(&w, 7);
    LOG(&w, "QFA");
    SAME(w.r.used, 21 * MB + 8);
    lm_cache_release(a);
    lm_cache_release(c);
    SAME(w.r.used, 0);
    SAME(w.r.nlive, 0); /* nobody is told: the device sees each by itself */
    world_close(&w);
}

/* ---- events ------------------------------------------------------------------------------------
 */

typedef struct {
    char kinds[64];
    int n;
    luma_memory_event last;
} heard;

static void hear(void *ctx, const luma_memory_event *e) {
    heard *h = ctx;
    static const char letters[] = {
        [LUMA_MEMORY_ALLOC] = 'a',        [LUMA_MEMORY_FREE] = 'f',
        [LUMA_MEMORY_FREED] = 'd',        [LUMA_MEMORY_SEGMENT_ALLOC] = 'S',
        [LUMA_MEMORY_SEGMENT_FREE] = 'F', [LUMA_MEMORY_RETRY] = 'r',
        [LUMA_MEMORY_OOM] = 'o'};
    if (h->n < 63) h->kinds[h->n++] = letters[e->kind];
    h->last = *e;
}

static void test_callback(void) {
    world w;
    heard h = {0};
    world_open(&w, &stream_ops, 30 * MB);
    luma_set_memory_callback(w.S, hear, &h);
    lm_storage *a = take(&w, 5000);
    CHECK(strcmp(h.last.device, "gpu") == 0 && h.last.address == (uintptr_t)a->data);
    SAME(h.last.nbytes, 5000);
    CHECK(h.last.stream == &w.r.streams[0]);
    record(&w, a, 1);
    lm_cache_release(a);
    w.r.streams[1].done++;
    a = take(&w, 5000);
    CHECK(take(&w, 40 * MB) == NULL);
    SAME(h.last.nbytes, 40 * MB);
    lm_cache_release(a);
    lm_cache_empty(w.c);
    SAME(h.last.nbytes, 2 * MB);
    CHECK(strcmp(h.kinds, "Safdarofd"
                          "F") == 0);
    luma_set_memory_callback(w.S, NULL, NULL);
    lm_cache_release(take(&w, 1));
    SAME(h.n, 10);
    world_close(&w);

    world_open(&w, &host_ops, 1000 * MB); /* tiny storages of the CPU, and devices to come */
    h = (heard){0};
    luma_set_memory_callback(w.S, hear, &h);
    lm_cache_release(take(&w, 8));
    CHECK(strcmp(h.kinds, "Safd") == 0);
    raw second = {.capacity = MB * 100, .next = (uintptr_t)1 << 40};
    if (lm_device_register(w.S, &other_ops, "other", 0, &second)) exit(2);
    lm_cache_release(lm_cache_storage(w.S->devices[1], 8, true));
    CHECK(strcmp(h.kinds, "SafdSafd") == 0);
    luma_set_memory_callback(w.S, NULL, NULL);
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
    int pool, stream;
    bool whole, taken, released;
    lm_storage *st; /* NULL: a raw allocation */
    bool uses[STREAMS];
    int64_t until[STREAMS]; /* of a released one: the work to come; 0: none */
} part;

typedef struct {
    bool host, streams;
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
    int64_t now[LM_POOLS][9] = {{0}};
    for (int i = 0; i < m->n; i++) {
        const part *b = &m->parts[i];
        for (int k = 0; k < 2; k++) {
            int64_t *x = now[k ? b->pool : LM_POOL_ALL];
            x[1] += i == 0 || m->parts[i - 1].segment != b->segment;
            x[4] += (int64_t)b->size;
            if (b->taken) {
                x[0] += !b->released;
                x[3] += b->released ? 0 : (int64_t)b->size;
                x[6] += (int64_t)b->asked;
                x[7]++;
                x[8] += (int64_t)b->size;
            } else if (!alone(m, i)) {
                x[2]++;
                x[5] += (int64_t)b->size;
            }
        }
    }
    for (int pool = 0; pool < LM_POOLS; pool++) {
        step(&m->f.allocation[pool], now[pool][0]);
        step(&m->f.active[pool], now[pool][7]);
        step(&m->f.segment[pool], now[pool][1]);
        step(&m->f.inactive_split[pool], now[pool][2]);
        step(&m->f.allocated_bytes[pool], now[pool][3]);
        step(&m->f.active_bytes[pool], now[pool][8]);
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
static size_t model_fit(const model *m, size_t size, int pool, bool whole, int on) {
    size_t best = 0;
    for (int i = 0; i < m->n; i++) {
        const part *b = &m->parts[i];
        if (b->taken || b->pool != pool || b->whole != whole || b->size < size || b->stream != on)
            continue;
        if (best == 0 || b->size < best) best = b->size;
    }
    return whole && best - size > size / 4 ? 0 : best;
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

static void model_free(model *m, int at) {
    m->parts[at].taken = m->parts[at].released = false;
    for (int side = 0; side < 2; side++) {
        int left = side ? at : at - 1;
        if (left < 0 || left + 1 >= m->n) continue;
        part *a = &m->parts[left], *b = a + 1;
        if (a->taken || b->taken || a->segment != b->segment) continue;
        a->size += b->size;
        erase(m, left + 1);
        at = left;
    }
}

/* Events that the allocator saw the end of: the blocks that waited for nothing else are free now. */
static void model_end(model *m, world *w) {
    for (int i = 0; i < w->r.nended; i++) {
        event e = w->r.ended[i];
        int on = (int)(e.s - w->r.streams), at = 0;
        while (at < m->n && !(m->parts[at].released && m->parts[at].until[on] == e.at))
            at++;
        if (at == m->n) exit(8);
        m->parts[at].until[on] = 0;
        bool more = false;
        for (int k = 0; k < STREAMS; k++)
            more = more || m->parts[at].until[k];
        if (more) continue;
        model_free(m, at);
        recount(m);
    }
    for (int at = 0; at < m->n; at++) { /* none was forgotten */
        bool waits = false;
        for (int k = 0; k < STREAMS; k++)
            waits = waits || m->parts[at].until[k] > w->r.streams[k].done;
        CHECK(!m->parts[at].released || waits);
    }
}

static void model_take(model *m, world *w, size_t asked) {
    size_t size = asked ? (asked + m->round - 1) / m->round * m->round : m->round;
    int pool = size <= MB ? LM_POOL_SMALL : LM_POOL_LARGE;
    bool whole = m->host && size >= 10 * MB;
    int on = m->streams && draw(3) == 0 ? 1 + (int)draw(STREAMS - 1) : 0;
    int64_t allocs = w->r.allocs;
    w->r.nended = 0;
    lm_storage *st = on ? NULL : take(w, asked);
    char *data = on ? lm_cache_raw_alloc(w->c, asked, &w->r.streams[on]) : st ? st->data : NULL;
    if (!data) exit(4);
    model_end(m, w);
    size_t fit = model_fit(m, size, pool, whole, on);
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
                      .stream = on,
                      .whole = whole});
        fit = expected;
    }
    int at = 0;
    while (at < m->n && (m->parts[at].p != data || m->parts[at].taken))
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
    memset(b->uses, 0, sizeof b->uses);
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
    part *b = &m->parts[at];
    if (b->st)
        lm_cache_release(b->st);
    else
        CHECK(lm_cache_raw_delete(w->c, b->p));
    for (int k = 0; k < STREAMS; k++) {
        b->until[k] = b->uses[k] ? w->r.streams[k].given : 0;
        b->released = b->released || b->uses[k];
    }
    if (!b->released) model_free(m, at);
    model_trim(m, w);
}

/* Streams go on, blocks are used on others. */
static void model_streams(model *m, world *w) {
    for (int k = 1; k < STREAMS; k++) {
        stream *s = &w->r.streams[k];
        if (draw(6) == 0 && s->done < s->given)
            s->done += 1 + (int64_t)draw((size_t)(s->given - s->done));
    }
    if (m->n == 0) return;
    part *b = &m->parts[draw((size_t)m->n)];
    int on = (int)draw(STREAMS);
    if (!b->taken || b->released || !b->st) return;
    record(w, b->st, on);
    b->uses[on] = on != 0;
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
    m.streams = ops == &stream_ops;
    m.round = m.host ? 64 : 512;
    for (int i = 0; i < rounds && failures == 0; i++) {
        int at = m.n ? (int)draw((size_t)m.n) : 0;
        bool full =
            figures(&w).allocated_bytes[LM_POOL_ALL].current > (m.host ? 60 : 1000) * (int64_t)MB;
        if (m.streams) model_streams(&m, &w);
        if (m.n && m.parts[at].taken && !m.parts[at].released && (full || draw(2)))
            model_give(&m, &w, at);
        else if (!full)
            model_take(&m, &w, draw_size(m.host));
        recount(&m);
        compare(&m, &w);
        if (m.streams) look(&w);
    }
    if (m.streams) {
        for (int k = 0; k < STREAMS; k++)
            w.r.streams[k].done = w.r.streams[k].given;
        model_take(&m, &w, 1);
    }
    for (int at = 0; at < m.n;)
        if (m.parts[at].taken && !m.parts[at].released) {
            model_give(&m, &w, at);
            at = 0;
        } else {
            at++;
        }
    if (m.streams) lm_cache_empty(w.c);
    SAME(figures(&w).inactive_split[LM_POOL_ALL].current, 0);
    SAME(w.r.nlive, 0);
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
    test_streams();
    test_two_devices();
    test_ladder();
    test_small_device();
    test_early();
    test_raw();
    test_direct();
    test_callback();
    test_tiny();
    test_whole_blocks();
    test_trim();
    stress(&other_ops, 20000);
    stress(&stream_ops, 10000);
    stress(&host_ops, 5000);
    stress_contents(20000);
    printf("cache: %d passed, %d failed\n", checks - failures, failures);
    return failures != 0;
}
