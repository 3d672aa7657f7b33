/* pool.c -- worker threads: one job at a time, cut into pieces that threads claim. Layer: core.
**
** Every participant has a line with the pieces of its own range, packed into one word together with
** the number of the job: {job:32, end:16, next:16}. Claiming is a compare-and-swap of that word, so
** a claim can only succeed while its job is unfinished; the fields of the job, read before, were
** then those of the same job. The caller waits for claimed pieces, never for a thread. */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PIECES_PER_THREAD 64 /* enough to even out; more would only cost claims */
#define SPIN_NS 30000        /* waiting awake this long catches the next call of a loop */
#define STACK_SIZE (2u << 20)

typedef struct {
    _Alignas(64) _Atomic uint64_t range;
    _Atomic uint32_t job; /* the worker's signal: which job to join */
    _Atomic int asleep;
    pthread_mutex_t mutex; /* of its sleep; made anew with each worker */
    pthread_cond_t woken;
} lane;

static struct {
    _Atomic int busy;  /* held by the thread whose job runs */
    _Atomic int limit; /* threads to use; 0: not asked yet */
    int started;       /* workers that exist; under busy */
    bool prepared;     /* atfork handler is set; under busy */
    uint32_t job;      /* last one; under busy; never 0 */
    _Atomic(void (*)(void *, int64_t, int64_t)) fn;
    _Atomic(void *) ctx;
    _Atomic int64_t n, chunk;
    _Atomic int threads;
    _Alignas(64) _Atomic uint32_t done; /* pieces */
    lane lanes[LM_POOL_MOST];           /* [0] is the caller's */
} pool;

/* A field of the job; the order of things comes from ranges and signals. */
#define GET(field) atomic_load_explicit(&pool.field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&pool.field, value, memory_order_relaxed)

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Until the lane's signal differs from the job seen last. The flag and the signal are sequentially
** consistent: a caller that misses the flag has stored a signal that this check sees. */
static void sleep_while(lane *l, uint32_t seen) {
    pthread_mutex_lock(&l->mutex);
    atomic_store(&l->asleep, 1);
    while (atomic_load(&l->job) == seen)
        pthread_cond_wait(&l->woken, &l->mutex);
    atomic_store(&l->asleep, 0);
    pthread_mutex_unlock(&l->mutex);
}

static void signal_job(lane *l, uint32_t job) {
    atomic_store(&l->job, job);
    if (!atomic_load(&l->asleep)) return;
    pthread_mutex_lock(&l->mutex);
    pthread_cond_signal(&l->woken);
    pthread_mutex_unlock(&l->mutex);
}

/* The next piece of a lane; false when it has none of this job. */
static bool claim(lane *l, uint32_t job, int64_t *piece) {
    uint64_t word = atomic_load_explicit(&l->range, memory_order_acquire);
    do {
        *piece = (int64_t)(word & 0xffff);
        if (word >> 32 != job || *piece == (int64_t)(word >> 16 & 0xffff)) return false;
    } while (!atomic_compare_exchange_weak(&l->range, &word, word + 1));
    return true;
}

/* One participant's share: its own range, then what others have left. */
static void work(int self, uint32_t job) {
    void (*fn)(void *, int64_t, int64_t) = GET(fn);
    void *ctx = GET(ctx);
    int64_t n = GET(n), chunk = GET(chunk);
    int threads = GET(threads);
    uint32_t done = 0;
    for (int i = 0; i < threads; i++) {
        lane *l = &pool.lanes[(self + i) % threads];
        for (int64_t piece; claim(l, job, &piece); done++) {
            int64_t lo = piece * chunk;
            fn(ctx, lo, n - lo < chunk ? n : lo + chunk);
        }
    }
    if (done) atomic_fetch_add_explicit(&pool.done, done, memory_order_release);
}

static void *worker(void *arg) {
    lane *l = arg;
    uint32_t job, seen = 0;
    for (;; seen = job) {
        int64_t start = now_ns();
        for (int spin = 1; (job = atomic_load(&l->job)) == seen; spin++) {
            pause_cpu();
            if (spin % 32 == 0 && now_ns() - start > SPIN_NS) sleep_while(l, seen);
        }
        work((int)(l - pool.lanes), job);
    }
    return NULL;
}

