/* cache.c -- segments of raw device memory cut into blocks: best fit, split, merge, retry; blocks
** that other streams still use. Layer: core; device memory is only touched on the CPU. */
#include "cache_parts.h"

#include <stdlib.h>
#include <string.h>

/* PyTorch's sizes, so that its statistics mean the same here. */
#define SMALL_MAX (1u << 20)      /* largest block of the small pool */
#define SMALL_SEGMENT (2u << 20)  /* segments of the small pool */
#define LARGE_SEGMENT (20u << 20) /* of blocks up to half of this; larger ones have their own, */
#define WHOLE_MIN (LARGE_SEGMENT / 2)
#define WHOLE_ROUND (2u << 20) /* rounded up to this */
#define DEVICE_PARTS 32 /* a large segment is no more than this part of the memory there is */
#define EXACT_ROUND (64u << 10) /* the last try before giving up */
#define KEEP_MIN (64u << 20)    /* a CPU keeps this much freed memory, or as much as is in use */
#define REQUEST_MAX ((size_t)1 << 46)

typedef lm_block block;
typedef lm_use use;
typedef lm_line line;
typedef lm_chunk chunk;
typedef lm_free_set free_set;

/* For those who watch over memory: which bytes are in a living block. */
static inline void tell(const lm_cache *c, char *p, size_t nbytes, bool live, void *stream) {
    if (c->host && live) ASAN_UNPOISON_MEMORY_REGION(p, nbytes);
    if (c->host && !live) ASAN_POISON_MEMORY_REGION(p, nbytes);
    if (c->device->on_block && !c->direct && nbytes)
        c->device->on_block(c->device, p, nbytes, live, stream);
}

/* Of the owner. */
static inline void begin(const lm_cache *c) {
    if (!c->host && c->device->cache_depth++ == 0) lm_crowd_begin(c->device);
}

static inline void end(const lm_cache *c) {
    if (!c->host && --c->device->cache_depth == 0) lm_crowd_end(c->device);
}

/* ---- block records --------------------------------------------------------------------------- */

static chunk *chunk_new(lm_cache *c) {
    chunk *more = malloc(sizeof *more);
    if (!more) return NULL;
    more->next = c->chunks;
    c->chunks = more;
    return more;
}

static block *record_new(lm_cache *c) {
    if (!c->spare) {
        chunk *more = chunk_new(c);
        for (int i = 0; more && i < CHUNK; i++) {
            more->u.blocks[i].after = c->spare;
            c->spare = &more->u.blocks[i];
        }
        if (!more) return NULL;
    }
    block *b = c->spare;
    c->spare = b->after;
    memset(b, 0, sizeof *b);
    return b;
}

static void record_drop(lm_cache *c, block *b) {
    b->after = c->spare;
    c->spare = b;
}

static bool is_split(const block *b) {
    return b->before || b->after;
}

/* ---- free blocks ----------------------------------------------------------------------------- */

static int bin_of(size_t size) {
    uint64_t units = size / LINE;
    if (units < BIN_STEPS) return (int)units;
    int shift = 63 - __builtin_clzll(units) - 5;
    return (shift + 1) * BIN_STEPS + (int)(units >> shift & (BIN_STEPS - 1));
}

/* The first bin from `bin` on that holds blocks; -1 when none does. */
static int next_bin(const free_set *set, int bin) {
    for (int w = bin / 64; w < (BINS + 63) / 64; w++) {
        uint64_t bits = set->map[w];
        if (w == bin / 64) bits &= ~UINT64_C(0) << bin % 64;
        if (bits) return w * 64 + __builtin_ctzll(bits);
    }
    return -1;
}

static void idle_insert(lm_cache *c, block *b) {
    b->idle_prev = c->idle_last;
    b->idle_next = NULL;
    *(c->idle_last ? &c->idle_last->idle_next : &c->idle_first) = b;
    c->idle_last = b;
}

