/* Hooks of files' calls: by acorn_io, which asks io_uring or a thread of the pool. What fails there with EPERM, as when
 * the caller cannot wait, libc does; the system's own EPERM just fails again. And hooks of the ends of descriptors. */
#include "libc/arguments.h"
#include "libc/files.h"
#include "libc/hooked.h"
#include "libc/libc.h"
#include "libc/look_up.h"
#include "libc/parts.h"

#include "aco/detail/descriptors.h"
#include "aco/detail/poller.h"
#include "aco/file.h"

#include <stdarg.h>
#include <sys/resource.h>
#include <sys/uio.h>

const char aco__hooks_of_files = 1;

/* Counts a call of acorn_io's that has returned this, and errno. 1: it stands. 0: the caller cannot wait, so libc is to
 * do it. Then, and after success, errno is what it was before. */
static int take_result(ssize_t result, int error_before)
{
    int stands = result >= 0 || errno != EPERM;
    *(stands ? &aco__hook_self.stats.waits : &aco__hook_self.stats.blocked) += 1;
    if (result >= 0 || !stands)
        errno = error_before;
    return stands;
}

/* ---- Bytes ---- */

static void scatter(const struct iovec *parts, const char *from, size_t n)
{
    for (; n; parts++) {
        size_t part = n < parts->iov_len ? n : parts->iov_len;
        memcpy(parts->iov_base, from, part);
        from += part;
        n -= part;
    }
}

static void gather(char *to, const struct iovec *parts, size_t count)
{
    for (; count; count--, parts++) {
        memcpy(to, parts->iov_base, parts->iov_len);
        to += parts->iov_len;
    }
}

/* The system copies between the parts and `all`, n bytes, as some parts may not be there: how many it could. Where it
 * may not (seccomp), or a sanitizer is to see it, the caller's memory is trusted. */
static size_t copy_parts(char *all, const struct iovec *parts, size_t count, size_t n, int is_write)
{
    struct iovec one = {all, n};
    int error = errno;
    ssize_t copied = -1;
    errno = ENOSYS;
    if (!aco__hook_is_sanitized())
        copied = is_write ? process_vm_readv(getpid(), &one, 1, parts, count, 0)
                          : process_vm_writev(getpid(), &one, 1, parts, count, 0);
    if (copied < 0 && errno != EFAULT) {
        if (is_write)
            gather(all, parts, count);
        else
            scatter(parts, all, n);
        copied = (ssize_t)n;
    }
    errno = error;
    return copied < 0 ? 0 : (size_t)copied;
}

/* `offset` -1: the descriptor's. */
ACO__SWITCHES static ssize_t move_block(int fd, void *p, size_t n, int64_t offset, int is_write)
{
    if (offset != -1)
        return is_write ? aco_file_pwrite_at(fd, p, n, offset, "libc's pwrite()")
                        : aco_file_pread_at(fd, p, n, offset, "libc's pread()");
    return is_write ? aco_file_write_at(fd, p, n, "libc's write()") : aco_file_read_at(fd, p, n, "libc's read()");
}

/* Of `moved` bytes only `kept` had a place in the caller's memory. */
static ssize_t give_back(int fd, int64_t offset, size_t moved, size_t kept)
{
    if (kept < moved && offset == -1)
        (void)lseek64(fd, -(off64_t)(moved - kept), SEEK_CUR);
    if (kept)
        return (ssize_t)kept;
    errno = EFAULT;
    return -1;
}

/* Several parts are moved as one, so that nobody else's bytes come in between. */
ACO__SWITCHES static ssize_t move_several(int fd, const struct iovec *parts, size_t count, int64_t offset, int is_write)
{
    size_t n = aco__parts_size(parts, count), sz = n;
    char *all = aco__service_allocate(&sz, "acorn_hook");
    ssize_t moved = -1;
    if (!all)
        return -1;
    if (is_write)
        n = copy_parts(all, parts, count, n, 1);
    if (n)
        moved = move_block(fd, all, n, offset, is_write);
    else
        errno = EFAULT;
    if (!is_write && moved > 0)
        moved = give_back(fd, offset, (size_t)moved, copy_parts(all, parts, count, (size_t)moved, 0));
    aco__service_free(all, sz);
    return moved;
}

ssize_t aco__hook_move_file(int fd, const struct iovec *parts, size_t count, int is_write)
{
    int error = errno;
    ssize_t n = -1;
    errno = EPERM;
    if (aco__hook_is_own_process())
        n = count == 1 ? move_block(fd, parts->iov_base, parts->iov_len, -1, is_write)
                       : move_several(fd, parts, count, -1, is_write);
    if (take_result(n, error))
        return n;
    return is_write ? aco__libc()->writev(fd, parts, (int)count) : aco__libc()->readv(fd, parts, (int)count);
}

