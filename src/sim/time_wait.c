/* TIME_WAIT: who ends a TCP connection first keeps its address for a minute after the end, as the other side may not
 * have got all of it. bind() looks, and listen() does again: a new socket needs SO_REUSEADDR, and the old one must have
 * had it, too. The system chooses ports as if none were kept. */
#include "sim/time_wait.h"
#include "sim/world.h"

#include <stdlib.h>

static const int64_t KEPT_FOR = 60 * ACO_SECOND;

static void forget_first(aco_sim_t *sim)
{
    aco__sim_kept_t *kept = sim->ports.kept;
    sim->ports.kept = kept->next;
    if (kept->socket)
        kept->socket->kept = NULL;
    free(kept);
}

void aco__sim_port_keep(aco_sim_t *sim, aco__sim_socket_t *socket, int64_t since)
{
    aco__sim_kept_t *kept = socket->kept;
    if (!kept) {
        for (int i = 0; i < 2 && sim->ports.kept && sim->ports.kept->until <= sim->now; i++)
            forget_first(sim);
        kept = calloc(1, sizeof *kept);
        if (!kept)
            return; /* it is free too early */
        *kept = (aco__sim_kept_t){.socket = socket,
                                  .node = socket->file.node,
                                  .address = socket->local,
                                  .only_ipv6 = socket->only_ipv6,
                                  .reuses_address = socket->reuses_address,
                                  .reuses_port = socket->reuses_port,
                                  .sharing = socket->sharing};
        *(sim->ports.kept ? &sim->ports.last_kept->next : &sim->ports.kept) = kept;
        sim->ports.last_kept = kept;
        socket->kept = kept;
    }
    kept->until = since + KEPT_FOR;
}

void aco__sim_port_free(aco__sim_socket_t *socket)
{
    if (socket->kept)
        socket->kept->until = 0;
}

void aco__sim_port_part(aco__sim_socket_t *socket)
{
    if (socket->kept)
        socket->kept->socket = NULL;
    socket->kept = NULL;
}

void aco__sim_ports_forget(aco_sim_t *sim, const aco_sim_node_t *node)
{
    for (aco__sim_kept_t *kept = sim->ports.kept; kept; kept = kept->next)
        if (kept->node == node)
            kept->until = 0;
    while (!node && sim->ports.kept)
        forget_first(sim);
}
