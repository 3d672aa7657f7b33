/* chain.c -- rows of which each takes what the one before gives, with that in registers; built once
** per level. The arithmetic of vectors, as the rows' kernels have it one element after the other.
** Layer: kernels/cpu/level. */
#include <math.h>

#include "bits.h"
#include "cpu/level.h"
#include "cpu/vector.h"

#define LM_CHAIN_VECTORS 8
#define UNROLL _Pragma("GCC unroll 8")

#define T float
#define BITS int32_t
#define F(name) name##_f32
#include "chain_type.h"

#define T double
#define BITS int64_t
#define F(name) name##_f64
#include "chain_type.h"

extern const lm_chain_kernels LM_TABLE(chain);
const lm_chain_kernels LM_TABLE(chain) = {
    .bytes = LM_CHAIN_VECTORS * LM_VECTOR,
    .vector = LM_VECTOR,
    .run = {[LUMA_FLOAT32] = run_f32, [LUMA_FLOAT64] = run_f64},
};
