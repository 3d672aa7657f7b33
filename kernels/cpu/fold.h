/* fold.h -- running values of a reduction: their start, their union, their walk over the reduced
** dims of one strip of results. Layer: kernels/cpu. */
#ifndef lm_fold_h
#define lm_fold_h

#include "cpu.h"

/* Results are made in strips of at most this many. */
#define LM_STRIP LM_FOLD_WIDTH

/* A dim of x after merging: bytes per step in x, and for kept dims in the results and positions,
** for reduced dims how far a step moves the position. */
typedef struct {
    int64_t size, x, out, positions;
} lm_reduce_dim;

typedef struct {
    lm_fold_op op;
    lm_term term;
} lm_folding;

/* How x is walked. kept and reduced: outermost first. */
typedef struct {
    luma_state *S;
    luma_dtype stored, dtype; /* of x; of the kernels */
    int nkept, nreduced;
    lm_reduce_dim kept[LUMA_MAX_DIMS], reduced[LUMA_MAX_DIMS];
    bool by_columns; /* strips lie along the columns of blocks, else blocks are folded row by row */
    bool direct;     /* kernels read x itself, else blocks are gathered, as terms must be */
    double power;
    bool stopped; /* by the interrupt flag; atomic */
} lm_walk;

typedef struct {
    _Alignas(
        64) double value[3][LM_STRIP]; /* of any type up to 8 bytes; [0] is the result, [1] and */
    int64_t blocks;                    /* [2] hold float sums of 64 and 4096 blocks meanwhile */
    int depth;                         /* the highest of value[] in use */
    int64_t position[LM_STRIP];
    double param[LM_STRIP];
} lm_strip;

/* Bytes of one running value. */
size_t lm_fold_size(lm_fold_op op, luma_dtype dtype);
/* n values that change nothing when something is folded in. */
void lm_fold_start(lm_fold_op op, luma_dtype dtype, int64_t n, void *value, int64_t *position);
/* value[i] and from[i] become one; positions of from need not be the later ones. */
void lm_fold_merge(lm_fold_op op, luma_dtype dtype, int64_t n, void *value, int64_t *position,
                   const void *from, const int64_t *from_position);

/* Folds the w results of a strip: x is the first of them at the origin of all reduced dims; of
** reduced dim `along` only [lo, hi) is walked. Starts the strip's values anew. */
void lm_fold_walk(lm_walk *w, lm_folding f, const char *x, int64_t width, lm_strip *s, int along,
                  int64_t lo, int64_t hi);

#endif
