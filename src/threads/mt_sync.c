/* Waiting for what other threads give (threads/mt_sync.h), and the objects other than channels.
 *
 * A wait for a condition puts its place into the condition's queue before it unlocks the mutex, both under the two
 * locks: a signal sent with the mutex locked, or after, finds it. A signal claims the waiter and moves it into the
 * mutex's queue. A broadcast moves the waiters thread by thread: when the mutex goes to the first of a thread's, all of
 * them are woken, the others early. One that runs before it gets the mutex is not woken early again: it waits until the
 * mutex is handed to it. So each is told exactly as often as it waits. */
#define _GNU_SOURCE
#include "os/condition.h"
#include "threads/mt_sync.h"

enum { RAN_NOT = 0, RAN_EARLY, RAN_IN_VAIN }; /* aco__mt_waiter_t.early */

/* ---- Waiting ---- */

static void wake(aco__mt_waiter_t *waiter)
{
    ACO__ASSERT(__atomic_load_n(&waiter->answer.is_claimed, __ATOMIC_RELAXED)); /* or it may be gone */
    if (waiter->is_task) {
        aco__answer_tell(&waiter->answer);
        return;
    }
    ACO__NO_SWITCH_BEGIN();
    aco__system.pthread_mutex_lock(&waiter->lock);
    __atomic_store_n(&waiter->is_woken, 1, __ATOMIC_RELAXED);
    aco__system.pthread_cond_signal(&waiter->changed);
    aco__system.pthread_mutex_unlock(&waiter->lock);
    ACO__NO_SWITCH_END();
}

void aco__mt_wake(const aco__woken_t *woken)
{
    for (aco__mt_waiter_t *waiter = woken->first, *next; waiter; waiter = next) {
        next = waiter->next_woken; /* the waiter may be gone once it is woken */
        wake(waiter);
    }
}

static int is_root_woken(const void *waiter)
{
    return __atomic_load_n(&((const aco__mt_waiter_t *)waiter)->is_woken, __ATOMIC_RELAXED);
}

/* Until the thread is woken: 0; or the deadline passes. No cancellation point: others know the thread's place. */
static int wait_in_root(aco__mt_waiter_t *waiter, int64_t deadline)
{
    static __thread aco__spin_t spin;
    int64_t began = aco_now();
    int error = 0, has_spun = aco__spin_until(&spin, is_root_woken, waiter, aco_now, began, deadline), is_cancellable;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &is_cancellable);
    aco__system.pthread_mutex_lock(&waiter->lock); /* also after a spin: the waker may still hold it */
    while (!is_root_woken(waiter) && !error)
        error = deadline == ACO_FOREVER ? aco__system.pthread_cond_wait(&waiter->changed, &waiter->lock)
                                        : aco__os_condition_wait(&waiter->changed, &waiter->lock, deadline);
    if (is_root_woken(waiter))
        error = 0;
    aco__system.pthread_mutex_unlock(&waiter->lock);
    pthread_setcancelstate(is_cancellable, NULL);
    if (!error && !has_spun)
        aco__spin_woken(&spin, began, aco_now());
    return error;
}

/* 0, or -1 and errno: the caller cannot wait. */
ACO__SWITCHES static int prepare(aco__mt_waiter_t *waiter, const char *call)
{
    ACO__MAY_SWITCH(call, NULL);
    waiter->is_closed = 0;
    waiter->given = NULL;
    waiter->early = RAN_NOT;
    waiter->place.is_queued = waiter->relock.is_queued = 0;
    waiter->is_task = aco_get_co() != NULL; /* perhaps a coroutine in no task: that fails */
    if (waiter->is_task)
        return aco__answer_prepare(&waiter->answer, call);
    waiter->answer.is_claimed = 0;
    waiter->is_woken = 0;
    pthread_mutex_init(&waiter->lock, NULL);
    aco__os_condition_init(&waiter->changed);
    return 0;
}

aco__mt_waiter_t *aco__mt_waiter_open(aco__mt_waiter_t *on_stack, const char *call)
{
    size_t sz = sizeof *on_stack;
    aco__mt_waiter_t *waiter = aco__may_move(on_stack) ? aco__service_allocate(&sz, call) : on_stack;
    if (!waiter || prepare(waiter, call) == 0)
        return waiter;
    if (waiter != on_stack)
        aco__service_free(waiter, sz);
    return NULL;
}

