/* system.c -- what concerns the process or the Lua state rather than one tensor: threads, dtypes, the
** registry as data. Layer: bindings. */
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "cpu/cpu.h"
#include "pool.h"
#include "quant.h"

static int clock_now(lua_State *L) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    lua_pushnumber(L, (lua_Number)now.tv_sec + 1e-9 * (lua_Number)now.tv_nsec);
    return 1;
}

static int is_tensor(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushboolean(L, lm_box_test(L, 1) != NULL);
    return 1;
}

static int set_num_threads(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_num_threads");
    int64_t n = lm_arg_integer(&k, 1, 1);
    if (n < 1 || n > LM_POOL_MOST)
        lm_bad(&k, 1, "1 to %d threads expected, got %I", LM_POOL_MOST, (LUAI_UACINT)n);
    luma_set_num_threads((int)n);
    return 0;
}

/* ---- luma.config() ---- */

static int config(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    struct winsize window;
    lua_createtable(L, 0, 9);
    lm_set_string(L, "version", LUMA_VERSION);
    lm_set_string(L, "lua", LUA_RELEASE);
    lm_set_string(L, "cpu", lm_level_now()->name);
    lm_set_string(L, "cpu_levels", lm_level_list());
    lm_set_integer(L, "threads", luma_num_threads());
    lm_set_string(L, "default_dtype", luma_dtype_name(luma_default_dtype(c->S)));
    lm_set_string(L, "default_device", luma_default_device(c->S));
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        lm_set_integer(L, "columns",
                       window.ws_col); /* of the terminal; absent where there is none */
    lua_createtable(L, c->S->ndevices, 0);
    for (int i = 0; i < c->S->ndevices; i++) {
        lua_pushstring(L, c->S->devices[i]->name);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "devices");
    return 1;
}

/* How often each way of copying was taken: shared, memcpy, copy2d, strided. */
static int copy_counts(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    lua_createtable(L, 0, 4);
    lm_set_integer(L, "shared", c->S->copies.shared);
    lm_set_integer(L, "memcpy", c->S->copies.memcpy);
    lm_set_integer(L, "copy2d", c->S->copies.copy2d);
    lm_set_integer(L, "strided", c->S->copies.strided);
    return 1;
}

/* ---- dtypes ---- */

static int set_default_dtype(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_default_dtype");
    luma_status status = luma_set_default_dtype(k.c->S, lm_arg_dtype(&k, 1, 1));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

static int get_default_dtype(lua_State *L) {
    lua_pushstring(L, luma_dtype_name(luma_default_dtype(lm_enter(L)->S)));
    return 1;
}

/* ---- devices ---- */

static int set_default_device(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "set_default_device");
    const char *name = lm_arg_text(&k, 1, 1, "device");
    luma_status status = luma_set_default_device(k.c->S, name);
    k.c->S->argument = 1;
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

static int get_default_device(lua_State *L) {
    lua_pushstring(L, luma_default_device(lm_enter(L)->S));
    return 1;
}

static int promote_types(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "promote_types");
    luma_dtype a = lm_arg_dtype(&k, 1, 1), b = lm_arg_dtype(&k, 2, 2);
    lua_pushstring(L, luma_dtype_name(lm_dtype_promote(a, b)));
    return 1;
}

/* ---- the registry as data ---- */

static const char *const row_names[] = {
    [LM_ROW_UNARY] = "unary",   [LM_ROW_UNARY_P] = "unary_p", [LM_ROW_TEST] = "test",
    [LM_ROW_BINARY] = "binary", [LM_ROW_COMPARE] = "compare", [LM_ROW_TERNARY] = "ternary",
    [LM_ROW_REDUCE] = "reduce", [LM_ROW_OP] = "op",           [LM_ROW_VIEW] = "view",
    [LM_ROW_MAKE] = "make"};
