/* random.h -- random words and numbers as pure functions of seed and position: Philox 4x32-10
** (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011) in the order of cuRAND's
** CURAND_RNG_PSEUDO_PHILOX4_32_10. C, C++ and CUDA. Layer: kernels.
**
** Word n of a seed is word n % 4 of the block n / 4. A fill whose first word is `offset` gives
** element i the words from offset + i * w on, w being what one element takes, so that neither threads
** nor devices change a number. */
#ifndef lm_random_h
#define lm_random_h

#include "bits.h"

#define LM_PHILOX_M0 0xD2511F53u
#define LM_PHILOX_M1 0xCD9E8D57u
/* One round; lo and hi are the halves of the two products. */
#define LM_PHILOX_ROUND(x, y, z, w, k0, k1)                                                        \
    do {                                                                                           \
        uint64_t a_ = (uint64_t)LM_PHILOX_M0 * (x), b_ = (uint64_t)LM_PHILOX_M1 * (z);             \
        uint32_t x_ = (uint32_t)(b_ >> 32) ^ (y) ^ (k0), z_ = (uint32_t)(a_ >> 32) ^ (w) ^ (k1);   \
        (y) = (uint32_t)b_;                                                                        \
        (w) = (uint32_t)a_;                                                                        \
        (x) = x_;                                                                                  \
        (z) = z_;                                                                                  \
    } while (0)
#define LM_PHILOX_ROUNDS 10
#define LM_PHILOX_KEY0 0x9E3779B9u /* added to the key after each round */
#define LM_PHILOX_KEY1 0xBB67AE85u

/* The counter of a block: cuRAND walks 65536 blocks along z before x moves on. attempt is 0, or says
** that earlier words of the element were rejected. */
#define LM_PHILOX_X(block) ((uint32_t)((block) >> 16))
#define LM_PHILOX_Y(block) ((uint32_t)((block) >> 48))
#define LM_PHILOX_Z(block) ((uint32_t)(block)&0xffffu)

LM_FN void lm_random_block(uint64_t seed, uint64_t block, uint32_t attempt, uint32_t *words) {
    uint32_t x = LM_PHILOX_X(block), y = LM_PHILOX_Y(block), z = LM_PHILOX_Z(block), w = attempt;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < LM_PHILOX_ROUNDS; i++) {
        LM_PHILOX_ROUND(x, y, z, w, k0, k1);
        k0 += LM_PHILOX_KEY0;
        k1 += LM_PHILOX_KEY1;
    }
    words[0] = x;
    words[1] = y;
    words[2] = z;
    words[3] = w;
}

LM_FN uint32_t lm_random_word(uint64_t seed, uint64_t n, uint32_t attempt) {
    uint32_t words[4];
    lm_random_block(seed, n / 4, attempt, words);
    return words[n % 4];
}

/* Uniform in [0, 1): the top bits of a word, as many as the dtype holds (at most 24), so never 1.
** Conversions from signed integers only: few levels have the others for vectors. */
LM_FN float lm_uniform_bits(uint32_t word, int bits) {
    return (float)(int32_t)(word >> (32 - bits)) * lm_float_f32((uint32_t)(127 - bits) << 23);
}
/* The top 53 bits of two words; both parts and their sum are exact. */
LM_FN double lm_uniform_f64(uint32_t low, uint32_t high) {
    double h = (double)(int32_t)(high ^ 0x80000000u) + 0x1p31;
    return h * 0x1p-32 + (double)(int32_t)(low >> 11) * 0x1p-53;
}

/* Uniform in (0, 1], for a logarithm. */
LM_FN float lm_positive_f32(uint32_t word) {
    return lm_fma_exact_f32((float)(int32_t)(word >> 1), 0x1p-31f, 0x1p-32f);
}
LM_FN double lm_positive_f64(uint32_t low, uint32_t high) {
    return lm_uniform_f64(low, high) + 0x1p-53;
}

/* A whole number of 0 .. range - 1 from 64 random bits by multiplication (Lemire, Fast random integer
** generation in an interval, 2019); range 0 stands for 2^64. Bits below the threshold would favour
** some numbers: the element then takes the words of the next attempt. */
LM_FN uint64_t lm_uniform_below(uint64_t seed, uint64_t n, uint64_t low, uint64_t range) {
    if (range == 0) return low;
    if (low * range < range) { /* only then is the division worth it */
        uint64_t threshold = (0 - range) % range;
        for (uint32_t attempt = 1; low * range < threshold; attempt++)
            low = (uint64_t)lm_random_word(seed, n + 1, attempt) << 32 |
                  lm_random_word(seed, n, attempt);
    }
    return lm_mulhi_u64(low, range);
}

#endif
