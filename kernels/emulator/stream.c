/* stream.c -- streams, events, and the work that waits in them. Nothing runs before something waits
** for it ("lazy"), or everything at the call; both are what the documentation allows. In the orders
** random and warp other streams run ahead by chance. Layer: kernels. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parts.h"

typedef enum {
    OP_LAUNCH,
    OP_UPLOAD,
    OP_DOWNLOAD,
    OP_COPY,
    OP_SET,
    OP_RECORD,
    OP_WAIT,
    OP_CALL,
    OP_BLOCK
} op_kind;

/* What a record leaves behind: reached once the stream has come to it. Each record makes one, so
** that a wait means the record before it and not a later one. */
typedef struct mark {
    int references; /* the event, the record, waits */
    bool reached;
    double ms;
    struct CUstream_st *stream;
    struct mark *next; /* in the free list */
} mark;

typedef struct op {
    struct op *next;
    op_kind kind;
    uint64_t dst, src; /* device memory */
    int from, to;      /* OP_COPY: devices of src and dst */
    void *host;
    size_t n;      /* bytes; OP_SET: elements */
    uint64_t hash; /* of the host's bytes, when they were given */
    unsigned value, width;
    bool live;
    mark *mark;
    void (*fn)(void *blob);
    void *blob;
    lm_emu_program *program;
    lm_emu_dim3 grid, block;
    void *args; /* room of args_size bytes, kept with the op */
    size_t args_size, shared;
} op;

enum { MAGIC_LIVE = 0x5752, MAGIC_DEAD = 0x6272, DEAD_KEPT = 256 };

struct CUstream_st {
    int magic;
    CUcontext context;
    unsigned flags;
    op *head, *tail;
    int length;
    struct CUstream_st *next; /* of all streams, or of the dead */
};

struct CUevent_st {
    int magic;
    CUcontext context;
    unsigned flags;
    mark *mark; /* of the last record */
    struct CUevent_st *next;
};

/* measured: about so much waits in a stream before a launch blocks */
enum { MOST_WAITING = 1024 };

int lm_emu_active;
static struct CUctx_st contexts[LM_EMU_MAX_DEVICES];
static struct CUstream_st *streams;
static struct CUevent_st *events;
/* Handles that were destroyed stay recognisable for a while before they are used again. */
static struct CUstream_st *dead_streams;
static struct CUevent_st *dead_events;
static int dead_stream_count, dead_event_count;
static op *free_ops;
static mark *free_marks;
static uint64_t randomness;
static int depth; /* of drain: memory closes when the outermost is done */

struct CUctx_st *lm_emu_context(int device) {
    contexts[device].device = device;
    return &contexts[device];
}

void lm_emu_fault(CUresult error) {
    CUcontext c = lm_emu_context(lm_emu_active);
    if (!c->error) c->error = error;
}

/* ---- marks and ops come from free lists ---- */

static mark *new_mark(CUstream stream) {
    mark *m = free_marks;
    if (m)
        free_marks = m->next;
    else
        m = malloc(sizeof *m);
    if (m) *m = (mark){.stream = stream};
    return m;
}

static void drop_mark(mark *m) {
    if (!m || --m->references > 0) return;
    m->next = free_marks;
    free_marks = m;
}

static op *new_op(op_kind kind) {
    op *o = free_ops;
    if (o)
        free_ops = o->next;
    else
        o = calloc(1, sizeof *o);
    if (!o) return NULL;
    void *args = o->args;
    size_t args_size = o->args_size;
    *o = (op){.kind = kind, .args = args, .args_size = args_size};
    return o;
}

static void free_op(op *o) {
    if (o->mark) drop_mark(o->mark);
    o->mark = NULL;
    o->next = free_ops;
    free_ops = o;
}

/* ---- what ops do ---- */

