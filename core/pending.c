/* pending.c -- weak stand-ins for operations that are not in yet; goes when they are. While it is
** here the program is called luma-early. Layer: core. */
#include "tensor.h"
#define W __attribute__((weak))
#define NO return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0, "not yet")
#define R(n)                                                                                       \
    W luma_status luma_##n(luma_state *S, luma_tensor *out, const luma_tensor *x, int k,           \
                           const int64_t *dims, bool keepdim) {                                    \
        (void)out, (void)x, (void)k, (void)dims, (void)keepdim;                                    \
        NO;                                                                                        \
    }
R(sum)
R(prod)
R(mean)
R(var)
R(std)
R(amax)
R(amin)
R(argmax)
R(argmin)
R(all)
R(any)
R(logsumexp)

#define V(n, a, ...)                                                                               \
    W luma_status luma_##n(luma_state *S, luma_tensor *out, const luma_tensor *x, a) {             \
        (void)out, (void)x;                                                                        \
        __VA_ARGS__;                                                                               \
        NO;                                                                                        \
    }
#define C ,
W luma_status luma_std_correction(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                  const int64_t *dims, bool keepdim, double c) {
    (void)out, (void)x, (void)n, (void)dims, (void)keepdim, (void)c;
    NO;
}
W luma_status luma_var_correction(luma_state *S, luma_tensor *out, const luma_tensor *x, int n,
                                  const int64_t *dims, bool keepdim, double c) {
    (void)out, (void)x, (void)n, (void)dims, (void)keepdim, (void)c;
    NO;
}
W luma_status luma_allclose(luma_state *S, bool *v, const luma_tensor *x, const luma_tensor *y,
                            double a, double b, bool e) {
    (void)v, (void)x, (void)y, (void)a, (void)b, (void)e;
    NO;
}
W luma_status luma_equal(luma_state *S, bool *v, const luma_tensor *x, const luma_tensor *y) {
    (void)v, (void)x, (void)y;
    NO;
}
V(dot, const luma_tensor *b, (void)b)
V(mv, const luma_tensor *b, (void)b)
V(mm, const luma_tensor *b, (void)b)
V(bmm, const luma_tensor *b, (void)b)
V(matmul, const luma_tensor *b, (void)b)
V(softmax, int64_t d, (void)d)
V(log_softmax, int64_t d, (void)d)
V(cumsum, int64_t d, (void)d)
V(argsort, int64_t d C bool e, (void)d, (void)e)
V(index_select, int64_t d C const luma_tensor *i, (void)d, (void)i)
V(gather, int64_t d C const luma_tensor *i, (void)d, (void)i)
V(take, const luma_tensor *i, (void)i)
V(masked_select, const luma_tensor *i, (void)i)
V(scatter, int64_t d C const luma_tensor *i C const luma_tensor *s, (void)d, (void)i, (void)s)
V(scatter_add, int64_t d C const luma_tensor *i C const luma_tensor *s, (void)d, (void)i, (void)s)
V(index_add, int64_t d C const luma_tensor *i C const luma_tensor *s, (void)d, (void)i, (void)s)
V(index_copy, int64_t d C const luma_tensor *i C const luma_tensor *s, (void)d, (void)i, (void)s)
W luma_status luma_nonzero(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    (void)out, (void)x;
    NO;
}
W luma_status luma_max(luma_state *S, luma_tensor outs[2], bool h, int64_t dim, bool k,
                       const luma_tensor *x) {
    (void)outs, (void)h, (void)dim, (void)k, (void)x;
    NO;
}
W luma_status luma_min(luma_state *S, luma_tensor outs[2], bool h, int64_t dim, bool k,
                       const luma_tensor *x) {
    (void)outs, (void)h, (void)dim, (void)k, (void)x;
    NO;
}
W luma_status luma_sort(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim,
                        bool k) {
    (void)outs, (void)dim, (void)k, (void)x;
    NO;
}
W luma_status luma_topk(luma_state *S, luma_tensor outs[2], const luma_tensor *x, int64_t dim,
                        int64_t e, bool k) {
    (void)outs, (void)e, (void)dim, (void)k, (void)x;
    NO;
}
