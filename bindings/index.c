/* index.c -- x[...] and x(...), read and written: keys become items, items become a view and picks.
** Layer: bindings. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "view.h"

/* What one entry of an index asks of the dims of x. */
typedef enum {
    ITEM_AT,    /* one position: drops a dim */
    ITEM_RANGE, /* keeps a dim */
    ITEM_NEW,   /* a new dim of size 1 */
    ITEM_REST,  /* all dims that the others leave */
    ITEM_PICK   /* a mask or an index tensor */
} item_kind;

typedef struct {
    item_kind kind;
    int arg; /* for messages */
    bool has_first, has_last;
    int64_t first, last, step; /* core's counting; AT: first */
    const luma_tensor *tensor;
} item;

#define MAX_ITEMS (2 * LUMA_MAX_DIMS + 1)

typedef struct {
    lm_call k;
    const luma_tensor *x;
    int n;
    item items[MAX_ITEMS];
    luma_tensor view; /* borrows the storage of x */
    /* What picks along the first npicks dims of view; NULL: nothing. A mask stands at the first of
    ** its dims until its columns are made. */
    int npicks;
    const luma_tensor *picks[LUMA_MAX_DIMS];
    luma_tensor columns[LUMA_MAX_DIMS];
} target;

/* ---- reading keys ---- */

static item *add_item(target *t, int arg, item_kind kind) {
    if (t->n == MAX_ITEMS) lm_bad(&t->k, arg, "too many indices");
    item *it = &t->items[t->n++];
    memset(it, 0, sizeof *it);
    it->kind = kind;
    it->arg = arg;
    it->step = 1;
    return it;
}

/* The end of a range may be 0: {1, 0} is empty. */
static void set_bounds(target *t, item *it, const int64_t *first, const int64_t *last) {
    it->has_first = first != NULL;
    it->has_last = last != NULL;
    if (first) it->first = lm_arg_position(&t->k, it->arg, *first);
    if (last) it->last = *last == 0 ? LM_BEFORE_FIRST : lm_arg_position(&t->k, it->arg, *last);
}

static void read_range_table(target *t, int arg, int idx) {
    int n;
    const int64_t *v = lm_arg_list(&t->k, arg, idx, &n);
    if (n > 3)
        lm_bad(&t->k, arg,
               "a range is {first, last, step}; for a list of positions use an index tensor");
    item *it = add_item(t, arg, ITEM_RANGE);
    if (n > 0) set_bounds(t, it, &v[0], n > 1 ? &v[1] : &v[0]);
    if (n == 3) it->step = v[2];
}

/* An integer at *s, which moves past it; false when there is none. */
static bool parse_integer(target *t, int arg, const char **s, int64_t *out) {
    const char *p = *s;
    bool negative = *p == '-';
    if (negative) p++;
    if (!isdigit((unsigned char)*p)) return false;
    int64_t v = 0;
    for (; isdigit((unsigned char)*p); p++) {
        if (!lm_mul_fits(v, 10, &v) || !lm_add_fits(v, *p - '0', &v))
            lm_bad(&t->k, arg, "a position in '%s' is too large", lm_brief(t->k.L, *s));
    }
    if (isalpha((unsigned char)*p) || *p == '.') return false; /* as in 0x1, 1e3, 1.5 */
    *out = negative ? -v : v;
    *s = p;
    return true;
}

