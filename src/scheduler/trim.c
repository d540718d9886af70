/* Gives back pages of tasks that used a deep stack once and now wait with a shallow one.
 *
 * A trim takes a system call, and the task may touch the pages again at once. So nothing is trimmed twice in one wait;
 * and a task that has run between two trims is trimmed in every second look only, then in every fourth, …, unless it
 * has waited since before the last call. Where that passes over a task, the thread looks again in a while even if
 * nothing happens: none keeps its pages because all fell asleep. */
#include "scheduler/trim.h"
#include "scheduler/wait.h"

enum { MOST_TRIM_MASK = 15 };

typedef struct trim_look {
    aco__thread_t *self;
    aco__tasks_t *s;
    uint32_t before; /* the time of the last call, in milliseconds modulo 2^32 */
} trim_look_t;

/* Whether the task, which has not run for longer than this wait lasts, is trimmed later. */
static int is_too_busy(const trim_look_t *look, const aco_share_stack_t *stack, int is_quiet)
{
    return !is_quiet && look->s->trim_looks & stack->aco__trim_mask &&
           !look->s->idle && !look->s->chooser; /* these cannot be told to look again */
}

/* The coroutine may be any of the thread's heap. */
static int trim_waiting(aco_t *co, void *arg)
{
    const trim_look_t *look = arg;
    aco_share_stack_t *stack = co->share_stack;
    aco__wait_t *wait;
    int is_quiet;
    if (!aco__is_task(co) || !aco__is_on_private(co) || stack->aco__thread != look->self ||
        stack->aco__trim_mask & ACO__TRIM_NEVER)
        return 0;
    wait = aco__task_wait(co);
    if (!wait || wait->since & ACO__TRIMMED) /* it is about to run; or has not run since */
        return 0;
    is_quiet = (int32_t)((uint32_t)wait->since - look->before) < 0;
    if (is_too_busy(look, stack, is_quiet)) {
        look->s->trim_busy = 1;
        return 0;
    }
    stack->aco__trim_mask = is_quiet ? 0 : (2u * stack->aco__trim_mask + 1) & MOST_TRIM_MASK;
    wait->since |= ACO__TRIMMED;
    aco__task_trim(co);
    return 0;
}

void aco__trim_some_tasks(aco__thread_t *self, aco__tasks_t *s, int64_t before, size_t most)
{
    trim_look_t look = {self, s, (uint32_t)(before / ACO_MILLISECOND)};
    self->looked_at = (uint32_t)(s->trimmed_at / ACO_MILLISECOND); /* later waits begin at this time, or later */
    aco__blocks_some(trim_waiting, &look, &s->trim_from, most);
    s->trim_again = s->trim_busy || s->trim_from;
    if (s->trim_from)
        return;
    s->trim_busy = 0;
    s->trim_looks++;
}
