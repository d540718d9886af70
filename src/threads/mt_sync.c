/* Waiting for what other threads give (threads/shared.h), and the objects other than channels.
 *
 * A wait for a condition puts its place into the condition's queue before it unlocks the mutex, both under the two
 * locks: a signal sent with the mutex locked, or after, finds it. A signal claims the waiter and moves it into the
 * mutex's queue. A broadcast moves the waiters thread by thread: when the mutex goes to the first of a thread's, all of
 * them are woken, the others early. One that runs before it gets the mutex is not woken early again: it waits until the
 * mutex is handed to it. So each is told exactly as often as it waits. */
#define _GNU_SOURCE
#include "os/clock.h"
#include "threads/mt.h"

#include <time.h>

enum { RAN_NOT = 0, RAN_EARLY, RAN_IN_VAIN }; /* aco__sharer_t.early */

/* ---- Waiting ---- */

static void wake(aco__sharer_t *sharer)
{
    ACO__ASSERT(__atomic_load_n(&sharer->answer.is_claimed, __ATOMIC_RELAXED)); /* or it may be gone */
    if (sharer->is_task) {
        aco__answer_tell(&sharer->answer);
        return;
    }
    ACO__NO_SWITCH_BEGIN();
    aco__system.pthread_mutex_lock(&sharer->lock);
    __atomic_store_n(&sharer->is_woken, 1, __ATOMIC_RELAXED);
    aco__system.pthread_cond_signal(&sharer->changed);
    aco__system.pthread_mutex_unlock(&sharer->lock);
    ACO__NO_SWITCH_END();
}

void aco__shared_wake(const aco__woken_t *woken)
{
    for (aco__sharer_t *sharer = woken->first, *next; sharer; sharer = next) {
        next = sharer->next_woken; /* the waiter may be gone once it is woken */
        wake(sharer);
    }
}

/* A condition, and a wait for it until a time on the clock of aco_now(). */
#ifdef __APPLE__ /* conditions know only the time of day, or a time from now on */
static void make_changed(pthread_cond_t *changed)
{
    pthread_cond_init(changed, NULL);
}

static int wait_changed(aco__sharer_t *sharer, int64_t deadline)
{
    struct timespec from_now = aco__os_timespec(deadline > 0 ? deadline - aco_now() : 0);
    return aco__system.pthread_cond_timedwait_relative_np(&sharer->changed, &sharer->lock, &from_now);
}
#else
static void make_changed(pthread_cond_t *changed)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static int wait_changed(aco__sharer_t *sharer, int64_t deadline)
{
    struct timespec end = aco__os_timespec(deadline);
    return aco__system.pthread_cond_timedwait(&sharer->changed, &sharer->lock, &end);
}
#endif

static int is_root_woken(const void *sharer)
{
    return __atomic_load_n(&((const aco__sharer_t *)sharer)->is_woken, __ATOMIC_RELAXED);
}

/* Until the thread is woken: 0; or the deadline passes. No cancellation point: others know the thread's place. */
static int wait_in_root(aco__sharer_t *sharer, int64_t deadline)
{
    static __thread aco__spin_t spin;
    int64_t began = aco_now();
    int error = 0, has_spun = aco__spin_until(&spin, is_root_woken, sharer, aco_now, began, deadline), is_cancellable;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &is_cancellable);
    aco__system.pthread_mutex_lock(&sharer->lock); /* also after a spin: the waker may still hold it */
    while (!is_root_woken(sharer) && !error)
        error = deadline == ACO_FOREVER ? aco__system.pthread_cond_wait(&sharer->changed, &sharer->lock)
                                        : wait_changed(sharer, deadline);
    if (is_root_woken(sharer))
        error = 0;
    aco__system.pthread_mutex_unlock(&sharer->lock);
    pthread_setcancelstate(is_cancellable, NULL);
    if (!error && !has_spun)
        aco__spin_woken(&spin, began, aco_now());
    return error;
}