static const char *skip(const char *s) {
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* "2", "2:5", ":", "::2", "...", "+" */
static const char *parse_item(target *t, int arg, const char *s) {
    int64_t v[3] = {0, 0, 1};
    bool has[3] = {false, false, false};
    if (*s == '+') {
        add_item(t, arg, ITEM_NEW);
        return s + 1;
    }
    if (strncmp(s, "...", 3) == 0) {
        add_item(t, arg, ITEM_REST);
        return s + 3;
    }
    int part = 0;
    for (;;) {
        s = skip(s);
        has[part] = parse_integer(t, arg, &s, &v[part]);
        s = skip(s);
        if (*s != ':' || part == 2) break;
        s++;
        part++;
    }
    if (part == 0) {
        if (!has[0]) return NULL;
        add_item(t, arg, ITEM_AT)->first = lm_arg_position(&t->k, arg, v[0]);
        return s;
    }
    item *it = add_item(t, arg, ITEM_RANGE);
    set_bounds(t, it, has[0] ? &v[0] : NULL, has[1] ? &v[1] : NULL);
    it->step = v[2];
    return s;
}

static void read_string(target *t, int arg, int idx) {
    const char *whole = lua_tostring(t->k.L, idx);
    const char *s = whole;
    size_t length = lua_rawlen(t->k.L, idx);
    do {
        s = parse_item(t, arg, skip(s));
        if (s) s = skip(s);
        if (!s || (*s != ',' && *s != '\0'))
            lm_bad(&t->k, arg, "'%s' is no index: write it as \"2:5, :, -1, ::2\"",
                   lm_brief(t->k.L, whole));
    } while (*s++ == ',');
    if ((size_t)(s - 1 - whole) != length) lm_bad(&t->k, arg, "a zero byte in an index");
}

/* One entry: a number, string, tensor, or (within a table or call) a range. */
static void read_entry(target *t, int arg, int idx) {
    lua_State *L = t->k.L;
    luma_tensor *x = lm_box_test(L, idx);
    if (x) {
        lm_check_live(&t->k, arg, x);
        add_item(t, arg, ITEM_PICK)->tensor = x;
        return;
    }
    switch (lua_type(L, idx)) {
    case LUA_TNUMBER:
        add_item(t, arg, ITEM_AT)->first =
            lm_arg_position(&t->k, arg, lm_arg_integer(&t->k, arg, idx));
        break;
    case LUA_TSTRING:
        read_string(t, arg, idx);
        break;
    case LUA_TTABLE:
        read_range_table(t, arg, idx);
        break;
    default:
        lm_bad_type(&t->k, arg, idx, "index");
    }
}

static void read_key(target *t, int arg) {
    lua_State *L = t->k.L;
    if (lua_type(L, arg) != LUA_TTABLE) {
        read_entry(t, arg, arg);
        return;
    }
    int n = lm_arg_length(&t->k, arg, arg);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, arg, i); /* stays: it may be the only hold on a tensor */
        read_entry(t, arg, lua_gettop(L));
        luaL_checkstack(L, 8, "too many indices");
    }
}

/* ---- from items to a view and picks ---- */

static int dims_taken(const item *it) {
    if (it->kind == ITEM_AT || it->kind == ITEM_RANGE) return 1;
    if (it->kind == ITEM_PICK) return it->tensor->dtype == LUMA_BOOL ? it->tensor->layout.ndim : 1;
    return 0;
}

static int dims_left(target *t) {
    int taken = 0, rests = 0, ndim = t->x->layout.ndim;
    for (int i = 0; i < t->n; i++) {
        taken += dims_taken(&t->items[i]);
        rests += t->items[i].kind == ITEM_REST;
    }
    if (rests > 1) lm_bad(&t->k, 2, "'...' stands twice in an index");
    if (taken > ndim) {
        lm_text text;
        lm_bad(&t->k, t->items[t->n - 1].arg, "%d indices for %s, which has %d dim%s", taken,
               lm_shape_text(&text, ndim, t->x->layout.shape), ndim, ndim == 1 ? "" : "s");
    }
    return ndim - taken;
}

static void check(target *t, int arg, luma_status status) {
    if (status == LUMA_OK) return;
    bool lacks = status == LUMA_ERR_MEMORY || status == LUMA_ERR_DEVICE;
    t->k.c->S->argument = lacks ? 0 : arg;
    lm_raise(&t->k, status);
}

static void insert_dim(target *t, int arg, int d) {
    if (t->view.layout.ndim == LUMA_MAX_DIMS)
        lm_bad(&t->k, arg, "more than %d dims", LUMA_MAX_DIMS);
    t->view.layout = lm_layout_insert(&t->view.layout, d, 1, 1);
}

