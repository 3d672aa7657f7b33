/* quant.c -- quantised blocks: made, read, and multiplied with rows that are rounded to 8 bits. A
** product sums in 16 lanes that the format decides, not the level: the same bits everywhere.
** Layer: kernels/cpu.
**
** q8_0: lane l has elements 2 l and 2 l + 1 of every block. q4_0: four blocks side by side; lane
** 4 b + j has elements 4 j to 4 j + 3 of both halves of block b. */
#include <string.h>

#include "cpu/level.h"
#include "cpu/vector.h"
#include "quant_words.h"

#define INLINE inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define ONCE __attribute__((noinline))
#else
#define UNROLL _Pragma("GCC unroll 16")
#define ONCE __attribute__((noinline, noclone))
#endif

#define BLOCK LM_QUANT_BLOCK
#define GROUP 4                 /* blocks of q4_0 side by side */
#define PARTS (4 / LM_LANES)    /* vectors of 16 lanes */
#define NUMBERS (LM_VECTOR / 4) /* lanes of a vector */
#define CHUNK 64                /* blocks whose scales are made at a time */
#define TILE 4                  /* rows of w, or of x, that are read side by side */
#define SHORTS (LM_VECTOR / 2)  /* of a vector */
typedef float floats __attribute__((vector_size(LM_VECTOR)));
typedef int32_t ints __attribute__((vector_size(LM_VECTOR)));
typedef int16_t shorts __attribute__((vector_size(LM_VECTOR)));

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The bits of the greatest magnitude of a block; NaN is the greatest. */
static INLINE uint32_t greatest_of(const float *x) {
    uint32_t greatest = 0;
#pragma omp simd reduction(max : greatest)
    for (int i = 0; i < BLOCK; i++) {
        uint32_t u = lm_bits_f32(x[i]) & 0x7fffffffu;
        greatest = u > greatest ? u : greatest;
    }
    return greatest;
}

static void make_q8_0(int64_t n, const float *x, uint8_t *y) {
    for (int64_t b = 0; b < n; b++, x += BLOCK, y += LM_Q8_0_BYTES) {
        uint32_t greatest = greatest_of(x);
        float d = lm_float_f32(greatest) / 127.0f;
        uint16_t scale = lm_quant_scale(d, greatest);
        float inverse = lm_quant_inverse(d, scale);
        int8_t q[BLOCK];
#pragma omp simd
        for (int i = 0; i < BLOCK; i++)
            q[i] = (int8_t)lm_q8_0_of(x[i], inverse);
        memcpy(y, &scale, 2);
        memcpy(y + 2, q, sizeof q);
    }
}

static void make_q4_0(int64_t n, const float *x, uint8_t *y) {
    for (int64_t b = 0; b < n; b++, x += BLOCK, y += LM_Q4_0_BYTES) {
        uint32_t greatest = greatest_of(x);
        float most = 0.0f; /* of elements of the greatest magnitude the first decides the sign */
        for (int i = BLOCK - 1; i >= 0 && greatest > 0; i--)
            most = (lm_bits_f32(x[i]) & 0x7fffffffu) == greatest ? x[i] : most;
        float d = most / -8.0f;
        uint16_t scale = lm_quant_scale(d, greatest);
        float inverse = lm_quant_inverse(d, scale);
        memcpy(y, &scale, 2);
#pragma omp simd
        for (int i = 0; i < BLOCK / 2; i++)
            y[2 + i] =
                (uint8_t)(lm_q4_0_of(x[i], inverse) | lm_q4_0_of(x[i + BLOCK / 2], inverse) << 4);
    }
}

static INLINE float scale_of(const uint8_t *block) {
    lm_f16 d;
    memcpy(&d, block, sizeof d);
    return lm_load_f16(d);
}

static void read_q8_0(int64_t n, const uint8_t *x, float *y) {
    for (int64_t b = 0; b < n; b++, x += LM_Q8_0_BYTES, y += BLOCK) {
        const float d = scale_of(x);
        const int8_t *q = (const int8_t *)x + 2;
#pragma omp simd
        for (int i = 0; i < BLOCK; i++)
            y[i] = d * (float)q[i];
    }
}

static void read_q4_0(int64_t n, const uint8_t *x, float *y) {
    for (int64_t b = 0; b < n; b++, x += LM_Q4_0_BYTES, y += BLOCK) {
        const float d = scale_of(x);
#pragma omp simd
        for (int i = 0; i < BLOCK / 2; i++) {
            y[i] = d * (float)((x[2 + i] & 15) - 8);
            y[i + BLOCK / 2] = d * (float)((x[2 + i] >> 4) - 8);
        }
    }
}

