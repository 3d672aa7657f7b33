/* logsumexp.cu -- logarithms of sums of exponentials of one dtype: two passes over a line or a
** chunk of it, in double. */
#include "cuda/fold.h"

LM_GROUP(sum, double, LM_SUM_OF)
LM_GROUP(maximum, double, lm_greater_real)

LM_FN void look(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->shift = lm_greater_real(f->shift, (double)v);
}

LM_FN void add_exp(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->real += (double)LM_OF(lm_exp_, LM_REAL)((lm_real)v - (lm_real)f->shift);
}

/* An infinite or undefined greatest is the result. */
LM_FN double logarithm(double greatest, double sum) {
    return greatest - greatest == 0 ? greatest + lm_log_f64(sum) : greatest;
}

LM_TYPED(logsumexp) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.real = 0;
        f.shift = -(double)INFINITY;
        lm_fold_line(&a, p, &f, look);
        f.shift = lm_group_maximum(f.shift, a.group);
        lm_fold_line(&a, p, &f, add_exp);
        f.real = lm_group_sum(f.real, a.group);
        if (!p.tells) continue;
        if (a.parts) {
            ((double *)a.parts)[p.part] = f.shift;
            LM_SECOND_REALS(a)[p.part] = f.real;
        } else {
            lm_store_result(&a, p, logarithm(f.shift, f.real));
        }
    }
}

LM_TYPED(join_logsumexp) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        double greatest = -(double)INFINITY, sum = 0;
        LM_EACH_PART(i, a, p) {
            greatest = lm_greater_real(greatest, ((const double *)a.parts)[i]);
        }
        greatest = lm_group_maximum(greatest, a.group);
        LM_EACH_PART(i, a, p) {
            double own = ((const double *)a.parts)[i];
            /* -inf: the chunk adds nothing, though its sum is undefined */
            sum += own > -(double)INFINITY ? LM_SECOND_REALS(a)[i] * lm_exp_f64(own - greatest) : 0;
        }
        sum = lm_group_sum(sum, a.group);
        if (p.tells) lm_store_result(&a, p, logarithm(greatest, sum));
    }
}
