/* op.h -- operations as data: one entry of lm_ops per row of ops.def, and the call by name that
** the binding uses. Layer: core. */
#ifndef lm_op_h
#define lm_op_h

#include "luma.h"

#include "dtype.h"
#include "row.h"

enum {
    LM_OP_BEFORE_MORE = LM_NROWS - 1,
#define OP LM_ENUM_ROW
#define VIEW LM_ENUM_ROW
#define MAKE LM_ENUM_ROW
#include "ops.def"
    LM_NOPS
};

typedef enum {
    LM_ROW_UNARY,
    LM_ROW_UNARY_P,
    LM_ROW_TEST,
    LM_ROW_BINARY,
    LM_ROW_COMPARE,
    LM_ROW_TERNARY,
    LM_ROW_REDUCE,
    LM_ROW_OP,
    LM_ROW_VIEW,
    LM_ROW_MAKE
} lm_row;

typedef enum {
    LM_TAKES_NONE,
    LM_TAKES_FLOATS,
    LM_TAKES_NUMBERS,
    LM_TAKES_INTS,
    LM_TAKES_BITS,
    LM_TAKES_ALL
} lm_takes;

typedef enum {
    LM_GIVES_TENSOR, /* one tensor */
    LM_GIVES_TWIN,   /* one tensor of the first one's shape and dtype: has an in-place form */
    LM_GIVES_PAIR,   /* values and positions (the second may stay empty) */
    LM_GIVES_TRIPLE, /* up to three; those that were not asked for stay empty */
    LM_GIVES_VALUE,  /* a boolean */
    LM_GIVES_LIST    /* a list of tensors */
} lm_gives;

/* Result dtype of a REDUCE row. */
typedef enum {
    LM_RESULT_SAME,
    LM_RESULT_SUM,
    LM_RESULT_FLOAT,
    LM_RESULT_BOOL,
    LM_RESULT_INDEX
} lm_result_dtype;

typedef struct {
    const char *name;
    lm_row row;
    lm_takes takes;
    lm_gives gives;
    lm_result_dtype result; /* REDUCE rows */
    const char *signature;  /* the grammar below */
    const char *formula;    /* "" for OP, VIEW and MAKE rows */
    const char *doc;
    double lo, hi, ulp; /* domain of the specs; bound on the error of float results */
} lm_op_info;

extern const lm_op_info lm_ops[LM_NOPS];
/* How many tensors an elementwise row takes; 0: it is no such row. */
int lm_op_inputs(lm_op op);

/* What integers in operand 2 (the second input) a BINARY row refuses. Devices look before they
** write; floats take anything. */
typedef enum { LM_GUARD_NONE, LM_GUARD_ZERO, LM_GUARD_NEGATIVE } lm_guard;
lm_guard lm_op_guard(lm_op op);
/* The error of what a guard refuses. place: of the element, ndim positions counted from 0. */
luma_status lm_guard_fail(luma_state *S, lm_op op, lm_guard guard, int ndim, const int64_t *place);

/* Signatures: "x, dim:dim?, {keepdim:bool}" -- parameters in order, options in braces.
**   no type    a tensor
**   operand    a tensor or a weak number
**   index      an integer tensor (Lua also takes a list)
**   mask       a bool tensor
**   tensors    a list of tensors
**   dim        a dim; newdim: a dim that does not exist yet (one more is in range)
**   dims       a dim or a list of dims; empty: all
**   position   a position along the dim before it (1-based in Lua)
**   int number bool   one value; number keeps its kind (luma_scalar)
**   shape      a list, or in Lua all remaining arguments; list: a list of integers
**   sizes      an integer or a list of integers
**   padding    sizes, or "same" or "valid"
**   a|b|c      one of these words; the first when it is absent
**   text       any text
**   ?          may be absent */
typedef enum {
    LM_TYPE_TENSOR,
    LM_TYPE_OPERAND,
    LM_TYPE_INDEX,
    LM_TYPE_MASK,
    LM_TYPE_TENSORS,
    LM_TYPE_DIM,
    LM_TYPE_NEWDIM,
    LM_TYPE_DIMS,
    LM_TYPE_POSITION,
    LM_TYPE_INT,
    LM_TYPE_NUMBER,
    LM_TYPE_BOOL,
    LM_TYPE_SHAPE,
    LM_TYPE_LIST,
    LM_TYPE_SIZES,
    LM_TYPE_PADDING,
    LM_TYPE_CHOICE,
    LM_TYPE_TEXT,
    LM_TYPE_DTYPE, /* of MAKE rows, for luma_call only */
    LM_TYPE_DEVICE /* likewise; the last */
} lm_type;
enum { LM_NTYPES = LM_TYPE_DEVICE + 1 };
/* As signatures have it; NULL where they have no word: a tensor, and a choice. */
extern const char *const lm_type_names[LM_NTYPES];

#define LM_MAX_PARAMS 12
#define LM_MAX_OUTS 3
typedef struct {
    char name[24];
    const char *choices; /* CHOICE: where its words begin in the signature */
    lm_type type;
    bool optional; /* '?' or an option */
    bool option;   /* stands in the options table */
} lm_param;

/* Parses a signature into at most LM_MAX_PARAMS parameters; returns their number. */
int lm_signature_parse(const char *signature, lm_param *params);
/* The place of a word among those of a CHOICE, from 0; -1: it is none of them. */
int lm_param_choice(const lm_param *p, const char *word);
/* Writes them as "a", "b" or "c". */
const char *lm_param_choices(const lm_param *p, char *buffer, size_t size);

/* One argument of lm_op_call, read by the parameter's type. All memory is the caller's. */
typedef struct {
    bool given;
    int n;                      /* of list or tensors */
    const luma_tensor *tensor;  /* TENSOR, OPERAND (also weak numbers), INDEX, MASK */
    const luma_tensor *tensors; /* TENSORS */
    int64_t i;                  /* DIM, NEWDIM, POSITION, CHOICE (0-based), INT, BOOL */
    luma_scalar number;         /* NUMBER */
    const int64_t *list;        /* DIMS, SHAPE, LIST, SIZES, PADDING */
    const char *text;           /* TEXT, DEVICE, PADDING that is a word; the dtype is i */
} lm_arg;

/* The signature by which C calls a row: its own, but for MAKE rows; "" where C does not. */
const char *lm_op_parameters(lm_op op);

/* Runs a row of any kind but lists. MAKE rows: with the arguments of lm_op_parameters. outs: LM_MAX_OUTS
** places, each LUMA_NEW or a tensor to fill; *nouts says how many were made, or with those of a TRIPLE
** row that stay empty before the last. VALUE rows set *value and make none. */
luma_status lm_op_call(luma_state *S, lm_op op, luma_tensor outs[LM_MAX_OUTS], int *nouts,
                       bool *value, const lm_arg *args);
/* Runs a row that gives LM_GIVES_LIST; release with luma_close_list. */
luma_status lm_op_call_list(luma_state *S, lm_op op, luma_list *list, const lm_arg *args);
/* The in-place form: writes into self, which is args[0] too; its dtype and shape stay. */
luma_status lm_op_call_inplace(luma_state *S, lm_op op, luma_tensor *self, const lm_arg *args);
/* Whether a row has an in-place form: elementwise rows that keep the dtype, and OP rows whose
** result has the shape and dtype of their first tensor. */
bool lm_op_has_inplace(lm_op op);

#endif
