/* loops.h -- the 1-D loops of elementwise kernels; template: from elements of LM_C to elements of
** LM_R, names made by LM_LOOP. f is a constant at every call, so it melts into the loop. The output
** may be the very memory of an input: element i is read before it is written, and no other is
** looked at, which is what `omp simd` promises to the compiler. Layer: kernels/cpu/level. */

LM_FN void LM_LOOP(unary)(int64_t n, char *const *p, const int64_t *s, LM_C p0, LM_C p1,
                          LM_R (*f)(LM_C, LM_C, LM_C)) {
    if (s[0] == (int64_t)sizeof(LM_R) && s[1] == (int64_t)sizeof(LM_C)) {
        LM_R *r = (LM_R *)(void *)p[0];
        const LM_C *x = (const LM_C *)(void *)p[1];
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = f(x[i], p0, p1);
    } else {
        char *r = p[0];
        const char *x = p[1];
        for (int64_t i = 0; i < n; i++, r += s[0], x += s[1])
            *(LM_R *)(void *)r = f(*(const LM_C *)(const void *)x, p0, p1);
    }
}

LM_FN void LM_LOOP(binary)(int64_t n, char *const *p, const int64_t *s, LM_R (*f)(LM_C, LM_C)) {
    const int64_t size = (int64_t)sizeof(LM_C);
    LM_R *r = (LM_R *)(void *)p[0];
    const LM_C *x = (const LM_C *)(void *)p[1], *y = (const LM_C *)(void *)p[2];
    if (s[0] != (int64_t)sizeof(LM_R)) {
    } else if (s[1] == size && s[2] == size) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = f(x[i], y[i]);
        return;
    } else if (s[1] == size && s[2] == 0) {
        const LM_C c = *y;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = f(x[i], c);
        return;
    } else if (s[1] == 0 && s[2] == size) {
        const LM_C c = *x;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            r[i] = f(c, y[i]);
        return;
    }
    char *q = p[0];
    const char *u = p[1], *v = p[2];
    for (int64_t i = 0; i < n; i++, q += s[0], u += s[1], v += s[2])
        *(LM_R *)(void *)q = f(*(const LM_C *)(const void *)u, *(const LM_C *)(const void *)v);
}
