/* Streams of bytes.
 *
 * TCP. Requests for connections, segments, ends and resets each travel for a latency; those of one direction arrive in
 * order (segment.c). An acknowledgement takes no time: the sender knows at once what has arrived, and how much room the
 * peer has. A segment has a random length. There is no Nagle's algorithm and no urgent data.
 *
 * Unix sockets. What is sent is there at once. */
#define _GNU_SOURCE /* S_IFSOCK */
#include "sim/stream_socket.h"
#include "sim/arrivals.h"
#include "sim/draw.h"
#include "sim/interest.h"
#include "sim/passed.h"
#include "sim/wire.h"
#include "sim/segment.h"
#include "sim/time_wait.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST_SEGMENT = 65536, SMALLEST_BUFFER = 4096, BUFFER_DOUBLINGS = 7, MOST_TRIES = 7, MOST_ANSWERS = 5 };
static const unsigned ANY = ~0u;

static int is_unix(const aco__sim_socket_t *socket)
{
    return socket->family == AF_UNIX;
}

/* Each send is a record, which has its length before it in the queue. */
static int has_records(const aco__sim_socket_t *socket)
{
    return socket->type == SOCK_SEQPACKET;
}

int aco__sim_stream_is_over(const aco__sim_socket_t *socket)
{
    return socket->state == ACO__SIM_RESET || (socket->has_end && socket->out.end_has_arrived);
}

/* ---- What is sent ---- */

/* What still arrives concerns nobody: both are closed, or there is no connection any more. */
static void part(aco__sim_socket_t *socket)
{
    aco__sim_socket_t *peer = socket->peer;
    ACO__ASSERT(peer->peer == socket);
    socket->peer = peer->peer = NULL;
    aco__sim_file_drop(&peer->file);
    aco__sim_file_drop(&socket->file);
}

static size_t room_to_write(const aco__sim_socket_t *socket)
{
    size_t used = socket->out.bytes.n - (is_unix(socket) ? 0 : socket->out.arrived), size = (size_t)socket->send_size;
    return used < size ? size - used : 0;
}

/* Whether that is enough to tell. */
static int is_writable(const aco__sim_socket_t *socket)
{
    size_t size = (size_t)socket->send_size, room = room_to_write(socket);
    return is_unix(socket) ? room >= size - size / 4 : room >= size / 3;
}

static void tell_of_room(aco__sim_socket_t *socket)
{
    if (!socket->is_closed && (is_unix(socket) || socket->lacks_room) && is_writable(socket)) {
        socket->lacks_room = 0;
        aco__sim_notify(&socket->file, ACO__SIM_WRITABLE);
    }
}

static void on_reset(aco_sim_t *sim, aco__sim_file_t *file, uint64_t connection);
static void pump(aco_sim_t *sim, aco__sim_socket_t *socket);

/* The socket has no connection any more. The peer gets what has arrived there. */
static void drop_connection(aco__sim_socket_t *socket, int error)
{
    socket->state = ACO__SIM_RESET;
    socket->error = error;
    socket->cannot_read = socket->cannot_write = 1;
    socket->out.sent = socket->out.arrived;
    aco__sim_port_free(socket);
    if (socket->port_was_given)
        aco__sim_endpoint_release(socket);
    if (!socket->is_closed)
        aco__sim_notify(&socket->file, ANY);
}

/* Nobody sends a reset again, but each segment is answered by one. */
static void reset_peer(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    aco__sim_socket_t *peer = socket->peer;
    if (!peer)
        return;
    socket->has_lost_reset = aco__sim_loses(sim, aco__sim_wire_of(socket));
    if (!socket->has_lost_reset)
        aco__sim_later(sim, aco__sim_segment_time(sim, socket, 0), on_reset, &peer->file, peer->attempts);
}

/* The network resets the connection on its way. */
static void cut(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    aco__sim_socket_t *peer = socket->peer;
    aco__sim_later(sim, aco__sim_segment_time(sim, socket, 0), on_reset, &peer->file, peer->attempts);
    aco__sim_later(sim, aco__sim_segment_time(sim, peer, 0), on_reset, &socket->file, socket->attempts);
}

/* What the socket has sent was lost too often. */
static void time_out(aco__sim_socket_t *socket)
{
    drop_connection(socket, ETIMEDOUT);
    socket->has_lost_reset = 1;
}

/* Whether what has arrived finds a connection. */
static int finds_connection(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    if (!socket->peer || socket->peer->state == ACO__SIM_RESET)
        return 0;
    if (socket->state == ACO__SIM_RESET && socket->has_lost_reset)
        reset_peer(sim, socket);
    return socket->state != ACO__SIM_RESET;
}

