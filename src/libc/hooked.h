/* The layer of hooks on libc, in the library acorn_hook: functions with libc's names. It is above io.
 *
 * In C each hook has another name, ACO__HOOK() gives it libc's for the linker: headers declare some of libc's functions
 * as inline (_FORTIFY_SOURCE), under other names (_FILE_OFFSET_BITS) or with unions as parameters. What a hook calls in
 * libc it calls through aco__libc; acorn's libraries call it through aco__system (src/system). */
#ifndef ACO_HOOK_INTERNAL_H
#define ACO_HOOK_INTERNAL_H

#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/invariants.h"
#include "system/system.h"

#include "aco/hook.h"

#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __GLIBC_PREREQ(2, 35)
#define ACO__NEWER_LIBC_CALLS(X) X(epoll_pwait2)
#else
#define ACO__NEWER_LIBC_CALLS(X)
#endif
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
    X(sigaction)

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

/* ---- look_up.c ---- */
/* libc's function behind the hooks; the same, or a sanitizer's that must see the calls. Both take the loader's lock. */
ACO__HIDDEN void *aco__libc_plain(const char *name);
ACO__HIDDEN void *aco__libc_seen(const char *name);
/* The first definition in the dynamic linker's order, which calls by this name reach; whether it is a hook. */
ACO__HIDDEN void *aco__libc_first(const char *name);
ACO__HIDDEN int aco__libc_is_hooked(const char *name);
/* The function for an early call. */
ACO__HIDDEN void *aco__libc_look_up(const char *name);
/* Whether a sanitizer's functions are linked with the hooks, or loaded with them: known without a look-up. */
ACO__HIDDEN int aco__libc_is_intercepted(void);

ACO__HIDDEN void aco__hook_find_sanitizer(void);
/* Whether the program has a sanitizer's functions; whether the hooks are found before them and libc's. */
ACO__HIDDEN int aco__hook_is_sanitized(void);
ACO__HIDDEN int aco__hook_is_first(void);
/* Whether the caller is the sanitizer's library. gcc's opens files while it reports, with locks held. */
ACO__HIDDEN int aco__hook_is_sanitizers(const void *caller);

/* ---- early.c and libc.c ---- */
/* libc's functions, or the sanitizer's. Until the library's constructor has looked them up, those of early.c: each
 * entry can be called at any time. */
ACO__HIDDEN_EXTERN aco__libc_calls_t aco__libc_found;
ACO__HIDDEN_EXTERN int aco__libc_is_found; /* 1: the constructor has run */
static inline const aco__libc_calls_t *aco__libc(void)
{
    return &aco__libc_found;
}

/* Whether the caller is the library that malloc() is in, if that is neither libc nor the program. It calls with its own
 * locks held, perhaps for a task that waits inside acorn. So it must not wait for the task, nor allocate. */
ACO__HIDDEN int aco__hook_is_allocators(const void *caller);

/* ---- task.c: which tasks are hooked, and how they wait ---- */

/* Which handlers of signals end a call that waits: all; those without SA_RESTART; none. */
enum { HOOK_NEVER_RESTARTS, HOOK_RESTARTS, HOOK_IGNORES_SIGNALS, HOOK_CLASSES };
/* A call, and how many such handlers had run on the thread when it began to wait. */
typedef struct aco__hook_call {
    int restarts;           /* HOOK_NEVER_RESTARTS, … */
    unsigned handlers;
} aco__hook_call_t;

/* A task that is or was hooked. */
typedef struct aco__hook_task {
    unsigned depth;         /* of its aco_hook_begin() */
    aco_t *task;
    aco__hook_call_t call;  /* that waits */
    struct aco__hook_task *next, **link; /* in the list of those that wait; link is NULL: it does not */
    size_t sz;
} aco__hook_task_t;

typedef struct aco__hook_thread {
    unsigned tasks;         /* of this thread that are hooked */
    unsigned calls;         /* for fairness */
    int probe;              /* 1: a hook is to be reached; 2: it has been */
    pid_t process, thread;  /* in which tasks were hooked */
    aco_hook_stats_t stats;
    volatile unsigned handlers[HOOK_CLASSES]; /* of signals that have run, by the calls that they end */
    unsigned told;          /* of handlers: how many the waiting tasks have been told of */
    aco__hook_task_t *volatile waiting;
    struct aco__poller_s *volatile poller;
    int (*poll)(struct aco__poller_s *poller, int64_t deadline); /* the poller's own */
} aco__hook_thread_t;
ACO__HIDDEN_EXTERN __thread aco__hook_thread_t aco__hook_self __attribute__((tls_model("initial-exec")));

