/* conv.cu -- convolutions of few filters a group, depthwise ones above all: a thread for each element
** of the result adds up what its taps meet, channel by channel, in float32, double or unsigned words that
** wrap. Operands of one dtype in any layout. */
#include "cuda/sums.h"

#define KIND LM_OF(LM_STORED_, LM_D)
#if KIND

LM_FN SUM element(const void *p, int64_t offset) {
    return (SUM)LM_LOAD(*(const LM_S *)(const void *)((const char *)p + offset));
}

/* Position i of out (n, filters, d, h, w) taken apart. */
LM_FN void place_of(const lm_walk *walk, int64_t i, int64_t *at) {
    if (walk->wide) {
        LM_UNROLL
        for (int d = 4; d > 0; d--) {
            int64_t q = i / walk->wide_size[d];
            at[d] = i - q * walk->wide_size[d];
            i = q;
        }
        at[0] = i;
        return;
    }
    uint32_t rest = (uint32_t)i;
    LM_UNROLL
    for (int d = 4; d > 0; d--) {
        uint32_t q = lm_divide(rest, walk->size[d].multiplier, walk->size[d].shift);
        at[d] = rest - q * walk->size[d].divisor;
        rest = q;
    }
    at[0] = rest;
}

LM_TYPED(conv) {
    LM_EACH(i, a.walk.n) {
        int64_t at[5], x = 0, y = 0, first[3];
        place_of(&a.walk, i, at);
        LM_UNROLL
        for (int d = 0; d < 5; d++)
            y += at[d] * a.y_stride[d];
        int64_t group = at[1] / a.filters, w = at[1] * a.w_stride[0];
        x = at[0] * a.x_stride[0] + group * a.channels * a.x_stride[1];
        LM_UNROLL
        for (int d = 0; d < 3; d++)
            first[d] = at[d + 2] * a.stride[d] - a.before[d];
        SUM sum = 0;
        for (int64_t c = 0; c < a.channels; c++) {
            for (int64_t k0 = 0, p0 = first[0]; k0 < a.kernel[0]; k0++, p0 += a.dilation[0]) {
                const bool in0 = p0 >= 0 && p0 < a.in[0];
                for (int64_t k1 = 0, p1 = first[1]; k1 < a.kernel[1]; k1++, p1 += a.dilation[1]) {
                    const bool in1 = in0 && p1 >= 0 && p1 < a.in[1];
                    int64_t xr = x + p0 * a.x_stride[2] + p1 * a.x_stride[3];
                    int64_t wr = w + k0 * a.w_stride[2] + k1 * a.w_stride[3];
                    for (int64_t k2 = 0, p2 = first[2]; k2 < a.kernel[2];
                         k2++, p2 += a.dilation[2]) {
                        const bool inside = in1 && p2 >= 0 && p2 < a.in[2];
                        SUM tap = inside ? element(a.x, xr + p2 * a.x_stride[4]) : 0;
                        sum = ADD_PRODUCT(tap, element(a.w, wr + k2 * a.w_stride[4]), sum);
                    }
                }
            }
            x += a.x_stride[1];
            w += a.w_stride[1];
        }
        if (a.bias) sum += element(a.bias, at[1] * a.bias_stride);
        *(LM_S *)(void *)((char *)a.y + y) = RESULT(sum);
    }
}

#endif
