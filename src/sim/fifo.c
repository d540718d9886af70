/* Pipes: two files, of which the reader has the bytes. What is written is there at once. */
#define _GNU_SOURCE /* S_IFIFO, O_DIRECT */
#include "sim/fifo.h"
#include "sim/byte_queue.h"
#include "sim/interest.h"
#include "sim/world.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CAPACITY = 65536 };

typedef struct fifo {
    aco__sim_file_t file;
    struct fifo *other;         /* it is held; NULL: it is closed */
    aco__sim_bytes_t bytes;     /* of a reader */
} fifo_t;

static fifo_t *fifo_of(aco__sim_file_t *file)
{
    return (fifo_t *)file;
}

static size_t room_in(const fifo_t *reader)
{
    return CAPACITY - reader->bytes.n;
}

/* ---- The reader ---- */

static unsigned reader_events(aco__sim_file_t *file)
{
    const fifo_t *reader = fifo_of(file);
    return (reader->bytes.n ? ACO__SIM_READABLE : 0) | (reader->other ? 0 : EPOLLHUP);
}

static ssize_t read_fifo(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    fifo_t *reader = fifo_of(file);
    size_t n = aco__sim_parts_size(message), had = room_in(reader);
    (void)sim;
    if (!n || (!reader->bytes.n && !reader->other))
        return 0;
    if (!reader->bytes.n)
        return aco__sim_fail_with(EAGAIN);
    n = n < reader->bytes.n ? n : reader->bytes.n;
    aco__sim_bytes_copy(&reader->bytes, message, n);
    if (flags & MSG_PEEK)
        return (ssize_t)n;
    aco__sim_bytes_remove(&reader->bytes, n);
    if (reader->other && had < PIPE_BUF && room_in(reader) >= PIPE_BUF)
        aco__sim_notify(&reader->other->file, ACO__SIM_WRITABLE);
    return (ssize_t)n;
}

/* ---- The writer ---- */

static unsigned writer_events(aco__sim_file_t *file)
{
    const fifo_t *writer = fifo_of(file);
    return writer->other ? room_in(writer->other) >= PIPE_BUF ? ACO__SIM_WRITABLE : 0 : ACO__SIM_WRITABLE | EPOLLERR;
}

/* Up to PIPE_BUF bytes go at once or not at all. */
static ssize_t write_fifo(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    fifo_t *reader = fifo_of(file)->other;
    size_t n = aco__sim_parts_size(message), room = reader ? room_in(reader) : 0;
    (void)sim, (void)flags;
    if (!n)
        return 0;
    if (!reader)
        return aco__sim_fail_with(EPIPE);
    if (!room || (n <= PIPE_BUF && n > room))
        return aco__sim_fail_with(EAGAIN);
    n = n < room ? n : room;
    if (aco__sim_bytes_append(&reader->bytes, message, n) != 0)
        return aco__sim_fail_with(ENOMEM);
    aco__sim_notify(&reader->file, ACO__SIM_READABLE);
    return (ssize_t)n;
}

/* ---- Both ---- */

static void close_fifo(aco_sim_t *sim, aco__sim_file_t *file)
{
    fifo_t *other = fifo_of(file)->other;
    (void)sim;
    if (!other)
        return;
    fifo_of(file)->other = other->other = NULL;
    aco__sim_notify(&other->file, ~0u);
    aco__sim_file_drop(&other->file);
    aco__sim_file_drop(file);
}

static void free_fifo(aco__sim_file_t *file)
{
    aco__sim_bytes_free(&fifo_of(file)->bytes);
}

static const aco__sim_type_t reader_type = {S_IFIFO | 0600, reader_events, read_fifo, NULL, close_fifo, free_fifo,
                                            NULL};
static const aco__sim_type_t writer_type = {S_IFIFO | 0600, writer_events, NULL, write_fifo, close_fifo, free_fifo,
                                            NULL};

int aco__sim_is_fifo(const aco__sim_file_t *file)
{
    return file->type == &reader_type || file->type == &writer_type;
}

size_t aco__sim_fifo_room(const aco__sim_file_t *file)
{
    const fifo_t *writer = (const fifo_t *)file;
    ACO__ASSERT(file->type == &writer_type);
    return writer->other ? room_in(writer->other) : 0;
}

int aco__sim_pipe2(aco_sim_t *sim, int *fds, int flags)
{
    int fd_flags = (flags & O_CLOEXEC) ? FD_CLOEXEC : 0, numbers[2];
    fifo_t *reader, *writer;
    if (flags & ~(O_CLOEXEC | O_NONBLOCK)) /* O_DIRECT makes packets */
        return aco__sim_fail_with((flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT)) ? EINVAL
                                                                                 : aco__sim_refuse(sim, "pipe2"));
    reader = aco__sim_file_new(sim, &reader_type, sizeof *reader, O_RDONLY | (flags & O_NONBLOCK));
    writer = reader ? aco__sim_file_new(sim, &writer_type, sizeof *writer, O_WRONLY | (flags & O_NONBLOCK)) : NULL;
    if (!writer) {
        if (reader)
            aco__sim_file_close(sim, &reader->file);
        return aco__sim_fail_with(ENOMEM);
    }
    reader->other = writer;
    writer->other = reader;
    aco__sim_file_hold(&reader->file);
    aco__sim_file_hold(&writer->file);
    numbers[0] = aco__sim_file_open(sim, &reader->file, fd_flags, "pipe2");
    numbers[1] = numbers[0] < 0 ? -1 : aco__sim_file_open(sim, &writer->file, fd_flags, "pipe2");
    if (numbers[1] < 0) {
        int error = errno;
        if (numbers[0] >= 0) /* else both are gone with the reader */
            (void)aco__sim_close(sim, numbers[0]);
        return aco__sim_fail_with(error);
    }
    memcpy(fds, numbers, sizeof numbers);
    return 0;
}
