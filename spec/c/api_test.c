/* api_test.c -- luma.h as programs use it: states, wrapped memory, devices, every operation by name,
** what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

static luma_tensor of_floats(int ndim, const int64_t *shape, const float *values) {
    luma_tensor x = LUMA_NEW;
    OK(luma_empty(S, &x, ndim, shape, LUMA_FLOAT32, "cpu"));
    OK(luma_write(S, &x, values, (size_t)luma_numel(&x) * sizeof *values));
    return x;
}

static bool holds(const luma_tensor *x, int n, const float *values) {
    float have[64] = {0};
    if (luma_numel(x) != n || luma_read(S, x, have, (size_t)n * sizeof *have) != LUMA_OK)
        return false;
    return memcmp(have, values, (size_t)n * sizeof *have) == 0;
}

/* ---- states and devices ---- */

static void test_opening(void) {
    char message[80] = "";
    luma_state *other = luma_open_with(LUMA_OPEN_NO_CUDA, message, sizeof message);
    CHECK(other != NULL && message[0] == '\0');
    CHECK(luma_set_default_device(other, "cuda") == LUMA_ERR_DEVICE);
    CHECK(strstr(luma_message(other), "'cpu'") != NULL);
    luma_close(other);
    luma_close(NULL);
    CHECK(strcmp(luma_message(S), "") == 0 && luma_error_argument(S) == 0);
    CHECK(strcmp(luma_default_device(S), "cpu") == 0);
}

/* A device is there without a word of registering it. */
static void test_devices(void) {
    const int64_t shape[1] = {3};
    const float values[3] = {1, 2, 3};
    luma_tensor x = of_floats(1, shape, values), on = LUMA_NEW, back = LUMA_NEW;
    OK(luma_to_device(S, &on, &x, "cuda:0"));
    CHECK(strcmp(luma_device(&on), "cuda:0") == 0 && strcmp(luma_device(&x), "cpu") == 0);
    OK(luma_add(S, &on, &on, &on));
    OK(luma_synchronize(S, "cuda"));
    OK(luma_to_device(S, &back, &on, "cpu"));
    CHECK(holds(&back, 3, (const float[]){2, 4, 6}));
    OK(luma_to_device(S, &x, &on, "cpu")); /* into what is there */
    CHECK(holds(&x, 3, (const float[]){2, 4, 6}));
    luma_release(S, &back);
    OK(luma_to_device(S, &back, &x, "cpu"));
    CHECK(luma_data(&back) == luma_data(&x)); /* shared */
    const luma_tensor none = LUMA_NEW, number = luma_number(2);
    CHECK(luma_device(&none) == NULL && luma_data(&none) == NULL && luma_data(&number) == NULL);
    FAILS(luma_to_device(S, &on, &x, "cpu"), LUMA_ERR_DEVICE, "out is on cuda:0");
    FAILS(luma_synchronize(S, "moon"), LUMA_ERR_DEVICE, "no device 'moon'");
    luma_release(S, &x);
    luma_release(S, &on);
    luma_release(S, &back);
}

/* ---- memory of the program ---- */

static void count(void *ctx) {
    ++*(int *)ctx;
}

static void test_wrapping(void) {
    float memory[6] = {1, 2, 3, 4, 5, 6};
    int deleted = 0;
    const int64_t shape[2] = {2, 3}, large[1] = {7};
    luma_tensor x = LUMA_NEW, row = LUMA_NEW;
    OK(luma_wrap(S, &x, memory, sizeof memory, 2, shape, LUMA_FLOAT32, count, &deleted));
    CHECK(luma_data(&x) == memory);
    OK(luma_select(S, &row, &x, 0, 1));
    CHECK(luma_data(&row) == memory + 3);
    OK(luma_fill(S, &row, luma_integer(9).number));
    CHECK(memory[2] == 3 && memory[3] == 9 && memory[5] == 9);
    memory[4] = 7;
    CHECK(holds(&row, 3, (const float[]){9, 7, 9}));
    luma_release(S, &x);
    CHECK(deleted == 0); /* a view holds it */
    luma_release(S, &row);
    CHECK(deleted == 1);
    FAILS(luma_wrap(S, &x, memory, sizeof memory, 1, large, LUMA_FLOAT32, count, &deleted),
          LUMA_ERR_SHAPE, "does not fit");
    FAILS(luma_wrap(S, &x, (char *)memory + 1, 4, 0, NULL, LUMA_FLOAT32, count, &deleted),
          LUMA_ERR_ARGUMENT, "aligned");
    CHECK(deleted == 1 && x.storage == NULL);
}

