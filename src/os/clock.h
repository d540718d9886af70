/* The operating system's clocks: one contract, with one implementation in os/ for each family. */
#ifndef ACO_CLOCK_H
#define ACO_CLOCK_H

#include "os/platform.h"

/* Nanoseconds on a clock that never goes back. */
ACO__HIDDEN int64_t aco__os_now(void);

/* Milliseconds on a cheaper, coarse clock. The number wraps. */
ACO__HIDDEN uint32_t aco__os_milliseconds(void);

/* Sleeps until this time on the clock of aco__os_now(). A signal may end the sleep early. */
ACO__HIDDEN void aco__os_sleep_until(int64_t then);

#endif
