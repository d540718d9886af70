/* Promise: the pauses before retries are random and grow up to their limit; no pause ends after a deadline; of all
 * calls with a budget, only its share are retries; who gives up has the errno of the last try. */
#include "system/system.h"

#include "resilience_tests.h"

#include <aco/retry.h>

enum { FIRST = 100, LONGEST = 300, TRIES = 5, OTHER = 77 /* an errno */ };
static const int bounds[TRIES - 1] = {100, 200, 300, 300};
static int64_t shortest[TRIES - 1], longest[TRIES - 1]; /* pauses of all runs */

static aco_retry_options_t options_of(int tries, aco_retry_budget_t *budget)
{
    aco_retry_options_t o = {0};
    o.tries = tries;
    o.first_pause = ms(FIRST);
    o.longest_pause = ms(LONGEST);
    o.budget = budget;
    return o;
}

static void pauses(void)
{
    aco_retry_options_t o = options_of(TRIES, NULL);
    aco_retry_t retry;
    aco_retry_begin(&retry, &o);
    for (int i = 0; i < TRIES - 1; i++) {
        int64_t begin = aco_now(), pause;
        MUST(aco_retry_again(&retry, OTHER) == 0 && retry.tries == i + 1);
        pause = aco_now() - begin;
        MUST(pause <= ms(bounds[i]));
        if (!shortest[i] || pause < shortest[i])
            shortest[i] = pause;
        if (pause > longest[i])
            longest[i] = pause;
    }
    MUST_FAIL(aco_retry_again(&retry, OTHER), OTHER);
    aco_retry_begin(&retry, NULL);
    for (int i = 0; i < 3; i++)
        MUST(aco_retry_again(&retry, OTHER) == 0);
    MUST_FAIL(aco_retry_again(&retry, OTHER), OTHER);
    o.tries = 1;
    aco_retry_begin(&retry, &o);
    MUST_FAIL(aco_retry_again(&retry, OTHER), OTHER);
    o.tries = -1;
    o.longest_pause = 1;
    aco_retry_begin(&retry, &o);
    for (int i = 0; i < 200; i++) /* the pause does not overflow */
        MUST(aco_retry_again(&retry, OTHER) == 0);
}

static void deadline(void)
{
    aco_retry_options_t o = options_of(-1, NULL);
    int64_t end = aco_after(ms(500)), last;
    aco_scope_t scope;
    aco_retry_t retry;
    MUST(aco_scope_begin(&scope, end) == 0);
    aco_retry_begin(&retry, &o);
    do
        last = aco_now();
    while (aco_retry_again(&retry, OTHER) == 0);
    MUST(errno == OTHER && last == aco_now() && last < end && retry.tries > 1);
    MUST(aco_scope_cancel(&scope) == 0);
    MUST_FAIL(aco_retry_again(&retry, OTHER), ECANCELED);
    MUST(aco_scope_end(&scope) == 0);
}

static aco_scope_t *waiting;

static void *wait_in_scope(void *arg)
{
    aco_retry_options_t o = options_of(-1, NULL);
    aco_scope_t scope;
    aco_retry_t retry;
    waiting = &scope;
    MUST(aco_scope_begin(&scope, ACO_FOREVER) == 0);
    aco_retry_begin(&retry, &o);
    while (aco_retry_again(&retry, OTHER) == 0)
        ;
    MUST(errno == ECANCELED);
    MUST(aco_scope_end(&scope) == 0);
    return arg;
}

static void cancelled(void)
{
    int64_t begin;
    aco_t *task = aco_spawn(wait_in_scope, NULL, NULL);
    aco_sleep(ms(below(1000)) + 1);
    begin = aco_now();
    MUST(aco_scope_cancel(waiting) == 0);
    MUST(aco_join(task, NULL) == 0 && aco_now() == begin);
}

static void budget(void)
{
    enum { SHARE = 200, RESERVE = 3, CALLS = 300 };
    aco_retry_budget_t b = ACO_RETRY_BUDGET_INIT(SHARE, RESERVE);
    aco_retry_options_t o = options_of(-1, &b);
    aco_retry_t retry;
    int retries = 0, calls = 0, model = RESERVE * 1000; /* what is saved up */
    for (; calls < CALLS; calls++) {
        aco_retry_begin(&retry, &o);
        model = model + SHARE < RESERVE * 1000 ? model + SHARE : RESERVE * 1000;
        while (below(2)) {
            int expected = model >= 1000 ? 0 : -1;
            MUST(aco_retry_again(&retry, OTHER) == expected);
            if (expected)
                break;
            model -= 1000;
            retries++;
        }
    }
    MUST(retries <= RESERVE + CALLS * SHARE / 1000 && retries > CALLS * SHARE / 2000);
}

static ssize_t fails(void *p, size_t n, unsigned flags)
{
    (void)p;
    (void)n;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

/* Without random numbers each pause is half of the longest one. */
static void without_chance(void)
{
    const aco_retry_options_t o = options_of(TRIES, NULL);
    ssize_t (*const before)(void *, size_t, unsigned) = aco__system.getrandom;
    aco_retry_t retry;
    aco__system.getrandom = fails;
    aco_retry_begin(&retry, &o);
    for (int i = 0; i < TRIES - 1; i++) {
        const int64_t begin = aco_now();
        MUST(aco_retry_again(&retry, OTHER) == 0 && aco_now() - begin == ms(bounds[i]) / 2);
    }
    aco__system.getrandom = before;
}

static void scenario(aco_sim_t *run, void *arg)
{
    (void)arg;
    sim = run;
    pauses();
    without_chance();
    deadline();
    cancelled();
    budget();
}

static void *without_simulation(void *arg)
{
    aco_retry_options_t o = {0};
    aco_retry_t retry;
    o.tries = -1;
    o.first_pause = o.longest_pause = 1;
    aco_retry_begin(&retry, &o);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(aco_retry_again(&retry, OTHER), 0);
    return arg;
}

int main(void)
{
    aco_options_t detached = {0};
    aco_retry_t retry;
    aco_retry_begin(&retry, NULL);
    FAILS_WITH(aco_retry_again(&retry, OTHER), EPERM);
    SIMULATE(scenario, 200);
    for (int i = 0; i < TRIES - 1; i++) /* all of the range: each end is missed once in 10^9 times */
        CHECK(shortest[i] < ms(bounds[i]) / 10 && longest[i] > ms(bounds[i]) / 10 * 9);
    detached.flags = ACO_DETACHED;
    CHECK(aco_spawn(without_simulation, NULL, &detached) != NULL && aco_run() == 0);
    return check_result("retry");
}
