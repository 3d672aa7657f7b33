/* scan.cu -- running products, extremes with their positions and logarithms of sums of exponentials
** along lines of one dtype. A kernel goes along lines or chunks of them; its twin tells what a whole
** chunk comes to, which the chunks after it start from. */
#include "cuda/fold.h"
#include "product.h"

/* ---- products: of floats with an exponent of their own, of bool and integers in 64 bits ---- */

#if LM_IS_FLOAT
typedef lm_product product;
LM_FN product product_of(double v) {
    product p = {v, 0};
    return p;
}
LM_FN product no_product(void) {
    return product_of(1);
}
LM_FN product product_lane(product v, uint32_t lane) {
    product p;
    p.m = __shfl_sync(LM_ALL_LANES, v.m, (int)lane);
    p.e = __shfl_sync(LM_ALL_LANES, v.e, (int)lane);
    return p;
}
#define PRODUCT_JOIN lm_product_join
#define PRODUCT_OF(a, v, i) product_of((double)(v))
#define PRODUCT_STORE(a, s, i, v)                                                                  \
    (*(LM_S *)(void *)((s).y + (i) * (a).y_step) = LM_FROM_F64(lm_product_value(v)))
#else
typedef uint64_t product;
LM_FN product no_product(void) {
    return 1;
}
LM_FN product product_lane(product v, uint32_t lane) {
    return __shfl_sync(LM_ALL_LANES, v, (int)lane);
}
#define PRODUCT_JOIN LM_PRODUCT_OF
#define PRODUCT_OF(a, v, i) ((product)(int64_t)(v))
#define PRODUCT_STORE(a, s, i, v)                                                                  \
    (*(int64_t *)(void *)((s).y + (i) * (a).y_step) = (int64_t)(v))
#endif

#define NAME product
#define RUN product
#define NONE no_product
#define JOIN PRODUCT_JOIN
#define LANE product_lane
#include "cuda/running.h"

/* ---- extremes: the first of the greatest keys ---- */

typedef struct {
    uint64_t key; /* an lm_key */
    int64_t at;
} extreme;
LM_FN extreme extreme_at(uint64_t key, int64_t at) {
    extreme e;
    e.key = key;
    e.at = at;
    return e;
}
LM_FN extreme no_extreme(void) {
    return extreme_at(0, INT64_MAX);
}
LM_FN extreme extreme_join(extreme a, extreme b) {
    return b.key > a.key || (b.key == a.key && b.at < a.at) ? b : a;
}
LM_FN extreme extreme_lane(extreme v, uint32_t lane) {
    return extreme_at(__shfl_sync(LM_ALL_LANES, v.key, (int)lane),
                      __shfl_sync(LM_ALL_LANES, v.at, (int)lane));
}
/* Zeros are equal. */
#define EXTREME_OF(a, v, i) extreme_at(lm_key_of((v) == 0 ? (LM_C)0 : (v), LM_FLIP(a)), (i))
LM_FN void extreme_store(const lm_args_scan *a, lm_stretch s, int64_t i, int64_t at) {
    int64_t line;
    LM_OFFSET(a->lines, s.line, a->lines_positions, line);
    char *y = (char *)a->positions + line + i * a->positions_step;
    *(int64_t *)(void *)y = at + a->index_base;
    LM_S v = *(const LM_S *)(const void *)(s.x + at * a->x_step);
    *(LM_S *)(void *)(s.y + i * a->y_step) = LM_STORE(LM_LOAD(v));
}
#define EXTREME_STORE(a, s, i, v) extreme_store(&(a), (s), (i), (v).at)

#define NAME extreme
#define RUN extreme
#define NONE no_extreme
#define JOIN extreme_join
#define LANE extreme_lane
#include "cuda/running.h"

/* ---- sums of exponentials: sum * e^greatest ---- */

typedef struct {
    double greatest, sum;
} exps;
LM_FN exps exps_of(double v) {
    exps e;
    e.greatest = v;
    e.sum = v == -LM_INF_F64 ? 0 : 1;
    return e;
}
LM_FN exps no_exps(void) {
    return exps_of(-LM_INF_F64);
}
LM_FN exps exps_join(exps a, exps b) {
    exps r;
    r.greatest = lm_greater_real(a.greatest, b.greatest);
    double e = lm_exp_f64(a.greatest == b.greatest ? 0 : -lm_abs_f64(a.greatest - b.greatest));
    r.sum = a.greatest == r.greatest ? a.sum + b.sum * e : b.sum + a.sum * e;
    return r;
}
LM_FN exps exps_lane(exps v, uint32_t lane) {
    exps e;
    e.greatest = __shfl_sync(LM_ALL_LANES, v.greatest, (int)lane);
    e.sum = __shfl_sync(LM_ALL_LANES, v.sum, (int)lane);
    return e;
}
#define EXPS_OF(a, v, i) exps_of((double)(v))
LM_FN double exps_value(exps v) {
    double log = lm_log_f64(v.sum);
    return v.greatest - v.greatest == 0 ? v.greatest + log : v.greatest;
}
#define EXPS_STORE(a, s, i, v)                                                                     \
    lm_store_real((s).y + (i) * (a).y_step, exps_value(v), (a).out_dtype)

#define NAME exps
#define RUN exps
#define NONE no_exps
#define JOIN exps_join
#define LANE exps_lane
#include "cuda/running.h"

/* ---- kernels ---- */

#define RUNNING(name, run, JOIN, OF, STORE)                                                        \
    LM_TYPED(name##_totals) {                                                                      \
        LM_EACH_BASE(base, a.group, a.lines.n) {                                                   \
            lm_stretch s = lm_stretch_of(&a, base);                                                \
            run all = no_##run();                                                                  \
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
                for (int64_t c = s.lane; s.inside && c < (int64_t)blockIdx.y; c += s.lanes)        \
                    next = JOIN(next, parts[c]);                                                   \
                next = run##_whole(next, a.group);                                                 \
            }                                                                                      \
            int64_t end = s.begin + a.chunk < a.n ? s.begin + a.chunk : a.n;                       \
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
RUNNING(cumprod, product, PRODUCT_JOIN, PRODUCT_OF, PRODUCT_STORE)
RUNNING(cummax, extreme, extreme_join, EXTREME_OF, EXTREME_STORE)
RUNNING(logcumsumexp, exps, exps_join, EXPS_OF, EXPS_STORE)
