/* The model checker (litmus.h). It runs a case again and again, each time in another way, until no way is left.
 *
 * Memory. A location has a list of messages: the values that were stored there, in the order of modification. A thread
 * has a view: of each location, the oldest message that it may still read. A load chooses among the messages from there
 * on. A message carries a view: that of its writer if it was a release, and an acquiring load adds it to its own.
 * Read-modify-writes read the last message and hand its view on. The order of all sequentially consistent operations is
 * that of execution: such a load reads nothing older than what any of them has read or written there. This is RC11
 * (Lahav et al., "Repairing sequential consistency in C/C++11", PLDI 2017), as a machine. A store is the last in the
 * order of modification when it is executed; where C11 allows another order, the checker stops and says so. No load
 * reads what is stored later; RC11 forbids that too. Compare-and-swap does not fail without a reason.
 *
 * Search. Depth first, by repeating the execution up to the last choice: which thread goes on, and which message a load
 * reads. Of operations of two threads both orders are tried only where that can make a difference: dynamic
 * partial-order reduction with source sets and sleep sets (Abdulla et al., "Optimal dynamic partial order reduction",
 * POPL 2014). */
#include "litmus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { LOCATIONS = 256, MESSAGES = 8192, STEPS = 1500, STACK = 128 << 10, ARENA = 1 << 20, OUTCOMES = 4096 };

typedef uint16_t view_t[LOCATIONS]; /* of each location the number of a message */
typedef unsigned clock_t_[LITMUS_THREADS];

typedef struct message {
    uint64_t value;
    int is_rmw, thread;
    view_t view;
} message_t;

typedef struct location {
    const volatile void *at;
    size_t sz;
    int number;
    int first;           /* messages before this one are of an earlier object at this address */
    int count;
    int is_mixed;        /* some stores are not sequentially consistent */
    int sc;              /* the message below which no such operation reads */
    message_t *messages[STEPS];
    clock_t_ writes, reads, sc_reads;
} location_t;

typedef enum { OP_BEGIN, OP_LOAD, OP_STORE, OP_MODIFY, OP_COMPARE, OP_LOCK, OP_WAIT, OP_YIELD } kind_t;

typedef struct op {
    kind_t kind;
    int order;
    location_t *location; /* NULL: it touches no memory */
    const char *what, *function;
    uint64_t value;       /* what was read or stored */
} op_t;

typedef struct thread {
    ucontext_t context;
    char *stack;
    int is_over;
    op_t pending;
    view_t view;
    clock_t_ clock;
    location_t *last;     /* what it has read last, and what it saw, so many times */
    int last_message, repeated;
} thread_t;

typedef struct step {
    int thread, choice, choices;
    unsigned enabled, backtrack, done, sleep;
    op_t op;
    clock_t_ clock;
} step_t;

static const litmus_case_t *running;
static thread_t threads[LITMUS_THREADS];
static int self, is_setting_up; /* the running thread; the checker itself runs the case's functions */
static location_t *locations;
static const volatile void *addresses[LOCATIONS]; /* of each location */
static int locations_count;
static message_t *messages;
static int messages_count;
static step_t steps[STEPS];
static int depth, replayed; /* steps of this execution, and those that repeat the one before */
static char *arena;
static size_t arena_used;
static ucontext_t main_context;
static enum { GOING, ENDED, PRUNED, FAILED } state;
static char failure[300];
static uint64_t outcomes[OUTCOMES];
static int outcomes_count;
static int tries_all, is_verbose;
static unsigned long long chance; /* not 0: executions by chance, and the state of the random numbers */

/* ---- Small things ---- */

