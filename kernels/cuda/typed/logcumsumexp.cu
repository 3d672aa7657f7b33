/* logcumsumexp.cu -- logarithms of running sums of exponentials along lines of one dtype, each sum as
** a multiple of e^greatest. */
#include "cuda/fold.h"

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

RUNNING(logcumsumexp, exps, exps_join, EXPS_OF, EXPS_STORE)
