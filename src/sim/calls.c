/* What stands in the system's table (src/system/system.h). Each entry looks whether the calling thread has a run;
 * without one it is what was there before.
 *
 * Every entry of the table is in one of two lists: those that a run may pass to the system, and those with a function
 * here. So what is new in the table cannot reach the system unseen. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* CLOCK_BOOTTIME and others */
#endif
#include "sim/calls.h"

#include "system/system.h"

#include "aco/backtrace.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

/* They change nothing that a task sees, and wait for nobody: memory pages, the process lock (no other thread holds it
 * for long), what the process and the machine are, handlers of fatal signals, and dying. */
#define EACH_PASSED(X)                                                                                                 \
    X(mmap) X(munmap) X(mprotect) X(madvise) X(mincore) X(process_madvise) X(map_shadow_stack)                         \
    X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_unlock)                                             \
    X(gettid) X(getpid) X(sysconf) X(getrlimit) X(uname) X(sched_getaffinity) X(prctl)                                 \
    X(sigaction) X(sigaltstack) X(pthread_sigmask) X(raise) X(freeaddrinfo)
/* Simulated, or passed on for some descriptors. */
#define EACH_SIMULATED(X)                                                                                              \
    X(clock_gettime) X(nanosleep) X(clock_nanosleep) X(futex_wait) X(futex_wake) X(sched_yield)                        \
    X(open) X(read) X(close) X(write)
/* Not simulated yet. */
#define EACH_REFUSED(X)                                                                                                \
    X(pthread_create) X(pthread_join) X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_signal)            \
    X(pthread_cond_broadcast) X(sched_setaffinity)                                                                     \
    X(readv) X(writev) X(fcntl) X(ioctl) X(poll) X(pipe2) X(splice) X(epoll_create1) X(epoll_ctl) X(epoll_wait)        \
    X(epoll_pwait2) X(eventfd) X(signalfd)                                                                             \
    X(socket) X(bind) X(listen) X(connect) X(accept4) X(sendfile) X(getsockopt) X(setsockopt) X(getsockname)           \
    X(getpeername) X(shutdown) X(recv) X(recvfrom) X(recvmsg) X(send) X(sendto) X(sendmsg)                             \
    X(fopen) X(pread) X(pwrite) X(preadv2) X(lseek) X(fsync) X(ftruncate) X(stat) X(fstat) X(rename) X(opendir)        \
    X(readdir) X(closedir)                                                                                             \
    X(getaddrinfo) X(getnameinfo) X(if_nametoindex) X(if_indextoname)                                                  \
    X(posix_spawnp) X(waitpid) X(kill) X(pidfd_open) X(pidfd_send_signal)                                              \
    X(pthread_kill) X(sigpending) X(sigtimedwait) X(sigwaitinfo)

#define ONE(name) +1
_Static_assert(EACH_PASSED(ONE) EACH_SIMULATED(ONE) EACH_REFUSED(ONE) == sizeof(aco__system_t) / sizeof(void (*)(void)),
               "each entry of the table is in one of the lists");

enum { NS_PER_SECOND = 1000000000, STDERR = 2 };
static const int64_t MONOTONIC_AT_FIRST = (int64_t)1000 * NS_PER_SECOND;
static const int64_t REALTIME_AT_FIRST = (int64_t)1000000000 * NS_PER_SECOND; /* in September 2001 */

static const int64_t LATEST = (int64_t)3600 * 24 * 365 * 30 * NS_PER_SECOND; /* 32 bits hold it */

static aco__system_t real;

/* ---- Time ---- */

static int64_t at_first(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return REALTIME_AT_FIRST;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return 0;
    default:
        return MONOTONIC_AT_FIRST;
    }
}

static int64_t nanoseconds_of(const struct timespec *time)
{
    int64_t seconds = time->tv_sec;
    return seconds > INT64_MAX / NS_PER_SECOND - 1 ? INT64_MAX : seconds * NS_PER_SECOND + time->tv_nsec;
}

