/* shim.h -- the words of CUDA C for the host compiler, C11 and C++17 with GNU extensions: what a
** kernel may say, each word a call into the runtime that runs its grid. Layer: kernels.
**
** A kernel has one parameter, a struct by value:
**   LM_EMU_KERNEL(name, args_type) { ... a.field ... }
** It makes the record lm_emu_kernel_<name>; the runtime knows the records that its list names. */
#ifndef lm_emu_shim_h
#define lm_emu_shim_h

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __clang__ /* words with optional arguments; g++ has no other way before C++20 */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    unsigned x, y, z;
} lm_emu_dim3;

/* One thread of the running block. */
typedef struct {
    lm_emu_dim3 index;
    unsigned linear; /* x runs fastest: warp = linear / 32, lane = linear % 32 */
} lm_emu_thread;

/* A place in the source where threads meet. Its address is its identity. */
typedef struct {
    const char *file;
    int line;
} lm_emu_site;

typedef struct {
    const char *name;
    void (*start)(const void *args);
    unsigned size, align; /* of the parameter */
} lm_emu_kernel;

#define LM_EMU_INSIDE __attribute__((visibility("hidden")))
/* What a kernel can ask of its place. */
typedef struct {
    lm_emu_thread *self;
    lm_emu_dim3 block_index, block_size, grid_size;
} lm_emu_place;
extern LM_EMU_INSIDE lm_emu_place lm_emu_here;

typedef enum { LM_EMU_INDEX, LM_EMU_XOR, LM_EMU_UP, LM_EMU_DOWN } lm_emu_shuffle_kind;

/* Waits for the block; how many threads gave a true predicate. */
LM_EMU_INSIDE int lm_emu_barrier(const lm_emu_site *site, int predicate);
LM_EMU_INSIDE void lm_emu_warp_barrier(const lm_emu_site *site, unsigned mask);
/* Replaces *value (1 to 8 bytes) by that of another lane. */
LM_EMU_INSIDE void lm_emu_shuffle(const lm_emu_site *site, unsigned mask, void *value, size_t size,
                                  lm_emu_shuffle_kind kind, unsigned argument, int width);
LM_EMU_INSIDE unsigned lm_emu_ballot(const lm_emu_site *site, unsigned mask, int predicate);
/* Lanes of the mask whose value has the same bits. */
LM_EMU_INSIDE unsigned lm_emu_match(const lm_emu_site *site, unsigned mask, const void *value,
                                    size_t size);
/* Both halves of an atomic operation: nothing runs in between. */
LM_EMU_INSIDE void lm_emu_atomic_read(const volatile void *p, void *value, size_t size);
LM_EMU_INSIDE void lm_emu_atomic_write(volatile void *p, const void *value, size_t size);
LM_EMU_INSIDE void lm_emu_fence(void);
/* Dynamic shared memory of the running block, aligned to 16 bytes. */
LM_EMU_INSIDE void *lm_emu_dynamic_shared(void);

#ifdef __cplusplus
}
#define LM_EMU_C extern "C"
#else
#define LM_EMU_C extern
#endif

/* ---- qualifiers ---- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* One section, which the runtime poisons before a block runs. Under AddressSanitizer plain
** statics: those get red zones, variables of a section of their own do not. */
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __shared__ static
#endif
#endif
#ifndef __shared__
/* The end of the name is for the assembler: no bytes of the section in the file. */
#if defined(__x86_64__) && !defined(__clang__)
#define LM_EMU_NOBITS ",\"aw\",@nobits#"
#else
#define LM_EMU_NOBITS
#endif
#define __shared__ static __attribute__((section("lm_emu_shared" LM_EMU_NOBITS)))
#endif

#define threadIdx (lm_emu_here.self->index)
#define blockIdx lm_emu_here.block_index
#define blockDim lm_emu_here.block_size
#define gridDim lm_emu_here.grid_size
#define warpSize 32

/* ---- meeting points ---- */

#define LM_EMU_AT(call)                                                                            \
    __extension__({                                                                                \
        static const lm_emu_site site_ = {__FILE__, __LINE__};                                     \
        call;                                                                                      \
    })
