/* user.c -- modules of scripts: what their PTX says of its entries, loading, launching. Layer:
** kernels/cuda. */
#include "user.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "nvrtc.h"

typedef struct {
    lm_user_kernel kernel;
    CUfunction handle; /* NULL until first launched */
    int dynamic;       /* bytes of dynamic shared memory that it may have now */
} entry;

struct lm_user_module {
    lm_cuda *cuda;
    CUmodule handle;
    char *ptx;
    int n;
    entry *entries;
};

/* ---- reading PTX ---- */

static luma_status no_memory(luma_state *S) {
    return lm_fail(S, LUMA_ERR_MEMORY, 0, "not enough memory");
}

/* Spaces in place of comments. */
static void blank_comments(char *p) {
    while (*p) {
        size_t n = 0;
        if (p[0] == '/' && p[1] == '/') n = strcspn(p, "\n");
        if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            n = end ? (size_t)(end + 2 - p) : strlen(p);
        }
        for (size_t i = 0; i < n; i++)
            if (p[i] != '\n') p[i] = ' ';
        p += n > 0 ? n : 1;
    }
}

static const char *skip(const char *p) {
    return p + strspn(p, " \t\r\n");
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* "u64" and the like: kind and bytes; false for words that are no type. */
static bool read_type(const char *word, lm_user_param *p) {
    char *end;
    if (!strchr("busf", word[0]) || !isdigit((unsigned char)word[1])) return false;
    long bits = strtol(word + 1, &end, 10);
    if (in_word(*end) || bits < 8 || bits > 64) return false;
    p->kind = word[0] == 'f' ? LM_USER_FLOAT : LM_USER_INT;
    p->size = (uint32_t)bits / 8;
    return true;
}

/* ".param .align 8 .b8 name[24]" after its .param, up to `end`. What stands between .ptr and the
** name is about what the pointer points at. */
static bool read_parameter(const char *p, const char *end, lm_user_param *out) {
    bool typed = false, pointer = false;
    memset(out, 0, sizeof *out);
    for (; p < end; p++) {
        if (*p == '[' && typed) {
            unsigned long n = strtoul(p + 1, NULL, 10);
            out->size *= (uint32_t)(n <= LM_USER_PARAMETER ? n : LM_USER_PARAMETER + 1);
            out->kind = LM_USER_BYTES;
        }
        if (*p != '.') continue;
        if (strncmp(p, ".ptr", 4) == 0 && !in_word(p[4])) pointer = true;
        if (strncmp(p, ".align", 6) == 0 && !pointer)
            out->align = (uint32_t)strtoul(p + 6, NULL, 10);
        if (!typed) typed = read_type(p + 1, out);
    }
    if (pointer) out->kind = LM_USER_POINTER;
    if (out->align == 0) out->align = out->size;
    return typed && out->size > 0;
}

/* The parameters between the parentheses; what is wrong with them, or NULL. */
static const char *read_parameters(const char *open, const char *close, lm_user_kernel *k) {
    uint64_t total = 0;
    for (const char *p = open; (p = strstr(p, ".param")) && p < close;) {
        const char *end = p + strcspn(p, ",)");
        if (k->nparams == LM_USER_PARAMS) return "are too many";
        lm_user_param *param = &k->params[k->nparams++];
        if (!read_parameter(p + strlen(".param"), end, param)) return "cannot be read";
        total += param->size;
        if (total > LM_USER_PARAMETER) return "have too many bytes";
        p = end;
    }
    return NULL;
}

static luma_status read_entry(luma_state *S, lm_user_module *m, const char *p) {
    size_t n = 0;
    p = skip(p);
    while (in_word(p[n]))
        n++;
    if (n == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "a kernel of the module has no name");
    entry *more = realloc(m->entries, (size_t)(m->n + 1) * sizeof *more);
    char *name = strndup(p, n);
    if (more) m->entries = more;
    if (!more || !name) {
        free(name);
        return no_memory(S);
    }
    entry *e = &m->entries[m->n++];
    memset(e, 0, sizeof *e);
    e->kernel.name = name;
    const char *open = skip(p + n), *close = strchr(open, ')');
    if (*open != '(') return LUMA_OK; /* no parameters */
    const char *wrong = close ? read_parameters(open, close, &e->kernel) : "have no end";
    if (!wrong) return LUMA_OK;
    return lm_fail(S, LUMA_ERR_ARGUMENT, 0,
                   "the parameters of kernel '%.100s' %s: at most %d of %d bytes in all can be",
                   name, wrong, LM_USER_PARAMS, LM_USER_PARAMETER);
}

static luma_status read_entries(luma_state *S, lm_user_module *m, const char *p) {
    while ((p = strstr(p, ".entry"))) {
        p += strlen(".entry");
        if (isspace((unsigned char)*p)) LM_TRY(read_entry(S, m, p));
    }
    if (m->n == 0) return lm_fail(S, LUMA_ERR_ARGUMENT, 0, "the module has no kernel");
    return LUMA_OK;
}

/* ---- modules ---- */

/* text: PTX without comments; may be changed */
static luma_status load(luma_state *S, lm_user_module *m, char *text) {
    lm_cuda *c = m->cuda;
    LM_TRY(read_entries(S, m, text));
    LM_TRY(lm_cuda_enter(S, c));
    luma_status status = lm_cuda_load(S, c, text, "the module", &m->handle);
    lm_cuda_leave(c);
    return status;
}

/* Finds out what the text is, and makes PTX of it. */
static luma_status translate(luma_state *S, lm_user_module *m, const char *text, int noptions,
                             const char *const *options, char **log) {
    char *plain = strdup(text);
    if (!plain) return no_memory(S);
    blank_comments(plain);
    bool is_ptx = strncmp(skip(plain), ".version", strlen(".version")) == 0;
    free(plain);
    if (!is_ptx)
        return lm_nvrtc_compile(S, m->cuda->capability, text, noptions, options, &m->ptx, log);
    m->ptx = strdup(text);
    return m->ptx ? LUMA_OK : no_memory(S);
}

luma_status lm_user_open(luma_state *S, lm_device *d, const char *text, int noptions,
                         const char *const *options, lm_user_module **out, char **log) {
    lm_user_module *m = calloc(1, sizeof *m);
    *log = NULL;
    if (!m) return no_memory(S);
    m->cuda = lm_cuda_of(d);
    luma_status status = translate(S, m, text, noptions, options, log);
    if (status == LUMA_OK) {
        char *plain = strdup(m->ptx);
        if (plain) blank_comments(plain);
        status = plain ? load(S, m, plain) : no_memory(S);
        free(plain);
    }
    if (status == LUMA_OK)
        *out = m;
    else
        lm_user_close(m);
    return status;
}

/* Without a device nothing is left to unload. */
static void unload(lm_user_module *m) {
    lm_cuda *c = m->cuda;
    if (!m->handle || !lm_cuda_push(c)) return;
    c->driver->cuStreamSynchronize(c->stream);
    c->driver->cuModuleUnload(m->handle);
    c->driver->cuCtxPopCurrent_v2(NULL);
}

void lm_user_close(lm_user_module *m) {
    unload(m);
    for (int i = 0; i < m->n; i++)
        free(m->entries[i].kernel.name);
    free(m->entries);
    free(m->ptx);
    free(m);
}

const char *lm_user_ptx(const lm_user_module *m) {
    return m->ptx;
}

lm_device *lm_user_device(const lm_user_module *m) {
    return m->cuda->device;
}

int lm_user_count(const lm_user_module *m) {
    return m->n;
}

const lm_user_kernel *lm_user_at(const lm_user_module *m, int i) {
    return &m->entries[i].kernel;
}

/* "_Z5saxpyfPf" is a saxpy. */
static bool is_mangled(const char *mangled, const char *name) {
    char prefix[300];
    int n = snprintf(prefix, sizeof prefix, "_Z%zu%s", strlen(name), name);
    return n > 0 && (size_t)n < sizeof prefix && strncmp(mangled, prefix, (size_t)n) == 0;
}

luma_status lm_user_find(luma_state *S, const lm_user_module *m, const char *name, int *at) {
    int found = 0;
    for (int i = 0; i < m->n; i++) {
        const char *here = m->entries[i].kernel.name;
        if (strcmp(here, name) == 0) {
            *at = i;
            return LUMA_OK;
        }
        if (is_mangled(here, name)) {
            *at = i;
            found++;
        }
    }
    if (found == 1) return LUMA_OK;
    if (found > 1)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                       "%d kernels are called '%.100s': extern \"C\" or "
                       "the mangled name tells them apart",
                       found, name);
    return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "no kernel '%.100s' in the module; there is '%.100s'%s",
                   name, m->entries[0].kernel.name, m->n > 1 ? " and others" : "");
}

