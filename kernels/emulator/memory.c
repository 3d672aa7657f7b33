/* memory.c -- device memory: one memory file mapped twice. Kernels see it through the device view,
** which is closed while none runs, so that the host is caught touching it; copies and libraries use
** the alias, which is always open. Allocations are far apart and right-aligned to their pages, have
** canaries around them, begin as poison, and addresses are not used again before all were.
** Layer: kernels. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parts.h"
#if LM_EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

enum {
    POISON = 0xff, /* fresh memory: floats are NaN */
    FREED = 0xdb,  /* a block that a caching allocator took back */
    CANARY = 0xcb,
    ALIGNMENT = 256, /* documented: "suitably aligned for any kind of variable"; measured: 256 */
    DEAD_KEPT = 4096 /* records of freed allocations, for descriptions */
};
/* Where the device view lies if it can: addresses that say what they are. ThreadSanitizer, under
** which LM_EMU_ANYWHERE is defined, has its shadow there. */
#ifdef LM_EMU_ANYWHERE
#define PREFERRED 0
#define PREFERRED_FLAGS 0
#else
#define PREFERRED ((uint64_t)0x200000000000)
#define PREFERRED_FLAGS MAP_FIXED_NOREPLACE
#endif
/* Larger allocations are poisoned at both ends only, this much. */
#define POISON_MOST ((size_t)128 << 20)

static struct {
    int file;
    uint64_t start, end; /* of the device view */
    char *alias;
    uint64_t page, cursor;    /* cursor: where the next allocation is looked for */
    lm_emu_allocation **list; /* by address */
    int n, capacity, dead;
    int hint; /* the last one found */
    lm_emu_allocation *opened;
    unsigned long numbers;
    size_t used[LM_EMU_MAX_DEVICES];
    int device;       /* whose kernels run */
    pthread_t thread; /* of the host, that runs them */
} arena;

bool lm_emu_is_device(uint64_t p) {
    return p >= arena.start && p < arena.end;
}

void *lm_emu_alias(uint64_t p) {
    return arena.alias + (p - arena.start);
}

size_t lm_emu_memory_used(int device) {
    return arena.used[device];
}

static void *view(uint64_t p) {
    return (void *)(uintptr_t)p;
}

/* ---- the list of allocations ---- */

