/* cuda_names_test.c -- the libraries of an installed toolkit, whose folder is the argument: they have
** the names of kernels/cuda/api.h, and cuRAND's generator of the host, which needs no GPU, gives the
** words of kernels/random.h. They open without a driver; for libcuda there is a stub. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cuda/api.h"
#include "random.h"

static int missing, found, wrong;

static void *open_library(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        missing++;
    }
    return library;
}

static void look_up(void *library, const char *name) {
    if (library && !dlsym(library, name)) {
        printf("%s is missing\n", name);
        missing++;
    }
    found++;
}

/* ---- words of cuRAND ---- */

typedef struct {
#define POINTER(_, need, result, name, parameters) result(*name) parameters;
    LM_CURAND_API(POINTER, _)
#undef POINTER
} curand_table;

enum { WORDS = 300001 };
static unsigned words[WORDS];

static void compare_words(const curand_table *api, uint64_t seed, uint64_t offset, size_t n) {
    curandGenerator_t g;
    bool made = api->curandCreateGeneratorHost(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10) == 0;
    bool good = made && api->curandSetPseudoRandomGeneratorSeed(g, seed) == 0 &&
                api->curandSetGeneratorOffset(g, offset) == 0;
    /* in two calls: the second goes on where the first ended */
    good = good && api->curandGenerate(g, words, n / 3) == 0 &&
           api->curandGenerate(g, words + n / 3, n - n / 3) == 0;
    for (size_t i = 0; good && i < n; i++)
        good = words[i] == lm_random_word(seed, offset + i, 0);
    if (made) api->curandDestroyGenerator(g);
    if (good) return;
    printf("words of seed %llu from %llu on differ\n", (unsigned long long)seed,
           (unsigned long long)offset);
    wrong++;
}

static void compare_with_curand(void *library) {
    static const uint64_t seeds[] = {0, 1, 42, UINT64_C(0x123456789abcdef0), UINT64_MAX};
    static const uint64_t offsets[] = {
        0, 1, 2, 3, 5, 262141, 262144, UINT64_C(1) << 32, (UINT64_C(1) << 40) + 3};
    curand_table api;
#define FILL(_, need, result, name, parameters)                                                    \
    do {                                                                                           \
        void *p = dlsym(library, #name);                                                           \
        memcpy(&api.name, &p, sizeof p);                                                           \
    } while (0);
    LM_CURAND_API(FILL, _)
#undef FILL
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        for (size_t j = 0; j < sizeof offsets / sizeof offsets[0]; j++)
            compare_words(&api, seeds[i], offsets[j], i == 2 ? WORDS : 1001);
    }
}

#define LOOK_UP(library, need, result, name, parameters) look_up(library, #name);

int main(int count, char **arguments) {
    if (count != 2) return 2;
    void *cuda = open_library(arguments[1], "stubs/libcuda.so");
    void *cublas = open_library(arguments[1], "libcublas.so");
    void *curand = open_library(arguments[1], "libcurand.so");
    void *nvrtc = open_library(arguments[1], "libnvrtc.so");
    LM_CUDA_API(LOOK_UP, cuda)
    LM_CUBLAS_API(LOOK_UP, cublas)
    LM_CURAND_API(LOOK_UP, curand)
    LM_NVRTC_API(LOOK_UP, nvrtc)
    if (curand && missing == 0) compare_with_curand(curand);
    printf("%d names, %d missing; %d runs of random words differ\n", found, missing, wrong);
    return missing + wrong > 0;
}
