/* elementwise.c -- the launch of kernels that take lm_args_map: which of them can go by groups, and
** the walk. Layer: kernels/cuda. */
#include "elementwise.h"

#include <string.h>

/* Whether an operand lies in groups of `bytes` along the last dim, aligned to them; or is one
** element for all of a group. */
static bool in_groups(const lm_map *m, const lm_operand *o, int64_t size, int64_t bytes) {
    int last = m->ndim - 1;
    if (!o->data || o->stride[last] == 0) return true;
    uint64_t bits = (uint64_t)(uintptr_t)o->data;
    for (int d = 0; d < last; d++)
        bits |= (uint64_t)o->stride[d];
    return o->stride[last] == size && bits % (uint64_t)bytes == 0;
}

static bool is_grouped(const lm_map *m, int group) {
    int last = m->ndim - 1;
    if (last < 0 || m->shape[last] < group || m->operand[0].stride[last] == 0) return false;
    if (last > 0 && m->shape[last] % group != 0) return false;
    for (int k = 0; k < m->noperands; k++) {
        int64_t size = (int64_t)lm_dtype_size(m->operand[k].dtype);
        if (!in_groups(m, &m->operand[k], size, size * group)) return false;
    }
    return true;
}

static void set_operand(lm_args_map *a, const lm_map *m, int k, int group) {
    const lm_operand *o = &m->operand[k];
    lm_map_operand *to = &a->operand[k];
    int last = m->ndim - 1;
    to->p = o->data;
    to->number = 0;
    if (!o->data) memcpy(&to->number, o->value.bytes, sizeof o->value.bytes);
    for (int d = 0; d <= last; d++)
        to->stride[d] = o->data ? o->stride[d] : 0;
    to->single = last < 0 || to->stride[last] == 0;
    to->step = to->single ? 0 : (int32_t)lm_dtype_size(o->dtype);
    if (last >= 0) to->stride[last] *= group;
}

static void set_walk(lm_args_map *a, const lm_map *m, int group) {
    const int64_t *strides[LM_MAP_OPERANDS];
    int64_t shape[LUMA_MAX_DIMS];
    a->n = 1;
    for (int d = 0; d < m->ndim; d++) {
        shape[d] = m->shape[d];
        a->n *= shape[d];
    }
    if (m->ndim > 0) shape[m->ndim - 1] /= group;
    for (int k = 0; k < m->noperands; k++)
        strides[k] = a->operand[k].stride;
    lm_walk_set(&a->walk, m->ndim, shape, m->noperands, strides);
}

luma_status lm_cuda_map_run(luma_state *S, lm_cuda *c, lm_kernel kernel, const lm_map *m, int group,
                            lm_fault_code guard, lm_fault *fault) {
    lm_args_map a;
    a.grouped = is_grouped(m, group);
    if (!a.grouped) group = 1;
    for (int k = 0; k < m->noperands; k++)
        set_operand(&a, m, k, group);
    for (int k = m->noperands; k < LM_MAP_OPERANDS; k++)
        a.operand[k].number = 0;
    set_walk(&a, m, group);
    a.guard = (int32_t)guard;
    a.op = (int32_t)m->op;
    a.fault = fault;
    memcpy(a.d, m->params.d, sizeof a.d);
    memcpy(a.i, m->params.i, sizeof a.i);
    lm_shape shape = lm_cuda_shape(c, a.n, group, LM_MAP_BLOCK);
    return lm_cuda_launch(S, c, kernel, shape, &a);
}

static bool is_one_dim(const lm_map *m, int outer, int inner) {
    for (int k = 0; k < m->noperands; k++) {
        const int64_t *s = m->operand[k].stride;
        if (s[outer] != s[inner] * m->shape[inner]) return false;
    }
    return true;
}

void lm_cuda_merge(lm_map *m) {
    int n = 0;
    for (int d = 0; d < m->ndim; d++) {
        if (m->shape[d] == 1) continue;
        bool merged = n > 0 && is_one_dim(m, n - 1, d);
        int to = merged ? n - 1 : n++;
        m->shape[to] = merged ? m->shape[to] * m->shape[d] : m->shape[d];
        for (int k = 0; k < m->noperands; k++)
            m->operand[k].stride[to] = m->operand[k].stride[d];
    }
    m->ndim = n;
}
