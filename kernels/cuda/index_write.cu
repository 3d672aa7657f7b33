/* index_write.cu -- elements written to places that index tensors decide; of those that go to one
** place the last in row-major order wins. */
#include "cuda/places.h"

/* Only the last of those that write to a place does. */
LM_FN int is_last(const lm_args_index *a, int64_t writer) {
    if (!a->slots) return 1;
    if (a->wide_writers) {
        uint64_t slot = ((const uint64_t *)a->slots)[writer];
        return slot != ~(uint64_t)0 && ((const uint64_t *)a->last)[slot] == (uint64_t)writer + 1;
    }
    uint32_t slot = ((const uint32_t *)a->slots)[writer];
    return slot != ~(uint32_t)0 && ((const uint32_t *)a->last)[slot] == (uint32_t)writer + 1;
}

#define WRITE(bytes, T)                                                                            \
    LM_KERNEL(index_write_##bytes) {                                                               \
        LM_EACH(i, a.walk.n) {                                                                     \
            index_place p = index_find(&a, i);                                                     \
            if (!p.valid || !is_last(&a, p.writer)) continue;                                      \
            *(T *)(void *)((char *)a.indexed + p.indexed) =                                        \
                *(const T *)(const void *)((const char *)a.plain + p.plain);                       \
        }                                                                                          \
    }
WRITE(1, uint8_t)
WRITE(2, uint16_t)
WRITE(4, uint32_t)
WRITE(8, uint64_t)
WRITE(16, uint4)

/* The slot of a place: the place itself, or where a hash table has it, which is at most half full.
 */
LM_FN uint64_t slot_of(const lm_args_index *a, uint64_t place) {
    if (!a->places) return place;
    uint64_t slot = (place * 0x9e3779b97f4a7c15u) >> 32 & (a->nslots - 1);
    for (;; slot = (slot + 1) & (a->nslots - 1)) {
        unsigned long long old =
            atomicCAS(&a->places[slot], ~(unsigned long long)0, (unsigned long long)place);
        if (old == ~(unsigned long long)0 || old == place) return slot;
    }
}

/* Every writer finds its slot and leaves its number there if no later one has. */
#define CLAIM(bits, T)                                                                             \
    LM_KERNEL(index_claim_##bits) {                                                                \
        LM_EACH(i, a.walk.n) {                                                                     \
            index_place p = index_find(&a, i);                                                     \
            T slot = (T)-1;                                                                        \
            if (p.valid) {                                                                         \
                slot = (T)slot_of(&a, (uint64_t)p.indexed);                                        \
                atomicMax((T *)a.last + slot, (T)i + 1);                                           \
            }                                                                                      \
            ((T *)a.slots)[i] = slot;                                                              \
        }                                                                                          \
    }
CLAIM(32, unsigned)
CLAIM(64, unsigned long long)

/* The place of every writer as a key to sort by. */
#define PLACES(kind, T)                                                                            \
    LM_KERNEL(index_places_##kind) {                                                               \
        LM_EACH(i, a.index.walk.n) {                                                               \
            index_place p = index_find(&a.index, i);                                               \
            ((T *)a.keys)[i] = p.valid ? (T)p.indexed : (T)a.nplaces;                              \
        }                                                                                          \
    }
PLACES(narrow, uint32_t)
PLACES(wide, uint64_t)
