/* info.c -- what can be asked of the driver and of a device without work for it. Layer:
** kernels/cuda. */
#include "info.h"

#include "cuda.h"
#include "cuda/ptx.h"
#include "emulator/emulator.h"

static luma_status look_for_devices(luma_state *S) {
    if (S->more_devices) return S->more_devices(S);
    return lm_fail(S, LUMA_ERR_DEVICE, 0, "no CUDA device (the program that runs Lua has none)");
}

int lm_cuda_count(luma_state *S) {
    int n = 0;
    if (look_for_devices(S) != LUMA_OK) return 0;
    for (int i = 0; i < S->ndevices; i++)
        n += S->devices[i]->ops == &lm_cuda_ops;
    return n;
}

bool lm_cuda_driver_there(const char **why) {
    return lm_driver_there(why);
}

void lm_cuda_libraries(lm_cuda_library_fn *f, void *ctx) {
    lm_library_facts list[LM_NLIBRARIES];
    lm_library_list(list);
    for (int i = 0; i < LM_NLIBRARIES; i++)
        f(ctx, list[i].title, list[i].emulated ? NULL : list[i].file, list[i].why, list[i].version);
}

bool lm_cuda_has_ptx(void) {
    return lm_ptx_embedded();
}

luma_status lm_cuda_available(luma_state *S) {
    char why[600];
    LM_TRY(look_for_devices(S));
    const lm_device *d = S->current_device; /* of any kind */
    for (int i = 0; i < S->ndevices && !(d && d->ops == &lm_cuda_ops); i++)
        d = S->devices[i];
    if (lm_cuda_suits(lm_cuda_of(d), why, sizeof why)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_DEVICE, 0, "no CUDA device (%s)", why);
}

luma_status lm_cuda_find_curand(luma_state *S) {
    const char *why;
    if (lm_curand_open(&why)) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s", why);
}

luma_status lm_cuda_describe(luma_state *S, lm_device *d, lm_cuda_facts *out) {
    lm_cuda *c = lm_cuda_of(d);
    const lm_driver *driver = c->driver;
    LM_TRY(lm_cuda_check(S, c, driver->cuDeviceGetName(out->name, sizeof out->name, c->handle),
                         "cuDeviceGetName"));
    struct {
        CUdevice_attribute attribute;
        int *value;
    } asked[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &out->major},
                 {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &out->minor},
                 {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &out->multiprocessors}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        LM_TRY(lm_cuda_check(
            S, c, driver->cuDeviceGetAttribute(asked[i].value, asked[i].attribute, c->handle),
            "cuDeviceGetAttribute"));
    out->emulated = driver->emulated;
    return LUMA_OK;
}

luma_status lm_cuda_memory(luma_state *S, lm_device *d, int64_t *free, int64_t *total) {
    lm_cuda *c = lm_cuda_of(d);
    size_t have = 0, all = 0;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status =
        lm_cuda_check(S, c, c->driver->cuMemGetInfo_v2(&have, &all), "cuMemGetInfo");
    lm_cuda_leave(c);
    *free = (int64_t)have;
    *total = (int64_t)all;
    return status;
}

void lm_cuda_count_calls(const lm_device *d, lm_cuda_counts *out) {
    const lm_cuda *c = lm_cuda_of(d);
    *out = (lm_cuda_counts){.launches = c->launches,
                            .synchronisations = c->synchronisations,
                            .copies = c->copies,
                            .products_blas = c->products[LM_PRODUCT_BLAS],
                            .products_own = c->products[LM_PRODUCT_OWN],
                            .products_copied = c->products[LM_PRODUCT_COPY]};
    if (!c->driver->emulated) return;
    lm_emu_figures figures;
    lm_emu_counts_fn *counts = (lm_emu_counts_fn *)(uintptr_t)c->driver->emu_counts;
    counts(&figures);
    out->reports = figures.reports;
}