void aco__mt_waiter_close(aco__mt_waiter_t *waiter, const aco__mt_waiter_t *on_stack)
{
    ACO__ASSERT(!waiter->place.is_queued && !waiter->relock.is_queued);
    if (!waiter->is_task) {
        pthread_cond_destroy(&waiter->changed);
        pthread_mutex_destroy(&waiter->lock);
    }
    if (waiter != on_stack)
        aco__service_free(waiter, sizeof *waiter);
}

/* The waiter is claimed: it will be woken. */
ACO__SWITCHES static void await(aco__mt_waiter_t *waiter, const aco__waiting_t *waiting)
{
    if (waiter->is_task)
        aco__answer_await(&waiter->answer, waiting->what, waiting->location);
    else
        (void)wait_in_root(waiter, ACO_FOREVER);
}

int aco__mt_waiter_wait(aco__mt_waiter_t *waiter, const aco__waiting_t *waiting, aco__waiter_t *more)
{
    int error = 0;
    if (!waiter->is_task)
        error = wait_in_root(waiter, waiting->deadline);
    else if (aco__answer_wait(&waiter->answer, waiting->call, waiting->what, waiting->deadline, waiting->location,
                              more) != 0)
        error = errno;
    if (!error || (waiter->is_task && waiter->answer.wait.woken)) /* that was claimed, and is over */
        return 0;
    if (!aco__answer_claim(&waiter->answer)) {
        await(waiter, waiting);
        return 0;
    }
    errno = error;
    return -1;
}

/* ---- Waiting for one thing ---- */

/* 1, 0, or -1 and errno. */
static int try_now(const aco__request_t *request)
{
    aco__woken_t woken = {NULL, NULL};
    int taken;
    aco__mt_lock(request->mt);
    taken = request->take(request, &woken);
    aco__mt_unlock(request->mt);
    aco__mt_wake(&woken);
    if (taken < 0)
        errno = -taken;
    return taken < 0 ? -1 : taken;
}

int aco__mt_try(const aco__request_t *request, int error)
{
    int taken = try_now(request);
    if (!taken)
        errno = error;
    return taken > 0 ? 0 : -1;
}

/* The wait has failed. */
static void give_up(const aco__request_t *request, aco__mt_place_t *place)
{
    aco__woken_t woken = {NULL, NULL};
    int error = errno;
    aco__mt_lock(request->mt);
    aco__mt_remove(request->queue, place);
    if (request->left)
        request->left(request, &woken);
    aco__mt_unlock(request->mt);
    aco__mt_wake(&woken);
    errno = error;
}

ACO__SWITCHES static int wait_with(const aco__request_t *request, aco__mt_waiter_t *waiter)
{
    aco__woken_t woken = {NULL, NULL};
    int taken;
    waiter->place.element = request->element;
    aco__mt_lock(request->mt);
    taken = request->take(request, &woken);
    if (!taken)
        aco__mt_append(request->queue, &waiter->place, waiter);
    aco__mt_unlock(request->mt);
    aco__mt_wake(&woken);
    if (!taken && aco__mt_waiter_wait(waiter, &request->waiting, NULL) != 0) {
        give_up(request, &waiter->place);
        return -1;
    }
    if (taken < 0 || waiter->is_closed)
        errno = taken < 0 ? -taken : EPIPE;
    return taken < 0 || waiter->is_closed ? -1 : 0;
}

int aco__mt_request(const aco__request_t *request)
{
    aco__mt_waiter_t on_stack, *waiter;
    int taken = try_now(request);
    if (taken)
        return taken > 0 ? 0 : -1;
    waiter = aco__mt_waiter_open(&on_stack, request->waiting.call);
    if (!waiter)
        return -1;
    taken = wait_with(request, waiter);
    aco__mt_waiter_close(waiter, &on_stack);
    return taken;
}

/* ---- Mutex ---- */

static int take_mutex(const aco__request_t *request, aco__woken_t *woken)
{
    aco_mt_mutex_t *mutex = request->object;
    (void)woken;
    if (mutex->aco__is_locked)
        return 0;
    mutex->aco__is_locked = 1;
    return 1;
}

