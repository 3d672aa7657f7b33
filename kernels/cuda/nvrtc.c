/* nvrtc.c -- CUDA C to PTX at run time. NVRTC has no headers of C: the few that kernels include are
** here, each as far as device code can use it. Layer: kernels/cuda. */
#include "nvrtc.h"
#include "unpack.h"

#include <stdio.h>
#include <stdlib.h>

#include "library.h"

static const char stdint_h[] = "#pragma once\n"
                               "typedef signed char int8_t;\n"
                               "typedef unsigned char uint8_t;\n"
                               "typedef short int16_t;\n"
                               "typedef unsigned short uint16_t;\n"
                               "typedef int int32_t;\n"
                               "typedef unsigned int uint32_t;\n"
                               "typedef long long int64_t;\n"
                               "typedef unsigned long long uint64_t;\n"
                               "typedef long long intptr_t;\n"
                               "typedef unsigned long long uintptr_t;\n"
                               "#define INT8_MAX 127\n"
                               "#define INT16_MAX 32767\n"
                               "#define INT32_MAX 2147483647\n"
                               "#define INT64_MAX 9223372036854775807ll\n"
                               "#define INT8_MIN (-INT8_MAX - 1)\n"
                               "#define INT16_MIN (-INT16_MAX - 1)\n"
                               "#define INT32_MIN (-INT32_MAX - 1)\n"
                               "#define INT64_MIN (-INT64_MAX - 1)\n"
                               "#define UINT8_MAX 255\n"
                               "#define UINT16_MAX 65535\n"
                               "#define UINT32_MAX 4294967295u\n"
                               "#define UINT64_MAX 18446744073709551615ull\n"
                               "#define INT64_C(x) x##ll\n"
                               "#define UINT64_C(x) x##ull\n";
/* size_t and ptrdiff_t are built in */
static const char stddef_h[] = "#pragma once\n"
                               "#define NULL 0\n"
                               "#define offsetof(type, member) ((size_t)&((type *)0)->member)\n";
static const char limits_h[] = "#pragma once\n"
                               "#define CHAR_BIT 8\n"
                               "#define INT_MAX 2147483647\n"
                               "#define INT_MIN (-INT_MAX - 1)\n"
                               "#define UINT_MAX 4294967295u\n"
                               "#define LLONG_MAX 9223372036854775807ll\n"
                               "#define LLONG_MIN (-LLONG_MAX - 1)\n"
                               "#define ULLONG_MAX 18446744073709551615ull\n";
static const char float_h[] = "#pragma once\n"
                              "#define FLT_MAX 0x1.fffffep127f\n"
                              "#define FLT_MIN 0x1p-126f\n"
                              "#define FLT_EPSILON 0x1p-23f\n"
                              "#define DBL_MAX 0x1.fffffffffffffp1023\n"
                              "#define DBL_MIN 0x1p-1022\n"
                              "#define DBL_EPSILON 0x1p-52\n";
/* the functions are built in */
static const char math_h[] = "#pragma once\n"
                             "#define INFINITY __int_as_float(0x7f800000)\n"
                             "#define NAN __int_as_float(0x7fc00000)\n"
                             "#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)\n"
                             "#define M_PI 3.14159265358979323846\n";
static const char built_in[] = "#pragma once\n";

static const char *const headers[] = {stdint_h, stddef_h, limits_h, float_h,
                                      math_h,   built_in, built_in};
static const char *const names[] = {"stdint.h", "stddef.h", "limits.h", "float.h",
                                    "math.h",   "string.h", "stdbool.h"};

static luma_status check(luma_state *S, const lm_nvrtc *n, nvrtcResult result, const char *what) {
    if (result == NVRTC_SUCCESS) return LUMA_OK;
    return lm_fail(S, result == NVRTC_ERROR_OUT_OF_MEMORY ? LUMA_ERR_MEMORY : LUMA_ERR_ARGUMENT, 0,
                   "%s: %s", what, n->nvrtcGetErrorString(result));
}

