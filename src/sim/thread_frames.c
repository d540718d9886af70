/* How a thread leaves its function from wherever it is. */
#include "sim/thread_frames.h"
#include "sim/held.h"
#include "sim/world.h"

__attribute__((noinline)) void aco__sim_call_function(aco__sim_thread_t *thread)
{
    jmp_buf base;
    if (thread->is_to_leave)
        return;
    thread->base = &base;
    if (setjmp(base) == 0)
        thread->returned = thread->fn(thread->arg);
    thread->base = NULL;
}

int aco__sim_may_leave_frames(void)
{
    return !aco__running() || aco__chooser_may_leave_turn();
}

void aco__sim_leave_frames(aco__sim_thread_t *thread)
{
    jmp_buf *base = thread->base;
    if (!base)
        return;
    aco__sim_let_all_go(thread);
    if (aco__running())
        aco__chooser_leave_turn();
    thread->base = NULL;
    aco__chooser_leaves_frames(__builtin_frame_address(0), base);
    longjmp(*base, 1);
}