/* ---- by name ---- */

static void test_calling(void) {
    const int64_t shape[2] = {2, 3}, dims[1] = {1};
    const float values[6] = {3, 1, 2, 6, 5, 4};
    luma_tensor x = of_floats(2, shape, values), outs[3] = {LUMA_NEW, LUMA_NEW, LUMA_NEW};
    int n = -1;
    const luma_arg two[] = {luma_arg_tensor(&x), luma_arg_float(2)};
    OK(luma_call(S, "mul", 1, outs, &n, COUNT(two), two));
    CHECK(n == 1 && holds(&outs[0], 6, (const float[]){6, 2, 4, 12, 10, 8}));
    OK(luma_call(S, "add", 1, outs, NULL, COUNT(two), two)); /* into what is there */
    CHECK(holds(&outs[0], 6, (const float[]){5, 3, 4, 8, 7, 6}));
    OK(luma_call(S, "add_", 0, NULL, &n, COUNT(two), two));
    CHECK(n == 0 && holds(&x, 6, (const float[]){5, 3, 4, 8, 7, 6}));
    luma_release(S, &outs[0]);

    const luma_arg sum[] = {luma_arg_named("keepdim", luma_arg_bool(true)), luma_arg_tensor(&x),
                            luma_arg_list(1, dims)};
    OK(luma_call(S, "sum", 1, outs, &n, COUNT(sum), sum));
    CHECK(outs[0].layout.ndim == 2 && holds(&outs[0], 2, (const float[]){12, 21}));
    luma_release(S, &outs[0]);

    const luma_arg sort[] = {luma_arg_tensor(&x), luma_arg_absent(),
                             luma_arg_named("descending", luma_arg_bool(true))};
    OK(luma_call(S, "sort", 2, outs, &n, COUNT(sort), sort));
    int64_t places[6];
    CHECK(n == 2 && holds(&outs[0], 6, (const float[]){5, 4, 3, 8, 7, 6}));
    OK(luma_read(S, &outs[1], places, sizeof places));
    CHECK(places[0] == 0 && places[1] == 2 && places[2] == 1);
    luma_release(S, &outs[0]);
    luma_release(S, &outs[1]);

    const luma_arg pieces[] = {luma_arg_tensor(&x), luma_arg_int(1), luma_arg_int(1)};
    OK(luma_call(S, "split", 3, outs, &n, COUNT(pieces), pieces));
    CHECK(n == 3 && holds(&outs[2], 2, (const float[]){4, 6}));
    const luma_arg joined[] = {luma_arg_tensors(3, outs), luma_arg_int(1)};
    luma_tensor back = LUMA_NEW;
    OK(luma_call(S, "cat", 1, &back, &n, COUNT(joined), joined));
    const luma_arg both[] = {luma_arg_tensor(&x), luma_arg_tensor(&back)};
    luma_tensor same = LUMA_NEW;
    OK(luma_call(S, "equal", 1, &same, &n, COUNT(both), both));
    CHECK(n == 1 && same.storage == NULL && same.number.kind == LUMA_IS_BOOL && same.number.u.i);
    CHECK(luma_call(S, "equal", 1, &back, &n, COUNT(both), both) == LUMA_ERR_ARGUMENT);
    CHECK(back.storage && strstr(luma_message(S), "no tensor"));
    for (int i = 0; i < 3; i++)
        luma_release(S, &outs[i]);
    luma_release(S, &back);
    luma_release(S, &x);
}

