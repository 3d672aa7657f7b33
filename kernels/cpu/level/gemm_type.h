/* gemm_type.h -- the matrix product in one accumulator type. gemm.c includes it once per type with
** T the type, LANES how many of it a vector holds and F(name) the name of a function for it.
** Strides count elements. */

#define NR (NV * LANES)
#define VEC F(vec)

typedef T F(vec) __attribute__((vector_size(LANES * sizeof(T)), may_alias));
/* the same anywhere in memory */
typedef T F(loose) __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef T F(quad) __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

static INLINE VEC F(load)(const T *p) {
    return *(const F(loose) *)p;
}
static INLINE void F(store)(T *p, VEC v) {
    *(F(loose) *)p = v;
}

/* The first n lanes, 1 <= n <= LANES; lanes past n read 0 and touch no memory. */
static INLINE VEC F(load_part)(const T *p, int n) {
#if defined(__AVX512F__)
    if (sizeof(T) == 4) return (VEC)_mm512_maskz_loadu_epi32((__mmask16)(0xffff >> (16 - n)), p);
    return (VEC)_mm512_maskz_loadu_epi64((__mmask8)(0xff >> (8 - n)), p);
#elif defined(__AVX2__)
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int words = n * (int)sizeof(T) / 4;
    return (VEC)_mm256_maskload_epi32((const void *)p,
                                      _mm256_cmpgt_epi32(_mm256_set1_epi32(words), lane));
#else
    VEC v = {0};
    UNROLL for (int i = 0; i < LANES; i++) {
        if (i < n) v[i] = p[i];
    }
    return v;
#endif
}
static INLINE void F(store_part)(T *p, int n, VEC v) {
#if defined(__AVX512F__)
    if (sizeof(T) == 4) {
        _mm512_mask_storeu_epi32(p, (__mmask16)(0xffff >> (16 - n)), (__m512i)v);
    } else {
        _mm512_mask_storeu_epi64(p, (__mmask8)(0xff >> (8 - n)), (__m512i)v);
    }
#else
    UNROLL for (int i = 0; i < LANES; i++) {
        if (i < n) p[i] = v[i];
    }
#endif
}
/* whole is a constant: the test vanishes where all lanes exist. */
static INLINE VEC F(get)(const T *p, const bool whole, int n) {
    return whole ? F(load)(p) : F(load_part)(p, n);
}
static INLINE void F(put)(T *p, const bool whole, int n, VEC v) {
    if (whole) {
        F(store)(p, v);
    } else {
        F(store_part)(p, n, v);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* c (rows, nv vectors) = or += a (rows, k) b (k, nv vectors). Every element of c is one running sum
** over k, whatever the tile: how rows and columns are cut changes no bit. ra, ka: strides of a's
** rows and columns; kb, ldc: of the rows of b and c. Unless whole, nv is 1 and n lanes exist. */
static INLINE void F(tile)(const int rows, const int nv, const bool whole, int n, int64_t k,
                           const T *a, int64_t ra, int64_t ka, const T *b, int64_t kb, T *c,
                           int64_t ldc, bool add) {
    VEC sum[MR][NV];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < nv; j++) sum[i][j] = (VEC){0};
    }
    for (int64_t p = 0; p < k; p++) {
        VEC w[NV];
        UNROLL for (int j = 0; j < nv; j++) w[j] = F(get)(b + j * LANES, whole, n);
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < nv; j++) sum[i][j] += a[i * ra] * w[j];
        }
        a += ka;
        b += kb;
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = c + i * ldc + j * LANES;
            if (add) sum[i][j] += F(get)(to, whole, n);
            F(put)(to, whole, n, sum[i][j]);
        }
    }
}

