/* libc's blocking calls park the task: for libraries that know nothing of tasks (libpq, libcurl, hiredis, a MariaDB
 * client, sqlite). In the library acorn_hook, beside acorn_io; for Linux with glibc.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static void *query(void *arg)
 *   {
 *       if (aco_hook_begin() != 0) // from here on this task waits where libc would block the thread
 *           return NULL;
 *       PGconn *connection = PQconnectdb(arg);
 *       PGresult *result = PQexec(connection, "SELECT pg_sleep(0.1)");
 *       ...
 *       aco_hook_end();
 *       return NULL;
 *   }
 *
 * How. The library defines functions with libc's names, which the dynamic linker finds before libc's, also for shared
 * libraries that are linked or loaded later. A call of a task that is not hooked, and of any other code, goes straight
 * on to libc (dlsym(RTLD_NEXT)); that costs a thread-local load and a branch. In a hooked task a call that would block
 * is tried without blocking, and then the task waits by acorn_io, and the thread's other tasks run.
 *
 * Calls that are hooked:
 *   - bytes: read, write, readv, writev, recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg, sendmmsg,
 *     sendfile; connect, accept, accept4
 *   - waiting: poll, ppoll, select, pselect, epoll_wait, epoll_pwait, epoll_pwait2
 *   - time: sleep, usleep, nanosleep, clock_nanosleep; sched_yield
 *   - files, by io_uring or the pool (aco/file.h): read, write and the like of files and block devices, pread, pwrite,
 *     preadv, pwritev, fsync, fdatasync; open, openat and creat
 *   - locks of files, tried again after 1 ms, 2 ms, and so on to 100 ms: flock, lockf, F_SETLKW and F_OFD_SETLKW
 *   - names, by the pool, at most half of its threads at once (aco/names.h): getaddrinfo, getnameinfo
 *   - children: waitpid and wait4 of one child; wait, and the two for others, tried again as above; by the pool:
 *     system, pclose
 *   - close, dup2, dup3: they wake tasks that wait for the number
 *   - locks that another task may hold (below): pthread_mutex_lock, …_trylock and …_timedlock,
 *     pthread_rwlock_rdlock and …_wrlock, sem_wait, sem_timedwait
 *   - handlers of signals (below), for all code of the process: sigaction, signal, bsd_signal, ssignal, sysv_signal,
 *     siginterrupt
 * and their names with 64, and those of _FORTIFY_SOURCE. Anything else blocks the thread, as without this library; the
 * watchdog (aco_watchdog()) names tasks that do. docs/hook.md lists what there is, and why it is not hooked.
 *
 * Descriptors stay as the client made them: their flags are never changed but for the time of one connect(), accept()
 * or sendfile() on a blocking descriptor, in which no other task runs. Calls on a non-blocking descriptor, with
 * MSG_DONTWAIT or with a time limit of 0 do not wait. SO_RCVTIMEO and SO_SNDTIMEO count, and a write to a blocking
 * descriptor ends when all is written, as the system's do. Descriptors belong to one thread's tasks at a time
 * (aco/io.h).
 *
 * Turns. Of the calls that may wait, one in 64 that do not have to lets the thread's other tasks run, at its begin. So
 * does each sched_yield(); a loop around it must read what it waits for as volatile or atomic, since glibc tells
 * compilers that sched_yield() changes nothing. Calls that cannot wait never give turns: on a non-blocking descriptor
 * (of sockets, pipes and the like), with MSG_DONTWAIT, a time limit of 0, LOCK_NB or WNOHANG. Nor do those for a mutex
 * or read-write lock that is free. Acorn's own libraries call libc itself, or what a library before acorn_hook defines
 * under its names, not the hooks.
 *
 * Errors are the system's, and errno is unchanged by success. In a scope that has ended (aco/scope.h) a call that would
 * wait fails with ETIMEDOUT or ECANCELED; what was moved before is returned. getaddrinfo() gives EAI_SYSTEM then.
 * sleep() returns the seconds that are left. A descriptor that is closed while the task waits for it: EBADF. Without
 * memory: ENOMEM. fcntl() notices no deadlock (EDEADLK). Arguments that the system refuses are refused, also pointers
 * to nowhere (EFAULT) where libc does not read them itself. docs/hook.md lists the differences.
 *
 * Signals. A handler that runs on the thread while a hooked call waits ends the call with EINTR where it would end
 * libc's (signal(7)): poll(), select(), epoll_wait(), sleeps, and calls on a socket with a time limit always; other
 * calls if the handler was installed without SA_RESTART. It ends the calls of all tasks of the thread that wait then.
 * What was moved before is returned. Locks, names, files, system() and pclose() go on. The mask of ppoll(), pselect()
 * and epoll_pwait() is applied every 10 ms. A handler of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP ends no call.
 *
 * Commands. When the caller's scope ends, a command of system() that runs goes on without the caller, and a thread of
 * the pool waits for the child; one that has not begun is not run. pclose() closes its stream in any case: if it fails
 * because of a scope, a thread of the pool closes the stream soon, and waits for the child.
 *
 * Where a call must block the thread: a caller that cannot wait (in cleanup, in a generator with its own stack on a
 * share stack, …: aco/scheduler.h), a child of fork() or vfork(), which may use descriptors and exec as usual, and
 * pclose() without memory. aco_hook_stats() counts them.
 *
 * Locks. A library that holds a lock of its own during a call that waits can have that lock wanted by another task of
 * the thread. If that is a pthread mutex or read-write lock, it works: the other task waits until it is free, and looks
 * every 0.05 to 10 ms. So it waits for any read-write lock and semaphore; for a mutex of another thread if a task holds
 * it there while others run, else the thread blocks. Recursive and error-checking mutexes, and read-write locks that
 * pthread_rwlock_wrlock() locked, belong to the task that locked them, not to its thread, if they were locked while the
 * thread had hooked tasks: only that task locks the mutex again, or gets EDEADLK. A task that is not hooked
 * waits for mutexes and read-write locks in the same way while its thread has hooked tasks: it may share a std::mutex
 * with them, and a call that locks may then let others run. Code outside of tasks blocks the thread. Any other lock (a
 * condition, a spin lock, a mutex of C11 or of a statically linked library) is a deadlock of the thread. For
 * this reason nothing is hooked that holds libc's own locks.
 *
 * Allocators. What the shared library calls that malloc() is in goes straight to libc, as it holds locks of its own.
 *
 * Signal handlers that interrupt a hooked task are the task, for the hooks: they must not make calls that would wait. A
 * task may be hooked on a share stack.
 *
 * Threads. Hooks are for the tasks of any thread; each task begins them for itself, or aco_hook_begin_all() for all. In
 * C++ aco::hooks (aco/hook.hpp) begins them for a block. */
