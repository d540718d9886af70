/* Files: each call is a record that io_uring (file_uring.c) or a thread of the pool works on. Paths are copied into it,
 * so that a call whose scope has ended can be abandoned. Reads and writes use the caller's memory, and are waited
 * for. */
#define _GNU_SOURCE /* preadv2() */
#define _FILE_OFFSET_BITS 64
#include "base/invariants.h"
#include "io/descriptor.h"
#include "io/file_beneath.h"
#include "io/file_internal.h"
#include "io/file_uring.h"
#include "io/offload_internal.h"
#include "io/uring.h"
#include "system/system.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer) /* it does not know preadv2() */
#undef RWF_NOWAIT
#endif
#endif

enum { LARGEST_COPY = 256 * 1024, LEAST_BLOCK = 512 };

/* ---- On a thread of the pool ---- */

static int64_t ns_of(const struct timespec *time)
{
    return aco__file_ns(time->tv_sec, time->tv_nsec);
}

static int perform_stat(const file_call_t *c)
{
    aco_file_status_t *status = c->status;
    struct stat s;
    if ((c->path ? aco__system.stat(c->path, &s) : aco__system.fstat(c->fd, &s)) != 0)
        return -1;
    status->device = s.st_dev;
    status->inode = s.st_ino;
    status->links = s.st_nlink;
    status->size = (uint64_t)s.st_size;
    status->blocks = (uint64_t)s.st_blocks;
    status->mode = s.st_mode;
    status->user = s.st_uid;
    status->group = s.st_gid;
    status->block_size = (uint32_t)s.st_blksize;
#ifdef __APPLE__
    status->accessed_ns = ns_of(&s.st_atimespec);
    status->modified_ns = ns_of(&s.st_mtimespec);
    status->changed_ns = ns_of(&s.st_ctimespec);
#else
    status->accessed_ns = ns_of(&s.st_atim);
    status->modified_ns = ns_of(&s.st_mtim);
    status->changed_ns = ns_of(&s.st_ctim);
#endif
    return 0;
}

static ssize_t perform_once(const file_call_t *c)
{
    switch (c->operation) {
    case FILE_OPEN:
        return aco__system.open(c->path, c->flags | O_CLOEXEC, (mode_t)c->mode);
    case FILE_READ:
        return c->offset < 0 ? aco__system.read(c->fd, c->p, c->n) : aco__system.pread(c->fd, c->p, c->n, c->offset);
    case FILE_WRITE:
        return c->offset < 0 ? aco__system.write(c->fd, c->p, c->n) : aco__system.pwrite(c->fd, c->p, c->n, c->offset);
    case FILE_SYNC:
        return aco__system.fsync(c->fd);
    case FILE_STAT:
        return perform_stat(c);
    case FILE_RENAME:
        return aco__system.rename(c->path, c->other);
    case FILE_TRUNCATE:
        return aco__system.ftruncate(c->fd, c->offset);
    case FILE_LINK:
        return aco__system.link(c->path, c->other);
    case FILE_UNLINK:
        return aco__system.unlink(c->path);
    case FILE_MKDIR:
        return aco__system.mkdir(c->path, (mode_t)c->mode);
    case FILE_RMDIR:
        return aco__system.rmdir(c->path);
    case FILE_OPEN_BENEATH:
        return aco__file_open_beneath(c);
    }
    errno = EINVAL; /* not reached: without a default the compiler names an operation that is missing above */
    return -1;
}

static void *perform(void *arg)
{
    file_call_t *c = arg;
    do
        c->result = perform_once(c);
    while (c->result < 0 && errno == EINTR);
    c->error = errno;
    return arg;
}

/* ---- Calls ---- */

/* Its task has abandoned it. */
static void release_call(void *arg, void *result)
{
    file_call_t *c = arg;
    if (result && (c->operation == FILE_OPEN || c->operation == FILE_OPEN_BENEATH) && c->result >= 0)
        aco__system.close((int)c->result);
    aco__service_free(c, c->sz);
}

int aco__io_fail_path(const char *call, const char *path)
{
    char reason[300];
    int error = errno;
    if (error == ETIMEDOUT || error == ECANCELED)
        return -1;
    snprintf(reason, sizeof reason, "%.200s: %s", path, strerror(error));
    return aco__service_fail(error, call, reason);
}

static char *copy_path(char **room, const char *path)
{
    char *copy = *room;
    size_t n = strlen(path) + 1;
    memcpy(copy, path, n);
    *room += n;
    return copy;
}

