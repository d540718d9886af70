/* Coroutines that migrate: made on one thread, resumed by others, ended, cancelled and destroyed by yet others.
 * migration PART [COUNT [THREADS]]
 *   scale     many coroutines on small stacks, handed over at random, each with a checksum on its stack
 *   steps     every call that acts for "the calling thread" acts for the present one, after every kind of switch
 *   recipe    docs/threads.md: accessors for one's own thread-locals and for errno that hold under link-time optimisation
 *   owners    a share stack's coroutines belong to the thread that runs coroutines there
 *   libaco    so do those of aco_create(), whose calls abort
 *   heirs     coroutines outlive the thread that made them, and their memory comes back */
#define _GNU_SOURCE
#include "aco.h"
#include "check.h"
#include "child.h"
#include "lacking.h"
#include "map_aligned.h"
#include "random.h"
#include "sanitizers.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

/* Whether a resume asks for the thread even where the frames are in place. The exported functions never do. */
#if ACO_DEBUG && !defined(ACO_CONFIG_NO_INLINE)
#define RESUME_ASKS 1
#else
#define RESUME_ASKS 0
#endif

enum { MOST_THREADS = 64 };
static unsigned count, threads;

/* ---- The recipe of docs/threads.md ---- */

/* The function is called anew for each use, since it is not inlined and its volatile asm must run each time: no optimiser
 * may take two calls for one, or know what comes out. */
#define ACCESSOR(type, name, lvalue)                                                                                   \
    static __attribute__((noinline, unused)) type *name(void)                                                          \
    {                                                                                                                  \
        type *p = &(lvalue);                                                                                           \
        __asm__ volatile("" : "+r"(p));                                                                                \
        return p;                                                                                                      \
    }

typedef struct here {
    unsigned id;         /* the test's number for the thread, from 1 */
    const char *message; /* where aco_error_message() lies on it */
    random_t random;
    uint64_t words[8];   /* the recipe's: each thread counts in its own */
} here_t;

static __thread here_t this_thread;
ACCESSOR(here_t, here, this_thread)
ACCESSOR(int, errno_here, errno)

/* ---- Threads ---- */

static pthread_barrier_t all_here;

static void *start_thread(void *fn)
{
    static unsigned started;
    here_t *at = here();
    void (*run)(void);
    at->id = __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    at->random.state = at->id;
    CHECK(aco_send(NULL, NULL) == ACO_ERROR); /* refused, and so there is a message */
    at->message = aco_error_message();
    memcpy(&run, fn, sizeof run);
    pthread_barrier_wait(&all_here);
    run();
    return NULL;
}

static void run_threads(void (*fn)(void), unsigned many)
{
    pthread_t started[MOST_THREADS];
    pthread_barrier_init(&all_here, NULL, many);
    for (unsigned i = 0; i < many; i++)
        if (pthread_create(&started[i], NULL, start_thread, &fn) != 0) {
            perror("pthread_create");
            exit(2);
        }
    for (unsigned i = 0; i < many; i++)
        pthread_join(started[i], NULL);
    pthread_barrier_destroy(&all_here);
}

/* What is handed over has a lock that nobody waits for: who finds it locked takes another. It carries all that happened from
 * one thread to the next. */
