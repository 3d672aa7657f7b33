/* quant_words.h -- the words of quantised blocks (core/quant.h): scales and roundings, as GGML's
** reference has them (ggml-quants.c: quantize_row_q8_0_ref, quantize_row_q4_0_ref), made total. C, C++
** and CUDA. Layer: kernels. */
#ifndef lm_quant_words_h
#define lm_quant_words_h

#include "quant.h"
#include "scalar.h"

#define LM_QUANT_NAN 0x7e00u /* the scale of a block that has no numbers */

/* The scale of a block as float16 bits; LM_QUANT_NAN where greatest, the bits of the greatest
** magnitude, is no number's, or float16 cannot hold d. */
LM_FN uint16_t lm_quant_scale(float d, uint32_t greatest) {
    uint16_t bits = lm_store_f16(d).bits;
    return greatest >= 0x7f800000u || (bits & 0x7fffu) >= 0x7c00u ? LM_QUANT_NAN : bits;
}

/* What elements are multiplied by: 1 / d; 0 where the block has no numbers, or too small ones. */
LM_FN float lm_quant_inverse(float d, uint16_t scale) {
    float inverse = 1.0f / d;
    return scale != LM_QUANT_NAN && lm_abs_f32(inverse) <= 0x1.fffffep127f ? inverse : 0.0f;
}

/* |v| < 2^30 to the nearest integer, halves away from zero. */
LM_FN int lm_quant_round(float v) {
    int i = (int)v;
    float rest = v - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* q of q8_0 and of q4_0, for an element of a block; inverse 0 gives the q that stands for 0, whatever
** x is. */
LM_FN int lm_q8_0_of(float x, float inverse) {
    return inverse == 0.0f ? 0 : lm_quant_round(x * inverse);
}
LM_FN int lm_q4_0_of(float x, float inverse) {
    int q = inverse == 0.0f ? 8 : (int)(x * inverse + 8.5f);
    return q < 15 ? q : 15;
}

/* Rows that products read are rounded to 8 bits as well, with a float32 scale: x is about q times it.
** greatest: the bits of the greatest magnitude of the block. Tiny ones are multiplied up first. */
LM_FN float lm_quant_row_scale(uint32_t greatest) {
    float amax = lm_float_f32(greatest);
    return greatest >= 0x7f800000u ? lm_float_f32(0x7fc00000u) : amax / 127.0f;
}
LM_FN float lm_quant_row_lift(uint32_t greatest) {
    return lm_float_f32(greatest) < 0x1p-60f ? 0x1p64f : 1.0f;
}
LM_FN float lm_quant_row_inverse(uint32_t greatest) {
    float amax = lm_float_f32(greatest) * lm_quant_row_lift(greatest);
    return greatest == 0 || greatest >= 0x7f800000u ? 0.0f : 127.0f / amax;
}
/* x: already lifted. */
LM_FN int lm_quant_row_of(float x, float inverse) {
    return inverse == 0.0f ? 0 : lm_quant_round(x * inverse);
}

#endif
