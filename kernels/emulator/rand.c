/* rand.c -- raw words of cuRAND's Philox generator, on the device and on the host. The order of the
** words, and that a generator goes on where its last call ended whatever its seed, was measured on
** the host generator of libcurand. Layer: kernels. */
#include "random.h"

#include <stdlib.h>

#include "parts.h"

enum { MAGIC = 0x726e };
struct curandGenerator_st {
    int magic;
    CUcontext context; /* NULL: writes memory of the host, at the call */
    CUstream stream;
    uint64_t seed, offset; /* of the next word */
};

#define ENTER_RAND                                                                                 \
    LM_EMU_LOCKED;                                                                                 \
    do {                                                                                           \
        if (!lm_emu_works()) return CURAND_STATUS_INITIALIZATION_FAILED;                           \
        if (lm_emu_injected(__func__)) return CURAND_STATUS_LAUNCH_FAILURE;                        \
    } while (0)

#define CHECK_GENERATOR(g)                                                                         \
    do {                                                                                           \
        if (!(g) || (g)->magic != MAGIC) return CURAND_STATUS_NOT_INITIALIZED;                     \
    } while (0)

/* measured: TYPE_ERROR for no type, 0 for the seed and the offset */
static curandStatus_t create(curandGenerator_t *generator, curandRngType_t kind,
                             CUcontext context) {
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (kind != CURAND_RNG_PSEUDO_PHILOX4_32_10) return CURAND_STATUS_TYPE_ERROR;
    curandGenerator_t g = calloc(1, sizeof *g);
    if (!g) return CURAND_STATUS_ALLOCATION_FAILED;
    g->magic = MAGIC;
    g->context = context;
    *generator = g;
    lm_emu_count.others++;
    return CURAND_STATUS_SUCCESS;
}

/* measured: INITIALIZATION_FAILED without a device */
curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t kind) {
    ENTER_RAND;
    if (!lm_emu_current()) return CURAND_STATUS_INITIALIZATION_FAILED;
    return create(generator, kind, lm_emu_current());
}

curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t kind) {
    ENTER_RAND;
    return create(generator, kind, NULL);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    ENTER_RAND;
    CHECK_GENERATOR(generator);
    generator->magic = 0;
    free(generator);
    lm_emu_count.others--;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    ENTER_RAND;
    CHECK_GENERATOR(generator);
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed) {
    ENTER_RAND;
    CHECK_GENERATOR(generator);
    generator->seed = seed;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    ENTER_RAND;
    CHECK_GENERATOR(generator);
    generator->offset = offset;
    return CURAND_STATUS_SUCCESS;
}

typedef struct {
    uint64_t seed, offset, p;
    size_t count;
} request;

static void fill(const request *r, uint32_t *words) {
    uint32_t block[4];
    for (size_t i = 0; i < r->count; i++) {
        uint64_t n = r->offset + i;
        if (i == 0 || n % 4 == 0) lm_random_block(r->seed, n / 4, 0, block);
        words[i] = block[n % 4];
    }
}

static void run_fill(void *blob) {
    const request *r = blob;
    if (!lm_emu_range(lm_emu_active, r->p, r->count * 4, "curandGenerate")) {
        lm_emu_fault(CUDA_ERROR_ILLEGAL_ADDRESS);
        return;
    }
    lm_emu_check_usable(r->p, r->count * 4, "curandGenerate");
    fill(r, lm_emu_alias(r->p));
    lm_emu_mark_written(r->p, r->count * 4);
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned *words, size_t count) {
    ENTER_RAND;
    CHECK_GENERATOR(generator);
    request r = {generator->seed, generator->offset, (uint64_t)(uintptr_t)words, count};
    generator->offset += count;
    if (count == 0) return CURAND_STATUS_SUCCESS;
    if (!generator->context) {
        fill(&r, words);
        return CURAND_STATUS_SUCCESS;
    }
    if (generator->context != lm_emu_current() || r.p % 4) return CURAND_STATUS_LAUNCH_FAILURE;
    request *blob = malloc(sizeof *blob);
    if (!blob) return CURAND_STATUS_ALLOCATION_FAILED;
    *blob = r;
    return lm_emu_enqueue_call(generator->stream, run_fill, blob) ? CURAND_STATUS_LAUNCH_FAILURE
                                                                  : CURAND_STATUS_SUCCESS;
}