static void join_clock(unsigned *to, const unsigned *from)
{
    for (int i = 0; i < LITMUS_THREADS; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

static void join_view(uint16_t *to, const uint16_t *from)
{
    for (int i = 0; i < LOCATIONS; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

static int acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static int releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static int is_write(const op_t *op)
{
    return op->kind == OP_STORE || op->kind == OP_MODIFY || op->kind == OP_COMPARE || op->kind == OP_LOCK;
}

/* It reads only what is newest. */
static int is_sc(const op_t *op)
{
    return op->order == __ATOMIC_SEQ_CST || op->kind == OP_WAIT || op->kind == OP_YIELD;
}

static void stop(int how)
{
    state = how;
    swapcontext(&threads[self].context, &main_context);
}

void litmus_fail(const char *reason)
{
    if (!*failure)
        snprintf(failure, sizeof failure, "%s", reason);
    if (is_setting_up)
        state = FAILED;
    else
        stop(FAILED);
}

void litmus_give_up(void)
{
    stop(PRUNED);
}

int litmus_self(void)
{
    return self;
}

void *litmus_allocate(size_t sz)
{
    void *p = arena + arena_used;
    arena_used += (sz + 63) & ~(size_t)63;
    if (arena_used > ARENA)
        litmus_fail("the checker has no memory left");
    return p;
}

void litmus_outcome(uint64_t outcome)
{
    for (int i = 0; i < outcomes_count; i++)
        if (outcomes[i] == outcome)
            return;
    if (outcomes_count < OUTCOMES)
        outcomes[outcomes_count++] = outcome;
}

static unsigned below(unsigned n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance >> 33) % n;
}

/* ---- Locations ---- */

static uint64_t in_memory(const volatile void *at, size_t sz)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)(uintptr_t)at, sz);
    return value;
}

static void set_memory(const volatile void *at, size_t sz, uint64_t value)
{
    memcpy((void *)(uintptr_t)at, &value, sz);
}

static uint64_t cut(uint64_t value, size_t sz)
{
    return sz == 8 ? value : value & ((1ULL << 8 * sz) - 1);
}

static message_t *add_message(location_t *location, uint64_t value)
{
    message_t *message;
    if (messages_count == MESSAGES || location->count == STEPS) {
        litmus_fail("the checker has no room for more stores");
        return location->messages[location->count - 1];
    }
    message = &messages[messages_count++];
    memset(message, 0, sizeof *message);
    message->value = value;
    message->thread = -1;
    location->messages[location->count++] = message;
    return message;
}

static location_t *location_of(const volatile void *at, size_t sz)
{
    location_t *location;
    int i = 0;
    while (i < locations_count && addresses[i] != at)
        i++;
    location = &locations[i];
    if (i == locations_count) {
        if (locations_count == LOCATIONS) {
            fprintf(stderr, "litmus: too many locations\n");
            exit(2);
        }
        memset(location, 0, offsetof(location_t, messages));
        memset(location->writes, 0, sizeof location->writes);
        memset(location->reads, 0, sizeof location->reads);
        memset(location->sc_reads, 0, sizeof location->sc_reads);
        location->at = addresses[i] = at;
        location->sz = sz;
        location->number = locations_count++;
        add_message(location, in_memory(at, sz));
    } else if (in_memory(at, sz) != location->messages[location->count - 1]->value) {
        /* it was set by a plain store: no thread may have another way to see what was there before */
        add_message(location, in_memory(at, sz));
        location->first = location->sc = location->count - 1;
    }
    return location;
}

/* ---- The search ---- */

static int is_enabled(int t)
{
    const op_t *op = &threads[t].pending;
    const location_t *location = op->location;
    if (t >= running->threads || threads[t].is_over)
        return 0;
    switch (op->kind) {
    case OP_LOCK: return location->messages[location->count - 1]->value == 0;
    case OP_WAIT: return location->messages[location->count - 1]->value != 0;
    case OP_YIELD: return location->count - 1 > threads[t].last_message;
    default: return 1;
    }
}

/* Whether the order of two threads' operations may make a difference. */
static int is_dependent(const op_t *a, const op_t *b)
{
    return a->location && a->location == b->location &&
           (is_write(a) || is_write(b) || (a->location->is_mixed && is_sc(a) && is_sc(b)));
}

