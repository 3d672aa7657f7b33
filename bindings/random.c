/* random.c -- luma.rand and the others that draw, and the state of the generators. Layer: bindings.
 */
#include <math.h>
#include <string.h>

#include "make.h"

typedef luma_status draw_fn(luma_state *S, luma_tensor *x);

/* Draws into the tensor on top, in place. */
static int draw(lm_call *k, draw_fn *fn) {
    luma_tensor *x = lm_box_test(k->L, -1);
    luma_status status;
    int tried = 0;
    do {
        status = fn(k->c->S, x);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(k->L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    return 1;
}

static int fresh(lua_State *L, const char *name, draw_fn *fn) {
    lm_call k;
    lm_where w;
    int n, next;
    lm_call_open(&k, L, lm_enter(L), name);
    const int64_t *shape = lm_arg_shape(&k, 1, &n, &next);
    lm_read_where(&k, next, &w);
    luma_dtype dtype = w.dtype == LUMA_NDTYPES ? luma_default_dtype(k.c->S) : w.dtype;
    if (!lm_dtype_is_float(dtype))
        lm_bad(&k, next, "a float dtype expected, got %s", luma_dtype_name(dtype));
    lm_check_sizes(&k, 1, n, shape, dtype);
    lm_make(&k, n, shape, dtype, w.device);
    return draw(&k, fn);
}

static int rand_(lua_State *L) {
    return fresh(L, "rand", luma_rand);
}

static int randn(lua_State *L) {
    return fresh(L, "randn", luma_randn);
}

static int fresh_like(lua_State *L, const char *name, draw_fn *fn) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), name);
    luma_tensor *out = lm_make_like(&k, 2);
    if (!lm_dtype_is_float(out->dtype))
        lm_bad(&k, 2, "a float dtype expected, got %s", luma_dtype_name(out->dtype));
    return draw(&k, fn);
}

static int rand_like(lua_State *L) {
    return fresh_like(L, "rand_like", luma_rand);
}

static int randn_like(lua_State *L) {
    return fresh_like(L, "randn_like", luma_randn);
}

/* lo, hi, shape..., {dtype, device} */
static int randint(lua_State *L) {
    lm_call k;
    lm_where w;
    int n, next;
    lm_call_open(&k, L, lm_enter(L), "randint");
    int64_t lo = lm_arg_integer(&k, 1, 1), hi = lm_arg_integer(&k, 2, 2);
    if (lo > hi) lm_bad(&k, 2, "%I is less than %I", (LUAI_UACINT)hi, (LUAI_UACINT)lo);
    const int64_t *shape = lm_arg_shape(&k, 3, &n, &next);
    lm_read_where(&k, next, &w);
    luma_dtype dtype = w.dtype == LUMA_NDTYPES ? LUMA_INT64 : w.dtype;
    lm_check_fits(&k, 1, (luma_scalar){.kind = LUMA_IS_INT, .u.i = lo}, dtype);
    lm_check_fits(&k, 2, (luma_scalar){.kind = LUMA_IS_INT, .u.i = hi}, dtype);
    lm_check_sizes(&k, 3, n, shape, dtype);
    luma_tensor *out = lm_make(&k, n, shape, dtype, w.device);
    luma_status status = luma_randint(k.c->S, out, lo, hi);
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

/* Pushes n random float64 in [0, 1) on the CPU. */
static double *push_uniform(lm_call *k, int ndim, const int64_t *shape) {
    luma_tensor *u = lm_make(k, ndim, shape, LUMA_FLOAT64, "cpu");
    draw(k, luma_rand);
    return (double *)(void *)lm_data(u);
}

/* 1 to n shuffled: each place in turn takes one of those not yet placed. */
static int randperm(lua_State *L) {
    lm_call k;
    lm_where w;
    lm_call_open(&k, L, lm_enter(L), "randperm");
    int64_t n = lm_arg_integer(&k, 1, 1);
    lm_check_sizes(&k, 1, 1, &n, LUMA_INT64);
    lm_read_where(&k, 2, &w);
    luma_dtype dtype = w.dtype == LUMA_NDTYPES ? LUMA_INT64 : w.dtype;
    if (!lm_dtype_is_int(dtype)) lm_bad(&k, 2, "an integer dtype expected");
    lm_check_fits(&k, 1, (luma_scalar){.kind = LUMA_IS_INT, .u.i = n}, dtype);
    const double *u = push_uniform(&k, 1, &n);
    luma_tensor *out = lm_make(&k, 1, &n, LUMA_INT64, "cpu");
    int64_t *p = (int64_t *)(void *)lm_data(out);
    for (int64_t i = 0; i < n; i++)
        p[i] = i + 1;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)(u[i] * (double)(i + 1)), t = p[i];
        p[i] = p[j];
        p[j] = t;
    }
    if (dtype != LUMA_INT64) lm_cast_push(&k, 1, lua_gettop(L), dtype);
    return lm_finish(&k, &w);
}

