/* construct.c -- luma.tensor, zeros, range and the others that make tensors of numbers. Layer:
** bindings. */
#include <math.h>
#include <string.h>

#include "make.h"

static const char *const where_names[] = {"dtype", "device", NULL};

/* ---- {dtype =, device =} ---- */

void lm_read_options(lm_call *k, int arg, const char *const *names, lm_where *w) {
    lua_State *L = k->L;
    *w = (lm_where){.dtype = LUMA_NDTYPES};
    if (lua_isnoneornil(L, arg)) return;
    if (lua_type(L, arg) == LUA_TSTRING && strcmp(names[0], "dtype") == 0) {
        w->dtype = lm_arg_dtype(k, arg, arg);
    } else {
        if (!lua_istable(L, arg)) lm_bad_type(k, arg, arg, "options");
        w->options = arg;
        lm_check_options(k, arg, arg, names);
        if (lm_get_option(k, arg, "dtype")) w->dtype = lm_arg_dtype(k, arg, lua_gettop(L));
        if (lm_get_option(k, arg, "device")) {
            if (lua_type(L, -1) != LUA_TSTRING) lm_bad_type(k, arg, lua_gettop(L), "device");
            w->device = lua_tostring(L, -1);
        }
        k->option = NULL;
    }
    if (arg < k->top) lm_bad(k, arg + 1, "no such argument");
}

void lm_read_where(lm_call *k, int arg, lm_where *w) {
    lm_read_options(k, arg, where_names, w);
}

static luma_dtype dtype_or(const lm_where *w, luma_dtype otherwise) {
    return w->dtype == LUMA_NDTYPES ? otherwise : w->dtype;
}

/* ---- making and filling ---- */

