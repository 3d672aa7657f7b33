/* transfer.c -- bytes between host and device through a ring of pinned memory, waiting for the
** stream, and the faults that kernels noted. Layer: kernels/cuda.
**
** The ring is some segments, filled one after the other by small transfers and pieces of large ones.
** One that is full gets an event and is used again when the stream has passed it. A wait for the
** stream frees all of them. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "index.h"

enum { SEGMENTS = 4, LINE = 64 };
#define SEGMENT_BYTES ((size_t)1 << 20)

typedef struct {
    char *p; /* NULL until first used; like event */
    CUevent event;
    bool pending; /* event says when it is free */
} segment;

struct lm_staging {
    segment segments[SEGMENTS];
    int current;
    size_t used;     /* bytes of the current one */
    bool unsure;     /* copies that no event tells of are in the stream */
    lm_fault *found; /* pinned, LM_FAULTS */
    CUevent turned;  /* behind the copy of the other half's faults; NULL until it is needed */
};

luma_status lm_staging_open(luma_state *S, lm_cuda *c) {
    void *p;
    if (!c->staging) c->staging = calloc(1, sizeof *c->staging);
    if (!c->staging) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    CUresult result = c->driver->cuMemAllocHost_v2(&p, LM_FAULTS * sizeof(lm_fault));
    LM_TRY(lm_cuda_check(S, c, result, "cuMemAllocHost"));
    c->staging->found = p;
    return LUMA_OK;
}

void lm_staging_close(lm_cuda *c) {
    lm_staging *s = c->staging;
    if (!s) return;
    for (int i = 0; i < SEGMENTS; i++) {
        if (s->segments[i].p) c->driver->cuMemFreeHost(s->segments[i].p);
        if (s->segments[i].event) c->driver->cuEventDestroy_v2(s->segments[i].event);
    }
    if (s->found) c->driver->cuMemFreeHost(s->found);
    if (s->turned) c->driver->cuEventDestroy_v2(s->turned);
    memset(s, 0, sizeof *s);
}

/* ---- the ring ---- */

/* The stream has been waited for: nothing in the ring is awaited. */
static void ring_reset(lm_staging *s) {
    for (int i = 0; i < SEGMENTS; i++)
        s->segments[i].pending = false;
    s->current = 0;
    s->used = 0;
    s->unsure = false;
}

static luma_status segment_make(luma_state *S, lm_cuda *c, segment *g) {
    void *p;
    if (!g->event)
        LM_TRY(lm_cuda_check(S, c, c->driver->cuEventCreate(&g->event, CU_EVENT_DISABLE_TIMING),
                             "cuEventCreate"));
    if (g->p) return LUMA_OK;
    LM_TRY(lm_cuda_check(S, c, c->driver->cuMemAllocHost_v2(&p, SEGMENT_BYTES), "cuMemAllocHost"));
    g->p = p;
    return LUMA_OK;
}

/* From here on the stream says when the segment is free. */
static luma_status segment_mark(luma_state *S, lm_cuda *c, segment *g) {
    LM_TRY(lm_cuda_check(S, c, c->driver->cuEventRecord(g->event, c->stream), "cuEventRecord"));
    g->pending = true;
    return LUMA_OK;
}

static luma_status segment_wait(luma_state *S, lm_cuda *c, segment *g) {
    if (!g->pending) return LUMA_OK;
    LM_TRY(lm_cuda_check(S, c, c->driver->cuEventSynchronize(g->event), "cuEventSynchronize"));
    g->pending = false;
    return LUMA_OK;
}

static luma_status ring_drain(luma_state *S, lm_cuda *c) {
    LM_TRY(lm_cuda_check(S, c, c->driver->cuStreamSynchronize(c->stream), "cuStreamSynchronize"));
    c->synchronisations++;
    ring_reset(c->staging);
    return LUMA_OK;
}

/* Room in the ring for at least one line; *nbytes is at most what is wanted. */
static luma_status ring_take(luma_state *S, lm_cuda *c, size_t wanted, char **p, size_t *nbytes) {
    lm_staging *s = c->staging;
    if (s->unsure) LM_TRY(ring_drain(S, c));
    if (s->used == SEGMENT_BYTES) {
        LM_TRY(segment_mark(S, c, &s->segments[s->current]));
        s->current = (s->current + 1) % SEGMENTS;
        s->used = 0;
    }
    segment *g = &s->segments[s->current];
    LM_TRY(segment_make(S, c, g));
    LM_TRY(segment_wait(S, c, g));
    size_t room = SEGMENT_BYTES - s->used;
    *nbytes = wanted < room ? wanted : room;
    *p = g->p + s->used;
    s->used += (*nbytes + LINE - 1) / LINE * LINE;
    return LUMA_OK;
}

