/* row.h -- the names of operations: here those with kernels of their own, elementwise rows and
** reductions, which is all that kernels need to know; op.h has the rest. Layer: core. */
#ifndef lm_row_h
#define lm_row_h

typedef int lm_op; /* LM_OP_add, ...; LM_NOPS: none */

enum {
#define LM_ENUM_ROW(name, ...) LM_OP_##name,
#define UNARY LM_ENUM_ROW
#define UNARY_P LM_ENUM_ROW
#define TEST LM_ENUM_ROW
#define BINARY LM_ENUM_ROW
#define COMPARE LM_ENUM_ROW
#define TERNARY LM_ENUM_ROW
#define REDUCE LM_ENUM_ROW
#define LM_ROWS_ALONE
#include "ops.def"
    LM_NROWS
};

#endif
