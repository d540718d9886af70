/* Open files of a simulated disk. The calls take no time: who waits for the disk does that before, for
 * aco__sim_disk_time(). After a crash of the disk an open file is dead. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* O_DIRECT */
#include "sim/open_file.h"
#include "sim/byte_queue.h"
#include "sim/call_lists.h"
#include "sim/fifo.h"
#include "sim/world.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LEAST_DIRECT = 512 };

typedef struct open_file {
    aco__sim_file_t file;
    aco__sim_disk_t *disk;
    aco__sim_inode_t *inode; /* it is held */
    uint64_t crashes; /* of the disk, when it was opened */
    int64_t position;
} open_file_t;

static open_file_t *open_file_of(aco__sim_file_t *file)
{
    return (open_file_t *)file;
}

/* ---- Kinds of files ---- */

static unsigned always_ready(aco__sim_file_t *file)
{
    (void)file;
    return ACO__SIM_READABLE | ACO__SIM_WRITABLE;
}

static void free_open_file(aco__sim_file_t *file)
{
    aco__sim_inode_drop(&open_file_of(file)->disk->tree, open_file_of(file)->inode);
}

static ssize_t read_on(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags);
static ssize_t write_on(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags);
static void tell_status(aco__sim_file_t *file, void *status);

static const aco__sim_type_t regular_type = {S_IFREG, always_ready,   read_on,    write_on,
                                             NULL,    free_open_file, tell_status};
static const aco__sim_type_t folder_type = {S_IFDIR, always_ready,   read_on,    write_on,
                                            NULL,    free_open_file, tell_status};

aco__sim_file_t *aco__sim_file_of_inode(aco_sim_t *sim, aco__sim_disk_t *disk, aco__sim_inode_t *inode, int flags)
{
    open_file_t *f;
    if (S_ISFIFO(inode->mode))
        return aco__sim_fifo_of_inode(sim, disk, inode, flags);
    f = aco__sim_file_new(sim, inode->is_folder ? &folder_type : &regular_type, sizeof *f, flags);
    if (!f)
        return NULL;
    f->disk = disk;
    f->inode = inode;
    f->crashes = disk->crashes;
    aco__sim_inode_hold(inode);
    return &f->file;
}

/* ---- Status ---- */

static void tell_status(aco__sim_file_t *file, void *status)
{
    aco__sim_inode_status(open_file_of(file)->inode, status);
}

int64_t *aco__sim_file_position(aco__sim_file_t *file)
{
    return &open_file_of(file)->position;
}

int64_t aco__sim_file_rest(aco__sim_file_t *file)
{
    return open_file_of(file)->inode->content.size - open_file_of(file)->position;
}

/* ---- Faults ---- */

static int is_dead(const open_file_t *f)
{
    return f->crashes != f->disk->crashes;
}

static int fails(aco_sim_t *sim, const open_file_t *f, double chance)
{
    errno = EIO;
    return is_dead(f) || aco__sim_disk_maybe(sim, chance);
}

static int is_misaligned(const open_file_t *f, const void *p, size_t n, int64_t offset)
{
    errno = EINVAL;
    return f->file.flags & O_DIRECT && ((uintptr_t)p % LEAST_DIRECT || n % LEAST_DIRECT || offset % LEAST_DIRECT);
}

/* ---- Reads and writes ---- */

/* Of one part. */
static ssize_t read_part(aco_sim_t *sim, open_file_t *f, void *p, size_t n, int64_t offset)
{
    if (is_misaligned(f, p, n, offset) || fails(sim, f, f->disk->options.read_errors))
        return -1;
    if (!(f->file.flags & O_NOATIME))
        aco__sim_inode_accessed(f->inode, aco__sim_node_time(sim));
    return (ssize_t)aco__sim_content_read(&f->inode->content, p, aco__sim_disk_part(sim, f->disk, n), offset);
}

static ssize_t write_part(aco_sim_t *sim, open_file_t *f, const void *p, size_t n, int64_t offset)
{
    ssize_t written;
    if (is_misaligned(f, p, n, offset) || fails(sim, f, f->disk->options.write_errors))
        return -1;
    n = aco__sim_disk_part(sim, f->disk, n);
    written = aco__sim_content_write(&f->inode->content, &f->disk->tree.room, p, n, offset);
    f->inode->modified = f->inode->changed = aco__sim_node_time(sim);
    if (written > 0 && f->file.flags & O_DSYNC) /* O_SYNC has it, too */
        aco__sim_content_sync(&f->inode->content, f->disk->sector);
    return written;
}

static int may_read(const open_file_t *f)
{
    errno = (f->file.flags & O_ACCMODE) == O_WRONLY ? EBADF : EISDIR;
    return errno == EISDIR && f->file.type == &regular_type;
}

static int may_write(const open_file_t *f)
{
    errno = EBADF;
    return (f->file.flags & O_ACCMODE) != O_RDONLY;
}

/* Reads or writes the parts one after the other, until one is short. -1 and errno, if the first one fails. */
static ssize_t each_part(aco_sim_t *sim, open_file_t *f, const struct msghdr *message, int64_t offset, int is_write)
{
    ssize_t done = 0, n;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *part = &message->msg_iov[i];
        if (!part->iov_len)
            continue;
        n = is_write ? write_part(sim, f, part->iov_base, part->iov_len, offset + done)
                     : read_part(sim, f, part->iov_base, part->iov_len, offset + done);
        if (n < 0)
            return done ? done : -1;
        done += n;
        if ((size_t)n < part->iov_len)
            break;
    }
    return done;
}

