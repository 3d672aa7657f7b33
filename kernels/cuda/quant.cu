/* quant.cu -- quantised blocks: made and read by a warp each; rows of x rounded to 8 bits, and their
** products with rows of blocks, a warp for each of these. A lane takes 8 bytes of a block at a time.
** Products of rows of bytes are sums of integers (dp4a), scaled in float32, as on the CPU; the order
** of the float32 sums is another. */
#include "cuda/kernel.h"
#include "quant_words.h"

#define BLOCK LM_QUANT_BLOCK

LM_FN int dp4a(int a, int b, int c) {
#if defined(__CUDA_ARCH__)
    return __dp4a(a, b, c);
#else
    for (int i = 0; i < 32; i += 8)
        c += (int8_t)((uint32_t)a >> i) * (int8_t)((uint32_t)b >> i);
    return c;
#endif
}

/* All warps of the grid over blocks 0 .. n - 1. */
#define EACH_BLOCK(b, n)                                                                           \
    for (int64_t b = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; b < (n);               \
         b += (int64_t)blockDim.x * gridDim.x / 32)
#define LANE ((int)threadIdx.x % 32)

LM_FN uint32_t magnitude_of(float x) {
    return lm_bits_f32(x) & 0x7fffffffu;
}

/* The greatest magnitude of the warp. */
LM_FN uint32_t greatest_of(float x) {
    uint32_t greatest = magnitude_of(x);
    for (int d = 16; d > 0; d /= 2) {
        uint32_t other = __shfl_xor_sync(LM_ALL_LANES, greatest, d);
        greatest = other > greatest ? other : greatest;
    }
    return greatest;
}

LM_FN void store_scale(uint8_t *y, uint16_t scale) {
    if (LANE == 0) y[0] = (uint8_t)scale;
    if (LANE == 1) y[1] = (uint8_t)(scale >> 8);
}
LM_FN float scale_of(const uint8_t *x) {
    lm_f16 d;
    d.bits = (uint16_t)(x[0] | x[1] << 8);
    return lm_load_f16(d);
}

LM_KERNEL(quant_make_q8_0) {
    EACH_BLOCK(b, a.n) {
        float x = a.x[b * BLOCK + LANE];
        uint8_t *y = a.blocks + b * LM_Q8_0_BYTES;
        uint32_t greatest = greatest_of(x);
        float d = lm_float_f32(greatest) / 127.0f;
        uint16_t scale = lm_quant_scale(d, greatest);
        store_scale(y, scale);
        y[2 + LANE] = (uint8_t)lm_q8_0_of(x, lm_quant_inverse(d, scale));
    }
}

LM_KERNEL(quant_make_q4_0) {
    EACH_BLOCK(b, a.n) {
        float x = a.x[b * BLOCK + LANE];
        uint8_t *y = a.blocks + b * LM_Q4_0_BYTES;
        uint32_t greatest = greatest_of(x);
        /* of elements of the greatest magnitude the first decides the sign */
        unsigned which = __ballot_sync(LM_ALL_LANES, magnitude_of(x) == greatest);
        float most = __shfl_sync(LM_ALL_LANES, x, __ffs((int)which) - 1);
        float d = (greatest > 0 ? most : 0.0f) / -8.0f;
        uint16_t scale = lm_quant_scale(d, greatest);
        int q = lm_q4_0_of(x, lm_quant_inverse(d, scale));
        int high = __shfl_down_sync(LM_ALL_LANES, q, 16);
        store_scale(y, scale);
        if (LANE < 16) y[2 + LANE] = (uint8_t)(q | high << 4);
    }
}

LM_KERNEL(quant_read_q8_0) {
    EACH_BLOCK(b, a.n) {
        const uint8_t *x = a.blocks + b * LM_Q8_0_BYTES;
        a.y[b * BLOCK + LANE] = scale_of(x) * (float)(int8_t)x[2 + LANE];
    }
}

LM_KERNEL(quant_read_q4_0) {
    EACH_BLOCK(b, a.n) {
        const uint8_t *x = a.blocks + b * LM_Q4_0_BYTES;
        int q = x[2 + LANE % 16] >> LANE / 16 * 4 & 15;
        a.y[b * BLOCK + LANE] = scale_of(x) * (float)(q - 8);
    }
}

/* a.eights: 8 times the sums of elements 0 to 7 and 16 to 23, and of the others. */
LM_KERNEL(quant_round) {
    EACH_BLOCK(b, a.n) {
        float x = a.x[b * BLOCK + LANE];
        uint32_t greatest = greatest_of(x);
        int q = lm_quant_row_of(x * lm_quant_row_lift(greatest), lm_quant_row_inverse(greatest));
        int sum = 8 * q;
        for (int d = 1; d < 8; d *= 2)
            sum += __shfl_xor_sync(LM_ALL_LANES, sum, d);
        sum += __shfl_xor_sync(LM_ALL_LANES, sum, 16);
        a.rounded[b * BLOCK + LANE] = (int8_t)q;
        if (LANE == 0) a.scales[b] = lm_quant_row_scale(greatest);
        if (LANE == 0 || LANE == 8) a.eights[b * 2 + LANE / 8] = sum;
    }
}

/* ---- products ---- */

#define WIDE 2 /* rows of blocks of a warp, */
#define HIGH 8 /* and rows of x, where there are several */

typedef struct {
    int v[2];
} eight;

/* 8 bytes of a block, which begins at an even address. */
LM_FN eight load_block(const uint8_t *p) {
    const uint16_t *h = (const uint16_t *)(const void *)p;
    eight e;
    e.v[0] = (int)(h[0] | (uint32_t)h[1] << 16);
    e.v[1] = (int)(h[2] | (uint32_t)h[3] << 16);
    return e;
}
LM_FN eight load_row(const int8_t *p) {
    return *(const eight *)(const void *)p;
}
LM_FN float load_scale(const uint8_t *p) {
    lm_f16 d;
    d.bits = *(const uint16_t *)(const void *)p;
    return lm_load_f16(d);
}

