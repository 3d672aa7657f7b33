/* contract.h -- sums of products over labelled dims: what einsum, tensordot and such come to. Layer:
** core. */
#ifndef lm_contract_h
#define lm_contract_h

#include "tensor.h"

/* Labels are 0 .. LM_LABELS - 1, one for each dim. */
#define LM_LABELS 60
typedef struct {
    const luma_tensor *x;
    int8_t label[LUMA_MAX_DIMS];
} lm_labelled;

/* *out = the product of the n xs over equal labels, summed over those that are not among the nout
** labels of the result, in their order. n >= 1; tensors of numbers, on devices that go together; dims of
** one label have one size or 1, in one tensor one size; the labels of the result stand in the xs, once
** each. What is summed and of one tensor only is summed first; then products go from left to right, each
** as one matrix product where something is summed. The dtype is that to which all promote, as of
** matmul. Errors name no argument. */
luma_status lm_contract(luma_state *S, luma_tensor *out, int n, const lm_labelled *xs, int nout,
                        const int8_t *labels);

/* The same of two tensors where it is one matrix product of their dims as they stand, but that matrices
** may be transposed. *done = false where it is not, and nothing has happened. Labels may be any. */
luma_status lm_contract_matrices(luma_state *S, luma_tensor *out, const lm_labelled *xs, int nout,
                                 const int8_t *labels, bool *done);

#endif
