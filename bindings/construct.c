/* construct.c -- luma.tensor, zeros, range and the others that make tensors of numbers. Layer:
** bindings. */
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
        if (lm_get_option(k, arg, "device"))
            w->device = lm_arg_text(k, arg, lua_gettop(L), "device");
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
    if (lua_type(L, 1) == LUA_TNUMBER && lua_type(L, 2) == LUA_TNUMBER)
        lm_bad(&k, 2, "values stand in a table, as in luma.tensor{1, 2}; luma.zeros takes sizes");
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

static int range(lua_State *L) {
    lm_call k;
    lm_where w;
    luma_status status;
    int tried = 0;
    lm_call_open(&k, L, lm_enter(L), "range");
    luma_scalar first = lm_arg_number(&k, 1, 1), last = lm_arg_number(&k, 2, 2), step = one;
    bool given = lua_type(L, 3) == LUA_TNUMBER;
    if (given) step = lm_arg_number(&k, 3, 3);
    lm_read_where(&k, given || lua_isnil(L, 3) ? 4 : 3, &w);
    luma_tensor *out = lm_box_new(L, k.c);
    do
        status = luma_range(k.c->S, out, first, last, step, w.dtype, w.device);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

static int linspace(lua_State *L) {
    lm_call k;
    lm_where w;
    luma_status status;
    int tried = 0;
    lm_call_open(&k, L, lm_enter(L), "linspace");
    double a = lm_arg_double(&k, 1, 1), b = lm_arg_double(&k, 2, 2);
    int64_t n = lm_arg_integer(&k, 3, 3);
    lm_read_where(&k, 4, &w);
    luma_tensor *out = lm_box_new(L, k.c);
    do
        status = luma_linspace(k.c->S, out, a, b, n, w.dtype, w.device);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

static int logspace(lua_State *L) {
    static const char *const names[] = {"dtype", "device", "base", NULL};
    lm_call k;
    lm_where w;
    luma_status status;
    int tried = 0;
    double base = 10;
    lm_call_open(&k, L, lm_enter(L), "logspace");
    double a = lm_arg_double(&k, 1, 1), b = lm_arg_double(&k, 2, 2);
    int64_t n = lm_arg_integer(&k, 3, 3);
    lm_read_options(&k, 4, names, &w);
    if (lm_get_option(&k, w.options, "base")) base = lm_arg_double(&k, 4, lua_gettop(L));
    k.option = NULL;
    luma_tensor *out = lm_box_new(L, k.c);
    do
        status = luma_logspace(k.c->S, out, a, b, n, base, w.dtype, w.device);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (k.c->S->argument > 4) k.c->S->argument = 4; /* options are one argument */
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
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
