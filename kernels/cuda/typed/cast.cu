/* cast.cu -- conversions of LM_D to every other dtype: kernels cast_<to>_<from>. */
#define LM_MAP_CASTS
#include "cuda/map.h"

#define LM_TO b8
#include "cuda/cast_to.h"
#define LM_TO u8
#include "cuda/cast_to.h"
#define LM_TO i8
#include "cuda/cast_to.h"
#define LM_TO i16
#include "cuda/cast_to.h"
#define LM_TO i32
#include "cuda/cast_to.h"
#define LM_TO u32
#include "cuda/cast_to.h"
#define LM_TO i64
#include "cuda/cast_to.h"
#define LM_TO f8
#include "cuda/cast_to.h"
#define LM_TO f16
#include "cuda/cast_to.h"
#define LM_TO bf16
#include "cuda/cast_to.h"
#define LM_TO f32
#include "cuda/cast_to.h"
#define LM_TO f64
#include "cuda/cast_to.h"
