/* cuda_memory_test.c -- memory of CUDA devices on the emulated one, from C: other streams, another
** device, allocations without a tensor, and mistakes that the emulator must see although blocks lie in
** segments. Each part runs in a process of its own.
**
** luma_cuda_memory_test [file]: the mistakes are also made on the flavour of the emulator in file,
** which checks every byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache.h"
#include "check.h"
#include "cuda/cuda.h"
#include "emulator/emulator.h"

#define N 3000 /* elements */

/* ---- a state with devices ---- */

typedef struct {
    luma_state *S;
    lm_device *d;
    lm_cuda *c;
    const lm_driver *driver;
    CUstream other; /* that luma knows nothing of */
    float *host;    /* pinned, N */
} world;

static void world_open(world *w) {
    void *p = NULL;
    w->S = luma_open();
    if (!w->S) exit(2);
    if (lm_device_find(w->S, "cuda:0", &w->d)) {
        printf("%s\n", luma_message(w->S));
        exit(2);
    }
    w->c = lm_cuda_of(w->d);
    w->driver = w->c->driver;
    w->driver->cuCtxPushCurrent_v2(w->c->context);
    w->driver->cuStreamCreate(&w->other, CU_STREAM_NON_BLOCKING);
    w->driver->cuMemAllocHost_v2(&p, N * sizeof(float));
    w->host = p;
}

static lm_emu_figures counts(const world *w) {
    lm_emu_figures figures;
    lm_emu_counts_fn *get;
    memcpy(&get, &w->driver->emu_counts, sizeof get);
    get(&figures);
    return figures;
}

/* Nothing is left on the device, and no rule was broken. */
static void world_close(world *w) {
    w->driver->cuStreamSynchronize(w->other);
    w->driver->cuStreamDestroy_v2(w->other);
    w->driver->cuMemFreeHost(w->host);
    w->driver->cuCtxPopCurrent_v2(NULL);
    luma_close(w->S);
    lm_emu_figures f = counts(w);
    CHECK(f.allocations == 0 && f.pinned == 0 && f.streams == 0 && f.events == 0);
    CHECK(f.reports == 0);
}

static luma_tensor full(world *w, const char *device, double value) {
    luma_tensor x = LUMA_NEW;
    lm_device *d;
    CHECK(lm_device_find(w->S, device, &d) == LUMA_OK);
    CHECK(lm_tensor_new(w->S, &x, d, LUMA_FLOAT32, 1, (int64_t[]){N}) == LUMA_OK);
    CHECK(luma_fill(w->S, &x, (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = value}) == LUMA_OK);
    return x;
}

static CUdeviceptr at(const luma_tensor *x) {
    return (CUdeviceptr)(uintptr_t)x->storage->data;
}

