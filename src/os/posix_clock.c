/* The contract of clock.h on POSIX systems. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_nanosleep under -std=c11 */
#endif
#include "os/clock.h"
#include "os/os.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

/* Dies if the clock fails: a caller that waits for a deadline would wait too short, or for ever. */
static struct timespec read_clock(clockid_t which)
{
    struct timespec now;
    if (aco_unlikely(clock_gettime(which, &now) != 0))
        aco__os_die("clock_gettime() failed");
    return now;
}

int64_t aco__os_now(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint32_t aco__os_milliseconds(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now = read_clock(CLOCK_MONOTONIC_COARSE);
#else
    struct timespec now = read_clock(CLOCK_MONOTONIC);
#endif
    return (uint32_t)now.tv_sec * 1000u + (uint32_t)(now.tv_nsec / 1000000);
}

void aco__os_sleep_until(int64_t then)
{
    struct timespec until;
    int64_t seconds = then / NS_PER_SECOND;
    until.tv_sec = (time_t)seconds;
    if (until.tv_sec != seconds) /* a 32-bit time_t: sleep until its maximum; the caller checks the clock again */
        until.tv_sec = INT32_MAX;
    until.tv_nsec = (long)(then % NS_PER_SECOND);
#ifdef __APPLE__ /* macOS has no absolute sleep */
    then -= aco__os_now();
    until.tv_sec = (time_t)(then / NS_PER_SECOND);
    until.tv_nsec = (long)(then % NS_PER_SECOND);
    if (then > 0)
        nanosleep(&until, NULL);
#else
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
#endif
}
