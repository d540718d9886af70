/* A few tasks that take turns until all have returned. The same calls run on Acorn's scheduler, on a ring with the
 * classic switch, on a ring of Boost.Context's fibers and on corosensei's coroutines, so one source measures all of
 * them.
 *
 *   tasks_run(body, arguments, size, number)  runs `number` tasks body(argument) round robin until all have returned
 *   tasks_yield()                             in a task: lets the next task run
 *   TASK_LAYER                                marks a function on the way to a yield; never inlined
 *   TASK_RETURNS                              how it returns; with TASKS_RETURNS and Acorn by pop and jump
 *
 * TASKS_CLASSIC, TASKS_BOOST or TASKS_COROSENSEI chooses; without them it is Acorn. The rings keep no states and check
 * nothing, which is the least that such a scheduler does. */
#ifndef BENCH_TASKS_H
#define BENCH_TASKS_H
#include "native.h"

typedef void *(*task_body_t)(void *argument);
enum { TASK_STACK = 64 << 10,
       TASKS_MOST = 64 };

BENCH_INLINE void *task_argument(void *arguments, size_t size, size_t i)
{
    return (char *)arguments + i * size;
}

#ifdef TASKS_RETURNS
#include <aco/returns.h>
#define TASK_RETURNS ACO_SWITCHING_RETURNS
#else
#define TASK_RETURNS
#endif

#if defined(TASKS_CLASSIC)
#define TASKS_IMPL "classic switch"
#define TASK_LAYER static __attribute__((noinline, unused))
#include "peers/classic_switch.h"
#include "stack.h"

typedef struct task {
    void *sp;
    struct task *next, *previous;
    task_body_t body;
    void *argument;
    char *stack;
} __attribute__((aligned(64))) task_t;

static task_t tasks[TASKS_MOST], *task_running;
static void *tasks_caller;

/* Not inline: a classic switch is a call. */
static __attribute__((noinline, unused)) void tasks_yield(void)
{
    task_t *from = task_running, *to = from->next;
    task_running = to;
    classic_switch(&from->sp, to->sp);
}

static void task_entry(void)
{
    task_t *self = task_running;
    self->body(self->argument);
    self->previous->next = self->next;
    self->next->previous = self->previous;
    task_running = self->next;
    classic_switch(&self->sp, self->next == self ? tasks_caller : self->next->sp);
    abort();
}

BENCH_FUNCTION void tasks_run(task_body_t body, void *arguments, size_t size, size_t number)
{
    native_must(number <= TASKS_MOST, "too many tasks");
    for (size_t i = 0; i < number; i++) {
        char *stack = tasks[i].stack ? tasks[i].stack : bench_stack_new(TASK_STACK);
        task_t task = {classic_start(stack, task_entry), &tasks[(i + 1) % number], &tasks[(i + number - 1) % number],
                       body, task_argument(arguments, size, i), stack};
        tasks[i] = task;
    }
    task_running = tasks;
    classic_switch(&tasks_caller, tasks[0].sp);
}

BENCH_FUNCTION int tasks_main(int argc, char **argv, const native_case_t *cases)
{
    if (argc == 7)
        bench_stacks_made = (unsigned)strtoul(argv[6], NULL, 10);
    return native_main(argc, argv, cases);
}

#elif defined(TASKS_BOOST)
#define TASKS_IMPL "Boost.Context"
#define TASK_LAYER static __attribute__((noinline, unused))
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <utility>

struct task_t {
    boost::context::fiber context;
    task_t *next, *previous;
};

static task_t tasks[TASKS_MOST], *task_running;
static boost::context::fiber *tasks_caller;

/* One switch for each turn: the resumed task stores the context of the task that resumed it. */
static __attribute__((noinline, unused)) void tasks_yield(void)
{
    task_t *self = task_running;
    task_running = self->next;
    boost::context::fiber from = std::move(task_running->context).resume();
    if (from)
        task_running->previous->context = std::move(from);
}