luma_tensor *lm_make(lm_call *k, int ndim, const int64_t *shape, luma_dtype dtype,
                     const char *device) {
    luma_tensor *out = lm_box_new(k->L, k->c);
    luma_status status;
    int tried = 0;
    do {
        status = luma_empty(k->c->S, out, ndim, shape, dtype, device);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return out;
}

static int make_filled(lm_call *k, int ndim, const int64_t *shape, luma_scalar v, luma_dtype dtype,
                       const char *device) {
    luma_tensor *out = lm_make(k, ndim, shape, dtype, device);
    luma_status status = LM_UNLIMITED(k, luma_fill(k->c->S, out, v));
    if (status != LUMA_OK) lm_raise(k, status);
    return 1;
}

void lm_check_sizes(lm_call *k, int arg, int n, const int64_t *shape, luma_dtype dtype) {
    int64_t numel;
    lm_text text;
    if (n > LUMA_MAX_DIMS) lm_bad(k, arg, "%d dims: at most %d", n, LUMA_MAX_DIMS);
    for (int d = 0; d < n; d++) {
        if (shape[d] < 0) lm_bad(k, arg, "a size cannot be negative: %I", (LUAI_UACINT)shape[d]);
    }
    if (!lm_numel_fits(n, shape, dtype, &numel))
        lm_bad(k, arg, "%s of %s is too large", lm_shape_text(&text, n, shape),
               luma_dtype_name(dtype));
}

/* What was made on the CPU goes to the device that was asked for. */
int lm_finish(lm_call *k, const lm_where *w) {
    const char *device = w->device ? w->device : luma_default_device(k->c->S);
    if (strcmp(device, "cpu") != 0) {
        int idx = lua_gettop(k->L);
        luma_tensor *host = lm_box_test(k->L, idx);
        lm_move_push(k, idx, idx, host->dtype, device);
        luma_release(k->c->S, host); /* nobody else has it */
    }
    return 1;
}

static const luma_scalar zero = {.kind = LUMA_IS_INT, .u.i = 0};
static const luma_scalar one = {.kind = LUMA_IS_INT, .u.i = 1};

/* shape..., {dtype, device} */
static int filled(lua_State *L, const char *name, luma_scalar v) {
    lm_call k;
    lm_where w;
    int n, next;
    lm_call_open(&k, L, lm_enter(L), name);
    const int64_t *shape = lm_arg_shape(&k, 1, &n, &next);
    lm_read_where(&k, next, &w);
    luma_dtype dtype = dtype_or(&w, luma_default_dtype(k.c->S));
    lm_check_sizes(&k, 1, n, shape, dtype);
    return make_filled(&k, n, shape, v, dtype, w.device);
}

static int zeros(lua_State *L) {
    return filled(L, "zeros", zero);
}

static int ones(lua_State *L) {
    return filled(L, "ones", one);
}

static int empty(lua_State *L) {
    lm_call k;
    lm_where w;
    int n, next;
    lm_call_open(&k, L, lm_enter(L), "empty");
    const int64_t *shape = lm_arg_shape(&k, 1, &n, &next);
    lm_read_where(&k, next, &w);
    luma_dtype dtype = dtype_or(&w, luma_default_dtype(k.c->S));
    lm_check_sizes(&k, 1, n, shape, dtype);
    lm_make(&k, n, shape, dtype, w.device);
    return 1;
}

static luma_scalar read_fill(lm_call *k, int arg) {
    if (!lm_is_scalar(k->L, arg)) lm_bad_type(k, arg, arg, "number");
    return lm_to_scalar(k->L, arg);
}

/* The shape is a list or one size: what follows is the value. */
static int full(lua_State *L) {
    lm_call k;
    lm_where w;
    int n;
    lm_call_open(&k, L, lm_enter(L), "full");
    const int64_t *shape = lm_arg_list(&k, 1, 1, &n);
    luma_scalar v = read_fill(&k, 2);
    lm_read_where(&k, 3, &w);
    luma_dtype dtype =
        dtype_or(&w, v.kind == LUMA_IS_BOOL ? LUMA_BOOL : luma_default_dtype(k.c->S));
    lm_check_fits(&k, 2, v, dtype);
    lm_check_sizes(&k, 1, n, shape, dtype);
    return make_filled(&k, n, shape, v, dtype, w.device);
}

/* ---- like another tensor ---- */

luma_tensor *lm_make_like(lm_call *k, int options) {
    lm_where w;
    const luma_tensor *x = lm_arg_tensor(k, 1, 1);
    luma_layout layout = x->layout;
    const char *device = lm_device_of(x)->name;
    luma_dtype dtype = x->dtype;
    lm_read_where(k, options, &w);
    if (w.device) device = w.device;
    return lm_make(k, layout.ndim, layout.shape, dtype_or(&w, dtype), device);
}

static int fill_like(lua_State *L, const char *name, luma_scalar v, int options) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), name);
    if (options == 3) v = read_fill(&k, 2);
    luma_tensor *out = lm_make_like(&k, options);
    lm_check_fits(&k, 2, v, out->dtype);
    luma_status status = LM_UNLIMITED(&k, luma_fill(k.c->S, out, v));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

static int zeros_like(lua_State *L) {
    return fill_like(L, "zeros_like", zero, 2);
}

static int ones_like(lua_State *L) {
    return fill_like(L, "ones_like", one, 2);
}

static int full_like(lua_State *L) {
    return fill_like(L, "full_like", zero, 3);
}

static int empty_like(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "empty_like");
    lm_make_like(&k, 2);
    return 1;
}

/* ---- luma.tensor ---- */

static int tensor(lua_State *L) {
    lm_call k;
    lm_where w;
    lm_call_open(&k, L, lm_enter(L), "tensor");
    lm_read_where(&k, 2, &w);
    if (lm_box_test(L, 1)) {
        const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
        const char *device = w.device ? w.device : lm_device_of(x)->name;
        lm_move_push(&k, 1, 1, dtype_or(&w, x->dtype), device);
        return 1;
    }
    if (!lua_istable(L, 1) && !lm_is_scalar(L, 1)) lm_bad_type(&k, 1, 1, "table or number");
    lm_table_read(&k, 1, 1, w.dtype);
    return lm_finish(&k, &w);
}

/* ---- numbers in order ---- */

