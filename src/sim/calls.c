/* What stands in the system's table (src/system/system.h). Each entry looks whether the calling thread has a run;
 * without one it is what was there before. */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE /* CLOCK_BOOTTIME and others */
#include "sim/world.h"
#include "sim/call_lists.h"
#include "sim/draw.h"
#include "sim/hosts.h"
#include "sim/last_words.h"
#include "sim/node_signals.h"
#include "sim/thread_calls.h"

#include "system/point.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ONE(...) +1
_Static_assert(ACO__SIM_EACH_PASSED(ONE) ACO__SIM_EACH_SIMULATED(ONE) ACO__SIM_EACH_OF_THREADS(ONE)
                       ACO__SIM_EACH_USUAL(ONE) ACO__SIM_EACH_UNUSUAL(ONE)
                           ACO__SIM_EACH_REFUSED(ONE) == sizeof(aco__system_t) / sizeof(void (*)(void)),
               "each entry of the table is in one of the lists");

static const int64_t MONOTONIC_AT_FIRST = 1000 * ACO_SECOND;

#define real aco__sim_real

/* An entry's parameters by their types, and as arguments. */
#define PARAMETERS_1(A) (A a)
#define PARAMETERS_2(A, B) (A a, B b)
#define PARAMETERS_3(A, B, C) (A a, B b, C c)
#define PARAMETERS_4(A, B, C, D) (A a, B b, C c, D d)
#define PARAMETERS_5(A, B, C, D, E) (A a, B b, C c, D d, E e)
#define PARAMETERS_6(A, B, C, D, E, F) (A a, B b, C c, D d, E e, F f)
#define ARGUMENTS_1 a
#define ARGUMENTS_2 a, b
#define ARGUMENTS_3 a, b, c
#define ARGUMENTS_4 a, b, c, d
#define ARGUMENTS_5 a, b, c, d, e
#define ARGUMENTS_6 a, b, c, d, e, f

/* ---- Time ---- */

/* What the clock shows is this more than the time since the run's begin. */
static int64_t zero_of(const aco_sim_t *sim, clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return ACO__SIM_DATE + aco__sim_node_skew(sim->nodes.here);
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return 0;
    default:
        return MONOTONIC_AT_FIRST;
    }
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
    ns = zero_of(sim, clock) + sim->now;
    now->tv_sec = (time_t)(ns / ACO_SECOND);
    now->tv_nsec = (long)(ns % ACO_SECOND);
    if (is_repeatable(sim, clock))
        aco__history_note(&sim->history, ACO__SIM_CLOCK, (uint64_t)clock, (uint64_t)ns);
    return 0;
}

static int sim_nanosleep(const struct timespec *time, struct timespec *rest)
{
    aco_sim_t *sim = aco_sim_current();
    int64_t then;
    if (!sim)
        return real.nanosleep(time, rest);
    then = aco__sim_after(sim, aco__sim_nanoseconds(time));
    if (aco__sim_sleep_until(sim, then) == 0)
        return 0;
    if (rest)
        *rest = (struct timespec){(time_t)((then - sim->now) / ACO_SECOND), (long)((then - sim->now) % ACO_SECOND)};
    return aco__sim_fail_with(EINTR);
}

static int sim_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.clock_nanosleep(clock, flags, time, rest);
    if (!(flags & TIMER_ABSTIME))
        return sim_nanosleep(time, rest) == 0 ? 0 : errno;
    return aco__sim_sleep_until(sim, aco__sim_nanoseconds(time) - zero_of(sim, clock));
}

/* ---- Threads ---- */

#define OF_THREADS(name, parameters, arguments, with_run)                                                              \
    static int sim_##name parameters                                                                                   \
    {                                                                                                                  \
        aco_sim_t *sim = aco_sim_current();                                                                            \
        return sim ? aco__sim_##name with_run : real.name arguments;                                                   \
    }

OF_THREADS(pthread_create, (pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg),
           (thread, attributes, fn, arg), (sim, thread, attributes, fn, arg))
