/* Channels, and selecting among several. A sender copies its element directly to a waiting receiver, and a receiver
 * directly from a waiting sender: the one that arrives serves the one that waits. */
#include "scheduler/sync/channel.h"
#include "scheduler/wait.h"

#include "aco/detail/relay.h"
#include "aco/detail/worker.h"

#include <stdio.h>

struct aco_channel_s {
    size_t element_size;
    size_t capacity, count, head; /* in elements: room, held, index of the oldest */
    char *elements;
    size_t sz;                    /* size of this and the elements, as allocated */
    aco__queue_t senders, receivers; /* waiting tasks: not in both, except a select for both at capacity 0 */
    int closed;
    aco__thread_t *thread;        /* that uses it; NULL: not known yet */
    aco__thread_t *open_for;      /* the same until it is closed, or is_mixed: then NULL. One comparison for all */
    int is_mixed;                 /* a task has waited for it and for other threads at once: claim_first() */
};

/* Either may be NULL: the receiver does not want the element, or it has no bytes. */
static inline void copy_element(const aco_channel_t *channel, void *to, const void *from)
{
    if (aco_unlikely(!to || !from))
        return;
    if (aco_likely(channel->element_size == sizeof(void *)))
        memcpy(to, from, sizeof(void *));
    else
        memcpy(to, from, channel->element_size);
}

static inline char *element(const aco_channel_t *channel, size_t i)
{
    i += channel->head;
    return channel->elements + (i >= channel->capacity ? i - channel->capacity : i) * channel->element_size;
}

aco_channel_t *aco_channel_new(size_t capacity, size_t element_size)
{
    aco_channel_t *channel;
    size_t sz = sizeof *channel;
    if (element_size && (capacity ? capacity : 1) > (SIZE_MAX / 2 - sizeof *channel) / element_size) {
        aco__fail(0, EINVAL, "aco_channel_new", NULL, "%zu elements of %zu bytes are too large", capacity,
                  element_size);
        return NULL;
    }
    sz += capacity * element_size;
    channel = aco__memory_new(&sz);
    if (!channel) {
        aco__fail_memory(0, "aco_channel_new", sz);
        return NULL;
    }
    memset(channel, 0, sizeof *channel);
    channel->element_size = element_size;
    channel->capacity = capacity;
    channel->elements = (char *)(channel + 1);
    channel->sz = sz;
    return channel;
}

int aco__channel_has_waiters(const aco_channel_t *channel)
{
    return channel->senders.first || channel->receivers.first;
}

int aco_channel_destroy(aco_channel_t *channel)
{
    if (!channel)
        return aco__fail(0, EINVAL, "aco_channel_destroy", NULL, "the channel is NULL");
    if (aco__channel_has_waiters(channel))
        return aco__fail(0, EBUSY, "aco_channel_destroy", NULL, "tasks wait for the channel %p", (void *)channel);
    aco__memory_free(channel, channel->sz);
    return 0;
}

/* Ends a task's wait for this channel, or for several. Inline, like the two below: a value there and back then takes 20
 * ns instead of 24 (Zen 5, gcc 12). */
ACO__FORCE_INLINE void serve(aco__thread_t *self, aco__waiter_t *waiter, int error)
{
    ACO__ASSERT(waiter->queue && !waiter->wait->woken); /* a wait is served once */
    waiter->wait->woken = waiter;
    aco__wake_at(self, waiter, error);
}

/* The first in the queue, which is going to be served. If it waits for other threads too, it must be claimed first; one
 * that has been claimed by another thread leaves the queue. */
ACO__COLD static aco__waiter_t *claim_first(aco__queue_t *queue)
{
    aco__waiter_t *first;
    while ((first = queue->first) != NULL && first->wait->kind == ACO__WAIT_MT &&
           !aco__answer_claim((aco__answer_t *)(void *)((char *)first->wait - offsetof(aco__answer_t, wait))))
        aco__dequeue(first);
    return first;
}

aco__queue_t *aco__channel_queue(aco_channel_t *channel, int sends)
{
    channel->is_mixed = 1;
    channel->open_for = NULL;
    return sends ? &channel->senders : &channel->receivers;
}