/* The place of the first record that begins past p. */
static int place_after(uint64_t p) {
    int low = 0, high = arena.n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (arena.list[middle]->low <= p)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The allocation whose pages, or the guard page on either side, hold p. */
lm_emu_allocation *lm_emu_find(uint64_t p) {
    if (arena.hint < arena.n) {
        lm_emu_allocation *x = arena.list[arena.hint];
        if (p >= x->low && p < x->high) return x;
    }
    int i = place_after(p + arena.page) - 1;
    if (i < 0 || p >= arena.list[i]->high + arena.page) return NULL;
    if (i > 0 && p < arena.list[i]->low && p < arena.list[i - 1]->high + arena.page) i--;
    arena.hint = i;
    return arena.list[i];
}

static void drop(int i) {
    free(arena.list[i]);
    memmove(&arena.list[i], &arena.list[i + 1],
            (size_t)(arena.n - i - 1) * sizeof(lm_emu_allocation *));
    arena.n--;
    arena.dead--;
    arena.hint = 0;
}

/* Forgets the older half of the freed ones. */
static void forget_dead(void) {
    int kept = 0, forget = arena.dead / 2;
    for (int i = 0; i < arena.n; i++) {
        lm_emu_allocation *x = arena.list[i];
        if (!x->live && forget > 0) {
            forget--;
            arena.dead--;
            free(x);
        } else {
            arena.list[kept++] = x;
        }
    }
    arena.n = kept;
    arena.hint = 0;
}

/* A free range of `size` bytes from the cursor on, then once more from the start; records of freed
** allocations in it are dropped. */
static uint64_t find_room(uint64_t size) {
    for (int round = 0; round < 2; round++) {
        uint64_t p = round == 0 ? arena.cursor : arena.start + arena.page;
        int i = place_after(p);
        if (i > 0 && arena.list[i - 1]->high + arena.page > p) {
            if (arena.list[i - 1]->live)
                p = arena.list[i - 1]->high + arena.page;
            else
                i--;
        }
        while (p + size <= arena.end) {
            while (i < arena.n && !arena.list[i]->live && arena.list[i]->low < p + size)
                drop(i);
            if (i == arena.n || arena.list[i]->low >= p + size) return p;
            p = arena.list[i++]->high + arena.page;
        }
    }
    return 0;
}

static lm_emu_allocation *insert(uint64_t low) {
    if (arena.n == arena.capacity) {
        int capacity = arena.capacity ? 2 * arena.capacity : 256;
        void *list = realloc(arena.list, (size_t)capacity * sizeof(lm_emu_allocation *));
        if (!list) return NULL;
        arena.list = list;
        arena.capacity = capacity;
    }
    lm_emu_allocation *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    int i = place_after(low);
    memmove(&arena.list[i + 1], &arena.list[i],
            (size_t)(arena.n - i) * sizeof(lm_emu_allocation *));
    arena.list[i] = x;
    arena.n++;
    x->low = low;
    return x;
}

/* ---- descriptions and checks ---- */

void lm_emu_describe(uint64_t p, char *text, size_t length) {
    typedef unsigned long long ull;
    const lm_emu_allocation *x = lm_emu_is_device(p) ? lm_emu_find(p) : NULL;
    if (!lm_emu_is_device(p))
        snprintf(text, length, "0x%llx is no device memory", (ull)p);
    else if (!x)
        snprintf(text, length, "0x%llx is in no allocation", (ull)p);
    else if (p < x->base)
        snprintf(text, length, "0x%llx is %llu bytes before allocation %lu of %zu bytes", (ull)p,
                 (ull)(x->base - p), x->number, x->size);
    else if (p >= x->base + x->size)
        snprintf(text, length, "0x%llx is %llu bytes past the end of allocation %lu of %zu bytes%s",
                 (ull)p, (ull)(p - x->base - x->size), x->number, x->size,
                 x->live ? "" : ", which was freed");
    else if (!x->live)
        snprintf(text, length, "0x%llx is byte %llu of allocation %lu, which was freed", (ull)p,
                 (ull)(p - x->base), x->number);
    else
        snprintf(text, length, "0x%llx is byte %llu of allocation %lu of %zu bytes of device %d",
                 (ull)p, (ull)(p - x->base), x->number, x->size, x->device);
}

bool lm_emu_range(int device, uint64_t p, size_t nbytes, const char *what) {
    if (nbytes == 0) return true;
    const lm_emu_allocation *x = lm_emu_is_device(p) ? lm_emu_find(p) : NULL;
    bool begins = x && x->live && p >= x->base && p - x->base < x->size;
    if (begins && nbytes <= x->size - (p - x->base) && x->device == device) return true;
    char text[160];
    lm_emu_describe(begins ? x->base + x->size : p, text, sizeof text);
    if (begins && x->device != device)
        lm_emu_report(0, "device-range", "%s: the memory is that of device %d, not %d", what,
                      x->device, device);
    else
        lm_emu_report(0, "device-range", "%s, %zu bytes: %s", what, nbytes, text);
    return false;
}

static bool all_canary(uint64_t from, uint64_t to) {
    const unsigned char *p = lm_emu_alias(from), *end = p + (to - from);
    while (p < end && *p == CANARY)
        p++;
    return p == end;
}

static void draw_canaries(const lm_emu_allocation *x) {
    uint64_t end = x->base + x->size;
    memset(lm_emu_alias(x->low), CANARY, x->base - x->low);
    memset(lm_emu_alias(end), CANARY, x->high - end);
}

static void check_canaries(const lm_emu_allocation *x, const char *when) {
    bool before = !all_canary(x->low, x->base), after = !all_canary(x->base + x->size, x->high);
    if (!before && !after) return;
    lm_emu_report(CUDA_ERROR_ILLEGAL_ADDRESS, "redzone",
                  "%s: bytes just %s allocation %lu of %zu bytes were written", when,
                  before ? "before" : "past", x->number, x->size);
    draw_canaries(x);
}

/* ---- shadow bytes ---- */

const unsigned char *lm_emu_bad_byte(const lm_emu_allocation *x, uint64_t p, size_t n, bool read) {
    const unsigned char *s = x->shadow + (p - x->base);
    unsigned char wanted = read ? LM_EMU_USABLE | LM_EMU_WRITTEN : LM_EMU_USABLE;
    for (size_t i = 0; i < n; i++)
        if ((s[i] & wanted) != wanted) return &s[i];
    return NULL;
}

static bool check_bytes(uint64_t p, size_t nbytes, bool read, const char *what) {
    const lm_emu_allocation *x = lm_emu_find(p);
    if (!x || nbytes == 0) return true;
    const char *kind = NULL;
    uint64_t at = p;
#if LM_EMU_ASAN
    const void *poisoned = __asan_region_is_poisoned(view(p), nbytes);
    if (poisoned) {
        kind = "freed-block";
        at = (uint64_t)(uintptr_t)poisoned;
    }
#endif
    const unsigned char *bad = x->shadow ? lm_emu_bad_byte(x, p, nbytes, read) : NULL;
    if (bad) {
        kind = *bad & LM_EMU_USABLE ? "uninitialised" : "freed-block";
        at = x->base + (uint64_t)(bad - x->shadow);
    }
    if (!kind) return true;
    char text[160];
    lm_emu_describe(at, text, sizeof text);
    lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, kind, "%s: %s", what, text);
    return false;
}

