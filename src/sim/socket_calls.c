/* Calls for sockets, by the kind of socket. */
#define _GNU_SOURCE /* S_ISSOCK() */
#include "sim/call_lists.h"
#include "sim/datagram.h"
#include "sim/interest.h"
#include "sim/stream_socket.h"
#include "sim/unix_datagram.h"
#include "sim/waiting.h"
#include "sim/fifo.h"
#include "sim/open_file.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

aco__sim_socket_t *aco__sim_socket_at(aco_sim_t *sim, int fd, const char *call)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, call);
    if (!file || S_ISSOCK(file->type->mode))
        return (aco__sim_socket_t *)file;
    return aco__sim_null_with(ENOTSOCK);
}

/* Whether such a socket is simulated. */
static int is_known(int family, int type, int protocol)
{
    int is_ip = family == AF_INET || family == AF_INET6;
    if (type == SOCK_SEQPACKET)
        return family == AF_UNIX && !protocol;
    if (type == SOCK_STREAM)
        return (is_ip && (!protocol || protocol == IPPROTO_TCP)) || (family == AF_UNIX && !protocol);
    return type == SOCK_DGRAM &&
           ((is_ip && (!protocol || protocol == IPPROTO_UDP)) || (family == AF_UNIX && !protocol));
}

static aco__sim_socket_t *new_socket(aco_sim_t *sim, int family, int type, int flags)
{
    if (type != SOCK_DGRAM)
        return aco__sim_stream_new(sim, family, type, flags);
    return family == AF_UNIX ? aco__sim_unix_datagram_new(sim, flags) : aco__sim_datagram_new(sim, family, flags);
}

int aco__sim_socket(aco_sim_t *sim, int family, int type, int protocol)
{
    const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    aco__sim_socket_t *socket;
    if (!is_known(family, type & ~flags, protocol))
        return aco__sim_fail_with(aco__sim_refuse(sim, "socket"));
    socket = new_socket(sim, family, type & ~flags, (type & SOCK_NONBLOCK) ? O_NONBLOCK : 0);
    return socket ? aco__sim_file_open(sim, &socket->file, (type & SOCK_CLOEXEC) ? FD_CLOEXEC : 0, "socket") : -1;
}

int aco__sim_socketpair(aco_sim_t *sim, int family, int type, int protocol, int *fds)
{
    static const char call[] = "socketpair";
    int first, second, error;
    if (family != AF_UNIX || (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM)
        return aco__sim_fail_with(aco__sim_refuse(sim, call));
    first = aco__sim_socket(sim, family, type, protocol);
    second = first < 0 ? -1 : aco__sim_socket(sim, family, type, protocol);
    if (second < 0) {
        error = errno;
        if (first >= 0)
            (void)aco__sim_close(sim, first);
        return aco__sim_fail_with(error);
    }
    aco__sim_stream_pair(aco__sim_socket_at(sim, first, call), aco__sim_socket_at(sim, second, call));
    fds[0] = first;
    fds[1] = second;
    return 0;
}

int aco__sim_bind(aco_sim_t *sim, int fd, const struct sockaddr *address, socklen_t length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "bind");
    aco__sim_address_t local;
    if (!socket || aco__sim_address_read(socket->family, address, length, &local) != 0)
        return -1;
    return aco__sim_endpoint_bind(sim, socket, &local);
}

int aco__sim_listen(aco_sim_t *sim, int fd, int backlog)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "listen");
    if (!socket)
        return -1;
    if (socket->type == SOCK_DGRAM)
        return aco__sim_fail_with(EOPNOTSUPP);
    if (aco__sim_stream_listen(sim, socket, backlog) != 0)
        return -1;
    aco__sim_note_socket(sim, ACO__NOTED_LISTENS, socket, 0, &socket->local);
    return 0;
}

/* A blocking socket waits for the outcome, with all tasks. */
static int connect_stream(aco_sim_t *sim, aco__sim_socket_t *socket, const struct sockaddr *address, socklen_t length)
{
    int done = aco__sim_stream_connect(sim, socket, address, length), error = errno;
    if (done == 0 || error == EINPROGRESS)
        aco__sim_note_socket(sim, ACO__NOTED_CONNECTS, socket, 0, &socket->remote);
    errno = error;
    if (done == 0 || errno != EINPROGRESS || socket->file.flags & O_NONBLOCK)
        return done;
    while (socket->state == ACO__SIM_CONNECTING)
        if (aco__sim_block(sim, &socket->file, "connect") != 0)
            return -1;
    return aco__sim_stream_connect(sim, socket, address, length);
}

static int connect_datagram(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    return socket->family == AF_UNIX ? aco__sim_unix_datagram_connect(socket, to)
                                     : aco__sim_datagram_connect(sim, socket, to);
}

int aco__sim_connect(aco_sim_t *sim, int fd, const struct sockaddr *address, socklen_t length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "connect");
    aco__sim_address_t to;
    if (!socket)
        return -1;
    if (length < sizeof address->sa_family)
        return aco__sim_fail_with(EINVAL);
    if (address && address->sa_family == AF_UNSPEC)
        return socket->type == SOCK_DGRAM ? connect_datagram(sim, socket, NULL)
                                          : aco__sim_fail_with(aco__sim_refuse(sim, "connect"));
    if (socket->type != SOCK_DGRAM)
        return connect_stream(sim, socket, address, length);
    if (aco__sim_address_read(socket->family, address, length, &to) != 0)
        return -1;
    return connect_datagram(sim, socket, &to);
}

