/* How many seeds a test of a simulation tries: at night so many times more as ACORN_SIM_TIMES says (make sim-nightly).
 * */
#ifndef SIM_RUNS_H
#define SIM_RUNS_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline unsigned sim_times(void)
{
    const char *times = getenv("ACORN_SIM_TIMES");
    int n = times ? atoi(times) : 1;
    return n > 1 && n <= 10000 ? (unsigned)n : 1;
}

static inline uint64_t sim_runs(uint64_t runs)
{
    return runs * sim_times();
}

/* Ends the test, if it hangs. */
static inline void sim_alarm(unsigned seconds)
{
    alarm(seconds * sim_times());
}

#endif
