/* cuda.h -- the CUDA backend inside: what a device of a state is, how kernels are launched, which
** slots there are. Layer: kernels/cuda. */
#ifndef lm_cuda_h
#define lm_cuda_h

#include "args.h"
#include "device.h"
#include "info.h"
#include "library.h"
#include "tensor.h"

/* Kernels by number: LM_K_add_f32. */
typedef enum {
#define KERNEL(module, name, args) LM_K_##name,
#include "cuda/kernels.def"
#undef KERNEL
    LM_NKERNELS
} lm_kernel;
/* The parameter's type by kernel. */
#define KERNEL(module, name, args) typedef args lm_args_of_##name;
#include "cuda/kernels.def"
#undef KERNEL

typedef struct lm_staging lm_staging;             /* transfer.c */
typedef struct lm_modules lm_modules;             /* module.c: of one device, the process's */
typedef struct lm_blas lm_blas;                   /* blas.c */
typedef struct lm_fused_kernels lm_fused_kernels; /* fused.c */

/* Launches whose faults are told apart: two halves of so many, of which one is in use while those of
** the other are on the way to the host. What a slot call may need is left in a half that is full. */
#define LM_WATCHES 256
#define LM_WATCHES_SPARE 16
#define LM_FAULTS (2 * LM_WATCHES + 1) /* the last: of launches that find no room */
typedef struct {
    lm_op op;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
} lm_fault_origin;

/* Products by cuBLAS, by luma's own kernel, and operands or results that were copied for them. */
typedef enum { LM_PRODUCT_BLAS, LM_PRODUCT_OWN, LM_PRODUCT_COPY, LM_PRODUCTS } lm_product_way;

/* What lm_device.ctx points at: one device of one state. What needs a context is made when the device
** is first asked for. */
#define LM_SPARE_EVENTS 64
typedef struct lm_cuda {
    const lm_driver *driver;
    lm_device *device;
    char name[20]; /* "cuda:0" */
    int ordinal;
    CUdevice handle;
    CUcontext context; /* the primary one, retained */
    CUstream stream;   /* non-blocking; all work of this state on this device */
    CUevent event;     /* by which streams of other devices wait for this one */
    int capability;    /* 75, 90, ... */
    int multiprocessors, threads_per_multiprocessor;
    int shared_per_block; /* bytes that a kernel may ask for by opting in */
    int64_t l2_bytes;
    bool ready; /* what follows, and context and stream, is made */
    lm_modules *modules;
    CUdeviceptr faults; /* LM_FAULTS of lm_fault */
    lm_fault_origin watch[2 * LM_WATCHES];
    int half, watches; /* in use, and how many of it */
    bool other;        /* the other half is still to be looked at */
    bool crowded;      /* the last fault is in use */
    bool has_fault;    /* the first one that was found when a half was full: */
    lm_fault fault;
    lm_fault_origin fault_watch;
    uint32_t senders; /* bit i: bytes of device i came since this one was last waited for */
    lm_staging *staging;
    CUevent events[LM_SPARE_EVENTS]; /* made and not in use (memory.c) */
    int nevents;
    lm_blas *blas;           /* NULL until the first product */
    lm_fused_kernels *fused; /* NULL until the first one is wanted */
    const lm_curand *curand; /* random.c; NULL until it is first used */
    curandGenerator_t generator;
    int entered;      /* depth of lm_cuda_enter */
    bool sync_always; /* LUMA_SYNC=1 */
    int64_t narrow;   /* rows and writers up to which 32 bits count; the C tests lower it */
    bool has_problem; /* raw_alloc failed, and not for lack of memory */
    char problem[600];
    char lost[512]; /* the error that made the context unusable; "" while it is usable */
    int64_t launches, synchronisations, copies; /* for specs */
    int64_t products[LM_PRODUCTS];              /* likewise */
} lm_cuda;

static inline lm_cuda *lm_cuda_of(const lm_device *d) {
    return d->ctx;
}

