/* map.c -- elementwise rows on the CPU: integer operands are looked at before anything is written,
** then the level's kernel runs over the planned map. Layer: kernels/cpu. */
#include <string.h>

#include "cpu.h"
#include "op.h"

/* Rough work beyond memory traffic, in bytes of it. */
#define HARD_FUNCTION 32 /* rows whose result is not correctly rounded: exp, log, pow, ... */
#define HARD_INTEGER 16  /* division and powers of integers */

/* ---- guards ---- */

/* The place of the first element of operand 2, in the order of the map's shape, that the guard looks
** for. */
static void first_found(const lm_map *m, lm_guard guard, int64_t *at) {
    const lm_operand *o = &m->operand[2];
    lm_cast_fn *cast = lm_level_now()->cast->cast[o->dtype][o->kernel];
    lm_cast_fn *widen = lm_level_now()->cast->cast[o->kernel][LUMA_INT64];
    for (int d = 0; d < m->ndim; d++)
        at[d] = 0;
    for (;;) {
        const char *x = o->data;
        for (int d = 0; d < m->ndim; d++)
            x += at[d] * o->stride[d];
        int64_t element, v;
        cast(1, x, 0, (char *)&element, 0);
        widen(1, (char *)&element, 0, (char *)&v, 0);
        if (guard == LM_GUARD_ZERO ? v == 0 : v < 0) break;
        int d = m->ndim - 1;
        for (; d >= 0 && ++at[d] == m->shape[d]; d--)
            at[d] = 0;
        if (d < 0) break;
    }
}

static luma_status look(luma_state *S, const lm_map *m, lm_guard guard) {
    const lm_level *level = lm_level_now();
    int found = 0;
    lm_map g = {.op = m->op, .compute = m->compute, .noperands = 2, .ndim = m->ndim};
    g.params.found = &found;
    g.operand[0].dtype = g.operand[0].kernel = m->compute;
    g.operand[1] = m->operand[2];
    for (int d = 0; d < m->ndim; d++)
        g.shape[d] = m->operand[2].stride[d] == 0 && m->shape[d] > 0 ? 1 : m->shape[d];
    lm_iter_plan(&g);
    LM_TRY(lm_iter_run(S, &g, level->elementwise->guard[m->compute][guard == LM_GUARD_NEGATIVE],
                       level->cast, level->copy, (int64_t)lm_dtype_size(g.operand[1].dtype)));
    if (!found) return LUMA_OK;
    if (!m->operand[2].data) return lm_guard_fail(S, m->op, guard, 0, NULL);
    int64_t at[LUMA_MAX_DIMS];
    first_found(m, guard, at);
    return lm_guard_fail(S, m->op, guard, m->ndim, at);
}

/* ---- the slot ---- */

static int64_t cost_of(const lm_map *m, lm_guard guard) {
    int64_t cost = lm_ops[m->op].ulp > 0.5  ? HARD_FUNCTION
                   : guard != LM_GUARD_NONE ? HARD_INTEGER
                                            : 0;
    for (int k = 0; k < m->noperands; k++)
        cost += (int64_t)lm_dtype_size(m->operand[k].dtype);
    return cost;
}

luma_status lm_cpu_map(luma_state *S, lm_device *d, lm_map *m) {
    (void)d;
    const lm_level *level = lm_level_now();
    lm_guard guard = lm_dtype_is_float(m->compute) ? LM_GUARD_NONE : lm_op_guard(m->op);
    if (guard != LM_GUARD_NONE) LM_TRY(look(S, m, guard));
    lm_iter_plan(m);
    /* the words of the rows with guards are not made of vectors, for which streaming is meant */
    m->params.stream = lm_op_guard(m->op) == LM_GUARD_NONE;
    return lm_iter_run(S, m, level->elementwise->map[m->op][m->compute], level->cast, level->copy,
                       cost_of(m, guard));
}
