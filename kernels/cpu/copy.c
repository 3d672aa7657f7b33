/* copy.c -- the copy and fill slots of the CPU. Two dims are walked in blocks that stay in the L1
** cache, the others around them; threads share the blocks. Rows where both sides go the same way,
** tiles turned in a buffer where they do not. Layer: kernels/cpu. */
#include "cpu.h"

#include <string.h>

#include "pool.h"
#include "tensor.h"

#define BLOCK_BYTES (64 * 1024)         /* of a block of rows: between two looks at the flag */
#define STREAM_BYTES (16 * 1024 * 1024) /* results from here on pass the cache by */
#define FEW 8                           /* a dim too short to be the innermost one */
#define STRIP 512                       /* elements of a row that many short rows share in L1 */

typedef struct {
    luma_state *S;
    const lm_copy_kernels *kernels;
    lm_cast_fn *row; /* moves, or converts */
    int width;       /* of a dst element: 1 << width bytes */
    bool tiles, fills, stream;
    char *dst;
    const char *src;
    /* All strides in bytes. q is walked by kernels, p around it, block by block. */
    int64_t np, nq, dp, dq, sp, sq;
    int64_t bp, bq; /* size of a block */
    int nouter;
    int64_t outer[LUMA_MAX_DIMS], dstep[LUMA_MAX_DIMS], sstep[LUMA_MAX_DIMS];
    bool stopped; /* by the interrupt flag; written by any thread */
} job;

/* Dims of both sides, innermost last. */
typedef struct {
    int ndim;
    int64_t shape[LUMA_MAX_DIMS], d[LUMA_MAX_DIMS], s[LUMA_MAX_DIMS];
} dims;

/* ---- running ---------------------------------------------------------------------------------*/

static void run_rows(const job *j, int64_t np, int64_t nq, char *dst, const char *src) {
    size_t nbytes = (size_t)nq << j->width;
    for (int64_t i = 0; i < np; i++) {
        if (j->fills) {
            j->kernels->fill(nbytes, src, dst, j->stream);
        } else if (j->stream) {
            j->kernels->stream(nbytes, src, dst);
        } else {
            j->row(nq, src, j->sq, dst, j->dq);
        }
        src += j->sp;
        dst += j->dp;
    }
}

/* Rows of src are too far apart for the hardware to foresee; asking for the next tile's part
** of each doubles the speed of large transposes. */
static void fetch(const char *p, int64_t nbytes) {
    for (int64_t at = 0; at < nbytes; at += 64)
        __builtin_prefetch(p + at, 0, 2);
}

/* more: another tile follows along p. */
static void run_tile(const job *j, int64_t np, int64_t nq, char *dst, const char *src, bool more) {
    _Alignas(64) char buffer[LM_TILE_ROWS * LM_TILE_BYTES];
    int64_t nbytes = more && j->sp > 0 && j->sp <= 16 ? np * j->sp : 0;
    for (int64_t i = 0; i < nq; i++) {
        const char *row = src + i * j->sq;
        fetch(row + nbytes, nbytes);
        j->row(np, row, j->sp, buffer + i * LM_TILE_BYTES, (int64_t)1 << j->width);
    }
    j->kernels->transpose[j->width](nq, np, buffer, dst, j->dp, j->stream);
}

static int64_t blocks(int64_t n, int64_t block) {
    return (n + block - 1) / block;
}

static void run_block(const job *j, int64_t unit) {
    int64_t kp = unit % blocks(j->np, j->bp) * j->bp;
    unit /= blocks(j->np, j->bp);
    int64_t kq = unit % blocks(j->nq, j->bq) * j->bq;
    unit /= blocks(j->nq, j->bq);
    char *dst = j->dst + kp * j->dp + kq * j->dq;
    const char *src = j->src + kp * j->sp + kq * j->sq;
    for (int d = j->nouter - 1; d >= 0; d--) {
        int64_t at = unit % j->outer[d];
        unit /= j->outer[d];
        dst += at * j->dstep[d];
        src += at * j->sstep[d];
    }
    int64_t np = lm_min(j->bp, j->np - kp), nq = lm_min(j->bq, j->nq - kq);
    if (j->tiles) {
        run_tile(j, np, nq, dst, src, kp + j->bp < j->np);
    } else {
        run_rows(j, np, nq, dst, src);
    }
}

static void run_blocks(void *ctx, int64_t lo, int64_t hi) {
    job *j = ctx;
    for (int64_t unit = lo; unit < hi; unit++) {
        if (lm_interrupted(j->S)) {
            __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
            return;
        }
        run_block(j, unit);
    }
}

static luma_status run(job *j) {
    int64_t units = blocks(j->np, j->bp) * blocks(j->nq, j->bq);
    for (int d = 0; d < j->nouter; d++)
        units *= j->outer[d];
    int64_t bytes = lm_min(j->bp, j->np) * lm_min(j->bq, j->nq) << j->width;
    lm_parallel(j->S->threads, units, bytes < BLOCK_BYTES ? BLOCK_BYTES / bytes : 1, run_blocks, j);
    return j->stopped ? lm_fail_interrupted(j->S) : LUMA_OK;
}

/* ---- planning --------------------------------------------------------------------------------*/

/* Elements that lie together on both sides move as one of up to 16 bytes. */
static void widen(job *j, dims *x) {
    int q = x->ndim - 1;
    int64_t size = (int64_t)1 << j->width;
    if (x->ndim < 2 || x->d[q] != size || x->s[q] != size) return;
    int64_t bytes = x->shape[q] * size;
    if (bytes > 16 || (bytes & (bytes - 1)) != 0) return;
    j->width = __builtin_ctzll((unsigned long long)bytes);
    j->row = j->kernels->move[j->width];
    x->ndim--;
}

