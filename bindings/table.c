/* table.c -- nested tables of numbers or booleans to tensors. Layer: bindings. */
#include <string.h>

#include "make.h"

#define BATCH 64 /* values on the Lua stack at a time: fewer calls than one by one */

typedef struct {
    lm_call *k;
    int arg;
    luma_dtype dtype;
    bool booleans; /* only booleans are right */
    bool numbers;  /* only numbers are right, and dtype must hold integers exactly */
    bool wide;     /* float32 or float64 */
    double exact;  /* integers up to here are exact in dtype */
    int ndim;
    int64_t shape[LUMA_MAX_DIMS];
    int64_t path[LUMA_MAX_DIMS]; /* of what is being read, from 1 */
    int64_t read; /* entries, and tables: a table may stand in one any number of times */
    char *next;   /* where the next element goes */
} reader;

/* "[2][3]" of the first n dims, or of the first entry at that depth; pushed. */
static const char *bare_path(reader *r, int n, bool of_first) {
    lua_State *L = r->k->L;
    lua_pushliteral(L, "");
    for (int d = 0; d < n; d++) {
        lua_pushfstring(L, "[%I]", (LUAI_UACINT)(of_first ? 1 : r->path[d]));
        lua_concat(L, 2);
    }
    return lua_tostring(L, -1);
}

/* "[2][3]: ", what messages about an entry begin with. */
static const char *path_text(reader *r, int n) {
    return n ? lua_pushfstring(r->k->L, "%s: ", bare_path(r, n, false)) : "";
}

LM_NORETURN static void wrong_type(reader *r, int depth, int idx, const char *expected) {
    lua_State *L = r->k->L;
    if (lm_box_test(L, idx))
        lm_bad(r->k, r->arg, "%sa table of tensors: use luma.stack", path_text(r, depth));
    lm_bad(r->k, r->arg, "%s%s expected, got %s", path_text(r, depth), expected,
           luaL_typename(L, idx));
}

/* ---- the shape: that of the first entries ---- */

static void find_shape(reader *r, int idx) {
    lua_State *L = r->k->L;
    lua_pushvalue(L, idx);
    r->ndim = 0;
    while (lua_istable(L, -1)) {
        if (r->ndim == LUMA_MAX_DIMS)
            lm_bad(r->k, r->arg, "tables nest deeper than %d dims", LUMA_MAX_DIMS);
        r->shape[r->ndim] = (int64_t)lua_rawlen(L, -1);
        r->path[r->ndim++] = 1;
        if (r->shape[r->ndim - 1] == 0) return;
        lua_rawgeti(L, -1, 1);
        lua_remove(L, -2);
    }
    if (!lm_is_scalar(L, -1)) wrong_type(r, r->ndim, lua_gettop(L), "number");
}

/* Above it some integers are not exact. */
static double exact_up_to(luma_dtype dtype) {
    return dtype == LUMA_FLOAT32 ? 0x1p24 : dtype == LUMA_FLOAT64 ? 0x1p53 : 256;
}

/* The first entry says what is meant when no dtype does. */
static void choose_dtype(reader *r, luma_dtype dtype) {
    bool boolean = lua_isboolean(r->k->L, -1);
    r->booleans = dtype == LUMA_NDTYPES && boolean;
    r->numbers = dtype == LUMA_NDTYPES && !boolean;
    r->dtype = dtype;
    if (dtype == LUMA_NDTYPES) r->dtype = boolean ? LUMA_BOOL : luma_default_dtype(r->k->c->S);
    r->wide = r->dtype == LUMA_FLOAT32 || r->dtype == LUMA_FLOAT64;
    r->exact = exact_up_to(r->dtype);
}

/* ---- elements ---- */

static void check_exact(reader *r, lua_Integer i) {
    luma_state *S = r->k->c->S;
    if ((double)i <= r->exact && (double)i >= -r->exact) return;
    char element[8];
    const lm_device_ops *cpu = lm_cpu(S)->ops;
    cpu->encode(r->dtype, (luma_scalar){.kind = LUMA_IS_INT, .u.i = i}, element);
    double back = cpu->decode(r->dtype, element).u.d;
    if (back >= -0x1p63 && back < 0x1p63 && (int64_t)back == i) return;
    lm_bad(r->k, r->arg, "%s%I is not exact in %s: give a dtype, such as \"int64\"",
           path_text(r, r->ndim), (LUAI_UACINT)i, luma_dtype_name(r->dtype));
}

/* A number into float32 or float64, where nothing is to be said about it; false otherwise. */
static bool put_fast(reader *r, int idx, int type) {
    lua_State *L = r->k->L;
    if (type != LUA_TNUMBER || r->booleans) return false;
    double v = lua_tonumber(L, idx);
    if (!(v <= r->exact && v >= -r->exact)) return false;
    if (r->dtype == LUMA_FLOAT32) {
        float f = (float)v;
        memcpy(r->next, &f, sizeof f);
        r->next += sizeof f;
    } else {
        memcpy(r->next, &v, sizeof v);
        r->next += sizeof v;
    }
    return true;
}

