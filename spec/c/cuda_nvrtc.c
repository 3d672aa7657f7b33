/* cuda_nvrtc.c -- compiles a file of kernels with NVRTC, as luma does at run time:
**     luma_cuda_nvrtc source.cu out.ptx [option of NVRTC...]
** For scripts/dev/ptxcheck. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/nvrtc.h"

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t room = 1 << 20, n = 0;
    char *text = calloc(1, room);
    if (text) n = fread(text, 1, room - 1, file);
    fclose(file);
    return n > 0 ? text : NULL;
}

static int write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    size_t n = fwrite(text, 1, strlen(text), file);
    return fclose(file) == 0 && n == strlen(text);
}

int main(int count, char **arguments) {
    char *ptx, *log;
    if (count < 3) return 2;
    char *source = read_file(arguments[1]);
    luma_state *S = luma_open();
    if (!source || !S) {
        fprintf(stderr, "cannot read %s\n", arguments[1]);
        return 2;
    }
    luma_status status = lm_nvrtc_compile(S, 75, source, count - 3,
                                          (const char *const *)(arguments + 3), &ptx, &log);
    if (status != LUMA_OK) fprintf(stderr, "%s: %s\n", arguments[1], luma_message(S));
    if (log) fprintf(stderr, "%s", log);
    if (status == LUMA_OK && !write_file(arguments[2], ptx)) {
        fprintf(stderr, "cannot write %s\n", arguments[2]);
        status = LUMA_ERR_FILE;
    }
    free(ptx);
    free(log);
    free(source);
    luma_close(S);
    return status != LUMA_OK;
}
