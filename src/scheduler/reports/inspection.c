/* What the tasks of all threads do. Who asks posts to each scheduler (inbox.c), and the thread looks at its own tasks,
 * some in each round, so that no task waits for long. Nobody stops a thread: one whose task does not give way does not
 * answer.
 *
 * The process lock protects the list of schedulers and what each is asked for. */
#include "base/slab.h"
#include "coroutine/backtrace_internal.h"
#include "scheduler/inbox.h"
#include "scheduler/reports/inspection.h"
#include "scheduler/reports/report.h"
#include "scheduler/reports/stuck.h"
#include "scheduler/wait.h"

#include "os/clock.h"

#include "aco/backtrace.h"
#include "aco/pool.h"

enum {
    BLOCKS = 16,      /* control blocks between two looks at the clock */
    LINES_AHEAD = 4,
    STACK_LINE = 64,  /* bytes of a cache line, or not more */
    SLICE_NS = 200000 /* then others have their turn */
};

static aco__tasks_t *first_scheduler;
static int is_inspected;

#ifdef _WIN32
static long thread_number(void)
{
    return 0;
}
#else
#define thread_number aco__os_thread_number
#endif

static void look_posted(aco__thread_t *self, aco__post_t *post);
static void trace_posted(aco__thread_t *self, aco__post_t *post);

void aco__inspect_join(aco__thread_t *self, aco__tasks_t *s)
{
    aco__inspected_t *inspected = &s->inspected;
    int is_watched;
    inspected->of = self;
    inspected->thread = thread_number();
    inspected->post.run = look_posted; /* only here: its thread may read it when it is posted again */
    inspected->trace_post.run = trace_posted;
    aco__lock();
    inspected->next = first_scheduler;
    inspected->link = &first_scheduler;
    if (first_scheduler)
        first_scheduler->inspected.link = &inspected->next;
    first_scheduler = s;
    __atomic_store_n(&s->answers, (char)is_inspected, __ATOMIC_RELAXED);
    is_watched = is_inspected;
    aco__unlock();
    if (is_watched)
        (void)aco__signal_stack(); /* without one, handlers need room on the tasks' stacks */
}

/* The caller has no lock. */
void aco__inspect_release(aco__inspection_t *inspection)
{
    if (__atomic_sub_fetch(&inspection->holders, 1, __ATOMIC_ACQ_REL) == 0)
        inspection->free(inspection);
}

/* The thread has answered, or never will. The caller has the lock; returns what it lets go without, or NULL. */
static aco__inspection_t *answered(aco__inspected_t *inspected)
{
    aco__inspection_t *inspection = inspected->inspection;
    inspected->inspection = NULL;
    if (inspection)
        __atomic_sub_fetch(&inspection->pending, 1, __ATOMIC_RELEASE);
    return inspection;
}

static void end_look(aco__inspected_t *inspected)
{
    inspected->from = 0;
    if (inspected->known)
        aco__memory_free(inspected->known, sizeof *inspected->known);
    inspected->known = NULL;
}

void aco__inspect_leave(aco__tasks_t *s)
{
    aco__inspected_t *inspected = &s->inspected;
    aco__inspection_t *inspection;
    aco__lock();
    if (inspected->link)
        *inspected->link = inspected->next;
    if (inspected->link && inspected->next)
        inspected->next->inspected.link = inspected->link;
    inspected->link = NULL;
    inspected->next = NULL;
    inspection = answered(inspected);
    aco__unlock();
    if (inspection)
        aco__inspect_release(inspection);
    aco__inbox_forget(s, &inspected->post);
    aco__inbox_forget(s, &inspected->trace_post);
    end_look(inspected);
}

/* ---- On the thread that is asked ---- */

typedef struct batch {
    const aco__thread_t *self;
    aco_t *tasks[BLOCKS];
    size_t n;
} batch_t;

