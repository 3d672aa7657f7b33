/* dtype.h -- the one list of element types. To add a dtype, add a row.
** Layer: core; read by kernels (C and CUDA) and bindings. No other include than luma_base.h. */
#ifndef lm_dtype_h
#define lm_dtype_h

#include "luma_base.h"

/* Structs, so that no arithmetic is done on their bits by accident. */
typedef struct {
    uint8_t bits;
} lm_f8;
typedef struct {
    uint16_t bits;
} lm_f16;
typedef struct {
    uint16_t bits;
} lm_bf16;

/* X(..., token, ENUM, "long name", T, compute, kind, eps, DLPack code)
**   token    the suffix of every function made for it: add_f32
**   T        storage type
**   compute  the token of the type that scalar words compute in; conversion happens at load and
**            store. Kernels exist for compute tokens; other dtypes pass through cast blocks.
**   kind     BOOL < INT < FLOAT
** The caller's own arguments come first, so that a reader names the columns it wants and ends
** with '...': a new column breaks no reader. */
#define LM_BOOLS(X, ...) X(__VA_ARGS__, b8, BOOL, "bool", uint8_t, b8, BOOL, 0, 6)

#define LM_INTS(X, ...)                                                                            \
    X(__VA_ARGS__, u8, UINT8, "uint8", uint8_t, u8, INT, 0, 1)                                     \
    X(__VA_ARGS__, i8, INT8, "int8", int8_t, i8, INT, 0, 0)                                        \
    X(__VA_ARGS__, i16, INT16, "int16", int16_t, i16, INT, 0, 0)                                   \
    X(__VA_ARGS__, i32, INT32, "int32", int32_t, i32, INT, 0, 0)                                   \
    X(__VA_ARGS__, u32, UINT32, "uint32", uint32_t, u32, INT, 0, 1)                                \
    X(__VA_ARGS__, i64, INT64, "int64", int64_t, i64, INT, 0, 0)

#define LM_SMALL_FLOATS(X, ...)                                                                    \
    X(__VA_ARGS__, f8, FLOAT8_E4M3, "float8_e4m3", lm_f8, f32, FLOAT, 0x1p-3, 10)                  \
    X(__VA_ARGS__, f16, FLOAT16, "float16", lm_f16, f32, FLOAT, 0x1p-10, 2)                        \
    X(__VA_ARGS__, bf16, BFLOAT16, "bfloat16", lm_bf16, f32, FLOAT, 0x1p-7, 4)

#define LM_WIDE_FLOATS(X, ...)                                                                     \
    X(__VA_ARGS__, f32, FLOAT32, "float32", float, f32, FLOAT, 0x1p-23, 2)                         \
    X(__VA_ARGS__, f64, FLOAT64, "float64", double, f64, FLOAT, 0x1p-52, 2)

#define LM_FLOATS(X, ...) LM_SMALL_FLOATS(X, __VA_ARGS__) LM_WIDE_FLOATS(X, __VA_ARGS__)
#define LM_DTYPES(X, ...) LM_BOOLS(X, __VA_ARGS__) LM_INTS(X, __VA_ARGS__) LM_FLOATS(X, __VA_ARGS__)
/* The dtypes that kernels are written for. */
#define LM_COMPUTE(X, ...)                                                                         \
    LM_BOOLS(X, __VA_ARGS__) LM_INTS(X, __VA_ARGS__) LM_WIDE_FLOATS(X, __VA_ARGS__)

typedef enum { LM_KIND_BOOL, LM_KIND_INT, LM_KIND_FLOAT } lm_kind;

typedef struct {
    const char *name;   /* "float32" */
    const char *token;  /* "f32" */
    uint8_t size;       /* bytes of one element */
    uint8_t kind;       /* lm_kind */
    uint8_t compute;    /* luma_dtype that kernels run in */
    uint8_t dlpack;     /* DLPack type code */
    bool is_signed;     /* bool and unsigned integers: false */
    double eps;         /* distance from 1 to the next number; 0 for bool and integers */
    int64_t imin, imax; /* range of bool and integer dtypes */
} lm_dtype_info;

extern const lm_dtype_info lm_dtypes[LUMA_NDTYPES];

static inline size_t lm_dtype_size(luma_dtype d) {
    return lm_dtypes[d].size;
}
static inline bool lm_dtype_is_float(luma_dtype d) {
    return lm_dtypes[d].kind == LM_KIND_FLOAT;
}
static inline bool lm_dtype_is_int(luma_dtype d) {
    return lm_dtypes[d].kind == LM_KIND_INT;
}

/* The one promotion table: the dtype in which a and b meet. */
luma_dtype lm_dtype_promote(luma_dtype a, luma_dtype b);

/* The one accumulator table: sums of x run in this dtype. bool and integers int64; float8, float16,
** bfloat16 float32; float32 float32 (kernels add lanes pairwise or in double); float64 float64. */
luma_dtype lm_dtype_accumulator(luma_dtype x);
/* That of floats; integers stay as they are, for they wrap. */
luma_dtype lm_dtype_wide(luma_dtype x);

/* Reads "float32", "f32", ...; false when the name is none. Names need not end in NUL. */
bool lm_dtype_parse(const char *name, size_t length, luma_dtype *out);

#endif
