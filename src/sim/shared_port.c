/* Whether a port of TCP is shared. The kernel remembers that for each port, so that a thousandth listener need not be
 * compared with the others: if the last socket to bind or to begin to listen had SO_REUSEPORT, and what it found taken
 * did not hinder it, another one with that option is not compared with them at that address. What they have set since
 * then does not count. Here each of those that have the port remembers the same. */
#include "sim/shared_port.h"
#include "sim/time_wait.h"
#include "sim/world.h"

static int is_at_port(const aco__sim_socket_t *other, const aco__sim_socket_t *socket)
{
    return other->type == SOCK_STREAM && other->local.family == AF_INET6 && other->local.port == socket->local.port &&
           other->file.node == socket->file.node;
}

static int is_kept_at_port(const aco_sim_t *sim, const aco__sim_kept_t *kept, const aco__sim_socket_t *socket)
{
    return kept->until > sim->now && kept->address.port == socket->local.port && kept->node == socket->file.node;
}

/* NULL: nobody has the port. */
static const aco__sim_sharing_t *sharing_of(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    ACO__EACH_LINKED(aco__sim_socket_t, other, aco__sim_with_port(&sim->ports, socket->local.port), same_port)
    if (is_at_port(other, socket))
        return &other->sharing;
    for (const aco__sim_kept_t *kept = sim->ports.kept; kept; kept = kept->next)
        if (is_kept_at_port(sim, kept, socket))
            return &kept->sharing;
    return NULL;
}

static void tell_all(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_sharing_t *sharing)
{
    ACO__EACH_LINKED(aco__sim_socket_t, other, aco__sim_with_port(&sim->ports, socket->local.port), same_port)
    if (is_at_port(other, socket))
        other->sharing = *sharing;
    for (aco__sim_kept_t *kept = sim->ports.kept; kept; kept = kept->next)
        if (is_kept_at_port(sim, kept, socket))
            kept->sharing = *sharing;
    socket->sharing = *sharing;
}

static int matches(const aco__sim_sharing_t *sharing, const aco__sim_socket_t *socket)
{
    return socket->reuses_port && sharing->is_shared &&
           aco__sim_address_covers(&sharing->address, sharing->only_ipv6, &socket->local);
}

int aco__sim_port_is_shared(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    const aco__sim_sharing_t *sharing = sharing_of(sim, socket);
    return sharing && matches(sharing, socket);
}

void aco__sim_port_note(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    const aco__sim_sharing_t *before = sharing_of(sim, socket);
    aco__sim_sharing_t sharing = {socket->reuses_port, socket->local, socket->only_ipv6};
    if (before && matches(before, socket))
        sharing = *before;
    tell_all(sim, socket, &sharing);
}

void aco__sim_port_join(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    const aco__sim_sharing_t *sharing = sharing_of(sim, socket);
    socket->sharing = sharing ? *sharing : (aco__sim_sharing_t){0};
}
