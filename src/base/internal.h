/* What the library's own files share. Layers, each using only those above it: switch (include/aco/), core, stack and
 * pool (where private stacks come from); beside them slab (control blocks and save areas), memory, local, end, measure, error,
 * os, track.
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
#define ACO__LIBRARY /* aco/detail/config.h: the inline calls are declared as exported functions */
#ifdef ACO_H
#error "src/base/internal.h includes aco.h: nothing may include it before"
#endif

#if defined(_WIN32) && !defined(__USE_MINGW_ANSI_STDIO)
#define __USE_MINGW_ANSI_STDIO 1 /* %zu */
#endif
#include "aco.h"
#ifndef __arm__
#include "entry/assembly.h" /* ACO__UNWINDS_TO_RESUMER: whether backtraces go on in the resumer */
#endif

#include <errno.h>
#ifndef EDQUOT
#define EDQUOT 10069 /* Windows: no user sees it */
#endif

#ifdef _WIN32
#define ACO__HIDDEN
#ifdef __clang__ /* before 22 it knows no other name, and means the same by it */
#define ACO__PRINTF printf
#else
#define ACO__PRINTF gnu_printf
#endif
#else
#define ACO__HIDDEN __attribute__((visibility("hidden")))
#define ACO__PRINTF printf
#endif

/* Threads' shadow stacks are switched: by -fcf-protection=full or =return. */
#if defined(__linux__) && defined(__x86_64__) && defined(__CET__) && !defined(ACO_CONFIG_UCONTEXT)
#if __CET__ & 2
#define ACO__SHADOW_STACKS
#endif
#endif

/* To a multiple of `to`, a power of two. */
static inline size_t aco__round_up(size_t sz, size_t to)
{
    return (sz + to - 1) & ~(to - 1);
}

/* A function of the program's run time that is there, or not. macOS's linkers want to find every name: none is there. */
#ifdef __APPLE__
#define ACO__OPTIONAL(result, name, parameters) static result(*const name) parameters = NULL
#else
#define ACO__OPTIONAL(result, name, parameters) __attribute__((weak)) extern result name parameters
#endif

/* ---- error.c: why a call was refused: "<call>: [coroutine <address>: ]<reason>" ---- */
/* Prints it as one line on stderr after "acorn: ", then abort(). */
ACO__HIDDEN ACO__COLD __attribute__((noreturn, format(ACO__PRINTF, 3, 4))) void aco__die(const char *call, const void *co, const char *reason, ...);
/* Prints it so and goes on. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 3, 4))) void aco__warn(const char *call, const void *co, const char *reason, ...);
/* Aborts like that if `fatal`; else keeps it for aco_error_message() and sets errno. Returns -1. */
ACO__HIDDEN ACO__COLD __attribute__((format(ACO__PRINTF, 5, 6))) int aco__fail(int fatal, int error, const char *call, const void *co, const char *reason, ...);
/* The same for a failed request for `sz` bytes of memory: errno says what happened and becomes EAGAIN where the reason is the
 * kernel's limit on mappings. */
ACO__HIDDEN ACO__COLD int aco__fail_memory(int fatal, const char *call, size_t sz);
ACO__HIDDEN ACO__COLD __attribute__((noreturn)) void aco__die_of_memory(const char *call, size_t sz);
/* The same for a thread with a shadow stack; 0 where there is none. */
ACO__HIDDEN int aco__fail_shadow_stack(int fatal, const char *call);

/* ---- memory.c: what the system, or the user's allocator, gives ---- */
/* Zeroed pages. NULL and errno. */
ACO__HIDDEN void *aco__map(size_t sz);
ACO__HIDDEN void *aco__map_aligned(size_t sz); /* to `sz`, a power of two */
ACO__HIDDEN void aco__unmap(void *p, size_t sz);
ACO__HIDDEN void aco__unmap_guarded(void *p, size_t sz, size_t guard_sz); /* the first guard_sz bytes are a guard */
ACO__HIDDEN void *aco__allocate(size_t sz);
ACO__HIDDEN void aco__release(void *p, size_t sz);
ACO__HIDDEN int aco__map_is_ours(void); /* the library's own choice is in force */

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
ACO__HIDDEN void aco__heap_thread_ends(void);
#ifdef _WIN32
/* The library is unloaded (FreeLibrary()): what it has for threads that live still, for the process, and what is kept to be used
 * again goes back; what the user has not destroyed stays. The last three are the first one's parts. */
