/* The operating system's clocks: one contract, with one implementation in os/ for each family. */
#ifndef ACO_CLOCK_H
#define ACO_CLOCK_H

#include "os/platform.h"

/* Nanoseconds on a clock that never goes back. */
ACO__HIDDEN int64_t aco__os_now(void);

/* The same up to 10 ms late, cheaper where the system has that. */
ACO__HIDDEN int64_t aco__os_now_coarse(void);
enum { ACO__COARSE_NS = 20000000 }; /* more than it is late */

/* Milliseconds on a cheaper, coarse clock. The number wraps. */
ACO__HIDDEN uint32_t aco__os_milliseconds(void);

/* Sleeps until this time on the clock of aco__os_now(). A signal may end the sleep early. */
ACO__HIDDEN void aco__os_sleep_until(int64_t then);

/* Waits while *word is `value`, at most until `then` (less than 0: without limit). It may return earlier.
 * aco__os_wake() ends the wait of a thread; it is called after the word was changed, and is async-signal-safe. */
ACO__HIDDEN void aco__os_wait(uint32_t *word, uint32_t value, int64_t then);
ACO__HIDDEN void aco__os_wake(uint32_t *word);

#endif
