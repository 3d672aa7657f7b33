/* cumprod.cu -- running products along lines of one dtype: of floats with an exponent of their own, of
** bool and integers in 64 bits, which wrap. */
#include "cuda/fold.h"
#include "product.h"

#if LM_IS_FLOAT
typedef lm_product product;
LM_FN product product_of(double v) {
    product p = {v, 0};
    return p;
}
LM_FN product no_product(void) {
    return product_of(1);
}
LM_FN product product_lane(product v, uint32_t lane) {
    product p;
    p.m = __shfl_sync(LM_ALL_LANES, v.m, (int)lane);
    p.e = __shfl_sync(LM_ALL_LANES, v.e, (int)lane);
    return p;
}
#define PRODUCT_JOIN lm_product_join
#define PRODUCT_OF(a, v, i) product_of((double)(v))
#define PRODUCT_STORE(a, s, i, v)                                                                  \
    (*(LM_S *)(void *)((s).y + (i) * (a).y_step) = LM_FROM_F64(lm_product_value(v)))
#else
typedef uint64_t product;
LM_FN product no_product(void) {
    return 1;
}
LM_FN product product_lane(product v, uint32_t lane) {
    return __shfl_sync(LM_ALL_LANES, v, (int)lane);
}
#define PRODUCT_JOIN LM_PRODUCT_OF
#define PRODUCT_OF(a, v, i) ((product)(int64_t)(v))
#define PRODUCT_STORE(a, s, i, v)                                                                  \
    (*(int64_t *)(void *)((s).y + (i) * (a).y_step) = (int64_t)(v))
#endif

#define NAME product
#define RUN product
#define NONE no_product
#define JOIN PRODUCT_JOIN
#define LANE product_lane
#include "cuda/running.h"

RUNNING(cumprod, product, PRODUCT_JOIN, PRODUCT_OF, PRODUCT_STORE)
