/* emulator_test.h -- what the files of the emulator's self-test share: the functions of the device
** by name, and short words over them. Each case runs in a child of its own. */
#ifndef emulator_test_h
#define emulator_test_h

#include <stdbool.h>
#include <stdint.h>

#include "cuda/api.h"
#include "emulator/emulator.h"
#include "emulator_bugs.h"

/* The functions under their own names: cu.cuInit(0). */
typedef struct {
#define FIELD(_, need, result, name, parameters) result(*name) parameters;
    LM_CUDA_API(FIELD, _)
    LM_CUBLAS_API(FIELD, _)
    LM_CURAND_API(FIELD, _)
    LM_NVRTC_API(FIELD, _)
#undef FIELD
    lm_emu_block_fn *block;
    lm_emu_fail_fn *fail;
    lm_emu_counts_fn *counts;
    lm_emu_last_report_fn *last_report;
} functions;
extern functions cu;

/* How a child ends: with a wrong result, or with an error that a call gave. */
enum { ENDS_WRONG = 42, ENDS_CODE = 44 };
void wrong(void) __attribute__((noreturn));

/* Opens device 0: context, stream, a module of all kernels. */
extern CUcontext context;
extern CUstream stream;
extern CUmodule module;
void open_device(void);

/* Calls that have to succeed; a child ends with ENDS_CODE otherwise. */
void must(int status);
CUdeviceptr device_new(size_t n);    /* n floats that nobody has written */
CUdeviceptr device_series(size_t n); /* 0 1 2 ... */
/* Waits for the stream. */
void download(float *to, CUdeviceptr from, size_t n);
void wait_stream(void);

typedef struct {
    unsigned blocks, threads, shared;
    CUstream stream; /* NULL: the one above */
} launch_shape;
CUresult launch(const char *kernel, launch_shape shape, bug_args args);
float *address(CUdeviceptr p);

/* Documented behaviour, case by case; false when one is not as it should be. */
bool rules_hold(void);
/* Runs a case in a child with LUMA_EMU_* variables "A=1 B=2"; true when it ends with 0, and, unless
** reports are expected, without one. Otherwise shows what it said. */
bool child_passes(const char *name, void (*run)(void), const char *variables, bool reports);

#endif