/* ---- faults ---- */

static CUdeviceptr fault_at(const lm_cuda *c, int i) {
    return c->faults + (size_t)i * sizeof(lm_fault);
}

static const lm_fault *first_of(const lm_fault *list, int n) {
    for (int i = 0; i < n; i++)
        if (list[i].code != LM_FAULT_NONE) return &list[i];
    return NULL;
}

lm_fault *lm_cuda_watch(lm_cuda *c, lm_op op, int ndim, const int64_t *shape) {
    int i = LM_FAULTS - 1;
    if (c->watches < LM_WATCHES) {
        i = c->half * LM_WATCHES + c->watches++;
        lm_fault_origin *w = &c->watch[i];
        w->op = op;
        w->ndim = ndim;
        memcpy(w->shape, shape, (size_t)ndim * sizeof *shape);
    } else {
        c->crowded = true;
    }
    return (lm_fault *)(uintptr_t)fault_at(c, i);
}

/* Looks at what came of the other half, which is free then. */
static bool look_at_other(lm_cuda *c) {
    const int from = (1 - c->half) * LM_WATCHES;
    const lm_fault *found = &c->staging->found[from];
    if (c->driver->cuEventSynchronize(c->staging->turned) != CUDA_SUCCESS) return false;
    const lm_fault *f = first_of(found, LM_WATCHES);
    if (f && c->driver->cuMemsetD8Async(fault_at(c, from), 0, LM_WATCHES * sizeof *f, c->stream) !=
                 CUDA_SUCCESS)
        return false;
    if (f && !c->has_fault) {
        c->has_fault = true;
        c->fault = *f;
        c->fault_watch = c->watch[from + (f - found)];
    }
    c->other = false;
    return true;
}