/* Whether a machine without power does not get it. Its sender sends it again. */
static int is_lost_in_the_dark(aco_sim_t *sim, aco__sim_socket_t *socket, aco__sim_arrival_fn_t fn, uint64_t n)
{
    if (!socket->file.node->is_dark)
        return 0;
    if (socket->peer && socket->peer->state == ACO__SIM_CONNECTED)
        aco__sim_segment_lose(sim, socket->peer, fn, n);
    return 1;
}

static void on_segment(aco_sim_t *sim, aco__sim_file_t *file, uint64_t n)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file), *sender = socket->peer;
    if (is_lost_in_the_dark(sim, socket, on_segment, n) || !finds_connection(sim, socket))
        return;
    if (socket->is_closed || (socket->cannot_read && socket->out.has_sent_end)) { /* nobody will read it */
        reset_peer(sim, socket);
        drop_connection(socket, socket->is_closed ? 0 : ECONNRESET);
        return;
    }
    sender->out.arrived += n;
    aco__sim_note(sim, ACO__NOTED_BYTES, file->number, (int64_t)n, NULL);
    ACO__ASSERT(sender->out.arrived <= sender->out.sent && sender->out.sent <= sender->out.bytes.n);
    aco__sim_notify(file, ACO__SIM_READABLE);
    tell_of_room(sender);
    pump(sim, sender);
}

static void on_end(aco_sim_t *sim, aco__sim_file_t *file, uint64_t unused)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file), *sender = socket->peer;
    (void)unused;
    if (is_lost_in_the_dark(sim, socket, on_end, 0) || !finds_connection(sim, socket))
        return;
    aco__sim_note(sim, ACO__NOTED_END, file->number, 0, NULL);
    socket->has_end = 1;
    socket->end_came = sim->now;
    if (socket->kept && socket->has_ended_first)
        aco__sim_port_keep(sim, socket, sim->now);
    else
        aco__sim_port_free(socket);
    sender->out.end_has_arrived = 1;
    if (!socket->is_closed)
        aco__sim_notify(file, ANY);
    if (!sender->is_closed && aco__sim_stream_is_over(sender))
        aco__sim_notify(&sender->file, ANY);
}

/* `connection`: which of the socket's. */
static void on_reset(aco_sim_t *sim, aco__sim_file_t *file, uint64_t connection)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    if (socket->state != ACO__SIM_CONNECTED || socket->attempts != connection || aco__sim_stream_is_over(socket))
        return;
    aco__sim_note(sim, ACO__NOTED_RESET, file->number, 0, NULL);
    drop_connection(socket, socket->has_end ? EPIPE : ECONNRESET);
}

/* The length of the next segment; 0: the peer has no room. */
static size_t choose_length(aco_sim_t *sim, const aco__sim_socket_t *socket)
{
    const aco__sim_pipe_t *out = &socket->out;
    size_t n = out->bytes.n - out->sent, window = (size_t)socket->peer->receive_size;
    window = out->sent < window ? window - out->sent : 0;
    if (!socket->peer->is_closed && n > window)
        n = window;
    if (n > LARGEST_SEGMENT)
        n = LARGEST_SEGMENT;
    return n > 1 && aco__sim_one_in(sim, 4) ? 1 + (size_t)aco__sim_chance(sim, n) : n;
}

/* Sends what the peer has room for, and then the end. */
static void pump(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    aco__sim_pipe_t *out = &socket->out;
    size_t n;
    if (!socket->peer || socket->state != ACO__SIM_CONNECTED)
        return;
    while ((n = out->losses ? 0 : choose_length(sim, socket)) > 0 && !aco__sim_segment_waits(sim, socket, n)) {
        out->sent += n;
        aco__sim_segment_send(sim, socket, on_segment, n);
    }
    if (socket->cannot_write && !out->has_sent_end && out->sent == out->bytes.n && !out->losses) {
        out->has_sent_end = 1;
        socket->has_ended_first = !socket->has_end;
        aco__sim_segment_send(sim, socket, on_end, 0);
    }
}

/* ---- Reading, writing ---- */

