/* What the base layer offers to the layers above: the process lock, thread records, errors, memory, the state byte. */
#ifndef ACO_BASE_H
#define ACO_BASE_H

#include "base/invariants.h"
#include "base/upcalls.h"
#include "os/os.h"

#include <stdarg.h>

/* ---- error.c: why a call failed, as "<call>: [coroutine <address>: ]<reason>" ---- */
/* Prints this as one line on stderr after "acorn: ", then calls abort(). */
ACO__HIDDEN ACO__COLD __attribute__((noreturn, format(ACO__PRINTF, 3, 4)))
void aco__die(const char *call, const void *co, const char *reason, ...);
/* Prints the same line and returns. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 3, 4)))
void aco__warn(const char *call, const void *co, const char *reason, ...);
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 3, 0)))
void aco__warn_list(const char *call, const void *co, const char *reason, va_list args);
/* If `fatal`, dies like aco__die(). Else stores the line for aco_error_message(), sets errno and returns -1. */
#ifdef ACO_CONFIG_LIBACO_ONLY /* there every failure is fatal */
#define aco__fail(fatal, error, ...) ((void)(fatal), (void)(error), aco__die(__VA_ARGS__), -1)
#else
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 5, 6)))
int aco__fail(int fatal, int error, const char *call, const void *co, const char *reason, ...);
#endif

/* ---- memory.c: memory from the system or from the user's allocator ---- */
/* Zeroed pages. NULL and errno on failure. */
ACO__HIDDEN ACO__COLD void *aco__map(size_t sz);
ACO__HIDDEN ACO__COLD void *aco__map_aligned(size_t sz); /* aligned to `sz`, a power of two */
ACO__HIDDEN ACO__COLD void aco__unmap(void *p, size_t sz);
ACO__HIDDEN void aco__unmap_guarded(void *p, size_t sz, size_t guard_sz); /* the first guard_sz bytes are a guard */
ACO__HIDDEN void *aco__allocate(size_t sz);
ACO__HIDDEN void aco__release(void *p, size_t sz);
/* Whether memory comes from the system: the user has set no allocator. */
ACO__HIDDEN int aco__map_is_ours(void);
/* aco__fail() for a failed request for `sz` bytes. errno must hold the request's error. It becomes EAGAIN if the
 * request met the kernel's limit on mappings. */
ACO__HIDDEN ACO__COLD int aco__fail_memory(int fatal, const char *call, size_t sz);
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__die_of_memory(const char *call, size_t sz);

/* ---- lock.c: one lock for the process, for work that happens rarely in a thread's life ---- */
ACO__HIDDEN __attribute__((noinline)) void aco__lock(void);
ACO__HIDDEN __attribute__((noinline)) void aco__unlock(void);
#ifdef ACO__INVARIANTS
ACO__HIDDEN_EXTERN const char aco__process_lock; /* names it, for ACO__ASSERT_LOCKED() */
#endif

/* A user's location as text: itself, or written to text[sz] where it has a line in its address (config.h). */
ACO__HIDDEN const char *aco__location(const char *location, char *text, size_t sz);

/* ---- slab.c: memory for control blocks and other small objects ---- */
enum { ACO__SLAB_LARGEST = 16 << 10 };
/* Allocates at least *sz bytes and stores the actual size in *sz. NULL and errno on failure. The alignment is 16 bytes;
 * 64 for multiples of 64 up to 1024; malloc()'s for sizes above ACO__SLAB_LARGEST (Arm: 8). */
ACO__HIDDEN void *aco__memory_new(size_t *sz);
/* The same for save areas: the alignment is 8 bytes, and up to 1024 bytes so is the unit of sizes. */
ACO__HIDDEN void *aco__words_new(size_t *sz);
/* The same for control blocks, which aco__blocks_each() then finds. At most ACO__SLAB_LARGEST bytes. */
ACO__HIDDEN void *aco__block_memory_new(size_t *sz);
/* Frees memory of these functions. `sz` is the size that they stored; if that was at most ACO__SLAB_LARGEST, any other
 * size up to there will do. Any thread may call it. */
ACO__HIDDEN void aco__memory_free(void *p, size_t sz);
/* Calls visit(co, arg) for each control block of the thread, including destroyed ones, until `visit` returns a value
 * other than 0. Returns that value, or 0. */
