/* cumsum.cu -- running sums along lines of one dtype. Floats add up in double, bool and integers in
** 64 bits, which wrap. */
#include "cuda/stretch.h"

#if LM_OF(LM_STORED_, LM_D) == 3
typedef double total;
#define TERM(v) ((total)(v))
#define STORE_TOTAL(y, v) (*(LM_S *)(void *)(y) = LM_OF(LM_OF(lm_to_, LM_D), _f64)(v))
#else
typedef uint64_t total;
#define TERM(v) ((total)(int64_t)(v))
#define STORE_TOTAL(y, v) (*(int64_t *)(void *)(y) = (int64_t)(v))
#endif

#define NO_TOTAL() 0
#define LANE_OF(v, lane) __shfl_sync(LM_ALL_LANES, (v), (int)(lane))
#define NAME sum
#define RUN total
#define NONE NO_TOTAL
#define JOIN LM_SUM_OF
#define LANE LANE_OF
#include "cuda/running.h"

LM_TYPED(cumsum) {
    lm_run r = lm_run_of(a.group);
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_stretch s = lm_stretch_of(&a, base);
        total next = 0;
        if (a.parts && blockIdx.y > 0 && s.inside)
            next = ((const total *)a.parts)[s.line * a.chunks + blockIdx.y - 1];
        /* all threads go through the whole chunk, since they meet */
        int64_t end = s.begin + a.chunk < a.n ? s.begin + a.chunk : a.n;
        LM_NO_UNROLL
        for (int64_t tile = s.begin; tile < end; tile += (int64_t)LM_EACH_RUN << a.group.lanes) {
            int64_t from = LM_RUN_FROM(r, tile);
            total v[LM_EACH_RUN], carry = next;
            LM_UNROLL
            for (uint32_t k = 0; k < LM_EACH_RUN; k++) {
                int64_t i = from + k * r.lanes;
                v[k] = i < s.end ? TERM(LM_ELEMENT(a, s, i)) : 0;
            }
            total own = sum_up(v, r, a.group);
            sum_warps(own, r, a.group, &carry, &next);
            LM_UNROLL
            for (uint32_t k = 0; k < LM_EACH_RUN; k++) {
                int64_t i = from + k * r.lanes;
                if (i < s.end) STORE_TOTAL(s.y + i * a.y_step, v[k] + carry);
            }
        }
    }
}
