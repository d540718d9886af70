/* Links. The bytes that are sent leave one after the other, at the link's bandwidth, and then travel for its latency.
 * Headers count as nothing: so do requests for connections, ends and resets. */
#include "sim/wire.h"
#include "base/reserved.h"
#include "sim/arrivals.h"
#include "sim/draw.h"
#include "sim/world.h"

#include "aco/detail/for_libraries.h"

#include <errno.h>

enum { LARGEST_QUEUE = 1 << 30 };
static const int64_t LARGEST_BANDWIDTH = (int64_t)1000 * 1000 * 1000 * 1000;

int aco__sim_happens(aco_sim_t *sim, double chance)
{
    return chance > 0 &&
           aco__sim_decide(sim, ACO__SIM_FAULTS, (uint64_t)aco__draw_chance(&sim->arrivals.draws, chance), 2);
}

int aco__sim_loses(aco_sim_t *sim, const aco__sim_wire_t *wire)
{
    return wire->is_cut || wire->from->is_dark || wire->to->is_dark || aco__sim_happens(sim, wire->link.loss);
}

/* How long so many bytes take to leave. */
static int64_t time_of(const aco__sim_wire_t *wire, int64_t n)
{
    int64_t bandwidth = wire->link.bandwidth;
    return bandwidth ? n * ACO_SECOND / bandwidth + (n * ACO_SECOND % bandwidth != 0) : 0;
}

int64_t aco__sim_room_at(const aco_sim_t *sim, const aco__sim_wire_t *wire, size_t n)
{
    int64_t room = wire->link.queue - (int64_t)n;
    if (!wire->link.bandwidth || wire->free_at <= sim->now)
        return sim->now;
    return wire->free_at - time_of(wire, room > 0 ? room : 0);
}

int64_t aco__sim_travel(aco_sim_t *sim, aco__sim_wire_t *wire, size_t n)
{
    const aco_sim_range_t *latency = &wire->link.latency;
    if (wire->free_at < sim->now)
        wire->free_at = sim->now;
    wire->free_at += time_of(wire, (int64_t)n);
    return wire->free_at + latency->min + (int64_t)aco__sim_chance(sim, (uint64_t)(latency->max - latency->min) + 1);
}

/* NULL: nothing is wrong. */
static const char *what_is_wrong(const aco_sim_link_t *link)
{
    if (!aco__sim_is_latency(&link->latency))
        return "the latency is out of range";
    if (!aco__sim_is_chance(link->loss) || !aco__sim_is_chance(link->duplicates) ||
        !aco__sim_is_chance(link->reordering) || !aco__sim_is_chance(link->resets))
        return "a chance is not from 0 to 1";
    if (link->bandwidth < 0 || link->bandwidth > LARGEST_BANDWIDTH)
        return "the bandwidth is out of range";
    if (link->queue < 0 || link->queue > LARGEST_QUEUE)
        return "the queue is out of range";
    if (ACO__RESERVED_IS_SET(link))
        return "a reserved field is not 0";
    return NULL;
}

int aco_sim_link(aco_sim_t *sim, const char *from, const char *to, const aco_sim_link_t *link)
{
    static const char call[] = "aco_sim_link";
    const char *wrong = link ? what_is_wrong(link) : NULL;
    const aco_sim_node_t *ends[2];
    aco_sim_link_t full = link ? *link : aco__sim_usual_link;
    if (aco__sim_ends_named(sim, from, to, ends, call) != 0)
        return -1;
    if (wrong)
        return aco__service_fail(EINVAL, call, wrong);
    if (!full.latency.max)
        full.latency = aco__sim_usual_link.latency;
    if (!full.queue)
        full.queue = aco__sim_usual_link.queue;
    if (aco__sim_rule_add(sim, ends[0], ends[1], &full, 0, NULL) != 0)
        return aco__service_fail(ENOMEM, call, "no memory");
    return 0;
}