typedef struct {
    luma_scalar first, last, step;
    bool whole; /* all three are integers */
    int64_t n;
} progression;

static double real(luma_scalar v) {
    return v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
}

/* first + i * step, rounded once. */
static luma_scalar at(const progression *p, int64_t i) {
    if (p->whole) {
        uint64_t v = (uint64_t)p->first.u.i + (uint64_t)i * (uint64_t)p->step.u.i;
        return (luma_scalar){.kind = LUMA_IS_INT, .u.i = (int64_t)v};
    }
    double v = fma((double)i, real(p->step), real(p->first));
    return (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = v};
}

static void count_whole(lm_call *k, progression *p) {
    int64_t a = p->first.u.i, b = p->last.u.i, s = p->step.u.i;
    p->n = 0;
    if (s > 0 ? a > b : a < b) return;
    uint64_t span = s > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    uint64_t n = span / (s > 0 ? (uint64_t)s : 0 - (uint64_t)s);
    if (n >= UINT64_C(1) << 59) lm_bad(k, 2, "the range is too long");
    p->n = (int64_t)n + 1;
}

/* No item passes last: the quotient may be off by one either way. */
static void count_real(lm_call *k, progression *p) {
    double a = real(p->first), b = real(p->last), s = real(p->step);
    if (!isfinite(a) || !isfinite(b) || !isfinite(s)) lm_bad(k, 1, "finite numbers expected");
    p->n = 0;
    if (s > 0 ? a > b : a < b) return;
    double n = floor((b - a) / s);
    if (!(n < 0x1p53)) lm_bad(k, 2, "the range is too long");
    p->n = (int64_t)n + 1;
    while (p->n > 0 && (s > 0 ? at(p, p->n - 1).u.d > b : at(p, p->n - 1).u.d < b))
        p->n--;
    /* Far from zero an item may round to the one before it; such items would not end. */
    while ((s > 0 ? at(p, p->n).u.d <= b : at(p, p->n).u.d >= b) &&
           at(p, p->n).u.d != at(p, p->n - 1).u.d)
        p->n++;
}

static int push_progression(lm_call *k, const progression *p, const lm_where *w) {
    luma_dtype dtype = dtype_or(w, p->whole ? LUMA_INT64 : luma_default_dtype(k->c->S));
    if (p->n > 0) {
        lm_check_fits(k, 1, at(p, 0), dtype);
        lm_check_fits(k, 2, at(p, p->n - 1), dtype);
    }
    if (!p->whole && lm_dtype_is_int(dtype)) lm_check_fits(k, 3, p->step, LUMA_INT64);
    luma_tensor *out = lm_make(k, 1, &p->n, dtype, "cpu");
    char *next = lm_data(out);
    for (int64_t i = 0; i < p->n; i++, next += lm_dtype_size(dtype)) {
        lm_poll(k, i);
        lm_cpu(k->c->S)->ops->encode(dtype, at(p, i), next);
    }
    return lm_finish(k, w);
}

static int range(lua_State *L) {
    lm_call k;
    lm_where w;
    progression p;
    lm_call_open(&k, L, lm_enter(L), "range");
    p.first = lm_arg_number(&k, 1, 1);
    p.last = lm_arg_number(&k, 2, 2);
    p.step = one;
    bool step = lua_type(L, 3) == LUA_TNUMBER;
    if (step) p.step = lm_arg_number(&k, 3, 3);
    lm_read_where(&k, step || lua_isnil(L, 3) ? 4 : 3, &w);
    p.whole =
        p.first.kind == LUMA_IS_INT && p.last.kind == LUMA_IS_INT && p.step.kind == LUMA_IS_INT;
    if (real(p.step) == 0) lm_bad(&k, 3, "step is zero");
    if (p.whole)
        count_whole(&k, &p);
    else
        count_real(&k, &p);
    return push_progression(&k, &p, &w);
}

/* n values evenly apart, from both ends toward the middle: the last is last. base 0: as they are.
 */