static void idle_remove(lm_cache *c, block *b) {
    *(b->idle_prev ? &b->idle_prev->idle_next : &c->idle_first) = b->idle_next;
    *(b->idle_next ? &b->idle_next->idle_prev : &c->idle_last) = b->idle_prev;
}

static void free_insert(lm_cache *c, block *b) {
    free_set *set = &c->sets[b->set];
    int bin = bin_of(b->size);
    block *prev = NULL, *next = set->bins[bin];
    for (; next && next->size < b->size; next = next->bin_next)
        prev = next;
    b->bin_prev = prev;
    b->bin_next = next;
    *(prev ? &prev->bin_next : &set->bins[bin]) = b;
    if (next) next->bin_prev = b;
    set->map[bin / 64] |= UINT64_C(1) << bin % 64;
    if (!is_split(b)) idle_insert(c, b);
}

static void free_remove(lm_cache *c, block *b) {
    free_set *set = &c->sets[b->set];
    int bin = bin_of(b->size);
    *(b->bin_prev ? &b->bin_prev->bin_next : &set->bins[bin]) = b->bin_next;
    if (b->bin_next) b->bin_next->bin_prev = b->bin_prev;
    if (!set->bins[bin]) set->map[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    if (!is_split(b)) idle_remove(c, b);
}

/* The smallest free block of at least size bytes on the stream; NULL when there is none. */
static block *best_fit(lm_cache *c, int which, size_t size, const void *stream) {
    const free_set *set = &c->sets[which];
    for (int bin = next_bin(set, bin_of(size)); bin >= 0; bin = next_bin(set, bin + 1)) {
        for (block *b = set->bins[bin]; b; b = b->bin_next)
            if (b->size >= size && b->stream == stream) return b;
    }
    return NULL;
}

/* ---- segments -------------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* As far as the limits of the state go. */
static bool may_reserve(const lm_cache *c, size_t size) {
    size_t reserved = (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current;
    const lm_budget *b = c->budget;
    if (c->limit && (size > c->limit || reserved > c->limit - size)) return false;
    return !b || (b->used <= b->limit && size <= (size_t)(b->limit - b->used));
}

char *lm_cache_raw(lm_cache *c, size_t size) {
    if (!may_reserve(c, size)) return NULL;
    lm_budget *b = c->budget;
    const lm_device_ops *ops = c->device->ops;
    char *p = ops->raw_alloc ? ops->raw_alloc(c->device, size) : NULL;
    if (!p && ops->raw_problem) c->problem = ops->raw_problem(c->device);
    if (p && b) b->used += (int64_t)size;
    return p;
}

static void segment_insert(lm_cache *c, block *b) {
    b->segment_prev = c->segment_last;
    b->segment_next = NULL;
    *(c->segment_last ? &c->segment_last->segment_next : &c->segment_first) = b;
    c->segment_last = b;
}

static void segment_remove(lm_cache *c, block *b) {
    *(b->segment_prev ? &b->segment_prev->segment_next : &c->segment_first) = b->segment_next;
    *(b->segment_next ? &b->segment_next->segment_prev : &c->segment_last) = b->segment_prev;
}

/* b is a whole segment, in no set. */
static void segment_release(lm_cache *c, block *b) {
    segment_remove(c, b);
    lm_count(c->figures.segment, b->pool, -1);
    lm_count(c->figures.reserved_bytes, b->pool, -(int64_t)b->size);
    lm_note(c, LUMA_MEMORY_SEGMENT_FREE, b->p, b->size, b->stream);
    if (c->host) ASAN_UNPOISON_MEMORY_REGION(b->p, b->size);
    c->device->ops->raw_free(c->device, b->p, b->size);
    if (c->budget) c->budget->used -= (int64_t)b->size;
    record_drop(c, b);
}

static void release_oldest(lm_cache *c) {
    block *b = c->idle_first;
    free_remove(c, b);
    segment_release(c, b);
}

void lm_cache_release_idle(lm_cache *c) {
    while (c->idle_first)
        release_oldest(c);
}

/* Where memory is small, the unused ends of segments would be much of it. */
static size_t large_segment(lm_cache *c) {
    if (c->large_segment) return c->large_segment;
    lm_device *d = c->device;
    size_t unused, total, size = LARGE_SEGMENT;
    if (!c->host && d->ops->memory_info && d->ops->memory_info(d, &unused, &total) &&
        total / DEVICE_PARTS < size)
        size = total / DEVICE_PARTS / WHOLE_ROUND * WHOLE_ROUND;
    c->large_segment = size < WHOLE_ROUND ? WHOLE_ROUND : size;
    return c->large_segment;
}

static size_t segment_size(lm_cache *c, size_t size, int pool) {
    if (pool == LM_POOL_SMALL) return SMALL_SEGMENT;
    size_t large = large_segment(c);
    return size < large / 2 ? large : round_up(size, WHOLE_ROUND);
}

static size_t exact_size(const lm_cache *c, size_t size) {
    return c->direct ? size : round_up(size, EXACT_ROUND);
}

/* FROM_ALL: of memory that other states keep for nothing too. */
typedef enum { USUAL, EXACT, FROM_ALL } exactness;

static block *segment_new(lm_cache *c, size_t size, int pool, int set, void *stream,
                          exactness how) {
    size_t bytes = how != USUAL || c->direct ? exact_size(c, size) : segment_size(c, size, pool);
    block *b = record_new(c);
    if (!b) return NULL;
    b->p = how == FROM_ALL ? lm_crowd_alloc(c, bytes) : lm_cache_raw(c, bytes);
    if (!b->p) {
        record_drop(c, b);
        return NULL;
    }
    b->size = bytes;
    b->pool = (uint8_t)pool;
    b->set = (uint8_t)set;
    b->stream = stream;
    segment_insert(c, b);
    lm_count(c->figures.segment, pool, 1);
    lm_count(c->figures.reserved_bytes, pool, (int64_t)bytes);
    lm_note(c, LUMA_MEMORY_SEGMENT_ALLOC, b->p, bytes, stream);
    tell(c, b->p, bytes, false, stream);
    return b;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* a takes the bytes of b, which comes after it; neither is in a set. */
static void join(lm_cache *c, block *a, block *b) {
    a->size += b->size;
    a->after = b->after;
    if (a->after) a->after->before = a;
    record_drop(c, b);
}

/* What a CPU keeps of freed memory is bounded; the segments that were idle longest go first. */
static void trim(lm_cache *c) {
    size_t keep = c->used > KEEP_MIN ? c->used : KEEP_MIN;
    while (c->idle_first && (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current - c->used > keep)
        release_oldest(c);
}

void lm_block_give(lm_cache *c, block *b) {
    c->used -= b->size;
    b->taken = b->released = false;
    if (c->direct) {
        segment_release(c, b);
        return;
    }
    if (c->host) ASAN_POISON_MEMORY_REGION(b->p, b->size);
    int64_t parts = 0, bytes = 0;
    block *before = b->before, *after = b->after;
    if (after && !after->taken) {
        parts--;
        bytes -= (int64_t)after->size;
        free_remove(c, after);
        join(c, b, after);
    }
    if (before && !before->taken) {
        parts--;
        bytes -= (int64_t)before->size;
        free_remove(c, before);
        join(c, before, b);
        b = before;
    }
    if (is_split(b)) {
        parts++;
        bytes += (int64_t)b->size;
    }
    free_insert(c, b);
    lm_count(c->figures.inactive_split, b->pool, parts);
    lm_count(c->figures.inactive_split_bytes, b->pool, bytes);
    if (c->host) trim(c);
}

/* ---- a block and its owner ------------------------------------------------------------------- */

/* No stream uses b any more. */
static void owned_end(lm_cache *c, block *b) {
    lm_count(c->figures.requested_bytes, b->pool, -(int64_t)b->st.nbytes);
    if (!c->host) {
        lm_count(c->figures.active, b->pool, -1);
        lm_count(c->figures.active_bytes, b->pool, -(int64_t)b->size);
    }
    lm_note(c, LUMA_MEMORY_FREED, b->p, b->st.nbytes, b->stream);
    tell(c, b->p, b->st.nbytes, false, b->stream);
    lm_block_give(c, b);
}

/* ---- other streams --------------------------------------------------------------------------- */

static use *use_new(lm_cache *c) {
    if (!c->spare_uses) {
        chunk *more = chunk_new(c);
        for (int i = 0; more && i < CHUNK; i++) {
            more->u.uses[i].next = c->spare_uses;
            c->spare_uses = &more->u.uses[i];
        }
        if (!more) return NULL;
    }
    use *u = c->spare_uses;
    c->spare_uses = u->next;
    return u;
}

static void use_drop(lm_cache *c, use *u) {
    u->next = c->spare_uses;
    c->spare_uses = u;
}

static line *line_of(lm_cache *c, lm_device *by, void *stream) {
    for (line *l = c->lines; l; l = l->next)
        if (l->by == by && l->stream == stream) return l;
    line *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    *l = (line){.next = c->lines, .by = by, .stream = stream};
    c->lines = l;
    return l;
}

/* Records an event behind what each stream has been given so far. */
static void await(lm_cache *c, block *b) {
    for (use *u = b->uses, *next; u; u = next) {
        next = u->next;
        line *l = u->line;
        u->event = l->by->ops->event_record(l->by, l->stream);
        if (!u->event) {
            use_drop(c, u);
            continue;
        }
        u->next = NULL;
        *(l->first ? &l->last->next : &l->first) = u;
        l->last = u;
        b->waits++;
        c->awaited++;
    }
    b->uses = NULL;
}

static void end_first(lm_cache *c, line *l) {
    use *u = l->first;
    block *b = u->block;
    l->first = u->next;
    l->by->ops->event_free(l->by, u->event);
    use_drop(c, u);
    c->awaited--;
    if (--b->waits == 0) owned_end(c, b);
}

static void poll_events(lm_cache *c) {
    for (line *l = c->lines; l; l = l->next)
        while (l->first && l->by->ops->event_done(l->by, l->first->event))
            end_first(c, l);
}

static void wait_events(lm_cache *c) {
    for (line *l = c->lines; l && c->awaited; l = l->next) {
        if (l->first) l->by->ops->event_wait(l->by, l->last->event);
        while (l->first)
            end_first(c, l);
    }
}

bool lm_cache_record_stream(lm_storage *st, lm_device *by, void *stream) {
    lm_cache *c = st->device->cache;
    if (st->foreign || c->host || !by->ops->event_record) return true;
    block *b = (block *)(void *)st;
    if (!stream) stream = by->stream;
    if (by == c->device && stream == b->stream) return true;
    line *l = line_of(c, by, stream);
    if (!l) return false;
    for (const use *u = b->uses; u; u = u->next)
        if (u->line == l) return true;
    use *u = use_new(c);
    if (!u) return false;
    *u = (use){.next = b->uses, .line = l, .block = b};
    b->uses = u;
    return true;
}

/* What the backend can do without. */
static void trim_device(lm_cache *c, bool short_of) {
    if (c->device->ops->trim) c->device->ops->trim(c->device, short_of);
}

/* Segments that hold nothing. */
static void flush(lm_cache *c) {
    lm_slab_trim(c);
    lm_cache_release_idle(c);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* b, in no set, keeps its first size bytes; the rest goes to the free blocks where it is worth it.
** The counts are PyTorch's: a free part that shrinks stays one inactive split. */
static void carve(lm_cache *c, block *b, size_t size) {
    lm_cache_figures *f = &c->figures;
    bool was_split = is_split(b);
    size_t rest = b->size - size;
    bool worth = b->set == SET_SMALL   ? rest >= c->min_split
                 : b->set == SET_LARGE ? rest > SMALL_MAX
                                       : false;
    block *r = worth ? record_new(c) : NULL;
    if (r) {
        r->p = b->p + size;
        r->size = rest;
        r->pool = b->pool;
        r->set = b->set;
        r->stream = b->stream;
        r->before = b;
        r->after = b->after;
        if (r->after) r->after->before = r;
        b->after = r;
        b->size = size;
        free_insert(c, r);
        if (!was_split) lm_count(f->inactive_split, b->pool, 1);
        lm_count(f->inactive_split_bytes, b->pool, was_split ? -(int64_t)size : (int64_t)rest);
    } else if (was_split) {
        lm_count(f->inactive_split, b->pool, -1);
        lm_count(f->inactive_split_bytes, b->pool, -(int64_t)b->size);
    }
}

static block *fit(lm_cache *c, size_t size, int set, void *stream) {
    block *b = best_fit(c, set, size, stream);
    /* A block that is not split must not be much too large either. */
    if (b && set == SET_WHOLE && b->size - size > size / 4) return NULL;
    if (b) free_remove(c, b);
    return b;
}

block *lm_block_take(lm_cache *c, size_t size, void *stream, bool last) {
    int pool = size <= SMALL_MAX ? LM_POOL_SMALL : LM_POOL_LARGE;
    int set = pool == LM_POOL_SMALL          ? SET_SMALL
              : c->host && size >= WHOLE_MIN ? SET_WHOLE
                                             : SET_LARGE;
    if (c->awaited) poll_events(c);
    block *b = fit(c, size, set, stream);
    if (!b) b = segment_new(c, size, pool, set, stream, USUAL);
    if (!b && last && !c->problem) {
        c->figures.num_alloc_retries++;
        lm_note(c, LUMA_MEMORY_RETRY, NULL, size, stream);
        wait_events(c);
        b = fit(c, size, set, stream);
        if (!b) trim_device(c, true);
        if (!b) b = fit(c, size, set, stream);
        if (!b) flush(c);
        if (!b) b = segment_new(c, size, pool, set, stream, USUAL);
        if (!b) b = segment_new(c, size, pool, set, stream, EXACT);
        if (!b && !c->host && !c->problem && may_reserve(c, exact_size(c, size)))
            b = segment_new(c, size, pool, set, stream, FROM_ALL);
    }
    if (!b) return NULL;
    carve(c, b, size);
    b->taken = true;
    c->used += b->size;
    return b;
}

/* For a storage or a raw allocation of nbytes. */
static block *owned_take(lm_cache *c, size_t nbytes, void *stream, bool last) {
    size_t size = nbytes ? nbytes : 1;
    if (!c->direct && size <= REQUEST_MAX) size = round_up(size, c->round);
    block *b = size <= REQUEST_MAX ? lm_block_take(c, size, stream, last) : NULL;
    if (!b) {
        if (last && !c->problem) {
            c->figures.num_ooms++;
            lm_note(c, LUMA_MEMORY_OOM, NULL, nbytes, stream);
        }
        return NULL;
    }
    lm_count(c->figures.allocation, b->pool, 1);
    lm_count(c->figures.allocated_bytes, b->pool, (int64_t)b->size);
    lm_count(c->figures.requested_bytes, b->pool, (int64_t)nbytes);
    if (!c->host) {
        lm_count(c->figures.active, b->pool, 1);
        lm_count(c->figures.active_bytes, b->pool, (int64_t)b->size);
    }
    lm_note(c, LUMA_MEMORY_ALLOC, b->p, nbytes, stream);
    tell(c, b->p, nbytes, true, stream);
    b->st = (lm_storage){.refs = 1, .nbytes = nbytes, .data = b->p, .device = c->device};
    return b;
}

static void owned_give(lm_cache *c, block *b) {
    lm_count(c->figures.allocation, b->pool, -1);
    lm_count(c->figures.allocated_bytes, b->pool, -(int64_t)b->size);
    lm_note(c, LUMA_MEMORY_FREE, b->p, b->st.nbytes, b->stream);
    if (b->uses) await(c, b);
    if (b->waits)
        b->released = true;
    else
        owned_end(c, b);
}

/* ---- raw allocations ------------------------------------------------------------------------- */

static block **raw_place(const lm_cache *c, uintptr_t p) {
    uint64_t mixed = ((uint64_t)p >> 6) * UINT64_C(0x9E3779B97F4A7C15);
    return &c->raw[(size_t)(mixed >> 32) & (c->raw_size - 1)];
}

/* Room for one more. */
static bool raw_grow(lm_cache *c) {
    if (c->nraw < c->raw_size) return true;
    size_t before = c->raw_size, size = before ? 2 * before : 64;
    block **old = c->raw, **table = calloc(size, sizeof *table);
    if (!table) return false;
    c->raw = table;
    c->raw_size = size;
    for (size_t i = 0; i < before; i++)
        for (block *b = old[i], *next; b; b = next) {
            next = b->raw_next;
            block **at = raw_place(c, (uintptr_t)b->p);
            b->raw_next = *at;
            *at = b;
        }
    free(old);
    return true;
}

void *lm_cache_raw_alloc(lm_cache *c, size_t nbytes, void *stream) {
    if (!raw_grow(c)) return NULL;
    begin(c);
    block *b = owned_take(c, nbytes, stream ? stream : c->device->stream, true);
    end(c);
    if (!b) return NULL;
    block **at = raw_place(c, (uintptr_t)b->p);
    b->raw_next = *at;
    *at = b;
    c->nraw++;
    return b->p;
}

bool lm_cache_raw_delete(lm_cache *c, const void *p) {
    if (!c->raw) return false;
    for (block **at = raw_place(c, (uintptr_t)p); *at; at = &(*at)->raw_next) {
        block *b = *at;
        if (b->p != p) continue;
        *at = b->raw_next;
        c->nraw--;
        begin(c);
        owned_give(c, b);
        end(c);
        return true;
    }
    return false;
}

static bool find_base(const lm_cache *c, const void *p, void **base, size_t *nbytes) {
    uintptr_t at = (uintptr_t)p;
    for (const block *s = c->segment_first; s; s = s->segment_next) {
        if (at < (uintptr_t)s->p) continue;
        size_t size = 0;
        bool taken = false;
        for (const block *b = s; b; b = b->after) {
            size += b->size;
            if (at - (uintptr_t)b->p < b->size) taken = b->taken && !b->released;
        }
        if (at - (uintptr_t)s->p >= size) continue;
        *base = s->p;
        *nbytes = size;
        return taken;
    }
    return false;
}

bool lm_cache_base(const lm_cache *c, const void *p, void **base, size_t *nbytes) {
    begin(c);
    bool found = find_base(c, p, base, nbytes);
    end(c);
    return found;
}

/* ---- the cache ------------------------------------------------------------------------------- */

lm_cache *lm_cache_open(lm_device *device) {
    lm_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->device = device;
    c->host = strcmp(device->ops->kind, "cpu") == 0;
    c->round = c->host ? LINE : 512;
    c->min_split = c->host ? TINY_MAX : 512; /* less could serve nobody */
    if (!c->host) lm_crowd_join(c);
    return c;
}

void lm_cache_close(lm_cache *c) {
    if (!c) return;
    if (!c->host) lm_crowd_leave(c);
    lm_cache_empty(c);
    while (c->segment_first) { /* storages that nobody will look at again are in them */
        block *b = c->segment_first;
        for (block *after = b->after, *next; after; after = next) {
            next = after->after;
            b->size += after->size;
        }
        segment_release(c, b);
    }
    for (line *l = c->lines, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    for (chunk *k = c->chunks, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(c->raw);
    free(c);
}

lm_storage *lm_cache_storage(lm_device *device, size_t nbytes, bool last) {
    lm_cache *c = device->cache;
    if (c->host && nbytes <= TINY_MAX) {
        lm_storage *st = lm_slab_take(c, nbytes, last);
        if (!st && last) c->figures.num_ooms++;
        return st;
    }
    begin(c);
    block *b = owned_take(c, nbytes, device->stream, last);
    end(c);
    return b ? &b->st : NULL;
}

void lm_cache_release(lm_storage *st) {
    lm_cache *c = st->device->cache;
    if (st->ctx) {
        lm_slab_give(c, st);
        return;
    }
    begin(c);
    owned_give(c, (block *)(void *)st);
    end(c);
}

void lm_cache_empty(lm_cache *c) {
    begin(c);
    trim_device(c, false);
    wait_events(c);
    flush(c);
    end(c);
}

void lm_cache_set_limit(lm_cache *c, size_t nbytes) {
    begin(c);
    c->limit = nbytes;
    if (nbytes && (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current > nbytes)
        lm_cache_empty(c);
    end(c);
}

void lm_cache_set_budget(lm_cache *c, lm_budget *budget) {
    begin(c);
    int64_t reserved = c->figures.reserved_bytes[LM_POOL_ALL].current;
    if (c->budget) c->budget->used -= reserved;
    c->budget = budget;
    if (budget) budget->used += reserved;
    end(c);
}

void lm_cache_set_direct(lm_cache *c) {
    c->direct = true;
}

void lm_cache_set_notify(lm_cache *c, luma_memory_fn *notify, void *ctx) {
    begin(c);
    c->notify = notify;
    c->notify_ctx = ctx;
    end(c);
}

const char *lm_cache_problem(lm_cache *c) {
    const char *problem = c->problem;
    c->problem = NULL;
    return problem;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int64_t largest(const free_set *set) {
    int last = -1;
    int64_t size = 0;
    for (int bin = next_bin(set, 0); bin >= 0; bin = next_bin(set, bin + 1))
        last = bin;
    for (const block *b = last < 0 ? NULL : set->bins[last]; b; b = b->bin_next)
        size = (int64_t)b->size;
    return size;
}

void lm_cache_stats(const lm_cache *c, lm_cache_figures *out) {
    begin(c);
    *out = c->figures;
    if (c->host) { /* no stream uses a block, so none outlives its storage */
        memcpy(out->active, out->allocation, sizeof out->active);
        memcpy(out->active_bytes, out->allocated_bytes, sizeof out->active_bytes);
    }
    out->limit = (int64_t)c->limit;
    for (int i = 0; i < SETS; i++) {
        int64_t size = largest(&c->sets[i]);
        if (size > out->largest_free) out->largest_free = size;
    }
    end(c);
}

void lm_cache_reset_peak(lm_cache *c) {
    begin(c);
#define RESET(name)                                                                                \
    for (int i = 0; i < LM_POOLS; i++)                                                             \
        c->figures.name[i].peak = c->figures.name[i].current;
    LM_CACHE_STATS(RESET)
#undef RESET
    end(c);
}

void lm_cache_reset_accumulated(lm_cache *c) {
    begin(c);
#define RESET(name)                                                                                \
    for (int i = 0; i < LM_POOLS; i++)                                                             \
        c->figures.name[i].allocated = c->figures.name[i].freed = 0;
    LM_CACHE_STATS(RESET)
#undef RESET
    c->figures.num_alloc_retries = c->figures.num_ooms = 0;
    end(c);
}

void lm_cache_walk(const lm_cache *c, lm_cache_walk_fn *visit, void *ctx) {
    begin(c);
    for (const block *first = c->segment_first; first; first = first->segment_next) {
        lm_cache_part part = {.segment = (uintptr_t)first->p,
                              .pool = (lm_cache_pool)first->pool,
                              .stream = first->stream};
        for (const block *b = first; b; b = b->after)
            part.segment_size += b->size;
        for (const block *b = first; b; b = b->after) {
            part.address = (uintptr_t)b->p;
            part.size = b->size;
            part.requested = b->taken ? b->st.nbytes : 0;
            part.state = !b->taken     ? LM_PART_INACTIVE
                         : b->released ? LM_PART_AWAITING_FREE
                                       : LM_PART_ALLOCATED;
            visit(ctx, &part);
        }
    }
    end(c);
}
