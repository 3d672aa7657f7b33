/* fused.c -- programs of elementwise rows on CUDA: each becomes one kernel, written in the words that
** luma's own kernels are made of, compiled by NVRTC and kept. Without NVRTC, on the emulated device
** and where integers have to be looked at, programs go row by row. Layer: kernels/cuda. */
#include "fused.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "cuda/fused_kernel.h"
#include "elementwise.h"
#include "fused_source.h"
#include "nvrtc.h"

#define BLOCK 256 /* threads */
#define MOST 256  /* kernels that are kept */

_Static_assert(LM_FUSED_OPERANDS >= LM_ITER_MAX, "an argument for each operand");
_Static_assert(sizeof(lm_args_fused) <= 4096, "what a kernel's parameters may take");

/* ---- what rows are made of ---- */

#define TEXT(name, scalar) [LM_OP_##name] = #scalar,
static const char *const scalars[LM_NROWS] = {
#define LM_ROWS_ALONE
#define UNARY(name, dtypes, formula, domain, ulp, scalar, doc) TEXT(name, scalar)
#define UNARY_P(name, dtypes, params, formula, domain, ulp, scalar, doc) TEXT(name, scalar)
#define TEST(name, dtypes, formula, scalar, doc) TEXT(name, scalar)
#define BINARY(name, dtypes, formula, domain, ulp, scalar, doc) TEXT(name, scalar)
#define COMPARE(name, dtypes, formula, scalar, doc) TEXT(name, scalar)
#define TERNARY(name, dtypes, formula, scalar, doc) TEXT(name, scalar)
#include "ops.def"
};

/* ---- text ---- */

typedef struct {
    char *text;
    size_t n, room;
    bool failed; /* no memory */
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
    va_list args;
    if (t->failed) return;
    for (;;) {
        va_start(args, format);
        int n = vsnprintf(t->text + t->n, t->room - t->n, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < t->room - t->n) {
            t->n += (size_t)n;
            return;
        }
        size_t room = 2 * t->room + (size_t)(n < 0 ? 0 : n);
        char *more = realloc(t->text, room);
        if (!more) {
            t->failed = true;
            return;
        }
        t->text = more;
        t->room = room;
    }
}

static const char *token(luma_dtype dtype) {
    return lm_dtypes[dtype].token;
}

/* ---- sources ---- */

typedef struct {
    const lm_fused *f;
    int ninputs;
    text *t;
} writer;

static luma_dtype dtype_of(const writer *w, int reg) {
    return reg < w->ninputs ? w->f->map.operand[reg + 1].dtype
                            : w->f->steps[reg - w->ninputs].dtype;
}

/* The words of one compute type, and the rows that the program has in it. */
static void put_rows(const writer *w, luma_dtype compute) {
    bool any = false, done[LM_NROWS] = {false};
    for (int i = 0; i < w->f->nsteps; i++) {
        const lm_fused_step *step = &w->f->steps[i];
        if (step->op == LM_NOPS || step->compute != compute || done[step->op]) continue;
        if (!any) put(w->t, "#define LM_T %s\n#include \"words.h\"\n", token(compute));
        any = done[step->op] = true;
        put(w->t, "LM_FN lm_c_%s lm_row_%s_%s(", token(step->dtype), lm_ops[step->op].name,
            token(compute));
        switch (lm_ops[step->op].row) {
        case LM_ROW_UNARY_P:
            put(w->t, "LM_C x, LM_C p0, LM_C p1");
            break;
        case LM_ROW_TERNARY:
            put(w->t, "uint8_t x, LM_C y, LM_C z");
            break;
        default:
            put(w->t, step->n == 1 ? "LM_C x" : "LM_C x, LM_C y");
        }
        put(w->t, ") { (void)x; return (lm_c_%s)(%s); }\n", token(step->dtype), scalars[step->op]);
    }
    if (any) put(w->t, "#undef LM_T\n");
}

static void put_types(const writer *w) {
    bool used[LUMA_NDTYPES] = {[LUMA_BOOL] = true, [LUMA_FLOAT64] = true};
    for (int k = 0; k < w->f->map.noperands; k++)
        used[w->f->map.operand[k].dtype] = true;
    for (int i = 0; i < w->f->nsteps; i++)
        used[w->f->steps[i].dtype] = true;
    for (int d = 0; d < LUMA_NDTYPES; d++)
        if (used[d]) put(w->t, "LM_FUSED_TYPE(%s)\n", token((luma_dtype)d));
}

