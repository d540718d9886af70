/* A ring of tasks on the classic switch: a yield goes to the next one. No queue, no states, no checks: the least that a
 * scheduler with such a switch does. Blocks are cache lines side by side, as Acorn's control blocks are. */
#include "../ring.h"
#include "../stack.h"
#include "classic_switch.h"

enum { STACK = 256 << 10 }; /* as large as those of Acorn's tasks */

typedef struct task {
    void *sp;
    struct task *next;
    char rest[48];
} task_t;

typedef void *(*body_t)(void *);

static _Thread_local task_t *running;
static body_t next_body;

BENCH_INLINE void yield(void)
{
    task_t *from = running, *to = from->next;
    running = to;
    classic_switch(&from->sp, to->sp);
}
RING(ring, yield)
RING_LIVE(ring_live, yield)

static void entry(void)
{
    next_body(NULL);
    abort();
}

/* The flow of control that measures is one of the ring. Rings of earlier samples stay as they are. */
static void *ring_of(body_t body, size_t number)
{
    task_t *tasks = (task_t *)aligned_alloc(64, number * sizeof *tasks);
    native_must(tasks != NULL, "no memory");
    for (size_t i = 0; i < number; i++) {
        tasks[i].next = &tasks[(i + 1) % number];
        if (i > 0)
            tasks[i].sp = classic_start(bench_stack_new(STACK), entry);
    }
    running = tasks;
    next_body = body;
    ring_others = number - 1;
    ring_wanted = 1;
    yield();
    return tasks;
}

static void *ring_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(ring_body);
    return ring_of(all[placement], number);
}

static void *ring_live_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(ring_live_body);
    return ring_of(all[placement], number);
}

int main(int argc, char **argv)
{
    static const native_case_t cases[] = {
        {"ring", ring_make, NATIVE_ALL(ring)},
        {"ring_live", ring_live_make, NATIVE_ALL(ring_live)},
        {NULL, NULL, {NULL, NULL, NULL, NULL}},
    };
    if (argc == 7)
        bench_stacks_made = (unsigned)strtoul(argv[6], NULL, 10);
    return native_main(argc, argv, cases);
}