static const char *const takes_names[] = {
    [LM_TAKES_NONE] = "none", [LM_TAKES_FLOATS] = "floats", [LM_TAKES_NUMBERS] = "numbers",
    [LM_TAKES_INTS] = "ints", [LM_TAKES_BITS] = "bits",     [LM_TAKES_ALL] = "all"};
static const char *const gives_names[] = {
    [LM_GIVES_TENSOR] = "tensor", [LM_GIVES_TWIN] = "twin",   [LM_GIVES_PAIR] = "pair",
    [LM_GIVES_TRIPLE] = "triple", [LM_GIVES_VALUE] = "value", [LM_GIVES_LIST] = "list"};
static const char *const result_names[] = {[LM_RESULT_SAME] = "same",
                                           [LM_RESULT_SUM] = "sum",
                                           [LM_RESULT_FLOAT] = "float",
                                           [LM_RESULT_BOOL] = "bool",
                                           [LM_RESULT_INDEX] = "index"};

static void push_row(lua_State *L, int op) {
    const lm_op_info *row = &lm_ops[op];
    lua_createtable(L, 0, 13);
    lm_set_string(L, "name", row->name);
    lm_set_integer(L, "inputs", lm_op_inputs((lm_op)op));
    lm_set_string(L, "row", row_names[row->row]);
    lm_set_string(L, "takes", takes_names[row->takes]);
    lm_set_string(L, "gives", gives_names[row->gives]);
    if (row->row == LM_ROW_REDUCE) lm_set_string(L, "result", result_names[row->result]);
    lm_set_string(L, "signature", row->signature);
    lm_set_string(L, "formula", row->formula);
    lm_set_string(L, "doc", row->doc);
    lua_pushnumber(L, row->lo);
    lua_setfield(L, -2, "lo");
    lua_pushnumber(L, row->hi);
    lua_setfield(L, -2, "hi");
    lua_pushnumber(L, row->ulp);
    lua_setfield(L, -2, "ulp");
    lua_pushboolean(L, row->row != LM_ROW_MAKE && lm_op_has_inplace((lm_op)op));
    lua_setfield(L, -2, "inplace");
}

static void push_dtypes(lua_State *L) {
    static const char *const kinds[] = {
        [LM_KIND_BOOL] = "bool", [LM_KIND_INT] = "int", [LM_KIND_FLOAT] = "float"};
    lua_createtable(L, LUMA_NDTYPES, 0);
    for (int d = 0; d < LUMA_NDTYPES; d++) {
        lua_createtable(L, 0, 2);
        lm_set_string(L, "name", lm_dtypes[d].name);
        lm_set_string(L, "kind", kinds[lm_dtypes[d].kind]);
        lua_rawseti(L, -2, d + 1);
    }
}

static void push_quant(lua_State *L) {
    static const struct {
        const char *name;
        int bytes;
    } formats[] = {
#define FORMAT(name, bytes) {name, bytes},
        LM_QUANT_FORMATS(FORMAT)};
#undef FORMAT
    lua_createtable(L, 0, 2);
    lm_set_integer(L, "block", LM_QUANT_BLOCK);
    lua_createtable(L, LUMA_NQUANT, 0);
    for (int f = 0; f < LUMA_NQUANT; f++) {
        lua_createtable(L, 0, 2);
        lm_set_string(L, "name", formats[f].name);
        lm_set_integer(L, "bytes", formats[f].bytes);
        lua_rawseti(L, -2, f + 1);
    }
    lua_setfield(L, -2, "formats");
}

void lm_registry_open(lua_State *L, int meta) {
    push_dtypes(L);
    lua_setfield(L, meta, "dtypes");
    push_quant(L);
    lua_setfield(L, meta, "quant");
    lua_createtable(L, 0, LM_NTYPES);
    for (int type = 0; type < LM_NTYPES; type++) {
        if (!lm_type_names[type] || type == LM_TYPE_DTYPE || type == LM_TYPE_DEVICE) continue;
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, lm_type_names[type]);
    }
    lua_setfield(L, meta, "types");
}

