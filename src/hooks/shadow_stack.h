/* Shadow stacks (x86-64, CET): a second stack, of return addresses alone, to which nothing but calls writes. A return whose
 * address is not the one there ends the process. Where a thread has one, each coroutine that it makes gets its own, and bears
 * ACO__INSTRUMENTED. It is exchanged where track.h's things are: the resumer does it, before it leaves and after it has come back,
 * and a yield is as ever. The jump from stack to stack happens on one shadow stack, which does not matter to a jump.
 *
 *   map                             token           bottom           map + sz
 *   | ... | return addresses ... | restore token | aco__returned |
 *
 * While it is not in use a shadow stack has a restore token below its last entry: the address behind it, and bit 0. Only the
 * kernel and saveprevssp write one; rstorssp takes nothing else, and each once.
 * Sources: Intel SDM volume 2, RSTORSSP, SAVEPREVSSP, INCSSP; Linux, Documentation/arch/x86/shstk.rst. */
#ifndef ACO_SHADOW_H
#define ACO_SHADOW_H

#include "hooks/hooks.h"

#ifdef ACO__SHADOW_STACKS
#define ACO__SWITCHES_SHADOW_STACKS 1

struct aco__shadow {
    uintptr_t token; /* where it is, while the coroutine does not run */
    void *map;
    size_t sz;
};

/* Gives `co`, which is new, a shadow stack if the calling thread has one. 0, or refused. */
ACO__HIDDEN int aco__shadow_new(aco_t *co, int fatal, const char *call);
ACO__HIDDEN void aco__shadow_free(aco__cold_t *cold);

/* Always inlined: a function that exchanged shadow stacks and returned would do so by the wrong one. */
#define ACO__SHADOW_INLINE static inline __attribute__((always_inline))
/* A function that switches in between: not to be inlined in part. */
#define ACO__SHADOW_NOINLINE __attribute__((noinline))

ACO__SHADOW_INLINE uintptr_t aco__shadow_pointer(void)
{
    uintptr_t pointer = 0;
    ACO__SHADOW_POINTER(pointer);
    return pointer;
}

/* To the shadow stack with this token; the one that is left gets its own. */
ACO__SHADOW_INLINE void aco__shadow_swap(uintptr_t token)
{
    __asm__ volatile("rstorssp (%0)\n\t"
                     "saveprevssp"
                     : : "r"(token) : "memory", "cc");
}

/* Where saveprevssp puts the token of the shadow stack in use. */
ACO__SHADOW_INLINE uintptr_t aco__shadow_next_token(void)
{
    return aco__shadow_pointer() - sizeof(uint64_t);
}

static inline int aco__has_shadow(const aco__cold_t *cold)
{
    return cold->shadow != NULL;
}

static inline struct aco__shadow *aco__shadow_of(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    return cold ? cold->shadow : NULL;
}

ACO__SHADOW_INLINE void aco__shadow_enter(const aco_t *co, aco__resumer_state_t *resumer_state)
{
    const struct aco__shadow *shadow = aco__shadow_of(co);
    resumer_state->shadow = 0;
    if (shadow) {
        resumer_state->shadow = aco__shadow_next_token();
        aco__shadow_swap(shadow->token);
    }
}

/* The shadow stack of `co` is in use. If it has ended only `bottom` is left there: it may be made as new. */
ACO__SHADOW_INLINE void aco__shadow_empty_if_ended(const aco_t *co)
{
    const struct aco__shadow *shadow = aco__shadow_of(co);
    uintptr_t n, step;
    if (!shadow || aco__status(co) != ACO__ENDED)
        return;
    for (n = ((uintptr_t)shadow->map + shadow->sz - aco__shadow_pointer()) / sizeof(uint64_t) - 1; n; n -= step) {
        step = n < 255 ? n : 255; /* it takes 8 bits */
        __asm__ volatile("incsspq %0" : : "r"(step) : "memory");
    }
}

ACO__SHADOW_INLINE void aco__shadow_leave(const aco_t *co, const aco__resumer_state_t *resumer_state)
{
    struct aco__shadow *shadow = aco__shadow_of(co);
    if (shadow) {
        shadow->token = aco__shadow_next_token();
        aco__shadow_swap(resumer_state->shadow);
    }
}

ACO__SHADOW_INLINE void aco__shadow_transfer(const aco_t *from, const aco_t *to)
{
    struct aco__shadow *shadow = aco__shadow_of(from), *next = aco__shadow_of(to);
    if (shadow && next) {
        shadow->token = aco__shadow_next_token();
        aco__shadow_swap(next->token);
    }
}

#else
#define ACO__SWITCHES_SHADOW_STACKS 0
#define ACO__SHADOW_NOINLINE

static inline int aco__shadow_new(const aco_t *co, int fatal, const char *call)
{
    (void)co, (void)fatal, (void)call;
    return 0;
}

static inline void aco__shadow_free(const aco__cold_t *cold)
{
    (void)cold;
}

static inline int aco__has_shadow(const aco__cold_t *cold)
{
    (void)cold;
    return 0;
}

static inline void aco__shadow_enter(const aco_t *co, aco__resumer_state_t *resumer_state)
{
    (void)co, (void)resumer_state;
}

static inline void aco__shadow_empty_if_ended(const aco_t *co)
{
    (void)co;
}

static inline void aco__shadow_leave(const aco_t *co, const aco__resumer_state_t *resumer_state)
{
    (void)co, (void)resumer_state;
}

static inline void aco__shadow_transfer(const aco_t *from, const aco_t *to)
{
    (void)from, (void)to;
}
#endif

#endif
