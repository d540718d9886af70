/* The system as one table: what leaves the process, or asks it for time, threads or memory pages. The library calls
 * libc's functions of these kinds by the table only: tools/layers.py has the list, and the exceptions. So there is one
 * place in which something else can stand for the system, and no call goes to a hook (src/libc). A hook lets other
 * tasks run, and the library does not expect that in the middle of its work.
 *
 * libc fills the table in; acorn_hook, which stands before libc, puts libc's own functions there when it is loaded. A
 * test may replace an entry while no other thread uses it.
 *
 * Each entry has the contract of libc's function with its name: -1 or NULL with errno, but for the calls of threads,
 * which return the error number. Any thread may call any entry at any time. Offsets, `struct stat` and `struct dirent`
 * have 64 bits everywhere: who uses these structures defines _FILE_OFFSET_BITS as 64. Each group says what its callers
 * rely on besides. */
#ifndef ACO_SYSTEM_H
#define ACO_SYSTEM_H

#include "os/platform.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

struct addrinfo;
struct epoll_event;
struct kevent;
struct rlimit;
struct sigaction; /* for strict C, in which signal.h has none */
struct stat;
struct utsname;

/* As `struct open_how` of linux/openat2.h, which old headers lack. */
struct aco__open_how {
    uint64_t flags, mode, resolve;
};