static void check_mask(target *t, const item *it, int from) {
    const luma_layout *mask = &it->tensor->layout, *x = &t->x->layout;
    lm_text a, b;
    if (mask->ndim == 0) lm_bad(&t->k, it->arg, "a 0-d mask picks nothing");
    if (memcmp(mask->shape, x->shape + from, (size_t)mask->ndim * sizeof *mask->shape) == 0) return;
    lm_bad(&t->k, it->arg, "a mask of %s does not fit dim %d of %s", lm_layout_text(&a, mask),
           from + 1, lm_layout_text(&b, x));
}

/* Applies the item at dim `from` of x, which is dim d of the view; returns the next d. */
static int apply(target *t, const item *it, int from, int d) {
    luma_state *S = t->k.c->S;
    const luma_layout *x = &t->x->layout;
    luma_layout *view = &t->view.layout;
    int64_t start, length;
    switch (it->kind) {
    case ITEM_AT:
        check(t, it->arg,
              lm_view_range(S, it->arg, x, from, &it->first, &it->first, 1, &start, &length));
        *view = lm_layout_select(view, d, start);
        return d;
    case ITEM_RANGE:
        check(t, it->arg,
              lm_view_range(S, it->arg, x, from, it->has_first ? &it->first : NULL,
                            it->has_last ? &it->last : NULL, it->step, &start, &length));
        *view = lm_layout_slice(view, d, start, length, it->step);
        return d + 1;
    case ITEM_NEW:
        insert_dim(t, it->arg, d);
        return d + 1;
    case ITEM_PICK:
        if (it->tensor->dtype == LUMA_BOOL) check_mask(t, it, from);
        t->picks[d] = it->tensor;
        t->npicks = d + dims_taken(it);
        return t->npicks;
    default:
        return d;
    }
}

static void resolve(target *t) {
    int left = dims_left(t), from = 0, d = 0;
    t->view = *t->x;
    t->npicks = 0;
    memset(t->picks, 0, sizeof t->picks);
    for (int i = 0; i < t->n; i++) {
        const item *it = &t->items[i];
        d = apply(t, it, from, d);
        from += dims_taken(it);
        if (it->kind == ITEM_REST) {
            from += left;
            d += left;
        }
    }
}

static void open_target(target *t, lua_State *L, lm_ctx *c, const char *name) {
    lm_call_open(&t->k, L, c, name);
    t->x = lm_arg_tensor(&t->k, 1, 1);
    t->n = 0;
}

static void check_live(target *t) {
    lm_check_live(&t->k, 1, t->x);
    t->view.storage = t->x->storage;
    for (int d = 0; d < t->npicks; d++) {
        if (t->picks[d]) lm_check_live(&t->k, 2, t->picks[d]);
    }
}

/* ---- reading ---- */

static void push_number(target *t, const luma_tensor *x) {
    lua_State *L = t->k.L;
    luma_state *S = t->k.c->S;
    if (lm_device_of(x) == lm_cpu(S)) {
        lm_push_element(L, S, x->dtype, lm_data(x));
        return;
    }
    luma_scalar v;
    luma_status status = LM_UNLIMITED(&t->k, luma_item(S, x, &v));
    if (status != LUMA_OK) lm_raise(&t->k, status);
    lm_push_scalar(L, v);
}

/* The one mask over all of view, or NULL. */
static const luma_tensor *whole_mask(const target *t) {
    const luma_tensor *mask = t->npicks ? t->picks[0] : NULL;
    bool whole = mask && mask->dtype == LUMA_BOOL && t->npicks == t->view.layout.ndim &&
                 lm_layout_same_shape(&mask->layout, &t->view.layout);
    return whole ? mask : NULL;
}

