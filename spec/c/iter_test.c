/* iter_test.c -- maps of drawn shapes, strides and dtypes over the CPU device, against a walk that
** takes one element after the other; results that pass the caches by against small ones; the
** interrupt flag. Exit 1 where one differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

#define ELEMENTS 40000 /* of every operand's memory */
#define ROUNDS 800
#define LARGE ((int64_t)5 << 20)

static luma_state *S;
static const lm_device_ops *cpu;
static int failures;

static uint32_t draw(uint32_t n) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* Row-major, in another order of dims, with gaps, repeated or backward dims. Returns the bytes of
** memory it needs, *first the distance of the first element. */
static int64_t draw_strides(lm_map *m, int k, int64_t *first) {
    int order[LUMA_MAX_DIMS];
    lm_operand *o = &m->operand[k];
    int64_t next = (int64_t)lm_dtype_size(o->dtype);
    bool mixed = draw(2), gaps = draw(3) == 0;
    for (int d = 0; d < m->ndim; d++)
        order[d] = d;
    for (int d = m->ndim - 1; mixed && d > 0; d--) {
        int j = (int)draw((uint32_t)d + 1), t = order[d];
        order[d] = order[j];
        order[j] = t;
    }
    *first = 0;
    for (int i = m->ndim - 1; i >= 0; i--) {
        int d = order[i];
        o->stride[d] = 0;
        if (k > 0 && draw(5) == 0) continue;
        o->stride[d] = next * (gaps ? 1 + draw(2) : 1);
        next = o->stride[d] * (m->shape[d] ? m->shape[d] : 1);
        if (draw(6)) continue;
        *first += o->stride[d] * (m->shape[d] - 1);
        o->stride[d] = -o->stride[d];
    }
    return next;
}

/* A map of x + y; false when its operands would not fit into memory. */
static bool draw_map(lm_map *m, char *const *memory) {
    static const luma_dtype computes[] = {LUMA_INT32, LUMA_INT64, LUMA_FLOAT32, LUMA_FLOAT64};
    static const int64_t most[] = {1, 30000, 300, 40, 12};
    memset(m, 0, sizeof *m);
    m->op = LM_OP_add;
    m->compute = computes[draw(4)];
    m->noperands = 3;
    m->ndim = (int)draw(5);
    for (int d = 0; d < m->ndim; d++)
        m->shape[d] = draw(100) == 0 ? 0 : 1 + draw(draw(3) ? (uint32_t)most[m->ndim] : 3);
    for (int k = 0; k < 3; k++) {
        lm_operand *o = &m->operand[k];
        int64_t first;
        o->kernel = m->compute;
        o->dtype = draw(2) ? m->compute : (luma_dtype)(1 + draw(LUMA_NDTYPES - 1));
        if (k > 0 && draw(8) == 0) { /* a number */
            o->dtype = o->kernel;
            cpu->encode(o->kernel, (luma_scalar){LUMA_IS_INT, {draw(50)}}, o->value.bytes);
            continue;
        }
        if (draw_strides(m, k, &first) > ELEMENTS * (int64_t)lm_dtype_size(o->dtype)) return false;
        o->data = memory[k] + first;
    }
    return true;
}

static void fill(luma_dtype dtype, char *memory) {
    for (int64_t i = 0; i < ELEMENTS; i++)
        cpu->encode(dtype, (luma_scalar){LUMA_IS_INT, {draw(60)}},
                    memory + i * (int64_t)lm_dtype_size(dtype));
}

static double value_of(const lm_operand *o, const char *x) {
    int64_t element;
    cpu->encode(o->kernel, cpu->decode(o->dtype, x), &element);
    luma_scalar v = cpu->decode(o->kernel, &element);
    return v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
}

