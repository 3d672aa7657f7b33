/* dlpack_test.c -- tensors handed to others and taken from them: every dtype and layout, devices,
** who deletes what and when, in other threads, after states are closed. */
#include "dlpack.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor.h"

#include "calls.h"

typedef struct DLManagedTensor managed;
typedef struct DLManagedTensorVersioned versioned;

static luma_tensor counted(luma_state *state, int ndim, const int64_t *shape, const char *device) {
    luma_tensor host = LUMA_NEW, x = LUMA_NEW;
    CHECK(luma_empty(state, &host, ndim, shape, LUMA_FLOAT32, "cpu") == LUMA_OK);
    for (int64_t i = 0; i < luma_numel(&host); i++)
        ((float *)luma_data(&host))[i] = (float)i;
    CHECK(luma_to_device(state, &x, &host, device) == LUMA_OK);
    luma_release(state, &host);
    return x;
}

static int64_t live(luma_state *state) {
    return state->devices[0]->live;
}

/* ---- out ---- */

static void test_every_dtype(void) {
    static const lm_dl_dtype want[LUMA_NDTYPES] = {{6, 8, 1},  {1, 8, 1},  {0, 8, 1},  {0, 16, 1},
                                                   {0, 32, 1}, {1, 32, 1}, {0, 64, 1}, {10, 8, 1},
                                                   {2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}};
    const int64_t shape[2] = {2, 3};
    for (int dtype = 0; dtype < LUMA_NDTYPES; dtype++) {
        luma_tensor x = LUMA_NEW, y = LUMA_NEW;
        managed *m = NULL;
        OK(luma_full(S, &x, 2, shape, luma_integer(1).number, (luma_dtype)dtype, "cpu"));
        OK(luma_to_dlpack(S, &m, &x));
        CHECK(memcmp(&m->tensor.dtype, &want[dtype], sizeof want[dtype]) == 0);
        CHECK(m->tensor.device.type == LM_DL_CPU && m->tensor.device.id == 0);
        CHECK(m->tensor.data == luma_data(&x) && m->tensor.byte_offset == 0);
        OK(luma_from_dlpack(S, &y, m));
        CHECK(y.storage == x.storage && y.dtype == x.dtype);
        luma_release(S, &x);
        luma_release(S, &y);
    }
    luma_empty_cache(S, "cpu");
    CHECK(live(S) == 0);
}

static void test_layouts(void) {
    const int64_t shape[2] = {2, 3}, none[2] = {0, 3};
    luma_tensor x = counted(S, 2, shape, "cpu"), t = LUMA_NEW, step = LUMA_NEW, one = LUMA_NEW;
    managed *m;
    OK(luma_t(S, &t, &x));
    OK(luma_to_dlpack(S, &m, &t));
    CHECK(m->tensor.ndim == 2 && m->tensor.shape[0] == 3 && m->tensor.shape[1] == 2);
    CHECK(m->tensor.strides[0] == 1 && m->tensor.strides[1] == 3);
    m->deleter(m);
    OK(luma_slice(S, &step, &x, 1, 2, 2, -2)); /* columns 2 and 0 */
    OK(luma_to_dlpack(S, &m, &step));
    CHECK(m->tensor.data == (float *)luma_data(&x) + 2 && m->tensor.strides[1] == -2);
    m->deleter(m);
    OK(luma_select(S, &one, &x, 0, 1));
    luma_release(S, &t);
    OK(luma_select(S, &t, &one, 0, 2));
    OK(luma_to_dlpack(S, &m, &t));
    CHECK(m->tensor.ndim == 0 && *(float *)m->tensor.data == 5);
    m->deleter(m);
    luma_release(S, &t);
    OK(luma_empty(S, &t, 2, none, LUMA_FLOAT32, "cpu"));
    OK(luma_to_dlpack(S, &m, &t));
    CHECK(m->tensor.data == NULL && m->tensor.shape[0] == 0);
    m->deleter(m);
    luma_release(S, &t);
    luma_release(S, &one);
    luma_release(S, &step);
    luma_release(S, &x);
}

static void test_refused_exports(void) {
    const luma_tensor none = LUMA_NEW, number = luma_number(1);
    managed *m = NULL;
    FAILS(luma_to_dlpack(S, &m, &none), LUMA_ERR_ARGUMENT, "live tensor");
    FAILS(luma_to_dlpack(S, &m, &number), LUMA_ERR_ARGUMENT, "live tensor");
    CHECK(m == NULL);
}

/* ---- in ---- */

typedef struct {
    union {
        managed old;
        versioned new;
    } m;
    int deleted;
    float data[6];
    int64_t shape[LUMA_MAX_DIMS + 1], strides[LUMA_MAX_DIMS + 1];
} theirs;

