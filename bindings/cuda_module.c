/* cuda_module.c -- luma.cuda.module: kernels of scripts, and how the values of Lua become their
** parameters. Layer: bindings.
**
** Parameters are converted by what the PTX says of them: tensors become the address of their first
** element, numbers integers or floats of the size that is there, strings and lists structs. */
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "cuda/user.h"

#define MODULE "luma.cuda.module"
#define KERNEL "luma.cuda.kernel"
#define VALUE "luma.cuda.value"

typedef struct {
    lm_ctx *c;
    lm_user_module *m; /* NULL: not yet there, or gone */
    char *log;
} module_box;

/* Its user value is the module, which a finalizer may find closed. */
typedef struct {
    const module_box *module;
    int at;
} kernel_box;

/* A number of one type, for places where none is declared: luma.cuda.f32(0.5). */
typedef struct {
    const char *type; /* "f32" */
    lm_user_kind kind;
    uint32_t size;
    char bytes[8];
} value_box;

/* ---- typed values ---- */

static const struct {
    const char *name;
    lm_user_kind kind;
    uint32_t size;
    bool is_signed;
} types[] = {{"i8", LM_USER_INT, 1, true},     {"u8", LM_USER_INT, 1, false},
             {"i16", LM_USER_INT, 2, true},    {"u16", LM_USER_INT, 2, false},
             {"i32", LM_USER_INT, 4, true},    {"u32", LM_USER_INT, 4, false},
             {"i64", LM_USER_INT, 8, true},    {"u64", LM_USER_INT, 8, false},
             {"f32", LM_USER_FLOAT, 4, false}, {"f64", LM_USER_FLOAT, 8, false}};

static void put_float(lm_call *k, int arg, uint32_t size, double v, char *at) {
    float narrow = (float)v;
    if (size == 4)
        memcpy(at, &narrow, sizeof narrow);
    else if (size == 8)
        memcpy(at, &v, sizeof v);
    else
        lm_bad(k, arg, "floats of %d bytes cannot be passed", (int)size);
}

/* low: the least value; a type without sign takes what has its bits where Lua has no larger one */
static void put_integer(lm_call *k, int arg, uint32_t size, int64_t low, int64_t high, int64_t v,
                        char *at) {
    if (v < low || v > high)
        lm_bad(k, arg, "%I does not fit into an integer of %d bytes", (LUAI_UACINT)v, (int)size);
    memcpy(at, &v, size); /* little-endian, as every host of CUDA */
}

static int64_t lowest(uint32_t size) {
    return INT64_MIN >> (64 - 8 * size);
}

/* Of types without sign, whose upper half is that of negative numbers for 8 bytes. */
static int64_t highest(uint32_t size) {
    return size == 8 ? INT64_MAX : (INT64_C(1) << (8 * size)) - 1;
}

static int new_value(lua_State *L) {
    lm_call k;
    int i = (int)lua_tointeger(L, LM_UP_OWN);
    lm_call_open(&k, L, lm_enter(L), types[i].name);
    lua_settop(L, 1);
    value_box *v = lua_newuserdatauv(L, sizeof *v, 0);
    uint32_t size = types[i].size;
    v->type = types[i].name;
    v->kind = types[i].kind;
    v->size = size;
    if (v->kind == LM_USER_FLOAT) {
        put_float(&k, 1, size, lm_arg_double(&k, 1, 1), v->bytes);
    } else {
        int64_t low = types[i].is_signed || size == 8 ? lowest(size) : 0;
        int64_t high = types[i].is_signed ? ~lowest(size) : highest(size);
        put_integer(&k, 1, size, low, high, lm_arg_integer(&k, 1, 1), v->bytes);
    }
    luaL_setmetatable(L, VALUE);
    return 1;
}

/* ---- parameters ---- */

typedef struct {
    lm_call *k;
    lm_device *device;
    bool views; /* tensors may have any layout */
} reading;

