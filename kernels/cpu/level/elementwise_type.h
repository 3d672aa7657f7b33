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

/* Elements computed in registers, when results of four bytes and more pass the caches by. */
#define LM_CHUNK (4 * LM_VECTOR / (int64_t)sizeof(LM_C))
#define LM_R LM_C
#define LM_STREAMS (sizeof(LM_C) >= 4)
#define LM_LOOP(name) LM_NAME(name)
#include "loops.h"
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

/* The mask blends: no branch. x or y may be a single element. */
LM_FN void LM_NAME(ternary_line)(int64_t n, LM_C *r, const uint8_t *m, const LM_C *x, bool x_one,
                                 const LM_C *y, bool y_one, bool stream,
                                 LM_C (*f)(uint8_t, LM_C, LM_C)) {
    const LM_C c = *x, d = *y;
    int64_t done = 0;
    if (sizeof(LM_C) >= 4 && stream) {
        for (; done + LM_CHUNK <= n; done += LM_CHUNK) {
            _Alignas(64) LM_C t[LM_CHUNK];
#pragma omp simd
            for (int64_t i = 0; i < LM_CHUNK; i++)
                t[i] = f(m[done + i], x_one ? c : x[done + i], y_one ? d : y[done + i]);
            LM_NAME(stream)(r + done, t);
        }
        lm_stream_end();
    }
#pragma omp simd
    for (int64_t i = done; i < n; i++)
        r[i] = f(m[i], x_one ? c : x[i], y_one ? d : y[i]);
}

LM_FN void LM_NAME(ternary)(int64_t n, char *const *p, const int64_t *s, bool stream,
                            LM_C (*f)(uint8_t, LM_C, LM_C)) {
    const int64_t size = (int64_t)sizeof(LM_C);
    LM_C *r = (LM_C *)(void *)p[0];
    const uint8_t *m = (const uint8_t *)p[1];
    const LM_C *x = (const LM_C *)(void *)p[2], *y = (const LM_C *)(void *)p[3];
    bool line = s[0] == size && s[1] == 1;
    if (line && s[2] == size && s[3] == size) {
        LM_NAME(ternary_line)(n, r, m, x, false, y, false, stream, f);
    } else if (line && s[2] == size && s[3] == 0) {
        LM_NAME(ternary_line)(n, r, m, x, false, y, true, stream, f);
    } else if (line && s[2] == 0 && s[3] == size) {
        LM_NAME(ternary_line)(n, r, m, x, true, y, false, stream, f);
    } else if (line && s[2] == 0 && s[3] == 0) {
        LM_NAME(ternary_line)(n, r, m, x, true, y, true, stream, f);
    } else {
        char *q = p[0];
        const char *t = p[1], *u = p[2], *v = p[3];
        for (int64_t i = 0; i < n; i++, q += s[0], t += s[1], u += s[2], v += s[3])
            *(LM_C *)(void *)q = f(*(const uint8_t *)t, *(const LM_C *)(const void *)u,
                                   *(const LM_C *)(const void *)v);
    }
}

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
LM_FN void LM_NAME(angles)(int64_t n, char *const *p, const int64_t *s, bool stream,
                           LM_C (*fast)(LM_C, LM_C, LM_C), LM_C (*complete)(LM_C, LM_C, LM_C)) {
    const int64_t block = 16 * LM_CHUNK;
    for (int64_t done = 0; done < n; done += block) {
        int64_t m = n - done < block ? n - done : block;
        char *q[2] = {p[0] + done * s[0], p[1] + done * s[1]};
        if (s[1] == (int64_t)sizeof(LM_C) &&
            LM_NAME(angles_are_small)(m, (const LM_C *)(void *)q[1]))
            LM_NAME(unary)(m, q, s, stream, 0, 0, fast);
        else
            LM_NAME(unary)(m, q, s, false, 0, 0, complete);
    }
}
#endif

