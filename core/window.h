/* window.h -- windows along one dim: which elements number i of a result is made of. Layer: core; read by
** kernels, C and CUDA; includes nothing of luma. */
#ifndef lm_window_h
#define lm_window_h

#if !defined(__CUDACC_RTC__)
#include <stdint.h>
#endif

#if defined(__CUDACC__)
#define LM_WINDOW_FN static __device__ __forceinline__
/* one copy of a long piece of code */
#define LM_WINDOW_APART static __device__ __noinline__
#else
#define LM_WINDOW_FN static inline
#define LM_WINDOW_APART static inline
#endif

LM_WINDOW_APART int64_t lm_window_quotient(int64_t a, int64_t b) {
    return a / b;
}

/* in elements, out windows. adaptive: from floor(i in / out) up to ceil((i + 1) in / out), whatever the
** rest says; i in, out in and the ends of windows fit into int64. */
typedef struct {
    int64_t in, out, kernel, stride, padding, dilation;
    int64_t adaptive; /* 0 or 1 */
} lm_window;
/* Elements first + j * dilation, 0 <= j < n; padded: how many they are with those of the padding. */
typedef struct {
    int64_t first, n, padded;
} lm_span;

LM_WINDOW_FN lm_span lm_window_at(const lm_window *w, int64_t i) {
    lm_span s;
    if (w->adaptive) {
        s.first = lm_window_quotient(i * w->in, w->out);
        s.n = lm_window_quotient((i + 1) * w->in - 1, w->out) + 1 - s.first;
        s.padded = s.n;
        return s;
    }
    int64_t start = i * w->stride - w->padding, left = w->in - start;
    int64_t skipped = start < 0 ? -start : 0, end = left;
    if (w->dilation > 1) {
        skipped = skipped > 0 ? lm_window_quotient(skipped - 1, w->dilation) + 1 : 0;
        end = left > 0 ? lm_window_quotient(left - 1, w->dilation) + 1 : 0;
    }
    if (end > w->kernel) end = w->kernel;
    s.first = start + skipped * w->dilation;
    s.n = end > skipped ? end - skipped : 0;
    s.padded = w->kernel < left + w->padding ? w->kernel : left + w->padding;
    return s;
}

#endif
