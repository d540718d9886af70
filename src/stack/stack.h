/* What the stack layer offers to the layers above: stacks, control blocks with save areas and cold data, the copying of
 * frames. */
#ifndef ACO_STACK_H
#define ACO_STACK_H

#include "base/context.h"
#include "base/slab.h"

enum { ACO__LEAST_STACK = 4096 }; /* bytes; verification/proofs/model/copying.py reads it */
enum {
    ACO__HEAD = 4096, /* bytes of the head page: colour and records */
    ACO__RECORD = 6 * ACO__CACHE_LINE, /* bytes of the records, */
    ACO__LEAST_HEAD = 16 * ACO__CACHE_LINE + ACO__RECORD, /* with the first colour */
    ACO__TASK_RECORD = 96,             /* of which the last are the scheduler's */
    ACO__TASK_ANNEX = 12 * sizeof(void *), /* bytes of the scheduler's record for a task on a share stack, */
    ACO__NOTED_ANNEX = ACO__TASK_ANNEX + sizeof(void *), /* with room for where it was spawned */
    ACO__PRIVATE_BLOCK = offsetof(aco_t, main_co) /* bytes of the control block if the stack is private */
};

/* ---- layout.c ---- */
/* Writes a stack's record. The stack lies in `map`: first `below` bytes for the guard page or the canary, then `sz`
 * bytes, then ACO__HEAD bytes, or ACO__LEAST_HEAD if `number` is 0. `number` selects the colour. The coroutine layer
 * writes the first return address. */
ACO__HIDDEN aco_share_stack_t *aco__stack_lay_out(char *map, size_t below, size_t sz, unsigned number, int guarded);
/* Aborts if a stack without a guard page has overflowed. */
ACO__HIDDEN void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack);
/* The size that a stack was made with: `sz` without the colour. */
static inline size_t aco__stack_made_with(const aco_share_stack_t *stack)
{
    ACO__ASSERT(stack->aco__colour < stack->sz);
    return stack->sz - stack->aco__colour;
}
/* The cold data of a private stack's coroutine. */
static inline aco__cold_t *aco__stack_cold(aco_share_stack_t *stack)
{
    return (aco__cold_t *)(stack + 1);
}
/* ACO__TASK_RECORD bytes for the scheduler, on a private stack. */
static inline void *aco__stack_task_record(aco_share_stack_t *stack)
{
    ACO__ASSERT(stack->aco__private);
    return (char *)stack + ACO__RECORD - ACO__TASK_RECORD;
}
/* Where the task was spawned: the return address of that call. On a share stack it stands behind the annex, if the task
 * was spawned since aco__notes_spawns. NULL: there is no room for it. */
static inline const void **aco__spawned_at(const aco_t *task)
{
    char *annex;
    if (aco__has(task, ACO__PRIVATE))
        return (const void **)aco__stack_task_record(task->share_stack) - 1;
    annex = aco__has(task, ACO__FROM_NEW) ? aco__task_annex(task) : NULL;
    return annex && aco__memory_size(annex) >= ACO__NOTED_ANNEX ? (const void **)(void *)(annex + ACO__TASK_ANNEX)
                                                                : NULL;
}
static inline aco_share_stack_t *aco__task_record_stack(void *record)
{
    return (aco_share_stack_t *)(void *)((char *)record + ACO__TASK_RECORD - ACO__RECORD);
}

/* ---- pool.c ---- */
/* Whether stacks of this size come from pools. */
ACO__HIDDEN int aco__pool_has(size_t sz);
/* A stack of at least `sz` bytes with its record written. NULL and errno on failure; EDQUOT is the pool's own limit. */
ACO__HIDDEN aco_share_stack_t *aco__pool_acquire(aco_pool_t *pool, size_t sz);
ACO__HIDDEN void aco__pool_release(aco_share_stack_t *stack);
/* Pools with more idle stacks than they shall keep, because these were released while aco_run() ran. Any thread may
 * reclaim them: about `most`. */
ACO__HIDDEN_EXTERN aco_pool_t *aco__crowded_pools; /* atomic */
static inline int aco__pools_are_crowded(void)
{
    return __atomic_load_n(&aco__crowded_pools, __ATOMIC_RELAXED) != NULL;
}
ACO__HIDDEN void aco__pools_relieve(size_t most);

/* ---- stacks.c ---- */
/* A stack in a mapping of its own. `sz` 0 means ACO__SHARE_SIZE. NULL and errno on failure. */
ACO__HIDDEN aco_share_stack_t *aco__stack_new(size_t sz, int guarded);
/* A private stack with room for cold data, from `pool` (NULL: the default pool). NULL and errno on failure. */
ACO__HIDDEN aco_share_stack_t *aco__stack_new_private(aco_pool_t *pool, size_t sz, int guarded);
/* The same in the caller's memory. */
enum { ACO__LEAST_MEMORY = 12 << 10 };
ACO__HIDDEN aco_share_stack_t *aco__stack_in(void *memory, size_t sz);
static inline int aco__stack_is_callers(const aco_share_stack_t *stack)
{
    return !stack->aco__map;
}
/* The stack for a new coroutine on the share stack `stack`: usually `stack` itself. Where frames must not be copied it
 * is a private stack of the same size, freed with the control block. NULL and errno on failure. */
