/* packed.c -- the emulated device as a shared object that the library carries packed, so that programs
** without use for it stay small: unpacked into memory and opened when it is first asked for. LM_EMU_PACKED
** is the file, a gzip stream. Layer: kernels. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulator.h"
#include "unpack.h"

__asm__(".section .rodata.lm_emulator,\"a\"\n"
        ".hidden lm_emulator_packed\n.globl lm_emulator_packed\n"
        ".hidden lm_emulator_packed_end\n.globl lm_emulator_packed_end\n"
        "lm_emulator_packed:\n.incbin \"" LM_EMU_PACKED "\"\n"
        "lm_emulator_packed_end:\n.byte 0\n.previous\n");
extern const unsigned char lm_emulator_packed[], lm_emulator_packed_end[];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *handle;
static char problem[512];

static bool write_all(int file, const char *data, size_t nbytes) {
    while (nbytes > 0) {
        ssize_t n = write(file, data, nbytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        data += n;
        nbytes -= (size_t)n;
    }
    return true;
}

static bool unpack(int file) {
    size_t nbytes;
    char *object = lm_unpack(lm_emulator_packed,
                             (size_t)(lm_emulator_packed_end - lm_emulator_packed), &nbytes);
    bool good = object && write_all(file, object, nbytes);
    free(object);
    return good;
}

/* Memory that looks like a file; where there is none, a file that is gone once it is open. */
static int open_file(char *path, size_t size) {
    int file = memfd_create("luma_emulator", MFD_CLOEXEC);
    if (file >= 0) {
        snprintf(path, size, "/proc/self/fd/%d", file);
        return file;
    }
    const char *folder = getenv("TMPDIR");
    snprintf(path, size, "%s/luma_emulator_XXXXXX", folder && *folder ? folder : "/tmp");
    return mkstemp(path);
}

static void open_emulator(void) {
    char path[256];
    int file = open_file(path, sizeof path);
    if (file < 0) {
        snprintf(problem, sizeof problem, "no room for it: %s", strerror(errno));
        return;
    }
    if (!unpack(file))
        snprintf(problem, sizeof problem, "it cannot be unpacked: %s", strerror(errno));
    else if (!(handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        snprintf(problem, sizeof problem, "it cannot be opened: %s", dlerror());
    if (strncmp(path, "/proc/", 6) != 0) unlink(path);
    close(file);
}

void *lm_emulator_symbol(const char *name) {
    pthread_once(&once, open_emulator);
    return handle ? dlsym(handle, name) : NULL;
}

const char *lm_emulator_problem(void) {
    return problem[0] ? problem : NULL;
}
