/* safetensors.c -- named tensors behind a JSON header: every luma dtype, metadata.
** Format: the README of the safetensors project: 8 bytes little-endian header length, the header,
** the data without gaps. The header is checked whole before memory for tensors is asked for.
** Layer: core. */
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "json.h"

#define HEADER_LIMIT 100000000 /* bytes, as the format's own implementation */

static const char *const codes[LUMA_NDTYPES] = {
    [LUMA_BOOL] = "BOOL",   [LUMA_UINT8] = "U8",
    [LUMA_INT8] = "I8",     [LUMA_INT16] = "I16",
    [LUMA_INT32] = "I32",   [LUMA_UINT32] = "U32",
    [LUMA_INT64] = "I64",   [LUMA_FLOAT8_E4M3] = "F8_E4M3",
    [LUMA_FLOAT16] = "F16", [LUMA_BFLOAT16] = "BF16",
    [LUMA_FLOAT32] = "F32", [LUMA_FLOAT64] = "F64"};

typedef struct {
    luma_dtype dtype;
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
    int64_t start, end; /* in the data */
} entry;

/* One pass over the header. Without `file` it only checks and counts. */
typedef struct {
    luma_state *S;
    const char *path;
    lm_json in;
    int64_t data_size;
    int64_t nentries, nmetadata;
    char *text; /* where the next string is decoded; room for the whole header */
    entry *entries;
    luma_file *file;
} pass;

static luma_status bad(const pass *p, const char *what) {
    return lm_file_malformed(p->S, p->path, "malformed .safetensors header: %s", what);
}

/* Decodes a string; keep moves the place of the next one behind it. */
static luma_status take_string(pass *p, bool keep, char **out) {
    size_t n;
    *out = p->text;
    if (!lm_json_string(&p->in, p->text, &n)) return bad(p, "a string is missing or broken");
    if (keep) p->text += n + 1;
    return LUMA_OK;
}

static luma_status take_dtype(pass *p, entry *e) {
    char *code;
    LM_TRY(take_string(p, false, &code));
    for (int d = 0; d < LUMA_NDTYPES; d++) {
        if (strcmp(codes[d], code) == 0) {
            e->dtype = (luma_dtype)d;
            return LUMA_OK;
        }
    }
    return lm_fail(p->S, LUMA_ERR_DTYPE, 0, "%.200s: dtype %.40s is not supported", p->path, code);
}

static luma_status take_counts(pass *p, int64_t *out, int most, int *n, const char *what) {
    *n = 0;
    if (!lm_json_take(&p->in, '[')) return bad(p, what);
    if (lm_json_take(&p->in, ']')) return LUMA_OK;
    do {
        if (*n == most || !lm_json_count(&p->in, &out[*n])) return bad(p, what);
        ++*n;
    } while (lm_json_take(&p->in, ','));
    return lm_json_take(&p->in, ']') ? LUMA_OK : bad(p, what);
}

static luma_status check_entry(const pass *p, const entry *e) {
    int64_t n;
    if (!lm_numel_fits(e->ndim, e->shape, e->dtype, &n)) return bad(p, "a shape is too large");
    if (e->start > e->end || e->end > p->data_size) return bad(p, "data_offsets outside the file");
    if (e->end - e->start != n * (int64_t)lm_dtype_size(e->dtype))
        return bad(p, "data_offsets do not fit the shape");
    return LUMA_OK;
}