static int is_before(int i, const unsigned *clock)
{
    return (unsigned)i < clock[steps[i].thread];
}

/* The threads that may begin if the thread's next operation is to come before step i: of the steps behind i that do not
 * depend on it, and of that operation, the first ones. */
static unsigned beginners(int i, int t)
{
    unsigned seen = 0, first = 0;
    for (int k = i + 1; k < depth; k++) {
        int is_first = !(seen >> steps[k].thread & 1);
        if (is_before(i, steps[k].clock))
            continue;
        seen |= 1u << steps[k].thread;
        for (int m = i + 1; m < k && is_first; m++)
            is_first = is_before(i, steps[m].clock) || !is_before(m, steps[k].clock);
        first |= (unsigned)is_first << steps[k].thread;
    }
    if (!(seen >> t & 1)) {
        int is_first = 1;
        for (int m = i + 1; m < depth && is_first; m++)
            is_first = is_before(i, steps[m].clock) ||
                       (!is_before(m, threads[t].clock) && !is_dependent(&steps[m].op, &threads[t].pending));
        first |= (unsigned)is_first << t;
    }
    return first;
}

/* Where the thread's next operation should also be tried earlier: before each operation that it races with. */
static void add_backtracks(int t)
{
    const op_t *pending = &threads[t].pending;
    clock_t_ covered;
    memcpy(covered, threads[t].clock, sizeof covered);
    for (int i = depth - 1; i >= 0; i--) {
        step_t *step = &steps[i];
        unsigned first;
        if (step->thread == t || is_before(i, covered) || !is_dependent(&step->op, pending) ||
            !(step->enabled >> t & 1) || (pending->kind == OP_LOCK && step->op.kind != OP_LOCK))
            continue; /* among others: it has made the thread's operation possible */
        if (pending->kind != OP_WAIT && pending->kind != OP_YIELD)
            join_clock(covered, step->clock);
        first = beginners(i, t);
        if (!(first & step->backtrack))
            step->backtrack |= first >> t & 1 ? 1u << t : first & -first;
    }
}

static unsigned sleep_after(const step_t *step)
{
    unsigned asleep = step->sleep | step->done, after = 0;
    for (int t = 0; t < running->threads; t++)
        if (asleep >> t & 1 && t != step->thread && !is_dependent(&threads[t].pending, &step->op))
            after |= 1u << t;
    return after;
}

/* Often the running one: what goes wrong needs few switches. */
static int thread_by_chance(unsigned enabled)
{
    unsigned t;
    if (enabled >> self & 1 && below(4))
        return self;
    do
        t = below((unsigned)running->threads);
    while (!(enabled >> t & 1));
    return (int)t;
}

/* Which thread executes its operation now; -1: none. */
static int choose_thread(void)
{
    step_t *step = &steps[depth];
    unsigned enabled = 0, unfinished = 0, asleep;
    if (depth == STEPS) {
        snprintf(failure, sizeof failure, "the execution does not end");
        state = FAILED;
        return -1;
    }
    for (int t = 0; t < running->threads; t++) {
        enabled |= (unsigned)is_enabled(t) << t;
        unfinished |= (unsigned)!threads[t].is_over << t;
    }
    if (!enabled) {
        state = unfinished ? FAILED : ENDED;
        if (unfinished)
            snprintf(failure, sizeof failure, "deadlock: threads wait for ever");
        return -1;
    }
    if (chance) {
        step->thread = thread_by_chance(enabled);
        return step->thread;
    }
    if (depth < replayed) {
        step->enabled = enabled;
        add_backtracks(step->thread);
        return step->thread;
    }
    asleep = depth && !tries_all ? sleep_after(&steps[depth - 1]) : 0;
    if (!(enabled & ~asleep)) {
        state = PRUNED;
        return -1;
    }
    step->enabled = enabled;
    step->sleep = asleep;
    step->done = 0;
    step->choice = 0;
    step->thread = (enabled & ~asleep) >> self & 1 ? self : __builtin_ctz(enabled & ~asleep);
    step->backtrack = tries_all ? enabled : 1u << step->thread;
    add_backtracks(step->thread);
    return step->thread;
}

