/* file.c -- luma.save and luma.load. Layer: bindings. */
#include <string.h>

#include "binding.h"

/* A file that was read belongs to Lua until its tensors have moved into boxes. */
typedef struct {
    lm_ctx *c;
    luma_file file;
} holder;

static int close_holder(lua_State *L) {
    holder *h = lua_touserdata(L, 1);
    if (h->c->S) luma_close_file(h->c->S, &h->file);
    return 0;
}

static void push_tensor(lua_State *L, lm_ctx *c, luma_tensor *x) {
    luma_tensor *box = lm_box_new(L, c);
    *box = *x;
    *x = LUMA_NEW;
}

/* luma.load(path): a tensor, or a table of tensors and the metadata when there is some. */
static int load(lua_State *L) {
    lm_ctx *c = lm_enter(L);
    lm_call k;
    int tried = 0;
    luma_status status;
    lm_call_open(&k, L, c, "load");
    const char *path = lm_arg_text(&k, 1, 1, "string");
    holder *h = lua_newuserdatauv(L, sizeof *h, 0);
    memset(h, 0, sizeof *h);
    h->c = c;
    lua_pushvalue(L, LM_UP_OWN);
    lua_setmetatable(L, -2);
    do
        status = luma_load(c->S, &h->file, path);
    while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    int results = 1;
    if (h->file.n == 1 && !h->file.names[0]) {
        push_tensor(L, c, &h->file.tensors[0]);
    } else {
        lua_createtable(L, 0, h->file.n);
        for (int i = 0; i < h->file.n; i++) {
            push_tensor(L, c, &h->file.tensors[i]);
            lua_setfield(L, -2, h->file.names[i]);
        }
        if (h->file.nmetadata > 0) {
            lua_createtable(L, 0, h->file.nmetadata);
            for (int i = 0; i < h->file.nmetadata; i++) {
                lua_pushstring(L, h->file.metadata[i].value);
                lua_setfield(L, -2, h->file.metadata[i].key);
            }
            results = 2;
        }
    }
    luma_close_file(c->S, &h->file);
    return results;
}

/* ---- saving ---- */

/* Pushes the keys of the table at idx, which must be strings, as a sorted list; returns their
** number. */
static int push_sorted_keys(lm_call *k, int arg, int idx, const char *what) {
    lua_State *L = k->L;
    int n = 0;
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        size_t length;
        if (lua_type(L, -2) != LUA_TSTRING)
            lm_bad(k, arg, "the key of a %s is a %s: strings expected", what, luaL_typename(L, -2));
        const char *key = lua_tolstring(L, -2, &length);
        if (strlen(key) != length) lm_bad(k, arg, "a key contains a zero byte");
        lua_pushvalue(L, -2);
        lua_rawseti(L, -4, ++n);
    }
    lua_getglobal(L, "table");
    if (lua_getfield(L, -1, "sort") != LUA_TFUNCTION) {
        lua_pop(L, 2); /* a state without the table library: the order of pairs will do */
        return n;
    }
    lua_remove(L, -2);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 0);
    return n;
}

/* What luma_save takes, in one piece of Lua memory. */
typedef struct {
    int n, nmetadata;
    int keys; /* stack index of the list of names; 0: one tensor */
    const char **names;
    luma_tensor *tensors;
    luma_pair *metadata;
    bool compressed;
} request;

static void read_names(lm_call *k, request *r) {
    lua_State *L = k->L;
    r->n = 1;
    if (lm_box_test(L, 2)) {
        r->tensors = lua_newuserdatauv(L, sizeof *r->tensors, 0);
        return;
    }
    if (!lua_istable(L, 2)) lm_bad_type(k, 2, 2, "tensor or table of tensors");
    r->n = push_sorted_keys(k, 2, 2, "tensor");
    r->keys = lua_gettop(L);
    size_t n = (size_t)r->n + 1;
    r->tensors = lua_newuserdatauv(L, n * (sizeof *r->tensors + sizeof *r->names), 0);
    r->names = (const char **)(void *)(r->tensors + n);
}

