/* cuda_test.c -- the CUDA backend on the emulated device where things go wrong: every call of the
** driver failing in turn, a context that is spoilt, old drivers, forks, the end of the process. Every
** part runs in a process of its own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#include "check.h"
#include "cuda/cuda.h"
#include "emulator/emulator.h"
#include "luma_lua.h"
#include "told.h"

/* The sanitizer never learns that a fault's handler was left by a jump; and calls that fail have
** nothing to do with threads, and take it minutes. */
#ifdef __SANITIZE_THREAD__
enum { SANITIZES_THREADS = 1 };
#else
enum { SANITIZES_THREADS = 0 };
#endif

static lua_State *open_state(void) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    luaL_requiref(L, "luma", luaopen_luma, 0);
    lua_setglobal(L, "luma");
    return L;
}

/* Runs text; the error, or NULL. It is left on the stack. */
static const char *run(lua_State *L, const char *text) {
    lua_settop(L, 0);
    if (luaL_dostring(L, text) == LUA_OK) return NULL;
    return luaL_tolstring(L, -1, NULL);
}

static bool works(lua_State *L, const char *text) {
    const char *message = run(L, text);
    if (message) printf("  %s\n", message);
    return !message;
}

static bool raises(lua_State *L, const char *text, const char *part) {
    if (run(L, text)) return told(L, part);
    printf("  no error, where '%s' was expected\n", part);
    return false;
}

static void *emulator(const char *name) {
    return lm_emulator_symbol(name);
}

static void fail_at(const char *function, long n) {
    lm_emu_fail_fn *fail;
    void *p = emulator("luma_emu_fail");
    memcpy(&fail, &p, sizeof fail);
    fail(function, n);
}

static lm_emu_figures counts(void) {
    lm_emu_counts_fn *get;
    lm_emu_figures figures;
    void *p = emulator("luma_emu_counts");
    memcpy(&get, &p, sizeof get);
    get(&figures);
    return figures;
}

/* Runs part(text, n) in a child; true when it passed. Its environment: "A=1", ..., NULL. */
static bool in_child(int (*part)(const char *text, long n), const char *text, long n,
                     const char *const *environment) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (; environment && *environment; environment++)
            putenv((char *)(uintptr_t)*environment);
        failures = 0;
        int result = part(text, n);
        fflush(stdout);
        _exit(failures > 0 ? 1 : result);
    }
    int status = 0;
    checks++;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)) {
        if (WEXITSTATUS(status) == 0) return true;
        if (WEXITSTATUS(status) == 2) return false; /* not reached */
    } else {
        printf("  a child ended by signal %d\n", WTERMSIG(status));
    }
    printf("%s, %ld\n", text, n);
    failures++;
    return false;
}

/* ---- every call failing in turn ---- */

static const char program[] = "local x = luma.zeros(1000, {device = 'cuda:0'})\n"
                              "local y = luma.range(1, 9):to('float32'):to('cuda:0')\n"
                              "assert(x:sum():item() == 0 and (y + y):sum():item() == 90)\n"
                              "local z = y:to('cuda:1')\n"
                              "assert(z:cpu():sum():item() == 45)\n"
                              "local big = luma.full({280000}, 3)\n"
                              "assert(big:cuda():cpu():equal(big))\n"
                              "luma.cuda.synchronize('cuda:0')\n";

/* More kinds of operations, with scratch memory, faults, and values that the host waits for. */
static const char families[] =
    "pcall(luma.cuda.synchronize, 'cuda:0')\n" /* raises what a run before has left */
    "local x = luma.tensor({3, 1, 2, 0, 5, 4}, {dtype = 'int64', device = 'cuda'})\n"
    "local p = x:argsort()\n"
    "assert(x:take(p):cumsum(1):cpu():equal(luma.tensor({0, 1, 3, 6, 10, 15},"
    " {dtype = 'int64'})))\n"
    "assert(x:gt(2):nonzero():cpu().shape[1] == 3)\n"
    "assert(x:to('float32'):softmax(1):sum():item() > 0.99)\n"
    "assert(x:reshape(2, 3):t():contiguous():cpu()[3][2] == 4)\n"
    "local ok, why = pcall(function() return (x // x):cpu() end)\n"
    "assert(not ok and why:find('n//0', 1, true), why)\n";

