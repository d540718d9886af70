/* Every entry of the system's table (src/system/system.h) by name, each in one list. So what is new in the table cannot
 * reach the system unseen. */
#ifndef ACO_CALL_LISTS_H
#define ACO_CALL_LISTS_H

/* They change nothing that a task sees, and wait for nobody: memory pages, what the process and the machine are,
 * handlers of fatal signals, and dying. */
#define ACO__SIM_EACH_PASSED(X)                                                                                        \
    X(mmap) X(munmap) X(mprotect) X(madvise) X(mincore) X(process_madvise) X(map_shadow_stack)                         \
    X(gettid) X(getpid) X(sysconf) X(getrlimit) X(uname) X(sched_getaffinity) X(prctl)                                 \
    X(sigaction) X(sigaltstack) X(pthread_sigmask) X(sigpending) X(raise)
/* Simulated: time, names of hosts, random numbers. */
#define ACO__SIM_EACH_SIMULATED(X)                                                                                     \
    X(clock_gettime) X(nanosleep) X(clock_nanosleep) X(getaddrinfo) X(freeaddrinfo) X(getnameinfo) X(getrandom)
/* Simulated: threads. */
#define ACO__SIM_EACH_OF_THREADS(X)                                                                                    \
    X(pthread_create) X(pthread_join) X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_unlock)           \
    X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_signal) X(pthread_cond_broadcast)                    \
    X(futex_wait) X(futex_wake) X(sched_yield) X(pthread_kill) X(sigtimedwait) X(sigwaitinfo)
/* Simulated: descriptors. */
#define ACO__SIM_EACH_OF_DESCRIPTORS(X)                                                                                \
    X(read) X(write) X(readv) X(writev) X(close) X(fcntl) X(ioctl) X(fstat) X(poll) X(eventfd) X(pipe2) X(splice)      \
    X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(epoll_pwait2)                                                        \
    X(socket) X(socketpair) X(bind) X(listen) X(connect) X(accept4) X(getsockopt) X(setsockopt)                        \
    X(getsockname) X(getpeername) X(shutdown) X(recv) X(recvfrom) X(recvmsg) X(send) X(sendto) X(sendmsg)
/* Simulated: files. open() also opens files of /proc. */
#define ACO__SIM_EACH_OF_FILES(X)                                                                                      \
    X(open) X(openat2) X(pread) X(pwrite) X(preadv2) X(lseek) X(fsync) X(ftruncate) X(sendfile) X(stat) X(rename)      \
    X(link) X(unlink) X(mkdir) X(rmdir) X(opendir) X(readdir) X(closedir)
/* Not simulated yet. */
#define ACO__SIM_EACH_REFUSED(X)                                                                                       \
    X(sched_setaffinity) X(signalfd) X(fopen) X(if_nametoindex) X(if_indextoname)                                      \
    X(posix_spawnp) X(waitpid) X(kill) X(pidfd_open) X(pidfd_send_signal)

#endif
