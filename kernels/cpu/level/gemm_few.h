/* gemm_few.h -- a few rows of type T against many of type W, read once: gemm_type.h includes it for
** T itself, gemm.c for 16-bit floats with T float. G(name): the name of a function for W; WIDEN and
** WIDEN_PART read a vector of W, or its first n lanes, as T. */

/* y[i * ldy + j * sy] += x row i . w row j. `ways` vectors of a row run side by side. */
static INLINE void G(dots_of)(const int rows, const int columns, const int ways, int64_t k,
                              const T *x, int64_t ldx, const W *w, int64_t sw, T *y, int64_t ldy,
                              int64_t sy) {
    VEC sum[DOTS][STREAMS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < columns * ways; j++) sum[i][j] = (VEC){0};
    }
    int64_t p = 0;
    for (; p + ways * LANES <= k; p += ways * LANES) {
        UNROLL for (int q = 0; q < ways; q++) {
            VEC u[DOTS];
            UNROLL for (int i = 0; i < rows; i++) u[i] = F(load)(x + i * ldx + p + q * LANES);
            UNROLL for (int j = 0; j < columns; j++) {
                __builtin_prefetch(w + j * sw + p + q * LANES + AHEAD / (int)sizeof(W));
                VEC v = WIDEN(w + j * sw + p + q * LANES);
                UNROLL for (int i = 0; i < rows; i++) sum[i][j * ways + q] += u[i] * v;
            }
        }
    }
    for (; p < k; p += LANES) {
        const int n = (int)(k - p < LANES ? k - p : LANES);
        UNROLL for (int j = 0; j < columns; j++) {
            VEC v = WIDEN_PART(w + j * sw + p, n);
            UNROLL for (int i = 0; i < rows; i++) {
                sum[i][j * ways] += F(load_part)(x + i * ldx + p, n) * v;
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < columns; j++) {
            VEC all = sum[i][j * ways];
            UNROLL for (int q = 1; q < ways; q++) all += sum[i][j * ways + q];
            y[i * ldy + j * sy] += F(lanes_sum)(all);
        }
    }
}

/* The same for any number of rows; columns: STREAMS or 1. */
static void G(dots)(int rows, int columns, int64_t k, const void *xv, int64_t ldx, const void *w,
                    int64_t sw, void *yv, int64_t ldy, int64_t sy) {
    const T *x = xv;
    T *y = yv;
    for (int step; rows > 0; rows -= step, x += step * ldx, y += step * ldy) {
        step = rows >= DOTS ? DOTS : rows >= 2 ? 2 : 1;
        if (columns == 1) {
            step = 1;
            G(dots_of)(1, 1, STREAMS, k, x, ldx, w, sw, y, ldy, sy);
        } else if (step == DOTS) {
            G(dots_of)(DOTS, STREAMS, 1, k, x, ldx, w, sw, y, ldy, sy);
        } else if (step == 2) {
            G(dots_of)(2, STREAMS, 1, k, x, ldx, w, sw, y, ldy, sy);
        } else {
            G(dots_of)(1, STREAMS, 1, k, x, ldx, w, sw, y, ldy, sy);
        }
    }
}

/* y (rows, n) += x (rows, streams) w (streams, n); x[i * STREAMS + q]. */
static INLINE void G(sweep_of)(const int rows, const int streams, int64_t n, const W *w, int64_t sw,
                               const T *x, T *y, int64_t ldy) {
    T factor[SWEEP][STREAMS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int q = 0; q < streams; q++) factor[i][q] = x[i * STREAMS + q];
    }
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        VEC v[STREAMS];
        UNROLL for (int q = 0; q < streams; q++) {
            __builtin_prefetch(w + q * sw + j + AHEAD / (int)sizeof(W));
            v[q] = WIDEN(w + q * sw + j);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            VEC sum = F(load)(y + i * ldy + j);
            UNROLL for (int q = 0; q < streams; q++) sum += factor[i][q] * v[q];
            F(store)(y + i * ldy + j, sum);
        }
    }
    if (j == n) return;
    const int left = (int)(n - j);
    UNROLL for (int i = 0; i < rows; i++) {
        VEC sum = F(load_part)(y + i * ldy + j, left);
        UNROLL for (int q = 0; q < streams; q++) {
            sum += factor[i][q] * WIDEN_PART(w + q * sw + j, left);
        }
        F(store_part)(y + i * ldy + j, left, sum);
    }
}

/* The same for any number of rows; streams: STREAMS or 1. */
static void G(sweep)(int rows, int streams, int64_t n, const void *w, int64_t sw, const void *xv,
                     void *yv, int64_t ldy) {
    const T *x = xv;
    T *y = yv;
    for (int step; rows > 0; rows -= step, x += step * STREAMS, y += step * ldy) {
        step = rows >= SWEEP ? SWEEP : rows >= 2 ? 2 : 1;
        if (streams == 1) {
            step = 1;
            G(sweep_of)(1, 1, n, w, sw, x, y, ldy);
        } else if (step == SWEEP) {
            G(sweep_of)(SWEEP, STREAMS, n, w, sw, x, y, ldy);
        } else if (step == 2) {
            G(sweep_of)(2, STREAMS, n, w, sw, x, y, ldy);
        } else {
            G(sweep_of)(1, STREAMS, n, w, sw, x, y, ldy);
        }
    }
}

#undef W
#undef G
#undef WIDEN
#undef WIDEN_PART
