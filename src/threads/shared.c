/* Locks and channels between threads. Each object has a lock for a few instructions and a queue of those that wait.
 *
 * Whoever gives something to one that waits takes it out of the queue under the lock, and wakes it after that. One
 * whose wait has failed looks under the lock whether it is still in the queue. If it is not, it has been given what it
 * waited for: it waits on until it is woken, which is sure to happen, and succeeds. */
#define _GNU_SOURCE
#include "threads/threads.h"

#include "aco/shared.h"

#include <sched.h>
#include <time.h>

/* One that waits: a task, or a thread in its root context. */
typedef struct aco__sharer {
    struct aco__sharer *next, *previous;
    void *element;     /* of a channel */
    int is_queued;
    int is_closed;     /* the channel was closed: nothing was given */
    int is_task;
    aco__answer_t answer; /* of a task; of a thread the rest: */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_woken;
} aco__sharer_t;

/* ---- The lock of an object ---- */

static void shared_lock(aco__shared_t *shared)
{
    enum { SPINS = 100 };
    for (int spins = 0; __atomic_exchange_n(&shared->lock, 1, __ATOMIC_ACQUIRE); spins++)
        while (__atomic_load_n(&shared->lock, __ATOMIC_RELAXED))
            if (++spins > SPINS)
                sched_yield(); /* its holder does not run */
}

static void shared_unlock(aco__shared_t *shared)
{
    __atomic_store_n(&shared->lock, 0, __ATOMIC_RELEASE);
}

/* ---- The queue; with the lock ---- */

static void shared_append(aco__shared_t *shared, aco__sharer_t *sharer)
{
    sharer->is_queued = 1;
    sharer->next = NULL;
    sharer->previous = shared->last;
    *(shared->last ? &shared->last->next : &shared->first) = sharer;
    shared->last = sharer;
}

static void shared_remove(aco__shared_t *shared, aco__sharer_t *sharer)
{
    sharer->is_queued = 0;
    *(sharer->previous ? &sharer->previous->next : &shared->first) = sharer->next;
    *(sharer->next ? &sharer->next->previous : &shared->last) = sharer->previous;
}

static aco__sharer_t *shared_take(aco__shared_t *shared)
{
    aco__sharer_t *sharer = shared->first;
    if (sharer)
        shared_remove(shared, sharer);
    return sharer;
}

/* ---- Waiting ---- */

/* Without the lock. NULL: nothing happens. */
static void shared_wake(aco__sharer_t *sharer)
{
    if (!sharer)
        return;
    if (sharer->is_task) {
        aco__answer_tell(&sharer->answer);
        return;
    }
    pthread_mutex_lock(&sharer->lock);
    sharer->is_woken = 1;
    pthread_cond_signal(&sharer->changed);
    pthread_mutex_unlock(&sharer->lock);
}

static struct timespec time_of_ns(int64_t ns)
{
    enum { NS_PER_SECOND = 1000000000 };
    struct timespec time = {0, 0};
    if (ns > 0) {
        time.tv_sec = (time_t)(ns / NS_PER_SECOND);
        time.tv_nsec = (long)(ns % NS_PER_SECOND);
    }
    return time;
}

/* A condition, and a wait for it until a time on the clock of aco_now(). */
#ifdef __APPLE__ /* conditions know only the time of day, or a time from now on */
static void make_changed(pthread_cond_t *changed)
{
    pthread_cond_init(changed, NULL);
}

static int wait_changed(aco__sharer_t *sharer, int64_t deadline)
{
    struct timespec from_now = time_of_ns(deadline - aco_now());
    return pthread_cond_timedwait_relative_np(&sharer->changed, &sharer->lock, &from_now);
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
    struct timespec end = time_of_ns(deadline);
    return pthread_cond_timedwait(&sharer->changed, &sharer->lock, &end);
}
#endif

