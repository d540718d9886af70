/* Explains a fault in a guard page: prints which coroutine's stack has overflowed. */
#include "stack/stack.h"

#include <string.h>

/* Whether `p` is in the guard page of this stack. */
static int is_guard(const aco_share_stack_t *stack, const void *p)
{
    uintptr_t ptr = (uintptr_t)stack->ptr, at = (uintptr_t)p;
    return stack->guard_page_enabled && at < ptr && at >= ptr - aco__os_page_size();
}

/* Whether a large frame of this stack may have reached `p`, below its guard page. */
static int is_below_guard(const aco_share_stack_t *stack, const void *p)
{
    enum { LARGE_FRAME = 1 << 20 };
    uintptr_t ptr = (uintptr_t)stack->ptr, at = (uintptr_t)p;
    return stack->guard_page_enabled && at < ptr && at >= ptr - LARGE_FRAME;
}

static void explain(const aco_t *co, const char *kind, const aco_share_stack_t *stack, const void *address)
{
    const aco__cold_t *cold = co ? aco__cold(co) : NULL;
    const char *name = cold ? cold->name : "";
    char how[96] = "";
    if (!is_guard(stack, address))
        snprintf(how, sizeof how, ", probably by a large frame: address %p is %zu bytes below it", address,
                 (size_t)((uintptr_t)stack->ptr - (uintptr_t)address));
    aco__warn("overflow", co, "%s%s%sits %s stack of %zu bytes (%p to %p) has overflowed%s: %s",
              *name ? "\"" : "", name, *name ? "\": " : "", kind, aco__stack_made_with(stack), stack->ptr,
              stack->aco__top, how, !co || stack->aco__private ? "increase stack_size in aco_options_t"
                                                               : "pass a larger size to aco_share_stack_new()");
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
        explain(co, co->share_stack->aco__private ? "private" : "share", co->share_stack, address);
    else if (aco__self()->heap && aco__blocks_each(is_overflowed_generator, &search))
        explain(NULL, "generator's private", search.found, address);
    else if (co && is_below_guard(co->share_stack, address))
        explain(co, co->share_stack->aco__private ? "private" : "share", co->share_stack, address);
}

int aco_explain_overflow(void)
{
    static const char call[] = "aco_explain_overflow";
    int failed = aco__signal_stack();
    if (failed && errno == ENOSYS)
        return aco__fail(0, ENOSYS, call, NULL, "the system has no alternate signal stacks");
    if (!failed) {
        aco__lock();
        failed = aco__os_explain_faults(explain_fault, 0) < 0;
        aco__unlock();
    }
    return failed ? aco__fail_memory(0, call, ACO__SIGNAL_STACK) : 0;
}

/* Decides once for the process, at its first thread: a handler that the program installs later may call this one, so
 * this one must not come before it again. ACO_EXPLAIN_OVERFLOW=1: whatever handler is there; 0: not. */
static int is_on_by_default(void)
{
    enum { UNDECIDED, OFF, ON };
    static int decided; /* under the process lock */
    int now;
    aco__lock();
    if (decided == UNDECIDED) {
        const char *wanted = aco__os_environment("ACO_EXPLAIN_OVERFLOW");
        int is_given = wanted && *wanted, is_refused = is_given && strcmp(wanted, "0") == 0;
        decided = !is_refused && aco__os_explain_faults(explain_fault, !is_given) == 1 ? ON : OFF;
    }
    now = decided;
    aco__unlock();
    return now == ON;
}

static void explain_by_default(void)
{
    int saved = errno;
    if (is_on_by_default())
        (void)aco__signal_stack(); /* without one, an overflow ends the process as it would have */
    errno = saved;
}

ACO__AT_LOAD static void register_default(void)
{
    aco__upcalls.thread_begins = explain_by_default;
}
