/* memory.c -- what the cache of a device needs beside raw memory: events of streams, how much memory
** there is, and an emulated device that is told of blocks. Layer: kernels/cuda.
**
** Environment: LUMA_CUDA_NO_CACHE=1   every allocation is one of the driver's, of exactly its size */
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "cuda.h"
#include "emulator/emulator.h"

static void pop(lm_cuda *c) {
    c->driver->cuCtxPopCurrent_v2(NULL);
}

bool lm_cuda_memory_info(lm_device *d, size_t *unused, size_t *total) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return false;
    bool known = c->driver->cuMemGetInfo_v2(unused, total) == CUDA_SUCCESS;
    pop(c);
    return known;
}

/* ---- events ---- */

static CUevent take_event(lm_cuda *c) {
    CUevent event = NULL;
    if (c->nevents > 0) return c->events[--c->nevents];
    if (c->driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return NULL;
    return event;
}

static void give_event(lm_cuda *c, CUevent event) {
    if (c->nevents < LM_SPARE_EVENTS)
        c->events[c->nevents++] = event;
    else
        c->driver->cuEventDestroy_v2(event);
}

/* Where nothing can be asked of the device any more, nothing is at work either. */
void *lm_cuda_event_record(lm_device *d, void *stream) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return NULL;
    CUevent event = take_event(c);
    if (event && c->driver->cuEventRecord(event, stream) != CUDA_SUCCESS) {
        give_event(c, event);
        event = NULL;
    }
    if (!event) c->driver->cuStreamSynchronize(stream);
    pop(c);
    return event;
}

/* A failure says nothing of the event: it is waited for in time. */
bool lm_cuda_event_done(lm_device *d, void *event) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return true;
    CUresult result = c->driver->cuEventQuery(event);
    pop(c);
    return result == CUDA_SUCCESS;
}

void lm_cuda_event_wait(lm_device *d, void *event) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return;
    /* Once more, since a failure may be that of work before; others report it. */
    if (c->driver->cuEventSynchronize(event) != CUDA_SUCCESS) c->driver->cuEventSynchronize(event);
    pop(c);
}

void lm_cuda_event_free(lm_device *d, void *event) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return;
    give_event(c, event);
    pop(c);
}

/* ---- opening ---- */

static void on_block(lm_device *d, void *p, size_t nbytes, bool live, void *stream) {
    lm_cuda *c = lm_cuda_of(d);
    if (!lm_cuda_push(c)) return;
    lm_emu_block_fn *block = (lm_emu_block_fn *)(uintptr_t)c->driver->emu_block;
    block((unsigned long long)(uintptr_t)p, nbytes, live, stream);
    pop(c);
}

void lm_cuda_memory_open(lm_cuda *c) {
    lm_device *d = c->device;
    const char *no_cache = getenv("LUMA_CUDA_NO_CACHE");
    d->stream = c->stream;
    if (no_cache && strcmp(no_cache, "1") == 0) lm_cache_set_direct(d->cache);
    if (c->driver->emu_block) d->on_block = on_block;
}

void lm_cuda_memory_close(lm_cuda *c) {
    while (c->nevents > 0)
        c->driver->cuEventDestroy_v2(c->events[--c->nevents]);
}
