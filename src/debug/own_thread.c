/* Threads of this library. */
#define _GNU_SOURCE
#include "debug/own_thread.h"
#include "system/system.h"

#include <signal.h>

enum { THREAD_STACK = 512 << 10 };

int aco__own_thread(pthread_t *thread, void *(*runs)(void *))
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* it is in profiles */
    aco__system.pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    error = aco__system.pthread_create(thread, &attributes, runs, NULL);
    aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}