static int spaced(lua_State *L, const char *name, const char *const *names, double base) {
    lm_call k;
    lm_where w;
    lm_call_open(&k, L, lm_enter(L), name);
    double a = lm_arg_double(&k, 1, 1), b = lm_arg_double(&k, 2, 2);
    int64_t n = lm_arg_integer(&k, 3, 3);
    lm_read_options(&k, 4, names, &w);
    if (base != 0 && lm_get_option(&k, w.options, "base"))
        base = lm_arg_double(&k, 4, lua_gettop(L));
    k.option = NULL;
    luma_dtype dtype = dtype_or(&w, luma_default_dtype(k.c->S));
    lm_check_sizes(&k, 3, 1, &n, dtype);
    if (!lm_dtype_is_float(dtype)) lm_bad(&k, 4, "a float dtype expected");
    luma_tensor *out = lm_make(&k, 1, &n, dtype, "cpu");
    char *next = lm_data(out);
    double step = n > 1 ? b / (double)(n - 1) - a / (double)(n - 1) : 0;
    for (int64_t i = 0; i < n; i++, next += lm_dtype_size(dtype)) {
        lm_poll(&k, i);
        double v = i < (n + 1) / 2 ? fma((double)i, step, a) : fma((double)(i - n + 1), step, b);
        if (base != 0) v = pow(base, v);
        lm_cpu(k.c->S)->ops->encode(dtype, (luma_scalar){.kind = LUMA_IS_FLOAT, .u.d = v}, next);
    }
    return lm_finish(&k, &w);
}

static int linspace(lua_State *L) {
    return spaced(L, "linspace", where_names, 0);
}

static int logspace(lua_State *L) {
    static const char *const names[] = {"dtype", "device", "base", NULL};
    return spaced(L, "logspace", names, 10);
}

/* ---- bytes ---- */

static int frombytes(lua_State *L) {
    lm_call k;
    size_t nbytes;
    lm_call_open(&k, L, lm_enter(L), "frombytes");
    if (lua_type(L, 1) != LUA_TSTRING) lm_bad_type(&k, 1, 1, "string");
    const char *bytes = lua_tolstring(L, 1, &nbytes);
    luma_dtype dtype = lm_arg_dtype(&k, 2, 2);
    int n = 1, next = 4;
    int64_t whole = (int64_t)(nbytes / lm_dtype_size(dtype)), numel = 0;
    const int64_t *shape = &whole;
    if (!lua_isnoneornil(L, 3)) shape = lm_arg_shape(&k, 3, &n, &next);
    if (next <= k.top) lm_bad(&k, next, "no such argument");
    lm_check_sizes(&k, 3, n, shape, dtype);
    lm_numel_fits(n, shape, dtype, &numel);
    if ((size_t)numel * lm_dtype_size(dtype) != nbytes) {
        lm_text text;
        lm_bad(&k, 1, "%I bytes are not %s of %s", (LUAI_UACINT)nbytes,
               lm_shape_text(&text, n, shape), luma_dtype_name(dtype));
    }
    for (size_t i = 0; dtype == LUMA_BOOL && i < nbytes; i++) {
        if ((unsigned char)bytes[i] > 1)
            lm_bad(&k, 1, "byte %d at %I is neither 0 nor 1", (unsigned char)bytes[i],
                   (LUAI_UACINT)i + 1);
    }
    luma_tensor *out = lm_make(&k, n, shape, dtype, NULL);
    luma_status status = LM_UNLIMITED(&k, luma_write(k.c->S, out, bytes, nbytes));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

void lm_construct_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {
        {"tensor", tensor},       {"zeros", zeros}, {"ones", ones},         {"empty", empty},
        {"full", full},           {"range", range}, {"linspace", linspace}, {"logspace", logspace},
        {"frombytes", frombytes}, {NULL, NULL}};
    static const luaL_Reg both[] = {{"zeros_like", zeros_like},
                                    {"ones_like", ones_like},
                                    {"full_like", full_like},
                                    {"empty_like", empty_like},
                                    {NULL, NULL}};
    lm_register(L, module, functions);
    lm_register(L, module, both);
    lm_register(L, methods, both);
}
