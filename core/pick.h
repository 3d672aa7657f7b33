/* pick.h -- indexing with masks and index tensors, several at once. Layer: core. */
#ifndef lm_pick_h
#define lm_pick_h

#include "tensor.h"

/* An integer tensor that picks positions along dim, or a bool mask that picks along dim and the
** following ones, as many as it has. */
typedef struct {
    int dim;
    const luma_tensor *tensor;
} lm_pick;

/* x at the picks (1 to LUMA_MAX_DIMS, dims ascending): always a copy. Index tensors broadcast
** together; their dims stand where the picked ones stood, or first when those are not neighbours.
 */
luma_status lm_pick_get(luma_state *S, luma_tensor *out, const luma_tensor *x, int npicks,
                        const lm_pick *picks);
/* Writes value (a tensor that broadcasts to what lm_pick_get would give, or a number) there; of
** positions that occur twice the last wins. */
luma_status lm_pick_put(luma_state *S, luma_tensor *x, int npicks, const lm_pick *picks,
                        const luma_tensor *value);

#endif