static aco__request_t for_mutex(aco_mt_mutex_t *mutex, int64_t deadline, const char *location)
{
    const aco__request_t request = {&mutex->aco__waiters, &mutex->aco__waiters, take_mutex, NULL, mutex, NULL,
                                    {"aco_mt_mutex_lock", "a mutex between threads", location, deadline}};
    return request;
}

int aco_mt_mutex_lock_until_at(aco_mt_mutex_t *mutex, int64_t deadline, const char *location)
{
    const aco__request_t request = for_mutex(mutex, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_mutex_try_lock(aco_mt_mutex_t *mutex)
{
    const aco__request_t request = for_mutex(mutex, 0, NULL);
    return aco__mt_try(&request, EBUSY);
}

static int is_same_thread(const aco__mt_waiter_t *a, const aco__mt_waiter_t *b)
{
    return a->is_task && b->is_task && a->answer.scheduler == b->answer.scheduler;
}

/* Under its lock: the mutex, which is free, is given to the first in its queue. If that one has waited for a condition,
 * those behind it that have too, on the same thread, are woken with it and run in one round: each has the mutex by then
 * if those before it do not wait inside. One that has its turn without the mutex waits on, see get_mutex(). */
static void pass_mutex(aco_mt_mutex_t *mutex, aco__woken_t *woken)
{
    aco__mt_place_t *place = aco__mt_claim(&mutex->aco__waiters);
    aco__mt_waiter_t *waiter;
    ACO__ASSERT_MT(&mutex->aco__waiters);
    ACO__ASSERT(place || !mutex->aco__waiters.first); /* no waiter is left beside a free mutex */
    mutex->aco__is_locked = place != NULL;
    if (!place)
        return;
    waiter = place->waiter;
    if (waiter->early != RAN_EARLY)
        aco__woken_add(woken, waiter);
    if (place != &waiter->relock)
        return;
    for (place = mutex->aco__waiters.first; place; place = place->next) {
        if (place != &place->waiter->relock || place->waiter->early || !is_same_thread(place->waiter, waiter))
            break;
        place->waiter->early = RAN_EARLY;
        aco__woken_add(woken, place->waiter);
    }
}

int aco_mt_mutex_unlock(aco_mt_mutex_t *mutex)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__mt_lock(&mutex->aco__waiters);
    was_locked = mutex->aco__is_locked;
    if (was_locked)
        pass_mutex(mutex, &woken);
    aco__mt_unlock(&mutex->aco__waiters);
    aco__mt_wake(&woken);
    return was_locked ? 0 : aco__service_fail(EPERM, "aco_mt_mutex_unlock", "the mutex is not locked");
}

/* ---- Condition ---- */

/* `waiter` was woken: waits until it has the mutex. */
ACO__SWITCHES static void get_mutex(aco__mt_waiter_t *waiter, const aco__waiting_t *waiting)
{
    int has_mutex = 1;
    if (waiter->early != RAN_EARLY) /* woken with the mutex */
        return;
    aco__mt_lock(&waiter->mutex->aco__waiters);
    if (waiter->relock.is_queued) {
        waiter->early = RAN_IN_VAIN; /* from now on it is woken with the mutex only */
        waiter->answer.is_told = has_mutex = 0;
    }
    aco__mt_unlock(&waiter->mutex->aco__waiters);
    if (!has_mutex)
        await(waiter, waiting);
}

/* Moves the first of these claimed waiters, and those of its thread, into the mutex's queue: side by side there they
 * cost one round. Waiters of other threads, or for another mutex, are left in the list. */
static void requeue_on_mutex(aco__woken_t *list)
{
    aco__woken_t others = {NULL, NULL}, woken = {NULL, NULL};
    aco__mt_waiter_t *first = list->first, *next;
    aco_mt_mutex_t *mutex = first->mutex;
    aco__mt_lock(&mutex->aco__waiters);
    for (aco__mt_waiter_t *waiter = first; waiter; waiter = next) {
        next = waiter->next_woken;
        if (waiter == first || (waiter->mutex == mutex && is_same_thread(waiter, first)))
            aco__mt_append(&mutex->aco__waiters, &waiter->relock, waiter);
        else
            aco__woken_add(&others, waiter);
    }
    if (!mutex->aco__is_locked)
        pass_mutex(mutex, &woken);
    aco__mt_unlock(&mutex->aco__waiters);
    aco__mt_wake(&woken);
    *list = others;
}

/* Joins the queue and unlocks the mutex. Whether that was locked. */
static int leave_mutex(aco_mt_cond_t *cond, aco__mt_waiter_t *waiter)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__mt_lock(&cond->aco__waiters);
    aco__mt_lock(&waiter->mutex->aco__waiters);
    was_locked = waiter->mutex->aco__is_locked;
    if (was_locked) {
        aco__mt_append(&cond->aco__waiters, &waiter->place, waiter);
        pass_mutex(waiter->mutex, &woken);
    }
    aco__mt_unlock(&waiter->mutex->aco__waiters);
    aco__mt_unlock(&cond->aco__waiters);
    aco__mt_wake(&woken);
    return was_locked;
}

