/* Hooked tasks in a simulation (src/sim). Their calls of libc go to the system's table, in which the simulation stands:
 * aco__libc_simulated has libc's forms of these calls. So the hooks of calls that wait are the same in a run; and here
 * are hooks of calls that do not wait, for such tasks only. What the table does not have is refused: the run fails.
 *
 * Descriptors and addresses that a run has made are nobody else's. So no call of a hooked task gets to the real system
 * but those for locks, signals and memory. A thread that such a task makes is another task. */
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/chooser.h"
#include "aco/detail/poller.h"
#include "aco/io.h"
#include "aco/scope.h"

#include <sys/resource.h>

#pragma GCC diagnostic ignored "-Wpedantic" /* addresses are a union in libc's declarations */

const char aco__hooks_of_runs = 1;

/* ---- libc's forms of the table's calls ---- */

static int in_run_connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
    return aco__system.connect(fd, to.__sockaddr__, length);
}

static int in_run_bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t length)
{
    return aco__system.bind(fd, to.__sockaddr__, length);
}

static int in_run_accept4(int fd, __SOCKADDR_ARG from, socklen_t *length, int flags)
{
    return aco__system.accept4(fd, from.__sockaddr__, length, flags);
}

static int in_run_accept(int fd, __SOCKADDR_ARG from, socklen_t *length)
{
    return aco__system.accept4(fd, from.__sockaddr__, length, 0);
}

static int in_run_getsockname(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    return aco__system.getsockname(fd, address.__sockaddr__, length);
}

static int in_run_getpeername(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    return aco__system.getpeername(fd, address.__sockaddr__, length);
}

static ssize_t in_run_recvfrom(int fd, void *p, size_t n, int flags, __SOCKADDR_ARG from, socklen_t *length)
{
    return aco__system.recvfrom(fd, p, n, flags, from.__sockaddr__, length);
}

static ssize_t in_run_sendto(int fd, const void *p, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t length)
{
    return aco__system.sendto(fd, p, n, flags, to.__sockaddr__, length);
}

static int in_run_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *limit)
{
    unsigned done = 0;
    (void)limit; /* the hooks' own */
    for (; done < count; done++, flags |= (flags & MSG_WAITFORONE) ? MSG_DONTWAIT : 0) {
        ssize_t n = aco__system.recvmsg(fd, &messages[done].msg_hdr, flags & ~MSG_WAITFORONE);
        if (n < 0)
            break;
        messages[done].msg_len = (unsigned)n;
    }
    return done || !count ? (int)done : -1;
}

static int in_run_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    unsigned done = 0;
    for (; done < count; done++) {
        ssize_t n = aco__system.sendmsg(fd, &messages[done].msg_hdr, flags);
        if (n < 0)
            break;
        messages[done].msg_len = (unsigned)n;
    }
    return done || !count ? (int)done : -1;
}

static int is_no_limit(const struct timespec *limit)
{
    return limit->tv_sec < 0 || limit->tv_nsec < 0 || limit->tv_nsec >= ACO_SECOND;
}

/* No handler is called in a run: masks mean nothing. */
static int in_run_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    int is_short = limit && limit->tv_sec < INT_MAX / 1000;
    (void)mask;
    if (limit && is_no_limit(limit)) {
        errno = EINVAL;
        return -1;
    }
    return aco__system.poll(fds, n, is_short ? (int)(limit->tv_sec * 1000 + (limit->tv_nsec + 999999) / 1000000) : -1);
}

static int in_run_epoll_pwait(int epoll, struct epoll_event *events, int room, int ms, const sigset_t *mask)
{
    (void)mask;
    return aco__system.epoll_wait(epoll, events, room, ms);
}

#if __GLIBC_PREREQ(2, 35)
static int in_run_epoll_pwait2(int epoll, struct epoll_event *events, int room, const struct timespec *limit,
                               const sigset_t *mask)
{
    (void)mask;
    if (limit && is_no_limit(limit)) {
        errno = EINVAL;
        return -1;
    }
    return limit ? aco__system.epoll_pwait2(epoll, events, room, limit)
                 : aco__system.epoll_wait(epoll, events, room, -1);
}
#endif

