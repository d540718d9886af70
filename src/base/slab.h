/* The layout of heaps and slabs (slab.c). Debuggers read it too (coroutine/debugger.c). */
#ifndef ACO_SLAB_H
#define ACO_SLAB_H

#include "base/base.h"

enum {
    ACO__SLAB_STEP = 8,   /* size classes: one for each 8 bytes up to ACO__SLAB_SMALL, */
    ACO__SLAB_LOG_SMALL = 10,
    ACO__SLAB_SMALL = 1 << ACO__SLAB_LOG_SMALL,
    ACO__SLAB_FINE = 5,   /* then 32 (1 << 5) a doubling, up to ACO__SLAB_LARGEST */
    ACO__SLAB_CLASSES = ACO__SLAB_SMALL / ACO__SLAB_STEP + (4 << ACO__SLAB_FINE)
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
    uint32_t emptied;          /* milliseconds: when more than its first pages became empty */
    char *slots;               /* atomic: other threads read it; NULL: its blocks have no slots */
    uint32_t slot_size;        /* bytes; before there are slots, what was wanted last, */
    uint32_t slot_wanted;      /* so many times in a row */
} aco__slab_t;
enum { ACO__SLAB_FIRST = 2 * 64 /* the offset of the first object */ };
_Static_assert(sizeof(aco__slab_t) <= ACO__SLAB_FIRST, "objects begin two lines into the slab");

struct aco__heap {
    aco__thread_t *thread;          /* the owner; aco__nobody: an orphan. First, for aco__begins_here() */
    aco__slab_t *with_room[2 * ACO__SLAB_CLASSES]; /* the second half: of control blocks */
    unsigned slabs[2 * ACO__SLAB_CLASSES];
    aco__slab_t *block_slabs;
    struct aco__heap *next_orphan;
    struct aco__heap *next; /* in the list of all heaps */
    int orphan; /* atomic */
    int signal_stack; /* 0: nobody's, 1: the thread's, -1: a thread that has ended still runs a handler on it */
    aco__object_t *remote __attribute__((aligned(ACO__CACHE_LINE))); /* atomic; other threads write this line */
};
_Static_assert(offsetof(struct aco__heap, thread) == 0, "aco__begins_here() uses this offset");

/* An alternate signal stack of this many bytes lies below a heap: address space only, until it is used. */
#if defined(_WIN32) || defined(ACO_CONFIG_LIBACO_ONLY)
enum { ACO__SIGNAL_STACK = 0 };
#else
enum { ACO__SIGNAL_STACK = 64 << 10 };
#endif

ACO__HIDDEN_EXTERN struct aco__heap *aco__heaps; /* atomic; the list of all heaps, orphans included */

/* Gives the calling thread its heap's signal stack, unless it has one. 0, or -1 and errno. */
ACO__HIDDEN int aco__signal_stack(void);

static inline aco__slab_t *aco__slab_of(const void *p)
{
    return (aco__slab_t *)((uintptr_t)p & ~(uintptr_t)(ACO__SLAB - 1));
}

/* ---- Slots ----
 *
 * A control block of sizeof(aco_t) bytes has no save area behind it. How large its area must be is known at the first
 * save. When several such blocks of a slab in a row wanted areas of the same size, the slab gets slots, in a mapping of
 * their own: one of that size for each block, in the same order. The place of a slot follows from the address of its
 * block, so it can be prefetched before the block has arrived in the cache. */

/* The slot of this block, NULL if it has none. Any thread may call it. */
static inline char *aco__slot(const aco_t *co)
{
    const aco__slab_t *slab = aco__slab_of(co);
    char *slots = __atomic_load_n(&slab->slots, __ATOMIC_ACQUIRE);
    uint32_t at = (uint32_t)((uintptr_t)co - (uintptr_t)slab);
    ACO__ASSERT(!slots || (slab->size == sizeof(aco_t) && (at - ACO__SLAB_FIRST) % sizeof(aco_t) == 0));
    return slots ? slots + (size_t)((at - ACO__SLAB_FIRST) / (uint32_t)sizeof(aco_t)) * slab->slot_size : NULL;
}

static inline size_t aco__slot_size(const aco_t *co)
{
    return aco__slab_of(co)->slot_size;
}

/* The same for a first area of `sz` bytes, a multiple of 8. The slot has slot_size bytes. */
ACO__HIDDEN char *aco__slot_wanted(aco_t *co, size_t sz);

#endif
