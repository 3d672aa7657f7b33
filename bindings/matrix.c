/* matrix.c -- eye, tril, triu, diag and meshgrid. Layer: bindings. */
#include <string.h>

#include "make.h"

static void check(lm_call *k, luma_status status) {
    if (status == LUMA_OK) return;
    k->c->S->argument = 0;
    lm_raise(k, status);
}

#define RUN(k, call) check(k, LM_UNLIMITED(k, call))

/* The diagonal of the last two dims of x, a view. */
static luma_status diagonal(luma_state *S, luma_tensor *out, const luma_tensor *x, int64_t offset) {
    return luma_diagonal(S, out, x, offset, x->layout.ndim - 2, x->layout.ndim - 1);
}

static luma_status fill_diagonal(luma_state *S, const luma_tensor *x, int64_t offset,
                                 const luma_tensor *src) {
    luma_tensor d = LUMA_NEW;
    LM_TRY(diagonal(S, &d, x, offset));
    luma_status status = src->storage ? luma_copy(S, &d, src) : luma_fill(S, &d, src->number);
    luma_release(S, &d);
    return status;
}

/* n, m?, {dtype, device} */
static int eye(lua_State *L) {
    lm_call k;
    lm_where w;
    int64_t shape[2];
    lm_call_open(&k, L, lm_enter(L), "eye");
    shape[0] = shape[1] = lm_arg_integer(&k, 1, 1);
    bool two = lua_type(L, 2) == LUA_TNUMBER;
    if (two) shape[1] = lm_arg_integer(&k, 2, 2);
    lm_read_where(&k, two || lua_isnil(L, 2) ? 3 : 2, &w);
    luma_dtype dtype = w.dtype == LUMA_NDTYPES ? luma_default_dtype(k.c->S) : w.dtype;
    lm_check_sizes(&k, two && shape[0] >= 0 ? 2 : 1, 2, shape, dtype);
    luma_tensor *out = lm_make(&k, 2, shape, dtype, w.device);
    const luma_tensor one = luma_integer(1);
    luma_status status = LM_UNLIMITED(&k, luma_fill(k.c->S, out, luma_integer(0).number));
    if (status == LUMA_OK) status = fill_diagonal(k.c->S, out, 0, &one);
    check(&k, status);
    return 1;
}

static int64_t diagonal_option(lm_call *k, int arg) {
    static const char *const names[] = {"diagonal", NULL};
    lm_where o;
    int64_t diagonal = 0;
    lm_read_options(k, arg, names, &o);
    if (lm_get_option(k, o.options, "diagonal"))
        diagonal = lm_arg_integer(k, arg, lua_gettop(k->L));
    k->option = NULL;
    return diagonal;
}

/* Pushes first, first + 1, ... as an int64 tensor of this shape on a device. */
static luma_tensor *push_count(lm_call *k, int ndim, const int64_t *shape, int64_t first,
                               const char *device) {
    luma_tensor *t = lm_make(k, ndim, shape, LUMA_INT64, "cpu");
    int64_t n = luma_numel(t), *p = (int64_t *)(void *)lm_data(t);
    for (int64_t i = 0; i < n; i++)
        p[i] = first + i;
    lm_finish(k, &(lm_where){.dtype = LUMA_INT64, .device = device});
    return lm_box_test(k->L, -1);
}

/* x where column - row <= diagonal (lower) or >= it, 0 elsewhere. */
static int triangle(lua_State *L, const char *name, bool lower) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), name);
    const luma_tensor *x = lm_arg_tensor(&k, 1, 1);
    const char *device = lm_device_of(x)->name; /* now: options may run a finalizer */
    int64_t d = diagonal_option(&k, 2);
    if (x->layout.ndim < 2) lm_bad(&k, 1, "at least 2 dims expected, got %d", x->layout.ndim);
    int64_t rows[2] = {x->layout.shape[x->layout.ndim - 2], 1};
    int64_t columns = x->layout.shape[x->layout.ndim - 1];
    /* Past every column the answer no longer changes, and sums stay within range. */
    if (d > columns) d = columns;
    if (d < -rows[0] - 1) d = -rows[0] - 1;
    luma_tensor *row = push_count(&k, 2, rows, d, device);
    luma_tensor *column = push_count(&k, 1, &columns, 0, device);
    luma_tensor *mask = lm_box_new(L, k.c);
    RUN(&k, (lower ? luma_le : luma_ge)(k.c->S, mask, column, row));
    const luma_tensor none = luma_boolean(false);
    luma_tensor *out = lm_box_new(L, k.c);
    RUN(&k, luma_where(k.c->S, out, mask, lm_arg_tensor(&k, 1, 1), &none));
    return 1;
}

