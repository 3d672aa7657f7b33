/* kernel.h -- the prelude of every .cu file: the C subset that nvcc, NVRTC and the host compiler
** behind the emulated device read alike. Layer: kernels/cuda.
**
** LM_KERNEL(name) { ... } defines a kernel that kernels.def lists; its one parameter is `a`, of the
** type listed there. Files of typed/ are compiled with LM_DTYPE defined as the token of a storage
** dtype: there a kernel is LM_TYPED(name), LM_D is that dtype, and LM_S, LM_C, LM_LOAD, LM_STORE are
** its storage type, compute type and the way between them. */
#ifndef lm_cuda_kernel_h
#define lm_cuda_kernel_h

#if defined(__CUDACC__)
#include "bits.h"
/* The parameter stays in constant memory: never take its address in a function that is not
** inlined. */
#define LM_KERNEL_(name)                                                                           \
    extern "C" __global__ void name(const __grid_constant__ lm_args_of_##name a)
#define LM_ALL_LANES 0xffffffffu
#define LM_DYNAMIC_SHARED(T, name)                                                                 \
    extern __shared__ uint4 lm_dynamic_shared[];                                                   \
    T *name = (T *)lm_dynamic_shared
#else
#include "emulator/shim.h"
#define LM_KERNEL_(name) LM_EMU_KERNEL(name, lm_args_of_##name)
#define LM_ALL_LANES 0xffffffffu
/* The bytes of shared memory that the launch asks for, as T *name. */
#define LM_DYNAMIC_SHARED(T, name) T *name = (T *)lm_emu_dynamic_shared()
#endif
#define LM_KERNEL(name) LM_KERNEL_(name)

#ifdef LM_D
#error "typed files are compiled with LM_DTYPE=f32 and the like: LM_D is for the list of kernels"
#endif
#define KERNEL(module, name, args) typedef args lm_args_of_##name;
#include "cuda/kernels.def"
#undef KERNEL

/* ---- typed files ---- */

#ifdef LM_DTYPE
#define LM_D LM_DTYPE
#include "scalar.h"
#define LM_WITH_D__(name, d) name##_##d
#define LM_WITH_D_(name, d) LM_WITH_D__(name, d)
#define LM_TYPED(name) LM_KERNEL(LM_WITH_D_(name, LM_D))
#define LM_DT LM_OF(LM_COMPUTED_, LM_D) /* the compute token: set LM_T to it for words.h */
#define LM_S LM_OF(lm_c_, LM_D)
#define LM_LOAD(v) LM_OF(lm_load_, LM_D)(v)
/* from the compute type of LM_D, rounded once */
#define LM_STORE(v) LM_OF(lm_store_, LM_D)(v)
#endif

/* ---- walking ---- */

/* Before a loop whose rounds are a small constant: arrays that it indexes stay in registers. And
** before one that is short or seldom runs, of which one copy is enough. */
#if defined(__CUDACC__)
#define LM_UNROLL _Pragma("unroll")
#define LM_NO_UNROLL _Pragma("unroll 1")
#else
#define LM_UNROLL
#define LM_NO_UNROLL
#endif

/* All threads of the grid over 0 .. n-1. */
#define LM_EACH(i, n)                                                                              \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                      \
         i += (int64_t)blockDim.x * gridDim.x)

LM_FN uint32_t lm_mulhi_index(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)(((uint64_t)a * b) >> 32);
#endif
}
LM_FN uint32_t lm_divide(uint32_t n, uint32_t multiplier, uint32_t shift) {
    return (lm_mulhi_index(n, multiplier) + n) >> shift;
}

