/* libc's functions, for the table in system.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* accept4(), pread64() */
#endif
#include "system/system.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/sendfile.h>
#endif

#ifdef __GLIBC__ /* where off_t may have 32 bits */
#define ACO__SYSTEM_64(name) name##64
#else
#define ACO__SYSTEM_64(name) name
#endif
/* glibc declares the parameter for an address as a union of pointers. */
#define ACO__SYSTEM_ADDRESS(name) (__typeof__(((aco__system_t *)NULL)->name))(void (*)(void))name

#ifdef ACO_CONFIG_LIBACO_ONLY
static const /* so that compilers see what is called */
#endif
    aco__system_t aco__system = {
        .read = read,
        .write = write,
        .readv = readv,
        .writev = writev,
        .pread = ACO__SYSTEM_64(pread),
        .pwrite = ACO__SYSTEM_64(pwrite),
        .recv = recv,
        .recvfrom = ACO__SYSTEM_ADDRESS(recvfrom),
        .recvmsg = recvmsg,
        .send = send,
        .sendto = ACO__SYSTEM_ADDRESS(sendto),
        .sendmsg = sendmsg,
        .connect = ACO__SYSTEM_ADDRESS(connect),
        .open = ACO__SYSTEM_64(open),
        .close = close,
        .fcntl = fcntl,
        .fsync = fsync,
        .poll = poll,
#ifdef __linux__
        .accept4 = ACO__SYSTEM_ADDRESS(accept4),
        .sendfile = ACO__SYSTEM_64(sendfile),
        .epoll_wait = epoll_wait,
#else
        .accept = ACO__SYSTEM_ADDRESS(accept),
#endif
        .nanosleep = nanosleep,
        .sched_yield = sched_yield,
        .pthread_mutex_lock = pthread_mutex_lock,
        .pthread_mutex_trylock = pthread_mutex_trylock,
        .pthread_mutex_unlock = pthread_mutex_unlock,
        .waitpid = waitpid,
#ifndef __APPLE__
        .clock_nanosleep = clock_nanosleep,
#endif
        .sigaction = sigaction,
};

#ifndef ACO_CONFIG_LIBACO_ONLY
static __thread unsigned holds;

void aco__hooks_hold(void)
{
    holds++;
}

void aco__hooks_release(void)
{
    holds--;
}

int aco__hooks_are_held(void)
{
    return holds != 0;
}
#endif
