/* What is done with a seed that has failed: a shorter run is searched, written to a file and shown. */
#include "sim/failing.h"
#include "sim/decision_file.h"
#include "sim/last_words.h"
#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether the run fails in a process of its own as it did before. */
static int fails_again(aco_sim_t *sim, const aco__sim_search_t *search)
{
    if (search->first.has_failed && aco__sim_same_reason(search->first.reason, sim->reason))
        return 1;
    aco__sim_say(sim, "it is not shortened: its repetition %s%.150s",
                 search->first.has_failed ? "fails for another reason: " : "does not fail",
                 search->first.has_failed ? search->first.reason : "");
    return 0;
}

static int write_best(aco_sim_t *sim, const aco__sim_search_t *search, const char *program)
{
    aco__sim_recorded_t recorded = {0};
    snprintf(recorded.program, sizeof recorded.program, "%s", program);
    memcpy(recorded.reason, sim->reason, sizeof recorded.reason);
    recorded.seed = sim->seed;
    recorded.turn_ns = sim->options.turn_ns;
    recorded.max_turns = sim->options.max_turns;
    recorded.decisions = search->best;
    if (aco__sim_recorded_write(&recorded, sim->options.shrink) == 0)
        return 0;
    aco__sim_say(sim, "%.200s cannot be written: %s", sim->options.shrink, strerror(errno));
    return -1;
}

static void show_best(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_search_t *search)
{
    search->shared->decisions = search->best;
    aco__last_words_replay(strcmp(sim->options.shrink, "-") == 0 ? NULL : sim->options.shrink);
    sim->trace = sim->options.trace;
    if (aco__sim_attempt(sim, run, search->shared, 1) != 0)
        aco__sim_say(sim, "it cannot be shown: %s", strerror(errno));
    sim->trace = NULL;
    aco__last_words_replay(NULL);
}

void aco__sim_shorten(aco_sim_t *sim, aco__sim_runner_t run, aco__sim_search_t *search, const char *program)
{
    uint64_t most = sim->options.attempts ? (uint64_t)sim->options.attempts : ACO__SIM_ATTEMPTS;
    if (!search->shared && aco__sim_search_begin(search, sim, run) != 0) {
        aco__sim_say(sim, "it is not shortened: %s", strerror(errno));
        return;
    }
    if (!fails_again(sim, search) || aco__sim_search(search, most) != 0 || write_best(sim, search, program) != 0)
        return;
    aco__sim_say(sim, "shortened in %" PRIu64 " runs; choices that are not the simplest: %zu of %zu; %s%.100s",
                 search->attempts, aco__sim_count_choices(&search->best), search->recorded,
                 strcmp(sim->options.shrink, "-") == 0 ? "they are on stdout" : "they are in ",
                 strcmp(sim->options.shrink, "-") == 0 ? "" : sim->options.shrink);
    show_best(sim, run, search);
}

void aco__sim_trace_again(aco_sim_t *sim, aco__sim_runner_t run)
{
    aco__sim_shared_t *shared = aco__sim_shared_new();
    sim->trace = sim->options.trace;
    if (!shared || aco__sim_attempt(sim, run, shared, 0) != 0)
        aco__sim_say(sim, "there is no trace: %s", strerror(errno));
    else if (!shared->outcome.could_run)
        aco__sim_say(sim, "there is no trace, or a part of it: %s", shared->outcome.reason);
    sim->trace = NULL;
    aco__sim_shared_free(shared);
}
