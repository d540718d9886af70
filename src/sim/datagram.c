/* UDP: each datagram travels for its own latency, so one may overtake another. What finds a full queue is lost: the
 * link's or the receiver's. */
#define _GNU_SOURCE /* S_IFSOCK */
#include "sim/datagram.h"
#include "sim/arrivals.h"
#include "sim/interest.h"
#include "sim/passed.h"
#include "sim/wire.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LONGEST = 65507,
    QUEUE = 212992,
    OVERHEAD = 768, /* of a datagram in a queue, as the system counts it */
    HELD_BACK = 4   /* times the longest latency at most, if it is to be overtaken */
};

unsigned aco__sim_datagram_events(aco__sim_file_t *file)
{
    const aco__sim_socket_t *socket = aco__sim_socket_of(file);
    return (socket->received || socket->cannot_read ? ACO__SIM_READABLE : 0) | (socket->cannot_read ? EPOLLRDHUP : 0) |
           (socket->cannot_read && socket->cannot_write ? EPOLLHUP : 0) | (socket->error ? EPOLLERR : 0) |
           ACO__SIM_WRITABLE;
}

ssize_t aco__sim_datagram_receive(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    aco__sim_datagram_t *first = socket->received;
    aco__sim_bytes_t bytes;
    size_t n = aco__sim_parts_size(message), length;
    if (socket->error)
        return aco__sim_fail_with(aco__sim_take_error(socket));
    if (!first) {
        message->msg_namelen = 0;
        return socket->cannot_read && !(file->flags & O_NONBLOCK) && !(flags & MSG_DONTWAIT)
                   ? 0
                   : aco__sim_fail_with(EAGAIN);
    }
    length = first->n;
    if (n > length)
        n = length;
    bytes = (aco__sim_bytes_t){first->bytes, 0, n, SIZE_MAX / 2 + 1};
    aco__sim_bytes_copy(&bytes, message, n);
    message->msg_flags = n < length ? MSG_TRUNC : 0;
    if (message->msg_name && (first->from.family != AF_UNIX || first->from.name_length))
        aco__sim_address_write(socket->family, &first->from, message->msg_name, &message->msg_namelen);
    else
        message->msg_namelen = 0;
    aco__sim_passed_receive(sim, &first->passed, 1, message, flags);
    if (!(flags & MSG_PEEK)) {
        socket->received = first->next;
        socket->received_size -= length + OVERHEAD;
        free(first);
    }
    return (ssize_t)((flags & MSG_TRUNC) ? length : n);
}

static void on_unreachable(aco_sim_t *sim, aco__sim_file_t *file, uint64_t unused)
{
    (void)sim, (void)unused;
    if (aco__sim_socket_of(file)->is_closed || !aco__sim_socket_of(file)->remote.family)
        return;
    aco__sim_socket_of(file)->error = ECONNREFUSED;
    aco__sim_notify(file, EPOLLERR);
}

void aco__sim_datagram_enqueue(aco__sim_socket_t *to, aco__sim_datagram_t *datagram)
{
    aco__sim_datagram_t **last = &to->received;
    while (*last)
        last = &(*last)->next;
    datagram->next = NULL;
    *last = datagram;
    to->received_size += datagram->n + OVERHEAD;
    aco__sim_notify(&to->file, ACO__SIM_READABLE);
}

/* A datagram of the socket arrives; `value` is its address. */
static void on_datagram(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    aco__sim_socket_t *from = aco__sim_socket_of(file), *to;
    aco__sim_datagram_t *datagram = (aco__sim_datagram_t *)(uintptr_t)value;
    *datagram->place = datagram->next;
    if (datagram->next)
        datagram->next->place = datagram->place;
    aco__sim_notify(file, ACO__SIM_WRITABLE);
    to = aco__sim_endpoint_find(from, &datagram->to, &datagram->from);
    if (to && to->received_size + datagram->n + OVERHEAD <= (size_t)to->receive_size) {
        aco__sim_note(sim, ACO__NOTED_BYTES, to->file.number, (int64_t)datagram->n, NULL);
        aco__sim_datagram_enqueue(to, datagram);
        return;
    }
    if (to) {
        aco__sim_note(sim, ACO__NOTED_DROPPED, to->file.number, 0, "its queue is full");
        free(datagram);
        return;
    }
    aco__sim_note(sim, ACO__NOTED_DROPPED, file->number, 0, "nobody receives what it sends");
    if (aco__sim_address_equal(&from->remote, &datagram->to)) {
        aco__sim_wire_t *back = aco__sim_wire_back(from, &datagram->to);
        if (!aco__sim_loses(sim, back))
            aco__sim_later(sim, aco__sim_travel(sim, back, 0), on_unreachable, file, 0);
    }
    free(datagram);
}