OF_THREADS(pthread_join, (pthread_t thread, void **result), (thread, result), (sim, thread, result))
OF_THREADS(pthread_mutex_lock, (pthread_mutex_t *mutex), (mutex), (sim, mutex))
OF_THREADS(pthread_mutex_trylock, (pthread_mutex_t *mutex), (mutex), (sim, mutex))
OF_THREADS(pthread_mutex_unlock, (pthread_mutex_t *mutex), (mutex), (sim, mutex))
OF_THREADS(pthread_cond_signal, (pthread_cond_t *condition), (condition), (sim, condition))
OF_THREADS(pthread_cond_broadcast, (pthread_cond_t *condition), (condition), (sim, condition))
OF_THREADS(futex_wake, (uint32_t *word, int threads), (word, threads), (sim, word, threads))
OF_THREADS(sched_yield, (void), (), (sim))

static int sim_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    aco_sim_t *sim = aco_sim_current();
    return sim ? aco__sim_cond_wait_until(sim, condition, mutex, INT64_MAX) : real.pthread_cond_wait(condition, mutex);
}

/* Acorn's conditions wait on CLOCK_MONOTONIC (os/condition.h). */
static int sim_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.pthread_cond_timedwait(condition, mutex, until);
    return aco__sim_cond_wait_until(sim, condition, mutex, aco__sim_nanoseconds(until) - MONOTONIC_AT_FIRST);
}

static int sim_futex_wait(uint32_t *word, uint32_t value, int64_t until)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.futex_wait(word, value, until);
    ACO__ASSERT(!sim->is_in_turn); /* only aco_run() waits so */
    return aco__sim_futex_wait_until(sim, word, value, until < 0 ? INT64_MAX : until - MONOTONIC_AT_FIRST);
}

/* ---- Signals ---- */

OF_THREADS(pthread_sigmask, (int how, const sigset_t *signals, sigset_t *before), (how, signals, before),
           (sim, how, signals, before))
OF_THREADS(pthread_kill, (pthread_t thread, int signal), (thread, signal), (sim, thread, signal))
OF_THREADS(kill, (pid_t process, int signal), (process, signal), (sim, process, signal))
OF_THREADS(sigpending, (sigset_t *signals), (signals), (sim, signals))
OF_THREADS(sigwaitinfo, (const sigset_t *signals, void *info), (signals, info), (sim, signals, info))

static int sim_sigtimedwait(const sigset_t *signals, void *info, const struct timespec *time)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim)
        return real.sigtimedwait(signals, info, time);
    return aco__sim_sigwait_until(sim, signals, info,
                                  time ? aco__sim_after(sim, aco__sim_nanoseconds(time)) : INT64_MAX);
}

/* Whether the real process has got the signal, or is about to: then the run is as good as over. */
static int is_real(int signal)
{
    return aco__sim_is_fault(signal) || aco__last_words_handles();
}

static int sim_raise(int signal)
{
    aco_sim_t *sim = aco_sim_current();
    return sim && !is_real(signal) ? aco__sim_raise(sim, signal) : real.raise(signal);
}

/* Acorn sets handlers for itself: of faults, a profile, a trace. Signals of a run have the standard action in any
 * case. */
static int sim_sigaction(int signal, const struct sigaction *action, struct sigaction *before)
{
    const int is_standard = aco_sim_current() && action && !(action->sa_flags & SA_SIGINFO) &&
                            action->sa_handler == SIG_DFL && !is_real(signal);
    return real.sigaction(signal, is_standard ? NULL : action, before);
}

static void sim_point(void)
{
    aco_sim_t *sim = aco_sim_current();
    if (sim)
        aco__sim_point(sim);
}

/* ---- Calls that are not simulated ---- */

/* A thread that calls it again and again does not keep the run from its end. */
static int not_simulated(aco_sim_t *sim, const char *call)
{
    int error = aco__sim_refuse(sim, call);
    aco__sim_point(sim);
    return error;
}