/* The clock jumps to `then`, nanoseconds since the run's begin, unless that has passed. */
static void jump(aco_sim_t *sim, int64_t then)
{
    if (then > LATEST) /* the clocks could not show it */
        aco__sim_fail(sim, "tasks sleep for more than thirty years, and nothing else can happen");
    else if (then > sim->now)
        sim->now = then;
    ACO__ASSERT(sim->now >= 0);
    aco__history_note(&sim->history, ACO__SIM_TIME, 0, (uint64_t)sim->now);
}

/* The coarse clock tells the library how old its memory is, which differs from run to run. */
static int is_repeatable(const aco_sim_t *sim, clockid_t clock)
{
    return sim->is_in_turn && clock != CLOCK_MONOTONIC_COARSE;
}

static int sim_clock_gettime(clockid_t clock, struct timespec *now)
{
    aco_sim_t *sim = aco_sim_current();
    int64_t ns;
    if (!sim)
        return real.clock_gettime(clock, now);
    ns = at_first(clock) + sim->now;
    now->tv_sec = (time_t)(ns / NS_PER_SECOND);
    now->tv_nsec = (long)(ns % NS_PER_SECOND);
    if (is_repeatable(sim, clock))
        aco__history_note(&sim->history, ACO__SIM_CLOCK, (uint64_t)clock, (uint64_t)ns);
    return 0;
}

static int sim_nanosleep(const struct timespec *time, struct timespec *rest)
{
    aco_sim_t *sim = aco_sim_current();
    int64_t ns;
    if (!sim)
        return real.nanosleep(time, rest);
    ns = nanoseconds_of(time);
    jump(sim, ns < INT64_MAX - sim->now ? sim->now + ns : INT64_MAX);
    return 0;
}

static int sim_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.clock_nanosleep(clock, flags, time, rest);
    if (!(flags & TIMER_ABSTIME))
        return sim_nanosleep(time, rest) == 0 ? 0 : errno;
    jump(sim, nanoseconds_of(time) - at_first(clock));
    return 0;
}

/* ---- Threads: there are none ---- */

static int sim_futex_wait(uint32_t *word, uint32_t value, int64_t until)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.futex_wait(word, value, until);
    ACO__ASSERT(!sim->is_in_turn); /* only aco_run() waits so */
    ACO__ASSERT(until >= 0); /* what would wait for ever is a deadlock */
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        errno = EAGAIN;
    } else {
        jump(sim, until - MONOTONIC_AT_FIRST);
        errno = ETIMEDOUT;
    }
    return -1;
}

static int sim_futex_wake(uint32_t *word, int threads)
{
    return aco_sim_current() ? 0 : real.futex_wake(word, threads);
}

static int sim_sched_yield(void)
{
    return aco_sim_current() ? 0 : real.sched_yield();
}

/* ---- Calls that are not simulated ---- */

static uint64_t number_of_call(const char *name)
{
    uint64_t number = 0;
    while (*name)
        number = number * 31 + (unsigned char)*name++;
    return number;
}

/* The run fails. Returns the error for the caller. */
static ACO__COLD int refuse(const char *call)
{
    aco_sim_t *sim = aco_sim_current();
    const aco_t *co = aco__running();
    const char *name = co ? aco_name(co) : "";
    if (sim->refused)
        aco__sim_settle(sim);
    aco__history_note(&sim->history, ACO__SIM_CALL, number_of_call(call), 0);
    if (sim->refusals++ < ACO__SIM_MOST_TOLD) {
        aco__sim_say(sim, "%s() is not simulated; it is called by:\n", call);
        if (co)
            (void)aco_backtrace_print(co, STDERR);
    }
    snprintf(sim->refused_in, sizeof sim->refused_in, "%s%s%s",
             !co ? "outside of coroutines" : *name ? "in coroutine \"" : "in a coroutine without a name", name,
             *name ? "\"" : "");
    sim->refused = call;
    aco__self()->message[0] = 0;
    return ENOSYS;
}