/* ---- rows of x ------------------------------------------------------------------------------- */

/* A rounded row, in GROUPs of blocks: the scales of all (0 past the last), from the next multiple of
** 64 bytes on what the format wants of a group. */
static INLINE int64_t groups_of(int64_t n) {
    return (n + GROUP - 1) / GROUP;
}
static INLINE int64_t scales_bytes(int64_t n) {
    return (groups_of(n) * GROUP * 4 + 63) / 64 * 64;
}
static INLINE char *elements_of(char *row, int64_t n) {
    return row + scales_bytes(n);
}

typedef struct {
    int16_t q[GROUP][BLOCK];
} row_q8_0;
typedef struct {
    int8_t low[GROUP][BLOCK / 2], high[GROUP][BLOCK / 2]; /* halves of the blocks */
    int32_t eights[GROUP][4];                             /* 8 times the sum of a lane's elements */
} row_q4_0;

static int64_t row_bytes_q8_0(int64_t n) {
    return scales_bytes(n) + groups_of(n) * (int64_t)sizeof(row_q8_0);
}
static int64_t row_bytes_q4_0(int64_t n) {
    return scales_bytes(n) + groups_of(n) * (int64_t)sizeof(row_q4_0);
}

static INLINE float round_block(const float *x, int16_t *q) {
    uint32_t greatest = greatest_of(x);
    const float lift = lm_quant_row_lift(greatest), inverse = lm_quant_row_inverse(greatest);
#pragma omp simd
    for (int i = 0; i < BLOCK; i++)
        q[i] = (int16_t)lm_quant_row_of(x[i] * lift, inverse);
    return lm_quant_row_scale(greatest);
}

static void round_q8_0(int64_t n, const float *x, char *row) {
    float *scale = (float *)(void *)row;
    row_q8_0 *g = (row_q8_0 *)(void *)elements_of(row, n);
    memset(scale + n, 0, (size_t)(groups_of(n) * GROUP - n) * sizeof *scale);
    for (int64_t b = 0; b < n; b++)
        scale[b] = round_block(x + b * BLOCK, g[b / GROUP].q[b % GROUP]);
}

static void round_q4_0(int64_t n, const float *x, char *row) {
    float *scale = (float *)(void *)row;
    row_q4_0 *g = (row_q4_0 *)(void *)elements_of(row, n);
    const int64_t all = groups_of(n) * GROUP;
    for (int64_t b = 0; b < all; b++) {
        row_q4_0 *to = &g[b / GROUP];
        const int64_t at = b % GROUP;
        int16_t q[BLOCK] = {0};
        scale[b] = b < n ? round_block(x + b * BLOCK, q) : 0.0f;
        for (int i = 0; i < BLOCK / 2; i++) {
            to->low[at][i] = (int8_t)q[i];
            to->high[at][i] = (int8_t)q[i + BLOCK / 2];
        }
        for (int j = 0; j < 4; j++) {
            to->eights[at][j] = 0;
            for (int i = 4 * j; i < 4 * j + 4; i++)
                to->eights[at][j] += 8 * (q[i] + q[i + BLOCK / 2]);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* a[2 l] b[2 l] + a[2 l + 1] b[2 l + 1] */
static INLINE ints pairs(shorts a, shorts b) {
#if LM_LANES == 4
    return (ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif LM_LANES == 2
    return (ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (ints)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    ints sum;
    for (int l = 0; l < NUMBERS; l++)
        sum[l] = a[2 * l] * b[2 * l] + a[2 * l + 1] * b[2 * l + 1];
    return sum;
#endif
}

static INLINE shorts widen(const int8_t *p) {
#if LM_LANES == 4
    return (shorts)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)p));
#elif LM_LANES == 2
    return (shorts)_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p));
#elif defined(__SSE2__)
    __m128i v = _mm_loadl_epi64((const void *)p);
    return (shorts)_mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
#else
    shorts v;
    for (int i = 0; i < SHORTS; i++)
        v[i] = p[i];
    return v;
#endif
}

