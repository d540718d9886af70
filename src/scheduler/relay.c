/* Waits without a task of their own (aco/detail/relay.h): what is not of the objects they are for. */
#include "scheduler/wait.h"

#include "aco/detail/chooser.h"
#include "aco/detail/relay.h"

static aco__relay_place_t *place_of(aco__waiter_t *waiter)
{
    return (aco__relay_place_t *)(void *)waiter;
}

/* ---- Those of a simulation: a crash finds them ---- */

static void link_relay(aco__chooser_t *chooser, aco__relay_t *relay)
{
    relay->link = &chooser->aco__relays;
    relay->next = chooser->aco__relays;
    if (relay->next)
        relay->next->link = &relay->next;
    chooser->aco__relays = relay;
}

static void unlink_relay(const aco__relay_t *relay)
{
    *relay->link = relay->next;
    if (relay->next)
        relay->next->link = relay->link;
}

void aco__relay_begin(aco__relay_t *relay, void (*woken)(aco__relay_place_t *place))
{
    memset(relay, 0, sizeof *relay);
    relay->wait.task = aco__self()->task;
    relay->wait.kind = ACO__WAIT_RELAY;
    relay->wait.timer.index = ACO__NO_TIMER;
    relay->woken = woken;
    if (aco_unlikely(aco__tasks(aco__self())->chooser != NULL))
        link_relay(aco__tasks(aco__self())->chooser, relay);
}

void aco__relay_close(aco__relay_t *relay)
{
    ACO__ASSERT(!relay->wait.first && !relay->polled);
    if (relay->link)
        unlink_relay(relay);
}

static void abandon_relay(aco__relay_t *relay)
{
    for (aco__waiter_t *place = relay->wait.first; place; place = place->other)
        aco__dequeue(place); /* and stays in the relay's list, so that a leak checker finds its memory */
    if (relay->poller)
        relay->poller->waiters -= relay->polled;
    unlink_relay(relay);
}

void aco__relays_abandon(aco__chooser_t *chooser, const aco_t *task)
{
    aco__relay_t *relay = chooser->aco__relays, *next;
    for (; relay; relay = next) {
        next = relay->next;
        if (relay->wait.task == task)
            abandon_relay(relay);
    }
}

/* After aco__relay_end_all(). Out of line, so that aco__relay_wait() saves no registers. */
ACO__COLD static int has_ended(const aco__relay_t *relay)
{
    return aco__wait_result(&relay->wait);
}

int aco__relay_wait(aco__relay_t *relay, aco__relay_place_t *place, aco__queue_t *queue)
{
    aco__waiter_t *first = relay->wait.first;
    ACO__ASSERT(relay->wait.kind == ACO__WAIT_RELAY && aco__self()->task == relay->wait.task);
    if (aco_unlikely(relay->wait.error != 0))
        return has_ended(relay);
    place->waiter.wait = &relay->wait;
    place->waiter.other = first;
    place->as.previous = NULL;
    if (first)
        place_of(first)->as.previous = place;
    relay->wait.first = &place->waiter;
    aco__enqueue(queue, &place->waiter);
    return ACO__RELAYED;
}

ACO__FORCE_INLINE void take_out(aco__relay_place_t *place)
{
    aco__relay_t *relay = aco__relay_of(place);
    aco__relay_place_t *before = place->as.previous;
    aco__waiter_t *next = place->waiter.other;
    ACO__ASSERT(relay->wait.kind == ACO__WAIT_RELAY && relay->wait.first);
    aco__dequeue(&place->waiter);
    *(before ? &before->waiter.other : &relay->wait.first) = next;
    if (next)
        place_of(next)->as.previous = before;
}

void aco__relay_leave(aco__relay_place_t *place)
{
    take_out(place);
}

void aco__relay_end(aco__relay_place_t *place, int error)
{
    aco__relay_t *relay = aco__relay_of(place);
    take_out(place);
    relay->wait.woken = NULL; /* a channel has set it */
    place->as.error = error;
    relay->woken(place);
}

void aco__relay_end_all(aco__relay_t *relay, int error)
{
    relay->wait.error = error;
    while (relay->wait.first)
        aco__relay_end(place_of(relay->wait.first), error);
}
