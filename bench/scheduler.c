/* Acorn's scheduler. The code that measures is a task among the others; main() only runs the scheduler. */
#include "ring.h"

#include <aco.h>
#include <aco/group.h>

static aco_t *spawned_with(aco_function_t fn, void *arg, const aco_options_t *options)
{
    aco_t *task = aco_spawn(fn, arg, options);
    native_must(task != NULL, aco_error_message());
    return task;
}

static aco_t *spawned(aco_function_t fn, void *arg)
{
    return spawned_with(fn, arg, NULL);
}

/* ---- Every task of a ring yields ---- */

RING(ring, aco_task_yield)
RING_LIVE(ring_live, aco_task_yield)
RING(ring_call, aco_task_yield_call)
RING_LIVE(ring_call_live, aco_task_yield_call)

#ifndef RING_STACK
#define RING_STACK 0 /* the default */
#endif

static aco_t **others;

/* Ends the tasks of the last sample. */
static void ring_join(void)
{
    ring_stop = 1;
    for (size_t i = 0; i < ring_others; i++)
        native_must(aco_join(others[i], NULL) == 0, aco_error_message());
    free(others);
    ring_stop = 0;
}

static void *ring_of(aco_function_t body, size_t number)
{
    const aco_options_t options = {.stack_size = RING_STACK};
    ring_join();
    others = (aco_t **)bench_alloc(number * sizeof *others);
    ring_others = number - 1;
    for (size_t i = 0; i < ring_others; i++)
        others[i] = spawned_with(body, NULL, &options);
    ring_wanted = 1;
    aco_task_yield();
    return NULL;
}

static void *ring_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(ring_body);
    return ring_of(all[placement], number);
}

static void *ring_live_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(ring_live_body);
    return ring_of(all[placement], number);
}

static void *ring_call_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(ring_call_body);
    return ring_of(all[placement], number);
}

static void *ring_call_live_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(ring_call_live_body);
    return ring_of(all[placement], number);
}

/* aco_task_yield_call() as a preserve_none function, if the compiler has that calling convention. */
#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

static void *ring_preserve_none_make(unsigned placement, size_t number)
{
    native_must(sizeof TEXT_OF(ACO_SWITCHING) > 1, "this compiler has no preserve_none");
    return ring_call_make(placement, number);
}

static void *ring_preserve_none_live_make(unsigned placement, size_t number)
{
    native_must(sizeof TEXT_OF(ACO_SWITCHING) > 1, "this compiler has no preserve_none");
    return ring_call_live_make(placement, number);
}

/* ---- For times in cycles: the empty loop, and the time of one cycle ---- */

static void *nothing_make(unsigned placement, size_t number)
{
    (void)placement, (void)number;
    return NULL;
}

/* A loop that clobbers all registers in its body, like a yield. */
BENCH_INLINE void empty_loop_run(void *made, size_t rounds)
{
    (void)made;
    for (; rounds; rounds--)
        __asm__ volatile("" : : : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
                         "r14", "r15", "memory");
}
NATIVE_RUN(empty_loop_run)

/* Additions that wait for each other take one cycle each. They add a register, because some processors combine
 * additions of constants. */
BENCH_INLINE void cycle_run(void *made, size_t rounds)
{
    uintptr_t x = 0, one = 1;
    native_must(!made, "a cycle needs no coroutine");
    for (; rounds; rounds--)
        __asm__ volatile(".rept 100\n\tadd %1,%0\n\t.endr" : "+r"(x) : "r"(one) : "cc");
}
NATIVE_RUN(cycle_run)

/* ---- A value to another task and back, by two unbuffered channels ---- */

typedef struct channels {
    aco_channel_t *there, *back;
    unsigned placement;
} channels_t;

BENCH_INLINE void *replying(void *arg)
{
    const channels_t *c = (const channels_t *)arg;
    for (uintptr_t value; aco_channel_receive(c->there, &value) == 0;) {
        value++;
        aco_channel_send(c->back, &value);
    }
    return NULL;
}
NATIVE_BODY(replying)

/* The replying task of the last sample stays and waits. */
static void *ping_pong_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(replying);
    channels_t *c = (channels_t *)bench_alloc(sizeof *c);
    native_must(number == 1, "one pair");
    c->there = aco_channel_new(0, sizeof(uintptr_t));
    c->back = aco_channel_new(0, sizeof(uintptr_t));
    native_must(c->there && c->back, aco_error_message());
    spawned(all[placement], c);
    return c;
}

BENCH_INLINE void ping_pong_run(void *made, size_t rounds)
{
    const channels_t *c = (const channels_t *)made;
    uintptr_t value = 0;
    for (size_t n = rounds; n; n--) {
        aco_channel_send(c->there, &value);
        aco_channel_receive(c->back, &value);
    }
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(ping_pong_run)

/* ---- Tasks that do nothing: spawns `number` at once and joins all of them ---- */

typedef struct spawning {
    aco_function_t body;
    size_t number, ran;
    aco_t **tasks;
    aco_options_t how;
} spawning_t;

BENCH_INLINE void *running(void *arg)
{
    ((spawning_t *)arg)->ran++;
    return NULL;
}
NATIVE_BODY(running)

static void *spawn_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(running);
    spawning_t *s = (spawning_t *)bench_alloc(sizeof *s);
    *s = (spawning_t){all[placement], number, 0, (aco_t **)bench_alloc(number * sizeof *s->tasks), {0}};
    return s;
}

