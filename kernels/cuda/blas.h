/* blas.h -- a matrix product between matmul.c, which plans it, and blas.c, which has cuBLAS do it.
** Layer: kernels/cuda. */
#ifndef lm_cuda_blas_h
#define lm_cuda_blas_h

#include "cuda.h"

/* c (m, n) = a (m, k) b (k, n) at every position of the batch dims, none of them empty. Strides
** count elements. */
typedef struct {
    luma_dtype dtype, c_dtype; /* of a and b; of c */
    const char *a, *b;
    char *c;
    int64_t m, n, k;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
    int nbatch;
    int64_t batch[LUMA_MAX_DIMS];
    int64_t a_batch[LUMA_MAX_DIMS], b_batch[LUMA_MAX_DIMS], c_batch[LUMA_MAX_DIMS];
} lm_product;

/* The product of the transposes: c' (n, m) = b' (n, k) a' (k, m). */
void lm_product_turn(lm_product *p);

/* Whether cuBLAS reads a, b and writes c as they lie: the strides of one dim are 1, those of the
** other skip at least its size, and no batch walks backward. */
bool lm_blas_reads_a(const lm_product *p);
bool lm_blas_reads_b(const lm_product *p);
bool lm_blas_writes_c(const lm_product *p);
/* Whether the sums of k come to c in pieces, which it must hold unrounded. */
bool lm_blas_adds_to_c(const lm_cuda *c, const lm_product *p);

/* Opens cuBLAS for the device at the first call: a handle on its stream. *ready is false where there
** is no cuBLAS, or none for the dtype. */
luma_status lm_blas_open(luma_state *S, lm_cuda *c, luma_dtype dtype, bool *ready);
/* Gives back the workspace; short_of: the next products do with the least that cuBLAS needs. */
void lm_blas_trim(lm_cuda *c, bool short_of);
/* usable: the context is current and takes calls. */
void lm_blas_close(lm_cuda *c, bool usable);
/* For tests: what a size or leading dimension of one call may be. */
void lm_blas_limit(lm_cuda *c, int64_t most);
/* Queues the product. Sizes, leading dimensions and batches may pass 2^31. *done is false when this
** cuBLAS says that it has no such product on this device. */
luma_status lm_blas_multiply(luma_state *S, lm_cuda *c, const lm_product *p, bool *done);

#endif
