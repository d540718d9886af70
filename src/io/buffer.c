/* Buffered reading and writing. A buffer that the thread lends is allocated for each attempt to read, and freed if
 * nothing came, so that a task that waits holds none: from the slabs that costs next to nothing. */
#define _GNU_SOURCE /* struct ucred, for sys/socket.h */
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/transfer.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/io_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Lending ---- */

static char *lend(size_t size, const char *call)
{
    return aco__service_allocate(&size, call);
}

static void take_back(char **buffer, size_t size)
{
    if (*buffer)
        aco__service_free(*buffer, size);
    *buffer = NULL;
}

static int fail_for_size(const char *call, size_t size)
{
    char reason[64];
    snprintf(reason, sizeof reason, "the buffer's %zu bytes are too few", size);
    return aco__service_fail(ENOBUFS, call, reason);
}

/* ---- Reading ---- */

void aco_io_reader_open(aco_io_reader_t *reader, int fd, void *buffer, size_t size)
{
    reader->fd = fd;
    reader->aco__is_lent = !buffer;
    reader->buffer = buffer;
    reader->size = size;
    reader->begin = reader->end = 0;
    reader->stream = NULL;
}

void aco_io_reader_open_stream(aco_io_reader_t *reader, aco_stream_t *stream, void *buffer, size_t size)
{
    aco_io_reader_open(reader, stream->fd, buffer, size);
    reader->stream = aco__stream_is_fd(stream) ? NULL : stream;
}

void aco_io_reader_close(aco_io_reader_t *reader)
{
    if (reader->aco__is_lent)
        take_back(&reader->buffer, reader->size);
    reader->begin = reader->end = 0;
}

typedef struct filling {
    aco_io_reader_t *reader;
    const char *call;
} filling_t;

static ssize_t fill_once(aco__io_fd_t *d, void *args)
{
    const filling_t *f = args;
    aco_io_reader_t *r = f->reader;
    ssize_t n;
    if (!r->buffer && !(r->buffer = lend(r->size, f->call)))
        return -1;
    n = aco__io_read_once(d, r->buffer + r->end, r->size - r->end);
    if (n <= 0 && r->aco__is_lent && r->end == 0)
        take_back(&r->buffer, r->size);
    return n;
}

/* The same of a stream. */
ACO__SWITCHES static ssize_t fill_from_stream(aco_io_reader_t *r, const char *call, const char *location)
{
    ssize_t n;
    if (!r->buffer && r->stream->functions->wait_readable && aco_stream_wait_readable_at(r->stream, location) != 0)
        return -1;
    if (!r->buffer && !(r->buffer = lend(r->size, call)))
        return -1;
    n = aco_stream_read_at(r->stream, r->buffer + r->end, r->size - r->end, location);
    if (n <= 0 && r->aco__is_lent && r->end == 0)
        take_back(&r->buffer, r->size);
    return n;
}

/* Reads once behind what there is. The number of bytes, 0 at the end of the stream; -1 and errno. */
ACO__SWITCHES static ssize_t fill(aco_io_reader_t *r, const char *call, const char *location)
{
    filling_t f = {r, call};
    ssize_t n;
    ACO__ASSERT(r->begin <= r->end && r->end <= r->size && (r->buffer || !r->end));
    if (r->begin > 0) {
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
    }
    if (r->end == r->size)
        return fail_for_size(call, r->size);
    if (r->end == 0 && r->aco__is_lent) /* for the case that it waits without an attempt */
        take_back(&r->buffer, r->size);
    n = r->stream ? fill_from_stream(r, call, location)
                  : aco__io_transfer(call, r->fd, IO_READ, r->size - r->end, fill_once, &f, location);
    if (n > 0)
        r->end += (size_t)n;
    return n;
}

ssize_t aco_io_reader_peek_at(aco_io_reader_t *reader, size_t n, const char **bytes, const char *location)
{
    static const char call[] = "aco_io_reader_peek";
    ssize_t got = 1;
    if (n > reader->size)
        return fail_for_size(call, reader->size);
    while (reader->end - reader->begin < n && got > 0)
        got = fill(reader, call, location);
    *bytes = reader->buffer ? reader->buffer + reader->begin : NULL;
    return got < 0 ? -1 : (ssize_t)(reader->end - reader->begin);
}

void aco_io_reader_consume(aco_io_reader_t *reader, size_t n)
{
    size_t most = reader->end - reader->begin;
    reader->begin += n < most ? n : most;
}

/* The number of bytes up to the next delimiter and with it, or up to the end of the stream; they are not consumed. -1
 * and errno. */
ACO__SWITCHES static ssize_t await_delimiter(aco_io_reader_t *r, char delimiter, const char *call, const char *location)
{
    for (size_t seen = 0;;) {
        size_t have = r->end - r->begin;
        const char *first = have ? r->buffer + r->begin : NULL;
        const char *found = have ? memchr(first + seen, delimiter, have - seen) : NULL;
        ssize_t n;
        if (found)
            return found - first + 1;
        seen = have;
        n = fill(r, call, location);
        if (n <= 0)
            return n < 0 ? -1 : (ssize_t)have;
    }
}

ssize_t aco_io_reader_until_at(aco_io_reader_t *reader, char delimiter, char **bytes, const char *location)
{
    ssize_t n = await_delimiter(reader, delimiter, "aco_io_reader_until", location);
    *bytes = n > 0 ? reader->buffer + reader->begin : NULL;
    if (n > 0)
        reader->begin += (size_t)n;
    return n;
}