/* A call with an offset; *is_over becomes 1 if it has been made. */
ACO__SWITCHES
static ssize_t move_at(int fd, const struct iovec *parts, size_t count, int64_t offset, int is_write, int *is_over)
{
    int error = errno;
    ssize_t moved = -1;
    if (offset < 0)
        return 0;
    errno = EPERM;
    if (aco__hook_is_own_process())
        moved = count == 1 ? move_block(fd, parts->iov_base, parts->iov_len, offset, is_write)
                           : move_several(fd, parts, count, offset, is_write);
    *is_over = take_result(moved, error);
    return moved;
}

#define ACO__READ_HOOK(name, offset_type)                                                                              \
    ACO__HOOK(ssize_t, name, (int fd, void *p, size_t n, offset_type offset))                                          \
    {                                                                                                                  \
        int is_over = 0;                                                                                               \
        struct iovec part = {p, n};                                                                                    \
        ssize_t moved = aco__hooked() ? move_at(fd, &part, 1, offset, 0, &is_over) : 0;                                \
        return is_over ? moved : aco__libc()->name(fd, p, n, offset);                                                  \
    }                                                                                                                  \
    ACO__HOOK(ssize_t, __##name##_chk, (int fd, void *p, size_t n, offset_type offset, size_t room))                   \
    {                                                                                                                  \
        if (n > room)                                                                                                  \
            __chk_fail();                                                                                              \
        return aco__as_##name(fd, p, n, offset);                                                                       \
    }
#define ACO__WRITE_HOOK(name, offset_type)                                                                             \
    ACO__HOOK(ssize_t, name, (int fd, const void *p, size_t n, offset_type offset))                                    \
    {                                                                                                                  \
        int is_over = 0;                                                                                               \
        struct iovec part = {(void *)(uintptr_t)p, n};                                                                 \
        ssize_t moved = aco__hooked() ? move_at(fd, &part, 1, offset, 1, &is_over) : 0;                                \
        return is_over ? moved : aco__libc()->name(fd, p, n, offset);                                                  \
    }
#define ACO__VECTOR_HOOK(name, offset_type, is_write)                                                                  \
    ACO__HOOK(ssize_t, name, (int fd, const struct iovec *parts, int count, offset_type offset))                       \
    {                                                                                                                  \
        int is_over = 0, is_to_wait = aco__hooked() && aco__is_vector(parts, count);                                   \
        ssize_t moved = is_to_wait ? move_at(fd, parts, (size_t)count, offset, is_write, &is_over) : 0;                \
        return is_over ? moved : aco__libc()->name(fd, parts, count, offset);                                          \
    }
ACO__READ_HOOK(pread, off_t)
ACO__READ_HOOK(pread64, off64_t)
ACO__WRITE_HOOK(pwrite, off_t)
ACO__WRITE_HOOK(pwrite64, off64_t)
ACO__VECTOR_HOOK(preadv, off_t, 0)
ACO__VECTOR_HOOK(preadv64, off64_t, 0)
ACO__VECTOR_HOOK(pwritev, off_t, 1)
ACO__VECTOR_HOOK(pwritev64, off64_t, 1)

/* ---- Calls without a form of acorn_io's ---- */

typedef struct file_job {
    const aco__libc_calls_t *libc; /* the task's, which may be in a simulation: a thread of the pool is not hooked */
    int fd, flags; /* fd: also a folder's */
    mode_t mode;
    int result, error;
    size_t sz;
    char path[];
} file_job_t;

static void *open_file(void *arg)
{
    file_job_t *job = arg;
    job->result = job->libc->openat(job->fd, job->path, job->flags, job->mode);
    job->error = errno;
    return job;
}

static void *sync_data(void *arg)
{
    file_job_t *job = arg;
    job->result = job->libc->fdatasync(job->fd);
    job->error = errno;
    return job;
}

static void free_file_job(void *arg, void *result)
{
    file_job_t *job = arg;
    if (result && job->path[0] && job->result >= 0)
        (void)job->libc->close(job->result);
    aco__service_free(job, job->sz);
}

/* Runs fn on the pool: HOOK_IS_DONE with *result and errno. */
ACO__SWITCHES
static int have_done(void *(*fn)(void *arg), int fd, const char *path, int flags, mode_t mode, int *result,
                     const char *location)
{
    size_t length = strlen(path) + 1, sz = sizeof(file_job_t) + length;
    file_job_t *job = aco__service_new(&sz, location);
    int error = errno, action;
    if (!job)
        return HOOK_GIVES_UP;
    job->libc = aco__libc();
    job->fd = fd;
    job->flags = flags;
    job->mode = mode;
    job->sz = sz;
    memcpy(job->path, path, length);
    action = aco__hook_offload(ACO__WORK, fn, job, NULL, free_file_job, location);
    if (action != HOOK_IS_DONE)
        return action;
    *result = job->result;
    errno = job->result < 0 ? job->error : error;
    aco__service_free(job, job->sz);
    return action;
}

ACO__SWITCHES static int open_at(int folder, const char *path, int flags, mode_t mode, const void *caller)
{
    int fd = -1, action = HOOK_BLOCKS;
    if (!path) { /* libc's declaration forbids it */
        errno = EFAULT;
        return -1;
    }
    if (aco__hooked() && !aco__hook_is_sanitizers(caller) && !aco__hook_is_allocators(caller) &&
        aco__hook_text_size(path))
        action = have_done(open_file, folder, path, flags, mode, &fd, "libc's open()");
    return action == HOOK_BLOCKS ? aco__libc()->openat(folder, path, flags, mode) : fd;
}

static int has_mode(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

#define ACO__OPEN_HOOK(name, large, folder, ...) /* ...: the parameters before `flags` */                              \
    ACO__HOOK(int, name, (__VA_ARGS__, int flags, ...))                                                                \
    {                                                                                                                  \
        mode_t mode = 0;                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        if (has_mode(flags))                                                                                           \
            mode = va_arg(list, mode_t);                                                                               \
        va_end(list);                                                                                                  \
        return open_at(folder, path, flags | (large), mode, __builtin_return_address(0));                              \
    }                                                                                                                  \
    ACO__HOOK(int, __##name##_2, (__VA_ARGS__, int flags))                                                             \
    {                                                                                                                  \
        if (has_mode(flags))                                                                                           \
            __chk_fail();                                                                                              \
        return open_at(folder, path, flags | (large), 0, __builtin_return_address(0));                                 \
    }
ACO__OPEN_HOOK(open, 0, AT_FDCWD, const char *path)
ACO__OPEN_HOOK(open64, O_LARGEFILE, AT_FDCWD, const char *path)
ACO__OPEN_HOOK(openat, 0, folder, int folder, const char *path)
ACO__OPEN_HOOK(openat64, O_LARGEFILE, folder, int folder, const char *path)

ACO__HOOK(int, creat, (const char *path, mode_t mode))
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, __builtin_return_address(0));
}

ACO__HOOK(int, creat64, (const char *path, mode_t mode))
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode, __builtin_return_address(0));
}

