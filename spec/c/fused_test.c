/* fused_test.c -- programs of elementwise rows through the C API, and the kernels that are written for
** them at run time: NVRTC compiles their text where it is installed, and compiled as C it gives the
** bits of the CPU. Arguments: a C compiler, the folder of the sources, one to write into. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cuda/fused_source.h"
#include "cuda/library.h"
#include "cuda/nvrtc.h"
#include "device.h"
#include "fused.h"

#define PROGRAMS 12
#define ROWS 14
#define INPUTS 4
#define NUMEL 333

static luma_state *S;
static uint64_t seed = 1;

static int below(int n) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- the C API ---- */

static void test_api(void) {
    luma_program *p = NULL;
    luma_tensor x = LUMA_NEW, y = LUMA_NEW, out = LUMA_NEW, two = luma_number(2.0);
    int64_t shape[] = {5};
    int s, m, n, none = 77;
    CHECK(luma_full(S, &x, 1, shape, luma_number(3.0).number, LUMA_FLOAT32, NULL) == LUMA_OK);
    CHECK(luma_full(S, &y, 1, shape, luma_number(-1.0).number, LUMA_FLOAT32, NULL) == LUMA_OK);
    CHECK(luma_program_new(S, &p, -1) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_new(S, &p, 1 << 20) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_new(S, &p, 2) == LUMA_OK);
    CHECK(luma_program_row(S, p, "mul", 2, (int[]){0, 1}, &m) == LUMA_OK && m == 2);
    CHECK(luma_program_number(S, p, luma_number(5.0).number, &n) == LUMA_OK && n == 3);
    CHECK(luma_program_row(S, p, "add", 2, (int[]){m, n}, &s) == LUMA_OK && s == 4);
    CHECK(luma_program_row(S, p, "mul", 2, (int[]){0, 1}, &m) == LUMA_OK && m == 2);
    CHECK(luma_program_row(S, p, "sum", 1, (int[]){0}, &none) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_row(S, p, "oops", 1, (int[]){0}, &none) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_row(S, p, "add", 1, (int[]){0}, &none) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_row(S, p, "add", 2, (int[]){0, 9}, &none) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_row(S, p, "add", 2, (int[]){0, -1}, &none) == LUMA_ERR_ARGUMENT);
    CHECK(none == 77);
    const luma_tensor *ins[] = {&x, &y}, *numbers[] = {&two, &two}, *mixed[] = {&x, &two};
    CHECK(luma_program_run(S, &out, p, 5, ins) == LUMA_ERR_ARGUMENT);
    CHECK(luma_program_run(S, &out, p, s, numbers) == LUMA_ERR_ARGUMENT && !out.storage);
    CHECK(luma_program_run(S, &out, p, s, ins) == LUMA_OK && p->passes == 1);
    luma_scalar v = {0};
    luma_tensor first = LUMA_NEW;
    CHECK(luma_select(S, &first, &out, 0, 4) == LUMA_OK && luma_item(S, &first, &v) == LUMA_OK);
    CHECK(v.kind == LUMA_IS_FLOAT && v.u.d == 2.0);
    CHECK(luma_program_run(S, &out, p, s, mixed) == LUMA_OK && luma_item(S, &first, &v) == LUMA_OK);
    CHECK(v.u.d == 11.0);
    luma_release(S, &first);
    luma_release(S, &out);
    luma_release(S, &x);
    luma_release(S, &y);
    luma_program_free(p);
    luma_program_free(NULL);
}

/* ---- random programs ---- */

static int random_row(void) {
    for (;;) {
        int op = below(LM_NROWS);
        if (lm_op_inputs(op) > 0 && lm_op_guard(op) == LM_GUARD_NONE) return op;
    }
}

