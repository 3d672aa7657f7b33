/* normalize_float.h -- rows brought to a mean and a scale, of one float type. Template: define TOKEN
** (f32, f64) and TYPE. Layer: kernels/cpu/level. */
#define FN_(name, token) name##_##token
#define FN__(name, token) FN_(name, token)
#define FN(name) FN__(name, TOKEN)

/* y = ((x - high) - low) * scale * w + b: the mean in two parts, for what float32 loses of it. */
LM_LANE void FN(line)(int64_t n, const TYPE *x, TYPE *restrict y, double mean, double scale,
                      const TYPE *w, const TYPE *b, int64_t step, bool has_w, bool has_b) {
    TYPE high = (TYPE)mean, low = (TYPE)(mean - (double)high), s = (TYPE)scale;
    for (int64_t i = 0; i < n; i++) {
        TYPE v = ((x[i] - high) - low) * s;
        if (has_w) v *= w[i * step];
        if (has_b) v += b[i * step];
        y[i] = v;
    }
}

LM_LANE void FN(lines)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                       const lm_normal *l, int64_t step, bool has_w, bool has_b) {
    const TYPE *w = l->weight, *b = l->bias;
    for (int64_t i = 0; i < m; i++) {
        FN(line)
        (n, (const TYPE *)(const void *)(x + i * sx), (TYPE *)(void *)(y + i * sy), l->mean[i],
         l->scale[i], has_w ? w + i * l->row : w, has_b ? b + i * l->row : b, step, has_w, has_b);
    }
}

static void FN(apply)(int64_t m, int64_t n, const char *x, int64_t sx, char *y, int64_t sy,
                      const lm_normal *l) {
    if (l->step == 0) {
        if (l->weight && l->bias)
            FN(lines)(m, n, x, sx, y, sy, l, 0, true, true);
        else if (l->weight)
            FN(lines)(m, n, x, sx, y, sy, l, 0, true, false);
        else if (l->bias)
            FN(lines)(m, n, x, sx, y, sy, l, 0, false, true);
        else
            FN(lines)(m, n, x, sx, y, sy, l, 0, false, false);
    } else if (l->weight && l->bias) {
        FN(lines)(m, n, x, sx, y, sy, l, 1, true, true);
    } else if (l->weight) {
        FN(lines)(m, n, x, sx, y, sy, l, 1, true, false);
    } else {
        FN(lines)(m, n, x, sx, y, sy, l, 1, false, true);
    }
}

#undef FN
#undef FN_
#undef FN__
#undef TOKEN
#undef TYPE