/* The calling thread's operation is due: lets others go first, as the search wants it. */
static void schedule(void)
{
    int next = choose_thread(), before = self;
    if (next < 0) {
        swapcontext(&threads[before].context, &main_context);
        abort(); /* an execution that has stopped does not go on */
    }
    if (next != before) {
        self = next;
        swapcontext(&threads[before].context, &threads[next].context);
    }
    /* now this thread's step is the last one */
}

static int pick(int choices)
{
    step_t *step = &steps[depth];
    if (chance)
        return below(2) ? 0 : (int)below((unsigned)choices);
    step->choices = choices;
    return step->choice;
}

/* The step has been executed. */
static void end_step(const op_t *op)
{
    thread_t *thread = &threads[self];
    step_t *step = &steps[depth++];
    step->op = *op;
    thread->clock[self] = (unsigned)depth;
    memcpy(step->clock, thread->clock, sizeof step->clock);
}

/* Announces the operation, and returns when it is the thread's turn. */
static op_t *announce(kind_t kind, location_t *location, const char *what, const char *function, int order)
{
    op_t *op = &threads[self].pending;
    const op_t announced = {kind, order, location, what, function, 0};
    *op = announced;
    schedule();
    return op;
}

/* ---- Loads and stores ---- */

static void see(location_t *location, int number, int order)
{
    thread_t *thread = &threads[self];
    const message_t *message = location->messages[number];
    if (acquires(order))
        join_view(thread->view, message->view);
    if (thread->view[location->number] < number)
        thread->view[location->number] = (uint16_t)number;
}

/* One of the messages that the thread may read and that are not `except`. */
static int choose_message(const location_t *location, int order, int floor, const uint64_t *except)
{
    int candidates[STEPS], count = 0;
    int from = threads[self].view[location->number];
    if (from < location->first)
        from = location->first;
    if (order == __ATOMIC_SEQ_CST && from < location->sc)
        from = location->sc;
    if (from < floor)
        from = floor;
    for (int i = location->count - 1; i >= from; i--)
        if (!except || location->messages[i]->value != *except)
            candidates[count++] = i;
    return count ? candidates[pick(count)] : -1;
}

static void end_read(op_t *op, int number)
{
    thread_t *thread = &threads[self];
    location_t *location = op->location;
    see(location, number, op->order);
    op->value = location->messages[number]->value;
    join_clock(thread->clock, location->writes);
    if (is_sc(op) && location->is_mixed)
        join_clock(thread->clock, location->sc_reads);
    if (op->order == __ATOMIC_SEQ_CST && location->sc < number)
        location->sc = number;
    end_step(op);
    join_clock(location->reads, thread->clock);
    if (is_sc(op) && location->is_mixed)
        join_clock(location->sc_reads, thread->clock);
    thread->repeated = thread->last == location && thread->last_message == number ? thread->repeated + 1 : 0;
    thread->last = location;
    thread->last_message = number;
}

/* A store could also stand before stores that the thread does not know, unless these belong to what is before them. */
static void check_order(const location_t *location)
{
    int known = threads[self].view[location->number];
    for (int i = location->count - 1; i > known && i > location->first && !location->messages[i]->is_rmw; i--)
        if (location->messages[i]->thread != self)
            litmus_fail("two stores in no order: this checker does not try both");
}

