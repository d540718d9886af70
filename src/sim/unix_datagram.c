/* Unix sockets of datagrams. What is sent is there at once. A queue has a few places; who is the peer of its own peer
 * may always send. Only a peer may send to a socket that has one. */
#define _GNU_SOURCE /* S_IFSOCK */
#include "sim/unix_datagram.h"
#include "sim/datagram.h"
#include "sim/interest.h"
#include "sim/passed.h"
#include "sim/world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_QUEUED = 11, UNIX_BUFFER = 212992, UNIX_OVERHEAD = 32 };

/* Whether this sender finds no place at that receiver. */
static int finds_no_place(const aco__sim_socket_t *from, const aco__sim_socket_t *to)
{
    int n = 0;
    if (to == from || to->peer == from)
        return 0;
    for (const aco__sim_datagram_t *d = to->received; d; d = d->next)
        n++;
    return n >= MOST_QUEUED;
}

static unsigned unix_datagram_events(aco__sim_file_t *file)
{
    const aco__sim_socket_t *socket = aco__sim_socket_of(file);
    int is_full = socket->peer && finds_no_place(socket, socket->peer);
    return aco__sim_datagram_events(file) & ~(is_full ? (unsigned)ACO__SIM_WRITABLE : 0);
}

static const aco__sim_type_t unix_datagram_type;

/* The senders whose peer it is may find a place. */
static void tell_senders(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    ACO__EACH_LINKED(aco__sim_file_t, file, &sim->opened.files, all)
    if (file->type == &unix_datagram_type && aco__sim_socket_of(file)->peer == socket)
        aco__sim_notify(file, ACO__SIM_WRITABLE);
}

static ssize_t receive_unix_datagram(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    const aco__sim_datagram_t *first = aco__sim_socket_of(file)->received;
    ssize_t n = aco__sim_datagram_receive(sim, file, message, flags);
    if (n >= 0 && first && first != aco__sim_socket_of(file)->received)
        tell_senders(sim, aco__sim_socket_of(file));
    return n;
}

static void leave_peer(aco__sim_socket_t *socket)
{
    aco__sim_socket_t *peer = socket->peer;
    socket->peer = NULL;
    if (peer)
        aco__sim_file_drop(&peer->file);
}

/* The socket has another peer now, or none. What it has not read is gone, and its former peer learns of it. */
static void part_from(aco__sim_socket_t *socket, aco__sim_socket_t *former)
{
    int is_unread = socket->received != NULL;
    while (socket->received) {
        aco__sim_datagram_t *first = socket->received;
        socket->received = first->next;
        aco__sim_passed_close(socket->file.node->sim, &first->passed);
        free(first);
    }
    socket->received_size = 0;
    if (is_unread && !former->is_closed && former->peer == socket) {
        former->error = ECONNRESET;
        aco__sim_notify(&former->file, EPOLLERR);
    }
}

/* Who has this name on the socket's node: NULL and errno. */
static aco__sim_socket_t *socket_with(const aco__sim_socket_t *socket, const aco__sim_address_t *name)
{
    aco__sim_socket_t *found = aco__sim_endpoint_find(socket, name, NULL);
    errno = name->name[0] ? ENOENT : ECONNREFUSED;
    return found;
}

/* 0, or -1 and errno. */
static int read_name(const aco__sim_socket_t *socket, const struct sockaddr *address, socklen_t length,
                     aco__sim_address_t *name)
{
    if (aco__sim_address_read(socket->family, address, length, name) != 0)
        return -1;
    return name->name_length ? 0 : aco__sim_fail_with(EINVAL);
}

/* Why nothing can be sent: an errno; 0: it can. */
static int cannot_send(aco__sim_socket_t *socket, aco__sim_socket_t *to)
{
    if (to->peer && to->peer != socket)
        return EPERM;
    if (to->is_closed) {
        aco__sim_file_hold(&to->file);
        leave_peer(socket);
        part_from(socket, to);
        aco__sim_file_drop(&to->file);
        return ECONNREFUSED;
    }
    if (to->cannot_read)
        return EPIPE;
    return finds_no_place(socket, to) ? EAGAIN : 0;
}

/* `passed`: NULL, or what goes along, which is the receiver's afterwards if all is well. */
static ssize_t send_to_one(aco__sim_socket_t *socket, const struct msghdr *message, aco__sim_passed_t *passed)
{
    aco__sim_socket_t *to;
    size_t n = aco__sim_parts_size(message);
    aco__sim_datagram_t *datagram;
    aco__sim_address_t name;
    int error;
    if (message->msg_namelen && read_name(socket, message->msg_name, message->msg_namelen, &name) != 0)
        return -1;
    if (n + UNIX_OVERHEAD > (size_t)socket->send_size)
        return aco__sim_fail_with(EMSGSIZE);
    error = aco__sim_take_error(socket);
    if (error || socket->cannot_write)
        return aco__sim_fail_with(error ? error : EPIPE);
    to = message->msg_namelen ? socket_with(socket, &name) : socket->peer;
    if (!to)
        return message->msg_namelen ? -1 : aco__sim_fail_with(ENOTCONN);
    error = cannot_send(socket, to);
    if (error)
        return aco__sim_fail_with(error);
    datagram = aco__sim_datagram_make(message, n);
    if (!datagram)
        return -1;
    datagram->from = socket->local;
    datagram->from.family = AF_UNIX;
    aco__sim_passed_append(&datagram->passed, passed, 0, 1);
    aco__sim_datagram_enqueue(to, datagram);
    return (ssize_t)n;
}

static ssize_t send_unix_datagram(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    aco__sim_passed_t *passed;
    ssize_t sent;
    (void)flags;
    if (aco__sim_passed_take(sim, message, &passed) != 0)
        return -1;
    sent = send_to_one(aco__sim_socket_of(file), message, passed);
    if (sent < 0)
        aco__sim_passed_drop(sim, passed);
    return sent;
}

static void close_unix_datagram(aco_sim_t *sim, aco__sim_file_t *file)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    socket->is_closed = 1;
    for (aco__sim_datagram_t *d = socket->received; d; d = d->next)
        aco__sim_passed_close(sim, &d->passed);
    aco__sim_endpoint_release(socket);
    leave_peer(socket);
    tell_senders(sim, socket);
}

static const aco__sim_type_t unix_datagram_type = {S_IFSOCK | 0777,    unix_datagram_events, receive_unix_datagram,
                                                   send_unix_datagram, close_unix_datagram,  aco__sim_datagram_free,
                                                   NULL};

aco__sim_socket_t *aco__sim_unix_datagram_new(aco_sim_t *sim, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_new(sim, &unix_datagram_type, AF_UNIX, SOCK_DGRAM, flags);
    if (socket)
        socket->send_size = socket->receive_size = UNIX_BUFFER;
    return socket;
}

int aco__sim_unix_datagram_connect(aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    aco__sim_socket_t *peer = to ? socket_with(socket, to) : NULL, *former = socket->peer;
    if (to && !peer)
        return to->name_length ? -1 : aco__sim_fail_with(EINVAL);
    if (peer && peer->peer && peer->peer != socket)
        return aco__sim_fail_with(EPERM);
    if (peer)
        aco__sim_file_hold(&peer->file);
    socket->peer = peer;
    if (former) {
        if (former != peer)
            part_from(socket, former);
        aco__sim_file_drop(&former->file);
    }
    aco__sim_notify(&socket->file, ACO__SIM_WRITABLE);
    return 0;
}
