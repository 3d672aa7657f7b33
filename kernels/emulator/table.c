/* table.c -- the functions and the kernels of the emulated device by name. Which kernels there are
** is the list LM_EMU_KERNELS: KERNEL(module, name, args type) of each. Layer: kernels. */
#include <string.h>

#include "parts.h"

/* ---- kernels ---- */

#ifdef LM_EMU_KERNELS
#define KERNEL(module, name, ...) LM_EMU_INSIDE extern const lm_emu_kernel lm_emu_kernel_##name;
#include LM_EMU_KERNELS
#undef KERNEL
#endif

static const lm_emu_kernel *const kernels[] = {
#ifdef LM_EMU_KERNELS
#define KERNEL(module, name, ...) &lm_emu_kernel_##name,
#include LM_EMU_KERNELS
#undef KERNEL
#endif
    NULL};

const lm_emu_kernel *lm_emu_kernel_find(const char *name) {
    for (const lm_emu_kernel *const *k = kernels; *k; k++)
        if (strcmp((*k)->name, name) == 0) return *k;
    return NULL;
}

/* ---- functions ---- */

typedef void any_function(void);
static const struct {
    const char *name;
    any_function *function;
} functions[] = {
#define FUNCTION(_, need, result, name, parameters) {#name, (any_function *)name},
    LM_CUDA_API(FUNCTION, _) LM_CUBLAS_API(FUNCTION, _) LM_CURAND_API(FUNCTION, _)
        LM_NVRTC_API(FUNCTION, _)
#undef FUNCTION
            {"luma_emu_block", (any_function *)luma_emu_block},
    {"luma_emu_fail", (any_function *)luma_emu_fail},
    {"luma_emu_counts", (any_function *)luma_emu_counts},
    {"luma_emu_last_report", (any_function *)luma_emu_last_report},
};

void *lm_emulator_symbol(const char *name) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) != 0) continue;
        void *p;
        memcpy(&p, &functions[i].function, sizeof p);
        return p;
    }
    return NULL;
}

const char *lm_emulator_problem(void) {
    return NULL;
}
