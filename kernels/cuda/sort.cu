/* sort.cu -- short rows, sorted by a warp or a block. */
#include "cuda/sort.h"

#define KEY uint32_t
#define KIND narrow
#define WORD uint64_t
#define MAKE(key, at) ((uint64_t)(key) << 32 | (at))
#define AT(w) ((w)&0xffffffffu)
#define BEFORE(v, w) ((v) < (w))
#include "cuda/sort_rows.h"

typedef struct {
    uint64_t key;
    uint32_t at;
} sort_word;
LM_FN sort_word make_word(uint64_t key, uint32_t at) {
    sort_word w = {key, at};
    return w;
}

#define KEY uint64_t
#define KIND wide
#define WORD sort_word
#define MAKE(key, at) make_word(key, at)
#define AT(w) (w).at
#define BEFORE(v, w) ((v).key < (w).key || ((v).key == (w).key && (v).at < (w).at))
#include "cuda/sort_rows.h"
