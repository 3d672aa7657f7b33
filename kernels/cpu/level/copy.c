/* copy.c -- moving elements by their size, whatever they mean: rows, streams, transposed tiles,
** fills. Strides and counts named n... in bytes where said. Built once per level.
** Layer: kernels/cpu. */
#include "cpu/level.h"
#include "cpu/vector.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- rows ------------------------------------------------------------------------------------*/

/* With constant strides the compiler makes vectors of it. memcpy of a constant size is one load and
** one store, aligned or not. */
INLINE void move_by(int64_t n, const char *restrict x, int64_t sx, char *restrict y, int64_t sy,
                    size_t size) {
    for (int64_t i = 0; i < n; i++)
        memcpy(y + i * sy, x + i * sx, size);
}

INLINE void move(int64_t n, const char *x, int64_t sx, char *y, int64_t sy, size_t size) {
    const int64_t step = (int64_t)size;
    if (sy != step) {
        move_by(n, x, sx, y, sy, size);
    } else if (sx == step) {
        memcpy(y, x, (size_t)n * size);
    } else if (sx == 0) {
        move_by(n, x, 0, y, step, size);
    } else if (sx == -step) {
        move_by(n, x, -step, y, step, size);
    } else if (sx == 2 * step) {
        move_by(n, x, 2 * step, y, step, size);
    } else if (sx == 3 * step) {
        move_by(n, x, 3 * step, y, step, size);
    } else if (sx == 4 * step) {
        move_by(n, x, 4 * step, y, step, size);
    } else {
        move_by(n, x, sx, y, step, size);
    }
}

/* ---- transposed tiles ------------------------------------------------------------------------*/

/* Registers of a tile hold element c of all rows once `stages` perfect shuffles are through:
** zipping register i with register i + half moves the top bit of the row number to the bottom of
** the column number. */
INLINE void shuffle_tile(lm_v8 *v, int registers, int size) {
    for (int width = 1; width < registers; width *= 2) {
        lm_v8 t[16];
        for (int i = 0; i < registers / 2; i++) {
            lm_vector_zip(v[i], v[i + registers / 2], size, &t[2 * i], &t[2 * i + 1]);
        }
        for (int i = 0; i < registers; i++)
            v[i] = t[i];
    }
}

INLINE void load_tile(lm_v8 *v, const char *x, int size) {
    const int registers = 16 / size; /* a lane holds as many elements */
    for (int r = 0; r < registers; r++) {
        v[r] = lm_vector_gather_lanes(x + r * LM_TILE_BYTES, registers * LM_TILE_BYTES);
    }
    shuffle_tile(v, registers, size);
}

/* A tile at the edge: `columns` columns of `nbytes`. */
INLINE void edge_tile(const char *x, char *y, int64_t sy, int columns, size_t nbytes, int size) {
    lm_v8 v[16];
    load_tile(v, x, size);
    for (int c = 0; c < columns; c++)
        memcpy(y + c * sy, &v[c], nbytes);
}

INLINE void transpose(int64_t m, int64_t n, const char *x, char *y, int64_t sy, int size,
                      bool stream) {
    const int columns = 16 / size, rows = LM_VECTOR / size;
    for (int64_t j = 0; j < n; j += columns) {
        const char *from = x + j * size;
        char *to = y + j * sy;
        int64_t i = 0;
        int wide = n - j < columns ? (int)(n - j) : columns;
        for (; m - i >= rows && wide == columns; i += rows) {
            lm_v8 v[16];
            load_tile(v, from + i * LM_TILE_BYTES, size);
            for (int c = 0; c < columns; c++) {
                if (stream) {
                    lm_vector_stream(to + c * sy + i * size, v[c]);
                } else {
                    lm_vector_store(to + c * sy + i * size, v[c]);
                }
            }
        }
        for (; i < m; i += rows) {
            size_t nbytes = (size_t)((m - i < rows ? m - i : rows) * size);
            edge_tile(from + i * LM_TILE_BYTES, to + i * size, sy, wide, nbytes, size);
        }
    }
    if (stream) lm_stream_end();
}

#define BY_SIZE(size)                                                                              \
    static void move_##size(int64_t n, const char *x, int64_t sx, char *y, int64_t sy) {           \
        move(n, x, sx, y, sy, size);                                                               \
    }                                                                                              \
    static void transpose_##size(int64_t m, int64_t n, const char *x, char *y, int64_t sy,         \
                                 bool stream) {                                                    \
        if (stream) {                                                                              \
            transpose(m, n, x, y, sy, size, true);                                                 \
        } else {                                                                                   \
            transpose(m, n, x, y, sy, size, false);                                                \
        }                                                                                          \
    }
BY_SIZE(1)
BY_SIZE(2)
BY_SIZE(4)
BY_SIZE(8)
BY_SIZE(16)

/* ---- streams ---------------------------------------------------------------------------------*/

/* memcpy past the cache. */
static void stream(size_t nbytes, const char *x, char *y) {
    lm_stream_copy(nbytes, x, y);
    lm_stream_end();
}

/* pattern: LM_FILL_PERIOD bytes that repeat from y on. past: leave the cache alone. */
static void fill(size_t nbytes, const char *pattern, char *y, bool past) {
    char twice[2 * LM_FILL_PERIOD];
    memcpy(twice, pattern, LM_FILL_PERIOD);
    memcpy(twice + LM_FILL_PERIOD, pattern, LM_FILL_PERIOD);
    size_t head = lm_to_vector(y);
    if (head > nbytes) head = nbytes;
    memcpy(y, pattern, head);
    lm_v8 v = lm_vector_load(twice + head);
    size_t at = head;
    if (past) {
        for (; nbytes - at >= LM_VECTOR; at += LM_VECTOR)
            lm_vector_stream(y + at, v);
        lm_stream_end();
    } else {
        for (; nbytes - at >= LM_VECTOR; at += LM_VECTOR)
            lm_vector_store(y + at, v);
    }
    memcpy(y + at, twice + head, nbytes - at);
}

extern const lm_copy_kernels LM_TABLE(copy);
const lm_copy_kernels LM_TABLE(copy) = {
    .move = {move_1, move_2, move_4, move_8, move_16},
    .transpose = {transpose_1, transpose_2, transpose_4, transpose_8, transpose_16},
    .stream = stream,
    .fill = fill,
};