/* Every slot, for what fails in the middle of it. */
static const char slots[] =
    "pcall(luma.cuda.synchronize, 'cuda:0')\n"
    "luma.set_default_device('cuda')\n"
    "local x = luma.range(1, 6000):to('float32'):reshape(2, 3000)\n"
    "local i = luma.tensor({3, 1, 2}, {dtype = 'int64'})\n"
    "local all = {x:sort(2), x:t():argsort(1), x:topk(3), x:t():to('float16') + 1, x:var(1),\n"
    "  x:t():sum(1), x:argmax(2), x:any(1), x:logsumexp(2), x:t():cumsum(2), x:softmax(2),\n"
    "  x:index_select(2, i), x:index_add(2, i, luma.ones(2, 3)), x:gather(2, luma.ones(2, 3,\n"
    "  {dtype = 'int64'})), x:scatter(2, luma.ones(2, 3, {dtype = 'int64'}), 5), luma.rand(100),\n"
    "  luma.randn(100), luma.randperm(50), luma.where(x:gt(2), x, 0), x:gt(2):nonzero(),\n"
    "  x[x:lt(4)], x:to('int32'):matmul(x:t():to('int32')), luma.cat({x, x:flip(2)}, 2),\n"
    "  x:t():contiguous(), x:reshape(6000):sort(1), luma.eye(5)}\n"
    "x:t():fill_(2) x[{1, 2}] = 7 x:t():add_(x:t()) luma.cuda.synchronize()\n";

static const char product[] = "local m = luma.ones(4, 4, {device = 'cuda:1'})\n"
                              "assert((m:matmul(m)):cpu():sum():item() == 64)\n";

static const char words[] = "luma.cuda.use_curand(true) luma.manual_seed(3)\n"
                            "local x = luma.rand(70000, {device = 'cuda'}):cpu()\n"
                            "luma.cuda.use_curand(false) luma.manual_seed(3)\n"
                            "assert(x == luma.rand(70000, {device = 'cuda'}):cpu())\n";

/* Calls that give something back: nobody hears of their failure, and what they keep is lost. */
static bool releases(const char *function) {
    return strstr(function, "Free") || strstr(function, "Destroy") || strstr(function, "Pop");
}

/* Whatever came between: no device is entered, and no context is current. */
static bool is_outside(lua_State *L) {
    const luma_state *S = luma_lua_state(L);
    CUcontext current = NULL;
    for (int i = 0; i < S->ndevices; i++) {
        const lm_device *d = S->devices[i];
        if (d->ops != &lm_cuda_ops) continue;
        const lm_cuda *c = lm_cuda_of(d);
        if (c->entered != 0) return false;
        if (c->driver->cuCtxGetCurrent(&current) != CUDA_SUCCESS || current) return false;
    }
    return true;
}

/* 0: passed; 2: the function is not called n times. */
static int fail_in_turn(const char *function, const char *text, long n) {
    lua_State *L = open_state();
    char name[64];
    snprintf(name, sizeof name, "%s", function);
    char *version = strstr(name, "_v2");
    if (version) *version = '\0';
    char order[80];
    snprintf(order, sizeof order, "%s:%ld", function, n);
    setenv("LUMA_EMU_FAIL", order, 1); /* read by cuInit */
    fail_at(function, n);              /* before that */
    const char *message = run(L, text);
    bool released = releases(function);
    if (released) { /* most of it is given back at the end */
        CHECK(!message);
        lua_close(L);
        L = open_state();
    }
    bool reached = counts().failures == 1;
    fail_at("any", 0);
    if (message && !strstr(message, name)) {
        printf("  %s\n", message);
        CHECK(false && "the cause is named");
    }
    CHECK(reached || !message);
    CHECK(is_outside(L) || strstr(function, "Pop"));
    if (reached) CHECK(works(L, text));
    CHECK(is_outside(L) || strstr(function, "Pop"));
    lua_close(L);
    lm_emu_figures after = counts();
    long lost = released;
    CHECK(after.reports == 0);
    CHECK(after.allocations <= lost && after.pinned <= lost && after.streams <= lost);
    CHECK(after.events <= lost && after.others <= lost);
    return reached ? 0 : 2;
}

static int fail_in_program(const char *function, long n) {
    const char *text = strncmp(function, "cublas", 6) == 0   ? product
                       : strncmp(function, "curand", 6) == 0 ? words
                                                             : program;
    return fail_in_turn(function, text, n);
}

static int fail_in_families(const char *function, long n) {
    return fail_in_turn(function, families, n);
}

