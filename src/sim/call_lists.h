/* Every entry of the system's table (src/system/system.h), each in one list. So what is new in the table cannot reach
 * the system unseen. Then what stands for an entry in a run. */
#ifndef ACO_CALL_LISTS_H
#define ACO_CALL_LISTS_H

#include "system/system.h"

#include "aco/sim.h"

/* They change nothing that a task sees, and wait for nobody: memory pages, what the process and the machine are, and
 * stacks for handlers. */
#define ACO__SIM_EACH_PASSED(X)                                                                                        \
    X(mmap) X(munmap) X(mprotect) X(madvise) X(mincore) X(process_madvise) X(map_shadow_stack)                         \
    X(gettid) X(getpid) X(sysconf) X(getrlimit) X(uname) X(sched_getaffinity) X(prctl)                                 \
    X(sigaltstack)
/* Simulated: time, names of hosts, random numbers. */
#define ACO__SIM_EACH_SIMULATED(X)                                                                                     \
    X(clock_gettime) X(nanosleep) X(clock_nanosleep) X(getaddrinfo) X(freeaddrinfo) X(getnameinfo) X(getrandom)
/* Simulated: threads, signals. */
#define ACO__SIM_EACH_OF_THREADS(X)                                                                                    \
    X(pthread_create) X(pthread_join) X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_unlock)           \
    X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_signal) X(pthread_cond_broadcast)                    \
    X(futex_wait) X(futex_wake) X(sched_yield) X(pthread_sigmask) X(pthread_kill) X(kill) X(raise)                     \
    X(sigpending) X(sigtimedwait) X(sigwaitinfo)
/* Simulated: descriptors and files, by aco__sim_NAME(). How many parameters a call has, what it returns, its name, the
 * parameters' types. */
#define ACO__SIM_EACH_USUAL(X) \
    X(3, ssize_t, readv, (int, const struct iovec *, int)) \
    X(3, ssize_t, writev, (int, const struct iovec *, int)) \
    X(2, int, fstat, (int, struct stat *)) \
    X(3, int, poll, (struct pollfd *, nfds_t, int)) \
    X(2, int, pipe2, (int *, int)) \
    X(6, ssize_t, splice, (int, int64_t *, int, int64_t *, size_t, unsigned)) \
    X(2, int, eventfd, (unsigned, int)) \
    X(3, int, signalfd, (int, const sigset_t *, int)) \
    X(1, int, epoll_create1, (int)) \
    X(4, int, epoll_ctl, (int, int, int, struct epoll_event *)) \
    X(4, int, epoll_wait, (int, struct epoll_event *, int, int)) \
    X(4, int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *)) \
    X(3, int, socket, (int, int, int)) \
    X(4, int, socketpair, (int, int, int, int *)) \
    X(3, int, bind, (int, const struct sockaddr *, socklen_t)) \
    X(2, int, listen, (int, int)) \
    X(3, int, connect, (int, const struct sockaddr *, socklen_t)) \
    X(4, int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
    X(5, int, getsockopt, (int, int, int, void *, socklen_t *)) \
    X(5, int, setsockopt, (int, int, int, const void *, socklen_t)) \
    X(3, int, getsockname, (int, struct sockaddr *, socklen_t *)) \
    X(3, int, getpeername, (int, struct sockaddr *, socklen_t *)) \
    X(2, int, shutdown, (int, int)) \
    X(4, ssize_t, recv, (int, void *, size_t, int)) \
    X(6, ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
    X(3, ssize_t, recvmsg, (int, struct msghdr *, int)) \
    X(4, ssize_t, send, (int, const void *, size_t, int)) \
    X(6, ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
    X(3, ssize_t, sendmsg, (int, const struct msghdr *, int)) \
    X(4, ssize_t, pread, (int, void *, size_t, int64_t)) \
    X(4, ssize_t, pwrite, (int, const void *, size_t, int64_t)) \
    X(5, ssize_t, preadv2, (int, const struct iovec *, int, int64_t, int)) \
    X(3, int64_t, lseek, (int, int64_t, int)) \
    X(1, int, fsync, (int)) \
    X(2, int, ftruncate, (int, int64_t)) \
    X(4, ssize_t, sendfile, (int, int, int64_t *, size_t)) \
    X(2, int, stat, (const char *, struct stat *)) \
    X(2, int, rename, (const char *, const char *)) \
    X(2, int, link, (const char *, const char *)) \
    X(1, int, unlink, (const char *)) \
    X(2, int, mkfifo, (const char *, mode_t)) \
    X(2, int, mkdir, (const char *, mode_t)) \
    X(1, int, rmdir, (const char *)) \
    X(1, int, closedir, (DIR *))
/* Likewise, but calls.c has an entry for each. open() also opens files of /proc; sigaction() sets handlers of the real
 * process. */
#define ACO__SIM_EACH_UNUSUAL(X)                                                                                       \
    X(read) X(write) X(close) X(fcntl) X(ioctl) X(open) X(openat2) X(opendir) X(readdir) X(sigaction)
/* Not simulated yet. */
#define ACO__SIM_EACH_REFUSED(X)                                                                                       \
    X(sched_setaffinity) X(fopen) X(if_nametoindex) X(if_indextoname)                                                  \
    X(posix_spawnp) X(waitpid) X(pidfd_open) X(pidfd_send_signal)

#define ACO__SIM_WITH_RUN(...) (aco_sim_t *, __VA_ARGS__)
#define ACO__SIM_DECLARE(parameters, type, name, types) ACO__HIDDEN type aco__sim_##name ACO__SIM_WITH_RUN types;
ACO__SIM_EACH_USUAL(ACO__SIM_DECLARE)
ACO__HIDDEN ssize_t aco__sim_read(aco_sim_t *sim, int fd, void *p, size_t n);
ACO__HIDDEN ssize_t aco__sim_write(aco_sim_t *sim, int fd, const void *p, size_t n);
ACO__HIDDEN int aco__sim_close(aco_sim_t *sim, int fd);
ACO__HIDDEN int aco__sim_fcntl(aco_sim_t *sim, int fd, int operation, void *last);
ACO__HIDDEN int aco__sim_ioctl(aco_sim_t *sim, int fd, unsigned long operation, void *last);
ACO__HIDDEN int aco__sim_open(aco_sim_t *sim, const char *path, int flags, unsigned mode);
ACO__HIDDEN DIR *aco__sim_opendir(aco_sim_t *sim, const char *path);
ACO__HIDDEN struct dirent *aco__sim_readdir(aco_sim_t *sim, DIR *folder);

#endif
