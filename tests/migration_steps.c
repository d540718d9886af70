/* What depends on the calling thread, asked by coroutines that migrate at every step.
 *
 * migration_steps PART [COUNT [THREADS]]
 *   steps    every call that acts for "the calling thread" acts for the present one, after every kind of switch
 *   recipe   docs/threads.md: accessors for one's own thread-locals and for errno that hold under link-time
 * optimisation */
#define _GNU_SOURCE
#include "threads_at_once.h"

/* ---- steps ---- */

typedef struct migrant {
    shared_t shared;
    aco_t *co, *partner, *helper;
    aco_t *next;        /* who is to be resumed: the one that yielded */
    aco_t *stray;       /* made by a thread before, to be destroyed by the next */
    unsigned deferred, ended;
    uint64_t looks;
} migrant_t;

static migrant_t *migrants;
static aco_local_key_t key;
ACO_LOCAL(aco_t *, its_local);

static int is_it(aco_t *co, void *arg)
{
    return co == arg;
}

static void deferred(void *arg)
{
    migrant_t *w = arg;
    CHECK_EQ(here()->id, w->shared.at);
    CHECK(aco_error_message() == here()->message);
    w->deferred++;
}

/* All that depends on the thread or on the running coroutine. Inlined everywhere, so that one function has it many
 * times with switches between: a compiler that could keep a value across a switch can do it here. */
static inline __attribute__((always_inline)) void look(migrant_t *w, aco_t *self)
{
    CHECK_EQ(here()->id, w->shared.at);
    CHECK(aco_get_co() == self && aco_co() == self);
    CHECK(aco_get_arg() == w);
    CHECK(!aco_is_in_main_co());
    CHECK_EQ(aco_state(self), ACO_STATE_RUNNING);
    CHECK(aco_slot(NULL) == (void *)&w->next);
    CHECK(aco_get_local(key) == self);
    CHECK(*its_local() == self);
    *errno_here() = 0;
    CHECK(aco_send(self, NULL) == ACO_ERROR);
    CHECK_EQ(*errno_here(), EBUSY);
    CHECK(aco_error_message() == here()->message);
    *errno_here() = 0;
    CHECK_EQ(aco_yield_to(NULL), -1);
    CHECK_EQ(*errno_here(), EINVAL);
    w->looks++;
}

static void settle(migrant_t *w, aco_t *self)
{
    CHECK_EQ(aco_set_slot(NULL, &w->next), 0);
    CHECK_EQ(aco_set_local(key, self), 0);
    *its_local() = self;
}

/* Deferred and made on this thread. */
static inline __attribute__((always_inline)) void act(migrant_t *w)
{
    unsigned before = w->deferred;
    aco_t *stray;
    CHECK_EQ(aco_defer(deferred, w), 0);
    CHECK_EQ(aco_defer_pop(1), 0);
    CHECK_EQ(w->deferred, before + 1);
    if (w->looks % 8 != 0)
        return;
    stray = aco_new(idle, NULL, NULL);
    CHECK(stray != NULL);
    if (w->stray)
        aco_destroy(w->stray);
    w->stray = stray;
}

/* Resumed by the coroutine; suspended on one thread, it goes on, on another, for another resume of it. */
static void *helps(void *arg)
{
    migrant_t *w = arg;
    settle(w, w->helper);
    for (;;) {
        look(w, w->helper);
        CHECK_EQ(aco_state(w->co), ACO_STATE_RESUMING);
        CHECK(aco_yield_value(NULL) == w);
        look(w, w->helper);
        CHECK_EQ(aco_state(w->co), ACO_STATE_RESUMING);
        CHECK(aco_yield_value(w) == NULL);
    }
    return NULL;
}

/* Takes over from the coroutine and gives back to it, the second time on another thread. */
static void *takes_over(void *arg)
{
    migrant_t *w = arg;
    settle(w, w->partner);
    for (;;) {
        look(w, w->partner);
        CHECK_EQ(aco_yield_to(w->co), 0);
        look(w, w->partner);
        w->next = w->partner;
        aco_yield();
        look(w, w->partner);
        act(w);
        CHECK_EQ(aco_yield_to(w->co), 0);
    }
    return NULL;
}