ACO__HIDDEN aco_share_stack_t *aco__stack_for_one(aco_share_stack_t *stack);
ACO__HIDDEN void aco__stack_free(aco_share_stack_t *stack);
/* The share stack that the user passed. It counts the started coroutines and names their thread. */
static inline aco_share_stack_t *aco__stack_given(aco_share_stack_t *stack)
{
    return !ACO__LIBACO_ONLY && aco_unlikely(stack->aco__home.instead_of != NULL) && !stack->aco__private
        ? stack->aco__home.instead_of
        : stack;
}

static inline int aco__stack_is_private(const aco_share_stack_t *stack)
{
    return !ACO__LIBACO_ONLY && stack->aco__private;
}

/* Whether the frames of `co` stay where they are, whoever runs. */
static inline int aco__stack_is_kept(const aco_t *co)
{
    return co->share_stack->aco__private || co->share_stack->aco__home.instead_of;
}

/* ---- save_area.c ---- */
/* Whether the save area is the one right behind the control block. */
static inline int aco__area_is_inside(const aco_t *co)
{
    return co->save_stack.ptr == (const void *)(co + 1);
}
enum { ACO__SAVES_PER_LOOK = 64 };
/* Gives a new block a save area elsewhere, which will not get smaller than `sz` bytes. 0, or -1 and errno. */
ACO__HIDDEN int aco__area_reserve(aco_t *co, size_t sz);
/* Frees the save area unless it is behind the block. The coroutine has no cold data any more. */
ACO__HIDDEN void aco__area_free(aco_t *co);
/* Makes room for one pointer behind the save area. 0, or -1 and errno. */
ACO__HIDDEN int aco__area_reserve_pointer(aco_t *co);
/* Replaces an empty save area by one of at least `sz` bytes. 0, or -1 and errno. */
ACO__HIDDEN int aco__area_grow(aco_t *co, size_t sz);
/* To be called after each save into an area that is not behind the block. Once in ACO__SAVES_PER_LOOK saves it may
 * shrink the area. */
ACO__HIDDEN void aco__area_look(aco_t *co);

#ifndef ACO_CONFIG_LIBACO_ONLY
/* ---- cold_data.c ---- */
/* The cold data of `co` (NULL: of the root context), or NULL if it has none. */
ACO__HIDDEN aco__cold_t *aco__cold(const aco_t *co);
/* The same for a `co` that is not NULL. */
ACO__HIDDEN aco__cold_t *aco__cold_of(const aco_t *co);
/* The same, created if needed. NULL and errno on failure. */
ACO__HIDDEN aco__cold_t *aco__cold_make(aco_t *co);
/* Frees what the cold data holds without calling any destructor. Frees the record too unless the stack is private. */
ACO__HIDDEN void aco__cold_free(aco_t *co);
/* If nothing is in it any more, and nothing will be at the next switch (it is not instrumented), the coroutine, on a
 * private stack, is as one that never had any: it can be cached. */
ACO__HIDDEN void aco__cold_leave(aco_t *co);
ACO__HIDDEN void aco__values_free(aco__cold_t *cold);
#else /* no coroutine has any */
static inline aco__cold_t *aco__cold(const aco_t *co)
{
    (void)co;
    return NULL;
}
static inline void aco__cold_free(const aco_t *co)
{
    (void)co;
}
#endif

/* ---- block.c ---- */
/* A control block with its save area. The area stands behind the block unless it is large. NULL and errno on
 * failure. */
ACO__HIDDEN aco_t *aco__block_new(size_t save_sz);
/* Frees block, save area and cold data. */
ACO__HIDDEN void aco__block_free(aco_t *co);

/* ---- copy.c ---- */
/* Restores the frames of `co` to its stack and first saves those of the stack's owner. `co` is ready or has
 * its frames saved; the caller runs on another stack. Returns 1, or 0 after a failure that changed nothing. */
ACO__HIDDEN int aco__stack_restore(aco_t *co, int fatal, const char *call);
/* The common case of that for a task: the stack's owner is a task too and waits, and both have frames. The owner; or
 * NULL: something is not common, nothing was done. task_moved (base/upcalls.h) is not called. */
ACO__HIDDEN aco_t *aco__stack_swap_tasks(aco_t *task);
/* `co`, which was never resumed, counts as started from now on. 0, or -1 with EPERM: another thread uses its stack. */
ACO__HIDDEN int aco__stack_start(aco_t *co, const char *call);
/* Saves the frames of the stack's owner, which neither runs nor is the resumer of the running coroutine. 0, or -1 and
 * errno. */
ACO__HIDDEN int aco__stack_save(aco_share_stack_t *stack);
/* The stack's owner ends; its frames need not be saved. */
ACO__HIDDEN void aco__stack_release(aco_t *co);
/* Frees the coroutines of a share stack that other threads have destroyed. Only the stack's own thread calls it. */
ACO__HIDDEN void aco__stack_free_remote(aco_share_stack_t *stack);
/* Frees `co`, which has started and not ended: now if the calling thread is the stack's own, else when that thread next
 * uses the stack. */
ACO__HIDDEN void aco__stack_forget(aco_t *co);

#endif