typedef struct aco__system {
    /* Memory pages. Never EINTR. Async-signal-safe: a handler of faults may discard pages. mmap() is for memory of no
     * file, and has no arguments for one. */
    void *(*mmap)(void *at, size_t sz, int protection, int flags);
    int (*munmap)(void *p, size_t sz);
    int (*mprotect)(void *p, size_t sz, int protection);
    int (*madvise)(void *p, size_t sz, int advice);
    int (*mincore)(void *p, size_t sz, void *resident);
#ifdef __linux__
    ssize_t (*process_madvise)(int process, const struct iovec *parts, size_t count, int advice, unsigned flags);
    void *(*map_shadow_stack)(void *at, size_t sz, unsigned flags); /* MAP_FAILED as mmap() */
#endif

    /* Time. clock_gettime() is async-signal-safe, and does not fail for the clocks that the library reads. The sleeps
     * end early for a signal. */
    int (*clock_gettime)(clockid_t clock, struct timespec *now);
    int (*nanosleep)(const struct timespec *time, struct timespec *rest);
#ifndef __APPLE__
    int (*clock_nanosleep)(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest);
#endif

    /* Threads. Error numbers, never EINTR. No cancellation: callers wait for a condition with it disabled, or on
     * threads that nobody cancels. A wait for a condition may end early. The calls for attributes, and those that make
     * or free a lock or a condition, only write to memory: they stay by name. */
    int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg);
    int (*pthread_join)(pthread_t thread, void **result);
    int (*pthread_mutex_lock)(pthread_mutex_t *mutex);
    int (*pthread_mutex_trylock)(pthread_mutex_t *mutex);
    int (*pthread_mutex_unlock)(pthread_mutex_t *mutex);
    int (*pthread_cond_wait)(pthread_cond_t *condition, pthread_mutex_t *mutex);
    int (*pthread_cond_timedwait)(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
#ifdef __APPLE__
    int (*pthread_cond_timedwait_relative_np)(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                              const struct timespec *time);
#endif
    int (*pthread_cond_signal)(pthread_cond_t *condition);
    int (*pthread_cond_broadcast)(pthread_cond_t *condition);
    int (*sched_yield)(void);
#ifdef __linux__
    int (*sched_getaffinity)(pid_t thread, size_t sz, void *processors);
    int (*sched_setaffinity)(pid_t thread, size_t sz, const void *processors);
    /* libc may have no function for these, nor for process_madvise(), map_shadow_stack(), epoll_pwait2() and the two
     * for pidfds. All of them are async-signal-safe. On a system that lacks one of those five it fails with ENOSYS.
     *
     * A futex is for threads of this process. A wait lasts while *word is `value`, at most until CLOCK_MONOTONIC shows
     * `until` nanoseconds, which is never if that is negative. It may have EINTR, EAGAIN and ETIMEDOUT. */
    int (*futex_wait)(uint32_t *word, uint32_t value, int64_t until);
    int (*futex_wake)(uint32_t *word, int threads); /* at most so many of those that wait */
    pid_t (*gettid)(void);
#endif

    /* Descriptors. EINTR and EAGAIN where libc's may have them: callers try again, or wait for the descriptor. After
     * close() the number is free, whatever it returns. read(), write(), close(), fcntl() and poll() are
     * async-signal-safe. */
    ssize_t (*read)(int fd, void *p, size_t n);
    ssize_t (*write)(int fd, const void *p, size_t n);
    ssize_t (*readv)(int fd, const struct iovec *parts, int count);
    ssize_t (*writev)(int fd, const struct iovec *parts, int count);
    int (*close)(int fd);
    int (*fcntl)(int fd, int operation, ...);
    int (*ioctl)(int fd, unsigned long operation, ...);
    int (*poll)(struct pollfd *fds, nfds_t n, int milliseconds);
#ifdef __linux__
    int (*pipe2)(int fds[2], int flags);
    ssize_t (*splice)(int from, int64_t *from_offset, int to, int64_t *to_offset, size_t n, unsigned flags);
    int (*epoll_create1)(int flags);
    int (*epoll_ctl)(int epoll, int operation, int fd, struct epoll_event *event);
    int (*epoll_wait)(int epoll, struct epoll_event *events, int room, int milliseconds);
    int (*epoll_pwait2)(int epoll, struct epoll_event *events, int room, const struct timespec *limit); /* no mask */
    int (*eventfd)(unsigned value, int flags);
    int (*signalfd)(int fd, const sigset_t *signals, int flags);
#else
    int (*kqueue)(void);
    int (*kevent)(int queue, const struct kevent *changes, int n, struct kevent *events, int room,
                  const struct timespec *limit);
#endif

    /* Sockets. EINTR and EAGAIN as above; writers pass MSG_NOSIGNAL where there is one. */
    int (*socket)(int family, int type, int protocol);
    int (*socketpair)(int family, int type, int protocol, int fds[2]);
    int (*bind)(int fd, const struct sockaddr *address, socklen_t length);
    int (*listen)(int fd, int backlog);
    int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
#ifdef __linux__
    int (*accept4)(int fd, struct sockaddr *address, socklen_t *length, int flags);
    ssize_t (*sendfile)(int to, int from, int64_t *offset, size_t n);
#else
    int (*accept)(int fd, struct sockaddr *address, socklen_t *length);
#ifdef __APPLE__
    int (*sendfile)(int from, int to, off_t offset, off_t *n, void *headers, int flags);
#else
    int (*sendfile)(int from, int to, off_t offset, size_t n, void *headers, off_t *sent, int flags);
#endif
#endif
    int (*getsockopt)(int fd, int level, int option, void *value, socklen_t *length);
    int (*setsockopt)(int fd, int level, int option, const void *value, socklen_t length);
    int (*getsockname)(int fd, struct sockaddr *address, socklen_t *length);
    int (*getpeername)(int fd, struct sockaddr *address, socklen_t *length);
    int (*shutdown)(int fd, int how);
    ssize_t (*recv)(int fd, void *p, size_t n, int flags);
    ssize_t (*recvfrom)(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length);
    ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
    ssize_t (*send)(int fd, const void *p, size_t n, int flags);
    ssize_t (*sendto)(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);

    /* Files. EINTR where libc's may have it; they block the thread. open() and pwrite() are async-signal-safe. */
    int (*open)(const char *path, int flags, ...);
#ifdef __linux__
    int (*openat2)(int folder, const char *path, const struct aco__open_how *how, size_t sz); /* ENOSYS: before 5.6 */
#endif
    FILE *(*fopen)(const char *path, const char *mode); /* the stream is libc's */
    ssize_t (*pread)(int fd, void *p, size_t n, int64_t offset);
    ssize_t (*pwrite)(int fd, const void *p, size_t n, int64_t offset);
#ifdef __linux__
    ssize_t (*preadv2)(int fd, const struct iovec *parts, int count, int64_t offset, int flags); /* or NULL */
#endif
    int64_t (*lseek)(int fd, int64_t offset, int from);
    int (*fsync)(int fd);
    int (*ftruncate)(int fd, int64_t sz);
    int (*stat)(const char *path, struct stat *status);
    int (*fstat)(int fd, struct stat *status);
    int (*rename)(const char *from, const char *to);
    int (*link)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkfifo)(const char *path, mode_t mode);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rmdir)(const char *path);
    DIR *(*opendir)(const char *path);
    struct dirent *(*readdir)(DIR *folder); /* NULL: the end, with errno unchanged, or an error */
    int (*closedir)(DIR *folder);

    /* Names of hosts: results and flags of libc's, EAI_… with errno for EAI_SYSTEM. They block the thread. acorn_io
     * fills these in when it is loaded: a static program that looks up no name links no resolver. */
    int (*getaddrinfo)(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);
    void (*freeaddrinfo)(struct addrinfo *found);
    int (*getnameinfo)(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_size, char *port,
                       socklen_t port_size, int flags);
    unsigned (*if_nametoindex)(const char *name);
    char *(*if_indextoname)(unsigned index, char *name);

    /* Processes, and what the system tells of itself. waitpid() may have EINTR. posix_spawnp() returns an error
     * number. */
    int (*posix_spawnp)(pid_t *process, const char *program, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]);
    pid_t (*waitpid)(pid_t process, int *status, int options);
    int (*kill)(pid_t process, int signal);