static void delete_theirs(managed *m) {
    ++((theirs *)m->ctx)->deleted;
}

static void delete_theirs_versioned(versioned *m) {
    ++((theirs *)m->ctx)->deleted;
}

/* (2, 3) of 0 .. 5 */
static lm_dl_tensor *fill_theirs(theirs *t) {
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 6; i++)
        t->data[i] = (float)i;
    t->shape[0] = 2;
    t->shape[1] = t->strides[0] = 3;
    t->strides[1] = 1;
    t->m.old = (managed){.tensor = {.data = t->data,
                                    .device = {LM_DL_CPU, 0},
                                    .ndim = 2,
                                    .dtype = {2, 32, 1},
                                    .shape = t->shape,
                                    .strides = t->strides},
                         .ctx = t,
                         .deleter = delete_theirs};
    return &t->m.old.tensor;
}

static void fill_versioned(theirs *t) {
    lm_dl_tensor tensor = *fill_theirs(t);
    t->m.new = (versioned){
        .version = {1, 1}, .ctx = t, .deleter = delete_theirs_versioned, .tensor = tensor};
}

static double sum_of(const luma_tensor *x) {
    luma_tensor total = LUMA_NEW;
    luma_scalar value = {0};
    OK(luma_sum(S, &total, x, 0, NULL, false));
    OK(luma_item(S, &total, &value));
    luma_release(S, &total);
    return value.u.d;
}

static void test_taking(void) {
    theirs t;
    luma_tensor x = LUMA_NEW, row = LUMA_NEW;
    fill_theirs(&t);
    OK(luma_from_dlpack(S, &x, &t.m.old));
    CHECK(luma_data(&x) == t.data && x.dtype == LUMA_FLOAT32 && sum_of(&x) == 15);
    OK(luma_select(S, &row, &x, 0, 1));
    luma_release(S, &x);
    CHECK(t.deleted == 0);
    OK(luma_fill(S, &row, luma_integer(9).number));
    CHECK(t.data[2] == 2 && t.data[3] == 9);
    luma_release(S, &row);
    CHECK(t.deleted == 1);

    lm_dl_tensor *d = fill_theirs(&t); /* without strides, from the third on, without a deleter */
    d->strides = NULL;
    d->byte_offset = 8;
    t.shape[1] = 2;
    t.m.old.deleter = NULL;
    OK(luma_from_dlpack(S, &x, &t.m.old));
    CHECK(luma_data(&x) == t.data + 2 && sum_of(&x) == 14);
    luma_release(S, &x);

    d = fill_theirs(&t); /* backwards, transposed */
    d->data = t.data + 5;
    t.shape[0] = 3;
    t.shape[1] = 2;
    t.strides[0] = -1;
    t.strides[1] = -3;
    OK(luma_from_dlpack(S, &x, &t.m.old));
    CHECK(luma_data(&x) == t.data + 5 && sum_of(&x) == 15);
    float first[6];
    OK(luma_read(S, &x, first, sizeof first));
    CHECK(first[0] == 5 && first[1] == 2 && first[2] == 4 && first[5] == 0);
    luma_release(S, &x);
    CHECK(t.deleted == 1);

    d = fill_theirs(&t); /* 0-d, empty */
    d->ndim = 0;
    d->shape = d->strides = NULL;
    OK(luma_from_dlpack(S, &x, &t.m.old));
    CHECK(x.layout.ndim == 0 && luma_numel(&x) == 1);
    luma_release(S, &x);
    d = fill_theirs(&t);
    d->data = NULL;
    t.shape[1] = 0;
    OK(luma_from_dlpack(S, &x, &t.m.old));
    CHECK(luma_numel(&x) == 0 && sum_of(&x) == 0);
    luma_release(S, &x);
    CHECK(t.deleted == 1);
}

/* A read-only tensor is copied, and at once given up. */
static void test_versions(void) {
    theirs t;
    luma_tensor x = LUMA_NEW;
    versioned *m = NULL;
    fill_versioned(&t);
    OK(luma_from_dlpack_versioned(S, &x, &t.m.new));
    CHECK(luma_data(&x) == t.data && t.deleted == 0);
    luma_release(S, &x);
    CHECK(t.deleted == 1);
    fill_versioned(&t);
    t.m.new.flags = LM_DL_READ_ONLY;
    OK(luma_from_dlpack_versioned(S, &x, &t.m.new));
    CHECK(luma_data(&x) != t.data && t.deleted == 1 && sum_of(&x) == 15);
    luma_release(S, &x);
    fill_versioned(&t); /* no memory for the copy */
    t.m.new.flags = LM_DL_READ_ONLY;
    S->fail_after = 1;
    FAILS(luma_from_dlpack_versioned(S, &x, &t.m.new), LUMA_ERR_MEMORY, "memory");
    CHECK(t.deleted == 0 && x.storage == NULL);
    S->fail_after = -1;
    t.m.new.version.major = 2;
    FAILS(luma_from_dlpack_versioned(S, &x, &t.m.new), LUMA_ERR_UNSUPPORTED, "DLPack 2.1");
    CHECK(t.deleted == 0);

    const int64_t shape[1] = {4};
    x = counted(S, 1, shape, "cpu");
    OK(luma_to_dlpack_versioned(S, &m, &x));
    CHECK(m->version.major == 1 && m->flags == 0 && m->tensor.data == luma_data(&x));
    luma_tensor y = LUMA_NEW;
    OK(luma_from_dlpack_versioned(S, &y, m));
    CHECK(y.storage == x.storage);
    luma_release(S, &x);
    luma_release(S, &y);
}

