/* stretch.h -- what a thread of a scan works on; for files in typed/. Layer: kernels/cuda. */
#ifndef lm_cuda_stretch_h
#define lm_cuda_stretch_h

#include "cuda/group.h"
#include "cuda/real.h"

/* What a thread works on: elements begin .. end - 1 of a line belong to the block's chunk. */
typedef struct {
    int64_t line, begin, end;
    uint32_t lane, lanes;
    bool inside; /* there is such a line */
    const char *x;
    char *y;
} lm_stretch;

LM_FN lm_stretch lm_stretch_of(const lm_args_scan *a, int64_t base) {
    lm_stretch s;
    int64_t x = 0, y = 0;
    s.line = base + lm_line_of(a->group);
    s.begin = (int64_t)blockIdx.y * a->chunk;
    s.end = s.begin + a->chunk < a->n ? s.begin + a->chunk : a->n;
    s.lane = lm_lane_of(a->group);
    s.lanes = 1u << a->group.lanes;
    s.inside = s.line < a->lines.n;
    if (s.inside) {
        LM_OFFSET(a->lines, s.line, a->lines_x, x);
        LM_OFFSET(a->lines, s.line, a->lines_y, y);
    } else {
        s.end = s.begin;
    }
    s.x = (const char *)a->x + x;
    s.y = (char *)a->y + y;
    return s;
}

/* Element i of the line. */
#define LM_ELEMENT(a, s, i) LM_LOAD(*(const LM_S *)(const void *)((s).x + (i) * (a).x_step))

#endif
