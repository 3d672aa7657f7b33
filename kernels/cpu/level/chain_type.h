/* chain_type.h -- chains of rows in one float type. chain.c includes it with T the type, BITS the
** integer of its size, F(name) the name of a function for it. Layer: kernels/cpu/level. */
#define VEC F(vec)

typedef T VEC __attribute__((vector_size(LM_VECTOR)));
typedef BITS F(bits) __attribute__((vector_size(LM_VECTOR)));

LM_FN VEC F(load)(const char *p) {
    return (VEC)lm_vector_load(p);
}

LM_FN VEC F(root)(VEC v) {
#if LM_LANES == 4
    return sizeof(T) == 4 ? (VEC)_mm512_sqrt_ps((__m512)v) : (VEC)_mm512_sqrt_pd((__m512d)v);
#elif LM_LANES == 2
    return sizeof(T) == 4 ? (VEC)_mm256_sqrt_ps((__m256)v) : (VEC)_mm256_sqrt_pd((__m256d)v);
#elif defined(__SSE2__)
    return sizeof(T) == 4 ? (VEC)_mm_sqrt_ps((__m128)v) : (VEC)_mm_sqrt_pd((__m128d)v);
#else
    for (int i = 0; i < (int)(LM_VECTOR / sizeof(T)); i++)
        v[i] = (T)sqrt((double)v[i]); /* rounds float32 once, too */
    return v;
#endif
}

/* The words of ops.def; NaN passes both comparisons. */
LM_FN VEC F(word)(lm_chain_word word, VEC v, VEC x) {
    switch (word) {
    case LM_CHAIN_ADD:
        return v + x;
    case LM_CHAIN_SUB:
        return v - x;
    case LM_CHAIN_SUB_FROM:
        return x - v;
    case LM_CHAIN_MUL:
        return v * x;
    case LM_CHAIN_DIV:
        return v / x;
    case LM_CHAIN_DIV_INTO:
        return x / v;
    case LM_CHAIN_NEG:
        return -v;
    case LM_CHAIN_SQUARE:
        return v * v;
    case LM_CHAIN_SQRT:
        return F(root)(v);
    case LM_CHAIN_RELU:
        return (VEC)((F(bits))v & ~(F(bits))(v <= 0));
    default:
        return v;
    }
}

/* One link over the vectors of a chunk; word is a constant. */
LM_FN void F(link)(lm_chain_word word, VEC *v, const char *x, int64_t within) {
    UNROLL for (int k = 0; k < LM_CHAIN_VECTORS; k++) v[k] =
        F(word)(word, v[k], word < LM_CHAIN_NEG ? F(load)(x + k * within) : v[k]);
}

#define LINK(word)                                                                                 \
    case word:                                                                                     \
        F(link)(word, v, x, l->within);                                                            \
        break;
static void F(run)(int64_t chunks, int n, const lm_link *links, char *y, bool stream) {
    const int64_t size = LM_CHAIN_VECTORS * LM_VECTOR;
    for (int64_t at = 0; at < chunks * size; at += size) {
        VEC v[LM_CHAIN_VECTORS];
        const char *first = links->x + (links->within ? at : 0);
        UNROLL for (int k = 0; k < LM_CHAIN_VECTORS; k++) v[k] = F(load)(first + k * links->within);
        for (const lm_link *l = links + 1; l < links + n; l++) {
            const char *x = l->x + (l->within ? at : 0);
            switch (l->word) {
                LINK(LM_CHAIN_ADD)
                LINK(LM_CHAIN_SUB)
                LINK(LM_CHAIN_SUB_FROM)
                LINK(LM_CHAIN_MUL)
                LINK(LM_CHAIN_DIV)
                LINK(LM_CHAIN_DIV_INTO)
                LINK(LM_CHAIN_NEG)
                LINK(LM_CHAIN_SQUARE)
                LINK(LM_CHAIN_SQRT)
                LINK(LM_CHAIN_RELU)
            default:
                break;
            }
        }
        UNROLL for (int k = 0; k < LM_CHAIN_VECTORS; k++) {
            if (stream)
                lm_vector_stream(y + at + k * LM_VECTOR, (lm_v8)v[k]);
            else
                lm_vector_store(y + at + k * LM_VECTOR, (lm_v8)v[k]);
        }
    }
}

#undef LINK
#undef VEC
#undef T
#undef BITS
#undef F