#define __syncthreads() LM_EMU_AT((void)lm_emu_barrier(&site_, 0))
#define __syncthreads_count(p) LM_EMU_AT(lm_emu_barrier(&site_, !!(p)))
#define __syncthreads_or(p) LM_EMU_AT(lm_emu_barrier(&site_, !!(p)) != 0)
#define __syncthreads_and(p) LM_EMU_AT(lm_emu_barrier(&site_, !(p)) == 0)
#define LM_EMU_MASK(unused, mask, ...) (mask)
#define __syncwarp(...)                                                                            \
    LM_EMU_AT(lm_emu_warp_barrier(&site_, LM_EMU_MASK(0, ##__VA_ARGS__, 0xffffffffu, 0)))

/* The sum with 0 drops qualifiers; CUDA has no shuffles of types that it would change. */
#define LM_EMU_SHUFFLE(mask, v, kind, argument, unused, width, ...)                                \
    LM_EMU_AT(__typeof__((v) + 0) v_ = (v);                                                        \
              lm_emu_shuffle(&site_, (mask), &v_, sizeof v_, (kind), (unsigned)(argument), width); \
              v_)
#define __shfl_sync(mask, v, lane, ...)                                                            \
    LM_EMU_SHUFFLE(mask, v, LM_EMU_INDEX, lane, 0, ##__VA_ARGS__, 32, 0)
#define __shfl_xor_sync(mask, v, lanes, ...)                                                       \
    LM_EMU_SHUFFLE(mask, v, LM_EMU_XOR, lanes, 0, ##__VA_ARGS__, 32, 0)
#define __shfl_up_sync(mask, v, lanes, ...)                                                        \
    LM_EMU_SHUFFLE(mask, v, LM_EMU_UP, lanes, 0, ##__VA_ARGS__, 32, 0)
#define __shfl_down_sync(mask, v, lanes, ...)                                                      \
    LM_EMU_SHUFFLE(mask, v, LM_EMU_DOWN, lanes, 0, ##__VA_ARGS__, 32, 0)

#define __ballot_sync(mask, p) LM_EMU_AT(lm_emu_ballot(&site_, (mask), !!(p)))
#define __any_sync(mask, p) LM_EMU_AT(lm_emu_ballot(&site_, (mask), !!(p)) != 0)
#define __all_sync(mask, p) LM_EMU_AT(lm_emu_ballot(&site_, (mask), !(p)) == 0)
#define __match_any_sync(mask, v)                                                                  \
    LM_EMU_AT(__typeof__((v) + 0) v_ = (v); lm_emu_match(&site_, (mask), &v_, sizeof v_))

#define __threadfence() lm_emu_fence()
#define __threadfence_block() ((void)0)

/* ---- atomics: old value of *p; 4 or 8 bytes ---- */

#define LM_EMU_ATOMIC(p, expression)                                                               \
    __extension__({                                                                                \
        __typeof__(&*(p)) p_ = (p);                                                                \
        __typeof__(*(p) + 0) old_, new_;                                                           \
        lm_emu_atomic_read(p_, &old_, sizeof old_);                                                \
        new_ = (__typeof__(*(p) + 0))(expression);                                                 \
        lm_emu_atomic_write(p_, &new_, sizeof new_);                                               \
        old_;                                                                                      \
    })
#define atomicAdd(p, v) LM_EMU_ATOMIC(p, old_ + (v))
#define atomicSub(p, v) LM_EMU_ATOMIC(p, old_ - (v))
#define atomicMax(p, v) LM_EMU_ATOMIC(p, old_ > (__typeof__(old_))(v) ? old_ : (v))
#define atomicMin(p, v) LM_EMU_ATOMIC(p, old_ < (__typeof__(old_))(v) ? old_ : (v))
#define atomicAnd(p, v) LM_EMU_ATOMIC(p, old_ &(v))
#define atomicOr(p, v) LM_EMU_ATOMIC(p, old_ | (v))
#define atomicXor(p, v) LM_EMU_ATOMIC(p, old_ ^ (v))
#define atomicExch(p, v) LM_EMU_ATOMIC(p, (v))
#define atomicCAS(p, expected, v)                                                                  \
    LM_EMU_ATOMIC(p, old_ == (__typeof__(old_))(expected) ? (__typeof__(old_))(v) : old_)
#define atomicInc(p, limit) LM_EMU_ATOMIC(p, old_ >= (limit) ? 0 : old_ + 1)

/* ---- bits ---- */

#define __popc(x) __builtin_popcount(x)
#define __popcll(x) __builtin_popcountll(x)
#define __ffs(x) __builtin_ffs((int)(x))
#define __ffsll(x) __builtin_ffsll((long long)(x))
#define __clz(x) ((x) ? __builtin_clz((unsigned)(x)) : 32)
#define __clzll(x) ((x) ? __builtin_clzll((unsigned long long)(x)) : 64)
#define __ldg(p) (*(p))

/* ---- vectors: one access of 8 or 16 bytes ---- */

#define LM_EMU_VECTORS(T, name)                                                                    \
    typedef struct __attribute__((aligned(2 * sizeof(T)))) {                                       \
        T x, y;                                                                                    \
    } name##2;                                                                                     \
    typedef struct __attribute__((aligned(4 * sizeof(T)))) {                                       \
        T x, y, z, w;                                                                              \
    } name##4
LM_EMU_VECTORS(int, int);
LM_EMU_VECTORS(unsigned, uint);
LM_EMU_VECTORS(float, float);
typedef struct __attribute__((aligned(16))) {
    double x, y;
} double2;
typedef struct __attribute__((aligned(16))) {
    unsigned long long x, y;
} ulonglong2;

/* ---- kernels ---- */

/* The copy of the parameter is no access of the kernel. */
#define LM_EMU_UNCHECKED __attribute__((no_sanitize("thread")))
#define LM_EMU_KERNEL(kernel, args_type)                                                           \
    static void kernel(const args_type a);                                                         \
    LM_EMU_UNCHECKED static void kernel##_start(const void *args) {                                \
        kernel(*(const args_type *)args);                                                          \
    }                                                                                              \
    LM_EMU_C LM_EMU_INSIDE const lm_emu_kernel lm_emu_kernel_##kernel;                             \
    const lm_emu_kernel lm_emu_kernel_##kernel = {                                                 \
        #kernel, kernel##_start, (unsigned)sizeof(args_type), (unsigned)__alignof__(args_type)};   \
    static void kernel(const args_type a)

#endif
