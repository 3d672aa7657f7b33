/* sched.c -- runs a grid, block after block, on one thread of the host. A thread of a block that
** never waits is a plain call; only when one waits the next begins on a stack of its own ("a fiber
** only for those who block"). Who runs next is the order's choice. Layer: kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parts.h"
#include "warp.h"
#if LM_EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* documented: compute capabilities from 7.5 to 12.0 */
enum { MAX_THREADS = 1024, MAX_WARPS = 32, LANES = 32 };

typedef enum { THREAD_NEW, THREAD_RUNNING, THREAD_WAITING, THREAD_READY, THREAD_DONE } thread_state;
typedef struct {
    lm_emu_thread self; /* first: lm_emu_here.self points at it */
    lm_fiber *fiber;    /* its stack while it waits */
    thread_state state;
    bool at_barrier;         /* waiting: for the block, or else for the warp */
    const lm_emu_site *site; /* where it waits */
} thread;

lm_emu_place lm_emu_here;

/* The grid that runs. */
static struct {
    lm_emu_program *program;
    const void *args;
    lm_emu_moment moment;
    bool running, dead, burst;
    lm_fiber *fiber; /* that runs now */
    uint64_t random;

    uint64_t blocks, block; /* block: how many have begun */
    uint64_t factor, first; /* of the permutation of blocks */

    unsigned threads, begun, alive;
    unsigned last;               /* the thread that ran last */
    unsigned order[MAX_THREADS]; /* in which threads begin */
    uint32_t ready_warps;        /* that have ready threads */
    uint32_t ready[MAX_WARPS];   /* their lanes */

    unsigned at_barrier, holds, held; /* arrived; true predicates now and of the barrier before */
    const thread *first_at_barrier;
} grid;
static thread threads[MAX_THREADS];
static lm_emu_warp warps[MAX_WARPS];

static thread *self(void) {
    return (thread *)(void *)lm_emu_here.self;
}

static uint32_t chance(uint32_t n) {
    return lm_emu_random(&grid.random) % n;
}

bool lm_emu_running(void) {
    return grid.running;
}

lm_emu_moment lm_emu_now(void) {
    lm_emu_moment m = grid.moment;
    m.warp_epoch = warps[lm_emu_here.self->linear / LANES].epoch;
    m.thread = (uint16_t)lm_emu_here.self->linear;
    return m;
}

bool lm_emu_is_builtin(uintptr_t p) {
    uintptr_t here = (uintptr_t)&lm_emu_here, list = (uintptr_t)threads;
    return (p >= here && p < here + sizeof lm_emu_here) || (p >= list && p < list + sizeof threads);
}

uint64_t lm_emu_blocks(void) {
    return grid.blocks;
}

void lm_emu_where(char *text, size_t length) {
    if (!grid.running || !lm_emu_here.self) {
        snprintf(text, length, "host");
        return;
    }
    lm_emu_dim3 b = lm_emu_here.block_index, t = lm_emu_here.self->index;
    snprintf(text, length, "kernel %s block (%u,%u,%u) thread (%u,%u,%u)",
             grid.program->kernel->name, b.x, b.y, b.z, t.x, t.y, t.z);
}

static lm_emu_dim3 position(uint64_t i, lm_emu_dim3 size) {
    lm_emu_dim3 p;
    p.x = (unsigned)(i % size.x);
    p.y = (unsigned)(i / size.x % size.y);
    p.z = (unsigned)(i / size.x / size.y);
    return p;
}

/* ---- shared memory ---- */

enum { POISON = 0xff, CANARY = 0xcb }; /* floats that are POISON are NaN */
/* documented: the largest opt-in size, of compute capability 9.0 */
enum { MAX_DYNAMIC = 227 * 1024, CANARY_BYTES = 64, GUARD_BYTES = 4096 };

extern unsigned char __start_lm_emu_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_lm_emu_shared[] __attribute__((weak, visibility("hidden")));

static struct {
    unsigned char *end;   /* of the buffer: a page that nobody may touch */
    unsigned char *start; /* of the running block's memory, which ends less than 16 bytes before */
    size_t size;
} dynamic;

static bool open_dynamic(size_t size) {
    if (!dynamic.end) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t room = (MAX_DYNAMIC + CANARY_BYTES + page - 1) / page * page;
        unsigned char *p =
            mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return false;
        mprotect(p + room, page, PROT_NONE);
        dynamic.end = p + room;
    }