ACO__HIDDEN void aco__library_ends(void);
ACO__HIDDEN void aco__pool_ends(void);
ACO__HIDDEN void aco__usages_end(void);
ACO__HIDDEN void aco__heaps_end(void);
#endif
/* Sees to it that what the calling thread has is given back when it ends; core.c. */
ACO__HIDDEN void aco__thread_will_end(void);

/* ---- local.c: what few coroutines have ---- */
typedef struct aco__deferred {
    void (*fn)(void *);
    void *arg;
    char *frame;       /* an address in the frame that deferred it */
    char *owner_sp;    /* that frame's stack pointer, as the unwinder sees it; set by aco_cancel() */
    struct aco__deferred *next;
} aco__deferred_t;
typedef struct aco__value {
    void *value;
    uint32_t generation;
    uint32_t size; /* of a coroutine-local variable, whose memory goes with the coroutine; 0: the user's pointer */
} aco__value_t;
typedef struct aco__cold {
    void *slot;
    aco__deferred_t *deferred; /* the last one first */
    aco__value_t *values;      /* coroutine-local storage, by the key's index */
    size_t values_sz;          /* bytes */
    void *exceptions[3];       /* the C++ run time's, while it does not run; see track.c */
    void *fiber, *fake_stack;  /* the sanitizers' */
    void *left_fiber;          /* where it left off: NULL, or a generator's */
    const void *left_bottom;   /* likewise, the stack; NULL: its own */
    size_t left_size;
    struct aco__usage *usage;  /* where it is measured, or NULL */
    size_t trimmed_depth;      /* if it is: the stack's depth before a trim */
#ifdef ACO__SHADOW_STACKS
    struct aco__shadow *shadow; /* shadow.h; NULL: it has none */
#endif
    uint32_t number;           /* in a trace; 0: not traced */
    char own_exceptions;
    char name[ACO_NAME_SIZE];
} aco__cold_t;
/* The extra record of `co` (NULL: the thread's own flow of control), or NULL if it has none with something in it. */
ACO__HIDDEN aco__cold_t *aco__cold(const aco_t *co);
/* The same of a coroutine, for `co` that is not NULL. */
ACO__HIDDEN aco__cold_t *aco__cold_of(const aco_t *co);
/* The same, made if need be. NULL and errno. */
ACO__HIDDEN aco__cold_t *aco__cold_make(aco_t *co);
/* Frees what it holds, calling nothing, and the record itself if the coroutine is not private. */
ACO__HIDDEN void aco__cold_free(aco_t *co);
/* The slot and the values, for a coroutine that is made as new. */
ACO__HIDDEN void aco__cold_clear(aco_t *co);
ACO__HIDDEN void aco__values_free(aco__cold_t *cold);
/* Calls the keys' destructors. */
ACO__HIDDEN void aco__values_destroy(aco__cold_t *cold);
ACO__HIDDEN void aco__name(aco__cold_t *cold, const char *name);

/* ---- end.c ---- */
/* Makes the deferred calls and destroys the values of a coroutine that ends, running. */
ACO__HIDDEN void aco__clean_up(aco_t *co);

/* ---- stack.c ---- */

/* Whether the calling thread's return addresses are compared with those on a shadow stack. What does not switch it too is
 * refused: after the first switch the next return would kill the process. */