#define REFUSED(parameters, type, failed, name, types) \
    static type sim_##name PARAMETERS_##parameters types \
    { \
        aco_sim_t *sim = aco_sim_current(); \
        if (!sim) \
            return real.name(ARGUMENTS_##parameters); \
        errno = not_simulated(sim, #name); \
        return failed; \
    }
REFUSED(3, int, -1, sched_setaffinity, (pid_t, size_t, const void *))
REFUSED(2, FILE *, NULL, fopen, (const char *, const char *))
REFUSED(1, unsigned, 0, if_nametoindex, (const char *))
REFUSED(2, char *, NULL, if_indextoname, (unsigned, char *))
REFUSED(6, int, ENOSYS, posix_spawnp,
        (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *,
         char *const *))
REFUSED(3, pid_t, -1, waitpid, (pid_t, int *, int))
REFUSED(2, int, -1, pidfd_open, (pid_t, unsigned))
REFUSED(4, int, -1, pidfd_send_signal, (int, int, void *, unsigned))

/* A simulated file system has no links: what is done without this call is enough. */
static int sim_openat2(int folder, const char *path, const struct aco__open_how *how, size_t sz)
{
    if (!aco_sim_current())
        return real.openat2(folder, path, how, sz);
    return aco__sim_fail_with(ENOSYS);
}

/* The last argument of fcntl() and ioctl(), of any type. */
#define LAST_ARGUMENT(operation, last)                                                                                 \
    do {                                                                                                               \
        va_list list;                                                                                                  \
        va_start(list, operation);                                                                                     \
        (last) = va_arg(list, void *);                                                                                 \
        va_end(list);                                                                                                  \
    } while (0)

/* ---- Names of hosts ---- */

OF_THREADS(getaddrinfo, (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found),
           (host, port, hints, found), (sim, host, port, hints, found))
OF_THREADS(getnameinfo,
           (const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *port,
            socklen_t port_size, int flags),
           (address, length, host, host_size, port, port_size, flags),
           (sim, address, length, host, host_size, port, port_size, flags))

static void sim_freeaddrinfo(struct addrinfo *found)
{
    (aco_sim_current() ? aco__sim_freeaddrinfo : real.freeaddrinfo)(found);
}

/* ---- Random numbers ---- */

static ssize_t sim_getrandom(void *p, size_t n, unsigned flags)
{
    aco_sim_t *sim = aco_sim_current();
    unsigned char *bytes = p;
    if (!sim)
        return real.getrandom(p, n, flags);
    for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
        uint64_t drawn = aco__draw(&sim->randoms);
        memcpy(bytes + at, &drawn, n - at < sizeof drawn ? n - at : sizeof drawn);
    }
    return (ssize_t)n;
}

/* ---- Descriptors ---- */

#define NUMBER_OF(name) (offsetof(aco__system_t, name) / sizeof(void (*)(void)))

/* Descriptors depend on what else the process has open. */
static int makes_descriptor(size_t call)
{
    return call == NUMBER_OF(socket) || call == NUMBER_OF(accept4) || call == NUMBER_OF(eventfd) ||
           call == NUMBER_OF(signalfd) || call == NUMBER_OF(epoll_create1) || call == NUMBER_OF(open);
}

/* The call has this result. */
static int64_t noted(aco_sim_t *sim, size_t call, int64_t result, int is_descriptor)
{
    int64_t value = result < 0 ? -(int64_t)errno : result;
    if (result >= 0 && is_descriptor)
        value = (int64_t)sim->opened.descriptors[result].file->number;
    aco__history_note(&sim->history, ACO__SIM_DESCRIPTORS, call, (uint64_t)value);
    return result;
}

/* What is no failure to a caller that does not block is not worth a note. */
static int64_t noted_by_name(aco_sim_t *sim, const char *name, size_t call, int64_t result)
{
    int error = errno;
    result = noted(sim, call, result, makes_descriptor(call));
    if (result < 0 && error != EAGAIN && error != EINPROGRESS && error != EALREADY && call != NUMBER_OF(epoll_ctl))
        aco__sim_note(sim, ACO__NOTED_CALL, 0, error, name);
    errno = error;
    return result;
}

#define NOTED(sim, name, result) noted_by_name(sim, #name, NUMBER_OF(name), result)

/* Before a call for descriptors: another thread may go on, and what is on its way arrives. */
static void let_arrive(aco_sim_t *sim)
{
    aco__sim_point(sim);
    aco__sim_arrive(sim);
}

#define USUAL(parameters, type, name, types) \
    static type sim_##name PARAMETERS_##parameters types \
    { \
        aco_sim_t *sim = aco_sim_current(); \
        if (!sim) \
            return real.name(ARGUMENTS_##parameters); \
        let_arrive(sim); \
        return (type)NOTED(sim, name, aco__sim_##name(sim, ARGUMENTS_##parameters)); \
    }
ACO__SIM_EACH_USUAL(USUAL)

static ssize_t sim_read(int fd, void *p, size_t n)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim || (sim->reads_proc && fd == sim->reads_proc - 1))
        return real.read(fd, p, n);
    let_arrive(sim);
    return (ssize_t)NOTED(sim, read, aco__sim_read(sim, fd, p, n));
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
    let_arrive(sim);
    return (int)NOTED(sim, close, aco__sim_close(sim, fd));
}

static ssize_t sim_write(int fd, const void *p, size_t n)
{
    aco_sim_t *sim = aco_sim_current();
    if (!sim || fd == STDERR_FILENO)
        return real.write(fd, p, n);
    let_arrive(sim);
    return (ssize_t)NOTED(sim, write, aco__sim_write(sim, fd, p, n));
}

static int sim_fcntl(int fd, int operation, ...)
{
    aco_sim_t *sim = aco_sim_current();
    int is_new = operation == F_DUPFD || operation == F_DUPFD_CLOEXEC;
    void *last;
    LAST_ARGUMENT(operation, last);
    if (!sim)
        return real.fcntl(fd, operation, last);
    return (int)noted(sim, NUMBER_OF(fcntl), aco__sim_fcntl(sim, fd, operation, last), is_new);
}

static int sim_ioctl(int fd, unsigned long operation, ...)
{
    aco_sim_t *sim = aco_sim_current();
    void *last;
    LAST_ARGUMENT(operation, last);
    if (!sim)
        return real.ioctl(fd, operation, last);
    return (int)NOTED(sim, ioctl, aco__sim_ioctl(sim, fd, operation, last));
}

/* ---- Files ---- */

/* What the library reads of /proc, and its reports, are real. */
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
    aco__sim_arrive(sim);
    return (int)NOTED(sim, open, aco__sim_open(sim, path, flags, mode));
}

