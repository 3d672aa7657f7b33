/* parts.h -- what the parts of the emulated device know of each other. Layer: kernels.
**
** A rule that the emulator checks says where it comes from: "documented" is NVIDIA's reference of
** the driver API, the CUDA C programming guide, the PTX ISA or the guide of the library; "measured"
** was seen on a driver or library; "ours" is stricter than either, to find mistakes that real
** devices forgive by chance.
**
** One lock serves everything: functions of the API take it for as long as they run, so that the
** parts below see one thread at a time. */
#ifndef lm_emu_parts_h
#define lm_emu_parts_h

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/api.h"
#include "emulator.h"
#include "shim.h"

#if defined(__SANITIZE_ADDRESS__)
#define LM_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LM_EMU_ASAN 1
#endif
#endif
#ifndef LM_EMU_ASAN
#define LM_EMU_ASAN 0
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_STACK_REGISTER(low, high) 0
#endif

/* Functions of the API: exported by the shared objects, inside the library otherwise. */
#ifdef LM_EMU_SHARED
#define LM_EMU_API __attribute__((visibility("default")))
#else
#define LM_EMU_API LM_EMU_INSIDE
#endif
#define LM_EMU_DECLARE(_, need, result, name, parameters) LM_EMU_API result name parameters;
LM_CUDA_API(LM_EMU_DECLARE, _)
LM_CUBLAS_API(LM_EMU_DECLARE, _)
LM_CURAND_API(LM_EMU_DECLARE, _)
LM_NVRTC_API(LM_EMU_DECLARE, _)
#undef LM_EMU_DECLARE
LM_EMU_API lm_emu_block_fn luma_emu_block;
LM_EMU_API lm_emu_fail_fn luma_emu_fail;
LM_EMU_API lm_emu_counts_fn luma_emu_counts;
LM_EMU_API lm_emu_last_report_fn luma_emu_last_report;

/* ---- config.c: environment, lock, reports, injected failures ---- */

enum { LM_EMU_MAX_DEVICES = 16 };
typedef enum { LM_EMU_FORWARD, LM_EMU_REVERSE, LM_EMU_RANDOM, LM_EMU_WARP } lm_emu_order;
typedef struct {
    int devices, cc, ptx; /* 90 is compute capability 9.0 or PTX 9.0 */
    lm_emu_order order;
    uint64_t seed, memory; /* memory: bytes of each device */
    bool lazy, guard, abort, stub;
} lm_emu_config;
extern lm_emu_config lm_emu_cfg;
extern lm_emu_figures lm_emu_count;

/* Reads the environment; false when a value makes no sense (printed). */
bool lm_emu_config_read(void);

/* Holds the lock until the end of the scope. */
#define LM_EMU_LOCKED __attribute__((cleanup(lm_emu_unlock), unused)) int locked_ = lm_emu_lock()
int lm_emu_lock(void);
void lm_emu_unlock(int *unused);
/* Clean-up of a forked child: nobody holds the lock there. */
void lm_emu_lock_forked(void);

/* Counts the call of an API function; true when it has to fail. */
bool lm_emu_injected(const char *function);