/* Queues a copy of x to the host on the other stream, behind all that luma has queued. */
static void read_elsewhere(world *w, const luma_tensor *x) {
    CUevent event;
    CHECK(w->driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    CHECK(w->driver->cuEventRecord(event, w->c->stream) == CUDA_SUCCESS);
    CHECK(w->driver->cuStreamWaitEvent(w->other, event, 0) == CUDA_SUCCESS);
    CHECK(w->driver->cuMemcpyDtoHAsync_v2(w->host, at(x), N * sizeof(float), w->other) ==
          CUDA_SUCCESS);
    w->driver->cuEventDestroy_v2(event);
}

static bool host_is(const world *w, float value) {
    bool same = true;
    for (int i = 0; i < N; i++)
        same = same && w->host[i] >= value && w->host[i] <= value;
    return same;
}

/* ---- what must hold ---- */

static void other_stream(world *w) {
    for (int round = 0; round < 5; round++) {
        luma_tensor x = full(w, "cuda:0", 1);
        CUdeviceptr where = at(&x);
        read_elsewhere(w, &x);
        CHECK(luma_record_stream(w->S, &x, "cuda:0", w->other) == LUMA_OK);
        luma_release(w->S, &x);
        lm_cache_figures f;
        lm_cache_stats(w->d->cache, &f);
        CHECK(f.allocation[LM_POOL_ALL].current == 0 && f.active[LM_POOL_ALL].current == 1);
        luma_tensor y = full(w, "cuda:0", 2);
        CHECK(at(&y) != where);
        CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
        CHECK(w->driver->cuStreamSynchronize(w->other) == CUDA_SUCCESS);
        CHECK(host_is(w, 1));
        luma_tensor z = full(w, "cuda:0", 3);
        CHECK(at(&z) == where);
        luma_release(w->S, &y);
        luma_release(w->S, &z);
        CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
    }
    CHECK(w->c->nevents == 1); /* used again and again */
    luma_tensor x = full(w, "cuda:0", 1);
    read_elsewhere(w, &x);
    CHECK(luma_record_stream(w->S, &x, "cuda:0", w->other) == LUMA_OK);
    luma_release(w->S, &x); /* the state closes while it is awaited */
}

/* A block that another device still reads. */
static void other_device(world *w) {
    lm_device *e;
    CHECK(lm_device_find(w->S, "cuda:1", &e) == LUMA_OK);
    lm_cuda *receiver = lm_cuda_of(e);
    luma_tensor x = full(w, "cuda:0", 1), copy = full(w, "cuda:1", 0);
    CUdeviceptr where = at(&x);
    CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
    w->driver->cuCtxPushCurrent_v2(receiver->context);
    CHECK(w->driver->cuMemcpyPeerAsync(at(&copy), receiver->context, where, w->c->context,
                                       N * sizeof(float), receiver->stream) == CUDA_SUCCESS);
    w->driver->cuCtxPopCurrent_v2(NULL);
    CHECK(luma_record_stream(w->S, &x, "cuda:1", NULL) == LUMA_OK);
    luma_release(w->S, &x);
    luma_tensor y = full(w, "cuda:0", 2);
    CHECK(at(&y) != where);
    CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
    CHECK(lm_cuda_synchronize(w->S, e) == LUMA_OK);
    luma_tensor z = full(w, "cuda:0", 3);
    CHECK(at(&z) == where);
    float sum = 0;
    CHECK(lm_cuda_download(w->S, e, w->host, copy.storage->data, N * sizeof(float)) == LUMA_OK);
    for (int i = 0; i < N; i++)
        sum += w->host[i];
    CHECK(sum >= N && sum <= N);
    luma_release(w->S, &y);
    luma_release(w->S, &z);
    luma_release(w->S, &copy);
}

static void raw_memory(world *w) {
    void *p = w, *q, *base = NULL;
    size_t nbytes = 0;
    CHECK(luma_raw_alloc(w->S, "cuda:0", 0, &p) == LUMA_OK && p == NULL);
    CHECK(luma_raw_alloc(w->S, "cuda:0", 1000, &p) == LUMA_OK && p != NULL);
    CHECK(luma_raw_alloc_with_stream(w->S, "cuda:0", 1000, w->other, &q) == LUMA_OK);
    CUdeviceptr d = (CUdeviceptr)(uintptr_t)q;
    CHECK(w->driver->cuMemsetD8Async(d, 7, 1000, w->other) == CUDA_SUCCESS);
    CHECK(w->driver->cuMemcpyDtoHAsync_v2(w->host, d, 1000, w->other) == CUDA_SUCCESS);
    CHECK(w->driver->cuStreamSynchronize(w->other) == CUDA_SUCCESS);
    CHECK(((const char *)w->host)[999] == 7);
    CHECK(luma_base_allocation(w->S, "cuda:0", q, &base, &nbytes) == LUMA_OK);
    CHECK(base == q && nbytes == 2u << 20);
    CHECK(luma_raw_delete(w->S, "cuda:0", p) == LUMA_OK);
    CHECK(luma_raw_delete(w->S, "cuda:0", q) == LUMA_OK);
    CHECK(luma_raw_delete(w->S, "cuda:0", q) == LUMA_ERR_ARGUMENT);
    CHECK(strstr(luma_message(w->S), "invalid device pointer") != NULL);
    CHECK(luma_raw_alloc(w->S, "cuda:0", (size_t)1 << 40, &q) == LUMA_ERR_MEMORY);
    CHECK(strstr(luma_message(w->S), "out of memory on cuda:0: tried to allocate 1.00 TiB") !=
          NULL);
}

/* A driver without events: whoever asks for one waits for the stream instead. */
static void no_events(world *w) {
    lm_emu_fail_fn *fail;
    memcpy(&fail, &w->driver->emu_fail, sizeof fail);
    const char *calls[] = {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize"};
    for (int i = 0; i < 4; i++) {
        luma_tensor x = full(w, "cuda:0", 1);
        read_elsewhere(w, &x);
        CHECK(luma_record_stream(w->S, &x, "cuda:0", w->other) == LUMA_OK);
        if (i == 3) w->driver->cuStreamSynchronize(w->other);
        fail(calls[i], 1);
        luma_release(w->S, &x);
        luma_tensor y = full(w, "cuda:0", 2);
        if (i == 3) lm_cache_empty(w->d->cache);
        fail("any", 0);
        if (i < 3) {
            CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
            CHECK(w->driver->cuStreamSynchronize(w->other) == CUDA_SUCCESS);
            CHECK(host_is(w, 1));
        }
        luma_release(w->S, &y);
        CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
    }
}

/* ---- mistakes ---- */

static int64_t reports(const world *w) {
    w->driver->cuStreamSynchronize(w->c->stream);
    w->driver->cuStreamSynchronize(w->other);
    return counts(w).reports;
}

/* Memory that another stream reads is given to the next tensor. */
static void forgotten_stream(world *w) {
    luma_tensor x = full(w, "cuda:0", 1);
    read_elsewhere(w, &x);
    luma_release(w->S, &x);
    luma_tensor y = full(w, "cuda:0", 2);
    CHECK(lm_cuda_synchronize(w->S, w->d) == LUMA_OK);
    w->driver->cuStreamSynchronize(w->other);
    CHECK(!host_is(w, 1));
    luma_release(w->S, &y);
}

static void past_the_end(world *w) {
    luma_tensor x = full(w, "cuda:0", 1), y = full(w, "cuda:0", 2);
    CHECK(reports(w) == 0);
    w->driver->cuMemsetD8Async(at(&x), 0, N * sizeof(float) + 1, w->c->stream);
    CHECK(reports(w) > 0);
    luma_release(w->S, &x);
    luma_release(w->S, &y);
}

static void after_release(world *w) {
    luma_tensor x = full(w, "cuda:0", 1);
    CUdeviceptr where = at(&x);
    luma_release(w->S, &x);
    CHECK(reports(w) == 0);
    w->driver->cuMemcpyDtoHAsync_v2(w->host, where, 100, w->c->stream);
    CHECK(reports(w) > 0);
}

static void never_written(world *w) {
    luma_tensor x = full(w, "cuda:0", 1), y = LUMA_NEW;
    luma_release(w->S, &x);
    CHECK(lm_tensor_new(w->S, &y, w->d, LUMA_FLOAT32, 1, (int64_t[]){N}) == LUMA_OK);
    CHECK(reports(w) == 0);
    w->driver->cuMemcpyDtoHAsync_v2(w->host, at(&y), 100, w->c->stream);
    w->driver->cuStreamSynchronize(w->c->stream);
    CHECK(reports(w) > 0 || !host_is(w, 1));
    luma_release(w->S, &y);
}

/* ---- running ---- */

/* A mistake ends its process as it may. */
static void in_child(void (*part)(world *), const char *name, bool mistake,
                     const char *const *environment) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        world w;
        failures = 0;
        setenv("LUMA_CUDA", "emulate", 1);
        setenv("LUMA_EMU_DEVICES", "2", 1);
        setenv("LUMA_EMU_MEMORY", "64M", 1);
        for (; environment && *environment; environment += 2)
            setenv(environment[0], environment[1], 1);
        if (mistake && !freopen("/dev/null", "w", stderr)) exit(3);
        world_open(&w);
        part(&w);
        if (!mistake) world_close(&w);
        fflush(stdout);
        _exit(failures > 0);
    }
    int status = 0;
    checks++;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status))
        return;
    failures++;
    printf("%s %s%s fails\n", name, environment && *environment ? environment[0] : "",
           mistake ? ", a mistake," : "");
}
#define RIGHT(part, ...) in_child(part, #part, false, (const char *const[]){__VA_ARGS__, NULL})
#define WRONG(part, ...) in_child(part, #part, true, (const char *const[]){__VA_ARGS__, NULL})

