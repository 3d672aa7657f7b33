/* dlpack.c -- tensors to and from other libraries in one memory. Layer: core. */
#include "dlpack.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "tensor.h"

/* ---- what was given out ---- */

typedef struct lm_export {
    union {
        struct DLManagedTensor old;
        struct DLManagedTensorVersioned versioned;
    } m;            /* first: its address is the handle */
    lm_exports *of; /* blocks are used again, and freed with the state alone: a handle that nobody
                    ** should have any more is never a stray pointer while the state lives */
    luma_tensor x;  /* one reference */
    int64_t shape[LUMA_MAX_DIMS], stride[LUMA_MAX_DIMS];
    bool versioned;
    enum { SPARE, OUT, TAKEN, RETURNED } phase;
    struct lm_export *next, *older; /* of its queue; of all */
} lm_export;

struct lm_exports {
    pthread_mutex_t lock;
    luma_state *S;
    int out;      /* neither spare nor being released */
    bool pending; /* atomic: some were returned */
    bool closed, busy;
    lm_export *returned;
    lm_export *spare, *last_spare; /* the one that was longest out of use first */
    lm_export *newest;
};

/* Releases what was returned, outside the lock, since memory of others may be behind it, whose
** deleters do the same. Another call of drain goes on with what comes meanwhile. */
static void drain(lm_exports *x) {
    if (x->busy) return;
    x->busy = true;
    while (x->returned) {
        lm_export *e = x->returned;
        x->returned = e->next;
        pthread_mutex_unlock(&x->lock);
        luma_release(x->S, &e->x);
        pthread_mutex_lock(&x->lock);
        e->phase = SPARE;
        e->next = NULL;
        *(x->spare ? &x->last_spare->next : &x->spare) = e;
        x->last_spare = e;
        x->out--;
    }
    __atomic_store_n(&x->pending, false, __ATOMIC_RELEASE);
    x->busy = false;
}

/* With the lock; gives it up. */
static void leave(lm_exports *x) {
    bool last = x->closed && x->out == 0 && !x->busy;
    pthread_mutex_unlock(&x->lock);
    if (last) lm_state_free(x->S);
}

/* From any thread. A second return is nothing. */
static void give_back(lm_export *e) {
    lm_exports *x = e->of;
    pthread_mutex_lock(&x->lock);
    if (e->phase == OUT || e->phase == TAKEN) {
        e->phase = RETURNED;
        e->next = x->returned;
        x->returned = e;
        __atomic_store_n(&x->pending, true, __ATOMIC_RELEASE);
        if (x->closed) drain(x);
    }
    leave(x);
}

static void delete_old(struct DLManagedTensor *m) {
    if (m) give_back((lm_export *)(void *)m);
}

static void delete_versioned(struct DLManagedTensorVersioned *m) {
    if (m) give_back((lm_export *)(void *)m);
}

bool lm_exports_pending(const lm_exports *x) {
    return __atomic_load_n(&x->pending, __ATOMIC_ACQUIRE);
}

void lm_exports_settle(lm_exports *x) {
    pthread_mutex_lock(&x->lock);
    drain(x);
    pthread_mutex_unlock(&x->lock);
}

bool lm_exports_close(lm_exports *x) {
    pthread_mutex_lock(&x->lock);
    drain(x);
    bool held = x->out > 0;
    x->closed = held;
    pthread_mutex_unlock(&x->lock);
    return held;
}

void lm_exports_free(lm_exports *x) {
    if (!x) return;
    for (lm_export *e = x->newest; e;) {
        lm_export *older = e->older;
        free(e);
        e = older;
    }
    pthread_mutex_destroy(&x->lock);
    free(x);
}