/* The values of a program that are masks come from comparisons. */
static void make_program(luma_program **p, int *wanted) {
    luma_scalar half = luma_number(0.5).number, two = luma_integer(2).number;
    int values[INPUTS + ROWS + 4], n = INPUTS, mask, lo, hi, made;
    CHECK(luma_program_new(S, p, INPUTS) == LUMA_OK);
    for (int i = 0; i < INPUTS; i++)
        values[i] = i;
    CHECK(luma_program_number(S, *p, half, &lo) == LUMA_OK);
    CHECK(luma_program_number(S, *p, two, &hi) == LUMA_OK);
    CHECK(luma_program_row(S, *p, "lt", 2, (int[]){0, 1}, &mask) == LUMA_OK);
    *wanted = mask;
    for (int i = 0; i < ROWS; i++) {
        int op = random_row(), nin = lm_op_inputs(op);
        int in[3] = {values[below(n)], values[below(n)], values[below(n)]};
        if (lm_ops[op].takes == LM_TAKES_INTS || lm_ops[op].takes == LM_TAKES_BITS) continue;
        if (nin == 1) in[1] = lo, in[2] = hi;
        if (nin == 2 && below(4) == 0) in[1] = below(2) ? lo : hi;
        if (nin == 3) in[0] = mask;
        int count = lm_ops[op].row == LM_ROW_UNARY_P ? 3 : nin;
        CHECK(lm_fused_add(S, *p, op, false, count, in, &made) == LUMA_OK);
        values[n++] = *wanted = made;
        if (lm_ops[op].row == LM_ROW_COMPARE || lm_ops[op].row == LM_ROW_TEST) mask = made;
    }
}

static luma_tensor random_tensor(luma_dtype dtype, int64_t n) {
    luma_tensor x = LUMA_NEW, y = LUMA_NEW;
    int64_t shape[] = {n};
    CHECK(luma_empty(S, &x, 1, shape, LUMA_FLOAT64, NULL) == LUMA_OK &&
          luma_rand(S, &x) == LUMA_OK);
    CHECK(luma_affine(S, &x, &x, luma_number(9.0).number, luma_number(-3.0).number) == LUMA_OK);
    CHECK(luma_to_dtype(S, &y, &x, dtype) == LUMA_OK);
    luma_release(S, &x);
    return y;
}

/* ---- kernels as text ---- */

/* The arguments of the program: compiler, sources, folder to write into. */
static const char *compiler, *sources, *folder;
static luma_status (*own_fused)(luma_state *, lm_device *, struct lm_fused *, bool *);
static int at; /* number of the kernel */
static bool compiling;
static int compiled, ran;

static void compile_by_nvrtc(const char *source) {
    const char *why;
    char *ptx, *log;
    if (!lm_nvrtc_open(&why)) return;
    luma_status status = lm_nvrtc_compile_own(S, 75, source, &ptx, &log);
    if (!CHECK(status == LUMA_OK)) printf("%s\n%s\n%s\n", luma_message(S), log ? log : "", source);
    CHECK(!ptx || strstr(ptx, ".entry lm_fused"));
    compiled++;
    free(ptx);
    free(log);
}

static void write_kernel(const char *source) {
    char path[512];
    snprintf(path, sizeof path, "%s/fused_%d.c", folder, at);
    FILE *file = fopen(path, "w");
    if (!CHECK(file != NULL)) return;
    fputs(source, file);
    fclose(file);
    snprintf(path, sizeof path,
             "%s -O1 -w -std=gnu11 -ffp-contract=off -fno-math-errno %s"
             " -shared -fPIC -I%s/kernels -I%s/core -o %s/fused_%d.so %s/fused_%d.c -lm",
             compiler,
#if defined(__x86_64__)
             __builtin_cpu_supports("fma") ? "-mfma -mf16c" : "",
#else
             "",
#endif
             sources, sources, folder, at, folder, at);
    CHECK(system(path) == 0);
}

/* Stands for the CPU's slot: first makes the kernels, then runs them. */
static luma_status run_kernel(luma_state *state, lm_device *d, struct lm_fused *f, bool *done) {
    (void)d;
    char *source = lm_fused_source(f), path[512];
    if (!CHECK(source != NULL)) return LUMA_OK;
    *done = true;
    if (compiling) {
        compile_by_nvrtc(source);
        write_kernel(source);
        free(source);
        return LUMA_OK;
    }
    free(source);
    snprintf(path, sizeof path, "%s/fused_%d.so", folder, at);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*kernel)(lm_args_fused) = NULL;
    if (library) *(void **)&kernel = dlsym(library, "lm_fused");
    if (!CHECK(kernel != NULL)) return lm_fail(state, LUMA_ERR_FILE, 0, "%s", dlerror());
    lm_args_fused a;
    lm_iter_plan(&f->map);
    lm_fused_arguments(f, &a);
    kernel(a);
    ran++;
    dlclose(library);
    return LUMA_OK;
}

