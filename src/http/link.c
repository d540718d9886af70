/* The bytes of a connection: input in one buffer, and output that is collected.
 *
 * The input buffer is there while a message is there. Who reads may hold what is at its begin: the
 * fields of a request point there. What follows passes behind that. Output is sent before the link waits for input, so
 * several replies to pipelined requests need one system call. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "http/link.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/file.h"

#include <poll.h>
#include <string.h>

#ifdef ACO__INVARIANTS
int aco__http_is_in_order(const aco__http_link_t *link)
{
    const aco__http_input_t *in = &link->in;
    return in->begin <= link->at && link->at <= in->end && in->end <= in->size && (in->buffer || !in->end);
}
#endif

/* ---- Opening, closing ---- */

void aco__http_link_open(aco__http_link_t *link, int fd, size_t in_size)
{
    memset(link, 0, sizeof *link);
    aco__stream_embed(&link->own, fd);
    link->stream = &link->own;
    link->is_plain = 1;
    ACO__ASSERT(in_size <= UINT32_MAX);
    link->in.size = (uint32_t)in_size;
}

static int is_socket(const aco_stream_t *stream)
{
    struct sockaddr_storage address;
    socklen_t n = sizeof address;
    return aco__stream_is_fd(stream) &&
           aco__system.getsockname(stream->fd, (struct sockaddr *)(void *)&address, &n) == 0;
}

void aco__http_link_open_on(aco__http_link_t *link, aco_stream_t *stream, size_t in_size)
{
    aco__http_link_open(link, stream->fd, in_size);
    link->stream = stream;
    link->is_plain = (unsigned char)is_socket(stream);
}

void aco__http_link_use(aco__http_link_t *link, aco_stream_t *stream)
{
    link->stream = stream;
    link->own.fd = stream ? stream->fd : -1;
    link->is_plain = 0;
}

void aco__http_link_close(aco__http_link_t *link, int is_cut)
{
    aco__http_drop_input(link);
    (is_cut ? aco_stream_abort : aco_stream_close)(link->stream);
}

int aco__http_is_passing(void)
{
    int error = errno, is_passing = error == ENOMEM || error == EPERM || error == EAGAIN;
    if (error == ETIMEDOUT || error == ECANCELED) /* the system's, too, and a closed descriptor's */
        is_passing = aco_check_cancelled() != 0;
    errno = error;
    return is_passing;
}

/* ---- Input ---- */

void aco__http_drop_input(aco__http_link_t *link)
{
    aco__http_input_t *in = &link->in;
    if (in->buffer)
        aco__service_free(in->buffer, in->size);
    in->buffer = NULL;
    in->begin = in->end = 0;
}

ssize_t aco__http_link_read(aco__http_link_t *link, void *p, size_t n, const char *location)
{
    return link->is_plain ? aco_io_read_at(link->own.fd, p, n, location)
                          : aco_stream_read_at(link->stream, p, n, location);
}

int aco__http_link_shutdown(aco__http_link_t *link, const char *location)
{
    return aco_stream_shutdown_at(link->stream, location);
}

ssize_t aco__http_append(aco__http_link_t *link, const char *location)
{
    aco__http_input_t *in = &link->in;
    ssize_t n;
    ACO__ASSERT(in->end < in->size); /* a read of nothing would look like the stream's end */
    n = aco__http_link_read(link, in->buffer + in->end, in->size - in->end, location);
    if (n > 0)
        in->end += (size_t)n;
    return n;
}

int aco__http_await_stream(aco__http_link_t *link, const char *location)
{
    return link->stream->functions->wait_readable ? aco_stream_wait_readable_at(link->stream, location) : 0;
}

/* An input buffer, with what was read already of a line. 0, or -1 and errno. */
static int prepare_input(aco__http_link_t *link)
{
    aco__http_input_t *in = &link->in;
    size_t sz = in->size;
    ACO__ASSERT(in->begin == in->end); /* it would be lost with the buffer */
    if (!in->buffer && !(in->buffer = aco__service_allocate(&sz, "aco_http_serve")))
        return -1;
    in->buffer[0] = '\r';
    in->begin = 0;
    in->end = link->has_half;
    return 0;
}

ssize_t aco__http_take_first(aco__http_link_t *link, int waited, const char *location)
{
    aco__http_input_t *in = &link->in;
    int error = errno;
    ssize_t n;
    if (waited != 0 && !link->is_plain && !aco__http_has_input(link)) /* a last look; without one, below */
        return -1;
    if (prepare_input(link) != 0)
        return -1;
    n = link->is_plain ? aco__io_recv_now(link->own.fd, in->buffer + in->end, in->size - in->end)
                       : aco__http_append(link, location);
    if (n <= 0)
        in->end = 0;
    if (!link->is_plain)
        return n;
    if (n > 0)
        in->end += (size_t)n;
    if (n < 0 && waited == 0 && errno == EAGAIN) {
        aco__http_drop_input(link);
        return HTTP_NOTHING_YET;
    }
    if (n < 0 && waited != 0)
        errno = error;
    return n;
}