/* Lane by lane of 16 bytes: the sums of four products of bytes, of a (0 .. 15) and b side by side. */
static INLINE ints quads(lm_v8 low, const int8_t *x_low, lm_v8 high, const int8_t *x_high) {
#if LM_LANES == 4
    __m512i a = _mm512_maddubs_epi16((__m512i)low, _mm512_loadu_si512((const void *)x_low));
    __m512i b = _mm512_maddubs_epi16((__m512i)high, _mm512_loadu_si512((const void *)x_high));
    return (ints)_mm512_madd_epi16(_mm512_add_epi16(a, b), _mm512_set1_epi16(1));
#elif LM_LANES == 2
    __m256i a = _mm256_maddubs_epi16((__m256i)low, _mm256_loadu_si256((const void *)x_low));
    __m256i b = _mm256_maddubs_epi16((__m256i)high, _mm256_loadu_si256((const void *)x_high));
    return (ints)_mm256_madd_epi16(_mm256_add_epi16(a, b), _mm256_set1_epi16(1));
#elif defined(__SSE2__)
    __m128i zero = _mm_setzero_si128(), a = (__m128i)low, b = (__m128i)high;
    ints front = pairs((shorts)_mm_unpacklo_epi8(a, zero), widen(x_low)) +
                 pairs((shorts)_mm_unpacklo_epi8(b, zero), widen(x_high));
    ints back = pairs((shorts)_mm_unpackhi_epi8(a, zero), widen(x_low + 8)) +
                pairs((shorts)_mm_unpackhi_epi8(b, zero), widen(x_high + 8));
    __m128i even = _mm_unpacklo_epi64(_mm_shuffle_epi32((__m128i)front, 0x08),
                                      _mm_shuffle_epi32((__m128i)back, 0x08));
    __m128i odd = _mm_unpacklo_epi64(_mm_shuffle_epi32((__m128i)front, 0x0d),
                                     _mm_shuffle_epi32((__m128i)back, 0x0d));
    return (ints)even + (ints)odd;
#else
    ints sum;
    for (int l = 0; l < NUMBERS; l++) {
        sum[l] = 0;
        for (int i = 4 * l; i < 4 * l + 4; i++)
            sum[l] += low[i] * x_low[i] + high[i] * x_high[i];
    }
    return sum;
#endif
}

/* Four lanes of scale[0], four of scale[1], ... as a vector has. */
static INLINE floats by_block(const float *scale) {
#if LM_LANES == 4
    const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return (floats)_mm512_permutexvar_ps(at, _mm512_castps128_ps512(_mm_loadu_ps(scale)));
#elif LM_LANES == 2
    __m256 low = _mm256_broadcast_ss(scale), high = _mm256_broadcast_ss(scale + 1);
    return (floats)_mm256_blend_ps(low, high, 0xf0);
#else
    return (floats){0} + *scale;
#endif
}

static INLINE ints load_ints(const void *p) {
    ints v;
    memcpy(&v, p, sizeof v);
    return v;
}

typedef floats sums[TILE][PARTS]; /* of the pairs of rows of a tile: nx rows of x or nw of w */

/* Asks for the line that lies so many bytes from p on, within the tensor or past its end. */
static INLINE void fetch(const uint8_t *p, int64_t bytes) {
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes));
}

/* Adds the products of n blocks of nw rows of w and nx rows of x. ahead: bytes from
** these blocks of w to those that come next. */
static INLINE void add_q8_0(int nw, int nx, int64_t n, const row_q8_0 *const *x,
                            const uint8_t *const *w, float (*scale)[CHUNK], int64_t ahead,
                            sums total) {
    sums sum;
    memcpy(sum, total, sizeof sum);
    for (int64_t b = 0; b < n; b++) {
        shorts v[TILE][PARTS];
        UNROLL
        for (int r = 0; r < nw; r++) {
            fetch(w[r], ahead + b * LM_Q8_0_BYTES);
            UNROLL
            for (int p = 0; p < PARTS; p++)
                v[r][p] = widen((const int8_t *)w[r] + b * LM_Q8_0_BYTES + 2 + p * SHORTS);
        }
        UNROLL
        for (int t = 0; t < nw * nx; t++) {
            const int r = nw > 1 ? t : 0, c = nx > 1 ? t : 0;
            const int16_t *q = x[c][b / GROUP].q[b % GROUP];
            UNROLL
            for (int p = 0; p < PARTS; p++) {
                ints i = pairs(v[r][p], (shorts)load_ints(q + p * SHORTS));
                sum[t][p] += __builtin_convertvector(i, floats) * scale[t][b];
            }
        }
    }
    memcpy(total, sum, sizeof sum);
}

