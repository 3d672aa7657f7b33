/* info.h -- what the binding may ask of the CUDA backend. With user.h the only header of it that the
** binding sees. Layer: kernels/cuda. */
#ifndef lm_cuda_info_h
#define lm_cuda_info_h

#include "device.h"

/* Registers every CUDA device there is with the state; an error that says why where there is none.
** Called at the first need of one, not when a state opens (luma_state.more_devices). (device.c) */
luma_status lm_cuda_register(luma_state *S);

/* How many devices the state may use; 0: its message says why there is none. */
int lm_cuda_count(luma_state *S);
/* Whether the current one of them suits luma's kernels, without making it ready; the error begins
** with "no CUDA". */
luma_status lm_cuda_available(luma_state *S);

/* Is there a driver's library, or an emulated device? Nothing is started. Else *why as above. */
bool lm_cuda_driver_there(const char **why);
/* libcuda, libcublas, libcurand, libnvrtc: each is opened. Calls f(ctx, title, file, why) in turn:
** file "" and why where it is not there; file NULL: the emulated device stands for it. version: of CUDA,
** for the driver, as 13000; 0: not known. */
typedef void lm_cuda_library_fn(void *ctx, const char *title, const char *file, const char *why,
                                int version);
void lm_cuda_libraries(lm_cuda_library_fn *f, void *ctx);
bool lm_cuda_has_ptx(void); /* built with kernels for devices that are not emulated */

/* Whether words of random numbers may come from cuRAND; the error says why not. */
luma_status lm_cuda_find_curand(luma_state *S);

/* The rest is about one device of a state, a CUDA one. */
typedef struct {
    char name[256];
    int major, minor; /* compute capability */
    int multiprocessors;
    bool emulated;
} lm_cuda_facts;
luma_status lm_cuda_describe(luma_state *S, lm_device *d, lm_cuda_facts *out);

/* Bytes as the driver counts them, for all processes. */
luma_status lm_cuda_memory(luma_state *S, lm_device *d, int64_t *free, int64_t *total);

/* What was asked of the driver since the device was registered, for specs. */
typedef struct {
    int64_t launches, synchronisations, copies;
    int64_t reports; /* rules of the driver that the emulated device has seen broken; else 0 */
    /* matrix products by cuBLAS, by luma's own kernel; operands and results copied for them */
    int64_t products_blas, products_own, products_copied;
} lm_cuda_counts;
void lm_cuda_count_calls(const lm_device *d, lm_cuda_counts *out);

#endif