/* supports(name, dtype [, device]): whether the device has a kernel for the row in this dtype. */
static int supports(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "supports");
    if (lua_type(L, 1) != LUA_TSTRING) lm_bad_type(&k, 1, 1, "name");
    luma_dtype dtype = lm_arg_dtype(&k, 2, 2);
    lm_device *d = lm_arg_device(&k, 3);
    for (int op = 0; op < LM_NOPS; op++) {
        if (strcmp(lm_ops[op].name, lua_tostring(L, 1)) != 0) continue;
        lua_pushboolean(L, lm_supports(d, (lm_op)op, dtype));
        return 1;
    }
    lm_bad(&k, 1, "no operation '%s'", lm_brief(L, lua_tostring(L, 1)));
}

/* ---- failure injection, for specs ---- */

/* fail_after(n, forever): the n-th allocation of the core from now on fails (1: the next), with
** forever all after it too; nil: none. Returns whether the last request has yet to be met. */
static int fail_after(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "fail_after");
    luma_state *S = k.c->S;
    bool waiting = S->fail_after >= 0 && !S->failed;
    S->fail_after = lua_isnoneornil(L, 1) ? -1 : lm_arg_integer(&k, 1, 1) - 1;
    S->fail_forever = lua_toboolean(L, 2);
    S->failed = false;
    lua_pushboolean(L, waiting);
    return 1;
}

/* Lua's allocator while a failure is due. It fails what it is asked for and the second try, after
** Lua has collected; then the host's own is back. */
static void *failing(void *ud, void *p, size_t osize, size_t nsize) {
    lm_ctx *c = ud;
    lua_Alloc f = c->alloc;
    bool grows = nsize > (p ? osize : 0);
    if (grows && --c->alloc_left <= 0) {
        if (c->alloc_left < 0) lm_alloc_restore(c);
        return NULL;
    }
    return f(c->alloc_ud, p, osize, nsize);
}

void lm_alloc_restore(lm_ctx *c) {
    if (c->alloc) lua_setallocf(c->main, c->alloc, c->alloc_ud);
    c->alloc = NULL;
}

/* fail_lua_after(n): the same for Lua's own memory, with the second try; nil: none. */
static int fail_lua_after(lua_State *L) {
    lm_call k;
    lm_call_open(&k, L, lm_enter(L), "fail_lua_after");
    lm_ctx *c = k.c;
    int64_t n = lua_isnoneornil(L, 1) ? 0 : lm_arg_integer(&k, 1, 1);
    lm_alloc_restore(c);
    if (n <= 0) return 0;
    c->alloc_left = n;
    c->alloc = lua_getallocf(L, &c->alloc_ud);
    lua_setallocf(L, failing, c);
    return 0;
}

void lm_system_open(lua_State *L, int module) {
    static const luaL_Reg functions[] = {{"clock", clock_now},
                                         {"is_tensor", is_tensor},
                                         {"set_num_threads", set_num_threads},
                                         {"config", config},
                                         {"copy_counts", copy_counts},
                                         {"set_default_dtype", set_default_dtype},
                                         {"get_default_dtype", get_default_dtype},
                                         {"set_default_device", set_default_device},
                                         {"get_default_device", get_default_device},
                                         {"promote_types", promote_types},
                                         {"supports", supports},
                                         {"fail_after", fail_after},
                                         {"fail_lua_after", fail_lua_after},
                                         {NULL, NULL}};
    lm_register(L, module, functions);
    lua_pushliteral(L, LUMA_VERSION);
    lua_setfield(L, module, "version");
    for (int d = 0; d < LUMA_NDTYPES; d++) {
        lua_pushstring(L, lm_dtypes[d].name);
        lua_setfield(L, module, lm_dtypes[d].name);
    }
    lua_createtable(L, LM_NOPS, 0);
    for (int op = 0; op < LM_NOPS; op++) {
        push_row(L, op);
        lua_rawseti(L, -2, op + 1);
    }
    lua_setfield(L, module, "ops");
}
