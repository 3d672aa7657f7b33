/* npy.c -- NumPy's array format: versions 1 to 3, either byte order, either element order.
** Format: numpy.lib.format in NumPy's documentation. Layer: core. */
#include <ctype.h>
#include <string.h>

#include "file.h"

static const struct {
    const char *code; /* without the byte order */
    luma_dtype dtype;
} codes[] = {{"b1", LUMA_BOOL},    {"u1", LUMA_UINT8},  {"i1", LUMA_INT8},  {"i2", LUMA_INT16},
             {"i4", LUMA_INT32},   {"u4", LUMA_UINT32}, {"i8", LUMA_INT64}, {"f2", LUMA_FLOAT16},
             {"f4", LUMA_FLOAT32}, {"f8", LUMA_FLOAT64}};

/* What a header says. */
typedef struct {
    luma_dtype dtype;
    bool swap, fortran;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
} header;

typedef struct {
    luma_state *S;
    const char *path, *p, *end;
} parser;

static luma_status bad(const parser *in, const char *what) {
    return lm_file_malformed(in->S, in->path, "malformed .npy header: %s", what);
}

static void skip_space(parser *in) {
    while (in->p < in->end && isspace((unsigned char)*in->p))
        in->p++;
}

static bool take(parser *in, char c) {
    skip_space(in);
    if (in->p == in->end || *in->p != c) return false;
    in->p++;
    return true;
}

static bool take_word(parser *in, const char *word) {
    size_t n = strlen(word);
    skip_space(in);
    if ((size_t)(in->end - in->p) < n || memcmp(in->p, word, n) != 0) return false;
    in->p += n;
    return true;
}

/* A quoted string without escapes, which no header that NumPy writes contains. */
static bool take_string(parser *in, const char **text, size_t *n) {
    char quote = '\'';
    if (!take(in, '\'')) {
        if (!take(in, '"')) return false;
        quote = '"';
    }
    const char *close = memchr(in->p, quote, (size_t)(in->end - in->p));
    if (!close) return false;
    *text = in->p;
    *n = (size_t)(close - in->p);
    in->p = close + 1;
    return true;
}

static luma_status parse_descr(parser *in, header *h) {
    const char *text;
    size_t n;
    if (take(in, '['))
        return lm_fail(in->S, LUMA_ERR_DTYPE, 0, "%.200s: record dtypes are not supported",
                       in->path);
    if (!take_string(in, &text, &n)) return bad(in, "descr");
    char order = n ? text[0] : ' ';
    if (n && strchr("<>=|", order)) text++, n--;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strlen(codes[i].code) == n && memcmp(codes[i].code, text, n) == 0) {
            h->dtype = codes[i].dtype;
            h->swap = order == '>';
            return LUMA_OK;
        }
    }
    static const char *const others[][2] = {{"u2", "uint16"},    {"u8", "uint64"},
                                            {"c8", "complex64"}, {"c16", "complex128"},
                                            {"O", "object"},     {"f16", "float128"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strlen(others[i][0]) == n && memcmp(others[i][0], text, n) == 0)
            return lm_fail(in->S, LUMA_ERR_DTYPE, 0, "%.200s: dtype %s is not supported", in->path,
                           others[i][1]);
    }
    return lm_fail(in->S, LUMA_ERR_DTYPE, 0, "%.200s: dtype '%.*s' is not supported", in->path,
                   n < 40 ? (int)n : 40, text);
}

static luma_status parse_shape(parser *in, header *h) {
    h->ndim = 0;
    if (!take(in, '(')) return bad(in, "shape");
    while (!take(in, ')')) {
        int64_t size = 0;
        skip_space(in);
        if (in->p == in->end || !isdigit((unsigned char)*in->p)) return bad(in, "shape");
        for (; in->p < in->end && isdigit((unsigned char)*in->p); in->p++) {
            if (!lm_mul_fits(size, 10, &size) || !lm_add_fits(size, *in->p - '0', &size))
                return bad(in, "a size past 2^63");
        }
        if (h->ndim == LUMA_MAX_DIMS) return bad(in, "more than 8 dims");
        h->shape[h->ndim++] = size;
        if (!take(in, ',')) {
            if (!take(in, ')')) return bad(in, "shape");
            break;
        }
    }
    return LUMA_OK;
}

static luma_status parse_header(parser *in, header *h) {
    const int DESCR = 1, ORDER = 2, SHAPE = 4;
    int seen = 0;
    const char *key;
    size_t n;
    if (!take(in, '{')) return bad(in, "no dictionary");
    while (!take(in, '}')) {
        int now = 0;
        if (!take_string(in, &key, &n) || !take(in, ':')) return bad(in, "a key is missing");
        if (n == 5 && memcmp(key, "descr", 5) == 0) {
            now = DESCR;
            LM_TRY(parse_descr(in, h));
        } else if (n == 13 && memcmp(key, "fortran_order", 13) == 0) {
            now = ORDER;
            h->fortran = take_word(in, "True");
            if (!h->fortran && !take_word(in, "False")) return bad(in, "fortran_order");
        } else if (n == 5 && memcmp(key, "shape", 5) == 0) {
            now = SHAPE;
            LM_TRY(parse_shape(in, h));
        } else {
            return bad(in, "an unknown key");
        }
        if (seen & now) return bad(in, "a key stands twice");
        seen |= now;
        if (!take(in, ',') && !(in->p < in->end && *in->p == '}')) return bad(in, "no comma");
    }
    skip_space(in);
    if (in->p != in->end) return bad(in, "text after the dictionary");
    return seen == (DESCR | ORDER | SHAPE) ? LUMA_OK : bad(in, "a key is missing");
}

