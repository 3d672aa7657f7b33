/* binding.h -- what the files of the Lua module share. Layer: bindings. */
#ifndef lm_binding_h
#define lm_binding_h

#include <lauxlib.h>
#include <lua.h>

#include "luma_lua.h"
#include "tensor.h"

typedef struct lm_events lm_events;
typedef struct lm_watch lm_watch;
typedef struct lm_limits lm_limits;

/* One per Lua state: a userdata in the registry. S is NULL once the state closes. */
typedef struct {
    luma_state *S;
    lua_State *main;
    unsigned flags;    /* LUMA_LUA_NO_... */
    lm_limits *limits; /* limits.c; NULL: none */
    luma_lua_text_fn *text;
    void *text_ctx;
    bool sandbox;      /* coroutines are resumed by sandbox.c */
    char warning[512]; /* Lua gives them in pieces */
    size_t nwarning;
    volatile int *flag; /* the host's interrupt flag; NULL: hooks of the main thread are watched */
    int hookmask;       /* of the main thread when the operation began */
    /* gc.c: bytes */
    int64_t step_at; /* S->fresh at which a young collection is due */
    int64_t stride;  /* bytes from one to the next */
    int64_t stepped; /* when the last one ended, in nanoseconds */
    int64_t boxes;   /* tensors that live */
    bool traced;     /* there have been values of fused functions (fused.c) */
    int64_t limit;   /* of live memory, boxes too, past which a full collection is due */
    int nevents;     /* of memory, that the function of the script has yet to hear of (memory.c) */
    lm_events *events;
    lm_watch *watch; /* watch.c; NULL: nobody has watched yet */
    lua_Alloc alloc; /* the host's, while a failure of Lua's memory is due; else NULL */
    void *alloc_ud;
    int64_t alloc_left;
    bool stress; /* a full collection before every operation (LUMA_GCSTRESS) */
    uint16_t first_param[LM_NOPS + 1];
    lm_param params[]; /* of row after row; MAKE rows have none */
} lm_ctx;

/* Every C function of the module is a closure whose first upvalues are the ctx and the metatable
** of tensors; what else it has comes after. */
#define LM_UP_CTX lua_upvalueindex(1)
#define LM_UP_META lua_upvalueindex(2)
#define LM_UP_OWN lua_upvalueindex(3)
#define LM_UP_OWN2 lua_upvalueindex(4)

#if defined(__GNUC__)
#define LM_NORETURN __attribute__((noreturn))
#else
#define LM_NORETURN
#endif

/* ---- box.c: the userdata ---- */

/* magic is the box's own address, scrambled: stale memory elsewhere never passes for a tensor. */
typedef struct {
    uintptr_t magic;
    lm_ctx *ctx;   /* which counts it */
    luma_tensor t; /* storage NULL: released, or not yet computed */
} lm_box;

/* Pushes a new box that holds LUMA_NEW; compute into it afterwards, so that no error leaks. */
luma_tensor *lm_box_new(lua_State *L, lm_ctx *c);
/* The tensor at idx, NULL when it is none (released ones are given). */
luma_tensor *lm_box_test(lua_State *L, int idx);
int lm_box_free(lua_State *L); /* __close and x:free() */
/* Makes ctx and metatable unless they are there; pushes the metatable. */
lm_ctx *lm_box_open(lua_State *L, unsigned flags);
lm_ctx *lm_ctx_find(lua_State *L); /* NULL when there is none */
const lm_param *lm_ctx_params(const lm_ctx *c, lm_op op, int *n);

/* ---- gc.c: when to collect ---- */

#define LM_BOX_COST 300 /* bytes charged for each tensor beside its elements */

void lm_gc_open(lua_State *L, lm_ctx *c);
void lm_gc_poll(lua_State *L, lm_ctx *c);
void lm_gc_limit(lua_State *L, lm_ctx *c); /* the host's limit of memory has changed */
/* After LUMA_ERR_MEMORY: collects; true when the operation should be tried again. Arguments must be
** checked anew, since finalizers may have released them. *tried is 0 at first. */
bool lm_gc_retry(lua_State *L, lm_ctx *c, int *tried);

/* A call of the core that is not tried again: memory is not limited softly in it. Nothing of Lua may
** run between this and the call, since a finalizer may begin an operation of its own. */
#define LM_UNLIMITED(k, call) ((k)->c->S->lifted = true, (k)->c->S->again = false, (call))

/* ---- limits.c ---- */