/* What the map should write, with `out` in the place of operand 0's memory. */
static void walk(const lm_map *m, const char *memory, char *out) {
    int64_t at[LUMA_MAX_DIMS] = {0}, element;
    for (int d = 0; d < m->ndim; d++) {
        if (m->shape[d] == 0) return;
    }
    for (int d = 0; d >= 0;) {
        const char *p[3];
        for (int k = 0; k < 3; k++) {
            p[k] = m->operand[k].data ? m->operand[k].data : m->operand[k].value.bytes;
            for (int i = 0; i < m->ndim; i++)
                p[k] += at[i] * m->operand[k].stride[i];
        }
        double sum = value_of(&m->operand[1], p[1]) + value_of(&m->operand[2], p[2]);
        cpu->encode(m->compute, (luma_scalar){LUMA_IS_FLOAT, {.d = sum}}, &element);
        cpu->encode(m->operand[0].dtype, cpu->decode(m->compute, &element), out + (p[0] - memory));
        for (d = m->ndim - 1; d >= 0 && ++at[d] == m->shape[d]; d--)
            at[d] = 0;
    }
}

static void check_drawn(int round, char *const *memory, char *expected) {
    lm_map m, run;
    while (!draw_map(&m, memory)) {
    }
    for (int k = 0; k < 3; k++)
        fill(m.operand[k].dtype, memory[k]);
    memcpy(expected, memory[0], ELEMENTS * 8);
    walk(&m, memory[0], expected);
    run = m;
    if (cpu->map(S, lm_cpu(S), &run) == LUMA_OK && !memcmp(expected, memory[0], ELEMENTS * 8))
        return;
    failures++;
    printf("round %d differs:", round);
    for (int d = 0; d < m.ndim; d++)
        printf("%s%lld", d ? " x " : " ", (long long)m.shape[d]);
    for (int k = 0; k < 3; k++) {
        printf("; %s:", lm_dtypes[m.operand[k].dtype].token);
        for (int d = 0; d < m.ndim; d++)
            printf(" %lld", (long long)m.operand[k].stride[d]);
    }
    printf("\n");
}

/* r[i] = x[i] + y[i] for n float32 from element `from` on. */
static luma_status add_line(float *r, float *x, float *y, int64_t from, int64_t n) {
    lm_map m = {.op = LM_OP_add, .compute = LUMA_FLOAT32, .noperands = 3, .ndim = 1, .shape = {n}};
    float *data[3] = {r, x, y};
    for (int k = 0; k < 3; k++) {
        m.operand[k].data = (char *)(data[k] + from);
        m.operand[k].dtype = m.operand[k].kernel = LUMA_FLOAT32;
        m.operand[k].stride[0] = 4;
    }
    return cpu->map(S, lm_cpu(S), &m);
}

static void check_large(void) {
    float *x = cpu->raw_alloc(lm_cpu(S), LARGE * 4), *y = cpu->raw_alloc(lm_cpu(S), LARGE * 4);
    float *r = cpu->raw_alloc(lm_cpu(S), LARGE * 4);
    if (!x || !y || !r) exit(1);
    for (int64_t i = 0; i < LARGE; i++)
        x[i] = (float)i, y[i] = (float)(i % 977);
    int64_t n = LARGE - 5;
    for (int64_t offset = 0; offset <= 1; offset++) {
        memset(r, 0, LARGE * 4);
        if (add_line(r, x, y, offset, n) != LUMA_OK) failures++;
        for (int64_t i = 0; i < LARGE; i++) {
            float want = i < offset || i >= offset + n ? 0 : x[i] + y[i];
            if (r[i] != want) failures++;
        }
    }
    volatile int flag = 1;
    luma_set_interrupt(S, &flag);
    if (add_line(r, x, y, 0, n) != LUMA_ERR_INTERRUPTED) failures++;
    luma_set_interrupt(S, NULL);
    cpu->raw_free(lm_cpu(S), x, LARGE * 4);
    cpu->raw_free(lm_cpu(S), y, LARGE * 4);
    cpu->raw_free(lm_cpu(S), r, LARGE * 4);
}

int main(void) {
    S = luma_open();
    if (!S) return 1;
    cpu = lm_cpu(S)->ops;
    char *memory[3], *expected = malloc(ELEMENTS * 8);
    for (int k = 0; k < 3; k++)
        memory[k] = calloc(ELEMENTS, 8);
    for (int i = 0; i < ROUNDS; i++)
        check_drawn(i, memory, expected);
    for (int k = 0; k < 3; k++)
        free(memory[k]);
    free(expected);
    check_large();
    luma_close(S);
    if (failures) printf("%d failures\n", failures);
    return failures != 0;
}
