/* npz.c -- zip archives of .npy arrays, stored or deflated, also beyond 4 GB (zip64).
** Format: PKWARE's APPNOTE 6.3; inflate, deflate and CRC-32 are zlib's. Layer: core. */
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "file.h"

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50 };
enum { END64 = 0x06064b50, LOCATOR64 = 0x07064b50 };
enum { STORED = 0, DEFLATED = 8 };

static uint64_t get(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* One entry of the central directory. */
typedef struct {
    const char *name; /* in the directory's bytes */
    size_t name_length;
    int method;
    uint32_t crc;
    int64_t packed, size, position; /* bytes in the file, bytes unpacked, local header */
} entry;

typedef struct {
    luma_state *S;
    const char *path;
    FILE *file;
    int64_t file_size;
    lm_storage *bytes; /* the central directory */
    int64_t nentries, directory, directory_size;
    int64_t unread; /* bytes of the file that entries have not claimed: none is read twice */
} archive;

static luma_status bad(const archive *z, const char *what) {
    return lm_file_malformed(z->S, z->path, "malformed .npz: %s", what);
}

static luma_status read_at(archive *z, int64_t position, void *data, size_t n) {
    if (position < 0 || position > z->file_size || (uint64_t)(z->file_size - position) < n)
        return bad(z, "it points outside the file");
    lm_source src = {.path = z->path, .file = z->file, .left = (int64_t)n};
    LM_TRY(lm_file_seek(z->S, z->file, z->path, position));
    return lm_source_read(z->S, &src, data, n);
}

/* ---- the directory ---- */

static luma_status read_end64(archive *z, int64_t end) {
    unsigned char p[56];
    if (end < 20) return bad(z, "no zip64 directory");
    LM_TRY(read_at(z, end - 20, p, 20));
    if (get(p, 4) != LOCATOR64) return bad(z, "no zip64 directory");
    uint64_t position = get(p + 8, 8);
    if (position > (uint64_t)z->file_size) return bad(z, "it points outside the file");
    LM_TRY(read_at(z, (int64_t)position, p, 56));
    if (get(p, 4) != END64) return bad(z, "no zip64 directory");
    z->nentries = (int64_t)(get(p + 32, 8) & INT64_MAX);
    z->directory_size = (int64_t)(get(p + 40, 8) & INT64_MAX);
    z->directory = (int64_t)(get(p + 48, 8) & INT64_MAX);
    return LUMA_OK;
}

/* The end record is the last 22 bytes but for a comment; writers of arrays leave none, so it is
** looked for in the last kilobyte. */
static luma_status find_directory(archive *z) {
    unsigned char tail[22 + 1024];
    int64_t n = z->file_size < (int64_t)sizeof tail ? z->file_size : (int64_t)sizeof tail;
    if (n < 22) return bad(z, "too short for a zip archive");
    LM_TRY(read_at(z, z->file_size - n, tail, (size_t)n));
    for (int64_t i = n - 22; i >= 0; i--) {
        const unsigned char *p = tail + i;
        if (get(p, 4) != END) continue;
        z->nentries = (int64_t)get(p + 10, 2);
        z->directory_size = (int64_t)get(p + 12, 4);
        z->directory = (int64_t)get(p + 16, 4);
        if (z->nentries == 0xffff || z->directory_size == 0xffffffff || z->directory == 0xffffffff)
            return read_end64(z, z->file_size - n + i);
        return LUMA_OK;
    }
    return bad(z, "no zip directory");
}

static luma_status read_directory(archive *z) {
    LM_TRY(find_directory(z));
    if (z->directory > z->file_size || z->directory_size > z->file_size - z->directory)
        return bad(z, "the directory reaches outside the file");
    /* 46 bytes an entry at least: bounds the number before memory is asked for */
    if (z->nentries > z->directory_size / 46)
        return bad(z, "more entries than the directory holds");
    LM_TRY(lm_storage_new(z->S, lm_cpu(z->S), (size_t)z->directory_size + 1, &z->bytes));
    return read_at(z, z->directory, z->bytes->data, (size_t)z->directory_size);
}

/* The zip64 extra field replaces those of size, packed, position that are all ones, in that order.
 */
static luma_status read_extra(const archive *z, entry *e, const unsigned char *p, int64_t n) {
    int64_t *fields[3] = {&e->size, &e->packed, &e->position};
    while (n >= 4) {
        int64_t id = (int64_t)get(p, 2), length = (int64_t)get(p + 2, 2);
        if (length > n - 4) break;
        if (id == 1) {
            const unsigned char *q = p + 4;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != 0xffffffff) continue;
                if (q + 8 > p + 4 + length) return bad(z, "a short zip64 field");
                *fields[i] = (int64_t)(get(q, 8) & INT64_MAX);
                q += 8;
            }
            return LUMA_OK;
        }
        p += 4 + length;
        n -= 4 + length;
    }
    return LUMA_OK;
}

