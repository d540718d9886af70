/* backtrace.c: what other files need of it. */
#ifndef ACO_BACKTRACE_INTERNAL_H
#define ACO_BACKTRACE_INTERNAL_H

#include "tools/tools.h"

#include "aco/detail/inspect.h"

/* What a coroutine works on (aco__work_place()); "": unknown. In handlers, too. */
static inline const char *aco__work(const aco_t *co)
{
    const aco__cold_t *cold = aco__cold(co);
    const char *work = cold ? __atomic_load_n(&cold->work, __ATOMIC_RELAXED) : NULL;
    return work ? work : "";
}

/* In a signal handler that interrupted a coroutine: prints its frames on stderr, at most 32, as "acorn: CALL: #0 …".
 * `handler_returns`: the return address of the handler's first function. Another thread has called the second function
 * before. */
ACO__HIDDEN void aco__backtrace_interrupted(const char *call, const void *handler_returns);
ACO__HIDDEN void aco__backtrace_prepare(void);

/* Stacks that were walked, with where their return addresses lay, in sets by their depth and where they wait. Zeros:
 * none. */
enum { ACO__KNOWN_SETS = 32, ACO__KNOWN_IN_SET = 4 };
typedef struct aco__known_stack {
    int n; /* 0: there is none */
    ptrdiff_t depth, needs; /* needs: bytes from the stack pointer on, up to the last of the return addresses */
    void *at[ACO__MOST_SEEN_FRAMES];
    uint32_t offset[ACO__MOST_SEEN_FRAMES]; /* from the stack pointer, but for the first */
} aco__known_stack_t;
typedef struct aco__known_stacks {
    unsigned next; /* which of a set is forgotten */
    aco__known_stack_t sets[ACO__KNOWN_SETS][ACO__KNOWN_IN_SET];
} aco__known_stacks_t;
/* aco_backtrace() of a task of the thread that does not run; faster if its stack is like one of those. */
ACO__HIDDEN int aco__backtrace_known(const aco_t *task, aco__known_stacks_t *known, void **frames, int n);

#endif