static uint64_t hash_of(const void *p, size_t n) {
    const unsigned char *bytes = p;
    uint64_t h = 0xcbf29ce484222325u, word;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, bytes + i, 8);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    for (; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

/* When the stream comes to it, what was in range at the call may be freed. */
static bool still_in_range(int device, uint64_t p, size_t nbytes, const char *what) {
    if (!lm_emu_range(device, p, nbytes, what)) {
        lm_emu_fault(CUDA_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    return lm_emu_check_usable(p, nbytes, what);
}

/* documented: what the host gave must stay as it is until the stream has come to the copy */
static void run_upload(const op *o) {
    if (lm_emu_cfg.lazy && hash_of(o->host, o->n) != o->hash)
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "upload-source",
                      "%zu bytes of the host at %p were freed or changed before the stream had "
                      "copied them",
                      o->n, o->host);
    if (!still_in_range(lm_emu_active, o->dst, o->n, "upload")) return;
    memcpy(lm_emu_alias(o->dst), o->host, o->n);
    lm_emu_mark_written(o->dst, o->n);
}

static void run_download(const op *o) {
    if (!still_in_range(lm_emu_active, o->src, o->n, "download")) return;
    memcpy(o->host, lm_emu_alias(o->src), o->n);
}

/* documented: ranges that overlap give undefined results */
static void run_copy(const op *o) {
    if (!still_in_range(o->from, o->src, o->n, "copy, source") ||
        !still_in_range(o->to, o->dst, o->n, "copy, destination"))
        return;
    if (o->src < o->dst + o->n && o->dst < o->src + o->n)
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "overlap", "source and destination of a copy");
    memmove(lm_emu_alias(o->dst), lm_emu_alias(o->src), o->n);
    lm_emu_copy_marks(o->dst, o->src, o->n);
}

static void run_set(const op *o) {
    if (!still_in_range(lm_emu_active, o->dst, o->n * o->width, "memset")) return;
    if (o->width == 1) {
        memset(lm_emu_alias(o->dst), (int)o->value, o->n);
    } else {
        uint32_t *p = lm_emu_alias(o->dst);
        for (size_t i = 0; i < o->n; i++)
            p[i] = o->value;
    }
    lm_emu_mark_written(o->dst, o->n * o->width);
}

static void run_launch(const op *o) {
    lm_emu_memory_enter(lm_emu_active);
    lm_emu_run(o->program, o->args, o->grid, o->block, o->shared);
    lm_emu_memory_check(o->program->kernel->name);
}

static void reach(mark *m) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    m->ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    m->reached = true;
}

static void run(const op *o) {
    switch (o->kind) {
    case OP_LAUNCH:
        run_launch(o);
        break;
    case OP_UPLOAD:
        run_upload(o);
        break;
    case OP_DOWNLOAD:
        run_download(o);
        break;
    case OP_COPY:
        run_copy(o);
        break;
    case OP_SET:
        run_set(o);
        break;
    case OP_CALL:
        o->fn(o->blob);
        break;
    case OP_BLOCK:
        lm_emu_memory_block(o->dst, o->n, o->live);
        break;
    case OP_RECORD:
    case OP_WAIT:
        break;
    }
}

/* ---- streams move on ---- */

static bool can_run(const struct CUstream_st *s) {
    return s->head && !(s->head->kind == OP_WAIT && !s->head->mark->reached);
}

/* Takes the first op of a stream that can run. A context that has failed does nothing any more. */
static void step(CUstream s) {
    op *o = s->head;
    s->head = o->next;
    if (!s->head) s->tail = NULL;
    s->length--;
    int before = lm_emu_active;
    lm_emu_active = s->context->device;
    if (!s->context->error) run(o);
    if (o->kind == OP_RECORD) reach(o->mark);
    if (o->kind == OP_CALL) free(o->blob);
    lm_emu_active = before;
    free_op(o);
}

/* One step toward the end of a stream, in another stream if this one waits for it. The record of a
** mark was queued before any wait for it, so that this ends. */
static void advance(CUstream s) {
    while (!can_run(s))
        s = s->head->mark->stream;
    step(s);
}

static void run_ahead(void) {
    int n = 0;
    for (CUstream s = streams; s; s = s->next)
        n += can_run(s);
    if (n == 0) return;
    int k = (int)(lm_emu_random(&randomness) % (uint32_t)n);
    for (CUstream s = streams; s; s = s->next) {
        if (can_run(s) && k-- == 0) {
            step(s);
            return;
        }
    }
}

static void begin_steps(void) {
    if (randomness == 0) randomness = lm_emu_cfg.seed * 0x9E3779B97F4A7C15u | 1;
    depth++;
}

static void end_steps(void) {
    if (--depth == 0) lm_emu_memory_leave();
}

static void maybe_run_ahead(void) {
    while (lm_emu_cfg.order >= LM_EMU_RANDOM && lm_emu_random(&randomness) % 2)
        run_ahead();
}

static void drain(CUstream s, int length) {
    begin_steps();
    while (s->length > length) {
        maybe_run_ahead();
        if (s->length > length) advance(s);
    }
    end_steps();
}