static void test_refused_imports(void) {
    theirs t;
    luma_tensor x = LUMA_NEW;
    lm_dl_tensor *d;
#define REFUSED(change, status, part)                                                              \
    do {                                                                                           \
        d = fill_theirs(&t);                                                                       \
        change;                                                                                    \
        FAILS(luma_from_dlpack(S, &x, &t.m.old), status, part);                                    \
        CHECK(x.storage == NULL && t.deleted == 0);                                                \
    } while (0)
    FAILS(luma_from_dlpack(S, &x, NULL), LUMA_ERR_ARGUMENT, "got NULL");
    FAILS(luma_from_dlpack_versioned(S, &x, NULL), LUMA_ERR_ARGUMENT, "got NULL");
    REFUSED(d->dtype = ((lm_dl_dtype){1, 16, 1}), LUMA_ERR_DTYPE, "uint16");
    REFUSED(d->dtype = ((lm_dl_dtype){5, 64, 1}), LUMA_ERR_DTYPE, "complex64");
    REFUSED(d->dtype = ((lm_dl_dtype){2, 32, 4}), LUMA_ERR_DTYPE, "float32x4");
    REFUSED(d->dtype = ((lm_dl_dtype){12, 8, 1}), LUMA_ERR_DTYPE, "code12:8");
    REFUSED(d->device.type = 8, LUMA_ERR_DEVICE, "DLPack's type 8");
    REFUSED((d->device.type = LM_DL_CUDA, d->device.id = 99), LUMA_ERR_DEVICE, "cuda:99");
    REFUSED(d->ndim = -1, LUMA_ERR_SHAPE, "-1 dims");
    REFUSED(d->ndim = LUMA_MAX_DIMS + 1, LUMA_ERR_SHAPE, "9 dims");
    REFUSED(d->shape = NULL, LUMA_ERR_ARGUMENT, "without shape");
    REFUSED(t.shape[0] = -2, LUMA_ERR_SHAPE, "negative size in shape [-2 x 3]");
    REFUSED(t.shape[0] = INT64_MAX, LUMA_ERR_SHAPE, "too large");
    REFUSED(t.strides[0] = INT64_MAX, LUMA_ERR_SHAPE, "strides");
    REFUSED(t.strides[0] = INT64_MIN, LUMA_ERR_SHAPE, "strides");
    REFUSED(d->data = NULL, LUMA_ERR_ARGUMENT, "without memory");
    REFUSED(d->byte_offset = 2, LUMA_ERR_ARGUMENT, "not aligned");
    REFUSED(S->fail_after = 0, LUMA_ERR_MEMORY, "memory");
    S->fail_after = -1;
}

/* ---- mistakes with what luma gave out ---- */

static void test_taken_twice(void) {
    const int64_t shape[1] = {8};
    luma_tensor x = counted(S, 1, shape, "cpu"), y = LUMA_NEW, z = LUMA_NEW;
    luma_state *other = luma_open();
    managed *m = NULL;
    OK(luma_to_dlpack(S, &m, &x));
    CHECK(lm_exports_find(S, m) == LM_HANDLE_OLD && lm_exports_find(other, m) == LM_HANDLE_FOREIGN);
    OK(luma_from_dlpack(S, &y, m));
    FAILS(luma_from_dlpack(S, &z, m), LUMA_ERR_ARGUMENT, "taken already");
    CHECK(lm_exports_find(S, m) == LM_HANDLE_SPENT);
    luma_release(S, &y);
    FAILS(luma_from_dlpack(S, &z, m), LUMA_ERR_ARGUMENT, "taken already");
    m->deleter(m); /* nobody's any more: nothing */
    m->deleter(m);
    CHECK(luma_numel(&x) == 8 && sum_of(&x) == 28);

    OK(luma_to_dlpack(S, &m, &x));
    CHECK(luma_from_dlpack(other, &y, m) == LUMA_OK);
    CHECK(luma_data(&y) == luma_data(&x) && y.storage != x.storage);
    FAILS(luma_from_dlpack(S, &z, m), LUMA_ERR_ARGUMENT, "taken already");
    luma_release(other, &y);
    luma_close(other);
    luma_release(S, &x);
    luma_empty_cache(S, "cpu");
    CHECK(live(S) == 0);
}

