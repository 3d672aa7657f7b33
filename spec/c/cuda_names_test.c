/* cuda_names_test.c -- the names of kernels/cuda/api.h in the libraries of an installed toolkit,
** whose folder is the argument. They open without a driver; for libcuda there is a stub. */
#include <dlfcn.h>
#include <stdio.h>

#include "cuda/api.h"

static int missing, found;

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
    printf("%d names, %d missing\n", found, missing);
    return missing > 0;
}