static int fail_in_slots(const char *function, long n) {
    return fail_in_turn(function, slots, n);
}

static void test_failing_calls(void) {
    enum { MOST = 8 };
    static const char *const two[] = {"LUMA_CUDA=emulate", "LUMA_EMU_DEVICES=2", "LUMA_EMU_GUARD=0",
                                      "LUMA_CUDA_NO_CACHE=1", NULL};
    static const char *const functions[] = {
#define NAME(_, need, result, name, parameters) #name,
        LM_CUDA_API(NAME, _) LM_CUBLAS_API(NAME, _) LM_CURAND_API(NAME, _)
#undef NAME
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        int before = failures;
        for (long n = 1; n <= MOST && failures == before; n++)
            if (!in_child(fail_in_program, functions[i], n, two)) break;
        for (long n = 1; n <= MOST && failures == before; n++)
            if (!in_child(fail_in_families, functions[i], n, two)) break;
    }
    int before = failures;
    for (long n = 1; failures == before; n++)
        if (!in_child(fail_in_slots, "cuLaunchKernel", n, two)) break;
    for (long n = 1; failures == before; n++)
        if (!in_child(fail_in_slots, "cuMemAlloc_v2", n, two)) break;
}

/* ---- a context that is spoilt ---- */

static int spoil(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(works(L, "x = luma.ones(4, {device = 'cuda:0'}) y = luma.ones(4)"));
    lua_getglobal(L, "x");
    luma_state *S = luma_lua_state(L);
    lm_cuda *c = lm_cuda_of(luma_check(L, -1)->storage->device);
    lm_args_fill args = {.y = (void *)(uintptr_t)4096, .stride = {4}, .element = 1};
    lm_walk_set(&args.walk, 1, (const int64_t[]){1000}, 0, NULL);
    CHECK(lm_cuda_enter(S, c) == LUMA_OK);
    /* where streams are eager the call itself may fail */
    LM_LAUNCH(S, c, fill_4, lm_cuda_shape(c, 1000, 1, 256), &args);
    lm_cuda_leave(c);
    CHECK(raises(L, "return x:cpu()", text));
    CHECK(raises(L, "return x:cpu()", "cannot be used any more since an earlier error: cuda:0: "));
    CHECK(raises(L, "luma.zeros(3, {device = 'cuda'})", text));
    CHECK(works(L, "assert((y + y):sum():item() == 8)"));
    CHECK(raises(L, "assert(luma.cuda.is_available())",
                 "no CUDA device (cuda:0 cannot be used any more"));
    CHECK(works(L, "x = nil collectgarbage()"));
    lua_close(L);
    return 0;
}

/* ---- drivers and devices of another age ---- */

static int driver_old(const char *text, long n) {
    (void)text;
    (void)n;
    lua_State *L = open_state();
    CHECK(works(L, "assert((luma.ones(4, {device = 'cuda'}) + 1):sum():item() == 8)"));
    lua_close(L);
    return 0;
}

static int driver_too_old(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(works(L, "x = luma.empty(4, {device = 'cuda'})"));
    CHECK(raises(L, "return x + x", text));
    fail_at("cuModuleLoadDataEx", 1);
    CHECK(raises(L, "return x + x", text));
    CHECK(counts().failures == 0); /* not tried again */
    CHECK(works(L, "x:cpu()"));
    lua_close(L);
    return 0;
}

static int device_refused(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(raises(L, "luma.empty(4, {device = 'cuda'})", text));
    CHECK(raises(L, "luma.empty(4, {device = 'cuda:0'})", text));
    CHECK(works(L, "luma.ones(4)"));
    lua_close(L);
    return 0;
}

static int memory_small(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(raises(L, "luma.zeros(16 << 20, {device = 'cuda'})", text));
    CHECK(works(L, "for i = 1, 100 do local x = luma.zeros(1 << 20, {device = 'cuda'}) end"));
    CHECK(works(L, "assert(luma.ones(1 << 20, {device = 'cuda'}):cpu():sum():item() == 1 << 20)"));
    lua_close(L);
    CHECK(counts().allocations == 0);
    return 0;
}

/* ---- forks and ends ---- */