static unsigned stream_events(aco__sim_file_t *file)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    int is_fresh = socket->state == ACO__SIM_FRESH, is_over = aco__sim_stream_is_over(socket);
    int reads_end = socket->cannot_read || socket->has_end;
    unsigned events = socket->error ? EPOLLERR : 0;
    if (socket->state == ACO__SIM_LISTENS)
        return events | (aco__links_first(&socket->accepted) ? ACO__SIM_READABLE : 0) |
               (is_unix(socket) && socket->cannot_read ? ACO__SIM_READABLE | EPOLLRDHUP : 0) |
               (is_unix(socket) && socket->cannot_read && socket->cannot_write ? EPOLLHUP : 0);
    if (is_fresh || is_over || (reads_end && socket->cannot_write))
        events |= EPOLLHUP;
    if (reads_end)
        events |= ACO__SIM_READABLE | EPOLLRDHUP;
    if (socket->state == ACO__SIM_CONNECTING)
        return events;
    if (socket->peer && socket->peer->out.arrived)
        events |= ACO__SIM_READABLE;
    if ((socket->cannot_write && !is_unix(socket)) || is_writable(socket))
        events |= ACO__SIM_WRITABLE;
    else
        socket->lacks_room = 1;
    return events;
}

static size_t length_of_record(const aco__sim_bytes_t *first)
{
    size_t length = 0;
    struct iovec part = {&length, sizeof length};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    aco__sim_bytes_copy(first, &head, sizeof length);
    return length;
}

static size_t count_in_records(aco__sim_bytes_t records)
{
    size_t n = 0;
    while (records.n) {
        size_t length = length_of_record(&records);
        aco__sim_bytes_remove(&records, sizeof length + length);
        n += length;
    }
    return n;
}

size_t aco__sim_stream_unread(const aco__sim_socket_t *socket)
{
    const aco__sim_socket_t *peer = socket->peer;
    if (!peer)
        return 0;
    return has_records(socket) ? count_in_records(peer->out.bytes) : peer->out.arrived;
}

/* Reads the peer's first record; what has no room is lost. */
static ssize_t receive_record(aco_sim_t *sim, aco__sim_socket_t *peer, struct msghdr *message, int flags)
{
    aco__sim_bytes_t record = peer->out.bytes;
    size_t length = length_of_record(&record), room = aco__sim_parts_size(message), n = room < length ? room : length;
    aco__sim_bytes_remove(&record, sizeof length);
    aco__sim_bytes_copy(&record, message, n);
    message->msg_flags = room < length ? MSG_TRUNC : 0;
    if (!(flags & MSG_PEEK) || (peer->passed && !peer->passed->at))
        aco__sim_passed_receive(sim, &peer->passed, sizeof length + length, message, flags);
    if (!(flags & MSG_PEEK)) {
        aco__sim_bytes_remove(&peer->out.bytes, sizeof length + length);
        peer->out.arrived = peer->out.sent = peer->out.bytes.n;
        tell_of_room(peer);
    }
    return (ssize_t)((flags & MSG_TRUNC) ? length : n);
}

/* Nothing can be read: 0: it is the end; or the error. */
static ssize_t nothing_to_read(aco__sim_socket_t *socket)
{
    if (is_unix(socket) && (socket->state != ACO__SIM_CONNECTED))
        return aco__sim_fail_with(has_records(socket) ? ENOTCONN : EINVAL);
    if (socket->state == ACO__SIM_LISTENS)
        return aco__sim_fail_with(ENOTCONN);
    if (socket->has_end)
        return 0;
    if (socket->error)
        return aco__sim_fail_with(aco__sim_take_error(socket));
    if (socket->cannot_read)
        return 0;
    return aco__sim_fail_with(socket->state == ACO__SIM_FRESH ? ENOTCONN : EAGAIN);
}

static ssize_t receive_bytes(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file), *peer = socket->peer;
    size_t room = aco__sim_parts_size(message), n = room;
    if (!peer || !peer->out.arrived || (has_records(socket) && socket->error)) {
        message->msg_namelen = 0;
        return nothing_to_read(socket);
    }
    if (message->msg_name && is_unix(peer) && peer->local.name_length)
        aco__sim_address_write(peer->family, &peer->local, message->msg_name, &message->msg_namelen);
    else
        message->msg_namelen = 0;
    if (has_records(socket))
        return receive_record(sim, peer, message, flags);
    if (n > peer->out.arrived)
        n = peer->out.arrived;
    n = aco__sim_passed_limit(peer->passed, n);
    if (is_unix(socket) || !(flags & MSG_TRUNC)) /* TCP then throws it away */
        aco__sim_bytes_copy(&peer->out.bytes, message, n);
    aco__sim_passed_receive(sim, &peer->passed, n, message, flags);
    if (flags & MSG_WAITALL && is_unix(socket) && n < room && n == peer->out.arrived)
        (void)aco__sim_take_error(socket); /* the kernel looks for more, and forgets the error for what it has */
    if (flags & MSG_PEEK || (!n && is_unix(socket)))
        return (ssize_t)n;
    aco__sim_bytes_remove(&peer->out.bytes, n);
    peer->out.arrived -= n;
    peer->out.sent -= n;
    if (is_unix(socket))
        tell_of_room(peer);
    else
        pump(sim, peer);
    return (ssize_t)n;
}