int main(int argc, char **argv) {
    static const char *const none = NULL;
    void (*const right[])(world *) = {other_stream, other_device, raw_memory, no_events};
    static const char *const names[] = {"other_stream", "other_device", "raw_memory", "no_events"};
    const char *file = argc > 1 && access(argv[1], R_OK) == 0 ? argv[1] : NULL;
    for (int i = 0; i < 4; i++) {
        in_child(right[i], names[i], false, &none);
        if (i != 2)
            in_child(right[i], names[i], false,
                     (const char *const[]){"LUMA_EMU_ORDER", "reverse", NULL});
        if (file)
            in_child(right[i], names[i], false, (const char *const[]){"LUMA_LIBCUDA", file, NULL});
    }
    WRONG(forgotten_stream, none);
    WRONG(never_written, none);
    WRONG(past_the_end, "LUMA_CUDA_NO_CACHE", "1");
    WRONG(after_release, "LUMA_CUDA_NO_CACHE", "1");
    if (file) {
        WRONG(forgotten_stream, "LUMA_LIBCUDA", file);
        WRONG(past_the_end, "LUMA_LIBCUDA", file);
        WRONG(after_release, "LUMA_LIBCUDA", file);
        WRONG(never_written, "LUMA_LIBCUDA", file);
    }
    printf("%d checks, %d failures%s\n", checks, failures,
           file ? "" : "; no flavour that checks every byte");
    return failures != 0;
}
