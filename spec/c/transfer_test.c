/* transfer_test.c -- copies between devices, with two devices made up here whose addresses fault
** when the host touches them: every layout, casts, broadcasts, failures half way, interrupts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensor.h"

#include "cpu/cpu.h"

/* ---- a device far away ----------------------------------------------------------------------- */

#define AWAY ((intptr_t)1 << 50) /* from an address that works to the one that is told */

static char *near_by(const void *p) {
    return (char *)((intptr_t)p - AWAY);
}

static void *far_alloc(lm_device *d, size_t nbytes) {
    (void)d;
    char *p = aligned_alloc(64, (nbytes + 63) / 64 * 64);
    return p ? (void *)((intptr_t)p + AWAY) : NULL;
}

static void far_free(lm_device *d, void *p, size_t nbytes) {
    (void)d;
    (void)nbytes;
    free(near_by(p));
}

static luma_status far_upload(luma_state *S, lm_device *d, void *dst, const void *src,
                              size_t nbytes) {
    (void)S;
    (void)d;
    memcpy(near_by(dst), src, nbytes);
    return LUMA_OK;
}

static luma_status far_download(luma_state *S, lm_device *d, void *dst, const void *src,
                                size_t nbytes) {
    (void)S;
    (void)d;
    memcpy(dst, near_by(src), nbytes);
    return LUMA_OK;
}

static luma_tensor pulled(const luma_tensor *x, lm_storage *st) {
    luma_tensor out = *x;
    *st = *x->storage;
    st->data = near_by(st->data);
    out.storage = st;
    return out;
}

static luma_status far_copy(luma_state *S, lm_device *d, const luma_tensor *dst,
                            const luma_tensor *src) {
    lm_storage to, from;
    luma_tensor y = pulled(dst, &to), x = pulled(src, &from);
    CHECK(lm_device_of(dst) == d && lm_device_of(src) == d);
    return lm_cpu_copy(S, lm_cpu(S), &y, &x);
}

static luma_status far_fill(luma_state *S, lm_device *d, const luma_tensor *dst,
                            const void *element) {
    lm_storage to;
    luma_tensor y = pulled(dst, &to);
    CHECK(lm_device_of(dst) == d);
    return lm_cpu_fill(S, lm_cpu(S), &y, element);
}

static const lm_device_ops far_ops = {.kind = "far",
                                      .raw_alloc = far_alloc,
                                      .raw_free = far_free,
                                      .upload = far_upload,
                                      .download = far_download,
                                      .copy = far_copy,
                                      .fill = far_fill};

/* ---- tests ----------------------------------------------------------------------------------- */

#define SIDE 6

/* SIDE x SIDE in one of four layouts, zeros all round. */
static luma_tensor place(luma_state *S, lm_device *device, luma_dtype dtype, int layout) {
    luma_tensor base = LUMA_NEW, out = LUMA_NEW;
    const int64_t shape[] = {2 * SIDE, 2 * SIDE};
    CHECK(lm_tensor_new(S, &base, device, dtype, 2, shape) == LUMA_OK);
    CHECK(luma_fill(S, &base, (luma_scalar){.kind = LUMA_IS_INT, .u.i = 0}) == LUMA_OK);
    luma_layout x = lm_layout_contiguous(2, (int64_t[]){SIDE, SIDE});
    if (layout == 1) x = lm_layout_transpose(&x, 0, 1);
    if (layout == 2) x = lm_layout_slice(&base.layout, 0, 3, SIDE, 1);
    if (layout == 2) x = lm_layout_slice(&x, 1, 2 * SIDE - 1, SIDE, -2);
    if (layout == 3) x.offset = 7;
    CHECK(lm_tensor_view(S, &out, &base, &x) == LUMA_OK);
    luma_release(S, &base);
    return out;
}

static void values(luma_state *S, const luma_tensor *x, double *out) {
    for (int64_t i = 0; i < SIDE; i++) {
        for (int64_t k = 0; k < SIDE; k++) {
            luma_scalar v;
            luma_tensor one = *x;
            one.layout = lm_layout_select(&x->layout, 0, i);
            one.layout = lm_layout_select(&one.layout, 0, k);
            CHECK(luma_item(S, &one, &v) == LUMA_OK);
            out[i * SIDE + k] = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
        }
    }
}

