/* Creates and frees stacks: private ones from pools where their size allows it, share stacks in mappings of their
 * own. */
#include "stack/stack.h"

static unsigned stacks_made; /* selects the colour of the next one; atomic */

aco_share_stack_t *aco__stack_new(size_t sz, int guarded)
{
    size_t page = aco__os_page_size(), below = guarded ? page : ACO__CACHE_LINE, pages, map_sz;
    aco_share_stack_t *stack;
    int is_short; /* what rounding up to pages adds is enough for the head */
    char *map;
    if (sz > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    sz = sz == 0 ? (size_t)ACO__SHARE_SIZE : sz < ACO__LEAST_STACK ? (size_t)ACO__LEAST_STACK : sz;
    sz = aco__round_up(sz, ACO__CACHE_LINE);
    pages = aco__round_up(sz, page);
    is_short = guarded && pages - sz >= ACO__LEAST_HEAD;
    if (guarded && !is_short)
        sz = pages;
    map_sz = is_short ? below + pages : aco__round_up(below + sz + ACO__HEAD, page);
    map = aco__map(map_sz);
    if (!map)
        return NULL;
    if (guarded && aco__os_guard(map, page) != 0) {
        aco__unmap(map, map_sz);
        return NULL;
    }
    stack = aco__stack_lay_out(map, below, sz,
                               is_short ? 0 : __atomic_fetch_add(&stacks_made, 1, __ATOMIC_RELAXED), guarded);
    stack->aco__map_sz = map_sz;
    return stack;
}

#ifndef ACO_CONFIG_LIBACO_ONLY
aco_share_stack_t *aco__stack_new_private(aco_pool_t *pool, size_t sz, int guarded)
{
    aco_share_stack_t *stack;
    sz = sz ? sz : ACO__PRIVATE_SIZE;
    if (guarded && aco__pool_has(sz)) {
        stack = aco__pool_acquire(pool, sz);
    } else {
        stack = aco__stack_new(guarded ? aco__round_up(sz, aco__os_page_size()) : sz, guarded);
        if (stack)
            stack->aco__cacheable = guarded && !pool && sz == ACO__PRIVATE_SIZE;
    }
    if (stack)
        stack->aco__private = 1;
    return stack;
}

aco_share_stack_t *aco__stack_in(void *memory, size_t sz)
{
    size_t before = -(uintptr_t)memory % ACO__CACHE_LINE;
    size_t room = (sz - before - ACO__CACHE_LINE - ACO__HEAD) & ~(size_t)(ACO__CACHE_LINE - 1);
    aco_share_stack_t *stack = aco__stack_lay_out((char *)memory + before, ACO__CACHE_LINE, room,
                                                  __atomic_fetch_add(&stacks_made, 1, __ATOMIC_RELAXED), 0);
    stack->aco__map = NULL;
    stack->aco__private = 1;
    return stack;
}

aco_share_stack_t *aco__stack_for_one(aco_share_stack_t *stack)
{
    static int said; /* atomic */
    aco_share_stack_t *own;
    if (aco_likely(!aco__upcalls.share_stacks_are_private))
        return stack;
    own = aco__stack_new_private(NULL, aco__stack_made_with(stack), stack->guard_page_enabled);
    if (!own)
        return NULL;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        aco__warn("share stacks", NULL,
                  "under AddressSanitizer each coroutine on one has its own stack of the same size (said once)");
    own->aco__private = own->aco__cacheable = 0;
    own->aco__home.instead_of = stack;
    return own;
}
#endif

void aco__stack_free(aco_share_stack_t *stack)
{
    ACO__UPCALL(stack_freed, (stack));
#ifndef ACO_CONFIG_LIBACO_ONLY
    if (aco__stack_is_callers(stack))
        return;
    if (stack->aco__region) {
        aco__pool_release(stack);
        return;
    }
#endif
    ACO__ASSERT((size_t)((char *)stack->ptr - (char *)stack->aco__map) ==
                (stack->guard_page_enabled ? aco__os_page_size() : (size_t)ACO__CACHE_LINE));
    ACO__ASSERT((size_t)((char *)stack - (char *)stack->aco__map) + ACO__RECORD <= stack->aco__map_sz);
    aco__unmap_guarded(stack->aco__map, stack->aco__map_sz, stack->guard_page_enabled ? aco__os_page_size() : 0);
}
