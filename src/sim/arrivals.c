/* The simulated network has no clock of its own. What is due arrives when the run next looks: at each call for
 * descriptors, in the order of the times. */
#include "sim/arrivals.h"
#include "sim/draw.h"
#include "sim/grow.h"
#include "sim/world.h"

static int is_before(const aco__sim_arrival_t *a, const aco__sim_arrival_t *b)
{
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void aco__sim_arrivals_begin(aco_sim_t *sim, uint64_t seed)
{
    aco__sim_arrivals_t *arrivals = &sim->arrivals;
    arrivals->n = 0;
    arrivals->numbers = 0;
    arrivals->draws = seed;
}

void aco__sim_arrivals_end(aco_sim_t *sim)
{
    free(sim->arrivals.heap);
    memset(&sim->arrivals, 0, sizeof sim->arrivals);
}

uint64_t aco__sim_chance(aco_sim_t *sim, uint64_t limit)
{
    return aco__sim_decide(sim, ACO__SIM_NETWORK, aco__draw_below(&sim->arrivals.draws, limit), limit);
}

int aco__sim_one_in(aco_sim_t *sim, uint64_t n)
{
    return (int)aco__sim_decide(sim, ACO__SIM_NETWORK, aco__draw_below(&sim->arrivals.draws, n) == 0, 2);
}

void aco__sim_later(aco_sim_t *sim, int64_t at, void (*fn)(aco_sim_t *, aco__sim_file_t *, uint64_t),
                    aco__sim_file_t *file, uint64_t value)
{
    aco__sim_arrivals_t *arrivals = &sim->arrivals;
    aco__sim_arrival_t arrival = {at, ++arrivals->numbers, fn, file, value}, *heap;
    size_t i = arrivals->n;
    ACO__ASSERT(at >= sim->now);
    heap = aco__sim_grown(arrivals->heap, &arrivals->room, i + 1, sizeof *heap);
    if (!heap) {
        aco__sim_fail(sim, "there is no memory for the network");
        return;
    }
    arrivals->heap = heap;
    aco__sim_file_hold(file);
    aco__sim_note_leaves(sim, file->number, arrival.number);
    arrivals->n++;
    for (; i > 0 && is_before(&arrival, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = arrival;
}

static aco__sim_arrival_t take_first(aco__sim_arrivals_t *arrivals)
{
    aco__sim_arrival_t *heap = arrivals->heap, first = heap[0], last = heap[--arrivals->n];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < arrivals->n; i = child) {
        if (child + 1 < arrivals->n && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return first;
}

void aco__sim_arrive(aco_sim_t *sim)
{
    int64_t now = sim->now;
    while (sim->arrivals.n && sim->arrivals.heap[0].at <= now) {
        aco__sim_arrival_t arrival = take_first(&sim->arrivals);
        sim->now = arrival.at;
        aco__history_note(&sim->history, ACO__SIM_ARRIVAL, arrival.file->number, (uint64_t)arrival.at);
        aco__sim_note_arrives(sim, arrival.number);
        arrival.fn(sim, arrival.file, arrival.value);
        aco__sim_note_arrived(sim, arrival.file->number);
        aco__sim_file_drop(arrival.file);
    }
    sim->now = now;
}
