/* Tasks on share stacks.
 *
 * While another coroutine uses the stack, the task's block has a context that runs arrives() on the scratch stack, so
 * any switch to the task first restores its frames. Its own context is in its annex meanwhile.
 *
 * A task that waits has its wait record, its places in queues and its scopes among its frames. When the frames are
 * copied, all pointers to these are changed to the copy: while the frames are saved, a waker writes into the save area.
 * The same is done with what the record points to, such as the element of a channel. */
#include "scheduler/on_share_stack.h"
#include "scheduler/wait.h"

#include "aco/detail/for_libraries.h"

/* The bytes that were moved. */
typedef struct move {
    uintptr_t from, sz, to;
} move_t;

/* What `p` points to is there now. */
static void *moved(const move_t *move, const void *p)
{
    uintptr_t offset = (uintptr_t)p - move->from;
    return (void *)(offset < move->sz ? move->to + offset : (uintptr_t)p);
}

static void move_waiters(const move_t *move, aco__wait_t *wait)
{
    int has_elements =
        (wait->kind >= ACO__WAIT_SEND && wait->kind <= ACO__WAIT_SELECT) || wait->kind == ACO__WAIT_MT;
    aco__waiter_t *waiter;
    for (aco__waiter_t **link = &wait->first; *link; link = &waiter->other) {
        waiter = *link = moved(move, *link);
        waiter->wait = wait;
        if (has_elements)
            waiter->element = moved(move, waiter->element);
        if (!waiter->queue)
            continue;
        waiter->queue = moved(move, waiter->queue);
        waiter->next = moved(move, waiter->next);
        waiter->previous = moved(move, waiter->previous);
        *(waiter->previous ? &waiter->previous->next : &waiter->queue->first) = waiter;
        *(waiter->next ? &waiter->next->previous : &waiter->queue->last) = waiter;
    }
    wait->woken = moved(move, wait->woken);
}

static void move_wait(const move_t *move, aco_t *task)
{
    aco__tasks_t *s = aco__tasks(aco__self());
    aco__annex_t *annex = aco__annex(task);
    aco__wait_t *waits = aco__task_wait(task), *wait = moved(move, waits ? waits : annex->wait);
    ACO__ASSERT(wait->task == task && wait->kind <= ACO__WAIT_MT);
    wait->object = moved(move, wait->object);
    if (wait->kind == ACO__WAIT_COND || wait->kind == ACO__WAIT_RELOCK || wait->kind == ACO__WAIT_MUTEX)
        wait->value = moved(move, wait->value); /* the mutex */
    move_waiters(move, wait);
    if (wait->timer.index)
        s->timers[wait->timer.index - 1].timed = &wait->timer;
    if (wait->kind == ACO__WAIT_MEMBERS && waits)
        ((aco_group_t *)(uintptr_t)wait->object)->aco__ender = wait;
    if (waits)
        aco__set_task_wait(task, wait);
    annex->wait = wait;
}

static void move_scopes(const move_t *move, const aco_t *task)
{
    aco_scope_t *scope;
    aco_scope_t **link = &aco__annex(task)->record->scope;
    while (*link) {
        scope = *link = moved(move, *link);
        if (scope->aco__task != task) /* a group's */
            return;
        scope->aco__limit = moved(move, scope->aco__limit);
        scope->aco__ended_by = moved(move, scope->aco__ended_by);
        link = &scope->aco__outer;
    }
}

static ACO__ARRIVAL_ABI void arrives(ACO__ARRIVAL_PARAMETERS);

/* The task's context is in its block: it becomes that of arrives(). */
static inline void set_aside(const aco__thread_t *self, aco_t *task)
{
    aco__annex(task)->context = task->aco__self;
    aco__begin_in(&task->aco__self, self->scratch->runner.aco__self.sp, arrives);
}

/* The frames of a task were moved from its stack or from its save area. */
static inline __attribute__((always_inline)) void follow(const move_t *move, aco_t *task, int is_from_stack)
{
    aco__annex_t *annex = aco__annex(task);
    if (aco__task_wait(task) || aco_unlikely(annex->flags & TASK_EARLY)) {
        move_wait(move, task);
    } else if (!is_from_stack) {
        aco__wait_t *wait = moved(move, annex->wait);
        if (wait != annex->wait) { /* it is over: only this is still read */
            wait->woken = moved(move, wait->woken);
            annex->wait = wait;
        }
    }
    if (annex->flags & TASK_SCOPED)
        move_scopes(move, task);
}