static void one_way(luma_state *S, lm_device *to, lm_device *from, int layouts, luma_dtype dtype) {
    double got[SIDE * SIDE];
    float numbers[SIDE * SIDE];
    luma_tensor dst = place(S, to, dtype, layouts / 4);
    luma_tensor src = place(S, from, LUMA_FLOAT32, layouts % 4);
    for (int k = 0; k < SIDE * SIDE; k++)
        numbers[k] = (float)k + 1;
    CHECK(luma_write(S, &src, numbers, sizeof numbers) == LUMA_OK);
    CHECK(luma_copy(S, &dst, &src) == LUMA_OK);
    values(S, &dst, got);
    for (int k = 0; k < SIDE * SIDE; k++)
        CHECK(got[k] == k + 1);
    luma_tensor row = src;
    row.layout = lm_layout_select(&src.layout, 0, 1);
    CHECK(luma_copy(S, &dst, &row) == LUMA_OK);
    values(S, &dst, got);
    for (int k = 0; k < SIDE * SIDE; k++)
        CHECK(got[k] == SIDE + k % SIDE + 1);
    luma_release(S, &dst);
    luma_release(S, &src);
}

/* The n-th allocation fails: an error, the destination as it was, nothing leaked. */
static void out_of_memory(luma_state *S, lm_device *to, lm_device *from) {
    double before[SIDE * SIDE], after[SIDE * SIDE];
    luma_tensor dst = place(S, to, LUMA_INT32, 2), src = place(S, from, LUMA_FLOAT32, 1);
    values(S, &dst, before);
    for (int64_t n = 0; n < 10; n++) {
        S->fail_after = n;
        luma_status status = luma_copy(S, &dst, &src);
        S->fail_after = -1;
        if (status == LUMA_OK) break;
        CHECK(status == LUMA_ERR_MEMORY);
        values(S, &dst, after);
        CHECK(memcmp(before, after, sizeof before) == 0);
    }
    luma_release(S, &dst);
    luma_release(S, &src);
}

/* Every way of copying looks at the flag; what it wrote so far stays, and all remains usable. */
static void interrupted(luma_state *S) {
    volatile int flag = 1;
    const int64_t shape[] = {600, 700}, turned[] = {700, 600};
    luma_tensor x = LUMA_NEW, y = LUMA_NEW, view = LUMA_NEW, cast = LUMA_NEW;
    CHECK(luma_empty(S, &x, 2, shape, LUMA_FLOAT32, NULL) == LUMA_OK);
    CHECK(luma_empty(S, &y, 2, turned, LUMA_FLOAT32, NULL) == LUMA_OK);
    CHECK(luma_t(S, &view, &y) == LUMA_OK);
    luma_set_interrupt(S, &flag);
    CHECK(luma_copy(S, &x, &view) == LUMA_ERR_INTERRUPTED);
    CHECK(luma_copy(S, &view, &x) == LUMA_ERR_INTERRUPTED);
    CHECK(luma_fill(S, &x, (luma_scalar){.kind = LUMA_IS_INT, .u.i = 1}) == LUMA_ERR_INTERRUPTED);
    CHECK(luma_to_dtype(S, &cast, &x, LUMA_INT64) == LUMA_ERR_INTERRUPTED && !cast.storage);
    CHECK(luma_clone(S, &cast, &x) == LUMA_ERR_INTERRUPTED && !cast.storage);
    flag = 0;
    CHECK(luma_copy(S, &x, &view) == LUMA_OK);
    luma_set_interrupt(S, NULL);
    luma_release(S, &x);
    luma_release(S, &y);
    luma_release(S, &view);
}

int main(void) {
    luma_state *S = luma_open();
    if (!S) return 1;
    CHECK(lm_device_register(S, &far_ops, "far:0", 0, NULL) == LUMA_OK);
    CHECK(lm_device_register(S, &far_ops, "far:1", 1, NULL) == LUMA_OK);
    const luma_dtype dtypes[] = {LUMA_FLOAT32, LUMA_INT64, LUMA_UINT8, LUMA_FLOAT16};
    for (int to = 0; to < 3; to++) {
        for (int from = 0; from < 3; from++) {
            for (int k = 0; k < 16 * 4; k++)
                one_way(S, S->devices[to], S->devices[from], k / 4, dtypes[k % 4]);
            out_of_memory(S, S->devices[to], S->devices[from]);
        }
    }
    interrupted(S);
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0;
}
