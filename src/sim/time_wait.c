/* TIME_WAIT: who ends a TCP connection first keeps its address for a minute after the end, as the other side may not
 * have got all of it. Only bind() looks: a new socket needs SO_REUSEADDR, and the old one must have had it, too. The
 * system chooses ports as if none were kept. */
#include "sim/time_wait.h"
#include "sim/world.h"

#include <stdlib.h>

static const int64_t KEPT_FOR = 60 * ACO_SECOND;

struct aco__sim_kept {
    aco__sim_kept_t *next;
    aco__sim_socket_t *socket; /* NULL: its memory is gone */
    const aco_sim_node_t *node;
    aco__sim_address_t address;
    int only_ipv6, reuses_address, reuses_port;
    int64_t until;
};

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
                                  .reuses_port = socket->reuses_port};
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

int aco__sim_port_is_kept(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    for (const aco__sim_kept_t *kept = sim->ports.kept; kept; kept = kept->next) {
        if (kept->until <= sim->now || kept->node != socket->file.node ||
            (kept->reuses_address && socket->reuses_address) || (kept->reuses_port && socket->reuses_port))
            continue;
        if (aco__sim_address_covers(&kept->address, kept->only_ipv6, &socket->local) ||
            aco__sim_address_covers(&socket->local, socket->only_ipv6, &kept->address))
            return 1;
    }
    return 0;
}

void aco__sim_ports_forget(aco_sim_t *sim, const aco_sim_node_t *node)
{
    for (aco__sim_kept_t *kept = sim->ports.kept; kept; kept = kept->next)
        if (kept->node == node)
            kept->until = 0;
    while (!node && sim->ports.kept)
        forget_first(sim);
}
