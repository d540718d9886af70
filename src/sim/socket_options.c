/* Options of sockets. One that is not known fails the run. */
#define _GNU_SOURCE /* SO_DOMAIN */
#include "sim/world.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

/* Options that are kept, and have no effect in the simulation. */
static int is_kept(const aco__sim_socket_t *socket, int level, int option)
{
    switch (level) {
    case SOL_SOCKET:
        return option == SO_KEEPALIVE || option == SO_BROADCAST || option == SO_OOBINLINE || option == SO_PRIORITY;
    case IPPROTO_TCP:
        return socket->type == SOCK_STREAM && socket->family != AF_UNIX &&
               (option == TCP_NODELAY || option == TCP_KEEPIDLE || option == TCP_KEEPINTVL || option == TCP_KEEPCNT ||
                option == TCP_USER_TIMEOUT || option == TCP_QUICKACK || option == TCP_CORK);
    case IPPROTO_IP:
        return socket->family == AF_INET && (option == IP_TOS || option == IP_TTL);
    default:
        return 0;
    }
}

static aco__sim_option_t *option_kept(aco__sim_socket_t *socket, int level, int option)
{
    for (int i = 0; i < socket->options_count; i++)
        if (socket->options[i].level == level && socket->options[i].option == option)
            return &socket->options[i];
    return NULL;
}

static int keep_option(aco__sim_socket_t *socket, int level, int option, int value)
{
    aco__sim_option_t *found = option_kept(socket, level, option);
    if (!found && socket->options_count == ACO__SIM_MOST_OPTIONS)
        return aco__sim_fail_with(ENOBUFS);
    if (!found)
        found = &socket->options[socket->options_count++];
    *found = (aco__sim_option_t){level, option, value};
    return 0;
}

static int protocol_of(const aco__sim_socket_t *socket)
{
    return socket->family == AF_UNIX ? 0 : socket->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
}

/* 1: it is one of SOL_SOCKET that the simulation knows. */
static int get_own(aco__sim_socket_t *socket, int option, int *value)
{
#define IS(name, what) \
    case name: \
        *value = what; \
        return 1
    switch (option) {
        IS(SO_ERROR, aco__sim_take_error(socket));
        IS(SO_TYPE, socket->type);
        IS(SO_DOMAIN, socket->family);
        IS(SO_PROTOCOL, protocol_of(socket));
        IS(SO_ACCEPTCONN, socket->state == ACO__SIM_LISTENS);
        IS(SO_REUSEADDR, socket->reuses_address);
        IS(SO_REUSEPORT, socket->reuses_port);
        IS(SO_SNDBUF, socket->send_size);
        IS(SO_RCVBUF, socket->receive_size);
    default:
        return 0;
    }
}

/* One of SOL_SOCKET that is no int, of *n bytes; NULL: it is none. */
static void *structure_of(aco__sim_socket_t *socket, int level, int option, size_t *n)
{
    int is_time = option == SO_RCVTIMEO || option == SO_SNDTIMEO;
    *n = is_time ? sizeof socket->limits[0] : sizeof socket->linger;
    if (level != SOL_SOCKET || (!is_time && option != SO_LINGER))
        return NULL;
    return is_time ? (void *)&socket->limits[option == SO_SNDTIMEO] : &socket->linger;
}

static void store(const void *result, size_t n, void *value, socklen_t *length)
{
    if (*length > n)
        *length = (socklen_t)n;
    memcpy(value, result, *length);
}

/* A unix socket's peer is on the same node, and all nodes are in one process. */
static struct ucred user_of_peer(const aco__sim_socket_t *socket)
{
    if (!socket->has_peer_user)
        return (struct ucred){0, (uid_t)-1, (gid_t)-1};
    return (struct ucred){aco__sim_real.getpid(), geteuid(), getegid()};
}

int aco__sim_getsockopt(aco_sim_t *sim, int fd, int level, int option, void *value, socklen_t *length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "getsockopt");
    const aco__sim_option_t *found = socket ? option_kept(socket, level, option) : NULL;
    int result = found ? found->value : 0;
    size_t n;
    const void *structure;
    if (!socket)
        return -1;
    structure = structure_of(socket, level, option, &n);
    if (structure) {
        store(structure, n, value, length);
        return 0;
    }
    if (level == SOL_SOCKET && option == SO_PEERCRED) {
        const struct ucred user = user_of_peer(socket);
        store(&user, sizeof user, value, length);
        return 0;
    }
    if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY && socket->family == AF_INET6)
        result = socket->only_ipv6;
    else if (!(level == SOL_SOCKET && get_own(socket, option, &result)) && !is_kept(socket, level, option))
        return aco__sim_fail_with(aco__sim_refuse(sim, "getsockopt"));
    store(&result, sizeof result, value, length);
    return 0;
}

/* As the system: twice what was asked for, within limits. */
static int size_of_buffer(int value, int least)
{
    const int most = 212992;
    value = value < 0 || value > most ? most : value;
    return 2 * value < least ? least : 2 * value;
}

static int set_own(aco__sim_socket_t *socket, int option, int value)
{
    switch (option) {
    case SO_REUSEADDR:
        socket->reuses_address = value != 0;
        return 1;
    case SO_REUSEPORT:
        socket->reuses_port = value != 0;
        return 1;
    case SO_SNDBUF:
        socket->send_size = size_of_buffer(value, 4608);
        return 1;
    case SO_RCVBUF:
        socket->receive_size = size_of_buffer(value, 2304);
        return 1;
    default:
        return 0;
    }
}

/* Options that are no int. 1: it is one. */
static int set_structure(aco__sim_socket_t *socket, int level, int option, const void *value, socklen_t length)
{
    size_t n;
    void *structure = structure_of(socket, level, option, &n);
    if (structure && length >= n) {
        memcpy(structure, value, n);
        return 1;
    }
    if (level != SOL_SOCKET || option != SO_ATTACH_FILTER || socket->state != ACO__SIM_LISTENS)
        return 0;
    return socket->is_deaf = 1; /* no filter is simulated but the one that drops what begins a connection */
}

int aco__sim_setsockopt(aco_sim_t *sim, int fd, int level, int option, const void *value, socklen_t length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "setsockopt");
    int number;
    if (!socket)
        return -1;
    if (set_structure(socket, level, option, value, length))
        return 0;
    if (length < sizeof number)
        return aco__sim_fail_with(EINVAL);
    memcpy(&number, value, sizeof number);
    if (level == SOL_SOCKET && option == SO_REUSEPORT && number && socket->family == AF_UNIX)
        return aco__sim_fail_with(EOPNOTSUPP);
    if (level == SOL_SOCKET && set_own(socket, option, number))
        return 0;
    if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY && socket->family == AF_INET6) {
        if (socket->local.family)
            return aco__sim_fail_with(EINVAL);
        socket->only_ipv6 = number != 0;
        return 0;
    }
    if (is_kept(socket, level, option))
        return keep_option(socket, level, option, number);
    return aco__sim_fail_with(aco__sim_refuse(sim, "setsockopt"));
}
