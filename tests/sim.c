/* Promises of simulations (src/sim): virtual time, orders that a seed decides, what makes a run fail, and what is
 * refused. */
#include "replace.h"

#include "child.h"
#include "sanitizers.h"
#include "sim_checks.h"

#include "base/upcalls.h"

#include "aco/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

enum { TASKS = 3, ORDERS = 6 };

/* The reason for which a run of the scenario fails, or "". */
static const char *reason_of(aco_sim_function_t scenario, void *arg, uint64_t runs, const aco_sim_options_t *options)
{
    static aco_sim_stats_t result;
    int done;
    capture();
    done = aco_sim_run(scenario, arg, runs, &result, options);
    release();
    CHECK(done == (result.seed ? -1 : 0));
    CHECK(!result.seed || (errno == ECANCELED && strstr(captured_text, result.reason)));
    return result.reason;
}

#define FAILS_BY(scenario, arg, runs, options, text)                                                                   \
    do {                                                                                                               \
        if (!is_in(reason_of(scenario, arg, runs, options), text))                                                     \
            check_failed_at(__FILE__, __LINE__, "is another reason\n");                                                \
    } while (0)

/* ---- Time ---- */

static void sleep_long(aco_sim_t *sim, void *arg)
{
    int64_t began = aco_now(), *first = arg;
    struct timespec real_time;
    CHECK(aco_sleep(3600 * ACO_SECOND) == 0);
    CHECK_EQ(aco_now() - began, 3600 * ACO_SECOND);
    CHECK(aco_park_until("nothing", aco_after(ACO_SECOND)) == -1 && errno == ETIMEDOUT);
    CHECK_EQ(aco_now() - began, 3601 * ACO_SECOND);
    CHECK(aco__system.clock_gettime(CLOCK_REALTIME, &real_time) == 0);
    CHECK_EQ(real_time.tv_sec, 1000000000 + 3601);
    CHECK(!*first || *first == began); /* each run begins at the same time */
    CHECK(aco_sim_current() == sim);
    *first = began;
}

static void time_is_virtual(void)
{
    int64_t first = 0, real_begin = aco_now();
    aco_sim_stats_t result;
    CHECK(aco_sim_run(sleep_long, &first, 20, &result, NULL) == 0);
    CHECK_EQ(result.runs, 20);
    CHECK_EQ(result.simulated_ns, 20 * 3601 * ACO_SECOND);
    CHECK(aco_now() - real_begin < 3601 * ACO_SECOND); /* the thread has its clock again */
    CHECK(!aco_sim_current());
}

static void *sleep_a_while(void *arg)
{
    CHECK(aco_sleep(*(int64_t *)arg) == 0);
    return NULL;
}

static void sleep_in_order(aco_sim_t *sim, void *arg)
{
    int64_t times[TASKS] = {3, 1, 2}, began = aco_now();
    aco_t *tasks[TASKS];
    (void)arg;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = aco_spawn(sleep_a_while, &times[i], NULL);
    CHECK(aco_join(tasks[1], NULL) == 0 && aco_now() - began >= 1);
    CHECK(aco_join(tasks[0], NULL) == 0 && aco_now() - began >= 3);
    CHECK(aco_join(tasks[2], NULL) == 0);
    if (aco_now() - began != 3)
        aco_sim_fail(sim, "a turn has taken time");
}

static void turns_take_time(void)
{
    aco_sim_options_t o = {0};
    CHECK(aco_sim_run(sleep_in_order, NULL, 50, NULL, NULL) == 0);
    o.turn_ns = 1000;
    FAILS_BY(sleep_in_order, NULL, 50, &o, "a turn has taken time");
}

/* ---- Order ---- */

typedef struct orders {
    int seen[ORDERS], n, now;
} orders_t;

static orders_t *orders;

static void *note_number(void *number)
{
    orders->now = orders->now * TASKS + (int)(intptr_t)number;
    return NULL;
}

static void three_tasks(aco_sim_t *sim, void *arg)
{
    aco_t *tasks[TASKS];
    (void)sim, (void)arg;
    orders->now = 0;
    for (int i = 0; i < TASKS; i++)
        tasks[i] = aco_spawn(note_number, (void *)(intptr_t)i, NULL);
    for (int i = 0; i < TASKS; i++)
        CHECK(aco_join(tasks[i], NULL) == 0);
    for (int i = 0; i < orders->n; i++)
        if (orders->seen[i] == orders->now)
            return;
    orders->seen[orders->n++] = orders->now;
}

static int orders_of(aco_sim_schedule_t schedule)
{
    aco_sim_options_t o = {0};
    orders_t seen = {{0}, 0, 0};
    o.schedule = schedule;
    orders = &seen;
    CHECK(aco_sim_run(three_tasks, NULL, 200, NULL, &o) == 0);
    return seen.n;
}