ssize_t aco_io_reader_line_at(aco_io_reader_t *reader, char **line, const char *location)
{
    ssize_t n = await_delimiter(reader, '\n', "aco_io_reader_line", location), length = n;
    char *text = n > 0 ? reader->buffer + reader->begin : NULL;
    *line = NULL;
    if (n <= 0)
        return n;
    if (text[n - 1] == '\n')
        length -= n > 1 && text[n - 2] == '\r' ? 2 : 1;
    text[length] = 0; /* there is room: a full buffer without a delimiter is an error, also at the end of the stream */
    reader->begin += (size_t)n;
    *line = text;
    return length;
}

static size_t take(aco_io_reader_t *r, void *p, size_t n)
{
    size_t have = r->end - r->begin, taken = n < have ? n : have;
    ACO__ASSERT(r->begin <= r->end && r->end <= r->size);
    if (taken)
        memcpy(p, r->buffer + r->begin, taken);
    r->begin += taken;
    return taken;
}

ACO__SWITCHES static ssize_t read_some(aco_io_reader_t *r, void *p, size_t n, const char *call, const char *location)
{
    ssize_t came = 1;
    if (r->begin == r->end && n >= r->size) {
        if (r->aco__is_lent) /* not kept while this waits */
            take_back(&r->buffer, r->size);
        r->begin = r->end = 0;
        return r->stream ? aco_stream_read_at(r->stream, p, n, location) : aco_io_read_at(r->fd, p, n, location);
    }
    if (r->begin == r->end && n > 0)
        came = fill(r, call, location);
    return came > 0 ? (ssize_t)take(r, p, n) : came;
}

ssize_t aco_io_reader_read_at(aco_io_reader_t *reader, void *p, size_t n, const char *location)
{
    return read_some(reader, p, n, "aco_io_reader_read", location);
}

ssize_t aco_io_reader_read_exactly_at(aco_io_reader_t *reader, void *p, size_t n, size_t *done, const char *location)
{
    size_t got = 0;
    ssize_t part = 1;
    while (got < n && part > 0) {
        part = read_some(reader, (char *)p + got, n - got, "aco_io_reader_read_exactly", location);
        if (part > 0)
            got += (size_t)part;
    }
    if (done)
        *done = got;
    return part < 0 ? -1 : (ssize_t)got;
}

/* ---- Writing ---- */

void aco_io_writer_open(aco_io_writer_t *writer, int fd, void *buffer, size_t size)
{
    writer->fd = fd;
    writer->aco__is_lent = !buffer;
    writer->buffer = buffer;
    writer->size = size;
    writer->end = 0;
    writer->stream = NULL;
}

void aco_io_writer_open_stream(aco_io_writer_t *writer, aco_stream_t *stream, void *buffer, size_t size)
{
    aco_io_writer_open(writer, stream->fd, buffer, size);
    writer->stream = aco__stream_is_fd(stream) ? NULL : stream;
}

void aco_io_writer_close(aco_io_writer_t *writer)
{
    if (writer->aco__is_lent)
        take_back(&writer->buffer, writer->size);
    writer->end = 0;
}

ACO__SWITCHES
static ssize_t write_all(const aco_io_writer_t *w, const void *p, size_t n, size_t *done, const char *location)
{
    return w->stream ? aco_stream_write_all_at(w->stream, p, n, done, location)
                     : aco_io_write_all_at(w->fd, p, n, done, location);
}

int aco_io_writer_flush_at(aco_io_writer_t *writer, const char *location)
{
    size_t done = 0;
    ssize_t n = writer->end ? write_all(writer, writer->buffer, writer->end, &done, location) : 0;
    ACO__ASSERT(done <= writer->end && writer->end <= writer->size); /* one task at a time uses a writer */
    writer->end -= done;
    if (writer->end)
        memmove(writer->buffer, writer->buffer + done, writer->end);
    else if (writer->aco__is_lent)
        take_back(&writer->buffer, writer->size);
    return n < 0 ? -1 : 0;
}

/* Makes sure that there is a buffer. 0, or -1 and errno. */
static int need_buffer(aco_io_writer_t *w, const char *call)
{
    if (!w->buffer)
        w->buffer = lend(w->size, call);
    return w->buffer ? 0 : -1;
}

int aco_io_writer_write_at(aco_io_writer_t *writer, const void *p, size_t n, const char *location)
{
    if (n > writer->size - writer->end && aco_io_writer_flush_at(writer, location) != 0)
        return -1;
    if (n > writer->size)
        return write_all(writer, p, n, NULL, location) < 0 ? -1 : 0;
    if (n == 0)
        return 0;
    if (need_buffer(writer, "aco_io_writer_write") != 0)
        return -1;
    ACO__ASSERT(writer->end <= writer->size && n <= writer->size - writer->end);
    memcpy(writer->buffer + writer->end, p, n);
    writer->end += n;
    return 0;
}

int aco_io_writer_print(aco_io_writer_t *writer, const char *format, ...)
{
    static const char call[] = "aco_io_writer_print";
    for (;;) {
        va_list arguments;
        size_t room;
        int n;
        if (need_buffer(writer, call) != 0)
            return -1;
        room = writer->size - writer->end;
        va_start(arguments, format);
        n = vsnprintf(writer->buffer + writer->end, room, format, arguments);
        va_end(arguments);
        if (n >= 0 && (size_t)n < room) {
            writer->end += (size_t)n;
            return 0;
        }
        if (n < 0 || writer->end == 0) {
            if (writer->end == 0 && writer->aco__is_lent)
                take_back(&writer->buffer, writer->size);
            return n < 0 ? aco__service_fail(errno, call, strerror(errno)) : fail_for_size(call, writer->size);
        }
        if (aco_io_writer_flush_at(writer, call) != 0)
            return -1;
    }
}