static void ends(void *arg)
{
    migrant_t *w = arg;
    CHECK_EQ(here()->id, w->shared.at);
    CHECK(aco_get_co() == w->co);
    w->ended++;
}

static void *migrates(void *arg)
{
    migrant_t *w = arg;
    settle(w, w->co);
    CHECK_EQ(aco_defer(ends, w), 0);
    for (;;) {
        look(w, w->co);
        w->next = w->co;
        CHECK(aco_yield_value(w) == &w->shared.at);
        look(w, w->co);
        act(w);
        w->next = w->co;
        aco_yield();
        look(w, w->co);
        CHECK(aco_send(w->helper, NULL) == NULL);
        look(w, w->co);
        w->next = w->co;
        CHECK(aco_yield_value(w) == &w->shared.at);
        look(w, w->co);
        CHECK(aco_send(w->helper, w) == w);
        look(w, w->co);
        CHECK_EQ(aco_yield_to(w->partner), 0); /* and back at once */
        look(w, w->co);
        w->next = w->co;
        aco_yield1(w->co);
        look(w, w->co);
        act(w);
        CHECK_EQ(aco_yield_to(w->partner), 0); /* and back from another thread */
        look(w, w->co);
        w->next = w->co;
        CHECK(aco_yield_value(NULL) == &w->shared.at);
        look(w, w->co);
        aco_resume(w->helper);
        look(w, w->co);
        CHECK(aco_send(w->helper, w) == w);
    }
    return NULL;
}

static aco_t *make(aco_function_t fn, migrant_t *w)
{
    aco_options_t options = {0};
    aco_t *co;
    options.stack_size = 64 << 10; /* room for a failing check to print */
    co = aco_new(fn, w, &options);
    CHECK(co != NULL);
    return co;
}

static void resume_migrant(migrant_t *w)
{
    void *slot = aco_slot(NULL), *local = aco_get_local(key);
    *errno_here() = 0;
    if (aco_state(w->next) == ACO_STATE_READY || w->next == w->partner)
        aco_send(w->next, NULL);
    else
        aco_send(w->next, &w->shared.at);
    CHECK_EQ(here()->id, w->shared.at);
    CHECK(aco_is_in_main_co() && aco_get_co() == NULL);
    CHECK(aco_error_message() == here()->message);
    CHECK(aco_slot(NULL) == slot && aco_get_local(key) == local);
}

/* The root context of each thread has values of its own. */
static void steps_work(void)
{
    here_t *at = here();
    aco_t *mine;
    CHECK_EQ(aco_set_slot(NULL, at), 0);
    CHECK_EQ(aco_set_local(key, at), 0);
    while (step_left()) {
        migrant_t *w = take(migrants, sizeof *w, at);
        if (!w) {
            give_back_step();
            continue;
        }
        if (!w->co) {
            w->co = make(migrates, w);
            w->partner = make(takes_over, w);
            w->helper = make(helps, w);
            w->next = w->co;
        }
        resume_migrant(w);
        give_back(&w->shared);
    }
    pthread_barrier_wait(&all_here); /* what this thread made, no other runs or destroys from here on */
    mine = aco_new(idle, at, NULL);
    CHECK_EQ(aco_each(is_it, mine), 1);
    CHECK(aco_send(mine, NULL) == at);
    aco_destroy(mine);
}

/* Ends the coroutine while it waits for nothing: aco_cancel() is on yet another thread. */
static void steps_end(void)
{
    for (unsigned i = 0; i < count; i++) {
        migrant_t *w = &migrants[i];
        if (!w->co)
            continue;
        w->shared.at = here()->id;
        CHECK_EQ(aco_cancel(w->co), 0);
        CHECK_EQ(w->ended, 1);
        CHECK_EQ(aco_cancel(w->partner), 0);
        CHECK_EQ(aco_cancel(w->helper), 0);
        aco_destroy(w->co);
        aco_destroy(w->partner);
        aco_destroy(w->helper);
        if (w->stray)
            aco_destroy(w->stray);
    }
}