static void all_orders_come(void)
{
    CHECK_EQ(orders_of(ACO_SIM_RANDOM), ORDERS);
    CHECK_EQ(orders_of(ACO_SIM_PCT), ORDERS);
    CHECK_EQ(orders_of(ACO_SIM_MIXED), ORDERS);
    CHECK_EQ(orders_of(ACO_SIM_FIFO), 1);
}

/* ---- Each yield is a turn; no schedule starves timers; priorities change ---- */

static void *yield_ten_times(void *unused)
{
    for (int i = 0; i < 10; i++)
        CHECK(aco_task_yield() == 0);
    return unused;
}

static void two_that_yield(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    detached(yield_ten_times, NULL);
    detached(yield_ten_times, NULL);
}

static void *set_flag(void *flag)
{
    *(int *)flag = 1;
    return NULL;
}

static void yield_until_set(aco_sim_t *sim, void *arg)
{
    int flag = 0;
    aco_t *other = aco_spawn(set_flag, &flag, NULL);
    (void)sim, (void)arg;
    while (!flag)
        CHECK(aco_task_yield() == 0);
    CHECK(aco_join(other, NULL) == 0);
}

static int time_is_over, steps[2], flips;

static void *play(void *channels)
{
    aco_channel_t **pair = channels;
    do {
        CHECK(aco_channel_send(pair[0], NULL) == 0);
        CHECK(aco_channel_receive(pair[1], NULL) == 0);
    } while (!time_is_over);
    CHECK(aco_channel_close(pair[0]) == 0);
    return NULL;
}

static void *play_back(void *channels)
{
    aco_channel_t **pair = channels;
    while (aco_channel_receive(pair[0], NULL) == 0)
        CHECK(aco_channel_send(pair[1], NULL) == 0);
    return NULL;
}

static void play_for_a_while(aco_sim_t *sim, void *arg)
{
    aco_channel_t *pair[] = {aco_channel_new(0, 0), aco_channel_new(0, 0)};
    aco_t *tasks[] = {aco_spawn(play, pair, NULL), aco_spawn(play_back, pair, NULL)};
    (void)sim, (void)arg;
    time_is_over = 0;
    CHECK(aco_sleep(10000) == 0);
    time_is_over = 1;
    CHECK(aco_join(tasks[0], NULL) == 0 && aco_join(tasks[1], NULL) == 0);
    CHECK(aco_channel_destroy(pair[0]) == 0 && aco_channel_destroy(pair[1]) == 0);
}

static void *walk(void *number)
{
    int mine = (int)(intptr_t)number, was_first = 0;
    for (int i = 0; i < 6; i++) {
        int is_first;
        CHECK(aco_sleep(1) == 0);
        is_first = ++steps[mine] > steps[!mine];
        flips += i > 0 && is_first != was_first;
        was_first = is_first;
    }
    return NULL;
}

static void walk_in_step(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    steps[0] = steps[1] = 0;
    detached(walk, (void *)0);
    detached(walk, (void *)1);
}

static void schedules_keep_their_promises(void)
{
    aco_sim_schedule_t all[] = {ACO_SIM_RANDOM, ACO_SIM_PCT, ACO_SIM_FIFO};
    for (int i = 0; i < 3; i++) {
        aco_sim_options_t o = {0};
        aco_sim_stats_t stats;
        o.schedule = all[i];
        CHECK(aco_sim_run(two_that_yield, NULL, 10, &stats, &o) == 0);
        CHECK_EQ(stats.turns, 10 * (1 + 2 * 11));
        CHECK(aco_sim_run(yield_until_set, NULL, 100, &stats, &o) == 0);
        CHECK(stats.turns < 100 * 10); /* who yields lets the others run soon */
        flips = 0;
        CHECK(aco_sim_run(walk_in_step, NULL, 100, NULL, &o) == 0);
        CHECK((flips != 0) == (all[i] != ACO_SIM_FIFO)); /* tasks that wait keep their priority but for changes */
        o.turn_ns = 1000;
        o.max_turns = 20000;
        CHECK(aco_sim_run(play_for_a_while, NULL, 100, &stats, &o) == 0);
        CHECK(stats.turns < 100 * 8000); /* PCT lets the sleeper starve for 16384 turns in some runs, not in most */
    }
}

/* ---- Addresses of tasks are not seen ---- */

enum { CROWD = 300 };

static void *nap(void *unused)
{
    CHECK(aco_sleep((int64_t)aco_sim_random(aco_sim_current(), 500)) == 0);
    return unused;
}

