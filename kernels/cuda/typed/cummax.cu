/* cummax.cu -- the greatest or least so far along lines of one dtype, and its position: the first of
** the greatest keys. */
#include "cuda/fold.h"
#include "cuda/stretch.h"

typedef struct {
    uint64_t key; /* an lm_key */
    int64_t at;
} extreme;
LM_FN extreme extreme_at(uint64_t key, int64_t at) {
    extreme e;
    e.key = key;
    e.at = at;
    return e;
}
LM_FN extreme no_extreme(void) {
    return extreme_at(0, INT64_MAX);
}
LM_FN extreme extreme_join(extreme a, extreme b) {
    return b.key > a.key || (b.key == a.key && b.at < a.at) ? b : a;
}
LM_FN extreme extreme_lane(extreme v, uint32_t lane) {
    return extreme_at(__shfl_sync(LM_ALL_LANES, v.key, (int)lane),
                      __shfl_sync(LM_ALL_LANES, v.at, (int)lane));
}
/* Zeros are equal. */
#define EXTREME_OF(a, v, i) extreme_at(lm_key_of((v) == 0 ? (LM_C)0 : (v), LM_FLIP(a)), (i))
LM_FN void extreme_store(const lm_args_scan *a, lm_stretch s, int64_t i, int64_t at) {
    int64_t line;
    LM_OFFSET(a->lines, s.line, a->lines_positions, line);
    char *y = (char *)a->positions + line + i * a->positions_step;
    *(int64_t *)(void *)y = at + a->index_base;
    LM_S v = *(const LM_S *)(const void *)(s.x + at * a->x_step);
    *(LM_S *)(void *)(s.y + i * a->y_step) = LM_STORE(LM_LOAD(v));
}
#define EXTREME_STORE(a, s, i, v) extreme_store(&(a), (s), (i), (v).at)

#define NAME extreme
#define RUN extreme
#define NONE no_extreme
#define JOIN extreme_join
#define LANE extreme_lane
#include "cuda/running.h"

RUNNING(cummax, extreme, extreme_join, EXTREME_OF, EXTREME_STORE)