static void task_moved(aco_t *task, const void *from, size_t sz, void *to)
{
    const aco__thread_t *self = aco__self();
    const move_t move = {(uintptr_t)from, sz, (uintptr_t)to};
    follow(&move, task, aco__is_on_its_stack(task, from));
    if (from == task->aco__self.sp && !(self->task == task && aco__in_turn(aco__tasks(self)))) /* no resumer */
        set_aside(self, task);
}

/* Runs on the scratch stack: a switch to the task, which has its frames saved. */
ACO__NO_SANITIZE ACO__ARRIVAL_ABI static void arrives(ACO__ARRIVAL_PARAMETERS)
{
    aco_t *task = (aco_t *)(tagged & ~(uintptr_t)1), *owner;
    const aco__annex_t *annex = aco__annex(task);
    const aco_t *next = aco__task_next(task);
    const char *slot = aco__slot(next);
    const void *area = task->save_stack.ptr;
    size_t sz = task->save_stack.valid_sz;
    if (slot)
        for (int i = 0; i < 4; i++)
            __builtin_prefetch(slot + i * ACO__CACHE_LINE);
    task->aco__self = annex->context;
    /* One with TASK_EARLY may stand beside the owner in a queue: both must be moved one after the other. */
    owner = aco_likely(!(annex->flags & TASK_EARLY)) ? aco__stack_swap_tasks(task) : NULL;
    if (aco_likely(owner != NULL)) {
        const move_t out = {(uintptr_t)owner->aco__self.sp, owner->save_stack.valid_sz,
                            (uintptr_t)owner->save_stack.ptr};
        const move_t in = {(uintptr_t)area, sz, (uintptr_t)task->aco__self.sp};
        follow(&out, owner, 1); /* what task_moved() does, for both */
        set_aside(aco__self(), owner);
        follow(&in, task, 0);
    } else {
        aco__stack_restore(task, 1, "aco_run");
    }
    aco__switch_enter(aco__tls_ref(), task, tagged, value);
}

int aco__on_share_stack_prepare(aco_t *co, aco__arrival_t *first, aco_function_t fn)
{
    static const char call[] = "aco_spawn";
    aco__annex_t *annex;
    size_t sz = __atomic_load_n(&aco__notes_spawns, __ATOMIC_RELAXED) ? ACO__NOTED_ANNEX : ACO__TASK_ANNEX;
    if (!aco__scratch())
        return aco__fail_memory(0, call, sizeof(aco__scratch_t));
    annex = aco__memory_new(&sz);
    if (!annex)
        return aco__fail_memory(0, call, sz);
    memset(annex, 0, sz);
    annex->task = co;
    aco__set_task_annex(co, annex);
    if (aco__stack_start(co, call) != 0)
        return -1;
    aco__begin_in(&co->aco__self, co->aco__self.sp, first);
    annex->function = fn;
    set_aside(aco__self(), co);
    return 0;
}

void aco__on_share_stack_ends(aco__thread_t *self, aco_t *task)
{
    aco__annex_t *annex = aco__annex(task);
    if (annex->record)
        aco__memory_free(annex->record, sizeof *annex->record);
    annex->record = NULL;
    ACO__ASSERT(self->scoped_tasks);
    self->scoped_tasks--;
    aco__stack_release(task);
}

ACO__AT_LOAD static void register_shared(void)
{
    aco__upcalls.task_moved = task_moved;
    aco__upcalls.entry_of_shared_task = aco__entry_of_task;
}

int aco__may_move(const void *p)
{
    const aco__thread_t *self = aco__self();
    const aco_t *task = aco__current(self), *running = self->running;
    return (running && !aco__stack_is_kept(running) && aco__is_on_its_stack(running, p)) ||
           (task && !aco__stack_is_kept(task) && aco__is_on_its_stack(task, p));
}