static void come_and_go(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    for (int i = 0; i < CROWD; i++) {
        detached(nap, NULL);
        if (i % 10 == 0)
            CHECK(aco_sleep(10) == 0);
    }
}

static void addresses_are_not_seen(void)
{
    aco_t *between[CROWD];
    aco_sim_stats_t first, later;
    aco_sim_options_t o = {0};
    o.schedule = ACO_SIM_PCT;
    CHECK(aco_sim_run(come_and_go, NULL, 1, &first, &o) == 0);
    for (int i = 0; i < CROWD; i++) {
        between[i] = aco_new(note_number, NULL, NULL);
        if (i % 50)
            continue;
        CHECK(aco_sim_run(come_and_go, NULL, 1, &later, &o) == 0);
        CHECK(later.hash == first.hash);
    }
    for (int i = 0; i < CROWD; i++)
        aco_destroy(between[i]);
}

/* ---- But a program that reads addresses is found ---- */

static void sleep_by_address(uintptr_t address)
{
    CHECK(aco_sleep((int64_t)(address / 16 % 4096)) == 0);
}

static void read_heap(aco_sim_t *sim, void *arg)
{
    void *p = malloc(100);
    (void)sim, (void)arg;
    sleep_by_address((uintptr_t)p);
    free(p);
}

static void read_channel(aco_sim_t *sim, void *arg)
{
    aco_channel_t *channel = aco_channel_new(1, 1);
    (void)sim, (void)arg;
    sleep_by_address((uintptr_t)channel);
    CHECK(aco_channel_destroy(channel) == 0);
}

static void read_stack(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    sleep_by_address((uintptr_t)__builtin_frame_address(0));
}

static void order_tasks(aco_sim_t *sim, void *arg)
{
    aco_t *a = aco_spawn(yield_ten_times, NULL, NULL), *b = aco_spawn(yield_ten_times, NULL, NULL);
    (void)sim, (void)arg;
    CHECK(aco_join(a, NULL) == 0 && aco_join(b, NULL) == 0);
    CHECK(aco_sleep((uintptr_t)a < (uintptr_t)b ? 1 : 2) == 0);
}

static void readers_of_addresses_are_found(void)
{
    aco_sim_options_t o = {0};
    aco_sim_function_t all[] = {read_heap, read_channel, read_stack, order_tasks};
    int n = aco__upcalls.instruments_all ? 3 : 4; /* then no coroutine is cached, and blocks are fresh */
    o.check = 1;
    for (int i = 0; i < n; i++)
        FAILS_BY(all[i], NULL, 30, &o, "its repetition differs: event ");
}

/* ---- FIFO is the order without a simulation ---- */

static char trail[512];
static aco_channel_t *pipe_of_letters;

static void *leave_trail(void *letter)
{
    for (int i = 0; i < 8; i++) {
        char got = 0;
        strncat(trail, letter, 1);
        if (i % 3 == 0)
            CHECK(aco_channel_send(pipe_of_letters, letter) == 0);
        else if (i % 3 == 1)
            CHECK(aco_channel_receive(pipe_of_letters, &got) == 0);
        else
            aco_task_yield();
        if (got)
            strncat(trail, &got, 1);
        if (i == 5 && *(char *)letter < 'g')
            detached(leave_trail, (char *)letter + 3);
    }
    return NULL;
}

static void leave_trails(aco_sim_t *sim, void *arg)
{
    static char letters[] = "abcdefghi";
    (void)sim, (void)arg;
    for (int i = 0; i < 3; i++)
        detached(leave_trail, &letters[i]);
}

static void *leave_trails_outside(void *arg)
{
    leave_trails(NULL, arg);
    return NULL;
}

static void fifo_is_the_usual_order(void)
{
    char usual[sizeof trail];
    aco_sim_options_t o = {0};
    pipe_of_letters = aco_channel_new(2, 1);
    detached(leave_trails_outside, NULL);
    CHECK(aco_run() == 0 && strlen(trail) > 90);
    memcpy(usual, trail, sizeof usual);
    trail[0] = 0;
    o.schedule = ACO_SIM_FIFO;
    CHECK(aco_sim_run(leave_trails, NULL, 1, NULL, &o) == 0 && strcmp(trail, usual) == 0);
    trail[0] = 0;
    o.schedule = ACO_SIM_RANDOM;
    CHECK(aco_sim_run(leave_trails, NULL, 1, NULL, &o) == 0 && strcmp(trail, usual) != 0);
    CHECK(aco_channel_destroy(pipe_of_letters) == 0);
}

static void *add_slowly(void *balance)
{
    int read = *(int *)balance;
    aco_task_yield();
    *(int *)balance = read + 1;
    return NULL;
}

