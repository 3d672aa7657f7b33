/* places.h -- from a position in a walk to the place that index tensors give it; for the kernels of
** indexing. Layer: kernels/cuda. */
#ifndef lm_cuda_places_h
#define lm_cuda_places_h

#include "cuda/kernel.h"
#include "dtype.h"

LM_FN int64_t index_value(int dtype, const char *p) {
    switch (dtype) {
#define INDEX_VALUE(_, token, ENUM, name, T, ...)                                                  \
    case LUMA_##ENUM:                                                                              \
        return (int64_t) * (const T *)(const void *)p;
        LM_INTS(INDEX_VALUE, _)
#undef INDEX_VALUE
    }
    return 0;
}

typedef struct {
    int64_t plain, indexed, writer;
    int valid; /* all indices are in range */
} index_place;

/* Position i of the walk, taken apart once for the three operands and the first index. */
LM_FN index_place index_walk(const lm_args_index *a, int64_t i, int64_t *index) {
    index_place p = {0, 0, 0, 1};
    int64_t first = 0;
    if (a->walk.wide) {
        int64_t rest = i;
        LM_NO_UNROLL
        for (int d = a->walk.ndim - 1; d >= 0; d--) {
            int64_t q = d > 0 ? rest / a->walk.wide_size[d] : 0;
            int64_t r = rest - q * a->walk.wide_size[d];
            p.plain += r * a->plain_stride[d];
            p.indexed += r * a->indexed_stride[d];
            p.writer += r * a->writer_stride[d];
            first += r * a->parts[0].stride[d];
            rest = q;
        }
    } else {
        uint32_t rest = (uint32_t)i;
        int32_t plain = 0, indexed = 0, writer = 0, at = 0;
        LM_NO_UNROLL
        for (int d = a->walk.ndim - 1; d >= 0; d--) {
            const lm_divisor *size = &a->walk.size[d];
            uint32_t q = d > 0 ? lm_divide(rest, size->multiplier, size->shift) : 0;
            int32_t r = (int32_t)(rest - q * size->divisor);
            plain += r * (int32_t)a->plain_stride[d];
            indexed += r * (int32_t)a->indexed_stride[d];
            writer += r * (int32_t)a->writer_stride[d];
            at += r * (int32_t)a->parts[0].stride[d];
            rest = q;
        }
        p.plain = plain;
        p.indexed = indexed;
        p.writer = writer;
        first = at;
    }
    *index = first;
    return p;
}

LM_FN index_place index_find(const lm_args_index *a, int64_t i) {
    int64_t at;
    index_place p = index_walk(a, i, &at);
    LM_NO_UNROLL
    for (int k = 0; k < a->n; k++) {
        const lm_args_index_part *part = &a->parts[k];
        if (k > 0) LM_OFFSET(a->walk, i, part->stride, at);
        int64_t value = index_value(part->dtype, (const char *)part->data + at);
        int64_t v = (int64_t)((uint64_t)value - (uint64_t)a->index_base);
        if ((uint64_t)v >= (uint64_t)part->size) {
            p.valid = 0;
            if (!part->fault) continue;
            LM_OFFSET(a->walk, i, part->position, at);
            lm_note_fault(part->fault, LM_FAULT_INDEX, a->op, part->argument, at, value,
                          part->size);
            continue;
        }
        if (part->divisor != 1) v /= part->divisor;
        if (part->modulus < part->size) v %= part->modulus;
        p.indexed += v * part->step;
    }
    return p;
}

#endif
