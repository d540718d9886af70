/* The threads of a run are real ones, so that each has what is local to a thread. One of them has the baton; the others
 * stand still. At points, and where a thread would wait for another one, the seed decides which goes on. So what they
 * share needs no lock here, and a race between them is an order of points.
 *
 * Time passes when no thread can go on. If there is nothing to wait for, that is a deadlock; then the first thread goes
 * on, which ends the run. */
#include "sim/baton.h"
#include "sim/draw.h"
#include "sim/thread_frames.h"
#include "sim/world.h"

#include "aco/detail/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define real aco__sim_real

enum {
    RARITIES = 9, /* in half of a run's points to one of 256 another thread goes on */
    MOST_STAYS = 4096, /* then another one does in any case: it may be waited for in a loop */
    MOST_POINTS = 4 << 20,
    TASKS = 1000000, /* of a thread have numbers behind each other */
    MOST_AT_END = 100000, /* points until the others are left behind */
    MOST_DEADLOCKS = 1000
};
static const uint64_t HIGHEST_LOWERED = (uint64_t)1 << 62;

/* ---- Threads ---- */

aco__sim_thread_t *aco__sim_thread_after(const aco_sim_t *sim, const aco__sim_thread_t *thread)
{
    return thread->all.next == &sim->threads.all ? NULL : ACO__LINKED(thread->all.next, aco__sim_thread_t, all);
}

int aco__sim_holds_mutex(const aco__sim_thread_t *thread)
{
    for (int i = 0; i < ACO__SIM_MOST_HELD; i++)
        if (thread->held[i])
            return 1;
    return 0;
}

int aco__sim_is_halted(const aco__sim_thread_t *thread)
{
    const aco_sim_node_t *home = thread->home;
    if (home->is_stopping)
        return thread->is_at_rest && !thread->is_to_leave;
    return home->is_suspended && !aco__sim_holds_mutex(thread); /* others may wait for the mutex */
}

void aco__sim_rest(aco__sim_thread_t *thread)
{
    thread->is_at_rest = !aco__sim_holds_mutex(thread);
    if (thread->home->is_stopping && thread->is_at_rest)
        (void)aco__sim_wake(thread->sim, thread->home, INT32_MAX);
}

static void add_thread(aco_sim_t *sim, aco__sim_thread_t *thread, aco_sim_node_t *home)
{
    aco__sim_threads_t *threads = &sim->threads;
    thread->sim = sim;
    thread->here = thread->home = home;
    thread->is_at_rest = 1;
    aco__links_empty(&thread->held_in_calls);
    thread->number = ++threads->numbers;
    thread->priority = HIGHEST_LOWERED + 1 + aco__draw(&threads->draws) / 4;
    aco__links_append(&threads->all, &thread->all);
}

void aco__sim_threads_begin(aco_sim_t *sim, uint64_t seed)
{
    aco__sim_threads_t *threads = &sim->threads;
    threads->draws = seed;
    threads->others = threads->numbers = threads->stays = threads->points = threads->deadlocks = 0;
    threads->is_busy = threads->is_ending = sim->opened.has_news = 0;
    threads->rarity = (uint64_t)1 << aco__draw_below(&threads->draws, RARITIES);
    threads->lowest = HIGHEST_LOWERED;
    threads->running = &threads->first;
    threads->first.chooser.has_others = 0;
    threads->first.call = NULL;
    threads->first.turn = NULL;
    threads->first.turn_number = 0;
    threads->first.asks = NULL;
    threads->first.signals = threads->first.blocked = 0;
    threads->first.thread = pthread_self();
    memset(threads->first.held, 0, sizeof threads->first.held);
    aco__links_empty(&threads->all);
    add_thread(sim, &threads->first, &sim->nodes.scenario);
    threads->first.chooser.signals = &sim->nodes.scenario.blocked_for_good;
}

