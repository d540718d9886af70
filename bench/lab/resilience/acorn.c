/* What the parts of acorn_resilience cost, as lines "name nanoseconds": CPU time of one operation, median of 9 rounds.
 * main.go does the same with Go's packages. docs/services.md has results.
 *
 *   cc -O2 -Iinclude bench/lab/resilience/acorn.c build/dev/libacorn_resilience.a build/dev/libacorn.a -lpthread -ldl
 *   taskset -c 1 ./a.out
 *   cp bench/lab/resilience/main.go bench/lab/resilience/go.mod SOME_FOLDER; cd SOME_FOLDER
 *   go get golang.org/x/sync@v0.10.0 golang.org/x/time@v0.8.0; go build; taskset -c 1 ./resilience */
#include <aco/limiter.h>
#include <aco/resource_pool.h>
#include <aco/retry.h>
#include <aco/singleflight.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, TIMES = 1000000, FLIGHTS = 100, CALLERS = 1000 };

static int64_t cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * ACO_SECOND + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*f)(void), int times)
{
    double ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = cpu_time();
        f();
        ns[i] = (double)(cpu_time() - begin) / times;
    }
    qsort(ns, ROUNDS, sizeof *ns, compare);
    printf("%-28s %8.1f\n", name, ns[ROUNDS / 2]);
}

static int resource;
static aco_resource_pool_t *pool;
static aco_limiter_t open_limiter = ACO_LIMITER_INIT(1, 1000000000);
static aco_limiter_t shut_limiter = ACO_LIMITER_INIT(ACO_SECOND * 3600, 1);
static aco_retry_budget_t budget = ACO_RETRY_BUDGET_INIT(100, 10);
static aco_singleflight_t *flights;

static void *create(void *arg)
{
    (void)arg;
    return &resource;
}

static void use_pool(void)
{
    for (int i = 0; i < TIMES; i++)
        aco_resource_pool_put(pool, aco_resource_pool_get(pool));
}

static void pass(void)
{
    for (int i = 0; i < TIMES; i++)
        (void)aco_limiter_try(&open_limiter, 1);
}

static void refuse(void)
{
    for (int i = 0; i < TIMES; i++)
        (void)aco_limiter_try(&shut_limiter, 1);
}

static volatile int succeeds = 1;

static void succeed(void)
{
    aco_retry_options_t options = {0};
    aco_retry_t retry;
    options.budget = &budget;
    for (int i = 0; i < TIMES; i++) {
        aco_retry_begin(&retry, &options);
        while (!succeeds && aco_retry_again(&retry, EAGAIN) == 0)
            ;
    }
}

static void *run(const void *key, size_t size, void *arg)
{
    (void)size, (void)arg;
    if (*(const char *)key == 's')
        aco_sleep(ACO_MILLISECOND); /* until all callers wait */
    return NULL;
}

static void *call(void *key)
{
    aco_flight_release(aco_singleflight_call(flights, key, 6));
    return NULL;
}

static void *nothing(void *arg)
{
    aco_task_yield();
    return arg;
}

static void many(aco_function_t fn)
{
    static aco_t *tasks[CALLERS];
    for (int i = 0; i < FLIGHTS; i++) {
        for (int k = 0; k < CALLERS; k++)
            tasks[k] = aco_spawn(fn, "shared", NULL);
        for (int k = 0; k < CALLERS; k++)
            aco_join(tasks[k], NULL);
    }
}

static void call_shared(void)
{
    many(call);
}

static void call_nothing(void)
{
    many(nothing);
}

static void call_alone(void)
{
    for (int i = 0; i < TIMES / 10; i++)
        call("always");
}

static void *bench(void *arg)
{
    measure("pool: get and put", use_pool, TIMES);
    measure("limiter: try, passes", pass, TIMES);
    measure("limiter: try, is refused", refuse, TIMES);
    measure("retry: no failure", succeed, TIMES);
    measure("singleflight: alone", call_alone, TIMES / 10);
    measure("singleflight: shared, a task", call_shared, FLIGHTS * CALLERS);
    measure("a task alone", call_nothing, FLIGHTS * CALLERS);
    return arg;
}

int main(void)
{
    aco_options_t detached = {0};
    aco_resource_pool_options_t of_pool = {0};
    aco_singleflight_options_t of_flights = {0};
    of_pool.create = create;
    of_flights.run = run;
    pool = aco_resource_pool_new(&of_pool);
    flights = aco_singleflight_new(&of_flights);
    detached.flags = ACO_DETACHED;
    return !pool || !flights || !aco_spawn(bench, NULL, &detached) || aco_run() != 0;
}