static void two_deposits(aco_sim_t *sim, void *arg)
{
    int balance = 0;
    aco_t *a = aco_spawn(add_slowly, &balance, NULL), *b = aco_spawn(add_slowly, &balance, NULL);
    (void)arg;
    CHECK(aco_join(a, NULL) == 0 && aco_join(b, NULL) == 0);
    if (balance != 2)
        aco_sim_fail(sim, "a deposit is lost");
}

static void a_seed_repeats(void)
{
    aco_sim_options_t o = {0};
    aco_sim_stats_t first, again;
    capture();
    FAILS_WITH(aco_sim_run(two_deposits, NULL, 1000, &first, NULL), ECANCELED);
    o.seed = first.seed;
    FAILS_WITH(aco_sim_run(two_deposits, NULL, 1, &again, &o), ECANCELED);
    release();
    CHECK(strcmp(first.reason, "a deposit is lost") == 0 && strcmp(again.reason, first.reason) == 0);
    CHECK_EQ(again.seed, first.seed);
    CHECK_EQ(again.runs, 1);
}

static void draw_numbers(aco_sim_t *sim, void *arg)
{
    uint64_t *sum = arg;
    for (int i = 0; i < 100; i++) {
        uint64_t drawn = aco_sim_random(sim, 10);
        CHECK(drawn < 10);
        *sum = *sum * 31 + drawn + aco_sim_random(sim, 0) + aco_sim_seed(sim);
        if (drawn < 5)
            aco_sleep((int64_t)drawn);
    }
}

static void sleep_so_long(aco_sim_t *sim, void *ns)
{
    (void)sim;
    CHECK(aco_sleep(*(int64_t *)ns) == 0);
}

static void hashes_tell_runs_apart(void)
{
    uint64_t sums[3] = {0, 0, 0};
    aco_sim_stats_t results[3];
    aco_sim_options_t o = {0};
    for (int i = 0; i < 3; i++) {
        o.seed = i == 2 ? 2 : 1;
        CHECK(aco_sim_run(draw_numbers, &sums[i], 1, &results[i], &o) == 0);
    }
    CHECK(sums[0] == sums[1] && results[0].hash == results[1].hash && results[0].turns == results[1].turns);
    CHECK(sums[0] != sums[2] && results[0].hash != results[2].hash);
    for (int i = 0; i < 2; i++)
        CHECK(aco_sim_run(sleep_so_long, &(int64_t){i + 1}, 1, &results[i], NULL) == 0);
    CHECK(results[0].hash != results[1].hash);
}

/* ---- What makes a run fail ---- */

static void *lock_two(void *mutexes)
{
    aco_mutex_t **mutex = mutexes;
    CHECK(aco_mutex_lock(mutex[0]) == 0);
    aco_task_yield();
    CHECK(aco_mutex_lock(mutex[1]) == 0);
    CHECK(aco_mutex_unlock(mutex[1]) == 0 && aco_mutex_unlock(mutex[0]) == 0);
    return NULL;
}

static void two_locks(aco_sim_t *sim, void *arg)
{
    static aco_mutex_t a, b;
    static aco_mutex_t *ab[] = {&a, &b}, *ba[] = {&b, &a};
    const aco_mutex_t unlocked = ACO_MUTEX_INIT;
    (void)sim, (void)arg;
    a = b = unlocked;
    detached(lock_two, ab);
    detached(lock_two, ba);
}

static void *return_it(void *arg)
{
    return arg;
}

static void leave_a_task(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco_spawn(return_it, NULL, NULL) != NULL);
}

static void leave_a_coroutine(aco_sim_t *sim, void *kept)
{
    (void)sim;
    *(aco_t **)kept = aco_new(return_it, NULL, NULL);
}

static void yield_for_ever(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    while (aco_task_yield() == 0)
        ;
}

static void sleep_for_ever(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    while (aco_sleep(ACO_SECOND) == 0)
        ;
}

static void sleep_to_the_end_of_time(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco_sleep(20 * 365 * 24 * 3600 * ACO_SECOND) == 0);
    aco_sleep_until(ACO_FOREVER);
}

static void fail_twice(aco_sim_t *sim, void *arg)
{
    int *turns = arg;
    errno = EDOM;
    CHECK(aco_sim_fail(sim, "the first reason") == -1 && errno == EDOM);
    CHECK(aco_sim_fail(sim, "the second one") == -1);
    ++*turns;
    aco_task_yield();
    ++*turns; /* never */
}

static void fail_without_reason(aco_sim_t *sim, void *arg)
{
    (void)arg;
    aco_sim_fail(sim, NULL);
}

static void wait_for_others(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco_scheduler_open() != NULL);
    CHECK(aco_park_until("others", aco_after(ACO_SECOND)) == -1 && errno == ETIMEDOUT);
    aco_park("others");
}

