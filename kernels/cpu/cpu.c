/* cpu.c -- the CPU device: the table of its functions, memory, single elements.
** Layer: kernels/cpu. */
#include "cpu.h"
#include "op.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)4 << 20) /* smaller segments keep small pages */

/* Huge pages spare large temporaries most of their page faults, given the alignment. */
static void *raw_alloc(lm_device *d, size_t nbytes) {
    (void)d;
    size_t slack = nbytes >= HUGE_FROM ? HUGE_PAGE : 0;
    if (nbytes > SIZE_MAX - slack) return NULL;
    char *p =
        mmap(NULL, nbytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED && slack) { /* room for the bytes, perhaps, but not for alignment */
        slack = 0;
        p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (p == MAP_FAILED) return NULL;
    if (slack == 0) return p;
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    size_t after = slack - before;
    if (before) munmap(p, before);
    if (after) munmap(p + before + nbytes, after);
    madvise(p + before, nbytes, MADV_HUGEPAGE); /* a wish; refusal does no harm */
    return p + before;
}

static void raw_free(lm_device *d, void *p, size_t nbytes) {
    (void)d;
    munmap(p, nbytes);
}

static bool memory_info(lm_device *d, size_t *unused, size_t *total) {
    (void)d;
    long page = sysconf(_SC_PAGESIZE), free_pages = sysconf(_SC_AVPHYS_PAGES);
    long pages = sysconf(_SC_PHYS_PAGES);
    if (page <= 0 || free_pages < 0 || pages <= 0) return false;
    *unused = (size_t)free_pages * (size_t)page;
    *total = (size_t)pages * (size_t)page;
    return true;
}

static luma_status copy_bytes(luma_state *S, lm_device *d, void *dst, const void *src,
                              size_t nbytes) {
    (void)S;
    (void)d;
    memmove(dst, src, nbytes);
    return LUMA_OK;
}

static luma_status synchronize(luma_state *S, lm_device *d) {
    (void)S;
    (void)d;
    return LUMA_OK;
}

static void convert(luma_dtype from, luma_dtype to, const void *x, void *y) {
    lm_level_now()->cast->cast[from][to](1, x, 0, y, 0);
}

static void encode(luma_dtype dtype, luma_scalar number, void *element) {
    if (number.kind == LUMA_IS_FLOAT)
        convert(LUMA_FLOAT64, dtype, &number.u.d, element);
    else
        convert(LUMA_INT64, dtype, &number.u.i, element);
}

static luma_scalar decode(luma_dtype dtype, const void *element) {
    luma_scalar v;
    if (lm_dtype_is_float(dtype)) {
        v.kind = LUMA_IS_FLOAT;
        convert(dtype, LUMA_FLOAT64, element, &v.u.d);
    } else {
        v.kind = dtype == LUMA_BOOL ? LUMA_IS_BOOL : LUMA_IS_INT;
        convert(dtype, LUMA_INT64, element, &v.u.i);
    }
    return v;
}

static bool supports(lm_device *d, lm_op op, luma_dtype dtype) {
    (void)d;
    if (lm_ops[op].row > LM_ROW_TERNARY) return true;
    return lm_level_now()->elementwise->map[op][dtype] != NULL;
}

static lm_map_fn *kernel(lm_op op, luma_dtype dtype) {
    return op < LM_NROWS ? lm_level_now()->elementwise->map[op][dtype] : NULL;
}

/* A slot that is not named here is NULL: unsupported. */
const lm_device_ops lm_cpu_ops = {
    .kind = "cpu",
    .raw_alloc = raw_alloc,
    .memory_info = memory_info,
    .raw_free = raw_free,
    .upload = copy_bytes,
    .download = copy_bytes,
    .synchronize = synchronize,
    .encode = encode,
    .decode = decode,
    .kernel = kernel,
    .supports = supports,
    .map = lm_cpu_map,
    .fused = lm_cpu_fused,
    .copy = lm_cpu_copy,
    .fill = lm_cpu_fill,
    .reduce = lm_cpu_reduce,
    .sort = lm_cpu_sort,
    .scan = lm_cpu_scan,
    .normalize = lm_cpu_normalize,
    .search = lm_cpu_search,
    .attention = lm_cpu_attention,
    .attention_head = INT32_MAX,
    .rope = lm_cpu_rope,
    .index = lm_cpu_index,
    .pooling = lm_cpu_pooling,
    .count_nonzero = lm_cpu_count_nonzero,
    .nonzero = lm_cpu_nonzero,
    .matmul = lm_cpu_matmul,
    .conv = lm_cpu_conv,
    .random = lm_cpu_random,
    .quant = lm_cpu_quant,
};

luma_status lm_cpu_register(luma_state *S) {
    if (!lm_level_now()) return lm_fail(S, LUMA_ERR_DEVICE, 0, "%s", lm_level_problem());
    return lm_device_register(S, &lm_cpu_ops, "cpu", 0, NULL);
}
