/* crowd.c -- the caches of all states that have one on the same device: whoever finds no memory takes
** what the others keep for nothing. Layer: core. */
#include "cache_parts.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* About so long anybody waits for a cache whose owner is at work in it: for one whose callback waits
** for this very state it would be for ever. */
#define PATIENCE_S 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lm_cache *crowd;

/* Nobody is in the cache of another when a process forks. */
static void hold(void) {
    pthread_mutex_lock(&lock);
}

static void go(void) {
    pthread_mutex_unlock(&lock);
}

void lm_crowd_join(lm_cache *c) {
    static bool watching;
    pthread_mutex_lock(&lock);
    if (!watching) watching = pthread_atfork(hold, go, go) == 0;
    c->crowd_next = crowd;
    crowd = c;
    pthread_mutex_unlock(&lock);
}

void lm_crowd_leave(lm_cache *c) {
    pthread_mutex_lock(&lock);
    for (lm_cache **at = &crowd; *at; at = &(*at)->crowd_next)
        if (*at == c) {
            *at = c->crowd_next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static inline bool try_begin(lm_device *d) {
    return !__atomic_exchange_n(&d->cache_busy, true, __ATOMIC_ACQUIRE);
}

void lm_crowd_begin(lm_device *d) {
    while (!try_begin(d))
        sched_yield();
}

void lm_crowd_end(lm_device *d) {
    __atomic_store_n(&d->cache_busy, false, __ATOMIC_RELEASE);
}

static bool try_long(lm_device *d) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (!try_begin(d)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > PATIENCE_S) return false;
        sched_yield();
    }
    return true;
}

/* Its state does not hear of it. */
static void take_idle(lm_cache *c) {
    luma_memory_fn *notify = c->notify;
    c->notify = NULL;
    lm_cache_release_idle(c);
    c->notify = notify;
}

/* The others stay held until the memory is taken: they would have it back before c sees it. Nobody
** waits for the lock while its own cache is held, so all who are waited for come to an end. */
char *lm_crowd_alloc(lm_cache *c, size_t size) {
    lm_device *d = c->device;
    bool alone = true;
    lm_crowd_end(d);
    pthread_mutex_lock(&lock);
    lm_crowd_begin(d);
    for (lm_cache *o = crowd; o; o = o->crowd_next) {
        bool beside = o != c && o->device->ops == d->ops && o->device->index == d->index;
        o->held = beside && try_long(o->device);
        if (beside) alone = false;
        if (o->held && !o->budget) take_idle(o); /* a budget is its state's alone */
    }
    char *p = alone ? NULL : lm_cache_raw(c, size);
    for (lm_cache *o = crowd; o; o = o->crowd_next)
        if (o->held) lm_crowd_end(o->device);
    pthread_mutex_unlock(&lock);
    return p;
}
