/* normalize_long.cu -- lines of one float dtype, in any layout, brought to a mean and a scale by
** way of the sums of their chunks. */
#include "cuda/normalize.h"

#if LM_OF(LM_STORED_, LM_D) == 3
enum { AHEAD = 4 }; /* loads of a lane that are under way together */

/* Where element i of a line lies from its first: in x, y, weight. */
LM_FN void place_of(const lm_args_normalize *a, int64_t i, int64_t at[3]) {
#define STEPS(k) a->step[k]
    if (a->along.ndim > 1)
        LM_OFFSETS(a->along, i, 3, STEPS, at);
    else
        lm_normalize_at(a, i, at);
#undef STEPS
}

LM_FN lm_real element(const lm_args_normalize *a, lm_normalize_stretch s, int64_t i) {
    int64_t at[3];
    place_of(a, i, at);
    return lm_normalize_load(s, at);
}

LM_FN void store(const lm_args_normalize *a, lm_normalize_stretch s, int64_t i, lm_real v,
                 double mean, double scale) {
    int64_t at[3];
    place_of(a, i, at);
    lm_normalize_store(a, s, at, v, mean, scale);
}

/* Of a chunk the sums of what lies between its elements and the first of the line, and of the
** squares of it. */
LM_TYPED(normalize_sums) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_normalize_stretch s = lm_normalize_stretch_of(&a, base);
        double sum = 0, squares = 0;
        double shift = a.centered && s.inside ? (double)element(&a, s, 0) : 0;
        LM_NO_UNROLL
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
        lm_normalize_stretch s = lm_normalize_stretch_of(&a, base);
        double mean = 0, scale = 1;
        if (a.parts) {
            const double *parts = (const double *)a.parts + s.line * a.chunks;
            double sum = 0, squares = 0, n = (double)a.along.n;
            LM_NO_UNROLL
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
            scale = lm_normalize_scale(&a, squares);
        }
        LM_NO_UNROLL
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
