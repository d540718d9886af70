/* The contract of clock.h on POSIX systems. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_nanosleep under -std=c11 */
#endif
#include "os/clock.h"
#include "os/os.h"
#include "system/system.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_SECOND = 1000000000 };

/* Dies if the clock fails: a caller that waits for a deadline would wait too short, or for ever. */
static struct timespec read_clock(clockid_t which)
{
    struct timespec now;
    if (aco_unlikely(aco__system.clock_gettime(which, &now) != 0))
        aco__os_die("clock_gettime() failed");
    return now;
}

static int64_t nanoseconds(clockid_t which)
{
    struct timespec now = read_clock(which);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t aco__os_now(void)
{
    return nanoseconds(CLOCK_MONOTONIC);
}

#ifdef CLOCK_MONOTONIC_COARSE
enum { COARSE = CLOCK_MONOTONIC_COARSE };
#else
enum { COARSE = CLOCK_MONOTONIC };
#endif

int64_t aco__os_now_coarse(void)
{
    return nanoseconds(COARSE);
}

uint32_t aco__os_milliseconds(void)
{
    struct timespec now = read_clock(COARSE);
    return (uint32_t)now.tv_sec * 1000u + (uint32_t)(now.tv_nsec / 1000000);
}

void aco__os_sleep_until(int64_t then)
{
#ifdef __APPLE__ /* macOS has no absolute sleep */
    struct timespec left = aco__os_timespec(then > 0 ? then - aco__os_now() : 0);
    aco__system.nanosleep(&left, NULL);
#else
    struct timespec until = aco__os_timespec(then);
    aco__system.clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
#endif
}

/* ---- Waiting for a word of memory ---- */

#ifdef __linux__

void aco__os_wait(uint32_t *word, uint32_t value, int64_t then)
{
    aco__system.futex_wait(word, value, then);
}

void aco__os_wake(uint32_t *word)
{
    int error = errno;
    aco__system.futex_wake(word, 1);
    errno = error;
}

#else

enum { NS_PER_LOOK = 1000000 }; /* without futexes the word is looked at so often */

void aco__os_wait(uint32_t *word, uint32_t value, int64_t then)
{
    int64_t next = aco__os_now() + NS_PER_LOOK;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
        aco__os_sleep_until(then >= 0 && then < next ? then : next);
}

void aco__os_wake(uint32_t *word)
{
    (void)word;
}

#endif
