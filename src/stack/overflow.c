/* Explains a fault in a guard page: prints which coroutine's stack has overflowed. */
#include "stack/stack.h"

/* Whether `p` is in the guard page of this stack. */
static int is_guard(const aco_share_stack_t *stack, const void *p)
{
    uintptr_t ptr = (uintptr_t)stack->ptr, at = (uintptr_t)p;
    return stack->guard_page_enabled && at < ptr && at >= ptr - aco__os_page_size();
}

static void explain(const char *call, const aco_t *co, const char *kind, const aco_share_stack_t *stack,
                    const char *cure)
{
    const aco__cold_t *cold = co ? aco__cold(co) : NULL;
    const char *name = cold ? cold->name : "";
    aco__warn(call, co, "%s%s%sits %s stack of %zu bytes (%p to %p) has overflowed: %s", *name ? "\"" : "", name,
              *name ? "\": " : "", kind, aco__stack_made_with(stack), stack->ptr, stack->aco__top, cure);
}

typedef struct search {
    const void *address;
    const aco_share_stack_t *found;
} search_t;

/* A generator's block has the status DESTROYED and has a stack. So does a cached coroutine's, but nothing runs on that
 * stack. A freed block has no stack. */
static int is_overflowed_generator(aco_t *block, void *arg)
{
    search_t *search = arg;
    if (aco__status(block) != ACO__DESTROYED || !aco__has(block, ACO__PRIVATE) || !block->share_stack ||
        !is_guard(block->share_stack, search->address))
        return 0;
    search->found = block->share_stack;
    return 1;
}

/* Runs in a signal handler of a process that is about to end: it changes nothing, and formatting allocates no
 * memory. */
static void explain_fault(const void *address)
{
    const aco_t *co = aco__running();
    search_t search = {address, NULL};
    if (co && is_guard(co->share_stack, address))
        explain("overflow", co, co->share_stack->aco__private ? "private" : "share", co->share_stack,
                co->share_stack->aco__private ? "increase stack_size in aco_options_t"
                                              : "pass a larger size to aco_share_stack_new()");
    else if (aco__self()->heap && aco__blocks_each(is_overflowed_generator, &search))
        explain("overflow", NULL, "generator's private", search.found, "increase stack_size in aco_options_t");
}

int aco_explain_overflow(void)
{
    static const char call[] = "aco_explain_overflow";
    aco__scratch_t *scratch = aco__scratch();
    void *stack = NULL;
    int taken, failed = 0;
    if (!scratch || (!scratch->signal_stack && !(stack = aco__map(ACO__SIGNAL_STACK))))
        return aco__fail_memory(0, call, ACO__SIGNAL_STACK);
    taken = stack ? aco__os_signal_stack(stack, ACO__SIGNAL_STACK) : 0;
    if (taken == 1)
        scratch->signal_stack = stack;
    else if (stack)
        aco__unmap(stack, ACO__SIGNAL_STACK);
    if (taken < 0 && errno == ENOSYS)
        return aco__fail(0, ENOSYS, call, NULL, "the system has no alternate signal stacks");
    if (taken >= 0) {
        aco__lock();
        failed = aco__os_explain_faults(explain_fault);
        aco__unlock();
    }
    if (taken < 0 || failed)
        return aco__fail_memory(0, call, ACO__SIGNAL_STACK);
    return 0;
}