/* Why nothing can be written. 0: it can. */
static int cannot_write(aco__sim_socket_t *socket)
{
    if (socket->state == ACO__SIM_CONNECTING)
        return EAGAIN;
    if (is_unix(socket) && !socket->peer && socket->state != ACO__SIM_CONNECTED)
        return ENOTCONN;
    if (socket->state == ACO__SIM_CONNECTED && !socket->error && !socket->cannot_write)
        return 0;
    if (socket->error && !(is_unix(socket) && socket->cannot_write))
        return aco__sim_take_error(socket);
    return EPIPE;
}

/* `passed`: NULL, or what goes along, which is the socket's afterwards if all is well. */
static ssize_t send_record(aco__sim_socket_t *socket, const struct msghdr *message, aco__sim_passed_t *passed)
{
    size_t n = aco__sim_parts_size(message), size = (size_t)socket->send_size;
    struct iovec part = {&n, sizeof n};
    const struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    int error = size < sizeof n || n > size - sizeof n ? EMSGSIZE : cannot_write(socket);
    if (error)
        return aco__sim_fail_with(error);
    if (n + sizeof n > room_to_write(socket)) {
        socket->lacks_room = 1;
        return aco__sim_fail_with(EAGAIN);
    }
    if (aco__sim_bytes_reserve(&socket->out.bytes, n + sizeof n) != 0)
        return aco__sim_fail_with(ENOMEM);
    aco__sim_passed_append(&socket->passed, passed, socket->out.bytes.n, sizeof n + n);
    (void)aco__sim_bytes_append(&socket->out.bytes, &head, sizeof n);
    (void)aco__sim_bytes_append(&socket->out.bytes, message, n);
    socket->out.arrived = socket->out.sent = socket->out.bytes.n;
    aco__sim_notify(&socket->peer->file, ACO__SIM_READABLE);
    return (ssize_t)n;
}

/* The same. */
static ssize_t send_part(aco_sim_t *sim, aco__sim_socket_t *socket, const struct msghdr *message,
                         aco__sim_passed_t *passed)
{
    size_t n = aco__sim_parts_size(message), room = room_to_write(socket);
    int error = cannot_write(socket);
    if (is_unix(socket) && message->msg_namelen)
        error = socket->state == ACO__SIM_CONNECTED ? EISCONN : EOPNOTSUPP;
    if (error)
        return aco__sim_fail_with(error);
    if (n > room) {
        socket->lacks_room = 1; /* until there is: also if another task sends less meanwhile */
        n = room;
        if (!n)
            return aco__sim_fail_with(EAGAIN);
    }
    if (!n) {
        aco__sim_passed_drop(sim, passed);
        return 0;
    }
    if (aco__sim_bytes_append(&socket->out.bytes, message, n) != 0)
        return aco__sim_fail_with(ENOMEM);
    aco__sim_passed_append(&socket->passed, passed, socket->out.bytes.n - n, n);
    if (is_unix(socket)) {
        socket->out.arrived = socket->out.sent = socket->out.bytes.n;
        aco__sim_notify(&socket->peer->file, ACO__SIM_READABLE);
    } else {
        pump(sim, socket);
    }
    return (ssize_t)n;
}

static ssize_t send_bytes(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    aco__sim_passed_t *passed;
    ssize_t sent;
    (void)flags;
    if (has_records(socket) && (socket->error || socket->state != ACO__SIM_CONNECTED))
        return aco__sim_fail_with(socket->error ? aco__sim_take_error(socket) : ENOTCONN);
    if (aco__sim_passed_take(sim, message, &passed) != 0)
        return -1;
    sent = has_records(socket) ? send_record(socket, message, passed) : send_part(sim, socket, message, passed);
    if (sent < 0)
        aco__sim_passed_drop(sim, passed);
    return sent;
}

/* ---- Ends ---- */

static void stop_listening(aco_sim_t *sim, aco__sim_socket_t *listener);

