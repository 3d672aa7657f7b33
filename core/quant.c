/* quant.c -- quantised blocks: shapes, dtypes and errors; the device's quant slot computes. Rows of
** blocks are uint8 tensors, so that views, copies and files take them as they are. Layer: core. */
#include "quant.h"

#include <string.h>

#include "compose.h"

static const struct {
    const char *name;
    int64_t bytes; /* of a block */
} formats[LUMA_NQUANT] = {
#define FORMAT(name, bytes) {name, bytes},
    LM_QUANT_FORMATS(FORMAT)};
#undef FORMAT

static luma_status check_format(luma_state *S, int argument, luma_quant_format format) {
    if ((unsigned)format < LUMA_NQUANT) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, argument, "no format has the number %d", (int)format);
}

static int64_t last_size(const luma_tensor *x) {
    return x->layout.shape[x->layout.ndim - 1];
}

/* Blocks of a row of x; the rows are what the other dims hold. */
static luma_status check_blocks(luma_state *S, int argument, const luma_tensor *x,
                                luma_quant_format format, int64_t *n) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, argument, x, false));
    if (x->dtype != LUMA_UINT8)
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "%s: blocks are uint8",
                       lm_dtypes[x->dtype].name);
    if (x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "a 0-d tensor: at least 1 dim expected");
    *n = last_size(x) / formats[format].bytes;
    if (last_size(x) == *n * formats[format].bytes) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument, "%s: %lld bytes a row are no %s blocks of %lld",
                   lm_layout_text(&text, &x->layout), (long long)last_size(x), formats[format].name,
                   (long long)formats[format].bytes);
}

/* Floats in rows that blocks of 32 fill. */
static luma_status check_rows(luma_state *S, int argument, const luma_tensor *x) {
    lm_text text;
    LM_TRY(lm_tensor_check(S, argument, x, false));
    if (!lm_dtype_is_float(x->dtype))
        return lm_fail(S, LUMA_ERR_DTYPE, argument, "%s: a float dtype expected",
                       lm_dtypes[x->dtype].name);
    if (x->layout.ndim == 0)
        return lm_fail(S, LUMA_ERR_SHAPE, argument, "a 0-d tensor: at least 1 dim expected");
    if (last_size(x) % LM_QUANT_BLOCK == 0) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_SHAPE, argument,
                   "%s: rows of %lld are no blocks of 32; a multiple of 32 expected",
                   lm_layout_text(&text, &x->layout), (long long)last_size(x));
}

/* x without gaps, from an even byte on: a block begins with two bytes that belong together. */
static luma_status dense_blocks(luma_state *S, luma_tensor *out, const luma_tensor *x) {
    return (uintptr_t)lm_data(x) % 2 == 0 ? luma_contiguous(S, out, x)
                                          : luma_force_contiguous(S, out, x);
}

/* The slot on dense tensors; values is float32. */
static luma_status run(luma_state *S, lm_quant_kind kind, luma_quant_format format,
                       const luma_tensor *blocks, const luma_tensor *values,
                       const luma_tensor *out) {
    lm_device *d = lm_device_of(blocks);
    lm_quant q = {.kind = kind, .format = format, .blocks = *blocks, .values = *values};
    if (out) q.out = *out;
    return LM_SLOT(S, d, quant, "quantised data", LUMA_FLOAT32, &q);
}

luma_status luma_quantize_blocks(luma_state *S, luma_tensor *out, const luma_tensor *x,
                                 luma_quant_format format) {
    int64_t shape[LUMA_MAX_DIMS];
    lm_result r;
    LM_TRY(check_rows(S, 1, x));
    LM_TRY(check_format(S, 2, format));
    const int last = x->layout.ndim - 1;
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[last] = shape[last] / LM_QUANT_BLOCK * formats[format].bytes;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(x), LUMA_UINT8, last + 1, shape, &x, 1,
                          LM_RESULT_CONTIGUOUS));
    if (luma_numel(x) == 0) return lm_result_close(S, &r, LUMA_OK);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *values = lm_temp_cast(&s, x, LUMA_FLOAT32), *dense = lm_temp(&s);
    LM_DO(&s, luma_contiguous(S, dense, values));
    LM_DO(&s, run(S, LM_QUANT_MAKE, format, &r.work, dense, NULL));
    return lm_result_close(S, &r, lm_scope_close(&s));
}

