/* Promise: a pool has at most `limit` resources, each has one user, users are served in turn, and whoever gives up,
 * fails or ends takes nothing with it. A closed pool ends empty. */
#include "resilience_tests.h"

#include <aco/resource_pool.h>

enum { LIMIT = 2, USERS = 6, TURNS = 5, MOST = 400 };

/* ---- Resources ---- */

typedef struct resource {
    int is_open, has_user, is_broken;
} resource_t;

static size_t limit = LIMIT;
static resource_t all[MOST];
static int created, open_now, creating;
static int64_t create_time;                              /* of `create`; -1: at random */
static int create_fails, check_fails, check_waits, ends; /* how many of the next calls, or at random */
static int is_random;

static int happens(int *planned, int one_in)
{
    return is_random ? below(one_in) == 0 : *planned > 0 && (*planned)--;
}

static void *create(void *arg)
{
    resource_t *r;
    int64_t time = is_random ? ms(below(20)) : create_time;
    (void)arg;
    MUST(open_now + ++creating <= (int)limit);
    if (happens(&ends, 40)) {
        creating--;
        aco_exit();
    }
    if (time && aco_sleep(time) != 0) {
        creating--;
        return NULL;
    }
    creating--;
    if (happens(&create_fails, 5)) {
        errno = ECONNREFUSED;
        return NULL;
    }
    r = &all[created++ % MOST];
    MUST(!r->is_open);
    memset(r, 0, sizeof *r);
    r->is_open = 1;
    open_now++;
    return r;
}

static int check(void *resource, void *arg)
{
    const resource_t *r = resource;
    (void)arg;
    MUST(r->is_open && !r->has_user);
    if (happens(&check_waits, 3) && aco_sleep(ms(1 + (is_random ? below(10) : 0))) != 0)
        return -1;
    if (happens(&ends, 40))
        aco_exit();
    return happens(&check_fails, 5) || r->is_broken ? -1 : 0;
}

static void destroy(void *resource, void *arg)
{
    resource_t *r = resource;
    (void)arg;
    MUST(r->is_open && !r->has_user);
    r->is_open = 0;
    open_now--;
}

static aco_resource_pool_t *pool;

static void begin(aco_sim_t *run, int has_check, int64_t idle_time)
{
    aco_resource_pool_options_t o = {0};
    sim = run;
    memset(all, 0, sizeof all);
    created = open_now = creating = create_fails = check_fails = check_waits = ends = is_random = 0;
    create_time = 0;
    o.limit = limit;
    o.create = create;
    o.destroy = destroy;
    o.check = has_check ? check : NULL;
    o.idle_time = idle_time;
    pool = aco_resource_pool_new(&o);
}

static int has(size_t in_use, size_t idle, size_t waiting)
{
    aco_resource_pool_stats_t stats;
    aco_resource_pool_stats(pool, &stats);
    return stats.in_use == in_use && stats.idle == idle && stats.waiting == waiting;
}

static void end(void)
{
    MUST(aco_resource_pool_close(pool) == 0 && has(0, 0, 0) && open_now == 0);
    errno = 0;
    MUST(!aco_resource_pool_get(pool) && errno == EPIPE);
    aco_resource_pool_destroy(pool);
}

static int fails_with(void *resource, int error)
{
    return !resource && errno == error;
}

/* ---- One thing after the other ---- */

static int order[USERS], order_count;

static void *user(void *number)
{
    void *r = aco_resource_pool_get(pool);
    MUST(r != NULL);
    order[order_count++] = (int)(intptr_t)number;
    aco_sleep(ms(10));
    aco_resource_pool_put(pool, r);
    return NULL;
}

static void in_turn(aco_sim_t *run, void *arg)
{
    void *a = NULL, *b = NULL;
    int64_t start;
    (void)arg;
    begin(run, 0, 0);
    order_count = 0;
    start = aco_now();
    MUST((a = aco_resource_pool_get(pool)) && (b = aco_resource_pool_get(pool)) && a != b && has(2, 0, 0));
    MUST(fails_with(aco_resource_pool_get_until(pool, start + 5), ETIMEDOUT) && aco_now() == start + 5);
    for (intptr_t i = 0; i < USERS; i++) {
        go(user, (void *)i);
        aco_sleep(1); /* it waits now */
    }
    MUST(has(2, 0, USERS));
    aco_resource_pool_put(pool, a);
    MUST(fails_with(aco_resource_pool_get_until(pool, aco_now()), ETIMEDOUT)); /* it is the first user's */
    aco_sleep(ms(5));
    aco_resource_pool_put(pool, b);
    aco_sleep(ms(100));
    for (int i = 0; i < USERS; i++)
        MUST(order[i] == i);
    MUST(has(0, 2, 0) && created == 2);
    MUST((a = aco_resource_pool_get_until(pool, 0)) != NULL); /* need not wait */
    MUST((b = aco_resource_pool_get(pool)) != NULL);
    aco_resource_pool_put(pool, a);
    aco_resource_pool_put(pool, b);
    MUST(aco_resource_pool_get(pool) == b); /* the one that was used last */
    aco_resource_pool_discard(pool, b);
    MUST(open_now == 1 && has(0, 1, 0));
    end();
}

