/* Channels between threads, and selecting among several of them and channels of the caller's thread.
 *
 * A select locks all its channels of this kind, each once, in the order of their addresses. With all locks it tries its
 * cases; if none is ready, it puts its places into all queues, and releases the locks. So nothing is slept over: what
 * came before is seen by the tries, what comes later finds the places. Two selects that meet need one claim: the later
 * one serves the one that waits. A channel of the task's own thread is tried between the locks; whoever sends there
 * claims the waiter first, like any other giver. */
#define _GNU_SOURCE
#include "threads/mt_sync.h"

#include "aco/detail/for_libraries.h"

#include <string.h>

enum { FIRST_ELEMENTS = 16 };

struct aco_mt_channel_s {
    aco__mt_t senders;       /* its lock is that of the whole channel */
    aco__mt_t receivers; /* the queue only */
    size_t capacity, element_size;
    size_t first, count, room; /* of the ring of elements */
    char *elements;
    size_t elements_sz;
    int is_closed;
};

static void copy_element(const aco_mt_channel_t *channel, void *to, const void *from)
{
    if (to && from) /* either may be NULL for elements without bytes; `to` also where a value is not wanted */
        memcpy(to, from, channel->element_size);
}

static char *element_at(const aco_mt_channel_t *channel, size_t i)
{
    size_t at = channel->first + i;
    ACO__ASSERT_MT(&channel->senders);
    ACO__ASSERT(i < channel->room && channel->first < channel->room && channel->count <= channel->room);
    return channel->elements + (at < channel->room ? at : at - channel->room) * channel->element_size;
}

/* Room for at least one more, if the capacity allows it. 0, or -1 without memory. */
static int make_room(aco_mt_channel_t *channel)
{
    size_t room = channel->room ? 2 * channel->room : FIRST_ELEMENTS, sz;
    char *elements;
    if (channel->count < channel->room)
        return 0;
    if (room > channel->capacity)
        room = channel->capacity;
    if (__builtin_mul_overflow(room, channel->element_size ? channel->element_size : 1, &sz))
        return -1;
    elements = aco__service_allocate(&sz, "aco_mt_channel_send");
    if (!elements)
        return -1;
    for (size_t i = 0; i < channel->count; i++)
        copy_element(channel, elements + i * channel->element_size, element_at(channel, i));
    if (channel->elements)
        aco__service_free(channel->elements, channel->elements_sz);
    channel->elements = elements;
    channel->elements_sz = sz;
    channel->room = room;
    channel->first = 0;
    return 0;
}

static int put_element(aco_mt_channel_t *channel, const void *element)
{
    ACO__ASSERT(channel->count <= channel->capacity);
    if (channel->count == channel->capacity)
        return 0;
    if (make_room(channel) != 0)
        return -ENOMEM;
    copy_element(channel, element_at(channel, channel->count), element);
    channel->count++;
    return 1;
}

/* With the lock: 1, 0 if it would have to wait, or an errno as a negative number. */
static int put_or_give(aco_mt_channel_t *channel, const void *element, aco__woken_t *woken)
{
    const aco__mt_place_t *receiver;
    if (channel->is_closed)
        return -EPIPE;
    receiver = aco__mt_give(&channel->receivers, woken);
    if (!receiver)
        return put_element(channel, element);
    ACO__ASSERT(!channel->count); /* a receiver waits only for an empty channel */
    copy_element(channel, receiver->element, element);
    return 1;
}

static int take_element(aco_mt_channel_t *channel, void *element, aco__woken_t *woken)
{
    const aco__mt_place_t *sender;
    if (channel->count) {
        copy_element(channel, element, element_at(channel, 0));
        channel->first = channel->first + 1 < channel->room ? channel->first + 1 : 0;
        channel->count--;
        sender = aco__mt_give(&channel->senders, woken);
        ACO__ASSERT(!sender || channel->count == channel->capacity - 1); /* a sender waits only for a full one */
        if (sender) /* its element takes the place: there is room */
            (void)put_element(channel, sender->element);
        return 1;
    }
    sender = aco__mt_give(&channel->senders, woken);
    if (!sender)
        return channel->is_closed ? -EPIPE : 0;
    ACO__ASSERT(!channel->capacity);
    copy_element(channel, element, sender->element);
    return 1;
}