#if LM_EMU_ASAN
    __asan_poison_memory_region(dynamic.end - MAX_DYNAMIC - CANARY_BYTES,
                                MAX_DYNAMIC + CANARY_BYTES);
#endif
    dynamic.start = dynamic.end - (size + 15) / 16 * 16;
    dynamic.size = size;
#if LM_EMU_ASAN
    __asan_unpoison_memory_region(dynamic.start, size);
#else
    memset(dynamic.start - CANARY_BYTES, CANARY, CANARY_BYTES);
    memset(dynamic.start + size, CANARY, (size_t)(dynamic.end - dynamic.start) - size);
#endif
    return true;
}

static void check_dynamic(void) {
#if !LM_EMU_ASAN
    for (const unsigned char *p = dynamic.start - CANARY_BYTES; p < dynamic.end; p++) {
        if (p == dynamic.start) p += dynamic.size;
        if (p < dynamic.end && *p != CANARY) {
            lm_emu_report(CUDA_ERROR_ILLEGAL_ADDRESS, "redzone",
                          "kernel %s wrote %s its %zu bytes of dynamic shared memory",
                          grid.program->kernel->name, p < dynamic.start ? "before" : "past",
                          dynamic.size);
            return;
        }
    }
#endif
}

void *lm_emu_dynamic_shared(void) {
    return dynamic.start;
}

lm_emu_shared lm_emu_shared_kind(uintptr_t address, size_t size) {
    uintptr_t low = (uintptr_t)__start_lm_emu_shared, high = (uintptr_t)__stop_lm_emu_shared;
    if (low && address >= low && address < high) return LM_EMU_STATIC;
    uintptr_t end = (uintptr_t)dynamic.end, start = (uintptr_t)dynamic.start;
    if (!end || address >= end + GUARD_BYTES || address < end - MAX_DYNAMIC - CANARY_BYTES)
        return LM_EMU_NOT_SHARED;
    if (address < start || address + size > start + dynamic.size) return LM_EMU_PAST_DYNAMIC;
    return LM_EMU_DYNAMIC;
}

/* Static shared memory is poison outside of the range that the kernel was seen to write; only that
** is poisoned again for each block. The range is learnt in a kernel's first launches and now and
** then later, so that kernels without shared memory pay nothing. */
static void poison_static(void) {
    lm_emu_program *p = grid.program;
    if (p->shared_low < p->shared_high)
        memset(__start_lm_emu_shared + p->shared_low, POISON, p->shared_high - p->shared_low);
}

static unsigned char poison[4096]; /* all of it: the static memory of all kernels is long */

static void learn_static(void) {
    lm_emu_program *p = grid.program;
    size_t size = (size_t)(__stop_lm_emu_shared - __start_lm_emu_shared);
    const unsigned char *s = __start_lm_emu_shared;
    if (!s || p->launches % 16 >= 4) return;
    size_t low = 0, high = size;
    while (high - low >= sizeof poison && memcmp(s + low, poison, sizeof poison) == 0)
        low += sizeof poison;
    while (low < high && s[low] == POISON)
        low++;
    while (high - low >= sizeof poison &&
           memcmp(s + high - sizeof poison, poison, sizeof poison) == 0)
        high -= sizeof poison;
    while (high > low && s[high - 1] == POISON)
        high--;
    if (low == high) return;
    if (p->shared_low == p->shared_high) p->shared_low = low;
    if (low < p->shared_low) p->shared_low = low;
    if (high > p->shared_high) p->shared_high = high;
}

static void poison_all_static(void) {
    static bool done;
    if (done) return;
    done = true;
    memset(poison, POISON, sizeof poison);
    if (__start_lm_emu_shared)
        memset(__start_lm_emu_shared, POISON,
               (size_t)(__stop_lm_emu_shared - __start_lm_emu_shared));
}

/* ---- orders ---- */

static void shuffle(unsigned *list, unsigned n) {
    for (unsigned i = n; i > 1; i--) {
        unsigned j = chance(i), t = list[i - 1];
        list[i - 1] = list[j];
        list[j] = t;
    }
}