/* n: a multiple of GROUP. */
static INLINE void add_q4_0(int nw, int nx, int64_t n, const row_q4_0 *const *x,
                            const uint8_t *const *w, float (*scale)[CHUNK], int64_t ahead,
                            sums total) {
    sums sum;
    memcpy(sum, total, sizeof sum);
    for (int64_t b = 0; b < n; b += GROUP) {
        lm_v8 low[TILE][PARTS], high[TILE][PARTS];
        UNROLL
        for (int r = 0; r < nw; r++) {
            fetch(w[r], ahead + b * LM_Q4_0_BYTES);
            fetch(w[r], ahead + b * LM_Q4_0_BYTES + 64);
            UNROLL
            for (int p = 0; p < PARTS; p++) {
                const uint8_t *at = w[r] + (b + p * LM_LANES) * LM_Q4_0_BYTES + 2;
                lm_v8 v = lm_vector_gather_lanes((const char *)at, LM_Q4_0_BYTES);
                low[r][p] = v & 15;
                high[r][p] = (lm_v8)((lm_v16)v >> 4) & 15;
            }
        }
        UNROLL
        for (int t = 0; t < nw * nx; t++) {
            const int r = nw > 1 ? t : 0, c = nx > 1 ? t : 0;
            const row_q4_0 *g = &x[c][b / GROUP];
            UNROLL
            for (int p = 0; p < PARTS; p++) {
                const int at = p * LM_LANES;
                ints i = quads(low[r][p], g->low[at], high[r][p], g->high[at]);
                i -= load_ints(g->eights[at]);
                sum[t][p] += __builtin_convertvector(i, floats) * by_block(&scale[t][b + at]);
            }
        }
    }
    memcpy(total, sum, sizeof sum);
}

/* The three shapes of tiles, each once: their sums stay in registers. */
#define SHAPE(name, nw, nx, format)                                                                \
    static ONCE void name##_##format(int64_t n, const row_##format *const *x,                      \
                                     const uint8_t *const *w, float(*scale)[CHUNK], int64_t ahead, \
                                     sums total) {                                                 \
        add_##format(nw, nx, n, x, w, scale, ahead, total);                                        \
    }
SHAPE(wide, TILE, 1, q8_0)
SHAPE(high, 1, TILE, q8_0)
SHAPE(single, 1, 1, q8_0)
SHAPE(wide, TILE, 1, q4_0)
SHAPE(high, 1, TILE, q4_0)
SHAPE(single, 1, 1, q4_0)

/* The scales of n blocks of `size` bytes. */
static INLINE void scales_of(int64_t n, const uint8_t *w, int64_t size, float *d) {
    int64_t b = 0;
#if defined(__F16C__)
    for (; b + 4 <= n; b += 4) { /* by way of a word: gathers take three times as long */
        uint64_t four = 0;
        for (int i = 0; i < 4; i++) {
            uint16_t one;
            memcpy(&one, w + (b + i) * size, sizeof one);
            four |= (uint64_t)one << 16 * i;
        }
        _mm_storeu_ps(d + b, _mm_cvtph_ps(_mm_cvtsi64_si128((long long)four)));
    }
#endif
    for (; b < n; b++)
        d[b] = scale_of(w + b * size);
}

/* scale[t] of every pair of rows of a tile. */
static ONCE void pair_scales(int nw, int nx, int64_t n, const uint8_t *const *w, int64_t size,
                             const float *const *x, float (*scale)[CHUNK]) {
    float d[TILE][CHUNK];
    for (int r = 0; r < nw; r++)
        scales_of(n, w[r], size, d[r]);
    for (int t = 0; t < nw * nx; t++) {
        const float *dw = d[nw > 1 ? t : 0], *dx = x[nx > 1 ? t : 0];
#pragma omp simd
        for (int64_t b = 0; b < n; b++)
            scale[t][b] = dw[b] * dx[b];
    }
}

/* The lanes in one order. */
static INLINE float total(const floats *sum) {
    float lane[16];
    memcpy(lane, sum, sizeof lane);
    for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    }
    return lane[0];
}

/* y of nx rows of x and nw rows of w, one of which is 1; n blocks. */
static INLINE void tile_q8_0(int nw, int nx, int64_t n, char *const *rows, const uint8_t *const *ws,
                             float *const *y) {
    sums sum = {{{0}}};
    float scale[TILE][CHUNK];
    for (int64_t from = 0; from < n; from += CHUNK) {
        const int64_t m = lm_min(CHUNK, n - from);
        const row_q8_0 *x[TILE];
        const uint8_t *w[TILE];
        const float *dx[TILE];
        for (int r = 0; r < nw; r++)
            w[r] = ws[r] + from * LM_Q8_0_BYTES;
        for (int c = 0; c < nx; c++) {
            x[c] = (const row_q8_0 *)(void *)elements_of(rows[c], n) + from / GROUP;
            dx[c] = (const float *)(void *)rows[c] + from;
        }
        pair_scales(nw, nx, m, w, LM_Q8_0_BYTES, dx, scale);
        const int64_t ahead = (from + CHUNK < n ? CHUNK : n * nw - from) * LM_Q8_0_BYTES;
        (nw > 1 ? wide_q8_0 : nx > 1 ? high_q8_0 : single_q8_0)(m, x, w, scale, ahead, sum);
    }
    for (int t = 0; t < nw * nx; t++)
        *y[t] = total(sum[t]);
}