/* The dim along which src advances in the smallest steps; the innermost where it repeats. */
static int source_dim(const dims *x) {
    int best = x->ndim - 1;
    if (x->s[best] == 0) return best;
    for (int d = x->ndim - 2; d >= 0; d--) {
        if (x->s[d] != 0 && lm_abs(x->s[d]) < lm_abs(x->s[best])) best = d;
    }
    return best;
}

static void set_inner(job *j, const dims *x, int p, int q) {
    j->np = j->nq = 1;
    if (q >= 0) {
        j->nq = x->shape[q];
        j->dq = x->d[q];
        j->sq = x->s[q];
    }
    if (p >= 0) {
        j->np = x->shape[p];
        j->dp = x->d[p];
        j->sp = x->s[p];
    }
    for (int d = 0; d < x->ndim; d++) {
        if (d == p || d == q) continue;
        j->outer[j->nouter] = x->shape[d];
        j->dstep[j->nouter] = x->d[d];
        j->sstep[j->nouter++] = x->s[d];
    }
}

/* Whether every row of dst may start with a 64-byte store. */
static bool is_aligned(const job *j) {
    uint64_t bits = (uint64_t)(uintptr_t)j->dst | (uint64_t)j->dp;
    for (int d = 0; d < j->nouter; d++)
        bits |= (uint64_t)j->dstep[d];
    return bits % 64 == 0;
}

static void plan(job *j, const dims *x, int64_t numel) {
    int q = x->ndim - 1, k = x->ndim > 0 ? source_dim(x) : -1;
    int64_t size = (int64_t)1 << j->width;
    bool big = numel * size >= STREAM_BYTES;
    if (k == q) { /* both sides go the same way */
        int p = q - 1;
        bool few = p >= 0 && x->shape[q] < FEW && x->shape[p] > x->shape[q];
        set_inner(j, x, few ? q : p, few ? p : q);
        j->bq = few ? lm_min(j->nq, STRIP) : lm_min(j->nq, BLOCK_BYTES / size);
        j->bp = few ? j->np : lm_min(j->np, 1 + BLOCK_BYTES / (j->bq * size));
        bool dense =
            j->dq == size && (j->fills || (j->sq == size && j->row == j->kernels->move[j->width]));
        j->fills = j->fills && dense;
        j->stream = big && dense && j->nq * size >= 1024;
        return;
    }
    if (x->shape[k] < FEW || x->shape[q] < FEW) { /* one side has short runs: long strips, L1 */
        bool short_q = x->shape[q] < x->shape[k];
        set_inner(j, x, short_q ? q : k, short_q ? k : q);
        j->bq = lm_min(j->nq, STRIP);
        j->bp = j->np;
        return;
    }
    set_inner(j, x, k, q);
    j->tiles = j->dq == size;
    j->bq = LM_TILE_ROWS;
    j->bp = j->tiles ? LM_TILE_BYTES / size : LM_TILE_ROWS;
    j->stream = j->tiles && big && is_aligned(j);
}

/* ---- slots -----------------------------------------------------------------------------------*/

/* Flat, alike, and over before a plan is made. */
static bool is_small(const luma_tensor *dst, const luma_tensor *src) {
    const luma_layout *d = &dst->layout, *s = &src->layout;
    return d->ndim == 1 && d->stride[0] == 1 && s->stride[0] == 1 && dst->dtype == src->dtype &&
           d->shape[0] <= 4096;
}

luma_status lm_cpu_copy(luma_state *S, lm_device *device, const luma_tensor *dst,
                        const luma_tensor *src) {
    (void)device;
    const lm_level *level = lm_level_now();
    if (is_small(dst, src)) {
        memcpy(lm_data(dst), lm_data(src),
               (size_t)dst->layout.shape[0] * lm_dtype_size(dst->dtype));
        return LUMA_OK;
    }
    int64_t to = (int64_t)lm_dtype_size(dst->dtype), from = (int64_t)lm_dtype_size(src->dtype);
    job j = {.S = S, .kernels = level->copy, .dst = lm_data(dst), .src = lm_data(src)};
    dims x = {.ndim = dst->layout.ndim};
    for (int d = 0; d < x.ndim; d++) {
        x.shape[d] = dst->layout.shape[d];
        x.d[d] = dst->layout.stride[d] * to;
        x.s[d] = src->layout.stride[d] * from;
    }
    j.width = __builtin_ctz((unsigned)to);
    if (dst->dtype == src->dtype) {
        j.row = j.kernels->move[j.width];
        widen(&j, &x);
    } else {
        j.row = level->cast->cast[src->dtype][dst->dtype];
    }
    plan(&j, &x, luma_numel(dst));
    return run(&j);
}

luma_status lm_cpu_fill(luma_state *S, lm_device *device, const luma_tensor *dst,
                        const void *element) {
    (void)device;
    _Alignas(LM_FILL_PERIOD) char pattern[LM_FILL_PERIOD];
    size_t size = lm_dtype_size(dst->dtype);
    for (size_t at = 0; at < sizeof pattern; at += size)
        memcpy(pattern + at, element, size);
    job j = {.S = S,
             .kernels = lm_level_now()->copy,
             .fills = true,
             .dst = lm_data(dst),
             .src = pattern};
    dims x = {.ndim = dst->layout.ndim};
    for (int d = 0; d < x.ndim; d++) {
        x.shape[d] = dst->layout.shape[d];
        x.d[d] = dst->layout.stride[d] * (int64_t)size;
    }
    j.width = __builtin_ctz((unsigned)size);
    j.row = j.kernels->move[j.width];
    plan(&j, &x, luma_numel(dst));
    return run(&j);
}
