/* cuda_wide_test.c -- the kernels that sort and index with positions of 64 bits, for more than 2^32
** elements, shown on few: the same bits as with 32. On the emulated device, or the one of LUMA_CUDA. */
#include <stdio.h>
#include <stdlib.h>

#include "tensor.h"

#include "cuda/cuda.h"

#include "calls.h"

static lm_cuda *cuda;

/* Whole numbers of lo .. hi on the device. */
static luma_tensor draw(luma_dtype dtype, int ndim, const int64_t *shape, int64_t lo, int64_t hi) {
    luma_tensor x = LUMA_NEW, out = LUMA_NEW;
    MUST(luma_empty(S, &x, ndim, shape, LUMA_INT64, "cuda:0"));
    MUST(luma_randint(S, &x, lo, hi));
    MUST(luma_to_dtype(S, &out, &x, dtype));
    luma_release(S, &x);
    return out;
}

/* The operation with 32 bits and with 64. */
static void compare(const char *name, int nargs, const luma_arg *args) {
    luma_tensor narrow[2] = {LUMA_NEW, LUMA_NEW}, wide[2] = {LUMA_NEW, LUMA_NEW};
    int nouts = 0;
    cuda->narrow = UINT32_MAX;
    MUST(luma_call(S, name, 2, narrow, &nouts, nargs, args));
    cuda->narrow = 0;
    MUST(luma_call(S, name, 2, wide, &nouts, nargs, args));
    for (int i = 0; i < nouts; i++) {
        bool same = false;
        MUST(luma_equal(S, &same, &narrow[i], &wide[i]));
        CHECK(same);
        luma_release(S, &narrow[i]);
        luma_release(S, &wide[i]);
    }
}

static void orders(luma_dtype dtype) {
    luma_tensor x = draw(dtype, 2, (int64_t[]){3, 9001}, 0, 200);
    const luma_arg sorted[] = {luma_arg_tensor(&x), luma_arg_int(1)};
    const luma_arg few[] = {luma_arg_tensor(&x), luma_arg_int(7), luma_arg_int(1)};
    const luma_arg many[] = {luma_arg_tensor(&x), luma_arg_int(2200), luma_arg_int(1)};
    compare("sort", 2, sorted);
    compare("topk", 3, few);
    compare("topk", 3, many);
    luma_release(S, &x);
}

/* Few places and many, which a hash table finds. */
static void places(luma_dtype dtype, int64_t rows, int64_t columns) {
    luma_tensor x = draw(dtype, 2, (int64_t[]){rows, columns}, 0, 9);
    luma_tensor index =
        draw(LUMA_INT64, 1, (int64_t[]){700}, S->index_base, S->index_base + rows - 1);
    luma_tensor y = draw(dtype, 2, (int64_t[]){700, columns}, 0, 9);
    const luma_arg args[] = {luma_arg_tensor(&x), luma_arg_int(0), luma_arg_tensor(&index),
                             luma_arg_tensor(&y)};
    compare("index_copy", 4, args);
    compare("index_add", 4, args);
    luma_release(S, &x);
    luma_release(S, &y);
    luma_release(S, &index);
}

int main(void) {
    setenv("LUMA_CUDA", "emulate", 0);
    S = luma_open();
    if (!S) return 1;
    lm_device *d;
    MUST(lm_device_find(S, "cuda:0", &d));
    cuda = lm_cuda_of(d);
    static const luma_dtype dtypes[] = {LUMA_UINT8, LUMA_FLOAT16, LUMA_FLOAT32, LUMA_INT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        orders(dtypes[i]);
        places(dtypes[i], 300, 5);
        places(dtypes[i], 200000, 1);
    }
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
