/* Allocates and frees control blocks with their save areas. */
#include "stack/stack.h"

#include <string.h>

enum { MOST_BEHIND_BLOCK = 2048 /* bytes; a larger save area is not behind the block */ };

aco_t *aco__block_new(size_t save_sz)
{
    if (save_sz > SIZE_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    if (aco_unlikely(aco__upcalls.instruments_all)) /* each coroutine then has cold data, and a pointer to it here */
        save_sz += sizeof(void *);
    int separate = save_sz > MOST_BEHIND_BLOCK;
    size_t room = sizeof(aco_t) + (separate ? 0 : save_sz);
    aco_t *co = aco__block_memory_new(&room);
    if (!co)
        return NULL;
    memset(co, 0, sizeof *co);
    co->save_stack.ptr = co + 1;
    co->save_stack.sz = room - sizeof(aco_t);
    if (separate && aco__area_reserve(co, save_sz) != 0) {
        co->aco__state = ACO__DESTROYED;
        aco__memory_free(co, sizeof(aco_t));
        return NULL;
    }
    return co;
}

void aco__block_free(aco_t *co)
{
    ACO__ASSERT(co != aco__running() && co != aco__self()->resuming);
    ACO__ASSERT(!aco__has(co, ACO__PRIVATE) || co->share_stack->owner == co);
    if (aco_unlikely(co->aco__state & ACO__HAS_COLD)) {
        ACO__UPCALL(destroyed, (co));
        aco__cold_free(co);
    }
    if (aco_unlikely(aco__upcalls.share_stacks_are_private) && !aco__has(co, ACO__PRIVATE) && co->share_stack)
        aco__stack_free(co->share_stack);
    if (aco_unlikely(aco__has(co, ACO__INSTRUMENTED)) && !aco__has(co, ACO__PRIVATE))
        ACO__UPCALL(area_freed, (co));
    aco__set_status(co, ACO__DESTROYED);
    if (aco__has(co, ACO__PRIVATE)) {
        co->share_stack = NULL; /* overflow.c reads freed blocks too */
        aco__memory_free(co, ACO__PRIVATE_BLOCK);
    } else {
        aco__area_free(co);
        if (aco__has(co, ACO__FROM_NEW) && aco__task_annex(co))
            aco__memory_free(aco__task_annex(co), ACO__TASK_ANNEX);
        aco__memory_free(co, sizeof(aco_t));
    }
}
