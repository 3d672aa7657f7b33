/* copy.cu -- elements of one size from one view to another: one by one, or by tiles that are turned
** in shared memory, so that both sides are read and written along their rows. */
#include "cuda/kernel.h"

#define STRIDE(k) ((k) == 0 ? a.x_stride : a.y_stride)
#define COPY(bytes, T)                                                                             \
    LM_KERNEL(copy_##bytes) {                                                                      \
        LM_EACH(i, a.walk.n) {                                                                     \
            int64_t at[2];                                                                         \
            LM_OFFSETS(a.walk, i, 2, STRIDE, at);                                                  \
            *(T *)((char *)a.y + at[1]) = *(const T *)((const char *)a.x + at[0]);                 \
        }                                                                                          \
    }
COPY(1, uint8_t)
COPY(2, uint16_t)
COPY(4, uint32_t)
COPY(8, uint64_t)
COPY(16, uint4)

/* Blocks of LM_TURN by ROWS threads. */
#define ROWS 8
#define TURN_STRIDE(k)                                                                             \
    ((k) == 0 ? a.x_stride : (k) == 1 ? a.y_stride : (k) == 2 ? a.p_stride : a.q_stride)
#define TURN(bytes, T)                                                                             \
    LM_KERNEL(turn_##bytes) {                                                                      \
        __shared__ T tile[LM_TURN][LM_TURN + 1];                                                   \
        int col = (int)threadIdx.x % LM_TURN, row = (int)threadIdx.x / LM_TURN;                    \
        for (int64_t t = blockIdx.x; t < a.walk.n; t += gridDim.x) {                               \
            int64_t at[4];                                                                         \
            LM_OFFSETS(a.walk, t, 4, TURN_STRIDE, at);                                             \
            const char *x = (const char *)a.x + at[0];                                             \
            char *y = (char *)a.y + at[1];                                                         \
            int64_t np = a.np - at[2], nq = a.nq - at[3];                                          \
            for (int j = row; j < LM_TURN; j += ROWS) {                                            \
                if (col < np && j < nq) tile[j][col] = *(const T *)(x + col * a.xp + j * a.xq);    \
            }                                                                                      \
            __syncthreads();                                                                       \
            for (int j = row; j < LM_TURN; j += ROWS) {                                            \
                if (j < np && col < nq) *(T *)(y + j * a.yp + col * a.yq) = tile[col][j];          \
            }                                                                                      \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
TURN(1, uint8_t)
TURN(2, uint16_t)
TURN(4, uint32_t)
TURN(8, uint64_t)
