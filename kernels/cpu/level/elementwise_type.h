/* elementwise_type.h -- elementwise kernels of one compute type; template: elementwise.c sets LM_T.
** Layer: kernels/cpu/level. */
#include "words.h"

/* Which rows this type has, by their dtypes column: EACH_INTS(row) is row or nothing. */
#undef EACH_FLOATS
#undef EACH_NUMBERS
#undef EACH_INTS
#undef EACH_BITS
#if LM_KIND == LM_FLOAT
#define EACH_FLOATS(...) __VA_ARGS__
#define EACH_NUMBERS(...) __VA_ARGS__
#define EACH_INTS(...)
#define EACH_BITS(...)
#elif LM_KIND == LM_BOOL
#define EACH_FLOATS(...)
#define EACH_NUMBERS(...)
#define EACH_INTS(...)
#define EACH_BITS(...) __VA_ARGS__
#else
#define EACH_FLOATS(...)
#define EACH_NUMBERS(...) __VA_ARGS__
#define EACH_INTS(...) __VA_ARGS__
#define EACH_BITS(...) __VA_ARGS__
#endif
#define EACH_ALL(...) __VA_ARGS__

/* Elements of four vectors, which results of four bytes and more pass the caches by in; and of what
** buffers hold. */
#define LM_CHUNK (4 * LM_VECTOR / (int64_t)sizeof(LM_C))
#define LM_PIECE (1024 / (int64_t)sizeof(LM_C))

/* n elements s bytes apart side by side in held; x itself where it is there already. */
LM_FN const LM_C *LM_NAME(take)(int64_t n, const char *x, int64_t s, LM_C *held, bool there) {
    if (there) return (const LM_C *)(const void *)x;
    for (int64_t i = 0; i < n; i++, x += s)
        held[i] = *(const LM_C *)(const void *)x;
    return held;
}

#define LM_R LM_C
#define LM_STREAMS (sizeof(LM_C) >= 4)
#define LM_LOOP(name) LM_NAME(name)
#include "loops.h"

/* The mask blends: no branch. x or y may be a single element. */
typedef void LM_NAME(ternary_line)(int64_t n, LM_C *r, const uint8_t *m, const LM_C *x,
                                   const LM_C *y, bool stream);