static void put_register(const writer *w, int reg) {
    if (reg < w->ninputs)
        put(w->t, "x%d", reg);
    else
        put(w->t, "s%d", reg - w->ninputs);
}

/* A value goes from the bits of one dtype to those of another through what the first computes in. */
static void put_conversion(const writer *w, const lm_fused_step *step) {
    luma_dtype from = dtype_of(w, step->in[0]);
    if (from == step->dtype) {
        put_register(w, step->in[0]);
        return;
    }
    put(w->t, "lm_to_%s_%s(lm_load_%s(", token(step->dtype),
        token((luma_dtype)lm_dtypes[from].compute), token(from));
    put_register(w, step->in[0]);
    put(w->t, "))");
}

/* Numbers take places among the arguments in the order of the steps. */
static void put_step(const writer *w, int i, int *nnumbers) {
    const lm_fused_step *step = &w->f->steps[i];
    const char *type = token(step->dtype), *compute = token(step->compute);
    put(w->t, "    const lm_c_%s s%d = ", type, i);
    if (step->op == LM_NOPS && step->n == 0) {
        put(w->t, "lm_fused_number_%s(a->number[%d])", type, (*nnumbers)++);
    } else if (step->op == LM_NOPS) {
        put_conversion(w, step);
    } else {
        put(w->t, "lm_row_%s_%s(", lm_ops[step->op].name, compute);
        for (int k = 0; k < step->n; k++) {
            put(w->t, k ? ", " : "");
            put_register(w, step->in[k]);
        }
        for (int k = 0; k < 2 && lm_ops[step->op].row == LM_ROW_UNARY_P; k++)
            put(w->t,
                lm_dtype_is_float(step->compute) ? ", (lm_c_%s)lm_fused_double(a->number[%d])"
                                                 : ", (lm_c_%s)(int64_t)a->number[%d]",
                compute, (*nnumbers)++);
        put(w->t, ")");
    }
    put(w->t, ";\n");
}

/* One element: storage in, storage out. Any byte of a bool but 0 is true. */
static void put_element(const writer *w) {
    const lm_map *m = &w->f->map;
    int nnumbers = 0;
    put(w->t, "LM_FN lm_c_%s lm_fused_element(const lm_args_fused *a", token(m->operand[0].dtype));
    for (int k = 0; k < w->ninputs; k++)
        put(w->t, ", lm_c_%s x%d", token(m->operand[k + 1].dtype), k);
    put(w->t, ") {\n    (void)a;\n");
    for (int k = 0; k < w->ninputs; k++)
        if (m->operand[k + 1].dtype == LUMA_BOOL) put(w->t, "    x%d = lm_load_b8(x%d);\n", k, k);
    for (int i = 0; i < w->f->nsteps; i++)
        put_step(w, i, &nnumbers);
    put(w->t, "    return s%d;\n}\n", w->f->nsteps - 1);
}

static void put_kernel(const writer *w) {
    const lm_map *m = &w->f->map;
    const char *result = token(m->operand[0].dtype);
    put(w->t,
        "LM_FUSED_KERNEL {\n"
        "    const int64_t groups = a.grouped ? a.walk.n : 0;\n"
        "    const int64_t units = a.grouped ? groups + (a.n - groups * LM_V) : a.n;\n"
        "    LM_FUSED_EACH(i, units) {\n"
        "        int64_t at[%d];\n"
        "        if (i < a.walk.n) {\n"
        "            lm_fused_offsets(&a, i, %d, at);\n"
        "        } else {\n"
        "            for (int k = 0; k < %d; k++)\n"
        "                at[k] = (i + groups * (LM_V - 1)) * a.operand[k].step;\n"
        "        }\n"
        "        char *to = (char *)a.operand[0].p + at[0];\n"
        "        if (i < groups) {\n"
        "            lm_group_%s r;\n",
        m->noperands, m->noperands, m->noperands, result);
    for (int k = 0; k < w->ninputs; k++) {
        const char *type = token(m->operand[k + 1].dtype);
        put(w->t,
            "            const lm_group_%s x%d = lm_fused_group_%s(&a.operand[%d], at[%d]);\n",
            type, k, type, k + 1, k + 1);
    }
    put(w->t, "            LM_FUSED_UNROLL\n            for (int j = 0; j < LM_V; j++)\n"
              "                r.e[j] = lm_fused_element(&a");
    for (int k = 0; k < w->ninputs; k++)
        put(w->t, ", x%d.e[j]", k);
    put(w->t, ");\n            *(lm_group_%s *)(void *)to = r;\n        } else {\n", result);
    put(w->t, "            *(lm_c_%s *)(void *)to = lm_fused_element(&a", result);
    for (int k = 0; k < w->ninputs; k++)
        put(w->t, ", lm_fused_one_%s(&a.operand[%d], at[%d])", token(m->operand[k + 1].dtype),
            k + 1, k + 1);
    put(w->t, ");\n        }\n    }\n}\n");
}