static luma_status read_entry(const archive *z, int64_t *at, entry *e) {
    const unsigned char *p = (const unsigned char *)z->bytes->data + *at;
    int64_t left = z->directory_size - *at;
    if (left < 46 || get(p, 4) != CENTRAL) return bad(z, "a directory entry is broken");
    int64_t name = (int64_t)get(p + 28, 2), extra = (int64_t)get(p + 30, 2);
    int64_t comment = (int64_t)get(p + 32, 2);
    if (46 + name + extra + comment > left) return bad(z, "a directory entry is broken");
    if (get(p + 8, 2) & 1) return bad(z, "an entry is encrypted");
    e->method = (int)get(p + 10, 2);
    e->crc = (uint32_t)get(p + 16, 4);
    e->packed = (int64_t)get(p + 20, 4);
    e->size = (int64_t)get(p + 24, 4);
    e->position = (int64_t)get(p + 42, 4);
    e->name = (const char *)p + 46;
    e->name_length = (size_t)name;
    *at += 46 + name + extra + comment;
    return read_extra(z, e, p + 46 + name, extra);
}

/* ---- one entry ---- */

typedef struct {
    z_stream stream;
    int64_t packed; /* bytes still in the file */
    uint32_t crc;
    bool deflated;
    unsigned char buffer[1 << 15];
} unpacker;

static luma_status read_stored(luma_state *S, lm_source *src, void *data, size_t n) {
    unpacker *u = src->ctx;
    lm_source raw = {.path = src->path, .file = src->file, .left = (int64_t)n};
    LM_TRY(lm_source_read(S, &raw, data, n));
    u->crc = (uint32_t)crc32_z(u->crc, data, n);
    return LUMA_OK;
}

static luma_status read_deflated(luma_state *S, lm_source *src, void *data, size_t n) {
    unpacker *u = src->ctx;
    z_stream *z = &u->stream;
    /* callers ask for at most a piece, which fits uInt */
    z->next_out = data;
    z->avail_out = (uInt)n;
    while (z->avail_out > 0) {
        if (z->avail_in == 0 && u->packed > 0) {
            size_t piece =
                u->packed < (int64_t)sizeof u->buffer ? (size_t)u->packed : sizeof u->buffer;
            lm_source raw = {.path = src->path, .file = src->file, .left = (int64_t)piece};
            LM_TRY(lm_source_read(S, &raw, u->buffer, piece));
            u->packed -= (int64_t)piece;
            z->next_in = u->buffer;
            z->avail_in = (uInt)piece;
        }
        int code = inflate(z, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR) return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
        if (code != Z_OK && !(code == Z_STREAM_END && z->avail_out == 0))
            return lm_file_malformed(S, src->path, "malformed .npz: the compressed data is broken");
    }
    u->crc = (uint32_t)crc32_z(u->crc, data, n);
    return LUMA_OK;
}