aco__sim_thread_t *aco__sim_thread_new(aco_sim_t *sim, aco_sim_node_t *home)
{
    aco__sim_threads_t *threads = &sim->threads;
    aco__sim_thread_t *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->chooser = threads->first.chooser;
    thread->chooser.has_others = 1;
    thread->chooser.tries = 0;
    thread->chooser.job = NULL;
    thread->chooser.may_hang = 0;
    thread->chooser.pool = home == &sim->nodes.scenario ? NULL : home->pool;
    thread->chooser.signals = &home->blocked_for_good;
    thread->blocked = threads->running->home == home ? threads->running->blocked : 0; /* else it is a new process */
    add_thread(sim, thread, home);
    thread->schedule.decisions = sim->decisions;
    aco__schedule_begin(&thread->schedule, threads->first.schedule.kind, sim->options.changes,
                        aco__draw(&threads->draws));
    thread->schedule.numbers = thread->number * TASKS; /* each task has another one */
    threads->others++;
    threads->first.chooser.has_others = 1;
    return thread;
}

static void count_end(aco__sim_threads_t *threads)
{
    ACO__ASSERT(threads->others > 0);
    threads->first.chooser.has_others = --threads->others > 0;
}

void aco__sim_thread_drop(aco__sim_thread_t *thread)
{
    count_end(&thread->sim->threads);
    aco__links_remove(&thread->all);
    free(thread);
}

void aco__sim_threads_free(aco_sim_t *sim)
{
    aco__sim_thread_t *next;
    for (aco__sim_thread_t *thread = aco__sim_thread_after(sim, &sim->threads.first); thread; thread = next) {
        next = aco__sim_thread_after(sim, thread);
        if (thread->has_ended && thread->is_joinable) /* by a thread of a node that has crashed, or by nobody */
            (void)real.pthread_join(thread->thread, NULL);
        if (thread->has_ended) /* else it waits for the baton for ever */
            free(thread);
    }
}

/* ---- Who goes on ---- */

static void end_wait(aco__sim_thread_t *thread, int result)
{
    thread->call = NULL;
    thread->object = NULL;
    thread->result = result;
}

static uint64_t count_able(aco_sim_t *sim)
{
    uint64_t n = 0;
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        n += (uint64_t)aco__sim_can_go_on(thread);
    return n;
}

/* Number `n`, from 0 on, of those that can go on. */
static aco__sim_thread_t *nth_able(aco_sim_t *sim, uint64_t n)
{
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (aco__sim_can_go_on(thread) && n-- == 0)
            return thread;
    return NULL;
}

static aco__sim_thread_t *highest_able(aco_sim_t *sim)
{
    aco__sim_thread_t *highest = NULL;
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (aco__sim_can_go_on(thread) && (!highest || thread->priority > highest->priority))
            highest = thread;
    return highest;
}

/* The next one behind the running one. */
static aco__sim_thread_t *next_able(aco_sim_t *sim)
{
    aco__sim_thread_t *thread = sim->threads.running;
    do {
        thread = aco__sim_thread_after(sim, thread);
        thread = thread ? thread : &sim->threads.first;
    } while (!aco__sim_can_go_on(thread) && thread != sim->threads.running);
    return thread;
}

/* Of `n` that can go on. */
static aco__sim_thread_t *able_by_schedule(aco_sim_t *sim, uint64_t n, int leaves)
{
    aco__sim_threads_t *threads = &sim->threads;
    aco__sim_thread_t *self = threads->running;
    aco_sim_schedule_t kind = threads->first.schedule.kind;
    int stays = aco__sim_can_go_on(self) && !leaves && ++threads->stays < MOST_STAYS &&
                (kind == ACO_SIM_FIFO || aco__draw_below(&threads->draws, threads->rarity) != 0);
    if (!stays)
        threads->stays = 0;
    if (stays && kind != ACO_SIM_PCT)
        return self;
    if (kind == ACO_SIM_FIFO)
        return next_able(sim);
    if (kind == ACO_SIM_RANDOM)
        return nth_able(sim, aco__draw_below(&threads->draws, n));
    if (!stays)
        self->priority = threads->lowest--;
    return highest_able(sim);
}

/* How many that can go on stand before `thread`, from `from` on, once around. */
static uint64_t able_before(aco_sim_t *sim, aco__sim_thread_t *from, const aco__sim_thread_t *thread)
{
    uint64_t n = 0;
    for (aco__sim_thread_t *at = from; at != thread;) {
        n += (uint64_t)aco__sim_can_go_on(at);
        at = aco__sim_thread_after(sim, at);
        at = at ? at : &sim->threads.first;
    }
    return n;
}

