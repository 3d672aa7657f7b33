/* cast_pair.h -- the conversion of LM_FROM to LM_TO; template. Layer: kernels/cpu/level. */
static void LM_NAME2(cast, LM_TO, LM_FROM)(int64_t n, const char *x, int64_t sx, char *y,
                                           int64_t sy) {
    typedef LM_PASTE(lm_c, LM_FROM) from;
    typedef LM_PASTE(lm_c, LM_TO) to;
    enum { FROM = LM_PASTE(lm_id, LM_FROM), TO = LM_PASTE(lm_id, LM_TO) };
    if ((int)FROM == (int)TO) {
        copy(n, x, sx, y, sy, sizeof(to));
    } else if (sx == (int64_t)sizeof(from) && sy == (int64_t)sizeof(to)) {
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
    } else {
        for (int64_t i = 0; i < n; i++, x += sx, y += sy) {
            from v = *(const from *)(const void *)x;
            *(to *)(void *)y = LM_NAME2(to, LM_TO, LM_VIA)(LM_PASTE(lm_load, LM_FROM)(v));
        }
    }
}
#undef LM_TO