/* A unix socket tells its peer at once. */
static void end_unix(aco__sim_socket_t *socket, int reads, int writes)
{
    aco__sim_socket_t *peer = socket->peer;
    socket->cannot_read |= reads;
    socket->cannot_write |= writes;
    aco__sim_notify(&socket->file, ANY);
    if (!peer)
        return;
    peer->cannot_read |= writes;
    peer->cannot_write |= reads;
    if (!peer->is_closed)
        aco__sim_notify(&peer->file, ANY);
}

/* Whether something that it has sent is unread. The kernel passes over a first record that is empty. */
static int leaves_unread(const aco__sim_socket_t *sender)
{
    size_t length;
    if (!has_records(sender) || !sender->out.arrived)
        return sender->out.arrived > 0;
    length = length_of_record(&sender->out.bytes);
    return length > 0 || sender->out.arrived > sizeof length;
}

static void close_connection(aco_sim_t *sim, aco__sim_socket_t *socket)
{
    aco__sim_socket_t *peer = socket->peer;
    aco__sim_passed_t *unread = NULL;
    int is_cut = leaves_unread(peer);
    if (is_unix(socket)) {
        if (is_cut)
            peer->error = ECONNRESET;
        unread = peer->passed;
        peer->passed = NULL;
        end_unix(socket, 1, 1);
    } else if (is_cut || (socket->linger.l_onoff && !socket->linger.l_linger)) {
        int is_over = aco__sim_stream_is_over(socket);
        if (!is_over) {
            reset_peer(sim, socket);
            aco__sim_port_free(peer);
        }
        drop_connection(socket, 0);
        if (is_over && socket->has_ended_first)
            aco__sim_port_keep(sim, socket, socket->end_came);
    } else {
        socket->cannot_write = 1;
        pump(sim, socket);
        if (socket->state == ACO__SIM_CONNECTED && (!socket->has_end || socket->has_ended_first))
            aco__sim_port_keep(sim, socket, socket->has_end ? socket->end_came : sim->now);
        if (peer->is_closed && peer->kept)
            aco__sim_port_keep(sim, peer, sim->now);
    }
    if (peer->is_closed)
        part(socket);
    else
        pump(sim, peer); /* it no longer looks for room */
    aco__sim_passed_close(sim, &unread); /* it may free both sockets: their own descriptors may be among these */
}

static void close_stream(aco_sim_t *sim, aco__sim_file_t *file)
{
    aco__sim_socket_t *socket = aco__sim_socket_of(file);
    socket->is_closed = 1;
    aco__sim_endpoint_release(socket);
    if (socket->state == ACO__SIM_LISTENS)
        stop_listening(sim, socket);
    else if (socket->peer && socket->state != ACO__SIM_CONNECTING)
        close_connection(sim, socket);
}

static void free_stream(aco__sim_file_t *file)
{
    aco__sim_passed_free(&aco__sim_socket_of(file)->passed);
    aco__sim_port_part(aco__sim_socket_of(file));
    aco__sim_bytes_free(&aco__sim_socket_of(file)->out.bytes);
    aco__sim_endpoint_release(aco__sim_socket_of(file));
}

int aco__sim_stream_shutdown(aco_sim_t *sim, aco__sim_socket_t *socket, int how)
{
    int reads = how != SHUT_WR, writes = how != SHUT_RD;
    if (is_unix(socket)) {
        end_unix(socket, reads, writes);
    } else if (socket->state == ACO__SIM_LISTENS) {
        if (reads)
            stop_listening(sim, socket);
    } else if (socket->state == ACO__SIM_CONNECTING) {
        socket->state = ACO__SIM_FRESH; /* what comes of it is not for another attempt */
        if (socket->peer)
            part(socket);
        socket->error = ECONNRESET;
        aco__sim_notify(&socket->file, ANY);
    } else {
        socket->cannot_read |= reads;
        socket->cannot_write |= writes;
        aco__sim_notify(&socket->file, ANY);
        socket->is_told |= socket->state == ACO__SIM_CONNECTED;
        if (socket->state != ACO__SIM_CONNECTED || aco__sim_stream_is_over(socket))
            return aco__sim_fail_with(ENOTCONN);
        pump(sim, socket);
    }
    return 0;
}

/* ---- Connections ---- */

static const aco__sim_type_t stream_type = {S_IFSOCK | 0777, stream_events, receive_bytes,
                                            send_bytes,      close_stream,  free_stream,   NULL};

static const aco__sim_sender_t stream_sender = {pump, cut, time_out};

