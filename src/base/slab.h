/* The layout of heaps and slabs (slab.c). Debuggers read it too (coroutine/debugger.c). */
#ifndef ACO_SLAB_H
#define ACO_SLAB_H

#include "base/base.h"

enum {
    ACO__SLAB_STEP = 16,  /* size classes: one for each 16 bytes up to ACO__SLAB_SMALL, */
    ACO__SLAB_SMALL = 1024,
    ACO__SLAB_CLASSES = ACO__SLAB_SMALL / ACO__SLAB_STEP + 4 * 8 /* then 8 a doubling, up to ACO__SLAB_LARGEST */
};

typedef struct aco__object {
    struct aco__object *next;
} aco__object_t;

typedef struct aco__slab {
    struct aco__heap *heap;
    struct aco__slab *next, **link; /* in the list of the class's slabs with room; link is NULL while it is full */
    struct aco__slab *next_block_slab, **block_link; /* in the list of the heap's slabs of control blocks */
    aco__object_t *free;
    uint32_t fresh;            /* objects from this offset on were never used */
    uint32_t used;             /* objects in use */
    uint32_t size;             /* of one object */
    uint32_t class;
} aco__slab_t;
_Static_assert(sizeof(aco__slab_t) <= ACO__CACHE_LINE, "objects begin one line into the slab");
_Static_assert(offsetof(aco__slab_t, heap) == 0, "aco__cache_put() uses this offset");

struct aco__heap {
    aco__thread_t *thread;          /* the owner; aco__nobody: an orphan. First, for aco__begins_here() */
    aco__slab_t *with_room[2 * ACO__SLAB_CLASSES]; /* the second half: of control blocks */
    unsigned slabs[2 * ACO__SLAB_CLASSES];
    aco__slab_t *block_slabs;
    struct aco__heap *next_orphan;
    struct aco__heap *next; /* in the list of all heaps */
    int orphan; /* atomic */
    aco__object_t *remote __attribute__((aligned(ACO__CACHE_LINE))); /* atomic; other threads write this line */
};
_Static_assert(offsetof(struct aco__heap, thread) == 0, "aco__begins_here() uses this offset");

ACO__HIDDEN_EXTERN struct aco__heap *aco__heaps; /* atomic; the list of all heaps, orphans included */

#endif
