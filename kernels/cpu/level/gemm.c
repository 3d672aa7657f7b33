/* gemm.c -- the loops of the matrix product: packing, register tiles, skinny products. Every
** element of a result is summed in an order that sizes alone decide. The one file in which the
** compiler may contract to FMA. Layer: kernels/cpu. */
#include "cpu/level.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define ONCE __attribute__((noinline)) /* big: one copy, not one per constant argument */
#else
#define UNROLL _Pragma("GCC unroll 32")
#define ONCE __attribute__((noinline, noclone))
#endif

/* Bytes of a vector; the register tile is MR rows of NV vectors, other tiles have up to EDGE rows;
** DOTS rows meet four columns;
** THREE rows are convolved together. */
#if defined(__AVX512F__)
#define VECTOR 64
#define MR 14
#define EDGE 8
#define THREE 7
#define DOTS 4
#elif defined(__AVX2__)
#define VECTOR 32
#define MR 6
#define EDGE 6
#define THREE 4
#define DOTS 2
#else
#define VECTOR 16
#define MR 4
#define EDGE 4
#define THREE 4
#define DOTS 2
#endif
#define NV 2
#define WIDE 4    /* vectors of a single row */
#define SWEEP 4   /* rows that meet four streams */
#define AHEAD 256 /* bytes that such a stream is asked for ahead of time */
#define STREAMS 4 /* columns of dots, rows of sweep that are read side by side */

#define T float
#define LANES (VECTOR / 4)
#define F(name) name##_f32
#include "gemm_type.h"

#define T double
#define LANES (VECTOR / 8)
#define F(name) name##_f64
#include "gemm_type.h"

#define T uint32_t
#define LANES (VECTOR / 4)
#define F(name) name##_w32
#include "gemm_type.h"

#define T uint64_t
#define LANES (VECTOR / 8)
#define F(name) name##_w64
#include "gemm_type.h"

/* ---- 16-bit floats as many rows ------------------------------------------------------------- */

#define T float
#define LANES (VECTOR / 4)
#define F(name) name##_f32
#define VEC vec_f32

typedef uint16_t halves __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(VECTOR)));

static INLINE VEC widen_bf16(const uint16_t *p) {
    return (VEC)(__builtin_convertvector(*(const halves *)p, words) << 16);
}
static INLINE VEC widen_part_bf16(const uint16_t *p, int n) {
    uint16_t lane[LANES] = {0};
    for (int i = 0; i < n; i++)
        lane[i] = p[i];
    return widen_bf16(lane);
}
#define W uint16_t
#define G(name) name##_bf16
#define WIDEN widen_bf16
#define WIDEN_PART widen_part_bf16
#include "gemm_few.h"

#if defined(__F16C__)
static INLINE VEC widen_f16(const uint16_t *p) {
#if defined(__AVX512F__)
    return (VEC)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#else
    return (VEC)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#endif
}
static INLINE VEC widen_part_f16(const uint16_t *p, int n) {
    uint16_t lane[LANES] = {0};
    for (int i = 0; i < n; i++)
        lane[i] = p[i];
    return widen_f16(lane);
}
#define W uint16_t
#define G(name) name##_f16
#define WIDEN widen_f16
#define WIDEN_PART widen_part_f16
#include "gemm_few.h"
#define FEW_F16 dots_f16, sweep_f16
#else
#define FEW_F16 NULL, NULL
#endif

const lm_gemm_kernels LM_TABLE(gemm) = {
    {MR,
     NV *VECTOR / 4,
     pack_f32,
     block_f32,
     small_f32,
     rows_f32,
     lines_f32,
     three_f32,
     {dots_f32, sweep_f32}},
    {MR,
     NV *VECTOR / 8,
     pack_f64,
     block_f64,
     small_f64,
     rows_f64,
     lines_f64,
     three_f64,
     {dots_f64, sweep_f64}},
    {MR,
     NV *VECTOR / 4,
     pack_w32,
     block_w32,
     small_w32,
     rows_w32,
     lines_w32,
     three_w32,
     {dots_w32, sweep_w32}},
    {MR,
     NV *VECTOR / 8,
     pack_w64,
     block_w64,
     small_w64,
     rows_w64,
     lines_w64,
     three_w64,
     {dots_w64, sweep_w64}},
    {dots_bf16, sweep_bf16},
    {FEW_F16},
};