/* 0, or -1 and errno: the caller cannot wait. */
ACO__SWITCHES static int prepare(aco__sharer_t *sharer, const char *call)
{
    sharer->is_closed = 0;
    sharer->given = NULL;
    sharer->early = RAN_NOT;
    sharer->place.is_queued = sharer->relock.is_queued = 0;
    sharer->is_task = aco_get_co() != NULL; /* perhaps a coroutine in no task: that fails */
    if (sharer->is_task)
        return aco__answer_prepare(&sharer->answer, call);
    sharer->answer.is_claimed = 0;
    sharer->is_woken = 0;
    pthread_mutex_init(&sharer->lock, NULL);
    make_changed(&sharer->changed);
    return 0;
}

aco__sharer_t *aco__sharer_open(aco__sharer_t *on_stack, const char *call)
{
    size_t sz = sizeof *on_stack;
    aco__sharer_t *sharer = aco__poller_moves(on_stack) ? aco__poller_allocate(&sz, call) : on_stack;
    if (!sharer || prepare(sharer, call) == 0)
        return sharer;
    if (sharer != on_stack)
        aco__poller_free(sharer, sz);
    return NULL;
}

void aco__sharer_close(aco__sharer_t *sharer, const aco__sharer_t *on_stack)
{
    ACO__ASSERT(!sharer->place.is_queued && !sharer->relock.is_queued);
    if (!sharer->is_task) {
        pthread_cond_destroy(&sharer->changed);
        pthread_mutex_destroy(&sharer->lock);
    }
    if (sharer != on_stack)
        aco__poller_free(sharer, sizeof *sharer);
}

/* The waiter is claimed: it will be woken. */
ACO__SWITCHES static void await(aco__sharer_t *sharer, const aco__waiting_t *waiting)
{
    if (sharer->is_task)
        aco__answer_await(&sharer->answer, waiting->what, waiting->location);
    else
        (void)wait_in_root(sharer, ACO_FOREVER);
}