/* The one with so many before it. */
static aco__sim_thread_t *able_behind(aco_sim_t *sim, aco__sim_thread_t *from, uint64_t before)
{
    for (aco__sim_thread_t *at = from;;) {
        if (aco__sim_can_go_on(at) && before-- == 0)
            return at;
        at = aco__sim_thread_after(sim, at);
        at = at ? at : &sim->threads.first;
    }
}

/* Of `n` that can go on. The decision is how many come before it: 0 is the running one, unless it has been long. */
static aco__sim_thread_t *able_by_decision(aco_sim_t *sim, uint64_t n, int leaves)
{
    aco__sim_threads_t *threads = &sim->threads;
    aco__sim_thread_t *from = threads->running, *next;
    if (!sim->decisions)
        return able_by_schedule(sim, n, leaves);
    if (!sim->decisions->replays) {
        next = able_by_schedule(sim, n, leaves);
        (void)aco__sim_decide(sim, ACO__SIM_THREADS, able_before(sim, from, next), n);
        return next;
    }
    next = able_behind(sim, from, aco__sim_decide(sim, ACO__SIM_THREADS, 0, n));
    if (next == from && (leaves || ++threads->stays >= MOST_STAYS))
        next = next_able(sim);
    if (next != from)
        threads->stays = 0;
    return next;
}

static uint64_t count_waiting(aco_sim_t *sim, const void *object)
{
    uint64_t n = 0;
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        n += (uint64_t)(thread->call && thread->object == object);
    return n;
}

int aco__sim_wake(aco_sim_t *sim, const void *object, int most)
{
    uint64_t waiting = count_waiting(sim, object), skipped = 0;
    int woken = 0;
    if (waiting > 1 && most == 1 && sim->threads.first.schedule.kind != ACO_SIM_FIFO)
        skipped = aco__sim_decide(sim, ACO__SIM_THREADS, aco__draw_below(&sim->threads.draws, waiting), waiting);
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread->call && thread->object == object && woken < most && skipped-- == 0) {
            skipped = 0;
            end_wait(thread, 0);
            woken++;
        }
    return woken;
}

/* It looks, too, when a crash of which it waits for is over. */
static int waits_for_node(aco_sim_t *sim, const aco__sim_thread_t *thread)
{
    ACO__SIM_EACH_NODE(sim, node)
    if (thread->object == node)
        return 1;
    return 0;
}

void aco__sim_interrupt_first(aco_sim_t *sim)
{
    aco__sim_thread_t *first = &sim->threads.first;
    if (first->call && !first->is_patient && !waits_for_node(sim, first))
        end_wait(first, EINTR);
}

/* A run that has failed ends as soon as the first thread goes on. Whether it can. */
static int may_end(aco_sim_t *sim)
{
    aco__sim_thread_t *first = &sim->threads.first;
    if (first->call && !first->is_patient)
        end_wait(first, EINTR);
    return aco__sim_can_go_on(first);
}

/* NULL: none can go on, or the others are left behind. */
static aco__sim_thread_t *choose_thread(aco_sim_t *sim, int leaves)
{
    aco__sim_threads_t *threads = &sim->threads;
    aco__sim_thread_t *next;
    uint64_t n;
    if (sim->has_failed && !threads->is_ending && may_end(sim))
        return &threads->first;
    if (threads->is_ending && ++threads->points > MOST_AT_END)
        return NULL;
    if (sim->opened.has_news)
        (void)aco__sim_wake(sim, &sim->opened, INT32_MAX);
    sim->opened.has_news = 0;
    n = count_able(sim);
    if (n <= 1)
        return n ? nth_able(sim, 0) : NULL;
    next = able_by_decision(sim, n, leaves);
    ACO__ASSERT(next && aco__sim_can_go_on(next));
    aco__history_note(&sim->history, ACO__SIM_THREAD, next->number, n);
    return next;
}

/* ---- Time ---- */

/* When a thread, or the network, has waited long enough. */
static int64_t next_time(aco_sim_t *sim)
{
    int64_t then = sim->arrivals.n ? sim->arrivals.heap[0].at : INT64_MAX;
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread->call && thread->until < then)
            then = thread->until;
    return then;
}

