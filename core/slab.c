/* slab.c -- storages of the CPU of up to 1 KB: header and data side by side in slabs, one size class
** each, free ones in lists. Layer: core. */
#include "cache_parts.h"

#define SLAB_SIZE 65536u /* bytes */

/* Storages of up to TINY_MAX bytes, header and data side by side. The slab's own head is its first
** LINE bytes. Slabs with room are in the list of their class. */
typedef struct item item;
struct item {
    union {
        lm_storage st;
        item *next; /* while free */
    } u;
};
typedef lm_slab slab;
struct lm_slab {
    slab *prev, *next;
    lm_block *home;
    item *free;
    char *fresh; /* items from here on were never used */
    uint32_t class, live, capacity;
};
_Static_assert(sizeof(item) <= LINE, "a storage header fits before its data");
_Static_assert(sizeof(slab) <= LINE, "the head of a slab fits before its items");

static void slab_link(lm_cache *c, slab *s) {
    s->prev = NULL;
    s->next = c->slabs[s->class];
    if (s->next) s->next->prev = s;
    c->slabs[s->class] = s;
}

static void slab_unlink(lm_cache *c, slab *s) {
    *(s->prev ? &s->prev->next : &c->slabs[s->class]) = s->next;
    if (s->next) s->next->prev = s->prev;
}

static slab *slab_new(lm_cache *c, int class, bool last) {
    lm_block *b = lm_block_take(c, SLAB_SIZE, NULL, last);
    if (!b) return NULL;
    ASAN_UNPOISON_MEMORY_REGION(b->p, b->size);
    slab *s = (slab *)(void *)b->p;
    size_t item_size = (size_t)(class + 2) * LINE;
    *s = (slab){.home = b,
                .fresh = b->p + LINE,
                .class = (uint32_t) class,
                .capacity = (uint32_t)((SLAB_SIZE - LINE) / item_size)};
    slab_link(c, s);
    return s;
}

/* s holds no storage. */
static void slab_release(lm_cache *c, slab *s) {
    slab_unlink(c, s);
    lm_block_give(c, s->home);
}

lm_storage *lm_slab_take(lm_cache *c, size_t nbytes, bool last) {
    int class = nbytes ? (int)((nbytes - 1) / LINE) : 0;
    slab *s = c->slabs[class];
    if (!s && !(s = slab_new(c, class, last))) return NULL;
    size_t size = (size_t)(class + 1) * LINE;
    item *it = s->free;
    if (it) {
        s->free = it->u.next;
    } else {
        it = (item *)(void *)s->fresh;
        s->fresh += LINE + size;
    }
    if (++s->live == s->capacity) slab_unlink(c, s);
    char *data = (char *)it + LINE;
    it->u.st =
        (lm_storage){.refs = 1, .nbytes = nbytes, .data = data, .device = c->device, .ctx = s};
    ASAN_POISON_MEMORY_REGION(data, size);
    ASAN_UNPOISON_MEMORY_REGION(data, nbytes);
    lm_count(c->figures.allocation, LM_POOL_SMALL, 1);
    lm_count(c->figures.allocated_bytes, LM_POOL_SMALL, (int64_t)size);
    lm_count(c->figures.requested_bytes, LM_POOL_SMALL, (int64_t)nbytes);
    lm_note(c, LUMA_MEMORY_ALLOC, data, nbytes, NULL);
    return &it->u.st;
}

void lm_slab_give(lm_cache *c, lm_storage *st) {
    slab *s = st->ctx;
    int64_t size = (int64_t)(s->class + 1) * LINE;
    lm_note(c, LUMA_MEMORY_FREE, st->data, st->nbytes, NULL);
    lm_note(c, LUMA_MEMORY_FREED, st->data, st->nbytes, NULL);
    lm_count(c->figures.allocation, LM_POOL_SMALL, -1);
    lm_count(c->figures.allocated_bytes, LM_POOL_SMALL, -size);
    lm_count(c->figures.requested_bytes, LM_POOL_SMALL, -(int64_t)st->nbytes);
    ASAN_POISON_MEMORY_REGION(st->data, (size_t)size);
    item *it = (item *)(void *)st;
    it->u.next = s->free;
    s->free = it;
    if (s->live-- == s->capacity) slab_link(c, s);
    /* One slab of a class may stay empty, for the next round of a loop. */
    if (s->live == 0 && (s->prev || s->next)) slab_release(c, s);
}

void lm_slab_trim(lm_cache *c) {
    for (int i = 0; i < SLAB_CLASSES; i++)
        for (slab *s = c->slabs[i], *next; s; s = next) {
            next = s->next;
            if (s->live == 0) slab_release(c, s);
        }
}
