/* loops.h -- the 1-D loops of elementwise kernels; template: from elements of LM_C to elements of
** LM_R, names made by LM_LOOP. f and the flags are constants at every call, so they melt into the
** loop. The output may be the very memory of an input: element i is read before it is written, and
** no other is looked at, which is what `omp simd` promises to the compiler.
** Layer: kernels/cpu/level. */

/* A chunk, computed in registers, leaves them past the caches. */
LM_FN void LM_LOOP(stream)(LM_R *r, const LM_R *t) {
    for (int k = 0; k < 4; k++)
        lm_vector_stream((char *)r + k * LM_VECTOR,
                         lm_vector_load((const char *)t + k * LM_VECTOR));
}

/* r[i] = f(x[i], ...) side by side. */
LM_FN void LM_LOOP(unary_line)(int64_t n, LM_R *r, const LM_C *x, LM_C p0, LM_C p1, bool stream,
                               LM_R (*f)(LM_C, LM_C, LM_C)) {
    int64_t done = 0;
    if (LM_STREAMS && stream) {
        for (; done + LM_CHUNK <= n; done += LM_CHUNK) {
            _Alignas(64) LM_R t[LM_CHUNK];
#pragma omp simd
            for (int64_t i = 0; i < LM_CHUNK; i++)
                t[i] = f(x[done + i], p0, p1);
            LM_LOOP(stream)(r + done, t);
        }
        lm_stream_end();
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(x[i], p0, p1);
}

/* One of x and y may be a single element. */
LM_FN void LM_LOOP(binary_line)(int64_t n, LM_R *r, const LM_C *x, bool x_one, const LM_C *y,
                                bool y_one, bool stream, LM_R (*f)(LM_C, LM_C)) {
    const LM_C c = *x, d = *y;
    int64_t done = 0;
    if (LM_STREAMS && stream) {
        for (; done + LM_CHUNK <= n; done += LM_CHUNK) {
            _Alignas(64) LM_R t[LM_CHUNK];
#pragma omp simd
            for (int64_t i = 0; i < LM_CHUNK; i++)
                t[i] = f(x_one ? c : x[done + i], y_one ? d : y[done + i]);
            LM_LOOP(stream)(r + done, t);
        }
        lm_stream_end();
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(x_one ? c : x[i], y_one ? d : y[i]);
}

LM_FN void LM_LOOP(unary)(int64_t n, char *const *p, const int64_t *s, bool stream, LM_C p0,
                          LM_C p1, LM_R (*f)(LM_C, LM_C, LM_C)) {
    char *r = p[0];
    const char *x = p[1];
    if (s[0] == (int64_t)sizeof(LM_R) && s[1] == (int64_t)sizeof(LM_C)) {
        LM_LOOP(unary_line)
        (n, (LM_R *)(void *)r, (const LM_C *)(const void *)x, p0, p1, stream, f);
    } else {
        for (int64_t i = 0; i < n; i++, r += s[0], x += s[1])
            *(LM_R *)(void *)r = f(*(const LM_C *)(const void *)x, p0, p1);
    }
}

LM_FN void LM_LOOP(binary)(int64_t n, char *const *p, const int64_t *s, bool stream,
                           LM_R (*f)(LM_C, LM_C)) {
    const int64_t size = (int64_t)sizeof(LM_C);
    LM_R *r = (LM_R *)(void *)p[0];
    const LM_C *x = (const LM_C *)(void *)p[1], *y = (const LM_C *)(void *)p[2];
    bool line = s[0] == (int64_t)sizeof(LM_R);
    if (line && s[1] == size && s[2] == size) {
        LM_LOOP(binary_line)(n, r, x, false, y, false, stream, f);
    } else if (line && s[1] == size && s[2] == 0) {
        LM_LOOP(binary_line)(n, r, x, false, y, true, stream, f);
    } else if (line && s[1] == 0 && s[2] == size) {
        LM_LOOP(binary_line)(n, r, x, true, y, false, stream, f);
    } else {
        char *q = p[0];
        const char *u = p[1], *v = p[2];
        for (int64_t i = 0; i < n; i++, q += s[0], u += s[1], v += s[2])
            *(LM_R *)(void *)q = f(*(const LM_C *)(const void *)u, *(const LM_C *)(const void *)v);
    }
}