static luma_status open_entry(archive *z, const entry *e) {
    unsigned char p[30];
    LM_TRY(read_at(z, e->position, p, 30));
    if (get(p, 4) != LOCAL) return bad(z, "a local header is broken");
    int64_t start = e->position + 30 + (int64_t)get(p + 26, 2) + (int64_t)get(p + 28, 2);
    if (start > z->file_size || e->packed > z->file_size - start)
        return bad(z, "an entry reaches outside the file");
    z->unread -= e->packed;
    if (z->unread < 0) return bad(z, "entries overlap");
    if (e->method == STORED && e->packed != e->size) return bad(z, "the sizes of an entry differ");
    /* deflate never packs tighter than 1032 to 1: a size beyond is a lie */
    if (e->method == DEFLATED && e->size / 1032 > e->packed + 64)
        return bad(z, "an entry claims more bytes than its data can hold");
    return lm_file_seek(z->S, z->file, z->path, start);
}

static luma_status load_entry(archive *z, const entry *e, unpacker *u, luma_tensor *out) {
    luma_state *S = z->S;
    if (e->method != STORED && e->method != DEFLATED)
        return bad(z, "an unknown compression method");
    LM_TRY(open_entry(z, e));
    memset(&u->stream, 0, sizeof u->stream);
    u->crc = (uint32_t)crc32(0, NULL, 0);
    u->packed = e->packed;
    if (e->method == DEFLATED && inflateInit2(&u->stream, -MAX_WBITS) != Z_OK)
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    lm_source src = {.read = e->method == DEFLATED ? read_deflated : read_stored,
                     .file = z->file,
                     .path = z->path,
                     .left = e->size,
                     .ctx = u};
    luma_tensor x = LUMA_NEW;
    luma_status status = lm_npy_read(S, &x, &src);
    if (status == LUMA_OK && src.left != 0) status = bad(z, "bytes after an array");
    if (status == LUMA_OK && u->crc != e->crc) status = bad(z, "a checksum does not fit");
    if (e->method == DEFLATED) inflateEnd(&u->stream);
    if (status == LUMA_OK)
        *out = x;
    else
        luma_release(S, &x);
    return status;
}

/* "x.npy" is x. */
static luma_status take_name(const archive *z, const entry *e, char *text, luma_file *out, int i) {
    if (e->name_length < 4 || memcmp(e->name + e->name_length - 4, ".npy", 4) != 0)
        return lm_file_malformed(z->S, z->path, "'%.*s' is not an .npy array",
                                 e->name_length < 80 ? (int)e->name_length : 80, e->name);
    size_t n = e->name_length - 4;
    if (memchr(e->name, '\0', n)) return bad(z, "a name contains a zero byte");
    memcpy(text, e->name, n);
    text[n] = '\0';
    out->names[i] = text;
    return LUMA_OK;
}

static luma_status load_entries(archive *z, luma_file *out) {
    luma_state *S = z->S;
    char *text;
    lm_storage *scratch;
    LM_TRY(read_directory(z));
    LM_TRY(lm_file_reserve(S, out, (int)z->nentries, 0, (size_t)(z->directory_size + z->nentries),
                           &text));
    luma_status status = lm_storage_new(S, lm_cpu(S), sizeof(unpacker), &scratch);
    if (status == LUMA_OK) {
        int64_t at = 0;
        for (int i = 0; i < out->n && status == LUMA_OK; i++) {
            entry e;
            status = read_entry(z, &at, &e);
            if (status == LUMA_OK) status = take_name(z, &e, text, out, i);
            text += status == LUMA_OK ? strlen(text) + 1 : 0;
            if (status == LUMA_OK)
                status = load_entry(z, &e, (unpacker *)(void *)scratch->data, &out->tensors[i]);
        }
        lm_storage_release(scratch);
    }
    if (status == LUMA_OK) status = lm_names_distinct(S, out, z->path);
    if (status != LUMA_OK) luma_close_file(S, out);
    return status;
}

luma_status lm_npz_load(luma_state *S, luma_file *out, const char *path) {
    archive z = {.S = S, .path = path};
    LM_TRY(lm_file_open(S, path, &z.file, &z.file_size));
    z.unread = z.file_size;
    luma_status status = load_entries(&z, out);
    lm_storage_release(z.bytes);
    fclose(z.file);
    return status;
}

/* ---- writing ---- */