#ifdef __linux__
    int (*pidfd_open)(pid_t process, unsigned flags);
    int (*pidfd_send_signal)(int process, int signal, void *information, unsigned flags);
#endif
    pid_t (*getpid)(void);
    long (*sysconf)(int name);
    int (*getrlimit)(int resource, struct rlimit *limit);
#ifdef __linux__
    int (*uname)(struct utsname *names);
    int (*prctl)(int operation, ...);
#endif
    ssize_t (*getrandom)(void *p, size_t n, unsigned flags); /* async-signal-safe */

    /* Signals. All but the waits are async-signal-safe. pthread_sigmask() and pthread_kill() return error numbers; the
     * waits may have EINTR. With acorn_hook, sigaction() of a fault is its hook (src/libc/handlers.c). */
    int (*sigaction)(int signal, const struct sigaction *action, struct sigaction *before);
    int (*sigaltstack)(const void *stack, void *before); /* stack_t, which strict C lacks, like siginfo_t */
    int (*pthread_sigmask)(int how, const sigset_t *signals, sigset_t *before);
    int (*pthread_kill)(pthread_t thread, int signal);
    int (*raise)(int signal);
    int (*sigpending)(sigset_t *signals);
#ifndef __APPLE__
    int (*sigtimedwait)(const sigset_t *signals, void *info, const struct timespec *time);
    int (*sigwaitinfo)(const sigset_t *signals, void *info);
#endif
} aco__system_t;

#ifndef ACO_CONFIG_LIBACO_ONLY
ACO_API extern aco__system_t aco__system;
#endif

/* From aco__hooks_hold() to aco__hooks_release() hooks do what libc does, on the calling thread: while a foreign
 * library works on what its tasks share. The two nest. */
ACO_API void aco__hooks_hold(void);
ACO_API void aco__hooks_release(void);
ACO_API int aco__hooks_are_held(void);

#endif
