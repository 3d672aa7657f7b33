/* emulator_bugs.cu -- kernels that are right, and kernels each with one mistake, for the self-test
** of the emulated device. Uses its words only. */
#include "emulator/shim.h"
#include "emulator_bugs.h"

#define ALL 0xffffffffu
#define KERNEL_OF(name) LM_EMU_KERNEL(name, bug_args)
#define EACH(i, n)                                                                                 \
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                    \
         i += (uint64_t)blockDim.x * gridDim.x)

/* ---- right ---- */

KERNEL_OF(set_one) {
    EACH(i, a.n) a.y[i] = 1.0f;
}

KERNEL_OF(add_one) {
    EACH(i, a.n) a.y[i] = a.x[i] + 1.0f;
}

KERNEL_OF(rotate) {
    __shared__ float s[1024];
    unsigned t = threadIdx.x, first = blockIdx.x * blockDim.x;
    s[t] = a.x[first + t];
    __syncthreads();
    a.y[first + t] = s[(t + 1) % blockDim.x];
}

KERNEL_OF(sum_atomic) {
    EACH(i, a.n) atomicAdd(&a.y[0], a.x[i]);
}

/* The sum of a value over the block, in every thread; s has 32 numbers and may be used again. */
static float block_sum(float v, float *s) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(ALL, v, d);
    if (lane == 0) s[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < warps ? s[lane] : 0.0f;
        for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(ALL, v, d);
        if (lane == 0) s[0] = v;
    }
    __syncthreads();
    v = s[0];
    __syncthreads();
    return v;
}

/* y[block] = the sum of the block's part and the number of threads, through the same memory. */
KERNEL_OF(sum_twice) {
    __shared__ float s[32];
    float v = a.x[blockIdx.x * blockDim.x + threadIdx.x];
    float sum = block_sum(v, s), threads = block_sum(1.0f, s);
    if (threadIdx.x == 0) a.y[blockIdx.x] = sum + threads;
}

/* y[i] = x[0] + ... + x[i], in one block. */
KERNEL_OF(scan_block) {
    __shared__ float s[2][256];
    unsigned t = threadIdx.x, half = 0;
    s[0][t] = a.x[t];
    __syncthreads();
    for (unsigned d = 1; d < blockDim.x; d *= 2) {
        s[half ^ 1][t] = s[half][t] + (t >= d ? s[half][t - d] : 0.0f);
        half ^= 1;
        __syncthreads();
    }
    a.y[t] = s[half][t];
}

/* x[0 .. blocks) become partial sums; the last block adds them up into y[0]. */
KERNEL_OF(sum_last_block) {
    __shared__ float s[32];
    __shared__ unsigned done;
    float v = block_sum(a.y[1 + blockIdx.x * blockDim.x + threadIdx.x], s);
    if (threadIdx.x == 0) {
        a.x[blockIdx.x] = v;
        __threadfence();
        done = atomicAdd(a.count, 1u);
    }
    __syncthreads();
    if (done + 1 < gridDim.x) return;
    v = block_sum(threadIdx.x < gridDim.x ? a.x[threadIdx.x] : 0.0f, s);
    if (threadIdx.x == 0) a.y[0] = v;
}

KERNEL_OF(sum_dynamic) {
    float *s = (float *)lm_emu_dynamic_shared();
    s[threadIdx.x] = a.x[threadIdx.x];
    for (unsigned d = blockDim.x / 2; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    }
    if (threadIdx.x == 0) a.y[0] = s[0];
}

/* y[i] = how many lanes of the warp hold the same number. */
KERNEL_OF(match_lanes) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    a.y[i] = (float)__popc(__match_any_sync(ALL, (unsigned)a.x[i]));
}

/* Lanes that take different ways, with masks that say so; the last warp is not full. */
KERNEL_OF(uneven_warp) {
    unsigned i = threadIdx.x;
    unsigned mask = __ballot_sync(__ballot_sync(ALL, 1), i % 3 == 0);
    float v = a.x[i];
    if (i % 3 == 0) {
        unsigned lanes = (unsigned)__popc(mask);
        v = (float)lanes;
        __syncwarp(mask);
        v += __shfl_sync(mask, v, __ffs((int)mask) - 1);
    }
    int n = __syncthreads_count(i % 3 == 0);
    if (i == 7) return;
    __syncthreads();
    a.y[i] = v + (float)n + (__any_sync(__ballot_sync(ALL, 1), i == 8) ? 100.0f : 0.0f);
}

/* Every thread of a grid and block of three dims finds its own place. */
KERNEL_OF(volume) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
             z = blockIdx.z * blockDim.z + threadIdx.z;
    a.y[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] =
        (float)(x + 10 * y + 100 * z);
}

/* Neighbours write neighbouring bytes of a word, in memory of both kinds. */
KERNEL_OF(bytes) {
    __shared__ unsigned char s[64];
    s[threadIdx.x] = (unsigned char)threadIdx.x;
    __syncthreads();
    ((unsigned char *)a.y)[threadIdx.x] = s[63 - threadIdx.x];
}

KERNEL_OF(vectors) {
    float4 *y = (float4 *)a.y;
    const float4 *x = (const float4 *)a.x;
    EACH(i, a.n) {
        float4 v = x[i];
        float first = v.x;
        v.x = v.w;
        v.w = first;
        y[i] = v;
    }
}

