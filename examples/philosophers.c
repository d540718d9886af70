/* Five philosophers at a round table, with a fork between every two of them. To eat, one needs both forks beside him.
 *
 * If each takes the left one first, there comes a moment when each has one and waits for the other: aco_run() finds
 * that nobody can run any more, says on stderr who waits where and for what, and fails with EDEADLK. If each takes the
 * one with the lower number first, there is no circle of waiting, and all have their meals.
 *
 * The tasks of the first dinner can never end. So each dinner has a thread of its own, and a scheduler with it. */
#include "aco.h"
#include "aco/scheduler.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "aco_assert_override.h"

enum { SEATS = 5, MEALS = 3 };

typedef struct table {
    aco_mutex_t forks[SEATS];
    int held[SEATS]; /* each fork by how many: the mutexes' promise is that it is 1 at most */
    int meals[SEATS];
    int ordered;     /* the fork with the lower number first; else the left one */
    int outcome;     /* what aco_run() left in errno, or 0 */
} table_t;

typedef struct seat {
    table_t *table;
    int number;
} seat_t;

static void take(table_t *t, int fork)
{
    assert(aco_mutex_lock(&t->forks[fork]) == 0);
    assert(++t->held[fork] == 1);
}

static void put_back(table_t *t, int fork)
{
    t->held[fork]--;
    assert(aco_mutex_unlock(&t->forks[fork]) == 0);
}

static void *philosopher(void *arg)
{
    const seat_t *seat = arg;
    table_t *t = seat->table;
    int left = seat->number, right = (seat->number + 1) % SEATS;
    int first = t->ordered && right < left ? right : left, second = left + right - first;
    while (t->meals[seat->number] < MEALS) {
        take(t, first);
        aco_task_yield(); /* what a philosopher does with one fork in hand is not known */
        take(t, second);
        t->meals[seat->number]++;
        aco_task_yield(); /* eats */
        put_back(t, second);
        put_back(t, first);
    }
    return NULL;
}

static void *dinner(void *arg)
{
    static const char *const names[SEATS] = {"Hypatia", "Kant", "Zhuangzi", "Arendt", "Hume"};
    seat_t seats[SEATS];
    table_t *t = arg;
    for (int i = 0; i < SEATS; i++) {
        const aco_options_t options = {.name = names[i], .flags = ACO_DETACHED};
        seats[i] = (seat_t){t, i};
        assertptr(aco_spawn(philosopher, &seats[i], &options));
    }
    if (aco_run() != 0) {
        t->outcome = errno;
        printf("%s\n", aco_error_message());
    }
    for (int i = 0; i < SEATS; i++)
        printf("%s has had %d of %d meals\n", names[i], t->meals[i], MEALS);
    return NULL;
}

static int have_dinner(int ordered)
{
    pthread_t thread;
    table_t t = {.ordered = ordered};
    printf("%s\n", ordered ? "the lower number first" : "the left fork first");
    fflush(stdout);
    assert(pthread_create(&thread, NULL, dinner, &t) == 0 && pthread_join(thread, NULL) == 0);
    return t.outcome;
}

int main(void)
{
    assert(have_dinner(0) == EDEADLK);
    assert(have_dinner(1) == 0);
    return 0;
}
