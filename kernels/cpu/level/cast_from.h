/* cast_from.h -- conversions of one dtype to all; template: LM_FROM and LM_VIA are tokens.
** Layer: kernels/cpu/level. */
#define LM_NAME2_(name, to, from) lm_##name##_##to##_##from
#define LM_NAME2(name, to, from) LM_NAME2_(name, to, from)

#define LM_TO b8
#include "cast_pair.h"
#define LM_TO u8
#include "cast_pair.h"
#define LM_TO i8
#include "cast_pair.h"
#define LM_TO i16
#include "cast_pair.h"
#define LM_TO i32
#include "cast_pair.h"
#define LM_TO u32
#include "cast_pair.h"
#define LM_TO i64
#include "cast_pair.h"
#define LM_TO f8
#include "cast_pair.h"
#define LM_TO f16
#include "cast_pair.h"
#define LM_TO bf16
#include "cast_pair.h"
#define LM_TO f32
#include "cast_pair.h"
#define LM_TO f64
#include "cast_pair.h"

#define ENTRY(from, to, ENUM, ...) [LUMA_##ENUM] = LM_NAME2(cast, to, from),
static lm_cast_fn *const LM_PASTE(lm_casts, LM_FROM)[LUMA_NDTYPES] = {LM_DTYPES(ENTRY, LM_FROM)};

#undef ENTRY
#undef LM_NAME2
#undef LM_NAME2_
#undef LM_FROM
#undef LM_VIA