lm_handle lm_exports_find(luma_state *S, const void *handle) {
    lm_handle kind = LM_HANDLE_FOREIGN;
    if (!S->exports) return kind;
    pthread_mutex_lock(&S->exports->lock);
    for (const lm_export *e = S->exports->newest; e && kind == LM_HANDLE_FOREIGN; e = e->older) {
        if (e == handle)
            kind = e->phase != OUT ? LM_HANDLE_SPENT
                   : e->versioned  ? LM_HANDLE_VERSIONED
                                   : LM_HANDLE_OLD;
    }
    pthread_mutex_unlock(&S->exports->lock);
    return kind;
}

/* A block that is not in use: the lock is held. NULL: no memory. */
static lm_export *block_of(lm_exports *x) {
    lm_export *e = x->spare;
    if (e) {
        x->spare = e->next;
    } else {
        e = calloc(1, sizeof *e);
        if (!e) return NULL;
        e->of = x;
        e->older = x->newest;
        x->newest = e;
    }
    return e;
}

static luma_status export_tensor(luma_state *S, const luma_tensor *x, lm_export **out) {
    if (!x->storage) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a live tensor expected");
    LM_TRY(lm_tensor_check(S, 1, x, false));
    lm_device *d = lm_device_of(x);
    if (d != lm_cpu(S)) LM_TRY(d->ops->synchronize(S, d));
    if (!S->exports && (S->exports = calloc(1, sizeof *S->exports))) {
        pthread_mutex_init(&S->exports->lock, NULL);
        S->exports->S = S;
    }
    if (!S->exports) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    pthread_mutex_lock(&S->exports->lock);
    drain(S->exports);
    lm_export *e = block_of(S->exports);
    if (e) {
        S->exports->out++;
        e->phase = OUT;
    }
    pthread_mutex_unlock(&S->exports->lock);
    if (!e) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    luma_share(&e->x, x);
    *out = e;
    return LUMA_OK;
}

static void describe(lm_export *e, lm_dl_tensor *t) {
    const luma_tensor *x = &e->x;
    const lm_device *d = lm_device_of(x);
    const lm_dtype_info *info = &lm_dtypes[x->dtype];
    for (int i = 0; i < x->layout.ndim; i++) {
        e->shape[i] = x->layout.shape[i];
        e->stride[i] = x->layout.stride[i];
    }
    *t = (lm_dl_tensor){.data = luma_numel(x) > 0 ? lm_data(x) : NULL,
                        .device = {.type = LM_DL_CPU},
                        .ndim = x->layout.ndim,
                        .dtype = {info->dlpack, (uint8_t)(8 * info->size), 1},
                        .shape = e->shape,
                        .strides = e->stride};
    if (strcmp(d->ops->kind, "cuda") == 0) t->device = (lm_dl_device){LM_DL_CUDA, d->index};
}

luma_status luma_to_dlpack(luma_state *S, struct DLManagedTensor **out, const luma_tensor *x) {
    lm_export *e;
    LM_TRY(export_tensor(S, x, &e));
    e->versioned = false;
    e->m.old = (struct DLManagedTensor){.ctx = e, .deleter = delete_old};
    describe(e, &e->m.old.tensor);
    *out = &e->m.old;
    return LUMA_OK;
}

luma_status luma_to_dlpack_versioned(luma_state *S, struct DLManagedTensorVersioned **out,
                                     const luma_tensor *x) {
    lm_export *e;
    LM_TRY(export_tensor(S, x, &e));
    e->versioned = true;
    e->m.versioned =
        (struct DLManagedTensorVersioned){.version = {1, 0}, .ctx = e, .deleter = delete_versioned};
    describe(e, &e->m.versioned.tensor);
    *out = &e->m.versioned;
    return LUMA_OK;
}

/* ---- what others have ---- */

/* A managed tensor of either kind. */
typedef struct {
    struct DLManagedTensor *old;
    struct DLManagedTensorVersioned *versioned;
    lm_device *device;
} foreign;

static void give_up(const foreign *f) {
    if (f->old && f->old->deleter) f->old->deleter(f->old);
    if (f->versioned && f->versioned->deleter) f->versioned->deleter(f->versioned);
}