/* No thread can go on: the time passes until one may. 0: none ever will, or the run has failed. */
static int pass_time(aco_sim_t *sim)
{
    int64_t then = next_time(sim);
    sim->threads.points = sim->threads.is_ending ? sim->threads.points : 0;
    if (!sim->threads.is_ending && !sim->has_failed && sim->options.invariants) {
        sim->options.invariants(sim, sim->arg);
        if (sim->has_failed)
            return 1; /* the first thread goes on */
    }
    if (then == INT64_MAX || sim->threads.points > MOST_AT_END)
        return 0;
    aco__sim_jump(sim, then);
    if (sim->now < then)
        return 0;
    aco__sim_arrive(sim);
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread->call && thread->until <= sim->now)
            end_wait(thread, ETIMEDOUT);
    return 1;
}

/* ---- The baton ---- */

static void pass_baton(aco_sim_t *sim, aco__sim_thread_t *next)
{
    sim->threads.running->is_in_turn = sim->is_in_turn;
    sim->threads.running->here = sim->nodes.here;
    sim->threads.running->turn = sim->notes.turn;
    sim->threads.running->turn_number = sim->notes.turn_number;
    sim->threads.running = next;
    sim->is_in_turn = next->is_in_turn;
    sim->nodes.here = next->here;
    sim->notes.turn = next->turn;
    sim->notes.turn_number = next->turn_number;
    sim->threads.is_busy = 0;
    __atomic_store_n(&next->has_baton, 1, __ATOMIC_RELEASE);
    real.futex_wake(&next->has_baton, 1); /* its record stays, even if it has ended by now */
}

static void await_baton(aco__sim_thread_t *self)
{
    while (!__atomic_load_n(&self->has_baton, __ATOMIC_ACQUIRE))
        real.futex_wait(&self->has_baton, 0, -1);
    __atomic_store_n(&self->has_baton, 0, __ATOMIC_RELAXED);
    ACO__ASSERT(self->sim->threads.running == self);
}

/* Lists the tasks of a thread that waits, which it must do itself. */
static void tell_tasks(aco_sim_t *sim, aco__sim_thread_t *thread)
{
    aco__sim_thread_t *self = sim->threads.running;
    if (thread == self) {
        (void)aco_tasks_dump(STDERR_FILENO);
        return;
    }
    thread->asks = self;
    pass_baton(sim, thread);
    await_baton(self);
    sim->threads.is_busy = 1;
}

static void tell_deadlock(aco_sim_t *sim)
{
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread->call) {
            aco__sim_say(sim, "thread %" PRIu64 " waits in %s", thread->number, thread->call);
            tell_tasks(sim, thread);
        }
    aco__sim_fail(sim, "a deadlock: no thread can ever go on");
}

/* No thread can ever go on: the first one must. */
static aco__sim_thread_t *resort_to_first(aco_sim_t *sim)
{
    aco__sim_threads_t *threads = &sim->threads;
    if (!threads->is_ending && !sim->has_failed)
        tell_deadlock(sim);
    if (!threads->is_ending && ++threads->deadlocks > MOST_DEADLOCKS) {
        aco__sim_say(sim, "the thread waits for ever in %s", threads->first.call);
        abort();
    }
    end_wait(&threads->first, EDEADLK);
    return &threads->first;
}

/* Begins a choice: sim->refused is for the calling thread's own message. */
static void begin_choice(aco_sim_t *sim)
{
    aco__sim_settle(sim);
    sim->threads.is_busy = 1;
}

static void go_on_with(aco_sim_t *sim, aco__sim_thread_t *next)
{
    aco__sim_thread_t *self = sim->threads.running;
    sim->threads.is_busy = 0;
    if (next == self)
        return;
    pass_baton(sim, next);
    await_baton(self);
    while (self->asks) {
        next = self->asks;
        self->asks = NULL;
        (void)aco_tasks_dump(STDERR_FILENO);
        pass_baton(sim, next);
        await_baton(self);
    }
    if (self->is_to_leave)
        aco__sim_leave_frames(self);
}

