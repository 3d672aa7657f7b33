/* nodes.h -- the hash parts of Lua's tables, and what making one larger costs. Layer: bindings. */
#ifndef lm_nodes_h
#define lm_nodes_h

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const unsigned char *p;
    size_t nbytes;
} lm_node_part;
/* Large ones that live. */
typedef struct {
    lm_node_part *list;
    int n, room;
} lm_nodes;

/* What Lua's allocator gave without a type, and takes back. */
void lm_nodes_add(lm_nodes *all, void *p, size_t nbytes);
void lm_nodes_remove(lm_nodes *all, const void *p, size_t nbytes);
void lm_nodes_close(lm_nodes *all);
/* Nanoseconds, about, that Lua takes if nbytes are to be the new hash part of one of the tables; 0: they
** are none. *longest: nodes that one look for a key may then pass. */
int64_t lm_nodes_cost(const lm_nodes *all, size_t nbytes, int64_t *longest);

#endif