static luma_status read_header(luma_state *S, lm_source *src, header *h) {
    unsigned char start[12];
    LM_TRY(lm_source_read(S, src, start, 10));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return lm_file_malformed(S, src->path, "not an .npy array");
    int64_t n = start[8] | start[9] << 8;
    if (start[6] < 1 || start[6] > 3)
        return lm_file_malformed(S, src->path, ".npy version %d is not known", start[6]);
    if (start[6] > 1) {
        LM_TRY(lm_source_read(S, src, start + 10, 2));
        n |= (int64_t)start[10] << 16 | (int64_t)start[11] << 24;
    }
    if (n > src->left || n > 1 << 20)
        return lm_file_malformed(S, src->path, "malformed .npy header: %lld bytes long",
                                 (long long)n);
    lm_storage *text;
    LM_TRY(lm_storage_new(S, lm_cpu(S), (size_t)n + 1, &text));
    luma_status status = lm_source_read(S, src, text->data, (size_t)n);
    if (status == LUMA_OK) {
        parser in = {S, src->path, text->data, text->data + n};
        status = parse_header(&in, h);
    }
    lm_storage_release(text);
    return status;
}

luma_status lm_npy_read(luma_state *S, luma_tensor *out, lm_source *src) {
    header h = {0};
    luma_tensor x = LUMA_NEW;
    LM_TRY(read_header(S, src, &h));
    if (!h.fortran) return lm_read_tensor(S, out, src, h.dtype, h.ndim, h.shape, h.swap);
    int64_t reversed[LUMA_MAX_DIMS], dims[LUMA_MAX_DIMS];
    for (int d = 0; d < h.ndim; d++) {
        reversed[d] = h.shape[h.ndim - 1 - d];
        dims[d] = h.ndim - 1 - d;
    }
    LM_TRY(lm_read_tensor(S, &x, src, h.dtype, h.ndim, reversed, h.swap));
    luma_tensor view = LUMA_NEW;
    luma_status status = luma_permute(S, &view, &x, h.ndim, dims);
    if (status == LUMA_OK) status = luma_contiguous(S, out, &view);
    luma_release(S, &view);
    luma_release(S, &x);
    return status;
}

luma_status lm_npy_header(luma_state *S, const luma_tensor *x, char buffer[LM_NPY_HEADER],
                          size_t *n) {
    const char *code = NULL;
    char shape[LUMA_MAX_DIMS * 21 + 4];
    size_t used = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].dtype == x->dtype) code = codes[i].code;
    }
    if (!code)
        return lm_fail(S, LUMA_ERR_DTYPE, 0, ".npy has no %s: save it as .safetensors",
                       lm_dtypes[x->dtype].name);
    shape[0] = '\0';
    for (int d = 0; d < x->layout.ndim; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, d ? " %lld," : "%lld,",
                                 (long long)x->layout.shape[d]);
    if (x->layout.ndim > 1) shape[used - 1] = '\0'; /* one dim keeps its comma: "(3,)" */
    int length = snprintf(buffer + 10, LM_NPY_HEADER - 10,
                          "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
                          lm_dtype_size(x->dtype) == 1 ? '|' : '<', code, shape);
    size_t total = (10 + (size_t)length + 1 + 63) / 64 * 64;
    memset(buffer + 10 + length, ' ', total - 10 - (size_t)length);
    buffer[total - 1] = '\n';
    memcpy(buffer, "\x93NUMPY\x01", 8); /* version 1.0: the literal ends in NUL */
    buffer[8] = (char)((total - 10) & 255);
    buffer[9] = (char)((total - 10) >> 8);
    *n = total;
    return LUMA_OK;
}

luma_status lm_npy_load(luma_state *S, luma_file *out, const char *path) {
    lm_source src = {.path = path};
    LM_TRY(lm_file_open(S, path, &src.file, &src.left));
    luma_status status = lm_file_reserve(S, out, 1, 0, 0, NULL);
    if (status == LUMA_OK) {
        status = lm_npy_read(S, &out->tensors[0], &src);
        if (status != LUMA_OK) luma_close_file(S, out);
    }
    fclose(src.file);
    return status;
}

static luma_status put(luma_state *S, void *ctx, const void *data, size_t n) {
    return lm_writer_put(S, ctx, data, n);
}

luma_status lm_npy_save(luma_state *S, const char *path, const luma_tensor *x) {
    char start[LM_NPY_HEADER];
    size_t n;
    lm_writer w;
    LM_TRY(lm_npy_header(S, x, start, &n));
    LM_TRY(lm_writer_open(S, &w, path));
    luma_status status = lm_writer_put(S, &w, start, n);
    if (status == LUMA_OK) status = lm_each_bytes(S, x, put, &w);
    return lm_writer_close(S, &w, status);
}
