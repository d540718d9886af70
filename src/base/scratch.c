/* Scratch state: created at its first use, freed when the thread ends. */
#include "base/scratch.h"

static size_t mapping_size(void)
{
    size_t page = aco__os_page_size();
    return page + ACO__SCRATCH_STACK + aco__round_up(sizeof(aco__scratch_t), page);
}

static void scratch_free(aco__thread_t *self)
{
    aco__scratch_t *scratch = self->scratch;
    size_t page = aco__os_page_size();
    self->scratch = NULL;
    ACO__UPCALL(region_freed, (scratch, sizeof *scratch));
    ACO__UPCALL(deregister_stack, (scratch->registered));
    aco__unmap_guarded((char *)scratch - ACO__SCRATCH_STACK - page, mapping_size(), page);
}

ACO__AT_LOAD static void register_scratch_exit(void)
{
    aco__thread_exits.scratch = scratch_free;
}

aco__scratch_t *aco__scratch(void)
{
    aco__thread_t *self = aco__self();
    aco__scratch_t *scratch = self->scratch;
    size_t page;
    char *map;
    if (aco_likely(scratch != NULL))
        return scratch;
    page = aco__os_page_size();
    map = aco__map(mapping_size());
    if (!map)
        return NULL;
    aco__os_guard(map, page); /* calls there are not deep: a failure to guard is no error */
    scratch = (aco__scratch_t *)(void *)(map + page + ACO__SCRATCH_STACK);
#ifdef ACO__ARRIVES_IN_ASSEMBLY
    scratch->stack.ptr = map + page;
#endif
    ACO__UPCALL(scratch_new, (scratch, (char *)scratch - ACO__ENTRY_BELOW_TOP));
    self->scratch = scratch;
    ACO__UPCALL(region_new, (scratch, sizeof *scratch));
    if (aco__upcalls.register_stack)
        scratch->registered = aco__upcalls.register_stack(map + page, scratch);
    aco__thread_will_end();
    return scratch;
}