static int try_lock(int *lock)
{
    return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

static void unlock(int *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Takes one of those that are `size` apart, but not one that this thread had last: so that nearly every step is on another
 * thread than the step before. NULL if there is none for now. */
typedef struct shared {
    int lock;
    unsigned last; /* the thread that had it last; atomic */
    unsigned at;   /* the one that has it now */
} shared_t;

static void *take(void *first, size_t size, here_t *me)
{
    for (int tries = 0; tries < 50; tries++) {
        char *p = (char *)first + draw(&me->random) % count * size;
        shared_t *shared = (shared_t *)(void *)p;
        if (__atomic_load_n(&shared->last, __ATOMIC_RELAXED) != me->id && try_lock(&shared->lock)) {
            shared->at = me->id;
            return p;
        }
    }
    sched_yield();
    return NULL;
}

static void give_back(shared_t *shared)
{
    __atomic_store_n(&shared->last, shared->at, __ATOMIC_RELAXED);
    unlock(&shared->lock);
}

static int steps_left; /* atomic */

static int step_left(void)
{
    return __atomic_sub_fetch(&steps_left, 1, __ATOMIC_RELAXED) >= 0;
}

/* It was not done: nothing was free. However the threads are scheduled, as many steps are done. */
static void give_back_step(void)
{
    __atomic_add_fetch(&steps_left, 1, __ATOMIC_RELAXED);
}

/* ---- scale ---- */

enum { KEPT = 12, SMALL_STACK = SANITIZED ? 64 << 10 : 8192 };
enum { FATE_GO_ON, FATE_RETURN, FATE_CANCEL, FATE_DESTROY };
static const uintptr_t RETURN_NOW = 1; /* a bit of the value sent */

typedef struct member {
    shared_t shared;
    unsigned char done, cleaned; /* it ended; how often its deferred call was made */
    unsigned char wrong;         /* what the coroutine found wrong: its stack has no room to say so */
    unsigned maker, ender;       /* threads: who made it, who ended it */
    aco_t *co;
    uintptr_t sent;
    uint64_t sum; /* what the coroutine's own checksum must be */
} member_t;

static member_t *members;
static struct {
    unsigned steps, returned, cancelled, cancelled_new, destroyed_suspended, destroyed_by_a_third, made;
} seen; /* atomic */

static void saw(unsigned *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

static void member_ends(void *arg)
{
    member_t *m = arg;
    m->cleaned++;
}

static uintptr_t reply(uint64_t sum)
{
    return (uintptr_t)(sum * 3);
}

static void *member_runs(void *arg)
{
    member_t *m = arg;
    volatile uint64_t kept[KEPT];
    uint64_t sum = m->sum;
    uintptr_t sent;
    for (unsigned i = 0; i < KEPT; i++)
        kept[i] = mix(sum + i);
    if (aco_defer(member_ends, m) != 0)
        m->wrong |= 1;
    do {
        sent = (uintptr_t)aco_yield_value((void *)reply(sum));
        if (sent != m->sent)
            m->wrong |= 2;
        for (unsigned i = 0; i < KEPT; i++)
            if (kept[i] != mix(sum + i))
                m->wrong |= 4;
        sum = mix(sum ^ sent);
        for (unsigned i = 0; i < KEPT; i++)
            kept[i] = mix(sum + i);
        if (aco_get_co() != m->co)
            m->wrong |= 8;
    } while (!(sent & RETURN_NOW));
    return (void *)reply(sum);
}

/* Three of four do without a guard page: before Linux 6.13 each is two mappings, of which a process has 65530. */
static void member_make(member_t *m, here_t *at)
{
    aco_options_t opts = {0};
    opts.stack_size = SMALL_STACK;
    opts.flags = (m - members) % 4 ? ACO_NO_GUARD : 0;
    m->sum = draw(&at->random);
    m->maker = at->id;
    m->ender = m->done = m->cleaned = m->wrong = 0;
    m->co = aco_new(member_runs, m, &opts);
    if (!m->co) {
        fprintf(stderr, "aco_new: %s\n", aco_error_message());
        exit(2);
    }
    saw(&seen.made);
}

static void member_start(member_t *m)
{
    CHECK(aco_send(m->co, NULL) == (void *)reply(m->sum));
    CHECK_EQ(m->wrong, 0);
}

static void member_send(member_t *m, here_t *at, int last)
{
    void *answer;
    m->sent = (uintptr_t)draw(&at->random) & ~RETURN_NOW;
    m->sent |= last ? RETURN_NOW : 0;
    m->sum = mix(m->sum ^ m->sent);
    answer = aco_send(m->co, (void *)m->sent);
    CHECK(answer == (void *)reply(m->sum));
    CHECK_EQ(m->wrong, 0);
    CHECK_EQ(m->co->is_end, last);
    CHECK_EQ(m->cleaned, last);
    if (last) {
        CHECK(aco_result(m->co) == answer);
        m->done = 1;
        m->ender = at->id;
        saw(&seen.returned);
    }
}

static void member_cancel(member_t *m, here_t *at)
{
    int was_new = aco_state(m->co) == ACO_STATE_READY;
    CHECK_EQ(aco_cancel(m->co), 0);
    CHECK_EQ(aco_state(m->co), ACO_STATE_DONE);
    CHECK(aco_result(m->co) == NULL);
    CHECK_EQ(m->cleaned, !was_new);
    m->done = 1;
    m->ender = at->id;
    if (at->id != m->maker)
        saw(was_new ? &seen.cancelled_new : &seen.cancelled);
}

static void member_destroy(member_t *m)
{
    int cleaned = m->cleaned;
    aco_destroy(m->co);
    CHECK_EQ(m->cleaned, cleaned);
    m->co = NULL;
}

/* A done one is destroyed by a thread that neither made nor ended it, and made again there. */
static void member_step(member_t *m, here_t *at)
{
    uint64_t random = draw(&at->random);
    int fate = random % 64 < 2 ? FATE_RETURN : random % 64 < 4 ? FATE_CANCEL : random % 64 == 4 ? FATE_DESTROY : FATE_GO_ON;
    if (m->done) {
        if (at->id == m->maker || at->id == m->ender)
            return;
        member_destroy(m);
        saw(&seen.destroyed_by_a_third);
        member_make(m, at);
        return;
    }
    saw(&seen.steps);
    if (fate == FATE_CANCEL) {
        member_cancel(m, at);
    } else if (aco_state(m->co) == ACO_STATE_READY) {
        member_start(m);
    } else if (fate == FATE_DESTROY) {
        member_destroy(m);
        saw(&seen.destroyed_suspended);
        member_make(m, at);
    } else {
        member_send(m, at, fate == FATE_RETURN);
    }
}

static void scale_make_share(void)
{
    here_t *at = here();
    for (unsigned i = 0; i < count; i++)
        if (try_lock(&members[i].shared.lock)) {
            members[i].shared.at = at->id;
            if (!members[i].co)
                member_make(&members[i], at);
            give_back(&members[i].shared);
        }
}

static void scale_work(void)
{
    here_t *at = here();
    scale_make_share();
    while (step_left()) {
        member_t *m = take(members, sizeof *m, at);
        if (!m) {
            give_back_step();
            continue;
        }
        if (m->co)
            member_step(m, at);
        give_back(&m->shared);
    }
}

/* Promise: a suspended coroutine on a private stack may be resumed, cancelled and destroyed by any thread, one at a time, and
 * none of it is lost or mixed up. */
static void part_scale(void)
{
    here_t *at = here();
    at->id = MOST_THREADS + 1;
    members = calloc(count, sizeof *members);
    if (!members)
        exit(2);
    steps_left = 20000 + 12* (int)count;
    run_threads(scale_work, threads);
    for (unsigned i = 0; i < count; i++) { /* the makers are gone; what is left, this thread ends in one way or another */
        member_t *m = &members[i];
        if (!m->co)
            continue;
        if (!m->done && i % 3 == 0)
            member_cancel(m, at);
        else if (!m->done && i % 3 == 1 && aco_state(m->co) != ACO_STATE_READY)
            member_send(m, at, 1);
        member_destroy(m);
    }
    CHECK(seen.made >= count);
    CHECK(seen.returned > 0 && seen.cancelled > 0 && seen.cancelled_new > 0);
    CHECK(seen.destroyed_suspended > 0 && seen.destroyed_by_a_third > 0);
    CHECK(seen.steps > 5000); /* the others found one that is done and not theirs to destroy */
    printf("%u made, %u times resumed by another thread; %u returned, %u + %u new ones cancelled and %u destroyed by others\n",
           seen.made, seen.steps, seen.returned, seen.cancelled, seen.cancelled_new, seen.destroyed_by_a_third);
    free(members);
}

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
static aco_key_t key;
ACO_LOCAL(aco_t *, its_local);

static int is_it(aco_t *co, void *arg)
{
    return co == arg;
}

static void *idle(void *arg)
{
    return arg;
}

static void deferred(void *arg)
{
    migrant_t *w = arg;
    CHECK_EQ(here()->id, w->shared.at);
    CHECK(aco_error_message() == here()->message);
    w->deferred++;
}

/* All that depends on the thread or on the running coroutine. Inlined everywhere, so that one function has it many times
 * with switches between: whatever a compiler could keep from one to the next, it can here. */
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
    aco_options_t opts = {0};
    aco_t *co;
    opts.stack_size = 64 << 10; /* room for a failing check to print */
    co = aco_new(fn, w, &opts);
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

/* The main flow has values of its own, one for each thread. */
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
    if (!migrants || aco_key_create(&key, NULL) != 0)
        exit(2);
    steps_left = 20000 + 40* (int)count;
    run_threads(steps_work, threads);
    for (unsigned i = 0; i < count; i++)
        looks += migrants[i].looks;
    CHECK(looks > 10000);
    run_threads(steps_end, 1);
    CHECK_EQ(aco_key_delete(key), 0);
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

/* ---- owners ---- */

static struct {
    aco_share_stack_t *stack;
    aco_t *ready, *saved, *in_place;
} owned;

static void *yields_twice(void *arg)
{
    CHECK(aco_yield_value(arg) == &owned);
    CHECK(aco_yield_value(arg) == &owned);
    return arg;
}

static aco_t *new_on(aco_share_stack_t *stack)
{
    aco_options_t opts = {0};
    opts.stack = stack;
    return aco_new(yields_twice, stack, &opts);
}

#define REFUSED(call, value, co)                                                                                       \
    do {                                                                                                               \
        char wanted[64];                                                                                               \
        *errno_here() = 0;                                                                                             \
        CHECK((call) == (value));                                                                                      \
        CHECK_EQ(*errno_here(), EPERM);                                                                                \
        snprintf(wanted, sizeof wanted, "coroutine %p: ", (void *)(co));                                               \
        CHECK(strstr(aco_error_message(), wanted) && strstr(aco_error_message(), "belongs to another thread"));        \
    } while (0)

/* In a coroutine of the thread that must not. */
static void *tries(void *arg)
{
    REFUSED(aco_send(owned.ready, NULL), ACO_ERROR, owned.ready);
    REFUSED(aco_send(owned.saved, NULL), ACO_ERROR, owned.saved);
    REFUSED(aco_yield_to(owned.ready), -1, owned.ready);
    REFUSED(aco_yield_to(owned.saved), -1, owned.saved);
#if RESUME_ASKS
    REFUSED(aco_send(owned.in_place, NULL), ACO_ERROR, owned.in_place);
    REFUSED(aco_yield_to(owned.in_place), -1, owned.in_place);
#endif
    REFUSED(aco_cancel(owned.saved), -1, owned.saved);
    return arg;
}

static void stranger(void)
{
    aco_t *co = aco_new(tries, &owned, NULL);
    for (int i = 0; i < 3; i++) {
        REFUSED(aco_send(owned.ready, &owned), ACO_ERROR, owned.ready);
        REFUSED(aco_send(owned.saved, &owned), ACO_ERROR, owned.saved);
        REFUSED(aco_cancel(owned.ready), -1, owned.ready);
        REFUSED(aco_cancel(owned.saved), -1, owned.saved);
        REFUSED(aco_cancel(owned.in_place), -1, owned.in_place);
#if RESUME_ASKS
        REFUSED(aco_send(owned.in_place, &owned), ACO_ERROR, owned.in_place);
#endif
    }
    CHECK(aco_send(co, NULL) == &owned);
    aco_destroy(co);
}

static void heir_of_the_stack(void)
{
    CHECK(aco_send(owned.ready, NULL) == owned.stack);
    CHECK(aco_send(owned.ready, &owned) == owned.stack);
    CHECK(aco_send(owned.ready, &owned) == owned.stack);
    CHECK_EQ(aco_state(owned.ready), ACO_STATE_DONE);
}

static void yields_on(void)
{
    for (;;)
        aco_yield();
}

static aco_t *foreign;

static void resume_foreign(void)
{
    aco_resume(foreign);
}

static void stranger_resumes(void)
{
    run_threads(resume_foreign, 1);
}

/* Promise: aco_resume() by a thread that has another main coroutine aborts with a message, also where the coroutine was never
 * resumed, and in debug builds where its frames are in place. A part of its own, since a forked child is to start a thread. */
static void part_libaco(void)
{
    aco_t *main_co = aco_create(NULL, NULL, 0, NULL, NULL), *co[3];
    aco_share_stack_t *stack = aco_share_stack_new(0), *unused = aco_share_stack_new(0);
    enum { READY, SAVED, IN_PLACE };
    for (int i = 0; i < 3; i++)
        co[i] = aco_create(main_co, i == READY ? unused : stack, 0, yields_on, NULL);
    aco_resume(co[SAVED]);
    aco_resume(co[IN_PLACE]);
    for (int i = 0; i < (RESUME_ASKS ? 3 : 2); i++) {
        foreign = co[i];
        ABORTS(stranger_resumes, "aco_resume", foreign, "belongs to another thread");
    }
    for (int i = 0; i < 3; i++) {
        aco_resume(co[i]);
        aco_destroy(co[i]);
    }
    aco_share_stack_destroy(stack);
    aco_share_stack_destroy(unused);
    aco_destroy(main_co);
}

/* Promises: EPERM for a coroutine whose share stack another thread owns, from aco_send(), aco_yield_to() and aco_cancel(), be
 * it new or saved; with its frames in place from aco_cancel(), and in debug builds from all. Nothing is changed by it. A
 * stack without started coroutines is free for any thread. */
static void part_owners(void)
{
    owned.stack = aco_share_stack_new(0);
    owned.ready = new_on(owned.stack);
    owned.saved = new_on(owned.stack);
    owned.in_place = new_on(owned.stack);
    CHECK(aco_send(owned.saved, NULL) == owned.stack);
    CHECK(aco_send(owned.in_place, NULL) == owned.stack);
    CHECK(UNDER_ASAN || (owned.saved->save_stack.valid_sz > 0 && owned.stack->owner == owned.in_place));
    run_threads(stranger, 1);
    CHECK_EQ(aco_state(owned.ready), ACO_STATE_READY);
    CHECK_EQ(aco_state(owned.saved), ACO_STATE_SUSPENDED);
    for (int i = 0; i < 2; i++) {
        CHECK(aco_send(owned.saved, &owned) == owned.stack);
        CHECK(aco_send(owned.in_place, &owned) == owned.stack);
    }
    CHECK(owned.saved->is_end && owned.in_place->is_end);
    run_threads(heir_of_the_stack, 1);
    aco_destroy(owned.ready);
    aco_destroy(owned.saved);
    aco_destroy(owned.in_place);
    aco_share_stack_destroy(owned.stack);
}

/* ---- heirs ---- */

static long mapped; /* bytes that the library has now; atomic */

static void *counted_map(size_t sz, size_t align, void *ctx)
{
    void *p = map_aligned(sz, align);
    (void)ctx;
    if (p)
        __atomic_fetch_add(&mapped, (long)sz, __ATOMIC_RELAXED);
    return p;
}

static void counted_unmap(void *p, size_t sz, void *ctx)
{
    (void)ctx;
    munmap(p, sz);
    __atomic_fetch_sub(&mapped, (long)sz, __ATOMIC_RELAXED);
}

static void *counted_allocate(size_t sz, void *ctx)
{
    (void)ctx;
    return malloc(sz);
}

static void counted_release(void *p, size_t sz, void *ctx)
{
    (void)ctx, (void)sz;
    free(p);
}

typedef struct orphan {
    aco_t *co;
    unsigned visits, cleaned;
} orphan_t;

static orphan_t *left;

static void orphan_ends(void *arg)
{
    ((orphan_t *)arg)->cleaned++;
}

static void *orphan_runs(void *arg)
{
    CHECK_EQ(aco_defer(orphan_ends, arg), 0);
    for (;;)
        aco_yield_value(arg);
    return NULL;
}

static void leave(void)
{
    aco_options_t opts = {0};
    for (unsigned i = 0; i < count; i++) {
        opts.stack_size = i % 16 ? 16 << 10 : 0; /* default ones go to the thread's spares when destroyed */
        left[i].co = aco_new(orphan_runs, &left[i], &opts);
        CHECK(left[i].co != NULL);
        if (i % 3 || i % 4 == 1)
            CHECK(aco_send(left[i].co, NULL) == &left[i]);
    }
}

static int count_visit(aco_t *co, void *others)
{
    if ((char *)co->arg >= (char *)left && (char *)co->arg < (char *)(left + count))
        ((orphan_t *)co->arg)->visits++;
    else
        ++*(unsigned *)others;
    return 0;
}

/* This thread's first coroutine makes it take over what the one that ended has left. */
static void check_visits(void)
{
    unsigned others = 0;
    aco_t *mine = aco_new(idle, NULL, NULL);
    for (unsigned i = 0; i < count; i++)
        left[i].visits = 0;
    CHECK_EQ(aco_each(count_visit, &others), 0);
    CHECK_EQ(others, 1);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQ(left[i].visits, left[i].co != NULL);
    aco_destroy(mine);
}

/* Share `share` of 4: goes on, and is destroyed, for one half after a cancellation. Share 1 makes its thread need no memory,
 * so that of two at once the other takes over what is left, and the next one the same. */
static void finish(unsigned share)
{
    for (unsigned i = share; i < count; i += 4) {
        CHECK(aco_send(left[i].co, NULL) == &left[i]);
        if (share != 1 && i / 4 % 2) {
            CHECK_EQ(aco_cancel(left[i].co), 0);
            CHECK_EQ(left[i].cleaned, 1);
        }
        aco_destroy(left[i].co);
        left[i].co = NULL;
    }
}

static void finish_some(void)
{
    static unsigned next;
    finish(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 2);
}

static void finish_third(void)
{
    check_visits();
    finish(2);
}

static void finish_last(void)
{
    finish(3);
}

/* Promises: coroutines outlive their thread; any thread may go on with them, and end them; a thread that takes over the memory
 * sees them by aco_each(); all of it comes back. */
static void part_heirs(void)
{
    static const aco_allocator_t counting = {counted_map, counted_unmap, counted_allocate, counted_release, NULL};
    long after_first = 0;
    CHECK_EQ(aco_set_allocator(&counting), 0);
    left = calloc(count, sizeof *left);
    if (!left)
        exit(2);
    for (int round = 0; round < 8; round++) {
        memset(left, 0, count * sizeof *left);
        run_threads(leave, 1);
        CHECK(mapped > (long)count * 4096);
        run_threads(check_visits, 1);
        run_threads(finish_some, 2);
        run_threads(finish_third, 1);
        run_threads(finish_last, 1);
        run_threads(check_visits, 1);
        if (round == 1)
            after_first = mapped; /* by now what is kept for later has been made */
        if (round > 1)
            CHECK(mapped <= after_first);
    }
    CHECK(mapped < (4 << 20) * 8);
    printf("%ld bytes kept\n", mapped);
    free(left);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        unsigned count;
    } parts[] = {{"scale", part_scale, 100000}, {"steps", part_steps, 2000}, {"recipe", part_recipe, 200},
                 {"owners", part_owners, 1},     {"libaco", part_libaco, 1},  {"heirs", part_heirs, 2000}};
    const char *wanted = argc > 1 ? argv[1] : "scale";
    threads = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
    if (threads < 2 || threads > MOST_THREADS)
        return 2;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].name, wanted) == 0) {
            count = argc > 2 ? (unsigned)atoi(argv[2]) : parts[i].count;
            parts[i].run();
            return check_result(wanted);
        }
    fprintf(stderr, "migration scale|steps|recipe|owners|libaco|heirs [COUNT [THREADS]]\n");
    return 2;
}
