/* A ring of tasks without queue, states or checks: a yield goes to the next block. The blocks are adjacent cache lines,
 * as Acorn's control blocks are. The including program brings the switch. */
#ifndef BENCH_PLAIN_RING_H
#define BENCH_PLAIN_RING_H
#include "ring.h"
#include "stack.h"

typedef struct task {
    void *sp;
    struct task *next;
    void *pc, *bp; /* for switches that do not keep them on the stack */
    char rest[32];
} task_t;
_Static_assert(sizeof(task_t) == 64, "a task is a cache line");

typedef void *(*body_t)(void *);

extern _Thread_local task_t *ring_running;
_Thread_local task_t *ring_running; /* assembly names it */
static body_t ring_next_body;

static void ring_entry(void)
{
    ring_next_body(NULL);
    abort();
}

/* The caller, which measures, is the first task of the ring. start() prepares the i-th task to run ring_entry(). Rings
 * of earlier samples stay as they are. */
BENCH_FUNCTION void *plain_ring_of(body_t body, size_t number, void (*start)(task_t *task, size_t i),
                                   void (*yield)(void))
{
    task_t *tasks = (task_t *)aligned_alloc(64, number * sizeof *tasks);
    native_must(tasks != NULL, "no memory");
    for (size_t i = 0; i < number; i++) {
        tasks[i].next = &tasks[(i + 1) % number];
        if (i > 0)
            start(&tasks[i], i);
    }
    ring_running = tasks;
    ring_next_body = body;
    ring_others = number - 1;
    ring_wanted = 1;
    yield();
    return tasks;
}

#endif
