/* numbers.c -- a program that computes with luma's C API, as C and as C++. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <luma.h>

static luma_state *S;
static int deleted;

static void must(luma_status status, const char *what) {
    if (status == LUMA_OK) return;
    fprintf(stderr, "%s: %s\n", what, luma_message(S));
    exit(1);
}
#define MUST(call) must((call), #call)

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}
#define EXPECT(condition) expect((condition), #condition)

static void count_deletion(void *ctx) {
    *(int *)ctx += 1;
}

/* The same on any device: x * x + 1, its sum. */
static void compute(const char *device) {
    const int64_t shape[2] = {2, 3};
    float memory[6] = {1, 2, 3, 4, 5, 6}, out[6];
    double sum[1];
    luma_tensor wrapped = LUMA_NEW, x = LUMA_NEW, y = LUMA_NEW, total = LUMA_NEW;
    const luma_tensor one = luma_integer(1);
    deleted = 0;
    MUST(luma_wrap(S, &wrapped, memory, sizeof memory, 2, shape, LUMA_FLOAT32, count_deletion,
                   &deleted));
    MUST(luma_empty(S, &x, 2, shape, LUMA_FLOAT32, device));
    MUST(luma_copy(S, &x, &wrapped));
    luma_release(S, &wrapped);
    EXPECT(deleted == 1);
    MUST(luma_mul(S, &y, &x, &x));
    MUST(luma_add(S, &y, &y, &one));
    MUST(luma_read(S, &y, out, sizeof out));
    EXPECT(out[0] == 2 && out[5] == 37);
    luma_release(S, &y);
    MUST(luma_to_dtype(S, &y, &x, LUMA_FLOAT64));
    MUST(luma_sum(S, &total, &y, 0, NULL, false));
    MUST(luma_read(S, &total, sum, sizeof sum));
    EXPECT(sum[0] == 21);
    luma_release(S, &x);
    luma_release(S, &y);
    luma_release(S, &total);
}

static void fail(void) {
    const int64_t two[1] = {2}, three[1] = {3};
    luma_tensor a = LUMA_NEW, b = LUMA_NEW, c = LUMA_NEW;
    MUST(luma_empty(S, &a, 1, two, LUMA_FLOAT32, NULL));
    MUST(luma_empty(S, &b, 1, three, LUMA_FLOAT32, NULL));
    EXPECT(luma_add(S, &c, &a, &b) == LUMA_ERR_SHAPE);
    EXPECT(strstr(luma_message(S), "2") != NULL && c.storage == NULL);
    luma_release(S, &a);
    luma_release(S, &b);
}

int main(void) {
    char message[200] = "";
    setenv("LUMA_CUDA", "emulate", 1);
    S = luma_open();
    EXPECT(S != NULL);
    compute("cpu");
    compute("cuda:0");
    fail();
    luma_close(S);
    S = luma_open_with(LUMA_OPEN_NO_CUDA, message, sizeof message);
    EXPECT(S != NULL);
    EXPECT(luma_set_default_device(S, "cuda") == LUMA_ERR_DEVICE);
    luma_close(S);
    puts("numbers: ok");
    return 0;
}
