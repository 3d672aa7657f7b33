/* matrix.c -- eye and meshgrid. Layer: bindings. */
#include <string.h>

#include "make.h"

/* n, m?, {dtype, device} */
static int eye(lua_State *L) {
    lm_call k;
    lm_where w;
    luma_status status;
    int tried = 0;
    lm_call_open(&k, L, lm_enter(L), "eye");
    int64_t n = lm_arg_integer(&k, 1, 1), m = n;
    bool two = lua_type(L, 2) == LUA_TNUMBER;
    if (two) m = lm_arg_integer(&k, 2, 2);
    lm_read_where(&k, two || lua_isnil(L, 2) ? 3 : 2, &w);
    luma_tensor *out = lm_box_new(L, k.c);
    do
        status = luma_eye(k.c->S, out, n, m, w.dtype, w.device);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
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
        const char *how = lm_arg_text(&k, k.top, lua_gettop(L), "text");
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
        luma_status status = lm_tensor_view(k.c->S, out, x, &layout);
        if (status != LUMA_OK) lm_raise(&k, status);
    }
    return n;
}

void lm_matrix_open(lua_State *L, int module) {
    static const luaL_Reg functions[] = {{"eye", eye}, {"meshgrid", meshgrid}, {NULL, NULL}};
    lm_register(L, module, functions);
}
