/* png.c -- PNG files through the simplified interface of libpng 1.6, which is opened when it is first
** needed: luma builds and runs without it. Its structure is declared here as its manual gives it.
** Layer: core. */
#include "png.h"

#include <dlfcn.h>
#include <string.h>

#include "file.h"

typedef struct {
    void *opaque;
    uint32_t version, width, height, format, flags, colormap_entries, warning_or_error;
    char message[64];
} image;
#define IMAGE_VERSION 1
typedef struct {
    uint8_t red, green, blue;
} color;

/* X(result, name, parameters) */
#define PNG_API(X)                                                                                 \
    X(int, png_image_begin_read_from_stdio, (image *, FILE *))                                     \
    X(int, png_image_finish_read, (image *, const color *, void *, int32_t, void *))               \
    X(int, png_image_write_to_stdio, (image *, FILE *, int, const void *, int32_t, const void *))  \
    X(void, png_image_free, (image *))

typedef struct {
#define FIELD(result, name, parameters) result(*name) parameters;
    PNG_API(FIELD)
#undef FIELD
} library;

static luma_status open_library(luma_state *S, library *png) {
    static const char *const names[] = {"libpng16.so.16", "libpng16.so", NULL};
    void *handle = NULL; /* never closed; later calls get the same one */
    for (int i = 0; names[i] && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return lm_fail(S, LUMA_ERR_FILE, 0,
                       "PNG files need libpng 1.6, which is not installed "
                       "(tried %s)",
                       names[0]);
    const char *missing = NULL;
#define LOAD(result, name, parameters)                                                             \
    {                                                                                              \
        void *symbol = dlsym(handle, #name);                                                       \
        memcpy(&png->name, &symbol, sizeof symbol);                                                \
        if (!symbol) missing = #name;                                                              \
    }
    PNG_API(LOAD)
#undef LOAD
    if (missing) return lm_fail(S, LUMA_ERR_FILE, 0, "libpng has no %s", missing);
    return LUMA_OK;
}

static luma_status fail_read(luma_state *S, const char *path, const image *i) {
    return lm_file_malformed(S, path, "no PNG file: %.63s", i->message);
}

static luma_status read_image(luma_state *S, luma_tensor *out, const library *png, image *i,
                              FILE *file, const char *path, unsigned format) {
    static const color white = {255, 255, 255};
    if (!png->png_image_begin_read_from_stdio(i, file)) return fail_read(S, path, i);
    if (format == LM_PNG_AS_STORED) format = i->format & (LM_PNG_ALPHA | LM_PNG_COLOR);
    i->format = format;
    int channels = lm_png_channels(format);
    int64_t shape[3] = {i->height, i->width, channels};
    int64_t row = shape[1] * channels;
    if (row > INT32_MAX) return lm_file_malformed(S, path, "%u columns are too many", i->width);
    luma_tensor x = LUMA_NEW;
    LM_TRY(lm_tensor_new(S, &x, lm_cpu(S), LUMA_UINT8, 3, shape));
    if (!png->png_image_finish_read(i, format & LM_PNG_ALPHA ? NULL : &white, lm_data(&x),
                                    (int32_t)row, NULL)) {
        luma_release(S, &x);
        return fail_read(S, path, i);
    }
    *out = x;
    return LUMA_OK;
}

luma_status lm_png_load(luma_state *S, luma_tensor *out, const char *path, unsigned format) {
    library png;
    FILE *file;
    int64_t size;
    LM_TRY(open_library(S, &png));
    LM_TRY(lm_file_open(S, path, &file, &size));
    image i = {.version = IMAGE_VERSION};
    luma_status status = read_image(S, out, &png, &i, file, path, format);
    png.png_image_free(&i);
    fclose(file);
    return status;
}

luma_status lm_png_save(luma_state *S, const char *path, const luma_tensor *x, unsigned format) {
    library png;
    lm_writer w;
    LM_TRY(open_library(S, &png));
    int64_t height = x->layout.shape[0], width = x->layout.shape[1];
    int64_t row = width * lm_png_channels(format);
    if (height < 1 || width < 1 || height > INT32_MAX || row > INT32_MAX)
        return lm_fail(S, LUMA_ERR_SHAPE, 2, "a picture of %lld by %lld cannot be a PNG file",
                       (long long)height, (long long)width);
    LM_TRY(lm_writer_open(S, &w, path));
    image i = {.version = IMAGE_VERSION,
               .width = (uint32_t)width,
               .height = (uint32_t)height,
               .format = format};
    luma_status status = LUMA_OK;
    if (!png.png_image_write_to_stdio(&i, w.file, 0, lm_data(x), (int32_t)row, NULL))
        status = lm_fail(S, LUMA_ERR_FILE, 0, "%.200s: %.63s", path, i.message);
    png.png_image_free(&i);
    return lm_writer_close(S, &w, status);
}