static int send_element(const aco__request_t *request, aco__woken_t *woken)
{
    return put_or_give(request->object, request->element, woken);
}

static int receive_element(const aco__request_t *request, aco__woken_t *woken)
{
    return take_element(request->object, request->element, woken);
}

static const char send_call[] = "aco_mt_channel_send", receive_call[] = "aco_mt_channel_receive";

static aco__request_t for_channel(aco_mt_channel_t *channel, void *element, int sends, int64_t deadline,
                                  const char *location)
{
    const aco__request_t request = {
        &channel->senders,
        sends ? &channel->senders : &channel->receivers,
        sends ? send_element : receive_element,
        NULL,
        channel,
        element,
        {sends ? send_call : receive_call,
         sends ? "room in a channel between threads" : "an element of a channel between threads", location, deadline}};
    return request;
}

aco_mt_channel_t *aco_mt_channel_new(size_t capacity, size_t element_size)
{
    static const char call[] = "aco_mt_channel_new";
    aco_mt_channel_t *channel;
    size_t sz = sizeof *channel;
    if (capacity != ACO_UNBOUNDED && element_size && capacity > SIZE_MAX / 2 / element_size) {
        aco__service_fail(EINVAL, call, "the channel is too large");
        return NULL;
    }
    channel = aco__service_new(&sz, call);
    if (!channel)
        return NULL;
    channel->capacity = capacity;
    channel->element_size = element_size;
    return channel;
}

void aco_mt_channel_destroy(aco_mt_channel_t *channel)
{
    if (!channel)
        return;
    if (channel->elements)
        aco__service_free(channel->elements, channel->elements_sz);
    aco__service_free(channel, sizeof *channel);
}

int aco_mt_channel_close(aco_mt_channel_t *channel)
{
    aco__woken_t woken = {NULL, NULL};
    int was_closed;
    if (!channel)
        return aco__service_fail(EINVAL, "aco_mt_channel_close", "the channel is NULL");
    aco__mt_lock(&channel->senders);
    was_closed = channel->is_closed;
    channel->is_closed = 1;
    aco__mt_give_all(&channel->senders, &woken);
    aco__mt_give_all(&channel->receivers, &woken);
    for (aco__mt_waiter_t *waiter = woken.first; waiter; waiter = waiter->next_woken)
        waiter->is_closed = 1;
    aco__mt_unlock(&channel->senders);
    aco__mt_wake(&woken);
    errno = was_closed ? EPIPE : errno;
    return was_closed ? -1 : 0;
}

/* 0, or -1 and errno. */
static int check_element(const aco_mt_channel_t *channel, const void *element, int sends, const char *call)
{
    if (!channel || (sends && !element && channel->element_size)) {
        aco__service_fail(EINVAL, call, channel ? "the element is NULL" : "the channel is NULL");
        return -1;
    }
    if (element && aco__may_move(element))
        return aco__service_fail(EINVAL, call, "the element is on a share stack");
    return 0;
}

