/* open.c -- luma_open: a state with the devices that the library has. Layer: kernels. */
#include <stdio.h>

#include "cpu/cpu.h"
#include "cuda/info.h"

luma_state *luma_open_with(unsigned flags, char *message, size_t size) {
    luma_state *S = lm_state_new();
    if (S && lm_cpu_register(S) == LUMA_OK) {
        if (!(flags & LUMA_OPEN_NO_CUDA)) S->more_devices = lm_cuda_register;
        return S;
    }
    if (message && size > 0)
        snprintf(message, size, "%s", S ? luma_message(S) : "not enough memory");
    luma_close(S);
    return NULL;
}

luma_state *luma_open(void) {
    return luma_open_with(0, NULL, 0);
}
