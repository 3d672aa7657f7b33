/* file.c -- saving and loading by the ending of the path; reading and writing bytes safely.
** Layer: core. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are written little-endian");

#define PIECE (1 << 20) /* bytes read or converted at once */

/* ---- reading ---- */

luma_status lm_file_malformed(luma_state *S, const char *path, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: %s", path, text);
}

luma_status lm_file_open(luma_state *S, const char *path, FILE **file, int64_t *size) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would wait for its writer */
    bool known = fd >= 0 && fstat(fd, &info) == 0;
    FILE *f = known && S_ISREG(info.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!f) {
        int error = errno;
        if (fd >= 0) close(fd);
        return lm_file_malformed(S, path, "%s",
                                 known && !S_ISREG(info.st_mode) ? "not a regular file"
                                                                 : strerror(error));
    }
    *file = f;
    *size = (int64_t)info.st_size;
    return LUMA_OK;
}

luma_status lm_file_seek(luma_state *S, FILE *file, const char *path, int64_t position) {
    if (fseeko(file, (off_t)position, SEEK_SET) == 0) return LUMA_OK;
    return lm_file_malformed(S, path, "%s", strerror(errno));
}

static luma_status read_file(luma_state *S, lm_source *src, void *data, size_t n) {
    if (fread(data, 1, n, src->file) == n) return LUMA_OK;
    if (ferror(src->file)) return lm_file_malformed(S, src->path, "%s", strerror(errno));
    return lm_file_malformed(S, src->path, "the file ends too early");
}

luma_status lm_source_read(luma_state *S, lm_source *src, void *data, size_t n) {
    if ((uint64_t)src->left < n)
        return lm_file_malformed(S, src->path,
                                 "the data ends too early: %zu bytes wanted, %lld left", n,
                                 (long long)src->left);
    src->left -= (int64_t)n;
    return src->read ? src->read(S, src, data, n) : read_file(S, src, data, n);
}

static void swap_bytes(char *p, int64_t n, size_t size) {
    for (int64_t i = 0; i < n; i++, p += size) {
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            char c = p[a];
            p[a] = p[b];
            p[b] = c;
        }
    }
}

luma_status lm_read_tensor(luma_state *S, luma_tensor *out, lm_source *src, luma_dtype dtype,
                           int ndim, const int64_t *shape, bool swap) {
    int64_t n;
    lm_text text;
    size_t size = lm_dtype_size(dtype);
    if (!lm_numel_fits(ndim, shape, dtype, &n) || n * (int64_t)size > src->left)
        return lm_file_malformed(
            S, src->path, "shape %s of %s needs more than the %lld bytes there",
            lm_shape_text(&text, ndim, shape), lm_dtypes[dtype].name, (long long)src->left);
    luma_tensor x = LUMA_NEW;
    LM_TRY(lm_tensor_new(S, &x, lm_cpu(S), dtype, ndim, shape));
    char *p = lm_data(&x);
    luma_status status = LUMA_OK;
    for (int64_t left = n * (int64_t)size; left > 0 && status == LUMA_OK;) {
        size_t piece = left < PIECE ? (size_t)left : PIECE;
        status = lm_interrupted(S) ? lm_fail_interrupted(S) : lm_source_read(S, src, p, piece);
        p += piece;
        left -= (int64_t)piece;
    }
    if (status != LUMA_OK) {
        luma_release(S, &x);
        return status;
    }
    p = lm_data(&x);
    if (swap && size > 1) swap_bytes(p, n, size);
    if (dtype == LUMA_BOOL) {
        for (int64_t i = 0; i < n; i++)
            p[i] = p[i] != 0;
    }
    *out = x;
    return LUMA_OK;
}

luma_status lm_file_reserve(luma_state *S, luma_file *file, int n, int nmetadata, size_t text_size,
                            char **text) {
    size_t names = (size_t)n * sizeof(char *), tensors = (size_t)n * sizeof(luma_tensor);
    size_t pairs = (size_t)nmetadata * sizeof(luma_pair);
    memset(file, 0, sizeof *file);
    LM_TRY(lm_storage_new(S, lm_cpu(S), tensors + names + pairs + text_size + 1, &file->memory));
    char *p = file->memory->data;
    memset(p, 0, tensors + names + pairs + text_size + 1);
    file->tensors = (luma_tensor *)(void *)p;
    file->names = (char **)(void *)(p + tensors);
    file->metadata = (luma_pair *)(void *)(p + tensors + names);
    file->n = n;
    file->nmetadata = nmetadata;
    if (text) *text = p + tensors + names + pairs;
    return LUMA_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

luma_status lm_names_distinct(luma_state *S, const luma_file *file, const char *path) {
    lm_storage *memory;
    size_t nbytes = (size_t)file->n * sizeof *file->names;
    if (file->n < 2) return LUMA_OK;
    LM_TRY(lm_storage_new(S, lm_cpu(S), nbytes, &memory));
    char **sorted = (char **)(void *)memory->data;
    memcpy(sorted, file->names, nbytes);
    qsort(sorted, (size_t)file->n, sizeof *sorted, by_name);
    luma_status status = LUMA_OK;
    for (int i = 1; i < file->n && status == LUMA_OK; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = lm_file_malformed(S, path, "the name '%.80s' stands twice", sorted[i]);
    }
    lm_storage_release(memory);
    return status;
}

void luma_close_file(luma_state *S, luma_file *file) {
    for (int i = 0; i < file->n; i++)
        luma_release(S, &file->tensors[i]);
    lm_storage_release(file->memory);
    memset(file, 0, sizeof *file);
}

/* ---- writing ---- */

luma_status lm_writer_open(luma_state *S, lm_writer *w, const char *path) {
    struct timespec now;
    w->path = path;
    w->written = 0;
    if (strlen(path) + 40 > sizeof w->temporary)
        return lm_file_malformed(S, path, "the path is too long");
    for (int attempt = 0;; attempt++) {
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(w->temporary, sizeof w->temporary, "%s.%ld-%lx.tmp", path, (long)getpid(),
                 (unsigned long)now.tv_nsec + (unsigned long)attempt);
        int fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            w->file = fdopen(fd, "wb");
            if (w->file) return LUMA_OK;
            int error = errno;
            close(fd);
            unlink(w->temporary);
            return lm_file_malformed(S, path, "%s", strerror(error));
        }
        if (errno != EEXIST || attempt == 99)
            return lm_file_malformed(S, path, "%s", strerror(errno));
    }
}

