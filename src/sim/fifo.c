/* Pipes: bytes, and the open files that read or write them. What is written is there at once. A named pipe is an inode
 * that has a pipe while it is open. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* S_IFIFO, O_DIRECT */
#include "sim/fifo.h"
#include "sim/byte_queue.h"
#include "sim/interest.h"
#include "sim/open_file.h"
#include "sim/waiting.h"
#include "sim/world.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CAPACITY = 65536 };
enum { READERS, WRITERS }; /* sides */

struct aco__sim_fifo {
    aco__sim_bytes_t bytes;
    aco__links_t ends;          /* those that are not closed */
    unsigned users;             /* ends that are not freed */
    unsigned n[2], ever[2];     /* ends by side: those that are not closed; how many there were */
};

typedef struct fifo {
    aco__sim_file_t file;
    aco__links_t of_pipe;
    aco__sim_fifo_t *pipe;
    aco__sim_disk_t *disk;      /* of a named pipe; else NULL, as is: */
    aco__sim_inode_t *inode;    /* it is held */
    unsigned missed;            /* so many of the other side were gone when it was opened; 0: one was there */
} fifo_t;

static fifo_t *fifo_of(aco__sim_file_t *file)
{
    return (fifo_t *)file;
}

static size_t room_in(const aco__sim_fifo_t *pipe)
{
    return CAPACITY - pipe->bytes.n;
}

static int is_of(const fifo_t *end, int side)
{
    return (end->file.flags & O_ACCMODE) != (side == READERS ? O_WRONLY : O_RDONLY);
}

/* Whether one of the other side has been there since it was opened. */
static int has_met(const fifo_t *end)
{
    return end->pipe->ever[is_of(end, READERS) ? WRITERS : READERS] != end->missed;
}

static void notify_side(const aco__sim_fifo_t *pipe, int side, unsigned events)
{
    ACO__EACH_LINKED(fifo_t, end, &pipe->ends, of_pipe)
    if (is_of(end, side))
        aco__sim_notify(&end->file, events);
}

/* ---- Bytes ---- */

static unsigned fifo_events(aco__sim_file_t *file)
{
    const fifo_t *end = fifo_of(file);
    const aco__sim_fifo_t *pipe = end->pipe;
    unsigned events = 0;
    if (is_of(end, READERS))
        events |= (pipe->bytes.n ? ACO__SIM_READABLE : 0) | (pipe->n[WRITERS] || !has_met(end) ? 0 : EPOLLHUP);
    if (is_of(end, WRITERS))
        events |= (room_in(pipe) >= PIPE_BUF ? ACO__SIM_WRITABLE : 0) | (pipe->n[READERS] ? 0 : EPOLLERR);
    return events;
}

static ssize_t read_fifo(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    const fifo_t *end = fifo_of(file);
    aco__sim_fifo_t *pipe = end->pipe;
    size_t n = aco__sim_parts_size(message), had = room_in(pipe);
    if (!n || (!pipe->bytes.n && !pipe->n[WRITERS]))
        return 0;
    if (!pipe->bytes.n)
        return aco__sim_fail_with(EAGAIN);
    n = n < pipe->bytes.n ? n : pipe->bytes.n;
    aco__sim_bytes_copy(&pipe->bytes, message, n);
    if (flags & MSG_PEEK)
        return (ssize_t)n;
    aco__sim_bytes_remove(&pipe->bytes, n);
    if (had < PIPE_BUF && room_in(pipe) >= PIPE_BUF)
        notify_side(pipe, WRITERS, ACO__SIM_WRITABLE);
    if (end->inode)
        aco__sim_inode_accessed(end->inode, aco__sim_node_time(sim));
    return (ssize_t)n;
}

