/* library.h -- libcuda, libcublas, libcurand and libnvrtc, opened by name at the first need and kept
** for the life of the process; or the emulated device in their place. Layer: kernels/cuda.
**
** Environment, read once:
**   LUMA_CUDA=auto|off|emulate   off: as if there were no driver; emulate: the emulated device
**   LUMA_LIBCUDA, LUMA_LIBCUBLAS, LUMA_LIBCURAND, LUMA_LIBNVRTC   file names to open instead */
#ifndef lm_cuda_library_h
#define lm_cuda_library_h

#include "api.h"
#include "state.h"

#define LM_POINTER(_, need, result, name, parameters) result(*name) parameters;
/* Functions of a library that need not be there are NULL when they are not. */
typedef struct {
    LM_CUDA_API(LM_POINTER, _)
    int version; /* cuDriverGetVersion: 13000 */
    bool emulated;
    /* of the emulated device; NULL on a real one. Types in emulator/emulator.h */
    void *emu_block, *emu_counts, *emu_fail;
} lm_driver;
typedef struct {
    LM_CUBLAS_API(LM_POINTER, _)
} lm_cublas;
typedef struct {
    LM_CURAND_API(LM_POINTER, _)
} lm_curand;
typedef struct {
    LM_NVRTC_API(LM_POINTER, _)
} lm_nvrtc;
#undef LM_POINTER

/* Each returns NULL when the library cannot be used, and *why says why, naming what was tried: text
** that lives as long as the process. Any thread; the first call opens. */
const lm_driver *lm_driver_open(const char **why);
const lm_cublas *lm_cublas_open(const char **why);
const lm_curand *lm_curand_open(const char **why);
const lm_nvrtc *lm_nvrtc_open(const char **why);

/* "CUBLAS_STATUS_...", "CURAND_STATUS_..."; "an unknown status" for what is not declared here. */
const char *lm_cublas_status_name(cublasStatus_t status);
const char *lm_curand_status_name(curandStatus_t status);

/* Is there a driver's library (or an emulated device)? It is not started. Else *why as above. */
bool lm_driver_there(const char **why);

/* The libraries by what is known of them: all are opened. file: where it was found; "" where it was
** not, and inside luma where it is the emulated device's. */
typedef struct {
    const char *title, *why;
    char file[512];
    int version; /* the newest CUDA of a driver that was started: 13000; else 0 */
    bool emulated;
} lm_library_facts;
#define LM_NLIBRARIES 4
void lm_library_list(lm_library_facts list[LM_NLIBRARIES]);

/* In a child of a fork since the driver was started: nothing of CUDA works there. */
extern bool lm_driver_forked;

#endif