/* Every slot stands between the two. enter fails after a fork, and where the context is gone. */
luma_status lm_cuda_enter(luma_state *S, lm_cuda *c);
void lm_cuda_leave(lm_cuda *c);
/* Whether calls in its context can work: not after a fork, an error that spoiled it, or before it was
** made. For releasing, where there is nobody to tell. */
bool lm_cuda_usable(const lm_cuda *c);
/* Makes the context current, whichever is now, for releasing and for the cache of a device; pop it
** afterwards. A failure is met by another try, as it may be that of work before. False when the
** device is not usable. */
bool lm_cuda_push(lm_cuda *c);
/* LUMA_OK for 0; else the message "cuda:0: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
** An error that spoils the context is kept: lm_cuda_enter gives it from then on. */
luma_status lm_cuda_check(luma_state *S, lm_cuda *c, CUresult result, const char *what);

/* Whether the device can run luma's kernels now, or why not. (device.c) */
bool lm_cuda_suits(const lm_cuda *c, char *why, size_t size);

/* Loads PTX, whose line .version is lowered in place where the driver is older; the driver's log is
** in the message, which calls it `name`. Between enter and leave. (module.c) */
luma_status lm_cuda_load(luma_state *S, lm_cuda *c, char *text, const char *name, CUmodule *out);

/* ---- launch (module.c) ---- */

typedef struct {
    unsigned x, y, z;
} lm_grid;
typedef struct {
    lm_grid grid;
    unsigned block;  /* threads, along x */
    unsigned shared; /* bytes of dynamic shared memory */
} lm_shape;
/* Queues a kernel on the device's stream; args is copied at the call. A grid with 0 blocks is
** nothing to do. Between enter and leave. */
luma_status lm_cuda_launch(luma_state *S, lm_cuda *c, lm_kernel kernel, lm_shape shape,
                           const void *args);
