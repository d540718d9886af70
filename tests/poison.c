/* Linked into a test, it overwrites what the library frees, so that who still uses it fails in release code too:
 * control blocks, all other memory, and the used end of stacks. tests/CMakeLists.txt (acorn_poisons_memory): the linker
 * has the library call these. Sanitizers find the same by other means, but not on the paths that their builds do not
 * take (docs/testing.md). */
#include "os/platform.h"

#include "base/slab.h"
#include "stack/stack.h"

#include <string.h>

enum { POISON = 0xdd, FRAMES = 16 << 10 };

void __real_aco__memory_free(void *p, size_t sz);
void __wrap_aco__memory_free(void *p, size_t sz);
void __real_aco__stack_free(aco_share_stack_t *stack);
void __wrap_aco__stack_free(aco_share_stack_t *stack);

/* A freed block keeps its status and its stack: visitors of all blocks read them. */
static void poison_block(aco_t *co)
{
    size_t arg = offsetof(aco_t, arg);
    memset(&co->aco__self, POISON, sizeof co->aco__self);
    memset((char *)co + arg, POISON, aco__slab_of(co)->size - arg);
}

void __wrap_aco__memory_free(void *p, size_t sz)
{
    if (sz <= ACO__SLAB_LARGEST && aco__slab_of(p)->class >= ACO__SLAB_CLASSES)
        poison_block(p);
    else
        memset(p, POISON, sz);
    __real_aco__memory_free(p, sz);
}

/* In the caller's memory also the record behind the frames: that is the caller's again. */
void __wrap_aco__stack_free(aco_share_stack_t *stack)
{
    char *top = stack->aco__top, *low = stack->ptr;
    if ((size_t)(top - low) > FRAMES)
        low = top - FRAMES;
    if (!aco__stack_is_callers(stack)) {
        memset(low, POISON, (size_t)(top - low));
        __real_aco__stack_free(stack);
    } else {
        __real_aco__stack_free(stack);
        memset(low, POISON, (size_t)((char *)(aco__stack_cold(stack) + 1) - low));
    }
}
