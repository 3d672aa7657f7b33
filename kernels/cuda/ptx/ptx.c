/* ptx.c -- the embedded PTX: one gzip stream per module, unpacked when a module is first loaded.
** LM_PTX_LIST, where it is defined, names a file of PTX(module, "file") lines that the build
** writes. Layer: kernels/cuda. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cuda/ptx.h"

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

/* Room for the text doubles until all of it fits; a module has some 100 KB. */
static char *unpack(const unsigned char *packed, uint32_t nbytes) {
    z_stream z = {0};
    char *text = NULL;
    size_t room = 128 * 1024;
    z.next_in = (Bytef *)(uintptr_t)packed;
    z.avail_in = nbytes;
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return NULL; /* 16: a gzip header */
    int code = Z_OK;
    while (code == Z_OK) {
        char *more = realloc(text, room + 1);
        if (!more) break;
        text = more;
        z.next_out = (Bytef *)text + z.total_out;
        z.avail_out = (uInt)(room - z.total_out);
        code = inflate(&z, Z_NO_FLUSH);
        room *= 2;
    }
    inflateEnd(&z);
    if (code != Z_STREAM_END) {
        free(text);
        return NULL;
    }
    text[z.total_out] = 0;
    return text;
}

char *lm_ptx_text(const char *module) {
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (strcmp(images[i].module, module) == 0)
            return unpack(images[i].packed, *images[i].nbytes);
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