static int note_own(aco_t *co, void *arg)
{
    batch_t *batch = arg;
    if (aco__is_task(co) && co->share_stack->aco__thread == batch->self) {
        const char *sp = co->aco__self.sp;
        for (int i = 0; i < LINES_AHEAD; i++) /* of many tasks, most of a look is waiting for their stacks' memory */
            __builtin_prefetch(sp + (ptrdiff_t)i * STACK_LINE);
        batch->tasks[batch->n++] = co;
    }
    return 0;
}

static void see(const aco__tasks_t *s, aco__inspection_t *inspection, const aco_t *task)
{
    aco__task_seen_t seen = {0};
    void *frames[ACO__MOST_SEEN_FRAMES];
    char text[3 * ACO__REPORT_TEXT];
    int n = s->inspected.known ? aco__backtrace_known(task, s->inspected.known, frames, ACO__MOST_SEEN_FRAMES) : 0;
    seen.thread = s->inspected.thread;
    seen.frames = frames;
    seen.frame_count = n > 0 ? n : 0;
    if (aco__has(task, ACO__PRIVATE) && !aco__stack_is_callers(task->share_stack))
        seen.stack_size = (int64_t)task->share_stack->sz;
    if (inspection->wants_stacks && seen.stack_size)
        seen.stack_bytes = aco_stack_high_water(task);
    aco__report_task(s->inspected.of, task, inspection->wants_text, text, &seen);
    seen.work = aco__work(task);
    inspection->see(inspection, &seen);
}

typedef struct look {
    const aco__tasks_t *s;
    aco__inspection_t *inspection;
} look_t;

static void see_stuck(const aco_t *task, void *arg)
{
    const look_t *look = arg;
    if (!__atomic_load_n(&look->inspection->is_over, __ATOMIC_ACQUIRE))
        see(look->s, look->inspection, task);
}

const char *aco__place_text(const char *location, char *text, size_t size)
{
    location = location ? aco__location(location, text, size) : NULL;
    return location ? location : "";
}

static aco__late_observer_t late_observer; /* atomic */

static void tell_late(aco__thread_t *self, const aco_t *task, size_t more, int64_t late_ns)
{
    aco__late_observer_t observer = __atomic_load_n(&late_observer, __ATOMIC_ACQUIRE);
    aco__task_seen_t seen = {.name = "", .work = "", .thread = aco__tasks(self)->inspected.thread};
    void *frames[ACO__MOST_SEEN_FRAMES];
    char text[3 * ACO__REPORT_TEXT];
    int error = errno, n;
    if (!observer)
        return;
    if (!task) {
        observer(&seen, more, late_ns);
        return;
    }
    aco__tasks(self)->inspected.owner = NULL;
    n = aco_backtrace(task, frames, ACO__MOST_SEEN_FRAMES);
    errno = error;
    seen.frames = frames;
    seen.frame_count = n > 0 ? n : 0;
    aco__report_task(self, task, 0, text, &seen);
    seen.work = aco__work(task);
    observer(&seen, 1, late_ns);
}

void aco__inspect_late(aco__late_observer_t observer)
{
    __atomic_store_n(&late_observer, observer, __ATOMIC_RELEASE);
    __atomic_store_n(&aco__timers_tell, observer ? tell_late : NULL, __ATOMIC_RELEASE);
}

/* The thread goes on with an inspection, or begins it. */
static void begin_look(aco__inspected_t *inspected, const aco__inspection_t *inspection)
{
    size_t sz = sizeof *inspected->known;
    if (inspected->looks == inspection->number)
        return;
    __atomic_store_n(&inspected->looks, inspection->number, __ATOMIC_RELAXED);
    inspected->from = 0;
    if (!inspected->known && (inspected->known = aco__memory_new(&sz)) != NULL) /* without: no frames */
        *inspected->known = (aco__known_stacks_t){0};
}

