/* map.h -- the rules of elementwise rows that programs of several rows follow too: dtypes, numbers,
** exact comparisons. Layer: core. */
#ifndef lm_map_h
#define lm_map_h

#include "tensor.h"

static inline bool lm_map_is_shift(lm_op op) {
    return op == LM_OP_lshift || op == LM_OP_rshift;
}

/* The dtype that a row computes for these inputs, of which only storage (NULL: a number), dtype and
** number count; an error where it takes no such. params: two numbers of UNARY_P rows. */
luma_status lm_map_dtype(luma_state *S, lm_op op, int nin, const luma_tensor *const *ins,
                         const luma_scalar *params, luma_dtype *dtype);
/* The dtype of its result. */
luma_dtype lm_map_result(lm_op op, luma_dtype dtype);

/* A number as an element of dtype `kernel`, rounded to dtype first. Into integers it must fit, but
** for counts of shifts, which are `exempt`. */
luma_status lm_map_encode(luma_state *S, luma_scalar v, luma_dtype dtype, luma_dtype kernel,
                          int argument, bool exempt, void *element);
/* The numbers of a UNARY_P row over dtype. */
luma_status lm_map_params(luma_state *S, lm_op op, luma_dtype dtype, const luma_scalar *params,
                          lm_params *out);

/* Operand k of m walks x over m's shape; kernels see it in dtype `kernel`. */
void lm_map_operand(lm_map *m, int k, const luma_tensor *x, luma_dtype kernel);

/* x to the power of a weak number as the row that is the same and faster: *nin of its inputs are
** left. A cube is the product of the square, which *cube asks for. Integers have whole powers. */
lm_op lm_map_power(lm_op op, int *nin, const luma_tensor *const *ins, bool *cube);

/* A comparison of an integer tensor with a number. */
typedef struct {
    lm_op op;  /* to run against c; or, when constant, */
    int64_t c; /* the answer for every element */
    bool constant;
    int tensor; /* which input it is */
} lm_exact;
/* Whether op over these two inputs is one. */
bool lm_map_exact(lm_op op, const luma_tensor *const *ins, lm_exact *e);

#endif
