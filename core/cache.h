/* cache.h -- the caching allocator of a device: segments and blocks over its raw memory, in the
** manner of PyTorch's. Serves one thread at a time, as the state that owns the device. Layer: core.
*/
#ifndef lm_cache_h
#define lm_cache_h

#include "storage.h"

typedef struct lm_cache lm_cache;
struct lm_device;

/* NULL when there is no memory. */
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

#endif