/* In a burst warps begin in any order, their lanes in theirs. */
static void order_threads(void) {
    unsigned n = grid.threads, whole = (n + LANES - 1) / LANES, warp[MAX_WARPS], k = 0;
    for (unsigned i = 0; i < n; i++)
        grid.order[i] = lm_emu_cfg.order == LM_EMU_REVERSE ? n - 1 - i : i;
    if (lm_emu_cfg.order == LM_EMU_RANDOM && !grid.burst) shuffle(grid.order, n);
    if (!grid.burst) return;
    for (unsigned i = 0; i < whole; i++)
        warp[i] = i;
    shuffle(warp, whole);
    for (unsigned i = 0; i < whole; i++)
        for (unsigned j = warp[i] * LANES; j < (warp[i] + 1) * LANES && j < n; j++)
            grid.order[k++] = j;
}

/* The order of blocks: forward, reverse, or k -> (factor * k + first) % blocks. */
static void order_blocks(void) {
    grid.factor = 1;
    grid.first = 0;
    if (lm_emu_cfg.order < LM_EMU_RANDOM || grid.blocks < 2) return;
    uint64_t limit = grid.blocks < UINT32_MAX ? grid.blocks : UINT32_MAX, a, b, c;
    do {
        grid.factor = 1 + chance((uint32_t)limit - 1);
        for (a = grid.blocks, b = grid.factor; b; a = b, b = c)
            c = a % b;
    } while (a != 1);
    grid.first = chance((uint32_t)limit);
}

static uint64_t block_at(uint64_t k) {
    if (lm_emu_cfg.order == LM_EMU_REVERSE) return grid.blocks - 1 - k;
    if (lm_emu_cfg.order == LM_EMU_FORWARD) return k;
    __extension__ typedef unsigned __int128 u128;
    return (uint64_t)(((u128)grid.factor * k + grid.first) % grid.blocks);
}

static void set_ready(thread *t) {
    unsigned i = t->self.linear;
    t->state = THREAD_READY;
    grid.ready[i / LANES] |= 1u << (i % LANES);
    grid.ready_warps |= 1u << (i / LANES);
}

static thread *take_ready(unsigned warp, unsigned lane) {
    grid.ready[warp] &= ~(1u << lane);
    if (!grid.ready[warp]) grid.ready_warps &= ~(1u << warp);
    return &threads[warp * LANES + lane];
}

/* The first bit of a mask at or after i, around the end; downward: before. */
static unsigned next_bit(uint32_t mask, unsigned i, bool downward) {
    if (downward) {
        uint32_t below = i < 31 ? mask & ((1u << (i + 1)) - 1) : mask;
        return 31u - (unsigned)__builtin_clz(below ? below : mask);
    }
    uint32_t above = i < 32 ? mask & ~((1u << i) - 1) : 0;
    return (unsigned)__builtin_ctz(above ? above : mask);
}

/* Forward, ready threads take turns, each warp in its turn; in reverse the highest goes first and a
** warp goes on for as long as it can. */
static thread *next_in_line(void) {
    unsigned warp = grid.last / LANES, lane = grid.last % LANES;
    if (lm_emu_cfg.order == LM_EMU_REVERSE) {
        if (!grid.ready[warp]) warp = next_bit(grid.ready_warps, 31, true);
        return take_ready(warp, next_bit(grid.ready[warp], 31, true));
    }
    uint32_t rest = grid.ready[warp] & ~((2u << lane) - 1);
    if (!rest) {
        warp = next_bit(grid.ready_warps, (warp + 1) % 32, false);
        rest = grid.ready[warp];
    }
    return take_ready(warp, next_bit(rest, 0, false));
}

static thread *any_of_warp(unsigned warp) {
    return take_ready(warp, next_bit(grid.ready[warp], chance(LANES), false));
}

static thread *begin_thread(void) {
    return &threads[grid.order[grid.begun++]];
}

static bool next_block(void);

/* Every live thread waits, and nobody can release it. */
static void report_deadlock(void) {
    char list[160] = "";
    size_t used = 0;
    for (unsigned i = 0; i < grid.threads && used < sizeof list - 48; i++) {
        const thread *t = &threads[i];
        if (t->state != THREAD_WAITING) continue;
        const char *file = strrchr(t->site->file, '/');
        used += (size_t)snprintf(list + used, sizeof list - used, " %u at %s:%d (%s)", i,
                                 file ? file + 1 : t->site->file, t->site->line,
                                 t->at_barrier ? "block" : "warp");
    }
    lm_emu_here.self = NULL;
    lm_emu_report(CUDA_ERROR_LAUNCH_TIMEOUT, "deadlock",
                  "kernel %s block (%u,%u,%u): threads wait for ever:%s",
                  grid.program->kernel->name, lm_emu_here.block_index.x, lm_emu_here.block_index.y,
                  lm_emu_here.block_index.z, list);
    grid.dead = true;
}

