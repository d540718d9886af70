/* The layout of a stack.
 *
 *   map                                 head page                                  map + map_sz
 *   | guard page | ptr ... what was asked for | colour: 16 to 57 lines |top| record, 6 lines |
 *                | <----------------- sz bytes ----------------------->  |
 *   or, without a guard page,
 *   | canary line | ptr ...
 *
 * The coroutine's cold data follows the record of a private stack; a task's record (scheduler/task.h) is at the end,
 * below it a word: where the task was spawned.
 *
 * The first return address stands at `aco__top`, just below a cache line boundary. It is the same for every coroutine,
 * so it is written once and never copied. Frames grow down from there.
 *
 * The colour is the number of cache lines between the start of the head page and `top`; the first frames use them. It
 * differs between stacks, so that the tops of many stacks do not fall into the same cache sets. It is at least 1 KiB,
 * so that a coroutine with one or two calls uses one page. ACO_CONFIG_NO_COLOUR (CMake: ACORN_STACK_COLOURS=OFF) gives
 * all stacks the same colour, to measure the gain. */
#include "stack/stack.h"

#include <string.h>

enum { COLOURS = 42, FIRST_COLOUR = 16 };
_Static_assert(sizeof(aco_share_stack_t) + sizeof(aco__cold_t) + sizeof(void *) + ACO__TASK_RECORD <= ACO__RECORD,
               "the records fit their place");
_Static_assert((FIRST_COLOUR + COLOURS) * ACO__CACHE_LINE + ACO__RECORD == ACO__HEAD,
               "colour and records are the head page");
_Static_assert(FIRST_COLOUR * ACO__CACHE_LINE + ACO__RECORD == ACO__LEAST_HEAD, "number 0 has the first colour");

static const uint64_t canary = UINT64_C(0x6b63617473206f63); /* fills the 64 bytes below a stack without a guard page */

aco_share_stack_t *aco__stack_lay_out(char *map, size_t below, size_t sz, unsigned number, int guarded)
{
#ifdef ACO_CONFIG_NO_COLOUR
    size_t colour = FIRST_COLOUR;
    (void)number;
#else
    size_t colour = FIRST_COLOUR + number % COLOURS * 37u % COLOURS; /* all occur; neighbours are far apart */
#endif
    char *top = map + below + sz + colour * ACO__CACHE_LINE;
    aco_share_stack_t *stack = (aco_share_stack_t *)(void *)top;
    ACO__ASSERT((uintptr_t)map % ACO__CACHE_LINE == 0 && (uintptr_t)top % ACO__CACHE_LINE == 0);
    ACO__ASSERT(below >= ACO__CACHE_LINE); /* for the canary */
    memset(top, 0, ACO__RECORD);
    stack->ptr = map + below;
    stack->sz = sz + colour * ACO__CACHE_LINE;
    stack->aco__colour = (unsigned)(colour * ACO__CACHE_LINE);
    stack->guard_page_enabled = (char)guarded;
    stack->aco__map = map;
    stack->aco__top = top - ACO__ENTRY_BELOW_TOP;
    stack->aco__owner_thread = &aco__nobody;
    stack->aco__resumer_context = &aco__no_context;
    if (!guarded)
        for (int i = ACO__CACHE_LINE; i; i -= 8)
            memcpy((char *)stack->ptr - i, &canary, sizeof canary);
    ACO__UPCALL(stack_new, (stack));
    return stack;
}

ACO__COLD static void check_canary(const char *call, const aco_share_stack_t *stack)
{
    for (int i = 1; i <= ACO__CACHE_LINE / 8; i++)
        if (memcmp((char *)stack->ptr - 8 * i, &canary, sizeof canary) != 0)
            aco__die(call, stack->owner, "its %s stack of %zu bytes (%p to %p, no guard page) has overflowed",
                     aco__stack_is_private(stack) ? "private" : "share", aco__stack_made_with(stack), stack->ptr,
                     stack->aco__top);
}

void aco__stack_check_overflow(const char *call, const aco_share_stack_t *stack)
{
    if (!stack->guard_page_enabled)
        check_canary(call, stack);
}
