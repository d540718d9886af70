/* libc's functions, for the table in system.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* accept4(), pread64(), … */
#endif
#include "system/system.h"
#include "system/point.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#else
#include <sys/event.h>
#endif

#ifdef __GLIBC__ /* where off_t may have 32 bits */
#define ACO__SYSTEM_64(name) name##64
#else
#define ACO__SYSTEM_64(name) name
#endif
/* Where libc declares other types that are passed alike: glibc has a union of pointers for an address, an enumeration
 * for a limit. `entry` is the table's name for it. */
#define ACO__SYSTEM_AS(entry, name) (__typeof__(((aco__system_t *)NULL)->entry))(void (*)(void))name

static void *map_no_file(void *at, size_t sz, int protection, int flags)
{
    return mmap(at, sz, protection, flags, -1, 0);
}

#ifdef __linux__ /* what libc may have no function for */
#ifdef SYS_futex
typedef long futex_number_t; /* of the kernel's time, whatever libc's is */
#else /* a 32-bit system whose time is 64-bit from the start */
#define SYS_futex SYS_futex_time64
typedef int64_t futex_number_t;
#endif
/* A number that the headers do not know is -1. The kernel is not asked for it: not all answer that by ENOSYS. */
#define ASK(number, ...) ((number) < 0 ? (errno = ENOSYS, -1L) : syscall(number, __VA_ARGS__))
#ifndef SYS_process_madvise
#define SYS_process_madvise -1
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 -1
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open -1
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal -1
#endif
#ifndef SYS_openat2
#define SYS_openat2 -1
#endif

static int call_futex_wait(uint32_t *word, uint32_t value, int64_t until)
{
    enum { NS_PER_SECOND = 1000000000 };
    futex_number_t time[] = {(futex_number_t)(until / NS_PER_SECOND), (futex_number_t)(until % NS_PER_SECOND)};
    if (time[0] != until / NS_PER_SECOND)
        time[0] = INT32_MAX;
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until < 0 ? NULL : time, NULL,
                        FUTEX_BITSET_MATCH_ANY); /* a time on CLOCK_MONOTONIC */
}