/* What makes tensors, by function. */
static void test_making(void) {
    const int64_t shape[2] = {2, 3};
    luma_tensor x = LUMA_NEW, y = LUMA_NEW;
    luma_list grid;
    OK(luma_ones(S, &x, 2, shape, LUMA_NDTYPES, NULL));
    CHECK(x.dtype == LUMA_FLOAT32 && holds(&x, 6, (const float[]){1, 1, 1, 1, 1, 1}));
    OK(luma_zeros(S, &x, 2, shape, LUMA_FLOAT32, "cpu")); /* into what is there */
    CHECK(holds(&x, 6, (const float[]){0, 0, 0, 0, 0, 0}));
    luma_release(S, &x);
    OK(luma_eye(S, &x, 2, 3, LUMA_FLOAT32, "cuda:0"));
    OK(luma_to_device(S, &y, &x, "cpu"));
    CHECK(holds(&y, 6, (const float[]){1, 0, 0, 0, 1, 0}));
    OK(luma_eye(S, &y, 2, 3, LUMA_FLOAT32, "cpu"));
    luma_release(S, &x);
    OK(luma_triu(S, &x, &y, 1));
    CHECK(holds(&x, 6, (const float[]){0, 0, 0, 0, 0, 0}));
    luma_release(S, &x);
    luma_release(S, &y);
    OK(luma_range(S, &x, luma_integer(1).number, luma_integer(7).number, luma_integer(3).number,
                  LUMA_NDTYPES, NULL));
    CHECK(x.dtype == LUMA_INT64 && luma_numel(&x) == 3 && ((int64_t *)luma_data(&x))[2] == 7);
    OK(luma_full_like(S, &y, &x, luma_integer(4).number, LUMA_NDTYPES, NULL));
    CHECK(y.dtype == LUMA_INT64 && ((int64_t *)luma_data(&y))[2] == 4);
    FAILS(luma_full_like(S, &y, &x, luma_number(0.5).number, LUMA_NDTYPES, NULL), LUMA_ERR_DTYPE,
          "0.5 does not fit into int64");
    luma_release(S, &y);
    OK(luma_diag(S, &y, &x, -1));
    CHECK(y.layout.shape[0] == 4 && ((int64_t *)luma_data(&y))[4] == 1);
    const luma_tensor both[2] = {x, x};
    OK(luma_meshgrid(S, &grid, 2, both, false));
    CHECK(grid.n == 2 && grid.items[0].layout.stride[1] == 0);
    luma_close_list(S, &grid);
    luma_release(S, &x);
    OK(luma_linspace(S, &x, 0, 1, 5, LUMA_NDTYPES, "cuda"));
    luma_release(S, &y);
    OK(luma_to_device(S, &y, &x, "cpu"));
    CHECK(holds(&y, 5, (const float[]){0, 0.25f, 0.5f, 0.75f, 1}));
    luma_release(S, &x);
    luma_release(S, &y);
    OK(luma_logspace(S, &x, 0, 2, 3, 10, LUMA_NDTYPES, NULL));
    CHECK(holds(&x, 3, (const float[]){1, 10, 100}));
    FAILS(luma_linspace(S, &y, 0, 1, -1, LUMA_NDTYPES, NULL), LUMA_ERR_SHAPE, "negative: -1");
    FAILS(luma_linspace(S, &y, 0, 1, 2, LUMA_INT8, NULL), LUMA_ERR_DTYPE, "a float dtype");
    FAILS(luma_range(S, &y, luma_integer(1).number, luma_integer(2).number, luma_integer(0).number,
                     LUMA_NDTYPES, NULL),
          LUMA_ERR_ARGUMENT, "step is zero");
    FAILS(luma_range(S, &y, luma_integer(1).number, luma_integer(300).number,
                     luma_integer(1).number, LUMA_UINT8, NULL),
          LUMA_ERR_DTYPE, "300 does not fit into uint8");
    CHECK(luma_error_argument(S) == 2);
    FAILS(luma_eye(S, &y, 2, -3, LUMA_NDTYPES, NULL), LUMA_ERR_SHAPE, "negative: -3");
    FAILS(luma_zeros(S, &y, -1, NULL, LUMA_FLOAT32, NULL), LUMA_ERR_SHAPE, "-1 dims");
    FAILS(luma_empty(S, &y, 2, shape, (luma_dtype)77, NULL), LUMA_ERR_ARGUMENT, "number 77");
    FAILS(luma_tril(S, &y, &x, 0), LUMA_ERR_SHAPE, "at least 2 dims");
    CHECK(y.storage == NULL);
    luma_release(S, &x);
}

