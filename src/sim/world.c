/* The run of the calling thread: its random numbers, and that it fails. */
#include "sim/world.h"
#include "sim/draw.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int64_t LATEST = (int64_t)3600 * 24 * 365 * 30 * ACO_SECOND; /* 32 bits hold it */

static __thread aco_sim_t *current;

aco_sim_t *aco_sim_current(void)
{
    return current;
}

int aco__sim_check_run(const aco_sim_t *sim, const char *call)
{
    return sim && sim == current ? 0 : aco__service_fail(EINVAL, call, "it is not the run of the calling thread");
}

int aco__sim_check_first(const aco_sim_t *sim, const char *call)
{
    if (aco__sim_check_run(sim, call) != 0)
        return -1;
    return sim->threads.running == &sim->threads.first
               ? 0
               : aco__service_fail(EINVAL, call, "another thread than the run's first one has called it");
}

void aco__sim_enter(aco_sim_t *sim)
{
    ACO__ASSERT(!sim || !current); /* one does not begin in another */
    current = sim;
}

void aco__sim_jump(aco_sim_t *sim, int64_t then)
{
    if (then > LATEST) /* the clocks could not show it */
        aco__sim_fail(sim, "tasks sleep for more than thirty years, and nothing else can happen");
    else if (then > sim->now)
        sim->now = then;
    ACO__ASSERT(sim->now >= 0);
    aco__history_note(&sim->history, ACO__SIM_TIME, 0, (uint64_t)sim->now);
}

void aco__sim_say(const aco_sim_t *sim, const char *what, ...)
{
    char text[ACO_SIM_REASON_SIZE + 64];
    va_list list;
    va_start(list, what);
    vsnprintf(text, sizeof text, what, list);
    va_end(list);
    aco__service_warn("simulation", "seed %" PRIu64 ": %s", sim->seed, text);
}

/* Which call of the library was made is known when that has failed: it stores its name for aco_error_message(). */
void aco__sim_settle_refused(aco_sim_t *sim)
{
    const char *message = aco_error_message(), *call = sim->refused;
    int n = (int)strcspn(message, ":");
    char text[ACO_SIM_REASON_SIZE];
    ACO__ASSERT(call && sim == current);
    sim->refused = NULL;
    if (strncmp(message, "aco_", 4) == 0)
        snprintf(text, sizeof text, "%.*s() is not simulated: it needs %s(); it was called %s", n, message, call,
                 sim->refused_in);
    else
        snprintf(text, sizeof text, "%s() is not simulated; it was called %s", call, sim->refused_in);
    if (sim->has_failed && sim->refusals <= ACO__SIM_MOST_TOLD)
        aco__sim_say(sim, "%s", text);
    aco__sim_fail(sim, "%s", text);
}

void aco__sim_fail(aco_sim_t *sim, const char *reason, ...)
{
    va_list list;
    int error = errno;
    ACO__ASSERT(!current || sim == current);
    aco__sim_settle(sim); /* it came first */
    if (sim->has_failed)
        return;
    sim->has_failed = 1;
    va_start(list, reason);
    vsnprintf(sim->reason, sizeof sim->reason, reason, list);
    va_end(list);
    aco__sim_note(sim, ACO__NOTED_FAILS, 0, 0, sim->reason);
    errno = error;
}

int aco_sim_fail(aco_sim_t *sim, const char *reason)
{
    if (aco__sim_check_run(sim, "aco_sim_fail") != 0)
        return -1;
    aco__sim_fail(sim, "%s", reason ? reason : "no reason was given");
    return -1;
}

uint64_t aco_sim_random(aco_sim_t *sim, uint64_t limit)
{
    ACO__ASSERT(sim == current);
    uint64_t drawn = limit ? aco__draw_below(&sim->draws, limit) : aco__draw(&sim->draws);
    drawn = aco__sim_decide(sim, ACO__SIM_SCENARIO, drawn, limit);
    aco__history_note(&sim->history, ACO__SIM_RANDOM, 0, drawn);
    return drawn;
}

int aco__sim_takes(aco_sim_t *sim, double chance)
{
    int takes = aco__draw_chance(&sim->draws, chance);
    ACO__ASSERT(sim == current);
    takes = (int)aco__sim_decide(sim, ACO__SIM_RARE, (uint64_t)takes, 2);
    aco__history_note(&sim->history, ACO__SIM_RANDOM, 0, (uint64_t)takes);
    return takes;
}

uint64_t aco__sim_disk_draw(aco_sim_t *sim, uint64_t limit)
{
    uint64_t drawn = limit ? aco__draw_below(&sim->disk_draws, limit) : aco__draw(&sim->disk_draws);
    return aco__sim_decide(sim, ACO__SIM_DISK, drawn, limit);
}

uint64_t aco_sim_seed(const aco_sim_t *sim)
{
    return sim->seed;
}