BENCH_FUNCTION void tasks_run(task_body_t body, void *arguments, size_t size, size_t number)
{
    boost::context::fiber main_context;
    native_must(number <= TASKS_MOST, "too many tasks");
    for (size_t i = 0; i < number; i++) {
        task_t *self = &tasks[i];
        self->next = &tasks[(i + 1) % number];
        self->previous = &tasks[(i + number - 1) % number];
        void *argument = task_argument(arguments, size, i);
        self->context = boost::context::fiber(
            std::allocator_arg, boost::context::fixedsize_stack(), [=](boost::context::fiber &&from) {
                if (self == tasks)
                    *tasks_caller = std::move(from);
                else
                    self->previous->context = std::move(from);
                body(argument);
                self->previous->next = self->next;
                self->next->previous = self->previous;
                task_running = self->next;
                return std::move(self->next == self ? *tasks_caller : self->next->context);
            });
    }
    tasks_caller = &main_context;
    task_running = tasks;
    std::move(tasks[0].context).resume();
}

BENCH_FUNCTION int tasks_main(int argc, char **argv, const native_case_t *cases)
{
    if (argc == 7) /* the allocator places the stacks: shift its addresses */
        bench_escape(bench_alloc(strtoul(argv[6], NULL, 10) % 60 * 64 + 1));
    return native_main(argc, argv, cases);
}

#elif defined(TASKS_COROSENSEI)
#define TASKS_IMPL "corosensei"
#define TASK_LAYER static __attribute__((noinline, unused))

/* bench/peers/corosensei/src/tasks.rs */
void corosensei_run(task_body_t body, void *arguments, size_t size, size_t number);
void corosensei_yield(void);

BENCH_INLINE void tasks_yield(void)
{
    corosensei_yield();
}

BENCH_FUNCTION void tasks_run(task_body_t body, void *arguments, size_t size, size_t number)
{
    corosensei_run(body, arguments, size, number);
}

BENCH_FUNCTION int tasks_main(int argc, char **argv, const native_case_t *cases)
{
    return native_main(argc, argv, cases);
}

#else
#define TASKS_IMPL "acorn"
#include <aco.h>
#include <aco/scheduler.h>
#define TASK_LAYER static ACO_SWITCHING TASK_RETURNS __attribute__((noinline, unused))

BENCH_INLINE void tasks_yield(void)
{
    aco_task_yield();
}

/* The caller is a task itself; while it waits it is not in the ring. */
BENCH_FUNCTION void tasks_run(task_body_t body, void *arguments, size_t size, size_t number)
{
    aco_t *tasks[TASKS_MOST];
    native_must(number <= TASKS_MOST, "too many tasks");
    for (size_t i = 0; i < number; i++) {
        tasks[i] = aco_spawn(body, task_argument(arguments, size, i), NULL);
        native_must(tasks[i] != NULL, aco_error_message());
    }
    for (size_t i = 0; i < number; i++)
        native_must(aco_join(tasks[i], NULL) == 0, aco_error_message());
}

typedef struct tasks_main {
    int argc, status;
    char **argv;
    const native_case_t *cases;
} tasks_main_t;

BENCH_FUNCTION void *tasks_main_body(void *arg)
{
    tasks_main_t *m = (tasks_main_t *)arg;
    m->status = native_main(m->argc, m->argv, m->cases);
    return NULL;
}

BENCH_FUNCTION int tasks_main(int argc, char **argv, const native_case_t *cases)
{
    tasks_main_t m = {argc, 1, argv, cases};
    aco_t *task = aco_spawn(tasks_main_body, &m, NULL);
    native_must(task != NULL, aco_error_message());
    native_must(aco_run() == 0, "tasks wait for ever");
    native_must(aco_join(task, NULL) == 0, aco_error_message());
    return m.status;
}
#endif

#endif