aco__sim_socket_t *aco__sim_stream_new(aco_sim_t *sim, int family, int type, int flags)
{
    aco__sim_socket_t *socket = aco__sim_socket_new(sim, &stream_type, family, type, flags);
    if (!socket)
        return NULL;
    socket->out.sender = &stream_sender;
    socket->send_size = SMALLEST_BUFFER << aco__sim_chance(sim, BUFFER_DOUBLINGS);
    socket->receive_size = SMALLEST_BUFFER << aco__sim_chance(sim, BUFFER_DOUBLINGS);
    return socket;
}

void aco__sim_stream_pair(aco__sim_socket_t *a, aco__sim_socket_t *b)
{
    a->peer = b;
    b->peer = a;
    aco__sim_file_hold(&a->file);
    aco__sim_file_hold(&b->file);
    a->state = b->state = ACO__SIM_CONNECTED;
    a->has_peer_user = b->has_peer_user = is_unix(a);
}

int aco__sim_stream_listen(aco_sim_t *sim, aco__sim_socket_t *socket, int backlog)
{
    aco__sim_address_t any = {.family = AF_INET6};
    if (socket->state != ACO__SIM_FRESH && socket->state != ACO__SIM_LISTENS)
        return aco__sim_fail_with(EINVAL);
    if (!socket->same_port.next && is_unix(socket))
        return aco__sim_fail_with(EINVAL);
    if (socket->local.family)
        any = socket->local; /* it was bound before */
    any.port = 0;
    if (!socket->same_port.next && aco__sim_endpoint_bind(sim, socket, &any) != 0)
        return -1;
    if (socket->state == ACO__SIM_FRESH && aco__sim_endpoint_listen(sim, socket) != 0)
        return -1;
    socket->state = ACO__SIM_LISTENS;
    socket->has_peer_user = is_unix(socket);
    socket->backlog = backlog < 0 || backlog > SOMAXCONN ? SOMAXCONN : backlog;
    return 0;
}

/* The connection is not accepted, and never will be. */
static void stop_trying(aco_sim_t *sim, aco__sim_socket_t *server)
{
    if (server->listener)
        aco__sim_file_drop(&server->listener->file);
    server->listener = NULL;
    server->linger = (struct linger){1, 0};
    if (is_unix(server) && server->peer)
        server->peer->error = ECONNRESET;
    aco__sim_file_close(sim, &server->file);
}

static void stop_listening(aco_sim_t *sim, aco__sim_socket_t *listener)
{
    aco__links_t *links;
    listener->state = ACO__SIM_FRESH;
    listener->is_deaf = 0;
    if (listener->port_was_given)
        aco__sim_endpoint_release(listener);
    while ((links = aco__links_first(&listener->accepted)) != NULL) {
        aco__links_remove(links);
        stop_trying(sim, ACO__LINKED(links, aco__sim_socket_t, accepted));
    }
    aco__sim_notify(&listener->file, ANY);
}

/* It can be accepted. */
static void enqueue_connection(aco__sim_socket_t *listener, aco__sim_socket_t *server)
{
    aco__links_append(&listener->accepted, &server->accepted);
    aco__sim_notify(&listener->file, ACO__SIM_READABLE);
}

aco__sim_socket_t *aco__sim_stream_accept(aco_sim_t *sim, aco__sim_socket_t *listener)
{
    aco__links_t *links = aco__links_first(&listener->accepted);
    aco__sim_socket_t *server;
    (void)sim;
    errno = listener->state != ACO__SIM_LISTENS ? EINVAL : EAGAIN;
    if (!links || listener->state != ACO__SIM_LISTENS)
        return NULL;
    aco__links_remove(links);
    server = ACO__LINKED(links, aco__sim_socket_t, accepted);
    aco__links_empty(&server->accepted);
    if (is_unix(listener) && server->peer)
        aco__sim_notify(&server->peer->file, ACO__SIM_WRITABLE);
    return server;
}

/* A connection of the listener for this client. */
static aco__sim_socket_t *new_server(aco_sim_t *sim, const aco__sim_socket_t *listener, aco__sim_socket_t *client)
{
    aco__sim_socket_t *server = aco__sim_stream_new(sim, listener->family, listener->type, 0);
    if (!server)
        return NULL;
    server->file.node = listener->file.node;
    server->remote = client->local;
    server->is_told = 1;
    server->port_was_given = 1;
    server->linger = listener->linger;
    server->reuses_address = listener->reuses_address;
    server->reuses_port = listener->reuses_port;
    memcpy(server->options, listener->options, sizeof server->options);
    server->options_count = listener->options_count;
    if (is_unix(client))
        server->local = listener->local;
    else
        aco__sim_endpoint_share(sim, server, &client->remote);
    aco__sim_stream_pair(client, server);
    return server;
}

