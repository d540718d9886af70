/* Every failure of every system call of acorn_io, at every place. A scenario that uses all calls runs in a thread of
 * its own; the first, second, … call of one function fails, until none is left. Some failures nobody may notice (EINTR,
 * a full table of descriptors at accept); all others the call reports. In any case nothing hangs and no descriptor is
 * left. The functions below stand in the system's table meanwhile. */
#include "replace.h" /* first */

#include <aco/group.h>
#include <aco/file.h>
#include <aco/io.h>
#include <aco/offload.h>
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The failing system ---- */

enum { /* what a failure does */
    NOTICED,   /* the call fails with it */
    UNNOTICED, /* all goes well */
    DELAYED,   /* all goes well, or a deadline passes: the system would never do this to a descriptor that is ready */
    EITHER,    /* noticed or not */
    RUN_FAILS  /* aco_run() fails with it, and can be called again */
};

typedef struct failure {
    int error, effect;
} failure_t;

#define FUNCTIONS(X)                                                                                                   \
    X(epoll_create1) X(eventfd) X(epoll_ctl) X(epoll_wait) X(read) X(write) X(readv) X(writev) X(recv) X(send)         \
    X(recvmsg) X(sendmsg) X(sendfile) X(splice) X(accept4) X(connect) X(socket) X(bind) X(listen) X(setsockopt)        \
    X(getsockopt) X(fcntl) X(fstat) X(poll) X(getsockname) X(getpeername) X(shutdown) X(close) X(pthread_create)       \
    X(recvfrom) X(sendto) X(openat2)                                                                                   \
    X(open) X(pread) X(pwrite) X(fsync) X(ftruncate) X(rename) X(link) X(unlink) X(mkdir) X(rmdir) X(opendir) X(readdir)
#define NUMBER(name) F_##name,
enum { FUNCTIONS(NUMBER) F_COUNT };

#define BYTES {{EINTR, UNNOTICED}, {EAGAIN, DELAYED}, {ECONNRESET, NOTICED}, {EIO, NOTICED}, {ENOMEM, NOTICED}}
#define MOVES {{EINTR, UNNOTICED}, {EAGAIN, UNNOTICED}, {ECONNRESET, NOTICED}, {EIO, NOTICED}, {ENOMEM, NOTICED}}
static const struct function {
    const char *name;
    failure_t failures[8];
} functions[] = {
    {"epoll_create1", {{EMFILE, NOTICED}, {ENOMEM, NOTICED}}},
    {"eventfd", {{EMFILE, NOTICED}, {ENFILE, NOTICED}}},
    {"epoll_ctl", {{ENOMEM, EITHER}, {ENOSPC, EITHER}}}, /* a dial over the loopback needs no event */
    {"epoll_wait", {{EINTR, UNNOTICED}, {EBADF, RUN_FAILS}, {ENOMEM, RUN_FAILS}}},
    {"read", BYTES},
    {"write", BYTES},
    {"readv", BYTES},
    {"writev", BYTES},
    {"recv", BYTES},
    {"send", BYTES},
    {"recvmsg", BYTES},
    {"sendmsg", BYTES},
    {"sendfile", MOVES},
    {"splice", MOVES},
    {"accept4",
     {{EINTR, UNNOTICED}, {ECONNABORTED, UNNOTICED}, {EMFILE, UNNOTICED}, {ENFILE, UNNOTICED}, {ENOBUFS, UNNOTICED},
      {ENOMEM, UNNOTICED}, {EAGAIN, DELAYED}, {EINVAL, NOTICED}}},
    {"connect", {{EINTR, UNNOTICED}, {ECONNREFUSED, NOTICED}, {EADDRNOTAVAIL, NOTICED}}},
    {"socket", {{EMFILE, NOTICED}, {ENOMEM, NOTICED}}},
    {"bind", {{EADDRINUSE, NOTICED}, {EACCES, NOTICED}}},
    {"listen", {{EADDRINUSE, NOTICED}}},
    {"setsockopt", {{ENOMEM, NOTICED}}},
    {"getsockopt", {{ENOBUFS, EITHER}}},
    {"fcntl", {{EBADF, NOTICED}}},
    {"fstat", {{EBADF, NOTICED}}},
    {"poll", {{EINTR, UNNOTICED}, {ENOMEM, NOTICED}}},
    {"getsockname", {{ENOBUFS, EITHER}}}, /* a dial asks to find a connection with itself; else it is one */
    {"getpeername", {{ENOTCONN, EITHER}}},
    {"shutdown", {{ENOTCONN, NOTICED}}},
    {"close", {{EINTR, UNNOTICED}, {EIO, NOTICED}}},
    {"pthread_create", {{EAGAIN, EITHER}}}, /* one_thread_is_enough() has more */
    {"recvfrom", BYTES},
    {"sendto", MOVES},
    {"openat2",
     {{EINTR, UNNOTICED}, {EAGAIN, UNNOTICED}, {ENOSYS, UNNOTICED}, {EPERM, NOTICED}, {EACCES, NOTICED}}},
    {"open", {{EINTR, UNNOTICED}, {EACCES, NOTICED}, {EMFILE, NOTICED}}},
    {"pread", {{EINTR, UNNOTICED}, {EIO, NOTICED}}},
    {"pwrite", {{EINTR, UNNOTICED}, {EIO, NOTICED}, {ENOSPC, NOTICED}}},
    {"fsync", {{EINTR, UNNOTICED}, {EIO, NOTICED}}},
    {"ftruncate", {{EFBIG, NOTICED}}},
    {"rename", {{EXDEV, NOTICED}}},
    {"link", {{EMLINK, NOTICED}}},
    {"unlink", {{EROFS, NOTICED}}},
    {"mkdir", {{ENOSPC, NOTICED}}},
    {"rmdir", {{EBUSY, NOTICED}}},
    {"opendir", {{EMFILE, NOTICED}, {ENOMEM, NOTICED}}},
    {"readdir", {{EIO, NOTICED}}},
};
_Static_assert(sizeof functions / sizeof *functions == F_COUNT, "each function has failures");

