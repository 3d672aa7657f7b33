/* memory.h -- memory of the host that is no tensor's, and what is said when there is none. Layer: core. */
#ifndef lm_memory_h
#define lm_memory_h

#include "device.h"

/* After lm_cache_storage or lm_cache_raw_alloc gave nothing. "out of memory on cuda:0: tried to
** allocate 16.00 MiB; ..." and LUMA_ERR_MEMORY; or LUMA_ERR_DEVICE when the device failed for
** another reason, which the message then is. */
luma_status lm_memory_fail(luma_state *S, lm_device *device, size_t nbytes);
/* realloc, for what free gives back: NULL is a failure that S holds, LUMA_ERR_MEMORY, and p stays. */
void *lm_memory_resize(luma_state *S, void *p, size_t nbytes);
/* The failure injection of specs: true when this allocation is to fail. */
bool lm_memory_denied(luma_state *S);

#endif
