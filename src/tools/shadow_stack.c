/* Creates and frees the shadow stacks of coroutines. The code that swaps them is in shadow_stack.h. */
#include "tools/shadow_stack.h"

int aco__fail_shadow_stack(int fatal, const char *call)
{
    if (aco_likely(!aco__has_shadow_stack()))
        return 0;
    return aco__fail(fatal, ENOTSUP, call, NULL,
                     "the thread has a shadow stack, which the library does not switch here");
}

#ifdef ACO__SHADOW_STACKS

#include <string.h>

/* The size of a shadow stack. The ABI aligns the stack to 16 bytes at calls, so two return addresses are at least 16
 * bytes apart. The additional page is for signal handlers: they may run on another stack, but use this shadow stack. */
static size_t size_for(size_t stack_sz)
{
    size_t page = aco__os_page_size();
    return aco__round_up(stack_sz / 2, page) + page;
}

int aco__shadow_new(aco_t *co, int fatal, const char *call)
{
    size_t sz, room = sizeof(struct aco__shadow);
    struct aco__shadow *shadow;
    if (aco_likely(!aco__has_shadow_stack()))
        return 0;
    shadow = aco__cold_make(co) ? aco__memory_new(&room) : NULL;
    if (!shadow)
        return aco__fail_memory(fatal, call, room);
    sz = size_for(aco__stack_made_with(co->share_stack));
    shadow->map = aco__os_map_shadow_stack(sz);
    if (!shadow->map) {
        int error = errno;
        aco__memory_free(shadow, sizeof *shadow);
        errno = error;
        if (error == ENOMEM || error == EAGAIN)
            return aco__fail_memory(fatal, call, sz);
        return aco__fail(fatal, ENOTSUP, call, NULL,
                         "the thread has a shadow stack, and the system cannot create another: %s", strerror(error));
    }
    shadow->sz = sz;
    shadow->token = (uintptr_t)shadow->map + sz - sizeof(uint64_t);
    aco__upcalls.shadow_begin(shadow->token);
    shadow->token -= sizeof(uint64_t);
    aco__cold(co)->shadow = shadow;
    aco__set_state_byte(co, co->aco__state | ACO__INSTRUMENTED);
    return 0;
}

void aco__shadow_free(aco__cold_t *cold)
{
    struct aco__shadow *shadow = cold->shadow;
    if (!shadow)
        return;
    cold->shadow = NULL;
    aco__os_unmap(shadow->map, shadow->sz);
    aco__memory_free(shadow, sizeof *shadow);
}

#endif
