/* api.h -- what luma uses of libcuda, libcublas, libcurand and libnvrtc: types, values, functions,
** declared here so that nothing of the toolkit is needed to build. Names, numbers and signatures
** are facts of the ABI; versioned symbols are named with their version. Layer: kernels.
**
** With LM_CUDA_API_CHECK defined the types come from NVIDIA's headers, included before this one,
** and a reader of the lists can compare. */
#ifndef lm_cuda_api_h
#define lm_cuda_api_h

#include <stddef.h>

#ifndef LM_CUDA_API_CHECK
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option, CUfunction_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream, *cudaStream_t;
typedef struct CUevent_st *CUevent;

typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t, cublasOperation_t, cublasComputeType_t, cublasGemmAlgo_t, cublasMath_t;
typedef int cudaDataType;

typedef struct curandGenerator_st *curandGenerator_t;
typedef int curandStatus_t, curandRngType_t;

typedef struct lm_nvrtc_program *nvrtcProgram;
typedef int nvrtcResult;
#endif

/* X(..., name, value) */
#define LM_CUDA_ERRORS(X, ...)                                                                     \
    X(__VA_ARGS__, CUDA_SUCCESS, 0)                                                                \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_VALUE, 1)                                                    \
    X(__VA_ARGS__, CUDA_ERROR_OUT_OF_MEMORY, 2)                                                    \
    X(__VA_ARGS__, CUDA_ERROR_NOT_INITIALIZED, 3)                                                  \
    X(__VA_ARGS__, CUDA_ERROR_DEINITIALIZED, 4)                                                    \
    X(__VA_ARGS__, CUDA_ERROR_STUB_LIBRARY, 34)                                                    \
    X(__VA_ARGS__, CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                              \
    X(__VA_ARGS__, CUDA_ERROR_NO_DEVICE, 100)                                                      \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_DEVICE, 101)                                                 \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_IMAGE, 200)                                                  \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_CONTEXT, 201)                                                \
    X(__VA_ARGS__, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                              \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_PTX, 218)                                                    \
    X(__VA_ARGS__, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                        \
    X(__VA_ARGS__, CUDA_ERROR_INVALID_HANDLE, 400)                                                 \
    X(__VA_ARGS__, CUDA_ERROR_NOT_FOUND, 500)                                                      \
    X(__VA_ARGS__, CUDA_ERROR_NOT_READY, 600)                                                      \
    X(__VA_ARGS__, CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                \
    X(__VA_ARGS__, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                        \
    X(__VA_ARGS__, CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                 \
    X(__VA_ARGS__, CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                           \
    X(__VA_ARGS__, CUDA_ERROR_ASSERT, 710)                                                         \
    X(__VA_ARGS__, CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                             \
    X(__VA_ARGS__, CUDA_ERROR_LAUNCH_FAILED, 719)                                                  \
    X(__VA_ARGS__, CUDA_ERROR_NOT_SUPPORTED, 801)                                                  \
    X(__VA_ARGS__, CUDA_ERROR_UNKNOWN, 999)

#define LM_CUDA_VALUES(X, ...)                                                                     \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                                   \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                                         \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                                         \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                                         \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                                          \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                                          \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                                          \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)                             \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                                              \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                             \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                   \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                      \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                          \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)                         \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                               \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                               \
    X(__VA_ARGS__, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                      \
    X(__VA_ARGS__, CU_STREAM_NON_BLOCKING, 1)                                                      \
    X(__VA_ARGS__, CU_EVENT_DISABLE_TIMING, 2)                                                     \
    X(__VA_ARGS__, CU_JIT_INFO_LOG_BUFFER, 3)                                                      \
    X(__VA_ARGS__, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)                                           \
    X(__VA_ARGS__, CU_JIT_ERROR_LOG_BUFFER, 5)                                                     \
    X(__VA_ARGS__, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                          \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                     \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                                         \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                          \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                  \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                                               \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                                            \
    X(__VA_ARGS__, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

#define LM_CUBLAS_VALUES(X, ...)                                                                   \
    X(__VA_ARGS__, CUBLAS_STATUS_SUCCESS, 0)                                                       \
    X(__VA_ARGS__, CUBLAS_STATUS_NOT_INITIALIZED, 1)                                               \
    X(__VA_ARGS__, CUBLAS_STATUS_ALLOC_FAILED, 3)                                                  \
    X(__VA_ARGS__, CUBLAS_STATUS_INVALID_VALUE, 7)                                                 \
    X(__VA_ARGS__, CUBLAS_STATUS_ARCH_MISMATCH, 8)                                                 \
    X(__VA_ARGS__, CUBLAS_STATUS_EXECUTION_FAILED, 13)                                             \
    X(__VA_ARGS__, CUBLAS_STATUS_INTERNAL_ERROR, 14)                                               \
    X(__VA_ARGS__, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                                \
    X(__VA_ARGS__, CUBLAS_OP_N, 0)                                                                 \
    X(__VA_ARGS__, CUBLAS_OP_T, 1)                                                                 \
    X(__VA_ARGS__, CUBLAS_DEFAULT_MATH, 0)                                                         \
    X(__VA_ARGS__, CUBLAS_PEDANTIC_MATH, 2)                                                        \
    X(__VA_ARGS__, CUBLAS_TF32_TENSOR_OP_MATH, 3)                                                  \
    X(__VA_ARGS__, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16)                           \
    X(__VA_ARGS__, CUBLAS_COMPUTE_16F, 64)                                                         \
    X(__VA_ARGS__, CUBLAS_COMPUTE_32F, 68)                                                         \
    X(__VA_ARGS__, CUBLAS_COMPUTE_32F_PEDANTIC, 69)                                                \
    X(__VA_ARGS__, CUBLAS_COMPUTE_32F_FAST_TF32, 77)                                               \
    X(__VA_ARGS__, CUBLAS_COMPUTE_64F, 70)                                                         \
    X(__VA_ARGS__, CUBLAS_COMPUTE_32I, 72)                                                         \
    X(__VA_ARGS__, CUBLAS_GEMM_DEFAULT, -1)                                                        \
    X(__VA_ARGS__, CUDA_R_32F, 0)                                                                  \
    X(__VA_ARGS__, CUDA_R_64F, 1)                                                                  \
    X(__VA_ARGS__, CUDA_R_16F, 2)                                                                  \
    X(__VA_ARGS__, CUDA_R_8I, 3)                                                                   \
    X(__VA_ARGS__, CUDA_R_32I, 10)                                                                 \
    X(__VA_ARGS__, CUDA_R_16BF, 14)

#define LM_CURAND_VALUES(X, ...)                                                                   \
    X(__VA_ARGS__, CURAND_STATUS_SUCCESS, 0)                                                       \
    X(__VA_ARGS__, CURAND_STATUS_NOT_INITIALIZED, 101)                                             \
    X(__VA_ARGS__, CURAND_STATUS_ALLOCATION_FAILED, 102)                                           \
    X(__VA_ARGS__, CURAND_STATUS_TYPE_ERROR, 103)                                                  \
    X(__VA_ARGS__, CURAND_STATUS_OUT_OF_RANGE, 104)                                                \
    X(__VA_ARGS__, CURAND_STATUS_LAUNCH_FAILURE, 201)                                              \
    X(__VA_ARGS__, CURAND_STATUS_INITIALIZATION_FAILED, 203)                                       \
    X(__VA_ARGS__, CURAND_RNG_PSEUDO_PHILOX4_32_10, 161)

#define LM_NVRTC_VALUES(X, ...)                                                                    \
    X(__VA_ARGS__, NVRTC_SUCCESS, 0)                                                               \
    X(__VA_ARGS__, NVRTC_ERROR_OUT_OF_MEMORY, 1)                                                   \
    X(__VA_ARGS__, NVRTC_ERROR_PROGRAM_CREATION_FAILURE, 2)                                        \
    X(__VA_ARGS__, NVRTC_ERROR_INVALID_INPUT, 3)                                                   \
    X(__VA_ARGS__, NVRTC_ERROR_INVALID_PROGRAM, 4)                                                 \
    X(__VA_ARGS__, NVRTC_ERROR_COMPILATION, 6)

#ifndef LM_CUDA_API_CHECK
enum {
#define LM_API_VALUE(_, name, value) name = value,
    LM_CUDA_ERRORS(LM_API_VALUE, _) LM_CUDA_VALUES(LM_API_VALUE, _)
        LM_CUBLAS_VALUES(LM_API_VALUE, _) LM_CURAND_VALUES(LM_API_VALUE, _)
            LM_NVRTC_VALUES(LM_API_VALUE, _)
#undef LM_API_VALUE
};
#endif

/* X(..., need, result, name, (parameters)); need: 1, or 0 where older libraries lack it */
#define LM_CUDA_API(X, ...)                                                                        \
    X(__VA_ARGS__, 1, CUresult, cuInit, (unsigned flags))                                          \
    X(__VA_ARGS__, 1, CUresult, cuDriverGetVersion, (int *version))                                \
    X(__VA_ARGS__, 1, CUresult, cuGetErrorName, (CUresult error, const char **name))               \
    X(__VA_ARGS__, 1, CUresult, cuGetErrorString, (CUresult error, const char **text))             \
    X(__VA_ARGS__, 1, CUresult, cuDeviceGetCount, (int *count))                                    \
    X(__VA_ARGS__, 1, CUresult, cuDeviceGet, (CUdevice * device, int ordinal))                     \
    X(__VA_ARGS__, 1, CUresult, cuDeviceGetName, (char *name, int length, CUdevice device))        \
    X(__VA_ARGS__, 1, CUresult, cuDeviceGetAttribute,                                              \
      (int *value, CUdevice_attribute attribute, CUdevice device))                                 \
    X(__VA_ARGS__, 1, CUresult, cuDeviceTotalMem_v2, (size_t * nbytes, CUdevice device))           \
    X(__VA_ARGS__, 1, CUresult, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))  \
    X(__VA_ARGS__, 1, CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                   \
    X(__VA_ARGS__, 1, CUresult, cuCtxPushCurrent_v2, (CUcontext context))                          \
    X(__VA_ARGS__, 1, CUresult, cuCtxPopCurrent_v2, (CUcontext * context))                         \
    X(__VA_ARGS__, 1, CUresult, cuCtxGetCurrent, (CUcontext * context))                            \
    X(__VA_ARGS__, 1, CUresult, cuCtxSynchronize, (void))                                          \
    X(__VA_ARGS__, 1, CUresult, cuMemGetInfo_v2, (size_t * free, size_t * total))                  \
    X(__VA_ARGS__, 1, CUresult, cuMemAlloc_v2, (CUdeviceptr * p, size_t nbytes))                   \
    X(__VA_ARGS__, 1, CUresult, cuMemFree_v2, (CUdeviceptr p))                                     \
    X(__VA_ARGS__, 1, CUresult, cuMemAllocHost_v2, (void **p, size_t nbytes))                      \
    X(__VA_ARGS__, 1, CUresult, cuMemFreeHost, (void *p))                                          \
    X(__VA_ARGS__, 1, CUresult, cuMemcpyHtoDAsync_v2,                                              \
      (CUdeviceptr dst, const void *src, size_t nbytes, CUstream stream))                          \
    X(__VA_ARGS__, 1, CUresult, cuMemcpyDtoHAsync_v2,                                              \
      (void *dst, CUdeviceptr src, size_t nbytes, CUstream stream))                                \
    X(__VA_ARGS__, 1, CUresult, cuMemcpyDtoDAsync_v2,                                              \
      (CUdeviceptr dst, CUdeviceptr src, size_t nbytes, CUstream stream))                          \
    X(__VA_ARGS__, 1, CUresult, cuMemcpyPeerAsync,                                                 \
      (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t nbytes,              \
       CUstream stream))                                                                           \
    X(__VA_ARGS__, 1, CUresult, cuMemsetD8Async,                                                   \
      (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))                       \
    X(__VA_ARGS__, 1, CUresult, cuMemsetD32Async,                                                  \
      (CUdeviceptr dst, unsigned value, size_t count, CUstream stream))                            \
    X(__VA_ARGS__, 1, CUresult, cuStreamCreate, (CUstream * stream, unsigned flags))               \
    X(__VA_ARGS__, 1, CUresult, cuStreamDestroy_v2, (CUstream stream))                             \
    X(__VA_ARGS__, 1, CUresult, cuStreamSynchronize, (CUstream stream))                            \
    X(__VA_ARGS__, 1, CUresult, cuStreamQuery, (CUstream stream))                                  \
    X(__VA_ARGS__, 1, CUresult, cuStreamWaitEvent,                                                 \
      (CUstream stream, CUevent event, unsigned flags))                                            \
    X(__VA_ARGS__, 1, CUresult, cuEventCreate, (CUevent * event, unsigned flags))                  \
    X(__VA_ARGS__, 1, CUresult, cuEventDestroy_v2, (CUevent event))                                \
    X(__VA_ARGS__, 1, CUresult, cuEventRecord, (CUevent event, CUstream stream))                   \
    X(__VA_ARGS__, 1, CUresult, cuEventQuery, (CUevent event))                                     \
    X(__VA_ARGS__, 1, CUresult, cuEventSynchronize, (CUevent event))                               \
    X(__VA_ARGS__, 1, CUresult, cuEventElapsedTime, (float *ms, CUevent start, CUevent end))       \
    X(__VA_ARGS__, 1, CUresult, cuModuleLoadDataEx,                                                \
      (CUmodule * module, const void *image, unsigned count, CUjit_option *options,                \
       void **values))                                                                             \
    X(__VA_ARGS__, 1, CUresult, cuModuleUnload, (CUmodule module))                                 \
    X(__VA_ARGS__, 1, CUresult, cuModuleGetFunction,                                               \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(__VA_ARGS__, 1, CUresult, cuFuncGetAttribute,                                                \
      (int *value, CUfunction_attribute attribute, CUfunction function))                           \
    X(__VA_ARGS__, 1, CUresult, cuFuncSetAttribute,                                                \
      (CUfunction function, CUfunction_attribute attribute, int value))                            \
    X(__VA_ARGS__, 0, CUresult, cuFuncGetParamInfo,                                                \
      (CUfunction function, size_t index, size_t * offset, size_t * size))                         \
    X(__VA_ARGS__, 1, CUresult, cuLaunchKernel,                                                    \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,    \
       void **extra))

#define LM_CUBLAS_API(X, ...)                                                                      \
    X(__VA_ARGS__, 1, cublasStatus_t, cublasCreate_v2, (cublasHandle_t * handle))                  \
    X(__VA_ARGS__, 1, cublasStatus_t, cublasDestroy_v2, (cublasHandle_t handle))                   \
    X(__VA_ARGS__, 1, cublasStatus_t, cublasSetStream_v2,                                          \
      (cublasHandle_t handle, cudaStream_t stream))                                                \
    X(__VA_ARGS__, 0, cublasStatus_t, cublasSetWorkspace_v2,                                       \
      (cublasHandle_t handle, void *workspace, size_t nbytes))                                     \
    X(__VA_ARGS__, 1, cublasStatus_t, cublasSetMathMode,                                           \
      (cublasHandle_t handle, cublasMath_t mode))                                                  \
    X(__VA_ARGS__, 1, cublasStatus_t, cublasGemmStridedBatchedEx,                                  \
      (cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
       int k, const void *alpha, const void *A, cudaDataType Atype, int lda, long long strideA,    \
       const void *B, cudaDataType Btype, int ldb, long long strideB, const void *beta, void *C,   \
       cudaDataType Ctype, int ldc, long long strideC, int batch, cublasComputeType_t compute,     \
       cublasGemmAlgo_t algo))

#define LM_CURAND_API(X, ...)                                                                      \
    X(__VA_ARGS__, 1, curandStatus_t, curandCreateGenerator,                                       \
      (curandGenerator_t * generator, curandRngType_t kind))                                       \
    X(__VA_ARGS__, 1, curandStatus_t, curandCreateGeneratorHost,                                   \
      (curandGenerator_t * generator, curandRngType_t kind))                                       \
    X(__VA_ARGS__, 1, curandStatus_t, curandDestroyGenerator, (curandGenerator_t generator))       \
    X(__VA_ARGS__, 1, curandStatus_t, curandSetStream,                                             \
      (curandGenerator_t generator, cudaStream_t stream))                                          \
    X(__VA_ARGS__, 1, curandStatus_t, curandSetPseudoRandomGeneratorSeed,                          \
      (curandGenerator_t generator, unsigned long long seed))                                      \
    X(__VA_ARGS__, 1, curandStatus_t, curandSetGeneratorOffset,                                    \
      (curandGenerator_t generator, unsigned long long offset))                                    \
    X(__VA_ARGS__, 1, curandStatus_t, curandGenerate,                                              \
      (curandGenerator_t generator, unsigned *words, size_t count))

#define LM_NVRTC_API(X, ...)                                                                       \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcVersion, (int *major, int *minor))                         \
    X(__VA_ARGS__, 1, const char *, nvrtcGetErrorString, (nvrtcResult result))                     \
    X(__VA_ARGS__, 0, nvrtcResult, nvrtcGetNumSupportedArchs, (int *count))                        \
    X(__VA_ARGS__, 0, nvrtcResult, nvrtcGetSupportedArchs, (int *architectures))                   \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcCreateProgram,                                             \
      (nvrtcProgram * program, const char *source, const char *name, int count,                    \
       const char *const *headers, const char *const *include_names))                              \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram * program))                  \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcCompileProgram,                                            \
      (nvrtcProgram program, int count, const char *const *options))                               \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * size))  \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *log))          \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t * size))         \
    X(__VA_ARGS__, 1, nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char *ptx))

#endif
