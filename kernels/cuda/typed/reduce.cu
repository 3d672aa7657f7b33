/* reduce.cu -- sums, products, all and any, of one dtype. A kernel folds lines or chunks of them,
** its twin joins the chunks. Floats are added and multiplied in double, bool and integers in 64
** bits, which wrap. */
#include "cuda/fold.h"

LM_GROUP(sum, lm_total, LM_SUM_OF)
LM_GROUP(product, lm_total, LM_PRODUCT_OF)
LM_GROUP(any, uint32_t, LM_EITHER_OF)

/* ---- sum, prod ---- */

#if LM_IS_FLOAT
#define TERM(v) ((lm_total)(v))
#define TOTAL_ELEMENT LM_S
#define TOTAL_RESULT(v) LM_FROM_F64(v)
#else
#define TERM(v) ((lm_total)(int64_t)(v))
#define TOTAL_ELEMENT int64_t
#define TOTAL_RESULT(v) ((int64_t)(v))
#endif

LM_FN void add(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->total += TERM(v);
}

LM_FN void multiply(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->total *= TERM(v);
}

#define TOTALS(name, take, start, whole, JOIN)                                                     \
    LM_TYPED(reduce_##name) {                                                                      \
        LM_EACH_BASE(base, a.group, a.kept.n) {                                                    \
            lm_place p = lm_place_of(&a, base);                                                    \
            lm_fold f;                                                                             \
            f.total = (start);                                                                     \
            lm_fold_line(&a, p, &f, take);                                                         \
            f.total = lm_group_##whole(f.total, a.group);                                          \
            if (!p.tells) continue;                                                                \
            if (a.parts)                                                                           \
                ((lm_total *)a.parts)[p.part] = f.total;                                           \
            else                                                                                   \
                LM_RESULT_AT(a, p, out, kept_out, TOTAL_ELEMENT, TOTAL_RESULT(f.total));           \
        }                                                                                          \
    }                                                                                              \
    LM_TYPED(join_##name) {                                                                        \
        LM_EACH_BASE(base, a.group, a.kept.n) {                                                    \
            lm_place p = lm_place_of(&a, base);                                                    \
            lm_total total = (start);                                                              \
            LM_EACH_PART(i, a, p) {                                                                \
                total = JOIN(total, ((const lm_total *)a.parts)[i]);                               \
            }                                                                                      \
            total = lm_group_##whole(total, a.group);                                              \
            if (p.tells) LM_RESULT_AT(a, p, out, kept_out, TOTAL_ELEMENT, TOTAL_RESULT(total));    \
        }                                                                                          \
    }
TOTALS(sum, add, 0, sum, LM_SUM_OF)
TOTALS(prod, multiply, 1, product, LM_PRODUCT_OF)

/* ---- all, any ---- */

/* any looks for what holds, all for what does not. */
LM_FN void seek(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->any |= (v != 0) == f->wanted;
}

LM_TYPED(reduce_truth) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.any = 0;
        f.wanted = !a.least;
        lm_fold_line(&a, p, &f, seek);
        f.any = lm_group_any(f.any, a.group);
        if (!p.tells) continue;
        if (a.parts)
            ((uint32_t *)a.parts)[p.part] = f.any;
        else
            LM_RESULT_AT(a, p, out, kept_out, uint8_t, (uint8_t)(f.any == f.wanted));
    }
}

LM_TYPED(join_truth) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        uint32_t any = 0;
        LM_EACH_PART(i, a, p) {
            any |= ((const uint32_t *)a.parts)[i];
        }
        any = lm_group_any(any, a.group);
        if (p.tells) LM_RESULT_AT(a, p, out, kept_out, uint8_t, (uint8_t)(any == !a.least));
    }
}
