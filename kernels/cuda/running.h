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

/* The kernels of a running result: `name` goes along lines or chunks of them, its twin tells what a
** whole chunk comes to, which those after it start from. run: the type, for which no_run() and the
** functions below exist; OF(a, v, i): of element i, v; STORE(a, s, i, v). */
#define RUNNING(name, run, JOIN, OF, STORE)                                                        \
    LM_TYPED(name##_totals) {                                                                      \
        LM_EACH_BASE(base, a.group, a.lines.n) {                                                   \
            lm_stretch s = lm_stretch_of(&a, base);                                                \
            run all = no_##run();                                                                  \
            LM_NO_UNROLL                                                                           \
            for (int64_t i = s.begin + s.lane; i < s.end; i += s.lanes) {                          \
                LM_C v = LM_ELEMENT(a, s, i);                                                      \
                all = JOIN(all, OF(a, v, i));                                                      \
            }                                                                                      \
            all = run##_whole(all, a.group);                                                       \
            if (s.inside && s.lane == 0) ((run *)a.parts)[s.line * a.chunks + blockIdx.y] = all;   \
        }                                                                                          \
    }                                                                                              \
    LM_TYPED(name) {                                                                               \
        lm_run r = lm_run_of(a.group);                                                             \
        LM_EACH_BASE(base, a.group, a.lines.n) {                                                   \
            lm_stretch s = lm_stretch_of(&a, base);                                                \
            run next = no_##run();                                                                 \
            if (a.parts) {                                                                         \
                const run *parts = (const run *)a.parts + s.line * a.chunks;                       \
                LM_NO_UNROLL                                                                       \
                for (int64_t c = s.lane; s.inside && c < (int64_t)blockIdx.y; c += s.lanes)        \
                    next = JOIN(next, parts[c]);                                                   \
                next = run##_whole(next, a.group);                                                 \
            }                                                                                      \
            int64_t end = s.begin + a.chunk < a.n ? s.begin + a.chunk : a.n;                       \
            LM_NO_UNROLL                                                                           \
            for (int64_t tile = s.begin; tile < end;                                               \
                 tile += (int64_t)LM_EACH_RUN << a.group.lanes) {                                  \
                int64_t from = LM_RUN_FROM(r, tile);                                               \
                run v[LM_EACH_RUN], carry = next;                                                  \
                LM_UNROLL                                                                          \
                for (uint32_t k = 0; k < LM_EACH_RUN; k++) {                                       \
                    int64_t i = from + k * r.lanes;                                                \
                    v[k] = no_##run();                                                             \
                    if (i >= s.end) continue;                                                      \
                    LM_C x = LM_ELEMENT(a, s, i);                                                  \
                    v[k] = OF(a, x, i);                                                            \
                }                                                                                  \
                run own = run##_up(v, r, a.group);                                                 \
                run##_warps(own, r, a.group, &carry, &next);                                       \
                LM_UNROLL                                                                          \
                for (uint32_t k = 0; k < LM_EACH_RUN; k++) {                                       \
                    int64_t i = from + k * r.lanes;                                                \
                    run y = JOIN(carry, v[k]);                                                     \
                    if (i < s.end) STORE(a, s, i, y);                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

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
        LM_NO_UNROLL
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
    LM_NO_UNROLL
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
    LM_NO_UNROLL
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
    LM_NO_UNROLL
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
