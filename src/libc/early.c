/* What stands in the table of libc's functions until libc.c has looked them up. Such a call may come from a constructor
 * that runs before the library's, from a thread that one has started, or from an allocator that dlsym() itself calls.
 * An allocator calls with its locks held. A look-up would then allocate (glibc before 2.34) or wait for the loader's
 * lock, whose holder may wait for the allocator's. So what allocators call goes by other names of glibc, which the
 * dynamic linker fills in; the rest is looked up at each call, until the table has it. */
#include "libc/early.h"
#include "libc/libc.h"
#include "libc/look_up.h"

#include <sys/syscall.h>
#include <threads.h>

typedef void (*function_t)(void);
typedef void *pointer_t __attribute__((may_alias));
#define ACO__FOUND_AT(name) offsetof(aco__libc_calls_t, name)

/* glibc's other names. Weak: where one is missing, the function is looked up. */
#define ACO__OTHER_NAME(result, name, parameters) extern result name parameters __attribute__((weak))
ACO__OTHER_NAME(ssize_t, __read, (int fd, void *p, size_t n));
ACO__OTHER_NAME(ssize_t, __write, (int fd, const void *p, size_t n));
ACO__OTHER_NAME(int, __open, (const char *path, int flags, ...));
ACO__OTHER_NAME(int, __close, (int fd));
ACO__OTHER_NAME(int, __fcntl, (int fd, int command, ...));
ACO__OTHER_NAME(int, __poll, (struct pollfd *fds, nfds_t n, int ms));
ACO__OTHER_NAME(int, __nanosleep, (const struct timespec *time, struct timespec *rest));
ACO__OTHER_NAME(int, __sched_yield, (void));
#pragma weak mtx_lock
#pragma weak mtx_trylock
#pragma weak mtx_unlock
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc before 2.30 does not declare it
ACO__OTHER_NAME(int, sem_clockwait, (sem_t *semaphore, clockid_t clock, const struct timespec *until));

/* ---- Functions that other names can replace ---- */

/* Only AT_FDCWD: the hooks of open() call openat(). */
static int plain_openat(int folder, const char *path, int flags, ...)
{
    va_list list;
    mode_t mode;
    va_start(list, flags);
    mode = va_arg(list, mode_t); /* the hooks always pass one */
    va_end(list);
    (void)folder;
    return __open(path, flags, mode);
}

/* In glibc a mtx_t is a mutex, and only the errors differ. Robust mutexes with dead holders, and counts that overflow,
 * do not come this early. */
static mtx_t *as_mtx(pthread_mutex_t *mutex)
{
    return (mtx_t *)(void *)mutex;
}

static int plain_lock(pthread_mutex_t *mutex)
{
    return mtx_lock(as_mtx(mutex)) == thrd_success ? 0 : EDEADLK;
}

static int plain_trylock(pthread_mutex_t *mutex)
{
    return mtx_trylock(as_mtx(mutex)) == thrd_success ? 0 : EBUSY;
}

static int plain_unlock(pthread_mutex_t *mutex)
{
    return mtx_unlock(as_mtx(mutex)) == thrd_success ? 0 : EPERM;
}

static int plain_sem_wait(sem_t *semaphore)
{
    static const struct timespec never = {INT_MAX, 0};
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, &never);
}

/* An allocator may look at the clock, that of a sanitizer in the middle of a look-up, too: never looked up. */
static int early_clock_gettime(clockid_t clock, struct timespec *now)
{
#ifdef SYS_clock_gettime64
    int64_t time[2];
    int result = (int)syscall(SYS_clock_gettime64, clock, time);
    if (result == 0) {
        now->tv_sec = (time_t)time[0];
        now->tv_nsec = (long)time[1];
    }
    return result;
#else
    return (int)syscall(SYS_clock_gettime, clock, now);
#endif
}

/* ---- The functions of the table ---- */

static int is_filled_in;   /* the table. Atomic, as what follows */
static unsigned under_way; /* look-ups */

void aco__libc_end_look_ups(void)
{
    __atomic_store_n(&is_filled_in, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&under_way, __ATOMIC_SEQ_CST))
        (void)aco__libc_found.sched_yield();
}

/* Under a sanitizer its function counts, and that is looked up; unless the table has it by now, at this offset. */
static function_t function_for(const char *name, function_t other, size_t offset)
{
    const pointer_t *entry = (const pointer_t *)(const void *)((const char *)&aco__libc_found + offset);
    function_t function;
    void *symbol;
    if (other && !aco__libc_is_intercepted())
        return other;
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    symbol = __atomic_load_n(&is_filled_in, __ATOMIC_SEQ_CST) ? __atomic_load_n(entry, __ATOMIC_RELAXED)
                                                              : aco__libc_look_up(name);
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST);
    memcpy(&function, &symbol, sizeof symbol);
    return function;
}