/* ---- by weight ---- */

/* Pushes x as contiguous float64 on the CPU. */
static double *push_doubles(lm_call *k, int arg) {
    luma_tensor *t = lm_move_push(k, arg, arg, LUMA_FLOAT64, "cpu");
    return (double *)(void *)lm_data(t);
}

static int bernoulli(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "bernoulli");
    const luma_tensor *p = lm_arg_tensor(&k, 1, 1);
    if (k.top > 1) lm_bad(&k, 2, "no such argument");
    luma_dtype dtype = p->dtype;
    luma_layout layout = p->layout;
    const char *device = lm_device_of(p)->name;
    if (!lm_dtype_is_float(dtype))
        lm_bad(&k, 1, "%s: a float dtype expected", luma_dtype_name(dtype));
    double *chance = push_doubles(&k, 1);
    const double *u = push_uniform(&k, layout.ndim, layout.shape);
    int64_t n = lm_layout_numel(&layout);
    for (int64_t i = 0; i < n; i++) {
        if (!(chance[i] >= 0 && chance[i] <= 1))
            lm_bad(&k, 1, "chances lie between 0 and 1, got %f", chance[i]);
        chance[i] = u[i] < chance[i];
    }
    lua_pop(L, 1);
    lm_move_push(&k, 1, lua_gettop(L), dtype, device);
    return 1;
}

/* n positions by binary search in the running sum of the weights. */
static void draw_with(double *w, int64_t m, double total, const double *u, int64_t n,
                      int64_t *out) {
    double sum = 0;
    int64_t most = 0; /* the last position with a weight: what rounding must not pass */
    for (int64_t j = 0; j < m; j++) {
        if (w[j] > 0) most = j;
        w[j] = sum += w[j];
    }
    for (int64_t i = 0; i < n; i++) {
        double x = u[i] * total;
        int64_t lo = 0, hi = most;
        while (lo < hi) {
            int64_t mid = lo + (hi - lo) / 2;
            if (x < w[mid])
                hi = mid;
            else
                lo = mid + 1;
        }
        out[i] = lo + 1;
    }
}

/* The n that ring first of m exponential clocks with the weights as rates: u becomes their times.
 */
static void draw_without(const double *w, int64_t m, double *u, int64_t n, int64_t *out) {
    for (int64_t j = 0; j < m; j++)
        u[j] = w[j] > 0 ? -log1p(-u[j]) / w[j] : (double)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = -1;
        for (int64_t j = 0; j < m; j++) {
            if (w[j] > 0 && u[j] >= 0 && (first < 0 || u[j] < u[first])) first = j;
        }
        out[i] = first + 1;
        u[first] = -1;
    }
}

/* Checks one row of weights; returns their sum. */
static double check_weights(lm_call *k, const double *w, int64_t m, int64_t least) {
    double total = 0;
    int64_t positive = 0;
    for (int64_t j = 0; j < m; j++) {
        if (!(w[j] >= 0 && w[j] < (double)INFINITY))
            lm_bad(k, 1, "weights are finite and not negative, got %f", w[j]);
        total += w[j];
        positive += w[j] > 0;
    }
    if (positive < least || !(total < (double)INFINITY))
        lm_bad(k, 1, "%I positive weights, where %I are needed", (LUAI_UACINT)positive,
               (LUAI_UACINT)least);
    return total;
}

