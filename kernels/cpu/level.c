/* level.c -- which instruction set level runs. Layer: kernels/cpu. */
#include "level.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE_base(type, name) extern const type lm_##name##_base;
#define DECLARE_avx2(type, name) extern const type lm_##name##_avx2;
#define DECLARE_avx512(type, name) extern const type lm_##name##_avx512;
#define DECLARE(level) LM_FAMILIES(DECLARE_##level)
LM_LEVELS(DECLARE)

#define FIELD_base(type, name) .name = &lm_##name##_base,
#define FIELD_avx2(type, name) .name = &lm_##name##_avx2,
#define FIELD_avx512(type, name) .name = &lm_##name##_avx512,
#define LEVEL(isa) {.name = #isa, LM_FAMILIES(FIELD_##isa)},
/* From the one that runs everywhere to the best. */
static const lm_level levels[] = {LM_LEVELS(LEVEL)};

static bool runs_base(void) {
    return true;
}
#if defined(__x86_64__)
static bool runs_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
static bool runs_avx512(void) {
    return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

#define RUNS(level) runs_##level,
static bool (*const runs[])(void) = {LM_LEVELS(RUNS)};

#define NLEVELS (int)(sizeof levels / sizeof *levels)

/* Set once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const lm_level *chosen;
static char there[64]; /* names of those that run */
static char problem[160];

static void choose(void) {
    const char *name = getenv("LUMA_CPU");
    for (int i = 0; i < NLEVELS; i++) {
        if (!runs[i]()) continue;
        if (!name || strcmp(name, levels[i].name) == 0) chosen = &levels[i];
        strcat(strcat(there, i ? ", " : ""), levels[i].name);
    }
    if (!chosen)
        snprintf(problem, sizeof problem, "LUMA_CPU is '%.40s': this machine runs %s", name, there);
}

const lm_level *lm_level_now(void) {
    pthread_once(&once, choose);
    return chosen;
}

const char *lm_level_problem(void) {
    return lm_level_now() ? NULL : problem;
}

const char *lm_level_list(void) {
    pthread_once(&once, choose);
    return there;
}