static int is_full(const aco__sim_socket_t *listener)
{
    int n = listener->half_open;
    for (const aco__links_t *links = listener->accepted.next; links != &listener->accepted; links = links->next)
        n++;
    return n > listener->backlog;
}

/* The attempt is over. */
static void refuse_client(aco_sim_t *sim, aco__sim_socket_t *client, int error)
{
    if (client->is_closed)
        return;
    aco__sim_note(sim, ACO__NOTED_REFUSED, client->file.number, error, NULL);
    drop_connection(client, error);
}

/* Whether what arrives is for another attempt than the socket's last one, or for a closed socket. */
static int is_stale(const aco__sim_socket_t *client, uint64_t value)
{
    return client->is_closed || client->state != ACO__SIM_CONNECTING || client->attempts != value / MOST_TRIES;
}

static void on_refused(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    if (!is_stale(aco__sim_socket_of(file), value))
        refuse_client(sim, aco__sim_socket_of(file), ECONNREFUSED);
}

/* The third segment of a handshake. */
static void on_acknowledged(aco_sim_t *sim, aco__sim_file_t *file, uint64_t unused)
{
    aco__sim_socket_t *server = aco__sim_socket_of(file), *listener = server->listener;
    (void)unused;
    listener->half_open--;
    if (listener->state != ACO__SIM_LISTENS) {
        stop_trying(sim, server);
        return;
    }
    server->listener = NULL;
    enqueue_connection(listener, server);
    server->cannot_read |= listener->cannot_read; /* shutdown() before listen() failed, but is inherited */
    server->cannot_write |= listener->cannot_write;
    pump(sim, server);
    aco__sim_file_drop(&listener->file);
}

/* If the third segment is lost, the second one is repeated until it is there. */
static void acknowledge(aco_sim_t *sim, aco__sim_socket_t *client)
{
    const aco__sim_wire_t *wire = aco__sim_wire_of(client);
    int64_t at = aco__sim_segment_time(sim, client, 0);
    for (int tries = 0; tries < MOST_ANSWERS && aco__sim_loses(sim, wire); tries++)
        at += ACO_SECOND << tries;
    client->out.last = at;
    aco__sim_later(sim, at, on_acknowledged, &client->peer->file, 0);
}

/* The second one. `value` as for on_request(). */
static void on_answer(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    aco__sim_socket_t *server = aco__sim_socket_of(file), *client = server->peer;
    if (!client || is_stale(client, value)) {
        server->listener->half_open--;
        if (client)
            part(server);
        stop_trying(sim, server);
        return;
    }
    client->state = ACO__SIM_CONNECTED;
    aco__sim_note(sim, ACO__NOTED_CONNECTED, client->file.number, 0, NULL);
    aco__sim_notify(&client->file, ACO__SIM_WRITABLE);
    acknowledge(sim, client);
}

static void on_request(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value);
static void on_ask_again(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value);

static void on_no_answer(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    if (!is_stale(aco__sim_socket_of(file), value))
        refuse_client(sim, aco__sim_socket_of(file), ETIMEDOUT);
}

/* The request, or the answer to it, is lost: it is sent again after a second, then after two, four, … */
static void ask_again_later(aco_sim_t *sim, aco__sim_socket_t *client, uint64_t value)
{
    uint64_t tries = value % MOST_TRIES;
    int64_t at = client->asked_at + (ACO_SECOND << tries);
    if (at < sim->now)
        at = sim->now;
    if (tries + 1 < MOST_TRIES)
        aco__sim_later(sim, at, on_ask_again, &client->file, value + 1);
    else
        aco__sim_later(sim, at, on_no_answer, &client->file, value);
}

/* `value` as for on_request(). */
static void ask(aco_sim_t *sim, aco__sim_socket_t *client, uint64_t value)
{
    aco__sim_wire_t *wire = aco__sim_wire_of(client);
    client->asked_at = sim->now;
    if (aco__sim_loses(sim, wire))
        ask_again_later(sim, client, value);
    else
        aco__sim_later(sim, aco__sim_travel(sim, wire, 0), on_request, &client->file, value);
}

static void on_ask_again(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    if (!is_stale(aco__sim_socket_of(file), value))
        ask(sim, aco__sim_socket_of(file), value);
}