#define ACO__EARLY_AS(result, name, parameters, arguments, before, other)                                              \
    static result early_##name parameters                                                                              \
    {                                                                                                                  \
        before return ((__typeof__(&(name)))function_for(#name, (function_t)(other), ACO__FOUND_AT(name)))arguments;   \
    }
#define ACO__EARLY(result, name, parameters, arguments) ACO__EARLY_AS(result, name, parameters, arguments, , NULL)
/* With one more argument behind `last`. */
#define ACO__EARLY_VARIADIC(name, parameters, arguments, last, type, other)                                            \
    ACO__EARLY_AS(int, name, parameters, arguments, va_list list; type more; va_start(list, last);                     \
                  more = va_arg(list, type); va_end(list);, other)

ACO__EARLY_AS(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), , __read)
ACO__EARLY_AS(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), , __write)
ACO__EARLY(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))
ACO__EARLY(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
ACO__EARLY(ssize_t, pread, (int fd, void *p, size_t n, off_t offset), (fd, p, n, offset))
ACO__EARLY(ssize_t, pread64, (int fd, void *p, size_t n, off64_t offset), (fd, p, n, offset))
ACO__EARLY(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t offset), (fd, p, n, offset))
ACO__EARLY(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t offset), (fd, p, n, offset))
ACO__EARLY(ssize_t, preadv, (int fd, const struct iovec *parts, int n, off_t offset), (fd, parts, n, offset))
ACO__EARLY(ssize_t, preadv64, (int fd, const struct iovec *parts, int n, off64_t offset), (fd, parts, n, offset))
ACO__EARLY(ssize_t, pwritev, (int fd, const struct iovec *parts, int n, off_t offset), (fd, parts, n, offset))
ACO__EARLY(ssize_t, pwritev64, (int fd, const struct iovec *parts, int n, off64_t offset), (fd, parts, n, offset))
ACO__EARLY(ssize_t, sendfile, (int to, int from, off_t *offset, size_t n), (to, from, offset, n))
ACO__EARLY(ssize_t, sendfile64, (int to, int from, off64_t *offset, size_t n), (to, from, offset, n))

ACO__EARLY(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
ACO__EARLY(ssize_t, recvfrom, (int fd, void *p, size_t n, int flags, __SOCKADDR_ARG from, socklen_t *length),
           (fd, p, n, flags, from, length))
ACO__EARLY(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
ACO__EARLY(int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *limit),
           (fd, messages, n, flags, limit))
ACO__EARLY(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
ACO__EARLY(ssize_t, sendto, (int fd, const void *p, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t length),
           (fd, p, n, flags, to, length))
ACO__EARLY(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
ACO__EARLY(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags), (fd, messages, n, flags))
ACO__EARLY(int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t length), (fd, to, length))
ACO__EARLY(int, accept, (int fd, __SOCKADDR_ARG from, socklen_t *length), (fd, from, length))
ACO__EARLY(int, accept4, (int fd, __SOCKADDR_ARG from, socklen_t *length, int flags), (fd, from, length, flags))

ACO__EARLY_AS(int, poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms), , __poll)
ACO__EARLY(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask),
           (fds, n, limit, mask))
ACO__EARLY(int, select, (int n, fd_set *readable, fd_set *writable, fd_set *urgent, struct timeval *limit),
           (n, readable, writable, urgent, limit))
ACO__EARLY(int, pselect, (int n, fd_set *readable, fd_set *writable, fd_set *urgent, const struct timespec *limit,
                          const sigset_t *mask), (n, readable, writable, urgent, limit, mask))
ACO__EARLY(int, epoll_wait, (int fd, struct epoll_event *events, int n, int ms), (fd, events, n, ms))
ACO__EARLY(int, epoll_pwait, (int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask),
           (fd, events, n, ms, mask))
#if __GLIBC_PREREQ(2, 35)
ACO__EARLY(int, epoll_pwait2, (int fd, struct epoll_event *events, int n, const struct timespec *limit,
                               const sigset_t *mask), (fd, events, n, limit, mask))
#endif

ACO__EARLY(unsigned, sleep, (unsigned seconds), (seconds))
ACO__EARLY(int, usleep, (useconds_t us), (us))
ACO__EARLY_AS(int, nanosleep, (const struct timespec *time, struct timespec *rest), (time, rest), , __nanosleep)
ACO__EARLY(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),
           (clock, flags, time, rest))
ACO__EARLY_AS(int, sched_yield, (void), (), , __sched_yield)