static int count_numbers(const lm_fused *f) {
    int n = 0;
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        if (step->op == LM_NOPS)
            n += step->n == 0;
        else if (lm_ops[step->op].row == LM_ROW_UNARY_P)
            n += 2;
    }
    return n;
}

int lm_fused_group(const lm_fused *f) {
    int64_t widest = 1;
    for (int k = 0; k < f->map.noperands; k++)
        widest = lm_max(widest, (int64_t)lm_dtype_size(f->map.operand[k].dtype));
    return (int)(16 / widest);
}

char *lm_fused_source(const lm_fused *f) {
    text t = {.room = 4096};
    t.text = malloc(t.room);
    if (!t.text) return NULL;
    writer w = {f, f->map.noperands - 1, &t};
    put(&t, "#define LM_V %d\n#include \"cuda/fused_kernel.h\"\n", lm_fused_group(f));
    put_types(&w);
    for (int d = 0; d < LUMA_NDTYPES; d++)
        if (lm_dtypes[d].compute == d) put_rows(&w, (luma_dtype)d);
    put_element(&w);
    put_kernel(&w);
    if (!t.failed) return t.text;
    free(t.text);
    return NULL;
}

/* ---- arguments ---- */

static bool in_groups(const lm_map *m, const lm_operand *o, int group) {
    int last = m->ndim - 1;
    int64_t size = (int64_t)lm_dtype_size(o->dtype);
    if (o->stride[last] == 0) return true;
    uint64_t bits = (uint64_t)(uintptr_t)o->data;
    for (int d = 0; d < last; d++)
        bits |= (uint64_t)o->stride[d];
    return o->stride[last] == size && bits % (uint64_t)(size * group) == 0;
}

static bool is_grouped(const lm_map *m, int group) {
    int last = m->ndim - 1;
    if (last < 0 || m->shape[last] < group || m->operand[0].stride[last] == 0) return false;
    if (last > 0 && m->shape[last] % group != 0) return false;
    for (int k = 0; k < m->noperands; k++)
        if (!in_groups(m, &m->operand[k], group)) return false;
    return true;
}

static void set_numbers(lm_args_fused *a, const lm_fused *f) {
    int n = 0;
    for (int i = 0; i < f->nsteps; i++) {
        const lm_fused_step *step = &f->steps[i];
        if (step->op == LM_NOPS && step->n == 0) {
            memcpy(&a->number[n++], step->element, sizeof *a->number);
        } else if (step->op != LM_NOPS && lm_ops[step->op].row == LM_ROW_UNARY_P) {
            for (int k = 0; k < 2; k++, n++) {
                if (lm_dtype_is_float(step->compute))
                    memcpy(&a->number[n], &step->params.d[k], sizeof *a->number);
                else
                    memcpy(&a->number[n], &step->params.i[k], sizeof *a->number);
            }
        }
    }
}

void lm_fused_arguments(const lm_fused *f, lm_args_fused *a) {
    const lm_map *m = &f->map;
    const int64_t *strides[LM_ITER_MAX];
    int64_t shape[LUMA_MAX_DIMS];
    int group = lm_fused_group(f), last = m->ndim - 1;
    memset(a, 0, sizeof *a);
    a->grouped = is_grouped(m, group);
    a->n = 1;
    for (int d = 0; d < m->ndim; d++) {
        shape[d] = m->shape[d];
        a->n *= shape[d];
    }
    if (a->grouped) shape[last] /= group;
    for (int k = 0; k < m->noperands; k++) {
        const lm_operand *o = &m->operand[k];
        lm_fused_operand *to = &a->operand[k];
        to->p = o->data;
        for (int d = 0; d <= last; d++)
            to->stride[d] = o->stride[d];
        to->single = last < 0 || to->stride[last] == 0;
        to->step = to->single ? 0 : (int32_t)lm_dtype_size(o->dtype);
        if (a->grouped) to->stride[last] *= group;
        strides[k] = to->stride;
    }
    lm_walk_set(&a->walk, m->ndim, shape, m->noperands, strides);
    set_numbers(a, f);
}