static int in_run_epoll_create(int size)
{
    (void)size;
    return aco__system.epoll_create1(0);
}

static int in_run_pipe(int fds[2])
{
    return aco__system.pipe2(fds, 0);
}

static int in_run_eventfd(unsigned value, int flags)
{
    return aco__system.eventfd(value, flags);
}

static int in_run_dup(int fd)
{
    return aco__system.fcntl(fd, F_DUPFD, 0);
}

static int is_descriptor_number(int fd)
{
    struct rlimit limit;
    return fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd < limit.rlim_cur;
}

/* A number that is the program's, and not the run's, is refused. */
static int in_run_dup3(int from, int to, int flags)
{
    const int operation = flags ? F_DUPFD_CLOEXEC : F_DUPFD;
    int copy;
    if (from == to || flags & ~O_CLOEXEC) {
        errno = EINVAL;
        return -1;
    }
    if (aco__system.fcntl(from, F_GETFL) < 0) /* then `to` stays open */
        return -1;
    if (!is_descriptor_number(to)) {
        errno = EBADF;
        return -1;
    }
    for (;;) {
        if (aco__system.close(to) != 0 && errno != EBADF)
            return -1;
        copy = aco__system.fcntl(from, operation, (intptr_t)to);
        if (copy <= to)
            return copy;
        (void)aco__system.close(copy); /* another thread of the run has got the number meanwhile */
    }
}

static int in_run_dup2(int from, int to)
{
    if (from == to)
        return aco__system.fcntl(from, F_GETFL) < 0 ? -1 : to;
    return in_run_dup3(from, to, 0);
}

static int in_run_usleep(useconds_t us)
{
    struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
    return aco__system.nanosleep(&time, NULL);
}

static unsigned in_run_sleep(unsigned seconds)
{
    struct timespec time = {(time_t)seconds, 0};
    return aco__system.nanosleep(&time, &time) == 0 ? 0 : (unsigned)time.tv_sec;
}

static int in_run_gettimeofday(struct timeval *now, void *zone)
{
    struct timespec time = {0, 0};
    (void)zone;
    (void)aco__system.clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = (suseconds_t)(time.tv_nsec / 1000);
    return 0;
}

static time_t in_run_time(time_t *now)
{
    struct timespec time = {0, 0};
    (void)aco__system.clock_gettime(CLOCK_REALTIME, &time);
    if (now)
        *now = time.tv_sec;
    return time.tv_sec;
}

static int in_run_getentropy(void *p, size_t n)
{
    return aco__system.getrandom(p, n, 0) == (ssize_t)n ? 0 : -1;
}

/* ---- Files ---- */

static int refuse(const char *call)
{
    return aco__chooser_refuse(call);
}

static int in_run_openat(int folder, const char *path, int flags, ...)
{
    va_list list;
    mode_t mode;
    va_start(list, flags);
    mode = va_arg(list, mode_t); /* the hooks always pass one */
    va_end(list);
    return folder == AT_FDCWD || path[0] == '/' ? aco__system.open(path, flags, mode) : refuse("openat");
}

