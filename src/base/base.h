/* What the base layer gives to those above: the process lock, the thread record's life, errors, memory, the state byte. */
#ifndef ACO_BASE_H
#define ACO_BASE_H

#include "base/upcalls.h"
#include "os/os.h"

/* ---- error.c: why a call failed: "<call>: [coroutine <address>: ]<reason>" ---- */
/* Prints it as one line on stderr after "acorn: ", then abort(). */
ACO__HIDDEN ACO__COLD __attribute__((noreturn, format(ACO__PRINTF, 3, 4)))
void aco__die(const char *call, const void *co, const char *reason, ...);
/* Prints it so and goes on. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 3, 4)))
void aco__warn(const char *call, const void *co, const char *reason, ...);
/* Aborts like that if `fatal`; else keeps the line for aco_error_message() and sets errno. Returns -1. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 5, 6)))
int aco__fail(int fatal, int error, const char *call, const void *co, const char *reason, ...);

/* ---- memory.c: what the system, or the user's allocator, gives ---- */
/* Zeroed pages. NULL and errno. */
ACO__HIDDEN void *aco__map(size_t sz);
ACO__HIDDEN void *aco__map_aligned(size_t sz); /* to `sz`, a power of two */
ACO__HIDDEN void aco__unmap(void *p, size_t sz);
ACO__HIDDEN void aco__unmap_guarded(void *p, size_t sz, size_t guard_sz); /* the first guard_sz bytes are a guard */
ACO__HIDDEN void *aco__allocate(size_t sz);
ACO__HIDDEN void aco__release(void *p, size_t sz);
/* The user has set no allocator. */
ACO__HIDDEN int aco__map_is_ours(void);
/* aco__fail() for a failed request for `sz` bytes: errno says what happened and becomes EAGAIN where the reason is the kernel's
 * limit on mappings. */
ACO__HIDDEN ACO__COLD int aco__fail_memory(int fatal, const char *call, size_t sz);
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__die_of_memory(const char *call, size_t sz);

/* ---- lock.c: one lock for the process, for what happens once in a thread's life ---- */
ACO__HIDDEN void aco__lock(void);
ACO__HIDDEN void aco__unlock(void);

/* ---- slab.c: memory for control blocks and small things ---- */
enum { ACO__SLAB_LARGEST = 16 << 10 };
/* At least *sz bytes, 16-byte aligned, and a multiple of 64 aligned to 64 while no larger than 1024; beyond ACO__SLAB_LARGEST
 * aligned as malloc() aligns (Arm: to 8). *sz becomes what there is. NULL and errno when there are none. aco__block_memory_new()
 * is for control blocks: aco__blocks_each() finds them. */
ACO__HIDDEN void *aco__memory_new(size_t *sz);
ACO__HIDDEN void *aco__block_memory_new(size_t *sz);
/* Gives back what these gave; `sz` is what they said, or anything up to ACO__SLAB_LARGEST if that was so too. Any thread. */
ACO__HIDDEN void aco__memory_free(void *p, size_t sz);
/* Calls visit(co, arg) for the thread's control blocks, destroyed ones among them, until it returns other than 0, and returns
 * that; else 0. */
ACO__HIDDEN int aco__blocks_each(int (*visit)(aco_t *co, void *arg), void *arg);
/* The same for at most `most` of them, from number *from on; unless `visit` stopped it, *from becomes where to go on: 0 after the
 * last. Slabs that come and go may have some passed over until the next round. */
ACO__HIDDEN int aco__blocks_some(int (*visit)(aco_t *co, void *arg), void *arg, size_t *from, size_t most);
/* How many bytes of a slab this object has. */
ACO__HIDDEN size_t aco__memory_size(const void *p);

/* ---- thread.c: a thread's record ---- */
/* The calling thread's, with the floating-point environment for new coroutines. */
ACO__HIDDEN aco__thread_t *aco__thread_ready(void);
/* Sees to it that what the calling thread has is given back when it ends. */
ACO__HIDDEN void aco__thread_will_end(void);
/* What base itself gives back then; set by the unit that has it. */
typedef struct aco__thread_exits {
    void (*scratch)(aco__thread_t *self);
    void (*heap)(aco__thread_t *self);
    void (*heaps_end)(void); /* Windows, when the library is unloaded */
} aco__thread_exits_t;
ACO__HIDDEN extern aco__thread_exits_t aco__thread_exits;
/* A thread that runs nothing, and what a context is that has no frames: unwinders find the end of the stack there. */
ACO__HIDDEN extern aco__thread_t *const aco__nobody;
ACO__HIDDEN extern const aco__context_t aco__no_context;

/* ---- The state byte. Atomic: a thread that destroys a coroutine may read what the stack's thread changes meanwhile; either
 * value will do. ---- */
static inline __attribute__((always_inline)) unsigned aco__status(const aco_t *co)
{
    return __atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__STATUS;
}

static inline __attribute__((always_inline)) void aco__set_state_byte(aco_t *co, unsigned state)
{
    __atomic_store_n(&co->aco__state, (unsigned char)state, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) int aco__has(const aco_t *co, unsigned flag)
{
    return (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & flag) != 0;
}

static inline __attribute__((always_inline)) void aco__set_status(aco_t *co, unsigned status)
{
    aco__set_state_byte(co, (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ~(unsigned)ACO__STATUS) | status);
}

static inline __attribute__((always_inline)) int aco__is_task(const aco_t *co)
{
    return (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__TASK_MASK) == ACO__TASK;
}

/* A task waits for a coroutine that it resumed: it has its turn, and something runs. */
static inline int aco__task_is_resuming(const aco__thread_t *self, const aco_t *co)
{
    return aco__is_task(co) && co == self->task && self->running && self->running != co && self->scheduler->is_running;
}

#endif