static void end_write(op_t *op, uint64_t value, int reads)
{
    thread_t *thread = &threads[self];
    location_t *location = op->location;
    int before = location->count - 1;
    const message_t *previous = location->messages[before];
    message_t *message;
    if (reads)
        see(location, before, op->order);
    else if (op->order != __ATOMIC_SEQ_CST)
        check_order(location);
    op->value = value;
    message = add_message(location, value);
    message->thread = self;
    message->is_rmw = reads;
    location->is_mixed |= op->order != __ATOMIC_SEQ_CST;
    thread->view[location->number] = (uint16_t)(location->count - 1);
    if (releases(op->order))
        join_view(message->view, thread->view);
    message->view[location->number] = (uint16_t)(location->count - 1);
    if (reads)
        join_view(message->view, previous->view);
    if (op->order == __ATOMIC_SEQ_CST)
        location->sc = location->count - 1;
    set_memory(location->at, location->sz, value);
    join_clock(thread->clock, location->writes);
    join_clock(thread->clock, location->reads);
    end_step(op);
    join_clock(location->writes, thread->clock);
    thread->last = NULL;
}

static void wait_for_change(const char *function)
{
    thread_t *thread = &threads[self];
    op_t *op;
    if (!thread->last)
        return;
    op = announce(OP_YIELD, thread->last, "a change", function, __ATOMIC_RELAXED);
    pick(1);
    thread->repeated = 0;
    if (thread->view[op->location->number] <= thread->last_message)
        thread->view[op->location->number] = (uint16_t)(thread->last_message + 1);
    op->value = (uint64_t)op->location->count - 1;
    join_clock(thread->clock, op->location->writes);
    end_step(op);
    join_clock(op->location->reads, thread->clock);
}

uint64_t litmus_load(const volatile void *at, size_t sz, const char *what, const char *function, int order)
{
    enum { LOOKS = 2 }; /* so often in a row it reads the same: it waits for a change */
    location_t *location;
    op_t *op;
    if (is_setting_up)
        return in_memory(at, sz);
    location = location_of(at, sz);
    if (threads[self].last == location && threads[self].repeated >= LOOKS)
        wait_for_change(function);
    op = announce(OP_LOAD, location, what, function, order);
    end_read(op, choose_message(location, order, 0, NULL));
    return op->value;
}

void litmus_store(const volatile void *at, size_t sz, const char *what, const char *function, uint64_t value, int order)
{
    op_t *op;
    if (is_setting_up) {
        set_memory(at, sz, value);
        return;
    }
    value = cut(value, sz);
    op = announce(OP_STORE, location_of(at, sz), what, function, order);
    pick(1);
    end_write(op, value, 0);
}

static uint64_t modified(uint64_t value, int operation, uint64_t operand)
{
    switch (operation) {
    case LITMUS_ADD: return value + operand;
    case LITMUS_SUB: return value - operand;
    case LITMUS_OR: return value | operand;
    default: return operand;
    }
}

uint64_t litmus_modify(const volatile void *at, size_t sz, const char *what, const char *function, int operation,
                       uint64_t operand, int order)
{
    uint64_t before;
    op_t *op;
    if (is_setting_up) {
        before = in_memory(at, sz);
        set_memory(at, sz, modified(before, operation, operand));
        return before;
    }
    op = announce(OP_MODIFY, location_of(at, sz), what, function, order);
    pick(1);
    before = op->location->messages[op->location->count - 1]->value;
    end_write(op, cut(modified(before, operation, operand), sz), 1);
    return before;
}

int litmus_compare(const volatile void *at, size_t sz, const char *what, const char *function, void *expected,
                   uint64_t desired, int order, int failure_order)
{
    uint64_t wanted = 0;
    location_t *location;
    int failures[STEPS], count = 0, from, succeeds, chosen;
    op_t *op;
    memcpy(&wanted, expected, sz);
    if (is_setting_up) {
        uint64_t before = in_memory(at, sz);
        set_memory(before == wanted ? at : expected, sz, before == wanted ? desired : before);
        return before == wanted;
    }
    location = location_of(at, sz);
    op = announce(OP_COMPARE, location, what, function, order);
    succeeds = location->messages[location->count - 1]->value == wanted;
    from = threads[self].view[location->number];
    if (from < location->first)
        from = location->first;
    if (failure_order == __ATOMIC_SEQ_CST && from < location->sc)
        from = location->sc;
    for (int i = location->count - 1; i >= from; i--)
        if (location->messages[i]->value != wanted)
            failures[count++] = i;
    chosen = pick(count + succeeds);
    if (succeeds && chosen == 0) {
        end_write(op, cut(desired, sz), 1);
        return 1;
    }
    op->kind = OP_LOAD;
    op->order = failure_order;
    end_read(op, failures[chosen - succeeds]);
    memcpy(expected, &op->value, sz);
    return 0;
}