static INLINE void F(edge)(int rows, const int nv, const bool whole, int n, int64_t k, const T *a,
                           int64_t ra, int64_t ka, const T *b, int64_t kb, T *c, int64_t ldc,
                           bool add) {
    switch (rows) {
    case 1:
        F(tile)(1, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
    case 2:
        F(tile)(2, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
    case 3:
        F(tile)(3, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
#if EDGE > 4
    case 4:
        F(tile)(4, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
    case 5:
        F(tile)(5, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
#endif
#if EDGE > 6
    case 6:
        F(tile)(6, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
    case 7:
        F(tile)(7, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
#endif
    default:
        F(tile)(EDGE, nv, whole, n, k, a, ra, ka, b, kb, c, ldc, add);
        break;
    }
}

/* c (m, n) = or += a (m, k) b (k, n): columns of b and c lie side by side, a has any strides. */
ONCE static void F(small)(int64_t m, int64_t n, int64_t k, const void *av, int64_t ra, int64_t ka,
                          const void *bv, int64_t kb, void *cv, int64_t ldc, bool add) {
    for (int64_t j = 0; j < n;) {
        const T *a = av, *b = (const T *)bv + j;
        T *c = (T *)cv + j;
        int64_t columns = n - j;
        for (int64_t i = 0, left = m; left > 0;) {
            /* no group is much smaller than the others: few rows wait for each other's sums */
            const int64_t r = left >= 2 * EDGE || left == EDGE ? EDGE
                              : left > EDGE                    ? (left + 1) / 2
                                                               : left;
            const int rows = (int)r;
            if (columns >= NR) {
                F(edge)(rows, NV, true, 0, k, a + i * ra, ra, ka, b, kb, c + i * ldc, ldc, add);
            } else if (columns >= LANES) {
                F(edge)(rows, 1, true, 0, k, a + i * ra, ra, ka, b, kb, c + i * ldc, ldc, add);
            } else {
                F(edge)
                (rows, 1, false, (int)columns, k, a + i * ra, ra, ka, b, kb, c + i * ldc, ldc, add);
            }
            i += r;
            left -= r;
        }
        j += columns >= NR ? NR : columns >= LANES ? LANES : columns;
    }
}

/* c (m, n) = or += a (m, k) b (k, n), a in panels of MR rows, b in panels of NR columns. */
static void F(block)(int64_t m, int64_t n, int64_t k, const void *av, const void *bv, void *cv,
                     int64_t ldc, bool add) {
    const T *a = av, *b = bv;
    T *c = cv;
    for (int64_t j = 0; j < n; j += NR) {
        for (int64_t i = 0; i < m; i += MR) {
            if (m - i >= MR && n - j >= NR) {
                UNROLL for (int r = 0; r < MR; r++) {
                    UNROLL for (int q = 0; q < NV; q++)
                        __builtin_prefetch(c + (i + r) * ldc + j + q * LANES, 1);
                }
                F(tile)
                (MR, NV, true, 0, k, a + i * k, 1, MR, b + j * k, NR, c + i * ldc + j, ldc, add);
            } else {
                F(small)
                (m - i < MR ? m - i : MR, n - j < NR ? n - j : NR, k, a + i * k, 1, MR, b + j * k,
                 NR, c + i * ldc + j, ldc, add);
            }
        }
    }
}

/* One panel: `lines` lines (at most width) of k values, value p of line i to panel[p * width + i].
** sl, sk: strides from line to line and along a line. */
static void F(pack)(int64_t lines, int64_t width, int64_t k, const void *xv, int64_t sl, int64_t sk,
                    void *panelv) {
    enum { RUN = 64 }; /* so many values of all lines stay in L1 */
    const T *x = xv;
    T *panel = panelv;
    if (sl == 1 && lines == NR) {
        for (int64_t p = 0; p < k; p++) {
            UNROLL for (int j = 0; j < NV; j++) {
                F(store)(panel + p * width + j * LANES, F(load)(x + p * sk + j * LANES));
            }
        }
        return;
    }
    for (int64_t from = 0; from < k; from += RUN) {
        int64_t to = from + RUN < k ? from + RUN : k, i = 0;
        for (; i + 4 <= lines; i += 4) {
            const T *x0 = x + i * sl, *x1 = x0 + sl, *x2 = x1 + sl, *x3 = x2 + sl;
            for (int64_t p = from; p < to; p++) {
                *(F(quad) *)(panel + p * width + i) =
                    (F(quad)){x0[p * sk], x1[p * sk], x2[p * sk], x3[p * sk]};
            }
        }
        for (; i < lines; i++) {
            for (int64_t p = from; p < to; p++)
                panel[p * width + i] = x[i * sl + p * sk];
        }
    }
}

/* ---- tiles of rows that lie anywhere --------------------------------------------------------- */

/* As tile, where row p of b begins at b + at[p] and is read to the end of its vectors; a in panels,
** ka from column to column. First = instead of +=, bias (of the rows; may be NULL) is added. */
static INLINE void F(tile_at)(const int rows, const int nv, const bool whole, int n, int64_t k,
                              const T *a, int64_t ka, const T *b, const int32_t *at, T *c,
                              int64_t ldc, bool add, const T *bias) {
    VEC sum[MR][WIDE];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < nv; j++) sum[i][j] = (VEC){0};
    }
    for (int64_t p = 0; p < k; p++) {
        const T *row = b + at[p];
        VEC w[WIDE];
        UNROLL for (int j = 0; j < nv; j++) w[j] = F(load)(row + j * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < nv; j++) sum[i][j] += a[i] * w[j];
        }
        a += ka;
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = c + i * ldc + j * LANES;
            if (add) {
                sum[i][j] += F(get)(to, whole, n);
            } else if (bias) {
                sum[i][j] += bias[i];
            }
            F(put)(to, whole, n, sum[i][j]);
        }
    }
}

static INLINE void F(edge_at)(int rows, const int nv, const bool whole, int n, int64_t k,
                              const T *a, int64_t ka, const T *b, const int32_t *at, T *c,
                              int64_t ldc, bool add, const T *bias) {
    switch (rows) {
    case 1:
        F(tile_at)(1, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
    case 2:
        F(tile_at)(2, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
    case 3:
        F(tile_at)(3, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
#if EDGE > 4
    case 4:
        F(tile_at)(4, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
    case 5:
        F(tile_at)(5, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
#endif
#if EDGE > 6
    case 6:
        F(tile_at)(6, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
    case 7:
        F(tile_at)(7, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
#endif
    default:
        F(tile_at)(EDGE, nv, whole, n, k, a, ka, b, at, c, ldc, add, bias);
        break;
    }
}

/* One row of sums over a few products, whose factors stay in registers: k is a constant. Returns how
** many columns are done; the rest has less than WIDE vectors. */
static INLINE int64_t F(few_taps)(const int k, int64_t n, const T *a, int64_t ka, const T *b,
                                  const int32_t *at, T *c, const T *bias) {
    enum { MOST = 9 };
    const VEC zero = {0};
    VEC factor[MOST];
    const T *row[MOST];
    int64_t j = 0;
    UNROLL for (int p = 0; p < k; p++) {
        factor[p] = zero + a[p * ka];
        row[p] = b + at[p];
    }
    for (; j + WIDE * LANES <= n; j += WIDE * LANES) {
        VEC sum[WIDE];
        UNROLL for (int q = 0; q < WIDE; q++) sum[q] = zero;
        UNROLL for (int p = 0; p < k; p++) {
            UNROLL for (int q = 0; q < WIDE; q++) sum[q] +=
                factor[p] * F(load)(row[p] + j + q * LANES);
        }
        UNROLL for (int q = 0; q < WIDE; q++) {
            if (bias) sum[q] += *bias;
            F(store)(c + j + q * LANES, sum[q]);
        }
    }
    return j;
}

/* Rows i of n elements at y + i * sy: those from lo to hi come from x + i * sx, `step` apart; the others
** are 0. */
static void F(lines)(int64_t m, int64_t lo, int64_t hi, int64_t n, const void *xv, int64_t sx,
                     int64_t step, void *yv, int64_t sy) {
    const VEC zero = {0};
    const T *x = xv;
    T *y = yv;
    for (int64_t i = 0; i < m; i++, x += sx, y += sy) {
        int64_t j = 0;
        for (; j + LANES <= lo; j += LANES)
            F(store)(y + j, zero);
        if (j < lo) F(store_part)(y + j, (int)(lo - j), zero);
        const int64_t count = hi - lo;
        T *to = y + lo;
        if (step == 1) {
            for (j = 0; j + LANES <= count; j += LANES)
                F(store)(to + j, F(load)(x + j));
            if (j < count)
                F(store_part)(to + j, (int)(count - j), F(load_part)(x + j, (int)(count - j)));
        } else if (step == 2) {
            for (j = 0; j < count; j++)
                to[j] = x[2 * j];
        } else {
            for (j = 0; j < count; j++)
                to[j] = x[step * j];
        }
        for (j = hi; j + LANES <= n; j += LANES)
            F(store)(y + j, zero);
        if (j < n) F(store_part)(y + j, (int)(n - j), zero);
    }
}

/* c (m, n) = or += a (m, k) b (k, n): a in panels of `width` rows, at most MR. */
ONCE static void F(rows)(int64_t m, int64_t n, int64_t k, const void *av, int64_t width,
                         const void *bv, const int32_t *at, void *cv, int64_t ldc, bool add,
                         const void *bias_v) {
    int64_t done = 0;
    if (m == 1 && k == 9 && !add) done = F(few_taps)(9, n, av, width, bv, at, cv, bias_v);
    for (int64_t j = done; j < n;) {
        const T *b = (const T *)bv + j, *bias = bias_v;
        T *c = (T *)cv + j;
        const int64_t columns = n - j;
        if (m == 1 && columns >= WIDE * LANES) {
            F(tile_at)(1, WIDE, true, 0, k, av, width, b, at, c, ldc, add, bias);
            j += WIDE * LANES;
            continue;
        }
        for (int64_t i = 0; i < m; i += width) {
            for (int64_t from = 0, rows = m - i < width ? m - i : width; rows > 0;) {
                const int r = (int)(rows == MR ? MR : rows <= EDGE ? rows : (rows + 1) / 2);
                const T *a = (const T *)av + i * k + from;
                T *to = c + (i + from) * ldc;
                const T *own = bias ? bias + i + from : bias;
                if (r == MR && columns >= NR) {
                    F(tile_at)(MR, NV, true, 0, k, a, width, b, at, to, ldc, add, own);
                } else if (columns >= NR) {
                    F(edge_at)(r, NV, true, 0, k, a, width, b, at, to, ldc, add, own);
                } else if (columns >= LANES) {
                    if (r == MR) {
                        F(tile_at)(MR, 1, true, 0, k, a, width, b, at, to, ldc, add, own);
                    } else {
                        F(edge_at)(r, 1, true, 0, k, a, width, b, at, to, ldc, add, own);
                    }
                } else if (r == MR) {
                    F(tile_at)
                    (MR, 1, false, (int)columns, k, a, width, b, at, to, ldc, add, own);
                } else {
                    F(edge_at)(r, 1, false, (int)columns, k, a, width, b, at, to, ldc, add, own);
                }
                from += r;
                rows -= r;
            }
        }
        j += columns >= NR ? NR : columns >= LANES ? LANES : columns;
    }
}

/* ---- three by three ------------------------------------------------------------------------- */

/* Lanes from lo on and before hi: others read 0 and touch no memory. */
#if defined(__AVX512F__)
typedef __mmask16 F(lanes);
static INLINE F(lanes) F(lanes_of)(int lo, int hi) {
    return (F(lanes))((0xffff >> (16 - hi)) & (0xffff << lo));
}
static INLINE VEC F(load_lanes)(const T *p, F(lanes) lanes) {
    if (sizeof(T) == 4) return (VEC)_mm512_maskz_loadu_epi32(lanes, p);
    return (VEC)_mm512_maskz_loadu_epi64((__mmask8)lanes, p);
}
#elif defined(__AVX2__)
typedef __m256i F(lanes);
static INLINE F(lanes) F(lanes_of)(int lo, int hi) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int words = (int)sizeof(T) / 4;
    return _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(hi * words), lane),
                            _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(lo * words - 1)));
}
static INLINE VEC F(load_lanes)(const T *p, F(lanes) lanes) {
    return (VEC)_mm256_maskload_epi32((const void *)p, lanes);
}
#else
typedef struct {
    int lo, hi;
} F(lanes);
static INLINE F(lanes) F(lanes_of)(int lo, int hi) {
    return (F(lanes)){lo, hi};
}
static INLINE VEC F(load_lanes)(const T *p, F(lanes) lanes) {
    VEC v = {0};
    UNROLL for (int i = 0; i < LANES; i++) {
        if (i >= lanes.lo && i < lanes.hi) v[i] = p[i];
    }
    return v;
}
#endif

#if LANES == 16
#define EVERY(n)                                                                                   \
    n, n + 2, n + 4, n + 6, n + 8, n + 10, n + 12, n + 14, n + 16, n + 18, n + 20, n + 22, n + 24, \
        n + 26, n + 28, n + 30
#elif LANES == 8
#define EVERY(n) n, n + 2, n + 4, n + 6, n + 8, n + 10, n + 12, n + 14
#elif LANES == 4
#define EVERY(n) n, n + 2, n + 4, n + 6
#else
#define EVERY(n) n, n + 2
#endif

/* What the three taps of a row meet: elements from x, x + 1 and x + 2 on, each `step`-th. They are made
** of vectors that begin at these places. */
static const int F(three_at)[2][4] = {{0, 1, 2}, {0, LANES, 2, LANES + 2}};
static INLINE void F(load_three)(const int step, const bool whole, const T *x,
                                 const F(lanes) * lanes, VEC *v) {
    const int parts = step == 1 ? 3 : 4;
    VEC part[4];
    UNROLL for (int k = 0; k < parts; k++) {
        const T *p = x + F(three_at)[step - 1][k];
        part[k] = whole ? F(load)(p) : F(load_lanes)(p, lanes[k]);
    }
    if (step == 1) {
        UNROLL for (int k = 0; k < 3; k++) v[k] = part[k];
    } else {
        v[0] = __builtin_shufflevector(part[0], part[1], EVERY(0));
        v[1] = __builtin_shufflevector(part[0], part[1], EVERY(1));
        v[2] = __builtin_shufflevector(part[2], part[3], EVERY(0));
    }
}
#undef EVERY

/* `rows` rows of one vector of y; x: what the first column meets of the first row, which may lie
** outside, as may others; `above` rows of x come before it. f: the factors and the bias. */
static INLINE void F(three_rows)(const int rows, const int step, const bool whole, const VEC *f,
                                 const T *x, int64_t sx, int64_t above, int64_t height,
                                 const F(lanes) * lanes, T *y, int64_t sy, int n) {
    VEC sum[THREE];
    UNROLL for (int r = 0; r < rows; r++) sum[r] = (VEC){0};
    UNROLL for (int r = 0; r < (rows - 1) * step + 3; r++) {
        if (above + r >= 0 && above + r < height) {
            VEC v[3];
            F(load_three)(step, whole, x, lanes, v);
            UNROLL for (int i = 0; i < rows; i++) {
                const int k = r - i * step;
                if (k < 0 || k > 2) continue;
                UNROLL for (int j = 0; j < 3; j++) sum[i] += f[k * 3 + j] * v[j];
            }
        }
        x += sx;
    }
    UNROLL for (int r = 0; r < rows; r++) {
        F(put)(y, n == LANES, n, sum[r] + f[9]);
        y += sy;
    }
}

static INLINE void F(three_columns)(const int step, const bool whole, const lm_three *t,
                                    const VEC *f, const T *x, const F(lanes) * lanes, T *y, int n) {
    enum { FOUR = 4 };
    const int many = step == 1 ? THREE : FOUR;
    const int64_t sx = t->sx, sy = t->sy, height = t->height, m = t->m, top = t->top;
    int64_t i = 0;
    for (; i + many <= m; i += many)
        F(three_rows)
    (many, step, whole, f, x + i * step * sx, sx, i * step - top, height, lanes, y + i * sy, sy, n);
    for (; i + 2 <= m; i += 2)
        F(three_rows)
    (2, step, whole, f, x + i * step * sx, sx, i * step - top, height, lanes, y + i * sy, sy, n);
    if (i < m) F(three_rows)
    (1, step, whole, f, x + i * step * sx, sx, i * step - top, height, lanes, y + i * sy, sy, n);
}

static INLINE void F(three_by)(const int step, const lm_three *t) {
    const T *x = (const T *)t->x - t->top * t->sx, *factors = t->factors;
    VEC f[10] = {{0}};
    UNROLL for (int k = 0; k < 9; k++) f[k] += factors[k];
    if (t->bias) f[9] += *(const T *)t->bias;
    for (int64_t j = 0; j < t->n; j += LANES) {
        const int n = (int)(t->n - j < LANES ? t->n - j : LANES);
        const int64_t at = j * step - t->left;
        F(lanes) lanes[4];
        bool whole = true;
        for (int k = 0; k < (step == 1 ? 3 : 4); k++) {
            const int64_t first = at + F(three_at)[step - 1][k], after = t->width - first;
            const int lo = (int)(first >= 0 ? 0 : first < -LANES ? LANES : -first);
            const int hi = (int)(after <= 0 ? 0 : after < LANES ? after : LANES);
            lanes[k] = F(lanes_of)(lo, hi);
            whole = whole && lo == 0 && hi == LANES;
        }
        if (whole) {
            F(three_columns)(step, true, t, f, x + at, lanes, (T *)t->y + j, n);
        } else {
            F(three_columns)(step, false, t, f, x + at, lanes, (T *)t->y + j, n);
        }
    }
}

static void F(three)(const lm_three *t) {
    if (t->step == 1) {
        F(three_by)(1, t);
    } else {
        F(three_by)(2, t);
    }
}

/* ---- few rows: memory-bound ----------------------------------------------------------------- */

static INLINE T F(lanes_sum)(VEC v) {
    union {
        VEC whole;
        F(quad) part[LANES < 4 ? 1 : LANES / 4];
        T lane[LANES];
    } u = {v};
    if (LANES >= 4) {
        UNROLL for (int half = LANES / 8; half > 0; half /= 2) {
            UNROLL for (int i = 0; i < half; i++) u.part[i] += u.part[i + half];
        }
        return (u.part[0][0] + u.part[0][2]) + (u.part[0][1] + u.part[0][3]);
    }
    return u.lane[0] + u.lane[1];
}

#define W T
#define G(name) F(name)
#define WIDEN F(load)
#define WIDEN_PART F(load_part)
#include "gemm_few.h"

#undef T
#undef LANES
#undef F
#undef NR
#undef VEC
