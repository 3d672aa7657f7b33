/* cache.h -- the caching allocator of a device: segments and blocks over its raw memory, in the
** manner of PyTorch's. Serves one thread at a time, as the state that owns the device: storages are
** made and released on that thread, never by workers or another thread of the host; only what is idle
** in it may be given back by another state's cache of the same device. Layer: core. */
#ifndef lm_cache_h
#define lm_cache_h

#include "storage.h"

typedef struct lm_cache lm_cache;
struct lm_device;

/* NULL when there is no memory. The rules follow the device's kind: a "cpu" rounds to 64 bytes, has
** slabs for tiny storages, gives blocks from 10 MB a segment of their own, and returns what is
** freed beyond max(64 MB, bytes in use); others are PyTorch's for CUDA, with smaller segments where
** the device has less than 640 MB. */
lm_cache *lm_cache_open(struct lm_device *device);
/* Returns all memory to the device; storages must have been released. */
void lm_cache_close(lm_cache *c);

/* A storage of nbytes with refs 1, data 64-byte aligned, to be used in the order of the device's own
** stream; NULL when the device has no memory left. Without `last` that is said before the cache is
** emptied and streams are waited for, so that a host can collect first. Tiny CPU storages come from
** free lists, header and data as one block. */
lm_storage *lm_cache_storage(struct lm_device *device, size_t nbytes, bool last);
void lm_cache_release(lm_storage *st);
/* Work that was or will be queued on a stream of device `by` (NULL: its own) before st is released
** uses it: its memory serves nobody else until that work is done. Nothing to do for the CPU, where
** work ends before calls return. False when there is no memory of the host. */
bool lm_cache_record_stream(lm_storage *st, struct lm_device *by, void *stream);
/* Why the device gave no memory, when the cause is not that it has none; else NULL. Says it once. */
const char *lm_cache_problem(lm_cache *c);

/* Memory that is no storage's, for a stream of the backend (NULL: the device's own). */
void *lm_cache_raw_alloc(lm_cache *c, size_t nbytes, void *stream);
/* False when p is not what lm_cache_raw_alloc gave. */
bool lm_cache_raw_delete(lm_cache *c, const void *p);
/* The segment around p; false when p is in no block that is in use. */
bool lm_cache_base(const lm_cache *c, const void *p, void **base, size_t *nbytes);

/* Waits for the streams that use released blocks, then returns every segment that holds no live
** block to the device. */
void lm_cache_empty(lm_cache *c);
/* Most bytes to reserve from the device, 0: no limit. What is reserved already stays. */
void lm_cache_set_limit(lm_cache *c, size_t nbytes);
/* Segments are charged to it as well, those that are there too; NULL: no more. */
void lm_cache_set_budget(lm_cache *c, lm_budget *budget);
/* For debugging: every block is a segment of exactly its size, and none is kept. Before the first
** allocation. */
void lm_cache_set_direct(lm_cache *c);
void lm_cache_set_notify(lm_cache *c, luma_memory_fn *notify, void *ctx);

typedef enum { LM_POOL_ALL, LM_POOL_SMALL, LM_POOL_LARGE, LM_POOLS } lm_cache_pool;
/* allocated and freed add up since the last reset; peak is since its own. */
typedef struct {
    int64_t current, peak, allocated, freed;
} lm_cache_stat;

/* X(name): what is counted, as PyTorch defines it.
**   allocation      storages               allocated_bytes       their blocks, rounded up
**   segment         raw allocations        reserved_bytes        of segments
**   active          blocks that are in use or still awaited by a stream; likewise active_bytes
**   inactive_split  free blocks that are parts of a segment; likewise inactive_split_bytes
**   requested_bytes of active blocks, as asked for, before rounding */
#define LM_CACHE_STATS(X)                                                                          \
    X(allocation)                                                                                  \
    X(segment)                                                                                     \
    X(active)                                                                                      \
    X(inactive_split)                                                                              \
    X(allocated_bytes)                                                                             \
    X(reserved_bytes)                                                                              \
    X(active_bytes)                                                                                \
    X(inactive_split_bytes)                                                                        \
    X(requested_bytes)

typedef struct {
#define LM_CACHE_FIELD(name) lm_cache_stat name[LM_POOLS];
    LM_CACHE_STATS(LM_CACHE_FIELD)
#undef LM_CACHE_FIELD
    int64_t num_alloc_retries; /* raw allocations tried again after emptying the cache */
    int64_t num_ooms;
    int64_t largest_free; /* bytes of the largest free block */
    int64_t limit;        /* 0: none */
} lm_cache_figures;

/* Blocks, segment by segment, in the order of addresses within each. */
typedef enum { LM_PART_INACTIVE, LM_PART_ALLOCATED, LM_PART_AWAITING_FREE } lm_part_state;
typedef struct {
    uintptr_t segment, address;
    size_t segment_size, size, requested; /* bytes */
    void *stream;
    lm_cache_pool pool;
    lm_part_state state;
} lm_cache_part;
typedef void lm_cache_walk_fn(void *ctx, const lm_cache_part *part);
void lm_cache_walk(const lm_cache *c, lm_cache_walk_fn *visit, void *ctx);

void lm_cache_stats(const lm_cache *c, lm_cache_figures *out);
void lm_cache_reset_peak(lm_cache *c);
void lm_cache_reset_accumulated(lm_cache *c);

#endif
