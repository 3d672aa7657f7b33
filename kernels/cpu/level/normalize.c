/* normalize.c -- what follows the statistics of a line: mean taken off, scale, weight and bias; one
** table per level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "lanes.h"

#define TOKEN f32
#define TYPE float
#include "normalize_float.h"

#define TOKEN f64
#define TYPE double
#include "normalize_float.h"

extern const lm_normalize_kernels LM_TABLE(normalize);
const lm_normalize_kernels LM_TABLE(normalize) = {
    .apply = {[LUMA_FLOAT32] = apply_f32, [LUMA_FLOAT64] = apply_f64},
};