/* Whether a limit of the call that runs is passed; from any thread. */
bool lm_limits_passed(const lm_ctx *c);
/* Raises the error of a passed limit; returns when none is. Any C function that may last polls so. */
void lm_limits_check(lua_State *L, lm_ctx *c);
/* Charges instructions that the hook does not see. */
void lm_limits_charge(lm_ctx *c, int64_t instructions);
/* The same as the end of a C function: a coroutine yields for good rather than raise an error, which
** would be caught at every pcall in it, each time by a walk over all of its calls. */
int lm_limits_end(lua_State *L, lm_ctx *c);
/* L has been ended by a limit: nothing of it may run again. */
void lm_limits_bury(lua_State *L);
bool lm_limits_buried(lua_State *L);
/* L runs from now on; returns what ran before. */
lua_State *lm_limits_enter(lm_ctx *c, lua_State *L);
void lm_limits_close(lm_ctx *c);
/* The memory that Lua may still take and tensors may, INT64_MAX without a limit. */
int64_t lm_limits_room(const lm_ctx *c);

/* ---- sandbox.c ---- */

/* Pushes a function that raises "`name` is switched off by the host". */
void lm_push_denied(lua_State *L, const char *name);
void lm_text_put(const lm_ctx *c, luma_lua_text kind, const char *text, size_t n);
/* Pushes print as the host's function hears it; upvalue 1: ctx. */
void lm_push_print(lua_State *L, lm_ctx *c);
/* What stands for io where there is none: stderr:write. */
void lm_push_io(lua_State *L, lm_ctx *c);
/* string.find, match, gmatch, gsub into the table at the top; each with ctx. (pattern.c) */
void lm_pattern_open(lua_State *L, lm_ctx *c);
/* ---- memory.c ---- */

/* Tells the function of set_memory_callback what happened; raises its error, after which it is
** called no more. */
void lm_events_tell(lua_State *L, lm_ctx *c);
void lm_events_close(lm_ctx *c);

/* Begins every function that may allocate: before arguments are looked at. */
static inline lm_ctx *lm_enter(lua_State *L) {
    lm_ctx *c = lua_touserdata(L, LM_UP_CTX);
    if (!c->S) luaL_error(L, "luma is closed");
    if (c->nevents) lm_events_tell(L, c);
    c->S->lifted = c->S->again = false;
    if (c->limits) lm_limits_check(L, c);
    c->hookmask = lua_gethookmask(c->main);
    if (c->S->fresh >= c->step_at) lm_gc_poll(L, c);
    return c;
}

/* ---- args.c: reading arguments ---- */

#define LM_CALL_INTS 64
typedef struct {
    lua_State *L;
    lm_ctx *c;
    const char *name;   /* of the function, for messages */
    int top;            /* number of arguments */
    const char *option; /* the option being read; NULL: a positional argument */
    int used;
    int64_t ints[LM_CALL_INTS]; /* short lists */
} lm_call;

void lm_call_open(lm_call *k, lua_State *L, lm_ctx *c, const char *name);
/* "bad argument #arg to 'name' (...)", numbered as luaL_argerror does for methods. */
LM_NORETURN void lm_bad(lm_call *k, int arg, const char *format, ...);
/* Pushes user text as messages quote it: its first 60 bytes, on one line. */
const char *lm_brief(lua_State *L, const char *text);
LM_NORETURN void lm_bad_type(lm_call *k, int arg, int idx, const char *expected);
/* Raises the failure that S holds. */
LM_NORETURN void lm_raise(lm_call *k, luma_status status);
/* An error unless x holds elements: finalizers may have released it since it was read. */
void lm_check_live(lm_call *k, int arg, const luma_tensor *x);

luma_tensor *lm_arg_tensor(lm_call *k, int arg, int idx);
bool lm_is_scalar(lua_State *L, int idx); /* a number or a boolean */
luma_scalar lm_to_scalar(lua_State *L, int idx);
/* A tensor, or a number or boolean as a weak one in *weak. */
const luma_tensor *lm_arg_operand(lm_call *k, int arg, int idx, luma_tensor *weak);
int64_t lm_arg_integer(lm_call *k, int arg, int idx);
luma_scalar lm_arg_number(lm_call *k, int arg, int idx);
double lm_arg_double(lm_call *k, int arg, int idx);
bool lm_arg_boolean(lm_call *k, int arg, int idx);
/* Before a push between arguments: those that were not given read as nil, not as what is pushed. */
void lm_call_apart(lm_call *k);
/* Memory for n integers that lasts as long as the call. May push. */
int64_t *lm_call_ints(lm_call *k, int n);
/* Number of entries of the table at idx, whose keys must be 1 to n. */
int lm_arg_length(lm_call *k, int arg, int idx);
/* A list of integers, or one integer. May push. */
const int64_t *lm_arg_list(lm_call *k, int arg, int idx, int *n);
/* A list, or all arguments from arg on that are numbers; *next is the argument after. May push. */
const int64_t *lm_arg_shape(lm_call *k, int arg, int *n, int *next);
/* A dim or position of Lua (1-based, negative from the end) to one of core. */
int64_t lm_arg_dim(lm_call *k, int arg, int64_t dim);
int64_t lm_arg_position(lm_call *k, int arg, int64_t position);
luma_dtype lm_arg_dtype(lm_call *k, int arg, int idx);
/* The text at idx, which stays alive as long as that, for what ends at a zero byte: it has none.
** expected: what else is an error. */
const char *lm_arg_text(lm_call *k, int arg, int idx, const char *expected);
lm_device *lm_arg_device(lm_call *k, int arg); /* nil: the default one */