/* Work that reads the memory may still be queued. */
static void wait_for(lm_device *d) {
    if (!d->ops->event_record) return;
    void *event = d->ops->event_record(d, d->stream);
    if (!event) return;
    d->ops->event_wait(d, event);
    d->ops->event_free(d, event);
}

static void delete_foreign(void *ctx) {
    foreign *f = ctx;
    wait_for(f->device);
    give_up(f);
    free(f);
}

static luma_status find_dtype(luma_state *S, lm_dl_dtype t, luma_dtype *out) {
    static const char *const kinds[] = {"int",    "uint",    "float", "opaque",
                                        "bfloat", "complex", "bool"};
    for (int i = 0; i < LUMA_NDTYPES; i++) {
        if (lm_dtypes[i].dlpack != t.code || 8 * lm_dtypes[i].size != t.bits || t.lanes != 1)
            continue;
        *out = (luma_dtype)i;
        return LUMA_OK;
    }
    char code[16], lanes[16] = "";
    snprintf(code, sizeof code, "code%d:", t.code);
    if (t.lanes != 1) snprintf(lanes, sizeof lanes, "x%d", t.lanes);
    return lm_fail(S, LUMA_ERR_DTYPE, 1, "no dtype is DLPack's %s%d%s",
                   t.code < sizeof kinds / sizeof *kinds ? kinds[t.code] : code, t.bits, lanes);
}

static luma_status find_device(luma_state *S, lm_dl_device at, lm_device **out) {
    char name[24] = "cpu";
    if (at.type == LM_DL_CUDA || at.type == LM_DL_CUDA_MANAGED)
        snprintf(name, sizeof name, "cuda:%d", (int)at.id);
    else if (at.type != LM_DL_CPU && at.type != LM_DL_CUDA_HOST)
        return lm_fail(S, LUMA_ERR_DEVICE, 1, "luma has no device for DLPack's type %d",
                       (int)at.type);
    return lm_device_find(S, name, out);
}

/* The places of the first and the last element in memory, relative to position 0; false when they do
** not fit into 64 bits. */
static bool extent(const luma_layout *l, int64_t *first, int64_t *last) {
    *first = *last = 0;
    for (int d = 0; d < l->ndim; d++) {
        int64_t span;
        if (l->shape[d] < 2) continue;
        if (!lm_mul_fits(l->shape[d] - 1, l->stride[d], &span)) return false;
        int64_t *end = span < 0 ? first : last;
        if (!lm_add_fits(*end, span, end)) return false;
    }
    return *first > -(INT64_C(1) << 56) && *last < INT64_C(1) << 56;
}

static luma_status read_layout(luma_state *S, const lm_dl_tensor *t, luma_dtype dtype,
                               luma_layout *l, int64_t *numel) {
    lm_text text;
    if (t->ndim < 0 || t->ndim > LUMA_MAX_DIMS)
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "%d dims: at most %d", (int)t->ndim, LUMA_MAX_DIMS);
    if (t->ndim > 0 && !t->shape) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor without shape");
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] < 0)
            return lm_fail(S, LUMA_ERR_SHAPE, 1, "negative size in shape %s",
                           lm_shape_text(&text, t->ndim, t->shape));
    }
    if (!lm_numel_fits(t->ndim, t->shape, dtype, numel))
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "shape %s of %s is too large",
                       lm_shape_text(&text, t->ndim, t->shape), lm_dtypes[dtype].name);
    *l = lm_layout_contiguous(t->ndim, t->shape);
    for (int d = 0; d < t->ndim && t->strides && *numel > 0; d++) {
        if (t->shape[d] > 1) l->stride[d] = t->strides[d];
    }
    return LUMA_OK;
}

