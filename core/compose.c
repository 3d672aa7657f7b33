/* compose.c -- the scope of temporaries of operations that are made of others. Layer: core. */
#include "compose.h"

void lm_scope_open(lm_scope *s, luma_state *S) {
    s->S = S;
    s->status = LUMA_OK;
    s->n = 0;
}

luma_tensor *lm_temp(lm_scope *s) {
    /* the last place serves all who ask for more, whom the failure keeps from using it */
    if (s->n == LM_MAX_TEMPS) {
        if (s->status == LUMA_OK)
            s->status = lm_fail(s->S, LUMA_ERR_ARGUMENT, 0, "too many steps for one operation");
        return &s->temps[s->n - 1];
    }
    s->temps[s->n] = LUMA_NEW;
    return &s->temps[s->n++];
}

luma_tensor *lm_temp_cast(lm_scope *s, const luma_tensor *x, luma_dtype dtype) {
    luma_tensor *t = lm_temp(s);
    LM_DO(s, lm_cast(s->S, t, x, dtype));
    return t;
}

void lm_temp_drop(lm_scope *s, luma_tensor *temp) {
    luma_release(s->S, temp);
}

luma_status lm_give(lm_scope *s, luma_tensor *out, luma_tensor *x) {
    if (!out->storage) {
        *out = *x;
        *x = LUMA_NEW;
        return LUMA_OK;
    }
    lm_result r;
    LM_TRY(lm_result_open(s->S, &r, out, lm_device_of(x), x->dtype, x->layout.ndim, x->layout.shape,
                          NULL, 0, 0));
    return lm_result_close(s->S, &r, lm_copy(s->S, &r.work, x));
}

luma_status lm_scope_close(lm_scope *s) {
    for (int i = s->n - 1; i >= 0; i--)
        luma_release(s->S, &s->temps[i]);
    return s->status;
}