ACO__SWITCHES static int wait_for_cond(aco_mt_cond_t *cond, aco__mt_waiter_t *waiter, const aco__waiting_t *waiting)
{
    aco__woken_t itself = {NULL, NULL};
    int error;
    if (!leave_mutex(cond, waiter))
        return aco__service_fail(EPERM, waiting->call, "the mutex is not locked");
    if (aco__mt_waiter_wait(waiter, waiting, NULL) == 0) {
        get_mutex(waiter, waiting);
        return 0;
    }
    error = errno;
    aco__mt_lock(&cond->aco__waiters);
    aco__mt_remove(&cond->aco__waiters, &waiter->place);
    aco__mt_unlock(&cond->aco__waiters);
    aco__woken_add(&itself, waiter);
    requeue_on_mutex(&itself);
    await(waiter, waiting);
    get_mutex(waiter, waiting);
    errno = error;
    return -1;
}

int aco_mt_cond_wait_until_at(aco_mt_cond_t *cond, aco_mt_mutex_t *mutex, int64_t deadline,
                              const char *location)
{
    const aco__waiting_t waiting = {"aco_mt_cond_wait", "a condition between threads, or its mutex", location,
                                    deadline};
    aco__mt_waiter_t on_stack, *waiter = aco__mt_waiter_open(&on_stack, waiting.call);
    int result;
    if (!waiter)
        return -1;
    waiter->mutex = mutex;
    result = wait_for_cond(cond, waiter, &waiting);
    aco__mt_waiter_close(waiter, &on_stack);
    return result;
}

void aco_mt_cond_signal(aco_mt_cond_t *cond)
{
    aco__woken_t list = {NULL, NULL};
    aco__mt_lock(&cond->aco__waiters);
    (void)aco__mt_give(&cond->aco__waiters, &list);
    aco__mt_unlock(&cond->aco__waiters);
    if (list.first)
        requeue_on_mutex(&list);
}

void aco_mt_cond_broadcast(aco_mt_cond_t *cond)
{
    aco__woken_t list = {NULL, NULL};
    aco__mt_lock(&cond->aco__waiters);
    aco__mt_give_all(&cond->aco__waiters, &list);
    aco__mt_unlock(&cond->aco__waiters);
    while (list.first)
        requeue_on_mutex(&list);
}

/* ---- Semaphore ---- */

static int take_unit(const aco__request_t *request, aco__woken_t *woken)
{
    aco_mt_semaphore_t *semaphore = request->object;
    (void)woken;
    if (!semaphore->aco__value)
        return 0;
    semaphore->aco__value--;
    return 1;
}

static aco__request_t for_unit(aco_mt_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const aco__request_t request = {
        &semaphore->aco__waiters, &semaphore->aco__waiters, take_unit, NULL, semaphore, NULL,
        {"aco_mt_semaphore_acquire", "a unit of a semaphore between threads", location, deadline}};
    return request;
}

