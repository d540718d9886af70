/* Streams of descriptors: one for both directions, or two. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/stream.h"

#include <poll.h>

typedef struct both {
    aco_stream_t is; /* first; it has no fd: nobody may take one of the two for the stream */
    int from, to; /* to: -1: closed */
} both_t;

static void close_quietly(int fd)
{
    int error = errno;
    (void)aco_io_close(fd);
    errno = error;
}

/* ---- One ---- */

ACO__SWITCHES static ssize_t fd_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_io_read_at(stream->fd, p, n, location);
}

ACO__SWITCHES static ssize_t fd_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    return aco_io_write_at(stream->fd, p, n, location);
}

ACO__SWITCHES
static ssize_t fd_write_parts(aco_stream_t *stream, const struct iovec *parts, int count, const char *location)
{
    return aco_io_writev_at(stream->fd, parts, count, location);
}

static int fd_shutdown(aco_stream_t *stream, const char *location)
{
    (void)location;
    return aco_io_shutdown(stream->fd, SHUT_WR);
}

ACO__SWITCHES static int fd_wait_readable(aco_stream_t *stream, const char *location)
{
    return aco_io_wait_readable_at(stream->fd, location);
}

static void embedded_close(aco_stream_t *stream)
{
    close_quietly(stream->fd);
}

static void fd_close(aco_stream_t *stream)
{
    close_quietly(stream->fd);
    aco__service_free(stream, sizeof *stream);
}

static const aco_stream_functions_t of_fd = {
    .read = fd_read,
    .write = fd_write,
    .close = fd_close,
    .write_parts = fd_write_parts,
    .shutdown = fd_shutdown,
    .wait_readable = fd_wait_readable,
};

static const aco_stream_functions_t embedded = {
    .read = fd_read,
    .write = fd_write,
    .close = embedded_close,
    .write_parts = fd_write_parts,
    .shutdown = fd_shutdown,
    .wait_readable = fd_wait_readable,
};

void aco__stream_embed(aco_stream_t *stream, int fd)
{
    stream->functions = &embedded;
    stream->fd = fd;
}

int aco__stream_is_fd(const aco_stream_t *stream)
{
    return stream->functions == &of_fd || stream->functions == &embedded;
}

aco_stream_t *aco__stream_of_fd(int fd)
{
    size_t sz = sizeof(aco_stream_t);
    aco_stream_t *stream = aco__service_allocate(&sz, "aco_stream_open");
    if (stream) {
        stream->functions = &of_fd;
        stream->fd = fd;
    }
    return stream;
}

aco_stream_t *aco_stream_open(int fd)
{
    aco_stream_t *stream = fd >= 0 ? aco__stream_of_fd(fd) : NULL;
    if (!stream && fd >= 0)
        close_quietly(fd);
    return stream;
}

/* ---- Two ---- */

static both_t *both_of(aco_stream_t *stream)
{
    return (both_t *)(void *)stream;
}

/* 0, or -1 and errno: writing has ended. */
static int check_open(const both_t *both)
{
    if (both->to >= 0)
        return 0;
    errno = EPIPE;
    return -1;
}

ACO__SWITCHES static ssize_t both_read(aco_stream_t *stream, void *p, size_t n, const char *location)
{
    return aco_io_read_at(both_of(stream)->from, p, n, location);
}

ACO__SWITCHES static ssize_t both_write(aco_stream_t *stream, const void *p, size_t n, const char *location)
{
    const both_t *both = both_of(stream);
    return check_open(both) != 0 ? -1 : aco_io_write_at(both->to, p, n, location);
}

ACO__SWITCHES
static ssize_t both_write_parts(aco_stream_t *stream, const struct iovec *parts, int count, const char *location)
{
    const both_t *both = both_of(stream);
    return check_open(both) != 0 ? -1 : aco_io_writev_at(both->to, parts, count, location);
}

static int both_shutdown(aco_stream_t *stream, const char *location)
{
    both_t *both = both_of(stream);
    int to = both->to;
    (void)location;
    if (check_open(both) != 0)
        return -1;
    both->to = -1;
    return aco_io_close(to);
}

ACO__SWITCHES static int both_wait_readable(aco_stream_t *stream, const char *location)
{
    return aco_io_wait_readable_at(both_of(stream)->from, location);
}

static int both_has_input(aco_stream_t *stream)
{
    struct pollfd look = {both_of(stream)->from, POLLIN, 0};
    return aco__system.poll(&look, 1, 0) > 0;
}

static void both_close(aco_stream_t *stream)
{
    both_t *both = both_of(stream);
    close_quietly(both->from);
    if (both->to >= 0)
        close_quietly(both->to);
    aco__service_free(both, sizeof *both);
}

aco_stream_t *aco_stream_open_both(int from, int to)
{
    static const aco_stream_functions_t functions = {
        .read = both_read,
        .write = both_write,
        .close = both_close,
        .write_parts = both_write_parts,
        .shutdown = both_shutdown,
        .wait_readable = both_wait_readable,
        .has_input = both_has_input,
    };
    size_t sz = sizeof(both_t);
    both_t *both = from >= 0 && to >= 0 ? aco__service_allocate(&sz, "aco_stream_open_both") : NULL;
    if (both) {
        both->is.functions = &functions;
        both->is.fd = -1;
        both->from = from;
        both->to = to;
        return &both->is;
    }
    if (from >= 0)
        close_quietly(from);
    if (to >= 0)
        close_quietly(to);
    return NULL;
}
