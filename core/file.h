/* file.h -- what the file formats share: sources that count bytes, a writer that keeps the old file
** until the new one is whole, and scratch memory. Layer: core. */
#ifndef lm_file_h
#define lm_file_h

#include <stdio.h>

#include "tensor.h"

/* Bytes to be read, from a file or through inflate. `left` bytes may still come. */
typedef struct lm_source lm_source;
struct lm_source {
    luma_status (*read)(luma_state *S, lm_source *src, void *data, size_t n);
    FILE *file;
    const char *path;
    int64_t left;
    void *ctx; /* of inflate */
};
luma_status lm_source_read(luma_state *S, lm_source *src, void *data, size_t n);

/* A file opened for reading, with its size. */
luma_status lm_file_open(luma_state *S, const char *path, FILE **file, int64_t *size);
luma_status lm_file_seek(luma_state *S, FILE *file, const char *path, int64_t position);
luma_status lm_file_malformed(luma_state *S, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes to a temporary file beside path; close renames it over path or, when status is a failure,
** removes it. */
typedef struct {
    FILE *file;
    const char *path;
    int64_t written;
    char temporary[4096];
} lm_writer;
luma_status lm_writer_open(luma_state *S, lm_writer *w, const char *path);
luma_status lm_writer_put(luma_state *S, lm_writer *w, const void *data, size_t n);
luma_status lm_writer_close(luma_state *S, lm_writer *w, luma_status status);

/* The elements of x in row-major order, piece by piece: each(ctx, bytes, n). */
typedef luma_status lm_bytes_fn(luma_state *S, void *ctx, const void *data, size_t n);
luma_status lm_each_bytes(luma_state *S, const luma_tensor *x, lm_bytes_fn *each, void *ctx);
/* Fills a new contiguous CPU tensor from src: shape of dtype; swap turns big-endian numbers;
** bool bytes become 0 or 1. */
luma_status lm_read_tensor(luma_state *S, luma_tensor *out, lm_source *src, luma_dtype dtype,
                           int ndim, const int64_t *shape, bool swap);

/* Sets up file for n names, all tensors LUMA_NEW, and text_size bytes at *text. */
luma_status lm_file_reserve(luma_state *S, luma_file *file, int n, int nmetadata, size_t text_size,
                            char **text);

/* An error when a name stands twice. */
luma_status lm_names_distinct(luma_state *S, const luma_file *file, const char *path);

/* npy.c: one array with its header */
luma_status lm_npy_read(luma_state *S, luma_tensor *out, lm_source *src);
/* Header for x into buffer; *n is its size, a multiple of 64. */
#define LM_NPY_HEADER 512
luma_status lm_npy_header(luma_state *S, const luma_tensor *x, char buffer[LM_NPY_HEADER],
                          size_t *n);

/* the formats */
luma_status lm_npy_load(luma_state *S, luma_file *out, const char *path);
luma_status lm_npy_save(luma_state *S, const char *path, const luma_tensor *x);
luma_status lm_npz_load(luma_state *S, luma_file *out, const char *path);
luma_status lm_npz_save(luma_state *S, const char *path, int n, const char *const *names,
                        const luma_tensor *xs, bool compressed);
luma_status lm_safetensors_load(luma_state *S, luma_file *out, const char *path);
luma_status lm_safetensors_save(luma_state *S, const char *path, int n, const char *const *names,
                                const luma_tensor *xs, int nmetadata, const luma_pair *metadata);

#endif
