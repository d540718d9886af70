/* libaco's calls for share stacks. */
#include "coroutine/entry.h"

ACO__COLD aco_share_stack_t *aco_share_stack_new2(size_t sz, char guard_page_enabled)
{
    aco_share_stack_t *stack = aco__stack_new(sz, guard_page_enabled != 0);
    if (!stack)
        aco__die_of_memory("aco_share_stack_new2", sz ? sz : (size_t)ACO__SHARE_SIZE);
    aco__stack_set_return(stack);
    if (stack->guard_page_enabled) { /* whole pages, as libaco promises */
        size_t whole = stack->aco__map_sz - aco__os_page_size();
        ACO__ASSERT(whole >= stack->sz);
        stack->aco__colour += (unsigned)(whole - stack->sz);
        stack->sz = whole;
    }
    return stack;
}

aco_share_stack_t *aco_share_stack_new(size_t sz)
{
    return aco_share_stack_new2(sz, 1);
}

ACO__COLD void aco_share_stack_destroy(aco_share_stack_t *stack)
{
    if (!stack)
        aco__die("aco_share_stack_destroy", NULL, "the share stack is NULL");
    if (aco__stack_is_private(stack))
        aco__die("aco_share_stack_destroy", stack->owner, "owns this stack, which is private: aco_destroy() frees it");
    aco__stack_free_remote(stack);
    aco__stack_check_overflow("aco_share_stack_destroy", stack);
    if (stack->owner)
        aco__die("aco_share_stack_destroy", stack->owner, "has not ended and its frames are on the share stack %p",
                 (void *)stack);
    if (stack->aco__use.started)
        aco__die("aco_share_stack_destroy", NULL,
                 "%zu started coroutine(s) of the share stack %p have neither ended nor been destroyed",
                 stack->aco__use.started, (void *)stack);
    aco__stack_free(stack);
}
