/* make.h -- what the files that construct tensors share. Layer: bindings. */
#ifndef lm_make_h
#define lm_make_h

#include "binding.h"

typedef struct {
    luma_dtype dtype;   /* LUMA_NDTYPES: not said */
    const char *device; /* NULL: not said */
    int options;        /* argument of the options table; 0: none */
} lm_where;

/* The last argument: nothing, or options of these names, which NULL ends; a dtype alone too when the
** first of them is "dtype". */
void lm_read_options(lm_call *k, int arg, const char *const *names, lm_where *w);
void lm_read_where(lm_call *k, int arg, lm_where *w);
/* An error unless the shape is one that a tensor can have. */
void lm_check_sizes(lm_call *k, int arg, int n, const int64_t *shape, luma_dtype dtype);
/* Pushes a new tensor, contents not set; device NULL: the default one. */
luma_tensor *lm_make(lm_call *k, int ndim, const int64_t *shape, luma_dtype dtype,
                     const char *device);
/* Pushes one like argument 1 but for {dtype, device} at argument `options`. */
luma_tensor *lm_make_like(lm_call *k, int options);
/* In loops over elements, with the number of the element: raises when the user wants to stop. */
static inline void lm_poll(lm_call *k, int64_t i) {
    if (i % 8192 == 0 && lm_interrupted(k->c->S)) lm_raise(k, lm_fail_interrupted(k->c->S));
}
/* Leaves the tensor on top on w's device, the default one where none is said; returns 1, the number
** of results. */
int lm_finish(lm_call *k, const lm_where *w);

#endif