static ssize_t read_on(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int flags)
{
    open_file_t *f = open_file_of(file);
    ssize_t n = may_read(f) ? each_part(sim, f, message, f->position, 0) : -1;
    (void)flags;
    if (n > 0)
        f->position += n;
    return n;
}

static int64_t write_offset(const open_file_t *f, int64_t offset)
{
    return (f->file.flags & O_APPEND) ? f->inode->content.size : offset;
}

static ssize_t write_on(aco_sim_t *sim, aco__sim_file_t *file, const struct msghdr *message, int flags)
{
    open_file_t *f = open_file_of(file);
    int64_t offset = write_offset(f, f->position);
    ssize_t n = may_write(f) ? each_part(sim, f, message, offset, 1) : -1;
    (void)flags;
    if (n > 0)
        f->position = offset + n;
    return n;
}

/* NULL and errno: EBADF; `error`, if it is another kind of file. */
static open_file_t *disk_file(aco_sim_t *sim, int fd, int error, const char *call)
{
    aco__sim_file_t *file = aco__sim_file_of(sim, fd, call);
    if (!file || file->type == &regular_type || file->type == &folder_type)
        return (open_file_t *)file;
    return aco__sim_null_with(error);
}

aco__sim_inode_t *aco__sim_folder_of(aco_sim_t *sim, int fd, const char *call)
{
    open_file_t *f = disk_file(sim, fd, ENOTDIR, call);
    if (!f)
        return NULL;
    errno = f->file.type != &folder_type ? ENOTDIR : EIO;
    return f->file.type == &folder_type && !is_dead(f) ? f->inode : NULL;
}

/* As disk_file(), for an offset in the file. */
static open_file_t *disk_file_at(aco_sim_t *sim, int fd, int64_t offset, const char *call)
{
    return offset < 0 ? aco__sim_null_with(EINVAL) : disk_file(sim, fd, ESPIPE, call);
}

ssize_t aco__sim_pread(aco_sim_t *sim, int fd, void *p, size_t n, int64_t offset)
{
    struct iovec part = aco__sim_part(p, n);
    struct msghdr message = aco__sim_message(&part, 1);
    open_file_t *f = disk_file_at(sim, fd, offset, "pread");
    return f && may_read(f) ? each_part(sim, f, &message, offset, 0) : -1;
}

ssize_t aco__sim_pwrite(aco_sim_t *sim, int fd, const void *p, size_t n, int64_t offset)
{
    struct iovec part = aco__sim_part(p, n);
    struct msghdr message = aco__sim_message(&part, 1);
    open_file_t *f = disk_file_at(sim, fd, offset, "pwrite");
    return f && may_write(f) ? each_part(sim, f, &message, write_offset(f, offset), 1) : -1;
}

/* With RWF_NOWAIT it may be that the bytes are not in memory. */
ssize_t aco__sim_file_read(aco_sim_t *sim, aco__sim_file_t *file, struct msghdr *message, int64_t offset, int flags)
{
    open_file_t *f = open_file_of(file);
    if (flags && file->type == &folder_type)
        return aco__sim_fail_with(EOPNOTSUPP);
    if (!may_read(f))
        return -1;
    if (flags && aco__sim_disk_draw(sim, 2))
        return aco__sim_fail_with(EAGAIN);
    return offset < 0 ? read_on(sim, file, message, 0) : each_part(sim, f, message, offset, 0);
}

/* ---- Positions, sizes, what is durable ---- */

int64_t aco__sim_lseek(aco_sim_t *sim, int fd, int64_t offset, int from)
{
    open_file_t *f = disk_file(sim, fd, ESPIPE, "lseek");
    int64_t base;
    if (!f)
        return -1;
    if (from == SEEK_DATA || from == SEEK_HOLE)
        return aco__sim_fail_with(aco__sim_refuse(sim, "lseek"));
    base = from == SEEK_CUR ? f->position : from == SEEK_END ? f->inode->content.size : 0;
    if ((from != SEEK_SET && from != SEEK_CUR && from != SEEK_END) || offset < -base || offset > INT64_MAX - base)
        return aco__sim_fail_with(EINVAL);
    return f->position = base + offset;
}

int aco__sim_fsync(aco_sim_t *sim, int fd)
{
    open_file_t *f = disk_file(sim, fd, EINVAL, "fsync");
    int failed;
    if (!f || is_dead(f))
        return f ? aco__sim_fail_with(EIO) : -1;
    failed = fails(sim, f, f->disk->options.sync_errors);
    if (f->file.type == &folder_type)
        aco__sim_tree_sync(&f->disk->tree, f->inode, failed);
    else if (failed)
        aco__sim_content_lose(&f->inode->content);
    else
        aco__sim_content_sync(&f->inode->content, f->disk->sector);
    return failed ? aco__sim_fail_with(EIO) : 0;
}

int aco__sim_ftruncate(aco_sim_t *sim, int fd, int64_t size)
{
    open_file_t *f = size < 0 ? NULL : disk_file(sim, fd, EINVAL, "ftruncate");
    if (!f)
        return size < 0 ? aco__sim_fail_with(EINVAL) : -1;
    if (f->file.type != &regular_type || !may_write(f))
        return aco__sim_fail_with(EINVAL);
    if (is_dead(f))
        return aco__sim_fail_with(EIO);
    f->inode->modified = f->inode->changed = aco__sim_node_time(sim);
    return aco__sim_content_resize(&f->inode->content, &f->disk->tree.room, size);
}