/* Turns masks into the columns of their nonzero positions, which boxes on the stack hold. */
static void spread_masks(target *t) {
    lua_State *L = t->k.L;
    for (int d = 0; d < t->npicks; d++) {
        const luma_tensor *mask = t->picks[d];
        if (!mask || mask->dtype != LUMA_BOOL) continue;
        luma_tensor *positions = lm_box_new(L, t->k.c);
        int tried = 0, ndim = mask->layout.ndim;
        luma_status status;
        do {
            lm_check_live(&t->k, 2, mask);
            status = luma_nonzero(t->k.c->S, positions, mask);
        } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, t->k.c, &tried));
        check(t, 2, status);
        for (int j = 0; j < ndim; j++) {
            t->columns[d + j] = *positions;
            t->columns[d + j].layout = lm_layout_select(&positions->layout, 1, j);
            t->picks[d + j] = &t->columns[d + j];
        }
        d += ndim - 1;
    }
}

static luma_status read_picks(target *t, luma_tensor *out) {
    luma_state *S = t->k.c->S;
    const luma_tensor *mask = whole_mask(t);
    return mask ? luma_masked_select(S, out, &t->view, mask)
                : luma_index_get(S, out, &t->view, t->npicks, t->picks);
}

static int read(target *t) {
    lua_State *L = t->k.L;
    luma_state *S = t->k.c->S;
    resolve(t);
    check_live(t);
    if (t->npicks == 0 && t->view.layout.ndim == 0) {
        push_number(t, &t->view);
        return 1;
    }
    if (!whole_mask(t)) spread_masks(t);
    luma_tensor *out = lm_box_new(L, t->k.c);
    int tried = 0;
    luma_status status;
    do {
        check_live(t);
        status = t->npicks ? read_picks(t, out) : lm_tensor_view(S, out, &t->view, &t->view.layout);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, t->k.c, &tried));
    check(t, 2, status);
    return 1;
}

/* The element at n integers from argument 2 on, on the CPU and without ceremony; false when it is
** anything else. */
static bool read_fast(lua_State *L, lm_ctx *c, int n) {
    const luma_tensor *x = lm_box_test(L, 1);
    if (!x || !x->storage || x->layout.ndim != n || x->storage->device != lm_cpu(c->S))
        return false;
    int64_t at = x->layout.offset;
    for (int d = 0; d < n; d++) {
        int exact;
        lua_Integer i = lua_tointegerx(L, 2 + d, &exact);
        if (!exact || lua_type(L, 2 + d) != LUA_TNUMBER || i < 1 || i > x->layout.shape[d])
            return false;
        at += (i - 1) * x->layout.stride[d];
    }
    lm_push_element(L, c->S, x->dtype, x->storage->data + at * (int64_t)lm_dtype_size(x->dtype));
    return true;
}

/* x[i] of several dims: the view that drops the first, on any device; false as above. */
static bool select_fast(lua_State *L, lm_ctx *c) {
    int exact;
    const luma_tensor *x = lm_box_test(L, 1);
    lua_Integer i = lua_tointegerx(L, 2, &exact);
    if (!exact || lua_type(L, 2) != LUA_TNUMBER || !x || !x->storage || x->layout.ndim < 2 ||
        i < 1 || i > x->layout.shape[0])
        return false;
    luma_tensor *out = lm_box_new(L, c);
    if (!x->storage) return false; /* a finalizer released it */
    out->layout.ndim = x->layout.ndim - 1;
    out->layout.offset = x->layout.offset + (i - 1) * x->layout.stride[0];
    for (int d = 1; d < x->layout.ndim; d++) {
        out->layout.shape[d - 1] = x->layout.shape[d];
        out->layout.stride[d - 1] = x->layout.stride[d];
    }
    out->dtype = x->dtype;
    out->storage = lm_storage_retain(x->storage);
    return true;
}

static const char *const fields[] = {"shape", "dtype", "device", "ndim"};

static const char *first_param(lua_State *L, lm_op op) {
    int n;
    const lm_param *params = lm_ctx_params(lua_touserdata(L, LM_UP_CTX), op, &n);
    return n > 0 ? params[0].name : "";
}