/* The tensors themselves are borrowed from the argument when nothing can collect any more: a
** finalizer may release one. */
static void borrow_tensors(lm_call *k, request *r) {
    lua_State *L = k->L;
    for (int i = 0; i < r->n; i++) {
        if (r->keys) {
            lua_rawgeti(L, r->keys, i + 1);
            r->names[i] = lua_tostring(L, -1); /* kept alive by the list */
            lua_rawget(L, 2);
        } else {
            lua_pushvalue(L, 2);
        }
        const luma_tensor *x = lm_box_test(L, -1);
        if (!x) {
            const char *type = luaL_typename(L, -1);
            lm_bad(k, 2, "'%s' is a %s: a tensor expected", lm_brief(L, r->names[i]), type);
        }
        lm_check_live(k, 2, x);
        r->tensors[i] = *x;
        lua_pop(L, 1);
    }
}

static void read_metadata(lm_call *k, request *r, int idx) {
    lua_State *L = k->L;
    if (!lua_istable(L, idx)) lm_bad_type(k, 3, idx, "table");
    r->nmetadata = push_sorted_keys(k, 3, idx, "metadata");
    int keys = lua_gettop(L);
    lua_createtable(L, 2 * r->nmetadata, 0);
    int held = lua_gettop(L);
    r->metadata = lua_newuserdatauv(L, ((size_t)r->nmetadata + 1) * sizeof *r->metadata, 0);
    for (int i = 0; i < r->nmetadata; i++) {
        lua_rawgeti(L, keys, i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, idx);
        if (lua_type(L, -1) != LUA_TSTRING)
            lm_bad(k, 3, "metadata '%s' is a %s: a string expected",
                   lm_brief(L, lua_tostring(L, held + 2)), luaL_typename(L, held + 3));
        lm_arg_text(k, 3, lua_gettop(L), "text");
        /* a finalizer may take both out of the caller's table: the one at held keeps them alive */
        r->metadata[i] = (luma_pair){lua_tostring(L, -2), lua_tostring(L, -1)};
        lua_rawseti(L, held, 2 * i + 1);
        lua_rawseti(L, held, 2 * i + 2);
    }
}

/* luma.save(path, x | {name = x}, {compressed =, metadata =}) */
static int save(lua_State *L) {
    static const char *const options[] = {"compressed", "metadata", NULL};
    lm_ctx *c = lm_enter(L);
    lm_call k;
    request r = {0};
    int tried = 0;
    luma_status status;
    lm_call_open(&k, L, c, "save");
    const char *path = lm_arg_text(&k, 1, 1, "string");
    lua_settop(L, 3);
    read_names(&k, &r);
    if (!lua_isnil(L, 3)) {
        if (!lua_istable(L, 3)) lm_bad_type(&k, 3, 3, "table of options");
        lm_check_options(&k, 3, 3, options);
        if (lm_get_option(&k, 3, "compressed")) r.compressed = lm_arg_boolean(&k, 3, -1);
        if (lm_get_option(&k, 3, "metadata")) read_metadata(&k, &r, lua_gettop(L));
        k.option = NULL;
    }
    do {
        borrow_tensors(&k, &r);
        status =
            luma_save(c->S, path, r.n, r.names, r.tensors, r.compressed, r.nmetadata, r.metadata);
    } while (status == LUMA_ERR_MEMORY && lm_gc_retry(L, c, &tried));
    if (status != LUMA_OK) lm_raise(&k, status);
    return 0;
}

void lm_files_open(lua_State *L, int module) {
    lm_push_function(L, save, 0);
    lua_setfield(L, module, "save");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_holder);
    lua_setfield(L, -2, "__gc");
    lm_push_function(L, load, 1);
    lua_setfield(L, module, "load");
}