static DIR *sim_opendir(const char *path)
{
    aco_sim_t *sim = aco_sim_current();
    DIR *folder;
    if (!sim)
        return real.opendir(path);
    folder = aco__sim_opendir(sim, path);
    (void)NOTED(sim, opendir, folder ? 0 : -1);
    return folder;
}

static struct dirent *sim_readdir(DIR *folder)
{
    aco_sim_t *sim = aco_sim_current();
    struct dirent *entry;
    if (!sim)
        return real.readdir(folder);
    entry = aco__sim_readdir(sim, folder);
    (void)NOTED(sim, readdir, entry ? (int64_t)entry->d_ino : 0);
    return entry;
}

/* ---- The table ---- */

static void install(void)
{
    ACO__ASSERT(aco__system.clock_gettime != sim_clock_gettime); /* else an entry would call itself */
    real = aco__system;
#define PUT(name)                                                                                                      \
    if (real.name)                                                                                                     \
        aco__system.name = sim_##name;
#define PUT_USUAL(parameters, type, name, types) PUT(name)
    ACO__SIM_EACH_SIMULATED(PUT)
    ACO__SIM_EACH_OF_THREADS(PUT)
    ACO__SIM_EACH_USUAL(PUT_USUAL)
    ACO__SIM_EACH_UNUSUAL(PUT)
    ACO__SIM_EACH_REFUSED(PUT)
    aco__point = sim_point;
}

void aco__sim_calls_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