static void idle_time(aco_sim_t *run, void *arg)
{
    void *a = NULL, *b = NULL;
    (void)arg;
    begin(run, 0, ms(100));
    MUST((a = aco_resource_pool_get(pool)) && (b = aco_resource_pool_get(pool)));
    aco_resource_pool_put(pool, a);
    aco_sleep(ms(50));
    aco_resource_pool_put(pool, b);
    aco_sleep(ms(50) - 1);
    aco_resource_pool_trim(pool);
    MUST(has(0, 2, 0));
    aco_sleep(1);
    aco_resource_pool_trim(pool);
    MUST(has(0, 1, 0) && open_now == 1);
    aco_sleep(ms(100));
    MUST((a = aco_resource_pool_get(pool)) && created == 3); /* b is too old */
    aco_resource_pool_put(pool, a);
    end();
}

static void *get_and_put(void *error)
{
    void *r = aco_resource_pool_get(pool);
    MUST(error ? fails_with(r, (int)(intptr_t)error) : r != NULL);
    if (r)
        aco_resource_pool_put(pool, r);
    return NULL;
}

static void failures(aco_sim_t *run, void *arg)
{
    void *a = NULL;
    (void)arg;
    begin(run, 0, 0);
    create_time = ms(10);
    create_fails = 2;
    go(get_and_put, (void *)ECONNREFUSED);
    go(get_and_put, (void *)ECONNREFUSED);
    aco_sleep(1);
    go(get_and_put, NULL); /* waits; a failure of the others is its turn */
    aco_sleep(1);
    MUST(has(2, 0, 1));
    aco_sleep(ms(11));
    MUST(has(1, 0, 0));
    aco_sleep(ms(10));
    MUST(has(0, 1, 0));
    MUST((a = aco_resource_pool_get(pool)) != NULL);
    MUST(fails_with(aco_resource_pool_get_until(pool, aco_after(5)), ETIMEDOUT)); /* the deadline ends `create` */
    ends = 1;
    go(get_and_put, NULL); /* never comes back from `create` */
    aco_sleep(ms(1));
    MUST(has(1, 0, 0));
    aco_resource_pool_put(pool, a);
    end();
}

static void checks(aco_sim_t *run, void *arg)
{
    void *a = NULL, *b = NULL;
    (void)arg;
    begin(run, 1, 0);
    MUST((a = aco_resource_pool_get(pool)) && (b = aco_resource_pool_get(pool)));
    aco_resource_pool_put(pool, a);
    aco_resource_pool_put(pool, b);
    check_waits = 1;
    MUST(fails_with(aco_resource_pool_get_until(pool, aco_after(5)), ETIMEDOUT));
    MUST(has(0, 1, 0) && open_now == 1); /* the other one was not suspected */
    ends = 1;
    go(get_and_put, NULL);
    aco_sleep(1);
    MUST(has(0, 0, 0) && open_now == 0);
    MUST((a = aco_resource_pool_get(pool)) != NULL);
    aco_resource_pool_put(pool, a);
    check_fails = 1;
    MUST((b = aco_resource_pool_get(pool)) && b != a && created == 4);
    aco_resource_pool_put(pool, b);
    end();
}

static void *get_until(void *deadline)
{
    void *r = aco_resource_pool_get_until(pool, *(const int64_t *)deadline);
    MUST(r || errno == ETIMEDOUT || errno == EPIPE);
    if (r)
        aco_resource_pool_put(pool, r);
    return NULL;
}

/* The last user gives up when the pool is closed, or has just got what came back. */
static void closing_at_deadline(aco_sim_t *run, void *arg)
{
    void *a = NULL, *b = NULL;
    int64_t deadline = aco_now() + ms(10);
    (void)arg;
    begin(run, 0, 0);
    MUST((a = aco_resource_pool_get(pool)) && (b = aco_resource_pool_get(pool)));
    go(get_until, &deadline);
    aco_sleep(below(2)); /* its timer is the first, or this task's */
    aco_sleep_until(deadline);
    aco_resource_pool_discard(pool, a);
    aco_resource_pool_discard(pool, b);
    end();
}

