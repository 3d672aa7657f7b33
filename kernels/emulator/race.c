/* race.c -- a runtime of our own for kernels compiled with -fsanitize=thread: each access of a
** thread is checked for its place (exactly this allocation, or shared or local memory), for bytes
** that nobody wrote, and for other accesses that nothing orders. libtsan is not linked. Only in the
** race flavour. Layer: kernels.
**
** What orders accesses: the thread itself, barriers of the block, meetings of the warp, and for
** blocks __threadfence followed by an atomic operation (any, on global memory) that a later block
** also makes: its last thread may read what they wrote. Atomic operations do not race each other.
** A word of 4 bytes remembers its last write and two reads: races can be missed, not invented. */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

typedef struct {
    uint32_t block, block_epoch, warp_epoch;
    uint16_t thread, fence;
    uint8_t bytes; /* of the word; 0: no access */
    bool atomic;
} access;

typedef struct {
    uint64_t word; /* address / 4 */
    uint32_t grid; /* 0 or of an earlier grid: free */
    uint32_t written_block;
    uint8_t written; /* shared memory: bytes that the block has written */
    access write, reads[2];
} cell;

enum { FIRST_CELLS = 1 << 14, MOST_CELLS = 1 << 21 };
static struct {
    cell *cells;
    size_t size, used;
    uint32_t grid;
    uint16_t *released; /* of each block: its fences before its last atomic operation */
    size_t blocks;
    uint32_t acquired; /* 1 + the block that made an atomic operation last */
    bool told;
} table;

/* ---- cells ---- */

static size_t slot(uint64_t word) {
    return (size_t)(word * 0x9E3779B97F4A7C15u >> 20) & (table.size - 1);
}

static cell *lookup(uint64_t word) {
    size_t i = slot(word);
    while (table.cells[i].grid == table.grid && table.cells[i].word != word)
        i = (i + 1) & (table.size - 1);
    return &table.cells[i];
}

static bool grow(void) {
    size_t old = table.size, size = old ? 2 * old : FIRST_CELLS;
    cell *cells = table.cells, *fresh = size <= MOST_CELLS ? calloc(size, sizeof *fresh) : NULL;
    if (!fresh) {
        if (!table.told) fprintf(stderr, "emulated device: races are looked for in a part only\n");
        table.told = true;
        return false;
    }
    table.cells = fresh;
    table.size = size;
    for (size_t i = 0; i < old; i++)
        if (cells[i].grid == table.grid) *lookup(cells[i].word) = cells[i];
    free(cells);
    return true;
}

/* NULL when the table is as large as it may get. */
static cell *cell_of(uint64_t word) {
    cell *c = lookup(word);
    if (c->grid == table.grid) return c;
    if (4 * (table.used + 1) > 3 * table.size) {
        if (!grow()) return NULL;
        c = lookup(word);
    }
    table.used++;
    memset(c, 0, sizeof *c);
    c->word = word;
    c->grid = table.grid;
    return c;
}

/* ---- races ---- */

static bool published(const access *a) {
    return table.released && table.released[a->block] > a->fence;
}

static bool conflict(const access *a, const access *b, bool shared) {
    if (!(a->bytes & b->bytes) || (a->atomic && b->atomic)) return false;
    if (a->block != b->block) /* shared memory is another block's by then */
        return !shared && !(table.acquired == b->block + 1 && published(a));
    if (a->thread == b->thread || a->block_epoch < b->block_epoch) return false;
    return a->thread / 32 != b->thread / 32 || a->warp_epoch >= b->warp_epoch;
}

static void report_race(cell *c, const access *other, const char *what, bool shared) {
    lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "race",
                  "%s of %s memory 0x%llx, not ordered with block %u thread %u", what,
                  shared ? "shared" : "global", (unsigned long long)c->word * 4, other->block,
                  other->thread);
    c->write.bytes = c->reads[0].bytes = c->reads[1].bytes = 0;
}

