/* random.c -- random words by the block, and the numbers made of them, on one level.
** Layer: kernels/cpu/level. */
#include "random.h"

#include "cpu/level.h"
#include "cpu/vector.h"
#include "device.h"
#define LM_T f32
#include "words.h"
#undef LM_T
#define LM_T f64
#include "words.h"

#define PIECE 512 /* elements made at once */
#define TWO_PI 6.283185307179586476925286766559

#define SIDE 3             /* vectors at a time: a round has to wait for its products */
#define PER (2 * LM_LANES) /* blocks of a vector */
#define STEP (SIDE * PER)

/* Block numbers of a vector's elements, such that zipping by lanes leaves the blocks in order. */
static lm_v64 order(uint64_t first) {
    lm_v64 v = {0};
    for (int i = 0; i < LM_LANES; i++) {
        v[2 * i] = first + (uint64_t)i;
        v[2 * i + 1] = first + (uint64_t)(i + LM_LANES);
    }
    return v;
}

/* At least n blocks from `first` on, in whole steps, as lm_random_block makes one. Elements have 64
** bits, of which the low halves count. */
static void make_blocks(uint64_t seed, uint64_t first, int64_t n, uint32_t *restrict out) {
    const lm_v64 zero = {0}, m0 = zero + LM_PHILOX_M0, m1 = zero + LM_PHILOX_M1,
                 half = zero + UINT32_MAX;
    for (int64_t b = 0; b < n; b += STEP) {
        lm_v64 x[SIDE], y[SIDE], z[SIDE], w[SIDE];
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int i = 0; i < SIDE; i++) {
            lm_v64 block = order(first + (uint64_t)(b + i * PER));
            x[i] = block >> 16;
            y[i] = block >> 48;
            z[i] = block & 0xffffu;
            w[i] = zero;
        }
        for (int round = 0; round < LM_PHILOX_ROUNDS; round++) {
            for (int i = 0; i < SIDE; i++) {
                lm_v64 p = lm_vector_mul_low(x[i], m0), q = lm_vector_mul_low(z[i], m1);
                x[i] = (q >> 32) ^ y[i] ^ (uint64_t)k0;
                z[i] = (p >> 32) ^ w[i] ^ (uint64_t)k1;
                y[i] = q;
                w[i] = p;
            }
            k0 += LM_PHILOX_KEY0;
            k1 += LM_PHILOX_KEY1;
        }
        for (int i = 0; i < SIDE; i++) {
            lm_v8 low, high;
            lm_vector_zip((lm_v8)((x[i] & half) | (y[i] << 32)),
                          (lm_v8)((z[i] & half) | (w[i] << 32)), 8, &low, &high);
            char *p = (char *)(out + 4 * (b + i * PER));
            lm_vector_store(p, low);
            lm_vector_store(p + LM_VECTOR, high);
        }
    }
}

/* Room for the words of a piece, four an element, which begin and end within blocks. */
typedef struct {
    uint32_t words[4 * PIECE + 4 + 4 * STEP];
} room;

/* n words from word `first` on; they start at the pointer returned. */
static const uint32_t *make_words(uint64_t seed, uint64_t first, int64_t n, room *r) {
    uint64_t block = first / 4, skip = first % 4;
    make_blocks(seed, block, ((int64_t)skip + n + 3) / 4, r->words);
    return r->words + skip;
}

/* ---- numbers from words ---- */

static void uniform_f32(int64_t n, const uint32_t *restrict words, int bits, float *restrict out) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = lm_uniform_bits(words[i], bits);
}

static void uniform_f64(int64_t n, const uint32_t *restrict words, double *restrict out) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = lm_uniform_f64(words[2 * i], words[2 * i + 1]);
}

/* Box and Muller's first number of each pair; none is kept for later. */
static void normal_f32(int64_t n, const uint32_t *restrict words, float *restrict out) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float radius = lm_sqrt_f32(-2.0f * lm_log_f32(lm_positive_f32(words[2 * i])));
        out[i] = radius * lm_cos_fast_f32((float)TWO_PI * lm_uniform_bits(words[2 * i + 1], 24));
    }
}

static void normal_f64(int64_t n, const uint32_t *restrict words, double *restrict out) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        const uint32_t *w = words + 4 * i;
        double radius = lm_sqrt_f64(-2.0 * lm_log_f64(lm_positive_f64(w[0], w[1])));
        out[i] = radius * lm_cos_fast_f64(TWO_PI * lm_uniform_f64(w[2], w[3]));
    }
}

/* start: of the first of the n elements. */
static void integers(int64_t n, const uint32_t *words, const lm_random *r, int64_t start,
                     int64_t *out) {
    uint64_t range = (uint64_t)r->hi - (uint64_t)r->lo + 1;
    uint64_t first = r->offset + 2 * (uint64_t)start;
    uint64_t wider = r->kind == LM_RANDOM_UP_TO; /* by one from element to element */
    range += wider * (uint64_t)start;
    for (int64_t i = 0; i < n; i++) {
        uint64_t low = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        uint64_t v = lm_uniform_below(r->seed, first + 2 * (uint64_t)i, low, range);
        out[i] = (int64_t)((uint64_t)r->lo + v);
        range += wider;
    }
}

static bool is_integer(const lm_random *r) {
    return r->kind == LM_RANDOM_INTEGER || r->kind == LM_RANDOM_UP_TO;
}

/* n <= PIECE numbers from element `start` on, of their words, in the dtype that they are made in. */
static void make(const lm_random *r, int64_t start, int64_t n, const uint32_t *words, void *out) {
    bool wide = r->out.dtype == LUMA_FLOAT64;
    if (is_integer(r))
        integers(n, words, r, start, out);
    else if (r->kind == LM_RANDOM_NORMAL && wide)
        normal_f64(n, words, out);
    else if (r->kind == LM_RANDOM_NORMAL)
        normal_f32(n, words, out);
    else if (wide)
        uniform_f64(n, words, out);
    else
        uniform_f32(n, words, r->bits, out);
}

/* Elements lo .. hi - 1 of a contiguous output. */
static void fill(const lm_random *r, char *data, int64_t lo, int64_t hi,
                 const lm_cast_kernels *casts) {
    room words;
    _Alignas(64) int64_t numbers[PIECE];
    int64_t size = (int64_t)lm_dtype_size(r->out.dtype);
    luma_dtype made = r->out.dtype == LUMA_FLOAT64 ? LUMA_FLOAT64 : LUMA_FLOAT32;
    if (is_integer(r)) made = LUMA_INT64;
    for (int64_t i = lo; i < hi; i += PIECE) {
        int64_t n = hi - i < PIECE ? hi - i : PIECE;
        uint64_t first = r->offset + (uint64_t)(i * r->words);
        const uint32_t *w = make_words(r->seed, first, n * r->words, &words);
        make(r, i, n, w, numbers);
        casts->cast[made][r->out.dtype](n, (const char *)numbers, (int64_t)lm_dtype_size(made),
                                        data + i * size, size);
    }
}

extern const lm_random_kernels LM_TABLE(random);
const lm_random_kernels LM_TABLE(random) = {fill};
