/* Timers: a heap of deadlines. A node has four children, so that sifting reads few cache lines. What a timer is for
 * knows the timer's index, so that it can remove the timer earlier.
 *
 * Vacant entries. A timer that is cancelled leaves its entry in the heap, with its deadline, and the next timer that is
 * set gets that entry. As a rule its deadline is near the old one, so it moves little. Think of a task that waits again
 * and again for a second at most, among many that wait for minutes: otherwise each timer would move from the heap's end
 * to its top, and its removal would sift another one down. A vacant entry is removed when its deadline passes, or when
 * it is the first before the thread sleeps. When only vacant and lost entries remain, all go at once.
 *
 * Lost entries. Of many timers that are cancelled at once (a group of sleepers) only the last ones' entries are
 * remembered as vacant. Others are lost: nobody knows where they are. Removing one would sift timers of other tasks,
 * and write into each of these tasks' stacks. Lost entries go as vacant ones do, and all of them when the heap is full
 * and half of it is lost. */
#include "scheduler/poll_task.h"
#include "scheduler/wait.h"

enum { CHILDREN = 4, FIRST_ROOM = 16 };

static int is_before(const aco__timer_t *a, const aco__timer_t *b)
{
    return a->deadline != b->deadline ? a->deadline < b->deadline : a->sequence < b->sequence;
}

static void put(aco__tasks_t *s, size_t at, const aco__timer_t *timer)
{
    s->timers[at] = *timer;
    ACO__ASSERT((at + 1) * sizeof *timer <= s->timers_sz);
    timer->timed->index = at + 1;
}

/* These move `timer` up, or down, from the free index `at` to its place in the order. */
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

/* Puts `timer` into the free index `at`, or to its place in the order from there. */
static void sift(aco__tasks_t *s, size_t at, const aco__timer_t *timer)
{
    if (at > 0 && is_before(timer, &s->timers[(at - 1) / CHILDREN]))
        sift_up(s, at, timer);
    else
        sift_down(s, at, timer);
}

static void remove_at(aco__tasks_t *s, size_t at)
{
    aco__timer_t last;
    ACO__ASSERT(at < s->timers_count);
    last = s->timers[--s->timers_count];
    if (at != s->timers_count)
        sift(s, at, &last);
}

/* ---- Vacant entries ---- */

/* After a timer was removed. */
static void forget_useless(aco__tasks_t *s)
{
    ACO__ASSERT(s->timers_count >= s->vacant_count + s->lost_count);
    if (s->timers_count == s->vacant_count + s->lost_count)
        s->timers_count = s->vacant_count = s->lost_count = 0;
}

static int is_vacant(const aco__timed_t *timed)
{
    return !timed->due;
}

/* The first entry of the heap is vacant or lost. */
static void remove_first(aco__tasks_t *s)
{
    aco__timed_t *vacant = s->timers[0].timed;
    const aco__timed_t *last;
    remove_at(s, 0);
    if (vacant == &s->lost) {
        ACO__ASSERT(s->lost_count);
        s->lost_count--;
        return;
    }
    ACO__ASSERT(s->vacant_count && vacant >= s->vacant && vacant < s->vacant + s->vacant_count);
    last = &s->vacant[--s->vacant_count];
    if (vacant != last) {
        *vacant = *last;
        ACO__ASSERT(s->timers[vacant->index - 1].timed == last);
        s->timers[vacant->index - 1].timed = vacant;
    }
}

void aco__timers_settle(aco__tasks_t *s)
{
    while (s->timers_count && is_vacant(s->timers[0].timed))
        remove_first(s);
}

/* ---- Setting and cancelling ---- */

static int has_room(const aco__tasks_t *s, size_t count)
{
    return (s->timers_count + count) * sizeof(aco__timer_t) <= s->timers_sz;
}

static void remove_lost(aco__tasks_t *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->timers_count; i++)
        if (s->timers[i].timed != &s->lost)
            s->timers[count++] = s->timers[i];
    s->timers_count = count;
    s->lost_count = 0;
    for (size_t i = count; i-- > 0;) {
        aco__timer_t timer = s->timers[i];
        sift_down(s, i, &timer);
    }
}

