/* A program that includes this replaces src/os/posix_clock.c: the library's time is clock_ns. The program defines the
 * other functions, whose contracts are in src/os/clock.h (which only the library can include). */
#ifndef OWN_CLOCK_H
#define OWN_CLOCK_H

#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN int64_t aco__os_now(void);
HIDDEN int64_t aco__os_now_coarse(void);
HIDDEN uint32_t aco__os_milliseconds(void);
HIDDEN void aco__os_sleep_until(int64_t then);
HIDDEN void aco__os_wait(uint32_t *word, uint32_t value, int64_t then);
HIDDEN void aco__os_wake(uint32_t *word);
static int64_t clock_ns;

int64_t aco__os_now(void)
{
    return clock_ns;
}

int64_t aco__os_now_coarse(void)
{
    return clock_ns - clock_ns % 10000000; /* as late as the contract allows */
}

#endif
