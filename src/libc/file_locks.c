/* Hooks of calls that wait for the lock of a file. No event tells that it is free: they try again and again. */
#include "libc/hooked.h"
#include "libc/libc.h"

#include <stdarg.h>

const char aco__hooks_of_file_locks = 1;

ACO__HOOK(int, flock, (int fd, int operation))
{
    aco__hook_wait_t wait = {ACO_FOREVER, 1, aco__hook_call(HOOK_RESTARTS), 0, 0};
    int error = errno, action = HOOK_TRIES_AGAIN;
    if (!aco__hooked() || operation & LOCK_NB || operation & LOCK_UN)
        return aco__libc()->flock(fd, operation);
    aco__hook_spend(-1, "libc's flock()");
    while (action == HOOK_TRIES_AGAIN) {
        int result = aco__libc()->flock(fd, operation | LOCK_NB);
        if (result == 0 || errno != EWOULDBLOCK)
            return (int)aco__hook_result(result, error);
        action = aco__hook_nap(&wait, "libc's flock()");
    }
    return action == HOOK_BLOCKS ? (int)aco__hook_result(aco__libc()->flock(fd, operation), error) : -1;
}

/* ---- Locks of ranges ---- */

/* The form of a command that does not wait; -1: it never waits. */
static int trying_form(int command)
{
    switch (command) {
    case F_SETLKW:
        return F_SETLK;
    case F_OFD_SETLKW:
        return F_OFD_SETLK;
#if F_SETLKW64 != F_SETLKW
    case F_SETLKW64:
        return F_SETLK64;
#endif
    default:
        return -1;
    }
}

/* `call`: that of libc's two with whose form of the lock the caller called. */
ACO__SWITCHES
static int lock_range(int (*call)(int fd, int command, ...), int fd, int command, void *lock, const char *location)
{
    aco__hook_wait_t wait = {ACO_FOREVER, 1, aco__hook_call(HOOK_RESTARTS), 0, 0};
    int error = errno, action = HOOK_TRIES_AGAIN;
    aco__hook_spend(-1, location);
    while (action == HOOK_TRIES_AGAIN) {
        int result = call(fd, trying_form(command), lock);
        if (result == 0 || (errno != EAGAIN && errno != EACCES))
            return (int)aco__hook_result(result, error);
        action = aco__hook_nap(&wait, location);
    }
    return action == HOOK_BLOCKS ? (int)aco__hook_result(call(fd, command, lock), error) : -1;
}

/* An argument that was not passed is garbage here, and the system does not look at it. */
#define ACO__FCNTL_HOOK(name)                                                                                          \
    ACO__HOOK(int, name, (int fd, int command, ...))                                                                   \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        void *argument;                                                                                                \
        va_start(list, command);                                                                                       \
        argument = va_arg(list, void *);                                                                               \
        va_end(list);                                                                                                  \
        return aco__hooked() && trying_form(command) >= 0                                                              \
                   ? lock_range(aco__libc()->name, fd, command, argument, "libc's fcntl()")                            \
                   : aco__libc()->name(fd, command, argument);                                                         \
    }
ACO__FCNTL_HOOK(fcntl)
ACO__FCNTL_HOOK(fcntl64)

ACO__SWITCHES static int lock_from_here(int fd, off64_t n)
{
    struct flock64 lock = {0};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_CUR;
    lock.l_len = n;
    return lock_range(aco__libc()->fcntl64, fd, F_SETLKW64, &lock, "libc's lockf()");
}

ACO__HOOK(int, lockf, (int fd, int command, off_t n))
{
    return aco__hooked() && command == F_LOCK ? lock_from_here(fd, n) : aco__libc()->lockf(fd, command, n);
}

ACO__HOOK(int, lockf64, (int fd, int command, off64_t n))
{
    return aco__hooked() && command == F_LOCK ? lock_from_here(fd, n) : aco__libc()->lockf64(fd, command, n);
}
