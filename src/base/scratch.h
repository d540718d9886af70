/* Scratch state: what few threads need. A stack to copy frames on, and records of what is rarely in use. In one mapping:
 *
 *   | guard page | scratch stack | aco__scratch_t | */
#ifndef ACO_SCRATCH_H
#define ACO_SCRATCH_H

#include "base/base.h"

/* Cold data: what few coroutines have. That of a coroutine with a private stack stands at the top of its stack; stack/cold_data.c. */
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
    void *exceptions[3];       /* the C++ run time's, while the coroutine does not run: hooks/exceptions.c */
    void *fiber, *fake_stack;  /* the sanitizers' */
    void *left_fiber;          /* where it left off: NULL, or a generator's */
    const void *left_bottom;   /* likewise, the stack; NULL: its own */
    size_t left_size;
    struct aco__usage *usage;  /* where it is measured, or NULL */
    size_t trimmed_depth;      /* if it is: the stack's depth before a trim */
#ifdef ACO__SHADOW_STACKS
    struct aco__shadow *shadow; /* hooks/shadow_stack.h; NULL: it has none */
#endif
    uint32_t number;           /* in a trace; 0: not traced */
    char own_exceptions;
    char name[ACO_NAME_SIZE];
} aco__cold_t;

typedef struct aco__scratch {
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    aco_share_stack_t stack; /* the scratch stack: a stack's record begins where the stack ends */
#endif
    aco_t runner;            /* switching to it runs on_scratch() of coroutine/resume.c there */
    aco_t trap;              /* stands for the resumer while a coroutine cleans up: a yield is an error */
    aco__context_t restore_trampoline; /* stands for a resumer whose frames were saved: restores them */
    aco_t *target, *from;    /* for on_scratch(): who shall run; who leaves by transfer, or NULL */
    uintptr_t interrupt_flag;
    const char *call;
    void (*injected)(void *); /* what aco__interrupted() shall call */
    void *injected_arg;
    aco__cold_t root_cold;   /* of the thread's root context */
    char has_root_cold;
    unsigned registered;     /* Valgrind's number for the scratch stack, or 0 */
    long traced_as;          /* the thread's number in a trace; 0: it has made no event */
    void *signal_stack;      /* made by aco_explain_overflow(), or NULL */
} aco__scratch_t;

enum { ACO__SCRATCH_STACK = 64 << 10, ACO__SIGNAL_STACK = 64 << 10 }; /* bytes */

/* The calling thread's, made if need be. NULL and errno. */
ACO__HIDDEN aco__scratch_t *aco__scratch(void);

#endif
