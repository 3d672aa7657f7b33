/* memory.c -- raw host memory by mmap. Large segments are aligned and marked for huge pages: a
*first
** touch costs 2 us for 4 KB, 350 us for 2 MB. Layer: kernels/cpu. */
#include "memory.h"

#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_MIN ((size_t)4 << 20)

static char *map(size_t nbytes) {
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* NULL when the address space has no room for the alignment. */
static char *map_aligned(size_t nbytes) {
    char *p = map(nbytes + HUGE_PAGE);
    if (!p) return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(p, before);
    if (HUGE_PAGE - before) munmap(p + before + nbytes, HUGE_PAGE - before);
    p += before;
#ifdef MADV_HUGEPAGE
    madvise(p, nbytes, MADV_HUGEPAGE);
#endif
    return p;
}

void *lm_cpu_raw_alloc(lm_device *d, size_t nbytes) {
    (void)d;
    char *p = nbytes >= HUGE_MIN ? map_aligned(nbytes) : NULL;
    return p ? p : map(nbytes);
}

void lm_cpu_raw_free(lm_device *d, void *p, size_t nbytes) {
    (void)d;
    munmap(p, nbytes);
}