static int call_futex_wake(uint32_t *word, int threads)
{
    return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static pid_t call_gettid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

static ssize_t call_process_madvise(int process, const struct iovec *parts, size_t count, int advice, unsigned flags)
{
    return ASK(SYS_process_madvise, process, parts, count, advice, flags);
}

static void *call_map_shadow_stack(void *at, size_t sz, unsigned flags)
{
#ifdef __x86_64__
    enum { MAP_SHADOW_STACK = 453 }; /* asm/unistd_64.h of Linux 6.6 */
#else
    enum { MAP_SHADOW_STACK = -1 };
#endif
    return (void *)ASK(MAP_SHADOW_STACK, at, sz, flags);
}

static int call_epoll_pwait2(int epoll, struct epoll_event *events, int room, const struct timespec *limit)
{
    const int64_t time[] = {limit->tv_sec, limit->tv_nsec}; /* the kernel's form, on all systems */
    return (int)ASK(SYS_epoll_pwait2, epoll, events, room, time, NULL, 0);
}

static int call_openat2(int folder, const char *path, const struct aco__open_how *how, size_t sz)
{
    return (int)ASK(SYS_openat2, folder, path, how, sz);
}

static int call_pidfd_open(pid_t process, unsigned flags)
{
    return (int)ASK(SYS_pidfd_open, process, flags);
}

static int call_pidfd_send_signal(int process, int signal, void *information, unsigned flags)
{
    return (int)ASK(SYS_pidfd_send_signal, process, signal, information, flags);
}
#endif

static ssize_t call_getrandom(void *p, size_t n, unsigned flags)
{
#ifdef __linux__
    return syscall(SYS_getrandom, p, n, flags);
#else
    (void)flags;
    arc4random_buf(p, n);
    return (ssize_t)n;
#endif
}

#ifdef ACO_CONFIG_LIBACO_ONLY
static const /* so that compilers see what is called */
#endif
    aco__system_t aco__system = {
        .mmap = map_no_file,
        .munmap = munmap,
        .mprotect = mprotect,
        .madvise = madvise,
        .mincore = ACO__SYSTEM_AS(mincore, mincore),
#ifdef __linux__
        .process_madvise = call_process_madvise,
        .map_shadow_stack = call_map_shadow_stack,
#endif

        .clock_gettime = clock_gettime,
        .nanosleep = nanosleep,
#ifndef __APPLE__
        .clock_nanosleep = clock_nanosleep,
#endif

        .pthread_create = pthread_create,
        .pthread_join = pthread_join,
        .pthread_mutex_lock = pthread_mutex_lock,
        .pthread_mutex_trylock = pthread_mutex_trylock,
        .pthread_mutex_unlock = pthread_mutex_unlock,
        .pthread_cond_wait = pthread_cond_wait,
        .pthread_cond_timedwait = pthread_cond_timedwait,
#ifdef __APPLE__
        .pthread_cond_timedwait_relative_np = pthread_cond_timedwait_relative_np,
#endif
        .pthread_cond_signal = pthread_cond_signal,
        .pthread_cond_broadcast = pthread_cond_broadcast,
        .sched_yield = sched_yield,
#ifdef __linux__
        .sched_getaffinity = ACO__SYSTEM_AS(sched_getaffinity, sched_getaffinity),
        .sched_setaffinity = ACO__SYSTEM_AS(sched_setaffinity, sched_setaffinity),
        .futex_wait = call_futex_wait,
        .futex_wake = call_futex_wake,
        .gettid = call_gettid,
#endif

        .read = read,
        .write = write,
        .readv = readv,
        .writev = writev,
        .close = close,
        .fcntl = fcntl,
        .ioctl = ACO__SYSTEM_AS(ioctl, ioctl),
        .poll = poll,
#ifdef __linux__
        .pipe2 = pipe2,
        .splice = splice,
        .epoll_create1 = epoll_create1,
        .epoll_ctl = epoll_ctl,
        .epoll_wait = epoll_wait,
        .epoll_pwait2 = call_epoll_pwait2,
        .eventfd = eventfd,
        .signalfd = signalfd,
#else
    .kqueue = kqueue,
    .kevent = ACO__SYSTEM_AS(kevent, kevent),
#endif

        .socket = socket,
        .socketpair = socketpair,
        .bind = ACO__SYSTEM_AS(bind, bind),
        .listen = listen,
        .connect = ACO__SYSTEM_AS(connect, connect),
#ifdef __linux__
        .accept4 = ACO__SYSTEM_AS(accept4, accept4),
        .sendfile = ACO__SYSTEM_64(sendfile),
#else
    .accept = ACO__SYSTEM_AS(accept, accept),
    .sendfile = ACO__SYSTEM_AS(sendfile, sendfile),
#endif
        .getsockopt = getsockopt,
        .setsockopt = setsockopt,
        .getsockname = ACO__SYSTEM_AS(getsockname, getsockname),
        .getpeername = ACO__SYSTEM_AS(getpeername, getpeername),
        .shutdown = shutdown,
        .recv = recv,
        .recvfrom = ACO__SYSTEM_AS(recvfrom, recvfrom),
        .recvmsg = recvmsg,
        .send = send,
        .sendto = ACO__SYSTEM_AS(sendto, sendto),
        .sendmsg = sendmsg,

        .open = ACO__SYSTEM_64(open),
#ifdef __linux__
        .openat2 = call_openat2,
#endif
        .fopen = ACO__SYSTEM_64(fopen),
        .pread = ACO__SYSTEM_64(pread),
        .pwrite = ACO__SYSTEM_64(pwrite),
#if defined(RWF_NOWAIT) && defined(__GLIBC__) /* not in older libc */
        .preadv2 = preadv64v2,
#elif defined(RWF_NOWAIT)
    .preadv2 = preadv2,
#endif
        .lseek = ACO__SYSTEM_AS(lseek, ACO__SYSTEM_64(lseek)),
        .fsync = fsync,
        .ftruncate = ACO__SYSTEM_64(ftruncate),
        .stat = ACO__SYSTEM_AS(stat, ACO__SYSTEM_64(stat)),
        .fstat = ACO__SYSTEM_AS(fstat, ACO__SYSTEM_64(fstat)),
        .rename = rename,
        .link = link,
        .unlink = unlink,
        .mkfifo = mkfifo,
        .mkdir = mkdir,
        .rmdir = rmdir,
        .opendir = opendir,
        .readdir = ACO__SYSTEM_AS(readdir, ACO__SYSTEM_64(readdir)),
        .closedir = closedir,

        .posix_spawnp = posix_spawnp,
        .waitpid = waitpid,
        .kill = kill,
#ifdef __linux__
        .pidfd_open = call_pidfd_open,
        .pidfd_send_signal = call_pidfd_send_signal,
#endif
        .getpid = getpid,
        .sysconf = sysconf,
        .getrlimit = ACO__SYSTEM_AS(getrlimit, getrlimit),
#ifdef __linux__
        .uname = uname,
        .prctl = prctl,
#endif
        .getrandom = call_getrandom,

        .sigaction = sigaction,
        .sigaltstack = ACO__SYSTEM_AS(sigaltstack, sigaltstack),
        .pthread_sigmask = pthread_sigmask,
        .pthread_kill = pthread_kill,
        .raise = raise,
        .sigpending = sigpending,
#ifndef __APPLE__
        .sigtimedwait = ACO__SYSTEM_AS(sigtimedwait, sigtimedwait),
        .sigwaitinfo = ACO__SYSTEM_AS(sigwaitinfo, sigwaitinfo),
#endif
};

#ifndef ACO_CONFIG_LIBACO_ONLY
#ifdef __linux__
aco__point_fn_t aco__point;
#endif

#ifdef __ELF__
__attribute__((tls_model("initial-exec"))) /* a handler of a signal may post: the first use must not allocate */
#endif
static __thread unsigned holds;

void aco__hooks_hold(void)
{
    holds++;
}

void aco__hooks_release(void)
{
    holds--;
}

int aco__hooks_are_held(void)
{
    return holds != 0;
}
#endif