static void closing(aco_sim_t *run, void *arg)
{
    int64_t start;
    void *a = NULL, *b = NULL;
    (void)arg;
    begin(run, 0, 0);
    MUST((a = aco_resource_pool_get(pool)) && (b = aco_resource_pool_get(pool)));
    for (int i = 0; i < USERS; i++)
        go(get_and_put, (void *)EPIPE);
    aco_sleep(1);
    start = aco_now();
    MUST_FAIL(aco_resource_pool_close_until(pool, aco_after(ms(1))), ETIMEDOUT);
    MUST(has(2, 0, 0) && aco_now() == start + ms(1));
    aco_resource_pool_put(pool, a);
    MUST(open_now == 1);
    MUST_FAIL(aco_resource_pool_close_until(pool, 0), ETIMEDOUT);
    aco_resource_pool_discard(pool, b);
    end();
}

/* ---- Anything at random ---- */

static aco_scope_t *scopes[USERS];

static void *use(void *arg)
{
    int number = (int)(intptr_t)arg;
    for (int i = 0; i < TURNS; i++) {
        aco_scope_t scope;
        resource_t *r;
        aco_sleep(ms(below(50)));
        if (scopes[below(USERS)] && below(4) == 0)
            for (int k = 0; k < USERS; k++)
                if (scopes[k] && below(2))
                    MUST(aco_scope_cancel(scopes[k]) == 0);
        MUST(aco_scope_begin(&scope, below(3) ? ACO_FOREVER : aco_after(ms(below(40)))) == 0);
        scopes[number] = &scope;
        errno = 0;
        r = below(2) ? aco_resource_pool_get(pool) : aco_resource_pool_get_until(pool, aco_after(ms(below(60))));
        if (!r)
            MUST(errno == ETIMEDOUT || errno == ECANCELED || errno == ECONNREFUSED);
        scopes[number] = NULL;
        MUST(aco_scope_end(&scope) == 0);
        if (!r)
            continue;
        MUST(r->is_open && !r->has_user);
        r->has_user = 1;
        if (below(2))
            aco_sleep(ms(below(20)));
        r->has_user = 0;
        r->is_broken = below(5) == 0;
        if (below(5) == 0)
            aco_resource_pool_discard(pool, r);
        else
            aco_resource_pool_put(pool, r);
    }
    return NULL;
}

static void forget_scope(void *number)
{
    scopes[(intptr_t)number] = NULL;
}

static void *use_until_exit(void *number)
{
    MUST(aco_defer(forget_scope, number) == 0); /* the user may end in `create` */
    return use(number);
}

static void at_random(aco_sim_t *run, void *arg)
{
    aco_t *tasks[USERS];
    (void)arg;
    sim = run;
    begin(run, below(2), below(2) ? 0 : ms(30));
    is_random = 1;
    memset(scopes, 0, sizeof scopes);
    for (intptr_t i = 0; i < USERS; i++)
        tasks[i] = aco_spawn(use_until_exit, (void *)i, NULL);
    for (int i = 0; i < USERS; i++)
        MUST(aco_join(tasks[i], NULL) == 0);
    aco_resource_pool_trim(pool);
    MUST(creating == 0);
    end();
}

/* ---- Without memory ---- */

static void without_memory(aco_sim_t *run, void *arg)
{
    enum { MANY = 10 };
    void *all_of_them[MANY] = {NULL};
    (void)arg;
    begin(run, 0, 0);
    if (!pool) {
        MUST(errno == ENOMEM);
        return;
    }
    for (size_t n = 0; n < MANY; n++) {
        for (int i = 0; i < 2 && !all_of_them[n]; i++) /* a second try succeeds */
            MUST((all_of_them[n] = aco_resource_pool_get(pool)) || (errno == ENOMEM && has(n, 0, 0)));
        MUST(all_of_them[n] != NULL);
    }
    for (int n = 0; n < MANY; n++)
        aco_resource_pool_put(pool, all_of_them[n]);
    MUST(open_now == MANY);
    aco_resource_pool_destroy(pool); /* with what is idle */
    MUST(open_now == 0);
}

int main(void)
{
    aco_resource_pool_options_t o = {0};
    errno = 0;
    CHECK(!aco_resource_pool_new(&o) && errno == EINVAL);
    o.create = create;
    o.idle_time = -1;
    CHECK(!aco_resource_pool_new(&o) && errno == EINVAL);
    aco_resource_pool_destroy(NULL);
    SIMULATE(in_turn, 20);
    SIMULATE(idle_time, 5);
    SIMULATE(failures, 20);
    SIMULATE(checks, 20);
    SIMULATE(closing, 50);
    SIMULATE(closing_at_deadline, 50);
    SIMULATE(at_random, 400);
    limit = 10;
    fail_each(without_memory);
    return check_result("resource_pool");
}