ACO__HIDDEN int aco__has_shadow_stack(void);
enum {
    ACO__HEAD = 4096, /* bytes of colour and records */
    ACO__AREA_STATISTIC = 8, /* bytes behind a block whose save area is elsewhere */
    ACO__PRIVATE_SIZE = 256 << 10
};
/* A private stack with its extra record, of `pool` (NULL: the default one). NULL and errno. */
ACO__HIDDEN aco_share_stack_t *aco__stack_new_private(aco_pool_t *pool, size_t sz, int guarded);
/* Writes a stack's records. `map`: what it lies in; `below`: bytes of the guard page, or of what holds the canary; then `sz`
 * bytes and ACO__HEAD. `number` makes its colour. */
ACO__HIDDEN aco_share_stack_t *aco__stack_lay_out(char *map, size_t below, size_t sz, unsigned number, int guarded);
ACO__HIDDEN void aco__stack_free(aco_share_stack_t *stack);
/* What a new coroutine runs on that was given `stack`: itself; or, where frames must not be copied, one like it for this
 * coroutine alone, which is freed with the block. NULL and errno. */
ACO__HIDDEN aco_share_stack_t *aco__stack_for_one(aco_share_stack_t *stack);
/* The share stack that was given, whose thread and started coroutines are counted there. */
static inline aco_share_stack_t *aco__stack_given(aco_share_stack_t *stack)
{
    return aco_unlikely(stack->aco__instead_of != NULL) ? stack->aco__instead_of : stack;
}
static inline aco__cold_t *aco__stack_cold(aco_share_stack_t *stack)
{
    return (aco__cold_t *)(stack + 1);
}
/* Puts the frames of `co` on its stack, saving those of the owner; `co` is ready or saved, the caller on another stack. 1; or 0,
 * refused, and everything is as it was. */
ACO__HIDDEN int aco__stack_restore(aco_t *co, int fatal, const char *call);
/* The stack's owner ends: its frames mean nothing any more. */
ACO__HIDDEN void aco__stack_release(aco_t *co);
/* Takes `co`, started and not ended, off its stack and frees it: now, or when the stack's own thread comes by. */
ACO__HIDDEN void aco__stack_forget(aco_t *co);
ACO__HIDDEN void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack);
/* The save area is not behind the block from the beginning: it keeps its size. */
ACO__HIDDEN void aco__area_reserved(aco_t *co);
/* Makes room behind the save area for one pointer. 0, or -1 and errno. */
ACO__HIDDEN int aco__save_area_reserve(aco_t *co);

/* ---- pool.c ---- */
/* Whether stacks of this size come from pools. */
ACO__HIDDEN int aco__pool_has(size_t sz);
/* A stack of at least `sz` bytes, laid out. NULL and errno; EDQUOT: the pool's own limit. */
ACO__HIDDEN aco_share_stack_t *aco__pool_acquire(aco_pool_t *pool, size_t sz);
ACO__HIDDEN void aco__pool_release(aco_share_stack_t *stack);

/* ---- measure.c ---- */
/* Begins to measure a new coroutine, which its thread measures. */
ACO__HIDDEN void aco__usage_begin(aco_t *co);
/* It was left by a switch, or is about to, with its stack pointer at `sp`; it has ended, or is destroyed. For one whose extra
 * record has `usage`. */
ACO__HIDDEN void aco__usage_left(const aco_t *co, aco__cold_t *cold, const void *sp);
ACO__HIDDEN void aco__usage_end(const aco_t *co, aco__cold_t *cold);
/* aco_stack_trim() for aco__blocks_some(): of the tasks of thread `self`, which runs none. */
ACO__HIDDEN int aco__task_trim(aco_t *co, void *self);

/* ---- overflow.c ---- */
enum { ACO__SIGNAL_STACK = 64 << 10 };

/* ---- core.c ---- */
/* Has a context begin in `fn`, a function that a switch enters from its beginning. */
typedef ACO__ARRIVAL_ABI void aco__arrival_t(ACO__ARRIVAL_PARAMETERS);
#ifdef ACO__ARRIVES_IN_ASSEMBLY
ACO__HIDDEN void aco__arrive(void);
#endif
static inline void aco__begin_in(aco__context_t *context, void *sp, aco__arrival_t *fn)
{
    void **location = &context->pc;
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    void (*arrive)(void) = aco__arrive;
    memcpy(&context->pc, &arrive, sizeof arrive);
    location = &context->bp;
#endif
    context->sp = sp;
    memcpy(location, &fn, sizeof fn);
}