/* ---- Locks and waits ---- */

void litmus_lock(void *mutex)
{
    op_t *op;
    if (is_setting_up)
        return;
    op = announce(OP_LOCK, location_of(mutex, sizeof(uint32_t)), "mutex", "pthread_mutex_lock", __ATOMIC_ACQUIRE);
    pick(1);
    end_write(op, 1, 1);
}

void litmus_unlock(void *mutex)
{
    if (!is_setting_up)
        litmus_modify(mutex, sizeof(uint32_t), "mutex", "pthread_mutex_unlock", LITMUS_EXCHANGE, 0, __ATOMIC_RELEASE);
}

void litmus_wait(const uint32_t *at)
{
    op_t *op = announce(OP_WAIT, location_of(at, sizeof *at), "wakes", "litmus_wait", __ATOMIC_ACQUIRE);
    pick(1);
    end_read(op, op->location->count - 1);
}

int litmus_yield(void)
{
    wait_for_change("sched_yield");
    return 0;
}

static void check_race(const location_t *location)
{
    if (threads[self].view[location->number] < location->count - 1 && location->count - 1 > location->first)
        litmus_fail("data race: a value is used that another thread has written, and nothing orders the two");
}

void litmus_write(int *at, int value)
{
    location_t *location;
    op_t *op;
    if (is_setting_up) {
        *at = value;
        return;
    }
    location = location_of(at, sizeof *at);
    op = announce(OP_STORE, location, "data", "litmus_write", __ATOMIC_RELAXED);
    pick(1);
    check_race(location);
    end_write(op, (uint64_t)(unsigned)value, 0);
}

int litmus_read(const int *at)
{
    location_t *location;
    op_t *op;
    if (is_setting_up)
        return *at;
    location = location_of(at, sizeof *at);
    op = announce(OP_LOAD, location, "data", "litmus_read", __ATOMIC_RELAXED);
    pick(1);
    check_race(location);
    end_read(op, location->count - 1);
    return (int)op->value;
}

/* ---- Executions ---- */

static void run_thread(void)
{
    op_t *op = &threads[self].pending; /* OP_BEGIN: it has been chosen */
    pick(1);
    end_step(op);
    running->run(self);
    threads[self].is_over = 1;
    threads[self].pending.location = NULL;
    schedule(); /* another one goes on, or the execution ends */
}

static void begin_execution(void)
{
    memset(arena, 0, arena_used);
    arena_used = 0;
    locations_count = messages_count = depth = self = 0;
    state = GOING;
    is_setting_up = 1;
    running->begin();
    is_setting_up = 0;
    locations_count = messages_count = 0;
    for (int t = 0; t < running->threads; t++) {
        thread_t *thread = &threads[t];
        char *stack = thread->stack;
        memset(thread, 0, sizeof *thread);
        thread->stack = stack;
        thread->pending.kind = OP_BEGIN;
        thread->pending.function = "no function yet";
        getcontext(&thread->context);
        thread->context.uc_stack.ss_sp = stack;
        thread->context.uc_stack.ss_size = STACK;
        thread->context.uc_link = NULL;
        makecontext(&thread->context, run_thread, 0);
    }
}

static void execute(void)
{
    int next;
    begin_execution();
    next = choose_thread();
    if (next >= 0) {
        self = next;
        swapcontext(&main_context, &threads[next].context);
    }
    if (state == ENDED) {
        is_setting_up = 1;
        running->end();
        is_setting_up = 0;
    }
}

