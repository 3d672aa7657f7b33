/* softmax.cu -- softmax and log_softmax along lines of one dtype. float32 and less are computed in
** float32, everything else in double; exponentials add up in double. */
#include "cuda/stretch.h"

#define LM_T LM_REAL
#include "words.h"

LM_GROUP(greatest, lm_real, MAX)
LM_GROUP(maximum, double, lm_greater_real)
LM_GROUP(sum, double, LM_SUM_OF)

#define LEAST ((lm_real)-INFINITY)
#define REAL(a, s, i) ((lm_real)LM_ELEMENT(a, s, i))

#if LM_OF(LM_STORED_, LM_D) == 3
#define STORE_REAL(y, v, dtype)                                                                    \
    ((void)(dtype), *(LM_S *)(void *)(y) = LM_OF(LM_OF(LM_OF(lm_to_, LM_D), _), LM_REAL)(v))
#else
#define STORE_REAL(y, v, dtype) lm_store_real((y), (v), (dtype))
#endif

enum { AHEAD = 4 }; /* loads of a lane that are under way together */
enum { HELD = LM_SOFTMAX_BYTES / sizeof(lm_real) };

/* HELD elements of a line for each lane at most: the line is read once. */
LM_TYPED(softmax_short) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_stretch s = lm_stretch_of(&a, base);
        lm_real v[HELD], greatest = LEAST, part = 0;
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes;
            v[k] = i < s.end ? REAL(a, s, i) : LEAST;
            greatest = MAX(greatest, v[k]);
        }
        greatest = lm_group_greatest(greatest, a.group);
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            lm_real below = v[k] - greatest, e = EXP(below);
            part += s.lane + k * s.lanes < s.end ? e : 0;
            v[k] = a.log ? below : e;
        }
        double sum = lm_group_sum((double)part, a.group);
        lm_real last = (lm_real)(a.log ? lm_log_f64(sum) : 1.0 / sum);
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes;
            lm_real y = a.log ? v[k] - last : v[k] * last;
            if (i < s.end) STORE_REAL(s.y + i * a.y_step, y, a.out_dtype);
        }
    }
}

/* The greatest of a chunk and the sum of exponentials below it. Each lane goes by the greatest that
** it has met; where that is still -inf nothing adds up. */
LM_TYPED(softmax_sums) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_stretch s = lm_stretch_of(&a, base);
        lm_real greatest = LEAST;
        double sum = 0;
        LM_NO_UNROLL
        for (int64_t i = s.begin + s.lane; i < s.end; i += (int64_t)AHEAD * s.lanes) {
            lm_real v[AHEAD], before = greatest, part = 0;
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++) {
                v[k] = i + k * s.lanes < s.end ? REAL(a, s, i + k * s.lanes) : LEAST;
                greatest = MAX(greatest, v[k]);
            }
            if (greatest == LEAST) continue;
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++)
                part += EXP(v[k] - greatest);
            sum = sum * (double)EXP(before - greatest) + (double)part;
        }
        double whole = lm_group_maximum((double)greatest, a.group);
        sum = greatest == LEAST ? 0 : sum * (double)EXP(greatest - (lm_real)whole);
        sum = lm_group_sum(sum, a.group);
        if (!s.inside || s.lane > 0) continue;
        double *part = (double *)a.parts + s.line * a.chunks + blockIdx.y;
        part[0] = whole;
        part[a.lines.n * a.chunks] = sum;
    }
}

/* y, from the parts of the line. */
LM_TYPED(softmax_apply) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_stretch s = lm_stretch_of(&a, base);
        const double *parts = (const double *)a.parts + s.line * a.chunks;
        const double *sums = parts + a.lines.n * a.chunks;
        double greatest = (double)LEAST, sum = 0;
        LM_NO_UNROLL
        for (int64_t i = s.lane; s.inside && i < a.chunks; i += s.lanes)
            greatest = lm_greater_real(greatest, parts[i]);
        greatest = lm_group_maximum(greatest, a.group);
        LM_NO_UNROLL
        for (int64_t i = s.lane; s.inside && i < a.chunks; i += s.lanes)
            sum += parts[i] == (double)LEAST ? 0 : sums[i] * lm_exp_f64(parts[i] - greatest);
        sum = lm_group_sum(sum, a.group);
        lm_real shift = (lm_real)greatest, last = (lm_real)(a.log ? lm_log_f64(sum) : 1.0 / sum);
        LM_NO_UNROLL
        for (int64_t i = s.begin + s.lane; i < s.end; i += (int64_t)AHEAD * s.lanes) {
            lm_real v[AHEAD];
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++)
                v[k] = i + k * s.lanes < s.end ? REAL(a, s, i + k * s.lanes) : 0;
            LM_UNROLL
            for (uint32_t k = 0; k < AHEAD; k++) {
                lm_real below = v[k] - shift, y = a.log ? below - last : EXP(below) * last;
                if (i + k * s.lanes < s.end)
                    STORE_REAL(s.y + (i + k * s.lanes) * a.y_step, y, a.out_dtype);
            }
        }
    }
}