static int in_run_creat(const char *path, mode_t mode)
{
    return aco__system.open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* An offset has 32 bits in some forms. */
#define ACO__IN_RUN_AT(name, entry, offset_type, pointer)                                                              \
    static ssize_t in_run_##name(int fd, pointer p, size_t n, offset_type offset)                                      \
    {                                                                                                                  \
        return aco__system.entry(fd, p, n, offset);                                                                    \
    }
ACO__IN_RUN_AT(pread, pread, off_t, void *)
ACO__IN_RUN_AT(pread64, pread, off64_t, void *)
ACO__IN_RUN_AT(pwrite, pwrite, off_t, const void *)
ACO__IN_RUN_AT(pwrite64, pwrite, off64_t, const void *)

static int is_no_vector(int count, int64_t offset)
{
    errno = EINVAL;
    return count < 0 || count > IOV_MAX || offset < 0;
}

static ssize_t read_vector_at(int fd, const struct iovec *parts, int count, int64_t offset)
{
    return is_no_vector(count, offset) ? -1 : aco__system.preadv2(fd, parts, count, offset, 0);
}

/* The table has no pwritev(). */
static ssize_t write_vector_at(int fd, const struct iovec *parts, int count, int64_t offset)
{
    ssize_t written = 0, n;
    if (is_no_vector(count, offset))
        return -1;
    if (!count)
        return aco__system.pwrite(fd, NULL, 0, offset);
    for (int i = 0; i < count; i++) {
        n = aco__system.pwrite(fd, parts[i].iov_base, parts[i].iov_len, offset + written);
        if (n < 0)
            return written ? written : -1;
        written += n;
        if ((size_t)n < parts[i].iov_len)
            break;
    }
    return written;
}

#define ACO__PARTS_IN_RUN(name, function, offset_type)                                                                 \
    static ssize_t in_run_##name(int fd, const struct iovec *parts, int count, offset_type offset)                     \
    {                                                                                                                  \
        return function(fd, parts, count, offset);                                                                     \
    }
ACO__PARTS_IN_RUN(preadv, read_vector_at, off_t)
ACO__PARTS_IN_RUN(preadv64, read_vector_at, off64_t)
ACO__PARTS_IN_RUN(pwritev, write_vector_at, off_t)
ACO__PARTS_IN_RUN(pwritev64, write_vector_at, off64_t)

static ssize_t in_run_sendfile64(int to, int from, off64_t *offset, size_t n)
{
    int64_t at = offset ? *offset : 0;
    ssize_t sent = aco__system.sendfile(to, from, offset ? &at : NULL, n);
    if (offset)
        *offset = at;
    return sent;
}

#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
/* `struct stat`, `struct dirent` and offsets have one form. No link is simulated. */
static int in_run_stat64(const char *path, struct stat64 *status)
{
    return aco__system.stat(path, (struct stat *)(void *)status);
}

static int in_run_fstat64(int fd, struct stat64 *status)
{
    return aco__system.fstat(fd, (struct stat *)(void *)status);
}

static struct dirent64 *in_run_readdir64(DIR *folder)
{
    return (struct dirent64 *)(void *)aco__system.readdir(folder);
}

static off_t in_run_lseek(int fd, off_t offset, int from)
{
    return aco__system.lseek(fd, offset, from);
}

static int in_run_ftruncate(int fd, off_t size)
{
    return aco__system.ftruncate(fd, size);
}

/* Who a file belongs to is not simulated. */
static int in_run_access(const char *path, int mode)
{
    struct stat status;
    (void)mode;
    return aco__system.stat(path, &status);
}

/* A stream that a killed task leaves open outlives its run, and exit() flushes it: the real system may have given the
 * descriptor's number to another file by then. */
static int stream_fd(const void *cookie)
{
    return aco__chooser_is_there() ? (int)(intptr_t)cookie : -1;
}

static ssize_t stream_read(void *cookie, char *p, size_t n)
{
    return aco__system.read(stream_fd(cookie), p, n);
}

static ssize_t stream_write(void *cookie, const char *p, size_t n)
{
    ssize_t written = aco__system.write(stream_fd(cookie), p, n);
    return written < 0 ? 0 : written;
}

static int stream_seek(void *cookie, off64_t *offset, int from)
{
    *offset = aco__system.lseek(stream_fd(cookie), *offset, from);
    return *offset < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    return aco__system.close(stream_fd(cookie));
}

static FILE *in_run_fopen(const char *path, const char *mode)
{
    static const cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY, fd;
    FILE *stream;
    flags |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    flags |= strchr(mode, 'x') ? O_EXCL : 0;
    fd = aco__system.open(path, flags | O_CLOEXEC, 0666);
    stream = fd < 0 ? NULL : fopencookie((void *)(intptr_t)fd, mode, calls);
    if (!stream && fd >= 0)
        (void)aco__system.close(fd);
    return stream;
}

static void take_paths(aco__libc_calls_t *calls)
{
    calls->fopen = calls->fopen64 = in_run_fopen;
    calls->stat = calls->lstat = aco__system.stat;
    calls->stat64 = calls->lstat64 = in_run_stat64;
    calls->fstat = aco__system.fstat;
    calls->fstat64 = in_run_fstat64;
    calls->access = in_run_access;
    calls->lseek = calls->lseek64 = in_run_lseek;
    calls->ftruncate = calls->ftruncate64 = in_run_ftruncate;
    calls->rename = aco__system.rename;
    calls->link = aco__system.link;
    calls->unlink = aco__system.unlink;
    calls->mkfifo = aco__system.mkfifo;
    calls->mkdir = aco__system.mkdir;
    calls->rmdir = aco__system.rmdir;
    calls->opendir = aco__system.opendir;
    calls->readdir = aco__system.readdir;
    calls->readdir64 = in_run_readdir64;
    calls->closedir = aco__system.closedir;
}
#else
static void take_paths(aco__libc_calls_t *calls)
{
    (void)calls;
}
#endif

/* ---- Threads are tasks ---- */

/* A task that stands for a thread. Its record is needed until it has begun, and until it is joined or detached; a task
 * that is killed leaves it to the end of the run. */
typedef struct thread_task {
    struct thread_task *next;
    aco_t *task;
    ACO__SWITCHES void *(*fn)(void *arg);
    void *arg;
    int has_begun, is_left;
    size_t sz;
} thread_task_t;
static __thread thread_task_t *thread_tasks __attribute__((tls_model("initial-exec")));

static void free_thread(thread_task_t **link)
{
    thread_task_t *record = *link;
    *link = record->next;
    aco__service_free(record, record->sz);
}

static thread_task_t **link_to(const thread_task_t *record)
{
    thread_task_t **link = &thread_tasks;
    while (*link && *link != record)
        link = &(*link)->next;
    return link;
}

ACO__SWITCHES static void *run_as_task(void *of_thread)
{
    thread_task_t *record = of_thread;
    void *(*fn)(void *arg) = record->fn, *arg = record->arg;
    record->has_begun = 1;
    if (record->is_left)
        free_thread(link_to(record));
    return aco__hook_task_begin("pthread_create") == 0 ? fn(arg) : NULL;
}

/* The task of such a thread, which nobody joins or detaches any more. NULL: it is a real one. */
static aco_t *take_thread(pthread_t thread)
{
    thread_task_t **link = link_to((const thread_task_t *)thread), *record = *link;
    aco_t *task = record && !record->is_left ? record->task : NULL;
    if (!task)
        return NULL;
    record->is_left = 1;
    if (record->has_begun)
        free_thread(link);
    return task;
}

/* Nothing cuts libc's short, and who calls it frees what the thread uses. */
ACO__SWITCHES static int join_thread_task(pthread_t thread, void **result)
{
    aco_scope_t shield;
    aco_t *task;
    int error = 0;
    if (aco_shield_begin(&shield, ACO_FOREVER) != 0)
        return errno;
    task = take_thread(thread);
    if (!task)
        error = ESRCH;
    else if (aco_join(task, result) != 0)
        error = errno;
    (void)aco_scope_end(&shield);
    return error;
}

static int in_run_pthread_detach(pthread_t thread)
{
    aco_t *task = take_thread(thread);
    return task && aco_detach(task) == 0 ? 0 : ESRCH;
}

static int in_run_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
    aco_options_t how = {0};
    size_t sz = sizeof(thread_task_t);
    thread_task_t *record = aco__service_allocate(&sz, "libc's pthread_create()");
    int state = PTHREAD_CREATE_JOINABLE, error = errno;
    if (!record)
        return EAGAIN;
    *record = (thread_task_t){thread_tasks, NULL, fn, arg, 0, 0, sz};
    how.name = "thread";
    record->task = aco_spawn(run_as_task, record, &how);
    errno = error;
    if (!record->task) {
        aco__service_free(record, sz);
        return EAGAIN;
    }
    thread_tasks = record;
    *thread = (pthread_t)record;
    if (attributes)
        (void)pthread_attr_getdetachstate(attributes, &state);
    return state == PTHREAD_CREATE_DETACHED ? in_run_pthread_detach(*thread) : 0;
}

