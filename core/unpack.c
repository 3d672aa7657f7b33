/* unpack.c -- gzip streams in memory; inflate is zlib's. Layer: core. */
#include "unpack.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

/* Room for the text doubles until all of it fits. */
char *lm_unpack(const unsigned char *packed, size_t nbytes, size_t *size) {
    z_stream z = {0};
    char *text = NULL;
    size_t room = 64 * 1024;
    if (nbytes > UINT_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) /* 16: a gzip header */
        return NULL;
    z.next_in = (Bytef *)(uintptr_t)packed;
    z.avail_in = (uInt)nbytes;
    int code = Z_OK;
    while (code == Z_OK && room <= UINT_MAX / 2) {
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
    if (size) *size = z.total_out;
    return text;
}