/* Whether the save area is the one behind the control block. */
static inline int aco__area_is_inside(const aco_t *co)
{
    return co->save_stack.ptr == (const void *)(co + 1);
}
enum { ACO__PRIVATE_BLOCK = offsetof(aco_t, main_co) };
/* A block of aco_new() with its stack, by options that are checked; its state byte says what it is. NULL and errno, *sz being
 * what was asked for in vain. */
ACO__HIDDEN aco_t *aco__coroutine_new(const aco_options_t *o, size_t *sz);
ACO__HIDDEN void aco__coroutine_free(aco_t *co);
/* Frees the coroutines that the thread keeps. */
ACO__HIDDEN void aco__cache_free(aco__thread_t *self);
/* Frees block, save area and extra record. */
ACO__HIDDEN void aco__block_free(aco_t *co);
/* The calling thread's; to be used at once. A function, since link-time optimisation would not see that os/ needs core.c. */
ACO__HIDDEN uint32_t *aco__lock_word(void);
/* Ends the running coroutine. */
ACO__HIDDEN __attribute__((noreturn)) void aco__end(aco_t *co, void *result);
/* Whether `co`, not ended, was never resumed. */
ACO__HIDDEN int aco__is_new(const aco_t *co);
/* 0 if the calling thread may resume `co` now; else it is refused. */
ACO__HIDDEN int aco__check(int fatal, const char *call, const aco_t *co);
/* Where an entry function returns to; calls aco__entry_returned(). src/entry/ */
ACO__HIDDEN extern const char aco__returned[];
#ifdef ACO__UNWINDS_TO_RESUMER /* else the same */
ACO__HIDDEN extern const char aco__returned_without_parent[];
#else
#define aco__returned_without_parent aco__returned
#endif
ACO__HIDDEN __attribute__((noreturn, used)) void aco__entry_returned(void);
/* Where the unwinder goes on when a cancellation has come to the outermost frame as an exception; calls
 * aco__cancel_landed(). src/entry/ */
ACO__HIDDEN void aco__cancel_landing(void);
#ifdef ACO_CONFIG_UCONTEXT
ACO__HIDDEN void aco__outermost(void); /* every stack's first function */
#endif

/* What few threads need: a stack to copy on. In one mapping:
 *   | guard page | scratch stack | aco__scratch_t | */
typedef struct aco__scratch {
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    aco_share_stack_t stack; /* the scratch stack: a stack's record begins where the stack ends */
#endif
    aco_t runner;          /* switching to it runs core.c's on_scratch() there */
    aco_t trap;             /* stands for the resumer while a coroutine cleans up: a yield is an error */
    aco__context_t restore_trampoline;  /* what stands for a resumer whose frames were saved: brings them back */
    aco_t *target, *from;   /* for on_scratch(): who shall run; who leaves by transfer, or NULL */
    uintptr_t interrupt_flag;
    const char *call;
    void (*injected)(void *);  /* what aco__interrupted() shall call */
    void *injected_arg;
    aco__cold_t root_cold;
    char has_root_cold;
    unsigned registered;    /* Valgrind's number for the scratch stack, or 0 */
    long traced_as;         /* the thread's number in a trace; 0: it has made no event */
    void *signal_stack;     /* made by aco_explain_overflow(), or NULL */
} aco__scratch_t;
/* Whether `p` is in the stack that `co` runs on; the frames of its generators are not. */
static inline int aco__is_on_its_stack(const aco_t *co, const void *p)
{
    const aco_share_stack_t *stack = co->share_stack;
    return (uintptr_t)p >= (uintptr_t)stack->ptr && (uintptr_t)p <= (uintptr_t)stack->aco__top;
}
/* The calling thread's, made if need be. NULL and errno. */
ACO__HIDDEN aco__scratch_t *aco__scratch(void);

