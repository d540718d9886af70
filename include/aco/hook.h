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
 * How. The library defines functions with libc's names. The dynamic linker finds them before libc's, also for shared
 * libraries that are linked or loaded later. In a hooked task a call that would block is tried without blocking; then
 * the task waits by acorn_io, and the thread's other tasks run. A call of a task that is not hooked, or of any other
 * code, goes straight on to libc (dlsym(RTLD_NEXT)); that costs a thread-local load and a branch.
 *
 * Calls that are hooked:
 *   - bytes: read, write, readv, writev, recv, recvfrom, recvmsg, recvmmsg, send, sendto, sendmsg, sendmmsg, sendfile;
 *     connect, accept, accept4
 *   - waiting: poll, ppoll, select, pselect, epoll_wait, epoll_pwait, epoll_pwait2
 *   - time: sleep, usleep, nanosleep, clock_nanosleep; sched_yield
 *   - files, by io_uring or the pool (aco/file.h): read, write and the like of files and block devices, pread, pwrite,
 *     preadv, pwritev, fsync, fdatasync; open, openat and creat
 *   - locks of files, tried again after 1 ms, 2 ms, and so on to 100 ms: flock, lockf, F_SETLKW and F_OFD_SETLKW
 *   - names, by the pool, at most half of its threads at once (aco/names.h): getaddrinfo, getnameinfo
 *   - children: waitpid and wait4 for one child; wait, waitpid and wait4 for others, tried again like locks of files;
 *     by the pool: system, pclose
 *   - close, dup2, dup3: they wake tasks that wait for the number
 *   - locks that another task may hold (below): pthread_mutex_lock, …_trylock and …_timedlock, pthread_rwlock_rdlock
 *     and …_wrlock, sem_wait, sem_timedwait
 *   - handlers of signals (below), for all code of the process: sigaction, signal, bsd_signal, ssignal, sysv_signal,
 *     sigset, siginterrupt; longjmp, _longjmp, siglongjmp, which may leave one
 * and the same calls under their names with 64 and the names of _FORTIFY_SOURCE. Anything else blocks the thread, as it
 * does without this library; the watchdog (aco_watchdog()) names the tasks that block it. docs/hook.md lists such
 * calls, and why they are not hooked.
 *
 * Descriptors stay as the client made them. Their flags change only during one connect(), accept() or sendfile() on a
 * blocking descriptor, and no other task runs meanwhile. Calls on a non-blocking descriptor, with MSG_DONTWAIT or with
 * a time limit of 0 do not wait. As in the system, SO_RCVTIMEO and SO_SNDTIMEO count, and a write to a blocking
 * descriptor ends when all is written. Descriptors belong to one thread's tasks at a time (aco/io.h).
 *
 * Turns. Of the calls that may wait but do not have to, one in 64 lets the thread's other tasks run when it begins.
 * Each sched_yield() lets them run; a loop around it must read what it waits for as volatile or atomic, since glibc
 * tells compilers that sched_yield() changes nothing. Calls that cannot wait never give turns: on a non-blocking
 * descriptor (of sockets, pipes and the like), with MSG_DONTWAIT, a time limit of 0, LOCK_NB or WNOHANG. Nor do calls
 * for a mutex or read-write lock that is free. Acorn's own libraries call libc itself, or what a library before
 * acorn_hook defines under its names, not the hooks.
 *
 * Errors are the system's, and success leaves errno unchanged. In a scope that has ended (aco/scope.h) a call that
 * would wait fails with ETIMEDOUT or ECANCELED. What was moved before is returned; getaddrinfo() returns EAI_SYSTEM;
 * sleep() returns the seconds that are left. If a descriptor is closed while the task waits for it: EBADF. Without
 * memory: ENOMEM. fcntl() notices no deadlock (EDEADLK). Arguments that the system refuses are refused, also pointers
 * to nowhere (EFAULT) where libc does not read them itself. docs/hook.md lists the differences.
 *
 * Signals. A handler that runs on the thread while a hooked call waits ends the call with EINTR where it would end
 * libc's (signal(7)). It always ends poll(), select(), epoll_wait(), sleeps, and calls on a socket with a time limit;
 * it ends other calls if it was installed without SA_RESTART. It ends such calls of all tasks of the thread that wait
 * at that time. What was moved before is returned. Locks, names, files, system() and pclose() go on. The mask of
 * ppoll(), pselect() and epoll_pwait() is applied every 10 ms. A handler of SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGTRAP
 * ends no call.
 *
 * Inside a handler. A handler of a signal may have interrupted anything. So until it returns, or an exception or
 * longjmp() leaves it, its calls do what libc does: a call that must wait blocks the thread, no call lets other tasks
 * run, and close() wakes no task. For the hooks any longjmp() leaves all handlers, unless the jmp_buf is a local
 * variable of the innermost one or of what that calls.
 *
 * Commands. When the caller's scope ends, a running command of system() goes on without the caller, and a thread of the
 * pool waits for the child; a command that has not begun is not run. pclose() closes its stream in any case: if it
 * fails because of a scope, a thread of the pool closes the stream soon, and waits for the child.
 *
 * Blocking. Some calls must block the thread: those of a caller that cannot wait (in cleanup, in a generator with its
 * own stack on a share stack, …: aco/scheduler.h), those in a child of fork() or vfork(), which may use descriptors and
 * exec as usual, and pclose() without memory. aco_hook_stats() counts them. Calls inside a handler of a signal block
 * it, too, and are not counted.
 *
 * Locks. A library may hold a lock of its own during a call that waits; then another task of the thread may want that
 * lock. With a pthread mutex or read-write lock this works: the other task waits until the lock is free, and looks
 * every 0.05 to 10 ms. It waits in this way for any read-write lock and semaphore. For a mutex of another thread it
 * does so if a task holds the mutex there while others run; else the thread blocks. A recursive or error-checking mutex
 * that was locked while its thread had hooked tasks belongs to the task that locked it, not to the thread: only that
 * task locks it again, or gets EDEADLK. A read-write lock that pthread_rwlock_wrlock() locked then belongs to its task
 * too. A task that is not hooked waits for mutexes and read-write locks in the same way while its thread has hooked
 * tasks. So it may share a std::mutex with them, and a call that locks may let others run. Code outside of tasks blocks
 * the thread. Any other lock (a condition, a spin lock, a mutex of C11 or of a statically linked library) is a deadlock
 * of the thread. For this reason nothing is hooked that holds libc's own locks.
 *
 * Allocators. The shared library that defines malloc() holds locks of its own. So its calls go straight to libc.
 *
 * Share stacks. A task on a share stack may be hooked.
 *
 * Threads. Tasks of any thread may be hooked. Each task begins hooks for itself, or aco_hook_begin_all() begins them
 * for all. In C++ aco::hooks (aco/hook.hpp) begins them for a block. */
