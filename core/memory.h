/* memory.h -- what is said when there is no memory. Layer: core. */
#ifndef lm_memory_h
#define lm_memory_h

#include "device.h"

/* After lm_cache_storage or lm_cache_raw_alloc gave nothing. "out of memory on cuda:0: tried to
** allocate 16.00 MiB; ..." and LUMA_ERR_MEMORY; or LUMA_ERR_DEVICE when the device failed for
** another reason, which the message then is. */
luma_status lm_memory_fail(luma_state *S, lm_device *device, size_t nbytes);

#endif