static INLINE void tile_q4_0(int nw, int nx, int64_t n, char *const *rows, const uint8_t *const *ws,
                             float *const *y) {
    sums sum = {{{0}}};
    float scale[TILE][CHUNK];
    uint8_t rest[TILE][GROUP * LM_Q4_0_BYTES]; /* the last group, where it is not full */
    for (int64_t from = 0; from < n;) {
        const bool part = n - from < GROUP;
        const int64_t m = part ? GROUP : lm_min(CHUNK, (n - from) / GROUP * GROUP);
        const row_q4_0 *x[TILE];
        const uint8_t *w[TILE];
        const float *dx[TILE];
        for (int r = 0; r < nw; r++) {
            w[r] = ws[r] + from * LM_Q4_0_BYTES;
            if (!part) continue;
            memset(rest[r], 0, sizeof rest[r]);
            memcpy(rest[r], w[r], (size_t)((n - from) * LM_Q4_0_BYTES));
            w[r] = rest[r];
        }
        for (int c = 0; c < nx; c++) {
            x[c] = (const row_q4_0 *)(void *)elements_of(rows[c], n) + from / GROUP;
            dx[c] = (const float *)(void *)rows[c] + from;
        }
        pair_scales(nw, nx, m, w, LM_Q4_0_BYTES, dx, scale);
        const int64_t ahead = (from + CHUNK < n ? CHUNK : n * nw - from) * LM_Q4_0_BYTES;
        (nw > 1 ? wide_q4_0 : nx > 1 ? high_q4_0 : single_q4_0)(m, x, w, scale, ahead, sum);
        from += m;
    }
    for (int t = 0; t < nw * nx; t++)
        *y[t] = total(sum[t]);
}

/* y[i * ldy + j] of rows i of x, `step` bytes apart, and rows j of w: one row of x meets TILE of w, or
** TILE rows of x one of w. */
#define DOTS(format, BYTES)                                                                        \
    static void dots_##format(int64_t m, int64_t n, int64_t blocks, char *x, int64_t step,         \
                              const uint8_t *w, float *y, int64_t ldy) {                           \
        const int64_t wide = blocks * (BYTES);                                                     \
        int64_t i = 0;                                                                             \
        for (; i + TILE <= m; i += TILE) {                                                         \
            char *const rows[] = {x + i * step, x + (i + 1) * step, x + (i + 2) * step,            \
                                  x + (i + 3) * step};                                             \
            for (int64_t j = 0; j < n; j++) {                                                      \
                const uint8_t *at = w + j * wide;                                                  \
                float *to = y + i * ldy + j;                                                       \
                float *const out[] = {to, to + ldy, to + 2 * ldy, to + 3 * ldy};                   \
                tile_##format(1, TILE, blocks, rows, &at, out);                                    \
            }                                                                                      \
        }                                                                                          \
        for (; i < m; i++) {                                                                       \
            char *row = x + i * step;                                                              \
            int64_t j = 0;                                                                         \
            for (; j + TILE <= n; j += TILE) {                                                     \
                const uint8_t *at = w + j * wide;                                                  \
                const uint8_t *const ws[] = {at, at + wide, at + 2 * wide, at + 3 * wide};         \
                float *to = y + i * ldy + j;                                                       \
                float *const out[] = {to, to + 1, to + 2, to + 3};                                 \
                tile_##format(TILE, 1, blocks, &row, ws, out);                                     \
            }                                                                                      \
            for (; j < n; j++) {                                                                   \
                const uint8_t *at = w + j * wide;                                                  \
                float *to = y + i * ldy + j;                                                       \
                tile_##format(1, 1, blocks, &row, &at, &to);                                       \
            }                                                                                      \
        }                                                                                          \
    }
DOTS(q8_0, LM_Q8_0_BYTES)
DOTS(q4_0, LM_Q4_0_BYTES)

#define FORMAT(f)                                                                                  \
    { make_##f, read_##f, row_bytes_##f, round_##f, dots_##f }
extern const lm_quant_kernels LM_TABLE(quant);
const lm_quant_kernels LM_TABLE(quant) = {{FORMAT(q8_0), FORMAT(q4_0)}};