/* What each word gives, 16 numbers for a thread; blocks of 64. */
KERNEL_OF(words) {
    unsigned t = threadIdx.x, *count = a.count;
    int v = (int)t;
    float *y = a.y + 16 * t;
    y[0] = (float)__shfl_sync(ALL, v, 3);
    y[1] = (float)__shfl_sync(ALL, v, 11, 8);
    y[2] = (float)__shfl_up_sync(ALL, v, 3);
    y[3] = (float)__shfl_up_sync(ALL, v, 3, 16);
    y[4] = (float)__shfl_down_sync(ALL, v, 5);
    y[5] = (float)__shfl_down_sync(ALL, v, 5, 8);
    y[6] = (float)__shfl_xor_sync(ALL, v, 9);
    y[7] = (float)__shfl_xor_sync(ALL, v, 4, 4);
    y[8] = (float)__shfl_sync(ALL, 0.5 + v, 31);
    y[9] = (float)(__syncthreads_or(t == 5) + 2 * __syncthreads_and(t != 5) +
                   4 * __syncthreads_count(t < 9));
    y[10] = (float)(__all_sync(ALL, t < 32) + 2 * __any_sync(ALL, t == 40));
    y[11] = (float)(__popc(t) + 10 * __ffs(v) + 1000 * __clz(v));
    atomicMax(&count[0], t);
    atomicMin(&count[1], t + 2);
    atomicSub(&count[2], 1u);
    atomicOr(&count[3], 1u << (t % 32));
    atomicAnd(&count[4], ~(1u << (t % 32)));
    atomicXor(&count[5], 1u << (t % 31));
    y[12] = (float)atomicInc(&count[6], 9u);
    y[13] = atomicCAS(&count[7], 0u, t + 1) == 0 ? 1.0f : 0.0f;
    y[14] = (float)atomicExch(&count[8], t);
    y[15] = (float)atomicAdd((unsigned long long *)(void *)&count[10], 1ull);
}

/* ---- wrong ---- */

KERNEL_OF(bug_no_barrier) {
    __shared__ float s[1024];
    unsigned t = threadIdx.x;
    s[t] = a.x[t];
    a.y[t] = s[(t + 1) % blockDim.x];
}

/* No barrier before the caller may use s again. */
static float careless_sum(float v, float *s) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(ALL, v, d);
    if (lane == 0) s[warp] = v;
    __syncthreads();
    v = 0;
    for (unsigned i = 0; i < warps; i++) v += s[i];
    return v;
}

KERNEL_OF(bug_reuse) {
    __shared__ float s[32];
    float once = careless_sum(a.x[threadIdx.x], s);
    a.y[threadIdx.x] = careless_sum(once, s);
}

KERNEL_OF(bug_write_past) {
    EACH(i, a.n + 1) a.y[i] = 1.0f;
}

KERNEL_OF(bug_write_far) {
    EACH(i, a.n) a.y[i + 100000] = 1.0f;
}

KERNEL_OF(bug_read_past) {
    EACH(i, a.n) a.y[i] = a.x[i + 1];
}

KERNEL_OF(bug_misaligned) {
    uint64_t *wide = (uint64_t *)(void *)(a.y + 1);
    *wide = 1;
}

KERNEL_OF(bug_partial_warp) {
    float v = a.x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(ALL, v, d);
    if (threadIdx.x == 0) a.y[0] = v;
}

KERNEL_OF(bug_lane_gone) {
    if (threadIdx.x == 5) return;
    float v = a.x[threadIdx.x];
    a.y[threadIdx.x] = __shfl_down_sync(ALL, v, 1);
}

KERNEL_OF(bug_mask) {
    float v = a.x[threadIdx.x];
    a.y[threadIdx.x] = __shfl_xor_sync(0xffffu, v, 1);
}

KERNEL_OF(bug_diverged) {
    if (threadIdx.x < 32) {
        __syncthreads();
        a.y[0] = 1;
    } else {
        __syncthreads();
        a.y[1] = 1;
    }
}

/* One lane waits in a barrier for the others, they in a meeting for it. */
KERNEL_OF(bug_deadlock) {
    if (threadIdx.x != 3) __syncwarp(ALL);
    __syncthreads();
    a.y[threadIdx.x] = 1;
}

KERNEL_OF(bug_plain_sum) {
    EACH(i, a.n) a.y[0] += a.x[i];
}

KERNEL_OF(bug_no_fence) {
    if (threadIdx.x > 0) return;
    a.x[blockIdx.x] = 1.0f;
    if (atomicAdd(a.count, 1u) + 1 < gridDim.x) return;
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++) sum += a.x[i];
    a.y[0] = sum;
}

KERNEL_OF(bug_dynamic_past) {
    float *s = (float *)lm_emu_dynamic_shared();
    s[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0) s[blockDim.x] = 2.0f;
    __syncthreads();
    a.y[threadIdx.x] = s[threadIdx.x];
}

KERNEL_OF(bug_shared_unset) {
    __shared__ float s[64];
    if (threadIdx.x != 3) s[threadIdx.x] = 1.0f;
    __syncthreads();
    a.y[threadIdx.x] = s[threadIdx.x];
}

KERNEL_OF(bug_shared_past) {
    __shared__ float s[64];
    __shared__ float other[64];
    s[threadIdx.x] = other[threadIdx.x] = 5.0f;
    __syncthreads();
    s[threadIdx.x + 1 - (unsigned)a.n] = 1.0f;
    __syncthreads();
    a.y[threadIdx.x] = s[threadIdx.x] + other[0];
}

/* More local memory than a thread has. */
static float deep(volatile float *below, uint64_t n) {
    volatile float here[1024];
    here[n % 1024] = *below + 1.0f;
    return n ? deep(&here[n % 1024], n - 1) + here[(n + 1) % 1024] * 0.0f : here[0];
}

KERNEL_OF(bug_stack) {
    volatile float start = 0;
    a.y[0] = deep(&start, a.n);
}
