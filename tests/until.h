#ifndef UNTIL_H
#define UNTIL_H

#include <aco/scheduler.h>
#include "check.h"

/* Waits in a task for what other threads will do. */
#define UNTIL(what)                                                                                                    \
    do {                                                                                                               \
        int64_t until_end = aco_after(30 * ACO_SECOND);                                                                \
        while (!(what) && aco_now() < until_end)                                                                       \
            aco_sleep(ACO_MILLISECOND / 10);                                                                           \
        CHECK(what);                                                                                                   \
    } while (0)

#endif