static const char *describe(lua_State *L, const lm_user_param *p) {
    switch (p->kind) {
    case LM_USER_INT:
        return lua_pushfstring(L, "an integer of %d bytes", (int)p->size);
    case LM_USER_FLOAT:
        return lua_pushfstring(L, "a float of %d bytes", (int)p->size);
    case LM_USER_POINTER:
        return "a pointer";
    case LM_USER_BYTES:
        break;
    }
    return lua_pushfstring(L, "a struct of %d bytes", (int)p->size);
}

LM_NORETURN static void bad_kind(lm_call *k, int arg, int idx, const lm_user_param *p) {
    const char *expected = describe(k->L, p);
    lm_bad(k, arg, "the kernel takes %s here, not a %s", expected,
           lm_box_test(k->L, idx) ? "tensor" : luaL_typename(k->L, idx));
}

/* The address of its first element. */
static void put_tensor(reading *r, int arg, int idx, char *at) {
    const luma_tensor *x = lm_arg_tensor(r->k, arg, idx);
    const char *p;
    if (lm_device_of(x) != r->device)
        lm_bad(r->k, arg, "the tensor is on %s, the kernel runs on %s", lm_device_of(x)->name,
               r->device->name);
    if (!r->views && !luma_is_contiguous(x))
        lm_bad(r->k, arg,
               "the tensor is not contiguous: use contiguous(), or pass its strides too and say so "
               "with the option views = true");
    p = lm_data(x);
    memcpy(at, &p, sizeof p);
    x->storage->version++;
}

/* The value at idx where p is expected. */
static void put(reading *r, int arg, int idx, const lm_user_param *p, char *at);

/* Values of a list one after another, each aligned to its size, as C lays out a struct. */
static void put_list(reading *r, int arg, int idx, const lm_user_param *p, char *at) {
    lm_call *k = r->k;
    lua_State *L = k->L;
    uint32_t used = 0;
    int n = lm_arg_length(k, arg, idx);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, idx, i);
        int top = lua_gettop(L);
        const value_box *v = luaL_testudata(L, top, VALUE);
        const luma_tensor *x = lm_box_test(L, top);
        uint32_t size = x ? 8 : v ? v->size : 1;
        if (!x && !v)
            lm_bad(k, arg,
                   "[%d]: a tensor or a number with its type, as luma.cuda.f32(0.5), "
                   "expected, got %s",
                   i, luaL_typename(L, top));
        used = (used + size - 1) / size * size;
        if (used + size > p->size)
            lm_bad(k, arg, "the list has more than the %d bytes of the struct", (int)p->size);
        if (x)
            put_tensor(r, arg, top, at + used);
        else
            memcpy(at + used, v->bytes, size);
        used += size;
        lua_pop(L, 1);
    }
    used = (used + p->align - 1) / p->align * p->align;
    if (used != p->size)
        lm_bad(k, arg, "the list has %d bytes, the struct %d", (int)used, (int)p->size);
}

static void put_bytes(reading *r, int arg, int idx, const lm_user_param *p, char *at) {
    lua_State *L = r->k->L;
    memset(at, 0, p->size);
    if (lua_type(L, idx) == LUA_TTABLE) {
        put_list(r, arg, idx, p, at);
        return;
    }
    if (lua_type(L, idx) != LUA_TSTRING) bad_kind(r->k, arg, idx, p);
    size_t n;
    const char *bytes = lua_tolstring(L, idx, &n);
    if (n != p->size)
        lm_bad(r->k, arg, "the string has %d bytes, the struct %d", (int)n, (int)p->size);
    memcpy(at, bytes, n);
}

static void put(reading *r, int arg, int idx, const lm_user_param *p, char *at) {
    lm_call *k = r->k;
    lua_State *L = k->L;
    const value_box *v = luaL_testudata(L, idx, VALUE);
    if (p->kind == LM_USER_BYTES) {
        put_bytes(r, arg, idx, p, at);
    } else if (lm_box_test(L, idx)) {
        if (p->kind == LM_USER_FLOAT || p->size != 8) bad_kind(k, arg, idx, p);
        put_tensor(r, arg, idx, at);
    } else if (p->kind == LM_USER_POINTER) {
        bad_kind(k, arg, idx, p);
    } else if (v) {
        if (v->kind != p->kind || v->size != p->size)
            lm_bad(k, arg, "the kernel takes %s here, not %s", describe(L, p), v->type);
        memcpy(at, v->bytes, v->size);
    } else if (lua_isboolean(L, idx) && p->kind == LM_USER_INT) {
        put_integer(k, arg, p->size, 0, 1, lua_toboolean(L, idx), at);
    } else if (lua_type(L, idx) != LUA_TNUMBER) {
        bad_kind(k, arg, idx, p);
    } else if (p->kind == LM_USER_FLOAT) {
        put_float(k, arg, p->size, lua_tonumber(L, idx), at);
    } else {
        put_integer(k, arg, p->size, lowest(p->size), highest(p->size), lm_arg_integer(k, arg, idx),
                    at);
    }
}