bool lm_emu_check_usable(uint64_t p, size_t nbytes, const char *what) {
    return check_bytes(p, nbytes, false, what);
}

bool lm_emu_check_written(uint64_t p, size_t nbytes, const char *what) {
    return check_bytes(p, nbytes, true, what);
}

void lm_emu_mark_written(uint64_t p, size_t nbytes) {
    lm_emu_allocation *x = lm_emu_find(p);
    if (!x || !x->shadow) return;
    unsigned char *s = x->shadow + (p - x->base);
    for (size_t i = 0; i < nbytes; i++)
        s[i] |= LM_EMU_WRITTEN;
}

void lm_emu_copy_marks(uint64_t dst, uint64_t src, size_t nbytes) {
    lm_emu_allocation *to = lm_emu_find(dst);
    const lm_emu_allocation *from = lm_emu_find(src);
    if (!to || !to->shadow || !from || !from->shadow) return;
    unsigned char *d = to->shadow + (dst - to->base);
    const unsigned char *s = from->shadow + (src - from->base);
    for (size_t i = 0; i < nbytes; i++)
        d[i] = (unsigned char)((d[i] & LM_EMU_USABLE) | (s[i] & LM_EMU_WRITTEN));
}

/* ---- allocate and free ---- */

static void poison(uint64_t p, size_t nbytes) {
    if (nbytes <= POISON_MOST) {
        memset(lm_emu_alias(p), POISON, nbytes);
    } else {
        memset(lm_emu_alias(p), POISON, POISON_MOST / 2);
        memset(lm_emu_alias(p + nbytes - POISON_MOST / 2), POISON, POISON_MOST / 2);
    }
}

