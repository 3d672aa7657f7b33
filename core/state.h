/* state.h -- what luma_state holds, and how errors are made. Layer: core. */
#ifndef lm_state_h
#define lm_state_h

#include "dtype.h"

#define LM_MAX_DEVICES 17 /* cpu and sixteen more */
#define LM_MESSAGE_SIZE 1024

struct lm_device;

/* Bytes that the devices of a state reserve, with what else its host counts there. */
typedef struct {
    int64_t limit, used;
} lm_budget;

/* What products on CUDA devices may do with less than the precision of their dtype; where the words
** of random numbers come from. */
enum {
    LM_ALLOW_TF32 = 1,            /* float32 rounded to 11 bits before they are multiplied */
    LM_ALLOW_FP16_ACCUMULATE = 2, /* sums of float16 in float16 */
    LM_ALLOW_BF16_REDUCED = 4,    /* partial sums of bfloat16 in bfloat16 */
    LM_USE_CURAND = 8             /* words of large fills from cuRAND; they are the same */
};

struct luma_state {
    struct lm_device *devices[LM_MAX_DEVICES]; /* [0] is the CPU */
    int ndevices;
    /* Registers devices that are only looked for when they are asked for ("cuda"), or says why
    ** there are none; may be NULL. */
    luma_status (*more_devices)(luma_state *S);
    int index_base; /* 0 in C, 1 in Lua */
    luma_dtype default_dtype;
    struct lm_device *default_device; /* NULL: the CPU */
    struct lm_device *current_device; /* what the name of its kind alone means; NULL: the first */
    bool seeded;                      /* with luma_manual_seed: */
    uint64_t seed;
    uint32_t cuda_allow;     /* bits LM_ALLOW_ and LM_USE_CURAND */
    int threads;             /* that an operation may run on; 0: all there are */
    volatile int *interrupt; /* may be NULL */
    bool (*poll)(void *ctx); /* another way to be interrupted; may be NULL */
    void *poll_ctx;
    int argument; /* of the last failure, 1-based; 0: none */
    char message[LM_MESSAGE_SIZE];
    /* Copies per path, for the specs: which way contiguous, cat and assignment went. */
    struct {
        int64_t shared, memcpy, copy2d, strided;
    } copies;
    /* For hosts with a garbage collector: a storage that takes its device past soft_limit fails
    ** with `soft` set, and where the host `collects`, one for which there is no memory fails with
    ** `early` set before caches are emptied, so that the host collects and tries again; not while
    ** `lifted`, but that `again` allows an early failure. */
    int64_t fresh; /* bytes asked for since the host set it to 0 */
    bool collects, soft, early, lifted, again;
    lm_budget *budget;          /* for all devices together; may be NULL */
    struct lm_exports *exports; /* dlpack.h */
    luma_memory_fn *notify;     /* of devices to come; may be NULL */
    void *notify_ctx;
    /* Test hook: when fail_after >= 0, it counts down at every allocation, and the one that finds 0
    ** fails; with fail_forever so do all that follow. */
    int64_t fail_after;
    bool fail_forever, failed;
};

/* A state without devices, which luma_open (kernels/open.c) registers; NULL: no memory. */
luma_state *lm_state_new(void);
/* Ends it: for luma_close, and for the last who holds a tensor of a state that was closed. */
void lm_state_free(luma_state *S);

/* Every failure goes through here. Formats the message and returns `status`.
** argument: 1-based position in the C call after the outputs, 0 when none is to blame.
** Beyond printf: nothing. Write shapes with lm_shape_text, dims with lm_pos. */
luma_status lm_fail(luma_state *S, luma_status status, int argument, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A 0-based position as the user of S counts. */
static inline int64_t lm_pos(const luma_state *S, int64_t i) {
    return i + S->index_base;
}
/* "[2 x 3]" into buffer (returned); "[]" for 0-d. */
typedef struct {
    char text[LUMA_MAX_DIMS * 22 + 4];
} lm_text;
const char *lm_shape_text(lm_text *buffer, int ndim, const int64_t *shape);
/* The place of element `at`, counted in row-major order. */
void lm_place_at(int64_t *place, int ndim, const int64_t *shape, int64_t at);
/* "[2, 3]": 0-based positions as the user of S counts. */
const char *lm_place_text(const luma_state *S, lm_text *buffer, int ndim, const int64_t *place);

static inline bool lm_interrupted(const luma_state *S) {
    return (S->interrupt && *S->interrupt) || (S->poll && S->poll(S->poll_ctx));
}
luma_status lm_fail_interrupted(luma_state *S);

static inline int64_t lm_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t lm_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static inline int64_t lm_clamp(int64_t v, int64_t lo, int64_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}
static inline int64_t lm_abs(int64_t v) {
    return v < 0 ? -v : v;
}
/* Of a >= 0 and b > 0, whose sum fits. */
static inline int64_t lm_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
/* The multiple of unit > 0 that a >= 0 fits into. */
static inline int64_t lm_round_up(int64_t a, int64_t unit) {
    return lm_ceil_div(a, unit) * unit;
}

/* Of a >= 0 and b >= 0. */
static inline int64_t lm_gcd(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* a * b and a + b of sizes; false when they do not fit into int64. */
static inline bool lm_mul_fits(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool lm_add_fits(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
/* Number of elements of a shape, each >= 0; false when it or its bytes pass 2^62. */
bool lm_numel_fits(int ndim, const int64_t *shape, luma_dtype dtype, int64_t *numel);

#define LM_TRY(call)                                                                               \
    do {                                                                                           \
        luma_status lm_try_ = (call);                                                              \
        if (lm_try_ != LUMA_OK) return lm_try_;                                                    \
    } while (0)

#endif
