/* Streams: the calls, whatever carries the bytes. What carries them is in stream_fd.c, stream_pair.c, above, or the
 * program's. */
#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/poller.h"
#include "aco/stream.h"

#include <poll.h>

/* ---- Bytes ---- */

ssize_t aco_stream_read_at(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return stream->functions->read(stream, p, n, location);
}

ssize_t aco_stream_write_at(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return stream->functions->write(stream, p, n, location);
}

/* In these loops nobody looks at the stream after a part has failed: it may be closed by then. */

ssize_t aco_stream_read_exactly_at(aco_stream_t *stream, void *p, size_t n, size_t *done, const char *location)
{
    size_t got = 0;
    ssize_t part = 1;
    while (got < n && part > 0) {
        part = stream->functions->read(stream, (char *)p + got, n - got, location);
        if (part > 0)
            got += (size_t)part;
    }
    if (done)
        *done = got;
    return part < 0 ? -1 : (ssize_t)got;
}

/* The result of a write of some bytes: one that has written none, without an error, would be made for ever. */
static ssize_t some(ssize_t n, const char *call)
{
    return n != 0 ? n : aco__service_fail(EIO, call, "the stream's `write` has written nothing");
}

ssize_t aco_stream_write_all_at(aco_stream_t *stream, const void *p, size_t n, size_t *done, const char *location)
{
    size_t sent = 0;
    ssize_t part = 0;
    while (sent < n && part >= 0) {
        part = stream->functions->write(stream, (const char *)p + sent, n - sent, location);
        part = some(part, "aco_stream_write_all");
        if (part > 0)
            sent += (size_t)part;
    }
    if (done)
        *done = sent;
    return part < 0 ? -1 : (ssize_t)n;
}

/* Takes `n` written bytes off the parts, and what is empty then. The index of the first part that is left. */
static int take_off(struct iovec *parts, int first, int count, size_t n)
{
    for (; first < count && n >= parts[first].iov_len; first++) {
        if (parts[first].iov_len == 0) /* its address may be NULL, of which there is no offset */
            continue;
        n -= parts[first].iov_len;
        parts[first].iov_base = (char *)parts[first].iov_base + parts[first].iov_len;
        parts[first].iov_len = 0;
    }
    if (n) {
        ACO__ASSERT(first < count); /* no more was written than there was */
        parts[first].iov_base = (char *)parts[first].iov_base + n;
        parts[first].iov_len -= n;
    }
    return first;
}

int aco_stream_write_parts_at(aco_stream_t *stream, struct iovec *parts, int count, const char *location)
{
    int first;
    if (count < 0 || count > ACO_STREAM_PARTS)
        return aco__service_fail(EINVAL, "aco_stream_write_parts", "the number of parts");
    for (first = take_off(parts, 0, count, 0); first < count;) {
        const aco_stream_functions_t *functions = stream->functions;
        ssize_t n = functions->write_parts
                        ? functions->write_parts(stream, parts + first, count - first, location)
                        : functions->write(stream, parts[first].iov_base, parts[first].iov_len, location);
        if (some(n, "aco_stream_write_parts") < 0)
            return -1;
        first = take_off(parts, first, count, (size_t)n);
    }
    return 0;
}

static int not_supported(const char *call)
{
    return aco__service_fail(ENOTSUP, call, "this stream cannot do that");
}

int aco_stream_wait_readable_at(aco_stream_t *stream, const char *location)
{
    return stream->functions->wait_readable ? stream->functions->wait_readable(stream, location)
                                            : not_supported("aco_stream_wait_readable");
}

int aco_stream_has_input(aco_stream_t *stream)
{
    struct pollfd look = {stream->fd, POLLIN, 0};
    if (stream->functions->has_input && stream->functions->has_input(stream))
        return 1;
    return stream->fd >= 0 && aco__system.poll(&look, 1, 0) > 0;
}

/* ---- Ends ---- */

int aco_stream_shutdown_at(aco_stream_t *stream, const char *location)
{
    return stream->functions->shutdown ? stream->functions->shutdown(stream, location)
                                       : not_supported("aco_stream_shutdown");
}

void aco_stream_close(aco_stream_t *stream)
{
    if (stream)
        stream->functions->close(stream);
}

/* Only TCP has a reset; other sockets take the option, and do nothing. */
void aco_stream_abort(aco_stream_t *stream)
{
    static const struct linger reset = {1, 0};
    if (stream && stream->fd >= 0)
        (void)aco__system.setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (stream)
        (stream->functions->abort ? stream->functions->abort : stream->functions->close)(stream);
}

/* ---- What it is ---- */

int aco_stream_local_address(const aco_stream_t *stream, char *text, size_t size)
{
    if (stream->functions->local_address)
        return stream->functions->local_address(stream, text, size);
    return stream->fd >= 0 ? aco_io_local_address(stream->fd, text, size) : not_supported("aco_stream_local_address");
}

int aco_stream_peer_address(const aco_stream_t *stream, char *text, size_t size)
{
    if (stream->functions->peer_address)
        return stream->functions->peer_address(stream, text, size);
    return stream->fd >= 0 ? aco_io_peer_address(stream->fd, text, size) : not_supported("aco_stream_peer_address");
}

const char *aco_stream_protocol(const aco_stream_t *stream)
{
    return stream->functions->protocol ? stream->functions->protocol(stream) : "";
}

int aco_stream_fd(const aco_stream_t *stream)
{
    return stream->fd;
}