/* The channel is closed, or not the thread's, or new, or is_mixed. */
static __attribute__((noinline)) void check_thread(aco__thread_t *self, aco_channel_t *channel, const char *call)
{
    aco__use_by(&channel->thread, self, channel, channel->senders.first || channel->receivers.first, call);
    channel->open_for = channel->closed || channel->is_mixed ? NULL : self;
}

int aco_channel_close(aco_channel_t *channel)
{
    aco__thread_t *self = aco__self();
    aco__waiter_t *waiter;
    if (!channel)
        return aco__fail(0, EINVAL, "aco_channel_close", NULL, "the channel is NULL");
    if (channel->closed)
        return aco__fail(0, EPIPE, "aco_channel_close", NULL, "the channel %p was closed before", (void *)channel);
    check_thread(self, channel, "aco_channel_close");
    channel->closed = 1;
    channel->open_for = NULL;
    while ((waiter = claim_first(&channel->senders)) != NULL)
        serve(self, waiter, EPIPE);
    while ((waiter = claim_first(&channel->receivers)) != NULL)
        serve(self, waiter, EPIPE);
    return 0;
}

/* These send and receive without waiting: 0, EPIPE, or EAGAIN. */
ACO__FORCE_INLINE int send_element(aco__thread_t *self, aco_channel_t *channel, const void *from)
{
    aco__waiter_t *receiver = channel->receivers.first;
    ACO__ASSERT(channel->count <= channel->capacity);
    ACO__ASSERT(!receiver || !channel->count || channel->is_mixed); /* nobody waits for what is there */
    if (aco_unlikely(channel->open_for != self)) {
        check_thread(self, channel, "aco_channel_send");
        if (channel->closed)
            return EPIPE;
        receiver = claim_first(&channel->receivers);
    }
    if (receiver) {
        copy_element(channel, receiver->element, from);
        serve(self, receiver, 0);
        return 0;
    }
    if (channel->count == channel->capacity)
        return EAGAIN;
    copy_element(channel, element(channel, channel->count), from);
    channel->count++;
    return 0;
}

ACO__FORCE_INLINE int receive_element(aco__thread_t *self, aco_channel_t *channel, void *to)
{
    aco__waiter_t *sender = channel->senders.first;
    ACO__ASSERT(channel->count <= channel->capacity && (!channel->count || channel->head < channel->capacity));
    ACO__ASSERT(!sender || channel->count == channel->capacity || channel->is_mixed); /* or for room that is there */
    if (aco_unlikely(channel->open_for != self)) {
        check_thread(self, channel, "aco_channel_receive");
        sender = claim_first(&channel->senders);
    }
    if (channel->count) {
        copy_element(channel, to, element(channel, 0));
        channel->head = channel->head + 1 == channel->capacity ? 0 : channel->head + 1;
        if (sender)
            copy_element(channel, element(channel, channel->count - 1), sender->element);
        else
            channel->count--;
    } else if (sender) {
        copy_element(channel, to, sender->element);
    } else {
        return channel->closed ? EPIPE : EAGAIN;
    }
    if (sender)
        serve(self, sender, 0);
    return 0;
}

static int result_of(int error)
{
    if (aco_likely(!error))
        return 0;
    errno = error;
    return -1;
}

/* These two return 0, or -1 with EINVAL. */
static int check_send(const char *call, const aco_channel_t *channel, const void *from)
{
    if (aco_likely(channel && (from || !channel->element_size)))
        return 0;
    return aco__fail(0, EINVAL, call, NULL, "%s is NULL", channel ? "the element" : "the channel");
}

static int check_receive(const char *call, const aco_channel_t *channel)
{
    return aco_likely(channel != NULL) ? 0 : aco__fail(0, EINVAL, call, NULL, "the channel is NULL");
}

ACO__SWITCHES int aco__channel_send(aco_channel_t *channel, const void *from, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    int error;
    if (check_send("aco_channel_send", channel, from) != 0)
        return -1;
    if (aco__check_waiting(self, "aco_channel_send") != 0)
        return -1;
    error = send_element(self, channel, from);
    if (error != EAGAIN)
        return result_of(error);
    if (aco__wait_prepare(self, wait, ACO__WAIT_SEND, channel, location) != 0)
        return -1;
    wait->waiter.element = (void *)(uintptr_t)from;
    aco__wait_in(&channel->senders, wait);
    return aco__wait_start(self, wait);
}

