/* The system as one table. The library makes a system call that libc offers under a name that hooks may replace
 * (src/hook) only by this table: a hook lets other tasks run, and the library does not expect that in the middle of its
 * work. Each entry has the contract of libc's function with its name; offsets have 64 bits everywhere. libc fills the
 * table in; acorn_hook, which stands before libc, puts libc's own functions there when it is loaded. */
#ifndef ACO_SYSTEM_H
#define ACO_SYSTEM_H

#include "os/platform.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __linux__
struct epoll_event;
#endif

struct sigaction; /* for strict C, in which signal.h has none */

typedef struct aco__system {
    /* bytes */
    ssize_t (*read)(int fd, void *p, size_t n);
    ssize_t (*write)(int fd, const void *p, size_t n);
    ssize_t (*readv)(int fd, const struct iovec *parts, int count);
    ssize_t (*writev)(int fd, const struct iovec *parts, int count);
    ssize_t (*pread)(int fd, void *p, size_t n, int64_t offset);
    ssize_t (*pwrite)(int fd, const void *p, size_t n, int64_t offset);
    /* sockets */
    ssize_t (*recv)(int fd, void *p, size_t n, int flags);
    ssize_t (*recvfrom)(int fd, void *p, size_t n, int flags, struct sockaddr *from, socklen_t *length);
    ssize_t (*recvmsg)(int fd, struct msghdr *message, int flags);
    ssize_t (*send)(int fd, const void *p, size_t n, int flags);
    ssize_t (*sendto)(int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length);
    ssize_t (*sendmsg)(int fd, const struct msghdr *message, int flags);
    int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
    /* descriptors */
    int (*open)(const char *path, int flags, ...);
    int (*close)(int fd);
    int (*fcntl)(int fd, int operation, ...);
    int (*fsync)(int fd);
    int (*poll)(struct pollfd *fds, nfds_t n, int milliseconds);
#ifdef __linux__
    int (*accept4)(int fd, struct sockaddr *address, socklen_t *length, int flags);
    ssize_t (*sendfile)(int to, int from, int64_t *offset, size_t n);
    int (*epoll_wait)(int epoll, struct epoll_event *events, int room, int milliseconds);
#else
    int (*accept)(int fd, struct sockaddr *address, socklen_t *length);
#endif
    /* time, threads, processes */
    int (*nanosleep)(const struct timespec *time, struct timespec *rest);
    int (*sched_yield)(void);
    int (*pthread_mutex_lock)(pthread_mutex_t *mutex);
    int (*pthread_mutex_trylock)(pthread_mutex_t *mutex);
    int (*pthread_mutex_unlock)(pthread_mutex_t *mutex);
    pid_t (*waitpid)(pid_t process, int *status, int options);
#ifndef __APPLE__
    int (*clock_nanosleep)(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest);
#endif
    int (*sigaction)(int signal, const struct sigaction *action, struct sigaction *before);
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
