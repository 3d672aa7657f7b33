/* dlpack.h -- the structs of DLPack (https://dmlc.github.io/dlpack), and the tensors of a state that
** others hold. Layer: core. */
#ifndef lm_dlpack_h
#define lm_dlpack_h

#include "state.h"

typedef struct {
    int32_t type; /* LM_DL_ */
    int32_t id;
} lm_dl_device;
enum { LM_DL_CPU = 1, LM_DL_CUDA = 2, LM_DL_CUDA_HOST = 3, LM_DL_CUDA_MANAGED = 13 };

typedef struct {
    uint8_t code; /* the last column of dtype.h */
    uint8_t bits;
    uint16_t lanes;
} lm_dl_dtype;

typedef struct {
    void *data;
    lm_dl_device device;
    int32_t ndim;
    lm_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} lm_dl_tensor;

/* Whoever takes one calls its deleter once. */
struct DLManagedTensor {
    lm_dl_tensor tensor;
    void *ctx;
    void (*deleter)(struct DLManagedTensor *self);
};
struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    lm_dl_tensor tensor;
};
enum { LM_DL_READ_ONLY = 1 };

/* What a state has given out: others may give it back in any thread, even when the state was closed.
** NULL until the first one. */
typedef struct lm_exports lm_exports;
/* Releases what was given back; by the thread of the state. */
void lm_exports_settle(lm_exports *x);
bool lm_exports_pending(const lm_exports *x);
/* What a pointer is to S, without looking at what it points to. */
typedef enum {
    LM_HANDLE_FOREIGN,
    LM_HANDLE_OLD,       /* S has given it out, and nobody of this library has taken it */
    LM_HANDLE_VERSIONED, /* likewise */
    LM_HANDLE_SPENT      /* taken or returned */
} lm_handle;
lm_handle lm_exports_find(luma_state *S, const void *handle);
/* For luma_close: whether others still hold tensors. The last of them to give one back frees the
** state then (lm_state_free). */
bool lm_exports_close(lm_exports *x);
void lm_exports_free(lm_exports *x);

#endif
