/* pool.h -- the worker threads of the process: locked, lazily started, dropped in a forked child.
** Layer: core; knows nothing of tensors. */
#ifndef lm_pool_h
#define lm_pool_h

#include <stdbool.h>
#include <stdint.h>

#define LM_POOL_MOST 256 /* threads */

/* Runs fn(ctx, lo, hi) over [0, n) cut into pieces of about `grain` (a multiple of it, but the
** last), on the caller's thread and the workers. Each thread starts on its own contiguous range and
** steals when done. Small work (n <= grain), a nested call and a second host thread run serially.
** fn must not fail: it notes failures in ctx. most: threads at most; 0: as many as there are. */
void lm_parallel(int most, int64_t n, int64_t grain, void (*fn)(void *ctx, int64_t lo, int64_t hi),
                 void *ctx);

/* Number of threads lm_parallel may use: LUMA_THREADS, else the CPUs this process may run on. */
int lm_pool_threads(void);
void lm_pool_set_threads(int n); /* the nearest of 1 .. LM_POOL_MOST */

/* Rooms for what lm_parallel does, of which a running fn takes one: n of them, from 0. */
typedef struct {
    int n;
    unsigned char taken[LM_POOL_MOST]; /* atomic */
} lm_slots;

/* As many as fn may run at once over so many tasks (at least 1), on `most` threads as above. */
void lm_slots_open(lm_slots *s, int most, int64_t tasks);
int lm_slots_take(lm_slots *s);
void lm_slots_give(lm_slots *s, int slot);

#endif