/* ---- kernels that are kept ---- */

typedef struct {
    char *source;
    CUmodule handle; /* NULL: it cannot be made */
    CUfunction function;
} kept;

struct lm_fused_kernels {
    int n;
    kept kernels[MOST];
};

static void drop_all(lm_cuda *c, lm_fused_kernels *all, bool usable) {
    if (usable) c->driver->cuStreamSynchronize(c->stream);
    for (int i = 0; i < all->n; i++) {
        if (usable && all->kernels[i].handle) c->driver->cuModuleUnload(all->kernels[i].handle);
        free(all->kernels[i].source);
    }
    all->n = 0;
}

void lm_cuda_fused_close(lm_cuda *c, bool usable) {
    if (!c->fused) return;
    drop_all(c, c->fused, usable);
    free(c->fused);
    c->fused = NULL;
}

static luma_status make(luma_state *S, lm_cuda *c, kept *k) {
    char *ptx, *log;
    luma_status status = lm_nvrtc_compile_own(S, c->capability, k->source, &ptx, &log);
    free(log);
    if (status == LUMA_OK) status = lm_cuda_load(S, c, ptx, "a fused kernel", &k->handle);
    free(ptx);
    if (status != LUMA_OK) return status;
    return lm_cuda_check(S, c, c->driver->cuModuleGetFunction(&k->function, k->handle, "lm_fused"),
                         "cuModuleGetFunction of a fused kernel");
}

/* The kernel of a source, whose text it takes; NULL: there is none. */
static const kept *find(luma_state *S, lm_cuda *c, char *source) {
    if (!c->fused) c->fused = calloc(1, sizeof *c->fused);
    lm_fused_kernels *all = c->fused;
    for (int i = 0; all && i < all->n; i++) {
        if (strcmp(all->kernels[i].source, source) != 0) continue;
        free(source);
        return all->kernels[i].function ? &all->kernels[i] : NULL;
    }
    if (!all) {
        free(source);
        return NULL;
    }
    if (all->n == MOST) drop_all(c, all, true);
    kept *k = &all->kernels[all->n++];
    *k = (kept){.source = source};
    if (make(S, c, k) != LUMA_OK) k->function = NULL;
    return k->function ? k : NULL;
}

/* ---- the slot ---- */

static luma_status launch(luma_state *S, lm_cuda *c, const kept *k, const lm_fused *f) {
    lm_args_fused a;
    lm_fused_arguments(f, &a);
    lm_shape shape = lm_cuda_shape(c, a.n, a.grouped ? lm_fused_group(f) : 1, BLOCK);
    void *parameters[] = {&a};
    CUresult result = c->driver->cuLaunchKernel(k->function, shape.grid.x, 1, 1, BLOCK, 1, 1, 0,
                                                c->stream, parameters, NULL);
    LM_TRY(lm_cuda_check(S, c, result, "cuLaunchKernel of a fused kernel"));
    c->launches++;
    return c->sync_always ? lm_cuda_synchronize(S, c->device) : LUMA_OK;
}

luma_status lm_cuda_fused(luma_state *S, lm_device *d, lm_fused *f, bool *done) {
    lm_cuda *c = lm_cuda_of(d);
    const char *why;
    if (f->guarded || c->driver->emulated || !lm_nvrtc_open(&why)) return LUMA_OK;
    if (count_numbers(f) > LM_FUSED_NUMBERS) return LUMA_OK;
    for (int k = 0; k < f->map.ndim; k++) {
        if (f->map.shape[k] != 0) continue;
        *done = true;
        return LUMA_OK;
    }
    char *source = lm_fused_source(f);
    if (!source) return LUMA_OK;
    luma_status status = lm_cuda_enter(S, c);
    if (status != LUMA_OK) {
        free(source);
        return LUMA_OK;
    }
    const kept *k = find(S, c, source);
    if (k) {
        lm_iter_plan(&f->map);
        *done = true;
        status = launch(S, c, k, f);
    }
    lm_cuda_leave(c);
    return status;
}