/* ---- The table ---- */

/* A refusal always fails: the call is there for its arguments. */
#define ACO__REFUSED_IN_RUNS(result, failed, name, parameters, arguments)                                              \
    static result refused_##name parameters                                                                            \
    {                                                                                                                  \
        return refuse(#name) != 0 ? (failed) : aco__libc_found.name arguments;                                         \
    }
ACO__REFUSED_IN_RUNS(ssize_t, -1, sendfile, (int to, int from, off_t *offset, size_t n), (to, from, offset, n))
ACO__REFUSED_IN_RUNS(int, -1, select, (int n, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *limit),
                     (n, reads, writes, others, limit))
ACO__REFUSED_IN_RUNS(int, -1, pselect,
                     (int n, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *limit,
                      const sigset_t *mask),
                     (n, reads, writes, others, limit, mask))
ACO__REFUSED_IN_RUNS(int, -1, timerfd_create, (clockid_t clock, int flags), (clock, flags))
ACO__REFUSED_IN_RUNS(int, -1, flock, (int fd, int operation), (fd, operation))
ACO__REFUSED_IN_RUNS(int, -1, lockf, (int fd, int command, off_t n), (fd, command, n))
ACO__REFUSED_IN_RUNS(int, -1, lockf64, (int fd, int command, off64_t n), (fd, command, n))
ACO__REFUSED_IN_RUNS(pid_t, -1, wait, (int *status), (status))
ACO__REFUSED_IN_RUNS(pid_t, -1, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
ACO__REFUSED_IN_RUNS(pid_t, -1, wait4, (pid_t pid, int *status, int options, struct rusage *usage),
                     (pid, status, options, usage))
ACO__REFUSED_IN_RUNS(int, -1, system, (const char *command), (command))
ACO__REFUSED_IN_RUNS(FILE *, NULL, popen, (const char *command, const char *mode), (command, mode))
ACO__REFUSED_IN_RUNS(int, -1, pclose, (FILE * stream), (stream))
ACO__REFUSED_IN_RUNS(struct hostent *, NULL, gethostbyname, (const char *name), (name))
ACO__REFUSED_IN_RUNS(struct hostent *, NULL, gethostbyname2, (const char *name, int family), (name, family))
ACO__REFUSED_IN_RUNS(struct hostent *, NULL, gethostbyaddr, (const void *address, socklen_t length, int family),
                     (address, length, family))
ACO__REFUSED_IN_RUNS(int, ENOSYS, gethostbyname_r,
                     (const char *name, struct hostent *entry, char *room, size_t size, struct hostent **found,
                      int *error),
                     (name, entry, room, size, found, error))
ACO__REFUSED_IN_RUNS(int, ENOSYS, gethostbyname2_r,
                     (const char *name, int family, struct hostent *entry, char *room, size_t size,
                      struct hostent **found, int *error),
                     (name, family, entry, room, size, found, error))

static void refuse_the_rest(aco__libc_calls_t *calls)
{
    calls->sendfile = refused_sendfile;
    calls->select = refused_select;
    calls->pselect = refused_pselect;
    calls->timerfd_create = (__typeof__(calls->timerfd_create))refused_timerfd_create;
    calls->flock = refused_flock;
    calls->lockf = refused_lockf;
    calls->lockf64 = refused_lockf64;
    calls->wait = refused_wait;
    calls->waitpid = refused_waitpid;
    calls->wait4 = refused_wait4;
    calls->system = refused_system;
    calls->popen = refused_popen;
    calls->pclose = refused_pclose;
    calls->gethostbyname = refused_gethostbyname;
    calls->gethostbyname2 = refused_gethostbyname2;
    calls->gethostbyaddr = refused_gethostbyaddr;
    calls->gethostbyname_r = refused_gethostbyname_r;
    calls->gethostbyname2_r = refused_gethostbyname2_r;
}

static void take_sockets(aco__libc_calls_t *calls)
{
    calls->recv = aco__system.recv;
    calls->recvfrom = in_run_recvfrom;
    calls->recvmsg = aco__system.recvmsg;
    calls->recvmmsg = in_run_recvmmsg;
    calls->send = aco__system.send;
    calls->sendto = in_run_sendto;
    calls->sendmsg = aco__system.sendmsg;
    calls->sendmmsg = in_run_sendmmsg;
    calls->connect = in_run_connect;
    calls->accept = in_run_accept;
    calls->accept4 = in_run_accept4;
    calls->socket = aco__system.socket;
    calls->socketpair = aco__system.socketpair;
    calls->bind = in_run_bind;
    calls->listen = aco__system.listen;
    calls->getsockopt = aco__system.getsockopt;
    calls->setsockopt = aco__system.setsockopt;
    calls->getsockname = in_run_getsockname;
    calls->getpeername = in_run_getpeername;
    calls->shutdown = aco__system.shutdown;
    calls->getaddrinfo = aco__system.getaddrinfo;
    calls->freeaddrinfo = aco__system.freeaddrinfo;
    calls->getnameinfo = aco__system.getnameinfo;
}

static void take_descriptors(aco__libc_calls_t *calls)
{
    calls->read = aco__system.read;
    calls->write = aco__system.write;
    calls->readv = aco__system.readv;
    calls->writev = aco__system.writev;
    calls->pread = in_run_pread;
    calls->pread64 = in_run_pread64;
    calls->pwrite = in_run_pwrite;
    calls->pwrite64 = in_run_pwrite64;
    calls->preadv = in_run_preadv;
    calls->preadv64 = in_run_preadv64;
    calls->pwritev = in_run_pwritev;
    calls->pwritev64 = in_run_pwritev64;
    calls->sendfile64 = in_run_sendfile64;
    calls->open = calls->open64 = aco__system.open;
    calls->openat = calls->openat64 = in_run_openat;
    calls->creat = calls->creat64 = in_run_creat;
    calls->fsync = calls->fdatasync = aco__system.fsync;
    calls->close = aco__system.close;
    calls->fcntl = calls->fcntl64 = aco__system.fcntl;
    calls->ioctl = aco__system.ioctl;
    calls->dup = in_run_dup;
    calls->dup2 = in_run_dup2;
    calls->dup3 = in_run_dup3;
    calls->pipe = in_run_pipe;
    calls->pipe2 = aco__system.pipe2;
    calls->eventfd = (__typeof__(calls->eventfd))in_run_eventfd;
}

static void take_waits(aco__libc_calls_t *calls)
{
    calls->poll = aco__system.poll;
    calls->ppoll = in_run_ppoll;
    calls->epoll_create = in_run_epoll_create;
    calls->epoll_create1 = aco__system.epoll_create1;
    calls->epoll_ctl = aco__system.epoll_ctl;
    calls->epoll_wait = aco__system.epoll_wait;
    calls->epoll_pwait = in_run_epoll_pwait;
#if __GLIBC_PREREQ(2, 35)
    calls->epoll_pwait2 = in_run_epoll_pwait2;
#endif
    calls->sleep = in_run_sleep;
    calls->usleep = in_run_usleep;
    calls->nanosleep = aco__system.nanosleep;
    calls->clock_nanosleep = aco__system.clock_nanosleep;
    calls->sched_yield = aco__system.sched_yield;
    calls->clock_gettime = aco__system.clock_gettime;
    calls->gettimeofday = (__typeof__(calls->gettimeofday))(void (*)(void))in_run_gettimeofday;
    calls->time = in_run_time;
    calls->getrandom = aco__system.getrandom;
    calls->getentropy = in_run_getentropy;
    calls->pthread_create = in_run_pthread_create;
    calls->pthread_detach = in_run_pthread_detach;
}

/* Locks, signals and jumps stay libc's. A simulation has put its own into the system's table before its first run. */
static void take_table(void)
{
    aco__libc_simulated = aco__libc_found;
    take_sockets(&aco__libc_simulated);
    take_descriptors(&aco__libc_simulated);
    take_paths(&aco__libc_simulated);
    take_waits(&aco__libc_simulated);
    refuse_the_rest(&aco__libc_simulated);
}

/* ---- A run of the calling thread ---- */

static __thread void (*close_run)(aco__poller_t *poller);

/* The run ends: its tasks never run again, whatever they wait for. */
static void leave_run(aco__poller_t *poller)
{
    aco__hook_simulates = 0;
    aco__hook_self.tasks = 0;
    while (thread_tasks)
        free_thread(&thread_tasks);
    close_run(poller);
}

/* The thread had no tasks before the run. */
int aco__hook_run_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    aco__hook_thread_t *self = &aco__hook_self;
    aco__poller_t *poller;
    if (aco__hook_simulates)
        return 0;
    if (aco_io_poll_fd() < 0 || !(poller = aco__poller()))
        return -1;
    (void)pthread_once(&once, take_table);
    self->thread = aco__system.gettid();
    self->process = getpid();
    self->calls = 0;
    close_run = poller->close;
    poller->close = leave_run;
    aco__hook_simulates = 1;
    return 0;
}

/* ---- Hooks ---- */

/* Whether this may be the call of a hooked task in a run. Where all are hooked, it may be the task's first. */
static inline int may_simulate(void)
{
    return aco_unlikely(aco__hook_simulates) ||
           (aco_unlikely(__atomic_load_n(&aco__hook_everyone, __ATOMIC_RELAXED)) && aco__chooser_is_there());
}

/* A macro: aco__hooked() wants the hook's caller. */
#define ACO__CALLS (may_simulate() && aco__hooked() && aco__hook_simulates ? &aco__libc_simulated : &aco__libc_found)
#define ACO__CLOCKS                                                                                                    \
    (aco_unlikely(aco__hook_simulates) && aco__hook_simulates_clock() ? &aco__libc_simulated : ACO__CALLS)
#define ACO__RUN_HOOK(result, name, parameters, arguments)                                                             \
    ACO__HOOK(result, name, parameters)                                                                                \
    {                                                                                                                  \
        return ACO__CALLS->name arguments;                                                                             \
    }

ACO__RUN_HOOK(int, socket, (int family, int type, int protocol), (family, type, protocol))
ACO__RUN_HOOK(int, socketpair, (int family, int type, int protocol, int fds[2]), (family, type, protocol, fds))
ACO__RUN_HOOK(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
ACO__RUN_HOOK(int, listen, (int fd, int backlog), (fd, backlog))
ACO__RUN_HOOK(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
              (fd, level, option, value, length))
ACO__RUN_HOOK(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
              (fd, level, option, value, length))
ACO__RUN_HOOK(int, getsockname, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
ACO__RUN_HOOK(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
ACO__RUN_HOOK(int, shutdown, (int fd, int how), (fd, how))
ACO__RUN_HOOK(int, pipe, (int fds[2]), (fds))
ACO__RUN_HOOK(int, pipe2, (int fds[2], int flags), (fds, flags))
ACO__RUN_HOOK(int, eventfd, (unsigned value, int flags), (value, flags))
ACO__RUN_HOOK(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
ACO__RUN_HOOK(int, epoll_create, (int size), (size))
ACO__RUN_HOOK(int, epoll_create1, (int flags), (flags))
ACO__RUN_HOOK(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),
              (epoll, operation, fd, event))
ACO__RUN_HOOK(int, dup, (int fd), (fd))
ACO__RUN_HOOK(struct hostent *, gethostbyname, (const char *name), (name))
ACO__RUN_HOOK(struct hostent *, gethostbyname2, (const char *name, int family), (name, family))
ACO__RUN_HOOK(struct hostent *, gethostbyaddr, (const void *address, socklen_t length, int family),
              (address, length, family))
ACO__RUN_HOOK(int, gethostbyname_r, (const char *name, struct hostent *entry, char *room, size_t size,
                                     struct hostent **found, int *error), (name, entry, room, size, found, error))
ACO__RUN_HOOK(int, gethostbyname2_r, (const char *name, int family, struct hostent *entry, char *room, size_t size,
                                      struct hostent **found, int *error),
              (name, family, entry, room, size, found, error))
ACO__HOOK(int, clock_gettime, (clockid_t clock, struct timespec *now))
{
    return ACO__CLOCKS->clock_gettime(clock, now);
}

ACO__HOOK(int, gettimeofday, (struct timeval *now, void *zone))
{
    return ACO__CLOCKS->gettimeofday(now, zone);
}

ACO__HOOK(time_t, time, (time_t *now))
{
    return ACO__CLOCKS->time(now);
}

ACO__RUN_HOOK(ssize_t, getrandom, (void *p, size_t n, unsigned flags), (p, n, flags))
ACO__RUN_HOOK(int, getentropy, (void *p, size_t n), (p, n))
ACO__RUN_HOOK(FILE *, popen, (const char *command, const char *mode), (command, mode))
ACO__RUN_HOOK(int, pthread_create,
              (pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg),
              (thread, attributes, fn, arg))
ACO__RUN_HOOK(int, pthread_detach, (pthread_t thread), (thread))

ACO__HOOK(void, freeaddrinfo, (struct addrinfo * list))
{
    ACO__CALLS->freeaddrinfo(list);
}

/* Not by the table: the library joins by that, too, and no task may have a turn then. */
ACO__HOOK(int, pthread_join, (pthread_t thread, void **result))
{
    return ACO__CALLS == &aco__libc_simulated ? join_thread_task(thread, result)
                                              : aco__libc_found.pthread_join(thread, result);
}

ACO__HOOK(int, ioctl, (int fd, unsigned long operation, ...))
{
    va_list list;
    void *last;
    va_start(list, operation);
    last = va_arg(list, void *); /* one that was not passed is garbage, and the system does not look at it */
    va_end(list);
    return ACO__CALLS->ioctl(fd, operation, last);
}

#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
ACO__RUN_HOOK(FILE *, fopen, (const char *path, const char *mode), (path, mode))
ACO__RUN_HOOK(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
ACO__RUN_HOOK(int, stat, (const char *path, struct stat *status), (path, status))
ACO__RUN_HOOK(int, stat64, (const char *path, struct stat64 *status), (path, status))
ACO__RUN_HOOK(int, lstat, (const char *path, struct stat *status), (path, status))
ACO__RUN_HOOK(int, lstat64, (const char *path, struct stat64 *status), (path, status))
ACO__RUN_HOOK(int, fstat, (int fd, struct stat *status), (fd, status))
ACO__RUN_HOOK(int, fstat64, (int fd, struct stat64 *status), (fd, status))
ACO__RUN_HOOK(int, access, (const char *path, int mode), (path, mode))
ACO__RUN_HOOK(off_t, lseek, (int fd, off_t offset, int from), (fd, offset, from))
ACO__RUN_HOOK(off64_t, lseek64, (int fd, off64_t offset, int from), (fd, offset, from))
ACO__RUN_HOOK(int, ftruncate, (int fd, off_t size), (fd, size))
ACO__RUN_HOOK(int, ftruncate64, (int fd, off64_t size), (fd, size))
ACO__RUN_HOOK(int, rename, (const char *from, const char *to), (from, to))
ACO__RUN_HOOK(int, link, (const char *from, const char *to), (from, to))
ACO__RUN_HOOK(int, unlink, (const char *path), (path))
ACO__RUN_HOOK(int, mkfifo, (const char *path, mode_t mode), (path, mode))
ACO__RUN_HOOK(int, mkdir, (const char *path, mode_t mode), (path, mode))
ACO__RUN_HOOK(int, rmdir, (const char *path), (path))
ACO__RUN_HOOK(DIR *, opendir, (const char *path), (path))
ACO__RUN_HOOK(struct dirent *, readdir, (DIR * folder), (folder))
ACO__RUN_HOOK(struct dirent64 *, readdir64, (DIR * folder), (folder))
ACO__RUN_HOOK(int, closedir, (DIR * folder), (folder))
#endif