int aco_mt_semaphore_acquire_until_at(aco_mt_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const aco__request_t request = for_unit(semaphore, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_semaphore_try_acquire(aco_mt_semaphore_t *semaphore)
{
    const aco__request_t request = for_unit(semaphore, 0, NULL);
    return aco__mt_try(&request, EAGAIN);
}

void aco_mt_semaphore_release(aco_mt_semaphore_t *semaphore)
{
    aco__woken_t woken = {NULL, NULL};
    aco__mt_lock(&semaphore->aco__waiters);
    semaphore->aco__value += !aco__mt_give(&semaphore->aco__waiters, &woken);
    ACO__ASSERT(!semaphore->aco__value || !semaphore->aco__waiters.first);
    aco__mt_unlock(&semaphore->aco__waiters);
    aco__mt_wake(&woken);
}

/* ---- Wait group ---- */

static int take_zero(const aco__request_t *request, aco__woken_t *woken)
{
    (void)woken;
    return !((const aco_mt_wait_group_t *)request->object)->aco__count;
}

int aco_mt_wait_group_add(aco_mt_wait_group_t *group, ptrdiff_t n)
{
    aco__woken_t woken = {NULL, NULL};
    size_t more = (size_t)n, less = 0 - more;
    int fits;
    aco__mt_lock(&group->aco__waiters);
    fits = n < 0 ? less <= group->aco__count : more <= SIZE_MAX - group->aco__count;
    if (fits && !(group->aco__count += more))
        aco__mt_give_all(&group->aco__waiters, &woken);
    ACO__ASSERT(group->aco__count || !group->aco__waiters.first);
    aco__mt_unlock(&group->aco__waiters);
    aco__mt_wake(&woken);
    return fits ? 0 : aco__service_fail(ERANGE, "aco_mt_wait_group_add", "the count would be out of range");
}

int aco_mt_wait_group_done(aco_mt_wait_group_t *group)
{
    return aco_mt_wait_group_add(group, -1);
}

int aco_mt_wait_group_wait_until_at(aco_mt_wait_group_t *group, int64_t deadline, const char *location)
{
    const aco__request_t request = {&group->aco__waiters, &group->aco__waiters, take_zero, NULL, group, NULL,
                                    {"aco_mt_wait_group_wait", "a wait group between threads", location, deadline}};
    return aco__mt_request(&request);
}

/* ---- Event ---- */

static int take_event(const aco__request_t *request, aco__woken_t *woken)
{
    (void)woken;
    return ((const aco_mt_event_t *)request->object)->aco__is_set;
}

void aco_mt_event_set(aco_mt_event_t *event)
{
    aco__woken_t woken = {NULL, NULL};
    aco__mt_lock(&event->aco__waiters);
    event->aco__is_set = 1;
    aco__mt_give_all(&event->aco__waiters, &woken);
    aco__mt_unlock(&event->aco__waiters);
    aco__mt_wake(&woken);
}

void aco_mt_event_reset(aco_mt_event_t *event)
{
    aco__mt_lock(&event->aco__waiters);
    ACO__ASSERT(!event->aco__is_set || !event->aco__waiters.first);
    event->aco__is_set = 0;
    aco__mt_unlock(&event->aco__waiters);
}

int aco_mt_event_wait_until_at(aco_mt_event_t *event, int64_t deadline, const char *location)
{
    const aco__request_t request = {&event->aco__waiters, &event->aco__waiters, take_event, NULL, event, NULL,
                                    {"aco_mt_event_wait", "an event between threads", location, deadline}};
    return aco__mt_request(&request);
}

/* ---- Once ---- */

/* The caller's name in aco__runner. */
static const void *caller(void)
{
    const aco_t *task = aco_current_task();
    return task ? (const void *)task : (const void *)aco__self();
}

static int take_once(const aco__request_t *request, aco__woken_t *woken)
{
    aco_mt_once_t *once = request->object;
    (void)woken;
    if (once->done)
        return 1;
    if (once->aco__runner)
        return once->aco__runner == caller() ? -EDEADLK : 0;
    once->aco__runner = caller();
    return 1;
}

/* The caller has run its function. If that failed, the one that has waited longest runs its own. */
static int leave_once(aco_mt_once_t *once, int result)
{
    aco__woken_t woken = {NULL, NULL};
    int error = errno;
    aco__mt_lock(&once->aco__waiters);
    ACO__ASSERT(once->aco__runner && !once->done); /* one runs at a time, and none after a success */
    if (result == 0) {
        __atomic_store_n(&once->done, 1, __ATOMIC_RELEASE);
        aco__mt_give_all(&once->aco__waiters, &woken);
    } else
        once->aco__runner = aco__mt_give(&once->aco__waiters, &woken) ? once : NULL; /* it will say who it is */
    aco__mt_unlock(&once->aco__waiters);
    aco__mt_wake(&woken);
    errno = error;
    return result == 0 ? 0 : -1;
}

int aco_mt_once_until_at(aco_mt_once_t *once, int (*fn)(void *arg), void *arg, int64_t deadline,
                         const char *location)
{
    const aco__request_t request = {&once->aco__waiters, &once->aco__waiters, take_once, NULL, once, NULL,
                                    {"aco_mt_once", "a function that runs once", location, deadline}};
    if (__atomic_load_n(&once->done, __ATOMIC_ACQUIRE))
        return 0;
    if (aco__mt_request(&request) != 0)
        return errno == EDEADLK ? aco__service_fail(EDEADLK, request.waiting.call,
                                                    "is called by its own function, or one that a task here ended in")
                                : -1;
    if (__atomic_load_n(&once->done, __ATOMIC_ACQUIRE))
        return 0;
    aco__mt_lock(&once->aco__waiters);
    once->aco__runner = caller();
    aco__mt_unlock(&once->aco__waiters);
    return leave_once(once, fn(arg));
}

/* ---- Reader-writer lock: the place of a writer has an element that is not NULL ---- */

static int take_rwlock(aco_mt_rwlock_t *lock, int writes)
{
    ACO__ASSERT_MT(&lock->aco__waiters);
    ACO__ASSERT(!lock->aco__is_writing || !lock->aco__readers);
    if (lock->aco__is_writing || (writes && lock->aco__readers))
        return 0;
    lock->aco__is_writing = writes;
    lock->aco__readers += !writes;
    return 1;
}

/* A reader waits behind a writer that waits, perhaps behind one that has just given up: then that one passes on. */
static int take_rwlock_now(const aco__request_t *request, aco__woken_t *woken)
{
    (void)woken;
    return !request->queue->first && take_rwlock(request->object, request->element != NULL);
}

/* Gives the lock to the first in its queue that can have it: a writer, or all readers before the next writer. */
static void pass_rwlock(aco_mt_rwlock_t *lock, aco__woken_t *woken)
{
    aco__mt_place_t *first;
    while ((first = lock->aco__waiters.first) != NULL) {
        int writes = first->element != NULL;
        if (lock->aco__is_writing || (writes && lock->aco__readers))
            return;
        aco__mt_remove(&lock->aco__waiters, first);
        if (!aco__answer_claim(&first->waiter->answer))
            continue;
        (void)take_rwlock(lock, writes);
        aco__woken_add(woken, first->waiter);
    }
}

static void left_rwlock(const aco__request_t *request, aco__woken_t *woken)
{
    pass_rwlock(request->object, woken);
}

static aco__request_t for_rwlock(aco_mt_rwlock_t *lock, int writes, int64_t deadline, const char *location)
{
    const aco__request_t request = {
        &lock->aco__waiters, &lock->aco__waiters, take_rwlock_now, left_rwlock, lock, writes ? lock : NULL,
        {writes ? "aco_mt_rwlock_wrlock" : "aco_mt_rwlock_rdlock", "a reader-writer lock between threads", location,
         deadline}};
    return request;
}

int aco_mt_rwlock_rdlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location)
{
    const aco__request_t request = for_rwlock(lock, 0, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_rwlock_wrlock_until_at(aco_mt_rwlock_t *lock, int64_t deadline, const char *location)
{
    const aco__request_t request = for_rwlock(lock, 1, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_rwlock_try_rdlock(aco_mt_rwlock_t *lock)
{
    const aco__request_t request = for_rwlock(lock, 0, 0, NULL);
    return aco__mt_try(&request, EBUSY);
}

int aco_mt_rwlock_try_wrlock(aco_mt_rwlock_t *lock)
{
    const aco__request_t request = for_rwlock(lock, 1, 0, NULL);
    return aco__mt_try(&request, EBUSY);
}

int aco_mt_rwlock_unlock(aco_mt_rwlock_t *lock)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__mt_lock(&lock->aco__waiters);
    was_locked = lock->aco__is_writing || lock->aco__readers;
    if (lock->aco__is_writing)
        lock->aco__is_writing = 0;
    else if (was_locked)
        lock->aco__readers--;
    pass_rwlock(lock, &woken);
    aco__mt_unlock(&lock->aco__waiters);
    aco__mt_wake(&woken);
    return was_locked ? 0 : aco__service_fail(EPERM, "aco_mt_rwlock_unlock", "nobody has locked it");
}
