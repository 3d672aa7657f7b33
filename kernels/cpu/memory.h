/* memory.h -- raw host memory: what the cache of the CPU device takes segments from.
** Layer: kernels/cpu. */
#ifndef lm_cpu_memory_h
#define lm_cpu_memory_h

#include "device.h"

/* lm_device_ops.raw_alloc and raw_free. Pages of zeros, aligned to 4 KB, from 4 MB on to 2 MB. */
void *lm_cpu_raw_alloc(lm_device *d, size_t nbytes);
void lm_cpu_raw_free(lm_device *d, void *p, size_t nbytes);

#endif
