/* random.c -- fills with random numbers on the CPU, in pieces that no thread count changes.
** Layer: kernels/cpu. */
#include "cpu.h"
#include "pool.h"
#include "tensor.h"

#define GRAIN 4096 /* elements that pay for another thread */

typedef struct {
    const luma_state *S;
    const lm_random *r;
    char *data;
    int stopped; /* atomic */
} fill_run;

static void fill_piece(void *ctx, int64_t lo, int64_t hi) {
    fill_run *run = ctx;
    const lm_level *level = lm_level_now();
    for (int64_t i = lo; i < hi; i += GRAIN) {
        if (lm_interrupted(run->S)) __atomic_store_n(&run->stopped, 1, __ATOMIC_RELAXED);
        if (__atomic_load_n(&run->stopped, __ATOMIC_RELAXED)) return;
        level->random->fill(run->r, run->data, i, i + GRAIN < hi ? i + GRAIN : hi, level->cast);
    }
}

luma_status lm_cpu_random(luma_state *S, lm_device *d, const lm_random *r) {
    (void)d;
    fill_run run = {S, r, lm_data(&r->out), 0};
    lm_parallel(S->threads, luma_numel(&r->out), GRAIN, fill_piece, &run);
    return run.stopped ? lm_fail_interrupted(S) : LUMA_OK;
}