int aco__sharer_wait(aco__sharer_t *sharer, const aco__waiting_t *waiting, aco__waiter_t *more)
{
    int error = 0;
    if (!sharer->is_task)
        error = wait_in_root(sharer, waiting->deadline);
    else if (aco__answer_wait(&sharer->answer, waiting->call, waiting->what, waiting->deadline, waiting->location,
                              more) != 0)
        error = errno;
    if (!error || (sharer->is_task && sharer->answer.wait.woken)) /* that was claimed, and is over */
        return 0;
    if (!aco__answer_claim(&sharer->answer)) {
        await(sharer, waiting);
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
    aco__shared_lock(request->shared);
    taken = request->take(request, &woken);
    aco__shared_unlock(request->shared);
    aco__shared_wake(&woken);
    if (taken < 0)
        errno = -taken;
    return taken < 0 ? -1 : taken;
}

int aco__shared_try(const aco__request_t *request, int error)
{
    int taken = try_now(request);
    if (!taken)
        errno = error;
    return taken > 0 ? 0 : -1;
}

/* The wait has failed. */
static void give_up(const aco__request_t *request, aco__shared_place_t *place)
{
    aco__woken_t woken = {NULL, NULL};
    int error = errno;
    aco__shared_lock(request->shared);
    aco__shared_remove(request->queue, place);
    if (request->left)
        request->left(request, &woken);
    aco__shared_unlock(request->shared);
    aco__shared_wake(&woken);
    errno = error;
}

ACO__SWITCHES static int wait_with(const aco__request_t *request, aco__sharer_t *sharer)
{
    aco__woken_t woken = {NULL, NULL};
    int taken;
    sharer->place.element = request->element;
    aco__shared_lock(request->shared);
    taken = request->take(request, &woken);
    if (!taken)
        aco__shared_append(request->queue, &sharer->place, sharer);
    aco__shared_unlock(request->shared);
    aco__shared_wake(&woken);
    if (!taken && aco__sharer_wait(sharer, &request->waiting, NULL) != 0) {
        give_up(request, &sharer->place);
        return -1;
    }
    if (taken < 0 || sharer->is_closed)
        errno = taken < 0 ? -taken : EPIPE;
    return taken < 0 || sharer->is_closed ? -1 : 0;
}

int aco__shared_request(const aco__request_t *request)
{
    aco__sharer_t on_stack, *sharer;
    int taken = try_now(request);
    if (taken)
        return taken > 0 ? 0 : -1;
    sharer = aco__sharer_open(&on_stack, request->waiting.call);
    if (!sharer)
        return -1;
    taken = wait_with(request, sharer);
    aco__sharer_close(sharer, &on_stack);
    return taken;
}

/* ---- Mutex ---- */

static int take_mutex(const aco__request_t *request, aco__woken_t *woken)
{
    aco_shared_mutex_t *mutex = request->object;
    (void)woken;
    if (mutex->aco__is_locked)
        return 0;
    mutex->aco__is_locked = 1;
    return 1;
}

static aco__request_t for_mutex(aco_shared_mutex_t *mutex, int64_t deadline, const char *location)
{
    const aco__request_t request = {&mutex->aco__waiters, &mutex->aco__waiters, take_mutex, NULL, mutex, NULL,
                                    {"aco_shared_mutex_lock", "a shared mutex", location, deadline}};
    return request;
}

int aco_shared_mutex_lock_until_at(aco_shared_mutex_t *mutex, int64_t deadline, const char *location)
{
    const aco__request_t request = for_mutex(mutex, deadline, location);
    return aco__shared_request(&request);
}

int aco_shared_mutex_trylock(aco_shared_mutex_t *mutex)
{
    const aco__request_t request = for_mutex(mutex, 0, NULL);
    return aco__shared_try(&request, EBUSY);
}

static int is_same_thread(const aco__sharer_t *a, const aco__sharer_t *b)
{
    return a->is_task && b->is_task && a->answer.scheduler == b->answer.scheduler;
}

/* Under its lock: the mutex, which is free, is given to the first in its queue. If that one has waited for a condition,
 * those behind it that have too, on the same thread, are woken with it and run in one round: each has the mutex by then
 * if those before it do not wait inside. One that has its turn without the mutex waits on, see get_mutex(). */
static void pass_mutex(aco_shared_mutex_t *mutex, aco__woken_t *woken)
{
    aco__shared_place_t *place = aco__shared_claim(&mutex->aco__waiters);
    aco__sharer_t *sharer;
    ACO__ASSERT_SHARED(&mutex->aco__waiters);
    ACO__ASSERT(place || !mutex->aco__waiters.first); /* no waiter is left beside a free mutex */
    mutex->aco__is_locked = place != NULL;
    if (!place)
        return;
    sharer = place->sharer;
    if (sharer->early != RAN_EARLY)
        aco__woken_add(woken, sharer);
    if (place != &sharer->relock)
        return;
    for (place = mutex->aco__waiters.first; place; place = place->next) {
        if (place != &place->sharer->relock || place->sharer->early || !is_same_thread(place->sharer, sharer))
            break;
        place->sharer->early = RAN_EARLY;
        aco__woken_add(woken, place->sharer);
    }
}

int aco_shared_mutex_unlock(aco_shared_mutex_t *mutex)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__shared_lock(&mutex->aco__waiters);
    was_locked = mutex->aco__is_locked;
    if (was_locked)
        pass_mutex(mutex, &woken);
    aco__shared_unlock(&mutex->aco__waiters);
    aco__shared_wake(&woken);
    return was_locked ? 0 : aco__poller_fail(EPERM, "aco_shared_mutex_unlock", "the mutex is not locked");
}

/* ---- Condition ---- */

/* `sharer` was woken: waits until it has the mutex. */
ACO__SWITCHES static void get_mutex(aco__sharer_t *sharer, const aco__waiting_t *waiting)
{
    int has_mutex = 1;
    if (sharer->early != RAN_EARLY) /* woken with the mutex */
        return;
    aco__shared_lock(&sharer->mutex->aco__waiters);
    if (sharer->relock.is_queued) {
        sharer->early = RAN_IN_VAIN; /* from now on it is woken with the mutex only */
        sharer->answer.is_told = has_mutex = 0;
    }
    aco__shared_unlock(&sharer->mutex->aco__waiters);
    if (!has_mutex)
        await(sharer, waiting);
}

/* Moves the first of these claimed waiters, and those of its thread, into the mutex's queue: side by side there they
 * cost one round. Waiters of other threads, or for another mutex, are left in the list. */
