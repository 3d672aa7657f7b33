/* rng.c -- the random generator of each device: a seed and a position in its words. How words become
** numbers: kernels/random.h. Layer: core. */
#include <sys/random.h>
#include <time.h>

#include "tensor.h"

void lm_rng_open(const luma_state *S, lm_device *d) {
    d->offset = 0;
    d->seed = S->seed;
    if (S->seeded) return;
    if (getrandom(&d->seed, sizeof d->seed, GRND_NONBLOCK) == (ssize_t)sizeof d->seed) return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    d->seed = (uint64_t)now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)now.tv_sec ^
              (uint64_t)(uintptr_t)d;
}

luma_status luma_manual_seed(luma_state *S, uint64_t seed) {
    S->seeded = true; /* for devices that are yet to be registered */
    S->seed = seed;
    for (int i = 0; i < S->ndevices; i++) {
        S->devices[i]->seed = seed;
        S->devices[i]->offset = 0;
    }
    return LUMA_OK;
}

luma_status luma_get_rng_state(luma_state *S, const char *device, uint64_t *seed,
                               uint64_t *offset) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    *seed = d->seed;
    *offset = d->offset;
    return LUMA_OK;
}

luma_status luma_set_rng_state(luma_state *S, const char *device, uint64_t seed, uint64_t offset) {
    lm_device *d;
    LM_TRY(lm_device_find(S, device, &d));
    d->seed = seed;
    d->offset = offset;
    return LUMA_OK;
}

/* Significant bits of a float dtype: what a uniform number takes of its word. */
static int significant_bits(luma_dtype dtype) {
    switch (dtype) {
    case LUMA_FLOAT8_E4M3:
        return 4;
    case LUMA_BFLOAT16:
        return 8;
    case LUMA_FLOAT16:
        return 11;
    default:
        return 24;
    }
}

/* The words come from the generator of a device, which need not be the one that x is on. */
static luma_status draw(luma_state *S, luma_tensor *x, lm_device *generator, lm_random *r) {
    lm_device *d = lm_device_of(x);
    lm_result result;
    r->seed = generator->seed;
    r->offset = generator->offset;
    r->bits = significant_bits(x->dtype);
    bool wide =
        x->dtype == LUMA_FLOAT64 && (r->kind == LM_RANDOM_UNIFORM || r->kind == LM_RANDOM_NORMAL);
    r->words = (r->kind == LM_RANDOM_UNIFORM ? 1 : 2) * (wide ? 2 : 1);
    LM_TRY(lm_result_open(S, &result, x, d, x->dtype, x->layout.ndim, x->layout.shape, NULL, 0,
                          LM_RESULT_CONTIGUOUS));
    r->out = result.work;
    luma_status status =
        lm_result_close(S, &result, LM_SLOT(S, d, random, "random numbers", x->dtype, r));
    if (status == LUMA_OK) generator->offset += (uint64_t)(luma_numel(x) * r->words);
    return status;
}

static luma_status draw_float(luma_state *S, luma_tensor *x, lm_random_kind kind) {
    lm_random r = {.kind = kind};
    if (!lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: a float dtype expected",
                       lm_dtypes[x->dtype].name);
    return draw(S, x, lm_device_of(x), &r);
}

luma_status luma_rand(luma_state *S, luma_tensor *x) {
    return draw_float(S, x, LM_RANDOM_UNIFORM);
}

luma_status luma_randn(luma_state *S, luma_tensor *x) {
    return draw_float(S, x, LM_RANDOM_NORMAL);
}

luma_status luma_randint(luma_state *S, luma_tensor *x, int64_t lo, int64_t hi) {
    lm_random r = {.kind = LM_RANDOM_INTEGER, .lo = lo, .hi = hi};
    const lm_dtype_info *info = &lm_dtypes[x->dtype];
    if (lo > hi)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 3, "%lld is less than %lld", (long long)hi,
                       (long long)lo);
    if (!lm_dtype_is_float(x->dtype) && (lo < info->imin || hi > info->imax))
        return lm_fail(S, LUMA_ERR_DTYPE, lo < info->imin ? 2 : 3, "%lld does not fit into %s",
                       (long long)(lo < info->imin ? lo : hi), info->name);
    return draw(S, x, lm_device_of(x), &r);
}

luma_status lm_rng_up_to(luma_state *S, luma_tensor *x, lm_device *generator) {
    lm_random r = {.kind = LM_RANDOM_UP_TO};
    return draw(S, x, generator, &r);
}