static void drain_mark(mark *m) {
    begin_steps();
    m->references++;
    while (!m->reached) {
        maybe_run_ahead();
        if (!m->reached) advance(m->stream);
    }
    drop_mark(m);
    end_steps();
}

/* For queries: some progress, so that who polls gets there. */
static void poll(CUstream s) {
    begin_steps();
    if (s->head) advance(s);
    end_steps();
}

void lm_emu_drain_device(int device) {
    for (CUstream s = streams; s; s = s->next)
        if (s->context->device == device) drain(s, 0);
}

/* documented: the null stream begins after what was queued before in streams that are not
** NON_BLOCKING, and these continue after it */
static void order_null_stream(CUstream s) {
    CUcontext c = s->context;
    if (s == c->null_stream) {
        for (CUstream other = streams; other; other = other->next)
            if (other->context == c && other != s && !(other->flags & CU_STREAM_NON_BLOCKING))
                drain(other, 0);
    } else if (!(s->flags & CU_STREAM_NON_BLOCKING)) {
        drain(c->null_stream, 0);
    }
}

static CUresult enqueue(CUstream s, op *o) {
    order_null_stream(s);
    o->next = NULL;
    if (s->tail)
        s->tail->next = o;
    else
        s->head = o;
    s->tail = o;
    s->length++;
    if (!lm_emu_cfg.lazy)
        drain(s, 0);
    else if (s->length > MOST_WAITING)
        drain(s, MOST_WAITING / 2);
    return s->context->error;
}

/* ---- streams ---- */

static CUstream make_stream(CUcontext context, unsigned flags) {
    CUstream s;
    if (dead_stream_count > DEAD_KEPT) {
        CUstream *last = &dead_streams;
        while ((*last)->next)
            last = &(*last)->next;
        s = *last;
        *last = NULL;
        dead_stream_count--;
    } else {
        s = malloc(sizeof *s);
    }
    if (!s) return NULL;
    *s = (struct CUstream_st){
        .magic = MAGIC_LIVE, .context = context, .flags = flags, .next = streams};
    streams = s;
    return s;
}

/* documented: NULL is the null stream of the current context */
static CUresult find_stream(CUstream *s) {
    CUcontext c = lm_emu_current();
    if (!*s) {
        if (!c->null_stream) c->null_stream = make_stream(c, 0);
        *s = c->null_stream;
        return *s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if ((*s)->magic == MAGIC_LIVE && (*s)->context == c) {
        if (!c->null_stream) c->null_stream = make_stream(c, 0);
        return c->null_stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    lm_emu_report(0, "stream-handle",
                  (*s)->magic == MAGIC_LIVE ? "a stream of another context"
                                            : "a stream that was destroyed");
    return CUDA_ERROR_INVALID_HANDLE;
}

bool lm_emu_stream_of(CUstream stream, CUcontext context) {
    return !stream || (stream->magic == MAGIC_LIVE && stream->context == context);
}

#define FIND_STREAM(stream)                                                                        \
    do {                                                                                           \
        CUresult missing_ = find_stream(&(stream));                                                \
        if (missing_ != CUDA_SUCCESS) return missing_;                                             \
    } while (0)

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!stream || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    *stream = make_stream(lm_emu_current(), flags);
    if (!*stream) return CUDA_ERROR_OUT_OF_MEMORY;
    lm_emu_count.streams++;
    return CUDA_SUCCESS;
}

static void bury_stream(CUstream s) {
    for (CUstream *p = &streams; *p; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
    s->magic = MAGIC_DEAD;
    s->next = dead_streams;
    dead_streams = s;
    dead_stream_count++;
}

/* documented: returns at once, what is queued still runs. It runs here, which is as good. */
CUresult cuStreamDestroy_v2(CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    FIND_STREAM(stream);
    drain(stream, 0);
    bury_stream(stream);
    lm_emu_count.streams--;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    lm_emu_count.synchronisations++;
    drain(stream, 0);
    return stream->context->error;
}

CUresult cuStreamQuery(CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!stream->head) return stream->context->error;
    poll(stream);
    return stream->context->error ? stream->context->error : CUDA_ERROR_NOT_READY;
}

CUresult cuCtxSynchronize(void) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    lm_emu_count.synchronisations++;
    lm_emu_drain_device(lm_emu_current()->device);
    return lm_emu_current()->error;
}

/* ---- events ---- */

