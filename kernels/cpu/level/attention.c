/* attention.c -- between the two products of attention: masks, running softmax; rotary embedding;
** one table per level. Columns are queries, so that nothing adds up across a vector; of few queries
** rows. Layer: kernels/cpu/level. */
#include <math.h>

#include "cpu/level.h"
#include "exps.h"

#define TOKEN f32
#define TYPE float
#include "attention_float.h"

#define TOKEN f64
#define TYPE double
#include "attention_float.h"

extern const lm_attention_kernels LM_TABLE(attention);
const lm_attention_kernels LM_TABLE(attention) = {
    .soften = {[LUMA_FLOAT32] = soften_f32, [LUMA_FLOAT64] = soften_f64},
    .soften_rows = {[LUMA_FLOAT32] = soften_rows_f32, [LUMA_FLOAT64] = soften_rows_f64},
    .rescale = {[LUMA_FLOAT32] = rescale_f32, [LUMA_FLOAT64] = rescale_f64},
    .rotate = {{[LUMA_FLOAT32] = rotate_halves_f32, [LUMA_FLOAT64] = rotate_halves_f64},
               {[LUMA_FLOAT32] = rotate_pairs_f32, [LUMA_FLOAT64] = rotate_pairs_f64}},
    .hide = {[LUMA_FLOAT32] = hide_f32, [LUMA_FLOAT64] = hide_f64},
};
