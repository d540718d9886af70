/* Retries: pauses and the budget. */
#include "service/jitter.h"

#include "aco/retry.h"
#include "aco/scope.h"

#include <errno.h>

enum { MOST_TRIES = 4, THOUSAND = 1000 };
static const int64_t most_pause = 1000 * 24 * 3600 * ACO_SECOND;

/* Takes `n` thousandths from what is spent (a call), or adds them (a retry): whether the reserve has them. */
static int spend(aco_retry_budget_t *budget, int64_t n)
{
    uint32_t spent = __atomic_load_n(&budget->aco__spent, __ATOMIC_RELAXED);
    int64_t then;
    do {
        then = spent + n > 0 ? spent + n : 0;
        if (n > 0 && then > (int64_t)budget->reserve * THOUSAND)
            return 0;
        if (then == spent)
            return 1;
    } while (!__atomic_compare_exchange_n(&budget->aco__spent, &spent, (uint32_t)then, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return 1;
}

static int64_t pause_of(int64_t option, int64_t otherwise)
{
    return option <= 0 ? otherwise : option < most_pause ? option : most_pause;
}

void aco_retry_begin(aco_retry_t *retry, const aco_retry_options_t *options)
{
    static const aco_retry_options_t none;
    if (!options)
        options = &none;
    retry->tries = 0;
    retry->aco__most = options->tries ? options->tries : MOST_TRIES;
    retry->aco__longest = pause_of(options->longest_pause, 10 * ACO_SECOND);
    retry->aco__pause = pause_of(options->first_pause, 100 * ACO_MILLISECOND);
    retry->aco__budget = options->budget;
    if (options->budget)
        (void)spend(options->budget, -(int64_t)options->budget->share);
}

static int give_up(int error)
{
    errno = error;
    return -1;
}

int aco_retry_again_at(aco_retry_t *retry, int error, const char *location)
{
    int64_t pause;
    ACO__MAY_SWITCH("aco_retry_again", location);
    if (retry->tries < INT32_MAX)
        retry->tries++;
    if (aco_check_cancelled() != 0)
        return -1;
    if (retry->aco__most >= 0 && retry->tries >= retry->aco__most)
        return give_up(error);
    pause = aco__back_off(&retry->aco__pause, retry->aco__longest);
    if (aco_after(pause) >= aco_deadline())
        return give_up(error);
    if (retry->aco__budget && !spend(retry->aco__budget, THOUSAND))
        return give_up(error);
    return aco_sleep_at(pause, location);
}
