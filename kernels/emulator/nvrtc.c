/* nvrtc.c -- the run-time compiler, of which the emulator has only the refusal: a kernel that was
** not compiled with luma cannot run here. Layer: kernels. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

struct lm_nvrtc_program {
    bool compiled; /* there is a log */
};

static const char refusal[] = "the emulated device has no compiler: kernels from source need a GPU "
                              "(NVRTC is not in the emulator)";

#define ENTER_NVRTC                                                                                \
    LM_EMU_LOCKED;                                                                                 \
    do {                                                                                           \
        if (lm_emu_injected(__func__)) return NVRTC_ERROR_OUT_OF_MEMORY;                           \
    } while (0)

nvrtcResult nvrtcVersion(int *major, int *minor) {
    ENTER_NVRTC;
    if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result) {
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    default:
        return "NVRTC_ERROR unknown";
    }
}

/* documented: as compute capabilities, in ascending order */
nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
    ENTER_NVRTC;
    if (!count) return NVRTC_ERROR_INVALID_INPUT;
    *count = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *architectures) {
    ENTER_NVRTC;
    if (!architectures) return NVRTC_ERROR_INVALID_INPUT;
    *architectures = 75;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int count, const char *const *headers,
                               const char *const *include_names) {
    ENTER_NVRTC;
    (void)name;
    if (!program || !source || count < 0 || (count > 0 && (!headers || !include_names)))
        return NVRTC_ERROR_INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    if (!*program) return NVRTC_ERROR_OUT_OF_MEMORY;
    lm_emu_count.others++;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    ENTER_NVRTC;
    if (!program || !*program) return NVRTC_ERROR_INVALID_PROGRAM;
    free(*program);
    *program = NULL;
    lm_emu_count.others--;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
    ENTER_NVRTC;
    if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
    if (count < 0 || (count > 0 && !options)) return NVRTC_ERROR_INVALID_INPUT;
    program->compiled = true;
    return NVRTC_ERROR_COMPILATION;
}

/* documented: the size counts the final 0 */
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
    ENTER_NVRTC;
    if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
    if (!size) return NVRTC_ERROR_INVALID_INPUT;
    *size = program->compiled ? sizeof refusal : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
    ENTER_NVRTC;
    if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
    if (!log) return NVRTC_ERROR_INVALID_INPUT;
    if (program->compiled)
        memcpy(log, refusal, sizeof refusal);
    else
        log[0] = 0;
    return NVRTC_SUCCESS;
}

/* documented: INVALID_PROGRAM when the program was not compiled */
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
    ENTER_NVRTC;
    (void)program;
    (void)size;
    return NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
    ENTER_NVRTC;
    (void)program;
    (void)ptx;
    return NVRTC_ERROR_INVALID_PROGRAM;
}
