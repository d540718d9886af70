/* A call that is not simulated: the run fails, and says who made it. */
#include "sim/world.h"

#include "aco/backtrace.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static uint64_t number_of_call(const char *name)
{
    uint64_t number = 0;
    while (*name)
        number = number * 31 + (unsigned char)*name++;
    return number;
}

int aco__sim_refuse(aco_sim_t *sim, const char *call)
{
    const aco_t *co = aco__running();
    const char *name = co ? aco_name(co) : "";
    aco__sim_settle(sim);
    aco__history_note(&sim->history, ACO__SIM_CALL, number_of_call(call), 0);
    if (sim->refusals++ < ACO__SIM_MOST_TOLD) {
        aco__sim_say(sim, "%s() is not simulated; it is called by:", call);
        if (co)
            (void)aco_backtrace_print(co, STDERR_FILENO);
    }
    snprintf(sim->refused_in, sizeof sim->refused_in, "%s%s%s",
             !co     ? "outside of coroutines"
             : *name ? "in coroutine \""
                     : "in a coroutine without a name",
             name, *name ? "\"" : "");
    sim->refused = call;
    aco__self()->message[0] = 0;
    return ENOSYS;
}
