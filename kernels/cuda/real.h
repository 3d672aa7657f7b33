/* real.h -- results that are floats whatever goes in: of floats their own dtype, of bool and
** integers the default one, which is known when a kernel runs. For files in typed/. Layer:
** kernels/cuda. */
#ifndef lm_cuda_real_h
#define lm_cuda_real_h

#include "cuda/kernel.h"

/* The token of the type in which exponentials are taken. */
#define LM_REAL_b8 f64
#define LM_REAL_u8 f64
#define LM_REAL_i8 f64
#define LM_REAL_i16 f64
#define LM_REAL_i32 f64
#define LM_REAL_u32 f64
#define LM_REAL_i64 f64
#define LM_REAL_f8 f32
#define LM_REAL_f16 f32
#define LM_REAL_bf16 f32
#define LM_REAL_f32 f32
#define LM_REAL_f64 f64
#define LM_REAL LM_OF(LM_REAL_, LM_D)
typedef LM_OF(lm_c_, LM_REAL) lm_real;

/* v rounded once into what y points at. */
LM_FN void lm_store_real(void *y, double v, int dtype) {
#if LM_OF(LM_STORED_, LM_D) == 3
    (void)dtype;
    *(LM_S *)y = LM_OF(LM_OF(lm_to_, LM_D), _f64)(v);
#else
    switch (dtype) {
#define STORE(_, token, ENUM, name, T, ...)                                                        \
    case LUMA_##ENUM:                                                                              \
        *(T *)y = lm_to_##token##_f64(v);                                                          \
        break;
        LM_FLOATS(STORE, _)
#undef STORE
    }
#endif
}

/* NaN wins. */
LM_FN double lm_greater_real(double a, double b) {
    double m = a > b ? a : b;
    return a != a ? a : m;
}

#endif