/* Whether all tasks were seen. */
static int see_some(aco__thread_t *self, aco__tasks_t *s, aco__inspection_t *inspection)
{
    int64_t began = aco__os_now();
    s->inspected.owner = NULL;
    if (inspection->wants_stuck) {
        look_t look = {s, inspection};
        (void)aco__stuck_each(self, see_stuck, &look); /* without memory nothing is found */
        return 1;
    }
    do {
        batch_t batch = {.self = self};
        aco__blocks_some(note_own, &batch, &s->inspected.from, BLOCKS);
        for (size_t i = 0; i < batch.n && !__atomic_load_n(&inspection->is_over, __ATOMIC_ACQUIRE); i++)
            see(s, inspection, batch.tasks[i]);
        if (!s->inspected.from || __atomic_load_n(&inspection->is_over, __ATOMIC_ACQUIRE))
            return 1;
    } while (aco__os_now() - began < SLICE_NS);
    return 0;
}

static void look_posted(aco__thread_t *self, aco__post_t *post)
{
    aco__tasks_t *s = aco__tasks(self);
    aco__inspection_t *inspection;
    int has_seen_all, error;
    (void)aco__signal_stack();
    aco__lock();
    inspection = s->inspected.inspection;
    if (inspection)
        __atomic_add_fetch(&inspection->holders, 1, __ATOMIC_RELAXED);
    aco__unlock();
    if (!inspection) {
        end_look(&s->inspected);
        return;
    }
    error = errno;
    ACO__NO_SWITCH_BEGIN();
    begin_look(&s->inspected, inspection);
    has_seen_all = see_some(self, s, inspection);
    ACO__NO_SWITCH_END();
    errno = error;
    if (has_seen_all)
        end_look(&s->inspected);
    aco__lock();
    if (has_seen_all && s->inspected.inspection == inspection)
        answered(&s->inspected);
    else
        has_seen_all = 0; /* or it is asked for another one */
    aco__unlock();
    aco__inspect_release(inspection);
    if (has_seen_all)
        aco__inspect_release(inspection);
    else
        aco__inbox_post(s, post);
}

/* ---- Turns ---- */

static aco__turn_observer_t turn_observer; /* atomic */

static void trace_posted(aco__thread_t *self, aco__post_t *post)
{
    aco__tasks_t *s = aco__tasks(self);
    (void)post;
    if (s->tells_turns || s->chooser || !__atomic_load_n(&turn_observer, __ATOMIC_ACQUIRE))
        return;
    s->tells_turns = 1;
    self->slow_switch_tasks++; /* each task then returns to run() */
}

static const char *what_comes_next(const aco__wait_t *wait)
{
    switch (wait ? aco__kind_of_wait(wait->kind) : 0) {
    case 0:
        return "gave way";
    case ACO__SEEN_LOCK:
        return "waits for a lock";
    case ACO__SEEN_IO:
        return "waits for a descriptor";
    case ACO__SEEN_TIME:
        return "sleeps";
    default:
        return "waits for others";
    }
}

void aco__inspect_turn(aco__thread_t *self, aco__tasks_t *s, const aco_t *task, int is_left, int64_t began,
                       const char *name)
{
    aco__turn_observer_t observer = __atomic_load_n(&turn_observer, __ATOMIC_ACQUIRE);
    aco__turn_seen_t turn = {.task = task, .name = name, .work = "", .next = "ended", .began = began};
    if (!observer) {
        s->tells_turns = 0;
        self->slow_switch_tasks--;
        return;
    }
    if (is_left) {
        const aco__wait_t *wait = aco__task_wait(task);
        turn.next = what_comes_next(wait);
        turn.location = wait ? wait->location : NULL;
        turn.work = aco__work(task);
    }
    turn.thread = s->inspected.thread;
    turn.ended = aco__os_now();
    observer(&turn);
}

void aco__inspect_turns(aco__turn_observer_t observer)
{
    __atomic_store_n(&turn_observer, observer, __ATOMIC_RELEASE);
    aco__lock();
    for (aco__tasks_t *s = first_scheduler; s && observer; s = s->inspected.next) {
        aco__inbox_ask(s, &s->inspected.trace_post);
    }
    aco__unlock();
}

/* ---- Who asks ---- */