/* Promise: no thread-local address of the library survives a switch. */
static void part_steps(void)
{
    unsigned long long looks = 0;
    migrants = calloc(count, sizeof *migrants);
    if (!migrants || aco_local_key_create(&key, NULL) != 0)
        exit(2);
    steps_left = 20000 + 40* (int)count;
    run_threads(steps_work, threads);
    for (unsigned i = 0; i < count; i++)
        looks += migrants[i].looks;
    CHECK(looks > 10000);
    run_threads(steps_end, 1);
    CHECK_EQ(aco_local_key_delete(key), 0);
    printf("looked around %llu times\n", looks);
    free(migrants);
}

/* ---- recipe ---- */

typedef struct user {
    shared_t shared;
    aco_t *co;
    int wanted; /* of errno */
    unsigned long long moves;
} user_t;

static user_t *users;

/* One function with many uses on both sides of switches, in a loop and out of it. */
static void *uses(void *arg)
{
    user_t *u = arg;
    unsigned id = here()->id;
    CHECK_EQ(id, u->shared.at);
    *errno_here() = (int)(1000 + id);
    aco_yield();
    for (unsigned long long i = 1;; i++) {
        CHECK_EQ(here()->id, u->shared.at);
        CHECK_EQ(*errno_here(), u->wanted);
        here()->words[0]++;
        *errno_here() = (int)(1000 + here()->id);
        aco_yield();
        CHECK_EQ(*errno_here(), u->wanted);
        here()->words[0]++;
        *errno_here() = (int)(1000 + here()->id);
        CHECK_EQ(here()->id, u->shared.at);
        if (i % 2) {
            CHECK(aco_yield_value(NULL) == NULL);
            CHECK_EQ(here()->id, u->shared.at);
            CHECK_EQ(*errno_here(), u->wanted);
            here()->words[0]++;
            *errno_here() = (int)(1000 + u->shared.at);
        }
        aco_yield1(u->co);
        CHECK_EQ(*errno_here(), u->wanted);
        here()->words[0]++;
        *errno_here() = (int)(1000 + u->shared.at);
        aco_yield();
    }
    return NULL;
}

static void recipe_work(void)
{
    here_t *at = here();
    uint64_t sent = 0;
    while (step_left()) {
        user_t *u = take(users, sizeof *u, at);
        if (!u) {
            give_back_step();
            continue;
        }
        u->moves += u->shared.last != 0;
        if (!u->co)
            u->co = aco_new(uses, u, NULL);
        else
            sent++;
        u->wanted = (int)(u->shared.at * 1000000 + sent % 1000000);
        errno = u->wanted;
        aco_send(u->co, NULL);
        CHECK_EQ(*errno_here(), 1000 + u->shared.at);
        give_back(&u->shared);
    }
    CHECK_EQ(at->words[0], sent);
}

/* Promise (docs/threads.md): the accessor recipe gives the present thread's variable after every switch. */
static void part_recipe(void)
{
    unsigned long long moves = 0;
    users = calloc(count, sizeof *users);
    if (!users)
        exit(2);
    steps_left = 20000 + 500* (int)count;
    run_threads(recipe_work, threads);
    for (unsigned i = 0; i < count; i++) {
        moves += users[i].moves;
        if (users[i].co)
            aco_destroy(users[i].co);
    }
    CHECK(moves > 10000);
    printf("%llu moves from thread to thread\n", moves);
    free(users);
}

int main(int argc, char **argv)
{
    static const migration_part_t parts[] = {
        {"steps", part_steps, 2000}, {"recipe", part_recipe, 200}, {NULL, NULL, 0}};
    return run_part(parts, argc, argv, "steps|recipe");
}