/* The loop of a row; op is a constant. */
LM_FN void LM_NAME(unary_row)(lm_op op, int64_t n, char *const *p, const int64_t *s, bool stream,
                              LM_C (*f)(LM_C, LM_C, LM_C)) {
#if LM_KIND == LM_FLOAT
    if (op == LM_OP_sin) {
        LM_NAME(angles)(n, p, s, stream, LM_NAME(sin_of_small), f);
        return;
    }
    if (op == LM_OP_cos) {
        LM_NAME(angles)(n, p, s, stream, LM_NAME(cos_of_small), f);
        return;
    }
#endif
    (void)op;
    LM_NAME(unary)(n, p, s, stream, 0, 0, f);
}

/* One scalar function and one kernel per row. */
#define SCALAR(name) LM_NAME(name##_op)
#define KERNEL(name) LM_NAME(name##_map)
#define MAP_ARGUMENTS int64_t n, char *const *p, const int64_t *s, const lm_params *params

#define UNARY(name, dtypes, formula, domain, ulp, scalar, doc)                                     \
    EACH_##dtypes(                                                                                 \
        LM_FN LM_C SCALAR(name)(LM_C x, LM_C p0, LM_C p1) {                                        \
            (void)p0;                                                                              \
            (void)p1;                                                                              \
            return scalar;                                                                         \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(unary_row)(LM_OP_##name, n, p, s, params->stream, SCALAR(name));               \
        })
#if LM_KIND == LM_FLOAT
#define PARAM(k) (LM_C) params->d[k]
#else
#define PARAM(k) (LM_C) params->i[k]
#endif
#define UNARY_P(name, dtypes, numbers, formula, domain, ulp, scalar, doc)                          \
    EACH_##dtypes(                                                                                 \
        LM_FN LM_C SCALAR(name)(LM_C x, LM_C p0, LM_C p1) {                                        \
            return scalar;                                                                         \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(unary)                                                                         \
            (n, p, s, params->stream, PARAM(0), PARAM(1), SCALAR(name));                           \
        })
#define TEST(name, dtypes, formula, scalar, doc)                                                   \
    EACH_##dtypes(                                                                                 \
        LM_FN uint8_t SCALAR(name)(LM_C x, LM_C p0, LM_C p1) {                                     \
            (void)p0;                                                                              \
            (void)p1;                                                                              \
            (void)x;                                                                               \
            return scalar;                                                                         \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(unary_test)(n, p, s, params->stream, 0, 0, SCALAR(name));                      \
        })
#define BINARY(name, dtypes, formula, domain, ulp, scalar, doc)                                    \
    EACH_##dtypes(                                                                                 \
        LM_FN LM_C SCALAR(name)(LM_C x, LM_C y) {                                                  \
            return scalar;                                                                         \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(binary)                                                                        \
            (n, p, s, params->stream, SCALAR(name));                                               \
        })
#define COMPARE(name, dtypes, formula, scalar, doc)                                                \
    EACH_##dtypes(                                                                                 \
        LM_FN uint8_t SCALAR(name)(LM_C x, LM_C y) {                                               \
            return (uint8_t)(scalar);                                                              \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(binary_test)(n, p, s, params->stream, SCALAR(name));                           \
        })
#define TERNARY(name, dtypes, formula, scalar, doc)                                                \
    EACH_##dtypes(                                                                                 \
        LM_FN LM_C SCALAR(name)(uint8_t x, LM_C y, LM_C z) {                                       \
            return scalar;                                                                         \
        } static void KERNEL(name)(MAP_ARGUMENTS) {                                                \
            LM_NAME(ternary)                                                                       \
            (n, p, s, params->stream, SCALAR(name));                                               \
        })
#define LM_ROWS_ALONE
#include "ops.def"

#undef SCALAR
#undef KERNEL
#undef PARAM
#undef LM_CHUNK
#undef MAP_ARGUMENTS
#undef EACH_ALL
#undef LM_T