/* What unwinders go by from a coroutine's outermost frame to its resumer: src/entry/assembly.h. */
ACO__HIDDEN extern const aco__context_t aco__no_context;
ACO__HIDDEN extern aco__thread_t *const aco__nobody; /* a thread that runs nothing */
/* A coroutine begins on `stack`. A heap begins with its thread's address, and lives for ever. */
static inline void aco__begins_here(aco_share_stack_t *stack, const aco__thread_t *self)
{
    if (aco_likely(self->heap != NULL))
        stack->aco__owner_thread = (aco__thread_t *const *)self->heap;
}
/* Makes the calling function keep a frame pointer: the first function on a stack, entered with one of NULL. A chain of them would
 * else go astray in it, and so it ends there. */
static inline __attribute__((always_inline)) void aco__end_frame_pointers(void)
{
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)));
}
/* Where the context of `resumer` is parked; no context where its frames are elsewhere or it is the trap. */
static inline const aco__context_t *aco__saved_context(const aco__thread_t *self, const aco_t *resumer)
{
    if (!resumer)
        return &self->root;
    if (aco_unlikely((resumer->aco__state & ACO__STATUS) == ACO__RESUMING_SAVED || !resumer->share_stack))
        return &aco__no_context;
    return &resumer->aco__self;
}

/* A waiting resumer's context stands in the thread record while it is the running coroutine's, else in its own block, or in
 * `outermost` for the thread's own flow of control. These move it out and back in. Field by field: wider loads would miss what
 * the switch has just stored. */
static inline void aco__save_resumer(aco__thread_t *self)
{
    aco_t *co = self->resuming;
    volatile aco__context_t *from = &self->resumer, *to = co ? &co->aco__self : &self->root;
    if (aco_likely(!co || (co->aco__state & ACO__STATUS) != ACO__RESUMING_SAVED)) { /* else `recall` stands for it there */
        to->sp = from->sp;
        to->pc = from->pc;
        to->bp = from->bp;
        to->base = from->base;
    } else {
        self->unwind_parent = &self->resumer; /* of the coroutine that waits from now on */
    }
    *(co ? &co->aco__fp_control : &self->root_fp_control) = self->fp_control;
    *(co ? &co->aco__fp_control2 : &self->root_fp_control2) = self->fp_control2;
}

/* `co`: the resumer, NULL for the thread's own flow of control. */
static inline void aco__restore_resumer(aco__thread_t *self, aco_t *co)
{
    volatile aco__context_t *to = &self->resumer, *from = co ? &co->aco__self : &self->root;
    self->resuming = co;
    if (aco_unlikely(co && (co->aco__state & ACO__STATUS) == ACO__RESUMING_SAVED)) {
        from = &self->scratch->restore_trampoline;
        self->unwind_parent = &aco__no_context;
    }
    to->sp = from->sp;
    to->pc = from->pc;
    to->bp = from->bp;
    to->base = from->base;
    self->fp_control = co ? co->aco__fp_control : self->root_fp_control;
    self->fp_control2 = co ? co->aco__fp_control2 : self->root_fp_control2;
}

/* Loads these control words if others are in force: status is touched only then, as in the switch. */
static inline void aco__fp_change(const uint32_t *wanted, const uint16_t *wanted2)
{
    uint32_t control;
    uint16_t control2;
    aco__fp_read(&control, &control2);
    if (((control ^ *wanted) & ~(uint32_t)ACO__FP_STATUS) != 0 || control2 != *wanted2)
        aco__fp_load(wanted, wanted2);
}

/* Atomic, since a thread that destroys a coroutine may read what the stack's thread changes meanwhile; either value will do. */
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

static inline __attribute__((always_inline)) void aco__set_status(aco_t *co, unsigned phase)
{
    aco__set_state_byte(co, (__atomic_load_n(&co->aco__state, __ATOMIC_RELAXED) & ~(unsigned)ACO__STATUS) | phase);
}

#endif