luma_status lm_writer_put(luma_state *S, lm_writer *w, const void *data, size_t n) {
    if (fwrite(data, 1, n, w->file) != n)
        return lm_file_malformed(S, w->path, "%s", strerror(errno));
    w->written += (int64_t)n;
    return LUMA_OK;
}

luma_status lm_writer_close(luma_state *S, lm_writer *w, luma_status status) {
    int error = 0;
    if (fflush(w->file) != 0) error = errno;
    if (fclose(w->file) != 0 && !error) error = errno;
    if (status == LUMA_OK && !error && rename(w->temporary, w->path) != 0) error = errno;
    if (status != LUMA_OK || error) unlink(w->temporary);
    if (status == LUMA_OK && error) return lm_file_malformed(S, w->path, "%s", strerror(error));
    return status;
}

luma_status lm_each_bytes(luma_state *S, const luma_tensor *x, lm_bytes_fn *each, void *ctx) {
    luma_tensor host = LUMA_NEW;
    size_t n = (size_t)luma_numel(x) * lm_dtype_size(x->dtype);
    lm_storage *copy = NULL;
    const char *p = NULL;
    luma_status status;
    if (lm_device_of(x) == lm_cpu(S)) {
        status = luma_contiguous(S, &host, x);
        if (status == LUMA_OK) p = lm_data(&host);
    } else {
        status = lm_storage_new(S, lm_cpu(S), n, &copy);
        if (status == LUMA_OK) status = luma_read(S, x, copy->data, n);
        if (status == LUMA_OK) p = copy->data;
    }
    while (n > 0 && status == LUMA_OK) {
        size_t piece = n < PIECE ? n : PIECE;
        status = lm_interrupted(S) ? lm_fail_interrupted(S) : each(S, ctx, p, piece);
        p += piece;
        n -= piece;
    }
    lm_storage_release(copy);
    luma_release(S, &host);
    return status;
}

/* ---- by the ending ---- */

static bool ends_with(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}

static luma_status unknown_ending(luma_state *S, const char *path) {
    return lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: the ending must be .npy, .npz or .safetensors",
                   path);
}

/* What was read on the CPU goes to the default device. */
static luma_status place(luma_state *S, luma_file *file) {
    lm_device *device;
    LM_TRY(lm_device_find(S, NULL, &device));
    for (int i = 0; i < file->n && device != lm_cpu(S); i++) {
        luma_tensor *x = &file->tensors[i], moved = LUMA_NEW;
        LM_TRY(lm_tensor_new(S, &moved, device, x->dtype, x->layout.ndim, x->layout.shape));
        luma_status status = lm_copy(S, &moved, x);
        luma_release(S, x);
        *x = moved;
        LM_TRY(status);
    }
    return LUMA_OK;
}

luma_status luma_load(luma_state *S, luma_file *out, const char *path) {
    luma_file file;
    luma_status status;
    if (ends_with(path, ".npy"))
        status = lm_npy_load(S, &file, path);
    else if (ends_with(path, ".npz"))
        status = lm_npz_load(S, &file, path);
    else if (ends_with(path, ".safetensors"))
        status = lm_safetensors_load(S, &file, path);
    else
        return unknown_ending(S, path);
    LM_TRY(status);
    status = place(S, &file);
    if (status == LUMA_OK)
        *out = file;
    else
        luma_close_file(S, &file);
    return status;
}

luma_status luma_save(luma_state *S, const char *path, int n, const char *const *names,
                      const luma_tensor *xs, bool compressed, int nmetadata,
                      const luma_pair *metadata) {
    for (int i = 0; i < n; i++)
        LM_TRY(lm_tensor_live(S, 3, &xs[i]));
    if (nmetadata > 0 && !ends_with(path, ".safetensors"))
        return lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: only .safetensors holds metadata", path);
    if (ends_with(path, ".npy")) {
        if (n != 1 || (names && names[0]))
            return lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: .npy holds one tensor without a name",
                           path);
        return lm_npy_save(S, path, xs);
    }
    bool npz = ends_with(path, ".npz");
    if (!npz && !ends_with(path, ".safetensors")) return unknown_ending(S, path);
    if (!names)
        return lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: a table {name = tensor} expected", path);
    return npz ? lm_npz_save(S, path, n, names, xs, compressed)
               : lm_safetensors_save(S, path, n, names, xs, nmetadata, metadata);
}
