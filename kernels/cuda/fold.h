/* fold.h -- how the threads of reductions walk their lines; for files in typed/. Layer:
** kernels/cuda. */
#ifndef lm_cuda_fold_h
#define lm_cuda_fold_h

#include "cuda/group.h"
#include "cuda/real.h"

#define LM_T LM_DT
#include "words.h"

#define LM_IS_FLOAT (LM_OF(LM_STORED_, LM_D) == 3)

/* Whole numbers in the order of the values. */
#define LM_KEY_b8 uint32_t
#define LM_KEY_u8 uint32_t
#define LM_KEY_i8 uint32_t
#define LM_KEY_i16 uint32_t
#define LM_KEY_i32 uint32_t
#define LM_KEY_u32 uint32_t
#define LM_KEY_i64 uint64_t
#define LM_KEY_f8 uint32_t
#define LM_KEY_f16 uint32_t
#define LM_KEY_bf16 uint32_t
#define LM_KEY_f32 uint32_t
#define LM_KEY_f64 uint64_t
typedef LM_OF(LM_KEY_, LM_D) lm_key;

#if LM_IS_FLOAT
typedef double lm_total;
#else
typedef uint64_t lm_total; /* wraps */
#endif

#define LM_QUIET_f32 lm_float_f32(0x7fc00000u)
#define LM_QUIET_f64 lm_float_f64(0x7ff8000000000000u)

/* What a thread makes of its elements; a kernel uses what it needs. */
typedef struct {
    lm_total total;
    double real, shift;   /* real: a sum of what shift was taken off */
    lm_key key, flip;     /* the greatest key; all bits set: keys are turned round */
    int64_t at;           /* its position */
    uint32_t any, wanted; /* whether there was an element of this truth */
} lm_fold;
typedef void lm_take(lm_fold *f, LM_C v, int64_t i);

/* The key of v, or of what is the greater the less v is. NaN is the greatest either way. */
LM_FN lm_key lm_key_of(LM_C v, lm_key flip) {
#if LM_IS_FLOAT
    lm_key bits = LM_OF(lm_bits_, LM_DT)(v), sign = bits >> (8 * sizeof bits - 1);
    lm_key key = bits ^ ((lm_key)(0 - sign) | (lm_key)1 << (8 * sizeof bits - 1));
    return v != v ? ~(lm_key)0 : key ^ flip;
#elif LM_OF(LM_STORED_, LM_D) == 2
    return ((lm_key)v ^ (lm_key)1 << (8 * sizeof flip - 1)) ^ flip;
#else
    return (lm_key)v ^ flip;
#endif
}

/* Back again; every NaN as the same. */
LM_FN LM_C lm_value_of(lm_key key, lm_key flip) {
#if LM_IS_FLOAT
    lm_key k = key ^ flip, down = 0 - (k >> (8 * sizeof k - 1)); /* of positive numbers */
    LM_C v = LM_OF(lm_float_, LM_DT)(k ^ (~down | (lm_key)1 << (8 * sizeof k - 1)));
    return key == ~(lm_key)0 ? (LM_C)LM_OF(LM_QUIET_, LM_DT) : v;
#elif LM_OF(LM_STORED_, LM_D) == 2
    return (LM_C)((key ^ flip) ^ (lm_key)1 << (8 * sizeof key - 1));
#else
    return (LM_C)(key ^ flip);
#endif
}

/* The part of a line that a thread folds. */
typedef struct {
    int64_t line, part; /* part: where the line's chunk is among the parts */
    int64_t begin, end;
    uint32_t lane, lanes;
    bool inside, tells; /* there is such a line; and this thread writes what comes of it */
} lm_place;

LM_FN lm_place lm_place_of(const lm_args_reduce *a, int64_t base) {
    lm_place p;
    p.line = base + lm_line_of(a->group);
    p.part = p.line * a->chunks + blockIdx.y;
    p.begin = (int64_t)blockIdx.y * a->chunk;
    p.end = p.begin + a->chunk < a->reduced.n ? p.begin + a->chunk : a->reduced.n;
    p.lane = lm_lane_of(a->group);
    p.lanes = 1u << a->group.lanes;
    p.inside = p.line < a->kept.n;
    p.tells = p.inside && p.lane == 0;
    return p;
}

LM_FN const char *lm_line_at(const lm_args_reduce *a, int64_t line) {
    int64_t offset;
    LM_OFFSET(a->kept, line, a->kept_x, offset);
    return (const char *)a->x + offset;
}

LM_FN LM_S lm_element(const char *x) {
    return *(const LM_S *)(const void *)x;
}

#define LM_AHEAD 4 /* loads of a thread that are under way together */