static int checks, lines;

static void count_lines(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    lines++;
}

static void three_checks_at_most(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (++checks > 3)
        aco_sim_fail(sim, "checked often enough");
}

static void differ(aco_sim_t *sim, void *runs)
{
    (void)sim;
    if (++*(int *)runs % 2 == 0)
        aco_sleep(ACO_SECOND);
    aco_sleep(ACO_SECOND);
}

static void sleep_longer(aco_sim_t *sim, void *ns)
{
    (void)sim;
    CHECK(aco_sleep(++*(int64_t *)ns) == 0);
}

static void sleep_longer_at_seed_2(aco_sim_t *sim, void *ns)
{
    if (aco_sim_seed(sim) == 2)
        sleep_longer(sim, ns);
    else
        CHECK(aco_sleep(100) == 0 && aco_sleep(100) == 0);
}

static void spawn_once_more(aco_sim_t *sim, void *runs)
{
    aco_t *other;
    (void)sim;
    CHECK(aco_join(aco_spawn(return_it, NULL, NULL), NULL) == 0);
    other = aco_spawn(return_it, NULL, NULL); /* as a rule it has the address of the first */
    if (++*(int *)runs % 2)
        detached(return_it, NULL);
    CHECK(aco_join(other, NULL) == 0);
}

static void tasks_have_their_own_numbers(void)
{
    aco_sim_options_t o = {0};
    int found = 0, runs = 0;
    o.check = 1;
    for (o.seed = 1; o.seed < 20; o.seed++)
        found |= strstr(reason_of(spawn_once_more, &runs, 1, &o), "the repetition: the turn of task 3, when 1") != NULL;
    CHECK(found);
}

static void failures_are_told(void)
{
    aco_sim_options_t o = {0};
    aco_t *kept = NULL;
    int turns = 0;
    FAILS_BY(two_locks, NULL, 1000, NULL, "a deadlock: no task can ever run");
    FAILS_BY(leave_a_task, NULL, 1, NULL, "1 coroutines or tasks were not destroyed, joined or detached");
    FAILS_BY(leave_a_coroutine, &kept, 1, NULL, "1 coroutines or tasks were not destroyed, joined or detached");
    aco_destroy(kept);
    FAILS_BY(sleep_to_the_end_of_time, NULL, 1, NULL, "tasks sleep for more than thirty years");
    FAILS_BY(fail_twice, &turns, 5, NULL, "the first reason");
    CHECK_EQ(turns, 1);
    FAILS_BY(fail_without_reason, NULL, 1, NULL, "no reason was given");
    FAILS_BY(wait_for_others, NULL, 1, NULL, "a deadlock: no task can ever run");
    o.max_turns = 1000;
    FAILS_BY(yield_for_ever, NULL, 1, &o, "it has not ended after 1000 turns");
    FAILS_BY(sleep_for_ever, NULL, 1, &o, "it has not ended after 1000 turns");
    o.max_turns = 0;
    o.invariants = three_checks_at_most;
    checks = 0;
    FAILS_BY(sleep_for_ever, NULL, 1, &o, "checked often enough");
    o.invariants = NULL;
    o.check = 1;
    turns = 0;
    FAILS_BY(differ, &turns, 1, &o, "its repetition differs: event ");
    CHECK(is_in(captured_text, "was: the run ended; in the repetition: clock 1 was read at 1001000000000 ns"));
    FAILS_BY(sleep_longer, &(int64_t){0}, 1, &o, "the time became 1 ns; in the repetition: no task could run");
    FAILS_BY(sleep_longer_at_seed_2, &(int64_t){0}, 3, &o, "the time became 1 ns; in the repetition: no task could");
    tasks_have_their_own_numbers();
    FAILS_BY(draw_numbers, &(uint64_t){0}, 20, &o, "");
    o.invariants = three_checks_at_most;
    checks = 0;
    o.check = 0;
    CHECK(aco_sim_run(count_lines, NULL, 2, NULL, &o) == 0 && checks == 2); /* at the end of each run */
}

/* ---- Calls that are not simulated ---- */

static void open_socket(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    aco_set_name(aco_current_task(), "opener");
    errno = 0;
    CHECK(aco__system.socket(AF_INET, SOCK_RAW, 0) == -1 && errno == ENOSYS);
    CHECK(aco__system.fopen("/dev/null", "r") == NULL && errno == ENOSYS);
    aco_task_yield();
}

static void call_the_system(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco__system.listen(0, 0) == -1);
}

