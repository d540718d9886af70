/* A token bucket as one number: the time at which it will be full if nobody takes more. Who takes n tokens moves that
 * time by n intervals, and may act when the bucket would have held them: a whole bucket's time before. */
#include "base/invariants.h"

#include "aco/detail/for_libraries.h"
#include "aco/limiter.h"
#include "aco/scope.h"

#include <errno.h>

static const int64_t longest = INT64_C(36500) * 24 * 3600 * ACO_SECOND; /* a hundred years */

static int fail(int error)
{
    errno = error;
    return -1;
}

static int is_usable(const aco_limiter_t *l, int64_t n)
{
    return n >= 1 && n <= l->burst && l->interval >= 0 && (l->interval == 0 || l->burst <= longest / l->interval);
}

/* Takes `n` tokens that are there by the time `latest`; else fails with `error`. No time is more than 200 years after
 * now: that is why the whole bucket's time is taken off before anything is added. */
static int take(aco_limiter_t *l, int64_t n, int64_t now, int64_t latest, int error, aco_reservation_t *r)
{
    const int64_t whole = l->burst * l->interval;
    int64_t full_at = __atomic_load_n(&l->aco__full_at, __ATOMIC_RELAXED);
    r->aco__time = n * l->interval;
    do {
        r->at = (full_at > now ? full_at : now) - whole + r->aco__time;
        if (r->at > latest)
            return fail(error);
        r->aco__full_at = r->at + whole;
    } while (!__atomic_compare_exchange_n(&l->aco__full_at, &full_at, r->aco__full_at, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return 0;
}

static int fail_usage(const char *call)
{
    return aco__service_fail(EINVAL, call, "less than one token, more than the burst, or a limiter out of range");
}

int aco_limiter_try(aco_limiter_t *l, int64_t n)
{
    aco_reservation_t r;
    int64_t now;
    if (!is_usable(l, n))
        return fail_usage("aco_limiter_try");
    now = aco_now();
    return take(l, n, now, now, EAGAIN, &r);
}

int aco_limiter_reserve(aco_limiter_t *l, int64_t n, aco_reservation_t *r)
{
    int64_t now;
    if (!is_usable(l, n))
        return fail_usage("aco_limiter_reserve");
    now = aco_now();
    return take(l, n, now, now + longest, ERANGE, r);
}

/* Only the last reservation: what later ones have counted on might be used twice. While one has yet to come, the
 * bucket's time is never less than its own, so the last one is that with the same time. */
void aco_limiter_cancel(aco_limiter_t *l, const aco_reservation_t *r)
{
    int64_t full_at = r->aco__full_at;
    if (r->at > aco_now())
        (void)__atomic_compare_exchange_n(&l->aco__full_at, &full_at, full_at - r->aco__time, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
}

int aco_limiter_wait_until_at(aco_limiter_t *l, int64_t n, int64_t deadline, const char *location)
{
    aco_reservation_t r;
    int64_t now, latest, end = aco_deadline() - 1; /* a scope may end first at its deadline */
    int error = ERANGE;
    ACO__MAY_SWITCH("aco_limiter_wait", location);
    if (!is_usable(l, n))
        return fail_usage("aco_limiter_wait");
    now = aco_now();
    latest = now + longest;
    end = end < deadline ? end : deadline;
    if (end <= latest) {
        latest = end > now ? end : now;
        error = ETIMEDOUT;
    }
    if (take(l, n, now, latest, error, &r) != 0)
        return -1;
    if (r.at <= now || aco_sleep_until_at(r.at, location) == 0)
        return 0;
    aco_limiter_cancel(l, &r);
    return -1;
}