static int target, position, error; /* this call of this function fails so. target -1: none */
static int waits_in_vain;           /* the scenario must give up soon */
static int storms;                  /* each other call of those that may is interrupted */
static int is_short;                /* writes get few bytes out */
static int is_over;                 /* the thread ends: nobody is there to notice. Atomic, like is_in_files */
static __thread int is_scenario;    /* only this thread's calls fail, not those of the pool's threads */
static int counts[F_COUNT];

static int fails_now(int function)
{
    const failure_t *first = &functions[function].failures[0];
    int call;
    if (__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        return 0;
    call = __atomic_add_fetch(&counts[function], 1, __ATOMIC_RELAXED);
    if (storms && first->error == EINTR && first->effect == UNNOTICED && call % 2) {
        errno = EINTR;
        return 1;
    }
    if (function != target || call != position)
        return 0;
    errno = error;
    return 1;
}

static int fails(int function)
{
    return is_scenario && fails_now(function);
}

/* How many of n bytes a write may take. */
static size_t part_of(size_t n)
{
    return is_short && is_scenario && n > 3 ? 3 : n;
}

#define FAILS(type, name, parameters, arguments)                                                                       \
    FAILING(type, name, parameters, arguments, fails(F_##name), (type)-1)
FAILS(int, epoll_create1, (int flags), (flags))
FAILS(int, eventfd, (unsigned value, int flags), (value, flags))
FAILS(int, epoll_wait, (int events, struct epoll_event *found, int most, int ms), (events, found, most, ms))
FAILS(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
FAILS(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, part_of(n)))
FAILS(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
FAILS(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
FAILS(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
FAILS(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, part_of(n), flags))
FAILS(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
FAILS(ssize_t, sendfile, (int to, int from, int64_t *offset, size_t n), (to, from, offset, n))
FAILS(ssize_t, splice, (int from, int64_t *a, int to, int64_t *b, size_t n, unsigned flags),
        (from, a, to, b, n, flags))
FAILS(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags), (fd, address, length, flags))
FAILS(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
FAILS(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
FAILS(int, listen, (int fd, int backlog), (fd, backlog))
FAILS(int, setsockopt, (int fd, int level, int name, const void *p, socklen_t n), (fd, level, name, p, n))
FAILS(int, getsockopt, (int fd, int level, int name, void *p, socklen_t *n), (fd, level, name, p, n))
FAILS(int, poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms))
FAILS(int, getsockname, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
FAILS(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
FAILS(int, shutdown, (int fd, int how), (fd, how))
FAILS(ssize_t, recvfrom, (int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length),
        (fd, p, n, flags, from, length))
FAILS(ssize_t, sendto, (int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length),
        (fd, p, n, flags, to, length))
FAILS(int, fstat, (int fd, struct stat *status), (fd, status))

/* Has the error as its result. */
REAL(pthread_create);
static unsigned lets_go; /* for blocks() */
static int failing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                                  void *arg)
{
    int failure = fails(F_pthread_create) ? errno : 0;
    if (failure)
        __atomic_store_n(&lets_go, 1, __ATOMIC_RELEASE);
    return failure ? failure : real_pthread_create(thread, attributes, start, arg);
}

/* Calls for files come from the pool's threads while the scenario's thread waits for them. */
static int is_in_files;

static int fails_in_files(int function)
{
    return __atomic_load_n(&is_in_files, __ATOMIC_RELAXED) && fails_now(function);
}

#define FAILS_IN_FILES(type, failed, name, parameters, arguments)                                                      \
    FAILING(type, name, parameters, arguments, fails_in_files(F_##name), failed)
FAILS_IN_FILES(ssize_t, -1, pread, (int fd, void *p, size_t n, int64_t offset), (fd, p, n, offset))
FAILS_IN_FILES(ssize_t, -1, pwrite, (int fd, const void *p, size_t n, int64_t offset), (fd, p, n, offset))
FAILS_IN_FILES(struct dirent *, NULL, readdir, (DIR *dir), (dir))
FAILS_IN_FILES(DIR *, NULL, opendir, (const char *path), (path))
FAILS_IN_FILES(int, -1, openat2, (int folder, const char *path, const struct aco__open_how *how, size_t sz),
               (folder, path, how, sz))
FAILS_IN_FILES(int, -1, fsync, (int fd), (fd))
FAILS_IN_FILES(int, -1, ftruncate, (int fd, int64_t size), (fd, size))
FAILS_IN_FILES(int, -1, rename, (const char *from, const char *to), (from, to))
FAILS_IN_FILES(int, -1, link, (const char *from, const char *to), (from, to))
FAILS_IN_FILES(int, -1, unlink, (const char *path), (path))
FAILS_IN_FILES(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
FAILS_IN_FILES(int, -1, rmdir, (const char *path), (path))

/* The library passes a mode where it may be needed. */
REAL(open);
static int failing_open(const char *path, int flags, ...)
{
    va_list list;
    unsigned mode = 0;
    va_start(list, flags);
    if (flags & O_CREAT)
        mode = va_arg(list, unsigned);
    va_end(list);
    return fails_in_files(F_open) ? -1 : real_open(path, flags, mode);
}

/* Nothing is known to be in memory: all reads are done by the pool. */
static ssize_t lacks_preadv2(int fd, const struct iovec *parts, int count, int64_t offset, int flags)
{
    (void)parts;
    (void)count;
    (void)offset;
    (void)flags;
    errno = fd < 0 ? EBADF : EOPNOTSUPP;
    return -1;
}

/* An interrupted connect() goes on, and a close() that fails has closed. */
REAL(connect);
static int failing_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (!fails(F_connect))
        return real_connect(fd, address, length);
    if (errno == EINTR) {
        if (real_connect(fd, address, length) == 0 || errno == EINPROGRESS)
            errno = EINTR;
    }
    return -1;
}

/* A registration that cannot be removed goes with the file. */
REAL(epoll_ctl);
static int failing_epoll_ctl(int events, int op, int fd, struct epoll_event *event)
{
    return op != EPOLL_CTL_DEL && fails(F_epoll_ctl) ? -1 : real_epoll_ctl(events, op, fd, event);
}

REAL(close);
static int failing_close(int fd)
{
    int is_failing = fails(F_close), reason = errno, result = real_close(fd);
    errno = is_failing ? reason : errno;
    return is_failing ? -1 : result;
}

REAL(fcntl);
static int failing_fcntl(int fd, int command, ...)
{
    va_list arguments;
    int argument;
    va_start(arguments, command);
    argument = command == F_SETFL ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return fails(F_fcntl) ? -1 : real_fcntl(fd, command, argument);
}

/* Counts as epoll_wait(). */
FAILING(int, epoll_pwait2, (int events, struct epoll_event *found, int most, const struct timespec *limit),
        (events, found, most, limit), fails(F_epoll_wait), -1)

static void replace_system(void)
{
#define REPLACE_ONE(name) REPLACE(name);
    FUNCTIONS(REPLACE_ONE)
    REPLACE(epoll_pwait2);
    aco__system.preadv2 = lacks_preadv2;
}

/* ---- The scenario ---- */

static __thread int first_error; /* what a call reported first; 0: nothing */
static __thread int is_client_done;

/* Notes a failure. */
static int is_bad(ssize_t result)
{
    if (result < 0 && !first_error)
        first_error = errno;
    return result < 0;
}

static void close_it(int fd)
{
    if (fd >= 0)
        (void)is_bad(aco_io_close(fd));
}

static void *echoes(void *listener)
{
    char text[32];
    ssize_t n;
    int fd = aco_io_accept((int)(intptr_t)listener);
    if (is_bad(fd))
        return ACO_ERROR; /* the client need not wait for an echo */
    while ((n = aco_io_read(fd, text, sizeof text)) > 0 && !is_bad(aco_io_write_all(fd, text, (size_t)n)))
        continue;
    (void)is_bad(n);
    close_it(fd);
    return NULL;
}

/* 0 if what comes back is what was sent. */
static int comes_back(int fd, ssize_t sent, size_t wanted)
{
    char text[32];
    if (is_bad(sent) || (size_t)sent != wanted || is_bad(aco_io_read_exactly(fd, text, wanted)))
        return -1;
    if (memcmp(text, "0123456789", wanted) == 0)
        return 0;
    CHECK(first_error);
    return -1;
}

static int sends_a_file(int fd, int pipe_in, int pipe_out, FILE *file)
{
    int64_t offset = 0;
    if (comes_back(fd, aco_io_sendfile(fd, fileno(file), &offset, 10), 10) != 0)
        return -1;
    offset = 0;
    if (is_bad(aco_io_splice(fileno(file), &offset, pipe_in, NULL, 10, 0)))
        return -1;
    if (comes_back(fd, aco_io_splice(pipe_out, NULL, fd, NULL, 10, 0), 10) != 0)
        return -1;
    errno = 0;
    if (aco_io_wait_readable_until(pipe_out, aco_after(ACO_MILLISECOND)) == 0 || errno != ETIMEDOUT)
        return is_bad(-1), -1;
    return 0;
}

static int uses_connection(int fd, int pipe_in, int pipe_out, FILE *file)
{
    char ten[] = "0123456789", text[32] = "";
    struct iovec parts[2] = {{ten, 4}, {ten + 4, 6}}, into = {text, 10};
    struct msghdr message = {0}, received = {0};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    received.msg_iov = &into;
    received.msg_iovlen = 1;
    if (comes_back(fd, aco_io_write_all(fd, ten, 10), 10) != 0 || is_bad(aco_io_wait_writable(fd)) ||
        comes_back(fd, aco_io_writev(fd, parts, 2), 10) != 0)
        return -1;
    if (comes_back(fd, aco_io_sendmsg(fd, &message, 0), 10) != 0)
        return -1;
    if (is_bad(aco_io_write_all(fd, ten, 10)) || is_bad(aco_io_wait_readable(fd)) ||
        is_bad(aco_io_recv(fd, text, 1, 0)) || is_bad(aco_io_recvmsg(fd, &received, MSG_PEEK)) ||
        is_bad(aco_io_read_exactly(fd, text, 9)))
        return -1;
    if (is_bad(aco_io_write_all(pipe_in, ten, 10)) || is_bad(aco_io_readv(pipe_out, &into, 1)) ||
        is_bad(aco_io_writev(pipe_in, parts, 2)) || is_bad(aco_io_read_exactly(pipe_out, text, 10)))
        return -1;
    return sends_a_file(fd, pipe_in, pipe_out, file);
}

/* Everything, as a client of its own server. Ends it by half-closing. */
static void client(const char *network, const char *host)
{
    static const aco_io_options_t shared = {.flags = ACO_IO_REUSEPORT};
    char address[ACO_IO_ADDRESS_SIZE], text[8];
    int ends[2], fd, is_tcp = network[0] == 't', listener = aco_io_listen(network, host, is_tcp ? "0" : NULL, &shared);
    FILE *file = tmpfile();
    aco_group_t group;
    if (is_bad(listener) || fputs("0123456789", file) < 0 || fflush(file) != 0 || pipe(ends) != 0)
        goto no_listener;
    if (is_bad(aco_io_adopt(ends[0])) || is_bad(aco_io_adopt(ends[1])) ||
        is_bad(aco_io_local_address(listener, address, sizeof address)))
        goto no_group;
    aco_group_begin(&group, ACO_CANCEL_ON_FAILURE);
    if (!aco_group_spawn(&group, echoes, (void *)(intptr_t)listener, NULL))
        (void)is_bad(-1);
    aco_task_yield(); /* it waits */
    fd = aco_io_dial(network, host, is_tcp ? strrchr(address, ':') + 1 : NULL, NULL);
    if (!is_bad(fd)) {
        if (uses_connection(fd, ends[1], ends[0], file) == 0 &&
            !is_bad(aco_io_peer_address(fd, address, sizeof address)) && !is_bad(aco_io_shutdown(fd, SHUT_WR)) &&
            !is_bad(aco_io_read(fd, text, sizeof text)))
            is_client_done++;
        close_it(fd);
    }
    aco_scope_cancel(&group.scope); /* a server that has seen no client */
    aco_group_end(&group);
no_group:
    close_it(ends[0]);
    close_it(ends[1]);
no_listener:
    close_it(listener);
    fclose(file);
}

/* ---- The pool ---- */

static unsigned pool_threads(void)
{
    aco_offload_stats_t stats;
    CHECK_EQ(aco_offload_stats(&stats), 0);
    return stats.threads;
}

static unsigned released;

static void count_release(void *arg, void *result)
{
    CHECK(arg == &released && !result);
    released++;
}

static void *tell_errno(void *arg)
{
    errno = *(int *)arg;
    return arg;
}

static void use_pool(void)
{
    int exotic = EXFULL;
    if (!is_bad(aco_offload(tell_errno, &exotic, NULL, NULL)))
        CHECK_EQ(errno, EXFULL);
}

static unsigned has_begun;

static void *blocks(void *unused)
{
    __atomic_store_n(&has_begun, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&lets_go, __ATOMIC_ACQUIRE))
        usleep(50);
    return unused;
}

static void *offloads_blocks(void *unused)
{
    CHECK_EQ(aco_offload(blocks, NULL, NULL, NULL), 0);
    return unused;
}

/* If the pool has a thread, a second one that cannot be started does no harm. The first goes on only then. */
static void *one_thread_is_enough(void *unused)
{
    int exotic = EXFULL;
    aco_t *first;
    aco_offload_stats_t stats;
    do /* those of before end */
        CHECK_EQ(aco_offload_stats(&stats), 0);
    while (stats.threads);
    CHECK_EQ(aco_offload_limits(64, 10 * ACO_SECOND), 0);
    counts[F_pthread_create] = 0;
    target = F_pthread_create;
    position = 1;
    error = EAGAIN;
    errno = 0;
    CHECK_EQ(aco_offload(tell_errno, &released, NULL, count_release), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(released, 1);
    CHECK(strstr(aco_error_message(), "aco_offload: ") != NULL);
    position = 3;
    __atomic_store_n(&lets_go, 0, __ATOMIC_RELAXED);
    first = aco_spawn(offloads_blocks, NULL, NULL);
    while (!__atomic_load_n(&has_begun, __ATOMIC_ACQUIRE))
        aco_sleep(ACO_MILLISECOND / 10);
    CHECK_EQ(aco_offload(tell_errno, &exotic, NULL, NULL), 0);
    CHECK_EQ(errno, EXFULL);
    CHECK_EQ(aco_join(first, NULL), 0);
    CHECK_EQ(counts[F_pthread_create], 3);
    target = -1;
    return unused;
}

static void datagrams(void)
{
    struct sockaddr_storage to, from;
    socklen_t length = sizeof to, from_length = sizeof from;
    char text[8];
    int a = aco_io_bind("unixgram", NULL, NULL, NULL), b = aco_io_bind("unixgram", NULL, NULL, NULL);
    if (!is_bad(a) && !is_bad(b) && !is_bad(getsockname(b, (struct sockaddr *)&to, &length)) &&
        !is_bad(aco_io_sendto(a, "?", 1, 0, (struct sockaddr *)&to, length)) &&
        !is_bad(aco_io_recvfrom(b, text, 8, 0, (struct sockaddr *)&from, &from_length)))
        (void)is_bad(aco_io_sendto(b, text, 1, 0, (struct sockaddr *)&from, from_length));
    close_it(a);
    close_it(b);
}

/* ---- Files ---- */

static void uses_file(int fd, const char *from, const char *to)
{
    char text[10];
    aco_dir_entry_t entry;
    aco_dir_t *dir;
    if (is_bad(aco_file_pwrite(fd, "0123456789", 10, 0)) || is_bad(aco_file_pread(fd, text, 10, 0)) ||
        is_bad(aco_file_sync(fd)) || is_bad(aco_file_truncate(fd, 5)) || is_bad(aco_file_rename(from, to)) ||
        is_bad(aco_file_link(to, from)) || is_bad(aco_file_unlink(from)) || is_bad(aco_dir_make(from, 0700)) ||
        is_bad(aco_dir_remove(from)))
        return;
    CHECK(memcmp(text, "0123456789", 10) == 0);
    dir = aco_dir_open("/proc/self");
    if (!dir) {
        (void)is_bad(-1);
        return;
    }
    while (aco_dir_read(dir, &entry) == 1)
        continue;
    (void)is_bad(aco_dir_read(dir, &entry)); /* a failure stays */
    CHECK_EQ(aco_dir_close(dir), 0);
}

static void use_files(void)
{
    char from[64], to[80];
    int fd;
    snprintf(from, sizeof from, "/tmp/acorn-io-failure-%d", (int)getpid());
    snprintf(to, sizeof to, "%s-renamed", from);
    __atomic_store_n(&is_in_files, 1, __ATOMIC_RELAXED);
    fd = aco_file_open(from, O_RDWR | O_CREAT, 0600);
    if (!is_bad(fd)) {
        int again = aco_file_open_beneath("/tmp", from + 5, O_RDWR, 0, ACO_FILE_LINKS_INSIDE);
        if (!is_bad(again)) {
            uses_file(again, from, to);
            close_it(again);
        }
        close_it(fd);
    }
    __atomic_store_n(&is_in_files, 0, __ATOMIC_RELAXED);
    unlink(from);
    rmdir(from);
    unlink(to);
}

static void *scenario(void *host)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after(waits_in_vain ? 20 * ACO_MILLISECOND : 20 * ACO_SECOND));
    is_client_done = 0;
    client("unix", host);
    client("tcp4", "127.0.0.1");
    use_pool();
    use_files();
    datagrams();
    aco_scope_end(&scope);
    return NULL;
}

/* A receiver that another sender has filled. Each failed attempt to send to it makes the system tell that the sender is
 * writable; it must not try all the time. */
static void *sends_to_full(void *unused)
{
    struct sockaddr_storage to;
    socklen_t length = sizeof to;
    int receiver = aco_io_bind("unixgram", NULL, NULL, NULL), fds[2];
    aco_scope_t scope;
    for (int i = 0; i < 2; i++)
        fds[i] = aco_io_bind("unixgram", NULL, NULL, NULL);
    CHECK_EQ(getsockname(receiver, (struct sockaddr *)&to, &length), 0);
    while (aco_io_sendto(fds[0], "!", 1, MSG_DONTWAIT, (struct sockaddr *)&to, length) == 1)
        continue;
    CHECK_EQ(errno, EAGAIN);
    counts[F_sendto] = 0;
    aco_scope_begin(&scope, aco_after(20 * ACO_MILLISECOND));
    CHECK_EQ(aco_io_sendto(fds[1], "?", 1, 0, (struct sockaddr *)&to, length), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    aco_scope_end(&scope);
    CHECK(counts[F_sendto] > 0 && counts[F_sendto] < 10);
    close_it(receiver);
    close_it(fds[0]);
    close_it(fds[1]);
    return unused;
}

typedef struct outcome {
    int first_error, is_done, run_error;
} outcome_t;

static void *run_scenario(void *arg)
{
    outcome_t *outcome = arg;
    static unsigned number;
    char host[64];
    aco_t *task;
    snprintf(host, sizeof host, "@acorn-io-%d-%u", (int)getpid(), __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
    first_error = 0;
    is_scenario = 1;
    task = aco_spawn(scenario, host, NULL);
    outcome->run_error = aco_run() == 0 ? 0 : errno;
    if (outcome->run_error)
        CHECK_EQ(aco_run(), 0);
    CHECK_EQ(aco_join(task, NULL), 0);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    outcome->first_error = first_error;
    outcome->is_done = is_client_done == 2;
    return NULL;
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static outcome_t in_a_thread(void)
{
    outcome_t outcome = {0, 0, 0};
    pthread_t thread;
    int before = count_descriptors();
    memset(counts, 0, sizeof counts);
    __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_create(&thread, NULL, run_scenario, &outcome), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    while (pool_threads()) /* one may still do what nobody waits for any more, and looks at `target` */
        usleep(50);
    target = -1;
    CHECK_EQ(count_descriptors(), before);
    return outcome;
}

static int is_as_it_should(const outcome_t *o, const failure_t *failure)
{
    int went_well = o->is_done && !o->first_error && !o->run_error;
    switch (failure->effect) {
    case NOTICED:
        return o->first_error == failure->error && !o->run_error;
    case UNNOTICED:
        return went_well;
    case DELAYED:
        return went_well || (o->first_error == ETIMEDOUT && !o->run_error);
    case EITHER:
        return went_well || (o->first_error == failure->error && !o->run_error);
    default:
        return o->is_done && !o->first_error && o->run_error == failure->error;
    }
}

/* All places at which this failure can come. Returns how many there are. */
static int fail_everywhere(int function, const failure_t *failure)
{
    for (int place = 1;; place++) {
        outcome_t outcome;
        target = function;
        position = place;
        error = failure->error;
        waits_in_vain = failure->effect == DELAYED;
        outcome = in_a_thread();
        if (counts[function] < place)
            return place - 1;
        if (!is_as_it_should(&outcome, failure)) {
            fprintf(stderr, "%s, call %d, %s: error %d, done %d, aco_run() %d\n", functions[function].name, place,
                    strerror(failure->error), outcome.first_error, outcome.is_done, outcome.run_error);
            CHECK(!"the outcome");
        }
    }
}

int main(int argc, char **argv)
{
    outcome_t outcome;
    int injected = 0, uses[F_COUNT];
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    signal(SIGPIPE, SIG_IGN); /* splice() raises it */
    CHECK_EQ(setenv("ACO_FILES", "pool", 1), 0); /* io_uring.c has the failures of the other way */
    replace_system();
    target = -1;
    CHECK_EQ(aco_offload_limits(64, 0), 0); /* each job starts a thread */
    outcome = in_a_thread();
    if (outcome.first_error)
        fprintf(stderr, "error %d\n", outcome.first_error);
    CHECK(outcome.is_done && !outcome.first_error && !outcome.run_error);
    CHECK(counts[F_epoll_wait] < 200); /* it waits and does not look all the time, */
    CHECK(counts[F_epoll_ctl] < 60);   /* and registers seldom */
    for (int i = 0; i < F_COUNT; i++)
        CHECK(counts[i] > 0);
    memcpy(uses, counts, sizeof uses);
    for (is_short = 0; is_short < 2; is_short++)
        for (storms = 0; storms < 2; storms++) {
            outcome = in_a_thread();
            CHECK(outcome.is_done && !outcome.first_error && !outcome.run_error);
        }
    is_short = storms = 0;
    __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
    is_scenario = 1;
    CHECK(aco_spawn(sends_to_full, NULL, &detached) != NULL);
    CHECK_EQ(aco_run(), 0);
    is_scenario = 0;
    for (int function = 0; function < F_COUNT; function++) {
        int of_this = 0;
        for (int i = 0; i < 8 && functions[function].failures[i].error; i++)
            if (argc < 2 || strcmp(argv[1], functions[function].name) == 0)
                of_this += fail_everywhere(function, &functions[function].failures[i]);
        printf("%s: %d uses, %d failures injected\n", functions[function].name, uses[function], of_this);
        injected += of_this;
    }
    printf("io_failure: %d failures\n", injected);
    is_scenario = 1;
    __atomic_store_n(&is_over, 0, __ATOMIC_RELAXED);
    aco_spawn(one_thread_is_enough, NULL, &(aco_options_t){.flags = ACO_DETACHED});
    CHECK_EQ(aco_run(), 0);
    return check_result("io_failure");
}
