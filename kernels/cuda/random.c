/* random.c -- the random slot of CUDA: kernels make the words themselves, or take those of cuRAND,
** which are the same. Layer: kernels/cuda. */
#include <string.h>

#include "cache.h"
#include "cuda.h"

#define BLOCK 256
/* Words: fewer are not worth the calls of cuRAND; of a piece, for which there is scratch memory. */
#define CURAND_LEAST (1 << 16)
#define CURAND_PIECE (4 << 20)

/* Kernels of a kind of numbers by dtype, plus one. */
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_uniform_##token + 1,
static const uint16_t uniform[LUMA_NDTYPES] = {LM_FLOATS(KERNEL_OF, _)};
#undef KERNEL_OF
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_normal_##token + 1,
static const uint16_t normal[LUMA_NDTYPES] = {LM_FLOATS(KERNEL_OF, _)};
#undef KERNEL_OF
#define KERNEL_OF(_, token, ENUM, ...) [LUMA_##ENUM] = LM_K_integer_##token + 1,
static const uint16_t integer[LUMA_NDTYPES] = {LM_DTYPES(KERNEL_OF, _)};
#undef KERNEL_OF

/* Elements first .. first + n - 1 of r. */
static lm_args_random part_of(const lm_random *r, int64_t first, int64_t n) {
    const size_t size = lm_dtype_size(r->out.dtype);
    const uint64_t words = (uint64_t)r->words, offset = r->offset + (uint64_t)first * words;
    lm_args_random a = {.y = lm_data(&r->out) + (size_t)first * size, .n = n};
    a.seed = r->seed;
    a.offset = offset;
    a.blocks = (int64_t)((offset % 4 + (uint64_t)(n - 1) * words) / 4) + 1;
    a.skip = (int32_t)(offset % words);
    a.lead = (int32_t)(offset % 4 / words);
    a.bits = r->bits;
    a.wider = r->kind == LM_RANDOM_UP_TO;
    a.lo = r->lo;
    a.range = (uint64_t)r->hi - (uint64_t)r->lo + 1;
    a.whole = a.lead == 0 && (uintptr_t)a.y % (size * (size_t)(4 / words)) == 0;
    return a;
}

static luma_status launch(luma_state *S, lm_cuda *c, const lm_random *r, const lm_args_random *a) {
    const uint16_t *kernels = r->kind == LM_RANDOM_UNIFORM  ? uniform
                              : r->kind == LM_RANDOM_NORMAL ? normal
                                                            : integer;
    lm_kernel kernel = (lm_kernel)(kernels[r->out.dtype] - 1);
    return lm_cuda_launch(S, c, kernel, lm_cuda_shape(c, a->blocks, 1, BLOCK), a);
}

/* ---- words of cuRAND ---- */

static luma_status check(luma_state *S, const lm_cuda *c, curandStatus_t status, const char *what) {
    if (status == CURAND_STATUS_SUCCESS) return LUMA_OK;
    luma_status kind =
        status == CURAND_STATUS_ALLOCATION_FAILED ? LUMA_ERR_MEMORY : LUMA_ERR_DEVICE;
    return lm_fail(S, kind, 0, "%s: %s: %s", c->name, what, lm_curand_status_name(status));
}

static luma_status open_generator(luma_state *S, lm_cuda *c) {
    const char *why;
    curandGenerator_t g = NULL;
    if (c->generator) return LUMA_OK;
    const lm_curand *api = lm_curand_open(&why);
    if (!api) return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s", why);
    curandStatus_t status = api->curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    if (status == CURAND_STATUS_ALLOCATION_FAILED) {
        lm_cache_empty(c->device->cache);
        status = api->curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    }
    LM_TRY(check(S, c, status, "curandCreateGenerator"));
    status = api->curandSetStream(g, c->stream);
    if (status != CURAND_STATUS_SUCCESS) {
        api->curandDestroyGenerator(g);
        return check(S, c, status, "curandSetStream");
    }
    c->curand = api;
    c->generator = g;
    return LUMA_OK;
}

void lm_cuda_random_close(lm_cuda *c, bool usable) {
    if (c->generator && usable) c->curand->curandDestroyGenerator(c->generator);
    c->generator = NULL;
}

/* Words of the blocks that a needs, from the first one's first on. */
static luma_status generate(luma_state *S, lm_cuda *c, const lm_args_random *a, void *words) {
    const lm_curand *api = c->curand;
    size_t n = 4 * (size_t)(a->blocks + (a->skip > 0));
    LM_TRY(check(S, c, api->curandSetPseudoRandomGeneratorSeed(c->generator, a->seed),
                 "curandSetPseudoRandomGeneratorSeed"));
    LM_TRY(check(S, c, api->curandSetGeneratorOffset(c->generator, a->offset / 4 * 4),
                 "curandSetGeneratorOffset"));
    return check(S, c, api->curandGenerate(c->generator, words, n), "curandGenerate");
}

static luma_status fill_by_curand(luma_state *S, lm_cuda *c, const lm_random *r) {
    const int64_t n = luma_numel(&r->out), most = CURAND_PIECE / r->words;
    const int64_t piece = n < most ? n : most;
    luma_status status = LUMA_OK;
    lm_storage *words;
    LM_TRY(open_generator(S, c));
    LM_TRY(lm_cuda_scratch(S, c, ((size_t)(piece * r->words) + 12) * sizeof(uint32_t), &words));
    for (int64_t first = 0; first < n && status == LUMA_OK; first += piece) {
        lm_args_random a = part_of(r, first, n - first < piece ? n - first : piece);
        a.given = (const uint32_t *)(const void *)words->data;
        status = generate(S, c, &a, words->data);
        if (status == LUMA_OK) status = launch(S, c, r, &a);
    }
    lm_storage_release(words);
    return status;
}

/* ---- the slot ---- */

static luma_status fill(luma_state *S, lm_cuda *c, const lm_random *r) {
    const int64_t n = luma_numel(&r->out);
    if ((S->cuda_allow & LM_USE_CURAND) && n >= CURAND_LEAST / r->words &&
        r->kind != LM_RANDOM_UP_TO)
        return fill_by_curand(S, c, r);
    lm_args_random a = part_of(r, 0, n);
    return launch(S, c, r, &a);
}

luma_status lm_cuda_random(luma_state *S, lm_device *d, const lm_random *r) {
    lm_cuda *c = lm_cuda_of(d);
    if (luma_numel(&r->out) == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = fill(S, c, r);
    lm_cuda_leave(c);
    return status;
}
