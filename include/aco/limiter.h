/* A rate limiter: how often something may be done (library acorn_resilience). docs/services.md is the guide.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   static aco_limiter_t limiter = ACO_LIMITER_INIT(ACO_SECOND / 100, 20); // 100 in a second, 20 of them at once
 *   if (aco_limiter_wait(&limiter, 1) == 0)
 *       ask(server);
 *
 * A limiter is a token bucket. It holds up to `burst` tokens and is full at first; a token comes every `interval`
 * nanoseconds. So within any time t at most burst + t / interval tokens are taken. Callers that wait get their tokens
 * in the order in which they came.
 *
 * Threads. Any thread may use a limiter at any time; no call locks. Only the calls with an `_at` form wait, and only
 * tasks can wait. A limiter needs no memory besides its structure, and no destruction. No pointer may be NULL. */
#ifndef ACO_LIMITER_H
#define ACO_LIMITER_H

#include "scheduler.h"

ACO__BEGIN_C

/* Set the first two before the first use. */
typedef struct aco_limiter_s {
    int64_t interval; /* nanoseconds from one token to the next; 0: no limit, all calls succeed */
    int64_t burst;    /* the most tokens, at least 1. burst * interval may be 100 years */
    int64_t aco__full_at __attribute__((aligned(8))); /* when the bucket will be full. Atomic */
} aco_limiter_t;
#define ACO_LIMITER_INIT(interval, burst) {interval, burst, 0}

/* Tokens that are taken from a limiter, but perhaps for a later time. */
typedef struct aco_reservation_s {
    int64_t at; /* from this time on, on the clock of aco_now(), the caller may act. Read-only */
    int64_t aco__time, aco__full_at;
} aco_reservation_t;

/* Takes `n` tokens if they are there. Returns 0; on error -1 with errno EAGAIN (they are not: nothing is taken), EINVAL
 * (`n` is less than 1 or more than `burst`, or the limiter's fields are out of range). */
ACO_API int aco_limiter_try(aco_limiter_t *limiter, int64_t n);

/* Takes `n` tokens, waiting until they have come. Fails at once, and takes nothing, if that would be after the deadline
 * or not before that of a scope (aco_deadline()). A wait that is cancelled gives its tokens back, as
 * aco_limiter_cancel() does. Returns 0; on error -1 with errno ETIMEDOUT, ECANCELED, EINVAL and ERANGE as below, EPERM
 * (the caller cannot wait), ENOMEM. */
ACO_API int aco_limiter_wait_until_at(aco_limiter_t *limiter, int64_t n, int64_t deadline, const char *location);
#define aco_limiter_wait_until(limiter, n, deadline) aco_limiter_wait_until_at(limiter, n, deadline, ACO_PLACE)
#define aco_limiter_wait(limiter, n) aco_limiter_wait_until_at(limiter, n, ACO_FOREVER, ACO_PLACE)

/* Takes `n` tokens without waiting, if need be tokens that have yet to come: the caller must not act before
 * reservation->at. Returns 0; on error -1 with errno EINVAL (as aco_limiter_try()), ERANGE (they would come in more
 * than a hundred years). */
ACO_API int aco_limiter_reserve(aco_limiter_t *limiter, int64_t n, aco_reservation_t *reservation);

/* Gives the tokens of a reservation back, if it is the last one and its time has not come: else they count as used. To
 * be called once at most. (Later reservations keep their times, and what these rely on must not be used twice.) */
ACO_API void aco_limiter_cancel(aco_limiter_t *limiter, const aco_reservation_t *reservation);

ACO__END_C

#endif