static bool live_event(const struct CUevent_st *e) {
    if (e && e->magic == MAGIC_LIVE) return true;
    if (e) lm_emu_report(0, "event-handle", "an event that was destroyed");
    return false;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!event || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    CUevent e;
    if (dead_event_count > DEAD_KEPT) {
        CUevent *last = &dead_events;
        while ((*last)->next)
            last = &(*last)->next;
        e = *last;
        *last = NULL;
        dead_event_count--;
    } else {
        e = malloc(sizeof *e);
    }
    if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
    *e = (struct CUevent_st){
        .magic = MAGIC_LIVE, .context = lm_emu_current(), .flags = flags, .next = events};
    events = e;
    *event = e;
    lm_emu_count.events++;
    return CUDA_SUCCESS;
}

static void bury_event(CUevent e) {
    for (CUevent *p = &events; *p; p = &(*p)->next) {
        if (*p == e) {
            *p = e->next;
            break;
        }
    }
    drop_mark(e->mark);
    e->mark = NULL;
    e->magic = MAGIC_DEAD;
    e->next = dead_events;
    dead_events = e;
    dead_event_count++;
    lm_emu_count.events--;
}

/* documented: may be destroyed before it is reached */
CUresult cuEventDestroy_v2(CUevent event) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!live_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    bury_event(event);
    return CUDA_SUCCESS;
}

/* documented: event and stream are of one context */
CUresult cuEventRecord(CUevent event, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!live_event(event) || event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    op *o = new_op(OP_RECORD);
    mark *m = o ? new_mark(stream) : NULL;
    if (o && !m) free_op(o);
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    m->references = 2;
    o->mark = m;
    drop_mark(event->mark);
    event->mark = m;
    return enqueue(stream, o);
}

/* documented: of any context; waits for the last record before the call, for nothing if none */
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!live_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (!event->mark) return CUDA_SUCCESS;
    op *o = new_op(OP_WAIT);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    o->mark = event->mark;
    o->mark->references++;
    return enqueue(stream, o);
}

/* documented: an event that was never recorded counts as reached */
CUresult cuEventQuery(CUevent event) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!live_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->mark || event->mark->reached) return event->context->error;
    poll(event->mark->stream);
    return event->context->error ? event->context->error : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!live_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    lm_emu_count.synchronisations++;
    if (event->mark) drain_mark(event->mark);
    return event->context->error;
}

/* documented: INVALID_HANDLE without a record or with CU_EVENT_DISABLE_TIMING */
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    if (!ms) return CUDA_ERROR_INVALID_VALUE;
    if (!live_event(start) || !live_event(end) || !start->mark || !end->mark ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!start->mark->reached || !end->mark->reached) return CUDA_ERROR_NOT_READY;
    *ms = (float)(end->mark->ms - start->mark->ms);
    return CUDA_SUCCESS;
}

void lm_emu_streams_reset(CUcontext context) {
    lm_emu_drain_device(context->device);
    for (CUstream s = streams, next; s; s = next) {
        next = s->next;
        if (s->context != context) continue;
        if (s != context->null_stream) lm_emu_count.streams--;
        bury_stream(s);
    }
    for (CUevent e = events, next; e; e = next) {
        next = e->next;
        if (e->context == context) bury_event(e);
    }
    context->null_stream = NULL;
}

/* ---- copies ---- */

/* ours: real drivers take device addresses for the host's and copy within the device */
static bool host_pointer(const void *p, size_t n) {
    if (n > 0 && !p) return false;
    if (!lm_emu_is_device((uint64_t)(uintptr_t)p)) return true;
    lm_emu_report(0, "host-pointer", "a device address was given for memory of the host");
    return false;
}

/* measured: ranges outside of an allocation give INVALID_VALUE at the call */
static bool device_range(uint64_t p, size_t n, const char *function) {
    return lm_emu_range(lm_emu_current()->device, p, n, function);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t nbytes, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!host_pointer(src, nbytes) || !device_range(dst, nbytes, "cuMemcpyHtoDAsync"))
        return CUDA_ERROR_INVALID_VALUE;
    if (nbytes == 0) return CUDA_SUCCESS;
    op *o = new_op(OP_UPLOAD);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    lm_emu_count.copies++;
    o->dst = dst;
    o->host = (void *)(uintptr_t)src;
    o->n = nbytes;
    if (lm_emu_cfg.lazy) o->hash = hash_of(src, nbytes);
    return enqueue(stream, o);
}