static double element(const luma_tensor *x, int64_t i) {
    luma_tensor one = LUMA_NEW;
    luma_scalar v = {0};
    CHECK(luma_select(S, &one, x, 0, i) == LUMA_OK && luma_item(S, &one, &v) == LUMA_OK);
    luma_release(S, &one);
    return v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
}

static bool same(const luma_tensor *x, const luma_tensor *y) {
    if (x->dtype != y->dtype || luma_numel(x) != luma_numel(y)) return false;
    for (int64_t i = 0; i < luma_numel(x); i++) {
        double a = element(x, i), b = element(y, i);
        if (memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b)) continue;
        printf("element %lld: %.17g and %.17g\n", (long long)i, a, b);
        return false;
    }
    return true;
}

/* One program over dense inputs, steps of longer ones, and with one element for all. */
static void test_program(lm_device *cpu, const lm_device_ops *stand_in) {
    const lm_device_ops *own = cpu->ops;
    luma_program *p;
    luma_tensor inputs[INPUTS], views[INPUTS], one = LUMA_NEW;
    const luma_tensor *dense[INPUTS], *stepped[INPUTS], *single[INPUTS];
    int wanted;
    make_program(&p, &wanted);
    luma_dtype common = (luma_dtype)below(LUMA_NDTYPES);
    for (int i = 0; i < INPUTS; i++) {
        luma_dtype dtype = below(3) ? common : (luma_dtype)below(LUMA_NDTYPES);
        inputs[i] = random_tensor(dtype, 2 * NUMEL + 1);
        views[i] = LUMA_NEW;
        CHECK(luma_slice(S, &views[i], &inputs[i], 0, i % 2, NUMEL, 2) == LUMA_OK);
        dense[i] = &inputs[i];
        stepped[i] = &views[i];
        single[i] = i == 1 ? &one : &inputs[i];
    }
    CHECK(luma_slice(S, &one, &inputs[1], 0, 3, 1, 1) == LUMA_OK);
    for (int way = 0; way < 4; way++) {
        const luma_tensor **ins = way == 3 ? single : way == 2 ? stepped : dense;
        luma_tensor out = LUMA_NEW, want = LUMA_NEW;
        compiling = way == 0;
        cpu->ops = stand_in;
        int before = (int)p->passes;
        luma_status status = luma_program_run(S, &out, p, wanted, ins);
        cpu->ops = own;
        if (p->passes > before && !compiling) {
            CHECK(luma_program_run(S, &want, p, wanted, ins) == LUMA_OK);
            CHECK(status == LUMA_OK && same(&out, &want));
        }
        luma_release(S, &out);
        luma_release(S, &want);
    }
    luma_release(S, &one);
    for (int i = 0; i < INPUTS; i++) {
        luma_release(S, &views[i]);
        luma_release(S, &inputs[i]);
    }
    luma_program_free(p);
}

int main(int count, char **arguments) {
    S = luma_open_with(LUMA_OPEN_NO_CUDA, NULL, 0);
    if (!S) return 2;
    test_api();
    if (count == 4) {
        compiler = arguments[1];
        sources = arguments[2];
        folder = arguments[3];
        lm_device *cpu = lm_cpu(S);
        lm_device_ops stand_in = *cpu->ops;
        own_fused = stand_in.fused;
        stand_in.fused = run_kernel;
        for (at = 0; at < PROGRAMS; at++)
            test_program(cpu, &stand_in);
        CHECK(ran > PROGRAMS);
    }
    luma_close(S);
    printf("fused_test: %d checks, %d failures, %d kernels by NVRTC\n", checks, failures, compiled);
    return failures != 0;
}