static void put(unsigned char *p, int n, uint64_t v) {
    for (int i = 0; i < n; i++, v >>= 8)
        p[i] = (unsigned char)(v & 255);
}

typedef struct {
    lm_writer w;
    z_stream stream;
    bool compressed;
    uint32_t crc;
    int64_t size;
    unsigned char buffer[1 << 15];
} packer;

/* What the directory repeats of each entry. */
typedef struct {
    uint32_t crc;
    int64_t packed, size, position;
} packed;

static luma_status pack(luma_state *S, packer *k, const void *data, size_t n, int flush) {
    z_stream *z = &k->stream;
    z->next_in = data;
    z->avail_in = (uInt)n;
    int code;
    do {
        z->next_out = k->buffer;
        z->avail_out = sizeof k->buffer;
        code = deflate(z, flush);
        LM_TRY(lm_writer_put(S, &k->w, k->buffer, sizeof k->buffer - z->avail_out));
    } while (z->avail_out == 0 || (flush == Z_FINISH && code != Z_STREAM_END));
    return LUMA_OK;
}

static luma_status put_bytes(luma_state *S, void *ctx, const void *data, size_t n) {
    packer *k = ctx;
    k->crc = (uint32_t)crc32_z(k->crc, data, n);
    k->size += (int64_t)n;
    return k->compressed ? pack(S, k, data, n, Z_NO_FLUSH) : lm_writer_put(S, &k->w, data, n);
}

/* A local header with room for zip64 sizes, which are known once the data is written. */
static luma_status put_local(luma_state *S, packer *k, const char *name, const packed *e) {
    unsigned char p[30] = {0}, extra[20] = {0};
    size_t n = strlen(name);
    put(p, 4, LOCAL);
    put(p + 4, 2, 45);
    put(p + 6, 2, 1 << 11); /* names are UTF-8 */
    put(p + 8, 2, k->compressed ? DEFLATED : STORED);
    put(p + 12, 2, 0x21); /* 1980-01-01: files do not differ by the time they are written */
    put(p + 14, 4, e->crc);
    put(p + 18, 4, 0xffffffff);
    put(p + 22, 4, 0xffffffff);
    put(p + 26, 2, n + 4);
    put(p + 28, 2, sizeof extra);
    put(extra, 2, 1);
    put(extra + 2, 2, 16);
    put(extra + 4, 8, (uint64_t)e->size);
    put(extra + 12, 8, (uint64_t)e->packed);
    LM_TRY(lm_writer_put(S, &k->w, p, sizeof p));
    LM_TRY(lm_writer_put(S, &k->w, name, n));
    LM_TRY(lm_writer_put(S, &k->w, ".npy", 4));
    return lm_writer_put(S, &k->w, extra, sizeof extra);
}

static luma_status put_entry(luma_state *S, packer *k, const char *name, const luma_tensor *x,
                             packed *e) {
    char start[LM_NPY_HEADER];
    size_t n;
    *e = (packed){.position = k->w.written};
    LM_TRY(lm_npy_header(S, x, start, &n));
    LM_TRY(put_local(S, k, name, e));
    int64_t data = k->w.written;
    k->crc = (uint32_t)crc32(0, NULL, 0);
    k->size = 0;
    memset(&k->stream, 0, sizeof k->stream);
    if (k->compressed && deflateInit2(&k->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                                      Z_DEFAULT_STRATEGY) != Z_OK)
        return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
    luma_status status = put_bytes(S, k, start, n);
    if (status == LUMA_OK) status = lm_each_bytes(S, x, put_bytes, k);
    if (status == LUMA_OK && k->compressed) status = pack(S, k, NULL, 0, Z_FINISH);
    if (k->compressed) deflateEnd(&k->stream);
    LM_TRY(status);
    e->crc = k->crc;
    e->size = k->size;
    e->packed = k->w.written - data;
    int64_t end = k->w.written;
    LM_TRY(lm_file_seek(S, k->w.file, k->w.path, e->position));
    LM_TRY(put_local(S, k, name, e));
    k->w.written = end;
    return lm_file_seek(S, k->w.file, k->w.path, end);
}

