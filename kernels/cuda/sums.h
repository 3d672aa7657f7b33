/* sums.h -- what products of the dtype LM_D add up in: float32, double, or unsigned words that wrap; for
** files in typed/. Layer: kernels/cuda. */
#include "cuda/kernel.h"

#if LM_OF(LM_STORED_, LM_D) == 3
#define SUM LM_OF(lm_c_, LM_DT)
#define ADD_PRODUCT(x, y, sum) LM_OF(lm_fma_, LM_DT)(x, y, sum)
#define RESULT(sum) LM_STORE(sum)
#else
#define SUM_u8 uint32_t
#define SUM_i8 uint32_t
#define SUM_i16 uint32_t
#define SUM_i32 uint32_t
#define SUM_u32 uint32_t
#define SUM_i64 uint64_t
#define SUM LM_OF(SUM_, LM_D)
#define ADD_PRODUCT(x, y, sum) ((sum) + (x) * (y))
#define RESULT(sum) ((LM_S)(sum))
#endif
