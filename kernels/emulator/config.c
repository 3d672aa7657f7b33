/* config.c -- environment, the one lock, reports of broken rules, injected failures.
** Layer: kernels. */
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

lm_emu_config lm_emu_cfg;
lm_emu_figures lm_emu_count;
const lm_emu_checker *lm_emu_race;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char last_report[512];
static struct {
    char function[64]; /* or "any" */
    long at, seen;     /* at 0: none */
} failure;

int lm_emu_lock(void) {
    pthread_mutex_lock(&lock);
    return 0;
}

void lm_emu_unlock(int *unused) {
    (void)unused;
    pthread_mutex_unlock(&lock);
}

void lm_emu_lock_forked(void) {
    static const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    lock = fresh;
}

uint32_t lm_emu_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 16);
}

/* ---- environment ---- */

/* A number of the range with a suffix K, M or G; what is not set is `fallback`. */
static bool read_number(const char *name, uint64_t fallback, uint64_t least, uint64_t most,
                        uint64_t *out) {
    const char *text = getenv(name);
    *out = fallback;
    if (!text || !*text) return true;
    char *end;
    uint64_t value = strtoull(text, &end, 0);
    const char *units = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        value <<= 10 * (unit - units + 1);
        end++;
    }
    if (*end || end == text || value < least || value > most) {
        fprintf(stderr, "%s=%s: a number of %llu to %llu is needed\n", name, text,
                (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *out = value;
    return true;
}

static bool read_order(lm_emu_order *order) {
    static const char *const names[] = {"forward", "reverse", "random", "warp"};
    const char *text = getenv("LUMA_EMU_ORDER");
    *order = LM_EMU_FORWARD;
    if (!text || !*text) return true;
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            *order = (lm_emu_order)i;
            return true;
        }
    }
    fprintf(stderr, "LUMA_EMU_ORDER=%s: forward, reverse, random or warp is needed\n", text);
    return false;
}

/* "7.0" and "70" are the same. */
static bool read_ptx(int *version) {
    const char *text = getenv("LUMA_EMU_PTX");
    int major = 9, minor = 0;
    char rest = 0;
    if (text && *text) {
        int n = sscanf(text, "%1d%*[.]%1d%c", &major, &minor, &rest);
        if (n != 2) n = sscanf(text, "%1d%1d%c", &major, &minor, &rest);
        if (n != 2 || major < 6) {
            fprintf(stderr, "LUMA_EMU_PTX=%s: a version from 6.0 on is needed\n", text);
            return false;
        }
    }
    *version = major * 10 + minor;
    return true;
}

static bool read_failure(void) {
    const char *text = getenv("LUMA_EMU_FAIL");
    failure.at = 0;
    if (!text || !*text) return true;
    const char *colon = strchr(text, ':');
    char *end = NULL;
    long at = colon ? strtol(colon + 1, &end, 10) : 0;
    if (at < 1 || *end || (size_t)(colon - text) >= sizeof failure.function) {
        fprintf(stderr, "LUMA_EMU_FAIL=%s: function:n is needed\n", text);
        return false;
    }
    char name[sizeof failure.function];
    snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    luma_emu_fail(name, at);
    return true;
}

bool lm_emu_config_read(void) {
    uint64_t devices, cc, lazy, guard, abort_, stub;
    bool ok = read_number("LUMA_EMU_DEVICES", 1, 0, LM_EMU_MAX_DEVICES, &devices) &&
              read_number("LUMA_EMU_CC", 90, 50, 129, &cc) &&
              read_number("LUMA_EMU_LAZY", 1, 0, 1, &lazy) &&
              read_number("LUMA_EMU_GUARD", 1, 0, 1, &guard) &&
              read_number("LUMA_EMU_ABORT", 0, 0, 1, &abort_) &&
              read_number("LUMA_EMU_STUB", 0, 0, 1, &stub) &&
              read_number("LUMA_EMU_SEED", 1, 0, UINT64_MAX, &lm_emu_cfg.seed) &&
              read_number("LUMA_EMU_MEMORY", (uint64_t)4 << 30, 4096, (uint64_t)1 << 36,
                          &lm_emu_cfg.memory) &&
              read_order(&lm_emu_cfg.order) && read_ptx(&lm_emu_cfg.ptx) && read_failure();
    if (!ok) return false;
    lm_emu_cfg.devices = (int)devices;
    lm_emu_cfg.cc = (int)cc;
    lm_emu_cfg.lazy = lazy != 0;
    /* valgrind takes the first touch of a closed allocation for a mistake */
    lm_emu_cfg.guard = guard != 0 && !RUNNING_ON_VALGRIND;
    lm_emu_cfg.abort = abort_ != 0;
    lm_emu_cfg.stub = stub != 0;
    return true;
}

/* ---- injected failures and counts ---- */

void luma_emu_fail(const char *function, long n) {
    LM_EMU_LOCKED;
    snprintf(failure.function, sizeof failure.function, "%s", function);
    failure.at = n;
    failure.seen = 0;
}

bool lm_emu_injected(const char *function) {
    lm_emu_count.calls++;
    if (failure.at == 0) return false;
    if (strcmp(failure.function, "any") != 0 && strcmp(failure.function, function) != 0)
        return false;
    if (++failure.seen != failure.at) return false;
    failure.at = 0;
    lm_emu_count.failures++;
    return true;
}

void luma_emu_counts(lm_emu_figures *out) {
    LM_EMU_LOCKED;
    *out = lm_emu_count;
}

/* ---- reports ---- */

void lm_emu_report(CUresult error, const char *kind, const char *format, ...) {
    enum { SHOWN = 20 };
    char where[160], text[320];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    lm_emu_where(where, sizeof where);
    snprintf(last_report, sizeof last_report, "%s: %s: %s", kind, where, text);
    if (++lm_emu_count.reports <= SHOWN)
        fprintf(stderr, "emulated device [%s] %s: %s\n", kind, where, text);
    if (lm_emu_count.reports == SHOWN) fprintf(stderr, "emulated device: no more is shown\n");
    fflush(stderr);
    if (lm_emu_cfg.abort) abort();
    if (error) lm_emu_fault(error);
}

const char *luma_emu_last_report(void) {
    return last_report;
}
