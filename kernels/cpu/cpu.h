/* cpu.h -- the CPU device: its table and the functions in it, each in the file of its name.
** Layer: kernels/cpu. */
#ifndef lm_cpu_h
#define lm_cpu_h

#include "device.h"
#include "level.h"

extern const lm_device_ops lm_cpu_ops;
/* Makes device 0 of S; an error when LUMA_CPU names a level that this machine lacks. */
luma_status lm_cpu_register(luma_state *S);

luma_status lm_cpu_map(luma_state *S, lm_device *d, lm_map *m);
luma_status lm_cpu_fused(luma_state *S, lm_device *d, struct lm_fused *f, bool *done);
luma_status lm_cpu_copy(luma_state *S, lm_device *d, const luma_tensor *dst,
                        const luma_tensor *src);
luma_status lm_cpu_fill(luma_state *S, lm_device *d, const luma_tensor *dst, const void *element);
luma_status lm_cpu_reduce(luma_state *S, lm_device *d, const lm_reduce *r);
luma_status lm_cpu_sort(luma_state *S, lm_device *d, const lm_sort *s);
luma_status lm_cpu_scan(luma_state *S, lm_device *d, const lm_scan *s);
luma_status lm_cpu_normalize(luma_state *S, lm_device *d, const lm_normalize *n);
luma_status lm_cpu_search(luma_state *S, lm_device *d, const lm_search *s);
luma_status lm_cpu_attention(luma_state *S, lm_device *d, const lm_attention *a);
luma_status lm_cpu_rope(luma_state *S, lm_device *d, const lm_rope *r);
luma_status lm_cpu_index(luma_state *S, lm_device *d, const lm_index *w);
luma_status lm_cpu_pooling(luma_state *S, lm_device *d, const lm_pooling *p);
luma_status lm_cpu_count_nonzero(luma_state *S, lm_device *d, const luma_tensor *x, int64_t *count);
luma_status lm_cpu_nonzero(luma_state *S, lm_device *d, luma_tensor *positions,
                           const luma_tensor *x, int index_base);
luma_status lm_cpu_matmul(luma_state *S, lm_device *d, const luma_tensor *out, const luma_tensor *a,
                          const luma_tensor *b);
luma_status lm_cpu_conv(luma_state *S, lm_device *d, const lm_conv *v);
/* Where the sums of a result are kept: which loops, and the dtype whose elements they add. (matmul.c) */
const lm_gemm *lm_cpu_sums(luma_dtype out, luma_dtype *dtype);
/* Whether elements are those of the sums, bit by bit: 32-bit integers are words. (matmul.c) */
bool lm_cpu_same_words(luma_dtype x, luma_dtype sums);
luma_status lm_cpu_quant(luma_state *S, lm_device *d, const lm_quant *q);
luma_status lm_cpu_random(luma_state *S, lm_device *d, const lm_random *r);

#endif