luma_status luma_dequantize_blocks(luma_state *S, luma_tensor *out, const luma_tensor *blocks,
                                   luma_quant_format format) {
    int64_t shape[LUMA_MAX_DIMS], n;
    lm_result r;
    LM_TRY(check_format(S, 2, format));
    LM_TRY(check_blocks(S, 1, blocks, format, &n));
    const int last = blocks->layout.ndim - 1;
    memcpy(shape, blocks->layout.shape, sizeof shape);
    shape[last] = n * LM_QUANT_BLOCK;
    LM_TRY(lm_result_open(S, &r, out, lm_device_of(blocks), LUMA_FLOAT32, last + 1, shape, &blocks,
                          1, LM_RESULT_CONTIGUOUS));
    if (luma_numel(blocks) == 0) return lm_result_close(S, &r, LUMA_OK);
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *dense = lm_temp(&s);
    LM_DO(&s, dense_blocks(S, dense, blocks));
    LM_DO(&s, run(S, LM_QUANT_READ, format, dense, &r.work, NULL));
    return lm_result_close(S, &r, lm_scope_close(&s));
}

static luma_status check_product(luma_state *S, const luma_tensor *x, const luma_tensor *blocks,
                                 luma_quant_format format) {
    int64_t n;
    lm_text a, b;
    LM_TRY(check_format(S, 3, format));
    LM_TRY(check_rows(S, 1, x));
    if (x->dtype != LUMA_FLOAT32 && x->dtype != LUMA_FLOAT16 && x->dtype != LUMA_BFLOAT16)
        return lm_fail(S, LUMA_ERR_DTYPE, 1, "%s: float32, float16 or bfloat16 expected",
                       lm_dtypes[x->dtype].name);
    LM_TRY(check_blocks(S, 2, blocks, format, &n));
    if (blocks->layout.ndim != 2)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s: a matrix (2 dims) expected",
                       lm_layout_text(&b, &blocks->layout));
    if (n * LM_QUANT_BLOCK == last_size(x)) return LUMA_OK;
    const int64_t weight[] = {blocks->layout.shape[0], n * LM_QUANT_BLOCK};
    return lm_fail(S, LUMA_ERR_SHAPE, 2, "%s by %s %s: row sizes %lld and %lld differ",
                   lm_layout_text(&a, &x->layout), formats[format].name,
                   lm_shape_text(&b, 2, weight), (long long)last_size(x), (long long)weight[1]);
}

luma_status luma_matmul_blocks(luma_state *S, luma_tensor *out, const luma_tensor *x,
                               const luma_tensor *blocks, luma_quant_format format) {
    int64_t shape[LUMA_MAX_DIMS];
    lm_result r;
    lm_device *device;
    const luma_tensor *ins[] = {x, blocks};
    LM_TRY(check_product(S, x, blocks, format));
    LM_TRY(lm_same_device(S, ins, 2, &device));
    memcpy(shape, x->layout.shape, sizeof shape);
    shape[x->layout.ndim - 1] = blocks->layout.shape[0];
    LM_TRY(lm_result_open(S, &r, out, device, x->dtype, x->layout.ndim, shape, ins, 2,
                          LM_RESULT_CONTIGUOUS));
    if (luma_numel(&r.work) == 0) return lm_result_close(S, &r, LUMA_OK);
    if (last_size(x) == 0) {
        const luma_scalar zero = {.kind = LUMA_IS_FLOAT, .u.d = 0};
        return lm_result_close(S, &r, lm_fill(S, &r.work, zero));
    }
    lm_scope s;
    lm_scope_open(&s, S);
    luma_tensor *values = lm_temp_cast(&s, x, LUMA_FLOAT32);
    luma_tensor *rows = lm_temp(&s), *dense = lm_temp(&s), *y = lm_temp(&s);
    LM_DO(&s, luma_contiguous(S, rows, values));
    LM_DO(&s, dense_blocks(S, dense, blocks));
    if (x->dtype == LUMA_FLOAT32) {
        LM_DO(&s, run(S, LM_QUANT_MATMUL, format, dense, rows, &r.work));
    } else {
        LM_DO(&s, lm_tensor_new(S, y, device, LUMA_FLOAT32, x->layout.ndim, shape));
        LM_DO(&s, run(S, LM_QUANT_MATMUL, format, dense, rows, y));
        LM_DO(&s, lm_copy(S, &r.work, y));
    }
    return lm_result_close(S, &r, lm_scope_close(&s));
}
