/* The run of the calling thread: its random numbers, and that it fails. */
#include "sim/world.h"
#include "sim/calls.h"
#include "sim/draw.h"

#include "aco/detail/service.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static __thread aco_sim_t *current;

aco_sim_t *aco_sim_current(void)
{
    return current;
}

void aco__sim_enter(aco_sim_t *sim)
{
    ACO__ASSERT(!sim || !current); /* one does not begin in another */
    current = sim;
}

void aco__sim_fail(aco_sim_t *sim, const char *reason, ...)
{
    va_list list;
    int error = errno;
    ACO__ASSERT(!current || sim == current);
    if (sim->refused)
        aco__sim_settle(sim); /* it came first */
    if (sim->has_failed)
        return;
    sim->has_failed = 1;
    va_start(list, reason);
    vsnprintf(sim->reason, sizeof sim->reason, reason, list);
    va_end(list);
    errno = error;
}

int aco_sim_fail(aco_sim_t *sim, const char *reason)
{
    if (!sim || sim != current)
        return aco__service_fail(EINVAL, "aco_sim_fail", "it is not the run of the calling thread");
    aco__sim_fail(sim, "%s", reason ? reason : "no reason was given");
    return -1;
}

uint64_t aco_sim_random(aco_sim_t *sim, uint64_t limit)
{
    ACO__ASSERT(sim == current);
    uint64_t drawn = limit ? aco__draw_below(&sim->draws, limit) : aco__draw(&sim->draws);
    aco__history_note(&sim->history, ACO__SIM_RANDOM, 0, drawn);
    return drawn;
}

uint64_t aco_sim_seed(const aco_sim_t *sim)
{
    return sim->seed;
}
