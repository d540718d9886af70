/* Sockets, and who has which address. */
#include "sim/endpoint.h"
#include "sim/arrivals.h"
#include "sim/shared_port.h"
#include "sim/time_wait.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { FIRST_CHOSEN = 32768, CHOSEN = 28232 }; /* the system's usual range of ports */

aco__sim_socket_t *aco__sim_socket_new(aco_sim_t *sim, const aco__sim_type_t *kind, int family, int type, int flags)
{
    aco__sim_socket_t *socket = aco__sim_file_new(sim, kind, sizeof *socket, O_RDWR | flags);
    if (!socket)
        return NULL;
    socket->family = family;
    socket->type = type;
    aco__links_empty(&socket->accepted);
    return socket;
}

/* ---- Who has which ---- */

void aco__sim_ports_begin(aco_sim_t *sim)
{
    for (int i = 0; i < ACO__SIM_PORTS; i++)
        aco__links_empty(&sim->ports.by_port[i]);
}

#define EACH_WITH_PORT(sim, port, socket) \
    ACO__EACH_LINKED(aco__sim_socket_t, socket, aco__sim_with_port(&(sim)->ports, port), same_port)

static int covers(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    return aco__sim_address_covers(&socket->local, socket->only_ipv6, to);
}

/* Whether `b` keeps `a` from its address, now that `a` binds or begins to listen: options may have changed between. */
static int conflict(const aco__sim_socket_t *a, const aco__sim_socket_t *b)
{
    if (a == b || a->type != b->type || a->file.node != b->file.node)
        return 0;
    if (!covers(a, &b->local) && !covers(b, &a->local))
        return 0;
    if (a->local.family == AF_UNIX)
        return 1;
    if (a->reuses_port && b->reuses_port)
        return 0;
    return !(a->reuses_address && b->reuses_address && b->state != ACO__SIM_LISTENS);
}

static int has_rival(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    EACH_WITH_PORT(sim, socket->local.port, other)
    if (conflict(socket, other))
        return 1;
    return 0;
}

void aco__sim_endpoint_share(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *address)
{
    socket->local = *address;
    aco__sim_port_join(sim, socket);
    aco__links_append(aco__sim_with_port(&(sim)->ports, address->port), &socket->same_port);
}

/* A port that nobody has, for an address without one. Never `avoided`: a socket would be its own peer. */
static int choose_port(aco_sim_t *sim, aco__sim_socket_t *socket, uint16_t avoided)
{
    uint64_t first = aco__sim_chance(sim, CHOSEN);
    int reuses_address = socket->reuses_address, reuses_port = socket->reuses_port, found = 0;
    socket->reuses_address = socket->reuses_port = 0;
    for (uint64_t i = 0; i < CHOSEN && !found; i++) {
        socket->local.port = (uint16_t)(FIRST_CHOSEN + (first + i) % CHOSEN);
        found = socket->local.port != avoided && !has_rival(sim, socket);
    }
    socket->reuses_address = reuses_address;
    socket->reuses_port = reuses_port;
    socket->port_was_given = 1;
    if (found)
        return 0;
    return aco__sim_fail_with(EADDRINUSE);
}

/* The system chooses five digits. */
static void choose_name(aco_sim_t *sim, aco__sim_address_t *address)
{
    uint64_t number = aco__sim_chance(sim, 1 << 20);
    address->name_length = 6;
    address->name[0] = 0;
    for (int i = 5; i > 0; i--, number /= 16)
        address->name[i] = "0123456789abcdef"[number % 16];
}

aco_sim_node_t *aco__sim_endpoint_node(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    return to->family == AF_UNIX ? socket->file.node : aco__sim_node_at(socket->file.node, &to->ip);
}

/* Whether another one's end keeps the socket from getting its address. */
static int port_is_kept(const aco_sim_t *sim, const aco__sim_socket_t *socket)
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

/* Whether another socket, or the end of one, keeps this one from binding to its address, or from listening there. */
static int is_address_taken(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    if (socket->type != SOCK_STREAM || socket->local.family == AF_UNIX)
        return has_rival(sim, socket);
    return !aco__sim_port_is_shared(sim, socket) && (has_rival(sim, socket) || port_is_kept(sim, socket));
}

int aco__sim_endpoint_listen(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    if (socket->local.family == AF_UNIX)
        return 0;
    if (is_address_taken(sim, socket))
        return aco__sim_fail_with(EADDRINUSE);
    aco__sim_port_note(sim, socket);
    return 0;
}