ACO__HIDDEN int aco__blocks_each(int (*visit)(aco_t *co, void *arg), void *arg);
/* The same for at most `most` control blocks, from number *from on. Afterwards *from is the number to continue with: 0
 * after the last block, unchanged if `visit` ended the walk. If slabs come and go between calls, some blocks may be
 * missed until the next round. */
ACO__HIDDEN int aco__blocks_some(int (*visit)(aco_t *co, void *arg), void *arg, size_t *from, size_t most);
/* The number of bytes that this object has in its slab. */
ACO__HIDDEN size_t aco__memory_size(const void *p);

/* ---- thread.c: thread records ---- */
/* The calling thread's record, with the floating-point environment for new coroutines set. */
ACO__HIDDEN aco__thread_t *aco__thread_ready(void);
/* Whether a unit of the program is a debug build. */
ACO__HIDDEN_EXTERN int aco__debug_units;
/* Whether new tasks are noted: in such a program, where somebody looks at tasks, or where members inherit a value.
 * Atomic; once set it stays. */
ACO__HIDDEN_EXTERN int aco__notes_spawns;
/* Registers the calling thread's exit function, which frees what the thread has. */
ACO__HIDDEN ACO__COLD void aco__thread_will_end(void);
/* Whether the calling thread has a shadow stack: the processor compares each return address with the one there. On such
 * a thread code that switches without switching the shadow stack must fail: the next return after such a switch would
 * kill the process. */
ACO__HIDDEN int aco__has_shadow_stack(void);
/* What the exit function frees of the base layer; the unit that allocates it sets the function. */
typedef struct aco__thread_exits {
    void (*scratch)(aco__thread_t *self);
    void (*heap)(aco__thread_t *self);
    void (*heaps_end)(void); /* Windows, when the library is unloaded */
} aco__thread_exits_t;
ACO__HIDDEN_EXTERN aco__thread_exits_t aco__thread_exits;
/* A thread record that runs nothing. Unwinders that read it or aco__no_context find the end of the stack. */
ACO__HIDDEN_EXTERN aco__thread_t *const aco__nobody;

/* ---- The state byte. Accesses are atomic, because the stack's thread may change the byte while a thread that destroys
 * the coroutine reads it. Either value is fine for the reader. ---- */
static inline __attribute__((always_inline)) unsigned aco__status(const aco_t *co)
{
    return __atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__STATUS;
}

static inline __attribute__((always_inline)) void aco__set_state_byte(aco_t *co, unsigned state)
{
    __atomic_store_n(&co->aco__state, (unsigned char)state, __ATOMIC_RELAXED);
}

/* Whether it has this flag. Not for ACO__SHARES_FP, the only flag that libaco's calls set. */
static inline __attribute__((always_inline)) int aco__has(const aco_t *co, unsigned flag)
{
    return !ACO__LIBACO_ONLY && (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & flag) != 0;
}

static inline __attribute__((always_inline)) void aco__set_status(aco_t *co, unsigned status)
{
    aco__set_state_byte(co, (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ~(unsigned)ACO__STATUS) | status);
}

/* A task on a share stack that has not ended. Its status is that of a coroutine that waits for another one, even while
 * it runs. */
static inline int aco__is_shared_task(const aco_t *co)
{
    const unsigned mask = ACO__PRIVATE | ACO__FROM_NEW | ACO__RESUMING;
    return !ACO__LIBACO_ONLY &&
           (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & mask) == (ACO__FROM_NEW | ACO__RESUMING) &&
           aco__task_annex(co);
}

static inline __attribute__((always_inline)) int aco__is_task(const aco_t *co)
{
    return !ACO__LIBACO_ONLY && ((__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ACO__TASK_MASK) == ACO__TASK ||
                                 aco_unlikely(aco__is_shared_task(co)));
}

/* A task waits for a coroutine that it resumed: the task has its turn, but another coroutine runs. */
static inline int aco__task_is_resuming(const aco__thread_t *self, const aco_t *co)
{
    return aco__is_task(co) && co == self->task && self->running && self->running != co && self->scheduler->is_running;
}

#endif
