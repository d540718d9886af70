/* What the library's own files share. Layers, each using only those above it: switch (include/aco/), core, stack; beside
 * them slab (control blocks and save areas), error, os, track.
 *
 * Thread-local state is reached through aco__self() and nothing else: a function of this library may be inlined into a
 * coroutine by link-time optimisation, where an address that a compiler knows to be thread-local could be kept across a
 * switch to another thread. */
#ifndef ACO_INTERNAL_H
#define ACO_INTERNAL_H

/* Options of client code; the library serves them all. */
#undef ACO_CONFIG_SHARE_FPU_MXCSR_ENV
#undef ACO_CONFIG_NO_INLINE
#undef ACO_DEBUG
#define ACO_DEBUG 0

#include "aco.h"

#define ACO__HIDDEN __attribute__((visibility("hidden")))

/* ---- error.c: one line on stderr, then abort() ---- */
ACO__HIDDEN ACO__COLD __attribute__((noreturn, format(printf, 3, 4))) void aco__die(const char *call, const void *co, const char *reason, ...);
/* The same for a failed request to the system, with errno's meaning and the kernel setting that commonly causes it. */
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__die_of_memory(const char *call, size_t sz);

/* ---- slab.c: memory for control blocks and save areas ---- */
enum { ACO__SLAB_LARGEST = 16 << 10 };
/* At least *sz bytes, 16-byte aligned, and a multiple of 64 aligned to 64 while no larger than 1024; *sz becomes what there
 * is. NULL and errno when there are none. */
ACO__HIDDEN void *aco__memory_new(size_t *sz);
/* Gives back what aco__memory_new() gave; `sz` is what it said, or anything up to ACO__SLAB_LARGEST if that was so too. Any
 * thread. */
ACO__HIDDEN void aco__memory_free(void *p, size_t sz);

/* ---- stack.c ---- */
/* Puts the frames of `co` on its stack, saving those of the owner; `co` is ready or saved, the caller on another stack. */
ACO__HIDDEN void aco__stack_take(aco_t *co);
/* The stack's owner ends: its frames mean nothing any more. */
ACO__HIDDEN void aco__stack_leave(aco_t *co);
/* Takes `co`, started and not ended, off its stack and frees it: now, or when the stack's own thread comes by. */
ACO__HIDDEN void aco__stack_forget(aco_t *co);
ACO__HIDDEN void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack);

/* ---- core.c ---- */
/* Whether the save area is the one behind the control block. */
static inline int aco__area_is_inside(const aco_t *co)
{
    return co->save_stack.ptr == (const void *)(co + 1);
}
/* Frees block and save area. */
ACO__HIDDEN void aco__block_free(aco_t *co);
/* Where an entry function returns to, by ACO__RETURNED below; calls aco__entry_returned(). src/arch/ */
ACO__HIDDEN extern const char aco__returned[];
ACO__HIDDEN __attribute__((noreturn, used)) void aco__entry_returned(void);

enum { ACO__LINE = 64 }; /* bytes of a cache line: how things are aligned, and the unit of a stack's colour */

/* Atomic, since a thread that destroys a coroutine may read what the stack's thread changes meanwhile; either value will do. */
static inline unsigned aco__state(const aco_t *co)
{
    return __atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__STATE;
}

static inline void aco__set_state(aco_t *co, unsigned state)
{
    __atomic_store_n(&co->aco__state, (unsigned char)((co->aco__state & ~ACO__STATE) | state), __ATOMIC_RELAXED);
}

#endif