void lm_cuda_turn_watches(lm_cuda *c) {
    const lm_driver *driver = c->driver;
    lm_staging *s = c->staging;
    const int from = c->half * LM_WATCHES;
    if (!s->turned && driver->cuEventCreate(&s->turned, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return;
    if (c->other && !look_at_other(c)) return;
    if (driver->cuMemcpyDtoHAsync_v2(&s->found[from], fault_at(c, from),
                                     LM_WATCHES * sizeof(lm_fault), c->stream) != CUDA_SUCCESS)
        return;
    if (driver->cuEventRecord(s->turned, c->stream) != CUDA_SUCCESS) return;
    c->other = true;
    c->half = 1 - c->half;
    c->watches = 0;
}

/* Asks for n faults from the i-th on; they are there when the stream has been waited for. */
static luma_status ask_faults(luma_state *S, lm_cuda *c, int i, int n) {
    if (n == 0) return LUMA_OK;
    return lm_cuda_check(S, c,
                         c->driver->cuMemcpyDtoHAsync_v2(&c->staging->found[i], fault_at(c, i),
                                                         (size_t)n * sizeof(lm_fault), c->stream),
                         "cuMemcpyDtoHAsync");
}

/* The error that the CPU has for the same mistake. As an operation is over when its fault is found,
** the message says what it was; with LUMA_SYNC=1 it is the very error of the CPU. */
static luma_status raise_fault(luma_state *S, const lm_cuda *c, const lm_fault *f,
                               const lm_fault_origin *w) {
    int64_t place[LUMA_MAX_DIMS];
    int ndim = w ? w->ndim : 0;
    lm_op op = w ? w->op : (lm_op)f->op;
    bool named = (unsigned)op < LM_NOPS;
    luma_status status;
    if (f->code == LM_FAULT_INDEX) {
        const int64_t *shape = w ? w->shape : NULL;
        status = lm_index_fail_at(S, f->argument, ndim, shape, (int64_t)f->position,
                                  (int64_t)f->value, (int64_t)f->size);
    } else {
        lm_guard guard = f->code == LM_FAULT_ZERO ? LM_GUARD_ZERO : LM_GUARD_NEGATIVE;
        if (w) lm_place_at(place, ndim, w->shape, (int64_t)f->position);
        status = lm_guard_fail(S, op, guard, ndim, place);
    }
    if (c->sync_always) return status;
    /* no argument of the call that waits is to blame */
    return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s (in %s%s%s, queued on %s before)", luma_message(S),
                   named ? "'" : "", named ? lm_ops[op].name : "indexing", named ? "'" : "",
                   c->name);
}

/* After the stream was waited for: raises the fault of the launch that was queued first. Faults stay
** on the device until they were cleared there, so that none is lost. */
static luma_status take_faults(luma_state *S, lm_cuda *c) {
    const lm_fault *found = c->staging->found, *first = NULL;
    const int here = c->half * LM_WATCHES, there = (1 - c->half) * LM_WATCHES;
    if (c->other) first = first_of(&found[there], LM_WATCHES);
    if (!first) first = first_of(&found[here], c->watches);
    if (!first && c->crowded) first = first_of(&found[LM_FAULTS - 1], 1);
    if (first)
        LM_TRY(lm_cuda_check(
            S, c, c->driver->cuMemsetD8Async(c->faults, 0, LM_FAULTS * sizeof(lm_fault), c->stream),
            "cuMemsetD8Async"));
    bool has_fault = c->has_fault;
    c->watches = 0;
    c->other = c->crowded = c->has_fault = false;
    if (has_fault) return raise_fault(S, c, &c->fault, &c->fault_watch);
    if (!first) return LUMA_OK;
    return raise_fault(S, c, first,
                       first < &found[LM_FAULTS - 1] ? &c->watch[first - found] : NULL);
}

static bool is_watching(const lm_cuda *c) {
    return c->watches > 0 || c->other || c->crowded || c->has_fault;
}

static luma_status wait_for_stream(luma_state *S, lm_cuda *c);

/* What came from other devices is as good as they were: their faults are found here too. */
static luma_status wait_for_senders(luma_state *S, lm_cuda *c) {
    uint32_t senders = c->senders;
    luma_status status = LUMA_OK;
    c->senders = 0;
    for (int i = 0; i < S->ndevices && senders; i++) {
        lm_device *d = S->devices[i];
        lm_cuda *sender = d->ops == &lm_cuda_ops ? lm_cuda_of(d) : NULL;
        if (!sender || !(senders >> sender->ordinal & 1) || !lm_cuda_usable(sender)) continue;
        senders &= ~(UINT32_C(1) << sender->ordinal);
        if (!is_watching(sender) && !sender->senders) continue;
        LM_TRY(lm_cuda_enter(S, sender));
        status = wait_for_stream(S, sender);
        lm_cuda_leave(sender);
        if (status == LUMA_OK) continue;
        c->senders = senders; /* said the next time */
        break;
    }
    return status;
}

static luma_status wait_for_stream(luma_state *S, lm_cuda *c) {
    LM_TRY(ask_faults(S, c, c->half * LM_WATCHES, c->watches));
    LM_TRY(ask_faults(S, c, LM_FAULTS - 1, c->crowded));
    LM_TRY(ring_drain(S, c));
    LM_TRY(take_faults(S, c));
    return c->senders ? wait_for_senders(S, c) : LUMA_OK;
}

luma_status lm_cuda_synchronize(luma_state *S, lm_device *d) {
    lm_cuda *c = lm_cuda_of(d);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = wait_for_stream(S, c);
    lm_cuda_leave(c);
    return status;
}

/* ---- transfers ---- */

static luma_status upload(luma_state *S, lm_cuda *c, CUdeviceptr dst, const char *src,
                          size_t nbytes) {
    while (nbytes > 0) {
        char *p;
        size_t n;
        if (lm_interrupted(S)) return lm_fail_interrupted(S);
        LM_TRY(ring_take(S, c, nbytes, &p, &n));
        memcpy(p, src, n);
        LM_TRY(lm_cuda_check(S, c, c->driver->cuMemcpyHtoDAsync_v2(dst, p, n, c->stream),
                             "cuMemcpyHtoDAsync"));
        src += n;
        dst += n;
        nbytes -= n;
    }
    c->copies++;
    return LUMA_OK;
}

luma_status lm_cuda_upload(luma_state *S, lm_device *d, void *dst, const void *src, size_t nbytes) {
    lm_cuda *c = lm_cuda_of(d);
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = upload(S, c, (CUdeviceptr)(uintptr_t)dst, src, nbytes);
    lm_cuda_leave(c);
    return status;
}

/* One wait for everything. */
static luma_status download_small(luma_state *S, lm_cuda *c, char *dst, CUdeviceptr src,
                                  size_t nbytes) {
    lm_staging *s = c->staging;
    if (nbytes > SEGMENT_BYTES - s->used) s->used = SEGMENT_BYTES;
    char *p;
    size_t n;
    LM_TRY(ring_take(S, c, nbytes, &p, &n));
    LM_TRY(lm_cuda_check(S, c, c->driver->cuMemcpyDtoHAsync_v2(p, src, nbytes, c->stream),
                         "cuMemcpyDtoHAsync"));
    LM_TRY(wait_for_stream(S, c));
    memcpy(dst, p, nbytes);
    return LUMA_OK;
}

/* Piece k passes through segment k % SEGMENTS; the device copies ahead of the host. */
static luma_status download_large(luma_state *S, lm_cuda *c, char *dst, CUdeviceptr src,
                                  size_t nbytes) {
    size_t pieces = (nbytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
    for (size_t k = 0; k < pieces + SEGMENTS; k++) {
        segment *g = &c->staging->segments[k % SEGMENTS];
        size_t last = nbytes - (pieces - 1) * SEGMENT_BYTES;
        if (lm_interrupted(S)) return lm_fail_interrupted(S);
        if (k >= SEGMENTS) {
            size_t done = k - SEGMENTS;
            if (done >= pieces) continue;
            LM_TRY(segment_wait(S, c, g));
            memcpy(dst + done * SEGMENT_BYTES, g->p, done == pieces - 1 ? last : SEGMENT_BYTES);
        }
        if (k >= pieces) continue;
        LM_TRY(segment_make(S, c, g));
        LM_TRY(lm_cuda_check(S, c,
                             c->driver->cuMemcpyDtoHAsync_v2(g->p, src + k * SEGMENT_BYTES,
                                                             k == pieces - 1 ? last : SEGMENT_BYTES,
                                                             c->stream),
                             "cuMemcpyDtoHAsync"));
        LM_TRY(segment_mark(S, c, g));
    }
    return LUMA_OK;
}

luma_status lm_cuda_download(luma_state *S, lm_device *d, void *dst, const void *src,
                             size_t nbytes) {
    lm_cuda *c = lm_cuda_of(d);
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)src;
    if (nbytes == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status;
    if (nbytes <= SEGMENT_BYTES) {
        status = download_small(S, c, dst, from, nbytes);
    } else {
        status = wait_for_stream(S, c);
        if (status == LUMA_OK) {
            status = download_large(S, c, dst, from, nbytes);
            c->staging->unsure = status != LUMA_OK;
        }
    }
    if (status == LUMA_OK) c->copies++;
    lm_cuda_leave(c);
    return status;
}

/* The stream of c waits for all that is queued on that of the other so far. */
static luma_status follow(luma_state *S, lm_cuda *c, lm_cuda *other) {
    LM_TRY(lm_cuda_enter(S, other));
    luma_status status = lm_cuda_check(
        S, other, other->driver->cuEventRecord(other->event, other->stream), "cuEventRecord");
    lm_cuda_leave(other);
    LM_TRY(status);
    LM_TRY(lm_cuda_enter(S, c));
    status = lm_cuda_check(S, c, c->driver->cuStreamWaitEvent(c->stream, other->event, 0),
                           "cuStreamWaitEvent");
    lm_cuda_leave(c);
    return status;
}

static luma_status copy_peer(luma_state *S, lm_cuda *from, CUdeviceptr src, lm_cuda *to,
                             CUdeviceptr dst, size_t nbytes) {
    LM_TRY(lm_cuda_enter(S, to));
    luma_status status = lm_cuda_check(
        S, to,
        to->driver->cuMemcpyPeerAsync(dst, to->context, src, from->context, nbytes, to->stream),
        "cuMemcpyPeerAsync");
    lm_cuda_leave(to);
    if (status == LUMA_OK) to->copies++;
    return status;
}

luma_status lm_cuda_send(luma_state *S, lm_device *d, const void *src, lm_device *to, void *dst,
                         size_t nbytes) {
    lm_cuda *sender = lm_cuda_of(d), *receiver = lm_cuda_of(to);
    if (nbytes == 0) return LUMA_OK;
    LM_TRY(follow(S, receiver, sender));
    receiver->senders |= UINT32_C(1) << sender->ordinal;
    luma_status status = copy_peer(S, sender, (CUdeviceptr)(uintptr_t)src, receiver,
                                   (CUdeviceptr)(uintptr_t)dst, nbytes);
    /* src may be used anew only after the copy; it may have been queued where this fails */
    luma_status after = follow(S, sender, receiver);
    return status != LUMA_OK ? status : after;
}