LM_FN void LM_NAME(ternary_loop)(int64_t n, LM_C *r, const uint8_t *m, const LM_C *x, bool x_one,
                                 const LM_C *y, bool y_one, bool stream,
                                 LM_C (*f)(uint8_t, LM_C, LM_C)) {
    const LM_C c = *x, d = *y;
    int64_t done = 0;
    if (LM_STREAMS && stream) {
        for (; done + LM_CHUNK <= n; done += LM_CHUNK) {
            _Alignas(64) LM_C t[LM_CHUNK];
#pragma omp simd
            for (int64_t i = 0; i < LM_CHUNK; i++)
                t[i] = f(m[done + i], x_one ? c : x[done + i], y_one ? d : y[done + i]);
            LM_NAME(stream)(r + done, t);
        }
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(m[i], x_one ? c : x[i], y_one ? d : y[i]);
}

static __attribute__((noinline)) void LM_NAME(ternary_buffered)(int64_t n, char *const *p,
                                                                const int64_t *s,
                                                                LM_NAME(ternary_line) * line) {
    const int64_t size = (int64_t)sizeof(LM_C);
    bool near = s[0] == size, sx = s[2] == 0 || s[2] == size, sy = s[3] == 0 || s[3] == size;
    _Alignas(64) LM_C made[LM_PIECE];
    _Alignas(64) LM_C held[2][LM_PIECE];
    uint8_t mask[LM_PIECE];
    for (int64_t i = 0; i < n; i += LM_PIECE) {
        int64_t m = n - i < LM_PIECE ? n - i : LM_PIECE;
        char *r = p[0] + i * s[0];
        for (int64_t k = 0; k < m; k++)
            mask[k] = *(const uint8_t *)(p[1] + (i + k) * s[1]);
        const LM_C *x = LM_NAME(take)(m, p[2] + i * s[2], s[2], held[0], sx);
        const LM_C *y = LM_NAME(take)(m, p[3] + i * s[3], s[3], held[1], sy);
        line(m, near ? (LM_C *)(void *)r : made, mask, x, y, false);
        if (!near) LM_NAME(put)(m, r, s[0], made, false);
    }
}

/* line[a][b]: a, whether x is single; b, whether y is. */
static __attribute__((noinline)) void LM_NAME(ternary)(int64_t n, char *const *p, const int64_t *s,
                                                       bool stream,
                                                       LM_NAME(ternary_line) *const line[2][2]) {
    const int64_t size = (int64_t)sizeof(LM_C);
    LM_NAME(ternary_line) *f = line[s[2] == 0][s[3] == 0];
    if (s[0] == size && s[1] == 1 && (s[2] == 0 || s[2] == size) && (s[3] == 0 || s[3] == size)) {
        f(n, (LM_C *)(void *)p[0], (const uint8_t *)p[1], (const LM_C *)(void *)p[2],
          (const LM_C *)(void *)p[3], stream);
    } else {
        LM_NAME(ternary_buffered)(n, p, s, f);
    }
}
#undef LM_R
#undef LM_STREAMS
#undef LM_LOOP

#define LM_R uint8_t
#define LM_STREAMS 0
#define LM_LOOP(name) LM_NAME(name##_test)
#include "loops.h"
#undef LM_R
#undef LM_STREAMS
#undef LM_LOOP

/* Guards: whether any element is zero, or negative, is noted through params. p[0] is not used. */
#if LM_KIND == LM_SIGNED || LM_KIND == LM_UNSIGNED
LM_FN void LM_NAME(find)(int64_t n, const char *x, int64_t s, const lm_params *params,
                         uint8_t (*f)(LM_C)) {
    const LM_C *side = (const LM_C *)(const void *)x;
    uint8_t any = 0;
    if (s == (int64_t)sizeof(LM_C)) {
#pragma omp simd reduction(| : any)
        for (int64_t i = 0; i < n; i++)
            any |= f(side[i]);
    } else {
        for (int64_t i = 0; i < n; i++, x += s)
            any |= f(*(const LM_C *)(const void *)x);
    }
    if (any) __atomic_store_n(params->found, 1, __ATOMIC_RELAXED);
}
LM_FN uint8_t LM_NAME(is_zero)(LM_C x) {
    return x == 0;
}
LM_FN uint8_t LM_NAME(is_negative)(LM_C x) {
    return (x < 1) & (x != 0);
}
static void LM_NAME(find_zero)(int64_t n, char *const *p, const int64_t *s,
                               const lm_params *params) {
    LM_NAME(find)(n, p[1], s[1], params, LM_NAME(is_zero));
}
static void LM_NAME(find_negative)(int64_t n, char *const *p, const int64_t *s,
                                   const lm_params *params) {
    LM_NAME(find)(n, p[1], s[1], params, LM_NAME(is_negative));
}
#endif

/* Rows of angles. The complete word does not become vectors; the fast one does, and is right where
** no |x| of a block is past its bound. Blocks are whole chunks. */
#if LM_KIND == LM_FLOAT
LM_FN bool LM_NAME(angles_are_small)(int64_t n, const LM_C *x) {
    int past = 0;
#pragma omp simd reduction(| : past)
    for (int64_t i = 0; i < n; i++)
        past |= !LM_NAME(angle_is_small)(x[i]);
    return !past;
}
LM_FN LM_C LM_NAME(sin_of_small)(LM_C x, LM_C p0, LM_C p1) {
    (void)p0;
    (void)p1;
    return LM_NAME(sin_fast)(x);
}
LM_FN LM_C LM_NAME(cos_of_small)(LM_C x, LM_C p0, LM_C p1) {
    (void)p0;
    (void)p1;
    return LM_NAME(cos_fast)(x);
}
LM_FN LM_C LM_NAME(tan_of_small)(LM_C x, LM_C p0, LM_C p1) {
    (void)p0;
    (void)p1;
    return LM_NAME(tan_fast)(x);
}
LM_FN void LM_NAME(angles)(int64_t n, LM_C *r, const LM_C *x, LM_C (*fast)(LM_C, LM_C, LM_C),
                           LM_C (*complete)(LM_C, LM_C, LM_C)) {
    const int64_t block = 16 * LM_CHUNK;
    for (int64_t done = 0; done < n; done += block) {
        int64_t m = n - done < block ? n - done : block;
        if (LM_NAME(angles_are_small)(m, x + done))
            LM_NAME(unary_loop)(m, r + done, x + done, 0, 0, false, fast);
        else
            LM_NAME(unary_loop)(m, r + done, x + done, 0, 0, false, complete);
    }
}
#endif

/* The loop of a row; op is a constant. */
LM_FN void LM_NAME(unary_row)(lm_op op, int64_t n, LM_C *r, const LM_C *x, LM_C p0, LM_C p1,
                              bool stream, LM_C (*f)(LM_C, LM_C, LM_C)) {
#if LM_KIND == LM_FLOAT
    if (op == LM_OP_sin) {
        LM_NAME(angles)(n, r, x, LM_NAME(sin_of_small), f);
        return;
    }
    if (op == LM_OP_tan) {
        LM_NAME(angles)(n, r, x, LM_NAME(tan_of_small), f);
        return;
    }
    if (op == LM_OP_cos) {
        LM_NAME(angles)(n, r, x, LM_NAME(cos_of_small), f);
        return;
    }
#endif
    (void)op;
    LM_NAME(unary_loop)(n, r, x, p0, p1, stream, f);
}
LM_FN void LM_NAME(test_row)(lm_op op, int64_t n, uint8_t *r, const LM_C *x, LM_C p0, LM_C p1,
                             bool stream, uint8_t (*f)(LM_C, LM_C, LM_C)) {
    (void)op;
    LM_NAME(unary_loop_test)(n, r, x, p0, p1, stream, f);
}

/* One scalar function, its lines and one kernel per row. */
#define SCALAR(name) LM_NAME(name##_op)
#define LINE(name) LM_NAME(name##_line)
#define KERNEL(name) LM_NAME(name##_map)
#define MAP_ARGUMENTS int64_t n, char *const *p, const int64_t *s, const lm_params *params
#if LM_KIND == LM_FLOAT
#define PARAM(k) (LM_C) params->d[k]
#else
#define PARAM(k) (LM_C) params->i[k]
#endif

#undef BY_F64
#ifdef LM_ROWS_BY_F64
#define BY_F64(name, call)                                                                         \
    if (lm_is_wide(LM_OP_##name)) {                                                                \
        call;                                                                                      \
        return;                                                                                    \
    }
#else
#define BY_F64(name, call)
#endif
/* fmod and remainder in vectors; a chunk with a quotient that takes the library goes one by one. */
#undef BY_STEP
#if LM_KIND == LM_FLOAT
static __attribute__((noinline)) void LM_NAME(modulo)(int64_t n, LM_C *r, const LM_C *x, bool x_one,
                                                      const LM_C *y, bool y_one, bool floor) {
    const LM_C c = *x, d = *y;
    for (int64_t from = 0; from < n; from += LM_CHUNK) {
        const int64_t m = n - from < LM_CHUNK ? n - from : LM_CHUNK;
        LM_C value[LM_CHUNK], divisor[LM_CHUNK];
        int far = 0;
        for (int64_t i = 0; i < m; i++)
            value[i] = x_one ? c : x[from + i];
        for (int64_t i = 0; i < m; i++)
            divisor[i] = y_one ? d : y[from + i];
#pragma omp simd reduction(| : far)
        for (int64_t i = 0; i < m; i++) {
            far |= !LM_NAME(fmod_is_near)(value[i], divisor[i]);
            value[i] = LM_NAME(fmod_near)(value[i], divisor[i]);
        }
        for (int64_t i = 0; far && i < m; i++)
            value[i] = LM_NAME(fmod)(x_one ? c : x[from + i], divisor[i]);
#pragma omp simd
        for (int64_t i = 0; i < m; i++)
            r[from + i] = floor ? LM_NAME(remainder_of)(value[i], divisor[i]) : value[i];
    }
}
#define BY_STEP(name, x_one, y_one)                                                                \
    if (LM_OP_##name == LM_OP_fmod || LM_OP_##name == LM_OP_remainder) {                           \
        LM_NAME(modulo)                                                                            \
        (n, (LM_C *)(void *)r, x, x_one, y, y_one, LM_OP_##name == LM_OP_remainder);               \
        return;                                                                                    \
    }
#else
#define BY_STEP(name, x_one, y_one)
#endif
#define WIDE_LINE(name, line) lm_##name##_##line##_f64

#define UNARY_ROW(name, R, LOOP, loop, scalar, p0_, p1_, long_word)                                \
    LM_FN R SCALAR(name)(LM_C x, LM_C p0, LM_C p1) {                                               \
        (void)x, (void)p0, (void)p1;                                                               \
        return (R)(scalar);                                                                        \
    }                                                                                              \
    static void LINE(name)(int64_t n, R * r, const LM_C *x, LM_C p0, LM_C p1, bool stream) {       \
        BY_F64(name, lm_unary_by_f64(n, (float *)(void *)r, (const float *)(const void *)x,        \
                                     (lm_wide_unary *)(void (*)(void))WIDE_LINE(name, line)))      \
        loop(LM_OP_##name, n, r, x, p0, p1, !(long_word) && stream, SCALAR(name));                 \
    }                                                                                              \
    static void KERNEL(name)(MAP_ARGUMENTS) {                                                      \
        LOOP(n, p, s, params->stream, p0_, p1_, long_word, LINE(name));                            \
    }
#define BINARY_LINE(name, kind, R, loop, x_one, y_one, streams)                                    \
    static void LINE(name##_##kind)(int64_t n, R * r, const LM_C *x, const LM_C *y, bool stream) { \
        BY_F64(name,                                                                               \
               lm_binary_by_f64(n, (float *)(void *)r, (const float *)(const void *)x,             \
                                (const float *)(const void *)y,                                    \
                                (lm_wide_binary *)(void (*)(void))WIDE_LINE(name, kind##_line)))   \
        BY_STEP(name, x_one, y_one)                                                                \
        loop(n, r, x, x_one, y, y_one, (streams) && stream, SCALAR(name));                         \
    }
#define BINARY_ROW(name, R, LOOP, loop, scalar, long_word, streams)                                \
    LM_FN R SCALAR(name)(LM_C x, LM_C y) {                                                         \
        return (R)(scalar);                                                                        \
    }                                                                                              \
    BINARY_LINE(name, two, R, loop, false, false, streams)                                         \
    BINARY_LINE(name, x_one, R, loop, true, false, streams)                                        \
    BINARY_LINE(name, y_one, R, loop, false, true, streams)                                        \
    static void KERNEL(name)(MAP_ARGUMENTS) {                                                      \
        static void (*const lines[3])(int64_t, R *, const LM_C *, const LM_C *, bool) = {          \
            LINE(name##_two), (long_word) ? NULL : LINE(name##_x_one),                             \
            (long_word) ? NULL : LINE(name##_y_one)};                                              \
        LOOP(n, p, s, params->stream, !(streams), lines);                                          \
    }
#define TERNARY_LINE(name, x_one, y_one)                                                           \
    static void LINE(name##_##x_one##_##y_one)(int64_t n, LM_C * r, const uint8_t *m,              \
                                               const LM_C *x, const LM_C *y, bool stream) {        \
        LM_NAME(ternary_loop)(n, r, m, x, x_one, y, y_one, stream, SCALAR(name));                  \
    }
#define TERNARY_ROW(name, scalar)                                                                  \
    LM_FN LM_C SCALAR(name)(uint8_t x, LM_C y, LM_C z) {                                           \
        return scalar;                                                                             \
    }                                                                                              \
    TERNARY_LINE(name, false, false)                                                               \
    TERNARY_LINE(name, false, true)                                                                \
    TERNARY_LINE(name, true, false)                                                                \
    TERNARY_LINE(name, true, true)                                                                 \
    static void KERNEL(name)(MAP_ARGUMENTS) {                                                      \
        static LM_NAME(ternary_line) *const lines[2][2] = {                                        \
            {LINE(name##_false_false), LINE(name##_false_true)},                                   \
            {LINE(name##_true_false), LINE(name##_true_true)}};                                    \
        LM_NAME(ternary)(n, p, s, params->stream, lines);                                          \
    }

#define UNARY(name, dtypes, formula, domain, ulp, scalar, doc)                                     \
    EACH_##dtypes(                                                                                 \
        UNARY_ROW(name, LM_C, LM_NAME(unary), LM_NAME(unary_row), scalar, 0, 0, (ulp) > 0.5))
#define UNARY_P(name, dtypes, numbers, formula, domain, ulp, scalar, doc)                          \
    EACH_##dtypes(UNARY_ROW(name, LM_C, LM_NAME(unary), LM_NAME(unary_row), scalar, PARAM(0),      \
                            PARAM(1), (ulp) > 0.5))
#define TEST(name, dtypes, formula, scalar, doc)                                                   \
    EACH_##dtypes(                                                                                 \
        UNARY_ROW(name, uint8_t, LM_NAME(unary_test), LM_NAME(test_row), scalar, 0, 0, false))
#define BINARY(name, dtypes, formula, domain, ulp, scalar, doc)                                    \
    EACH_##dtypes(BINARY_ROW(name, LM_C, LM_NAME(binary), LM_NAME(binary_loop), scalar,            \
                             (ulp) > 0.5, (ulp) <= 0.5 && !lm_is_guarded(LM_OP_##name)))
#define COMPARE(name, dtypes, formula, scalar, doc)                                                \
    EACH_##dtypes(BINARY_ROW(name, uint8_t, LM_NAME(binary_test), LM_NAME(binary_loop_test),       \
                             scalar, false, true))
#define TERNARY(name, dtypes, formula, scalar, doc) EACH_##dtypes(TERNARY_ROW(name, scalar))
#define LM_ROWS_ALONE
#include "ops.def"

#undef SCALAR
#undef LINE
#undef KERNEL
#undef PARAM
#undef UNARY_ROW
#undef BINARY_LINE
#undef BINARY_ROW
#undef TERNARY_LINE
#undef TERNARY_ROW
#undef LM_CHUNK
#undef LM_PIECE
#undef MAP_ARGUMENTS
#undef EACH_ALL
#undef LM_T