/* Until the thread is woken: 0; or the deadline passes. */
static int wait_in_root(aco__sharer_t *sharer, int64_t deadline)
{
    int error = 0;
    pthread_mutex_lock(&sharer->lock);
    while (!sharer->is_woken && !error)
        error = deadline == ACO_FOREVER ? pthread_cond_wait(&sharer->changed, &sharer->lock)
                                        : wait_changed(sharer, deadline);
    if (sharer->is_woken)
        error = 0;
    pthread_mutex_unlock(&sharer->lock);
    return error;
}

static void prepare_root(aco__sharer_t *sharer)
{
    pthread_mutex_init(&sharer->lock, NULL);
    make_changed(&sharer->changed);
    sharer->is_woken = 0;
}

/* 0, or -1 and errno: the caller cannot wait. */
static int prepare_sharer(aco__sharer_t *sharer, void *element, const char *call)
{
    sharer->element = element;
    sharer->is_closed = 0;
    sharer->is_task = aco_get_co() != NULL; /* perhaps a coroutine in no task: that fails */
    if (sharer->is_task)
        return aco__answer_prepare(&sharer->answer, call);
    prepare_root(sharer);
    return 0;
}

static int wait_once(aco__sharer_t *sharer, const char *call, const char *what, int64_t deadline, const char *location)
{
    int error;
    if (sharer->is_task)
        return aco__answer_wait(&sharer->answer, call, what, deadline, location);
    error = wait_in_root(sharer, deadline);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

static void release_sharer(aco__sharer_t *sharer)
{
    if (!sharer->is_task) {
        pthread_cond_destroy(&sharer->changed);
        pthread_mutex_destroy(&sharer->lock);
    }
}

/* What a call waits for. `take` is called with the lock: whether the caller has got it now, or the errno of a failure
 * as a negative number. */
typedef struct request {
    aco__shared_t *shared; /* has the lock */
    aco__shared_t *queue;  /* to wait in */
    int (*take)(const struct request *request, aco__sharer_t **woken);
    void *object, *element;
    const char *call, *what, *location;
    int64_t deadline;
} request_t;

/* Tries without waiting: 1, 0, or -1 and errno. */
static int shared_try(const request_t *request)
{
    aco__sharer_t *woken = NULL;
    int taken;
    shared_lock(request->shared);
    taken = request->take(request, &woken);
    shared_unlock(request->shared);
    shared_wake(woken);
    if (taken < 0)
        errno = -taken;
    return taken < 0 ? -1 : taken;
}

/* The caller, which stands in the queue, waits. Called with the lock, returns without it. */
static int shared_wait(const request_t *request, aco__sharer_t *sharer)
{
    int error, is_queued;
    shared_unlock(request->shared);
    if (wait_once(sharer, request->call, request->what, request->deadline, request->location) == 0)
        return 0;
    error = errno;
    shared_lock(request->shared);
    is_queued = sharer->is_queued;
    if (is_queued)
        shared_remove(request->queue, sharer);
    shared_unlock(request->shared);
    errno = error;
    if (is_queued)
        return -1;
    if (sharer->is_task)
        aco__answer_await(&sharer->answer, request->what, request->location);
    else
        (void)wait_in_root(sharer, ACO_FOREVER);
    return 0;
}

static int wait_with(const request_t *request, aco__sharer_t *sharer)
{
    aco__sharer_t *woken = NULL;
    int taken;
    if (prepare_sharer(sharer, request->element, request->call) != 0)
        return -1;
    shared_lock(request->shared);
    taken = request->take(request, &woken);
    if (taken) {
        shared_unlock(request->shared);
        shared_wake(woken);
        if (taken < 0)
            errno = -taken;
        taken = taken < 0 ? -1 : 0;
    } else {
        shared_append(request->queue, sharer);
        taken = shared_wait(request, sharer);
    }
    release_sharer(sharer);
    if (taken == 0 && sharer->is_closed) {
        errno = EPIPE;
        taken = -1;
    }
    return taken;
}

/* On a share stack the record must stand elsewhere. */
static int shared_request(const request_t *request)
{
    aco__sharer_t on_stack, *sharer = &on_stack;
    size_t sz = sizeof *sharer;
    int taken = shared_try(request), moves;
    if (taken)
        return taken > 0 ? 0 : -1;
    moves = aco__poller_moves(&on_stack);
    if (moves && !(sharer = aco__poller_allocate(&sz, request->call)))
        return -1;
    taken = wait_with(request, sharer);
    if (moves)
        aco__poller_free(sharer, sz);
    return taken;
}

static int expect(int taken, int error)
{
    if (taken > 0)
        return 0;
    if (!taken)
        errno = error;
    return -1;
}

/* ---- Mutex ---- */

static int take_mutex(const request_t *request, aco__sharer_t **woken)
{
    aco_shared_mutex_t *mutex = request->object;
    (void)woken;
    if (mutex->aco__is_locked)
        return 0;
    mutex->aco__is_locked = 1;
    return 1;
}

static request_t for_mutex(aco_shared_mutex_t *mutex, int64_t deadline, const char *location)
{
    const request_t request = {&mutex->aco__waiters, &mutex->aco__waiters, take_mutex, mutex, NULL,
                               "aco_shared_mutex_lock",
                               "a shared mutex", location, deadline};
    return request;
}

int aco_shared_mutex_lock_until_at(aco_shared_mutex_t *mutex, int64_t deadline, const char *location)
{
    const request_t request = for_mutex(mutex, deadline, location);
    return shared_request(&request);
}

int aco_shared_mutex_trylock(aco_shared_mutex_t *mutex)
{
    const request_t request = for_mutex(mutex, 0, NULL);
    return expect(shared_try(&request), EBUSY);
}

int aco_shared_mutex_unlock(aco_shared_mutex_t *mutex)
{
    aco__sharer_t *next;
    int was_locked;
    shared_lock(&mutex->aco__waiters);
    was_locked = mutex->aco__is_locked;
    next = shared_take(&mutex->aco__waiters);
    if (!next) /* else it has the mutex from now on */
        mutex->aco__is_locked = 0;
    shared_unlock(&mutex->aco__waiters);
    shared_wake(next);
    return was_locked ? 0 : aco__poller_fail(EPERM, "aco_shared_mutex_unlock", "the mutex is not locked");
}

/* ---- Semaphore ---- */

static int take_unit(const request_t *request, aco__sharer_t **woken)
{
    aco_shared_semaphore_t *semaphore = request->object;
    (void)woken;
    if (!semaphore->aco__value)
        return 0;
    semaphore->aco__value--;
    return 1;
}

static request_t for_unit(aco_shared_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const request_t request = {&semaphore->aco__waiters, &semaphore->aco__waiters, take_unit, semaphore, NULL,
                               "aco_shared_semaphore_acquire",
                               "a unit of a shared semaphore", location, deadline};
    return request;
}

int aco_shared_semaphore_acquire_until_at(aco_shared_semaphore_t *semaphore, int64_t deadline, const char *location)
{
    const request_t request = for_unit(semaphore, deadline, location);
    return shared_request(&request);
}

int aco_shared_semaphore_try_acquire(aco_shared_semaphore_t *semaphore)
{
    const request_t request = for_unit(semaphore, 0, NULL);
    return expect(shared_try(&request), EAGAIN);
}

void aco_shared_semaphore_release(aco_shared_semaphore_t *semaphore)
{
    aco__sharer_t *next;
    shared_lock(&semaphore->aco__waiters);
    next = shared_take(&semaphore->aco__waiters);
    semaphore->aco__value += !next;
    shared_unlock(&semaphore->aco__waiters);
    shared_wake(next);
}

/* ---- Event ---- */

static int take_event(const request_t *request, aco__sharer_t **woken)
{
    (void)woken;
    return ((const aco_shared_event_t *)request->object)->aco__is_set;
}

/* Takes all out of the queue: a list by `next`. */
static aco__sharer_t *take_all(aco__shared_t *shared)
{
    aco__sharer_t *list = shared->first;
    for (aco__sharer_t *sharer = list; sharer; sharer = sharer->next)
        sharer->is_queued = 0;
    shared->first = shared->last = NULL;
    return list;
}

static void wake_all(aco__sharer_t *list)
{
    while (list) {
        aco__sharer_t *sharer = list;
        list = sharer->next; /* it may be gone once it is woken */
        shared_wake(sharer);
    }
}

void aco_shared_event_set(aco_shared_event_t *event)
{
    aco__sharer_t *list;
    shared_lock(&event->aco__waiters);
    event->aco__is_set = 1;
    list = take_all(&event->aco__waiters);
    shared_unlock(&event->aco__waiters);
    wake_all(list);
}

void aco_shared_event_reset(aco_shared_event_t *event)
{
    shared_lock(&event->aco__waiters);
    event->aco__is_set = 0;
    shared_unlock(&event->aco__waiters);
}

int aco_shared_event_wait_until_at(aco_shared_event_t *event, int64_t deadline, const char *location)
{
    const request_t request = {&event->aco__waiters, &event->aco__waiters, take_event, event, NULL,
                               "aco_shared_event_wait",
                               "a shared event", location, deadline};
    return shared_request(&request);
}

/* ---- Channel ---- */

enum { FIRST_ELEMENTS = 16 };

struct aco_shared_channel_s {
    aco__shared_t senders;   /* its lock is that of the whole channel */
    aco__shared_t receivers; /* the queue only */
    size_t capacity, element_size;
    size_t first, count, room; /* of the ring of elements */
    char *elements;
    size_t elements_sz;
    int is_closed;
};

static void copy_element(const aco_shared_channel_t *channel, void *to, const void *from)
{
    if (to && from) /* either may be NULL for elements without bytes; `to` also where a value is not wanted */
        memcpy(to, from, channel->element_size);
}

static char *element_at(const aco_shared_channel_t *channel, size_t i)
{
    size_t at = channel->first + i;
    return channel->elements + (at < channel->room ? at : at - channel->room) * channel->element_size;
}

/* Room for at least one more, if the capacity allows it. 0, or -1 without memory. */
static int make_room(aco_shared_channel_t *channel)
{
    size_t room = channel->room ? 2 * channel->room : FIRST_ELEMENTS, sz;
    char *elements;
    if (channel->count < channel->room)
        return 0;
    if (room > channel->capacity)
        room = channel->capacity;
    if (__builtin_mul_overflow(room, channel->element_size ? channel->element_size : 1, &sz))
        return -1;
    elements = aco__poller_allocate(&sz, "aco_shared_channel_send");
    if (!elements)
        return -1;
    for (size_t i = 0; i < channel->count; i++)
        copy_element(channel, elements + i * channel->element_size, element_at(channel, i));
    if (channel->elements)
        aco__poller_free(channel->elements, channel->elements_sz);
    channel->elements = elements;
    channel->elements_sz = sz;
    channel->room = room;
    channel->first = 0;
    return 0;
}

static int put_element(aco_shared_channel_t *channel, const void *element)
{
    if (channel->count == channel->capacity)
        return 0;
    if (make_room(channel) != 0)
        return -ENOMEM;
    copy_element(channel, element_at(channel, channel->count), element);
    channel->count++;
    return 1;
}

static int send_element(const request_t *request, aco__sharer_t **woken)
{
    aco_shared_channel_t *channel = request->object;
    if (channel->is_closed)
        return -EPIPE;
    *woken = shared_take(&channel->receivers);
    if (!*woken)
        return put_element(channel, request->element);
    copy_element(channel, (*woken)->element, request->element);
    return 1;
}

static int receive_element(const request_t *request, aco__sharer_t **woken)
{
    aco_shared_channel_t *channel = request->object;
    const void *from;
    if (channel->count) {
        copy_element(channel, request->element, element_at(channel, 0));
        channel->first = channel->first + 1 < channel->room ? channel->first + 1 : 0;
        channel->count--;
        *woken = shared_take(&channel->senders);
        if (*woken) /* its element takes the place: there is room */
            (void)put_element(channel, (*woken)->element);
        return 1;
    }
    *woken = shared_take(&channel->senders);
    if (!*woken)
        return channel->is_closed ? -EPIPE : 0;
    from = (*woken)->element;
    copy_element(channel, request->element, from);
    return 1;
}

static const char send_call[] = "aco_shared_channel_send", receive_call[] = "aco_shared_channel_receive";

static request_t for_channel(aco_shared_channel_t *channel, void *element, int sends, int64_t deadline,
                             const char *location)
{
    const request_t request = {&channel->senders, sends ? &channel->senders : &channel->receivers,
                               sends ? send_element : receive_element, channel, element,
                               sends ? send_call : receive_call,
                               sends ? "room in a shared channel" : "an element of a shared channel", location,
                               deadline};
    return request;
}

aco_shared_channel_t *aco_shared_channel_new(size_t capacity, size_t element_size)
{
    static const char call[] = "aco_shared_channel_new";
    aco_shared_channel_t *channel;
    size_t sz = sizeof *channel;
    if (capacity != ACO_UNBOUNDED && element_size && capacity > SIZE_MAX / 2 / element_size) {
        aco__poller_fail(EINVAL, call, "the channel is too large");
        return NULL;
    }
    channel = aco__poller_allocate(&sz, call);
    if (!channel)
        return NULL;
    memset(channel, 0, sizeof *channel);
    channel->capacity = capacity;
    channel->element_size = element_size;
    return channel;
}

void aco_shared_channel_destroy(aco_shared_channel_t *channel)
{
    if (!channel)
        return;
    if (channel->elements)
        aco__poller_free(channel->elements, channel->elements_sz);
    aco__poller_free(channel, sizeof *channel);
}

int aco_shared_channel_close(aco_shared_channel_t *channel)
{
    aco__sharer_t *senders, *receivers;
    int was_closed;
    if (!channel)
        return aco__poller_fail(EINVAL, "aco_shared_channel_close", "the channel is NULL");
    shared_lock(&channel->senders);
    was_closed = channel->is_closed;
    channel->is_closed = 1;
    senders = take_all(&channel->senders);
    receivers = take_all(&channel->receivers);
    for (aco__sharer_t *sharer = senders; sharer; sharer = sharer->next)
        sharer->is_closed = 1;
    for (aco__sharer_t *sharer = receivers; sharer; sharer = sharer->next)
        sharer->is_closed = 1;
    shared_unlock(&channel->senders);
    wake_all(senders);
    wake_all(receivers);
    errno = was_closed ? EPIPE : errno;
    return was_closed ? -1 : 0;
}

/* 0, or -1 and errno. */
static int check_element(const aco_shared_channel_t *channel, const void *element, int sends, const char *call)
{
    if (!channel || (sends && !element && channel->element_size)) {
        aco__poller_fail(EINVAL, call, channel ? "the element is NULL" : "the channel is NULL");
        return -1;
    }
    if (element && aco__poller_moves(element))
        return aco__poller_fail(EINVAL, call, "the element is on a share stack");
    return 0;
}

int aco_shared_channel_send_until_at(aco_shared_channel_t *channel, const void *element, int64_t deadline,
                                     const char *location)
{
    request_t request;
    if (check_element(channel, element, 1, send_call) != 0)
        return -1;
    request = for_channel(channel, (void *)(uintptr_t)element, 1, deadline, location);
    return shared_request(&request);
}

int aco_shared_channel_receive_until_at(aco_shared_channel_t *channel, void *element, int64_t deadline,
                                        const char *location)
{
    request_t request;
    if (check_element(channel, element, 0, receive_call) != 0)
        return -1;
    request = for_channel(channel, element, 0, deadline, location);
    return shared_request(&request);
}

int aco_shared_channel_try_send(aco_shared_channel_t *channel, const void *element)
{
    request_t request;
    if (check_element(channel, element, 1, send_call) != 0)
        return -1;
    request = for_channel(channel, (void *)(uintptr_t)element, 1, 0, NULL);
    return expect(shared_try(&request), EAGAIN);
}

int aco_shared_channel_try_receive(aco_shared_channel_t *channel, void *element)
{
    request_t request;
    if (check_element(channel, element, 0, receive_call) != 0)
        return -1;
    request = for_channel(channel, element, 0, 0, NULL);
    return expect(shared_try(&request), EAGAIN);
}
