/* loops.h -- the 1-D walks of elementwise kernels; template: from elements of LM_C to elements of
** LM_R, names made by LM_LOOP. A row gives lines, functions over elements side by side; what lies
** otherwise goes through small buffers, so that the words of a row stand in the program once. The
** result may be the very memory of an input: element i is read before it is written, and no other is
** looked at, which is what `omp simd` promises to the compiler. Layer: kernels/cpu/level.
**
** stream: results pass the caches by. Lines of short words do so themselves when told, chunk by
** chunk; those of long words are written to a buffer, which then does. */

typedef void LM_LOOP(unary_line)(int64_t n, LM_R *r, const LM_C *x, LM_C p0, LM_C p1, bool stream);
typedef void LM_LOOP(binary_line)(int64_t n, LM_R *r, const LM_C *x, const LM_C *y, bool stream);

/* A chunk, computed in registers, leaves them past the caches. */
LM_FN void LM_LOOP(stream)(LM_R *r, const LM_R *t) {
    for (int64_t k = 0; k < LM_CHUNK * (int64_t)sizeof(LM_R); k += LM_VECTOR)
        lm_vector_stream((char *)r + k, lm_vector_load((const char *)t + k));
}

/* r[i] = f(x[i], ...). f is a constant at every call, so it melts into the loop. */
LM_FN void LM_LOOP(unary_loop)(int64_t n, LM_R *r, const LM_C *x, LM_C p0, LM_C p1, bool stream,
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
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(x[i], p0, p1);
}

/* One of x and y may be a single element. */
LM_FN void LM_LOOP(binary_loop)(int64_t n, LM_R *r, const LM_C *x, bool x_one, const LM_C *y,
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
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(x_one ? c : x[i], y_one ? d : y[i]);
}

/* n results to their place. */
LM_FN void LM_LOOP(put)(int64_t n, char *r, int64_t s, const LM_R *made, bool stream) {
    int64_t done = 0;
    for (; LM_STREAMS && stream && done + LM_CHUNK <= n; done += LM_CHUNK)
        LM_LOOP(stream)((LM_R *)(void *)r + done, made + done);
    for (; done < n; done++)
        *(LM_R *)(void *)(r + done * s) = made[done];
}

static __attribute__((noinline)) void LM_LOOP(unary_buffered)(int64_t n, char *const *p,
                                                              const int64_t *s, bool stream,
                                                              LM_C p0, LM_C p1,
                                                              LM_LOOP(unary_line) * line) {
    bool near = s[0] == (int64_t)sizeof(LM_R), sx = s[1] == (int64_t)sizeof(LM_C);
    bool buffer = !near || stream;
    _Alignas(64) LM_R made[LM_PIECE];
    _Alignas(64) LM_C held[LM_PIECE];
    for (int64_t i = 0; i < n; i += LM_PIECE) {
        int64_t m = n - i < LM_PIECE ? n - i : LM_PIECE;
        char *r = p[0] + i * s[0];
        const LM_C *x = LM_NAME(take)(m, p[1] + i * s[1], s[1], held, sx);
        line(m, buffer ? made : (LM_R *)(void *)r, x, p0, p1, false);
        if (buffer) LM_LOOP(put)(m, r, s[0], made, near && stream);
    }
}

/* long_word: line does not stream. */
static __attribute__((noinline)) void LM_LOOP(unary)(int64_t n, char *const *p, const int64_t *s,
                                                     bool stream, LM_C p0, LM_C p1, bool long_word,
                                                     LM_LOOP(unary_line) * line) {
    bool near = s[0] == (int64_t)sizeof(LM_R) && s[1] == (int64_t)sizeof(LM_C);
    stream = LM_STREAMS && stream;
    if (near && !(stream && long_word))
        line(n, (LM_R *)(void *)p[0], (const LM_C *)(void *)p[1], p0, p1, stream);
    else
        LM_LOOP(unary_buffered)(n, p, s, stream, p0, p1, line);
}

/* x_one, y_one: whether line takes a single x or y. */
static __attribute__((noinline)) void LM_LOOP(binary_buffered)(int64_t n, char *const *p,
                                                               const int64_t *s, bool stream,
                                                               LM_LOOP(binary_line) * line,
                                                               bool x_one, bool y_one) {
    const int64_t size = (int64_t)sizeof(LM_C);
    bool near = s[0] == (int64_t)sizeof(LM_R), buffer = !near || stream;
    bool sx = x_one || s[1] == size, sy = y_one || s[2] == size;
    _Alignas(64) LM_R made[LM_PIECE];
    _Alignas(64) LM_C held[2][LM_PIECE];
    for (int64_t i = 0; i < n; i += LM_PIECE) {
        int64_t m = n - i < LM_PIECE ? n - i : LM_PIECE;
        char *r = p[0] + i * s[0];
        const LM_C *x = LM_NAME(take)(m, p[1] + i * s[1], s[1], held[0], sx);
        const LM_C *y = LM_NAME(take)(m, p[2] + i * s[2], s[2], held[1], sy);
        line(m, buffer ? made : (LM_R *)(void *)r, x, y, false);
        if (buffer) LM_LOOP(put)(m, r, s[0], made, near && stream);
    }
}

/* line[0] takes all, line[1] a single x, line[2] a single y; a long word has but the first. */
static __attribute__((noinline)) void LM_LOOP(binary)(int64_t n, char *const *p, const int64_t *s,
                                                      bool stream, bool long_word,
                                                      LM_LOOP(binary_line) *const line[3]) {
    const int64_t size = (int64_t)sizeof(LM_C);
    bool sx = s[1] == size, sy = s[2] == size;
    int k = s[1] == 0 && sy && line[1] ? 1 : s[2] == 0 && sx && line[2] ? 2 : 0;
    bool near = s[0] == (int64_t)sizeof(LM_R) && (k > 0 || (sx && sy));
    stream = LM_STREAMS && stream;
    if (near && !(stream && long_word))
        line[k](n, (LM_R *)(void *)p[0], (const LM_C *)(void *)p[1], (const LM_C *)(void *)p[2],
                stream);
    else
        LM_LOOP(binary_buffered)(n, p, s, stream, line[k], k == 1, k == 2);
}