int aco__sim_endpoint_bind(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *address)
{
    int done = 0, is_unix = address->family == AF_UNIX, has_name = is_unix && socket->local.name_length;
    if (has_name && !address->name_length)
        return 0;
    if (has_name || socket->same_port.next || (!is_unix && socket->state == ACO__SIM_CONNECTED))
        return aco__sim_fail_with(EINVAL);
    if (aco__sim_endpoint_node(socket, address) != socket->file.node)
        return aco__sim_fail_with(EADDRNOTAVAIL);
    socket->local = *address;
    socket->port_was_given = 0;
    if (address->family == AF_UNIX && !address->name_length)
        choose_name(sim, &socket->local);
    if (address->family != AF_UNIX && !address->port) {
        done = choose_port(sim, socket, 0);
    } else if (is_address_taken(sim, socket)) {
        errno = EADDRINUSE;
        done = -1;
    }
    if (done == 0 && socket->type == SOCK_STREAM && !is_unix)
        aco__sim_port_note(sim, socket);
    if (done == 0)
        aco__links_append(aco__sim_with_port(&(sim)->ports, socket->local.port), &socket->same_port);
    else
        memset(&socket->local, 0, sizeof socket->local);
    return done;
}

int aco__sim_endpoint_reaches(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    const aco__sim_address_t *local = &socket->local;
    struct in6_addr unused;
    if (aco__sim_endpoint_node(socket, to) == socket->file.node)
        return 0;
    if (local->family && !aco__sim_address_is_any(local))
        return aco__sim_address_is_loopback(local) ? aco__sim_fail_with(EINVAL) : 0;
    return aco__sim_node_source(socket->file.node, aco__sim_address_is_ipv4(to), &unused) == 0
               ? 0
               : aco__sim_fail_with(ENETUNREACH);
}

/* A loopback address is reached from 127.0.0.1; any other address of the node from itself. */
aco__sim_address_t aco__sim_endpoint_source(const aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    aco__sim_address_t from = *to;
    if (socket->local.family && !aco__sim_address_is_any(&socket->local))
        return socket->local;
    if (aco__sim_address_is_ipv4(to) && aco__sim_address_is_loopback(to)) {
        memcpy(&from.ip.s6_addr[12], loopback, sizeof loopback);
    } else if (aco__sim_endpoint_node(socket, to) != socket->file.node) {
        (void)aco__sim_node_source(socket->file.node, aco__sim_address_is_ipv4(to), &from.ip);
    }
    from.port = socket->local.port;
    return from;
}

int aco__sim_endpoint_choose(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    int is_bound = socket->same_port.next != NULL;
    if (aco__sim_endpoint_reaches(socket, to) != 0)
        return -1;
    socket->local = aco__sim_endpoint_source(socket, to);
    if (is_bound)
        return 0;
    if (choose_port(sim, socket, to->port) == 0) {
        aco__sim_port_join(sim, socket);
        aco__links_append(aco__sim_with_port(&(sim)->ports, socket->local.port), &socket->same_port);
        return 0;
    }
    memset(&socket->local, 0, sizeof socket->local);
    return aco__sim_fail_with(EADDRNOTAVAIL);
}

void aco__sim_endpoint_release(aco__sim_socket_t *socket)
{
    aco__links_remove(&socket->same_port);
}

/* How well the socket suits: 0: it does not get this. */
static int suits(const aco__sim_socket_t *socket, const aco__sim_address_t *to, const aco__sim_address_t *from)
{
    if (socket->is_closed || !covers(socket, to))
        return 0;
    if (socket->type != SOCK_DGRAM)
        return socket->state != ACO__SIM_LISTENS ? 0 : aco__sim_address_equal(&socket->local, to) ? 2 : 1;
    if (socket->remote.family) {
        const aco__sim_address_t *peer = &socket->remote;
        int is_of_peer = from && memcmp(&peer->ip, &from->ip, sizeof peer->ip) == 0;
        return is_of_peer && (!peer->port || peer->port == from->port) ? 3 : 0;
    }
    return aco__sim_address_equal(&socket->local, to) ? 2 : 1;
}

aco__sim_socket_t *aco__sim_endpoint_find(const aco__sim_socket_t *from, const aco__sim_address_t *to,
                                          const aco__sim_address_t *source)
{
    const aco_sim_node_t *node = aco__sim_endpoint_node(from, to);
    aco__sim_socket_t *best = NULL;
    int best_suits = 0;
    uint64_t equals = 0;
    EACH_WITH_PORT(node->sim, to->port, socket)
    {
        int how = socket->file.node == node && socket->type == from->type ? suits(socket, to, source) : 0;
        if (!how || how < best_suits)
            continue;
        equals = how > best_suits ? 1 : equals + 1;
        if (equals == 1 || aco__sim_one_in(node->sim, equals)) /* each that shares a port is equally likely */
            best = socket;
        best_suits = how;
    }
    return best;
}
