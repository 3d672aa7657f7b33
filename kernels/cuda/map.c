/* map.c -- elementwise rows on CUDA. Each storage dtype has kernels of its own; operands of another
** dtype are converted into scratch memory first, a result of another dtype afterwards. Inputs that
** run along another dim than the result are turned first. Layer: kernels/cuda. */
#include <string.h>

#include "elementwise.h"

#define WORTH_TURNING 262144 /* elements of a walk */

#define ID(_, token, ENUM, ...) lm_id_##token = LUMA_##ENUM,
enum { LM_DTYPES(ID, _) };
#undef ID

/* [op][storage dtype]: the number of the kernel plus one; 0: none. */
static const uint16_t rows[LM_NROWS][LUMA_NDTYPES] = {
#define KERNEL(module, name, args)
#define LM_ROW(name, d) ROW(name, d)
#define ROW(name, d) [LM_OP_##name][lm_id_##d] = LM_K_##name##_##d + 1,
#include "cuda/kernels.def"
#undef KERNEL
#undef LM_ROW
#undef ROW
};

bool lm_cuda_has_row(lm_op op, luma_dtype dtype) {
    return op < LM_NROWS && rows[op][dtype] != 0;
}

/* ---- dtypes ---- */

static bool is_mask(const lm_map *m, int k) {
    return lm_ops[m->op].row == LM_ROW_TERNARY && k == 1;
}

static bool gives_bool(lm_op op) {
    return lm_ops[op].row == LM_ROW_COMPARE || lm_ops[op].row == LM_ROW_TEST;
}

/* The dtype whose kernel runs: that of all operands, where they have one that is computed as core
** wants; else the compute dtype itself. */
static luma_dtype kernel_dtype(const lm_map *m) {
    bool any = false;
    luma_dtype dtype = m->compute;
    for (int k = gives_bool(m->op); k < m->noperands; k++) {
        const lm_operand *o = &m->operand[k];
        if (!o->data || is_mask(m, k)) continue;
        if (any && o->dtype != dtype) return m->compute;
        dtype = o->dtype;
        any = true;
    }
    return lm_dtypes[dtype].compute == m->compute ? dtype : m->compute;
}

static luma_dtype dtype_of(const lm_map *m, int k, luma_dtype run) {
    return is_mask(m, k) || (k == 0 && gives_bool(m->op)) ? LUMA_BOOL : run;
}

/* ---- scratch ---- */

/* What a call holds until its launches are queued. */
typedef struct {
    lm_storage *scratch[LM_MAP_OPERANDS];
    int n;
} held;

static void let_go(held *h) {
    while (h->n > 0)
        lm_storage_release(h->scratch[--h->n]);
}

/* Operand k in scratch memory, in the order of the dims of m; dims that it repeats along stay so. */
static luma_status set_aside(luma_state *S, lm_cuda *c, const lm_map *m, int k, luma_dtype dtype,
                             held *h, lm_operand *out) {
    *out = m->operand[k];
    out->dtype = dtype;
    int64_t next = (int64_t)lm_dtype_size(dtype);
    for (int d = m->ndim - 1; d >= 0; d--) {
        if (m->operand[k].stride[d] == 0 && m->shape[d] > 1) {
            out->stride[d] = 0;
        } else {
            out->stride[d] = next;
            next *= m->shape[d];
        }
    }
    LM_TRY(lm_cuda_scratch(S, c, (size_t)next, &h->scratch[h->n]));
    out->data = h->scratch[h->n++]->data;
    return LUMA_OK;
}

/* to = from, which are the same operand of m in two places. */
static luma_status move(luma_state *S, lm_cuda *c, const lm_map *m, const lm_operand *to,
                        const lm_operand *from) {
    lm_map copy;
    copy.planned = false;
    copy.ndim = m->ndim;
    copy.operand[0] = *to;
    copy.operand[1] = *from;
    for (int d = 0; d < m->ndim; d++)
        copy.shape[d] = to->stride[d] == 0 ? 1 : m->shape[d];
    return lm_cuda_move(S, c, &copy);
}

/* ---- running ---- */

