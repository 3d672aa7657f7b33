/* storage.h -- the only owner of bytes. Layer: core. */
#ifndef lm_storage_h
#define lm_storage_h

#include "state.h"

struct lm_storage {
    int refs;         /* atomic (__atomic builtins) */
    uint32_t version; /* every in-place write adds one; gradients will check it */
    size_t nbytes;
    char *data;
    struct lm_device *device;
    bool foreign; /* host memory wrapped by luma_wrap; else data belongs to the device's cache */
    void (*deleter)(void *ctx); /* of foreign memory; may be NULL */
    void *ctx;                  /* of the deleter; of the cache (its block) otherwise */
};

/* nbytes of device memory, 64-byte aligned, contents not set. refs is 1. */
luma_status lm_storage_new(luma_state *S, struct lm_device *device, size_t nbytes,
                           lm_storage **out);
/* Wraps memory that deleter(ctx) frees; the deleter is not called on failure. */
luma_status lm_storage_wrap(luma_state *S, struct lm_device *device, void *data, size_t nbytes,
                            void (*deleter)(void *), void *ctx, lm_storage **out);
lm_storage *lm_storage_retain(lm_storage *st);
void lm_storage_release(lm_storage *st);

#endif