/* The newest architecture that NVRTC knows and the device runs; where NVRTC cannot say, the
** device's own. */
static int architecture(const lm_nvrtc *n, int capability) {
    int known[64], count = 0, best = 0;
    if (!n->nvrtcGetNumSupportedArchs || !n->nvrtcGetSupportedArchs) return capability;
    if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count > 64) return capability;
    if (n->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS) return capability;
    for (int i = 0; i < count; i++)
        if (known[i] <= capability && known[i] > best) best = known[i];
    return best > 0 ? best : capability;
}

/* Whatever the compiler said; NULL when it said nothing. */
static char *read_log(const lm_nvrtc *n, nvrtcProgram program) {
    size_t size = 0;
    if (n->nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1) return NULL;
    char *log = malloc(size);
    if (!log) return NULL;
    if (n->nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS) return log;
    free(log);
    return NULL;
}

static luma_status read_ptx(luma_state *S, const lm_nvrtc *n, nvrtcProgram program, char **out) {
    size_t size = 0;
    LM_TRY(check(S, n, n->nvrtcGetPTXSize(program, &size), "nvrtcGetPTXSize"));
    char *ptx = malloc(size);
    if (!ptx) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    luma_status status = check(S, n, n->nvrtcGetPTX(program, ptx), "nvrtcGetPTX");
    if (status != LUMA_OK)
        free(ptx);
    else
        *out = ptx;
    return status;
}

static luma_status compile(luma_state *S, int capability, const char *source, int noptions,
                           const char *const *options, int nheaders, const char *const *texts,
                           const char *const *called, char **ptx, char **log) {
    const char *why;
    const lm_nvrtc *n = lm_nvrtc_open(&why);
    nvrtcProgram program = NULL;
    char target[40];
    *ptx = *log = NULL;
    if (!n) return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "%s", why);
    const char **all = malloc((size_t)(noptions + 1) * sizeof *all);
    if (!all) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    snprintf(target, sizeof target, "--gpu-architecture=compute_%d", architecture(n, capability));
    all[0] = target;
    for (int i = 0; i < noptions; i++)
        all[i + 1] = options[i];
    luma_status status =
        check(S, n, n->nvrtcCreateProgram(&program, source, "kernel.cu", nheaders, texts, called),
              "nvrtcCreateProgram");
    if (status == LUMA_OK) {
        nvrtcResult result = n->nvrtcCompileProgram(program, noptions + 1, all);
        *log = read_log(n, program);
        status = check(S, n, result, "NVRTC");
        if (status == LUMA_OK) status = read_ptx(S, n, program, ptx);
        n->nvrtcDestroyProgram(&program);
    }
    free(all);
    return status;
}

#define OF_C (int)(sizeof names / sizeof names[0])

luma_status lm_nvrtc_compile(luma_state *S, int capability, const char *source, int noptions,
                             const char *const *options, char **ptx, char **log) {
    return compile(S, capability, source, noptions, options, OF_C, headers, names, ptx, log);
}

luma_status lm_nvrtc_compile_own(luma_state *S, int capability, const char *source, char **ptx,
                                 char **log) {
    /* host functions of luma's headers are declared, never used: device functions to NVRTC */
    static const char *const options[] = {
        "--fmad=false",      "--prec-div=true", "--prec-sqrt=true",
        "--ftz=false",       "--std=c++17",     "--device-as-default-execution-space",
        "--disable-warnings"};
    const char *texts[64], *called[64];
    char *unpacked[64];
    int n = 0, own = 0;
    for (; n < OF_C; n++) {
        texts[n] = headers[n];
        called[n] = names[n];
    }
    for (const lm_nvrtc_header *h = lm_nvrtc_headers; h->packed && n < 64; h++, n++, own++) {
        unpacked[own] = lm_unpack(h->packed, h->nbytes, NULL);
        texts[n] = unpacked[own] ? unpacked[own] : ""; /* which NVRTC then complains of */
        called[n] = h->name;
    }
    luma_status status = compile(S, capability, source, (int)(sizeof options / sizeof options[0]),
                                 options, n, texts, called, ptx, log);
    while (own > 0)
        free(unpacked[--own]);
    return status;
}
