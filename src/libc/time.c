/* Hooks of calls that wait for a time. */
#include "libc/arguments.h"
#include "libc/hooked.h"
#include "libc/libc.h"

#include "aco/detail/poller.h"

const char aco__hooks_of_time = 1;

static int64_t ns_of_time(const struct timespec *time)
{
    return aco__hook_ns(time->tv_sec, time->tv_nsec);
}

/* Sleeps that long, at least once around the other tasks: as aco__hook_sleep(). */
ACO__SWITCHES static int sleep_for(int64_t deadline, int64_t ns, const char *location)
{
    aco__hook_call_t call = aco__hook_call(HOOK_NEVER_RESTARTS);
    if (ns > 0)
        return aco__hook_sleep(deadline, &call, location);
    if (aco__hook_is_own_process())
        aco__service_yield();
    return 0;
}

ACO__SWITCHES static int sleep_and_tell(const struct timespec *time, struct timespec *rest, const char *location)
{
    int64_t ns = ns_of_time(time), deadline = aco_after(ns);
    int result = sleep_for(deadline, ns, location);
    if (result == -1 && rest)
        *rest = aco__hook_time_until(deadline);
    return result;
}

ACO__HOOK(int, nanosleep, (const struct timespec *time, struct timespec *rest))
{
    int error = errno, result = HOOK_CANNOT_WAIT;
    if (aco__hooked() && aco__hook_is_time(time))
        result = sleep_and_tell(time, rest, "libc's nanosleep()");
    return result == HOOK_CANNOT_WAIT ? aco__libc()->nanosleep(time, rest) : (int)aco__hook_result(result, error);
}

/* Until a time on another clock, which may be set meanwhile: looks at it once a second. */
ACO__SWITCHES static int sleep_until_time(clockid_t clock, const struct timespec *time)
{
    aco__hook_call_t call = aco__hook_call(HOOK_NEVER_RESTARTS);
    struct timespec now;
    int64_t ns;
    int result = 0;
    while (result == 0) {
        if (clock_gettime(clock, &now) != 0)
            return -1;
        ns = ns_of_time(time) - ns_of_time(&now);
        if (ns <= 0)
            return 0;
        result = aco__hook_sleep(aco_after(ns < ACO_SECOND ? ns : ACO_SECOND), &call, "libc's clock_nanosleep()");
    }
    return result;
}

ACO__HOOK(int, clock_nanosleep,
          (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest))
{
    int error = errno, result = HOOK_CANNOT_WAIT;
    if ((clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI) &&
        aco__hooked() && aco__hook_is_time(time))
        result = (flags & TIMER_ABSTIME) ? sleep_until_time(clock, time)
                                         : sleep_and_tell(time, rest, "libc's clock_nanosleep()");
    if (result == HOOK_CANNOT_WAIT)
        return aco__libc()->clock_nanosleep(clock, flags, time, rest);
    result = result == 0 ? 0 : errno;
    errno = error;
    return result;
}

ACO__HOOK(int, usleep, (useconds_t us))
{
    int error = errno, result = HOOK_CANNOT_WAIT;
    if (aco__hooked())
        result = sleep_for(aco_after((int64_t)us * 1000), us, "libc's usleep()");
    return result == HOOK_CANNOT_WAIT ? aco__libc()->usleep(us) : (int)aco__hook_result(result, error);
}

ACO__HOOK(unsigned, sleep, (unsigned seconds))
{
    int error = errno, result = HOOK_CANNOT_WAIT;
    struct timespec time = {(time_t)seconds, 0}, rest = {0, 0};
    if (aco__hooked())
        result = sleep_and_tell(&time, &rest, "libc's sleep()");
    if (result == HOOK_CANNOT_WAIT)
        return aco__libc()->sleep(seconds);
    errno = result == 0 ? error : errno;
    return (unsigned)rest.tv_sec + (rest.tv_nsec > 0);
}

/* Who waits in a loop for another thread gives way to the thread's tasks, too. */
ACO__HOOK(int, sched_yield, (void))
{
    if (aco__hooked() && aco__hook_is_own_process())
        aco__service_yield();
    return aco__libc()->sched_yield();
}