/* Threads do not survive a fork; the child starts its own when it needs them. A job that another
** thread had under way is the parent's. */
static void after_fork(void) {
    for (int i = 0; i <= pool.started; i++) {
        atomic_store(&pool.lanes[i].range, 0);
        atomic_store(&pool.lanes[i].job, 0);
        atomic_store(&pool.lanes[i].asleep, 0);
    }
    pool.started = 0;
    atomic_store(&pool.busy, 0);
}

/* Tries to have `wanted` workers; says how many there are. They take no signals: the host's
** handlers run on its own threads. */
static int start_workers(int wanted) {
    sigset_t all, before;
    pthread_attr_t attr;
    if (!pool.prepared) pool.prepared = pthread_atfork(NULL, NULL, after_fork) == 0;
    if (!pool.prepared || pthread_attr_init(&attr)) return pool.started;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool.started < wanted; pool.started++) {
        pthread_t thread;
        lane *l = &pool.lanes[pool.started + 1];
        pthread_mutex_init(&l->mutex, NULL);
        pthread_cond_init(&l->woken, NULL);
        if (pthread_create(&thread, &attr, worker, l)) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return pool.started;
}

/* busy is held: hands the pieces to `threads` participants, works along, waits for what is claimed.
 */
static void run(int threads, int64_t pieces) {
    if (++pool.job == 0) pool.job = 1;
    uint64_t job = pool.job;
    SET(threads, threads);
    SET(done, 0);
    for (int i = 0; i < threads; i++) {
        uint64_t lo = (uint64_t)(pieces * i / threads), hi = (uint64_t)(pieces * (i + 1) / threads);
        atomic_store(&pool.lanes[i].range, job << 32 | hi << 16 | lo);
    }
    for (int i = 1; i < threads; i++)
        signal_job(&pool.lanes[i], pool.job);
    work(0, pool.job);
    for (int spin = 1; atomic_load(&pool.done) != pieces; spin++) {
        pause_cpu();
        if (spin % 512 == 0) sched_yield();
    }
}

void lm_parallel(int most, int64_t n, int64_t grain, void (*fn)(void *ctx, int64_t lo, int64_t hi),
                 void *ctx) {
    if (n <= 0) return;
    int threads = n <= grain ? 1 : lm_pool_threads();
    if (most > 0 && most < threads) threads = most;
    if (threads == 1 || atomic_exchange(&pool.busy, 1)) {
        fn(ctx, 0, n);
        return;
    }
    if (grain < 1) grain = 1;
    int64_t pieces = (n - 1) / grain + 1;
    if (threads > pieces) threads = (int)pieces;
    if (threads > pool.started + 1) threads = start_workers(threads - 1) + 1;
    int64_t chunk = ((pieces - 1) / (threads * PIECES_PER_THREAD) + 1) * grain;
    SET(fn, fn);
    SET(ctx, ctx);
    SET(n, n);
    SET(chunk, chunk);
    run(threads, (n - 1) / chunk + 1);
    atomic_store(&pool.busy, 0);
}

/* LUMA_THREADS when it is a positive number, else the CPUs this process may run on. */
static int default_threads(void) {
    const char *text = getenv("LUMA_THREADS");
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;
    if (text && (*end || n < 0)) n = 0;
#ifdef __linux__
    cpu_set_t set;
    if (n == 0 && sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
    if (n == 0) n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n < LM_POOL_MOST ? (int)n : LM_POOL_MOST;
}

int lm_pool_threads(void) {
    int limit = GET(limit), none = 0;
    if (limit) return limit;
    limit = default_threads();
    return atomic_compare_exchange_strong(&pool.limit, &none, limit) ? limit : none;
}

void lm_pool_set_threads(int n) {
    SET(limit, n < 1 ? 1 : n < LM_POOL_MOST ? n : LM_POOL_MOST);
}

void lm_slots_open(lm_slots *s, int most, int64_t tasks) {
    int threads = lm_pool_threads();
    if (most > 0 && most < threads) threads = most;
    *s = (lm_slots){.n = tasks < threads ? (int)tasks : threads};
}

int lm_slots_take(lm_slots *s) {
    for (int i = 0;; i = (i + 1) % s->n) {
        if (!__atomic_exchange_n(&s->taken[i], 1, __ATOMIC_ACQUIRE)) return i;
    }
}

void lm_slots_give(lm_slots *s, int slot) {
    __atomic_store_n(&s->taken[slot], 0, __ATOMIC_RELEASE);
}
