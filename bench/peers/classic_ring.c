/* A ring of tasks on the classic switch: the least work of a scheduler with such a switch. */
#include "../plain_ring.h"
#include "classic_switch.h"

enum { STACK = 256 << 10 }; /* as large as those of Acorn's tasks */

BENCH_INLINE void yield(void)
{
    task_t *from = ring_running, *to = from->next;
    ring_running = to;
    classic_switch(&from->sp, to->sp);
}
RING(ring, yield)
RING_LIVE(ring_live, yield)

static void start(task_t *task, size_t i)
{
    (void)i;
    task->sp = classic_start(bench_stack_new(STACK), ring_entry);
}

static void *ring_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(ring_body);
    return plain_ring_of(all[placement], number, start, yield);
}

static void *ring_live_make(unsigned placement, size_t number)
{
    static const body_t all[] = NATIVE_ALL(ring_live_body);
    return plain_ring_of(all[placement], number, start, yield);
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
