/* The operating system's clocks: one contract, with one implementation in os/ for each family. */
#ifndef ACO_CLOCK_H
#define ACO_CLOCK_H

#include "os/platform.h"

#include <time.h>

/* Nanoseconds on a clock that never goes back. */
ACO__HIDDEN int64_t aco__os_now(void);

/* The same up to 10 ms late, cheaper where the system has that. */
ACO__HIDDEN int64_t aco__os_now_coarse(void);
enum { ACO__COARSE_NS = 20000000 }; /* more than it is late */

/* Milliseconds on a cheap, coarse clock of its own, which begins anywhere and may be 16 ms late: for differences of two
 * of its times that need not be exact. So old memory goes back to the system some ms earlier or later. The number
 * wraps. */
ACO__HIDDEN uint32_t aco__os_milliseconds(void);

/* Nanoseconds as the system's structure: at least 0, and at most what it holds, so a wait may end early. */
static inline struct timespec aco__os_timespec(int64_t ns)
{
    enum { NS_IN_SECOND = 1000000000 };
    struct timespec time = {0, 0};
    if (ns > 0) {
        time.tv_sec = (time_t)(ns / NS_IN_SECOND);
        if (time.tv_sec != ns / NS_IN_SECOND) /* a time_t of 32 bits */
            time.tv_sec = INT32_MAX;
        time.tv_nsec = (long)(ns % NS_IN_SECOND);
    }
    return time;
}

/* Sleeps until this time on the clock of aco__os_now(). A signal may end the sleep early. */
ACO__HIDDEN void aco__os_sleep_until(int64_t then);

/* Waits while *word is `value`, at most until `then` (less than 0: without limit). It may return earlier.
 * aco__os_wake() ends the wait of a thread; it is called after the word was changed, and is async-signal-safe. */
ACO__HIDDEN void aco__os_wait(uint32_t *word, uint32_t value, int64_t then);
ACO__HIDDEN void aco__os_wake(uint32_t *word);

#endif