/* Lines in any layout. */
LM_FN void lm_fold_walk(const lm_args_reduce *a, const char *x, lm_place p, lm_fold *f,
                        lm_take *take) {
    LM_NO_UNROLL
    for (int64_t i = p.begin + p.lane; i < p.end; i += (int64_t)LM_AHEAD * p.lanes) {
        LM_S v[LM_AHEAD];
        LM_UNROLL
        for (uint32_t k = 0; k < LM_AHEAD; k++) {
            int64_t offset, at = i + k * p.lanes;
            if (at >= p.end) at = i;
            LM_OFFSET(a->reduced, at, a->reduced_x, offset);
            v[k] = lm_element(x + offset);
        }
        LM_UNROLL
        for (uint32_t k = 0; k < LM_AHEAD; k++)
            if (i + k * p.lanes < p.end) take(f, LM_LOAD(v[k]), i + k * p.lanes);
    }
}

/* Lines of one stride. */
LM_FN void lm_fold_stride(int64_t stride, const char *x, lm_place p, lm_fold *f, lm_take *take) {
    int64_t step = stride * p.lanes;
    x += (p.begin + p.lane) * stride;
    LM_NO_UNROLL
    for (int64_t i = p.begin + p.lane; i < p.end; i += (int64_t)LM_AHEAD * p.lanes) {
        LM_S v[LM_AHEAD];
        LM_UNROLL
        for (uint32_t k = 0; k < LM_AHEAD; k++, x += step)
            v[k] = lm_element(i + k * p.lanes < p.end ? x : x - k * step);
        LM_UNROLL
        for (uint32_t k = 0; k < LM_AHEAD; k++)
            if (i + k * p.lanes < p.end) take(f, LM_LOAD(v[k]), i + k * p.lanes);
    }
}

#define LM_VECTOR ((int)(16 / sizeof(LM_S)))
/* Lines without gaps, 16 bytes at a time from the first multiple of 16 on. */
LM_FN void lm_fold_vectors(const char *x, lm_place p, lm_fold *f, lm_take *take) {
    typedef union {
        uint4 all;
        LM_S v[LM_VECTOR];
    } vector;
    int64_t head =
        (int64_t)(-((uintptr_t)x + (uintptr_t)p.begin * sizeof(LM_S)) % 16 / sizeof(LM_S));
    int64_t body = head < p.end - p.begin ? p.begin + head : p.end;
    int64_t tail = body + (p.end - body) / LM_VECTOR * LM_VECTOR;
    const LM_S *v = (const LM_S *)(const void *)x;
    LM_NO_UNROLL
    for (int64_t i = p.begin + p.lane; i < body; i += p.lanes)
        take(f, LM_LOAD(v[i]), i);
    for (int64_t i = body + (int64_t)p.lane * LM_VECTOR; i < tail;
         i += (int64_t)p.lanes * LM_VECTOR) {
        vector w;
        w.all = *(const uint4 *)(const void *)(v + i);
        LM_UNROLL
        for (int k = 0; k < LM_VECTOR; k++)
            take(f, LM_LOAD(w.v[k]), i + k);
    }
    LM_NO_UNROLL
    for (int64_t i = tail + p.lane; i < p.end; i += p.lanes)
        take(f, LM_LOAD(v[i]), i);
}

LM_FN void lm_fold_line(const lm_args_reduce *a, lm_place p, lm_fold *f, lm_take *take) {
    if (!p.inside) return;
    const char *x = lm_line_at(a, p.line);
    if (a->reduced.ndim > 1)
        lm_fold_walk(a, x, p, f, take);
    else if (a->vectors)
        lm_fold_vectors(x, p, f, take);
    else
        lm_fold_stride(a->reduced.ndim ? a->reduced_x[0] : 0, x, p, f, take);
}

/* ---- chunks and results ---- */

/* The chunks of a line, shared out over its lanes: where they are among the parts. */
#define LM_EACH_PART(i, a, p)                                                                      \
    LM_NO_UNROLL                                                                                   \
    for (int64_t i = (p).line * (a).chunks + (p).lane;                                             \
         (p).inside && i < ((p).line + 1) * (a).chunks; i += (p).lanes)
#define LM_SECOND_PARTS(a) ((int64_t *)(a).parts + (a).kept.n * (a).chunks)

#define LM_FLIP(a) ((lm_key)(0 - (lm_key)(a).least))
#define LM_FROM_F64(v) LM_OF(LM_OF(lm_to_, LM_D), _f64)(v)

/* Where the result of a line lies, of the strides kept_out or kept_positions. */
#define LM_RESULT_AT(a, p, data, strides, T, result)                                               \
    do {                                                                                           \
        int64_t at_;                                                                               \
        LM_OFFSET((a).kept, (p).line, (a).strides, at_);                                           \
        *(T *)((char *)(a).data + at_) = (result);                                                 \
    } while (0)

#define LM_SECOND_REALS(a) ((double *)(a).parts + (a).kept.n * (a).chunks)
/* A float that may be of another dtype than x. */
LM_FN void lm_store_result(const lm_args_reduce *a, lm_place p, double v) {
    int64_t offset;
    LM_OFFSET(a->kept, p.line, a->kept_out, offset);
    lm_store_real((char *)a->out + offset, v, a->out_dtype);
}

#endif