/* The thread that goes on while the running one cannot, perhaps after some time: then it may be that one. */
static aco__sim_thread_t *next_thread(aco_sim_t *sim)
{
    aco__sim_thread_t *next;
    while ((next = choose_thread(sim, 0)) == NULL)
        if (!pass_time(sim))
            return resort_to_first(sim);
    return next;
}

static void let_others(aco_sim_t *sim, int leaves)
{
    aco__sim_thread_t *next;
    int error = errno;
    if (!sim->threads.others || sim->threads.is_busy)
        return;
    begin_choice(sim);
    if (++sim->threads.points > MOST_POINTS)
        aco__sim_fail(sim, "it does not end: threads go on for ever, and no task has a turn");
    next = choose_thread(sim, leaves);
    go_on_with(sim, next ? next : next_thread(sim)); /* none: it is left behind, and the others wait */
    errno = error;
}

/* The process lock is also taken for memory, which differs from run to run. */
void aco__sim_point(aco_sim_t *sim)
{
    if (sim->threads.others && !aco__self()->lock)
        let_others(sim, 0);
}

void aco__sim_give_way(aco_sim_t *sim)
{
    let_others(sim, 1);
}

int aco__sim_wait(aco_sim_t *sim, const char *call, const void *object, int64_t until, int is_patient)
{
    aco__sim_thread_t *self = sim->threads.running;
    ACO__ASSERT(!sim->threads.is_busy && !self->call);
    self->call = call;
    self->object = object;
    self->until = until;
    self->is_patient = is_patient;
    if (is_patient != ACO__SIM_FOR_MUTEX && aco__sim_may_leave_frames())
        aco__sim_rest(self);
    begin_choice(sim);
    go_on_with(sim, next_thread(sim));
    self->is_at_rest = 0;
    return self->result;
}

void aco__sim_thread_enter(aco__sim_thread_t *thread)
{
    await_baton(thread);
    thread->is_at_rest = 0;
    aco__sim_enter(thread->sim);
}

void aco__sim_thread_leave(aco__sim_thread_t *thread)
{
    aco_sim_t *sim = thread->sim;
    aco__sim_thread_t *next;
    ACO__ASSERT(sim->threads.running == thread);
    begin_choice(sim);
    thread->has_ended = 1;
    count_end(&sim->threads);
    (void)aco__sim_wake(sim, thread, INT32_MAX);
    (void)aco__sim_wake(sim, thread->home, INT32_MAX);
    next = next_thread(sim);
    aco__sim_enter(NULL);
    pass_baton(sim, next);
}

/* ---- The end ---- */

/* A failed run: aco_run() of the others fails, and their loops of waiting look again. */
static void interrupt_others(aco_sim_t *sim)
{
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread != &sim->threads.first && thread->call && !thread->is_patient)
            end_wait(thread, EINTR);
}

static void await_others(aco_sim_t *sim)
{
    if (sim->has_failed)
        interrupt_others(sim);
    sim->threads.is_ending = 1;
    sim->threads.points = 0;
    (void)aco__sim_wait(sim, "its end", &sim->threads, INT64_MAX, ACO__SIM_PATIENT);
    sim->threads.is_ending = 0;
}

static void tell_left(aco_sim_t *sim)
{
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread != &sim->threads.first && !thread->has_ended)
            aco__sim_fail(sim, "thread %" PRIu64 " is left behind: %s%s", thread->number,
                          thread->call ? "it waits for ever in " : "it does not end", thread->call ? thread->call : "");
}

/* Threads of the pool that are in a system call for a file for ever, as the one that a task gave up at its deadline,
 * end as the process's end would end them. */
static void end_hanging(aco_sim_t *sim)
{
    for (aco__sim_thread_t *thread = &sim->threads.first; thread; thread = aco__sim_thread_after(sim, thread))
        if (thread->call && thread->chooser.may_hang && thread->is_at_rest) {
            thread->is_to_leave = 1;
            end_wait(thread, ECANCELED);
        }
    await_others(sim);
}

void aco__sim_threads_end(aco_sim_t *sim)
{
    if (sim->threads.others)
        await_others(sim);
    if (sim->threads.others)
        end_hanging(sim);
    if (sim->threads.others && !sim->has_failed) {
        tell_left(sim);
        await_others(sim);
    }
}