/* weights (m) or (rows, m), n, {replacement} to positions (n) or (rows, n) */
static int multinomial(lua_State *L) {
    static const char *const names[] = {"replacement", NULL};
    lm_call k;
    lm_where o;
    bool replace = false;
    lm_call_open(&k, L, lm_enter(L), "multinomial");
    luma_layout layout = lm_arg_tensor(&k, 1, 1)->layout;
    int64_t n = lm_arg_integer(&k, 2, 2);
    lm_read_options(&k, 3, names, &o);
    if (lm_get_option(&k, o.options, "replacement")) replace = lm_arg_boolean(&k, 3, lua_gettop(L));
    k.option = NULL;
    if (layout.ndim != 1 && layout.ndim != 2)
        lm_bad(&k, 1, "1 or 2 dims expected, got %d", layout.ndim);
    lm_check_sizes(&k, 2, 1, &n, LUMA_INT64);
    int64_t rows = layout.ndim == 2 ? layout.shape[0] : 1, m = layout.shape[layout.ndim - 1];
    int64_t shape[2] = {rows, replace ? n : m}, result[2] = {rows, n};
    int drop = layout.ndim == 1;
    lm_check_sizes(&k, 2, 2, result, LUMA_INT64);
    double *w = push_doubles(&k, 1), *u = push_uniform(&k, 2, shape);
    luma_tensor *out = lm_make(&k, 2 - drop, result + drop, LUMA_INT64, "cpu");
    int64_t *next = (int64_t *)(void *)lm_data(out);
    for (int64_t r = 0; r < rows; r++, w += m, u += shape[1], next += n) {
        double total = check_weights(&k, w, m, replace ? n > 0 : n);
        if (replace)
            draw_with(w, m, total, u, n, next);
        else
            draw_without(w, m, u, n, next);
    }
    return 1;
}

/* ---- the generators ---- */

static int manual_seed(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "manual_seed");
    luma_status status = luma_manual_seed(k.c->S, (uint64_t)lm_arg_integer(&k, 1, 1));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

static const char *device_at(lm_call *k, int arg) {
    if (lua_isnoneornil(k->L, arg)) return "cpu";
    if (lua_type(k->L, arg) != LUA_TSTRING) lm_bad_type(k, arg, arg, "device");
    return lua_tostring(k->L, arg);
}

static int get_rng_state(lua_State *L) {
    lm_call k;
    uint64_t seed, offset;
    lm_call_open(&k, L, lm_enter(L), "get_rng_state");
    luma_status status = luma_get_rng_state(k.c->S, device_at(&k, 1), &seed, &offset);
    if (status != LUMA_OK) lm_raise(&k, status);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)seed);
    lua_setfield(L, -2, "seed");
    lua_pushinteger(L, (lua_Integer)offset);
    lua_setfield(L, -2, "offset");
    return 1;
}

static int set_rng_state(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_rng_state");
    lua_settop(L, 2);
    if (!lua_istable(L, 1)) lm_bad_type(&k, 1, 1, "state");
    if (!lm_get_option(&k, 1, "seed")) lua_pushnil(L);
    uint64_t seed = (uint64_t)lm_arg_integer(&k, 1, lua_gettop(L));
    if (!lm_get_option(&k, 1, "offset")) lua_pushnil(L);
    uint64_t offset = (uint64_t)lm_arg_integer(&k, 1, lua_gettop(L));
    k.option = NULL;
    luma_status status = luma_set_rng_state(k.c->S, device_at(&k, 2), seed, offset);
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

void lm_random_open(lua_State *L, int module, int methods) {
    static const luaL_Reg functions[] = {{"rand", rand_},
                                         {"randn", randn},
                                         {"randint", randint},
                                         {"randperm", randperm},
                                         {"manual_seed", manual_seed},
                                         {"get_rng_state", get_rng_state},
                                         {"set_rng_state", set_rng_state},
                                         {NULL, NULL}};
    static const luaL_Reg both[] = {{"rand_like", rand_like},
                                    {"randn_like", randn_like},
                                    {"bernoulli", bernoulli},
                                    {"multinomial", multinomial},
                                    {NULL, NULL}};
    lm_register(L, module, functions);
    lm_register(L, module, both);
    lm_register(L, methods, both);
}
