/* cuda_api_check.c -- compares kernels/cuda/api.h with NVIDIA's headers, where those are installed:
** every value, every signature, the size of every type. Compiled, never run. */
#include <cublas_v2.h>
#include <cuda.h>
#include <curand.h>
#include <nvrtc.h>

#define LM_CUDA_API_CHECK
#include "cuda/api.h"

#define SAME_VALUE(_, name, value) _Static_assert((int)(name) == (value), #name);
LM_CUDA_ERRORS(SAME_VALUE, _)
LM_CUDA_VALUES(SAME_VALUE, _)
LM_CUBLAS_VALUES(SAME_VALUE, _)
LM_CURAND_VALUES(SAME_VALUE, _)
LM_NVRTC_VALUES(SAME_VALUE, _)

#define SAME_SIGNATURE(_, need, result, name, parameters)                                          \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), result parameters), #name);
LM_CUDA_API(SAME_SIGNATURE, _)
LM_CUBLAS_API(SAME_SIGNATURE, _)
LM_CURAND_API(SAME_SIGNATURE, _)
LM_NVRTC_API(SAME_SIGNATURE, _)

/* What api.h declares where the headers are not read: enums are int, handles are pointers. */
#define LIKE_INT(type) _Static_assert(sizeof(type) == sizeof(int), #type);
LIKE_INT(CUresult)
LIKE_INT(CUdevice)
LIKE_INT(CUdevice_attribute)
LIKE_INT(CUjit_option)
LIKE_INT(CUfunction_attribute)
LIKE_INT(cublasStatus_t)
LIKE_INT(cublasOperation_t)
LIKE_INT(cublasComputeType_t)
LIKE_INT(cublasGemmAlgo_t)
LIKE_INT(cublasMath_t)
LIKE_INT(cudaDataType)
LIKE_INT(curandStatus_t)
LIKE_INT(curandRngType_t)
LIKE_INT(nvrtcResult)
_Static_assert(__builtin_types_compatible_p(CUdeviceptr, unsigned long long), "CUdeviceptr");
#define HANDLE(type, of) _Static_assert(__builtin_types_compatible_p(type, struct of *), #type);
HANDLE(CUcontext, CUctx_st)
HANDLE(CUmodule, CUmod_st)
HANDLE(CUfunction, CUfunc_st)
HANDLE(CUstream, CUstream_st)
HANDLE(cudaStream_t, CUstream_st)
HANDLE(CUevent, CUevent_st)
HANDLE(cublasHandle_t, cublasContext)
HANDLE(curandGenerator_t, curandGenerator_st)
_Static_assert(sizeof(nvrtcProgram) == sizeof(void *), "nvrtcProgram");