/* `path` NULL: for a descriptor; `other` NULL: there is one path. NULL after a failure. */
static file_call_t *call_new(const char *call, file_operation_t operation, int fd, const char *path, const char *other)
{
    size_t status_sz = operation == FILE_STAT ? sizeof(aco_file_status_t) + LARGEST_STATX : 0;
    size_t sz = sizeof(file_call_t) + status_sz + (path ? strlen(path) + 1 : 0) + (other ? strlen(other) + 1 : 0);
    file_call_t *c = aco__service_allocate(&sz, call);
    char *room;
    if (!c)
        return NULL;
    room = (char *)(c + 1);
    memset(c, 0, sizeof *c + status_sz);
    c->operation = operation;
    c->fd = fd;
    c->sz = sz;
    if (status_sz) {
        c->status = (aco_file_status_t *)(void *)room;
        c->p = c->status + 1;
        room += status_sz;
    }
    if (path)
        c->path = copy_path(&room, path);
    if (other)
        c->other = copy_path(&room, other);
    ACO__ASSERT(room <= (char *)c + sz);
    return c;
}

/* The pool has done it: its result, or -1 with errno. Frees the record; *status, unless `status` is NULL, gets what was
 * found out. */
static ssize_t result_of(file_call_t *c, const char *call, aco_file_status_t *status)
{
    ssize_t result = c->result;
    if (status && result == 0)
        *status = *c->status;
    errno = c->error;
    if (result < 0 && c->path)
        aco__io_fail_path(call, c->path);
    else if (result < 0)
        aco__io_fail(call, c->fd);
    aco__service_free(c, c->sz);
    return result;
}

#ifdef ACO_CONFIG_URING
/* Whether io_uring does what the system call does. It would not lock the file's own position, so two calls could use
 * the same one; and of a pipe or socket it ignores the offset, with which the system call fails. read_at() has seen to
 * that. */
static int suits_ring(const file_call_t *c)
{
    if (c->operation >= FILE_TRUNCATE)
        return 0;
    return (c->operation != FILE_READ && c->operation != FILE_WRITE) ||
           (c->operation == FILE_READ && c->offset >= 0) ||
           (c->offset >= 0) == (aco__system.lseek(c->fd, 0, SEEK_CUR) >= 0);
}
#endif

/* 0: it has been done. Or -1 and errno: then c->release, if there is one, has the record. */
ACO__SWITCHES static int perform_elsewhere(file_call_t *c, const char *call, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    int has_ring = io ? aco__io_ring(io, call) : -1;
    if (has_ring < 0) {
        if (c->release)
            c->release(c, NULL);
        return -1;
    }
#ifdef ACO_CONFIG_URING
    if (has_ring && suits_ring(c)) {
        int refused = aco__file_by_ring(io, c, call, location);
        if (refused <= 0)
            return refused;
    }
#endif
    return aco__io_offload_file(call, perform, c, c->release, location);
}

/* For all calls but reads and writes: the end of a scope ends the wait. */
ACO__SWITCHES
static ssize_t have_performed(file_call_t *c, const char *call, aco_file_status_t *status, const char *location)
{
    c->release = release_call;
    return perform_elsewhere(c, call, location) == 0 ? result_of(c, call, status) : -1;
}

static int fail_null(const char *call)
{
    return aco__service_fail(EINVAL, call, "a pointer is NULL");
}

int aco_file_open_at(const char *path, int flags, unsigned mode, const char *location)
{
    static const char call[] = "aco_file_open";
    file_call_t *c = path ? call_new(call, FILE_OPEN, -1, path, NULL) : NULL;
    if (!c)
        return path ? -1 : fail_null(call);
    c->flags = flags;
    c->mode = mode;
    return (int)have_performed(c, call, NULL, location);
}

int aco_file_open_beneath_at(const char *folder, const char *path, int flags, unsigned mode, int links,
                             const char *location)
{
    static const char call[] = "aco_file_open_beneath";
    file_call_t *c;
    if (!folder || !path)
        return fail_null(call);
    if (links != ACO_FILE_NO_LINKS && links != ACO_FILE_LINKS_INSIDE)
        return aco__service_fail(EINVAL, call, "`links`");
    c = call_new(call, FILE_OPEN_BENEATH, -1, folder, path);
    if (!c)
        return -1;
    c->flags = flags;
    c->mode = mode;
    c->links = links;
    return (int)have_performed(c, call, NULL, location);
}

int aco_file_sync_at(int fd, const char *location)
{
    static const char call[] = "aco_file_sync";
    file_call_t *c = call_new(call, FILE_SYNC, fd, NULL, NULL);
    return c ? (int)have_performed(c, call, NULL, location) : -1;
}

int aco_file_truncate_at(int fd, int64_t size, const char *location)
{
    static const char call[] = "aco_file_truncate";
    file_call_t *c = call_new(call, FILE_TRUNCATE, fd, NULL, NULL);
    if (!c)
        return -1;
    c->offset = size;
    return (int)have_performed(c, call, NULL, location);
}

