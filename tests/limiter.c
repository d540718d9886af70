/* Promise: a limiter lets through what its rate and burst allow: never more, and no less; who waits is served in turn,
 * and who gives up gives back what nobody relies on. */
#include "resilience_tests.h"

#include <aco/limiter.h>

#include <pthread.h>

enum { BURST = 3, TASKS = 6, CALLS = 6, MOST = 1000 };

/* ---- Exact times ---- */

static void take_all(aco_limiter_t *l)
{
    for (int i = 0; i < BURST; i++)
        MUST(aco_limiter_try(l, 1) == 0);
    MUST_FAIL(aco_limiter_try(l, 1), EAGAIN);
}

static void tokens_come(aco_limiter_t *l)
{
    int64_t begin = aco_now();
    take_all(l);
    aco_sleep(ms(100) - 1);
    MUST_FAIL(aco_limiter_try(l, 1), EAGAIN);
    aco_sleep(1);
    MUST(aco_limiter_try(l, 1) == 0);
    MUST_FAIL(aco_limiter_try(l, 1), EAGAIN);
    MUST(aco_limiter_wait(l, 2) == 0 && aco_now() == begin + ms(300));
    aco_sleep(ms(1000));
    take_all(l); /* not more than the burst */
    aco_sleep(ms(1000));
    MUST(aco_limiter_wait(l, BURST) == 0 && aco_now() == begin + ms(2300));
    aco_sleep(ms(1000));
}

static void deadlines(aco_limiter_t *l)
{
    int64_t begin = aco_now();
    aco_scope_t scope;
    MUST(aco_limiter_wait_until(l, BURST, begin) == 0); /* need not wait */
    MUST_FAIL(aco_limiter_wait_until(l, 1, begin + ms(100) - 1), ETIMEDOUT);
    MUST(aco_scope_begin(&scope, begin + ms(100)) == 0);
    MUST_FAIL(aco_limiter_wait(l, 1), ETIMEDOUT);
    MUST(aco_scope_end(&scope) == 0);
    MUST(aco_now() == begin); /* nobody has waited, and nothing is taken */
    MUST(aco_limiter_wait_until(l, 1, begin + ms(100)) == 0 && aco_now() == begin + ms(100));
    aco_sleep(ms(1000));
}

static void reservations(aco_limiter_t *l)
{
    int64_t begin = aco_now();
    aco_reservation_t a, b, c;
    MUST(aco_limiter_reserve(l, BURST, &a) == 0 && a.at <= begin);
    aco_limiter_cancel(l, &a); /* its time has come */
    MUST(aco_limiter_reserve(l, 1, &a) == 0 && a.at == begin + ms(100));
    MUST(aco_limiter_reserve(l, 2, &b) == 0 && b.at == begin + ms(300));
    MUST(aco_limiter_reserve(l, 1, &c) == 0 && c.at == begin + ms(400));
    aco_limiter_cancel(l, &b); /* c relies on its tokens */
    MUST(aco_limiter_reserve(l, 2, &b) == 0 && b.at == begin + ms(600));
    aco_limiter_cancel(l, &b);
    aco_limiter_cancel(l, &c);
    MUST(aco_limiter_reserve(l, 1, &b) == 0 && b.at == begin + ms(400));
    aco_sleep(ms(2000));
}

/* The longest times: 100 years for a bucket, and 100 more for what has yet to come. */
static void longest(void)
{
    aco_limiter_t l = ACO_LIMITER_INIT(INT64_C(36500) * 24 * 3600 * ACO_SECOND, 1);
    aco_reservation_t r;
    int64_t begin = aco_now();
    MUST(aco_limiter_reserve(&l, 1, &r) == 0 && r.at == begin);
    MUST(aco_limiter_reserve(&l, 1, &r) == 0 && r.at == begin + l.interval);
    MUST_FAIL(aco_limiter_reserve(&l, 1, &r), ERANGE);
    MUST_FAIL(aco_limiter_try(&l, 1), EAGAIN);
    MUST_FAIL(aco_limiter_wait(&l, 1), ERANGE);
}

static aco_scope_t *waiting;

static void *wait_in_scope(void *arg)
{
    aco_scope_t scope;
    MUST(aco_scope_begin(&scope, ACO_FOREVER) == 0);
    waiting = &scope;
    MUST_FAIL(aco_limiter_wait(arg, 2), ECANCELED);
    MUST(aco_scope_end(&scope) == 0);
    return NULL;
}

static void cancelled(aco_limiter_t *l)
{
    int64_t begin = aco_now();
    take_all(l);
    go(wait_in_scope, l);
    aco_sleep(ms(10));
    MUST(aco_scope_cancel(waiting) == 0);
    aco_sleep(ms(1));
    MUST(aco_limiter_wait(l, 1) == 0 && aco_now() == begin + ms(100)); /* its tokens were given back */
    aco_sleep(ms(1000));
}

