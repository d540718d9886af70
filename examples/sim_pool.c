/* A pool of connections, and its test in a simulation. Connecting takes time and may fail; a user who waits too long
 * gives up. With the argument `broken` the pool counts a connection only when it is there. So it opens too many if two
 * users come at about the same time, and the simulation finds out when.
 *
 *   sim_pool [--runs N] [--seed N] [--help] ... [-- broken] */
#include "aco/sim.h"

#include <string.h>

enum { LIMIT = 2, USERS = 5 };

/* ---- The code under test ---- */

typedef struct pool {
    int open, idle; /* connections; of them, those that nobody uses */
    int is_broken;
    aco_mutex_t mutex;
    aco_cond_t changed;
    int (*connect)(void); /* 0, or -1 */
} pool_t;

static int pool_open(pool_t *pool)
{
    int failed;
    pool->open += !pool->is_broken;
    aco_mutex_unlock(&pool->mutex); /* others may come while it connects */
    failed = pool->connect();
    aco_mutex_lock(&pool->mutex);
    pool->open += pool->is_broken && !failed;
    if (failed && !pool->is_broken)
        pool->open--;
    if (failed)
        aco_cond_signal(&pool->changed); /* another one may try */
    return failed;
}

static int pool_take(pool_t *pool, int64_t deadline)
{
    int failed = 0;
    aco_mutex_lock(&pool->mutex);
    while (!failed && !pool->idle && pool->open >= LIMIT)
        failed = aco_cond_wait_until(&pool->changed, &pool->mutex, deadline);
    if (!failed && pool->idle)
        pool->idle--;
    else if (!failed)
        failed = pool_open(pool);
    aco_mutex_unlock(&pool->mutex);
    return failed;
}

static void pool_give(pool_t *pool)
{
    aco_mutex_lock(&pool->mutex);
    pool->idle++;
    aco_cond_signal(&pool->changed);
    aco_mutex_unlock(&pool->mutex);
}

/* ---- The simulation ---- */

static pool_t pool;
static int in_use;

static int connect_somehow(void)
{
    aco_sim_t *sim = aco_sim_current();
    aco_sleep((int64_t)aco_sim_random(sim, 20) * ACO_MILLISECOND);
    return aco_sim_random(sim, 5) == 0 ? -1 : 0;
}

static void *use(void *arg)
{
    aco_sim_t *sim = arg;
    for (int i = 0; i < 4; i++) {
        aco_sleep((int64_t)aco_sim_random(sim, 100) * ACO_MILLISECOND);
        if (pool_take(&pool, aco_after(50 * ACO_MILLISECOND)) != 0)
            continue;
        in_use++;
        aco_sleep((int64_t)aco_sim_random(sim, 30) * ACO_MILLISECOND);
        in_use--;
        pool_give(&pool);
    }
    return NULL;
}

static void scenario(aco_sim_t *sim, void *is_broken)
{
    aco_options_t detached = {0};
    detached.flags = ACO_DETACHED;
    memset(&pool, 0, sizeof pool);
    pool.is_broken = is_broken != NULL;
    pool.connect = connect_somehow;
    in_use = 0;
    for (int i = 0; i < USERS; i++)
        aco_spawn(use, sim, &detached);
}

/* Is called whenever no task can run, and at the end. */
static void invariants(aco_sim_t *sim, void *is_broken)
{
    (void)is_broken;
    if (pool.open > LIMIT)
        aco_sim_fail(sim, "too many connections are open");
    if (in_use > pool.open - pool.idle)
        aco_sim_fail(sim, "a connection has two users");
}

int main(int argc, char **argv)
{
    int is_broken = argc > 1 && strcmp(argv[argc - 1], "broken") == 0; /* behind "--" */
    return aco_sim_main(argc, argv, scenario, invariants, is_broken ? &pool : NULL);
}