ssize_t aco__http_await(aco__http_link_t *link, int is_first, const char *location)
{
    ssize_t n = is_first && link->is_plain ? aco__http_take_first(link, 0, location) : HTTP_NOTHING_YET;
    if (n == HTTP_NOTHING_YET)
        aco__http_drop_input(link);
    while (n == HTTP_NOTHING_YET)
        n = aco__http_take_first(link, aco__http_await_first(link, location), location);
    return n;
}

int aco__http_skip_empty_lines(aco__http_link_t *link)
{
    aco__http_input_t *in = &link->in;
    while (in->end - in->begin >= 2 && memcmp(in->buffer + in->begin, "\r\n", 2) == 0)
        in->begin += 2;
    link->has_half = in->end - in->begin == 1 && in->buffer[in->begin] == '\r';
    if (in->end - in->begin == link->has_half)
        in->begin = in->end = 0;
    return in->begin != in->end;
}

int aco__http_is_readable(int fd)
{
    struct pollfd look = {fd, POLLIN, 0};
    return aco__system.poll(&look, 1, 0) > 0;
}

int aco__http_has_input(const aco__http_link_t *link)
{
    return aco_stream_has_input(link->stream);
}

int aco__http_has_unread(const aco__http_link_t *link)
{
    char byte;
    return link->is_plain ? aco__system.recv(link->own.fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0
                          : aco__http_has_input(link);
}

ssize_t aco__http_more_input(aco__http_link_t *link, const char *location)
{
    aco__http_input_t *in = &link->in;
    size_t n = in->end - link->at;
    ACO__ASSERT(aco__http_is_in_order(link) && in->begin <= link->keep && link->keep <= link->at);
    if (n)
        memmove(in->buffer + link->keep, in->buffer + link->at, n);
    link->at = link->keep;
    in->end = link->keep + n;
    return aco__http_append(link, location);
}

/* ---- Output ---- */

ACO__SWITCHES
static ssize_t put_out(aco__http_link_t *link, struct iovec *parts, int n, int flags, const char *location)
{
    const aco_stream_functions_t *functions = link->stream->functions;
    struct msghdr message;
    if (!link->is_plain)
        return functions->write_parts && n > 1
                   ? functions->write_parts(link->stream, parts, n, location)
                   : functions->write(link->stream, parts[0].iov_base, parts[0].iov_len, location);
    if (n == 1)
        return aco_io_send_at(link->own.fd, parts[0].iov_base, parts[0].iov_len, flags, location);
    memset(&message, 0, sizeof message);
    message.msg_iov = parts;
    message.msg_iovlen = (size_t)n;
    return aco_io_sendmsg_at(link->own.fd, &message, flags, location);
}

/* A wait until the peer has taken something, in the time that is left to it. */
typedef struct aco__http_taking {
    aco_scope_t scope;
    int64_t began; /* if it is counted */
} aco__http_taking_t;

/* 0, or -1 and errno. */
static int begin_taking(aco__http_taking_t *taking, const aco__http_link_t *link, const char *location)
{
    const int is_counted = link->write_rate && link->write_time != ACO_FOREVER;
    const int64_t rest = link->write_time - (is_counted ? link->late : 0), left = rest < 0 ? 0 : rest;
    const int64_t until = aco_after(left);
    taking->began = is_counted && until != ACO_FOREVER ? until - left : ACO_FOREVER;
    return aco_scope_begin_at(&taking->scope, until, location);
}

static void end_taking(aco__http_taking_t *taking, aco__http_link_t *link)
{
    (void)aco_scope_end(&taking->scope);
    if (taking->began != ACO_FOREVER)
        link->late += aco_now() - taking->began;
}

/* The peer has taken so many bytes. */
static void count_taken(aco__http_link_t *link, size_t n)
{
    int64_t time = aco__http_time_of(n, link->write_rate);
    link->late = link->late > time ? link->late - time : 0;
}

/* With a limit for the case that the peer takes nothing, or little. */
ACO__SWITCHES
static ssize_t put_out_waiting(aco__http_link_t *link, struct iovec *parts, int n, int flags, const char *location)
{
    aco__http_taking_t taking;
    ssize_t sent;
    if (begin_taking(&taking, link, location) != 0)
        return -1;
    sent = put_out(link, parts, n, flags, location);
    end_taking(&taking, link);
    return sent;
}

/* What was not sent of the output. -1, as aco__http_send(). */
static int keep_output(aco__http_link_t *link, const struct iovec *rest)
{
    ACO__ASSERT(!link->out_n && rest->iov_len <= HTTP_OUT); /* nobody else has written meanwhile */
    memmove(link->out, rest->iov_base, rest->iov_len);
    link->out_n = rest->iov_len;
    return -1;
}

int aco__http_send(aco__http_link_t *link, const void *p, size_t n, int is_more, const char *location)
{
    struct iovec parts[2], *first = parts;
    int left = 0, may_wait = !link->is_plain;
#ifdef MSG_MORE
    int flags = is_more ? MSG_MORE : 0;
#else
    int flags = 0;
    (void)is_more;
#endif
    ACO__ASSERT(link->out_n <= HTTP_OUT);
    if (!may_wait)
        aco__io_spend("an HTTP connection", location); /* first: the keeper may send of the output meanwhile */
    if (link->out_n) {
        parts[left].iov_base = link->out;
        parts[left++].iov_len = link->out_n;
    }
    if (n) {
        parts[left].iov_base = (void *)(uintptr_t)p;
        parts[left++].iov_len = n;
    }
    link->out_n = 0;
    if (link->is_broken) {
        errno = EPIPE;
        return -1;
    }
    while (left > 0 && !link->is_broken) {
        ssize_t sent = may_wait ? put_out_waiting(link, first, left, flags, location)
                                : put_out(link, first, left, flags | MSG_DONTWAIT, location);
        if (sent < 0 && errno == EAGAIN && !may_wait) {
            may_wait = 1;
            continue;
        }
        if (sent < 0 && !n && link->is_plain && aco__http_is_passing())
            return keep_output(link, first);
        if (sent <= 0) {
            link->is_broken = 1;
            link->error = sent < 0 ? errno : EIO; /* a program's `write` has written nothing */
            errno = link->error;
        }
        if (aco_unlikely(link->late) && sent > 0)
            count_taken(link, (size_t)sent);
        while (sent > 0 && left > 0) {
            size_t part = (size_t)sent < first->iov_len ? (size_t)sent : first->iov_len;
            first->iov_base = (char *)first->iov_base + part;
            first->iov_len -= part;
            sent -= (ssize_t)part;
            if (first->iov_len == 0) {
                first++;
                left--;
            }
        }
    }
    return left > 0 ? -1 : 0;
}

void aco__http_try_send(aco__http_link_t *link)
{
    ssize_t sent;
    if (!link->is_plain || link->is_broken || !link->out_n)
        return;
    ACO__NO_SWITCH_BEGIN(); /* the connection's task would add to the output */
    sent = aco_io_send(link->own.fd, link->out, link->out_n, MSG_DONTWAIT);
    if (sent > 0) {
        ACO__ASSERT((size_t)sent <= link->out_n);
        link->out_n -= (size_t)sent;
        memmove(link->out, link->out + sent, link->out_n);
    }
    ACO__NO_SWITCH_END();
}

char *aco__http_make_room(aco__http_link_t *link, const char *location)
{
    return aco__http_send(link, NULL, 0, 0, location) == 0 ? link->out : NULL;
}

ssize_t aco__http_read_part(int fd, void *p, size_t room, int64_t *offset, int64_t *left, const char *location)
{
    ssize_t got = aco_file_pread_at(fd, p, (uint64_t)*left < room ? (size_t)*left : room, *offset, location);
    if (got == 0)
        errno = EIO;
    if (got <= 0)
        return -1;
    *offset += got;
    *left -= got;
    return got;
}

int aco__http_send_file(aco__http_link_t *link, int fd, int64_t *at, int64_t end, const char *location)
{
    enum { AT_ONCE = 1 << 20 }; /* so that others run in between */
    const int64_t begin = *at;
    if (!link->is_plain)
        return 1;
    ACO__ASSERT(!link->out_n);
    while (*at < end) {
        aco__http_taking_t taking;
        ssize_t sent;
        if (begin_taking(&taking, link, location) != 0)
            return -1;
        sent = aco_io_sendfile_at(link->own.fd, fd, at, end - *at < AT_ONCE ? (size_t)(end - *at) : AT_ONCE, location);
        end_taking(&taking, link);
        if (link->late && sent > 0)
            count_taken(link, (size_t)sent);
        if (sent < 0 && (errno == EINVAL || errno == ENOSYS) && *at == begin)
            return 1;
        if (sent < 0 && !aco__http_is_passing()) {
            link->is_broken = 1;
            link->error = errno;
        }
        if (sent == 0)
            errno = EIO;
        if (sent <= 0)
            return -1;
        ACO__ASSERT(*at <= end);
        aco__service_yield();
    }
    return 0;
}