static void check_race(cell *c, const access *now, bool write, bool shared) {
    if (conflict(&c->write, now, shared)) {
        report_race(c, &c->write, write ? "write after write" : "read after write", shared);
    } else if (write) {
        for (int i = 0; i < 2; i++)
            if (conflict(&c->reads[i], now, shared))
                report_race(c, &c->reads[i], "write after read", shared);
    }
    if (write) {
        c->write = *now;
        return;
    }
    const access *last = &c->reads[0];
    bool same = last->thread == now->thread && last->block == now->block;
    if (last->bytes && !same) c->reads[1] = *last;
    c->reads[0] = *now;
}

/* Shared memory begins undefined with each block. */
static void check_shared(cell *c, const access *now, bool write) {
    if (c->written_block != now->block + 1) c->written = 0;
    c->written_block = now->block + 1;
    if (!write && (now->bytes & ~c->written)) {
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "uninitialised",
                      "read of shared memory 0x%llx, which the block has not written",
                      (unsigned long long)c->word * 4);
    }
    c->written |= now->bytes;
}

static void remember(uintptr_t p, size_t size, bool write, bool atomic, bool shared) {
    lm_emu_moment m = lm_emu_now();
    access now = {.block = m.block,
                  .block_epoch = m.block_epoch,
                  .warp_epoch = m.warp_epoch,
                  .thread = m.thread,
                  .fence = m.fence,
                  .atomic = atomic};
    for (uintptr_t word = p / 4; word * 4 < p + size; word++) {
        uintptr_t from = p > word * 4 ? p - word * 4 : 0, to = p + size - word * 4;
        now.bytes = (uint8_t)(0xfu << from & 0xfu >> (to < 4 ? 4 - to : 0));
        cell *c = cell_of(word);
        if (!c) return;
        if (shared) check_shared(c, &now, write);
        check_race(c, &now, write, shared);
    }
}

/* ---- places ---- */

static void refuse(CUresult error, const char *kind, bool write, uintptr_t p, size_t size) {
    char text[160];
    lm_emu_describe(p, text, sizeof text);
    lm_emu_report(error, kind, "%s of %zu bytes: %s", write ? "write" : "read", size, text);
}

static void check_global(uintptr_t p, size_t size, bool write) {
    const lm_emu_allocation *x = lm_emu_find(p);
    if (!x || !x->live || p < x->base || p + size > x->base + x->size ||
        x->device != lm_emu_active) {
        refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal-address", write,
               x && p < x->base + x->size && p >= x->base ? x->base + x->size : p, size);
        lm_emu_abandon();
    }
    const unsigned char *bad = x->shadow ? lm_emu_bad_byte(x, p, size, !write) : NULL;
    if (bad) {
        uintptr_t at = x->base + (uintptr_t)(bad - x->shadow);
        refuse(CUDA_ERROR_LAUNCH_FAILED, *bad & LM_EMU_USABLE ? "uninitialised" : "freed-block",
               write, at, size);
    }
    if (write || bad) lm_emu_mark_written(p, size);
}

/* Constant tables of the kernels: segments that nobody can write of the file that holds them. */
static int find_constants(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    uintptr_t p = *(uintptr_t *)found, here = (uintptr_t)&table;
    bool holds = false, ours = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD) continue;
        if (here >= low && here < low + segment->p_memsz) ours = true;
        if (p >= low && p < low + segment->p_memsz && !(segment->p_flags & PF_W)) holds = true;
    }
    if (ours && holds) *(uintptr_t *)found = 0;
    return ours;
}

static bool is_constant(uintptr_t p) {
    static uintptr_t last_page; /* of a constant: tables are read again and again */
    uintptr_t found = p, page = p / 4096;
    if (page == last_page) return true;
    dl_iterate_phdr(find_constants, &found);
    if (found == 0) last_page = page;
    return found == 0;
}