static void read_file(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    CHECK(aco__system.open("/dev/null", 0) == -1 && errno == ENOSYS);
    CHECK(aco__system.read(0, NULL, 0) == -1 && errno == ENOSYS);
    CHECK(aco__system.close(0) == -1 && errno == ENOSYS);
    CHECK(aco__system.write(1, "", 0) == -1 && errno == ENOSYS);
    CHECK(aco__system.fcntl(0, 1) == -1 && errno == ENOSYS);
    CHECK(aco__system.ioctl(0, 0) == -1 && errno == ENOSYS);
}

static void open_often(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    for (int i = 0; i < 25; i++)
        CHECK(aco__system.fopen("/dev/null", "r") == NULL && errno == ENOSYS);
}

static void other_calls_fail(void)
{
    aco_sim_options_t o = {0};
    const char *at = captured_text;
    int fd, n = 0;
    FAILS_BY(open_socket, NULL, 1, NULL, "socket() is not simulated; it was called in coroutine \"opener\"");
    CHECK(is_in(captured_text, "seed 1: fopen() is not simulated; it was called in coroutine \"opener\"\n"));
    FAILS_BY(open_often, NULL, 1, NULL, "fopen() is not simulated");
    while ((at = strstr(at, "fopen() is not simulated; it is called by:")) != NULL)
        at++, n++;
    CHECK_EQ(n, 20); /* of one run; the rest are not printed */
    o.invariants = call_the_system;
    FAILS_BY(count_lines, NULL, 1, &o, "listen() is not simulated; it was called outside of coroutines");
    FAILS_BY(read_file, NULL, 1, NULL, "open() is not simulated");
    fd = aco__system.open("/proc/self/statm", 0); /* outside of a run the table is what it was */
    CHECK(fd >= 0 && aco__system.read(fd, &(char){0}, 1) == 1 && aco__system.fcntl(fd, 1) >= 0);
    CHECK(aco__system.close(fd) == 0);
}

/* ---- Misuse ---- */

static void run_inside(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    FAILS_WITH(aco_sim_run(two_deposits, NULL, 1, NULL, NULL), EBUSY);
}

static void do_nothing(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
}

static void *run_in_task(void *arg)
{
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, NULL), EPERM);
    return arg;
}

static void fail_no_run(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK(sim == aco_sim_current());
    FAILS_WITH(aco_sim_fail(NULL, "a reason"), EINVAL);
}

static void seeds_end(void)
{
    aco_sim_options_t o = {0};
    o.seed = UINT64_MAX - 1;
    CHECK(aco_sim_run(do_nothing, NULL, 2, NULL, &o) == 0);
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 3, NULL, &o), EINVAL);
    CHECK(strstr(aco_error_message(), "the last seed is above"));
}

static void misuse_fails(void)
{
    aco_sim_options_t o = {0}, none = {0};
    seeds_end();
    FAILS_WITH(aco_sim_fail(aco_sim_current(), "a reason"), EINVAL);
    CHECK(aco_sim_run(fail_no_run, NULL, 1, NULL, NULL) == 0);
    FAILS_WITH(aco_sim_run(NULL, NULL, 1, NULL, NULL), EINVAL);
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 0, NULL, NULL), EINVAL);
    CHECK(strstr(aco_error_message(), "it is to run 0 times"));
    o.schedule = (aco_sim_schedule_t)4;
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, &o), EINVAL);
    o = none;
    o.changes = -1;
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, &o), EINVAL);
    o.changes = 65;
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, &o), EINVAL);
    o = none;
    o.turn_ns = -1;
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, &o), EINVAL);
    o = none;
    o.aco__reserved[3] = &o;
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, &o), EINVAL);
    CHECK(aco_sim_run(run_inside, NULL, 1, NULL, NULL) == 0);
    detached(run_in_task, NULL);
    FAILS_WITH(aco_sim_run(do_nothing, NULL, 1, NULL, NULL), EBUSY); /* the thread has a task */
    CHECK(aco_run() == 0);
    CHECK(aco_sim_run(do_nothing, NULL, 1, NULL, NULL) == 0);
}

static struct sigaction at_start; /* what handles SIGFPE */

static void what_the_thread_had_comes_back(void)
{
    aco_run_stats_t before, after;
    struct sigaction now;
    uint32_t scoped;
    CHECK(sigaction(SIGFPE, NULL, &now) == 0 && now.sa_handler == at_start.sa_handler);
    aco_run_measure(1);
    CHECK(aco_scheduler_open() != NULL);
    scoped = aco__self()->scoped_tasks;
    two_that_yield(NULL, NULL);
    CHECK(aco_run() == 0 && aco_run_stats(&before) == 0);
    CHECK(aco_sim_run(two_that_yield, NULL, 1, NULL, NULL) == 0);
    CHECK(aco_run_stats(&after) == 0 && after.runs == before.runs);
    CHECK(scoped && aco__self()->scoped_tasks == scoped);
    CHECK(aco_scheduler_close() == 0);
    two_that_yield(NULL, NULL);
    CHECK(aco_run() == 0 && aco_run_stats(&after) == 0);
    CHECK_EQ(after.runs, before.runs + 2 * 11); /* the runs are measured as before */
    aco_run_measure(0);
}