bool lm_is_options(lua_State *L, int idx); /* a table without [1] */
/* Every key of the table at idx must be one of names, which NULL ends. */
void lm_check_options(lm_call *k, int arg, int idx, const char *const *names);
/* Pushes the option and says true, or pushes nothing; sets k->option. idx 0: no options. */
bool lm_get_option(lm_call *k, int idx, const char *name);
/* key = value in the table on top; NULL is nil. */
void lm_set_integer(lua_State *L, const char *key, int64_t value);
void lm_set_string(lua_State *L, const char *key, const char *value);
/* How far a misspelt or shortened name is from another, 0: the same. LM_FAR: nobody means it. */
#define LM_FAR 1000
int lm_near_cost(const char *what, const char *name);
/* The name nearest to what among those tried; NULL: all are far. */
typedef struct {
    const char *what, *best;
    int cost;
} lm_near;
void lm_near_try(lm_near *near, const char *name);
/* What to write instead of a name of NumPy or PyTorch; NULL of others (foreign.c). */
const char *lm_foreign(const char *name);

/* ---- numbers and elements: convert.c ---- */

/* Pushes a list of n sizes, as x.shape is; it prints itself as "{2, 3}". */
void lm_push_sizes(lua_State *L, int n, const int64_t *sizes);

/* An error unless dtype can hold v: exactly in integers, rounded in floats. */
void lm_check_fits(lm_call *k, int arg, luma_scalar v, luma_dtype dtype);
bool lm_fits(luma_scalar v, luma_dtype dtype);
void lm_push_scalar(lua_State *L, luma_scalar v);
/* Pushes the element that lies in host memory. */
void lm_push_element(lua_State *L, const luma_state *S, luma_dtype dtype, const char *element);

/* Pushes the tensor at idx in another dtype. */
luma_tensor *lm_cast_push(lm_call *k, int arg, int idx, luma_dtype dtype);
/* Pushes a copy of it in a dtype, on a device. */
luma_tensor *lm_move_push(lm_call *k, int arg, int idx, luma_dtype dtype, const char *device);

/* ---- table.c: nested tables ---- */

/* Pushes the tensor of a nested table, number or boolean; LUMA_NDTYPES: bool or the default float,
** which must hold every integer exactly. */
luma_tensor *lm_table_read(lm_call *k, int arg, int idx, luma_dtype dtype);

/* ---- fused.c: functions that run in one pass ---- */

/* Whether one of the first n arguments is a value of a function that is traced. */
bool lm_traced_any(lua_State *L, const lm_ctx *c, int n);
/* Row op over the arguments becomes part of the trace; pushes its value. Any other operation, and
** one that writes in place, is an error. */
int lm_traced_row(lua_State *L, lm_ctx *c, lm_op op, const char *name, bool inplace);
/* The same for x ^ y. */
int lm_traced_power(lua_State *L, lm_ctx *c);

/* ---- the parts of the module, each fills in what it is responsible for ---- */

/* Elementwise row op on the first nin arguments; pushes the result. */
int lm_map_push(lua_State *L, lm_ctx *c, lm_op op, int nin);
/* Pushes f as a closure with ctx, metatable and the nown values on top, which it consumes. */
void lm_push_function(lua_State *L, lua_CFunction f, int nown);
/* {name, function} pairs into the table at idx (absolute). */
void lm_register(lua_State *L, int idx, const luaL_Reg *functions);
void lm_define_open(lua_State *L, int meta);
void lm_ops_open(lua_State *L, int module, int methods);
void lm_operators_open(lua_State *L, int meta);
void lm_index_open(lua_State *L, int meta, int methods);
void lm_construct_open(lua_State *L, int module, int methods);
void lm_convert_open(lua_State *L, int module, int methods);
void lm_random_open(lua_State *L, int module, int methods);
void lm_matrix_open(lua_State *L, int module);
void lm_system_open(lua_State *L, int module);
/* What Lua files read of the registry beside luma.ops: dtypes, quant, types of signatures. (system.c) */
void lm_registry_open(lua_State *L, int meta);
void lm_devices_open(lua_State *L, int module, int methods); /* cuda.c; after lm_convert_open */
void lm_alloc_restore(lm_ctx *c);                            /* system.c */
void lm_memory_open(lua_State *L, int module);
void lm_files_open(lua_State *L, int module);
void lm_cuda_module_open(lua_State *L, int cuda); /* cuda: the table luma.cuda */
void lm_image_open(lua_State *L, int module);
void lm_fused_open(lua_State *L, int meta, int methods); /* after lm_operators_open */
void lm_dlpack_open(lua_State *L, int module, int methods);
void lm_watch_open(lua_State *L, int meta);
void lm_foreign_open(lua_State *L, int module, int meta);

#endif
