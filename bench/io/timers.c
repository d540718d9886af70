/* What timers cost, for bench-io: timers OPERATION ARMED prints nanoseconds for one. ARMED other tasks sleep meanwhile,
 * with deadlines in random order.
 *   wait       two tasks hand a semaphore to each other: a wait without a deadline
 *   until      the same with a deadline for each wait, among those of the others: set and cancelled
 *   early      the same with deadlines before all others
 *   scope      as `until`, in a scope with such a deadline for each wait
 *   after      the same; the scope's deadline by aco_after()
 *   begin      a scope with a deadline that waits for nothing: begun and ended */
#include <aco/scope.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200000, SPREAD = 1024 };

static aco_semaphore_t turn[2] = {ACO_SEMAPHORE_INIT(0), ACO_SEMAPHORE_INIT(0)};
static const char *operation;
static int64_t deadlines[SPREAD]; /* among those of the sleeping tasks */
static double took;

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static int64_t some_deadline(void)
{
    return aco_after(3600 * ACO_SECOND + (int64_t)(next_random() % (uint64_t)(3600 * ACO_SECOND)));
}

static void *sleeps(void *deadline)
{
    aco_sleep((int64_t)(intptr_t)deadline - aco_now());
    return NULL;
}

/* These wait once for `own`. */
static void wait_once(aco_semaphore_t *own, int i)
{
    (void)i;
    aco_semaphore_acquire(own);
}

static void wait_until(aco_semaphore_t *own, int i)
{
    aco_semaphore_acquire_until(own, deadlines[i % SPREAD]);
}

static void wait_in_scope(aco_semaphore_t *own, int i)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, deadlines[i % SPREAD]);
    aco_semaphore_acquire(own);
    aco_scope_end(&scope);
}

static void wait_after(aco_semaphore_t *own, int i)
{
    aco_scope_t scope;
    (void)i;
    aco_scope_begin(&scope, aco_after(60 * ACO_SECOND));
    aco_semaphore_acquire(own);
    aco_scope_end(&scope);
}

static void (*wait_as_told)(aco_semaphore_t *own, int i);

static void *hand_over(void *number)
{
    intptr_t own = (intptr_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        wait_as_told(&turn[own], i + (int)own * 7);
        aco_semaphore_release(&turn[!own]);
    }
    return NULL;
}

static void begin_and_end(void)
{
    for (int i = 0; i < 2 * ROUNDS; i++) {
        aco_scope_t scope;
        aco_scope_begin(&scope, deadlines[i % SPREAD]);
        aco_scope_end(&scope);
    }
}

static void *measure(void *armed)
{
    aco_t *tasks[2];
    int64_t began;
    for (intptr_t i = 0; i < (intptr_t)armed; i++)
        aco_spawn(sleeps, (void *)(intptr_t)some_deadline(), NULL);
    for (int i = 0; i < SPREAD; i++)
        deadlines[i] = some_deadline() - (strcmp(operation, "early") == 0 ? 3600 * ACO_SECOND : 0);
    aco_sleep(ACO_MILLISECOND); /* all of them sleep */
    began = aco_now();
    if (strcmp(operation, "begin") == 0) {
        begin_and_end();
    } else {
        for (intptr_t i = 0; i < 2; i++)
            tasks[i] = aco_spawn(hand_over, (void *)i, NULL);
        aco_semaphore_release(&turn[0]);
        for (int i = 0; i < 2; i++)
            aco_join(tasks[i], NULL);
    }
    took = (double)(aco_now() - began) / (2.0 * ROUNDS);
    printf("%.3f\n", took);
    fflush(stdout);
    _Exit(0); /* the others sleep for an hour */
}

int main(int argc, char **argv)
{
    operation = argc > 1 ? argv[1] : "wait";
    wait_as_told = strcmp(operation, "until") == 0   ? wait_until
                   : strcmp(operation, "early") == 0 ? wait_until
                   : strcmp(operation, "scope") == 0 ? wait_in_scope
                   : strcmp(operation, "after") == 0 ? wait_after
                                                     : wait_once;
    aco_spawn(measure, (void *)(intptr_t)(argc > 2 ? atoi(argv[2]) : 0), NULL);
    return aco_run();
}