uint64_t lm_emu_memory_alloc(int device, size_t nbytes) {
    size_t left = lm_emu_cfg.memory - arena.used[device];
    if (nbytes > left) return 0;
    uint64_t page = arena.page, body = (nbytes + page - 1) / page * page;
    if (arena.dead > DEAD_KEPT) forget_dead();
    uint64_t low = find_room(body + page);
    lm_emu_allocation *x = low ? insert(low) : NULL;
    if (!x) return 0;
    arena.cursor = low + body + 2 * page;
    x->high = low + body;
    x->base = low + ((body - nbytes) & ~(uint64_t)(ALIGNMENT - 1));
    x->size = nbytes;
    x->device = device;
    x->live = true;
    x->number = ++arena.numbers;
    if (lm_emu_race) {
        x->shadow = malloc(nbytes);
        if (x->shadow) memset(x->shadow, LM_EMU_USABLE, nbytes);
    }
    draw_canaries(x);
    poison(x->base, nbytes);
#if LM_EMU_ASAN
    __asan_poison_memory_region(view(x->low - page), x->high - x->low + 2 * page);
    __asan_unpoison_memory_region(view(x->base), nbytes);
#endif
    arena.used[device] += nbytes;
    lm_emu_count.allocations++;
    return x->base;
}

static void release(lm_emu_allocation *x) {
    x->live = false;
    free(x->shadow);
    x->shadow = NULL;
    arena.used[x->device] -= x->size;
    arena.dead++;
    lm_emu_count.allocations--;
    /* the pages go back to the system; the address keeps its record */
    (void)fallocate(arena.file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
                    (off_t)(x->low - arena.start), (off_t)(x->high - x->low));
#if LM_EMU_ASAN
    __asan_poison_memory_region(view(x->low), x->high - x->low);
#endif
}

/* documented: CUDA_ERROR_INVALID_VALUE for what cuMemAlloc did not give */
CUresult lm_emu_memory_free(uint64_t p) {
    lm_emu_allocation *x = lm_emu_is_device(p) ? lm_emu_find(p) : NULL;
    if (!x || !x->live || x->base != p) {
        char text[160];
        lm_emu_describe(p, text, sizeof text);
        lm_emu_report(0, x && !x->live ? "double-free" : "bad-free", "cuMemFree: %s", text);
        return CUDA_ERROR_INVALID_VALUE;
    }
    check_canaries(x, "cuMemFree");
    release(x);
    return CUDA_SUCCESS;
}

void lm_emu_memory_reset(int device) {
    for (int i = 0; i < arena.n; i++)
        if (arena.list[i]->live && arena.list[i]->device == device) release(arena.list[i]);
}

void lm_emu_memory_block(uint64_t p, size_t nbytes, bool live) {
    if (nbytes == 0 || !lm_emu_range(lm_emu_active, p, nbytes, "luma_emu_block")) return;
    lm_emu_allocation *x = lm_emu_find(p);
    if (x->shadow) memset(x->shadow + (p - x->base), live ? LM_EMU_USABLE : 0, nbytes);
#if LM_EMU_ASAN
    if (live)
        __asan_unpoison_memory_region(view(p), nbytes);
    else
        __asan_poison_memory_region(view(p), nbytes);
#endif
    memset(lm_emu_alias(p), live ? POISON : FREED, nbytes);
}

/* ---- the device view opens and closes ---- */

static struct sigaction previous;

static void chain(int signal_number) {
    sigaction(signal_number, &previous, NULL); /* it happens once more, for the handler before */
}

/* A kernel touched what is not open: the first touch of an allocation of its device opens it. */
static bool open_at(uint64_t p) {
    lm_emu_allocation *x = lm_emu_find(p);
    if (!x || !x->live || x->open || p < x->low || p >= x->high || x->device != arena.device)
        return false;
    if (mprotect(view(x->low), x->high - x->low, PROT_READ | PROT_WRITE)) return false;
    x->open = true;
    x->next_open = arena.opened;
    arena.opened = x;
    return true;
}

