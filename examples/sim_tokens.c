/* Clients of a service that allows 10 requests in a second, and 3 at once (aco/limiter.h), tested in a simulation. The
 * service counts, and refuses what is too much. The clients have one limiter. They give up when the scope around a
 * request ends, while they wait for the limiter or for the answer.
 *   With the argument `broken` a client whose token would come too late gives it back, and asks all the same. The
 * simulation finds when the service refuses it.
 *
 *   sim_tokens [--runs N] [--seed N] [--help] ... [-- broken] */
#include "aco/limiter.h"
#include "aco/scope.h"
#include "aco/sim.h"

#include <errno.h>
#include <string.h>

enum { AT_ONCE = 3, CLIENTS = 4, REQUESTS = 6 };
static const int64_t INTERVAL = ACO_SECOND / 10;

static aco_sim_t *sim;
static aco_limiter_t limiter;

/* ---- The service ---- */

static int64_t served_at[CLIENTS * REQUESTS];
static int served;

/* Within any time t at most AT_ONCE + t / INTERVAL requests are allowed. */
static void serve(void)
{
    served_at[served++] = aco_now();
    for (int n = AT_ONCE; n < served; n++)
        if (aco_now() - served_at[served - 1 - n] < (n + 1 - AT_ONCE) * INTERVAL)
            aco_sim_fail(sim, "the service refuses a request");
}

/* ---- The code under test ---- */

/* Returns 0 when it may go on; else -1: its scope has ended. */
static int take_token(int is_broken)
{
    aco_reservation_t token;
    if (!is_broken)
        return aco_limiter_wait(&limiter, 1);
    if (aco_limiter_reserve(&limiter, 1, &token) != 0)
        return -1;
    if (token.at > aco_deadline()) { /* it would come too late. The next client shall have it ... */
        aco_limiter_cancel(&limiter, &token);
        return 0; /* ... but this one goes on, too */
    }
    return aco_sleep_until(token.at);
}

static void request(int is_broken)
{
    aco_scope_t scope;
    aco_scope_begin(&scope, aco_after((int64_t)aco_sim_random(sim, (uint64_t)ACO_SECOND)));
    if (take_token(is_broken) == 0)
        serve();
    aco_scope_end(&scope);
}

/* ---- The simulation ---- */

static void *live(void *is_broken)
{
    for (int i = 0; i < REQUESTS; i++) {
        aco_sleep((int64_t)aco_sim_random(sim, (uint64_t)ACO_SECOND));
        request(is_broken != NULL);
    }
    return NULL;
}

static void scenario(aco_sim_t *run, void *is_broken)
{
    aco_t *clients[CLIENTS];
    sim = run;
    served = 0;
    limiter = (aco_limiter_t)ACO_LIMITER_INIT(INTERVAL, AT_ONCE);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = aco_spawn(live, is_broken, NULL);
    for (int i = 0; i < CLIENTS; i++)
        aco_join(clients[i], NULL);
    if (aco_sleep((AT_ONCE + 1) * INTERVAL) != 0 || aco_limiter_try(&limiter, AT_ONCE) != 0)
        aco_sim_fail(run, "the limiter has lost a token");
}

int main(int argc, char **argv)
{
    int is_broken = argc > 1 && strcmp(argv[argc - 1], "broken") == 0; /* behind "--" */
    return aco_sim_main(argc, argv, scenario, NULL, is_broken ? &is_broken : NULL);
}