/* The first one. `value`: the attempt, and how often it was repeated. */
static void on_request(aco_sim_t *sim, aco__sim_file_t *file, uint64_t value)
{
    aco__sim_socket_t *client = aco__sim_socket_of(file), *listener, *server;
    aco__sim_wire_t *back = aco__sim_wire_back(client, &client->remote);
    if (is_stale(client, value))
        return;
    listener = aco__sim_endpoint_find(client, &client->remote, NULL);
    if (aco__sim_loses(sim, back) || (listener && (listener->is_deaf || is_full(listener)))) {
        ask_again_later(sim, client, value);
    } else if (!listener) {
        aco__sim_later(sim, aco__sim_travel(sim, back, 0), on_refused, file, value);
    } else if ((server = new_server(sim, listener, client)) != NULL) {
        client->state = ACO__SIM_CONNECTING; /* until the answer comes */
        server->listener = listener;
        aco__sim_file_hold(&listener->file);
        listener->half_open++;
        aco__sim_later(sim, aco__sim_segment_time(sim, server, 0), on_answer, &server->file, value);
    }
}

/* The failure of an attempt is told: the socket begins anew. */
static void begin_anew(aco__sim_socket_t *socket)
{
    if (socket->peer)
        part(socket); /* it has sent a reset: it is closed */
    aco__sim_bytes_remove(&socket->out.bytes, socket->out.bytes.n);
    socket->out.arrived = socket->out.sent = 0;
    socket->out.has_sent_end = socket->out.end_has_arrived = socket->has_end = 0;
    socket->out.losses = 0;
    socket->cannot_read = socket->cannot_write = socket->has_lost_reset = 0;
    socket->state = ACO__SIM_FRESH;
    if (socket->port_was_given)
        memset(&socket->local, 0, sizeof socket->local);
}

/* What connect() returns for a socket that has begun to. -1 and errno: it has; 1: it is to begin. */
static int connect_again(aco__sim_socket_t *socket)
{
    if (socket->state == ACO__SIM_CONNECTING)
        return aco__sim_fail_with(EALREADY);
    if (socket->state == ACO__SIM_RESET && !socket->is_told) { /* it has failed; the next call begins anew */
        int error = aco__sim_take_error(socket);
        begin_anew(socket);
        return aco__sim_fail_with(error ? error : ECONNABORTED);
    }
    if (socket->state != ACO__SIM_FRESH) {
        int is_told = socket->is_told || socket->state == ACO__SIM_LISTENS;
        socket->is_told = 1;
        return is_told ? aco__sim_fail_with(EISCONN) : 0;
    }
    return 1;
}

static int connect_unix(aco_sim_t *sim, aco__sim_socket_t *socket, const aco__sim_address_t *to)
{
    aco__sim_socket_t *listener = aco__sim_endpoint_find(socket, to, NULL), *server;
    if (!to->name_length)
        return aco__sim_fail_with(EINVAL);
    if (!listener || listener->cannot_read)
        return aco__sim_fail_with(listener || !to->name[0] ? ECONNREFUSED : ENOENT);
    if (is_full(listener))
        return aco__sim_fail_with(EAGAIN);
    if (socket->state != ACO__SIM_FRESH)
        return aco__sim_fail_with(socket->state == ACO__SIM_CONNECTED ? EISCONN : EINVAL);
    socket->remote = *to;
    server = new_server(sim, listener, socket);
    if (!server)
        return -1;
    enqueue_connection(listener, server);
    return 0;
}

int aco__sim_stream_connect(aco_sim_t *sim, aco__sim_socket_t *socket, const struct sockaddr *address, socklen_t length)
{
    aco__sim_address_t target;
    int begun = is_unix(socket) ? 1 : connect_again(socket);
    if (begun <= 0)
        return begun;
    if (aco__sim_address_read(socket->family, address, length, &target) != 0)
        return -1;
    if (is_unix(socket))
        return connect_unix(sim, socket, &target);
    if (aco__sim_address_is_any(&target)) { /* this machine */
        unsigned char *ip = (unsigned char *)&target.ip;
        if (socket->family == AF_INET)
            ip[12] = 127;
        ip[15] = 1;
    }
    if (aco__sim_endpoint_choose(sim, socket, &target) != 0)
        return -1;
    socket->remote = target;
    socket->state = ACO__SIM_CONNECTING;
    socket->attempts++;
    ask(sim, socket, socket->attempts * MOST_TRIES);
    return aco__sim_fail_with(EINPROGRESS);
}
