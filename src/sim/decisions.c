/* What a run decides at random, as lists. */
#include "sim/decisions.h"

#include "base/invariants.h"

const char *const aco__sim_source_names[ACO__SIM_SOURCES] = {"order",    "turns", "network",
                                                             "scenario", "rare",  "faults",
                                                             "disk",     "threads"};

void aco__decisions_begin(aco__sim_decisions_t *decisions)
{
    for (int i = 0; i < ACO__SIM_SOURCES; i++) {
        decisions->of[i].used = 0;
        if (!decisions->replays)
            decisions->of[i].n = 0;
    }
}

uint64_t aco__decisions_next(aco__sim_decisions_t *decisions, aco__sim_source_t source, uint64_t drawn, uint64_t limit)
{
    aco__sim_choices_t *choices = &decisions->of[source];
    size_t at = choices->used++;
    ACO__ASSERT(!limit || drawn < limit);
    if (!decisions->replays) {
        if (at < choices->room)
            choices->values[choices->n++] = drawn;
        return drawn;
    }
    if (at >= choices->n)
        return 0;
    return limit && choices->values[at] >= limit ? limit - 1 : choices->values[at];
}