#define REFUSED(type, failed, name, parameters, arguments)                                                             \
    static type sim_##name parameters                                                                                  \
    {                                                                                                                  \
        if (!aco_sim_current())                                                                                        \
            return real.name arguments;                                                                                \
        errno = refuse(#name);                                                                                         \
        return failed;                                                                                                 \
    }
#define REFUSED_INT(name, parameters, arguments) REFUSED(int, -1, name, parameters, arguments)
#define REFUSED_SIZE(name, parameters, arguments) REFUSED(ssize_t, -1, name, parameters, arguments)
/* It returns an error number. */
#define REFUSED_ERROR(name, parameters, arguments) REFUSED(int, ENOSYS, name, parameters, arguments)

REFUSED_ERROR(pthread_create, (pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg),
              (thread, attributes, fn, arg))
REFUSED_ERROR(pthread_join, (pthread_t thread, void **result), (thread, result))
REFUSED_ERROR(pthread_cond_wait, (pthread_cond_t *condition, pthread_mutex_t *mutex), (condition, mutex))
REFUSED_ERROR(pthread_cond_timedwait,
              (pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until),
              (condition, mutex, until))
REFUSED_ERROR(pthread_cond_signal, (pthread_cond_t *condition), (condition))
REFUSED_ERROR(pthread_cond_broadcast, (pthread_cond_t *condition), (condition))
REFUSED_INT(sched_setaffinity, (pid_t thread, size_t sz, const void *processors), (thread, sz, processors))

REFUSED_SIZE(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
REFUSED_SIZE(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
REFUSED_INT(poll, (struct pollfd *fds, nfds_t n, int milliseconds), (fds, n, milliseconds))
REFUSED_INT(pipe2, (int fds[2], int flags), (fds, flags))
REFUSED_SIZE(splice, (int from, int64_t *from_offset, int to, int64_t *to_offset, size_t n, unsigned flags),
             (from, from_offset, to, to_offset, n, flags))
REFUSED_INT(epoll_create1, (int flags), (flags))
REFUSED_INT(epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event))
REFUSED_INT(epoll_wait, (int epoll, struct epoll_event *events, int room, int milliseconds),
            (epoll, events, room, milliseconds))
REFUSED_INT(epoll_pwait2, (int epoll, struct epoll_event *events, int room, const struct timespec *limit),
            (epoll, events, room, limit))
REFUSED_INT(eventfd, (unsigned value, int flags), (value, flags))
REFUSED_INT(signalfd, (int fd, const sigset_t *signals, int flags), (fd, signals, flags))

REFUSED_INT(socket, (int family, int type, int protocol), (family, type, protocol))
REFUSED_INT(bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
REFUSED_INT(listen, (int fd, int backlog), (fd, backlog))
REFUSED_INT(connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
REFUSED_INT(accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags), (fd, address, length, flags))
REFUSED_SIZE(sendfile, (int to, int from, int64_t *offset, size_t n), (to, from, offset, n))
REFUSED_INT(getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
            (fd, level, option, value, length))
REFUSED_INT(setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
            (fd, level, option, value, length))
REFUSED_INT(getsockname, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
REFUSED_INT(getpeername, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
REFUSED_INT(shutdown, (int fd, int how), (fd, how))
REFUSED_SIZE(recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
REFUSED_SIZE(recvfrom, (int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length),
             (fd, p, n, flags, from, length))
REFUSED_SIZE(recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
REFUSED_SIZE(send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
REFUSED_SIZE(sendto, (int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length),
             (fd, p, n, flags, to, length))
REFUSED_SIZE(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))

REFUSED(FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
REFUSED_SIZE(pread, (int fd, void *p, size_t n, int64_t offset), (fd, p, n, offset))
REFUSED_SIZE(pwrite, (int fd, const void *p, size_t n, int64_t offset), (fd, p, n, offset))
REFUSED_SIZE(preadv2, (int fd, const struct iovec *parts, int count, int64_t offset, int flags),
             (fd, parts, count, offset, flags))
REFUSED(int64_t, -1, lseek, (int fd, int64_t offset, int from), (fd, offset, from))
REFUSED_INT(fsync, (int fd), (fd))
REFUSED_INT(ftruncate, (int fd, int64_t sz), (fd, sz))
REFUSED_INT(stat, (const char *path, struct stat *status), (path, status))
REFUSED_INT(fstat, (int fd, struct stat *status), (fd, status))
REFUSED_INT(rename, (const char *from, const char *to), (from, to))
REFUSED(DIR *, NULL, opendir, (const char *path), (path))
REFUSED(struct dirent *, NULL, readdir, (DIR *folder), (folder))
REFUSED_INT(closedir, (DIR *folder), (folder))

REFUSED(int, EAI_SYSTEM, getaddrinfo,
        (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found),
        (host, port, hints, found))
REFUSED(int, EAI_SYSTEM, getnameinfo,
        (const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *port,
         socklen_t port_size, int flags),
        (address, length, host, host_size, port, port_size, flags))
REFUSED(unsigned, 0, if_nametoindex, (const char *name), (name))
REFUSED(char *, NULL, if_indextoname, (unsigned index, char *name), (index, name))

REFUSED_ERROR(posix_spawnp,
              (pid_t *process, const char *program, const posix_spawn_file_actions_t *actions,
               const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
              (process, program, actions, attributes, arguments, environment))
REFUSED(pid_t, -1, waitpid, (pid_t process, int *status, int options), (process, status, options))
REFUSED_INT(kill, (pid_t process, int signal), (process, signal))
REFUSED_INT(pidfd_open, (pid_t process, unsigned flags), (process, flags))
REFUSED_INT(pidfd_send_signal, (int process, int signal, void *information, unsigned flags),
            (process, signal, information, flags))
REFUSED_ERROR(pthread_kill, (pthread_t thread, int signal), (thread, signal))
REFUSED_INT(sigpending, (sigset_t *signals), (signals))
REFUSED_INT(sigtimedwait, (const sigset_t *signals, void *info, const struct timespec *time), (signals, info, time))
REFUSED_INT(sigwaitinfo, (const sigset_t *signals, void *info), (signals, info))

/* The last argument of fcntl() and ioctl(), of any type. */
#define LAST_ARGUMENT(operation, last)                                                                                 \
    do {                                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, operation);                                                                                     \
        (last) = va_arg(list, void *);                                                                                 \
        va_end(list);                                                                                                  \
    } while (0)

static int sim_fcntl(int fd, int operation, ...)
{
    void *last;
    LAST_ARGUMENT(operation, last);
    if (!aco_sim_current())
        return real.fcntl(fd, operation, last);
    errno = refuse("fcntl");
    return -1;
}

static int sim_ioctl(int fd, unsigned long operation, ...)
{
    void *last;
    LAST_ARGUMENT(operation, last);
    if (!aco_sim_current())
        return real.ioctl(fd, operation, last);
    errno = refuse("ioctl");
    return -1;
}

/* ---- What the library reads of /proc, and its reports ---- */

static int sim_open(const char *path, int flags, ...)
{
    aco_sim_t *sim = aco_sim_current();
    va_list list;
    unsigned mode;
    int fd;
    va_start(list, flags);
    mode = va_arg(list, unsigned);
    va_end(list);
    if (!sim)
        return real.open(path, flags, mode);
    if (!sim->reads_proc && strncmp(path, "/proc/", 6) == 0) { /* to report, or to know the kernel's limits */
        fd = real.open(path, flags, mode);
        sim->reads_proc = fd + 1;
        return fd;
    }
    errno = refuse("open");
    return -1;
}

static ssize_t sim_read(int fd, void *p, size_t n)
{
    const aco_sim_t *sim = aco_sim_current();
    if (!sim || (sim->reads_proc && fd == sim->reads_proc - 1))
        return real.read(fd, p, n);
    errno = refuse("read");
    return -1;
}

static int sim_close(int fd)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.close(fd);
    if (sim->reads_proc && fd == sim->reads_proc - 1) {
        sim->reads_proc = 0;
        return real.close(fd);
    }
    errno = refuse("close");
    return -1;
}

static ssize_t sim_write(int fd, const void *p, size_t n)
{
    if (!aco_sim_current() || fd == STDERR)
        return real.write(fd, p, n);
    errno = refuse("write");
    return -1;
}

/* ---- The table ---- */

static void install(void)
{
    ACO__ASSERT(aco__system.clock_gettime != sim_clock_gettime); /* else an entry would call itself */
    real = aco__system;
#define PUT(name)                                                                                                      \
    if (real.name)                                                                                                     \
        aco__system.name = sim_##name;
    EACH_SIMULATED(PUT)
    EACH_REFUSED(PUT)
}

void aco__sim_calls_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
