/* Conditions whose waits end at a time on the clock of aco__os_now(), on POSIX systems. */
#ifndef ACO_CONDITION_H
#define ACO_CONDITION_H

#include "os/clock.h"
#include "system/system.h"

#include <pthread.h>

/* Both return 0 or an errno. */
#ifdef __APPLE__ /* conditions know only the time of day, or a time from now on */
static inline int aco__os_condition_init(pthread_cond_t *condition)
{
    return pthread_cond_init(condition, NULL);
}

static inline int aco__os_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec now = {0, 0}, from_now;
    aco__system.clock_gettime(CLOCK_MONOTONIC, &now);
    from_now = aco__os_timespec(deadline > 0 ? deadline - (int64_t)now.tv_sec * 1000000000 - now.tv_nsec : 0);
    return aco__system.pthread_cond_timedwait_relative_np(condition, lock, &from_now);
}
#else
static inline int aco__os_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error)
        return error;
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!error)
        error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return error;
}

static inline int aco__os_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline)
{
    struct timespec until = aco__os_timespec(deadline);
    return aco__system.pthread_cond_timedwait(condition, lock, &until);
}
#endif

#endif