int aco_mt_channel_send_until_at(aco_mt_channel_t *channel, const void *element, int64_t deadline, const char *location)
{
    aco__request_t request;
    if (check_element(channel, element, 1, send_call) != 0)
        return -1;
    request = for_channel(channel, (void *)(uintptr_t)element, 1, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_channel_receive_until_at(aco_mt_channel_t *channel, void *element, int64_t deadline, const char *location)
{
    aco__request_t request;
    if (check_element(channel, element, 0, receive_call) != 0)
        return -1;
    request = for_channel(channel, element, 0, deadline, location);
    return aco__mt_request(&request);
}

int aco_mt_channel_try_send(aco_mt_channel_t *channel, const void *element)
{
    aco__request_t request;
    if (check_element(channel, element, 1, send_call) != 0)
        return -1;
    request = for_channel(channel, (void *)(uintptr_t)element, 1, 0, NULL);
    return aco__mt_try(&request, EAGAIN);
}

int aco_mt_channel_try_receive(aco_mt_channel_t *channel, void *element)
{
    aco__request_t request;
    if (check_element(channel, element, 0, receive_call) != 0)
        return -1;
    request = for_channel(channel, element, 0, 0, NULL);
    return aco__mt_try(&request, EAGAIN);
}

/* ---- Select ---- */

/* The locks of all channels are held while the cases are tried and the places put into the queues. So a select that
 * serves another waiter cannot be claimed by others at the same time: only one that has found no case ready can. */

typedef aco_mt_select_case_t select_case_t;

/* The cases with a channel between threads, linked in the order of the channels' addresses: all selects lock in that
 * order. */
static select_case_t *in_lock_order(select_case_t *cases, int n)
{
    select_case_t *first = NULL, **at;
    for (select_case_t *c = cases; c < cases + n; c++) {
        if (!c->channel)
            continue;
        for (at = &first; *at && (uintptr_t)(*at)->channel < (uintptr_t)c->channel; at = &(*at)->aco__next)
            ;
        c->aco__next = *at;
        *at = c;
    }
    return first;
}

static void lock_all(const select_case_t *first)
{
    const aco_mt_channel_t *locked = NULL;
    for (const select_case_t *c = first; c; c = c->aco__next) {
        ACO__ASSERT((uintptr_t)locked <= (uintptr_t)c->channel); /* another select waits the other way round */
        if (c->channel != locked)
            aco__mt_lock(&c->channel->senders);
        locked = c->channel;
    }
}

static void unlock_all(const select_case_t *first)
{
    for (const select_case_t *c = first, *next; c; c = next) {
        next = c->aco__next;
        if (!next || next->channel != c->channel)
            aco__mt_unlock(&c->channel->senders);
    }
}

static aco__mt_t *queue_of(const select_case_t *c)
{
    return c->operation == ACO_SELECT_SEND ? &c->channel->senders : &c->channel->receivers;
}

/* As put_or_give(). */
static int try_local(const select_case_t *c)
{
    int result = c->operation == ACO_SELECT_SEND ? aco_channel_try_send(c->local, c->element)
                                                 : aco_channel_try_receive(c->local, c->element);
    return result == 0 ? 1 : errno == EAGAIN ? 0 : -errno;
}

/* Does the case now, if it is ready: 1, 0, or an errno as a negative number. */
static int try_case(select_case_t *c, aco__woken_t *woken)
{
    int done = 0;
    if (c->local)
        done = try_local(c);
    else if (c->channel)
        done = c->operation == ACO_SELECT_SEND ? put_or_give(c->channel, c->element, woken)
                                               : take_element(c->channel, c->element, woken);
    c->error = done == -EPIPE ? EPIPE : 0;
    return done == -EPIPE ? 1 : done;
}

/* Tries the cases, beginning at a different one each time. The index of the case that was done; n: none; or an errno as
 * a negative number. */
static int try_cases(select_case_t *cases, int n, aco__woken_t *woken)
{
    static uint32_t selects; /* atomic */
    uint32_t turn = __atomic_fetch_add(&selects, 1, __ATOMIC_RELAXED) * 2654435769u >> 8; /* evenly for any subset */
    for (int i = 0; i < n; i++) {
        int at = (int)((turn % (uint32_t)n + (uint32_t)i) % (uint32_t)n), done = try_case(&cases[at], woken);
        if (done)
            return done > 0 ? at : done;
    }
    return n;
}

static int check_case(const select_case_t *c, const char *call)
{
    if (c->local && c->channel)
        return aco__service_fail(EINVAL, call, "a case has two channels");
    return c->channel ? check_element(c->channel, c->element, c->operation == ACO_SELECT_SEND, call) : 0;
}

/* 0, or -1 with EINVAL, or with EPERM if a thread is to wait for a channel of its tasks. */
static int check_cases(const select_case_t *cases, int n, int polls, const char *call)
{
    if (n < 0 || (n && !cases))
        return aco__service_fail(EINVAL, call, n < 0 ? "the number of cases is negative" : "the cases are NULL");
    if (n && aco__may_move(cases))
        return aco__service_fail(EINVAL, call, "the cases are on a share stack");
    for (int i = 0; i < n; i++) {
        if (check_case(&cases[i], call) != 0)
            return -1;
        if (cases[i].local && !polls && !aco_get_co())
            return aco__service_fail(EPERM, call, "only a task can wait for a channel of its thread");
    }
    return 0;
}

/* Tries the cases; if none is ready and `waiter` is not NULL, puts its places into the queues. As try_cases(). */
static int try_or_queue(select_case_t *cases, int n, const select_case_t *first, aco__mt_waiter_t *waiter)
{
    aco__woken_t woken = {NULL, NULL};
    int done;
    lock_all(first);
    done = try_cases(cases, n, &woken);
    if (done == n && waiter)
        for (select_case_t *c = cases; c < cases + n; c++) {
            if (!c->channel)
                continue;
            c->aco__place.element = c->element;
            aco__mt_append(queue_of(c), &c->aco__place, waiter);
        }
    unlock_all(first);
    aco__mt_wake(&woken);
    return done;
}

/* The places of the cases with a local channel. */
static aco__waiter_t *local_places(select_case_t *cases, int n)
{
    aco__waiter_t *places = NULL, **end = &places;
    for (select_case_t *c = cases; c < cases + n; c++) {
        if (!c->local)
            continue;
        c->aco__waiter.element = c->element;
        c->aco__waiter.queue = aco__channel_queue(c->local, c->operation == ACO_SELECT_SEND);
        *end = &c->aco__waiter;
        end = &c->aco__waiter.other;
    }
    *end = NULL;
    return places;
}

static void leave_queues(const select_case_t *first)
{
    int error = errno;
    for (const select_case_t *c = first; c; c = c->aco__next) {
        aco__mt_lock(&c->channel->senders);
        aco__mt_remove(queue_of(c), (aco__mt_place_t *)(uintptr_t)&c->aco__place);
        aco__mt_unlock(&c->channel->senders);
    }
    errno = error;
}

/* The index of the case that was served. */
static int served(select_case_t *cases, const aco__mt_waiter_t *waiter)
{
    const char *local = waiter->is_task ? (const char *)waiter->answer.wait.woken : NULL;
    const char *place = local ? local - offsetof(select_case_t, aco__waiter)
                              : (const char *)waiter->given - offsetof(select_case_t, aco__place);
    int i = (int)((const select_case_t *)(const void *)place - cases);
    ACO__ASSERT(local || waiter->given);
    cases[i].error = local ? waiter->answer.wait.error : waiter->is_closed ? EPIPE : 0;
    return i;
}

ACO__SWITCHES
static int wait_for_cases(select_case_t *cases, int n, const select_case_t *first, aco__mt_waiter_t *waiter,
                          const aco__waiting_t *waiting)
{
    int done = try_or_queue(cases, n, first, waiter);
    if (done != n)
        return done;
    done = aco__mt_waiter_wait(waiter, waiting, local_places(cases, n));
    leave_queues(first);
    return done == 0 ? served(cases, waiter) : -errno;
}

static int select_result(int done)
{
    if (done >= 0)
        return done;
    errno = -done;
    return -1;
}

int aco_mt_select_until_at(aco_mt_select_case_t *cases, int n, int64_t deadline, const char *location)
{
    const aco__waiting_t waiting = {"aco_mt_select", "one of several channels", location, deadline};
    aco__mt_waiter_t on_stack, *waiter;
    int done;
    if (check_cases(cases, n, 0, waiting.call) != 0)
        return -1;
    waiter = aco__mt_waiter_open(&on_stack, waiting.call);
    if (!waiter)
        return -1;
    done = wait_for_cases(cases, n, in_lock_order(cases, n), waiter, &waiting);
    aco__mt_waiter_close(waiter, &on_stack);
    return select_result(done);
}

int aco_mt_try_select(aco_mt_select_case_t *cases, int n)
{
    int done;
    if (check_cases(cases, n, 1, "aco_mt_try_select") != 0)
        return -1;
    done = try_or_queue(cases, n, in_lock_order(cases, n), NULL);
    return select_result(done == n ? -EAGAIN : done);
}
