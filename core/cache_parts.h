/* cache_parts.h -- inside the caching allocator: blocks, the cache, how it counts and what it says to
** those who watch. For cache.c, crowd.c and slab.c. Layer: core. */
#ifndef lm_cache_parts_h
#define lm_cache_parts_h

#include "cache.h"
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

#define LINE 64       /* alignment of host data, bytes */
#define TINY_MAX 1024 /* bytes of the largest storage in a slab */
#define SLAB_CLASSES (TINY_MAX / LINE)

typedef struct lm_slab lm_slab; /* slab.c */
typedef struct lm_block lm_block;
typedef struct lm_use lm_use;
struct lm_block {
    lm_storage st; /* handed out while the block is taken; must be first */
    char *p;       /* device address */
    size_t size;
    lm_block *before, *after;              /* neighbours in the segment */
    lm_block *bin_prev, *bin_next;         /* free blocks of like size */
    lm_block *idle_prev, *idle_next;       /* free blocks that are whole segments, oldest first */
    lm_block *segment_prev, *segment_next; /* first blocks of segments; a record stays the first */
    lm_block *raw_next;                    /* in the table of raw allocations */
    void *stream;                          /* in whose order the block is used by its owner */
    lm_use *uses;                          /* other streams that use the block */
    uint32_t waits;                        /* events to come before a released block is free */
    uint8_t pool, set;
    bool taken;    /* not free: in use or awaited */
    bool released; /* awaited */
};

/* A stream other than its block's that uses it; from the release on, the event that ends this. */
typedef struct lm_line lm_line;
struct lm_use {
    lm_use *next; /* of the block; then of the line, in the order of the stream */
    lm_line *line;
    lm_block *block;
    void *event;
};
struct lm_line {
    lm_line *next;
    lm_device *by;
    void *stream;
    lm_use *first, *last;
};

/* Free blocks by size: BIN_STEPS bins to each power of two, in each the smallest first and of
** equals the one freed last; a bit says which bins hold any. */
#define BIN_STEPS 32
#define BINS ((46 - 6 - 4 + 1) * BIN_STEPS)
typedef struct {
    lm_block *bins[BINS];
    uint64_t map[(BINS + 63) / 64];
} lm_free_set;
enum { SET_SMALL, SET_LARGE, SET_WHOLE, SETS };

#define CHUNK 64
typedef struct lm_chunk lm_chunk;
struct lm_chunk {
    lm_chunk *next;
    union {
        lm_block blocks[CHUNK];
        lm_use uses[CHUNK];
    } u;
};

struct lm_cache {
    lm_device *device;
    lm_cache *crowd_next; /* caches of all states, but those of CPUs */
    bool held;            /* by the one who has the crowd's lock */
    bool host;
    bool direct;             /* no block is kept or shared */
    size_t round, min_split; /* bytes; a rest below min_split stays with its block */
    size_t large_segment;    /* bytes; 0: not yet decided */
    size_t limit;
    lm_budget *budget;   /* may be NULL */
    size_t used;         /* bytes of taken blocks, slabs included */
    const char *problem; /* why the device gave no memory last, if not for lack of it */
    luma_memory_fn *notify;
    void *notify_ctx;
    uint32_t awaited; /* uses whose events are to come */
    lm_line *lines;
    lm_cache_figures figures;
    lm_free_set sets[SETS];
    lm_block *idle_first, *idle_last;
    lm_block *segment_first, *segment_last;
    lm_slab *slabs[SLAB_CLASSES];
    lm_block **raw; /* chained by hash of the address */
    size_t nraw, raw_size;
    lm_block *spare; /* block records without memory, linked by after */
    lm_use *spare_uses;
    lm_chunk *chunks;
};

static inline void lm_count_one(lm_cache_stat *s, int64_t change) {
    int64_t more = change > 0 ? change : 0;
    s->current += change;
    s->allocated += more;
    s->freed += more - change;
    if (s->current > s->peak) s->peak = s->current;
}

static inline void lm_count(lm_cache_stat *pools, int pool, int64_t change) {
    lm_count_one(&pools[LM_POOL_ALL], change);
    lm_count_one(&pools[pool], change);
}

static inline void lm_note(const lm_cache *c, luma_memory_kind kind, const void *p, size_t nbytes,
                           void *stream) {
    if (!c->notify) return;
    luma_memory_event e = {.kind = kind,
                           .device = c->device->name,
                           .address = (uintptr_t)p,
                           .nbytes = nbytes,
                           .stream = stream};
    c->notify(c->notify_ctx, &e);
}

/* A taken block of at least size bytes (rounded already) in its stream; NULL when there is no
** memory. Without `last` the cache is not emptied for it. (cache.c) */
lm_block *lm_block_take(lm_cache *c, size_t size, void *stream, bool last);
void lm_block_give(lm_cache *c, lm_block *b);
/* Memory of the device, within the limits of the state; NULL when there is none. (cache.c) */
char *lm_cache_raw(lm_cache *c, size_t size);
/* Gives back the segments that hold nothing. (cache.c) */
void lm_cache_release_idle(lm_cache *c);

/* The caches of all states, but those of CPUs, which give back by themselves. Each is its owner's
** between begin and end, and of nobody else meanwhile. (crowd.c) */
void lm_crowd_join(lm_cache *c);
void lm_crowd_leave(lm_cache *c);
void lm_crowd_begin(lm_device *d);
void lm_crowd_end(lm_device *d);
/* lm_cache_raw when others have given back what they keep for nothing; NULL when there are none.
** Between begin and end. */
char *lm_crowd_alloc(lm_cache *c, size_t size);

/* Storages of up to TINY_MAX bytes of a CPU. (slab.c) */
lm_storage *lm_slab_take(lm_cache *c, size_t nbytes, bool last);
void lm_slab_give(lm_cache *c, lm_storage *st);
/* Gives up slabs that hold no storage. */
void lm_slab_trim(lm_cache *c);

#endif