ACO__HIDDEN_EXTERN unsigned aco__hook_everyone; /* 1: all tasks are hooked. Atomic */
/* Whether the thread may have hooked tasks. */
static inline int aco__hook_may_be_on(void)
{
    return aco_unlikely((aco__hook_self.tasks | __atomic_load_n(&aco__hook_everyone, __ATOMIC_RELAXED)) != 0);
}

ACO__HIDDEN ACO__COLD int aco__hook_is_on(const void *caller);
/* Whether the calling task is hooked: in a hook's own function, as its caller counts. */
static inline __attribute__((always_inline)) int aco__hooked(void)
{
    return aco__hook_may_be_on() && aco__hook_is_on(__builtin_return_address(0));
}
/* Whether the caller is a task of a thread with hooked tasks, itself hooked or not. Where all are hooked, this may be
 * its first hooked call. */
ACO__HIDDEN ACO__COLD int aco__hook_is_beside(const void *caller);
static inline __attribute__((always_inline)) int aco__beside_hooked(void)
{
    return aco__hook_may_be_on() && aco__hook_is_beside(__builtin_return_address(0));
}
/* In the process: on_thread() is called on each thread before it has hooked tasks. 0, or -1 and errno. */
ACO__HIDDEN int aco__hook_begin(void (*on_thread)(void), const char *call);
ACO__HIDDEN int aco__hook_task_begin(const char *call);
ACO__HIDDEN int aco__hook_task_end(const char *call);
/* Whether this is still the process in which tasks were hooked: no child of fork() or vfork(). */
ACO__HIDDEN int aco__hook_is_own_process(void);
/* A call that may wait begins: from time to time it lets other tasks run before it looks at anything, so that calls
 * which never have to wait leave others their turns. No call waits for a non-blocking descriptor. `fd` less than 0: the
 * call may wait whatever its descriptors are. Keeps errno. */
ACO__SWITCHES ACO__HIDDEN void aco__hook_spend(int fd, const char *location);

/* What a call does next. HOOK_BLOCKS: libc is to do it, and block. HOOK_IS_DONE: nothing. */
enum { HOOK_GIVES_UP, HOOK_TRIES_AGAIN, HOOK_BLOCKS, HOOK_IS_DONE };
typedef struct aco__hook_wait {
    int64_t deadline;
    int is_known;        /* the deadline, and what follows */
    aco__hook_call_t call;
    unsigned vain;       /* attempts that failed although the descriptor was ready */
    int64_t nap_ns;
} aco__hook_wait_t;
static inline aco__hook_call_t aco__hook_call(int restarts)
{
    aco__hook_call_t call = {restarts, aco__hook_self.handlers[restarts]};
    return call;
}
static inline int aco__hook_is_interrupted(const aco__hook_call_t *call)
{
    return aco__hook_self.handlers[call->restarts] != call->handlers;
}
/* poll() that waits only for the task: what that returns; HOOK_CANNOT_WAIT with errno unchanged: libc is to do it, and
 * block. */
enum { HOOK_CANNOT_WAIT = -2 };
ACO__SWITCHES
ACO__HIDDEN int aco__hook_poll(struct pollfd *fds, nfds_t n, int64_t deadline, const aco__hook_call_t *call,
                               const char *location);
/* The same after EAGAIN of a call that must not wait: HOOK_GIVES_UP with EAGAIN if the descriptor is non-blocking or
 * its time limit, the socket option `limit` (SO_RCVTIMEO or SO_SNDTIMEO), is over. */
ACO__SWITCHES
ACO__HIDDEN int aco__hook_again(aco__hook_wait_t *wait, int fd, short events, int limit, const char *location);
/* The first part of that: 0 with the time limit in `wait`, or -1 and errno. */
ACO__HIDDEN int aco__hook_begins_wait(aco__hook_wait_t *wait, int fd, int limit);
/* What poll() says now; keeps errno. And whether the stream was reset, not only ended. A call would take the error
 * away; a queue of errors (MSG_ERRQUEUE) does not count. */
