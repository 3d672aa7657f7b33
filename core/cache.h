/* cache.h -- the caching allocator of a device: segments and blocks over its raw memory, in the
** manner of PyTorch's. Serves one thread at a time, as the state that owns the device: storages are
** made and released on that thread, never by workers or another thread of the host. Layer: core. */
#ifndef lm_cache_h
#define lm_cache_h

#include "storage.h"

typedef struct lm_cache lm_cache;
struct lm_device;

/* NULL when there is no memory. The rules follow the device's kind: a "cpu" rounds to 64 bytes, has
** slabs for tiny storages, gives blocks from 10 MB a segment of their own, and returns what is
** freed beyond max(64 MB, bytes in use); others are PyTorch's for CUDA. */
lm_cache *lm_cache_open(struct lm_device *device);
/* Returns all memory to the device; storages must have been released. */
void lm_cache_close(lm_cache *c);

/* A storage of nbytes with refs 1, data 64-byte aligned; NULL when the device has no memory left
** even after the cache was emptied. Tiny CPU storages come from free lists, header and data as one
** block. */
lm_storage *lm_cache_storage(struct lm_device *device, size_t nbytes);
void lm_cache_release(lm_storage *st);
/* The out-of-memory message: device, what was tried, in use, free, reserved. */
luma_status lm_cache_fail(luma_state *S, struct lm_device *device, size_t nbytes);

/* Returns every segment that holds no live block to the device. */
void lm_cache_empty(lm_cache *c);
/* Most bytes to reserve from the device, 0: no limit. What is reserved already stays. */
void lm_cache_set_limit(lm_cache *c, size_t nbytes);

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
**   requested_bytes as asked for, before rounding */
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

void lm_cache_stats(const lm_cache *c, lm_cache_figures *out);
void lm_cache_reset_peak(lm_cache *c);
void lm_cache_reset_accumulated(lm_cache *c);

#endif
