/* Small random programs on several threads in a simulation, as those of sim_faults.c are on one. tests/sim_faults.py
 * puts faults into the library and counts the seeds until the simulation finds each. As a test it shows that the
 * library as it is passes.
 *
 * sim_thread_faults [option of aco_sim_main()]... -- SCENARIO */
#include <aco/mt.h>
#include <aco/offload.h>
#include <aco/scheduler.h>
#include <aco/sim.h>
#include <aco/threads.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 3, TURNS = 4 };

static aco_sim_t *sim; /* the run */

#define MUST(condition) ((condition) ? (void)0 : (void)aco_sim_fail(sim, #condition))

static int64_t soon(void)
{
    return aco_after((int64_t)aco_sim_random(sim, 3) * ACO_MILLISECOND);
}

static void pause_at_random(void)
{
    uint64_t chance = aco_sim_random(sim, 4);
    if (chance == 0)
        (void)aco_sleep((int64_t)aco_sim_random(sim, 3) * ACO_MILLISECOND);
    else if (chance == 1)
        (void)aco_task_yield();
}

/* ---- Locks ---- */

static aco_mt_mutex_t mutex;
static aco_mt_semaphore_t units;
static int holders, takers;

static void lock_once(void)
{
    if (aco_mt_mutex_lock_until(&mutex, aco_sim_random(sim, 2) ? ACO_FOREVER : soon()) != 0)
        return;
    MUST(holders++ == 0);
    pause_at_random();
    holders--;
    MUST(aco_mt_mutex_unlock(&mutex) == 0);
}

static void take_once(void)
{
    if (aco_mt_semaphore_acquire_until(&units, aco_sim_random(sim, 2) ? ACO_FOREVER : soon()) != 0)
        return;
    MUST(takers++ == 0);
    pause_at_random();
    takers--;
    aco_mt_semaphore_release(&units);
}

static void *use_locks(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        pause_at_random();
        if (aco_sim_random(sim, 2))
            lock_once();
        else
            take_once();
    }
    return unused;
}

static void *two_that_lock(void *unused)
{
    aco_t *other = aco_spawn(use_locks, NULL, NULL);
    use_locks(NULL);
    MUST(aco_join(other, NULL) == 0);
    return unused;
}

/* ---- Messages ---- */

static aco_mt_channel_t *channels[THREADS];

/* A ring: each passes on what it gets, from the thread before it to the next. */
static void *pass_on(void *unused)
{
    int index = aco_threads_index(), number = 0;
    for (int i = 0; i < TURNS; i++) {
        if (index != 0 || i)
            MUST(aco_mt_channel_receive(channels[index], &number) == 0);
        number++;
        pause_at_random();
        MUST(aco_mt_channel_send(channels[(index + 1) % THREADS], &number) == 0);
    }
    if (index == 0)
        MUST(aco_mt_channel_receive(channels[0], &number) == 0 && number == TURNS * THREADS);
    return unused;
}

/* ---- Submitted work ---- */

static unsigned done;

static void *count_one(void *unused)
{
    pause_at_random();
    __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static void *submit_some(void *unused)
{
    aco_mt_group_t group;
    MUST(aco_mt_group_begin(&group, ACO_KEEP_GOING) == 0);
    for (int i = 0; i < TURNS; i++) {
        pause_at_random();
        MUST(aco_submit(&group, count_one, NULL, NULL) == 0);
    }
    MUST(aco_mt_group_end(&group) == 0);
    return unused;
}

/* ---- Running one ---- */

typedef struct scenario {
    const char *name;
    aco_function_t run; /* on each thread of a set */
} scenario_t;

static const scenario_t scenarios[] = {{"locks", two_that_lock}, {"messages", pass_on}, {"work", submit_some}};

static void *run_set(void *scenario)
{
    MUST(aco_threads_run(THREADS, ((const scenario_t *)scenario)->run, NULL, NULL) == 0);
    return NULL;
}

static void run_scenario(aco_sim_t *run, void *scenario)
{
    sim = run;
    memset(&mutex, 0, sizeof mutex);
    memset(&units, 0, sizeof units);
    aco_mt_semaphore_release(&units);
    holders = takers = 0;
    done = 0;
    for (int i = 0; i < THREADS; i++)
        channels[i] = aco_mt_channel_new(aco_sim_random(sim, 2), sizeof(int));
    MUST(aco_offload(run_set, scenario, NULL, NULL) == 0);
    MUST(((const scenario_t *)scenario)->run != submit_some || done == TURNS * THREADS);
    for (int i = 0; i < THREADS; i++)
        aco_mt_channel_destroy(channels[i]);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (argc > 1 && strcmp(argv[argc - 1], scenarios[i].name) == 0)
            return aco_sim_main(argc, argv, run_scenario, NULL, (void *)(uintptr_t)&scenarios[i]);
    fprintf(stderr, "usage: %s [OPTION]... -- SCENARIO\n", argv[0]);
    return 2;
}
