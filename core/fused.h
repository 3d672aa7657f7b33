/* fused.h -- programs of elementwise rows that run in one pass over their inputs: what they are made
** of, and what a device's `fused` slot is given. Layer: core. */
#ifndef lm_fused_h
#define lm_fused_h

#include "tensor.h"

#define LM_FUSED_VALUES 512               /* of a program: inputs, numbers, rows */
#define LM_FUSED_INPUTS (LM_ITER_MAX - 1) /* tensors that a slot takes; with more, row by row */

/* Value number ninputs + k of a program. */
typedef struct {
    lm_op op;  /* LM_NOPS: a number */
    bool real; /* pow as Lua's ^, whose result is a float */
    int n;
    int in[3]; /* values; of UNARY_P rows the last two are their numbers, -1: absent */
    luma_scalar number;
} lm_fused_node;

struct luma_program {
    int ninputs, nvalues;
    lm_fused_node *nodes;
    int room;       /* in nodes */
    bool settled;   /* nodes is another's memory, and so is work where it is small */
    int64_t passes; /* runs in one pass; others went row by row */
    lm_op failed;   /* the row that a failed run stopped at; LM_NOPS: none */
    void *work;     /* of a run; NULL: made for each */
};

/* Adds a row; the arguments of luma_program_row. */
luma_status lm_fused_add(luma_state *S, luma_program *p, lm_op op, bool real, int n, const int *in,
                         int *value);
/* Moves a program that is complete into lm_fused_size(p) bytes of another's, which outlive it. */
size_t lm_fused_size(const luma_program *p);
void lm_fused_settle(luma_program *p, void *memory);
/* Runs what one value needs. inputs may be numbers, as may be values that have one in `numbers`
** (NULL: none). Same dtypes and bits as the rows one after the other. */
luma_status lm_fused_run(luma_state *S, luma_tensor *out, luma_program *p, int value,
                         const luma_tensor *const *inputs, const luma_scalar *numbers);

/* ---- what devices see ---- */

/* One step over elements in registers. Registers count the inputs first, then the steps. */
typedef struct {
    lm_op op;           /* LM_NOPS: without inputs a number, with one a conversion */
    luma_dtype compute; /* of the row; of a conversion what it reads */
    luma_dtype dtype;   /* of the register that the step makes */
    int n;              /* registers that it reads, */
    int in[3];          /* these */
    lm_guard guard;     /* what must not be in the second one */
    lm_params params;   /* of UNARY_P rows */
    char element[8];    /* the number */
} lm_fused_step;

/* The last step makes the result. */
typedef struct lm_fused {
    lm_map map; /* operand 0 the result, then the inputs; no casts: kernel == dtype */
    int nsteps;
    const lm_fused_step *steps;
    bool guarded; /* some step has a guard */
    bool refused; /* out: an integer that a guard looks for was there; the result is of no use */
} lm_fused;

#endif
