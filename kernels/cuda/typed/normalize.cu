/* normalize.cu -- lines of one float dtype brought to a mean and a scale. Statistics add up in
** double, the rest is computed in float32, of float64 in double. */
#include "cuda/group.h"
#include "cuda/real.h"

#if LM_OF(LM_STORED_, LM_D) == 3
#define LM_T LM_REAL
#include "words.h"

LM_GROUP(sum, double, LM_SUM_OF)

enum { AHEAD = 4 }; /* loads of a lane that are under way together */
enum { HELD = LM_NORMALIZE_BYTES / sizeof(lm_real) };

/* What a thread works on: elements begin .. end - 1 of a line belong to the block's chunk. */
typedef struct {
    int64_t line, begin, end;
    uint32_t lane, lanes;
    bool inside; /* there is such a line */
    const char *x;
    char *y;
    int64_t w; /* of weight and bias, bytes */
} stretch;

LM_FN stretch stretch_of(const lm_args_normalize *a, int64_t base) {
    stretch s;
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

/* Where element i of a line lies from its first: in x, y, weight. */
LM_FN void place_of(const lm_args_normalize *a, int64_t i, int64_t at[3]) {
    if (a->along.ndim > 1) {
#define STEPS(k) a->step[k]
        LM_OFFSETS(a->along, i, 3, STEPS, at);
#undef STEPS
    } else {
        LM_UNROLL
        for (int k = 0; k < 3; k++)
            at[k] = i * a->step[k][0];
    }
}

LM_FN lm_real element(const lm_args_normalize *a, stretch s, int64_t i) {
    int64_t at[3];
    place_of(a, i, at);
    return (lm_real)LM_LOAD(*(const LM_S *)(const void *)(s.x + at[0]));
}

LM_FN void store(const lm_args_normalize *a, stretch s, int64_t i, lm_real v, double mean,
                 double scale) {
    int64_t at[3];
    lm_real high = (lm_real)mean, low = (lm_real)(mean - (double)high);
    place_of(a, i, at);
    v = ((v - high) - low) * (lm_real)scale;
    if (a->weight) v = v * *(const lm_real *)(const void *)((const char *)a->weight + s.w + at[2]);
    if (a->bias) v = v + *(const lm_real *)(const void *)((const char *)a->bias + s.w + at[2]);
    *(LM_S *)(void *)(s.y + at[1]) = LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(v);
}

LM_FN double scale_of(const lm_args_normalize *a, double squares) {
    return 1.0 / sqrt(squares / (double)a->along.n + a->eps);
}

/* HELD elements of a line for each lane at most: the line is read once. */
LM_TYPED(normalize_short) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        stretch s = stretch_of(&a, base);
        lm_real v[HELD];
        double mean = 0, squares = 0;
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes;
            v[k] = i < s.end ? element(&a, s, i) : 0;
            mean += (double)v[k];
        }
        if (a.centered) {
            mean = lm_group_sum(mean, a.group) / (double)a.along.n;
        } else {
            mean = 0;
        }
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            double d = (double)v[k] - mean;
            squares += s.lane + k * s.lanes < s.end ? d * d : 0;
        }
        double scale = scale_of(&a, lm_group_sum(squares, a.group));
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes;
            if (i < s.end) store(&a, s, i, v[k], mean, scale);
        }
    }
}

/* Of a chunk the sums of what lies between its elements and the first of the line, and of the
** squares of it. */
LM_TYPED(normalize_sums) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        stretch s = stretch_of(&a, base);
        double sum = 0, squares = 0;
        double shift = a.centered && s.inside ? (double)element(&a, s, 0) : 0;
        for (int64_t i = s.begin + s.lane; i < s.end; i += (int64_t)AHEAD * s.lanes) {
            lm_real v[AHEAD];
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++)
                v[k] = i + k * s.lanes < s.end ? element(&a, s, i + k * s.lanes) : 0;
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++) {
                double d = i + k * s.lanes < s.end ? (double)v[k] - shift : 0;
                sum += d;
                squares += d * d;
            }
        }
        sum = lm_group_sum(sum, a.group);
        squares = lm_group_sum(squares, a.group);
        if (!s.inside || s.lane > 0) continue;
        double *part = (double *)a.parts + s.line * a.chunks + blockIdx.y;
        part[0] = sum;
        part[a.lines.n * a.chunks] = squares;
    }
}

/* y, from the parts of the line; without parts, by weight and bias alone. */
LM_TYPED(normalize_apply) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        stretch s = stretch_of(&a, base);
        double mean = 0, scale = 1;
        if (a.parts) {
            const double *parts = (const double *)a.parts + s.line * a.chunks;
            double sum = 0, squares = 0, n = (double)a.along.n;
            for (int64_t i = s.lane; s.inside && i < a.chunks; i += s.lanes) {
                sum += parts[i];
                squares += parts[i + a.lines.n * a.chunks];
            }
            sum = lm_group_sum(sum, a.group);
            squares = lm_group_sum(squares, a.group);
            if (a.centered) {
                double off = squares - sum * (sum / n);
                mean = sum / n + (s.inside ? (double)element(&a, s, 0) : 0);
                squares = off < 0 ? 0 : off;
            }
            scale = scale_of(&a, squares);
        }
        for (int64_t i = s.begin + s.lane; i < s.end; i += (int64_t)AHEAD * s.lanes) {
            lm_real v[AHEAD];
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++)
                v[k] = i + k * s.lanes < s.end ? element(&a, s, i + k * s.lanes) : 0;
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++)
                if (i + k * s.lanes < s.end) store(&a, s, i + k * s.lanes, v[k], mean, scale);
        }
    }
}
#endif