static luma_status take_entry(pass *p, entry *e) {
    const int DTYPE = 1, SHAPE = 2, OFFSETS = 4;
    int seen = 0, n;
    int64_t offsets[2];
    if (!lm_json_take(&p->in, '{')) return bad(p, "an entry is not an object");
    do {
        char *key;
        int now;
        LM_TRY(take_string(p, false, &key));
        now = strcmp(key, "dtype") == 0          ? DTYPE
              : strcmp(key, "shape") == 0        ? SHAPE
              : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                 : 0;
        if (!now || (seen & now)) return bad(p, "an entry has an unknown or repeated key");
        seen |= now;
        if (!lm_json_take(&p->in, ':')) return bad(p, "a colon is missing");
        if (now == DTYPE) LM_TRY(take_dtype(p, e));
        if (now == SHAPE) LM_TRY(take_counts(p, e->shape, LUMA_MAX_DIMS, &e->ndim, "shape"));
        if (now == OFFSETS) {
            LM_TRY(take_counts(p, offsets, 2, &n, "data_offsets"));
            if (n != 2) return bad(p, "data_offsets");
            e->start = offsets[0];
            e->end = offsets[1];
        }
    } while (lm_json_take(&p->in, ','));
    if (!lm_json_take(&p->in, '}') || seen != (DTYPE | SHAPE | OFFSETS))
        return bad(p, "an entry is incomplete");
    return check_entry(p, e);
}

static luma_status take_metadata(pass *p) {
    if (p->nmetadata > 0) return bad(p, "two __metadata__");
    if (!lm_json_take(&p->in, '{')) return bad(p, "__metadata__ is not an object");
    if (lm_json_take(&p->in, '}')) return LUMA_OK;
    do {
        char *key, *value;
        LM_TRY(take_string(p, p->file != NULL, &key));
        if (!lm_json_take(&p->in, ':')) return bad(p, "a colon is missing");
        LM_TRY(take_string(p, p->file != NULL, &value));
        if (p->file) p->file->metadata[p->nmetadata] = (luma_pair){key, value};
        p->nmetadata++;
    } while (lm_json_take(&p->in, ','));
    return lm_json_take(&p->in, '}') ? LUMA_OK : bad(p, "__metadata__ is not closed");
}

static luma_status take_header(pass *p) {
    if (!lm_json_take(&p->in, '{')) return bad(p, "no object");
    if (!lm_json_take(&p->in, '}')) {
        do {
            char *name;
            entry e = {0};
            if (lm_interrupted(p->S)) return lm_fail_interrupted(p->S);
            LM_TRY(take_string(p, p->file != NULL, &name));
            if (!lm_json_take(&p->in, ':')) return bad(p, "a colon is missing");
            if (strcmp(name, "__metadata__") == 0) {
                LM_TRY(take_metadata(p));
                continue;
            }
            LM_TRY(take_entry(p, &e));
            if (p->file) {
                p->file->names[p->nentries] = name;
                p->entries[p->nentries] = e;
            }
            p->nentries++;
        } while (lm_json_take(&p->in, ','));
        if (!lm_json_take(&p->in, '}')) return bad(p, "the object is not closed");
    }
    return lm_json_end(&p->in) ? LUMA_OK : bad(p, "text after the object");
}

static int by_start(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = (x->start > y->start) - (x->start < y->start);
    return order ? order : (x->end > y->end) - (x->end < y->end);
}

/* The tensors fill the data without gaps or overlaps. */
static luma_status check_cover(const pass *p, const entry *sorted) {
    int64_t at = 0;
    for (int64_t i = 0; i < p->nentries; i++) {
        if (sorted[i].start != at) return bad(p, "a gap or an overlap between tensors");
        at = sorted[i].end;
    }
    return at == p->data_size ? LUMA_OK : bad(p, "bytes after the last tensor");
}

static luma_status read_data(pass *p, FILE *file, int64_t data_start) {
    for (int64_t i = 0; i < p->nentries; i++) {
        const entry *e = &p->entries[i];
        lm_source src = {.path = p->path, .file = file, .left = e->end - e->start};
        LM_TRY(lm_file_seek(p->S, file, p->path, data_start + e->start));
        LM_TRY(
            lm_read_tensor(p->S, &p->file->tensors[i], &src, e->dtype, e->ndim, e->shape, false));
    }
    return LUMA_OK;
}

