/* Threads of the libraries' own. They get no signals, as those are for the program's threads. */
#ifndef ACO_OWN_THREAD_H
#define ACO_OWN_THREAD_H

#include "system/system.h"

#include <errno.h>

/* Starts one that calls runs(arg); it gets the signal `but` alone, 0: none. 0, or an error number. */
static inline int aco__own_thread(pthread_t *thread, int but, void *(*runs)(void *arg), void *arg)
{
    const size_t stack_sz = 512 << 10;
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    sigfillset(&all);
    if (but)
        sigdelset(&all, but);
    aco__system.pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_setstacksize(&attributes, stack_sz);
    error = aco__system.pthread_create(thread, &attributes, runs, arg);
    if (error == EINVAL) /* the program's thread-local variables, which are on the stack, need more */
        error = aco__system.pthread_create(thread, NULL, runs, arg);
    aco__system.pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

#endif
