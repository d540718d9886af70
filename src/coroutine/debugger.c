/* The table by which a debugger finds the coroutines without debug information. tools/acorn_coroutines.py reads it;
 * that script also knows the numbers of the statuses in aco/detail/coroutine.h and of the kinds of waits in
 * scheduler/wait.h. All offsets are in bytes. A change of the fields' order needs a new version number. */
#include "base/slab.h"
#include "coroutine/entry.h"

#ifdef ACO_CONFIG_LIBACO_ONLY
#define ENTRY_OF_NEW NULL
#define OF_WAIT(field) 0
#else
#include "aco/detail/waiter.h"
#define ENTRY_OF_NEW (const void *)(uintptr_t)aco__begin
#define OF_WAIT(field) offsetof(aco__wait_t, field)
#endif

ACO_API extern const struct aco__debug {
    uint32_t version, size;                       /* of this table */
    const void *heaps;                            /* the address of the pointer to the first heap */
    const void *begin, *returned;                 /* the entry of coroutines of aco_new(); the first return address */
    uint16_t heap_next, heap_thread, heap_slabs;
    uint16_t slab_next, slab_fresh, slab_size, slab_first;
    uint16_t state, is_end, share_stack, arg, fp; /* in a control block, which begins with sp, pc, bp, base */
    uint16_t save_ptr, save_sz, save_valid_sz, block_size;
    uint16_t stack_ptr, stack_owner, stack_top, stack_size;
    uint16_t cold_name, name_size; /* in cold data: after a private stack's record, or its address after a save area */
    uint16_t running, resuming, root;        /* in a thread record, which begins with the resumer's sp, pc, bp, base */
    uint16_t task_entry;                     /* in a stack's record */
    uint16_t wait_object, wait_location, wait_kind; /* in what a task waits for */
} aco__debug;

__attribute__((used)) const struct aco__debug aco__debug = {
    2, sizeof(struct aco__debug), &aco__heaps, ENTRY_OF_NEW, aco__returned,
    offsetof(struct aco__heap, next), offsetof(struct aco__heap, thread), offsetof(struct aco__heap, block_slabs),
    offsetof(aco__slab_t, next_block_slab), offsetof(aco__slab_t, fresh), offsetof(aco__slab_t, size), ACO__SLAB_FIRST,
    offsetof(aco_t, aco__state), offsetof(aco_t, is_end), offsetof(aco_t, share_stack), offsetof(aco_t, arg),
    offsetof(aco_t, fp),
    offsetof(aco_t, save_stack.ptr), offsetof(aco_t, save_stack.sz), offsetof(aco_t, save_stack.valid_sz),
    sizeof(aco_t),
    offsetof(aco_share_stack_t, ptr), offsetof(aco_share_stack_t, owner), offsetof(aco_share_stack_t, aco__top),
    sizeof(aco_share_stack_t),
    offsetof(aco__cold_t, name), ACO_NAME_SIZE,
    offsetof(aco__thread_t, running), offsetof(aco__thread_t, resuming), offsetof(aco__thread_t, root),
    offsetof(aco_share_stack_t, aco__task_entry),
    OF_WAIT(object), OF_WAIT(location), OF_WAIT(kind),
};