static void check_access(uintptr_t p, size_t size, bool write, bool atomic) {
    if (!lm_emu_running() || !lm_emu_here.self) return;
    if (lm_fiber_holds(p) == LM_FIBER_STACK || (!write && lm_emu_is_builtin(p))) return;
    lm_emu_shared kind = LM_EMU_NOT_SHARED;
    if (lm_emu_is_device(p)) {
        check_global(p, size, write);
    } else {
        kind = lm_emu_shared_kind(p, size);
        if (kind == LM_EMU_PAST_DYNAMIC) {
            lm_emu_report(CUDA_ERROR_ILLEGAL_ADDRESS, "illegal-address",
                          "%s of %zu bytes outside of dynamic shared memory",
                          write ? "write" : "read", size);
            lm_emu_abandon();
        }
        if (kind == LM_EMU_NOT_SHARED) {
            if (!write && is_constant(p)) return;
            refuse(CUDA_ERROR_ILLEGAL_ADDRESS, "host-memory", write, p, size);
            lm_emu_abandon();
        }
    }
    remember(p, size, write, atomic, kind != LM_EMU_NOT_SHARED);
}

/* documented: vectors and numbers are naturally aligned, or the kernel ends */
static void check_aligned(void *p, size_t size, bool write) {
    if ((uintptr_t)p % size && lm_emu_running() && lm_fiber_holds((uintptr_t)p) == LM_FIBER_NONE) {
        refuse(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned", write, (uintptr_t)p, size);
        lm_emu_abandon();
    }
    check_access((uintptr_t)p, size, write, false);
}

/* ---- what sched.c calls ---- */

static void begin(void) {
    if (!table.cells) grow();
    table.grid++;
    table.used = 0;
    table.acquired = 0;
    free(table.released);
    table.released = NULL;
}

static void on_atomic(uintptr_t p, size_t size, bool write) {
    check_access(p, size, write, true);
    if (!lm_emu_is_device(p)) return;
    lm_emu_moment m = lm_emu_now();
    table.acquired = m.block + 1;
    if (table.released) table.released[m.block] = m.fence;
}

static void on_fence(void) {
    if (!table.released) table.released = calloc(lm_emu_blocks(), sizeof *table.released);
}

static const lm_emu_checker checker = {begin, on_atomic, on_fence};

__attribute__((constructor)) static void link_in(void) {
    lm_emu_race = &checker;
}

/* ---- what the compiler calls ---- */

#define HOOK(name, check, size, write)                                                             \
    void name(void *p);                                                                            \
    void name(void *p) {                                                                           \
        check(p, size, write);                                                                     \
    }
#define HOOKS(size)                                                                                \
    HOOK(__tsan_read##size, check_aligned, size, false)                                            \
    HOOK(__tsan_write##size, check_aligned, size, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

/* Not a mistake of the kernel: neighbours that the compiler joins into one access. */
static void check_joined(void *p, size_t size, bool write) {
    check_access((uintptr_t)p, size, write, false);
}
#define JOINED(size)                                                                               \
    HOOK(__tsan_unaligned_read##size, check_joined, size, false)                                   \
    HOOK(__tsan_unaligned_write##size, check_joined, size, true)
JOINED(2)
JOINED(4)
JOINED(8)
JOINED(16)

void __tsan_read_range(void *p, long size);
void __tsan_read_range(void *p, long size) {
    check_access((uintptr_t)p, (size_t)size, false, false);
}

void __tsan_write_range(void *p, long size);
void __tsan_write_range(void *p, long size) {
    check_access((uintptr_t)p, (size_t)size, true, false);
}

#define NOTHING(name, parameters)                                                                  \
    void name parameters;                                                                          \
    void name parameters {                                                                         \
    }
NOTHING(__tsan_init, (void))
NOTHING(__tsan_func_entry, (__attribute__((unused)) void *caller))
NOTHING(__tsan_func_exit, (void))