/* Byte offsets of element i of a walk, for the strides (bytes) of up to four operands. */
#define LM_OFFSET(walk, i, stride, out)                                                            \
    do {                                                                                           \
        int64_t offset_ = 0;                                                                       \
        if ((walk).wide) {                                                                         \
            int64_t rest_ = (i);                                                                   \
            LM_NO_UNROLL                                                                           \
            for (int d_ = (walk).ndim - 1; d_ > 0; d_--) {                                         \
                int64_t q_ = rest_ / (walk).wide_size[d_];                                         \
                offset_ += (rest_ - q_ * (walk).wide_size[d_]) * (stride)[d_];                     \
                rest_ = q_;                                                                        \
            }                                                                                      \
            offset_ += (walk).ndim > 0 ? rest_ * (stride)[0] : 0;                                  \
        } else {                                                                                   \
            uint32_t rest_ = (uint32_t)(i);                                                        \
            int32_t o_ = 0;                                                                        \
            LM_NO_UNROLL                                                                           \
            for (int d_ = (walk).ndim - 1; d_ > 0; d_--) {                                         \
                uint32_t q_ = lm_divide(rest_, (walk).size[d_].multiplier, (walk).size[d_].shift); \
                o_ += (int32_t)(rest_ - q_ * (walk).size[d_].divisor) * (int32_t)(stride)[d_];     \
                rest_ = q_;                                                                        \
            }                                                                                      \
            offset_ = o_ + ((walk).ndim > 0 ? (int32_t)rest_ * (int32_t)(stride)[0] : 0);          \
        }                                                                                          \
        (out) = offset_;                                                                           \
    } while (0)

/* The same for up to four operands; count is a constant, STRIDE(k) the strides of operand k. One
** division a dim serves them all. */
#define LM_OFFSETS(walk, i, count, STRIDE, out)                                                    \
    do {                                                                                           \
        if ((walk).wide) {                                                                         \
            uint64_t rest_ = (uint64_t)(i);                                                        \
            for (int k_ = 0; k_ < (count); k_++)                                                   \
                (out)[k_] = 0;                                                                     \
            LM_NO_UNROLL                                                                           \
            for (int d_ = (walk).ndim - 1; d_ > 0; d_--) {                                         \
                uint64_t q_ = rest_ / (uint64_t)(walk).wide_size[d_];                              \
                int64_t at_ = (int64_t)(rest_ - q_ * (uint64_t)(walk).wide_size[d_]);              \
                for (int k_ = 0; k_ < (count); k_++)                                               \
                    (out)[k_] += at_ * STRIDE(k_)[d_];                                             \
                rest_ = q_;                                                                        \
            }                                                                                      \
            if ((walk).ndim > 0) {                                                                 \
                for (int k_ = 0; k_ < (count); k_++)                                               \
                    (out)[k_] += (int64_t)rest_ * STRIDE(k_)[0];                                   \
            }                                                                                      \
        } else {                                                                                   \
            uint32_t rest_ = (uint32_t)(i);                                                        \
            int32_t o_[4];                                                                         \
            for (int k_ = 0; k_ < (count); k_++)                                                   \
                o_[k_] = 0;                                                                        \
            LM_NO_UNROLL                                                                           \
            for (int d_ = (walk).ndim - 1; d_ > 0; d_--) {                                         \
                uint32_t q_ = lm_divide(rest_, (walk).size[d_].multiplier, (walk).size[d_].shift); \
                int32_t at_ = (int32_t)(rest_ - q_ * (walk).size[d_].divisor);                     \
                for (int k_ = 0; k_ < (count); k_++)                                               \
                    o_[k_] += at_ * (int32_t)STRIDE(k_)[d_];                                       \
                rest_ = q_;                                                                        \
            }                                                                                      \
            for (int k_ = 0; k_ < (count); k_++)                                                   \
                (out)[k_] =                                                                        \
                    o_[k_] + ((walk).ndim > 0 ? (int32_t)rest_ * (int32_t)STRIDE(k_)[0] : 0);      \
        }                                                                                          \
    } while (0)

/* Notes a fault; of several the one of the smallest position stays, so that the message does not
** depend on the order of threads. */
LM_FN void lm_note_fault(lm_fault *f, lm_fault_code code, int op, int argument, int64_t position,
                         int64_t value, int64_t size) {
    unsigned long long *at = &f->position;
    int noted = atomicAdd(&f->code, 0);
    if (noted != 0 && (int64_t)atomicAdd(at, 0ull) <= position) return;
    for (int done = 0; !done;) {
        if (atomicCAS(&f->lock, 0, 1) != 0) continue;
        __threadfence();
        noted = atomicAdd(&f->code, 0);
        if (noted == 0 || (int64_t)atomicAdd(at, 0ull) > position) {
            atomicExch(at, (unsigned long long)position);
            atomicExch(&f->op, op);
            atomicExch(&f->argument, argument);
            atomicExch(&f->value, (unsigned long long)value);
            atomicExch(&f->size, (unsigned long long)size);
            __threadfence();
            atomicExch(&f->code, (int)code);
        }
        __threadfence();
        atomicExch(&f->lock, 0);
        done = 1;
    }
}

#endif
