/* random.c -- luma.rand and the others that draw, and the state of the generators. Layer: bindings.
 */
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
    luma_status status = LM_UNLIMITED(&k, luma_randint(k.c->S, out, lo, hi));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

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
    lm_make(&k, 1, &n, dtype, w.device);
    return draw(&k, luma_randperm);
}

static int bernoulli(lua_State *L) {
    lm_call k;
    luma_status status;
    int tried = 0;
    lm_call_open(&k, L, lm_enter(L), "bernoulli");
    if (k.top > 1) lm_bad(&k, 2, "no such argument");
    lm_arg_tensor(&k, 1, 1);
    luma_tensor *out = lm_box_new(L, k.c);
    do {
        status = luma_bernoulli(k.c->S, out, lm_arg_tensor(&k, 1, 1));
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 1;
}

/* weights (m) or (rows, m), n, {replacement} to positions (n) or (rows, n) */
static int multinomial(lua_State *L) {
    static const char *const names[] = {"replacement", NULL};
    lm_call k;
    lm_where o;
    luma_status status;
    bool replace = false;
    int tried = 0;
    lm_call_open(&k, L, lm_enter(L), "multinomial");
    lm_arg_tensor(&k, 1, 1);
    int64_t n = lm_arg_integer(&k, 2, 2);
    lm_read_options(&k, 3, names, &o);
    if (lm_get_option(&k, o.options, "replacement")) replace = lm_arg_boolean(&k, 3, lua_gettop(L));
    k.option = NULL;
    luma_tensor *out = lm_box_new(L, k.c);
    do {
        status = luma_multinomial(k.c->S, out, lm_arg_tensor(&k, 1, 1), n, replace);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
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
    if (lua_isnoneornil(k->L, arg)) return NULL;
    return lm_arg_text(k, arg, arg, "device");
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