#ifndef ACO_HOOK_H
#define ACO_HOOK_H

#include "io.h"

ACO__BEGIN_C

/* Hooks the calls of the calling task, also those in inner coroutines that it resumes, until aco_hook_end() or the end
 * of the task. Calls nest. Returns 0; on error -1 with errno EPERM (the caller is no task, or an inner coroutine of
 * one; or the process is a child of fork()), ENOTSUP (libc's functions, or a sanitizer's, are found before these: the
 * message tells what to do), EAGAIN (no key for values of tasks is left), ENOMEM. */
ACO_API int aco_hook_begin(void);

/* Ends what the last aco_hook_begin() began. Returns 0, with errno unchanged; on error -1 with errno EPERM (the calling
 * task is not hooked). */
ACO_API int aco_hook_end(void);

/* Returns whether the calling task is hooked; inside a handler of a signal, 0. */
ACO_API int aco_hook_active(void);

/* Hooks all tasks of the process, those that run and those to come, on all threads: of a set (aco/threads.h), of a
 * server (aco/http.h). A task becomes hooked by the first call with a hook that it makes itself, not in an inner
 * coroutine, as if it called aco_hook_begin() then. Nothing undoes this call. Any caller and thread. Returns 0; on
 * error -1 with errno ENOTSUP, EAGAIN (as above). */
ACO_API int aco_hook_begin_all(void);

/* What the hooks of the calling thread have done. */
typedef struct aco_hook_stats_s {
    uint64_t waits;   /* calls that had to wait, and let other tasks run; each part of a transfer counts */
    uint64_t blocked; /* calls of hooked tasks that blocked the thread, because the caller cannot wait */
} aco_hook_stats_t;
/* Stores what the hooks of the calling thread have done. Returns 0; on error -1 with errno EINVAL (NULL). */
ACO_API int aco_hook_stats(aco_hook_stats_t *stats);

ACO__END_C

#endif
