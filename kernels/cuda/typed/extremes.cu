/* extremes.cu -- the greatest and the least of one dtype, and their positions. A kernel folds lines
** or chunks of them, its twin joins the chunks. */
#include "cuda/fold.h"

LM_GROUP(greatest, lm_key, LM_GREATER_OF)
LM_GROUP(last, uint64_t, LM_GREATER_OF)

/* ---- amax, amin ---- */

LM_FN void look(lm_fold *f, LM_C v, int64_t i) {
    (void)i;
    f->key = LM_GREATER_OF(f->key, lm_key_of(v, f->flip));
}

LM_TYPED(reduce_extreme) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.key = 0;
        f.flip = LM_FLIP(a);
        lm_fold_line(&a, p, &f, look);
        f.key = lm_group_greatest(f.key, a.group);
        if (!p.tells) continue;
        if (a.parts)
            ((lm_key *)a.parts)[p.part] = f.key;
        else
            LM_RESULT_AT(a, p, out, kept_out, LM_S, LM_STORE(lm_value_of(f.key, f.flip)));
    }
}

LM_TYPED(join_extreme) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_key key = 0;
        LM_EACH_PART(i, a, p) {
            key = LM_GREATER_OF(key, ((const lm_key *)a.parts)[i]);
        }
        key = lm_group_greatest(key, a.group);
        if (p.tells)
            LM_RESULT_AT(a, p, out, kept_out, LM_S, LM_STORE(lm_value_of(key, LM_FLIP(a))));
    }
}

/* ---- argmax, argmin, and max, min with positions ---- */

/* Zeros are equal. */
LM_FN void compete(lm_fold *f, LM_C v, int64_t i) {
    lm_key key = lm_key_of(v == 0 ? (LM_C)0 : v, f->flip);
    bool better = key > f->key || (key == f->key && i < f->at);
    f->key = better ? key : f->key;
    f->at = better ? i : f->at;
}

/* The first of the greatest of all lanes: its key, then its position. */
LM_FN void meet(lm_fold *f, lm_lanes g) {
    lm_key own = f->key;
    f->key = lm_group_greatest(own, g);
    f->at = (int64_t)~lm_group_last(own == f->key ? ~(uint64_t)f->at : 0, g);
}

LM_FN void store_place(const lm_args_reduce *a, lm_place p, int64_t at) {
    if (a->out) {
        int64_t offset;
        LM_OFFSET(a->reduced, at, a->reduced_x, offset);
        LM_S v = *(const LM_S *)(const void *)(lm_line_at(a, p.line) + offset);
        LM_RESULT_AT(*a, p, out, kept_out, LM_S, LM_STORE(LM_LOAD(v)));
    }
    if (a->positions) LM_RESULT_AT(*a, p, positions, kept_positions, int64_t, at + a->index_base);
}

LM_TYPED(reduce_place) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.key = 0;
        f.flip = LM_FLIP(a);
        f.at = INT64_MAX;
        lm_fold_line(&a, p, &f, compete);
        meet(&f, a.group);
        if (!p.tells) continue;
        if (a.parts) {
            ((lm_key *)a.parts)[p.part] = f.key;
            LM_SECOND_PARTS(a)[p.part] = f.at;
        } else {
            store_place(&a, p, f.at);
        }
    }
}

LM_TYPED(join_place) {
    LM_EACH_BASE(base, a.group, a.kept.n) {
        lm_place p = lm_place_of(&a, base);
        lm_fold f;
        f.key = 0;
        f.at = INT64_MAX;
        LM_EACH_PART(i, a, p) {
            lm_key key = ((const lm_key *)a.parts)[i];
            int64_t at = LM_SECOND_PARTS(a)[i];
            bool better = key > f.key || (key == f.key && at < f.at);
            f.key = better ? key : f.key;
            f.at = better ? at : f.at;
        }
        meet(&f, a.group);
        if (p.tells) store_place(&a, p, f.at);
    }
}
