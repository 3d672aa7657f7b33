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

/* Each warp (of a line that has several) takes EACH runs of neighbouring elements, one to a lane. */
enum { EACH = 8 };
typedef struct {
    uint32_t bits, lane, lanes; /* lanes of a line within a warp: 2^bits */
    uint32_t warp, warps;       /* warps of a line */
    uint32_t last;              /* the lane of the warp that is the line's last */
} run;

LM_FN run run_of(lm_lanes g) {
    run r;
    uint32_t end = g.apart + g.lanes, within = end < 5 ? end : 5;
    r.bits = within > g.apart ? within - g.apart : 0;
    r.lanes = 1u << r.bits;
    r.lane = lm_lane_of(g) & (r.lanes - 1);
    r.warp = lm_lane_of(g) >> r.bits;
    r.warps = 1u << (g.lanes - r.bits);
    r.last = (threadIdx.x & 31) | (r.lanes - 1) << (g.apart < 5 ? g.apart : 0);
    return r;
}

/* v[k]: from elements to their running sums, in the order of k, then of lanes. Returns their
** sum. */
LM_FN total run_up(total *v, run r, lm_lanes g) {
    total before = 0;
    LM_UNROLL
    for (uint32_t k = 0; k < EACH; k++) {
        for (uint32_t d = 0; d < r.bits; d++) {
            total other = __shfl_up_sync(LM_ALL_LANES, v[k], 1u << (d + g.apart));
            if (r.lane >= 1u << d) v[k] += other;
        }
        v[k] += before;
        before = __shfl_sync(LM_ALL_LANES, v[k], r.last);
    }
    return before;
}

/* The sums of the warps before this one are added to *carry, those of all to *next. */
LM_FN void add_warps(total own, run r, lm_lanes g, total *carry, total *next) {
    __shared__ total all[LM_GROUP_THREADS];
    uint32_t step = g.apart < 5 ? 32 : 1u << g.apart, first = threadIdx.x & (step - 1);
    if (r.warps == 1) {
        *next += own;
        return;
    }
    __syncthreads();
    all[threadIdx.x] = own;
    __syncthreads();
    for (uint32_t w = 0; w < r.warps; w++) {
        total sum = all[first + w * step];
        if (w < r.warp) *carry += sum;
        *next += sum;
    }
}

LM_TYPED(cumsum) {
    run r = run_of(a.group);
    LM_EACH_BASE(base, a.group, a.lines.n) {
        lm_stretch s = lm_stretch_of(&a, base);
        total next = 0;
        if (a.parts && blockIdx.y > 0 && s.inside)
            next = ((const total *)a.parts)[s.line * a.chunks + blockIdx.y - 1];
        /* all threads go through the whole chunk, since they meet */
        int64_t end = s.begin + a.chunk < a.n ? s.begin + a.chunk : a.n;
        for (int64_t tile = s.begin; tile < end; tile += (int64_t)EACH << a.group.lanes) {
            int64_t from = tile + r.warp * EACH * r.lanes + r.lane;
            total v[EACH], carry = next;
            LM_UNROLL
            for (uint32_t k = 0; k < EACH; k++) {
                int64_t i = from + k * r.lanes;
                v[k] = i < s.end ? TERM(LM_ELEMENT(a, s, i)) : 0;
            }
            total own = run_up(v, r, a.group);
            add_warps(own, r, a.group, &carry, &next);
            LM_UNROLL
            for (uint32_t k = 0; k < EACH; k++) {
                int64_t i = from + k * r.lanes;
                if (i < s.end) STORE_TOTAL(s.y + i * a.y_step, v[k] + carry);
            }
        }
    }
}