static int tril(lua_State *L) {
    return triangle(L, "tril", true);
}

static int triu(lua_State *L) {
    return triangle(L, "triu", false);
}

static int diag(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "diag");
    luma_state *S = k.c->S;
    luma_tensor x = *lm_arg_tensor(&k, 1, 1);
    const char *device = lm_device_of(&x)->name;
    int64_t d = diagonal_option(&k, 2);
    if (x.layout.ndim == 2) {
        luma_tensor *view = lm_box_new(L, k.c), *out = lm_box_new(L, k.c);
        RUN(&k, diagonal(S, view, lm_arg_tensor(&k, 1, 1), d));
        RUN(&k, luma_clone(S, out, view));
        return 1;
    }
    int64_t size, length = x.layout.shape[0];
    if (x.layout.ndim != 1) lm_bad(&k, 1, "1 or 2 dims expected, got %d", x.layout.ndim);
    if (d == INT64_MIN || !lm_add_fits(length, d < 0 ? -d : d, &size))
        lm_bad(&k, 2, "the diagonal is too far");
    int64_t shape[2] = {size, size};
    lm_check_sizes(&k, 2, 2, shape, x.dtype);
    luma_tensor *out = lm_make(&k, 2, shape, x.dtype, device);
    luma_status status = LM_UNLIMITED(&k, luma_fill(S, out, luma_integer(0).number));
    if (status == LUMA_OK) status = fill_diagonal(S, out, d, lm_arg_tensor(&k, 1, 1));
    check(&k, status);
    return 1;
}

/* Vectors of sizes n1, n2, ... to as many views of shape (n1, n2, ...); "xy": (n2, n1, ...). */
static int meshgrid(lua_State *L) {
    static const char *const names[] = {"indexing", NULL};
    lm_call k;
    lm_where o = {.options = 0};
    bool swap = false;
    int64_t shape[LUMA_MAX_DIMS];
    lm_call_open(&k, L, lm_enter(L), "meshgrid");
    int n = k.top;
    if (n > 0 && lm_is_options(L, n)) lm_read_options(&k, n--, names, &o);
    if (lm_get_option(&k, o.options, "indexing")) {
        const char *how = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        swap = strcmp(how, "xy") == 0 && n > 1;
        if (strcmp(how, "xy") != 0 && strcmp(how, "ij") != 0)
            lm_bad(&k, k.top, "\"ij\" or \"xy\" expected");
    }
    k.option = NULL;
    if (n < 1 || n > LUMA_MAX_DIMS)
        lm_bad(&k, 1, "1 to %d vectors expected, got %d", LUMA_MAX_DIMS, n);
    for (int i = 0; i < n; i++) {
        const luma_tensor *x = lm_arg_tensor(&k, i + 1, i + 1);
        if (x->layout.ndim > 1) lm_bad(&k, i + 1, "a vector expected, got %d dims", x->layout.ndim);
        shape[swap && i < 2 ? 1 - i : i] = luma_numel(x);
    }
    for (int i = 0; i < n; i++) {
        int d = swap && i < 2 ? 1 - i : i;
        luma_tensor *out = lm_box_new(L, k.c);
        const luma_tensor *x = lm_arg_tensor(&k, i + 1, i + 1);
        luma_layout layout = {.ndim = n, .offset = x->layout.offset};
        memcpy(layout.shape, shape, sizeof shape);
        layout.stride[d] = x->layout.ndim ? x->layout.stride[0] : 0;
        RUN(&k, lm_tensor_view(k.c->S, out, x, &layout));
    }
    return n;
}

void lm_matrix_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {{"eye", eye}, {"meshgrid", meshgrid}, {NULL, NULL}};
    static const luaL_Reg both[] = {{"tril", tril}, {"triu", triu}, {"diag", diag}, {NULL, NULL}};
    lm_register(L, module, functions);
    lm_register(L, module, both);
    lm_register(L, methods, both);
}