static void launch(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_datagram_t *datagram, int64_t at)
{
    datagram->next = socket->coming;
    datagram->place = &socket->coming;
    if (socket->coming)
        socket->coming->place = &datagram->next;
    socket->coming = datagram;
    aco__sim_later(sim, at, on_datagram, &socket->file, (uintptr_t)datagram);
}

/* The link takes it, twice perhaps, or loses it. */
static void send_on(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_datagram_t *datagram)
{
    aco__sim_wire_t *wire = aco__sim_wire_to(socket, &datagram->to);
    aco__sim_datagram_t *copy = NULL;
    size_t sz = sizeof *datagram + datagram->n;
    int64_t at;
    if (aco__sim_room_at(sim, wire, datagram->n) > sim->now || aco__sim_loses(sim, wire)) {
        free(datagram);
        return;
    }
    at = aco__sim_travel(sim, wire, datagram->n);
    if (aco__sim_happens(sim, wire->link.reordering))
        at += (int64_t)aco__sim_chance(sim, (uint64_t)(HELD_BACK * wire->link.latency.max) + 1);
    if (aco__sim_happens(sim, wire->link.duplicates))
        copy = malloc(sz);
    if (copy) {
        memcpy(copy, datagram, sz);
        launch(sim, socket, copy, aco__sim_travel(sim, wire, 0));
    }
    launch(sim, socket, datagram, at);
}

/* Where the message goes: 0, or -1 and errno. */
static int target_of(const aco__sim_socket_t *socket, const struct msghdr *message, aco__sim_address_t *to)
{
    if (!message->msg_name || !message->msg_namelen) {
        *to = socket->remote;
        return to->family ? 0 : aco__sim_fail_with(EDESTADDRREQ);
    }
    if (aco__sim_address_read(socket->family, message->msg_name, message->msg_namelen, to) != 0)
        return -1;
    return to->port ? 0 : aco__sim_fail_with(EINVAL);
}

aco__sim_datagram_t *aco__sim_datagram_make(const struct msghdr *message, size_t n)
{
    aco__sim_datagram_t *datagram = calloc(1, sizeof *datagram + n);
    aco__sim_bytes_t bytes;
    if (!datagram)
        return aco__sim_null_with(ENOMEM);
    bytes = (aco__sim_bytes_t){datagram->bytes, 0, 0, SIZE_MAX / 2 + 1}; /* with room for all */
    (void)aco__sim_bytes_append(&bytes, message, n);
    datagram->n = n;
    return datagram;
}

static ssize_t send_datagram(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    const aco__sim_address_t any = {.family = AF_INET6};
    size_t n = aco__sim_parts_size(message);
    aco__sim_address_t to;
    aco__sim_datagram_t *datagram;
    int error;
    (void)flags;
    if (!socket->same_port.next && aco__sim_endpoint_bind(sim, socket, &any) != 0)
        return -1;
    if (n > LONGEST)
        return aco__sim_fail_with(EMSGSIZE);
    if (target_of(socket, message, &to) != 0 || aco__sim_endpoint_reaches(socket, &to) != 0)
        return -1;
    error = aco__sim_take_error(socket);
    if (error || socket->cannot_write)
        return aco__sim_fail_with(error ? error : EPIPE);
    datagram = aco__sim_datagram_make(message, n);
    if (!datagram)
        return -1;
    datagram->to = to;
    datagram->from = aco__sim_endpoint_source(socket, &to);
    send_on(sim, socket, datagram);
    return (ssize_t)n;
}

static void close_datagram(aco_sim_t *sim, aco__sim_file_t *file)
{
    (void)sim;
    aco__sim_socket_of(file)->is_closed = 1;
    aco__sim_endpoint_release(aco__sim_socket_of(file));
}

static void free_list(aco__sim_datagram_t *list)
{
    while (list) {
        aco__sim_datagram_t *next = list->next;
        aco__sim_passed_free(&list->passed);
        free(list);
        list = next;
    }
}

void aco__sim_datagram_free(aco__sim_file_t *file)
{
    free_list(aco__sim_socket_of(file)->received);
    free_list(aco__sim_socket_of(file)->coming);
    aco__sim_endpoint_release(aco__sim_socket_of(file));
}

static const aco__sim_type_t datagram_type = {S_IFSOCK | 0777,
                                              aco__sim_datagram_events,
                                              aco__sim_datagram_receive,
                                              send_datagram,
                                              close_datagram,
                                              aco__sim_datagram_free,
                                              NULL};

aco__sim_socket_t *aco__sim_datagram_new(aco_sim_t *sim, int family, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_new(sim, &datagram_type, family, SOCK_DGRAM, flags);
    if (socket)
        socket->send_size = socket->receive_size = QUEUE;
    return socket;
}

int aco__sim_datagram_connect(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    memset(&socket->remote, 0, sizeof socket->remote);
    if (!to)
        return 0;
    if (aco__sim_endpoint_choose(sim, socket, to) != 0)
        return -1;
    socket->remote = *to;
    return 0;
}
