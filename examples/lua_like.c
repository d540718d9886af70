/* Coroutines as Lua has them, in terms of this library's: create, resume, yield, status, wrap, error, with lists of
 * values both ways. Below, a small scheduler uses them. Stacks are private, so the lists may stand in the frames of the
 * side that passes them. */
#include "aco.h"

#include <stdio.h>

#include "aco_assert_override.h"

typedef struct values {
    int n;
    long v[3];
} values_t;
#define VALUES(...) ((values_t){sizeof((long[]){__VA_ARGS__}) / sizeof(long), {__VA_ARGS__}})

static const values_t none;

typedef struct co {
    aco_t *aco;
    values_t (*fn)(values_t);
    values_t values;   /* what fn() gets, and returns */
    const char *error; /* why it died, or was not resumed */
} co_t;

static void *entry(void *arg)
{
    co_t *co = arg;
    co->values = co->fn(co->values);
    return &co->values;
}

static co_t *create(values_t (*fn)(values_t))
{
    co_t *co = calloc(1, sizeof *co);
    assert(co);
    co->fn = fn;
    co->aco = aco_new(entry, co, NULL);
    assert(co->aco);
    return co;
}

/* Lua's coroutine.close(): ends it where it waits. */
static void close_co(void *co)
{
    assert(aco_cancel(((co_t *)co)->aco) == 0);
    aco_destroy(((co_t *)co)->aco);
    free(co);
}

static const char *status(const co_t *co)
{
    static const char *const names[] = {
        [ACO_STATE_READY] = "suspended", [ACO_STATE_SUSPENDED] = "suspended", [ACO_STATE_RUNNING] = "running",
        [ACO_STATE_RESUMING] = "normal", [ACO_STATE_DONE] = "dead",
    };
    return names[aco_state(co->aco)];
}

/* Ends the running coroutine; its resume() returns 0. What it has deferred is called. */
__attribute__((noreturn)) static void error(const char *message)
{
    co_t *co = aco_get_arg();
    co->error = message;
    aco_exit();
}

static values_t yield(values_t values)
{
    return *(values_t *)aco_yield_value(&values);
}

/* 1 and what it yielded or returned; 0 and co->error. What is sent first becomes its function's argument. */
static int resume(co_t *co, values_t args, values_t *back)
{
    int starts = aco_state(co->aco) == ACO_STATE_READY;
    if (starts)
        co->values = args;
    values_t *values = aco_send(co->aco, starts ? NULL : &args);
    if (values == ACO_ERROR)
        co->error = aco_error_message();
    if (values == ACO_ERROR || !values)
        return 0;
    *back = *values;
    return 1;
}

/* What a function made by Lua's coroutine.wrap() does: as resume(), but an error goes on in the caller, a coroutine. */
static values_t call(co_t *co, values_t args)
{
    values_t back;
    if (!resume(co, args, &back))
        error(co->error);
    return back;
}

/* ---- Tasks: each yields how long it wants to sleep, and gets the time when it is woken ---- */

static values_t doubles(values_t args)
{
    for (long n = args.v[0]; n < 1000; n *= 2)
        yield(VALUES(n));
    return none;
}

static values_t task(values_t args)
{
    long id = args.v[0];
    co_t *delays = create(doubles);
    assert(aco_defer(close_co, delays) == 0);
    for (long i = 0; i < id; i++) {
        values_t now = yield(call(delays, VALUES(id))); /* the argument counts the first time only */
        printf("at %2ld: task %ld wakes\n", now.v[0], id);
    }
    if (id == 2)
        error("task 2 gives up");
    return VALUES(id, 10 * id);
}

int main(void)
{
    enum { TASKS = 3, TIME = 30 };
    co_t *tasks[TASKS] = {create(task), create(task), create(task)};
    long due[TASKS] = {0};
    values_t back;

    for (long now = 0; now < TIME; now++)
        for (int i = 0; i < TASKS; i++) {
            if (due[i] != now)
                continue;
            if (!resume(tasks[i], VALUES(now ? now : i + 1), &back))
                printf("at %2ld: error: %s\n", now, tasks[i]->error);
            else if (strcmp(status(tasks[i]), "dead") == 0)
                printf("at %2ld: returned %d values: %ld, %ld\n", now, back.n, back.v[0], back.v[1]);
            else
                due[i] = now + back.v[0];
        }
    for (int i = 0; i < TASKS; i++) {
        assert(!resume(tasks[i], none, &back));
        printf("task %d is %s: %s\n", i + 1, status(tasks[i]), tasks[i]->error);
        close_co(tasks[i]);
    }
    return 0;
}
