/* device.c -- the devices of a state, found by name. Layer: core. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"

luma_status lm_device_register(luma_state *S, const lm_device_ops *ops, const char *name, int index,
                               void *ctx) {
    if (S->ndevices == LM_MAX_DEVICES)
        return lm_fail(S, LUMA_ERR_DEVICE, 0, "too many devices: at most %d", LM_MAX_DEVICES);
    lm_device *d = calloc(1, sizeof *d);
    if (d) {
        d->ops = ops;
        d->index = index;
        d->ctx = ctx;
        d->soft_limit = S->ndevices ? S->devices[0]->soft_limit : INT64_MAX;
        strncpy(d->name, name, sizeof d->name - 1);
        d->cache = lm_cache_open(d);
        lm_rng_open(S, d);
    }
    if (!d || !d->cache) {
        free(d);
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    }
    lm_cache_set_notify(d->cache, S->notify, S->notify_ctx);
    lm_cache_set_budget(d->cache, S->budget);
    S->devices[S->ndevices++] = d;
    return LUMA_OK;
}

void lm_device_close(luma_state *S, lm_device *d) {
    (void)S;
    if (d->ops->settle) d->ops->settle(d);
    lm_cache_close(d->cache);
    if (d->ops->close) d->ops->close(d);
    free(d);
}

luma_status lm_unsupported(luma_state *S, const lm_device *d, const char *what, luma_dtype dtype) {
    return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s of %s is not supported on %s", what,
                   lm_dtypes[dtype].name, d->name);
}

luma_status luma_set_default_device(luma_state *S, const char *device) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device ? device : "cpu", &d));
    S->default_device = d;
    return LUMA_OK;
}

luma_status luma_synchronize(luma_state *S, const char *device) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    return d->ops->synchronize(S, d);
}

const char *luma_default_device(const luma_state *S) {
    return S->default_device ? S->default_device->name : "cpu";
}

luma_status luma_set_current_device(luma_state *S, const char *device) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    S->current_device = d;
    return LUMA_OK;
}

static lm_device *find(luma_state *S, const char *name) {
    for (int i = 0; i < S->ndevices; i++) {
        lm_device *d = S->devices[i];
        /* "cuda" alone is the first of its kind until another one is made current */
        if (strcmp(d->name, name) == 0 || strcmp(d->ops->kind, name) == 0) return d;
    }
    return NULL;
}

luma_status lm_device_find(luma_state *S, const char *name, lm_device **out) {
    const lm_device *current = S->current_device;
    if (!name) name = luma_default_device(S);
    if (current && strcmp(current->ops->kind, name) == 0) name = current->name;
    lm_device *d = find(S, name);
    bool lazy = strncmp(name, "cuda", 4) == 0 && (name[4] == '\0' || name[4] == ':');
    if (!d && lazy && S->more_devices) {
        LM_TRY(S->more_devices(S));
        d = find(S, name);
    }
    if (!d) {
        char text[LM_MAX_DEVICES * 16] = "";
        for (int i = 0; i < S->ndevices; i++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s'%s'", i ? ", " : "", S->devices[i]->name);
        }
        return lm_fail(S, LUMA_ERR_DEVICE, 0, "no device '%.40s': there is %s", name, text);
    }
    if (d->ops->open) LM_TRY(d->ops->open(S, d));
    *out = d;
    return LUMA_OK;
}
