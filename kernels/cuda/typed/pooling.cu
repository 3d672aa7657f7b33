/* pooling.cu -- the greatest and the average of windows of one dtype, a thread for each. */
#include "cuda/kernel.h"

/* A result: its window, and where it goes. */
typedef struct {
    const char *x; /* the first element of the window */
    int64_t y, at;
    int64_t plane[3]; /* the same as positions along d, h, w */
    lm_span span[3];
} window;

LM_FN window window_of(const lm_args_pooling *a, int64_t i) {
    window w = {(const char *)a->x, 0, 0, {0, 0, 0}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
    int64_t rest = i;
    LM_UNROLL
    for (int d = 4; d >= 0; d--) {
        int64_t q = 0, r = rest;
        if (d > 0 && a->walk.wide) {
            q = rest / a->walk.wide_size[d];
            r = rest - q * a->walk.wide_size[d];
        } else if (d > 0) {
            const lm_divisor s = a->walk.size[d];
            uint32_t n = lm_divide((uint32_t)rest, s.multiplier, s.shift);
            q = n;
            r = (uint32_t)rest - n * s.divisor;
        }
        rest = q;
        w.y += r * a->y_stride[d];
        w.at += r * a->at_stride[d];
        if (d >= 2) {
            w.span[d - 2] = lm_window_at(&a->window[d - 2], r);
            w.plane[d - 2] = w.span[d - 2].first;
            r = w.span[d - 2].first;
        }
        w.x += r * a->x_stride[d];
    }
    return w;
}

/* Runs `body` for each element e of the window at position `place` of the plane. */
#define EACH_ELEMENT(a, w, e, place, body)                                                         \
    LM_NO_UNROLL                                                                                   \
    for (int64_t i0 = 0; i0 < (w).span[0].n; i0++) {                                               \
        int64_t d_ = (w).plane[0] + i0 * (a).window[0].dilation;                                   \
        LM_NO_UNROLL                                                                               \
        for (int64_t i1 = 0; i1 < (w).span[1].n; i1++) {                                           \
            int64_t h_ = (w).plane[1] + i1 * (a).window[1].dilation;                               \
            int64_t place = (d_ * (a).window[1].in + h_) * (a).window[2].in + (w).plane[2];        \
            const char *p_ = (w).x + i0 * (a).window[0].dilation * (a).x_stride[2] +               \
                             i1 * (a).window[1].dilation * (a).x_stride[3];                        \
            int64_t step_ = (a).window[2].dilation * (a).x_stride[4];                              \
            for (int64_t i2 = 0; i2 < (w).span[2].n; i2++) {                                       \
                LM_S e = *(const LM_S *)(const void *)p_;                                          \
                body p_ += step_;                                                                  \
                place += (a).window[2].dilation;                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#if LM_OF(LM_STORED_, LM_D) == 3
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) 0
#endif

/* NaN is the greatest, the first of equals wins. */
LM_TYPED(pool_max) {
    LM_EACH(i, a.walk.n) {
        window w = window_of(&a, i);
        LM_S best = *(const LM_S *)(const void *)w.x;
        int64_t at = -1;
        EACH_ELEMENT(a, w, e, place, {
            if (at < 0) at = place;
            if (LM_LOAD(e) > LM_LOAD(best) || (IS_NAN(LM_LOAD(e)) && !IS_NAN(LM_LOAD(best)))) {
                best = e;
                at = place;
            }
        })
        *(LM_S *)(void *)((char *)a.y + w.y) = best;
        if (a.at) *(int64_t *)(void *)((char *)a.at + w.at) = at + a.index_base;
    }
}

#if LM_OF(LM_STORED_, LM_D) == 3
LM_TYPED(pool_avg) {
    LM_EACH(i, a.walk.n) {
        window w = window_of(&a, i);
        double sum = 0, count = 1;
        EACH_ELEMENT(a, w, e, place, {
            sum += (double)LM_LOAD(e);
            (void)place;
        })
        for (int k = 0; k < 3; k++)
            count *= (double)(a.padded ? w.span[k].padded : w.span[k].n);
        if (a.divisor != 0) count = (double)a.divisor;
        *(LM_S *)(void *)((char *)a.y + w.y) = LM_OF(LM_OF(lm_to_, LM_D), _f64)(sum / count);
    }
}
#endif
