/* elementwise.c -- kernels of the elementwise rows of ops.def for every compute type; built once
** per level. Layer: kernels/cpu/level. */
#include "bits.h"
#include "cpu/level.h"
#include "cpu/vector.h"

/* Rows that never stream (cpu/map.c). */
LM_FN bool lm_is_guarded(lm_op op) {
    return op == LM_OP_floor_div || op == LM_OP_trunc_div || op == LM_OP_remainder ||
           op == LM_OP_fmod || op == LM_OP_pow || op == LM_OP_lshift || op == LM_OP_rshift;
}

#define LM_T b8
#include "elementwise_type.h"
#define LM_T u8
#include "elementwise_type.h"
#define LM_T i8
#include "elementwise_type.h"
#define LM_T i16
#include "elementwise_type.h"
#define LM_T i32
#include "elementwise_type.h"
#define LM_T u32
#include "elementwise_type.h"
#define LM_T i64
#include "elementwise_type.h"
#define LM_T f32
#include "elementwise_type.h"
#define LM_T f64
#include "elementwise_type.h"

/* The table: for each row the types of its dtypes column. */
#define ENTRY(name, token, ENUM, ...) [LUMA_##ENUM] = lm_##name##_map_##token,
#define FLOATS(name) LM_WIDE_FLOATS(ENTRY, name)
#define INTS(name) LM_INTS(ENTRY, name)
#define NUMBERS(name) INTS(name) FLOATS(name)
#define BITS(name) LM_BOOLS(ENTRY, name) INTS(name)
#define ALL(name) LM_BOOLS(ENTRY, name) NUMBERS(name)
#define ROW(name, dtypes, ...) [LM_OP_##name] = {dtypes(name)},
#define GUARD(_, token, ENUM, ...) [LUMA_##ENUM] = {lm_find_zero_##token, lm_find_negative_##token},

extern const lm_elementwise_kernels LM_TABLE(elementwise);
const lm_elementwise_kernels LM_TABLE(elementwise) = {
    .map =
        {
#define UNARY ROW
#define UNARY_P ROW
#define TEST ROW
#define BINARY ROW
#define COMPARE ROW
#define TERNARY ROW
#define LM_ROWS_ALONE
#include "ops.def"
        },
    .guard = {LM_INTS(GUARD, _)},
};
