/* Shadow stacks (x86-64, CET). A shadow stack holds only return addresses, and only calls write to it. If a return's
 * address differs from the one there, the process ends. On a thread with a shadow stack each new coroutine gets one too
 * and has ACO__INSTRUMENTED. The resumer swaps shadow stacks, before it leaves and after the switch back, like the rest
 * of tools.h; a yield does nothing more than usual. The jump between the stacks itself runs on one shadow stack, which
 * is no problem, because a jump does not use it.
 *
 *   map                             token           bottom           map + sz
 *   | ... | return addresses ... | restore token | aco__returned |
 *
 * A shadow stack that is not in use has a restore token below its last entry: the address right above the token, with
 * bit 0 set. Only the kernel and saveprevssp can write a token. rstorssp accepts nothing else, and each token once.
 * Sources: Intel SDM volume 2, RSTORSSP, SAVEPREVSSP, INCSSP; Linux, Documentation/arch/x86/shstk.rst. */
#ifndef ACO_SHADOW_H
#define ACO_SHADOW_H

#include "tools/tools.h"

#ifdef ACO__SHADOW_STACKS
#define ACO__SWITCHES_SHADOW_STACKS 1

struct aco__shadow {
    uintptr_t token; /* the token's address while the coroutine does not run */
    void *map;
    size_t sz;
};

/* Gives the new coroutine `co` a shadow stack if the calling thread has one. 0, or aco__fail(). */
ACO__HIDDEN int aco__shadow_new(aco_t *co, int fatal, const char *call);
ACO__HIDDEN void aco__shadow_free(aco__cold_t *cold);

/* Always inlined: a function that swapped shadow stacks would return with the wrong one. */
#define ACO__SHADOW_INLINE static inline __attribute__((always_inline))
/* For functions that swap and then switch: no part of them may be inlined. */
#define ACO__SHADOW_NOINLINE __attribute__((noinline))

ACO__SHADOW_INLINE uintptr_t aco__shadow_pointer(void)
{
    uintptr_t pointer = 0;
    ACO__SHADOW_POINTER(pointer);
    return pointer;
}

/* Switches to the shadow stack with this token, and leaves a token on the current one. */
ACO__SHADOW_INLINE void aco__shadow_swap(uintptr_t token)
{
    __asm__ volatile("rstorssp (%0)\n\t"
                     "saveprevssp"
                     : : "r"(token) : "memory", "cc");
}

/* The address where saveprevssp will write the token of the current shadow stack. */
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

#ifdef ACO__INVARIANTS
/* Whether its token is on it. */
static inline int aco__shadow_is_idle(const struct aco__shadow *shadow)
{
    return shadow->token - (uintptr_t)shadow->map < shadow->sz;
}
#endif

ACO__SHADOW_INLINE void aco__shadow_enter(const aco_t *co, aco__resumer_state_t *resumer_state)
{
    const struct aco__shadow *shadow = aco__shadow_of(co);
    resumer_state->shadow = 0;
    if (shadow) {
        ACO__ASSERT(aco__shadow_is_idle(shadow));
        resumer_state->shadow = aco__shadow_next_token();
        aco__shadow_swap(shadow->token);
    }
}

/* The shadow stack of `co` is the current one. If `co` has ended, this pops everything except `bottom`: the coroutine
 * may be restarted. */
ACO__SHADOW_INLINE void aco__shadow_empty_if_ended(const aco_t *co)
{
    const struct aco__shadow *shadow = aco__shadow_of(co);
    uintptr_t n, step;
    if (!shadow || aco__status(co) != ACO__ENDED)
        return;
    for (n = ((uintptr_t)shadow->map + shadow->sz - aco__shadow_pointer()) / sizeof(uint64_t) - 1; n; n -= step) {
        step = n < 255 ? n : 255; /* incsspq uses 8 bits of its operand */
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
        ACO__ASSERT(aco__shadow_is_idle(next));
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