static int after_fork(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(works(L, "x = luma.ones(4, {device = 'cuda'})"));
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(raises(L, "return x:cpu()", text));
        CHECK(raises(L, "luma.ones(4, {device = 'cuda'})", text));
        CHECK(raises(L, "luma.sum(x)", text));
        CHECK(raises(L, "luma.cuda.synchronize()", text));
        CHECK(raises(L, "assert(luma.cuda.is_available())",
                     "no CUDA device (this process is a fork"));
        CHECK(works(L, "assert(luma.cuda.device_count() == 0)"));
        CHECK(works(L, "assert(luma.ones(4):sum():item() == 4)"));
        CHECK(works(L, "x = nil collectgarbage()"));
        lua_close(L);
        fflush(stdout);
        _exit(failures);
    }
    int status = 1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(works(L, "assert(x:cpu():sum():item() == 4)"));
    lua_close(L);
    return 0;
}

/* Two states in two threads, on one device. */
static void *run_program(void *result) {
    bool *ok = result;
    lua_State *L = open_state();
    *ok = works(L, program) && works(L, program);
    lua_close(L);
    return NULL;
}

static int two_threads(const char *text, long n) {
    (void)text;
    (void)n;
    pthread_t threads[2];
    bool ok[2] = {false, false};
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, run_program, &ok[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(ok[0] && ok[1]);
    CHECK(counts().reports == 0 && counts().allocations == 0 && counts().streams == 0);
    return 0;
}

/* What one state keeps for later serves another that finds no memory. */
static int two_caches(const char *text, long n) {
    (void)text;
    (void)n;
    lua_State *L = open_state(), *M = open_state();
    CHECK(works(L, "luma.empty(10 << 20, {device = 'cuda'}):free()"));
    CHECK(works(L, "assert(luma.memory('cuda').reserved == 40 << 20)"));
    CHECK(works(M, "x = luma.full({10 << 20}, 3, {device = 'cuda'})"
                   "assert(luma.memory('cuda').ooms == 0)"));
    CHECK(works(L, "local m = luma.memory('cuda') assert(m.reserved == 0 and m.segments == 0)"));
    CHECK(raises(L, "luma.empty(10 << 20, {device = 'cuda'})", "out of memory on cuda:0"));
    CHECK(works(L, "assert(luma.ones(9, {device = 'cuda'}):sum():item() == 9)"));
    CHECK(works(M, "assert(x:eq(3):all()) x:free()"));
    CHECK(works(L, "luma.empty(10 << 20, {device = 'cuda'}):free()"));
    lua_close(L);
    lua_close(M);
    CHECK(counts().reports == 0 && counts().allocations == 0);
    return 0;
}

/* The same while both are at work; 48 of 64 MB live at most. What is kept goes back now and then, so
** that each comes to want what the other keeps. */
static const char hungry[] =
    "collectgarbage('stop')\n"
    "for i = 1, 150 do\n"
    "  local x = luma.empty((i % 5 + 2) << 20, {device = 'cuda'}):fill_(i)\n"
    "  if i % 10 == 0 then assert(x[-1] == i and x[1] == i) end\n"
    "  x:free()\n"
    "  if i % 7 == 0 then luma.empty_cache('cuda') end\n"
    "end\n"
    "assert(luma.memory('cuda').ooms == 0)\n";

static void *run_hungry(void *result) {
    bool *ok = result;
    lua_State *L = open_state();
    *ok = works(L, hungry);
    lua_close(L);
    return NULL;
}

static int two_hungry_threads(const char *text, long n) {
    (void)text;
    (void)n;
    pthread_t threads[2];
    bool ok[2] = {false, false};
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, run_hungry, &ok[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(ok[0] && ok[1]);
    CHECK(counts().reports == 0 && counts().allocations == 0);
    return 0;
}

/* Streams of two devices: what is sent is neither changed nor used anew too early, on either side. */
static const char exchange[] =
    "local n = 300000\n"
    "for i = 1, 5 do\n"
    "  local x = luma.full({n}, i, {device = 'cuda:0'})\n"
    "  local y = x:to('cuda:1')\n"
    "  x:add_(100)\n"
    "  local z = y:to('cuda:0')\n"
    "  local w = y * 2\n"
    "  y:fill_(-1)\n"
    "  y:free()\n"
    "  local other = luma.full({n}, -2, {device = 'cuda:1'})\n"
    "  x:copy_(x + 1)\n"
    "  local v = x:to('cuda:1')\n"
    "  x:free()\n"
    "  local more = luma.full({n}, -3, {device = 'cuda:0'})\n"
    "  assert(z:eq(i):all() and w:eq(2 * i):all())\n"
    "  assert(v:eq(i + 101):all() and other:eq(-2):all())\n"
    "  assert(luma.ones(4, 6, {device = 'cuda:0'}):t():to('cuda:1'):sum():item() == 24)\n"
    "end\n";

static int two_devices(const char *text, long n) {
    (void)text;
    (void)n;
    lua_State *L = open_state();
    CHECK(works(L, exchange));
    lua_close(L);
    CHECK(counts().reports == 0 && counts().allocations == 0 && counts().events == 0);
    return 0;
}

/* Closed when the driver has shut down already. */
static lua_State *late;

/* "cuda" means the first device, whatever else is current. */
static int cpu_current(const char *text, long n) {
    (void)n;
    lua_State *L = open_state();
    CHECK(luma_set_current_device(luma_lua_state(L), "cpu") == LUMA_OK);
    CHECK(works(L, text));
    lua_close(L);
    return 0;
}

/* Whoever is at a limit of its own leaves alone what another state keeps. */
static int own_limit(const char *text, long n) {
    (void)n;
    lua_State *A = open_state(), *B = open_state();
    CHECK(works(A, "luma.empty(4 << 20, {device = 'cuda'}):free() "
                   "kept = luma.memory('cuda').reserved assert(kept >= 16 << 20)"));
    CHECK(raises(B, text, "out of memory on cuda:0"));
    CHECK(works(A, "assert(luma.memory('cuda').reserved == kept)"));
    lua_close(B);
    lua_close(A);
    return 0;
}

__attribute__((destructor(101))) static void close_late(void) {
    if (late) lua_close(late);
}

static int end_late(const char *text, long n) {
    (void)n;
    late = open_state();
    CHECK(works(late, text));
    exit(failures);
}

static void test_ends(void) {
    static const char *const plain[] = {"LUMA_CUDA=emulate", NULL};
    static const char *const two[] = {"LUMA_CUDA=emulate", "LUMA_EMU_DEVICES=2", NULL};
    static const char *const ptx_65[] = {"LUMA_CUDA=emulate", "LUMA_EMU_PTX=6.5", NULL};
    static const char *const ptx_60[] = {"LUMA_CUDA=emulate", "LUMA_EMU_PTX=6.0", NULL};
    static const char *const volta[] = {"LUMA_CUDA=emulate", "LUMA_EMU_CC=70", NULL};
    static const char *const none[] = {"LUMA_CUDA=emulate", "LUMA_EMU_DEVICES=0", NULL};
    static const char *const off[] = {"LUMA_CUDA=off", NULL};
    static const char *const middling[] = {"LUMA_CUDA=emulate", "LUMA_EMU_MEMORY=64M", NULL};
    static const char *const small[] = {"LUMA_CUDA=emulate", "LUMA_EMU_MEMORY=32M", NULL};
    if (!SANITIZES_THREADS) in_child(spoil, "CUDA_ERROR_ILLEGAL_ADDRESS", 0, plain);
    in_child(driver_old, "a driver that knows PTX 6.5", 0, ptx_65);
    in_child(driver_too_old, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 0, ptx_60);
    in_child(device_refused, "compute capability 7.0: at least 7.5 is needed", 0, volta);
    in_child(device_refused, "no CUDA device (", 0, none);
    in_child(device_refused, "no CUDA driver (LUMA_CUDA=off)", 0, off);
    in_child(memory_small, "out of memory on cuda:0", 0, small);
    in_child(after_fork, "fork", 0, plain);
    in_child(two_caches, "two caches", 0, middling);
    in_child(two_hungry_threads, "two hungry threads", 0, middling);
    in_child(two_devices, "two devices", 0, two);
    in_child(two_threads, "two threads", 0, two);
    in_child(cpu_current,
             "assert(luma.cuda.is_available()) "
             "assert(luma.ones(1, {device = 'cuda'}).device == 'cuda:0')",
             0, plain);
    in_child(own_limit,
             "luma.set_memory_limit(4 << 20, 'cuda') luma.empty(4 << 20, {device = 'cuda'})", 0,
             plain);
    in_child(end_late, "x = luma.ones(4, {device = 'cuda'})", 0, plain);
}

int main(void) {
    test_ends();
    if (!SANITIZES_THREADS) test_failing_calls();
    printf("cuda_test: %d checks, %d failures\n", checks, failures);
    return failures != 0;
}
