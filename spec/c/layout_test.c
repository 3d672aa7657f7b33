/* layout_test.c -- layouts against lists of the places they touch: extents, overlap, reshaping by
** strides, broadcasting. Uses core only. */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static uint64_t state = 88172645463325252u;

static int64_t below(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* ---- places ---------------------------------------------------------------------------------- */

#define SPACE 100000
#define MOST 4096

/* All places of x in row-major order; returns their number. */
static int64_t places(const luma_layout *x, int64_t *out) {
    int64_t n = lm_layout_numel(x), index[LUMA_MAX_DIMS] = {0};
    for (int64_t k = 0; k < n; k++) {
        out[k] = x->offset;
        for (int d = 0; d < x->ndim; d++)
            out[k] += index[d] * x->stride[d];
        for (int d = x->ndim - 1; d >= 0 && ++index[d] == x->shape[d]; d--)
            index[d] = 0;
    }
    return n;
}

/* Marks of the places that x touches, counted from SPACE / 2. */
static unsigned char marks[SPACE];

static bool meets_itself(const int64_t *at, int64_t n) {
    bool twice = false;
    memset(marks, 0, sizeof marks);
    for (int64_t k = 0; k < n; k++)
        twice = marks[at[k] + SPACE / 2]++ > 0 || twice;
    return twice;
}

static bool meets(const int64_t *a, int64_t na, const int64_t *b, int64_t nb) {
    bool any = false;
    meets_itself(a, na);
    for (int64_t k = 0; k < nb; k++)
        any = marks[b[k] + SPACE / 2] > 0 || any;
    return any;
}

static luma_layout any_layout(void) {
    luma_layout x = {.ndim = (int)below(5), .offset = below(40) - 20};
    for (int d = 0; d < x.ndim; d++) {
        x.shape[d] = below(12) == 0 ? below(2) : 1 + below(5);
        x.stride[d] = below(3) == 0 ? below(61) - 30 : below(9) - 4;
    }
    return x;
}

/* Part of a contiguous tensor, its dims permuted, cut and turned. */
static luma_layout part_of(const luma_layout *base) {
    luma_layout x = *base;
    for (int k = 0; k < 3 && x.ndim > 0; k++) {
        int d = (int)below(x.ndim), e = (int)below(x.ndim);
        x = lm_layout_transpose(&x, d, e);
        if (x.shape[d] == 0) continue;
        int64_t first = below(x.shape[d]), step = 1 + below(3);
        int64_t length = 1 + below((x.shape[d] - 1 - first) / step + 1);
        x = lm_layout_slice(&x, d, first, length, step);
        if (below(3) == 0) x = lm_layout_slice(&x, d, length - 1, length, -1);
        if (below(6) == 0) x = lm_layout_select(&x, d, below(length));
    }
    return x;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void extents_and_overlap(void) {
    static int64_t a[MOST], b[MOST];
    for (int round = 0; round < 20000; round++) {
        luma_layout x = any_layout(), y = any_layout();
        int64_t n = places(&x, a), m = places(&y, b), first, last;
        CHECK(lm_layout_extent(&x, &first, &last) == (n > 0));
        int64_t least = SPACE, most = -SPACE;
        for (int64_t k = 0; k < n; k++) {
            least = a[k] < least ? a[k] : least;
            most = a[k] > most ? a[k] : most;
        }
        if (n > 0) CHECK(first == least && last == most);
        if (meets_itself(a, n)) CHECK(lm_layout_overlaps_itself(&x));
        if (meets(a, n, b, m)) CHECK(lm_layout_may_overlap(&x, &y));
    }
}

static void parts_never_overlap_themselves(void) {
    for (int round = 0; round < 5000; round++) {
        int64_t shape[] = {1 + below(6), 1 + below(6), 1 + below(6)};
        luma_layout base = lm_layout_contiguous(3, shape), x = part_of(&base);
        CHECK(!lm_layout_overlaps_itself(&x));
        luma_layout wide = lm_layout_insert(&x, 0, 2, 0);
        CHECK(lm_layout_overlaps_itself(&wide));
    }
}

/* What users write side by side must not count as overlap. */
static void interleaved_parts(void) {
    const int64_t shape[] = {12, 10};
    luma_layout x = lm_layout_contiguous(2, shape);
    luma_layout even = lm_layout_slice(&x, 0, 0, 6, 2), odd = lm_layout_slice(&x, 0, 1, 6, 2);
    CHECK(!lm_layout_may_overlap(&even, &odd));
    even = lm_layout_slice(&x, 1, 0, 5, 2);
    odd = lm_layout_slice(&x, 1, 1, 5, 2);
    CHECK(!lm_layout_may_overlap(&even, &odd));
    odd = lm_layout_slice(&odd, 0, 11, 12, -1);
    CHECK(!lm_layout_may_overlap(&even, &odd));
    luma_layout left = lm_layout_slice(&x, 1, 0, 4, 1), right = lm_layout_slice(&x, 1, 4, 6, 1);
    CHECK(!lm_layout_may_overlap(&left, &right));
    right = lm_layout_slice(&x, 1, 3, 7, 1);
    CHECK(lm_layout_may_overlap(&left, &right));
    luma_layout top = lm_layout_slice(&x, 0, 0, 6, 1), bottom = lm_layout_slice(&x, 0, 6, 6, 1);
    CHECK(!lm_layout_may_overlap(&top, &bottom));
    for (int64_t i = 0; i < 10; i++) {
        luma_layout column = lm_layout_select(&x, 1, i);
        for (int64_t k = 0; k < 10; k++) {
            luma_layout other = lm_layout_select(&x, 1, k);
            CHECK(lm_layout_may_overlap(&column, &other) == (i == k));
        }
    }
}

/* Whether strides for the shape exist that walk the places in this order. */
static bool has_strides(int ndim, const int64_t *shape, const int64_t *at, int64_t n) {
    luma_layout y = lm_layout_contiguous(ndim, shape), dense = y;
    static int64_t own[MOST];
    y.offset = at[0];
    for (int d = 0; d < ndim; d++)
        y.stride[d] = shape[d] > 1 ? at[dense.stride[d]] - at[0] : 0;
    places(&y, own);
    return memcmp(own, at, (size_t)n * sizeof *at) == 0;
}

static void views(void) {
    static int64_t a[MOST], b[MOST];
    for (int round = 0; round < 20000; round++) {
        int64_t start[] = {1 + below(4), 1 + below(4), 1 + below(4), 1 + below(3)};
        luma_layout base = lm_layout_contiguous(4, start);
        luma_layout x = below(4) == 0 ? any_layout() : part_of(&base);
        int64_t n = places(&x, a), rest = n, shape[LUMA_MAX_DIMS];
        int ndim = 0;
        while (ndim < 6 && (rest > 1 || below(3) == 0)) {
            int64_t size = 1 + below(4);
            if (rest % size != 0) continue;
            shape[ndim++] = size;
            rest /= size;
        }
        if (rest > 1) shape[ndim++] = rest;
        bool ok;
        luma_layout y = lm_layout_view(&x, ndim, shape, &ok);
        if (n == 0) continue;
        CHECK(ok == has_strides(ndim, shape, a, n));
        if (!ok) continue;
        CHECK(places(&y, b) == n && memcmp(a, b, (size_t)n * sizeof *a) == 0);
    }
}

static void broadcasting(luma_state *S) {
    int n;
    int64_t out[LUMA_MAX_DIMS];
    CHECK(lm_shape_broadcast(S, 2, (int64_t[]){2, 1}, 3, (int64_t[]){5, 1, 3}, &n, out) == LUMA_OK);
    CHECK(n == 3 && out[0] == 5 && out[1] == 2 && out[2] == 3);
    CHECK(lm_shape_broadcast(S, 1, (int64_t[]){1}, 1, (int64_t[]){0}, &n, out) == LUMA_OK);
    CHECK(n == 1 && out[0] == 0);
    CHECK(lm_shape_broadcast(S, 0, NULL, 0, NULL, &n, out) == LUMA_OK && n == 0);
    CHECK(lm_shape_broadcast(S, 2, (int64_t[]){2, 3}, 2, (int64_t[]){2, 4}, &n, out) ==
          LUMA_ERR_SHAPE);
    CHECK(strcmp(S->message, "[2 x 3] and [2 x 4] do not broadcast: sizes 3 and 4 differ") == 0);
    CHECK(n == 0);
}

/* Sizes and strides near the ends of int64 saturate; nothing overflows. */
static void ends_of_int64(void) {
    int64_t first, last;
    luma_layout x = {.ndim = 2, .shape = {3, 2}, .stride = {INT64_MAX, 1}, .offset = 5};
    CHECK(lm_layout_extent(&x, &first, &last) && first == 5 && last == INT64_MAX);
    x.stride[0] = INT64_MIN;
    CHECK(lm_layout_extent(&x, &first, &last) && first <= INT64_MIN + 5 && last == 6);
    x.shape[0] = 0;
    CHECK(!lm_layout_extent(&x, &first, &last));
}

static void dims(luma_state *S) {
    int d;
    uint32_t mask;
    CHECK(lm_dim(S, 1, -1, 3, &d) == LUMA_OK && d == 2);
    CHECK(lm_dim(S, 1, 0, 0, &d) == LUMA_OK && d == 0);
    CHECK(lm_dim(S, 2, 3, 3, &d) == LUMA_ERR_INDEX && S->argument == 2);
    CHECK(lm_dim(S, 1, -4, 3, &d) == LUMA_ERR_INDEX);
    CHECK(lm_dims_mask(S, 1, 0, NULL, 3, &mask) == LUMA_OK && mask == 7);
    CHECK(lm_dims_mask(S, 1, 2, (int64_t[]){0, -1}, 3, &mask) == LUMA_OK && mask == 5);
    CHECK(lm_dims_mask(S, 1, 2, (int64_t[]){2, -1}, 3, &mask) == LUMA_ERR_ARGUMENT);
    CHECK(lm_dims_mask(S, 1, 1, (int64_t[]){0}, 0, &mask) == LUMA_OK && mask == 0);
}

int main(void) {
    luma_state *S = luma_open();
    if (!S) return 1;
    extents_and_overlap();
    parts_never_overlap_themselves();
    interleaved_parts();
    views();
    broadcasting(S);
    ends_of_int64();
    dims(S);
    luma_close(S);
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0;
}