static void requeue_on_mutex(aco__woken_t *list)
{
    aco__woken_t others = {NULL, NULL}, woken = {NULL, NULL};
    aco__sharer_t *first = list->first, *next;
    aco_shared_mutex_t *mutex = first->mutex;
    aco__shared_lock(&mutex->aco__waiters);
    for (aco__sharer_t *sharer = first; sharer; sharer = next) {
        next = sharer->next_woken;
        if (sharer == first || (sharer->mutex == mutex && is_same_thread(sharer, first)))
            aco__shared_append(&mutex->aco__waiters, &sharer->relock, sharer);
        else
            aco__woken_add(&others, sharer);
    }
    if (!mutex->aco__is_locked)
        pass_mutex(mutex, &woken);
    aco__shared_unlock(&mutex->aco__waiters);
    aco__shared_wake(&woken);
    *list = others;
}

/* Joins the queue and unlocks the mutex. Whether that was locked. */
static int leave_mutex(aco_shared_cond_t *cond, aco__sharer_t *sharer)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__shared_lock(&cond->aco__waiters);
    aco__shared_lock(&sharer->mutex->aco__waiters);
    was_locked = sharer->mutex->aco__is_locked;
    if (was_locked) {
        aco__shared_append(&cond->aco__waiters, &sharer->place, sharer);
        pass_mutex(sharer->mutex, &woken);
    }
    aco__shared_unlock(&sharer->mutex->aco__waiters);
    aco__shared_unlock(&cond->aco__waiters);
    aco__shared_wake(&woken);
    return was_locked;
}

ACO__SWITCHES static int wait_for_cond(aco_shared_cond_t *cond, aco__sharer_t *sharer, const aco__waiting_t *waiting)
{
    aco__woken_t itself = {NULL, NULL};
    int error;
    if (!leave_mutex(cond, sharer))
        return aco__poller_fail(EPERM, waiting->call, "the mutex is not locked");
    if (aco__sharer_wait(sharer, waiting, NULL) == 0) {
        get_mutex(sharer, waiting);
        return 0;
    }
    error = errno;
    aco__shared_lock(&cond->aco__waiters);
    aco__shared_remove(&cond->aco__waiters, &sharer->place);
    aco__shared_unlock(&cond->aco__waiters);
    aco__woken_add(&itself, sharer);
    requeue_on_mutex(&itself);
    await(sharer, waiting);
    get_mutex(sharer, waiting);
    errno = error;
    return -1;
}

int aco_shared_cond_wait_until_at(aco_shared_cond_t *cond, aco_shared_mutex_t *mutex, int64_t deadline,
                                  const char *location)
{
    const aco__waiting_t waiting = {"aco_shared_cond_wait", "a shared condition, or its mutex", location, deadline};
    aco__sharer_t on_stack, *sharer = aco__sharer_open(&on_stack, waiting.call);
    int result;
    if (!sharer)
        return -1;
    sharer->mutex = mutex;
    result = wait_for_cond(cond, sharer, &waiting);
    aco__sharer_close(sharer, &on_stack);
    return result;
}

void aco_shared_cond_signal(aco_shared_cond_t *cond)
{
    aco__woken_t list = {NULL, NULL};
    aco__shared_lock(&cond->aco__waiters);
    (void)aco__shared_give(&cond->aco__waiters, &list);
    aco__shared_unlock(&cond->aco__waiters);
    if (list.first)
        requeue_on_mutex(&list);
}

void aco_shared_cond_broadcast(aco_shared_cond_t *cond)
{
    aco__woken_t list = {NULL, NULL};
    aco__shared_lock(&cond->aco__waiters);
    aco__shared_give_all(&cond->aco__waiters, &list);
    aco__shared_unlock(&cond->aco__waiters);
    while (list.first)
        requeue_on_mutex(&list);
}

/* ---- Semaphore ---- */

static int take_unit(const aco__request_t *request, aco__woken_t *woken)
{
    aco_shared_semaphore_t *semaphore = request->object;
    (void)woken;
    if (!semaphore->aco__value)
        return 0;
    semaphore->aco__value--;
    return 1;
}

static aco__request_t for_unit(aco_shared_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const aco__request_t request = {
        &semaphore->aco__waiters, &semaphore->aco__waiters, take_unit, NULL, semaphore, NULL,
        {"aco_shared_semaphore_acquire", "a unit of a shared semaphore", location, deadline}};
    return request;
}

int aco_shared_semaphore_acquire_until_at(aco_shared_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const aco__request_t request = for_unit(semaphore, deadline, location);
    return aco__shared_request(&request);
}