#ifndef ACO_HOOK_H
#define ACO_HOOK_H

#include "io.h"

ACO__BEGIN_C

/* From now on the calls of the calling task are hooked, those in inner coroutines that it resumes too, until
 * aco_hook_end() or the end of the task. Calls nest. 0, or -1 and errno: EPERM (the caller is not a task, or an inner
 * coroutine of one; or the process is a child of fork()), ENOTSUP (libc's functions, or a sanitizer's, are found before
 * these: the message tells what to do), ENOMEM. */
ACO_API int aco_hook_begin(void);

/* Ends what the last aco_hook_begin() began; errno is unchanged. 0, or -1 and errno EPERM (the calling task is not
 * hooked). */
ACO_API int aco_hook_end(void);

/* Whether the calling task is hooked. */
ACO_API int aco_hook_active(void);

/* From now on all tasks of the process are hooked, those that run and those to come, on all threads: of a set
 * (aco/threads.h), of a server (aco/http.h). A task is from its first call that has a hook on, unless that is made by
 * an inner coroutine; it is as if the task had called aco_hook_begin() then. There is no end to it. Any caller and
 * thread. 0, or -1 and errno: ENOTSUP (as above), EAGAIN (no key for values of tasks is left). */
ACO_API int aco_hook_begin_all(void);

/* What the hooks of the calling thread have done. */
typedef struct aco_hook_stats_s {
    uint64_t waits;   /* calls that had to wait, and let other tasks run; for each part of a transfer */
    uint64_t blocked; /* calls of hooked tasks that blocked the thread, because the caller cannot wait */
} aco_hook_stats_t;
/* 0, or -1 and errno EINVAL (NULL). */
ACO_API int aco_hook_stats(aco_hook_stats_t *stats);

ACO__END_C

#endif