/* `mode`: of a new directory. */
ACO__SWITCHES
static int have_path_changed(const char *call, file_operation_t operation, const char *path, unsigned mode,
                             const char *location)
{
    file_call_t *c = path ? call_new(call, operation, -1, path, NULL) : NULL;
    if (!c)
        return path ? -1 : fail_null(call);
    c->mode = mode;
    return (int)have_performed(c, call, NULL, location);
}

ACO__SWITCHES
static int have_both_changed(const char *call, file_operation_t operation, const char *from, const char *to,
                             const char *location)
{
    file_call_t *c = from && to ? call_new(call, operation, -1, from, to) : NULL;
    if (!c)
        return from && to ? -1 : fail_null(call);
    return (int)have_performed(c, call, NULL, location);
}

int aco_file_rename_at(const char *from, const char *to, const char *location)
{
    return have_both_changed("aco_file_rename", FILE_RENAME, from, to, location);
}

int aco_file_link_at(const char *from, const char *to, const char *location)
{
    return have_both_changed("aco_file_link", FILE_LINK, from, to, location);
}

int aco_file_unlink_at(const char *path, const char *location)
{
    return have_path_changed("aco_file_unlink", FILE_UNLINK, path, 0, location);
}

int aco_dir_make_at(const char *path, unsigned mode, const char *location)
{
    return have_path_changed("aco_dir_make", FILE_MKDIR, path, mode, location);
}

int aco_dir_remove_at(const char *path, const char *location)
{
    return have_path_changed("aco_dir_remove", FILE_RMDIR, path, 0, location);
}

ACO__SWITCHES
static int status_of(int fd, const char *path, aco_file_status_t *status, const char *call, const char *location)
{
    file_call_t *c = call_new(call, FILE_STAT, fd, path, NULL);
    return c ? (int)have_performed(c, call, status, location) : -1;
}

int aco_file_stat_at(const char *path, aco_file_status_t *status, const char *location)
{
    static const char call[] = "aco_file_stat";
    return path && status ? status_of(-1, path, status, call, location) : fail_null(call);
}

int aco_file_fstat_at(int fd, aco_file_status_t *status, const char *location)
{
    static const char call[] = "aco_file_fstat";
    return status ? status_of(fd, NULL, status, call, location) : fail_null(call);
}

/* ---- Reads and writes ---- */

static void leave_list(aco__io_t *io, const file_call_t *c)
{
    file_call_t **link = &io->at_own_position;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
}

ACO__SWITCHES static int perform_at_own_position(file_call_t *c, const char *call, const char *location)
{
    aco__io_t *io = aco__io_get(call);
    int result;
    if (!io)
        return -1;
    c->next = io->at_own_position;
    io->at_own_position = c;
    result = perform_elsewhere(c, call, location);
    leave_list(io, c);
    return result;
}

ACO__SWITCHES
static ssize_t have_moved(const char *call, file_operation_t operation, int fd, void *p, size_t n, int64_t offset,
                          const char *location)
{
    file_call_t *c = call_new(call, operation, fd, NULL, NULL);
    if (!c)
        return -1;
    c->p = p;
    c->n = n;
    c->offset = offset;
    if ((offset < 0 ? perform_at_own_position : perform_elsewhere)(c, call, location) == 0)
        return result_of(c, call, NULL);
    aco__service_free(c, c->sz);
    return -1;
}

/* The same for memory of a share stack, where other tasks' frames are during the wait. */
ACO__SWITCHES
static ssize_t have_moved_by_copy(const char *call, file_operation_t operation, int fd, void *p, size_t n,
                                  int64_t offset, const char *location)
{
    size_t part = n < LARGEST_COPY ? n : LARGEST_COPY, sz = part;
    void *copy = aco__service_allocate(&sz, call);
    ssize_t moved;
    if (!copy)
        return -1;
    if (operation == FILE_WRITE)
        memcpy(copy, p, part);
    moved = have_moved(call, operation, fd, copy, part, offset, location);
    ACO__ASSERT(moved <= (ssize_t)part);
    if (operation == FILE_READ && moved > 0)
        memcpy(p, copy, (size_t)moved);
    aco__service_free(copy, sz);
    return moved;
}

ACO__SWITCHES
static ssize_t move_bytes(const char *call, file_operation_t operation, int fd, void *p, size_t n, int64_t offset,
                          const char *location)
{
    return aco__may_move(p) ? have_moved_by_copy(call, operation, fd, p, n, offset, location)
                                : have_moved(call, operation, fd, p, n, offset, location);
}

#ifdef RWF_NOWAIT
/* Whether reads may go past the cache: those wait for the disk in spite of RWF_NOWAIT. O_DIRECT wants whole blocks. */
static int may_be_direct(int fd, size_t n, int64_t offset)
{
    return n % LEAST_BLOCK == 0 && (offset < 0 || offset % LEAST_BLOCK == 0) &&
           aco__system.fcntl(fd, F_GETFL) & O_DIRECT;
}
#endif