/* LUMA_NEW, or a number where none is taken, is an error and nothing else. */
static void test_no_tensors(void) {
    const int64_t shape[2] = {2, 2}, dims[1] = {0};
    const luma_tensor nine = luma_number(9);
    luma_tensor good = LUMA_NEW, outs[2] = {LUMA_NEW, LUMA_NEW};
    luma_list list;
    luma_scalar value;
    bool flag;
    char bytes[16] = {0};
    OK(luma_ones(S, &good, 2, shape, LUMA_FLOAT32, "cpu"));
#define TRY(name, ...)                                                                             \
    do {                                                                                           \
        luma_status status = luma_##name(S, __VA_ARGS__);                                          \
        if (status == LUMA_OK &&                                                                   \
            !(number && strstr(" neg add clamp isnan eq copy allclose ", " " #name " ")))          \
            printf("%s\n", #name), failures++;                                                     \
        luma_release(S, &outs[0]);                                                                 \
        checks++;                                                                                  \
    } while (0)
    for (int number = 0; number < 2; number++) {
        luma_tensor none = number ? nine : LUMA_NEW, *x = &none;
        TRY(neg, outs, x);
        TRY(add, outs, x, &good);
        TRY(add, outs, &good, x);
        TRY(where, outs, x, &good, &good);
        TRY(clamp, outs, x, nine.number, nine.number);
        TRY(isnan, outs, x);
        TRY(eq, outs, x, &good);
        TRY(sum, outs, x, 0, NULL, false);
        TRY(argmax, outs, x, 0, NULL, false);
        TRY(var, outs, x, 0, NULL, false);
        TRY(view, outs, x, 2, shape);
        TRY(squeeze, outs, x, 0, NULL);
        TRY(unsqueeze, outs, x, 0);
        TRY(transpose, outs, x, 0, 1);
        TRY(t, outs, x);
        TRY(permute, outs, x, 1, dims);
        TRY(select, outs, x, 0, 0);
        TRY(narrow, outs, x, 0, 0, 1);
        TRY(slice, outs, x, 0, 0, 1, 1);
        TRY(expand, outs, x, 2, shape);
        TRY(diagonal, outs, x, 0, 0, 1);
        TRY(flip, outs, x, 1, dims);
        TRY(as_strided, outs, x, 1, dims, dims, 0);
        TRY(detach, outs, x);
        TRY(split, &list, x, 1, shape, 0);
        TRY(chunk, &list, x, 2, 0);
        TRY(unbind, &list, x, 0);
        TRY(reshape, outs, x, 2, shape);
        TRY(flatten, outs, x, 0, -1);
        TRY(contiguous, outs, x);
        TRY(clone, outs, x);
        TRY(cat, outs, 1, x, 0);
        TRY(stack, outs, 1, x, 0);
        TRY(tile, outs, x, 1, shape);
        TRY(roll, outs, x, 1, shape, 0, NULL);
        TRY(pad, outs, x, 2, shape, nine.number);
        TRY(masked_fill, outs, x, &good, &nine);
        TRY(slice_set, outs, x, &good, 0, 0);
        TRY(slice_set, outs, &good, x, 0, 0);
        TRY(to_dtype, outs, x, LUMA_INT8);
        TRY(to_device, outs, x, "cpu");
        TRY(copy, x, &good);
        TRY(copy, &good, x);
        TRY(fill, x, nine.number);
        TRY(index_select, outs, x, 0, &good);
        TRY(index_select, outs, &good, 0, x);
        TRY(gather, outs, x, 0, &good);
        TRY(take, outs, &good, x);
        TRY(masked_select, outs, &good, x);
        TRY(nonzero, outs, x);
        TRY(scatter, outs, &good, 0, x, &good);
        TRY(index_add, outs, &good, 0, x, &good);
        TRY(max, outs, false, 0, false, x);
        TRY(sort, outs, x, 0, false);
        TRY(argsort, outs, x, 0, false);
        TRY(topk, outs, x, 1, 0, true);
        TRY(cumsum, outs, x, 0);
        TRY(softmax, outs, x, 0);
        TRY(matmul, outs, x, &good);
        TRY(matmul, outs, &good, x);
        TRY(mm, outs, &good, x);
        TRY(bmm, outs, &good, x);
        TRY(mv, outs, &good, x);
        TRY(dot, outs, &good, x);
        TRY(equal, &flag, x, &good);
        TRY(allclose, &flag, &good, x, 0, 0, false);
        TRY(item, x, &value);
        TRY(read, x, bytes, 4);
        TRY(write, x, bytes, 4);
        TRY(rand, x);
        TRY(randperm, x);
        TRY(bernoulli, outs, x);
        TRY(multinomial, outs, x, 1, true);
        TRY(tril, outs, x, 0);
        TRY(diag, outs, x, 0);
        TRY(meshgrid, &list, 1, x, false);
        TRY(empty_like, outs, x, LUMA_NDTYPES, NULL);
        TRY(full_like, outs, x, nine.number, LUMA_NDTYPES, NULL);
        TRY(record_stream, x, "cpu", NULL);
        TRY(save, "/nowhere/x.npy", 1, NULL, x, false, 0, NULL);
    }
#undef TRY
    luma_release(S, &good);
}

static void test_refusing(void) {
    const int64_t shape[1] = {3};
    luma_tensor x = of_floats(1, shape, (const float[]){1, 2, 3}), none = LUMA_NEW;
    luma_tensor outs[2] = {LUMA_NEW, LUMA_NEW};
    const luma_arg one[] = {luma_arg_tensor(&x)}, number[] = {luma_arg_int(1)};
    const luma_arg dead[] = {luma_arg_tensor(&none)}, null[] = {luma_arg_tensor(NULL)};
    const luma_arg three[] = {one[0], one[0], one[0]};
    const luma_arg real[] = {one[0], luma_arg_float(0)};
    const luma_arg twice[] = {one[0], luma_arg_int(0), luma_arg_named("dims", luma_arg_int(0))};
    const luma_arg typo[] = {one[0], luma_arg_named("keepdims", luma_arg_bool(true))};
    const luma_arg weak[] = {luma_arg_float(1), luma_arg_float(2)};
    const luma_arg pieces[] = {one[0], luma_arg_int(1)};
    const luma_arg list[] = {luma_arg_tensors(1, &none)};
    int n = 7;
#define CALL(name, room, args) luma_call(S, name, room, outs, &n, COUNT(args), args)
    FAILS(CALL("frobnicate", 1, one), LUMA_ERR_ARGUMENT, "no operation 'frobnicate'");
    FAILS(CALL("", 1, one), LUMA_ERR_ARGUMENT, "no operation ''");
    FAILS(CALL(NULL, 1, one), LUMA_ERR_ARGUMENT, "no operation");
    FAILS(CALL("frombytes", 1, one), LUMA_ERR_UNSUPPORTED, "frombytes is not called by name");
    const luma_arg strange[] = {luma_arg_int(3), luma_arg_named("dtype", luma_arg_text("f31"))};
    FAILS(CALL("zeros", 1, strange), LUMA_ERR_DTYPE, "no dtype 'f31'");
    const luma_arg mixed[] = {luma_arg_int(3), luma_arg_named("device", luma_arg_int(1))};
    FAILS(CALL("zeros", 1, mixed), LUMA_ERR_ARGUMENT, "device: a text expected, got a number");
    FAILS(CALL("sum_", 1, one), LUMA_ERR_UNSUPPORTED, "no in-place form");
    FAILS(CALL("neg", 1, dead), LUMA_ERR_ARGUMENT, "x: a live tensor expected");
    FAILS(CALL("neg", 1, null), LUMA_ERR_ARGUMENT, "x: a live tensor expected");
    FAILS(CALL("neg", 1, number), LUMA_ERR_ARGUMENT, "x: a tensor expected, got a number");
    FAILS(CALL("add", 1, one), LUMA_ERR_ARGUMENT, "y is missing");
    CHECK(luma_error_argument(S) == 2);
    FAILS(CALL("add", 1, three), LUMA_ERR_ARGUMENT, "has no argument");
    FAILS(CALL("unsqueeze", 1, real), LUMA_ERR_ARGUMENT, "dim: an integer expected");
    FAILS(CALL("sum", 1, real), LUMA_ERR_ARGUMENT, "dims: a list of integers expected");
    FAILS(CALL("sum", 1, twice), LUMA_ERR_ARGUMENT, "dims is given twice");
    FAILS(CALL("sum", 1, typo), LUMA_ERR_ARGUMENT, "keepdims");
    FAILS(CALL("add_", 1, weak), LUMA_ERR_ARGUMENT, "x: a live tensor expected");
    FAILS(CALL("sort", 1, one), LUMA_ERR_ARGUMENT, "2 results, and room for 1");
    FAILS(CALL("split", 2, pieces), LUMA_ERR_ARGUMENT, "3 results, and room for 2");
    FAILS(CALL("cat", 1, list), LUMA_ERR_ARGUMENT, "number 0 is no live tensor");
    FAILS(CALL("split", 1, real), LUMA_ERR_ARGUMENT, "size: a list of integers expected");
    CHECK(n == 7 && outs[0].storage == NULL && outs[1].storage == NULL);
    luma_release(S, &x);
}

/* An argument for a parameter of this type, in terms of a (3, 3) float tensor and what goes with it. */
static luma_arg some(const char *name, const char *type, const luma_tensor *x,
                     const luma_tensor *index, const luma_tensor *mask) {
    static const int64_t square[2] = {3, 3}, order[2] = {1, 0}, lines[4] = {1, 1, 1, 1};
    if (strcmp(type, "") == 0 || strcmp(type, "operand") == 0) return luma_arg_tensor(x);
    if (strcmp(type, "index") == 0) return luma_arg_tensor(index);
    if (strcmp(type, "mask") == 0) return luma_arg_tensor(mask);
    if (strcmp(type, "tensors") == 0) return luma_arg_tensors(1, x);
    if (strcmp(type, "number") == 0) return luma_arg_float(0.5);
    if (strcmp(type, "bool") == 0) return luma_arg_bool(true);
    if (strcmp(type, "sizes") == 0) return luma_arg_int(1);
    if (strcmp(type, "dtype") == 0) return luma_arg_text(x->dtype == LUMA_INT32 ? "i32" : "f32");
    if (strcmp(type, "device") == 0) return luma_arg_text("cpu");
    if (strcmp(name, "widths") == 0) return luma_arg_list(4, lines);
    if (strcmp(name, "stride") == 0) return luma_arg_list(2, lines);
    if (strcmp(name, "shifts") == 0) return luma_arg_list(1, lines);
    if (strcmp(type, "list") == 0 || (strcmp(type, "shape") == 0 && strcmp(name, "dims") != 0))
        return luma_arg_list(2, square);
    if (strcmp(type, "shape") == 0) return luma_arg_list(2, order);
    if (strcmp(type, "dims") == 0) return luma_arg_int(1);
    if (strcmp(name, "dim1") == 0) return luma_arg_int(1);
    if (strcmp(name, "size") == 0 || strcmp(name, "length") == 0 || strcmp(name, "step") == 0 ||
        strcmp(name, "k") == 0 || strcmp(name, "n") == 0 || strcmp(name, "last") == 0)
        return luma_arg_int(1);
    return luma_arg_int(0);
}

/* Reads one parameter of a signature: its name and type; the rest of it, or NULL. */
static const char *next_param(const char *s, char name[16], char type[16]) {
    s += strspn(s, "{}, ?");
    size_t n = strcspn(s, ":?,} ");
    if (n == 0) return NULL;
    snprintf(name, 16, "%.*s", (int)n, s);
    s += n;
    n = *s == ':' ? strcspn(++s, "?,} ") : 0;
    snprintf(type, 16, "%.*s", (int)n, s);
    return s + n;
}

/* Every operation runs by its name with all of its parameters named. */
static void test_every_name(void) {
    const int64_t shape[2] = {3, 3}, numbers[9] = {0, 1, 2, 1, 0, 2, 2, 1, 0};
    const float values[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    luma_tensor x = of_floats(2, shape, values), v = LUMA_NEW, index = LUMA_NEW, mask = LUMA_NEW;
    luma_tensor place = LUMA_NEW, stack = LUMA_NEW, ints = LUMA_NEW, share = LUMA_NEW;
    const luma_tensor tenth = luma_number(0.1);
    OK(luma_mul(S, &share, &x, &tenth));
    OK(luma_empty(S, &index, 2, shape, LUMA_INT64, "cpu"));
    OK(luma_write(S, &index, numbers, sizeof numbers));
    OK(luma_select(S, &place, &index, 0, 0));
    OK(luma_gt(S, &mask, &x, &(const luma_tensor){.number = luma_integer(3).number}));
    OK(luma_select(S, &v, &x, 0, 0));
    OK(luma_unsqueeze(S, &stack, &x, 0));
    OK(luma_to_dtype(S, &ints, &x, LUMA_INT32));
    luma_op op;
    int called = 0, made = 0, i = 0;
    for (; luma_describe(i, &op); i++) {
        char names[8][16], type[16];
        luma_arg args[8];
        luma_tensor outs[8] = {LUMA_NEW};
        const luma_tensor *input = &x, *where = &index;
        int n = 0, nouts = 0;
        CHECK(op.name[0] && op.doc[0] && op.callable == (op.signature[0] != '\0'));
        if (!op.callable) {
            CHECK(!op.in_place);
            made++;
            continue;
        }
        if (strcmp(op.name, "dot") == 0 || strcmp(op.name, "meshgrid") == 0) input = &v;
        if (strcmp(op.name, "bernoulli") == 0) input = &share;
        if (strcmp(op.name, "bmm") == 0) input = &stack;
        if (strstr(op.name, "bitwise") || strstr(op.name, "shift") || strstr(op.name, "randp"))
            input = &ints;
        if (strncmp(op.name, "index_", 6) == 0) where = &place;
        for (const char *s = op.signature; n < 8 && (s = next_param(s, names[n], type)); n++) {
            const luma_tensor *t = input;
            if (strcmp(op.name, "mv") == 0 && n == 1) t = &v;
            if (strcmp(op.name, "where") == 0 && n == 0) t = &mask;
            args[n] = luma_arg_named(names[n], some(names[n], type, t, where, &mask));
            if (strcmp(op.name, "view") == 0 || strcmp(op.name, "unflatten") == 0) {
                static const int64_t three[2] = {3, 1}, nine[1] = {9};
                if (n > 0 && args[n].kind == LUMA_ARG_LIST)
                    args[n] = luma_arg_named(names[n], op.name[0] == 'v' ? luma_arg_list(1, nine)
                                                                         : luma_arg_list(2, three));
            }
        }
        luma_status status = luma_call(S, op.name, 8, outs, &nouts, n, args);
        /* many want tensors of shapes of their own, and say so */
        bool refused = status == LUMA_ERR_SHAPE || status == LUMA_ERR_DTYPE ||
                       status == LUMA_ERR_INDEX || status == LUMA_ERR_ARGUMENT;
        if (status != LUMA_OK && !refused) printf("%s: %s\n", op.name, luma_message(S));
        CHECK(status == LUMA_OK ? nouts > 0 : refused && luma_message(S)[0]);
        if (status == LUMA_OK) called++;
        for (int k = 0; k < nouts; k++)
            luma_release(S, &outs[k]);
    }
    CHECK(called > 130 && made == 2 && !luma_describe(-1, &op) && !luma_describe(i, &op));
    luma_tensor *all[] = {&x, &v, &index, &mask, &place, &stack, &ints, &share};
    for (int k = 0; k < COUNT(all); k++)
        luma_release(S, all[k]);
}

int main(void) {
    setenv("LUMA_CUDA", "emulate", 1);
    S = luma_open();
    if (!S) return 1;
    test_opening();
    test_devices();
    test_wrapping();
    test_calling();
    test_making();
    test_no_tensors();
    test_refusing();
    test_every_name();
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