/* documented: what dst holds is undefined until the stream has come to the copy */
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t nbytes, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!host_pointer(dst, nbytes) || !device_range(src, nbytes, "cuMemcpyDtoHAsync"))
        return CUDA_ERROR_INVALID_VALUE;
    if (nbytes == 0) return CUDA_SUCCESS;
    op *o = new_op(OP_DOWNLOAD);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    lm_emu_count.copies++;
    o->host = dst;
    o->src = src;
    o->n = nbytes;
    if (lm_emu_cfg.lazy) memset(dst, 0xa5, nbytes);
    return enqueue(stream, o);
}

static CUresult copy(CUdeviceptr dst, int to, CUdeviceptr src, int from, size_t nbytes,
                     CUstream stream) {
    if (nbytes == 0) return CUDA_SUCCESS;
    op *o = new_op(OP_COPY);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    lm_emu_count.copies++;
    o->dst = dst;
    o->src = src;
    o->from = from;
    o->to = to;
    o->n = nbytes;
    return enqueue(stream, o);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t nbytes, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!device_range(src, nbytes, "cuMemcpyDtoDAsync, source") ||
        !device_range(dst, nbytes, "cuMemcpyDtoDAsync, destination"))
        return CUDA_ERROR_INVALID_VALUE;
    int device = lm_emu_current()->device;
    return copy(dst, device, src, device, nbytes, stream);
}

/* documented: memory of two contexts, whether or not one can reach the other */
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                           size_t nbytes, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (!to || !from || !to->references || !from->references) return CUDA_ERROR_INVALID_CONTEXT;
    if (!lm_emu_range(from->device, src, nbytes, "cuMemcpyPeerAsync, source") ||
        !lm_emu_range(to->device, dst, nbytes, "cuMemcpyPeerAsync, destination"))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(dst, to->device, src, from->device, nbytes, stream);
}

static CUresult set(CUdeviceptr dst, unsigned value, unsigned width, size_t count,
                    CUstream stream) {
    if (count > SIZE_MAX / width || !device_range(dst, count * width, "cuMemsetAsync"))
        return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    op *o = new_op(OP_SET);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    o->dst = dst;
    o->value = value;
    o->width = width;
    o->n = count;
    return enqueue(stream, o);
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    return set(dst, value, 1, count, stream);
}

/* documented: dst is a multiple of 4 */
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
    LM_EMU_ENTER(LM_EMU_IN_CONTEXT);
    FIND_STREAM(stream);
    if (dst % 4) return CUDA_ERROR_INVALID_VALUE;
    return set(dst, value, 4, count, stream);
}

bool lm_emu_pending_copy(const void *p, size_t nbytes) {
    const char *low = p, *high = low + nbytes;
    for (CUstream s = streams; s; s = s->next) {
        for (const op *o = s->head; o; o = o->next) {
            const char *host = o->host;
            if (host && host < high && low < host + o->n) return true;
        }
    }
    return false;
}

/* ---- launches and what libraries queue ---- */

CUresult lm_emu_enqueue_launch(CUstream stream, lm_emu_program *program, const void *args,
                               lm_emu_dim3 grid, lm_emu_dim3 block, size_t shared) {
    FIND_STREAM(stream);
    size_t size = program->kernel->size;
    op *o = new_op(OP_LAUNCH);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    if (o->args_size < size) {
        free(o->args);
        o->args_size = (size + 63) / 64 * 64;
        o->args = aligned_alloc(64, o->args_size);
        if (!o->args) o->args_size = 0;
    }
    if (!o->args) {
        free_op(o);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(o->args, args, size); /* documented: parameters are copied at the call */
    o->program = program;
    o->grid = grid;
    o->block = block;
    o->shared = shared;
    lm_emu_count.launches++;
    return enqueue(stream, o);
}

CUresult lm_emu_enqueue_call(CUstream stream, void (*fn)(void *blob), void *blob) {
    CUresult missing = find_stream(&stream);
    op *o = missing ? NULL : new_op(OP_CALL);
    if (!o) {
        free(blob);
        return missing ? missing : CUDA_ERROR_OUT_OF_MEMORY;
    }
    o->fn = fn;
    o->blob = blob;
    return enqueue(stream, o);
}

void luma_emu_block(unsigned long long p, size_t nbytes, int live, void *stream) {
    if (lm_emu_cfg.stub) return;
    LM_EMU_LOCKED;
    CUstream s = stream;
    if (!lm_emu_current() || find_stream(&s)) return;
    op *o = new_op(OP_BLOCK);
    if (!o) return;
    o->dst = p;
    o->n = nbytes;
    o->live = live != 0;
    enqueue(s, o);
}