/* ---- launching ---- */

static luma_status prepare(luma_state *S, lm_user_module *m, entry *e) {
    const lm_driver *driver = m->cuda->driver;
    CUfunction f;
    int fixed = 0;
    LM_TRY(lm_cuda_check(S, m->cuda, driver->cuModuleGetFunction(&f, m->handle, e->kernel.name),
                         "cuModuleGetFunction"));
    LM_TRY(lm_cuda_check(S, m->cuda,
                         driver->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f),
                         "cuFuncGetAttribute"));
    e->dynamic = (48 << 10) - fixed;
    e->handle = f;
    return LUMA_OK;
}

/* Sizes as PTX and every driver have them; what depends on the kernel the driver says itself. */
static luma_status check_shape(luma_state *S, const lm_cuda *c, const lm_user_shape *s) {
    static const int64_t most_grid[] = {INT32_MAX, 65535, 65535}, most_block[] = {1024, 1024, 64};
    for (int d = 0; d < 3; d++) {
        if (s->grid[d] < 0 || s->grid[d] > most_grid[d])
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                           "option 'grid': %lld blocks along dim %lld, 0 "
                           "to %lld can be",
                           (long long)s->grid[d], (long long)lm_pos(S, d), (long long)most_grid[d]);
        if (s->block[d] < 1 || s->block[d] > most_block[d])
            return lm_fail(S, LUMA_ERR_ARGUMENT, 2,
                           "option 'block': %lld threads along dim %lld, "
                           "1 to %lld can be",
                           (long long)s->block[d], (long long)lm_pos(S, d),
                           (long long)most_block[d]);
    }
    int64_t threads = s->block[0] * s->block[1] * s->block[2];
    if (threads > 1024)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "option 'block': %lld threads, at most 1024 can be",
                       (long long)threads);
    if (s->shared < 0 || s->shared > c->shared_per_block)
        return lm_fail(S, LUMA_ERR_ARGUMENT, 2, "option 'shared': %lld bytes, 0 to %d can be",
                       (long long)s->shared, c->shared_per_block);
    return LUMA_OK;
}