static aco_sim_function_t scenario_of_main = two_deposits;
static const char *name_of_main = "program";

static int main_with(const char *first, const char *second, const char *third, const char *fourth)
{
    const char *arguments[] = {name_of_main, first, second, third, fourth, NULL};
    int n = 1;
    while (arguments[n])
        n++;
    return aco_sim_main(n, (char **)(uintptr_t)arguments, scenario_of_main, NULL, NULL);
}

static void main_in_a_run(aco_sim_t *sim, void *arg)
{
    (void)arg;
    CHECK_EQ(main_with("--schedule", "fifo", NULL, NULL), 1);
    aco_sim_fail(sim, "after another main()");
}

static void commands_can_be_repeated(void)
{
    scenario_of_main = main_in_a_run;
    capture();
    CHECK_EQ(main_with("--max-turns", "99", NULL, NULL), 1);
    release();
    CHECK(strstr(captured_text, "after another main()\nrepeat it with: program --seed 1 --max-turns 99\n"));
    scenario_of_main = leave_a_task;
    name_of_main = "./a 'program'";
    capture();
    CHECK_EQ(main_with("--check", "--", "it's", "--seed"), 1);
    CHECK_EQ(main_with("--", "", NULL, NULL), 1);
    release();
    name_of_main = "program";
    CHECK(strstr(captured_text, "repeat it with: './a '\\''program'\\''' --seed 1 --check -- 'it'\\''s' --seed\n"));
    CHECK(strstr(captured_text, " --seed 1 -- ''\n"));
}

static void command_lines_are_read(void)
{
    CHECK_EQ(main_with("--help", NULL, NULL, NULL), 0);
    CHECK_EQ(main_with("--schedule", "fifo", "--runs", "0"), 2);
    CHECK_EQ(main_with("--runs", NULL, NULL, NULL), 2);
    CHECK_EQ(main_with("--runs", "-1", NULL, NULL), 2);
    CHECK_EQ(main_with("--runs", "1x", NULL, NULL), 2);
    CHECK_EQ(main_with("--seed", "99999999999999999999", NULL, NULL), 2);
    CHECK_EQ(main_with("--schedule", "best", NULL, NULL), 2);
    CHECK_EQ(main_with("--changes", "65", NULL, NULL), 2);
    CHECK_EQ(main_with("--turn-ns", "2000000000", NULL, NULL), 2);
    CHECK_EQ(main_with("--bogus", NULL, NULL, NULL), 2);
    capture();
    CHECK_EQ(main_with("--schedule", "pct", "--turn-ns", "1000"), 1);
    release();
    CHECK(strstr(captured_text, "a deposit is lost\nrepeat it with: program --seed "));
    CHECK(strstr(captured_text, " --schedule pct --turn-ns 1000\n"));
    commands_can_be_repeated();
    scenario_of_main = count_lines;
    CHECK_EQ(main_with("--seed", "18446744073709551615", NULL, NULL), 0);
    CHECK_EQ(main_with("--seed", "18446744073709551615", "--runs", "2"), 2);
    lines = 0;
    CHECK_EQ(main_with("--seed", "7", NULL, NULL), 0);
    CHECK_EQ(lines, 1);
    CHECK_EQ(main_with("--seed", "7", "--runs", "9"), 0);
    CHECK_EQ(lines, 10);
    CHECK_EQ(main_with("--check", NULL, NULL, NULL), 0);
    CHECK_EQ(lines, 2010);
}

/* ---- The process dies ---- */

static void abort_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        abort();
}

static int raised;

static void raise_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        raise(raised);
}

static void explain(aco_sim_t *sim, void *arg)
{
    (void)sim, (void)arg;
    (void)aco_explain_overflow();
}

static char *volatile nowhere = (char *)8;

static void fault_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        *nowhere = 1;
}

static void exit_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        exit(0);
}

static void quick_exit_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        quick_exit(0);
}

#ifndef CHILD_SKIPS
static aco_sim_function_t dying;
static void (*handler)(int signal);

static void run_dying(void)
{
    if (handler)
        signal(raised, handler);
    (void)aco_sim_run(explain, NULL, 2, NULL, NULL); /* the library's handler knows that of the run now */
    (void)aco_sim_run(dying, NULL, 5, NULL, NULL);
}

