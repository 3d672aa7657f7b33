/* cast.c -- conversions between all dtypes; built once per level. Layer: kernels/cpu/level. */
#include "cpu/level.h"
#include "scalar.h"

#include <string.h>

/* Elements of one size, bits as they are. */
LM_FN void copy(int64_t n, const char *x, int64_t sx, char *y, int64_t sy, size_t size) {
    if (sx == (int64_t)size && sy == (int64_t)size) {
        memmove(y, x, (size_t)n * size);
    } else {
        for (int64_t i = 0; i < n; i++, x += sx, y += sy)
            memcpy(y, x, size);
    }
}

/* The dtype of a token, as a constant. */
#define ID(_, token, ENUM, ...) lm_id_##token = LUMA_##ENUM,
enum { LM_DTYPES(ID, _) };

/* LM_VIA: the type that LM_FROM computes in. */
#define LM_FROM b8
#define LM_VIA b8
#include "cast_from.h"
#define LM_FROM u8
#define LM_VIA u8
#include "cast_from.h"
#define LM_FROM i8
#define LM_VIA i8
#include "cast_from.h"
#define LM_FROM i16
#define LM_VIA i16
#include "cast_from.h"
#define LM_FROM i32
#define LM_VIA i32
#include "cast_from.h"
#define LM_FROM u32
#define LM_VIA u32
#include "cast_from.h"
#define LM_FROM i64
#define LM_VIA i64
#include "cast_from.h"
#define LM_FROM f8
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f16
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM bf16
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f32
#define LM_VIA f32
#include "cast_from.h"
#define LM_FROM f64
#define LM_VIA f64
#include "cast_from.h"

#define ROW(_, token, ENUM, ...) [LUMA_##ENUM] = lm_casts_##token,

extern const lm_cast_kernels LM_TABLE(cast);
const lm_cast_kernels LM_TABLE(cast) = {{LM_DTYPES(ROW, _)}};