/* Up to PIPE_BUF bytes go at once or not at all. */
static ssize_t write_fifo(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    const fifo_t *end = fifo_of(file);
    aco__sim_fifo_t *pipe = end->pipe;
    size_t n = aco__sim_parts_size(message), room = room_in(pipe);
    (void)flags;
    if (!n)
        return 0;
    if (!pipe->n[READERS])
        return aco__sim_fail_with(EPIPE);
    if (!room || (n <= PIPE_BUF && n > room))
        return aco__sim_fail_with(EAGAIN);
    n = n < room ? n : room;
    if (aco__sim_bytes_append(&pipe->bytes, message, n) != 0)
        return aco__sim_fail_with(ENOMEM);
    notify_side(pipe, READERS, ACO__SIM_READABLE);
    if (end->inode)
        end->inode->modified = end->inode->changed = aco__sim_node_time(sim);
    return (ssize_t)n;
}

/* ---- Ends ---- */

static void leave(fifo_t *end)
{
    aco__sim_fifo_t *pipe = end->pipe;
    if (!end->of_pipe.next)
        return;
    aco__links_remove(&end->of_pipe);
    for (int side = READERS; side <= WRITERS; side++)
        pipe->n[side] -= (unsigned)is_of(end, side);
    if (end->inode && !aco__links_first(&pipe->ends))
        end->inode->pipe = NULL;
}

static void close_fifo(aco_sim_t *sim, aco__sim_file_t *file)
{
    const aco__sim_fifo_t *pipe = fifo_of(file)->pipe;
    (void)sim;
    leave(fifo_of(file));
    if (!pipe->n[READERS] || !pipe->n[WRITERS])
        notify_side(pipe, pipe->n[READERS] ? READERS : WRITERS, ~0u);
}

static void free_fifo(aco__sim_file_t *file)
{
    fifo_t *end = fifo_of(file);
    leave(end);
    if (--end->pipe->users == 0) {
        aco__sim_bytes_free(&end->pipe->bytes);
        free(end->pipe);
    }
    if (end->inode)
        aco__sim_inode_drop(&end->disk->tree, end->inode);
}

static void fifo_status(aco__sim_file_t *file, void *status)
{
    if (fifo_of(file)->inode)
        aco__sim_inode_status(fifo_of(file)->inode, status);
}

static const aco__sim_type_t fifo_types[] = {
    [O_RDONLY] = {S_IFIFO | 0600, fifo_events, read_fifo, NULL, close_fifo, free_fifo, fifo_status},
    [O_WRONLY] = {S_IFIFO | 0600, fifo_events, NULL, write_fifo, close_fifo, free_fifo, fifo_status},
    [O_RDWR] = {S_IFIFO | 0600, fifo_events, read_fifo, write_fifo, close_fifo, free_fifo, fifo_status},
};

static aco__sim_fifo_t *new_pipe(void)
{
    aco__sim_fifo_t *pipe = calloc(1, sizeof *pipe);
    if (!pipe)
        return aco__sim_null_with(ENOMEM);
    aco__links_empty(&pipe->ends);
    return pipe;
}

/* A pipe without an end is freed if there is no memory. */
static fifo_t *new_end(aco_sim_t *sim, aco__sim_fifo_t *pipe, int flags)
{
    fifo_t *end = aco__sim_file_new(sim, &fifo_types[flags & O_ACCMODE], sizeof *end, flags);
    int other;
    if (!end) {
        if (!pipe->users)
            free(pipe);
        return aco__sim_null_with(ENOMEM);
    }
    other = is_of(end, READERS) ? WRITERS : READERS;
    end->pipe = pipe;
    end->missed = pipe->n[other] ? 0 : pipe->ever[other];
    for (int side = READERS; side <= WRITERS; side++) {
        pipe->n[side] += (unsigned)is_of(end, side);
        pipe->ever[side] += (unsigned)is_of(end, side);
    }
    pipe->users++;
    aco__links_append(&pipe->ends, &end->of_pipe);
    return end;
}

aco__sim_fifo_t *aco__sim_pipe_of(const aco__sim_file_t *file)
{
    return file->type->free == free_fifo ? ((const fifo_t *)file)->pipe : NULL;
}