ACO__SWITCHES int aco__channel_receive(aco_channel_t *channel, void *to, aco__wait_t *wait, const char *location)
{
    aco__thread_t *self = aco__self();
    int error;
    if (check_receive("aco_channel_receive", channel) != 0 || aco__check_waiting(self, "aco_channel_receive") != 0)
        return -1;
    error = receive_element(self, channel, to);
    if (error != EAGAIN)
        return result_of(error);
    if (aco__wait_prepare(self, wait, ACO__WAIT_RECEIVE, channel, location) != 0)
        return -1;
    wait->waiter.element = to;
    aco__wait_in(&channel->receivers, wait);
    return aco__wait_start(self, wait);
}

int aco__relay_send(aco__relay_t *relay, aco__relay_place_t *place, aco_channel_t *channel, const void *from)
{
    int error;
    if (check_send("aco_channel_send", channel, from) != 0)
        return -1;
    error = send_element(aco__self(), channel, from);
    if (error != EAGAIN)
        return result_of(error);
    place->waiter.element = (void *)(uintptr_t)from;
    return aco__relay_wait(relay, place, &channel->senders);
}

int aco__relay_receive(aco__relay_t *relay, aco__relay_place_t *place, aco_channel_t *channel, void *to)
{
    int error;
    if (check_receive("aco_channel_receive", channel) != 0)
        return -1;
    error = receive_element(aco__self(), channel, to);
    if (error != EAGAIN)
        return result_of(error);
    place->waiter.element = to;
    return aco__relay_wait(relay, place, &channel->receivers);
}

int aco_channel_try_send(aco_channel_t *channel, const void *from)
{
    return check_send("aco_channel_try_send", channel, from) != 0 ? -1
                                                                  : result_of(send_element(aco__self(), channel, from));
}

int aco_channel_try_receive(aco_channel_t *channel, void *to)
{
    return check_receive("aco_channel_try_receive", channel) != 0
               ? -1
               : result_of(receive_element(aco__self(), channel, to));
}

/* ---- Selecting ---- */

/* Does the case now if it is ready. Returns whether it was. */
static int try_case(aco__thread_t *self, aco_select_case_t *c)
{
    if (!c->channel)
        return 0;
    c->error = c->operation == ACO_SELECT_SEND ? send_element(self, c->channel, c->element)
                                               : receive_element(self, c->channel, c->element);
    return c->error != EAGAIN;
}

/* The case to try first. A task that selects repeatedly begins with each case in turn, whatever other tasks do. */
static unsigned turn(const aco__thread_t *self)
{
    const aco_t *task = aco__current(self);
    size_t *flags;
    if (!task)
        return self->scheduler ? aco__tasks(self)->selections++ : 0;
    flags = aco__task_flags(task);
    *flags += TASK_SELECTION;
    return (unsigned)(*flags / TASK_SELECTION) - 1;
}

/* Tries the cases, each call from another one on. Returns the index of the case that was done; -1: none is ready. */
static int try_cases(aco__thread_t *self, aco_select_case_t *cases, int n)
{
    int start = n ? (int)(turn(self) % (unsigned)n) : 0;
    for (int i = start; i < n; i++)
        if (try_case(self, &cases[i]))
            return i;
    for (int i = 0; i < start; i++)
        if (try_case(self, &cases[i]))
            return i;
    return -1;
}

/* 0, or -1 with EINVAL: nothing has been done then. */
static int check_cases(const char *call, const aco_select_case_t *cases, int n)
{
    if (n < 0 || (n && !cases))
        return aco__fail(0, EINVAL, call, NULL, n < 0 ? "the number of cases is negative" : "the cases are NULL");
    for (int i = 0; i < n; i++)
        if (cases[i].channel && cases[i].operation == ACO_SELECT_SEND && !cases[i].element &&
            cases[i].channel->element_size)
            return aco__fail(0, EINVAL, call, NULL, "the element to send of case %d is NULL", i);
    return 0;
}

