/* order.h -- unsigned integers that order as elements do: as wide as the element, one for both
** zeros, the greatest for every NaN. C, C++ and CUDA. Layer: kernels. */
#ifndef lm_order_h
#define lm_order_h

#include "bits.h"

LM_FN uint64_t lm_order_float(uint64_t bits, uint64_t sign, uint64_t infinity) {
    uint64_t magnitude = bits & (sign - 1);
    if (magnitude > infinity) return 2 * sign - 1;
    if (magnitude == 0) return sign;
    return bits & sign ? sign - magnitude : sign + magnitude;
}

/* X(..., token, ENUM, type of the bits v of an element, what orders as the element) */
#define LM_ORDERS(X, ...)                                                                          \
    X(__VA_ARGS__, b8, BOOL, uint8_t, v != 0)                                                      \
    X(__VA_ARGS__, u8, UINT8, uint8_t, v)                                                          \
    X(__VA_ARGS__, i8, INT8, uint8_t, v ^ 0x80u)                                                   \
    X(__VA_ARGS__, i16, INT16, uint16_t, v ^ 0x8000u)                                              \
    X(__VA_ARGS__, i32, INT32, uint32_t, v ^ 0x80000000u)                                          \
    X(__VA_ARGS__, u32, UINT32, uint32_t, v)                                                       \
    X(__VA_ARGS__, i64, INT64, uint64_t, v ^ 0x8000000000000000u)                                  \
    /* without infinities: the greatest number */                                                  \
    X(__VA_ARGS__, f8, FLOAT8_E4M3, uint8_t, lm_order_float(v, 0x80, 0x7e))                        \
    X(__VA_ARGS__, f16, FLOAT16, uint16_t, lm_order_float(v, 0x8000, 0x7c00))                      \
    X(__VA_ARGS__, bf16, BFLOAT16, uint16_t, lm_order_float(v, 0x8000, 0x7f80))                    \
    X(__VA_ARGS__, f32, FLOAT32, uint32_t, lm_order_float(v, 0x80000000u, 0x7f800000u))            \
    X(__VA_ARGS__, f64, FLOAT64, uint64_t,                                                         \
      lm_order_float(v, 0x8000000000000000u, 0x7ff0000000000000u))

#define LM_ORDER_OF(_, token, ENUM, Bits, order)                                                   \
    LM_FN uint64_t lm_order_##token(Bits v) {                                                      \
        return order;                                                                              \
    }
LM_ORDERS(LM_ORDER_OF, _)
#undef LM_ORDER_OF

#endif
