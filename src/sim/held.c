/* What a call holds while it waits: a list, so that the crash of its node gives it back. */
#include "sim/held.h"
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>

void aco__sim_hold(aco_sim_t *sim, aco__sim_held_t *held, aco__sim_file_t *file, void *memory)
{
    held->file = file;
    held->memory = memory;
    held->fd = -1;
    if (file)
        aco__sim_file_hold(file);
    aco__links_append(&sim->threads.running->held_in_calls, &held->of_thread);
}

void aco__sim_let_go(aco_sim_t *sim, aco__sim_held_t *held)
{
    int error = errno;
    ACO__ASSERT(held->of_thread.next);
    aco__links_remove(&held->of_thread);
    if (held->file)
        aco__sim_file_drop(held->file);
    if (held->fd >= 0)
        (void)aco__sim_close(sim, held->fd);
    free(held->memory);
    held->memory = NULL;
    errno = error;
}

void aco__sim_let_all_go(aco__sim_thread_t *thread)
{
    aco__links_t *links;
    while ((links = aco__links_first(&thread->held_in_calls)) != NULL)
        aco__sim_let_go(thread->sim, ACO__LINKED(links, aco__sim_held_t, of_thread));
}