static void wait_for_cases(aco_select_case_t *cases, int n, aco__wait_t *wait)
{
    aco__waiter_t **link = &wait->first;
    for (int i = 0; i < n; i++) {
        aco__waiter_t *waiter = &cases[i].aco__waiter;
        waiter->wait = wait;
        waiter->element = cases[i].element;
        waiter->queue = NULL;
        *link = waiter;
        link = &waiter->other;
        if (cases[i].channel)
            aco__enqueue(cases[i].operation == ACO_SELECT_SEND ? &cases[i].channel->senders
                                                               : &cases[i].channel->receivers,
                         waiter);
    }
    *link = NULL;
}

ACO__SWITCHES int aco__select(aco_select_case_t *cases, int n, aco__wait_t *wait, const char *location)
{
    static const char call[] = "aco_select";
    aco__thread_t *self = aco__self();
    int chosen;
    if (check_cases(call, cases, n) != 0 || aco__check_waiting(self, call) != 0)
        return -1;
    chosen = try_cases(self, cases, n);
    if (chosen >= 0)
        return chosen;
    if (aco__wait_prepare(self, wait, ACO__WAIT_SELECT, cases, location) != 0)
        return -1;
    wait_for_cases(cases, n, wait);
    return aco__wait_start(self, wait);
}

int aco_try_select(aco_select_case_t *cases, int n)
{
    int chosen;
    if (check_cases("aco_try_select", cases, n) != 0)
        return -1;
    chosen = try_cases(aco__self(), cases, n);
    return chosen >= 0 ? chosen : result_of(EAGAIN);
}

static aco_select_case_t *case_of(const aco__waiter_t *waiter)
{
    return (aco_select_case_t *)(void *)((char *)(uintptr_t)waiter - offsetof(aco_select_case_t, aco__waiter));
}

ACO__SWITCHES int aco__select_result(aco_select_case_t *cases, const aco__wait_t *wait)
{
    if (!wait->woken)
        return aco__wait_failed(wait);
    ACO__ASSERT(wait->kind == ACO__WAIT_SELECT && !wait->woken->queue); /* it was served */
    case_of(wait->woken)->error = wait->error;
    return (int)(case_of(wait->woken) - cases);
}

#ifdef ACO__INVARIANTS
const aco__queue_t *aco__channel_check(const aco_channel_t *channel, int sends)
{
    ACO__ASSERT(channel->count <= channel->capacity && channel->head <= channel->capacity);
    ACO__ASSERT(!channel->closed && (!channel->open_for || channel->open_for == channel->thread));
    if (!channel->is_mixed) { /* else some in the queues may have been served by other threads */
        ACO__ASSERT(channel->count == (sends ? channel->capacity : 0)); /* else the wait has lost its wake */
        ACO__ASSERT(!channel->capacity || !channel->senders.first || !channel->receivers.first);
    }
    return sends ? &channel->senders : &channel->receivers;
}

void aco__select_check(const aco__wait_t *wait)
{
    ACO__ASSERT(!wait->woken);
    for (const aco__waiter_t *waiter = wait->first; waiter; waiter = waiter->other) {
        const aco_select_case_t *c = case_of(waiter);
        ACO__ASSERT(waiter->queue ==
                    (c->channel ? aco__channel_check(c->channel, c->operation == ACO_SELECT_SEND) : NULL));
    }
}
#endif

void aco__describe_select(const aco__wait_t *wait, char *text, size_t sz)
{
    size_t length = (size_t)snprintf(text, sz, "nothing");
    int any = 0;
    for (const aco__waiter_t *waiter = wait->first; waiter && length < sz; waiter = waiter->other) {
        const aco_select_case_t *c = case_of(waiter);
        const char *operation = c->operation == ACO_SELECT_SEND ? "to send to" : "to receive from";
        if (!c->channel) /* without a channel: never ready */
            continue;
        if (!any++)
            length = 0;
        length += (size_t)snprintf(text + length, sz - length, "%s%s channel %p", length ? " or " : "", operation,
                                   (void *)c->channel);
    }
}