/* Second pass: the header is known to be well-formed, `first` says how much it holds. */
static luma_status load_checked(const pass *first, const char *header, size_t n, luma_file *out,
                                FILE *file, int64_t data_start) {
    luma_state *S = first->S;
    pass p = {.S = S, .path = first->path, .data_size = first->data_size, .file = out};
    size_t table = (size_t)first->nentries * sizeof(entry);
    lm_storage *entries;
    if (first->nentries > INT32_MAX || first->nmetadata > INT32_MAX) return bad(first, "too large");
    LM_TRY(lm_file_reserve(S, out, (int)first->nentries, (int)first->nmetadata, n, &p.text));
    luma_status status = lm_storage_new(S, lm_cpu(S), 2 * table, &entries);
    if (status == LUMA_OK) {
        p.in = (lm_json){header, header + n};
        p.entries = (entry *)(void *)entries->data;
        entry *sorted = p.entries + first->nentries;
        status = take_header(&p);
        if (status == LUMA_OK) {
            memcpy(sorted, p.entries, table);
            qsort(sorted, (size_t)p.nentries, sizeof *sorted, by_start);
            status = check_cover(&p, sorted);
        }
        if (status == LUMA_OK) status = lm_names_distinct(S, out, p.path);
        if (status == LUMA_OK) status = read_data(&p, file, data_start);
        lm_storage_release(entries);
    }
    if (status != LUMA_OK) luma_close_file(S, out);
    return status;
}

static luma_status load(luma_state *S, luma_file *out, const char *path, FILE *file, int64_t size) {
    uint8_t length[8];
    uint64_t n = 0;
    pass p = {.S = S, .path = path};
    lm_source src = {.path = path, .file = file, .left = size};
    LM_TRY(lm_source_read(S, &src, length, 8));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > (uint64_t)src.left || n > HEADER_LIMIT) return bad(&p, "its length is past the file");
    lm_storage *memory; /* the header, and room to decode its strings */
    LM_TRY(lm_storage_new(S, lm_cpu(S), 2 * (size_t)n + 2, &memory));
    const char *header = memory->data;
    luma_status status = lm_source_read(S, &src, memory->data, (size_t)n);
    p.in = (lm_json){header, header + n};
    p.text = memory->data + n + 1;
    p.data_size = src.left;
    if (status == LUMA_OK) status = take_header(&p);
    if (status == LUMA_OK) status = load_checked(&p, header, (size_t)n, out, file, 8 + (int64_t)n);
    lm_storage_release(memory);
    return status;
}

luma_status lm_safetensors_load(luma_state *S, luma_file *out, const char *path) {
    FILE *file;
    int64_t size;
    LM_TRY(lm_file_open(S, path, &file, &size));
    luma_status status = load(S, out, path, file, size);
    fclose(file);
    return status;
}

/* ---- writing ---- */

/* What goes into the header: with out NULL only its length is found. */
typedef struct {
    char *out;
    size_t n;
} sink;

static void put(sink *s, const char *text) {
    size_t n = strlen(text);
    if (s->out) memcpy(s->out + s->n, text, n);
    s->n += n;
}

static void put_string(sink *s, const char *text) {
    put(s, "\"");
    s->n += lm_json_escape(text, s->out ? s->out + s->n : NULL);
    put(s, "\"");
}

static void put_entry(sink *s, const char *name, const luma_tensor *x, int64_t start, int64_t end) {
    char text[80];
    put_string(s, name);
    put(s, ":{\"dtype\":\"");
    put(s, codes[x->dtype]);
    put(s, "\",\"shape\":[");
    for (int d = 0; d < x->layout.ndim; d++) {
        snprintf(text, sizeof text, d ? ",%lld" : "%lld", (long long)x->layout.shape[d]);
        put(s, text);
    }
    snprintf(text, sizeof text, "],\"data_offsets\":[%lld,%lld]}", (long long)start,
             (long long)end);
    put(s, text);
}

static int64_t bytes_of(const luma_tensor *x) {
    return luma_numel(x) * (int64_t)lm_dtype_size(x->dtype);
}