BENCH_INLINE void spawn_run(void *made, size_t rounds)
{
    spawning_t *s = (spawning_t *)made;
    s->ran = 0;
    for (size_t n = rounds; n; n--) {
        for (size_t i = 0; i < s->number; i++)
            s->tasks[i] = spawned(s->body, s);
        for (size_t i = 0; i < s->number; i++)
            aco_join(s->tasks[i], NULL);
    }
    native_must(s->ran == rounds * s->number, "not every task ran");
}
NATIVE_RUN(spawn_run)

/* ---- The same in a group ---- */

static void begin_group(aco_group_t *group)
{
    native_must(aco_group_begin(group, ACO_CANCEL_ON_FAILURE) == 0, aco_error_message());
}

static void spawn_members(aco_group_t *group, spawning_t *s)
{
    for (size_t i = 0; i < s->number; i++)
        native_must(aco_group_spawn(group, s->body, s, s->how.stack ? &s->how : NULL) != NULL, aco_error_message());
}

BENCH_INLINE void group_run(void *made, size_t rounds)
{
    spawning_t *s = (spawning_t *)made;
    s->ran = 0;
    for (size_t n = rounds; n; n--) {
        aco_group_t group;
        begin_group(&group);
        spawn_members(&group, s);
        native_must(aco_group_end(&group) == 0, aco_error_message());
    }
    native_must(s->ran == rounds * s->number, "not every member ran");
}
NATIVE_RUN(group_run)

/* ---- Members that sleep are cancelled: their whole lives ----
 * 10 000 of them on a Zen 5 (gcc 12), ns each: aco_scope_cancel() 73, or 7 on a share stack; to the end of
 * aco_group_end() 300, or 43. Tried without gain: stacks of 16 KiB; prefetching the next task's frame and record as
 * tasks end. */

static const int64_t hour = 3600 * ACO_SECOND;

BENCH_INLINE void *sleeping(void *arg)
{
    ((spawning_t *)arg)->ran += aco_sleep(hour) != 0;
    return NULL;
}
NATIVE_BODY(sleeping)

static void *cancel_make(unsigned placement, size_t number)
{
    static const aco_function_t all[] = NATIVE_ALL(sleeping);
    spawning_t *s = (spawning_t *)bench_alloc(sizeof *s);
    *s = (spawning_t){all[placement], number, 0, NULL, {0}};
    return s;
}

static void *cancel_shared_make(unsigned placement, size_t number)
{
    static aco_share_stack_t *stack;
    spawning_t *s = (spawning_t *)cancel_make(placement, number);
    if (!stack)
        stack = aco_share_stack_new(0);
    native_must(stack != NULL, aco_error_message());
    s->how.stack = stack;
    return s;
}

BENCH_INLINE void cancel_run(void *made, size_t rounds)
{
    spawning_t *s = (spawning_t *)made;
    s->ran = 0;
    for (size_t n = rounds; n; n--) {
        aco_group_t group;
        begin_group(&group);
        spawn_members(&group, s);
        aco_task_yield();
        aco_scope_cancel(&group.scope);
        native_must(aco_group_end(&group) == 0, aco_error_message());
    }
    native_must(s->ran == rounds * s->number, "not every member was cancelled");
}
NATIVE_RUN(cancel_run)

/* ---- The ping-pong, with a time limit for each value: by a scope, and of the call ---- */

BENCH_INLINE void timeout_scope_run(void *made, size_t rounds)
{
    const channels_t *c = (const channels_t *)made;
    uintptr_t value = 0;
    for (size_t n = rounds; n; n--) {
        aco_scope_t scope;
        aco_channel_send(c->there, &value);
        aco_scope_begin(&scope, aco_after(hour));
        aco_channel_receive(c->back, &value);
        aco_scope_end(&scope);
    }
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(timeout_scope_run)

BENCH_INLINE void timeout_run(void *made, size_t rounds)
{
    const channels_t *c = (const channels_t *)made;
    uintptr_t value = 0;
    for (size_t n = rounds; n; n--) {
        aco_channel_send(c->there, &value);
        aco_channel_receive_until(c->back, &value, aco_after(hour));
    }
    native_must(value == rounds, "other values came back");
}
NATIVE_RUN(timeout_run)

static const native_case_t cases[] = {
    {"ring", ring_make, NATIVE_ALL(ring)},
    {"ring_live", ring_live_make, NATIVE_ALL(ring_live)},
    {"ring_call", ring_call_make, NATIVE_ALL(ring_call)},
    {"ring_call_live", ring_call_live_make, NATIVE_ALL(ring_call_live)},
    {"ring_preserve_none", ring_preserve_none_make, NATIVE_ALL(ring_call)},
    {"ring_preserve_none_live", ring_preserve_none_live_make, NATIVE_ALL(ring_call_live)},
    {"empty_loop", nothing_make, NATIVE_ALL(empty_loop_run)},
    {"cycle", nothing_make, NATIVE_ALL(cycle_run)},
    {"ping_pong", ping_pong_make, NATIVE_ALL(ping_pong_run)},
    {"spawn", spawn_make, NATIVE_ALL(spawn_run)},
    {"group", spawn_make, NATIVE_ALL(group_run)},
    {"cancel", cancel_make, NATIVE_ALL(cancel_run)},
    {"cancel_shared", cancel_shared_make, NATIVE_ALL(cancel_run)},
    {"timeout_scope", ping_pong_make, NATIVE_ALL(timeout_scope_run)},
    {"timeout", ping_pong_make, NATIVE_ALL(timeout_run)},
    {NULL, NULL, {NULL, NULL, NULL, NULL}},
};

static int arguments;

static void *measuring(void *argv)
{
    exit(native_main(arguments, (char **)argv, cases));
    return NULL;
}

int main(int argc, char **argv)
{
    arguments = argc;
    spawned(measuring, argv);
    return aco_run() ? 1 : 0;
}
