/* Promise: calls with one key at one time share one run and its result; who leaves ends nobody else's wait; a result is
 * released once, after its last user; a forgotten or cancelled run spoils no later one. */
#include "resilience_tests.h"

#include <aco/singleflight.h>

enum { KEYS = 3, USERS = 8, TURNS = 5, MOST = 400, MANY = 80 };

typedef struct page {
    int is_there, key;
} page_t;

static page_t pages[MOST];
static int made, there, running[256], runs, cancelled_runs, can_overlap;
static int64_t run_time; /* of `load`; -1: at random */
static aco_singleflight_t *group;

/* The key's first byte says what happens: 'f' fails, 'e' ends its task, 'z' fails without errno, others succeed. */
static void *load(const void *key, size_t size, void *arg)
{
    const unsigned char *k = key;
    page_t *page = &pages[made++ % MOST];
    int failed;
    (void)arg;
    MUST(k[size] == 0);
    MUST(++running[k[0]] == 1 || can_overlap);
    runs++;
    failed = aco_sleep(run_time >= 0 ? run_time : ms(below(30)));
    running[k[0]]--;
    cancelled_runs += failed && errno == ECANCELED;
    if (failed)
        return ACO_ERROR;
    if (k[0] == 'e')
        aco_exit();
    errno = k[0] == 'f' ? ENOENT : 0;
    if (k[0] == 'f' || k[0] == 'z')
        return ACO_ERROR;
    MUST(!page->is_there);
    page->is_there = 1;
    page->key = k[0];
    there++;
    return page;
}

static void let_go(void *result, void *arg)
{
    page_t *page = result;
    (void)arg;
    MUST(page->is_there);
    page->is_there = 0;
    there--;
    errno = EIO; /* the callers' is kept */
}

static void begin(aco_sim_t *run, int cancels_abandoned)
{
    aco_singleflight_options_t o = {0};
    sim = run;
    memset(pages, 0, sizeof pages);
    memset(running, 0, sizeof running);
    made = there = runs = cancelled_runs = can_overlap = 0;
    run_time = ms(10);
    o.run = load;
    o.release = let_go;
    o.cancels_abandoned = cancels_abandoned;
    group = aco_singleflight_new(&o);
}

static void end(void)
{
    MUST(aco_singleflight_close(group) == 0 && there == 0);
    errno = 0;
    MUST(!aco_singleflight_call(group, "a", 1) && errno == EPIPE);
    aco_singleflight_destroy(group);
}

/* ---- One thing after the other ---- */

typedef struct call {
    const char *key;
    int error; /* expected; 0: none */
    int64_t deadline; /* 0: none */
    int64_t use_time;
    size_t callers; /* expected */
} call_t;

static void *make(void *arg)
{
    const call_t *c = arg;
    const aco_flight_t *flight;
    const page_t *page;
    errno = 0;
    flight = aco_singleflight_call_until(group, c->key, strlen(c->key), c->deadline ? c->deadline : ACO_FOREVER);
    MUST(!flight == (c->error != 0) && (flight || errno == c->error));
    if (!flight)
        return NULL;
    page = flight->result;
    MUST(page->is_there && page->key == c->key[0] && flight->callers == c->callers);
    if (c->use_time)
        aco_sleep(c->use_time);
    MUST(page->is_there);
    aco_flight_release(flight);
    return NULL;
}

static void sharing(aco_sim_t *run, void *arg)
{
    call_t a = {"a", 0, 0, 0, 3}, late = {"a", 0, 0, ms(5), 1}, b = {"b", 0, 0, 0, 1}, fails = {"f", ENOENT, 0, 0, 0},
           ends = {"e", ECANCELED, 0, 0, 0}, unknown = {"z", EINVAL, 0, 0, 0}, longer = {"ab", 0, 0, 0, 1},
           gives_up = {"a", ETIMEDOUT, aco_after(5), 0, 0};
    (void)arg;
    begin(run, 0);
    can_overlap = 1; /* of "a" and "ab" */
    for (int i = 0; i < 3; i++)
        go(make, &a);
    go(make, &b);
    go(make, &longer);
    for (int i = 0; i < 2; i++) {
        go(make, &fails);
        go(make, &ends);
        go(make, &unknown);
        go(make, &gives_up);
    }
    aco_sleep(1);
    MUST(runs == 6);
    aco_sleep(ms(10));
    make(&late);
    MUST(runs == 7 && there == 0);
    end();
}

static void leaving(aco_sim_t *run, void *cancels)
{
    call_t first = {"a", ETIMEDOUT, aco_after(ms(1)), 0, 0}, second = {"a", 0, 0, 0, 1}, alone = {"a", 0, 0, 0, 1};
    begin(run, cancels != NULL);
    can_overlap = cancels != NULL; /* with one that is cancelled */
    go(make, &first);
    aco_sleep(1);
    go(make, &second); /* goes on alone */
    aco_sleep(ms(20));
    MUST(runs == 1 && cancelled_runs == 0);
    first.deadline = aco_after(ms(1));
    make(&first);
    go(make, &alone); /* joins the abandoned run, or begins a new one if that was cancelled */
    aco_sleep(ms(20));
    MUST(runs == (cancels ? 3 : 2) && cancelled_runs == (cancels != NULL) && there == 0);
    first.deadline = aco_now(); /* the run may not have begun when it is abandoned */
    make(&first);
    aco_sleep(ms(20));
    MUST((runs == 3 || (cancels && runs == 4 && cancelled_runs == 2)) && there == 0);
    end();
}