ACO__HIDDEN short aco__hook_look(int fd, short events);
ACO__HIDDEN int aco__hook_is_reset(int fd);
/* The time that is left; 0 when it is over. */
ACO__HIDDEN struct timespec aco__hook_time_until(int64_t deadline);
/* Sleeps 1 ms, longer at each call, within wait->deadline. After that HOOK_GIVES_UP with EAGAIN. */
ACO__SWITCHES ACO__HIDDEN int aco__hook_nap(aco__hook_wait_t *wait, const char *location);
/* The task sleeps: 0; -1 and errno; HOOK_CANNOT_WAIT. */
ACO__SWITCHES ACO__HIDDEN int aco__hook_sleep(int64_t deadline, const aco__hook_call_t *call, const char *location);
/* Has a thread of the pool call fn(arg), as aco__io_offload_as(): if that fails, release(arg) is called. HOOK_IS_DONE:
 * it has returned. HOOK_BLOCKS: errno is unchanged. HOOK_GIVES_UP: with errno; ACO__MUST_RUN: the pool calls it. */
ACO__SWITCHES
ACO__HIDDEN int aco__hook_offload(int kind, void *(*fn)(void *arg), void *arg, void **result,
                                  void (*release)(void *arg, void *result), const char *location);

/* errno is unchanged by success. */
static inline ssize_t aco__hook_result(ssize_t result, int error)
{
    if (result >= 0)
        errno = error;
    return result;
}

/* What is left of a vector of memory. */
typedef struct aco__parts {
    const struct iovec *parts;
    size_t count;
    size_t done; /* bytes of the first part */
    struct iovec first; /* the rest of it */
} aco__parts_t;
static inline void aco__parts_skip(aco__parts_t *rest, size_t n)
{
    for (n += rest->done; rest->count && n >= rest->parts->iov_len; rest->parts++, rest->count--)
        n -= rest->parts->iov_len;
    ACO__ASSERT(rest->count || !n); /* no call moves more than it was given */
    rest->done = rest->count ? n : 0;
}
/* The parts to go on with: how many. */
static inline size_t aco__parts_next(aco__parts_t *rest, struct iovec **parts)
{
    *parts = (struct iovec *)(uintptr_t)rest->parts;
    if (!rest->done)
        return rest->count;
    rest->first.iov_base = (char *)rest->parts->iov_base + rest->done;
    rest->first.iov_len = rest->parts->iov_len - rest->done;
    *parts = &rest->first;
    return 1;
}
static inline size_t aco__parts_size(const struct iovec *parts, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].iov_len;
    return n;
}

/* ---- arguments.c: what callers pass ---- */
/* Whether the memory is there, to be read: a system call for each page of it. */
ACO__HIDDEN int aco__hook_can_read(const void *p, size_t n);
/* The bytes of a text, with its end; 0: not all of it can be read. */
ACO__HIDDEN size_t aco__hook_text_size(const char *text);
/* Whether the vector is one that the system takes, and not empty. */
ACO__HIDDEN int aco__is_vector(const struct iovec *parts, int count);
/* Whether the time is one that the system takes: it can be read, is not negative, and its fraction is less than 1 s. */
ACO__HIDDEN int aco__hook_is_time(const struct timespec *time);
/* A time that is not negative, for aco_after(). */
ACO__HIDDEN int64_t aco__hook_ns(int64_t seconds, int64_t ns);

/* ---- files.c ---- */
/* readv() and writev() of a file or block device. */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_move_file(int fd, const struct iovec *parts, size_t count, int is_write);

/* ---- locks.c ---- */
/* The calling thread will have hooked tasks. */
ACO__HIDDEN void aco__hook_locks_begin(void);

/* ---- handlers.c ---- */
/* From now on handlers of signals that run on the calling thread end its waits. */
ACO__HIDDEN void aco__hook_signals_begin(void);

/* ---- streams.c: descriptors that are no sockets ---- */
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_read_other(int fd, const struct iovec *parts, size_t count);
ACO__SWITCHES ACO__HIDDEN ssize_t aco__hook_write_other(int fd, const struct iovec *parts, size_t count);

/* So that a static library brings the objects of all hooks. */
ACO__HIDDEN_EXTERN const char aco__hooks_of_sockets, aco__hooks_of_files, aco__hooks_of_polls, aco__hooks_of_time,
    aco__hooks_of_names, aco__hooks_of_locks, aco__hooks_of_file_locks, aco__hooks_of_processes, aco__hooks_of_batches,
    aco__hooks_of_signals;

#endif
