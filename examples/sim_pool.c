/* Users of a pool of connections (aco/resource_pool.h), tested in a simulation. Connecting takes time and may fail; a
 * user who waits too long for an answer gives up. Then the connection must not go back to the pool, because the answer
 * may still come. With the argument `broken` it does, and the simulation finds out when another user reads that answer.
 *
 *   sim_pool [--runs N] [--seed N] [--help] ... [-- broken] */
#include "aco/resource_pool.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 2, USERS = 5 };

static aco_sim_t *sim;
static aco_resource_pool_t *pool;
static int open_connections;

/* ---- The server: it answers questions in their order, each after some time ---- */

typedef struct connection {
    int asked, answered; /* the numbers of the last question and of the last answer that was read */
    int64_t answers_at;
} connection_t;

static void *connect_to_server(void *arg)
{
    connection_t *c;
    (void)arg;
    if (aco_sleep((int64_t)aco_sim_random(sim, 20) * ACO_MILLISECOND) != 0)
        return NULL;
    errno = ECONNREFUSED;
    c = aco_sim_random(sim, 5) == 0 ? NULL : calloc(1, sizeof *c);
    open_connections += c != NULL;
    return c;
}

static void disconnect(void *connection, void *arg)
{
    (void)arg;
    open_connections--;
    free(connection);
}

/* ---- The code under test ---- */

/* Returns 0 with the answer's number, or -1. */
static int ask(connection_t *c, int *question, int *answer)
{
    int64_t pause = (int64_t)aco_sim_random(sim, 40) * ACO_MILLISECOND;
    *question = ++c->asked;
    c->answers_at = (c->answers_at > aco_now() ? c->answers_at : aco_now()) + pause;
    if (aco_sleep_until(c->answers_at) != 0)
        return -1;
    *answer = ++c->answered;
    return 0;
}

static void use(int is_broken)
{
    connection_t *c = aco_resource_pool_get_until(pool, aco_after(50 * ACO_MILLISECOND));
    int question, answer, failed;
    aco_scope_t scope;
    if (!c)
        return;
    aco_scope_begin(&scope, aco_after(30 * ACO_MILLISECOND));
    failed = ask(c, &question, &answer);
    aco_scope_end(&scope);
    if (!failed && answer != question)
        aco_sim_fail(sim, "the answer to another question");
    if (failed && !is_broken)
        aco_resource_pool_discard(pool, c);
    else
        aco_resource_pool_put(pool, c);
}

/* ---- The simulation ---- */

static void *live(void *is_broken)
{
    for (int i = 0; i < 4; i++) {
        aco_sleep((int64_t)aco_sim_random(sim, 100) * ACO_MILLISECOND);
        use(is_broken != NULL);
    }
    return NULL;
}

static void scenario(aco_sim_t *run, void *is_broken)
{
    aco_resource_pool_options_t options = {0};
    aco_t *users[USERS];
    sim = run;
    open_connections = 0;
    options.limit = LIMIT;
    options.create = connect_to_server;
    options.destroy = disconnect;
    pool = aco_resource_pool_new(&options);
    for (int i = 0; i < USERS; i++)
        users[i] = aco_spawn(live, is_broken, NULL);
    for (int i = 0; i < USERS; i++)
        aco_join(users[i], NULL);
    aco_resource_pool_close(pool);
    aco_resource_pool_destroy(pool);
    if (open_connections != 0)
        aco_sim_fail(run, "a connection is left open");
}

/* Is called whenever no task can run, and at the end. */
static void invariants(aco_sim_t *run, void *is_broken)
{
    (void)is_broken;
    if (open_connections > LIMIT)
        aco_sim_fail(run, "too many connections are open");
}

int main(int argc, char **argv)
{
    int is_broken = argc > 1 && strcmp(argv[argc - 1], "broken") == 0; /* behind "--" */
    return aco_sim_main(argc, argv, scenario, invariants, is_broken ? &is_broken : NULL);
}