/* The thread to run next; NULL when the grid has ended or died. */
static thread *pick(void) {
    for (;;) {
        if (grid.dead) return NULL;
        bool can_begin = grid.begun < grid.threads;
        if (grid.ready_warps) {
            bool random = lm_emu_cfg.order >= LM_EMU_RANDOM;
            unsigned warp = grid.last / LANES;
            if (grid.burst && grid.ready[warp]) return any_of_warp(warp);
            if (!can_begin || (random && !grid.burst && chance(8) == 0))
                return random ? any_of_warp(next_bit(grid.ready_warps, chance(32), false))
                              : next_in_line();
        }
        if (can_begin) return begin_thread();
        if (grid.alive) {
            report_deadlock();
            return NULL;
        }
        if (!next_block()) return NULL;
    }
}

/* ---- threads take turns ---- */

static void run_threads(void);

/* Runs t, on this fiber if it is of no more use to its thread. */
static void resume(thread *t, bool fiber_is_free) {
    lm_fiber *from = grid.fiber, *to;
    if (t) grid.last = t->self.linear;
    if (t && t->state == THREAD_NEW && fiber_is_free) {
        lm_emu_here.self = &t->self;
        return;
    }
    if (fiber_is_free && from != lm_fiber_main()) lm_fiber_give(from);
    if (!t) {
        to = lm_fiber_main();
    } else {
        lm_emu_here.self = &t->self;
        to = t->state == THREAD_NEW ? lm_fiber_take(run_threads) : t->fiber;
        if (!to) {
            lm_emu_report(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "memory", "no stack for a thread");
            grid.dead = true;
            to = lm_fiber_main();
        }
    }
    grid.fiber = to;
    lm_fiber_switch(from, to);
}

/* The running thread, which is waiting or ready, lets others run. */
static void wait_for_turn(void) {
    thread *me = self();
    me->fiber = grid.fiber;
    thread *next = pick();
    if (next == me)
        grid.last = me->self.linear;
    else
        resume(next, false);
    lm_emu_here.self = &me->self;
    me->state = THREAD_RUNNING;
}

static void release_barrier(void) {
    grid.held = grid.holds;
    grid.holds = grid.at_barrier = 0;
    grid.moment.block_epoch++;
    for (unsigned i = 0; i < grid.threads; i++)
        if (threads[i].state == THREAD_WAITING && threads[i].at_barrier) set_ready(&threads[i]);
}

/* documented: all threads of the block that have not exited; in conditional code only if all of
** them take the same branch */
int lm_emu_barrier(const lm_emu_site *site, int predicate) {
    thread *me = self();
    const thread *first = grid.first_at_barrier;
    if (grid.at_barrier == 0) {
        grid.first_at_barrier = me;
    } else if (first->site != site) {
        lm_emu_report(CUDA_ERROR_LAUNCH_FAILED, "barrier-divergence",
                      "waits at %s:%d, thread %u at %s:%d", site->file, site->line,
                      first->self.linear, first->site->file, first->site->line);
    }
    me->state = THREAD_WAITING;
    me->at_barrier = true;
    me->site = site;
    grid.holds += (unsigned)predicate;
    if (++grid.at_barrier == grid.alive) release_barrier();
    wait_for_turn();
    return (int)grid.held;
}

void lm_emu_warp_wait(const lm_emu_site *site) {
    thread *me = self();
    me->state = THREAD_WAITING;
    me->at_barrier = false;
    me->site = site;
    wait_for_turn();
}

void lm_emu_warp_ready(unsigned warp, uint32_t lanes) {
    for (; lanes; lanes &= lanes - 1) {
        thread *t = &threads[warp * LANES + (unsigned)__builtin_ctz(lanes)];
        if (t->state == THREAD_WAITING && !t->at_barrier) set_ready(t);
    }
}

lm_emu_warp *lm_emu_warp_now(void) {
    return &warps[lm_emu_here.self->linear / LANES];
}

static void thread_ends(void) {
    thread *me = self();
    me->state = THREAD_DONE;
    grid.alive--;
    lm_emu_warp_exit(me->self.linear / LANES, me->self.linear % LANES);
    if (grid.alive && grid.at_barrier == grid.alive) release_barrier();
}

