/* compose.h -- operations that are made of others: a scope of temporaries, and what becomes of the
** result. Layer: core.
**
**     lm_scope s;
**     lm_scope_open(&s, S);
**     luma_tensor *d = lm_temp(&s), *e = lm_temp(&s);
**     LM_DO(&s, luma_sub(S, d, x, y));
**     LM_DO(&s, luma_square(S, e, d));
**     LM_DO(&s, luma_mean(S, out, e, 0, NULL, false));
**     return lm_scope_close(&s);
**
** After a failure nothing more runs. Arguments are checked before the first step, so that messages
** name those of the operation; a failure of a step names none. A step that writes *out must be the
** last, and the only one; else lm_give. */
#ifndef lm_compose_h
#define lm_compose_h

#include "tensor.h"

#define LM_MAX_TEMPS 32
typedef struct {
    luma_state *S;
    luma_status status;
    int n;
    luma_tensor temps[LM_MAX_TEMPS];
} lm_scope;

void lm_scope_open(lm_scope *s, luma_state *S);
/* A tensor that lives until the scope is closed: LUMA_NEW. */
luma_tensor *lm_temp(lm_scope *s);
/* x in a dtype, or x itself where that is its own: not to be written. A step of its own, never within
** LM_DO. */
luma_tensor *lm_temp_cast(lm_scope *s, const luma_tensor *x, luma_dtype dtype);
/* Releases a temporary before that. */
void lm_temp_drop(lm_scope *s, luma_tensor *temp);
/* *out becomes the temporary x; a tensor to write into, which must have its shape, dtype and device,
** takes its elements. lm_cast does the same in another dtype. */
luma_status lm_give(lm_scope *s, luma_tensor *out, luma_tensor *x);
/* Releases the temporaries and returns how it went. */
luma_status lm_scope_close(lm_scope *s);

#define LM_DO(scope, call)                                                                         \
    do {                                                                                           \
        if ((scope)->status == LUMA_OK && ((scope)->status = (call)) != LUMA_OK)                   \
            (scope)->S->argument = 0;                                                              \
    } while (0)

#endif