LM_FN int least_of(int64_t a, int64_t b) {
    return (int)(a < b ? a : b);
}

/* What a lane has of one block of each row: nw rows of w from w on, nx of x from row i on. Rows past
** the last are the last. */
LM_FN void add_q8_0(const lm_args_quant *a, int nw, int nx, const uint8_t *const *w, int64_t i,
                    int64_t unit, float (*sum)[HIGH]) {
    const int64_t b = unit / 4;
    const int part = (int)(unit % 4) * 8;
    eight v[WIDE];
    float d[WIDE];
    LM_UNROLL
    for (int r = 0; r < nw; r++) {
        const uint8_t *at = w[r] + b * LM_Q8_0_BYTES;
        v[r] = load_block(at + 2 + part);
        d[r] = load_scale(at);
    }
    LM_UNROLL
    for (int c = 0; c < nx; c++) {
        const int64_t at = (i + least_of(c, a->m - 1 - i)) * a->blocks_of_row + b;
        const eight x = load_row(a->rounded + at * BLOCK + part);
        const float dx = a->scales[at];
        LM_UNROLL
        for (int r = 0; r < nw; r++) {
            int s = dp4a(v[r].v[0], x.v[0], dp4a(v[r].v[1], x.v[1], 0));
            sum[r][c] += (float)s * (d[r] * dx);
        }
    }
}

LM_FN void add_q4_0(const lm_args_quant *a, int nw, int nx, const uint8_t *const *w, int64_t i,
                    int64_t unit, float (*sum)[HIGH]) {
    const int64_t b = unit / 2;
    const int part = (int)(unit % 2);
    eight low[WIDE], high[WIDE];
    float d[WIDE];
    LM_UNROLL
    for (int r = 0; r < nw; r++) {
        const uint8_t *at = w[r] + b * LM_Q4_0_BYTES;
        const eight v = load_block(at + 2 + part * 8);
        d[r] = load_scale(at);
        LM_UNROLL
        for (int h = 0; h < 2; h++) {
            low[r].v[h] = v.v[h] & 0x0f0f0f0f;
            high[r].v[h] = (int)((uint32_t)v.v[h] >> 4 & 0x0f0f0f0fu);
        }
    }
    LM_UNROLL
    for (int c = 0; c < nx; c++) {
        const int64_t at = (i + least_of(c, a->m - 1 - i)) * a->blocks_of_row + b;
        const eight x = load_row(a->rounded + at * BLOCK + part * 8);
        const eight y = load_row(a->rounded + at * BLOCK + 16 + part * 8);
        const float dx = a->scales[at];
        const int eights = a->eights[at * 2 + part];
        LM_UNROLL
        for (int r = 0; r < nw; r++) {
            int s = dp4a(low[r].v[0], x.v[0], dp4a(low[r].v[1], x.v[1], -eights));
            s = dp4a(high[r].v[0], y.v[0], dp4a(high[r].v[1], y.v[1], s));
            sum[r][c] += (float)s * (d[r] * dx);
        }
    }
}

LM_FN float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(LM_ALL_LANES, v, d);
    return v;
}

/* parts: lanes of a block; ADD: what they do. The grid walks rows of w along x, of x along y. */
#define DOTS(name, nw, nx, parts, bytes, ADD)                                                      \
    LM_KERNEL(name) {                                                                              \
        const int64_t warps = (int64_t)gridDim.x * (blockDim.x / 32);                              \
        const int64_t wide = a.blocks_of_row * (bytes), first = threadIdx.x / 32;                  \
        for (int64_t i = (int64_t)blockIdx.y * (nx); i < a.m; i += (int64_t)gridDim.y * (nx)) {    \
            for (int64_t j = ((int64_t)blockIdx.x * (blockDim.x / 32) + first) * (nw); j < a.n;    \
                 j += warps * (nw)) {                                                              \
                const uint8_t *w[WIDE];                                                            \
                float sum[WIDE][HIGH];                                                             \
                LM_UNROLL                                                                          \
                for (int r = 0; r < (nw); r++) {                                                   \
                    w[r] = a.blocks + (j + least_of(r, a.n - 1 - j)) * wide;                       \
                    LM_UNROLL                                                                      \
                    for (int c = 0; c < (nx); c++)                                                 \
                        sum[r][c] = 0;                                                             \
                }                                                                                  \
                for (int64_t unit = LANE; unit < a.blocks_of_row * (parts); unit += 32)            \
                    ADD(&a, (nw), (nx), w, i, unit, sum);                                          \
                LM_UNROLL                                                                          \
                for (int r = 0; r < (nw); r++) {                                                   \
                    LM_UNROLL                                                                      \
                    for (int c = 0; c < (nx); c++) {                                               \
                        float y = warp_sum(sum[r][c]);                                             \
                        if (LANE == 0 && j + r < a.n && i + c < a.m)                               \
                            a.y[(i + c) * a.n + j + r] = y;                                        \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
DOTS(quant_row_q8_0, 1, 1, 4, LM_Q8_0_BYTES, add_q8_0)
DOTS(quant_rows_q8_0, WIDE, HIGH, 4, LM_Q8_0_BYTES, add_q8_0)
DOTS(quant_row_q4_0, 1, 1, 2, LM_Q4_0_BYTES, add_q4_0)
DOTS(quant_rows_q4_0, WIDE, HIGH, 2, LM_Q4_0_BYTES, add_q4_0)