/* The tensor over foreign memory; on success f's owner is the storage. */
static luma_status wrap(luma_state *S, luma_tensor *out, const lm_dl_tensor *t, foreign *f) {
    luma_tensor x = LUMA_NEW;
    int64_t numel, first = 0, last = -1;
    LM_TRY(find_dtype(S, t->dtype, &x.dtype));
    LM_TRY(read_layout(S, t, x.dtype, &x.layout, &numel));
    LM_TRY(find_device(S, t->device, &f->device));
    if (numel > 0 && !extent(&x.layout, &first, &last))
        return lm_fail(S, LUMA_ERR_SHAPE, 1, "strides that no memory has room for");
    int64_t size = (int64_t)lm_dtype_size(x.dtype);
    char *data = numel > 0 ? t->data : NULL;
    if (numel > 0 && !data) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a tensor without memory");
    if (numel > 0) data += t->byte_offset + (uint64_t)(first * size);
    if ((uintptr_t)data % (uintptr_t)size != 0)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "the memory is not aligned for %s",
                       lm_dtypes[x.dtype].name);
    foreign *owner = lm_memory_resize(S, NULL, sizeof *owner);
    if (!owner) return LUMA_ERR_MEMORY;
    *owner = *f;
    luma_status status = lm_storage_wrap(S, f->device, data, (size_t)((last - first + 1) * size),
                                         delete_foreign, owner, &x.storage);
    if (status != LUMA_OK) {
        free(owner);
        return status;
    }
    x.layout.offset = -first;
    *out = x;
    return LUMA_OK;
}

/* A handle of this library: *out is the tensor itself where the state is the same. *done says so. */
static luma_status take_own(luma_state *S, luma_tensor *out, lm_export *e, bool *done) {
    lm_exports *x = e->of;
    luma_status status = LUMA_OK;
    pthread_mutex_lock(&x->lock);
    if (e->phase != OUT) {
        status = lm_fail(S, LUMA_ERR_ARGUMENT, 1, "the handle was taken already");
    } else if (x == S->exports) {
        luma_share(out, &e->x);
        *done = true;
    } else {
        e->phase = TAKEN;
    }
    pthread_mutex_unlock(&x->lock);
    if (*done) give_back(e);
    return status;
}

static void untake(lm_export *e) {
    pthread_mutex_lock(&e->of->lock);
    e->phase = OUT;
    pthread_mutex_unlock(&e->of->lock);
}

static luma_status import_tensor(luma_state *S, luma_tensor *out, const lm_dl_tensor *t, foreign *f,
                                 lm_export *own, bool read_only) {
    bool done = false;
    luma_tensor x = LUMA_NEW;
    if (own) LM_TRY(take_own(S, out, own, &done));
    if (done) return LUMA_OK;
    luma_status status = wrap(S, &x, t, f);
    if (status == LUMA_OK && read_only) {
        luma_tensor copy = LUMA_NEW;
        status = luma_clone(S, &copy, &x);
        if (status != LUMA_OK) { /* the handle stays the caller's */
            foreign *owner = x.storage->ctx;
            *owner = (foreign){.device = f->device};
        }
        luma_release(S, &x);
        x = copy;
    }
    if (status == LUMA_OK)
        *out = x;
    else if (own)
        untake(own);
    return status;
}

luma_status luma_from_dlpack(luma_state *S, luma_tensor *out, struct DLManagedTensor *m) {
    if (!m) return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a DLManagedTensor expected, got NULL");
    foreign f = {.old = m};
    lm_export *own = m->deleter == delete_old ? (lm_export *)(void *)m : NULL;
    return import_tensor(S, out, &m->tensor, &f, own, false);
}

luma_status luma_from_dlpack_versioned(luma_state *S, luma_tensor *out,
                                       struct DLManagedTensorVersioned *m) {
    if (!m)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 1, "a DLManagedTensorVersioned expected, got NULL");
    if (m->version.major != 1)
        return lm_fail(S, LUMA_ERR_UNSUPPORTED, 1, "DLPack %u.%u: only 1.x is known",
                       (unsigned)m->version.major, (unsigned)m->version.minor);
    foreign f = {.versioned = m};
    lm_export *own = m->deleter == delete_versioned ? (lm_export *)(void *)m : NULL;
    return import_tensor(S, out, &m->tensor, &f, own, (m->flags & LM_DL_READ_ONLY) != 0);
}