int aco_shared_semaphore_try_acquire(aco_shared_semaphore_t *semaphore)
{
    const aco__request_t request = for_unit(semaphore, 0, NULL);
    return aco__shared_try(&request, EAGAIN);
}

void aco_shared_semaphore_release(aco_shared_semaphore_t *semaphore)
{
    aco__woken_t woken = {NULL, NULL};
    aco__shared_lock(&semaphore->aco__waiters);
    semaphore->aco__value += !aco__shared_give(&semaphore->aco__waiters, &woken);
    ACO__ASSERT(!semaphore->aco__value || !semaphore->aco__waiters.first);
    aco__shared_unlock(&semaphore->aco__waiters);
    aco__shared_wake(&woken);
}

/* ---- Wait group ---- */

static int take_zero(const aco__request_t *request, aco__woken_t *woken)
{
    (void)woken;
    return !((const aco_shared_wait_group_t *)request->object)->aco__count;
}

int aco_shared_wait_group_add(aco_shared_wait_group_t *group, ptrdiff_t n)
{
    aco__woken_t woken = {NULL, NULL};
    size_t more = (size_t)n, less = 0 - more;
    int fits;
    aco__shared_lock(&group->aco__waiters);
    fits = n < 0 ? less <= group->aco__count : more <= SIZE_MAX - group->aco__count;
    if (fits && !(group->aco__count += more))
        aco__shared_give_all(&group->aco__waiters, &woken);
    ACO__ASSERT(group->aco__count || !group->aco__waiters.first);
    aco__shared_unlock(&group->aco__waiters);
    aco__shared_wake(&woken);
    return fits ? 0 : aco__poller_fail(ERANGE, "aco_shared_wait_group_add", "the count would be out of range");
}

int aco_shared_wait_group_done(aco_shared_wait_group_t *group)
{
    return aco_shared_wait_group_add(group, -1);
}

int aco_shared_wait_group_wait_until_at(aco_shared_wait_group_t *group, int64_t deadline, const char *location)
{
    const aco__request_t request = {&group->aco__waiters, &group->aco__waiters, take_zero, NULL, group, NULL,
                                    {"aco_shared_wait_group_wait", "a shared wait group", location, deadline}};
    return aco__shared_request(&request);
}

/* ---- Event ---- */

static int take_event(const aco__request_t *request, aco__woken_t *woken)
{
    (void)woken;
    return ((const aco_shared_event_t *)request->object)->aco__is_set;
}

void aco_shared_event_set(aco_shared_event_t *event)
{
    aco__woken_t woken = {NULL, NULL};
    aco__shared_lock(&event->aco__waiters);
    event->aco__is_set = 1;
    aco__shared_give_all(&event->aco__waiters, &woken);
    aco__shared_unlock(&event->aco__waiters);
    aco__shared_wake(&woken);
}

void aco_shared_event_reset(aco_shared_event_t *event)
{
    aco__shared_lock(&event->aco__waiters);
    ACO__ASSERT(!event->aco__is_set || !event->aco__waiters.first);
    event->aco__is_set = 0;
    aco__shared_unlock(&event->aco__waiters);
}

int aco_shared_event_wait_until_at(aco_shared_event_t *event, int64_t deadline, const char *location)
{
    const aco__request_t request = {&event->aco__waiters, &event->aco__waiters, take_event, NULL, event, NULL,
                                    {"aco_shared_event_wait", "a shared event", location, deadline}};
    return aco__shared_request(&request);
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
    aco_shared_once_t *once = request->object;
    (void)woken;
    if (once->done)
        return 1;
    if (once->aco__runner)
        return once->aco__runner == caller() ? -EDEADLK : 0;
    once->aco__runner = caller();
    return 1;
}

/* The caller has run its function. If that failed, the one that has waited longest runs its own. */
static int leave_once(aco_shared_once_t *once, int result)
{
    aco__woken_t woken = {NULL, NULL};
    int error = errno;
    aco__shared_lock(&once->aco__waiters);
    ACO__ASSERT(once->aco__runner && !once->done); /* one runs at a time, and none after a success */
    if (result == 0) {
        __atomic_store_n(&once->done, 1, __ATOMIC_RELEASE);
        aco__shared_give_all(&once->aco__waiters, &woken);
    } else
        once->aco__runner = aco__shared_give(&once->aco__waiters, &woken) ? once : NULL; /* it will say who it is */
    aco__shared_unlock(&once->aco__waiters);
    aco__shared_wake(&woken);
    errno = error;
    return result == 0 ? 0 : -1;
}

