/* nodes.c -- how long Lua would take to make the hash part of a table larger. Keys of integers that all
** fall together in the new size, as multiples of it do, take the square of their number, in one
** instruction: 10 MB of them a minute and a half. So whoever limits time looks before. Knows how nodes lie
** in memory in Lua 5.4 on 64-bit machines; elsewhere it says nothing. Layer: bindings. */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

#include <lua.h>

#define NODE 24                 /* bytes: value, its type, type of the key, next, key */
#define LEAST (NODE << 12)      /* smaller parts are made larger in no time */
#define STEP_NS 12              /* from one node of a chain to the next that is not in the cache */
#define INTEGER_KEY LUA_TNUMBER /* the variant of integers */

static bool is_known(void) {
    return LUA_VERSION_NUM == 504 && sizeof(void *) == 8 && sizeof(lua_Integer) == 8;
}

/* log2 of the number of nodes; -1: no hash part. */
static int log_of(size_t nbytes) {
    size_t n = nbytes / NODE;
    if (nbytes < LEAST || nbytes % NODE != 0 || (n & (n - 1)) != 0) return -1;
    return __builtin_ctzll(n);
}

void lm_nodes_add(lm_nodes *all, void *p, size_t nbytes) {
    if (!is_known() || log_of(nbytes) < 0) return;
    if (all->n == all->room) {
        int room = all->room ? 2 * all->room : 64;
        void *list = realloc(all->list, (size_t)room * sizeof *all->list);
        if (!list) return; /* one that is not looked at */
        all->list = list;
        all->room = room;
    }
    all->list[all->n++] = (lm_node_part){p, nbytes};
}

void lm_nodes_remove(lm_nodes *all, const void *p, size_t nbytes) {
    if (nbytes < LEAST) return;
    for (int i = 0; i < all->n; i++) {
        if (all->list[i].p != p) continue;
        all->list[i] = all->list[--all->n];
        return;
    }
}

void lm_nodes_close(lm_nodes *all) {
    free(all->list);
    *all = (lm_nodes){NULL, 0, 0};
}

/* Only a full part becomes larger. */
static bool is_full(const lm_node_part *part) {
    for (size_t i = 0; i < part->nbytes; i += NODE)
        if (part->p[i + 9] == LUA_TNIL) return false;
    return true;
}

/* Steps along chains when the integer keys of part go to places modulo `size` - 1, as they do from 5.4.3
** on, or to the low bits, as before; the longest chain. counts: of size. */
static int64_t steps_for(const lm_node_part *part, uint64_t size, bool bits, uint32_t *counts,
                         int64_t *longest) {
    int64_t steps = 0;
    memset(counts, 0, size * sizeof *counts);
    for (size_t i = 0; i < part->nbytes; i += NODE) {
        uint64_t key;
        if (part->p[i + 9] != INTEGER_KEY || (part->p[i + 8] & 0xf) == LUA_TNIL) continue;
        memcpy(&key, part->p + i + 16, sizeof key);
        uint32_t *count = &counts[bits ? key & (size - 1) : key % ((size - 1) | 1)];
        steps += *count;
        if (++*count > *longest) *longest = *count;
    }
    return steps;
}

int64_t lm_nodes_cost(const lm_nodes *all, size_t nbytes, int64_t *longest) {
    *longest = 0;
    int log = log_of(nbytes);
    if (!is_known() || log < 0 || all->n == 0) return 0;
    uint64_t size = UINT64_C(1) << log;
    uint32_t *counts = NULL;
    int64_t most = 0;
    for (int i = 0; i < all->n; i++) {
        if (!is_full(&all->list[i])) continue;
        if (!counts && !(counts = malloc(size * sizeof *counts))) return 0;
        for (int bits = 0; bits < 2; bits++) {
            int64_t steps = steps_for(&all->list[i], size, bits, counts, longest);
            if (steps > most) most = steps;
        }
    }
    free(counts);
    return most * STEP_NS;
}
