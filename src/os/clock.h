/* The operating system's clocks. One implementation in os/ for each family, as of os.h. */
#ifndef ACO_CLOCK_H
#define ACO_CLOCK_H

#include "os/platform.h"

/* Nanoseconds of a clock that never goes back. */
ACO__HIDDEN int64_t aco__os_now(void);

/* Milliseconds of a cheaper one, which is coarse; they wrap. */
ACO__HIDDEN uint32_t aco__os_milliseconds(void);

/* Sleeps until then; less long when a signal comes. */
ACO__HIDDEN void aco__os_sleep_until(int64_t then);

#endif