/* The fault comes from code of a kernel, or of the host where it holds no lock of libc, so that
** a report may print. documented: an illegal access ends the kernel and spoils the context. */
static void on_fault(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    uint64_t p = (uint64_t)(uintptr_t)info->si_addr;
    bool in_kernel = lm_emu_running() && pthread_equal(pthread_self(), arena.thread);
    if (lm_emu_is_device(p) && in_kernel && open_at(p)) return;
    char text[160];
    lm_emu_describe(p, text, sizeof text);
    if (!in_kernel) {
        if (lm_emu_is_device(p)) lm_emu_report(0, "host-access", "%s", text);
        chain(signal_number);
        return;
    }
    if (lm_fiber_holds((uintptr_t)p) == LM_FIBER_GUARD)
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "stack-overflow", "local memory is used up");
    else if (lm_emu_shared_kind((uintptr_t)p, 1) == LM_EMU_PAST_DYNAMIC)
        lm_emu_report(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal-address",
                      "access past the end of dynamic shared memory");
    else
        lm_emu_report(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal-address", "%s", text);
    lm_emu_abandon();
}

/* Faults of kernels are handled on a stack of their own; only one kernel runs at a time. */
static char fault_stack[65536];
static stack_t host_stack;
static bool entered;

void lm_emu_memory_enter(int device) {
    arena.device = device;
    arena.thread = pthread_self();
    if (!lm_emu_cfg.guard || entered) return;
    entered = true;
    stack_t mine = {.ss_sp = fault_stack, .ss_size = sizeof fault_stack};
    sigaltstack(&mine, &host_stack);
}

static void each_canary(const char *kernel) {
    if (lm_emu_cfg.guard) {
        for (lm_emu_allocation *x = arena.opened; x; x = x->next_open)
            check_canaries(x, kernel);
    } else {
        for (int i = 0; i < arena.n; i++)
            if (arena.list[i]->live) check_canaries(arena.list[i], kernel);
    }
}

void lm_emu_memory_check(const char *kernel) {
    if (!LM_EMU_ASAN) each_canary(kernel);
}

void lm_emu_memory_leave(void) {
    if (!entered) return;
    entered = false;
    for (lm_emu_allocation *x = arena.opened; x; x = x->next_open) {
        x->open = false;
        if (x->live) mprotect(view(x->low), x->high - x->low, PROT_NONE);
    }
    arena.opened = NULL;
    sigaltstack(&host_stack, NULL);
}

/* ---- the arena ---- */

/* Two views of one file. */
static bool map_arena(uint64_t size) {
    int protection = lm_emu_cfg.guard ? PROT_NONE : PROT_READ | PROT_WRITE;
    int flags = MAP_SHARED | MAP_NORESERVE;
    if (ftruncate(arena.file, (off_t)size)) return false;
    void *alias = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, arena.file, 0);
    if (alias == MAP_FAILED) return false;
    void *device = mmap(view(PREFERRED), size, protection, flags | PREFERRED_FLAGS, arena.file, 0);
    if (device == MAP_FAILED) device = mmap(NULL, size, protection, flags, arena.file, 0);
    if (device == MAP_FAILED) {
        munmap(alias, size);
        return false;
    }
    arena.alias = alias;
    arena.start = (uint64_t)(uintptr_t)device;
    arena.end = arena.start + size;
    return true;
}

bool lm_emu_memory_open(void) {
    arena.page = (uint64_t)sysconf(_SC_PAGESIZE);
    arena.file = memfd_create("luma device memory", MFD_CLOEXEC);
    if (arena.file < 0) {
        perror("emulated device: no memory file");
        return false;
    }
    bool mapped = false;
    for (int bits = 38; bits >= 32 && !mapped; bits -= 2)
        mapped = map_arena((uint64_t)1 << bits);
    if (!mapped) {
        perror("emulated device: no addresses for its memory");
        close(arena.file);
        return false;
    }
    arena.cursor = arena.start + arena.page;
    if (lm_emu_cfg.guard) {
        /* not blocked while it runs: a kernel that dies is left from within */
        struct sigaction action = {.sa_sigaction = on_fault,
                                   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigemptyset(&action.sa_mask);
        sigaction(SIGSEGV, &action, &previous);
    }
    return true;
}
