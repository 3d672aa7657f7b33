/* cache.c -- segments of raw device memory cut into blocks: best fit, split, merge, retry; slabs of
** tiny storages before it on the CPU. Layer: core; device memory is only touched on the CPU. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#if defined(__SANITIZE_ADDRESS__)
#define LM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LM_ASAN 1
#endif
#endif
#ifdef LM_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* PyTorch's sizes, so that its statistics mean the same here. */
#define SMALL_MAX (1u << 20)      /* largest block of the small pool */
#define SMALL_SEGMENT (2u << 20)  /* segments of the small pool */
#define LARGE_SEGMENT (20u << 20) /* of blocks below WHOLE_MIN */
#define WHOLE_MIN (10u << 20)     /* from here on segments are as large as the block */
#define WHOLE_ROUND (2u << 20)    /* rounded up to this */
#define EXACT_ROUND (64u << 10)   /* the last try before giving up */
#define KEEP_MIN (64u << 20)      /* a CPU keeps this much freed memory, or as much as is in use */
#define REQUEST_MAX ((size_t)1 << 46)

#define LINE 64          /* alignment of host data, bytes */
#define TINY_MAX 1024    /* bytes of the largest storage in a slab */
#define SLAB_SIZE 65536u /* bytes */
#define SLAB_CLASSES (TINY_MAX / LINE)

typedef struct block block;
struct block {
    lm_storage st; /* handed out while the block is taken; must be first */
    char *p;       /* device address */
    size_t size;
    block *before, *after;        /* neighbours in the segment */
    block *bin_prev, *bin_next;   /* free blocks of like size */
    block *idle_prev, *idle_next; /* free blocks that are whole segments, oldest first */
    void *stream;                 /* whose order the block follows; NULL: the device's own */
    uint8_t pool, set;
    bool taken;
};

/* Free blocks by size: BIN_STEPS bins to each power of two, in each the smallest first and of
** equals the one freed last; a bit says which bins hold any. */
#define BIN_STEPS 32
#define BINS ((46 - 6 - 4 + 1) * BIN_STEPS)
typedef struct {
    block *bins[BINS];
    uint64_t map[(BINS + 63) / 64];
} free_set;
enum { SET_SMALL, SET_LARGE, SET_WHOLE, SETS };

/* Storages of up to TINY_MAX bytes, header and data side by side. The slab's own head is its first
** LINE bytes. Slabs with room are in the list of their class. */
typedef struct item item;
struct item {
    union {
        lm_storage st;
        item *next; /* while free */
    } u;
};
typedef struct slab slab;
struct slab {
    slab *prev, *next;
    block *home;
    item *free;
    char *fresh; /* items from here on were never used */
    uint32_t class, live, capacity;
};
_Static_assert(sizeof(item) <= LINE, "a storage header fits before its data");
_Static_assert(sizeof(slab) <= LINE, "the head of a slab fits before its items");

#define CHUNK 64
typedef struct chunk chunk;
struct chunk {
    chunk *next;
    block blocks[CHUNK];
};

struct lm_cache {
    lm_device *device;
    bool host;
    size_t round, min_split; /* bytes; a rest below min_split stays with its block */
    size_t limit;
    size_t used; /* bytes of taken blocks, slabs included */
    lm_cache_figures figures;
    free_set sets[SETS];
    block *idle_first, *idle_last;
    slab *slabs[SLAB_CLASSES];
    block *spare; /* block records without memory, linked by after */
    chunk *chunks;
};

static inline void count_one(lm_cache_stat *s, int64_t change) {
    int64_t more = change > 0 ? change : 0;
    s->current += change;
    s->allocated += more;
    s->freed += more - change;
    if (s->current > s->peak) s->peak = s->current;
}

static inline void count(lm_cache_stat *pools, int pool, int64_t change) {
    count_one(&pools[LM_POOL_ALL], change);
    count_one(&pools[pool], change);
}

/* ---- block records --------------------------------------------------------------------------- */

