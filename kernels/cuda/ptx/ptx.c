/* ptx.c -- the embedded PTX: one gzip stream per module, unpacked when a module is first loaded.
** LM_PTX_LIST, where it is defined, names a file of PTX(module, "file") lines that the build
** writes. Layer: kernels/cuda. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/ptx.h"
#include "unpack.h"

#ifdef LM_PTX_LIST

#define PTX(module, file)                                                                          \
    __asm__(".section .rodata.lm_ptx,\"a\"\n"                                                      \
            ".hidden lm_ptx_" #module "\n.globl lm_ptx_" #module "\n"                              \
            ".hidden lm_ptx_nbytes_" #module "\n.globl lm_ptx_nbytes_" #module "\n"                \
            "lm_ptx_" #module ":\n.incbin \"" file "\"\n"                                          \
            ".balign 4\nlm_ptx_nbytes_" #module ":\n.long . - lm_ptx_" #module "\n.previous\n");   \
    extern const unsigned char lm_ptx_##module[];                                                  \
    extern const uint32_t lm_ptx_nbytes_##module;
#include LM_PTX_LIST
#undef PTX

/* nbytes: with what fills up to the next 4 bytes */
static const struct {
    const char *module;
    const unsigned char *packed;
    const uint32_t *nbytes;
} images[] = {
#define PTX(module, file) {#module, lm_ptx_##module, &lm_ptx_nbytes_##module},
#include LM_PTX_LIST
#undef PTX
};

bool lm_ptx_embedded(void) {
    return true;
}

char *lm_ptx_text(const char *module) {
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (strcmp(images[i].module, module) == 0)
            return lm_unpack(images[i].packed, *images[i].nbytes, NULL);
    return NULL;
}

#else

bool lm_ptx_embedded(void) {
    return false;
}

char *lm_ptx_text(const char *module) {
    static const char header[] = ".version 6.3\n.target sm_75\n.address_size 64\n";
    (void)module;
    char *text = malloc(sizeof header);
    return text ? memcpy(text, header, sizeof header) : NULL;
}

#endif