/* The body of every fiber: thread after thread, block after block. */
static void run_threads(void) {
    lm_fiber_arrived();
    for (;;) {
        self()->state = THREAD_RUNNING;
        grid.program->kernel->start(grid.args);
        thread_ends();
        resume(pick(), true);
    }
}

void lm_emu_abandon(void) {
    grid.dead = true;
    lm_fiber *from = grid.fiber;
    grid.fiber = lm_fiber_main();
    lm_fiber_leave(from, grid.fiber);
    abort(); /* nobody returns to a fiber that was left */
}

void lm_emu_fence(void) {
    grid.moment.fence++;
    if (lm_emu_race) lm_emu_race->fence();
}

/* ---- atomics: one thread runs at a time, so that nothing has to be done but to check ---- */

/* documented: naturally aligned */
static void check_atomic(uintptr_t p, size_t size, bool write) {
    if (p % size) {
        lm_emu_report(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned",
                      "an atomic operation of %zu bytes at 0x%llx", size, (unsigned long long)p);
        lm_emu_abandon();
    }
    if (lm_emu_race) lm_emu_race->atomic(p, size, write);
}

void lm_emu_atomic_read(const volatile void *p, void *value, size_t size) {
    check_atomic((uintptr_t)p, size, false);
    memcpy(value, (const void *)(uintptr_t)p, size);
}

void lm_emu_atomic_write(volatile void *p, const void *value, size_t size) {
    check_atomic((uintptr_t)p, size, true);
    memcpy((void *)(uintptr_t)p, value, size);
}

/* ---- blocks ---- */

static bool next_block(void) {
    if (grid.block > 0 && dynamic.size > 0) check_dynamic();
    if (grid.block == grid.blocks) return false;
    uint64_t b = block_at(grid.block++);
    lm_emu_here.block_index = position(b, lm_emu_here.grid_size);
    grid.moment = (lm_emu_moment){.block = (uint32_t)b, .block_epoch = 1};
    if (lm_emu_cfg.order >= LM_EMU_RANDOM) order_threads();
    for (unsigned i = 0; i < grid.threads; i++)
        threads[i].state = THREAD_NEW;
    for (unsigned w = 0; w * LANES < grid.threads; w++) {
        unsigned lanes = grid.threads - w * LANES;
        lm_emu_warp_begin(&warps[w], w, lanes < LANES ? (1u << lanes) - 1 : ~0u);
        grid.ready[w] = 0;
    }
    grid.ready_warps = 0;
    grid.begun = grid.at_barrier = grid.holds = 0;
    grid.alive = grid.threads;
    grid.last = grid.order[0];
    poison_static();
    if (dynamic.size > 0) memset(dynamic.start, POISON, dynamic.size);
    return true;
}

static void prepare(lm_emu_program *program, const void *args, lm_emu_dim3 blocks,
                    lm_emu_dim3 block) {
    static uint64_t launches;
    memset(&grid, 0, offsetof(__typeof__(grid), order));
    grid.random = (lm_emu_cfg.seed * 0x9E3779B97F4A7C15u) ^ (++launches * 0xD1B54A32D192ED03u);
    if (!grid.random) grid.random = 1;
    grid.program = program;
    grid.args = args;
    grid.burst =
        lm_emu_cfg.order == LM_EMU_WARP || (lm_emu_cfg.order == LM_EMU_RANDOM && chance(2) == 0);
    grid.threads = block.x * block.y * block.z;
    grid.blocks = (uint64_t)blocks.x * blocks.y * blocks.z;
    lm_emu_here.grid_size = blocks;
    lm_emu_here.block_size = block;
    for (unsigned i = 0; i < grid.threads; i++) {
        threads[i].self.linear = i;
        threads[i].self.index = position(i, block);
    }
    order_blocks();
    order_threads();
}

bool lm_emu_run(lm_emu_program *program, const void *args, lm_emu_dim3 blocks, lm_emu_dim3 block,
                size_t shared) {
    prepare(program, args, blocks, block);
    poison_all_static();
    if (!open_dynamic(shared)) {
        lm_emu_report(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "memory", "no shared memory");
        return false;
    }
    if (lm_emu_race) lm_emu_race->begin();
    grid.fiber = lm_fiber_main();
    grid.running = true;
    next_block();
    resume(pick(), false);
    grid.running = false;
    lm_emu_here.self = NULL;
    if (grid.dead) lm_fiber_reset();
    learn_static();
    poison_static();
    program->launches++;
    return !grid.dead;
}
