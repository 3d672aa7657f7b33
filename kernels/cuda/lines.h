/* lines.h -- for the host's side of reductions and scans: how dims merge, and how lines are shared
** out over the threads of a launch. Layer: kernels/cuda. */
#ifndef lm_cuda_lines_h
#define lm_cuda_lines_h

#include "cuda.h"

/* Dims that operands walk together, outermost first; operand 0 decides. */
#define LM_DIMS_OPERANDS 3
typedef struct {
    int64_t size, stride[LM_DIMS_OPERANDS]; /* bytes */
} lm_dim_of;
typedef struct {
    int n;
    lm_dim_of dim[LUMA_MAX_DIMS];
} lm_dims;

/* Adds a dim inside the others. */
void lm_dims_add(lm_dims *dims, lm_dim_of dim);
/* Turns dims round that operand 0 walks backward, which moves the first elements at[k] (NULL: there
** is no such operand), and puts dims of long steps first. */
void lm_dims_sort(lm_dims *dims, char *at[LM_DIMS_OPERANDS]);
/* Neighbours that all operands walk as one become one. */
void lm_dims_merge(lm_dims *dims);
/* How many places of `kept` lie closer than those of `along`: 0 where those are the closer ones. */
int64_t lm_dims_beside(const lm_dims *kept, const lm_dims *along);
/* Strides of operand k go to strides[k], which has room for LM_WALK_DIMS. */
void lm_dims_walk(const lm_dims *dims, lm_walk *walk, int n, int64_t *const *strides);

/* How the lines of a launch are shared out. */
typedef struct {
    lm_lanes group;
    int64_t chunk, chunks; /* elements of a chunk, chunks of a line: blockIdx.y */
    lm_shape shape;
} lm_cut;

typedef struct {
    int64_t lines, length;
    int64_t beside; /* lines that lie closer than the elements of each; 0: these lie closer */
    int64_t most;   /* elements of a chunk; 0: any */
    int64_t each;   /* elements that keep a lane busy */
    int64_t held;   /* elements of a lane, if a line fits that way; 0: any */
    size_t size;    /* bytes of an element */
} lm_cut_wish;

/* Few and long lines are cut into chunks. By sizes and the device alone. */
lm_cut lm_cut_lines(const lm_cuda *c, const lm_cut_wish *wish);
/* One warp or block for each line, whole: what joins chunks. */
lm_cut lm_cut_joins(const lm_cuda *c, int64_t lines, int64_t length);

/* By dtype: the kernels of a typed file. */
#define LM_KERNEL_OF(name, token, ENUM, ...) [LUMA_##ENUM] = LM_K_##name##_##token,
#define LM_KERNELS_OF(name)                                                                        \
    { LM_DTYPES(LM_KERNEL_OF, name) }

#endif