/* Makes room for `count` more timers, a few. 0, or -1 and errno. */
static int make_room(aco__tasks_t *s, size_t count)
{
    size_t sz = s->timers_sz ? 2 * s->timers_sz : FIRST_ROOM * sizeof(aco__timer_t);
    aco__timer_t *timers;
    if (has_room(s, count))
        return 0;
    if (s->lost_count >= s->timers_count / 2)
        remove_lost(s);
    if (has_room(s, count))
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

int aco__timers_reserve(aco__thread_t *self, size_t count, const char *call)
{
    if (make_room(aco__tasks(self), count) != 0 || aco__poll_task_start(self) != 0)
        return aco__fail_memory(0, call, sizeof(aco__timer_t));
    return 0;
}

void aco__timer_set(aco__thread_t *self, aco__timed_t *timed, int64_t deadline,
                    void (*due)(aco__thread_t *self, aco__timed_t *timed))
{
    aco__tasks_t *s = aco__tasks(self);
    aco__timer_t timer;
    ACO__ASSERT(s->vacant_count || has_room(s, 1)); /* it was reserved */
    timer.deadline = deadline > 0 ? deadline : 0; /* long past in any case; -1 means none elsewhere */
    timer.sequence = s->timers_set++;
    timer.timed = timed;
    timed->due = due;
    if (s->vacant_count)
        sift(s, s->vacant[--s->vacant_count].index - 1, &timer);
    else
        sift_up(s, s->timers_count++, &timer);
}

void aco__timer_cancel(aco__tasks_t *s, aco__timed_t *timed)
{
    size_t at = timed->index - 1;
    ACO__ASSERT(at < s->timers_count && s->timers[at].timed == timed);
    timed->index = 0;
    if (s->vacant_count < ACO__VACANT_TIMERS) {
        aco__timed_t *vacant = &s->vacant[s->vacant_count++];
        vacant->due = NULL;
        vacant->index = at + 1;
        s->timers[at].timed = vacant;
    } else {
        s->timers[at].timed = &s->lost;
        s->lost_count++;
    }
    forget_useless(s);
}

/* A deadline at or before the last look had passed when its timer was set: it is not late. */
static int64_t note_lateness(aco__tasks_t *s, int64_t now, int64_t deadline)
{
    int64_t late = deadline > s->looked_at ? now - deadline : 0;
    s->stats.late_wakes += late > ACO__LATE_NS;
    if (late > s->stats.latest_wake_ns)
        s->stats.latest_wake_ns = late;
    return late;
}

void (*aco__timers_tell)(aco__thread_t *self, const aco_t *task, size_t n, int64_t late_ns);

ACO__COLD static void tell_late_wakes(aco__thread_t *self, const aco_t *task, size_t n, int64_t late)
{
    void (*tell)(aco__thread_t *, const aco_t *, size_t, int64_t);
    __atomic_load(&aco__timers_tell, &tell, __ATOMIC_ACQUIRE);
    if (tell)
        tell(self, task, n, late);
}

/* The first one, or more of them, are due. */
static __attribute__((noinline)) void expire_due(aco__thread_t *self, aco__tasks_t *s, int64_t now)
{
    int64_t late, untold_ns = 0;
    const aco_t *last;
    size_t told = 0, untold = 0;
    while (s->timers_count && s->timers[0].deadline <= now) {
        aco__timed_t *timed = s->timers[0].timed;
        if (is_vacant(timed)) {
            remove_first(s);
            continue;
        }
        ACO__ASSERT(timed->index == 1);
        late = note_lateness(s, now, s->timers[0].deadline);
        timed->index = 0;
        remove_at(s, 0);
        forget_useless(s);
        last = self->task ? self->last_task : NULL;
        timed->due(self, timed);
        if (aco_likely(late <= ACO__LATE_NS) || !self->task || self->last_task == last ||
            self->last_task == &s->poll_task)
            continue; /* in time, or it woke no task */
        if (told < ACO__MOST_LATE) {
            told++;
            tell_late_wakes(self, self->last_task, 1, late);
        } else {
            untold++;
            untold_ns += late;
        }
    }
    if (aco_unlikely(untold != 0))
        tell_late_wakes(self, NULL, untold, untold_ns);
}

void aco__timers_expire_at(aco__thread_t *self, aco__tasks_t *s, int64_t now)
{
    if (aco__timers_are_due(s, now))
        expire_due(self, s, now);
    s->looked_at = now;
    self->looked_at = (uint32_t)(now / ACO_MILLISECOND);
}