static void limits_of_arguments(aco_limiter_t *l)
{
    static const int64_t year = INT64_C(365) * 24 * 3600 * ACO_SECOND;
    aco_limiter_t none = ACO_LIMITER_INIT(0, 1), slow = ACO_LIMITER_INIT(50 * year, 1);
    aco_limiter_t bad[] = {ACO_LIMITER_INIT(-1, 1), ACO_LIMITER_INIT(1, 0), ACO_LIMITER_INIT(year, 101),
                           ACO_LIMITER_INIT(INT64_MAX, INT64_MAX)};
    aco_reservation_t r;
    MUST_FAIL(aco_limiter_try(l, 0), EINVAL);
    MUST_FAIL(aco_limiter_reserve(l, BURST + 1, &r), EINVAL);
    MUST_FAIL(aco_limiter_wait(l, -1), EINVAL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        MUST_FAIL(aco_limiter_try(&bad[i], 1), EINVAL);
    for (int i = 0; i < MOST; i++)
        MUST(aco_limiter_wait(&none, 1) == 0);
    for (int i = 0; i < 3; i++)
        MUST(aco_limiter_reserve(&slow, 1, &r) == 0);
    MUST_FAIL(aco_limiter_reserve(&slow, 1, &r), ERANGE);
    MUST_FAIL(aco_limiter_wait(&slow, 1), ERANGE);
    MUST_FAIL(aco_limiter_wait_until(&slow, 1, aco_after(1)), ETIMEDOUT);
}

static void exact(aco_sim_t *run, void *arg)
{
    aco_limiter_t l = ACO_LIMITER_INIT(100 * ACO_MILLISECOND, BURST);
    (void)arg;
    sim = run;
    tokens_come(&l);
    deadlines(&l);
    reservations(&l);
    longest();
    cancelled(&l);
    limits_of_arguments(&l);
}

/* ---- Any calls in any order ---- */

static aco_limiter_t limiter;
static struct {
    int64_t at;
    int n, number; /* the call's */
} acts[MOST];
static int act_count, calls;

static void act(int n, int number)
{
    for (int i = 0; i < act_count; i++)
        MUST(acts[i].number < number || acts[i].at == aco_now()); /* nobody overtakes */
    acts[act_count].at = aco_now();
    acts[act_count].number = number;
    acts[act_count++].n = n;
}

static void wait_at_random(int n)
{
    aco_scope_t scope;
    int number = calls++, result;
    int64_t begin = aco_now();
    MUST(aco_scope_begin(&scope, below(3) ? ACO_FOREVER : aco_after(ms(below(300)))) == 0);
    waiting = &scope;
    result = below(2) ? aco_limiter_wait(&limiter, n) : aco_limiter_wait_until(&limiter, n, aco_after(ms(below(400))));
    if (waiting == &scope)
        waiting = NULL;
    MUST(aco_scope_end(&scope) == 0);
    if (result == 0)
        act(n, number);
    else
        MUST(errno == ECANCELED || (errno == ETIMEDOUT && aco_now() == begin));
}

static void reserve_at_random(int n)
{
    aco_reservation_t r;
    int64_t begin = aco_now();
    MUST(aco_limiter_reserve(&limiter, n, &r) == 0);
    aco_sleep(ms(below(50)));
    if (below(2)) {
        aco_limiter_cancel(&limiter, &r);
        if (r.at > aco_now())
            return;
    }
    acts[act_count].at = r.at > begin ? r.at : begin; /* it may have acted then */
    acts[act_count].number = -1;
    acts[act_count++].n = n;
}

static void *use(void *arg)
{
    for (int i = 0; i < CALLS; i++) {
        int n = 1 + below(BURST), number = calls;
        aco_sleep(ms(below(200)));
        switch (below(4)) {
        case 0:
            number = calls++;
            if (aco_limiter_try(&limiter, n) == 0)
                act(n, number);
            break;
        case 1:
            reserve_at_random(n);
            break;
        case 2:
            if (waiting)
                MUST(aco_scope_cancel(waiting) == 0);
            break;
        default:
            wait_at_random(n);
        }
    }
    return arg;
}

static int done_between(int64_t begin, int64_t end)
{
    int n = 0;
    for (int i = 0; i < act_count; i++)
        n += acts[i].at >= begin && acts[i].at <= end ? acts[i].n : 0;
    return n;
}

static void any_calls(aco_sim_t *run, void *arg)
{
    static const aco_limiter_t full = ACO_LIMITER_INIT(100 * ACO_MILLISECOND, BURST);
    aco_t *tasks[TASKS];
    (void)arg;
    sim = run;
    limiter = full;
    waiting = NULL;
    act_count = calls = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = aco_spawn(use, NULL, NULL);
    for (int i = 0; i < TASKS; i++)
        MUST(aco_join(tasks[i], NULL) == 0);
    for (int i = 0; i < act_count; i++)
        for (int j = 0; j < act_count; j++)
            MUST(acts[j].at < acts[i].at ||
                 done_between(acts[i].at, acts[j].at) <= BURST + (acts[j].at - acts[i].at) / ms(100));
}

/* ---- Threads ---- */

enum { THREADS = 4, TOKENS = 5000 };
static aco_limiter_t shared = ACO_LIMITER_INIT(3600 * ACO_SECOND, TOKENS);
static int taken; /* atomic */

static void *take_some(void *arg)
{
    for (int i = 0; i < TOKENS; i++) {
        if (aco_limiter_try(&shared, 1) == 0)
            __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
        else
            CHECK_EQ(errno, EAGAIN);
    }
    return arg;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&ids[i], NULL, take_some, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    CHECK_EQ(taken, TOKENS);
}

int main(void)
{
    aco_limiter_t l = ACO_LIMITER_INIT(3600 * ACO_SECOND, 1);
    CHECK_EQ(aco_limiter_wait(&l, 1), 0); /* outside of tasks too */
    FAILS_WITH(aco_limiter_wait(&l, 1), EPERM);
    SIMULATE(exact, 20);
    SIMULATE(any_calls, 300);
    threads();
    return check_result("limiter");
}