static void leave_others_in_child(void)
{
    aco__tasks_t *own = aco__tasks(aco__self());
    first_scheduler = own && own->inspected.link ? own : NULL;
    if (first_scheduler) {
        own->inspected.next = NULL;
        own->inspected.link = &first_scheduler;
        own->inspected.inspection = NULL;
        own->answers = 0;
    }
    is_inspected = 0;
    turn_observer = NULL; /* those who asked are no more */
    late_observer = NULL;
    aco__timers_tell = NULL;
}

int aco__inspect_on(void)
{
    static int handles_forks;
    int error = 0;
    if (!__atomic_exchange_n(&handles_forks, 1, __ATOMIC_SEQ_CST))
        error = aco__os_at_fork(NULL, NULL, leave_others_in_child);
    if (error) {
        __atomic_store_n(&handles_forks, 0, __ATOMIC_SEQ_CST);
        return aco__fail(0, error, "aco_debug_serve", NULL, "%s", strerror(error));
    }
    __atomic_store_n(&aco__notes_spawns, 1, __ATOMIC_RELAXED);
    aco__lock();
    is_inspected = 1;
    for (aco__tasks_t *s = first_scheduler; s; s = s->inspected.next) {
        __atomic_store_n(&s->answers, 1, __ATOMIC_RELAXED);
        aco__inbox_ask(s, &s->inspected.post);
    }
    aco__unlock();
    return 0;
}

void aco__inspect_begin(aco__inspection_t *inspection)
{
    static unsigned last_number;
    aco__inspection_t *old = NULL;
    inspection->is_over = 0;
    inspection->pending = 0;
    inspection->holders = 1;
    aco__lock();
    inspection->number = ++last_number ? last_number : ++last_number;
    for (aco__tasks_t *s = first_scheduler; s; s = s->inspected.next) {
        old = answered(&s->inspected); /* it has not come to it: its holder waits for it no more */
        if (old && __atomic_sub_fetch(&old->holders, 1, __ATOMIC_ACQ_REL) == 0)
            old->free(old);
        inspection->holders++;
        __atomic_add_fetch(&inspection->pending, 1, __ATOMIC_RELAXED);
        s->inspected.inspection = inspection;
        aco__inbox_ask(s, &s->inspected.post);
    }
    aco__unlock();
}

unsigned aco__inspect_pending(const aco__inspection_t *inspection)
{
    return __atomic_load_n(&inspection->pending, __ATOMIC_ACQUIRE);
}

void aco__inspect_end(aco__inspection_t *inspection, void (*missing)(void *arg, long thread, int has_begun), void *arg)
{
    aco__lock();
    for (aco__tasks_t *s = first_scheduler; s; s = s->inspected.next)
        if (s->inspected.inspection == inspection) {
            missing(arg, s->inspected.thread,
                    __atomic_load_n(&s->inspected.looks, __ATOMIC_RELAXED) == inspection->number);
            (void)answered(&s->inspected);
            __atomic_sub_fetch(&inspection->holders, 1, __ATOMIC_ACQ_REL);
        }
    __atomic_store_n(&inspection->is_over, 1, __ATOMIC_RELEASE);
    aco__unlock();
}

/* Values that the threads write without atomics: those that they had. */
ACO__NO_SANITIZE static void read_counts(const aco__tasks_t *s, aco__thread_seen_t *seen)
{
    const volatile aco__thread_t *of = s->inspected.of;
    seen->thread = s->inspected.thread;
    seen->tasks = of->tasks;
    seen->spawned = of->spawned;
    seen->late_wakes = *(const volatile uint64_t *)&s->stats.late_wakes;
    seen->turns = __atomic_load_n(&s->turns, __ATOMIC_RELAXED);
    seen->task = of->task;
}

size_t aco__inspect_threads(aco__thread_seen_t *threads, size_t n)
{
    size_t count = 0;
    aco__lock();
    for (aco__tasks_t *s = first_scheduler; s; s = s->inspected.next, count++)
        if (count < n)
            read_counts(s, &threads[count]);
    aco__unlock();
    return count;
}