int aco_shared_once_until_at(aco_shared_once_t *once, int (*fn)(void *arg), void *arg, int64_t deadline,
                             const char *location)
{
    const aco__request_t request = {&once->aco__waiters, &once->aco__waiters, take_once, NULL, once, NULL,
                                    {"aco_shared_once", "a function that runs once", location, deadline}};
    if (__atomic_load_n(&once->done, __ATOMIC_ACQUIRE))
        return 0;
    if (aco__shared_request(&request) != 0)
        return errno == EDEADLK ? aco__poller_fail(EDEADLK, request.waiting.call, "is called by its own function") : -1;
    if (__atomic_load_n(&once->done, __ATOMIC_ACQUIRE))
        return 0;
    aco__shared_lock(&once->aco__waiters);
    once->aco__runner = caller();
    aco__shared_unlock(&once->aco__waiters);
    return leave_once(once, fn(arg));
}

/* ---- Reader-writer lock: the place of a writer has an element that is not NULL ---- */

static int take_rwlock(aco_shared_rwlock_t *lock, int writes)
{
    ACO__ASSERT_SHARED(&lock->aco__waiters);
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
static void pass_rwlock(aco_shared_rwlock_t *lock, aco__woken_t *woken)
{
    aco__shared_place_t *first;
    while ((first = lock->aco__waiters.first) != NULL) {
        int writes = first->element != NULL;
        if (lock->aco__is_writing || (writes && lock->aco__readers))
            return;
        aco__shared_remove(&lock->aco__waiters, first);
        if (!aco__answer_claim(&first->sharer->answer))
            continue;
        (void)take_rwlock(lock, writes);
        aco__woken_add(woken, first->sharer);
    }
}

static void left_rwlock(const aco__request_t *request, aco__woken_t *woken)
{
    pass_rwlock(request->object, woken);
}

static aco__request_t for_rwlock(aco_shared_rwlock_t *lock, int writes, int64_t deadline, const char *location)
{
    const aco__request_t request = {
        &lock->aco__waiters, &lock->aco__waiters, take_rwlock_now, left_rwlock, lock, writes ? lock : NULL,
        {writes ? "aco_shared_rwlock_wrlock" : "aco_shared_rwlock_rdlock", "a shared reader-writer lock", location,
         deadline}};
    return request;
}

int aco_shared_rwlock_rdlock_until_at(aco_shared_rwlock_t *lock, int64_t deadline, const char *location)
{
    const aco__request_t request = for_rwlock(lock, 0, deadline, location);
    return aco__shared_request(&request);
}

int aco_shared_rwlock_wrlock_until_at(aco_shared_rwlock_t *lock, int64_t deadline, const char *location)
{
    const aco__request_t request = for_rwlock(lock, 1, deadline, location);
    return aco__shared_request(&request);
}

int aco_shared_rwlock_tryrdlock(aco_shared_rwlock_t *lock)
{
    const aco__request_t request = for_rwlock(lock, 0, 0, NULL);
    return aco__shared_try(&request, EBUSY);
}

int aco_shared_rwlock_trywrlock(aco_shared_rwlock_t *lock)
{
    const aco__request_t request = for_rwlock(lock, 1, 0, NULL);
    return aco__shared_try(&request, EBUSY);
}

int aco_shared_rwlock_unlock(aco_shared_rwlock_t *lock)
{
    aco__woken_t woken = {NULL, NULL};
    int was_locked;
    aco__shared_lock(&lock->aco__waiters);
    was_locked = lock->aco__is_writing || lock->aco__readers;
    if (lock->aco__is_writing)
        lock->aco__is_writing = 0;
    else if (was_locked)
        lock->aco__readers--;
    pass_rwlock(lock, &woken);
    aco__shared_unlock(&lock->aco__waiters);
    aco__shared_wake(&woken);
    return was_locked ? 0 : aco__poller_fail(EPERM, "aco_shared_rwlock_unlock", "nobody has locked it");
}