/* ---- other threads, closed states ---- */

static void *delete_in_thread(void *m) {
    ((managed *)m)->deleter(m);
    return NULL;
}

/* What was given back is released by the thread of the state, at its next allocation. */
static void test_threads(void) {
    enum { N = 64 };
    const int64_t shape[1] = {1000};
    pthread_t threads[N];
    managed *m[N];
    for (int i = 0; i < N; i++) {
        luma_tensor x = counted(S, 1, shape, "cpu");
        OK(luma_to_dlpack(S, &m[i], &x));
        luma_release(S, &x);
    }
    CHECK(live(S) == N * 4000);
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, delete_in_thread, m[i]);
    luma_tensor busy = LUMA_NEW;
    for (int i = 0; i < 1000; i++) {
        OK(luma_empty(S, &busy, 1, shape, LUMA_FLOAT32, "cpu"));
        luma_release(S, &busy);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    OK(luma_empty(S, &busy, 1, shape, LUMA_FLOAT32, "cpu"));
    CHECK(live(S) == 4000);
    luma_release(S, &busy);
}

static void test_closed(const char *device) {
    enum { N = 16 };
    const int64_t shape[1] = {1000};
    pthread_t threads[N];
    managed *m[N];
    luma_state *other = luma_open();
    for (int i = 0; i < N; i++) {
        luma_tensor x = counted(other, 1, shape, device);
        CHECK(luma_to_dlpack(other, &m[i], &x) == LUMA_OK);
        luma_release(other, &x);
    }
    m[0]->deleter(m[0]);
    luma_close(other);
    luma_tensor y = LUMA_NEW;
    CHECK(strcmp(device, "cpu") != 0 || ((float *)m[5]->tensor.data)[999] == 999);
    OK(luma_from_dlpack(S, &y, m[1]));
    CHECK(sum_of(&y) == 499500);
    luma_release(S, &y);
    for (int i = 2; i < N; i++)
        pthread_create(&threads[i], NULL, delete_in_thread, m[i]);
    for (int i = 2; i < N; i++)
        pthread_join(threads[i], NULL);
}

/* A state holds what another holds of a third. */
static void test_chain(void) {
    theirs t;
    luma_tensor x = LUMA_NEW, y = LUMA_NEW;
    managed *m = NULL, *again = NULL;
    fill_theirs(&t);
    luma_state *A = luma_open(), *B = luma_open();
    CHECK(luma_from_dlpack(A, &x, &t.m.old) == LUMA_OK);
    CHECK(luma_to_dlpack(A, &m, &x) == LUMA_OK);
    luma_release(A, &x);
    luma_close(A);
    CHECK(luma_from_dlpack(B, &y, m) == LUMA_OK);
    CHECK(luma_to_dlpack(B, &again, &y) == LUMA_OK);
    luma_release(B, &y);
    luma_close(B);
    CHECK(t.deleted == 0);
    again->deleter(again);
    CHECK(t.deleted == 1);
}

/* ---- devices ---- */

static void test_cuda(void) {
    const int64_t shape[2] = {4, 8};
    luma_state *other = luma_open();
    luma_tensor x = counted(other, 2, shape, "cuda:0"), y = LUMA_NEW, z = LUMA_NEW;
    managed *m = NULL;
    CHECK(luma_add(other, &x, &x, &x) == LUMA_OK);
    CHECK(luma_to_dlpack(other, &m, &x) == LUMA_OK);
    CHECK(m->tensor.device.type == LM_DL_CUDA && m->tensor.device.id == 0);
    OK(luma_from_dlpack(S, &y, m));
    CHECK(strcmp(luma_device(&y), "cuda:0") == 0 && luma_data(&y) == luma_data(&x));
    OK(luma_add(S, &z, &y, &y));
    luma_release(S, &y); /* waits for the sum */
    luma_release(other, &x);
    luma_close(other);
    CHECK(sum_of(&z) == 2 * 2 * 496);
    luma_release(S, &z);
}

int main(void) {
    setenv("LUMA_CUDA", "emulate", 1);
    S = luma_open();
    if (!S) return 1;
    test_every_dtype();
    test_layouts();
    test_refused_exports();
    test_taking();
    test_versions();
    test_refused_imports();
    test_taken_twice();
    test_threads();
    test_closed("cpu");
    test_closed("cuda:0");
    test_chain();
    test_cuda();
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