/* It ends so; `text` is on stderr. */
static int dies(aco_sim_function_t scenario, int signal, const char *text)
{
    child_end_t end;
    dying = scenario;
    end = child_run(run_dying);
    if ((signal ? WIFSIGNALED(end.status) && WTERMSIG(end.status) == signal : WIFEXITED(end.status)) &&
        strstr(end.text, text))
        return 1;
    fprintf(stderr, "status %#x, \"%s\", not \"%s\"\n", (unsigned)end.status, end.text, text);
    return 0;
}

/* It goes on, and nothing is told. */
static int survives(aco_sim_function_t scenario)
{
    child_end_t end;
    dying = scenario;
    end = child_run(run_dying);
    return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0 && !strstr(end.text, "seed");
}

static void signals_are_told(void)
{
    int signals[] = {SIGTERM, SIGINT,  SIGTRAP, SIGALRM,
                     SIGPIPE, SIGABRT, UNDER_ASAN ? SIGHUP : SIGFPE /* one is ASan's */};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char text[100];
        raised = signals[i];
        signal(raised, SIG_DFL); /* a shell has what runs in its background ignore SIGINT; nohup, SIGHUP */
        snprintf(text, sizeof text, "acorn: simulation: seed 3: the process dies by signal %d\n", raised);
        CHECK(dies(raise_at_seed_3, raised, text));
    }
    CHECK(dies(abort_at_seed_3, SIGABRT, "seed 3: the process dies by signal 6\n"));
    CHECK(dies(fault_at_seed_3, SIGSEGV, "seed 3: the process dies by signal 11\n"));
}

/* ---- With handlers of the program's ---- */

static void go_on(int signal)
{
    (void)signal;
}

static void give_up(int number)
{
    signal(number, SIG_DFL);
}

static void *mapped;

static void let_write(int signal)
{
    (void)signal;
    CHECK(mprotect(mapped, 1, PROT_READ | PROT_WRITE) == 0);
}

static void write_at_seed_3(aco_sim_t *sim, void *arg)
{
    (void)arg;
    if (aco_sim_seed(sim) == 3)
        *(volatile char *)mapped = 1;
}

static void handlers_come_first(void)
{
    raised = SIGTERM;
    handler = go_on;
    CHECK(survives(raise_at_seed_3));
    handler = SIG_IGN;
    CHECK(survives(raise_at_seed_3));
    raised = SIGSEGV;
    handler = let_write;
    mapped = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED && survives(write_at_seed_3));
    handler = give_up;
    CHECK(dies(write_at_seed_3, SIGSEGV, "seed 3: the process dies by signal 11\n"));
    CHECK(munmap(mapped, 1) == 0);
    handler = NULL;
}

/* ---- Other ends ---- */

static void fork_at_seed_3(aco_sim_t *sim, void *arg)
{
    int status = 1;
    pid_t child = aco_sim_seed(sim) == 3 ? fork() : -1;
    (void)arg;
    if (child == 0)
        exit(0);
    CHECK(child == -1 || (waitpid(child, &status, 0) == child && status == 0));
}

#if UNDER_ASAN
void __sanitizer_set_report_fd(void *fd);

static void free_twice_at_seed_3(aco_sim_t *sim, void *arg)
{
    char *volatile p = malloc(1);
    (void)arg;
    __sanitizer_set_report_fd((void *)(intptr_t)open("/dev/null", O_WRONLY));
    free(p);
    if (aco_sim_seed(sim) == 3)
        free(p);
}
#endif

static void deaths_are_told(void)
{
    signals_are_told();
    handlers_come_first();
    CHECK(dies(exit_at_seed_3, 0, "acorn: simulation: seed 3: the process ends by exit()\n"));
    CHECK(dies(quick_exit_at_seed_3, 0, "acorn: simulation: seed 3: the process ends by quick_exit()\n"));
    CHECK(survives(fork_at_seed_3));
#if UNDER_ASAN
    CHECK(dies(free_twice_at_seed_3, 0, "acorn: simulation: seed 3: a sanitizer ends the process\n"));
#endif
}
#else
static void deaths_are_told(void)
{
    (void)abort_at_seed_3, (void)raise_at_seed_3, (void)explain, (void)fault_at_seed_3, (void)exit_at_seed_3;
    (void)quick_exit_at_seed_3;
}
#endif

int main(void)
{
    CHECK(sigaction(SIGFPE, NULL, &at_start) == 0);
    time_is_virtual();
    turns_take_time();
    all_orders_come();
    schedules_keep_their_promises();
    addresses_are_not_seen();
    readers_of_addresses_are_found();
    fifo_is_the_usual_order();
    a_seed_repeats();
    hashes_tell_runs_apart();
    failures_are_told();
    other_calls_fail();
    misuse_fails();
    what_the_thread_had_comes_back();
    command_lines_are_read();
    deaths_are_told();
    return check_result("sim");
}
