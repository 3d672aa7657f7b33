/* norm.cu -- norms, counts of what is not zero, and sums and means without NaN, of one dtype: terms
** that are made of the elements, added or compared in double. */
#include "cuda/fold.h"

/* NaN wins. */
LM_FN double lesser(double a, double b) {
    double m = a < b ? a : b;
    return a != a ? a : m;
}

LM_GROUP(sum, double, LM_SUM_OF)
LM_GROUP(greatest, double, lm_greater_real)
LM_GROUP(least, double, lesser)

/* wanted: the operation. shift counts what is no NaN. */
LM_FN void add(lm_fold *f, LM_C v, int64_t i) {
    double x = (double)v;
    (void)i;
    switch (f->wanted) {
    case LM_COUNT:
        f->real += v != 0;
        break;
    case LM_NANSUM:
    case LM_NANMEAN:
        f->real += x == x ? x : 0;
        f->shift += x == x;
        break;
    case LM_NORM_1:
        f->real += fabs(x);
        break;
    default:
        f->real += x * x;
    }
}

LM_FN void compare(lm_fold *f, LM_C v, int64_t i) {
    double x = fabs((double)v);
    (void)i;
    f->real = f->wanted == LM_NORM_MOST ? lm_greater_real(f->real, x) : lesser(f->real, x);
}

/* Few elements at a time: a power is long. */
LM_FN void add_powers(const lm_args_reduce *a, lm_place p, lm_fold *f) {
    if (!p.inside) return;
    const char *x = lm_line_at(a, p.line);
    LM_NO_UNROLL
    for (int64_t i = p.begin + p.lane; i < p.end; i += p.lanes) {
        int64_t offset;
        LM_OFFSET(a->reduced, i, a->reduced_x, offset);
        f->real += lm_pow_f64(fabs((double)LM_LOAD(lm_element(x + offset))), a->freedom);
    }
}

LM_FN int compares(const lm_args_reduce *a) {
    return a->op == LM_NORM_MOST || a->op == LM_NORM_LEAST;
}

LM_FN double unite(const lm_args_reduce *a, double v) {
    if (a->op == LM_NORM_MOST) return lm_group_greatest(v, a->group);
    if (a->op == LM_NORM_LEAST) return lm_group_least(v, a->group);
    return lm_group_sum(v, a->group);
}

LM_FN double start(const lm_args_reduce *a) {
    return a->op == LM_NORM_LEAST ? (double)INFINITY : 0;
}

LM_FN void finish(const lm_args_reduce *a, lm_place p, double v, double numbers) {
    if (a->op == LM_COUNT && a->out_dtype == LUMA_INT64) {
        LM_RESULT_AT(*a, p, out, kept_out, int64_t, (int64_t)v);
        return;
    }
    if (a->op == LM_NANMEAN) v /= numbers;
    if (a->op == LM_NORM_2) v = sqrt(v);
    if (a->op == LM_NORM_P) v = lm_pow_f64(v, 1 / a->freedom);
    lm_store_result(a, p, v);
}

LM_TYPED(norm) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.real = start(&a);
        f.shift = 0;
        f.wanted = (uint32_t)a.op;
        if (a.op == LM_NORM_P)
            add_powers(&a, p, &f);
        else if (compares(&a))
            lm_fold_line(&a, p, &f, compare);
        else
            lm_fold_line(&a, p, &f, add);
        f.real = unite(&a, f.real);
        f.shift = lm_group_sum(f.shift, a.group);
        if (!p.tells) continue;
        if (a.parts) {
            ((double *)a.parts)[p.part] = f.real;
            LM_SECOND_REALS(a)[p.part] = f.shift;
        } else {
            finish(&a, p, f.real, f.shift);
        }
    }
}

LM_TYPED(join_norm) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        double v = start(&a), numbers = 0;
        LM_EACH_PART(i, a, p) {
            double part = ((const double *)a.parts)[i];
            v = a.op == LM_NORM_MOST    ? lm_greater_real(v, part)
                : a.op == LM_NORM_LEAST ? lesser(v, part)
                                        : v + part;
            numbers += LM_SECOND_REALS(a)[i];
        }
        v = unite(&a, v);
        numbers = lm_group_sum(numbers, a.group);
        if (p.tells) finish(&a, p, v, numbers);
    }
}