int aco__sim_accept4(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    aco__sim_socket_t *listener = aco__sim_socket_at(sim, fd, "accept4"), *accepted;
    int number = -1;
    if (!listener)
        return -1;
    if (listener->type == SOCK_DGRAM || flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
        return aco__sim_fail_with(listener->type == SOCK_DGRAM ? EOPNOTSUPP : EINVAL);
    for (;;) {
        if (aco__links_first(&listener->accepted)) { /* it stays there if no descriptor is free */
            number = aco__sim_number((flags & SOCK_CLOEXEC) ? FD_CLOEXEC : 0);
            if (number < 0)
                return -1;
        }
        accepted = aco__sim_stream_accept(sim, listener);
        ACO__ASSERT(!accepted == (number < 0));
        if (accepted)
            break;
        if (errno != EAGAIN || listener->file.flags & O_NONBLOCK ||
            aco__sim_block(sim, &listener->file, "accept4") != 0)
            return -1;
    }
    accepted->file.flags |= (flags & SOCK_NONBLOCK) ? O_NONBLOCK : 0;
    if (address)
        aco__sim_address_write(accepted->family, &accepted->remote, address, length);
    aco__sim_note_socket(sim, ACO__NOTED_ACCEPTS, accepted, 0, &accepted->remote);
    return aco__sim_file_open_as(sim, &accepted->file, number, "accept4");
}

int aco__sim_getsockname(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "getsockname");
    if (socket)
        aco__sim_address_write(socket->family, &socket->local, address, length);
    return socket ? 0 : -1;
}

static int has_peer(const aco__sim_socket_t *socket)
{
    if (socket->type == SOCK_DGRAM)
        return socket->family == AF_UNIX ? socket->peer != NULL : socket->remote.port != 0;
    return socket->state == ACO__SIM_CONNECTED && (socket->family == AF_UNIX || !aco__sim_stream_is_over(socket));
}

int aco__sim_getpeername(aco_sim_t *sim, int fd, struct sockaddr *address, socklen_t *length)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "getpeername");
    if (!socket || !has_peer(socket))
        return socket ? aco__sim_fail_with(ENOTCONN) : -1;
    aco__sim_address_write(socket->family, socket->family == AF_UNIX ? &socket->peer->local : &socket->remote, address,
                           length);
    return 0;
}

int aco__sim_shutdown(aco_sim_t *sim, int fd, int how)
{
    aco__sim_socket_t *socket = aco__sim_socket_at(sim, fd, "shutdown");
    if (!socket || how < SHUT_RD || how > SHUT_RDWR)
        return socket ? aco__sim_fail_with(EINVAL) : -1;
    aco__sim_note(sim, ACO__NOTED_SHUTS, socket->file.number, 0, NULL);
    if (socket->type != SOCK_DGRAM)
        return aco__sim_stream_shutdown(sim, socket, how);
    socket->cannot_read |= how != SHUT_WR;
    socket->cannot_write |= how != SHUT_RD;
    aco__sim_notify(&socket->file, ~0u);
    return socket->family == AF_UNIX || socket->remote.family ? 0 : aco__sim_fail_with(ENOTCONN);
}

/* ---- ioctl() ---- */

/* Why a file that is no socket has no such operation. */
static int lacks_operation(const aco__sim_file_t *file)
{
    return aco__sim_is_epoll(file) ? EINVAL : ENOTTY;
}

/* FIONREAD: how much can be read; of datagrams, the first one. 0, or -1 and errno. */
static int count_unread(aco__sim_file_t *file, int *n)
{
    const aco__sim_fifo_t *pipe = aco__sim_pipe_of(file);
    const aco__sim_socket_t *socket = aco__sim_socket_of(file);
    if (pipe)
        *n = (int)aco__sim_fifo_size(pipe);
    else if (S_ISREG(file->type->mode))
        *n = (int)aco__sim_file_rest(file);
    else if (!S_ISSOCK(file->type->mode))
        return aco__sim_fail_with(lacks_operation(file));
    else if (socket->type == SOCK_DGRAM)
        *n = socket->received ? (int)socket->received->n : 0;
    else if (socket->state == ACO__SIM_LISTENS)
        return aco__sim_fail_with(EINVAL);
    else
        *n = (int)aco__sim_stream_unread(socket);
    return 0;
}

/* SIOCATMARK: there is no mark. 0, or -1 and errno. */
static int look_for_mark(aco__sim_file_t *file, int *is_there)
{
    const aco__sim_socket_t *socket = aco__sim_socket_of(file);
    if (!S_ISSOCK(file->type->mode))
        return aco__sim_fail_with(lacks_operation(file));
    if (socket->type != SOCK_STREAM)
        return aco__sim_fail_with(socket->family == AF_UNIX ? EOPNOTSUPP : ENOTTY);
    *is_there = 0;
    return 0;
}

int aco__sim_ioctl(aco_sim_t *sim, int fd, unsigned long operation, void *last)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, "ioctl");
    if (!file)
        return -1;
    switch (operation) {
    case FIONBIO:
        file->flags = *(const int *)last ? file->flags | O_NONBLOCK : file->flags & ~O_NONBLOCK;
        return 0;
    case SIOCATMARK:
        return look_for_mark(file, last);
    case FIONREAD:
        return count_unread(file, last);
    default:
        return aco__sim_fail_with(aco__sim_refuse(sim, "ioctl"));
    }
}
