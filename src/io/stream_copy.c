/* What is read from one stream is written to the other, both ways at once. Between sockets the bytes go through a pipe
 * and never enter the process; else through a buffer, which a direction that waits does not hold. */
#define _GNU_SOURCE
#include "base/invariants.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/group.h"

#include <fcntl.h>

enum { AT_ONCE = 65536, BUFFER = 16384 };

typedef struct way {
    aco_stream_t *from, *to;
    uint64_t copied;
    int pipe[2];
    unsigned char has_pipe, is_buffered; /* neither: that is not decided yet */
    const char *location;
} way_t;

/* Whether the bytes go through a pipe, which is made at the first call. */
static int may_splice(way_t *way)
{
    if (way->has_pipe || way->is_buffered)
        return way->has_pipe;
#ifdef __linux__
    way->has_pipe = aco__stream_is_fd(way->from) && aco__stream_is_fd(way->to) &&
                    aco__system.pipe2(way->pipe, O_NONBLOCK | O_CLOEXEC) == 0;
#endif
    way->is_buffered = !way->has_pipe;
    for (int i = 0; way->has_pipe && i < 2; i++)
        (void)aco_io_adopt(way->pipe[i]); /* without it, calls cost more */
    return way->has_pipe;
}

static void close_pipe(way_t *way)
{
    int error = errno;
    if (way->has_pipe) {
        (void)aco_io_close(way->pipe[0]);
        (void)aco_io_close(way->pipe[1]);
    }
    way->has_pipe = 0;
    errno = error;
}

/* Moves what has come. The number of bytes; 0 at the end; -1 and errno. */
ACO__SWITCHES static ssize_t copy_some(way_t *way)
{
    size_t sz = BUFFER;
    char *buffer;
    ssize_t n;
    if (way->from->functions->wait_readable && aco_stream_wait_readable_at(way->from, way->location) != 0)
        return -1;
    buffer = aco__service_allocate(&sz, "aco_stream_copy_both_ways");
    if (!buffer)
        return -1;
    n = aco_stream_read_at(way->from, buffer, sz, way->location);
    if (n > 0)
        n = aco_stream_write_all_at(way->to, buffer, (size_t)n, NULL, way->location);
    aco__service_free(buffer, sz);
    return n;
}

/* The same. */
ACO__SWITCHES static ssize_t splice_some(way_t *way)
{
    ssize_t n = aco_io_splice_at(way->from->fd, NULL, way->pipe[1], NULL, AT_ONCE, 0, way->location), left, part;
    if (n < 0 && errno == EINVAL && !way->copied) { /* this descriptor has no splice() */
        close_pipe(way);
        way->is_buffered = 1;
        return copy_some(way);
    }
    for (left = n; left > 0; left -= part)
        if ((part = aco_io_splice_at(way->pipe[0], NULL, way->to->fd, NULL, (size_t)left, 0, way->location)) <= 0)
            return -1;
    return n;
}

/* Copies until the end, and passes that on. 0, or -1 and errno. */
ACO__SWITCHES static int copy_all(way_t *way)
{
    ssize_t n;
    while ((n = may_splice(way) ? splice_some(way) : copy_some(way)) > 0)
        way->copied += (uint64_t)n;
    close_pipe(way);
    return n < 0 ? -1 : aco_stream_shutdown_at(way->to, way->location);
}

ACO__SWITCHES static void *copy_back(void *way)
{
    return copy_all(way) == 0 ? NULL : ACO_ERROR;
}

int aco_stream_copy_both_ways_at(aco_stream_t *one, aco_stream_t *other, uint64_t copied[2], const char *location)
{
    way_t there = {.from = one, .to = other, .location = location};
    way_t back = {.from = other, .to = one, .location = location};
    aco_group_t group;
    int error = 0;
    if (aco_group_begin_at(&group, ACO_CANCEL_ON_FAILURE, location) != 0)
        return -1;
    if (!aco_group_spawn_at(&group, copy_back, &back, NULL, NULL, location) || copy_all(&there) != 0) {
        error = errno;
        (void)aco_scope_cancel(&group.scope);
    }
    if (group.error) /* the other direction failed first, and so ended this one */
        error = group.error;
    if (aco_group_end_at(&group, location) != 0 && !error)
        error = errno;
    if (copied) {
        copied[0] = there.copied;
        copied[1] = back.copied;
    }
    if (error)
        errno = error;
    return error ? -1 : 0;
}