ACO__EARLY_VARIADIC(open, (const char *path, int flags, ...), (path, flags, more), flags, mode_t, __open)
ACO__EARLY_VARIADIC(open64, (const char *path, int flags, ...), (path, flags, more), flags, mode_t, NULL)
ACO__EARLY_VARIADIC(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, more), flags, mode_t,
                    folder == AT_FDCWD && __open ? plain_openat : NULL)
ACO__EARLY_VARIADIC(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, more), flags,
                    mode_t, NULL)
ACO__EARLY(int, creat, (const char *path, mode_t mode), (path, mode))
ACO__EARLY(int, creat64, (const char *path, mode_t mode), (path, mode))
ACO__EARLY(int, fsync, (int fd), (fd))
ACO__EARLY(int, fdatasync, (int fd), (fd))
ACO__EARLY_AS(int, close, (int fd), (fd), , __close)
ACO__EARLY(int, dup2, (int from, int to), (from, to))
ACO__EARLY(int, dup3, (int from, int to, int flags), (from, to, flags))
ACO__EARLY(int, flock, (int fd, int operation), (fd, operation))
ACO__EARLY_VARIADIC(fcntl, (int fd, int command, ...), (fd, command, more), command, void *, __fcntl)
ACO__EARLY_VARIADIC(fcntl64, (int fd, int command, ...), (fd, command, more), command, void *, NULL)
ACO__EARLY(int, lockf, (int fd, int command, off_t n), (fd, command, n))
ACO__EARLY(int, lockf64, (int fd, int command, off64_t n), (fd, command, n))

ACO__EARLY(pid_t, wait, (int *status), (status))
ACO__EARLY(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
ACO__EARLY(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage), (pid, status, options, usage))
ACO__EARLY(int, system, (const char *command), (command))
ACO__EARLY(int, pclose, (FILE *stream), (stream))
ACO__EARLY(int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints,
                              struct addrinfo **list), (node, service, hints, list))
ACO__EARLY(int, getnameinfo, (const struct sockaddr *address, socklen_t length, char *node, socklen_t node_sz,
                              char *service, socklen_t service_sz, int flags),
           (address, length, node, node_sz, service, service_sz, flags))

ACO__EARLY_AS(int, sem_wait, (sem_t *semaphore), (semaphore), , sem_clockwait ? plain_sem_wait : NULL)
ACO__EARLY(int, sem_timedwait, (sem_t *semaphore, const struct timespec *until), (semaphore, until))
ACO__EARLY(int, pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock))
ACO__EARLY(int, pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock))
ACO__EARLY(int, pthread_rwlock_unlock, (pthread_rwlock_t *lock), (lock))
ACO__EARLY_AS(int, pthread_mutex_lock, (pthread_mutex_t *mutex), (mutex), , mtx_lock ? plain_lock : NULL)
ACO__EARLY_AS(int, pthread_mutex_trylock, (pthread_mutex_t *mutex), (mutex), , mtx_trylock ? plain_trylock : NULL)
ACO__EARLY(int, sigaction, (int number, const struct sigaction *wanted, struct sigaction *before),
           (number, wanted, before))
ACO__EARLY(int, pthread_mutex_timedlock, (pthread_mutex_t *mutex, const struct timespec *until), (mutex, until))
ACO__EARLY_AS(int, pthread_mutex_unlock, (pthread_mutex_t *mutex), (mutex), , mtx_unlock ? plain_unlock : NULL)

ACO__EARLY(int, socket, (int family, int type, int protocol), (family, type, protocol))
ACO__EARLY(int, socketpair, (int family, int type, int protocol, int fds[2]), (family, type, protocol, fds))
ACO__EARLY(int, bind, (int fd, __CONST_SOCKADDR_ARG to, socklen_t length), (fd, to, length))
ACO__EARLY(int, listen, (int fd, int backlog), (fd, backlog))
ACO__EARLY(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
           (fd, level, option, value, length))
ACO__EARLY(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
           (fd, level, option, value, length))