static int no_such_field(lua_State *L, const char *name) {
    const char *instead = lm_foreign(name);
    if (instead) return luaL_error(L, "a tensor has no method or field '%s'; %s", name, instead);
    for (int op = 0; op < LM_NOPS; op++) {
        if (lm_ops[op].row != LM_ROW_MAKE && strcmp(lm_ops[op].name, name) == 0)
            return luaL_error(L, "a tensor has no method '%s'; write luma.%s(%s, ...)", name, name,
                              first_param(L, op));
    }
    lm_near near = {name, NULL, 0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        lm_near_try(&near, fields[i]);
    for (lua_pushnil(L); lua_next(L, LM_UP_OWN); lua_pop(L, 1))
        lm_near_try(&near, lua_tostring(L, -2));
    if (!near.best) return luaL_error(L, "a tensor has no method or field '%s'", lm_brief(L, name));
    return luaL_error(L, "a tensor has no method or field '%s'; did you mean '%s'?",
                      lm_brief(L, name), near.best);
}

static int push_field(lua_State *L, const char *name) {
    const luma_tensor *x = luma_check(L, 1);
    if (strcmp(name, "shape") == 0) {
        lm_push_sizes(L, x->layout.ndim, x->layout.shape);
    } else if (strcmp(name, "dtype") == 0) {
        lua_pushstring(L, luma_dtype_name(x->dtype));
    } else if (strcmp(name, "device") == 0) {
        lua_pushstring(L, lm_device_of(x)->name);
    } else if (strcmp(name, "ndim") == 0) {
        lua_pushinteger(L, x->layout.ndim);
    } else {
        return no_such_field(L, name);
    }
    return 1;
}

static bool is_name(const char *s) {
    return isalpha((unsigned char)*s) || *s == '_';
}

static int index_read(lua_State *L) {
    target t;
    bool string = lua_type(L, 2) == LUA_TSTRING;
    if (string) {
        lua_pushvalue(L, 2);
        if (lua_rawget(L, LM_UP_OWN) != LUA_TNIL) return 1;
        lua_pop(L, 1);
        const char *name = lua_tostring(L, 2);
        if (is_name(name)) return push_field(L, name);
    }
    lm_ctx *c = lm_enter(L);
    if (!string && (read_fast(L, c, 1) || select_fast(L, c))) return 1;
    open_target(&t, L, c, "index");
    if (t.x->layout.ndim > 0 && lua_isinteger(L, 2) &&
        lua_tointeger(L, 2) == t.x->layout.shape[0] + 1)
        lm_bad(&t.k, 2, "position %I is past the last one; to walk dim 1 use pairs, not ipairs",
               (LUAI_UACINT)lua_tointeger(L, 2));
    read_key(&t, 2);
    return read(&t);
}

/* x(i, j, ...) */
static int index_call(lua_State *L) {
    target t;
    lm_ctx *c = lm_enter(L);
    if (read_fast(L, c, lua_gettop(L) - 1)) return 1;
    open_target(&t, L, c, "call");
    if (t.k.top == 3 && lua_isnil(L, 2) && lua_isnil(L, 3)) /* for row in x do */
        lm_bad(&t.k, 2, "index expected, got nil; to walk dim 1: for i, row in pairs(x) do");
    for (int arg = 2; arg <= t.k.top; arg++)
        read_entry(&t, arg, arg);
    return read(&t);
}

/* ---- writing ---- */

static luma_status put(target *t, const luma_tensor *value) {
    luma_state *S = t->k.c->S;
    if (t->npicks == 0)
        return value->storage ? luma_copy(S, &t->view, value)
                              : luma_fill(S, &t->view, value->number);
    const luma_tensor *mask = value->storage ? NULL : whole_mask(t);
    return mask ? luma_masked_fill(S, &t->view, &t->view, mask, value)
                : luma_index_put(S, &t->view, t->npicks, t->picks, value);
}

/* The value at argument 3: a number that fits, a tensor, or a table in the dtype of x. */
static const luma_tensor *read_value(target *t, luma_tensor *weak) {
    lua_State *L = t->k.L;
    if (lua_istable(L, 3)) return lm_table_read(&t->k, 3, 3, t->x->dtype);
    if (!lm_is_scalar(L, 3) && !lm_box_test(L, 3))
        lm_bad_type(&t->k, 3, 3, "number, table or tensor");
    const luma_tensor *value = lm_arg_operand(&t->k, 3, 3, weak);
    if (!value->storage) lm_check_fits(&t->k, 3, value->number, t->x->dtype);
    return value;
}

static bool write_fast(lua_State *L, lm_ctx *c) {
    int exact;
    const luma_tensor *x = lm_box_test(L, 1);
    lua_Integer i = lua_tointegerx(L, 2, &exact);
    if (!exact || lua_type(L, 2) != LUA_TNUMBER || lua_type(L, 3) != LUA_TNUMBER) return false;
    if (!x || !x->storage || x->layout.ndim != 1 || x->storage->device != lm_cpu(c->S))
        return false;
    if (i < 1 || i > x->layout.shape[0] || !lm_dtype_is_float(x->dtype)) return false;
    if (x->layout.stride[0] == 0 && x->layout.shape[0] > 1) return false;
    int64_t at = x->layout.offset + (i - 1) * x->layout.stride[0];
    lm_cpu(c->S)->ops->encode(x->dtype, lm_to_scalar(L, 3),
                              x->storage->data + at * (int64_t)lm_dtype_size(x->dtype));
    x->storage->version++;
    return true;
}

static int index_write(lua_State *L) {
    target t;
    luma_tensor weak = LUMA_NEW;
    lm_ctx *c = lm_enter(L);
    if (write_fast(L, c)) return 0;
    if (lua_type(L, 2) == LUA_TSTRING && is_name(lua_tostring(L, 2)))
        return luaL_error(L, "a tensor has no field '%s' to set", lm_brief(L, lua_tostring(L, 2)));
    open_target(&t, L, c, "newindex");
    read_key(&t, 2);
    const luma_tensor *value = read_value(&t, &weak);
    resolve(&t);
    if (value->storage || !whole_mask(&t)) spread_masks(&t);
    luma_status status;
    int tried = 1;
    c->S->lifted = true;
    do {
        check_live(&t);
        lm_check_live(&t.k, 3, value);
        status = put(&t, value);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    check(&t, status == LUMA_ERR_SHAPE && t.npicks == 0 ? 3 : 2, status);
    return 0;
}

/* ---- walking dim 1 ---- */

static int next_row(lua_State *L) {
    const luma_tensor *x = luma_check(L, 1);
    lua_Integer i = luaL_checkinteger(L, 2);
    lm_ctx *c = lm_enter(L);
    if (x->layout.ndim == 0 || i < 0 || i >= x->layout.shape[0]) return 0;
    target t;
    lua_settop(L, 1);
    lua_pushinteger(L, i + 1);
    if (!read_fast(L, c, 1) && !select_fast(L, c)) {
        open_target(&t, L, c, "next");
        add_item(&t, 2, ITEM_AT)->first = i;
        read(&t);
    }
    return 2;
}

static int pairs(lua_State *L) {
    const luma_tensor *x = luma_check(L, 1);
    if (x->layout.ndim == 0) return luaL_error(L, "a 0-d tensor has no dim to walk");
    lua_pushvalue(L, LM_UP_OWN);
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0);
    return 3;
}

void lm_index_open(lua_State *L, int meta, int methods) {
    lua_pushvalue(L, methods);
    lm_push_function(L, index_read, 1);
    lua_setfield(L, meta, "__index");
    lm_push_function(L, index_write, 0);
    lua_setfield(L, meta, "__newindex");
    lm_push_function(L, index_call, 0);
    lua_setfield(L, meta, "__call");
    lm_push_function(L, next_row, 0);
    lm_push_function(L, pairs, 1);
    lua_setfield(L, meta, "__pairs");
    int n = (int)(sizeof fields / sizeof *fields);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(L, fields[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, meta, "fields");
}