/* ---- launching ---- */

/* One to three sizes; the others are 1. */
static void read_sizes(lm_call *k, int idx, const char *name, int64_t sizes[3]) {
    int n = 0;
    if (!lm_get_option(k, idx, name)) lm_bad(k, 2, "option '%s' is needed", name);
    const int64_t *list = lm_arg_list(k, 2, lua_gettop(k->L), &n);
    if (n < 1 || n > 3) lm_bad(k, 2, "one to three integers expected, got %d", n);
    for (int d = 0; d < 3; d++)
        sizes[d] = d < n ? list[d] : 1;
    lua_settop(k->L, k->top);
    k->option = NULL;
}

static bool read_options(lm_call *k, lm_user_shape *shape) {
    static const char *const names[] = {"grid", "block", "shared", "views", NULL};
    bool views = false;
    if (!lua_istable(k->L, 2)) lm_bad_type(k, 2, 2, "table of options");
    lm_check_options(k, 2, 2, names);
    read_sizes(k, 2, "grid", shape->grid);
    read_sizes(k, 2, "block", shape->block);
    shape->shared = 0;
    if (lm_get_option(k, 2, "shared")) shape->shared = lm_arg_integer(k, 2, lua_gettop(k->L));
    if (lm_get_option(k, 2, "views")) views = lm_arg_boolean(k, 2, lua_gettop(k->L));
    k->option = NULL;
    lua_settop(k->L, k->top);
    return views;
}

/* Argument 1 of a method: the module, and which of its kernels. */
static lm_user_module *check_kernel(lm_call *k, lua_State *L, const char *name, int *at) {
    lm_call_open(k, L, lm_enter(L), name);
    const kernel_box *box = luaL_testudata(L, 1, KERNEL);
    if (!box) lm_bad_type(k, 1, 1, "kernel");
    if (!box->module->m) luaL_error(L, "%s: the module is closed", name);
    *at = box->at;
    return box->module->m;
}