static block *record_new(lm_cache *c) {
    if (!c->spare) {
        chunk *more = malloc(sizeof *more);
        if (!more) return NULL;
        more->next = c->chunks;
        c->chunks = more;
        for (int i = 0; i < CHUNK; i++) {
            more->blocks[i].after = c->spare;
            c->spare = &more->blocks[i];
        }
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

static char *raw_alloc(lm_cache *c, size_t size) {
    size_t reserved = (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current;
    if (c->limit && (size > c->limit || reserved > c->limit - size)) return NULL;
    lm_device *d = c->device;
    return d->ops->raw_alloc ? d->ops->raw_alloc(d, size) : NULL;
}

/* b is free and a whole segment. */
static void segment_release(lm_cache *c, block *b) {
    free_remove(c, b);
    count(c->figures.segment, b->pool, -1);
    count(c->figures.reserved_bytes, b->pool, -(int64_t)b->size);
    if (c->host) ASAN_UNPOISON_MEMORY_REGION(b->p, b->size);
    c->device->ops->raw_free(c->device, b->p, b->size);
    record_drop(c, b);
}

static block *segment_new(lm_cache *c, size_t size, int pool, int set, void *stream) {
    size_t bytes = pool == LM_POOL_SMALL ? SMALL_SEGMENT
                   : size < WHOLE_MIN    ? LARGE_SEGMENT
                                         : round_up(size, WHOLE_ROUND);
    block *b = record_new(c);
    char *p = b ? raw_alloc(c, bytes) : NULL;
    if (!p) {
        c->figures.num_alloc_retries++;
        lm_cache_empty(c);
        if (!b) b = record_new(c);
        if (b) p = raw_alloc(c, bytes);
    }
    if (b && !p) {
        bytes = round_up(size, EXACT_ROUND);
        p = raw_alloc(c, bytes);
    }
    if (!p) {
        if (b) record_drop(c, b);
        return NULL;
    }
    b->p = p;
    b->size = bytes;
    b->pool = (uint8_t)pool;
    b->set = (uint8_t)set;
    b->stream = stream;
    count(c->figures.segment, pool, 1);
    count(c->figures.reserved_bytes, pool, (int64_t)bytes);
    if (c->host) ASAN_POISON_MEMORY_REGION(p, bytes);
    return b;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

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
        if (!was_split) count(f->inactive_split, b->pool, 1);
        count(f->inactive_split_bytes, b->pool, was_split ? -(int64_t)size : (int64_t)rest);
    } else if (was_split) {
        count(f->inactive_split, b->pool, -1);
        count(f->inactive_split_bytes, b->pool, -(int64_t)b->size);
    }
}

/* A taken block of at least size bytes (rounded already); NULL when there is no memory. */
static block *block_take(lm_cache *c, size_t size, void *stream) {
    int pool = size <= SMALL_MAX ? LM_POOL_SMALL : LM_POOL_LARGE;
    int set = pool == LM_POOL_SMALL          ? SET_SMALL
              : c->host && size >= WHOLE_MIN ? SET_WHOLE
                                             : SET_LARGE;
    block *b = best_fit(c, set, size, stream);
    /* A block that is not split must not be much too large either. */
    if (b && set == SET_WHOLE && b->size - size > size / 4) b = NULL;
    if (b)
        free_remove(c, b);
    else if (!(b = segment_new(c, size, pool, set, stream)))
        return NULL;
    carve(c, b, size);
    b->taken = true;
    c->used += b->size;
    return b;
}

/* Joins the free neighbour n to b, which is in no set; returns the bytes that n had. */
static size_t merge(lm_cache *c, block *b, block *n) {
    if (!n || n->taken) return 0;
    size_t size = n->size;
    free_remove(c, n);
    if (n == b->before) {
        b->p = n->p;
        b->before = n->before;
        if (b->before) b->before->after = b;
    } else {
        b->after = n->after;
        if (b->after) b->after->before = b;
    }
    b->size += size;
    record_drop(c, n);
    return size;
}

/* What a CPU keeps of freed memory is bounded; the segments that were idle longest go first. */
static void trim(lm_cache *c) {
    size_t keep = c->used > KEEP_MIN ? c->used : KEEP_MIN;
    while (c->idle_first && (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current - c->used > keep)
        segment_release(c, c->idle_first);
}

static void block_give(lm_cache *c, block *b) {
    c->used -= b->size;
    b->taken = false;
    if (c->host) ASAN_POISON_MEMORY_REGION(b->p, b->size);
    int64_t parts = 0, bytes = 0;
    block *neighbours[2] = {b->before, b->after};
    for (int i = 0; i < 2; i++) {
        size_t joined = merge(c, b, neighbours[i]);
        parts -= joined > 0;
        bytes -= (int64_t)joined;
    }
    if (is_split(b)) {
        parts++;
        bytes += (int64_t)b->size;
    }
    free_insert(c, b);
    count(c->figures.inactive_split, b->pool, parts);
    count(c->figures.inactive_split_bytes, b->pool, bytes);
    if (c->host) trim(c);
}

/* ---- slabs ----------------------------------------------------------------------------------- */

static void slab_link(lm_cache *c, slab *s) {
    s->prev = NULL;
    s->next = c->slabs[s->class];
    if (s->next) s->next->prev = s;
    c->slabs[s->class] = s;
}

static void slab_unlink(lm_cache *c, slab *s) {
    *(s->prev ? &s->prev->next : &c->slabs[s->class]) = s->next;
    if (s->next) s->next->prev = s->prev;
}

static slab *slab_new(lm_cache *c, int class) {
    block *b = block_take(c, SLAB_SIZE, NULL);
    if (!b) return NULL;
    ASAN_UNPOISON_MEMORY_REGION(b->p, b->size);
    slab *s = (slab *)(void *)b->p;
    size_t item_size = (size_t)(class + 2) * LINE;
    *s = (slab){.home = b,
                .fresh = b->p + LINE,
                .class = (uint32_t) class,
                .capacity = (uint32_t)((SLAB_SIZE - LINE) / item_size)};
    slab_link(c, s);
    return s;
}

/* s holds no storage. */
static void slab_release(lm_cache *c, slab *s) {
    slab_unlink(c, s);
    block_give(c, s->home);
}

static lm_storage *tiny_new(lm_cache *c, size_t nbytes) {
    int class = nbytes ? (int)((nbytes - 1) / LINE) : 0;
    slab *s = c->slabs[class];
    if (!s && !(s = slab_new(c, class))) return NULL;
    size_t size = (size_t)(class + 1) * LINE;
    item *it = s->free;
    if (it) {
        s->free = it->u.next;
    } else {
        it = (item *)(void *)s->fresh;
        s->fresh += LINE + size;
    }
    if (++s->live == s->capacity) slab_unlink(c, s);
    char *data = (char *)it + LINE;
    it->u.st =
        (lm_storage){.refs = 1, .nbytes = nbytes, .data = data, .device = c->device, .ctx = s};
    ASAN_POISON_MEMORY_REGION(data, size);
    ASAN_UNPOISON_MEMORY_REGION(data, nbytes);
    count(c->figures.allocation, LM_POOL_SMALL, 1);
    count(c->figures.allocated_bytes, LM_POOL_SMALL, (int64_t)size);
    count(c->figures.requested_bytes, LM_POOL_SMALL, (int64_t)nbytes);
    return &it->u.st;
}

static void tiny_release(lm_cache *c, lm_storage *st) {
    slab *s = st->ctx;
    int64_t size = (int64_t)(s->class + 1) * LINE;
    count(c->figures.allocation, LM_POOL_SMALL, -1);
    count(c->figures.allocated_bytes, LM_POOL_SMALL, -size);
    count(c->figures.requested_bytes, LM_POOL_SMALL, -(int64_t)st->nbytes);
    ASAN_POISON_MEMORY_REGION(st->data, (size_t)size);
    item *it = (item *)(void *)st;
    it->u.next = s->free;
    s->free = it;
    if (s->live-- == s->capacity) slab_link(c, s);
    /* One slab of a class may stay empty, for the next round of a loop. */
    if (s->live == 0 && (s->prev || s->next)) slab_release(c, s);
}

/* ---- the cache ------------------------------------------------------------------------------- */

lm_cache *lm_cache_open(lm_device *device) {
    lm_cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->device = device;
    c->host = strcmp(device->ops->kind, "cpu") == 0;
    c->round = c->host ? LINE : 512;
    c->min_split = c->host ? TINY_MAX : 512; /* less could serve nobody */
    return c;
}

void lm_cache_close(lm_cache *c) {
    if (!c) return;
    lm_cache_empty(c);
    for (chunk *k = c->chunks, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(c);
}

lm_storage *lm_cache_storage(lm_device *device, size_t nbytes) {
    lm_cache *c = device->cache;
    if (c->host && nbytes <= TINY_MAX) {
        lm_storage *st = tiny_new(c, nbytes);
        if (!st) c->figures.num_ooms++;
        return st;
    }
    size_t size = nbytes ? nbytes : 1;
    block *b = size <= REQUEST_MAX ? block_take(c, round_up(size, c->round), NULL) : NULL;
    if (!b) {
        c->figures.num_ooms++;
        return NULL;
    }
    if (c->host) ASAN_UNPOISON_MEMORY_REGION(b->p, nbytes);
    count(c->figures.allocation, b->pool, 1);
    count(c->figures.allocated_bytes, b->pool, (int64_t)b->size);
    count(c->figures.requested_bytes, b->pool, (int64_t)nbytes);
    b->st = (lm_storage){.refs = 1, .nbytes = nbytes, .data = b->p, .device = device};
    return &b->st;
}

void lm_cache_release(lm_storage *st) {
    lm_cache *c = st->device->cache;
    if (st->ctx) {
        tiny_release(c, st);
        return;
    }
    block *b = (block *)(void *)st;
    count(c->figures.allocation, b->pool, -1);
    count(c->figures.allocated_bytes, b->pool, -(int64_t)b->size);
    count(c->figures.requested_bytes, b->pool, -(int64_t)st->nbytes);
    block_give(c, b);
}

void lm_cache_empty(lm_cache *c) {
    for (int i = 0; i < SLAB_CLASSES; i++)
        for (slab *s = c->slabs[i], *next; s; s = next) {
            next = s->next;
            if (s->live == 0) slab_release(c, s);
        }
    while (c->idle_first)
        segment_release(c, c->idle_first);
}

void lm_cache_set_limit(lm_cache *c, size_t nbytes) {
    c->limit = nbytes;
    if (nbytes && (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current > nbytes)
        lm_cache_empty(c);
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
    *out = c->figures;
    /* No stream but the device's own uses a block, so none outlives its storage. */
    memcpy(out->active, out->allocation, sizeof out->active);
    memcpy(out->active_bytes, out->allocated_bytes, sizeof out->active_bytes);
    out->limit = (int64_t)c->limit;
    for (int i = 0; i < SETS; i++) {
        int64_t size = largest(&c->sets[i]);
        if (size > out->largest_free) out->largest_free = size;
    }
}

void lm_cache_reset_peak(lm_cache *c) {
#define RESET(name)                                                                                \
    for (int i = 0; i < LM_POOLS; i++)                                                             \
        c->figures.name[i].peak = c->figures.name[i].current;
    LM_CACHE_STATS(RESET)
#undef RESET
}

void lm_cache_reset_accumulated(lm_cache *c) {
#define RESET(name)                                                                                \
    for (int i = 0; i < LM_POOLS; i++)                                                             \
        c->figures.name[i].allocated = c->figures.name[i].freed = 0;
    LM_CACHE_STATS(RESET)
#undef RESET
    c->figures.num_alloc_retries = c->figures.num_ooms = 0;
}

typedef struct {
    char text[32];
} size_text;

static const char *show_size(size_text *buffer, size_t n) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)n / 1024;
    int unit = 0;
    for (; value >= 1024 && unit < 5; unit++)
        value /= 1024;
    if (n < 1024)
        snprintf(buffer->text, sizeof buffer->text, "%d bytes", (int)n);
    else
        snprintf(buffer->text, sizeof buffer->text, "%.2f %s", value, units[unit]);
    return buffer->text;
}

luma_status lm_cache_fail(luma_state *S, lm_device *device, size_t nbytes) {
    const lm_cache *c = device->cache;
    const char *problem = device->ops->raw_problem ? device->ops->raw_problem(device) : NULL;
    if (problem) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", problem);
    size_t reserved = (size_t)c->figures.reserved_bytes[LM_POOL_ALL].current;
    size_t used = (size_t)c->figures.allocated_bytes[LM_POOL_ALL].current;
    size_text tried, in_use, unused, held, limit;
    return lm_fail(S, LUMA_ERR_MEMORY, 0,
                   "out of memory on %s: tried to allocate %s; %s in use, %s free, %s reserved%s%s",
                   device->name, show_size(&tried, nbytes), show_size(&in_use, used),
                   show_size(&unused, reserved - used), show_size(&held, reserved),
                   c->limit ? ", limit " : "", c->limit ? show_size(&limit, c->limit) : "");
}
