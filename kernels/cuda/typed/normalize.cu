/* normalize.cu -- short lines of one float dtype brought to a mean and a scale. */
#include "cuda/normalize.h"

#if LM_OF(LM_STORED_, LM_D) == 3
enum { HELD = LM_NORMALIZE_BYTES / sizeof(lm_real) };

/* HELD elements of a line of one stride for each lane at most: the line is read once. */
LM_TYPED(normalize_short) {
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_normalize_stretch s = lm_normalize_stretch_of(&a, base);
        lm_real v[HELD];
        double mean = 0, squares = 0;
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes, at[3];
            lm_normalize_at(&a, i, at);
            v[k] = i < s.end ? lm_normalize_load(s, at) : 0;
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
        double scale = lm_normalize_scale(&a, lm_group_sum(squares, a.group));
        LM_UNROLL
        for (uint32_t k = 0; k < HELD; k++) {
            int64_t i = s.lane + k * s.lanes, at[3];
            lm_normalize_at(&a, i, at);
            if (i < s.end) lm_normalize_store(&a, s, at, v[k], mean, scale);
        }
    }
}
#endif
