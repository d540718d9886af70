/* Timers: a heap of the deadlines of waits. A node has four children, so that sifting reads few cache lines. Each wait
 * knows the index of its timer, so that a task that is woken earlier can remove it. */
#include "os/clock.h"
#include "scheduler/wait.h"


enum { CHILDREN = 4, FIRST_ROOM = 16 };

static int is_before(const aco__timer_t *a, const aco__timer_t *b)
{
    return a->deadline != b->deadline ? a->deadline < b->deadline : a->sequence < b->sequence;
}

static void put(aco__tasks_t *s, size_t at, const aco__timer_t *timer)
{
    s->timers[at] = *timer;
    timer->wait->timer = at + 1;
}

/* These move `timer` up, or down, from the vacant index `at` to its place in the order. */
static void sift_up(aco__tasks_t *s, size_t at, const aco__timer_t *timer)
{
    while (at > 0 && is_before(timer, &s->timers[(at - 1) / CHILDREN])) {
        put(s, at, &s->timers[(at - 1) / CHILDREN]);
        at = (at - 1) / CHILDREN;
    }
    put(s, at, timer);
}

static void sift_down(aco__tasks_t *s, size_t at, const aco__timer_t *timer)
{
    for (;;) {
        size_t child = at * CHILDREN + 1, end = child + CHILDREN, first = child;
        if (end > s->timers_count)
            end = s->timers_count;
        for (size_t i = child + 1; i < end; i++)
            if (is_before(&s->timers[i], &s->timers[first]))
                first = i;
        if (child >= end || !is_before(&s->timers[first], timer))
            break;
        put(s, at, &s->timers[first]);
        at = first;
    }
    put(s, at, timer);
}

/* Makes room for one more timer. 0, or -1 and errno. */
static int make_room(aco__tasks_t *s)
{
    size_t sz = s->timers_sz ? 2 * s->timers_sz : FIRST_ROOM * sizeof(aco__timer_t);
    aco__timer_t *timers;
    if ((s->timers_count + 1) * sizeof(aco__timer_t) <= s->timers_sz)
        return 0;
    timers = aco__memory_new(&sz);
    if (!timers)
        return -1;
    if (s->timers) {
        memcpy(timers, s->timers, s->timers_count * sizeof *timers);
        aco__memory_free(s->timers, s->timers_sz);
    }
    s->timers = timers;
    s->timers_sz = sz;
    return 0;
}

int aco__timer_set(aco__thread_t *self, aco__wait_t *wait, int64_t ns, const char *call)
{
    aco__tasks_t *s = aco__tasks(self);
    aco__timer_t timer;
    int64_t now = aco__os_now();
    if (make_room(s) != 0 || aco__poll_task_start(self) != 0)
        return aco__fail_memory(0, call, sizeof timer);
    timer.deadline = ns < INT64_MAX - now ? now + ns : INT64_MAX;
    timer.sequence = s->timers_set++;
    timer.wait = wait;
    sift_up(s, s->timers_count++, &timer);
    return 0;
}

void aco__timer_cancel(aco__tasks_t *s, aco__wait_t *wait)
{
    size_t at = wait->timer - 1;
    aco__timer_t last = s->timers[--s->timers_count];
    wait->timer = 0;
    if (at == s->timers_count)
        return;
    if (at > 0 && is_before(&last, &s->timers[(at - 1) / CHILDREN]))
        sift_up(s, at, &last);
    else
        sift_down(s, at, &last);
}

void aco__timers_expire(aco__thread_t *self)
{
    aco__tasks_t *s = aco__tasks(self);
    int64_t now = s->timers_count ? aco__os_now() : 0;
    while (s->timers_count && s->timers[0].deadline <= now) {
        aco__wait_t *wait = s->timers[0].wait;
        int64_t late = now - s->timers[0].deadline;
        s->stats.late_wakes += late > ACO__LATE_NS;
        if (late > s->stats.latest_wake_ns)
            s->stats.latest_wake_ns = late;
        if (wait->time_out) {
            aco__timer_cancel(s, wait);
            wait->time_out(wait);
        } else {
            aco__wake(self, wait, wait->kind == ACO__WAIT_SLEEP ? 0 : ETIMEDOUT);
        }
    }
}