static void put_element(reader *r, int idx) {
    lua_State *L = r->k->L;
    int type = lua_type(L, idx);
    if (r->booleans && type != LUA_TBOOLEAN) wrong_type(r, r->ndim, idx, "boolean");
    if (r->numbers && type != LUA_TNUMBER) wrong_type(r, r->ndim, idx, "number");
    if (type != LUA_TBOOLEAN && type != LUA_TNUMBER) wrong_type(r, r->ndim, idx, "number");
    luma_scalar v = lm_to_scalar(L, idx);
    if (r->numbers && v.kind == LUMA_IS_INT) check_exact(r, v.u.i);
    if (r->dtype == LUMA_FLOAT32) {
        float f = v.kind == LUMA_IS_FLOAT ? (float)v.u.d : (float)v.u.i;
        memcpy(r->next, &f, sizeof f);
    } else if (r->dtype == LUMA_FLOAT64) {
        double d = v.kind == LUMA_IS_FLOAT ? v.u.d : (double)v.u.i;
        memcpy(r->next, &d, sizeof d);
    } else {
        if (!lm_fits(v, r->dtype)) {
            const char *path = path_text(r, r->ndim);
            lm_bad(r->k, r->arg, "%s%s does not fit into %s", path, luaL_tolstring(L, idx, NULL),
                   luma_dtype_name(r->dtype));
        }
        lm_cpu(r->k->c->S)->ops->encode(r->dtype, v, r->next);
    }
    r->next += lm_dtype_size(r->dtype);
}

/* Keys that the length does not count: one after the last entry is a mistake. */
static void check_keys(reader *r, int depth, int64_t n) {
    lua_State *L = r->k->L;
    if (n > 0)
        lua_pushinteger(L, n);
    else
        lua_pushnil(L);
    if (!lua_next(L, -2)) return;
    /* A list in the hash part of its table is walked in any order: count. */
    lua_pop(L, 2);
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        count++;
    if (count != n)
        lm_bad(r->k, r->arg, "%sa list of %I expected, but there are %I keys", path_text(r, depth),
               (LUAI_UACINT)n, (LUAI_UACINT)count);
}

static void read_row(reader *r, int64_t n) {
    lua_State *L = r->k->L;
    int table = lua_gettop(L), types[BATCH + 1];
    for (int64_t i = 0; i < n; i += BATCH) {
        int m = (int)(n - i < BATCH ? n - i : BATCH);
        for (int j = 1; j <= m; j++)
            types[j] = lua_rawgeti(L, table, i + j);
        for (int j = 1; j <= m; j++) {
            if (r->wide && put_fast(r, table + j, types[j])) continue;
            r->path[r->ndim - 1] = i + j;
            put_element(r, table + j);
        }
        lua_settop(L, table);
        lm_poll(r->k, r->read++);
    }
}

/* The table on top, at depth dims. */
static void read_table(reader *r, int depth) {
    lua_State *L = r->k->L;
    int64_t n = r->shape[depth];
    lm_poll(r->k, r->read++);
    if (!lua_istable(L, -1)) wrong_type(r, depth, lua_gettop(L), "table");
    int64_t have = (int64_t)lua_rawlen(L, -1);
    if (have != n) {
        const char *path = bare_path(r, depth, false), *first = bare_path(r, depth, true);
        lm_bad(r->k, r->arg, "ragged table: %I entries at %s but %I at %s", (LUAI_UACINT)n, first,
               (LUAI_UACINT)have, path);
    }
    if (depth == r->ndim - 1) {
        read_row(r, n);
    } else {
        for (int64_t i = 1; i <= n; i++) {
            r->path[depth] = i;
            lua_rawgeti(L, -1, i);
            read_table(r, depth + 1);
            lua_pop(L, 1);
        }
    }
    check_keys(r, depth, n);
}

luma_tensor *lm_table_read(lm_call *k, int arg, int idx, luma_dtype dtype) {
    lua_State *L = k->L;
    reader r = {.k = k, .arg = arg};
    luaL_checkstack(L, BATCH + 2 * LUMA_MAX_DIMS + 8, "too many values");
    find_shape(&r, idx);
    choose_dtype(&r, dtype);
    luma_tensor *out = lm_box_new(L, k->c);
    int box = lua_gettop(L), tried = 0;
    luma_status status;
    do {
        status = luma_empty(k->c->S, out, r.ndim, r.shape, r.dtype, "cpu");
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, k->c, &tried));
    if (status != LUMA_OK) lm_raise(k, status);
    r.next = lm_data(out);
    lua_pushvalue(L, idx);
    if (r.ndim == 0)
        put_element(&r, lua_gettop(L));
    else
        read_table(&r, 0);
    lua_settop(L, box);
    return out;
}
