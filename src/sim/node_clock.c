/* The wall clocks of nodes. The clock of aco_now() is one for all: the scheduler orders all deadlines by it, and tasks
 * hand them to each other. A clock of its own for each task would make a deadline mean another time for who compares
 * it. */
#define _GNU_SOURCE /* CLOCK_REALTIME under -std=c11 */
#include "sim/node.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>
#include <time.h>

int64_t aco__sim_node_skew(const aco_sim_node_t *node)
{
    const int64_t million = 1000000;
    int64_t passed = node->sim->now - node->clock_since;
    return node->clock_offset + passed / million * node->clock_drift + passed % million * node->clock_drift / million;
}

int64_t aco__sim_node_time(const aco_sim_t *sim)
{
    return sim->now + aco__sim_node_skew(sim->nodes.here);
}

int aco_sim_clock(aco_sim_node_t *node, int64_t offset_ns, int drift_ppm)
{
    static const char call[] = "aco_sim_clock";
    const int64_t most = ACO_SECOND * 3600 * 24 * 365 * 10;
    if (aco__sim_node_check(node, call) != 0)
        return -1;
    if (offset_ns < -most || offset_ns > most)
        return aco__service_fail(EINVAL, call, "the offset is more than ten years");
    if (drift_ppm < -100000 || drift_ppm > 100000)
        return aco__service_fail(EINVAL, call, "the clock drifts by more than a tenth");
    node->clock_offset = offset_ns;
    node->clock_drift = drift_ppm;
    node->clock_since = node->sim->now;
    aco__sim_node_note(node, ACO__SIM_CLOCK_SET);
    return 0;
}

int64_t aco_sim_wall_time(const aco_sim_t *sim)
{
    struct timespec now = {0, 0};
    ACO__ASSERT(sim == aco_sim_current());
    (void)sim;
    (void)aco__system.clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * ACO_SECOND + now.tv_nsec;
}
