/* running.h -- running results along lines, by what joins two of them. Template for files in typed/:
** define NAME, RUN (the type of a result), NONE() (of no elements), JOIN(a, b) (a before b),
** LANE(v, lane) (that of a lane of the warp). Gives NAME_up, NAME_warps and NAME_whole.
** Layer: kernels/cuda. */
#ifndef lm_cuda_running_h
#define lm_cuda_running_h

#include "cuda/stretch.h"

/* Each warp (of a line that has several) takes EACH runs of neighbouring elements, one to a lane. */
enum { LM_EACH_RUN = 8 };
typedef struct {
    uint32_t bits, lane, lanes; /* lanes of a line within a warp: 2^bits */
    uint32_t warp, warps;       /* warps of a line */
    uint32_t last;              /* the lane of the warp that is the line's last */
} lm_run;

LM_FN lm_run lm_run_of(lm_lanes g) {
    lm_run r;
    uint32_t end = g.apart + g.lanes, within = end < 5 ? end : 5;
    r.bits = within > g.apart ? within - g.apart : 0;
    r.lanes = 1u << r.bits;
    r.lane = lm_lane_of(g) & (r.lanes - 1);
    r.warp = lm_lane_of(g) >> r.bits;
    r.warps = 1u << (g.lanes - r.bits);
    r.last = (threadIdx.x & 31) | (r.lanes - 1) << (g.apart < 5 ? g.apart : 0);
    return r;
}

/* The first element of a lane in a tile; those of its other runs lie r.lanes apart. */
#define LM_RUN_FROM(r, tile) ((tile) + (r).warp * LM_EACH_RUN * (r).lanes + (r).lane)

#endif

#define FN_(name, what) name##_##what
#define FN__(name, what) FN_(name, what)
#define FN(what) FN__(NAME, what)

/* v[k]: from elements to results up to them, in the order of k, then of lanes. Returns the last. */
LM_FN RUN FN(up)(RUN *v, lm_run r, lm_lanes g) {
    RUN before = NONE();
    uint32_t self = threadIdx.x & 31;
    LM_UNROLL
    for (uint32_t k = 0; k < LM_EACH_RUN; k++) {
        for (uint32_t d = 0; d < r.bits; d++) {
            uint32_t step = 1u << (d + g.apart);
            RUN other = LANE(v[k], self >= step ? self - step : self);
            if (r.lane >= 1u << d) v[k] = JOIN(other, v[k]);
        }
        v[k] = JOIN(before, v[k]);
        before = LANE(v[k], r.last);
    }
    return before;
}

/* The results of the warps before this one join *carry, those of all *next. */
LM_FN void FN(warps)(RUN own, lm_run r, lm_lanes g, RUN *carry, RUN *next) {
    __shared__ RUN all[LM_GROUP_THREADS];
    uint32_t step = g.apart < 5 ? 32 : 1u << g.apart, first = threadIdx.x & (step - 1);
    if (r.warps == 1) {
        *next = JOIN(*next, own);
        return;
    }
    __syncthreads();
    all[threadIdx.x] = own;
    __syncthreads();
    for (uint32_t w = 0; w < r.warps; w++) {
        RUN one = all[first + w * step];
        if (w < r.warp) *carry = JOIN(*carry, one);
        *next = JOIN(*next, one);
    }
}

/* The results of all lanes of a line as one, in all of them, whatever their order. */
LM_FN RUN FN(whole)(RUN v, lm_lanes g) {
    __shared__ RUN all[LM_GROUP_THREADS];
    uint32_t end = g.apart + g.lanes, self = threadIdx.x & 31;
    for (uint32_t d = g.apart; d < end && d < 5; d++) {
        RUN other = LANE(v, self ^ 1u << d);
        v = JOIN(v, other);
    }
    if (end <= 5) return v;
    uint32_t step = g.apart < 5 ? 32 : 1u << g.apart, t = threadIdx.x & (step - 1);
    __syncthreads();
    all[threadIdx.x] = v;
    __syncthreads();
    v = all[t];
    for (t += step; t < blockDim.x; t += step)
        v = JOIN(v, all[t]);
    return v;
}

#undef FN
#undef FN_
#undef FN__
#undef NAME
#undef RUN
#undef NONE
#undef JOIN
#undef LANE