static luma_status launch(luma_state *S, lm_user_module *m, entry *e, const lm_user_shape *s,
                          void **values) {
    lm_cuda *c = m->cuda;
    if (!e->handle) LM_TRY(prepare(S, m, e));
    if (s->shared > e->dynamic) {
        LM_TRY(lm_cuda_check(
            S, c,
            c->driver->cuFuncSetAttribute(
                e->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)s->shared),
            "cuFuncSetAttribute"));
        e->dynamic = (int)s->shared;
    }
    CUresult result = c->driver->cuLaunchKernel(
        e->handle, (unsigned)s->grid[0], (unsigned)s->grid[1], (unsigned)s->grid[2],
        (unsigned)s->block[0], (unsigned)s->block[1], (unsigned)s->block[2], (unsigned)s->shared,
        c->stream, values, NULL);
    if (result == CUDA_ERROR_NOT_SUPPORTED && c->driver->emulated)
        return lm_fail(S, LUMA_ERR_UNSUPPORTED, 0,
                       "%s: the emulated device cannot run kernel '%.100s': it has those of luma "
                       "only",
                       c->name, e->kernel.name);
    char what[160];
    snprintf(what, sizeof what, "cuLaunchKernel of '%.100s'", e->kernel.name);
    LM_TRY(lm_cuda_check(S, c, result, what));
    c->launches++;
    return c->sync_always ? lm_cuda_synchronize(S, c->device) : LUMA_OK;
}

luma_status lm_user_launch(luma_state *S, lm_user_module *m, int at, const lm_user_shape *shape,
                           void **values) {
    LM_TRY(check_shape(S, m->cuda, shape));
    if (shape->grid[0] == 0 || shape->grid[1] == 0 || shape->grid[2] == 0) return LUMA_OK;
    LM_TRY(lm_cuda_enter(S, m->cuda));
    luma_status status = launch(S, m, &m->entries[at], shape, values);
    lm_cuda_leave(m->cuda);
    return status;
}
