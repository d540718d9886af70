/* What the stack layer gives to those above: stacks, control blocks with their save areas and cold data, the copying of frames. */
#ifndef ACO_STACK_H
#define ACO_STACK_H

#include "base/context.h"

enum {
    ACO__HEAD = 4096, /* bytes of colour and records */
    ACO__PRIVATE_SIZE = 256 << 10,
    ACO__PRIVATE_BLOCK = offsetof(aco_t, main_co) /* bytes of the control block of a coroutine with a private stack */
};

/* ---- layout.c ---- */
/* Writes a stack's records. `map`: what it lies in; `below`: bytes of the guard page, or of what holds the canary; then `sz`
 * bytes and ACO__HEAD. `number` makes its colour. The first return address is for the coroutine layer to write. */
ACO__HIDDEN aco_share_stack_t *aco__stack_lay_out(char *map, size_t below, size_t sz, unsigned number, int guarded);
/* Aborts if a stack without a guard page has overflowed. */
ACO__HIDDEN void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack);
/* The cold data of a private stack's coroutine. */
static inline aco__cold_t *aco__stack_cold(aco_share_stack_t *stack)
{
    return (aco__cold_t *)(stack + 1);
}

/* ---- pool.c ---- */
/* Stacks of this size come from pools. */
ACO__HIDDEN int aco__pool_has(size_t sz);
/* A stack of at least `sz` bytes, laid out. NULL and errno; EDQUOT: the pool's own limit. */
ACO__HIDDEN aco_share_stack_t *aco__pool_acquire(aco_pool_t *pool, size_t sz);
ACO__HIDDEN void aco__pool_release(aco_share_stack_t *stack);

/* ---- stacks.c ---- */
/* A stack of its own mapping; 0 bytes: 2 MiB. NULL and errno. */
ACO__HIDDEN aco_share_stack_t *aco__stack_new(size_t sz, int guarded);
enum { ACO__SHARE_SIZE = 2 << 20 };
/* A private stack with room for cold data, of `pool` (NULL: the default one). NULL and errno. */
ACO__HIDDEN aco_share_stack_t *aco__stack_new_private(aco_pool_t *pool, size_t sz, int guarded);
/* What a new coroutine runs on that was given `stack`: `stack` itself; or, where frames must not be copied, one like it for this
 * coroutine alone, which is freed with the block. NULL and errno. */
ACO__HIDDEN aco_share_stack_t *aco__stack_for_one(aco_share_stack_t *stack);
ACO__HIDDEN void aco__stack_free(aco_share_stack_t *stack);
/* The share stack that was given: it counts the started coroutines and names the thread. */
static inline aco_share_stack_t *aco__stack_given(aco_share_stack_t *stack)
{
    return aco_unlikely(stack->aco__instead_of != NULL) ? stack->aco__instead_of : stack;
}

/* ---- save_area.c ---- */
/* The save area is the one behind the control block. */
static inline int aco__area_is_inside(const aco_t *co)
{
    return co->save_stack.ptr == (const void *)(co + 1);
}
enum { ACO__AREA_STATISTIC = 8, ACO__SAVES_PER_LOOK = 64 };
/* The save area is not behind the block from the beginning: it keeps its size. ACO__AREA_STATISTIC bytes behind the block are
 * free for that. */
ACO__HIDDEN void aco__area_reserved(aco_t *co);
/* Makes room behind the save area for one pointer. 0, or -1 and errno. */
ACO__HIDDEN int aco__area_reserve_pointer(aco_t *co);
/* A save area of at least `sz` bytes, instead of one that holds nothing. 0, or -1 and errno. */
ACO__HIDDEN int aco__area_grow(aco_t *co, size_t sz);
/* After each save in an area that is not behind the block: one in ACO__SAVES_PER_LOOK may make it smaller. */
ACO__HIDDEN void aco__area_look(aco_t *co);

/* ---- cold_data.c ---- */
/* The cold data of `co` (NULL: the thread's root context), or NULL if it has none. */
ACO__HIDDEN aco__cold_t *aco__cold(const aco_t *co);
/* The same of a coroutine, for `co` that is not NULL. */
ACO__HIDDEN aco__cold_t *aco__cold_of(const aco_t *co);
/* The same, made if need be. NULL and errno. */
ACO__HIDDEN aco__cold_t *aco__cold_make(aco_t *co);
/* Frees what it holds, calling nothing, and the record itself if the coroutine is not private. */
ACO__HIDDEN void aco__cold_free(aco_t *co);
ACO__HIDDEN void aco__values_free(aco__cold_t *cold);

/* ---- block.c ---- */
/* Control block and save area, the area behind the block unless it is large. NULL and errno. */
ACO__HIDDEN aco_t *aco__block_new(size_t save_sz);
/* Frees block, save area and cold data. */
ACO__HIDDEN void aco__block_free(aco_t *co);

/* ---- copy.c ---- */
/* Puts the frames of `co` on its stack, saving those of the owner; `co` is ready or saved, the caller on another stack. 1; or 0,
 * failed, and everything is as it was. */
ACO__HIDDEN int aco__stack_restore(aco_t *co, int fatal, const char *call);
/* The stack's owner ends: its frames mean nothing any more. */
ACO__HIDDEN void aco__stack_release(aco_t *co);
/* Frees the coroutines of a share stack that other threads destroyed. The stack's own thread. */
ACO__HIDDEN void aco__stack_free_remote(aco_share_stack_t *stack);
/* Takes `co`, started and not ended, off its stack and frees it: now, or when the stack's own thread comes by. */
ACO__HIDDEN void aco__stack_forget(aco_t *co);

#endif
