/* cuda_matmul_test.c -- products whose sizes, leading dimensions and batches pass what one call of
** cuBLAS takes, shown with a limit that is small; on the emulated device. */
#include <stdio.h>
#include <stdlib.h>

#include "tensor.h"

#include "cuda/blas.h"

#include "calls.h"

/* Whole numbers that every dtype holds, in a tensor of the CPU. */
static luma_tensor make(luma_dtype dtype, int ndim, const int64_t *shape) {
    static uint32_t seed = 1;
    luma_tensor x = LUMA_NEW, out = LUMA_NEW;
    MUST(luma_empty(S, &x, ndim, shape, LUMA_FLOAT32, "cpu"));
    float *p = (float *)(void *)lm_data(&x);
    for (int64_t i = 0; i < luma_numel(&x); i++) {
        seed = seed * 1103515245u + 12345u;
        p[i] = (float)(int)(seed >> 16 & 7) - 3;
    }
    MUST(luma_to_dtype(S, &out, &x, dtype));
    luma_release(S, &x);
    return out;
}

static luma_tensor to_device(const luma_tensor *x) {
    luma_tensor y = LUMA_NEW;
    MUST(luma_empty(S, &y, x->layout.ndim, x->layout.shape, x->dtype, "cuda:0"));
    MUST(luma_copy(S, &y, x));
    return y;
}

/* The last two dims of x, stored the other way round. */
static luma_tensor turned(const luma_tensor *x) {
    luma_tensor t = LUMA_NEW, flat = LUMA_NEW, out = LUMA_NEW;
    MUST(luma_transpose(S, &t, x, -1, -2));
    MUST(luma_force_contiguous(S, &flat, &t));
    MUST(luma_transpose(S, &out, &flat, -1, -2));
    luma_release(S, &t);
    luma_release(S, &flat);
    return out;
}

/* a b on both devices; the numbers are small enough for every sum to be exact. */
static void compare(const luma_tensor *a, const luma_tensor *b, bool turn_a, bool turn_b) {
    luma_tensor x = to_device(a), y = to_device(b), t, want = LUMA_NEW, c = LUMA_NEW;
    bool same = false;
    if (turn_a) {
        t = turned(&x);
        luma_release(S, &x);
        x = t;
    }
    if (turn_b) {
        t = turned(&y);
        luma_release(S, &y);
        y = t;
    }
    MUST(luma_matmul(S, &want, a, b));
    MUST(luma_matmul(S, &c, &x, &y));
    luma_tensor back = LUMA_NEW;
    MUST(luma_empty(S, &back, c.layout.ndim, c.layout.shape, c.dtype, "cpu"));
    MUST(luma_copy(S, &back, &c));
    MUST(luma_equal(S, &same, &back, &want));
    CHECK(same);
    luma_release(S, &x);
    luma_release(S, &y);
    luma_release(S, &c);
    luma_release(S, &back);
    luma_release(S, &want);
}

static void pieces(lm_cuda *c, luma_dtype dtype) {
    static const int64_t sizes[][3] = {{7, 5, 9}, {1, 9, 8}, {9, 1, 8}, {4, 4, 4}, {3, 8, 1}};
    for (int64_t most = 1; most <= 6; most++) {
        lm_blas_limit(c, most);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            luma_tensor a = make(dtype, 2, (int64_t[]){m, k});
            luma_tensor b = make(dtype, 2, (int64_t[]){k, n});
            luma_tensor many = make(dtype, 3, (int64_t[]){5, m, k});
            luma_tensor others = make(dtype, 4, (int64_t[]){3, 1, k, n});
            for (int turns = 0; turns < 4; turns++) {
                compare(&a, &b, turns & 1, turns & 2);
                compare(&many, &b, turns & 1, turns & 2);
                compare(&a, &others, turns & 1, turns & 2);
                compare(&many, &others, turns & 1, turns & 2);
            }
            luma_release(S, &a);
            luma_release(S, &b);
            luma_release(S, &many);
            luma_release(S, &others);
        }
    }
}

/* Sums that come in pieces are not rounded in between: 2048 + 1 + 1 is no float16 on the way. */
static void unrounded(lm_cuda *c) {
    luma_tensor a = make(LUMA_FLOAT16, 2, (int64_t[]){1, 5});
    luma_tensor b = make(LUMA_FLOAT16, 2, (int64_t[]){5, 1});
    static const uint16_t row[5] = {0x6800, 0x3c00, 0x3c00, 0x3c00, 0x3c00}, one = 0x3c00;
    for (int i = 0; i < 5; i++) {
        ((uint16_t *)(void *)lm_data(&a))[i] = row[i];
        ((uint16_t *)(void *)lm_data(&b))[i] = one;
    }
    lm_blas_limit(c, 1);
    compare(&a, &b, false, false);
    luma_release(S, &a);
    luma_release(S, &b);
}

int main(void) {
    setenv("LUMA_CUDA", "emulate", 1);
    unsetenv("LUMA_LIBCUDA");
    unsetenv("LUMA_LIBCUBLAS");
    S = luma_open();
    if (!S) return 1;
    lm_device *d;
    MUST(lm_device_find(S, "cuda:0", &d));
    lm_cuda *c = lm_cuda_of(d);
    luma_tensor one = make(LUMA_FLOAT32, 2, (int64_t[]){1, 1});
    compare(&one, &one, false, false); /* opens cuBLAS */
    luma_release(S, &one);
    CHECK(c->products[LM_PRODUCT_BLAS] == 1);
    static const luma_dtype dtypes[] = {LUMA_FLOAT32, LUMA_FLOAT64, LUMA_FLOAT16, LUMA_BFLOAT16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        pieces(c, dtypes[i]);
    unrounded(c);
    CHECK(c->products[LM_PRODUCT_OWN] == 0);
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
