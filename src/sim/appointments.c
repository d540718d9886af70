/* Functions that a run calls at a time, or at its end. */
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <stdlib.h>

typedef struct appointment {
    aco_sim_t *sim;
    int64_t at;
    ACO__SWITCHES aco_sim_function_t function;
    void *arg;
} appointment_t;

ACO__SWITCHES static void *keep_appointment(void *arg)
{
    appointment_t is = *(appointment_t *)arg;
    free(arg);
    if (is.at > is.sim->now)
        (void)aco_sleep(is.at - is.sim->now);
    is.function(is.sim, is.arg);
    return NULL;
}

int aco_sim_at(aco_sim_t *sim, int64_t time_ns, aco_sim_function_t function, void *arg)
{
    static const char call[] = "aco_sim_at";
    appointment_t *appointment;
    if (aco__sim_check_first(sim, call) != 0)
        return -1;
    if (!function || time_ns < 0)
        return aco__service_fail(EINVAL, call, function ? "the time is negative" : "the function is NULL");
    appointment = malloc(sizeof *appointment);
    if (!appointment || aco__sim_spawn(sim, &sim->nodes.scenario, NULL, keep_appointment, appointment) != 0) {
        free(appointment);
        return aco__service_fail(ENOMEM, call, "no memory");
    }
    *appointment = (appointment_t){sim, time_ns, function, arg};
    return 0;
}

/* ---- At the end ---- */

struct aco__sim_ending {
    struct aco__sim_ending *next;
    void (*fn)(void *arg);
    void *arg;
};

int aco__sim_at_end(aco_sim_t *sim, void (*fn)(void *arg), void *arg)
{
    struct aco__sim_ending *ending = malloc(sizeof *ending);
    if (!ending)
        return aco__service_fail(ENOMEM, "aco_sim_node", "no memory");
    *ending = (struct aco__sim_ending){sim->endings, fn, arg};
    sim->endings = ending;
    return 0;
}

void aco__sim_endings_call(aco_sim_t *sim)
{
    while (sim->endings) {
        struct aco__sim_ending ending = *sim->endings;
        free(sim->endings);
        sim->endings = ending.next;
        ending.fn(ending.arg);
    }
}