/* A rule was broken: counted, kept for luma_emu_last_report, printed. error, unless 0, becomes what
** every later call in the context gives. */
void lm_emu_report(CUresult error, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* xorshift; a state of its own for each user. */
uint32_t lm_emu_random(uint64_t *state);

/* ---- fiber.c: stacks ---- */

typedef struct lm_fiber lm_fiber;
/* A stack on which `entry` begins, or one that was given back within `entry`: then lm_fiber_switch
** returns there. NULL when there is no memory. */
lm_fiber *lm_fiber_take(void (*entry)(void));
void lm_fiber_give(lm_fiber *f);
void lm_fiber_switch(lm_fiber *from, lm_fiber *to);
/* First thing on a new stack. */
void lm_fiber_arrived(void);
/* The stack of the calling thread. */
lm_fiber *lm_fiber_main(void);
/* Leaves a fiber that will never run again. */
void lm_fiber_leave(lm_fiber *from, lm_fiber *to);
/* All fibers are free again, whatever they were doing. */
void lm_fiber_reset(void);
typedef enum { LM_FIBER_NONE, LM_FIBER_STACK, LM_FIBER_GUARD } lm_fiber_place;
lm_fiber_place lm_fiber_holds(uintptr_t address);

/* ---- sched.c: grids ---- */

/* What the runtime keeps of a kernel from launch to launch. */
typedef struct {
    const lm_emu_kernel *kernel;
    unsigned launches;
    size_t shared_low, shared_high; /* of the static shared memory, what it was seen to write */
} lm_emu_program;

/* Runs a grid to its end; false when it died (a report says why). args are the kernel's for as long
** as it runs. */
bool lm_emu_run(lm_emu_program *program, const void *args, lm_emu_dim3 grid, lm_emu_dim3 block,
                size_t shared);
bool lm_emu_running(void);
/* "kernel add_f32 block (0,0,0) thread (3,0,0)"; "host" outside of kernels. */
void lm_emu_where(char *text, size_t length);
/* Ends the running grid from inside a kernel; does not return. */
void lm_emu_abandon(void) __attribute__((noreturn));

/* Who runs, for the race detector. */
typedef struct {
    uint32_t block;         /* linear */
    uint32_t block_epoch;   /* barriers that the block has passed */
    uint32_t warp_epoch;    /* meetings of the warp */
    uint16_t thread, fence; /* fence: fences of the block */
} lm_emu_moment;
lm_emu_moment lm_emu_now(void);
uint64_t lm_emu_blocks(void);              /* of the grid */
bool lm_emu_is_builtin(uintptr_t address); /* threadIdx and the like */

typedef enum {
    LM_EMU_NOT_SHARED,
    LM_EMU_STATIC,
    LM_EMU_DYNAMIC,
    LM_EMU_PAST_DYNAMIC
} lm_emu_shared;
lm_emu_shared lm_emu_shared_kind(uintptr_t address, size_t size);

/* ---- memory.c: device memory ---- */

typedef struct lm_emu_allocation {
    uint64_t low, high; /* whole pages */
    uint64_t base;      /* what cuMemAlloc gave */
    size_t size;
    int device;
    unsigned long number;
    bool live, open;       /* open: the device view can be touched */
    unsigned char *shadow; /* race flavour, a byte for each: LM_EMU_USABLE, LM_EMU_WRITTEN */
    struct lm_emu_allocation *next_open;
} lm_emu_allocation;
enum { LM_EMU_USABLE = 1, LM_EMU_WRITTEN = 2 };

bool lm_emu_memory_open(void);
uint64_t lm_emu_memory_alloc(int device, size_t nbytes); /* 0: none left */
CUresult lm_emu_memory_free(uint64_t p);
void lm_emu_memory_reset(int device); /* frees everything */
size_t lm_emu_memory_used(int device);

bool lm_emu_is_device(uint64_t p); /* an address of the arena, allocated or not */
lm_emu_allocation *lm_emu_find(uint64_t p);
/* The same bytes, always open, for copies. */
void *lm_emu_alias(uint64_t p);
/* Is all of it in one live allocation of the device? Reports otherwise. */
bool lm_emu_range(int device, uint64_t p, size_t nbytes, const char *what);
/* "16 bytes past the end of allocation 3 of 400 bytes" */
void lm_emu_describe(uint64_t p, char *text, size_t length);
/* What copies and libraries do with bytes that lm_emu_range found. In the race flavour blocks that a
** caching allocator took back are caught, with asan too, and what was never written is known: a
** product may not read it, a copy carries it along. */
bool lm_emu_check_usable(uint64_t p, size_t nbytes, const char *what);
bool lm_emu_check_written(uint64_t p, size_t nbytes, const char *what);
void lm_emu_mark_written(uint64_t p, size_t nbytes);
void lm_emu_copy_marks(uint64_t dst, uint64_t src, size_t nbytes);
/* The first byte of an access that is not usable or, if read, not written; NULL if all are fine. */
const unsigned char *lm_emu_bad_byte(const lm_emu_allocation *x, uint64_t p, size_t n, bool read);
void lm_emu_memory_block(uint64_t p, size_t nbytes, bool live);

/* Kernels of the device run between the two; canaries are checked, allocations closed again. */
void lm_emu_memory_enter(int device);
void lm_emu_memory_check(const char *kernel);
void lm_emu_memory_leave(void);

/* ---- race.c (race flavour): set when its hooks are linked in ---- */

typedef struct {
    void (*begin)(void); /* of a grid */
    void (*atomic)(uintptr_t address, size_t size, bool write);
    void (*fence)(void);
} lm_emu_checker;
extern const lm_emu_checker *lm_emu_race; /* NULL in the other flavours */

/* ---- stream.c: work that waits ---- */

struct CUctx_st {
    int device, references;
    CUresult error; /* sticky: what every call gives from now on */
    struct CUstream_st *null_stream;
};
struct CUctx_st *lm_emu_context(int device);
/* Sets the sticky error of the device that is at work, if it has none. */
void lm_emu_fault(CUresult error);
extern int lm_emu_active; /* the device that is at work, or was last */

/* Work of a stream that is no copy, launch or event: fn(blob), then free(blob). */
CUresult lm_emu_enqueue_call(CUstream stream, void (*fn)(void *blob), void *blob);
CUresult lm_emu_enqueue_launch(CUstream stream, lm_emu_program *program, const void *args,
                               lm_emu_dim3 grid, lm_emu_dim3 block, size_t shared);
void lm_emu_drain_device(int device);                      /* all its streams, to the end */
bool lm_emu_stream_of(CUstream stream, CUcontext context); /* live, and of this context? */
/* Is a copy pending that reads or writes these bytes of the host? */
bool lm_emu_pending_copy(const void *p, size_t nbytes);
void lm_emu_streams_reset(CUcontext context); /* its streams and events die */

/* ---- driver.c ---- */

/* false while the process ends and in a forked child */
bool lm_emu_works(void);

typedef enum { LM_EMU_ANY_TIME, LM_EMU_INITIALISED, LM_EMU_IN_CONTEXT } lm_emu_needs;
/* The checks that begin every function of the driver API. */
CUresult lm_emu_enter(const char *function, lm_emu_needs needs);
#define LM_EMU_ENTER(needs)                                                                        \
    LM_EMU_LOCKED;                                                                                 \
    do {                                                                                           \
        CUresult refused_ = lm_emu_enter(__func__, (needs));                                       \
        if (refused_ != CUDA_SUCCESS) return refused_;                                             \
    } while (0)
/* That of the calling thread, or NULL. */
CUcontext lm_emu_current(void);

int lm_emu_optin_shared(void); /* bytes of dynamic shared memory that a kernel may ask for */

/* ---- module.c ---- */

void lm_emu_modules_reset(CUcontext context);
/* Adds the names of the kernels that have run to the file that the environment names. */
void lm_emu_modules_cover(void);

/* ---- table.c ---- */

const lm_emu_kernel *lm_emu_kernel_find(const char *name);

#endif
