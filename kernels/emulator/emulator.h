/* emulator.h -- the emulated CUDA device as the rest of luma sees it: functions of libcuda,
** libcublas, libcurand and libnvrtc by name, and what only the emulator has. The same names are
** exported by the shared objects of the other flavours. Layer: kernels.
**
** Environment, read by cuInit:
**   LUMA_EMU_DEVICES=n          how many devices; 1
**   LUMA_EMU_MEMORY=bytes       of each; K, M, G may follow; 4G
**   LUMA_EMU_CC=75..            compute capability; 90
**   LUMA_EMU_PTX=7.0            newest PTX .version that loads; cuDriverGetVersion follows; 9.0
**   LUMA_EMU_ORDER=forward      how threads, blocks and streams take turns: forward, reverse,
**                               random, or warp (one warp runs ahead as far as it can); forward
**   LUMA_EMU_SEED=n             of random and warp; 1
**   LUMA_EMU_LAZY=0             streams run their work at the call; 1: when something waits for it
**   LUMA_EMU_GUARD=0            device memory can be touched by the host at any time; 1
**   LUMA_EMU_FAIL=function:n    the n-th call of a function fails; "any" counts all of them
**   LUMA_EMU_ABORT=1            abort at the first report
**   LUMA_EMU_STUB=1             launches and products are checked and do nothing: what the host's side costs
**   LUMA_EMU_COVERAGE=file      the names of all kernels that have run are added to it at exit */
#ifndef lm_emulator_h
#define lm_emulator_h

#include <stddef.h>

/* A function of the copy that the library has, or NULL. Besides the lists of cuda/api.h:
** luma_emu_block, luma_emu_fail, luma_emu_counts, luma_emu_last_report. */
void *lm_emulator_symbol(const char *name);
/* Why the emulated device cannot be used; NULL: it can, or was never asked for. */
const char *lm_emulator_problem(void);

/* Types of the functions that only the emulator has. */

/* For a caching allocator: the block that begins at p begins to live or is dead, in the order of
** the stream's work. Memory of a segment that is in no living block counts as freed. */
typedef void lm_emu_block_fn(unsigned long long p, size_t nbytes, int live, void *stream);

/* From now on the n-th call of a function fails ("any": of any function); n = 0: none. */
typedef void lm_emu_fail_fn(const char *function, long n);

typedef struct {
    long calls, launches, copies, synchronisations;
    long reports;                          /* rules broken */
    long failures;                         /* by luma_emu_fail and LUMA_EMU_FAIL */
    long allocations, pinned;              /* live */
    long streams, events, modules, others; /* live; others: handles of cuBLAS, cuRAND, NVRTC */
} lm_emu_figures;
typedef void lm_emu_counts_fn(lm_emu_figures *out);

/* "race: ..." or "" */
typedef const char *lm_emu_last_report_fn(void);

#endif
