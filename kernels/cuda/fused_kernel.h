/* fused_kernel.h -- what the kernels are made of that fused.c writes at run time for programs of
** elementwise rows, and their parameter. For NVRTC, and for C, in which the tests run them.
** Layer: kernels/cuda. */
#ifndef lm_cuda_fused_kernel_h
#define lm_cuda_fused_kernel_h

#include "cuda/args.h"
#include "scalar.h"

#define LM_FUSED_OPERANDS 10 /* LM_ITER_MAX */
#define LM_FUSED_NUMBERS 192

typedef struct {
    void *p;
    int64_t stride[LM_WALK_DIMS]; /* bytes, along the dims of the walk */
    int32_t single;               /* one element serves a whole group */
    int32_t step;                 /* bytes from element to element of the rest */
} lm_fused_operand;
/* Operand 0 is written. The walk is that of lm_args_map. */
typedef struct {
    lm_walk walk;
    int64_t n; /* elements in all */
    int32_t grouped;
    int32_t unused;
    lm_fused_operand operand[LM_FUSED_OPERANDS];
    uint64_t
        number[LM_FUSED_NUMBERS]; /* elements in the low bits; of UNARY_P rows double or int64 */
} lm_args_fused;

#if defined(__CUDACC__)
#define LM_FUSED_KERNEL extern "C" __global__ void lm_fused(const __grid_constant__ lm_args_fused a)
#define LM_FUSED_EACH(i, n)                                                                        \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                      \
         i += (int64_t)blockDim.x * gridDim.x)
#define LM_FUSED_UNROLL _Pragma("unroll")
#else
#define LM_FUSED_KERNEL                                                                            \
    void lm_fused(lm_args_fused a);                                                                \
    void lm_fused(lm_args_fused a)
#define LM_FUSED_EACH(i, n) for (int64_t i = 0; i < (n); i++)
#define LM_FUSED_UNROLL
#endif

LM_FN uint32_t lm_fused_divide(uint32_t n, lm_divisor d) {
#if defined(__CUDA_ARCH__)
    uint32_t high = __umulhi(n, d.multiplier);
#else
    uint32_t high = (uint32_t)(((uint64_t)n * d.multiplier) >> 32);
#endif
    return (high + n) >> d.shift;
}

/* Byte offsets of element or group i. */
LM_FN void lm_fused_offsets(const lm_args_fused *a, int64_t i, int count, int64_t *at) {
    uint64_t rest = (uint64_t)i;
    LM_FUSED_UNROLL
    for (int k = 0; k < count; k++)
        at[k] = 0;
    for (int d = a->walk.ndim - 1; d >= 0; d--) {
        uint64_t q = 0;
        if (d > 0)
            q = a->walk.wide ? rest / (uint64_t)a->walk.wide_size[d]
                             : lm_fused_divide((uint32_t)rest, a->walk.size[d]);
        int64_t here = (int64_t)(d > 0 ? rest - q * (uint64_t)a->walk.wide_size[d] : rest);
        LM_FUSED_UNROLL
        for (int k = 0; k < count; k++)
            at[k] += here * a->operand[k].stride[d];
        rest = q;
    }
}

LM_FN double lm_fused_double(uint64_t bits) {
    return lm_float_f64(bits);
}

/* Of a dtype: a number, a group of LM_V elements, where it comes from. LM_V is there before. */
#define LM_FUSED_TYPE(token)                                                                       \
    LM_FN lm_c_##token lm_fused_number_##token(uint64_t bits) {                                    \
        union {                                                                                    \
            uint64_t bits;                                                                         \
            lm_c_##token value;                                                                    \
        } u;                                                                                       \
        u.bits = bits;                                                                             \
        return u.value;                                                                            \
    }                                                                                              \
    typedef struct __attribute__((aligned(LM_V * sizeof(lm_c_##token)))) {                         \
        lm_c_##token e[LM_V];                                                                      \
    } lm_group_##token;                                                                            \
    LM_FN lm_c_##token lm_fused_one_##token(const lm_fused_operand *o, int64_t at) {               \
        return *(const lm_c_##token *)(const void *)((const char *)o->p + at);                     \
    }                                                                                              \
    LM_FN lm_group_##token lm_fused_group_##token(const lm_fused_operand *o, int64_t at) {         \
        if (!o->single) return *(const lm_group_##token *)(const void *)((const char *)o->p + at); \
        lm_group_##token g;                                                                        \
        lm_c_##token one = lm_fused_one_##token(o, at);                                            \
        LM_FUSED_UNROLL                                                                            \
        for (int j = 0; j < LM_V; j++)                                                             \
            g.e[j] = one;                                                                          \
        return g;                                                                                  \
    }

#endif