/* Wide elements come first, so that all are aligned in the file; then the order given. */
static void put_header(sink *s, int n, const char *const *names, const luma_tensor *xs,
                       int nmetadata, const luma_pair *metadata) {
    int64_t at = 0;
    bool first = true;
    put(s, "{");
    if (nmetadata > 0) {
        put(s, "\"__metadata__\":{");
        for (int i = 0; i < nmetadata; i++) {
            if (i) put(s, ",");
            put_string(s, metadata[i].key);
            put(s, ":");
            put_string(s, metadata[i].value);
        }
        put(s, "}");
        first = false;
    }
    for (int size = 8; size > 0; size /= 2) {
        for (int i = 0; i < n; i++) {
            if ((int)lm_dtype_size(xs[i].dtype) != size) continue;
            if (!first) put(s, ",");
            first = false;
            put_entry(s, names[i], &xs[i], at, at + bytes_of(&xs[i]));
            at += bytes_of(&xs[i]);
        }
    }
    put(s, "}");
    while (s->n % 8)
        put(s, " ");
}

static luma_status put_bytes(luma_state *S, void *ctx, const void *data, size_t n) {
    return lm_writer_put(S, ctx, data, n);
}

static luma_status write_file(luma_state *S, lm_writer *w, const sink *header, int n,
                              const luma_tensor *xs) {
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(header->n >> (8 * i) & 255);
    LM_TRY(lm_writer_put(S, w, length, 8));
    LM_TRY(lm_writer_put(S, w, header->out, header->n));
    for (int size = 8; size > 0; size /= 2) {
        for (int i = 0; i < n; i++) {
            if ((int)lm_dtype_size(xs[i].dtype) == size)
                LM_TRY(lm_each_bytes(S, &xs[i], put_bytes, w));
        }
    }
    return LUMA_OK;
}

/* What is written must be readable: UTF-8 names, none of them the metadata's. */
static luma_status check_text(luma_state *S, const char *path, const char *text, char *room) {
    lm_json in = {room, room};
    size_t n = lm_json_escape(text, room + 1);
    room[0] = '"';
    room[n + 1] = '"';
    in.end = room + n + 2;
    size_t length;
    if (lm_json_string(&in, room + n + 2, &length)) return LUMA_OK;
    return lm_file_malformed(S, path, "'%.80s' is not UTF-8", text);
}

static luma_status check_texts(luma_state *S, const char *path, int n, const char *const *names,
                               int nmetadata, const luma_pair *metadata) {
    size_t longest = 16;
    lm_storage *room;
    for (int i = 0; i < n; i++) {
        size_t k = strlen(names[i]);
        if (strcmp(names[i], "__metadata__") == 0)
            return lm_file_malformed(S, path, "no tensor can be named __metadata__");
        longest = k > longest ? k : longest;
    }
    for (int i = 0; i < nmetadata; i++) {
        size_t k = strlen(metadata[i].key), v = strlen(metadata[i].value);
        longest = k > longest ? k : longest;
        longest = v > longest ? v : longest;
    }
    LM_TRY(lm_storage_new(S, lm_cpu(S), 7 * longest + 8, &room));
    luma_status status = LUMA_OK;
    for (int i = 0; i < n && status == LUMA_OK; i++)
        status = check_text(S, path, names[i], room->data);
    for (int i = 0; i < nmetadata && status == LUMA_OK; i++) {
        status = check_text(S, path, metadata[i].key, room->data);
        if (status == LUMA_OK) status = check_text(S, path, metadata[i].value, room->data);
    }
    lm_storage_release(room);
    return status;
}

luma_status lm_safetensors_save(luma_state *S, const char *path, int n, const char *const *names,
                                const luma_tensor *xs, int nmetadata, const luma_pair *metadata) {
    sink header = {0};
    lm_storage *memory;
    lm_writer w;
    LM_TRY(check_texts(S, path, n, names, nmetadata, metadata));
    put_header(&header, n, names, xs, nmetadata, metadata);
    if (header.n > HEADER_LIMIT) return lm_file_malformed(S, path, "the header would be too long");
    LM_TRY(lm_storage_new(S, lm_cpu(S), header.n, &memory));
    header = (sink){.out = memory->data};
    put_header(&header, n, names, xs, nmetadata, metadata);
    luma_status status = lm_writer_open(S, &w, path);
    if (status == LUMA_OK) status = lm_writer_close(S, &w, write_file(S, &w, &header, n, xs));
    lm_storage_release(memory);
    return status;
}