size_t aco__sim_fifo_room(const aco__sim_fifo_t *pipe)
{
    return pipe->n[READERS] ? room_in(pipe) : 0;
}

size_t aco__sim_fifo_size(const aco__sim_fifo_t *pipe)
{
    return pipe->bytes.n;
}

/* ---- Named pipes ---- */

int aco__sim_is_named_pipe(const aco__sim_file_t *file)
{
    return aco__sim_pipe_of(file) && ((const fifo_t *)file)->inode;
}

/* Whether open() waits for the other end. */
static int would_wait(const aco__sim_fifo_t *pipe, int flags)
{
    int mode = flags & O_ACCMODE;
    return mode != O_RDWR && !(flags & O_NONBLOCK) && !(pipe && pipe->n[mode == O_RDONLY ? WRITERS : READERS]);
}

aco__sim_file_t *aco__sim_fifo_of_inode(aco_sim_t *sim, aco__sim_disk_t *disk, aco__sim_inode_t *inode, int flags)
{
    const int hasty = O_WRONLY | O_NONBLOCK;
    aco__sim_fifo_t *pipe = inode->pipe;
    fifo_t *end;
    if ((flags & (O_ACCMODE | O_NONBLOCK)) == hasty && (!pipe || !pipe->n[READERS]))
        return aco__sim_null_with(ENXIO);
    if (flags & O_DIRECT)
        return aco__sim_null_with(EINVAL);
    if (would_wait(pipe, flags) && aco__sim_must_not_wait(sim))
        return NULL;
    if (!pipe && (pipe = new_pipe()) == NULL)
        return NULL;
    end = new_end(sim, pipe, flags);
    if (!end)
        return NULL;
    inode->pipe = pipe;
    end->disk = disk;
    end->inode = inode;
    aco__sim_inode_hold(inode);
    for (int side = READERS; side <= WRITERS; side++)
        if (is_of(end, side) && pipe->n[side] == 1) /* open() may wait for the first of a side */
            notify_side(pipe, READERS, ~0u);
    return &end->file;
}

int aco__sim_fifo_meet(aco_sim_t *sim, aco__sim_file_t *file)
{
    if (!aco__sim_pipe_of(file) || file->flags & O_NONBLOCK)
        return 0;
    while (!has_met(fifo_of(file)))
        if (aco__sim_block(sim, file, "open") != 0)
            return -1;
    return 0;
}

/* ---- pipe2() ---- */

int aco__sim_pipe2(aco_sim_t *sim, int *fds, int flags)
{
    int fd_flags = (flags & O_CLOEXEC) ? FD_CLOEXEC : 0, numbers[2], error;
    aco__sim_fifo_t *pipe;
    fifo_t *reader, *writer;
    if (flags & ~(O_CLOEXEC | O_NONBLOCK)) /* O_DIRECT makes packets */
        return aco__sim_fail_with((flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT)) ? EINVAL
                                                                                 : aco__sim_refuse(sim, "pipe2"));
    pipe = new_pipe();
    reader = pipe ? new_end(sim, pipe, O_RDONLY | (flags & O_NONBLOCK)) : NULL;
    writer = reader ? new_end(sim, pipe, O_WRONLY | (flags & O_NONBLOCK)) : NULL;
    if (!writer) {
        if (reader)
            aco__sim_file_close(sim, &reader->file);
        return aco__sim_fail_with(ENOMEM);
    }
    numbers[0] = aco__sim_file_open(sim, &reader->file, fd_flags, "pipe2");
    numbers[1] = aco__sim_file_open(sim, &writer->file, fd_flags, "pipe2");
    if (numbers[0] >= 0 && numbers[1] >= 0) {
        memcpy(fds, numbers, sizeof numbers);
        return 0;
    }
    error = errno; /* an end without a number is closed */
    for (int i = 0; i < 2; i++)
        if (numbers[i] >= 0)
            (void)aco__sim_close(sim, numbers[i]);
    return aco__sim_fail_with(error);
}