/* kernel:launch({grid =, block =, shared =, views =}, value...) */
static int launch(lua_State *L) {
    lm_call k;
    lm_user_shape shape;
    _Alignas(16) char bytes[LM_USER_PARAMETER + 8 * LM_USER_PARAMS];
    void *values[LM_USER_PARAMS + 1];
    luma_status status;
    int tried = 0, at;
    lm_user_module *m = check_kernel(&k, L, "launch", &at);
    const lm_user_kernel *kernel = lm_user_at(m, at);
    reading r = {&k, lm_user_device(m), read_options(&k, &shape)};
    int given = k.top - 2;
    if (given != kernel->nparams)
        luaL_error(L, "launch: kernel '%s' takes %d values, %d are given", kernel->name,
                   kernel->nparams, given);
    do {
        uint32_t used = 0;
        for (int i = 0; i < kernel->nparams; i++) {
            const lm_user_param *p = &kernel->params[i];
            values[i] = bytes + used;
            put(&r, i + 3, i + 3, p, values[i]);
            used += (p->size + 7) / 8 * 8;
        }
        status = lm_user_launch(k.c->S, m, at, &shape, values);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k.c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

static int kernel_text(lua_State *L) {
    lm_call k;
    int at;
    const lm_user_module *m = check_kernel(&k, L, "tostring", &at);
    const lm_user_kernel *kernel = lm_user_at(m, at);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    lua_pushfstring(L, "CUDA kernel[%s %s: ", lm_user_device(m)->name, kernel->name);
    luaL_addvalue(&b);
    for (int i = 0; i < kernel->nparams; i++) {
        const lm_user_param *p = &kernel->params[i];
        static const char *const words[] = {"int", "float", "pointer", "struct"};
        lua_pushfstring(L, "%s%s%d", i ? ", " : "", words[p->kind], (int)p->size * 8);
        luaL_addvalue(&b);
    }
    luaL_addchar(&b, ']');
    luaL_pushresult(&b);
    return 1;
}

/* ---- modules ---- */

/* That argument 1 of a method is. */
static const module_box *check_module(lm_call *k, lua_State *L, const char *name) {
    lm_call_open(k, L, lm_enter(L), name);
    const module_box *box = luaL_testudata(L, 1, MODULE);
    if (!box) lm_bad_type(k, 1, 1, "module");
    if (!box->m) luaL_error(L, "%s: the module is closed", name);
    return box;
}

/* mod:kernel(name) */
static int find_kernel(lua_State *L) {
    lm_call k;
    int at;
    const module_box *module = check_module(&k, L, "kernel");
    const char *name = lm_arg_text(&k, 2, 2, "name");
    luma_status status = lm_user_find(k.c->S, module->m, name, &at);
    if (status != LUMA_OK) lm_raise(&k, status);
    kernel_box *box = lua_newuserdatauv(L, sizeof *box, 1);
    box->module = module;
    box->at = at;
    luaL_setmetatable(L, KERNEL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* mod:names() */
static int names_of(lua_State *L) {
    lm_call k;
    const lm_user_module *m = check_module(&k, L, "names")->m;
    lua_newtable(L);
    for (int i = 0; i < lm_user_count(m); i++) {
        lua_pushstring(L, lm_user_at(m, i)->name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* mod:ptx() */
static int ptx_of(lua_State *L) {
    lm_call k;
    lua_pushstring(L, lm_user_ptx(check_module(&k, L, "ptx")->m));
    return 1;
}

/* mod:log(): what the compiler said, or nil */
static int log_of(lua_State *L) {
    lm_call k;
    lua_pushstring(L, check_module(&k, L, "log")->log); /* nil for NULL */
    return 1;
}

static int module_text(lua_State *L) {
    lm_call k;
    const lm_user_module *m = check_module(&k, L, "tostring")->m;
    int n = lm_user_count(m);
    lua_pushfstring(L, "CUDA module[%s: %d kernel%s]", lm_user_device(m)->name, n,
                    n == 1 ? "" : "s");
    return 1;
}

static int collect(lua_State *L) {
    module_box *box = luaL_checkudata(L, 1, MODULE);
    if (box->m && box->c->S) lm_user_close(box->m);
    free(box->log);
    box->m = NULL;
    box->log = NULL;
    return 0;
}

/* Pushes the key of a module: device, options, text. */
static void push_key(lua_State *L, const char *device, const char *const *options, int n,
                     int text) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, device);
    for (int i = 0; i < n; i++) {
        luaL_addchar(&b, '\0');
        luaL_addstring(&b, options[i]);
    }
    luaL_addlstring(&b, "\0\0", 2);
    lua_pushvalue(L, text);
    luaL_addvalue(&b);
    luaL_pushresult(&b);
}

#define OPTIONS 32

/* The options of the compiler, which stay on the stack. */
static int read_list(lm_call *k, int idx, const char **options) {
    lua_State *L = k->L;
    if (!lm_get_option(k, idx, "options")) return 0;
    int list = lua_gettop(L);
    if (!lua_istable(L, list)) lm_bad_type(k, 2, list, "list of strings");
    int n = lm_arg_length(k, 2, list);
    if (n > OPTIONS) lm_bad(k, 2, "%d are too many", n);
    for (int i = 0; i < n; i++) {
        if (lua_rawgeti(L, list, i + 1) != LUA_TSTRING)
            lm_bad(k, 2, "[%d]: string expected, got %s", i + 1, luaL_typename(L, -1));
        options[i] = lua_tostring(L, -1);
        if (strlen(options[i]) != lua_rawlen(L, -1))
            lm_bad(k, 2, "[%d]: the option has a zero byte", i + 1);
    }
    k->option = NULL;
    return n;
}

static lm_device *read_device(lm_call *k, int idx) {
    lm_device *d;
    const char *name = "cuda";
    if (lm_get_option(k, idx, "device")) name = lm_arg_text(k, 2, lua_gettop(k->L), "device");
    luma_status status = lm_device_find(k->c->S, name, &d);
    if (status != LUMA_OK) {
        k->c->S->argument = 0; /* the option is no argument of its own */
        lm_raise(k, status);
    }
    if (strcmp(d->ops->kind, "cuda") != 0) lm_bad(k, 2, "%s is no CUDA device", name);
    k->option = NULL;
    return d;
}

static void open_module(lm_call *k, lm_device *d, int n, const char *const *options) {
    lua_State *L = k->L;
    luma_status status;
    int tried = 0;
    module_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    box->c = k->c;
    box->m = NULL;
    box->log = NULL;
    luaL_setmetatable(L, MODULE);
    do {
        free(box->log);
        status = lm_user_open(k->c->S, d, lua_tostring(L, 1), n, options, &box->m, &box->log);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status == LUMA_OK) return;
    if (box->log)
        luaL_error(L, "%s: %s\n%s", k->name, lua_pushstring(L, luma_message(k->c->S)), box->log);
    lm_raise(k, status);
}

/* luma.cuda.module(text, {device =, options =}) */
static int module(lua_State *L) {
    static const char *const names[] = {"device", "options", NULL};
    const char *options[OPTIONS];
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "module");
    luaL_checkstack(L, OPTIONS + 20, NULL);
    lua_settop(L, 2);
    lm_arg_text(&k, 1, 1, "CUDA C or PTX as a string");
    if (!lua_isnil(L, 2) && !lua_istable(L, 2)) lm_bad_type(&k, 2, 2, "table of options");
    int idx = lua_istable(L, 2) ? 2 : 0;
    lm_check_options(&k, 2, idx, names);
    lm_device *d = read_device(&k, idx);
    int n = read_list(&k, idx, options);
    push_key(L, d->name, options, n, 1);
    int key = lua_gettop(L);
    lua_pushvalue(L, key);
    if (lua_rawget(L, LM_UP_OWN) != LUA_TNIL) return 1;
    open_module(&k, d, n, options);
    lua_pushvalue(L, key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LM_UP_OWN);
    return 1;
}

/* ---- into luma.cuda ---- */

/* A metatable that scripts cannot reach. */
static void new_type(lua_State *L, const char *name, const luaL_Reg *meta,
                     const luaL_Reg *methods) {
    luaL_newmetatable(L, name);
    int at = lua_gettop(L);
    lua_pushboolean(L, 0);
    lua_setfield(L, at, "__metatable");
    lm_register(L, at, meta);
    lua_newtable(L);
    lm_register(L, at + 1, methods);
    lua_setfield(L, at, "__index");
    lua_settop(L, at - 1);
}

void lm_cuda_module_open(lua_State *L, int cuda) {
    static const luaL_Reg none[] = {{NULL, NULL}};
    static const luaL_Reg module_meta[] = {
        {"__gc", collect}, {"__tostring", module_text}, {NULL, NULL}};
    static const luaL_Reg module_methods[] = {{"kernel", find_kernel},
                                              {"names", names_of},
                                              {"ptx", ptx_of},
                                              {"log", log_of},
                                              {NULL, NULL}};
    static const luaL_Reg kernel_meta[] = {{"__tostring", kernel_text}, {NULL, NULL}};
    static const luaL_Reg kernel_methods[] = {{"launch", launch}, {NULL, NULL}};
    new_type(L, MODULE, module_meta, module_methods);
    new_type(L, KERNEL, kernel_meta, kernel_methods);
    new_type(L, VALUE, none, none);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        lua_pushinteger(L, (lua_Integer)i);
        lm_push_function(L, new_value, 1);
        lua_setfield(L, cuda, types[i].name);
    }
    lua_newtable(L); /* modules by key, as long as something else holds them */
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lm_push_function(L, module, 1);
    lua_setfield(L, cuda, "module");
}
