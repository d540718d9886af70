/* Calls for files by io_uring. When a scope ends, the operation is cancelled; one that uses the caller's memory is
 * waited for all the same, until the kernel has let go of that memory.
 *
 * The kernel, too, cancels operations that it has not begun: those that need one of its threads while it has none and
 * cannot start one (RLIMIT_NPROC, or the container's bound on processes, is reached). The pool then makes the call. */
#define _GNU_SOURCE /* struct statx */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/file_internal.h"
#include "io/file_uring.h"
#include "io/uring.h"

#include "aco/detail/poller.h"

#ifdef ACO_CONFIG_URING
#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { MOST_BYTES = 0x7ffff000 }; /* that one system call moves */

static file_call_t *call_of(aco__io_op_t *op)
{
    return (file_call_t *)(void *)((char *)op - offsetof(file_call_t, op));
}

static void prepare_call(aco__io_op_t *op, struct io_uring_sqe *entry)
{
    file_call_t *c = call_of(op);
    unsigned n = c->n < MOST_BYTES ? (unsigned)c->n : MOST_BYTES;
    switch (c->operation) {
    case FILE_OPEN:
        io_uring_prep_openat(entry, AT_FDCWD, c->path, c->flags | O_CLOEXEC, (mode_t)c->mode);
        entry->flags |= IOSQE_ASYNC; /* else it would first try with O_NONBLOCK, and not wait for a FIFO's other end */
        break;
    case FILE_READ:
        io_uring_prep_read(entry, c->fd, c->p, n, (uint64_t)c->offset);
        break;
    case FILE_WRITE:
        io_uring_prep_write(entry, c->fd, c->p, n, (uint64_t)c->offset);
        break;
    case FILE_SYNC:
        io_uring_prep_fsync(entry, c->fd, 0);
        break;
    case FILE_STAT:
        io_uring_prep_statx(entry, c->path ? AT_FDCWD : c->fd, c->path ? c->path : "", c->path ? 0 : AT_EMPTY_PATH,
                            STATX_BASIC_STATS, c->p);
        break;
    case FILE_RENAME:
        io_uring_prep_renameat(entry, AT_FDCWD, c->path, AT_FDCWD, c->other, 0);
        break;
    case FILE_TRUNCATE:
    case FILE_LINK:
    case FILE_UNLINK:
    case FILE_MKDIR:
    case FILE_RMDIR:
    case FILE_OPEN_BENEATH:
        ACO__ASSERT(0);
        break;
    }
}

static int64_t statx_ns(const struct statx_timestamp *time)
{
    return aco__file_ns(time->tv_sec, time->tv_nsec);
}

static void translate_statx(aco_file_status_t *status, const struct statx *s)
{
    status->device = makedev(s->stx_dev_major, s->stx_dev_minor);
    status->inode = s->stx_ino;
    status->links = s->stx_nlink;
    status->size = s->stx_size;
    status->blocks = s->stx_blocks;
    status->mode = s->stx_mode;
    status->user = s->stx_uid;
    status->group = s->stx_gid;
    status->block_size = s->stx_blksize;
    status->accessed_ns = statx_ns(&s->stx_atime);
    status->modified_ns = statx_ns(&s->stx_mtime);
    status->changed_ns = statx_ns(&s->stx_ctime);
}

/* What tells that the kernel's thread was interrupted: the process was stopped and continues, say, or its container was
 * frozen. The kernel begins a system call again that ends so, and tells nobody; an operation it lets end. */
static int is_interruption(int result)
{
    enum { ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };
    return result == -EINTR || result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
           result == -ERESTART_RESTARTBLOCK;
}

static void call_is_done(aco__io_t *io, aco__io_op_t *op, int result)
{
    file_call_t *c = call_of(op);
    ACO__ASSERT(!op->is_done && op->state != IO_OP_SUBMITTED);
    if (is_interruption(result))
        result = -EINTR;
    if (result == -EINTR && !op->is_given_up) {
        aco__io_ring_add(io, op);
        return;
    }
    c->result = result < 0 ? -1 : result;
    c->error = result < 0 ? -result : 0;
    op->is_done = 1;
    if (c->operation == FILE_STAT && result == 0)
        translate_statx(c->status, c->p);
    if (!op->is_abandoned)
        aco__poller_wake(&op->queue, 0);
    else if (c->release)
        c->release(c, c);
    else
        aco__service_free(c, c->sz);
}

int aco__file_by_ring(aco__io_t *io, file_call_t *c, const char *call, const char *location)
{
    aco__io_op_t *op = &c->op;
    int error;
    op->fd = c->fd;
    op->prepare = prepare_call;
    op->done = call_is_done;
    if (aco__io_ring_wait(io, op, call, 1, location) == 0 || op->is_done)
        return c->result < 0 && c->error == ECANCELED;
    error = errno;
    op->is_given_up = 1;
    if (aco__io_ring_cancel(io, op)) {
        if (c->release) {
            aco__io_ring_abandon(io, op);
            return -1;
        }
        (void)aco__io_ring_wait(io, op, call, 0, location);
        ACO__ASSERT(op->is_done); /* the kernel writes to the caller's memory until then */
        if (c->result >= 0 || (c->error != ECANCELED && c->error != EINTR))
            return 0;
    } else if (c->release) {
        c->release(c, NULL);
    }
    errno = error;
    return -1;
}
#endif
