/* fiber.c -- stacks that take turns on one thread of the host. The switch is written by hand for
** x86-64 and aarch64, where it costs some nanoseconds; elsewhere, or with LM_FIBER_UCONTEXT, it is
** swapcontext. AddressSanitizer is told of every switch. Layer: kernels. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "parts.h"

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(LM_FIBER_UCONTEXT)
#define LM_FIBER_UCONTEXT
#endif
#ifdef LM_FIBER_UCONTEXT
#include <ucontext.h>
#endif
#if LM_EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* One for each thread of the largest block and some; pages that are not touched cost nothing. */
enum { FIBERS = 1100, STACK_BYTES = 256 * 1024 };

struct lm_fiber {
    void *sp; /* where its registers lie while others run */
    char *stack;
    size_t size;
    struct lm_fiber *next; /* in the free list */
#if LM_EMU_ASAN
    void *fake; /* AddressSanitizer's second stack */
#endif
#ifdef LM_FIBER_UCONTEXT
    ucontext_t context;
#endif
};

static lm_fiber fibers[FIBERS], main_fiber, *free_fibers;
static int made;         /* fibers that have a stack */
static char *stacks;     /* guard page, stack, guard page, stack, ... */
static size_t page_size; /* of a guard */
static void (*begin)(void);

#ifndef LM_FIBER_UCONTEXT

/* Pushes what a function must preserve, stores the stack pointer in *save, continues at `to`. */
void lm_fiber_swap(void **save, void *to);
#if defined(__x86_64__)
enum { SAVED_WORDS = 8, ENTRY_WORD = 6 };
__asm__(".text\n"
        ".globl lm_fiber_swap\n"
        ".hidden lm_fiber_swap\n"
        ".type lm_fiber_swap, @function\n"
        "lm_fiber_swap:\n"
        "pushq %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        "pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "retq\n"
        ".size lm_fiber_swap, . - lm_fiber_swap\n");
#else
enum { SAVED_WORDS = 20, ENTRY_WORD = 11 };
__asm__(".text\n"
        ".globl lm_fiber_swap\n"
        ".hidden lm_fiber_swap\n"
        ".type lm_fiber_swap, %function\n"
        "lm_fiber_swap:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp]\n"
        "stp x21, x22, [sp, #16]\n"
        "stp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n"
        "stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n"
        "stp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n"
        "str x9, [x0]\n"
        "mov sp, x1\n"
        "ldp x19, x20, [sp]\n"
        "ldp x21, x22, [sp, #16]\n"
        "ldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\n"
        "ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n"
        "ldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n"
        "ret\n"
        ".size lm_fiber_swap, . - lm_fiber_swap\n");
#endif

/* A stack as if lm_fiber_swap had left it at the entry of `begin`. On x86-64 the return address
** takes the word under an aligned one, and a 0 above it ends backtraces. */
static void prepare(lm_fiber *f) {
    uintptr_t *top = (uintptr_t *)(void *)(f->stack + f->size) - SAVED_WORDS;
    for (int i = 0; i < SAVED_WORDS; i++)
        top[i] = 0;
    top[ENTRY_WORD] = (uintptr_t)begin;
    f->sp = top;
}
#else
static void prepare(lm_fiber *f) {
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->size;
    f->context.uc_link = NULL;
    makecontext(&f->context, begin, 0);
}
#endif

static bool reserve(void) {
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t step = STACK_BYTES + page_size;
    void *p = mmap(NULL, step * FIBERS + page_size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (p == MAP_FAILED) return false;
    stacks = p;
    return true;
}

lm_fiber *lm_fiber_take(void (*entry)(void)) {
    lm_fiber *f = free_fibers;
    if (f) {
        free_fibers = f->next;
        return f;
    }
    if (made == FIBERS || (!stacks && !reserve())) return NULL;
    f = &fibers[made];
    f->stack = stacks + (STACK_BYTES + page_size) * (size_t)made + page_size;
    f->size = STACK_BYTES;
    if (mprotect(f->stack, f->size, PROT_READ | PROT_WRITE)) return NULL;
    made++;
    (void)VALGRIND_STACK_REGISTER(f->stack, f->stack + f->size);
    begin = entry;
    prepare(f);
    return f;
}

void lm_fiber_give(lm_fiber *f) {
    f->next = free_fibers;
    free_fibers = f;
}

void lm_fiber_reset(void) {
    free_fibers = NULL;
    for (int i = 0; i < made; i++) {
#if LM_EMU_ASAN
        fibers[i].fake = NULL;
        __asan_unpoison_memory_region(fibers[i].stack, fibers[i].size);
#endif
        prepare(&fibers[i]);
        lm_fiber_give(&fibers[i]);
    }
}

lm_fiber *lm_fiber_main(void) {
    return &main_fiber;
}

lm_fiber_place lm_fiber_holds(uintptr_t address) {
    uintptr_t low = (uintptr_t)stacks, step = STACK_BYTES + page_size;
    if (!stacks || address < low || address >= low + step * FIBERS + page_size)
        return LM_FIBER_NONE;
    return (address - low) % step < page_size ? LM_FIBER_GUARD : LM_FIBER_STACK;
}

/* ---- switches ---- */

#if LM_EMU_ASAN
static lm_fiber *left;

static void announce(void **fake, lm_fiber *from, lm_fiber *to) {
    left = from;
    __sanitizer_start_switch_fiber(fake, to->stack, to->size);
}

/* Where the host's stack lies is learned when it is left. */
static void arrive(void *fake) {
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &stack, &size);
    if (left == &main_fiber) {
        main_fiber.stack = (char *)(uintptr_t)stack;
        main_fiber.size = size;
    }
}
#define ANNOUNCE(fake, from, to) announce(fake, from, to)
#define ARRIVE(fake) arrive(fake)
#else
#define ANNOUNCE(fake, from, to) ((void)0)
#define ARRIVE(fake) ((void)0)
#endif

static void swap(lm_fiber *from, lm_fiber *to) {
#ifdef LM_FIBER_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    lm_fiber_swap(&from->sp, to->sp);
#endif
}

void lm_fiber_arrived(void) {
    ARRIVE(NULL);
}

void lm_fiber_switch(lm_fiber *from, lm_fiber *to) {
    ANNOUNCE(&from->fake, from, to);
    swap(from, to);
    ARRIVE(from->fake);
}

void lm_fiber_leave(lm_fiber *from, lm_fiber *to) {
    ANNOUNCE(NULL, from, to);
    swap(from, to);
}
