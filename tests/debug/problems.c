/* problems.c PROBLEM: a program with a problem, to be found by its debug pages alone (docs/see-inside.md): "leak",
 * "convoy", "hog", "all", or "many": 100 000 tasks and no problem. "1" to "3" are the first three, for those who are to
 * find what it is. It prints its port and ends with its input. */
#define _GNU_SOURCE
#include <aco/debug.h>
#include <aco/group.h>
#include <aco/sync.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAR_FROM_OTHERS __attribute__((noinline))

static int is_over; /* atomic */

static int is_running(void)
{
    return !__atomic_load_n(&is_over, __ATOMIC_RELAXED);
}

static int spawn(void *(*fn)(void *), void *arg, const char *name)
{
    const aco_options_t options = {.name = name};
    aco_t *task = aco_spawn(fn, arg, &options);
    return task ? aco_detach(task) : -1;
}

/* ---- leak: nobody ends a session ---- */

static aco_event_t logged_out;

FAR_FROM_OTHERS void *watch_session(void *unused);
FAR_FROM_OTHERS void *watch_session(void *unused)
{
    (void)aco_event_wait(&logged_out);
    return unused;
}

static void *accept_sessions(void *unused)
{
    char name[ACO_NAME_SIZE];
    for (unsigned i = 0; is_running() && i < 100000 && aco_sleep(2 * ACO_MILLISECOND) == 0; i++) {
        snprintf(name, sizeof name, "session %u", i);
        if (spawn(watch_session, NULL, name) != 0)
            break;
    }
    aco_event_set(&logged_out);
    return unused;
}

/* ---- convoy: a lock is held while a disk is slow ---- */

static aco_mutex_t audit;

FAR_FROM_OTHERS void write_audit(void);
FAR_FROM_OTHERS void write_audit(void)
{
    if (aco_mutex_lock(&audit) != 0)
        return;
    (void)aco_sleep(2 * ACO_MILLISECOND);
    (void)aco_mutex_unlock(&audit);
}

FAR_FROM_OTHERS void *handle_order(void *unused);
FAR_FROM_OTHERS void *handle_order(void *unused)
{
    while (is_running() && aco_sleep(5 * ACO_MILLISECOND) == 0)
        write_audit();
    return unused;
}

static void *take_orders(void *unused)
{
    aco_group_t orders;
    const aco_options_t options = {.name = "order"};
    if (aco_group_begin(&orders, ACO_KEEP_GOING) != 0)
        return NULL;
    for (int i = 0; i < 200; i++)
        (void)aco_group_spawn(&orders, handle_order, NULL, &options);
    (void)aco_group_end(&orders);
    return unused;
}

/* ---- hog: others of the thread wait until a report is packed ---- */

static volatile uint32_t packed;

FAR_FROM_OTHERS void pack_report(int64_t until);
FAR_FROM_OTHERS void pack_report(int64_t until)
{
    while (aco_now() < until)
        for (uint32_t i = 0; i < 1000; i++)
            packed = packed * 31 + i;
}

static void *write_reports(void *unused)
{
    while (is_running() && aco_sleep(300 * ACO_MILLISECOND) == 0)
        pack_report(aco_after(150 * ACO_MILLISECOND));
    return unused;
}

static void *read_sensor(void *unused)
{
    while (is_running() && aco_sleep(5 * ACO_MILLISECOND) == 0)
        continue;
    return unused;
}

/* ---- many ---- */

FAR_FROM_OTHERS void *sleep_by_depth(void *depth);
FAR_FROM_OTHERS void *sleep_by_depth(void *depth)
{
    void *result;
    if (!depth)
        return aco_event_wait(&logged_out) ? NULL : depth;
    result = sleep_by_depth((char *)depth - 1);
    __asm__ volatile("");
    return result;
}

static void *spawn_many(void *unused)
{
    char name[ACO_NAME_SIZE];
    for (uintptr_t i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "client %d", (int)i);
        if (spawn(sleep_by_depth, (void *)(i % 10), name) != 0)
            break;
    }
    while (is_running() && aco_sleep(20 * ACO_MILLISECOND) == 0)
        continue;
    aco_event_set(&logged_out);
    return unused;
}

static int has_problem(const char *problem, const char *name)
{
    return strcmp(problem, name) == 0 || strcmp(problem, "all") == 0;
}

static void *one_thread(void *problem)
{
    if (has_problem(problem, "leak"))
        (void)spawn(accept_sessions, NULL, "front desk");
    if (has_problem(problem, "convoy"))
        (void)spawn(take_orders, NULL, "shop");
    if (strcmp(problem, "many") == 0)
        (void)spawn(spawn_many, NULL, "front desk");
    (void)spawn(read_sensor, NULL, "sensor");
    (void)aco_run();
    return NULL;
}

static void *other_thread(void *problem)
{
    char name[ACO_NAME_SIZE];
    if (has_problem(problem, "hog"))
        (void)spawn(write_reports, NULL, "reports");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "sensor %d", i);
        (void)spawn(read_sensor, NULL, name);
    }
    (void)aco_run();
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const numbered[] = {"leak", "convoy", "hog"};
    pthread_t threads[2];
    char problem[16] = "many";
    int port = aco_debug_serve("127.0.0.1:0", NULL);
    if (port < 0)
        return fprintf(stderr, "%s\n", aco_error_message()), 1;
    if (argc > 1)
        snprintf(problem, sizeof problem, "%s",
                 argv[1][0] >= '1' && argv[1][0] <= '3' ? numbered[argv[1][0] - '1'] : argv[1]);
    pthread_create(&threads[0], NULL, one_thread, problem);
    pthread_create(&threads[1], NULL, other_thread, problem);
    printf("%d\n", port);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    aco_debug_stop();
    return 0;
}