ACO__EARLY(int, getsockname, (int fd, __SOCKADDR_ARG address, socklen_t *length), (fd, address, length))
ACO__EARLY(int, getpeername, (int fd, __SOCKADDR_ARG address, socklen_t *length), (fd, address, length))
ACO__EARLY(int, shutdown, (int fd, int how), (fd, how))
ACO__EARLY_VARIADIC(ioctl, (int fd, unsigned long operation, ...), (fd, operation, more), operation, void *, NULL)
ACO__EARLY(int, pipe, (int fds[2]), (fds))
ACO__EARLY(int, pipe2, (int fds[2], int flags), (fds, flags))
ACO__EARLY(int, eventfd, (unsigned value, int flags), (value, flags))
ACO__EARLY(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
ACO__EARLY(int, epoll_create, (int size), (size))
ACO__EARLY(int, epoll_create1, (int flags), (flags))
ACO__EARLY(int, epoll_ctl, (int epoll, int operation, int fd, struct epoll_event *event),
           (epoll, operation, fd, event))
ACO__EARLY(int, dup, (int fd), (fd))
ACO__EARLY(struct hostent *, gethostbyname, (const char *name), (name))
ACO__EARLY(struct hostent *, gethostbyname2, (const char *name, int family), (name, family))
ACO__EARLY(struct hostent *, gethostbyaddr, (const void *address, socklen_t length, int family),
           (address, length, family))
ACO__EARLY(int, gethostbyname_r, (const char *name, struct hostent *entry, char *room, size_t size,
                                  struct hostent **found, int *error), (name, entry, room, size, found, error))
ACO__EARLY(int, gethostbyname2_r, (const char *name, int family, struct hostent *entry, char *room, size_t size,
                                   struct hostent **found, int *error), (name, family, entry, room, size, found, error))
ACO__EARLY(int, gettimeofday, (struct timeval *now, void *zone), (now, zone))
ACO__EARLY(time_t, time, (time_t *now), (now))
ACO__EARLY(ssize_t, getrandom, (void *p, size_t n, unsigned flags), (p, n, flags))
ACO__EARLY(int, getentropy, (void *p, size_t n), (p, n))
ACO__EARLY(FILE *, popen, (const char *command, const char *mode), (command, mode))
ACO__EARLY(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg),
           (thread, attributes, fn, arg))
ACO__EARLY(int, pthread_join, (pthread_t thread, void **result), (thread, result))
ACO__EARLY(int, pthread_detach, (pthread_t thread), (thread))
#if defined(__LP64__) && __GLIBC_PREREQ(2, 33)
ACO__EARLY(FILE *, fopen, (const char *path, const char *mode), (path, mode))
ACO__EARLY(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
ACO__EARLY(int, stat, (const char *path, struct stat *status), (path, status))
ACO__EARLY(int, stat64, (const char *path, struct stat64 *status), (path, status))
ACO__EARLY(int, lstat, (const char *path, struct stat *status), (path, status))
ACO__EARLY(int, lstat64, (const char *path, struct stat64 *status), (path, status))
ACO__EARLY(int, fstat, (int fd, struct stat *status), (fd, status))
ACO__EARLY(int, fstat64, (int fd, struct stat64 *status), (fd, status))
ACO__EARLY(int, access, (const char *path, int mode), (path, mode))
ACO__EARLY(off_t, lseek, (int fd, off_t offset, int from), (fd, offset, from))
ACO__EARLY(off64_t, lseek64, (int fd, off64_t offset, int from), (fd, offset, from))
ACO__EARLY(int, ftruncate, (int fd, off_t size), (fd, size))
ACO__EARLY(int, ftruncate64, (int fd, off64_t size), (fd, size))
ACO__EARLY(int, rename, (const char *from, const char *to), (from, to))
ACO__EARLY(int, link, (const char *from, const char *to), (from, to))
ACO__EARLY(int, unlink, (const char *path), (path))
ACO__EARLY(int, mkfifo, (const char *path, mode_t mode), (path, mode))
ACO__EARLY(int, mkdir, (const char *path, mode_t mode), (path, mode))
ACO__EARLY(int, rmdir, (const char *path), (path))
ACO__EARLY(DIR *, opendir, (const char *path), (path))
ACO__EARLY(struct dirent *, readdir, (DIR *folder), (folder))
ACO__EARLY(struct dirent64 *, readdir64, (DIR *folder), (folder))
ACO__EARLY(int, closedir, (DIR *folder), (folder))
#endif

static void early_freeaddrinfo(struct addrinfo *list)
{
    ((__typeof__(&freeaddrinfo))function_for("freeaddrinfo", NULL, ACO__FOUND_AT(freeaddrinfo)))(list);
}

#define ACO__EARLY_JUMP(name)                                                                                          \
    __attribute__((noreturn)) static void early_##name(struct __jmp_buf_tag *place, int value)                         \
    {                                                                                                                  \
        ((__typeof__(&(name)))function_for(#name, NULL, ACO__FOUND_AT(name)))(place, value);                           \
        __builtin_unreachable();                                                                                       \
    }
ACO__EARLY_JUMP(siglongjmp)
ACO__EARLY_JUMP(__longjmp_chk)

#define ACO__EARLY_ENTRY(name) .name = early_##name,
aco__libc_calls_t aco__libc_found = {ACO__LIBC_CALLS(ACO__EARLY_ENTRY)};