#ifdef RWF_NOWAIT
/* Whether a read of nothing means the end: Linux 5.9 and 5.10 also answer so where the next page is not in memory. */
static int is_at_end(int fd, int64_t offset)
{
    struct stat s;
    if (aco__system.fstat(fd, &s) != 0 || S_ISBLK(s.st_mode))
        return 0;
    return !S_ISREG(s.st_mode) || (offset < 0 ? aco__system.lseek(fd, 0, SEEK_CUR) : offset) >= s.st_size;
}
#endif

/* What is in memory: the number of bytes, 0 at the end; or -1 if it is not known to be, and ESPIPE if there are no
 * offsets. */
static ssize_t read_cached(int fd, void *p, size_t n, int64_t offset)
{
#ifdef RWF_NOWAIT
    struct iovec part = {p, n};
    int is_direct = may_be_direct(fd, n, offset);
    ssize_t cached = is_direct ? -1 : aco__system.preadv2(fd, &part, 1, offset, RWF_NOWAIT);
    if ((is_direct && aco__system.lseek(fd, 0, SEEK_CUR) >= 0) || (cached == 0 && n && !is_at_end(fd, offset))) {
        errno = EAGAIN;
        return -1;
    }
    return cached;
#else
    errno = EAGAIN;
    (void)fd;
    (void)p;
    (void)n;
    (void)offset;
    return -1;
#endif
}

/* Whether a read of less than was asked for is all there is, as in a pipe: the rest has not come yet. */
static int is_stream(int fd)
{
    struct stat s;
    return aco__system.fstat(fd, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISBLK(s.st_mode);
}

ACO__SWITCHES static ssize_t read_at(const char *call, int fd, void *p, size_t n, int64_t offset, const char *location)
{
    ssize_t cached, rest;
    if (!aco__io_get_and_spend(call, location)) /* the read may not wait */
        return -1;
    cached = read_cached(fd, p, n, offset);
    if (cached == 0 || cached == (ssize_t)n)
        return cached;
    if (cached < 0)
        return errno == ESPIPE ? aco__io_fail(call, fd) : move_bytes(call, FILE_READ, fd, p, n, offset, location);
    rest = move_bytes(call, FILE_READ, fd, (char *)p + cached, n - (size_t)cached, offset + cached, location);
    return rest > 0 ? cached + rest : cached;
}

static int is_at_own_position(const aco__io_t *io, int fd)
{
    const file_call_t *c = io->at_own_position;
    while (c && c->fd != fd)
        c = c->next;
    return c != NULL;
}

/* At the file's own position each read gets bytes that follow each other, whatever other tasks read meanwhile. So a
 * part that is in memory is given back, and all of it read by one system call. Nobody moves the position in between:
 * if a call of another task is under way, this one does not try. */
ACO__SWITCHES static ssize_t read_on(const char *call, int fd, void *p, size_t n, const char *location)
{
    const aco__io_t *io = aco__io_get_and_spend(call, location);
    ssize_t cached = -1, all;
    if (!io)
        return -1;
    if (!is_at_own_position(io, fd))
        cached = read_cached(fd, p, n, -1);
    if (cached == 0 || cached == (ssize_t)n ||
        (cached > 0 && (is_stream(fd) || aco__system.lseek(fd, -cached, SEEK_CUR) < 0)))
        return cached;
    all = move_bytes(call, FILE_READ, fd, p, n, -1, location);
    if (all < 0 && cached > 0) { /* the caller cannot wait, or not any more */
        int error = errno;
        cached = is_at_own_position(io, fd) ? -1 : read_cached(fd, p, n, -1);
        errno = error;
        return cached > 0 ? cached : -1;
    }
    return all;
}

static int fail_offset(const char *call)
{
    return aco__service_fail(EINVAL, call, "the offset is negative");
}

ssize_t aco_file_read_at(int fd, void *p, size_t n, const char *location)
{
    return read_on("aco_file_read", fd, p, n, location);
}

ssize_t aco_file_write_at(int fd, const void *p, size_t n, const char *location)
{
    return move_bytes("aco_file_write", FILE_WRITE, fd, (void *)(uintptr_t)p, n, -1, location);
}

ssize_t aco_file_pread_at(int fd, void *p, size_t n, int64_t offset, const char *location)
{
    static const char call[] = "aco_file_pread";
    return offset < 0 ? fail_offset(call) : read_at(call, fd, p, n, offset, location);
}

ssize_t aco_file_pwrite_at(int fd, const void *p, size_t n, int64_t offset, const char *location)
{
    static const char call[] = "aco_file_pwrite";
    return offset < 0 ? fail_offset(call)
                      : move_bytes(call, FILE_WRITE, fd, (void *)(uintptr_t)p, n, offset, location);
}
