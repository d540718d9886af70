/* The layer of hooks on libc, in the library acorn_hook: functions with libc's names. It is above io.
 *
 * In C each hook has another name, ACO__HOOK() gives it libc's for the linker: headers declare some of libc's functions
 * as inline (_FORTIFY_SOURCE), under other names (_FILE_OFFSET_BITS) or with unions as parameters. What a hook calls in
 * libc it calls through aco__libc; acorn's libraries call it through aco__system (src/system). */
#ifndef ACO_LIBC_LIBC_H
#define ACO_LIBC_LIBC_H

#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/invariants.h"
#include "system/system.h"

#include "aco/hook.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __GLIBC_PREREQ(2, 35)
#define ACO__NEWER_LIBC_CALLS(X) X(epoll_pwait2)
#else
#define ACO__NEWER_LIBC_CALLS(X)
#endif
#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
#define ACO__LIBC_CALLS_FOR_PATHS(X)                                                                                   \
    X(fopen) X(fopen64) X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(access) X(lseek) X(lseek64)        \
    X(ftruncate) X(ftruncate64) X(rename) X(link) X(unlink) X(mkfifo) X(mkdir) X(rmdir) X(opendir) X(readdir)          \
    X(readdir64) X(closedir)
#else /* they have other names or forms */
#define ACO__LIBC_CALLS_FOR_PATHS(X)
#endif
/* Those that have a hook only for tasks in a simulation (simulated.c): they do not wait. */
#define ACO__LIBC_CALLS_OF_RUNS(X)                                                                                     \
    X(socket) X(socketpair) X(bind) X(listen) X(getsockopt) X(setsockopt) X(getsockname) X(getpeername) X(shutdown)    \
    X(ioctl) X(pipe) X(pipe2) X(eventfd) X(timerfd_create) X(epoll_create) X(epoll_create1) X(epoll_ctl) X(dup)        \
    X(freeaddrinfo) X(gethostbyname) X(gethostbyname2) X(gethostbyaddr) X(gethostbyname_r) X(gethostbyname2_r)         \
    X(clock_gettime) X(gettimeofday) X(time) X(getrandom) X(getentropy) X(popen)                                       \
    X(pthread_create) X(pthread_join) X(pthread_detach) ACO__LIBC_CALLS_FOR_PATHS(X)
/* What _FORTIFY_SOURCE calls in place of longjmp(). */
extern void __longjmp_chk(struct __jmp_buf_tag *place, int value) __attribute__((noreturn));
/* libc's functions that have hooks, or are called by some. */
#define ACO__LIBC_CALLS(X)                                                                                             \
    X(read) X(write) X(readv) X(writev) X(pread) X(pread64) X(pwrite) X(pwrite64)                                      \
    X(preadv) X(preadv64) X(pwritev) X(pwritev64) X(sendfile) X(sendfile64)                                            \
    X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(send) X(sendto) X(sendmsg) X(sendmmsg)                                \
    X(connect) X(accept) X(accept4)                                                                                    \
    X(poll) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait) ACO__NEWER_LIBC_CALLS(X)                        \
    X(sleep) X(usleep) X(nanosleep) X(clock_nanosleep) X(sched_yield)                                                  \
    X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64) X(fsync) X(fdatasync) X(close) X(dup2) X(dup3)         \
    X(flock) X(fcntl) X(fcntl64) X(lockf) X(lockf64) X(wait) X(waitpid) X(wait4) X(system) X(pclose)                   \
    X(getaddrinfo) X(getnameinfo) X(sem_wait) X(sem_timedwait) X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock)       \
    X(pthread_rwlock_unlock)                                                                                           \
    X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_timedlock) X(pthread_mutex_unlock)                  \
    X(sigaction) X(siglongjmp) X(__longjmp_chk) ACO__LIBC_CALLS_OF_RUNS(X)

typedef struct aco__libc_calls {
#define ACO__LIBC_POINTER(name) __typeof__(&(name)) name;
    ACO__LIBC_CALLS(ACO__LIBC_POINTER)
#undef ACO__LIBC_POINTER
} aco__libc_calls_t;

/* ACO__HOOK(result, name, parameters): the head of a hook. */
#define ACO__HOOK(result, name, parameters)                                                                            \
    result aco__as_##name parameters __asm__(#name) __attribute__((visibility("default"), used));                      \
    result aco__as_##name parameters

extern void __chk_fail(void) __attribute__((noreturn)); /* libc's end of a process that overflows a buffer */

/* libc's functions, or the sanitizer's. Until the library's constructor has looked them up, those of early.c: each
 * entry can be called at any time. */
ACO__HIDDEN_EXTERN aco__libc_calls_t aco__libc_found;
ACO__HIDDEN_EXTERN int aco__libc_is_found; /* 1: the constructor has run */
/* The same calls of a hooked task in a simulation: those of the system's table, from simulated.c. */
ACO__HIDDEN_EXTERN aco__libc_calls_t aco__libc_simulated;
/* 1: the thread is in a run, and has hooked tasks. */
ACO__HIDDEN_EXTERN __thread int aco__hook_simulates __attribute__((tls_model("initial-exec")));
ACO__HIDDEN ACO__COLD int aco__hook_simulates_task(void);
ACO__HIDDEN ACO__COLD int aco__hook_simulates_clock(void);
/* What the calling task's calls go to. */
static inline const aco__libc_calls_t *aco__libc(void)
{
    return aco_unlikely(aco__hook_simulates) && aco__hook_simulates_task() ? &aco__libc_simulated : &aco__libc_found;
}

/* Whether the caller is the library that malloc() is in, if that is neither libc nor the program. It calls with its own
 * locks held, perhaps for a task that waits inside acorn. So it must not wait for the task, nor allocate. */
ACO__HIDDEN int aco__hook_is_allocators(const void *caller);

/* So that a static library brings the objects of all hooks. */
ACO__HIDDEN_EXTERN const char aco__hooks_of_sockets, aco__hooks_of_files, aco__hooks_of_polls, aco__hooks_of_time,
    aco__hooks_of_names, aco__hooks_of_locks, aco__hooks_of_file_locks, aco__hooks_of_processes, aco__hooks_of_batches,
    aco__hooks_of_signals, aco__hooks_of_runs;

#endif
