/* Scratch state: what only some threads need. A stack for code that copies frames, and records that are rarely in use,
 * in one mapping:
 *
 *   | guard page | scratch stack | aco__scratch_t | */
#ifndef ACO_SCRATCH_H
#define ACO_SCRATCH_H

#include "base/base.h"

/* Cold data: what only some coroutines need. stack/cold_data.c says where it is stored. */
typedef struct aco__deferred {
    void (*fn)(void *);
    void *arg;
    char *frame;       /* an address in the frame that deferred the call */
    char *owner_sp;    /* that frame's stack pointer as the unwinder sees it; set by aco_cancel() */
    struct aco__deferred *next;
} aco__deferred_t;
typedef struct aco__value {
    void *value;
    uint32_t generation;
    uint32_t size; /* of a coroutine-local variable, freed with the coroutine; 0: the user's pointer */
} aco__value_t;
typedef struct aco__cold {
    void *slot;
    aco__deferred_t *deferred; /* the last deferred call first */
    aco__value_t *values;      /* coroutine-local storage, by the key's index */
    aco__exceptions_t exceptions; /* its own, while it does not run: tools/exceptions.c */
    void *fiber, *fake_stack;  /* the sanitizers' */
    void *left_fiber;          /* the fiber it last ran on: NULL, or a generator's */
    const void *left_bottom;   /* the stack it last ran on; NULL: its own */
    size_t left_size;
    struct aco__usage *usage;  /* its record in tools/profile.c, or NULL: not measured */
    size_t trimmed_depth;      /* if measured: the stack's depth before a trim */
#ifdef ACO__SHADOW_STACKS
    struct aco__shadow *shadow; /* tools/shadow_stack.h; NULL: none */
#endif
    const char *work;          /* what it works on, for profiles; NULL: nothing that is known */
    uint32_t number;           /* its number in a trace; 0: not traced */
    uint16_t values_n;         /* how many `values` there are */
    char own_exceptions;
    char name[ACO_NAME_SIZE];
} aco__cold_t;

typedef struct aco__scratch {
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    aco_share_stack_t stack; /* of the scratch stack: the record begins where the stack ends */
#endif
    aco_t runner;            /* a switch to it runs aco__on_scratch() (coroutine/on_scratch.c) */
    aco_t trap;              /* the resumer of a coroutine that cleans up: a yield is an error */
    aco__context_t restore_trampoline; /* stands for a resumer with saved frames and restores them */
    aco_t *target, *from;    /* for aco__on_scratch(): the coroutine to run; the one that transfers, or NULL */
    uintptr_t interrupt_flag;
    const char *call;
    void (*injected)(void *); /* the injected call: aco__interrupted() makes it */
    void *injected_arg;
    aco__cold_t root_cold;   /* the root context's */
    char has_root_cold;
    unsigned cleanups;       /* of the running coroutine and its resumers: how many clean up */
    unsigned registered;     /* Valgrind's number for the scratch stack, or 0 */
    long traced_as;          /* the thread's number in a trace; 0: no event yet */
} aco__scratch_t;

enum { ACO__SCRATCH_STACK = 64 << 10 }; /* bytes */

/* The calling thread's scratch state, created if needed. NULL and errno on failure. */
ACO__HIDDEN aco__scratch_t *aco__scratch(void);

#endif
