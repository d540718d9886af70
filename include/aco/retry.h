/* Retrying with exponential back-off, jitter and a budget (library acorn_resilience). docs/services.md is the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   aco_retry_t retry;
 *   aco_retry_begin(&retry, NULL);
 *   while (ask(server) != 0) // returns -1 and errno
 *       if (errno == EACCES || aco_retry_again(&retry, errno) != 0)
 *           return -1; // errno is still that of the last try
 *
 * The caller decides which errors are worth a retry, and retries only what may be done twice. The pause before the
 * first retry is a random time up to `first_pause`; before each further one up to twice as long, and at most
 * `longest_pause`. The randomness keeps clients from coming all at once. In a simulation the seed decides it.
 *
 * A budget keeps retries from multiplying the load of a server that is down: of all calls with it, only a share may be
 * retries. All calls to a server should have one budget. Any thread may use it; an aco_retry_t belongs to its task. */
#ifndef ACO_RETRY_H
#define ACO_RETRY_H

#include "scheduler.h"

ACO__BEGIN_C

typedef struct aco_retry_budget_s {
    uint32_t share;   /* so many retries come with 1000 calls. Set it and the next before the first use */
    uint32_t reserve; /* the most retries that are saved up, and are there at first: from 1 to 4 million */
    uint32_t aco__spent; /* thousandths of retries that the reserve lacks. Atomic */
} aco_retry_budget_t;
#define ACO_RETRY_BUDGET_INIT(share, reserve) {share, reserve, 0}

/* Zero in a field, or NULL for the whole structure, means the default. */
typedef struct aco_retry_options_s {
    int tries;                  /* the most, the first one included. Default: 4. Less than 0: no limit */
    int64_t first_pause;        /* in nanoseconds. Default: 100 ms */
    int64_t longest_pause;      /* Default: 10 s. Both are at most 1000 days, and are never less than 0 */
    aco_retry_budget_t *budget; /* NULL: none */
    void *aco__reserved[4];     /* reserved fields are 0 */
} aco_retry_options_t;

/* One call with its retries. It needs no destruction. */
typedef struct aco_retry_s {
    int tries; /* that have failed. Read-only */
    int aco__most;
    int64_t aco__pause, aco__longest;
    aco_retry_budget_t *aco__budget;
} aco_retry_t;

/* Begins a call, and adds it to the calls of its budget. */
ACO_API void aco_retry_begin(aco_retry_t *retry, const aco_retry_options_t *options);

/* A try has failed with `error`, an errno. If there may be another one, waits for the pause. Gives up without waiting
 * if no try is left, if the budget is used up, or if the pause would end after the deadline of the task's scopes. Then
 * errno is `error`. Returns 0: try again; on error -1 with errno `error`, ETIMEDOUT and ECANCELED (a scope has ended),
 * EPERM (the caller cannot wait), ENOMEM. */
ACO_API int aco_retry_again_at(aco_retry_t *retry, int error, const char *location);
#define aco_retry_again(retry, error) aco_retry_again_at(retry, error, ACO_PLACE)

ACO__END_C

#endif
