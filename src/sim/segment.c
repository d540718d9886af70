/* TCP's segments. One that is lost is sent again after 200 milliseconds and the way there and back, then after twice
 * as long, and so on up to two minutes: as Linux does, which gives up after 15 times, too. What follows waits for it,
 * as a receiver's stream does. Acknowledgements take no time, and are not lost.
 *
 * A sender knows how full the link is, as if its control of congestion were perfect: it waits, and nothing is lost. */
#include "sim/segment.h"
#include "sim/arrivals.h"
#include "sim/wire.h"
#include "sim/world.h"

enum { MOST_REPEATS = 15, MOST_DOUBLINGS = 10 };
static const int64_t FIRST_TIMEOUT = 200 * ACO_MILLISECOND, LAST_TIMEOUT = 120 * ACO_SECOND;

aco__sim_wire_t *aco__sim_wire_of(const aco__sim_socket_t *socket)
{
    return aco__sim_wire_to(socket, &socket->remote);
}

int64_t aco__sim_segment_time(aco_sim_t *sim, aco__sim_socket_t *socket, size_t n)
{
    int64_t at = aco__sim_travel(sim, aco__sim_wire_of(socket), n);
    if (at < socket->out.last)
        at = socket->out.last;
    return socket->out.last = at;
}

static void on_room(aco_sim_t *sim, aco__sim_file_t *file, uint64_t unused)
{
    (void)unused;
    aco__sim_socket_of(file)->out.waits_for_link = 0;
    aco__sim_socket_of(file)->out.sender->pump(sim, aco__sim_socket_of(file));
}

int aco__sim_segment_waits(aco_sim_t *sim, aco__sim_socket_t *socket, size_t n)
{
    aco__sim_pipe_t *out = &socket->out;
    int64_t room_at;
    if (out->losses || out->waits_for_link)
        return 1;
    room_at = aco__sim_room_at(sim, aco__sim_wire_of(socket), n);
    if (room_at <= sim->now)
        return 0;
    out->waits_for_link = 1;
    aco__sim_later(sim, room_at, on_room, &socket->file, 0);
    return 1;
}

static int64_t timeout_of(const aco__sim_wire_t *wire, int losses)
{
    int64_t first = FIRST_TIMEOUT + 2 * wire->link.latency.max;
    int doublings = losses < MOST_DOUBLINGS ? losses : MOST_DOUBLINGS;
    int64_t timeout = first << doublings;
    return timeout < LAST_TIMEOUT ? timeout : first < LAST_TIMEOUT ? LAST_TIMEOUT : first;
}

static void on_timeout(aco_sim_t *sim, aco__sim_file_t *file, uint64_t connection);

static void lose(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, size_t n)
{
    aco__sim_pipe_t *out = &socket->out;
    int64_t timeout = timeout_of(aco__sim_wire_of(socket), out->losses);
    aco__sim_later(sim, sim->now + timeout, on_timeout, &socket->file, socket->attempts);
    out->losses++;
    out->lost = fn;
    out->lost_size = n;
}

void aco__sim_segment_lose(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, size_t n)
{
    if (!socket->out.losses)
        lose(sim, socket, fn, n);
}

/* `connection`: which of the socket's. */
static void on_timeout(aco_sim_t *sim, aco__sim_file_t *file, uint64_t connection)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    if (!socket->peer || socket->state != ACO__SIM_CONNECTED || socket->attempts != connection)
        return;
    ACO__ASSERT(socket->out.losses > 0);
    if (socket->out.losses > MOST_REPEATS) {
        socket->out.sender->time_out(socket);
        return;
    }
    aco__sim_segment_send(sim, socket, socket->out.lost, socket->out.lost_size);
    socket->out.sender->pump(sim, socket);
}

void aco__sim_segment_send(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, size_t n)
{
    aco__sim_pipe_t *out = &socket->out;
    aco__sim_wire_t *wire = aco__sim_wire_of(socket);
    if (n && aco__sim_happens(sim, wire->link.resets)) {
        out->sender->cut(sim, socket);
    } else if (aco__sim_loses(sim, wire)) {
        lose(sim, socket, fn, n);
        return;
    } else {
        aco__sim_later(sim, aco__sim_segment_time(sim, socket, n), fn, &socket->peer->file, n);
    }
    out->losses = 0;
}