static luma_status put_central(luma_state *S, packer *k, const char *name, const packed *e) {
    unsigned char p[46] = {0}, extra[28] = {0};
    size_t n = strlen(name);
    put(p, 4, CENTRAL);
    put(p + 4, 2, 45);
    put(p + 6, 2, 45);
    put(p + 8, 2, 1 << 11);
    put(p + 10, 2, k->compressed ? DEFLATED : STORED);
    put(p + 14, 2, 0x21);
    put(p + 16, 4, e->crc);
    put(p + 20, 4, 0xffffffff);
    put(p + 24, 4, 0xffffffff);
    put(p + 28, 2, n + 4);
    put(p + 30, 2, sizeof extra);
    put(p + 42, 4, 0xffffffff);
    put(extra, 2, 1);
    put(extra + 2, 2, 24);
    put(extra + 4, 8, (uint64_t)e->size);
    put(extra + 12, 8, (uint64_t)e->packed);
    put(extra + 20, 8, (uint64_t)e->position);
    LM_TRY(lm_writer_put(S, &k->w, p, sizeof p));
    LM_TRY(lm_writer_put(S, &k->w, name, n));
    LM_TRY(lm_writer_put(S, &k->w, ".npy", 4));
    return lm_writer_put(S, &k->w, extra, sizeof extra);
}

static luma_status put_end(luma_state *S, packer *k, int n, int64_t directory) {
    unsigned char e64[56] = {0}, locator[20] = {0}, end[22] = {0};
    int64_t position = k->w.written, size = position - directory;
    bool wide = n >= 0xffff || position >= 0xffffffff;
    put(e64, 4, END64);
    put(e64 + 4, 8, 44);
    put(e64 + 12, 2, 45);
    put(e64 + 14, 2, 45);
    put(e64 + 24, 8, (uint64_t)n);
    put(e64 + 32, 8, (uint64_t)n);
    put(e64 + 40, 8, (uint64_t)size);
    put(e64 + 48, 8, (uint64_t)directory);
    put(locator, 4, LOCATOR64);
    put(locator + 8, 8, (uint64_t)position);
    put(locator + 16, 4, 1);
    put(end, 4, END);
    put(end + 8, 2, wide ? 0xffff : (uint64_t)n);
    put(end + 10, 2, wide ? 0xffff : (uint64_t)n);
    put(end + 12, 4, wide ? 0xffffffff : (uint64_t)size);
    put(end + 16, 4, wide ? 0xffffffff : (uint64_t)directory);
    if (wide) {
        LM_TRY(lm_writer_put(S, &k->w, e64, sizeof e64));
        LM_TRY(lm_writer_put(S, &k->w, locator, sizeof locator));
    }
    return lm_writer_put(S, &k->w, end, sizeof end);
}

luma_status lm_npz_save(luma_state *S, const char *path, int n, const char *const *names,
                        const luma_tensor *xs, bool compressed) {
    lm_storage *memory;
    for (int i = 0; i < n; i++) {
        if (strlen(names[i]) > 60000)
            return lm_file_malformed(S, path, "a name of %zu bytes", strlen(names[i]));
    }
    LM_TRY(lm_storage_new(S, lm_cpu(S), sizeof(packer) + (size_t)n * sizeof(packed), &memory));
    packer *k = (packer *)(void *)memory->data;
    packed *entries = (packed *)(void *)(memory->data + sizeof *k);
    k->compressed = compressed;
    luma_status status = lm_writer_open(S, &k->w, path);
    if (status == LUMA_OK) {
        for (int i = 0; i < n && status == LUMA_OK; i++)
            status = put_entry(S, k, names[i], &xs[i], &entries[i]);
        int64_t directory = k->w.written;
        for (int i = 0; i < n && status == LUMA_OK; i++)
            status = put_central(S, k, names[i], &entries[i]);
        if (status == LUMA_OK) status = put_end(S, k, n, directory);
        status = lm_writer_close(S, &k->w, status);
    }
    lm_storage_release(memory);
    return status;
}