ACO__HOOK(int, fsync, (int fd))
{
    int error = errno, result = -1;
    if (!aco__hooked())
        return aco__libc()->fsync(fd);
    errno = EPERM;
    if (aco__hook_is_own_process())
        result = aco_file_sync_at(fd, "libc's fsync()");
    return take_result(result, error) ? result : aco__libc()->fsync(fd);
}

ACO__HOOK(int, fdatasync, (int fd))
{
    int result = -1, action = HOOK_BLOCKS;
    if (aco__hooked())
        action = have_done(sync_data, fd, "", 0, 0, &result, "libc's fdatasync()");
    return action == HOOK_BLOCKS ? aco__libc()->fdatasync(fd) : result;
}

/* ---- Ends of descriptors ---- */

/* Also of tasks that are not hooked: one that is may wait for the descriptor. */
static void end_use_of(int fd)
{
    int error = errno;
    if (aco_unlikely(aco__hook_self.tasks != 0) && aco__hook_is_own_process())
        aco__io_forget(fd);
    errno = error;
}

ACO__HOOK(int, close, (int fd))
{
    end_use_of(fd);
    return aco__libc()->close(fd);
}

/* Whether dup3() will succeed, and so close `to`. */
static int is_replaced(int from, int to, int flags)
{
    struct rlimit limit;
    return from != to && !(flags & ~O_CLOEXEC) && aco__libc()->fcntl(from, F_GETFD) >= 0 &&
           getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)to < limit.rlim_cur;
}

ACO__HOOK(int, dup2, (int from, int to))
{
    if (aco_unlikely(aco__hook_self.tasks != 0) && is_replaced(from, to, 0))
        end_use_of(to);
    return aco__libc()->dup2(from, to);
}

ACO__HOOK(int, dup3, (int from, int to, int flags))
{
    if (aco_unlikely(aco__hook_self.tasks != 0) && is_replaced(from, to, flags))
        end_use_of(to);
    return aco__libc()->dup3(from, to, flags);
}
