/* normalize.h -- lines of one float dtype brought to a mean and a scale; for files in typed/.
** Statistics add up in double, the rest is computed in float32, of float64 in double.
** Layer: kernels/cuda. */
#ifndef lm_cuda_normalize_h
#define lm_cuda_normalize_h

#include "cuda/group.h"
#include "cuda/real.h"

#define LM_T LM_REAL
#include "words.h"

LM_GROUP(sum, double, LM_SUM_OF)

/* What a thread works on: elements begin .. end - 1 of a line belong to the block's chunk. */
typedef struct {
    int64_t line, begin, end;
    uint32_t lane, lanes;
    bool inside; /* there is such a line */
    const char *x;
    char *y;
    int64_t w; /* of weight and bias, bytes */
} lm_normalize_stretch;

LM_FN lm_normalize_stretch lm_normalize_stretch_of(const lm_args_normalize *a, int64_t base) {
    lm_normalize_stretch s;
    int64_t at[3] = {0, 0, 0};
    s.line = base + lm_line_of(a->group);
    s.begin = (int64_t)blockIdx.y * a->chunk;
    s.end = s.begin + a->chunk < a->along.n ? s.begin + a->chunk : a->along.n;
    s.lane = lm_lane_of(a->group);
    s.lanes = 1u << a->group.lanes;
    s.inside = s.line < a->lines.n;
#define STEPS(k) a->line_step[k]
    if (s.inside)
        LM_OFFSETS(a->lines, s.line, 3, STEPS, at);
    else
        s.end = s.begin;
#undef STEPS
    s.x = (const char *)a->x + at[0];
    s.y = (char *)a->y + at[1];
    s.w = at[2];
    return s;
}

/* Where element i of a line of one stride lies from its first: in x, y, weight. */
LM_FN void lm_normalize_at(const lm_args_normalize *a, int64_t i, int64_t at[3]) {
    LM_UNROLL
    for (int k = 0; k < 3; k++)
        at[k] = i * a->step[k][0];
}

/* The element of x that lies at at[0]. */
LM_FN lm_real lm_normalize_load(lm_normalize_stretch s, const int64_t at[3]) {
    return (lm_real)LM_LOAD(*(const LM_S *)(const void *)(s.x + at[0]));
}

LM_FN void lm_normalize_store(const lm_args_normalize *a, lm_normalize_stretch s,
                              const int64_t at[3], lm_real v, double mean, double scale) {
    lm_real high = (lm_real)mean, low = (lm_real)(mean - (double)high);
    v = ((v - high) - low) * (lm_real)scale;
    if (a->weight) v = v * *(const lm_real *)(const void *)((const char *)a->weight + s.w + at[2]);
    if (a->bias) v = v + *(const lm_real *)(const void *)((const char *)a->bias + s.w + at[2]);
    *(LM_S *)(void *)(s.y + at[1]) = LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(v);
}

LM_FN double lm_normalize_scale(const lm_args_normalize *a, double squares) {
    return 1.0 / sqrt(squares / (double)a->along.n + a->eps);
}

#endif
