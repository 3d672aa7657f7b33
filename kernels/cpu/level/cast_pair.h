/* cast_pair.h -- the conversion of LM_FROM to LM_TO; template. Layer: kernels/cpu/level. */
static void LM_NAME2(line, LM_TO, LM_FROM)(int64_t n, const char *x, char *y) {
    typedef LM_PASTE(lm_c, LM_FROM) from;
    typedef LM_PASTE(lm_c, LM_TO) to;
    enum { FROM = LM_PASTE(lm_id, LM_FROM), TO = LM_PASTE(lm_id, LM_TO) };
    if ((int)FROM == (int)TO) {
        memmove(y, x, (size_t)n * sizeof(to));
    } else if (goes_by_f32(FROM, TO)) {
        by_f32(n, x, sizeof(from), LM_PASTE(lm_line_odd, LM_FROM), y, sizeof(to),
               LM_NAME2(line, LM_TO, f32));
    } else {
        const from *a = (const from *)(const void *)x;
        to *b = (to *)(void *)y;
        int64_t done = 0;
        if ((int)FROM == LUMA_FLOAT16 && (int)TO == LUMA_FLOAT32)
            done = f16_to_f32(n, (const lm_f16 *)(const void *)x, (float *)(void *)y);
        if ((int)FROM == LUMA_FLOAT32 && (int)TO == LUMA_FLOAT16)
            done = f32_to_f16(n, (const float *)(const void *)x, (lm_f16 *)(void *)y);
#pragma omp simd
        for (int64_t i = done; i < n; i++)
            b[i] = LM_NAME2(to, LM_TO, LM_VIA)(LM_PASTE(lm_load, LM_FROM)(a[i]));
    }
}
static void LM_NAME2(cast, LM_TO, LM_FROM)(int64_t n, const char *x, int64_t sx, char *y,
                                           int64_t sy) {
    walk(n, x, sx, sizeof(LM_PASTE(lm_c, LM_FROM)), y, sy, sizeof(LM_PASTE(lm_c, LM_TO)),
         LM_NAME2(line, LM_TO, LM_FROM));
}
#undef LM_TO