/* A wrong struct does not compile: args has type lm_args_of_<name> const *. */
#define LM_LAUNCH(S, c, name, shape, args)                                                         \
    lm_cuda_launch((S), (c), LM_K_##name, (shape), (const lm_args_of_##name *){(args)})
/* Blocks of `block` threads for n elements, `each` per thread, no more than fill the device some
** times over: kernels go on in grid strides. */
lm_shape lm_cuda_shape(const lm_cuda *c, int64_t n, int each, unsigned block);

/* Where the kernels of the next launch note faults (the argument of lm_note_fault), in device
** memory; positions count in row-major order of the shape. One watch for each shape that a launch
** counts in. op: LM_NOPS where it is not known. The synchronisation that finds a fault raises the error
** of the CPU, for the launch that was queued first. Between enter and leave. (transfer.c) */
lm_fault *lm_cuda_watch(lm_cuda *c, lm_op op, int ndim, const int64_t *shape);
/* Sends the faults of a half that is full to the host, and goes on with the other; the device may be
** that far behind, no more. Where a call fails, another time does. At the end of slots. */
void lm_cuda_turn_watches(lm_cuda *c);

/* multiplier and shift for a divisor of 1 .. 2^31-1 (walk.c) */
lm_divisor lm_divisor_of(int64_t divisor);
/* The walk over a shape whose dims are already merged; strides[k] (bytes) of nstrides operands
** decide whether 32 bits are enough. (walk.c) */
void lm_walk_set(lm_walk *w, int ndim, const int64_t *shape, int nstrides,
                 const int64_t *const *strides);

/* ---- memory and transfers (transfer.c; the cache's slots: memory.c) ---- */

/* After the stream was made, and before it goes. Between enter and leave. */
void lm_cuda_memory_open(lm_cuda *c);
void lm_cuda_memory_close(lm_cuda *c);
bool lm_cuda_memory_info(lm_device *d, size_t *unused, size_t *total);
void *lm_cuda_event_record(lm_device *d, void *stream);
bool lm_cuda_event_done(lm_device *d, void *event);
void lm_cuda_event_wait(lm_device *d, void *event);
void lm_cuda_event_free(lm_device *d, void *event);

/* Scratch memory of the device for one slot call: stream-ordered, release at once after the launch
** that uses it. */
static inline luma_status lm_cuda_scratch(luma_state *S, lm_cuda *c, size_t nbytes,
                                          lm_storage **out) {
    return lm_storage_new(S, c->device, nbytes, out);
}
luma_status lm_cuda_upload(luma_state *S, lm_device *d, void *dst, const void *src, size_t nbytes);
luma_status lm_cuda_download(luma_state *S, lm_device *d, void *dst, const void *src,
                             size_t nbytes);
/* Between two devices of one state: each stream waits for the other as far as the bytes want it. */
luma_status lm_cuda_send(luma_state *S, lm_device *d, const void *src, lm_device *to, void *dst,
                         size_t nbytes);
/* Waits for the stream, then raises the first fault that kernels have noted. */
luma_status lm_cuda_synchronize(luma_state *S, lm_device *d);

/* ---- slots, each in the file of its family ---- */

luma_status lm_cuda_map(luma_state *S, lm_device *d, lm_map *m);
/* Is there a kernel for an elementwise row in this dtype? */
bool lm_cuda_has_row(lm_op op, luma_dtype dtype);
luma_status lm_cuda_fused(luma_state *S, lm_device *d, struct lm_fused *f, bool *done);
void lm_cuda_fused_close(lm_cuda *c, bool usable);
luma_status lm_cuda_copy(luma_state *S, lm_device *d, const luma_tensor *dst,
                         const luma_tensor *src);
luma_status lm_cuda_fill(luma_state *S, lm_device *d, const luma_tensor *dst, const void *element);
luma_status lm_cuda_reduce(luma_state *S, lm_device *d, const lm_reduce *r);
luma_status lm_cuda_scan(luma_state *S, lm_device *d, const lm_scan *s);
luma_status lm_cuda_attention(luma_state *S, lm_device *d, const lm_attention *a);
luma_status lm_cuda_rope(luma_state *S, lm_device *d, const lm_rope *r);
luma_status lm_cuda_normalize(luma_state *S, lm_device *d, const lm_normalize *n);
luma_status lm_cuda_search(luma_state *S, lm_device *d, const lm_search *s);
luma_status lm_cuda_sort(luma_state *S, lm_device *d, const lm_sort *s);
luma_status lm_cuda_index(luma_state *S, lm_device *d, const lm_index *i);
luma_status lm_cuda_pooling(luma_state *S, lm_device *d, const lm_pooling *p);
luma_status lm_cuda_count_nonzero(luma_state *S, lm_device *d, const luma_tensor *x,
                                  int64_t *count);
luma_status lm_cuda_nonzero(luma_state *S, lm_device *d, luma_tensor *positions,
                            const luma_tensor *x, int index_base);
luma_status lm_cuda_matmul(luma_state *S, lm_device *d, const luma_tensor *out,
                           const luma_tensor *a, const luma_tensor *b);
luma_status lm_cuda_conv(luma_state *S, lm_device *d, const lm_conv *v);
luma_status lm_cuda_quant(luma_state *S, lm_device *d, const lm_quant *q);
luma_status lm_cuda_random(luma_state *S, lm_device *d, const lm_random *r);
void lm_cuda_random_close(lm_cuda *c, bool usable); /* likewise lm_blas_close */

extern const lm_device_ops lm_cuda_ops; /* device.c */
/* The modules of a device, made at the first call; its context is retained until the process ends.
** Without a context yet *context is set. (module.c) */
luma_status lm_modules_open(luma_state *S, lm_cuda *c, lm_modules **out);
/* Makes and frees what transfers need. (transfer.c) */
luma_status lm_staging_open(luma_state *S, lm_cuda *c);
void lm_staging_close(lm_cuda *c);

#endif