static void leaving_kept(aco_sim_t *run, void *arg)
{
    leaving(run, arg);
}

static void leaving_cancels(aco_sim_t *run, void *arg)
{
    (void)arg;
    leaving(run, run);
}

static void forgetting(aco_sim_t *run, void *arg)
{
    call_t old = {"a", 0, 0, ms(10), 1}, renewed = {"a", 0, 0, 0, 2};
    (void)arg;
    begin(run, 0);
    can_overlap = 1;
    go(make, &old);
    aco_sleep(ms(5));
    aco_singleflight_forget(group, "a", 1);
    aco_singleflight_forget(group, "b", 1);
    go(make, &renewed);
    aco_sleep(ms(7)); /* the old run has ended; the new one can still be joined */
    MUST(runs == 2);
    go(make, &renewed);
    aco_sleep(ms(20));
    MUST(runs == 2 && there == 0);
    end();
}

static void closing(aco_sim_t *run, void *arg)
{
    call_t ends = {"a", ECANCELED, 0, 0, 0}, others = {"c", ECANCELED, 0, 0, 0}, uses = {"b", 0, 0, ms(30), 1};
    (void)arg;
    begin(run, 0);
    go(make, &uses);
    aco_sleep(ms(11));
    go(make, &ends);
    go(make, &others);
    aco_sleep(1);
    MUST_FAIL(aco_singleflight_close_until(group, aco_after(ms(1))), ETIMEDOUT); /* a result is in use */
    MUST(cancelled_runs == 2 && there == 1);
    end();
}

static void *call_many(void *number)
{
    char key[16];
    const aco_flight_t *flight;
    snprintf(key, sizeof key, "k%d", (int)(intptr_t)number / 2);
    flight = aco_singleflight_call(group, key, strlen(key));
    MUST(flight && flight->callers == 2);
    if (flight)
        aco_flight_release(flight);
    return NULL;
}

static void many(aco_sim_t *run, void *arg) /* the table grows */
{
    (void)arg;
    begin(run, 0);
    can_overlap = 1;
    for (intptr_t i = 0; i < MANY; i++)
        go(call_many, (void *)i);
    aco_sleep(ms(20));
    MUST(runs == MANY / 2);
#ifdef COUNTS_MEMORY
    run_time = 0;
    for (long i = 0, before = 0; i < MANY * 2; i++, before = before ? before : memory) {
        aco_flight_release(aco_singleflight_call(group, "a", 1));
        MUST(i == 0 || memory == before); /* runs that have ended count no more */
    }
#endif
    end();
}

/* ---- Anything at random ---- */

static void *use(void *arg)
{
    static const char *const keys[KEYS] = {"a", "f", "e"};
    for (int i = 0; i < TURNS; i++) {
        const char *key = keys[below(KEYS)];
        const aco_flight_t *flight;
        aco_scope_t scope;
        aco_sleep(ms(below(30)));
        MUST(aco_scope_begin(&scope, below(2) ? ACO_FOREVER : aco_after(ms(below(30)))) == 0);
        errno = 0;
        flight = aco_singleflight_call(group, key, 1);
        MUST(!flight || key[0] == 'a');
        MUST(flight || errno == ETIMEDOUT || errno == (key[0] == 'f' ? ENOENT : ECANCELED));
        MUST(aco_scope_end(&scope) == 0);
        if (!flight)
            continue;
        aco_sleep(ms(below(10)));
        MUST(((page_t *)flight->result)->is_there && flight->callers > 0);
        aco_flight_release(flight);
    }
    return arg;
}

static void at_random(aco_sim_t *run, void *arg)
{
    aco_t *tasks[USERS];
    (void)arg;
    sim = run;
    begin(run, below(2));
    run_time = -1;
    can_overlap = 1; /* the same */
    for (int i = 0; i < USERS; i++)
        tasks[i] = aco_spawn(use, NULL, NULL);
    for (int i = 0; i < USERS; i++)
        MUST(aco_join(tasks[i], NULL) == 0);
    end();
}

/* ---- Without memory ---- */

static void without_memory(aco_sim_t *run, void *arg)
{
    const aco_flight_t *flight = NULL;
    (void)arg;
    begin(run, 0);
    if (!group) {
        MUST(errno == ENOMEM);
        return;
    }
    for (int i = 0; i < 2 && !flight; i++) /* a second try succeeds */
        MUST((flight = aco_singleflight_call(group, "a", 1)) || errno == ENOMEM);
    MUST(flight != NULL);
    if (flight)
        aco_flight_release(flight);
    end();
}

int main(void)
{
    aco_singleflight_options_t o = {0};
    errno = 0;
    CHECK(!aco_singleflight_new(&o) && errno == EINVAL);
    o.run = load;
    group = aco_singleflight_new(&o);
    errno = 0;
    CHECK(!aco_singleflight_call(group, "a", 1) && errno == EPERM); /* and no run has begun */
    aco_singleflight_destroy(group);
    aco_singleflight_destroy(NULL);
    SIMULATE(sharing, 50);
    SIMULATE(leaving_kept, 50);
    SIMULATE(leaving_cancels, 50);
    SIMULATE(forgetting, 50);
    SIMULATE(closing, 50);
    SIMULATE(many, 1);
    SIMULATE(at_random, 200);
    fail_each(without_memory);
    return check_result("singleflight");
}