/* Neighbours read far apart along the last dim, though they are close along another one. */
static bool runs_across(const lm_map *m, int k) {
    const int64_t *s = m->operand[k].stride;
    int last = m->ndim - 1;
    int64_t n = 1;
    bool close = false;
    if (m->ndim < 2 || !m->operand[k].data || lm_abs(s[last]) < 64 || m->shape[last] < 8)
        return false;
    for (int d = 0; d <= last; d++) {
        n *= m->shape[d];
        if (d < last && s[d] != 0 && lm_abs(s[d]) < 32 && m->shape[d] >= 8) close = true;
    }
    return close && n >= WORTH_TURNING;
}

static luma_status run_row(luma_state *S, lm_cuda *c, const lm_map *m, luma_dtype run,
                           lm_guard guard, lm_fault *fault) {
    lm_kernel kernel = (lm_kernel)(rows[m->op][run] - 1);
    lm_fault_code code = guard == LM_GUARD_ZERO       ? LM_FAULT_ZERO
                         : guard == LM_GUARD_NEGATIVE ? LM_FAULT_NEGATIVE
                                                      : LM_FAULT_NONE;
    return lm_cuda_map_run(S, c, kernel, m, (int)(16 / lm_dtype_size(run)), code, fault);
}

static luma_status run_converted(luma_state *S, lm_cuda *c, lm_map *m, luma_dtype run,
                                 lm_guard guard, lm_fault *fault, held *h) {
    lm_operand result = m->operand[0];
    for (int k = 1; k < m->noperands; k++) {
        lm_operand *o = &m->operand[k], aside;
        luma_dtype dtype = dtype_of(m, k, run);
        if (!o->data || (o->dtype == dtype && !runs_across(m, k))) continue;
        LM_TRY(set_aside(S, c, m, k, dtype, h, &aside));
        LM_TRY(move(S, c, m, &aside, o));
        *o = aside;
    }
    luma_dtype dtype = dtype_of(m, 0, run);
    if (result.dtype == dtype) return run_row(S, c, m, run, guard, fault);
    LM_TRY(set_aside(S, c, m, 0, dtype, h, &m->operand[0]));
    LM_TRY(run_row(S, c, m, run, guard, fault));
    return move(S, c, m, &result, &m->operand[0]);
}

/* Operands that one launch takes as they are. */
static bool is_plain(const lm_map *m, luma_dtype run) {
    for (int k = 0; k < m->noperands; k++) {
        if (!m->operand[k].data) continue;
        if (m->operand[k].dtype != dtype_of(m, k, run) || (k > 0 && runs_across(m, k)))
            return false;
    }
    return true;
}

static luma_status run(luma_state *S, lm_cuda *c, lm_map *m, lm_guard guard) {
    luma_dtype dtype = kernel_dtype(m);
    lm_fault *fault = NULL;
    if (guard != LM_GUARD_NONE) {
        fault = lm_cuda_watch(c, m->op, m->ndim, m->shape);
        lm_cuda_merge(m);
    } else {
        lm_iter_plan(m);
    }
    if (is_plain(m, dtype)) return run_row(S, c, m, dtype, guard, fault);
    held h = {.n = 0};
    luma_status status = run_converted(S, c, m, dtype, guard, fault, &h);
    let_go(&h);
    return status;
}

/* A number that the guard looks for needs no kernel. */
static luma_status check_number(luma_state *S, const lm_map *m, lm_guard guard) {
    const lm_operand *o = &m->operand[2];
    luma_scalar v = lm_cpu(S)->ops->decode(o->kernel, o->value.bytes);
    if (guard == LM_GUARD_ZERO ? v.u.i != 0 : v.u.i >= 0) return LUMA_OK;
    return lm_guard_fail(S, m->op, guard, 0, NULL);
}

luma_status lm_cuda_map(luma_state *S, lm_device *d, lm_map *m) {
    lm_cuda *c = lm_cuda_of(d);
    lm_guard guard = lm_dtype_is_float(m->compute) ? LM_GUARD_NONE : lm_op_guard(m->op);
    for (int k = 0; k < m->ndim; k++)
        if (m->shape[k] == 0) return LUMA_OK;
    if (guard != LM_GUARD_NONE && !m->operand[2].data) {
        LM_TRY(check_number(S, m, guard));
        guard = LM_GUARD_NONE;
    }
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = run(S, c, m, guard);
    lm_cuda_leave(c);
    return status;
}
