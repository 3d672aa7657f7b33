/* moments.cu -- means and variances of one dtype: two passes over a line or a chunk of it, in
** double. */
#include "cuda/fold.h"

LM_GROUP(sum, double, LM_SUM_OF)

LM_FN void add(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->real += (double)v;
}

LM_FN void add_square(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    double d = (double)v - f->shift;
    f->real += d * d;
}

LM_FN void store_moment(const lm_args_reduce *a, lm_place p, double sum, double squares) {
    double mean = sum / (double)a->reduced.n, var = squares / a->freedom;
    lm_store_result(a, p, a->op == LM_MEAN ? mean : a->op == LM_VAR ? var : sqrt(var));
    if (!a->positions) return;
    int64_t offset;
    LM_OFFSET(a->kept, p.line, a->kept_positions, offset);
    lm_store_real((char *)a->positions + offset, mean, a->out_dtype);
}

LM_TYPED(moments) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.real = 0;
        lm_fold_line(&a, p, &f, add);
        double sum = lm_group_sum(f.real, a.group);
        f.real = 0;
        if (a.op != LM_MEAN) {
            f.shift = sum / (double)(p.end - p.begin);
            lm_fold_line(&a, p, &f, add_square);
            f.real = lm_group_sum(f.real, a.group);
        }
        if (!p.tells) continue;
        if (a.parts) {
            ((double *)a.parts)[p.part] = sum;
            LM_SECOND_REALS(a)[p.part] = f.real;
        } else {
            store_moment(&a, p, sum, f.real);
        }
    }
}

/* The squares of a chunk are those around its own mean. */
LM_TYPED(join_moments) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        double sum = 0, squares = 0;
        LM_EACH_PART(i, a, p) {
            sum += ((const double *)a.parts)[i];
        }
        sum = lm_group_sum(sum, a.group);
        if (a.op != LM_MEAN) {
            double mean = sum / (double)a.reduced.n;
            LM_EACH_PART(i, a, p) {
                int64_t from = (i - p.line * a.chunks) * a.chunk, left = a.reduced.n - from;
                double n = (double)(left < a.chunk ? left : a.chunk);
                double d = ((const double *)a.parts)[i] / n - mean;
                squares += LM_SECOND_REALS(a)[i] + n * (d * d);
            }
            squares = lm_group_sum(squares, a.group);
        }
        if (p.tells) store_moment(&a, p, sum, squares);
    }
}
