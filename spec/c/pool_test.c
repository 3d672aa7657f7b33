/* pool_test.c -- the worker threads: every piece runs once, whoever calls, nested, from two host
** threads, in a forked child, with any number of threads. */
#include "pool.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 3000

static long passed, failed;

typedef struct {
    unsigned char hits[MOST];
    int64_t n, grain;
    bool nested;
    int wrong; /* atomic */
} job;

static void note(job *j, bool fine) {
    if (!fine) __atomic_store_n(&j->wrong, 1, __ATOMIC_RELAXED);
}

static void hit(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    note(j, lo < hi && lo % j->grain == 0 && (hi % j->grain == 0 || hi == j->n));
    for (int64_t i = lo; i < hi; i++)
        j->hits[i]++;
    if (!j->nested) return;
    job inner = {.n = 100, .grain = 7};
    lm_parallel(0, inner.n, inner.grain, hit, &inner);
    for (int i = 0; i < 100; i++)
        note(j, inner.hits[i] == 1);
    note(j, !inner.wrong);
}

static bool runs(unsigned *seed) {
    *seed = *seed * 1103515245 + 12345;
    job j = {
        .n = *seed >> 16 & 2047, .grain = (*seed >> 8 & 31) + 1, .nested = (*seed & 1024) != 0};
    lm_parallel(0, j.n, j.grain, hit, &j);
    for (int64_t i = 0; i < MOST; i++)
        note(&j, j.hits[i] == (i < j.n));
    return !j.wrong;
}

static bool runs_often(int times, unsigned seed) {
    bool fine = true;
    for (int i = 0; i < times; i++)
        fine = runs(&seed) && fine;
    return fine;
}

static void check(bool fine, const char *what) {
    passed += fine;
    failed += !fine;
    if (!fine) printf("pool: %s\n", what);
}

static void *host(void *seed) {
    return runs_often(1000, *(unsigned *)seed) ? seed : NULL;
}

/* The child has none of the parent's workers and must not wait for them. */
static bool child_runs(unsigned seed) {
#ifdef __SANITIZE_THREAD__ /* allows no new threads in a child */
    return runs_often(200, seed);
#else
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(runs_often(200, seed) ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
#endif
}

int main(void) {
    check(lm_pool_threads() >= 1, "there is a thread");
    for (int threads = 1; threads <= 7; threads++) {
        lm_pool_set_threads(threads);
        check(lm_pool_threads() == threads, "the number of threads is the one asked for");
        check(runs_often(1000, (unsigned)threads), "each piece runs once");
    }
    lm_pool_set_threads(-5);
    check(lm_pool_threads() == 1, "there is always one");
    lm_pool_set_threads(4);

    unsigned seeds[3] = {11, 12, 13};
    pthread_t hosts[3];
    for (int i = 0; i < 3; i++)
        check(pthread_create(&hosts[i], NULL, host, &seeds[i]) == 0, "a host thread starts");
    check(runs_often(1000, 14), "each piece runs once beside other callers");
    for (unsigned i = 0; i < 10; i++)
        check(child_runs(i), "a child forked while others compute");
    for (int i = 0; i < 3; i++) {
        void *fine;
        pthread_join(hosts[i], &fine);
        check(fine != NULL, "each piece runs once for other callers");
    }
    usleep(2000); /* the workers are asleep */
    check(runs_often(100, 15), "sleeping workers wake");
    check(child_runs(16), "a child forked while workers sleep");
    printf("pool: %ld passed, %ld failed\n", passed, failed);
    return failed != 0;
}