/* Changes the last choice that has another value left. 0: none has. */
static int next_execution(void)
{
    if (chance)
        return 1;
    for (int i = depth - 1; i >= 0; i--) {
        step_t *step = &steps[i];
        unsigned left;
        if (++step->choice < step->choices) {
            replayed = i + 1;
            return 1;
        }
        step->done |= 1u << step->thread;
        left = step->backtrack & step->enabled & ~step->done & ~step->sleep;
        if (left) {
            step->thread = __builtin_ctz(left);
            step->choice = 0;
            replayed = i + 1;
            return 1;
        }
    }
    return 0;
}

static const char *name_of_order(int order)
{
    static const char *const names[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
    return names[order];
}

static void print_failure(void)
{
    static const char *const kinds[] = {"begin", "load", "store", "modify", "compare", "lock", "wait", "yield"};
    printf("    %s\n", failure);
    for (int i = 0; i < depth; i++) {
        const op_t *op = &steps[i].op;
        if (op->kind != OP_BEGIN)
            printf("    thread %d  %-26s %-7s %-34s %-8s %llx\n", steps[i].thread, op->function, kinds[op->kind],
                   op->what, name_of_order(op->order), (unsigned long long)op->value);
    }
    for (int t = 0; t < running->threads; t++)
        if (!threads[t].is_over)
            printf("    thread %d is in %s\n", t, threads[t].pending.function);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* others may use this machine, too */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 0: every execution is right; 1: one is not; 2: there are too many. */
static int check_case(const litmus_case_t *the_case, double limit)
{
    size_t executions = 0, pruned = 0;
    double begun = seconds();
    int more, found;
    running = the_case;
    replayed = outcomes_count = 0;
    *failure = 0;
    memset(steps, 0, sizeof steps);
    do {
        execute();
        executions++;
        pruned += state == PRUNED;
        more = !*failure && next_execution();
    } while (more && (executions % 256 || seconds() - begun < limit));
    found = *failure ? 1 : more && !chance ? 2 : 0;
    printf("%s: %s, %zu executions (%zu cut short)%s, %d outcomes (%.1f s)\n", the_case->name,
           found == 1 ? "FAILED" : found ? "not finished" : "holds", executions, pruned,
           chance ? " by chance" : tries_all ? " without reduction" : "", outcomes_count, seconds() - begun);
    if (found == 1)
        print_failure();
    for (int i = 0; is_verbose && i < outcomes_count; i++)
        printf("    outcome %llx\n", (unsigned long long)outcomes[i]);
    return found;
}

/* PROGRAM [-a] [-r SEED] [-v] [-l SECONDS] [CASE ...]: -a: all orders, without reduction; -r: by chance, for that time;
 * -v: prints outcomes; -l: the most time for a case. The exit status is 1 if a case fails, else 2 if one is not
 * finished. */
int main(int argc, char **argv)
{
    double limit = 3600;
    int status = 0, named = 1;
    for (; named < argc && argv[named][0] == '-'; named++)
        if (argv[named][1] == 'a')
            tries_all = 1;
        else if (argv[named][1] == 'v')
            is_verbose = 1;
        else if (argv[named][1] == 'l' && named + 1 < argc)
            limit = atof(argv[++named]);
        else if (argv[named][1] == 'r' && named + 1 < argc)
            chance = strtoull(argv[++named], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    locations = calloc(LOCATIONS, sizeof *locations);
    messages = calloc(MESSAGES, sizeof *messages);
    arena = calloc(1, ARENA);
    for (int t = 0; t < LITMUS_THREADS; t++)
        threads[t].stack = malloc(STACK);
    for (const litmus_case_t *each = litmus_cases; each->name; each++) {
        int wanted = named == argc, found;
        for (int i = named; i < argc; i++)
            wanted |= strcmp(argv[i], each->name) == 0;
        found = wanted ? check_case(each, limit) : 0;
        status = found == 1 || status == 1 ? 1 : status | found;
    }
    return status;
}
